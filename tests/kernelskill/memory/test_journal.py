import json
import subprocess
import sys

import pytest

from kernelskill.errors import RunError
from kernelskill.memory.journal import Journal


def test_events_come_back_in_order(tmp_path):
    journal = Journal(tmp_path / "journal.jsonl")
    for number in range(5):
        journal.append("attempt", round=number, text="µ × \n")
    assert [event.data["round"] for event in journal.events()] == [0, 1, 2, 3, 4]
    assert next(iter(journal.events())).data["text"] == "µ × \n"


@pytest.mark.parametrize("cut", range(1, 40))
def test_a_torn_last_line_is_dropped_and_the_next_append_starts_a_fresh_line(tmp_path, cut):
    path = tmp_path / "journal.jsonl"
    journal = Journal(path)
    journal.append("first", n=1)
    journal.append("second", n=2)
    whole = path.read_bytes()
    path.write_bytes(whole[:-cut])
    assert [event.name for event in journal.events()] == ["first"]
    journal.append("third", n=3)
    assert [event.name for event in journal.events()] == ["first", "third"]


def test_a_line_that_is_no_event_is_named(tmp_path):
    path = tmp_path / "journal.jsonl"
    journal = Journal(path)
    journal.append("first")
    with path.open("a") as file:
        file.write("not json\n")
    with pytest.raises(RunError, match=r"journal\.jsonl:2: this line of the journal is no event"):
        list(journal.events())


def test_another_format_is_refused(tmp_path):
    path = tmp_path / "journal.jsonl"
    path.write_text(json.dumps({"v": 99, "event": "x", "time": ""}) + "\n")
    with pytest.raises(RunError, match="format 99"):
        list(Journal(path).events())


def test_a_folder_without_a_journal_says_so(tmp_path):
    with pytest.raises(RunError, match="no journal"):
        list(Journal(tmp_path / "journal.jsonl").events())


def test_not_a_number_is_refused_before_anything_is_written(tmp_path):
    journal = Journal(tmp_path / "journal.jsonl")
    with pytest.raises(ValueError, match="not JSON compliant"):
        journal.append("bad", value=float("nan"))
    assert not journal.path.exists()


def test_killed_while_appending_leaves_only_whole_events(tmp_path):
    path = tmp_path / "journal.jsonl"
    writer = (
        "import sys; from pathlib import Path; from kernelskill.memory.journal import Journal\n"
        "j = Journal(Path(sys.argv[1]))\n"
        "n = 0\n"
        "print('go', flush=True)\n"
        "while True: j.append('e', n=n, pad='x' * 5000); n += 1\n"
    )
    process = subprocess.Popen([sys.executable, "-c", writer, str(path)], stdout=subprocess.PIPE)
    assert process.stdout is not None
    process.stdout.readline()
    while not path.exists() or path.stat().st_size < 30_000:
        pass
    process.kill()
    process.wait()
    numbers = [event.data["n"] for event in Journal(path).events()]
    assert numbers == list(range(len(numbers)))
    assert len(numbers) >= 5

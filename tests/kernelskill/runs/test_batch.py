"""Many runs go round together, in a folder that may be copied at any time."""

import json
import shutil

import pytest
from click.testing import CliRunner
from conftest import ROOT, TASK

from kernelskill import assembly
from kernelskill.batch import Batch, batch_at
from kernelskill.cli import group
from kernelskill.errors import RunError
from kernelskill.memory.run import Run, held
from kernelskill.writers.request import Request
from kernelskill.writers.requestbox import ANSWER
from kernelskill.writers.template import TemplateWriter

OPTIONS = assembly.Options(rounds=1, device="sim", writer="handoff")


@pytest.fixture
def batch(tmp_path):
    (tmp_path / "batch" / "runs").mkdir(parents=True)
    made = Batch(tmp_path / "batch")
    made.create([TASK, ROOT / "examples" / "transpose"], OPTIONS)
    list(made.advance(made.ready()))
    made.publish()
    return made


def template_answer(batch, run):
    opened = Run.open(batch.folder / "runs" / run)
    entry = next(iter(sorted((batch.folder / "open").glob(f"{run}-*"))))
    posted = json.loads((entry / "request.json").read_text())["request"]
    task = assembly.run_task(opened, TemplateWriter())
    return entry, TemplateWriter().write(task, Request.model_validate(posted))


def answer(batch, run):
    entry, text = template_answer(batch, run)
    (entry / ANSWER).write_text(text)


def step(batch):
    refused = batch.take_answers()
    turns = list(batch.advance(batch.ready()))
    return refused, turns, batch.publish()


def states(index):
    return {row["run"]: row["state"] for row in index["runs"]}


def test_each_open_request_is_a_folder_and_the_index_says_where_all_stand(batch):
    index = json.loads((batch.folder / "index.json").read_text())
    assert index["open"] == ["open/row_sum-001", "open/transpose-001"]
    files = {path.name for path in (batch.folder / "open" / "row_sum-001").iterdir()}
    assert files == {"request.md", "request.json", "parent.py"}
    assert states(index) == {"runs/row_sum": "waiting", "runs/transpose": "waiting"}
    assert str(batch.folder) not in json.dumps(index)


def test_only_the_answered_go_on(batch):
    answer(batch, "row_sum")
    refused, turns, index = step(batch)
    assert not refused and [turn["verdicts"][0]["outcome"] for turn in turns] == ["improved"]
    assert states(index) == {"runs/row_sum": "finished", "runs/transpose": "waiting"}
    assert index["open"] == ["open/transpose-001"] and not (batch.folder / "open" / "row_sum-001").exists()
    assert (batch.folder / index["runs"][0]["solution"]).is_file()
    assert step(batch)[1] == []


def test_the_batch_goes_on_where_it_was_copied_to(batch, tmp_path):
    writer = tmp_path / "machine with a model"
    shutil.copytree(batch.folder / "open", writer)
    entry, text = template_answer(batch, "transpose")
    (writer / entry.name / ANSWER).write_text(text)
    moved = Batch(batch.folder.rename(tmp_path / "elsewhere"))
    shutil.copytree(writer, moved.folder / "open", dirs_exist_ok=True)
    refused, turns, index = step(moved)
    assert not refused and turns[0]["verdicts"][0]["outcome"] == "improved"
    assert states(index) == {"runs/row_sum": "waiting", "runs/transpose": "finished"}


def test_what_cannot_be_taken_is_told_and_the_others_go_on(batch):
    answer(batch, "transpose")
    (batch.folder / "open" / "row_sum-001" / ANSWER).write_text("\n")
    refused, turns, index = step(batch)
    assert list(refused) == ["row_sum-001"] and "the file is empty" in refused["row_sum-001"]
    assert [turn["run"].endswith("transpose") for turn in turns] == [True]
    assert states(index) == {"runs/row_sum": "waiting", "runs/transpose": "finished"}
    assert (batch.folder / "open" / "row_sum-001" / ANSWER).exists()


def test_an_answer_that_came_too_late_is_kept(batch):
    answer(batch, "row_sum")
    assert batch.take_answers() == {}
    (batch.folder / "open" / "row_sum-001" / ANSWER).write_text("def run(x):\n    return x\n")
    assert step(batch)[1][0]["verdicts"][0]["outcome"] == "improved"
    assert (batch.folder / "late" / "row_sum-001.py").read_text() == "def run(x):\n    return x\n"


def test_a_kill_after_the_answer_was_taken_loses_nothing(batch):
    answer(batch, "row_sum")
    batch.take_answers()
    again = Batch(batch.folder)
    assert [run.name for run in again.ready()] == ["row_sum"]
    assert step(again)[1][0]["verdicts"][0]["outcome"] == "improved"


def test_a_run_that_somebody_works_on_is_left_to_them(batch):
    answer(batch, "row_sum")
    batch.take_answers()
    with held(batch.folder / "runs" / "row_sum"):
        turns = list(batch.advance(batch.ready()))
    assert turns[0]["state"] == "stuck" and "another process is working on this run" in turns[0]["error"]
    assert step(batch)[1][0]["verdicts"][0]["outcome"] == "improved"


def test_tasks_that_are_there_already_are_not_started_again_and_bad_ones_are_told(batch, tmp_path):
    (tmp_path / "bad.py").write_text("x = 1\n")
    unusable = batch.create([TASK, tmp_path / "bad.py"], OPTIONS)
    assert list(unusable) == [str(tmp_path / "bad.py")] and "neither a KernelBench task" in unusable[str(tmp_path / "bad.py")]
    assert len(batch.runs()) == 2


def test_a_task_is_known_again_by_its_text_and_two_of_one_name_are_two_runs(batch, tmp_path):
    shutil.copytree(TASK, tmp_path / "other" / "row_sum")
    assert batch.create([tmp_path / "other" / "row_sum"], OPTIONS) == {}
    assert [run.name for run in batch.runs()] == ["row_sum", "transpose"]
    with (tmp_path / "other" / "row_sum" / "task.toml").open("a") as file:
        file.write("\n# another one\n")
    assert batch.create([tmp_path / "other" / "row_sum"], OPTIONS) == {}
    assert [run.name for run in batch.runs()] == ["other-row_sum", "row_sum", "transpose"]


def test_a_run_that_cannot_be_read_does_not_hide_the_others(batch):
    (batch.folder / "runs" / "row_sum" / "journal.jsonl").write_text("nonsense\n")
    index = batch.publish()
    assert states(index) == {"runs/row_sum": "unreadable", "runs/transpose": "waiting"}
    assert "this line of the journal is no event" in index["runs"][0]["error"]


def test_a_folder_that_is_no_batch_is_told(tmp_path):
    with pytest.raises(RunError, match="no folder runs/"):
        batch_at(tmp_path)


def test_the_commands_say_what_is_open_and_end_with_their_exit_code(batch):
    runner = CliRunner()
    listed = runner.invoke(group, ["requests", str(batch.folder)], catch_exceptions=False)
    assert listed.exit_code == 0 and "2 open: put each answer at" in listed.output
    answer(batch, "row_sum")
    handed_in = runner.invoke(group, ["submit", str(batch.folder), "--json"], catch_exceptions=False)
    assert handed_in.exit_code == 3
    assert json.loads(handed_in.stdout)["index"]["open"] == ["open/transpose-001"]
    (batch.folder / "open" / "transpose-001" / ANSWER).write_bytes(b"\xff\xff")
    refused = runner.invoke(group, ["submit", str(batch.folder)], catch_exceptions=False)
    assert refused.exit_code == 2 and "not taken: transpose-001" in refused.stderr


def test_what_is_handed_in_while_another_process_waits_is_taken_by_it(session, tmp_path):
    session.start(rounds=1)
    (tmp_path / "mine.py").write_text(session.right())
    with held(session.folder):
        done = CliRunner().invoke(group, ["submit", str(session.folder), str(tmp_path / "mine.py")], catch_exceptions=False)
    assert done.exit_code == 3 and "handed in; the process that is working on this run takes it" in done.output
    assert session.go_on().run.graph.attempts[0].outcome == "improved"


def test_one_run_is_handed_in_by_its_folder(session, tmp_path):
    session.start(rounds=1)
    (tmp_path / "mine.py").write_text(session.right())
    done = CliRunner().invoke(group, ["submit", str(session.folder), str(tmp_path / "mine.py")], catch_exceptions=False)
    assert done.exit_code == 0
    assert "round 1 block_per_row_reduction: improved" in done.output and "finished after 1 rounds" in done.output

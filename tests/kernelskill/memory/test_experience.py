import json
import sqlite3
import threading

import pytest

from kernelskill.errors import ExperienceError
from kernelskill.memory.experience import Outcome, Row, Snapshot, experience_facts, rows_of
from kernelskill.memory.experience_store import ExperienceStore, Exported, read_export, store_named
from kernelskill.vocabulary import lookup

CARD = {"device": "card", "mode": "sim", "family": "matmul"}


def outcome(round_, method="tiling", gain=None, run="r", bottlenecks=("dram", "l2"), **key):
    return Outcome(run=run, round=round_, method=method, bottlenecks=bottlenecks, success=gain is not None and gain > 1.02,
                   gain=gain, **{**CARD, **key})


@pytest.fixture
def store(tmp_path):
    return ExperienceStore(tmp_path / "experience.sqlite")


def test_an_attempt_counts_once_under_each_bottleneck(store):
    three = [outcome(0, gain=2.0), outcome(1, gain=3.0), outcome(2)]
    assert store.add(three) == 3
    assert store.add(three) == 0
    assert store.snapshot("s", "card", "sim", "matmul").rows == tuple(
        Row(method="tiling", bottleneck=name, trials=3, successes=2, gain=2.5) for name in ("dram", "l2"))


def test_other_devices_families_and_measured_times_are_apart(store):
    store.add([outcome(0, gain=2.0), outcome(1, gain=9.0, mode="cuda"), outcome(2, gain=9.0, device="other"),
               outcome(3, gain=9.0, family="scan")])
    assert [row.gain for row in store.snapshot("s", "card", "sim", "matmul").rows] == [2.0, 2.0]


def test_no_file_yet_is_no_experience(store):
    assert store.outcomes() == [] and store.forget() == 0
    assert store.snapshot("s", "card", "sim", "matmul").rows == ()
    assert not store.path.exists()


def test_facts_are_words_of_the_vocabulary():
    snapshot = Snapshot(store="s", **CARD, rows=rows_of([outcome(0, gain=2.0), outcome(1)]))
    facts = experience_facts(snapshot)
    assert {name: fact.value for name, fact in facts.items()} == {
        "experience_trials.tiling.dram": 2, "experience_successes.tiling.dram": 1, "experience_gain.tiling.dram": 2.0,
        "experience_trials.tiling.l2": 2, "experience_successes.tiling.l2": 1, "experience_gain.tiling.l2": 2.0}
    for name, fact in facts.items():
        spec = lookup(name)
        assert spec is not None and (spec.unit, spec.sources) == (fact.unit, (fact.provenance,))
    assert experience_facts(None) == {}


def test_the_digest_is_of_the_counts():
    one, same, other = (Snapshot(store=name, **CARD, rows=rows_of([outcome(0, gain=gain)]))
                        for name, gain in (("a", 2.0), ("b", 2.0), ("a", 2.1)))
    assert one.digest == same.digest != other.digest


def test_forget_by_method_or_all(store):
    store.add([outcome(0), outcome(1, method="padding"), outcome(2, method="padding")])
    assert store.forget(method="padding") == 2
    assert [o.method for o in store.outcomes()] == ["tiling"]
    assert store.forget() == 1


def test_many_writers_at_once_lose_nothing(store):
    def add(run):
        for round_ in range(20):
            store.add([outcome(round_, run=str(run))])

    threads = [threading.Thread(target=add, args=(run,)) for run in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(store.outcomes()) == 120


def test_a_file_that_is_no_database_is_told_and_left_alone(tmp_path):
    path = tmp_path / "e.sqlite"
    path.write_bytes(b"not a database, and long enough to be looked at" * 40)
    before = path.read_bytes()
    for use in (ExperienceStore(path).outcomes, lambda: ExperienceStore(path).add([outcome(0)]), ExperienceStore(path).forget):
        with pytest.raises(ExperienceError, match=r"not a database[\s\S]*move the file away") as told:
            use()
        assert str(path) in str(told.value)
    assert path.read_bytes() == before


def test_a_store_of_another_format_is_refused(store):
    store.add([outcome(0)])
    with sqlite3.connect(store.path) as db:
        db.execute("PRAGMA user_version = 7")
    with pytest.raises(ExperienceError, match="no experience store of format 1"):
        store.outcomes()


def test_your_own_store_lies_in_the_data_folder(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    assert store_named("user").path == tmp_path / "data" / "kernelskill" / "experience.sqlite"
    store_named("user").add([outcome(0)])
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data" / "kernelskill" / "experience.sqlite"))
    with pytest.raises(ExperienceError, match="no folder for your store"):
        store_named("user")


def test_a_store_in_a_folder_that_is_not_there_is_refused(tmp_path):
    with pytest.raises(ExperienceError, match="there is no such folder"):
        store_named(str(tmp_path / "gone" / "e.sqlite"))


def test_export_and_import(store, tmp_path):
    store.add([outcome(0, gain=2.0), outcome(1)])
    file = tmp_path / "out.json"
    file.write_text(Exported(outcomes=tuple(store.outcomes())).model_dump_json())
    copy = ExperienceStore(tmp_path / "copy.sqlite")
    assert copy.add(read_export(file)) == 2
    assert copy.outcomes() == store.outcomes()


@pytest.mark.parametrize(("text", "message"), [
    ("{", "no exported experience"), ("[1]", "no exported experience"), ('{"version": 2, "outcomes": []}', "format 2"),
    (json.dumps({"version": 1, "outcomes": [{"run": "r"}]}), r"outcomes\.0\.round: Field required"),
])
def test_a_file_that_is_no_export_is_refused(tmp_path, text, message):
    file = tmp_path / "in.json"
    file.write_text(text)
    with pytest.raises(ExperienceError, match=message):
        read_export(file)

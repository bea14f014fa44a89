"""The scripts that measure on a GPU, as far as that needs none: budgets, what a cut-off run leaves, where numbers come from."""

import json
import subprocess
import sys

import pytest

from benchmarks.h200 import all as driver
from benchmarks.h200 import bench, example_record, examples, guards, provenance, throughput, timing
from benchmarks.h200.__main__ import parts


def test_every_part_of_the_plan_exists_and_takes_a_budget():
    assert set(driver.SHARES) < set(parts())
    for part in driver.SHARES:
        text = (provenance.ROOT / "benchmarks" / "h200" / f"{part}.py").read_text()
        assert '"--budget"' in text and '"--out"' in text, part


def test_a_part_gets_its_share_and_what_others_leave():
    three = ["examples", "guards", "isolation"]
    shares = [driver.SHARES[part] for part in three]
    assert driver.allotted(three, 10_000) == 10_000 - sum(shares[1:])
    assert driver.allotted(three, sum(shares)) == pytest.approx(shares[0])
    assert driver.allotted(three, sum(shares) / 2) == pytest.approx(shares[0] / 2)
    assert driver.allotted(["isolation"], 200) == 200 - driver.GRACE_SECONDS
    assert driver.allotted(["isolation"], 20) == 0


def test_a_part_that_takes_too_long_is_ended(monkeypatch):
    sleeping = [sys.executable, "-c", "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); time.sleep(600)"]
    process = subprocess.Popen(sleeping)
    monkeypatch.setattr(driver, "STOP_SECONDS", 0.2)
    assert driver.ended(process, 0.2) is None and process.poll() is not None
    assert driver.ended(subprocess.Popen([sys.executable, "-c", "raise SystemExit(3)"]), 60) == 3


def test_without_a_checkout_there_is_no_bench():
    assert set(driver.SHARES) - set(driver.arguments([]).parts) == {"bench"}
    assert driver.arguments(["--kernelbench", "kb"]).parts == list(driver.SHARES)


def test_a_part_that_does_not_exist_is_named(capsys):
    with pytest.raises(SystemExit):
        driver.main(["exmaples"])
    assert "no part is called 'exmaples'; there are: examples, " in capsys.readouterr().err


@pytest.fixture
def results(tmp_path, monkeypatch):
    """A folder of committed records."""
    monkeypatch.setattr(provenance, "RESULTS", tmp_path / "committed")
    (tmp_path / "committed").mkdir()
    return tmp_path


def test_a_section_that_is_not_measured_again_stays_with_its_date(results, monkeypatch):
    old = {"provenance": {"date": "2026-01-01", "commit": "aaa", "command": "c"}, "graph": {"1": 1.0}, "noise": {"x": 2.0}}
    (results / "committed" / "timing.json").write_text(json.dumps(old))
    monkeypatch.setenv(provenance.COMMIT_VARIABLE, "b" * 40)
    record = provenance.Record("timing", "the command", results / "new")
    record.add("noise", {"y": 3.0})
    written = json.loads((results / "new" / "timing.json").read_text())
    assert (written["graph"], written["noise"]) == ({"1": 1.0}, {"x": 2.0, "y": 3.0})
    assert written["sections"]["graph"] == old["provenance"]
    assert written["sections"]["noise"]["commit"] == written["provenance"]["commit"] == "b" * 12
    assert json.loads((results / "committed" / "timing.json").read_text()) == old


def test_the_commit_of_a_copy_is_what_its_environment_says(monkeypatch):
    monkeypatch.setenv(provenance.COMMIT_VARIABLE, "0123456789abcdef0123")
    assert provenance.commit() == "0123456789ab"
    monkeypatch.setenv(provenance.COMMIT_VARIABLE, "the newest")
    with pytest.raises(ValueError, match="KERNELSKILL_COMMIT='the newest' is no commit: give what git rev-parse HEAD prints"):
        provenance.commit()


RUN = {"finished": True, "attempts": [1, 2]}


def test_examples_without_a_run_come_first_then_those_cut_off():
    record = {"examples": {"row_sum": RUN, "matmul": {**RUN, "finished": False}}}
    assert examples.ordered(["row_sum", "matmul", "transpose", "layer_norm"], record) == [
        "layer_norm", "transpose", "matmul", "row_sum"]


@pytest.mark.parametrize(("old", "new", "kept"), [
    (None, {"finished": False, "attempts": []}, "new"),
    (RUN, {"finished": False, "attempts": [1, 2, 3]}, "old"),
    (RUN, {"finished": True, "attempts": []}, "new"),
    ({"finished": False, "attempts": [1, 2]}, {"finished": False, "attempts": [1]}, "old"),
    ({"finished": False, "attempts": [1]}, {"finished": False, "attempts": [1]}, "new"),
])
def test_a_run_that_was_cut_off_replaces_none_that_came_further(old, new, kept):
    assert example_record.merged(old, new) is (new if kept == "new" else old)


def test_the_comparison_of_builds_states_its_spread():
    found = throughput.compared([[3.0, 26.0, 0.2], [3.2, 27.0, 0.3], [3.1, 25.0, 0.2]], [6.0, 1.4, 1.2, 1.3])
    assert found["load_inline_source_to_verdict_s"] == 29.2 and found["ours_source_to_verdict_s"] == 1.3
    assert found["times_faster"] == 22.5 and found["times_faster_range"] == [20.2, 25.4]
    assert found["times_faster_first"] == 4.9 and found["times_faster_without_import"] == 20.2
    assert len(found["load_inline_runs_s"]) == len(found["ours_runs_s"]) == 3


def test_planted_timing_cheats_are_modules_that_differ_from_the_honest_one():
    for name, source in timing.CHEATS.items():
        compile(source, name, "exec")
    assert len(set(timing.CHEATS.values())) == len(timing.CHEATS)
    assert "calls[0] < 60 " in timing.CHEATS["warm_up_counter"] and "< 300 " in timing.CHEATS["waits_for_300_calls"]


def test_guard_cases_that_were_not_judged_again_stay(results, monkeypatch):
    known = guards.load_cases()[0].file
    before = {"provenance": {}, "cases": [{"file": known, "wrong": "", "status": "PASSED"}, {"file": "gone", "wrong": "x"}],
              "kernelbench": [{"file": "zero_out", "wrong": ""}]}
    (results / "committed" / "guards.json").write_text(json.dumps(before))
    result = guards.Result("cuda", results / "new")
    assert [row["file"] for row in result.rows["cases"]] == [known] and result.wrong == []
    row = {"file": known, "status": "REJECTED", "wrong": "no", "seconds": 1.0, "time_us": None, "message": ""}
    result.add("cases", [row, {**row, "file": "new", "wrong": ""}])
    written = json.loads((results / "new" / "guards.json").read_text())
    assert [(row["file"], row["status"]) for row in written["cases"]] == [(known, "REJECTED"), ("new", "REJECTED")]
    assert written["wrong"] == [known] and written["kernelbench"] == before["kernelbench"]


def bench_row(key, **fields):
    return {"key": key, "task": key, "outcome": "solved", "time_us": 10.0, "provenance": "cuda_event",
            "speedups": {"start": 2.0}, **fields}


def test_a_bench_record_keeps_rows_of_other_problems_and_scores_all():
    before = {"rows": [bench_row("2/12", speedups={"start": 8.0}), bench_row("1/1")], "options": {"rounds": 1}}
    fresh = {"rows": [bench_row("1/1", time_us=5.0), bench_row("9/9", outcome="waiting")], "options": {"rounds": 2}}
    record = bench.merged(before, fresh)
    assert [(row["key"], row["time_us"]) for row in record["rows"]] == [("1/1", 5.0), ("2/12", 10.0)]
    assert record["scores"]["groups"]["all"]["speedups"]["start"]["geometric"] == 4.0 and record["options"] == {"rounds": 2}
    assert bench.merged({}, {})["rows"] == []


def test_a_bench_over_its_budget_is_interrupted_and_what_it_has_stays(tmp_path, monkeypatch):
    program = ("import pathlib, time\ntry:\n    time.sleep(600)\nexcept KeyboardInterrupt:\n"
               f"    pathlib.Path({str(tmp_path / 'kept')!r}).write_text('')\n    raise SystemExit(130)")
    assert bench.play([sys.executable, "-c", program], 1.0) == "" and (tmp_path / "kept").exists()

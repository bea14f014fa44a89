"""The lint of several tasks: progress is kept, a line that was cut short is done again, tasks that do not load are named."""

import json
from pathlib import Path

import pytest

from kernelskill.errors import KernelSkillError
from kernelskill.facts.device import load_device
from kernelskill.suites.discover import SuiteTask, find_tasks
from kernelskill.suites.lint import LintJob, LintProcess, known, recorded, reports_of
from kernelskill.suites.records import append_line, lines_of

GOOD = """
import numpy as np
NAME = "double"
SIZES = {"n": 8000000}
CHECK_SIZES = [{"n": 7}, {"n": 300}]
def make_inputs(rng, n):
    return {"x": rng.standard_normal(n, dtype=np.float32)}
def reference(x):
    return RESULT
def run(x):
    return x
"""


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "tasks").mkdir()
    results = {"good": "np.sqrt(np.abs(x))", "null": "np.tanh(x) * np.float32(1e-7)", "dies": "__import__('os')._exit(3)"}
    for name, result in results.items():
        (tmp_path / "tasks" / f"{name}.py").write_text(GOOD.replace("RESULT", result))
    return tmp_path / "tasks"


def test_reports_of_good_bad_and_deadly_tasks_are_kept(folder, tmp_path):
    device, out = load_device("h200"), tmp_path / "lint.jsonl"
    tasks = [*find_tasks(folder), SuiteTask("gone.py", folder / "gone.py")]
    reports = reports_of(LintJob(tasks, device, out=out, workers=2))
    assert {key: report.verdict for key, report in reports.items()} == {
        "dies.py": "not_checked", "good.py": "judgeable", "null.py": "unjudgeable_as_shipped", "gone.py": "not_checked"}
    assert "died or ran out of time" in reports["dies.py"].notes[-1] and "no such file" in reports["gone.py"].notes[0]
    assert reports["good.py"].sol_us == pytest.approx(2 * 4 * 8e6 / 4.228e12 * 1e6, rel=1e-3)
    assert reports["null.py"].set_aside and not reports["good.py"].set_aside

    kept = recorded(out)
    assert kept["good.py"] == reports["good.py"]
    out.write_text("".join(f"{line}\n" for _, line in lines_of(out) if '"key": "good.py"' in line) + '{"key": "null.py", "rep')
    told = []
    again = reports_of(LintJob(tasks[1:3], device, out=out), lambda key, report: told.append(key))
    assert told == ["good.py", "null.py"] and again["null.py"].verdict == "unjudgeable_as_shipped"
    assert set(recorded(out)) == {"good.py", "null.py"}


def test_what_a_report_lacks_is_done_on_request_and_the_rest_stays(folder, tmp_path):
    device, out = load_device("h200"), tmp_path / "lint.jsonl"
    tasks = [task for task in find_tasks(folder) if task.key != "null.py"]
    whole = reports_of(LintJob(tasks, device))["good.py"]
    notes = ("our judge: not done, the time of 1 s is up", "something else")
    cut = whole.model_copy(update={"ours": {}, "sol_us": 7.0, "notes": notes, "verdict": "judgeable"})
    dead = whole.model_copy(update={"shipped": None, "task": "dies"})
    for key, report in {"good.py": cut, "dies.py": dead}.items():
        append_line(out, json.dumps({"key": key, "report": report.model_dump(mode="json")}))
    assert reports_of(LintJob(tasks, device, out=out))["good.py"] == cut
    finished = reports_of(LintJob(tasks, device, out=out, finish=True))
    assert finished["good.py"].ours == whole.ours and finished["good.py"].sol_us == 7.0
    assert finished["good.py"].notes == ("something else",)
    assert finished["dies.py"].ours == whole.ours and "died or ran out of time" in finished["dies.py"].notes[-1]
    assert recorded(out) == finished


def test_the_committed_record_serves_as_a_lint(tmp_path):
    record = Path(__file__).parents[3] / "benchmarks" / "results" / "kernelbench_lint.json"
    rows, reports = json.loads(record.read_text())["problems"], known(record)
    assert {key: report.set_aside for key, report in reports.items()} == {key: row["set_aside"] for key, row in rows.items()}
    assert reports["2/80"].verdict == "unjudgeable" and reports["1/1"].sol_us == rows["1/1"]["sol_us"]
    other = tmp_path / "other.json"
    for text in ('{"problems": {"1/1": {"name": "x"}}}', '{"problems": [1]}', '{"a": 1}\n'):
        other.write_text(text)
        with pytest.raises(KernelSkillError, match="no record of a lint"):
            known(other)


def test_a_file_that_is_no_record_is_named(tmp_path):
    path = tmp_path / "other.jsonl"
    path.write_text(json.dumps({"key": "a"}) + "\n")
    with pytest.raises(KernelSkillError, match="no record of a lint") as error:
        recorded(path)
    assert str(error.value).endswith("name another file") and "other.jsonl:1" in str(error.value)


def test_lines_survive_a_cut(tmp_path):
    path = tmp_path / "lines"
    assert lines_of(path) == []
    append_line(path, "one")
    path.write_bytes(path.read_bytes() + b"cut")
    assert lines_of(path) == [(1, "one")]
    append_line(path, "two")
    assert lines_of(path) == [(1, "one"), (2, "cut"), (3, "two")]


def test_a_process_is_closed_without_having_been_used():
    LintProcess().close()

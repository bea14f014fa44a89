"""Whole runs with a language model as the writer, in the simulator: what it does well, and what it may do badly."""

import json
import re
from pathlib import Path

import pytest
from click.testing import CliRunner
from model_server import block, completion, error, serving

from kernelskill.cli.optimize import command
from kernelskill.cli.show import command as show
from kernelskill.memory.run import Run
from kernelskill.model import MethodApplication
from kernelskill.report.audit import replay_run
from kernelskill.tasks import load_task
from kernelskill.writers.request import Request
from kernelskill.writers.template import TemplateWriter

ROOT = Path(__file__).parents[3]
TASK = ROOT / "examples" / "row_sum"
TEMPLATES = TemplateWriter()
KEY = "sk-whole-run-secret"


@pytest.fixture
def play(tmp_path, monkeypatch):
    """Runs the command against a scripted server; gives its report, the run, and the server."""
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    monkeypatch.chdir(tmp_path)
    TEMPLATES.describe(load_task(TASK))  # looked at once, here and not in a thread of the server
    (tmp_path / "kernelskill.toml").write_text('[model]\nname = "openai/scripted"\nretry_wait_s = 0.01\ntries = 2\n')

    def run(*script, options=(), code=0, task=TASK):
        folder = tmp_path / "run"
        started = ["--resume", str(folder)] if folder.exists() else [str(task), "--device", "sim", "--out", str(folder),
                                                                      "--writer", "litellm"]
        with serving(*script) as server:
            monkeypatch.setenv("KERNELSKILL_API_BASE", server.base)
            result = CliRunner().invoke(command, [*started, "--json", *options])
        if result.exception is not None and not isinstance(result.exception, SystemExit):
            raise result.exception
        assert result.exit_code == code, result.output
        return json.loads(result.stdout), Run.open(folder), server
    return run


def by_template(body, method=""):
    """What a good model answers: the method that the prompt names, applied to the solution in the prompt."""
    prompt = body["messages"][1]["content"]
    source = re.search(r"## The current solution\n\n```python\n(.*?)\n```\n", prompt, re.DOTALL)[1] + "\n"
    wanted = MethodApplication(method=method or re.search(r"^# Apply `(\w+)", prompt)[1])
    return TEMPLATES.write(TEMPLATES.describe(load_task(TASK)), Request(method=wanted, source=source))


def good(body):
    return block(by_template(body), "Here it is.")


def failed_module(body):
    prompt = body["messages"][1]["content"]
    return re.search(r"## The module that failed\n\n```python\n(.*?)\n```\n", prompt, re.DOTALL)[1]


def outcomes(run):
    return [(a.round, a.repair, a.outcome, a.diagnosis.kind if a.diagnosis else "") for a in run.graph.attempts]


def test_a_wrong_result_is_repaired_from_its_counterexample(play):
    wrong, right = "total += v;", "total -= v;"
    report, run, server = play(lambda body: block(by_template(body).replace(wrong, right)),
                               lambda body: block(failed_module(body).replace(right, wrong)), options=("--rounds", "1"))
    assert outcomes(run) == [(1, 0, "failed", "numerical"), (1, 1, "improved", "")]
    first, repair = run.graph.attempts
    assert repair.parent == first.child
    assert (report["rounds"], report["repairs"], report["methods"]) == (1, 1, ["block_per_row_reduction"])
    assert report["speedup"] > 2 and report["usage"]["calls"] == 2
    asked = server.requests[1]["messages"][1]["content"]
    for part in ("# Repair", "**numerical**", "expected", "The module that failed", "The solution before it, which passes"):
        assert part in asked
    assert str(run.folder) not in asked and "solution.py" not in first.diagnosis.key
    assert replay_run(run.folder) == (len(run.decisions), "")
    assert [p for p in run.folder.rglob("*") if p.is_file() and KEY.encode() in p.read_bytes()] == []


def test_the_same_fault_again_ends_the_repairs_and_the_parent_stays(play):
    wrong = "total += v;", "total -= v;"
    report, run, _ = play(lambda body: block(by_template(body).replace(*wrong)),
                               lambda body: block(failed_module(body).replace("total -= v;", "total -= 1.0f * v;")),
                               lambda body: pytest.fail("a third call"), options=("--rounds", "1", "--repairs", "5"))
    assert outcomes(run) == [(1, 0, "failed", "numerical"), (1, 1, "failed", "numerical")]
    assert report["speedup"] == 1 and run.graph.best == run.graph.start
    assert run.decisions[-1][2].facts["failed_here.block_per_row_reduction"].value == 1
    assert run.decisions[-1][2].facts["last_repairs"].value == 1


def test_generated_code_sees_no_key(play):
    told = "import os\n\n\ndef run(x):\n    raise RuntimeError(sorted(os.environ.items()))\n"
    _, run, _ = play(block(told), completion("no"), options=("--rounds", "1", "--repairs", "0"))
    message = run.graph.attempts[0].message
    assert "PATH" in message and "OPENAI" not in message and KEY not in message


def other_method(body):
    return block(by_template(body, "coalesced_access"))


def test_faster_code_of_another_method_is_refused(play):
    report, run, _ = play(other_method, options=("--rounds", "1", "--repairs", "0"))
    assert outcomes(run) == [(1, 0, "off_method", "off_method")]
    assert "block_per_row_reduction promises threads_per_row at least 64 (is 32)" in run.graph.attempts[0].message
    assert report["speedup"] == 1


def test_or_kept_as_that_methods_attempt_where_the_run_says_so(play):
    report, run, _ = play(other_method, options=("--rounds", "1", "--repairs", "0", "--off-method", "relabel"))
    assert outcomes(run) == [(1, 0, "improved", "")]
    kept = run.graph.attempts[0]
    assert (kept.method.method, kept.asked) == ("coalesced_access", "block_per_row_reduction")
    assert kept.message.startswith("asked for block_per_row_reduction") and "promises threads_per_row" in kept.message
    assert report["methods"] == ["coalesced_access"] and report["speedup"] > 1


def test_a_hopeless_writer_wastes_nothing_and_ends_cleanly(play):
    report, run, server = play(completion("#include <stdio.h> " * 50), options=("--rounds", "15",))
    assert [a.outcome for a in run.graph.attempts] == ["not_written"] * 3
    assert report["stop_reason"] == "writer_brings_nothing" and report["status"] == "PASSED"
    assert len(server.requests) == 6 and report["usage"]["faults"] == {"no_code": 6}


def test_a_spent_budget_stops_the_run_with_its_reason(play):
    report, run, server = play(good, options=("--rounds", "15", "--max-tokens", "150"))
    assert outcomes(run) == [(1, 0, "improved", "")] and len(server.requests) == 1
    assert report["stop_reason"] == "model_budget"
    assert run.decisions[-1][2].facts["model_budget_left_pct"].value == 0


def test_a_provider_that_is_down_loses_nothing(play, tmp_path):
    from kernelskill.errors import ModelError

    with pytest.raises(ModelError, match="after 2 tries") as down:
        play(error(500, "down"), options=("--rounds", "1"))
    assert "--resume" in down.value.hint
    before = (tmp_path / "run" / "journal.jsonl").read_bytes()
    report, run, _ = play(good)
    assert (tmp_path / "run" / "journal.jsonl").read_bytes().startswith(before)
    assert outcomes(run) == [(1, 0, "improved", "")] and len([d for d in run.decisions if d[0] == 1]) == 1
    assert report["stop_reason"] == "budget_exhausted"


def test_a_repair_that_was_cut_short_is_taken_up_again(play):
    from kernelskill.errors import ModelError

    wrong = "total += v;", "total -= v;"
    with pytest.raises(ModelError):
        play(lambda body: block(by_template(body).replace(*wrong)), error(500, "down"), options=("--rounds", "1"))
    _, run, server = play(lambda body: block(failed_module(body).replace(*wrong[::-1])))
    assert outcomes(run) == [(1, 0, "failed", "numerical"), (1, 1, "improved", "")]
    assert len(server.requests) == 1 and [d[0] for d in run.decisions] == [1, 2]


def test_without_long_term_memory_the_writer_chooses_from_the_catalogue(play):
    def chosen(body):
        return block("# method: block_per_row_reduction\n" + by_template(body, "block_per_row_reduction"))

    report, run, server = play(chosen, options=("--rounds", "1", "--no-long-term", "--no-short-term"))
    prompt = server.requests[0]["messages"][1]["content"]
    assert "`split_k`:" in prompt and "It promises" not in prompt
    assert report["methods"] == ["block_per_row_reduction"]
    assert report["ablation"] == "no long-term memory; no short-term memory"
    assert replay_run(run.folder) == (len(run.decisions), "")


def test_the_random_policy_is_seeded_recorded_and_replayed(tmp_path):
    folders = [tmp_path / "one", tmp_path / "two"]
    for folder in folders:
        given = [str(TASK), "--device", "sim", "--rounds", "1", "--policy", "random", "--policy-seed", "3", "--out"]
        result = CliRunner().invoke(command, [*given, str(folder)])
        assert result.exit_code == 0 and "ablation  random policy, seed 3" in result.stdout
    first, second = map(Run.open, folders)
    assert first.decisions[0][2].chosen == second.decisions[0][2].chosen
    assert "(random policy, seed 3)" in first.decisions[0][2].reason
    assert replay_run(folders[0]) == (len(first.decisions), "")


RUNNING = '''"""Running sums over the last axis."""

import torch
import torch.nn as nn


class Model(nn.Module):
    def forward(self, x):
        return torch.cumsum(x.double(), dim=1).float() * 0.5


rows = 32
cols = 48


def get_inputs():
    return [torch.rand(rows, cols)]


def get_init_inputs():
    return []
'''
FIRST = '''import cupy
import torch

SOURCE = r"""
extern "C" __global__ void scan(const float* x, float* y, int rows, int cols) {
    int row = blockIdx.x * blockDim.x + threadIdx.x;
    if (row > rows) return;
    float sum = 0.0f;
    for (int c = 0; c < cols; c++) { sum += x[row * cols + c]; y[row * cols + c] = 0.5f * sum; }
}
"""
scan = cupy.RawModule(code=SOURCE, options=("--std=c++17",)).get_function("scan")


class ModelNew(torch.nn.Module):
    def forward(self, x):
        x = x.contiguous()
        rows, cols = x.shape
        y = torch.empty_like(x)
        with cupy.cuda.ExternalStream(torch.cuda.current_stream().cuda_stream):
            scan(((rows + 31) // 32,), (32,), (x.data_ptr(), y.data_ptr(), cupy.int32(rows), cupy.int32(cols)))
        return y
'''


def test_a_first_solution_of_a_torch_module_is_written_verified_and_mended(play, tmp_path):
    task = tmp_path / "running.py"
    task.write_text(RUNNING)
    report, run, server = play(block(FIRST), lambda body: block(failed_module(body).replace("row > rows", "row >= rows")),
                               completion("no"), task=task, options=("--rounds", "1", "--seeds", "1"))
    assert [(a.round, a.repair, a.outcome, a.diagnosis and a.diagnosis.kind) for a in run.seeds] == [
        (1, 0, "failed", "memory"), (1, 1, "improved", None)]
    assert run.graph.start == run.seeds[1].child and report["status"] == "PASSED"
    prompt = server.requests[0]["messages"][1]["content"]
    for part in ("# Write a first solution of `running`", "class ModelNew", "torch.cumsum", "rows=32, cols=48"):
        assert part in prompt
    assert [a.outcome for a in run.graph.attempts] == ["not_written"]
    shown = CliRunner().invoke(show, [str(run.folder)]).stdout
    assert "first solution 1: memory  out_of_bounds" in shown and "first solution 1 repair 1: passed" in shown


def test_a_writer_that_makes_no_first_solution_ends_the_run(play, tmp_path):
    task = tmp_path / "running.py"
    task.write_text(RUNNING)
    report, run, server = play(completion("no"), task=task, options=("--seeds", "2"), code=1)
    assert (report["status"], report["stop_reason"], report["solution"]) == ("NOT_STARTED", "nothing_written", None)
    assert [a.outcome for a in run.seeds] == ["not_written"] * 2 and len(server.requests) == 4
    assert "number 2 at a start" in server.requests[2]["messages"][1]["content"]
    shown = CliRunner().invoke(show, [str(run.folder)])
    assert shown.exit_code == 0 and "holds no module (no_code)" in " ".join(shown.stdout.split())

"""The real part: solutions run unchanged with cupy. Elsewhere the recorded results are checked (tests/contracts)."""

from pathlib import Path

import pytest

from evaluator import pool
from evaluator.types import Request, Status
from kernelskill.facts.device import detect_device
from kernelskill.tasks import load_task

ROOT = Path(__file__).resolve().parents[2]
DEVICE = detect_device()
pytestmark = [pytest.mark.gpu, pytest.mark.skipif(DEVICE is None, reason="no NVIDIA GPU on this machine")]


@pytest.mark.parametrize("label", ["start", "best"])
@pytest.mark.parametrize("name", ["bias_gelu", "row_softmax", "row_sum", "transpose", "matmul", "layer_norm"])
def test_solution_passes_and_is_timed(name, label):
    solution = ROOT / "benchmarks" / "results" / "solutions" / name / f"{label}.py"
    request = Request(task=load_task(ROOT / "examples" / name).spec, solution=str(solution), mode="cuda", device=DEVICE)
    evaluation = pool.evaluate(request)
    assert evaluation.status is Status.PASSED, evaluation.message
    assert evaluation.time is not None and evaluation.time.provenance == "cuda_event"


def test_a_wrong_kernel_is_found_and_the_next_evaluation_is_right(tmp_path):
    good = ROOT / "benchmarks" / "results" / "solutions" / "row_sum" / "start.py"
    bad = tmp_path / "bad.py"
    bad.write_text(good.read_text().replace("+=", "-="))
    spec = load_task(ROOT / "examples" / "row_sum").spec
    verdicts = [pool.evaluate(Request(task=spec, solution=str(s), mode="cuda", device=DEVICE)).status for s in (bad, good)]
    assert verdicts == [Status.INCORRECT_NUMERICAL, Status.PASSED]

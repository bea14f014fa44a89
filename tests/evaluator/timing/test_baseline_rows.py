"""Baselines as rows: timed in turns, failing each for itself, with their precision."""

from __future__ import annotations

from cpu_session import HONEST

from evaluator.measure import Processes, baseline_rows

EXACT = HONEST.replace("return torch", "x = x.double()\n        return (torch").replace("0.01 * x", "0.01 * x).float()")
HALF = HONEST.replace("0.01 * x", "0.01 * x.bfloat16().float()").replace("layer_norm(x,", "layer_norm(x.bfloat16().float(),")
FAILS = HONEST.replace("return torch", "raise ValueError('no such operator')\n        return torch")
DIES = HONEST.replace("return torch", "import os; os._exit(3)\n        return torch")
WRONG = HONEST.replace("0.01", "0.02")


def rows_of(stage, session, **solutions):
    processes = Processes(stage.ready(session, HONEST), None, {name: stage.process(text) for name, text in solutions.items()})
    for process in processes.baselines.values():
        process.load()
    request = stage.bench.request(stage.task, HONEST).model_copy(
        update={"baselines": (*solutions, "torch_eager_tf32"), "baseline_timeout_s": 60.0})
    try:
        return {row.name: row for row in baseline_rows(request, session, processes, graph=False)}, processes
    finally:
        stage.runners = list(processes)


def test_each_baseline_is_a_row_with_its_time_or_its_reason(stage):
    made = stage()
    rows, processes = rows_of(
        made, made.session(), torch_eager=HONEST, torch_compile=HALF, torch_eager_fp32=FAILS, torch_compile_fp32=DIES,
        torch_compile_max_autotune=EXACT, cuda_graph_eager=HONEST)
    assert rows["torch_eager"].time.samples == rows["torch_eager"].solution_time.samples >= 20
    assert rows["torch_eager"].precision_class == rows["torch_compile_max_autotune"].precision_class == "fp32"
    assert rows["torch_compile"].precision_class == "bf16" and rows["torch_compile"].time
    assert rows["torch_eager"].flags == "default: TF32 in convolutions only"
    assert "no such operator" in rows["torch_eager_fp32"].reason and rows["torch_eager_fp32"].time is None
    assert "exited with code 3" in rows["torch_compile_fp32"].reason
    assert rows["cuda_graph_eager"].reason.startswith("eager PyTorch cannot be captured: ")
    assert rows["torch_eager_tf32"].reason == "a native task has no PyTorch reference"
    assert list(processes) == [processes.solution]


def test_a_start_that_is_wrong_at_the_full_sizes_is_no_baseline(stage):
    made = stage()
    rows, _ = rows_of(made, made.session(), naive_start=WRONG)
    assert rows["naive_start"].reason.startswith("its result is wrong: A timed call at the full sizes is wrong")


def test_the_reference_of_the_reference_may_be_less_precise_than_the_tolerance(stage):
    made = stage()
    rows, _ = rows_of(made, made.session(), torch_eager=WRONG)
    assert rows["torch_eager"].time and rows["torch_eager"].precision_class == "bf16"

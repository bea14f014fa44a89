"""The request a writer gets, and the prompt made of it: one method, evidence with units, bounded, JSON both ways."""

import ast
import re

import pytest

from evaluator.types import Tolerance
from kernelskill.errors import WriterError
from kernelskill.model import Fact, MethodApplication
from kernelskill.writers import request as module
from kernelskill.writers.request import (
    Failure,
    MethodBrief,
    Plan,
    Request,
    TaskBrief,
    clip,
    fenced,
    render,
    templates_digest,
)

TASK = TaskBrief(
    name="row_sum", kind="native", entry="run(x)", reference="def reference(x):\n    return x.sum(axis=1)",
    sizes={"rows": 8192}, check_sizes=({"rows": 3}, {"rows": 67}),
    tolerance=Tolerance(rtol=1e-4, atol=1e-3), imports=("cupy", "numpy"),
    device="NVIDIA H200 (sm_90)", simulated=True)
CARD = MethodBrief(
    id="vectorized_access", title="Vectorised access", summary="Move 16 bytes a lane.", parameters=("`width`: elements",),
    preconditions=("vector_load_bytes below 16 (is 4)",), promises=("vector_load_bytes at least 16",),
    forbids=("library_calls above the parent's 0",), text="## Mechanism\nFewer instructions.\n```cuda before\nx\n```")
REQUEST = Request(
    method=MethodApplication(method="vectorized_access", params={"width": 4}), source="def run(x):\n    return x", task=TASK,
    card=CARD,
    plan=Plan(method=MethodApplication(method="vectorized_access"), target_kernel="row_sum", because="issue is the limit"),
    evidence=(Fact(name="time_us", value=198.274, unit="us", provenance="modelled"),), meanings={"time_us": "time of one call"},
    because=("a lane moves 4 bytes",), history=("launch_tuning: equal, 1.00x",))


def with_(**changes):
    return REQUEST.model_copy(update=changes)


def test_a_prompt_holds_method_evidence_constraints_history_and_reply_format():
    text = render(REQUEST).markdown
    for part in ("vectorized_access(width=4)", "Target kernel: `row_sum`", "a lane moves 4 bytes",
                 "vector_load_bytes below 16 (is 4)",
                 "vector_load_bytes at least 16", "library_calls above",
                 "| `time_us` | 198.274 | us | modelled | time of one call |",
                 "launch_tuning: equal, 1.00x", "rows=8192", "rows=67", "`run(x)`", "cupy, numpy", "0.001 + 0.0001",
                 "fp32 throughout", "refused: the kernels do the work", "does not execute TMA", "exactly one fenced block"):
        assert part in text, part


def test_where_the_tasks_own_sizes_alone_count_no_others_are_asked_for():
    text = render(with_(task=TASK.model_copy(update={"check_sizes": ()}))).markdown
    assert "right for these sizes, which alone count" in text and "rows=8192" in text
    assert "any sizes" not in text and "Checked at" not in text and "rows=67" not in text


def test_a_request_survives_json():
    assert Request.model_validate_json(REQUEST.model_dump_json()) == REQUEST


def test_what_is_cut_is_said_and_the_solution_is_never_cut():
    long = "x = 1\n" * 9_000
    cut = render(with_(task=TASK.model_copy(update={"reference": long}))).markdown
    said = re.search(r"\[left out here: (\d+) of 53999 characters\]", cut)
    assert said and len(cut) < 15_000
    assert long.strip() in render(with_(source=long)).user
    first = with_(role="generator", method=None, source="", task=TASK.model_copy(update={"reference": long}))
    assert long.strip() in render(first).user  # nothing else says what a first solution has to compute
    with pytest.raises(WriterError, match="the solution has 60001 characters"):
        render(with_(source="x" * 60_001))
    many = tuple(Fact(name=f"fact_{i}", value=i, provenance="ncu") for i in range(50))
    shown = render(with_(evidence=many, history=tuple(f"try {i}" for i in range(20)))).user
    assert "[left out here: 10 more facts]" in shown and "[left out here: 8 earlier attempts]" in shown
    assert "fact_39" in shown and "fact_40" not in shown and "try 8" in shown and "* try 7\n" not in shown


def test_a_line_and_a_log_are_cut_with_their_rest_counted():
    assert clip("a" * 410, "line") == "a" * 400 + "… (10 more characters left out)"
    assert clip("short\n", "log") == "short"


def test_a_fence_is_longer_than_any_inside():
    assert fenced("a ``` b\n````\nc", "text") == "`````text\na ``` b\n````\nc\n`````"


def test_a_repair_shows_the_failure_the_module_and_the_solution_before():
    failure = Failure(kind="numerical", summary="out[3]: expected 1, got 2", evidence=("normal seed 7, rows=3",),
                      log="warning: w")
    text = render(with_(role="repairer", failure=failure, parent_source="def run(x): pass")).markdown
    for part in ("# Repair", "**numerical**", "out[3]: expected 1, got 2", "normal seed 7", "warning: w",
                 "The module that failed", "The solution before it, which passes", "vector_load_bytes at least 16"):
        assert part in text, part


def test_a_first_solution_is_asked_for_with_the_library_policy():
    generator = with_(role="generator", method=None, card=None, plan=None, source="", evidence=(), history=())
    keeps = generator.model_copy(update={"task": TASK.model_copy(update={"library_calls": ("conv2d",)})})
    assert "Every operator that computes is a CUDA kernel" in render(generator).user
    assert "Keep a torch operator where a library beats" in render(keeps).user and "conv2d" in render(keeps).user
    assert "attempt number 2" in render(generator.model_copy(update={"seed": 2})).user
    assert "current solution" not in render(generator).user


def test_what_may_stay_is_spelt_out_and_the_switches_are_the_evaluators():
    keeps = TASK.model_copy(
        update={"kind": "kernelbench", "library_calls": ("conv (conv1d, conv2d)",), "reference": "BatchNorm2d"})
    text = render(with_(task=keeps)).user
    assert "conv (conv1d, conv2d)" in text and "touch nothing under `torch.backends`" in text and "num_batches_tracked" in text
    assert "num_batches_tracked" not in render(REQUEST).user


def test_a_repair_of_a_first_solution_names_no_method():
    failure = Failure(kind="shape", summary="(3,) instead of (4,)")
    repair = with_(role="repairer", method=None, card=None, plan=None, failure=failure)
    assert "# Repair: first solution of" in render(repair).user and "None" not in render(repair).user


def test_a_writer_is_told_to_leave_out_the_plan_of_the_builtin_one():
    assert "Leave out the comment" in render(with_(source="# kernelskill-plan: {}\nimport cupy")).user
    assert "Leave out the comment" not in render(REQUEST).user


def test_only_a_free_choice_lists_methods():
    chooses = with_(method=None, card=None, plan=None, catalogue=("vectorized_access: wide", "split_k: parts"))
    assert "split_k: parts" in render(chooses).user and "# method: its_id" in render(chooses).user
    assert "split_k" not in render(REQUEST).markdown


def test_the_prompt_names_the_version_of_its_templates(monkeypatch):
    before = templates_digest()
    assert render(REQUEST).digest == before and re.fullmatch(r"[0-9a-f]{16}", before)
    templates_digest.cache_clear()
    monkeypatch.setattr(module, "_templates", lambda: {"request.md.j2": "other"})
    try:
        assert templates_digest() != before
    finally:
        templates_digest.cache_clear()


def test_a_missing_value_is_an_error_and_not_an_empty_place(monkeypatch):
    from jinja2 import UndefinedError

    with pytest.raises(UndefinedError):
        module._environment().from_string("{{ r.nothing_of_that_name }}").render(r=REQUEST)


def test_the_example_block_of_the_reply_format_is_no_answer_that_parses_to_code():
    block = re.search(r"```python\n(# the whole module)\n```", render(REQUEST).user)
    assert block and not ast.parse(block[1]).body

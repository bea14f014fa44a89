"""The stages of one task's lint. Each adds to the report; what fails or takes too long is a note, and the rest goes on."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from evaluator.kernelbench_module import load_module
from evaluator.lint.cost import Cost, meta_cost
from evaluator.lint.findings import findings_of, verdict_of
from evaluator.lint.nulls import NULLS
from evaluator.lint.ours import judge_nulls
from evaluator.lint.reference import NativeReference, Reference, TorchReference
from evaluator.lint.report import DEAD_NOTE, LATE_NOTE, LintReport, LintRequest
from evaluator.lint.shipped import KERNELBENCH, examine
from evaluator.lint.sizes import Sizes, reduced
from evaluator.oracle import TaskFault, describe_failure, load_oracle
from evaluator.types import TaskSpec

CPU_BYTES, CPU_FLOPS = 64e6, 4e9
"""What one call of the reference may move and compute on a CPU: under a second."""
TRACED_BYTES, TRACED_FLOPS = 2e7, 2e8
"""The same where it is called once for every operator."""

Report = dict[str, Any]
Stage = Callable[[LintRequest, float], Report]
"""(request, seconds left) -> fields of the report, and `notes`."""


def check(request: LintRequest) -> Iterator[LintReport]:
    """The report after every stage, each more complete than the one before."""
    done = request.done
    report = done or LintReport(task=request.task.name, kind=request.task.kind, verdict="not_checked")
    began = time.monotonic()
    for name, stage in _stages(request).items():
        if done is not None and name not in missing(done):
            continue
        report = report.model_copy(update={"notes": tuple(note for note in report.notes if not about(note, name))})
        left = request.budget_s - (time.monotonic() - began)
        fields, notes = _tried(name, stage, request, left)
        seconds = round(time.monotonic() - began, 2)
        report = report.model_copy(update={**fields, "notes": (*report.notes, *notes), "seconds": seconds})
        report = report.model_copy(update={"findings": findings_of(report), "verdict": verdict_of(report)})
        yield report


def missing(report: LintReport) -> list[str]:
    """The stages that did not decide all: they failed, or had no time. A random reference has nothing to judge nulls by."""
    names = [name for name, (field, _) in _KERNELBENCH.items() if not getattr(report, field)]
    if OURS not in names and any(note.startswith(f"{OURS}: no time") for note in report.notes):
        names.append(OURS)
    random = report.shipped is not None and report.shipped.random
    return [name for name in names if not (name == OURS and random) and not (name == WORK and report.kind == "native")]


def unfinished(report: LintReport) -> bool:
    """Whether another look may find more. A speed of light that is not known stays so."""
    return set(missing(report)) != set() and set(missing(report)) != {LIGHT}


def about(note: str, stage: str) -> bool:
    """Whether a report's note says what came of the stage, or only that time ran out."""
    return note.startswith(f"{stage}: ") or note in (LATE_NOTE, DEAD_NOTE)


def _stages(request: LintRequest) -> dict[str, Stage]:
    chosen = _KERNELBENCH if request.task.kind == "kernelbench" else _NATIVE
    return {name: stage for name, (_, stage) in chosen.items()}


def _tried(name: str, stage: Stage, request: LintRequest, left: float) -> tuple[Report, list[str]]:
    if left <= 0:
        return {}, [f"{name}: not done, the time of {request.budget_s:g} s is up"]
    try:
        fields = stage(request, left)
    except MemoryError:
        return {}, [f"{name}: not done, out of memory"]
    except TaskFault as fault:
        return {}, [f"{name}: {fault}"]
    except Exception as error:  # the task's own code
        return {}, [f"{name}: the task's own code fails: {describe_failure(error)}"]
    return fields, fields.pop("notes", [])


def _cost(request: LintRequest, left: float) -> Report:
    cost = meta_cost(load_module(request.task.path, request.task.sizes))
    if cost is None:
        return {"notes": ["speed of light: not known, the reference has recurrent layers or does not run on meta tensors"]}
    return {"cost": cost, "sol_us": round(cost.speed_of_light_us(request.device)[0], 3)}


def _shipped(request: LintRequest, left: float) -> Report:
    task = request.task
    sizes = dict(task.sizes) if request.on_gpu else _smaller(task, CPU_BYTES, CPU_FLOPS)
    reference = TorchReference(load_module(task.path, sizes), "cuda" if request.on_gpu else "cpu")
    return _examined(request, reference, sizes, request.tolerance or KERNELBENCH)


def _cost_native(request: LintRequest, left: float) -> Report:
    """Bytes only. Outputs of large inputs are not computed: then the inputs alone bound the time from below."""
    reference = NativeReference(request.task, request.task.sizes)
    inputs = reference.inputs(0)
    given = sum(int(x.nbytes) for x in inputs if hasattr(x, "nbytes"))
    made = sum(int(y.nbytes) for y in reference.outputs(inputs)) if given <= CPU_BYTES else 0
    cost = Cost(input_bytes=given, parameter_bytes=0, output_bytes=made, flops=0)
    return {"cost": cost, "sol_us": round(cost.speed_of_light_us(request.device)[0], 3)}


def _shipped_native(request: LintRequest, left: float) -> Report:
    """At the full size where that is small, else at the largest check size."""
    task = request.task
    sizes = max(task.check_sizes, key=lambda s: math.prod(s.values())) if task.check_sizes else dict(task.sizes)
    reference = NativeReference(task, sizes)
    return _examined(request, reference, dict(sizes), request.tolerance or task.tolerance)


def _examined(request: LintRequest, reference: Reference, sizes: Sizes, tolerance: Any) -> Report:
    full = sizes == request.task.sizes
    device = request.device.name if request.on_gpu else "cpu"
    shipped = examine(reference, tolerance, sizes, full_size=full, device=device)
    changed = ", ".join(f"{name}={value}" for name, value in sizes.items() if request.task.sizes.get(name) != value)
    return {"shipped": shipped, "notes": [] if full else [f"null candidates: tried at reduced sizes ({changed})"]}


def _ours(request: LintRequest, left: float) -> Report:
    oracle = load_oracle(request.task)
    seen = judge_nulls(oracle, list(NULLS), left / 2)
    missing = [name for name in ("zeros", "ones", "constant", "other_seed") if name not in seen]
    notes = [f"our judge: no time to decide on {', '.join(missing)}"] if missing else []
    return {"ours": seen, "check_sizes": len(oracle.spec.check_sizes), "notes": notes}


def _needless(request: LintRequest, left: float) -> Report:
    from evaluator.lint.needless import needless

    task = request.task
    sizes, larger = _smaller(task, TRACED_BYTES, TRACED_FLOPS), _smaller(task, CPU_BYTES, CPU_FLOPS)
    confirming = TorchReference(load_module(task.path, larger)) if larger != sizes else None
    return {"needless": needless(TorchReference(load_module(task.path, sizes)), left, confirming)}


def _smaller(task: TaskSpec, max_bytes: float, max_flops: float) -> Sizes:
    def cost(sizes: Mapping[str, int]) -> Cost | None:
        return meta_cost(load_module(task.path, sizes))

    return reduced(task.sizes, cost, max_bytes, max_flops)


LIGHT, NULL_CANDIDATES, OURS, WORK = "speed of light", "null candidates", "our judge", "needless work"
_KERNELBENCH: dict[str, tuple[str, Stage]] = {
    LIGHT: ("cost", _cost), NULL_CANDIDATES: ("shipped", _shipped), OURS: ("ours", _ours), WORK: ("needless", _needless)}
"""Stage -> the report's field that it fills, and what it does."""
_NATIVE: dict[str, tuple[str, Stage]] = {
    LIGHT: ("cost", _cost_native), NULL_CANDIDATES: ("shipped", _shipped_native), OURS: ("ours", _ours)}

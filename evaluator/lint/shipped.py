"""A task's own check, tried with null candidates on the task's own inputs: what would be accepted, and what never matters."""

from __future__ import annotations

from typing import Any

from pydantic import Field

from evaluator.lint import arrays
from evaluator.lint.nulls import Known, accepted, candidates, judged
from evaluator.lint.reference import Reference
from evaluator.types import Frozen, Tolerance

OTHER_SEED, JUDGED_SEEDS = 7, (11, 12)
KERNELBENCH = Tolerance(rtol=1e-4, atol=1e-4)
"""KernelBench's own for float32 (src/kernelbench/eval.py, get_tolerance_for_precision); all its problems are float32."""
LOOSE = 1e-2
"""The looser tolerance (absolute and relative) at which KernelBench judged float32 before v0.1, and judges half precision."""


class NullEvidence(Frozen):
    """What one null candidate did under the task's own check."""

    passes: bool
    """At the task's tolerance, for every judged seed."""
    passes_loose: bool
    """At 1e-2."""
    wrong_share: float
    """Largest share of elements outside the task's tolerance."""
    max_error: float


class Shipped(Frozen):
    """The findings of one reference at one size."""

    sizes: dict[str, int]
    full_size: bool
    device: str
    nulls: dict[str, NullEvidence]
    output_rms: float
    ignored_inputs: tuple[str, ...] = ()
    """Of several inputs, those that another seed's may replace without any change of the outputs."""
    weak_inputs: tuple[str, ...] = ()
    """Those whose replacement changes the outputs, but not beyond the tolerance."""
    random: bool = False
    """Two calls on the same inputs differ: the reference draws random numbers."""
    same_value_share: float = 0.0
    """Share of output elements that equal the smallest or largest one, or zero."""
    structures: dict[str, str] = Field(default_factory=dict)
    """Input -> `triangular`, `diagonal`, `symmetric`."""
    dtypes: tuple[str, ...] = ()
    """Of the outputs."""
    input_bytes: int = 0
    parameter_bytes: int = 0
    output_bytes: int = 0


def examine(
    reference: Reference, tolerance: Tolerance, sizes: dict[str, int], *, full_size: bool, device: str
) -> Shipped:
    """Tries every null candidate; raises what the task's own code raises."""
    inputs = reference.inputs(OTHER_SEED)
    other = inputs if len(inputs) > 1 else []
    known = Known.of(inputs, reference.outputs(inputs))
    nulls: dict[str, NullEvidence] = {}
    fields: dict[str, Any] = {}
    for position, seed in enumerate(JUDGED_SEEDS):
        inputs = reference.inputs(seed)
        expected = reference.outputs(inputs)
        for name, got in candidates(inputs, known):
            nulls[name] = _both(nulls.get(name), _evidence(expected, got, tolerance))
        if position == 0:
            fields = _describe(reference, inputs, expected, tolerance)
            fields |= _replaced(reference, inputs, other, expected, tolerance)
    return Shipped(sizes=sizes, full_size=full_size, device=device, nulls=nulls, **fields)


def _evidence(expected: list[Any], got: list[Any], tolerance: Tolerance) -> NullEvidence:
    (wrong, loose), error = judged(expected, got, [(tolerance.atol, tolerance.rtol), (LOOSE, LOOSE)])
    return NullEvidence(passes=wrong == 0, passes_loose=loose == 0, wrong_share=wrong, max_error=error)


def _both(before: NullEvidence | None, now: NullEvidence) -> NullEvidence:
    if before is None:
        return now
    return NullEvidence(
        passes=before.passes and now.passes, passes_loose=before.passes_loose and now.passes_loose,
        wrong_share=max(before.wrong_share, now.wrong_share), max_error=max(before.max_error, now.max_error),
    )


def _describe(reference: Reference, inputs: list[Any], expected: list[Any], tolerance: Tolerance) -> dict[str, Any]:
    again = reference.outputs(inputs, seed=1)
    floats = [output for output in expected if arrays.is_float(output)]
    squares = sum(arrays.sum_of_squares(output) for output in floats)
    found = {name: arrays.structure(x) for name, x in zip(reference.names, inputs, strict=True) if hasattr(x, "ndim")}
    return {
        "output_rms": (squares / max(sum(arrays.size(o) for o in floats), 1)) ** 0.5,
        "random": not accepted(expected, again, tolerance.atol, tolerance.rtol),
        "same_value_share": max((arrays.share_of_one_value(output) for output in floats), default=0.0),
        "structures": {name: kind for name, kind in found.items() if kind},
        "dtypes": tuple(str(output.dtype).removeprefix("torch.") for output in expected),
        "input_bytes": sum(arrays.nbytes(x) for x in inputs if hasattr(x, "nbytes")),
        "parameter_bytes": reference.parameter_bytes,
        "output_bytes": sum(arrays.nbytes(output) for output in expected),
    }


def _replaced(
    reference: Reference, inputs: list[Any], other: list[Any], expected: list[Any], tolerance: Tolerance
) -> dict[str, tuple[str, ...]]:
    """Each input replaced in turn. A single input's case is the `other_seed` candidate."""
    ignored, weak = [], []
    for position, replacement in enumerate(other):
        if not hasattr(replacement, "shape") or accepted([inputs[position]], [replacement], 0.0, 0.0):
            continue  # the same for every seed: nothing would be replaced
        outputs = reference.outputs([*inputs[:position], replacement, *inputs[position + 1:]])
        if accepted(expected, outputs, 0.0, 0.0):
            ignored.append(reference.names[position])
        elif accepted(expected, outputs, tolerance.atol, tolerance.rtol):
            weak.append(reference.names[position])
    return {"ignored_inputs": tuple(ignored), "weak_inputs": tuple(weak)}

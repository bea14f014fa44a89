"""Null candidates: outputs that need no computation. A check that accepts one says nothing about a kernel.

The other seed's data (inputs and outputs for the same parameters) is all that a candidate may know.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from evaluator.lint import arrays

Arrays = Sequence[Any]
NULLS = {
    "zeros": "every output element is 0",
    "ones": "every output element is 1",
    "constant": "the mean of the outputs for other inputs, everywhere",
    "input": "an input of the output's shape, returned as it is",
    "scaled_input": "that input times one number, fitted on other inputs",
    "other_seed": "the reference's outputs for other inputs",
}


@dataclass(frozen=True)
class Known:
    """What a candidate may know: another seed's inputs and outputs, reduced to what the candidates use."""

    outputs: Arrays
    means: tuple[float, ...]
    sources: tuple[int | None, ...]
    """Per output the position of the input that it could be, or None."""
    slopes: tuple[float, ...]

    @classmethod
    def of(cls, inputs: Arrays, outputs: Arrays) -> Known:
        """Reduces another seed's data; the inputs are not kept."""
        sources = tuple(_source(output, inputs) for output in outputs)
        slopes = tuple(
            0.0 if source is None or not arrays.is_float(output) else arrays.slope(inputs[source], output)
            for source, output in zip(sources, outputs, strict=True)
        )
        return cls(outputs, tuple(_constant(output) for output in outputs), sources, slopes)


def candidates(inputs: Arrays, known: Known) -> Iterator[tuple[str, list[Any]]]:
    """(name in NULLS, outputs) of every candidate that fits the task, made one at a time."""
    outputs = known.outputs
    yield "zeros", [arrays.filled(output, 0.0) for output in outputs]
    yield "ones", [arrays.filled(output, 1.0) for output in outputs]
    yield "constant", [arrays.filled(output, value) for output, value in zip(outputs, known.means, strict=True)]
    found = [source for source in known.sources if source is not None]
    if len(found) == len(outputs):
        given = [arrays.cast(inputs[source], output) for source, output in zip(found, outputs, strict=True)]
        yield "input", given
        if all(arrays.is_float(output) for output in outputs):
            yield "scaled_input", [a * value for a, value in zip(known.slopes, given, strict=True)]
    yield "other_seed", list(outputs)


def judged(expected: Arrays, got: Arrays, tolerances: Sequence[tuple[float, float]]) -> tuple[list[float], float]:
    """(largest share of wrong elements for each (atol, rtol), largest error) over all outputs; all where shapes differ."""
    if any(tuple(a.shape) != tuple(b.shape) for a, b in zip(expected, got, strict=True)):
        return [1.0] * len(tolerances), float("inf")
    found = [arrays.worst(want, have, tolerances) for want, have in zip(expected, got, strict=True)]
    shares = [max(column) for column in zip(*(share for share, _ in found), strict=True)]
    return shares, max(error for _, error in found)


def accepted(expected: Arrays, got: Arrays, atol: float, rtol: float) -> bool:
    """Whether every element is within the tolerance."""
    return judged(expected, got, [(atol, rtol)])[0] == [0.0]


def _source(output: Any, inputs: Arrays) -> int | None:
    return next((i for i, x in enumerate(inputs) if hasattr(x, "shape") and tuple(x.shape) == tuple(output.shape)), None)


def _constant(output: Any) -> float:
    """The mean, or the first element of what is no float."""
    if arrays.is_float(output):
        return arrays.mean(output)
    return float(output.reshape(-1)[0]) if arrays.size(output) else 0.0

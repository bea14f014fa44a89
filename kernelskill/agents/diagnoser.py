"""Diagnoser: one line on why an attempt did not help, from the evaluation alone."""

from __future__ import annotations

from evaluator.types import Evaluation, Finding, Mismatch


def diagnose(evaluation: Evaluation) -> str:
    """Why a solution failed: the first error finding, the first wrong element, or the reviewer's own sentence."""
    for finding in evaluation.findings:
        if finding.severity == "error":
            return describe_finding(finding)
    if evaluation.mismatch is not None:
        return describe_mismatch(evaluation.mismatch)
    return f"{evaluation.status.value}: {evaluation.message}"


def describe_finding(finding: Finding) -> str:
    """`out_of_bounds in softmax, line 12, block (0,0,0) thread (5,0,0): ...`."""
    where = [f"in {finding.kernel}"] if finding.kernel else []
    if finding.line is not None:
        where.append(_line(finding))
    where += [f"{name} {value}" for name, value in (("block", finding.block), ("thread", finding.thread)) if value is not None]
    code = f" | {finding.source}" if finding.source else ""
    return f"{finding.kind} {', '.join(where)}: {finding.message}{code}"


def _line(finding: Finding) -> str:
    if finding.file:
        return f"{finding.file}:{finding.line}"
    return f"{finding.origin} (CUDA line {finding.line})" if finding.origin else f"line {finding.line}"


def describe_mismatch(wrong: Mismatch) -> str:
    """The case, where and by how much."""
    sizes = ", ".join(f"{k}={v}" for k, v in wrong.sizes.items())
    if wrong.index is not None:
        at = f"{wrong.output}{list(wrong.index)}: expected {wrong.expected:.6g}, got {wrong.got:.6g}"
        allowed = f" (allowed error {wrong.allowed_error:.2g})" if wrong.allowed_error is not None else ""
        return f"{at}{allowed}; {wrong.case}, {sizes}"
    return (f"{wrong.output}: expected shape {wrong.expected_shape} {wrong.expected_dtype}, "
            f"got {wrong.got_shape} {wrong.got_dtype}; {wrong.case}, {sizes}")

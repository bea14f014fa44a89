"""Diagnoser: which of a few kinds of fault an attempt shows, with the evidence, from the evaluation alone."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from evaluator.types import INCORRECT, Evaluation, Finding, Mismatch, Status
from kernelskill.model import Diagnosis, DiagnosisKind

KINDS: dict[Status, DiagnosisKind] = {
    Status.COMPILE_ERROR: "compile", Status.INCORRECT_SHAPE: "shape", Status.INCORRECT_DTYPE: "shape",
    Status.INCORRECT_NUMERICAL: "numerical", Status.TIMEOUT: "timeout", Status.REJECTED: "rejected",
    Status.UNSUPPORTED: "unsupported", Status.RUNTIME_ERROR: "runtime",
}
FINDINGS: dict[str, DiagnosisKind] = {
    "out_of_bounds": "memory", "misaligned": "memory", "uninitialised_shared": "memory", "uninitialised_output": "memory",
    "null_pointer": "memory", "input_modified": "memory",
    "shared_race": "synchronisation", "nondeterministic": "synchronisation",
    "divergent_barrier": "synchronisation", "deadlock": "synchronisation", "shuffle_outside_mask": "synchronisation",
    "argument_mismatch": "launch", "non_contiguous_argument": "launch", "launch_limit": "launch", "runaway": "timeout",
    "unsupported": "unsupported", "library_call": "rejected", "guard": "rejected",
}
"""A finding says more than the status that it led to."""
MAX_EVIDENCE = 8
ERROR_LINE = re.compile(r"^.*?\berror\b\s*:?\s*(.*)$", re.MULTILINE)


def classify(evaluation: Evaluation) -> Diagnosis:
    """The diagnosis of a solution that did not pass."""
    errors = [finding for finding in evaluation.findings if finding.severity == "error"]
    kind = FINDINGS.get(errors[0].kind) if errors else None
    return Diagnosis(kind=kind or KINDS[evaluation.status], summary=diagnose(evaluation),
                     evidence=tuple(dict.fromkeys(_evidence(evaluation, errors))), log=_log(evaluation),
                     key=_key(evaluation, errors))


def off_method(broken: Sequence[str]) -> Diagnosis:
    """The diagnosis of a right solution that is not the method's: one sentence for each promise it breaks."""
    return Diagnosis(kind="off_method", summary="; ".join(broken), evidence=tuple(broken),
                     key="off_method:" + ",".join(sorted(_without_values(line) for line in broken)))


def imprecise(reason: str) -> Diagnosis:
    """The diagnosis of a solution that is right within the tolerance but less precise than the task permits."""
    return Diagnosis(kind="precision", summary=reason, key="precision")


def not_written(reason: str) -> Diagnosis:
    """The diagnosis of an attempt that brought no module."""
    return Diagnosis(kind="not_written", summary=reason, key="not_written:" + _without_values(reason))


def diagnose(evaluation: Evaluation) -> str:
    """Why a solution failed: the first error finding, the first wrong element, or the reviewer's own sentence."""
    for finding in evaluation.findings:
        if finding.severity == "error":
            return describe_finding(finding)
    if evaluation.mismatch is not None:
        return describe_mismatch(evaluation.mismatch)
    return f"{evaluation.status.value}: {evaluation.message}"


def _evidence(evaluation: Evaluation, errors: Sequence[Finding]) -> Iterator[str]:
    yield from (describe_finding(finding) for finding in errors[:MAX_EVIDENCE])
    if evaluation.mismatch is not None:
        yield describe_mismatch(evaluation.mismatch)
        yield from _extent(evaluation.mismatch)
    yield evaluation.message
    warnings = [finding for finding in evaluation.findings if finding.severity == "warning"]
    yield from (f"warning: {describe_finding(finding)}" for finding in warnings[:MAX_EVIDENCE])


def _extent(wrong: Mismatch) -> Iterator[str]:
    if wrong.wrong_elements is not None and wrong.total_elements:
        share = f"{wrong.wrong_elements} of {wrong.total_elements} elements of {wrong.output} are wrong"
        yield share + (f", the largest error is {wrong.max_abs_error:.3g}" if wrong.max_abs_error is not None else "")


def _log(evaluation: Evaluation) -> str:
    return evaluation.compile_log if evaluation.status is Status.COMPILE_ERROR else ""


def _key(evaluation: Evaluation, errors: Sequence[Finding]) -> str:
    """What stays the same when the same fault shows at another value, line or seed."""
    if errors:
        return f"{errors[0].kind}:{errors[0].kernel}:{' '.join((errors[0].source or errors[0].message).split())}"
    wrong = evaluation.mismatch
    if wrong is not None and evaluation.status in INCORRECT:
        everything = wrong.wrong_elements == wrong.total_elements
        return f"{evaluation.status.value}:{wrong.output}:{sorted(wrong.sizes.items())}:{'all' if everything else 'some'}"
    first = ERROR_LINE.search(evaluation.compile_log)
    return f"{evaluation.status.value}:{_without_values(first[1] if first else evaluation.message)}"


def _without_values(text: str) -> str:
    return re.sub(r"\d[\d.e+-]*", "#", text)


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

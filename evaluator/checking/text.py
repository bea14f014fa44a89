"""A check's report as text, the same on the command line and in a failed test."""

from __future__ import annotations

from collections.abc import Iterator

from evaluator.checking.types import SHARE_DONE, CheckReport, Counterexample, Verdict

MARKS = {"held": "ok", "violated": "VIOLATED", "not_tested": "-", "not_promised": "no promise"}


def report_lines(report: CheckReport) -> Iterator[str]:
    """The whole report, a verdict a line, each counterexample below its verdict."""
    yield f"{report.outcome.upper()}  {report.solution} for task {report.task}: {report.message}"
    if report.outcome == "refused":
        return
    if report.declaration.stated:
        yield f"declares  {_declared(report)}"
    for verdict in report.verdicts:
        yield from verdict_lines(verdict)
    if any(verdict.note == SHARE_DONE for verdict in report.verdicts):
        yield "* stopped when its share of the work was done; a larger --examples gives every property more"
    yield from (f"warning: {w.kind} at {w.origin or w.line}: {w.message}" for w in report.warnings)
    yield from (f"note: {note}" for note in report.notes)
    rate = report.calls / report.seconds if report.seconds else 0.0
    yield (f"{report.examples} examples, {report.calls} calls in {report.seconds:.1f} s ({rate:.0f} a second); "
           f"seed {report.seed}; boundaries around {', '.join(map(str, report.dangers))}")


def verdict_lines(verdict: Verdict) -> Iterator[str]:
    """The verdict, and the counterexample of a violated one indented."""
    stopped = verdict.note == SHARE_DONE
    count = f"{verdict.examples} examples{'*' * stopped}" if verdict.examples and verdict.outcome == "held" else ""
    remarks = "".join(f"  ({word})" for word in (count, "" if stopped else verdict.note) if word)
    yield f"{MARKS[verdict.outcome]:<10}  {verdict.title}{remarks}"
    if verdict.counterexample is not None and verdict.outcome == "violated":
        yield from (f"{'':12}{line}" for line in counterexample_lines(verdict.counterexample))


def counterexample_lines(found: Counterexample) -> Iterator[str]:
    """What was called with what, what came out, and where it was first met."""
    yield f"smallest example  {found.example}"
    if found.inputs:
        yield f"inputs            {'; '.join(found.inputs)}"
    if found.scenario != "one call":
        yield f"scenario          {found.scenario}"
    yield f"seen              {_seen(found)}"
    finding = found.finding
    if finding is not None and (finding.origin or finding.line):
        place = finding.origin or f"line {finding.line} of the CUDA source"
        yield f"at                {place}: {(finding.source or '').strip()}"
    if found.flaky:
        yield "                  the same example also passed: the result is not deterministic"
    if found.first_found is not None and found.first_found != found.example:
        yield f"first met         after {found.after} examples, with {found.first_found}"


def _seen(found: Counterexample) -> str:
    mismatch = found.mismatch
    if mismatch is None or mismatch.index is None or mismatch.expected is None or mismatch.got is None:
        return found.message
    place = f"{mismatch.output}[{', '.join(map(str, mismatch.index))}]" if mismatch.index else mismatch.output
    error = abs(mismatch.got - mismatch.expected)
    return (f"first wrong element {place}: expected {mismatch.expected:.9g}, got {mismatch.got:.9g}, error {error:.3g}, "
            f"allowed {mismatch.allowed_error or 0:.3g}; {mismatch.wrong_elements} of {mismatch.total_elements} elements "
            "are wrong")


def _declared(report: CheckReport) -> str:
    declared = report.declaration
    bounds = [f"{name} {key} {value}" for name, limits in declared.sizes.items() for key, value in limits.items()]
    parts = [*bounds, f"layouts {', '.join(declared.layouts)}", f"{declared.values} values"]
    return "; ".join([*parts, f"dtypes {', '.join(declared.dtypes)}"] if declared.dtypes else parts)

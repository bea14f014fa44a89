"""From the stages' evidence to findings and the verdict."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from evaluator.lint.nulls import NULLS
from evaluator.lint.ours import OursEvidence
from evaluator.lint.report import LintFinding, LintReport, LintVerdict, Needless
from evaluator.lint.shipped import LOOSE, NullEvidence, Shipped

TIMEABLE_US = 10.0
"""Below this a kernel runs no longer than its launch takes: CUDA events around one call measure the launch."""
ONE_VALUE_SHARE = 0.9
COPIES = ("input", "scaled_input")
"""Candidates that may be the right answer: a task can be a scaled copy. The others never are."""


def findings_of(report: LintReport) -> tuple[LintFinding, ...]:
    """Every finding, the gravest kind first."""
    found: list[LintFinding] = []
    if report.shipped is not None:
        found += _of_nulls(report.shipped, report.ours)
        found += _of_inputs(report.shipped)
    if report.needless is not None:
        found += _of_work(report.needless)
    if report.sol_us is not None and report.sol_us < TIMEABLE_US:
        message = f"its speed of light is {report.sol_us:.2g} us, less than launching and timing one kernel takes"
        found.append(LintFinding(code="too_small", message=message))
    return tuple(found)


def verdict_of(report: LintReport) -> LintVerdict:
    """Whether a pass on this task says anything, by its own check and by ours."""
    if report.shipped is None and not report.ours:
        return "not_checked"
    accepted = [name for name, seen in report.ours.items() if not seen.refused and name not in COPIES]
    if accepted or (report.shipped is not None and report.shipped.random):
        return "unjudgeable"
    return "unjudgeable_as_shipped" if report.shipped is not None and _passing(report.shipped, report.ours) else "judgeable"


def _passing(shipped: Shipped, ours: Mapping[str, OursEvidence]) -> dict[str, NullEvidence]:
    """Null candidates that pass as shipped. A copy that ours accepts too is the right answer, no null candidate."""
    right = {name for name in COPIES if name in ours and not ours[name].refused}
    return {name: seen for name, seen in shipped.nulls.items() if seen.passes and name not in right}


def _of_nulls(shipped: Shipped, ours: Mapping[str, OursEvidence]) -> Iterator[LintFinding]:
    for name, seen in _passing(shipped, ours).items():
        judged = ours.get(name)
        again = "" if judged is None else f"; our judge refuses it on {judged.case}" if judged.refused else (
            f"; our judge accepts it on all {judged.cases} cases too")
        message = (f"`{name}` ({NULLS[name]}) passes the task's own check: largest error {seen.max_error:.3g}, outputs' rms "
                   f"{shipped.output_rms:.3g}{again}")
        yield LintFinding(code="null_passes", message=message)
    loose = [name for name, seen in shipped.nulls.items() if seen.passes_loose and not seen.passes]
    if loose:
        yield LintFinding(code="null_passes_loose", message=f"at a tolerance of {LOOSE:g} these pass too: {', '.join(loose)}")


def _of_inputs(shipped: Shipped) -> Iterator[LintFinding]:
    if shipped.nulls["other_seed"].passes:
        yield LintFinding(code="ignores_inputs", message="other inputs give the same outputs within the task's tolerance "
                          f"(largest change {shipped.nulls['other_seed'].max_error:.3g}): they can be cached")
    if shipped.ignored_inputs:
        names = ", ".join(shipped.ignored_inputs)
        yield LintFinding(code="ignores_inputs", message=f"replacing {names} changes no output bit")
    if shipped.weak_inputs and not shipped.nulls["other_seed"].passes:
        names = ", ".join(shipped.weak_inputs)
        yield LintFinding(code="hardly_depends", message=f"replacing {names} changes the outputs less than the tolerance")
    if shipped.random:
        yield LintFinding(code="random", message="two calls on the same inputs differ: the reference draws random numbers, "
                          "so no solution can give the same outputs")
    if shipped.same_value_share > ONE_VALUE_SHARE:
        share = f"{100 * shipped.same_value_share:.3g} %"
        yield LintFinding(code="one_value", message=f"{share} of the output elements have one value: a part of the work passes")
    for name, kind in shipped.structures.items():
        yield LintFinding(code="structured_input", message=f"{name} is {kind}: a kernel may skip work that the reference does")


def _of_work(needless: Needless) -> Iterator[LintFinding]:
    if needless.dead:
        yield LintFinding(code="dead_work", message=f"computed, but not part of any output: {', '.join(needless.dead)}")
    if needless.no_effect:
        yield LintFinding(code="no_effect", message="leaving these out changes no output bit on any inputs tried: "
                          + ", ".join(needless.no_effect))
    if needless.no_effect_on_own_inputs:
        yield LintFinding(code="untested_operator", message="the task's own inputs never exercise "
                          + ", ".join(needless.no_effect_on_own_inputs))
    if needless.reduced_products:
        yield LintFinding(code="reducible_product", message="a sum follows a product with only linear steps between "
                          f"({', '.join(needless.reduced_products)}): summing an operand first saves most of the product")

"""The agreement tables: `agreement.md`."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path

from benchmarks.model.generated import Row, agreement
from benchmarks.model.measured import Measured
from benchmarks.model.modelled import Modelled
from benchmarks.model.problems import Variant
from benchmarks.model.score import CLOSE, FAR, Score, score
from benchmarks.model.table import DEVELOPMENT, FAMILIES, TEST, by_problem
from evaluator.types import Evaluation

FILE = Path(__file__).resolve().parent / "agreement.md"
COUNTERS = ("global_load_sectors_per_request", "global_store_sectors_per_request", "instructions_executed", "dram_bytes",
            "shared_bank_conflicts", "l1_hit_rate_pct", "l2_hit_rate_pct", "achieved_occupancy_pct", "sm_throughput_pct",
            "dram_throughput_pct", "l1_throughput_pct", "l2_throughput_pct")
"""Compared with Nsight Compute."""


def table(head: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """A Markdown table."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(str(cell) for cell in line) + " |" for line in lines) + "\n"


def family_score(families: Sequence[str], modelled: Mapping[str, float], measured: Mapping[str, float],
                 variants: Sequence[Variant]) -> Score:
    """Agreement over some families."""
    groups = [[v.kernel for v in members] for _, members in by_problem([v for v in variants if v.family in families])]
    return score(groups, modelled, measured)


def score_row(name: str, role: str, s: Score) -> list[object]:
    """One line of the ranking table."""
    worst, ratio = s.worst
    return [name, role, f"{s.right}/{s.pairs}", f"{s.hard_right}/{s.hard_pairs}", f"×{s.error_factor:.2f}",
            f"{worst} ×{ratio:.2f}"]


def ranking(results: Sequence[Modelled], measured: Mapping[str, Measured]) -> str:
    """Pairs ranked right, by family and by role."""
    variants = [r.variant for r in results]
    times = {r.variant.kernel: r.estimate.time_us for r in results}
    cold = {name: record.cold_us for name, record in measured.items()}
    groups: list[tuple[str, str, Sequence[str]]] = [
        (family, "development" if family in DEVELOPMENT else "test", (family,)) for family in FAMILIES]
    groups += [("**development families**", "", DEVELOPMENT), ("**test families**", "", TEST), ("**all**", "", FAMILIES)]
    head = ("family", "role", "pairs right", f"hard pairs ({CLOSE}-{FAR:g}×)", "typical error", "worst (modelled / measured)")
    text = table(head, [score_row(name, role, family_score(members, times, cold, variants)) for name, role, members in groups])
    wrong = family_score(FAMILIES, times, cold, variants).wrong
    if wrong:
        text += "\nRanked wrongly (the measured faster one first): " + ", ".join(f"{a} / {b}" for a, b in wrong) + ".\n"
    return text


def _distance(name: str) -> tuple[Callable[[float, float], float], str]:
    if name.endswith("_pct"):
        return (lambda got, want: abs(got - want)), " points"
    return (lambda got, want: 100 * abs(got - want) / want), " %"


def counters(results: Sequence[Modelled], measured: Mapping[str, Measured]) -> str:
    """Modelled counters against Nsight Compute's."""
    rows = []
    for name in COUNTERS:
        distance, unit = _distance(name)
        errors = []
        for r in results:
            want, got = measured[r.variant.kernel].ncu.get(name), r.estimate.counts.get(name)
            if want is not None and got is not None and (name.endswith("_pct") or want > (1e5 if "conflicts" in name else 0)):
                errors.append((distance(got, want), r.variant.kernel, got, want))
        if not errors:
            continue
        worst = max(errors)
        near = sum(e[0] <= 10 for e in errors)
        rows.append([name, f"{statistics.median(e[0] for e in errors):.1f}{unit}", f"{near}/{len(errors)}",
                     f"{worst[1]}: {worst[2]:.3g} for {worst[3]:.3g}"])
    blocks = sum(r.estimate.blocks_per_sm == measured[r.variant.kernel].blocks_per_sm for r in results)
    rows.append(["blocks_per_sm", "", f"{blocks}/{len(results)} equal", ""])
    return table(("counter", "median error", "within 10", "worst: modelled for measured"), rows)


def kernels(results: Sequence[Modelled], measured: Mapping[str, Measured]) -> str:
    """One line a kernel."""
    rows = []
    for r in results:
        record, e = measured[r.variant.kernel], r.estimate
        ratio = e.time_us / record.cold_us
        shown = [name for name in e.terms_us if name not in ("launch",) and e.terms_us[name] >= 0.1 * e.time_us]
        terms = ", ".join(f"{name} {e.terms_us[name]:.0f}" for name in shown)
        rows.append([r.variant.kernel, f"{record.cold_us:.1f}", f"{e.time_us:.1f}", _ratio(ratio), e.limiter, terms])
    return table(("kernel", "measured us", "modelled us", "ratio", "limiter", "terms over 10 %, us"), rows)


def held_out(rows: Mapping[str, Row], modelled: Mapping[str, Evaluation]) -> str:
    """Agreement on the solutions that no constant and no rule was chosen on."""
    times = {key: evaluation.time.time_us for key, evaluation in modelled.items() if evaluation.time is not None}
    problems: dict[str, list[str]] = {}
    for key in times:
        problems.setdefault(Path(rows[key].task).stem.removesuffix("_task"), []).append(key)
    head = ("task", "role", "pairs right", f"hard pairs ({CLOSE}-{FAR:g}×)", "typical error", "worst (modelled / measured)")
    total = agreement(rows, times, list(times))
    lines = [score_row(name, "held out", agreement(rows, times, keys)) for name, keys in problems.items()]
    text = table(head, [*lines, score_row("**all**", "", total)])
    if total.wrong:
        text += "\nRanked wrongly (the measured faster one first): " + ", ".join(f"{a} / {b}" for a, b in total.wrong) + ".\n"
    one_by_one = [[key, rows[key].label, f"{rows[key].us:.1f}", f"{us:.1f}", _ratio(us / rows[key].us),
                   getattr(modelled[key].time, "limiter", "")] for key, us in times.items()]
    return text + "\n" + table(("solution", "made by", "measured us", "modelled us", "ratio", "limiter"), one_by_one)


def _ratio(ratio: float) -> str:
    """Marked where it is off by more than 1.5×."""
    return f"{ratio:.2f}" + (" !" if abs(math.log(ratio)) > math.log(1.5) else "")


def cost(results: Sequence[Modelled]) -> str:
    """Seconds a kernel."""
    seconds = sorted(r.seconds for r in results)
    return (f"{statistics.mean(seconds):.2f} s a kernel at full size on one core (median {statistics.median(seconds):.2f}, "
            f"slowest {seconds[-1]:.2f}), inputs and compilation not counted.\n")


def render(results: Sequence[Modelled], measured: Mapping[str, Measured], cross: str, held: str) -> str:
    """The whole document. `held`: what `held_out` gives."""
    parts = [
        "# Modelled times against an H200\n\nWritten by `python -m benchmarks.model`. Cold times; kernels are ranked within "
        f"one problem, pairs within {CLOSE}× count as equal. Typical error: exp of the mean |log ratio|. Constants were "
        "searched on the development families only.\n",
        ranking(results, measured),
        "## Cross-validation\n\n" + cross if cross else "",
        "## Held out: solutions as they were generated\n\nWhole calls, modelled through the evaluator; measured in runs on the "
        "GPU (`benchmarks/results/h200/generated.json`). No constant and no rule was chosen on them.\n\n" + held,
        "## Counters against Nsight Compute\n\n" + counters(results, measured),
        "## Every kernel\n\n" + kernels(results, measured),
        "## Cost\n\n" + cost(results),
    ]
    return "\n".join(part for part in parts if part)

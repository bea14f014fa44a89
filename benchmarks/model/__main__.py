"""`python -m benchmarks.model`: runs the time model on every measured kernel and writes `agreement.md`."""

from __future__ import annotations

import argparse
import json
import math
import re
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from benchmarks.model import generated
from benchmarks.model.measured import load
from benchmarks.model.modelled import Modelled, model_all
from benchmarks.model.report import FILE, family_score, held_out, kernels, ranking, render, score_row, table
from benchmarks.model.table import FAMILIES, VARIANTS
from evaluator.simulator.constants import H200_FITTED, Constants

CROSS = Path(__file__).resolve().parent / "cross_validation.json"
HALVES = (FAMILIES[0::2], FAMILIES[1::2])


def fit(families: Sequence[str], seconds: float) -> Constants:
    """Searches constants on some families and prints what changed."""
    from benchmarks.model.fit import Fit

    found, before, after = Fit([v for v in VARIANTS if v.family in families], load(), seconds).search()
    print(f"families: {', '.join(families)}")
    print(f"typical error ×{math.exp(before**.5):.3f} -> ×{math.exp(after**.5):.3f} (root mean square of log ratios)")
    for name, value in asdict(found).items():
        if value != getattr(H200_FITTED, name):
            print(f"  {name}: {getattr(H200_FITTED, name)} -> {value:.4g}")
    return found


def cross_validate(seconds: float) -> None:
    """Fits on one half of the families and tests on the other, both ways; keeps the result for the report."""
    cold = {name: record.cold_us for name, record in load().items()}
    rows = []
    for fitted, tested in (HALVES, HALVES[::-1]):
        constants = fit(fitted, seconds)
        results = list(model_all([v for v in VARIANTS if v.family in tested], constants=constants))
        times = {r.variant.kernel: r.estimate.time_us for r in results}
        agreement = family_score(tested, times, cold, [r.variant for r in results])
        rows.append(score_row(", ".join(fitted), ", ".join(tested), agreement))
    CROSS.write_text(json.dumps({"seconds": seconds, "rows": rows}, indent=1, ensure_ascii=False) + "\n")


def cross_text() -> str:
    """The kept cross-validation as a section, or nothing."""
    if not CROSS.exists():
        return ""
    kept = json.loads(CROSS.read_text())
    head = ("constants searched on", "tested on", "pairs right", "hard pairs", "typical error", "worst kernel")
    note = (f"\nCoordinate search of {kept['seconds']:g} s a half (`python -m benchmarks.model --cross-validate`). It starts "
            "from the constants in use, which all development families had a part in, so it shows that the search does not "
            "overfit, no more.\n")
    return table(head, kept["rows"]) + note


def show(results: Sequence[Modelled]) -> None:
    """Prints rankings and, where few, every kernel."""
    print(ranking(results, load()))
    print(kernels(results, load()))


def modelled_held_out() -> str:
    """The held-out section, modelled now."""
    rows = generated.load()
    return held_out(rows, generated.model(rows))


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.model", description=__doc__)
    parser.add_argument("--only", default="", metavar="REGEX", help="only kernels that match; prints, writes nothing")
    parser.add_argument("--held-out", action="store_true", help="only the generated solutions; prints, writes nothing")
    parser.add_argument("--fit", nargs="+", choices=FAMILIES, metavar="FAMILY", help="search the fitted constants on these")
    parser.add_argument("--cross-validate", action="store_true", help="fit on half of the families, test on the rest")
    parser.add_argument("--seconds", type=float, default=300, help="time limit of a search")
    given = parser.parse_args()
    if given.fit:
        fit(given.fit, given.seconds)
        return
    if given.cross_validate:
        cross_validate(given.seconds)
    if given.held_out:
        print(modelled_held_out())
        return
    results = list(model_all(v for v in VARIANTS if re.search(given.only, v.kernel)))
    show(results)
    if not given.only:
        FILE.write_text(render(results, load(), cross_text(), modelled_held_out()))
        print(f"written: {FILE}")


if __name__ == "__main__":
    main()

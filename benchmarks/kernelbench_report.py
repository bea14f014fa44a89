"""docs/kernelbench-h200.md: the references of KernelBench on an H200, from `results/h200/kernelbench.json`.

`python -m benchmarks.kernelbench_report` compares the pass with the recorded one of `results/h200/kernelbench_recorded.json`
(eager, TF32 and torch.compile, taken earlier on another H200).
"""

from __future__ import annotations

import json
import math
import statistics
import sys
from collections.abc import Iterable, Sequence
from typing import Any

from benchmarks.examples import RESULTS, ROOT

CARD = RESULTS / "h200" / "kernelbench.json"
RECORDED = RESULTS / "h200" / "kernelbench_recorded.json"
LINT = RESULTS / "kernelbench_lint.json"
PAGE = ROOT / "docs" / "kernelbench-h200.md"
WORDS = (
    "`eager` is PyTorch as it comes: TF32 in convolutions, not in matrix products. `tf32` allows it in both, `strict` in none. "
    "The speed of light counts inputs, parameters and outputs once at the measured copy bandwidth, and the operations that "
    "PyTorch's counter knows (matrix products, convolutions, attention) at the float32 rate; convolutions in TF32 get below "
    "it.")
SUMMARY = ("level", "problems", "tf32 over eager, arithmetic", "geometric", "eager over strict, geometric",
           "recorded torch.compile over eager, geometric", "with TF32", "eager / speed of light, median", "below it")
BATCH_NORM = frozenset(
    ["1/33", *(f"2/{n}" for n in (11, 15, 33, 39, 41, 52, 72, 73, 77, 84, 97)),
     *(f"3/{n}" for n in (8, 9, 10, *range(13, 17), *range(19, 28), 45, 46, 47))])
"""Problems with a BatchNorm layer."""
MANY_KERNELS = 60
DIFFERENT = 1.1
"""Times that differ by more are listed."""


def page(card: dict[str, Any], recorded: dict[str, Any], lint: dict[str, Any]) -> str:
    """The Markdown page."""
    made, problems = card["provenance"], card["problems"]
    timed = {key: row for key, row in problems.items() if "times" in row}
    failed = {key: row["error"] for key, row in problems.items() if "error" in row}
    about = (
        "Written by `python -m benchmarks.kernelbench_report` from `benchmarks/results/h200/kernelbench.json`: "
        f"{made['device']}, driver {made['driver']}, "
        f"PyTorch {made['versions'].get('torch')}, {made['date']}, commit {made['commit']}. "
        f"{len(timed)} of {len(problems)} problems ran. Times are medians between CUDA events around one forward pass without "
        "autograd, a buffer larger than the L2 cache written before each; models in the mode their constructors leave them in.")
    lines = ["# KernelBench's references on an H200", "", about, "", WORDS, "",
        "## Summary", "", *_summary(timed, recorded["problems"]), "", "## Differences to the recorded pass", "",
        *_differences(timed, recorded), "", "## All problems", "", *_table(timed, recorded["problems"], lint["problems"]),
    ]
    if failed:
        lines += ["", "Not run: " + "; ".join(f"{key} ({error})" for key, error in failed.items()) + "."]
    return "\n".join(lines) + "\n"


def geometric(values: Iterable[float]) -> float:
    """Geometric mean; NaN for none."""
    logs = [math.log(value) for value in values]
    return math.exp(statistics.fmean(logs)) if logs else math.nan


def _summary(timed: dict[str, Any], recorded: dict[str, Any]) -> list[str]:
    lines = ["| " + " | ".join(SUMMARY) + " |", "| --- |" + " ---: |" * (len(SUMMARY) - 1)]
    for level in ("1", "2", "3"):
        rows = {key: row for key, row in timed.items() if key.startswith(f"{level}/")}
        tf32 = [row["times"]["eager"]["us"] / row["times"]["tf32"]["us"] for row in rows.values()]
        strict = [row["times"]["strict_fp32"]["us"] / row["times"]["eager"]["us"] for row in rows.values()]
        compiled = _over(rows, recorded, "compile_us")
        compiled_tf32 = _over(rows, recorded, "compile_tf32_us")
        light = [row["times"]["eager"]["us"] / row["sol_us"] for row in rows.values() if row["sol_us"] > 0]
        cells = [f"{len(rows)}", f"{statistics.fmean(tf32):.2f}×", f"{geometric(tf32):.2f}×", f"{geometric(strict):.2f}×",
                 f"{geometric(compiled):.2f}×", f"{geometric(compiled_tf32):.2f}×", f"{statistics.median(light):.2f}",
                 str(sum(ratio < 1 for ratio in light))]
        lines.append(f"| {level} | " + " | ".join(cells) + " |")
    return lines


def _over(rows: dict[str, Any], recorded: dict[str, Any], name: str) -> list[float]:
    found = (recorded[key] for key in rows if key in recorded)
    return [row["eager_us"] / row[name] for row in found if row.get(name)]


def differing(timed: dict[str, Any], recorded: dict[str, Any]) -> list[tuple[str, str, float, float]]:
    """(problem, precision, time now, recorded time in µs) where they differ by more than DIFFERENT."""
    found = []
    for key, row in timed.items():
        for name, old in (("eager", "eager_us"), ("tf32", "tf32_us"), ("strict_fp32", "eager_strict_us")):
            before, now = recorded.get(key, {}).get(old), row["times"][name]["us"]
            if before and max(now / before, before / now) > DIFFERENT:
                found.append((key, name, now, before))
    return found


def _differences(timed: dict[str, Any], recorded: dict[str, Any]) -> list[str]:
    found, total = differing(timed, recorded["problems"]), 3 * len(timed)
    lines = [f"{recorded['source']} {len(found)} of {total} times differ by more than {100 * (DIFFERENT - 1):.0f} %.", "",
             "| problem | precision | now | recorded | now / recorded | why |", "| --- | --- | ---: | ---: | ---: | --- |"]
    for key, name, now, before in found:
        why = explanation(key, name, recorded["problems"][key]["kernels"])
        lines.append(f"| {key} {timed[key]['name'].split('_', 1)[1]} | {name} | {now:.1f} µs | {before:.1f} µs | "
                     f"{now / before:.2f} | {why} |")
    return lines


def explanation(key: str, precision: str, kernels: int) -> str:
    """Why a time differs, as far as it is known."""
    if key in BATCH_NORM:
        return "BatchNorm uses the batch's statistics here (training mode); the recorded pass ran it as a single kernel, in " \
               "evaluation mode"
    if kernels >= MANY_KERNELS:
        return f"{kernels} kernels: the host's time to launch them, which other work on it changes"
    if precision == "tf32":
        return "a tensor-core product: how long the card was under load before it decides its clock (not verified)"
    return "not known"


def _table(timed: dict[str, Any], recorded: dict[str, Any], lint: dict[str, Any]) -> list[str]:
    lines = ["| problem | eager | tf32 | strict | compile (recorded) | compile + TF32 (recorded) | speed of light | limiter | "
             "eager / light | set aside |", "| --- |" + " ---: |" * 6 + " --- | ---: | --- |"]
    for key, row in timed.items():
        times, old = row["times"], recorded.get(key, {})
        cells: Sequence[str] = [
            *(f"{times[name]['us']:.1f}" for name in ("eager", "tf32", "strict_fp32")),
            *(f"{old[name]:.1f}" if old.get(name) else "–" for name in ("compile_us", "compile_tf32_us")),
            f"{row['sol_us']:.1f}", row["sol_limiter"], f"{times['eager']['us'] / row['sol_us']:.2f}" if row["sol_us"] else "–",
            "yes" if lint.get(key, {}).get("set_aside") else "",
        ]
        lines.append(f"| {key} {row['name'].split('_', 1)[1]} | " + " | ".join(cells) + " |")
    return lines


def main() -> int:
    """Writes the page."""
    card, recorded = (json.loads(path.read_text(encoding="utf-8")) for path in (CARD, RECORDED))
    lint = json.loads(LINT.read_text(encoding="utf-8")) if LINT.exists() else {"problems": {}}
    PAGE.write_text(page(card, recorded, lint), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""The README's section of measured results, made from the records under `results/h200/`: `python -m benchmarks.measured`.

Every line names its record. Nothing here is modelled unless its cell says so.
"""

from __future__ import annotations

import json
import re
import statistics
from collections.abc import Mapping
from typing import Any

from benchmarks.examples import RESULTS, ROOT
from benchmarks.kernelbench_report import geometric

FOLDER = RESULTS / "h200"
MARKERS = re.compile(r"(<!-- measured:begin -->\n).*?(<!-- measured:end -->)", re.S)
LEVELS = ("1", "2", "3")


def section(records: Mapping[str, Any]) -> str:
    """The Markdown between the markers. `records`: file stem -> parsed JSON."""
    return "\n".join([
        "| example | start | best | measured | modelled before |", "| --- | ---: | ---: | ---: | ---: |",
        *_examples(records["examples"]["examples"]), "",
        "| what | on the H200 | record |", "| --- | --- | --- |",
        *(f"| {what} | {result} | `{record}.json` |" for what, result, record in _lines(records)),
    ]) + "\n"


def _examples(rows: Mapping[str, Any]) -> list[str]:
    lines = []
    for name, row in rows.items():
        start, best, modelled = row["measured"]["start"], row["measured"]["best"], row["modelled_us"]
        spread = f"{best['low_us']:.1f} to {best['high_us']:.1f}"
        lines.append(f"| {name} | {start['time_us']:.0f} µs | {best['time_us']:.1f} µs ({spread}) "
                     f"| {start['time_us'] / best['time_us']:.1f}× | {modelled['start'] / modelled['best']:.1f}× |")
    return lines


def _lines(records: Mapping[str, Any]) -> list[tuple[str, str, str]]:
    return [*_optimised(records["optimised_examples"]["examples"]), _noise(records["timing"]["noise"]),
            *_guards(records["guards"], records["isolation"]), _speed(records["throughput"]),
            ("KernelBench references, TF32 allowed over PyTorch's default", _tf32(records["kernelbench"]["problems"]),
             "kernelbench")]


def _optimised(rows: Mapping[str, Any]) -> list[tuple[str, str, str]]:
    lines = []
    for name, row in rows.items():
        what = f"{name}, methods chosen by measured facts"
        what += "" if row["stop_reason"] else f", cut off after {row['rounds']} rounds"
        times = f"{row['start_us'][0]:.0f} µs → {row['best_us'][0]:.1f} µs"
        lines.append((what, f"{times}, {row['speedup']:.1f}× over the start, fp32", "optimised_examples"))
    return lines


def _noise(rows: Mapping[str, Any]) -> tuple[str, str, str]:
    widest = max(abs(row["ratio"] - 1) for row in rows.values() if isinstance(row, Mapping))
    return "the same solution timed twice", f"within {100 * widest:.1f} %", "timing"


def _guards(guards: Mapping[str, Any], isolation: Mapping[str, Any]) -> list[tuple[str, str, str]]:
    cases, wrong, checked = guards["cases"], guards["wrong"], guards["kernelbench"]
    hostile = [case for case in isolation["cases"] if "status" in case]  # the last row looks for what all of them left
    exceptions = f" (not: {', '.join(wrong)}, see docs/guards.md)" if wrong else ""
    return [
        ("cheats and honest look-alikes", f"{len(cases) - len(wrong)} of {len(cases)} as expected{exceptions}", "guards"),
        ("KernelBench's adversarial kernels and checker cases",
         f"{sum(not row['wrong'] for row in checked)} of {len(checked)} as expected", "guards"),
        ("hostile solutions (faults, hangs, forks, floods), each followed by an honest one",
         f"{sum(not case['wrong'] for case in hostile)} of {len(hostile)} as expected", "isolation"),
    ]


def _speed(row: Mapping[str, Any]) -> tuple[str, str, str]:
    ours, theirs = row["ours_source_to_verdict_s"], row["load_inline_source_to_verdict_s"]
    return ("source to verdict beside a build with `load_inline`",
            f"{ours:.1f} s against {theirs:.1f} s: {row['times_faster']:.0f}× (goal {row['goal']:.0f}×)", "throughput")


def _tf32(problems: Mapping[str, Any]) -> str:
    cells = []
    for level in LEVELS:
        ratios = [row["times"]["eager"]["us"] / row["times"]["tf32"]["us"] for key, row in problems.items()
                  if key.startswith(f"{level}/") and "times" in row]
        cells.append(f"level {level}: {statistics.mean(ratios):.2f}× ({geometric(ratios):.2f}×)")
    return "; ".join(cells) + ", arithmetic mean (geometric)"


def records() -> dict[str, Any]:
    """Every record, parsed, by its file's stem."""
    return {path.stem: json.loads(path.read_text(encoding="utf-8")) for path in sorted(FOLDER.glob("*.json"))}


def main() -> None:
    """Put the section into README.md."""
    readme = ROOT / "README.md"
    text = readme.read_text(encoding="utf-8")
    readme.write_text(MARKERS.sub(lambda found: found[1] + section(records()) + found[2], text), encoding="utf-8")


if __name__ == "__main__":
    main()

"""Measured results as Markdown, made from the records under `results/h200/`: `python -m benchmarks.measured`.

A section of README.md, and one of docs/gpu.md that says how the runs on the card went.
Every line names its record. Nothing here is modelled unless its cell says so.
"""

from __future__ import annotations

import json
import re
import statistics
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

from benchmarks.examples import EXAMPLES, RESULTS, ROOT
from benchmarks.kernelbench_report import geometric

FOLDER = RESULTS / "h200"
MARKERS = re.compile(r"(<!-- measured:begin -->\n).*?(<!-- measured:end -->)", re.S)
PAGE = ROOT / "docs" / "gpu.md"
RUNS = re.compile(r"(<!-- runs:begin -->\n).*?(<!-- runs:end -->)", re.S)
LEVELS = ("1", "2", "3")


def section(records: Mapping[str, Any]) -> str:
    """The Markdown between the README's markers. `records`: file stem -> parsed JSON."""
    return "\n".join([
        "| example | start | best, chosen by measured facts | best, chosen in the simulator | modelled | speed of light |",
        "| --- | ---: | ---: | ---: | ---: | ---: |", *_examples(records["optimised_examples"]), "",
        "| what | on the H200 | record |", "| --- | --- | --- |",
        *(f"| {what} | {result} | `{record}.json` |" for what, result, record in _lines(records)),
    ]) + "\n"


def _examples(record: Mapping[str, Any]) -> list[str]:
    modelled = json.loads((RESULTS / "examples_sim.json").read_text(encoding="utf-8"))["examples"]
    return [_example(name, record["examples"].get(name), record["simulated"].get(name, {}), modelled[name]["speedup"])
            for name in EXAMPLES]


def _example(name: str, run: Mapping[str, Any] | None, simulated: Mapping[str, Any], modelled: float) -> str:
    start = run["start_us"][0] if run else simulated["start"]["time_us"]
    here, light = "not run yet", ""
    if run:
        best = (run["final"] or {"us": run["best_us"]})["us"]
        here = _time(start, *best) + ("" if run["finished"] else ", cut off")
        light = f"{run['known']['sol_time_us']:.1f} µs"
    row, theirs = simulated.get("best"), ""
    if row:
        theirs = _time(simulated.get("start", {}).get("time_us", start), row["time_us"], row["low_us"], row["high_us"])
    return f"| {name} | {start:.0f} µs | {here} | {theirs} | {modelled:.1f}× | {light} |"


def _time(start: float, best: float, low: float, high: float) -> str:
    return f"{best:.1f} µs ({low:.1f} to {high:.1f}), {start / best:.1f}×"


def runs(record: Mapping[str, Any]) -> str:
    """The Markdown between the markers of docs/gpu.md: how the runs went. `record`: `optimised_examples.json`."""
    rows = record["examples"]
    lines = ["| example | methods that helped | rounds as in the simulator | over the start | stopped by | decided by |",
             "| --- | --- | ---: | ---: | --- | --- |"]
    for name in (name for name in EXAMPLES if name in rows):
        row = rows[name]
        facts, same = row["provenance_last"], f"{row['simulator']['same_rounds']} of {len(row['attempted'])}"
        lines.append(f"| {name} | {', '.join(row['methods'])} | {same} | {_in_turns(row['final'])} | "
                     f"{row['stop_reason'] if row['finished'] else 'cut off'} | "
                     f"{facts['ncu']} facts by `ncu`, {facts['cupti']} by `cupti` |")
    return "\n".join([*lines, "", *_costs(rows.values())]) + "\n"


def _in_turns(final: Mapping[str, Any] | None) -> str:
    found = ((final or {}).get("baselines") or {}).get("naive_start", {}).get("speedup")
    return f"{found[0]:.2f}× ({found[1]:.2f} to {found[2]:.2f})" if found else ""


def _costs(rows: Iterable[Mapping[str, Any]]) -> list[str]:
    """Seconds of an evaluation, part by part, over all runs."""
    rows = list(rows)
    count, wall = (sum(row["cost"][name] for row in rows) for name in ("evaluations", "wall_s"))
    lines = [f"{count} evaluations in {wall:.0f} s of runs, decisions and writing included.",
             f"Seconds of an evaluation on average: {_average(rows, 'stage_s', count)}."]
    profiled = [row for row in rows if row["cost"].get("profiled")]
    if profiled:
        looked_into = sum(row["cost"]["profiled"] for row in profiled)
        lines.append(f"Of the {looked_into} that the tools looked into: {_average(profiled, 'profiled_stage_s', looked_into)}.")
    return lines


def _average(rows: Iterable[Mapping[str, Any]], field: str, count: int) -> str:
    seconds: Counter[str] = Counter()
    for row in rows:
        seconds.update(row["cost"][field])
    parts = ", ".join(f"{name} {total / count:.2f}" for name, total in seconds.most_common() if total / count >= 0.005)
    return f"{sum(seconds.values()) / count:.1f} ({parts})"


def _lines(records: Mapping[str, Any]) -> list[tuple[str, str, str]]:
    return [_noise(records["timing"]["noise"]),
            *_guards(records["guards"], records["isolation"]), _speed(records["throughput"]),
            ("KernelBench references, TF32 allowed over PyTorch's default", _tf32(records["kernelbench"]["problems"]),
             "kernelbench")]


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
    spread = row.get("times_faster_range")
    single = f", single runs {spread[0]:.0f} to {spread[1]:.0f}×" if spread else ""
    return ("source to verdict beside a build with `load_inline`",
            f"{ours:.1f} s against {theirs:.1f} s: {row['times_faster']:.0f}×{single} (goal {row['goal']:.0f}×)", "throughput")


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
    """Put the sections into README.md and docs/gpu.md."""
    found = records()
    for path, markers, text in ((ROOT / "README.md", MARKERS, section(found)), (PAGE, RUNS, runs(found["optimised_examples"]))):
        page = path.read_text(encoding="utf-8")
        path.write_text(placed(page, markers, text), encoding="utf-8")


def placed(page: str, markers: re.Pattern[str], text: str) -> str:
    """The page with the text between its markers."""
    return markers.sub(lambda marks: marks[1] + text + marks[2], page)


if __name__ == "__main__":
    main()

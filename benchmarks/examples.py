"""Optimise every example in the simulator: `python -m benchmarks.examples [NAME ...]`.

Writes `results/examples_sim.json` (what `optimize --json` said, per example), the starting and final solutions under
`results/solutions/`, and puts the table between the markers in README.md. All times here are modelled.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
RESULTS = ROOT / "benchmarks" / "results"
EXAMPLES = ("bias_gelu", "row_softmax", "row_sum", "transpose", "matmul", "layer_norm")
COMMAND = "make examples"
MARKERS = re.compile(r"(<!-- examples:begin -->\n).*?(<!-- examples:end -->)", re.S)


def optimise(name: str, folder: Path) -> dict[str, Any]:
    """One run of the command a user would type; its JSON."""
    call = [
        sys.executable,
        "-m",
        "kernelskill",
        "optimize",
        f"examples/{name}",
        "--device",
        "sim",
        "--out",
        str(folder),
        "--json",
    ]
    done = subprocess.run(call, cwd=ROOT, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"{name}: exit code {done.returncode}\n{done.stderr}{done.stdout}")
    report = json.loads(done.stdout)
    assert isinstance(report, dict)
    return report


def keep_solutions(name: str, folder: Path) -> None:
    """Copy the run's first and best solution to where the GPU measurement finds them."""
    from kernelskill.memory.run import Run

    run = Run.open(folder)
    target = RESULTS / "solutions" / name
    target.mkdir(parents=True, exist_ok=True)
    for label, digest in (("start", run.graph.start), ("best", run.graph.best)):
        (target / f"{label}.py").write_text(run.source(digest), encoding="utf-8")


def table(reports: dict[str, dict[str, Any]]) -> str:
    """Markdown rows."""
    lines = [
        "| example | start, modelled | best, modelled | speedup, modelled | rounds | methods that helped | stopped by |",
        "| --- | ---: | ---: | ---: | ---: | --- | --- |",
    ]
    for name, r in reports.items():
        lines.append(
            f"| {name} | {r['start_time_us']:.0f} µs | {r['best_time_us']:.0f} µs | {r['speedup']:.1f}× | {r['rounds']} | "
            f"{', '.join(r['methods'])} | {r['stop_reason']} |"
        )
    return "\n".join(lines) + "\n"


def main(names: list[str]) -> None:
    """Run, record, print."""
    path = RESULTS / "examples_sim.json"
    reports: dict[str, dict[str, Any]] = {}
    for name in names or EXAMPLES:
        with tempfile.TemporaryDirectory() as temporary:
            folder = Path(temporary) / "run"
            report = optimise(name, folder)
            keep_solutions(name, folder)
        reports[name] = {k: v for k, v in report.items() if k not in ("run", "solution")}
        print(f"{name}: {report['status']} {report['speedup']:.2f}x in {report['rounds']} rounds", file=sys.stderr)
    if names:
        print(table(reports))
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps({"command": COMMAND, "provenance": "modelled", "examples": reports}, indent=1) + "\n")
    readme = ROOT / "README.md"
    readme.write_text(MARKERS.sub(lambda m: m[1] + table(reports) + m[2], readme.read_text()))
    print(table(reports))


if __name__ == "__main__":
    main(sys.argv[1:])

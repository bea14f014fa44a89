"""`kernelskill bench` on KernelBench with the template writer: problems that it recognises, optimised and scored on the card.

`python -m benchmarks.h200 bench --kernelbench DIR [--budget SECONDS] [--folder BENCH]` runs the bench over IDS, and interrupts
it when the budget is spent. `results/h200/bench.json` gets the rows of the finished tasks, beside the committed ones, and the
scores of all of them. A bench in BENCH is gone on with. `--device sim` tries the script without a GPU.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.examples import RESULTS as COMMITTED
from benchmarks.examples import ROOT
from benchmarks.h200.provenance import RESULTS, committed, provenance, write
from kernelskill.suites.rows import BenchRow
from kernelskill.suites.scores import scores_of

PART = "bench"
IDS = ("1/1", "1/40", "1/88", "2/9", "2/12", "2/29", "2/53", "2/63", "2/70", "2/76", "2/86", "2/95")
"""In the order in which a bench plays them: one of each family first. Their inputs take seconds to make, not minutes."""
BASELINES = "eager,eager_tf32"
"""Compiling one takes as long as a task."""
LINT = COMMITTED / "kernelbench_lint.json"
STOP_SECONDS = 20.0
"""What the bench may take to end once it is told to."""
FINAL = ("solved", "failed", "unusable")


def arguments(options: argparse.Namespace, folder: Path) -> list[str]:
    """The command line of the bench: a new one, or the one in `folder`."""
    if (folder / "bench.json").exists():
        what = ["--resume", str(folder)]
    else:
        baselines = ["--baselines", options.baselines] if options.device == "cuda" else []
        what = ["--kernelbench", str(options.kernelbench.resolve()), "--ids", ",".join(options.ids), "--device", options.device,
                "--rounds", str(options.rounds), "--shapes", options.shapes, *baselines, "--out", str(folder)]
    return [sys.executable, "-m", "kernelskill", "bench", *what, "--lint", str(LINT)]


def play(call: Sequence[str], seconds: float) -> str:
    """Runs the bench for so many seconds at most; what it said on stderr. What is done lies in its folder."""
    process = subprocess.Popen(call, cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
                               preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL))
    try:
        return process.communicate(timeout=seconds)[1]
    except (subprocess.TimeoutExpired, KeyboardInterrupt):
        process.send_signal(signal.SIGINT)
        with contextlib.suppress(subprocess.TimeoutExpired):
            return process.communicate(timeout=STOP_SECONDS)[1]
        process.kill()
        process.wait()
        return "it did not end when it was told to"


def interrupted(number: int, frame: object) -> None:
    """SIGTERM ends the bench and keeps what it has."""
    raise KeyboardInterrupt


def merged(before: Mapping[str, Any], fresh: Mapping[str, Any]) -> dict[str, Any]:
    """The record: rows measured now beside those of other problems in a record made `before`, with the scores of all."""
    rows = {row["key"]: row for row in before.get("rows", [])}
    rows |= {row["key"]: row for row in fresh.get("rows", []) if row["outcome"] in FINAL}
    ordered = [rows[key] for key in (*IDS, *(k for k in rows if k not in IDS)) if key in rows]
    scores = scores_of([BenchRow.model_validate(row) for row in ordered])
    asked = fresh.get("options", before.get("options", {}))
    return {"options": asked, "scores": scores.model_dump(mode="json"), "rows": ordered}


def main(argv: list[str]) -> int:
    """Exit code 0 where every task has a row, 1 where some have none yet."""
    parser = argparse.ArgumentParser(prog=f"python -m benchmarks.h200 {PART}", description=__doc__)
    parser.add_argument("--kernelbench", type=Path, required=True)
    parser.add_argument("--ids", type=lambda text: text.split(","), default=list(IDS), help="level/id, comma separated")
    parser.add_argument("--device", choices=("cuda", "sim"), default="cuda")
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--shapes", choices=("general", "exact"), default="general")
    parser.add_argument("--baselines", default=BASELINES)
    parser.add_argument("--budget", type=float, default=150.0, help="seconds, with the end of the bench")
    parser.add_argument("--folder", type=Path, help="keep the bench here, and go on with it")
    parser.add_argument("--out", type=Path, default=RESULTS, help="folder of the record")
    options = parser.parse_args(argv)
    signal.signal(signal.SIGTERM, interrupted)
    record = provenance(" ".join(["python -m benchmarks.h200", PART, *argv]))
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="bench-") as temporary:
        folder = (options.folder or Path(temporary) / "bench").resolve()
        said = play(arguments(options, folder), max(options.budget - STOP_SECONDS, 1.0))
        results = folder / "results.json"
        fresh = json.loads(results.read_text(encoding="utf-8")) if results.exists() else {}
    result = merged(committed(PART) if options.device == "cuda" else {}, fresh)
    missing = [key for key in options.ids if key not in {row["key"] for row in result["rows"]}]
    path = write(PART, record, {**result, "seconds": round(time.monotonic() - began, 1), "not_run": missing}, options.out)
    print(said.strip()[-2000:], f"{len(result['rows'])} rows, {len(missing)} tasks without one: {path}", sep="\n")
    return int(bool(missing))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

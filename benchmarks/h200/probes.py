"""Small kernels, one a feature (benchmarks/probes), on the card: their outputs, for comparison with the simulator."""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from benchmarks.h200.provenance import RESULTS, ROOT, provenance, write
from benchmarks.probes.catalogue import find_probe, load_probes
from benchmarks.probes.execute import execute
from benchmarks.probes.probe import Probe
from benchmarks.probes.record import row_of

SECONDS = 40
"""Limit of one probe, compilation included: the largest takes 10 s on a loaded machine."""
BUDGET_SECONDS = 85.0
ROW = '{"probe"'
"""How a row begins: a kernel's printf may stand before and after it."""


def main(argv: list[str]) -> int:
    """`python -m benchmarks.h200 probes [--budget SECONDS] [--only NAME,...] [--out FOLDER] [--sim]`; 1: some did not run."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.h200 probes", description=__doc__)
    parser.add_argument("--only", default="", help="names of probes, comma-separated")
    parser.add_argument("--budget", type=float, default=BUDGET_SECONDS, metavar="SECONDS", help="no probe starts after this")
    parser.add_argument("--out", type=Path, default=RESULTS)
    parser.add_argument("--sim", action="store_true", help="in the simulator, without a GPU")
    parser.add_argument("--one", default="", help=argparse.SUPPRESS)
    options = parser.parse_args(argv)
    if options.one:
        return one(options.one, options.sim)
    wanted = set(filter(None, options.only.split(",")))
    chosen = [probe for probe in load_probes() if not probe.compiled_only and (not wanted or probe.name in wanted)]
    record = provenance("python -m benchmarks.h200 probes")
    rows = collect(chosen, options.sim, options.budget)
    failed = [row["probe"] for row in rows if row["error"]]
    path = write("probes", record, {"mode": "sim" if options.sim else "cuda", "probes": rows}, options.out)
    print(f"{len(rows)} probes, not run: {', '.join(failed) or 'none'}; {path}")
    return 1 if failed else 0


def collect(probes: Sequence[Probe], sim: bool, budget: float) -> list[dict[str, Any]]:
    """A row for each probe, each from a process of its own: one that hangs or faults costs only itself."""
    until = time.monotonic() + budget
    with ThreadPoolExecutor(max_workers=max(2, min(12, (os.cpu_count() or 2) - 2))) as pool:
        return list(pool.map(lambda probe: _row(probe, sim, until), probes))


def _row(probe: Probe, sim: bool, until: float) -> dict[str, Any]:
    left = until - time.monotonic()
    if left < 1:
        return {"probe": probe.name, "error": "not started: the time was over", "outputs": {}}
    command = [sys.executable, "-m", "benchmarks.h200", "probes", "--one", probe.name, *(["--sim"] if sim else [])]
    try:
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=min(SECONDS, left + 5), check=False)
    except subprocess.TimeoutExpired:
        return {"probe": probe.name, "error": f"no answer within {SECONDS} s", "outputs": {}}
    row: dict[str, Any] = next((json.loads(line) for line in done.stdout.splitlines() if line.startswith(ROW)), {})
    row = row or {"probe": probe.name, "error": f"exit code {done.returncode}: {done.stderr.strip()[-400:]}", "outputs": {}}
    print(f"{'failed' if row['error'] else 'ok':<8}{probe.name:<36}{row['error'][:200]}", flush=True)
    return row


def one(name: str, sim: bool) -> int:
    """Runs one probe in this process and prints its row as JSON."""
    probe = find_probe(name)
    if sim:
        from evaluator.simulator import standin
        from kernelskill.facts.device import load_device

        standin.install(standin.Session(device=load_device("h200")))
    import cupy

    try:
        outputs, error = execute(cupy, probe), ""
    except Exception as problem:  # whatever CuPy or the driver says belongs in the row
        outputs, error = {}, f"{type(problem).__name__}: {problem}".replace(f"{ROOT}/", "")[:600]
    print(json.dumps(row_of(probe, outputs, error)))
    return 0

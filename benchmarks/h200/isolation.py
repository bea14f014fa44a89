"""Every hostile solution (benchmarks/hostile.py) on the card: its verdict, the next evaluation's, and what is left of it."""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from collections.abc import Collection, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from benchmarks.h200.provenance import RESULTS, committed, provenance, write
from benchmarks.hostile import HONEST, HOSTILE, TASK, Hostile
from evaluator import pool
from evaluator.gpu_state import gpu_state
from evaluator.sandbox import sandbox_name
from evaluator.types import DeviceSpec, Evaluation, Mode, Request, Status, TaskSpec
from kernelskill.facts.device import detect_device, load_device

WORKERS = 6
LEFT_OVER_BYTES = 64 << 20
"""Less is the driver's own bookkeeping."""
SETTLE_SECONDS = 15.0
"""How long the driver may take to free what a killed process held."""


def main(argv: list[str]) -> int:
    """`python -m benchmarks.h200 isolation [--budget SECONDS] [--out FOLDER] [--sim]`; 1 where anything went wrong.

    Solutions that are not judged again stay as the committed record has them.
    """
    parser = argparse.ArgumentParser(prog="python -m benchmarks.h200 isolation", description=__doc__)
    parser.add_argument("--budget", type=float, default=1e9, help="start nothing more after so many seconds")
    parser.add_argument("--out", type=Path, default=RESULTS)
    parser.add_argument("--sim", action="store_true", help="in the simulator, without a GPU")
    options = parser.parse_args(argv)
    mode: Mode = "sim" if options.sim else "cuda"
    device = load_device("h200") if mode == "sim" else detect_device()
    if device is None:
        print("isolation: no NVIDIA GPU here; --sim runs what needs none", file=sys.stderr)
        return 1
    made, until = provenance("python -m benchmarks.h200 isolation"), time.monotonic() + options.budget
    rows = {row["name"]: row for row in committed("isolation").get("cases", [])} if mode == "cuda" else {}
    with tempfile.TemporaryDirectory() as home:
        tempfile.tempdir = home  # evaluations work below it, so that what is left of them is known
        for found in examine_all([hostile for hostile in HOSTILE if hostile.runs(mode)], Path(home), device, mode, until):
            rows |= {row["name"]: {**row, "date": made["date"], "commit": made["commit"]} for row in found}
            wrong = [row["name"] for row in rows.values() if row["wrong"]]
            path = write("isolation", made, {"mode": mode, "sandbox": sandbox_name(), "cases": list(rows.values()),
                                             "wrong": wrong}, options.out)
    print(f"{len(rows)} cases, wrong: {', '.join(wrong) or 'none'}; {path}")
    return 1 if wrong else 0


def examine_all(
    cases: Sequence[Hostile], home: Path, device: DeviceSpec, mode: Mode, until: float = float("inf"),
) -> Iterator[list[dict[str, Any]]]:
    """What runs side by side, then one after the other what can disturb its neighbours, until `time.monotonic()` is `until`."""
    memory, before = used_memory(), processes(home)
    with ThreadPoolExecutor(WORKERS) as threads:
        together = [threads.submit(examine, hostile, home, device, mode, False) for hostile in cases if not hostile.alone]
        rows = [future.result() for future in together]
    left: dict[str, Any] = {"name": "after_those_side_by_side", **left_over(memory)}
    left["processes_left"] = len(lasting(home, before))
    yield [*rows, {**left, "wrong": still_there(left)}]
    for hostile in cases:
        if hostile.alone and time.monotonic() < until:
            yield [examine(hostile, home, device, mode)]


def examine(hostile: Hostile, home: Path, device: DeviceSpec, mode: Mode, alone: bool = True) -> dict[str, Any]:
    """One hostile evaluation and the honest one after it; what is left of them, where nothing else runs (`alone`)."""
    memory, before = used_memory(), processes(home)
    evaluation, seconds = judged(hostile.source(), hostile.timeout_s, home / hostile.name, device, mode)
    row: dict[str, Any] = {
        "name": hostile.name, "expected": hostile.status.value, "status": evaluation.status.value,
        "message": evaluation.message[:400].replace(f"{home}/", ""), "seconds": round(seconds, 2),
    }
    if alone:
        row |= left_over(memory)
    after, after_seconds = judged(HONEST, 60.0, home / hostile.name, device, mode)
    row |= {"next_status": after.status.value, "next_seconds": round(after_seconds, 2)}
    if alone:
        row["processes_left"] = len(lasting(home, before))
    next_wrong = "" if after.status is Status.PASSED else f"the next evaluation: {after.status.value}: {after.message[:200]}"
    row["wrong"] = disagreement(hostile, evaluation) or next_wrong or still_there(row)
    print(f"{'WRONG' if row['wrong'] else 'ok':<6}{hostile.name:<32}{row['status']:<20}{seconds:6.1f} s  {row['message'][:150]}"
          f"{'  << ' + row['wrong'] if row['wrong'] else ''}", flush=True)
    return row


def judged(source: str, timeout_s: float, home: Path, device: DeviceSpec, mode: Mode) -> tuple[Evaluation, float]:
    """A verification, and its seconds."""
    home.mkdir(exist_ok=True)
    (home / "task.py").write_text(TASK, encoding="utf-8")
    (home / "solution.py").write_text(source, encoding="utf-8")
    task = TaskSpec(name="plus_one", kind="native", path=str(home / "task.py"), sizes={"n": 1000},
                    check_sizes=({"n": 40}, {"n": 1000}))
    began = time.monotonic()
    evaluation = pool.evaluate(Request(task=task, solution=str(home / "solution.py"), mode=mode, device=device,
                                       stages=("verify",), timeout_s=timeout_s))
    return evaluation, time.monotonic() - began


def used_memory() -> int | None:
    """Bytes of the card's memory in use; None where NVML does not say."""
    state = gpu_state()
    return state.memory_used_bytes if state else None


def left_over(before: int | None) -> dict[str, Any]:
    """Bytes of the card's memory that are still held, after the driver had its time to free them."""
    began = time.monotonic()
    while before is not None:
        now = used_memory() or before
        if now - before < LEFT_OVER_BYTES or time.monotonic() - began > SETTLE_SECONDS:
            return {"device_bytes_left": now - before, "freed_after_s": round(time.monotonic() - began, 2)}
        time.sleep(0.1)
    return {"device_bytes_left": None, "freed_after_s": None}


def processes(home: Path) -> set[int]:
    """Evaluations below `home` that still run, and dead processes that nobody waited for: ours, and those left to init."""
    found = set()
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            state, parent = (folder / "stat").read_text().rsplit(")", 1)[1].split()[:2]
            ours = str(home).encode() in (folder / "environ").read_bytes()
        except (OSError, ValueError):  # it has just ended, or another user's
            continue
        if ours or (state == "Z" and int(parent) in (1, os.getpid())):
            found.add(int(folder.name))
    return found


def lasting(home: Path, before: Collection[int] = (), patience_s: float = 10.0) -> set[int]:
    """Of `processes`, those that are still there after a while: what was killed has to end, and init to take the dead."""
    found, until = processes(home) - set(before), time.monotonic() + patience_s
    while found and time.monotonic() < until:
        time.sleep(0.05)
        found &= processes(home)
    return found


def disagreement(hostile: Hostile, evaluation: Evaluation) -> str:
    """Where the verdict is not as it must be; "" where it is."""
    if evaluation.status is not hostile.status:
        return f"expected {hostile.status.value}"
    if not any(word in evaluation.message for word in hostile.words):
        return f"the message has none of {', '.join(hostile.words)}"
    return ""


def still_there(row: dict[str, Any]) -> str:
    """What is left on the card or among the processes; "" for nothing."""
    if (row.get("device_bytes_left") or 0) >= LEFT_OVER_BYTES:
        return "device memory is left"
    return "processes are left" if row.get("processes_left") else ""

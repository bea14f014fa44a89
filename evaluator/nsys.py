"""Nsight Systems, where torch's profiler is missing: the same record of kernels, copies and fills, from its SQLite export."""

from __future__ import annotations

import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

from evaluator.launches import Activity, shape

COMMAND = ("profile", "--trace", "cuda", "--sample", "none", "--cpuctxsw", "none", "--capture-range", "cudaProfilerApi",
           "--capture-range-end", "stop", "--export", "sqlite", "--force-overwrite", "true", "--output", "{folder}/calls")
EXPORT = "calls.sqlite"
PLACES = ("/opt/nvidia/nsight-systems/*/bin/nsys", "/usr/local/cuda*/bin/nsys")
KERNELS = """
SELECT s.value, k.start, k.end, k.gridX, k.gridY, k.gridZ, k.blockX, k.blockY, k.blockZ,
       k.staticSharedMemory + k.dynamicSharedMemory
FROM CUPTI_ACTIVITY_KIND_KERNEL k JOIN StringIds s ON s.id = k.demangledName
"""
TRANSFERS = {"CUPTI_ACTIVITY_KIND_MEMSET": "fill", "CUPTI_ACTIVITY_KIND_MEMCPY": "copy"}


def find_nsys() -> str | None:
    """Path of nsys: on PATH, or where its packages put it (the newest)."""
    found = shutil.which("nsys")
    if found:
        return found
    installed = [str(path) for place in PLACES for path in sorted(Path("/").glob(place.lstrip("/")))]
    return installed[-1] if installed else None


def read_export(path: Path) -> list[Activity]:
    """GPU activities of an export, by their start. A kind of which nothing happened has no table. Raises sqlite3.Error."""
    found = []
    with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as database:
        tables = {name for (name,) in database.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
        if "CUPTI_ACTIVITY_KIND_KERNEL" in tables:
            for name, start, end, *numbers in database.execute(KERNELS):
                found.append(Activity("kernel", str(name), start / 1e3, (end - start) / 1e3, shape(numbers[:3]),
                                      shape(numbers[3:6]), int(numbers[6])))
        for table in TRANSFERS.keys() & tables:
            for start, end, nbytes in database.execute(f"SELECT start, end, bytes FROM {table}"):
                found.append(Activity(TRANSFERS[table], TRANSFERS[table], start / 1e3, (end - start) / 1e3, nbytes=int(nbytes)))
    return sorted(found, key=lambda activity: activity.start_us)

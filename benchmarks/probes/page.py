"""docs/simulator.md: what the simulator executes, what it refuses, and how it compares; written from the probes.

`python -m benchmarks.probes.page` writes it.
"""

from __future__ import annotations

import sys
from pathlib import Path

from benchmarks.probes.catalogue import groups
from benchmarks.probes.probe import Probe
from benchmarks.probes.record import read_record

PAGE = Path(__file__).resolve().parents[2] / "docs" / "simulator.md"
HEAD = """# The simulator: what it executes

CUDA C runs without a GPU by executing the PTX that NVRTC makes of it, warp by warp, every access checked. The table lists one
small kernel per feature (`benchmarks/probes/`): `python -m benchmarks.probes.page` writes it from them, tests run every one.

* **same bits**: the result is defined to the last bit (IEEE 754, the PTX ISA) and compared so; any NaN counts as any other.
* **within a bound**: the hardware approximates; the bound and its source stand beside the kernel.
* **refused**: the status is UNSUPPORTED with the instruction's name and source line, never a result.
{record}
While a kernel runs these are checked: bounds and alignment of every access, races and uninitialised reads in shared memory,
barriers that only part of a block reaches, waits that never end (barriers, `mbarrier`, loops). Beyond one block: the blocks of
a cluster, and the grid of a cooperative launch, run at the same time; races *between* their blocks are not looked for, and no
time is modelled for a grid that synchronises. A bulk copy's bytes arrive when somebody waits for them: reading them too early
is found; overwriting a tile that a bulk copy still reads is not. The text of `printf` is dropped, clocks count
instructions, and a time is only ever modelled. `python -m benchmarks.simulator_speed` prints the simulator's own speed.

| feature | simulator | compared |
| --- | --- | --- |
"""


def page() -> str:
    """The page's text."""
    recorded = read_record()
    compared = sum(1 for row in recorded.values() if not row["error"])
    note = (f"* Compared with an H200: {compared} kernels, in `benchmarks/results/h200/probes.json`.\n" if recorded else
            "* Until an H200 has run them (`python -m benchmarks.h200 probes`), results are compared with NumPy references.\n")
    lines = [f"| **{group.name}** | | |\n" + "".join(_line(probe) for probe in group.probes) for group in groups()]
    return HEAD.format(record=note) + "".join(lines)


def _line(probe: Probe) -> str:
    how = "refused" if probe.refused else "executed"
    if probe.refused:
        relation = ""
    elif probe.relation.bitwise:
        relation = "same bits"
    else:
        relation = f"within a bound ({probe.relation.source})"
    return f"| {probe.feature.replace('|', '/')} | {how} | {relation} |\n"


def main() -> int:
    """Writes the page."""
    PAGE.write_text(page(), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())

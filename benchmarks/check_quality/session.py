"""`python -m benchmarks.check_quality.session [--figures]`: runs the session of docs/checking-kernels.md, writes what it said.

The commands are those of the page, on a copy of `docs/checking/normalise.py`; the repair is the one line that the page shows.
With `--figures` only the figures of the recorded proof are written.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "checking-kernels.md"
RECORD = ROOT / "benchmarks" / "results" / "check_quality.json"
KERNEL = ROOT / "docs" / "checking" / "normalise.py"
WRONG = """  for (int o = 16; o > 0; o >>= 1) v += __shfl_xor_sync(0xffffffffu, v, o);
"""
MENDED = WRONG + """  __syncthreads();  // the last call's sums may still be read
"""
COMMAND = ("check", "normalise.py", "--task", "normalise.py", "--device", "sim")


def mended() -> str:
    """The kernel's text with the repair."""
    text = KERNEL.read_text(encoding="utf-8")
    assert text.count(WRONG) == 1
    return text.replace(WRONG, MENDED)


def _checked(folder: Path) -> str:
    """What the command printed, as on the page: paths relative to the folder."""
    program = "from kernelskill.cli import main; main()"
    ran = subprocess.run([sys.executable, "-c", program, *COMMAND], cwd=folder, capture_output=True, text=True, check=False)
    return ran.stdout.replace(f"{folder}/", "") + ran.stderr


def outputs() -> dict[str, str]:
    """The page's blocks by name."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name).resolve()
        (folder / KERNEL.name).write_text(KERNEL.read_text(encoding="utf-8"), encoding="utf-8")
        found = _checked(folder)
        (folder / KERNEL.name).write_text(mended(), encoding="utf-8")
        return {"kernel": "```python\n" + KERNEL.read_text(encoding="utf-8") + "```", "found": _block(found),
                "repair": "```diff\n" + "".join(f" {line}\n" for line in WRONG.splitlines())
                + f"+{MENDED.splitlines()[-1]}\n```", "passed": _block(_checked(folder))}


def _block(output: str) -> str:
    return f"```\n$ kernelskill {' '.join(COMMAND)}\n{output}```"


def written(page: str, blocks: dict[str, str]) -> str:
    """The page with its blocks between `<!-- session:NAME -->` and `<!-- session:end -->`."""
    for name, block in blocks.items():
        begin, end = f"<!-- session:{name} -->\n", "<!-- session:end -->"
        before, _, rest = page.partition(begin)
        page = f"{before}{begin}{block}\n{end}{rest.partition(end)[2]}"
    return page


def figures(record: dict[str, Any]) -> str:
    """The recorded proof as the page's table."""
    s, honest = record["summary"], record["honest"]
    seeds = sorted(len(row["seeds"]) for row in honest)
    small = sum(row.get("ratio", 99.0) <= 1.0 for row in record["planted"])
    rows = {
        "planted faults found": f"{s['found']} of {s['planted']}, each as a property that it breaks",
        "smallest example found, in elements, against the smallest there is":
            f"the same for {small}, median {s['median_ratio']:g} ×, worst {s['worst_ratio']:g} ×",
        "examples until the fault showed": f"median {s['median_examples_to_find']:g}",
        "right kernels blamed": f"{len(s['false_alarms'])} of {s['honest']} in {s['honest_checks']} checks "
                                f"({seeds[0]} to {seeds[-1]} seeds each), {s['honest_calls']} calls",
        "processor time of a check": f"median {s['processor_s_median']:.1f} s, most {s['processor_s_most']:.1f} s "
                                     "(simulation and reference included, starting Python not)",
        "machine": f"{s['machine']}, simulator; it did other work meanwhile",
        "command": f"`{s['command']}`",
    }
    return "| | |\n| --- | --- |\n" + "\n".join(f"| {name} | {value} |" for name, value in rows.items())


def main(arguments: list[str]) -> None:
    """Writes the page."""
    blocks = {} if "--figures" in arguments else outputs()
    if RECORD.exists():
        blocks["quality"] = figures(json.loads(RECORD.read_text(encoding="utf-8")))
    PAGE.write_text(written(PAGE.read_text(encoding="utf-8"), blocks), encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])

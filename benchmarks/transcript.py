"""Put the demo's real output into README.md: `python -m benchmarks.transcript`. Lines are cut at WIDTH, as `…` shows."""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
MARKERS = re.compile(r"(<!-- demo:begin -->\n).*?(<!-- demo:end -->)", re.S)
WIDTH = 150
WHY_LINES = 12


def shown(run: Path, *arguments: str) -> str:
    """What a command prints on both streams, with the run folder as the demo names it."""
    call = [sys.executable, "-m", "kernelskill", *arguments]
    done = subprocess.run(call, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=True)
    return done.stdout.replace(str(run), "runs/demo")


def cut(text: str, lines: int | None = None) -> str:
    """At most `lines` lines of at most WIDTH characters."""
    kept = text.rstrip().splitlines()
    more = ["…"] if lines is not None and len(kept) > lines else []
    return "\n".join([line if len(line) <= WIDTH else line[: WIDTH - 1] + "…" for line in kept[:lines]] + more)


def main() -> None:
    """Run the demo's two commands and rewrite the block."""
    with tempfile.TemporaryDirectory() as folder:
        run = Path(folder) / "demo"
        optimise = shown(run, "optimize", "examples/row_softmax", "--device", "sim", "--out", str(run))
        why = shown(run, "why", str(run), "--round", "1")
    block = (
        f"```\n$ kernelskill optimize examples/row_softmax --device sim --out runs/demo\n{cut(optimise)}\n\n"
        f"$ kernelskill why runs/demo --round 1\n{cut(why, WHY_LINES)}\n```\n"
    )
    readme = ROOT / "README.md"
    readme.write_text(MARKERS.sub(lambda m: m[1] + block + m[2], readme.read_text()))


if __name__ == "__main__":
    main()

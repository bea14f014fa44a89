"""Put real output into README.md and docs/auditing.md: `python -m benchmarks.transcript`. Long lines are cut, as `…` shows."""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
MARKERS = re.compile(r"(<!-- demo:begin -->\n).*?(<!-- demo:end -->)", re.S)
WIDTH = 150
WHY_LINES = 16
AUDIT_INTRODUCTION = """# Auditing a run

A real run, audited from the outside with the commands anyone has. Written by `python -m benchmarks.transcript`, so
it is what the programs print; long lines are cut. Times are modelled. What the words mean:
[authoring-rules.md](authoring-rules.md) for rules, [rules-reference.md](rules-reference.md) for facts.
"""
AUDIT = (
    ("The run: the naive matrix product, five rounds", "optimize examples/matmul --device sim --rounds 5 --out {run}", None),
    ("Why did round 3 choose what it chose?", "why {run} --round 3", 34),
    ("Why not tensor cores?", "why {run} --round 3 --not tensor_cores", None),
    ("What is the smallest change under which wide accesses would have been chosen?",
     "why {run} --round 3 --not vectorized_access --nearest", None),
    ("What if the tile had bank conflicts that multiply its wavefronts by 16?",
     "whatif {run} --round 3 --fact shared_wavefronts_ratio=16", None),
    ("Which decisions hang on one rule?", "whatif {run} --without-rule block_registers_first", None),
    ("Do all decisions come out the same again?", "replay {run}", None),
)


def shown(run: Path, arguments: str) -> str:
    """What a command prints on both streams, with folders as a user has them."""
    call = [sys.executable, "-m", "kernelskill", *arguments.format(run=run).split()]
    done = subprocess.run(call, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=True)
    return done.stdout.replace(str(run), "runs/demo").replace(f"{ROOT}/", "")


def cut(text: str, lines: int | None = None) -> str:
    """At most `lines` lines of at most WIDTH characters."""
    kept = text.rstrip().splitlines()
    more = ["…"] if lines is not None and len(kept) > lines else []
    return "\n".join([line if len(line) <= WIDTH else line[: WIDTH - 1] + "…" for line in kept[:lines]] + more)


def block(run: Path, arguments: str, lines: int | None = None) -> str:
    """A command with what it printed."""
    return f"$ kernelskill {arguments.format(run='runs/demo')}\n{cut(shown(run, arguments), lines)}\n"


def demo(run: Path) -> str:
    """The README's block."""
    optimise = block(run, "optimize examples/row_softmax --device sim --out {run}")
    return f"```\n{optimise}\n{block(run, 'why {run} --round 1', WHY_LINES)}```\n"


def audit(run: Path) -> str:
    """docs/auditing.md."""
    parts = [f"## {title}\n\n```\n{block(run, arguments, lines)}```\n" for title, arguments, lines in AUDIT]
    return "\n".join([AUDIT_INTRODUCTION, *parts])


def main() -> None:
    """Run the commands and rewrite both pages."""
    with tempfile.TemporaryDirectory() as folder:
        readme = ROOT / "README.md"
        shown_demo = demo(Path(folder) / "demo")
        readme.write_text(MARKERS.sub(lambda m: m[1] + shown_demo + m[2], readme.read_text()))
        (ROOT / "docs" / "auditing.md").write_text(audit(Path(folder) / "audit"))


if __name__ == "__main__":
    main()

"""`python -m benchmarks.h200 PART [arguments]` runs one part's `main(argv) -> int`; without a part it lists them."""

from __future__ import annotations

import ast
import importlib
import sys
from pathlib import Path

NOT_PARTS = {"__init__", "__main__", "provenance"}


def parts() -> dict[str, str]:
    """Every part with the first line of its docstring; nothing is imported."""
    files = sorted(path for path in Path(__file__).parent.glob("*.py") if path.stem not in NOT_PARTS)
    sources = {path.stem: ast.parse(path.read_text(encoding="utf-8")) for path in files}
    return {name: (ast.get_docstring(tree) or "").split("\n")[0] for name, tree in sources.items() if _has_main(tree)}


def _has_main(tree: ast.Module) -> bool:
    return any(isinstance(node, ast.FunctionDef) and node.name == "main" for node in tree.body)


def main(argv: list[str]) -> int:
    """Exit code of the part; 2 for one that does not exist."""
    known = parts()
    if not argv or argv[0] not in known:
        print(__doc__, *(f"  {name:<12} {text}" for name, text in known.items()), sep="\n")
        return 2 if argv else 0
    return int(importlib.import_module(f"benchmarks.h200.{argv[0]}").main(argv[1:]))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

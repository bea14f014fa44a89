"""The cases of `source_cases/*.cu`: small kernels, each with the facts that its text shows."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

ABSENT = "absent"
FOLDER = Path(__file__).parent / "source_cases"


@dataclass
class Case:
    name: str
    kernel: str = "k"
    block: tuple[int, ...] = (256, 1, 1)
    family: str = ""
    options: tuple[str, ...] = ()
    facts: dict[str, Any] = field(default_factory=dict)
    cuda: str = ""

    def set(self, key: str, value: str) -> None:
        """One `key = value` setting."""
        if key == "block":
            self.block = tuple(map(int, value.split()))
        elif key == "options":
            self.options = tuple(value.split())
        else:
            setattr(self, key, value)


def read_value(text: str) -> Any:
    """`true`, `12`, `warp_shuffle` or `absent`."""
    return {"true": True, "false": False}.get(text, int(text) if text.isdigit() else text)


def read_case(text: str) -> Case:
    """One case: its name, settings and facts in comment lines, then CUDA."""
    name, *lines = text.splitlines()
    case = Case(name.strip())
    while lines and lines[0].startswith("//"):
        line = lines.pop(0)[2:].strip()
        if " = " in line:
            case.set(*line.split(" = "))
        else:
            pairs = (part.split(":") for part in line.split(";") if part.strip())
            case.facts.update((key.strip(), read_value(value.strip())) for key, value in pairs)
    case.cuda = "\n".join(lines)
    return case


def read_cases() -> list[Case]:
    """Every case of the folder."""
    return [read_case(part) for path in sorted(FOLDER.glob("*.cu")) for part in path.read_text().split("\n// case ")[1:]]

"""Neighbouring loops over neighbouring places become one loop: less index arithmetic, longer runs for wide accesses."""

from __future__ import annotations

import re
from dataclasses import replace

from kernelskill.writers.program.ir import Atom, Axis, Stage

WORD = re.compile(r"[A-Za-z_]\w*")


def words(*texts: str) -> set[str]:
    """The names in index texts."""
    return {word for text in texts for word in WORD.findall(text)}


def mentions(atom: Atom, *names: str) -> bool:
    """Whether the atom depends on one of these axes."""
    return bool(words(*atom.coords, atom.guard) & set(names))


def merged(stage: Stage) -> Stage:
    """The stage with as few loops as its accesses allow."""
    if stage.kind in ("scan", "library"):
        return stage
    for group in ("axes", "reduced"):
        place = 0
        while place + 1 < len(getattr(stage, group)):
            axes = getattr(stage, group)
            first, second = axes[place], axes[place + 1]
            joined = {name: _joined(atom, first, second) for name, atom in stage.atoms}
            if any(atom is None for atom in joined.values()):
                place += 1
                continue
            one = Axis(first.name, _product(first.extent, second.extent))
            atoms = tuple((name, atom) for name, atom in joined.items() if atom is not None)
            loops = (*axes[:place], one, *axes[place + 2 :])
            stage = replace(stage, atoms=atoms, axes=loops) if group == "axes" else replace(stage, atoms=atoms, reduced=loops)
    return stage


def _product(a: str, b: str) -> str:
    return b if a == "1" else a if b == "1" else f"({a} * {b})"


def _joined(atom: Atom, first: Axis, second: Axis) -> Atom | None:
    """The atom over the joined axis; None where it does not run through both as through one."""
    if not mentions(atom, first.name, second.name):
        return atom
    here = next((k for k in range(len(atom.coords) - 1) if atom.coords[k : k + 2] == (first.name, second.name)), None)
    if here is None or atom.dims[here + 1] != second.extent or not atom.array:
        return None
    rest = (*atom.coords[:here], *atom.coords[here + 2 :], atom.guard)
    if words(*rest) & {first.name, second.name}:
        return None
    dims = (*atom.dims[:here], _product(atom.dims[here], atom.dims[here + 1]), *atom.dims[here + 2 :])
    return replace(atom, coords=(*atom.coords[:here], first.name, *atom.coords[here + 2 :]), dims=dims)

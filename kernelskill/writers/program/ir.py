"""A program: arrays, sizes, and stages that compute each element of one array from elements of others.

Index expressions are texts over axis names and sizes with `+ - * // %` and comparisons: Python and (with `/` for `//`) C, as no
operand of a division is negative where its result is used.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from kernelskill.writers.template import expression as ex

ACC = ex.Name("acc")
"""The result of a reduction, in its epilogue."""


@dataclass(frozen=True)
class Size:
    """One extent: `name = text`, a Python expression over arrays' shapes and earlier sizes."""

    name: str
    text: str
    value: int
    """At the task's full sizes."""


@dataclass(frozen=True)
class Array:
    """An array that the program is given: an argument of `forward`, a parameter or a buffer."""

    name: str
    dtype: str = "float"
    """C type: float, bool, long long; `scalar` for a Python number."""
    binding: str = ""
    """The statement that fetches it in `forward`; "" for an argument."""


@dataclass(frozen=True)
class Axis:
    """A loop: its name, and its extent as a size's name or a number."""

    name: str
    extent: str


@dataclass(frozen=True)
class Atom:
    """What an expression's name stands for: an element of an array, or (without an array) the index text itself."""

    array: str
    dims: tuple[str, ...]
    coords: tuple[str, ...]
    guard: str = ""
    """Where this does not hold, the element is outside the array and `other` stands for it."""
    other: float = 0.0


@dataclass(frozen=True)
class Stage:
    """One kernel's work: result[axes] = epilogue(combine over reduced of body)."""

    kind: str
    """map, reduce, product (sum over `reduced` of body * second), scan (running combine along `reduced`), library."""
    result: str
    axes: tuple[Axis, ...] = ()
    body: ex.Expression = ACC
    second: ex.Expression = ACC
    reduced: tuple[Axis, ...] = ()
    combine: str = ""
    epilogue: ex.Expression = ACC
    atoms: tuple[tuple[str, Atom], ...] = ()
    dtype: str = "float"
    given: bool = False
    """The result is an array of the program, updated in place."""
    statement: str = ""
    """library: the torch call, a Python expression over arrays and `self`."""
    operands: tuple[str, ...] = ()
    """library: the arrays that the call takes."""

    def expressions(self) -> tuple[ex.Expression, ...]:
        """Those that the stage evaluates."""
        second = (self.second,) if self.kind == "product" else ()
        return (self.body,) if self.kind == "map" else (self.body, *second, self.epilogue)

    def used(self, *expressions: ex.Expression) -> dict[str, Atom]:
        """The atoms of these expressions (of all without any), by name."""
        names = {name for e in expressions or self.expressions() for name in ex.names(e)}
        return {name: atom for name, atom in self.atoms if name in names}

    def reads(self) -> set[str]:
        """Arrays that the stage needs."""
        return {atom.array for atom in self.used().values() if atom.array} | set(self.operands)

    def identity(self, atom: Atom) -> bool:
        """Whether the atom is the element of an array of the result's shape at the result's own place."""
        return (not atom.guard and atom.coords == tuple(axis.name for axis in self.axes)
                and atom.dims == tuple(axis.extent for axis in self.axes))


@dataclass(frozen=True)
class Program:
    """A model's forward."""

    arguments: tuple[Array, ...]
    stored: tuple[Array, ...]
    sizes: tuple[Size, ...]
    stages: tuple[Stage, ...]
    output: str
    """The array that is returned."""
    shape: tuple[str, ...]
    """Its shape, as sizes."""
    library: tuple[tuple[str, str], ...] = ()
    """(result, the operator that stays torch's)."""
    counters: tuple[str, ...] = ()
    """Integer buffers that every call in training mode counts up by one."""

    def array(self, name: str) -> Array | None:
        """The given array of that name."""
        return next((a for a in (*self.arguments, *self.stored) if a.name == name), None)


def fused(stages: list[Stage]) -> list[Stage]:
    """Each map that alone reads a reduction, at its own place, becomes that reduction's epilogue."""
    merged = list(stages)
    for mapped in stages:
        if mapped.kind != "map" or mapped.given:
            continue
        for before in merged:
            if _takes(before, mapped, merged):
                merged[merged.index(mapped)] = _with_epilogue(before, mapped)
                merged.remove(before)
                break
    return merged


def _takes(before: Stage, mapped: Stage, stages: list[Stage]) -> bool:
    """Whether `mapped` can be the epilogue of `before`: nothing else needs what is between, and all else it reads is there."""
    if before.kind not in ("reduce", "product", "scan") or before.dtype != "float" or before.axes != mapped.axes:
        return False
    loads = [atom for atom in mapped.used().values() if atom.array == before.result]
    if not loads or not all(mapped.identity(atom) for atom in loads):
        return False
    return not any(before.result in stage.reads() for stage in stages if stage is not mapped)


def _with_epilogue(before: Stage, mapped: Stage) -> Stage:
    renamed: dict[str, ex.Expression] = {name: before.epilogue for name, atom in mapped.used().items()
                                         if atom.array == before.result}
    return replace(before, result=mapped.result, epilogue=substitute(mapped.body, renamed), dtype=mapped.dtype,
                   atoms=tuple(dict.fromkeys((*before.atoms, *mapped.atoms))))


def substitute(expression: ex.Expression, new: dict[str, ex.Expression]) -> ex.Expression:
    """The expression with names replaced by expressions."""
    if isinstance(expression, ex.Name):
        return new.get(expression.name, expression)
    if isinstance(expression, ex.Constant):
        return expression
    return ex.Call(expression.function, tuple(substitute(a, new) for a in expression.arguments))

"""Values of a traced forward: a shape, and how an element is computed; nothing is stored until something needs it stored."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from kernelskill.errors import WriterError
from kernelskill.writers.program.ir import Array, Atom, Axis, Stage
from kernelskill.writers.program.sizes import Dim, Sizes, text_of
from kernelskill.writers.template import expression as ex

Coords = tuple[str, ...]
Element = Callable[[Coords], ex.Expression]


@dataclass
class Builder:
    """The program in the making."""

    sizes: Sizes = field(default_factory=Sizes)
    stages: list[Stage] = field(default_factory=list)
    _atoms: dict[Atom, str] = field(default_factory=dict)
    _guards: list[str] = field(default_factory=list)

    def atom(self, array: str, dims: Sequence[Dim], coords: Coords) -> ex.Expression:
        """The element of an array there, under the guards that hold here."""
        return self._named(Atom(array, tuple(text_of(d) for d in dims), coords, " and ".join(dict.fromkeys(self._guards))))

    def position(self, text: str) -> ex.Expression:
        """The value of an index text (a number or a truth value)."""
        return self._named(Atom("", (), (text,)))

    def guarded(self, condition: str, element: Callable[[], ex.Expression], other: float) -> ex.Expression:
        """The element where the condition holds, else the number; elements outside arrays are never read."""
        if not condition:
            return element()
        self._guards.append(condition)
        inside = element()
        self._guards.pop()
        atom = next((a for a, name in self._atoms.items() if inside == ex.Name(name)), None)
        if atom is not None and atom.guard == condition:
            return self._named(replace(atom, other=other))
        return ex.Call("where", (self.position(condition), inside, ex.Constant(other)))

    def atoms(self, *expressions: ex.Expression) -> tuple[tuple[str, Atom], ...]:
        """Those that the expressions use."""
        names = {name for e in expressions for name in ex.names(e)}
        return tuple((name, atom) for atom, name in self._atoms.items() if name in names)

    def _named(self, atom: Atom) -> ex.Expression:
        return ex.Name(self._atoms.setdefault(atom, f"v{len(self._atoms)}"))

    def result(self) -> str:
        """A name for the next stage's array."""
        return f"t{len(self.stages)}"

    def add(self, stage: Stage, shape: Sequence[Dim]) -> Value:
        """The stage's result as a value; the shape may group its axes otherwise."""
        atoms = self.atoms(*stage.expressions()) if stage.kind != "library" else ()
        self.stages.append(Stage(**{**stage.__dict__, "atoms": atoms}))
        return self.stored(stage.result, shape, "long long" if stage.dtype == "long long" else "float")

    def stored(self, array: str, shape: Sequence[Dim], dtype: str = "float") -> Value:
        """The array as a value."""
        dims = tuple(shape)
        return Value(self, dims, lambda coords: self.atom(array, dims, coords), array, dtype=dtype)


@dataclass(eq=False)
class Value:
    """A tensor of the traced forward."""

    builder: Builder
    dims: tuple[Dim, ...]
    element: Element
    array: str = ""
    """The array that it is, unchanged and in the order of its elements; "" where elements are computed or moved."""
    computed: bool = False
    """More than a load happens for an element."""
    dtype: str = "float"
    _kept: Value | None = None

    def settled(self) -> Value:
        """The value, stored where its elements are computed from earlier stages: consumers read it more than once."""
        inner = self.computed and any(a.array.startswith("t") and a.array[1:].isdigit() for _, a in self._atoms())
        return self.kept() if inner else self

    def _atoms(self) -> tuple[tuple[str, Atom], ...]:
        return self.builder.atoms(self.element(self.axes("i")[1]))

    def kept(self) -> Value:
        """The value as an array."""
        if self.array:
            return self
        if self._kept is None:
            axes, coords = self.axes("i")
            stage = Stage("map", self.builder.result(), axes, self.element(coords), dtype=self.stored_type)
            self._kept = self.builder.add(stage, self.dims)
        return self._kept

    @property
    def stored_type(self) -> str:
        """The C type of its elements in memory."""
        return "long long" if self.dtype == "long long" else "float"

    def axes(self, prefix: str) -> tuple[tuple[Axis, ...], Coords]:
        """Loops over its axes, and their names; an axis of one element is none."""
        return loops(self.dims, prefix)

    def broadcast(self, dims: Sequence[Dim]) -> Element:
        """Its element at coordinates of a larger shape. An argument of fewer axes may have one element yet."""
        lead = len(dims) - len(self.dims)

        def at(coord: str, own: Dim, whole: Dim) -> str:
            if int(own) == 1:
                return "0"
            chance = lead > 0 and text_of(own) != text_of(whole) and text_of(own) in self.builder.sizes.free
            return f"({coord} % {text_of(own)})" if chance else coord

        return lambda coords: self.element(tuple(map(at, coords[lead:], self.dims, dims[lead:])))


def loops(dims: Sequence[Dim], prefix: str) -> tuple[tuple[Axis, ...], Coords]:
    """Axes `prefix0`, `prefix1`, ... over these extents, and their coordinates."""
    axes = tuple(Axis(f"{prefix}{k}", text_of(d)) for k, d in enumerate(dims))
    return axes, tuple(axis.name for axis in axes)


def common_shape(values: Sequence[Value]) -> tuple[Dim, ...]:
    """The shape that the values broadcast to. Raises WriterError."""
    rank = max(len(v.dims) for v in values)
    found = []
    for axis in range(-rank, 0):
        extents = [v.dims[axis] for v in values if len(v.dims) >= -axis]
        large = [d for d in extents if int(d) != 1]
        if len({int(d) for d in large}) > 1:
            raise WriterError(f"shapes {[list(map(int, v.dims)) for v in values]} do not broadcast")
        found.append((large or extents)[0])
    return tuple(found)


def combine(builder: Builder, function: str, *operands: Any) -> Value:
    """The scalar function of values and numbers, element by element."""
    values = [o for o in operands if isinstance(o, Value)]
    dims = common_shape(values)

    def element(coords: Coords) -> ex.Expression:
        return ex.Call(function, tuple(
            o.broadcast(dims)(coords) if isinstance(o, Value) else ex.Constant(float(o)) for o in operands))

    return Value(builder, dims, element, computed=True)


def moved(value: Value, dims: Sequence[Dim], where: Callable[[Coords], Coords]) -> Value:
    """The same elements in other places."""
    return Value(value.builder, tuple(dims), lambda coords: value.element(where(coords)), computed=value.computed,
                 dtype=value.dtype)


def reshaped(value: Value, dims: Sequence[Dim]) -> Value:
    """The same elements in the same order, under another shape."""
    if value.array:
        return value.builder.stored(value.array, dims, value.dtype)
    groups = list(_groups(value.dims, dims))
    return moved(value, dims, lambda coords: tuple(c for old, new in groups for c in _regrouped(
        [value.dims[k] for k in old], [dims[k] for k in new], [coords[k] for k in new])))


def _groups(old: Sequence[Dim], new: Sequence[Dim]) -> Any:
    """Runs of axes with equal products, as (axes of the old shape, axes of the new one)."""
    i = j = 0
    while i < len(old) or j < len(new):
        a, b = [i] if i < len(old) else [], [j] if j < len(new) else []
        i, j = i + len(a), j + len(b)
        while math.prod(int(old[k]) for k in a) != math.prod(int(new[k]) for k in b):
            if math.prod(int(old[k]) for k in a) < math.prod(int(new[k]) for k in b) and i < len(old):
                a.append(i)
                i += 1
            elif j < len(new):
                b.append(j)
                j += 1
            else:
                raise WriterError(f"a view of shape {[int(d) for d in new]} of {[int(d) for d in old]} is not known")
        yield a, b


def _regrouped(old: list[Dim], new: list[Dim], coords: list[str]) -> list[str]:
    """Coordinates of a run of axes under its other grouping."""
    if len(old) == len(new) and all(int(a) == int(b) for a, b in zip(old, new, strict=True)):
        return coords
    linear = ""
    for dim, coord in zip(new, coords, strict=True):
        linear = plus(times(linear, text_of(dim)), coord) if linear else coord
    linear = linear or "0"
    found: list[str] = []
    inner = ""
    for k in range(len(old) - 1, -1, -1):
        whole = f"({linear}) // ({inner})" if inner else linear
        found.insert(0, whole if k == 0 else f"({whole}) % {text_of(old[k])}")
        inner = f"{inner} * {text_of(old[k])}" if inner else text_of(old[k])
    return [f"({c})" if "%" in c or "//" in c else c for c in found]


def plus(a: str, b: str) -> str:
    """The sum of index texts."""
    if b in ("", "0"):
        return a
    return b if a in ("", "0") else f"({a} + {b})"


def times(a: str, b: str) -> str:
    """The product of index texts."""
    if "0" in (a, b):
        return "0"
    return a if b == "1" else b if a == "1" else f"{a} * {b}"


def given(builder: Builder, array: Array, shape: Sequence[int]) -> Value:
    """An argument or a parameter as a value; its sizes are read off it."""
    if array.dtype == "scalar":
        return Value(builder, (), lambda coords: builder.atom(array.name, (), ()), array.name)
    dims = tuple(builder.sizes.named(f"{array.name}.shape[{k}]", extent) for k, extent in enumerate(shape))
    builder.sizes.free |= set() if array.binding else {d.text for d in dims}
    return builder.stored(array.name, dims, array.dtype)

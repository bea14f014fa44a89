"""A program with NumPy in float64: what its stages compute, for the proof that they compute what the model does."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from kernelskill.writers.program.ir import Atom, Axis, Program, Stage
from kernelskill.writers.template import expression as ex

MOST_ELEMENTS = 1 << 21
"""Points of a stage's loops that are held at once; larger stages go slice by slice along their first axis."""
COMBINE: dict[str, Any] = {"sum": np.sum, "prod": np.prod, "max": np.max, "min": np.min, "argmax": np.argmax,
                           "argmin": np.argmin}


def sizes_at(program: Program, names: Mapping[str, Any]) -> dict[str, int]:
    """Every size, from arrays (and `self`, the model) of that shape."""
    found: dict[str, int] = {}
    for size in program.sizes:
        found[size.name] = int(eval(size.text, {"__builtins__": {}}, {**names, **found}))
    return found


def run(program: Program, arrays: dict[str, Any], sizes: Mapping[str, int], model: Any) -> Any:
    """The output array; `arrays` (float64) gains every stage's result, and arrays that are updated in place are replaced."""
    for stage in program.stages:
        arrays[stage.result] = _library(stage, arrays, model) if stage.kind == "library" else _stage(stage, arrays, sizes)
    shape = [_number(d, sizes) for d in program.shape]
    return np.reshape(arrays[program.output], shape)


def _library(stage: Stage, arrays: Mapping[str, Any], model: Any) -> Any:
    import torch

    operands = {name: torch.from_numpy(np.ascontiguousarray(arrays[name], np.float32)) for name in stage.operands}
    with torch.no_grad():
        return eval(stage.statement, {"__builtins__": {}}, {**operands, "self": model}).numpy().astype(np.float64)


def _number(text: str, sizes: Mapping[str, int]) -> int:
    return sizes[text] if text in sizes else int(text)


def work(stage: Stage, sizes: Mapping[str, int]) -> float:
    """Elements that evaluating the stage holds, if at once."""
    axes = (*stage.axes, *(stage.reduced if stage.kind != "scan" else ()))
    expressions = (stage.body, stage.second) if stage.kind == "product" else (stage.body,)
    held = []
    for e in expressions:
        words = {word for atom in stage.used(e).values() for text in (*atom.coords, atom.guard) for word in _words(text)}
        held.append(float(np.prod([_number(a.extent, sizes) for a in axes if a.name in words or stage.kind != "product"])))
    return max(held)


def _stage(stage: Stage, arrays: Mapping[str, Any], sizes: Mapping[str, int]) -> Any:
    extents = [_number(axis.extent, sizes) for axis in stage.axes]
    inner = [_number(axis.extent, sizes) for axis in stage.reduced] if stage.kind != "scan" else []
    points = int(work(stage, sizes))
    if points <= MOST_ELEMENTS or not extents or stage.kind == "scan":
        return _block(stage, arrays, sizes, [range(n) for n in extents], inner)
    rows = max(1, MOST_ELEMENTS * extents[0] // points)
    parts = [range(start, min(start + rows, extents[0])) for start in range(0, extents[0], rows)]
    return np.concatenate([_block(stage, arrays, sizes, [part, *(range(n) for n in extents[1:])], inner) for part in parts])


def _block(stage: Stage, arrays: Mapping[str, Any], sizes: Mapping[str, int], outer: list[range], inner: list[int]) -> Any:
    """The results for these values of the output's axes."""
    loops = [*outer, *(range(n) for n in inner)]
    axes = [*stage.axes, *(stage.reduced if stage.kind != "scan" else ())]
    whole = _values(stage.used(), axes, loops, arrays, sizes)
    shape = tuple(len(loop) for loop in loops)
    with np.errstate(all="ignore"):
        if stage.kind == "map":
            return np.broadcast_to(ex.evaluate(stage.body, whole), shape).astype(np.float64)
        if stage.kind == "product":
            acc = _contracted(ex.evaluate(stage.body, whole), ex.evaluate(stage.second, whole), shape, len(outer))
            return _epilogue(stage, acc, outer, arrays, sizes)
        body = np.broadcast_to(ex.evaluate(stage.body, whole), shape)
        if stage.kind == "scan":
            axis = stage.axes.index(stage.reduced[0])
            acc = (np.cumsum if stage.combine == "sum" else np.cumprod)(body, axis=axis)
            return np.broadcast_to(ex.evaluate(stage.epilogue, {**whole, "acc": acc}), shape)
        kept = shape[: len(outer)]
        acc = COMBINE[stage.combine](body.reshape(*kept, -1), axis=-1)
        return _epilogue(stage, acc, outer, arrays, sizes)


def _epilogue(stage: Stage, acc: Any, outer: list[range], arrays: Mapping[str, Any], sizes: Mapping[str, int]) -> Any:
    outside = _values(stage.used(stage.epilogue), list(stage.axes), outer, arrays, sizes)
    return np.broadcast_to(ex.evaluate(stage.epilogue, {**outside, "acc": acc}), acc.shape).astype(np.float64)


def _contracted(a: Any, b: Any, shape: tuple[int, ...], kept: int) -> Any:
    """The sum of products over the axes after the first `kept`; each operand has length 1 along axes it does not depend on."""
    letters = "abcdefghijklmnopqrstuvwxyz"[: len(shape)]
    operands, terms = [], []
    for operand in (np.broadcast_to(a, np.broadcast_shapes(np.shape(a), (1,) * len(shape))), b):
        own = [k for k in range(len(shape)) if operand.shape[k] != 1]
        operands.append(operand.reshape([operand.shape[k] for k in own]))
        terms.append("".join(letters[k] for k in own))
    seen = set("".join(terms))
    result = "".join(letter for letter in letters[:kept] if letter in seen)
    found = np.einsum(f"{','.join(terms)}->{result}", *operands, optimize=True)
    found = found.reshape([n if letter in seen else 1 for letter, n in zip(letters, shape[:kept], strict=False)])
    alone = [n for letter, n in zip(letters[kept:], shape[kept:], strict=True) if letter not in seen]
    return np.broadcast_to(found * float(np.prod(alone)), shape[:kept])


def _values(atoms: Mapping[str, Atom], axes: list[Axis], loops: list[range], arrays: Mapping[str, Any],
            sizes: Mapping[str, int]) -> dict[str, Any]:
    names: dict[str, Any] = dict(sizes)
    for k, (axis, loop) in enumerate(zip(axes, loops, strict=True)):
        names[axis.name] = np.asarray(loop).reshape([-1 if j == k else 1 for j in range(len(axes))])
    return {name: _element(atom, names, arrays, sizes) for name, atom in atoms.items()
            if all(_known(text, names) for text in (*atom.coords, atom.guard))}


def _known(text: str, names: Mapping[str, Any]) -> bool:
    """Whether the text needs no axis that is not there (an epilogue has no reduced axes)."""
    return all(word in names or word == "and" for word in _words(text))


def _words(text: str) -> list[str]:
    return [word for word in "".join(c if c.isalnum() else " " for c in text).split() if word[0].isalpha()]


def _element(atom: Atom, names: Mapping[str, Any], arrays: Mapping[str, Any], sizes: Mapping[str, int]) -> Any:
    if not atom.array:
        return _index(atom.coords[0], names)
    array = np.reshape(arrays[atom.array], [_number(d, sizes) for d in atom.dims])
    coords = [_index(text, names) for text in atom.coords]
    if not atom.guard:
        return array[tuple(coords)] if coords else array[()]
    inside = _index(atom.guard, names)
    clipped = tuple(np.clip(c, 0, n - 1) for c, n in zip(coords, array.shape, strict=True))
    return np.where(inside, array[clipped], atom.other)


def _index(text: str, names: Mapping[str, Any]) -> Any:
    found: Any = None
    for part in text.split(" and "):
        value = eval(part, {"__builtins__": {}}, dict(names))
        found = value if found is None else found & value
    return found

"""The operators that a reference executes, and which of them are not needed: dead ones, and ones without effect.

Recorded below autograd, so `linear` shows as the product it is. An operator is dead when nothing of it reaches an output;
it has no effect when handing its input through leaves every output bit as it was.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from evaluator.trees import leaves

PRODUCTS = {"mm", "addmm", "bmm", "baddbmm", "convolution", "_conv_depthwise2d", "mv", "addmv"}
AFFINE = {"add", "sub", "rsub", "mul", "div", "neg", "_to_copy", "clone"}
VIEWS = {
    "view", "_unsafe_view", "reshape", "_reshape_alias", "t", "transpose", "permute", "squeeze", "unsqueeze", "expand", "slice",
    "select", "alias", "detach", "as_strided", "unbind", "split", "chunk", "split_with_sizes", "diagonal", "unfold",
    "lift_fresh",
}
ALLOCATIONS = {"empty", "zeros", "ones", "full", "arange", "empty_like", "zeros_like", "ones_like", "new_zeros", "new_empty"}
MOVES = {"clone", "copy_", "_to_copy", "contiguous", "cat", "stack", "fill_", "zero_", "constant_pad_nd"}
ADDING = {"sum", "mean", "_adaptive_avg_pool2d", "_adaptive_avg_pool3d", "adaptive_avg_pool1d"}


@dataclass(frozen=True)
class Node:
    """One executed operator."""

    name: str
    read: frozenset[int]
    """Storages of its tensor arguments."""
    written: frozenset[int]
    arguments: tuple[int, ...]
    """Identities of the tensor arguments, in order."""
    results: tuple[int, ...]
    elements: tuple[int, ...]
    """Elements of each argument, then of each result."""
    swappable: bool
    """It computes, and its first result has the shape and dtype of an argument, which could stand in for it."""

    @property
    def computes(self) -> bool:
        """It is no view, allocation or copy."""
        return self.name not in VIEWS | ALLOCATIONS | MOVES


class _Recorder(TorchDispatchMode):  # type: ignore[misc]
    """Records every operator, or replaces one (`swap`) by its argument."""

    def __init__(self, swap: int = -1) -> None:
        super().__init__()
        self.swap, self.position, self.nodes = swap, -1, []  # type: int, int, list[Node]
        self.alive: list[Any] = []
        """Keeps every tensor, so that identities stay unique."""

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.position += 1
        keywords = kwargs or {}
        given = [leaf for _, leaf in leaves((tuple(args), dict(keywords)), "") if isinstance(leaf, torch.Tensor)]
        if self.position == self.swap:
            return _handed_through(func, args, keywords, given)
        result = func(*args, **keywords)
        if self.swap < 0:
            made = [leaf for _, leaf in leaves(result, "") if isinstance(leaf, torch.Tensor)]
            self.alive += [*given, *made]
            self.nodes.append(_node(func, given, made))
        return result


def record(call: Callable[[], Sequence[Any]]) -> tuple[list[Node], set[int], set[int]]:
    """(operators in order, storages of the outputs, identities of the outputs)."""
    with _Recorder() as recorder:
        outputs = call()
    return recorder.nodes, {storage(output) for output in outputs}, {id(output) for output in outputs}


def dead_operators(nodes: Sequence[Node], outputs: set[int]) -> list[int]:
    """Positions of computing operators from which nothing reaches `outputs` (storages)."""
    live: set[int] = set(outputs)
    dead = []
    for position in reversed(range(len(nodes))):
        if nodes[position].written & live:
            live = live | nodes[position].read
        elif nodes[position].computes:
            dead.append(position)
    return sorted(dead)


def replaceable(nodes: Sequence[Node], outputs: set[int]) -> list[int]:
    """Positions of operators whose argument may stand in for their only result that is used. `outputs`: identities."""
    used = outputs.union(*(node.arguments for node in nodes))
    return [i for i, node in enumerate(nodes) if node.swappable and not used.intersection(node.results[1:])]


def without(position: int, call: Callable[[], Sequence[Any]]) -> Sequence[Any] | None:
    """The outputs with one operator handing its input through; None where that breaks the computation."""
    try:
        with _Recorder(position):
            return call()
    except Exception:  # a shape that no longer fits, an index out of range
        return None


def reduced_products(nodes: Sequence[Node]) -> list[str]:
    """`addmm -> sum`: a sum over a product's outputs with only affine steps and views between."""
    origin: dict[int, str] = {}
    found = []
    for node in nodes:
        labelled = [argument for argument in node.arguments if argument in origin]
        if node.name in PRODUCTS:
            origin |= dict.fromkeys(node.results, node.name)
        elif node.name in ADDING and labelled and node.elements[0] > node.elements[-1]:
            found.append(f"{origin[labelled[0]]} -> {node.name}")
        elif labelled and (node.name in VIEWS or (node.name in AFFINE and len(labelled) == 1)):
            origin |= dict.fromkeys(node.results, origin[labelled[0]])
    return found


def _node(func: Any, given: list[Any], made: list[Any]) -> Node:
    name = _name(func)
    in_place = name.endswith("_") and not name.startswith("_")
    return Node(
        name=name, read=frozenset(storage(t) for t in given),
        written=frozenset(storage(t) for t in (made + given[:1] if in_place else made)),
        arguments=tuple(id(t) for t in given), results=tuple(id(t) for t in made),
        elements=tuple(t.numel() for t in (*given, *made)),
        swappable=name not in VIEWS | ALLOCATIONS | MOVES and bool(made) and _stand_in(made[0], given) is not None,
    )


def _handed_through(func: Any, args: Any, keywords: Any, given: list[Any]) -> Any:
    if _name(func).endswith("_"):
        return args[0]
    result = func(*args, **keywords)
    first = result[0] if isinstance(result, (tuple, list)) else result
    stand_in = _stand_in(first, given)
    assert stand_in is not None, "only swappable operators are replaced"
    if isinstance(result, (tuple, list)):
        return type(result)([stand_in.clone(), *result[1:]])
    return stand_in.clone()


def _stand_in(result: Any, given: list[Any]) -> Any:
    return next((t for t in given if t.shape == result.shape and t.dtype == result.dtype), None)


def _name(func: Any) -> str:
    return str(func.overloadpacket.__name__)


def storage(tensor: Any) -> int:
    """Identity of the memory that a tensor is a view of."""
    return int(tensor.untyped_storage()._cdata)

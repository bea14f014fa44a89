"""What a traced torch value is, in the templates' words: an element-wise expression, over inputs or over one big operation."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from kernelskill.errors import WriterError
from kernelskill.writers.program import values
from kernelskill.writers.program.values import Value
from kernelskill.writers.template.expression import Call, Constant, Expression, Name

ACC = Name("acc")
"""The element of the big operation (matrix product, row reduction) that an expression goes on from."""


@dataclass(frozen=True)
class Leaf:
    """An input of the kernel: a forward argument, a parameter or a buffer."""

    name: str
    shape: tuple[int, ...]
    binding: str = ""
    """The statement that fetches it in `forward`; "" for an argument."""


@dataclass(frozen=True)
class Product:
    """A matrix product of two leaves."""

    a: Leaf
    b: Leaf
    a_transposed: bool = False
    b_transposed: bool = False
    linear: bool = False
    """The product of a linear layer: leading axes of `a` are flattened."""


@dataclass(frozen=True)
class RowOperation:
    """An operation along the trailing axes of a leaf."""

    operation: str
    input: Leaf
    axes: int = 1
    """How many trailing axes make up the row."""
    weight: Leaf | None = None
    bias: Leaf | None = None
    eps: float = 0.0
    keepdim: bool = False


@dataclass(frozen=True)
class Term:
    """A traced value: `expression` over the leaves and, with a root, over `acc`."""

    expression: Expression
    leaves: tuple[Leaf, ...] = ()
    root: Product | RowOperation | None = None
    transposed: bool = False
    """A two-dimensional leaf seen through `.T`; only a product can take it."""

    def leaf(self) -> Leaf | None:
        """The leaf itself, where the term is one and nothing else."""
        return self.leaves[0] if isinstance(self.expression, Name) and self.root is None else None


def constant(value: float) -> Term:
    """A number."""
    return Term(Constant(float(value)))


def of_leaf(leaf: Leaf) -> Term:
    """The leaf as a value."""
    return Term(Name(leaf.name), (leaf,))


def of_root(root: Product | RowOperation) -> Term:
    """The result of a big operation."""
    return Term(ACC, (), root)


def combine(function: str, *operands: Any) -> Any:
    """The function applied to terms and numbers. Raises WriterError where two big operations meet.

    Values of a program are combined as such: the element-wise functions of torch_ops.py are the same for both."""
    value = next((o for o in operands if isinstance(o, Value)), None)
    if value is not None:
        return values.combine(value.builder, function, *operands)
    terms = [o if isinstance(o, Term) else constant(o) for o in operands]
    if any(t.transposed for t in terms):
        raise WriterError(f"'{function}' of a transposed view is not known")
    roots = [t.root for t in terms if t.root is not None]
    if len(roots) > 1 and any(root != roots[0] for root in roots):
        raise WriterError(f"'{function}' joins two operations, which no template fuses")
    leaves = tuple(dict.fromkeys(leaf for t in terms for leaf in t.leaves))
    return Term(Call(function, tuple(t.expression for t in terms)), leaves, roots[0] if roots else None)


def transposed(term: Term) -> Term:
    """The term with its two axes swapped. Raises WriterError for anything but a two-dimensional leaf."""
    leaf = term.leaf()
    if leaf is None or len(leaf.shape) != 2:
        raise WriterError("a transpose of something other than a two-dimensional input is not known")
    return replace(term, transposed=not term.transposed)


def plain_leaf(value: Any, what: str) -> Leaf:
    """The leaf behind a value. Raises WriterError when something was computed before `what`."""
    leaf = value.leaf() if isinstance(value, Term) and not value.transposed else None
    if leaf is None:
        raise WriterError(f"{what} of a computed value is not known: the templates take inputs and parameters there")
    return leaf

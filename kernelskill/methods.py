"""Method cards: what an optimisation is, when it may be used, and what the code must show afterwards.

A card is `knowledge/methods/<id>.md`: YAML front matter (the fields of `MethodCard`), then a body that a code writer is given,
ending in a worked example (```cuda before, ```cuda after; ```python for what the host does). `broken_promises` compares
the facts of a solution with the facts of its parent, so that code that did something else is recognised whoever wrote it.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field, ValidationError, model_validator
from ruamel.yaml import YAML
from ruamel.yaml.error import MarkedYAMLError

from evaluator.types import Frozen
from kernelskill.errors import Location, MethodError
from kernelskill.model import Fact, Value
from kernelskill.vocabulary import lookup

Family = Literal["elementwise", "row_reduction", "transpose", "matmul", "full_reduction", "scan", "histogram", "stencil",
                 "convolution", "gather_scatter"]
"""Kinds of kernels a method is for. The first four can be declared by a task; the others are foreign kernels."""
Operator = Literal["==", "!=", "<", "<=", ">", ">=", "in", "not_in"]
COMPARE: dict[str, Callable[[Any, Any], bool]] = {
    "==": operator.eq, "!=": operator.ne, "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge,
    "in": lambda left, right: left in right, "not_in": lambda left, right: left not in right,
}
WORDS = {"==": "equal to", "!=": "different from", "<": "below", "<=": "at most", ">": "above", ">=": "at least",
         "in": "one of", "not_in": "none of"}
FRONT_MATTER = re.compile(r"\A---\n(.*?\n)---\n", re.DOTALL)
FENCE = re.compile(r"^```(cuda|python) (before|after)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
LAUNCH = re.compile(r"^// launch: (\w+) grid=(\S+) block=(\S+) args=(\S+)$", re.MULTILINE)
KIND_TYPES: dict[str, tuple[type, ...]] = {"number": (int, float), "bool": (bool,), "text": (str,)}


def _known_fact(name: str) -> str:
    if lookup(name) is None:
        raise ValueError(f"no fact is called `{name}` (names: kernelskill/vocabulary.py)")
    return name


FactName = Annotated[str, AfterValidator(_known_fact)]


class Condition(Frozen):
    """A predicate on the facts of one solution, or a comparison with its parent, or a list of which one must hold."""

    fact: FactName | None = None
    op: Operator = "=="
    value: bool | int | float | str | tuple[bool | int | float | str, ...] | None = None
    """The right-hand side; `true` when neither `value` nor `parent` is given."""
    parent: bool = False
    """Compare with the parent's value of the same fact."""
    any: tuple[Condition, ...] = ()
    """Instead of `fact`: one of these must hold."""

    @model_validator(mode="after")
    def _one_form(self) -> Condition:
        if bool(self.any) == (self.fact is not None):
            raise ValueError("a condition has either `fact` or `any`")
        if self.parent and self.value is not None:
            raise ValueError("give either `value` or `parent: true`")
        if self.fact is not None and not self.parent:
            self._check_value_type()
        return self

    def _check_value_type(self) -> None:
        spec = lookup(self.fact or "")
        assert spec is not None
        operand = self.operand
        listed = self.op in ("in", "not_in")
        if listed != isinstance(operand, tuple):
            raise ValueError(f"op `{self.op}` needs {'a list' if listed else 'a single value'}")
        for item in operand if isinstance(operand, tuple) else (operand,):
            if not isinstance(item, KIND_TYPES[spec.kind]) or (spec.kind == "number" and isinstance(item, bool)):
                raise ValueError(f"`{self.fact}` is a {spec.kind}, {item!r} is not")

    @property
    def operand(self) -> Value | tuple[Value, ...]:
        """The value to compare with, `true` by default."""
        return True if self.value is None else self.value

    def holds(self, child: Mapping[str, Fact], parent: Mapping[str, Fact]) -> bool | None:
        """True, False, or None when a fact it needs is unknown."""
        if self.any:
            results = [each.holds(child, parent) for each in self.any]
            return True if True in results else None if None in results else False
        left = child.get(self.fact or "")
        right = parent.get(self.fact or "") if self.parent else None
        if left is None or (self.parent and right is None):
            return None
        return COMPARE[self.op](left.value, right.value if right is not None else self.operand)

    def wanted(self, parent: Mapping[str, Fact]) -> str:
        """E.g. `vector_load_bytes at least 16`; a comparison with the parent names the parent's value."""
        if self.any:
            return " or ".join(each.wanted(parent) for each in self.any)
        name = self.fact or ""
        if not self.parent:
            return f"{name} {WORDS[self.op]} {_shown(self.operand)}"
        before = _shown(parent[name].value) if name in parent else "value"
        return f"{name} {WORDS[self.op]} the parent's {before}"

    def describe(self, child: Mapping[str, Fact], parent: Mapping[str, Fact]) -> str:
        """E.g. `vector_load_bytes at least 16 (is 4)`; values in brackets, `unknown` where there is no fact."""
        if self.any:
            return " or ".join(each.describe(child, parent) for each in self.any)
        name = self.fact or ""
        found = child[name].value if name in child else "unknown"
        if not self.parent:
            return f"{name} {WORDS[self.op]} {_shown(self.operand)} (is {_shown(found)})"
        before = parent[name].value if name in parent else "unknown"
        return f"{name} {WORDS[self.op]} the parent's {_shown(before)} (is {_shown(found)})"


def _shown(value: object) -> str:
    if isinstance(value, tuple):
        return ", ".join(_shown(item) for item in value)
    return str(value).lower() if isinstance(value, bool) else f"{value:.6g}" if isinstance(value, float) else str(value)


class Parameter(Frozen):
    """A knob of a method."""

    name: str
    type: Literal["int", "float", "bool", "text"]
    values: tuple[bool | int | float | str, ...] = ()
    """Sensible values, in the order to try them; empty: free."""
    default: bool | int | float | str
    meaning: str


class ExampleData(Frozen):
    """Sizes and float32 arrays of a worked example; shapes are lists of size names or integers."""

    sizes: dict[str, int]
    inputs: dict[str, tuple[str | int, ...]]
    outputs: dict[str, tuple[str | int, ...]]
    """Every output element must be written by both sides."""
    scratch: dict[str, tuple[str | int, ...]] = Field(default_factory=dict)
    rtol: float = 1e-5
    integers: dict[str, int] = Field(default_factory=dict)
    """Inputs that are int32 instead, each with the number of values it takes (from 0)."""
    arch: str = "sm_90"
    unsupported: str = ""
    """What the simulator cannot execute of the `after` side; it is only compiled then. Empty: both sides run and agree."""


class ExampleLaunch(Frozen):
    """One `// launch: KERNEL grid=… block=… args=…` line; expressions over size names, `/` rounds down, no spaces."""

    kernel: str
    grid: tuple[str, ...]
    block: tuple[str, ...]
    args: tuple[str, ...]


class ExampleSide(Frozen):
    """One side of a worked example: complete CUDA C and its launches in order, or a Python module with `run(inputs...)`."""

    language: Literal["cuda", "python"]
    source: str
    launches: tuple[ExampleLaunch, ...]


class MethodCard(Frozen):
    """One optimisation that an expert would name."""

    id: str = Field(pattern=r"^[a-z][a-z0-9_]*$")
    title: str
    summary: str
    families: tuple[Family, ...] = Field(min_length=1)
    preconditions: tuple[Condition, ...] = ()
    """Facts of the solution it is applied to; one that is false forbids the method, an unknown one does not."""
    parameters: tuple[Parameter, ...] = ()
    promises: tuple[Condition, ...] = Field(min_length=1)
    """Facts that the code must show afterwards."""
    forbids: tuple[Condition, ...] = ()
    """Facts that the code must not show afterwards: it did more than this method."""
    changes_precision: bool
    """The result may differ by more than reordering the same fp32 operations."""
    requires: tuple[str, ...] = ()
    """Methods that must be on the path before this one, where their own family uses them."""
    conflicts: tuple[str, ...] = ()
    sources: tuple[str, ...] = Field(min_length=1)
    example: ExampleData
    body: str = ""
    """The text below the front matter: what a code writer is given."""
    path: str = ""

    def worked_example(self) -> dict[str, ExampleSide]:
        """`before` and `after`, as the body holds them."""
        return {side: ExampleSide(language=language, source=text, launches=tuple(_launches(text)))
                for language, side, text in FENCE.findall(self.body)}


def _launches(source: str) -> Iterator[ExampleLaunch]:
    for kernel, *parts in LAUNCH.findall(source):
        grid, block, args = (tuple(part.split(",")) for part in parts)
        yield ExampleLaunch(kernel=kernel, grid=grid, block=block, args=args)


def load_methods(folder: Path) -> dict[str, MethodCard]:
    """Every card of `folder`, by id. Raises MethodError with `path:line` and what is wrong."""
    cards = {card.id: card for card in map(_load_card, sorted(folder.glob("*.md"))) if card is not None}
    if not cards:
        raise MethodError("no method cards here", location=Location(folder), hint="cards are files <method>.md")
    for card in cards.values():
        for other in (*card.requires, *card.conflicts):
            if other not in cards:
                raise MethodError(f"card `{card.id}` names the unknown method `{other}`", location=Location(card.path),
                                  hint=f"known: {', '.join(cards)}")
    return cards


def _load_card(path: Path) -> MethodCard | None:
    if path.name == "README.md":
        return None
    text = path.read_text(encoding="utf-8")
    head = FRONT_MATTER.match(text)
    if head is None:
        raise MethodError("a card starts with `---`, YAML front matter and `---`", location=Location(path, 1))
    try:
        tree = YAML(typ="rt").load(head[1])
        if not isinstance(tree, dict):
            raise MethodError("front matter is fields, one `name: value` a line", location=Location(path, 2))
        card = MethodCard.model_validate({**tree, "body": text[head.end():].lstrip("\n"), "path": str(path)})
    except MarkedYAMLError as error:
        line = error.problem_mark.line + 2 if error.problem_mark else 1
        raise MethodError(f"not YAML: {error.problem}", location=Location(path, line)) from None
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"]) or "card"
        raise MethodError(f"{where}: {first['msg']}", location=Location(path, _line_of(tree, first["loc"])),
                          hint="fields: knowledge/README.md") from None
    _check_body(card, path)
    return card


def _line_of(tree: Any, loc: tuple[int | str, ...]) -> int:
    """Line in the file of the innermost YAML node that pydantic's `loc` names; the front matter starts on line 2."""
    line = 0
    for key in loc:
        known = range(len(tree)) if isinstance(tree, list) else tree if isinstance(tree, dict) else ()
        if key not in known:
            break
        line = getattr(tree.lc, "item" if isinstance(tree, list) else "key")(key)[0]
        tree = tree[key]
    return line + 2


def _check_body(card: MethodCard, path: Path) -> None:
    if card.id != path.stem:
        raise MethodError(f"id `{card.id}` differs from the file name", location=Location(path, 2),
                          hint=f"rename the file to {card.id}.md or change the id")
    example = card.worked_example()
    for side in ("before", "after"):
        if side not in example:
            raise MethodError(f"no ```cuda {side} block", location=Location(path), hint="see knowledge/README.md")
        if example[side].language == "cuda" and not example[side].launches:
            raise MethodError(f"the `{side}` example has no `// launch:` line", location=Location(path),
                              hint="// launch: KERNEL grid=EXPR[,EXPR] block=EXPR[,EXPR] args=NAME,…")
    names = {*card.example.sizes, *card.example.inputs, *card.example.outputs, *card.example.scratch}
    for side, code in example.items():
        unknown = {name for launch in code.launches for name in launch.args} - names
        if unknown:
            raise MethodError(f"the `{side}` example launches with unknown `{min(unknown)}`", location=Location(path),
                              hint="declare it under `example:` in the front matter")


def broken_promises(card: MethodCard, parent: Mapping[str, Fact], child: Mapping[str, Fact]) -> list[str]:
    """Sentences, with values, for each promise of `card` that `child` breaks and each thing it forbids that `child` shows.

    A fact that is unknown neither keeps nor breaks a promise.
    """
    broken = [f"{card.id} promises {promise.describe(child, parent)}" for promise in card.promises
              if promise.holds(child, parent) is False]
    return broken + [f"{card.id} forbids {rule.describe(child, parent)}" for rule in card.forbids
                     if rule.holds(child, parent) is True]


def unmet_preconditions(card: MethodCard, facts: Mapping[str, Fact]) -> list[str]:
    """Sentences, with values, for each precondition that is false for a solution with these facts."""
    return [f"{card.id} needs {condition.describe(facts, facts)}" for condition in card.preconditions
            if condition.holds(facts, facts) is False]

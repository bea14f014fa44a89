"""Method cards: what an optimisation is, when it may be used, and what the code must show afterwards.

A card is `knowledge/methods/<id>.md`: YAML front matter (the fields of `MethodCard`), then a body that a code writer is given,
ending in a worked example (```cuda before, ```cuda after; ```python for what the host does). `broken_promises` compares
the facts of a solution with the facts of its parent, so that code that did something else is recognised whoever wrote it.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Collection, Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field, ValidationError, model_validator

from evaluator.types import Frozen, PrecisionClass
from kernelskill import documentcache
from kernelskill.errors import Location, MethodError, did_you_mean, near_or_all
from kernelskill.issues import Issue, schema_issues
from kernelskill.model import Fact, Part, Value
from kernelskill.vocabulary import VOCABULARY, lookup
from kernelskill.yamlsource import Document, parse

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
PARTS: dict[Part, str] = {"kernels": "the kernels", "launch": "grid and block of the launches",
                          "host": "what the host calls besides launching and allocating"}
NARROW = frozenset({"tf32", "bf16", "fp16"})
"""Precision classes that another order of fp32 operations does not explain."""
FRONT_MATTER = re.compile(r"\A---\n(.*?\n)---\n", re.DOTALL)
FENCE = re.compile(r"^```(cuda|python) (before|after)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
LAUNCH = re.compile(r"^// launch: (\w+) grid=(\S+) block=(\S+) args=(\S+)$", re.MULTILINE)
KIND_TYPES: dict[str, tuple[type, ...]] = {"number": (int, float), "bool": (bool,), "text": (str,)}


def _known_fact(name: str) -> str:
    if lookup(name) is None:
        raise ValueError(f"no fact is called `{name}`: {did_you_mean(name, VOCABULARY) or 'names: docs/rules-reference.md'}")
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

    @property
    def compares(self) -> bool:
        """It, or one of its alternatives, is a comparison with the parent."""
        return self.parent or any(each.compares for each in self.any)

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
    follow_up: tuple[str, ...] = ()
    """A coupled edit: this step may cost time by itself, one of these then has to follow before the two are judged together."""
    scope: tuple[Part, ...] = ("kernels", "launch")
    """The parts of a solution that the method may change."""
    sources: tuple[str, ...] = Field(min_length=1)
    example: ExampleData
    body: str = ""
    """The text below the front matter: what a code writer is given."""
    path: str = ""

    def worked_example(self) -> dict[str, ExampleSide]:
        """`before` and `after`, as the body holds them."""
        return {side: ExampleSide(language=language, source=text, launches=tuple(_launches(text)))
                for language, side, text in FENCE.findall(self.body)}


CARD_KEYS = frozenset({*MethodCard.model_fields, *Condition.model_fields, *Parameter.model_fields,
                       *ExampleData.model_fields}) - {"body", "path"}
"""What an author may write."""


def _launches(source: str) -> Iterator[ExampleLaunch]:
    for kernel, *parts in LAUNCH.findall(source):
        grid, block, args = (tuple(part.split(",")) for part in parts)
        yield ExampleLaunch(kernel=kernel, grid=grid, block=block, args=args)


def load_methods(folder: Path) -> dict[str, MethodCard]:
    """Every card of `folder`, by id. Raises MethodError that lists every error of every card with its place and a hint."""
    paths = [path for path in sorted(folder.glob("*.md")) if path.name != "README.md"]
    if not paths:
        raise MethodError("no method cards here", location=Location(folder), hint="cards are files <method>.md")
    read = [_read_card(path) for path in paths]
    cards = {card.id: card for card, _ in read if card is not None}
    issues = [issue for _, found in read for issue in found]
    for card in cards.values():
        issues += _unknown_methods(card, {path.stem for path in paths})
    if issues:
        listing = "\n".join(map(str, issues))
        raise MethodError(f"{len(issues)} error{'s' * (len(issues) > 1)} in method cards\n{listing}")
    return cards


def _read_card(path: Path) -> tuple[MethodCard | None, list[Issue]]:
    """The card and what is wrong with it. A card without issues is kept between processes: reading all takes half a second."""
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        return None, [_issue(Location(path), f"cannot read the file: {error}")]
    code = documentcache.code_digest(*(Path(__file__).with_name(f"{name}.py") for name in ("methods", "vocabulary")))
    kept = documentcache.entry(f"card {path.stem}: {code} {text}")
    if (known := documentcache.fetch(kept)) is not None:
        return MethodCard.model_validate({**known, "path": str(path)}), []
    document, body, issues = _front_matter(path, text)
    if issues:
        return None, issues
    try:
        card = MethodCard.model_validate({**document.data, "body": body, "path": str(path)})
    except ValidationError as error:
        return None, list(schema_issues(error, document, (), document.data, CARD_KEYS))
    issues = list(_body_issues(card, document))
    if not issues:
        documentcache.store(kept, card.model_dump(mode="json", exclude={"path"}))
    return card, issues


def _front_matter(path: Path, text: str) -> tuple[Document, str, list[Issue]]:
    """The fields with their places, the text below them, and what is wrong with their YAML."""
    head = FRONT_MATTER.match(text)
    if head is None:
        wrong = _issue(Location(path, 1, 1), "a card starts with `---`, fields and `---`", "see knowledge/README.md")
        return Document(path, None), "", [wrong]
    document, problems = parse(text[:head.end(1)], path)  # with the first `---`, so that lines are those of the file
    issues = [Issue("yaml", "error", p.location or Location(path), p.message, p.hint) for p in problems]
    if not issues and not isinstance(document.data, dict):
        issues = [_issue(Location(path, 2, 1), "front matter is fields, one `name: value` a line")]
    return document, text[head.end():].lstrip("\n"), issues


def _issue(location: Location, message: str, hint: str = "") -> Issue:
    return Issue("card", "error", location, message, hint)


def _unknown_methods(card: MethodCard, known: Collection[str]) -> Iterator[Issue]:
    for key in ("requires", "conflicts", "follow_up"):
        for index, other in enumerate(getattr(card, key)):
            if other not in known:
                document, *_ = _front_matter(Path(card.path), Path(card.path).read_text(encoding="utf-8"))
                place = document.at((key, index))
                yield _issue(place, f"`{key}` names the unknown method `{other}`", near_or_all(other, known))


def _body_issues(card: MethodCard, document: Document) -> Iterator[Issue]:
    if card.id != document.path.stem:
        yield _issue(document.at(("id",)), f"id `{card.id}` differs from the file name",
                     f"rename the file to {card.id}.md or change the id")
    example, place = card.worked_example(), Location(document.path)
    names = {*card.example.sizes, *card.example.inputs, *card.example.outputs, *card.example.scratch}
    for side in ("before", "after"):
        if side not in example:
            yield _issue(place, f"no ```cuda {side} block", "see knowledge/README.md")
            continue
        if example[side].language == "cuda" and not example[side].launches:
            yield _issue(place, f"the `{side}` example has no `// launch:` line",
                         "// launch: KERNEL grid=EXPR[,EXPR] block=EXPR[,EXPR] args=NAME,…")
        for name in sorted({name for launch in example[side].launches for name in launch.args} - names):
            yield _issue(document.at(("example",), key=True), f"the `{side}` example launches with unknown `{name}`",
                         did_you_mean(name, names) or "declare it under `example:` in the front matter")


def broken_promises(card: MethodCard, parent: Mapping[str, Fact], child: Mapping[str, Fact]) -> list[str]:
    """Sentences, with values, for each promise of `card` that `child` breaks and each thing it forbids that `child` shows.

    A fact that is unknown neither keeps nor breaks a promise.
    """
    broken = [f"{card.id} promises {promise.describe(child, parent)}" for promise in card.promises
              if promise.holds(child, parent) is False]
    return broken + [f"{card.id} forbids {rule.describe(child, parent)}" for rule in card.forbids
                     if rule.holds(child, parent) is True]


def broken_scope(card: MethodCard, changed: Collection[Part]) -> list[str]:
    """Sentences for each part that the code changed although the method leaves it alone."""
    return [f"{card.id} does not change {PARTS[part]}, the code does" for part in PARTS
            if part in changed and part not in card.scope]


def broken_precision(card: MethodCard, before: PrecisionClass | None, after: PrecisionClass | None) -> list[str]:
    """A sentence where the code fell to a narrower number format than the parent's although the method keeps the precision."""
    if card.changes_precision or before is None or before in NARROW or after not in NARROW:
        return []
    return [f"{card.id} keeps the precision, the code falls from {before} to {after}"]


def matching_methods(cards: Mapping[str, MethodCard], parent: Mapping[str, Fact], child: Mapping[str, Fact],
                     changed: Collection[Part]) -> list[str]:
    """Methods that the step from `parent` to `child` could have been, the one with most promises first.

    Every promise is known to hold and did not all hold before, nothing forbidden shows, and the method was open at `parent`.
    """
    found = [card for card in cards.values() if _is_step_of(card, parent, child) and not broken_scope(card, changed)
             and not obstacles(card, cards, parent)]
    return [card.id for card in sorted(found, key=lambda card: (-len(card.promises), card.id))]


def _is_step_of(card: MethodCard, parent: Mapping[str, Fact], child: Mapping[str, Fact]) -> bool:
    kept = all(promise.holds(child, parent) is True for promise in card.promises)
    new = any(promise.holds(parent, parent) is not True for promise in card.promises)
    return kept and new and not any(rule.holds(child, parent) is True for rule in card.forbids)


def obstacles(card: MethodCard, cards: Mapping[str, MethodCard], facts: Mapping[str, Fact]) -> list[str]:
    """Sentences for everything in a card that keeps the method from a solution with these facts.

    That is a precondition that is false, another family of kernels, a method that has to come first, and one on the path that
    rules it out.
    """
    family = facts.get("task_family")
    foreign = family is not None and family.value not in card.families
    other = [f"{card.id} is for {', '.join(card.families)}, not for {family.value}"] if family and foreign else []
    missing = [f"{card.id} needs {name} first" for name in card.requires if not _is_there(cards[name], facts)]
    against = {*card.conflicts, *(each.id for each in cards.values() if card.id in each.conflicts)}
    clashes = [f"{card.id} does not go with {name}, which is applied" for name in sorted(against) if _applied(name, facts)]
    return unmet_preconditions(card, facts) + other + missing + clashes


def _is_there(card: MethodCard, facts: Mapping[str, Fact]) -> bool:
    """It was applied on the way here, or the solution shows what it promises since its start."""
    lasting = [promise for promise in card.promises if not promise.compares]
    return _applied(card.id, facts) or any(promise.holds(facts, facts) is True for promise in lasting)


def _applied(method: str, facts: Mapping[str, Fact]) -> bool:
    applied = facts.get(f"applied.{method}")
    return applied is not None and applied.value is True


def unmet_preconditions(card: MethodCard, facts: Mapping[str, Fact]) -> list[str]:
    """Sentences, with values, for each precondition that is false for a solution with these facts."""
    return [f"{card.id} needs {condition.describe(facts, facts)}" for condition in card.preconditions
            if condition.holds(facts, facts) is False]

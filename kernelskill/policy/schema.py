"""The rule language as pydantic models: the one definition from which checking, editors and the reference page follow.

A rule file is `rules: [Rule, ...]`. Numbers stay numbers and texts stay texts (nothing is coerced), unknown keys are refused.
"""

from __future__ import annotations

import json
from typing import Annotated, Any, Literal, Union

from pydantic import (
    BaseModel,
    ConfigDict,
    Discriminator,
    Field,
    StrictBool,
    StrictFloat,
    StrictInt,
    StrictStr,
    Tag,
    model_validator,
)

from kernelskill.vocabulary import VOCABULARY

Scalar = StrictBool | StrictInt | StrictFloat | StrictStr
Number = Annotated[StrictInt | StrictFloat, Field(allow_inf_nan=False)]
Operator = Literal["==", "!=", "<", "<=", ">", ">=", "in", "not_in", "between", "missing", "exists"]
RULE_ID = r"^[a-z][a-z0-9_]*$"
GROUPS = ("all", "any", "none")
ACTIONS = ("derive", "propose", "veto", "prefer", "require", "stop")


class RuleModel(BaseModel):
    """Base of the language: immutable, unknown keys refused, docstrings become the schema's descriptions."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)


class FactName(RuleModel):
    """A threshold that is a device quantity instead of a number, e.g. `{fact: device_shared_bytes_per_block}`."""

    fact: str


class Test(RuleModel):
    """One comparison. A fact that is not known makes it neither true nor false, so the rule does not fire."""

    __test__ = False

    fact: str
    """A word of the vocabulary, or a fact that some rule derives."""
    op: Operator = "=="
    """`between` includes both ends; `missing` and `exists` ask whether the fact is known and take no value."""
    value: Scalar | FactName | list[Scalar] = True
    """A scalar; a list for `in` and `not_in`; `[low, high]` for `between`; `{fact: device_...}` for an order comparison."""

    @model_validator(mode="after")
    def _operand_fits(self) -> Test:
        """The operand has the shape that the operator needs (types against the vocabulary are the lint's business)."""
        if self.op in ("missing", "exists"):
            if "value" in self.model_fields_set:
                raise ValueError(f"`{self.op}` takes no value")
        elif self.op in ("in", "not_in"):
            if not isinstance(self.value, list) or not self.value:
                raise ValueError(f"`{self.op}` needs a list with at least one value")
        elif self.op == "between":
            if not isinstance(self.value, list) or len(self.value) != 2 or not all(map(is_number, self.value)):
                raise ValueError("`between` needs two numbers: [low, high]")
        elif isinstance(self.value, list):
            raise ValueError(f"`{self.op}` compares with one value; a list goes with in, not_in, between")
        elif self.op in ("==", "!=") and isinstance(self.value, FactName):
            raise ValueError(f"`{self.op}` compares with a value; a device fact goes with <, <=, >, >=")
        elif self.op in ("<", "<=", ">", ">=") and not (is_number(self.value) or isinstance(self.value, FactName)):
            raise ValueError(f"`{self.op}` compares numbers")
        return self


class All(RuleModel):
    """Holds when every part holds."""

    all: list[Condition] = Field(min_length=1)


class Any_(RuleModel):
    """Holds when at least one part holds."""

    model_config = ConfigDict(title="Any")

    any: list[Condition] = Field(min_length=1)


class None_(RuleModel):
    """Holds when every part is known to be false (an unknown part keeps it from holding)."""

    model_config = ConfigDict(title="None")

    none: list[Condition] = Field(min_length=1)


def _tag(keys: tuple[str, ...], value: Any) -> str | None:
    """Tag of the first of `keys` that the mapping (or model) has; None when it has none."""
    names = value if isinstance(value, dict) else getattr(value, "__dict__", {})
    return next((f"<{key}>" for key in keys if key in names), None)


Condition = Annotated[
    Union[Annotated[Test, Tag("<fact>")], Annotated[All, Tag("<all>")], Annotated[Any_, Tag("<any>")],  # noqa: UP007  (recursive)
          Annotated[None_, Tag("<none>")]],
    Discriminator(lambda value: _tag(("fact", *GROUPS), value), custom_error_type="condition",
                  custom_error_message="a condition is {fact: ...}, {all: [...]}, {any: [...]} or {none: [...]}"),
]


class GainRange(RuleModel):
    """An expected speedup between two ratios of times; the middle counts."""

    low: Number
    high: Number

    @model_validator(mode="after")
    def _ordered(self) -> GainRange:
        """The range is not upside down and not negative."""
        if not 0 < self.low <= self.high:
            raise ValueError("a gain range needs 0 < low <= high (ratios of times, 1.0 = no gain)")
        return self


class GainFormula(RuleModel):
    """An expected speedup computed from facts, and what to expect when one of them is not known."""

    formula: str
    """Arithmetic over numeric facts: + - * / min max and parentheses."""
    default: Number = 1.0
    """The gain when a fact of the formula is not known."""


def _gain_tag(value: Any) -> str:
    if isinstance(value, (str, GainFormula)) or (isinstance(value, dict) and "formula" in value):
        return "<text>" if isinstance(value, str) else "<formula>"
    return "<range>" if isinstance(value, (dict, GainRange)) else "<number>"


Gain = Annotated[
    Union[Annotated[Number, Tag("<number>")], Annotated[str, Tag("<text>")], Annotated[GainRange, Tag("<range>")],  # noqa: UP007
          Annotated[GainFormula, Tag("<formula>")]],
    Discriminator(_gain_tag),
]


class Derive(RuleModel):
    """Makes a fact true for the rules that follow, e.g. `bottleneck.dram`."""

    derive: str

    def __str__(self) -> str:
        return f"derive {self.derive}"


class Propose(RuleModel):
    """Proposes a method."""

    propose: str
    gain: Gain = 1.0
    """Old time / new time: a number, `{low, high}`, a formula text or `{formula, default}`."""
    params: dict[str, Scalar] = Field(default_factory=dict)
    """Parameters of the method that the rule decides."""

    def __str__(self) -> str:
        return f"propose {self.propose}"


class Veto(RuleModel):
    """Forbids a method this time."""

    veto: str

    def __str__(self) -> str:
        return f"veto {self.veto}"


class Prefer(RuleModel):
    """Where both methods are candidates, the second one loses."""

    prefer: str
    over: str

    def __str__(self) -> str:
        return f"prefer {self.prefer} over {self.over}"


class Require(RuleModel):
    """The second method waits until the first one has been applied on the way to this solution (`applied.<first>`)."""

    require: str
    before: str

    def __str__(self) -> str:
        return f"require {self.require} before {self.before}"


class Stop(RuleModel):
    """Ends the run with this reason."""

    stop: str

    def __str__(self) -> str:
        return f"stop {self.stop}"


Action = Annotated[
    Union[Annotated[Derive, Tag("<derive>")], Annotated[Propose, Tag("<propose>")], Annotated[Veto, Tag("<veto>")],  # noqa: UP007
          Annotated[Prefer, Tag("<prefer>")], Annotated[Require, Tag("<require>")], Annotated[Stop, Tag("<stop>")]],
    Discriminator(lambda value: _tag(ACTIONS, value), custom_error_type="action",
                  custom_error_message="an action is one of " + ", ".join(f"{{{name}: ...}}" for name in ACTIONS)),
]


class ForEach(RuleModel):
    """Every method but some, e.g. `{method: "*", except: [launch_tuning]}`."""

    method: Literal["*"] = "*"
    """All methods that have a card."""
    but: list[str] = Field(alias="except", min_length=1)
    """Methods that the rule has no copy for."""


class Rule(RuleModel):
    """One rule: when these facts hold, then do this, because of that."""

    id: str = Field(pattern=RULE_ID)
    """Name, unique over all folders (a later folder replaces a rule by using its id)."""
    title: str = ""
    """A few words for lists."""
    for_each: Annotated[Annotated[Literal["method"], Tag("<word>")] | Annotated[ForEach, Tag("<but>")],
                        Discriminator(lambda value: "<but>" if isinstance(value, (dict, ForEach)) else "<word>")] | None = None
    """`method`: one copy of the rule for every method; `{method}` stands for its id in facts, actions and `because`.
    `{method: "*", except: [launch_tuning]}`: for every method but these."""
    when: Condition
    """The condition over facts."""
    then: list[Action] = Field(min_length=1)
    """What follows, all of it."""
    priority: int = Field(500, ge=0, le=999, strict=True)
    """Higher goes first: a method's rank is the highest priority that proposes it."""
    because: str = ""
    """The reason in one sentence; `{fact}` shows the value of a fact of `when`."""
    source: str = ""
    """Where the rule comes from: guide section, paper or measured run."""
    status: Literal["stable", "experimental"] = "experimental"
    """`stable` needs evidence from recorded runs."""
    since: str = ""
    """First version that had the rule."""


    @property
    def excepted(self) -> tuple[str, ...]:
        """Methods that a `for_each` rule has no copy for."""
        return tuple(self.for_each.but) if isinstance(self.for_each, ForEach) else ()


class RuleFile(RuleModel):
    """A file of rules."""

    rules: list[Rule]


def named_methods(action: Action) -> dict[str, str]:
    """The methods that an action names, by key."""
    keys = () if isinstance(action, (Derive, Stop)) else ("propose", "veto", "prefer", "over", "require", "before")
    return {key: getattr(action, key) for key in keys if hasattr(action, key)}


def is_number(value: object) -> bool:
    """True for int and float, not for bool."""
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def json_schema() -> str:
    """The JSON schema of a rule file, for editors (`rules/schema.json`); the text is deterministic."""
    schema = RuleFile.model_json_schema()
    schema["$defs"]["Test"]["properties"]["fact"]["examples"] = sorted(VOCABULARY)  # editors offer them
    schema = {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": "KernelSkill rule file", **schema}
    return json.dumps(schema, indent=2, sort_keys=True) + "\n"

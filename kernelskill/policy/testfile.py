"""`<rule set>.test.yaml`: cases of facts with what must and must not fire."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from pydantic import Field, ValidationError

from kernelskill.errors import Location
from kernelskill.issues import Issue, keys_of, schema_issues
from kernelskill.policy.schema import RuleModel, Scalar
from kernelskill.yamlsource import Document, read_document


class Case(RuleModel):
    """One set of facts and what the rules must make of it."""

    name: str
    """A sentence."""
    facts: dict[str, Scalar] = Field(default_factory=dict)
    """Observed facts; derived ones follow from rules. What is not here is unknown."""
    fires: list[str] = Field(default_factory=list)
    """Rules that must fire; `failed_here` means any of its copies, `failed_here[launch_tuning]` that one."""
    not_fires: list[str] = Field(default_factory=list)
    """Rules that must not fire; of a `for_each` rule's bare id, none of its copies."""
    chooses: str | None = None
    """The method that must be chosen."""
    stops: str | None = None
    """The reason with which the run must stop."""


class CaseFile(RuleModel):
    """A test file."""

    cases: list[Case]


@dataclass(frozen=True)
class LoadedCase:
    """A case and where it stands."""

    case: Case
    location: Location
    document: Document
    index: int

    def at(self, *keys: str | int) -> Location:
        """Place of a part of the case."""
        return self.document.at(("cases", self.index, *keys))


def test_path(rule_file: Path) -> Path:
    """The test file that belongs to a rule file."""
    return rule_file.with_name(rule_file.stem + ".test.yaml")


def names_rule(name: str, rule: str) -> bool:
    """Does a name in `fires` mean this rule id? A bare id means every copy of a `for_each` rule."""
    return name == rule or rule.startswith(f"{name}[")


def read_cases(path: Path) -> tuple[list[LoadedCase], list[Issue]]:
    """The cases of one test file, and its problems."""
    document, problems = read_document(path)
    issues = [Issue("yaml", "error", p.location or Location(path), p.message, p.hint) for p in problems]
    if issues:
        return [], issues
    try:
        cases = CaseFile.model_validate(document.data).cases
    except ValidationError as error:
        return [], list(schema_issues(error, document, (), document.data, keys_of(RuleModel)))
    return [LoadedCase(case, document.at(("cases", i, "name")), document, i) for i, case in enumerate(cases)], []

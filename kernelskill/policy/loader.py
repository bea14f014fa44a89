"""Folders of rule files to a RuleBook; every problem of every file is collected before anything is refused."""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from kernelskill import documentcache
from kernelskill.errors import Location, RuleError, did_you_mean
from kernelskill.issues import Issue, keys_of, schema_issues
from kernelskill.policy.compile import build_program, durable_rules
from kernelskill.policy.conditions import tests
from kernelskill.policy.lint import lint
from kernelskill.policy.rulebook import LoadedRule, RuleBook, in_order
from kernelskill.policy.schema import Rule, RuleModel, named_methods
from kernelskill.vocabulary import PER_METHOD
from kernelskill.yamlsource import Document, Keys, read_document


@dataclass
class _Reading:
    """What was found so far."""

    methods: frozenset[str]
    rules: dict[str, list[LoadedRule]] = field(default_factory=dict)
    """Base id -> its copies (one, or one per method)."""
    issues: list[Issue] = field(default_factory=list)
    assumed: set[str] = field(default_factory=set)
    """Facts that broken rules would derive: nobody is to be told that no rule derives them."""

    def book(self) -> RuleBook:
        """The rules that could be read."""
        return RuleBook(in_order(rule for copies in self.rules.values() for rule in copies), self.methods)

    def error(self, check: str, location: Location, message: str, hint: str = "") -> None:
        """Notes an error."""
        self.issues.append(Issue(check, "error", location, message, hint))


def load_rules(folders: Sequence[Path], methods: Collection[str]) -> RuleBook:
    """Rules of all folders; a later folder replaces rules of earlier ones by id.

    Raises RuleError that lists every error with path:line:column and a hint; warnings are in the book.
    """
    reading = _read(folders, methods)
    book = reading.book()
    proof = documentcache.entry(f"no issues: {documentcache.code_digest(*_code())} {book.digest}")
    if not reading.issues and documentcache.fetch(proof) is not None:
        return book
    book, issues = _checked(reading, with_tests=False)
    if not issues:
        documentcache.store(proof, [])
    errors = [issue for issue in issues if issue.severity == "error"]
    if errors:
        listing = "\n".join(map(str, errors))
        raise RuleError(f"{len(errors)} error{'s' if len(errors) > 1 else ''} in rule files\n{listing}")
    return book


def check_rules(folders: Sequence[Path], methods: Collection[str], *, with_tests: bool = True) -> tuple[RuleBook, list[Issue]]:
    """The book of the rules that could be read, and every issue, in the order of the files.

    `with_tests` looks at the test files beside the rules too. Raises nothing for wrong rules.
    """
    return _checked(_read(folders, methods), with_tests=with_tests)


def _checked(reading: _Reading, *, with_tests: bool) -> tuple[RuleBook, list[Issue]]:
    book = reading.book()
    issues = [*reading.issues, *lint(book, reading.assumed, with_tests)]
    if not any(issue.severity == "error" for issue in issues):
        issues += _engine_limits(book)
    issues = sorted(_once(issues), key=lambda issue: (str(issue.location.path), issue.location.line or 0,
                                                      issue.location.column or 0, issue.message))
    warnings = tuple(str(issue) for issue in issues if issue.severity == "warning")
    return RuleBook(book.rules, book.methods, warnings), issues


def _code() -> list[Path]:
    """Files of the code that judges rules."""
    folder = Path(__file__).parent
    return [*sorted(folder.glob("*.py")), *(folder.parent / f"{name}.py" for name in ("vocabulary", "issues", "yamlsource"))]


def _read(folders: Sequence[Path], methods: Collection[str]) -> _Reading:
    reading = _Reading(frozenset(methods))
    for folder in folders:
        _read_folder(Path(folder), reading)
    return reading


def methods_named(folders: Sequence[Path]) -> frozenset[str]:
    """Every method that a rule names, for tools that have no catalogue of methods at hand."""
    reading = _read(folders, ())
    rules = [rule.rule for copies in reading.rules.values() for rule in copies]
    acted = {method for rule in rules for action in rule.then for method in named_methods(action).values()}
    asked = {match[2] for rule in rules for _, test in tests(rule.when) if (match := PER_METHOD.match(test.fact))}
    return frozenset(acted | asked)


def _once(issues: list[Issue]) -> Iterator[Issue]:
    """A `for_each` rule repeats its problem for every method: the first one stands for all."""
    seen: set[tuple[str, Location]] = set()
    for issue in issues:
        if (issue.check, issue.location) not in seen:
            seen.add((issue.check, issue.location))
            yield issue


def _engine_limits(book: RuleBook) -> Iterator[Issue]:
    try:
        durable_rules(build_program(book))
    except RuleError as error:
        yield Issue("engine-limit", "error", error.location or Location("rules"), error.message, error.hint)


def rule_files(folder: Path) -> list[Path]:
    """Rule files of a folder, in a fixed order; test files are not rule files."""
    return sorted(path for path in folder.rglob("*.yaml") if not path.name.endswith(".test.yaml"))


def _read_folder(folder: Path, reading: _Reading) -> None:
    if not folder.is_dir():
        return reading.error("folder", Location(folder), "no such folder of rules")
    here: dict[str, Location] = {}
    for path in rule_files(folder):
        document, problems = read_document(path)
        reading.issues += [Issue("yaml", "error", p.location or Location(path), p.message, p.hint) for p in problems]
        for where, raw in _rules_of(document, reading):
            _read_rule(document, where, raw, here, reading)
    return None


def _rules_of(document: Document, reading: _Reading) -> Iterator[tuple[Keys, Any]]:
    data = document.data
    if data is None:
        return
    if not isinstance(data, dict) or not isinstance(data.get("rules"), list):
        reading.error("schema", document.at(()), "a rule file is a list under the key `rules`", "start it with `rules:`")
        return
    for key in data:
        if key != "rules":
            reading.error("schema", document.at((key,), key=True), f"unknown key `{key}`", did_you_mean(key, ["rules"]))
    yield from ((("rules", index), raw) for index, raw in enumerate(data["rules"]))


def _read_rule(document: Document, where: Keys, raw: Any, here: dict[str, Location], reading: _Reading) -> None:
    """One rule of a file: its copies replace those of an earlier folder."""
    try:
        rule = Rule.model_validate(raw)
    except ValidationError as error:
        reading.issues += schema_issues(error, document, where, raw, keys_of(RuleModel))
        reading.assumed |= _derived_by(raw, reading.methods)
        return
    place = document.at((*where, "id"))
    if rule.id in here:
        reading.error("duplicate-id", place, f"rule id {rule.id} is used twice", f"the other one: {here[rule.id]}")
        return
    here[rule.id] = place
    earlier = reading.rules.get(rule.id, [])
    copies = copies_of(rule, raw, document, where, reading.methods)
    reading.rules[rule.id] = [dataclasses.replace(copy, replaced=_counterpart(copy, earlier)) for copy in copies]


def _counterpart(rule: LoadedRule, earlier: Sequence[LoadedRule]) -> LoadedRule | None:
    """The rule of an earlier folder that this one replaces: the copy for the same method, else its first."""
    return next((other for other in earlier if other.id == rule.id), earlier[0] if earlier else None)


def _derived_by(raw: Any, methods: Collection[str]) -> set[str]:
    """What a broken rule seems to derive."""
    actions = raw.get("then") if isinstance(raw, dict) else None
    names = [str(action["derive"]) for action in actions if isinstance(action, dict) and "derive" in action] \
        if isinstance(actions, list) else []
    return {_fill(name, method) for name in names for method in (methods if "{method}" in name else [""])}


def copies_of(rule: Rule, raw: Mapping[str, Any], document: Document, where: Keys,
              methods: Collection[str]) -> Iterator[LoadedRule]:
    """The rule itself, or one copy per method of a `for_each` rule."""
    if rule.for_each is None:
        yield LoadedRule(rule.id, rule, raw, document, where)
        return
    for method in sorted(set(methods) - set(rule.excepted)):
        filled = {key: _fill(value, method) for key, value in raw.items()}
        yield LoadedRule(f"{rule.id}[{method}]", Rule.model_validate(filled), filled, document, where)


def _fill(value: Any, method: str) -> Any:
    """The value with `{method}` replaced in every text."""
    if isinstance(value, str):
        return value.replace("{method}", method)
    if isinstance(value, list):
        return [_fill(item, method) for item in value]
    if isinstance(value, dict):
        return {key: _fill(item, method) for key, item in value.items()}
    return value

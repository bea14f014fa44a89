"""The shipped rules: they load without a warning, their own tests pass, and each condition is seen both ways."""

from pathlib import Path

import pytest

from kernelskill.methods import load_methods
from kernelskill.policy import Policy, load_rules
from kernelskill.policy.ruletest import coverage, load_cases, run_case
from kernelskill.policy.schema import Propose

ROOT = Path(__file__).parents[2]
RULES = ROOT / "rules"
METHODS = frozenset(load_methods(ROOT / "knowledge" / "methods"))


@pytest.fixture(scope="module")
def book():
    return load_rules([RULES], METHODS)


@pytest.fixture(scope="module")
def results(book):
    policy = Policy(book)
    return [run_case(case, policy) for case in load_cases([RULES])]


def test_rules_load_without_warnings(book):
    assert book.warnings == ()


def test_every_case_passes(results):
    assert [str(result) for result in results if not result.passed] == []


def test_every_condition_is_seen_true_and_not_true(book, results):
    assert [str(item) for item in coverage(results, book).uncovered] == []


def test_every_rule_has_a_firing_and_a_silent_case(book):
    cases = [loaded.case for loaded in load_cases([RULES])]
    fires = {name.split("[")[0] for case in cases for name in case.fires}
    silent = {name.split("[")[0] for case in cases for name in case.not_fires}
    ids = {rule.rule.id for rule in book.rules}
    assert (ids - fires, ids - silent) == (set(), set())


def test_every_method_is_proposed_by_a_rule_and_chosen_in_a_case(book):
    proposed = {action.propose for rule in book.rules for action in rule.rule.then if isinstance(action, Propose)}
    chosen = {loaded.case.chooses for loaded in load_cases([RULES])} - {None}
    assert proposed == METHODS
    assert METHODS - chosen == set()


@pytest.mark.parametrize("field", ["title", "because", "source", "since"])
def test_every_rule_is_documented(book, field):
    assert [rule.id for rule in book.rules if not getattr(rule.rule, field)] == []

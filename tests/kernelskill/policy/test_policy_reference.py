"""The reference page is what the code says, and the guide explains every diagnostic and shows rules that pass."""

import re
from typing import get_args

import pytest
from policy_support import ROOT

from kernelskill.policy.conditions import COMPLEMENT
from kernelskill.policy.lint import VALIDATORS
from kernelskill.policy.lint_cases import TestedRules
from kernelskill.policy.reference import OPERATORS, OTHER_CHECKS, PROVENANCES, main, reference
from kernelskill.policy.schema import Operator
from kernelskill.vocabulary import PER_METHOD_MEANING, VOCABULARY

GUIDE = (ROOT / "docs" / "authoring-rules.md").read_text(encoding="utf-8")
CHECKS = {check.check for check in (*VALIDATORS, TestedRules)} | {name for name, _, _ in OTHER_CHECKS}


def test_the_shipped_page_is_fresh():
    page = (ROOT / "docs" / "rules-reference.md").read_text(encoding="utf-8")
    assert page == reference(), "run `make docs`"


def test_the_page_has_every_fact_operator_source_and_check():
    page = reference()
    facts = set(re.findall(r"^\| `([a-z0-9_]+(?:\.<method>)?)` \|", page, re.MULTILINE))
    assert VOCABULARY.keys() | {f"{name}.<method>" for name in PER_METHOD_MEANING} <= facts
    assert set(OPERATORS) == set(get_args(Operator)) and set(COMPLEMENT) - {"absent"} <= set(OPERATORS)
    assert {source for spec in VOCABULARY.values() for source in spec.sources} <= PROVENANCES.keys()
    assert all(f"| `{check}` |" in page for check in CHECKS)


def test_the_page_and_the_schema_are_written(tmp_path, capsys):
    main([str(tmp_path / "page.md"), str(tmp_path / "schema.json")])
    assert (tmp_path / "page.md").read_text() == reference()
    assert (tmp_path / "schema.json").read_text() == (ROOT / "rules" / "schema.json").read_text()
    main([])
    assert capsys.readouterr().out == reference()


def test_the_guide_explains_every_check_and_no_other():
    table = GUIDE[GUIDE.index("## What `rules check` says"):]
    assert set(re.findall(r"^\| `([a-z-]+)` \|", table, re.MULTILINE)) == CHECKS


@pytest.fixture(name="folder")
def _folder(tmp_path):
    rule, cases = re.findall(r"```yaml\n(.*?)```", GUIDE, re.DOTALL)
    (tmp_path / "big_blocks.yaml").write_text(rule)
    (tmp_path / "big_blocks.test.yaml").write_text(cases)
    return tmp_path


def test_the_rule_of_the_guide_passes_beside_the_built_in_ones(folder):
    from kernelskill.methods import load_methods
    from kernelskill.policy import check_rules, run_rule_tests

    methods = load_methods(ROOT / "knowledge" / "methods").keys()
    assert [str(issue) for issue in check_rules([ROOT / "rules", folder], methods)[1]] == []
    results = run_rule_tests([ROOT / "rules", folder], "big_blocks", methods)
    assert [str(result) for result in results if not result.passed] == [] and len(results) == 2

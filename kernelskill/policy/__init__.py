"""The decision policy: rules in YAML, fired by a forward-chaining engine, one method or a reasoned stop per decision."""

from __future__ import annotations

from kernelskill.policy.deciding import Policy
from kernelskill.policy.explain import why, why_not
from kernelskill.policy.loader import check_rules, load_rules
from kernelskill.policy.rulebook import RuleBook
from kernelskill.policy.ruletest import run_rule_tests

__all__ = ["Policy", "RuleBook", "check_rules", "load_rules", "run_rule_tests", "why", "why_not"]

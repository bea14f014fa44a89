"""The decision policy: rules in YAML, fired by a forward-chaining engine, one method or a reasoned stop per decision."""

from __future__ import annotations

from kernelskill.policy.deciding import Policy
from kernelskill.policy.explain import why, why_not
from kernelskill.policy.isolated import IsolatedPolicy, isolated_decide
from kernelskill.policy.loader import check_rules, load_rules
from kernelskill.policy.nearest import nearest
from kernelskill.policy.replay import replay, what_if
from kernelskill.policy.rulebook import RuleBook
from kernelskill.policy.ruletest import run_rule_tests

__all__ = ["IsolatedPolicy", "Policy", "RuleBook", "check_rules", "isolated_decide", "load_rules", "nearest", "replay",
           "run_rule_tests", "what_if", "why", "why_not"]

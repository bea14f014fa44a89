"""The test files beside rules: what passes, what fails and says why, and which conditions no case looks at."""

import pytest
from policy_support import METHODS, write_rules

from kernelskill.errors import RuleError
from kernelskill.policy import load_rules, run_rule_tests
from kernelskill.policy.ruletest import coverage

RULES = """
rules:
  - id: dram_bound
    when: {all: [{fact: dram_throughput_pct, op: ">=", value: 60}, {fact: sm_throughput_pct, op: "<", value: 80}]}
    then: [{derive: bottleneck.dram}]
  - id: widen
    when: {fact: bottleneck.dram}
    then: [{propose: vectorized_access}]
  - id: failed
    for_each: method
    when: {fact: "failed_here.{method}", op: ">=", value: 1}
    then: [{veto: "{method}"}]
"""
BUSY = "{dram_throughput_pct: 90, sm_throughput_pct: 10}"


def results(folder, cases, **more):
    write_rules(folder, RULES)
    write_rules(folder, "cases:\n" + "".join(f"  - {case}\n" for case in cases), "rules.test.yaml")
    return run_rule_tests([folder], **more)


def test_cases_that_pass(tmp_path):
    cases = [
        f"{{name: busy, facts: {BUSY}, fires: [dram_bound, widen], not_fires: [failed], chooses: vectorized_access}}",
        "{name: idle, facts: {dram_throughput_pct: 9}, not_fires: [dram_bound], stops: no_method_left}",
        "{name: failed before, facts: {failed_here.vectorized_access: 1}, fires: [failed, 'failed[vectorized_access]']}",
    ]
    assert [(result.name, result.passed) for result in results(tmp_path, cases)] == [
        ("busy", True),
        ("idle", True),
        ("failed before", True),
    ]


@pytest.mark.parametrize(
    ("case", "failure"),
    [
        (
            "{name: n, facts: {dram_throughput_pct: 55}, fires: [dram_bound]}",
            "dram_bound did not fire: needs dram_throughput_pct >= 60; it is 55 (off by 5); "
            "needs sm_throughput_pct < 80; sm_throughput_pct is unknown: needs modelled or ncu",
        ),
        (f"{{name: n, facts: {BUSY}, not_fires: [dram_bound]}}", "dram_bound fired"),
        ("{name: n, facts: {failed_here.vectorized_access: 1}, not_fires: [failed]}", "failed fired"),
        (
            f"{{name: n, facts: {BUSY}, chooses: launch_tuning}}",
            "chose vectorized_access, not launch_tuning: vectorized_access: expected",
        ),
        ("{name: n, chooses: vectorized_access}", "chose to stop, not vectorized_access: no_method_left"),
        ("{name: n, stops: near_speed_of_light}", "stopped with no_method_left, not near_speed_of_light"),
        ("{name: n, fires: [dram_bund]}", "no rule is called dram_bund"),
        ("{name: n, facts: {drom: 1}}", "no fact is called drom"),
        ("{name: n, facts: {bottleneck.dram: true}}", "facts that cannot be used: bottleneck.dram is derived by rules"),
    ],
)
def test_cases_that_fail_say_why(tmp_path, case, failure):
    (result,) = results(tmp_path, [case])
    assert any(text.startswith(failure) for text in result.failures), result.failures
    assert str(result).startswith(f"{tmp_path}/rules.test.yaml:2:12: FAILED: n\n  ")


def test_filter_by_rule_name_and_file(tmp_path):
    cases = ["{name: one, fires: []}", "{name: two, not_fires: [widen]}"]
    assert [r.name for r in results(tmp_path, cases, filter="widen")] == ["two"]
    assert len(results(tmp_path, cases, filter="rules.test")) == 2


def test_a_broken_test_file_is_refused(tmp_path):
    with pytest.raises(
        RuleError, match=r"rules\.test\.yaml:2:24: error: unknown key `firs` \[schema\]\n  hint: did you mean 'fires'"
    ):
        results(tmp_path, ["{name: abcdefghij, firs: [a]}"])


def test_coverage_of_every_condition(tmp_path):
    cases = [f"{{name: busy, facts: {BUSY}}}", "{name: idle, facts: {dram_throughput_pct: 9, sm_throughput_pct: 20}}"]
    report = coverage(results(tmp_path, cases, methods=METHODS), load_rules([tmp_path], METHODS))
    assert report.conditions == 4
    assert [str(item).removeprefix(f"{tmp_path}/") for item in report.uncovered] == [
        "rules.yaml:4:68: sm_throughput_pct < 80 was never not true (dram_bound)",
        "rules.yaml:11:11: failed_here.launch_tuning >= 1 was never true (failed)",
    ]
    assert report.share_pct == 50.0


def test_coverage_of_nothing(tmp_path):
    write_rules(tmp_path, "rules: []\n")
    assert coverage([], load_rules([tmp_path], METHODS)).share_pct == 100.0

"""Each diagnostic from a broken rule file: exact place, severity, message."""

import pytest
from policy_support import METHODS, issues_of, write_rules

from kernelskill.errors import RuleError
from kernelskill.policy import load_rules
from kernelskill.policy.lint import VALIDATORS

HEAD = "rules:\n  - id: a\n    because: b\n    source: s\n"
THEN = "\n    then: [{propose: launch_tuning}]\n"


def one(when, then="{propose: launch_tuning}", more=""):
    """One rule: `when` starts at 5:11, `then` at 6:11."""
    return f"{HEAD}    when: {when}\n    then: [{then}]\n{more}"


CASES = {
    "syntax": (
        HEAD + "    when: {fact: x\n    then: [}\n",
        "6:9: error: not valid YAML: expected ',' or '}', but got ':' [yaml]",
    ),
    "empty file": ("", "1:1: error: the file is empty [yaml]"),
    "no list of rules": ("- id: a\n", "1:1: error: a rule file is a list under the key `rules` [schema]"),
    "a blank in a text": (
        one("{fact: uses_restrict}").replace("because: b", "because: uses <one sentence>"),
        "3:14: error: `<one sentence>` is still to be filled in [blank]",
    ),
    "nothing excepted": (
        one("{fact: 'applied.{method}'}").replace("    when:", "    for_each: {except: []}\n    when:"),
        "5:24: error: `[]` does not fit `except`: it needs at least one entry [schema]",
    ),
    "an excepted method that does not exist": (
        one("{fact: 'applied.{method}'}").replace("    when:", "    for_each: {except: [launch_tunning]}\n    when:"),
        "5:25: error: no method is called `launch_tunning` [unknown-method]\n  hint: did you mean 'launch_tuning'?",
    ),
    "second top-level key": (
        "rules: []\nrulez: []\n",
        "2:1: error: unknown key `rulez` [schema]\n  hint: did you mean 'rules'?",
    ),
    "key twice": (
        one("{fact: uses_restrict, fact: uses_restrict}"),
        "5:33: error: key `fact` appears twice in one mapping [yaml]",
    ),
    "unknown key": (
        one("{fact: uses_restrict}", more="    prioritty: 4\n"),
        "7:5: error: unknown key `prioritty` [schema]\n  hint: did you mean 'priority'?",
    ),
    "missing key": ("rules:\n  - id: a\n    then: [{stop: x}]\n", "2:5: error: `when` is missing [schema]"),
    "id": (
        "rules:\n  - id: A-b\n    when: {fact: uses_restrict}\n    then: [{stop: x}]\n",
        "2:9: error: `A-b` is not a name [schema]",
    ),
    "operator": (
        one('{fact: time_us, op: "=>", value: 1}'),
        "5:31: error: `=>` is not one of ==, !=, <, <=, >, >=, in, not_in, between, missing or exists [schema]",
    ),
    "not a condition": (
        one("{all: [{fcat: time_us}]}"),
        "5:18: error: a condition is {fact: ...}, {all: [...]}, {any: [...]} or {none: [...]}, not fcat [schema]",
    ),
    "not an action": (
        one("{fact: uses_restrict}", "{propse: launch_tuning}"),
        "6:12: error: an action is one of {derive: ...}, ",
    ),
    "nothing in a group": (one("{all: []}"), "5:17: error: `[]` does not fit `all`: "),
    "priority": (one("{fact: uses_restrict}", more="    priority: 1000\n"), "7:15: error: `1000` does not fit `priority`: "),
    "null value": (one("{fact: time_us, value: null}"), "5:34: error: `value` is empty [schema]"),
    "missing takes no value": (one("{fact: time_us, op: missing, value: 1}"), "5:11: error: `missing` takes no value [schema]"),
    "in needs a list": (
        one("{fact: task_family, op: in, value: matmul}"),
        "5:11: error: `in` needs a list with at least one value",
    ),
    "between needs two": (one("{fact: time_us, op: between, value: [1, 2, 3]}"), "5:11: error: `between` needs two numbers"),
    "list with ==": (
        one("{fact: task_family, value: [matmul]}"),
        "5:11: error: `==` compares with one value; a list goes with in",
    ),
    "order of texts": (one('{fact: task_family, op: "<", value: matmul}'), "5:11: error: `<` compares numbers [schema]"),
    "gain upside down": (
        one("{fact: uses_restrict}", "{propose: launch_tuning, gain: {low: 2, high: 1}}"),
        "6:43: error: a gain range needs 0 < low <= high",
    ),
    "unknown fact": (
        one("{all: [{fact: dram_troughput_pct, op: '>', value: 1}, {fact: uses_restrict}]}"),
        "5:25: error: no fact is called `dram_troughput_pct` [unknown-fact]\n  hint: did you mean 'dram_throughput_pct'",
    ),
    "underived fact": (one("{fact: bottleneck.dram}"), "5:18: error: no rule derives `bottleneck.dram` [underived-fact]"),
    "unknown method": (
        one("{fact: uses_restrict}", "{veto: launch_tunning}"),
        "6:19: error: no method is called `launch_tunning` [unknown-method]\n  hint: did you mean 'launch_tuning'?",
    ),
    "unknown method of a fact": (one("{fact: applied.nothing}"), "5:18: error: no method is called `nothing` [unknown-method]"),
    "derives a measured fact": (
        one("{fact: uses_restrict}", "{derive: time_us}"),
        "6:21: error: `time_us` is measured, a rule cannot derive it [derived-name]",
    ),
    "derives a plain word": (
        one("{fact: uses_restrict}", "{derive: slow}"),
        "6:21: error: `slow` is no name for a derived fact [derived-name]",
    ),
    "operand type": (one("{fact: time_us, value: fast}"), "5:34: error: `time_us` is a number, fast is a text [operand-type]"),
    "operand type by default": (one("{fact: time_us}"), "5:11: error: `time_us` is a number, true is a bool [operand-type]"),
    "order of truth values": (
        one("{fact: uses_restrict, op: '>', value: 1}"),
        "5:49: error: `uses_restrict` is a bool, 1 is a number [operand-type]",
    ),
    "derived fact with a number": (
        one(
            "{fact: uses_restrict}",
            "{derive: b.x}",
            "  - id: c\n    because: b\n    source: s\n    when: {fact: b.x, value: 3}" + THEN,
        ),
        "10:30: error: `b.x` is derived, so it is only true or not: no `==` with 3 [operand-type]",
    ),
    "not a device quantity": (
        one("{fact: time_us, op: '<', value: {fact: sol_time_us}}"),
        "5:43: error: `sol_time_us` is not a device quantity that `time_us` compares with [operand-type]",
    ),
    "outside a closed list": (
        one("{fact: reduction_style, value: warp_shufle}"),
        "5:42: error: `reduction_style` is never warp_shufle"
        ": it is one of none, serial, shared_tree, warp_shuffle, atomic [value-range]\n"
        "  hint: did you mean 'warp_shuffle'?",
    ),
    "outside the range": (
        one("{fact: dram_throughput_pct, op: '>', value: 101}"),
        "5:55: error: `dram_throughput_pct` is never 101: it is at least 0 % and at most 100 % [value-range]",
    ),
    "empty interval": (
        one("{fact: time_us, op: between, value: [2, 1]}"),
        "5:47: error: between 2, 1: the first number is the larger one [value-range]",
    ),
    "formula": (
        one("{fact: uses_restrict}", '{propose: launch_tuning, gain: "headroom ** 2"}'),
        "6:43: error: `headroom ** 2` is not allowed: a formula holds facts, numbers, + - * / min max and parentheses",
    ),
    "formula fact": (
        one("{fact: uses_restrict}", "{propose: launch_tuning, gain: {formula: hedroom, default: 2}}"),
        "6:53: error: `hedroom` is no numeric fact [gain-formula]\n  hint: did you mean 'headroom'",
    ),
    "placeholder": (
        HEAD.replace("because: b", 'because: "{time_us} us"') + "    when: {fact: uses_restrict}" + THEN,
        "3:14: error: `{time_us}` is not a fact of `when` [placeholder]",
    ),
    "no reason": (
        "rules:\n  - id: a\n    source: s\n    when: {fact: uses_restrict}" + THEN,
        "2:9: warning: rule a has no `because` [metadata]",
    ),
    "contradiction": (
        one("{all: [{fact: time_us, op: '>', value: 9}, {none: [{fact: time_us, op: '>=', value: 5}]}]}"),
        "5:62: error: `time_us < 5` can never hold together with `time_us > 9` [contradiction]",
    ),
    "contradiction of texts": (
        one("{all: [{fact: task_family, value: matmul}, {fact: task_family, op: in, value: [transpose]}]}"),
        "5:54: error: `task_family in [transpose]` can never hold together with `task_family == matmul`",
    ),
    "contradiction with missing": (
        one("{all: [{fact: time_us, op: missing}, {fact: time_us, op: '>', value: 5}]}"),
        "5:48: error: `time_us > 5` can never hold together with `time_us not known` [contradiction]",
    ),
    "redundant": (
        one("{all: [{fact: time_us, op: '>', value: 9}, {fact: time_us, op: '>=', value: 5}]}"),
        "5:54: warning: `time_us >= 5` already follows from `time_us > 9` [redundant-condition]",
    ),
    "duplicate id": (
        one("{fact: uses_restrict}", more="  - id: a\n    when: {fact: uses_fast_math}" + THEN),
        "7:9: error: rule id a is used twice [duplicate-id]",
    ),
    "unreachable": (
        one(
            "{fact: b.y}",
            "{derive: b.x}",
            "  - id: c\n    because: b\n    source: s\n    when: {fact: b.x}\n    then: [{derive: b.y}]\n",
        ),
        "5:11: error: rule a can never fire: only rules that need `b.y` derive it [unreachable-rule]",
    ),
    "negation cycle": (
        one("{none: [{fact: b.x}]}", "{derive: b.x}"),
        "5:11: error: rule a depends on the absence of a fact that follows from it [negation-cycle]",
    ),
    "prefer cycle": (
        one(
            "{fact: uses_restrict}",
            "{prefer: launch_tuning, over: register_blocking}, {prefer: register_blocking, over: launch_tuning}",
        ),
        "6:12: error: preferences go in a circle: launch_tuning over register_blocking over launch_tuning "
        "(rules a) [prefer-cycle]",
    ),
    "shadowed": (
        one(
            "{fact: uses_restrict}",
            more="  - id: c\n    because: b\n    source: s\n    when: {all: [{fact: uses_restrict}, "
            "{fact: uses_fast_math}]}" + THEN,
        ),
        "7:9: warning: rule c changes nothing: a does the same whenever it fires [shadowed-rule]",
    ),
    "always vetoed": (
        one(
            "{fact: time_us, op: '>', value: 5}",
            more="  - id: c\n    because: b\n    source: s\n"
            "    when: {fact: time_us, op: exists}\n    then: [{veto: launch_tuning}]\n",
        ),
        "2:9: warning: rule a proposes launch_tuning in vain: c vetoes it whenever it fires [always-vetoed]",
    ),
    "too many branches": (
        one(
            "{all: ["
            + ", ".join(f"{{any: [{{fact: time_us, value: {i}}}, {{fact: round, value: {i}}}]}}" for i in range(8))
            + "]}"
        ),
        "5:11: error: rule a expands to 256 conjunctions, more than 60 [engine-limit]",
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_diagnostic(name, tmp_path):
    text, expected = CASES[name]
    found = [str(issue).removeprefix(f"{tmp_path}/rules.yaml:") for issue in issues_of(tmp_path, text)]
    assert any(line.startswith(expected) for line in found), found


def test_every_validator_has_a_case():
    shown = "\n".join(expected for _, expected in CASES.values())
    assert [v.check for v in VALIDATORS if f"[{v.check}]" not in shown] == []


def test_a_correct_file_has_no_issues(tmp_path):
    text = one('{all: [{fact: dram_throughput_pct, op: ">=", value: 60}, {fact: task_family, value: matmul}]}')
    write_rules(
        tmp_path,
        "cases:\n  - {name: busy, facts: {dram_throughput_pct: 90, task_family: matmul}, fires: [a]}\n"
        "  - {name: idle, facts: {dram_throughput_pct: 9}, not_fires: [a]}\n",
        "rules.test.yaml",
    )
    assert issues_of(tmp_path, text, with_tests=True) == []


def test_preferences_that_exclude_each_other_are_no_circle(tmp_path):
    text = one(
        '{fact: round, op: "<", value: 3}',
        "{prefer: launch_tuning, over: register_blocking}",
        "  - id: c\n    because: b\n    source: s\n    when: {fact: round, op: '>', value: 5}\n"
        "    then: [{prefer: register_blocking, over: launch_tuning}]\n",
    )
    assert issues_of(tmp_path, text) == []


def test_a_branch_does_not_contradict_another_branch(tmp_path):
    assert issues_of(tmp_path, one("{any: [{fact: time_us, op: '>', value: 9}, {fact: time_us, op: '<', value: 5}]}")) == []


def test_missing_test_file_and_untested_rules(tmp_path):
    text = one("{fact: uses_restrict}")
    (issue,) = issues_of(tmp_path, text, with_tests=True)
    assert str(issue).startswith(f"{tmp_path}/rules.yaml:1:1: warning: the rules of this file have no test file [tested-rules]")
    write_rules(tmp_path, "cases:\n  - {name: n, facts: {uses_restrict: true}, fires: [a, b]}\n", "rules.test.yaml")
    untested, stranger = sorted(map(str, issues_of(tmp_path, text, with_tests=True)), reverse=True)
    assert untested.startswith(f"{tmp_path}/rules.yaml:2:9: warning: no case in which a does not fire [tested-rules]")
    assert stranger.startswith(f"{tmp_path}/rules.test.yaml:2:56: warning: no rule is called `b` [tested-rules]")


def test_a_broken_test_file_does_not_keep_rules_from_loading(tmp_path):
    write_rules(tmp_path, "cases:\n  - {nmae: n}\n", "rules.test.yaml")
    text = one("{fact: uses_restrict}")
    assert any(issue.location.line == 2 and "nmae" in issue.message for issue in issues_of(tmp_path, text, with_tests=True))
    assert len(load_rules([tmp_path], METHODS).rules) == 1


def test_all_problems_at_once_each_once(tmp_path):
    """A `for_each` rule has its problem once, not once per method, and a broken rule hides nothing else."""
    write_rules(tmp_path, one("{fact: bottleneck.dram}"), "one.yaml")
    write_rules(
        tmp_path,
        "rules:\n  - id: many\n    for_each: method\n    when: {fact: 'tryed_here.{method}'}\n"
        "    then: [{veto: '{method}'}]\n  - id: broken\n    whn: {}\n    then: [{derive: bottleneck.dram}]\n",
        "two.yaml",
    )
    with pytest.raises(RuleError) as caught:
        load_rules([tmp_path, tmp_path / "nowhere"], METHODS)
    lines = [line for line in str(caught.value).splitlines() if "error: " in line]
    assert lines == [
        f"{tmp_path}/nowhere: error: no such folder of rules [folder]",
        f"{tmp_path}/two.yaml:4:18: error: no rule derives `tryed_here.launch_tuning` [underived-fact]",
        f"{tmp_path}/two.yaml:6:5: error: `when` is missing [schema]",
        f"{tmp_path}/two.yaml:7:5: error: unknown key `whn` [schema]",
    ]
    assert str(caught.value).startswith("4 errors in rule files")

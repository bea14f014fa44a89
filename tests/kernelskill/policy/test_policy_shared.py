"""`for_each` rules that the engine gets once: what fires is what a rule per method would fire."""

import dataclasses
import os

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from policy_support import METHODS, book_of, facts, issues_of, loaded, policy_of

from kernelskill.errors import DecisionError
from kernelskill.policy import Policy
from kernelskill.policy.compile import build_program, durable_rules
from kernelskill.policy.engine import Engine

EXAMPLES = int(os.environ.get("KERNELSKILL_FUZZ_EXAMPLES", "60")) // 2
RULE = "rules:\n  - id: r\n    for_each: method\n    when: {when}\n    then: [{{veto: '{{method}}'}}]\n"


def shared_in(folder, when, methods=METHODS):
    return build_program(book_of(folder, RULE.format(when=when), methods)).shared


@pytest.mark.parametrize(
    "when",
    [
        "{fact: 'failed_here.{method}', op: '>=', value: 1}",
        "{fact: 'applicable.{method}', op: missing}",
        "{all: [{fact: 'last_gain.{method}', op: '>', value: 0.5}, {fact: 'last_gain.{method}', op: '<', value: 0.95}]}",
        "{none: [{fact: 'applied.{method}'}]}",
    ],
)
def test_one_engine_rule_stands_for_all_methods(tmp_path, when):
    methods = [f"method_{i}" for i in range(50)]
    few, many = (build_program(book_of(tmp_path, RULE.format(when=when), names)) for names in (methods[:2], methods))
    assert len(durable_rules(few)) == len(durable_rules(many)) == 3, "the rule, the boot rule and the sink"
    assert len(many.shared[0].copies) == len(many.variants) == 50 and many.single == ()


@pytest.mark.parametrize(
    "when",
    [
        "{all: [{fact: 'failed_here.{method}', op: '>=', value: 1}, {fact: uses_restrict}]}",
        "{fact: task_operation, value: '{method}'}",
        "{fact: uses_restrict}",
        "{fact: 'repeats.{method}', op: '<', value: {fact: device_sm}}",
    ],
)
def test_what_is_not_about_one_fact_of_the_method_is_not_shared(tmp_path, when):
    assert shared_in(tmp_path, when) == ()


def test_a_derived_fact_is_not_shared(tmp_path):
    rules = RULE.format(when="{fact: 'done.{method}'}")
    rules += "  - {id: d, for_each: method, when: {fact: 'applied.{method}'}, then: [{derive: 'done.{method}'}]}\n"
    assert [one.name for one in build_program(book_of(tmp_path, rules)).shared] == ["d[*]#0"]


def test_a_fact_about_a_method_without_a_copy_fires_nothing(tmp_path):
    policy = policy_of(tmp_path, RULE.format(when="{fact: 'applied.{method}'}"))
    decision = policy.decide(facts({"applied.no_such_method": True, "applied.launch_tuning": True}))
    assert [rule.rule for rule in decision.fired] == ["r[launch_tuning]"]


def test_a_removed_copy_stays_silent(tmp_path):
    book = book_of(tmp_path, RULE.format(when="{fact: 'applied.{method}'}")).without("r[launch_tuning]")
    given_facts = facts({f"applied.{method}": True for method in METHODS})
    assert [rule.rule for rule in Policy(book).decide(given_facts).fired] == [
        f"r[{m}]" for m in METHODS if m != "launch_tuning"
    ]


def test_shared_conditions_count_for_the_engines_limits(tmp_path):
    """A fact meets the conditions on its name and those on its family: 31 and 31 are more than the engine's stack takes."""
    number = "    when: {{fact: '{fact}', op: '>', value: {i}}}\n    then: [{{veto: launch_tuning}}]\n"
    rules = "rules:\n" + "".join(
        f"  - id: {kind}{i}\n{each}" + number.format(fact=f"repeats.{name}", i=i)
        for i in range(31)
        for kind, each, name in (("own", "", "launch_tuning"), ("all", "    for_each: method\n", "{method}"))
    )
    errors = [issue for issue in issues_of(tmp_path, rules) if issue.check == "engine-limit"]
    assert "distinct conditions on repeats.launch_tuning; the engine takes 60" in errors[0].message


def test_the_check_notices_a_wrong_copy(tmp_path):
    policy = policy_of(tmp_path, RULE.format(when="{fact: 'applied.{method}'}"))
    (name,) = policy._engine._shared
    copies = policy._engine._shared[name]
    policy._engine._shared[name] = {**copies, "applied.launch_tuning": copies["applied.register_blocking"]}
    with pytest.raises(DecisionError, match=r"only the engine fired \['r\[register_blocking\]'\]"):
        policy.decide(facts({"applied.launch_tuning": True}))
    policy._engine._shared[name] = copies


def about_the_method():
    fact = st.sampled_from(["failed_here.{method}", "repeats.{method}", "last_gain.{method}"])
    number = st.builds(
        lambda f, op, v: {"fact": f, "op": op, "value": v},
        fact,
        st.sampled_from(["==", "!=", "<", "<=", ">", ">="]),
        st.sampled_from([0, 1, 2, 0.5]),
    )
    flag = st.builds(lambda v: {"fact": "applied.{method}", "value": v}, st.booleans())
    known = st.builds(lambda f, op: {"fact": f, "op": op}, fact, st.sampled_from(["missing", "exists"]))
    return st.recursive(
        st.one_of(number, number, flag, known),
        lambda inner: st.builds(
            lambda key, inside: {key: inside}, st.sampled_from(["all", "any", "none"]), st.lists(inner, min_size=1, max_size=2)
        ),
        max_leaves=4,
    )


worlds = st.dictionaries(
    st.sampled_from([f"{fact}.{m}" for fact in ("failed_here", "repeats", "last_gain") for m in (*METHODS, "stranger")]),
    st.sampled_from([0, 1, 2, 0.5, 1.0]),
)
flags = st.dictionaries(st.sampled_from([f"applied.{m}" for m in METHODS]), st.booleans())


@given(st.lists(about_the_method(), min_size=1, max_size=5), st.lists(st.tuples(worlds, flags), min_size=1, max_size=3))
@settings(max_examples=EXAMPLES, deadline=None, suppress_health_check=list(HealthCheck))
def test_shared_or_not_the_same_fires(conditions, given_facts):
    book = loaded(
        [
            {"id": f"r{i}", "for_each": "method", "when": when, "then": [{"veto": "{method}"}]}
            for i, when in enumerate(conditions)
        ]
    )
    program = build_program(book)
    once, each = Engine(program), Engine(dataclasses.replace(program, shared=()))
    for world, more in given_facts:
        assert once.run(world | more) == each.run(world | more)
        Policy(book).decide(facts(world | more))  # raises DecisionError when the oracle disagrees

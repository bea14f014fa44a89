"""Random rules and facts: the engine and the oracle must agree, whatever the order of the facts."""

import itertools
import json
import os

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from policy_support import facts

from kernelskill.errors import DecisionError
from kernelskill.policy import Policy, RuleBook, check_rules, replay, why, why_not
from kernelskill.policy.compile import MAX_CONJUNCTIONS, MAX_FACTS
from kernelskill.policy.conditions import normal_form, size
from kernelskill.policy.explain import lacking
from kernelskill.policy.implication import contradict
from kernelskill.policy.lint import VALIDATORS, lint
from kernelskill.policy.rulebook import LoadedRule, in_order
from kernelskill.policy.schema import Rule
from kernelskill.yamlsource import Document

EXAMPLES = int(os.environ.get("KERNELSKILL_FUZZ_EXAMPLES", "60"))
NUMBERS = ["time_us", "round", "headroom", "registers_per_thread", "failed_here.launch_tuning", "spill_bytes"]
FLAGS = ["uses_restrict", "uses_fast_math", "applicable.launch_tuning", "applied.launch_tuning"]
TEXTS = {"task_family": ["matmul", "transpose", "a b", 'q"', "µ", "1"], "device_name": ["x", "y", "true", ""]}
LEVELS = 4
KNOWN_CHECKS = {validator.check for validator in VALIDATORS}
METHODS = ["launch_tuning", "loop_unrolling", "register_blocking"]
numbers = st.one_of(st.integers(-3, 3), st.sampled_from([1e-05, 1e22, 0.1, 2.5, -0.0, 2**53, 5e-324]))


def measured():
    number = st.builds(
        lambda f, op, v: {"fact": f, "op": op, "value": v},
        st.sampled_from(NUMBERS),
        st.sampled_from(["==", "!=", "<", "<=", ">", ">="]),
        numbers,
    )
    between = st.builds(
        lambda f, a, b: {"fact": f, "op": "between", "value": [a, b]}, st.sampled_from(NUMBERS), numbers, numbers
    )
    device = st.builds(
        lambda f, op: {"fact": f, "op": op, "value": {"fact": "device_sm"}},
        st.sampled_from(NUMBERS),
        st.sampled_from(["<", "<=", ">", ">="]),
    )
    flag = st.builds(
        lambda f, op, v: {"fact": f, "op": op, "value": v}, st.sampled_from(FLAGS), st.sampled_from(["==", "!="]), st.booleans()
    )
    text = st.sampled_from(sorted(TEXTS)).flatmap(
        lambda f: st.one_of(
            st.builds(
                lambda op, v: {"fact": f, "op": op, "value": v}, st.sampled_from(["==", "!="]), st.sampled_from(TEXTS[f])
            ),
            st.builds(
                lambda op, v: {"fact": f, "op": op, "value": v},
                st.sampled_from(["in", "not_in"]),
                st.lists(st.sampled_from(TEXTS[f]), min_size=1, max_size=3),
            ),
        )
    )
    known = st.builds(
        lambda f, op: {"fact": f, "op": op}, st.sampled_from([*NUMBERS, *FLAGS, *TEXTS]), st.sampled_from(["missing", "exists"])
    )
    return st.one_of(number, between, device, flag, text, known)


def derived(below):
    """A test of a derived fact that is settled earlier, so that negation stays stratified."""
    names = st.sampled_from([f"d.x{level}" for level in range(below)])
    return st.one_of(
        st.builds(lambda f, v: {"fact": f, "value": v}, names, st.booleans()),
        st.builds(lambda f, op: {"fact": f, "op": op}, names, st.sampled_from(["missing", "exists"])),
    )


def condition(level):
    leaves = st.one_of(measured(), measured(), derived(level)) if level else measured()
    return st.recursive(
        leaves,
        lambda inner: st.builds(
            lambda key, parts: {key: parts},
            st.sampled_from(["all", "all", "any", "none"]),
            st.lists(inner, min_size=1, max_size=3),
        ),
        max_leaves=7,
    )


def rule(level):
    last = level == LEVELS
    method = st.sampled_from(METHODS)
    action = (
        st.one_of(
            st.builds(lambda m, g: {"propose": m, "gain": g}, method, st.sampled_from([1.2, 2.0, "headroom"])),
            st.builds(lambda m: {"veto": m}, method),
            st.builds(lambda m, n: {"prefer": m, "over": n}, method, method),
            st.builds(lambda m, n: {"require": m, "before": n}, method, method),
        )
        if last
        else st.just({"derive": f"d.x{level}"})
    )
    return st.builds(
        lambda when, then, priority: {"when": when, "then": then, "priority": priority},
        condition(level),
        st.lists(action, min_size=1, max_size=2),
        st.integers(0, 999),
    )


rule_sets = st.lists(st.integers(0, LEVELS).flatmap(rule), min_size=1, max_size=14)
fact_sets = st.fixed_dictionaries(
    {},
    optional={
        **dict.fromkeys([*NUMBERS, "device_sm"], numbers),
        **dict.fromkeys(FLAGS, st.booleans()),
        **{name: st.sampled_from(values) for name, values in TEXTS.items()},
    },
)


def book_of_raw(rules):
    loaded = [
        LoadedRule(f"r{i}", Rule.model_validate({"id": f"r{i}", **raw}), {"id": f"r{i}", **raw}, Document("fuzz", None), ())
        for i, raw in enumerate(rules)
    ]
    names = frozenset(name for rule in loaded for name in rule.derives)
    small = [
        rule
        for rule in loaded
        if size(rule.rule.when, names) <= MAX_CONJUNCTIONS
        and all(len({lit.fact for lit in conj}) <= MAX_FACTS // 2 for conj in normal_form(rule.rule.when, names))
    ]
    return RuleBook(in_order(small), frozenset(METHODS))


@given(rule_sets, st.lists(fact_sets, min_size=1, max_size=3), st.randoms(use_true_random=False))
@settings(max_examples=EXAMPLES, deadline=None, suppress_health_check=list(HealthCheck))
def test_engine_and_oracle_agree(rules, worlds, random):
    policy = Policy(book_of_raw(rules))
    for world in [*worlds, {}]:
        decision = policy.decide(facts(world))  # raises DecisionError when the two disagree
        shuffled = list(world.items())
        random.shuffle(shuffled)
        assert policy.decide(facts(dict(shuffled))) == decision
        assert set(decision.derived) <= policy.book.derived


@given(rule_sets, fact_sets)
@settings(max_examples=EXAMPLES // 2, deadline=None, suppress_health_check=list(HealthCheck))
def test_explanations_and_lints_fit_what_happened(rules, world):
    book = book_of_raw(rules)
    decision = Policy(book).decide(facts(world))
    fired = {rule.rule for rule in decision.fired}
    for rule in book.rules:
        lacks = lacking(rule.rule.when, world | decision.derived, book)
        assert (lacks == []) == (rule.id in fired), (rule.raw, lacks)
        form = normal_form(rule.rule.when, book.derived)
        impossible = all(any(contradict(one, other) for one, other in itertools.combinations(conj, 2)) for conj in form)
        assert not (impossible and rule.id in fired), "what the lint calls contradictory never fires"
    for issue in lint(book, with_tests=False):
        assert issue.message and issue.check in KNOWN_CHECKS
    for method in METHODS:
        chosen = decision.chosen is not None and decision.chosen.method == method
        assert why_not(decision, method, book).startswith(f"{method}: chosen") == chosen
    assert decision.reason in why(decision, "all") and replay(decision, Policy(book)) == ""


plain = st.one_of(
    st.none(), st.booleans(), st.integers(-9, 9), st.floats(allow_nan=False), st.sampled_from(["x", "all", "{method}", ""])
)
WORDS = st.sampled_from(["fact", "op", "value", "all", "any", "none", "propose", "gain", "veto", "derive", "low", "x"])
json_values = st.recursive(
    plain, lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(WORDS, inner, max_size=3)), max_leaves=8
)
RULE_KEYS = st.sampled_from(["id", "when", "then", "for_each", "priority", "because"])


@given(st.lists(st.dictionaries(RULE_KEYS, json_values), max_size=3))
@settings(max_examples=EXAMPLES, deadline=None, suppress_health_check=list(HealthCheck))
def test_no_rule_file_breaks_the_loader(tmp_path_factory, rules):
    """Whatever a file holds, the answer is a list of issues with a place each."""
    folder = tmp_path_factory.mktemp("any", numbered=True)
    (folder / "any.yaml").write_text(json.dumps({"rules": rules}))
    _, issues = check_rules([folder], METHODS)
    assert all(issue.location.line for issue in issues)
    assert bool(issues) == bool(rules), "no rule of this kind is complete"


def test_the_fuzz_would_notice():
    """A planted compiler bug (`>` compiled as `>=`) makes the two disagree."""
    raw = {"id": "r", "when": {"fact": "time_us", "op": ">", "value": 3}, "then": [{"stop": "x"}]}
    wrong = Rule.model_validate({**raw, "when": {"fact": "time_us", "op": ">=", "value": 3}})
    policy = Policy(RuleBook((LoadedRule("r", wrong, raw, Document("planted", None), ()),), frozenset()))
    assert policy.decide(facts(time_us=4)).stop_reason == "x"
    with pytest.raises(DecisionError, match=r"only the engine fired \['r'\], only the check \[\]"):
        policy.decide(facts(time_us=3))

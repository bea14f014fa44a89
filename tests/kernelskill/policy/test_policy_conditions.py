"""Normal form, verdicts and implication against brute force over small worlds."""

import itertools

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import TypeAdapter

from kernelskill.policy import conditions
from kernelskill.policy.conditions import Literal, normal_form, phrase, show, size, verdict
from kernelskill.policy.implication import contradict, implies
from kernelskill.policy.oracle import Oracle
from kernelskill.policy.schema import Condition, Test

CONDITION = TypeAdapter(Condition)
leaves = st.one_of(
    st.builds(
        lambda op, value: {"fact": "time_us", "op": op, "value": value},
        st.sampled_from(["==", "!=", "<", "<=", ">", ">="]),
        st.integers(0, 3),
    ),
    st.builds(
        lambda low, high: {"fact": "time_us", "op": "between", "value": [low, high]}, st.integers(0, 3), st.integers(0, 3)
    ),
    st.builds(
        lambda op, value: {"fact": "task_family", "op": op, "value": value},
        st.sampled_from(["in", "not_in"]),
        st.lists(st.sampled_from(["matmul", "transpose"]), min_size=1, max_size=2),
    ),
    st.builds(lambda op: {"fact": "time_us", "op": op}, st.sampled_from(["missing", "exists"])),
    st.builds(lambda op, value: {"fact": "d.x", "op": op, "value": value}, st.sampled_from(["==", "!="]), st.booleans()),
    st.builds(lambda op: {"fact": "d.x", "op": op}, st.sampled_from(["missing", "exists"])),
)
trees = st.recursive(
    leaves,
    lambda inner: st.builds(
        lambda key, children: {key: children}, st.sampled_from(["all", "any", "none"]), st.lists(inner, min_size=1, max_size=3)
    ),
    max_leaves=6,
)
WORLDS = [
    {name: value for name, value in (("time_us", number), ("task_family", family), ("d.x", derived)) if value is not None}
    for number, family, derived in itertools.product([None, 0, 1, 2, 3], [None, "matmul", "transpose"], [None, True])
]


def by_normal_form(tree, world):
    form = normal_form(CONDITION.validate_python(tree), {"d.x"})
    observed = {name: value for name, value in world.items() if name != "d.x"}

    def holds(literal):
        if literal.fact == "d.x":
            return ("d.x" in world) == (literal.op == "==")
        return literal.verdict(observed) == "holds"

    return any(all(holds(literal) for literal in conjunction) for conjunction in form)


def by_oracle(tree, world):
    given_ = {"fact": "round", "value": 1}
    rules = [("seed", {"when": given_, "then": [{"derive": "d.x"}]}), ("asked", {"when": tree, "then": [{"stop": "x"}]})]
    observed = {name: value for name, value in world.items() if name != "d.x"} | ({"round": 1} if "d.x" in world else {})
    return "asked" in Oracle(rules).fired(observed)[0]


@given(trees)
@settings(max_examples=120, deadline=None)
def test_normal_form_means_what_the_tree_means(tree):
    assert size(CONDITION.validate_python(tree), {"d.x"}) == len(normal_form(CONDITION.validate_python(tree), {"d.x"}))
    for world in WORLDS:
        assert by_normal_form(tree, world) == by_oracle(tree, world), (tree, world)


@given(leaves)
@settings(max_examples=80, deadline=None)
def test_verdict_of_one_comparison(leaf):
    test = CONDITION.validate_python(leaf)
    for world in WORLDS:
        said = verdict(test, world, {"d.x"})
        assert (said == "holds") == by_oracle(leaf, world)
        assert (said == "fails") == by_oracle({"none": [leaf]}, world)


literals = st.builds(
    lambda op, value: Literal("time_us", op, value), st.sampled_from(["==", "!=", "<", "<=", ">", ">="]), st.integers(0, 3)
) | st.builds(lambda op: Literal("time_us", op), st.sampled_from(["exists", "absent"]))
NUMBERS = [{}, *({"time_us": n / 2} for n in range(-2, 9))]


@given(literals, literals)
@settings(max_examples=300, deadline=None)
def test_implication_is_never_wrong(one, other):
    both = [(one.verdict(world) == "holds", other.verdict(world) == "holds") for world in NUMBERS]
    if implies(one, other):
        assert all(second for first, second in both if first)
    if contradict(one, other):
        assert not any(first and second for first, second in both)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ((">=", 60), (">=", 50)),
        ((">", 5), ("!=", 5)),
        (("==", 3), ("<", 4)),
        (("<", 2), ("<=", 2)),
        (("<=", 1), ("exists", None)),
    ],
)
def test_implication_sees_the_plain_cases(one, other):
    assert implies(Literal("x", *one), Literal("x", *other))


def test_every_comparison_has_its_path():
    tree = {"all": [{"fact": "a"}, {"none": [{"any": [{"fact": "b"}, {"fact": "c"}]}]}]}
    assert [(where, test.fact) for where, test in conditions.tests(CONDITION.validate_python(tree))] == [
        (("when", "all", 0), "a"),
        (("when", "all", 1, "none", 0, "any", 0), "b"),
        (("when", "all", 1, "none", 0, "any", 1), "c"),
    ]


@pytest.mark.parametrize(
    ("test", "plain", "negated"),
    [
        ({"fact": "time_us", "op": ">=", "value": 60}, "time_us >= 60", "time_us < 60"),
        ({"fact": "uses_restrict"}, "uses_restrict", "not uses_restrict"),
        ({"fact": "uses_restrict", "value": False}, "not uses_restrict", "uses_restrict"),
        ({"fact": "f", "op": "in", "value": ["a", "b"]}, "f in [a, b]", "f not in [a, b]"),
        ({"fact": "f", "op": "missing"}, "f not known", "f known"),
        ({"fact": "f", "op": "<", "value": {"fact": "device_sm"}}, "f < device_sm", "f >= device_sm"),
    ],
)
def test_words_of_a_comparison(test, plain, negated):
    parsed = Test.model_validate(test)
    assert (phrase(parsed), phrase(parsed, negated=True)) == (plain, negated)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (94.32999, "94.33"),
        (16.0, "16"),
        (True, "true"),
        (1e-05, "1e-05"),
        ("x", "x"),
        (None, "unknown"),
        (3, "3"),
        (123456.7, "1.235e+05"),
    ],
)
def test_values_as_people_write_them(value, text):
    assert show(value) == text

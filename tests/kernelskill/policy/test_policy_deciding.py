"""Loading and deciding from the outside: folders, for_each, digests, unusable facts, determinism."""

import itertools
import json
import random

import pytest
from policy_support import METHODS, ROOT, book_of, facts, policy_of, python, write_rules

from kernelskill.errors import DecisionError
from kernelskill.model import Decision, Fact
from kernelskill.policy import Policy, load_rules
from kernelskill.policy.schema import RuleFile, json_schema

RULES = """
rules:
  - id: dram_bound
    when: {all: [{fact: dram_throughput_pct, op: ">=", value: 60}, {fact: sm_throughput_pct, op: "<", value: 80}]}
    then: [{derive: bottleneck.dram}]
    priority: 900
    because: "DRAM moves {dram_throughput_pct} % of its peak while the SMs wait."
    source: "Nsight Compute Profiling Guide, Memory Chart"
    status: stable
    since: "0.1"
  - id: propose_vectorized_access
    when: {all: [{fact: bottleneck.dram}, {fact: vector_load_bytes, op: "<", value: 16}]}
    then: [{propose: vectorized_access, gain: {low: 1.05, high: 1.35}}]
    because: "loads are {vector_load_bytes} bytes wide"
  - id: otherwise
    when: {none: [{fact: bottleneck.dram}]}
    then: [{propose: launch_tuning, gain: "min(headroom, 1.5)"}]
    priority: 100
  - id: failed_here
    for_each: method
    when: {fact: "failed_here.{method}", op: ">=", value: 1}
    then: [{veto: "{method}"}]
    because: "{method} failed {failed_here.{method}} times here"
  - id: fast_enough
    when: {fact: headroom, op: "<=", value: 1.05}
    then: [{stop: near_speed_of_light}]
"""


def test_one_decision(tmp_path):
    book = book_of(tmp_path, RULES)
    decision = Policy(book).decide(facts(dram_throughput_pct=94.3, sm_throughput_pct=20, vector_load_bytes=4))
    assert (decision.outcome, decision.chosen.method, decision.derived) == (
        "method",
        "vectorized_access",
        {"bottleneck.dram": True},
    )
    assert decision.reason == (
        "vectorized_access: expected 1.2x, proposed by propose_vectorized_access because loads are 4 bytes wide"
    )
    first = decision.fired[0]
    assert (first.rule, first.matched, first.because, first.effects) == (
        "dram_bound",
        {"dram_throughput_pct": 94.3, "sm_throughput_pct": 20},
        "DRAM moves 94.3 % of its peak while the SMs wait.",
        ("derive bottleneck.dram",),
    )
    assert first.location == f"{tmp_path}/rules.yaml:3:9" and decision.rules_digest == book.digest
    assert Decision.model_validate_json(decision.model_dump_json()) == decision


def test_unknown_is_neither_true_nor_false(tmp_path):
    """With `sm_throughput_pct` unknown neither the rule nor its opposite fires, but absence of a derived fact is known."""
    rules = (
        RULES + "  - id: busy\n    when: {none: [{fact: sm_throughput_pct, op: '<', value: 80}]}\n    then: [{stop: busy}]\n"
    )
    decision = policy_of(tmp_path, rules).decide(facts(dram_throughput_pct=94.3))
    assert [rule.rule for rule in decision.fired] == ["otherwise"]
    assert decision.reason == (
        "launch_tuning: expected 1x (headroom is unknown, so 1x is assumed), proposed by otherwise because not bottleneck.dram"
    )


def test_a_copy_for_every_method(tmp_path):
    decision = policy_of(tmp_path, RULES).decide(facts({"failed_here.launch_tuning": 2, "failed_here.register_blocking": 0}))
    assert decision.stop_reason == "no_method_left"
    assert [(rule.rule, rule.because) for rule in decision.fired] == [
        ("failed_here[launch_tuning]", "launch_tuning failed 2 times here"),
        ("otherwise", ""),
    ]
    assert decision.candidates[0].fate_reason == "vetoed by failed_here[launch_tuning] (failed_here.launch_tuning = 2)"


def test_a_copy_for_every_method_but_some(tmp_path):
    rules = RULES.replace("for_each: method", 'for_each: {method: "*", except: [launch_tuning]}')
    given = facts({"failed_here.launch_tuning": 2, "failed_here.register_blocking": 1})
    decision = policy_of(tmp_path, rules).decide(given)
    assert decision.chosen.method == "launch_tuning"
    assert [rule.rule for rule in decision.fired] == ["failed_here[register_blocking]", "otherwise"]


def test_stop_rule(tmp_path):
    decision = policy_of(tmp_path, RULES).decide(facts(headroom=1.04))
    assert (decision.outcome, decision.chosen, decision.stop_reason) == ("stop", None, "near_speed_of_light")
    assert decision.reason == "near_speed_of_light: stop by fast_enough because headroom = 1.04"


def test_a_later_folder_replaces_by_id(tmp_path):
    shipped = write_rules(tmp_path / "shipped", RULES)
    mine = write_rules(
        tmp_path / "mine",
        "rules:\n  - id: fast_enough\n    when: {fact: headroom, op: '<=', value: 2}\n    then: [{stop: enough_for_me}]\n",
    )
    decision = Policy(load_rules([shipped, mine], METHODS)).decide(facts(headroom=1.5))
    assert decision.stop_reason == "enough_for_me"
    stop = next(rule for rule in decision.fired if rule.rule == "fast_enough")
    assert (
        stop.location
        == f"{mine}/rules.yaml:2:9 (replaces {shipped}/rules.yaml:{RULES.splitlines().index('  - id: fast_enough') + 1}:9)"
    )


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"bottleneck.dram": True}, "bottleneck.dram is derived by rules and cannot be given"),
        ({"time_us": "fast"}, "time_us = 'fast' is not a number"),
        ({"uses_restrict": 1}, "uses_restrict = 1 is not a bool"),
        ({"task_flops": 2**53 + 1}, "task_flops = 9007199254740993 is too large for an exact number"),
    ],
)
def test_facts_that_cannot_be_used(tmp_path, given, message):
    with pytest.raises(DecisionError) as caught:
        policy_of(tmp_path, RULES).decide(facts(given))
    assert message in str(caught.value)


def test_every_unusable_fact_is_named(tmp_path):
    wrong = {"time_us": Fact(name="round", value=1, provenance="history"), **facts(headroom=float("inf"))}
    with pytest.raises(DecisionError, match=r"headroom = inf is not a finite number; time_us holds the fact round"):
        policy_of(tmp_path, RULES).decide(wrong)


def test_digest_is_of_what_the_rules_say(tmp_path):
    book = book_of(tmp_path / "a", RULES)
    head, *rules = RULES.split("  - id: ")
    moved = head + "".join(f"\n  # a comment\n  - id: {text}" for text in reversed(rules))
    assert book_of(tmp_path / "b", moved).digest == book.digest
    assert book_of(tmp_path / "c", RULES.replace("1.35", "1.4")).digest != book.digest
    assert book_of(tmp_path / "d", RULES, (*METHODS, "loop_unrolling")).digest != book.digest


def test_a_book_without_a_rule(tmp_path):
    book = book_of(tmp_path, RULES)
    assert Policy(book.without("fast_enough")).decide(facts(headroom=1.04)).chosen.method == "launch_tuning"
    assert len(book.without("failed_here").rules) == len(book.rules) - len(METHODS)
    assert len(book.without("failed_here[launch_tuning]").rules) == len(book.rules) - 1


GIVEN = {
    "dram_throughput_pct": 94.3,
    "sm_throughput_pct": 20.0,
    "vector_load_bytes": 4,
    "headroom": 3.5,
    "failed_here.launch_tuning": 1,
    "task_family": "matmul",
    "uses_restrict": False,
}


def test_the_order_of_facts_and_files_does_not_matter(tmp_path):
    expected = policy_of(tmp_path / "one", RULES).decide(facts(GIVEN))
    pieces = ["  - id: " + text for text in RULES.split("  - id: ")[1:]]
    for attempt in range(6):
        shuffle = random.Random(attempt)
        shuffle.shuffle(pieces)
        folder = tmp_path / str(attempt)
        for name, piece in zip("zyxwv", pieces, strict=True):
            write_rules(folder / name, "rules:\n" + piece, f"{name}.yaml")
        items = list(GIVEN.items())
        shuffle.shuffle(items)
        decision = Policy(load_rules([folder], METHODS)).decide(facts(dict(items)))
        assert without_places(decision) == without_places(expected)


def without_places(decision):
    return decision.model_dump(exclude={"fired": {"__all__": {"location"}}})


def test_processes_and_hash_seeds_do_not_matter(tmp_path):
    write_rules(tmp_path, RULES)
    code = f"""
from pathlib import Path
from kernelskill.model import Fact
from kernelskill.policy import Policy, load_rules
given = {GIVEN!r}
policy = Policy(load_rules([Path({str(tmp_path)!r})], set({METHODS!r})))
print(policy.decide({{n: Fact(name=n, value=v, provenance='source') for n, v in given.items()}}).model_dump_json())
"""
    printed = {python(code, PYTHONHASHSEED=seed) for seed in ("0", "1", "2", "31337")}
    assert len(printed) == 1 and next(iter(printed))[0] == 0
    assert json.loads(next(iter(printed))[1])["chosen"]["method"] == "vectorized_access"


def test_the_same_policy_decides_the_same_again(tmp_path):
    policy = policy_of(tmp_path, RULES)
    worlds = [facts(dict(items)) for items in itertools.combinations(GIVEN.items(), 4)]
    first = [policy.decide(world) for world in worlds]
    assert [policy.decide(world) for world in reversed(worlds)] == first[::-1]


def test_schema_for_editors():
    schema = json.loads(json_schema())
    assert json_schema() == json_schema() and schema["properties"]["rules"]["items"] == {"$ref": "#/$defs/Rule"}
    rule = schema["$defs"]["Rule"]
    assert rule["additionalProperties"] is False and rule["required"] == ["id", "when", "then"]
    assert rule["properties"]["priority"]["maximum"] == 999 and "description" in rule["properties"]["because"]
    assert schema["$defs"]["Test"]["properties"]["op"]["enum"][:2] == ["==", "!="]


def test_the_shipped_schema_is_fresh():
    assert (ROOT / "rules" / "schema.json").read_text() == json_schema(), "write kernelskill.policy.schema.json_schema() to it"


def test_the_language_refuses_what_it_does_not_know():
    assert RuleFile.model_validate({"rules": []}).rules == []
    with pytest.raises(ValueError, match="extra"):
        RuleFile.model_validate({"rules": [], "more": 1})

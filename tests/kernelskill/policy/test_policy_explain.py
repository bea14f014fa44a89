"""Explanations: golden texts, small on purpose."""

import pytest
from policy_support import book_of, facts

from kernelskill.policy import Policy, why, why_not
from kernelskill.policy.explain import lacking

RULES = """
rules:
  - id: dram_bound
    when: {fact: dram_throughput_pct, op: ">=", value: 60}
    then: [{derive: bottleneck.dram}]
    priority: 900
    because: "DRAM is at {dram_throughput_pct} %"
    source: "guide"
  - id: widen
    when: {all: [{fact: bottleneck.dram}, {fact: vector_load_bytes, op: "<", value: 16}]}
    then: [{propose: vectorized_access, gain: 1.2}]
  - id: tile
    when:
      all:
        - {fact: bottleneck.dram}
        - any:
            - {fact: stall_barrier_pct, op: ">", value: 10}
            - {all: [{fact: task_family, op: in, value: [matmul, transpose]}, {fact: uses_shared_memory, value: false}]}
    then: [{propose: shared_memory_tiling, gain: 3}]
  - id: no_blocks_yet
    when: {none: [{fact: uses_shared_memory}, {fact: spill_bytes, op: ">", value: 0}]}
    then: [{propose: register_blocking, gain: 1.1}, {prefer: vectorized_access, over: register_blocking}]
  - id: never_here
    when: {fact: uses_restrict}
    then: [{derive: done.restrict}]
  - id: too_many_registers
    when: {fact: registers_per_thread, op: between, value: [200, 255]}
    then: [{veto: launch_tuning}]
"""
GIVEN = {
    "dram_throughput_pct": 94.3,
    "vector_load_bytes": 4,
    "uses_shared_memory": False,
    "spill_bytes": 0,
    "uses_restrict": True,
    "registers_per_thread": 210,
}


@pytest.fixture(name="book")
def _book(tmp_path):
    return book_of(tmp_path, RULES)


def test_one_line(book):
    assert why(Policy(book).decide(facts(GIVEN)), "line") == (
        "vectorized_access: expected 1.2x, proposed by widen because bottleneck.dram = true, vector_load_bytes = 4"
    )


def test_the_rules_that_mattered(book):
    assert (
        why(Policy(book).decide(facts(GIVEN)))
        == """\
vectorized_access: expected 1.2x, proposed by widen because bottleneck.dram = true, vector_load_bytes = 4
rules that mattered:
  dram_bound [dram_throughput_pct = 94.3]
    DRAM is at 94.3 %
    source: guide
  widen [bottleneck.dram = true, vector_load_bytes = 4]
  no_blocks_yet [uses_shared_memory = false, spill_bytes = 0]
candidates:
  vectorized_access: chosen, the only candidate left
  register_blocking: beaten, vectorized_access is preferred by no_blocks_yet (uses_shared_memory = false, spill_bytes = 0)"""
    )


def test_everything(book):
    decision = Policy(book).decide(facts(GIVEN))
    text = why(decision, "all")
    assert "rules that fired:" in text and "\n  never_here [uses_restrict = true]\n" in text
    assert "\nderived:\n  bottleneck.dram\n  done.restrict\n" in text
    assert "\n  dram_throughput_pct = 94.3 % (modelled)\n" in text and text.endswith(f"rules digest:\n  {book.digest}")


def test_why_not_a_candidate(book):
    assert why_not(Policy(book).decide(facts(GIVEN)), "register_blocking", book) == (
        "register_blocking: beaten, vectorized_access is preferred by no_blocks_yet "
        "(uses_shared_memory = false, spill_bytes = 0)\n  proposed by no_blocks_yet"
    )
    assert why_not(Policy(book).decide(facts(GIVEN)), "vectorized_access", book).startswith("vectorized_access: chosen")


def test_why_not_proposed_names_value_margin_and_what_is_unknown(book, tmp_path):
    decision = Policy(book).decide(facts(dram_throughput_pct=41.2, task_family="matmul", uses_shared_memory=True))
    assert (
        why_not(decision, "shared_memory_tiling", book)
        == f"""\
shared_memory_tiling was not proposed:
  tile ({tmp_path}/rules.yaml:12:9)
    needs bottleneck.dram, which no rule derived
      dram_bound:
        needs dram_throughput_pct >= 60; it is 41.2 (off by 18.8)
    one of:
    - needs stall_barrier_pct > 10; stall_barrier_pct is unknown: needs ncu
    - needs not uses_shared_memory; it is true"""
    )


def test_why_not_a_negated_condition(book):
    decision = Policy(book).decide(facts(uses_shared_memory=True))
    assert why_not(decision, "register_blocking", book).splitlines()[2:] == [
        "    needs not uses_shared_memory; it is true",
        "    needs spill_bytes <= 0; spill_bytes is unknown: needs ptxas",
    ]


def test_why_not_when_no_rule_proposes_it(book):
    assert why_not(Policy(book).decide({}), "launch_tuning", book) == "launch_tuning was not proposed: no rule proposes it."


def test_nothing_lacks_where_the_condition_holds(book):
    for rule in book.rules:
        fired = {r.rule for r in Policy(book).decide(facts(GIVEN)).fired}
        lacks = lacking(rule.rule.when, {**GIVEN, "bottleneck.dram": True, "done.restrict": True}, book)
        assert (lacks == []) == (rule.id in fired)


def test_exactly_on_the_threshold(book):
    decision = Policy(book).decide(facts(dram_throughput_pct=70, vector_load_bytes=16))
    assert "needs vector_load_bytes < 16; it is 16 (exactly the threshold)" in why_not(decision, "vectorized_access", book)


def test_absence_that_is_not_given(tmp_path):
    book = book_of(
        tmp_path / "x",
        RULES + "  - id: calm\n    when: {none: [{fact: bottleneck.dram}]}\n    then: [{propose: launch_tuning}]\n",
    )
    decision = Policy(book).decide(facts(dram_throughput_pct=70))
    assert "needs not bottleneck.dram, but bottleneck.dram was derived" in why_not(decision, "launch_tuning", book)

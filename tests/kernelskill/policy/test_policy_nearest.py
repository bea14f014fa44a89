"""The nearest change under which a method would have been chosen."""

import pytest
from policy_support import facts, policy_of

from kernelskill.policy.nearest import nearest

RULES = """
rules:
  - {id: dram, when: {fact: dram_throughput_pct, op: ">=", value: 60}, then: [{derive: bottleneck.dram}]}
  - id: tile
    when: {all: [{fact: bottleneck.dram}, {fact: uses_shared_memory, value: false}]}
    then: [{propose: shared_memory_tiling, gain: 3}]
  - id: widen
    when:
      any: [{all: [{fact: vector_load_bytes, op: "<", value: 16}, {fact: uses_restrict}]}, {fact: round, op: ">", value: 90}]
    then: [{propose: vectorized_access, gain: 1.2}]
  - {id: block, when: {fact: bottleneck.dram, value: false}, then: [{propose: register_blocking, gain: 2}]}
  - {id: failed, for_each: method, when: {fact: "failed_here.{method}", op: ">", value: 0}, then: [{veto: "{method}"}]}
  - {id: tune_late, when: {fact: round, op: missing}, then: [{propose: launch_tuning}], priority: 900}
  - {id: wait, when: {fact: task_family, value: matmul}, then: [{require: shared_memory_tiling, before: register_blocking}]}
  - {id: done, when: {fact: headroom, op: "<", value: 1.1}, then: [{stop: near_speed_of_light}]}
"""
BASE = {"dram_throughput_pct": 40, "uses_shared_memory": False, "vector_load_bytes": 16, "uses_restrict": True, "round": 1}


@pytest.mark.parametrize(
    ("given", "method", "change"),
    [
        ({}, "shared_memory_tiling", {"dram_throughput_pct": 60}),
        ({"uses_shared_memory": True}, "shared_memory_tiling", {"dram_throughput_pct": 60, "uses_shared_memory": False}),
        ({"dram_throughput_pct": 70}, "register_blocking", {"dram_throughput_pct": 59}),
        ({}, "launch_tuning", {"round": None}),
        ({"failed_here.register_blocking": 2}, "register_blocking", {"failed_here.register_blocking": 0}),
        ({"headroom": 1.0}, "register_blocking", {"headroom": 1.1}),
        ({"task_family": "matmul", "applied.shared_memory_tiling": False}, "vectorized_access", {"vector_load_bytes": 15}),
        ({"dram_throughput_pct": None, "round": 91}, "register_blocking", {}),
    ],
)
def test_the_smallest_change(tmp_path, given, method, change):
    policy = policy_of(tmp_path, RULES)
    values = {name: value for name, value in {**BASE, **given}.items() if value is not None}
    found = nearest(policy.decide(facts(values)), method, policy)
    assert found is not None and dict(found.changes) == change
    assert found.after.chosen.method == method


def test_words(tmp_path):
    policy = policy_of(tmp_path, RULES)
    assert str(nearest(policy.decide(facts(BASE)), "shared_memory_tiling", policy)) == "dram_throughput_pct = 60 instead of 40"
    assert str(nearest(policy.decide(facts(BASE)), "launch_tuning", policy)) == "round = unknown instead of 1"


def test_a_method_that_no_rule_proposes_is_never_chosen(tmp_path):
    policy = policy_of(tmp_path, RULES.replace("propose: launch_tuning", "derive: late.round"))
    assert nearest(policy.decide(facts(BASE)), "launch_tuning", policy) is None


def test_what_outranks_the_method_is_silenced(tmp_path):
    """register_blocking (2x) beats vectorized_access (1.2x): its rule must not fire either."""
    policy = policy_of(tmp_path, RULES)
    found = nearest(policy.decide(facts(BASE)), "vectorized_access", policy)
    assert found is not None and len(found.changes) == 3
    assert found.changes["vector_load_bytes"] == 15 and found.changes["dram_throughput_pct"] == 60

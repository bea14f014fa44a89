"""A rule set that was found clean is not judged again; one that was not, always is. The benchmark measures what it says."""

import json
import random

import pytest
from policy_support import METHODS, ROOT, facts, write_rules

from benchmarks import policy as bench
from kernelskill import documentcache
from kernelskill.errors import RuleError
from kernelskill.methods import load_methods
from kernelskill.policy import Policy, load_rules, loader

CLEAN = """
rules:
  - id: r
    when: {fact: headroom, op: ">", value: 2}
    then: [{propose: launch_tuning, gain: 1.1}]
    because: "{headroom} left"
    source: measured
"""


@pytest.fixture(name="judged")
def _judged(monkeypatch):
    """How often rules were linted."""
    calls, lint = [], loader.lint
    monkeypatch.setattr(loader, "lint", lambda *arguments: calls.append(1) or lint(*arguments))
    return calls


def test_a_clean_rule_set_is_judged_once(tmp_path, judged):
    folder = write_rules(tmp_path, CLEAN.replace("headroom, op", "best_speedup, op").replace("{headroom}", "{best_speedup}"))
    first, again = load_rules([folder], METHODS), load_rules([folder], METHODS)
    assert len(judged) == 1 and first.digest == again.digest and again.warnings == ()
    load_rules([folder], (*METHODS, "loop_unrolling"))
    write_rules(tmp_path, (folder / "rules.yaml").read_text().replace("value: 2", "value: 3"))
    load_rules([folder], METHODS)
    assert len(judged) == 3, "other methods and other rules are judged for themselves"


@pytest.mark.parametrize(
    "change, found", [("source: measured", "has no `source`"), ('because: "{headroom} left"', "has no `because`")]
)
def test_warnings_are_found_every_time(tmp_path, judged, change, found):
    folder = write_rules(tmp_path, CLEAN.replace(change, f'title: "{found}"'))
    for _ in range(2):
        assert found in load_rules([folder], METHODS).warnings[0]
    assert len(judged) == 2


def test_errors_are_found_every_time(tmp_path):
    folder = write_rules(tmp_path, CLEAN + CLEAN.replace("rules:", "").replace("headroom, op", "headroom, op"))
    for _ in range(2):
        with pytest.raises(RuleError, match="rule id r is used twice"):
            load_rules([folder], METHODS)


def test_a_change_of_the_code_makes_old_findings_void(tmp_path, judged, monkeypatch):
    folder = write_rules(tmp_path, CLEAN.replace("value: 2", "value: 2.25"))
    load_rules([folder], METHODS)
    monkeypatch.setattr(documentcache, "code_digest", lambda *files: "other code")
    load_rules([folder], METHODS)
    assert len(judged) == 2


def test_a_cache_that_cannot_be_used_is_no_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    (tmp_path / "file").write_text("")
    folder = write_rules(tmp_path / "rules", CLEAN)
    assert Policy(load_rules([folder], METHODS)).decide(facts(headroom=2.5)).chosen.method == "launch_tuning"
    assert documentcache.fetch(documentcache.entry("x")) is None


def test_the_benchmark_decides_on_dense_facts():
    book = load_rules([ROOT / "rules"], load_methods(ROOT / "knowledge" / "methods").keys())
    worlds = list(bench.fact_sets(book, random.Random(1)))
    assert len(worlds) == bench.FACT_SETS and all(len(world) > 150 for world in worlds)
    assert worlds == list(bench.fact_sets(book, random.Random(1))), "the same for the same rules"
    for world in worlds[::50]:
        assert bench.Unchecked(book).decide(world) == Policy(book).decide(world)
    assert [len(times) for times in bench.times_ms(Policy(book), Policy(book), worlds[:3])] == [3, 3, 3]


def test_the_recorded_result_has_every_key():
    result = json.loads((ROOT / "benchmarks" / "results" / "policy.json").read_text())
    assert {
        "rules",
        "facts",
        "p50_ms",
        "p99_ms",
        "p50_ms_with_oracle",
        "p99_ms_with_oracle",
        "prepare_ms",
        "load_s",
        "decisions_per_s",
        "python",
        "cpu",
    } <= result.keys()

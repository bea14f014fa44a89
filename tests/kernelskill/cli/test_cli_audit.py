"""why, whatif and replay over a recorded run."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from kernelskill.memory.run import Run
from kernelskill.model import Decision
from kernelskill.policy import Policy, why
from kernelskill.report.audit import rules_of

ROOT = Path(__file__).parents[3]


def test_the_run_in_lines_a_round_in_rules(kernelskill, recorded_run):
    lines = kernelskill("why", recorded_run).out.splitlines()
    assert lines[0].startswith("round 1: vectorized_access: expected 1.2x, proposed by our_widen because a lane moves 4 bytes")
    assert lines[1] == "  → not_written"
    assert [line[:8] for line in lines if line.startswith("round")] == ["round 1:", "round 2:", "round 3:"]
    one = kernelskill("why", recorded_run, "--round", 1).out
    assert "rules that mattered:" in one and "our_widen [vector_load_bytes = 4, dram_throughput_pct = 71.5]" in one
    assert "  launch_tuning: outranked, priority 997 (our_tune) against 998 of vectorized_access" in one
    (folder,) = Run.open(recorded_run).config.rules
    assert one.endswith(f"rules of this run: the built-in ones, then (a later rule wins by id)\n  {folder}\n")


@pytest.mark.parametrize(
    "depth, has, lacks",
    [
        ("line", "expected 1.2x", "rules that mattered"),
        ("rules", "rules that mattered:", "rules digest"),
        ("all", "block_threads = 1024 threads (simulated)", "rules that mattered"),
    ],
)
@pytest.mark.parametrize("round_", [[], ["--round", 1]])
def test_three_depths_for_a_round_and_for_a_run(kernelskill, recorded_run, depth, has, lacks, round_):
    said = kernelskill("why", recorded_run, *round_, "--depth", depth).out
    assert has in said and lacks not in said
    assert said.count("round ") >= (1 if round_ else 3)


def test_why_not_and_the_nearest_change(kernelskill, recorded_run):
    assert (
        "needs vector_load_bytes < 16; it is 16 (exactly the threshold)"
        in kernelskill("why", recorded_run, "--round", 2, "--not", "vectorized_access").out
    )
    verdicts = kernelskill("why", recorded_run, "--not", "vectorized_access", "--json").json
    assert [entry["round"] for entry in verdicts] == [1, 2, 3] and verdicts[0]["verdict"].startswith(
        "vectorized_access: chosen"
    )
    said = kernelskill("why", recorded_run, "--round", 2, "--not", "launch_tuning", "--nearest").out
    assert said == "round 2: launch_tuning was chosen\n"
    (found,) = kernelskill("why", recorded_run, "--round", 2, "--not", "vectorized_access", "--nearest", "--json").json
    assert found["changes"] == {"vector_load_bytes": {"from": 16, "to": 15}}
    assert (
        "vectorized_access would have been chosen with\n  vector_load_bytes = 15 instead of 16\n  then: vectorized_access"
        in kernelskill("why", recorded_run, "--round", 2, "--not", "vectorized_access", "--nearest").out
    )


def test_nearest_without_a_method_and_an_unknown_method(kernelskill, recorded_run):
    assert "--nearest needs --not METHOD" in kernelskill("why", recorded_run, "--nearest", expect=2).err
    error = kernelskill("why", recorded_run, "--not", "launch_tunning", expect=2).err
    assert "did you mean 'launch_tuning'" in error


def test_whatif_other_facts(kernelskill, recorded_run):
    said = kernelskill("whatif", recorded_run, "--fact", "vector_load_bytes=16").out
    assert said.startswith("round 1: vectorized_access → launch_tuning(threads=256)\n  launch_tuning: expected 1.05x")
    assert said.endswith("1 of 3 decisions changes\n")
    found = kernelskill("whatif", recorded_run, "--fact", "dram_throughput_pct=unknown", "--json").json
    assert [entry["changed"] for entry in found["decisions"]] == [True, False, False]
    assert found["decisions"][0]["fates"]["vectorized_access"] == [
        "chosen, priority 998 (our_widen) against 997 of launch_tuning",
        "not proposed",
    ]


def test_whatif_without_a_rule_and_with_other_rules(kernelskill, recorded_run, extra_rules, tmp_path):
    said = kernelskill("whatif", recorded_run, "--round", 1, "--without-rule", "our_widen").out
    assert "vectorized_access → launch_tuning(threads=256)" in said
    (tmp_path / "ours.yaml").write_text((extra_rules / "ours.yaml").read_text().replace("value: 60", "value: 75"))
    said = kernelskill("whatif", recorded_run, "--rules", tmp_path).out
    assert "round 1: vectorized_access → launch_tuning(threads=256)" in said and "1 of 3 decisions changes" in said
    assert "\n  vectorized_access: outranked, priority" in said
    veto = "rules:\n  - {id: no_vec, when: {fact: block_threads, op: exists}, then: [{veto: vectorized_access}]}\n"
    (tmp_path / "ours.yaml").write_text(veto)
    said = kernelskill("whatif", recorded_run, "--rules", tmp_path).out
    assert "\n  vectorized_access: vetoed by no_vec (block_threads = 1024)\n" in said
    stays = kernelskill("whatif", recorded_run, "--round", 2, "--without-rule", "our_widen").out
    assert stays.startswith("round 2: launch_tuning(threads=256) stays") and "0 of 1 decision change\n" in stays


@pytest.mark.parametrize(
    "arguments, message",
    [
        ([], "give --fact NAME=VALUE, --without-rule ID or --rules DIR"),
        (["--fact", "headroom"], "'headroom' is not NAME=VALUE"),
        (["--fact", "hedroom=1"], "did you mean 'headroom'?"),
        (["--fact", "dram_throughput_pct=200"], "it is a number, at least 0 and at most 100"),
        (["--fact", "dram_throughput_pct=nan"], "it is a number, at least 0 and at most 100"),
        (["--fact", "headroom=x"], "it is a number, at least 0"),
        (["--fact", "uses_restrict=1"], "it is true or false"),
        (["--fact", "task_kind=x"], "it is native or kernelbench"),
        (["--fact", "bottleneck.dram=true"], "bottleneck.dram is derived by rules and cannot be given"),
        (["--without-rule", "our_widn"], "did you mean 'our_widen'"),
    ],
)
def test_whatif_wrong_use(kernelskill, recorded_run, arguments, message):
    assert message in kernelskill("whatif", recorded_run, *arguments, expect=2).err


def test_replay_over_hash_seeds_in_processes_of_their_own(recorded_run):
    for seed in ("0", "1", "4711"):
        done = subprocess.run(
            [sys.executable, "-m", "kernelskill", "replay", str(recorded_run), "--json"],
            cwd=ROOT,
            text=True,
            capture_output=True,
            env={**os.environ, "PYTHONHASHSEED": seed},
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        assert json.loads(done.stdout) == {"decisions": 3, "identical": True, "difference": None}


def test_replay_names_the_first_difference(kernelskill, run_copy):
    journal = run_copy / "journal.jsonl"
    journal.write_text(journal.read_text().replace('"expected_gain": 1.05', '"expected_gain": 1.06', 1))
    assert kernelskill("replay", run_copy, expect=1).out.startswith("round 1: candidates: launch_tuning was")


def test_replay_with_the_rules_of_another_version(kernelskill, recorded_run, tmp_path):
    shutil.copytree(ROOT / "rules", tmp_path / "rules")
    same = kernelskill("replay", recorded_run, "--builtin", tmp_path / "rules", "--json").json
    assert same == {"decisions": 3, "identical": True, "difference": None}
    for file in (tmp_path / "rules" / "latency").glob("*.yaml"):
        file.unlink()
    assert "the rules differ" in kernelskill("replay", recorded_run, "--builtin", tmp_path / "rules", expect=1).out


def test_a_decision_of_another_version_is_refused(kernelskill, run_copy):
    journal = run_copy / "journal.jsonl"
    journal.write_text(journal.read_text().replace('"decision": {"version": 1', '"decision": {"version": 7'))
    error = kernelskill("replay", run_copy, expect=2).err
    assert "the run holds decisions of version 7, this program reads version 1" in error


def test_a_decision_event_stands_alone(recorded_run):
    """Facts with provenance, digest, fired rules with what they matched, a fate for each method: nothing else is needed."""
    events = [json.loads(line) for line in (recorded_run / "journal.jsonl").read_text().splitlines()]
    first = next(event["decision"] for event in events if event["event"] == "decision")
    assert first["version"] == 1 and len(first["rules_digest"]) == 64
    assert first["facts"]["block_threads"] == {
        "name": "block_threads",
        "value": 1024,
        "unit": "threads",
        "provenance": "simulated",
    }
    assert {"our_widen", "our_tune"} <= {rule["rule"] for rule in first["fired"]}
    assert all(candidate["fate_reason"] for candidate in first["candidates"])
    assert Decision.model_validate(first).chosen.method == "vectorized_access"


def test_a_replaced_rule_is_shown_in_the_decisions_that_it_touches(kernelskill, recorded_run, extra_rules, tmp_path):
    later = tmp_path / "later"
    later.mkdir()
    shutil.copy(extra_rules / "ours.yaml", later / "ours.yaml")
    (later / "ours.yaml").write_text((later / "ours.yaml").read_text().replace("value: 60", "value: 75"))
    run = Run.open(recorded_run)
    policy = Policy(rules_of(run, [later]))
    decisions = [policy.decide(decision.facts) for _, _, decision in run.decisions]
    before = extra_rules / "ours.yaml"
    text = f"our_widen at {later}/ours.yaml:2:9 did not fire; the rule that it replaces, at {before}:2:9, would have fired"
    assert text in decisions[0].replacements
    assert f"  {text}" in why(decisions[0]).splitlines()
    assert "2 replaced rules: see --depth rules" in why(decisions[0], "line")
    assert not [line for line in decisions[1].replacements if "our_widen" in line], "neither fires there"
    assert any("our_tune" in line and "fired; the rule that it replaces" in line for line in decisions[1].replacements)

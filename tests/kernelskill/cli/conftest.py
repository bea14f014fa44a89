"""A recorded run whose decisions follow from two rules of its own, and the command line called in this process."""

import json
import shutil
import sys
from pathlib import Path

import pytest

from evaluator.types import DeviceSpec, Evaluation
from kernelskill.cli import main
from kernelskill.memory.run import Run, RunConfig
from kernelskill.methods import load_methods
from kernelskill.model import Attempt, Fact
from kernelskill.paths import methods_folder, rules_folder
from kernelskill.policy import Policy, load_rules
from kernelskill.vocabulary import lookup

ROOT = Path(__file__).parents[3]
EXTRA = """\
rules:
  - id: our_widen
    title: Narrow loads
    when: {all: [{fact: vector_load_bytes, op: "<", value: 16}, {fact: dram_throughput_pct, op: ">=", value: 60}]}
    then: [{propose: vectorized_access, gain: {low: 1.1, high: 1.3}}]
    priority: 998
    because: "a lane moves {vector_load_bytes} bytes"
    source: measured
  - id: our_tune
    when: {fact: block_threads, op: ">", value: 512}
    then: [{propose: launch_tuning, gain: 1.05, params: {threads: 256}}]
    priority: 997
    because: "{block_threads} threads"
    source: measured
"""
ROUNDS = (
    {"vector_load_bytes": 4, "dram_throughput_pct": 71.5, "block_threads": 1024},
    {"vector_load_bytes": 16, "dram_throughput_pct": 80.0, "block_threads": 1024},
    {"vector_load_bytes": 16, "dram_throughput_pct": 80.0, "block_threads": 256},
)
ABLE = ("vectorized_access", "launch_tuning")


def fact(name, value):
    spec = lookup(name)
    return Fact(name=name, value=value, unit=spec.unit, provenance=spec.sources[0])


def facts_of(values):
    known = {"task_family": "elementwise", **{f"applicable.{method}": True for method in ABLE}, **values}
    return {name: fact(name, value) for name, value in known.items()}


def record(folder, extra):
    """A run of three decisions: two methods, then nothing is left."""
    device = DeviceSpec(
        name="NVIDIA H200",
        compute_capability=(9, 0),
        sm_count=132,
        sm_clock_hz=1.98e9,
        dram_bytes_per_s=4.8e12,
        fp32_flops_per_s=67e12,
        l2_bytes=50 << 20,
        l1_shared_bytes_per_sm=256 << 10,
        shared_bytes_per_sm=228 << 10,
        shared_bytes_per_block=227 << 10,
    )
    config = RunConfig(
        task="row_sum",
        task_copy="task",
        mode="sim",
        device=device,
        rounds=3,
        writer="template",
        timeout_s=60,
        rules=(str(extra),),
        versions={},
    )
    run = Run.create(folder, config, ROOT / "examples" / "row_sum")
    start = run.keep_source("start = 1\n")
    recorded = ROOT / "tests" / "kernelskill" / "facts" / "recorded" / "row_sum.json"
    run.keep_start(start, Evaluation.from_json(recorded.read_text()))
    policy = Policy(load_rules([rules_folder(), extra], load_methods(methods_folder()).keys()))
    for round_, values in enumerate(ROUNDS, start=1):
        decision = policy.decide(facts_of(values))
        run.keep_decision(round_, start, decision)
        if decision.chosen:
            run.keep_attempt(Attempt(round=round_, parent=start, child="", method=decision.chosen, outcome="not_written"))
    run.finish(decision.stop_reason)
    return folder


@pytest.fixture(scope="session")
def extra_rules(tmp_path_factory):
    folder = tmp_path_factory.mktemp("extra")
    (folder / "ours.yaml").write_text(EXTRA)
    return folder


@pytest.fixture(scope="session")
def recorded_run(tmp_path_factory, extra_rules):
    return record(tmp_path_factory.mktemp("recorded") / "run", extra_rules)


@pytest.fixture
def run_copy(recorded_run, tmp_path):
    return shutil.copytree(recorded_run, tmp_path / "run")


class Answer:
    def __init__(self, out, err):
        self.out, self.err = out, err

    @property
    def json(self):
        return json.loads(self.out)


@pytest.fixture
def kernelskill(capsys, monkeypatch):
    """Runs `kernelskill <arguments>` as the entry point does and holds it to an exit code."""

    def call(*arguments, expect=0):
        monkeypatch.chdir(ROOT)
        monkeypatch.setattr(sys, "argv", ["kernelskill", *map(str, arguments)])
        with pytest.raises(SystemExit) as ended:
            main()
        said = capsys.readouterr()
        assert (ended.value.code or 0) == expect, said.out + said.err
        return Answer(said.out, said.err)

    return call

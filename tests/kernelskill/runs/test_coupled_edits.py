"""Coupled edits: a first half that costs time is carried for one step, judged with its other half, and given up without it.

Times are given here, because no first half of a coupled edit is slower on the modelled device; rules and loop are real.
"""

from pathlib import Path
from types import SimpleNamespace

import pytest

from evaluator.types import Environment, Evaluation, Status, TimeEstimate
from kernelskill.agents.optimizer import Optimizer
from kernelskill.errors import WriterError
from kernelskill.facts.device import load_device
from kernelskill.loop import Loop
from kernelskill.memory.run import Run, RunConfig
from kernelskill.methods import load_methods
from kernelskill.model import Decision, Fact, MethodApplication
from kernelskill.policy import Policy, load_rules
from kernelskill.report.live import Silent
from kernelskill.tasks import load_task

ROOT = Path(__file__).parents[3]
CARDS = load_methods(ROOT / "knowledge" / "methods")
TASK = load_task(ROOT / "examples" / "transpose")
TIMES = {"start": 100.0, "tiled": 120.0, "padded": 40.0, "tuned": 90.0, "slow": 130.0}


class Reviewer:
    """Gives each solution, a module of one word, its time; a tile's conflicts go with its padding."""

    def review(self, path, rival=None):
        time = TimeEstimate(provenance="modelled", time_us=TIMES[self.word(path.read_text())])
        return Evaluation(status=Status.PASSED, message="", environment=Environment(device="d", simulated=True, arch="sm_90"),
                          time=time)

    def facts(self, source, evaluation):
        word = self.word(source)
        values = {"task_family": "transpose", "uses_shared_memory": word in ("tiled", "padded", "slow"), "block_threads": 256,
                  "shared_wavefronts_ratio": 16.0 if word in ("tiled", "slow") else 1.0, "library_calls": 0,
                  "time_us": TIMES[word]} | ({"block_threads": 128} if word == "tuned" else {})
        return {name: Fact(name=name, value=value, provenance="simulated") for name, value in values.items()}

    @staticmethod
    def word(source):
        return source.split('"')[1] if '"' in source else "start"


class Writer:
    """Writes what the script says for a method; what it does not say cannot be written."""

    def __init__(self, **script):
        self.script, self.asked = script, []

    def applicable(self, task, source, tried=()):
        return {method: MethodApplication(method=method) for method in self.script}

    def write(self, task, request):
        self.asked.append((request.method.method, Reviewer.word(request.source), bool(request.plan.follow_up)))
        if self.script[request.method.method] is None:
            raise WriterError("not today")
        return f'SOLUTION = "{self.script[request.method.method]}"\n'


class TilingFirst:
    """The rules, but for the first decision."""

    def __init__(self):
        self.rules = Policy(load_rules([ROOT / "rules"], CARDS))
        self.first = True

    def decide(self, facts):
        if not self.first:
            return self.rules.decide(facts)
        self.first = False
        return Decision(outcome="method", chosen=MethodApplication(method="shared_memory_tiling"), reason="first", facts=facts)


@pytest.fixture
def play(tmp_path):
    def run(rounds=3, **script):
        config = RunConfig(task="t", task_copy="task/t.py", mode="sim", device=load_device("h200"), rounds=rounds,
                           writer="handoff", timeout_s=1, versions={})
        (tmp_path / "t.py").write_text("pass\n")
        made = Run.create(tmp_path / "run", config, tmp_path / "t.py")
        writer, reviewer = Writer(**script), Reviewer()
        generator = SimpleNamespace(start=lambda: ((digest := made.keep_source('SOLUTION = "start"\n')),
                                                   reviewer.review(made.source_path(digest))))
        reason = Loop(made, TilingFirst(), generator, Optimizer(TASK, made, reviewer, writer, CARDS), Silent()).optimise()
        return made, writer, reason
    return run


def test_the_pair_is_judged_when_it_is_complete(play):
    run, writer, _ = play(rounds=2, shared_memory_tiling="tiled", bank_conflict_padding="padded", launch_tuning="tuned")
    first, second = run.graph.attempts
    assert (first.outcome, first.opens) == ("regressed", ("bank_conflict_padding", "bank_conflict_swizzle"))
    assert writer.asked[:2] == [("shared_memory_tiling", "start", True), ("bank_conflict_padding", "tiled", False)]
    assert (second.outcome, second.gain) == ("improved", pytest.approx(100 / 40))
    assert run.graph.best == second.child and run.graph.speedup(second.child) == pytest.approx(2.5)
    assert [m.method for m in run.graph.methods(second.child)] == ["shared_memory_tiling", "bank_conflict_padding"]
    decided = run.decisions[1][2]
    assert decided.facts["coupled_edit_open"].value is True
    assert "complete_coupled_edit[bank_conflict_padding]" in {rule.rule for rule in decided.fired}
    assert "nothing_else_between[launch_tuning]" in {rule.rule for rule in decided.fired}


def test_a_pair_that_is_slower_is_given_up_and_the_run_goes_on_from_the_best(play):
    run, writer, _ = play(shared_memory_tiling="tiled", bank_conflict_padding="slow", launch_tuning="tuned")
    assert [a.outcome for a in run.graph.attempts] == ["regressed", "off_method", "improved"]
    assert writer.asked[2][:2] == ("launch_tuning", "start")
    assert run.graph.attempts[2].parent == run.graph.start


def test_without_anything_that_completes_it_the_run_returns_at_once(play):
    run, writer, _ = play(rounds=2, shared_memory_tiling="tiled", launch_tuning="tuned")
    at_the_half, at_the_best = run.decisions[1], run.decisions[2]
    assert at_the_half[1] == run.graph.attempts[0].child and at_the_half[2].outcome == "stop"
    assert (at_the_best[0], at_the_best[1]) == (2, run.graph.start)
    assert writer.asked[1][:2] == ("launch_tuning", "start") and run.graph.rounds == 2


def test_an_open_pair_survives_a_resume(play):
    run, _, _ = play(rounds=1, shared_memory_tiling="tiled", bank_conflict_padding="padded")
    again = Run.open(run.folder)
    assert again.graph.open_pair.opens == run.graph.attempts[0].opens
    assert again.graph.best == again.graph.start


def test_a_half_that_is_faster_by_itself_opens_nothing(play):
    TIMES["tiled"] = 70.0
    try:
        run, _, _ = play(rounds=2, shared_memory_tiling="tiled", bank_conflict_padding="padded")
    finally:
        TIMES["tiled"] = 120.0
    assert (run.graph.attempts[0].outcome, run.graph.attempts[0].opens) == ("improved", ())
    assert "coupled_edit_open" not in run.decisions[1][2].facts

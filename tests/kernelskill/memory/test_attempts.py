import pytest

from evaluator.types import Environment, Evaluation, Status, TimeEstimate
from kernelskill.memory.attempts import AttemptGraph
from kernelskill.memory.history import history_facts, history_lines
from kernelskill.model import Attempt, MethodApplication
from kernelskill.vocabulary import lookup

ENVIRONMENT = Environment(device="card", simulated=True, arch="sm_90")


def passed(us):
    return Evaluation(
        status=Status.PASSED, message="", environment=ENVIRONMENT, time=TimeEstimate(provenance="modelled", time_us=us)
    )


def attempt(round_, parent, child, method, outcome, gain=None, us=None):
    return Attempt(
        round=round_,
        parent=parent,
        child=child,
        method=MethodApplication(method=method),
        outcome=outcome,
        gain=gain,
        evaluation=passed(us) if us else None,
    )


@pytest.fixture
def graph():
    graph = AttemptGraph()
    graph.add_start("s", passed(100.0))
    graph.record(attempt(1, "s", "a", "tiling", "improved", 2.0, 50.0))
    graph.record(attempt(2, "a", "b", "unrolling", "regressed", 0.5, 100.0))
    graph.record(attempt(3, "a", "", "padding", "not_written"))
    graph.record(attempt(4, "a", "s", "tiling", "duplicate"))
    graph.record(attempt(5, "a", "c", "unrolling", "improved", 2.0, 25.0))
    return graph


def test_best_path_and_speedup(graph):
    assert graph.best == "c"
    assert [m.method for m in graph.methods("c")] == ["tiling", "unrolling"]
    assert graph.speedup("c") == pytest.approx(4.0)
    assert "b" in graph and "z" not in graph


def test_the_graph_has_no_cycle_although_a_duplicate_led_back(graph):
    import networkx

    assert networkx.is_directed_acyclic_graph(graph.networkx)
    assert set(graph.networkx) == {"s", "a", "b", "c"}
    assert len(graph.attempts) == 5


def test_speedup_of_different_provenance_is_unknown(graph):
    graph.record(
        Attempt(
            round=6,
            parent="c",
            child="d",
            method=MethodApplication(method="x"),
            outcome="improved",
            gain=None,
            evaluation=Evaluation(
                status=Status.PASSED,
                message="",
                environment=ENVIRONMENT,
                time=TimeEstimate(provenance="cuda_event", time_us=1.0),
            ),
        )
    )
    assert graph.speedup("d") is None


def test_history_facts_at_the_branching_point(graph):
    found = history_facts(graph, "a", 6, 15, ["tiling", "unrolling", "padding", "other"])
    facts = {name: fact.value for name, fact in found.items()}
    assert facts["round"] == 6 and facts["rounds_left"] == 10
    assert facts["rounds_since_best"] == 0
    assert facts["last_outcome"] == "improved"
    assert facts["applied.tiling"] is True and facts["applied.unrolling"] is False
    assert facts["failed_here.padding"] == 1 and facts["failed_here.tiling"] == 0
    assert facts["no_gain_here.unrolling"] == 1 and facts["no_gain_here.tiling"] == 1
    assert facts["last_gain.unrolling"] == 2.0
    assert "last_gain.other" not in facts


def test_every_history_fact_is_in_the_vocabulary(graph):
    assert all(lookup(name) for name in history_facts(graph, "c", 6, 15, ["tiling"]))


def test_the_writers_history_names_method_outcome_and_gain(graph):
    assert history_lines(graph, "a", 9)[0] == "unrolling: regressed, 0.50x"

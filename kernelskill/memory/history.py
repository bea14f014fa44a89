"""The run's past as facts, so that blocking a repeat or stopping is a rule an expert can read, not a hidden `if`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator

from kernelskill.memory.attempts import AttemptGraph
from kernelskill.model import Attempt, Fact, Value

FAILED = frozenset({"failed", "off_method", "not_written"})
NO_GAIN = frozenset({"equal", "regressed", "duplicate"})


def history_facts(graph: AttemptGraph, node: str, round_: int, rounds: int, methods: Iterable[str]) -> dict[str, Fact]:
    """Facts about round `round_` (1-based) of `rounds`, decided at solution `node`."""
    found = {
        name: Fact(name=name, value=value, unit=unit, provenance="history")
        for name, value, unit in _run_facts(graph, node, round_, rounds)
    }
    for method in methods:
        found |= {
            name: Fact(name=name, value=value, provenance="history") for name, value in _method_facts(graph, node, method)
        }
    return found


def _run_facts(graph: AttemptGraph, node: str, round_: int, rounds: int) -> Iterator[tuple[str, Value, str]]:
    improved = [a.round for a in graph.attempts if a.outcome == "improved"]
    yield "round", round_, "rounds"
    yield "rounds_left", rounds - round_ + 1, "rounds"
    yield "rounds_since_best", round_ - 1 - max(improved, default=0), "rounds"
    yield "attempts_here", len(graph.from_here(node)), "attempts"
    yield from _last_facts(graph.of_round(graph.rounds))
    yield "unwritten_in_a_row", _unwritten(graph), "rounds"
    speedup = graph.speedup(graph.best)
    if speedup is not None:
        yield "best_speedup", speedup, "ratio"


def _last_facts(attempts: list[Attempt]) -> Iterator[tuple[str, Value, str]]:
    """About the round before."""
    last = attempts[-1] if attempts else None
    yield "last_outcome", last.outcome if last else "none", ""
    yield "last_diagnosis", last.diagnosis.kind if last and last.diagnosis else "none", ""
    yield "last_repairs", last.repair if last else 0, "repairs"


def _unwritten(graph: AttemptGraph) -> int:
    """Rounds since the writer last brought a module."""
    written = [a.round for a in graph.attempts if a.outcome != "not_written"]
    return graph.rounds - max(written, default=0)


def pair_facts(open_pair: Attempt | None) -> dict[str, Fact]:
    """At a solution that is half of a coupled edit: that it is, and which methods complete it."""
    names = ["coupled_edit_open", *(f"completes_coupled_edit.{method}" for method in open_pair.opens)] if open_pair else []
    return {name: Fact(name=name, value=True, provenance="history") for name in names}


def _method_facts(graph: AttemptGraph, node: str, method: str) -> Iterator[tuple[str, Value]]:
    here = [a for a in graph.from_here(node) if a.method.method == method]
    on_path = Counter(m.method for m in graph.methods(node))[method]
    yield f"applied.{method}", on_path > 0
    yield f"repeats.{method}", on_path
    yield f"tried_here.{method}", len(here)
    yield f"failed_here.{method}", sum(a.outcome in FAILED for a in here)
    yield f"no_gain_here.{method}", sum(a.outcome in NO_GAIN for a in here)
    gain = _last_gain(graph.attempts, method)
    if gain is not None:
        yield f"last_gain.{method}", gain


def _last_gain(attempts: list[Attempt], method: str) -> float | None:
    gains = [a.gain for a in attempts if a.method.method == method and a.gain is not None]
    return gains[-1] if gains else None


def history_lines(graph: AttemptGraph, node: str, round_: int) -> tuple[str, ...]:
    """What was tried from this solution before round `round_` and what came of it, a line each, for the writer."""
    return tuple(
        f"{a.method}: {a.outcome}" + (f", {a.gain:.2f}x" if a.gain else "") + (f" ({a.message})" if a.message else "")
        for a in graph.from_here(node) if a.round < round_
    )

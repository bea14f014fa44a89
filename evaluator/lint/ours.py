"""Null candidates before our own judge: its inputs, its check sizes, its tolerance. What it refuses, it can tell from right."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

from evaluator.comparison import compare
from evaluator.inputs import TASK, Case
from evaluator.lint.nulls import Known, candidates
from evaluator.oracle import Oracle, Problem, Unjudgeable
from evaluator.trees import Leaf, leaves, map_leaves, round_to
from evaluator.types import Frozen
from evaluator.verify import plan

SECRET = 1
"""Of the cases' seeds: fixed, so that a lint can be repeated."""


class OursEvidence(Frozen):
    """What one null candidate did before our judge."""

    refused: bool
    case: str = ""
    """The first case that refuses it, e.g. `normal seed 7`."""
    message: str = ""
    cases: int = 0
    """Cases it was judged on."""


def judge_nulls(oracle: Oracle, names: Sequence[str], budget_s: float) -> dict[str, OursEvidence]:
    """Each named candidate that fits the task until a case refuses it; without those that the budget leaves undecided."""
    pending, tried, found = set(names), set[str](), dict[str, OursEvidence]()
    judged, began = 0, time.monotonic()
    for case, how in plan(oracle.spec, SECRET):
        if how == "repeat" or not pending:
            continue
        if time.monotonic() - began > budget_s:
            return found
        try:
            problem = oracle.problem(case)
            expected = oracle.expected(problem, case)
        except Unjudgeable:
            continue
        judged += 1
        for name, tree in _trees(oracle, problem, case):
            tried.add(name)
            verdict = compare(expected, tree, case) if name in pending else None
            if verdict is not None:
                pending.discard(name)
                found[name] = OursEvidence(refused=True, case=str(case), message=verdict.message[:300], cases=judged)
    return found | {name: OursEvidence(refused=False, cases=judged) for name in pending & tried}


def _trees(oracle: Oracle, problem: Problem, case: Case) -> list[tuple[str, Any]]:
    """The candidates as the judge sees outputs; a model's buffers are given right, only the outputs are made up."""
    own = oracle.outputs(problem)
    other = oracle.problem(Case(case.sizes, TASK, case.seed + 1))
    elsewhere = oracle.outputs(Problem(other.inputs, problem.init, problem.state))
    known = Known.of(_arrays(tuple(other.inputs.values())), _arrays(_result(elsewhere)))
    given = _arrays(tuple(problem.inputs.values()))
    return [(name, _rebuilt(own, outputs)) for name, outputs in candidates(given, known)]


def _arrays(tree: Any) -> list[Any]:
    found = (leaf for _, leaf in leaves(tree, ""))
    return [(leaf.as_float64() if leaf.is_float else leaf.values) if isinstance(leaf, Leaf) else leaf for leaf in found]


def _result(outputs: Any) -> Any:
    return outputs["result"] if isinstance(outputs, dict) and set(outputs) == {"result", "buffers"} else outputs


def _rebuilt(own: Any, arrays: list[Any]) -> Any:
    remaining = iter(arrays)

    def replaced(leaf: Leaf) -> Leaf:
        values = next(remaining)
        return Leaf(round_to(values, leaf.dtype) if leaf.is_float else values, leaf.dtype, leaf.source)

    result = map_leaves(replaced, _result(own))
    return result if own is _result(own) else {"result": result, "buffers": own["buffers"]}

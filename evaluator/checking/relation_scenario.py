"""The scenario that holds a solution to a relation on its own outputs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from hypothesis.errors import UnsatisfiedAssumption

from evaluator.checking.lab import Answer, Excluded, Posed, case_of
from evaluator.checking.properties import VIOLATIONS, Scenario, Step, Trial
from evaluator.checking.relation_kinds import Relation
from evaluator.checking.relations import arrays_of, quantised
from evaluator.checking.types import Example
from evaluator.comparison import Expected, compare
from evaluator.trees import Leaf, leaves


def related(relation: Relation) -> Scenario:
    """A scenario of `relation.calls` calls. Examples on which the first one is wrong are another property's matter."""
    def scenario(trial: Trial, example: Example) -> None:
        first = _posed(trial, example, quantised(trial.posed(example).problem))
        steps, answers = [Step(first)], [_answered(trial, first)]
        if compare(first.expected, answers[0].outputs, case_of(example)):
            raise UnsatisfiedAssumption
        while len(steps) < relation.calls:
            outputs = [arrays_of(answer.outputs) for answer in answers]
            try:
                problem = relation.next_problem(first.problem, outputs, example.seed)
            except ValueError:
                raise UnsatisfiedAssumption from None
            steps.append(Step(_posed(trial, example, problem)))
            answers.append(_answered(trial, steps[-1].posed))
        _judge(relation, steps, answers, example)

    return scenario


def _posed(trial: Trial, example: Example, problem: Any) -> Posed:
    try:
        return Posed(example, problem, trial.lab.expected(example, problem))
    except Excluded:
        raise UnsatisfiedAssumption from None


def _answered(trial: Trial, posed: Posed) -> Answer:
    answer = trial.lab.call(posed)
    if answer.failure is not None:
        raise UnsatisfiedAssumption
    return answer


def _judge(relation: Relation, steps: Sequence[Step], answers: Sequence[Answer], example: Example) -> None:
    """Raises Violation where the last answer is not what the others ask for; every call's own tolerance is allowed."""
    before = [arrays_of(answer.outputs) for answer in answers[:-1]]
    allowed = [[want.allowed for _, want in leaves(step.posed.expected, "out")] for step in steps]
    wanted = relation.wanted(steps[0].posed.problem, before, example.seed)
    errors = relation.error(allowed[:-1] or allowed, example.seed)
    own = [relation.seen(array) for array in allowed[-1]]
    for position, (path, leaf) in enumerate(leaves(answers[-1].outputs, "out")):
        seen = relation.seen(leaf.as_float64())
        expected = Expected(np.broadcast_to(wanted[position], seen.shape), "float64", own[position] + errors[position])
        verdict = compare(expected, Leaf(seen, "float64"), case_of(example))
        if verdict:
            mismatch = verdict.mismatch.model_copy(update={"output": path})
            raise VIOLATIONS["relation"](verdict.message, steps, mismatch, got=answers[-1].outputs)

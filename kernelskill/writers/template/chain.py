"""How an element-wise expression becomes kernels: one for the whole chain, or one an operator."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from kernelskill.writers.template.expression import Call, Constant, Expression, Name, names

COMPARISONS = frozenset({"lt", "le", "gt", "ge"})


@dataclass(frozen=True)
class Stage:
    """One kernel: what it computes of inputs and earlier results, and where it goes."""

    kernel: str
    expression: Expression
    result: str
    """`out`, or the name of an intermediate array of the output's shape."""


def fused_stage(expression: Expression, kernel: str) -> Stage:
    """The whole chain as one kernel."""
    return Stage(kernel, expression, "out")


def split_stages(expression: Expression, kernel: str, full: Callable[[str], bool]) -> list[Stage]:
    """One kernel an operator. Operators on broadcast inputs alone, and comparisons, stay inside the kernel that uses them."""
    stages: list[Stage] = []

    def visit(node: Expression, root: bool) -> Expression:
        if isinstance(node, (Name, Constant)) or not (root or any(full(name) for name in names(node))):
            return node
        rebuilt = Call(node.function, tuple(visit(argument, False) for argument in node.arguments))
        if node.function in COMPARISONS and not root:
            return rebuilt
        result = "out" if root else f"step{len(stages)}"
        stages.append(Stage(f"{kernel}_{len(stages)}_{node.function}", rebuilt, result))
        return Name(result)

    if isinstance(expression, Call):
        visit(expression, True)
    else:
        stages.append(fused_stage(expression, kernel))
    return stages

"""Device and host code of a row operation's plan."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

from kernelskill.writers.template.expression import literal
from kernelskill.writers.template.host import Host, ceil_div, indented, launch_bounds, wrapped
from kernelskill.writers.template.module import Code, render
from kernelskill.writers.template.row_reduction import RowReductionPlan, RowReductionProblem
from kernelskill.writers.template.rowops import MERGES, Pass

ANY = "_any_shape"
"""Suffix of the kernel for rows that the specialised kernel does not take."""
OWNERS = {"thread": "one thread a row", "warp": "one warp a row", "block": "one block a row"}


def code(plan: RowReductionPlan, problem: RowReductionProblem) -> Code:
    """The plan's kernel, and beside it a general one where the plan's takes only some row lengths."""
    host, guards = Host(problem.torch_module is not None), _guards(plan, problem)
    plans = [(plan, "")] + ([(_general(plan, problem), ANY)] if guards else [])
    passes = [p for which, _ in plans for p in _passes(which, problem)]
    per_kernel = [[p.merge for p in _passes(which, problem)] for which, _ in plans]
    called = {p.merge for p in passes if plan.owner != "thread" or any(f"merge_{p.merge}(" in u for u in p.update)}
    cuda = render(
        "row_reduction.cu.j2", plan=plan, kinds={p.merge: _merge(p, plan) for p in passes}, called=called,
        reused={name for names in per_kernel for name in names if names.count(name) > 1},
        kernels=[_view(which, problem, suffix) for which, suffix in plans],
    )
    launch = _launch(plan, problem, host, "")
    if guards:
        general = _launch(_general(plan, problem), problem, host, ANY)
        launch = [f"if {' and '.join(guards)}:", *indented(launch), "else:", *indented(general)]
    return Code(
        summary=f"{problem.operation} along rows, {OWNERS[plan.owner]}", cuda=cuda, inputs=problem.order,
        sizes=problem.sizes, output=problem.output, launch=tuple(launch),
    )


def _guards(plan: RowReductionPlan, problem: RowReductionProblem) -> list[str]:
    """Host conditions under which the plan's kernel may run."""
    guards = []
    if plan.vector == 4:
        guards.append("cols % 4 == 0")
    if plan.algorithm == "cached":
        guards.append(f"cols <= {plan.items(problem.cols) * plan.lanes * plan.vector}")
    return guards


def _general(plan: RowReductionPlan, problem: RowReductionProblem) -> RowReductionPlan:
    """The plan for any row length: same owner, scalar accesses, the row read from global memory."""
    fallback = "online" if problem.op.online else "multi_pass"
    return replace(plan, vector=1, algorithm=fallback if plan.algorithm == "cached" else plan.algorithm)


def _passes(plan: RowReductionPlan, problem: RowReductionProblem) -> tuple[Pass, ...]:
    op = problem.op
    if plan.algorithm == "online":
        return op.online
    return op.cached if plan.algorithm == "cached" and op.cached else op.passes


def _merge(step: Pass, plan: RowReductionPlan) -> Any:
    kind = MERGES[step.merge]
    return replace(kind, body=_functions(kind.body, plan))


def _functions(text: str, plan: RowReductionPlan) -> str:
    """EXP and LOG as the plan has them."""
    exp, log = ("__expf", "__logf") if plan.fast_math else ("expf", "logf")
    return text.replace("EXP(", f"{exp}(").replace("LOG(", f"{log}(")


def _view(plan: RowReductionPlan, problem: RowReductionProblem, suffix: str) -> dict[str, Any]:
    """What the template needs to know of one kernel."""
    cached = plan.algorithm == "cached"
    element = "cache[j]" if cached else "v"

    def text(source: str) -> str:
        return _functions(source, plan).replace("EPS", literal(problem.eps))

    def parts(source: str) -> list[str]:
        """The statement for each float of an access."""
        names = [f"{element}.{part}" for part in "xyzw"] if plan.vector == 4 else [element]
        return [re.sub(r"\bv\b", name, text(source)) for name in names]

    steps = [
        {"about": p.about, "declare": [d.replace("FIRST", _first(plan)) for d in p.declare],
         "lines": [line for statements in zip(*map(parts, p.update), strict=True) for line in statements],
         "partial": text(p.partial), "type": MERGES[p.merge].type, "variable": p.variable, "merge": p.merge,
         "then": [text(t) for t in p.then]}
        for p in _passes(plan, problem)
    ]
    result = problem.op.cached_result if cached and problem.op.cached_result else problem.op.result
    return {
        "name": problem.kernel + suffix, "bounds": launch_bounds(plan.block), "owner": plan.owner,
        "lanes": plan.lanes, "vector": plan.vector, "unroll": plan.unroll,
        "cached": cached, "held": plan.items(problem.cols), "type": "float4" if plan.vector == 4 else "float",
        "restrict": " __restrict__" if plan.restrict else "", "passes": steps, "per_element": problem.op.per_element,
        "weights": [name for name in (problem.weight, problem.bias) if name], "result": text(result),
        "store": _store(plan, problem, parts(result)),
    }


def _first(plan: RowReductionPlan) -> str:
    """The first element that a thread reads; 0 for a thread that reads none."""
    part = ".x" if plan.vector == 4 else ""
    limit = "cols / 4" if plan.vector == 4 else "cols"
    return f"in[0]{part}" if plan.owner == "thread" else f"lane < {limit} ? in[lane]{part} : 0.0f"


def _store(plan: RowReductionPlan, problem: RowReductionProblem, values: list[str]) -> list[str]:
    """Statements that write one access of the output, weights applied."""
    wide = plan.vector == 4
    lines, weighted = [], list(values)
    for name, operator in ((problem.weight, "*"), (problem.bias, "+")):
        if not name:
            continue
        if wide:
            lines.append(f"const float4 {name}_at = reinterpret_cast<const float4*>({name})[c];")
        operands = [f"{name}_at.{part}" for part in "xyzw"] if wide else [f"{name}[c]"]
        weighted = [f"{value} {operator} {operand}" for value, operand in zip(weighted, operands, strict=True)]
    if wide:
        return [*lines, *wrapped("result[c] = make_float4(", weighted, ");")]
    return [*lines, f"result[c] = {weighted[0]};"]


def _launch(plan: RowReductionPlan, problem: RowReductionProblem, host: Host, suffix: str) -> list[str]:
    rows_a_block = {"thread": plan.block, "warp": plan.block // 32, "block": 1}[plan.owner]
    arrays = [host.pointer(name) for name in (problem.input, problem.weight, problem.bias, "out") if name]
    grid = ceil_div("rows", rows_a_block)
    return host.launch(problem.kernel + suffix, grid, [plan.block], [*arrays, "rows", "cupy.int32(cols)"])

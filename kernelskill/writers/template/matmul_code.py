"""Device and host code of a matrix product's plan."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from kernelskill.writers.template import expression as ex
from kernelskill.writers.template.host import Host, ceil_div, indented
from kernelskill.writers.template.matmul import MatmulPlan, MatmulProblem
from kernelskill.writers.template.module import Code, render

ANY = "_any_shape"
"""Suffix of the kernel for shapes that the 16-byte kernel does not take."""


def code(plan: MatmulPlan, problem: MatmulProblem) -> Code:
    """The plan's kernel, and beside a 16-byte one a scalar one for rows that are not multiples of 16 bytes."""
    host = Host(problem.torch_module is not None)
    scalar = replace(plan, vector=1)
    plans = [(plan, ""), (scalar, ANY)] if plan.vector == 4 else [(plan, "")]
    texts = [*ex.device_functions(problem.epilogue, False), _value(problem), "",
             *(_kernel(which, problem, suffix) for which, suffix in plans)]
    launch = _launch(plan, problem, host, "")
    if plan.vector == 4:
        launch = [f"if {_aligned(problem)}:", *indented(launch), "else:  # 16-byte accesses would straddle rows",
                  *indented(_launch(scalar, problem, host, ANY))]
    return Code(summary=_summary(plan), cuda="\n".join(texts), inputs=problem.order, sizes=problem.sizes,
                output=problem.output, launch=tuple(launch))


def _summary(plan: MatmulPlan) -> str:
    if plan.tile_k == 0:
        return f"matrix product, one output a thread, neighbours along {plan.lanes}"
    tile = f"{plan.tile_m} x {plan.tile_n} x {plan.tile_k}"
    return f"matrix product, tiles of {tile}, {plan.thread_m} x {plan.thread_n} outputs a thread"


def _value(problem: MatmulProblem) -> str:
    """The device function from an element of the product to an element of the output."""
    parameters = ", ".join(f"float {name}" for name in ("acc", *(name for name, _ in problem.epilogue_shapes)))
    body = ex.cuda(problem.epilogue, False)
    return f"__device__ __forceinline__ float {problem.kernel}_value({parameters}) {{ return {body}; }}"


def _kernel(plan: MatmulPlan, problem: MatmulProblem, suffix: str) -> str:
    def operand(name: str, tile: str, deep: bool, edge: int, start: str, extent: str) -> dict[str, Any]:
        """`deep`: neighbouring elements in memory differ in k; else in m or n."""
        loads = edge * plan.tile_k // (plan.threads * plan.vector)
        return {"name": name, "tile": tile, "deep": deep, "edge": edge, "start": start, "extent": extent, "loads": loads}

    return render(
        "matmul.cu.j2", plan=plan, arrays=_arrays(problem), kernel=problem.kernel, suffix=suffix,
        extras=problem.epilogue_shapes,
        a=operand(problem.a, "a_tile", not problem.a_transposed, plan.tile_m, "row0", "m"),
        b=operand(problem.b, "b_tile", problem.b_transposed, plan.tile_n, "col0", "n"),
    )


def _aligned(problem: MatmulProblem) -> str:
    """Host condition under which the rows of both operands and of the output start at multiples of 16 bytes."""
    sizes = {"m" if problem.a_transposed else "k", "k" if problem.b_transposed else "n", "n"}
    return " and ".join(f"{size} % 4 == 0" for size in sorted(sizes))


def _launch(plan: MatmulPlan, problem: MatmulProblem, host: Host, suffix: str) -> list[str]:
    blocks = f"{ceil_div('m', plan.tile_m)} * {ceil_div('n', plan.tile_n)}"
    sizes = [f"cupy.int32({size})" if plan.large else size for size in "mnk"]
    pointers = [host.pointer(name) for name in (*_arrays(problem), "out")]
    return host.launch(problem.kernel + suffix, blocks, [plan.threads], [*pointers, *sizes])


def _arrays(problem: MatmulProblem) -> list[str]:
    """The kernel's input arrays, each once (a product of an array with itself takes it once)."""
    return list(dict.fromkeys((problem.a, problem.b, *(name for name, _ in problem.epilogue_shapes))))

"""Operations along the rows of a matrix: reductions to one value a row, and normalisations of the row."""

from __future__ import annotations

from dataclasses import dataclass, replace

from kernelskill.errors import WriterError
from kernelskill.model import Task
from kernelskill.writers.base import BEYOND
from kernelskill.writers.template.family import Step, check
from kernelskill.writers.template.module import TorchModule
from kernelskill.writers.template.names import kernel_name, run_inputs, size_value
from kernelskill.writers.template.rowops import ROW_OPS, RowOp

MOST_CACHED = 64
"""Floats of a row that a thread may hold: with more, registers would spill."""


@dataclass(frozen=True)
class RowReductionPlan:
    """What the code does now."""

    fused: bool = True
    """False: the start runs several kernels, which this writer only replaces, never extends."""
    owner: str = "thread"
    """Who owns a row: thread, warp or block."""
    combine: str = "serial"
    """How the owner's threads merge partial results: serial (one thread), shared_tree or warp_shuffle."""
    algorithm: str = "multi_pass"
    """multi_pass: one pass over global memory a statistic; online: one for all; cached: the row stays in registers."""
    vector: int = 1
    """Floats of one global access: 1 or 4."""
    unroll: int = 1
    """Unroll factor of the loops over the row."""
    block: int = 64
    restrict: bool = False
    fast_math: bool = False

    @property
    def lanes(self) -> int:
        """Threads that share a row."""
        return {"thread": 1, "warp": 32, "block": self.block}[self.owner]

    def items(self, cols: int) -> int:
        """Accesses that cover a thread's part of a row of that length."""
        return max(1, -(-cols // (self.lanes * self.vector)))


@dataclass(frozen=True)
class RowReductionProblem:
    """The task in this family's words."""

    kernel: str
    operation: str
    cols: int
    """Row length at the full problem size."""
    input: str = "x"
    weight: str = ""
    bias: str = ""
    eps: float = 0.0
    order: tuple[str, ...] = ("x",)
    """Inputs in the order of `run`."""
    sizes: tuple[str, ...] = ("rows, cols = x.shape",)
    output: str = "(rows, cols)"
    torch_module: TorchModule | None = None

    @property
    def op(self) -> RowOp:
        """The operation's passes and result."""
        return ROW_OPS[self.operation]


def problem(task: Task) -> RowReductionProblem:
    """The declared task. Raises WriterError."""
    arguments = task.arguments
    if task.operation not in ROW_OPS:
        raise WriterError(f"row reduction '{task.operation}' is not one the templates know: {', '.join(ROW_OPS)}",
                          hint=BEYOND)
    op = ROW_OPS[task.operation]
    weights = [arguments[role] for role in ("weight", "bias") if role in arguments]
    if weights and not op.weighted:
        raise WriterError(f"{task.operation} takes no weight and no bias, but the task declares {', '.join(weights)}")
    names = run_inputs(task, (arguments["input"], *weights))
    x = names[arguments["input"]]
    return RowReductionProblem(
        kernel=kernel_name(task.name), operation=task.operation, cols=size_value(task, arguments["cols"]),
        input=x, weight=names.get(arguments.get("weight", ""), ""), bias=names.get(arguments.get("bias", ""), ""),
        eps=float(arguments.get("eps", op.eps)), order=tuple(names.values()),
        sizes=(f"rows, cols = {x}.shape",), output="(rows, cols)" if op.per_element else "(rows,)",
    )


def naive(problem: RowReductionProblem, source: str) -> RowReductionPlan:
    """One thread a row; a start of several kernels can only be fused."""
    return RowReductionPlan(fused=source.count("__global__") <= 1)


Steps = list[Step[RowReductionPlan]]


def _one_kernel(plan: RowReductionPlan) -> None:
    check(plan.fused, "the start runs several kernels; kernel_fusion makes them one first")


def _fits(plan: RowReductionPlan, problem: RowReductionProblem) -> bool:
    """Whether a cached row fits the registers."""
    return plan.algorithm != "cached" or plan.items(problem.cols) * plan.vector <= MOST_CACHED


def _fuse(plan: RowReductionPlan, problem: RowReductionProblem) -> Steps:
    check(not plan.fused, "the operation is one kernel already")
    return [Step({}, replace(plan, fused=True))]


def _coalesce(plan: RowReductionPlan, problem: RowReductionProblem) -> Steps:
    _one_kernel(plan)
    check(plan.owner == "thread", f"a {plan.owner} owns a row, so neighbouring threads read neighbouring elements already")
    return [Step({}, replace(plan, owner="warp", combine="shared_tree", block=256))]


def _block_per_row(plan: RowReductionPlan, problem: RowReductionProblem) -> Steps:
    _one_kernel(plan)
    check(plan.owner != "block", "a block owns a row already")
    combine = "shared_tree" if plan.combine == "serial" else plan.combine
    choices = (256, 128, 512, 1024) if problem.cols >= 2048 else (128, 256, 64, 512)
    steps = [Step({"threads": t}, replace(plan, owner="block", combine=combine, block=t)) for t in choices]
    return [step for step in steps if _fits(step.plan, problem)]


def _shuffle(plan: RowReductionPlan, problem: RowReductionProblem) -> Steps:
    _one_kernel(plan)
    check(plan.owner != "thread", "one thread owns a row, so there is nothing to combine between threads")
    check(plan.combine != "warp_shuffle", "partial results are combined by shuffles already")
    return [Step({}, replace(plan, combine="warp_shuffle"))]


def _online(plan: RowReductionPlan, problem: RowReductionProblem) -> Steps:
    _one_kernel(plan)
    check(bool(problem.op.online), f"{problem.operation} reads the row once for its statistics already")
    check(plan.algorithm == "multi_pass", f"the algorithm is {plan.algorithm}, which has no extra pass to save")
    return [Step({}, replace(plan, algorithm="online"))]


def _cache(plan: RowReductionPlan, problem: RowReductionProblem) -> Steps:
    _one_kernel(plan)
    check(problem.op.per_element, f"{problem.operation} reads the row once already")
    check(plan.owner != "thread", "one thread owns a row, which is too long for its registers")
    check(plan.algorithm != "cached", "the row stays in registers already")
    cached = replace(plan, algorithm="cached", unroll=1)
    if plan.owner == "warp":
        held = cached.items(problem.cols) * cached.vector
        check(held <= MOST_CACHED, f"a lane would hold {held} elements of a row, more than {MOST_CACHED}; "
                                   "block_per_row_reduction spreads the row over more threads")
        return [Step({"per_thread": held}, cached)]
    choices = (16, 8, 32) if problem.cols >= 2048 else (8, 16, 4)
    steps = [Step({"per_thread": held}, replace(cached, block=_block_for(problem.cols, held))) for held in choices]
    steps = [step for step in steps if _fits(step.plan, problem)]
    check(bool(steps), f"a row of {problem.cols} elements does not fit the registers of a block of 1024 threads")
    return steps


def _block_for(cols: int, held: int) -> int:
    """The power of two of threads, 32 to 1024, of which each holds about that many elements of a row."""
    threads = 32
    while threads < 1024 and threads * held < cols:
        threads *= 2
    return threads


def _vectorize(plan: RowReductionPlan, problem: RowReductionProblem) -> Steps:
    _one_kernel(plan)
    check(plan.vector == 1, "accesses are 16 bytes wide already")
    check(problem.cols % 4 == 0, f"rows of {problem.cols} elements do not start at multiples of 16 bytes")
    return [Step({"width": 4}, replace(plan, vector=4))]


def _unroll(plan: RowReductionPlan, problem: RowReductionProblem) -> Steps:
    _one_kernel(plan)
    check(plan.algorithm != "cached", "the loops over a cached row are unrolled already")
    return [Step({"factor": factor}, replace(plan, unroll=factor)) for factor in (4, 8, 2) if factor != plan.unroll]


def _tune(plan: RowReductionPlan, problem: RowReductionProblem) -> Steps:
    _one_kernel(plan)
    choices = {"thread": (128, 32, 256), "warp": (128, 256, 512, 64), "block": (128, 512, 256, 1024, 64)}[plan.owner]
    steps = [Step({"threads": threads}, replace(plan, block=threads)) for threads in choices if threads != plan.block]
    return [step for step in steps if _fits(step.plan, problem)]


def _fast_math(plan: RowReductionPlan, problem: RowReductionProblem) -> Steps:
    _one_kernel(plan)
    check(not plan.fast_math, "fast-math intrinsics are in use already")
    check(problem.op.transcendental, f"{problem.operation} calls no function that has a faster intrinsic")
    return [Step({}, replace(plan, fast_math=True))]


def _read_only(plan: RowReductionPlan, problem: RowReductionProblem) -> Steps:
    _one_kernel(plan)
    check(not plan.restrict, "the inputs are const __restrict__ already")
    return [Step({}, replace(plan, restrict=True))]


METHODS = {
    "kernel_fusion": _fuse, "coalesced_access": _coalesce, "block_per_row_reduction": _block_per_row,
    "warp_shuffle_reduction": _shuffle, "online_algorithm": _online, "register_caching": _cache,
    "vectorized_access": _vectorize, "loop_unrolling": _unroll, "launch_tuning": _tune, "fast_math_intrinsics": _fast_math,
    "read_only_cache": _read_only,
}

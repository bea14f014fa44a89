"""Matrix product in float32, C[m, n] = A[m, k] B[k, n], with an optional element-wise epilogue."""

from __future__ import annotations

from dataclasses import dataclass, replace

from kernelskill.errors import WriterError
from kernelskill.model import Task
from kernelskill.writers.template import expression as ex
from kernelskill.writers.template.family import Step, check
from kernelskill.writers.template.module import TorchModule
from kernelskill.writers.template.names import kernel_name, run_inputs

STATIC_SHARED = 48 * 1024
"""Bytes of shared memory that a block may declare statically."""


ACCUMULATOR = ex.Name("acc")
"""The epilogue that leaves the product as it is."""


@dataclass(frozen=True)
class MatmulPlan:
    """What the code does now."""

    lanes: str = "rows"
    """What neighbouring threads walk along in C: rows (scattered) or columns (coalesced)."""
    tile_m: int = 16
    """Rows of C a block computes."""
    tile_n: int = 16
    """Columns of C a block computes."""
    tile_k: int = 0
    """Depth of the shared-memory tiles; 0: operands are read from global memory."""
    thread_m: int = 1
    """Rows of C a thread computes."""
    thread_n: int = 1
    """Columns of C a thread computes."""
    vector: int = 1
    """Floats of one global or shared access: 1 or 4."""
    padded: bool = False
    """Tile rows are longer than needed, against bank conflicts when a tile is stored."""
    double_buffer: bool = False
    """Two tiles of each operand: the next is loaded while this one is multiplied."""
    unroll: int = 1
    """Unroll factor of the loop over k inside a tile (or over all of k without tiles)."""
    restrict: bool = False

    @property
    def threads(self) -> int:
        """Threads a block."""
        return self.tile_m * self.tile_n // (self.thread_m * self.thread_n)

    @property
    def pad(self) -> int:
        """Floats added to a tile row: 4 keep 16-byte accesses aligned."""
        return 0 if not self.padded else 4 if self.vector == 4 else 1

    @property
    def large(self) -> bool:
        """More than 64 outputs a thread: registers are scarce, so sizes are 32-bit and a warp covers a compact 4 x 8 of threads
        (fewer distinct operands a warp reads from shared memory)."""
        return self.thread_m * self.thread_n > 64

    @property
    def shared_bytes(self) -> int:
        """Static shared memory of a block."""
        return 4 * (1 + self.double_buffer) * self.tile_k * (self.tile_m + self.tile_n + 2 * self.pad)


@dataclass(frozen=True)
class MatmulProblem:
    """The task in this family's words."""

    kernel: str
    a: str = "a"
    b: str = "b"
    a_transposed: bool = False
    """A is stored as [k, m]."""
    b_transposed: bool = False
    """B is stored as [n, k], as the weight of a linear layer is."""
    epilogue: ex.Expression = ACCUMULATOR
    """The output element over `acc` and further inputs."""
    epilogue_shapes: tuple[tuple[str, str], ...] = ()
    """(input, its shape: `n`, `1` or `m, n`) of the epilogue."""
    order: tuple[str, ...] = ("a", "b")
    sizes: tuple[str, ...] = ("m, k = a.shape", "n = b.shape[1]")
    output: str = "(m, n)"
    torch_module: TorchModule | None = None


Steps = list[Step[MatmulPlan]]


def problem(task: Task) -> MatmulProblem:
    """The declared task. Raises WriterError."""
    arguments = task.arguments
    epilogue = ex.parse(arguments.get("epilogue", "acc"))
    extra = tuple(name for name in ex.names(epilogue) if name != "acc")
    renamed = run_inputs(task, (arguments["a"], arguments["b"], *extra))
    a, b = renamed[arguments["a"]], renamed[arguments["b"]]
    if "acc" not in ex.names(epilogue):
        raise WriterError(f"the epilogue '{arguments['epilogue']}' does not use 'acc', the product's element")
    return MatmulProblem(
        kernel_name(task.name), a, b, epilogue=ex.rename(epilogue, {name: renamed[name] for name in extra}),
        epilogue_shapes=tuple((renamed[name], "n") for name in extra), order=tuple(renamed.values()),
        sizes=(f"m, k = {a}.shape", f"n = {b}.shape[1]"),
    )


def naive(problem: MatmulProblem, source: str) -> MatmulPlan:
    """One output a thread, neighbouring threads walk down a column of C."""
    return MatmulPlan()


def illegal(plan: MatmulPlan) -> str:
    """Why the plan cannot be rendered as a correct, launchable kernel; "" when it can."""
    if not 64 <= plan.threads <= 1024:
        return f"a block would have {plan.threads} threads, outside 64 to 1024"
    if plan.tile_k == 0:
        return ""
    for edge, name in ((plan.tile_m, "A"), (plan.tile_n, "B")):
        if edge * plan.tile_k % (plan.threads * plan.vector):
            return f"a tile of {edge} x {plan.tile_k} of {name} does not divide among {plan.threads} threads"
    if plan.vector == 4 and (plan.thread_m % 4 or plan.thread_n % 4):
        return f"a thread computes {plan.thread_m} x {plan.thread_n} outputs, not groups of 4; register_blocking comes first"
    if plan.shared_bytes > STATIC_SHARED:
        return f"the tiles need {plan.shared_bytes} bytes of shared memory, more than {STATIC_SHARED}"
    return ""


def _legal(steps: Steps) -> Steps:
    """The steps whose plans can be rendered; refuses with the first reason when none can."""
    kept = [step for step in steps if not illegal(step.plan)]
    check(bool(kept) or not steps, illegal(steps[0].plan) if steps else "")
    return kept


def _coalesce(plan: MatmulPlan, problem: MatmulProblem) -> Steps:
    check(plan.lanes == "rows", "neighbouring threads walk along a row of C already")
    return [Step({}, replace(plan, lanes="columns"))]


def _tile(plan: MatmulPlan, problem: MatmulProblem) -> Steps:
    check(plan.tile_k == 0, "the operands are staged in shared-memory tiles already")
    return [Step({"tile": t}, replace(plan, lanes="columns", tile_m=t, tile_n=t, tile_k=t)) for t in (32, 16)]


def _register_block(plan: MatmulPlan, problem: MatmulProblem) -> Steps:
    check(plan.tile_k > 0, "without shared-memory tiles there is nothing to reuse from; shared_memory_tiling comes first")
    outputs = plan.thread_m * plan.thread_n
    choices = [(8, 8), (8, 16), (4, 4), (8, 4), (4, 8)] if outputs < 64 else [(8, 16)]
    steps = [Step({"block_m": m, "block_n": n}, replace(plan, tile_m=16 * m, tile_n=16 * n, tile_k=16 if m * n < 32 else 8,
                                                         thread_m=m, thread_n=n))
             for m, n in choices if m * n > outputs]
    check(bool(steps), f"a thread computes {plan.thread_m} x {plan.thread_n} outputs already")
    return _legal(steps)


def _vectorize(plan: MatmulPlan, problem: MatmulProblem) -> Steps:
    check(plan.vector == 1, "accesses are 16 bytes wide already")
    check(plan.tile_k > 0, "neighbouring threads share their loads; shared_memory_tiling and register_blocking come first")
    return _legal([Step({"width": 4}, replace(plan, vector=4))])


def _pad(plan: MatmulPlan, problem: MatmulProblem) -> Steps:
    check(plan.tile_k > 0, "there is no shared-memory tile to pad")
    check(not plan.padded, "the tiles are padded already")
    padded = replace(plan, padded=True)
    return _legal([Step({"pad": padded.pad}, padded)])


def _double_buffer(plan: MatmulPlan, problem: MatmulProblem) -> Steps:
    check(plan.tile_k > 0, "there is no shared-memory tile to double")
    check(not plan.double_buffer, "the tiles are double-buffered already")
    return _legal([Step({}, replace(plan, double_buffer=True))])


def _unroll(plan: MatmulPlan, problem: MatmulProblem) -> Steps:
    return [Step({"factor": factor}, replace(plan, unroll=factor)) for factor in (8, 4, 2) if factor != plan.unroll]


def _tune(plan: MatmulPlan, problem: MatmulProblem) -> Steps:
    if plan.tile_k == 0:
        shapes = [(8, 32, 0), (32, 32, 0), (16, 16, 0)]
    elif plan.thread_m * plan.thread_n == 1:
        shapes = [(16, 16, 16), (32, 32, 32)]
    else:
        m, n = plan.thread_m, plan.thread_n
        shapes = [(16 * m, 16 * n, 16), (16 * m, 8 * n, 8), (8 * m, 16 * n, 8), (8 * m, 8 * n, 8), (16 * m, 16 * n, 8)]
    plans = [replace(plan, tile_m=m, tile_n=n, tile_k=k) for m, n, k in shapes]
    return _legal([Step({"threads": p.threads, "tile_m": p.tile_m, "tile_n": p.tile_n, "tile_k": p.tile_k}, p)
                   for p in plans if p != plan])


def _read_only(plan: MatmulPlan, problem: MatmulProblem) -> Steps:
    check(not plan.restrict, "the operands are const __restrict__ already")
    return [Step({}, replace(plan, restrict=True))]


METHODS = {
    "coalesced_access": _coalesce, "shared_memory_tiling": _tile, "register_blocking": _register_block,
    "vectorized_access": _vectorize, "bank_conflict_padding": _pad, "double_buffering": _double_buffer,
    "loop_unrolling": _unroll, "launch_tuning": _tune, "read_only_cache": _read_only,
}

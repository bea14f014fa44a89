"""Transpose of a matrix: y[c, r] = x[r, c]."""

from __future__ import annotations

from dataclasses import dataclass, replace

from kernelskill.model import Task
from kernelskill.writers.template.family import Family, Step, check
from kernelskill.writers.template.host import Host, ceil_div, indented
from kernelskill.writers.template.module import Code, TorchModule, render
from kernelskill.writers.template.names import kernel_name, run_inputs

ANY = "_any_shape"
"""Suffix of the kernel for shapes that the 16-byte kernel does not take."""


@dataclass(frozen=True)
class TransposePlan:
    """What the code does now."""

    coalesced: str = "reads"
    """Without a tile, the side whose neighbouring threads touch neighbouring addresses: reads or writes."""
    tile: int = 0
    """Edge of the shared-memory tile; 0: no tile."""
    pad: int = 0
    """Elements added to a tile row, against bank conflicts."""
    items: int = 1
    """Tile rows a thread moves, all loads first."""
    vector: int = 1
    """Floats of one global access: 1 or 4."""
    height: int = 8
    """Without a tile: rows of threads in a block of 32 columns."""
    restrict: bool = False

    @property
    def width(self) -> int:
        """Threads along a row of the tile."""
        return self.tile // self.vector if self.tile else 32

    @property
    def depth(self) -> int:
        """Rows of threads."""
        return self.tile // self.items if self.tile else self.height

    @property
    def threads(self) -> int:
        """Threads a block."""
        return self.width * self.depth


@dataclass(frozen=True)
class TransposeProblem:
    """The task in this family's words."""

    kernel: str
    input: str = "x"
    order: tuple[str, ...] = ("x",)
    sizes: tuple[str, ...] = ("rows, cols = x.shape",)
    output: str = "(cols, rows)"
    torch_module: TorchModule | None = None


Steps = list[Step[TransposePlan]]


def problem(task: Task) -> TransposeProblem:
    """The declared task."""
    names = run_inputs(task, [task.arguments["input"]])
    x = names[task.arguments["input"]]
    return TransposeProblem(kernel_name(task.name), x, tuple(names.values()), (f"rows, cols = {x}.shape",))


def naive(problem: TransposeProblem, source: str) -> TransposePlan:
    """One element a thread, coalesced reads, scattered writes."""
    return TransposePlan()


def _legal(plan: TransposePlan) -> bool:
    """Whether the block fits the hardware and its threads divide the tile."""
    return 64 <= plan.threads <= 1024 and plan.depth * plan.items == (plan.tile or plan.depth * plan.items)


def _coalesce(plan: TransposePlan, problem: TransposeProblem) -> Steps:
    check(plan.tile == 0, "with a tile both sides are coalesced already")
    check(plan.coalesced == "reads", "writes are coalesced already; only shared_memory_tiling coalesces both sides")
    return [Step({}, replace(plan, coalesced="writes"))]


def _tile(plan: TransposePlan, problem: TransposeProblem) -> Steps:
    check(plan.tile == 0, "the kernel works on shared-memory tiles already")
    return [Step({"tile": tile}, replace(plan, tile=tile, items=items)) for tile, items in ((32, 1), (16, 1), (64, 4))]


def _pad(plan: TransposePlan, problem: TransposeProblem) -> Steps:
    check(plan.tile > 0, "there is no shared-memory tile to pad")
    check(plan.pad == 0, "the tile is padded already")
    return [Step({"pad": 1}, replace(plan, pad=1))]


def _more_work(plan: TransposePlan, problem: TransposeProblem) -> Steps:
    check(plan.tile > 0, "without a tile, more elements a thread only scatter more writes; shared_memory_tiling comes first")
    plans = [replace(plan, items=items) for items in (4, 2, 8) if items > plan.items]
    check(any(map(_legal, plans)), "more rows a thread would leave fewer than 64 threads a block")
    return [Step({"elements": p.items * p.vector}, p) for p in plans if _legal(p)]


def _vectorize(plan: TransposePlan, problem: TransposeProblem) -> Steps:
    check(plan.vector == 1, "accesses are 16 bytes wide already")
    check(plan.tile > 0, "without a tile only one side could be wide; shared_memory_tiling comes first")
    tile = max(plan.tile, 32)
    return [Step({"width": 4}, replace(plan, vector=4, tile=tile, items=tile // 16))]


def _tune(plan: TransposePlan, problem: TransposeProblem) -> Steps:
    if plan.tile == 0:
        return [Step({"threads": 32 * h}, replace(plan, height=h)) for h in (16, 4, 32, 8) if h != plan.height]
    plans = [replace(plan, tile=tile, items=items) for tile in (32, 64) for items in (4, 2, 8, 1)]
    return [Step({"threads": p.threads, "tile": p.tile}, p) for p in plans
            if _legal(p) and p.threads <= 512 and (p.tile, p.items) != (plan.tile, plan.items)]


def _read_only(plan: TransposePlan, problem: TransposeProblem) -> Steps:
    check(not plan.restrict, "the input is const __restrict__ already")
    return [Step({}, replace(plan, restrict=True))]


def code(plan: TransposePlan, problem: TransposeProblem) -> Code:
    """Device and host code of the plan."""
    host = Host(problem.torch_module is not None)
    kernels, launch = [(plan, "")], _launch(plan, problem, host, "")
    if plan.vector == 4:
        general = replace(plan, vector=1, tile=32, items=4, pad=1)
        kernels.append((general, ANY))
        launch = ["if rows % 4 == 0 and cols % 4 == 0:", *indented(launch),
                  "else:  # 16-byte accesses would straddle rows", *indented(_launch(general, problem, host, ANY))]
    texts = [render("transpose.cu.j2", plan=p, kernel=problem.kernel + suffix) for p, suffix in kernels]
    how = f"tiles of {plan.tile} x {plan.tile}" if plan.tile else f"coalesced {plan.coalesced}"
    return Code(summary=f"transpose, {how}", cuda="\n".join(texts), inputs=problem.order, sizes=problem.sizes,
                output=problem.output, launch=tuple(launch))


def _launch(plan: TransposePlan, problem: TransposeProblem, host: Host, suffix: str) -> list[str]:
    if plan.tile:
        down, across = plan.tile, plan.tile
    else:
        down, across = (plan.depth, 32) if plan.coalesced == "reads" else (32, plan.depth)
    arguments = [host.pointer(problem.input), host.pointer("out"), "cupy.int32(rows)", "cupy.int32(cols)"]
    blocks = f"{ceil_div('rows', down)} * {ceil_div('cols', across)}"
    return host.launch(problem.kernel + suffix, blocks, [plan.width, plan.depth], arguments)


FAMILY = Family(
    name="transpose", plan_type=TransposePlan, problem=problem, naive=naive, code=code,
    methods={
        "coalesced_access": _coalesce, "shared_memory_tiling": _tile, "bank_conflict_padding": _pad,
        "work_per_thread": _more_work, "vectorized_access": _vectorize, "launch_tuning": _tune, "read_only_cache": _read_only,
    },
)

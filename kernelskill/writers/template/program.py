"""Programs: several kernels, one a stage, each with a plan of its own; a method changes the heaviest stage that can take it."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

from kernelskill.errors import WriterError
from kernelskill.model import Task
from kernelskill.writers.base import BEYOND
from kernelskill.writers.program.ir import Axis, Program, Size, Stage
from kernelskill.writers.program.merging import mentions, words
from kernelskill.writers.template import expression as ex
from kernelskill.writers.template.family import Illegal, Param, Step, check
from kernelskill.writers.template.module import TorchModule

SERIAL = 4096
"""Elements that one thread may reduce alone in a start: more would take seconds, and days where there is one result only."""
STATIC_SHARED = 48 * 1024


@dataclass(frozen=True)
class StagePlan:
    """What the code of one stage does now."""

    owner: str = "thread"
    """Who reduces to one result: thread, warp or block."""
    combine: str = "serial"
    """How the owner's threads merge partial results: serial, shared_tree or warp_shuffle."""
    block: int = 256
    vector: int = 1
    """Floats of one access along the innermost loop: 1 or 4."""
    items: int = 1
    """map: accesses a thread makes."""
    unroll: int = 1
    tile_m: int = 0
    """product: rows of a shared-memory tile; 0: operands are read from global memory."""
    tile_n: int = 0
    tile_k: int = 0
    thread_m: int = 1
    thread_n: int = 1
    padded: bool = False

    @property
    def lanes(self) -> int:
        """Threads that share a result."""
        return {"thread": 1, "warp": 32, "block": self.block}[self.owner]

    @property
    def threads(self) -> int:
        """Threads a block."""
        return self.tile_m * self.tile_n // (self.thread_m * self.thread_n) if self.tile_k else self.block


@dataclass(frozen=True)
class ProgramPlan:
    """A plan for every stage that is a kernel, in order."""

    stages: tuple[StagePlan, ...]
    fast_math: bool = False
    restrict: bool = False


@dataclass(frozen=True)
class ProgramProblem:
    """The task in this family's words."""

    kernel: str
    program: Program
    stages: tuple[Stage, ...]
    """The program's stages with merged loops."""
    torch_module: TorchModule

    @property
    def kernels(self) -> tuple[Stage, ...]:
        """The stages that are kernels."""
        return tuple(stage for stage in self.stages if stage.kind != "library")

    def extent(self, *axes: Axis) -> int:
        """Iterations of these loops at the task's full sizes."""
        values = {size.name: size.value for size in self.program.sizes}
        return math.prod(int(eval(axis.extent, {"__builtins__": {}}, values)) for axis in axes)

    def work(self, stage: Stage) -> int:
        """Iterations of a stage at the full sizes."""
        return self.extent(*stage.axes, *(stage.reduced if stage.kind != "scan" else ()))

    def heaviest(self) -> Stage:
        """The kernel that iterates most."""
        return max(self.kernels, key=self.work)

    def kernel_names(self) -> set[str]:
        """Names in the kernels' loops and accesses."""
        texts = [a.extent for s in self.stages for a in (*s.axes, *s.reduced)]
        texts += [t for s in self.stages for atom in s.used().values() for t in (*atom.dims[1:], *atom.coords, atom.guard)]
        return words(*texts)

    def needed_sizes(self) -> list[Size]:
        """The sizes that kernels, the output's shape or other needed sizes use, in order."""
        wanted, kept = self.kernel_names() | words(*self.program.shape), []
        for size in reversed(self.program.sizes):
            if size.name in wanted:
                kept.append(size)
                wanted |= words(size.text)
        return kept[::-1]


def problem(task: Task) -> ProgramProblem:
    """Programs are recognised, never declared."""
    raise WriterError(f"task '{task.name}' declares family 'program', which only recognised models have", hint=BEYOND)


def naive(problem: ProgramProblem, source: str) -> ProgramPlan:
    """One thread a result, unless that thread would walk too far alone."""
    return ProgramPlan(tuple(_naive(stage, problem) for stage in problem.kernels))


def _naive(stage: Stage, problem: ProgramProblem) -> StagePlan:
    length = problem.extent(*stage.reduced)
    if stage.kind in ("reduce", "scan") and length > SERIAL and _across(stage):
        return StagePlan(owner="block", combine="shared_tree")
    return StagePlan()


def _across(stage: Stage) -> bool:
    """Whether neighbouring lanes along the reduction read neighbouring elements (or the results are few)."""
    if stage.kind == "scan":
        return stage.reduced[0] == stage.axes[-1]
    last = stage.reduced[-1].name
    arrays = [atom for atom in stage.used(stage.body).values() if atom.array]
    return any(last in words(atom.coords[-1]) for atom in arrays if atom.coords) or not stage.axes


Plans = list[tuple[dict[str, Param], StagePlan]]
Change = Callable[[StagePlan, Stage, ProgramProblem], Plans]


def _on_stage(change: Change) -> Callable[[ProgramPlan, ProgramProblem], list[Step[ProgramPlan]]]:
    """The method on the heaviest stage that can take it; with several kernels, the parameters name it."""
    def steps(plan: ProgramPlan, problem: ProgramProblem) -> list[Step[ProgramPlan]]:
        reasons: list[str] = []
        order = sorted(range(len(plan.stages)), key=lambda k: -problem.work(problem.kernels[k]))
        for k in order:
            stage = problem.kernels[k]
            try:
                changes = [(params, new) for params, new in change(plan.stages[k], stage, problem) if new != plan.stages[k]]
                check(bool(changes), "every choice is what the code already does")
            except Illegal as reason:
                reasons.append(str(reason))
                continue
            name: dict[str, Param] = {"stage": stage.result} if len(order) > 1 else {}
            return [Step({**params, **name}, replace(plan, stages=(*plan.stages[:k], new, *plan.stages[k + 1 :])))
                    for params, new in changes]
        raise Illegal(reasons[0] if reasons else "there is no kernel")
    return steps


def _reduces(stage: Stage) -> None:
    check(stage.kind == "reduce", f"a {stage.kind} stage does not reduce rows")


def _coalesce(plan: StagePlan, stage: Stage, problem: ProgramProblem) -> Plans:
    _reduces(stage)
    check(plan.owner == "thread", f"a {plan.owner} owns a result already")
    check(_across(stage), "neighbouring results read neighbouring elements already")
    check(problem.extent(*stage.reduced) >= 32, "the reduction is shorter than a warp")
    return [({}, replace(plan, owner="warp", combine="shared_tree", block=256))]


def _block_per_row(plan: StagePlan, stage: Stage, problem: ProgramProblem) -> Plans:
    _reduces(stage)
    check(plan.owner != "block", "a block owns a result already")
    check(_across(stage), "neighbouring results read neighbouring elements already")
    combine = "shared_tree" if plan.combine == "serial" else plan.combine
    return [({"threads": t}, replace(plan, owner="block", combine=combine, block=t)) for t in (256, 128, 512)]


def _shuffle(plan: StagePlan, stage: Stage, problem: ProgramProblem) -> Plans:
    check(plan.owner != "thread" and stage.kind == "reduce", "one thread reduces alone, so there is nothing to combine")
    check(plan.combine != "warp_shuffle", "partial results are combined by shuffles already")
    return [({}, replace(plan, combine="warp_shuffle"))]


def _vectorize(plan: StagePlan, stage: Stage, problem: ProgramProblem) -> Plans:
    check(plan.vector == 1, "accesses are 16 bytes wide already")
    shared = stage.kind == "reduce" and plan.owner != "thread"
    check(stage.kind == "map" or shared, f"a {stage.kind} of this form has no wide loads")
    check(bool(wide_loads(stage)), "no array is read along the innermost loop alone")
    return [({"width": 4}, replace(plan, vector=4))]


def innermost(stage: Stage) -> Axis | None:
    """The loop along which accesses can be wide."""
    axes = stage.reduced if stage.kind == "reduce" else stage.axes
    return axes[-1] if axes else None


def wide_loads(stage: Stage) -> set[str]:
    """Atoms that a 16-byte load can bring; empty where some other atom forbids stepping four elements at a time."""
    axis = innermost(stage)
    if axis is None:
        return set()
    found = set()
    for name, atom in stage.used(*([stage.body] if stage.kind == "reduce" else [])).items():
        if not mentions(atom, axis.name):
            continue
        inner = bool(atom.array) and atom.coords[-1] == axis.name and atom.dims[-1] == axis.extent
        if not inner or axis.name in words(*atom.coords[:-1], atom.guard):
            return set()
        found.add(name)
    return found


def _more_work(plan: StagePlan, stage: Stage, problem: ProgramProblem) -> Plans:
    check(stage.kind == "map", "only element-wise stages take several elements a thread")
    return [({"elements": items}, replace(plan, items=items)) for items in (4, 2, 8) if items > plan.items]


def _tile(plan: StagePlan, stage: Stage, problem: ProgramProblem) -> Plans:
    check(stage.kind == "product", "there is no product with operands to share")
    check(plan.tile_k == 0, "the operands are staged in shared-memory tiles already")
    return [({"tile": t}, replace(plan, tile_m=t, tile_n=t, tile_k=t)) for t in (16, 32)]


def _register_block(plan: StagePlan, stage: Stage, problem: ProgramProblem) -> Plans:
    check(plan.tile_k > 0, "without shared-memory tiles there is nothing to reuse from; shared_memory_tiling comes first")
    rows = problem.extent(*sides(stage)[1])
    choices = [(8, 8), (4, 8), (4, 4)] if rows >= 64 else [(2, 8), (4, 4), (1, 8)] if rows >= 16 else [(1, 8), (1, 4)]
    outputs = plan.thread_m * plan.thread_n
    return [({"block_m": m, "block_n": n}, replace(plan, tile_m=16 * m, tile_n=16 * n, tile_k=16 if m * n < 32 else 8,
                                                  thread_m=m, thread_n=n)) for m, n in choices if m * n > outputs]


def sides(stage: Stage) -> tuple[tuple[Axis, ...], tuple[Axis, ...], tuple[Axis, ...]]:
    """The output's axes as (batch, rows, columns): in both operands or none, in the first alone, in the second alone."""
    in_first, in_second = ({axis for axis in stage.axes if any(mentions(a, axis.name) for a in stage.used(e).values())}
                           for e in (stage.body, stage.second))
    batch = tuple(a for a in stage.axes if (a in in_first) == (a in in_second))
    return (batch, tuple(a for a in stage.axes if a in in_first - in_second),
            tuple(a for a in stage.axes if a in in_second - in_first))


def _pad(plan: StagePlan, stage: Stage, problem: ProgramProblem) -> Plans:
    check(plan.tile_k > 0, "there is no shared-memory tile to pad")
    check(not plan.padded, "the tiles are padded already")
    return [({"pad": 1}, replace(plan, padded=True))]


def _unroll(plan: StagePlan, stage: Stage, problem: ProgramProblem) -> Plans:
    check(stage.kind in ("reduce", "product"), "there is no loop to unroll")
    return [({"factor": factor}, replace(plan, unroll=factor)) for factor in (4, 8, 2) if factor != plan.unroll]


def _tune(plan: StagePlan, stage: Stage, problem: ProgramProblem) -> Plans:
    check(plan.tile_k == 0, "the tile sets the number of threads")
    return [({"threads": t}, replace(plan, block=t)) for t in (128, 512, 64, 256, 1024) if t != plan.block]


def _fast_math(plan: ProgramPlan, problem: ProgramProblem) -> list[Step[ProgramPlan]]:
    check(not plan.fast_math, "fast-math intrinsics are in use already")
    forms = any(ex.has_fast_form(e) for stage in problem.kernels for e in stage.expressions())
    check(forms, "none of the operation's functions has a faster intrinsic")
    return [Step({}, replace(plan, fast_math=True))]


def _read_only(plan: ProgramPlan, problem: ProgramProblem) -> list[Step[ProgramPlan]]:
    check(not plan.restrict, "the inputs are const __restrict__ already")
    return [Step({}, replace(plan, restrict=True))]


METHODS = {
    "coalesced_access": _on_stage(_coalesce), "block_per_row_reduction": _on_stage(_block_per_row),
    "warp_shuffle_reduction": _on_stage(_shuffle), "vectorized_access": _on_stage(_vectorize),
    "work_per_thread": _on_stage(_more_work), "shared_memory_tiling": _on_stage(_tile),
    "register_blocking": _on_stage(_register_block), "bank_conflict_padding": _on_stage(_pad),
    "loop_unrolling": _on_stage(_unroll), "launch_tuning": _on_stage(_tune), "fast_math_intrinsics": _fast_math,
    "read_only_cache": _read_only,
}

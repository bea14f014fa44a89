"""Element-wise chains: one output element for each element of the broadcast inputs."""

from __future__ import annotations

from dataclasses import dataclass, replace

from kernelskill.errors import WriterError
from kernelskill.model import Task
from kernelskill.writers.template import expression as ex
from kernelskill.writers.template.chain import Stage, fused_stage, split_stages
from kernelskill.writers.template.family import Family, Step, check
from kernelskill.writers.template.host import Host, ceil_div, indented, launch_bounds, product, shape
from kernelskill.writers.template.module import Code, TorchModule, render
from kernelskill.writers.template.names import kernel_name, run_inputs

MOST_IN_FLIGHT = 64
"""Floats that a thread may load before it computes."""
SCALAR = "_any_shape"
"""Suffix of the kernels for shapes that the 16-byte kernels do not take."""


@dataclass(frozen=True)
class ElementwisePlan:
    """What the code does now."""

    fused: bool = False
    """One kernel for the chain; False: one kernel an operator, intermediate results in global memory."""
    vector: int = 1
    """Floats of one global access: 1 or 4."""
    items: int = 1
    """Accesses a thread has in flight before it computes."""
    blocks_per_sm: int = 0
    """Blocks launched for each multiprocessor, each looping over the data; 0: one grid covers the data."""
    unroll: int = 1
    """Unroll factor of the grid-stride loop."""
    block: int = 256
    restrict: bool = False
    """Inputs are `const ... __restrict__`, so loads may take the read-only path."""
    fast_math: bool = False


@dataclass(frozen=True)
class Operand:
    """An input array; `dims` are size names as long as the output's shape, "1" where it is broadcast."""

    name: str
    dims: tuple[str, ...]


@dataclass(frozen=True)
class ElementwiseProblem:
    """The task in this family's words."""

    kernel: str
    operands: tuple[Operand, ...]
    shape: tuple[str, ...]
    expression: ex.Expression
    order: tuple[str, ...]
    """Inputs in the order of `run`; some may not be used."""
    torch_module: TorchModule | None = None

    def full(self, name: str) -> bool:
        """Whether the input has the output's shape."""
        return self.operand(name).dims == self.shape

    def operand(self, name: str) -> Operand:
        """The input of that name; intermediate results of a chain have the output's shape."""
        return next((o for o in self.operands if o.name == name), Operand(name, self.shape))

    def period(self, name: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """(sizes of the input's own axes, sizes of the axes inside them): element i of the output reads
        element (i / inner) % own of the input."""
        kept = [axis for axis, dim in enumerate(self.operand(name).dims) if dim != "1"]
        if not kept:
            return (), ()
        return self.shape[kept[0] : kept[-1] + 1], self.shape[kept[-1] + 1 :]


def make_problem(
    kernel: str, operands: dict[str, tuple[str, ...]], dims: tuple[str, ...], expression: ex.Expression,
    torch_module: TorchModule | None = None, order: tuple[str, ...] = (),
) -> ElementwiseProblem:
    """Checked construction: broadcasts that are not one run of axes are refused. Raises WriterError."""
    padded = []
    for name, own in operands.items():
        full = ("1",) * (len(dims) - len(own)) + own
        kept = [axis for axis, dim in enumerate(full) if dim != "1"]
        regular = len(full) == len(dims) and all(full[axis] == dims[axis] for axis in kept)
        if not regular or (kept and kept != list(range(kept[0], kept[-1] + 1))):
            raise WriterError(
                f"input '{name}' of shape {list(own)} does not broadcast to {list(dims)} in one run of axes",
                hint="the element-wise templates take full arrays, scalars, and vectors along neighbouring axes",
            )
        padded.append(Operand(name, full))
    unknown = set(ex.names(expression)) - set(operands)
    if unknown:
        raise WriterError(f"the operation uses {sorted(unknown)}, which are not among its inputs {sorted(operands)}")
    return ElementwiseProblem(kernel, tuple(padded), dims, expression, order or tuple(operands), torch_module)


def problem(task: Task) -> ElementwiseProblem:
    """The declared task. Raises WriterError."""
    inputs, dims = task.arguments.get("inputs"), task.arguments.get("shape")
    if not inputs or not dims:
        raise WriterError(f"task '{task.name}' declares family elementwise without arguments 'inputs' and 'shape'")
    sizes = tuple(str(d) for d in dims)
    names = run_inputs(task, inputs)
    axes = {text: text if text.isidentifier() else f"d{axis}" for axis, text in enumerate(sizes)} | {"1": "1"}
    missing = [name for name in inputs if name not in names]
    if missing:
        raise WriterError(f"task '{task.name}' declares inputs {missing} that its reference does not take")
    operands = {names[name]: tuple(axes.get(str(d), str(d)) for d in inputs[name]) for name in names if name in inputs}
    expression = ex.rename(ex.parse(task.operation), names)
    output = tuple(axes[d] for d in sizes)
    return make_problem(kernel_name(task.name), operands, output, expression, order=tuple(names.values()))


def naive(problem: ElementwiseProblem, source: str) -> ElementwisePlan:
    """One kernel an operator, unless the start is one kernel already or there is one operator only."""
    stages = len(split_stages(problem.expression, problem.kernel, problem.full))
    return ElementwisePlan(fused=stages == 1 or source.count("__global__") == 1)


def _fuse(plan: ElementwisePlan, problem: ElementwiseProblem) -> list[Step[ElementwisePlan]]:
    check(not plan.fused, "the chain is one kernel already")
    return [Step({}, replace(plan, fused=True))]


def _vectorize(plan: ElementwisePlan, problem: ElementwiseProblem) -> list[Step[ElementwisePlan]]:
    check(plan.vector == 1, "accesses are 16 bytes wide already")
    check(any(problem.full(o.name) for o in problem.operands), "no input has the output's shape, so no load can be widened")
    wide = replace(plan, vector=4)
    check(_in_flight(wide, problem) <= MOST_IN_FLIGHT,
          f"with {plan.items} accesses in flight a thread would hold more than {MOST_IN_FLIGHT} floats")
    return [Step({"width": 4}, wide)]


def _in_flight(plan: ElementwisePlan, problem: ElementwiseProblem) -> int:
    """Floats a thread loads before it computes."""
    return plan.items * plan.vector * len(problem.operands)


def _grid_stride(plan: ElementwisePlan, problem: ElementwiseProblem) -> list[Step[ElementwisePlan]]:
    check(plan.blocks_per_sm == 0, "the kernel has a grid-stride loop already")
    return [Step({"blocks_per_sm": count}, replace(plan, blocks_per_sm=count)) for count in (8, 16, 4)]


def _more_work(plan: ElementwisePlan, problem: ElementwiseProblem) -> list[Step[ElementwisePlan]]:
    check(plan.items < 8, "a thread has 8 accesses in flight already")
    choices = (2, 4, 8) if plan.vector == 4 else (4, 2, 8)
    plans = [replace(plan, items=items) for items in choices if items > plan.items]
    steps = [Step({"elements": p.items}, p) for p in plans if _in_flight(p, problem) <= MOST_IN_FLIGHT]
    check(bool(steps), f"a thread would hold more than {MOST_IN_FLIGHT} floats in flight, and its registers would spill")
    return steps


def _unroll(plan: ElementwisePlan, problem: ElementwiseProblem) -> list[Step[ElementwisePlan]]:
    check(plan.blocks_per_sm > 0, "there is no loop to unroll; grid_stride_loop would bring one")
    return [Step({"factor": factor}, replace(plan, unroll=factor)) for factor in (4, 2) if factor != plan.unroll]


def _tune(plan: ElementwisePlan, problem: ElementwiseProblem) -> list[Step[ElementwisePlan]]:
    return [Step({"threads": block}, replace(plan, block=block)) for block in (512, 128, 1024, 256) if block != plan.block]


def _fast_math(plan: ElementwisePlan, problem: ElementwiseProblem) -> list[Step[ElementwisePlan]]:
    check(not plan.fast_math, "fast-math intrinsics are in use already")
    check(ex.has_fast_form(problem.expression), "none of the operation's functions has a faster intrinsic")
    return [Step({}, replace(plan, fast_math=True))]


def _read_only(plan: ElementwisePlan, problem: ElementwiseProblem) -> list[Step[ElementwisePlan]]:
    check(not plan.restrict, "the inputs are const __restrict__ already")
    return [Step({}, replace(plan, restrict=True))]


def _stages(plan: ElementwisePlan, problem: ElementwiseProblem) -> list[Stage]:
    if plan.fused:
        return [fused_stage(problem.expression, problem.kernel)]
    return split_stages(problem.expression, problem.kernel, problem.full)


def _periodic(problem: ElementwiseProblem) -> list[str]:
    """Inputs whose element is found by division: 16-byte accesses need their innermost run to be a multiple of 4."""
    return [o.name for o in problem.operands if problem.period(o.name)[0] and not problem.full(o.name)]


def _index(problem: ElementwiseProblem, name: str, vector: int) -> str:
    """The C index of an input's element (or 4-element group) for unit `i` of the output."""
    own, inner = problem.period(name)
    if problem.full(name):
        return "i"
    if not own:
        return "0"
    index = "i"
    if inner:
        index = f"i / ({name}_inner / 4)" if vector == 4 else f"i / {name}_inner"
    elif vector == 4:
        return f"i % ({name}_count / 4)"
    if problem.operand(name).dims[0] != "1":
        return index
    return f"({index}) % {name}_count" if inner else f"{index} % {name}_count"


def _loads(problem: ElementwiseProblem, stage: Stage, vector: int) -> list[dict[str, str]]:
    """For each input of a stage: its name, the C type of one access, the access, and how the k-th float is read from it."""
    loads = []
    for name in ex.names(stage.expression):
        wide = vector == 4 and not problem.period(name)[1] and problem.period(name)[0] != ()
        index = _index(problem, name, vector)
        access = f"reinterpret_cast<const float4*>({name})[{index}]" if wide else f"{name}[{index}]"
        loads.append({"name": name, "type": "float4" if wide else "float", "access": access, "wide": "yes" if wide else ""})
    return loads


def _extra_sizes(problem: ElementwiseProblem, stage: Stage) -> list[tuple[str, str]]:
    """(kernel parameter, host expression) of the sizes that the stage's index arithmetic needs."""
    sizes = []
    for name in ex.names(stage.expression):
        own, inner = problem.period(name)
        if problem.full(name) or not own:
            continue
        if problem.operand(name).dims[0] == "1":
            sizes.append((f"{name}_count", product(own)))
        if inner:
            sizes.append((f"{name}_inner", product(inner)))
    return sizes


def _kernel_text(plan: ElementwisePlan, stage: Stage, problem: ElementwiseProblem, suffix: str) -> str:
    return render(
        "elementwise.cu.j2", plan=plan, bounds=launch_bounds(plan.block), kernel=stage.kernel + suffix,
        loads=_loads(problem, stage, plan.vector),
        scalar_loads=_loads(problem, stage, 1), value=stage.kernel + "_value",
        sizes=[name for name, _ in _extra_sizes(problem, stage)],
    )


def _value_text(plan: ElementwisePlan, stage: Stage) -> str:
    """The device function that computes one element of the stage."""
    parameters = ", ".join(f"float {name}" for name in ex.names(stage.expression))
    body = ex.cuda(stage.expression, plan.fast_math)
    return f"__device__ __forceinline__ float {stage.kernel}_value({parameters}) {{ return {body}; }}"


def _launches(plan: ElementwisePlan, problem: ElementwiseProblem, host: Host, suffix: str) -> list[str]:
    """Host statements that run every stage."""
    first = problem.operands[0].name
    stages = _stages(plan, problem)
    lines = [f"{s.result} = {host.empty(shape(problem.shape), first)}" for s in stages[:-1]]
    blocks = ceil_div("n", plan.block * plan.items * plan.vector)
    if plan.blocks_per_sm:
        blocks = f'min({blocks}, {plan.blocks_per_sm} * cupy.cuda.Device().attributes["MultiProcessorCount"])'
    for stage in stages:
        arrays = [host.pointer(name) for name in (*ex.names(stage.expression), stage.result)]
        sizes = [value for _, value in _extra_sizes(problem, stage)]
        lines += host.launch(stage.kernel + suffix, blocks, [plan.block], [*arrays, "n", *sizes])
    return lines


def _size_lines(problem: ElementwiseProblem) -> tuple[str, ...]:
    """Statements that read the sizes off the inputs' shapes, and the number of elements `n`."""
    full = next((o.name for o in problem.operands if problem.full(o.name)), None)
    if full:
        lines = [f"{', '.join(problem.shape)}{',' if len(problem.shape) == 1 else ''} = {full}.shape"]
    else:
        axes = {dim: f"{o.name}.shape[{axis - len(problem.shape)}]" for o in problem.operands
                for axis, dim in enumerate(o.dims) if dim != "1"}
        lines = [f"{dim} = {axes[dim]}" for dim in problem.shape]
    return (*lines, f"n = {product(problem.shape)}")


def code(plan: ElementwisePlan, problem: ElementwiseProblem) -> Code:
    """Device and host code of the plan."""
    host, stages = Host(problem.torch_module is not None), _stages(plan, problem)
    texts = [*ex.device_functions(problem.expression, plan.fast_math), *(_value_text(plan, s) for s in stages)]
    cuda = "\n".join(texts) + "\n\n" + "\n".join(_kernel_text(plan, s, problem, "") for s in stages)
    launch = _launches(plan, problem, host, "")
    guards = [f"{product(problem.period(name)[1] or problem.period(name)[0])} % 4 == 0" for name in _periodic(problem)]
    if plan.vector == 4 and guards:
        scalar = replace(plan, vector=1)
        cuda += "\n" + "\n".join(_kernel_text(scalar, s, problem, SCALAR) for s in stages)
        launch = [f"if {' and '.join(dict.fromkeys(guards))}:", *indented(launch),
                  "else:  # 16-byte accesses would straddle rows", *indented(_launches(scalar, problem, host, SCALAR))]
    count = "one kernel" if len(stages) == 1 else f"{len(stages)} kernels, one an operator"
    return Code(
        summary=f"element-wise, {count}", cuda=cuda, inputs=problem.order,
        sizes=_size_lines(problem), output=shape(problem.shape), launch=tuple(launch),
    )


FAMILY = Family(
    name="elementwise", plan_type=ElementwisePlan, problem=problem, naive=naive, code=code,
    methods={
        "kernel_fusion": _fuse, "vectorized_access": _vectorize, "grid_stride_loop": _grid_stride,
        "work_per_thread": _more_work, "loop_unrolling": _unroll, "launch_tuning": _tune,
        "fast_math_intrinsics": _fast_math, "read_only_cache": _read_only,
    },
)

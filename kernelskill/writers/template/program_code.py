"""Device and host code of a program's plan: a kernel a stage, its sizes as macros."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from kernelskill.writers.program.ir import Atom, Axis, Stage, substitute
from kernelskill.writers.program.merging import mentions, words
from kernelskill.writers.program.values import plus, times
from kernelskill.writers.template import expression as ex
from kernelskill.writers.template.host import indented, launch_bounds, shape, wrapped
from kernelskill.writers.template.module import ProgramText, render
from kernelskill.writers.template.program import ProgramPlan, ProgramProblem, StagePlan, innermost, sides, wide_loads

MERGES = {
    "sum": "a + b", "prod": "a * b", "max": "(b > a || b != b) ? b : a", "min": "(b < a || b != b) ? b : a",
}
"""How two partial results become one; a NaN stays."""
NEUTRAL = {"sum": "0.0f", "prod": "1.0f", "max": "-__int_as_float(0x7f800000)", "min": "__int_as_float(0x7f800000)"}
PARTS = "xyzw"
ANY = "_any_shape"
"""Suffix of the kernel for rows that the 16-byte kernel does not take."""
TORCH = {"float": "torch.float32", "bool": "torch.bool", "long long": "torch.int64"}


def code(plan: ProgramPlan, problem: ProgramProblem) -> ProgramText:
    """CUDA text, the statements of forward, and a summary."""
    kernels = [_view(which, stage, problem, plan) for own, stage in zip(plan.stages, problem.kernels, strict=True)
               for which in _variants(own)]
    merged = dict.fromkeys(s.combine for s in problem.kernels if s.kind in ("reduce", "scan"))
    expressions = [e for stage in problem.kernels for e in stage.expressions()]
    functions = dict.fromkeys(f for e in expressions for f in ex.device_functions(e, plan.fast_math))
    cuda = render("program.cu.j2", kernels=kernels, merged=list(merged), merges=MERGES, functions="\n".join(functions),
                  counters=problem.program.counters, kernel=problem.kernel)
    number = len(problem.kernels)
    count = f"{number} kernel{'s' * (number != 1)}"
    kept = f", {len(problem.program.library)} library calls kept" if problem.program.library else ""
    return ProgramText(f"{count}, one a stage{kept}", cuda, tuple(_host(plan, problem)))


def _variants(plan: StagePlan) -> list[StagePlan]:
    """The stage's kernel, and beside one of 16-byte accesses one for rows that are not multiples of 16 bytes."""
    return [plan, replace(plan, vector=1)] if plan.vector == 4 else [plan]


def c_text(text: str) -> str:
    """An index text in C."""
    return text.replace("//", "/").replace(" and ", " && ")


def _array(stage_or: str, problem: ProgramProblem) -> str:
    """The C type of an array's elements."""
    given = problem.program.array(stage_or)
    if given is not None:
        return given.dtype
    return next(stage.dtype for stage in problem.stages if stage.result == stage_or)


def _view(plan: StagePlan, stage: Stage, problem: ProgramProblem, whole: ProgramPlan) -> dict[str, Any]:
    """What the template needs to know of one kernel."""
    read = _read(stage, problem)
    restrict = " __restrict__" if whole.restrict else ""
    kinds = {a: _array(a, problem) for a in read}
    parameters = [f"const float {a}" if kind == "scalar" else f"const {kind}*{restrict} {a}" for a, kind in kinds.items()]
    out = f"{stage.dtype}*{restrict if stage.result not in stage.reads() else ''} {stage.result}"
    twin = plan.vector == 1 and any(p.vector == 4 for p, s in zip(whole.stages, problem.kernels, strict=True) if s is stage)
    view = {
        "kind": stage.kind, "name": _name(stage, problem) + ANY * twin, "parameters": ", ".join([*parameters, out]),
        "reads": ", ".join(parameters), "arguments": ", ".join(read), "block": plan.block, "bounds": launch_bounds(plan.block),
        "owner": plan.owner,
        "combine": plan.combine, "how": stage.combine, "lanes": plan.lanes, "unroll": plan.unroll, "each": plan.items,
        "count": _extent(stage.axes), "length": _extent(stage.reduced),
        "decode": _decoded(stage.axes, "i"), "state": "Best" if stage.combine.startswith("arg") else "float",
    }
    make = {"map": _map, "reduce": _reduce, "scan": _scan, "product": _product}[stage.kind]
    return {**view, **make(plan, stage, problem, whole)}


def _name(stage: Stage, problem: ProgramProblem) -> str:
    return f"{problem.kernel}_{stage.result}"


def _read(stage: Stage, problem: ProgramProblem) -> list[str]:
    return sorted(stage.reads() - {stage.result})


def _extent(axes: Sequence[Axis]) -> str:
    """Iterations of these loops as a C (and Python) expression."""
    return f"({' * '.join(['(Index)' + axes[0].extent, *(a.extent for a in axes[1:])])})" if axes else "1"


def _plain(axes: Sequence[Axis]) -> str:
    return " * ".join(a.extent for a in axes) if axes else "1"


def _decoded(axes: Sequence[Axis], source: str) -> list[str]:
    """Declarations of every loop's index, from the number of the iteration."""
    lines: list[str] = []
    inner = ""
    for k in range(len(axes) - 1, -1, -1):
        axis = axes[k]
        place = f"{source} / ({inner})" if inner else source
        value = place if k == 0 else f"{place} % {axis.extent}"
        if axis.name != value:
            lines.insert(0, f"const Index {axis.name} = {value};")
        inner = f"{inner} * {axis.extent}" if inner else f"(Index){axis.extent}"
    return lines


def _address(atom: Atom) -> str:
    """The place of an element in its array."""
    place = "0"
    for dim, coord in zip(atom.dims, atom.coords, strict=True):
        place = plus(times(place if place.isidentifier() or place == "0" else f"({place})", dim), coord)
        place = place[1:-1] if place.startswith("(") and _encloses(place) else place
    return c_text(place)


def _encloses(text: str) -> bool:
    """Whether the first bracket closes with the last."""
    depth = 0
    for k, letter in enumerate(text):
        depth += (letter == "(") - (letter == ")")
        if depth == 0:
            return k == len(text) - 1
    return False


def _loads(atoms: Mapping[str, Atom], problem: ProgramProblem, wide: Iterable[str] = ()) -> list[str]:
    """Declarations of the atoms' values."""
    lines: list[str] = []
    for name, atom in atoms.items():
        if not atom.array:
            lines.append(f"const float {name} = (float)({c_text(atom.coords[0])});")
        elif name in wide:
            lines.append(f"const float4 {name}_4 = *reinterpret_cast<const float4*>(&{atom.array}[{_address(atom)}]);")
        else:
            kind = _array(atom.array, problem)
            value = atom.array if kind == "scalar" else f"{atom.array}[{_address(atom)}]"
            value = value if kind in ("float", "scalar") else f"(float){value}"
            guarded = f"({c_text(atom.guard)}) ? {value} : {ex.literal(atom.other)}" if atom.guard else value
            lines.append(f"const float {name} = {guarded};")
    return lines


def _stored(stage: Stage) -> str:
    """The place of the result, from the output axes' indices."""
    return _address(Atom("", tuple(a.extent for a in stage.axes), tuple(a.name for a in stage.axes)))


def _parts(expression: ex.Expression, wide: Iterable[str], fast: bool) -> list[str]:
    """The expression for each of four neighbouring elements; what is no wide load is the same for all."""
    found = []
    for part in PARTS:
        names: dict[str, ex.Expression] = {name: ex.Name(f"{name}_4.{part}") for name in wide}
        found.append(ex.cuda(substitute(expression, names), fast))
    return found


def _map(plan: StagePlan, stage: Stage, problem: ProgramProblem, whole: ProgramPlan) -> dict[str, Any]:
    atoms, fast = stage.used(), whole.fast_math
    axis = innermost(stage)
    if plan.vector == 4 and axis is not None:
        wide = wide_loads(stage)
        four = [*stage.axes[:-1], Axis(axis.name, f"({axis.extent} / 4)")]
        decode = [*_decoded([*four[:-1], Axis("quad", four[-1].extent)], "i"), f"const Index {axis.name} = quad * 4;"]
        if len(four) == 1:
            decode = [f"const Index {axis.name} = i * 4;"]
        values = _parts(stage.body, wide, fast)
        store = wrapped(f"*reinterpret_cast<float4*>(&{stage.result}[{_stored(stage)}]) = make_float4(", values, ");")
        return {"decode": decode, "count": _extent(four), "lines": [*_loads(atoms, problem, wide), *store]}
    value = ex.cuda(stage.body, fast)
    return {"lines": [*_loads(atoms, problem), f"{stage.result}[i] = {value};"]}


def _nest(axes: Sequence[Axis]) -> list[str]:
    return [f"for (Index {a.name} = 0; {a.name} < {a.extent}; {a.name}++) {{" for a in axes]


def _finish(stage: Stage, problem: ProgramProblem, fast: bool, acc: str) -> list[str]:
    """The epilogue and the store."""
    value = ex.cuda(substitute(stage.epilogue, {"acc": ex.Name(acc)}), fast)
    return [*_loads(stage.used(stage.epilogue), problem), f"{stage.result}[{_stored(stage) if stage.axes else '0'}] = {value};"]


def _reduce(plan: StagePlan, stage: Stage, problem: ProgramProblem, whole: ProgramPlan) -> dict[str, Any]:
    fast, how, atoms = whole.fast_math, stage.combine, stage.used(stage.body)
    axis, wide = innermost(stage), wide_loads(stage) if plan.vector == 4 else set()
    reduced, more = list(stage.reduced), {}
    if wide and axis is not None:
        reduced[-1] = Axis("quad", f"({axis.extent} / 4)")
        values = _parts(stage.body, wide, fast)
        more = {"inner": [*_decoded(reduced, "r"), f"const Index {axis.name} = quad * 4;"], "length": _extent(reduced)}
    else:
        values = [ex.cuda(stage.body, fast)]
        more = {"inner": _decoded(reduced, "r")}
    lines = _loads(atoms, problem, wide)
    if how.startswith("arg"):
        place = _address(Atom("", tuple(a.extent for a in stage.reduced), tuple(a.name for a in stage.reduced)))
        lines += [f"state = merge_{how}(state, {{{values[0]}, (long long)({place})}});"]
        worst = f"{'-' if how == 'argmax' else ''}__int_as_float(0x7f800000)"
        initial = f"Best state = {{{worst}, 0x7fffffffffffffffLL}};"
        finish = [f"{stage.result}[{_stored(stage)}] = state.place;"]
    else:
        lines += [f"state += {v};" if how == "sum" else f"state = merge_{how}(state, {v});" for v in values]
        initial, finish = f"float state = {NEUTRAL[how]};", _finish(stage, problem, fast, "state")
    return {"lines": lines, "nest": _nest(stage.reduced), "initial": initial, "finish": finish, **more}


def _scan(plan: StagePlan, stage: Stage, problem: ProgramProblem, whole: ProgramPlan) -> dict[str, Any]:
    along = stage.reduced[0]
    others = [axis for axis in stage.axes if axis != along]
    value = ex.cuda(stage.body, whole.fast_math)
    return {
        "along": along.name, "length": along.extent, "count": _extent(others), "decode": _decoded(others, "i"),
        "neutral": NEUTRAL[stage.combine], "lines": [*_loads(stage.used(stage.body), problem), f"const float value = {value};"],
        "finish": _finish(stage, problem, whole.fast_math, "acc"),
    }


def _product(plan: StagePlan, stage: Stage, problem: ProgramProblem, whole: ProgramPlan) -> dict[str, Any]:
    fast = whole.fast_math
    if not plan.tile_k:
        term = ex.cuda(ex.Call("mul", (stage.body, stage.second)), fast)
        return {"tile_k": 0, "nest": _nest(stage.reduced), "finish": _finish(stage, problem, fast, "acc"),
                "lines": [*_loads(stage.used(stage.body, stage.second), problem), f"acc += {term};"]}
    batch, rows, cols = sides(stage)
    place = [*_decoded(batch, "batch"), *_decoded(rows, "row"), *_decoded(cols, "col")]
    views = {}
    for key, letter, edge, axes, e, tile, start, limit in (
        ("first", "a", "row", rows, stage.body, plan.tile_m, "row0", "rows"),
        ("second", "b", "col", cols, stage.second, plan.tile_n, "col0", "cols"),
    ):
        atoms = stage.used(e)
        used = {word for atom in atoms.values() for word in words(*atom.coords, atom.guard)}
        decode = [line for line in [*_decoded(batch, "batch"), *_decoded(axes, edge), *_decoded(stage.reduced, "depth")]
                  if line.split()[2] in used]
        arrays = [atom for atom in atoms.values() if atom.array and atom.coords]
        deep = bool(arrays) and any(mentions(_last(atom), a.name) for atom in arrays for a in stage.reduced) and not any(
            mentions(_last(atom), a.name) for atom in arrays for a in axes)
        views[key] = {"letter": letter, "edge": edge, "extent": tile, "start": start, "limit": limit, "deep": deep,
                      "lines": [*decode, *_loads(atoms, problem), f"return {ex.cuda(e, fast)};"]}
    return {
        **views, "tile_k": plan.tile_k, "tile_m": plan.tile_m, "tile_n": plan.tile_n, "thread_m": plan.thread_m,
        "thread_n": plan.thread_n, "threads": plan.threads, "padded": plan.padded, "rows": _extent(rows), "cols": _extent(cols),
        "place": place, "finish": _finish(stage, problem, fast, "sum"),
    }


def _last(atom: Atom) -> Atom:
    """The atom's innermost coordinate alone."""
    return Atom(atom.array, atom.dims[-1:], atom.coords[-1:])


def _blocks(plan: StagePlan, stage: Stage) -> str:
    """The number of blocks, a Python expression over sizes."""
    count = _plain(stage.axes)
    if stage.kind == "product" and plan.tile_k:
        batch, rows, cols = sides(stage)
        return f"-(-({_plain(rows)}) // {plan.tile_m}) * -(-({_plain(cols)}) // {plan.tile_n}) * {_plain(batch)}"
    if stage.kind == "scan":
        count = _plain([axis for axis in stage.axes if axis != stage.reduced[0]])
    if plan.owner == "block":
        return count
    each = plan.block // 32 if plan.owner == "warp" else plan.block * plan.items * (plan.vector if stage.kind == "map" else 1)
    return f"-(-{count if count.isidentifier() else f'({count})'} // {each})"


def _host(plan: ProgramPlan, problem: ProgramProblem) -> list[str]:
    """The statements of forward."""
    program, module = problem.program, problem.torch_module
    given = {stage.result for stage in problem.stages if stage.given}
    used = set().union(*(stage.reads() for stage in problem.stages)) | given
    lines = [*module.bindings]
    for array in (*program.arguments, *program.stored):
        if array.name in used and array.name not in given and array.dtype != "scalar":
            dtype = "" if array.dtype == "float" else f", {TORCH[array.dtype]}"
            lines.append(f"{array.name} = _dense({array.name}{dtype})")
    needed = problem.needed_sizes()
    lines += [f"{size.name} = {size.text}" for size in needed]
    names = [size.name for size in needed if size.name in problem.kernel_names()]
    largest = [f"{a.name}.numel()" for a in program.arguments if a.dtype != "scalar" and a.name in used]
    largest += [_plain(stage.axes) for stage in problem.stages if stage.kind != "library"]
    largest += [_plain(stage.reduced) for stage in problem.kernels if stage.kind == "reduce"]
    lines += _filled("wide = max(", ["0", *dict.fromkeys(largest)], ") > 2_000_000_000")
    lines += _filled("sizes = _macros(", ["WIDE=int(wide)", *(f"{name}={name}" for name in names)], ")")
    lines += ["with cupy.cuda.ExternalStream(torch.cuda.current_stream().cuda_stream):"]
    lines += [f"    {line}" for line in _run(plan, problem)]
    return [*lines, f"return {program.output}.view({shape(program.shape)})"]


def _run(plan: ProgramPlan, problem: ProgramProblem) -> list[str]:
    """Allocations, launches and library calls, in order; arrays are dropped after their last use."""
    lines: list[str] = []
    plans = iter(plan.stages)
    anchor = next(a.name for a in problem.program.arguments if a.dtype != "scalar")
    for place, stage in enumerate(problem.stages):
        if stage.kind == "library":
            lines.append(f"{stage.result} = _dense({stage.statement})")
            continue
        own = next(plans)
        if not stage.given:
            extents = ", ".join(a.extent for a in stage.axes) + ("," if len(stage.axes) == 1 else "")
            lines.append(f"{stage.result} = torch.empty(({extents}), dtype={TORCH[stage.dtype]}, device={anchor}.device)")
        lines += _launched(own, stage, problem)
        rest = problem.stages[place + 1 :]
        gone = [a for a in sorted(stage.reads()) if any(s.result == a and not s.given for s in problem.stages)
                and not any(a in later.reads() for later in rest) and a != problem.program.output]
        lines += [f"del {', '.join(gone)}"] if gone else []
    for counter in problem.program.counters:
        calls = [f"{counter}.num_batches_tracked.data_ptr(),"]
        lines += wrapped(f'_launch("{problem.kernel}_count", sizes, (1,), (1,), (', calls, "))")
    return lines


def _launched(plan: StagePlan, stage: Stage, problem: ProgramProblem) -> list[str]:
    """The launch of a stage: of its 16-byte kernel only where rows are multiples of 16 bytes."""
    arguments = [a if _array(a, problem) == "scalar" else f"{a}.data_ptr()" for a in _read(stage, problem)]
    arguments = [f"cupy.float32({a})" if a.isidentifier() else a for a in arguments] + [f"{stage.result}.data_ptr()"]
    listed = [*arguments[:-1], f"{arguments[-1]},"] if len(arguments) == 1 else arguments
    launches = []
    for twin, which in enumerate(_variants(plan)):
        head = f'_launch("{_name(stage, problem)}{ANY * twin}", sizes, (blocks,), ({which.threads},), ('
        launches.append([f"blocks = {_blocks(which, stage)}", *wrapped(head, listed, "))")])
    axis = innermost(stage)
    if len(launches) == 1 or axis is None:
        return launches[0]
    return [f"if {axis.extent} % 4 == 0:", *indented(launches[0]), "else:  # 16-byte accesses would straddle rows",
            *indented(launches[1])]


def _filled(head: str, arguments: Sequence[str], tail: str) -> list[str]:
    """A call with as many arguments a line as fit."""
    if len(head) + sum(len(a) + 2 for a in arguments) <= 96:
        return [f"{head}{', '.join(arguments)}{tail}"]
    lines = [head, "   "]
    for argument in arguments:
        if len(lines[-1]) + len(argument) > 92:
            lines.append("   ")
        lines[-1] += f" {argument},"
    return [*lines, tail]

"""The `[start]` section of a task: kernels of a `.cu` file, their arrays and launches."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import Any

from kernelskill.errors import Location, TaskError, near_or_all
from kernelskill.tasks.cuda_text import CudaText
from kernelskill.tasks.document import Table, read_text
from kernelskill.tasks.expressions import Expression
from kernelskill.tasks.kernel_arguments import ArgumentReader, Array, Scalar

DTYPES = ("float32", "float16", "float64", "int32", "int64", "uint32", "uint8", "int8", "bool")
_GRID_LIMITS = (2**31 - 1, 65535, 65535)
_BLOCK_LIMITS = (1024, 1024, 64)
_MAX_BLOCK_THREADS = 1024
_OUTPUTS_EXAMPLE = 'outputs = {y = {shape = ["rows"], dtype = "float32"}}'


@dataclass(frozen=True)
class Launch:
    """One kernel launch. `arguments` are array names or scalars, in the kernel's order."""

    kernel: str
    needs_name_expression: bool
    grid: tuple[Expression, ...]
    block: tuple[int, ...]
    arguments: tuple[str | Scalar, ...]
    shared_bytes: Expression


@dataclass(frozen=True)
class Start:
    """Everything needed to render the starting solution of a `.cu` file."""

    cuda: str
    file: str
    inputs: tuple[str, ...]
    arrays: tuple[Array, ...]
    launches: tuple[Launch, ...]
    size_of: dict[str, tuple[str, int]]
    """Size name -> (input, axis) that holds it."""


@dataclass(frozen=True)
class StartContext:
    """What the rest of the task says that a launch depends on."""

    root: Path
    sizes: Mapping[str, int]
    check_sizes: tuple[dict[str, int], ...]
    inputs: tuple[str, ...]
    input_shapes: Mapping[str, list[Any]]

    @property
    def problems(self) -> tuple[Mapping[str, int], ...]:
        """Every problem that will be launched."""
        return (self.sizes, *self.check_sizes)


def read_start(table: Table, context: StartContext) -> Start:
    """Check a `[start]` table with `cu = ...`. Raises TaskError at the first mistake."""
    table.only("cu", "kernel", "grid", "block", "args", "shared_bytes", "outputs", "temporaries", "launches")
    cuda_path = context.root / table.text("cu")
    if not cuda_path.is_file():
        raise table.wrong(f"no file {cuda_path.name} beside the task", "cu")
    cuda = CudaText(read_text(cuda_path))
    outputs = _arrays(table, "outputs", context, is_output=True)
    if not outputs:
        raise table.missing("outputs", _OUTPUTS_EXAMPLE)
    arrays = outputs + _arrays(table, "temporaries", context, is_output=False)
    launches = tuple(_launch(t, cuda, cuda_path, context, arrays) for t in _launch_tables(table))
    start = Start(cuda.source, cuda_path.name, context.inputs, arrays, launches, _size_positions(context))
    for size in sizes_used(start):
        if size not in start.size_of:
            raise table.error(f"size '{size}' is not a dimension of any input, so the launch cannot know it",
                              hint='describe the inputs: [inputs] x = ["rows", "cols"]')
    return start


def sizes_used(start: Start) -> list[str]:
    """Sizes that shapes, grids, shared memory and scalar arguments refer to; those of the inputs first, in their order."""
    expressions = [e for array in start.arrays for e in array.shape]
    for launch in start.launches:
        expressions += [*launch.grid, launch.shared_bytes]
        expressions += [a.value for a in launch.arguments if isinstance(a, Scalar) and isinstance(a.value, Expression)]
    used = {name for e in expressions for name in e.names}
    return [size for size in start.size_of if size in used] + sorted(used - start.size_of.keys())


def _launch_tables(table: Table) -> list[Table]:
    if not table.has("launches"):
        return [table]
    for key in ("kernel", "grid", "block", "args", "shared_bytes"):
        if table.has(key):
            raise table.error(f"'{table.spell(key)}' and '{table.spell('launches')}' exclude each other", key)
    tables = table.tables("launches")
    for launch in tables:
        launch.only("kernel", "grid", "block", "args", "shared_bytes")
    return tables


def _arrays(table: Table, key: str, context: StartContext, *, is_output: bool) -> tuple[Array, ...]:
    if not table.has(key):
        return ()
    declared, arrays = table.table(key), []
    for name in declared.values:
        if not name.isidentifier() or name in context.inputs or name in context.sizes:
            raise declared.wrong("must be a new name, not an input or a size", name)
        entry = declared.table(name, example=_OUTPUTS_EXAMPLE)
        entry.only("shape", "dtype")
        dtype = entry.text("dtype", "float32")
        if dtype not in DTYPES:
            raise entry.wrong(f"unknown dtype '{dtype}'", "dtype", hint=near_or_all(dtype, DTYPES))
        shape = entry.items("shape", example='shape = ["rows", "cols"]') if entry.values.get("shape") != [] else []
        arrays.append(Array(name, tuple(entry.expression(d, context.sizes, "shape") for d in shape), dtype, is_output))
    return tuple(arrays)


def _size_positions(context: StartContext) -> dict[str, tuple[str, int]]:
    found: dict[str, tuple[str, int]] = {}
    for name in context.inputs:
        for axis, dimension in enumerate(context.input_shapes.get(name, [])):
            if isinstance(dimension, str) and dimension in context.sizes:
                found.setdefault(dimension, (name, axis))
    return found


def _launch(table: Table, cuda: CudaText, cuda_path: Path, context: StartContext, arrays: tuple[Array, ...]) -> Launch:
    kernel = table.text("kernel", example=f"kernels in {cuda_path.name}: {', '.join(cuda.kernels) or 'none'}")
    function = cuda.kernels.get(kernel.split("<", 1)[0].strip())
    if function is None:
        raise _no_kernel(table, kernel, cuda_path, list(cuda.kernels))
    grid = _grid(table, context)
    shared = table.expression(table.values.get("shared_bytes", 0), context.sizes, "shared_bytes")
    for sizes in context.problems:
        if table.evaluate(shared, sizes, "shared_bytes") < 0:
            raise table.wrong(f"negative for {_shown(sizes)}", "shared_bytes")
    reader = ArgumentReader(table, context.inputs, {a.name: a for a in arrays}, context.problems)
    return Launch(kernel, not function.extern_c, grid, _block(table), reader.read(function), shared)


def _no_kernel(table: Table, kernel: str, cuda_path: Path, found: list[str]) -> TaskError:
    if not found:
        return TaskError("holds no __global__ function", location=Location(cuda_path))
    near = near_or_all(kernel, found)
    return table.wrong(f"no kernel '{kernel}' in {cuda_path.name}; it has {', '.join(found)}", "kernel",
                       hint=near if near.startswith("did") else "")


def _shown(sizes: Mapping[str, int]) -> str:
    return ", ".join(f"{name}={value}" for name, value in sizes.items())


def _grid(table: Table, context: StartContext) -> tuple[Expression, ...]:
    values = table.items("grid", 'grid = ["ceil_div(rows, 256)"]')
    if len(values) > 3:
        raise table.wrong(f"{len(values)} entries; a grid has at most three", "grid")
    grid = tuple(table.expression(e, context.sizes, "grid") for e in values)
    for sizes in context.problems:
        for expression, limit in zip(grid, _GRID_LIMITS, strict=False):
            value = table.evaluate(expression, sizes, "grid")
            if not 1 <= value <= limit:
                raise table.wrong(f"{expression.text} = {value} for {_shown(sizes)}; allowed is 1 to {limit}", "grid")
    return grid


def _block(table: Table) -> tuple[int, ...]:
    block = table.items("block", "block = [256]")
    if len(block) > 3 or not all(isinstance(n, int) and not isinstance(n, bool) and n >= 1 for n in block):
        raise table.wrong(f"must be one to three whole numbers, got {block!r}", "block")
    if prod(block) > _MAX_BLOCK_THREADS or any(n > limit for n, limit in zip(block, _BLOCK_LIMITS, strict=False)):
        raise table.wrong(f"{prod(block)} threads {block!r}; a block holds at most {_MAX_BLOCK_THREADS}, 64 along z", "block")
    return tuple(block)

"""The Python module of a starting solution: CUDA source, module, and `run(*inputs)` that allocates and launches."""

from __future__ import annotations

from evaluator.origins import digest
from kernelskill.tasks.expressions import Expression
from kernelskill.tasks.kernel_arguments import Array
from kernelskill.tasks.launch import Launch, Start, sizes_used

_DEFAULT_SHARED_LIMIT = 48 * 1024
_QUOTES = ('"""', "'''")
_CEIL_DIV = '''

def ceil_div(a, b):
    """a / b, rounded up."""
    return -(-a // b)
'''


def render_start(task: str, start: Start) -> str:
    """Source of the solution module. It needs only cupy and numpy when it runs."""
    kernels = {launch.kernel: launch for launch in start.launches}
    body = _run(start)
    helper = _CEIL_DIV if "ceil_div(" in body else ""
    needed = [f'"{k}"' for k, launch in kernels.items() if launch.needs_name_expression]
    names = f", name_expressions=({', '.join(needed)},)" if needed else ""
    handles = "\n".join(f'{_handle(kernel)} = MODULE.get_function("{kernel}")' for kernel in kernels)
    return (
        f'"""Starting solution of the task {task}: the kernels of {start.file}, launched as the task file says."""\n\n'
        f"import cupy\nimport numpy as np\n\n{_copied(start)}SOURCE = {_literal(start.cuda)}\n\n"
        f'MODULE = cupy.RawModule(code=SOURCE, options=("--std=c++17",){names})\n{handles}\n{helper}\n\n{body}'
    )


def _literal(cuda: str) -> str:
    """The CUDA text as a Python literal, readable where it can be. Its line N is line N of the CUDA file."""
    quotes = next((quotes for quotes in _QUOTES if quotes not in cuda), None)
    return f"r{quotes}{_text(cuda)}{quotes}" if quotes else repr(_text(cuda))


def _text(cuda: str) -> str:
    return cuda.rstrip("\n") + "\n"


def _copied(start: Start) -> str:
    """The comment by which findings in the literal lead to the CUDA file."""
    return f"# {start.file}, line by line (sha256 {digest(_text(start.cuda))}):\n"


def _handle(kernel: str) -> str:
    """A Python constant's name for a kernel, e.g. `ROW_SOFTMAX` or `SOFTMAX_FLOAT_256` for `softmax<float, 256>`."""
    words = "".join(c if c.isalnum() or c == "_" else " " for c in kernel).split()
    return "_".join(words).upper()


def _run(start: Start) -> str:
    lines = [f"def run({', '.join(start.inputs)}):"]
    for size in sizes_used(start):
        name, axis = start.size_of[size]
        lines.append(f"    {size} = {name}.shape[{axis}]")
    lines += [f"    {_allocation(array)}" for array in start.arrays]
    for launch in start.launches:
        lines += _launch(launch)
    outputs = [array.name for array in start.arrays if array.is_output]
    return "\n".join([*lines, f"    return {', '.join(outputs)}"]) + "\n"


def _allocation(array: Array) -> str:
    return f"{array.name} = cupy.empty({_tuple(array.shape)}, dtype=np.{array.dtype})"


def _tuple(values: tuple[Expression, ...] | tuple[int, ...]) -> str:
    texts = [v.text if isinstance(v, Expression) else str(v) for v in values]
    return f"({texts[0]},)" if len(texts) == 1 else f"({', '.join(texts)})"


def _launch(launch: Launch) -> list[str]:
    handle = _handle(launch.kernel)
    arguments = [a if isinstance(a, str) else f"np.{a.dtype}({a.text})" for a in launch.arguments]
    packed = f"({arguments[0]},)" if len(arguments) == 1 else f"({', '.join(arguments)})"
    call = f"    {handle}({_tuple(launch.grid)}, {_tuple(launch.block)}, {packed}"
    if launch.shared_bytes.text == "0":
        return [f"{call})"]
    return [
        f"    shared = {launch.shared_bytes.text}",
        f"    if shared > {_DEFAULT_SHARED_LIMIT}:  # more needs the kernel's consent",
        f"        {handle}.max_dynamic_shared_size_bytes = shared",
        f"{call}, shared_mem=shared)",
    ]

"""Writes the program that shows a fault without this package: the inputs, the calls, and what should have come out."""

from __future__ import annotations

import base64
import zlib
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from evaluator.checking.properties import OVERWRITTEN, Step, Violation
from evaluator.comparison import Expected
from evaluator.conditions import Conditions
from evaluator.trees import Leaf, leaves
from evaluator.types import TaskSpec

LITERAL_ELEMENTS = 64
"""Arrays up to here are written as numbers."""
MOST_EXPECTED = 20_000
"""Elements of an expected output that the program holds; of a larger one it checks the first wrong element alone."""
SAME_BITS = ("memory", "repeatable", "block_order", "calls", "stream")
"""Properties whose faults are differences from a plain call of the solution itself."""

HEAD = '''"""{title}

{message}

Needs NumPy and {library} on a machine with an NVIDIA GPU:

    python {name} [SOLUTION]

Exit code 1 and the wrong elements when the fault shows, 0 when it does not.{hint}
"""

import base64
import importlib.util
import sys
import zlib

import numpy as np
{imports}

SOLUTION = sys.argv[1] if len(sys.argv) > 1 else {solution!r}
inf, nan = np.inf, np.nan


def unpacked(dtype, text):
    return np.frombuffer(zlib.decompress(base64.b85decode(text)), dtype).copy()


def arrays_of(result):
    if isinstance(result, dict):
        result = list(result.values())
    return [a for part in result for a in arrays_of(part)] if isinstance(result, (list, tuple)) else [result]


def load(path):
    spec = importlib.util.spec_from_file_location("solution", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module

'''
NATIVE = '''
def on_device(value):
    return cupy.asarray(value) if isinstance(value, np.ndarray) else value


def on_host(value):
    return cupy.asnumpy(value)


def filled(nbytes, byte):
    return cupy.full(nbytes, byte, dtype=cupy.uint8)


def view(block, like):
    return block.view(like.dtype)


def reversed_axes(array):
    return array.transpose()


def refill(array, value):
    if isinstance(value, np.ndarray):
        array.set(value)


def late(arrays, sources, run):
    stream = cupy.cuda.Stream(non_blocking=True)
    cupy.cuda.runtime.deviceSynchronize()
    with stream:
        return in_order(stream, arrays, sources, run)

'''
TORCH = '''
def on_device(value):
    return value.to("cuda") if isinstance(value, torch.Tensor) else value


def on_host(value):
    return value.detach().to("cpu", torch.float64 if value.is_floating_point() else value.dtype).numpy()


def filled(nbytes, byte):
    return torch.full((nbytes,), byte, dtype=torch.uint8, device="cuda")


def view(block, like):
    return block.view(like.dtype)


def reversed_axes(array):
    return array.permute(*reversed(range(array.dim())))


def refill(array, value):
    if isinstance(value, torch.Tensor):
        array.copy_(value)


def late(arrays, sources, run):
    torch.cuda.synchronize()
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        return in_order(stream, arrays, sources, run)

'''
LAYOUT = '''
def arranged(value, layout):
    made = on_device(value)
    if not hasattr(made, "shape") or not made.shape or layout == "contiguous":
        return made
    shape, count = tuple(made.shape), int(np.prod(made.shape))
    if layout == "offset":
        array = view(filled((count + 1) * made.dtype.itemsize, 255), made)[1:].reshape(shape)
    elif layout == "strided":
        array = view(filled(2 * count * made.dtype.itemsize, 255), made).reshape(shape[:-1] + (2 * shape[-1],))[..., ::2]
    else:
        array = reversed_axes(view(filled(count * made.dtype.itemsize, 255), made).reshape(shape[::-1]))
    array[...] = made
    return array

'''
LATE = '''
def in_order(stream, arrays, sources, run):
    """Work that takes milliseconds, then the inputs, then the solution: all on this stream."""
    block = filled(64 << 20, 0)
    for _ in range(200):
        block[...] = 0
    for array, source in zip(arrays, sources):
        array[...] = source
    result = run()
    stream.synchronize()
    return result

'''
HINTS = {
    "bounds": "\nRun it under `compute-sanitizer` to see the access that misses its buffer.",
    "synchronisation": "\nRun it under `compute-sanitizer --tool racecheck` (or `synccheck`) to see the race or the barrier.",
    "block_order": "\nA GPU chooses the order of blocks: several runs may be needed.",
}


def reproduction(violation: Violation, title: str, spec: TaskSpec, solution: str, name: str) -> str:
    """The program. Raises nothing: what cannot be written down is left to the report."""
    torch = spec.kind == "kernelbench"
    steps = list(violation.steps)
    if violation.property in SAME_BITS and len(steps) == 1:
        steps = [Step(steps[0].posed), *steps]
    late = any(step.conditions is not None and step.conditions.late_stream for step in steps)
    layout = any(step.posed.example.layout != "contiguous" for step in steps)
    parts = [
        HEAD.format(title=title, message=_quotable(violation.message), library="PyTorch" if torch else "CuPy", name=name,
                    hint=HINTS.get(violation.property, ""), imports="import torch" if torch else "import cupy",
                    solution=solution),
        TORCH if torch else NATIVE, LAYOUT if layout else "", LATE if late else "",
        *_data(steps, torch), _construction(torch), *_calls(steps), _verdict(violation),
    ]
    return "".join(parts)


def _quotable(text: str) -> str:
    return text.replace("\\", "/").replace('"""', "'''")


def _data(steps: Sequence[Step], torch: bool) -> list[str]:
    """`inputs_0`, ... in the order in which the steps use them; for torch `init_0` and `state_0` too."""
    lines, seen = [], set[int]()
    for step in steps:
        number = _number(step, steps)
        if number in seen:
            continue
        seen.add(number)
        problem = step.posed.problem
        lines.append(f"# {step.posed.example}\ninputs_{number} = {_tree(dict(problem.inputs), torch)}\n")
        if torch:
            init = problem.init if isinstance(problem.init, Mapping) else list(problem.init)
            lines.append(f"init_{number} = {_tree(init, torch)}\nstate_{number} = {_tree(dict(problem.state), torch)}\n")
    return lines


def _number(step: Step, steps: Sequence[Step]) -> int:
    return next(i for i, other in enumerate(steps) if other.posed is step.posed)


def _tree(tree: Any, torch: bool) -> str:
    if isinstance(tree, Mapping):
        inner = "".join(f"    {key!r}: {_tree(value, torch)},\n" for key, value in tree.items())
        return "{\n" + inner + "}" if inner else "{}"
    if isinstance(tree, (list, tuple)):
        inner = ", ".join(_tree(value, torch) for value in tree)
        return f"[{inner}]" if isinstance(tree, list) else f"({inner}{',' if len(tree) == 1 else ''})"
    return _array(tree, torch) if isinstance(tree, Leaf) else repr(tree)


def _array(leaf: Leaf, torch: bool) -> str:
    values = np.ascontiguousarray(leaf.values)
    if values.size <= LITERAL_ELEMENTS:
        text = f"np.array([{', '.join(str(v) for v in values.reshape(-1))}], np.{_storage(values)})"
    else:
        packed = base64.b85encode(zlib.compress(values.tobytes(), 9)).decode()
        text = f"unpacked(np.{_storage(values)}, {packed!r})"
    text += f".reshape({tuple(values.shape)})"
    if not torch or leaf.source == "python":
        return text if leaf.source != "python" else repr(values.item())
    bits = ".view(torch.bfloat16)" if leaf.dtype == "bfloat16" else ""
    return f"torch.from_numpy({text.replace('np.uint16', 'np.int16') if bits else text}){bits}"


def _storage(values: Any) -> str:
    return "bool_" if values.dtype == np.bool_ else str(values.dtype.name)


def _construction(torch: bool) -> str:
    if not torch:
        return '''
solution = load(SOLUTION)


def call(live, number):
    return solution.run(*live)

'''
    return '''
solution = load(SOLUTION)


def call(live, number):
    init, state = globals()[f"init_{number}"], globals()[f"state_{number}"]
    model = (solution.ModelNew(**init) if isinstance(init, dict) else solution.ModelNew(*init)).to("cuda")
    with torch.no_grad():
        for name, tensor in model.state_dict().items():
            tensor.copy_(state[name])
        return model(*live)

'''


def _calls(steps: Sequence[Step]) -> list[str]:
    lines = []
    for position, step in enumerate(steps):
        number, conditions = _number(step, steps), step.conditions or Conditions()
        layout = step.posed.example.layout
        place = f"arranged(value, {layout!r})" if layout != "contiguous" else "on_device(value)"
        if step.how == "fresh":
            lines.append(f"live = [{place} for value in inputs_{number}.values()]\n")
        elif step.how == "refill":
            lines.append(f"for array, value in zip(live, inputs_{number}.values()):\n    refill(array, value)\n")
        if conditions.fresh_byte is not None:
            lines.append(SPOIL.format(byte=conditions.fresh_byte))
        if conditions.late_stream:
            lines.append(ARRIVING.format(number=number))
        else:
            lines.append(f"out = call(live, {number})\n")
        if position == 0 and len(steps) > 1:
            lines.append("first = out\nkept = [on_host(array).copy() for array in arrays_of(first)]\n")
    return lines


SPOIL = '''# What freed memory holds, the next arrays get.
blocks = [filled(nbytes, {byte}) for nbytes in {{a.nbytes for a in live if hasattr(a, "nbytes")}} for _ in range(8)]
del blocks
'''
ARRIVING = '''arrays = [array for array in live if hasattr(array, "shape")]
sources = [array.copy() if hasattr(array, "copy") else array.clone() for array in arrays]
for array in arrays:
    array[...] = nan
out = late(arrays, sources, lambda: call(live, {number}))
'''


def _verdict(violation: Violation) -> str:
    mismatch = violation.mismatch
    if violation.property == "inputs":
        return CHANGED
    if violation.message == OVERWRITTEN:
        return SHARED
    if mismatch is None or mismatch.index is None:
        return "print('The calls ended without an error.', out)\n" if mismatch is None else (
            f"print({violation.message!r})\nprint('got', out)\n")
    if violation.property in SAME_BITS and violation.got is None:
        return f"value, expected, allowed = on_host({mismatch.output}), on_host({_of_first(mismatch.output)}), 0.0\n" + TELL
    expected = dict(leaves(violation.steps[-1].posed.expected, "out"))[mismatch.output]
    if violation.property == "relation" or expected.values.size > MOST_EXPECTED:
        index = ", ".join(map(str, mismatch.index))
        rows = ".sum(axis=-1)" if len(mismatch.index) < expected.values.ndim else ""  # a relation on the sums of rows
        item = f"on_host({mismatch.output}){rows}" + (f"[{index}]" if index else "")
        return f"value, expected, allowed = {item}, {mismatch.expected!r}, {mismatch.allowed_error!r}\n" + TELL
    return f"value = on_host({mismatch.output})\n{_expected(expected)}" + TELL


def _of_first(output: str) -> str:
    return "first" + output[len("out"):]


def _expected(want: Expected) -> str:
    values = _array(Leaf(np.asarray(want.values), "float64"), False)
    allowed = np.broadcast_to(np.asarray(want.allowed, np.float64), want.values.shape)
    if want.free is not None:
        allowed = np.where(want.free, np.nan, allowed)
    return f"expected = {values}\nallowed = {_array(Leaf(allowed, 'float64'), False)}  # nan: anything goes\n"


TELL = '''value = np.asarray(value)
print("got     ", value)
print("expected", expected)
with np.errstate(invalid="ignore"):
    close = np.abs(value.astype(np.float64) - expected) <= allowed
    same = (value == expected) | (np.isnan(value) & np.isnan(expected))
wrong = ~(close | same | np.isnan(allowed))
print(f"{wrong.sum()} of {wrong.size} elements are wrong; first at {np.argwhere(wrong)[:1].tolist()}")
sys.exit(1 if wrong.any() else 0)
'''
SHARED = '''now = [on_host(array) for array in arrays_of(first)]
wrong = [i for i, (array, before) in enumerate(zip(now, kept)) if not np.array_equal(array, before, equal_nan=True)]
print("the first call returned", kept)
print("after the second call it holds", now)
sys.exit(1 if wrong else 0)
'''
CHANGED = '''wrong = 0
for name, array, value in zip(inputs_0, live, inputs_0.values()):
    if hasattr(array, "shape") and not np.array_equal(on_host(array), on_host(on_device(value)), equal_nan=True):
        print(f"input {name} was changed:", on_host(array))
        wrong += 1
sys.exit(1 if wrong else 0)
'''

"""The Python side of a solution, by its syntax tree: CUDA text, compiler options, block sizes, library calls. Nothing runs."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from math import prod


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


FREE_OF_COMPUTATION = _words("""
    empty empty_like empty_strided zeros zeros_like ones ones_like full full_like tensor as_tensor asarray array
    ascontiguousarray asfortranarray from_dlpack from_numpy frombuffer asnumpy device dtype float16 float32 float64 int8
    int16 int32 int64 uint8 uint16 uint32 uint64 bool_ bfloat16 RawKernel RawModule Size Tensor ndarray is_tensor
    no_grad inference_mode reshape broadcast_to expand_dims squeeze unsqueeze view_as get_default_dtype Parameter Stream
    ExternalStream Device Event get_array_module is_contiguous iscontiguous numel ndim isscalar result_type
    memory_format Generator
""")
"""Functions and classes of array libraries that compute nothing."""
_FREE_MODULES = _words("cuda utils library autograd jit backends version testing random runtime compiler")
_COMPUTING_METHODS = _words("""
    matmul mm bmm addmm dot mv einsum softmax log_softmax sum mean max min amax amin prod norm var std argmax argmin cumsum
    exp log sqrt rsqrt tanh sigmoid relu gelu abs clamp sin cos erf add_ mul_ sub_ div_ relu_ topk masked_fill
""")
_ARRAY_LIBRARIES = ("torch", "cupy", "cupyx")


@dataclass(frozen=True)
class SolutionSource:
    """What the Python module shows."""

    cuda: str
    """Every CUDA text of the module, joined."""
    options: tuple[str, ...]
    block_threads: int | None
    """Threads a block, where all launches in the text agree on constants."""
    library_calls: int | None
    """Calls that compute outside the solution's kernels; None when the module defines neither `run` nor `ModelNew`."""


def read_solution(source: str) -> SolutionSource | None:
    """The module's parts; None when it is not Python."""
    try:
        module = ast.parse(source)
    except (SyntaxError, ValueError, RecursionError):
        return None
    names = _constants(module)
    texts = [t for node in ast.walk(module) if (t := _text(node, names)) is not None]
    cuda = [t for t in texts if "__global__" in t]
    unique = sorted(set(cuda), key=cuda.index)
    whole = [text for text in unique if not any(text in other for other in unique if other != text)]
    options = tuple(dict.fromkeys(t for t in texts if t.startswith("-") and " " not in t))
    return SolutionSource("\n".join(whole), options, _block_threads(module, names), _library_calls(module))


Constants = Mapping[str, ast.expr]


def _constants(module: ast.Module) -> Constants:
    """Names assigned exactly once anywhere in the module, with their values."""
    assigned: dict[str, list[ast.expr]] = {}
    for node in ast.walk(module):
        match node:
            case ast.Assign(targets=[ast.Name(id=name)], value=value):
                assigned.setdefault(name, []).append(value)
            case ast.AnnAssign(target=ast.Name(id=name), value=ast.expr() as value):
                assigned.setdefault(name, []).append(value)
    return {name: values[0] for name, values in assigned.items() if len(values) == 1}


def _text(node: ast.AST, names: Constants, depth: int = 0) -> str | None:
    """The text that an expression builds from constants; unknown insertions show up as their own source."""
    if depth > 20:
        return None
    match node:
        case ast.Constant(value=str() as text):
            return text
        case ast.Name(id=name) if name in names:
            return _text(names[name], names, depth + 1)
        case ast.BinOp(left=left, op=ast.Add(), right=right):
            parts = [_text(side, names, depth + 1) for side in (left, right)]
            return None if parts[0] is None and parts[1] is None else "".join(p or "" for p in parts)
        case ast.JoinedStr(values=values):
            return "".join(_inserted(value, names, depth + 1) for value in values)
        case ast.Call(func=ast.Attribute(value=base, attr="replace"), args=[old, new]):
            whole, before, after = (_text(n, names, depth + 1) for n in (base, old, new))
            return whole.replace(before, after) if whole is not None and before and after is not None else whole
        case ast.Call(func=ast.Attribute(value=base, attr="strip" | "lstrip" | "rstrip" | "format")):
            return _text(base, names, depth + 1)
        case ast.Call(func=ast.Attribute(attr="dedent"), args=[inner]):
            return _text(inner, names, depth + 1)
    return None


def _inserted(node: ast.expr, names: Constants, depth: int) -> str:
    if not isinstance(node, ast.FormattedValue):
        return _text(node, names, depth) or ""
    number = _integer(node.value, names)
    return str(number) if number is not None else _text(node.value, names, depth) or ast.unparse(node.value)


def _integer(node: ast.expr, names: Constants, depth: int = 0) -> int | None:
    match node:
        case ast.Constant(value=int() as number) if not isinstance(number, bool):
            return number
        case ast.Name(id=name) if name in names and depth < 20:
            return _integer(names[name], names, depth + 1)
        case ast.BinOp(left=left, op=ast.Mult() | ast.Add() as op, right=right):
            a, b = _integer(left, names, depth + 1), _integer(right, names, depth + 1)
            return None if a is None or b is None else a * b if isinstance(op, ast.Mult) else a + b
    return None


def _block_threads(module: ast.Module, names: Constants) -> int | None:
    """From calls of the form kernel(grid, block, arguments): block as a tuple of constants."""
    found: set[int | None] = set()
    for node in ast.walk(module):
        if isinstance(node, ast.Call) and len(node.args) in (3, 4):
            grid, block, arguments = node.args[-3:]
            shapes = [names.get(n.id, n) if isinstance(n, ast.Name) else n for n in (grid, block, arguments)]
            if isinstance(shapes[1], ast.Tuple) and isinstance(shapes[2], ast.Tuple) and 1 <= len(shapes[1].elts) <= 3:
                threads = [_integer(e, names) for e in shapes[1].elts]
                found.add(None if None in threads else prod(t for t in threads if t is not None))
    return found.pop() if len(found) == 1 else None


def _library_calls(module: ast.Module) -> int | None:
    functions = {n.name: n for n in module.body if isinstance(n, ast.FunctionDef)}
    model = next((n for n in module.body if isinstance(n, ast.ClassDef) and n.name == "ModelNew"), None)
    methods = {n.name: n for n in model.body if isinstance(n, ast.FunctionDef)} if model else {}
    entry = methods.get("forward") or functions.get("run")
    if entry is None:
        return None
    aliases = _aliases(module)
    layers = _layers(methods.get("__init__"), aliases)
    reached = _reached(entry, functions, methods)
    return sum(_computes(node, aliases, layers) for function in reached for node in ast.walk(function))


def _aliases(module: ast.Module) -> dict[str, str]:
    """Local name -> dotted name, for imports of array libraries."""
    found: dict[str, str] = {}
    for node in ast.walk(module):
        if isinstance(node, ast.Import):
            pairs = [(a.asname or a.name.split(".")[0], a.name if a.asname else a.name.split(".")[0]) for a in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module:
            pairs = [(a.asname or a.name, f"{node.module}.{a.name}") for a in node.names]
        else:
            continue
        found.update((local, full) for local, full in pairs if full.split(".")[0] in _ARRAY_LIBRARIES)
    return found


def _dotted(node: ast.expr, aliases: Mapping[str, str]) -> str:
    """`torch.nn.functional.gelu` for `F.gelu`; "" for what is not from an array library."""
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    root = aliases.get(node.id, "") if isinstance(node, ast.Name) else ""
    return ".".join([root, *reversed(parts)]) if root else ""


def _layers(constructor: ast.FunctionDef | None, aliases: Mapping[str, str]) -> set[str]:
    """Attributes that the constructor sets to torch.nn modules."""
    if constructor is None:
        return set()
    return {
        target.attr
        for node in ast.walk(constructor) if isinstance(node, ast.Assign) and isinstance(node.value, ast.Call)
        for target in node.targets if isinstance(target, ast.Attribute)
        if (name := _dotted(node.value.func, aliases)).startswith("torch.nn.")
        and not name.endswith(("Parameter", "ParameterList"))
    }


def _reached(entry: ast.FunctionDef, functions: Mapping[str, ast.FunctionDef],
             methods: Mapping[str, ast.FunctionDef]) -> Iterator[ast.FunctionDef]:
    """The entry and the module's own functions and methods that it calls, directly or not."""
    waiting, seen = [entry], {entry.name}
    while waiting:
        function = waiting.pop()
        yield function
        for node in ast.walk(function):
            match node:
                case ast.Call(func=ast.Name(id=name)) if name in functions and name not in seen:
                    waiting.append(functions[name])
                    seen.add(name)
                case ast.Call(func=ast.Attribute(value=ast.Name(id="self"), attr=name)) if name in methods and name not in seen:
                    waiting.append(methods[name])
                    seen.add(name)


def _computes(node: ast.AST, aliases: Mapping[str, str], layers: set[str]) -> bool:
    """Whether the node is a call (or `@`) that computes on arrays outside the solution's kernels."""
    if isinstance(node, ast.BinOp):
        return isinstance(node.op, ast.MatMult)
    if not isinstance(node, ast.Call):
        return False
    name = _dotted(node.func, aliases)
    if name:
        parts = name.split(".")
        return parts[-1] not in FREE_OF_COMPUTATION and not any(p in _FREE_MODULES for p in parts[1:-1])
    match node.func:
        case ast.Attribute(value=ast.Name(id="self"), attr=attribute):
            return attribute in layers
        case ast.Attribute(attr=attribute):
            return attribute in _COMPUTING_METHODS
    return False

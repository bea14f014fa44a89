"""Refuses source that no honest solution needs, by its syntax tree, with file and line.

This is the cheap first line: what gets past it (assembled names, aliases of aliases) still runs without processes,
network, foreign signals or the reference in memory (`seccomp.py`, `sandbox.py`, `runner.py`).
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

from evaluator.types import Finding, TaskSpec

NO_FILES = "works on files, with which a solution has no business"
OTHER_LANGUAGE = "makes kernels by other means: a solution's kernels are CUDA C, given to cupy.RawKernel or cupy.RawModule"
GOES_ROUND = "goes round the evaluator's view of torch"
GENERATES = "generates kernels that are not the solution's own"
READS_RESULTS = "reads data from files: inputs and weights come as arguments"
LIBRARY_SETTING = "changes how a library computes: precision and mode are the task's to choose, and the evaluator has set them"
FORBIDDEN_IMPORTS = {
    "subprocess": "starts other programs", "multiprocessing": "starts other processes", "socket": "opens network connections",
    "threading": "runs code that the clock does not see", "concurrent": "runs code that the clock does not see",
    "asyncio": "runs code that the clock does not see", "_thread": "runs code that the clock does not see",
    "ctypes": "reads and writes arbitrary memory", "cffi": "reads and writes arbitrary memory",
    "gc": "walks other code's objects", "inspect": "walks other code's frames", "urllib": "opens network connections",
    "http": "opens network connections", "requests": "opens network connections", "pickle": "runs code from data",
    "marshal": "runs code from data", "signal": "interferes with the evaluator's time limit", "pty": "starts other programs",
    "evaluator": "is the code that judges the solution", "kernelskill": "a solution needs only cupy and torch",
    "unittest": "replaces other code at run time", "importlib": "imports by assembled names", "resource": "changes limits",
    "mmap": "reads and writes arbitrary memory", "faulthandler": "interferes with the evaluator", "builtins": "patches Python",
    "atexit": "runs code that the clock does not see", "shutil": NO_FILES, "tempfile": NO_FILES, "sqlite3": NO_FILES,
    "shelve": NO_FILES, "dbm": NO_FILES, "triton": OTHER_LANGUAGE, "numba": OTHER_LANGUAGE, "pycuda": OTHER_LANGUAGE,
    "tilelang": OTHER_LANGUAGE, "cutlass": OTHER_LANGUAGE, "tvm": OTHER_LANGUAGE, "jax": OTHER_LANGUAGE,
    "taichi": OTHER_LANGUAGE, "torch.utils.cpp_extension": OTHER_LANGUAGE, "torch._C": GOES_ROUND,
    "torch.overrides": GOES_ROUND, "torch.utils._python_dispatch": GOES_ROUND, "torch._dynamo": GENERATES,
    "torch._inductor": GENERATES, "torch.multiprocessing": "starts other processes",
    "torch.distributed": "starts other processes", "torch.hub": "opens network connections",
}
"""Modules, with everything below them."""
FORBIDDEN_CALLS = {
    "os.system": "starts other programs", "os.popen": "starts other programs", "os.fork": "starts other processes",
    "os.forkpty": "starts other processes", "os.kill": "signals other processes", "os.killpg": "signals other processes",
    "os._exit": "ends the process behind the evaluator's back", "os.abort": "ends the process behind the evaluator's back",
    "os.remove": "changes files", "os.unlink": "changes files", "os.rename": "changes files", "os.replace": "changes files",
    "sys.exit": "ends the process", "sys._getframe": "walks other code's frames",
    "sys._current_frames": "walks other code's frames",
    "sys.settrace": "interferes with the evaluator", "sys.setprofile": "interferes with the evaluator",
    "torch.compile": GENERATES,
    **dict.fromkeys(("numpy.load", "numpy.fromfile", "numpy.memmap", "numpy.loadtxt", "numpy.genfromtxt", "torch.load",
                     "torch.jit.load", "torch.from_file", "cupy.load", "cupy.fromfile", "cupy.loadtxt"), READS_RESULTS),
    **dict.fromkeys(("torch.set_float32_matmul_precision", "torch.use_deterministic_algorithms", "torch.set_default_dtype",
                     "torch.set_default_device", "torch.set_num_threads", "torch.autocast", "torch.amp.autocast",
                     "torch.cuda.amp.autocast", "torch.set_grad_enabled"), LIBRARY_SETTING),
}
STARTS_PROGRAMS = ("os.exec", "os.spawn", "os.posix_spawn")
FORBIDDEN_ATTRIBUTES = {
    "sys.modules": "replaces modules that the evaluator uses", "sys.meta_path": "replaces modules that the evaluator uses",
    "sys.path": "finds modules that are not the solution's", "torch._C": GOES_ROUND,
}
FORBIDDEN_NAMES = {
    "exec": "runs code built at run time", "eval": "runs code built at run time", "compile": "runs code built at run time",
    "__import__": "imports by assembled names", "globals": "rebinds names out of sight", "__builtins__": "patches Python",
}
FRAME_ATTRIBUTES = {
    "_make_subclass", "_make_wrapper_subclass", "as_subclass",
    "DisableTorchFunction", "DisableTorchFunctionSubclass", "f_back", "f_locals", "f_globals", "tb_frame", "gi_frame",
    "__subclasses__", "__globals__", "__code__",
}
PATCHABLE = {"torch", "cupy", "cp", "np", "numpy", "time", "sys", "os", "math", "F"}
LAZY_BASES = {"torch.Tensor", "torch.nn.Parameter", "torch.nn.parameter.Parameter", "cupy.ndarray", "numpy.ndarray"}
WRITING_MODES = frozenset("wax+")


def check_source(source: str, path: str, task: TaskSpec) -> list[Finding]:
    """What is refused in `source`, in line order; empty for an honest solution. Raises SyntaxError."""
    tree = ast.parse(source, filename=path)
    names = _imported_names(tree)
    found = {
        (line, message): Finding(kind="guard", message=message, file=path, line=line)
        for line, message in _violations(tree, names, task)
    }
    return [found[key] for key in sorted(found)]


def _violations(tree: ast.Module, names: dict[str, str], task: TaskSpec) -> Iterator[tuple[int, str]]:
    for node in ast.walk(tree):
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            yield from _imports(node, task)
        elif isinstance(node, ast.Call):
            yield from _calls(node, names)
        elif isinstance(node, ast.Attribute):
            yield from _attributes(node, names)
        elif isinstance(node, ast.Name) and node.id in FORBIDDEN_NAMES:
            yield node.lineno, f"{node.id} {FORBIDDEN_NAMES[node.id]}"
        elif isinstance(node, (ast.Assign, ast.AugAssign, ast.Delete)):
            yield from _patches(node, names)
        elif isinstance(node, ast.ClassDef):
            yield from _inheritance(node, names)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield from _reference_file(node, task)


def _imported_names(tree: ast.Module) -> dict[str, str]:
    """Local name -> what it was imported as, e.g. `run_it` -> `os.system` for `from os import system as run_it`."""
    names: dict[str, str] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                names[alias.asname or alias.name.split(".")[0]] = alias.name if alias.asname else alias.name.split(".")[0]
        elif isinstance(node, ast.ImportFrom) and node.module:
            for alias in node.names:
                names[alias.asname or alias.name] = f"{node.module}.{alias.name}"
    return names


def _imports(node: ast.Import | ast.ImportFrom, task: TaskSpec) -> Iterator[tuple[int, str]]:
    if isinstance(node, ast.ImportFrom) and node.level:
        yield node.lineno, "relative import: a solution is one self-contained module"
        return
    modules = [node.module or ""] if isinstance(node, ast.ImportFrom) else [alias.name for alias in node.names]
    for module in modules:
        refused = _forbidden_import(module)
        if refused:
            yield node.lineno, f"import of {module}: it {FORBIDDEN_IMPORTS[refused]}"
        elif module.split(".")[0] == Path(task.path).stem:
            yield node.lineno, f"import of {module}: this is the task's own file with the reference"
    if isinstance(node, ast.ImportFrom):
        for alias in node.names:
            full = f"{node.module}.{alias.name}"
            reason = _reason(full)
            if reason:
                yield node.lineno, f"{full} {reason}"
            elif full in FORBIDDEN_IMPORTS:
                yield node.lineno, f"import of {full}: it {FORBIDDEN_IMPORTS[full]}"


def _forbidden_import(module: str) -> str:
    """The entry of FORBIDDEN_IMPORTS that `module` is, or is below; "" for none."""
    parts = module.split(".")
    return next((name for end in range(1, len(parts) + 1) if (name := ".".join(parts[:end])) in FORBIDDEN_IMPORTS), "")


def _calls(node: ast.Call, names: dict[str, str]) -> Iterator[tuple[int, str]]:
    name = _dotted(node.func, names)
    reason = _reason(name)
    if reason:
        yield node.lineno, f"{name} {reason}"
    if name in ("setattr", "delattr") and node.args and _patch_target(node.args[0], names):
        yield node.lineno, f"{name} on {_dotted(node.args[0], names)} changes a library that the evaluator uses"
    if name in ("open", "io.open", "os.open") and _writes(node):
        yield node.lineno, "open for writing: a solution has no business with files"
    if name.endswith((".write_text", ".write_bytes")):
        yield node.lineno, f"{name.rsplit('.', 1)[1]}: a solution has no business with files"


def _attributes(node: ast.Attribute, names: dict[str, str]) -> Iterator[tuple[int, str]]:
    if node.attr in FRAME_ATTRIBUTES:
        yield node.lineno, f".{node.attr} reaches into other code's state"
    name = _dotted(node, names)
    if name in FORBIDDEN_ATTRIBUTES:
        yield node.lineno, f"{name} {FORBIDDEN_ATTRIBUTES[name]}"
    elif _reason(name):
        yield node.lineno, f"{name} {_reason(name)}"


def _patches(node: ast.Assign | ast.AugAssign | ast.Delete, names: dict[str, str]) -> Iterator[tuple[int, str]]:
    """`torch.cuda.synchronize = ...` and the like; settings below `torch.backends` follow the task (see
    solutions.load_solution)."""
    targets = [node.target] if isinstance(node, ast.AugAssign) else node.targets
    for target in targets:
        if isinstance(target, ast.Attribute) and target.attr == "__class__":
            yield node.lineno, "assignment to __class__ turns an object into another"
        elif isinstance(target, ast.Attribute) and _patch_target(target.value, names):
            name = _dotted(target, names)
            setting = name.startswith("torch.backends.")
            does = LIBRARY_SETTING if setting else "changes a library that the evaluator uses"
            yield node.lineno, f"assignment to {name} {does}"


def _patch_target(node: ast.expr, names: dict[str, str]) -> bool:
    root: ast.expr = node
    while isinstance(root, ast.Attribute):
        root = root.value
    if not isinstance(root, ast.Name) or root.id not in names:
        return False
    return names[root.id].split(".")[0] in PATCHABLE or root.id in PATCHABLE


def _inheritance(node: ast.ClassDef, names: dict[str, str]) -> Iterator[tuple[int, str]]:
    for name in (_dotted(base, names) for base in node.bases):
        if name.split(".")[-1] == "Model":
            yield node.lineno, f"class {node.name} inherits the reference class Model"
        elif name in LAZY_BASES:
            yield node.lineno, f"class {node.name} inherits {name}: outputs must be plain arrays that are computed"


def _reference_file(node: ast.Constant, task: TaskSpec) -> Iterator[tuple[int, str]]:
    reference = Path(task.path).name
    if isinstance(node.value, str) and (node.value == reference or node.value.endswith(f"/{reference}")):
        yield node.lineno, f"names the task's file {reference}"


def _reason(name: str) -> str:
    if name in FORBIDDEN_CALLS:
        return FORBIDDEN_CALLS[name]
    return "starts other programs" if name.startswith(STARTS_PROGRAMS) else ""


def _dotted(node: ast.expr, names: dict[str, str]) -> str:
    """`cp.cuda.Stream` -> `cupy.cuda.Stream`; "" for what is no chain of names."""
    if isinstance(node, ast.Name):
        return names.get(node.id, node.id)
    if isinstance(node, ast.Attribute):
        inner = _dotted(node.value, names)
        return f"{inner}.{node.attr}" if inner else f".{node.attr}"
    return ""


def _writes(node: ast.Call) -> bool:
    mode = node.args[1] if len(node.args) > 1 else next((k.value for k in node.keywords if k.arg == "mode"), None)
    if mode is None:
        return False
    return not isinstance(mode, ast.Constant) or not isinstance(mode.value, str) or bool(WRITING_MODES & set(mode.value))

"""`cupy.RawModule`, `cupy.RawKernel` and the functions they give: compiled with NVRTC, run by the simulator."""

from __future__ import annotations

import operator
import time
from collections.abc import Sequence
from functools import cached_property, lru_cache
from typing import Any, NoReturn

from evaluator.compile import Compiled, CompileError, GuardError, compile_cuda
from evaluator.origins import with_origin
from evaluator.resources import kernel_resources, launch_name
from evaluator.simulator import interpreter
from evaluator.simulator.standin.launching import Launch, launch
from evaluator.simulator.standin.limits import (
    DEFAULT_SHARED_BYTES,
    Extent,
    LaunchShape,
    cluster_extent,
    launch_bound,
    refusal,
)
from evaluator.simulator.standin.memory import HostMemory, MemoryPointer
from evaluator.simulator.standin.packing import pack
from evaluator.simulator.standin.session import SimulatedError
from evaluator.simulator.standin.signature import Signature, signature_of, signatures
from evaluator.simulator.standin.state import registry, session
from evaluator.types import Finding, KernelResources


class CompileException(Exception):
    """As `cupy.cuda.compiler.CompileException`: `str()` is NVRTC's log."""

    def __init__(self, msg: str, source: str, name: str, options: Sequence[str], backend: str = "nvrtc") -> None:
        super().__init__(msg)
        self._msg, self.source, self.name, self.options, self.backend = msg, source, name, tuple(options), backend

    def get_message(self) -> str:
        """NVRTC's log."""
        return self._msg

    def dump(self, f: Any) -> None:
        """Writes the numbered source and the log to a stream."""
        numbered = "\n".join(f"{n:>4} {line}" for n, line in enumerate(self.source.split("\n"), 1))
        f.write(f"{self.backend} compilation error: {self._msg}\n{numbered}\noptions: {self.options}\n")


class Function:
    """A loaded kernel. Attributes as CuPy names them; bytes and registers."""

    def __init__(self, module: RawModule, symbol: str) -> None:
        self._module, self._symbol = module, symbol
        self.name = launch_name(module.compiled, symbol)
        self._resources = module.resources[self.name]
        self._permitted = DEFAULT_SHARED_BYTES - self._resources.static_shared_bytes
        self.preferred_shared_memory_carveout = -1

    num_regs = property(lambda self: self._resources.registers)
    shared_size_bytes = property(lambda self: self._resources.static_shared_bytes)
    local_size_bytes = property(lambda self: self._resources.stack_bytes)
    const_size_bytes = property(lambda self: 0)
    cache_mode_ca = property(lambda self: 0)
    binary_version = property(lambda self: int(self._module.compiled.arch.removeprefix("sm_").rstrip("af")))
    ptx_version = binary_version

    @property
    def max_threads_per_block(self) -> int:
        """The largest block that registers and `__launch_bounds__` permit, in whole warps."""
        shapes = (LaunchShape((1, 1, 1), (n, 1, 1), 0, 0) for n in range(1024, 0, -32))
        device = session().device
        return next((s.threads for s in shapes if not refusal(s, self._resources, self._bound, device)), 0)

    @property
    def max_dynamic_shared_size_bytes(self) -> int:
        """Dynamic shared memory a launch may ask for, in bytes; raise it above 48 KiB before such a launch."""
        return self._permitted

    @max_dynamic_shared_size_bytes.setter
    def max_dynamic_shared_size_bytes(self, value: int) -> None:
        limit = session().device.shared_bytes_per_block - self._resources.static_shared_bytes
        if not 0 <= value <= limit:
            session().report_call("launch_limit", f"max_dynamic_shared_size_bytes={value} exceeds {limit}, which "
                                  f"{session().device.name} permits beside {self._resources.static_shared_bytes} static bytes",
                                  kernel=self.name)
        self._permitted = operator.index(value)

    @property
    def attributes(self) -> dict[str, int]:
        """All attributes by name."""
        names = ("max_threads_per_block", "shared_size_bytes", "const_size_bytes", "local_size_bytes", "num_regs",
                 "ptx_version", "binary_version", "cache_mode_ca", "max_dynamic_shared_size_bytes",
                 "preferred_shared_memory_carveout")
        return {name: getattr(self, name) for name in names}

    @cached_property
    def _parameters(self) -> tuple[tuple[interpreter.Parameter, ...], Signature | None]:
        slots = tuple(self._module.loaded.parameters(self._symbol))
        return slots, signature_of(self._module.code, self._symbol, self._module.compiled.lowered, len(slots))

    @cached_property
    def _bound(self) -> int | None:
        return launch_bound(self._module.compiled.ptx, self._symbol)

    def __call__(
        self, grid: tuple[int, ...], block: tuple[int, ...], args: Sequence[Any], shared_mem: int = 0, stream: Any = None,
        enable_cooperative_groups: bool = False,
    ) -> None:
        """Launches; the work is done when this returns. Raises SimulatedError with the finding."""
        cooperative = enable_cooperative_groups or self._module.enable_cooperative_groups
        shape = LaunchShape(_extent("grid", grid), _extent("block", block), operator.index(shared_mem), self._permitted,
                            cluster_extent(self._module.compiled.ptx, self._symbol), cooperative)
        why = refusal(shape, self._resources, self._bound, session().device)
        if why:
            session().report_call("launch_limit", why, kernel=self.name)
        slots, signature = self._parameters
        packed = pack(self.name, args, slots, signature)
        launch(Launch(self._module.loaded, self._symbol, self.name, self._resources, shape, packed,
                      self._module.code, slots, signature))


class RawModule:
    """CUDA source with several kernels. Only `code=` and the NVRTC backend exist here."""

    def __init__(
        self, *, code: str | None = None, path: str | None = None, options: tuple[str, ...] = (), backend: str = "nvrtc",
        translate_cucomplex: bool = False, enable_cooperative_groups: bool = False,
        name_expressions: Sequence[str] | None = None, jitify: bool = False,
    ) -> None:
        if code is None:
            raise NotImplementedError("the simulator compiles source text: pass code=..., not path=")
        if not isinstance(options, tuple):
            raise TypeError(f"Argument 'options' has incorrect type (expected tuple, got {type(options).__name__})")
        if backend != "nvrtc" or jitify or translate_cucomplex:
            raise NotImplementedError("the simulator compiles with plain NVRTC: leave out backend, jitify, translate_cucomplex")
        self.code, self.options, self.backend = code, options, backend
        self.enable_cooperative_groups = enable_cooperative_groups
        self.name_expressions = tuple(name_expressions or ())
        self._functions: dict[str, Function] = {}

    @cached_property
    def compiled(self) -> Compiled:
        """NVRTC's result. Raises CompileException; a refused include or option is also reported as a guard finding."""
        started = time.perf_counter()
        arch = session().device.arch
        try:
            compiled = _compile(self.code, self.options, self.name_expressions, arch)
        except CompileError as error:
            session().compile_log = error.log
            if isinstance(error, GuardError):
                finding = Finding(kind="guard", message=error.log.strip(), line=error.line)
                session().report(with_origin(finding, self.code, session().solution_file))
            raise CompileException(error.log, self.code, "kernel.cu", self.options) from None
        finally:
            session().compile_seconds += time.perf_counter() - started
        session().compile_log = compiled.log
        session().compiled.append(compiled)
        return compiled

    @cached_property
    def resources(self) -> dict[str, KernelResources]:
        """Launch name -> resources as ptxas reports them (no instruction listing: a launch does not need it)."""
        found = {kernel.kernel: kernel for kernel in kernel_resources(self.compiled, sass=False)}
        session().resources.update(found)
        return found

    @cached_property
    def loaded(self) -> interpreter.Module:
        """The parsed PTX. Raises SimulatedError where it holds something the simulator does not execute."""
        try:
            return interpreter.Module(self.compiled.ptx)
        except interpreter.Unsupported as refused:
            finding = with_origin(Finding(kind="unsupported", message=refused.message, line=refused.line), self.code,
                                  session().solution_file)
            session().report(finding)
            raise SimulatedError(finding) from None

    def compile(self, log_stream: Any = None) -> None:
        """Compiles now; the log goes to `log_stream`."""
        if log_stream is not None:
            log_stream.write(self.compiled.log)
        self.resources  # noqa: B018 - the point is to have them measured

    def get_function(self, name: str) -> Function:
        """The kernel by symbol or name expression. Raises SimulatedError naming the kernels there are."""
        symbol = self.compiled.lowered.get(name, name)
        if symbol not in {_symbol(self.compiled, known) for known in self.resources}:
            _not_found(self, name)
        if symbol not in self._functions:
            self._functions[symbol] = Function(self, symbol)
        return self._functions[symbol]

    def get_global(self, name: str) -> MemoryPointer:
        """The address of a `__device__` or `__constant__` variable."""
        symbol = self.compiled.lowered.get(name, name)
        try:
            address, nbytes = self.loaded.global_address(symbol)
        except KeyError:
            _not_found(self, name)
        registry.enter_global(address, nbytes, name)
        return MemoryPointer(HostMemory(address, nbytes, self.loaded))


class RawKernel:
    """One kernel by its symbol, as `cupy.RawKernel(code, name)`; the Function's attributes are its own."""

    def __init__(
        self, code: str, name: str, options: tuple[str, ...] = (), backend: str = "nvrtc", *, translate_cucomplex: bool = False,
        enable_cooperative_groups: bool = False, jitify: bool = False,
    ) -> None:
        self.name, self.code, self.options, self.backend = name, code, options, backend
        self._module = RawModule(code=code, options=options, backend=backend, translate_cucomplex=translate_cucomplex,
                                 enable_cooperative_groups=enable_cooperative_groups, jitify=jitify)

    @property
    def kernel(self) -> Function:
        """The loaded function."""
        return self._module.get_function(self.name)

    def compile(self, log_stream: Any = None) -> None:
        """Compiles now."""
        self._module.compile(log_stream)

    def __call__(self, grid: tuple[int, ...], block: tuple[int, ...], args: Sequence[Any], **kwargs: Any) -> None:
        """Launches, as Function does."""
        self.kernel(grid, block, args, **kwargs)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        return getattr(self.kernel, name)

    def __setattr__(self, name: str, value: Any) -> None:
        if name in ("max_dynamic_shared_size_bytes", "preferred_shared_memory_carveout"):
            setattr(self.kernel, name, value)
        else:
            super().__setattr__(name, value)


@lru_cache(maxsize=64)
def _compile(code: str, options: tuple[str, ...], names: tuple[str, ...], arch: str) -> Compiled:
    return compile_cuda(code, arch=arch, options=options, name_expressions=names)


def _symbol(compiled: Compiled, name: str) -> str:
    return compiled.lowered.get(name, name)


def _extent(what: str, value: Any) -> Extent:
    """Three extents from a tuple of one to three; below one counts as one, as in CuPy."""
    if not isinstance(value, tuple):
        raise TypeError(f"Argument '{what}' has incorrect type (expected tuple, got {type(value).__name__})")
    if not 1 <= len(value) <= 3:
        raise ValueError(f"{what} must have one to three extents, not {len(value)}")
    x, y, z = (*(max(1, operator.index(n)) for n in value), 1, 1)[:3]
    return x, y, z


def _not_found(module: RawModule, name: str) -> NoReturn:
    written = {signature.name: signature for signature in signatures(module.code)}
    plain = name.partition("<")[0].strip()
    message = f"no kernel {name!r} in the module; it has {', '.join(sorted(module.resources)) or 'none'}"
    if plain in written and (written[plain].template or "<" in name):
        message += f". Templates need RawModule(name_expressions=[{name!r}], ...)"
    elif plain in written:
        message += '. Declare it extern "C", or use RawModule(name_expressions=...): C++ mangles its name'
    session().report_call("argument_mismatch", message)
    raise AssertionError("an error finding raises")

"""Runs a model's `forward` on stand-ins for tensors that note what is computed, and gives the program.

Every torch function that gets a stand-in calls back here (the `__torch_function__` protocol), so modules, control flow over
shapes and plain Python run as they are. Runs the task's own code: only in the confined process (kernelskill/writers/proof.py).
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest.mock import patch

import torch
from torch.overrides import TorchFunctionMode

from evaluator.kernelbench_module import load_module
from evaluator.library import is_allowed
from kernelskill.errors import KernelSkillError, Location, WriterError
from kernelskill.writers.base import BEYOND
from kernelskill.writers.program.ir import Array, Program, Stage, fused
from kernelskill.writers.program.losses import LOSSES
from kernelskill.writers.program.normalising import Statistics, batch_norm, instance_norm
from kernelskill.writers.program.operators import OPERATORS
from kernelskill.writers.program.reductions import group_norm
from kernelskill.writers.program.sizes import Dim, text_of
from kernelskill.writers.program.values import Builder, Value, combine, given
from kernelskill.writers.template.host import safe_name

DTYPES = {torch.float32: "float", torch.bool: "bool", torch.int64: "long long"}
KNOWN: dict[str, Callable[..., Any]] = {**OPERATORS, **LOSSES}
BINARY = ("add", "sub", "mul", "truediv", "pow", "matmul", "lt", "le", "gt", "ge", "eq", "ne")


class Traced:
    """Stands for a tensor while `forward` runs."""

    def __init__(self, value: Value, tracer: Tracer) -> None:
        self.value, self.tracer = value, tracer

    @classmethod
    def __torch_function__(cls, function: Any, types: Any, arguments: Any = (), keywords: Any = None) -> Any:
        tracer = next(t.tracer for t in _traced([*arguments, *(keywords or {}).values()]))
        return tracer.call(getattr(function, "__name__", str(function)), arguments, keywords or {})

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return lambda *rest, **keywords: self.tracer.call(name, (self, *rest), keywords)

    def __getitem__(self, index: Any) -> Any:
        return self.tracer.call("getitem", (self, index), {})

    def __neg__(self) -> Any:
        return self.tracer.call("neg", (self,), {})

    def __len__(self) -> int:
        return int(self.value.dims[0])

    def __bool__(self) -> bool:
        raise WriterError("forward decides by the values of a tensor")

    __hash__ = object.__hash__

    @property
    def shape(self) -> tuple[int, ...]:
        """Its extents, which remember where they come from."""
        return self.value.dims

    @property
    def T(self) -> Any:
        """The transpose."""
        return self.tracer.call("t", (self,), {})

    dtype, is_cuda, requires_grad, is_nested = torch.float32, False, False, False

    @property
    def device(self) -> torch.device:
        """Where the model's tensors are."""
        return self.tracer.device

    @property
    def ndim(self) -> int:
        """How many axes it has."""
        return len(self.value.dims)


def _dunder(name: str, swapped: bool) -> Callable[[Traced, Any], Any]:
    def method(self: Traced, other: Any) -> Any:
        return self.tracer.call(name, (other, self) if swapped else (self, other), {})
    return method


for _name in BINARY:
    setattr(Traced, f"__{_name}__", _dunder(_name, False))
    setattr(Traced, f"__r{_name}__", _dunder(_name, True))
    setattr(Traced, f"__i{_name}__", _dunder(_name, False))


def _traced(values: Any) -> list[Traced]:
    found: list[Traced] = []
    for value in values:
        if isinstance(value, Traced):
            found.append(value)
        elif isinstance(value, (tuple, list)):
            found += _traced(value)
    return found


class Following(TorchFunctionMode):  # type: ignore[misc]  # torch leaves it untyped
    """Routes torch calls on the model's own parameters and buffers to the tracer, too."""

    def __init__(self, tracer: Tracer) -> None:
        super().__init__()
        self.tracer = tracer

    def __torch_function__(self, function: Any, types: Any, arguments: Any = (), keywords: Any = None) -> Any:
        keywords, name = keywords or {}, getattr(function, "__name__", "").strip("_")
        own = any(isinstance(a, torch.Tensor) and id(a) in self.tracer.paths for a in arguments)
        if name == "get" and own:
            name = {"T": "t", "mT": "t", "shape": "size"}.get(function.__self__.__name__, "")
        if name == "tensor":
            keywords.pop("device", None)
        if _traced([*arguments, *keywords.values()]) or (own and self.tracer.knows(name)):
            return self.tracer.call(name, arguments, keywords)
        return function(*arguments, **keywords)


class Tracer:
    """One run of a model's forward."""

    def __init__(self, model: Any, allowed: tuple[str, ...]) -> None:
        self.model, self.allowed, self.builder = model, allowed, Builder()
        named = [*model.named_parameters(), *model.named_buffers()]
        self.paths = {id(tensor): (path, kind) for path, tensor in named
                      for kind in ["parameter" if isinstance(tensor, torch.nn.Parameter) else "buffer"]}
        self.device = next((tensor.device for _, tensor in named), torch.device("cpu"))
        self.arguments: list[Array] = []
        self.stored: dict[str, tuple[Array, Value]] = {}
        self.counters: dict[str, None] = {}
        self.library: dict[str, str] = {}

    def argument(self, name: str, value: Any) -> Any:
        """What `forward` gets for an argument."""
        name = _safe(name)
        if isinstance(value, torch.Tensor):
            if value.dtype not in DTYPES:
                raise WriterError(f"an argument of {value.dtype} is not known: the templates take float32, int64 and bool")
            self.arguments.append(Array(name, DTYPES[value.dtype]))
            return Traced(given(self.builder, self.arguments[-1], value.shape), self)
        if isinstance(value, float):
            self.arguments.append(Array(name, "scalar"))
            return Traced(given(self.builder, self.arguments[-1], ()), self)
        raise WriterError(f"the argument '{name}' is a {type(value).__name__}; the templates take tensors and floats")

    def root(self, value: Any) -> Any:
        """math.sqrt, of a size too: what is computed from a size must not become a number."""
        if not isinstance(value, Dim):
            return float(value) ** 0.5
        size = Value(self.builder, (), lambda coords: self.builder.position(f"1.0 * {text_of(value)}"), computed=True)
        return Traced(combine(self.builder, "sqrt", size), self)

    def knows(self, name: str) -> bool:
        """Whether there is a step of that name."""
        return name in KNOWN

    def call(self, name: str, arguments: Any, keywords: Any) -> Any:
        """A torch function on stand-ins. Raises WriterError when it is not known, or not in this form."""
        name = name.strip("_")
        kept = self._kept(name, arguments, keywords)
        if kept is not None:
            return kept
        own: dict[str, Callable[..., Any]] = {
            "batch_norm": self._batch_norm, "instance_norm": self._instance_norm, "group_norm": self._group_norm}
        step = own.get(name) or KNOWN.get(name)
        if step is None:
            raise WriterError(f"the operation '{name}' is not known")
        named = {{"axis": "dim"}.get(k, k): self._in(v) for k, v in keywords.items() if k not in ("out", "inplace")}
        first = [named.pop(k) for k in ("input", "self", "tensor", "tensors") if k in named]
        second = [named.pop("other")] if "other" in named else []
        values = [*first, *(self._in(a) for a in arguments), *second]
        try:
            return self._out(step(*values, **{k: v for k, v in named.items() if v is not None or k in ("dim", "bias")}))
        except KernelSkillError:
            raise
        except (TypeError, AttributeError, IndexError, ValueError) as error:
            raise WriterError(f"the operation '{name}' is not known in this form: {error}") from error

    def _kept(self, name: str, arguments: Any, keywords: Any) -> Any:
        """A permitted library call on an array and parameters of one module stays torch's; None where it does not."""
        operator_name = {"linear": "linear", "matmul": "matmul"}.get(name, name)
        if not (name.startswith("conv") or name in ("linear", "bmm")) or not is_allowed(operator_name, self.allowed):
            return None
        weight = keywords.get("weight", arguments[1] if len(arguments) > 1 else None)
        path = self.paths.get(id(weight), ("", ""))[0].rpartition(".")[0]
        if not path or not isinstance(self.model.get_submodule(path), (torch.nn.Linear, torch.nn.modules.conv._ConvNd)):
            return None
        x = self._in(arguments[0]).kept()
        product = KNOWN[name](x, *(self._in(a) for a in arguments[1:]), **{k: self._in(v) for k, v in keywords.items()})
        return self._as_library(product, x.array, path, name)

    def _as_library(self, value: Value, operand: str, path: str, name: str) -> Traced:
        """The value just built (a product and its bias) as one torch call; its shape is what was found for it."""
        shape = value.dims
        self.builder.stages.pop()
        result = self.builder.result()
        self.library[result] = name
        stage = Stage("library", result, statement=f'self.get_submodule("{path}")({operand})', operands=(operand,))
        return Traced(self.builder.add(stage, shape), self)

    def _in(self, value: Any) -> Any:
        """An argument as a value: stand-ins, parameters, constants, and lists of them."""
        if isinstance(value, Traced):
            return value.value
        if isinstance(value, torch.Tensor):
            return self._tensor(value)
        if isinstance(value, torch.Size):
            return tuple(value)
        return type(value)(self._in(v) for v in value) if type(value) in (tuple, list) else value

    def _tensor(self, tensor: torch.Tensor) -> Any:
        path, kind = self.paths.get(id(tensor), ("", ""))
        if not path and tensor.numel() == 1 and tensor.device.type != "meta":
            return float(tensor.item())
        if not path:
            raise WriterError("a tensor that is neither an argument nor a parameter or buffer of the model is not known")
        if path not in self.stored:
            name = _safe(path.replace(".", "_"))
            taken = {a.name for a in self.arguments} | {a.name for a, _ in self.stored.values()}
            name = f"{name}_of_model" if name in taken else name
            array = Array(name, DTYPES.get(tensor.dtype, ""), f'{name} = self.get_{kind}("{path}")')
            if not array.dtype:
                raise WriterError(f"the {kind} '{path}' of {tensor.dtype} is not known")
            self.stored[path] = (array, given(self.builder, array, tensor.shape))
        return self.stored[path][1]

    def _out(self, value: Any) -> Any:
        if isinstance(value, Value):
            return Traced(value, self)
        if isinstance(value, tuple) and not isinstance(value, torch.Size) and any(isinstance(v, Value) for v in value):
            wrapped = [self._out(v) for v in value]
            return _Pair(wrapped) if hasattr(value, "values") else tuple(wrapped)
        return value

    def _group_norm(self, x: Value, groups: int, weight: Any = None, bias: Any = None, eps: float = 1e-5) -> Value:
        """The number of groups is read off the module that holds the weight, as it may be one of the task's sizes."""
        owner = next((path.rpartition(".")[0] for path, (_, v) in self.stored.items() if v is weight), "")
        if owner and getattr(self.model.get_submodule(owner), "num_groups", None) == groups:
            groups = self.builder.sizes.named(f'self.get_submodule("{owner}").num_groups', groups)
        return group_norm(x, groups, weight, bias, eps)

    def _batch_norm(self, x: Value, running_mean: Any = None, running_var: Any = None, weight: Any = None, bias: Any = None,
                    training: bool = False, momentum: float | None = 0.1, eps: float = 1e-5) -> Value:
        if training and running_mean is not None:
            path = next(path for path, (_, v) in self.stored.items() if v is running_mean)
            self.counters[path.rpartition(".")[0]] = None
        return batch_norm(x, Statistics(running_mean, running_var, momentum), weight, bias, training, eps)

    def _instance_norm(self, x: Value, running_mean: Any = None, running_var: Any = None, weight: Any = None, bias: Any = None,
                       use_input_stats: bool = True, momentum: float = 0.1, eps: float = 1e-5) -> Value:
        if running_mean is not None or not use_input_stats:
            raise WriterError("instance norm with running statistics is not known")
        return instance_norm(x, weight, bias, eps)

    def program(self, output: Any) -> Program:
        """The finished program. Raises WriterError where forward returns something other than one tensor."""
        if not isinstance(output, Traced):
            raise WriterError("Model.forward returns something other than one computed tensor")
        value = output.value
        kept = value.kept()
        if not any(stage.result == kept.array for stage in self.builder.stages):
            kept = Value(self.builder, value.dims, value.element, computed=True).kept()
        stages = fused(self.builder.stages)
        return Program(
            tuple(self.arguments), tuple(array for array, _ in self.stored.values()), tuple(self.builder.sizes.found),
            tuple(_needed(stages, kept.array)), kept.array, tuple(text_of(d) for d in value.dims), tuple(self.library.items()),
            tuple(f'self.get_submodule("{path}")' for path in self.counters),
        )


class _Pair(list[Any]):
    """Values and indices, of which a model may take either."""

    @property
    def values(self) -> Any:
        """The extreme elements."""
        return self[0]


def _needed(stages: list[Stage], output: str) -> list[Stage]:
    """Stages from which the output, or an array that is updated in place, is reached."""
    wanted = {output}
    kept = []
    for stage in reversed(stages):
        if stage.result in wanted or stage.given:
            kept.append(stage)
            wanted |= stage.reads()
    return kept[::-1]


def _safe(name: str) -> str:
    """Names that the generated code uses itself (stages t0, sizes S0, axes i0 and r0, values v0) get a suffix."""
    name = safe_name(name)
    return f"{name}_in" if name[0] in "tSirv" and name[1:].isdigit() else name


def trace_program(path: Path, allowed: tuple[str, ...]) -> Program:
    """The file's model at its full sizes, on tensors that hold no data where that works. Raises WriterError."""
    try:
        with torch.device("meta"):
            module = load_module(path)
            model, inputs = module.Model(*module.get_init_inputs()), module.get_inputs()
    except (NotImplementedError, RuntimeError):  # a constructor that needs numbers
        module = load_module(path)
        model, inputs = module.Model(*module.get_init_inputs()), module.get_inputs()
    return traced_program(model, inputs, path, allowed)


def traced_program(model: Any, inputs: list[Any], path: Path, allowed: tuple[str, ...]) -> Program:
    """The program of a model. Raises WriterError with the operation that is not known."""
    tracer = Tracer(model, allowed)
    try:
        names = list(inspect.signature(model.forward).parameters)
        arguments = [tracer.argument(name, value) for name, value in zip(names, inputs, strict=False)]
        with torch.no_grad(), Following(tracer), patch.object(math, "sqrt", tracer.root):
            output = model(*arguments)
        return tracer.program(output)
    except WriterError as error:
        raise WriterError(error.message, location=Location(path), hint=BEYOND) from error
    except (TypeError, AttributeError, RuntimeError, NotImplementedError) as error:
        raise WriterError(f"Model.forward cannot be followed: {type(error).__name__}: {error}", location=Location(path),
                          hint=BEYOND) from error


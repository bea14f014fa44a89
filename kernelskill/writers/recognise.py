"""Recognises a KernelBench `Model` that one of the template families covers, and proves it on small inputs."""

from __future__ import annotations

import importlib.util
import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from evaluator.kernelbench_module import load_module
from kernelskill.errors import Location, WriterError
from kernelskill.model import Task
from kernelskill.writers.base import BEYOND
from kernelskill.writers.constructor import torch_module
from kernelskill.writers.program.recognised import recognised_program
from kernelskill.writers.template import expression as ex
from kernelskill.writers.template.elementwise import make_problem
from kernelskill.writers.template.host import safe_name
from kernelskill.writers.template.matmul import MatmulProblem
from kernelskill.writers.template.module import TorchModule
from kernelskill.writers.template.names import kernel_name
from kernelskill.writers.template.row_reduction import RowReductionProblem
from kernelskill.writers.torch_terms import Leaf, Product, RowOperation, Term, of_leaf


@dataclass(frozen=True)
class Recognised:
    """A KernelBench model in the words of a family."""

    family: str
    """The family that rules and cards know: of a program, its heaviest stage's."""
    problem: Any
    operation: str
    arguments: dict[str, Any]
    """As a task file declares them, sizes as numbers at the full problem."""
    template: str = ""
    """Which templates write it."""
    flops: str = ""


def recognise(task: Task) -> Recognised:
    """The family of a KernelBench task. Raises WriterError naming the first operation that is not known."""
    from kernelskill.writers.proof import traced

    if importlib.util.find_spec("torch") is None:
        raise WriterError("KernelBench tasks need torch to be recognised", hint="pip install 'kernelskill[torch]'")
    found = traced(task)
    if found.program is not None:
        return recognised_program(task, found.program)
    assert found.term is not None
    family, problem = problem_of(task, found.term, found.arguments)
    return Recognised(family, problem, *_declaration(found.term), family)


def problem_of(task: Task, term: Term, arguments: tuple[Leaf, ...]) -> tuple[str, Any]:
    """Family and problem of a term. Raises WriterError where no family takes it."""
    bindings = tuple(leaf.binding for leaf in _leaves(term) if leaf.binding)
    return _problem(task, term, torch_module(Path(task.spec.path), tuple(leaf.name for leaf in arguments), bindings))


def trace(path: Path) -> tuple[Term, tuple[Leaf, ...]]:
    """Runs the file on meta tensors, which hold no data: the value of `forward` and the leaves of its arguments."""
    import torch

    with torch.device("meta"):
        module = load_module(path)
        model, inputs = module.Model(*module.get_init_inputs()), module.get_inputs()
    return _trace(model, inputs, path)


def _declaration(term: Term) -> tuple[str, dict[str, Any]]:
    """Operation and arguments, as a native task would declare them."""
    root = term.root
    if isinstance(root, RowOperation):
        shape = root.input.shape
        cols = math.prod(shape[-root.axes:])
        return root.operation, {"input": root.input.name, "rows": math.prod(shape) // cols, "cols": cols}
    if isinstance(root, Product):
        k, n = root.b.shape[::-1] if root.b_transposed else root.b.shape
        return "matmul", {"a": root.a.name, "b": root.b.name, "m": math.prod(root.a.shape) // k, "n": n, "k": k}
    return ex.cuda(term.expression, fast=False), {}


def _trace(model: Any, inputs: list[Any], path: Path) -> tuple[Term, tuple[Leaf, ...]]:
    """The value of `forward` and the leaves of its arguments."""
    from torch import fx

    try:
        graph = fx.symbolic_trace(model).graph
    except Exception as error:
        raise WriterError(f"torch.fx cannot trace Model.forward: {error}", location=Location(path), hint=BEYOND) from error
    if any(not hasattr(x, "shape") for x in inputs):
        raise WriterError("an argument that is no tensor is not known", location=Location(path), hint=BEYOND)
    walker = _Walker(model, [tuple(x.shape) for x in inputs])
    for node in graph.nodes:
        try:
            walker.step(node)
        except WriterError as error:
            message = f"node '{node.name}' of Model.forward: {error.message}"
            raise WriterError(message, location=Location(path), hint=BEYOND) from error
    if not isinstance(walker.output, Term):
        raise WriterError("Model.forward returns something other than one tensor", location=Location(path), hint=BEYOND)
    return walker.output, tuple(walker.arguments)


class _Walker:
    """Follows the nodes of an fx graph, each as a term."""

    def __init__(self, model: Any, shapes: list[tuple[int, ...]]) -> None:
        self.model, self.shapes = model, shapes
        self.values: dict[Any, Any] = {}
        self.arguments: list[Leaf] = []
        self.output: Any = None

    def step(self, node: Any) -> None:
        """Evaluates one node. Raises WriterError."""
        from kernelskill.writers.torch_ops import apply_function, apply_module

        arguments = self._resolve(node.args)
        if node.op == "placeholder":
            if len(self.arguments) >= len(self.shapes):
                raise WriterError("an argument that get_inputs does not give is not known")
            self.arguments.append(Leaf(safe_name(node.target), self.shapes[len(self.arguments)]))
            self.values[node] = of_leaf(self.arguments[-1])
        elif node.op == "get_attr":
            self.values[node] = self._stored(node.target)
        elif node.op == "call_module":
            module = self.model.get_submodule(node.target)
            self.values[node] = apply_module(module, arguments[0], lambda name: self._stored(f"{node.target}.{name}"))
        elif node.op == "output":
            self.output = arguments[0]
        else:
            self.values[node] = apply_function(node.target, arguments, self._resolve(node.kwargs))

    def _resolve(self, value: Any) -> Any:
        if isinstance(value, tuple):
            return tuple(self._resolve(v) for v in value)
        if isinstance(value, list):
            return [self._resolve(v) for v in value]
        if isinstance(value, Mapping):
            return {k: self._resolve(v) for k, v in value.items()}
        return self.values[value] if type(value).__name__ == "Node" else value

    def _stored(self, path: str) -> Term | None:
        """A parameter or buffer as a leaf; None where the module has none."""
        for getter in ("get_parameter", "get_buffer"):
            try:
                tensor = getattr(self.model, getter)(path)
            except AttributeError:
                continue
            name = safe_name(path.replace(".", "_"), [a.name for a in self.arguments])
            return of_leaf(Leaf(name, tuple(tensor.shape), f'{name} = self.{getter}("{path}")'))
        owner, _, last = path.rpartition(".")
        if getattr(self.model.get_submodule(owner), last, 0) is None:
            return None
        raise WriterError(f"the attribute '{path}' is neither a parameter nor a buffer")


def _leaves(term: Term) -> list[Leaf]:
    """Every leaf that the kernels read, the big operation's first."""
    root = term.root
    first: list[Leaf | None] = []
    if isinstance(root, Product):
        first = [root.a, root.b]
    elif isinstance(root, RowOperation):
        first = [root.input, root.weight, root.bias]
    return list(dict.fromkeys(leaf for leaf in (*first, *term.leaves) if leaf is not None))


def _problem(task: Task, term: Term, torch_module: TorchModule) -> tuple[str, Any]:
    root = term.root
    if isinstance(root, RowOperation):
        return "row_reduction", _row_problem(task, term, root, torch_module)
    if isinstance(root, Product):
        return "matmul", _matmul_problem(task, term, root, torch_module)
    return "elementwise", _elementwise_problem(task, term, torch_module)


def _row_problem(task: Task, term: Term, root: RowOperation, torch_module: TorchModule) -> RowReductionProblem:
    if term.expression != ex.Name("acc"):
        raise WriterError(f"operations after {root.operation} are not known: the row templates end with it", hint=BEYOND)
    if root.operation == "norm":
        raise WriterError("a norm on its own is not known: the templates know x / norm(x)", hint=BEYOND)
    x, per_element = root.input.name, root.operation not in ("sum", "mean", "max", "min")
    cols = 1
    for extent in root.input.shape[-root.axes :]:
        cols *= extent
    shape = f"{x}.shape" if per_element else f"(*{x}.shape[:-1], 1)" if root.keepdim else f"{x}.shape[:-1]"
    return RowReductionProblem(
        kernel_name(task.name), root.operation, cols, x, root.weight.name if root.weight else "",
        root.bias.name if root.bias else "", root.eps, tuple(leaf.name for leaf in _leaves(term)),
        sizes=(f"cols = {' * '.join(f'{x}.shape[-{axis + 1}]' for axis in range(root.axes))}", f"rows = {x}.numel() // cols"),
        output=shape, torch_module=torch_module,
    )


def _matmul_problem(task: Task, term: Term, root: Product, torch_module: TorchModule) -> MatmulProblem:
    a, b = root.a.name, root.b.name
    n = root.b.shape[0 if root.b_transposed else 1]
    m = root.a.shape[1 if root.a_transposed else 0]
    shapes = []
    for leaf in term.leaves:
        kind = {(n,): "n", (1, n): "n", (1,): "1", (): "1", (m, n): "m, n"}.get(leaf.shape)
        if kind is None:
            raise WriterError(f"'{leaf.name}' of shape {list(leaf.shape)} after a matrix product is not known", hint=BEYOND)
        shapes.append((leaf.name, kind))
    if root.linear:
        sizes: tuple[str, ...] = (f"k = {a}.shape[-1]", f"m = {a}.numel() // k", f"n = {b}.shape[0]")
        output = f"(*{a}.shape[:-1], n)"
    else:
        sizes = (f"{'k, m' if root.a_transposed else 'm, k'} = {a}.shape", f"n = {b}.shape[{0 if root.b_transposed else 1}]")
        output = "(m, n)"
    return MatmulProblem(kernel_name(task.name), a, b, root.a_transposed, root.b_transposed, term.expression, tuple(shapes),
                         tuple(leaf.name for leaf in _leaves(term)), sizes, output, torch_module)


def _elementwise_problem(task: Task, term: Term, torch_module: TorchModule) -> Any:
    rank = max((len(leaf.shape) for leaf in term.leaves), default=0)
    if rank == 0:
        raise WriterError("Model.forward computes from no tensor with axes", hint=BEYOND)
    padded = {leaf: (1,) * (rank - len(leaf.shape)) + leaf.shape for leaf in term.leaves}
    extents = [max(shape[axis] for shape in padded.values()) for axis in range(rank)]
    dims = tuple(f"d{axis}" for axis in range(rank))
    operands = {}
    for leaf, shape in padded.items():
        broadcast = [shape[axis] == 1 and (extents[axis] != 1 or bool(leaf.binding)) for axis in range(rank)]
        operands[leaf.name] = tuple("1" if alike else dim for alike, dim in zip(broadcast, dims, strict=True))
    return make_problem(kernel_name(task.name), operands, dims, term.expression, torch_module=torch_module)

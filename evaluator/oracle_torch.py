"""The oracle of KernelBench problems: `Model`, `get_inputs`, `get_init_inputs`, in PyTorch on the CPU.

The model stays in the mode its constructor leaves it in (training mode unless it says otherwise), as KernelBench runs it,
and the solution's model is put into the same. Buffers that the forward pass changes (running statistics) and inputs that it
writes into are outputs like any other. A reference that draws random numbers when it is called is refused.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import nullcontext
from typing import Any

import numpy as np
import torch

from evaluator.kernelbench_module import UnknownConstant, load_module
from evaluator.lint.cost import Cost, NotCounted, counted
from evaluator.oracle import Oracle, Perturbation, Problem, TaskFault, describe_failure, perturbed
from evaluator.shapes import ENOUGH, MEDIUM_PROBLEM, SMALL_PROBLEM, Sizes, nonsense, searched
from evaluator.solutions import MODEL_SEED
from evaluator.tiles_torch import tiling_mode
from evaluator.torch_leaves import as_leaf, as_tensor
from evaluator.trees import Leaf, leaves, map_leaves, round_to
from evaluator.types import TaskSpec

SAME = 1e-3
"""Two calls that differ by more, relative to the largest output, draw random numbers."""


class KernelBenchOracle(Oracle):
    """A KernelBench problem file, its sizes set through module-level constants."""

    def __init__(self, spec: TaskSpec) -> None:
        super().__init__(spec)
        self._modules: dict[tuple[tuple[str, int], ...], Any] = {}
        self._costs: dict[tuple[tuple[str, int], ...], Cost | str] = {}
        module = self._module(spec.sizes)
        for name in ("Model", "get_inputs", "get_init_inputs"):
            if not callable(getattr(module, name, None)):
                raise TaskFault(f"{spec.path} has no {name}")
        self._parameter_names = [
            p.name for p in inspect.signature(module.Model.forward).parameters.values()
            if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)
        ][1:]
        self._current: Any = module
        self._doubles = True
        self.device = "cpu"
        """Where the reference runs; full-size problems take a GPU."""
        if spec.check_sizes:  # without any, nobody wants to verify: a reference at the full sizes
            checks = self._own_alone() if spec.shapes == "exact" else self._accepted(spec.check_sizes)
            self.spec = spec.model_copy(update={"check_sizes": checks})

    def _accepted(self, candidates: tuple[dict[str, int], ...]) -> tuple[dict[str, int], ...]:
        """The check sizes that the problem's own code runs with: a file does not say which values its sizes may take.

        Of proposals the small ones; where they are few, what a search finds, and then larger ones, of which one may take long.
        Raises TaskFault where none is accepted.
        """
        proposed = bool(self.spec.last_sizes)
        small = [sizes for sizes in candidates if not proposed or self._within(SMALL_PROBLEM, sizes) is not False]
        accepted, refusals = self._tried(small)
        if proposed and len(accepted) < ENOUGH:
            found = list(searched(self.spec.sizes, lambda sizes: self._cost(sizes) is not None))
            unique = {tuple(sizes.items()): sizes for sizes in (*found, *candidates, *self.spec.last_sizes)}
            larger = [sizes for sizes in unique.values() if sizes not in small]
            for limit in (SMALL_PROBLEM, MEDIUM_PROBLEM):
                more = [s for s in larger if s not in accepted and self._within(limit, s)]
                accepted += self._tried(more, ENOUGH - len(accepted))[0]
            if not accepted:
                accepted, more_refusals = self._tried(larger, 1)
                refusals += more_refusals
        if not accepted:
            raise TaskFault(f"{refusals[0]}; no proposed size runs: state CHECK_SIZES = [{{constant: value}}, ...] in the file")
        self.notes.update(refusals)
        self._refuse_random(self._own_problem(min(accepted, key=lambda s: math.prod(s.values())), self.spec.seed))
        return tuple(accepted)

    def _tried(self, candidates: Sequence[Sizes], wanted: int = 1 << 30) -> tuple[list[Sizes], list[str]]:
        """(those that run, `wanted` at most, why the others do not). Outputs that say nothing count where no others come."""
        accepted: list[Sizes] = []
        poor: list[Sizes] = []
        refusals: list[str] = []
        for sizes in candidates:
            shown = ", ".join(f"{name}={value}" for name, value in sizes.items())
            if reason := self._refused(sizes):
                refusals.append(f"check size {shown} left out, the problem's own code fails: {reason}")
                continue
            try:
                flaw = nonsense(self._outputs(self._own_problem(sizes, self.spec.seed)))
            except TaskFault as fault:
                refusals.append(f"check size {shown} left out, {fault}")
                continue
            (poor if flaw else accepted).append(sizes)
            if flaw:
                refusals.append(f"check size {shown} left out, the reference's {flaw}")
            if len(accepted) >= wanted:
                break
        return accepted or poor, refusals

    def _own_alone(self) -> tuple[Sizes, ...]:
        own = super()._own_alone()
        if own:
            self._refuse_random(self._own_problem(own[0], self.spec.seed))
        return own

    def _is_held(self, sizes: Mapping[str, int]) -> bool:
        known = self._within(MEDIUM_PROBLEM, sizes)
        return (self.input_bytes(sizes) or 0) <= MEDIUM_PROBLEM[0] if known is None else known

    def _within(self, limit: tuple[float, float], sizes: Mapping[str, int]) -> bool | None:
        """Whether a call moves and computes no more than `limit` (bytes, FLOPs); None where that is not known."""
        cost = self._cost(sizes)
        return None if cost is None else cost.bytes <= limit[0] and cost.flops <= limit[1]

    def arithmetic(self) -> tuple[int, str]:
        """Of matrix products and convolutions, as torch counts them without data."""
        if self.spec.arithmetic is not None:
            return self.spec.arithmetic
        cost = self._cost(self.spec.sizes)
        return (0, "") if cost is None else (cost.flops, cost.operator)

    def _cost(self, sizes: Mapping[str, int]) -> Cost | None:
        """Of one call; None where it does not run without data."""
        known = self._counted(sizes)
        return known if isinstance(known, Cost) else None

    def _counted(self, sizes: Mapping[str, int]) -> Cost | str:
        """Of one call, or why it does not run on tensors without data."""
        key = tuple(sizes.items())
        if key not in self._costs:
            try:
                self._costs[key] = counted(self._module(sizes))
            except (TaskFault, NotCounted) as error:
                self._costs[key] = str(error)
        return self._costs[key]

    def _refused(self, sizes: Mapping[str, int]) -> str:
        """Why the problem refuses `sizes`, where that shows without data: it runs without data as it ships. "" otherwise."""
        if self.spec.last_sizes and isinstance(self._counted(self.spec.sizes), Cost):
            found = self._counted(sizes)
            return found if isinstance(found, str) else ""
        return ""

    def _module(self, sizes: Mapping[str, int]) -> Any:
        key = tuple(sorted(sizes.items()))
        if key not in self._modules:
            try:
                self._modules[key] = load_module(self.spec.path, sizes)
            except UnknownConstant as error:
                raise TaskFault(str(error)) from error
            except Exception as error:
                raise TaskFault(f"{self.spec.path} cannot be loaded: {describe_failure(error)}") from error
        return self._modules[key]

    def _own_problem(self, sizes: Mapping[str, int], seed: int, tiling: bool = False) -> Problem:
        self._current = module = self._module(sizes)
        self._seed(seed)
        try:
            init = module.get_init_inputs()
            model = self._model(init)
            with tiling_mode() if tiling else nullcontext():
                inputs = module.get_inputs()
            names = [*self._parameter_names, *(f"input{i}" for i in range(len(self._parameter_names), len(inputs)))]
            named = {name: map_leaves(as_leaf, value) for name, value in zip(names, inputs, strict=False)}
            state = {name: as_leaf(value.detach().clone()) for name, value in model.state_dict().items()}
            return Problem(named, map_leaves(as_leaf, init), state, model.training)
        except MemoryError:
            raise
        except Exception as error:
            raise TaskFault(f"the problem's own code fails: {describe_failure(error)}") from error

    def input_bytes(self, sizes: Mapping[str, int]) -> int | None:
        """Counted on meta tensors, which hold no data."""
        try:
            with torch.device("meta"):
                inputs = self._module(sizes).get_inputs()
            return sum(int(value.nbytes) for _, value in leaves(tuple(inputs), "") if isinstance(value, torch.Tensor))
        except Exception:  # get_inputs may do what meta tensors cannot
            return None

    def _model(self, init: Sequence[Any] | Mapping[str, Any]) -> torch.nn.Module:
        model = self._current.Model(**init) if isinstance(init, Mapping) else self._current.Model(*init)
        if not isinstance(model, torch.nn.Module):
            raise TypeError("Model is no torch.nn.Module")
        return model

    def _outputs(self, problem: Problem) -> Any:
        return self._run(problem, None, double=False)

    def _precise_outputs(self, problem: Problem, perturbation: Perturbation | None) -> Any:
        if self._doubles:
            try:
                return self._run(problem, perturbation, double=True)
            except TaskFault as error:
                self._doubles = False
                self.notes.add(f"expected values in the task's own dtypes: the reference does not run in float64 ({error})")
        return self._run(problem, perturbation, double=False)

    def _seed(self, seed: int) -> None:
        """Seeds PyTorch's random numbers.

        Without a GPU, `torch.manual_seed` formats the call stack for a CUDA that is never initialised: 10 ms, ten times a call
        of a small model.
        """
        if self.device == "cpu":
            torch.default_generator.manual_seed(seed)
        else:
            torch.manual_seed(seed)

    def _run(self, problem: Problem, perturbation: Perturbation | None, *, double: bool, seed: int = MODEL_SEED) -> Any:
        def tensor(leaf: Any) -> Any:
            return _moved(leaf, perturbation, double) if self.device == "cpu" else (
                _moved_there(leaf, perturbation, double, self.device))

        self._seed(MODEL_SEED)
        model = self._model(map_leaves(as_tensor, problem.init))
        if double:
            model = model.double()
        model.load_state_dict({name: tensor(leaf) for name, leaf in problem.state.items()}, strict=True)
        model = model.to(self.device)
        inputs = {name: map_leaves(tensor, value) for name, value in problem.inputs.items()}
        self._seed(seed)
        raw, result, buffers = self._forward(model, list(inputs.values()))
        tensors = {path: value for name, tree in inputs.items() for path, value in leaves(tree, name)}
        given = dict(_arrays(problem.inputs)) if perturbation is None and not double else {}
        now = {path: as_leaf(tensors[path]) for path in {*given, *self._changed}}
        changed = {path for path, leaf in given.items() if leaf.values.tobytes() != now[path].values.tobytes()}
        outputs = {_memory(value) for _, value in leaves(raw, "") if isinstance(value, torch.Tensor)}
        returned = {path for path in changed if _memory(tensors[path]) in outputs}
        return self._with_effects(result, buffers, now, changed, returned)

    def _refuse_random(self, problem: Problem) -> None:
        """Raises TaskFault where two calls on the same inputs differ: no solution can give the same outputs."""
        first, second = (dict(leaves(self._run(problem, None, double=False, seed=MODEL_SEED + i), "out")) for i in range(2))
        for path, leaf in first.items():
            a, b = leaf.as_float64(), second[path].as_float64()
            scale = float(np.abs(a[np.isfinite(a)]).max(initial=0.0))
            if leaf.is_float and not np.allclose(a, b, rtol=SAME, atol=SAME * scale, equal_nan=True):
                raise TaskFault(
                    f"the reference draws random numbers when it is called{self._dropouts(problem)}, so no output can be "
                    "compared with it; KernelBench leaves models in training mode: use p=0, or call self.eval() at the end of "
                    "Model.__init__")

    def _dropouts(self, problem: Problem) -> str:
        """` (dropout: Dropout(p=0.2) in training mode)`; nothing where no module says so."""
        modules = self._model(map_leaves(as_tensor, problem.init)).named_modules()
        found = [f"{name}: {type(m).__name__}(p={m.p:g})" for name, m in modules
                 if isinstance(m, torch.nn.modules.dropout._DropoutNd) and m.p > 0 and m.training]
        return f" ({', '.join(found[:3])} in training mode)" if found else ""

    def _forward(self, model: torch.nn.Module, inputs: Sequence[Any]) -> tuple[Any, Any, dict[str, Leaf]]:
        """(what the model returned, the same as a tree of Leaf, the buffers that the call changed)."""
        before = {name: value.clone() for name, value in model.named_buffers()}
        try:
            with torch.no_grad():
                raw = model(*inputs)
            result = map_leaves(as_leaf, raw)
        except MemoryError:
            raise
        except Exception as error:
            raise TaskFault(f"the reference's forward fails: {describe_failure(error)}") from error
        if not all(isinstance(leaf, Leaf) for _, leaf in leaves(result, "")):
            raise TaskFault("the reference returns something that is no tensor")
        changed = {n: as_leaf(v) for n, v in model.named_buffers() if not torch.equal(v, before[n])}
        return raw, result, changed


def _moved(leaf: Any, perturbation: Perturbation | None, double: bool) -> Any:
    """The leaf as tensor: perturbed where asked, in float64 where `double`, else in its own dtype."""
    if not isinstance(leaf, Leaf) or not leaf.is_float or (perturbation is None and not double):
        return as_tensor(leaf)
    values = leaf.as_float64() if perturbation is None else perturbed(leaf.as_float64(), *perturbation)
    dtype = "float64" if double else leaf.dtype
    return as_tensor(Leaf(round_to(values, dtype), dtype))


def _moved_there(leaf: Any, perturbation: Perturbation | None, double: bool, device: str) -> Any:
    """`_moved` on a GPU: full-size arrays are converted and perturbed where they are used."""
    tensor = as_tensor(leaf)
    if not isinstance(tensor, torch.Tensor):
        return tensor
    there = tensor.to(device)
    if not there.is_floating_point() or (perturbation is None and not double):
        return there
    values = there.double()
    if perturbation is not None:
        relative, rng = perturbation
        draws = torch.Generator(device).manual_seed(int(rng.integers(1 << 62)))
        values *= 1.0 + relative * (2.0 * torch.empty_like(values).bernoulli_(0.5, generator=draws) - 1.0)
    return values if double else values.to(there.dtype)


def _arrays(inputs: Mapping[str, Any]) -> Iterator[tuple[str, Leaf]]:
    """(path, leaf) of every array among the inputs."""
    found = (pair for name, value in inputs.items() for pair in leaves(value, name))
    return ((path, leaf) for path, leaf in found if isinstance(leaf, Leaf))


def _memory(tensor: torch.Tensor) -> int:
    return int(tensor.untyped_storage().data_ptr())

"""The oracle of KernelBench problems: `Model`, `get_inputs`, `get_init_inputs`, in PyTorch on the CPU.

The model stays in the mode its constructor leaves it in (training mode), as KernelBench runs it; buffers that its
forward pass changes (running statistics) are outputs like any other.
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from typing import Any

import torch

from evaluator.kernelbench_module import UnknownConstant, load_module
from evaluator.oracle import Oracle, Perturbation, Problem, TaskFault, describe_failure, perturbed
from evaluator.torch_leaves import as_leaf, as_tensor
from evaluator.trees import Leaf, leaves, map_leaves, round_to
from evaluator.types import TaskSpec


class KernelBenchOracle(Oracle):
    """A KernelBench problem file, its sizes set through module-level constants."""

    def __init__(self, spec: TaskSpec) -> None:
        super().__init__(spec)
        self._modules: dict[tuple[tuple[str, int], ...], Any] = {}
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
        self.spec = spec.model_copy(update={"check_sizes": self._accepted(spec.check_sizes)})

    def _accepted(self, candidates: tuple[dict[str, int], ...]) -> tuple[dict[str, int], ...]:
        """The check sizes that the problem's own code runs with: a file does not say which values its constants may take.

        Raises TaskFault where there are candidates and none is accepted.
        """
        accepted, refusals = [], []
        for sizes in candidates:
            try:
                self._outputs(self._own_problem(sizes, self.spec.seed))
                accepted.append(sizes)
            except TaskFault as fault:
                shown = ", ".join(f"{name}={value}" for name, value in sizes.items())
                refusals.append(f"check size {shown} left out, {fault}")
        if candidates and not accepted:
            raise TaskFault(f"{refusals[0]}; no proposed size runs: state CHECK_SIZES = [{{constant: value}}, ...] in the file")
        self.notes.update(refusals)
        return tuple(accepted)

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

    def _own_problem(self, sizes: Mapping[str, int], seed: int) -> Problem:
        self._current = module = self._module(sizes)
        torch.manual_seed(seed)
        try:
            init = module.get_init_inputs()
            model = self._model(init)
            inputs = module.get_inputs()
            names = [*self._parameter_names, *(f"input{i}" for i in range(len(self._parameter_names), len(inputs)))]
            named = {name: map_leaves(as_leaf, value) for name, value in zip(names, inputs, strict=False)}
            state = {name: as_leaf(value.detach().clone()) for name, value in model.state_dict().items()}
            return Problem(named, map_leaves(as_leaf, init), state)
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

    def _run(self, problem: Problem, perturbation: Perturbation | None, *, double: bool) -> Any:
        def tensor(leaf: Any) -> Any:
            moved = _moved(leaf, perturbation, double)
            return moved.to(self.device) if isinstance(moved, torch.Tensor) else moved

        torch.manual_seed(0)
        model = self._model(map_leaves(as_tensor, problem.init))
        if double:
            model = model.double()
        model.load_state_dict({name: tensor(leaf) for name, leaf in problem.state.items()}, strict=True)
        model = model.to(self.device)
        inputs = [map_leaves(tensor, value) for value in problem.inputs.values()]
        outputs = self._forward(model, inputs)
        if perturbation is None and not double:
            self.changes_inputs |= any(
                isinstance(leaf, Leaf) and leaf.values.tobytes() != as_leaf(now).values.tobytes()
                for (_, leaf), (_, now) in zip(leaves(tuple(problem.inputs.values()), ""), leaves(inputs, ""), strict=True)
            )
        return outputs

    def _forward(self, model: torch.nn.Module, inputs: Sequence[Any]) -> Any:
        before = {name: value.clone() for name, value in model.named_buffers()}
        try:
            with torch.no_grad():
                result = map_leaves(as_leaf, model(*inputs))
        except MemoryError:
            raise
        except Exception as error:
            raise TaskFault(f"the reference's forward fails: {describe_failure(error)}") from error
        if not all(isinstance(leaf, Leaf) for _, leaf in leaves(result, "")):
            raise TaskFault("the reference returns something that is no tensor")
        changed = {n: as_leaf(v) for n, v in model.named_buffers() if not torch.equal(v, before[n])}
        return {"result": result, "buffers": changed} if changed else result


def _moved(leaf: Any, perturbation: Perturbation | None, double: bool) -> Any:
    """The leaf as tensor: perturbed where asked, in float64 where `double`, else in its own dtype."""
    if not isinstance(leaf, Leaf) or not leaf.is_float or (perturbation is None and not double):
        return as_tensor(leaf)
    values = leaf.as_float64() if perturbation is None else perturbed(leaf.as_float64(), *perturbation)
    dtype = "float64" if double else leaf.dtype
    return as_tensor(Leaf(round_to(values, dtype), dtype))

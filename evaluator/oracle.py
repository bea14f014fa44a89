"""What the task expects: its inputs for a case, and the reference's outputs in double precision with their tolerance.

The judge alone holds an oracle; the process that runs the solution never sees a reference output.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evaluator import tiles
from evaluator.comparison import Expected, compare
from evaluator.effects import effect_name
from evaluator.inputs import TASK, Case, vary, vary_constants
from evaluator.native_module import load_reference
from evaluator.precision import Yardstick, relative_error
from evaluator.shapes import MEDIUM_PROBLEM
from evaluator.soon import soon
from evaluator.tolerance import UNIT_ROUNDOFF, allowed_error, reduction_length, smooth_spread, working_roundoff
from evaluator.trees import Leaf, WireError, leaves, map_leaves, round_to, total_bytes
from evaluator.types import TaskSpec

CONCURRENT_BYTES = 1 << 30
"""Of larger inputs the runs of the reference, each in double precision, follow each other."""
PERTURBATIONS = 3
"""Random perturbations that measure the conditioning (see tolerance.py)."""
OWN_ERROR_FACTOR = 4.0
"""Where the reference itself, in the task's dtypes, misses the bound on the task's own inputs, this many times its error
is allowed: the factor that still counts as the same precision class."""


Perturbation = tuple[float, np.random.Generator]
"""(relative size, source of the random signs)."""


class TaskFault(Exception):
    """The task itself cannot be judged: its file, inputs or reference fail. Not the solution's fault."""


class Unjudgeable(Exception):
    """Under this case the reference says nothing firm (non-finite values, or it misses its own tolerance)."""


@dataclass(frozen=True)
class Problem:
    """One case's data, as the solution receives it."""

    inputs: Mapping[str, Any]
    """Positional arguments in order, by name: Leaf or plain numbers."""
    init: Any = ()
    """KernelBench: arguments of the model's constructor."""
    state: Mapping[str, Leaf] = field(default_factory=dict)
    """KernelBench: the model's parameters and buffers by name."""
    training: bool = True
    """KernelBench: the mode that the model's constructor leaves it in."""


class Oracle(ABC):
    """Inputs and expected outputs of one task."""

    concurrent = False
    """Whether the reference can run several times at once in this process."""

    def __init__(self, spec: TaskSpec) -> None:
        self.spec = spec
        self.notes: set[str] = set()
        """What the person should know about how the expected values were made."""
        self.changes_inputs = False
        """The reference itself writes into its inputs; then a solution may."""
        self._changed: set[str] = set()
        """Paths of input arrays that it was seen to change without returning them: a solution must write the same."""

    def _own_alone(self) -> tuple[dict[str, int], ...]:
        """The task's own sizes, to verify at; none where a call there is more than a CPU does in a moment."""
        return (dict(self.spec.sizes),) if self._is_held(self.spec.sizes) else ()

    def refuse_without_sizes(self) -> None:
        """Raises TaskFault where there is nothing to verify at: the task's own sizes alone count, and they are too large."""
        if self.spec.shapes == "exact" and not self.spec.check_sizes:
            shown = ", ".join(f"{name}={value}" for name, value in self.spec.sizes.items())
            raise TaskFault(f"with --shapes exact its own sizes alone count, and a call at {shown} is too large to verify "
                            "here; use --shapes general, or --device cuda, where timed calls are compared")

    @abstractmethod
    def _is_held(self, sizes: Mapping[str, int]) -> bool:
        """Whether the reference can be called at `sizes` again and again on a CPU."""

    @abstractmethod
    def _own_problem(self, sizes: Mapping[str, int], seed: int, tiling: bool = False) -> Problem:
        """The task's own inputs; `tiling`: its large draws stand for themselves as tiles (`tiles.py`)."""

    @abstractmethod
    def _outputs(self, problem: Problem) -> Any:
        """The reference's outputs in the task's own dtypes: a tree of Leaf."""

    @abstractmethod
    def _precise_outputs(self, problem: Problem, perturbation: Perturbation | None) -> Any:
        """The reference's outputs computed in double precision: a tree of Leaf. `perturbation` = (relative size, rng)."""

    def own_problem(self, sizes: Mapping[str, int], seed: int) -> Problem:
        """The task's own inputs. Raises TaskFault."""
        return self._own_problem(sizes, seed)

    def sampled_problem(self, sizes: Mapping[str, int], seed: int) -> Problem:
        """The task's own inputs with every large draw a tile of its values, repeated. Raises TaskFault, MemoryError."""
        return self._own_problem(sizes, seed, tiling=True)

    def outputs(self, problem: Problem) -> Any:
        """The reference's outputs in the task's own dtypes: a tree of Leaf. Raises TaskFault."""
        return self._outputs(problem)

    def precise_outputs(self, problem: Problem, perturbation: Perturbation | None = None) -> Any:
        """The reference's outputs in double precision, of inputs moved by `perturbation`. Raises TaskFault."""
        return self._precise_outputs(problem, perturbation)

    def _with_effects(
        self, result: Any, buffers: Mapping[str, Any], inputs: Mapping[str, Any], changed: set[str], returned: set[str]
    ) -> Any:
        """The outputs; where the reference changes buffers or inputs, `result` and `buffers` with what they hold afterwards.

        An input is called `input <path>` there. One that was changed for some values counts as changed for all. One that is
        `returned` (an output shares its memory) was only the place of an output.
        """
        self._changed |= changed - returned
        self.changes_inputs |= bool(changed)
        effects = {**buffers, **{effect_name(path): inputs[path] for path in sorted(self._changed)}}
        return {"result": result, "buffers": effects} if effects else result

    def input_bytes(self, sizes: Mapping[str, int]) -> int | None:
        """Bytes of the inputs at `sizes` where that is known without making them."""
        return None

    def arithmetic(self) -> tuple[int, str]:
        """FLOPs of one call at the full sizes, and the operator that has most of them; (0, "") where they are not counted."""
        return 0, ""

    def problem(self, case: Case) -> Problem:
        """The case's inputs. Raises TaskFault."""
        own = self._own_problem(case.sizes, case.seed)
        if case.distribution == TASK:
            return own
        inputs = vary(dict(own.inputs), case.distribution, case.seed)
        return replace(own, inputs=inputs, state=vary_constants(dict(own.state), case.seed))

    def expected(self, problem: Problem, case: Case) -> Any:
        """Tree of Expected. Raises TaskFault; Unjudgeable for a case that has to be left out."""
        own = self._outputs(problem)
        precise = self._precise_outputs(problem, None)
        if case.distribution != TASK and not (_all_finite(own) and _all_finite(precise)):
            raise Unjudgeable(f"{case}: the reference gives non-finite values")
        terms = reduction_length((problem.inputs, problem.state), own)
        expected = self._with_tolerance(problem, own, precise, self._moved(problem, case.seed), terms)
        verdict = compare(expected, own, case)
        if verdict is None:
            return expected
        if case.distribution != TASK:
            raise Unjudgeable(f"{case}: the reference misses its own tolerance: {verdict.message}")
        self.notes.add(f"tolerance widened to {OWN_ERROR_FACTOR:g} times the reference's own rounding error: {verdict.message}")
        return _widened(expected, own)

    def expected_elements(self, problem: Problem, seed: int, pick: Callable[[Any], Any]) -> Any:
        """`expected` for a part of large outputs: `pick` makes of an output tree what is compared. Raises TaskFault."""
        def in_own_dtypes() -> tuple[Any, int]:
            whole = self._outputs(problem)
            return pick(whole), reduction_length((problem.inputs, problem.state), whole)

        (own, terms), precise, moved = self._all_of(
            total_bytes(problem.inputs), in_own_dtypes, lambda: pick(self._precise_outputs(problem, None)),
            lambda: self._moved(problem, seed, pick, 1))
        expected = self._with_tolerance(problem, own, precise, moved, terms)
        return _widened(expected, own) if compare(expected, own, Case({}, TASK, seed)) else expected

    def _all_of(self, nbytes: int, *runs: Callable[[], Any]) -> list[Any]:
        """What each returns for inputs of so many bytes; at once where the reference, and the memory, can do that."""
        if not self.concurrent or nbytes > CONCURRENT_BYTES:
            return [run() for run in runs]
        return [future.result() for future in [soon(run) for run in runs]]

    def _moved(
        self, problem: Problem, seed: int, pick: Callable[[Any], Any] = lambda tree: tree, perturbations: int = PERTURBATIONS,
    ) -> list[dict[str, Leaf]]:
        """The outputs of inputs that were perturbed by one roundoff, for each perturbation."""
        roundoff, rng = working_roundoff((problem.inputs, problem.state)), np.random.default_rng([seed, 1])
        return [dict(leaves(pick(self._precise_outputs(problem, (roundoff, rng))), "out")) for _ in range(perturbations)]

    def _with_tolerance(self, problem: Problem, own: Any, precise: Any, moved: list[dict[str, Leaf]], terms: int) -> Any:
        roundoff = working_roundoff((problem.inputs, problem.state))
        dtypes = dict(leaves(own, "out"))

        def expect(path: str, leaf: Leaf) -> Expected:
            dtype = dtypes[path].dtype
            if not leaf.is_float:
                return Expected(leaf.values, dtype, np.zeros(leaf.shape))
            values = leaf.as_float64()
            with np.errstate(invalid="ignore", over="ignore"):
                spread = smooth_spread([m[path].as_float64() - values for m in moved])
            allowed = allowed_error(values, dtype, self.spec.tolerance, spread, terms)
            return Expected(values, dtype, allowed, _yardstick(values, dtypes[path], spread, roundoff, terms))

        by_identity = {id(leaf): expect(path, leaf) for path, leaf in leaves(precise, "out")}
        return map_leaves(lambda leaf: by_identity[id(leaf)], precise)


class NativeOracle(Oracle):
    """A Python file with `make_inputs(rng, **sizes)` and `reference(**inputs)` in NumPy."""

    concurrent = True

    def __init__(self, spec: TaskSpec) -> None:
        super().__init__(spec)
        module = _guarded(f"{spec.path} cannot be loaded", lambda: load_reference(spec.path))
        for name in ("make_inputs", "reference"):
            if not callable(getattr(module, name, None)):
                raise TaskFault(f"{spec.path} has no function {name}")
        self._make_inputs, self._reference = module.make_inputs, module.reference
        if spec.shapes == "exact":
            self.spec = spec.model_copy(update={"check_sizes": self._own_alone()})

    def _is_held(self, sizes: Mapping[str, int]) -> bool:
        try:
            return total_bytes(self._own_problem(sizes, self.spec.seed).inputs) <= MEDIUM_PROBLEM[0]
        except MemoryError:
            return False

    def _own_problem(self, sizes: Mapping[str, int], seed: int, tiling: bool = False) -> Problem:
        rng = tiles.TilingGenerator(np.random.PCG64(seed)) if tiling else np.random.default_rng(seed)
        made = _guarded("make_inputs fails", lambda: self._make_inputs(rng, **sizes))
        if not isinstance(made, Mapping):
            raise TaskFault(f"make_inputs returns {type(made).__name__}, not a dict of arrays")
        return Problem({name: _guarded(f"input {name}", lambda v=value: _input(v)) for name, value in made.items()})

    def _outputs(self, problem: Problem) -> Any:
        arguments = map_leaves(_copy, problem.inputs)
        raw, result = self._call(arguments)
        changed = {
            name for name, leaf in problem.inputs.items()
            if isinstance(leaf, Leaf) and leaf.values.tobytes() != arguments[name].tobytes()
        }
        outputs = [value for _, value in leaves(raw, "") if isinstance(value, np.ndarray)]
        returned = {name for name in changed if any(np.may_share_memory(arguments[name], value) for value in outputs)}
        return self._with_effects(result, {}, _arrays(arguments), changed, returned)

    def _precise_outputs(self, problem: Problem, perturbation: Perturbation | None) -> Any:
        arguments = map_leaves(lambda leaf: _double(leaf, perturbation), problem.inputs)
        _, result = self._call(arguments)
        return self._with_effects(result, {}, _arrays(arguments), set(), set())

    def _call(self, arguments: Mapping[str, Any]) -> tuple[Any, Any]:
        """(what the reference returned, the same as a tree of Leaf)."""
        with np.errstate(all="ignore"):
            raw = _guarded("reference fails", lambda: self._reference(**arguments))
        return raw, _guarded("reference's result", lambda: map_leaves(Leaf.of, raw))


def load_oracle(spec: TaskSpec) -> Oracle:
    """The oracle for either kind of task. Raises TaskFault."""
    if not Path(spec.path).is_file():
        raise TaskFault(f"{spec.path}: no such file")
    if spec.kind == "native":
        return NativeOracle(spec)
    from evaluator.oracle_torch import KernelBenchOracle  # torch takes seconds to import

    return KernelBenchOracle(spec)


def describe_failure(error: BaseException) -> str:
    """`ValueError: message` in one line."""
    return f"{type(error).__name__}: {str(error).strip() or '(no message)'}".replace("\n", " ")[:500]


def _guarded(what: str, call: Any) -> Any:
    try:
        return call()
    except MemoryError:
        raise
    except Exception as error:
        raise TaskFault(f"{what}: {describe_failure(error)}") from error


def _input(value: Any) -> Any:
    if isinstance(value, (np.ndarray, np.generic)):
        return tiles.tiled_leaf(Leaf.of(value))
    if isinstance(value, (bool, int, float)):
        return value
    raise WireError(f"is a {type(value).__name__}; inputs are arrays or numbers")


def _arrays(arguments: Mapping[str, Any]) -> dict[str, Leaf]:
    return {name: Leaf.of(value) for name, value in arguments.items() if isinstance(value, np.ndarray)}


def _copy(leaf: Any) -> Any:
    return np.array(leaf.values) if isinstance(leaf, Leaf) else leaf


def _double(leaf: Any, perturbation: Perturbation | None) -> Any:
    if not isinstance(leaf, Leaf) or not leaf.is_float:
        return _copy(leaf)
    values = leaf.as_float64()
    return values if perturbation is None else perturbed(values, *perturbation)


def perturbed(values: NDArray[np.float64], relative: float, rng: np.random.Generator) -> NDArray[np.float64]:
    """Every element times 1 + `relative` or 1 - `relative`, at random."""
    signs = rng.integers(0, 2, values.shape, dtype=np.int8) * 2 - 1
    return np.asarray(values * (1.0 + relative * signs))


def _all_finite(tree: Any) -> bool:
    return all(bool(np.isfinite(leaf.as_float64()).all()) for _, leaf in leaves(tree, "") if leaf.is_float)


def _yardstick(
    values: NDArray[np.float64], own: Leaf, spread: NDArray[np.float64], roundoff: float, terms: int,
) -> Yardstick | None:
    error = relative_error(own.as_float64(), values)
    moved = relative_error(values + spread, values)
    if error is None or moved is None:
        return None
    dtype = next(name for name, unit in UNIT_ROUNDOFF.items() if unit == max(roundoff, UNIT_ROUNDOFF[own.dtype]))
    return Yardstick(dtype, error, moved, roundoff, terms)


def _widened(expected: Any, own: Any) -> Any:
    """Allows OWN_ERROR_FACTOR times the largest error that the reference makes in the task's own dtypes."""
    outputs = dict(leaves(own, "out"))
    widened = {}
    for path, want in leaves(expected, "out"):
        leaf = outputs[path]
        if not leaf.is_float or leaf.values.size == 0:
            widened[id(want)] = want
            continue
        rounded = Leaf(round_to(want.values, want.dtype), want.dtype).as_float64()
        with np.errstate(invalid="ignore"):
            error = np.abs(leaf.as_float64() - want.values)
        error = np.where(np.isfinite(rounded) & np.isfinite(error), error, 0.0)
        widened[id(want)] = Expected(want.values, want.dtype, np.maximum(want.allowed, OWN_ERROR_FACTOR * error.max()),
                                      want.yardstick)
    return map_leaves(lambda want: widened[id(want)], expected)

"""Verification: which cases a solution must get right, and the judge's walk through them.

For every check size: the task's own distribution in fresh buffers, the same call once more (state, races), new data
in the same buffers (outputs cached by pointer or identity), and other value distributions. Seeds are drawn after the
solution was imported.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np

from evaluator.comparison import Verdict, compare
from evaluator.compile import Compiled
from evaluator.failures import LOG_CHARACTERS, Failure, rejection, summary
from evaluator.inputs import DISTRIBUTIONS, TASK, Case
from evaluator.library import ALL, flag, is_allowed, kernel_is_allowed, kernel_operator
from evaluator.oracle import Oracle, Problem, Unjudgeable
from evaluator.precision import Precision
from evaluator.resources import kernel_resources
from evaluator.runner import Ended, Runner
from evaluator.solutions import How
from evaluator.soon import soon
from evaluator.trees import Leaf, leaves
from evaluator.types import Finding, KernelResources, LaunchRecord, Status, TaskSpec

MORE_SIZES_DISTRIBUTIONS = 2
"""Beside `normal`, how many distributions the second and later check sizes get (in turns); the first gets all."""
FINDINGS_LIMIT = 50
PRECISION_CASES = frozenset({TASK, "normal"})
"""Distributions on which the precision class is measured; the others look for faults where float32 itself is at its limits."""
REJECTING = frozenset({"library_call", "guard"})
"""Kinds whose error findings say that the solution broke a rule, not that it failed."""
FRESH_FLOAT, FRESH_INTEGER = 0xFF, 0xA5
"""Bytes that the stand-in (and the spoiling of free memory on a GPU) fills fresh memory with."""


@dataclass
class Record:
    """What the walk has seen so far; it becomes the Evaluation."""

    findings: list[Finding] = field(default_factory=list)
    modules: dict[bytes, Compiled] = field(default_factory=dict)
    """Every module that the solution compiled, by its binary."""
    checks: Counter[str] = field(default_factory=Counter)
    _disassembled: dict[bytes, Future[list[KernelResources]]] = field(default_factory=dict)
    _last_launched: int = 0
    notes: list[str] = field(default_factory=list)
    """What the person should know about how the solution was judged."""
    precision: Precision = field(default_factory=Precision)

    def take(self, reply: Mapping[str, Any], task: TaskSpec, solution: str) -> None:
        """Adds what a reply of the runner reports. Raises Ended for an error finding."""
        fresh = [Finding.model_validate(finding) for finding in reply["findings"]]
        fresh += library_findings(reply["library_calls"], task, solution)
        for finding in fresh:
            known = any((f.kind, f.kernel, f.file, f.line) == (finding.kind, finding.kernel, finding.file, finding.line)
                        for f in self.findings)
            if not known and len(self.findings) < FINDINGS_LIMIT:
                self.findings.append(finding)
        self.take_modules(reply)
        errors = [finding for finding in fresh if finding.severity == "error"]
        if errors and errors[0].kind in REJECTING:
            raise Ended(rejection([finding for finding in errors if finding.kind in REJECTING]))
        if errors:
            raise Ended(Failure(Status.RUNTIME_ERROR, summary(errors[0])))

    def note_launches(self, count: int, how: How) -> None:
        """Notes what one call launched. Raises Ended where it answered a repeated question without a kernel."""
        if how == "repeat" and self._last_launched and not count:
            raise Ended(rejection([Finding(kind="guard", message=(
                "the second call on the same inputs launched no kernel, the first one did: an output was cached, which is no "
                "work that a caller with new data can save"))]))
        self._last_launched = count
        self.checks["kernel_launches"] += count

    def refuse_without_kernels(self) -> None:
        """Raises Ended where no call launched a kernel of the solution's own and no operator that may stay did the work."""
        if not self.checks["kernel_launches"] and not any(finding.kind == "library_call" for finding in self.findings):
            raise Ended(rejection([Finding(kind="guard", message=(
                "the outputs are right, but no call launched a kernel of the solution's own (cupy.RawKernel or RawModule)"))]))

    def take_modules(self, reply: Mapping[str, Any]) -> None:
        """Keeps the modules compiled since the last reply."""
        for fields, leaf in zip(reply["modules"], reply["data"]["cubins"], strict=True):
            cubin = leaf.values.tobytes()
            module = Compiled("", cubin, str(fields["log"]), fields["lowered"], str(fields["arch"]))
            if self.modules.setdefault(cubin, module) is module:
                self._disassembled[cubin] = soon(partial(kernel_resources, module))  # nvdisasm takes a second

    @property
    def compile_log(self) -> str:
        """What the compiler said of the modules, the last one first."""
        return "\n".join(module.log for module in reversed(self.modules.values()))[:LOG_CHARACTERS]

    def resources(self, instructions: bool) -> tuple[KernelResources, ...]:
        """Of every kernel compiled; with its machine instructions where asked for."""
        found = [self._disassembled[cubin].result() if instructions else kernel_resources(module, sass=False)
                 for cubin, module in self.modules.items()]
        return tuple({kernel.kernel: kernel for kernels in found for kernel in kernels}.values())


def plan(task: TaskSpec, secret: int) -> Iterator[tuple[Case, How]]:
    """Every case with the way its inputs are handed over. `secret` makes the seeds unpredictable."""
    names = list(DISTRIBUTIONS)
    sizes = sorted(task.check_sizes, key=lambda s: math.prod(s.values()))
    seeds = iter(np.random.SeedSequence([task.seed, secret]).generate_state(len(sizes) * (len(names) + 2)).tolist())
    for position, size in enumerate(sizes):
        own = Case(dict(size), TASK, next(seeds))
        yield own, "fresh"
        yield own, "repeat"
        yield Case(dict(size), TASK, next(seeds)), "refill"
        for name in _distributions(names, position):
            yield Case(dict(size), name, next(seeds)), "fresh"


def verify(oracle: Oracle, runner: Runner, secret: int, record: Record) -> Verdict | None:
    """The first wrong output, or None. Raises Ended where the solution fails, TaskFault where the task does."""
    problem: Problem | None = None
    expected: Any = None
    for case, how in plan(oracle.spec, secret):
        if how != "repeat":
            try:
                problem = _problem(oracle, case, how, problem)
                expected = oracle.expected(problem, case)
            except Unjudgeable:
                record.checks["cases_left_out"] += 1
                continue
        assert problem is not None
        try:
            verdict = _judge(oracle, runner, problem, expected, case, how, record)
        except Ended as ended:
            raise Ended(replace(ended.failure, message=f"{ended.failure.message}{_repeated_by(secret)}"), ended.reply) from None
        if verdict:
            return _repeatable(_explained(verdict, how, record.findings), secret)
    record.checks["check_sizes"] = len(oracle.spec.check_sizes)
    record.refuse_without_kernels()
    return None


def _repeated_by(secret: int) -> str:
    return f" [evaluation seed {secret}]"


def _repeatable(verdict: Verdict, secret: int) -> Verdict:
    """Names the evaluation's seed (`Request.seed`), with which the same cases are drawn again."""
    case = verdict.mismatch.case + _repeated_by(secret)
    return replace(verdict, mismatch=verdict.mismatch.model_copy(update={"case": case}))


def _judge(
    oracle: Oracle, runner: Runner, problem: Problem, expected: Any, case: Case, how: How, record: Record
) -> Verdict | None:
    task = oracle.spec
    if how == "repeat" and oracle.changes_inputs:
        how = "refill"  # the call before has changed what is in the buffers
    if task.kind == "kernelbench" and (how == "fresh" or has_buffers(expected)):
        for note in runner.construct(problem):
            record.findings.append(Finding(kind="guard", message=note, severity="warning"))
    reply = runner.call(problem.inputs, how, case, keep_inputs=not oracle.changes_inputs)
    record.checks["cases"] += 1
    record.checks["elements"] += sum(want.values.size for _, want in leaves(expected, ""))
    got = with_buffers(reply["data"], expected)
    verdict = compare(expected, got, case)
    record.take(reply, task, runner.solution)
    if verdict:
        return replace(verdict, message=verdict.message + _strange_value(verdict, got, case, record.findings))
    if case.distribution in PRECISION_CASES and how != "repeat":
        record.precision.take(expected, got)
    if reply["modified"]:
        raise Ended(_input_modified(reply["modified"], case))
    record.note_launches(int(reply["launched"]), how)
    return None


def _input_modified(places: list[str], case: Case) -> Failure:
    message = (
        f"the call changed its inputs (first changed element: {', '.join(map(str, places[:4]))}); a caller goes on using "
        "them, so write results to new arrays"
    )
    finding = Finding(kind="input_modified", message=message, sizes=case.sizes)
    return Failure(Status.RUNTIME_ERROR, f"input_modified: {places[0]} (on {case})", findings=(finding,))


def with_buffers(data: Mapping[str, Any], expected: Any) -> Any:
    """Arranges a reply as the oracle does: model buffers are outputs where the reference changes them."""
    if not has_buffers(expected):
        return data["result"]
    have = data["buffers"]
    return {"result": data["result"], "buffers": {name: have[name] for name in expected["buffers"] if name in have}}


def has_buffers(expected: Any) -> bool:
    """Whether the reference changes buffers of its model."""
    return isinstance(expected, Mapping) and set(expected) == {"result", "buffers"}


def _problem(oracle: Oracle, case: Case, how: How, previous: Problem | None) -> Problem:
    """A refill is a new call of the same model: its parameters stay."""
    problem = oracle.problem(case)
    return replace(problem, init=previous.init, state=previous.state) if how == "refill" and previous else problem


def _explained(verdict: Verdict, how: How, findings: Sequence[Finding]) -> Verdict:
    """Adds what the way of the call and the simulator's findings tell about the cause."""
    hint = {
        "repeat": " The first call on the same inputs was right: the solution keeps state between calls, or has a race.",
        "refill": " The same buffers held other data before: an output cached by pointer or identity does this.",
    }.get(how, "")
    seen = _symptoms(findings)
    if seen:
        hint += f" Seen on the way: {summary(seen[0])}."
    return Verdict(verdict.status, verdict.message + hint, verdict.mismatch)


def _symptoms(findings: Sequence[Finding]) -> list[Finding]:
    return [finding for finding in findings if finding.kind not in ("library_call", "guard")]


def _strange_value(verdict: Verdict, got: Any, case: Case, findings: Sequence[Finding]) -> str:
    """What the first wrong element says by itself: never written, or a NaN or infinity that the kernel computed."""
    mismatch = verdict.mismatch
    if verdict.status is not Status.INCORRECT_NUMERICAL or mismatch.index is None or mismatch.got is None:
        return ""
    leaf = dict(leaves(got, "out"))[mismatch.output]
    fresh = {FRESH_FLOAT if leaf.is_float else FRESH_INTEGER}
    if not _symptoms(findings) and set(np.asarray(leaf.values[mismatch.index]).tobytes()) == fresh:
        return " The element holds the bits that fresh memory is filled with: it was probably never written."
    if math.isfinite(mismatch.got):
        return ""
    if math.isnan(mismatch.got):
        text = " This NaN was computed by the kernel (inf/inf, inf-inf, 0*inf, 0/0, or a NaN it read)"
    else:
        text = " This infinity was computed by the kernel (an overflow, or a division by zero)"
    large = "; the inputs of this case are large: does an exp() or a sum overflow?" if case.distribution == "large" else "."
    return text + large


def _distributions(names: list[str], position: int) -> list[str]:
    if position == 0:
        return names
    others = [name for name in names if name != "normal"]
    start = (position - 1) * MORE_SIZES_DISTRIBUTIONS
    return ["normal", *(others[(start + i) % len(others)] for i in range(MORE_SIZES_DISTRIBUTIONS))]


def library_findings(calls: Sequence[Sequence[Any]], task: TaskSpec, solution: str) -> list[Finding]:
    """Of (operator, line, count): a warning for what the task lets stay, an error for everything else."""
    return [_library_finding(str(name), line, int(count), task, solution) for name, line, count in calls]


def foreign_findings(launches: Sequence[LaunchRecord], task: TaskSpec) -> list[Finding]:
    """Of the recorded launches: an error for every library's kernel that computes what the task does not let stay."""
    foreign = dict.fromkeys(launch.kernel for launch in launches if launch.library)
    refused = [kernel for kernel in foreign if not kernel_is_allowed(kernel, task.allow_library)]
    return [
        Finding(kind="library_call", kernel=kernel, message=(
            f"a call runs {kernel[:160]}, a library's kernel; compute this in a kernel of the solution, or let it stay with "
            f"--allow-library {kernel_operator(kernel) if kernel_operator(kernel) != kernel else ALL}"))
        for kernel in refused
    ]


def _library_finding(name: str, line: int | None, count: int, task: TaskSpec, solution: str) -> Finding:
    allowed, does = is_allowed(name, task.allow_library), "takes data to the host" if flag(name) == "host" else "computes"
    text = f"{name} {does} outside the solution's own kernels ({count} call{'s' if count > 1 else ''})"
    advice = "" if allowed else f"; compute it in a kernel, or let it stay with --allow-library {flag(name)}"
    return Finding(kind="library_call", severity="warning" if allowed else "error", file=solution, line=line,
                   message=text + advice)


def task_sizes(problem: Problem, outputs: list[Any]) -> dict[str, float]:
    """`task_bytes` (inputs, parameters and outputs, each once) and `task_output_elements`, of the full problem.

    `outputs` holds (elements, bytes) of every output array.
    """
    arrays = [leaf for _, leaf in leaves((problem.inputs, problem.state), "") if isinstance(leaf, Leaf)]
    moved = sum(leaf.values.nbytes for leaf in arrays) + sum(int(nbytes) for _, nbytes in outputs)
    return {"task_bytes": float(moved), "task_output_elements": float(sum(int(size) for size, _ in outputs))}

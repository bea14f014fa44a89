"""What runs inside the untrusted process: answers the judge's messages about one solution, one by one."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterable, Mapping
from contextlib import nullcontext
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from evaluator.bands import banded
from evaluator.channel import Channel, Closed
from evaluator.compile import Compiled
from evaluator.conditions import Conditions
from evaluator.cuda_hook import Watched, watch
from evaluator.failures import Cheated, WrongForm, failure_of
from evaluator.integrity import Integrity
from evaluator.late_stream import called_late
from evaluator.solutions import How, Solution, load_solution
from evaluator.tiles import unfold
from evaluator.torch_watch import OperatorLog
from evaluator.trees import Leaf, WireError, leaves
from evaluator.types import Frozen, Request

if TYPE_CHECKING:
    from evaluator.timing import TimedCalls

SPOILED_BLOCKS = 4
"""Free blocks of each output's size that are filled with NaN before a call on a GPU."""


class Host:
    """Answers the judge's messages about one solution."""

    def __init__(self, request: Request, session: Any, watched: Watched) -> None:
        self.request = request
        self.session = session
        """The stand-in's session; None on a GPU."""
        self.watched = watched
        self.compiled = watched.compiled
        """Every module compiled so far; it grows."""
        self.solution: Solution | None = None
        self.integrity = Integrity()
        self.operators = OperatorLog(request.solution)
        self._reported = 0
        self._compiled = 0
        self._sizes: set[int] = set()
        self.timed: TimedCalls | None = None
        self._kept: tuple[Any, Any] | None = None
        """What a call returned, and what it held then."""

    def handle(self, message: Mapping[str, Any]) -> dict[str, Any]:
        """The reply to one message; raises whatever the solution raises."""
        operation, data = message["op"], message["data"]
        if operation == "load":
            self.solution = load_solution(self.request.solution, self.request.task)
            self._check_integrity()
            if self.session is not None:
                self.session.forget_library_calls()
            return {"data": None}
        if operation == "sources":
            return {"data": None, "sources": self.watched.sources}
        if self.solution is None:
            raise WrongForm("no solution is loaded")
        if operation == "construct":
            notes = self.solution.construct(data["init"], data["state"], data["training"])
            if self.session is not None:
                self.session.forget_library_calls()
            return {"data": None, "notes": notes}
        if operation == "call":
            return self._guarded_call(self.solution, message)
        if operation == "profile":
            return self._profile(self.solution, unfold(data, message["tiled"]))
        if operation == "launches":
            from evaluator.profile_cuda import recorded_launches

            return {"data": None, **recorded_launches(self.solution, data, self.watched.log, self.request.device)}
        if operation == "bracketed":
            from evaluator.profile_cuda import bracketed_call

            bracketed_call(self.solution, data)
            return {"data": None}
        if operation == "time":
            return self._timed_call(self.solution, message)
        raise WrongForm(f"unknown message {operation!r}")

    def _timed_call(self, solution: Solution, message: Mapping[str, Any]) -> dict[str, Any]:
        if self.timed is None:
            from evaluator.timing import CudaClock, TimedCalls

            self.timed = TimedCalls(solution, CudaClock(self.request.device))
        reply = self.timed.handle(message)
        # Not after every sample: it takes longer than a sample, and leaves the host's caches cold for the next one.
        if message["step"] != "sample":
            self._check_integrity()
        return {"data": None, **reply}

    def _guarded_call(self, solution: Solution, message: Mapping[str, Any]) -> dict[str, Any]:
        wanted = self.session is None and bool(message["conditions"]["bands"]) and self.request.task.kind == "native"
        with banded(wanted) as bands:
            reply = self._call(solution, message)
        return {**reply, "bands": bands.broken if bands is not None else []}

    def _call(self, solution: Solution, message: Mapping[str, Any]) -> dict[str, Any]:
        conditions, keep_inputs = Conditions.model_validate(message["conditions"]), bool(message["keep_inputs"])
        how: How = message["how"]
        solution.set_inputs(message["data"], how, conditions.layout)
        if self.session is not None:
            self.session.sizes = message["sizes"]
            self.session.fresh_byte, self.session.block_order = conditions.fresh_byte, conditions.block_order
            if keep_inputs:
                self._protect(solution)
        else:
            self._spoil_free_memory(solution, 0xFF if conditions.fresh_byte is None else conditions.fresh_byte)
        launched = self._launched()
        with self.operators.watching() if self.session is None else nullcontext():
            returned = called_late(solution) if conditions.late_stream else solution.invoke()
            result = solution.taken(returned)
        if conditions.watched:
            self._check_integrity()
        self._sizes |= {leaf.values.nbytes for _, leaf in leaves(result, "")}
        data = {"result": result, "buffers": {**solution.buffers(), **({} if keep_inputs else solution.changed_inputs())}}
        modified = solution.modified_inputs() if keep_inputs else []
        return self._reply(data, modified=modified, launched=self._launched() - launched,
                           overwritten=self._overwritten(solution, returned, result) if conditions.keeps_result else False)

    def _overwritten(self, solution: Solution, returned: Any, result: Any) -> bool:
        """Whether what the last call of this kind returned has changed since; this one's is kept in its place."""
        kept, self._kept = self._kept, (returned, result)
        if kept is None:
            return False
        now = solution.taken(kept[0])
        pairs = zip(leaves(kept[1], ""), leaves(now, ""), strict=True)
        return any(before.values.tobytes() != after.values.tobytes() for (_, before), (_, after) in pairs)

    def _check_integrity(self) -> None:
        """Raises Cheated where the solution changed what its callers rely on, or left something running."""
        violations = self.integrity.violations()
        if violations:
            raise Cheated("; ".join(violations))

    def _launched(self) -> int:
        """Launches of the solution's own kernels so far."""
        return int(self.session.kernel_launches) if self.session is not None else self.watched.log.total

    def _spoil_free_memory(self, solution: Solution, byte: int) -> None:
        """On a GPU: the blocks that the next allocations get hold `byte` (0xFF: NaN), not an earlier result.

        The stand-in poisons its memory itself.
        """
        sizes = self._sizes | {leaf.values.nbytes for _, leaf in leaves(solution.given, "") if isinstance(leaf, Leaf)}
        blocks = [solution.spoil(size, byte) for size in sorted(sizes) for _ in range(SPOILED_BLOCKS) if size]
        blocks.clear()

    def _protect(self, solution: Solution) -> None:
        """Makes a kernel's write into an input an error at its CUDA line; writes by other means are found afterwards."""
        from evaluator.simulator.standin import protect

        for (_, leaf), (_, array) in zip(leaves(solution.given, ""), leaves(solution.live, ""), strict=True):
            if isinstance(leaf, Leaf):
                protect(array)

    def _profile(self, solution: Solution, inputs: Any) -> dict[str, Any]:
        from evaluator.simulator.standin.stores import unwritten_output_bytes

        solution.set_inputs(inputs, "fresh")
        self.session.forget_library_calls()
        live = solution.invoke()
        kernels_write = unwritten_output_bytes(live)
        shapes = [solution.extent(value, "the result") for _, value in leaves(live, "")]
        launches = [
            launch.model_copy(update={"text": text}).model_dump(mode="json")
            for launch, text in zip(self.session.launches, self.session.text_facts, strict=True)
        ]
        return self._reply({}, launches=launches, outputs=shapes, stored_bytes=list(self.session.stored_bytes),
                           kernels_write_bytes=kernels_write)

    def _reply(self, data: dict[str, Any], **fields: Any) -> dict[str, Any]:
        seen = self._seen()
        return {"data": {**data, "cubins": seen.pop("cubins")}, **fields, **seen}

    def forget_findings(self) -> None:
        """After a failure: what the stand-in noticed until then went with it, and is not of the next call."""
        if self.session is not None:
            self._reported = len(self.session.findings)

    def _seen(self) -> dict[str, Any]:
        """What the stand-in noticed since the last reply."""
        compiled = self.compiled[self._compiled:]
        self._compiled += len(compiled)
        modules, cubins = _modules(compiled)
        fresh, calls = [], self.operators.calls
        if self.session is not None:
            fresh = self.session.findings[self._reported:]
            self._reported += len(fresh)
            calls = [[call.name, call.place.line if call.place else None, call.count] for call in self.session.library_calls]
        return {"executed": _executed(self.session), "findings": _dumped(fresh),
                "library_calls": calls, "modules": modules, "cubins": cubins}


def serve(
    channel: Channel, request: Request, stage: Literal["verify", "profile"], before_solution: Callable[[], None] | None = None
) -> None:
    """Answers messages until the judge hangs up. A failure is an answer too.

    `before_solution` is called once cupy is ready (on a GPU torch too, for a kernelbench task), before the solution is.
    """
    host: Host | None = None
    session: Any = None
    watched = Watched()
    while True:
        try:
            message = channel.receive()
        except Closed:
            return
        try:
            if host is None:
                session, watched = _prepare(request, stage)
                if before_solution is not None:
                    before_solution()
                host = Host(request, session, watched)
            channel.send(host.handle(message))
        except Closed:
            return
        except WireError as error:
            channel.send(_failed(WrongForm(str(error)), request, session, watched.compiled))
        except BaseException as error:
            channel.send(_failed(error, request, session, watched.compiled))
            if host is not None:
                host.forget_findings()


def _failed(error: BaseException, request: Request, session: Any, compiled: list[Compiled]) -> dict[str, Any]:
    seen = session.findings if session is not None else []
    modules, cubins = _modules(compiled)
    return {"data": {"cubins": cubins}, "modules": modules, "executed": _executed(session),
            "failure": failure_of(error, request.solution, seen).to_dict()}


def _executed(session: Any) -> int:
    """Instructions that simulated warps executed so far; 0 on a GPU."""
    return int(session.warp_instructions) if session is not None else 0


def _prepare(request: Request, stage: Literal["verify", "profile"]) -> tuple[Any, Watched]:
    """Makes `cupy` ready: the stand-in, or the real one watched. (Session or None, what is seen of the compiled modules)."""
    if request.mode == "cuda":
        import cupy

        cupy.cuda.runtime.free(0)  # CUDA is initialised here, not under the solution's limits
        if request.task.kind == "kernelbench":
            import torch

            torch.cuda.init()
        importlib.import_module("evaluator.timing")  # before the solution: what it measures with is watched too
        return None, watch(cupy, request.device.arch, resources=stage == "verify")
    from evaluator.simulator import standin

    session = standin.Session(device=request.device, mode=stage, solution_file=request.solution)
    standin.install(session)
    return session, Watched(compiled=session.compiled)


def _dumped(values: Iterable[Frozen]) -> list[Any]:
    return [value.model_dump(mode="json") for value in values]


def _modules(compiled: Iterable[Compiled]) -> tuple[list[dict[str, Any]], tuple[Leaf, ...]]:
    """What the judge needs to list the kernels' resources: it may start nvdisasm, this process may not."""
    described = [{"log": module.log, "lowered": dict(module.lowered), "arch": module.arch} for module in compiled]
    return described, tuple(Leaf.of(np.frombuffer(module.cubin, np.uint8)) for module in compiled)

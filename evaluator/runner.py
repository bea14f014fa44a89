"""The judge's handle on the process that runs a solution: forks it, talks to it, notices how it ended."""

from __future__ import annotations

import os
import resource
import select
import signal
import socket
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any, Literal, NoReturn

from evaluator import landlock, seccomp, tiles
from evaluator.channel import Channel, Closed, Late
from evaluator.conditions import Conditions
from evaluator.failures import Failure
from evaluator.inputs import Case
from evaluator.launch import serve
from evaluator.oracle import Problem
from evaluator.solutions import How
from evaluator.trees import WireError
from evaluator.types import Mode, Request, Status

OUTPUT_TAIL_BYTES = 4000
MEMORY_BYTES = 12 << 30
"""Memory that a solution may add on the host: 8 GiB of inputs and outputs, and working room."""
THREADS = 1024
"""Threads and processes that the user's limit leaves beyond those that run already. Root is not bound by it."""
DRAINED_CHUNKS = 64
"""Chunks of output read at once, so that a flood cannot keep the judge from its clock."""
PR_SET_PDEATHSIG = 1


class Ended(Exception):
    """The solution failed, died, or ran out of time: `failure` says how, `reply` what its process still had to say."""

    def __init__(self, failure: Failure, reply: Mapping[str, Any] | None = None) -> None:
        super().__init__(failure.message)
        self.failure, self.reply = failure, reply


class Runner:
    """A forked process that holds the solution. Fork it before anything secret is in memory."""

    def __init__(
        self, request: Request, stage: Literal["verify", "profile"], deadline: float,
        trusted: Callable[[Channel], None] | None = None,
    ) -> None:
        """`trusted`: what the process does instead of serving the solution; without a solution it needs no limits."""
        ours, theirs = socket.socketpair()
        output, theirs_output = os.pipe()
        self.solution = request.solution
        self.pid = os.fork()
        if self.pid == 0:
            ours.close()
            _become_runner(Channel(theirs), request, stage, theirs_output, trusted)
        theirs.close()
        os.close(theirs_output)
        os.set_blocking(output, False)
        self.deadline = deadline
        self._output, self._tail = output, b""
        self._channel = Channel(ours)
        self._channel.deadline = deadline
        self._channel.while_waiting = (output, self._drain)

    def load(self) -> None:
        """Imports the solution. Raises Ended."""
        self._ask({"op": "load"}, "while it was imported")

    def construct(self, problem: Problem) -> list[str]:
        """Makes a kernelbench model with the problem's parameters; notes for the person. Raises Ended."""
        data = {"init": problem.init, "state": dict(problem.state), "training": problem.training}
        return list(self._ask({"op": "construct", "data": data}, "while ModelNew was constructed").get("notes", []))

    def call(
        self, inputs: Mapping[str, Any], how: How, case: Case, keep_inputs: bool, conditions: Conditions | None = None,
    ) -> dict[str, Any]:
        """Calls the solution, which must not change its inputs if `keep_inputs`; the reply of `launch.Host`. Raises Ended."""
        data = None if how == "repeat" else dict(inputs)
        when = f"on {case}, " + ", ".join(f"{name}={value}" for name, value in case.sizes.items())
        return self._ask({"op": "call", "how": how, "sizes": case.sizes, "keep_inputs": keep_inputs, "data": data,
                          "conditions": (conditions or Conditions()).model_dump()}, when)

    def profile(self, inputs: Mapping[str, Any]) -> dict[str, Any]:
        """One simulated call at the full sizes. Raises Ended."""
        data, shapes = tiles.fold(inputs)
        self._allow_addresses(tiles.tiled_bytes(inputs))
        return self._ask({"op": "profile", "data": data, "tiled": shapes}, "at the full sizes")

    def _allow_addresses(self, more: int) -> None:
        """Raises the limit of the process's address space, which it cannot do itself."""
        if more:
            limit, hard = resource.prlimit(self.pid, resource.RLIMIT_AS)
            room = limit + more if hard == resource.RLIM_INFINITY else min(limit + more, hard)
            resource.prlimit(self.pid, resource.RLIMIT_AS, (room, hard))

    def time(self, step: str, data: Any = None, **fields: Any) -> dict[str, Any]:
        """One step of the timing on a GPU (see timing.py); the reply of `TimedCalls`. Raises Ended."""
        return self._ask({"op": "time", "step": step, "data": data, **fields}, "while it was timed")

    def expected(self, problem: Problem, seed: int, count: int) -> dict[str, Any]:
        """Elements of the reference's outputs, from a process that holds it (see baselines.py). Raises Ended."""
        data = {"inputs": dict(problem.inputs), "init": problem.init, "state": dict(problem.state),
                "training": problem.training}
        return self._ask({"op": "expected", "data": data, "seed": seed, "count": count}, "while the reference was computed")

    def allow_until(self, deadline: float) -> None:
        """Another `time.monotonic()` after which an answer is late."""
        self.deadline = self._channel.deadline = deadline

    def kill(self) -> None:
        """Has the process end, whatever it is doing, without waiting: what it holds on a GPU takes a while to be freed."""
        with suppress(ProcessLookupError):
            os.kill(self.pid, signal.SIGKILL)

    def close(self) -> None:
        """Ends the process and waits until it has."""
        self._channel.close()
        try:
            os.kill(self.pid, signal.SIGKILL)
            os.waitpid(self.pid, 0)
        except (ProcessLookupError, ChildProcessError):
            return
        finally:
            os.close(self._output)

    def _ask(self, message: dict[str, Any], when: str) -> dict[str, Any]:
        try:
            self._channel.send({"data": None, **message})
            reply = self._channel.receive()
        except Late:
            raise Ended(Failure(Status.TIMEOUT, f"the solution did not finish in time {when}", self._printed())) from None
        except Closed:
            raise Ended(self._death(when)) from None
        except WireError as error:
            raise Ended(Failure(Status.RUNTIME_ERROR, f"the solution's process sent nonsense {when}: {error}")) from error
        if "failure" not in reply:
            return reply
        try:
            failure = Failure.from_dict(reply["failure"])
        except (ValueError, KeyError, TypeError) as error:
            raise Ended(Failure(Status.RUNTIME_ERROR, f"the solution's process sent nonsense {when}")) from error
        raise Ended(Failure(failure.status, f"{failure.message} ({when})", failure.log, failure.findings), reply)

    def _death(self, when: str) -> Failure:
        """How the process ended."""
        state = self._wait_briefly()
        self._drain()
        if state is None:
            how = "closed its connection to the judge"
        elif os.WIFSIGNALED(state):
            killer = signal.Signals(os.WTERMSIG(state))
            how = f"was killed by {killer.name}{SIGNAL_HINTS.get(killer, '')}"
        else:
            how = f"exited with code {os.WEXITSTATUS(state)}"
        return Failure(Status.RUNTIME_ERROR, f"the solution's process {how} {when}", self._printed())

    def _wait_briefly(self) -> int | None:
        """The exit state; None where the process lives on."""
        for _ in range(50):
            pid, state = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                return state
            time.sleep(0.02)
        return None

    def _drain(self) -> None:
        """Reads what the solution printed and keeps the end of it."""
        for _ in range(DRAINED_CHUNKS):
            if not select.select([self._output], [], [], 0)[0]:
                return
            chunk = os.read(self._output, 65536)
            if not chunk:
                self._channel.while_waiting = None
                return
            self._tail = (self._tail + chunk)[-OUTPUT_TAIL_BYTES:]

    def _printed(self) -> str:
        return self._tail.decode(errors="replace")


SIGNAL_HINTS = {
    signal.SIGSEGV: " (invalid memory access in native code)",
    signal.SIGKILL: " (out of memory, or killed from outside)",
    signal.SIGXCPU: " (CPU time limit)",
}


def _become_runner(channel: Channel, request: Request, stage: Literal["verify", "profile"], output: int,
                   trusted: Callable[[Channel], None] | None) -> NoReturn:
    """In the forked process: no way back into the judge's code."""
    try:
        die_with_parent()
        null = os.open(os.devnull, os.O_RDWR)
        os.dup2(null, 0)
        os.dup2(output, 1)
        os.dup2(output, 2)
        keep = channel.connection.fileno()
        os.closerange(3, keep)
        os.closerange(keep + 1, 4096)
        if trusted:
            trusted(channel)
        elif request.mode == "sim":
            lock_down(request, may_grow=stage == "profile")
            serve(channel, request, stage)
        else:  # CUDA's libraries start helpers and open their devices first
            os.environ["CUPY_CACHE_IN_MEMORY"] = "1"
            serve(channel, request, stage, partial(lock_down, request))
    finally:
        os._exit(0)


def lock_down(request: Request, may_grow: bool = False) -> None:
    """Limits of the process that runs the solution, and its system-call filter; it can raise none from then on.

    `may_grow`: the judge may still give it more address space.
    """
    limit(request.mode, request.limit_s, may_grow)
    restrict()


def limit(mode: Mode, seconds: float, may_grow: bool = False) -> None:
    """Processor time, memory and threads for `seconds` of work; no files."""
    room = min(MEMORY_BYTES, _available_memory() * 7 // 10)
    limits = [(resource.RLIMIT_CPU, int(seconds) + 5), (resource.RLIMIT_FSIZE, 0), (resource.RLIMIT_CORE, 0),
              (resource.RLIMIT_NPROC, _running_tasks() + THREADS)]
    total, data = _own_memory()
    # CUDA reserves far more address space than it uses; what is private and writable is what counts there.
    limits.append((resource.RLIMIT_AS, total + room) if mode == "sim" else (resource.RLIMIT_DATA, data + room))
    if may_grow:  # by memory that is mapped many times over; what is private and writable must not
        limits.append((resource.RLIMIT_DATA, data + room))
    for kind, value in limits:
        _, hard = resource.getrlimit(kind)
        value = value if hard == resource.RLIM_INFINITY else min(value, hard)
        resource.setrlimit(kind, (value, hard if may_grow and kind == resource.RLIMIT_AS else value))


def restrict() -> None:
    """Gives up root's powers, other processes' memory, and every system call that a solution does not need."""
    seccomp.drop_capabilities()
    landlock.enter()
    seccomp.install()


def _running_tasks() -> int:
    """Threads of all processes of this user."""
    found, user = 0, os.getuid()
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if process.stat().st_uid == user:
                found += len(list((process / "task").iterdir()))
        except OSError:  # it has just ended
            continue
    return found


def _own_memory() -> tuple[int, int]:
    """Address space, and the part of it that is data, in bytes."""
    pages = Path("/proc/self/statm").read_text().split()
    return int(pages[0]) * resource.getpagesize(), int(pages[5]) * resource.getpagesize()


def _available_memory() -> int:
    fields = dict(line.split(":", 1) for line in Path("/proc/meminfo").read_text().splitlines())
    return int(fields["MemAvailable"].split()[0]) << 10


def die_with_parent() -> None:
    """Ends this process with the one that forked it, however that ends."""
    import ctypes

    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)

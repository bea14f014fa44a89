"""The judge: one Request in, one Evaluation out. It never runs a line of the solution itself.

Order: guard (source) -> fork the runner -> import the solution -> draw the secret -> verify -> profile or time.
The runners are forked before the task is loaded, so the reference is in no memory that the solution can read.
"""

from __future__ import annotations

import importlib
import importlib.util
import os
import secrets
import time
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from evaluator import profile_cuda, sanitizer
from evaluator.comparison import Verdict
from evaluator.environment import environment
from evaluator.failures import Failure, rejection, summary
from evaluator.guards import check_source
from evaluator.judge_timing import Session, WrongWhenTimed
from evaluator.measure import Processes, baseline_rows, measure, session_here, session_soon
from evaluator.oracle import Oracle, TaskFault, load_oracle
from evaluator.precision import formats_in
from evaluator.profile_sim import NoTime, profile
from evaluator.runner import Ended, Runner
from evaluator.seccomp import hide_memory
from evaluator.soon import soon
from evaluator.types import Evaluation, Finding, Request, Status, Tool
from evaluator.verify import Record, foreign_findings, verify

DISASSEMBLED = (Status.PASSED, Status.UNSUPPORTED)
"""Verdicts after which the machine instructions matter: the solution may be optimised further, or only the simulator failed."""
MARGIN_SECONDS = 2.0
"""The judge gives up this long before the caller would kill it, so that it can still say on which case."""


def evaluate_here(request: Request, sandbox: str = "rlimits") -> Evaluation:
    """Evaluates in this process (the runner is a fork of it); the pool calls it through `python -m evaluator`."""
    hide_memory()
    return _Evaluation(request, sandbox).run()


class _Evaluation:
    """One evaluation in progress."""

    def __init__(self, request: Request, sandbox: str) -> None:
        self.request = request
        self.environment = environment(request, sandbox)
        self.record = Record()
        self.processes: Processes | None = None
        self.seconds: dict[str, float] = {}
        self.unavailable: dict[Tool, str] = {}
        self.verified_sizes: tuple[dict[str, int], ...] = ()
        self.session: Session | None = None
        """What was timed, on which problem (mode cuda)."""
        self.coming: Future[Session] | None = None
        self.secret = -1
        self.deadline = time.monotonic() + max(request.timeout_s - MARGIN_SECONDS, 0.9 * request.timeout_s)

    def run(self) -> Evaluation:
        """The verdict; whatever goes wrong is one."""
        evaluation = self._judged()
        return evaluation.model_copy(update={"stage_seconds": dict(self.seconds)})

    def _judged(self) -> Evaluation:
        try:
            return self._stages()
        except Ended as ended:
            if ended.reply is not None:
                self.record.take_modules(ended.reply)
            return self._failed(ended.failure)
        except TaskFault as fault:
            return self._failed(Failure(Status.UNSUPPORTED, f"the task itself cannot be judged: {fault}"))
        except MemoryError:
            message = "the task itself cannot be judged: its reference runs out of memory"
            return self._failed(Failure(Status.UNSUPPORTED, message))

    def _stages(self) -> Evaluation:
        request = self.request
        with self._stage("guard"):
            guard = guard_findings(request)
        self.record.findings += guard
        rejected = [finding for finding in guard if finding.severity == "error"]
        if rejected:
            return self._failed(rejection(rejected))
        preload(request)
        processes = self.processes = Processes.start(request, self.deadline)
        try:
            verifier = processes.solution
            with self._stage("import"):
                loading = soon(verifier.load)
                oracle = load_oracle(request.task)
                loading.result()
            self.secret = secrets.randbits(32) if request.seed is None else request.seed
            if request.mode == "cuda" and "profile" in request.stages:
                self.coming = session_soon(request, processes, self.secret, self.deadline)
            with self._stage("verify"):
                verdict = self._verify(oracle, verifier) if "verify" in request.stages else None
            if verdict:
                return self._answer(verdict.status, verdict.message, mismatch=verdict.mismatch)
            return self._passed(oracle, processes)
        finally:
            with self._stage("close"):
                for runner in list(processes):
                    runner.close()

    def _verify(self, oracle: Oracle, runner: Runner) -> Verdict | None:
        self.verified_sizes = oracle.spec.check_sizes
        if not self._timed_calls_alone(oracle):
            return verify(oracle, runner, self.secret, self.record)
        return None

    def _timed_calls_alone(self, oracle: Oracle) -> bool:
        """Whether the comparison of timed calls is the whole verification. Raises TaskFault where nothing is."""
        if self.request.mode == "sim" or "profile" not in self.request.stages:
            oracle.refuse_without_sizes()
        return oracle.spec.shapes == "exact" and not oracle.spec.check_sizes

    def _sanitize(self, oracle: Oracle) -> None:
        """Adds what compute-sanitizer finds in the solution's own kernels. Raises Ended for an error."""
        if self.request.mode == "sim" or not self.request.sanitize:
            return
        kernels = [kernel.kernel for kernel in self.record.resources(False)]
        with self._stage("sanitize"):
            checked = sanitizer.check(self.request, oracle, kernels, self.deadline)
        self.record.checks.update(checked.counts)
        self.record.findings += checked.findings
        if checked.unavailable:
            self.unavailable["compute-sanitizer"] = checked.unavailable
        error = next((finding for finding in checked.findings if finding.severity == "error"), None)
        if error:
            raise Ended(Failure(Status.RUNTIME_ERROR, f"{summary(error)} (compute-sanitizer)"))

    def _passed(self, oracle: Oracle, processes: Processes) -> Evaluation:
        checks = self.record.checks
        unseen = "verify" in self.request.stages and self._timed_calls_alone(oracle)
        over = "the task's own sizes" if oracle.spec.shapes == "exact" else f"{checks['check_sizes']} sizes"
        message = f"Right on {checks['cases']} cases over {over} ({checks['elements']} elements)."
        if "verify" not in self.request.stages:
            message = "Not verified: the request leaves that stage out."
        if oracle.notes:
            message += " Note: " + "; ".join(sorted(oracle.notes))[:600] + "."
        if "profile" not in self.request.stages:
            self._sanitize(oracle)
            return self._answer(Status.PASSED, message, time_unavailable="the request asks for no profile")
        try:
            measured = self._modelled(oracle, processes) if self.request.mode == "sim" else self._measured(oracle, processes)
        except NoTime as reason:
            if unseen:
                raise TaskFault(f"nothing was verified: {reason}") from None
            return self._answer(Status.PASSED, message, time_unavailable=str(reason))
        except WrongWhenTimed as wrong:
            return self._answer(wrong.verdict.status, wrong.verdict.message, mismatch=wrong.verdict.mismatch)
        if unseen:
            if not checks["timed_calls_checked"]:
                raise TaskFault(f"no timed call could be compared with the reference: {'; '.join(self.record.notes)}")
            message = f"Right on {checks['timed_calls_checked']} timed calls at the task's own sizes."
        flops, measured["task_operator"] = oracle.arithmetic()
        measured["task_facts"] |= {"task_flops": float(flops)} if flops else {}
        seen = {} if self.request.mode == "sim" else self._observed(oracle, measured) | self._compared(measured, processes)
        message += "".join(f" Note: {note}." for note in self.record.notes)
        return self._answer(Status.PASSED, message, **measured, **seen)

    def _compared(self, measured: dict[str, Any], processes: Processes) -> dict[str, Any]:
        """The baselines, timed in turns with the solution."""
        assert self.session is not None
        with self._stage("baselines"):
            rows = baseline_rows(self.request, self.session, processes, measured["graph_time"] is not None)
        return {"baselines": rows, "gpu_states": tuple(self.session.states)}

    def _observed(self, oracle: Oracle, measured: dict[str, Any]) -> dict[str, Any]:
        """What the GPU did during a call: its launches, its timeline, the counters of its kernels. Raises Ended.

        A solution that is too slow to be of interest costs no sanitizer and no profile.
        """
        assert self.session is not None
        skipped = profile_cuda.not_worth(self.request, measured["time"])
        if skipped:
            self.unavailable |= skipped
            return {}
        kernels = [kernel.kernel for kernel in self.record.resources(False)]
        with ThreadPoolExecutor(1) as thread, profile_cuda.Profilers(self.request, kernels, self.deadline) as profilers:
            ready = thread.submit(profilers.warm_up)
            self._sanitize(oracle)
            with self._stage("launches"):
                ready.result()
                launches, timeline, self.unavailable["cupti"] = profilers.launches(self.session.problem)
            foreign = foreign_findings(launches, self.request.task)
            if foreign:
                raise Ended(rejection(foreign))
            with self._stage("counters"):
                profiles, self.unavailable["ncu"] = profilers.counters(self.session.problem)
        self.unavailable = {tool: reason for tool, reason in self.unavailable.items() if reason}
        return {"launches": launches, "timeline": timeline, "profiles": profiles}

    def _modelled(self, oracle: Oracle, processes: Processes) -> dict[str, Any]:
        """The Evaluation's fields that the full sizes give in the simulator."""
        assert processes.profiler is not None
        with self._stage("profile"):
            launches, estimate, facts, reply = profile(oracle, processes.profiler, self.request.device)
            self.record.take(reply, self.request.task, self.request.solution)
        return {"launches": tuple(launches), "time": estimate, "task_facts": facts}

    def _measured(self, oracle: Oracle, processes: Processes) -> dict[str, Any]:
        """The Evaluation's fields that the full sizes give on a GPU."""
        with self._stage("inputs"):
            self.session = self.coming.result() if self.coming else (
                session_here(self.request, oracle, processes, self.secret, self.deadline))
        fields, device = measure(self.session, processes, self.record, self._stage)
        self.environment = self.environment.model_copy(update={"device": device})
        return fields

    def _failed(self, failure: Failure) -> Evaluation:
        self.record.findings += [f for f in failure.findings if f not in self.record.findings]
        return self._answer(failure.status, failure.message, compile_log=failure.log)

    def _answer(self, status: Status, message: str, **fields: Any) -> Evaluation:
        for runner in self.processes or ():
            runner.kill()  # they end while the answer is put together
        log = fields.pop("compile_log", "") or self.record.compile_log
        findings = self.record.findings
        if status is Status.PASSED:
            findings = [finding for finding in findings if finding.severity == "warning"]
        resources = self.record.resources(status in DISASSEMBLED)
        if status is Status.PASSED:
            fields["precision_class"] = self.record.precision.classify(formats_in(resources))
            fields["precision_ratio"] = self.record.precision.ratio()
        return Evaluation(
            status=status, message=message, environment=self.environment, findings=tuple(findings), compile_log=log,
            resources=resources, checks=dict(self.record.checks),
            verified_sizes=self.verified_sizes, stage_seconds=self.seconds, unavailable=self.unavailable, **fields,
        )

    @contextmanager
    def _stage(self, name: str) -> Iterator[None]:
        began = time.monotonic()
        try:
            yield
        finally:
            self.seconds[name] = round(time.monotonic() - began, 4)


def guard_findings(request: Request) -> list[Finding]:
    """What the source guard says of the solution. Raises Ended where it cannot be read."""
    try:
        source = Path(request.solution).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise Ended(Failure(Status.RUNTIME_ERROR, f"the solution cannot be read: {error}")) from error
    try:
        return check_source(source, request.solution, request.task)
    except SyntaxError as error:
        message = f"{request.solution}:{error.lineno}: {error.msg}"
        raise Ended(Failure(Status.COMPILE_ERROR, message, f"{message}\n{error.text or ''}")) from error


def preload(request: Request) -> None:
    """Loads before the fork what both sides need, and what may start processes: the runner must not. Raises Ended."""
    from evaluator.simulator import build
    from evaluator.toolkit import ToolkitMissing, find_toolkit

    try:
        find_toolkit()
        if request.mode == "sim":
            build.library()
            importlib.import_module("evaluator.simulator.standin")
    except (ToolkitMissing, build.BuildError) as missing:
        raise Ended(Failure(Status.UNSUPPORTED, str(missing))) from missing
    # On a GPU torch is imported after the fork: its CUDA state does not survive one.
    if request.task.kind == "kernelbench" and request.mode == "sim" and importlib.util.find_spec("torch"):
        import torch

        torch.set_num_threads(int(os.environ.get("OMP_NUM_THREADS", "1")))

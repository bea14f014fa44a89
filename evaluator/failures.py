"""Exceptions that a solution can end in, as status and message; they cross to the judge as JSON."""

from __future__ import annotations

import re
import traceback
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from evaluator.origins import origin_of
from evaluator.types import Finding, Status

LOG_CHARACTERS = 20_000
FINDINGS = 50
MESSAGE_CHARACTERS = 2_000
CUDA_FAULTS = ("CUDARuntimeError", "CUDADriverError", "AcceleratorError", "RuntimeError")
FAULT = re.compile(r"illegal memory access|IllegalAddress|misaligned address|unspecified launch failure|device-side assert"
                   r"|illegal instruction|ILLEGAL_ADDRESS|MISALIGNED_ADDRESS|LAUNCH_FAILED")
CUDA_FAULT_HINT = "; a GPU does not say where: judge it with --device sim, or under compute-sanitizer, to see the line"
CUDA_PLACE = re.compile(r"\.cu\((\d+)\)")
"""As NVRTC names a line."""


@dataclass(frozen=True)
class Failure:
    """Why a solution did not get through."""

    status: Status
    message: str
    log: str = ""
    findings: tuple[Finding, ...] = field(default=())

    def to_dict(self) -> dict[str, Any]:
        """JSON-able."""
        return {
            "status": self.status.value, "message": self.message[:MESSAGE_CHARACTERS], "log": self.log[:LOG_CHARACTERS],
            "findings": [finding.model_dump(mode="json") for finding in self.findings],
        }

    @classmethod
    def from_dict(cls, fields: dict[str, Any]) -> Failure:
        """Inverse of `to_dict`. PASSED is no failure and becomes RUNTIME_ERROR; raises ValueError for nonsense."""
        status = Status(fields["status"])
        findings = tuple(Finding.model_validate(finding) for finding in fields["findings"])
        status = Status.RUNTIME_ERROR if status is Status.PASSED else status
        return cls(status, str(fields["message"])[:MESSAGE_CHARACTERS], str(fields["log"])[:LOG_CHARACTERS], findings)


class WrongForm(Exception):
    """The solution does not have the form that its task asks for (no `run`, a result that is no array, ...)."""


class Cheated(Exception):
    """The solution did what only a cheat needs; the message says what."""


def failure_of(error: BaseException, solution: str, seen: Sequence[Finding] = ()) -> Failure:
    """Maps whatever the solution raised. Where `solution` (its path) is on the traceback, the message names the line.

    `seen`: what the stand-in noticed before; an include or option that it refused makes the verdict REJECTED.
    """
    failure = _mapped(error, solution)
    refused = next((finding for finding in seen if finding.kind == "guard" and finding.severity == "error"), None)
    named = {(finding.message, finding.line) for finding in failure.findings}
    more = tuple(finding for finding in seen if (finding.message, finding.line) not in named)
    status = Status.REJECTED if refused else failure.status
    return replace(failure, status=status, findings=(failure.findings + more)[:FINDINGS])


def _mapped(error: BaseException, solution: str) -> Failure:
    place = _place(error, solution)
    for cause in _chain(error):
        failure = _recognised(cause, place, solution)
        if failure:
            return failure
    if isinstance(error, SyntaxError) and error.filename == solution:
        text = "".join(traceback.format_exception_only(error))
        return Failure(Status.COMPILE_ERROR, f"{solution}:{error.lineno}: {error.msg}", text)
    return Failure(Status.RUNTIME_ERROR, place + _described(error), _trace(error))


def _recognised(error: BaseException, place: str, solution: str) -> Failure | None:
    """Errors of the compiler and the simulator. By name, so that real CuPy's and the simulator's are one case."""
    kind = type(error).__name__
    finding = getattr(error, "finding", None)
    if kind == "SimulatedError" and isinstance(finding, Finding):
        if "to read-only memory" in finding.message:  # only inputs are protected
            finding = finding.model_copy(update={"kind": "input_modified"})
        if finding.kind == "unsupported":
            return Failure(Status.UNSUPPORTED, f"{summary(finding)}: {finding.message}", findings=(finding,))
        return Failure(Status.RUNTIME_ERROR, summary(finding), findings=(finding,))
    if kind == "Cheated":
        return rejection([Finding(kind="guard", message=str(error))])
    if kind == "GuardError":
        log = str(getattr(error, "log", error))
        return Failure(Status.REJECTED, place + "the CUDA source or an option was refused: " + _first_error(log), log)
    if kind in ("CompileException", "CompileError"):
        log = str(getattr(error, "log", "") or error)
        first = _compile_error(error, log, solution)
        return Failure(Status.COMPILE_ERROR, f"{place}the CUDA source does not compile: {first}", log)
    if kind == "Unsupported":
        line = getattr(error, "line", None)
        at = f" (CUDA line {line})" if line else ""
        return Failure(Status.UNSUPPORTED, f"{place}the simulator cannot run this: {getattr(error, 'message', error)}{at}")
    return None


def rejection(findings: Sequence[Finding]) -> Failure:
    """REJECTED for the first finding, whose whole message a person needs to see what to change."""
    first = findings[0]
    place = f"{first.file}:{first.line}: " if first.file and first.line else ""
    more = f" (and {len(findings) - 1} more)" if len(findings) > 1 else ""
    return Failure(Status.REJECTED, f"{place}{first.message}{more}", findings=tuple(findings))


def summary(finding: Finding) -> str:
    """One short sentence on an error finding: kind, kernel and place. The finding itself holds the details."""
    kernel = f" in kernel {finding.kernel}" if finding.kernel else ""
    if finding.file and finding.line:
        place = f" at {finding.file}:{finding.line}"
    elif finding.origin:
        place = f" at {finding.origin}"
    else:
        place = f" at line {finding.line} of the CUDA source" if finding.line else ""
    return f"{finding.kind}{kernel}{place}"


def _compile_error(error: BaseException, log: str, solution: str) -> str:
    """The first error, and where its line stands in the solution."""
    first = _first_error(log)
    at = CUDA_PLACE.search(first)
    origin = origin_of(str(getattr(error, "source", "")), int(at[1]), solution) if at else None
    return f"{first}, which is {origin.place}: {origin.text}" if origin else first


def _first_error(log: str) -> str:
    line = next((line for line in log.splitlines() if "error" in line), log.strip().splitlines()[0] if log.strip() else "")
    return line.strip()[:500]


def _described(error: BaseException) -> str:
    if isinstance(error, SystemExit):
        return f"the solution called sys.exit({error.code!r})"
    if isinstance(error, MemoryError):
        return f"MemoryError: out of memory ({str(error) or 'an allocation was refused'})"
    if isinstance(error, WrongForm):
        return str(error)
    name = type(error).__name__
    hint = CUDA_FAULT_HINT if name in CUDA_FAULTS and FAULT.search(str(error)) else ""
    return f"{name}: {error}{hint}"


def _place(error: BaseException, solution: str) -> str:
    for cause in _chain(error):
        lines = [frame.lineno for frame in traceback.extract_tb(cause.__traceback__) if frame.filename == solution]
        if lines:
            return f"{solution}:{lines[-1]}: "
    return ""


def _chain(error: BaseException) -> Iterator[BaseException]:
    """The error, then what caused it (bounded: a solution may build a cycle)."""
    current: BaseException | None = error
    for _ in range(8):
        if current is None:
            return
        yield current
        current = current.__cause__ or current.__context__


def _trace(error: BaseException) -> str:
    return "".join(traceback.format_exception(error))[-LOG_CHARACTERS:]

"""Repairer: a failed attempt is mended a few times at most, never the same fault twice, else the run goes on from its parent.

A repair is an edge of the attempt graph like any other: from the solution that failed to the one that the writer made of it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from kernelskill.model import Attempt, Diagnosis
from kernelskill.writers.request import Failure, Request

MENDABLE = frozenset({"compile", "shape", "numerical", "precision", "memory", "synchronisation", "launch", "timeout",
                      "rejected", "runtime", "off_method"})
"""Not: answers without a module (they were asked for again), and what cannot be judged at all."""


def to_repair(attempts: Sequence[Attempt], budget: int) -> Attempt | None:
    """Of a round's attempts so far the one to mend now; None when the last one is good, hopeless or out of budget."""
    last = attempts[-1] if attempts else None
    if last is None or last.diagnosis is None or not last.child or last.outcome == "duplicate" or last.repair >= budget:
        return None
    seen = [a.diagnosis.key for a in attempts[:-1] if a.diagnosis is not None]
    return last if _mendable(last.diagnosis) and last.diagnosis.key not in seen else None


def _mendable(diagnosis: Diagnosis) -> bool:
    """A writer can do something about it; of what the simulator does not execute where a line of the code is named."""
    return diagnosis.kind in MENDABLE or diagnosis.key.startswith("unsupported:")


def repair_request(request: Request, failed: Diagnosis, source: str, path: Path) -> Request:
    """The request that `source` answered, as a request to mend what the diagnosis says of it.

    `path` is where the failed module lies: it says nothing to a writer, and is not told.
    """
    def told(text: str) -> str:
        text = text.replace(str(path.resolve()), "solution.py").replace(str(path), "solution.py")
        return re.sub(rf"[^\s:]*{re.escape(path.name)}", "solution.py", text)  # where the run lay when it was reviewed

    failure = Failure(kind=failed.kind, summary=told(failed.summary), evidence=tuple(map(told, failed.evidence)),
                      log=told(failed.log))
    return request.model_copy(update={"role": "repairer", "failure": failure, "source": source,
                                      "parent_source": request.source})

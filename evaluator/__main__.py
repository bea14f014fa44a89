"""`python -m evaluator [SANDBOX [TASK]]`: one request as JSON on stdin, the answer as one line of JSON on stdout.

TASK is `evaluate` (a Request, an Evaluation), `check` (a CheckRequest, a CheckReport) or `shapes` (a SurveyRequest, Surveys).

Nothing else reaches stdout: file descriptor 1 is given to stderr before any other code runs. SANDBOX is what the caller
wrapped this process in, for the record.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence


def main() -> int:
    """Exit code 0 with an answer; 2 for a request that cannot be read."""
    answer = os.dup(1)
    os.dup2(2, 1)
    code, text = answer_to(sys.argv[1:], sys.stdin.buffer.read())
    with os.fdopen(answer, "w", encoding="utf-8") as out:
        out.write(text)
    return code


def answer_to(arguments: Sequence[str], payload: bytes) -> tuple[int, str]:
    """(exit code, what goes to stdout) for the command line's arguments and stdin."""
    from pydantic import ValidationError

    given = list(arguments[:2])
    sandbox, task = [*given, *("rlimits", "evaluate")[len(given):]]
    try:
        return 0, answered(task, payload, sandbox) + "\n"
    except ValidationError as error:
        print(f"evaluator: stdin holds no Request: {error}", file=sys.stderr)
        return 2, ""


def answered(task: str, payload: bytes, sandbox: str) -> str:
    """One line of JSON. Raises pydantic.ValidationError for a payload that is no request of that task."""
    if task == "check":
        from evaluator.checking.checker import check_here
        from evaluator.checking.types import CheckRequest

        return check_here(CheckRequest.model_validate_json(payload), sandbox).to_json()
    if task == "shapes":
        from evaluator.shape_survey import SurveyRequest, survey_here

        return survey_here(SurveyRequest.model_validate_json(payload)).model_dump_json()
    from evaluator.types import Request
    from evaluator.worker import evaluate_here

    return evaluate_here(Request.model_validate_json(payload), sandbox).to_json()


if __name__ == "__main__":
    sys.exit(main())

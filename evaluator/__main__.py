"""`python -m evaluator [SANDBOX]`: one Request as JSON on stdin, one Evaluation as one line of JSON on stdout.

Nothing else reaches stdout: file descriptor 1 is given to stderr before any other code runs. SANDBOX is what the caller
wrapped this process in, for the record.
"""

from __future__ import annotations

import os
import sys


def main() -> int:
    """Exit code 0 with an answer; 2 for a request that cannot be read."""
    answer = os.dup(1)
    os.dup2(2, 1)
    from pydantic import ValidationError

    from evaluator.types import Request
    from evaluator.worker import evaluate_here

    try:
        request = Request.model_validate_json(sys.stdin.buffer.read())
    except ValidationError as error:
        print(f"evaluator: stdin holds no Request: {error}", file=sys.stderr)
        return 2
    evaluation = evaluate_here(request, sys.argv[1] if len(sys.argv) > 1 else "rlimits")
    with os.fdopen(answer, "w", encoding="utf-8") as out:
        out.write(evaluation.to_json() + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())

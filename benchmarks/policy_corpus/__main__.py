"""`python -m benchmarks.policy_corpus kernels` makes the fact sets of the measured kernels again (compiles, models: minutes);
`... runs FOLDER...` those of run folders; `... report` writes decisions.md, steps.md and nsight.md from the committed sets;
`... report --rules DIR...` prints what rules in folders of one's own would change, and writes nothing."""

from __future__ import annotations

import sys
from pathlib import Path

from benchmarks.policy_corpus import facts, kernels, report, runs


def main(words: list[str]) -> int:
    """The exit code."""
    match words:
        case ["kernels"]:
            print(facts.write(facts.FOLDER / "h200.jsonl", kernels.recorded()), "recorded",
                  facts.write(facts.FOLDER / "modelled.jsonl", kernels.simulated()), "modelled")
        case ["runs", *folders]:
            print(facts.write(facts.FOLDER / "runs.jsonl", runs.decisions([Path(f) for f in folders])), "decisions")
        case ["report"]:
            report.write()
        case ["report", "--rules", *folders] if folders:
            print("\n".join(report.compared([Path(f) for f in folders])))
        case _:
            print(__doc__)
            return 2
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

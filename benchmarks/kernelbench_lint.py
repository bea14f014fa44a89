"""The lint of all KernelBench problems as committed facts, and docs/kernelbench-lint.md from them.

`python -m benchmarks.kernelbench_lint build LINT.jsonl` joins what `kernelskill task check DIR --out LINT.jsonl` found on a CPU
at reduced sizes with the null candidates that were tried on a GPU at the full sizes (`python -m benchmarks.h200 kernelbench
--nulls`), and writes `results/kernelbench_lint.json`; `render` writes the page. No line of KernelBench is copied.
"""

from __future__ import annotations

import json
import sys
from collections import Counter
from pathlib import Path
from typing import Any

from benchmarks.examples import RESULTS, ROOT
from evaluator.lint.findings import findings_of, verdict_of
from evaluator.lint.report import LintReport
from evaluator.lint.shipped import Shipped
from kernelskill.report.lint import SAYS
from kernelskill.suites.lint import recorded

RECORD = RESULTS / "kernelbench_lint.json"
CARD = RESULTS / "h200" / "kernelbench.json"
PAGE = ROOT / "docs" / "kernelbench-lint.md"
VERSION = "ScalingIntelligence/KernelBench, commit 423217d (2026-03-05)"


def ids(text: str) -> frozenset[str]:
    """`1: 8 12; 2: 9` -> keys."""
    groups = (group.split(":") for group in text.split(";"))
    return frozenset(f"{level.strip()}/{number}" for level, numbers in groups for number in numbers.split())


OTHERS = {
    "METR's filter (KernelBenchFiltered, 2025: outputs near zero or constant, low variation, state between calls)": ids(
        "1: 8 12 23 37 39 50 77 90 95 97; 2: 9 13 23 27 36 38 41 44 45 49 58 66 77 80 83 84 89 91 93 96; "
        "3: 3 5 7 11 12 18 28 32 34 35 45 46 47"),
    "KernelBench pull request 108 (2025-12: constant outputs, redundant operators)": ids(
        "2: 7 23 44 80 81 83 95; 3: 36 37 49"),
    "robust-kbench's filter_results.json (2025, levels 1 and 2: output range, standard deviation, impact of inputs)": ids(
        "1: 23 37 38 39 50 94 96 97 98; 2: 9 13 23 27 36 41 44 48 49 58 66 80 84 88 89 91 96"),
}
"""Problems that others set aside. The problems' sizes, and some of their code, have changed since."""


def build(lint: Path) -> dict[str, Any]:
    """The record of all problems."""
    card = json.loads(CARD.read_text(encoding="utf-8")) if CARD.exists() else {"problems": {}, "provenance": {}}
    reports = {key: joined(report, card["problems"].get(key, {})) for key, report in recorded(lint).items()}
    ordered = sorted(reports, key=lambda key: tuple(map(int, key.split("/"))))
    return {
        "kernelbench": VERSION, "full_size_on": card["provenance"], "problems": {key: facts(reports[key]) for key in ordered},
    }


def joined(report: LintReport, row: dict[str, Any]) -> LintReport:
    """The CPU's report with the full-size null candidates in place of the reduced ones, judged again."""
    fields: dict[str, Any] = {}
    if "shipped" in row:
        fields["shipped"] = Shipped.model_validate(row["shipped"])
        fields["ours"] = {name: seen for name, seen in report.ours.items() if name in fields["shipped"].nulls}
        fields["notes"] = tuple(note for note in report.notes if not note.startswith("null candidates"))
    whole = report.model_copy(update=fields)
    whole = whole.model_copy(update={"findings": findings_of(whole)})
    return whole.model_copy(update={"verdict": verdict_of(whole)})


def facts(report: LintReport) -> dict[str, Any]:
    """What of a report is kept: the verdict, the evidence's numbers, the messages."""
    shipped, needless = report.shipped, report.needless
    nulls = shipped.nulls if shipped else {}
    return {
        "name": report.task, "verdict": report.verdict, "set_aside": report.set_aside,
        "full_size": bool(shipped and shipped.full_size), "check_sizes": report.check_sizes, "sol_us": report.sol_us,
        "cost": report.cost.model_dump() if report.cost else None,
        "output_rms": _short(shipped.output_rms) if shipped else None,
        "nulls": {
            name: {"passes": seen.passes, "passes_loose": seen.passes_loose, "max_error": _short(seen.max_error)}
            for name, seen in nulls.items() if seen.passes or seen.passes_loose
        },
        "ours": {name: {"refused": seen.refused, "cases": seen.cases} for name, seen in report.ours.items()},
        "needless": needless.model_dump(mode="json", exclude={"operators"}, exclude_defaults=True) if needless else None,
        "findings": [[finding.code, finding.message] for finding in report.findings], "notes": list(report.notes),
    }


def _short(value: float) -> float:
    return float(f"{value:.4g}")


def page(record: dict[str, Any]) -> str:
    """The Markdown page of a record."""
    problems = record["problems"]
    full = sum(row["full_size"] for row in problems.values())
    device = record["full_size_on"].get("device") or "a GPU"
    about = (
        f"Written by `python -m benchmarks.kernelbench_lint render` from `benchmarks/results/kernelbench_lint.json`: "
        f"{len(problems)} problems of {record['kernelbench']}. Null candidates were tried under KernelBench's own check (its "
        f"inputs, absolute and relative tolerance 1e-4) at the full sizes on {device} for {full} of them, the others at "
        "reduced sizes on a CPU; needless work was looked for on a CPU. What the words mean: [kernelbench.md](kernelbench.md).")
    lines = [
        "# Which KernelBench problems can tell right from wrong", "", about, "",
        *_totals(problems), "", "## Compared with other lists", "", *_compared(problems), "", "## Problems set aside", "",
        *_aside(problems), "", "## Other findings", "", *_rest(problems), "", "## Not finished", "", *_unfinished(problems),
    ]
    return "\n".join(lines) + "\n"


def _totals(problems: dict[str, Any]) -> list[str]:
    lines = ["| level | problems | clean | set aside | unjudgeable as shipped | unjudgeable by ours too | not checked | "
             "with check sizes |", "| --- |" + " ---: |" * 7]
    for level in ("1", "2", "3"):
        rows = [row for key, row in problems.items() if key.startswith(f"{level}/")]
        verdicts = Counter(row["verdict"] for row in rows)
        cells = [len(rows), sum(not row["set_aside"] for row in rows), sum(row["set_aside"] for row in rows),
                 verdicts["unjudgeable_as_shipped"], verdicts["unjudgeable"], verdicts["not_checked"],
                 sum(row["check_sizes"] > 0 for row in rows)]
        lines.append(f"| {level} | " + " | ".join(map(str, cells)) + " |")
    return lines


def _compared(problems: dict[str, Any]) -> list[str]:
    ours = frozenset(key for key, row in problems.items() if row["set_aside"])
    lines = ["| list | its problems | of these set aside here | only in that list |", "| --- | ---: | ---: | --- |"]
    for name, theirs in OTHERS.items():
        only = sorted(theirs - ours, key=lambda key: tuple(map(int, key.split("/"))))
        why = ", ".join(f"{key} ({_why_not(problems.get(key))})" for key in only)
        lines.append(f"| {name} | {len(theirs)} | {len(theirs & ours)} | {why} |")
    mine = ours - frozenset().union(*OTHERS.values())
    lines.append(f"\nSet aside here and in none of these lists: {', '.join(_ordered(mine)) or 'none'}.")
    return lines


def _why_not(row: dict[str, Any] | None) -> str:
    if row is None:
        return "not checked"
    loose = [name for name, seen in row["nulls"].items() if seen["passes_loose"]]
    return f"at 1e-2 only: {', '.join(loose)}" if loose else "no null candidate passes"


def _ordered(keys: frozenset[str]) -> list[str]:
    return sorted(keys, key=lambda key: tuple(map(int, key.split("/"))))


def _aside(problems: dict[str, Any]) -> list[str]:
    lines = ["| problem | verdict | evidence |", "| --- | --- | --- |"]
    for key, row in problems.items():
        if row["set_aside"]:
            evidence = "; ".join(f"{code}: {message}" for code, message in row["findings"]) or "; ".join(row["notes"])
            lines.append(f"| {key} {row['name'].split('_', 1)[1]} | {SAYS[row['verdict']]} | {_cell(evidence)} |")
    return lines


def _rest(problems: dict[str, Any]) -> list[str]:
    lines = ["| problem | finding |", "| --- | --- |"]
    for key, row in problems.items():
        if not row["set_aside"] and row["findings"]:
            lines.append(f"| {key} | {_cell('; '.join(f'{code}: {message}' for code, message in row['findings']))} |")
    return lines


def _unfinished(problems: dict[str, Any]) -> list[str]:
    """Problems for which a CPU had not the time for everything; their null candidates under the own check are complete."""
    work = [key for key, row in problems.items() if row["needless"] is None]
    random = {key for key, row in problems.items() if any(code == "random" for code, _ in row["findings"])}
    ours = [key for key, row in problems.items() if not row["ours"] and key not in random]
    return [f"Needless work was not looked for (no time on the CPU): {', '.join(work) or 'none'}. Null candidates did not go "
            f"before our judge: {', '.join(ours) or 'none'}."]


def _cell(text: str) -> str:
    return text.replace("|", "/").replace("\n", " ")


def main(argv: list[str]) -> int:
    """`build LINT.jsonl` or `render`."""
    if argv[:1] == ["build"] and len(argv) == 2:
        record = build(Path(argv[1]))
        rows = ",\n".join(f" {json.dumps(key)}: {json.dumps(row)}" for key, row in record.pop("problems").items())
        head = json.dumps(record, indent=1).removesuffix("\n}")
        RECORD.write_text(f'{head},\n "problems": {{\n{rows}\n }}\n}}\n', encoding="utf-8")
    elif argv != ["render"]:
        print(__doc__)
        return 2
    PAGE.write_text(page(json.loads(RECORD.read_text(encoding="utf-8"))), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

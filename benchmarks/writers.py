"""Real writers at KernelBench tasks: `python -m benchmarks.writers add NAME BATCH...` and `... render`.

`add` reads the runs of batch folders (`kernelskill requests`), takes every decision again, and writes one row a task into
`results/writers/NAME.json` and the journals into `results/writers/NAME.tar.xz`, with the rules that decided and the
evaluations; without task files and prompts, which hold the problems' source. `render` puts the tables between the markers of
docs/writers.md. An archived run replays with `kernelskill replay runs/X --builtin rules`.
"""

from __future__ import annotations

import json
import re
import sys
import tarfile
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from benchmarks.examples import RESULTS, ROOT
from benchmarks.h200.provenance import commit, versions
from kernelskill.memory.run import Run
from kernelskill.model import Attempt
from kernelskill.paths import rules_folder
from kernelskill.report.audit import replay_run
from kernelskill.suites.lint import known
from kernelskill.suites.rows import row_of

FOLDER, PAGE = RESULTS / "writers", ROOT / "docs" / "writers.md"
KEPT = ("run.json", "journal.jsonl", "best.py", "store")
"""Of a run folder."""
MARKERS = re.compile(r"(<!-- real writers:begin -->\n).*?(<!-- real writers:end -->)", re.S)
FAILURES = ("failed", "not_written", "duplicate")
HEADER = ("task", "set aside", "outcome", "first solutions", "rounds", "improved", "failed", "repaired", "off-method", "time",
          "from", "over the start", "over the best torch", "class", "methods of the best")
LEFT_OUT = {"seconds", "run", "task"}


def row(folder: Path, lint: dict[str, Any]) -> dict[str, Any]:
    """What came of one run."""
    run = Run.open(folder)
    key = _key(Path(run.config.task))
    count, difference = replay_run(folder)
    return {
        **row_of(key, run, "", lint.get(key), 0.0).model_dump(mode="json", exclude=LEFT_OUT),
        "name": folder.name, "device": run.config.device.name, "mode": run.config.mode, "stop": run.stop_reason,
        "allow_library": list(run.config.allow_library), "ablation": run.config.ablation, "baselines": _baselines(run),
        "attempts": _outcomes(run), "decisions": count, "replayed": not difference, "difference": difference,
    }


def _key(task: Path) -> str:
    """`2/77` for .../level2/77_ConvTranspose3d_....py."""
    return f"{task.parent.name.removeprefix('level')}/{task.stem.split('_')[0]}"


def _baselines(run: Run) -> dict[str, Any]:
    rows = run.final[1].baselines if run.final else ()
    return {str(each.name): each.model_dump(mode="json") for each in rows}


def _outcomes(run: Run) -> dict[str, int]:
    """How the written modules fared; a repair counts apart from what it mends."""
    attempts: Sequence[Attempt] = run.graph.attempts
    own = [attempt for attempt in attempts if not attempt.repair]
    first = [attempt for attempt in run.seeds if not attempt.repair]
    repairs = [attempt for attempt in (*run.seeds, *attempts) if attempt.repair]
    counts = Counter(attempt.outcome for attempt in own)
    return {
        "first": len(first), "first_failed": sum(map(_failed, first)),
        "written": len(own), "improved": counts["improved"], "off_method": counts["off_method"],
        "failed": sum(map(_failed, own)), "repairs": len(repairs), "repaired": sum(not _failed(a) for a in repairs),
    }


def _failed(attempt: Attempt) -> bool:
    return attempt.outcome in FAILURES


def add(name: str, batches: Iterable[Path]) -> None:
    """Writes the record and the archive of these batches."""
    lint = known(RESULTS / "kernelbench_lint.json")
    runs = [path.parent for batch in batches for path in sorted((batch / "runs").glob("*/run.json"))]
    rows = sorted((row(folder, lint) for folder in runs), key=lambda each: [int(part) for part in each["key"].split("/")])
    FOLDER.mkdir(exist_ok=True)
    record = {"commit": commit(), "versions": versions(), "rows": rows}
    (FOLDER / f"{name}.json").write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
    with tarfile.open(FOLDER / f"{name}.tar.xz", "w:xz") as archive:
        archive.add(rules_folder(), "rules", filter=_plain)
        for folder in runs:
            for part in KEPT:
                if (folder / part).exists():
                    archive.add(folder / part, f"runs/{folder.name}/{part}", filter=_plain)


def _plain(entry: tarfile.TarInfo) -> tarfile.TarInfo:
    """The same bytes whoever makes it, and whenever."""
    entry.uid = entry.gid = entry.mtime = 0
    entry.uname = entry.gname = ""
    return entry


def render() -> None:
    """Puts the tables of all records into docs/writers.md."""
    records = [json.loads(path.read_text(encoding="utf-8")) for path in sorted(FOLDER.glob("*.json"))]
    text = "\n".join(line for record in records for line in table(record))
    page = MARKERS.sub(lambda found: f"{found[1]}{text}\n{found[2]}", PAGE.read_text(encoding="utf-8"))
    PAGE.write_text(page, encoding="utf-8")


def table(record: dict[str, Any]) -> list[str]:
    """Markdown lines of one record."""
    rows = record["rows"]
    solved, total = [each for each in rows if each["outcome"] == "solved"], Counter()
    for each in rows:
        total.update(each["attempts"])
    modules = total["first"] + total["written"] + total["repairs"]
    decisions = sum(each["decisions"] for each in rows)
    times = "modelled" if rows[0]["mode"] == "sim" else "measured"
    again = "all" if all(each["replayed"] for each in rows) else "not all"
    return [
        f"{len(solved)} of {len(rows)} solved on {rows[0]['device']} ({times} times), commit {record['commit']}; "
        f"{modules} modules written, {total['off_method']} of {total['written']} optimisation steps off-method, "
        f"{total['repaired']} of {total['repairs']} repairs right; {decisions} decisions, {again} the same when "
        "taken again.", "",
        f"| {' | '.join(HEADER)} |", f"| {' | '.join('---' for _ in HEADER)} |", *map(_line, rows), "",
    ]


def _line(each: dict[str, Any]) -> str:
    attempts, speedups = each["attempts"], each["speedups"]
    cells = (
        f"{each['key']} {each['name']}", {True: "yes", False: "no", None: ""}[each["set_aside"]], each["outcome"],
        f"{attempts['first']}, {attempts['first_failed']} failed" if attempts["first"] else "built in", each["rounds"],
        attempts["improved"], attempts["failed"], f"{attempts['repaired']} of {attempts['repairs']}", attempts["off_method"],
        f"{each['time_us']:.1f} µs" if each["time_us"] else "", each["provenance"], _ratio(speedups.get("start")),
        f"{_ratio(speedups.get('best_torch'))} {each['best_torch']}".strip(), each["precision_class"] or "",
        " → ".join(each["methods"]))
    return f"| {' | '.join(map(str, cells))} |"


def _ratio(value: float | None) -> str:
    return f"{value:.2f}×" if value else ""


if __name__ == "__main__":
    if len(sys.argv) > 3 and sys.argv[1] == "add":
        add(sys.argv[2], map(Path, sys.argv[3:]))
    render()

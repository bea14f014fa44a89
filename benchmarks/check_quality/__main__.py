"""`python -m benchmarks.check_quality [--seeds N] [--only WORD] [--device cuda] [--out FILE]`: the proof, a line a check.

With `--out`, every check is kept in FILE.jsonl as it ends: the same command goes on where it was stopped, and several may work
on one file (`--part 0/2`, `--part 1/2`). The first seed draws `--examples`, the others of the right kernels `--fewer`.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
import tempfile
import time
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from benchmarks.check_quality.corpus import Entry, entries
from benchmarks.check_quality.rows import Row, read_rows, record, row_of, table
from evaluator.checking.process import check
from evaluator.checking.types import CheckReport, CheckRequest
from evaluator.types import DeviceSpec, Mode, Request
from kernelskill.assembly import Options, choose_device

RESULT = Path(__file__).resolve().parents[1] / "results" / "check_quality.json"


@dataclass(frozen=True)
class Bench:
    """Where and how the kernels are checked."""

    device: DeviceSpec
    mode: Mode
    limit: float
    """Seconds that one check may take, by the clock."""

    def check(self, entry: Entry, seed: int, examples: int) -> CheckReport:
        """One check of one kernel."""
        with tempfile.TemporaryDirectory() as name:
            path = Path(name) / "solution.py"
            path.write_text(entry.source, encoding="utf-8")
            request = Request(task=entry.task, solution=str(path), mode=self.mode, device=self.device, timeout_s=self.limit,
                              seed=seed)
            return check(CheckRequest(request=request, examples=examples))

    def row(self, entry: Entry, seed: int, examples: int) -> Row:
        """The check as a row."""
        return row_of(entry, self.check(entry, seed, examples), seed, examples)


def main() -> int:
    """Runs the proof; exit code 1 where a fault was missed or a right kernel blamed."""
    given = _parser().parse_args()
    mode, device = choose_device(Options(device=given.device))
    bench, until = Bench(device, mode, given.limit), time.monotonic() + given.seconds
    log = given.out.with_suffix(".jsonl") if given.out else None
    with tempfile.TemporaryDirectory() as name:
        wanted = [entry for entry in entries(Path(name)) if given.only in entry.name]
        rows = _still_true(read_rows(log) if log else [], wanted)
        known = {(row["kernel"], row["seed"]) for row in rows if row["examples"] >= _examples(given, row["seed"])}
        for entry, seed in _turns(wanted, given.seeds, given.part):
            if (entry.name, seed) in known or time.monotonic() > until:
                continue
            rows.append(bench.row(entry, seed, _examples(given, seed)))
            print(json.dumps(rows[-1]), flush=True)
            if log:
                with log.open("a", encoding="utf-8") as file:
                    file.write(json.dumps(rows[-1]) + "\n")
    result = record(rows, _command(given), mode)
    print("\n".join(table(result)))
    if given.out:
        given.out.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
    return 1 if result["summary"]["missed"] or result["summary"]["false_alarms"] else 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.check_quality", description=__doc__)
    parser.add_argument("--seeds", type=int, default=1, help="seeds for the right kernels")
    parser.add_argument("--only", default="", help="kernels whose name holds this")
    parser.add_argument("--part", default="0/1", help="0/3, 1/3, 2/3: a third of the kernels")
    parser.add_argument("--examples", type=int, default=100, help="random examples of the first seed")
    parser.add_argument("--fewer", type=int, default=None, help="of the others  [default: as many]")
    parser.add_argument("--device", choices=["sim", "cuda"], default="sim")
    parser.add_argument("--limit", type=float, default=120, help="seconds that one check may take, by the clock")
    parser.add_argument("--seconds", type=float, default=math.inf, help="begin no check after that")
    parser.add_argument("--out", type=Path, default=None, help=f"e.g. {RESULT}")
    return parser


def _command(given: argparse.Namespace) -> str:
    """The line that makes the whole record."""
    wanted = {"--seeds": given.seeds, "--examples": given.examples, "--fewer": given.fewer, "--only": given.only or None,
              "--device": None if given.device == "sim" else given.device}
    return " ".join(["python -m benchmarks.check_quality", *(f"{k} {v}" for k, v in wanted.items() if v is not None)])


def _examples(given: argparse.Namespace, seed: int) -> int:
    return int(given.examples if seed == 0 or given.fewer is None else given.fewer)


def _turns(wanted: list[Entry], seeds: int, part: str) -> Iterator[tuple[Entry, int]]:
    """The first seed of every kernel, then the second of every right one, ...: stopped anywhere, all have had their turns."""
    index, _, count = part.partition("/")
    mine = [entry for entry in wanted if zlib.crc32(entry.name.encode()) % int(count) == int(index)]
    for seed in range(seeds):
        yield from ((entry, seed) for entry in mine if seed == 0 or entry.kind == "honest")


def _still_true(rows: list[Row], wanted: list[Entry]) -> list[Row]:
    """The rows of a log that are of the present kernels, the last of each kernel and seed."""
    present = {(entry.name, entry.digest) for entry in wanted}
    kept = {(row["kernel"], row["seed"]): row for row in rows if (row["kernel"], row["digest"]) in present}
    return list(kept.values())


if __name__ == "__main__":
    sys.exit(main())

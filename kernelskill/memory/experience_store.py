"""The store of experience: one SQLite file, safe for several runs at once, that takes each round of a run once."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from pydantic import ValidationError

from evaluator.types import Frozen, Mode
from kernelskill.errors import ExperienceError, Location
from kernelskill.memory.attempts import verdict
from kernelskill.memory.experience import BOTTLENECK, UNCOUNTED, Outcome, Snapshot, rows_of
from kernelskill.memory.run import Run
from kernelskill.memory.store import digest_of
from kernelskill.model import Decision
from kernelskill.paths import user_experience

VERSION = 1
USER = "user"
"""The name of the per-user store."""
WAIT_S = 30.0
"""How long a writer waits for another one; a transaction lasts milliseconds."""
SCHEMA = """
CREATE TABLE IF NOT EXISTS outcome (
    run TEXT NOT NULL, round INTEGER NOT NULL, method TEXT NOT NULL, bottlenecks TEXT NOT NULL, device TEXT NOT NULL,
    mode TEXT NOT NULL, family TEXT NOT NULL, success INTEGER NOT NULL, gain REAL, PRIMARY KEY (run, round)
) WITHOUT ROWID
"""
COLUMNS = tuple(Outcome.model_fields)
KEYS = ("method", "device", "mode", "family", "run")
"""What outcomes can be selected by."""


class Exported(Frozen):
    """A store as JSON."""

    version: int = VERSION
    outcomes: tuple[Outcome, ...]


class ExperienceStore:
    """Outcomes in a SQLite file. Every method raises ExperienceError naming the file when it cannot be used."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def add(self, outcomes: Iterable[Outcome]) -> int:
        """Add what is not there yet; how many were new."""
        rows = [_as_row(outcome) for outcome in outcomes]
        places = ", ".join("?" * len(COLUMNS))
        with self._connection(create=True) as db:
            before = db.total_changes
            db.executemany(f"INSERT OR IGNORE INTO outcome ({', '.join(COLUMNS)}) VALUES ({places})", rows)
            return db.total_changes - before

    def outcomes(self, **equal: str) -> list[Outcome]:
        """All outcomes, or those whose `KEYS` have these values, oldest run first; [] where there is no file yet."""
        if not self.path.exists():
            return []
        where, values = _where(equal)
        with self._connection() as db:
            found = db.execute(f"SELECT {', '.join(COLUMNS)} FROM outcome{where} ORDER BY run, round", values).fetchall()
        return [self._outcome(row) for row in found]

    def forget(self, **equal: str) -> int:
        """Remove the outcomes whose `KEYS` have these values (all, without any); how many there were."""
        if not self.path.exists():
            return 0
        where, values = _where(equal)
        with self._connection() as db:
            return db.execute(f"DELETE FROM outcome{where}", values).rowcount

    def snapshot(self, name: str, device: str, mode: Mode, family: str) -> Snapshot:
        """The counts for one device, mode and family; `name` is what the store is called in the run."""
        rows = rows_of(self.outcomes(device=device, mode=mode, family=family))
        return Snapshot(store=name, device=device, mode=mode, family=family, rows=rows)

    @contextmanager
    def _connection(self, create: bool = False) -> Iterator[sqlite3.Connection]:
        """One transaction: committed as a whole, or not at all."""
        try:
            with closing(sqlite3.connect(self.path, timeout=WAIT_S, isolation_level=None)) as db:
                db.execute("BEGIN IMMEDIATE" if create else "BEGIN")
                self._prepare(db, create)
                with db:
                    yield db
        except (sqlite3.Error, OSError) as error:
            raise ExperienceError(f"the experience store cannot be used: {error}", location=Location(self.path),
                                  hint="move the file away (a new one is made), or give another one") from error

    def _prepare(self, db: sqlite3.Connection, create: bool) -> None:
        version = db.execute("PRAGMA user_version").fetchone()[0]
        if version == 0 and create:
            db.execute(SCHEMA)
            db.execute(f"PRAGMA user_version = {VERSION}")
        elif version != VERSION:
            raise ExperienceError(f"this is no experience store of format {VERSION} (it says {version})",
                                  location=Location(self.path), hint="give another file")

    def _outcome(self, row: tuple[object, ...]) -> Outcome:
        data = dict(zip(COLUMNS, row, strict=True))
        try:
            return Outcome.model_validate({**data, "bottlenecks": str(data["bottlenecks"]).split(","),
                                           "success": bool(data["success"])})
        except ValidationError as error:
            raise ExperienceError(f"an outcome cannot be read: {error.errors()[0]['msg']}", location=Location(self.path),
                                  hint="move the file away (a new one is made), or give another one") from error


def _as_row(outcome: Outcome) -> tuple[object, ...]:
    data = outcome.model_dump() | {"bottlenecks": ",".join(outcome.bottlenecks), "success": int(outcome.success)}
    return tuple(data[name] for name in COLUMNS)


def _where(equal: dict[str, str]) -> tuple[str, tuple[str, ...]]:
    assert equal.keys() <= set(KEYS)
    clause = " AND ".join(f"{name} = ?" for name in equal)
    return (f" WHERE {clause}" if clause else ""), tuple(equal.values())


def store_named(name: str) -> ExperienceStore:
    """The per-user store for `user`, whose folder is made, otherwise the file of that path. Raises ExperienceError."""
    path = user_experience() if name == USER else Path(name)
    try:
        if name == USER:
            path.parent.mkdir(parents=True, exist_ok=True)
        elif not path.parent.is_dir():
            raise ExperienceError("there is no such folder", location=Location(path.parent), hint="make it, or name another")
    except OSError as error:
        raise ExperienceError(f"no folder for your store: {error.strerror}", location=Location(path.parent),
                              hint="give a file with --experience FILE") from None
    return ExperienceStore(path)


def outcomes_of(run: Run) -> list[Outcome]:
    """What a run's rounds brought, in order; those that say nothing of their method are left out, and runs without rules."""
    name = run_identity(run)
    return [outcome for round_, _, decision in run.decisions if (outcome := _outcome(run, name, round_, decision))]


def _outcome(run: Run, name: str, round_: int, decision: Decision) -> Outcome | None:
    """A round's outcome: a repair that went well stands for what it mended."""
    attempts = run.graph.of_round(round_)
    attempt = verdict(attempts) if attempts and run.config.long_term else None
    if attempt is None or attempt.outcome in UNCOUNTED:
        return None
    limits = tuple(sorted(fact.removeprefix(BOTTLENECK) for fact in decision.derived if fact.startswith(BOTTLENECK)))
    family = decision.facts.get("task_family")
    return Outcome(run=name, round=round_, method=attempt.method.method, bottlenecks=limits or ("none",),
                   device=run.config.device.name, mode=run.config.mode, family=str(family.value) if family else "",
                   success=attempt.outcome == "improved", gain=attempt.gain)


def run_identity(run: Run) -> str:
    """Digest of what was asked and when; a copy of the run folder is the same run."""
    first = next(run.journal.events())
    return digest_of(first.time + run.config.model_dump_json())


def read_export(path: Path) -> list[Outcome]:
    """Outcomes that `export` wrote. Raises ExperienceError naming what is wrong."""
    try:
        exported = Exported.model_validate(json.loads(path.read_text(encoding="utf-8")))
    except (ValueError, OSError) as error:
        detail = error.errors()[0] if isinstance(error, ValidationError) else None
        problem = f"{'.'.join(map(str, detail['loc']))}: {detail['msg']}" if detail else str(error)
        raise ExperienceError(f"this file holds no exported experience: {problem}", location=Location(path),
                              hint="give a file written by `kernelskill experience export`, or a run folder") from None
    if exported.version != VERSION:
        raise ExperienceError(f"this export has format {exported.version}, this program reads {VERSION}",
                              location=Location(path), hint="export it again with this version of kernelskill")
    return list(exported.outcomes)

"""A run on disk: `run.json` (what was asked), `task/` (a copy of the task), `journal.jsonl`, `store/`.

Opened again, it goes on where the journal ends.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from pydantic import ValidationError

from evaluator.types import BaselineName, DeviceSpec, Evaluation, Frozen, Mode, Shapes, Status
from kernelskill.config import ModelSettings
from kernelskill.errors import Location, RunError, RunHeldError
from kernelskill.memory.attempts import AttemptGraph
from kernelskill.memory.experience import Snapshot
from kernelskill.memory.journal import Event, Journal
from kernelskill.memory.store import Store, solution_digest
from kernelskill.model import Attempt, Decision, Fact, ModelCall, Usage

SOURCE, EVALUATION, FINAL = ".py", ".eval.json", ".final.json"
BEST = "best.py"
"""The best solution so far, as a file of the run folder."""
MAX_TASK_BYTES = 64 * 2**20


class RunConfig(Frozen):
    """What a run was asked to do; fixed when it starts."""

    task: str
    """Path of the task as the user gave it."""
    task_copy: str
    """Path of the copy, relative to the run folder."""
    mode: Mode
    device: DeviceSpec
    rounds: int
    writer: str
    timeout_s: float
    rules: tuple[str, ...] = ()
    """Extra rule folders."""
    allow_library: tuple[str, ...] = ()
    """Operators that may stay library code, beside the task's own."""
    allow: tuple[str, ...] = ()
    """Precision classes that are permitted, beside the task's own."""
    shapes: Shapes = "general"
    """Which sizes solutions are judged on."""
    baselines: tuple[BaselineName, ...] = ()
    """Mode cuda: what the best solution is compared with at the end."""
    versions: dict[str, str]
    seeds: int = 0
    """First solutions that the writer makes of a task that brings none."""
    repairs: int = 0
    """Repairs that a failed attempt gets at most."""
    off_method: Literal["reject", "relabel"] = "reject"
    """What becomes of right and faster code that is not the method's: nothing, or an attempt of the method that it is."""
    policy: Literal["rules", "random"] = "rules"
    policy_seed: int = 2026
    """Seed of the random policy."""
    long_term: bool = True
    """False: neither rules nor cards; the writer chooses from the catalogue."""
    short_term: bool = True
    """False: neither rules nor writer know what was tried."""
    model: ModelSettings | None = None
    """The language models that write; None for other writers."""
    experience: Snapshot | None = None
    """What earlier runs taught, as it was when the run started; None: experience is not used."""


    @property
    def ablation(self) -> str:
        """What this run does without, for tables; "" for the whole system."""
        return ablation(self.long_term, self.short_term, self.policy, self.policy_seed)


def ablation(long_term: bool, short_term: bool, policy: str, policy_seed: int) -> str:
    """What is left out by these settings, in words."""
    parts = [("no long-term memory", not long_term), ("no short-term memory", not short_term),
             (f"random policy, seed {policy_seed}", policy == "random")]
    return "; ".join(text for text, holds in parts if holds)


@dataclass
class Run:
    """An open run. Everything that must survive a kill goes through its methods."""

    folder: Path
    config: RunConfig
    journal: Journal
    store: Store
    graph: AttemptGraph
    decisions: list[tuple[int, str, Decision]]
    """(round, solution digest, decision), in order."""
    stop_reason: str = ""
    final: tuple[str, Evaluation] | None = None
    """(digest of the best solution, its measurement on fresh samples beside the baselines)."""
    seeds: list[Attempt] = field(default_factory=list)
    """First solutions that the writer made and their repairs, before there was a start."""
    calls: list[ModelCall] = field(default_factory=list)
    """Questions to language models, in order."""

    @classmethod
    def create(cls, folder: Path, config: RunConfig, task_files: Path) -> Run:
        """Start a run in a new or empty folder; raises RunError when the folder is in use."""
        if folder.exists() and any(folder.iterdir()) and not _cut_short(folder):
            raise RunError("this folder is not empty", location=Location(folder),
                           hint="give another --out, or go on with that run: kernelskill optimize --resume " + str(folder))
        folder.mkdir(parents=True, exist_ok=True)
        _copy_task(task_files, folder / config.task_copy)
        run = cls(folder, config, Journal(folder / "journal.jsonl"), Store(folder / "store"), AttemptGraph(), [])
        run.journal.path.unlink(missing_ok=True)
        run.journal.append("run_started", versions=config.versions)
        started = folder / "run.json.new"
        started.write_text(config.model_dump_json(indent=1), encoding="utf-8")
        started.replace(folder / "run.json")  # last and at once: a folder with run.json is a whole run
        return run

    @classmethod
    def open(cls, folder: Path) -> Run:
        """Read a run back from its journal; raises RunError saying what is wrong with the folder."""
        _must_be_run(folder)
        try:
            config = RunConfig.model_validate_json((folder / "run.json").read_text(encoding="utf-8"))
        except (ValidationError, UnicodeDecodeError) as error:
            raise RunError(f"run.json cannot be read: {_first_problem(error)}", location=Location(folder / "run.json"),
                           hint="the file was changed by hand; restore it or start a new run") from None
        run = cls(folder, config, Journal(folder / "journal.jsonl"), Store(folder / "store"), AttemptGraph(), [])
        run._replay_journal()
        return run

    def _replay_journal(self) -> None:
        for event in self.journal.events():
            try:
                self._take(event)
            except (ValidationError, KeyError) as error:
                raise RunError(f"the journal's event '{event.name}' cannot be read: {_first_problem(error)}",
                               location=Location(self.journal.path, event.line),
                               hint="it was changed by hand or written by another version of kernelskill") from None

    def _take(self, event: Event) -> None:
        data = event.data
        if event.name == "start":
            self.graph.add_start(data["digest"], self.evaluation(data["digest"]))
        elif event.name == "decision":
            self.decisions.append((data["round"], data["solution"], _decision(data["decision"], self.journal.path)))
        elif event.name == "attempt":
            self.graph.record(self._attempt(data))
        elif event.name == "model_call":
            self.calls.append(ModelCall.model_validate(data["call"]))
        elif event.name == "seed":
            self.seeds.append(self._attempt(data))
        elif event.name == "final":
            self.final = (data["digest"], Evaluation.from_json(self.store.get(data["digest"], FINAL)))
        elif event.name == "run_finished":
            self.stop_reason = data["stop_reason"]

    def _attempt(self, data: Mapping[str, Any]) -> Attempt:
        attempt = Attempt.model_validate(data["attempt"])
        evaluation = self.evaluation(attempt.child) if data["evaluated"] else None
        return attempt.model_copy(update={"evaluation": evaluation})

    def source(self, digest: str) -> str:
        """A solution's text."""
        return self.store.get(digest, SOURCE)

    def source_path(self, digest: str) -> Path:
        """Where a solution's text lies."""
        return self.store.path(digest, SOURCE)

    def evaluation(self, digest: str) -> Evaluation:
        """A stored evaluation."""
        return Evaluation.from_json(self.store.get(digest, EVALUATION))

    def keep_source(self, source: str) -> str:
        """Store a solution; its digest."""
        digest = solution_digest(source)
        self.store.put(digest, source, SOURCE)
        return digest

    def keep_start(self, digest: str, evaluation: Evaluation) -> None:
        """The starting solution was evaluated."""
        self.store.put(digest, evaluation.to_json(), EVALUATION, replace=True)
        self.journal.append("start", digest=digest)
        self.graph.add_start(digest, evaluation)
        self._write_best()

    def keep_final(self, digest: str, evaluation: Evaluation) -> None:
        """The best solution was measured again, beside the baselines."""
        self.store.put(digest, evaluation.to_json(), FINAL, replace=True)
        self.journal.append("final", digest=digest)
        self.final = (digest, evaluation)

    def keep_decision(self, round_: int, solution: str, decision: Decision) -> None:
        """A decision was taken at a solution."""
        self.journal.append("decision", round=round_, solution=solution, decision=decision.model_dump(mode="json"))
        self.decisions.append((round_, solution, decision))

    def keep_undecided(self, round_: int, solution: str, facts: Mapping[str, Fact], message: str) -> None:
        """The policy failed at these facts; nothing was chosen and the round is still to be decided."""
        self.journal.append("undecided", round=round_, solution=solution, message=message,
                            facts={name: fact.model_dump(mode="json") for name, fact in facts.items()})

    def keep_attempt(self, attempt: Attempt) -> None:
        """An attempt ended."""
        self._append("attempt", attempt)
        self.graph.record(attempt)
        self._write_best()

    def keep_call(self, call: ModelCall) -> None:
        """A language model answered; the transcript is in the store."""
        self.journal.append("model_call", call=call.model_dump(mode="json", exclude_defaults=True))
        self.calls.append(call)

    def keep_seed(self, attempt: Attempt) -> None:
        """A first solution was written, or mended, and reviewed."""
        self._append("seed", attempt)
        self.seeds.append(attempt)

    def _append(self, event: str, attempt: Attempt) -> None:
        if attempt.evaluation is not None:
            self.store.put(attempt.child, attempt.evaluation.to_json(), EVALUATION, replace=True)
        self.journal.append(event, attempt=attempt.model_dump(mode="json", exclude={"evaluation"}),
                            evaluated=attempt.evaluation is not None)

    def _write_best(self) -> None:
        if self.graph.evaluation(self.graph.best).status is Status.PASSED:
            (self.folder / BEST).write_text(self.source(self.graph.best), encoding="utf-8")

    def finish(self, stop_reason: str) -> None:
        """The run is over."""
        self.journal.append("run_finished", stop_reason=stop_reason)
        self.stop_reason = stop_reason

    @property
    def position(self) -> str:
        """The solution to decide at: the best one, or half of a coupled edit at which nothing was decided yet."""
        pair = self.graph.open_pair
        if pair is None or any(solution == pair.child for _, solution, _ in self.decisions):
            return self.graph.best
        return pair.child

    @property
    def last_decision(self) -> tuple[int, str, Decision] | None:
        """The newest decision, unless the run is over."""
        return self.decisions[-1] if self.decisions and not self.stop_reason else None


def budget_facts(run: Run) -> dict[str, Fact]:
    """What is left of the run's budget for language models, in percent; no fact where it has none."""
    model = run.config.model
    if model is None:
        return {}
    spent = Usage.of(run.calls)
    shares = [used / limit for used, limit in ((spent.tokens, model.max_tokens), (spent.cost, model.max_cost)) if limit]
    name = "model_budget_left_pct"
    return {name: Fact(name=name, value=max(0.0, 100.0 * (1 - max(shares))), unit="%", provenance="history")} if shares else {}


def _must_be_run(folder: Path) -> None:
    if not (folder / "run.json").is_file():
        raise RunError("this folder is no run: it has no run.json", location=Location(folder),
                       hint="give the folder that `kernelskill optimize` printed")


@contextmanager
def held(folder: Path) -> Iterator[None]:
    """Nobody else goes on with the run in a folder meanwhile; raises RunHeldError when somebody does, RunError for no run.

    Open the run inside: what it held before may be out of date.
    """
    from filelock import FileLock, Timeout

    _must_be_run(folder)
    lock = FileLock(folder / ".lock", timeout=0)
    try:
        lock.acquire()
    except Timeout:
        raise RunHeldError("another process is working on this run", location=Location(folder),
                           hint="wait until it is done, or end it") from None
    try:
        yield
    finally:
        lock.release()


def _decision(data: Mapping[str, Any], journal: Path) -> Decision:
    """A recorded decision; raises RunError for one of a version that this program does not know."""
    known = Decision.model_fields["version"].default
    if data.get("version") != known:
        raise RunError(f"the run holds decisions of version {data.get('version')}, this program reads version {known}",
                       location=Location(journal), hint="use the version of kernelskill that made the run (run.json names it)")
    return Decision.model_validate(data)


def _first_problem(error: Exception) -> str:
    """`field: what is wrong`, of the first of pydantic's problems."""
    if isinstance(error, ValidationError):
        detail = error.errors()[0]
        return f"{'.'.join(map(str, detail['loc']))}: {detail['msg']}"
    return f"{error} is missing" if isinstance(error, KeyError) else str(error)


def _cut_short(folder: Path) -> bool:
    """A kill while a run was being created left no run.json: the folder may be used again."""
    return {path.name for path in folder.iterdir()} <= {"task", "journal.jsonl", "run.json.new"}


def _copy_task(source: Path, target: Path) -> None:
    """A copy makes the run self-contained: later edits of the task cannot change what was recorded."""
    if source.is_file():
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(source, target)
        return
    size = sum(f.stat().st_size for f in source.rglob("*") if f.is_file())
    if size > MAX_TASK_BYTES:
        raise RunError(f"the task folder holds {size / 2**20:.0f} MiB; a run keeps a copy of it and takes at most "
                       f"{MAX_TASK_BYTES // 2**20} MiB", location=Location(source), hint="move data out of the task's folder")
    shutil.copytree(source, target, ignore=shutil.ignore_patterns("__pycache__", ".git"), dirs_exist_ok=True)

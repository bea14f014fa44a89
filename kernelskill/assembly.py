"""Puts a run together from what the user asked: task, device, policy, writer, reviewer. The only place that knows all parts."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import logging
import platform
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any, Literal

from evaluator.types import BaselineName, DeviceSpec, Mode, Shapes
from kernelskill import __version__
from kernelskill.agents.generator import Generator
from kernelskill.agents.optimizer import Optimizer
from kernelskill.agents.planner import Planner
from kernelskill.agents.reviewer import Reviewer
from kernelskill.config import model_settings, reconnected
from kernelskill.errors import ExperienceError, KernelSkillError, Location, RunError
from kernelskill.expertise import rule_book
from kernelskill.facts.device import detect_device, gpu_present, load_device
from kernelskill.loop import Decider, Loop, Observer
from kernelskill.memory.experience import Snapshot
from kernelskill.memory.run import Run, RunConfig
from kernelskill.methods import load_methods
from kernelskill.model import Task
from kernelskill.paths import methods_folder
from kernelskill.policy import IsolatedPolicy
from kernelskill.policy.ablation import FreeChoice, RandomPolicy
from kernelskill.tasks import load_task
from kernelskill.writers import CodeWriter
from kernelskill.writers.free import FreeWriter
from kernelskill.writers.handoff import Waiting
from kernelskill.writers.replay import ReplayWriter, Step
from kernelskill.writers.requestbox import REQUESTS, RequestBox

CARDS_BY_ARCH = {"sm_80": "a100", "sm_89": "rtx4090", "sm_90": "h200"}
WRITERS = {"template": "template", "litellm": "litellm", "handoff": "handoff", "replay": "replay:RUN"}
FREE = ("litellm", "handoff")
"""Writers that can write a first solution, and mend one."""
LOG = logging.getLogger(__name__)
RECORDED_PACKAGES = ("numpy", "durable-rules", "networkx", "nvidia-cuda-nvrtc", "litellm", "torch", "cupy-cuda13x",
                     "cupy-cuda12x")


@dataclass(frozen=True)
class Options:
    """What `kernelskill optimize` can be told."""

    rounds: int = 15
    device: Literal["auto", "sim", "cuda"] = "auto"
    arch: str = "sm_90"
    card: str = ""
    """Device card by name or path; wins over `arch`."""
    writer: str = "template"
    rules: tuple[Path, ...] = ()
    timeout_s: float = 300.0
    experience: str = ""
    """Store of experience to use and to add to: `user`, or a file; "" for none."""
    allow_library: tuple[str, ...] = ()
    """Operators of torch and cupy that a solution may keep, beside the task's own (names or categories)."""
    allow: tuple[str, ...] = ()
    """Precision classes that are permitted, beside the task's own."""
    shapes: Shapes = "general"
    """Which sizes solutions are judged on: others than the task's own, too, or those alone (`exact`)."""
    baselines: str = ""
    """What the best solution is compared with at the end (mode cuda): names, `all`, `none`; "" for all."""
    model: Mapping[str, Any] = field(default_factory=dict)
    """Settings of the language model that were given (see config.ModelSettings)."""
    seeds: int = 2
    """First solutions that a writer makes of a task that brings none."""
    repairs: int = 2
    """Repairs of a failed attempt at most."""
    off_method: Literal["reject", "relabel"] = "reject"
    policy: Literal["rules", "random"] = "rules"
    policy_seed: int = 2026
    long_term: bool = True
    short_term: bool = True


def choose_device(options: Options) -> tuple[Mode, DeviceSpec]:
    """The mode and the device: a GPU when there is one and cupy can use it, otherwise the simulator with a card."""
    found = gpu_card(options.card) if options.device != "sim" else None
    if options.device == "cuda" and found is None:
        raise KernelSkillError("no NVIDIA GPU that cupy can use was found", hint="`kernelskill doctor` says what is missing; "
                               "--device sim runs without a GPU")
    if found is not None:
        return "cuda", found
    if not options.card and options.arch not in CARDS_BY_ARCH:
        raise KernelSkillError(f"no device card for architecture {options.arch!r} (known: {', '.join(sorted(CARDS_BY_ARCH))})",
                               hint="name a card or a card file with --card")
    return "sim", load_device(options.card or CARDS_BY_ARCH[options.arch])


def gpu_card(card: str = "") -> DeviceSpec | None:
    """The card of this machine's GPU, or the given one where there is a GPU; None where cupy cannot use any."""
    if importlib.util.find_spec("cupy") is None or not gpu_present():
        return None
    return load_device(card) if card else detect_device()


def describe(task: Task, writer: str) -> Task:
    """The task as that writer sees it: with family and operation where they are recognised. Raises KernelSkillError."""
    kind, _, recorded = writer.partition(":")
    if kind not in WRITERS or (kind == "replay") != bool(recorded):
        raise KernelSkillError(f"no writer is called {writer!r}", hint="writers: " + ", ".join(WRITERS.values()))
    if kind == "replay":
        Run.open(Path(recorded))
    from kernelskill.writers.template import TemplateWriter

    return TemplateWriter().describe(task) if kind == "template" else FreeWriter(()).describe(task)


def writer_of(run: Run, waiting: Waiting | None = None) -> CodeWriter:
    """The code writer of a run. `waiting` is told when an answer is awaited; None: the run pauses then."""
    name = run.config.writer
    if name == "template":
        from kernelskill.writers.template import TemplateWriter

        return TemplateWriter()
    if name == "handoff":
        from kernelskill.writers.handoff import HandoffWriter

        return HandoffWriter(RequestBox(run.folder / REQUESTS), load_methods(methods_folder()), waiting)
    kind, _, recorded = name.partition(":")
    if kind == "replay":
        past = Run.open(Path(recorded))
        repairs = {past.source(a.parent): past.source(a.child) for a in past.graph.attempts if a.repair and a.child}
        return ReplayWriter(past.source(past.graph.start) if past.graph.start else "", list(recorded_steps(past)), repairs)
    if name == "litellm" and run.config.model is not None:
        from kernelskill.writers.litellm import LitellmWriter

        return LitellmWriter(reconnected(run.config.model), load_methods(methods_folder()), run)
    raise RunError(f"the run's writer {name!r} is not known here", location=Location(run.folder / "run.json"),
                   hint="use the version of kernelskill that made the run")


def recorded_steps(run: Run) -> Iterator[Step]:
    """What a run's writer could do and did at each decision, in order."""
    for round_, node, decision in run.decisions:
        made = next(iter(run.graph.of_round(round_)), None)
        able = frozenset(name.removeprefix("applicable.") for name, fact in decision.facts.items()
                         if name.startswith("applicable.") and fact.value is True)
        asked = decision.chosen if made is None or made.asked else made.method
        yield Step(run.source(node), able, asked, run.source(made.child) if made and made.child else None,
                   made.message if made else "")


def task_name(task_path: Path) -> str:
    """What a task folder, its task.toml or a task file is called."""
    return task_path.resolve().parent.name if task_path.name == "task.toml" else task_path.resolve().stem


def default_folder(task_path: Path) -> Path:
    """`runs/<task>-<time>`."""
    return Path("runs") / f"{task_name(task_path)}-{datetime.now():%Y%m%d-%H%M%S}"


def create_run(task_path: Path, options: Options, folder: Path) -> Run:
    """A new run; raises KernelSkillError for anything the user can mend, before the folder exists."""
    task = load_task(task_path).allowing(options.allow_library).permitting(options.allow)
    mode, device = choose_device(options)
    family = describe(task, options.writer).family
    model = model_settings(options.model) if options.writer == "litellm" else None
    rule_book(options.rules)
    files = task_path.parent if task_path.name == "task.toml" else task_path
    config = RunConfig(
        task=str(task_path), task_copy="task" if files.is_dir() else f"task/{files.name}", mode=mode, device=device,
        rounds=options.rounds, writer=options.writer, timeout_s=options.timeout_s,
        rules=tuple(str(r.resolve()) for r in options.rules), versions=versions(),
        allow_library=options.allow_library, allow=options.allow, shapes=options.shapes,
        baselines=chosen_baselines(options.baselines or "all", task, mode) if mode == "cuda" or options.baselines else (),
        model=model, off_method=options.off_method, policy=options.policy,
        policy_seed=options.policy_seed, long_term=options.long_term, short_term=options.short_term,
        seeds=options.seeds if options.writer in FREE else 0, repairs=repairs_of(options),
        experience=known_before(options.experience, device, mode, family),
    )
    return Run.create(folder, config, files)


def repairs_of(options: Options) -> int:
    """Repairs at most: as many as the recorded run had for a replay, none for a writer that cannot mend."""
    kind, _, recorded = options.writer.partition(":")
    return Run.open(Path(recorded)).config.repairs if kind == "replay" else options.repairs if kind in FREE else 0


def chosen_baselines(names: str, task: Task, mode: Mode) -> tuple[BaselineName, ...]:
    """The baselines of a comma-separated list. Raises KernelSkillError for an unknown name, or without a GPU to time them."""
    from evaluator.baselines import UnknownBaseline, baselines_named

    try:
        found = baselines_named(names, task.spec.kind)
    except UnknownBaseline as error:
        raise KernelSkillError(f"--baselines: {error}") from None
    if found and mode != "cuda":
        raise KernelSkillError("--baselines: baselines are measured on a GPU, and this is the simulator",
                               hint="leave the option out, or use --device cuda")
    return found


@contextmanager
def start_file(task: Task, given: Path | None) -> Iterator[str]:
    """Path of the given starting solution, or of the task's own as long as the block lasts; "" where there is none."""
    with tempfile.TemporaryDirectory(prefix="kernelskill-") as folder:
        path = given.resolve() if given else Path(folder) / "start.py"
        if given is None and task.start_source:
            path.write_text(task.start_source, encoding="utf-8")
        yield str(path) if path.is_file() else ""


def known_before(store: str, device: DeviceSpec, mode: Mode, family: str) -> Snapshot | None:
    """What a store of experience says of this device and family; one that cannot be read is told and not used."""
    from kernelskill.memory.experience_store import USER, store_named

    if not store:
        return None
    name = store if store == USER else str(Path(store).resolve())
    try:
        return store_named(name).snapshot(name, device.name, mode, family)
    except ExperienceError as error:
        LOG.warning("warning: %s\n  the run goes on without experience", error)
        return None


def learn(run: Run) -> None:
    """Add what a run's attempts brought to the store it was started with; a store that cannot be written is told."""
    from kernelskill.memory.experience_store import outcomes_of, store_named

    if run.config.experience is None:
        return
    try:
        store_named(run.config.experience.store).add(outcomes_of(run))
    except ExperienceError as error:
        LOG.warning("warning: %s\n  nothing is lost: kernelskill experience import %s", error, run.folder)


def open_run(folder: Path) -> Run:
    """A run to go on with; raises RunError when this machine cannot."""
    run = Run.open(folder)
    if run.config.mode == "cuda" and (importlib.util.find_spec("cupy") is None or not gpu_present()):
        raise RunError("this run was made on a GPU, and cupy finds none here", hint="resume it on the machine that has the GPU")
    return run


@contextmanager
def assembled(run: Run, observer: Observer, waiting: Waiting | None = None) -> Iterator[Loop]:
    """Everything around a run's folder; the process that decides ends with the block."""
    writer, cards = writer_of(run, waiting), load_methods(methods_folder())
    task = run_task(run, writer)
    reviewer = Reviewer(task, run.config.device, run.config.mode, run.config.timeout_s)
    planner = Planner(task, cards, run.config.device, run.config.mode)
    with policy_of(run) as policy:
        yield Loop(run, policy, Generator(task, run, reviewer, writer, planner),
                   Optimizer(task, run, reviewer, writer, cards), observer)


@contextmanager
def policy_of(run: Run) -> Iterator[Decider]:
    """Who decides in a run: the rules, or what an ablation puts in their place."""
    if not run.config.long_term:
        yield FreeChoice()
    elif run.config.policy == "random":
        yield RandomPolicy(run.config.policy_seed)
    else:
        with IsolatedPolicy(rule_book([Path(r) for r in run.config.rules])) as policy:
            yield policy


def run_task(run: Run, writer: CodeWriter) -> Task:
    """The run's own copy of its task, with the writer's start where the task brings none."""
    task = writer.describe(load_task(run.folder / run.config.task_copy).allowing(run.config.allow_library)
                           .permitting(run.config.allow).judged_on(run.config.shapes))
    return task if task.start_source or run.config.seeds else task.with_start(writer.start(task))


def versions() -> dict[str, str]:
    """Versions that a result depends on."""
    found = {"kernelskill": __version__, "python": platform.python_version()}
    for name in RECORDED_PACKAGES:
        try:
            found[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue
    return found

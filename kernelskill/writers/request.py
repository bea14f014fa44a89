"""What a writer is asked: one method to apply to one solution, with all that it needs for that, as JSON-able values.

`render` turns it into the prompt (Markdown) that a language model, a coding agent or a person gets.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from importlib import resources
from typing import TYPE_CHECKING, Literal

from pydantic import Field

from evaluator.types import Frozen, Tolerance
from kernelskill.errors import WriterError
from kernelskill.model import Fact, MethodApplication

if TYPE_CHECKING:
    import jinja2

Role = Literal["generator", "optimizer", "repairer"]
"""Who asks. It decides the prompt's template and, where agents have models of their own, the model."""
SYSTEM, USER = "system.md.j2", "request.md.j2"
MAX_SOURCE = 60_000
"""Characters of a solution. It is never cut, because the whole module has to come back: a longer one is refused."""
LIMITS = {"reference": 8_000, "only_reference": 60_000, "text": 9_000, "log": 3_000, "parent": 20_000, "line": 400}
"""Characters of each other part of a prompt; what goes beyond is left out, and the prompt says how much."""
MAX_FACTS, MAX_HISTORY = 40, 12


class TaskBrief(Frozen):
    """The task as a writer must know it."""

    name: str
    kind: Literal["native", "kernelbench"]
    entry: str
    """What the module must define: `run(x, bias)`, or `ModelNew`."""
    reference: str
    """Source of the reference."""
    sizes: dict[str, int]
    check_sizes: tuple[dict[str, int], ...]
    """None where the task's own sizes alone count."""
    tolerance: Tolerance
    imports: tuple[str, ...]
    """Modules that a solution may import."""
    library_calls: tuple[str, ...] = ()
    """Operators of torch or cupy that compute and may stay: names, categories with their operators, or `all`."""
    precision: tuple[str, ...] = ()
    """What is permitted beyond fp32, e.g. `tf32`."""
    device: str = ""
    """Name and architecture, e.g. `NVIDIA H200 (sm_90)`."""
    simulated: bool = False
    """It is verified in the simulator, which refuses what it cannot execute."""


class MethodBrief(Frozen):
    """The card of the one method."""

    id: str
    title: str
    summary: str
    parameters: tuple[str, ...] = ()
    preconditions: tuple[str, ...] = ()
    """Conditions with the value that this solution has, a sentence each."""
    promises: tuple[str, ...] = ()
    forbids: tuple[str, ...] = ()
    changes_precision: bool = False
    text: str
    """Mechanism, when it pays, when it backfires, steps, worked example."""


class Plan(Frozen):
    """A decision as work to do."""

    method: MethodApplication
    target_kernel: str = ""
    """The kernel with the largest share of the time; "" where it is not known."""
    because: str = ""
    """Why the method was chosen, with the numbers."""
    may_change: tuple[str, ...] = ()
    must_not_change: tuple[str, ...] = ()
    follow_up: tuple[str, ...] = ()
    """What comes next in a coupled edit, so that this step may cost time."""


class Failure(Frozen):
    """What was wrong with the module that is to be repaired."""

    kind: str
    """The diagnosis, e.g. `numerical`."""
    summary: str
    evidence: tuple[str, ...] = ()
    log: str = ""
    """Compiler's output."""


class Request(Frozen):
    """One thing to write. JSON in and out."""

    version: Literal[1] = 1
    role: Role = "optimizer"
    round: int = 0
    """The run's round; 0 for a first solution."""
    method: MethodApplication | None = None
    """None: a first solution is wanted, or (without long-term memory) the writer chooses."""
    source: str
    """The solution to start from; for a repair the module that failed; "" where there is none yet."""
    task: TaskBrief | None = None
    card: MethodBrief | None = None
    plan: Plan | None = None
    evidence: tuple[Fact, ...] = ()
    """Time and limiter, then the facts that the deciding rules matched."""
    meanings: dict[str, str] = Field(default_factory=dict)
    """Fact -> what it means, a line."""
    because: tuple[str, ...] = ()
    """The reasons of those rules."""
    history: tuple[str, ...] = ()
    """One line for each earlier attempt from this very solution, oldest first: what, what came of it, why it failed."""
    failure: Failure | None = None
    parent_source: str = ""
    """For a repair: the last solution that passed."""
    catalogue: tuple[str, ...] = ()
    """Only without long-term memory: `id: summary` of every method, from which the writer chooses."""
    seed: int = 0
    """The first solutions of one task are numbered from 1, so that they differ."""


@dataclass(frozen=True)
class Prompt:
    """A request as text."""

    system: str
    user: str
    digest: str
    """Version of the templates that made it."""

    @property
    def markdown(self) -> str:
        """Both parts as one document, for a person or a coding agent."""
        return f"{self.system.rstrip()}\n\n{self.user.rstrip()}\n"


def render(request: Request) -> Prompt:
    """The prompt of a request. Raises WriterError for a solution too long to be put into one."""
    if len(request.source) > MAX_SOURCE:
        raise WriterError(f"the solution has {len(request.source)} characters; a prompt takes at most {MAX_SOURCE} of one",
                          hint="shorten the module, or write this step by hand")
    environment = _environment()
    system, user = (environment.get_template(name).render(r=request, max_facts=MAX_FACTS, max_history=MAX_HISTORY)
                    for name in (SYSTEM, USER))
    return Prompt(system, user, templates_digest())


@lru_cache(maxsize=1)
def _templates() -> dict[str, str]:
    folder = resources.files("kernelskill.writers") / "prompts"
    return {entry.name: entry.read_text(encoding="utf-8") for entry in folder.iterdir() if entry.name.endswith(".j2")}


@lru_cache(maxsize=1)
def templates_digest() -> str:
    """Hex digest of all prompt templates and limits: the version of the prompts, recorded with every answer."""
    state = hashlib.blake2b(digest_size=8)
    for name, text in sorted(_templates().items()):
        state.update(f"{name}\0{text}\0".encode())
    state.update(repr((sorted(LIMITS.items()), MAX_FACTS, MAX_HISTORY)).encode())
    return state.hexdigest()


@lru_cache(maxsize=1)
def _environment() -> jinja2.Environment:
    from jinja2 import DictLoader, Environment, StrictUndefined

    environment = Environment(loader=DictLoader(_templates()), undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True,
                              keep_trailing_newline=True, autoescape=False)
    filters: dict[str, Callable[..., str]] = {"clip": clip, "value": shown, "fenced": fenced}
    environment.filters.update(filters)
    return environment


def clip(text: str, part: str) -> str:
    """The text up to the part's limit; what is left out is said, because a reader must not take a torso for the whole."""
    limit, text = LIMITS[part], text.rstrip()
    if len(text) <= limit:
        return text
    if part == "line":
        return f"{text[:limit]}… ({len(text) - limit} more characters left out)"
    kept = text[:limit].rsplit("\n", 1)[0]
    return f"{kept}\n[left out here: {len(text) - len(kept)} of {len(text)} characters]"


def fenced(text: str, language: str = "") -> str:
    """The text in a Markdown fence that is longer than any inside it."""
    fence = max(["``", *re.findall("`{3,}", text)], key=len) + "`"
    return f"{fence}{language}\n{text.rstrip()}\n{fence}"


def shown(value: object) -> str:
    """A fact's value for a reader."""
    return str(value).lower() if isinstance(value, bool) else f"{value:.6g}" if isinstance(value, float) else str(value)

"""Which language models write, and what they may use up: command line over environment over `kernelskill.toml`.

A key is never a setting. Providers read theirs from the environment (`OPENAI_API_KEY`, ...), and there it stays.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pydantic import Field, ValidationError, field_validator

from evaluator.types import Frozen
from kernelskill.errors import KernelSkillError, Location

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

FILE = "kernelskill.toml"
TABLE = "model"
ENVIRONMENT = {"KERNELSKILL_MODEL": "name", "KERNELSKILL_API_BASE": "api_base", "KERNELSKILL_MAX_TOKENS": "max_tokens",
               "KERNELSKILL_MAX_COST": "max_cost"}
CONNECTION = ("api_base", "timeout_s", "tries", "retry_wait_s")
NAMING = (f"--model openai/NAME (any model string of litellm), the variable KERNELSKILL_MODEL, or name = \"...\" under "
          f"[{TABLE}] in {FILE}; the key goes into the provider's variable, e.g. OPENAI_API_KEY. "
          "Without a model: --writer handoff")


class ModelSettings(Frozen):
    """The table `[model]` of `kernelskill.toml`."""

    name: str = Field(min_length=1)
    """litellm's model string, e.g. `openai/gpt-5`, `anthropic/claude-sonnet-4-5`, `ollama/qwen3-coder`."""
    generator: str = ""
    """Another model for first solutions; empty: `name`."""
    optimizer: str = ""
    repairer: str = ""
    api_base: str = ""
    """Address of an OpenAI-compatible server; empty: the provider's own."""
    temperature: float | None = Field(None, ge=0, le=2)
    """None: the provider's default (some models take no other)."""
    max_reply_tokens: int = Field(16_000, gt=0)
    timeout_s: float = Field(300.0, gt=0)
    """Seconds a call may take."""
    tries: int = Field(4, ge=1, le=10)
    """Calls at most for one answer, while the provider is overloaded, out of reach or silent."""
    retry_wait_s: float = Field(2.0, gt=0)
    """Seconds before the second call; doubled each time, or what the provider asks for."""
    max_tokens: int | None = Field(None, gt=0)
    """Budget of a run: tokens of prompts and replies together. None: no limit."""
    max_cost: float | None = Field(None, gt=0)
    """Budget of a run in US dollars, by the price table that comes with litellm. None: no limit."""
    structured: bool = True
    """Ask for JSON by a schema where the model is known to support it; otherwise, and always as second way, a code block."""

    @field_validator("api_base")
    @classmethod
    def _no_secret(cls, value: str) -> str:
        if "@" in value.split("//", 1)[-1].split("/", 1)[0]:
            raise ValueError("a user or password does not belong into the address: give the key in the provider's variable")
        return value

    def model_of(self, role: str) -> str:
        """The model of an agent."""
        return str(getattr(self, role) or self.name)


def model_settings(given: Mapping[str, Any], folder: Path | None = None) -> ModelSettings:
    """The settings: `given` (those that are set) over the environment over `kernelskill.toml` in `folder` (the current one).

    Raises KernelSkillError naming the place of what is wrong, or saying how to name a model where none is.
    """
    path = (folder or Path()) / FILE
    environment = {key: os.environ[name] for name, key in ENVIRONMENT.items() if os.environ.get(name)}
    values = {**_from_file(path), **environment, **{key: value for key, value in given.items() if value not in (None, "")}}
    if "name" not in values:
        raise KernelSkillError("no language model is named", hint=NAMING)
    try:
        return ModelSettings.model_validate(values)
    except ValidationError as error:
        first = error.errors()[0]
        key = ".".join(map(str, first["loc"]))
        variables = [f"the variable {name}" for name, field in ENVIRONMENT.items() if field == key and key in environment]
        where = variables[0] if variables else key
        raise KernelSkillError(f"model settings: {where}: {first['msg'].removeprefix('Value error, ')}",
                               location=Location(path) if path.exists() and key not in {*environment, *given} else None,
                               hint="keys of [model]: " + ", ".join(ModelSettings.model_fields)) from None


def reconnected(settings: ModelSettings, folder: Path | None = None) -> ModelSettings:
    """A run's settings with the connection as the environment and `kernelskill.toml` have it now: a server may have moved."""
    now = {**_from_file((folder or Path()) / FILE),
           **{key: os.environ[name] for name, key in ENVIRONMENT.items() if os.environ.get(name)}}
    return ModelSettings.model_validate({**settings.model_dump(), **{key: now[key] for key in CONNECTION if key in now}})


def _from_file(path: Path) -> dict[str, Any]:
    try:
        tables = tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise KernelSkillError(f"not TOML: {error}", location=Location(path)) from None
    table = tables.get(TABLE, {})
    if not isinstance(table, dict) or set(tables) - {TABLE}:
        raise KernelSkillError(f"the file has one table, [{TABLE}]", location=Location(path),
                               hint=f"found: {', '.join(tables)}")
    return table

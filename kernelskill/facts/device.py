"""Device cards (`knowledge/devices/*.yaml`): the figures of a GPU with their sources; and which card the GPU here has."""

from __future__ import annotations

import difflib
from pathlib import Path
from typing import Any

from pydantic import ValidationError
from ruamel.yaml import YAML
from ruamel.yaml.error import MarkedYAMLError

from evaluator.types import DeviceSpec, Frozen
from kernelskill.errors import KernelSkillError, Location
from kernelskill.paths import data_folder


class DeviceError(KernelSkillError):
    """A device card that cannot be used, or a GPU that has none."""


class Figure(Frozen):
    """A number of a device card and where it is from."""

    value: int | float
    source: str


class DeviceCard(Frozen):
    """The content of a card file."""

    name: str
    nvml_names: tuple[str, ...] = ()
    """Product names as the driver reports them."""
    compute_capability: tuple[int, int]
    figures: dict[str, Figure]

    def spec(self) -> DeviceSpec:
        """The card as the evaluator takes it. Raises pydantic.ValidationError for missing or unknown figures."""
        values: dict[str, Any] = {name: figure.value for name, figure in self.figures.items()}
        sources = tuple(f"{name}: {figure.source}" for name, figure in self.figures.items())
        return DeviceSpec(name=self.name, compute_capability=self.compute_capability, sources=sources, **values)


def cards_folder() -> Path:
    """Where the built-in cards are."""
    return data_folder("knowledge") / "devices"


def load_device(name_or_path: str | Path) -> DeviceSpec:
    """The device of a built-in card (`h200`) or of a card file. Raises DeviceError."""
    text = str(name_or_path)
    if isinstance(name_or_path, Path) or text.endswith((".yaml", ".yml")) or "/" in text:
        return _read(Path(name_or_path)).spec()
    cards = {path.stem: path for path in sorted(cards_folder().glob("*.yaml"))}
    if text.lower() not in cards:
        near = difflib.get_close_matches(text.lower(), cards, n=1)
        hint = f"did you mean '{near[0]}'?" if near else f"cards: {', '.join(cards)}; or give the path of a card file"
        raise DeviceError(f"no device card '{text}'", hint=hint)
    return _read(cards[text.lower()]).spec()


def detect_device() -> DeviceSpec | None:
    """The card of the first GPU that the driver reports; None without a driver or GPU.

    Raises DeviceError for a GPU without a card: its speed of light and limits would be guesses.
    """
    found = _query_driver()
    if found is None:
        return None
    name, capability = found
    for path in sorted(cards_folder().glob("*.yaml")):
        card = _read(path)
        if name in card.nvml_names and capability == card.compute_capability:
            return card.spec()
    raise DeviceError(f"the GPU '{name}' (compute capability {capability[0]}.{capability[1]}) has no device card",
                      hint=f"write one like {cards_folder() / 'h200.yaml'} and give its path with --card")


def gpu_present() -> bool:
    """Whether the driver reports a GPU, with a card or without."""
    return _query_driver() is not None


def _query_driver() -> tuple[str, tuple[int, int]] | None:
    """(product name, compute capability) of the first GPU, through NVML."""
    try:
        import pynvml
    except ImportError:
        return None
    try:
        pynvml.nvmlInit()
    except pynvml.NVMLError:
        return None
    try:
        if pynvml.nvmlDeviceGetCount() == 0:
            return None
        handle = pynvml.nvmlDeviceGetHandleByIndex(0)
        name = pynvml.nvmlDeviceGetName(handle)
        major, minor = pynvml.nvmlDeviceGetCudaComputeCapability(handle)
    except pynvml.NVMLError:
        return None
    finally:
        pynvml.nvmlShutdown()
    return (name.decode() if isinstance(name, bytes) else str(name)), (int(major), int(minor))


def _read(path: Path) -> DeviceCard:
    try:
        content = YAML(typ="safe", pure=True).load(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise DeviceError("no such device card", location=Location(path)) from None
    except MarkedYAMLError as error:
        mark = error.problem_mark
        where = Location(path, mark.line + 1, mark.column + 1) if mark else Location(path)
        raise DeviceError(f"not YAML: {error.problem}", location=where) from None
    except (OSError, UnicodeDecodeError) as error:
        raise DeviceError(f"cannot be read: {error}", location=Location(path)) from None
    try:
        card = DeviceCard.model_validate(content)
        card.spec()
    except ValidationError as error:
        raise DeviceError(_first_problem(error), location=Location(path), hint=_field_hint(error)) from None
    return card


def _first_problem(error: ValidationError) -> str:
    first = error.errors()[0]
    place = ".".join(str(part) for part in first["loc"]) or "the file"
    if first["type"] == "missing":
        return f"missing figure or key '{place}'"
    if first["type"] == "extra_forbidden":
        return f"unknown figure or key '{place}'"
    return f"'{place}': {first['msg']}"


def _field_hint(error: ValidationError) -> str:
    known = [*DeviceSpec.model_fields, *DeviceCard.model_fields]
    near = difflib.get_close_matches(str((error.errors()[0]["loc"] or ("",))[-1]), known, n=1)
    return f"did you mean '{near[0]}'?" if near and error.errors()[0]["type"] == "extra_forbidden" else ""

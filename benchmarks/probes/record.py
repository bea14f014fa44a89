"""What is kept of a probe's outputs: a digest of every output, and the bytes where they are few."""

from __future__ import annotations

import base64
import hashlib
import json
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.probes.probe import Array, Probe, bits, disagreement

RECORD = Path(__file__).resolve().parents[1] / "results" / "h200" / "probes.json"
MOST_BYTES = 1 << 16
"""Larger outputs are kept as a digest alone."""


def digest(array: Array) -> str:
    """Of shape, element size and bits; NaNs count as alike."""
    return hashlib.sha256(f"{array.shape}{array.dtype.itemsize}".encode() + bits(array).tobytes()).hexdigest()[:16]


def row_of(probe: Probe, outputs: Mapping[str, Array], error: str = "") -> dict[str, Any]:
    """One probe's row of a record: the arrays that the kernel changed."""
    before = probe.case().arrays
    changed = {name: array for name, array in outputs.items() if digest(array) != digest(before[name])}
    return {"probe": probe.name, "error": error, "outputs": {name: _entry(array) for name, array in changed.items()}}


def _entry(array: Array) -> dict[str, Any]:
    entry: dict[str, Any] = {"dtype": array.dtype.str, "shape": list(array.shape), "digest": digest(array)}
    if array.nbytes <= MOST_BYTES:
        entry["zlib"] = base64.b64encode(zlib.compress(np.ascontiguousarray(array).tobytes(), 9)).decode()
    return entry


def read_record(path: Path = RECORD) -> dict[str, dict[str, Any]]:
    """Probe -> row of the committed hardware run; empty where there is none yet."""
    if not path.exists():
        return {}
    return {row["probe"]: row for row in json.loads(path.read_text(encoding="utf-8"))["probes"]}


def differs(probe: Probe, row: Mapping[str, Any], outputs: Mapping[str, Array]) -> str:
    """How outputs differ from a recorded row by more than the probe's relation allows; "" if they do not.

    Only what the probe has a reference for is compared: other arrays may depend on the order of threads."""
    for name in probe.case().expected():
        entry = row["outputs"].get(name)
        if entry is None:
            why = "" if digest(outputs[name]) == digest(probe.case().arrays[name]) else f"{name}: changed, but not on the card"
        elif "zlib" in entry:
            raw = zlib.decompress(base64.b64decode(entry["zlib"]))
            why = disagreement(probe, {name: np.frombuffer(raw, np.dtype(entry["dtype"])).reshape(entry["shape"])}, outputs)
        else:
            why = "" if digest(outputs[name]) == entry["digest"] else f"{name}: other bits than recorded"
        if why:
            return why
    return ""

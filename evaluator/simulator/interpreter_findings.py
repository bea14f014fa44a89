"""Findings of the core as values with readable messages."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, cast

from evaluator.simulator.ptx_code import op_table
from evaluator.types import FindingKind


class FindingRecord(ctypes.Structure):
    """csrc/findings.h `Finding`."""

    _fields_ = (
        ("kind", ctypes.c_int32), ("error", ctypes.c_int32), ("pc", ctypes.c_int32), ("line", ctypes.c_int32),
        ("block", ctypes.c_uint32 * 3), ("thread", ctypes.c_uint32 * 3), ("block_index", ctypes.c_uint64),
        ("buffer", ctypes.c_int32), ("reserved", ctypes.c_int32), ("offset", ctypes.c_int64), ("text", ctypes.c_char * 200))


@dataclass(frozen=True)
class RawFinding:
    """Something a check saw, without the kernel's display name or the problem sizes."""

    kind: FindingKind
    message: str
    severity: Literal["error", "warning"]
    line: int | None
    """Line of the CUDA source, None where the PTX does not say."""
    block: tuple[int, int, int]
    thread: tuple[int, int, int]


def finding_buffer() -> FindingRecord:
    """An empty record for the core to fill."""
    return FindingRecord()


def decode_finding(record: FindingRecord, buffers: Sequence[tuple[str, int]] = ()) -> RawFinding:
    """The record as a value. `buffers` are (label, bytes) by the core's buffer index; without them addresses stay bare."""
    text = record.text.decode(errors="replace")
    if 0 <= record.buffer < len(buffers):
        text += ", " + _relative(record.offset, *buffers[record.buffer])
    block, thread = record.block, record.thread
    return RawFinding(
        cast(FindingKind, op_table().findings[record.kind]), text, "error" if record.error else "warning", record.line or None,
        (block[0], block[1], block[2]), (thread[0], thread[1], thread[2]))


def _relative(offset: int, label: str, nbytes: int) -> str:
    if offset < 0:
        return f"{-offset} bytes before the start of {label} ({nbytes} bytes)"
    if offset >= nbytes:
        return f"{offset - nbytes} bytes past the end of {label} ({nbytes} bytes)"
    return f"at byte {offset} of {label} ({nbytes} bytes)"

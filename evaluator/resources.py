"""What ptxas and nvdisasm say of each kernel: registers, spills, shared memory, and the machine instructions."""

from __future__ import annotations

import re
import subprocess
import tempfile
from collections import Counter
from pathlib import Path

from evaluator.compile import Compiled
from evaluator.toolkit import find_toolkit
from evaluator.types import KernelResources

ENTRY = re.compile(r"Compiling entry function '(?P<name>[^']+)'(?P<report>.*?)(?=Compiling entry function|\Z)", re.DOTALL)
REPORTED = {
    "registers": re.compile(r"Used (\d+) registers"),
    "static_shared_bytes": re.compile(r"(\d+) bytes smem"),
    "stack_bytes": re.compile(r"(\d+) bytes stack frame"),
    "spill_store_bytes": re.compile(r"(\d+) bytes spill stores"),
    "spill_load_bytes": re.compile(r"(\d+) bytes spill loads"),
}
TEXT_SECTION = re.compile(r"\s*\.section\s+\.text\.([^,\s]+)")
INSTRUCTION = re.compile(r"\s*/\*[0-9a-f]{4,}\*/\s+(?:@!?U?P\w+\s+)?([A-Z][A-Z0-9_.]*)")
NVDISASM_SECONDS = 60


def kernel_resources(compiled: Compiled, *, sass: bool = True) -> list[KernelResources]:
    """One entry a kernel, in the order ptxas compiled them; its instructions are left empty with `sass=False`, or where
    nvdisasm is missing or fails.

    Kernels carry the name they are launched by: the name expression for a template instance, else the symbol.
    """
    counts = instruction_counts(compiled.cubin) if sass else {}
    found = []
    for match in ENTRY.finditer(compiled.log):
        numbers = {field: _number(pattern, match["report"]) for field, pattern in REPORTED.items()}
        found.append(KernelResources(
            kernel=launch_name(compiled, match["name"]), sass=counts.get(match["name"], {}), **numbers))
    return found


def launch_name(compiled: Compiled, symbol: str) -> str:
    """The name expression that was lowered to `symbol`, else `symbol` itself."""
    return next((name for name, mangled in compiled.lowered.items() if mangled == symbol), symbol)


def instruction_counts(cubin: bytes) -> dict[str, dict[str, int]]:
    """Symbol -> opcode with modifiers (`LDG.E.128`) -> static count. Empty where nvdisasm is missing or fails."""
    nvdisasm = find_toolkit().nvdisasm
    if nvdisasm is None or not cubin:
        return {}
    with tempfile.NamedTemporaryFile(suffix=".cubin") as file:
        file.write(cubin)
        file.flush()
        listing = _disassemble(nvdisasm, file.name)
    counts: dict[str, Counter[str]] = {}
    current: Counter[str] | None = None
    for line in listing.splitlines():
        section = TEXT_SECTION.match(line)
        if section:
            current = counts.setdefault(section[1], Counter())
        instruction = INSTRUCTION.match(line)
        if instruction and current is not None:
            current[instruction[1]] += 1
    return {symbol: dict(counter) for symbol, counter in counts.items()}


def _disassemble(nvdisasm: Path, path: str) -> str:
    try:
        done = subprocess.run([str(nvdisasm), "-c", path], capture_output=True, text=True, timeout=NVDISASM_SECONDS)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout if done.returncode == 0 else ""


def _number(pattern: re.Pattern[str], report: str) -> int:
    match = pattern.search(report)
    return int(match[1]) if match else 0

"""The same launch gives the same estimate, bit for bit, in any process and wherever the host put its arrays."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from tests.evaluator.time_model.small_kernels import aligned
from tests.evaluator.time_model.test_terms_respond import GATHER, STRIDED

ROOT = Path(__file__).resolve().parents[3]
SCRIPT = """
import numpy as np
ballast = [np.ones(1000 * k + 7) for k in range(1, {ballast})]
from benchmarks.model.modelled import model_all
from benchmarks.model.table import VARIANTS
for r in model_all(v for v in VARIANTS if v.kernel in ("sm_block3", "hi_shared")):
    print(r.estimate.time_us.hex(), sorted(r.estimate.counts.items()), sorted(r.estimate.terms_us.items()))
"""


def in_a_process(ballast: int, seed: str) -> str:
    environment = {**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-c", SCRIPT.format(ballast=ballast)]
    return subprocess.run(command, cwd=ROOT, text=True, capture_output=True, check=True, env=environment).stdout


def test_two_processes_agree_to_the_last_bit():
    first = in_a_process(2, "1")
    assert first.count("\n") == 2
    assert first == in_a_process(400, "2")


def test_host_addresses_do_not_matter(model):
    n = 1 << 20
    times = set()
    for shift in (0, 1, 7, 64):
        arrays = [aligned(n, shift=shift), aligned(n // 16, shift=3 * shift), n]
        times.add(model(STRIDED, (n // 16 // 256,), (256,), arrays).time_us)
    assert len(times) == 1


def test_order_of_allocation_does_not_matter(model):
    n = 1 << 18
    low_first = [aligned(n, "i4"), aligned(n), aligned(n)]
    arrays = sorted(low_first, key=lambda a: a.ctypes.data)
    ascending = [next(a for a in arrays if a.dtype == "i4"), *[a for a in arrays if a.dtype == "f4"]]
    descending = [ascending[0], ascending[2], ascending[1]]
    one, other = (model(GATHER, (n // 256,), (256,), [*these, n]) for these in (ascending, descending))
    assert one.time_us == other.time_us

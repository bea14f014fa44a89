"""Torch's operators where a time is modelled: they are launches, and large ones are not computed."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from evaluator.simulator.library_time import library_time_us
from kernelskill.facts.device import load_device
from tests.evaluator.standin.conftest import H200

MEASURED = json.loads((Path(__file__).parents[3] / "benchmarks/results/h200/kernelbench.json").read_text())["problems"]
OPERATORS = {
    "mm": "1 2 4 6 7 8 9 10 13 14 15 16 17 18",
    "bmm": "3 11 97",
    "conv2d": "50 55 56 62 63 80 86 87",
    "conv3d": "54 59 60 66",
    "conv_transpose2d": "57 65 69 71 78 81",
    "conv_transpose3d": "58 61 68 70 73 77",
    "conv_transpose1d": "64 74 79",
    "conv1d": "67 76",
    "grouped_conv_transpose3d": "72",
    "grouped_conv_transpose2d": "75",
    "depthwise_conv2d": "82 83 84 85",
}
"""Operator -> numbers of the level 1 problems that are about it (lint/cost.py): all that were measured."""


@pytest.fixture
def profiled(session):
    session.mode = "profile"
    return session


def test_a_large_convolution_is_a_launch_with_a_time_and_no_work(torch, profiled):
    x, weight = torch.empty(8, 256, 256, 256), torch.empty(128, 256, 3, 3)  # 0.3 TFLOP
    y = torch.conv2d(x, weight, padding=1)
    assert tuple(y.shape) == (8, 128, 256, 256) and float(y[0, 0, 0, 0]) == 0
    launch, = profiled.launches
    assert (launch.kernel, launch.library) == ("torch.conv2d", True)
    assert launch.time_us == pytest.approx(library_time_us({"conv2d": 2 * y.numel() * 256 * 9}, 0, H200, False), rel=0.01)
    assert launch.counts["dram_bytes"] == 4 * (x.numel() + weight.numel() + y.numel())


@pytest.mark.parametrize(("call", "wanted"), [
    (lambda t: t.nn.functional.linear(t.ones(5, 3), t.ones(2, 3)), {"linear": 2 * 5 * 2 * 3}),
    (lambda t: t.ones(5, 3) @ t.ones(3, 2), {"matmul": 2 * 5 * 2 * 3}),
    (lambda t: t.addmm(t.ones(2), t.ones(5, 3), t.ones(3, 2)), {"addmm": 2 * 5 * 2 * 3}),
    (lambda t: t.conv1d(t.ones(2, 6, 9), t.ones(6, 1, 3), groups=6), {"depthwise_conv1d": 2 * 2 * 6 * 7 * 3}),
    (lambda t: t.conv_transpose2d(t.ones(2, 6, 4, 4), t.ones(6, 5, 3, 3)), {"conv_transpose2d": 2 * 2 * 6 * 16 * 5 * 9}),
])
def test_products_and_convolutions_are_counted(torch, profiled, monkeypatch, call, wanted):
    from evaluator.simulator.standin import torch_library

    seen = []
    monkeypatch.setattr(torch_library, "library_time_us", lambda counts, *_: seen.append(counts) or 10.0)
    call(torch)
    assert seen == [wanted]


def test_small_and_unknown_operators_are_computed(torch, profiled):
    assert torch.equal(torch.ones(2, 3) @ torch.ones(3, 2), torch.full((2, 2), 3.0))
    assert torch.equal(torch.relu(torch.tensor([-1.0, 2.0])), torch.tensor([0.0, 2.0]))
    assert [launch.kernel for launch in profiled.launches] == ["torch.matmul", "torch.relu"]


def errors(kind: str, tf32: bool) -> list[float]:
    """Modelled over measured time or its inverse, whichever is larger, of every measured problem, in order."""
    found = []
    for operator, numbers in OPERATORS.items():
        for row in (MEASURED[f"1/{number}"] for number in numbers.split() if ("conv" in operator) == (kind == "convolutions")):
            moved = row["input_bytes"] + row["parameter_bytes"] + row["output_bytes"]
            modelled = library_time_us({operator: row["flops"]}, moved, load_device("h200"), tf32)
            ratio = modelled / row["times"]["tf32" if tf32 else "strict_fp32"]["us"]
            found.append(max(ratio, 1 / ratio))
    return sorted(found)


@pytest.mark.parametrize(("kind", "tf32", "median", "tenth", "worst"), [
    ("products", False, 1.02, 1.29, 1.87), ("products", True, 1.12, 1.59, 8.43),
    ("convolutions", False, 1.19, 2.28, 7.28), ("convolutions", True, 1.32, 3.05, 6.82),
])
def test_modelled_times_against_all_measured_ones(kind, tf32, median, tenth, worst):
    """The scatter that the module and the README state."""
    found = errors(kind, tf32)
    assert len(found) == {"products": 17, "convolutions": 35}[kind]
    shown = found[len(found) // 2], found[int(0.9 * (len(found) - 1))], found[-1]
    assert shown == pytest.approx((median, tenth, worst), abs=0.01)

"""Torch's operators where a time is modelled: they are launches, and large ones are not computed."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from evaluator.simulator.library_time import library_time_us
from tests.evaluator.standin.conftest import H200

MEASURED = json.loads((Path(__file__).parents[3] / "benchmarks/results/h200/kernelbench.json").read_text())["problems"]
OPERATORS = {
    "1/1": "mm", "1/3": "bmm", "1/50": "conv2d", "1/56": "conv2d", "1/62": "conv2d", "1/54": "conv3d", "1/60": "conv3d",
    "1/57": "conv_transpose2d", "1/58": "conv_transpose3d", "1/67": "conv1d", "1/74": "conv_transpose1d",
    "1/82": "depthwise_conv2d",
}


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


@pytest.mark.parametrize(("key", "operator"), OPERATORS.items())
def test_modelled_times_against_measured_ones(key, operator):
    """Within the scatter that the module states: products 1.2, convolutions 2.2."""
    row = MEASURED[key]
    moved = row["input_bytes"] + row["parameter_bytes"] + row["output_bytes"]
    ratio = library_time_us({operator: row["flops"]}, moved, H200, False) / row["times"]["strict_fp32"]["us"]
    limit = 1.25 if operator.endswith("mm") else 2.2
    assert 1 / limit < ratio < limit

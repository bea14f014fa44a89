from __future__ import annotations

import pytest

from evaluator.oracle import TaskFault, load_oracle
from kernelskill.tasks import load_task

GROUPED = """\
import torch
import torch.nn as nn


class Model(nn.Module):
    def __init__(self, channels, groups):
        super().__init__()
        self.norm = nn.GroupNorm(groups, channels)

    def forward(self, x):
        return self.norm(x)


batch = 64
channels = 96
groups = 8
width = 4096


def get_inputs():
    return [torch.randn(batch, channels, width)]


def get_init_inputs():
    return [channels, groups]
"""


def test_sizes_that_the_problem_refuses_are_left_out_and_named(tmp_path):
    path = tmp_path / "grouped.py"
    path.write_text(GROUPED)
    task = load_task(path)
    oracle = load_oracle(task.spec)
    kept = oracle.spec.check_sizes
    assert kept
    assert all(sizes["channels"] % 8 == 0 for sizes in kept)
    refused = [sizes for sizes in task.spec.check_sizes if sizes not in kept]
    assert refused
    assert all(sizes["channels"] % 8 for sizes in refused)
    assert len(oracle.notes) == len(refused)
    assert all("must be divisible" in note for note in oracle.notes)


def test_no_size_that_runs_is_a_fault_of_the_task(tmp_path):
    path = tmp_path / "grouped.py"
    path.write_text(
        GROUPED.replace("width = 4096", "width = 4096\nCHECK_SIZES = [{'batch': 1, 'channels': 9, 'groups': 8, 'width': 3}]")
    )
    with pytest.raises(TaskFault, match="no proposed size runs: state CHECK_SIZES"):
        load_oracle(load_task(path).spec)


FIXED = GROUPED.replace("width = 4096", "width = 16384").replace("self.norm = nn.GroupNorm(groups, channels)", "pass").replace(
    "return self.norm(x)", "assert x.shape[2] == 16384 and x.shape[1] == 96, 'other sizes'\n        return x")


def test_where_no_proposed_size_runs_the_full_size_is_checked_with_a_small_batch(tmp_path):
    path = tmp_path / "fixed.py"
    path.write_text(FIXED)
    oracle = load_oracle(load_task(path).spec)
    assert {sizes["batch"] for sizes in oracle.spec.check_sizes} == {1, 2, 3}
    assert all({**sizes, "batch": 64} == oracle.spec.sizes for sizes in oracle.spec.check_sizes)


def test_before_that_all_sizes_are_divided_alike(tmp_path):
    path = tmp_path / "related.py"
    path.write_text(FIXED.replace("x.shape[2] == 16384 and x.shape[1] == 96", "512 * x.shape[1] == 3 * x.shape[2]"))
    kept = load_oracle(load_task(path).spec).spec.check_sizes
    assert {"batch": 2, "channels": 12, "groups": 8, "width": 2048} in kept

from __future__ import annotations

import math

import pytest
from task_files import KERNELBENCH, check_failure, edited

from kernelskill.tasks import load_task
from kernelskill.tasks.shapes import BATCH_LIMIT, WORK_LIMIT, propose_check_sizes

MISTAKES = [
    ("class Model(nn.Module):", "class Modell(nn.Module):", "kb.py", "no class 'Model'", "class Model"),
    ("def forward(self, x):", "def fwd(self, x):", "kb.py:5", "class Model has no method 'forward'", ""),
    ("def get_init_inputs():", "def get_inits():", "kb.py", "no function 'get_init_inputs'", ""),
    ("def get_inputs():", "def get_inputs(batch):", "kb.py:14", "get_inputs must take no argument", ""),
    (
        "dim = 128 * 64",
        "dim = 128 * 64\nCHECK_SIZES = [{'dim': 3}]",
        "kb.py:12",
        "'CHECK_SIZES[0]' does not give 'batch_size'",
        "batch_size, dim",
    ),
]


@pytest.mark.parametrize(("old", "new", "where", "message", "hint"), MISTAKES)
def test_mistake_is_told_with_its_line(tmp_path, old, new, where, message, hint):
    path = tmp_path / "kb.py"
    path.write_text(edited(KERNELBENCH, old, new))
    check_failure(path, where, message, hint)


def test_sizes_are_the_module_constants(tmp_path):
    path = tmp_path / "kb.py"
    path.write_text(KERNELBENCH)
    task = load_task(path)
    assert (task.spec.kind, task.name, task.start_source) == ("kernelbench", "kb", "")
    assert task.spec.sizes == {"batch_size": 512, "dim": 8192}
    assert task.spec.check_sizes == propose_check_sizes(task.spec.sizes)
    path.write_text(edited(KERNELBENCH, "dim = 128 * 64", "dim = 128 * 64\nCHECK_SIZES = [{'batch_size': 2, 'dim': 3}]"))
    assert load_task(path).spec.check_sizes == ({"batch_size": 2, "dim": 3},)


@pytest.mark.parametrize(
    "sizes",
    [
        {"batch": 4096, "dim": 8192},
        {"m": 2048, "n": 2048, "k": 1000},
        {"batch": 64, "channels": 96, "groups": 8, "h": 224, "w": 224},
        {"n": 17},
        {"a": 1 << 20, "b": 1 << 20, "c": 1 << 20, "d": 1 << 20, "e": 1 << 20},
    ],
)
def test_proposals_are_small_awkward_and_keep_structure(sizes):
    proposals = propose_check_sizes(sizes)
    assert len(proposals) >= 2
    for proposal in proposals:
        assert list(proposal) == list(sizes)
        assert all(1 <= proposal[name] <= value for name, value in sizes.items())
        assert all(proposal[name] == value for name, value in sizes.items() if value <= 16)
        large = math.prod(proposal[name] for name, value in sizes.items() if value > 16)
        assert large <= WORK_LIMIT or math.prod(proposal.values()) <= BATCH_LIMIT
    first = next(iter(sizes))
    assert any(proposal[first] == 1 for proposal in proposals)
    assert any(all(value % 2 for name, value in proposal.items() if sizes[name] > 16) for proposal in proposals)


def test_some_proposal_keeps_divisibility_and_equality():
    sizes = {"batch": 64, "channels": 96, "groups": 8, "h": 224, "w": 224}
    proposals = propose_check_sizes(sizes)
    assert any(p["channels"] % 8 == 0 and p["channels"] < 96 for p in proposals)
    assert any(p["h"] == p["w"] and p["h"] % 2 for p in proposals)


def test_small_problem_is_its_own_check():
    assert propose_check_sizes({"n": 8, "k": 3}) == ({"n": 8, "k": 3},)
    assert propose_check_sizes({}) == ({},)

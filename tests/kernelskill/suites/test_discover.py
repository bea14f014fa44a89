"""Which tasks a suite has, and which of them are chosen."""

import pytest

from kernelskill.errors import TaskError
from kernelskill.suites.discover import find_tasks, select

PROBLEM = """
import torch
n = 64
class Model(torch.nn.Module):
    def forward(self, x):
        return x
def get_inputs():
    return [torch.rand(n)]
def get_init_inputs():
    return []
"""


@pytest.fixture
def checkout(tmp_path):
    for level, names in {1: ("2_b", "10_c", "1_a"), 2: ("1_x", "2_y")}.items():
        folder = tmp_path / "KernelBench" / f"level{level}"
        folder.mkdir(parents=True)
        for name in names:
            (folder / f"{name}.py").write_text(PROBLEM)
        (folder / "notes.py").write_text("")
    return tmp_path


def keys(tasks) -> list[str]:
    return [task.key for task in tasks]


def test_a_checkout_gives_levels_and_ids_in_order(checkout):
    tasks = find_tasks(checkout)
    assert keys(tasks) == ["1/1", "1/2", "1/10", "2/1", "2/2"]
    assert keys(find_tasks(checkout / "KernelBench")) == keys(tasks)


@pytest.mark.parametrize(("levels", "ids", "chosen"), [
    ((), "", ["1/1", "1/2", "1/10", "2/1", "2/2"]), ((2,), "", ["2/1", "2/2"]), ((), "1", ["1/1", "2/1"]),
    ((1,), "2-10", ["1/2", "1/10"]), ((), "1/10, 2/2", ["1/10", "2/2"]), ((), "2/1-2", ["2/1", "2/2"]),
])
def test_selection(checkout, levels, ids, chosen):
    assert keys(select(find_tasks(checkout), levels, ids)) == chosen


def test_a_sample_is_the_same_for_the_same_seed_and_in_order(checkout):
    tasks = find_tasks(checkout)
    first = keys(select(tasks, sample=3, seed=1))
    assert first == keys(select(tasks, sample=3, seed=1)) and len(first) == 3
    assert first == [key for key in keys(tasks) if key in first]
    assert {tuple(keys(select(tasks, sample=3, seed=seed))) for seed in range(20)} != {tuple(first)}


def test_an_id_that_selects_nothing_is_an_error(checkout):
    with pytest.raises(TaskError, match="no task has the id '77'"):
        select(find_tasks(checkout), ids="1/1,77")


def test_a_folder_of_tasks_of_both_kinds(tmp_path):
    (tmp_path / "deep").mkdir()
    (tmp_path / "deep" / "task.toml").write_text("")
    (tmp_path / "deep" / "reference.py").write_text(PROBLEM)
    (tmp_path / "problem.py").write_text(PROBLEM)
    (tmp_path / "helper.py").write_text("x = 1\n")
    assert keys(find_tasks(tmp_path)) == ["deep", "problem.py"]
    assert keys(find_tasks(tmp_path / "problem.py")) == ["problem"]
    (tmp_path / "none").mkdir()
    with pytest.raises(TaskError, match="no task in it"):
        find_tasks(tmp_path / "none")
    (tmp_path / "none" / "nearly.py").write_text(PROBLEM.replace("def forward", "def fwd"))
    with pytest.raises(TaskError, match=r"nearly\.py:4: class Model has no method 'forward'"):
        find_tasks(tmp_path / "none")

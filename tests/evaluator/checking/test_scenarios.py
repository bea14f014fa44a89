"""What a call may depend on: the order of blocks as if all ran at once, and results that stay with the caller."""

from __future__ import annotations

import runpy
import sys
import time

import pytest
from check_bench import H200

from benchmarks.check_quality.corpus import HONEST, PLANTED
from evaluator.checking.lab import Lab
from evaluator.checking.properties import Trial, Violation, after_call
from evaluator.checking.reproduction import reproduction
from evaluator.checking.types import Example
from evaluator.comparison import compare
from evaluator.conditions import APART, Conditions
from evaluator.inputs import Case
from evaluator.simulator import standin
from evaluator.worker import preload


def source_of(name: str) -> tuple[str, str]:
    """(task, solution text) of a kernel of the corpus."""
    kernel = next(kernel for kernel in (*PLANTED, *HONEST) if kernel.name == name)
    return kernel.task, kernel.source


@pytest.fixture
def lab(checks):
    made = []

    def make(task: str, source: str) -> Lab:
        request = checks.request(task, source)
        preload(request.request)
        made.append(Lab(request, time.monotonic() + 300))
        made[-1].load()
        return made[-1]

    yield make
    for opened in made:
        opened.close()


@pytest.mark.parametrize(("name", "right"), [
    ("total without atomics", False), ("last block reads without a ticket", False),
    ("sum finished by the last block", True), ("sum in two kernels", True), ("atomic total", True)])
def test_blocks_that_all_run_at_once_show_a_race_between_them(lab, name, right):
    opened = lab(*source_of(name))
    posed = opened.pose(Example(sizes={"n": 3000}, seed=2))
    wrong = [compare(posed.expected, opened.call(posed, "fresh", Conditions(block_order=order)).outputs, Case({}, "task", 2))
             for order in (None, APART)]
    assert wrong[0] is None and (wrong[1] is None) is right


def test_a_result_that_a_later_call_overwrites_is_a_fault_and_its_program_shows_it(lab, tmp_path, monkeypatch, capsys):
    task, source = source_of("one output for all calls")
    opened = lab(task, source)
    first, second = (Example(sizes={"n": 3}, seed=seed) for seed in (1, 2))
    with pytest.raises(Violation, match="what the first one had returned") as raised:
        after_call(Trial(opened, False, False), first, second)
    path, solution = tmp_path / "program.py", tmp_path / "solution.py"
    path.write_text(reproduction(raised.value, "t", opened.oracle.spec, str(solution), "program.py"))
    for text, code in ((source, 1), (source_of("grid stride")[1], 0)):
        solution.write_text(text)
        monkeypatch.setattr(sys, "argv", [str(path), str(solution)])
        standin.install(standin.Session(device=H200))
        try:
            with pytest.raises(SystemExit) as ended:
                runpy.run_path(str(path), run_name="__main__")
        finally:
            standin.uninstall()
        assert ended.value.code == code, capsys.readouterr().out


def test_a_call_that_is_bound_to_take_too_long_is_known_from_a_smaller_one(lab):
    opened = lab(*source_of("tree of a row"))
    assert not opened.too_slow(Example(sizes={"rows": 65537, "cols": 1}))
    opened.call(opened.pose(Example(sizes={"rows": 1021, "cols": 1})))
    assert opened.too_slow(Example(sizes={"rows": 65537, "cols": 1}))
    assert not opened.too_slow(Example(sizes={"rows": 2000, "cols": 1}))
    assert not opened.too_slow(Example(sizes={"rows": 65537, "cols": 7})), "two sizes differ: nothing is known"


def test_an_error_near_the_allowed_one_is_looked_at_again(lab):
    opened = lab(*source_of("Welford's normalisation"))
    posed = opened.pose(Example(sizes={"rows": 1025, "cols": 3}, values="shifted", seed=23))
    wider = opened.second_look(posed)
    assert (wider.allowed >= posed.expected.allowed).all() and (wider.values == posed.expected.values).all()
    # Three values that happen to lie close: two of three estimates hardly move their mean.
    assert posed.expected.allowed[915, 0] < 0.0042 < wider.allowed[915, 0]

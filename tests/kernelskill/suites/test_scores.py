"""Scores of a bench: hand-made rows whose scores can be computed by hand."""

import math
import xml.etree.ElementTree as ElementTree
from types import SimpleNamespace

import pytest

from evaluator.lint.report import LintFinding, LintReport
from kernelskill.report.bench import print_scores
from kernelskill.report.benchsvg import distribution
from kernelskill.suites.rows import BEST_TORCH, START, BenchRow, aside
from kernelskill.suites.scores import scores_of


def row(key, speedup=None, torch=None, **fields) -> BenchRow:
    if speedup is None:
        return BenchRow(key=key, task=key, outcome=fields.pop("outcome", "failed"), **fields)
    speedups = {START: speedup} | ({BEST_TORCH: torch} if torch else {})
    return BenchRow(key=key, task=key, outcome="solved", time_us=10.0, sol_us=8.0, provenance="cuda_event", speedups=speedups,
                    precision_class=fields.pop("precision_class", "fp32"), **fields)


ROWS = [
    row("1/1", 4.0, 2.0, set_aside=False), row("1/2", 1.0, 0.5, set_aside=False), row("1/3", 16.0, 100.0, set_aside=True),
    row("1/4", set_aside=False), row("1/5", outcome="unusable", set_aside=False),
    row("1/6", outcome="waiting", set_aside=False), row("1/7", 2.0, precision_class="tf32"),
]


def test_groups_count_what_they_say():
    scores = scores_of(ROWS)
    assert not scores.modelled
    assert {name: (group.tasks, group.solved) for name, group in scores.groups.items()} == {
        "all": (6, 4), "clean": (4, 2), "set_aside": (1, 1), "not_linted": (1, 1)}
    assert scores.groups["all"].success_rate == pytest.approx(4 / 6, abs=1e-4)
    assert {name: group.tasks for name, group in scores.by_precision.items()} == {"fp32": 3, "tf32": 1}


def test_means_are_over_solved_tasks_and_fast_p_over_all():
    start = scores_of(ROWS).groups["all"].speedups[START]
    assert start.counted == 4 and start.arithmetic == pytest.approx(23 / 4) and start.median == 3.0
    assert start.geometric == pytest.approx(math.exp(sum(map(math.log, (4, 1, 16, 2))) / 4), abs=1e-3)
    assert start.low < start.geometric < start.high
    assert start.fast == pytest.approx({"0": 4 / 6, "0.5": 4 / 6, "0.8": 4 / 6, "1": 3 / 6, "1.5": 3 / 6, "2": 2 / 6}, abs=1e-4)


def test_a_baseline_counts_only_where_it_was_measured_and_comes_first_when_strict():
    group = scores_of(ROWS).groups["all"]
    assert list(group.speedups) == [BEST_TORCH, START]
    assert group.speedups[BEST_TORCH].counted == 3
    assert scores_of(ROWS).groups["clean"].speedups[BEST_TORCH].geometric == 1.0


def test_distance_to_the_speed_of_light():
    group = scores_of([row("a", 2.0), row("b", 2.0)]).groups["all"]
    assert group.distance == 1.25 and group.near_light == 1.0


def test_nothing_solved_has_scores_too():
    group = scores_of([row("a"), row("b")]).groups["all"]
    assert (group.success_rate, group.speedups, group.distance) == (0.0, {}, None)
    assert scores_of([]).groups["all"].tasks == 0


def test_the_picture_is_well_formed_and_has_a_bar_for_every_finished_task():
    picture = ElementTree.fromstring(distribution(ROWS, START, modelled=False))
    titles = [title.text for title in picture.iter("{http://www.w3.org/2000/svg}title")]
    assert titles == ["1/3: 16.00x", "1/1: 4.00x", "1/7: 2.00x", "1/2: 1.00x", "1/4: failed", "1/5: unusable"]
    written = "".join(picture.itertext())
    assert "Measured speedup" in written and "1/7" in [text.text for text in picture.iter("{http://www.w3.org/2000/svg}text")]
    ElementTree.fromstring(distribution([], START, modelled=True))


def test_only_what_sets_a_task_aside_is_given_as_the_reason():
    findings = [LintFinding(code=code, message="") for code in ("null_passes_loose", "too_small")]
    report = LintReport(task="t", kind="kernelbench", verdict="judgeable", findings=tuple(findings))
    assert aside(report) == {"set_aside": True, "set_aside_for": ("too_small",)}
    assert aside(report.model_copy(update={"findings": tuple(findings[:1])})) == {"set_aside": False, "set_aside_for": ()}


def test_the_scores_fit_into_a_terminal(capsys, monkeypatch, tmp_path):
    monkeypatch.setenv("COLUMNS", "80")
    print_scores(SimpleNamespace(folder=tmp_path), scores_of(ROWS))
    lines = capsys.readouterr().out.splitlines()
    assert " ".join(lines[1].split()) == "all tasks 4 of 6 best torch 4.64× 0.50 to 100.00 34.17× 1.25"
    assert any(line.startswith("tasks faster than") for line in lines) and "…" not in "".join(lines)

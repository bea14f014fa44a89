"""A recorded run played again by its own record, and what its writer was asked."""

import json

import pytest
from click.testing import CliRunner
from conftest import TASK, Session

from kernelskill import assembly
from kernelskill.cli import group
from kernelskill.errors import RunError
from kernelskill.model import ModelCall
from kernelskill.report.asked import prompt_of
from kernelskill.writers.litellm import TRANSCRIPT
from kernelskill.writers.request import templates_digest


def attempts(session):
    return [(a.round, a.method, a.child, a.outcome, a.gain) for a in session.run.graph.attempts]


@pytest.fixture
def recorded(session):
    session.start()
    return session.play()


def replayed(recorded, folder, rounds=2):
    again = Session(folder)
    chosen = assembly.Options(rounds=rounds, device="sim", writer=f"replay:{recorded.folder}")
    assembly.create_run(TASK, chosen, again.folder)
    assert again.go_on().awaited is None
    return again


def test_it_comes_to_the_same_attempts(recorded, tmp_path):
    again = replayed(recorded, tmp_path / "again")
    assert attempts(again) == attempts(recorded) and len(attempts(again)) == 2
    assert again.run.stop_reason == recorded.run.stop_reason


def test_where_the_record_ends_there_is_nothing_to_apply(recorded, tmp_path):
    again = Session(tmp_path / "again")
    assembly.create_run(TASK, assembly.Options(rounds=5, device="sim", writer=f"replay:{recorded.folder}"), again.folder)
    again.go_on()
    assert attempts(again)[:2] == attempts(recorded)
    assert all(outcome == "not_written" for *_, outcome, _ in attempts(again)[2:])


def test_a_record_that_is_not_there_is_told(tmp_path):
    with pytest.raises(RunError, match="no run"):
        assembly.create_run(TASK, assembly.Options(writer=f"replay:{tmp_path}/gone", device="sim"), tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_the_prompt_of_a_round_is_the_text_that_went_out(recorded):
    for round_ in (1, 2):
        sent = recorded.folder / "requests" / f"{round_:03}" / "request.md"
        assert prompt_of(recorded.folder, round_) == sent.read_text()
        sent.write_text("what went out")
        assert prompt_of(recorded.folder, round_) == "what went out"


def test_without_kept_requests_the_prompt_is_rendered_from_the_record(recorded, tmp_path):
    again = replayed(recorded, tmp_path / "again")
    assert prompt_of(again.folder, 2) == prompt_of(recorded.folder, 2)
    shown = CliRunner().invoke(group, ["prompt", str(again.folder), "--round", "1"], catch_exceptions=False)
    assert shown.exit_code == 0 and shown.output == prompt_of(again.folder, 1)


def test_a_round_in_which_nobody_was_asked_is_told(recorded):
    with pytest.raises(RunError, match=r"nobody was asked in round 3: the run stopped \(budget_exhausted\)"):
        prompt_of(recorded.folder, 3)


def test_repairs_are_replayed_and_their_prompts_shown(session, tmp_path):
    session.start(rounds=1)
    session.answer("def run(x: return\n")
    session.go_on()
    assert session.entry.posted.request.role == "repairer"
    session.play()
    made = session.run.graph.attempts
    assert [(a.round, a.repair, a.outcome) for a in made] == [(1, 0, "failed"), (1, 1, "improved")]
    again = replayed(session, tmp_path / "again", rounds=1)
    assert attempts(again) == attempts(session)
    assert prompt_of(session.folder, 1, repair=1) == prompt_of(again.folder, 1, repair=1)
    assert "solution.py:1: invalid syntax" in prompt_of(session.folder, 1, repair=1)
    with pytest.raises(RunError, match="nothing was asked for a repair 2"):
        prompt_of(session.folder, 1, repair=2)


def test_templates_that_changed_since_a_model_was_asked_are_told(recorded, tmp_path):
    again = replayed(recorded, tmp_path / "again")
    run = again.run
    for version, told in ((templates_digest(), False), ("older", True)):
        run.store.put(version, json.dumps({"prompt_version": version}), TRANSCRIPT)
        run.keep_call(ModelCall(role="optimizer", model="some/model", digest=version))
        shown = CliRunner().invoke(group, ["prompt", str(again.folder), "--round", "1"], catch_exceptions=False)
        assert ("templates have changed since" in shown.stderr) is told and shown.stdout == prompt_of(again.folder, 1)

"""A handoff run is killed before and after everything it writes, and ends as if nothing had happened."""

from contextlib import suppress
from pathlib import Path

import pytest
from conftest import Session

from kernelskill.exchange import hand_in
from kernelskill.memory.journal import Journal
from kernelskill.memory.store import Store
from kernelskill.writers import requestbox
from kernelskill.writers.requestbox import ANSWER

STARTED, STEPS = 4, 14
"""Writes until the start is reviewed (kills before are tests/e2e/test_resume.py's), and more than a run of one round makes;
the test of the count says when that changes."""


class Killed(BaseException):
    pass


class Killer:
    """Ends the run at its n-th write: before it (nothing was written) or after it (nobody took notice)."""

    def __init__(self, monkeypatch, at=0, before=True):
        self.count, self.at, self.before = 0, at, before
        for owner, name in ((Journal, "append"), (Store, "put")):
            self.watch(monkeypatch, owner, name)
        replace = Path.replace
        monkeypatch.setattr(Path, "replace", lambda path, target: self.step(
            lambda: replace(path, target)) if "requests" in Path(target).parts else replace(path, target))

    def watch(self, monkeypatch, owner, name):
        real = getattr(owner, name)
        monkeypatch.setattr(owner, name, lambda *given, **named: self.step(lambda: real(*given, **named)))

    def step(self, write):
        self.count += 1
        if self.count == self.at and self.before:
            raise Killed
        result = write()
        if self.count == self.at:
            raise Killed
        return result


def play(session):
    """A whole run, answers handed in by the book."""
    if not (session.folder / "run.json").exists():
        session.start(rounds=1)
    while session.go_on().awaited:
        hand_in(session.folder, session.right().encode(), Path("answer.py"))
    return session.outcome()


def test_a_run_of_one_round_writes_fewer_things_than_are_tried(session, monkeypatch):
    killer = Killer(monkeypatch)
    play(session)
    assert 10 < killer.count < STEPS, killer.count


@pytest.mark.parametrize("before", [True, False])
def test_killed_at_any_write_it_ends_as_if_nothing_had_happened(tmp_path, monkeypatch, before):
    expected = play(Session(tmp_path / "undisturbed"))
    assert expected[-1] == ["001"]
    for at in range(STARTED + 1, STEPS):
        session = Session(tmp_path / f"killed-{at}")
        with monkeypatch.context() as patch:
            Killer(patch, at, before)
            with suppress(Killed):
                play(session)
        kept = (session.folder / "journal.jsonl").read_bytes() if (session.folder / "run.json").exists() else b""
        got = play(session)
        left = [name for name in got[-1] if not name.startswith(".new-")]
        assert (*got[:-1], left) == expected, f"killed at write {at}"
        assert (session.folder / "journal.jsonl").read_bytes().startswith(kept)


def test_a_kill_while_a_request_is_written_leaves_no_request(session, monkeypatch):
    real, written = requestbox.Path.write_text, []

    def write_text(path, text, **named):
        if path.name == "request.md":
            written.append(path)
            raise Killed
        return real(path, text, **named)

    with monkeypatch.context() as patch:
        patch.setattr(requestbox.Path, "write_text", write_text)
        with pytest.raises(Killed):
            session.start()
    assert written and session.entry is None
    assert session.go_on().awaited.folder.name == "001"


def test_an_answer_changed_after_the_verdict_changes_nothing(session):
    session.start()
    session.answer()
    session.go_on()
    before = session.outcome()
    (session.folder / "requests" / "001" / ANSWER).write_text("raise SystemExit\n")
    session.go_on()
    assert session.outcome() == before

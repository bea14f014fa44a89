"""A run in turns, quick enough to be killed at every step: evaluations are real, and made once for each text."""

from contextlib import nullcontext
from functools import cache
from pathlib import Path

import pytest

from evaluator import pool
from kernelskill import assembly
from kernelskill.exchange import go_on, open_request
from kernelskill.memory.run import Run
from kernelskill.policy import Policy
from kernelskill.report.live import Silent
from kernelskill.writers.requestbox import ANSWER
from kernelskill.writers.template import TemplateWriter

ROOT = Path(__file__).resolve().parents[3]
TASK = ROOT / "examples" / "row_sum"
EVALUATIONS, POLICIES = {}, {}
CARDS = cache(assembly.load_methods)
BOOK = cache(assembly.rule_book)
REAL_EVALUATE = pool.evaluate


def policy_of(book):
    if book.digest not in POLICIES:
        POLICIES[book.digest] = Policy(book)
    return POLICIES[book.digest]


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    """The policy in this process; cards, rules and the evaluation of one text made once in a session."""
    def evaluate(request):
        key = Path(request.solution).read_text(), request.task.name, request.stages
        if key not in EVALUATIONS:
            EVALUATIONS[key] = REAL_EVALUATE(request)
        return EVALUATIONS[key]

    monkeypatch.setattr(pool, "evaluate", evaluate)
    monkeypatch.setattr(assembly, "IsolatedPolicy", lambda book: nullcontext(policy_of(book)))
    monkeypatch.setattr(assembly, "load_methods", CARDS)
    monkeypatch.setattr(assembly, "rule_book", lambda extra: BOOK())


class Session:
    """A run folder and somebody who answers as the template writer would."""

    def __init__(self, folder):
        self.folder = folder

    def start(self, rounds=2, task=TASK):
        options = assembly.Options(rounds=rounds, device="sim", writer="handoff")
        assembly.create_run(task, options, self.folder)
        return self.go_on()

    def go_on(self):
        return go_on(self.folder, Silent())

    @property
    def run(self):
        return Run.open(self.folder)

    @property
    def entry(self):
        return open_request(self.run)

    def right(self):
        """What the template writer answers to the open request."""
        task = assembly.run_task(self.run, TemplateWriter())
        asked = self.entry.posted.request
        if asked.role == "repairer":  # it mends nothing, it writes anew
            asked = asked.model_copy(update={"role": "optimizer", "source": asked.parent_source})
        return TemplateWriter().write(task, asked)

    def answer(self, text=None):
        (self.entry.folder / ANSWER).write_text(self.right() if text is None else text)

    def play(self):
        """Answer until the run is finished."""
        while self.go_on().awaited:
            self.answer()
        return self

    def outcome(self):
        run = self.run
        return ([(a.round, str(a.method), a.child, a.outcome) for a in run.graph.attempts], run.graph.best, run.stop_reason,
                [(round_, node, str(d.chosen)) for round_, node, d in run.decisions],
                sorted(path.name for path in (run.folder / "requests").iterdir()))


@pytest.fixture
def session(tmp_path):
    return Session(tmp_path / "run")

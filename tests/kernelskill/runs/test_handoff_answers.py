"""What may be handed in, when, and by how many at once."""

import threading
from pathlib import Path

import pytest

from kernelskill import assembly
from kernelskill.errors import AnswerError, RunError, RunHeldError
from kernelskill.exchange import go_on, hand_in
from kernelskill.memory.run import held
from kernelskill.model import MethodApplication
from kernelskill.report.live import Silent
from kernelskill.report.turn import turn_of
from kernelskill.writers.handoff import HandoffWriter
from kernelskill.writers.request import Failure
from kernelskill.writers.requestbox import ANSWER, RequestBox, put_answer


def submit(session, text, request=""):
    return hand_in(session.folder, text.encode(), Path("mine.py"), request)


def test_the_request_is_a_folder_that_says_everything(session):
    awaited = session.start().awaited
    assert awaited.exit_code == 3 and awaited.folder == session.folder / "requests" / "001"
    assert {path.name for path in awaited.folder.iterdir()} == {"request.md", "request.json", "parent.py"}
    prompt = (awaited.folder / "request.md").read_text()
    posted = session.entry.posted
    assert str(posted.request.method) in prompt and posted.request.source in prompt
    assert (awaited.folder / "parent.py").read_text() == posted.request.source == session.run.source(session.run.graph.start)
    assert str(session.folder) not in (awaited.folder / "request.json").read_text() + prompt


def test_every_method_whose_preconditions_hold_is_applicable(session):
    session.start()
    facts = session.run.decisions[0][2].facts
    able = {name.removeprefix("applicable."): fact.value for name, fact in facts.items() if name.startswith("applicable.")}
    assert able["block_per_row_reduction"] is True and able["loop_unrolling"] is True
    assert able["bank_conflict_padding"] is False


def test_an_answer_is_judged_and_the_next_request_is_another(session):
    session.start()
    session.answer()
    standing = session.go_on()
    turn = turn_of(standing)
    assert [(v["round"], v["outcome"], v["status"]) for v in turn["verdicts"]] == [(1, "improved", "PASSED")]
    assert turn["state"] == "waiting" and turn["request"]["id"] == "002"


@pytest.mark.parametrize(("text", "status"), [
    ("def run(x: return", "COMPILE_ERROR"), ("def other(x):\n    return x\n", None), ("import os\nos.system('true')\n", None),
])
def test_code_that_is_no_solution_gets_a_verdict_and_another_request(session, text, status):
    session.start()
    session.answer(text)
    turn = turn_of(session.go_on())
    assert turn["verdicts"][0]["outcome"] == "failed" and turn["verdicts"][0]["message"]
    assert turn["verdicts"][0]["status"] == status or status is None
    assert turn["request"]["id"] == "002"


def test_a_wrong_result_comes_with_its_counterexample(session):
    session.start()
    session.answer(session.entry.posted.request.source.replace("sum +=", "sum -="))
    verdict = turn_of(session.go_on())["verdicts"][0]
    assert verdict["status"] == "INCORRECT_NUMERICAL"
    assert {"expected", "got", "index", "sizes"} <= verdict["counterexample"].keys()


@pytest.mark.parametrize(("data", "message"), [
    (b"", "the file is empty"), (b" \n\n", "the file is empty"), (b"\xff\xfe\x00", "not UTF-8"),
    (b"#" * 70_000, "70000 characters"),
])
def test_a_file_that_is_no_module_is_refused_and_the_request_stays_open(session, data, message):
    session.start()
    with pytest.raises(AnswerError, match=message):
        hand_in(session.folder, data, Path("mine.py"))
    (session.entry.folder / ANSWER).write_bytes(data)
    assert message in str(session.go_on().awaited)
    assert session.entry.posted.id == "001" and not session.run.graph.attempts
    submit(session, session.right())
    assert turn_of(session.go_on())["verdicts"][0]["outcome"] == "improved"


def test_submitting_twice(session):
    session.start()
    first = session.right()
    submit(session, first)
    with pytest.raises(RunError, match="the run has no open request"):
        submit(session, first)
    session.go_on()
    with pytest.raises(RunError, match="which the run has judged before"):
        submit(session, first)
    with pytest.raises(RunError, match="request 001 is not open; the run waits for an answer to 002"):
        submit(session, session.right(), request="001")
    submit(session, session.right(), request="002")


def test_submitting_to_a_finished_run(session):
    session.start(rounds=1)
    session.play()
    with pytest.raises(RunError, match=r"the run is finished \(budget_exhausted\)"):
        submit(session, "def run(x): return x\n")


def test_of_many_answers_at_once_one_counts(session):
    session.start()
    entry, outcomes = session.entry, []

    def put(number):
        try:
            put_answer(entry.folder, f"# answer {number}\n" * 1000)
            outcomes.append(number)
        except AnswerError as error:
            assert "has an answer already" in str(error)

    threads = [threading.Thread(target=put, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(outcomes) == 1
    assert entry.answer() == f"# answer {outcomes[0]}\n" * 1000


def test_while_one_goes_on_with_a_run_nobody_else_does(session):
    session.start()
    session.answer()
    with held(session.folder), pytest.raises(RunHeldError, match="another process is working on this run"):
        session.go_on()
    assert [a.round for a in session.go_on().run.graph.attempts] == [1]


def test_a_folder_that_is_no_run_is_told_and_left_alone(tmp_path):
    with pytest.raises(RunError, match=r"no run\.json"):
        go_on(tmp_path, Silent())
    assert list(tmp_path.iterdir()) == []


def test_a_moved_run_goes_on(session, tmp_path):
    session.start()
    session.folder = session.folder.rename(tmp_path / "elsewhere")
    session.answer()
    assert turn_of(session.go_on())["verdicts"][0]["outcome"] == "improved"


def test_waiting_takes_an_answer_that_comes_later(session):
    session.start(rounds=1)
    told = []

    def waiting(awaited):
        told.append(str(awaited))
        if len(told) == 1:
            (awaited.folder / ANSWER).write_text("  \n")
        else:
            (awaited.folder / ANSWER).write_text(answer)

    answer = session.right()
    standing = go_on(session.folder, Silent(), waiting)
    assert standing.awaited is None and standing.run.graph.attempts[0].outcome == "improved"
    assert len(told) == 2 and "cannot be taken" in told[1] and "the file is empty" in told[1]


def test_the_same_request_is_found_again_whatever_its_wording(session, tmp_path):
    session.start()
    box = RequestBox(tmp_path / "requests")
    request = session.entry.posted.request.model_copy(update={"history": ("a: failed",)})
    first = box.post(request)
    assert box.post(request.model_copy(update={"because": ("said otherwise",), "history": ("a: failed, 2x",)})) == first
    others = [request.model_copy(update=change) for change in (
        {"source": "x = 2\n"}, {"round": 2}, {"seed": 1}, {"method": MethodApplication(method="b")},
        {"failure": Failure(kind="numerical", summary="wrong"), "role": "repairer"})]
    assert [box.post(other).posted.id for other in others] == ["002", "003", "004", "005", "006"]


def test_a_request_changed_by_hand_is_told_with_its_place(session):
    session.start()
    path = session.entry.folder / "request.json"
    path.write_text(path.read_text().replace('"version"', '"wersion"'))
    with pytest.raises(RunError, match=r"request\.json: the request cannot be read"):
        session.go_on()


def test_the_template_describes_a_task_that_it_knows_and_leaves_any_other(tmp_path):
    task = tmp_path / "odd.py"
    task.write_text("import torch\nfrom torch import nn\nN = 64\n\n\nclass Model(nn.Module):\n    def forward(self, x):\n"
                    "        return torch.sort(x, dim=0)[0]\n\n\ndef get_inputs():\n    return [torch.rand(N)]\n\n\n"
                    "def get_init_inputs():\n    return []\n")
    writer = HandoffWriter(RequestBox(tmp_path / "requests"), ["a"])
    assert writer.describe(assembly.load_task(task)).family == ""

"""The litellm writer, through the real litellm, against a server that behaves as providers do."""

import json
from pathlib import Path

import pytest
from model_server import block, completion, error, serving

from evaluator.types import DeviceSpec
from kernelskill.agents.planner import Planner
from kernelskill.config import ModelSettings
from kernelskill.errors import ModelError, WriterError
from kernelskill.memory.run import Run, RunConfig
from kernelskill.model import MethodApplication, Usage
from kernelskill.tasks import load_task
from kernelskill.writers.litellm import LitellmWriter
from kernelskill.writers.request import Request

ROOT = Path(__file__).parents[3]
TASK = load_task(ROOT / "examples" / "row_sum")
GOOD = "import cupy\n\n\ndef run(x):\n    return x.sum(axis=1)"
KEY = "sk-a-key-that-must-stay-secret"
DEVICE = DeviceSpec(name="D", compute_capability=(9, 0), sm_count=1, sm_clock_hz=1e9, dram_bytes_per_s=1e9,
                    fp32_flops_per_s=1e9, l2_bytes=1, l1_shared_bytes_per_sm=1, shared_bytes_per_sm=1, shared_bytes_per_block=1)
REQUEST = Request(method=MethodApplication(method="vectorized_access"), source="def run(x): ...",
                  task=Planner(TASK, {}, DEVICE, "sim").brief())


@pytest.fixture(autouse=True)
def provider_key(monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", KEY)


@pytest.fixture
def new_writer(tmp_path):
    """A writer of a run whose settings go to a server."""
    def make(server, **settings):
        settings = {"name": "openai/scripted", "api_base": server.base, "retry_wait_s": 0.01, "timeout_s": 20, **settings}
        model = ModelSettings(**settings)
        config = RunConfig(task="t", task_copy="task/t.py", mode="sim", device=DEVICE, rounds=1, writer="litellm", timeout_s=1,
                           versions={}, model=model)
        (tmp_path / "t.py").write_text("")
        folder = tmp_path / "run"
        run = Run.open(folder) if folder.exists() else Run.create(folder, config, tmp_path / "t.py")
        return LitellmWriter(model, ["vectorized_access"], run)
    return make


def usage(writer):
    return Usage.of(writer.ledger.calls)


def test_a_good_answer_is_the_module_and_its_transcript_lies_in_the_store(new_writer):
    with serving(block(GOOD, "I used float4.")) as server:
        writer = new_writer(server)
        assert writer.write(TASK, REQUEST) == GOOD + "\n"
    body = server.requests[0]
    assert [m["role"] for m in body["messages"]] == ["system", "user"] and "vectorized_access" in body["messages"][1]["content"]
    assert body["max_tokens"] == 16_000
    call = writer.ledger.calls[0]
    chat = json.loads(writer.ledger.store.get(call.digest, ".chat.json"))
    assert chat["answer"].startswith("I used float4.") and chat["prompt_version"] and chat["messages"] == body["messages"]
    assert (call.prompt_tokens, call.reply_tokens, call.tries, call.cost) == (100, 50, 1, None)


def test_the_same_question_is_answered_from_the_record(new_writer):
    with serving(block(GOOD)) as server:
        first = new_writer(server).write(TASK, REQUEST)
        again = new_writer(server)
        assert again.write(TASK, REQUEST) == first
    assert len(server.requests) == 1
    assert (usage(again).calls, usage(again).cached, usage(again).tokens) == (1, 1, 150)


@pytest.mark.parametrize("bad, fault", [
    (completion("```python\ndef run(x):", finish_reason="length"), "truncated"),
    (completion(""), "empty"),
    (completion(None), "empty"),
    (completion("I'm sorry, I can't help with that."), "refused"),
    (completion("", refusal="no"), "refused"),
    (completion("Use float4 loads; they are faster."), "no_code"),
    (completion("```cuda\n__global__ void k() {}\n```"), "no_code"),
    (block("def run(x)\n    return x"), "not_python"),
    (block("import cupy\nSOURCE = ''"), "no_entry"),
])
def test_an_answer_without_a_module_is_asked_for_once_more_with_what_was_wrong(new_writer, bad, fault):
    with serving(bad, block(GOOD)) as server:
        writer = new_writer(server)
        assert writer.write(TASK, REQUEST) == GOOD + "\n"
    second = server.requests[1]["messages"]
    assert [m["role"] for m in second] == ["system", "user", "assistant", "user"]
    assert usage(writer).faults == {fault: 1} and usage(writer).calls == 2


def test_a_second_bad_answer_is_the_end_of_the_attempt(new_writer):
    with serving(completion("no code here")) as server:
        writer = new_writer(server)
        with pytest.raises(WriterError, match=r"holds no module \(no_code\)"):
            writer.write(TASK, REQUEST)
    assert len(server.requests) == 2 and usage(writer).faults == {"no_code": 2}


def test_of_several_blocks_the_module_is_taken(new_writer):
    long = f"x = {list(range(300))}"
    text = f"First\n```python\n{long}\n```\nthen\n```py\n{GOOD}\n```\nrun it:\n```bash\npython {'x' * 999}\n```"
    with serving(completion(text)) as server:
        assert new_writer(server).write(TASK, REQUEST) == GOOD + "\n"


@pytest.mark.parametrize("trouble", [error(429, "slow down", retry_after="0"), error(500, "oops"), error(503, "overloaded"),
                                     "<html>bad gateway</html>"])
def test_passing_trouble_is_tried_again(new_writer, trouble):
    with serving(trouble, trouble, block(GOOD)) as server:
        writer = new_writer(server)
        assert writer.write(TASK, REQUEST) == GOOD + "\n"
    assert len(server.requests) == 3 and (usage(writer).calls, usage(writer).retries) == (1, 2)


def test_lasting_trouble_ends_after_the_tries_that_were_set(new_writer):
    with serving(error(500, "oops")) as server:
        writer = new_writer(server, tries=3)
        with pytest.raises(ModelError, match=r"no answer from openai/scripted after 3 tries: InternalServerError"):
            writer.write(TASK, REQUEST)
    assert len(server.requests) == 3 and writer.ledger.calls == []


def test_a_wrong_key_is_not_tried_again_and_not_repeated(new_writer):
    with serving(error(401, f"Incorrect API key provided: {KEY}")) as server:
        writer = new_writer(server)
        with pytest.raises(ModelError, match=r"AuthenticationError.*\[OPENAI_API_KEY\]") as refused:
            writer.write(TASK, REQUEST)
    assert len(server.requests) == 1 and KEY not in str(refused.value)
    assert "set the provider's key in its variable" in refused.value.hint


def test_a_silent_server_costs_the_timeout_and_no_more(new_writer):
    with serving(30) as server:
        writer = new_writer(server, timeout_s=0.3, tries=2)
        with pytest.raises(ModelError, match="after 2 tries: Timeout"):
            writer.write(TASK, REQUEST)


def test_nobody_listening_is_said(new_writer):
    with serving(block(GOOD)) as server:
        pass
    with pytest.raises(ModelError, match="no answer from openai/scripted after 2 tries"):
        new_writer(server, tries=2).write(TASK, REQUEST)


def test_a_spent_budget_refuses_the_next_call(new_writer):
    with serving(completion("no code"), block(GOOD)) as server:
        writer = new_writer(server, max_tokens=150)
        with pytest.raises(WriterError, match=r"budget of 150 tokens is spent \(150 used\)"):
            writer.write(TASK, REQUEST)
    assert len(server.requests) == 1


def test_a_budget_in_dollars_needs_a_price(new_writer):
    with serving(block(GOOD)) as server, pytest.raises(ModelError, match="no price for openai/scripted") as refused:
        new_writer(server, max_cost=1.0).write(TASK, REQUEST)
    assert "--max-tokens" in refused.value.hint and server.requests == []


def test_a_known_price_is_counted_and_limits(new_writer):
    with serving(completion("no code", prompt_tokens=1_000_000, reply_tokens=0)) as server:
        writer = new_writer(server, name="openai/gpt-4o", max_cost=0.5, structured=False)
        with pytest.raises(WriterError, match=r"budget of 0.5 USD is spent \(\d"):
            writer.write(TASK, REQUEST)
    assert len(server.requests) == 1 and usage(writer).cost > 0.5 and usage(writer).unpriced == 0


def test_where_a_schema_is_supported_the_answer_is_json(new_writer):
    with serving(completion(json.dumps({"notes": "n", "code": GOOD}))) as server:
        assert new_writer(server, name="openai/gpt-4o").write(TASK, REQUEST) == GOOD
    assert server.requests[0]["response_format"]["type"] == "json_schema"
    assert "JSON object" in server.requests[0]["messages"][-1]["content"]


def test_a_server_that_refuses_the_schema_is_asked_without_it(new_writer):
    with serving(error(400, "response_format is not supported"), block(GOOD)) as server:
        assert new_writer(server, name="openai/gpt-4o").write(TASK, REQUEST) == GOOD + "\n"
    assert "response_format" in server.requests[0] and "response_format" not in server.requests[1]


def test_a_request_that_is_refused_for_good_is_said_with_the_reason(new_writer):
    with serving(error(400, "unknown parameter")) as server:
        with pytest.raises(ModelError, match=r"does not take the request: BadRequestError.*unknown parameter"):
            new_writer(server).write(TASK, REQUEST)
        with pytest.raises(ModelError, match="no answer from openai/scripted: NotFoundError") as missing:
            server.script = [error(404, "no such model")]
            new_writer(server).write(TASK, REQUEST)
    assert len(server.requests) == 2 and "provider/model" in missing.value.hint


def test_a_prompt_that_is_too_long_for_the_model_fails_its_attempt_only(new_writer):
    too_long = error(400, "This model's maximum context length is 8192 tokens. However, your messages resulted in 9000 tokens.")
    with serving(too_long) as server, pytest.raises(WriterError, match="ContextWindowExceeded"):
        new_writer(server).write(TASK, REQUEST)
    assert len(server.requests) == 1


def test_agents_may_have_models_of_their_own(new_writer):
    with serving(block(GOOD)) as server:
        writer = new_writer(server, repairer="openai/mender")
        writer.write(TASK, REQUEST)
        writer.write(TASK, REQUEST.model_copy(update={"role": "generator"}))
    assert [body["model"] for body in server.requests] == ["scripted", "scripted"]
    assert writer.settings.model_of("repairer") == "openai/mender"


def test_no_key_is_written_anywhere_even_when_a_server_echoes_it(new_writer, tmp_path, monkeypatch):
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-ant-other-secret")
    with serving(block(GOOD + f"  # {KEY}", before="sk-ant-other-secret")) as server:
        source = new_writer(server).write(TASK, REQUEST.model_copy(update={"source": f"KEY = '{KEY}'"}))
    assert server.keys == [f"Bearer {KEY}"]  # it was used, and only there
    assert KEY not in source and KEY not in json.dumps(server.requests)
    written = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert len(written) >= 4
    assert [path for path in written for secret in (KEY, "sk-ant-other-secret") if secret.encode() in path.read_bytes()] == []


def test_a_dotenv_file_is_not_read(new_writer, tmp_path, monkeypatch):
    (tmp_path / ".env").write_text("PICKED_UP=yes\n")
    monkeypatch.chdir(tmp_path)
    with serving(block(GOOD)) as server:
        new_writer(server).write(TASK, REQUEST)
    import os

    assert "PICKED_UP" not in os.environ

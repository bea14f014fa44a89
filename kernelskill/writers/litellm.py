"""The `litellm` writer: a language model of any provider. The only module that imports litellm, and only when a call is made.

Every answer lies in the run's store under the digest of its question: that store is the record and the cache.
"""

from __future__ import annotations

import hashlib
import json
import logging
import os
import time
from collections.abc import Collection
from typing import Any, Protocol

from kernelskill.config import ModelSettings
from kernelskill.errors import ModelError, WriterError
from kernelskill.model import ModelCall, Task, Usage
from kernelskill.writers.free import FreeWriter
from kernelskill.writers.reply import Fault, Reply, read_reply
from kernelskill.writers.request import Request, render
from kernelskill.writers.secrets import redact

TRANSCRIPT = ".chat.json"
RE_ASKS = 1
"""How often an answer without a module is asked for again, with what was wrong."""
LONGEST_WAIT_S = 60.0
SHOWN = 8_000
"""Characters of a bad answer that go back to the model with what was wrong about it."""
SCHEMA: dict[str, Any] = {"type": "json_schema", "json_schema": {"name": "module", "strict": True, "schema": {
    "type": "object", "additionalProperties": False, "required": ["notes", "code"],
    "properties": {"notes": {"type": "string"}, "code": {"type": "string", "description": "the whole Python module"}}}}}
AS_JSON = "\nThe answer is a JSON object here: the module, without a fence, in its field `code`, notes in its field `notes`.\n"
Messages = list[dict[str, str]]


class TextStore(Protocol):
    """Where transcripts lie, by digest."""

    def put(self, digest: str, text: str, suffix: str, *, replace: bool = False) -> Any:
        """Keep a text."""

    def get(self, digest: str, suffix: str) -> str:
        """A kept text; raises KernelSkillError."""
        ...

    def path(self, digest: str, suffix: str) -> Any:
        """Where it lies."""
        ...


class Ledger(Protocol):
    """The run, as a writer that costs something sees it."""

    calls: list[ModelCall]

    @property
    def store(self) -> TextStore:
        """Of the run."""
        ...

    def keep_call(self, call: ModelCall) -> None:
        """Record a call for good."""


class LitellmWriter(FreeWriter):
    """Asks the model of the request's agent; answers without a module are asked for once more."""

    name = "litellm"

    def __init__(self, settings: ModelSettings, methods: Collection[str], ledger: Ledger) -> None:
        super().__init__(methods)
        self.settings, self.ledger = settings, ledger

    def write(self, task: Task, request: Request) -> str:
        """The module. Raises WriterError for answers without one and a spent budget, ModelError when no answer comes."""
        entry = "ModelNew" if task.spec.kind == "kernelbench" else "run"
        prompt = render(request)
        messages = [{"role": "system", "content": prompt.system}, {"role": "user", "content": prompt.user}]
        for turn in range(RE_ASKS + 1):
            answer, found = self._ask(messages, request.role, prompt.digest, entry)
            if isinstance(found, Reply):
                return found.code
            if turn == RE_ASKS:
                raise WriterError(f"the model's answer holds no module ({found.kind}): {found.message}")
            messages = [*messages, {"role": "assistant", "content": answer[:SHOWN] or "(empty)"},
                        {"role": "user", "content": found.message}]
        raise AssertionError("the last turn answers or raises")

    def _ask(self, messages: Messages, role: str, prompt_version: str, entry: str) -> tuple[str, Reply | Fault]:
        """One answer, from the store where it was given before, and what is in it; recorded either way."""
        model = self.settings.model_of(role)
        messages = [{name: redact(text) for name, text in message.items()} for message in messages]
        key = _digest(model, messages, self.settings)
        known = self.ledger.store.path(key, TRANSCRIPT).exists()
        if not known:
            self._refuse_beyond_budget(model)
            chat = {"model": model, "prompt_version": prompt_version, "messages": messages, **self._call(model, messages)}
            self.ledger.store.put(key, redact(json.dumps(chat, indent=1, ensure_ascii=False)), TRANSCRIPT)
        chat = json.loads(self.ledger.store.get(key, TRANSCRIPT))
        found = read_reply(chat["answer"], chat["finish_reason"], entry, chat["refusal"])
        paid = any(call.digest == key for call in self.ledger.calls)  # else a kill came between the answer and its record
        charge = {} if paid else {name: chat[name] for name in ("prompt_tokens", "reply_tokens", "cost", "tries", "seconds")}
        self.ledger.keep_call(ModelCall(role=role, model=model, digest=key, cached=paid,
                                        fault=found.kind if isinstance(found, Fault) else "", **charge))
        return chat["answer"], found

    def _refuse_beyond_budget(self, model: str) -> None:
        spent, settings = Usage.of(self.ledger.calls), self.settings
        if settings.max_tokens is not None and spent.tokens >= settings.max_tokens:
            raise WriterError(f"the run's budget of {settings.max_tokens} tokens is spent ({spent.tokens} used)")
        if settings.max_cost is None:
            return
        if spent.cost >= settings.max_cost:
            raise WriterError(f"the run's budget of {settings.max_cost:g} USD is spent ({spent.cost:.4f} used)")
        if _price(model, 1000, 1000) is None:
            raise ModelError(f"litellm's table has no price for {model}, so a budget in dollars cannot be kept",
                             hint="give --max-tokens instead of --max-cost")

    def _call(self, model: str, messages: Messages) -> dict[str, Any]:
        """One answer over the network, with what it used up. Raises ModelError when none comes, WriterError when refused."""
        import tenacity

        api, began, tries = _litellm(), time.monotonic(), 0
        passing = (api.Timeout, api.RateLimitError, api.InternalServerError, api.ServiceUnavailableError,
                   api.APIConnectionError, api.BadGatewayError)
        structured = self.settings.structured and bool(api.supports_response_schema(model=model))
        try:
            for attempt in tenacity.Retrying(stop=tenacity.stop_after_attempt(self.settings.tries), wait=self._wait,
                                             retry=tenacity.retry_if_exception_type(passing), reraise=True):
                with attempt:
                    tries += 1
                    response = self._complete(api, model, messages, structured)
        except (api.ContentPolicyViolationError, api.ContextWindowExceededError) as error:
            raise WriterError(f"the provider refused the request: {_brief(error)}") from None
        except api.BadRequestError as error:
            raise ModelError(f"{model} does not take the request: {_brief(error)}", hint=_hint(error)) from None
        except Exception as error:  # litellm raises classes of several libraries; none of them may end a run in a traceback
            often = f" after {tries} tries" if tries > 1 else ""
            raise ModelError(f"no answer from {model}{often}: {_brief(error)}", hint=_hint(error)) from None
        return {**_contents(response), **_used(response, model), "tries": tries, "seconds": round(time.monotonic() - began, 3)}

    def _complete(self, api: Any, model: str, messages: Messages, structured: bool) -> Any:
        """One call; without the schema where the server does not know it although the model's name says so."""
        try:
            return api.completion(**self._arguments(model, messages, structured))
        except api.BadRequestError as error:
            if not structured or isinstance(error, (api.ContentPolicyViolationError, api.ContextWindowExceededError)):
                raise
        return api.completion(**self._arguments(model, messages, structured=False))

    def _arguments(self, model: str, messages: Messages, structured: bool) -> dict[str, Any]:
        settings = self.settings
        arguments: dict[str, Any] = {"model": model, "messages": messages, "timeout": settings.timeout_s, "num_retries": 0,
                                     "max_retries": 0, "max_tokens": settings.max_reply_tokens}
        if settings.temperature is not None:
            arguments["temperature"] = settings.temperature
        if settings.api_base:
            arguments["api_base"] = settings.api_base
            if not os.environ.get("OPENAI_API_KEY"):
                arguments["api_key"] = "none"  # a local server wants none, the client library wants one
        if structured:
            last = {**messages[-1], "content": messages[-1]["content"] + AS_JSON}
            arguments |= {"response_format": SCHEMA, "messages": [*messages[:-1], last]}
        return arguments

    def _wait(self, state: Any) -> float:
        """Twice as long each time, or as long as the provider says."""
        error = state.outcome.exception()
        said = getattr(getattr(error, "response", None), "headers", None) or {}
        try:
            wanted = float(said.get("retry-after", 0))
        except (TypeError, ValueError):
            wanted = 0.0
        wait = max(wanted, self.settings.retry_wait_s * 2 ** (state.attempt_number - 1))
        return float(min(wait, LONGEST_WAIT_S))


def _digest(model: str, messages: Messages, settings: ModelSettings) -> str:
    question = [model, messages, settings.temperature, settings.max_reply_tokens, settings.structured]
    return hashlib.blake2b(json.dumps(question).encode(), digest_size=10).hexdigest()


def _litellm() -> Any:
    # Its import otherwise fetches a price table from the network and loads ./.env into the environment.
    os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")
    os.environ.setdefault("LITELLM_MODE", "PRODUCTION")
    try:
        import litellm
        import tenacity  # noqa: F401
    except ImportError as error:
        raise ModelError(f"the litellm writer needs {error.name}", hint="pip install 'kernelskill[llm]'") from None
    litellm.suppress_debug_info = True
    logging.getLogger("LiteLLM").setLevel(logging.CRITICAL)
    return litellm


def _contents(response: Any) -> dict[str, str]:
    """Text, finish reason and refusal of an answer; an answer of another form is an empty one."""
    choice = response.choices[0] if getattr(response, "choices", None) else None
    message = getattr(choice, "message", None)
    found = {name: getattr(message, name, None) or "" for name in ("content", "refusal")}
    return {"answer": found["content"], "refusal": found["refusal"],
            "finish_reason": getattr(choice, "finish_reason", None) or "stop"}


def _used(response: Any, model: str) -> dict[str, Any]:
    usage = getattr(response, "usage", None)
    prompt, reply = (int(getattr(usage, name, 0) or 0) for name in ("prompt_tokens", "completion_tokens"))
    return {"prompt_tokens": prompt, "reply_tokens": reply, "cost": _price(model, prompt, reply)}


def _price(model: str, prompt_tokens: int, reply_tokens: int) -> float | None:
    """US dollars by the table that ships with litellm; None for a model that is not in it."""
    try:
        return float(sum(_litellm().cost_per_token(model=model, prompt_tokens=prompt_tokens, completion_tokens=reply_tokens)))
    except Exception:  # litellm raises a bare Exception for unknown models
        return None


def _brief(error: Exception) -> str:
    """`RateLimitError: ...` in one line, without secrets."""
    text = " ".join(str(error).split()) or "no message"
    return f"{type(error).__name__}: {redact(text)[:400]}"


def _hint(error: Exception) -> str:
    kind = type(error).__name__
    if kind == "AuthenticationError":
        return "set the provider's key in its variable, e.g. OPENAI_API_KEY or ANTHROPIC_API_KEY; then go on with --resume"
    if kind in ("BadRequestError", "NotFoundError"):
        return "is the model string right? litellm's form is provider/model, e.g. openai/gpt-5"
    return "nothing is lost: go on with --resume when the provider answers again"

"""The rule engine: durable-rules 2.0.28, the only module that imports it, and only in the way that is safe.

Its Python layer builds the rule set, quietly (the stock host's threads run actions and free state in use); decisions drive
the native module themselves, which is four times as quick and swallows no exceptions. Own serialiser (the parser cannot read
`1e-05`); a boot rule that fires in a call of its own (else `delete_state` crashes); a sink (else a fact that no rule mentions
aborts the batch); explicit ids without hash collisions (ids are compared by a 32-bit hash); no empty batch (crash); actions
that only record; a session that is always deleted (1,024 fit); and a check that all facts arrived. Negation is an explicit
`absent:` fact, asserted once the stratum that could derive the fact is settled.
"""

from __future__ import annotations

import itertools
import json
import re
import threading
import time
import types
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

import durable_rules_engine as native
from durable import engine as durable

from kernelskill.errors import DecisionError
from kernelskill.model import Value
from kernelskill.policy.compile import BOOT, Program, absence, comparison, durable_rules, group, typed
from kernelskill.policy.conditions import Literal

RULESET = "policy"
TAKEN = 0
"""Result of an assertion; others: no rule mentions the fact, the same id or content again, deferred."""
HINT = "this is a defect of the policy engine, not of the rules; report it with the facts of the decision"
_ENCODE = json.JSONEncoder(ensure_ascii=True, allow_nan=False).encode
_EXPONENT = re.compile(r"(?<![\w.])(-?\d+)e", re.IGNORECASE)
_STRING = re.compile(r'("(?:[^"\\]|\\.)*")')
_BUILT: dict[str, Engine] = {}
_BUILD_LOCK = threading.Lock()


def serialise(value: Any, **_: Any) -> str:
    """JSON that the engine's parser reads: ASCII, no NaN, and a dot in front of every exponent (`1.0e-05`)."""
    text = _ENCODE(value)
    if "e-" not in text and "e+" not in text:  # json writes every exponent with its sign
        return text
    pieces = _STRING.split(text)
    return "".join(piece if index % 2 else _EXPONENT.sub(r"\1.0e", piece) for index, piece in enumerate(pieces))


durable.json = types.SimpleNamespace(dumps=serialise, loads=json.loads)
durable._unix_now = time.monotonic  # the stock clock warns (an error under -W error) and stalls on clock steps


class QuietHost(durable.Host):  # type: ignore[misc]
    """A host without background threads."""

    def _run(self) -> None:
        return


@lru_cache(maxsize=65536)
def hash_of_id(text: str) -> int:
    """The engine's 32-bit FNV-1a hash, by which alone it tells fact ids apart."""
    value = 0x811C9DC5
    for byte in text.encode():
        value = ((value ^ byte) * 16777619) & 0xFFFFFFFF
    return value


@dataclass
class Session:
    """One decision in progress. Actions only write here."""

    sid: str
    derived: list[str] = field(default_factory=list)
    fired: dict[tuple[str, int], frozenset[str]] = field(default_factory=dict)
    errors: list[BaseException] = field(default_factory=list)
    ids: dict[int, str] = field(default_factory=dict)

    def narrow(self, name: str, slot: Mapping[str, Any]) -> dict[str, Any]:
        """A fact in the engine's form, with an id whose hash no other fact of the session has."""
        ident, number = name, 0
        while hash_of_id(ident) in self.ids:
            ident, number = f"{name}~{number}", number + 1
        self.ids[hash_of_id(ident)] = ident
        return {"id": ident, "sid": self.sid, "g": group(name), "k": name, **slot}


@dataclass(frozen=True)
class Firing:
    """What fired: (rule id, conjunction) -> names of the engine facts that matched, and the derived facts."""

    fired: Mapping[tuple[str, int], frozenset[str]]
    derived: frozenset[str]


class Engine:
    """A compiled rule book. One decision at a time: a lock makes concurrent calls wait."""

    def __init__(self, program: Program) -> None:
        self._program = program
        self._literals: dict[str, dict[Literal, None]] = {}
        for literal in (literal for variant in program.variants for literal in variant.literals if not literal.other):
            self._literals.setdefault(literal.fact, {})[literal] = None
        self._accepts_known = lru_cache(maxsize=65536, typed=True)(self._accepts)
        self._numbers = itertools.count()
        self._lock = threading.RLock()
        self._by_name = {f"{variant.rule.id}#{variant.index}": variant for variant in program.variants}
        rules = durable_rules(program)
        for rule in rules.values():
            rule["run"] = _nothing  # the layer that would call it is not used
        self._host = QuietHost()
        self._host.set_rulesets({RULESET: rules})
        self._ruleset = self._host.get_ruleset(RULESET)
        self._handle = self._ruleset._handle

    def run(self, values: Mapping[str, Value]) -> Firing:
        """Fires the rules over the facts. Values must be finite; raises DecisionError when the engine misbehaves."""
        with self._lock:
            session = Session(f"s{next(self._numbers)}")
            facts = [session.narrow(name, typed(values[name])) for name in sorted(values)
                     if self._accepts_known(name, values[name])]
            facts += [session.narrow(name, {"b": truth}) for name, truth in self._comparisons(values)]
            self._assert(session, [session.narrow(BOOT, {})])  # alone: an action must have run before delete_state
            try:
                self._fire(session, facts, values)
                self._check_stored(session)
            finally:
                self._ruleset.delete_state(session.sid)
            return Firing(dict(session.fired), frozenset(session.derived))

    def _fire(self, session: Session, facts: list[dict[str, Any]], values: Mapping[str, Value]) -> None:
        program = self._program
        unknown = sorted(name for name in program.negated - program.derived if name not in values)
        self._assert(session, facts + [session.narrow(absence(name), {}) for name in unknown])
        for level in range(max(program.level.values(), default=-1) + 1):
            settled = sorted(name for name in program.negated & program.derived if program.level[name] == level)
            missing = [name for name in settled if name not in session.derived]
            self._assert(session, [session.narrow(absence(name), {}) for name in missing])

    def _accepts(self, name: str, value: Value) -> bool:
        """Does some condition accept the fact? A pattern is about one fact, so no other can match: it need not be asserted."""
        return any(literal.verdict({name: value}) == "holds" for literal in self._literals.get(name, ()))

    def _comparisons(self, values: Mapping[str, Value]) -> Iterable[tuple[str, bool]]:
        for literal in sorted(self._program.comparisons, key=repr):
            verdict = literal.verdict(values)
            if verdict != "unknown":
                yield comparison(literal), verdict == "holds"

    def _assert(self, session: Session, facts: list[dict[str, Any]]) -> None:
        """Asserts one batch and lets everything fire that it makes fire."""
        if not facts:
            return
        try:
            state = _state_of(native.assert_facts(self._handle, serialise(facts)))
            started = native.start_action_for_state(self._handle, state)
            message = started[1] if started else None
            while message:
                self._record(session, message)
                message = native.complete_and_start_action(self._handle, state)
        except native.error as error:
            raise DecisionError(f"the rule engine refused the facts: {error}", hint=HINT) from error
        if session.errors:
            raise session.errors[0]

    def _record(self, session: Session, message: str) -> None:
        """The action of every rule: notes that it fired and asserts what it derives. Its exceptions wait: an action that was
        started must be completed.
        """
        try:
            (name, matched), = json.loads(message).items()
            variant = self._by_name.get(name)
            if variant is None:  # the boot rule
                return
            session.fired[variant.rule.id, variant.index] = frozenset(fact["k"] for fact in matched.values())
            for fact in variant.rule.derives:
                if fact not in session.derived:
                    session.derived.append(fact)
                    _state_of(native.assert_fact(self._handle, serialise(session.narrow(fact, {"b": True}))))
        except BaseException as error:
            session.errors.append(error)

    def _check_stored(self, session: Session) -> None:
        """Every fact that was asserted is there: the engine drops the rest of a batch behind a fact that it cannot read."""
        stored = {fact["id"] for fact in self._ruleset.get_facts(session.sid)}
        if lost := sorted(set(session.ids.values()) - stored):
            raise DecisionError(f"the rule engine lost facts: {', '.join(lost)}", hint=HINT)


def _state_of(answer: tuple[int, int]) -> int:
    """The session's number in the engine. Raises DecisionError when the engine did not take what was asserted."""
    result, state = answer
    if result != TAKEN:
        raise DecisionError(f"the rule engine did not take the facts (result {result})", hint=HINT)
    return state


def _nothing(_: Any) -> None:
    return


def engine_for(digest: str, program: Callable[[], Program]) -> Engine:
    """The engine of a rule book, built once per process and never freed (the engine does not survive that)."""
    with _BUILD_LOCK:
        if digest not in _BUILT:
            _BUILT[digest] = Engine(program())
        return _BUILT[digest]

"""The rule engine: durable-rules 2.0.28, the only module that imports it, and only in the way that is safe.

Its Python layer builds the rule set, quietly (the stock host's threads run actions and free state in use); decisions drive
the native module themselves, which is four times as quick and swallows no exceptions. Own serialiser (the parser cannot read
`1e-05`); a boot rule that fires in a call of its own (else `delete_state` crashes); a sink (else a fact that no rule mentions
aborts the batch); explicit ids without hash collisions (ids are compared by a 32-bit hash); no empty batch (crash); actions
that only record; sessions that are always deleted (1,024 fit; a decision's lives until the next is opened); and a check that
all facts arrived. Negation is an explicit `absent:` fact, asserted once the stratum that could derive the fact is settled.
"""

from __future__ import annotations

import itertools
import json
import re
import threading
import time
import types
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

import durable_rules_engine as native
from durable import engine as durable

from kernelskill.errors import DecisionError
from kernelskill.model import Value
from kernelskill.policy.compile import BOOT, Program, Variant, absence, comparison, durable_rules, group, typed
from kernelskill.policy.conditions import Literal
from kernelskill.policy.shared import family_of

RULESET = "policy"
TAKEN = 0
"""Result of an assertion; others: no rule mentions the fact, the same id or content again, deferred."""
HINT = "this is a defect of the policy engine, not of the rules; report it with the facts of the decision"
_ENCODE = json.JSONEncoder(ensure_ascii=True, allow_nan=False).encode
_DECODE = json.JSONDecoder().raw_decode
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


@dataclass(frozen=True)
class Narrow:
    """A fact in the engine's form, still without its id and its session; decisions share them, most facts come again."""

    name: str
    hash: int
    quoted: str
    """The name as JSON."""
    keys: str
    """The other keys as JSON, without the brackets."""


@dataclass
class Session:
    """One decision in progress. Actions only write here."""

    sid: str
    derived: dict[str, None] = field(default_factory=dict)
    fired: dict[tuple[str, int], frozenset[str]] = field(default_factory=dict)
    errors: list[BaseException] = field(default_factory=list)
    ids: dict[int, str] = field(default_factory=dict)

    def message(self, fact: Narrow) -> str:
        """The fact as JSON, with an id whose hash no other fact of the session has."""
        if fact.hash not in self.ids:
            self.ids[fact.hash] = fact.name
            return f'{{"id": {fact.quoted}, "sid": "{self.sid}", {fact.keys}}}'
        free = next(ident for number in itertools.count() if hash_of_id(ident := f"{fact.name}~{number}") not in self.ids)
        self.ids[hash_of_id(free)] = free
        return f'{{"id": {serialise(free)}, "sid": "{self.sid}", {fact.keys}}}'


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
        self._device_comparisons = sorted(program.comparisons, key=repr)
        self._measured_negated = sorted(program.negated - program.derived)
        self._derived_negated = [sorted(name for name in program.negated & program.derived if program.level[name] == level)
                                 for level in range(max(program.level.values(), default=-1) + 1)]
        """Facts whose absence is asked for, by the stratum after which it is known."""
        self._measured = lru_cache(maxsize=65536, typed=True)(self._measured_anew)
        self._narrow = lru_cache(maxsize=4096)(self._narrow_anew)
        self._numbers = itertools.count()
        self._lock = threading.RLock()
        self._ready: Session | None = None
        self._done: Session | None = None
        self._single = {variant.name: variant for variant in program.single}
        self._shared = {one.name: one.copies for one in program.shared}
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
            self.prepare()
            session, self._ready, self._done = self._ready, None, self._ready
            assert session is not None
            facts = [fact for name in sorted(values) if (fact := self._measured(name, values[name]))]
            facts += [self._narrow_anew(name, truth) for name, truth in self._comparisons(values)]
            self._fire(session, facts, values)
            self._check_stored(session)
            return Firing(session.fired, frozenset(session.derived))

    def prepare(self) -> None:
        """Deletes the last decision's session and opens the next one: a quarter of the time, best spent in a pause."""
        with self._lock:
            if self._done is not None:
                done, self._done = self._done, None
                self._ruleset.delete_state(done.sid)
            if self._ready is None:
                session = Session(f"s{next(self._numbers)}")
                self._assert(session, [self._narrow(BOOT)])  # alone: an action must have run before delete_state
                self._ready = session

    def _fire(self, session: Session, facts: list[Narrow], values: Mapping[str, Value]) -> None:
        unknown = [name for name in self._measured_negated if name not in values]
        self._assert(session, facts + [self._narrow(absence(name)) for name in unknown])
        for settled in self._derived_negated:
            self._assert(session, [self._narrow(absence(name)) for name in settled if name not in session.derived])

    def _measured_anew(self, name: str, value: Value) -> Narrow | None:
        """A measured fact, if some condition accepts it: a pattern is about one fact, so any other need not be asserted."""
        accepted = any(literal.verdict({name: value}) == "holds" for literal in self._literals.get(name, ()))
        return self._narrow_anew(name, value) if accepted else None

    def _narrow_anew(self, name: str, value: Value | None = None) -> Narrow:
        slots = {"g": group(name), "k": name} | (typed(value) if value is not None else {})
        if (family := family_of(name)) in self._program.families:
            slots["f"] = family
        return Narrow(name, hash_of_id(name), serialise(name), serialise(slots)[1:-1])

    def _comparisons(self, values: Mapping[str, Value]) -> Iterable[tuple[str, bool]]:
        for literal in self._device_comparisons:
            verdict = literal.verdict(values)
            if verdict != "unknown":
                yield comparison(literal), verdict == "holds"

    def _assert(self, session: Session, facts: Sequence[Narrow]) -> None:
        """Asserts one batch and lets everything fire that it makes fire."""
        if not facts:
            return
        batch = f"[{','.join(map(session.message, facts))}]"
        try:
            state = _state_of(native.assert_facts(self._handle, batch))
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
            (name, matched), = _DECODE(message)[0].items()
            names = frozenset([fact["k"] for fact in matched.values()])
            variant = self._variant(name, names)
            if variant is None:
                return
            session.fired[variant.rule.id, variant.index] = names
            for fact in variant.rule.derives:
                if fact not in session.derived:
                    session.derived[fact] = None
                    _state_of(native.assert_fact(self._handle, session.message(self._narrow(fact, True))))
        except BaseException as error:
            session.errors.append(error)

    def _variant(self, name: str, matched: frozenset[str]) -> Variant | None:
        """The variant that an engine rule stands for; None for the boot rule and for a method without a copy of the rule."""
        if (copies := self._shared.get(name)) is None:
            return self._single.get(name)
        (fact,) = matched
        return copies.get(fact)

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

"""How long a decision takes with all rules, and how long the rules take to load: `make bench-policy`.

The facts are those of recorded decisions (`policy_facts.json`, made by `python -m benchmarks.policy --record RUN...` from runs
on the examples), their numbers varied, completed by the per-method facts of every method that the rules know. A decision's
time is the best of twelve tries, processor time (nothing in it waits); p50 and p99 are over the fact sets. Every try has other
measured numbers (by a millionth), so that what is kept between decisions helps as in a run: with facts that come again, not
with whole decisions. A decision is prepared before, as the process that decides in a run does while the run does something
else; `prepare_ms` is what that takes (the engine's session), and decisions/s count it. The tries of a fact set are far apart in
time, which keeps a busy moment of the machine out of the best. Loading is timed (processor time too) in a process of its own
with modules imported, from the rule files to a policy that can decide: with the parsed files in the cache, and without. Results
go to `results/policy.json`.
"""

from __future__ import annotations

import json
import math
import os
import platform
import random
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

from kernelskill.memory.run import Run
from kernelskill.methods import load_methods
from kernelskill.model import Fact, Value
from kernelskill.paths import methods_folder, rules_folder
from kernelskill.policy import Policy, RuleBook, load_rules
from kernelskill.policy.engine import Firing
from kernelskill.vocabulary import PER_METHOD_MEANING, lookup

FACTS = Path(__file__).parent / "policy_facts.json"
RESULT = Path(__file__).parent / "results" / "policy.json"
FACT_SETS, REPEATS, SEED = 200, 12, 1
NUDGE = 1e-6
DEFAULTS: Mapping[str, Value] = {"bool": False, "number": 0}
"""Per-method facts of a method that was never tried and cannot be applied."""
LOAD = """
import time
from kernelskill.methods import load_methods
from kernelskill.paths import methods_folder, rules_folder
from kernelskill.policy import Policy, load_rules
methods = load_methods(methods_folder()).keys()
start = time.process_time()
Policy(load_rules([rules_folder()], methods))
print(time.process_time() - start)
"""


class Unchecked(Policy):
    """A policy whose engine nobody checks: what the oracle costs is the difference."""

    def _check(self, firing: Firing, values: Mapping[str, Value]) -> None:
        return


def main() -> None:
    """Measure, write the result, print it."""
    book = load_rules([rules_folder()], load_methods(methods_folder()).keys())
    worlds = list(fact_sets(book, random.Random(SEED)))
    plain, checked, prepared = times_ms(Unchecked(book), Policy(book), worlds)
    result = {
        "rules": len({rule.rule.id for rule in book.rules}), "rules_with_copies": len(book.rules), "methods": len(book.methods),
        "facts": round(statistics.mean(map(len, worlds))), "fact_sets": len(worlds),
        "fired": round(statistics.mean(len(Policy(book).decide(world).fired) for world in worlds)),
        "p50_ms": share(plain, 50), "p99_ms": share(plain, 99),
        "p50_ms_with_oracle": share(checked, 50), "p99_ms_with_oracle": share(checked, 99),
        "prepare_ms": round(statistics.median(prepared), 3),
        "decisions_per_s": round(1000 / (statistics.mean(checked) + statistics.mean(prepared)), 1),
        "load_s": round(min(load_s() for _ in range(3)), 4), "load_s_without_cache": round(load_s_without_cache(), 4),
        "python": platform.python_version(), "cpu": cpu(),
    }
    RESULT.parent.mkdir(exist_ok=True)
    RESULT.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
    print(json.dumps(result, indent=1))


def fact_sets(book: RuleBook, draw: random.Random) -> Iterator[dict[str, Fact]]:
    """Fact sets as dense as those of a run, the same for the same rules."""
    recorded = json.loads(FACTS.read_text(encoding="utf-8"))
    per_method = {f"{group}.{method}": DEFAULTS[kind] for method in sorted(book.methods)
                  for group, (kind, *_) in PER_METHOD_MEANING.items() if group != "last_gain"}
    for index in range(FACT_SETS):
        values = per_method | recorded[index % len(recorded)]
        yield {name: _fact(name, _varied(name, value, draw)) for name, value in values.items() if lookup(name)}


def _varied(name: str, value: Value, draw: random.Random) -> Value:
    """A number somewhat off, within what the fact can be; counts per method and everything else as recorded."""
    spec = lookup(name)
    if spec is None or "." in name or isinstance(value, (bool, str)):
        return value
    other = value * draw.choice([0.5, 0.8, 0.9, 1, 1, 1, 1.1, 1.25, 2])
    other = min(other, spec.high) if spec.high is not None else other
    return int(other) if isinstance(value, int) else other


def _fact(name: str, value: Value) -> Fact:
    spec = lookup(name)
    assert spec is not None
    return Fact.model_validate({"name": name, "value": value, "unit": spec.unit, "provenance": spec.sources[0]})


def record(runs: Sequence[str]) -> None:
    """Write the facts of the runs' decisions; what is as it is for most methods is left out."""
    recorded = [{name: fact.value for name, fact in decision.facts.items() if "." not in name or fact.value not in (0, False)}
                for run in runs for _, _, decision in Run.open(Path(run)).decisions]
    FACTS.write_text("[\n" + ",\n".join(map(json.dumps, recorded)) + "\n]\n", encoding="utf-8")


def times_ms(plain: Policy, checked: Policy, worlds: Sequence[Mapping[str, Fact]]) -> tuple[list[float], ...]:
    """Milliseconds of every decision of both policies, and of the preparation of one; the best of several tries."""
    for policy in (plain, checked):
        policy.decide(worlds[0])
    best = [[math.inf] * len(worlds) for _ in range(3)]
    for turn in range(2 * REPEATS):
        policy, mine = ((plain, best[0]), (checked, best[1]))[turn % 2]
        for place, world in enumerate(nudged(world, 1 + NUDGE * turn) for world in worlds):
            best[2][place] = min(best[2][place], _ms(policy.prepare))
            mine[place] = min(mine[place], _ms(lambda: policy.decide(world)))  # noqa: B023 - called at once
    return tuple(best)


def nudged(world: Mapping[str, Fact], factor: float) -> dict[str, Fact]:
    """The facts with every number that is not a count times the factor."""
    return {name: fact.model_copy(update={"value": fact.value * factor}) if isinstance(fact.value, float) else fact
            for name, fact in world.items()}


def _ms(action: Callable[[], object]) -> float:
    start = time.process_time()
    action()
    return 1000 * (time.process_time() - start)


def share(values: Sequence[float], percent: int) -> float:
    """A percentile."""
    return round(statistics.quantiles(values, n=100)[percent - 1], 3)


def load_s(**environment: str) -> float:
    """Seconds from rule files to a policy, in a new process."""
    done = subprocess.run([sys.executable, "-c", LOAD], capture_output=True, text=True, check=True,
                          env={**os.environ, **environment})
    return float(done.stdout)


def load_s_without_cache() -> float:
    """The same with nothing parsed before."""
    with tempfile.TemporaryDirectory() as folder:
        return load_s(XDG_CACHE_HOME=folder)


def cpu() -> str:
    """The processor's name."""
    lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines() if Path("/proc/cpuinfo").exists() else []
    return next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), platform.processor())


if __name__ == "__main__":
    record(sys.argv[2:]) if sys.argv[1:2] == ["--record"] else main()

"""How long a decision takes with all rules, and how long the rules take to load: `make bench-policy`.

Facts are drawn: nearly every word of the vocabulary has a value, near the thresholds that the rules ask for, so decisions are denser
than in a run. A decision's time is the best of three, wall clock; p50 and p99 are over the fact sets. Loading is timed in
a process of its own with modules imported, from the rule files to a policy that can decide: with the parsed files in the cache, and
without. Results go to `benchmarks/results/policy.json`.
"""

from __future__ import annotations

import json
import os
import platform
import random
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from kernelskill.methods import load_methods
from kernelskill.model import Fact, Value
from kernelskill.paths import methods_folder, rules_folder
from kernelskill.policy import Policy, RuleBook, load_rules
from kernelskill.policy.conditions import tests
from kernelskill.policy.engine import Firing
from kernelskill.vocabulary import PER_METHOD_MEANING, VOCABULARY, FactSpec, lookup

RESULT = Path(__file__).parent / "results" / "policy.json"
FACT_SETS, REPEATS, SEED, KNOWN_SHARE = 200, 3, 1, 0.9
LOAD = """
import time
from kernelskill.methods import load_methods
from kernelskill.paths import methods_folder, rules_folder
from kernelskill.policy import Policy, load_rules
methods = load_methods(methods_folder()).keys()
start = time.perf_counter()
Policy(load_rules([rules_folder()], methods))
print(time.perf_counter() - start)
"""


class Unchecked(Policy):
    """A policy whose engine nobody checks: what the oracle costs is the difference."""

    def _check(self, firing: Firing, values: Mapping[str, Value]) -> None:
        return


def main() -> None:
    """Measure, write the result, print it."""
    book = load_rules([rules_folder()], load_methods(methods_folder()).keys())
    worlds = list(fact_sets(book, random.Random(SEED)))
    plain, checked = times_ms(Unchecked(book), worlds), times_ms(Policy(book), worlds)
    result = {
        "rules": len({rule.rule.id for rule in book.rules}), "rules_with_copies": len(book.rules), "methods": len(book.methods),
        "facts": round(statistics.mean(map(len, worlds))), "fact_sets": len(worlds),
        "p50_ms": share(plain, 50), "p99_ms": share(plain, 99),
        "p50_ms_with_oracle": share(checked, 50), "p99_ms_with_oracle": share(checked, 99),
        "decisions_per_s": round(1000 / statistics.mean(checked), 1),
        "load_s": round(min(load_s() for _ in range(3)), 4), "load_s_without_cache": round(load_s_without_cache(), 4),
        "python": platform.python_version(), "cpu": cpu(),
    }
    RESULT.parent.mkdir(exist_ok=True)
    RESULT.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
    print(json.dumps(result, indent=1))


def fact_sets(book: RuleBook, draw: random.Random) -> Iterator[dict[str, Fact]]:
    """Dense sets of facts, the same for the same rules."""
    asked: dict[str, list[Value]] = {}
    for rule in book.rules:
        for _, test in tests(rule.rule.when):
            values = test.value if isinstance(test.value, list) else [test.value]
            asked.setdefault(test.fact, []).extend(value for value in values if isinstance(value, (bool, int, float, str)))
    per_method = [f"{group}.{method}" for method in sorted(book.methods) for group in PER_METHOD_MEANING]
    for _ in range(FACT_SETS):
        names = [name for name in (*VOCABULARY, *per_method) if draw.random() < KNOWN_SHARE]
        specs = [spec for name in names if (spec := lookup(name)) is not None]
        yield {spec.name: _fact(spec, asked.get(spec.name, []), draw) for spec in specs}


def _fact(spec: FactSpec, asked: Sequence[Value], draw: random.Random) -> Fact:
    value: Value
    if spec.kind == "bool":
        value = draw.random() < 0.3
    elif spec.kind == "text":
        value = draw.choice(spec.values or [word for word in asked if isinstance(word, str)] or ["other"])
    elif "." in spec.name:
        value = int(draw.random() < 0.1)
    else:
        near = [word for word in asked if isinstance(word, (int, float))] or [50]
        value = min(round(draw.choice(near) * draw.choice([0.25, 0.8, 1, 1.3, 3]), 3), spec.high or 1e12)
    return Fact.model_validate({"name": spec.name, "value": value, "unit": spec.unit, "provenance": spec.sources[0]})


def times_ms(policy: Policy, worlds: Sequence[Mapping[str, Fact]]) -> list[float]:
    """Milliseconds of every decision, the best of several tries."""
    policy.decide(worlds[0])
    return [1000 * min(_seconds(policy, world) for _ in range(REPEATS)) for world in worlds]


def _seconds(policy: Policy, world: Mapping[str, Fact]) -> float:
    start = time.perf_counter()
    policy.decide(world)
    return time.perf_counter() - start


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
    main()

"""What the policy tests share: rules from text, facts from values, and the raw engine in a process of its own."""

import subprocess
import sys
from pathlib import Path

from kernelskill.model import Fact
from kernelskill.policy import Policy, RuleBook, load_rules
from kernelskill.policy.loader import check_rules, copies_of
from kernelskill.policy.rulebook import in_order
from kernelskill.policy.schema import Rule
from kernelskill.vocabulary import lookup
from kernelskill.yamlsource import Document

ROOT = Path(__file__).parents[3]
METHODS = ("launch_tuning", "register_blocking", "shared_memory_tiling", "vectorized_access")
RAW_ENGINE = """
import time
from durable import engine
class Host(engine.Host):
    def _run(self): pass
FIRED = []
def rule(*patterns, tag="x", **more):
    return {"all": [{f"c{i}": p} for i, p in enumerate(patterns)], "run": lambda c: FIRED.append(tag), **more}
def host(rules):
    h = Host(); h.set_rulesets({"r": rules}); return h
"""


def write_rules(folder, text, name="rules.yaml"):
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_text(text)
    return folder


def book_of(folder, text, methods=METHODS):
    return load_rules([write_rules(folder, text)], methods)


def policy_of(folder, text, methods=METHODS):
    return Policy(book_of(folder, text, methods))


def loaded(rules, methods=METHODS):
    """The book of rules that are given as data, without a file."""
    copies = [copies_of(Rule.model_validate(raw), raw, Document("rules", None), (), methods) for raw in rules]
    return RuleBook(in_order(rule for same in copies for rule in same), frozenset(methods))


def issues_of(folder, text, with_tests=False, methods=METHODS):
    return check_rules([write_rules(folder, text)], methods, with_tests=with_tests)[1]


def facts(values=None, **more):
    """Facts by name; `__` in a keyword stands for a dot."""
    values = {**(values or {}), **{name.replace("__", "."): value for name, value in more.items()}}
    return {name: fact(name, value) for name, value in values.items()}


def fact(name, value):
    spec = lookup(name)
    return Fact(name=name, value=value, unit=spec.unit if spec else "", provenance=spec.sources[0] if spec else "source")


def python(code, *flags, timeout=60, **environment):
    """Runs code in a fresh interpreter: return code (negative: a signal; None: it hung) and what it printed."""
    try:
        done = subprocess.run(
            [sys.executable, *flags, "-c", code],
            cwd=ROOT,
            capture_output=True,
            text=True,
            timeout=timeout,
            env={"PYTHONPATH": str(ROOT), "PATH": "", **environment},
            check=False,
        )
    except subprocess.TimeoutExpired:
        return None, ""
    return done.returncode, done.stdout.strip() + done.stderr.strip()


def raw_engine(code, timeout=60):
    """Runs code against the engine as it comes, without our guards."""
    return python(RAW_ENGINE + code, "-W", "ignore", timeout=timeout)

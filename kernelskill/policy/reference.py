"""Writes `docs/rules-reference.md`: the rule language, its checks and all facts, from the code that defines them.

`python -m kernelskill.policy.reference` prints it; with a path it writes the page, and `rules/schema.json` with a second one.
"""

from __future__ import annotations

import inspect
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from kernelskill.policy import schema
from kernelskill.policy.compile import MAX_BRANCHES, MAX_CONJUNCTIONS, MAX_FACTS, MAX_SHARED
from kernelskill.policy.lint import VALIDATORS
from kernelskill.policy.lint_cases import TestedRules
from kernelskill.policy.testfile import Case
from kernelskill.policy.validator import Validator
from kernelskill.vocabulary import EXPERIENCE_MEANING, GROUPS, PER_METHOD_MEANING, VOCABULARY, FactSpec

HEAD = """\
# Reference of the rule language

Generated from the code by `make docs`; do not edit. How to write a rule: [authoring-rules.md](authoring-rules.md).
"""
OPERATORS = {
    "==": "equal; the default operator, with the default value `true`", "!=": "different",
    "<": "below", "<=": "at most", ">": "above", ">=": "at least", "in": "one of a list", "not_in": "none of a list",
    "between": "from the first to the second number of `[low, high]`, both included",
    "missing": "nobody measured it; takes no value", "exists": "somebody measured it; takes no value",
}
GROUP_MEANINGS = {"all": "every part holds", "any": "at least one part holds",
                  "none": "every part is known not to hold (a part that is unknown makes this unknown too)"}
OTHER_CHECKS = (
    ("yaml", "error", "The file is not valid YAML, or a key appears twice."),
    ("schema", "error", "A key, a type or a shape that the language does not have; a missing key."),
    ("duplicate-id", "error", "Two rules of one folder have the same id (in a later folder it replaces the rule)."),
    ("folder", "error", "There is no such folder of rules."),
    ("engine-limit", "error", "A rule set that the engine cannot take safely: more than "
     f"{MAX_CONJUNCTIONS} conjunctions in a rule, {MAX_FACTS} facts in a conjunction, "
     f"{MAX_BRANCHES} different conditions on one fact, {MAX_SHARED} uses of one condition."),
)
FACT_TITLES = {"task": "Task", "time": "Time and throughput", "memory": "Memory traffic", "resources": "Resources and launch",
               "sass": "Machine code", "source": "Source text", "device": "Device", "history": "History of the run"}
FACT_COLUMNS = ("fact", "values", "sources", "meaning", "Nsight Compute")
PROVENANCES = {
    "task": "the task's declaration", "source": "the solution's text", "sass": "its machine code",
    "ptxas": "the assembler's report",
    "simulated": "counted in the simulator", "modelled": "computed by the time model", "cuda_event": "timed on a GPU",
    "cupti": "recorded by CUPTI on a GPU, kernel by kernel",
    "launched": "as launched on a GPU, and what follows from it on the device",
    "ncu": "measured by Nsight Compute", "nvml": "asked of the driver", "device_card": "the device card",
    "history": "the run's past", "writer": "the code writer", "experience": "earlier runs",
    "verification": "measured while outputs were compared with the reference",
}


def reference() -> str:
    """The whole page."""
    parts = [HEAD, *_rule(), *_conditions(), *_actions(), *_cases(), *_checks(), *_facts()]
    return "\n".join(parts).rstrip() + "\n"


def _rule() -> Iterator[str]:
    yield "## A rule\n\nA rule file holds a list under `rules:`. Keys of a rule:\n"
    yield from _table(("key", "needed", "value", "meaning"), _fields(schema.Rule))
    yield ""


def _conditions() -> Iterator[str]:
    yield "## Conditions\n\nA condition is one comparison, or a group of conditions, nested as deep as needed.\n"
    yield from _table(("group", "holds when"), [(f"`{name}: [...]`", text) for name, text in GROUP_MEANINGS.items()])
    yield "\nKeys of a comparison:\n"
    yield from _table(("key", "needed", "value", "meaning"), _fields(schema.Test))
    yield "\nOperators:\n"
    yield from _table(("op", "meaning"), [(f"`{op}`", text) for op, text in OPERATORS.items()])
    yield ("\nA comparison with a fact that nobody measured is unknown, neither true nor false, and the rule does not fire. "
           "A derived fact (`bottleneck.dram`) is never unknown: it was derived or not.\n")


def _actions() -> Iterator[str]:
    yield "## Actions\n"
    models = (schema.Derive, schema.Propose, schema.Veto, schema.Prefer, schema.Require, schema.Stop)
    yield from _table(("action", "meaning"), [(f"`{{{', '.join(f'{name}: ...' for name in model.model_fields)}}}`",
                                               _sentence(model)) for model in models])
    yield "\nThe gain of a proposal:\n"
    formula = "a formula over numeric facts with `+ - * /`, `min`, `max` and brackets; 1.0 where a fact is unknown"
    yield from _table(("form", "meaning"), [
        ("`1.2`", "a ratio of times, old / new"), ("`{low: 1.05, high: 1.3}`", _sentence(schema.GainRange)),
        ("`\"100 / global_load_efficiency_pct\"`", formula),
        ("`{formula: ..., default: 1.1}`", _sentence(schema.GainFormula))])
    yield "\nWhatever it says, a gain is never below 1 and never above `headroom` where that fact is known.\n"


def _cases() -> Iterator[str]:
    yield "## Test files\n\n`<name>.test.yaml` beside `<name>.yaml` holds a list under `cases:`. Keys of a case:\n"
    yield from _table(("key", "needed", "value", "meaning"), _fields(Case))
    yield ""


def _checks() -> Iterator[str]:
    yield ("## What `rules check` reports\n\nWith an error the rules cannot be used; with a warning they can, but the check "
           "does not pass.\n")
    checks: tuple[type[Validator], ...] = (*VALIDATORS, TestedRules)
    found = [(check.check, check.severity, inspect.getdoc(check) or "") for check in checks]
    yield from _table(("check", "severity", "finds"), [(f"`{name}`", severity, text) for name, severity, text in
                                                       (*OTHER_CHECKS, *found)])
    yield ""


def _facts() -> Iterator[str]:
    yield ("## Facts\n\nA fact describes the target kernel, the one with the largest share of the time, unless it says "
           "*solution*. Sources:\n")
    yield from _table(("source", "is"), [(f"`{name}`", text) for name, text in PROVENANCES.items()])
    for group, rows in GROUPS.items():
        names = [line.split("|")[0].strip() for line in rows.strip().splitlines()]
        yield f"\n### {FACT_TITLES.get(group, group)}\n"
        yield from _table(FACT_COLUMNS, [_fact(VOCABULARY[name]) for name in names])
    yield "\n### Per method\n\n`<method>` is the id of a method, e.g. `failed_here.launch_tuning`.\n"
    specs = (FactSpec(f"{name}.<method>", kind, unit, (source,), meaning, 0.0 if kind == "number" else None)  # type: ignore[arg-type]
             for name, (kind, unit, meaning, source) in PER_METHOD_MEANING.items())
    yield from _table(FACT_COLUMNS, [_fact(spec) for spec in specs])
    yield ("\n### Experience\n\nKnown only in a run that was started with `--experience`; `<bottleneck>` is what follows "
           "`bottleneck.` in a derived fact, or `none`.\n")
    yield from _table(FACT_COLUMNS, [_fact(FactSpec(f"{name}.<method>.<bottleneck>", "number", unit, ("experience",), meaning))
                                     for name, (unit, meaning) in EXPERIENCE_MEANING.items()])


def _fact(spec: FactSpec) -> tuple[str, ...]:
    values = {"bool": "true, false", "text": ", ".join(spec.values) or "text", "number": spec.unit}[spec.kind]
    return f"`{spec.name}`", values, ", ".join(spec.sources), spec.meaning, f"`{spec.ncu}`" if spec.ncu else ""


def _fields(model: type[schema.RuleModel]) -> list[tuple[str, ...]]:
    described: dict[str, Any] = model.model_json_schema()
    return [(f"`{name}`", "yes" if name in described.get("required", []) else "", _type(entry),
             " ".join(entry.get("description", "").split())) for name, entry in described["properties"].items()]


def _type(entry: dict[str, Any]) -> str:
    """The kind of value that a schema entry describes, in a word or two, with its default."""
    kind = entry.get("type", "")
    if "enum" in entry:
        kind = ", ".join(f"`{value}`" for value in entry["enum"])
    elif "const" in entry:
        kind = f"`{entry['const']}`"
    elif "anyOf" in entry:
        kinds = (_type(option) for option in entry["anyOf"])
        kind = " or ".join(dict.fromkeys(word for word in kinds if word and word != "null"))
    elif "$ref" in entry:
        kind = "`{fact: NAME}`" if entry["$ref"].endswith("/FactName") else "action"
    elif kind == "array":
        kind = f"list ({_type(entry['items']) or 'action'})"
    elif "minimum" in entry:
        kind = f"{kind} {entry['minimum']} to {entry['maximum']}"
    default = entry.get("default")
    return f"{kind}, default `{json.dumps(default)}`" if default not in (None, "", [], {}) else kind


def _sentence(model: type[schema.RuleModel]) -> str:
    return " ".join((inspect.getdoc(model) or "").split())


def _table(head: tuple[str, ...], rows: list[tuple[str, ...]]) -> Iterator[str]:
    for cells in (head, tuple("---" for _ in head), *rows):
        yield "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def main(paths: list[str]) -> None:
    """Print the page, or write it (and the schema) to the given paths."""
    if not paths:
        sys.stdout.write(reference())
    for path, text in zip(paths, (reference(), schema.json_schema()), strict=False):
        Path(path).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])

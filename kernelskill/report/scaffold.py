"""A new rule with its test file: everything that the check asks for, with blanks where only the author knows."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

import kernelskill
from kernelskill.errors import KernelSkillError, Location, RuleError, did_you_mean
from kernelskill.expertise import method_ids, rule_book
from kernelskill.paths import rules_folder
from kernelskill.policy.schema import RULE_ID

RULE = """\
# yaml-language-server: $schema={schema}
# Fill in every <...>: `rules check` refuses what is left. Facts, operators and actions: docs/rules-reference.md
rules:
  - id: {rule}
    title: <a few words for lists>
    when:
      all:
        - {{fact: <fact>, op: ">=", value: <number>}}      # `kernelskill why RUN --depth all` shows facts and values
        - {{fact: applicable.{method}}}                    # the writer can do it here
    then:
      - {{propose: {method}, gain: {{low: <number>, high: <number>}}}}   # old time / new time, e.g. 1.05 and 1.3
    priority: 500            # 0 to 999; rules/README.md says which range is for what
    because: <one sentence; a fact of `when` in braces shows its value>
    source: <guide section, paper, or the run that showed it>
    status: experimental     # stable once recorded runs bear it out
    since: "{version}"
"""
TEST = """\
cases:
  - name: <what is the case when the rule must fire>
    facts: {{<fact>: <number>, applicable.{method}: true}}
    fires: [{rule}]
  - name: <the same, on the other side of the threshold>
    facts: {{<fact>: <number>, applicable.{method}: true}}
    not_fires: [{rule}]
"""


def scaffold(folder: Path, rule: str, method: str) -> Sequence[str]:
    """Writes both files, never over existing ones; returns what to do next. Raises KernelSkillError for unusable names."""
    if not re.fullmatch(RULE_ID, rule):
        raise KernelSkillError(f"{rule!r} is no id for a rule",
                               hint="lower-case letters, digits and underscores, starting with a letter")
    if method and method not in (known := method_ids()):
        hint = did_you_mean(method, known) or "methods: " + ", ".join(known)
        raise KernelSkillError(f"no method is called {method!r}", hint=hint)
    paths = folder / f"{rule}.yaml", folder / f"{rule}.test.yaml"
    for path in paths:
        if path.exists():
            raise RuleError("this file exists already", location=Location(path), hint="choose another id, or edit that file")
    built_in = next((other for other in rule_book().rules if other.rule.id == rule), None)
    folder.mkdir(parents=True, exist_ok=True)
    words = {"rule": rule, "method": method or "<method>", "version": kernelskill.__version__,
             "schema": (rules_folder() / "schema.json").resolve().as_uri()}
    for path, text in zip(paths, (RULE, TEST), strict=True):
        path.write_text(text.format(**words), encoding="utf-8")
    replaced = [f"note: a built-in rule has this id, yours replaces it: {built_in.at('id')}"] if built_in else []
    return [*map(str, paths), *replaced, "fill in every <...> of both files (rules check names those that are left), then:",
            f"  kernelskill rules check --rules {folder}",
            f"  kernelskill rules test --rules {folder} --filter {rule}"]

"""Facts → rules → methods as one graph: as DOT for Graphviz, or as a picture of our own."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from kernelskill.errors import RuleError, did_you_mean
from kernelskill.expertise import rule_book
from kernelskill.policy import RuleBook
from kernelskill.policy.conditions import phrase, tests
from kernelskill.policy.rulebook import LoadedRule
from kernelskill.policy.schema import Action, Derive, FactName, Stop, named_methods
from kernelskill.report.rulepage import action_text
from kernelskill.report.rulesvg import svg_text

if TYPE_CHECKING:
    import networkx

SHAPES = {"fact": "ellipse", "derived": "ellipse, style=dashed", "rule": "box", "method": "box, style=rounded",
          "stop": "octagon"}
EDGES = {"derive": "solid", "propose": "bold", "veto": "dashed", "prefer": "dotted", "require": "dotted", "stop": "bold"}
"""Kind of action -> line style in DOT."""


def drawn(extra: Sequence[Path], names: Sequence[str], *, svg: bool) -> str:
    """The graph of all rules, or of what leads to and follows from some of its nodes. Raises RuleError for an unknown name."""
    graph = graph_of(rule_book(extra))
    if names:
        graph = around(graph, names)
    return svg_text(graph) if svg else dot_text(graph)


def graph_of(book: RuleBook) -> networkx.DiGraph:
    """Nodes are `<kind>:<name>` with `kind`, `label` and `tip`; edges have the `kind` of what the rule does, or `read`."""
    import networkx

    graph = networkx.DiGraph()
    rules = {rule.rule.id: rule for rule in reversed(book.rules)}.values()
    derived = book.derived | {action.derive for rule in rules for action in rule.written.then if isinstance(action, Derive)}
    for rule in rules:
        _add_rule(graph, rule, derived)
    return graph


def _add_rule(graph: networkx.DiGraph, rule: LoadedRule, derived: Collection[str]) -> None:
    said, name = rule.written, f"rule:{rule.rule.id}"
    graph.add_node(name, kind="rule", label=said.id, tip=said.title or said.because)
    for _, test in tests(said.when):
        for fact in (test.fact, *([test.value.fact] if isinstance(test.value, FactName) else [])):
            kind = "derived" if fact in derived else "fact"
            graph.add_node(f"fact:{fact}", kind=kind, label=fact, tip="derived by rules" if kind == "derived" else "measured")
            graph.add_edge(f"fact:{fact}", name, kind="read", tip=phrase(test))
    for action in said.then:
        for target, kind, label in _targets(action):
            graph.add_node(target, kind=kind, label=label, tip="")
            graph.add_edge(name, target, kind=next(iter(type(action).model_fields)), tip=action_text(action))


def _targets(action: Action) -> Iterator[tuple[str, str, str]]:
    """Node, its kind and its label for everything that an action acts on."""
    if isinstance(action, Derive):
        yield f"fact:{action.derive}", "derived", action.derive
    elif isinstance(action, Stop):
        yield f"stop:{action.stop}", "stop", f"stop {action.stop}"
    else:
        for method in named_methods(action).values():
            yield f"method:{method}", "method", "every method" if method == "{method}" else method


def around(graph: networkx.DiGraph, names: Sequence[str]) -> networkx.DiGraph:
    """The part of the graph that leads to the named nodes or follows from them."""
    import networkx

    kept: set[str] = set()
    for name in names:
        found = [node for node in graph if name in (node, node.partition(":")[2])]
        if not found:
            known = [node.partition(":")[2] for node in graph]
            raise RuleError(f"no rule, fact or method of the rules is called {name!r}", hint=did_you_mean(name, known))
        for node in found:
            kept |= {node} | networkx.ancestors(graph, node) | networkx.descendants(graph, node)
    return graph.subgraph(kept)


def dot_text(graph: networkx.DiGraph) -> str:
    """Graphviz DOT, the same text for the same rules."""
    lines = ["digraph rules {", "  rankdir=LR;", "  node [fontname=Helvetica, fontsize=10];"]
    for node, data in sorted(graph.nodes(data=True)):
        look = f"label={_quoted(data['label'])}, shape={SHAPES[data['kind']]}, tooltip={_quoted(data['tip'])}"
        lines.append(f"  {_quoted(node)} [{look}];")
    for tail, head, data in sorted(graph.edges(data=True), key=lambda edge: edge[:2]):
        style = EDGES.get(data["kind"], "solid")
        label = f", label={_quoted(data['kind'])}" if data["kind"] in ("veto", "prefer", "require") else ""
        lines.append(f"  {_quoted(tail)} -> {_quoted(head)} [style={style}, tooltip={_quoted(data['tip'])}{label}];")
    return "\n".join([*lines, "}"]) + "\n"


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'

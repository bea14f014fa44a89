"""A layered drawing of a directed graph: longest-path layers, order within a layer by the mean of the neighbours."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import networkx

SWEEPS = 8


def layers_of(graph: networkx.DiGraph) -> list[list[str]]:
    """Nodes layer by layer, so that edges lead to a later layer; of a cycle some edges lead back. Deterministic."""
    import networkx

    acyclic = without_cycles(graph)
    depth = dict.fromkeys(graph, 0)
    for node in networkx.lexicographical_topological_sort(acyclic):
        depth[node] = max((depth[before] + 1 for before in acyclic.predecessors(node)), default=0)
    for node in graph:  # a source stands right before what it leads to: shorter edges
        if acyclic.in_degree(node) == 0 and acyclic.out_degree(node):
            depth[node] = min(depth[after] for after in acyclic.successors(node)) - 1
    lowest = min(depth.values(), default=0)
    layers: list[list[str]] = [[] for _ in range(max(depth.values(), default=-1) - lowest + 1)]
    for node in sorted(graph):
        layers[depth[node] - lowest].append(node)
    return _ordered(graph, layers)


def without_cycles(graph: networkx.DiGraph) -> networkx.DiGraph:
    """The graph less the edges that lead back to a node which a depth-first walk is still in."""
    import networkx

    kept = networkx.DiGraph()
    kept.add_nodes_from(sorted(graph))
    done: set[str] = set()
    for start in sorted(graph):
        stack, open_nodes = [(start, iter(sorted(graph.successors(start))))], {start}
        while start not in done and stack:
            node, successors = stack[-1]
            for after in successors:
                if after in open_nodes:
                    continue
                kept.add_edge(node, after)
                if after not in done:
                    open_nodes.add(after)
                    stack.append((after, iter(sorted(graph.successors(after)))))
                    break
            else:
                stack.pop()
                open_nodes.discard(node)
                done.add(node)
    return kept


def _ordered(graph: networkx.DiGraph, layers: list[list[str]]) -> list[list[str]]:
    """Moves every node to the mean place of its neighbours, forth and back over the layers: fewer crossings."""
    place = {node: index / max(len(layer), 1) for layer in layers for index, node in enumerate(layer)}
    for sweep in range(SWEEPS):
        look = graph.predecessors if sweep % 2 == 0 else graph.successors
        for layer in layers if sweep % 2 == 0 else reversed(layers):
            layer.sort(key=lambda node: (_mean(place, look(node), place[node]), node))
            place |= {node: index / len(layer) for index, node in enumerate(layer)}
    return layers


def _mean(place: Mapping[str, float], neighbours: Iterable[str], otherwise: float) -> float:
    found = [place[node] for node in neighbours]
    return sum(found) / len(found) if found else otherwise

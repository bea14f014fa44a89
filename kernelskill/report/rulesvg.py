"""The graph of rules as an SVG picture without any external program."""

from __future__ import annotations

from typing import TYPE_CHECKING
from xml.sax.saxutils import escape, quoteattr

from kernelskill.report.layered import layers_of

if TYPE_CHECKING:
    import networkx

CHARACTER, ROW, HEIGHT, GAP, MARGIN = 6.2, 24, 18, 110, 16
"""Width of a character, distance of rows, height of a box, space between layers, border; pixels."""
STYLE = """\
text { font: 10px Helvetica, Arial, sans-serif; fill: #222 }
rect { stroke: #666; fill: #fff } .fact rect { fill: #e8f1fb } .derived rect { fill: #e8f1fb; stroke-dasharray: 4 2 }
.rule rect { fill: #fdf6e3 } .method rect { fill: #e6f4ea; stroke: #2e7d32 } .stop rect { fill: #fdecea; stroke: #b71c1c }
path { fill: none; stroke: #9aa5b1 } path.propose { stroke: #2e7d32; stroke-width: 1.6 }
path.veto { stroke: #b71c1c; stroke-dasharray: 5 3 } path.stop { stroke: #b71c1c }
path.prefer, path.require { stroke: #6a1b9a; stroke-dasharray: 2 2 }
"""
Box = tuple[float, float, float]
"""Left edge, middle, width."""


def svg_text(graph: networkx.DiGraph) -> str:
    """The picture, layers from left to right; hovering shows what an edge or a node says."""
    layers = layers_of(graph)
    boxes, width, height = _boxes(graph, layers)
    edges = [_edge(boxes[tail], boxes[head], data) for tail, head, data in sorted(graph.edges(data=True), key=lambda e: e[:2])]
    nodes = [_node(boxes[node], graph.nodes[node]) for layer in layers for node in layer]
    size = f'width="{width:.0f}" height="{height:.0f}" viewBox="0 0 {width:.0f} {height:.0f}"'
    head = f'<svg xmlns="http://www.w3.org/2000/svg" {size}>'
    background = '<rect width="100%" height="100%" style="stroke:none"/>'
    return "\n".join([head, f"<style>\n{STYLE}</style>", background, *edges, *nodes, "</svg>"]) + "\n"


def _boxes(graph: networkx.DiGraph, layers: list[list[str]]) -> tuple[dict[str, Box], float, float]:
    """Where every node goes, and the size of the picture; every layer is centred."""
    tallest = max(map(len, layers), default=0)
    boxes: dict[str, Box] = {}
    left: float = MARGIN
    for layer in layers:
        width = max((len(graph.nodes[node]["label"]) * CHARACTER + 12 for node in layer), default=0)
        top = MARGIN + (tallest - len(layer)) * ROW / 2
        boxes |= {node: (left, top + index * ROW + ROW / 2, width) for index, node in enumerate(layer)}
        left += width + GAP
    return boxes, left - GAP + MARGIN, tallest * ROW + 2 * MARGIN


def _node(box: Box, data: dict[str, str]) -> str:
    left, middle, width = box
    return (f"<g class={quoteattr(data['kind'])}><title>{escape(data['tip'] or data['label'])}</title>"
            f'<rect x="{left:.1f}" y="{middle - HEIGHT / 2:.1f}" width="{width:.1f}" height="{HEIGHT}" rx="4"/>'
            f'<text x="{left + 6:.1f}" y="{middle + 3.5:.1f}">{escape(data["label"])}</text></g>')


def _edge(tail: Box, head: Box, data: dict[str, str]) -> str:
    x0, y0, x1, y1 = tail[0] + tail[2], tail[1], head[0], head[1]
    bend = max(GAP / 2, abs(x1 - x0) / 3)
    return (f"<path class={quoteattr(data['kind'])} d=\"M{x0:.1f},{y0:.1f} C{x0 + bend:.1f},{y0:.1f} {x1 - bend:.1f},{y1:.1f} "
            f"{x1:.1f},{y1:.1f}\"><title>{escape(data['tip'])}</title></path>")

"""The distribution of a bench's speedups as an SVG picture: one bar a task, sorted, on a logarithmic axis."""

from __future__ import annotations

import math
from collections.abc import Sequence
from xml.sax.saxutils import escape

from kernelskill.suites.rows import BenchRow

WIDTH, HEIGHT, LEFT, TOP, BOTTOM, RIGHT = 900, 320, 52, 40, 34, 12
LABELLED = 40
"""Bars at least so wide have their task's name below."""
STYLE = """\
text { font: 11px Helvetica, Arial, sans-serif; fill: #222 }
.title { font-size: 13px; font-weight: bold } .grid { stroke: #d8dde3 } .one { stroke: #222; stroke-dasharray: 5 3 }
.clean { fill: #2e7d32 } .aside { fill: #f0a04b } .unknown { fill: #5b8db8 } .failed { fill: #b71c1c }
"""
KINDS = {"clean": "clean", "aside": "set aside", "unknown": "not linted", "failed": "no right solution"}


def distribution(rows: Sequence[BenchRow], baseline: str, modelled: bool) -> str:
    """Solved tasks by their speedup over `baseline`, the fastest first; failed ones at the end."""
    solved = sorted((row for row in rows if row.solved and baseline in row.speedups), key=lambda row: -row.speedups[baseline])
    failed = [row for row in rows if row.outcome in ("failed", "unusable")]
    ratios = [row.speedups[baseline] for row in solved]
    low, high = math.floor(math.log2(min([*ratios, 0.5]))), math.ceil(math.log2(max([*ratios, 2.0])))
    step = (WIDTH - LEFT - RIGHT) / max(len(solved) + len(failed), 1)

    def y(ratio: float) -> float:
        return TOP + (high - math.log2(ratio)) / (high - low) * (HEIGHT - TOP - BOTTOM)

    parts = [_grid(power, y(2.0**power)) for power in range(low, high + 1)]
    for position, row in enumerate(solved):
        parts.append(_bar(row, _kind(row), LEFT + position * step, step, y(row.speedups[baseline]), y(1.0),
                          f"{row.key}: {row.speedups[baseline]:.2f}x"))
    if step >= LABELLED:
        parts += [_label(row.key, LEFT + (position + 0.42) * step) for position, row in enumerate([*solved, *failed])]
    for position, row in enumerate(failed, len(solved)):
        parts.append(_bar(row, "failed", LEFT + position * step, step, y(1.0) - 3, y(1.0) + 3, f"{row.key}: {row.outcome}"))
    what = "modelled speedup" if modelled else "measured speedup"
    title = f"{what.capitalize()} over {baseline.replace('_', ' ')}: {len(solved)} solved tasks, {len(failed)} not solved"
    return "\n".join([
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{HEIGHT}" viewBox="0 0 {WIDTH} {HEIGHT}">',
        f"<style>\n{STYLE}</style>", '<rect width="100%" height="100%" fill="#fff"/>',
        f'<text class="title" x="{LEFT}" y="18">{escape(title)}</text>', *parts, *_legend(rows), "</svg>", "",
    ])


def _label(text: str, x: float) -> str:
    return f'<text x="{x:.1f}" y="{HEIGHT - BOTTOM + 10}" text-anchor="middle">{escape(text.removesuffix(".py"))}</text>'


def _kind(row: BenchRow) -> str:
    return "unknown" if row.set_aside is None else "aside" if row.set_aside else "clean"


def _bar(row: BenchRow, kind: str, x: float, step: float, top: float, base: float, title: str) -> str:
    upper, height = min(top, base), max(abs(base - top), 1.0)
    return (f'<rect class="{kind}" x="{x:.1f}" y="{upper:.1f}" width="{max(0.85 * step, 0.8):.1f}" height="{height:.1f}">'
            f"<title>{escape(title)}</title></rect>")


def _grid(power: int, y: float) -> str:
    kind, label = ("one" if power == 0 else "grid"), f"{2.0**power:g}×"
    return (f'<line class="{kind}" x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y:.1f}" y2="{y:.1f}"/>'
            f'<text x="{LEFT - 6}" y="{y + 4:.1f}" text-anchor="end">{label}</text>')


def _legend(rows: Sequence[BenchRow]) -> list[str]:
    present = {_kind(row) if row.solved else "failed" for row in rows}
    shown = [kind for kind in KINDS if kind in present]
    return [
        f'<rect class="{kind}" x="{LEFT + 140 * i}" y="{HEIGHT - 20}" width="10" height="10"/>'
        f'<text x="{LEFT + 140 * i + 15}" y="{HEIGHT - 11}">{KINDS[kind]}</text>' for i, kind in enumerate(shown)
    ]

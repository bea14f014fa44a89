"""The numbers of a solution's code that make some sizes dangerous: blocks, tiles, vector widths, unrolling, shared arrays.

Any of them may be a size's boundary; nothing tells which one belongs to which size, so every size is drawn around all.
"""

from __future__ import annotations

import ast
import re
from collections import Counter
from dataclasses import dataclass

WARP = 32
LARGEST = 4096
MOST = 10
"""Numbers that are kept, the most often written first."""
_NUMBER = re.compile(r"(?<![\w.])(0[xX][0-9a-fA-F]+|\d+)(?![\w.]|\.\d)")
_SHIFT = re.compile(r"(?:<<|>>)\s*(\d{1,2})\b")
_VECTOR = re.compile(r"\b(?:float|double|u?int|u?short|u?char|half|__half|__nv_bfloat16)(2|4)\b")
_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.S)
_ATOMIC = re.compile(r"\batomic(?:Add|Sub|Exch|CAS|Max|Min)\w*\s*\(|\b(?:red|atom)\.")
_FLOATING = re.compile(r"\b(?:float|double|half|__half2?|__nv_bfloat162?)\b")


@dataclass(frozen=True)
class Dangers:
    """What the source shows."""

    numbers: tuple[int, ...]
    """Ascending; 32 (a warp) is always among them."""
    float_atomics: bool
    """Atomics in a text that has floating point: sums may differ in their last bits from call to call."""


def find_dangers(source: str) -> Dangers:
    """Reads the Python module and the CUDA text inside its strings. Raises SyntaxError."""
    found: Counter[int] = Counter()
    texts = []
    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.Constant(value=bool()):
                continue
            case ast.Constant(value=int() as number):
                found[number] += 1
            case ast.Constant(value=str() as text) if "__global__" in text or "__device__" in text:
                texts.append(_COMMENT.sub(" ", text))
    for text in texts:
        found.update(int(number, 0) for number in _NUMBER.findall(text) if number == "0" or not re.fullmatch(r"0\d+", number))
        found.update(1 << int(shift) for shift in _SHIFT.findall(text))
        found.update(int(width) for width in _VECTOR.findall(text))
    cuda = "\n".join(texts)
    return Dangers(_chosen(found), bool(_ATOMIC.search(cuda) and _FLOATING.search(cuda)))


def _chosen(found: Counter[int]) -> tuple[int, ...]:
    # 255 in (n + 255) // 256 stands for 256.
    useful = Counter({n: c for n, c in found.items() if 2 < n <= LARGEST and n + 1 not in found})
    useful.update({2: 1} if 2 in found else {})
    kept = {n for n, _ in useful.most_common(MOST)} | {WARP}
    largest = max(kept)
    products = {largest * n for n in kept if n <= WARP and largest * n <= LARGEST}
    return tuple(sorted(kept | set(sorted(products)[:2])))

"""How much of what blocks touch must come from DRAM, from a few sampled blocks and their neighbours.

Working-set theory (Denning, 1968): with F(w) the distinct granules that w consecutive blocks touch, L2 holds the window w* with
F(w*) = capacity, and a block then misses F'(w*) granules. F comes from two kinds of sharing: neighbours in the grid (what the
blocks before it in x, y and z have touched already, measured on samples) and chance (how often unrelated samples meet).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
READ, WRITE, UPDATE = range(3)
USES = 3
"""Ways a buffer is used; a slot is one buffer in one use."""
GRANULE_BYTES = 64
"""What DRAM delivers at once."""
GRANULES_A_PAGE = 8
"""DRAM works fastest on whole 512-byte pieces."""
UNRELATED = 0.9
"""Neighbours that leave more than this share of a block's granules new share nothing to speak of."""
SEED = 1


@dataclass(frozen=True)
class Pattern:
    """How blocks of a grid share the granules (or pages) of one slot."""

    size: float
    """Granules a block touches."""
    new_x: float
    """Share of them that the block before it in x has not touched; likewise in y, in both, in z."""
    new_y: float
    new_xy: float
    new_z: float

    def window(self, blocks: float, grid: Sequence[int]) -> float:
        """Distinct granules that so many consecutive blocks touch, as far as neighbours share them."""
        gx, gy, _ = grid
        if blocks <= gx:
            return self.size * (1 + (blocks - 1) * self.new_x)
        row = self.size * (1 + (gx - 1) * self.new_x)
        next_row = self.size * (self.new_y + (gx - 1) * self.new_xy)
        if blocks <= gx * gy:
            return row + (blocks / gx - 1) * next_row
        plane = row + (gy - 1) * next_row
        return plane * (1 + (blocks / (gx * gy) - 1) * self.new_z)

    def slope(self, blocks: float, grid: Sequence[int]) -> float:
        """Granules that the block after such a window adds."""
        step = max(1.0, blocks * 1e-3)
        return (self.window(blocks + step, grid) - self.window(blocks, grid)) / step


@dataclass(frozen=True)
class Slot:
    """One buffer in one use, over the whole grid."""

    pattern: Pattern
    pages: Pattern
    distinct: float
    """Granules that the grid touches."""
    chance: float
    """Blocks that share a granule by chance, beyond what neighbours share (1: none). Sharing that samples show but neighbours
    do not explain is taken as chance where neighbours share nothing, as near otherwise."""
    filled: float
    """Share of the bytes of stored sectors that one block fills."""

    def window(self, blocks: float, grid: Sequence[int]) -> float:
        """F(w): distinct granules of so many consecutive blocks."""
        part = min(1.0, self.pattern.window(blocks, grid) / max(1e-9, self._all(grid)))
        return float(self.distinct * (1 - (1 - part) ** self.chance))

    def slope(self, blocks: float, grid: Sequence[int], wave: int) -> float:
        """F'(w). Neighbours in one wave run side by side, so what they share is shared however small w is; chance is not."""
        part = min(1.0, self.pattern.window(blocks, grid) / max(1e-9, self._all(grid)))
        thinning = self.distinct * self.chance / max(1e-9, self._all(grid)) * (1 - part) ** (self.chance - 1)
        return float(self.pattern.slope(max(blocks, wave), grid) * thinning)

    def _all(self, grid: Sequence[int]) -> float:
        return self.pattern.window(grid[0] * grid[1] * grid[2], grid)


@dataclass(frozen=True)
class Sharing:
    """What the sampled blocks say of the grid's memory traffic. Arrays are by slot (buffer * USES + use)."""

    dram_share: Floats
    """Of the granules that a block touches: how many DRAM serves."""
    density: Floats
    """How much of the DRAM pages that one wave touches it uses (1: all)."""
    partial: Floats
    """Of the granules that leave L2 after writes: how many were not written whole."""
    distinct_granules: Floats
    """Of the whole grid."""
    visitors: Floats
    """Share of all blocks that use a granule: the mean, or that of granules that most sampled blocks use."""


def choose_samples(grid: Sequence[int], count: int) -> NDArray[np.int64]:
    """Rows of block indices: a random block and those before it in x, y and z (-1 where the grid has no such direction)."""
    rng = np.random.default_rng(SEED)
    blocks = grid[0] * grid[1] * grid[2]
    if blocks <= count:
        at = np.arange(blocks)
    else:
        at = np.unique(rng.integers(0, blocks, 4 * count))
        at = rng.permutation(at)[:count]
    strides = (1, grid[0], grid[0] * grid[1])
    for extent, stride in zip(grid, strides, strict=True):  # away from the lower edge, where there is a neighbour
        if extent > 1:
            at = np.where(at // stride % extent == 0, at + stride, at)
    at = np.unique(at)
    rng.shuffle(at)
    rows = [at] + [at - stride if extent > 1 else np.full_like(at, -1) for extent, stride in zip(grid, strides, strict=True)]
    return np.ascontiguousarray(np.stack(rows, axis=1), dtype=np.int64)


def _share(new: float, size: float) -> float:
    return float(new / size) if size > 0 else 1.0


def _pattern(sums: dict[str, float]) -> Pattern:
    samples = max(1.0, sums["samples"])
    new_y = _share(sums["new_y"], sums["size_y"])
    return Pattern(sums["size"] / samples, _share(sums["new_x"], sums["size_x"]), new_y,
                   _share(sums["new_xy"], sums["size_xy"]), _share(sums["new_z"], sums["size_z"]))


def distinct_by_chance(sharers: Floats, samples: int, blocks: int) -> float:
    """Distinct granules of all `blocks`, from how many granules 1, 2, ... of the random samples share (Horvitz-Thompson).

    The popularity of rarely met granules comes from the ratio of pairs to singles (as Chao's estimator does).
    """
    if samples >= blocks:
        return float(sharers.sum())
    single, double = sharers[1], sharers[2]
    rare = 1.0 if samples < 2 or not single else max(1.0, blocks * 2 * double / ((samples - 1) * single))
    total = 0.0
    for met in range(1, len(sharers)):
        users = min(blocks, rare if met <= 2 else blocks * met / samples)
        total += sharers[met] / max(1e-9, 1 - (1 - users / blocks) ** samples)
    return total


def _slot(granules: dict[str, float], pages: dict[str, float], sharers: Floats, grid: Sequence[int],
          buffer_bytes: float) -> Slot:
    blocks = grid[0] * grid[1] * grid[2]
    pattern = _pattern(granules)
    by_neighbours = pattern.window(blocks, grid)
    distinct = by_neighbours
    if pattern.size * blocks < 1.5 * by_neighbours:  # neighbours share little: chance may
        distinct = min(distinct, distinct_by_chance(sharers, int(granules["samples"]), blocks))
    distinct = min(distinct, -(-buffer_bytes // GRANULE_BYTES))
    filled = granules["stored_bytes"] / (32 * granules["stored_sectors"]) if granules["stored_sectors"] else 1.0
    unrelated = by_neighbours > UNRELATED * pattern.size * blocks
    chance = max(1.0, by_neighbours / max(1.0, distinct)) if unrelated else 1.0
    return Slot(pattern, _pattern(pages), distinct, chance, filled)


def popularity(slot: Slot, sharers: Floats, samples: int, blocks: int) -> float:
    """Share of all blocks that use a granule: mean over touches, or that of granules most samples use (a counter, bins)."""
    common = [met for met in range(max(4, samples // 2), len(sharers)) if sharers[met]]
    mean = slot.pattern.size / max(1.0, slot.distinct)
    return float(min(1.0, max(mean, max(common, default=0) / max(1, samples), 1 / blocks)))


def window_that_fits(slots: Sequence[Slot], grid: Sequence[int], capacity: float) -> float:
    """The most consecutive blocks whose granules L2 holds."""
    blocks = grid[0] * grid[1] * grid[2]

    def footprint(count: float) -> float:
        return GRANULE_BYTES * sum(slot.window(count, grid) for slot in slots)

    if footprint(blocks) <= capacity:
        return float(blocks)
    low, high = 1.0, float(blocks)
    while high / low > 1.01:
        middle = (low * high) ** 0.5
        low, high = (middle, high) if footprint(middle) <= capacity else (low, middle)
    return low


def analyse(sums: NDArray[np.void], sharers: Floats, grid: Sequence[int], buffer_bytes: Sequence[int], capacity: float,
            wave: int) -> Sharing:
    """`sums`: slots x 2 levels (granules, pages); `capacity`: bytes of L2 that reuse can count on; `wave`: blocks at once."""
    count, blocks = len(sums), grid[0] * grid[1] * grid[2]
    names = sums.dtype.names or ()
    used = [i for i in range(count) if sums[i, 0]["size"] > 0]
    slots = {i: _slot({n: float(sums[i, 0][n]) for n in names}, {n: float(sums[i, 1][n]) for n in names}, sharers[i], grid,
                      buffer_bytes[i // USES]) for i in used}
    window = window_that_fits(list(slots.values()), grid, capacity)
    dram_share, density, partial, distinct, visitors = (np.zeros(count), np.ones(count), np.zeros(count), np.zeros(count),
                                                        np.zeros(count))
    for i, slot in slots.items():
        once = slot.distinct / (blocks * slot.pattern.size)
        again = slot.slope(window, grid, wave) / slot.pattern.size if window < blocks else 0.0
        dram_share[i] = min(1.0, max(once, again))
        in_wave = min(wave, blocks)
        room = GRANULES_A_PAGE * max(1e-9, slot.pages.window(in_wave, grid))
        density[i] = min(1.0, slot.pattern.window(in_wave, grid) / room)
        visits = window * slot.pattern.size / max(1.0, slot.window(window, grid))
        partial[i] = max(0.0, 1 - slot.filled * visits)
        distinct[i] = slot.distinct
        visitors[i] = popularity(slot, sharers[i], int(sums[i, 0]["samples"]), blocks)
    return Sharing(dram_share, np.maximum(density, 1 / GRANULES_A_PAGE), partial, distinct, visitors)

"""Counts of a launch: what every instruction did, and their sums in Nsight Compute's meaning."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from evaluator.simulator.ptx_code import KernelCode, op_table

COUNTS = np.dtype([(name, "u8") for name in (
    "executed", "lanes", "divergent", "global_requests", "sectors", "ideal_sectors", "lines", "shared_requests", "wavefronts",
    "ideal_wavefronts", "local_requests", "bytes")])
LOADS, STORES, ATOMICS = ("LOAD", "COPY_ASYNC", "FRAGMENT_LOAD"), ("STORE", "FRAGMENT_STORE"), ("ATOMIC",)


@dataclass(frozen=True)
class Traffic:
    """Global accesses of one kind: warp-level requests, 32-byte sectors, the fewest sectors for the bytes, bytes."""

    requests: int
    sectors: int
    ideal_sectors: int
    nbytes: int


@dataclass(frozen=True)
class KernelCounts:
    """Counts of one launch (of the blocks that ran)."""

    code: KernelCode
    per_instruction: NDArray[np.void]
    """COUNTS records by pc."""

    def _select(self, names: tuple[str, ...]) -> NDArray[np.bool_]:
        numbers = [op_table().other[name] for name in names]
        return np.isin(self.code.code["op"], numbers)

    def _sum(self, field: str, names: tuple[str, ...] | None = None) -> int:
        values = self.per_instruction[field]
        return int(values.sum() if names is None else values[self._select(names)].sum())

    def _traffic(self, names: tuple[str, ...]) -> Traffic:
        chosen = self.per_instruction[self._select(names)]
        chosen = chosen[chosen["global_requests"] > 0]
        return Traffic(*(int(chosen[f].sum()) for f in ("global_requests", "sectors", "ideal_sectors", "bytes")))

    @property
    def global_loads(self) -> Traffic:
        """ld.global, cp.async and wmma loads."""
        return self._traffic(LOADS)

    @property
    def global_stores(self) -> Traffic:
        """st.global and wmma stores."""
        return self._traffic(STORES)

    @property
    def global_atomics(self) -> Traffic:
        """atom and red on global memory."""
        return self._traffic(ATOMICS)

    @property
    def shared_requests(self) -> int:
        """Warp-level shared-memory instructions."""
        return self._sum("shared_requests")

    @property
    def shared_wavefronts(self) -> int:
        """Passes through the shared-memory banks."""
        return self._sum("wavefronts")

    @property
    def shared_ideal_wavefronts(self) -> int:
        """Passes without bank conflicts."""
        return self._sum("ideal_wavefronts")

    @property
    def local_requests(self) -> int:
        """Warp-level local-memory instructions."""
        return self._sum("local_requests")

    @property
    def warp_instructions(self) -> int:
        """PTX instructions that warps executed."""
        return self._sum("executed")

    @property
    def thread_instructions(self) -> int:
        """The same, by active lane."""
        return self._sum("lanes")

    @property
    def branches(self) -> int:
        """Branch instructions that warps executed."""
        return self._sum("executed", ("BRANCH", "BRANCH_TABLE"))

    @property
    def divergent_branches(self) -> int:
        """Branches whose lanes disagreed."""
        return self._sum("divergent")

    @property
    def barriers(self) -> int:
        """Block barriers that warps executed."""
        return self._sum("executed", ("BARRIER",))

    @property
    def mix(self) -> Counter[str]:
        """PTX operation (`fma.rn.ftz.f32`, `LOAD`) -> warp instructions."""
        total: Counter[str] = Counter()
        names = op_table().names
        for opcode, executed in zip(self.code.code["op"].tolist(), self.per_instruction["executed"].tolist(), strict=True):
            if executed:
                total[names[opcode]] += executed
        return total

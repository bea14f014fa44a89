"""The circumstances of one call that its result may not depend on, as the judge asks for them."""

from __future__ import annotations

from pydantic import Field

from evaluator.types import Frozen

APART = -2
"""An order of blocks: none sees what another one writes, as if all ran at once."""


class Conditions(Frozen):
    """Defaults: as every verification calls a solution."""

    layout: str = "contiguous"
    """How fresh inputs lie in memory (`evaluator/layouts.py`)."""
    fresh_byte: int | None = Field(None, ge=0, le=255)
    """What memory holds before it is allocated; None: NaN for floating point, a large pattern for integers."""
    block_order: int | None = None
    """Simulator: None as numbered, -1 backwards, APART as if all ran at once, else the seed of a permutation."""
    late_stream: bool = False
    """GPU: on a stream of its own, on which the inputs arrive only after the solution has been called."""
    keeps_result: bool = False
    """The result stays with the caller: the next such call tells whether it changed what this one returned."""
    watched: bool = True
    """Afterwards it is looked whether the solution changed what its callers rely on (tens of milliseconds)."""
    bands: bool = False
    """GPU, CuPy: every allocation lies between bands of known bytes, which must not change."""

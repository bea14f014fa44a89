"""Runs a probe through CuPy: the real one on a card, the stand-in in the simulator."""

from __future__ import annotations

from typing import Any

from benchmarks.probes.probe import Array, Probe


def execute(cupy: Any, probe: Probe) -> dict[str, Array]:
    """The arrays after the launch, outputs among them. Raises what CuPy raises."""
    case = probe.case()
    arguments = [cupy.asarray(array) for array in case.arrays.values()]
    options = ("--std=c++17", *probe.options)
    module = cupy.RawModule(code=probe.source, options=options, enable_cooperative_groups=probe.cooperative)
    module.get_function(probe.name)(probe.grid, probe.block, (*arguments, *case.scalars), shared_mem=probe.shared)
    cupy.cuda.runtime.deviceSynchronize()
    return {name: cupy.asnumpy(array) for name, array in zip(case.arrays, arguments, strict=True)}

"""Torch storages as simulated device memory: known to the registry for exactly as long as they live."""

from __future__ import annotations

from typing import Any

from evaluator.simulator.standin.state import registry


def lend_storage(tensor: Any) -> None:
    """Registers the memory behind a torch CPU tensor (all of its storage, so that offsets and views resolve too)."""
    from torch.multiprocessing.reductions import StorageWeakRef

    storage = tensor.untyped_storage()
    dtype = str(tensor.dtype).removeprefix("torch.")
    label = f"torch {dtype} tensor {list(tensor.shape)}"
    registry.lend(storage.data_ptr(), storage.nbytes(), label, StorageWeakRef(storage).expired)


def note_written(*targets: Any) -> None:
    """Notes that a torch function writes into these tensors (inside tuples and lists too)."""
    for target in targets:
        if isinstance(target, (tuple, list)):
            note_written(*target)
        elif hasattr(target, "untyped_storage"):
            registry.written_by_library(target.untyped_storage().data_ptr())

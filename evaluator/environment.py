"""The record of where an evaluation ran."""

from __future__ import annotations

import importlib.metadata

from evaluator.types import Environment, Request

VERSIONED = ("numpy", "torch", "nvidia-cuda-nvrtc", "cupy-cuda12x", "cupy-cuda13x")


def environment(request: Request, sandbox: str) -> Environment:
    """Where the evaluation runs."""
    versions = {}
    for package in VERSIONED:
        try:
            versions[package] = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            continue
    return Environment(
        device=request.device.name, simulated=request.mode == "sim", arch=request.device.arch, versions=versions,
        sandbox=sandbox,
    )

"""A fresh device memory and a seeded generator for each test."""

from __future__ import annotations

import numpy as np
import pytest
from kernel_bench import Device


@pytest.fixture
def device() -> Device:
    return Device()


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(7)

"""The matrix product a b."""

import numpy as np


def make_inputs(rng, m, n, k):
    return {
        "a": rng.standard_normal((m, k), dtype=np.float32),
        "b": rng.standard_normal((k, n), dtype=np.float32),
    }


def reference(a, b):
    return a @ b

"""The transposed matrix, contiguous."""

import numpy as np


def make_inputs(rng, rows, cols):
    return {"x": rng.standard_normal((rows, cols), dtype=np.float32)}


def reference(x):
    return np.ascontiguousarray(x.T)

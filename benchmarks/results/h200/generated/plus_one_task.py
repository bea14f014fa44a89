"""One addition an element."""

import numpy as np


def make_inputs(rng, n):
    return {"x": rng.standard_normal(n, dtype=np.float32)}


def reference(x):
    return x + 1

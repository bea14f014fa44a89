"""GELU (erf form) of x + bias."""

import numpy as np
from scipy.special import erf


def make_inputs(rng, rows, cols):
    return {
        "x": rng.standard_normal((rows, cols), dtype=np.float32),
        "bias": rng.standard_normal(cols, dtype=np.float32),
    }


def reference(x, bias):
    z = x + bias
    return 0.5 * z * (1.0 + erf(z * 2.0**-0.5))

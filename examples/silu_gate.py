"""A gated activation, silu(gate) * up, as a task in one file: constants, reference, and the start as `run`."""

import cupy
import numpy as np

NAME = "silu_gate"
FAMILY = "elementwise"
OPERATION = "silu(gate) * up"
SIZES = {"tokens": 4096, "hidden": 8192}
CHECK_SIZES = [{"tokens": 1, "hidden": 1}, {"tokens": 5, "hidden": 77}, {"tokens": 66, "hidden": 130}]
TOLERANCE = {"rtol": 1e-4, "atol": 1e-5}
ARGUMENTS = {
    "inputs": {"gate": ["tokens", "hidden"], "up": ["tokens", "hidden"]},
    "output": "y",
    "shape": ["tokens", "hidden"],
}


def make_inputs(rng, tokens, hidden):
    return {
        "gate": rng.standard_normal((tokens, hidden), dtype=np.float32),
        "up": rng.standard_normal((tokens, hidden), dtype=np.float32),
    }


def reference(gate, up):
    return gate / (1.0 + np.exp(-gate)) * up


SOURCE = r"""
extern "C" __global__ void silu_gate(const float* gate, const float* up, float* y, long long n) {
    long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = gate[i] / (1.0f + expf(-gate[i])) * up[i];
}
"""

KERNEL = cupy.RawModule(code=SOURCE, options=("--std=c++17",)).get_function("silu_gate")


def run(gate, up):
    y = cupy.empty(gate.shape, dtype=np.float32)
    n = gate.size
    KERNEL(((n + 255) // 256,), (256,), (gate, up, y, np.int64(n)))
    return y

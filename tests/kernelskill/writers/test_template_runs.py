"""Rendered solutions run on the simulator: right on awkward sizes, and without a finding."""

from __future__ import annotations

import numpy as np
import pytest
from writer_cases import apply, reached, tasks

from evaluator.simulator import standin
from evaluator.types import DeviceSpec
from kernelskill.writers.declared import evaluate
from kernelskill.writers.template import TemplateWriter

DEVICE = DeviceSpec(
    name="a GPU", compute_capability=(9, 0), sm_count=4, sm_clock_hz=1.98e9, dram_bytes_per_s=4.8e12, fp32_flops_per_s=66.9e12,
    l2_bytes=50 << 20, l1_shared_bytes_per_sm=256 << 10, shared_bytes_per_sm=228 << 10, shared_bytes_per_block=227 << 10)
BEST = {
    "bias_gelu": ("kernel_fusion", "vectorized_access", "grid_stride_loop", "work_per_thread", "loop_unrolling"),
    "broadcasts": ("kernel_fusion", "vectorized_access", "work_per_thread", "fast_math_intrinsics"),
    "sum": ("coalesced_access", "warp_shuffle_reduction", "vectorized_access", "loop_unrolling"),
    "max": ("block_per_row_reduction", "warp_shuffle_reduction", "vectorized_access"),
    "softmax": ("block_per_row_reduction", "warp_shuffle_reduction", "register_caching", "vectorized_access"),
    "log_softmax": ("coalesced_access", "online_algorithm", "warp_shuffle_reduction", "vectorized_access"),
    "layer_norm": ("block_per_row_reduction", "online_algorithm", "vectorized_access", "warp_shuffle_reduction"),
    "transpose": ("shared_memory_tiling", "bank_conflict_padding", "vectorized_access"),
    "matmul_gelu": ("shared_memory_tiling", "register_blocking", "vectorized_access", "bank_conflict_padding",
                    "double_buffering", "loop_unrolling"),
}
SIZES = [{"rows": 1, "cols": 1}, {"rows": 5, "cols": 33}, {"rows": 9, "cols": 100}, {"rows": 2, "cols": 2052}]
PRODUCTS = [{"m": 1, "n": 1, "k": 1}, {"m": 33, "n": 65, "k": 17}, {"m": 20, "n": 132, "k": 36}]


@pytest.fixture
def session():
    made = standin.Session(device=DEVICE)
    standin.install(made)
    yield made
    standin.uninstall()


def inputs_of(name: str, sizes: dict[str, int]) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(7)

    def normal(*shape: int) -> np.ndarray:
        return rng.standard_normal(shape, dtype=np.float32)

    if name.startswith("matmul"):
        m, n, k = sizes["m"], sizes["n"], sizes["k"]
        made = {"a": normal(m, k), "b": normal(k, n)}
        return made | {"bias": normal(n)} if name == "matmul_gelu" else made
    rows, cols = sizes["rows"], sizes["cols"]
    extra = {"bias_gelu": {"bias": (cols,)}, "broadcasts": {"s": (1,), "c": (rows, 1)},
             "layer_norm": {"gamma": (cols,), "beta": (cols,)}}
    return {"x": normal(rows, cols), **{key: normal(*shape) for key, shape in extra.get(name, {}).items()}}


def run(source: str, inputs: dict[str, np.ndarray]) -> np.ndarray:
    import cupy

    module: dict = {"__name__": "solution"}
    exec(compile(source, "solution.py", "exec"), module)
    return module["run"](*(cupy.asarray(value) for value in inputs.values())).get()


def check(name: str, source: str, session: standin.Session) -> None:
    for sizes in PRODUCTS if name.startswith("matmul") else SIZES:
        inputs = inputs_of(name, sizes)
        expected = np.asarray(evaluate(tasks()[name], {k: v.astype(np.float64) for k, v in inputs.items()}, ()))
        np.testing.assert_allclose(run(source, inputs), expected, rtol=2e-4, atol=2e-4, err_msg=f"{name} {sizes}")
    assert session.findings == []
    # The test itself takes the result to the host.
    assert [call for call in session.library_calls if call.name != "cupy.get"] == []


@pytest.mark.parametrize("name", sorted(tasks()))
def test_a_random_walk_is_right_at_every_step(name, session):
    for source in list(reached(tasks()[name], walks=1, seed=5))[::2]:
        check(name, source, session)


@pytest.mark.parametrize("name", sorted(BEST))
def test_the_intended_sequence_of_methods_is_right(name, session):
    task = tasks()[name]
    check(name, apply(task, TemplateWriter().start(task), *BEST[name]), session)


@pytest.mark.parametrize("name", ["max", "min", "softmax", "one_operator"])
def test_nan_reaches_the_output_as_in_numpy(name, session):
    task = tasks()[name]
    source = TemplateWriter().start(task)
    if name != "one_operator":
        source = apply(task, source, "block_per_row_reduction", "warp_shuffle_reduction", "vectorized_access")
    x = np.ones((3, 8), dtype=np.float32)
    x[1, 5] = np.nan
    expected = np.isnan(evaluate(task, {"x": x}, ()))
    assert np.array_equal(np.isnan(run(source, {"x": x})), expected)


def test_a_row_with_minus_infinity_keeps_its_online_softmax(session):
    task = tasks()["softmax"]
    source = apply(task, TemplateWriter().start(task), "block_per_row_reduction", "online_algorithm")
    x = np.array([[-np.inf, 0.0, 1.0], [-np.inf, -np.inf, 2.0]], dtype=np.float32)
    np.testing.assert_allclose(run(source, {"x": x}), evaluate(task, {"x": x.astype(np.float64)}, ()), rtol=1e-5)


def test_an_outlier_first_does_not_spoil_the_one_pass_variance(session):
    task = tasks()["layer_norm"]
    source = apply(task, TemplateWriter().start(task), "block_per_row_reduction", "online_algorithm")
    inputs = inputs_of("layer_norm", {"rows": 2, "cols": 1000})
    inputs["x"][:, 0] = 1e4
    expected = evaluate(task, {k: v.astype(np.float64) for k, v in inputs.items()}, ())
    np.testing.assert_allclose(run(source, inputs), expected, rtol=1e-4, atol=1e-5)


def test_a_misaligned_or_strided_input_is_made_dense_and_another_dtype_is_refused(session):
    import cupy

    task = tasks()["softmax"]
    source = apply(task, TemplateWriter().start(task), "block_per_row_reduction", "vectorized_access")
    flat = np.random.default_rng(3).standard_normal(33).astype(np.float32)
    module: dict = {"__name__": "solution"}
    exec(compile(source, "solution.py", "exec"), module)
    shifted = cupy.asarray(flat)[1:].reshape(4, 8)
    np.testing.assert_allclose(module["run"](shifted).get().sum(axis=1), 1.0, rtol=1e-5)
    assert session.findings == []
    with pytest.raises(TypeError, match="expected float32, got float64"):
        module["run"](cupy.asarray(flat.astype(np.float64)))

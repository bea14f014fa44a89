"""Tasks of the quality proof of `kernelskill check`: references in NumPy, two in KernelBench form."""

from __future__ import annotations

from pathlib import Path

from evaluator.types import TaskSpec

HEAD = "import numpy as np\n\n\n"
FORM = '''def make_inputs(rng, {sizes}):
    return {{{inputs}}}


def reference({names}):
    return {result}
'''
NORMAL = "rng.standard_normal({shape}, dtype=np.float32)"


def _text(sizes: str, result: str, **shapes: str) -> str:
    inputs = ", ".join(f'"{name}": {made if "rng" in made else NORMAL.format(shape=made)}' for name, made in shapes.items())
    return FORM.format(sizes=sizes, inputs=inputs, names=", ".join(shapes), result=result)


def _vector(result: str, **more: str) -> str:
    return _text("n", result, **{"x": "n", **more})


def _rows(result: str, **more: str) -> str:
    return _text("rows, cols", result, **{"x": "(rows, cols)", **more})


HALF = "rng.standard_normal({shape}, dtype=np.float32).astype(np.float16)"
PAIRED = '''def make_inputs(rng, rows, cols):
    if cols < 2:
        raise ValueError("a pair takes two columns")
    return {"x": rng.standard_normal((rows, cols), dtype=np.float32)}


def reference(x):
    pairs = x[:, :x.shape[1] // 2 * 2].reshape(x.shape[0], -1, 2)
    return (pairs[:, :, 0] + pairs[:, :, 1]) / 2
'''
CLIPPED = '''def make_inputs(rng, n):
    return {"x": rng.standard_normal(n, dtype=np.float32)}


def reference(x):
    np.maximum(x, 0, out=x)
    return x
'''
STENCIL = '''def make_inputs(rng, n):
    return {"x": rng.standard_normal(n, dtype=np.float32)}


def reference(x):
    p = np.pad(x, 1)
    return 0.25 * p[:-2] + 0.5 * p[1:-1] + 0.25 * p[2:]
'''
LINEAR = '''import torch
import torch.nn as nn

batch = 48
features = 72


class Model(nn.Module):
    def __init__(self, features):
        super().__init__()
        self.linear = nn.Linear(features, features)

    def forward(self, x):
        return torch.relu(self.linear(x))


def get_inputs():
    return [torch.rand(batch, features)]


def get_init_inputs():
    return [features]
'''
EXPONENTIALS = "(e := np.exp(x - x.max(1, keepdims=True)))"
TEXTS = {
    "scale": _vector("2 * x + 1"), "relu": _vector("np.maximum(x, 0)"), "reciprocal": _vector("1 / x"),
    "sigmoid": _vector("np.where(x >= 0, 1, np.exp(-np.abs(x))) / (1 + np.exp(-np.abs(x)))"),
    "gelu": _vector("0.5 * x * (1 + np.tanh(0.7978845608 * (x + 0.044715 * x * x * x)))"),
    "axpy": _vector("3 * x + y", y="n"), "dot": _vector("(x * y).sum(keepdims=True)", y="n"),
    "total": _vector("x.sum(keepdims=True)"), "running_sum": _vector("np.cumsum(x, dtype=x.dtype)"),
    "reverse": _vector("np.ascontiguousarray(x[::-1])"), "concat": _vector("np.concatenate([x, y])", y="n"),
    "stencil": STENCIL, "clip": CLIPPED,
    "half_scale": _vector("2 * x + 1", x=HALF.format(shape="n")),
    "squares": _vector("x.astype(np.int64) ** 2", x="rng.integers(-100_000, 100_000, n, dtype=np.int32)"),
    "histogram": _vector("np.bincount(x, minlength=16).astype(np.int32)", x="rng.integers(0, 16, n, dtype=np.int32)"),
    "bias": _rows("x + bias", bias="cols"), "row_scale": _rows("x * s[:, None]", s="rows"),
    "row_sum": _rows("x.sum(axis=1)"), "row_max": _rows("x.max(axis=1)"), "col_sum": _rows("x.sum(axis=0)"),
    "half_row_sum": _rows("x.sum(axis=1, dtype=np.result_type(x, np.float32))", x=HALF.format(shape="(rows, cols)")),
    "row_argmax": _rows("x.argmax(axis=1).astype(np.int32)"), "row_cumsum": _rows("np.cumsum(x, axis=1, dtype=x.dtype)"),
    "sum_and_max": _rows("(x.sum(axis=1), x.max(axis=1))"),
    "softmax": _rows(f"{EXPONENTIALS} / e.sum(1, keepdims=True)"),
    "log_sum_exp": _rows(f"np.log({EXPONENTIALS}.sum(1)) + x.max(1)"),
    "normalise": _rows("(x - x.mean(1, keepdims=True)) / np.sqrt(x.var(1, keepdims=True) + 1e-5)"),
    "layer_norm": _rows("(x - x.mean(1, keepdims=True)) / np.sqrt(x.var(1, keepdims=True) + 1e-5) * gain + bias", gain="cols",
                        bias="cols"),
    "rms_norm": _rows("x / np.sqrt((x * x).mean(1, keepdims=True) + 1e-6) * gain", gain="cols"),
    "transpose": _rows("np.ascontiguousarray(x.T)"), "lower": _rows("np.tril(x)"), "pairs": PAIRED,
    "gather": _rows("x[index]", index="rng.integers(0, rows, rows, dtype=np.int32)"),
    "matvec": _rows("x @ v", v="cols"),
    "matmul": _text("m, n, k", "a @ b", a="(m, k)", b="(k, n)"),
    "linear": LINEAR,
}
SIZES: dict[str, tuple[dict[str, int], tuple[dict[str, int], ...]]] = {
    "n": ({"n": 200_000}, ({"n": 1000},)),
    "rows": ({"rows": 100_000, "cols": 100_000}, ({"rows": 8, "cols": 64},)),
    "m": ({"m": 512, "n": 512, "k": 512}, ({"m": 32, "n": 32, "k": 32},)),
}
"""Check sizes that a hurried author would give: round numbers."""
TORCH: dict[str, tuple[dict[str, int], tuple[dict[str, int], ...]]] = {
    "linear": ({"batch": 48, "features": 72}, ({"batch": 16, "features": 16}, {"batch": 32, "features": 48})),
}


def task(name: str, folder: Path) -> TaskSpec:
    """The task of that name, its reference written into `folder`."""
    path = folder / f"{name}_reference.py"
    if name in TORCH:
        path.write_text(TEXTS[name], encoding="utf-8")
        sizes, checks = TORCH[name]
        return TaskSpec(name=name, kind="kernelbench", path=str(path), sizes=sizes, check_sizes=checks)
    path.write_text(HEAD + TEXTS[name], encoding="utf-8")
    first = next(key for key in SIZES if f"rng, {key}" in TEXTS[name])
    sizes, checks = SIZES[first]
    return TaskSpec(name=name, kind="native", path=str(path), sizes=sizes, check_sizes=checks)

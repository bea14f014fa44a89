from __future__ import annotations

import pytest

from kernelskill.tasks.dtypes import input_dtype

NATIVE = [
    ('return {"x": rng.standard_normal(n, dtype=np.float32)}', "float32"),
    ('return {"x": rng.standard_normal(n).astype("float16")}', "float16"),
    ('return {"i": rng.integers(0, 3, n).astype(np.int32), "x": np.zeros(n, np.float64)}', "float64"),
    ("x = rng.random(n, dtype=np.float32)\n    return dict(x=x)", "float32"),
    ('return {"x": rng.standard_normal(n)}', None),
    ('return {"i": rng.integers(0, 3, n)}', None),
    ("return helper(rng)", None),
]
TORCH = [
    ("return [torch.randn(n)]", "float32"),
    ("return [torch.randn(n).half()]", "float16"),
    ("return [torch.randint(0, 3, (n,)), torch.rand(n, dtype=torch.bfloat16)]", "bfloat16"),
    ("x = torch.rand(n)\n    return [x]", "float32"),
    ("return [load(n)]", None),
]


@pytest.mark.parametrize(("body", "dtype"), NATIVE)
def test_native(tmp_path, body, dtype):
    path = tmp_path / "reference.py"
    path.write_text(f"def make_inputs(rng, n):\n    {body}\n")
    assert input_dtype(path, "native") == dtype


@pytest.mark.parametrize(("body", "dtype"), TORCH)
def test_kernelbench(tmp_path, body, dtype):
    path = tmp_path / "kb.py"
    path.write_text(f"def get_inputs():\n    {body}\n")
    assert input_dtype(path, "kernelbench") == dtype
    path.write_text(f"torch.set_default_dtype(torch.float16)\ndef get_inputs():\n    {body}\n")
    assert input_dtype(path, "kernelbench") is None

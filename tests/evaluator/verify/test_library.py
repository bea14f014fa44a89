from __future__ import annotations

import pytest

from evaluator.library import CATEGORIES, flag, is_allowed, kernel_is_allowed, kernel_operator, plain, unknown_entry
from evaluator.types import LaunchRecord, TaskSpec
from evaluator.verify import foreign_findings
from kernelskill.errors import TaskError
from kernelskill.model import Task


@pytest.mark.parametrize(("operator", "name"), [
    ("torch.conv2d", "conv2d"), ("aten::addmm", "addmm"), ("torch.__rmatmul__", "matmul"), ("torch.relu_", "relu"),
    ("torch.addmm.default", "addmm"), ("cupy.matmul", "matmul"), ("torch.__iadd__", "add"),
])
def test_names_of_the_same_operator(operator, name):
    assert plain(operator) == name


@pytest.mark.parametrize(("operator", "allowed", "verdict"), [
    ("torch.conv2d", ("conv",), True), ("torch.conv2d", ("conv2d",), True), ("torch.conv2d", ("matmul",), False),
    ("torch.relu", ("conv",), False), ("torch.relu", ("relu",), True), ("torch.relu", ("all",), True),
    ("torch.linear", (), False),
    ("torch.numpy", ("matmul",), False), ("torch.numpy", ("host",), True),
])
def test_what_a_list_lets_stay(operator, allowed, verdict):
    assert is_allowed(operator, allowed) is verdict


def test_the_flag_that_is_named_lets_the_operator_stay():
    operators = [name for members in CATEGORIES.values() for name in members.split()] + ["relu", "exp"]
    assert all(is_allowed(f"torch.{name}", (flag(name),)) for name in operators)


KERNELS = {
    "sm90_xmma_gemm_f32f32_tf32f32_f32_tn_n_tilesize128x128x32": "matmul",
    "void cutlass::Kernel2<cutlass_80_simt_sgemm_128x64_8x5_nn_align1>(cutlass::Params)": "matmul",
    "void implicit_convolve_sgemm<float, float, 128, 5, 5, 3, 3, 3, 1, true, false, true>(int)": "conv",
    "void at::native::(anonymous namespace)::softmax_warp_forward<float, float, float, 8>(float*)": "softmax",
    "void at::native::reduce_kernel<512, 1, at::native::ReduceOp<float>>(int)": "reduction",
    "cupy_sum": "reduction", "cupy_copy__float32_float32": "",
    "void at::native::vectorized_elementwise_kernel<4, at::native::FillFunctor<float>>(int)": "",
}


@pytest.mark.parametrize("kernel", KERNELS)
def test_what_a_librarys_kernel_computes(kernel):
    operator = KERNELS[kernel]
    assert kernel_operator(kernel) == operator
    assert kernel_is_allowed(kernel, ()) is (operator == "")
    assert kernel_is_allowed(kernel, (operator or "conv",))


def test_a_kernel_that_no_pattern_knows_is_an_operator_of_its_own():
    assert not kernel_is_allowed("cupy_add__float32_float_float32", ("conv",))
    assert kernel_is_allowed("cupy_add__float32_float_float32", ("add",))


def test_recorded_launches_of_a_library_are_refused_once_each():
    task = TaskSpec(name="t", kind="native", path="t.py", sizes={"n": 1}, check_sizes=(), allow_library=("conv",))
    own, gemm = (LaunchRecord(kernel=name, grid=(1, 1, 1), block=(1, 1, 1), library=library)
                 for name, library in (("mine", False), ("ampere_sgemm_64x32_nn", True)))
    found = foreign_findings([own, gemm, gemm], task)
    assert [(f.kind, f.severity) for f in found] == [("library_call", "error")]
    assert "--allow-library matmul" in found[0].message
    assert foreign_findings([gemm], task.model_copy(update={"allow_library": ("linear",)})) == []


@pytest.mark.parametrize(("entry", "words"), [
    ("Conv 2d", "no operator's name"), ("matmull", "did you mean 'matmul'"), ("conv", ""), ("relu", ""), ("all", "")])
def test_an_entry_that_names_nothing(entry, words, tmp_path):
    assert words in unknown_entry(entry) and bool(unknown_entry(entry)) is bool(words)
    task = Task(TaskSpec(name="t", kind="native", path="t.py", sizes={"n": 1}, check_sizes=()), tmp_path, "")
    if words:
        with pytest.raises(TaskError, match="--allow-library"):
            task.allowing([entry])
    else:
        assert task.allowing([entry]).spec.allow_library == (entry,)

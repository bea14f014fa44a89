"""Torch code written for CUDA runs on CPU tensors; memory is shared both ways; operators are counted."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from evaluator.simulator.standin import SimulatedError
from evaluator.simulator.standin.state import registry

SCALE = 'extern "C" __global__ void scale(float* y, const float* x, int n) {\n' \
        "  int i = blockIdx.x * blockDim.x + threadIdx.x;\n  y[i] = 2 * x[i < n ? i : i];\n}"


@pytest.fixture
def scale(cupy):
    return cupy.RawKernel(SCALE, "scale")


def test_cuda_devices_are_simulated(torch):
    assert torch.cuda.is_available()
    x = torch.ones(3, device="cuda").cuda().to("cuda:0").to(torch.device("cuda")).to(0)
    assert x.is_cuda
    assert x.device.type == "cuda"
    assert torch.zeros(2, device=x.device).device == x.device
    assert torch.nn.Linear(3, 3).cuda().to("cuda").weight.is_cuda
    assert torch.cuda.current_stream().cuda_stream == 0
    assert torch.cuda.get_device_capability() == (9, 0)
    torch.cuda.synchronize()
    with torch.cuda.device(x.device), torch.cuda.stream(torch.cuda.Stream()):
        pass
    with pytest.raises(RuntimeError, match="no clock"):
        torch.cuda.Event(enable_timing=True).elapsed_time(torch.cuda.Event(enable_timing=True))


def test_bridge_is_removed_with_the_session(torch):
    from evaluator.simulator import standin

    standin.uninstall()
    assert not torch.cuda.is_available()
    assert torch.ones(1).device.type == "cpu"


def test_memory_is_shared_both_ways(torch, cupy):
    tensor = torch.arange(6, dtype=torch.float32, device="cuda").reshape(2, 3)
    array = cupy.from_dlpack(tensor)
    array[0, 0] = 9
    assert tensor[0, 0] == 9
    assert cupy.asarray(tensor).data.ptr == tensor.data_ptr()
    back = torch.from_dlpack(cupy.arange(3, dtype=cupy.float32))
    assert back.sum() == 3
    assert torch.as_tensor(array).data_ptr() == tensor.data_ptr()
    assert torch.tensor(array).data_ptr() != tensor.data_ptr()
    with pytest.raises(BufferError, match="require gradient"):
        cupy.from_dlpack(torch.ones(2, requires_grad=True))
    with pytest.raises(TypeError, match="DLPack"):
        cupy.from_dlpack([1, 2])


@pytest.mark.parametrize("convert", ["dlpack", "asarray", "data_ptr"])
def test_kernel_reads_and_writes_tensors(torch, cupy, session, scale, convert):
    x = torch.arange(64, dtype=torch.float32, device="cuda")
    y = torch.empty_like(x)
    way = {"dlpack": cupy.from_dlpack, "asarray": cupy.asarray, "data_ptr": lambda t: t.data_ptr()}[convert]
    scale((2,), (32,), (way(y), way(x), np.int32(64)))
    assert torch.equal(y, 2 * x)
    assert session.findings == []


@pytest.mark.parametrize("convert", ["dlpack", "data_ptr"])
def test_tensors_are_guarded_although_torch_packs_them_closely(torch, cupy, scale, convert):
    pool = [torch.zeros(32, device="cuda") for _ in range(50)]
    way = cupy.from_dlpack if convert == "dlpack" else lambda t: t.data_ptr()
    pointers = [way(t) for t in pool]
    with pytest.raises(SimulatedError) as caught:
        scale((2,), (32,), (pointers[20], pointers[21], np.int32(32)))
    assert (caught.value.finding.kind, caught.value.finding.line) == ("out_of_bounds", 3)
    assert "`x`" in caught.value.finding.message or "`y`" in caught.value.finding.message
    assert Path(__file__).name in caught.value.finding.message
    assert all((t == 0).all() for k, t in enumerate(pool) if k != 20), "no neighbour was touched"


def test_views_of_one_tensor_stay_one_memory(torch, cupy, scale):
    x = torch.arange(64, dtype=torch.float32)
    scale((1,), (32,), (x[32:].data_ptr(), x.data_ptr(), np.int32(32)))
    assert torch.equal(x[32:], 2 * x[:32])


def test_pointer_of_a_freed_tensor(torch, session, scale):
    x = torch.ones(64, device="cuda")
    address = (x * 3).data_ptr()
    with pytest.raises(SimulatedError, match="Keep it in a variable"):
        scale((1,), (32,), (x.data_ptr(), address, np.int32(32)))


def test_storage_stays_known_while_any_view_lives(torch):
    x = torch.ones(64)
    address = x[3:].data_ptr()
    assert registry.find(address) is not None
    view = x[10:]
    del x
    assert registry.find(address) is not None
    del view
    assert registry.find(address) is None


def test_tensor_itself_is_no_argument(torch, cupy, scale):
    x = torch.ones(32)
    with pytest.raises(TypeError, match=r"from_dlpack, or pass \.data_ptr"):
        scale((1,), (32,), (x, x, np.int32(32)))


def test_half_and_bfloat16_go_by_address(torch, cupy, session):
    kernel = cupy.RawKernel('#include <cuda_bf16.h>\nextern "C" __global__ void one(__nv_bfloat16* x) '
                            "{ x[threadIdx.x] = __float2bfloat16(1.5f); }", "one")
    x = torch.zeros(32, dtype=torch.bfloat16, device="cuda")
    kernel((1,), (32,), (x.data_ptr(),))
    assert (x == 1.5).all()
    half = cupy.from_dlpack(torch.zeros(4, dtype=torch.float16))
    assert half.dtype == np.float16


def test_uninitialised_tensors_are_poisoned(torch, session):
    assert torch.isnan(torch.empty(4, device="cuda")).all()
    assert torch.isnan(torch.ones(4).new_empty(2)).all()
    assert torch.isnan(torch.empty_like(torch.ones(4, dtype=torch.bfloat16))).all()
    assert (torch.empty(4, dtype=torch.int32) != 0).all()


def test_operators_that_compute_are_counted_with_their_line(torch, session):
    x = torch.rand(8, 8, device="cuda")
    w = torch.nn.Linear(8, 8).cuda()
    session.forget_library_calls()
    line = test_operators_that_compute_are_counted_with_their_line.__code__.co_firstlineno + 5
    y = torch.relu(w(x)) @ x + 1
    y = torch.nn.functional.softmax(y, dim=-1)
    calls = {(call.name, call.place.line): call.count for call in session.library_calls}
    assert calls == {("torch.linear", line): 1, ("torch.relu", line): 1, ("torch.matmul", line): 1, ("torch.add", line): 1,
                     ("torch.softmax", line + 1): 1}


@pytest.mark.parametrize("hide", ["torch.compile", "torch.jit.script", "torch.ops"])
def test_operators_cannot_hide(torch, session, hide):
    def product(a):
        return torch.ops.aten.mm.default(a, a) if hide == "torch.ops" else a @ a

    wrap = {"torch.compile": torch.compile, "torch.jit.script": torch.jit.script}.get(hide, lambda f: f)
    x = torch.rand(4, 4)
    session.forget_library_calls()
    wrap(product)(x)
    assert [call.name for call in session.library_calls] in (["torch.matmul"], ["torch.mm.default"])


def test_views_allocation_and_casts_are_not_counted(torch, cupy, session):
    x = torch.rand(4, 6, device="cuda")
    for _ in (x.t(), x.view(-1), x.reshape(2, 12), x[1:], x.contiguous(), x.half(), x.to(torch.float64), x.unsqueeze(0),
              torch.empty_like(x), torch.zeros(3), x.clone(), x.detach(), x.shape, x.dtype, x.is_contiguous(), x.stride(),
              cupy.from_dlpack(x), x.data_ptr(), x.size(0), x.flatten(1), x.permute(1, 0), torch.cuda.synchronize()):
        pass
    x[0] = 1
    x.copy_(torch.ones(4, 6))
    assert session.library_calls == []


def test_solution_that_imports_torch_after_the_session_began(tmp_path):
    script = tmp_path / "late.py"
    script.write_text(
        "from tests.evaluator.standin.conftest import H200\nfrom evaluator.simulator import standin\n"
        "standin.install(standin.Session(device=H200))\nimport torch\nassert torch.ones(2, device='cuda').is_cuda\n"
        "standin.uninstall()\nassert not torch.cuda.is_available()\nprint('fine')\n")
    root = str(Path(__file__).parents[3])
    done = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, cwd=root, env={"PYTHONPATH": root})
    assert done.stdout.strip() == "fine", done.stderr

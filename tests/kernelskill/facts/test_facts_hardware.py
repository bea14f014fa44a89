"""Facts of memory paths, machine features and the host side: each shown by a text that has it and one that does not."""

import pytest

from evaluator.types import KernelResources
from kernelskill.facts.hardware_features import add_host_features
from kernelskill.facts.resources import add_resource_facts
from kernelskill.facts.static import add_kernel_features
from kernelskill.facts.table import FactTable
from kernelskill.tasks.cuda_text import CudaText

PLAIN = 'extern "C" __global__ void k(const float* x, float* y, int n) {{ {0} y[threadIdx.x] = x[threadIdx.x]; }}'


def kernel_facts(cuda):
    table = FactTable()
    add_kernel_features(table, CudaText(cuda), "k")
    return {name: fact.value for name, fact in table.facts().items()}


IN_BODY = {
    "uses_texture": "float t = tex2D<float>(image, 0.5f, 0.5f);",
    "uses_cache_hints": "float t = __ldcs(x);",
    "uses_prefetch": 'asm volatile("prefetch.global.L2 [%0];" :: "l"(x));',
    "uses_warp_vote": "unsigned m = __ballot_sync(0xffffffffu, n > 3);",
    "uses_grid_sync": "cooperative_groups::this_grid().sync();",
    "uses_clusters": "auto c = cooperative_groups::this_cluster();",
    "uses_bulk_copy": 'asm volatile("cp.async.bulk.commit_group;");',
    "uses_mbarrier": 'asm volatile("bar.sync 1, 64;" ::: "memory");',
    "uses_wgmma": 'asm volatile("wgmma.fence.sync.aligned;");',
    "uses_dependent_launch": 'asm volatile("griddepcontrol.wait;" ::: "memory");',
}


@pytest.mark.parametrize("fact", sorted(IN_BODY))
def test_a_feature_is_seen_where_it_is_used_and_only_there(fact):
    assert kernel_facts(PLAIN.format(IN_BODY[fact]))[fact] is True
    assert kernel_facts(PLAIN.format("// " + IN_BODY[fact].replace(";", "") + "\n"))[fact] is False


def test_the_whole_block_barrier_is_no_named_barrier():
    assert kernel_facts(PLAIN.format('asm volatile("bar.sync 0;"); __syncthreads();'))["uses_mbarrier"] is False


@pytest.mark.parametrize(("attribute", "fact"), [("__launch_bounds__(256, 2)", "uses_launch_bounds"),
                                                 ("__cluster_dims__(2, 1, 1)", "uses_clusters")])
def test_attributes_of_the_signature(attribute, fact):
    cuda = PLAIN.format("")
    assert kernel_facts(cuda.replace("void k", f"void {attribute} k"))[fact] is True
    assert kernel_facts(cuda + f"\nextern \"C\" __global__ void {attribute} other(float* y) {{ *y = 1; }}")[fact] is False


def test_constant_memory_counts_only_where_the_kernel_reads_it():
    cuda = "__constant__ float weights[4];\n" + PLAIN
    assert kernel_facts(cuda.format("float w = weights[n];"))["uses_constant_memory"] is True
    assert kernel_facts(cuda.format(""))["uses_constant_memory"] is False


def test_modulo_operators_are_counted():
    assert kernel_facts(PLAIN.format("int i = n % 3, j = i % (n + 1); j %= n;"))["modulo_operations"] == 3
    assert kernel_facts("constexpr int T = 16;\n" + PLAIN.format("int i = n % 32, j = i % T;"))["modulo_operations"] == 0
    assert kernel_facts(PLAIN.format('// 50 % more\n'))["modulo_operations"] == 0


@pytest.mark.parametrize(("body", "indirect"), [
    ("y[i] = x[p[i]];", True), ("int q = p[i]; y[q] = x[i];", True), ("int q = i * 2; y[q] = x[i] + p[i];", False)])
def test_indices_that_come_from_memory(body, indirect):
    cuda = ('extern "C" __global__ void k(const float* x, const int* p, float* y) '
            f'{{ int i = threadIdx.x; {body} }}')
    assert kernel_facts(cuda)["indirect_access"] is indirect


HOST = """
import functools
import cupy
_kept = {}
def prepare(w):
    return w
def run(x):
    pass
"""


def host_facts(source):
    table = FactTable()
    add_host_features(table, source)
    return {name: fact.value for name, fact in table.facts().items()}


def test_a_plain_host_side():
    assert host_facts(HOST) == {"source_streams": 0, "uses_graph": False, "keeps_results": False}


def test_streams_graphs_and_kept_results_of_the_host_side():
    streams = HOST.replace("pass", "a, b = cupy.cuda.Stream(), cupy.cuda.Stream()")
    assert host_facts(streams)["source_streams"] == 2
    assert host_facts(HOST.replace("pass", "s = cupy.cuda.Stream(); s.begin_capture()"))["uses_graph"] is True
    assert host_facts(HOST.replace("pass", "_kept[x.data.ptr] = prepare(x)"))["keeps_results"] is True
    assert host_facts(HOST.replace("def prepare", "@functools.lru_cache(maxsize=1)\ndef prepare"))["keeps_results"] is True


def test_machine_code_counts_of_shared_atomics_packed_math_and_integers():
    sass = {"ATOMS.ADD": 2, "ATOMG.E.ADD": 1, "HFMA2": 3, "FFMA": 6, "IMAD.WIDE": 4, "IMAD.MOV.U32": 2, "ISETP.GE.AND": 2}
    table = FactTable()
    add_resource_facts(table, KernelResources(kernel="k", registers=16, static_shared_bytes=0, stack_bytes=0,
                                              spill_store_bytes=0, spill_load_bytes=0, sass=sass))
    assert (table.value("sass_shared_atomics"), table.value("sass_packed_math")) == (2, 3)
    assert table.value("sass_integer_pct") == pytest.approx(100 * 6 / 20)

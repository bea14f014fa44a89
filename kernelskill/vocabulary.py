"""Every fact name: type, unit, range, who can measure it, and what it means. The docs page is rendered from this table.

A simulated count keeps the name of the Nsight Compute metric that means the same, so one rule serves both sources.
Facts describe the *target kernel* of a solution (the one with the largest share of its time) unless the text says
"solution". Percentages are 0-100, ratios are plain numbers.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

Kind = Literal["number", "bool", "text"]
PER_METHOD = re.compile(r"^(applicable|applied|tried_here|failed_here|no_gain_here|last_gain|repeats|completes_coupled_edit)\.([a-z][a-z0-9_]*)$")

EXPERIENCE = re.compile(r"^(experience_(?:trials|successes|gain))\.([a-z][a-z0-9_]*)\.([a-z][a-z0-9_]*)$")


@dataclass(frozen=True)
class FactSpec:
    """One word of the vocabulary."""

    name: str
    kind: Kind
    unit: str
    sources: tuple[str, ...]
    meaning: str
    low: float | None = None
    high: float | None = None
    values: tuple[str, ...] = ()
    ncu: str = ""
    """The Nsight Compute metric with the same meaning."""


def _table(group: str, rows: str) -> Iterator[tuple[str, FactSpec]]:
    """Rows `name | kind | unit | sources | meaning [| ncu metric]`; kind `text:a,b` closes the list of values."""
    for line in rows.strip().splitlines():
        name, kind, unit, sources, meaning, *ncu = (cell.strip() for cell in line.split("|"))
        kind, _, values = kind.partition(":")
        low, high = (0.0, 100.0) if unit == "%" else (0.0, None) if kind == "number" else (None, None)
        yield name, FactSpec(name, kind, unit, tuple(sources.split()), meaning, low, high,  # type: ignore[arg-type]
                             tuple(values.split(",")) if values else (), ncu[0] if ncu else "")


TASK = """
task_kind | text:native,kernelbench | | task | form of the task file
task_family | text | | task | elementwise, row_reduction, transpose, matmul; absent when not recognised (a foreign kernel)
task_operation | text | | task | operation within the family, e.g. softmax; where no family is known the convolution that does most of the arithmetic, e.g. conv2d, conv_transpose3d, depthwise_conv2d
task_dtype | text | | task | dtype of the first floating-point input, e.g. float32
task_bytes | number | B | task | inputs read once plus outputs written once
task_flops | number | flop | task | arithmetic operations of the operation (fma = 2)
task_arithmetic_intensity | number | flop/B | task | task_flops / task_bytes
task_output_elements | number | elements | task | elements over all outputs
task_reduction_length | number | elements | task | elements reduced into one output (row length; K of a matmul)
task_row_count | number | rows | task | independent rows (row reductions)
task_allows_tf32 | bool | | task | the task permits tensor-core products with TF32 inputs
task_allows_library | bool | | task | the task permits calls of cuBLAS, torch or cupy operators that compute
task_allows_half | bool | | task | the task permits fp16 or bf16 inputs of products and intermediate values
"""
TIME = """
time_us | number | us | modelled cuda_event | solution: time of one call at the full sizes | gpu__time_duration.avg
precision_class | text:fp64,fp32,near_fp32,tf32,fp16,bf16 | | verification | solution: how precise its least precise output is, against a double-precision reference
precision_error_ratio | number | ratio | verification | solution: its error over that of the reference in the task's own dtypes
sol_time_us | number | us | task | speed of light: the larger of task_bytes / bandwidth and task_flops / peak rate
headroom | number | ratio | modelled cuda_event | time_us / sol_time_us
kernel_time_us | number | us | modelled cuda_event cupti ncu | target kernel's time | gpu__time_duration.avg
kernel_time_share_pct | number | % | modelled cuda_event cupti ncu | target kernel's share of the solution's kernel time
kernel_launches | number | launches | simulated cuda_event cupti launched | solution: kernel launches of one call (launched: of its own kernels)
launch_overhead_pct | number | % | modelled cuda_event cupti | solution: share of time spent in launch overhead (cupti: time_us in which nothing runs on the GPU)
device_busy_pct | number | % | cupti | solution: share of the span from its first to its last kernel, copy or fill in which one runs
longest_gap_us | number | us | cupti | solution: longest stretch of that span in which nothing runs
library_launches | number | launches | simulated cupti | solution: launches of kernels that are not its own (torch, cuBLAS, cuDNN, CuPy)
library_time_share_pct | number | % | modelled cupti | solution: their share of the kernel time
time_limiter | text:sm,issue,fma,alu,xu,tensor,l1,shared,l2,dram,atomics,latency,tail,launch | | modelled ncu | the term that dominates the target kernel's time
sm_throughput_pct | number | % | modelled ncu | busiest SM pipe's share of its peak | sm__throughput.avg.pct_of_peak_sustained_elapsed
dram_throughput_pct | number | % | modelled ncu | DRAM bandwidth used, of peak | gpu__dram_throughput.avg.pct_of_peak_sustained_elapsed
l1_throughput_pct | number | % | modelled ncu | L1/TEX pipe, of peak | l1tex__throughput.avg.pct_of_peak_sustained_active
l2_throughput_pct | number | % | modelled ncu | L2, of peak | lts__throughput.avg.pct_of_peak_sustained_elapsed
solution_sm_throughput_pct | number | % | ncu | solution: sm_throughput_pct of its kernels, weighted by their time
solution_dram_throughput_pct | number | % | ncu | solution: dram_throughput_pct of its kernels, weighted by their time
solution_l2_throughput_pct | number | % | ncu | solution: l2_throughput_pct of its kernels, weighted by their time
shared_throughput_pct | number | % | modelled ncu | shared-memory data pipe, of peak | l1tex__data_pipe_lsu_wavefronts_mem_shared.avg.pct_of_peak_sustained_elapsed
issue_active_pct | number | % | modelled ncu | cycles with an instruction issued | sm__inst_issued.avg.pct_of_peak_sustained_active
fma_pipe_pct | number | % | modelled ncu | FMA pipe busy | sm__inst_executed_pipe_fma.avg.pct_of_peak_sustained_active
alu_pipe_pct | number | % | modelled ncu | ALU pipe busy | sm__inst_executed_pipe_alu.avg.pct_of_peak_sustained_active
xu_pipe_pct | number | % | modelled ncu | transcendental (XU, MUFU) pipe busy | sm__inst_executed_pipe_xu.avg.pct_of_peak_sustained_active
tensor_pipe_pct | number | % | modelled ncu | tensor pipe busy | sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_active
atomics_time_pct | number | % | modelled | serialised atomics' term over kernel_time_us
exposed_latency_pct | number | % | modelled | share of SM time in which no pipe is the limit (waiting on latency or barriers)
tail_pct | number | % | modelled | share of time lost to the last, partly filled wave
waves_per_sm | number | waves | simulated launched ncu | grid / (resident blocks x SMs) | launch__waves_per_multiprocessor
stall_long_scoreboard_pct | number | % | ncu | warps stalled on global/local memory | smsp__warp_issue_stalled_long_scoreboard_per_warp_active.pct
stall_short_scoreboard_pct | number | % | ncu | warps stalled on shared memory or MUFU | smsp__warp_issue_stalled_short_scoreboard_per_warp_active.pct
stall_barrier_pct | number | % | ncu | warps stalled at a barrier | smsp__warp_issue_stalled_barrier_per_warp_active.pct
stall_lg_throttle_pct | number | % | ncu | warps stalled on the local/global queue | smsp__warp_issue_stalled_lg_throttle_per_warp_active.pct
stall_mio_throttle_pct | number | % | ncu | warps stalled on the memory I/O queue | smsp__warp_issue_stalled_mio_throttle_per_warp_active.pct
stall_math_pipe_throttle_pct | number | % | ncu | warps stalled on a busy math pipe | smsp__warp_issue_stalled_math_pipe_throttle_per_warp_active.pct
"""
MEMORY = """
global_load_sectors_per_request | number | sectors | simulated ncu | 32-byte sectors per global load request (4 is ideal for 4-byte lanes, 16 for 16-byte) | l1tex__average_t_sectors_per_request_pipe_lsu_mem_global_op_ld.ratio
global_store_sectors_per_request | number | sectors | simulated ncu | the same for global stores | l1tex__average_t_sectors_per_request_pipe_lsu_mem_global_op_st.ratio
global_load_efficiency_pct | number | % | simulated ncu | bytes the lanes asked for / bytes of the sectors fetched, loads | smsp__sass_average_data_bytes_per_sector_mem_global_op_ld.pct
global_store_efficiency_pct | number | % | simulated ncu | the same for stores | smsp__sass_average_data_bytes_per_sector_mem_global_op_st.pct
global_load_requests | number | requests | simulated ncu | warp-level global load instructions | l1tex__t_requests_pipe_lsu_mem_global_op_ld.sum
global_store_requests | number | requests | simulated ncu | warp-level global store instructions | l1tex__t_requests_pipe_lsu_mem_global_op_st.sum
l1_hit_rate_pct | number | % | modelled ncu | sectors served by L1 | l1tex__t_sector_hit_rate.pct
l2_hit_rate_pct | number | % | modelled ncu | sectors served by L2 | lts__t_sector_hit_rate.pct
dram_bytes | number | B | modelled ncu | bytes moved to and from DRAM | dram__bytes.sum
dram_traffic_ratio | number | ratio | modelled ncu | solution: DRAM bytes over all kernels / task_bytes (1 = each byte moved once)
l2_traffic_ratio | number | ratio | modelled ncu | solution: L2 bytes over all kernels / task_bytes
shared_requests | number | requests | simulated ncu | warp-level shared-memory instructions
shared_bank_conflicts | number | wavefronts | simulated ncu | extra wavefronts from bank conflicts | l1tex__data_bank_conflicts_pipe_lsu_mem_shared.sum
shared_wavefronts_ratio | number | ratio | simulated ncu | wavefronts / conflict-free wavefronts of shared accesses (1 = no conflicts)
local_requests | number | requests | simulated ncu | local-memory (spill, dynamic array) requests
global_atomic_requests | number | requests | simulated ncu | warp-level global atomic instructions | l1tex__t_requests_pipe_lsu_mem_global_op_red.sum
instructions_executed | number | instructions | simulated ncu | warp instructions of the launch | smsp__inst_executed.sum
instructions_per_output | number | instructions | simulated ncu | solution: thread-level instructions per output element
warp_execution_efficiency_pct | number | % | simulated ncu | active lanes per executed warp instruction, of 32 | smsp__thread_inst_executed_per_inst_executed.pct
divergent_branch_pct | number | % | simulated ncu | branches whose lanes disagreed
barriers_per_warp | number | barriers | simulated | barriers a warp executes
"""
RESOURCES = """
registers_per_thread | number | registers | ptxas ncu | registers a thread holds | launch__registers_per_thread
spill_bytes | number | B | ptxas | spill stores + loads, static bytes a thread
stack_bytes | number | B | ptxas | stack frame a thread
static_shared_bytes | number | B | ptxas ncu | static shared memory a block | launch__shared_mem_per_block_static
shared_bytes_per_block | number | B | ptxas simulated launched ncu | static + dynamic shared memory a block
block_threads | number | threads | simulated launched source ncu | threads a block | launch__block_size
grid_blocks | number | blocks | simulated launched ncu | blocks of the launch | launch__grid_size
block_warp_remainder | number | threads | simulated launched | block_threads modulo 32
theoretical_occupancy_pct | number | % | simulated launched ncu | resident warps / maximum, by resources | sm__maximum_warps_per_active_cycle_pct
achieved_occupancy_pct | number | % | modelled ncu | mean active warps / maximum | sm__warps_active.avg.pct_of_peak_sustained_active
occupancy_limiter | text:registers,shared_memory,warps,blocks,grid | | simulated launched ncu | the resource that caps resident blocks
blocks_per_sm | number | blocks | simulated launched ncu | resident blocks an SM
"""
SASS = """
vector_load_bytes | number | B | sass source | widest global load a lane (LDG.E.128 = 16)
vector_store_bytes | number | B | sass source | widest global store a lane
sass_global_loads | number | instructions | sass | static LDG count
sass_global_stores | number | instructions | sass | static STG count
sass_global_loads_128 | number | instructions | sass | static LDG...128 count
sass_shared_loads_128 | number | instructions | sass | static LDS...128 count
sass_async_copies | number | instructions | sass | static LDGSTS count (cp.async)
sass_shuffles | number | instructions | sass | static SHFL and REDUX count
sass_barriers | number | instructions | sass | static BAR count
sass_atomics | number | instructions | sass | static ATOM/ATOMG/RED count, global memory
sass_mufu | number | instructions | sass | static MUFU count
sass_ffma | number | instructions | sass | static FFMA count
sass_tensor | number | instructions | sass | static HMMA/IMMA/HGMMA count
sass_shared_atomics | number | instructions | sass | static ATOMS count (atomics on shared memory)
sass_packed_math | number | instructions | sass | static HFMA2/HADD2/HMUL2 count (two half values an instruction)
sass_integer_pct | number | % | sass | integer and address instructions (IMAD, IADD3, LEA, SHF, LOP3, I2F, F2I ...), of all static ones
sass_local | number | instructions | sass | static LDL/STL count
sass_instructions | number | instructions | sass | static instruction count without NOP
"""
SOURCE = """
uses_shared_memory | bool | | source | the kernel declares a __shared__ array
shared_tile_count | number | arrays | source | __shared__ arrays declared
shared_tile_padded | bool | | source | a two-dimensional __shared__ array has an inner extent of the form N+k or odd
uses_double_buffer | bool | | source | shared tiles with a leading dimension of 2 or more indexed by a stage variable
source_barriers | number | calls | source | __syncthreads / barrier calls in the text
barrier_in_loop | bool | | source | a barrier inside a loop body
reduction_style | text:none,serial,shared_tree,warp_shuffle,atomic | | source | how the kernel combines partial results
uses_warp_shuffle | bool | | source | __shfl_*_sync or __reduce_*_sync is called
source_atomics | number | calls | source | atomic calls in the text
uses_online_reduction | bool | | source | running rescale (online softmax) or Welford update in one loop
input_passes | number | passes | source | loops over the reduction dimension that read global memory
uses_transcendental | bool | | source | exp, log, tanh, erf, sin, pow ... in the kernel
uses_fast_math | bool | | source | __expf-style intrinsics or --use_fast_math
has_bounds_check | bool | | source | an if guards the index against a size
uses_grid_stride_loop | bool | | source | the index advances by blockDim*gridDim in a loop
has_unroll_pragma | bool | | source | #pragma unroll present
uses_restrict | bool | | source | pointer parameters carry __restrict__
uses_vector_types | bool | | source | float4/float2/int4 ... accesses
uses_async_copy | bool | | source | cp.async, __pipeline_memcpy_async or memcpy_async
uses_tensor_cores | bool | | source | wmma or mma.sync
elements_per_thread | number | elements | source | output elements a thread produces, where the text shows it
register_tile_elements | number | elements | source | accumulator array elements a thread holds (e.g. float acc[8][8] = 64)
reduction_loop | bool | | source | a loop over the reduction dimension accumulates into a register
threads_per_row | number | threads | source | threads that share one row of a row reduction, where the text shows it
source_kernels | number | kernels | source | solution: __global__ functions
library_calls | number | calls | source | solution: torch/cupy operators that compute, outside kernels
uses_constant_memory | bool | | source | the kernel reads a __constant__ array
uses_texture | bool | | source | tex1D, tex2D ... fetches
uses_cache_hints | bool | | source | streaming or eviction hints: __ldcs, __stcs, __ldcg, createpolicy, L2::evict
uses_prefetch | bool | | source | prefetch.global, __builtin_prefetch or ld with an L2 prefetch size
uses_launch_bounds | bool | | source | the kernel carries __launch_bounds__ or __maxnreg__
uses_warp_vote | bool | | source | __ballot_sync, __match_any_sync, __any_sync, __all_sync, __activemask
uses_grid_sync | bool | | source | a barrier over the whole grid (cooperative groups)
uses_clusters | bool | | source | thread-block clusters: __cluster_dims__ or this_cluster
uses_bulk_copy | bool | | source | bulk copies by the tensor memory accelerator: cp.async.bulk, memcpy_async_tx, CUtensorMap
uses_mbarrier | bool | | source | mbarrier or cuda::barrier, or named barriers between parts of a block
uses_wgmma | bool | | source | warpgroup products (wgmma)
uses_dependent_launch | bool | | source | griddepcontrol: starts before the kernel in front of it has ended
modulo_operations | number | operators | source | % operators in the kernel's text whose divisor is no constant power of two
indirect_access | bool | | source | a global index is itself loaded from global memory
source_streams | number | streams | source | solution: CUDA streams it creates
uses_graph | bool | | source | solution: captures its launches into a CUDA graph or replays one
keeps_results | bool | | source | solution: keeps computed arrays between calls (module-level cache or lru_cache)
loop_stride_columns | bool | | source | consecutive threads walk different rows (column-strided access), as the index expressions show
"""
DEVICE = """
device_name | text | | device_card nvml | marketing name
device_sm | number | | device_card nvml | compute capability x 10, e.g. 90
device_sm_count | number | SMs | device_card nvml | streaming multiprocessors
device_dram_bandwidth | number | B/s | device_card nvml | datasheet DRAM bandwidth
device_fp32_rate | number | flop/s | device_card nvml | peak fp32 rate
device_l2_bytes | number | B | device_card nvml | L2 capacity
device_shared_bytes_per_block | number | B | device_card nvml | opt-in shared memory a block
device_shared_bytes_per_sm | number | B | device_card nvml | shared memory an SM
device_registers_per_sm | number | registers | device_card nvml | register file
device_max_threads_per_sm | number | threads | device_card nvml | resident threads
"""
NSIGHT = """
counters_unavailable | text | | ncu | why the hardware counters of the target kernel are unknown; absent where they were read
nsight_bottleneck | text:dram,l2,l1,compute,latency,balanced | | ncu | what the rule SOLBottleneck names
nsight_sol_bottleneck_speedup_pct | number | % | ncu | SOLBottleneck: estimated speedup
nsight_high_pipe_utilization_speedup_pct | number | % | ncu | HighPipeUtilization: estimated local speedup of better used compute pipes
nsight_fp_instructions_speedup_pct | number | % | ncu | FPInstructions: fused instead of separate multiply and add
nsight_issue_slot_utilization_speedup_pct | number | % | ncu | IssueSlotUtilization: issue slots that stay empty
nsight_cpi_stall_speedup_pct | number | % | ncu | CPIStall: the most frequent stall reason
nsight_thread_divergence_speedup_pct | number | % | ncu | ThreadDivergence: lanes predicated off or not active
nsight_memory_l2_compression_speedup_pct | number | % | ncu | MemoryL2Compression: compressible memory
nsight_memory_cache_access_pattern_speedup_pct | number | % | ncu | MemoryCacheAccessPattern: bytes used of each sector
nsight_uncoalesced_global_access_speedup_pct | number | % | ncu | UncoalescedGlobalAccess: excessive sectors of global accesses
nsight_uncoalesced_shared_access_speedup_pct | number | % | ncu | UncoalescedSharedAccess: excessive wavefronts of shared accesses
nsight_shared_memory_conflicts_speedup_pct | number | % | ncu | SharedMemoryConflicts: bank conflicts
nsight_achieved_occupancy_speedup_pct | number | % | ncu | AchievedOccupancy: achieved below theoretical occupancy
nsight_theoretical_occupancy_speedup_pct | number | % | ncu | TheoreticalOccupancy: resident warps below the hardware's maximum
nsight_launch_configuration_speedup_pct | number | % | ncu | LaunchConfiguration: small grid or partly filled last wave
nsight_workload_imbalance_speedup_pct | number | % | ncu | WorkloadImbalance: some units busy longer than others
"""
HISTORY = """
round | number | rounds | history | this round, 1-based
rounds_left | number | rounds | history | rounds the budget still allows, this one included
rounds_since_best | number | rounds | history | rounds since the best solution last improved
attempts_here | number | attempts | history | attempts made from this very solution
best_speedup | number | ratio | history | start time / best time so far
last_outcome | text:none,improved,equal,regressed,failed,off_method,duplicate,not_written | | history | outcome of the previous attempt
last_diagnosis | text:none,compile,shape,numerical,precision,memory,synchronisation,launch,timeout,rejected,runtime,unsupported,off_method,not_written | | history | what was wrong with the previous attempt
last_repairs | number | repairs | history | how often the previous round's attempt was repaired
unwritten_in_a_row | number | rounds | history | rounds since the writer last brought a module of its own
coupled_edit_open | bool | | history | this solution is half of a coupled edit: slower by itself, one of the methods in completes_coupled_edit follows
model_budget_left_pct | number | % | history | what is left of the run's budget of tokens or cost; absent where there is none
"""
PER_METHOD_MEANING = {
    "applicable": ("bool", "", "the writer can apply the method to this solution, and no precondition of its card is false", "writer"),
    "applied": ("bool", "", "the method is on the path from the start to this solution", "history"),
    "repeats": ("number", "times", "times the method is on the path from the start to this solution", "history"),
    "tried_here": ("number", "attempts", "attempts with the method from this very solution", "history"),
    "failed_here": ("number", "attempts", "attempts from this solution that failed (not PASSED, off-method or not written)", "history"),
    "no_gain_here": ("number", "attempts", "attempts from this solution that passed without being faster", "history"),
    "completes_coupled_edit": ("bool", "", "the method completes the coupled edit that this solution is half of (absent otherwise)",
                               "history"),
    "last_gain": ("number", "ratio", "parent time / child time of the method's most recent passed attempt in this run", "history"),
}
EXPERIENCE_MEANING = {
    "experience_trials": ("attempts", "attempts of the method in earlier runs, on this device and family, under this bottleneck"),
    "experience_successes": ("attempts", "how many of them made the solution faster"),
    "experience_gain": ("ratio", "median parent time / child time of those"),
}
GROUPS = {"task": TASK, "time": TIME, "memory": MEMORY, "resources": RESOURCES, "sass": SASS, "source": SOURCE,
          "device": DEVICE, "nsight": NSIGHT, "history": HISTORY}
VOCABULARY: dict[str, FactSpec] = {name: spec for group, rows in GROUPS.items() for name, spec in _table(group, rows)}


def lookup(name: str) -> FactSpec | None:
    """The word's definition; per-method facts such as `failed_here.launch_tuning` included. None: no such fact."""
    if name in VOCABULARY:
        return VOCABULARY[name]
    if experience := EXPERIENCE.match(name):
        unit, meaning = EXPERIENCE_MEANING[experience[1]]
        return FactSpec(name, "number", unit, ("experience",), meaning, 0.0)
    match = PER_METHOD.match(name)
    if not match:
        return None
    kind, unit, meaning, source = PER_METHOD_MEANING[match[1]]
    return FactSpec(name, kind, unit, (source,), meaning, 0.0 if kind == "number" else None)  # type: ignore[arg-type]

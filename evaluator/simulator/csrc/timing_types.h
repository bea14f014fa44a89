// What Python gives the timed passes and what it gets back. The lists are read by name (timing_names), so order is free.
#pragma once
#include <cstdint>

namespace timing {

// Cycles unless the name says otherwise. Meaning, unit and origin of each: time_model.py.
#define TIMING_PARAMETERS(X)                                                                                              \
  X(l1_latency) X(l2_latency) X(dram_latency) X(dram_queue_latency) X(dram_share_bytes_per_cycle) X(shared_latency) X(barrier_latency) X(shared_atomic_latency)              \
  X(shared_cas_latency) X(block_turnaround) X(block_interval) X(block_interval_per_warp) X(warp_interval)                 \
  X(l1_request) X(l1_line) X(l1_line_latency) X(shared_wavefront) X(shared_atomic_lane) X(l2_port_bytes_per_cycle) X(partial_store)          \
  X(atomic_lane) X(atomic_integer_ns) X(atomic_float_ns) X(atomic_sector_ns) X(l1_bytes) X(l2_share_granules)             \
  X(schedulers)

// Sums over the simulated blocks.
#define TIMING_TOTALS(X)                                                                                                  \
  X(load_requests) X(load_sectors) X(load_bytes) X(store_requests) X(store_sectors) X(store_bytes) X(atomic_requests)     \
  X(atomic_sectors) X(atomic_lanes) X(partial_store_sectors) X(shared_requests) X(shared_wavefronts) X(shared_ideal)      \
  X(local_requests) X(local_sectors) X(l1_sectors) X(l1_hits) X(l2_sectors) X(l2_misses) X(instructions) X(issue_slots)   \
  X(lanes) X(branches) X(divergent_branches) X(barriers) X(warps) X(resident_warp_cycles) X(issue_cycles) X(fma_cycles)   \
  X(alu_cycles) X(xu_cycles) X(tensor_cycles) X(l1_cycles) X(shared_cycles) X(l2_port_cycles) X(blocks) X(cycles)

struct Parameters {
#define X(name) double name;
  TIMING_PARAMETERS(X)
#undef X
};

struct Totals {
#define X(name) double name;
  TIMING_TOTALS(X)
#undef X
};

enum Pipe : int32_t { NO_PIPE, FMA_PIPE, ALU_PIPE, XU_PIPE, TENSOR_PIPE, PIPE_COUNT };
enum Kind : int32_t { PLAIN, MEMORY, BRANCHES, BARRIER_WAIT, COPY_GROUP, COPY_DRAIN };

// The static cost of one PTX instruction.
struct InstructionCost {
  float issue;        // warp instructions that ptxas makes of it
  float latency;      // cycles until its result may be read (memory: added by the access)
  float pipe_cycles;  // of its pipe on one scheduler's quarter
  int32_t pipe, kind;
  int32_t sources, targets, first_register;  // into the register list: sources first
  int32_t joined_bytes;  // > 0: shared loads that ptxas joins issue here as one of this width; -1: joined to another
  int32_t merged;        // 1: ptxas reduces the warp's lanes first when they share an address
  int32_t window;        // it issues no earlier than the result so many before it (in time) is there
  int32_t holds;         // 1: its result takes a register
};
static_assert(sizeof(InstructionCost) == 48, "built as a NumPy dtype");

// Ways a buffer is used; slot = buffer id * USES + use.
enum Use : int32_t { READ, WRITE, UPDATE, USES };

constexpr int SECTOR_SHIFT = 5, GRANULE_SHIFT = 6, LINE_SHIFT = 7;

}  // namespace timing

// Memory of one resident block, and its start.
#pragma once
#include <algorithm>
#include <cstdlib>
#include <new>

#include "machine.h"
#include "shared_shadow.h"

namespace ptx {

struct FreeDeleter {
  void operator()(void* p) const { std::free(p); }
};
using AlignedBytes = std::unique_ptr<char, FreeDeleter>;

inline AlignedBytes aligned_bytes(size_t bytes) {
  void* p = std::aligned_alloc(256, (bytes + 511) / 256 * 256);
  if (!p) throw std::bad_alloc();
  std::memset(p, 0, (bytes + 511) / 256 * 256);
  return AlignedBytes(static_cast<char*>(p));
}

// Registers, shared and local memory of a block, reused from block to block.
class BlockMemory {
 public:
  Block block{};

  BlockMemory(Worker& worker) {
    const Launch& launch = *worker.launch;
    const size_t warps = static_cast<size_t>(launch.warp_count());
    registers_ = aligned_bytes(warps * launch.register_bytes);
    shared_ = aligned_bytes(launch.shared_bytes);
    local_ = aligned_bytes(warps * 32 * launch.local_bytes);
    block.worker = &worker;
    block.shared = shared_.get();
    block.local = local_.get();
    block.warps.resize(warps);
    for (size_t i = 0; i < warps; i++) {
      Warp& w = block.warps[i];
      w.registers = registers_.get() + i * launch.register_bytes;
      w.constants = launch.constants_end;
      w.block = &block;
      w.worker = &worker;
      w.id = static_cast<int32_t>(i);
      w.slot = w.id;
    }
    if (launch.checks) shadow_allocate(block);
  }
  BlockMemory(const BlockMemory&) = delete;
  BlockMemory& operator=(const BlockMemory&) = delete;

 private:
  AlignedBytes registers_, shared_, local_;
};

inline void start_warp(Warp& w) {
  const Launch& launch = *w.worker->launch;
  const int threads = std::min(32, launch.thread_count() - w.id * 32);
  w.alive = threads == 32 ? ~0u : (1u << threads) - 1;
  w.active = w.alive;
  w.executed = 0;
  w.sync_clock = w.acquired_clock = 0;
  w.turns = w.cluster_arrived = 0;
  w.waiting = false;
  w.group_count = 1;
  w.groups[0] = {w.alive, 0, RUNNING, 0, 0};
  w.copies.clear();
  for (int lane = 0; lane < 32; lane++) {
    const uint32_t thread = w.id * 32 + lane, bx = launch.block[0], by = launch.block[1];
    const uint32_t *c = launch.cluster, *at = w.block->coordinates;
    const uint32_t values[14] = {thread % bx, thread / bx % by, thread / (bx * by), at[0], at[1], at[2], static_cast<uint32_t>(w.id),
                                 at[0] % c[0], at[1] % c[1], at[2] % c[2], static_cast<uint32_t>(w.block->rank),
                                 at[0] / c[0], at[1] / c[1], at[2] / c[2]};
    for (int k = 0; k < 14; k++)
      if (launch.special_registers[k] != NONE) w.pointer<uint32_t>(launch.special_registers[k])[lane] = values[k];
  }
}

// Puts a block's threads at the kernel's first instruction. With checks, shared memory is poisoned (NaN as f32 and f16).
inline void start_block(Block& block, uint64_t index) {
  const Launch& launch = *block.worker->launch;
  block.index = index;
  block.coordinates[0] = static_cast<uint32_t>(index % launch.grid[0]);
  block.coordinates[1] = static_cast<uint32_t>(index / launch.grid[0] % launch.grid[1]);
  block.coordinates[2] = static_cast<uint32_t>(index / (static_cast<uint64_t>(launch.grid[0]) * launch.grid[1]));
  const uint32_t *c = launch.cluster, *at = block.coordinates;
  block.rank = static_cast<int32_t>(at[0] % c[0] + c[0] * (at[1] % c[1] + c[1] * (at[2] % c[2])));
  std::fill(std::begin(block.arrived), std::end(block.arrived), 0);
  block.mbarriers.clear();
  block.bulk_copies.clear();
  block.furthest_exit = {-1, -1};
  if (launch.checks) {
    std::memset(block.shared, 0xff, launch.shared_bytes);
    shadow_reset(block);
  }
  for (Warp& w : block.warps) start_warp(w);
}

inline bool finished(const Block& block) {
  return std::all_of(block.warps.begin(), block.warps.end(), [](const Warp& w) { return w.alive == 0; });
}

inline bool runnable(const Block& block) {
  return std::any_of(block.warps.begin(), block.warps.end(), [](const Warp& w) { return w.alive && w.runnable(); });
}

}  // namespace ptx

// How another pass watches the interpreter. Passes are template parameters, so an empty hook costs nothing.
//
// A pass derives from NullObserver, hides the hooks it wants, and instantiates run_warp<Pass> and friends (scheduler.h):
//
//   struct Timed : ptx::NullObserver {
//     static constexpr bool STEPPED = true;
//     void issue(ptx::Warp& w, const ptx::Instruction& in, int pc, uint32_t lanes) { ... }
//     void global_access(...) { ... }
//   };
//
// The pass owns the order: it builds one Worker and as many Blocks as it wants resident (BlockMemory in block.h), starts each
// with start_block(block, index), and calls run_warp(warp, observer) for whichever runnable warp comes next. When a block has
// no runnable warp it calls release_barriers(block, observer): true when warps may go on; false with live warps left is a
// deadlock (report_deadlock(block)). finished(block) says that all its lanes have exited. Warp::slot and the indices of blocks
// are the pass's to use. Fatal findings leave as exceptions of type Fatal; the pass turns them into its own error.
//
// Order of hooks for one instruction: issue, then its accesses in program order, then retire. `lanes` are those that execute
// (active lanes under the predicate) and may be 0; accesses are reported only for lanes != 0. Addresses are 32 entries, valid
// for the set lanes: host addresses (global), byte offsets from the block's or thread's base (shared, local). `bytes` is the
// width of one lane's access, vector elements together. wmma fragments and ldmatrix report one call per access that the
// hardware would make, each at the fragment's own instruction.
#pragma once
#include "machine.h"

namespace ptx {

struct NullObserver {
  // true: run_warp returns after each straight run of instructions (at a branch, a barrier, a collective that waits, or where
  // groups could merge), so that the pass can pick the next warp in time order. false: it runs until the warp blocks.
  static constexpr bool STEPPED = false;
  // true: counts (InstructionCounts) are kept. A pass with its own counters may switch them off.
  static constexpr bool COUNTS = true;

  void issue(Warp&, const Instruction&, int /*pc*/, uint32_t /*lanes*/) {}
  void retire(Warp&, const Instruction&, int /*pc*/) {}
  void global_access(Warp&, const Instruction&, uint32_t /*lanes*/, const uint64_t* /*addresses*/, int /*bytes*/, Access) {}
  void shared_access(Warp&, const Instruction&, uint32_t /*lanes*/, const uint64_t* /*offsets*/, int /*bytes*/, Access) {}
  void local_access(Warp&, const Instruction&, uint32_t /*lanes*/, const uint64_t* /*offsets*/, int /*bytes*/, Access) {}
  void barrier_released(Block&, Warp&) {}  // once for each warp that a barrier lets go
  void block_started(Block&) {}            // run_block only
  void block_finished(Block&) {}           // run_block only
};

}  // namespace ptx

// Runs warps: min-pc scheduling of lane groups, collectives, barriers, calls, and blocks from start to end.
#pragma once
#include <climits>

#include "atomics.h"
#include "block.h"
#include "control_flow.h"
#include "float_mode.h"
#include "lanes.h"
#include "load_store.h"
#include "matrix.h"
#include "observer.h"
#include "warp_ops.h"

namespace ptx {

// A warp that spins (a lock held by another warp or lane) gives way to others after this many instructions.
constexpr uint64_t TIME_SLICE = 20000;
// Blocks of a cooperative launch wait for each other in loops.
constexpr uint64_t COOPERATIVE_SLICE = 500;
// Rounds over all warps in which each ended polling an mbarrier and nobody arrived at any: no phase can complete any more.
constexpr int IDLE_ROUNDS = 10000;

// ---- lane-wise operations ------------------------------------------------------------------------------------------------

inline void keep_active(const Warp& w, const AluOp& op, const Instruction& in, uint32_t lanes, const void* result) {
  switch (op.destination) {
    case LaneKind::WORD: {
      uint32_t* d = w.pointer<uint32_t>(in.d);
      const uint32_t* r = static_cast<const uint32_t*>(result);
      for (int l = 0; l < 32; l++) d[l] = lanes >> l & 1 ? r[l] : d[l];
      break;
    }
    case LaneKind::DOUBLE_WORD: {
      uint64_t* d = w.pointer<uint64_t>(in.d);
      const uint64_t* r = static_cast<const uint64_t*>(result);
      for (int l = 0; l < 32; l++) d[l] = lanes >> l & 1 ? r[l] : d[l];
      break;
    }
    default: {
      uint32_t* d = w.pointer<uint32_t>(in.d);
      *d = (*d & ~lanes) | (*static_cast<const uint32_t*>(result) & lanes);
    }
  }
}

// Registers of lanes that have exited are free to change, so only live inactive lanes need the masked path.
inline void do_alu(Warp& w, const Instruction& in, const AluOp& op) {
  const uint32_t lanes = w.lanes(in);
  enter_float_mode(*w.worker, op.mode);
  const auto operand = [&](int32_t offset) { return offset == NONE ? nullptr : w.pointer<const void>(offset); };
  if ((lanes | ~w.alive) == ~0u) {
    op.function(w.pointer<void>(in.d), operand(in.a), operand(in.b), operand(in.c), in.imm);
    return;
  }
  if (!lanes) return;
  alignas(64) char result[256];
  op.function(result, operand(in.a), operand(in.b), operand(in.c), in.imm);
  keep_active(w, op, in, lanes, result);
}

template <class Observer>
inline void do_special(Warp& w, const Instruction& in, Observer& observer) {
  switch (in.op) {
    case LOAD: do_load(w, in, observer); break;
    case STORE: do_store(w, in, observer); break;
    case ATOMIC: enter_float_mode(*w.worker, FloatMode::KEEP_SUBNORMALS); do_atomic(w, in, observer); break;
    case COPY_ASYNC: do_copy_async(w, in, observer); break;
    case COPY_COMMIT: do_copy_commit(w); break;
    case COPY_WAIT: do_copy_wait(w, in); break;
    case NOP: break;
    case TO_GENERIC: do_to_generic(w, in); break;
    case FROM_GENERIC: do_from_generic(w, in); break;
    case IS_SPACE: do_is_space(w, in); break;
    case INSERT_BITS: do_insert_bits(w, in); break;
    case PACK: do_pack(w, in); break;
    case UNPACK: do_unpack(w, in); break;
    case SHUFFLE: do_shuffle(w, in); break;
    case VOTE: do_vote(w, in); break;
    case ELECT: do_elect(w, in); break;
    case MATCH: do_match(w, in); break;
    case REDUX: do_redux(w, in); break;
    case ACTIVE_MASK: do_active_mask(w, in); break;
    case CLOCK: do_clock(w, in); break;
    case FRAGMENT_LOAD: do_fragment(w, in, ACCESS_LOAD, observer); break;
    case FRAGMENT_STORE: do_fragment(w, in, ACCESS_STORE, observer); break;
    case WMMA: enter_float_mode(*w.worker, FloatMode::KEEP_SUBNORMALS); do_wmma(w, in); break;
    case MMA: enter_float_mode(*w.worker, FloatMode::KEEP_SUBNORMALS); do_mma(w, in); break;
    case LOAD_MATRIX: do_matrix_rows(w, in, ACCESS_LOAD, observer); break;
    case STORE_MATRIX: do_matrix_rows(w, in, ACCESS_STORE, observer); break;
    case MOVE_MATRIX: do_move_matrix(w, in); break;
    case MAP_ADDRESS: do_map_address(w, in); break;
    case MBARRIER: do_mbarrier(w, in); break;
    case COPY_ARRIVE: do_copy_arrive(w, in); break;
    case BULK_COPY: do_bulk_copy(w, in, observer); break;
    case CLUSTER_ARRIVE: do_cluster_arrive(w, in); break;
    default: {
      if (!w.lanes(in)) break;
      Finding f = finding_at(w, pc_of(w, in), lowest_lane(w.lanes(in)));
      f.kind = in.op == TRAP ? FindingKind::trap : FindingKind::unsupported;
      f.error = 1;
      set_text(f, "%s", in.op == TRAP ? "the kernel stopped itself (trap, or a failed assert)" : "unknown opcode");
      throw Fatal{f};
    }
  }
}

// ---- one warp ---------------------------------------------------------------------------------------------------------------

[[noreturn]] inline void fail_budget(const Warp& w, int pc) {
  Finding f = finding_at(w, pc, lowest_lane(w.active ? w.active : 1));
  f.kind = FindingKind::runaway;
  f.error = 1;
  set_text(f, "a warp executed %llu instructions without finishing: an endless loop, or a wait for another block",
           static_cast<unsigned long long>(w.executed));
  throw Fatal{f};
}

// The lowest pc at which another group of the warp stands: running past it would miss the chance to merge.
inline int merge_limit(const Warp& w, const LaneGroup& group) {
  int limit = INT_MAX;
  for (int i = 0; i < w.group_count; i++)
    if (&w.groups[i] != &group && w.groups[i].state != WAITS_AT_BARRIER) limit = std::min(limit, w.groups[i].pc);
  return limit;
}

// Runs one group until it branches apart, waits, or meets another group.
template <class Observer>
inline void run_group(Warp& w, int index, Observer& observer) {
  Worker& worker = *w.worker;
  const Launch& launch = *worker.launch;
  const AluOp* alu = alu_table().ops.data();
  LaneGroup& group = w.groups[index];
  const int limit = merge_limit(w, group);
  int pc = group.pc;
  w.active = group.lanes;
  uint64_t active_count = static_cast<uint64_t>(__builtin_popcount(w.active));
  for (;;) {
    const Instruction& in = launch.code[pc];
    const bool collective = is_collective(in.op);
    if (collective && w.active != w.alive) {
      const uint32_t before = w.active;
      const bool complete = gather_collective(w, group, in, pc);
      if (!complete || w.active != before) remove_empty_groups(w);
      if (!complete) return;
      if (w.active != before) return;  // grown: selected again, with all lanes
    }
    w.executed++;
    if constexpr (Observer::COUNTS) {
      worker.counts[pc].executed++;
      worker.counts[pc].lanes += active_count;
    }
    observer.issue(w, in, pc, w.lanes(in));
    bool goes_on = true;
    if (in.op < SPECIAL_BASE) {
      do_alu(w, in, alu[in.op]);
      pc++;
    } else if (in.op < CONTROL_BASE) {
      do_special(w, in, observer);
      pc++;
    } else {
      const int at = pc;
      switch (in.op) {
        case BRANCH: goes_on = do_branch(w, group, in, pc, observer); break;
        case BRANCH_TABLE: goes_on = do_branch_table(w, group, in, pc); break;
        case EXIT: goes_on = do_exit(w, group, in, pc); break;
        case BARRIER: goes_on = do_barrier(w, group, in, pc); break;
        case CALL: goes_on = do_call(w, group, in, pc); break;
        case RETURN: goes_on = do_return(w, group, in, pc); break;
        case CLUSTER_WAIT: goes_on = do_cluster_wait(w, group, in, pc); break;
        default: shadow_warp_sync(w); pc++;  // WARP_SYNC
      }
      observer.retire(w, in, at);
      if (!goes_on) return;
      if (w.executed >= w.slice_end) {
        group.pc = pc;
        return;
      }
      if (pc >= limit) {
        group.pc = pc;
        return;
      }
      continue;
    }
    observer.retire(w, in, pc - 1);
    if (pc >= limit) {
      group.pc = pc;
      return;
    }
  }
}

// Runs a warp until all its lanes wait or have exited, or its time slice ends; STEPPED observers: one group, one straight run.
template <class Observer>
inline void run_warp(Warp& w, Observer& observer) {
  const uint64_t slice = w.worker->launch->cooperative ? COOPERATIVE_SLICE : TIME_SLICE;
  w.slice_end = w.executed + slice;
  w.waiting = false;
  const bool rotate = (w.executed / slice + w.turns) % 2;  // a spinning group must not starve the lane it waits for
  while (w.alive) {
    const int index = select_group(w, rotate);
    if (index < 0) return;
    run_group(w, index, observer);
    if (w.executed > w.worker->launch->budget) fail_budget(w, w.group_count ? w.groups[0].pc : 0);
    if (Observer::STEPPED || w.executed >= w.slice_end) return;
  }
}

// ---- barriers ---------------------------------------------------------------------------------------------------------------

void report_divergent_barrier(Block& block, int barrier);
void report_skipped_barrier(Block& block, int barrier);
[[noreturn]] void report_deadlock(const Block& block);
[[noreturn]] void report_endless_wait(const Block& block);
void finish_barrier_reduction(Block& block, int barrier);

// Threads that a barrier waits for: its count operand, or every live thread.
bool barrier_complete(const Block& block, int barrier);

// Lets go the warps of every complete barrier. Call when nothing of the block can run; false: nothing was released.
template <class Observer>
inline bool release_barriers(Block& block, Observer& observer) {
  bool released = false;
  for (int barrier = 0; barrier < 16; barrier++) {
    if (!barrier_complete(block, barrier)) continue;
    report_divergent_barrier(block, barrier);
    report_skipped_barrier(block, barrier);
    finish_barrier_reduction(block, barrier);
    block.arrived[barrier] = 0;
    for (Warp& w : block.warps) {
      bool mine = false;
      for (int i = 0; i < w.group_count; i++) {
        LaneGroup& g = w.groups[i];
        if (g.state != WAITS_AT_BARRIER || g.barrier != barrier) continue;
        g.state = RUNNING;
        mine = true;
      }
      if (mine) observer.barrier_released(block, w);
    }
    shadow_barrier(block);
    released = true;
  }
  return released;
}

// ---- one block, start to end ------------------------------------------------------------------------------------------------

// What one turn of all warps came to.
struct Round {
  bool ran = false, progress = false;
};

template <class Observer>
inline void run_round(Block& block, Observer& observer, Round& round) {
  const uint64_t events = block.barrier_events;
  for (Warp& w : block.warps) {
    if (!w.alive || !w.runnable()) continue;
    run_warp(w, observer);
    round.ran = true;
    round.progress |= !w.waiting;
  }
  round.progress |= block.barrier_events != events;
}

template <class Observer>
inline void run_block(Block& block, uint64_t index, Observer& observer) {
  start_block(block, index);
  observer.block_started(block);
  for (int idle = 0; !finished(block);) {
    Round round;
    run_round(block, observer, round);
    idle = round.progress ? 0 : idle + 1;
    if (idle > IDLE_ROUNDS) report_endless_wait(block);
    if (runnable(block)) continue;
    if (!finished(block) && !release_barriers(block, observer) && !release_cluster(block) && !round.ran) report_deadlock(block);
  }
  observer.block_finished(block);
}

// The same for blocks that wait for each other. They have been started.
template <class Observer>
inline void run_cluster(Cluster& cluster, Observer& observer) {
  for (int idle = 0;;) {
    Round round;
    Block* unfinished = nullptr;
    bool going = false;
    for (Block* block : cluster.blocks) {
      run_round(*block, observer, round);
      if (finished(*block)) continue;
      unfinished = block;
      going |= runnable(*block) || release_barriers(*block, observer);
    }
    if (!unfinished) return;
    idle = round.progress ? 0 : idle + 1;
    if (idle > IDLE_ROUNDS) report_endless_wait(*unfinished);
    if (!going && !release_cluster(*unfinished) && !round.ran) report_deadlock(*unfinished);
  }
}

}  // namespace ptx

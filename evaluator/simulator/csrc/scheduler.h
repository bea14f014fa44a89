// Runs warps: min-pc scheduling of lane groups, collectives, barriers, calls, and blocks from start to end.
#pragma once
#include <climits>

#include "atomics.h"
#include "block.h"
#include "float_mode.h"
#include "lanes.h"
#include "load_store.h"
#include "matrix.h"
#include "observer.h"
#include "warp_ops.h"

namespace ptx {

// A warp that spins (a lock held by another warp or lane) gives way to others after this many instructions.
constexpr uint64_t TIME_SLICE = 20000;

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

// ---- lane groups ------------------------------------------------------------------------------------------------------------

inline void remove_empty_groups(Warp& w) {
  int kept = 0;
  for (int i = 0; i < w.group_count; i++)
    if (w.groups[i].lanes) w.groups[kept++] = w.groups[i];
  w.group_count = kept;
}

inline void add_group(Warp& w, uint32_t lanes, int pc, int reached, int state = RUNNING, int barrier = 0) {
  w.groups[w.group_count++] = {lanes, pc, state, barrier, reached};
}

// `LaneGroup::reached` after a branch: a `return` in the middle of a kernel has not been past what stands before the exit.
inline int reached_by(const Warp& w, const Instruction& branch, int pc) {
  return w.worker->launch->code[branch.target].op == EXIT ? pc : branch.target;
}

// The runnable group with the lowest pc, so that groups meet again behind a branch; -1 if all wait. Groups at its pc join it.
inline int select_group(Warp& w, bool rotate) {
  int best = -1;
  for (int i = 0; i < w.group_count; i++) {
    const LaneGroup& g = w.groups[i];
    if (g.state != RUNNING) continue;
    if (best < 0 || (rotate ? g.pc > w.groups[best].pc : g.pc < w.groups[best].pc)) best = i;
  }
  if (best < 0 || w.group_count == 1) return best;
  const uint32_t key = w.groups[best].lanes;
  for (int i = 0; i < w.group_count; i++) {
    LaneGroup& g = w.groups[i];
    if (i == best || g.state != RUNNING || g.pc != w.groups[best].pc) continue;
    w.groups[best].lanes |= g.lanes;
    w.groups[best].reached = std::min(w.groups[best].reached, g.reached);
    g.lanes = 0;
  }
  remove_empty_groups(w);
  for (int i = 0; i < w.group_count; i++)
    if (w.groups[i].lanes & key) return i;
  return 0;
}

// Lanes that `in` must find together: the union of its member masks, without lanes that have exited.
inline uint32_t required_lanes(const Warp& w, const Instruction& in) {
  int32_t mask_register = NONE;
  switch (in.op) {
    case SHUFFLE: mask_register = w.worker->launch->ext[in.ext]; break;
    case VOTE: case MATCH: case REDUX: case ELECT: mask_register = in.b; break;
    case WARP_SYNC: mask_register = in.a; break;
    case FRAGMENT_LOAD: case FRAGMENT_STORE: case WMMA: case MMA: case LOAD_MATRIX: case STORE_MATRIX: return w.alive;
    default: return 0;
  }
  uint32_t need = 0;
  for_lanes(w.lanes(in), [&](int l) { need |= w.pointer<uint32_t>(mask_register)[l]; });
  return need & w.alive;
}

inline bool is_collective(int32_t op) {
  return op == SHUFFLE || op == VOTE || op == MATCH || op == REDUX || op == ELECT || op == WARP_SYNC ||
         (op >= FRAGMENT_LOAD && op <= STORE_MATRIX);
}

// True: all lanes that the collective names are here (waiters at the same pc have joined). False: the group now waits.
inline bool gather_collective(Warp& w, LaneGroup& group, const Instruction& in, int pc) {
  const uint32_t need = required_lanes(w, in);
  if (need & ~group.lanes) {
    for (int i = 0; i < w.group_count; i++) {
      LaneGroup& other = w.groups[i];
      if (&other == &group || other.pc != pc || other.state == WAITS_AT_BARRIER) continue;
      group.lanes |= other.lanes;
      other.lanes = 0;
    }
  }
  w.active = group.lanes;
  group.pc = pc;
  group.state = required_lanes(w, in) & ~group.lanes ? WAITS_FOR_WARP : RUNNING;
  return group.state == RUNNING;
}

// ---- control flow: each returns true if the group goes on at `pc` without a new selection ----------------------------------

template <class Observer>
inline bool do_branch(Warp& w, LaneGroup& group, const Instruction& in, int& pc, Observer&) {
  const uint32_t taken = w.lanes(in);
  if (taken == w.active) {
    group.reached = reached_by(w, in, pc);
    pc = in.target;
  }
  else if (!taken) pc++;
  else {
    if constexpr (Observer::COUNTS) w.worker->counts[pc].divergent++;
    group.lanes = w.active & ~taken;
    group.pc = pc + 1;
    add_group(w, taken, in.target, reached_by(w, in, pc));
    return false;
  }
  group.pc = pc;
  return w.group_count == 1 && !Observer::STEPPED;
}

inline bool do_branch_table(Warp& w, LaneGroup& group, const Instruction& in, int pc) {
  const int32_t* targets = w.worker->launch->ext + in.ext;
  const uint32_t* index = w.pointer<uint32_t>(in.a);
  uint32_t rest = w.lanes(in);
  group.lanes = w.active & ~rest;
  group.pc = pc + 1;
  while (rest) {
    const uint32_t chosen = std::min<uint32_t>(index[lowest_lane(rest)], in.vec - 1);
    uint32_t same = 0;
    for_lanes(rest, [&](int l) { same |= static_cast<uint32_t>(std::min<uint32_t>(index[l], in.vec - 1) == chosen) << l; });
    add_group(w, same, targets[chosen], targets[chosen]);
    rest &= ~same;
  }
  remove_empty_groups(w);
  return false;
}

inline bool do_exit(Warp& w, LaneGroup& group, const Instruction& in, int pc) {
  const uint32_t leaving = w.lanes(in);
  w.alive &= ~leaving;
  if (leaving && group.reached > w.block->furthest_exit.reached)
    w.block->furthest_exit = {group.reached, w.id * 32 + lowest_lane(leaving)};
  group.lanes &= ~leaving;
  group.pc = pc + 1;
  for (int i = 0; i < w.group_count; i++)
    if (w.groups[i].state == WAITS_FOR_WARP) w.groups[i].state = RUNNING;  // the missing lane may have been one of these
  remove_empty_groups(w);
  return false;
}

inline bool do_barrier(Warp& w, LaneGroup& group, const Instruction& in, int& pc) {
  const uint32_t lanes = w.lanes(in);
  if (in.flags == BARRIER_ARRIVE) {
    if (lanes) w.block->arrived[in.imm & 15] += __builtin_popcount(lanes);
    pc++;
    return true;
  }
  group.lanes = w.active & ~lanes;
  group.pc = pc + 1;
  if (lanes) add_group(w, lanes, pc + 1, group.reached, WAITS_AT_BARRIER, static_cast<int>(in.imm & 15));
  remove_empty_groups(w);
  return false;
}

inline bool do_call(Warp& w, LaneGroup& group, const Instruction& in, int& pc) {
  const uint32_t calling = w.lanes(in);
  uint32_t* back = w.pointer<uint32_t>(in.d);
  for_lanes(calling, [&](int l) { back[l] = static_cast<uint32_t>(pc + 1); });
  group.lanes = w.active & ~calling;
  group.pc = pc + 1;
  if (calling) add_group(w, calling, in.target, group.reached);
  remove_empty_groups(w);
  return false;
}

inline bool do_return(Warp& w, LaneGroup& group, const Instruction& in, int pc) {
  const uint32_t* back = w.pointer<uint32_t>(in.d);
  uint32_t rest = w.lanes(in);
  group.lanes = w.active & ~rest;
  group.pc = pc + 1;
  while (rest) {
    const uint32_t to = back[lowest_lane(rest)];
    uint32_t same = 0;
    for_lanes(rest, [&](int l) { same |= static_cast<uint32_t>(back[l] == to) << l; });
    add_group(w, same, static_cast<int>(to), group.reached);
    rest &= ~same;
  }
  remove_empty_groups(w);
  return false;
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
inline void run_group(Warp& w, int index, uint64_t slice_end, Observer& observer) {
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
        default: shadow_warp_sync(w); pc++;  // WARP_SYNC
      }
      observer.retire(w, in, at);
      if (!goes_on) return;
      if (w.executed >= slice_end) {
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
  const uint64_t slice_end = w.executed + TIME_SLICE;
  const bool rotate = w.executed / TIME_SLICE % 2;  // a spinning group must not starve the lane it waits for
  while (w.alive) {
    const int index = select_group(w, rotate);
    if (index < 0) return;
    run_group(w, index, slice_end, observer);
    if (w.executed > w.worker->launch->budget) fail_budget(w, w.group_count ? w.groups[0].pc : 0);
    if (Observer::STEPPED || w.executed >= slice_end) return;
  }
}

// ---- barriers ---------------------------------------------------------------------------------------------------------------

void report_divergent_barrier(Block& block, int barrier);
void report_skipped_barrier(Block& block, int barrier);
[[noreturn]] void report_deadlock(const Block& block);
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

template <class Observer>
inline void run_block(Block& block, uint64_t index, Observer& observer) {
  start_block(block, index);
  observer.block_started(block);
  while (!finished(block)) {
    bool ran = false;
    for (Warp& w : block.warps) {
      if (!w.alive || !w.runnable()) continue;
      run_warp(w, observer);
      ran = true;
    }
    if (runnable(block)) continue;
    if (!finished(block) && !release_barriers(block, observer) && !ran) report_deadlock(block);
  }
  observer.block_finished(block);
}

}  // namespace ptx

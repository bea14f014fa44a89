// Lane groups of a warp: branches split them, equal counters merge them; collectives, barriers, calls and exits.
#pragma once
#include "mbarrier.h"

namespace ptx {

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

// Lanes that have arrived and whose phase is not complete wait; the others go on.
inline bool do_cluster_wait(Warp& w, LaneGroup& group, const Instruction& in, int& pc) {
  const uint32_t lanes = w.lanes(in) & w.cluster_arrived;
  group.lanes = w.active & ~lanes;
  group.pc = ++pc;
  if (!lanes) return true;
  add_group(w, lanes, pc, group.reached, WAITS_AT_BARRIER, CLUSTER_BARRIER);
  remove_empty_groups(w);
  return false;
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
    case FRAGMENT_LOAD: case FRAGMENT_STORE: case WMMA: case MMA: case LOAD_MATRIX: case MOVE_MATRIX: case STORE_MATRIX:
      return w.alive;
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
  const auto number = [&](int lane) {
    return static_cast<int>(in.size ? w.pointer<uint32_t>(static_cast<int32_t>(in.imm))[lane] & 15 : in.imm & 15);
  };
  if (in.flags == BARRIER_ARRIVE) {
    for_lanes(lanes, [&](int l) { w.block->arrived[number(l)]++; });
    pc++;
    return true;
  }
  group.lanes = w.active & ~lanes;
  group.pc = pc + 1;
  for (uint32_t rest = lanes; rest;) {
    const int id = number(lowest_lane(rest));
    uint32_t same = in.size ? 0 : rest;
    if (in.size) for_lanes(rest, [&](int l) { same |= static_cast<uint32_t>(number(l) == id) << l; });
    add_group(w, same, pc + 1, group.reached, WAITS_AT_BARRIER, id);
    rest &= ~same;
  }
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

// ---- barrier.cluster --------------------------------------------------------------------------------------------------------

// Lets the waiting lanes of a cluster go once every live lane has arrived; false: some have not.
inline bool release_cluster(Block& block) {
  bool complete = true, any = false;
  for_cluster_warps(block, [&](Warp& w) {
    complete &= !(w.alive & ~w.cluster_arrived);
    any |= w.cluster_arrived != 0;
  });
  if (!complete || !any) return false;
  for_cluster_warps(block, [](Warp& w) {
    w.cluster_arrived = 0;
    for (int i = 0; i < w.group_count; i++)
      if (w.groups[i].state == WAITS_AT_BARRIER && w.groups[i].barrier == CLUSTER_BARRIER) w.groups[i].state = RUNNING;
  });
  if (!block.cluster) shadow_barrier(block);
  else
    for (Block* b : block.cluster->blocks) shadow_barrier(*b);
  return true;
}

inline void do_cluster_arrive(Warp& w, const Instruction& in) {
  w.cluster_arrived |= w.lanes(in);
  release_cluster(*w.block);
}

}  // namespace ptx

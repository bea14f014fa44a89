// What happens when a barrier completes, or never can.
#include "scheduler.h"

namespace ptx {
namespace {

const Instruction& barrier_instruction(const Warp& w, const LaneGroup& g) { return w.worker->launch->code[g.pc - 1]; }

template <class Visit>
void for_waiting(const Block& block, int barrier, Visit visit) {
  for (const Warp& w : block.warps)
    for (int i = 0; i < w.group_count; i++) {
      const LaneGroup& g = w.groups[i];
      if (g.state == WAITS_AT_BARRIER && g.barrier == barrier) visit(w, g);
    }
}

int live_threads(const Block& block) {
  int n = 0;
  for (const Warp& w : block.warps) n += __builtin_popcount(w.alive);
  return n;
}

}  // namespace

bool barrier_complete(const Block& block, int barrier) {
  int waiting = 0, wanted = 0;
  for (const Warp& w : block.warps) {
    uint32_t lanes = 0;
    for (int i = 0; i < w.group_count; i++) {
      const LaneGroup& g = w.groups[i];
      if (g.state != WAITS_AT_BARRIER || g.barrier != barrier) continue;
      lanes |= g.lanes;
      const Instruction& in = barrier_instruction(w, g);
      if (in.a != NONE) wanted = static_cast<int>(w.pointer<uint32_t>(in.a)[lowest_lane(g.lanes)]);
    }
    // The hardware counts whole warps: lanes that have exited, or never existed, count as arrived.
    waiting += lanes && lanes == w.alive ? 32 : __builtin_popcount(lanes);
  }
  if (!waiting) return false;
  if (wanted) return waiting + block.arrived[barrier] >= wanted;
  int threads = 0;
  for_waiting(block, barrier, [&](const Warp&, const LaneGroup& g) { threads += __builtin_popcount(g.lanes); });
  return threads + block.arrived[barrier] >= live_threads(block);
}

void report_divergent_barrier(Block& block, int barrier) {
  int first_pc = -1;
  const Warp* other_warp = nullptr;
  const LaneGroup* other = nullptr;
  bool split = false;
  for (const Warp& w : block.warps) {
    int own_pc = -1;
    for (int i = 0; i < w.group_count; i++) {
      const LaneGroup& g = w.groups[i];
      if (g.state != WAITS_AT_BARRIER || g.barrier != barrier) continue;
      if (own_pc >= 0 && own_pc != g.pc) split = true;
      if (first_pc >= 0 && first_pc != g.pc && (!other || split)) {
        other = &g;
        other_warp = &w;
      }
      own_pc = g.pc;
      if (first_pc < 0) first_pc = g.pc;
    }
  }
  // Whole warps may wait at different barrier instructions (warp specialisation, named barriers); lanes of one warp may not.
  if (!other || (barrier != 0 && !split)) return;
  const int pc = other->pc - 1;
  if (other_warp->worker->findings.has(FindingKind::divergent_barrier, pc)) return;
  Finding f = finding_at(*other_warp, pc, lowest_lane(other->lanes));
  f.kind = FindingKind::divergent_barrier;
  f.error = split;
  set_text(f, "%s wait at this barrier while other threads of the block wait at the one of line %d",
           split ? "some lanes of a warp" : "some warps", block.worker->launch->code[first_pc - 1].line);
  block.worker->findings.entries.push_back(f);
}

// Threads that went on past the barrier to the kernel's end without waiting; those that returned before it are no mistake.
void report_skipped_barrier(Block& block, int barrier) {
  if (barrier != 0) return;  // named barriers are for some of the threads
  for_waiting(block, barrier, [&](const Warp& w, const LaneGroup& g) {
    const int pc = g.pc - 1;
    if (block.furthest_exit.reached <= pc || w.worker->findings.has(FindingKind::divergent_barrier, pc)) return;
    Finding f = finding_at(w, pc, lowest_lane(g.lanes));
    f.kind = FindingKind::divergent_barrier;
    f.error = 0;
    set_text(f, "a part of the block waits at this barrier; other threads (thread %d of the block for one) went past it to the "
                "kernel's end without waiting: all threads must reach it", block.furthest_exit.thread);
    w.worker->findings.entries.push_back(f);
  });
}

void finish_barrier_reduction(Block& block, int barrier) {
  int votes = 0, voters = 0;
  bool any = false;
  auto predicate = [](const Warp& w, const Instruction& in, const LaneGroup& g) {
    const uint32_t p = *w.pointer<uint32_t>(in.b);
    return (in.c == 1 ? ~p : p) & g.lanes;
  };
  for_waiting(block, barrier, [&](const Warp& w, const LaneGroup& g) {
    const Instruction& in = barrier_instruction(w, g);
    if (in.flags < BARRIER_POPC) return;
    any = true;
    votes += __builtin_popcount(predicate(w, in, g));
    voters += __builtin_popcount(g.lanes);
  });
  if (!any) return;
  for_waiting(block, barrier, [&](const Warp& w, const LaneGroup& g) {
    const Instruction& in = barrier_instruction(w, g);
    if (in.flags < BARRIER_POPC) return;
    uint32_t* d = w.pointer<uint32_t>(in.d);
    if (in.flags == BARRIER_POPC) for_lanes(g.lanes, [&](int l) { d[l] = static_cast<uint32_t>(votes); });
    else {
      const bool result = in.flags == BARRIER_AND ? votes == voters : votes != 0;
      *d = result ? *d | g.lanes : *d & ~g.lanes;
    }
  });
}

void report_deadlock(const Block& block) {
  const Warp* stuck = nullptr;
  const LaneGroup* group = nullptr;
  int at_barrier = 0, for_warp = 0;
  for (const Warp& w : block.warps)
    for (int i = 0; i < w.group_count; i++) {
      const LaneGroup& g = w.groups[i];
      (g.state == WAITS_AT_BARRIER ? at_barrier : for_warp) += __builtin_popcount(g.lanes);
      if (!stuck || g.state == WAITS_FOR_WARP) {
        stuck = &w;
        group = &g;
      }
    }
  const bool warp_wait = group->state == WAITS_FOR_WARP;
  Finding f = finding_at(*stuck, warp_wait ? group->pc : group->pc - 1, lowest_lane(group->lanes));
  f.kind = FindingKind::deadlock;
  f.error = 1;
  set_text(f, "%d threads wait at a barrier and %d for lanes of their warp that never arrive (%s)", at_barrier, for_warp,
           warp_wait ? "a *_sync operation names lanes that take another path" : "the others wait elsewhere");
  throw Fatal{f};
}

void report_endless_wait(const Block& block) {
  const Warp* stuck = nullptr;
  for (const Warp& w : block.warps)
    if (w.alive && w.waiting) stuck = &w;
  if (!stuck) report_deadlock(block);
  Finding f = finding_at(*stuck, stuck->groups[0].pc, lowest_lane(stuck->alive));
  f.line = stuck->waiting_line;
  f.kind = FindingKind::deadlock;
  f.error = 1;
  uint32_t arrivals = 0;
  long long bytes = 0;
  for (const MBarrier& b : block.mbarriers) {
    if (!b.transactions && b.pending == b.expected) continue;
    arrivals = b.pending;
    bytes = b.transactions;
  }
  set_text(f, "every thread waits for an mbarrier whose phase never completes (one lacks %u arrivals and %lld bytes)", arrivals, bytes);
  throw Fatal{f};
}

}  // namespace ptx

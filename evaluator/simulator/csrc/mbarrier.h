// mbarrier objects, and the copies that report to them: cp.async.bulk and cp.async.mbarrier.arrive.
//
// The objects are kept beside shared memory, by offset: a program may only use them through mbarrier instructions. A bulk copy
// reads its source at once; its bytes arrive when somebody tests the barrier it reports to, so that reading them without waiting
// is found (the checks mark the target as in flight).
#pragma once
#include "load_store.h"

namespace ptx {

// An address of shared memory in its cluster: the block that owns it, and the offset there.
struct SharedPlace {
  Block* block;
  uint32_t offset;
};

inline SharedPlace shared_place(const Warp& w, uint64_t address) {
  address &= ~WINDOW_MASK;
  Block* owner = peer_of(w, address);
  return {owner, static_cast<uint32_t>(address & CLUSTER_OFFSET_MASK)};
}

[[noreturn]] inline void fail_mbarrier(const Warp& w, const Instruction& in, int lane, FindingKind kind, const char* what) {
  Finding f = finding_at(w, pc_of(w, in), lane);
  f.kind = kind;
  f.error = 1;
  set_text(f, "mbarrier: %s", what);
  throw Fatal{f};
}

inline MBarrier& find_mbarrier(const Warp& w, const Instruction& in, int lane, const SharedPlace& at) {
  for (MBarrier& b : at.block->mbarriers)
    if (b.offset == at.offset) return b;
  fail_mbarrier(w, in, lane, FindingKind::uninitialised_shared, "there is none at this address: mbarrier.init must come first, and a barrier must order it before");
}

inline void complete_phase(MBarrier& b) {
  if (b.pending || b.transactions) return;
  b.phase++;
  b.pending = b.expected;
}

inline void init_mbarrier(const Warp& w, const Instruction& in, int lane, const SharedPlace& at, uint32_t count) {
  if (at.offset % 8) fail_misaligned(w, in, lane, "mbarrier", at.offset, 8, ACCESS_STORE);
  if (static_cast<int64_t>(at.offset) + 8 > w.worker->launch->shared_bytes)
    fail_window(w, in, lane, "mbarrier", at.offset, 8, w.worker->launch->shared_bytes, ACCESS_STORE);
  if (count == 0 || count >= 1u << 20) fail_mbarrier(w, in, lane, FindingKind::deadlock, "the number of arrivals must lie between 1 and 2^20 - 1");
  auto& all = at.block->mbarriers;
  all.erase(std::remove_if(all.begin(), all.end(), [&](const MBarrier& b) { return b.offset == at.offset; }), all.end());
  all.push_back({at.offset, count, count, 0, 0});
}

inline void arrive(const Warp& w, const Instruction& in, int lane, MBarrier& b, uint32_t count) {
  if (count > b.pending) fail_mbarrier(w, in, lane, FindingKind::deadlock, "more arrivals in a phase than mbarrier.init named");
  b.pending -= count;
  complete_phase(b);
}

// The bulk copies that report to a barrier arrive.
inline void land_bulk_copies(Warp& w, const Instruction& in, Block& block, MBarrier& b) {
  for (size_t i = 0; i < block.bulk_copies.size();) {
    BulkCopy& copy = block.bulk_copies[i];
    if (copy.barrier != b.offset) {
      i++;
      continue;
    }
    std::memcpy(block.shared + copy.offset, copy.data.data(), copy.data.size());
    if (w.worker->launch->checks) ShadowCheck(w, in, block).landed(copy.offset, static_cast<int>(copy.data.size()));
    b.transactions -= static_cast<int64_t>(copy.data.size());
    w.block->barrier_events++;
    block.bulk_copies.erase(block.bulk_copies.begin() + static_cast<std::ptrdiff_t>(i));
  }
  complete_phase(b);
}

// What an arrival returns: enough to ask later whether its phase has completed.
inline uint64_t state_of(const MBarrier& b) { return static_cast<uint64_t>(b.phase & 1) << 63 | b.pending; }

inline bool phase_completed(const MBarrier& b, const Instruction& in, uint64_t asked) {
  return in.flags & MBARRIER_PARITY ? (b.phase & 1) != (asked & 1) : (b.phase & 1) != asked >> 63;
}

inline void do_mbarrier_test(Warp& w, const Instruction& in, int lane, const SharedPlace& at, uint64_t asked, uint32_t& passed) {
  MBarrier& b = find_mbarrier(w, in, lane, at);
  if (!phase_completed(b, in, asked)) land_bulk_copies(w, in, *at.block, b);
  if (phase_completed(b, in, asked)) passed |= 1u << lane;
}

// ext -> destination (state, count or predicate; NONE), first operand (count, bytes, state or parity), second operand (bytes)
inline void do_mbarrier(Warp& w, const Instruction& in) {
  const uint32_t lanes = w.lanes(in);
  if (!lanes) return;
  const int32_t* ext = w.worker->launch->ext + in.ext;
  uint64_t addresses[32];
  lane_addresses(w, in.a, in.imm, in.flags & ADDRESS_64, addresses);
  uint32_t passed = 0;
  const auto word = [&](int k, int l) { return ext[k] == NONE ? 1u : w.pointer<uint32_t>(ext[k])[l]; };
  const int kind = in.flags >> MBARRIER_KIND_SHIFT & 15;
  for_lanes(lanes, [&](int l) {
    const SharedPlace at = shared_place(w, addresses[l]);
    if (kind == MBARRIER_INIT) return init_mbarrier(w, in, l, at, word(1, l));
    if (kind == MBARRIER_TEST)
      return do_mbarrier_test(w, in, l, at, in.flags & MBARRIER_PARITY ? word(1, l) : w.pointer<uint64_t>(ext[1])[l], passed);
    MBarrier& b = find_mbarrier(w, in, l, at);
    if (ext[0] != NONE) w.pointer<uint64_t>(ext[0])[l] = state_of(b);
    switch (kind) {
      case MBARRIER_ARRIVE:
        if (in.flags & MBARRIER_EXPECT) b.transactions += word(2, l);
        arrive(w, in, l, b, word(1, l));
        break;
      case MBARRIER_DROP:
        b.expected -= std::min(b.expected, word(1, l));
        arrive(w, in, l, b, word(1, l));
        break;
      case MBARRIER_EXPECT_TX: b.transactions += word(1, l); break;
      case MBARRIER_COMPLETE_TX:
        b.transactions -= word(1, l);
        complete_phase(b);
        break;
      default: b.offset = ~0u;  // MBARRIER_INVAL: never found again
    }
  });
  if (kind != MBARRIER_TEST) {
    w.block->barrier_events++;
    return;
  }
  uint32_t* d = w.pointer<uint32_t>(ext[0]);
  *d = (*d & ~lanes) | passed;
  if (passed) shadow_acquire(w);
  if (passed != lanes) w.give_way(in.line);
}

// cp.async.mbarrier.arrive: the lane's earlier copies arrive, then the lane does. Without .noinc the arrival was not counted in.
inline void do_copy_arrive(Warp& w, const Instruction& in) {
  const uint32_t lanes = w.lanes(in);
  if (!lanes) return;
  do_copy_wait(w, in);  // in.imm is -1
  w.block->barrier_events++;
  uint64_t addresses[32];
  lane_addresses(w, in.a, in.b, in.flags & ADDRESS_64, addresses);
  for_lanes(lanes, [&](int l) {
    const SharedPlace at = shared_place(w, addresses[l]);
    MBarrier& b = find_mbarrier(w, in, l, at);
    if (in.c) arrive(w, in, l, b, 1);
    else complete_phase(b);
  });
}

// ---- cp.async.bulk ----------------------------------------------------------------------------------------------------------

// One lane's bulk copy as accesses of 16 bytes by up to 32 lanes: checked, counted and observed like any other.
template <class Body>
inline void bulk_pieces(uint64_t from, uint64_t to, uint32_t bytes, Body body) {
  for (uint32_t done = 0; done < bytes; done += 512) {
    uint64_t source[32], target[32];
    const uint32_t pieces = std::min<uint32_t>(32, (bytes - done) / 16);
    for (uint32_t p = 0; p < 32; p++) {
      source[p] = from + done + 16 * std::min(p, pieces - 1);
      target[p] = to + done + 16 * std::min(p, pieces - 1);
    }
    body(pieces == 32 ? ~0u : (1u << pieces) - 1, source, target);
  }
}

inline void check_bulk_size(const Warp& w, const Instruction& in, int lane, uint32_t bytes) {
  if (bytes % 16 == 0) return;
  fail_misaligned(w, in, lane, "bulk copy size", bytes, 16, ACCESS_LOAD);
}

template <class Observer>
inline void bulk_to_shared(Warp& w, const Instruction& in, int lane, uint64_t from, const SharedPlace& to, uint32_t bytes,
                           const SharedPlace& barrier, Observer& observer) {
  BulkCopy copy{to.offset, barrier.offset, {}};
  copy.data.resize(bytes);
  const bool global = in.space == GLOBAL;
  const SharedPlace source = global ? SharedPlace{nullptr, 0} : shared_place(w, from);
  bulk_pieces(global ? from : source.offset, to.offset, bytes, [&](uint32_t lanes, const uint64_t* at, const uint64_t* target) {
    if (global) touch_global(w, in, lanes, at, 16, ACCESS_LOAD, observer);
    else touch_shared(w, in, lanes, at, 16, ACCESS_LOAD, observer);
    touch_shared(w, in, lanes, target, 16, ACCESS_STORE, observer);
    if (w.worker->launch->checks) ShadowCheck(w, in, *to.block).copy_issued_by(lanes, target, 16, lane);
  });
  std::memcpy(copy.data.data(), global ? reinterpret_cast<const char*>(from) : source.block->shared + source.offset, bytes);
  to.block->bulk_copies.push_back(std::move(copy));
}

// ext -> target, source, size, barrier, cluster mask (NONE) registers; byte offsets of target, source and barrier.
// in.space: where the source lies; flags: MBARRIER_EXPECT for a copy to shared memory, else one from shared to global memory.
template <class Observer>
inline void do_bulk_copy(Warp& w, const Instruction& in, Observer& observer) {
  const uint32_t lanes = w.lanes(in);
  if (!lanes) return;
  const int32_t* ext = w.worker->launch->ext + in.ext;
  uint64_t to[32], from[32], barriers[32];
  lane_addresses(w, ext[0], ext[5], in.flags & BULK_TARGET_64, to);
  lane_addresses(w, ext[1], ext[6], in.flags & BULK_SOURCE_64, from);
  if (ext[3] != NONE) lane_addresses(w, ext[3], ext[7], in.flags & BULK_BARRIER_64, barriers);
  for_lanes(lanes, [&](int l) {
    const uint32_t bytes = w.pointer<uint32_t>(ext[2])[l];
    check_bulk_size(w, in, l, bytes);
    if (ext[3] == NONE) {
      const SharedPlace source = shared_place(w, from[l]);
      bulk_pieces(source.offset, to[l], bytes, [&](uint32_t part, const uint64_t* at, const uint64_t* target) {
        touch_shared(w, in, part, at, 16, ACCESS_LOAD, observer);
        if (w.worker->launch->checks) ShadowCheck(w, in).load(part, at, 16);
        touch_global(w, in, part, target, 16, ACCESS_STORE, observer);
        for_lanes(part, [&](int p) { std::memcpy(reinterpret_cast<char*>(target[p]), w.block->shared + at[p], 16); });
      });
      return;
    }
    const SharedPlace target = shared_place(w, to[l]), barrier = shared_place(w, barriers[l]);
    const uint32_t everyone = ext[4] == NONE ? 0 : w.pointer<uint32_t>(ext[4])[l] & 0xffff;
    if (!everyone) return bulk_to_shared(w, in, l, from[l], target, bytes, barrier, observer);
    for_lanes(everyone, [&](int rank) {  // multicast: the same offsets in each of the blocks
      Block* block = block_of_rank(w, static_cast<uint32_t>(rank));
      bulk_to_shared(w, in, l, from[l], {block, target.offset}, bytes, {block, barrier.offset}, observer);
    });
  });
}

}  // namespace ptx

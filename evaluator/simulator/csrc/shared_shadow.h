// Races and uninitialised reads of shared memory.
//
// Each granule of shared memory (1, 2 or 4 bytes, the kernel's narrowest access) remembers its last write and its last read:
// when, by which warp and lane. "When" is a block-wide clock that every barrier and every __syncwarp advances, so an access is
// ordered before the present one exactly if a barrier (another warp) or a __syncwarp (same warp) lies between them.
//   * another warp, one of the two writes, no barrier between: a race.
//   * same warp, another lane wrote, no __syncwarp between: a hazard (warning), for plain loads only.
//   * a store that does not change the bytes races with nothing; atomics and ordered accesses do not race with each other.
//   * cp.async marks its target as in flight until the lane waits; reading it earlier is a race with the copy.
#pragma once
#include <algorithm>

#include "machine.h"

namespace ptx {

namespace shadow {
// Record, 32 bits: clock 17 | gap | in flight | atomic | several | initialised | warp 5 | lane 5.
constexpr uint32_t LANE_BITS = 5, WHO_BITS = 10;
constexpr uint32_t INITIALISED = 1u << 10;
constexpr uint32_t SEVERAL = 1u << 11;    // reads: more than one warp; writes: several warps stored the same value
constexpr uint32_t ATOMIC_ACCESS = 1u << 12;
constexpr uint32_t IN_FLIGHT = 1u << 13;
constexpr uint32_t GAP = 1u << 14;        // between two arrays
constexpr uint32_t STATE = INITIALISED | IN_FLIGHT | GAP;
constexpr uint32_t CLOCK_SHIFT = 15, CLOCK_LIMIT = (1u << 17) - 2;

inline uint32_t record(uint32_t clock, const Warp& w, int lane) {
  return clock << CLOCK_SHIFT | INITIALISED | static_cast<uint32_t>(w.id & 31) << LANE_BITS | static_cast<uint32_t>(lane);
}
inline uint32_t clock_of(uint32_t r) { return r >> CLOCK_SHIFT; }
inline uint32_t warp_of(uint32_t r) { return r >> LANE_BITS & 31; }
inline uint32_t lane_of(uint32_t r) { return r & 31; }
}  // namespace shadow

inline void shadow_allocate(Block& block) {
  const Launch& launch = *block.worker->launch;
  const size_t granules = launch.shared_bytes / launch.shared_granule + 64;
  block.shadow.write.assign(granules, 0);
  block.shadow.read.assign(granules, 0);
}

inline void shadow_reset(Block& block) {
  const Launch& launch = *block.worker->launch;
  SharedShadow& s = block.shadow;
  std::fill(s.write.begin(), s.write.end(), 0);
  std::fill(s.read.begin(), s.read.end(), 0);
  s.clock = s.barrier_clock = 1;
  for (int g = 0; g < launch.gap_count; g++)
    for (int32_t at = launch.gaps[2 * g]; at < launch.gaps[2 * g + 1]; at += launch.shared_granule)
      s.write[at / launch.shared_granule] = shadow::GAP;
}

// The clock has 17 bits: before it runs out, every record is made "long ago".
inline void shadow_rebase(Block& block) {
  SharedShadow& s = block.shadow;
  constexpr uint32_t FLAGS = (1u << shadow::CLOCK_SHIFT) - 1;
  for (uint32_t& r : s.write) r &= FLAGS;
  std::fill(s.read.begin(), s.read.end(), 0);
  for (Warp& w : block.warps) w.sync_clock = w.acquired_clock = 0;
  s.clock = 1;
}

inline void shadow_advance(Block& block) {
  if (++block.shadow.clock >= shadow::CLOCK_LIMIT) {
    shadow_rebase(block);
    block.shadow.barrier_clock = 1;
    block.shadow.clock = 1;
  }
}
inline void shadow_barrier(Block& block) {
  if (!block.worker->launch->checks) return;
  shadow_advance(block);
  block.shadow.barrier_clock = block.shadow.clock;
}
inline void shadow_warp_sync(Warp& w) {
  if (!w.worker->launch->checks) return;
  shadow_advance(*w.block);
  w.sync_clock = w.block->shadow.clock;
}

// A successful wait on an mbarrier: what others did before their arrival is ordered before what the warp does now.
inline void shadow_acquire(Warp& w) {
  shadow_warp_sync(w);
  w.acquired_clock = w.sync_clock;
}

class ShadowCheck {
 public:
  ShadowCheck(Warp& w, const Instruction& in) : ShadowCheck(w, in, *w.block) {}
  // `block`: whose shared memory is meant. Orders between blocks are not followed: only the block's own accesses can race.
  ShadowCheck(Warp& w, const Instruction& in, Block& block)
      : w_(w), in_(in), block_(block), s_(block.shadow), ordered_(&block == w.block ? std::max(s_.barrier_clock, w.acquired_clock) : ~0u),
        shift_(__builtin_ctz(w.worker->launch->shared_granule)) {}

  void load(uint32_t lanes, const uint64_t* offsets, int bytes) {
    const int granules = bytes >> shift_;
    if (lanes == ~0u && granules == 1 && load_in_a_row(offsets)) return;
    switch (granules) {
      case 1: load_rows<1>(lanes, offsets); break;
      case 2: load_rows<2>(lanes, offsets); break;
      case 4: load_rows<4>(lanes, offsets); break;
      case 8: load_rows<8>(lanes, offsets); break;
      default: load_rows<16>(lanes, offsets);
    }
  }
  // `data(lane)` points at the bytes about to be stored.
  template <class Data>
  void store(uint32_t lanes, const uint64_t* offsets, int bytes, Data data) {
    bool quiet = true;
    for_lanes(lanes, [&](int lane) {
      each_granule(offsets[lane], bytes, [&](uint32_t g) { quiet &= quiet_store(s_.write[g], s_.read[g]); });
    });
    for_lanes(lanes, [&](int lane) {
      const bool changes = !quiet && std::memcmp(block_.shared + offsets[lane], data(lane), bytes) != 0;
      each_granule(offsets[lane], bytes, [&](uint32_t g) {
        if (quiet) s_.write[g] = mine(lane);
        else store_one(g, lane, changes);
      });
    });
  }
  void atomic(uint32_t lanes, const uint64_t* offsets, int bytes) {
    for_lanes(lanes, [&](int lane) { each_granule(offsets[lane], bytes, [&](uint32_t g) { atomic_one(g, lane); }); });
  }
  void copy_issued(uint32_t lanes, const uint64_t* offsets, int bytes) {
    for_lanes(lanes, [&](int lane) {
      each_granule(offsets[lane], bytes, [&](uint32_t g) {
        store_one(g, lane, true);
        s_.write[g] |= shadow::IN_FLIGHT;
      });
    });
  }
  // A bulk copy by one lane, in pieces; and its arrival.
  void copy_issued_by(uint32_t pieces, const uint64_t* offsets, int bytes, int lane) {
    for_lanes(pieces, [&](int p) {
      each_granule(offsets[p], bytes, [&](uint32_t g) {
        store_one(g, lane, true);
        s_.write[g] |= shadow::IN_FLIGHT;
      });
    });
  }
  void landed(uint64_t offset, int bytes) {
    each_granule(offset, bytes, [&](uint32_t g) { s_.write[g] = shadow::record(s_.clock, w_, 0) | shadow::ATOMIC_ACCESS; });
  }
  // Another block's memory: bounds and initialisation only.
  void remote(uint32_t lanes, const uint64_t* offsets, int bytes, Access access) {
    for_lanes(lanes, [&](int lane) {
      each_granule(offsets[lane], bytes, [&](uint32_t g) {
        if (s_.write[g] & shadow::GAP) gap(g, lane, access == ACCESS_LOAD ? "read" : "written");
        if (access != ACCESS_STORE && !(s_.write[g] & shadow::INITIALISED)) uninitialised(g, lane);
        if (access != ACCESS_LOAD) s_.write[g] = shadow::INITIALISED | shadow::ATOMIC_ACCESS;
      });
    });
  }
  void copy_landed(int lane, uint64_t offset, int bytes) {
    each_granule(offset, bytes, [&](uint32_t g) { s_.write[g] = shadow::record(s_.clock, w_, lane); });
  }

 private:
  Warp& w_;
  const Instruction& in_;
  Block& block_;
  SharedShadow& s_;
  uint32_t ordered_;  // clock since when accesses of other warps are not ordered before this one
  int shift_;  // log2 of the granule

  template <class F>
  void each_granule(uint64_t offset, int bytes, F f) {
    const auto first = static_cast<uint32_t>(offset >> shift_), last = static_cast<uint32_t>((offset + bytes - 1) >> shift_);
    for (uint32_t g = first; g <= last; g++) f(g);
  }

  // Each lane reads N granules in a row. Lanes that repeat the offset of the lane before add nothing.
  template <int N>
  void load_rows(uint32_t lanes, const uint64_t* offsets) {
    const uint32_t limit = ordered_ << shadow::CLOCK_SHIFT;
    uint32_t trouble = 0, different = lanes;
    for (int l = 1; l < 32; l++) different &= ~(static_cast<uint32_t>((lanes >> (l - 1) & 1) && offsets[l] == offsets[l - 1]) << l);
    for_lanes(different, [&](int lane) {
      const uint32_t* written = &s_.write[offsets[lane] >> shift_];
      for (int i = 0; i < N; i++)
        trouble |= static_cast<uint32_t>(written[i] >= limit) | ((written[i] & shadow::STATE) ^ shadow::INITIALISED);
    });
    if (trouble)
      for_lanes(lanes, [&](int lane) {
        for (int i = 0; i < N; i++) check_load(static_cast<uint32_t>(offsets[lane] >> shift_) + i, lane);
      });
    for_lanes(different, [&](int lane) {
      const uint32_t record = mine(lane), who = shadow::warp_of(record);
      uint32_t* read = &s_.read[offsets[lane] >> shift_];
      for (int i = 0; i < N; i++) {
        const uint32_t before = read[i];
        const bool others = (before >= limit) & ((shadow::warp_of(before) != who) | ((before & shadow::SEVERAL) != 0));
        read[i] = record | (others ? shadow::SEVERAL : 0);
      }
    });
  }

  // 32 lanes reading one granule, or 32 granules in a row, that an earlier epoch initialised: nothing to look at lane by lane.
  bool load_in_a_row(const uint64_t* offsets) {
    const auto first = static_cast<uint32_t>(offsets[0] >> shift_);
    uint64_t same = 0, row = 0;
    for (int l = 0; l < 32; l++) {
      same |= offsets[l] ^ offsets[0];
      row |= offsets[l] ^ (offsets[0] + (static_cast<uint64_t>(l) << shift_));
    }
    if (same && row) return false;
    const int count = same ? 32 : 1;
    const uint32_t* write = &s_.write[first];
    uint32_t* read = &s_.read[first];
    const uint32_t limit = ordered_ << shadow::CLOCK_SHIFT;
    uint32_t trouble = 0;
    for (int i = 0; i < count; i++)
      trouble |= static_cast<uint32_t>(write[i] >= limit) |
                 static_cast<uint32_t>((write[i] & shadow::STATE) != shadow::INITIALISED);
    if (trouble) return false;
    const uint32_t record = mine(0);
    const uint32_t who = shadow::warp_of(record);
    for (int i = 0; i < count; i++) {
      const uint32_t before = read[i];
      const bool others = before >= limit && ((before >> shadow::LANE_BITS & 31) != who || (before & shadow::SEVERAL));
      read[i] = others ? record | shadow::SEVERAL : record;
    }
    return true;
  }

  bool recent(uint32_t r) const { return r != 0 && shadow::clock_of(r) >= ordered_; }
  bool by_other_warp(uint32_t r) const { return shadow::warp_of(r) != static_cast<uint32_t>(w_.id & 31); }

  uint32_t mine(int lane) const {
    return shadow::record(s_.clock, w_, lane) | (in_.flags & ORDERED ? shadow::ATOMIC_ACCESS : 0);
  }

  // Nothing to report, whichever lane it is: no other warp touched the granule since the last barrier.
  bool quiet_store(uint32_t written, uint32_t was_read) const {
    const bool foreign_write = recent(written) && by_other_warp(written);
    const bool foreign_read = recent(was_read) && (by_other_warp(was_read) || (was_read & shadow::SEVERAL));
    return !(foreign_write | foreign_read | static_cast<bool>(written & shadow::GAP));
  }

  void check_load(uint32_t g, int lane) {
    const uint32_t written = s_.write[g];
    if (written & shadow::GAP) gap(g, lane, "read");
    if (written & shadow::IN_FLIGHT) {
      race(g, lane, written, "reads bytes that a cp.async still copies: wait for its group first");
    } else if (!(written & shadow::INITIALISED)) {
      uninitialised(g, lane);
    } else if (recent(written) && !(written & shadow::SEVERAL) && !(in_.flags & ORDERED && written & shadow::ATOMIC_ACCESS)) {
      if (by_other_warp(written)) race(g, lane, written, "reads what another warp wrote since the last __syncthreads()");
      else if (unsynchronised_in_warp(written, lane)) hazard(g, lane, written);
    }
  }

  bool unsynchronised_in_warp(uint32_t written, int lane) const {
    return shadow::lane_of(written) != static_cast<uint32_t>(lane) && shadow::clock_of(written) >= w_.sync_clock &&
           !(in_.flags & (VOLATILE | ORDERED)) && !(written & shadow::ATOMIC_ACCESS);
  }

  void store_one(uint32_t g, int lane, bool changes) {
    const uint32_t written = s_.write[g], was_read = s_.read[g];
    const bool ordered = in_.flags & ORDERED;
    uint32_t record = mine(lane);
    if (written & shadow::GAP) gap(g, lane, "written");
    const bool foreign_write = recent(written) && by_other_warp(written) && !(ordered && (written & shadow::ATOMIC_ACCESS));
    if (changes) {
      const bool foreign_read = recent(was_read) && (by_other_warp(was_read) || (was_read & shadow::SEVERAL)) &&
                                !(ordered && (was_read & shadow::ATOMIC_ACCESS));
      if (foreign_write) race(g, lane, written, "overwrites what another warp wrote since the last __syncthreads()");
      else if (foreign_read) race(g, lane, was_read, "overwrites what another warp read since the last __syncthreads()");
    } else if (foreign_write) {
      record |= shadow::SEVERAL;
    }
    s_.write[g] = record;
  }

  void atomic_one(uint32_t g, int lane) {
    const uint32_t written = s_.write[g];
    if (written & shadow::GAP) gap(g, lane, "updated");
    if (!(written & shadow::INITIALISED)) uninitialised(g, lane);
    if (recent(written) && by_other_warp(written) && !(written & shadow::ATOMIC_ACCESS))
      race(g, lane, written, "updates atomically what another warp stored since the last __syncthreads()");
    s_.write[g] = shadow::record(s_.clock, w_, lane) | shadow::ATOMIC_ACCESS;
  }

  Finding here(FindingKind kind, bool error, int lane, uint32_t g) {
    Finding f = finding_at(w_, pc_of(w_, in_), lane);
    f.kind = kind;
    f.error = error;
    f.offset = static_cast<int64_t>(g) << shift_;
    return f;
  }
  bool known(FindingKind kind) const { return w_.worker->findings.has(kind, pc_of(w_, in_)); }

  void race(uint32_t g, int lane, uint32_t other, const char* what) {
    if (known(FindingKind::shared_race)) return;
    Finding f = here(FindingKind::shared_race, true, lane, g);
    set_text(f, "%s (shared byte %lld; the other access: warp %u lane %u)", what, static_cast<long long>(f.offset),
             shadow::warp_of(other), shadow::lane_of(other));
    w_.worker->findings.entries.push_back(f);
  }
  void hazard(uint32_t g, int lane, uint32_t other) {
    if (known(FindingKind::shared_race)) return;
    Finding f = here(FindingKind::shared_race, false, lane, g);
    set_text(f, "reads what lane %u of the same warp wrote without __syncwarp() between (shared byte %lld)", shadow::lane_of(other),
             static_cast<long long>(f.offset));
    w_.worker->findings.entries.push_back(f);
  }
  void uninitialised(uint32_t g, int lane) {
    if (known(FindingKind::uninitialised_shared)) return;
    Finding f = here(FindingKind::uninitialised_shared, false, lane, g);
    set_text(f, "reads shared memory that nothing wrote (shared byte %lld)", static_cast<long long>(f.offset));
    w_.worker->findings.entries.push_back(f);
  }
  [[noreturn]] void gap(uint32_t g, int lane, const char* how) {
    Finding f = here(FindingKind::out_of_bounds, true, lane, g);
    set_text(f, "memory past the end of a __shared__ array is %s (shared byte %lld)", how, static_cast<long long>(f.offset));
    throw Fatal{f};
  }
};

}  // namespace ptx

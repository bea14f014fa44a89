// Addresses of a warp's access: computed, checked, counted, shown to the observer, and turned into host pointers.
#pragma once
#include "cluster.h"
#include "counting.h"
#include "machine.h"
#include "observer.h"
#include "shared_shadow.h"

namespace ptx {

inline const char* verb(Access access) {
  return access == ACCESS_LOAD ? "load" : access == ACCESS_STORE ? "store" : "atomic";
}

// ---- findings of bad addresses -------------------------------------------------------------------------------------------

[[noreturn]] inline void fail_global(const Warp& w, const Instruction& in, int lane, uint64_t address, int bytes, Access access) {
  const Launch& launch = *w.worker->launch;
  Finding f = finding_at(w, pc_of(w, in), lane);
  f.error = 1;
  if (address < 65536) {
    f.kind = FindingKind::null_pointer;
    set_text(f, "%d-byte %s through a null pointer (address %llu)", bytes, verb(access), static_cast<unsigned long long>(address));
    throw Fatal{f};
  }
  f.kind = FindingKind::out_of_bounds;
  uint64_t best = ~0ull;
  for (int i = 0; i < launch.buffer_count; i++) {
    const Buffer& b = launch.buffers[i];
    const uint64_t distance = address < b.begin ? b.begin - address : address + bytes > b.end ? address + bytes - b.end : 0;
    if (distance >= best || (distance && b.id == launch.parameters_id)) continue;
    best = distance;
    f.buffer = b.id;
    f.offset = static_cast<int64_t>(address - b.begin);
  }
  if (best > (64ull << 20)) f.buffer = -1;
  if (f.buffer >= 0 && best == 0)
    set_text(f, "%d-byte %s to read-only memory", bytes, verb(access));
  else
    set_text(f, "%d-byte global %s at address 0x%llx", bytes, verb(access), static_cast<unsigned long long>(address));
  throw Fatal{f};
}

[[noreturn]] inline void fail_window(const Warp& w, const Instruction& in, int lane, const char* space, uint64_t offset, int bytes,
                                     int64_t size, Access access) {
  Finding f = finding_at(w, pc_of(w, in), lane);
  f.kind = FindingKind::out_of_bounds;
  f.error = 1;
  f.offset = static_cast<int64_t>(offset);
  set_text(f, "%d-byte %s %s at byte %lld of %lld", bytes, space, verb(access), static_cast<long long>(offset),
           static_cast<long long>(size));
  throw Fatal{f};
}

[[noreturn]] inline void fail_misaligned(const Warp& w, const Instruction& in, int lane, const char* space, uint64_t address,
                                         int bytes, Access access) {
  Finding f = finding_at(w, pc_of(w, in), lane);
  f.kind = FindingKind::misaligned;
  f.error = 1;
  set_text(f, "%d-byte %s %s at 0x%llx, which is not a multiple of %d", bytes, space, verb(access),
           static_cast<unsigned long long>(address), bytes);
  throw Fatal{f};
}

// ---- address computation -------------------------------------------------------------------------------------------------

// `reg` + `offset` for all lanes; 32-bit registers (shared, local) wrap at 32 bits.
inline void lane_addresses(const Warp& w, int32_t reg, int64_t offset, bool is_64, uint64_t* out) {
  if (reg == NONE) {
    for (int l = 0; l < 32; l++) out[l] = static_cast<uint64_t>(offset);
  } else if (is_64) {
    const uint64_t* p = w.pointer<uint64_t>(reg);
    for (int l = 0; l < 32; l++) out[l] = p[l] + static_cast<uint64_t>(offset);
  } else {
    const uint32_t* p = w.pointer<uint32_t>(reg);
    for (int l = 0; l < 32; l++) out[l] = static_cast<uint32_t>(p[l] + static_cast<uint32_t>(offset));
  }
}

inline Space space_of(uint64_t address) {
  const uint64_t window = address & WINDOW_MASK;
  return window == SHARED_WINDOW ? SHARED : window == LOCAL_WINDOW ? LOCAL : GLOBAL;
}

// ---- checks: nothing outside a buffer, the block's shared memory or the thread's local memory is ever touched --------------

inline void check_alignment(const Warp& w, const Instruction& in, uint32_t lanes, const uint64_t* addresses, int bytes,
                            const char* space, Access access) {
  uint64_t low = 0;
  for_lanes(lanes, [&](int l) { low |= addresses[l]; });
  if (!(low & (bytes - 1))) return;
  for_lanes(lanes, [&](int l) {
    if (addresses[l] & (bytes - 1)) fail_misaligned(w, in, l, space, addresses[l], bytes, access);
  });
}

inline int find_buffer(const Launch& launch, uint64_t address) {
  int low = 0, high = launch.buffer_count;
  while (low < high) {
    const int middle = (low + high) / 2;
    if (launch.buffers[middle].begin <= address) low = middle + 1;
    else high = middle;
  }
  return low - 1;
}

inline void check_global(Warp& w, const Instruction& in, uint32_t lanes, const uint64_t* addresses, int bytes, Access access) {
  const Launch& launch = *w.worker->launch;
  int32_t& guess = w.worker->last_buffer[pc_of(w, in)];
  auto inside = [&](int index, uint64_t low, uint64_t high) {
    const Buffer& b = launch.buffers[index];
    return low >= b.begin && high <= b.end && high >= low && (access == ACCESS_LOAD || b.writable);
  };
  uint64_t low = ~0ull, high = 0;
  if (lanes == ~0u) {
    for (int l = 0; l < 32; l++) {
      low = std::min(low, addresses[l]);
      high = std::max(high, addresses[l]);
    }
  } else {
    for_lanes(lanes, [&](int l) {
      low = std::min(low, addresses[l]);
      high = std::max(high, addresses[l]);
    });
  }
  check_alignment(w, in, lanes, addresses, bytes, "global", access);
  if (guess < launch.buffer_count && inside(guess, low, high + bytes)) return;
  for_lanes(lanes, [&](int l) {
    const int index = find_buffer(launch, addresses[l]);
    if (index < 0 || !inside(index, addresses[l], addresses[l] + bytes)) fail_global(w, in, l, addresses[l], bytes, access);
    guess = index;
  });
}

inline void check_window(const Warp& w, const Instruction& in, uint32_t lanes, const uint64_t* offsets, int bytes, int64_t size,
                         const char* space, Access access) {
  for_lanes(lanes, [&](int l) {
    if (offsets[l] > static_cast<uint64_t>(size) || offsets[l] + bytes > static_cast<uint64_t>(size))
      fail_window(w, in, l, space, offsets[l], bytes, size, access);
  });
  check_alignment(w, in, lanes, offsets, bytes, space, access);
}

// ---- one access, checked, counted and observed ----------------------------------------------------------------------------

template <class Observer>
inline void touch_global(Warp& w, const Instruction& in, uint32_t lanes, const uint64_t* addresses, int bytes, Access access,
                         Observer& observer) {
  check_global(w, in, lanes, addresses, bytes, access);
  if constexpr (Observer::COUNTS) {
    InstructionCounts& c = w.worker->counts[pc_of(w, in)];
    const int wanted = __builtin_popcount(lanes) * bytes;
    const SectorCount n = count_sectors(lanes, addresses, bytes);
    c.global_requests++;
    c.bytes += wanted;
    c.ideal_sectors += (wanted + 31) / 32;
    c.sectors += n.sectors;
    c.lines += n.lines;
  }
  observer.global_access(w, in, lanes, addresses, bytes, access);
}

template <class Observer>
inline void count_shared(Warp& w, const Instruction& in, uint32_t lanes, const uint64_t* offsets, int bytes, Access access,
                         Observer& observer) {
  if constexpr (Observer::COUNTS) {
    InstructionCounts& c = w.worker->counts[pc_of(w, in)];
    const WavefrontCount n = count_wavefronts(lanes, offsets, bytes);
    c.shared_requests++;
    c.bytes += static_cast<uint64_t>(__builtin_popcount(lanes)) * bytes;
    c.wavefronts += n.wavefronts;
    c.ideal_wavefronts += n.ideal;
  }
  observer.shared_access(w, in, lanes, offsets, bytes, access);
}

template <class Observer>
inline void touch_shared(Warp& w, const Instruction& in, uint32_t lanes, const uint64_t* offsets, int bytes, Access access,
                         Observer& observer) {
  check_window(w, in, lanes, offsets, bytes, w.worker->launch->shared_bytes, "shared", access);
  count_shared(w, in, lanes, offsets, bytes, access, observer);
}

template <class Observer>
inline void touch_local(Warp& w, const Instruction& in, uint32_t lanes, const uint64_t* offsets, int bytes, Access access,
                        Observer& observer) {
  check_window(w, in, lanes, offsets, bytes, w.worker->launch->local_bytes, "local", access);
  if constexpr (Observer::COUNTS) {
    InstructionCounts& c = w.worker->counts[pc_of(w, in)];
    c.local_requests++;
    c.bytes += static_cast<uint64_t>(__builtin_popcount(lanes)) * bytes;
  }
  observer.local_access(w, in, lanes, offsets, bytes, access);
}

inline char* local_pointer(const Warp& w, int lane, uint64_t offset) {
  const size_t thread = static_cast<size_t>(w.id) * 32 + lane;
  return w.block->local + thread * w.worker->launch->local_bytes + offset;
}

// Lanes whose shared address names another block of the cluster: resolved here, one block at a time; returns the others.
template <class Observer, class Body>
inline uint32_t access_peers(Warp& w, const Instruction& in, uint32_t lanes, uint64_t* addresses, int bytes, Access access,
                             Observer& observer, Body body) {
  uint32_t own = 0;
  for_lanes(lanes, [&](int l) {
    const bool mine = peer_of(w, addresses[l]) == w.block;
    if (mine) addresses[l] &= CLUSTER_OFFSET_MASK;
    own |= static_cast<uint32_t>(mine) << l;
  });
  for (uint32_t rest = lanes & ~own; rest;) {
    Block* peer = peer_of(w, addresses[lowest_lane(rest)]);
    uint32_t part = 0;
    uint64_t offsets[32];
    char* pointers[32];
    for_lanes(rest, [&](int l) {
      part |= static_cast<uint32_t>(peer_of(w, addresses[l]) == peer) << l;
      offsets[l] = addresses[l] & CLUSTER_OFFSET_MASK;
      pointers[l] = peer->shared + offsets[l];
    });
    touch_shared(w, in, part, offsets, bytes, access, observer);
    if (w.worker->launch->checks) ShadowCheck(w, in, *peer).remote(part, offsets, bytes, access);
    body(GLOBAL, part, offsets, pointers);  // no race checks of its own block
    rest &= ~part;
  }
  return own;
}

// Resolves `lanes` of an access and calls body(space, lanes, addresses, pointers) once for each space they fall into: generic
// addresses may differ. `addresses` are offsets for shared and local memory. Only pointers of set lanes are valid.
template <class Observer, class Body>
inline void access_memory(Warp& w, const Instruction& in, uint32_t lanes, int bytes, Access access, Observer& observer, Body body) {
  uint64_t addresses[32];
  char* pointers[32];
  lane_addresses(w, in.a, in.imm, in.flags & ADDRESS_64, addresses);
  for (uint32_t rest = lanes; rest;) {
    uint32_t part = rest;
    Space space = static_cast<Space>(in.space);
    if (space == GENERIC) {
      space = space_of(addresses[lowest_lane(rest)]);
      part = 0;
      for_lanes(rest, [&](int l) { part |= static_cast<uint32_t>(space_of(addresses[l]) == space) << l; });
    }
    if (space != GLOBAL) for_lanes(part, [&](int l) {
      const bool tagged = space_of(addresses[l]) == space;
      addresses[l] = tagged ? addresses[l] & ~WINDOW_MASK : addresses[l];
    });
    rest &= ~part;
    if (space == SHARED) {
      if (w.worker->launch->clustered) part = access_peers(w, in, part, addresses, bytes, access, observer, body);
      if (!part) continue;
      touch_shared(w, in, part, addresses, bytes, access, observer);
      for_lanes(part, [&](int l) { pointers[l] = w.block->shared + addresses[l]; });
    } else if (space == LOCAL) {
      touch_local(w, in, part, addresses, bytes, access, observer);
      for_lanes(part, [&](int l) { pointers[l] = local_pointer(w, l, addresses[l]); });
    } else {
      touch_global(w, in, part, addresses, bytes, access, observer);
      for (int l = 0; l < 32; l++) pointers[l] = reinterpret_cast<char*>(addresses[l]);
    }
    body(space, part, addresses, pointers);
  }
}

}  // namespace ptx

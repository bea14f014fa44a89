// Loads, stores, cp.async and the conversions between generic and specific addresses.
#pragma once
#include "memory.h"

namespace ptx {

template <class Stored>
inline void gather(uint32_t lanes, char* const* pointers, int at, uint32_t* out) {
  if (lanes == ~0u) {
    for (int l = 0; l < 32; l++) {
      Stored v;
      std::memcpy(&v, pointers[l] + at, sizeof v);
      out[l] = static_cast<uint32_t>(v);
    }
    return;
  }
  for_lanes(lanes, [&](int l) {
    Stored v;
    std::memcpy(&v, pointers[l] + at, sizeof v);
    out[l] = static_cast<uint32_t>(v);
  });
}
template <class Stored>
inline void gather_wide(uint32_t lanes, char* const* pointers, int at, uint64_t* out) {
  for_lanes(lanes, [&](int l) {
    Stored v;
    std::memcpy(&v, pointers[l] + at, sizeof v);
    out[l] = static_cast<uint64_t>(static_cast<int64_t>(v));
  });
}

inline void load_element(Warp& w, const Instruction& in, uint32_t lanes, char* const* pointers, int at, int32_t reg, bool wide) {
  const bool is_signed = in.flags & SIGNED;
  if (wide) {
    uint64_t* out = w.pointer<uint64_t>(reg);
    switch (in.size) {
      case 1: is_signed ? gather_wide<int8_t>(lanes, pointers, at, out) : gather_wide<uint8_t>(lanes, pointers, at, out); break;
      case 2: is_signed ? gather_wide<int16_t>(lanes, pointers, at, out) : gather_wide<uint16_t>(lanes, pointers, at, out); break;
      case 4: is_signed ? gather_wide<int32_t>(lanes, pointers, at, out) : gather_wide<uint32_t>(lanes, pointers, at, out); break;
      default: gather_wide<uint64_t>(lanes, pointers, at, out);
    }
    return;
  }
  uint32_t* out = w.pointer<uint32_t>(reg);
  switch (in.size) {
    case 1: is_signed ? gather<int8_t>(lanes, pointers, at, out) : gather<uint8_t>(lanes, pointers, at, out); break;
    case 2: is_signed ? gather<int16_t>(lanes, pointers, at, out) : gather<uint16_t>(lanes, pointers, at, out); break;
    default: gather<uint32_t>(lanes, pointers, at, out);
  }
}

// The common case, and the hottest: a full warp loads 4 bytes from shared memory, nothing being wrong with the addresses.
template <class Observer>
inline bool load_shared_words(Warp& w, const Instruction& in, Observer& observer) {
  const Launch& launch = *w.worker->launch;
  const uint32_t* base = w.pointer<uint32_t>(in.a);
  const uint32_t shift = static_cast<uint32_t>(in.imm);
  uint32_t offsets[32], highest = 0, low_bits = 0, differs = 0, uneven = 0;
  for (int l = 0; l < 32; l++) offsets[l] = base[l] + shift;
  for (int l = 0; l < 32; l++) {
    highest = std::max(highest, offsets[l]);
    low_bits |= offsets[l];
    differs |= offsets[l] ^ offsets[0];
    uneven |= offsets[l] ^ (offsets[0] + 4 * l);
  }
  if (static_cast<int64_t>(highest) + 4 > launch.shared_bytes || (low_bits & 3)) return false;
  const bool scattered = differs && uneven;
  uint64_t wide[32];
  constexpr bool OBSERVED = !std::is_same_v<Observer, NullObserver>;
  if (launch.checks || OBSERVED)
    for (int l = 0; l < 32; l++) wide[l] = offsets[l];
  if constexpr (Observer::COUNTS) {
    InstructionCounts& c = w.worker->counts[pc_of(w, in)];
    c.shared_requests++;
    c.wavefronts += scattered ? word_conflict_degree(offsets) : 1;
    c.ideal_wavefronts++;
    c.bytes += 128;
  }
  if constexpr (OBSERVED) observer.shared_access(w, in, ~0u, wide, 4, ACCESS_LOAD);
  if (launch.checks) ShadowCheck(w, in).load(~0u, wide, 4);
  uint32_t* out = w.pointer<uint32_t>(w.worker->launch->ext[in.ext]);
  const char* from = w.block->shared + offsets[0];
  if (scattered) {
    for (int l = 0; l < 32; l++) std::memcpy(&out[l], w.block->shared + offsets[l], 4);
  } else if (differs) {
    std::memcpy(out, from, 128);
  } else {
    uint32_t v;
    std::memcpy(&v, from, 4);
    for (int l = 0; l < 32; l++) out[l] = v;
  }
  return true;
}

template <class Observer>
inline void do_load(Warp& w, const Instruction& in, Observer& observer) {
  const uint32_t lanes = w.lanes(in);
  if (!lanes) return;
  const int32_t* regs = w.worker->launch->ext + in.ext;
  if (lanes == ~0u && in.space == SHARED && in.size == 4 && in.vec == 1 && in.a != NONE && regs[0] != NONE &&
      !(in.flags & (ADDRESS_64 | 1 << WIDE_SHIFT)) && load_shared_words(w, in, observer))
    return;
  access_memory(w, in, lanes, in.size * in.vec, ACCESS_LOAD, observer,
                [&](Space space, uint32_t part, const uint64_t* addresses, char* const* pointers) {
    if (space == SHARED && w.worker->launch->checks) ShadowCheck(w, in).load(part, addresses, in.size * in.vec);
    for (int v = 0; v < in.vec; v++)
      if (regs[v] != NONE) load_element(w, in, part, pointers, v * in.size, regs[v], in.flags >> (WIDE_SHIFT + v) & 1);
  });
}

template <class Observer>
inline void do_store(Warp& w, const Instruction& in, Observer& observer) {
  const uint32_t lanes = w.lanes(in);
  if (!lanes) return;
  const int32_t* regs = w.worker->launch->ext + in.ext;
  auto bytes_of = [&](int v, int lane) {
    return w.pointer<char>(regs[v]) + static_cast<size_t>(lane) * (in.flags >> (WIDE_SHIFT + v) & 1 ? 8 : 4);
  };
  access_memory(w, in, lanes, in.size * in.vec, ACCESS_STORE, observer,
                [&](Space space, uint32_t part, const uint64_t* addresses, char* const* pointers) {
    if (space == SHARED && w.worker->launch->checks) {
      char joined[64];
      ShadowCheck(w, in).store(part, addresses, in.size * in.vec, [&](int lane) -> const char* {
        if (in.vec == 1) return bytes_of(0, lane);
        for (int v = 0; v < in.vec; v++) std::memcpy(joined + v * in.size, bytes_of(v, lane), in.size);
        return joined;
      });
    }
    for (int v = 0; v < in.vec; v++) {
      if (in.size == 4) for_lanes(part, [&](int l) { std::memcpy(pointers[l] + v * 4, bytes_of(v, l), 4); });
      else for_lanes(part, [&](int l) { std::memcpy(pointers[l] + v * in.size, bytes_of(v, l), in.size); });
    }
  });
}

// ---- cp.async: the bytes are read now and reach shared memory when the warp waits for their group -------------------------

template <class Observer>
inline void do_copy_async(Warp& w, const Instruction& in, Observer& observer) {
  const uint32_t lanes = w.lanes(in);
  if (!lanes) return;
  const int32_t* ext = w.worker->launch->ext + in.ext;
  const int bytes = in.size;
  uint64_t from[32], to[32];
  uint32_t wanted[32], reading = 0;
  lane_addresses(w, ext[1], ext[2], true, from);
  lane_addresses(w, ext[0], in.imm, in.flags & ADDRESS_64, to);
  for_lanes(lanes, [&](int l) {
    to[l] &= ~WINDOW_MASK;
    wanted[l] = ext[3] == NONE ? bytes : std::min<uint32_t>(w.pointer<uint32_t>(ext[3])[l], bytes);
    reading |= static_cast<uint32_t>(wanted[l] != 0) << l;
  });
  if (reading) touch_global(w, in, reading, from, bytes, ACCESS_LOAD, observer);
  touch_shared(w, in, lanes, to, bytes, ACCESS_STORE, observer);
  if (w.worker->launch->checks) ShadowCheck(w, in).copy_issued(lanes, to, bytes);
  if (w.copies.empty()) w.copies.emplace_back();
  for_lanes(lanes, [&](int l) {
    PendingCopy copy{static_cast<uint32_t>(to[l]), static_cast<uint8_t>(bytes), static_cast<uint8_t>(l), pc_of(w, in), {}};
    if (wanted[l]) std::memcpy(copy.data, reinterpret_cast<const char*>(from[l]), wanted[l]);
    w.copies.back().push_back(copy);
  });
}

inline void do_copy_commit(Warp& w) {
  if (w.copies.empty()) w.copies.emplace_back();
  w.copies.emplace_back();
}

inline void land_copies(Warp& w, const Instruction& in, const std::vector<PendingCopy>& copies) {
  for (const PendingCopy& copy : copies) {
    std::memcpy(w.block->shared + copy.offset, copy.data, copy.bytes);
    if (w.worker->launch->checks) ShadowCheck(w, in).copy_landed(copy.lane, copy.offset, copy.bytes);
  }
}

// imm: committed groups that may stay in flight; -1 waits for the open group too.
inline void do_copy_wait(Warp& w, const Instruction& in) {
  const size_t keep = in.imm < 0 ? 0 : static_cast<size_t>(in.imm) + 1;
  while (w.copies.size() > keep) {
    land_copies(w, in, w.copies.front());
    w.copies.pop_front();
  }
}

// ---- address spaces ---------------------------------------------------------------------------------------------------------

inline uint64_t window_of(int32_t space) { return space == SHARED ? SHARED_WINDOW : space == LOCAL ? LOCAL_WINDOW : 0; }

inline void do_to_generic(Warp& w, const Instruction& in) {
  const uint64_t* a = w.pointer<uint64_t>(in.a);
  uint64_t* d = w.pointer<uint64_t>(in.d);
  const uint64_t window = window_of(in.space);
  for_lanes(w.lanes(in), [&](int l) { d[l] = window ? (a[l] & ~WINDOW_MASK) | window : a[l]; });
}

inline void do_from_generic(Warp& w, const Instruction& in) {
  const uint64_t* a = w.pointer<uint64_t>(in.a);
  uint64_t* d = w.pointer<uint64_t>(in.d);
  const uint64_t keep = in.space == GLOBAL ? ~0ull : ~WINDOW_MASK;
  for_lanes(w.lanes(in), [&](int l) { d[l] = a[l] & keep; });
}

inline void do_is_space(Warp& w, const Instruction& in) {
  const uint64_t* a = w.pointer<uint64_t>(in.a);
  uint32_t* d = w.pointer<uint32_t>(in.d);
  for_lanes(w.lanes(in), [&](int l) {
    const uint32_t bit = 1u << l;
    const bool inside = space_of(a[l]) == in.space && (in.space != SHARED || in.flags || peer_of(w, a[l]) == w.block);
    *d = inside ? *d | bit : *d & ~bit;
  });
}

}  // namespace ptx

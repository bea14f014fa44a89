// Operations in which the lanes of a warp talk to each other, and small register shuffling that the lane table cannot express.
#pragma once
#include "machine.h"

namespace ptx {

inline void set_bit(uint32_t& mask, int lane, bool on) { mask = on ? mask | 1u << lane : mask & ~(1u << lane); }

// Calls body(lanes, members) for each set of lanes that passed the same member mask.
template <class Body>
inline void by_member_mask(const Warp& w, int32_t mask_register, uint32_t lanes, Body body) {
  const uint32_t* masks = w.pointer<uint32_t>(mask_register);
  for (uint32_t rest = lanes; rest;) {
    const uint32_t members = masks[lowest_lane(rest)];
    uint32_t same = 0;
    for_lanes(rest, [&](int l) { same |= static_cast<uint32_t>(masks[l] == members) << l; });
    body(same, members);
    rest &= ~same;
  }
}

inline void report_shuffle(Warp& w, const Instruction& in, int lane, int source) {
  const int pc = pc_of(w, in);
  if (w.worker->findings.has(FindingKind::shuffle_outside_mask, pc)) return;
  Finding f = finding_at(w, pc, lane);
  f.kind = FindingKind::shuffle_outside_mask;
  set_text(f, "lane %d shuffles from lane %d, which does not take part: the value is undefined", lane, source);
  w.worker->findings.entries.push_back(f);
}

inline void do_shuffle(Warp& w, const Instruction& in) {
  const uint32_t lanes = w.lanes(in);
  if (!lanes) return;
  const int32_t* ext = w.worker->launch->ext + in.ext;
  const uint32_t *b = w.pointer<uint32_t>(in.b), *c = w.pointer<uint32_t>(in.c), *members = w.pointer<uint32_t>(ext[0]);
  uint32_t value[32], result[32], in_range = 0;
  std::memcpy(value, w.pointer<uint32_t>(in.a), sizeof value);
  for_lanes(lanes, [&](int l) {
    const int delta = static_cast<int>(b[l] & 31), clamp = static_cast<int>(c[l] & 31), segment = static_cast<int>(c[l] >> 8 & 31);
    const int highest = (l & segment) | (clamp & ~segment), lowest = l & segment;
    int source = 0;
    bool ok = false;
    switch (in.flags) {
      case SHUFFLE_UP: source = l - delta; ok = source >= highest; break;
      case SHUFFLE_DOWN: source = l + delta; ok = source <= highest; break;
      case SHUFFLE_BFLY: source = l ^ delta; ok = source <= highest; break;
      default: source = lowest | (delta & ~segment); ok = source <= highest;
    }
    source = ok ? source & 31 : l;
    if (ok && !((members[l] & lanes) >> source & 1)) report_shuffle(w, in, l, source);
    result[l] = value[source];
    in_range |= static_cast<uint32_t>(ok) << l;
  });
  uint32_t* d = w.pointer<uint32_t>(in.d);
  for_lanes(lanes, [&](int l) { d[l] = result[l]; });
  if (ext[1] == NONE) return;
  uint32_t* p = w.pointer<uint32_t>(ext[1]);
  *p = (*p & ~lanes) | (in_range & lanes);
}

inline void do_vote(Warp& w, const Instruction& in) {
  const uint32_t lanes = w.lanes(in);
  uint32_t votes = *w.pointer<uint32_t>(in.a);
  if (in.imm) votes = ~votes;
  by_member_mask(w, in.b, lanes, [&](uint32_t same, uint32_t members) {
    const uint32_t voters = lanes & members, yes = votes & voters;
    if (in.flags == VOTE_BALLOT) {
      uint32_t* d = w.pointer<uint32_t>(in.d);
      for_lanes(same, [&](int l) { d[l] = yes; });
      return;
    }
    const bool all = yes == voters, any = yes != 0;
    const bool result = in.flags == VOTE_ALL ? all : in.flags == VOTE_ANY ? any : all || !any;
    uint32_t* d = w.pointer<uint32_t>(in.d);
    *d = result ? *d | same : *d & ~same;
  });
}

inline void do_elect(Warp& w, const Instruction& in) {
  const uint32_t lanes = w.lanes(in);
  by_member_mask(w, in.b, lanes, [&](uint32_t same, uint32_t members) {
    const int leader = lowest_lane(lanes & members ? lanes & members : same);
    for_lanes(same, [&](int l) {
      if (in.d != NONE) w.pointer<uint32_t>(in.d)[l] = leader;
      if (in.a != NONE) set_bit(*w.pointer<uint32_t>(in.a), l, l == leader);
    });
  });
}

inline void do_match(Warp& w, const Instruction& in) {
  const uint32_t lanes = w.lanes(in);
  auto value = [&](int l) { return in.size == 8 ? w.pointer<uint64_t>(in.a)[l] : w.pointer<uint32_t>(in.a)[l]; };
  uint32_t result[32], everyone = 0;
  by_member_mask(w, in.b, lanes, [&](uint32_t same, uint32_t members) {
    for_lanes(same, [&](int l) {
      uint32_t equal = 0;
      for_lanes(lanes & members, [&](int k) { equal |= static_cast<uint32_t>(value(k) == value(l)) << k; });
      const bool all = equal == (lanes & members);
      result[l] = in.flags && !all ? 0 : equal;
      everyone |= static_cast<uint32_t>(all) << l;
    });
  });
  if (in.d != NONE) for_lanes(lanes, [&](int l) { w.pointer<uint32_t>(in.d)[l] = result[l]; });
  if (in.c != NONE) for_lanes(lanes, [&](int l) { set_bit(*w.pointer<uint32_t>(in.c), l, everyone >> l & 1); });
}

inline uint32_t reduce(int32_t kind, uint32_t x, uint32_t y) {
  const auto sx = static_cast<int32_t>(x), sy = static_cast<int32_t>(y);
  switch (kind) {
    case REDUX_ADD: return x + y;
    case REDUX_MIN_U: return std::min(x, y);
    case REDUX_MAX_U: return std::max(x, y);
    case REDUX_MIN_S: return sx < sy ? x : y;
    case REDUX_MAX_S: return sx > sy ? x : y;
    case REDUX_AND: return x & y;
    case REDUX_OR: return x | y;
    default: return x ^ y;
  }
}

inline void do_redux(Warp& w, const Instruction& in) {
  const uint32_t lanes = w.lanes(in);
  uint32_t result[32];
  const uint32_t* a = w.pointer<uint32_t>(in.a);
  by_member_mask(w, in.b, lanes, [&](uint32_t same, uint32_t members) {
    const uint32_t taking_part = lanes & members ? lanes & members : same;
    const int first = lowest_lane(taking_part);
    uint32_t total = a[first];
    for_lanes(taking_part & ~(1u << first), [&](int l) { total = reduce(in.flags, total, a[l]); });
    for_lanes(same, [&](int l) { result[l] = total; });
  });
  for_lanes(lanes, [&](int l) { w.pointer<uint32_t>(in.d)[l] = result[l]; });
}

inline void do_active_mask(Warp& w, const Instruction& in) {
  for_lanes(w.lanes(in), [&](int l) { w.pointer<uint32_t>(in.d)[l] = w.active; });
}

// Time is what the warp has executed: monotonic, and the same in every run.
inline void do_clock(Warp& w, const Instruction& in) {
  for_lanes(w.lanes(in), [&](int l) {
    if (in.size == 8) w.pointer<uint64_t>(in.d)[l] = w.executed;
    else w.pointer<uint32_t>(in.d)[l] = static_cast<uint32_t>(w.executed);
  });
}

template <class U>
inline U insert_bits(U value, U base, uint32_t position, uint32_t length) {
  constexpr uint32_t BITS = sizeof(U) * 8;
  position &= 255;
  length &= 255;
  if (position >= BITS || length == 0) return base;
  const U mask = (length >= BITS ? ~U(0) : (U(1) << length) - 1) << position;
  return (base & ~mask) | (static_cast<U>(value << position) & mask);
}

inline void do_insert_bits(Warp& w, const Instruction& in) {
  const int32_t* ext = w.worker->launch->ext + in.ext;
  const uint32_t *position = w.pointer<uint32_t>(ext[2]), *length = w.pointer<uint32_t>(ext[3]);
  for_lanes(w.lanes(in), [&](int l) {
    if (in.size == 8)
      w.pointer<uint64_t>(in.d)[l] = insert_bits(w.pointer<uint64_t>(ext[0])[l], w.pointer<uint64_t>(ext[1])[l], position[l], length[l]);
    else
      w.pointer<uint32_t>(in.d)[l] = insert_bits(w.pointer<uint32_t>(ext[0])[l], w.pointer<uint32_t>(ext[1])[l], position[l], length[l]);
  });
}

// mov.b64 d, {lo, hi} and the like.
inline void do_pack(Warp& w, const Instruction& in) {
  const int32_t* parts = w.worker->launch->ext + in.ext;
  const uint64_t mask = in.size >= 4 ? 0xffffffffull : (1ull << 8 * in.size) - 1;
  for_lanes(w.lanes(in), [&](int l) {
    uint64_t whole = 0;
    for (int i = 0; i < in.vec; i++) whole |= (w.pointer<uint32_t>(parts[i])[l] & mask) << 8 * in.size * i;
    if (in.size * in.vec == 8) w.pointer<uint64_t>(in.d)[l] = whole;
    else w.pointer<uint32_t>(in.d)[l] = static_cast<uint32_t>(whole);
  });
}

inline void do_unpack(Warp& w, const Instruction& in) {
  const int32_t* parts = w.worker->launch->ext + in.ext;
  const uint64_t mask = in.size >= 4 ? 0xffffffffull : (1ull << 8 * in.size) - 1;
  for_lanes(w.lanes(in), [&](int l) {
    const uint64_t whole = in.size * in.vec == 8 ? w.pointer<uint64_t>(in.a)[l] : w.pointer<uint32_t>(in.a)[l];
    for (int i = 0; i < in.vec; i++)
      if (parts[i] != NONE) w.pointer<uint32_t>(parts[i])[l] = static_cast<uint32_t>(whole >> 8 * in.size * i & mask);
  });
}

}  // namespace ptx

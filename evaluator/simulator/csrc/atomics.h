// Atomic read-modify-write, lane after lane in lane order.
#pragma once
#include "half.h"
#include "memory.h"

namespace ptx {

template <class T>
inline T combine(int32_t op, T old, T operand, T extra) {
  switch (op) {
    case ATOM_ADD: return static_cast<T>(old + operand);
    case ATOM_MIN: return operand < old ? operand : old;
    case ATOM_MAX: return operand > old ? operand : old;
    case ATOM_EXCH: return operand;
    case ATOM_CAS: return old == operand ? extra : old;
    default: return old;
  }
}

template <class U>
inline U combine_bits(int32_t op, U old, U operand) {
  switch (op) {
    case ATOM_AND: return old & operand;
    case ATOM_OR: return old | operand;
    case ATOM_XOR: return old ^ operand;
    case ATOM_INC: return old >= operand ? 0 : old + 1;
    case ATOM_DEC: return old == 0 || old > operand ? operand : old - 1;
    default: return old;
  }
}

template <class H>
inline uint32_t add_halves(uint32_t old, uint32_t operand, int halves) {
  uint32_t result = 0;
  for (int i = 0; i < halves; i++) {
    const auto a = static_cast<uint16_t>(old >> 16 * i), b = static_cast<uint16_t>(operand >> 16 * i);
    result |= static_cast<uint32_t>(H::encode(H::decode(a) + H::decode(b))) << 16 * i;
  }
  return result;
}

// U: the bits in memory, T: how the operation reads them.
template <class U, class T>
struct ArithmeticUpdate {
  int32_t op;
  U operator()(U old, U operand, U extra) const {
    if (op >= ATOM_AND) return combine_bits<U>(op, old, operand);
    if (op == ATOM_CAS) return old == operand ? extra : old;
    return bit_cast<U>(combine<T>(op, bit_cast<T>(old), bit_cast<T>(operand), bit_cast<T>(extra)));
  }
};
template <class U, class H>
struct HalfUpdate {
  int32_t op;
  U operator()(U old, U operand, U) const { return static_cast<U>(add_halves<H>(old, operand, sizeof(U) / 2)); }
};

template <class U, class Update>
inline void update_lanes(Warp& w, const Instruction& in, uint32_t lanes, char* const* pointers, Update update) {
  using Lane = std::conditional_t<sizeof(U) == 8, uint64_t, uint32_t>;
  const int32_t* regs = w.worker->launch->ext + in.ext;
  const Lane* operand = w.pointer<Lane>(regs[1]);
  const Lane* extra = regs[2] != NONE ? w.pointer<Lane>(regs[2]) : operand;
  Lane* result = regs[0] != NONE ? w.pointer<Lane>(regs[0]) : nullptr;
  for_lanes(lanes, [&](int l) {
    U* at = reinterpret_cast<U*>(pointers[l]);
    U old = __atomic_load_n(at, __ATOMIC_RELAXED), next;
    const U by = static_cast<U>(operand[l]), with = static_cast<U>(extra[l]);
    do next = update(old, by, with);
    while (!__atomic_compare_exchange_n(at, &old, next, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED));
    if (result) result[l] = old;
  });
}

template <class Observer>
inline void do_atomic(Warp& w, const Instruction& in, Observer& observer) {
  const uint32_t lanes = w.lanes(in);
  if (!lanes) return;
  const int32_t op = in.flags >> ATOMIC_OP_SHIFT & 15, type = in.flags >> ATOMIC_TYPE_SHIFT & 15;
  access_memory(w, in, lanes, in.size, ACCESS_ATOMIC, observer,
                [&](Space space, uint32_t part, const uint64_t* addresses, char* const* pointers) {
    if (space == SHARED && w.worker->launch->checks) ShadowCheck(w, in).atomic(part, addresses, in.size);
    const bool wide = in.size == 8;
    switch (type) {
      case TYPE_F16: update_lanes<uint16_t>(w, in, part, pointers, HalfUpdate<uint16_t, Half>{op}); break;
      case TYPE_BF16: update_lanes<uint16_t>(w, in, part, pointers, HalfUpdate<uint16_t, Bfloat>{op}); break;
      case TYPE_F16X2: update_lanes<uint32_t>(w, in, part, pointers, HalfUpdate<uint32_t, Half>{op}); break;
      case TYPE_BF16X2: update_lanes<uint32_t>(w, in, part, pointers, HalfUpdate<uint32_t, Bfloat>{op}); break;
      case TYPE_FLOAT:
        if (wide) update_lanes<uint64_t>(w, in, part, pointers, ArithmeticUpdate<uint64_t, double>{op});
        else update_lanes<uint32_t>(w, in, part, pointers, ArithmeticUpdate<uint32_t, float>{op});
        break;
      case TYPE_SIGNED:
        if (wide) update_lanes<uint64_t>(w, in, part, pointers, ArithmeticUpdate<uint64_t, int64_t>{op});
        else update_lanes<uint32_t>(w, in, part, pointers, ArithmeticUpdate<uint32_t, int32_t>{op});
        break;
      default:
        if (wide) update_lanes<uint64_t>(w, in, part, pointers, ArithmeticUpdate<uint64_t, uint64_t>{op});
        else if (in.size == 4) update_lanes<uint32_t>(w, in, part, pointers, ArithmeticUpdate<uint32_t, uint32_t>{op});
        else update_lanes<uint16_t>(w, in, part, pointers, ArithmeticUpdate<uint16_t, uint16_t>{op});
    }
  });
}

}  // namespace ptx

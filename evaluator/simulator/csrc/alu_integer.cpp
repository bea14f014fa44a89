// Integer arithmetic, logic, shifts and bit fields.
#include <algorithm>
#include <limits>

#include "lanes.h"

namespace ptx {
namespace {

// Arithmetic on 16-bit values is promoted to int; results are narrowed by the destination lane.
struct Add { template <class T> T operator()(T a, T b) const { return static_cast<T>(a + b); } };
struct Sub { template <class T> T operator()(T a, T b) const { return static_cast<T>(a - b); } };
struct Mul { template <class T> T operator()(T a, T b) const { return static_cast<T>(1u * a * b); } };
struct Mad { template <class T> T operator()(T a, T b, T c) const { return static_cast<T>(1u * a * b + c); } };
struct Neg { template <class T> T operator()(T a) const { return static_cast<T>(0 - a); } };
struct Abs { template <class T> T operator()(T a) const {
  using U = std::make_unsigned_t<T>;
  return a < 0 ? static_cast<T>(U(0) - static_cast<U>(a)) : a;
} };
struct Min { template <class T> T operator()(T a, T b) const { return a < b ? a : b; } };
struct Max { template <class T> T operator()(T a, T b) const { return a > b ? a : b; } };

// The machine's answers for x / 0 and INT_MIN / -1, which C++ leaves undefined.
template <class T> constexpr bool overflows(T a, T b) {
  return std::is_signed_v<T> && b == static_cast<T>(-1) && a == std::numeric_limits<T>::min();
}
struct Div { template <class T> T operator()(T a, T b) const {
  return b == 0 ? static_cast<T>(-1) : overflows(a, b) ? a : static_cast<T>(a / b);
} };
struct Rem { template <class T> T operator()(T a, T b) const {
  return b == 0 ? a : overflows(a, b) ? static_cast<T>(0) : static_cast<T>(a % b);
} };

struct And { template <class T> T operator()(T a, T b) const { return a & b; } };
struct Or { template <class T> T operator()(T a, T b) const { return a | b; } };
struct Xor { template <class T> T operator()(T a, T b) const { return a ^ b; } };
struct Not { template <class T> T operator()(T a) const { return static_cast<T>(~a); } };
struct LogicalNot { template <class T> T operator()(T a) const { return a == 0; } };
struct Copy { template <class T> T operator()(T a) const { return a; } };
struct Select { template <class T> T operator()(T a, T b, bool p) const { return p ? a : b; } };

template <class T> constexpr uint32_t bits() { return sizeof(T) * 8; }
struct ShiftLeft { template <class T> T operator()(T a, uint32_t n) const {
  return n >= bits<T>() ? static_cast<T>(0) : static_cast<T>(a << n);
} };
struct ShiftRight { template <class T> T operator()(T a, uint32_t n) const {
  return n >= bits<T>() ? static_cast<T>(a < 0 ? -1 : 0) : static_cast<T>(a >> n);
} };

template <class Wide> struct MulWide { template <class T> Wide operator()(T a, T b) const {
  return static_cast<Wide>(a) * static_cast<Wide>(b);
} };
template <class Wide> struct MadWide { template <class T, class C> Wide operator()(T a, T b, C c) const {
  using U = std::make_unsigned_t<Wide>;
  return static_cast<Wide>(static_cast<U>(static_cast<Wide>(a) * static_cast<Wide>(b)) + static_cast<U>(c));
} };
template <class Wide> struct MulHigh { template <class T> T operator()(T a, T b) const {
  return static_cast<T>((static_cast<Wide>(a) * static_cast<Wide>(b)) >> bits<T>());
} };
template <class Wide> struct MadHigh { template <class T> T operator()(T a, T b, T c) const {
  using U = std::make_unsigned_t<T>;
  return static_cast<T>(static_cast<U>(MulHigh<Wide>{}(a, b)) + static_cast<U>(c));
} };

template <class T> T sign_extend24(uint32_t v) { return static_cast<T>(v << 8) >> 8; }
template <class T> struct Mul24 { T operator()(T a, T b) const {
  return static_cast<T>(static_cast<uint32_t>(sign_extend24<T>(a)) * static_cast<uint32_t>(sign_extend24<T>(b)));
} };
template <class T> struct Mad24 { T operator()(T a, T b, T c) const {
  return static_cast<T>(static_cast<uint32_t>(Mul24<T>{}(a, b)) + static_cast<uint32_t>(c));
} };
struct Sad { template <class T> uint32_t operator()(T a, T b, uint32_t c) const {
  return c + (a < b ? static_cast<uint32_t>(b) - static_cast<uint32_t>(a) : static_cast<uint32_t>(a) - static_cast<uint32_t>(b));
} };

struct Population {
  uint32_t operator()(uint32_t a) const { return __builtin_popcount(a); }
  uint32_t operator()(uint64_t a) const { return __builtin_popcountll(a); }
};
struct LeadingZeros {
  uint32_t operator()(uint32_t a) const { return a ? __builtin_clz(a) : 32; }
  uint32_t operator()(uint64_t a) const { return a ? __builtin_clzll(a) : 64; }
};
uint32_t reverse(uint32_t v) {
  v = (v >> 1 & 0x55555555) | (v & 0x55555555) << 1;
  v = (v >> 2 & 0x33333333) | (v & 0x33333333) << 2;
  v = (v >> 4 & 0x0f0f0f0f) | (v & 0x0f0f0f0f) << 4;
  return __builtin_bswap32(v);
}
struct Reverse {
  uint32_t operator()(uint32_t a) const { return reverse(a); }
  uint64_t operator()(uint64_t a) const {
    return static_cast<uint64_t>(reverse(static_cast<uint32_t>(a))) << 32 | reverse(static_cast<uint32_t>(a >> 32));
  }
};
struct HighestBit { template <class T> uint32_t operator()(T a) const {
  using U = std::make_unsigned_t<T>;
  U v = static_cast<U>(a < 0 ? ~a : a);
  return v ? 63 - __builtin_clzll(v) : ~0u;
} };
struct HighestBitShift { template <class T> uint32_t operator()(T a) const {
  uint32_t position = HighestBit{}(a);
  return position == ~0u ? position : bits<T>() - 1 - position;
} };
struct ExtractBits { template <class T> T operator()(T a, uint32_t position, uint32_t length) const {
  using U = std::make_unsigned_t<T>;
  position &= 255;
  length &= 255;
  if (length == 0) return 0;
  if (position >= bits<T>()) return a < 0 ? -1 : 0;
  if (position + length >= bits<T>()) return a >> position;
  return static_cast<T>(static_cast<U>(a) << (bits<T>() - position - length)) >> (bits<T>() - length);
} };
uint32_t bit_mask(uint32_t position, uint32_t length) {
  if (position >= 32 || length == 0) return 0;
  return (length >= 32 ? ~0u : (1u << length) - 1) << position;
}
struct BitMaskClamp { uint32_t operator()(uint32_t a, uint32_t b) const { return bit_mask(a, b); } };
struct BitMaskWrap { uint32_t operator()(uint32_t a, uint32_t b) const { return bit_mask(a & 31, b & 31); } };
// fns: the position of the n-th set bit from `base` upwards (n > 0) or downwards (n < 0).
struct FindNthSet { uint32_t operator()(uint32_t mask, uint32_t base, int32_t n) const {
  if (n == 0) return base < 32 && mask >> base & 1 ? base : ~0u;
  const int step = n < 0 ? -1 : 1;
  int left = n < 0 ? -n : n;
  for (int at = static_cast<int>(base); at >= 0 && at < 32; at += step)
    if ((mask >> at & 1) && --left == 0) return static_cast<uint32_t>(at);
  return ~0u;
} };
struct Permute { uint32_t operator()(uint32_t a, uint32_t b, uint32_t selector) const {
  uint64_t bytes = static_cast<uint64_t>(b) << 32 | a;
  uint32_t result = 0;
  for (int i = 0; i < 4; i++) {
    uint32_t s = selector >> (4 * i) & 15;
    uint8_t v = static_cast<uint8_t>(bytes >> (8 * (s & 7)));
    if (s & 8) v = v & 0x80 ? 0xff : 0;
    result |= static_cast<uint32_t>(v) << (8 * i);
  }
  return result;
} };
// prmt's fixed patterns: the selector that mode and the low two bits of the operand stand for.
enum PermuteMode { FORWARD_4, BACKWARD_4, REPLICATE_8, EDGE_LEFT, EDGE_RIGHT, REPLICATE_16 };
template <PermuteMode M> struct PermutePattern { uint32_t operator()(uint32_t a, uint32_t b, uint32_t c) const {
  uint32_t selector = 0;
  const uint32_t s = c & 3;
  for (uint32_t i = 0; i < 4; i++) {
    const uint32_t byte = M == FORWARD_4 ? s + i : M == BACKWARD_4 ? (s - i) & 7 : M == REPLICATE_8 ? s
        : M == EDGE_LEFT ? std::max(s, i) : M == EDGE_RIGHT ? std::min(s, i) : 2 * (s & 1) + (i & 1);
    selector |= byte << 4 * i;
  }
  return Permute{}(a, b, selector);
} };
// szext: the low `length` bits, zero- or sign-extended.
template <class T> struct ExtendClamp { T operator()(T a, uint32_t length) const {
  return static_cast<T>(ExtractBits{}(a, 0, std::min(length, 32u)));
} };
template <class T> struct ExtendWrap { T operator()(T a, uint32_t length) const {
  return static_cast<T>(ExtractBits{}(a, 0, length & 31));
} };
struct ReluInteger { template <class T> static T of(T a) { return a > 0 ? a : 0; } };
struct MinRelu { int32_t operator()(int32_t a, int32_t b) const { return ReluInteger::of(Min{}(a, b)); } };
struct MaxRelu { int32_t operator()(int32_t a, int32_t b) const { return ReluInteger::of(Max{}(a, b)); } };
// A functor on both 16-bit halves of a word.
template <class F, class T> struct Halves { uint32_t operator()(uint32_t a, uint32_t b) const {
  const auto low = static_cast<uint16_t>(F{}(static_cast<T>(a), static_cast<T>(b)));
  const auto high = static_cast<uint16_t>(F{}(static_cast<T>(a >> 16), static_cast<T>(b >> 16)));
  return static_cast<uint32_t>(high) << 16 | low;
} };
// vabsdiff2/vabsdiff4: |a - b| for each part; the plain form ignores the third operand, .add sums the parts onto it.
template <class T, bool SUM> struct PartDistances { uint32_t operator()(uint32_t a, uint32_t b, uint32_t c) const {
  constexpr int BITS = sizeof(T) * 8;
  uint32_t parts = 0, sum = c;
  for (int at = 0; at < 32; at += BITS) {
    const int x = static_cast<T>(a >> at), y = static_cast<T>(b >> at);
    const auto distance = static_cast<uint32_t>(x < y ? y - x : x - y);
    parts |= (distance & ((1u << BITS) - 1)) << at;
    sum += distance;
  }
  return SUM ? sum : parts;
} };
struct Logic3 { using takes_immediate = void; uint32_t operator()(uint32_t a, uint32_t b, uint32_t c, int64_t table) const {
  uint32_t r = 0;
  if (table & 1) r |= ~a & ~b & ~c;
  if (table & 2) r |= ~a & ~b & c;
  if (table & 4) r |= ~a & b & ~c;
  if (table & 8) r |= ~a & b & c;
  if (table & 16) r |= a & ~b & ~c;
  if (table & 32) r |= a & ~b & c;
  if (table & 64) r |= a & b & ~c;
  if (table & 128) r |= a & b & c;
  return r;
} };
uint64_t funnel(uint32_t low, uint32_t high) { return static_cast<uint64_t>(high) << 32 | low; }
struct FunnelLeftWrap { uint32_t operator()(uint32_t a, uint32_t b, uint32_t n) const {
  return static_cast<uint32_t>(funnel(a, b) << (n & 31) >> 32);
} };
struct FunnelRightWrap { uint32_t operator()(uint32_t a, uint32_t b, uint32_t n) const {
  return static_cast<uint32_t>(funnel(a, b) >> (n & 31));
} };
struct FunnelLeftClamp { uint32_t operator()(uint32_t a, uint32_t b, uint32_t n) const {
  return n >= 32 ? a : static_cast<uint32_t>(funnel(a, b) << n >> 32);
} };
struct FunnelRightClamp { uint32_t operator()(uint32_t a, uint32_t b, uint32_t n) const {
  return n >= 32 ? b : static_cast<uint32_t>(funnel(a, b) >> n);
} };
template <class A, class B> struct Dot4 { uint32_t operator()(uint32_t a, uint32_t b, uint32_t c) const {
  for (int i = 0; i < 4; i++) c += static_cast<uint32_t>(static_cast<A>(a >> 8 * i) * static_cast<B>(b >> 8 * i));
  return c;
} };
template <class A, class B, int FIRST> struct Dot2 { uint32_t operator()(uint32_t a, uint32_t b, uint32_t c) const {
  for (int i = 0; i < 2; i++) c += static_cast<uint32_t>(static_cast<A>(a >> 16 * i) * static_cast<B>(b >> 8 * (i + FIRST)));
  return c;
} };

// Carry chains: the front end expands add.cc/addc/mad.cc into these, the carry in a predicate.
struct CarryOut { template <class T> bool operator()(T a, T b) const { return static_cast<T>(a + b) < a; } };
struct AddCarry { template <class T> T operator()(T a, T b, bool c) const { return a + b + c; } };
struct AddCarryOut { template <class T> bool operator()(T a, T b, bool c) const {
  T sum = a + b;
  return sum < a || (c && sum + 1 == 0);
} };
// A subtraction adds the complement: its carry says that nothing was borrowed. (The ISA leaves open what addc sees after
// sub.cc; the compiler's own 128-bit division reads it this way.)
struct SubCarryOut { template <class T> bool operator()(T a, T b) const { return a >= b; } };
struct SubCarry { template <class T> T operator()(T a, T b, bool c) const { return a - b - !c; } };
struct SubCarryCarryOut { template <class T> bool operator()(T a, T b, bool c) const { return c ? a >= b : a > b; } };

// Saturating add and subtract (s32 only in PTX).
struct AddSat { int32_t operator()(int32_t a, int32_t b) const {
  int64_t sum = static_cast<int64_t>(a) + b;
  return static_cast<int32_t>(sum > INT32_MAX ? INT32_MAX : sum < INT32_MIN ? INT32_MIN : sum);
} };
struct SubSat { int32_t operator()(int32_t a, int32_t b) const {
  int64_t sum = static_cast<int64_t>(a) - b;
  return static_cast<int32_t>(sum > INT32_MAX ? INT32_MAX : sum < INT32_MIN ? INT32_MIN : sum);
} };

template <class T, class U>
void typed_ops(AluTable& table, const std::string& type) {  // T: the type, U: its unsigned twin (same bits where sign is moot)
  table.add<Add, U, U, U>("add." + type);
  table.add<Sub, U, U, U>("sub." + type);
  table.add<Mul, U, U, U>("mul.lo." + type);
  table.add<Mad, U, U, U, U>("mad.lo." + type);
  table.add<Min, T, T, T>("min." + type);
  table.add<Max, T, T, T>("max." + type);
  table.add<Div, T, T, T>("div." + type);
  table.add<Rem, T, T, T>("rem." + type);
  table.add<Neg, U, U>("neg." + type);
  table.add<Abs, T, T>("abs." + type);
  table.add<ShiftRight, T, T, U32>("shr." + type);
}

template <class U>
void untyped_ops(AluTable& table, const std::string& type) {
  table.add<And, U, U, U>("and." + type);
  table.add<Or, U, U, U>("or." + type);
  table.add<Xor, U, U, U>("xor." + type);
  table.add<Not, U, U>("not." + type);
  table.add<LogicalNot, U, U>("cnot." + type);
  table.add<Copy, U, U>("mov." + type);
  table.add<Select, U, U, U, Pred>("selp." + type);
  table.add<ShiftLeft, U, U, U32>("shl." + type);
  table.add<ShiftRight, U, U, U32>("shr." + type);
}

template <class T32, class T64, class T16, class From16, class From32, class From64>
void wide_ops(AluTable& table, const std::string& s) {
  table.add<MulWide<From16>, T32, T16, T16>("mul.wide." + s + "16");
  table.add<MadWide<From16>, T32, T16, T16, T32>("mad.wide." + s + "16");
  table.add<MulWide<From32>, T64, T32, T32>("mul.wide." + s + "32");
  table.add<MadWide<From32>, T64, T32, T32, T64>("mad.wide." + s + "32");
  table.add<MulHigh<From16>, T16, T16, T16>("mul.hi." + s + "16");
  table.add<MulHigh<From32>, T32, T32, T32>("mul.hi." + s + "32");
  table.add<MadHigh<From32>, T32, T32, T32, T32>("mad.hi." + s + "32");
  table.add<MulHigh<From64>, T64, T64, T64>("mul.hi." + s + "64");
  table.add<MadHigh<From64>, T64, T64, T64, T64>("mad.hi." + s + "64");
  table.add<ExtractBits, T32, T32, U32, U32>("bfe." + s + "32");
  table.add<ExtractBits, T64, T64, U32, U32>("bfe." + s + "64");
  table.add<HighestBit, U32, T32>("bfind." + s + "32");
  table.add<HighestBit, U32, T64>("bfind." + s + "64");
  table.add<HighestBitShift, U32, T32>("bfind.shiftamt." + s + "32");
  table.add<HighestBitShift, U32, T64>("bfind.shiftamt." + s + "64");
  table.add<Sad, U32, T32, T32, U32>("sad." + s + "32");
}

template <class T>
void carry_ops(AluTable& table, const std::string& width) {
  table.add<CarryOut, Pred, T, T>("carry.add." + width);
  table.add<AddCarry, T, T, T, Pred>("addc." + width);
  table.add<AddCarryOut, Pred, T, T, Pred>("carry.addc." + width);
  table.add<SubCarryOut, Pred, T, T>("carry.sub." + width);
  table.add<SubCarry, T, T, T, Pred>("subc." + width);
  table.add<SubCarryCarryOut, Pred, T, T, Pred>("carry.subc." + width);
}

void predicate_ops(AluTable& table) {
  table.add<And, Pred, Pred, Pred>("and.pred");
  table.add<Or, Pred, Pred, Pred>("or.pred");
  table.add<Xor, Pred, Pred, Pred>("xor.pred");
  struct PredNot { bool operator()(bool a) const { return !a; } };
  table.add<PredNot, Pred, Pred>("not.pred");
  table.add<Copy, Pred, Pred>("mov.pred");
}

void bit_ops(AluTable& table) {
  table.add<Population, U32, U32>("popc.b32");
  table.add<Population, U32, U64>("popc.b64");
  table.add<LeadingZeros, U32, U32>("clz.b32");
  table.add<LeadingZeros, U32, U64>("clz.b64");
  table.add<Reverse, U32, U32>("brev.b32");
  table.add<Reverse, U64, U64>("brev.b64");
  table.add<BitMaskClamp, U32, U32, U32>("bmsk.clamp.b32");
  table.add<BitMaskWrap, U32, U32, U32>("bmsk.wrap.b32");
  table.add<FindNthSet, U32, U32, U32, S32>("fns.b32");
  table.add<Permute, U32, U32, U32, U32>("prmt.b32");
  table.add<Logic3, U32, U32, U32, U32>("lop3.b32");
  table.add<FunnelLeftWrap, U32, U32, U32, U32>("shf.l.wrap.b32");
  table.add<FunnelRightWrap, U32, U32, U32, U32>("shf.r.wrap.b32");
  table.add<FunnelLeftClamp, U32, U32, U32, U32>("shf.l.clamp.b32");
  table.add<FunnelRightClamp, U32, U32, U32, U32>("shf.r.clamp.b32");
}

void permute_ops(AluTable& table) {
  table.add<PermutePattern<FORWARD_4>, U32, U32, U32, U32>("prmt.b32.f4e");
  table.add<PermutePattern<BACKWARD_4>, U32, U32, U32, U32>("prmt.b32.b4e");
  table.add<PermutePattern<REPLICATE_8>, U32, U32, U32, U32>("prmt.b32.rc8");
  table.add<PermutePattern<EDGE_LEFT>, U32, U32, U32, U32>("prmt.b32.ecl");
  table.add<PermutePattern<EDGE_RIGHT>, U32, U32, U32, U32>("prmt.b32.ecr");
  table.add<PermutePattern<REPLICATE_16>, U32, U32, U32, U32>("prmt.b32.rc16");
  table.add<ExtendClamp<uint32_t>, U32, U32, U32>("szext.clamp.u32");
  table.add<ExtendClamp<int32_t>, S32, S32, U32>("szext.clamp.s32");
  table.add<ExtendWrap<uint32_t>, U32, U32, U32>("szext.wrap.u32");
  table.add<ExtendWrap<int32_t>, S32, S32, U32>("szext.wrap.s32");
}

void half_word_ops(AluTable& table) {  // DPX and the SIMD functions
  table.add<Halves<Add, int16_t>, U32, U32, U32>("add.s16x2");
  table.add<Halves<Add, uint16_t>, U32, U32, U32>("add.u16x2");
  table.add<Halves<Sub, int16_t>, U32, U32, U32>("sub.s16x2");
  table.add<Halves<Sub, uint16_t>, U32, U32, U32>("sub.u16x2");
  table.add<Halves<Min, int16_t>, U32, U32, U32>("min.s16x2");
  table.add<Halves<Min, uint16_t>, U32, U32, U32>("min.u16x2");
  table.add<Halves<Max, int16_t>, U32, U32, U32>("max.s16x2");
  table.add<Halves<Max, uint16_t>, U32, U32, U32>("max.u16x2");
  table.add<Halves<MinRelu, int16_t>, U32, U32, U32>("min.s16x2.relu");
  table.add<Halves<MaxRelu, int16_t>, U32, U32, U32>("max.s16x2.relu");
  table.add<MinRelu, S32, S32, S32>("min.s32.relu");
  table.add<MaxRelu, S32, S32, S32>("max.s32.relu");
}

template <class T>
void distance_ops(AluTable& table, const std::string& name, const std::string& types) {
  table.add<PartDistances<T, false>, U32, U32, U32, U32>(name + types);
  table.add<PartDistances<T, true>, U32, U32, U32, U32>(name + types + ".add");
}

template <class A, class B>
void dot_ops(AluTable& table, const std::string& types) {
  using A16 = std::conditional_t<std::is_signed_v<A>, int16_t, uint16_t>;
  table.add<Dot4<A, B>, U32, U32, U32, U32>("dp4a." + types);
  table.add<Dot2<A16, B, 0>, U32, U32, U32, U32>("dp2a.lo." + types);
  table.add<Dot2<A16, B, 2>, U32, U32, U32, U32>("dp2a.hi." + types);
}

}  // namespace

void add_integer_ops(AluTable& table) {
  typed_ops<U16, U16>(table, "u16");
  typed_ops<S16, U16>(table, "s16");
  typed_ops<U32, U32>(table, "u32");
  typed_ops<S32, U32>(table, "s32");
  typed_ops<U64, U64>(table, "u64");
  typed_ops<S64, U64>(table, "s64");
  untyped_ops<U16>(table, "b16");
  untyped_ops<U32>(table, "b32");
  untyped_ops<U64>(table, "b64");
  wide_ops<U32, U64, U16, uint32_t, uint64_t, unsigned __int128>(table, "u");
  wide_ops<S32, S64, S16, int32_t, int64_t, __int128>(table, "s");
  carry_ops<U32>(table, "32");
  carry_ops<U64>(table, "64");
  predicate_ops(table);
  bit_ops(table);
  permute_ops(table);
  half_word_ops(table);
  distance_ops<uint8_t>(table, "vabsdiff4", ".u32.u32.u32");
  distance_ops<int8_t>(table, "vabsdiff4", ".u32.s32.s32");
  distance_ops<uint16_t>(table, "vabsdiff2", ".u32.u32.u32");
  distance_ops<int16_t>(table, "vabsdiff2", ".u32.s32.s32");
  dot_ops<uint8_t, uint8_t>(table, "u32.u32");
  dot_ops<int8_t, int8_t>(table, "s32.s32");
  dot_ops<int8_t, uint8_t>(table, "s32.u32");
  dot_ops<uint8_t, int8_t>(table, "u32.s32");
  table.add<AddSat, S32, S32, S32>("add.sat.s32");
  table.add<SubSat, S32, S32, S32>("sub.sat.s32");
  table.add<Mul24<uint32_t>, U32, U32, U32>("mul24.lo.u32");
  table.add<Mul24<int32_t>, S32, S32, S32>("mul24.lo.s32");
  table.add<Mad24<uint32_t>, U32, U32, U32, U32>("mad24.lo.u32");
  table.add<Mad24<int32_t>, S32, S32, S32, S32>("mad24.lo.s32");
}

}  // namespace ptx

// cvt: between integers, floats, halves and 8-bit floats.
#include <limits>

#include "float_math.h"
#include "lanes.h"

namespace ptx {
namespace {

constexpr FloatMode KEEP = FloatMode::KEEP_SUBNORMALS, FLUSH = FloatMode::FLUSH_SUBNORMALS, ANY = FloatMode::ANY;

template <class To> struct Cast { template <class T> To operator()(T a) const { return static_cast<To>(a); } };

// Integer to integer with .sat: clamp to the destination's range.
template <class To> struct Clamp { template <class T> To operator()(T a) const {
  using L = std::numeric_limits<To>;
  __int128 v = a;
  return v < static_cast<__int128>(L::min()) ? L::min() : v > static_cast<__int128>(L::max()) ? L::max() : static_cast<To>(a);
} };

// Float to integer always clamps; NaN becomes 0 (64-bit destinations: 2^63 pattern).
template <class To, class Round> struct ToInteger { template <class T> To operator()(T a) const {
  using L = std::numeric_limits<To>;
  if (a != a) return sizeof(To) == 8 ? static_cast<To>(0x8000000000000000ull) : 0;
  T r = Round{}(a);
  if (r <= static_cast<T>(L::min())) return L::min();
  if (r >= static_cast<T>(L::max())) return L::max();
  return static_cast<To>(r);
} };

template <class D, class S>
void integer_pair(AluTable& table) {
  std::string types = std::string(".") + D::name + "." + S::name;
  table.add<Cast<typename D::value>, D, S>("cvt" + types);
  table.add<Clamp<typename D::value>, D, S>("cvt.sat" + types);
}
template <class D>
void integer_row(AluTable& table) {
  integer_pair<D, U8>(table);
  integer_pair<D, S8>(table);
  integer_pair<D, U16>(table);
  integer_pair<D, S16>(table);
  integer_pair<D, U32>(table);
  integer_pair<D, S32>(table);
  integer_pair<D, U64>(table);
  integer_pair<D, S64>(table);
}

template <class D, class S>
void float_to_integer(AluTable& table, FloatMode mode, const std::string& ftz) {
  using V = typename D::value;
  for (std::string sat : {std::string(), std::string(".sat")}) {
    std::string tail = ftz + sat + "." + D::name + "." + S::name;
    table.add<ToInteger<V, Truncate>, D, S>("cvt.rzi" + tail, mode);
    table.add<ToInteger<V, RoundEven>, D, S>("cvt.rni" + tail, mode);
    table.add<ToInteger<V, Floor>, D, S>("cvt.rmi" + tail, mode);
    table.add<ToInteger<V, Ceil>, D, S>("cvt.rpi" + tail, mode);
  }
}

template <class D, class S>
void integer_to_float(AluTable& table) {
  std::string types = std::string(".") + D::name + "." + S::name;
  using C = Cast<typename D::value>;
  table.add<C, D, S>("cvt.rn" + types, KEEP);
  table.add_rounded<FE_TOWARDZERO, C, D, S>("cvt.rz" + types, KEEP);
  table.add_rounded<FE_DOWNWARD, C, D, S>("cvt.rm" + types, KEEP);
  table.add_rounded<FE_UPWARD, C, D, S>("cvt.rp" + types, KEEP);
}

template <class I>
void integer_float_row(AluTable& table) {
  float_to_integer<I, F32>(table, KEEP, "");
  float_to_integer<I, F32>(table, FLUSH, ".ftz");
  float_to_integer<I, F64>(table, KEEP, "");
  float_to_integer<I, F16>(table, ANY, "");
  float_to_integer<I, BF16>(table, KEEP, "");
  integer_to_float<F32, I>(table);
  integer_to_float<F64, I>(table);
  std::string name = I::name;
  struct ViaDouble { float operator()(typename I::value a) const { return round_to_odd(static_cast<double>(a)); } };
  table.add<ViaDouble, F16, I>("cvt.rn.f16." + name, KEEP);
  table.add<ViaDouble, BF16, I>("cvt.rn.bf16." + name, KEEP);
}

template <class T>
void to_integral_float(AluTable& table, FloatMode mode, const std::string& ftz) {
  std::string types = ftz + "." + T::name + "." + T::name;
  table.add<Truncate, T, T>("cvt.rzi" + types, mode);
  table.add<RoundEven, T, T>("cvt.rni" + types, mode);
  table.add<Floor, T, T>("cvt.rmi" + types, mode);
  table.add<Ceil, T, T>("cvt.rpi" + types, mode);
}

void float_double(AluTable& table, FloatMode mode, const std::string& ftz) {
  using C = Cast<float>;
  table.add<C, F32, F64>("cvt.rn" + ftz + ".f32.f64", mode);
  table.add_rounded<FE_TOWARDZERO, C, F32, F64>("cvt.rz" + ftz + ".f32.f64", mode);
  table.add_rounded<FE_DOWNWARD, C, F32, F64>("cvt.rm" + ftz + ".f32.f64", mode);
  table.add_rounded<FE_UPWARD, C, F32, F64>("cvt.rp" + ftz + ".f32.f64", mode);
  table.add<Cast<double>, F64, F32>("cvt" + ftz + ".f64.f32", mode);
  table.add<SaturateUnit, F32, F32>("cvt" + ftz + ".sat.f32.f32", mode);
  struct Same { float operator()(float a) const { return a; } };
  table.add<FlushResult<Same>, F32, F32>("cvt" + ftz + ".f32.f32", mode);
}

struct Identity { float operator()(float a) const { return a; } };
template <class H> struct EncodeTowardZero { uint32_t operator()(float a) const { return H::encode_toward_zero(a); } };
template <class H> struct EncodePair { uint32_t operator()(float high, float low) const {
  return static_cast<uint32_t>(H::encode(high)) << 16 | H::encode(low);
} };
template <class H> struct EncodePairTowardZero { uint32_t operator()(float high, float low) const {
  return static_cast<uint32_t>(H::encode_toward_zero(high)) << 16 | H::encode_toward_zero(low);
} };
template <class E> struct ReluOperands { uint32_t operator()(float high, float low) const {
  return E{}(high > 0 || high != high ? high : 0.0f, low > 0 || low != low ? low : 0.0f);
} };

template <class H, bool UP> struct EncodeDirected { uint32_t operator()(float a) const {
  return encode_directed<H, UP>(a, H::encode(a));
} };

template <class T, class H>
void half_conversions(AluTable& table, const std::string& type, FloatMode mode) {
  table.add<Identity, T, F32>("cvt.rn." + type + ".f32", mode);
  table.add<EncodeTowardZero<H>, U32, F32>("cvt.rz." + type + ".f32", mode);
  table.add<EncodeDirected<H, false>, U32, F32>("cvt.rm." + type + ".f32", mode);
  table.add<EncodeDirected<H, true>, U32, F32>("cvt.rp." + type + ".f32", mode);
  table.add<Relu<Identity>, T, F32>("cvt.rn.relu." + type + ".f32", mode);
  table.add<Identity, F32, T>("cvt.f32." + type, mode);
  table.add<Identity, F32, T>("cvt.ftz.f32." + type, mode);
  struct FromDouble { float operator()(double a) const { return round_to_odd(a); } };
  table.add<FromDouble, T, F64>("cvt.rn." + type + ".f64", KEEP);
  table.add<Cast<double>, F64, T>("cvt.f64." + type, KEEP);
  table.add<EncodePair<H>, U32, F32, F32>("cvt.rn." + type + "x2.f32", mode);
  table.add<EncodePairTowardZero<H>, U32, F32, F32>("cvt.rz." + type + "x2.f32", mode);
  table.add<ReluOperands<EncodePair<H>>, U32, F32, F32>("cvt.rn.relu." + type + "x2.f32", mode);
  to_integral_float<T>(table, mode, "");
}

// tf32: 10 mantissa bits in an f32 register.
struct ToTf32Away { uint32_t operator()(uint32_t a) const { return (a & 0x7f800000u) == 0x7f800000u ? a : (a + 0x1000u) & ~0x1fffu; } };
struct ToTf32Even { uint32_t operator()(uint32_t a) const {
  return (a & 0x7f800000u) == 0x7f800000u ? a : (a + 0xfffu + (a >> 13 & 1)) & ~0x1fffu;
} };

template <class E> struct EncodeFloat8Pair { uint32_t operator()(float high, float low) const {
  return static_cast<uint32_t>(E::encode(high)) << 8 | E::encode(low);
} };
template <class E> struct HalvesToFloat8 { uint32_t operator()(uint32_t pair) const {
  return EncodeFloat8Pair<E>{}(Half::decode(static_cast<uint16_t>(pair >> 16)), Half::decode(static_cast<uint16_t>(pair)));
} };
template <class E> struct Float8ToHalves { uint32_t operator()(uint32_t pair) const {
  return static_cast<uint32_t>(Half::encode(E::decode(static_cast<uint8_t>(pair >> 8)))) << 16 |
         Half::encode(E::decode(static_cast<uint8_t>(pair)));
} };

template <class E>
void float8_conversions(AluTable& table, const std::string& type) {
  table.add<EncodeFloat8Pair<E>, U16, F32, F32>("cvt.rn.satfinite." + type + "x2.f32", KEEP);
  table.add<HalvesToFloat8<E>, U16, U32>("cvt.rn.satfinite." + type + "x2.f16x2", KEEP);
  table.add<Float8ToHalves<E>, U32, U16>("cvt.rn.f16x2." + type + "x2", KEEP);
}

}  // namespace

void add_conversion_ops(AluTable& table) {
  integer_row<U8>(table);
  integer_row<S8>(table);
  integer_row<U16>(table);
  integer_row<S16>(table);
  integer_row<U32>(table);
  integer_row<S32>(table);
  integer_row<U64>(table);
  integer_row<S64>(table);
  integer_float_row<U8>(table);
  integer_float_row<S8>(table);
  integer_float_row<U16>(table);
  integer_float_row<S16>(table);
  integer_float_row<U32>(table);
  integer_float_row<S32>(table);
  integer_float_row<U64>(table);
  integer_float_row<S64>(table);
  to_integral_float<F32>(table, KEEP, "");
  to_integral_float<F32>(table, FLUSH, ".ftz");
  to_integral_float<F64>(table, KEEP, "");
  float_double(table, KEEP, "");
  float_double(table, FLUSH, ".ftz");
  half_conversions<F16, Half>(table, "f16", ANY);
  half_conversions<BF16, Bfloat>(table, "bf16", KEEP);
  table.add<ToTf32Away, U32, U32>("cvt.rna.tf32.f32");
  table.add<ToTf32Even, U32, U32>("cvt.rn.tf32.f32");
  float8_conversions<Float8<4, 3>>(table, "e4m3");
  float8_conversions<Float8<5, 2>>(table, "e5m2");
}

}  // namespace ptx

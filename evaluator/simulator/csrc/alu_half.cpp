// f16 and bf16 arithmetic, alone and in pairs. Operands are widened to f32, which holds every sum, product, quotient and root
// of them closely enough that the second rounding does no harm; fused multiply-add goes through double and rounds to odd.
#include "float_math.h"
#include "lanes.h"

namespace ptx {
namespace {

struct HalfFma { float operator()(float a, float b, float c) const {
  return round_to_odd(static_cast<double>(a) * b + c);
} };

// A functor on both halves of a 32-bit register.
template <class F, class H>
struct Paired { template <class... T> uint32_t operator()(T... v) const {
  uint32_t low = H::encode(F{}(H::decode(static_cast<uint16_t>(v))...));
  uint32_t high = H::encode(F{}(H::decode(static_cast<uint16_t>(v >> 16))...));
  return low | high << 16;
} };
template <uint32_t MASK> struct FlipBits { uint32_t operator()(uint32_t a) const { return a ^ MASK; } };
template <uint32_t MASK> struct KeepBits { uint32_t operator()(uint32_t a) const { return a & MASK; } };

template <class F, class T, class H, class... S>
void both(AluTable& table, const std::string& name, const std::string& type, FloatMode mode) {
  table.add<F, T, S...>(name + "." + type, mode);
  if constexpr (sizeof...(S) == 1) table.add<Paired<F, H>, U32, U32>(name + "." + type + "x2", mode);
  if constexpr (sizeof...(S) == 2) table.add<Paired<F, H>, U32, U32, U32>(name + "." + type + "x2", mode);
  if constexpr (sizeof...(S) == 3) table.add<Paired<F, H>, U32, U32, U32, U32>(name + "." + type + "x2", mode);
}

template <class T, class H>
void half_ops(AluTable& table, const std::string& type, FloatMode mode) {
  for (const std::string rounding : {"", ".rn"}) {
    both<FloatAdd, T, H, T, T>(table, "add" + rounding, type, mode);
    both<FloatSub, T, H, T, T>(table, "sub" + rounding, type, mode);
    both<FloatMul, T, H, T, T>(table, "mul" + rounding, type, mode);
    both<Saturated<FloatAdd>, T, H, T, T>(table, "add" + rounding + ".sat", type, mode);
    both<Saturated<FloatSub>, T, H, T, T>(table, "sub" + rounding + ".sat", type, mode);
    both<Saturated<FloatMul>, T, H, T, T>(table, "mul" + rounding + ".sat", type, mode);
  }
  both<HalfFma, T, H, T, T, T>(table, "fma.rn", type, mode);
  both<Saturated<HalfFma>, T, H, T, T, T>(table, "fma.rn.sat", type, mode);
  both<Relu<HalfFma>, T, H, T, T, T>(table, "fma.rn.relu", type, mode);
  both<FloatMin, T, H, T, T>(table, "min", type, mode);
  both<FloatMax, T, H, T, T>(table, "max", type, mode);
  both<NanWins<FloatMin>, T, H, T, T>(table, "min.NaN", type, mode);
  both<NanWins<FloatMax>, T, H, T, T>(table, "max.NaN", type, mode);
  both<Exp2, T, H, T>(table, "ex2.approx", type, mode);
}

void sign_ops(AluTable& table, const std::string& type) {
  table.add<FlipBits<0x8000>, U32, U32>("neg." + type);
  table.add<FlipBits<0x80008000u>, U32, U32>("neg." + type + "x2");
  table.add<KeepBits<0x7fff>, U32, U32>("abs." + type);
  table.add<KeepBits<0x7fff7fffu>, U32, U32>("abs." + type + "x2");
}

}  // namespace

void add_half_ops(AluTable& table) {
  // f16 values and their products are normal as f32; bf16 shares f32's exponents, so its subnormals must survive.
  half_ops<F16, Half>(table, "f16", FloatMode::ANY);
  half_ops<BF16, Bfloat>(table, "bf16", FloatMode::KEEP_SUBNORMALS);
  both<Exp2, BF16, Bfloat, BF16>(table, "ex2.approx.ftz", "bf16", FloatMode::FLUSH_SUBNORMALS);
  both<HyperbolicTangent, F16, Half, F16>(table, "tanh.approx", "f16", FloatMode::ANY);
  both<HyperbolicTangent, BF16, Bfloat, BF16>(table, "tanh.approx", "bf16", FloatMode::KEEP_SUBNORMALS);
  sign_ops(table, "f16");
  sign_ops(table, "bf16");
}

}  // namespace ptx

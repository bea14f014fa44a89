// Scalar f32/f64 functors shared by the float and half tables, written so that loops over lanes vectorise.
#pragma once
#include <cmath>

#include "half.h"

namespace ptx {

struct FloatAdd { template <class T> T operator()(T a, T b) const { return a + b; } };
struct FloatSub { template <class T> T operator()(T a, T b) const { return a - b; } };
struct FloatMul { template <class T> T operator()(T a, T b) const { return a * b; } };
struct FloatDiv { template <class T> T operator()(T a, T b) const { return a / b; } };
struct FloatFma {
  float operator()(float a, float b, float c) const { return __builtin_fmaf(a, b, c); }
  double operator()(double a, double b, double c) const { return __builtin_fma(a, b, c); }
};
struct FloatSqrt {
  float operator()(float a) const { return __builtin_sqrtf(a); }
  double operator()(double a) const { return __builtin_sqrt(a); }
};
struct FloatReciprocal { template <class T> T operator()(T a) const { return T(1) / a; } };
struct FloatReciprocalSqrt { template <class T> T operator()(T a) const { return T(1) / FloatSqrt{}(a); } };

template <class T> struct BitsOf;
template <> struct BitsOf<float> { using type = uint32_t; static constexpr uint32_t sign = 0x80000000u; };
template <> struct BitsOf<double> { using type = uint64_t; static constexpr uint64_t sign = 0x8000000000000000ull; };
template <class T> typename BitsOf<T>::type to_bits(T v) { return bit_cast<typename BitsOf<T>::type>(v); }

// Sign operations work on the bits: NaN payloads and subnormals pass.
struct FloatNeg { template <class T> T operator()(T a) const { return bit_cast<T>(to_bits(a) ^ BitsOf<T>::sign); } };
struct FloatAbs { template <class T> T operator()(T a) const { return bit_cast<T>(to_bits(a) & ~BitsOf<T>::sign); } };
struct FloatCopySign { template <class T> T operator()(T sign, T magnitude) const {
  return bit_cast<T>((to_bits(magnitude) & ~BitsOf<T>::sign) | (to_bits(sign) & BitsOf<T>::sign));
} };

// PTX min/max: a NaN loses against a number, -0 is below +0. The .NaN variants let the NaN win.
struct FloatMin { template <class T> T operator()(T a, T b) const {
  T smaller = a < b ? a : b;
  T tie = bit_cast<T>(to_bits(a) | to_bits(b));
  T ordered = a == b ? tie : smaller;
  return a != a ? b : b != b ? a : ordered;
} };
struct FloatMax { template <class T> T operator()(T a, T b) const {
  T larger = a > b ? a : b;
  T tie = bit_cast<T>(to_bits(a) & to_bits(b));
  T ordered = a == b ? tie : larger;
  return a != a ? b : b != b ? a : ordered;
} };
template <class M> struct NanWins { template <class T> T operator()(T a, T b) const {
  return a != a ? a : b != b ? b : M{}(a, b);
} };
template <class M> struct XorSignAbs { template <class T> T operator()(T a, T b) const {  // min/max.xorsign.abs
  T m = M{}(FloatAbs{}(a), FloatAbs{}(b));
  return bit_cast<T>(to_bits(m) | ((to_bits(a) ^ to_bits(b)) & BitsOf<T>::sign));
} };

struct FlushSubnormal { float operator()(float a) const {
  uint32_t bits = bit_cast<uint32_t>(a);
  return bit_cast<float>(bits & 0x7f800000u ? bits : bits & 0x80000000u);
} };
template <class F> struct FlushResult { template <class... T> float operator()(T... v) const { return FlushSubnormal{}(F{}(v...)); } };
template <class F> struct FlushOperand { float operator()(float v) const { return F{}(FlushSubnormal{}(v)); } };

struct SaturateUnit { float operator()(float a) const { return !(a > 0) ? 0.0f : a > 1 ? 1.0f : a; } };  // NaN gives +0
template <class F> struct Saturated { template <class... T> float operator()(T... v) const { return SaturateUnit{}(F{}(v...)); } };
template <class F> struct Relu { template <class... T> float operator()(T... v) const {
  float r = F{}(v...);
  return r != r ? r : r > 0 ? r : 0.0f;
} };

// 2^x: x = n + f with |f| <= 1/2, a polynomial for 2^f, the exponent added in two steps so that subnormal results round once.
struct Exp2 { float operator()(float x) const {
  float clamped = x < -160.0f ? -160.0f : x > 130.0f ? 130.0f : x;
  float n = __builtin_rintf(clamped), f = clamped - n;
  float p = 1.5252734e-5f;
  p = __builtin_fmaf(p, f, 1.5403530e-4f);
  p = __builtin_fmaf(p, f, 1.3333558e-3f);
  p = __builtin_fmaf(p, f, 9.6181291e-3f);
  p = __builtin_fmaf(p, f, 5.5504109e-2f);
  p = __builtin_fmaf(p, f, 2.4022651e-1f);
  p = __builtin_fmaf(p, f, 6.9314718e-1f);
  p = __builtin_fmaf(p, f, 1.0f);
  int32_t exponent = static_cast<int32_t>(x == x ? n : 0.0f), half = exponent >> 1;
  float first = bit_cast<float>((half + 127) << 23), second = bit_cast<float>((exponent - half + 127) << 23);
  float result = p * first * second;
  return x == x ? result : x;
} };

// log2(x): mantissa in [sqrt(1/2), sqrt(2)), atanh series.
struct Log2 { float operator()(float x) const {
  bool small = x < 1.17549435e-38f;
  float scaled = small ? x * 16777216.0f : x;
  uint32_t bits = bit_cast<uint32_t>(scaled);
  int32_t exponent = (static_cast<int32_t>(bits - 0x3f3504f3u) >> 23);
  float m = bit_cast<float>(bits - (static_cast<uint32_t>(exponent) << 23));
  float s = (m - 1.0f) / (m + 1.0f), square = s * s;
  float series = 0.32059889f;  // 2 / (9 ln 2)
  series = __builtin_fmaf(series, square, 0.41219859f);
  series = __builtin_fmaf(series, square, 0.57707802f);
  series = __builtin_fmaf(series, square, 0.96179669f);
  series = __builtin_fmaf(series, square, 2.8853901f);
  float result = __builtin_fmaf(s, series, static_cast<float>(exponent) - (small ? 24.0f : 0.0f));
  result = x == INFINITY ? x : result;
  result = x == 0 ? -INFINITY : result;
  return x >= 0 ? result : NAN;
} };

struct Sine { float operator()(float x) const { return std::sin(x); } };
struct Cosine { float operator()(float x) const { return std::cos(x); } };
struct HyperbolicTangent { float operator()(float x) const { return std::tanh(x); } };
struct Truncate { template <class T> T operator()(T a) const { return std::trunc(a); } };
struct RoundEven { template <class T> T operator()(T a) const { return std::nearbyint(a); } };
struct Floor { template <class T> T operator()(T a) const { return std::floor(a); } };
struct Ceil { template <class T> T operator()(T a) const { return std::ceil(a); } };

}  // namespace ptx

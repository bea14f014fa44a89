// f16 and bf16 as bit patterns, and the exact conversions around them.
#pragma once
#include <cmath>
#include <cstdint>
#include <cstring>
#if defined(__F16C__) && defined(__AVX__)
#include <immintrin.h>
#endif

namespace ptx {

template <class To, class From>
inline To bit_cast(From from) {
  static_assert(sizeof(To) == sizeof(From), "same size");
  To to;
  std::memcpy(&to, &from, sizeof to);
  return to;
}

// Rounds a double to float so that a later rounding to fewer bits is the rounding of the double (round to odd).
inline float round_to_odd(double d) {
  float f = static_cast<float>(d);
  if (static_cast<double>(f) == d || f != f || std::isinf(f)) return f;
  uint32_t bits = bit_cast<uint32_t>(f);
  if (bits & 1) return f;
  bits += std::fabs(static_cast<double>(f)) < std::fabs(d) ? 1 : -1;
  return bit_cast<float>(bits);
}

struct Half {
  static float decode(uint16_t h) {
#if defined(__F16C__)
    return _cvtsh_ss(h);
#else
    uint32_t sign = static_cast<uint32_t>(h & 0x8000) << 16, exponent = h >> 10 & 31, fraction = h & 1023;
    if (exponent == 31) return bit_cast<float>(sign | 0x7f800000u | fraction << 13);
    if (exponent == 0) {
      float magnitude = static_cast<float>(fraction) * 0x1p-24f;
      return sign ? -magnitude : magnitude;
    }
    return bit_cast<float>(sign | (exponent + 112) << 23 | fraction << 13);
#endif
  }
  static uint16_t encode(float f) {
#if defined(__F16C__)
    return f == f ? _cvtss_sh(f, _MM_FROUND_TO_NEAREST_INT) : 0x7fff;
#else
    uint32_t bits = bit_cast<uint32_t>(f), sign = bits >> 16 & 0x8000, magnitude = bits & 0x7fffffff;
    if (magnitude > 0x7f800000) return 0x7fff;
    if (magnitude >= 0x477ff000) return static_cast<uint16_t>(sign | 0x7c00);
    if (magnitude < 0x38800000) {  // subnormal half: let an addition do the rounding
      float scaled = bit_cast<float>(magnitude) + 0.5f;
      return static_cast<uint16_t>(sign | (bit_cast<uint32_t>(scaled) - 0x3f000000));
    }
    uint32_t rounded = magnitude - 0x38000000 + 0xfff + (magnitude >> 13 & 1);
    return static_cast<uint16_t>(sign | rounded >> 13);
#endif
  }
  static uint16_t encode_toward_zero(float f) {
    uint16_t h = encode(f);
    return std::fabs(decode(h)) > std::fabs(f) ? h - 1 : h;
  }
};

struct Bfloat {
  static float decode(uint16_t b) { return bit_cast<float>(static_cast<uint32_t>(b) << 16); }
  static uint16_t encode(float f) {
    uint32_t bits = bit_cast<uint32_t>(f);
    if ((bits & 0x7fffffff) > 0x7f800000) return 0x7fff;
    return static_cast<uint16_t>((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
  }
  static uint16_t encode_toward_zero(float f) {
    uint32_t bits = bit_cast<uint32_t>(f);
    return (bits & 0x7fffffff) > 0x7f800000 ? 0x7fff : static_cast<uint16_t>(bits >> 16);
  }
};

// Directed rounding of a value that float or double holds exactly: the nearest encoding, stepped back where it went too far.
template <class H, bool UP, class Value>
inline uint16_t encode_directed(Value exact, uint16_t nearest) {
  const auto found = static_cast<Value>(H::decode(nearest));
  if (!(UP ? found < exact : found > exact)) return nearest;
  if ((nearest & 0x7fff) == 0) return UP ? 0x0001 : 0x8001;
  return (nearest & 0x8000) != 0 ? static_cast<uint16_t>(nearest + (UP ? -1 : 1)) : static_cast<uint16_t>(nearest + (UP ? 1 : -1));
}

// 8-bit floats: E exponent bits, M mantissa bits. e4m3 has no infinity (0x7f is NaN), e5m2 is a short half.
template <int E, int M>
struct Float8 {
  static constexpr bool HAS_INFINITY = E == 5;
  static constexpr int BIAS = (1 << (E - 1)) - 1;
  static float decode(uint8_t v) {
    int exponent = v >> M & ((1 << E) - 1), fraction = v & ((1 << M) - 1);
    float magnitude;
    if (HAS_INFINITY && exponent == (1 << E) - 1) magnitude = fraction ? NAN : INFINITY;
    else if (!HAS_INFINITY && (v & 0x7f) == 0x7f) magnitude = NAN;
    else if (exponent == 0) magnitude = std::ldexp(static_cast<float>(fraction), 1 - BIAS - M);
    else magnitude = std::ldexp(static_cast<float>(fraction + (1 << M)), exponent - BIAS - M);
    return v & 0x80 ? -magnitude : magnitude;
  }
  // Round to nearest even, saturating to the largest finite value.
  static uint8_t encode(float f) {
    uint8_t sign = std::signbit(f) ? 0x80 : 0;
    if (f != f) return HAS_INFINITY ? 0x7f : static_cast<uint8_t>(sign | 0x7f);
    const uint8_t largest = HAS_INFINITY ? 0x7b : 0x7e;
    float magnitude = std::fabs(f);
    if (magnitude >= decode(largest)) return sign | largest;
    int exponent;
    std::frexp(magnitude, &exponent);
    int scale = exponent - 1 < 1 - BIAS ? 1 - BIAS - M : exponent - 1 - M;
    int steps = static_cast<int>(std::nearbyint(std::ldexp(magnitude, -scale)));
    int biased = scale + M + BIAS;
    if (steps >= 2 << M) { steps >>= 1; biased++; }
    uint8_t code = steps < (1 << M) ? static_cast<uint8_t>(steps) : static_cast<uint8_t>(biased << M | (steps - (1 << M)));
    return sign | (code > largest ? largest : code);
  }
};

}  // namespace ptx

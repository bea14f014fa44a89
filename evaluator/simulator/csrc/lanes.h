// Lane-wise operations: a function over 32 lanes is made from a scalar functor and lane types.
#pragma once
#include <cfenv>
#include <string>
#include <type_traits>
#include <vector>

#include "half.h"
#include "machine.h"
#if defined(__AVX2__)
#include <immintrin.h>
#endif

namespace ptx {

// d, a, b, c point at 32 lanes (predicates: at one mask). All lanes are computed; the caller keeps the active ones.
using LaneFunction = void (*)(void* d, const void* a, const void* b, const void* c, int64_t imm);

enum class LaneKind : int32_t { WORD, DOUBLE_WORD, PREDICATE };

// What the run loop needs of an operation, and what the front end needs.
struct AluOp {
  LaneFunction function;
  FloatMode mode;
  LaneKind destination;
};
struct AluName {
  std::string name;   // PTX opcode with its modifiers in PTX order, e.g. "add.ftz.f32"
  std::string types;  // "d:a,b,c" in the lane types below
};

// Lane types: how a register lane is read and written as a value.
template <class V, class S>
struct Plain {
  using value = V;
  using storage = S;
  static V load(S s) { return bit_cast<V>(s); }
  static S store(V v) { return bit_cast<S>(v); }
};
struct U32 : Plain<uint32_t, uint32_t> { static constexpr const char* name = "u32"; };
struct S32 : Plain<int32_t, uint32_t> { static constexpr const char* name = "s32"; };
struct F32 : Plain<float, uint32_t> { static constexpr const char* name = "f32"; };
struct U64 : Plain<uint64_t, uint64_t> { static constexpr const char* name = "u64"; };
struct S64 : Plain<int64_t, uint64_t> { static constexpr const char* name = "s64"; };
struct F64 : Plain<double, uint64_t> { static constexpr const char* name = "f64"; };

template <class V>
struct Narrow {  // 8- and 16-bit integers live in 32-bit lanes, upper bits undefined on input and zero on output
  using value = V;
  using storage = uint32_t;
  static V load(uint32_t s) { return static_cast<V>(s); }
  static uint32_t store(V v) { return static_cast<std::make_unsigned_t<V>>(v); }
};
struct U16 : Narrow<uint16_t> { static constexpr const char* name = "u16"; };
struct S16 : Narrow<int16_t> { static constexpr const char* name = "s16"; };
struct U8 : Narrow<uint8_t> { static constexpr const char* name = "u8"; };
struct S8 : Narrow<int8_t> { static constexpr const char* name = "s8"; };

template <class H>
struct SmallFloat {
  using value = float;
  using storage = uint32_t;
  static float load(uint32_t s) { return H::decode(static_cast<uint16_t>(s)); }
  static uint32_t store(float v) { return H::encode(v); }
};
struct F16 : SmallFloat<Half> { static constexpr const char* name = "f16"; };
struct BF16 : SmallFloat<Bfloat> { static constexpr const char* name = "bf16"; };

struct Pred {
  using value = bool;
  static constexpr const char* name = "pred";
};

template <class T>
struct Reader {
  const typename T::storage* lanes;
  explicit Reader(const void* p) : lanes(static_cast<const typename T::storage*>(p)) {}
  typename T::value operator[](int l) const { return T::load(lanes[l]); }
};
template <>
struct Reader<Pred> {
  uint32_t mask;
  explicit Reader(const void* p) : mask(*static_cast<const uint32_t*>(p)) {}
  bool operator[](int l) const { return mask >> l & 1; }
};

inline uint32_t pack_mask(const uint32_t* flags) {  // flags: 0 or ~0
  uint32_t mask = 0;
#if defined(__AVX2__)
  for (int i = 0; i < 4; i++) {
    __m256 part = _mm256_castsi256_ps(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(flags + 8 * i)));
    mask |= static_cast<uint32_t>(_mm256_movemask_ps(part)) << (8 * i);
  }
#else
  for (int l = 0; l < 32; l++) mask |= (flags[l] & 1u) << l;
#endif
  return mask;
}

template <class D, class Each>
inline void for_each_lane(void* d, Each each) {
  if constexpr (std::is_same_v<D, Pred>) {
    uint32_t flags[32];
#pragma GCC ivdep
    for (int l = 0; l < 32; l++) flags[l] = each(l) ? ~0u : 0u;
    *static_cast<uint32_t*>(d) = pack_mask(flags);
  } else {
    auto* out = static_cast<typename D::storage*>(d);
#pragma GCC ivdep
    for (int l = 0; l < 32; l++) out[l] = D::store(static_cast<typename D::value>(each(l)));
  }
}

template <class F, class D, class A>
void unary(void* d, const void* a, const void*, const void*, int64_t) {
  Reader<A> x(a);
  for_each_lane<D>(d, [&](int l) { return F{}(x[l]); });
}
template <class F, class D, class A, class B>
void binary(void* d, const void* a, const void* b, const void*, int64_t) {
  Reader<A> x(a);
  Reader<B> y(b);
  for_each_lane<D>(d, [&](int l) { return F{}(x[l], y[l]); });
}
template <class F, class = void>
struct TakesImmediate : std::false_type {};
template <class F>
struct TakesImmediate<F, std::void_t<typename F::takes_immediate>> : std::true_type {};

template <class F, class D, class A, class B, class C>
void ternary(void* d, const void* a, const void* b, const void* c, [[maybe_unused]] int64_t imm) {
  Reader<A> x(a);
  Reader<B> y(b);
  Reader<C> z(c);
  if constexpr (TakesImmediate<F>::value)
    for_each_lane<D>(d, [&](int l) { return F{}(x[l], y[l], z[l], imm); });
  else
    for_each_lane<D>(d, [&](int l) { return F{}(x[l], y[l], z[l]); });
}

template <class F, class D, class... S>
constexpr LaneFunction lane_function() {
  static_assert(sizeof...(S) >= 1 && sizeof...(S) <= 3, "one to three operands");
  if constexpr (sizeof...(S) == 1) return unary<F, D, S...>;
  else if constexpr (sizeof...(S) == 2) return binary<F, D, S...>;
  else return ternary<F, D, S...>;
}

// The same under a directed rounding mode. The operands are read after the switch and the results stored before it ends.
template <int R, class F, class D, class... S>
void rounded(void* d, const void* a, const void* b, const void* c, int64_t imm) {
  const int before = fegetround();
  fesetround(R);
  lane_function<F, D, S...>()(d, a, b, c, imm);
  fesetround(before);
}

class AluTable {
 public:
  std::vector<AluOp> ops;
  std::vector<AluName> names;

  template <class F, class D, class... S>
  void add(const std::string& name, FloatMode mode = FloatMode::ANY) {
    add_function<D, S...>(name, lane_function<F, D, S...>(), mode);
  }
  template <int R, class F, class D, class... S>
  void add_rounded(const std::string& name, FloatMode mode) {
    add_function<D, S...>(name, rounded<R, F, D, S...>, mode);
  }

 private:
  template <class D, class... S>
  void add_function(const std::string& name, LaneFunction function, FloatMode mode) {
    std::string types = D::name;
    const char* separator = ":";
    ((types += separator, types += S::name, separator = ","), ...);
    LaneKind kind = LaneKind::PREDICATE;
    if constexpr (!std::is_same_v<D, Pred>)
      kind = sizeof(typename D::storage) == 8 ? LaneKind::DOUBLE_WORD : LaneKind::WORD;
    ops.push_back({function, mode, kind});
    names.push_back({name, types});
  }
};

void add_integer_ops(AluTable&);
void add_float_ops(AluTable&);
void add_half_ops(AluTable&);
void add_conversion_ops(AluTable&);
void add_comparison_ops(AluTable&);

const AluTable& alu_table();  // all of them; the index is the opcode

}  // namespace ptx

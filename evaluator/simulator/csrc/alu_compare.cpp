// setp and set: comparisons of every type, ordered and unordered.
#include "float_math.h"
#include "lanes.h"

namespace ptx {
namespace {

struct Equal { template <class T> bool operator()(T a, T b) const { return a == b; } };
struct Different { template <class T> bool operator()(T a, T b) const { return a != b; } };
struct Less { template <class T> bool operator()(T a, T b) const { return a < b; } };
struct LessEqual { template <class T> bool operator()(T a, T b) const { return a <= b; } };
struct Greater { template <class T> bool operator()(T a, T b) const { return a > b; } };
struct GreaterEqual { template <class T> bool operator()(T a, T b) const { return a >= b; } };

struct OrderedDifferent { template <class T> bool operator()(T a, T b) const { return (a < b) | (a > b); } };
struct Unordered { template <class T> bool operator()(T a, T b) const { return (a != a) | (b != b); } };
struct Ordered { template <class T> bool operator()(T a, T b) const { return (a == a) & (b == b); } };
template <class F> struct OrUnordered { template <class T> bool operator()(T a, T b) const {
  return F{}(a, b) | Unordered{}(a, b);
} };

// set writes a value instead of a predicate: all ones, 1.0 in f32, or per half of a pair.
struct AsOnes { static uint32_t yes() { return 0xffffffffu; } };
struct AsFloat { static uint32_t yes() { return 0x3f800000u; } };
template <class F, class R> struct SetWord { template <class T> uint32_t operator()(T a, T b) const { return F{}(a, b) ? R::yes() : 0; } };
template <class F, class H, uint32_t YES> struct SetPair { uint32_t operator()(uint32_t a, uint32_t b) const {
  uint32_t low = F{}(H::decode(static_cast<uint16_t>(a)), H::decode(static_cast<uint16_t>(b))) ? YES : 0;
  uint32_t high = F{}(H::decode(static_cast<uint16_t>(a >> 16)), H::decode(static_cast<uint16_t>(b >> 16))) ? YES : 0;
  return low | high << 16;
} };

template <class F, class T>
void compare(AluTable& table, const std::string& name, const std::string& ftz, const std::string& type, FloatMode mode) {
  table.add<F, Pred, T, T>("setp." + name + ftz + "." + type, mode);
  if constexpr (std::is_integral_v<typename T::value>) return;  // set compares floats in what NVRTC emits
  table.add<SetWord<F, AsOnes>, U32, T, T>("set." + name + ftz + ".u32." + type, mode);
  table.add<SetWord<F, AsOnes>, U32, T, T>("set." + name + ftz + ".s32." + type, mode);
  table.add<SetWord<F, AsFloat>, U32, T, T>("set." + name + ftz + ".f32." + type, mode);
}

template <class F, class T>
void compare_halves(AluTable& table, const std::string& name, const std::string& type) {
  struct One { static uint32_t yes() { return std::is_same_v<T, F16> ? 0x3c00 : 0x3f80; } };
  table.add<SetWord<F, One>, U32, T, T>("set." + name + "." + type + "." + type, FloatMode::KEEP_SUBNORMALS);
}

template <class F, class H>
void compare_pairs(AluTable& table, const std::string& name, const std::string& type) {
  constexpr uint32_t one = std::is_same_v<H, Half> ? 0x3c00 : 0x3f80;
  table.add<SetPair<F, H, one>, U32, U32, U32>("set." + name + "." + type + "." + type, FloatMode::KEEP_SUBNORMALS);
  compare_halves<F, std::conditional_t<std::is_same_v<H, Half>, F16, BF16>>(table, name, type.substr(0, type.size() - 2));
  table.add<SetPair<F, H, 0xffff>, U32, U32, U32>("set." + name + ".u32." + type, FloatMode::KEEP_SUBNORMALS);
}

template <class T>
void integer_comparisons(AluTable& table, const std::string& type) {
  compare<Equal, T>(table, "eq", "", type, FloatMode::ANY);
  compare<Different, T>(table, "ne", "", type, FloatMode::ANY);
  compare<Less, T>(table, "lt", "", type, FloatMode::ANY);
  compare<LessEqual, T>(table, "le", "", type, FloatMode::ANY);
  compare<Greater, T>(table, "gt", "", type, FloatMode::ANY);
  compare<GreaterEqual, T>(table, "ge", "", type, FloatMode::ANY);
  if (type[0] == 's') return;
  compare<Less, T>(table, "lo", "", type, FloatMode::ANY);
  compare<LessEqual, T>(table, "ls", "", type, FloatMode::ANY);
  compare<Greater, T>(table, "hi", "", type, FloatMode::ANY);
  compare<GreaterEqual, T>(table, "hs", "", type, FloatMode::ANY);
}

template <class T>
void float_comparisons(AluTable& table, const std::string& ftz, const std::string& type, FloatMode mode) {
  compare<Equal, T>(table, "eq", ftz, type, mode);
  compare<OrderedDifferent, T>(table, "ne", ftz, type, mode);
  compare<Less, T>(table, "lt", ftz, type, mode);
  compare<LessEqual, T>(table, "le", ftz, type, mode);
  compare<Greater, T>(table, "gt", ftz, type, mode);
  compare<GreaterEqual, T>(table, "ge", ftz, type, mode);
  compare<OrUnordered<Equal>, T>(table, "equ", ftz, type, mode);
  compare<OrUnordered<OrderedDifferent>, T>(table, "neu", ftz, type, mode);
  compare<OrUnordered<Less>, T>(table, "ltu", ftz, type, mode);
  compare<OrUnordered<LessEqual>, T>(table, "leu", ftz, type, mode);
  compare<OrUnordered<Greater>, T>(table, "gtu", ftz, type, mode);
  compare<OrUnordered<GreaterEqual>, T>(table, "geu", ftz, type, mode);
  compare<Ordered, T>(table, "num", ftz, type, mode);
  compare<Unordered, T>(table, "nan", ftz, type, mode);
}

template <class H>
void pair_comparisons(AluTable& table, const std::string& type) {
  compare_pairs<Equal, H>(table, "eq", type);
  compare_pairs<OrderedDifferent, H>(table, "ne", type);
  compare_pairs<Less, H>(table, "lt", type);
  compare_pairs<LessEqual, H>(table, "le", type);
  compare_pairs<Greater, H>(table, "gt", type);
  compare_pairs<GreaterEqual, H>(table, "ge", type);
  compare_pairs<OrUnordered<Equal>, H>(table, "equ", type);
  compare_pairs<OrUnordered<OrderedDifferent>, H>(table, "neu", type);
  compare_pairs<OrUnordered<Less>, H>(table, "ltu", type);
  compare_pairs<OrUnordered<LessEqual>, H>(table, "leu", type);
  compare_pairs<OrUnordered<Greater>, H>(table, "gtu", type);
  compare_pairs<OrUnordered<GreaterEqual>, H>(table, "geu", type);
  compare_pairs<Unordered, H>(table, "nan", type);
  compare_pairs<Ordered, H>(table, "num", type);
}

}  // namespace

void add_comparison_ops(AluTable& table) {
  for (const char* type : {"b16", "u16"}) integer_comparisons<U16>(table, type);
  for (const char* type : {"b32", "u32"}) integer_comparisons<U32>(table, type);
  for (const char* type : {"b64", "u64"}) integer_comparisons<U64>(table, type);
  integer_comparisons<S16>(table, "s16");
  integer_comparisons<S32>(table, "s32");
  integer_comparisons<S64>(table, "s64");
  float_comparisons<F32>(table, "", "f32", FloatMode::KEEP_SUBNORMALS);
  float_comparisons<F32>(table, ".ftz", "f32", FloatMode::FLUSH_SUBNORMALS);
  float_comparisons<F64>(table, "", "f64", FloatMode::KEEP_SUBNORMALS);
  float_comparisons<F16>(table, "", "f16", FloatMode::ANY);
  float_comparisons<BF16>(table, "", "bf16", FloatMode::KEEP_SUBNORMALS);
  pair_comparisons<Half>(table, "f16x2");
  pair_comparisons<Bfloat>(table, "bf16x2");
}

}  // namespace ptx

// f32 and f64 arithmetic with its rounding, .ftz and .sat forms.
#include "float_math.h"
#include "lanes.h"

namespace ptx {
namespace {

constexpr FloatMode KEEP = FloatMode::KEEP_SUBNORMALS, FLUSH = FloatMode::FLUSH_SUBNORMALS, ANY = FloatMode::ANY;

// name.rnd[.ftz][.sat].type in every rounding; without a rounding modifier it is .rn.
template <class F, class T, class... S>
void rounded_ops(AluTable& table, const std::string& name, const std::string& type, FloatMode mode, const std::string& ftz) {
  for (const char* nearest : {"", ".rn"}) {
    table.add<F, T, S...>(name + nearest + ftz + "." + type, mode);
    if constexpr (std::is_same_v<T, F32>)
      table.add<Saturated<F>, T, S...>(name + nearest + ftz + ".sat." + type, mode);
  }
  table.add_rounded<FE_TOWARDZERO, F, T, S...>(name + ".rz" + ftz + "." + type, mode);
  table.add_rounded<FE_DOWNWARD, F, T, S...>(name + ".rm" + ftz + "." + type, mode);
  table.add_rounded<FE_UPWARD, F, T, S...>(name + ".rp" + ftz + "." + type, mode);
  if constexpr (std::is_same_v<T, F32>)
    table.add_rounded<FE_TOWARDZERO, Saturated<F>, T, S...>(name + ".rz" + ftz + ".sat." + type, mode);
}

template <class T>
void arithmetic(AluTable& table, const std::string& type, FloatMode mode, const std::string& ftz) {
  rounded_ops<FloatAdd, T, T, T>(table, "add", type, mode, ftz);
  rounded_ops<FloatSub, T, T, T>(table, "sub", type, mode, ftz);
  rounded_ops<FloatMul, T, T, T>(table, "mul", type, mode, ftz);
  rounded_ops<FloatFma, T, T, T, T>(table, "fma", type, mode, ftz);
  rounded_ops<FloatFma, T, T, T, T>(table, "mad", type, mode, ftz);
  rounded_ops<FloatDiv, T, T, T>(table, "div", type, mode, ftz);
  rounded_ops<FloatReciprocal, T, T>(table, "rcp", type, mode, ftz);
  rounded_ops<FloatSqrt, T, T>(table, "sqrt", type, mode, ftz);
  table.add<FloatReciprocal, T, T>("rcp.approx" + ftz + "." + type, mode);
  table.add<FloatReciprocalSqrt, T, T>("rsqrt.approx" + ftz + "." + type, mode);
}

void approximations(AluTable& table, FloatMode mode, const std::string& ftz) {
  table.add<FloatDiv, F32, F32, F32>("div.full" + ftz + ".f32", mode);
  table.add<FloatDiv, F32, F32, F32>("div.approx" + ftz + ".f32", mode);
  table.add<FloatSqrt, F32, F32>("sqrt.approx" + ftz + ".f32", mode);
  table.add<Exp2, F32, F32>("ex2.approx" + ftz + ".f32", mode);
  table.add<Log2, F32, F32>("lg2.approx" + ftz + ".f32", mode);
  table.add<Sine, F32, F32>("sin.approx" + ftz + ".f32", mode);
  table.add<Cosine, F32, F32>("cos.approx" + ftz + ".f32", mode);
}

// Selection and sign operations move bits; .ftz flushes what comes out.
template <template <class> class Flush>
void selection(AluTable& table, const std::string& ftz) {
  table.add<Flush<FloatMin>, F32, F32, F32>("min" + ftz + ".f32", ANY);
  table.add<Flush<FloatMax>, F32, F32, F32>("max" + ftz + ".f32", ANY);
  table.add<Flush<NanWins<FloatMin>>, F32, F32, F32>("min" + ftz + ".NaN.f32", ANY);
  table.add<Flush<NanWins<FloatMax>>, F32, F32, F32>("max" + ftz + ".NaN.f32", ANY);
  table.add<Flush<XorSignAbs<FloatMin>>, F32, F32, F32>("min" + ftz + ".xorsign.abs.f32", ANY);
  table.add<Flush<XorSignAbs<FloatMax>>, F32, F32, F32>("max" + ftz + ".xorsign.abs.f32", ANY);
  table.add<Flush<FloatNeg>, F32, F32>("neg" + ftz + ".f32", ANY);
  table.add<Flush<FloatAbs>, F32, F32>("abs" + ftz + ".f32", ANY);
}
template <class F> using Unchanged = F;

enum TestClass { FINITE, INFINITE, NUMBER, NOT_A_NUMBER, NORMAL, SUBNORMAL };
template <TestClass K> struct Test { template <class T> bool operator()(T a) const {
  switch (K) {
    case FINITE: return std::isfinite(a);
    case INFINITE: return std::isinf(a);
    case NUMBER: return !(a != a);
    case NOT_A_NUMBER: return a != a;
    case NORMAL: return std::isnormal(a);
    default: return std::fpclassify(a) == FP_SUBNORMAL;
  }
} };

template <class T>
void tests(AluTable& table, const std::string& type) {
  table.add<Test<FINITE>, Pred, T>("testp.finite." + type, KEEP);
  table.add<Test<INFINITE>, Pred, T>("testp.infinite." + type, KEEP);
  table.add<Test<NUMBER>, Pred, T>("testp.number." + type, KEEP);
  table.add<Test<NOT_A_NUMBER>, Pred, T>("testp.notanumber." + type, KEEP);
  table.add<Test<NORMAL>, Pred, T>("testp.normal." + type, KEEP);
  table.add<Test<SUBNORMAL>, Pred, T>("testp.subnormal." + type, KEEP);
}

// rcp/rsqrt.approx.ftz.f64 look at the upper word only and leave the lower word zero; libm's division starts from them.
template <class F> struct UpperWord { double operator()(double a) const {
  return bit_cast<double>(bit_cast<uint64_t>(F{}(a)) & 0xffffffff00000000ull);
} };

}  // namespace

void add_float_ops(AluTable& table) {
  arithmetic<F32>(table, "f32", KEEP, "");
  arithmetic<F32>(table, "f32", FLUSH, ".ftz");
  arithmetic<F64>(table, "f64", KEEP, "");
  approximations(table, KEEP, "");
  approximations(table, FLUSH, ".ftz");
  table.add<HyperbolicTangent, F32, F32>("tanh.approx.f32", KEEP);
  selection<Unchanged>(table, "");
  selection<FlushResult>(table, ".ftz");
  table.add<FloatMin, F64, F64, F64>("min.f64", KEEP);
  table.add<FloatMax, F64, F64, F64>("max.f64", KEEP);
  table.add<FloatNeg, F64, F64>("neg.f64", ANY);
  table.add<FloatAbs, F64, F64>("abs.f64", ANY);
  table.add<FloatCopySign, F32, F32, F32>("copysign.f32", ANY);
  table.add<FloatCopySign, F64, F64, F64>("copysign.f64", ANY);
  table.add<UpperWord<FloatReciprocal>, F64, F64>("rcp.approx.ftz.f64", KEEP);
  table.add<UpperWord<FloatReciprocalSqrt>, F64, F64>("rsqrt.approx.ftz.f64", KEEP);
  tests<F32>(table, "f32");
  tests<F64>(table, "f64");
}

}  // namespace ptx

// Switches the host's subnormal handling to what the next f32 operation asks for; stays there until another asks otherwise.
#pragma once
#include "machine.h"
#if defined(__SSE2__)
#include <immintrin.h>
#endif

namespace ptx {

inline void set_flush_to_zero(bool on) {
#if defined(__SSE2__)
  constexpr unsigned FTZ_AND_DAZ = 0x8040;
  unsigned control = _mm_getcsr();
  _mm_setcsr(on ? control | FTZ_AND_DAZ : control & ~FTZ_AND_DAZ);
#elif defined(__aarch64__)
  uint64_t control;
  asm volatile("mrs %0, fpcr" : "=r"(control));
  constexpr uint64_t FLUSH = 1ull << 24;
  control = on ? control | FLUSH : control & ~FLUSH;
  asm volatile("msr fpcr, %0" ::"r"(control));
#else
#error "no subnormal control for this CPU: add it to float_mode.h"
#endif
  asm volatile("" ::: "memory");
}

inline void enter_float_mode(Worker& worker, FloatMode mode) {
  if (mode == FloatMode::ANY || mode == worker.float_mode) return;
  set_flush_to_zero(mode == FloatMode::FLUSH_SUBNORMALS);
  worker.float_mode = mode;
}

// Gives the thread back as it was found.
class FloatModeScope {
 public:
  explicit FloatModeScope(Worker& worker) : worker_(worker) {
    set_flush_to_zero(false);
    worker_.float_mode = FloatMode::KEEP_SUBNORMALS;
  }
  ~FloatModeScope() {
    set_flush_to_zero(false);
    worker_.float_mode = FloatMode::ANY;
  }
  FloatModeScope(const FloatModeScope&) = delete;
  FloatModeScope& operator=(const FloatModeScope&) = delete;

 private:
  Worker& worker_;
};

}  // namespace ptx

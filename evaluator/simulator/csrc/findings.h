// What the checks report. A fatal finding ends the launch by an exception; the others are collected, one per kind and place.
#pragma once
#include <cstdint>
#include <cstdio>
#include <vector>

namespace ptx {

struct Warp;

#define PTX_FINDING_KINDS(X)                                                                                              \
  X(out_of_bounds) X(misaligned) X(null_pointer) X(shared_race) X(uninitialised_shared) X(divergent_barrier) X(deadlock) \
  X(runaway) X(shuffle_outside_mask) X(unsupported) X(trap)

enum class FindingKind : int32_t {
#define X(name) name,
  PTX_FINDING_KINDS(X)
#undef X
};

// `buffer` and `offset` are set for global accesses: the nearest buffer (-1: none near) and the first byte relative to it.
struct Finding {
  FindingKind kind;
  int32_t error;      // 0: warning
  int32_t pc, line;
  uint32_t block[3], thread[3];
  uint64_t block_index;
  int32_t buffer, reserved;
  int64_t offset;
  char text[200];
};
static_assert(sizeof(Finding) == 264, "read by Python as a ctypes structure");

struct Fatal {
  Finding finding;
};

// Findings that do not stop the launch, one for each kind and instruction: the first in block order that this worker saw.
struct FindingLog {
  std::vector<Finding> entries;

  bool has(FindingKind kind, int pc) const {
    for (const Finding& f : entries)
      if (f.kind == kind && f.pc == pc) return true;
    return false;
  }
};

// Where `lane` of `w` is, as a finding without kind and text.
Finding finding_at(const Warp& w, int pc, int lane);

template <class... Args>
inline void set_text(Finding& f, const char* format, Args... args) {
  std::snprintf(f.text, sizeof f.text, format, args...);
}

}  // namespace ptx

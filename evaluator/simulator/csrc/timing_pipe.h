// A resource of limited throughput that requests use out of order: capacity by time window.
#pragma once
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace timing {

class CapacityLine {
 public:
  double busy = 0;

  // Takes `amount` cycles of work at `time` or as soon after as there is room; returns when the work is done.
  double take(double time, double amount) {
    busy += amount;
    if (amount <= 0) return time;
    size_t window = first_open(static_cast<size_t>(time / WINDOW));
    for (;;) {
      double part = std::min(WINDOW - used_[window], amount);
      used_[window] += part;
      amount -= part;
      bool full = used_[window] >= WINDOW - 1e-3;
      if (full) next_[window] = static_cast<uint32_t>(window + 1);
      if (!full || amount <= 1e-6) return std::max(time, window * WINDOW + (full ? WINDOW : used_[window]));
      window = first_open(window + 1);
    }
  }

 private:
  static constexpr double WINDOW = 16;
  std::vector<double> used_;
  std::vector<uint32_t> next_;  // itself while there is room; else towards the next window that has some

  size_t first_open(size_t window) {
    if (window + 2 >= used_.size()) grow(window);
    size_t open = window;
    while (next_[open] != open) {
      open = next_[open];
      if (open + 2 >= used_.size()) grow(open);
    }
    while (next_[window] != open && window != open) {  // path compression
      size_t following = next_[window];
      next_[window] = static_cast<uint32_t>(open);
      window = following;
    }
    return open;
  }

  void grow(size_t window) {
    size_t old = used_.size();
    used_.resize(window * 2 + 1024, 0.0);
    next_.resize(used_.size());
    for (size_t i = old; i < next_.size(); i++) next_[i] = static_cast<uint32_t>(i);
  }
};

}  // namespace timing

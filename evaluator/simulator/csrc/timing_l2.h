// What one multiprocessor sees beyond its L1: L2 hits and DRAM fetches by 64-byte granule, and lines that atomics serialise on.
#pragma once
#include <algorithm>
#include <vector>

#include "timing_tables.h"
#include "timing_types.h"

namespace timing {

// A block's first touch of a granule is a DRAM access with the probability that the sharing pass found for the buffer and
// its use (drawn by a hash, so it is the same in every run). Later touches hit L2 until the multiprocessor has brought in more
// than its share of L2 since.
class L2View {
 public:
  L2View(double share_granules, const float* dram_share, int slots)
      : share_granules_(share_granules), dram_share_(dram_share), dram_granules_(slots) {}

  // Whether `sector` must come from DRAM. `touched`: granules that the block has used so.
  bool misses(uint64_t sector, int slot, uint64_t block, Table<char>& touched) {
    uint64_t granule = sector >> 1;
    bool first, unseen;
    touched.at(granule * USES + slot % USES, first);
    double& last = last_use_.at(granule >> 1, unseen);
    bool evicted = !unseen && traffic_ - last > share_granules_;
    bool miss = first ? drawn(granule, block) < dram_share_[slot] : evicted;
    if (first && (unseen || evicted)) traffic_ += dram_share_[slot];
    last = traffic_;
    if (miss) dram_granules_[slot]++;
    return miss;
  }

  const std::vector<double>& dram_granules() const { return dram_granules_; }

 private:
  double share_granules_;
  const float* dram_share_;
  std::vector<double> dram_granules_;  // by slot
  Table<double> last_use_;             // by line: traffic when it was last used
  double traffic_ = 0;                 // granules brought into L2 so far

  static double drawn(uint64_t granule, uint64_t block) {
    uint64_t bits = mix(granule * 0x9E3779B97F4A7C15ull ^ (block + 1) * 0x94D049BB133111EBull);
    return static_cast<double>(bits >> 11) * 0x1p-53;
  }
};

// Atomics on one 128-byte line are performed one after the other. Keeps each line's time and how often blocks use it.
class HotLines {
 public:
  void add(uint64_t line, int slot, uint64_t block, double ns) {
    bool fresh;
    Line& l = lines_.at(line, fresh);
    l.ns += ns;
    if (fresh || l.last_block != block) l.visits++;
    l.last_block = block;
    l.slot = slot;
  }

  // By slot: the most time that one block's visit of a line takes.
  void visit_ns(double* by_slot) const {
    lines_.each([&](uint64_t, const Line& l) { by_slot[l.slot] = std::max(by_slot[l.slot], l.ns / l.visits); });
  }

 private:
  struct Line {
    double ns = 0, visits = 0;
    uint64_t last_block = 0;
    int slot = 0;
  };
  Table<Line> lines_;
};

}  // namespace timing

// Addresses as the device would see them, what one warp access touches, and the L1 cache.
#pragma once
#include <algorithm>
#include <vector>

#include "machine.h"
#include "timing_types.h"

namespace timing {

// Places every buffer at a fixed virtual address, so that no result depends on where the host allocated it.
class AddressMap {
 public:
  explicit AddressMap(const ptx::Launch& launch) : launch_(launch) {
    std::vector<const ptx::Buffer*> by_id(launch.buffer_count);
    for (int i = 0; i < launch.buffer_count; i++) by_id[i] = &launch.buffers[i];
    std::sort(by_id.begin(), by_id.end(), [](auto* a, auto* b) { return a->id < b->id; });
    bases_.resize(launch.buffer_count);
    uint64_t next = uint64_t{1} << 40;
    for (const ptx::Buffer* b : by_id) {
      bases_[b - launch.buffers] = next;
      next += ((b->end - b->begin) | (SEGMENT - 1)) + 1 + SEGMENT;
    }
  }

  // Index into Launch::buffers; -1: none holds it.
  int buffer_of(uint64_t address) {
    if (holds(last_, address)) return last_;
    for (int i = 0; i < launch_.buffer_count; i++)
      if (holds(i, address)) return last_ = i;
    return -1;
  }

  uint64_t device_address(int buffer, uint64_t address) const { return bases_[buffer] + (address - launch_.buffers[buffer].begin); }
  int id(int buffer) const { return launch_.buffers[buffer].id; }

 private:
  static constexpr uint64_t SEGMENT = uint64_t{2} << 20;
  const ptx::Launch& launch_;
  std::vector<uint64_t> bases_;
  int last_ = 0;

  bool holds(int i, uint64_t address) const {
    return i < launch_.buffer_count && address >= launch_.buffers[i].begin && address < launch_.buffers[i].end;
  }
};

// The distinct sectors of one warp access, ascending.
struct Sectors {
  uint64_t at[128];
  int count = 0, lines = 0;

  Sectors(uint32_t lanes, const uint64_t* addresses, int bytes) {
    bool ascending = true;
    ptx::for_lanes(lanes, [&](int lane) {
      uint64_t last = (addresses[lane] + bytes - 1) >> SECTOR_SHIFT;
      for (uint64_t s = addresses[lane] >> SECTOR_SHIFT; s <= last && count < 128; s++) {
        if (count && at[count - 1] == s) continue;
        ascending &= !count || at[count - 1] < s;
        at[count++] = s;
      }
    });
    if (!ascending) {
      std::sort(at, at + count);
      count = static_cast<int>(std::unique(at, at + count) - at);
    }
    for (int i = 0; i < count; i++) lines += !i || at[i] >> 2 != at[i - 1] >> 2;
  }
};

// L1: 128-byte lines filled by sector, least recently used line of a set goes first; stores write through.
class L1Cache {
 public:
  explicit L1Cache(double bytes) : sets_(std::max(1, static_cast<int>(bytes / 128 / WAYS))), lines_(size_t(sets_) * WAYS) {}

  // When the sector's data is or will be there (a sector on its way is a hit that waits); nullptr: absent, and `allocate` makes
  // room, after which the caller writes the arrival through `arrival`.
  double* find(uint64_t sector, bool allocate) {
    uint64_t tag = sector >> 2, hash = tag ^ (tag >> 9) ^ (tag >> 17);
    Line* set = &lines_[(hash % sets_) * WAYS];
    Line* line = std::find_if(set, set + WAYS, [&](const Line& l) { return l.tag == tag; });
    bool present = line != set + WAYS;
    if (!present) {
      if (!allocate) return nullptr;
      line = std::min_element(set, set + WAYS, [](const Line& a, const Line& b) { return a.used < b.used; });
      *line = Line{};
      line->tag = tag;
    }
    line->used = ++clock_;
    last_ = &line->arrives[sector & 3];
    return *last_ >= 0 ? last_ : nullptr;
  }

  // Of the sector that `find` last made room for.
  void fill(double arrival) { *last_ = arrival; }

 private:
  static constexpr int WAYS = 16;
  struct Line {
    uint64_t tag = ~uint64_t{0}, used = 0;
    double arrives[4] = {-1, -1, -1, -1};  // < 0: not there
  };
  int sets_;
  std::vector<Line> lines_;
  uint64_t clock_ = 0;
  double* last_ = nullptr;
};

// Most lanes that name the same address.
inline int same_address_lanes(uint32_t lanes, const uint64_t* addresses) {
  int most = 0;
  for (uint32_t rest = lanes; rest;) {
    uint64_t address = addresses[ptx::lowest_lane(rest)];
    uint32_t same = 0;
    ptx::for_lanes(rest, [&](int lane) { same |= uint32_t(addresses[lane] == address) << lane; });
    most = std::max(most, __builtin_popcount(same));
    rest &= ~same;
  }
  return most;
}

}  // namespace timing

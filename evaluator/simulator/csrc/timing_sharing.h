// Which granules of which buffers sampled blocks use, and which of them neighbouring blocks have used before.
#pragma once
#include <algorithm>

#include "observer.h"
#include "timing_memory.h"
#include "timing_tables.h"

namespace timing {

// One sample: a block and up to three that precede it, in the grid's x, y and z direction.
enum Neighbour : int { SELF, BEFORE_X, BEFORE_Y, BEFORE_Z, NEIGHBOURS };

// Sums over samples for one slot (buffer and use). "new in x": not used by BEFORE_X; "new in xy": by neither of the two.
#define SHARING_SUMS(X)                                                                                                    \
  X(samples) X(size) X(size_x) X(new_x) X(size_y) X(new_y) X(size_xy) X(new_xy) X(size_z) X(new_z) X(stored_bytes)       \
  X(stored_sectors)
struct SharingSums {
#define X(name) double name;
  SHARING_SUMS(X)
#undef X
};

// Granules (64 bytes) and pages (chunks of DRAM that are cheap to use together) are followed alike.
constexpr int GRANULE_LEVEL = 0, PAGE_LEVEL = 1, LEVELS = 2, PAGE_SHIFT = 9;
constexpr int MOST_SHARERS = 32;

class SharingRecorder : public ptx::NullObserver {
 public:
  static constexpr bool STEPPED = false;
  static constexpr bool COUNTS = false;

  SharingRecorder(const ptx::Launch& launch, int slots)
      : addresses_(launch), slots_(slots), sums_(slots * LEVELS), sharers_(slots * MOST_SHARERS) {}

  // Accesses now belong to this member of the sample.
  void record(Neighbour member) {
    member_ = member;
    for (auto& level : used_) level[member].clear();
    if (member == SELF) stored_.clear();
  }

  void global_access(ptx::Warp&, const ptx::Instruction&, uint32_t lanes, const uint64_t* host, int bytes, ptx::Access access) {
    int buffer = addresses_.buffer_of(host[ptx::lowest_lane(lanes)]);
    if (buffer < 0) return;
    Use use = access == ptx::ACCESS_LOAD ? READ : access == ptx::ACCESS_STORE ? WRITE : UPDATE;
    uint64_t slot = addresses_.id(buffer) * USES + use, previous = ~uint64_t{0};
    ptx::for_lanes(lanes, [&](int lane) {
      uint64_t address = addresses_.device_address(buffer, host[lane]);
      if (member_ == SELF && use != READ) store(address, bytes, slot);
      uint64_t granule = address >> GRANULE_SHIFT;
      if (granule == previous) return;
      previous = granule;
      bool fresh;
      used_[GRANULE_LEVEL][member_].at(granule * slots_ + slot, fresh);
      if (fresh) used_[PAGE_LEVEL][member_].at((address >> PAGE_SHIFT) * slots_ + slot, fresh);
    });
  }

  // Adds the sample up; `present[m]`: neighbour m exists and was run.
  void close_sample(const bool (&present)[NEIGHBOURS]) {
    for (int level = 0; level < LEVELS; level++) {
      used_[level][SELF].each([&](uint64_t key, char) { add(level, key, present); });
      for (uint64_t slot = 0; slot < slots_; slot++) sums_[slot * LEVELS + level].samples++;
    }
    stored_.each([&](uint64_t sector_and_slot, uint32_t mask) {
      SharingSums& s = sums_[sector_and_slot % slots_ * LEVELS];
      s.stored_bytes += __builtin_popcount(mask);
      s.stored_sectors++;
    });
  }

  // How many granules of each slot k samples use, for k up to MOST_SHARERS - 1.
  void close() {
    sharer_count_.each([&](uint64_t key, int k) { sharers_[key % slots_ * MOST_SHARERS + std::min(k, MOST_SHARERS - 1)]++; });
  }

  const std::vector<SharingSums>& sums() const { return sums_; }
  const std::vector<double>& sharers() const { return sharers_; }

 private:
  AddressMap addresses_;
  uint64_t slots_;
  Neighbour member_ = SELF;
  Table<char> used_[LEVELS][NEIGHBOURS];
  Table<uint32_t> stored_;      // sector and slot -> bytes written, as a mask
  Table<int> sharer_count_;
  std::vector<SharingSums> sums_;  // by slot and level
  std::vector<double> sharers_;    // by slot and number of samples

  void store(uint64_t address, int bytes, uint64_t slot) {
    for (uint64_t end = address + bytes; address < end;) {
      uint64_t offset = address & 31, part = std::min<uint64_t>(32 - offset, end - address);
      bool fresh;
      stored_.at((address >> SECTOR_SHIFT) * slots_ + slot, fresh) |= static_cast<uint32_t>(((uint64_t{1} << part) - 1) << offset);
      address += part;
    }
  }

  void add(int level, uint64_t key, const bool (&present)[NEIGHBOURS]) {
    SharingSums& s = sums_[key % slots_ * LEVELS + level];
    auto unused = [&](Neighbour n) { return !used_[level][n].get(key); };
    s.size++;
    if (present[BEFORE_X]) s.size_x++, s.new_x += unused(BEFORE_X);
    if (present[BEFORE_Y]) s.size_y++, s.new_y += unused(BEFORE_Y);
    if (present[BEFORE_X] && present[BEFORE_Y]) s.size_xy++, s.new_xy += unused(BEFORE_X) && unused(BEFORE_Y);
    if (present[BEFORE_Z]) s.size_z++, s.new_z += unused(BEFORE_Z);
    if (level != GRANULE_LEVEL) return;
    bool fresh;
    sharer_count_.at(key, fresh)++;
  }
};

}  // namespace timing

// Sectors of global accesses and wavefronts of shared accesses, one warp instruction at a time.
#pragma once
#include <algorithm>

#include "machine.h"

namespace ptx {

struct SectorCount {
  int sectors, lines;
};

// Distinct 32-byte sectors and 128-byte lines that the lanes touch. `bytes` <= 32 a lane, aligned to itself.
inline SectorCount count_sectors(uint32_t lanes, const uint64_t* addresses, int bytes) {
  if (lanes == ~0u) {
    uint64_t uneven = 0;
    for (int l = 1; l < 32; l++) uneven |= addresses[l] ^ (addresses[0] + static_cast<uint64_t>(l) * bytes);
    if (!uneven) {
      const uint64_t first = addresses[0], last = addresses[31] + bytes - 1;
      return {static_cast<int>((last >> 5) - (first >> 5) + 1), static_cast<int>((last >> 7) - (first >> 7) + 1)};
    }
  }
  uint64_t sectors[64];
  int n = 0;
  bool sorted = true;
  for_lanes(lanes, [&](int l) {
    for (uint64_t s = addresses[l] >> 5; s <= (addresses[l] + bytes - 1) >> 5 && n < 64; s++) {
      if (n && sectors[n - 1] == s) continue;
      if (n && sectors[n - 1] > s) sorted = false;
      sectors[n++] = s;
    }
  });
  if (!sorted) {
    std::sort(sectors, sectors + n);
    n = static_cast<int>(std::unique(sectors, sectors + n) - sectors);
  }
  int lines = n ? 1 : 0;
  for (int i = 1; i < n; i++) lines += sectors[i] >> 2 != sectors[i - 1] >> 2;
  return {n, lines};
}

// Wavefronts of the lanes `group` of one pass: the most distinct words that any bank must deliver.
inline int bank_conflict_degree(uint32_t group, const uint64_t* offsets, int bytes) {
  uint32_t words[32][32];
  uint8_t depth[32] = {};
  int degree = 1;
  for_lanes(group, [&](int l) {
    for (int q = 0; q < std::max(bytes, 4); q += 4) {
      const uint32_t word = static_cast<uint32_t>(offsets[l] + q) >> 2;
      uint32_t* bank = words[word & 31];
      uint8_t& n = depth[word & 31];
      if (std::find(bank, bank + n, word) != bank + n || n == 32) continue;
      bank[n++] = word;
      degree = std::max<int>(degree, n);
    }
  });
  return degree;
}

// The same for a full warp of 4-byte words. Most accesses have no conflict: that is settled with one look at each lane.
inline int word_conflict_degree(const uint32_t* offsets) {
  uint32_t first[32], seen = 0;
  bool clash = false;
  for (int l = 0; l < 32; l++) {
    const uint32_t word = offsets[l] >> 2, bank = word & 31;
    clash |= (seen >> bank & 1) && first[bank] != word;
    first[bank] = seen >> bank & 1 ? first[bank] : word;
    seen |= 1u << bank;
  }
  if (!clash) return 1;
  uint64_t wide[32];
  for (int l = 0; l < 32; l++) wide[l] = offsets[l];
  return bank_conflict_degree(~0u, wide, 4);
}

struct WavefrontCount {
  int wavefronts, ideal;
};

// A warp's shared access goes in one pass (up to 4 bytes a lane) or by half-warps (8 and 16 bytes).
inline WavefrontCount count_wavefronts(uint32_t lanes, const uint64_t* offsets, int bytes) {
  WavefrontCount total{0, 0};
  const int passes = bytes <= 4 ? 1 : 2;
  for (int p = 0; p < passes; p++) {
    const uint32_t group = passes == 1 ? lanes : lanes & (p ? 0xffff0000u : 0x0000ffffu);
    if (!group) continue;
    const int first = lowest_lane(group), ideal = std::max(1, (__builtin_popcount(group) * bytes + 127) / 128);
    uint64_t differs = 0, uneven = 0;
    for_lanes(group, [&](int l) {
      differs |= offsets[l] ^ offsets[first];
      uneven |= offsets[l] ^ (offsets[first] + static_cast<uint64_t>(l - first) * bytes);
    });
    total.ideal += ideal;
    if (!differs) total.wavefronts += 1;
    else if (!uneven && bytes >= 4) total.wavefronts += bytes == 16 ? (__builtin_popcount(group) + 7) / 8 : 1;
    else total.wavefronts += bank_conflict_degree(group, offsets, bytes);
  }
  total.ideal = std::min(total.ideal, total.wavefronts);
  return total;
}

}  // namespace ptx

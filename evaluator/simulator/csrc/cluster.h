// Blocks that run at the same time: thread block clusters, and the whole grid of a cooperative launch.
#pragma once
#include "machine.h"

namespace ptx {

// Blocks that see each other, by rank.
struct Cluster {
  std::vector<Block*> blocks;
};

// A shared address names its block in bits 24 to 31 (rank + 1; 0: the block's own), the offset there below.
constexpr int CLUSTER_RANK_SHIFT = 24;
constexpr uint64_t CLUSTER_OFFSET_MASK = (1ull << CLUSTER_RANK_SHIFT) - 1;

inline Block* block_of_rank(const Warp& w, uint32_t rank) {
  const Cluster* cluster = w.block->cluster;  // without one (a timed pass runs blocks singly) a block is its own neighbour
  return cluster ? cluster->blocks[std::min<size_t>(rank, cluster->blocks.size() - 1)] : w.block;
}

inline Block* peer_of(const Warp& w, uint64_t address) {
  const auto rank = static_cast<uint32_t>(address >> CLUSTER_RANK_SHIFT & 255);
  return rank ? block_of_rank(w, rank - 1) : w.block;
}

template <class Visit>
inline void for_cluster_warps(Block& block, Visit visit) {
  if (!block.cluster) {
    for (Warp& w : block.warps) visit(w);
    return;
  }
  for (Block* b : block.cluster->blocks)
    for (Warp& w : b->warps) visit(w);
}

// mapa, getctarank: d, a = address, b = rank (mapa). size 8: generic addresses.
inline void do_map_address(Warp& w, const Instruction& in) {
  for_lanes(w.lanes(in), [&](int l) {
    const uint64_t address = in.size == 8 ? w.pointer<uint64_t>(in.a)[l] : w.pointer<uint32_t>(in.a)[l];
    if (in.b == NONE) {
      const uint64_t rank = address >> CLUSTER_RANK_SHIFT & 255;
      w.pointer<uint32_t>(in.d)[l] = static_cast<uint32_t>(rank ? rank - 1 : w.block->rank);
      return;
    }
    const uint64_t rank = w.pointer<uint32_t>(in.b)[l] + 1ull;
    const uint64_t mapped = (address & (WINDOW_MASK | CLUSTER_OFFSET_MASK)) | rank << CLUSTER_RANK_SHIFT;
    if (in.size == 8) w.pointer<uint64_t>(in.d)[l] = mapped;
    else w.pointer<uint32_t>(in.d)[l] = static_cast<uint32_t>(mapped);
  });
}

}  // namespace ptx

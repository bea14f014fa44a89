// One multiprocessor in time: when each instruction of each resident warp issues, and when its result is there.
//
// Within a basic block instructions issue as soon as their sources are ready, as far as registers allow (ptxas schedules them
// that way); across blocks they issue in order. A load waits for earlier stores to its space unless it is ld.global.nc.
#pragma once
#include <algorithm>

#include "counting.h"
#include "observer.h"
#include "timing_l2.h"
#include "timing_memory.h"
#include "timing_pipe.h"

namespace timing {

// One warp's scoreboard.
struct WarpClock {
  std::vector<double> ready;    // by register: when its value may be read
  double earliest = 0;          // nothing issues before: the start of the basic block
  double latest = 0;            // the last issue so far
  std::vector<double> finished; // by number of the result modulo HISTORY: when it was there
  size_t count = 0;             // results that took a register, so far
  double stored[4] = {};        // by space: the last store's issue
  double now = 0, done = 0;     // of the current instruction
  bool accessed = false;
  double copied = 0;            // cp.async: when the open group is there
  std::vector<double> copy_groups;

  void start(size_t registers, double time) {
    *this = WarpClock{};
    ready.assign(registers, 0.0);
    finished.assign(HISTORY, 0.0);
    earliest = latest = time;
  }
  static constexpr size_t HISTORY = 512;  // a power of two above every InstructionCost::window
  double& finish_of(size_t number) { return finished[number & (HISTORY - 1)]; }
};

class MultiprocessorClock : public ptx::NullObserver {
 public:
  static constexpr bool STEPPED = true;
  static constexpr bool COUNTS = false;

  Totals totals{};
  std::vector<WarpClock> clocks;  // by Warp::slot

  MultiprocessorClock(const ptx::Launch& launch, const Parameters& p, const InstructionCost* costs, const int32_t* registers,
                      const float* dram_share, int slots, int resident)
      : p_(p), costs_(costs), registers_(registers), addresses_(launch), l1_(p.l1_bytes), l2_(p.l2_share_granules, dram_share, slots),
        schedulers_(static_cast<int>(p.schedulers)), touched_(resident), warps_a_block_(launch.warp_count()) {
    clocks.resize(static_cast<size_t>(resident) * warps_a_block_);
    issue_.resize(schedulers_);
    for (auto& pipe : pipes_) pipe.resize(schedulers_);
  }

  // A block takes the place of the one that had the slot before.
  void start_block(int resident_slot, ptx::Block& block, size_t registers, double time) {
    touched_[resident_slot].clear();
    for (ptx::Warp& w : block.warps) {
      w.slot = resident_slot * warps_a_block_ + w.id;
      clocks[w.slot].start(registers, time + (w.id + 1) * p_.warp_interval);
    }
    totals.warps += warps_a_block_;
  }

  double block_end(const ptx::Block& block) const {
    double end = 0;
    for (const ptx::Warp& w : block.warps) {
      const WarpClock& c = clocks[w.slot];
      end = std::max({end, c.latest, c.stored[ptx::GLOBAL], c.stored[ptx::GENERIC]});
    }
    return end;
  }

  void issue(ptx::Warp& w, const ptx::Instruction& in, int pc, uint32_t lanes) {
    const InstructionCost& cost = costs_[pc];
    WarpClock& c = clocks[w.slot];
    double time = c.earliest;
    if (c.count >= static_cast<size_t>(cost.window)) time = std::max(time, c.finish_of(c.count - cost.window));
    const int32_t* source = registers_ + cost.first_register;
    for (int i = 0; i < cost.sources; i++) time = std::max(time, c.ready[source[i]]);
    if (cost.kind == MEMORY && !(in.flags & ptx::NON_COHERENT)) time = std::max(time, c.stored[in.space & 3]);
    int scheduler = w.slot % schedulers_;
    time = issue_[scheduler].take(time, cost.issue);
    if (cost.pipe != NO_PIPE) time = std::max(time, pipes_[cost.pipe][scheduler].take(time, cost.pipe_cycles) - cost.pipe_cycles);
    c.now = time;
    c.accessed = false;
    totals.instructions++;
    totals.issue_slots += cost.issue;
    totals.lanes += __builtin_popcount(w.active);
    if (in.op == ptx::BRANCH) count_branch(w, in, lanes);
    if (cost.kind == BARRIER_WAIT) totals.barriers++;
  }

  void retire(ptx::Warp& w, const ptx::Instruction& in, int pc) {
    const InstructionCost& cost = costs_[pc];
    WarpClock& c = clocks[w.slot];
    double done = c.accessed ? c.done : c.now + cost.latency;
    const int32_t* target = registers_ + cost.first_register + cost.sources;
    for (int i = 0; i < cost.targets; i++) c.ready[target[i]] = done;
    if (cost.holds) c.finish_of(c.count++) = done;
    c.latest = std::max(c.latest, c.now);
    if (in.op == ptx::COPY_ASYNC && c.accessed) c.copied = std::max(c.copied, c.done);
    if (c.accessed && (in.op == ptx::STORE || in.op == ptx::ATOMIC)) c.stored[in.space & 3] = std::max(c.stored[in.space & 3], c.now);
    if (cost.kind == COPY_GROUP) {
      c.copy_groups.push_back(c.copied);
      c.copied = 0;
    }
    if (cost.kind == COPY_DRAIN) wait_for_copies(c, in.imm);
    if (cost.kind == BRANCHES || cost.kind == BARRIER_WAIT) c.earliest = std::max(c.earliest, c.latest);
  }

  void global_access(ptx::Warp& w, const ptx::Instruction& in, uint32_t lanes, const uint64_t* host, int bytes, ptx::Access access) {
    int buffer = addresses_.buffer_of(host[ptx::lowest_lane(lanes)]);
    if (buffer < 0) return;
    uint64_t address[32];
    ptx::for_lanes(lanes, [&](int lane) { address[lane] = addresses_.device_address(buffer, host[lane]); });
    Sectors sectors(lanes, address, bytes);
    int active = __builtin_popcount(lanes);
    bool partial = access == ptx::ACCESS_STORE && active * bytes < sectors.count * 32;
    Use use = access == ptx::ACCESS_LOAD ? READ : access == ptx::ACCESS_STORE ? WRITE : UPDATE;
    int slot = addresses_.id(buffer) * USES + use;
    if (access == ptx::ACCESS_LOAD) {
      count(totals.load_requests, totals.load_sectors, totals.load_bytes, sectors.count, active * bytes);
    } else if (access == ptx::ACCESS_STORE) {
      count(totals.store_requests, totals.store_sectors, totals.store_bytes, sectors.count, active * bytes);
      if (partial) totals.partial_store_sectors += sectors.count;
    } else {
      count(totals.atomic_requests, totals.atomic_sectors, totals.atomic_lanes, sectors.count, active);
      serialise(w, in, lanes, address, sectors, slot);
    }
    through_l1(w, sectors, slot, use, partial, active);
  }

  // Local memory is interleaved: consecutive lanes' words of one offset are adjacent. It lives in L1 and L2.
  void local_access(ptx::Warp& w, const ptx::Instruction&, uint32_t lanes, const uint64_t* offsets, int bytes, ptx::Access) {
    uint64_t base = LOCAL_BASE + (static_cast<uint64_t>(w.slot) << 24);
    for (int word = 0; word < std::max(1, bytes / 4); word++) {
      uint64_t address[32];
      ptx::for_lanes(lanes, [&](int lane) { address[lane] = base + (offsets[lane] / 4 + word) * 128 + lane * 4; });
      Sectors sectors(lanes, address, 4);
      totals.local_sectors += sectors.count;
      through_l1(w, sectors, -1, READ, false, 0);
    }
    totals.local_requests++;
  }

  void shared_access(ptx::Warp& w, const ptx::Instruction& in, uint32_t lanes, const uint64_t* offsets, int bytes, ptx::Access access) {
    if (in.op == ptx::COPY_ASYNC) return;  // the arriving line is written as it is: the copy's cost is its global side
    WarpClock& c = clocks[w.slot];
    int joined = costs_[pc_of(w, in)].joined_bytes;
    if (joined < 0) return finish(c, c.now + p_.shared_latency);
    bytes = std::max(bytes, joined);
    ptx::WavefrontCount passes = ptx::count_wavefronts(lanes, offsets, bytes);
    double cycles = passes.wavefronts * p_.shared_wavefront, latency = p_.shared_latency;
    if (access == ptx::ACCESS_ATOMIC) {
      int serial = costs_[pc_of(w, in)].merged ? 1 : same_address_lanes(lanes, offsets);
      bool by_cas = (in.flags >> ptx::ATOMIC_TYPE_SHIFT & 15) >= ptx::TYPE_FLOAT;
      cycles += serial * p_.shared_atomic_lane;
      latency += serial * (by_cas ? p_.shared_cas_latency : p_.shared_atomic_latency);
    }
    totals.shared_requests++;
    totals.shared_wavefronts += passes.wavefronts;
    totals.shared_ideal += passes.ideal;
    totals.shared_cycles += cycles;
    finish(c, data_pipe_.take(c.now, cycles) + latency);
  }

  // All warps that a barrier holds go on when the last has come.
  void release(ptx::Block& block) {
    double last = 0;
    for (const ptx::Warp& w : block.warps)
      if (w.alive) last = std::max(last, clocks[w.slot].latest);
    barrier_end_ = last + p_.barrier_latency;
  }
  void barrier_released(ptx::Block&, ptx::Warp& w) {
    WarpClock& c = clocks[w.slot];
    c.earliest = std::max(c.earliest, barrier_end_);
    c.latest = std::max(c.latest, c.earliest);
  }

  const std::vector<double>& dram_granules() const { return l2_.dram_granules(); }
  const HotLines& hot_lines() const { return hot_; }

  void close(double sampled_blocks, double cycles) {
    auto mean = [&](const std::vector<CapacityLine>& lines) {
      double sum = 0;
      for (const CapacityLine& l : lines) sum += l.busy;
      return sum / schedulers_;
    };
    totals.issue_cycles = mean(issue_);
    totals.fma_cycles = mean(pipes_[FMA_PIPE]);
    totals.alu_cycles = mean(pipes_[ALU_PIPE]);
    totals.xu_cycles = mean(pipes_[XU_PIPE]);
    totals.tensor_cycles = mean(pipes_[TENSOR_PIPE]);
    totals.l2_port_cycles = l2_port_.busy;
    totals.blocks = sampled_blocks;
    totals.cycles = cycles;
  }

 private:
  static constexpr uint64_t LOCAL_BASE = uint64_t{1} << 56;
  static constexpr double SETTLING_CYCLES = 1000;
  const Parameters& p_;
  const InstructionCost* costs_;
  const int32_t* registers_;
  AddressMap addresses_;
  L1Cache l1_;
  L2View l2_;
  HotLines hot_;
  int schedulers_;
  std::vector<CapacityLine> issue_, pipes_[PIPE_COUNT];
  CapacityLine data_pipe_, l2_port_;  // L1 and shared memory share one data pipe
  std::vector<Table<char>> touched_;  // by resident slot
  int warps_a_block_;
  double barrier_end_ = 0;

  static void count(double& requests, double& sectors, double& amount, int s, int a) {
    requests++;
    sectors += s;
    amount += a;
  }

  static void finish(WarpClock& c, double done) {
    c.done = c.accessed ? std::max(c.done, done) : done;
    c.accessed = true;
  }

  void count_branch(const ptx::Warp& w, const ptx::Instruction& in, uint32_t lanes) {
    if (in.predicate == ptx::NONE) return;
    totals.branches++;
    totals.divergent_branches += lanes != 0 && lanes != w.active;
  }

  void wait_for_copies(WarpClock& c, int64_t may_fly) {
    double done = may_fly < 0 ? c.copied : 0;
    for (int64_t i = 0; i < static_cast<int64_t>(c.copy_groups.size()) - std::max<int64_t>(0, may_fly); i++)
      done = std::max(done, c.copy_groups[i]);
    c.earliest = std::max(c.earliest, done);
    c.latest = std::max(c.latest, c.earliest);
  }

  // Atomics: one line at a time, lanes on one address one after the other, sectors of a line too.
  void serialise(ptx::Warp& w, const ptx::Instruction& in, uint32_t lanes, const uint64_t* address, const Sectors& sectors, int slot) {
    bool is_float = (in.flags >> ptx::ATOMIC_TYPE_SHIFT & 15) >= ptx::TYPE_FLOAT, merged = costs_[pc_of(w, in)].merged;
    double lane_ns = is_float ? p_.atomic_float_ns : p_.atomic_integer_ns;
    for (int i = 0; i < sectors.count; i++) {
      uint32_t here = 0;
      ptx::for_lanes(lanes, [&](int lane) { here |= uint32_t(address[lane] >> SECTOR_SHIFT == sectors.at[i]) << lane; });
      int serial = here ? same_address_lanes(here, address) : 1;
      if (merged && serial == __builtin_popcount(lanes)) serial = 1;
      bool alone = sectors.count == 1 || ((i == 0 || sectors.at[i - 1] >> 2 != sectors.at[i] >> 2) &&
                                          (i + 1 == sectors.count || sectors.at[i + 1] >> 2 != sectors.at[i] >> 2));
      hot_.add(sectors.at[i] >> 2, slot, w.block->index, alone ? serial * lane_ns : std::max(serial * lane_ns, p_.atomic_sector_ns));
    }
  }

  // DRAM answers later the more of its bandwidth is in use; this multiprocessor's use so far stands for all.
  double dram_latency(double time) const {
    double used = totals.l2_misses * (1 << GRANULE_SHIFT) / ((time + SETTLING_CYCLES) * p_.dram_share_bytes_per_cycle);
    return p_.dram_latency + p_.dram_queue_latency * std::min(1.0, used);
  }

  // The access takes the L1 data pipe, then the port to L2 for what L1 does not hold. slot < 0: local memory.
  void through_l1(ptx::Warp& w, const Sectors& sectors, int slot, Use use, bool partial, int active) {
    WarpClock& c = clocks[w.slot];
    double cycles = p_.l1_request + p_.l1_line * (sectors.lines - 1);
    totals.l1_cycles += cycles;
    totals.l1_sectors += sectors.count;
    double time = data_pipe_.take(c.now, cycles), hit_done = time + p_.l1_latency + p_.l1_line_latency * (sectors.lines - 1);
    int beyond = 0, missing[128];
    bool dram = false;
    for (int i = 0; i < sectors.count; i++) {
      const double* arrival = use == UPDATE ? nullptr : l1_.find(sectors.at[i], use == READ);
      totals.l1_hits += arrival != nullptr;
      if (arrival && use == READ) {
        hit_done = std::max(hit_done, *arrival);
        continue;
      }
      if (slot >= 0 && l2_.misses(sectors.at[i], slot, w.block->index, touched_[w.slot / warps_a_block_])) {
        dram = true;
        totals.l2_misses++;
      }
      missing[beyond++] = i;
    }
    finish(c, hit_done);
    if (!beyond) return;
    totals.l2_sectors += beyond;
    time = std::max(time, l2_port_.take(time, 32.0 * beyond * (partial ? p_.partial_store : 1) / p_.l2_port_bytes_per_cycle));
    if (use == UPDATE) time = std::max(time, l2_port_.take(time, active * p_.atomic_lane));
    double arrival = time + (dram ? dram_latency(time) : p_.l2_latency);
    finish(c, arrival);
    if (use != READ) return;
    for (int i = 0; i < beyond; i++)
      if (!l1_.find(sectors.at[missing[i]], true)) l1_.fill(arrival);
  }
};

}  // namespace timing

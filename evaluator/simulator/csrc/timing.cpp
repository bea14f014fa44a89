// Entry points of the timed passes: which memory sampled blocks share, and one multiprocessor in time.
#include <cstring>
#include <memory>
#include <string>

#include "block.h"
#include "scheduler.h"
#include "timing_observer.h"
#include "timing_sharing.h"

namespace timing {
namespace {

constexpr uint64_t LONG_RUN = 4;

struct Resident {
  std::unique_ptr<ptx::BlockMemory> memory;
  bool running = false;
  double started = 0;
};

// The resident blocks of one multiprocessor, and the blocks still to come.
class Multiprocessor {
 public:
  Multiprocessor(const ptx::Launch& launch, MultiprocessorClock& clock, const Parameters& p, int resident)
      : worker_(launch), scope_(worker_), clock_(clock), p_(p), registers_(launch.register_bytes / 128 + 2), warps_(launch.warp_count()), resident_(resident) {
    for (Resident& r : resident_) r.memory = std::make_unique<ptx::BlockMemory>(worker_);
  }

  // Runs `blocks` in order until all have ended, or, once `enough` ended, until `budget` warp instructions are spent. Blocks so
  // long that LONG_RUN budgets are spent before start no successors. Writes each block's end; returns how many ended.
  int run(const uint64_t* blocks, int count, uint64_t budget, int enough, double* ends) {
    int next = 0, ended = 0;
    for (int slot = 0; slot < static_cast<int>(resident_.size()) && next < count; slot++) start(slot, blocks[next++], next_start_);
    while (ptx::Warp* w = earliest()) {
      uint64_t before = w->executed;
      ptx::run_warp(*w, clock_);
      executed_ += w->executed - before;
      ptx::Block& block = *w->block;
      if (ptx::finished(block)) {
        int slot = w->slot / warps_;
        double end = ends[ended++] = clock_.block_end(block);
        clock_.totals.resident_warp_cycles += warps_ * (end - resident_[slot].started);
        resident_[slot].running = false;
        bool stop = executed_ > (ended >= enough ? budget : LONG_RUN * budget);
        if (next < count && !stop) start(slot, blocks[next++], std::max(end + p_.block_turnaround, next_start_));
      } else if (!ptx::runnable(block)) {
        clock_.release(block);
        if (!ptx::release_barriers(block, clock_)) ptx::report_deadlock(block);
      }
    }
    return ended;
  }

 private:
  ptx::Worker worker_;
  ptx::FloatModeScope scope_;
  MultiprocessorClock& clock_;
  const Parameters& p_;
  size_t registers_;
  int warps_;
  std::vector<Resident> resident_;
  double next_start_ = 0;
  uint64_t executed_ = 0;

  void start(int slot, uint64_t index, double time) {
    Resident& r = resident_[slot];
    ptx::start_block(r.memory->block, index);
    clock_.start_block(slot, r.memory->block, registers_, time);
    r.running = true;
    r.started = time;
    next_start_ = time + p_.block_interval + p_.block_interval_per_warp * warps_;
  }

  ptx::Warp* earliest() {
    ptx::Warp* best = nullptr;
    double time = 0;
    for (Resident& r : resident_) {
      if (!r.running) continue;
      for (ptx::Warp& w : r.memory->block.warps) {
        double at = clock_.clocks[w.slot].earliest;
        if ((best && at >= time) || !w.alive || !w.runnable()) continue;
        best = &w;
        time = at;
      }
    }
    return best;
  }
};

std::string names() {
  std::string text = "parameters";
#define X(name) text += " " #name;
  TIMING_PARAMETERS(X)
  text += "\ntotals";
  TIMING_TOTALS(X)
  text += "\nsums";
  SHARING_SUMS(X)
#undef X
  return text;
}

}  // namespace
}  // namespace timing

extern "C" {

// The field names of Parameters, Totals and SharingSums, one line each.
PTX_EXPORT int timing_names(char* out, int size) {
  std::string text = timing::names();
  if (static_cast<int>(text.size()) >= size) return -1;
  std::memcpy(out, text.c_str(), text.size() + 1);
  return 0;
}

// samples: `count` rows of NEIGHBOURS block indices, -1 where there is none. Stops early once `minimum` samples are done and
// `budget` warp instructions spent, or LONG_RUN budgets. sums: slots x LEVELS rows of SharingSums; sharers: slots x MOST_SHARERS.
// Returns the samples done, or -1 with the finding that stopped a block.
PTX_EXPORT int timing_sharing(const ptx::Launch* launch, const int64_t* samples, int count, uint64_t budget, int minimum, int slots,
                   double* sums, double* sharers, ptx::Finding* error) {
  using namespace timing;
  try {
    ptx::Worker worker(*launch);
    ptx::FloatModeScope scope(worker);
    ptx::BlockMemory memory(worker);
    SharingRecorder recorder(*launch, slots);
    uint64_t instructions = 0;
    int done = 0;
    for (; done < count && instructions < (done < minimum ? LONG_RUN * budget : budget); done++) {
      bool present[NEIGHBOURS];
      for (int member = 0; member < NEIGHBOURS; member++) {
        int64_t index = samples[done * NEIGHBOURS + member];
        recorder.record(static_cast<Neighbour>(member));
        present[member] = index >= 0;
        if (!present[member]) continue;
        ptx::run_block(memory.block, static_cast<uint64_t>(index), recorder);
        for (const ptx::Warp& w : memory.block.warps) instructions += w.executed;
      }
      recorder.close_sample(present);
    }
    recorder.close();
    std::memcpy(sums, recorder.sums().data(), recorder.sums().size() * sizeof(SharingSums));
    std::memcpy(sharers, recorder.sharers().data(), recorder.sharers().size() * sizeof(double));
    return done;
  } catch (const ptx::Fatal& fatal) {
    *error = fatal.finding;
    return -1;
  }
}

// blocks: those that the multiprocessor gets, in order. dram_share: by slot. ends: room for `count` times.
// dram_granules, line_ns (HotLines::visit_ns): by slot. Returns the blocks that ended, or -1 with the finding that stopped one.
PTX_EXPORT int timing_multiprocessor(const ptx::Launch* launch, const uint64_t* blocks, int count, int resident, uint64_t budget, int enough,
                          const timing::InstructionCost* costs, const int32_t* registers, const timing::Parameters* parameters,
                          const float* dram_share, int slots, double* ends, timing::Totals* totals, double* dram_granules,
                          double* line_ns, ptx::Finding* error) {
  using namespace timing;
  try {
    MultiprocessorClock clock(*launch, *parameters, costs, registers, dram_share, slots, resident);
    Multiprocessor multiprocessor(*launch, clock, *parameters, resident);
    int ended = multiprocessor.run(blocks, count, budget, enough, ends);
    double last = ended ? *std::max_element(ends, ends + ended) : 0;
    clock.close(ended, last);
    *totals = clock.totals;
    std::copy(clock.dram_granules().begin(), clock.dram_granules().end(), dram_granules);
    clock.hot_lines().visit_ns(line_ns);
    return ended;
  } catch (const ptx::Fatal& fatal) {
    *error = fatal.finding;
    return -1;
  }
}

}  // extern "C"

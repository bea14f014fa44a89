// The functional run: blocks over host threads, and what Python calls.
#include <atomic>
#include <mutex>
#include <thread>

#include "scheduler.h"

namespace ptx {

const AluTable& alu_table() {
  static const AluTable table = [] {
    AluTable t;
    add_integer_ops(t);
    add_float_ops(t);
    add_half_ops(t);
    add_conversion_ops(t);
    add_comparison_ops(t);
    return t;
  }();
  return table;
}

namespace {

// Blocks are handed out in order. After a fatal finding the blocks before it still finish, so the one reported is the first.
struct BlockQueue {
  const uint64_t* chosen;  // nullptr: all blocks of the grid
  uint64_t count;
  std::atomic<uint64_t> next{0}, stop{UINT64_MAX}, finished{0};

  // The next block, or the first of the next blocks that run together.
  bool take(uint64_t& position, uint64_t& index) {
    position = next++;
    if (position >= count || position > stop.load()) return false;
    index = chosen ? chosen[position] : position;
    return true;
  }
};

struct Outcome {
  std::mutex lock;
  std::vector<InstructionCounts> counts;
  std::vector<Finding> collected;
  Finding fatal{};
  uint64_t fatal_position = UINT64_MAX;
  bool out_of_memory = false;
};

void merge(Outcome& outcome, const Worker& worker) {
  const std::lock_guard<std::mutex> guard(outcome.lock);
  for (size_t i = 0; i < outcome.counts.size(); i++) outcome.counts[i].add(worker.counts[i]);
  for (const Finding& f : worker.findings.entries) {
    auto same = std::find_if(outcome.collected.begin(), outcome.collected.end(),
                             [&](const Finding& o) { return o.kind == f.kind && o.pc == f.pc; });
    if (same == outcome.collected.end()) outcome.collected.push_back(f);
    else if (f.block_index < same->block_index) *same = f;
  }
}

// The blocks that one position of the queue stands for, in memory of their own.
class Cohort {
 public:
  explicit Cohort(Worker& worker) : launch_(*worker.launch) {
    for (uint64_t i = 0; i < launch_.cohort(); i++) memory_.push_back(std::make_unique<BlockMemory>(worker));
  }
  void run(uint64_t first) {
    NullObserver observer;
    if (memory_.size() == 1) return run_block(memory_[0]->block, first, observer);
    Cluster cluster;
    for (auto& m : memory_) cluster.blocks.push_back(&m->block);
    for (size_t rank = 0; rank < memory_.size(); rank++) {
      memory_[rank]->block.cluster = &cluster;
      start_block(memory_[rank]->block, launch_.cooperative ? rank : member(first, rank));
    }
    run_cluster(cluster, observer);
  }
  uint64_t size() const { return memory_.size(); }

 private:
  const Launch& launch_;
  std::vector<std::unique_ptr<BlockMemory>> memory_;

  // The block of rank `rank` in the cluster whose first block is `first`.
  uint64_t member(uint64_t first, uint64_t rank) const {
    const uint32_t* c = launch_.cluster;
    const uint64_t x = rank % c[0], y = rank / c[0] % c[1], z = rank / c[0] / c[1];
    return first + x + launch_.grid[0] * (y + launch_.grid[1] * z);
  }
};

void run_blocks(const Launch& launch, BlockQueue& queue, Outcome& outcome) {
  Worker worker(launch);
  FloatModeScope scope(worker);
  Cohort cohort(worker);
  uint64_t position, index;
  while (queue.take(position, index)) {
    try {
      cohort.run(index);
      queue.finished += cohort.size();
    } catch (const Fatal& fatal) {
      const std::lock_guard<std::mutex> guard(outcome.lock);
      if (position >= outcome.fatal_position) continue;
      outcome.fatal_position = position;
      outcome.fatal = fatal.finding;
      queue.stop = position;
    }
  }
  merge(outcome, worker);
}

void work(const Launch& launch, BlockQueue& queue, Outcome& outcome) {
  try {
    run_blocks(launch, queue, outcome);
  } catch (const std::bad_alloc&) {
    const std::lock_guard<std::mutex> guard(outcome.lock);
    outcome.out_of_memory = true;
  }
}

int report(Outcome& outcome, Finding* findings, int limit) {
  std::vector<Finding> all = outcome.collected;
  const bool fatal = outcome.fatal_position != UINT64_MAX;
  if (fatal)
    all.erase(std::remove_if(all.begin(), all.end(), [&](const Finding& f) { return f.block_index > outcome.fatal.block_index; }),
              all.end());
  std::sort(all.begin(), all.end(), [](const Finding& a, const Finding& b) {
    return a.error != b.error ? a.error > b.error : a.pc != b.pc ? a.pc < b.pc : a.kind < b.kind;
  });
  if (fatal) all.insert(all.begin(), outcome.fatal);
  const int n = std::min<int>(limit, static_cast<int>(all.size()));
  std::copy(all.begin(), all.begin() + n, findings);
  return n;
}

std::string describe() {
  std::string text;
  const auto& names = alu_table().names;
  for (size_t i = 0; i < names.size(); i++) text += "alu " + std::to_string(i) + " " + names[i].name + " " + names[i].types + "\n";
#define X(name) text += "special " + std::to_string(name) + " " #name "\n";
  PTX_SPECIAL_OPS(X)
#undef X
#define X(name) text += "control " + std::to_string(name) + " " #name "\n";
  PTX_CONTROL_OPS(X)
#undef X
#define X(name) text += "finding " + std::to_string(static_cast<int>(FindingKind::name)) + " " #name "\n";
  PTX_FINDING_KINDS(X)
#undef X
  return text;
}

}  // namespace
}  // namespace ptx

extern "C" {

// Opcode tables as lines "class number name [types]", for the front end.
PTX_EXPORT const char* ptx_describe() {
  static const std::string text = ptx::describe();
  return text.c_str();
}

// Runs `count` blocks (`blocks` nullptr: the whole grid); where blocks run together, `blocks` holds the first of each cluster. Returns the number of findings written, or -1 without memory; a fatal
// one comes first and sets *fatal. `counts` has one record an instruction.
PTX_EXPORT int ptx_run(const ptx::Launch* launch, const uint64_t* blocks, uint64_t count, ptx::InstructionCounts* counts,
            ptx::Finding* findings, int finding_limit, int* fatal, uint64_t* blocks_run) {
  try {
    ptx::BlockQueue queue;
    queue.chosen = blocks;
    queue.count = blocks ? count : launch->block_count();
    ptx::Outcome outcome;
    outcome.counts.resize(launch->code_length);
    std::vector<std::thread> threads;
    for (int i = 1; i < launch->threads; i++) threads.emplace_back([&] { ptx::work(*launch, queue, outcome); });
    ptx::work(*launch, queue, outcome);
    for (std::thread& t : threads) t.join();
    if (outcome.out_of_memory) return -1;
    std::copy(outcome.counts.begin(), outcome.counts.end(), counts);
    *fatal = outcome.fatal_position != UINT64_MAX;
    *blocks_run = queue.finished.load();
    return ptx::report(outcome, findings, finding_limit);
  } catch (const std::bad_alloc&) {
    return -1;
  }
}

}  // extern "C"

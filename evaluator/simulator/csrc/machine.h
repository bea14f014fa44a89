// The machine's state: a launch (shared, constant), a worker (one host thread), blocks, warps and their lane groups.
#pragma once
#include <cstdint>
#include <cstring>
#include <deque>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "findings.h"
#include "instruction.h"

// Functions that Python calls (everything else is hidden).
#define PTX_EXPORT __attribute__((visibility("default")))

namespace ptx {

struct Block;
struct Cluster;
struct Worker;

// Generic addresses carry their space in the top 16 bits; global addresses are host addresses, which leave them clear.
constexpr uint64_t SHARED_WINDOW = 0x5348000000000000ull;
constexpr uint64_t LOCAL_WINDOW = 0x4c4f000000000000ull;
constexpr uint64_t WINDOW_MASK = 0xffff000000000000ull;

// What one instruction did, over all warps that executed it. Sectors are 32 bytes, lines 128 bytes.
struct InstructionCounts {
  uint64_t executed;          // warp instructions
  uint64_t lanes;             // active lanes over them (thread instructions)
  uint64_t divergent;         // branches whose lanes disagreed
  uint64_t global_requests, sectors, ideal_sectors, lines;
  uint64_t shared_requests, wavefronts, ideal_wavefronts;
  uint64_t local_requests;
  uint64_t bytes;             // bytes the lanes asked for, any space

  void add(const InstructionCounts& other) {
    auto* mine = reinterpret_cast<uint64_t*>(this);
    auto* theirs = reinterpret_cast<const uint64_t*>(&other);
    for (size_t i = 0; i < sizeof(*this) / sizeof(uint64_t); i++) mine[i] += theirs[i];
  }
};

// A range of addresses that the kernel may touch. The launch's buffers are sorted by address and do not overlap.
struct Buffer {
  uint64_t begin, end;
  int32_t writable, id;  // id: index in the caller's list
};

// Everything that does not change while a kernel runs. Built by the caller (Python); plain data, shared by all workers.
struct Launch {
  const Instruction* code;
  const int32_t* ext;
  const char* constants_end;  // constants are addressed by negative offsets from here
  const Buffer* buffers;
  int32_t code_length, buffer_count;
  int32_t register_bytes;     // of one warp
  int32_t shared_bytes;       // static + dynamic + gaps
  int32_t local_bytes;        // of one thread
  int32_t shared_granule;     // bytes that one entry of the shared shadow covers: 1, 2 or 4
  uint32_t grid[3], block[3];
  // Register offsets of tid.xyz, ctaid.xyz, warpid, cluster_ctaid.xyz, cluster_ctarank, clusterid.xyz; NONE where not read.
  int32_t special_registers[16];
  int32_t checks;             // 1: races and uninitialised reads of shared memory are looked for
  int32_t threads;            // host threads
  uint64_t budget;            // warp instructions one warp may execute
  const int32_t* gaps;        // gap_count pairs (begin, end): shared bytes between arrays that nothing may touch
  int32_t gap_count;
  int32_t parameters_id;      // id of the buffer that holds the kernel's parameters: never what a stray address was meant for
  uint32_t cluster[3];        // blocks of a cluster; 1, 1, 1 without clusters
  int32_t cooperative;        // 1: all blocks of the grid run at the same time
  int32_t clustered;          // 1: shared addresses may name other blocks of the cluster

  int thread_count() const { return static_cast<int>(block[0] * block[1] * block[2]); }
  int warp_count() const { return (thread_count() + 31) / 32; }
  uint64_t block_count() const { return static_cast<uint64_t>(grid[0]) * grid[1] * grid[2]; }
  // Blocks that must run at the same time.
  uint64_t cohort() const { return cooperative ? block_count() : static_cast<uint64_t>(cluster[0]) * cluster[1] * cluster[2]; }
};

// Number under which groups wait for the other blocks of their cluster.
constexpr int32_t CLUSTER_BARRIER = 16;

enum GroupState : int32_t { RUNNING, WAITS_FOR_WARP, WAITS_AT_BARRIER };

// Lanes of a warp that share a program counter. A warp starts as one group; branches split it, equal counters merge it.
struct LaneGroup {
  uint32_t lanes;
  int32_t pc;       // next instruction; of a group at a barrier, the instruction after it
  int32_t state;
  int32_t barrier;  // id, while WAITS_AT_BARRIER
  int32_t reached;  // where the last branch led; of a branch that led straight to the exit, the branch itself
};

// Bytes that cp.async has read and not yet delivered to shared memory.
struct PendingCopy {
  uint32_t offset;
  uint8_t bytes, lane;
  int32_t pc;
  char data[16];
};

// cp.async.bulk to shared memory that nobody has waited for yet; offsets in the block that keeps the copy.
struct BulkCopy {
  uint32_t offset, barrier;
  std::vector<char> data;
};

// An mbarrier object: arrivals a phase, arrivals and bytes that the present phase still waits for, phases completed.
struct MBarrier {
  uint32_t offset, expected, pending;
  int64_t transactions;
  uint64_t phase;
};

struct Warp {
  char* registers;
  const char* constants;
  Block* block;
  Worker* worker;
  uint32_t active;   // lanes of the running group
  uint32_t alive;    // lanes that have not exited
  int32_t id;        // index in the block
  int32_t slot;      // free for the observer's owner, e.g. an index over all resident warps
  uint64_t executed; // warp instructions so far
  uint64_t slice_end;   // instructions after which other warps get their turn
  uint32_t turns;       // turns given away by waiting in a loop
  bool waiting;         // the last turn ended so
  int32_t waiting_line;
  uint32_t sync_clock;      // shared-shadow clock at the warp's last __syncwarp
  uint32_t acquired_clock;  // the same at its last successful wait on an mbarrier: accesses before are ordered
  uint32_t cluster_arrived; // lanes that have arrived at barrier.cluster
  int32_t group_count;
  LaneGroup groups[33];
  std::deque<std::vector<PendingCopy>> copies;  // committed groups, oldest first; the last one is still open

  // Lanes that execute `in`: the running group under the instruction's predicate.
  uint32_t lanes(const Instruction& in) const {
    if (in.predicate == NONE) return active;
    uint32_t p = *pointer<uint32_t>(in.predicate);
    return active & (in.predicate_negated ? ~p : p);
  }
  template <class T>
  T* pointer(int32_t offset) const {
    return reinterpret_cast<T*>(offset >= 0 ? registers + offset : const_cast<char*>(constants) + offset);
  }
  // The warp polls: its turn ends at the next branch.
  void give_way(int32_t line) {
    slice_end = executed;
    turns++;
    waiting = true;
    waiting_line = line;
  }
  bool runnable() const {
    for (int i = 0; i < group_count; i++)
      if (groups[i].state == RUNNING) return true;
    return false;
  }
};

// Last accesses to one granule of shared memory (shared_shadow.h).
struct SharedShadow {
  std::vector<uint32_t> write, read;
  uint32_t clock = 1, barrier_clock = 1;
};

struct Block {
  Worker* worker;
  uint64_t index;
  uint32_t coordinates[3];
  char* shared;
  char* local;       // local_bytes a thread
  std::vector<Warp> warps;
  SharedShadow shadow;
  struct {
    int32_t reached, thread;
  } furthest_exit;      // of the threads that have exited (-1: none), the one whose code reached furthest
  int32_t arrived[16];  // threads that bar.arrive has counted, by barrier id
  Cluster* cluster;     // blocks that run at the same time; nullptr: none, or they are run singly
  int32_t rank;         // in the cluster
  std::vector<MBarrier> mbarriers;
  std::vector<BulkCopy> bulk_copies;
  uint64_t barrier_events;  // arrivals and the like so far: while there are some, nobody waits in vain
};

// Floating-point behaviour of f32 operations: PTX .ftz or not. Lane operations that do not care ask for ANY.
enum class FloatMode : int32_t { ANY, KEEP_SUBNORMALS, FLUSH_SUBNORMALS };

// One host thread's state: blocks it runs share its counts, findings and caches.
struct Worker {
  const Launch* launch;
  std::vector<InstructionCounts> counts;  // by pc
  std::vector<int32_t> last_buffer;       // by pc: index of the buffer of the previous access, a guess that usually holds
  FindingLog findings;
  FloatMode float_mode = FloatMode::ANY;

  explicit Worker(const Launch& l) : launch(&l), counts(l.code_length), last_buffer(l.code_length, 0) {}
};

inline int pc_of(const Warp& w, const Instruction& in) { return static_cast<int>(&in - w.worker->launch->code); }
inline int lowest_lane(uint32_t lanes) { return __builtin_ctz(lanes); }

// for (each lane l of a mask)
template <class F>
inline void for_lanes(uint32_t lanes, F&& f) {
  for (uint32_t rest = lanes; rest; rest &= rest - 1) f(__builtin_ctz(rest));
}

}  // namespace ptx

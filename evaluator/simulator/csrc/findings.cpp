#include "findings.h"

#include "machine.h"

namespace ptx {

Finding finding_at(const Warp& w, int pc, int lane) {
  const Launch& launch = *w.worker->launch;
  const uint32_t thread = w.id * 32 + lane, bx = launch.block[0], by = launch.block[1];
  Finding f{};
  f.pc = pc;
  f.line = launch.code[pc].line;
  for (int i = 0; i < 3; i++) f.block[i] = w.block->coordinates[i];
  f.block_index = w.block->index;
  f.thread[0] = thread % bx;
  f.thread[1] = thread / bx % by;
  f.thread[2] = thread / (bx * by);
  f.buffer = -1;
  return f;
}

}  // namespace ptx

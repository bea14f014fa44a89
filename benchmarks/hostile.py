"""Solutions that break things, each bounded: what the machine must survive, and the verdict that each must get.

Shared by tests/isolation (those that need no GPU) and benchmarks/h200/isolation.py (all of them).
"""

from __future__ import annotations

from dataclasses import dataclass
from textwrap import dedent, indent

from evaluator.types import Mode, Status

SECONDS_SPUN = 20
"""How long the kernel spins that outlasts its time limit; it ends by itself."""
TASK = '''"""x + 1."""

import numpy as np


def make_inputs(rng, n):
    return {"x": rng.standard_normal(n, dtype=np.float32)}


def reference(x):
    return x + 1
'''
HONEST = '''"""x + 1."""

import logging
import pathlib

import cupy as cp
import numpy as np

host = pathlib.os
CODE = r"""
extern "C" __global__ void kernel(const float* x, float* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = x[i] + 1.f;
}
"""
kernel = cp.RawKernel(CODE, "kernel")


def run(x):
    y = cp.empty_like(x)
    kernel(((x.size + 127) // 128,), (128,), (x, y, np.int32(x.size)))
    return y
'''


@dataclass(frozen=True)
class Hostile:
    """One attack on an otherwise honest solution."""

    name: str
    status: Status
    words: tuple[str, ...]
    """One of them is in the message."""
    python: str = ""
    """Done at the start of `run`."""
    cuda: str = ""
    """The kernel's statement instead of the honest one."""
    gpu_only: bool = False
    alone: bool = False
    """It can disturb other evaluations on the card while it runs."""
    timeout_s: float = 60.0

    def source(self) -> str:
        """The whole solution."""
        text = HONEST.replace("if (i < n) y[i] = x[i] + 1.f;", self.cuda) if self.cuda else HONEST
        return text.replace("def run(x):\n", "def run(x):\n" + indent(dedent(self.python).strip() + "\n", "    "))

    def runs(self, mode: Mode) -> bool:
        """Whether it says something in this mode."""
        return mode == "cuda" or not self.gpu_only


HOSTILE = (
    Hostile("illegal_address", Status.RUNTIME_ERROR, ("out_of_bounds", "llegal"), alone=True,
            cuda="y[i + (1LL << 40)] = x[i];"),
    Hostile("misaligned_address", Status.RUNTIME_ERROR, ("misaligned",), alone=True,
            cuda="*(float*)((char*)y + 4 * i + 1) = x[i];"),
    Hostile("null_pointer", Status.RUNTIME_ERROR, ("null_pointer", "llegal"), alone=True, cuda="*(volatile float*)0 = x[i];"),
    Hostile("device_trap", Status.RUNTIME_ERROR, ("trap", "aunch", "llegal instruction"), alone=True,
            cuda='asm volatile("trap;");'),
    Hostile("device_assert", Status.RUNTIME_ERROR, ("ssert", "trap"), alone=True,
            cuda='__assertfail("i < 0", "solution.cu", 4, "kernel", 1);'),
    Hostile("kernel_that_outlasts_the_limit", Status.TIMEOUT, ("did not finish in time",), alone=True, gpu_only=True,
            timeout_s=12, cuda=f"""
  unsigned long long begin, now;
  asm volatile("mov.u64 %0, %globaltimer;" : "=l"(begin));
  do {{ asm volatile("mov.u64 %0, %globaltimer;" : "=l"(now)); }} while (now - begin < {SECONDS_SPUN}000000000ULL);
  if (i < n) y[i] = x[i] + 1.f;"""),
    Hostile("endless_loop_on_the_host", Status.TIMEOUT, ("did not finish in time",), timeout_s=8,
            python="while True:\n    pass"),
    Hostile("out_of_device_memory", Status.RUNTIME_ERROR, ("emory",), alone=True, gpu_only=True,
            python="hoard = [cp.empty(1 << 34, dtype=cp.uint8) for _ in range(64)]"),
    Hostile("out_of_host_memory", Status.RUNTIME_ERROR, ("MemoryError", "SIGKILL"),
            python="hoard = np.ones(96 << 30, np.uint8)"),
    Hostile("host_segmentation_fault", Status.RUNTIME_ERROR, ("SIGSEGV",), python="np.ctypeslib.ctypes.string_at(0)"),
    Hostile("host_abort", Status.RUNTIME_ERROR, ("SIGABRT",), python="host.abort()"),
    Hostile("fork_bomb", Status.RUNTIME_ERROR, ("PermissionError", "not permitted"), python="while True:\n    host.fork()"),
    Hostile("daemon_child", Status.RUNTIME_ERROR, ("PermissionError", "not permitted"), python="""
        if host.fork() == 0:
            host.setsid()
            logging.time.sleep(60)
        """),
    Hostile("another_program", Status.RUNTIME_ERROR, ("PermissionError", "not permitted"),
            python='host.execv("/bin/sleep", ["sleep", "60"])'),
    Hostile("disk_filler", Status.RUNTIME_ERROR, ("PermissionError", "not permitted", "too large"), python="""
        for number in range(4):
            with pathlib.Path(host.environ["HOME"], f"big{number}").open("wb") as file:
                for _ in range(128):
                    file.write(bytes(1 << 20))
        """),
    Hostile("memory_of_the_judge", Status.RUNTIME_ERROR, ("PermissionError",),
            python='pathlib.Path(f"/proc/{host.getppid()}/mem").open("rb")'),
    Hostile("memory_of_every_process", Status.RUNTIME_ERROR, ("PermissionError: 0 opened",), python="""
        opened = 0
        for folder in pathlib.Path("/proc").glob("[0-9]*"):
            try:
                if int(folder.name) != host.getpid():
                    with (folder / "mem").open("r+b"):
                        opened += 1
            except OSError:
                continue
        raise PermissionError(f"{opened} opened")
        """),
    Hostile("exit_0", Status.RUNTIME_ERROR, ("exited with code 0",), python='getattr(host, "_" + "exit")(0)'),
    Hostile("sys_exit_0", Status.RUNTIME_ERROR, ("sys.exit",), python="raise SystemExit(0)"),
    Hostile("stdout_flood", Status.PASSED, ("Right on",), python="""
        for _ in range(2000):
            print('{"status": "PASSED"}' * 200, flush=True)
        """),
    Hostile("stdout_flood_without_end", Status.TIMEOUT, ("did not finish in time",), timeout_s=8, python="""
        while True:
            host.write(1, b"x" * 65536)
        """),
    Hostile("recursion", Status.RUNTIME_ERROR, ("RecursionError",), python="run(x)"),
    Hostile("thousands_of_threads", Status.REJECTED, ("still ran", "start new thread"), python="""
        for _ in range(200):
            logging.threading.Thread(target=logging.time.sleep, args=(20,), daemon=True).start()
        """),
    Hostile("closes_every_file", Status.RUNTIME_ERROR, ("connection", "exited"), python="host.closerange(3, 4096)"),
)

"""A system-call filter for the process that runs a solution: no new processes, no signals to others, no network, no files.

It holds with or without bubblewrap and for root too, whom RLIMIT_NPROC does not bind: a fork bomb ends at its first
fork, a disk filler at its first file. Threads stay possible, and so does everything that CUDA does once it is
initialised. Refused calls fail with EPERM, so Python reports them with file and line.
Linux on x86-64 and aarch64; elsewhere `install` does nothing and says so.
"""

from __future__ import annotations

import ctypes
import errno
import os
import platform
import struct

AUDIT_ARCH = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
# Numbers from the kernel's arch/x86/entry/syscalls/syscall_64.tbl and include/uapi/asm-generic/unistd.h.
DENIED = {
    "x86_64": {
        "socket": 41, "connect": 42, "bind": 49, "listen": 50, "fork": 57, "vfork": 58, "execve": 59, "ptrace": 101,
        "setrlimit": 160, "mount": 165, "umount2": 166, "init_module": 175, "tkill": 200, "add_key": 248, "keyctl": 250,
        "unshare": 272, "perf_event_open": 298, "setns": 308, "process_vm_readv": 310, "process_vm_writev": 311, "bpf": 321,
        "execveat": 322, "userfaultfd": 323, "pidfd_send_signal": 424, "io_uring_setup": 425, "pidfd_open": 434,
        "pidfd_getfd": 438, "truncate": 76, "rename": 82, "mkdir": 83, "rmdir": 84, "creat": 85, "link": 86, "unlink": 87,
        "symlink": 88, "chmod": 90, "fchmod": 91, "chown": 92, "fchown": 93, "lchown": 94, "mknod": 133, "mkdirat": 258,
        "mknodat": 259, "fchownat": 260, "unlinkat": 263, "renameat": 264, "linkat": 265, "symlinkat": 266, "fchmodat": 268,
        "renameat2": 316, "fchmodat2": 452,
    },
    "aarch64": {
        "umount2": 39, "mount": 40, "unshare": 97, "init_module": 105, "ptrace": 117, "tkill": 130, "setrlimit": 164,
        "socket": 198, "bind": 200, "listen": 201, "connect": 203, "add_key": 217, "keyctl": 219, "execve": 221,
        "perf_event_open": 241, "setns": 268, "process_vm_readv": 270, "process_vm_writev": 271, "bpf": 280, "execveat": 281,
        "userfaultfd": 282, "pidfd_send_signal": 424, "io_uring_setup": 425, "pidfd_open": 434, "pidfd_getfd": 438,
        "mknodat": 33, "mkdirat": 34, "unlinkat": 35, "symlinkat": 36, "linkat": 37, "renameat": 38, "truncate": 45,
        "fchmod": 52, "fchmodat": 53, "fchownat": 54, "fchown": 55, "renameat2": 276, "fchmodat2": 452,
    },
}
CLONE = {"x86_64": 56, "aarch64": 220}
CLONE3, OPENAT2 = 435, 437
"""Their arguments are in memory, where a filter cannot look; callers fall back to clone and openat."""
OPEN = {"x86_64": ((2, 24), (257, 32)), "aarch64": ((56, 32),)}
"""open, openat, each with the offset of its flags."""
O_CREAT = 0o100
SECCOMP = {"x86_64": 317, "aarch64": 277}
KILL = {"x86_64": (62, 234), "aarch64": (129, 131)}
"""kill, tgkill: allowed on the own process (abort() needs it)."""
PRLIMIT64 = {"x86_64": 302, "aarch64": 261}
CLONE_THREAD = 0x00010000
X32_BIT = 0x40000000

LOAD, JUMP_EQUAL, JUMP_SET, JUMP_GREATER_EQUAL, RETURN = 0x20, 0x15, 0x45, 0x35, 0x06
ALLOW, FAIL = 0x7FFF0000, 0x00050000
NUMBER, ARCH, ARGUMENT0, ARGUMENT2 = 0, 4, 16, 32
PR_SET_SECCOMP, SECCOMP_MODE_FILTER, PR_SET_NO_NEW_PRIVS = 22, 2, 38
SET_MODE_FILTER, ALL_THREADS = 1, 1
PR_SET_DUMPABLE = 4
PR_GET_SECCOMP = 21
CAPSET = {"x86_64": 126, "aarch64": 91}
CAPABILITY_VERSION_3 = 0x20080522


def filter_program(machine: str, pid: int) -> bytes:
    """The classic-BPF program (`struct sock_filter[]`). `pid`: the process that may signal itself.

    Every check is a block that either returns or falls through to the next, so no jump crosses a block.
    """
    eperm = FAIL | errno.EPERM
    code = [(LOAD, 0, 0, ARCH), (JUMP_EQUAL, 1, 0, AUDIT_ARCH[machine]), (RETURN, 0, 0, eperm), (LOAD, 0, 0, NUMBER)]
    if machine == "x86_64":
        code += [(JUMP_GREATER_EQUAL, 0, 1, X32_BIT), (RETURN, 0, 0, eperm)]
    for number in sorted(DENIED[machine].values()):
        code += [(JUMP_EQUAL, 0, 1, number), (RETURN, 0, 0, eperm)]
    for number in (CLONE3, OPENAT2):
        code += [(JUMP_EQUAL, 0, 1, number), (RETURN, 0, 0, FAIL | errno.ENOSYS)]
    for number, flags in OPEN[machine]:
        code += _argument_rule(number, flags, [(JUMP_SET, 1, 0, O_CREAT), (RETURN, 0, 0, ALLOW)])
    code += _argument_rule(CLONE[machine], ARGUMENT0, [(JUMP_SET, 0, 1, CLONE_THREAD), (RETURN, 0, 0, ALLOW)])
    for number in KILL[machine]:
        code += _argument_rule(number, ARGUMENT0, [(JUMP_EQUAL, 0, 1, pid), (RETURN, 0, 0, ALLOW)])
    code += _argument_rule(PRLIMIT64[machine], ARGUMENT2, [(JUMP_EQUAL, 0, 3, 0), (LOAD, 0, 0, ARGUMENT2 + 4),
                                                           (JUMP_EQUAL, 0, 1, 0), (RETURN, 0, 0, ALLOW)])
    code.append((RETURN, 0, 0, ALLOW))
    return b"".join(struct.pack("<HBBI", *instruction) for instruction in code)


def _argument_rule(number: int, offset: int, allowed_if: list[tuple[int, int, int, int]]) -> list[tuple[int, int, int, int]]:
    """`number` is refused unless `allowed_if`, which sees the argument at `offset`, returns first."""
    body = [(LOAD, 0, 0, offset), *allowed_if, (RETURN, 0, 0, FAIL | errno.EPERM)]
    return [(JUMP_EQUAL, 0, len(body), number), *body]


class _Program(ctypes.Structure):
    _fields_ = (("length", ctypes.c_ushort), ("filter", ctypes.c_void_p))


def available() -> bool:
    """Whether `install` can work here; nothing is changed."""
    known = platform.system() == "Linux" and platform.machine() in AUDIT_ARCH
    return known and ctypes.CDLL(None).prctl(PR_GET_SECCOMP, 0, 0, 0, 0) >= 0


def install() -> bool:
    """Filters the system calls of all threads of this process from now on, irrevocably. False: not possible here."""
    machine = platform.machine()
    if platform.system() != "Linux" or machine not in AUDIT_ARCH:
        return False
    code = filter_program(machine, os.getpid())
    buffer = ctypes.create_string_buffer(code, len(code))
    program = _Program(len(code) // 8, ctypes.cast(buffer, ctypes.c_void_p))
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0:
        return False
    if libc.syscall(SECCOMP[machine], SET_MODE_FILTER, ALL_THREADS, ctypes.byref(program)) == 0:
        return True
    return bool(libc.prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, ctypes.byref(program), 0, 0) == 0)


def drop_capabilities() -> None:
    """Gives up root's powers for this thread (as root, without bubblewrap): to read other processes' memory, above all."""
    machine = platform.machine()
    if platform.system() == "Linux" and machine in CAPSET:
        header, none = struct.pack("<Ii", CAPABILITY_VERSION_3, 0), bytes(24)
        ctypes.CDLL(None, use_errno=True).syscall(CAPSET[machine], header, none)


def hide_memory() -> None:
    """Closes `/proc/<this process>/mem` to every process without root's powers, children included."""
    if platform.system() == "Linux":
        ctypes.CDLL(None, use_errno=True).prctl(PR_SET_DUMPABLE, 0, 0, 0, 0)

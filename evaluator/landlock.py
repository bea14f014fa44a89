"""A Landlock domain for the process that runs a solution: other processes' memory is out of its reach, whoever's they are.

Processes of one user may otherwise read and write each other's memory (`/proc/<pid>/mem`), the judge's and the command's
among them, where bubblewrap does not hide them. A domain may trace nothing outside of it; ours makes and removes no file
either. Linux since 5.13, where the kernel was started with it; elsewhere `enter` does nothing and says so.
"""

from __future__ import annotations

import ctypes
import os
import platform
import struct

# Numbers and bits from include/uapi/linux/landlock.h and asm-generic/unistd.h; the same on every architecture.
CREATE_RULESET, RESTRICT_SELF = 444, 446
VERSION = 1
MAKE_AND_REMOVE = sum(1 << bit for bit in range(4, 13))
"""REMOVE_DIR, REMOVE_FILE, and MAKE_ of every kind of file."""
PR_SET_NO_NEW_PRIVS = 38


def available() -> bool:
    """Whether `enter` can work here; nothing is changed."""
    return bool(platform.system() == "Linux" and ctypes.CDLL(None).syscall(CREATE_RULESET, None, 0, VERSION) > 0)


def enter() -> bool:
    """Puts this thread, and what it starts from now on, into a domain of its own, irrevocably. False: not possible here."""
    if not available():
        return False
    libc = ctypes.CDLL(None, use_errno=True)
    attributes = struct.pack("<Q", MAKE_AND_REMOVE)
    ruleset = libc.syscall(CREATE_RULESET, attributes, len(attributes), 0)
    if ruleset < 0:
        return False
    try:
        return bool(libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 and libc.syscall(RESTRICT_SELF, ruleset, 0) == 0)
    finally:
        os.close(ruleset)

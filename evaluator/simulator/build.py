"""The interpreter's shared library: compiled once from `csrc/` with the host's C++ compiler, kept in the user's cache.

The cache key is a digest of the sources, the compiler's version, the flags and the CPU's features, so that an upgrade of any
of them, or a home directory shared between machines, never meets a stale library.
"""

from __future__ import annotations

import ctypes
import functools
import hashlib
import os
import platform
import shutil
import subprocess
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from filelock import FileLock

SOURCES = Path(__file__).parent / "csrc"
FLAGS = ("-std=c++17", "-O3", "-march=native", "-fPIC", "-fno-math-errno", "-fno-trapping-math", "-ffp-contract=off",
         "-pthread", "-fvisibility=hidden")
COMPILERS = ("g++", "clang++", "c++")


class BuildError(RuntimeError):
    """No usable C++ compiler, or the compiler refused the sources (its output is the message)."""


def cache_folder() -> Path:
    """`$XDG_CACHE_HOME/kernelskill`, by default `~/.cache/kernelskill`; a temporary folder where that is read-only."""
    base = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    folder = Path(base) / "kernelskill"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        return folder
    except OSError:
        folder = Path(tempfile.gettempdir()) / f"kernelskill-{os.getuid()}"
        folder.mkdir(mode=0o700, exist_ok=True)
        return folder


def find_compiler() -> str:
    """Path of the C++ compiler: `$CXX`, else g++, clang++, c++. Raises BuildError that names what to install."""
    for name in (os.environ.get("CXX", ""), *COMPILERS):
        path = shutil.which(name) if name else None
        if path:
            return path
    raise BuildError(
        "the simulator needs a C++17 compiler and found none of g++, clang++, c++ on PATH.\n"
        "  hint: Debian/Ubuntu `apt install g++`, Fedora `dnf install gcc-c++`, conda `conda install -c conda-forge gxx`, "
        "or set CXX"
    )


def _cpu_features() -> str:
    """What `-march=native` depends on."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return platform.processor()
    wanted = ("model name", "flags", "Features", "CPU part")
    return "\n".join(sorted({line for line in lines if line.split("\t")[0].strip() in wanted}))


def _digest(compiler: str, sources: list[Path]) -> str:
    h = hashlib.sha256()
    version = subprocess.run([compiler, "--version"], capture_output=True, text=True, check=False).stdout
    for part in (compiler, version, *FLAGS, platform.machine(), _cpu_features()):
        h.update(part.encode() + b"\0")
    for source in sources:
        h.update(source.name.encode() + b"\0" + source.read_bytes() + b"\0")
    return h.hexdigest()[:20]


def _run(command: list[str]) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise BuildError(f"building the simulator failed: {' '.join(command)}\n{done.stderr.strip()[-4000:]}")


def _compile(compiler: str, units: list[Path], library: Path) -> None:
    with tempfile.TemporaryDirectory(dir=library.parent) as scratch:
        objects = [Path(scratch) / f"{unit.stem}.o" for unit in units]
        commands = [[compiler, *FLAGS, "-c", str(unit), "-o", str(o)] for unit, o in zip(units, objects, strict=True)]
        with ThreadPoolExecutor(max_workers=os.cpu_count() or 1) as pool:
            list(pool.map(_run, commands))
        built = Path(scratch) / library.name
        _run([compiler, *FLAGS, "-shared", *map(str, objects), "-o", str(built)])
        built.replace(library)


def library_path() -> Path:
    """Path of the built library; builds it first where the cache has none. Raises BuildError."""
    sources = sorted(p for p in SOURCES.iterdir() if p.suffix in (".h", ".cpp"))
    compiler = find_compiler()
    folder = cache_folder()
    library = folder / f"simulator-{_digest(compiler, sources)}.so"
    if library.exists():
        return library
    with FileLock(str(library) + ".lock"):
        if not library.exists():
            _compile(compiler, [p for p in sources if p.suffix == ".cpp"], library)
    return library


@functools.cache
def library() -> ctypes.CDLL:
    """The loaded library, one a process."""
    return ctypes.CDLL(str(library_path()))

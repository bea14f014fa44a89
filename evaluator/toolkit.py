"""Finds NVIDIA's compiler pieces: libnvrtc, the CUDA headers, nvdisasm; and libcupti.

Sources, in this order: the nvidia wheels (CUDA 13 layout, then CUDA 12), a CUDA toolkit (`CUDA_HOME`, `CUDA_PATH`,
`/usr/local/cuda`), the libraries bundled with torch, the dynamic loader's path. No driver and no GPU are needed.
"""

from __future__ import annotations

import ctypes.util
import importlib.util
import os
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

INSTALL_HINT = (
    "install the wheels nvidia-cuda-nvrtc, nvidia-cuda-runtime, nvidia-cuda-crt and nvidia-cuda-cccl (pip), "
    "or set CUDA_HOME to a CUDA toolkit 12 or 13"
)


class ToolkitMissing(RuntimeError):
    """No usable libnvrtc or no CUDA headers; the message says what to install."""


@dataclass(frozen=True)
class Toolkit:
    """Where the pieces are."""

    nvrtc: str
    """Path (or loader name) of libnvrtc."""
    include_dirs: tuple[Path, ...]
    """Folders with `cuda_fp16.h`, `cub/`, `cuda/std/`, ..., in search order."""
    nvdisasm: Path | None
    """None: SASS cannot be listed."""


@lru_cache(maxsize=1)
def find_toolkit() -> Toolkit:
    """The first libnvrtc found, with the headers that belong to it. Raises ToolkitMissing."""
    for library in _nvrtc_candidates():
        headers = _headers_for(library)
        if headers:
            return Toolkit(library, headers, _find_nvdisasm())
    raise ToolkitMissing(f"no NVRTC library with CUDA headers was found; {INSTALL_HINT}")


def _nvidia_roots() -> list[Path]:
    """Folders of the `nvidia` namespace package (several site-packages may each hold a part)."""
    spec = importlib.util.find_spec("nvidia")
    return [Path(folder) for folder in spec.submodule_search_locations or ()] if spec else []


def _toolkit_roots() -> list[Path]:
    named = [os.environ.get("CUDA_HOME"), os.environ.get("CUDA_PATH"), "/usr/local/cuda"]
    return [Path(folder) for folder in named if folder and Path(folder).is_dir()]


def _torch_lib() -> list[Path]:
    spec = importlib.util.find_spec("torch")
    return [Path(folder) / "lib" for folder in spec.submodule_search_locations or ()] if spec else []


def _nvrtc_candidates() -> Iterator[str]:
    folders = [root / part for root in _nvidia_roots() for part in ("cu13/lib", "cuda_nvrtc/lib")]
    folders += [root / part for root in _toolkit_roots() for part in ("lib64", "targets/x86_64-linux/lib", "lib")]
    for folder in folders + _torch_lib():
        found = [p for p in folder.glob("libnvrtc*.so*") if "builtins" not in p.name and ".alt." not in p.name]
        yield from (str(path) for path in sorted(found, reverse=True))
    on_path = ctypes.util.find_library("nvrtc")
    if on_path:
        yield on_path


def cupti_candidates() -> Iterator[str]:
    """Paths of libcupti, in the order of the toolkit's sources, then the loader's name for it."""
    folders = [root / part for root in _nvidia_roots() for part in ("cu13/lib", "cuda_cupti/lib")]
    folders += [root / part for root in _toolkit_roots()
                for part in ("extras/CUPTI/lib64", "targets/x86_64-linux/lib", "lib64")]
    for folder in folders:
        yield from (str(path) for path in sorted(folder.glob("libcupti.so*"), reverse=True))
    on_path = ctypes.util.find_library("cupti")
    if on_path:
        yield on_path


def _headers_for(library: str) -> tuple[Path, ...]:
    """Include folders: first those installed beside the library, then any other installation's."""
    beside = Path(library).parent.parent
    groups: list[list[Path]] = [[beside / "include", beside / "include" / "cccl"]]
    for root in _nvidia_roots():
        groups.append([root / "cu13/include", root / "cu13/include/cccl"])
        groups.append([root / part / "include" for part in ("cuda_runtime", "cuda_nvcc", "cuda_crt", "cuda_cccl")])
    groups += [[root / "include", root / "include/cccl"] for root in _toolkit_roots()]
    for group in groups:
        present = tuple(folder for folder in group if folder.is_dir())
        if any((folder / "cuda_fp16.h").is_file() for folder in present):
            return present
    return ()


def _find_nvdisasm() -> Path | None:
    folders = [root / part for root in _nvidia_roots() for part in ("cu13/bin", "cuda_nvdisasm/bin", "cuda_nvcc/bin")]
    folders += [root / "bin" for root in _toolkit_roots()]
    for folder in folders:
        if os.access(folder / "nvdisasm", os.X_OK):
            return folder / "nvdisasm"
    on_path = shutil.which("nvdisasm")
    return Path(on_path) if on_path else None

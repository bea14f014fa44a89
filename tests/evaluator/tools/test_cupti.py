"""CUPTI's records are read where its header has them, and symbols are written as people write them."""

import ctypes
import struct
from types import SimpleNamespace

from evaluator import cupti

NAME = ctypes.create_string_buffer(b"_Z5shiftIfLi3EEvPKT_PS0_i")
KERNEL = struct.pack(
    "<IBBHII3Q3I3i3i2i2IIqQ", 10, 0, 0, 16, 0, 0, 5000, 7500, 0, 0, 1, 7, 4, 2, 1, 32, 1, 1, 128, 1024, 0, 0, 3, 9,
    ctypes.addressof(NAME)) + bytes(64)
"""CUpti_ActivityKernel10 as cupti_activity.h of CUDA 13.0 has it, up to the name; then what later fields hold."""
FILL = struct.pack("<IIQQQ", 2, 0, 4096, 1000, 2500) + bytes(64)
OTHER = struct.pack("<I", 37) + bytes(64)


def read(*records):
    """What a recorder makes of records; the library itself needs a driver and is not used for that."""
    recorder = cupti._Recorder(SimpleNamespace(cuptiActivityRegisterCallbacks=lambda *_: 0))
    for record in records:
        memory = ctypes.create_string_buffer(record, len(record))
        recorder._take(ctypes.addressof(memory))
    return recorder.activities


def test_a_kernels_record():
    (kernel,) = read(KERNEL)
    assert (kernel.kind, kernel.name) == ("kernel", "void shift<float, 3>(float const*, float*, int)")
    assert (kernel.start_us, kernel.length_us, kernel.grid, kernel.block) == (0.0, 2.5, (4, 2, 1), (32, 1, 1))
    assert kernel.shared_bytes == 1152


def test_a_fills_record_and_one_that_is_not_of_interest():
    _, fill = read(KERNEL, FILL, OTHER)
    assert (fill.kind, fill.nbytes, fill.start_us, fill.length_us) == ("fill", 4096, -4.0, 1.5)


def test_a_name_that_is_no_symbol_of_cxx_stays():
    assert cupti.demangled(b"sm90_xmma_gemm_f32f32") == "sm90_xmma_gemm_f32f32"
    assert cupti.demangled(b"_Zebra") == "_Zebra"

"""Kernels written for what the model knew worst, before any of them was measured: predictions first (`--predict`).

Scattered pieces and tables, contended atomics, blocks of one warp, short rows, rows apart by powers of two, stencils whose
blocks share with their neighbours, a long K split over blocks, few warps a scheduler, 16-bit transposes, column sums.
"""

from __future__ import annotations

from benchmarks.model.problems import ONE_WAVE, Array, Problem, Variant
from benchmarks.model.table import adder

NEW: list[Variant] = []
_add = adder(NEW)


def _output(*shape: int, dtype: str = "float32") -> Array:
    return Array(shape, dtype, "zero")


def _scatter() -> None:
    n4 = 1 << 22
    pieces = {"x": Array((n4, 4)), "p": Array((n4,), "int32", "permutation"), "y": _output(n4, 4)}
    for kernel, note in (("us_gather16", "random 16-byte reads"), ("us_scatter16", "random 16-byte writes")):
        _add("new_scatter", Problem(kernel, {"n4": n4}, pieces), "x p y n4", (kernel, n4 // 256, 256, note))
    n = 1 << 24
    for size, where in ((1 << 12, "L1"), (1 << 18, "L2"), (1 << 25, "DRAM")):
        problem = Problem(f"table_{where}", {"size": size, "n": n}, {"table": Array((size,)), "y": _output(n)})
        _add("new_scatter", problem, "table y size n",
             ("us_table", n // 256, 256, f"random reads of a table in {where}"),
             ("us_table_ilp4", n // 1024, 256, f"the same, four at once, {where}"))
    rows = 1 << 20
    arrays = {"x": Array((rows, 32)), "p": Array((rows,), "int32", "permutation"), "y": _output(rows, 32)}
    _add("new_scatter", Problem("add_rows", {"rows": rows}, arrays), "x p y rows",
         ("us_add_rows", rows // 8, 256, "a warp adds a row of 128 bytes"),
         ("us_add_rows_thread", rows // 256, 256, "a thread adds a row"))


def _atomics() -> None:
    n = 1 << 24
    values = {"x": Array((n,), "int32", "permutation")}
    _add("new_atomics", Problem("histogram_1024", {"n": n}, {**values, "y": _output(1024, dtype="uint32")}), "x y n",
         ("ua_global", n // 256, 256, "1024 bins, global atomics"),
         ("ua_shared", ONE_WAVE, 256, "bins in shared memory, one wave"),
         ("ua_shared_small", n // 4096, 256, "bins in shared memory, 4096 values a block"))
    _add("new_atomics", Problem("group_sums", {"n": n}, {**values, "v": Array((n,)), "y": _output(64)}), "x v y n",
         ("uf_global", n // 256, 256, "64 sums, float atomics in global memory"),
         ("uf_shared", ONE_WAVE, 256, "float atomics in shared memory"),
         ("uf_warp_private", ONE_WAVE, 256, "sums of the warp in shared memory"))


def _rows() -> None:
    rows, cols = 1 << 18, 64
    short = Problem("short_rows", {"rows": rows, "cols": cols}, {"x": Array((rows, cols)), "y": _output(rows)})
    _add("new_rows", short, "x y rows cols",
         ("ur_tiny_block", rows, 32, "a block of one warp a row"), ("ur_warp", rows // 8, 256, "a warp a row"),
         ("ur_thread", rows // 256, 256, "a thread a row"), ("ur_half_warp", rows // 16, 256, "sixteen lanes a row, 16 bytes"))
    rows, cols = 8192, 4096
    for pitch, name in ((4096, "power_of_two_rows"), (4128, "padded_rows")):
        sizes = {"rows": rows, "cols": cols, "pitch": pitch}
        problem = Problem(name, sizes, {"x": Array((rows, pitch)), "y": _output(rows)})
        _add("new_rows", problem, "x y rows cols pitch",
             ("up_thread", rows // 64, 64, f"a thread a row, {4 * pitch} bytes apart"),
             ("up_thread4", rows // 64, 64, f"the same with 16-byte loads, {4 * pitch} bytes apart"))


def _stencils() -> None:
    n = 384
    cube = Problem("cube", {"n": n}, {"x": Array((n, n, n)), "y": _output(n, n, n)})
    _add("new_stencil", cube, "x y n",
         ("uv_row", (n // 128, n, n), 128, "a block is part of one row"),
         ("uv_brick", (n // 32, n // 4, n // 2), (32, 4, 2), "a block is 32 x 4 x 2 points"),
         ("uv_march", (n // 32, n // 8, n // 32), (32, 8), "32 planes a thread"))
    n = 8192
    box = Problem("box", {"rows": n, "cols": n}, {"x": Array((n, n)), "y": _output(n, n)})
    _add("new_stencil", box, "x y rows cols",
         ("ub_naive", (n // 32, n // 8), (32, 8), "25 reads of global memory"),
         ("ub_tile", (n // 32, n // 8), (32, 8), "tile with halo in shared memory"))


def _products() -> None:
    m, k = 256, 16384
    arrays = {"A": Array((m, k)), "B": Array((k, m)), "C": _output(m, m)}
    _add("new_products", Problem("long_k", {"M": m, "N": m, "K": k}, arrays), "A B C M N K",
         ("uk_tile", (m // 16, m // 16), (16, 16), "256 blocks walk all of K"),
         ("uk_split", (m // 16, m // 16, 16), (16, 16), "K in 16 parts, atomics"),
         ("uk_warp", m * m // 8, 256, "a warp an output, B down a column"))
    n = 1 << 20
    for blocks, threads, name in ((132, 128, "four_warps"), (132, 512, "sixteen_warps")):
        problem = Problem(f"horner_{name}", {"n": n}, {"x": Array((n,)), "y": _output(n)})
        _add("new_products", problem, "x y n",
             ("uw_one", blocks, threads, f"one chain a thread, {name} a multiprocessor", 160 << 10),
             ("uw_four", blocks, threads, f"four chains a thread, {name} a multiprocessor", 160 << 10))


def _layout() -> None:
    n = 8192
    arrays = {"x": Array((n, n), "int16", "bins"), "y": _output(n, n, dtype="int16")}
    half = Problem("transpose_16bit", {"rows": n, "cols": n}, arrays)
    _add("new_layout", half, "x y rows cols",
         ("ux_plain", (n // 32, n // 32), (32, 8), "unpadded tile of 16-bit elements"),
         ("ux_padded", (n // 32, n // 32), (32, 8), "padded tile"),
         ("ux_pairs", (n // 64, n // 64), (32, 8), "two elements an access"))
    rows, cols = 16384, 4096
    sums = Problem("column_sums", {"rows": rows, "cols": cols}, {"x": Array((rows, cols)), "y": _output(cols)})
    _add("new_layout", sums, "x y rows cols",
         ("uc_thread", cols // 64, 64, "a thread a column"),
         ("uc_tile", (cols // 32, 64), (32, 8), "32 columns a block, 64 parts"),
         ("uc_float4", (cols // 4 // 256, 256), 256, "four columns a thread, 256 parts"))


for _family in (_scatter, _atomics, _rows, _stencils, _products, _layout):
    _family()

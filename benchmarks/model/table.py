"""The table of measured kernels.

Variants of one problem do the same work and may be ranked against each other. `DEVELOPMENT` families may be used to choose
the model's constants; `TEST` families never are.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from benchmarks.model.problems import ONE_WAVE, Array, Problem, Variant

VARIANTS: list[Variant] = []


def _three(extent: int | tuple[int, ...]) -> tuple[int, int, int]:
    extent = (extent,) if isinstance(extent, int) else extent
    x, y, z = (*extent, 1, 1)[:3]
    return x, y, z


def adder(variants: list[Variant]) -> Callable[..., None]:
    """A function that appends variants; its rows: (kernel, grid, block, note[, dynamic shared bytes])."""
    def add(family: str, problem: Problem, arguments: str, *rows: tuple[Any, ...]) -> None:
        for kernel, grid, block, note, *shared in rows:
            variants.append(Variant(kernel, family, problem, tuple(arguments.split()), _three(grid), _three(block),
                                    shared[0] if shared else 0, note))

    return add


_add = adder(VARIANTS)


def _output(*shape: int, dtype: str = "float32") -> Array:
    return Array(shape, dtype, "zero")


def _elementwise() -> None:
    n = 1 << 25
    axpy = Problem("ew_axpy", {"n": n}, {"x": Array((n,)), "z": Array((n,)), "y": _output(n)})
    _add("elementwise", axpy, "x z y n",
         ("ew_scalar", n // 256, 256, "one element a thread"),
         ("ew_strided", n // 4096, 256, "16 consecutive elements a thread"),
         ("ew_float4", n // 1024, 256, "16-byte accesses"),
         ("ew_gridstride", ONE_WAVE, 256, "grid-stride loop, one wave, not unrolled"),
         ("ew_ilp4", n // 1024, 256, "four independent loads a thread"))
    activation = Problem("ew_activation", {"n": n}, {"x": Array((n,)), "y": _output(n)})
    _add("elementwise", activation, "x y n",
         ("ew_act_scalar", n // 256, 256, "tanh and two exponentials"),
         ("ew_act_float4", n // 1024, 256, "the same with 16-byte accesses"))


def _transpose() -> None:
    n = 8192
    problem = Problem("transpose", {"rows": n, "cols": n}, {"x": Array((n, n)), "y": _output(n, n)})
    _add("transpose", problem, "x y rows cols",
         ("tr_read_coalesced", (n // 32, n // 8), (32, 8), "strided writes"),
         ("tr_write_coalesced", (n // 32, n // 8), (32, 8), "strided reads"),
         ("tr_tile32", (n // 32, n // 32), (32, 32), "32-way bank conflicts"),
         ("tr_tile33", (n // 32, n // 32), (32, 32), "padded tile"),
         ("tr_tile33_ilp4", (n // 32, n // 32), (32, 8), "four rows a thread"),
         ("tr_float4", (n // 64, n // 64), (16, 16), "64x64 tile, 16-byte accesses"))


def _row_reduction() -> None:
    rows, cols = 8192, 4096
    problem = Problem("row_sum", {"rows": rows, "cols": cols}, {"x": Array((rows, cols)), "y": _output(rows)})
    _add("row_reduction", problem, "x y rows cols",
         ("rr_thread_row", rows // 64, 64, "one thread a row"),
         ("rr_tree_modulo", rows, 256, "interleaved tree with modulo"),
         ("rr_tree", rows, 256, "sequential shared-memory tree"),
         ("rr_warp", rows // 8, 256, "one warp a row, shuffles"),
         ("rr_float4", rows, 256, "one block a row, 16-byte loads, shuffles"))


def _full_reduction() -> None:
    n = 1 << 24
    problem = Problem("full_sum", {"n": n}, {"x": Array((n,)), "y": _output(1), "part": _output(ONE_WAVE),
                                             "count": _output(1, dtype="uint32")})
    _add("full_reduction", problem, "x y n",
         ("fr_atomic_thread", n // 256, 256, "one atomic an element"),
         ("fr_atomic_warp", n // 256, 256, "one atomic a warp"),
         ("fr_atomic_block", n // 256, 256, "tree, one atomic a block of 256 elements"),
         ("fr_gridstride", ONE_WAVE, 256, "grid-stride, shuffles, one atomic a block"),
         ("fr_float4", ONE_WAVE, 256, "the same with 16-byte loads"))
    _add("full_reduction", problem, "x y part count n",
         ("fr_last_block", ONE_WAVE, 256, "two levels, last block finishes"))


def _softmax_and_layernorm() -> None:
    rows, cols = 16384, 1024
    sizes = {"rows": rows, "cols": cols}
    softmax = Problem("softmax", sizes, {"x": Array((rows, cols)), "y": _output(rows, cols)})
    _add("softmax", softmax, "x y rows cols",
         ("sm_thread_row", rows // 64, 64, "one thread a row, three passes"),
         ("sm_block3", rows, 256, "one block a row, three passes, trees"),
         ("sm_online", rows, 256, "one block a row, online maximum and sum"),
         ("sm_smem_row", rows, 256, "row kept in shared memory", 4 * cols),
         ("sm_warp_registers", rows // 8, 256, "one warp a row, row in registers"),
         ("sm_float4", rows, 256, "one float4 a thread"))
    layernorm = Problem("layernorm", sizes, {"x": Array((rows, cols)), "g": Array((cols,)), "b": Array((cols,)),
                                             "y": _output(rows, cols)})
    _add("layernorm", layernorm, "x g b y rows cols",
         ("ln_thread_row", rows // 64, 64, "one thread a row, three passes"),
         ("ln_two_pass", rows, 256, "mean, variance and output read the row each"),
         ("ln_sum_squares", rows, 256, "sum and sum of squares in one pass"),
         ("ln_welford", rows, 256, "running mean, a division an element"),
         ("ln_float4", rows, 256, "row in registers, 16-byte accesses"))


def _product(name: str, m: int, n: int, k: int, dtype: str) -> Problem:
    return Problem(name, {"M": m, "N": n, "K": k},
                   {"A": Array((m, k), dtype), "B": Array((k, n), dtype), "C": _output(m, n)})


def _matrix_products() -> None:
    m, n = 2048, 2048
    _add("matmul_fp32", _product("matmul_fp32", m, n, 512, "float32"), "A B C M N K",
         ("mm_uncoalesced", (m // 16, n // 16), (16, 16), "lanes walk down a column"),
         ("mm_naive", (n // 16, m // 16), (16, 16), "one output a thread"),
         ("mm_tile16", (n // 16, m // 16), (16, 16), "16x16 shared-memory tiles"),
         ("mm_tile32", (n // 32, m // 32), (32, 32), "32x32 shared-memory tiles"),
         ("mm_register4x4", (n // 64, m // 64), 256, "64x64x8 tile, 4x4 outputs a thread"),
         ("mm_register8x8", (n // 128, m // 128), 256, "128x128x8 tile, 8x8 outputs a thread, float4"),
         ("mm_double_buffer", (n // 128, m // 128), 256, "the same, double-buffered"))
    m, n = 4096, 4096
    _add("matmul_tensor", _product("matmul_tf32", m, n, 1024, "float32"), "A B C M N K",
         ("mt_tf32_simple", (n // 64, m // 16), 128, "tf32, one 16x16 tile a warp"))
    _add("matmul_tensor", _product("matmul_half", m, n, 1024, "float16"), "A B C M N K",
         ("mt_wmma_simple", (n // 64, m // 16), 128, "half, one 16x16 tile a warp, from global memory"),
         ("mt_wmma_register", (n // 64, m // 64), 128, "32x32 outputs a warp, from global memory"),
         ("mt_wmma_smem_conflict", (n // 64, m // 64), 128, "64x64x32 tile, unpadded"),
         ("mt_wmma_smem_padded", (n // 64, m // 64), 128, "64x64x32 tile, padded"),
         ("mt_wmma_async", (n // 128, m // 128), 256, "128x128x32 tile, two cp.async stages"))


def _gather_scatter() -> None:
    n = 1 << 24
    for name, fill in (("", "permutation"), ("_near", "near_permutation")):
        arrays = {"x": Array((n,)), "p": Array((n,), "int32", fill), "y": _output(n)}  # type: ignore[arg-type]
        gather, scatter = Problem(f"gather{name}", {"n": n}, arrays), Problem(f"scatter{name}", {"n": n}, arrays)
        if not name:
            _add("gather_scatter", gather, "x p y n",
                 ("ga_gather", n // 256, 256, "random 4-byte reads"),
                 ("ga_gather_ilp4", n // 1024, 256, "four random reads a thread"))
            _add("gather_scatter", scatter, "x p y n",
                 ("ga_scatter", n // 256, 256, "random 4-byte writes"),
                 ("ga_scatter_add", n // 256, 256, "random atomic adds"))
        else:
            _add("gather_scatter", gather, "x p y n", ("gl_gather", n // 256, 256, "random reads among 4096 neighbours"))
            _add("gather_scatter", scatter, "x p y n", ("gl_scatter", n // 256, 256, "random writes among 4096 neighbours"))
    rows = 1 << 20
    by_row = Problem("gather_rows", {"rows": rows}, {"x": Array((rows, 32)), "p": Array((rows,), "int32", "permutation"),
                                                     "y": _output(rows, 32)})
    _add("gather_scatter", by_row, "x p y rows",
         ("gr_thread_row", rows // 256, 256, "one thread a row of 128 bytes"),
         ("gr_warp_row", rows // 8, 256, "one warp a row"),
         ("gr_float4", rows // 32, 256, "eight lanes a row, 16-byte accesses"))


def _histogram() -> None:
    n = 1 << 24
    for prefix, fill in (("hi", "bins"), ("hk", "skewed_bins")):
        problem = Problem(f"histogram_{fill}", {"n": n}, {"x": Array((n,), "int32", fill),  # type: ignore[arg-type]
                                                          "y": _output(256, dtype="uint32")})
        _add("histogram", problem, "x y n",
             (f"{prefix}_global", n // 256, 256, "global atomics"),
             (f"{prefix}_shared", ONE_WAVE, 256, "bins of the block in shared memory"),
             (f"{prefix}_shared_int4", ONE_WAVE, 256, "the same with 16-byte loads"),
             (f"{prefix}_warp_private", ONE_WAVE, 256, "bins of the warp in shared memory"))
    count = Problem("count", {"n": n}, {"x": Array((n,)), "y": _output(1, dtype="uint32")})
    _add("histogram", count, "x y n",
         ("ct_atomic_thread", n // 256, 256, "one atomic increment an element"),
         ("ct_atomic_value", n // 256, 256, "one integer atomic an element"),
         ("ct_ballot", n // 256, 256, "one atomic a warp"),
         ("ct_block", n // 256, 256, "one atomic a block"),
         ("ct_gridstride", ONE_WAVE, 256, "grid-stride, shuffles, one atomic a block"))


def _stencil() -> None:
    n = 8192
    problem = Problem("stencil", {"rows": n, "cols": n}, {"x": Array((n, n)), "y": _output(n, n)})
    _add("stencil", problem, "x y rows cols",
         ("st_naive", (n // 32, n // 8), (32, 8), "neighbours from global memory"),
         ("st_row", (n // 256, n), 256, "a block is part of one row"),
         ("st_column", (n // 32, n // 8), (32, 8), "lanes walk down a column"),
         ("st_tile", (n // 32, n // 32), (32, 32), "tile with halo in shared memory"),
         ("st_march", (n // 256, n // 8), 256, "eight rows a thread, column in registers"))


def _matvec() -> None:
    rows, cols = 8192, 8192
    arrays = {"a": Array((rows, cols)), "x": Array((cols,)), "y": _output(rows)}
    sizes = {"rows": rows, "cols": cols}
    _add("matvec", Problem("matvec", sizes, arrays), "a x y rows cols",
         ("mv_thread_row", rows // 64, 64, "one thread a row"),
         ("mv_warp_row", rows // 8, 256, "one warp a row"),
         ("mv_float4", rows, 256, "one block a row, 16-byte loads"))
    _add("matvec", Problem("matvec_transposed", sizes, arrays), "a x y rows cols",
         ("mx_thread_column", cols // 64, 64, "one thread a column"),
         ("mx_split_atomic", (cols // 256, rows // 64), 256, "64 rows a block, one atomic a column"),
         ("mx_element_atomic", (cols // 256, rows), 256, "one atomic an element"))


def _small_blocks() -> None:
    n = 1 << 24
    problem = Problem("add_one", {"n": n}, {"x": Array((n,)), "y": _output(n)})
    _add("small_blocks", problem, "x y n",
         *((f"sb_{threads}", -(-n // threads), threads, f"blocks of {threads} threads")
           for threads in (32, 48, 64, 128, 512, 1024)),
         ("sb_half_idle", n // 128, 256, "half of each block leaves at once"))


def _scan() -> None:
    rows, cols = 16384, 1024
    problem = Problem("row_scan", {"rows": rows, "cols": cols}, {"x": Array((rows, cols)), "y": _output(rows, cols)})
    _add("scan", problem, "x y rows cols",
         ("ps_thread_row", rows // 64, 64, "one thread a row"),
         ("ps_hillis", rows, 1024, "Hillis-Steele in shared memory"),
         ("ps_shuffle", rows, 1024, "shuffles, one element a thread"),
         ("ps_float4", rows, 256, "shuffles, four elements a thread"),
         ("ps_warp_row", rows // 8, 256, "one warp a row"))


def _nbody() -> None:
    n = 16384
    problem = Problem("nbody", {"n": n}, {"body": Array((n, 4)), "out": _output(n, 4)})
    _add("nbody", problem, "body out n",
         ("nb_naive", n // 128, 128, "bodies from global memory"),
         ("nb_precise", n // 128, 128, "square root and divisions in full precision"),
         ("nb_tile", n // 128, 128, "128 bodies in shared memory"),
         ("nb_tile_two", n // 256, 128, "two bodies a thread"),
         ("nb_split", n // 64, 128, "two threads a body"))


for _family in (_elementwise, _transpose, _row_reduction, _full_reduction, _softmax_and_layernorm, _matrix_products,
                _gather_scatter, _histogram, _stencil, _matvec, _small_blocks, _scan, _nbody):
    _family()

DEVELOPMENT = ("elementwise", "transpose", "row_reduction", "full_reduction", "softmax", "matmul_fp32", "gather_scatter",
               "histogram", "small_blocks")
TEST = ("layernorm", "matmul_tensor", "stencil", "matvec", "scan", "nbody")
FAMILIES = tuple(dict.fromkeys(v.family for v in VARIANTS))


def by_problem(variants: list[Variant] | None = None) -> list[tuple[Problem, list[Variant]]]:
    """Problems with their variants, in the table's order."""
    groups: dict[str, tuple[Problem, list[Variant]]] = {}
    for variant in VARIANTS if variants is None else variants:
        groups.setdefault(variant.problem.name, (variant.problem, []))[1].append(variant)
    return list(groups.values())

"""Tensor cores: wmma shapes and types, mma.sync shapes and types, ldmatrix, stmatrix, movmatrix; integers, so that sums are
exact."""

from __future__ import annotations

import numpy as np

from benchmarks.probes.probe import Case, Group, Relation

GROUP = Group("matrices", "#include <cuda_fp16.h>\n#include <cuda_bf16.h>\n#include <mma.h>\nusing namespace nvcuda::wmma;")
RNG = np.random.Generator


def small(rng: RNG, *shape: int) -> np.ndarray:
    """Integers whose products sum exactly in every format."""
    return rng.integers(-4, 5, shape)


def encoded(values: np.ndarray, kind: str) -> np.ndarray:
    """Integers in an element type: f16, bf16 (as bits), tf32, f32, f64, s8, u8, s32, e4m3, e5m2 (as bits)."""
    if kind in ("e4m3", "e5m2"):
        return fp8_bits(values, kind)
    if kind == "bf16":
        return (values.astype("f4").view("u4") >> 16).astype("u2")
    return values.astype({"f16": "f2", "tf32": "f4", "f32": "f4", "f64": "f8", "s8": "i1", "u8": "u1", "s32": "i4"}[kind])


def fp8_bits(values: np.ndarray, kind: str) -> np.ndarray:
    """Small integers as 8-bit floats: sign, exponent, fraction."""
    bias, mantissa = (7, 3) if kind == "e4m3" else (15, 2)
    magnitude = np.abs(values).astype("i8")
    exponent = np.floor(np.log2(np.maximum(magnitude, 1))).astype("i8")
    fraction = (magnitude << mantissa >> exponent) - (1 << mantissa)
    code = np.where(magnitude == 0, 0, (exponent + bias) << mantissa | fraction) | np.where(values < 0, 128, 0)
    return code.astype("u1")


WMMA = """({ta}* a, {ta}* b, {tc}* c, {tc}* d) {{
  fragment<matrix_a, {m}, {n}, {k}, {fa}, {la}> x; fragment<matrix_b, {m}, {n}, {k}, {fa}, {lb}> y;
    fragment<accumulator, {m}, {n}, {k}, {tc}> z;
  load_matrix_sync(x, a, {lda}); load_matrix_sync(y, b, {ldb}); load_matrix_sync(z, c, {n}, mem_row_major);
  mma_sync(z, x, y, z); for (int i = 0; i < z.num_elements; i++) z.x[i] = z.x[i] + z.x[i];
  store_matrix_sync(d, z, {m}, mem_col_major);
}}"""
C_TYPES = {"f16": "__half", "bf16": "__nv_bfloat16", "tf32": "float", "f32": "float", "f64": "double", "s8": "signed char",
           "u8": "unsigned char", "s32": "int"}


def wmma_probe(shape: tuple[int, int, int], kind: str, accumulator: str, columns: tuple[bool, bool]) -> None:
    """One wmma product; `columns`: A and B stored column by column."""
    m, n, k = shape
    def make(rng: RNG) -> Case:
        a, b, c = small(rng, m, k), small(rng, k, n), small(rng, m, n)
        if kind == "u8":
            a, b = np.abs(a), np.abs(b)
        stored = [v.T if by_column else v for v, by_column in zip((a, b), columns, strict=True)]
        arrays = {"a": encoded(stored[0].ravel(), kind), "b": encoded(stored[1].ravel(), kind),
                  "c": encoded(c.ravel(), accumulator), "d": encoded(np.zeros(m * n), accumulator)}
        return Case(arrays, lambda: {"d": encoded(2 * (a @ b + c).T.ravel(), accumulator)})
    make.__name__ = f"wmma_m{m}n{n}k{k}_{kind}_{accumulator}"
    text = WMMA.format(ta=C_TYPES[kind], tc=C_TYPES[accumulator], fa="precision::tf32" if kind == "tf32" else C_TYPES[kind],
                       m=m, n=n, k=k,
                       la="col_major" if columns[0] else "row_major", lb="col_major" if columns[1] else "row_major",
                       lda=m if columns[0] else k, ldb=k if columns[1] else n)
    GROUP.probe(text, feature=f"wmma m{m}n{n}k{k} {kind} -> {accumulator}")(make)


for _shape in ((16, 16, 16), (32, 8, 16), (8, 32, 16)):
    wmma_probe(_shape, "f16", "f32", (False, _shape[0] == 16))
    wmma_probe(_shape, "f16", "f16", (True, False))
    wmma_probe(_shape, "bf16", "f32", (False, False))
    wmma_probe(_shape, "s8", "s32", (False, True))
    wmma_probe(_shape, "u8", "s32", (True, False))
wmma_probe((16, 16, 8), "tf32", "f32", (False, True))
wmma_probe((8, 8, 4), "f64", "f64", (False, True))


def mma_body(shape: str, types: str, registers: tuple[int, int, int], accumulator: str, suffix: str = "") -> str:
    """A kernel whose arrays hold the fragments register by register, lane by lane."""
    letter, ctype = {"f32": ("f", "float"), "f16": ("r", "unsigned"), "s32": ("r", "int"), "f64": ("d", "double")}[accumulator]
    na, nb, nc = registers
    operand, otype = ("d", "double") if accumulator == "f64" else ("r", "unsigned")
    def places(start: int, n: int) -> str:
        return "{" + ", ".join(f"%{start + i}" for i in range(n)) + "}"
    outputs = ", ".join(f'"+{letter}"(z[{i}])' for i in range(nc))
    inputs = ", ".join([f'"{operand}"(a[{32 * i} + l])'
                        for i in range(na)] + [f'"{operand}"(b[{32 * i} + l])' for i in range(nb)])
    return f"""(const {otype}* a, const {otype}* b, {ctype}* c) {{
  int l = threadIdx.x; {ctype} z[{nc}]; for (int i = 0; i < {nc}; i++) z[i] = c[32 * i + l];
  asm volatile("mma.sync.aligned.{shape}.row.col{suffix}.{types} {places(0, nc)},"
               " {places(nc, na)}, {places(nc + na, nb)}, {places(0, nc)};"
               : {outputs} : {inputs});
  for (int i = 0; i < {nc}; i++) c[32 * i + l] = z[i];
}}"""


LANE = np.arange(32)


def fragment(matrix: np.ndarray, kind: str, role: str) -> np.ndarray:
    """The registers of a matrix (A m x k, B k x n, C m x n) in PTX's documented layout: words [register][lane]."""
    per = {"f16": 2, "bf16": 2, "tf32": 1, "s8": 4, "u8": 4, "e4m3": 4, "e5m2": 4, "f64": 1, "f32": 1, "s32": 1}[kind]
    group, member = LANE // 4, LANE % 4
    source = matrix.T if role == "b" else matrix
    rows, columns = source.shape
    if role == "c":
        per, span = (2, 8) if kind == "f16" else (1, 8)
        places = [(group + 8 * r, 2 * member + e) for r in range(rows // 8) for e in range(2)]
        if kind == "f16":
            places = [(group + 8 * r, 2 * member) for r in range(rows // 8)]
    else:
        span = 4 * per
        places = [(group + 8 * r, member * per + span * s) for s in range(columns // span) for r in range(rows // 8)]
    parts = [np.stack([source[r, c + i] for i in range(per)], 1) for r, c in places]
    data = encoded(np.concatenate([p.ravel() for p in parts]), kind)
    return data if kind in ("f64", "f32", "s32") else data.view("u4")


def mma_probe(shape: tuple[int, int, int], kind: str, accumulator: str, b_kind: str = "", suffix: str = "",
              refused: str = "") -> None:
    """One mma.sync product."""
    m, n, k = shape
    second = b_kind or kind
    def make(rng: RNG) -> Case:
        a, b, c = small(rng, m, k), small(rng, k, n), small(rng, m, n)
        a, b = (np.abs(v) if t == "u8" else v for v, t in ((a, kind), (b, second)))
        arrays = {"a": fragment(a, kind, "a"), "b": fragment(b, second, "b"), "c": fragment(c, accumulator, "c")}
        return Case(arrays, lambda: {"c": fragment(a @ b + c, accumulator, "c")})
    name = f"m{m}n{n}k{k}"
    make.__name__ = f"mma_{name}_{kind}{'_' + b_kind if b_kind else ''}_{accumulator}"
    lanes = {"f16": 2, "bf16": 2, "tf32": 1, "f64": 1}.get(kind, 4) * 32
    counts = (m * k // lanes, n * k // lanes, m * n // (64 if accumulator == "f16" else 32))
    GROUP.probe(mma_body(name, f"{accumulator}.{kind}.{second}.{accumulator}", counts, accumulator, suffix), refused=refused,
                feature=f"mma {name} {kind}{' x ' + b_kind if b_kind else ''} -> {accumulator}")(make)


for _accumulator in ("f32", "f16"):
    mma_probe((16, 8, 8), "f16", _accumulator)
    mma_probe((16, 8, 16), "f16", _accumulator)
mma_probe((16, 8, 8), "bf16", "f32")
mma_probe((16, 8, 16), "bf16", "f32")
mma_probe((16, 8, 4), "tf32", "f32")
mma_probe((16, 8, 8), "tf32", "f32")
for _k in (16, 32):
    mma_probe((16, 8, _k), "s8", "s32", suffix=".satfinite")
    mma_probe((16, 8, _k), "u8", "s32")
mma_probe((16, 8, 32), "s8", "s32", "u8")
mma_probe((8, 8, 16), "s8", "s32")
mma_probe((8, 8, 4), "f64", "f64")
for _k in (4, 8, 16):
    mma_probe((16, 8, _k), "f64", "f64")
mma_probe((16, 8, 32), "e4m3", "f32")
mma_probe((16, 8, 32), "e5m2", "f32", "e4m3")


@GROUP.probe(mma_body("m16n8k16", "f32.f16.f16.f32", (4, 2, 4), "f32"),
             relation=Relation(2.0**-10, 2.0**-12,
                               "PTX ISA: products exact, sums in unspecified order with at least single precision"))
def mma_random(rng: RNG) -> Case:
    """mma f16 -> f32 of random values."""
    a, b, c = rng.standard_normal((16, 16)).astype("f2"), rng.standard_normal((16, 8)).astype("f2"), rng.standard_normal((16,
                                                                                                                          8)).astype("f4")
    arrays = {"a": fragment(a, "f16", "a"), "b": fragment(b, "f16", "b"), "c": fragment(c, "f32", "c")}
    return Case(arrays, lambda: {"c": fragment(a.astype("f8") @ b.astype("f8") + c, "f32", "c")})


@GROUP.probe(mma_body("m16n8k256", "s32.b1.b1.s32", (4, 2, 4), "s32").replace(".s32 {", ".s32.and.popc {"), refused="b1")
def mma_bits(rng: RNG) -> Case:
    """mma with b1 operands (xor, and)."""
    return Case({"a": np.full(128, 1, "u4"), "b": np.full(64, 1, "u4"), "c": np.zeros(128, "i4")}, lambda: {"c": np.full(128,
                                                                                                                         8,
                                                                                                                         "i4")})


@GROUP.probe("""(const unsigned* a, float* c) {
  int l = threadIdx.x; float z[4] = {0, 0, 0, 0};
  asm volatile("mma.sp::ordered_metadata.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3},"
               " {%4,%5}, {%6,%7}, {%0,%1,%2,%3}, %8, 0x0;"
               : "+f"(z[0]), "+f"(z[1]), "+f"(z[2]), "+f"(z[3])
                 : "r"(a[l]), "r"(a[32 + l]), "r"(a[l]), "r"(a[32 + l]), "r"(0x44444444));
  for (int i = 0; i < 4; i++) c[32 * i + l] = z[i];
}""", refused="mma.sp", compiled_only=True)
def mma_sparse(rng: RNG) -> Case:
    """mma.sp: sparse operands."""
    return Case({"a": np.zeros(64, "u4"), "c": np.zeros(128, "f4")})


def matrices_of(tile: np.ndarray) -> np.ndarray:
    """8 x 8 matrices of 16-bit elements as ldmatrix hands them out: [matrix][lane] words."""
    return np.concatenate([np.stack([m[LANE // 4, LANE % 4 * 2], m[LANE // 4, LANE % 4 * 2 + 1]],
                                    1).ravel() for m in tile]).view("u4")


@GROUP.probe("""(const unsigned* a, unsigned* out, unsigned* stored) {
  __shared__ __align__(16) unsigned s[128], q[128]; int l = threadIdx.x; unsigned r[4];
  for (int i = 0; i < 4; i++) { s[32 * i + l] = a[32 * i + l]; q[32 * i + l] = 0; }
  __syncwarp(); unsigned at = __cvta_generic_to_shared(s + 4 * l), to = __cvta_generic_to_shared(q + 4 * l);
  asm volatile("ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%0}, [%1];" : "=r"(r[0]) : "r"(at) : "memory"); out[l] = r[0];
  asm volatile("ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16 {%0, %1}, [%2];" : "=r"(r[0]), "=r"(r[1]) : "r"(at) : "memory");
  out[32 + l] = r[0]; out[64 + l] = r[1];
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];" : "=r"(r[0]),
    "=r"(r[1]), "=r"(r[2]), "=r"(r[3]) : "r"(at) : "memory");
  for (int i = 0; i < 4; i++) out[96 + 32 * i + l] = r[i];
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];" : "=r"(r[0]),
    "=r"(r[1]), "=r"(r[2]), "=r"(r[3]) : "r"(at) : "memory");
  for (int i = 0; i < 4; i++) out[224 + 32 * i + l] = r[i];
  asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1, %2, %3, %4};" :: "r"(to),
    "r"(r[0]), "r"(r[1]), "r"(r[2]), "r"(r[3]) : "memory");
  __syncwarp(); for (int i = 0; i < 4; i++) stored[32 * i + l] = q[32 * i + l];
  __syncwarp(); asm volatile("stmatrix.sync.aligned.m8n8.x2.trans.shared.b16 [%0], {%1, %2};" :: "r"(to),
    "r"(r[0]), "r"(r[1]) : "memory");
  __syncwarp(); for (int i = 0; i < 2; i++) stored[128 + 32 * i + l] = q[32 * i + l];
}""")
def matrix_rows(rng: RNG) -> Case:
    """ldmatrix x1, x2, x4, with and without .trans; stmatrix x4, x2.trans."""
    a = rng.integers(0, 2**32, 128, dtype="u4")
    def expected() -> dict[str, np.ndarray]:
        tiles = a.view("u2").reshape(4, 8, 8)
        turned = tiles.transpose(0, 2, 1)
        out = [matrices_of(tiles[:1]), matrices_of(turned[:2]), matrices_of(turned), matrices_of(tiles)]
        return {"out": np.concatenate(out), "stored": np.concatenate([a, np.ascontiguousarray(turned[:2]).ravel().view("u4")])}
    return Case({"a": a, "out": np.zeros(352, "u4"), "stored": np.zeros(192, "u4")}, expected)


@GROUP.probe("""(const unsigned* a, unsigned* out) {
  unsigned r; asm volatile("movmatrix.sync.aligned.m8n8.trans.b16 %0, %1;" : "=r"(r) : "r"(a[threadIdx.x]));
    out[threadIdx.x] = r;
}""")
def move_matrix(rng: RNG) -> Case:
    """movmatrix.trans."""
    a = rng.integers(0, 2**32, 32, dtype="u4")
    return Case({"a": a, "out": np.zeros(32, "u4")},
                lambda: {"out": np.ascontiguousarray(a.view("u2").reshape(8, 8).T).ravel().view("u4")})

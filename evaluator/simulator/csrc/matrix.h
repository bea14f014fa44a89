// Tensor-core operations: wmma fragments, mma.sync, ldmatrix and stmatrix.
//
// wmma fragments are opaque, so they have a layout of our own: element e of a row-major matrix lies in register e / (32 P), lane
// e / P % 32, with P elements in a register. mma.sync uses PTX's documented layouts.
#pragma once
#include "half.h"
#include "load_store.h"

namespace ptx {

struct MatrixShape {
  int m, n, k;
  explicit MatrixShape(const Instruction& in)
      : m(static_cast<int>(in.imm & 255)), n(static_cast<int>(in.imm >> 8 & 255)), k(static_cast<int>(in.imm >> 16 & 255)) {}
};
constexpr int MATRIX_LIMIT = 32 * 32;  // elements of the largest operand

inline int elements_per_register(int32_t type) {
  switch (type) {
    case MATRIX_TF32: case MATRIX_F64: return 1;
    case MATRIX_F16: case MATRIX_BF16: return 2;
    default: return 4;
  }
}

inline float decode_element(int32_t type, uint32_t word, int index) {
  switch (type) {
    case MATRIX_F16: return Half::decode(static_cast<uint16_t>(word >> 16 * index));
    case MATRIX_BF16: return Bfloat::decode(static_cast<uint16_t>(word >> 16 * index));
    case MATRIX_TF32: return bit_cast<float>(word & 0xffffe000u);
    case MATRIX_S8: return static_cast<int8_t>(word >> 8 * index);
    case MATRIX_E4M3: return Float8<4, 3>::decode(static_cast<uint8_t>(word >> 8 * index));
    case MATRIX_E5M2: return Float8<5, 2>::decode(static_cast<uint8_t>(word >> 8 * index));
    default: return static_cast<uint8_t>(word >> 8 * index);
  }
}

// ---- fragments: which element a (register, lane, index) holds ------------------------------------------------------------

// wmma: linear in the row-major matrix.
struct LinearLayout {
  int columns, per_register;
  int row(int r, int lane, int i) const { return ((r * 32 + lane) * per_register + i) / columns; }
  int column(int r, int lane, int i) const { return ((r * 32 + lane) * per_register + i) % columns; }
};
// mma.sync A (m x k): rows by lane group, columns along the lane within its group of four.
struct MmaLayoutA {
  int per_register;
  bool tall;  // 16 rows: registers alternate between the upper and the lower eight
  int row(int r, int lane, int) const { return (lane >> 2) + (tall ? r & 1 : 0) * 8; }
  int column(int r, int lane, int i) const { return (lane & 3) * per_register + (tall ? r >> 1 : r) * 4 * per_register + i; }
};
struct MmaLayoutB {  // k x n
  int per_register;
  int row(int r, int lane, int i) const { return (lane & 3) * per_register + r * 4 * per_register + i; }
  int column(int, int lane, int) const { return lane >> 2; }
};
struct MmaLayoutC {  // 32-bit accumulators one a register, f16 ones two a register
  int per_register;
  int row(int r, int lane, int) const { return (lane >> 2) + (per_register == 1 ? r >> 1 : r) * 8; }
  int column(int r, int lane, int i) const { return (lane & 3) * 2 + (per_register == 1 ? r & 1 : i); }
};

template <class Word, class Layout, class Visit>
inline void visit_fragment(const Warp& w, const int32_t* regs, int per_register, const Layout& layout, int columns, int elements,
                           Visit visit) {
  for (int r = 0; r < 8 && regs[r] != NONE; r++) {
    Word* words = w.pointer<Word>(regs[r]);
    for (int lane = 0; lane < 32; lane++)
      for (int i = 0; i < per_register; i++) {
        const int at = layout.row(r, lane, i) * columns + layout.column(r, lane, i);
        if (at < elements) visit(at, words[lane], i);
      }
  }
}

template <class Number>
struct Matrices {
  Number a[MATRIX_LIMIT], b[MATRIX_LIMIT], c[MATRIX_LIMIT];

  void multiply(const MatrixShape& s) {
    for (int i = 0; i < s.m; i++)
      for (int k = 0; k < s.k; k++) {
        const Number x = a[i * s.k + k];
        for (int j = 0; j < s.n; j++) c[i * s.n + j] += x * b[k * s.n + j];
      }
  }
};

inline void put_half(uint32_t& word, int index, uint16_t h) {
  word = index ? (word & 0xffffu) | static_cast<uint32_t>(h) << 16 : (word & 0xffff0000u) | h;
}

// The accumulator of a product: f32, f64, wrapping or saturating 32-bit integers.
inline uint32_t result_word(float v) { return bit_cast<uint32_t>(v); }
inline uint32_t result_word(uint32_t v) { return v; }
inline uint32_t result_word(int64_t v) {
  return static_cast<uint32_t>(v > INT32_MAX ? INT32_MAX : v < INT32_MIN ? INT32_MIN : v);
}
template <class Number> Number accumulator(uint32_t word) {
  if constexpr (std::is_same_v<Number, float>) return bit_cast<float>(word);
  else return static_cast<Number>(static_cast<int32_t>(word));
}
template <class Number> Number operand(float v) {
  if constexpr (std::is_same_v<Number, float>) return v;
  else return static_cast<Number>(static_cast<int32_t>(v));
}

template <class Number, class LayoutA, class LayoutB, class LayoutC>
inline void multiply_fragments(Warp& w, const Instruction& in, LayoutA layout_a, LayoutB layout_b, LayoutC layout_c, LayoutC layout_d) {
  const MatrixShape shape(in);
  const int32_t* regs = w.worker->launch->ext + in.ext;
  const int32_t type = in.flags & MATRIX_OPERAND_MASK, type_b = in.flags >> MATRIX_B_SHIFT & MATRIX_OPERAND_MASK;
  const int per = elements_per_register(type);
  const bool half_c = in.flags & MATRIX_HALF_C, half_d = in.flags & MATRIX_HALF_D;
  Matrices<Number> x{};
  visit_fragment<uint32_t>(w, regs + 8, per, layout_a, shape.k, shape.m * shape.k,
                           [&](int at, uint32_t word, int i) { x.a[at] = operand<Number>(decode_element(type, word, i)); });
  visit_fragment<uint32_t>(w, regs + 16, per, layout_b, shape.n, shape.k * shape.n,
                           [&](int at, uint32_t word, int i) { x.b[at] = operand<Number>(decode_element(type_b, word, i)); });
  visit_fragment<uint32_t>(w, regs + 24, half_c ? 2 : 1, layout_c, shape.n, shape.m * shape.n, [&](int at, uint32_t word, int i) {
    x.c[at] = half_c ? operand<Number>(decode_element(MATRIX_F16, word, i)) : accumulator<Number>(word);
  });
  x.multiply(shape);
  visit_fragment<uint32_t>(w, regs, half_d ? 2 : 1, layout_d, shape.n, shape.m * shape.n, [&](int at, uint32_t& word, int i) {
    if (half_d) put_half(word, i, Half::encode(static_cast<float>(x.c[at])));
    else word = result_word(x.c[at]);
  });
}

template <class LayoutA, class LayoutB, class LayoutC>
inline void multiply_doubles(Warp& w, const Instruction& in, LayoutA layout_a, LayoutB layout_b, LayoutC layout_c) {
  const MatrixShape shape(in);
  const int32_t* regs = w.worker->launch->ext + in.ext;
  Matrices<double> x{};
  const auto read = [](double* into) { return [into](int at, uint64_t word, int) { into[at] = bit_cast<double>(word); }; };
  visit_fragment<uint64_t>(w, regs + 8, 1, layout_a, shape.k, shape.m * shape.k, read(x.a));
  visit_fragment<uint64_t>(w, regs + 16, 1, layout_b, shape.n, shape.k * shape.n, read(x.b));
  visit_fragment<uint64_t>(w, regs + 24, 1, layout_c, shape.n, shape.m * shape.n, read(x.c));
  x.multiply(shape);
  visit_fragment<uint64_t>(w, regs, 1, layout_c, shape.n, shape.m * shape.n,
                           [&](int at, uint64_t& word, int) { word = bit_cast<uint64_t>(x.c[at]); });
}

// A product in the number type that its operands and .satfinite ask for.
template <class LayoutA, class LayoutB, class LayoutC>
inline void multiply(Warp& w, const Instruction& in, LayoutA a, LayoutB b, LayoutC c, LayoutC d) {
  const int32_t type = in.flags & MATRIX_OPERAND_MASK;
  if (type == MATRIX_F64) multiply_doubles(w, in, a, b, c);
  else if (type != MATRIX_S8 && type != MATRIX_U8) multiply_fragments<float>(w, in, a, b, c, d);
  else if (in.flags & MATRIX_SATURATE) multiply_fragments<int64_t>(w, in, a, b, c, d);
  else multiply_fragments<uint32_t>(w, in, a, b, c, d);
}

inline void do_wmma(Warp& w, const Instruction& in) {
  const MatrixShape shape(in);
  const int per = elements_per_register(in.flags & MATRIX_OPERAND_MASK);
  multiply(w, in, LinearLayout{shape.k, per}, LinearLayout{shape.n, per}, LinearLayout{shape.n, in.flags & MATRIX_HALF_C ? 2 : 1},
           LinearLayout{shape.n, in.flags & MATRIX_HALF_D ? 2 : 1});
}

inline void do_mma(Warp& w, const Instruction& in) {
  const int per = elements_per_register(in.flags & MATRIX_OPERAND_MASK);
  const bool tall = MatrixShape(in).m > 8;
  multiply(w, in, MmaLayoutA{per, tall}, MmaLayoutB{per}, MmaLayoutC{in.flags & MATRIX_HALF_C ? 2 : 1},
           MmaLayoutC{in.flags & MATRIX_HALF_D ? 2 : 1});
}

// ---- wmma load and store -----------------------------------------------------------------------------------------------------

// The accesses that ptxas emits for a fragment, for counts and observers: f16 operands in shared memory as ldmatrix (16-byte
// rows), everything else lane by lane as in mma.sync's layouts, neighbours joined where they are contiguous.
template <class Emit>
inline void fragment_accesses(const Instruction& in, Space space, uint64_t base, int64_t leading, Emit emit) {
  uint64_t at[32];
  const bool column_major = in.flags & COLUMN_MAJOR;
  const int role = in.flags >> ROLE_SHIFT & 3, size = in.size;
  if (space == SHARED && size == 2 && role != ROLE_ACCUMULATOR) {
    for (int l = 0; l < 32; l++) at[l] = base + static_cast<uint64_t>((l & 15) * leading + (l >> 4) * 8) * size;
    return emit(at, 16);
  }
  const bool along_row = role == ROLE_B ? column_major : !column_major;
  for (int quarter = 0; quarter < 4; quarter++)
    for (int single = 0; single < (along_row ? 1 : 2); single++) {
      for (int l = 0; l < 32; l++) {
        const int64_t row = (l >> 2) + (quarter & 1) * 8, pair = (l & 3) * 2 + (quarter >> 1) * 8 + single;
        at[l] = base + static_cast<uint64_t>(along_row ? row * leading + pair : pair * leading + row) * size;
      }
      emit(at, along_row ? 2 * size : size);
    }
}

struct FragmentPlace {
  Space space;
  uint64_t base;
  int64_t leading;
  int rows, columns;

  FragmentPlace(const Warp& w, const Instruction& in) : space(static_cast<Space>(in.space)) {
    const int32_t* ext = w.worker->launch->ext + in.ext + in.vec;
    const int lane = lowest_lane(w.active);
    uint64_t addresses[32];
    lane_addresses(w, in.a, in.imm, in.flags & ADDRESS_64, addresses);
    base = addresses[lane];
    leading = static_cast<int32_t>(w.pointer<uint32_t>(ext[0])[lane]);
    rows = ext[1];
    columns = ext[2];
    if (space == GENERIC) space = space_of(base);
    if (space != GLOBAL) base &= ~WINDOW_MASK;
  }
  uint64_t element(bool column_major, int e) const {
    const int64_t row = e / columns, column = e % columns;
    return base + static_cast<uint64_t>(column_major ? column * leading + row : row * leading + column) * size_;
  }
  int size_ = 4;
};

template <class Observer>
inline void touch_fragment(Warp& w, const Instruction& in, const FragmentPlace& place, Access access, Observer& observer) {
  if (place.space == LOCAL) fail_window(w, in, lowest_lane(w.active), "local wmma", place.base, in.size, 0, access);
  if (place.space == SHARED) {
    if (in.size == 2 && place.base % 16) fail_misaligned(w, in, lowest_lane(w.active), "wmma shared", place.base, 16, access);
    fragment_accesses(in, SHARED, place.base, place.leading, [&](const uint64_t* at, int bytes) {
      count_shared(w, in, ~0u, at, bytes, access, observer);
    });
    return;
  }
  fragment_accesses(in, GLOBAL, place.base, place.leading, [&](const uint64_t* at, int bytes) {
    if constexpr (Observer::COUNTS) {
      InstructionCounts& c = w.worker->counts[pc_of(w, in)];
      const SectorCount n = count_sectors(~0u, at, bytes);
      c.global_requests++;
      c.bytes += 32 * bytes;
      c.ideal_sectors += bytes;
      c.sectors += n.sectors;
      c.lines += n.lines;
    }
    observer.global_access(w, in, ~0u, at, bytes, access);
  });
}

// Checks one element for every lane and returns where they are; elements beyond the matrix are left out of the mask.
inline uint32_t fragment_elements(Warp& w, const Instruction& in, const FragmentPlace& place, int first, int step, Access access,
                                  uint64_t* addresses, char** pointers) {
  uint32_t lanes = 0;
  for (int l = 0; l < 32; l++) {
    const int e = first + l * step;
    if (e >= place.rows * place.columns) continue;
    lanes |= 1u << l;
    addresses[l] = place.element(in.flags & COLUMN_MAJOR, e);
  }
  if (!lanes) return 0;
  if (place.space == SHARED)
    check_window(w, in, lanes, addresses, in.size, w.worker->launch->shared_bytes, "shared", access);
  else
    check_global(w, in, lanes, addresses, in.size, access);
  for_lanes(lanes, [&](int l) {
    pointers[l] = place.space == SHARED ? w.block->shared + addresses[l] : reinterpret_cast<char*>(addresses[l]);
  });
  return lanes;
}

template <class Observer>
inline void do_fragment(Warp& w, const Instruction& in, Access access, Observer& observer) {
  FragmentPlace place(w, in);
  place.size_ = in.size;
  const int per_register = in.size == 8 ? 1 : 4 / in.size, stride = std::max(4, in.size);
  const int32_t* regs = w.worker->launch->ext + in.ext;
  const bool watched = place.space == SHARED && w.worker->launch->checks;
  touch_fragment(w, in, place, access, observer);
  for (int r = 0; r < in.vec; r++) {
    char* words = w.pointer<char>(regs[r]);
    for (int i = 0; i < per_register; i++) {
      uint64_t addresses[32];
      char* pointers[32];
      const uint32_t lanes = fragment_elements(w, in, place, r * 32 * per_register + i, per_register, access, addresses, pointers);
      auto word_bytes = [&](int l) { return words + l * stride + i * in.size; };
      if (watched && access == ACCESS_LOAD) ShadowCheck(w, in).load(lanes, addresses, in.size);
      if (watched && access == ACCESS_STORE) ShadowCheck(w, in).store(lanes, addresses, in.size, word_bytes);
      for_lanes(lanes, [&](int l) {
        if (access == ACCESS_LOAD) std::memcpy(word_bytes(l), pointers[l], in.size);
        else std::memcpy(pointers[l], word_bytes(l), in.size);
      });
    }
  }
}

// ---- ldmatrix, stmatrix: 8x8 matrices of 16-bit elements, one 16-byte row from each of 8 lanes -----------------------------

template <class Observer>
inline void do_matrix_rows(Warp& w, const Instruction& in, Access access, Observer& observer) {
  const int32_t* regs = w.worker->launch->ext + in.ext;
  const uint32_t lanes = in.vec == 4 ? ~0u : (1u << 8 * in.vec) - 1;
  uint64_t offsets[32];
  lane_addresses(w, in.a, in.imm, in.flags & ADDRESS_64, offsets);
  for (uint64_t& o : offsets) o &= ~WINDOW_MASK;
  touch_shared(w, in, lanes, offsets, 16, access, observer);
  const bool transposed = in.flags & TRANSPOSED;
  uint16_t rows[4][8][8];
  if (access == ACCESS_LOAD) {
    if (w.worker->launch->checks) ShadowCheck(w, in).load(lanes, offsets, 16);
    for_lanes(lanes, [&](int l) { std::memcpy(rows[l / 8][l % 8], w.block->shared + offsets[l], 16); });
  }
  for (int q = 0; q < in.vec; q++) {
    uint32_t* words = w.pointer<uint32_t>(regs[q]);
    for (int l = 0; l < 32; l++) {
      const int r = l / 4, c = l % 4 * 2;
      uint16_t& low = transposed ? rows[q][c][r] : rows[q][r][c];
      uint16_t& high = transposed ? rows[q][c + 1][r] : rows[q][r][c + 1];
      if (access == ACCESS_LOAD) {
        words[l] = low | static_cast<uint32_t>(high) << 16;
      } else {
        low = static_cast<uint16_t>(words[l]);
        high = static_cast<uint16_t>(words[l] >> 16);
      }
    }
  }
  if (access == ACCESS_LOAD) return;
  auto row_bytes = [&](int l) { return reinterpret_cast<const char*>(rows[l / 8][l % 8]); };
  if (w.worker->launch->checks) ShadowCheck(w, in).store(lanes, offsets, 16, row_bytes);
  for_lanes(lanes, [&](int l) { std::memcpy(w.block->shared + offsets[l], row_bytes(l), 16); });
}

// movmatrix.trans: an 8x8 matrix of 16-bit elements, a pair in each lane, transposed.
inline void do_move_matrix(Warp& w, const Instruction& in) {
  const uint32_t* from = w.pointer<uint32_t>(in.a);
  uint16_t elements[8][8];
  for (int l = 0; l < 32; l++) {
    elements[l / 4][l % 4 * 2] = static_cast<uint16_t>(from[l]);
    elements[l / 4][l % 4 * 2 + 1] = static_cast<uint16_t>(from[l] >> 16);
  }
  uint32_t* to = w.pointer<uint32_t>(in.d);
  for (int l = 0; l < 32; l++) to[l] = elements[l % 4 * 2][l / 4] | static_cast<uint32_t>(elements[l % 4 * 2 + 1][l / 4]) << 16;
}

}  // namespace ptx

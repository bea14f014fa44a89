// The instruction record that the front end emits and every pass reads.
#pragma once
#include <cstdint>

namespace ptx {

// "No operand": a register offset that no register has.
constexpr int32_t NONE = INT32_MIN;

enum Space : int32_t { GLOBAL = 0, SHARED = 1, LOCAL = 2, GENERIC = 3 };

// Opcodes below SPECIAL_BASE index the lane-wise table (alu.h). The others are listed here once; the front end reads the
// names through ptx_describe(), so the order may change freely.
//
// LOAD STORE     a = address register (NONE: absolute), imm = byte offset, size = element bytes, vec = elements,
//                ext -> vec data registers (NONE: element not wanted); flags below; bit WIDE_SHIFT+i: element i is 64-bit
// ATOMIC         like LOAD; ext -> result (NONE for red), operand, second operand of cas; flags: AtomicOp << ATOMIC_OP_SHIFT,
//                AtomicType << ATOMIC_TYPE_SHIFT
// COPY_ASYNC     ext -> shared address register, global address register, global byte offset (a number), source-size
//                register or NONE; imm = shared byte offset; size = bytes copied a lane
// COPY_COMMIT    closes the group of copies; COPY_WAIT imm = groups that may stay in flight (-1: none, uncommitted included)
// TO_GENERIC     d = generic address of a in `space`; FROM_GENERIC the inverse; IS_SPACE d = predicate "a lies in space"
// INSERT_BITS    ext -> value, base, position, length; d; size
// PACK UNPACK    ext -> vec registers, size = element bytes; d or a = the whole
// SHUFFLE        a = value, b = lane operand, c = clamp/segment; ext -> member mask, predicate out or NONE; flags = ShuffleKind
// VOTE           a = predicate, b = member mask, flags = VoteKind, imm = 1 negates the predicate
// ELECT          d = leader lane (or NONE), a = predicate out, b = member mask
// MATCH          a = value, b = member mask, size; flags = 1 for match.all; c = predicate out (match.all) or NONE
// REDUX          a = value, b = member mask, flags = ReduxKind
// ACTIVE_MASK    d; CLOCK d, size
// MAP_ADDRESS    mapa and getctarank (cluster.h)
// MBARRIER       a, imm as LOAD; ext, flags: mbarrier.h. COPY_ARRIVE: cp.async.mbarrier.arrive, a and b = address register and byte
//                offset, imm = -1, c = 1 with .noinc. BULK_COPY: cp.async.bulk
// CLUSTER_ARRIVE barrier.cluster.arrive
// FRAGMENT_LOAD FRAGMENT_STORE   wmma: a, imm as LOAD; size = element bytes; vec = registers; ext -> registers, register of
//                the leading dimension, rows, columns (numbers); flags: COLUMN_MAJOR, FragmentRole << ROLE_SHIFT
// WMMA MMA       ext -> 8 D, 8 A, 8 B, 8 C registers (NONE where the fragment is shorter); flags = MatrixType bits;
//                imm = M | N << 8 | K << 16
// MOVE_MATRIX    movmatrix: d, a
// LOAD_MATRIX STORE_MATRIX   ldmatrix/stmatrix: a, imm; vec = matrices; ext -> registers; flags: TRANSPOSED
// TRAP           fatal where executed
#define PTX_SPECIAL_OPS(X)                                                                                              \
  X(LOAD) X(STORE) X(ATOMIC) X(COPY_ASYNC) X(COPY_COMMIT) X(COPY_WAIT) X(NOP) X(TO_GENERIC) X(FROM_GENERIC) X(IS_SPACE) \
  X(INSERT_BITS) X(PACK) X(UNPACK) X(SHUFFLE) X(VOTE) X(ELECT) X(MATCH) X(REDUX) X(ACTIVE_MASK) X(CLOCK)                \
  X(FRAGMENT_LOAD) X(FRAGMENT_STORE) X(WMMA) X(MMA) X(LOAD_MATRIX) X(MOVE_MATRIX) X(STORE_MATRIX) X(TRAP) X(MAP_ADDRESS)           \
  X(MBARRIER) X(COPY_ARRIVE) X(BULK_COPY) X(CLUSTER_ARRIVE)

// BRANCH target; EXIT; BARRIER imm = barrier id (size 1: register that holds it), a = thread count register or NONE, flags = BarrierKind, b = predicate in,
// d = result (reductions), c = 1 negates the predicate; WARP_SYNC a = member mask; CALL target, d = return-address register;
// RETURN d = return-address register; BRANCH_TABLE a = index register, ext -> vec targets; CLUSTER_WAIT
#define PTX_CONTROL_OPS(X) X(BRANCH) X(EXIT) X(BARRIER) X(WARP_SYNC) X(CALL) X(RETURN) X(BRANCH_TABLE) X(CLUSTER_WAIT)

constexpr int32_t SPECIAL_BASE = 4000, CONTROL_BASE = 5000;

enum Opcode : int32_t {
  BEFORE_SPECIAL = SPECIAL_BASE - 1,
#define X(name) name,
  PTX_SPECIAL_OPS(X) END_SPECIAL,
  BEFORE_CONTROL = CONTROL_BASE - 1,
  PTX_CONTROL_OPS(X) END_CONTROL,
#undef X
};

enum Flag : int32_t {
  SIGNED = 1,             // sign-extend a loaded element
  ADDRESS_64 = 2,         // the address register is 64-bit (shared and local addresses may be 32-bit)
  NON_COHERENT = 4,       // ld.global.nc
  VOLATILE = 8,           // ld.volatile / st.volatile
  ORDERED = 16,           // relaxed, acquire or release: takes part in no data race
  COLUMN_MAJOR = 32,
  TRANSPOSED = 32,
  WIDE_SHIFT = 8,         // 8 bits
  ATOMIC_OP_SHIFT = 16,   // 4 bits
  ATOMIC_TYPE_SHIFT = 20, // 4 bits
  ROLE_SHIFT = 16,        // 2 bits
  MBARRIER_KIND_SHIFT = 16,  // 4 bits
  MBARRIER_PARITY = 32,      // MBARRIER_TEST of a parity instead of a state
  MBARRIER_EXPECT = 64,      // an arrival that expects bytes first
  BULK_TARGET_64 = 2, BULK_SOURCE_64 = 4, BULK_BARRIER_64 = 8,
};

enum AtomicOp : int32_t { ATOM_ADD, ATOM_MIN, ATOM_MAX, ATOM_EXCH, ATOM_CAS, ATOM_AND, ATOM_OR, ATOM_XOR, ATOM_INC, ATOM_DEC };
enum AtomicType : int32_t { TYPE_UNSIGNED, TYPE_SIGNED, TYPE_FLOAT, TYPE_F16, TYPE_BF16, TYPE_F16X2, TYPE_BF16X2 };
enum ShuffleKind : int32_t { SHUFFLE_UP, SHUFFLE_DOWN, SHUFFLE_BFLY, SHUFFLE_IDX };
enum VoteKind : int32_t { VOTE_ALL, VOTE_ANY, VOTE_UNI, VOTE_BALLOT };
enum ReduxKind : int32_t { REDUX_ADD, REDUX_MIN_U, REDUX_MAX_U, REDUX_MIN_S, REDUX_MAX_S, REDUX_AND, REDUX_OR, REDUX_XOR };
enum BarrierKind : int32_t { BARRIER_SYNC, BARRIER_ARRIVE, BARRIER_POPC, BARRIER_AND, BARRIER_OR };
enum MBarrierKind : int32_t {
  MBARRIER_INIT, MBARRIER_INVAL, MBARRIER_ARRIVE, MBARRIER_DROP, MBARRIER_EXPECT_TX, MBARRIER_COMPLETE_TX, MBARRIER_TEST,
};
enum FragmentRole : int32_t { ROLE_A, ROLE_B, ROLE_ACCUMULATOR };
// A's type in the low bits, B's at MATRIX_B_SHIFT; C and D are f32 (s32 for integers, f64 for f64) unless a HALF bit is set.
enum MatrixType : int32_t {
  MATRIX_F16, MATRIX_BF16, MATRIX_TF32, MATRIX_S8, MATRIX_U8, MATRIX_E4M3, MATRIX_E5M2, MATRIX_F64,
  MATRIX_OPERAND_MASK = 7, MATRIX_HALF_D = 8, MATRIX_HALF_C = 16, MATRIX_B_SHIFT = 5, MATRIX_SATURATE = 256,
};

// Register operands (d a b c, ext entries, predicate) are byte offsets: >= 0 into the warp's register file, < 0 into the
// launch's constants. A register is 32 lanes of 4 bytes (128 bytes) or of 8 bytes (256); a predicate is one 32-bit lane mask.
struct Instruction {
  int32_t op;
  int32_t d, a, b, c;
  int32_t predicate, predicate_negated;  // @p: lanes that execute; NONE without one
  int32_t target;                        // pc of BRANCH and CALL
  int32_t size, vec, space, flags;
  int32_t ext;                           // index into Launch::ext
  int32_t line;                          // line of the CUDA source; 0 unknown
  int64_t imm;
};
static_assert(sizeof(Instruction) == 64, "the front end builds this record as a NumPy dtype");

enum Access : int32_t { ACCESS_LOAD, ACCESS_STORE, ACCESS_ATOMIC };

}  // namespace ptx

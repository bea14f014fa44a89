"""Operators of torch and CuPy that a task lets a solution keep: `matmul`, `conv2d`, or a whole category such as `conv`."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable

CATEGORIES = {
    "matmul": "matmul mm bmm addmm addbmm baddbmm addmv addr mv dot vdot inner outer linear bilinear einsum tensordot "
              "chain_matmul multi_dot kron",
    "conv": "conv1d conv2d conv3d conv_tbc conv_transpose1d conv_transpose2d conv_transpose3d convolution convolve correlate "
            "unfold fold",
    "pool": "max_pool1d max_pool2d max_pool3d avg_pool1d avg_pool2d avg_pool3d adaptive_avg_pool1d adaptive_avg_pool2d "
            "adaptive_avg_pool3d adaptive_max_pool1d adaptive_max_pool2d adaptive_max_pool3d lp_pool1d lp_pool2d "
            "fractional_max_pool2d max_unpool2d boolean_dispatch interpolate",
    "norm": "batch_norm layer_norm group_norm instance_norm rms_norm local_response_norm normalize native_batch_norm "
            "native_layer_norm native_group_norm",
    "attention": "scaled_dot_product_attention multi_head_attention_forward",
    "rnn": "lstm gru rnn_tanh rnn_relu lstm_cell gru_cell rnn_tanh_cell rnn_relu_cell",
    "softmax": "softmax log_softmax logsumexp softmin gumbel_softmax",
    "reduction": "sum mean prod max min amax amin argmax argmin norm vector_norm matrix_norm var std var_mean std_mean all any "
                 "median count_nonzero cumsum cumprod nansum logcumsumexp",
    "indexing": "gather scatter scatter_add index_select index_add take take_along_dim embedding embedding_bag where "
                "masked_fill masked_select cat concat concatenate stack hstack vstack repeat tile roll "
                "flip pad sort argsort topk nonzero unique tril triu getitem setitem",
    "host": "cpu numpy tolist asnumpy get",
    "random": "dropout dropout1d dropout2d dropout3d bernoulli multinomial alpha_dropout feature_dropout",
}
"""Category -> operators. Every other operator (`add`, `relu`, `exp`, ...) is allowed by its own name only, or by `all`."""
ALL = "all"
MEMBERS = {category: frozenset(names.split()) for category, names in CATEGORIES.items()}
NAME = re.compile(r"[a-z][a-z0-9_]*")
HARMLESS_KERNEL = re.compile(
    r"cupy_(copy|fill|full|arange|eye|random)|FillFunctor|direct_copy|copy_kernel|CatArrayBatchedCopy|distribution_|"
    r"random_from_to|LoadWithCast", re.IGNORECASE)
KERNELS = tuple((operator, re.compile(pattern, re.IGNORECASE)) for operator, pattern in {
    "attention": r"flash_|fmha|attention",
    "conv": r"conv|implicit|wgrad|dgrad|winograd|im2col|nchw|nhwc",
    "matmul": r"gemm|gemv|cutlass|cublas|xmma|splitK|dot_kernel|nvjet",
    "norm": r"batch_norm|layer_norm|group_norm|bn_fw|RowwiseMoments|Normalization",
    "pool": r"pool",
    "softmax": r"softmax",
    "rnn": r"lstm|gru|rnn",
    "reduction": r"reduce|cupy_(sum|prod|max|min|amax|amin|any|all|argm|nansum)|cub_",
}.items())
"""What a library's kernel computes, told from its name; the first that fits."""
REFLECTED = re.compile(r"__[ri]?(matmul|add|sub|mul|truediv|floordiv|div|mod|pow|and|or|xor|lshift|rshift)__")


def in_full(entry: str) -> str:
    """An allowed entry for a reader who does not know the categories: `conv (conv1d, conv2d, ...)`."""
    return f"{entry} ({', '.join(CATEGORIES[entry].split())})" if entry in CATEGORIES else entry


def plain(operator: str) -> str:
    """`torch.conv2d`, `aten::conv2d`, `conv2d.default`, `conv2d_`, `__imatmul__` -> the operator's plain name."""
    name = operator.rsplit("::", 1)[-1].removeprefix("torch.").removeprefix("cupy.").split(".")[0]
    reflected = REFLECTED.fullmatch(name)
    return reflected[1] if reflected else name.strip("_")


def is_allowed(operator: str, allowed: Iterable[str]) -> bool:
    """Whether `operator` is one of the allowed names, or in one of the allowed categories."""
    name = plain(operator)
    return any(entry in (ALL, name) or name in MEMBERS.get(entry, ()) for entry in allowed)


def flag(operator: str) -> str:
    """The shortest entry of `allow_library` that lets `operator` stay: its category, else its own name."""
    name = plain(operator)
    return next((category for category, members in MEMBERS.items() if name in members), name)


def kernel_operator(kernel: str) -> str:
    """The operator, or category, that a library's kernel computes; "" for copies, fills and random numbers.

    Kernel names as CUPTI gives them, of CuPy, torch, cuBLAS, cuDNN and CUTLASS. What no pattern knows is its own operator.
    """
    if HARMLESS_KERNEL.search(kernel):
        return ""
    return next((operator for operator, pattern in KERNELS if pattern.search(kernel)), kernel)


def kernel_is_allowed(kernel: str, allowed: Iterable[str]) -> bool:
    """Whether a library's kernel computes nothing, or what an allowed operator needs."""
    operator, entries = kernel_operator(kernel), set(allowed)
    if not operator or entries & {ALL, operator}:
        return True
    return bool(entries & MEMBERS.get(operator, frozenset())) or any(entry in kernel.lower() for entry in entries)


def unknown_entry(entry: str) -> str:
    """What is wrong with one entry of an allow-list; "" for nothing. Operators outside the categories cannot be checked."""
    if NAME.fullmatch(entry):
        close = difflib.get_close_matches(entry, CATEGORIES, 1, cutoff=0.8)
        wrong = bool(close) and entry not in CATEGORIES and not any(entry in members for members in MEMBERS.values())
        return f"{entry!r} is no category; did you mean {close[0]!r}?" if wrong else ""
    return f"{entry!r} is no operator's name; name operators (conv2d) or categories: {', '.join([*CATEGORIES, ALL])}"

"""Which torch functions compute: those count as library calls; views, allocation, casts and questions do not."""

from __future__ import annotations

import re

ARITHMETIC = re.compile(r"__[ri]?(?:add|sub|mul|div|truediv|floordiv|mod|pow|matmul|and|or|xor|lshift|rshift)__"
                        r"|__(?:eq|ne|lt|le|gt|ge|neg|invert|abs)__")
VIEWS = """view view_as reshape reshape_as flatten unflatten ravel permute transpose transpose_ swapaxes swapdims movedim
    moveaxis t t_ adjoint unsqueeze unsqueeze_ squeeze squeeze_ expand expand_as broadcast_to narrow select split
    split_with_sizes chunk unbind tensor_split as_strided diagonal unfold detach detach_ requires_grad_ set_
    resolve_conj resolve_neg alias view_as_real view_as_complex real imag atleast_1d atleast_2d atleast_3d meshgrid
    broadcast_tensors"""
ALLOCATION = """empty empty_like empty_strided empty_permuted new_empty new_empty_strided zeros zeros_like new_zeros ones
    ones_like new_ones full full_like new_full new_tensor tensor as_tensor asarray from_numpy from_dlpack frombuffer
    scalar_tensor arange linspace eye zero_ fill_ clone copy_ contiguous rand randn randint randperm rand_like randn_like
    randint_like uniform_ normal_ trunc_normal_ kaiming_uniform_ kaiming_normal_ xavier_uniform_ xavier_normal_ constant_
    orthogonal_ ones_ zeros_ eye_ dirac_ resize_ resize_as_ manual_seed data_ptr untyped_storage storage item
    cuda to type type_as float double half bfloat16 int long short char byte bool pin_memory record_stream
    share_memory_ register_hook backward retain_grad"""
QUESTIONS = """size shape stride dim ndim ndimension numel nelement element_size storage_offset device dtype layout get_device
    has_names names broadcast_shapes result_type promote_types can_cast allclose equal get_default_dtype finfo iinfo typename
    numel dense_dim sparse_dim"""
NOT_COMPUTING = frozenset(f"{VIEWS} {ALLOCATION} {QUESTIONS}".split())


def computes(name: str) -> bool:
    """True for a function (by `__name__`) that would launch an arithmetic kernel of a library."""
    name = name.split(".")[0]  # `mm.default`: an overload of torch.ops
    if name.startswith("__"):
        return ARITHMETIC.fullmatch(name) is not None
    return not name.startswith(("_", "is_")) and name not in NOT_COMPUTING

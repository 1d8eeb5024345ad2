"""Compiled execution on CuPy: traced programs as few kernels, made for their shapes.

The planned executor (``plugins.planned``) provides the method: it splits ops into steps, groups
elementwise steps, and packs updates. Here ``lowering`` has the differences from NumPy, with
``rules`` for ops that only arrange elements, for convolutions and more. ``products`` multiplies
matrices, ``bfloat16`` finds operands of 16 bits, ``variables`` has the memory of what one kernel
updates, and ``plan`` the order of all calls. ``programs`` keeps plans by the shapes of inputs, and
``graphs`` captures those that run often in CUDA graphs. The texts of kernels are in
``plugins.cupy.writing``.

CuPy reuses memory that it releases for later work on the same stream. So results and new values of
variables are simply new arrays: no array that other code may hold is written to. Only graphs write
to arrays that variables hold, after reference counts have shown that no other code holds them.

This module is the plugin that names the ops, imported when lowerings are first needed; the others
are imported to run a program.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ....core.extend import hookimpl, lazy_entry

#: The ops with a rule in ``lowering``, and those with a formula in ``formulas``.
_LOWERED = (
    "power sigmoid all round_to_bfloat16 sum mean unbroadcast_like broadcast_like concatenate "
    "getitem stack unstack conv conv_to_filters conv_to_images conv_transpose max_pool "
    "max_pool_scatter max_pool_gather avg_pool avg_pool_scatter take take_adjoint take_along_axis "
    "take_along_axis_adjoint index_add_like index_add_all_like index_set one_hot "
    "matmul matmul_adjoint_x matmul_adjoint_y einsum einsum_adjoint "
    "crop_or_pad crop_or_pad_like diag diagonal diagonal_adjoint fftshift pad pad_picked "
    "repeat roll shift split_like tile flip unpad tril triu unrepeat_like untile_like any "
    "count_nonzero embedding_rows gelu gelu_slope norm product_of_others std var "
    "argmax argmin argsort cumprod cumsum prod recurrence running_place sort sort_order unsort "
    "log_softmax sparse_softmax_cross_entropy softmax_less_labels softmax_cross_entropy "
    "softmax_less_shares"
).split()
_FORMULAS = (
    "where cast round_to_bfloat16 power bitwise_and bitwise_or bitwise_xor fabs fmax fmin heaviside"
).split()
#: Those with a rule in ``random.rules``.
_DRAWING = (
    "random_exponential random_exponential_like random_gumbel random_gumbel_like random_integers "
    "random_normal random_normal_like random_split random_truncated_normal "
    "random_truncated_normal_like random_uniform random_uniform_like"
).split()


@hookimpl(trylast=True)
def gradtape_lowerings() -> dict[tuple[str, str], Callable[..., Any]]:
    """Provide the steps of ops for CuPy, and the formulas of steps in CUDA C."""
    home = "plugins.cupy.compiled"
    steps = {(op, "cupy"): lazy_entry(f"{home}.lowering", "RULES", op) for op in _LOWERED}
    draws = "plugins.cupy.random.rules"
    steps |= {(op, "cupy"): lazy_entry(draws, "RULES", op) for op in _DRAWING}
    forms = {
        (op, "cuda"): lazy_entry("plugins.cupy.writing.formulas", "FORMULAS", op)
        for op in _FORMULAS
    }
    return {**steps, **forms}

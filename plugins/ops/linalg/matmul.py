"""The matrix product and its adjoints.

The product is linear in each operand, so its gradient rules are products again.
``matmul_adjoint_x`` sends the result's gradient back to the first operand, ``matmul_adjoint_y`` to
the second. Each of the three is differentiated by the other two. This works at any rank, known in a
trace or not.
"""

from __future__ import annotations

from math import prod
from typing import Any

from ....core.extend import (
    NONDIFF,
    BinaryOp,
    F,
    Op,
    broadcast_shapes,
    in_words,
    ops,
    rank_of,
    sizes_differ,
)
from ..common.axes import aligned
from ..common.kernels import as_like, standard, summed
from ..common.op_builders import op
from ..shapes.joining import common_dtype


def _sum_to(xp: Any, x: Any, shape: tuple[int, ...]) -> Any:
    """Sum ``x`` over the axes along which an operand of ``shape`` was broadcast."""
    if x.shape == shape:
        return x
    extra = x.ndim - len(shape)
    axes = tuple(i for i, n in enumerate(x.shape) if i < extra or shape[i - extra] != n)
    return xp.reshape(summed(xp, x, axis=axes), shape)


def _matmul_shape(x: Any, y: Any) -> Any:
    """Return the shape of ``x @ y``; known sizes must agree."""
    if (x is not None and not x) or (y is not None and not y):
        raise ValueError(f"matmul: shapes {x} and {y}: an operand has no axes; use multiply")
    if x is None or y is None:
        return None
    inner = (x[-1], y[-2] if len(y) > 1 else y[0])
    if sizes_differ(*inner):
        raise ValueError(f"matmul: shapes {x} and {y} do not match: {inner[0]} is not {inner[1]}")
    batch = broadcast_shapes(x[:-2], y[:-2], op="matmul") or ()
    return (*batch, *x[-2:-1], *(y[-1:] if len(y) > 1 else ()))


def matmul_kernel(xp: Any, x: Any, y: Any) -> Any:
    """Return the matrix product; raise an error that names sizes that do not match."""
    try:
        return standard(xp, "matmul", "matmul")(x, y)
    except (ValueError, TypeError):
        _matmul_shape(getattr(x, "shape", ()), getattr(y, "shape", ()))
        raise


def adjoint_x_kernel(xp: Any, g: Any, y: Any, like: Any) -> Any:
    """Send ``g``, of the shape of a product with ``y``, back to the first operand."""
    rank = like.ndim
    if y.ndim == 1:
        return xp.expand_dims(g, axis=-1) * y
    if rank == 1:
        return _sum_to(xp, xp.matmul(y, xp.expand_dims(g, axis=-1))[..., 0], like.shape)
    if y.ndim > 2 == rank:
        over = (*range(y.ndim - 2), y.ndim - 1)
        return xp.tensordot(g, y, axes=(over, over))
    return _sum_to(xp, xp.matmul(g, xp.matrix_transpose(y)), like.shape)


def adjoint_y_kernel(xp: Any, g: Any, x: Any, like: Any) -> Any:
    """Send ``g``, of the shape of a product with ``x``, back to the second operand."""
    rank = like.ndim
    if x.ndim == 1:
        if rank == 1:
            return g * x
        gy = xp.expand_dims(g, axis=-2) * xp.expand_dims(x, axis=-1)
        return _sum_to(xp, gy, like.shape)
    if rank <= 2 < x.ndim or rank == 1:
        count = prod(x.shape[:-1])  # which -1 would not say where x has no elements
        columns = xp.reshape(x, (count, x.shape[-1]))
        rows = xp.reshape(g, (count, *like.shape[1:]))
        return xp.matmul(xp.matrix_transpose(columns), rows)
    return _sum_to(xp, xp.matmul(xp.matrix_transpose(x), g), like.shape)


def adjoint_spec(g: Any, other: Any, like: Any, **params: Any) -> tuple[Any, Any]:
    """Return shape and dtype of the gradient that a product's adjoint sends back to ``like``."""
    return like.shape, common_dtype((g, other))


# -- batching rules: which operand is batched decides what is quick --------------------------------


_ONLY_G = [True, False, False]


def _matmul_rule(op: Op, xs: list[Any], batched: list[bool], params: dict[str, Any]) -> Any:
    """Batching rule of ``matmul``."""
    (x, y), (bx, by) = xs, batched
    rx, ry = rank_of(x, op) - bx, rank_of(y, op) - by
    if 0 in (rx, ry):
        raise ValueError("matmul: an operand has no axes; use multiply")
    if not by and ry <= 2:
        return op.raw(x, y)
    if not bx and rx == 2 and ry == 1:
        return op.raw(y, F.swapaxes(x, axis1=0, axis2=1))
    # vectors become matrices, then all axes before the matrices line up
    row, column = rx == 1, ry == 1
    if row:
        x, rx = F.expand_dims(x, axis=-2), 2
    if column:
        y, ry = F.expand_dims(y, axis=-1), 2
    most = max(rx, ry)
    x = aligned(x, most, op) if bx else x
    y = aligned(y, most, op) if by else y
    result = op.raw(x, y)
    if column:
        result = F.squeeze(result, axis=-1)
    return F.squeeze(result, axis=-1 if column else -2) if row else result


def _adjoint_x_rule(op: Op, xs: list[Any], batched: list[bool], params: dict[str, Any]) -> Any:
    """Batching rule of ``matmul_adjoint_x``."""
    g, y, like = xs
    if batched == _ONLY_G and rank_of(y, op) == 2 and rank_of(like, op) <= 2:
        return _matmul_rule(ops["matmul"], [g, _swapped(y)], [True, False], {})
    return in_words(_adjoint_x_in_ops, _known_ranks(xs, op), batched)


def _adjoint_y_rule(op: Op, xs: list[Any], batched: list[bool], params: dict[str, Any]) -> Any:
    """Batching rule of ``matmul_adjoint_y``."""
    g, x, like = xs
    if batched == _ONLY_G and rank_of(x, op) == 2 == rank_of(like, op):
        return _matmul_rule(ops["matmul"], [_swapped(x), g], [False, True], {})
    return in_words(_adjoint_y_in_ops, _known_ranks(xs, op), batched)


def _known_ranks(xs: list[Any], op: Op) -> list[Any]:
    """Return arrays whose ranks are known; raise if a rank is not."""
    for x in xs:
        rank_of(x, op)
    return xs


def _adjoint_x_in_ops(g: Any, y: Any, like: Any) -> Any:
    """Send a gradient of ``matmul`` back to its first operand, in terms of other ops."""
    if len(y.shape) == 1:
        return _summed(F.expand_dims(g, axis=-1) * y, like)
    if len(like.shape) == 1:
        if len(y.shape) == 2:
            return F.matmul(g, _swapped(y))
        product = F.matmul(y, F.expand_dims(g, axis=-1))
        return _summed(F.squeeze(product, axis=-1), like)
    return _summed(F.matmul(g, _swapped(y)), like)


def _adjoint_y_in_ops(g: Any, x: Any, like: Any) -> Any:
    """Send a gradient of ``matmul`` back to its second operand, in terms of other ops."""
    rank_x, rank = len(x.shape), len(like.shape)
    if rank_x == 1:
        if rank == 1:
            return g * x
        product = F.expand_dims(g, axis=-2) * F.expand_dims(x, axis=-1)
        return _summed(product, like)
    if rank <= 2 < rank_x or rank == 1:
        over = tuple(range(rank_x - 1))
        return F.tensordot(x, g, axes=(over, over))
    return _summed(F.matmul(_swapped(x), g), like)


def _summed(g: Any, like: Any) -> Any:
    """Sum to the shape of ``like``; keep the dtype, which may be complex for a real operand."""
    return F.unbroadcast_like(g, as_like(like, g))


def _swapped(x: Any) -> Any:
    if len(x.shape) == 2:
        return F.transpose(x, axes=None)
    return F.swapaxes(x, axis1=-1, axis2=-2)


# -- ops -------------------------------------------------------------------------------------------


matmul = op(
    "matmul",
    matmul_kernel,
    BinaryOp,
    gradients={
        "x": lambda g, y, x_like: as_like(F.matmul_adjoint_x(g, y, x_like), x_like),
        "y": lambda g, x, y_like: as_like(F.matmul_adjoint_y(g, x, y_like), y_like),
    },
    infer=lambda x, y: (
        _matmul_shape(getattr(x, "shape", ()), getattr(y, "shape", ())),  # a Python number has none
        common_dtype((x, y)),
    ),
    holomorphic=True,
    batch=_matmul_rule,
    jvp="multilinear",
    doc="""Return the matrix product of ``x`` and ``y``.

    Parameters
    ----------
    x, y
        Tensors of at least one axis. Matrices are in the last two; the axes before them broadcast.
        A vector is a row on the left and a column on the right; the result lacks that axis.

    Returns
    -------
    Tensor
        Products of shape ``(..., m, n)``, for operands ``(..., m, k)`` and ``(..., k, n)``, of the
        promoted dtype.

    Raises
    ------
    ValueError
        If the inner sizes differ, or an operand has no axes.

    Notes
    -----
    With the upstream gradient ``g``, the gradients are ``g @ y.mT`` and ``x.mT @ g`` (conjugated if
    complex), summed over the axes that were broadcast.

    Examples
    --------
    >>> gt.matmul(gt.constant([[1, 2], [3, 4]]), gt.constant([1, 1])).tolist()
    [3, 7]
    """,
)
op(
    "matmul_adjoint_x",
    adjoint_x_kernel,
    gradients={
        "g": lambda g, y, g_like: as_like(F.matmul(g, y), g_like),
        "y": lambda d, g, y_like: as_like(F.matmul_adjoint_y(g, d, y_like), y_like),
        "like": NONDIFF,
    },
    infer=adjoint_spec,
    holomorphic=True,
    batch=_adjoint_x_rule,
    jvp="multilinear",
    doc="Send a gradient of ``matmul`` back to its first operand, of the shape of ``like``.",
)
op(
    "matmul_adjoint_y",
    adjoint_y_kernel,
    gradients={
        "g": lambda g, x, g_like: as_like(F.matmul(x, g), g_like),
        "x": lambda d, g, x_like: as_like(F.matmul_adjoint_x(g, d, x_like), x_like),
        "like": NONDIFF,
    },
    infer=adjoint_spec,
    holomorphic=True,
    batch=_adjoint_y_rule,
    jvp="multilinear",
    doc="Send a gradient of ``matmul`` back to its second operand, of the shape of ``like``.",
)

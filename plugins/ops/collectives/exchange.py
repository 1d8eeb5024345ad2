"""Collectives: reduce, gather, scatter and broadcast arrays over ranks."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

from ....core.errors import TraceError
from ....core.extend import (
    F,
    Tensor,
    TensorSpec,
    UnaryOp,
    active_graph,
    as_tensor,
    backend_of,
    check_by_rank,
    communicator,
    compared,
    ops,
    rank_of,
    to_numpy,
)
from ..common.axes import one_axis, reduced_axes
from ..common.op_builders import named_in, op, same_spec

#: The reductions of :func:`all_reduce`. Those after the mean reduce gathered arrays.
REDUCTIONS = ("sum", "mean", "max", "min", "prod")
_named = named_in("distributed")


def _host(x: Any) -> Any:
    """Return an array in host memory and C order, as engines need it."""
    if type(x) is np.ndarray and x.flags.c_contiguous:
        return x
    return np.ascontiguousarray(to_numpy(x)).reshape(x.shape)


def _back(found: Any, like: Any) -> Any:
    """Move an engine's result to the backend and device of ``like``."""
    if type(like) is np.ndarray:
        return found
    owner = backend_of(like)
    return owner.asarray(found, device=owner.device(like))


def _sum_of(rows: Any) -> Any:
    """Return the sum of gathered arrays. As in engines, float16 is summed in float32."""
    dtype = rows.dtype if rows.dtype != np.float16 else np.dtype(np.float32)
    out = np.empty(rows.shape[1:], dtype)
    with np.errstate(all="ignore"):
        np.add.reduce(rows, axis=0, dtype=dtype, out=out, initial=None)  # from -0.0, not 0.0, on
        return out if dtype is rows.dtype else out.astype(rows.dtype)


def _sum_kernel(xp: Any, x: Any) -> Any:
    group = communicator()
    if group.size == 1:
        return x
    host = _host(x)
    rows = compared("all_reduce", host)
    return _back(group.all_reduce(host) if rows is None else _sum_of(rows), x)


def _gather_kernel(xp: Any, x: Any) -> Any:
    group = communicator()
    if group.size == 1:
        return x
    host = _host(x)
    rows = compared("all_gather", host)
    found = group.all_gather(host) if rows is None else rows.copy()
    return _back(found.reshape(group.size * x.shape[0], *x.shape[1:]), x)


def _scatter_kernel(xp: Any, x: Any) -> Any:
    group = communicator()
    if group.size == 1:
        return x
    host = _host(x)
    rows = compared("reduce_scatter", host)
    if x.shape[0] % group.size:
        raise ValueError(
            f"reduce_scatter: axis 0 of size {x.shape[0]} is not divisible by {group.size} ranks"
        )
    if rows is None:
        return _back(group.reduce_scatter(host), x)
    part = x.shape[0] // group.size
    return _back(_sum_of(rows[:, group.rank * part : (group.rank + 1) * part]), x)


def _broadcast_kernel(xp: Any, x: Any, *, root: int = 0) -> Any:
    group = communicator()
    host = x if group.size == 1 else _host(x)
    rows = compared(f"broadcast(root={root})", host)
    if not 0 <= root < group.size:
        raise ValueError(
            f"broadcast: root={root} is not a rank; pass 0 to {group.size - 1} ({group.size} ranks)"
        )
    if group.size == 1:
        return x
    return _back(group.broadcast(host, root) if rows is None else rows[root].copy(), x)


def _at_kernel(xp: Any, x: Any, *, root: int = 0) -> Any:
    return x if communicator().rank == root else xp.zeros_like(x)


def _share_kernel(xp: Any, x: Any) -> Any:
    size = communicator().size
    return x if size == 1 else x / size


def _any_rows(x: TensorSpec) -> tuple[Any, Any]:
    """Return a shape whose first size is unknown: it depends on the number of ranks."""
    return (None if x.shape is None else (None, *x.shape[1:])), x.dtype


def _hidden_second(op: Any, xs: list[Any], batched: list[bool], params: dict[str, Any]) -> Any:
    """Batch an op over the first axis, by moving the examples behind that axis."""
    axes = (1, 0, *range(2, rank_of(xs[0], op)))
    return F.transpose(op.raw(F.transpose(xs[0], axes=axes), **params), axes=axes)


op(
    "sum_over_ranks",
    _sum_kernel,
    gradients={"x": lambda g: F.sum_over_ranks(g)},
    infer=same_spec,
    batch="elementwise",
    jvp="linear",
    kind=UnaryOp,
    doc="""Return the sum of all ranks' arrays, the same on each.""",
)
op(
    "share_of_ranks",
    _share_kernel,
    gradients={"x": lambda g: F.share_of_ranks(g)},
    infer=same_spec,
    batch="elementwise",
    jvp="linear",
    doc="""Return ``x`` divided by the number of ranks.""",
)
op(
    "rows_of_ranks",
    _gather_kernel,
    gradients={"x": lambda g: F.rows_summed_over_ranks(g)},
    infer=_any_rows,
    batch=_hidden_second,
    jvp="linear",
    doc="""Return the rows of all ranks, concatenated in the order of ranks.""",
)
op(
    "rows_summed_over_ranks",
    _scatter_kernel,
    gradients={"x": lambda g: F.rows_of_ranks(g)},
    infer=_any_rows,
    batch=_hidden_second,
    jvp="linear",
    doc="""Return this rank's rows of the sum over ranks.""",
)
op(
    "value_of_rank",
    _broadcast_kernel,
    gradients={"x": lambda g, root: F.kept_on_rank(F.sum_over_ranks(g), root=root)},
    infer=same_spec,
    batch="elementwise",
    jvp="linear",
    doc="""Return one rank's array on all ranks.""",
)
op(
    "kept_on_rank",
    _at_kernel,
    gradients={"x": lambda g, root: F.kept_on_rank(g, root=root)},
    infer=same_spec,
    batch="elementwise",
    jvp="linear",
    doc="""Return ``x`` on one rank, and zeros on the others.""",
)


@_named
def all_reduce(x: Any, reduction: str = "sum") -> Tensor:
    """Return the sum, or another reduction, of the tensors of all ranks.

    Parameters
    ----------
    x
        A tensor of numbers, of the same shape and dtype on every rank.
    reduction
        ``"sum"`` (the default), ``"mean"``, ``"max"``, ``"min"`` or ``"prod"``, of each element
        over the ranks.

    Returns
    -------
    A tensor of the shape and dtype of ``x``, the same on all ranks; ``x`` itself in a group of one.

    Raises
    ------
    TypeError
        If ``x`` is boolean, or if you average integers.
    ValueError
        If ``reduction`` is none of these.
    DistributedError
        If ranks call different collectives, or pass different shapes or dtypes.

    Notes
    -----
    The gradient is that of the sum of all ranks' targets: each rank gets the sum (or mean) of the
    upstream gradients. ``"max"``, ``"min"`` and ``"prod"`` need memory for the tensors of all
    ranks.

    Examples
    --------
    >>> gt.distributed.all_reduce(gt.constant([1.0, 2.0])).tolist()  # in a group of one
    [1.0, 2.0]
    """
    check_by_rank("all_reduce")
    x = as_tensor(x)
    if reduction not in REDUCTIONS:
        raise ValueError(f"reduction must be one of {', '.join(REDUCTIONS)}; got {reduction!r}")
    if x.dtype.kind == "b":
        raise TypeError("x is boolean; cast it to integers to count, or to 0.0 and 1.0")
    if reduction == "sum":
        return ops["sum_over_ranks"](x)
    if reduction == "mean":
        if x.dtype.kind not in "fc":
            raise TypeError(f"the mean of {x.dtype} is not of that dtype; cast x to a float")
        wide = x.astype("float32") if x.dtype == np.float16 else x  # the sum may be too large
        return ops["share_of_ranks"](ops["sum_over_ranks"](wide)).astype(x.dtype)
    # products of small integers keep their dtype, as sums do
    return ops[reduction](all_gather(x), axis=0).astype(x.dtype)


@_named
def all_gather(x: Any, axis: int | None = None) -> Tensor:
    """Return the tensors of all ranks, stacked or concatenated.

    Parameters
    ----------
    x
        A tensor, of the same shape and dtype on every rank.
    axis
        The axis along which they are concatenated. By default they are stacked along a new first
        axis.

    Returns
    -------
    A tensor of shape ``(size, *x.shape)``, or ``size`` times as long along ``axis``. It is the same
    on all ranks.

    Raises
    ------
    numpy.exceptions.AxisError
        If ``axis`` is out of range.
    DistributedError
        If ranks call different collectives, or pass different shapes or dtypes.

    Notes
    -----
    In a trace the size along that axis is unknown, so one graph serves any number of ranks.

    Examples
    --------
    >>> gt.distributed.all_gather(gt.constant([1.0, 2.0])).shape  # in a group of one
    (1, 2)
    """
    check_by_rank("all_gather")
    x = as_tensor(x)
    if axis is None:
        return ops["rows_of_ranks"](ops["expand_dims"](x, axis=(0,)))
    return _along(x, axis, "rows_of_ranks", "all_gather")


@_named
def reduce_scatter(x: Any, axis: int = 0) -> Tensor:
    """Return this rank's part of the sum of all ranks' tensors.

    Parameters
    ----------
    x
        A tensor of numbers, of the same shape and dtype on every rank.
    axis
        The axis that is split into one equal part per rank; the first by default.

    Returns
    -------
    A tensor of dtype ``x.dtype`` with one part of that axis: the first on rank 0, and so on.

    Raises
    ------
    TypeError
        If ``x`` is boolean.
    ValueError
        If the size of the axis is not divisible by the number of ranks.
    DistributedError
        If ranks call different collectives, or pass different shapes or dtypes.

    Examples
    --------
    >>> gt.distributed.reduce_scatter(gt.constant([1.0, 2.0])).tolist()  # in a group of one
    [1.0, 2.0]
    """
    check_by_rank("reduce_scatter")
    x = as_tensor(x)
    if x.dtype.kind == "b":
        raise TypeError("x is boolean; cast it to integers to count, or to 0.0 and 1.0")
    return _along(x, axis, "rows_summed_over_ranks", "reduce_scatter")


@_named
def broadcast(x: Any, root: int = 0) -> Tensor:
    """Return one rank's tensor on all ranks.

    Parameters
    ----------
    x
        A tensor, of the same shape and dtype on every rank.
    root
        The rank whose tensor is sent; 0 by default.

    Returns
    -------
    A tensor of the shape and dtype of ``x``.

    Raises
    ------
    ValueError
        If ``root`` is not a rank.
    DistributedError
        If ranks call different collectives, or pass different shapes or dtypes.

    Examples
    --------
    >>> gt.distributed.broadcast(gt.constant([1.0, 2.0])).tolist()  # in a group of one
    [1.0, 2.0]
    """
    check_by_rank("broadcast")
    return ops["value_of_rank"](as_tensor(x), root=operator.index(root))


@_named
def barrier() -> None:
    """Wait until every rank has called this.

    Raises
    ------
    TraceError
        In a trace: it would wait only once, while tracing.
    DistributedError
        If another rank calls a different collective.

    Examples
    --------
    >>> gt.distributed.barrier()
    """
    check_by_rank("barrier")
    if active_graph.get() is not None:
        raise TraceError(
            "distributed.barrier: in a trace it would wait only once, while tracing. Call it "
            "outside, or use a collective such as all_reduce, which waits as well"
        )
    compared("barrier", np.empty(0))
    communicator().barrier()


def _along(x: Tensor, axis: int, name: str, caller: str) -> Tensor:
    """Apply an op of the first axis to another axis."""
    axis = one_axis(axis, caller)
    if x.array.shape is not None:
        (axis,) = reduced_axes(axis, len(x.array.shape), caller)
    if axis == 0:
        return ops[name](x)
    moved = ops[name](ops["moveaxis"](x, source=axis, destination=0))
    return ops["moveaxis"](moved, source=0, destination=axis)

"""Collectives: sums and means over ranks, gathering, scattering, broadcasting."""

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

__all__ = ["all_gather", "all_reduce", "barrier", "broadcast", "reduce_scatter"]

#: The reductions of :func:`all_reduce`; those after the mean are taken of what is gathered.
REDUCTIONS = ("sum", "mean", "max", "min", "prod")
_named = named_in("distributed")


def _host(x: Any) -> Any:
    """Return an array as engines take it: in host memory, in C order."""
    if type(x) is np.ndarray and x.flags.c_contiguous:
        return x
    return np.ascontiguousarray(to_numpy(x)).reshape(x.shape)


def _back(found: Any, like: Any) -> Any:
    """Return what an engine gave on the backend and device of ``like``."""
    if type(like) is np.ndarray:
        return found
    owner = backend_of(like)
    return owner.asarray(found, device=owner.device(like))


def _sum_of(rows: Any) -> Any:
    """Return the sum of all ranks' arrays as engines give it: halves are summed as singles."""
    dtype = rows.dtype if rows.dtype != np.float16 else np.dtype(np.float32)
    out = np.empty(rows.shape[1:], dtype)
    with np.errstate(all="ignore"):
        np.add.reduce(rows, 0, dtype, out)
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
            f"reduce_scatter: axis 0 of size {x.shape[0]} does not divide by {group.size} ranks"
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
        raise ValueError(f"broadcast: there is no rank {root}; there are {group.size}")
    if group.size == 1:
        return x
    return _back(group.broadcast(host, root) if rows is None else rows[root].copy(), x)


def _at_kernel(xp: Any, x: Any, *, root: int = 0) -> Any:
    return x if communicator().rank == root else xp.zeros_like(x)


def _share_kernel(xp: Any, x: Any) -> Any:
    size = communicator().size
    return x if size == 1 else x / size


def _any_rows(x: TensorSpec) -> tuple[Any, Any]:
    """Return a shape whose first size depends on how many ranks there are when it runs."""
    return (None if x.shape is None else (None, *x.shape[1:])), x.dtype


def _hidden_second(op: Any, xs: list[Any], batched: list[bool], params: dict[str, Any]) -> Any:
    """Batch an op along the first axis: it needs the examples behind it."""
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
    doc="""Return the rows of all ranks, one rank's behind another's.""",
)
op(
    "rows_summed_over_ranks",
    _scatter_kernel,
    gradients={"x": lambda g: F.rows_of_ranks(g)},
    infer=_any_rows,
    batch=_hidden_second,
    jvp="linear",
    doc="""Return this rank's part of the rows of the sum over ranks.""",
)
op(
    "value_of_rank",
    _broadcast_kernel,
    gradients={"x": lambda g, root: F.kept_on_rank(F.sum_over_ranks(g), root=root)},
    infer=same_spec,
    batch="elementwise",
    jvp="linear",
    doc="""Return the array of one rank on all of them.""",
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
    """Return the sum, or another reduction, of the tensors of all ranks, the same on each.

    Parameters
    ----------
    x
        A tensor of numbers, of the same shape and dtype on every rank.
    reduction
        ``"sum"`` (the default), ``"mean"``, ``"max"``, ``"min"`` or ``"prod"``, of each element
        over the ranks.

    Returns
    -------
    A tensor of the shape and dtype of ``x``; ``x`` itself in a group of one.

    Raises
    ------
    TypeError
        If ``x`` is boolean, or is to be averaged and holds integers.
    ValueError
        If there is no such reduction.
    DistributedError
        If ranks call different collectives, or with other shapes or dtypes.

    Notes
    -----
    The gradient is that of the sum of all ranks' targets: each rank gets the sum (or mean) of the
    upstream gradients. Extremes and products need the memory of all ranks' tensors.

    Examples
    --------
    >>> gt.distributed.all_reduce(gt.constant([1.0, 2.0])).tolist()  # in a group of one
    [1.0, 2.0]
    """
    check_by_rank("all_reduce")
    x = as_tensor(x)
    if reduction not in REDUCTIONS:
        raise ValueError(f"reduction is one of {', '.join(REDUCTIONS)}, got {reduction!r}")
    if x.dtype.kind == "b":
        raise TypeError("x is boolean; cast it to integers to count, or to 0.0 and 1.0")
    if reduction == "sum":
        return ops["sum_over_ranks"](x)
    if reduction == "mean":
        if x.dtype.kind not in "fc":
            raise TypeError(f"the mean of dtype {x.dtype} is no number of it; cast x to a float")
        wide = x.astype("float32") if x.dtype == np.float16 else x  # the sum may be too large
        return ops["share_of_ranks"](ops["sum_over_ranks"](wide)).astype(x.dtype)
    # products of small integers are not wider here than their sums are
    return ops[reduction](all_gather(x), axis=0).astype(x.dtype)


@_named
def all_gather(x: Any, axis: int | None = None) -> Tensor:
    """Return the tensors of all ranks, the same on each.

    Parameters
    ----------
    x
        A tensor, of the same shape and dtype on every rank.
    axis
        The axis along which they are joined; by default they are stacked in a new first axis.

    Returns
    -------
    A tensor of shape ``(size, *x.shape)``, or with ``size`` times as much along ``axis``.

    Raises
    ------
    numpy.exceptions.AxisError
        If there is no such axis.
    DistributedError
        If ranks call different collectives, or with other shapes or dtypes.

    Notes
    -----
    In a trace the size along that axis is unknown: a graph serves any number of ranks.

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
        The axis that is cut into as many equal parts as there are ranks; the first by default.

    Returns
    -------
    A tensor of dtype ``x.dtype``, with a part of that axis: the first for rank 0, and so on.

    Raises
    ------
    TypeError
        If ``x`` is boolean.
    ValueError
        If the size of the axis does not divide by the number of ranks.
    DistributedError
        If ranks call different collectives, or with other shapes or dtypes.

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
    """Return the tensor of one rank on all of them.

    Parameters
    ----------
    x
        A tensor, of the same shape and dtype on every rank.
    root
        The rank whose tensor it is; 0 by default.

    Returns
    -------
    A tensor of the shape and dtype of ``x``.

    Raises
    ------
    ValueError
        If there is no such rank.
    DistributedError
        If ranks call different collectives, or with other shapes or dtypes.

    Examples
    --------
    >>> gt.distributed.broadcast(gt.constant([1.0, 2.0])).tolist()  # in a group of one
    [1.0, 2.0]
    """
    check_by_rank("broadcast")
    return ops["value_of_rank"](as_tensor(x), root=operator.index(root))


@_named
def barrier() -> None:
    """Wait until every rank is here.

    Raises
    ------
    TraceError
        In a trace, which would wait once.
    DistributedError
        If another rank calls a collective instead.

    Examples
    --------
    >>> gt.distributed.barrier()
    """
    check_by_rank("barrier")
    if active_graph.get() is not None:
        raise TraceError(
            "distributed.barrier: a trace runs it once, when it is made; call it outside, or let "
            "the ranks wait for each other by a collective"
        )
    compared("barrier", np.empty(0))
    communicator().barrier()


def _along(x: Tensor, axis: int, name: str, caller: str) -> Tensor:
    """Run an op of the first axis on another one."""
    axis = one_axis(axis, caller)
    if x.array.shape is not None:
        (axis,) = reduced_axes(axis, len(x.array.shape), caller)
    if axis == 0:
        return ops[name](x)
    moved = ops[name](ops["moveaxis"](x, source=axis, destination=0))
    return ops["moveaxis"](moved, source=0, destination=axis)

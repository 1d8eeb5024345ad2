"""Pooling over windows, channels last, for any number of spatial axes.

The average is linear, and so is the maximum once the positions of the largest elements are known.
Gradients of every order are sums into the positions of the windows, or picks from them.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator
from typing import Any

import numpy as np

from ....core.extend import NONDIFF, F, Op, Tensor, as_tensor, floats, kind_of
from ..common.axes import merged, split_first, together
from ..common.dynamic_shapes import empty
from ..common.kernels import at_hand, in_float32, put
from ..common.op_builders import named, op
from .windows import Padding, Sizes, Windows, as_padding, of_rank, per_axis, window_counts


def pool_windows(x: Any, window: Sizes, strides: Sizes, padding: Padding) -> Windows:
    """Return the windows on images of the shape of ``x``."""
    return Windows(x.shape[1:-1], window, strides, padding, (1,) * len(window))


def _pool_shape(name: str, x: Any, window: Sizes, strides: Sizes, padding: Padding) -> Any:
    if x is None:
        return None
    if len(x) != len(window) + 2:
        raise ValueError(
            f"{name}: windows of {len(window)} axes do not fit images of shape {x}: "
            "(batch, spatial axes, channels)"
        )
    if empty(window):
        raise ValueError(f"{name}: windows must be positive integers, got {window}")
    settings = {"strides": strides, "padding": padding, "dilations": (1,) * len(window)}
    return (x[0], *window_counts(x[1:-1], window, settings), x[-1])


def checked_windows(name: str, x: Any, window: Sizes, strides: Sizes, padding: Padding) -> Windows:
    """Return the windows on images of the shape of ``x``; raise if they do not fit."""
    _pool_shape(name, x.shape, window, strides, padding)
    return pool_windows(x, window, strides, padding)


def _pool_rule(op: Op, xs: list[Any], batched: list[bool], params: dict[str, Any]) -> Any:
    """Batching rule of ops that process each image separately."""
    xs = together(xs, batched)
    return split_first(op.raw(*[merged(x, op) for x in xs], **params), xs[0], op)


def _lowest(xp: Any, dtype: Any) -> Any:
    """Return the smallest value of a dtype."""
    return -np.inf if kind_of(dtype) == "f" else xp.iinfo(dtype).min


def max_pool_kernel(xp: Any, x: Any, *, window: Sizes, strides: Sizes, padding: Padding) -> Any:
    """Return the largest element of each window."""
    where = checked_windows("max_pool", x, window, strides, padding)
    x = where.padded(xp, x, _lowest(xp, x.dtype))
    largest = None
    for _, part in where.parts():
        seen = x[(slice(None), *part, slice(None))]
        largest = seen if largest is None else xp.maximum(largest, seen)
    return largest


def _firsts(xp: Any, x: Any, out: Any, where: Windows) -> Iterator[tuple[Any, Any]]:
    """Give the index of each window position, and where the first largest element is there."""
    x = where.padded(xp, x, _lowest(xp, x.dtype))
    free = xp.ones(out.shape, dtype=xp.bool)
    some_nan = at_hand(xp.any(out != out), unknown=True)
    for _, part in where.parts():
        at = (slice(None), *part, slice(None))
        same = x[at] == out
        if some_nan:  # nan is the largest in its windows, and equals nothing
            same = xp.logical_or(same, x[at] != x[at])
        hit = xp.logical_and(same, free)
        free = xp.logical_and(free, xp.logical_not(hit))
        yield at, hit


@functools.partial(in_float32, ignored=("x", "largest"))
def max_scatter_kernel(
    xp: Any, g: Any, x: Any, largest: Any, *, window: Sizes, strides: Sizes, padding: Padding
) -> Any:
    """Add ``g`` at the positions of the first largest elements."""
    where = pool_windows(x, window, strides, padding)
    total = xp.zeros((x.shape[0], *where.padded_sizes, x.shape[-1]), dtype=g.dtype)
    nothing = xp.zeros_like(g)
    for at, hit in _firsts(xp, x, largest, where):
        total = put(total, at, xp.where(hit, g, nothing), add=True)
    return total[where.inside]


def _max_gather(
    xp: Any, d: Any, x: Any, largest: Any, *, window: Sizes, strides: Sizes, padding: Padding
) -> Any:
    where = pool_windows(x, window, strides, padding)
    d = where.padded(xp, d)
    picked = xp.zeros(largest.shape, dtype=d.dtype)
    for at, hit in _firsts(xp, x, largest, where):
        picked = xp.where(hit, d[at], picked)
    return picked


_max_pool = op(
    "max_pool",
    max_pool_kernel,
    gradients={
        "x": lambda g, x, out, window, strides, padding: F.max_pool_scatter(
            g, x, out, window=window, strides=strides, padding=padding
        ),
    },
    infer=lambda x, window, strides, padding: (
        _pool_shape("max_pool", x.shape, window, strides, padding),
        x.dtype,
    ),
    batch=_pool_rule,
    doc="Return the largest element of each window.",
)
op(
    "max_pool_scatter",
    max_scatter_kernel,
    gradients={
        "g": lambda g, x, largest, window, strides, padding: F.max_pool_gather(
            g, x, largest, window=window, strides=strides, padding=padding
        ),
        "x": NONDIFF,
        "largest": NONDIFF,
    },
    infer=lambda g, x, largest, window, strides, padding: (x.shape, g.dtype),
    batch=_pool_rule,
    ends_gradients=True,
    doc="Add ``g`` at the positions where ``max_pool`` found the largest elements of ``x``.",
)
op(
    "max_pool_gather",
    _max_gather,
    gradients={
        "d": lambda g, x, largest, window, strides, padding: F.max_pool_scatter(
            g, x, largest, window=window, strides=strides, padding=padding
        ),
        "x": NONDIFF,
        "largest": NONDIFF,
    },
    infer=lambda d, x, largest, window, strides, padding: (largest.shape, d.dtype),
    batch=_pool_rule,
    ends_gradients=True,
    doc="Pick ``d`` at the positions where ``max_pool`` found the largest elements of ``x``.",
)


def _counts(xp: Any, where: Windows, like: Any) -> Any:
    """Return the number of elements in each window that are not padding."""
    total = np.ones((1,) * (len(where.sizes) + 2))
    for i, n in enumerate(where.sizes):
        one = np.zeros(n + sum(where.pads[i]))
        one[where.pads[i][0] : where.pads[i][0] + n] = 1
        starts = np.arange(where.out[i]) * where.strides[i]
        along = [one[start : start + where.kernel[i]].sum() for start in starts]
        total = total * np.reshape(along, [-1 if j == i + 1 else 1 for j in range(total.ndim)])
    return xp.asarray(np.maximum(total, 1), dtype=like.dtype)


@in_float32
def avg_pool_kernel(xp: Any, x: Any, *, window: Sizes, strides: Sizes, padding: Padding) -> Any:
    """Return the mean of each window."""
    where = checked_windows("avg_pool", x, window, strides, padding)
    padded = where.padded(xp, x)
    total = xp.zeros((x.shape[0], *where.out, x.shape[-1]), dtype=x.dtype)
    for _, part in where.parts():
        total += padded[(slice(None), *part, slice(None))]
    return total / _counts(xp, where, x)


@in_float32
def avg_scatter_kernel(
    xp: Any, g: Any, like: Any, *, window: Sizes, strides: Sizes, padding: Padding
) -> Any:
    """Distribute ``g`` over the elements of each window."""
    where = pool_windows(like, window, strides, padding)
    total = xp.zeros((like.shape[0], *where.padded_sizes, like.shape[-1]), dtype=g.dtype)
    share = g / _counts(xp, where, g)
    for _, part in where.parts():
        total = put(total, (slice(None), *part, slice(None)), share, add=True)
    return total[where.inside]


_avg_pool = op(
    "avg_pool",
    avg_pool_kernel,
    gradients={
        "x": lambda g, x_like, window, strides, padding: F.avg_pool_scatter(
            g, x_like, window=window, strides=strides, padding=padding
        ),
    },
    infer=lambda x, window, strides, padding: (
        _pool_shape("avg_pool", x.shape, window, strides, padding),
        x.dtype,
    ),
    batch=_pool_rule,
    floating=True,
    jvp="linear",
    doc="Return the mean of each window.",
)
op(
    "avg_pool_scatter",
    avg_scatter_kernel,
    gradients={
        "g": lambda g, window, strides, padding: F.avg_pool(
            g, window=window, strides=strides, padding=padding
        ),
        "like": NONDIFF,
    },
    infer=lambda g, like, window, strides, padding: (like.shape, g.dtype),
    batch=_pool_rule,
    jvp="linear",
    doc="Distribute ``g`` over the elements that ``avg_pool`` averaged.",
)


# -- what users call -------------------------------------------------------------------------------


def _pooled(pool: Any, kinds: str, x: Any, window: Any, strides: Any, padding: Any) -> Any:
    x, name = as_tensor(x), pool.name
    given = len(window) if np.ndim(window) else 0
    count = given if x.shape is None else len(x.shape) - 2
    if count < 1:
        raise ValueError(
            f"{name}: images must be (batch, spatial axes, channels), got shape {x.shape}"
        )
    if x.dtype.kind not in kinds:
        raise TypeError(f"{name}: cannot pool images of dtype {x.dtype}; cast them to a float")
    sizes = per_axis(window, count, "windows", name)
    return pool(
        x,
        window=sizes,
        strides=sizes if strides is None else per_axis(strides, count, "strides", name),
        padding=as_padding(padding, count, name),
    )


@named
def max_pool(x: Any, window: Any, strides: Any = None, padding: Any = "valid") -> Tensor:
    """Return the largest element of each window.

    Parameters
    ----------
    x
        Images ``(batch, *spatial, channels)`` of real numbers.
    window
        The windows' size: one number, or one per spatial axis.
    strides
        The distance between windows; their size by default.
    padding
        As for :func:`conv`, ``"valid"`` by default; padding is never the largest.

    Returns
    -------
    A tensor of shape ``(batch, *windows, channels)`` and the dtype of ``x``.

    Raises
    ------
    TypeError
        If the images are complex or boolean, or a size is not an integer.
    ValueError
        If there is not one window size per spatial axis, or a setting is wrong. Windows larger
        than the images are none: the result is empty. Layers refuse them.

    Notes
    -----
    Among equal elements, the first one gets the gradient.

    References
    ----------
    Goodfellow, Bengio and Courville, "Deep learning", 2016, section 9.3.

    Examples
    --------
    >>> x = gt.reshape(gt.arange(16.0), (1, 4, 4, 1))
    >>> gt.nn.max_pool(x, 2)[0, :, :, 0].tolist()
    [[5.0, 7.0], [13.0, 15.0]]
    """
    return _pooled(_max_pool, "fiu", x, window, strides, padding)


@named
def avg_pool(x: Any, window: Any, strides: Any = None, padding: Any = "valid") -> Tensor:
    """Return the mean of each window; padding is not counted.

    Parameters
    ----------
    x
        Floating or complex images ``(batch, *spatial, channels)``.
    window
        The windows' size: one number, or one per spatial axis.
    strides
        The distance between windows; their size by default.
    padding
        As for :func:`conv`, ``"valid"`` by default.

    Returns
    -------
    A tensor of shape ``(batch, *windows, channels)`` and the dtype of ``x``.

    Raises
    ------
    TypeError
        If the images are integers or boolean, or a size is not an integer.
    ValueError
        If there is not one window size per spatial axis, or a setting is wrong. Windows larger
        than the images are none: the result is empty. Layers refuse them.

    References
    ----------
    Goodfellow, Bengio and Courville, "Deep learning", 2016, section 9.3.

    Examples
    --------
    >>> x = gt.reshape(gt.arange(16.0), (1, 4, 4, 1))
    >>> gt.nn.avg_pool(x, 2)[0, :, :, 0].tolist()
    [[2.5, 4.5], [10.5, 12.5]]
    """
    (x,) = floats(x)
    return _pooled(_avg_pool, "fc", x, window, strides, padding)


@named
def max_pool1d(x: Any, window: Any, strides: Any = None, padding: Any = "valid") -> Tensor:
    """Return the largest element of each window of ``(batch, size, channels)``.

    Parameters
    ----------
    x
        Images ``(batch, size, channels)`` of real numbers.
    window
        The windows' size: one number.
    strides
        The distance between windows; their size by default.
    padding
        As for :func:`gradtape.nn.conv`, ``"valid"`` by default; padding is never the largest.

    Returns
    -------
    A tensor of shape ``(batch, windows, channels)`` and the dtype of ``x``.

    Raises
    ------
    TypeError
        If the images are complex or boolean, or a size is not an integer.
    ValueError
        If the images do not have 3 axes, or a setting is wrong.

    Notes
    -----
    Among equal elements, the first one gets the gradient.

    See Also
    --------
    gradtape.nn.max_pool : For any number of spatial axes.

    Examples
    --------
    >>> x = gt.reshape(gt.arange(6.0), (1, 6, 1))
    >>> gt.nn.max_pool1d(x, 2)[0, :, 0].tolist()
    [1.0, 3.0, 5.0]
    """
    return max_pool(of_rank(x, 3, "max_pool1d"), window, strides, padding)


@named
def max_pool2d(x: Any, window: Any, strides: Any = None, padding: Any = "valid") -> Tensor:
    """Return the largest element of each window of ``(batch, height, width, channels)``.

    Parameters
    ----------
    x
        Images ``(batch, height, width, channels)`` of real numbers.
    window
        The windows' size: one number, or ``(height, width)``.
    strides
        The distance between windows; their size by default.
    padding
        As for :func:`gradtape.nn.conv`, ``"valid"`` by default; padding is never the largest.

    Returns
    -------
    A tensor of shape ``(batch, rows, columns, channels)`` and the dtype of ``x``.

    Raises
    ------
    TypeError
        If the images are complex or boolean, or a size is not an integer.
    ValueError
        If the images do not have 4 axes, or a setting is wrong.

    Notes
    -----
    Among equal elements, the first one gets the gradient.

    See Also
    --------
    gradtape.nn.max_pool : For any number of spatial axes.

    Examples
    --------
    >>> x = gt.reshape(gt.arange(16.0), (1, 4, 4, 1))
    >>> gt.nn.max_pool2d(x, 2)[0, :, :, 0].tolist()
    [[5.0, 7.0], [13.0, 15.0]]
    """
    return max_pool(of_rank(x, 4, "max_pool2d"), window, strides, padding)


@named
def avg_pool1d(x: Any, window: Any, strides: Any = None, padding: Any = "valid") -> Tensor:
    """Return the mean of each window of ``(batch, size, channels)``.

    Padding is not counted.

    Parameters
    ----------
    x
        Images ``(batch, size, channels)`` of floating or complex numbers.
    window
        The windows' size: one number.
    strides
        The distance between windows; their size by default.
    padding
        As for :func:`gradtape.nn.conv`, ``"valid"`` by default.

    Returns
    -------
    A tensor of shape ``(batch, windows, channels)`` and the dtype of ``x``.

    Raises
    ------
    TypeError
        If the images are integers or boolean, or a size is not an integer.
    ValueError
        If the images do not have 3 axes, or a setting is wrong.

    See Also
    --------
    gradtape.nn.avg_pool : For any number of spatial axes.

    Examples
    --------
    >>> x = gt.reshape(gt.arange(6.0), (1, 6, 1))
    >>> gt.nn.avg_pool1d(x, 2)[0, :, 0].tolist()
    [0.5, 2.5, 4.5]
    """
    return avg_pool(of_rank(x, 3, "avg_pool1d"), window, strides, padding)


@named
def avg_pool2d(x: Any, window: Any, strides: Any = None, padding: Any = "valid") -> Tensor:
    """Return the mean of each window of ``(batch, height, width, channels)``.

    Padding is not counted.

    Parameters
    ----------
    x
        Images ``(batch, height, width, channels)`` of floating or complex numbers.
    window
        The windows' size: one number, or ``(height, width)``.
    strides
        The distance between windows; their size by default.
    padding
        As for :func:`gradtape.nn.conv`, ``"valid"`` by default.

    Returns
    -------
    A tensor of shape ``(batch, rows, columns, channels)`` and the dtype of ``x``.

    Raises
    ------
    TypeError
        If the images are integers or boolean, or a size is not an integer.
    ValueError
        If the images do not have 4 axes, or a setting is wrong.

    See Also
    --------
    gradtape.nn.avg_pool : For any number of spatial axes.

    Examples
    --------
    >>> x = gt.reshape(gt.arange(16.0), (1, 4, 4, 1))
    >>> gt.nn.avg_pool2d(x, 2)[0, :, :, 0].tolist()
    [[2.5, 4.5], [10.5, 12.5]]
    """
    return avg_pool(of_rank(x, 4, "avg_pool2d"), window, strides, padding)

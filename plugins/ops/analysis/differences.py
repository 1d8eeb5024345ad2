"""Differences between adjacent elements, slopes on a grid, and angles without jumps."""

from __future__ import annotations

from typing import Any

import numpy as np

from ....core.extend import NONDIFF, F, Size, Tensor, as_tensor, is_open, largest, on_device_of, ops
from ..common.axes import along, as_axis, axis_of, part_of, reduced_axes
from ..common.dynamic_shapes import ensured, fixed, known_rank, needs_axes
from ..common.kernels import as_floating, put
from ..common.op_builders import named, op
from ..reductions.sums import start_of
from ..shapes.joining import edge_values

LATER, EARLIER = slice(1, None), slice(None, -1)


def _along(rank: int, axis: int, part: slice) -> tuple[Any, ...]:
    return (*(slice(None),) * (axis % rank), part, ...)


def _difference_kernel(xp: Any, x: Any, *, axis: int) -> Any:
    reduced_axes(axis, x.ndim, "difference")
    return x[_along(x.ndim, axis, LATER)] - x[_along(x.ndim, axis, EARLIER)]


def _difference_adjoint(xp: Any, g: Any, like: Any, *, axis: int) -> Any:
    out = xp.zeros(like.shape, dtype=g.dtype)
    if 0 not in g.shape:  # of no or one element there are no differences
        out = put(out, _along(g.ndim, axis, LATER), g)
        out = put(out, _along(g.ndim, axis, EARLIER), -g, add=True)
    return out


def _shorter(size: Any) -> Any:
    return None if size is None else largest(0, size - 1)


def _difference_spec(x: Any, *, axis: int) -> tuple[Any, Any]:
    if x.shape is None:
        return None, x.dtype
    (along,) = reduced_axes(axis, len(x.shape), "difference")
    return tuple(_shorter(n) if i == along else n for i, n in enumerate(x.shape)), x.dtype


_difference = op(
    "difference",
    _difference_kernel,
    gradients={"x": lambda g, x_like, axis: F.difference_adjoint(g, x_like, axis=axis)},
    infer=_difference_spec,
    holomorphic=True,
    batch=along("axis"),
    jvp="linear",
    doc="Return the differences between adjacent elements along an axis.",
)
op(
    "difference_adjoint",
    _difference_adjoint,
    gradients={"g": lambda g, axis: F.difference(g, axis=axis), "like": NONDIFF},
    infer=lambda g, like, axis: (like.shape, g.dtype),
    holomorphic=True,
    batch=along("axis"),
    jvp="linear",
    doc="Add ``g`` to the later of two adjacent elements, and subtract it from the earlier.",
)


def steps_between(x: Any, axis: int) -> Any:
    if x.dtype.kind == "b":
        return ops["not_equal"](part_of(x, axis, LATER), part_of(x, axis, EARLIER))
    return _difference(x, axis=axis)


@named
def diff(x: Any, n: int = 1, axis: int = -1, prepend: Any = None, append: Any = None) -> Tensor:
    """Return the differences between adjacent elements along an axis.

    Parameters
    ----------
    x
        A tensor of at least one axis.
    n
        How often to take differences, once by default.
    axis
        The axis of the differences; the last by default.
    prepend, append
        Values to add before and after ``x`` first: numbers, or tensors that match except for the
        size of ``axis``.

    Returns
    -------
    A tensor of the dtype of ``x``, promoted with those of ``prepend`` and ``append``, with ``axis``
    shorter by ``n``. For booleans, whether adjacent elements differ.

    Raises
    ------
    ValueError
        If ``n`` is negative, ``x`` has no axes, or ``prepend`` or ``append`` does not match.

    Examples
    --------
    >>> gt.diff(gt.constant([1.0, 4.0, 9.0])).tolist()
    [3.0, 5.0]
    >>> gt.diff(gt.constant([1.0, 4.0, 9.0]), n=2).tolist()
    [2.0]
    """
    times = fixed(n, "diff", "n")
    if times < 0:
        raise ValueError(f"diff: n must be at least 0, got {n}")
    if times == 0:
        return as_tensor(x)
    x = needs_axes(x, 1, "diff")
    along = axis_of(x, axis, "diff")
    parts = [edge_values(prepend, x, along), x, edge_values(append, x, along)]
    parts = [part for part in parts if part is not None]
    if len(parts) > 1:
        x = ops["concatenate"](*parts, axis=along)
    for _ in range(times):
        x = steps_between(x, along)
    return x


@named
def ediff1d(x: Any, to_end: Any = None, to_begin: Any = None) -> Tensor:
    """Return the differences between adjacent elements of the flattened ``x``, with added ends.

    Parameters
    ----------
    x
        A tensor of numbers, of any shape.
    to_end, to_begin
        Values to add after and before the differences: numbers or tensors, which are flattened.
        Gradients reach them.

    Returns
    -------
    A vector of the differences, one less than there are elements, and the added values, of the
    dtype of ``x``.

    Raises
    ------
    TypeError
        If ``x`` is boolean, or the added values are of a higher kind.
    OverflowError
        If an added value is a Python integer that the dtype cannot hold.

    Examples
    --------
    >>> gt.ediff1d(gt.constant([1.0, 4.0, 9.0]), to_begin=0.0).tolist()
    [0.0, 3.0, 5.0]
    """
    steps = _difference(ops["reshape"](as_tensor(x), shape=(-1,)), axis=0)
    ends = [_end_values(y, steps, name) for y, name in ((to_begin, "to_begin"), (to_end, "to_end"))]
    parts = [part for part in (ends[0], steps, ends[1]) if part is not None]
    return ops["concatenate"](*parts, axis=0) if len(parts) > 1 else steps


def _end_values(values: Any, like: Any, name: str) -> Any:
    """Return the values added at an end as a vector, in the dtype of ``like``."""
    if values is None:
        return None
    if type(values) is int and like.dtype.kind in "iu":
        values = start_of(values, like, f"ediff1d: {name}")
    values = on_device_of(values, like)
    if not np.can_cast(values.dtype, like.dtype, "same_kind"):
        raise TypeError(
            f"ediff1d: {name} of dtype {values.dtype} does not fit differences of {like.dtype}"
        )
    return ops["reshape"](ops["cast_like"](values, like), shape=(-1,))


@named
def gradient(x: Any, *varargs: Any, axis: Any = None, edge_order: int = 1) -> Any:
    """Return derivatives of sampled values: central differences inside, one-sided at the ends.

    Parameters
    ----------
    x
        The samples, a tensor of at least one axis.
    varargs
        Their spacing: omitted for 1, one number for all axes, or for each axis a number or a vector
        of coordinates. Gradients reach them.
    axis
        The axis or axes to differentiate along; all by default.
    edge_order
        The order of accuracy at the ends, 1 (the default) or 2.

    Returns
    -------
    A tensor of the shape of ``x``, of its dtype, ``float64`` for integers; for several axes a tuple
    of them.

    Raises
    ------
    ValueError
        If an axis has too few samples, coordinates do not match, or ``edge_order`` is another.
    TypeError
        If the number of spacings is neither 1 nor that of the axes, or ``x`` is boolean.

    Notes
    -----
    The result is second-order accurate for uneven coordinates too, as in NumPy. At a distance of h
    from the sample before and k from the one after, the slope of each side is weighted by the width
    of the other: ``(k * (x[i] - x[i - 1]) / h + h * (x[i + 1] - x[i]) / k) / (h + k)``.

    References
    ----------
    Fornberg, "Generation of finite difference formulas on arbitrarily spaced grids", Mathematics of
    Computation 51, 1988.

    Examples
    --------
    >>> gt.gradient(gt.constant([1.0, 4.0, 9.0, 16.0])).tolist()
    [3.0, 4.0, 6.0, 7.0]
    >>> gt.gradient(gt.constant([1.0, 4.0, 9.0, 16.0]), edge_order=2).tolist()
    [2.0, 4.0, 6.0, 8.0]
    """
    x = needs_axes(x, 1, "gradient")
    if x.dtype.kind == "b":
        raise TypeError("gradient: booleans have no differences; cast with x.astype(dtype)")
    x = as_floating(x)
    given = as_axis(axis, "gradient")
    if x.shape is None and given is not None:
        axes = given if isinstance(given, tuple) else (given,)
    else:
        axes = reduced_axes(given, known_rank(x, "gradient"), "gradient")
    if len(varargs) not in (0, 1, len(axes)):
        raise TypeError(
            f"gradient: {len(varargs)} spacings for {len(axes)} axes; give one, or one for each"
        )
    if edge_order not in (1, 2):
        raise ValueError(f"gradient: edge_order must be 1 or 2, got {edge_order}")
    spacings = [
        h if isinstance(h, (int, float)) else ops["cast_like"](on_device_of(h, x), ops["real"](x))
        for h in varargs or (1.0,)
    ]
    if len(spacings) == 1:
        if getattr(spacings[0], "ndim", 0) and len(axes) > 1:
            raise TypeError(
                "gradient: coordinates of one axis cannot serve several axes; "
                "pass one vector for each"
            )
        spacings = spacings * len(axes)
    slopes = [_slope(x, along, h, edge_order) for along, h in zip(axes, spacings, strict=True)]
    return slopes[0] if isinstance(given, int) or len(slopes) == 1 else tuple(slopes)


def _slope(x: Any, axis: int, spacing: Any, order: int) -> Any:
    size = None if x.shape is None else x.shape[axis]
    enough = size is None or size >= order + 1
    if enough is not True:
        x = ensured(
            x,
            enough,
            f"gradient: at least {order + 1} samples are needed along axis {axis}, "
            f"got shape {x.shape}",
        )
    even = getattr(spacing, "ndim", 0) == 0
    steps = spacing if even else _steps(spacing, x, axis)

    def at(i: int, j: int | None) -> Any:
        return part_of(x, axis, slice(i, j))

    def width(i: int, j: int | None) -> Any:
        return steps if even else part_of(steps, axis, slice(i, j))

    earlier, later = part_of(x, axis, slice(None, -2)), part_of(x, axis, slice(2, None))
    if even:  # without the element itself, which may be nan
        inner = (later - earlier) / (steps + steps)
    else:
        # each side's slope weighs as the width of the other
        before, after = width(0, -1), width(1, None)
        both, gap = before + after, after - before
        own = at(1, -1) * (gap / (before * after))
        unused = ops["logical_and"](gap == 0, ops["logical_not"](ops["isfinite"](at(1, -1))))
        own = ops["where"](unused, 0.0, own)
        inner = later * (before / (after * both)) - earlier * (after / (before * both)) + own
    first = (at(1, 2) - at(0, 1)) / width(0, 1)
    last = (at(-1, None) - at(-2, -1)) / width(-1, None)
    if order == 2:
        # what the slope changes from one side to the other, continued to the end
        h, k = width(0, 1), width(1, 2)
        second = (at(2, 3) - at(1, 2)) / k
        first = first - (second - first) * (h / (h + k))
        h, k = width(-1, None), width(-2, -1)
        second = (at(-2, -1) - at(-3, -2)) / k
        last = last + (last - second) * (h / (h + k))
    slope = ops["concatenate"](first, inner, last, axis=axis)
    return ops["reshape"](slope, shape=x.shape) if is_open(size) else slope


def _steps(coordinates: Any, x: Any, axis: int) -> Any:
    """Return the distances between coordinates along an axis of ``x``."""
    if coordinates.ndim != 1:
        raise ValueError(
            f"gradient: coordinates are a number or a vector, got shape {coordinates.shape}"
        )
    known_rank(x, "gradient")
    coordinates = ensured(
        coordinates,
        coordinates.shape[0] == x.shape[axis],
        f"gradient: {coordinates.shape[0]} coordinates do not fit axis {axis} of {x.shape}",
    )
    shape = tuple(-1 if i == axis else 1 for i in range(x.ndim))
    return ops["reshape"](steps_between(coordinates, 0), shape=shape)


@named
def unwrap(
    p: Any, discont: float | None = None, axis: int = -1, *, period: float = 2 * np.pi
) -> Tensor:
    """Return angles without jumps: adjacent ones differ by at most half a period.

    Parameters
    ----------
    p
        A real tensor of at least one axis, in radians by default. Integers keep their dtype, if the
        period is an integer.
    discont
        Only jumps larger than this are removed; half the period by default, and at least.
    axis
        The axis along which to remove jumps; the last by default.
    period
        The number that is added or subtracted, any number of times; ``2 * pi`` by default.

    Returns
    -------
    Tensor
        A tensor of the shape of ``p``.

    Raises
    ------
    TypeError
        If ``p`` is complex.
    OverflowError
        If its integers cannot hold the period, or are unsigned and cannot hold minus half of it.

    Notes
    -----
    The gradient is that of ``p``: the added periods are constant.

    Examples
    --------
    >>> gt.unwrap(gt.constant([0, 1, 2, 3, 0, 1]), period=4).tolist()
    [0, 1, 2, 3, 4, 5]
    """
    x = as_tensor(p)
    along = axis_of(x, axis, "unwrap") % x.ndim
    if x.dtype.kind == "c":
        raise TypeError(f"unwrap: expected real numbers, got dtype {x.dtype}")
    step = steps_between(ops["stop_gradient"](x), along)
    weak = (1 if isinstance(period, Size) else 1.0) if is_open(period) else period
    dtype = np.result_type(step.dtype, weak)
    whole = dtype.kind in "iu"
    half = period // 2 if whole else period / 2
    jump = period / 2 if discont is None else discont
    if whole and not np.iinfo(dtype).min <= -half <= period <= np.iinfo(dtype).max:
        raise OverflowError(f"unwrap: minus half the period {period} is out of bounds for {dtype}")
    turned = ops["remainder"](step + half, period) - half
    if not (whole and period % 2):  # half a period either way: keep the sign of the step
        turned = ops["where"]((turned == -half) & (step > 0), half, turned)
    change = ops["where"](ops["abs"](step) < jump, 0, turned - step)
    change = ops["cast"](ops["cumsum"](change, axis=along, reverse=False), dtype=dtype.name)
    x = ops["cast"](x, dtype=dtype.name)
    before = ops["zeros_like"](part_of(x, along, slice(0, 1)))
    return x + ops["concatenate"](before, change, axis=along)

"""Differences, integrals, interpolation and weighted means, made of other ops."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

from ....core.extend import NONDIFF, F, Tensor, among, as_tensor, beside, broadcast_shapes, ops
from ..common.axes import as_axis, axis_of, part_of, reduced_axes
from ..common.batching import along
from ..common.dtypes import SCALARS
from ..common.op_builders import named, op
from ..common.ranks import known_rank
from ..indexing.sorting import searchsorted
from ..reductions.scans import cumprod, cumsum

__all__ = [
    "cumulative_prod",
    "cumulative_sum",
    "diff",
    "ediff1d",
    "gradient",
    "interp",
    "trapezoid",
]

LATER, EARLIER = slice(1, None), slice(None, -1)


def floated(x: Any) -> Any:
    x = as_tensor(x)
    return x if x.dtype.kind in "fc" else ops["cast"](x, dtype="float64")


def _needs_axis(x: Any, name: str) -> Any:
    x = as_tensor(x)
    if x.shape == ():
        raise ValueError(f"{name}: at least one axis is needed, got shape ()")
    return x


def _along(rank: int, axis: int, part: slice) -> tuple[Any, ...]:
    return (*(slice(None),) * (axis % rank), part, ...)


def _difference_kernel(xp: Any, x: Any, *, axis: int) -> Any:
    reduced_axes(axis, x.ndim, "difference")
    return x[_along(x.ndim, axis, LATER)] - x[_along(x.ndim, axis, EARLIER)]


def _difference_adjoint(xp: Any, g: Any, like: Any, *, axis: int) -> Any:
    out = xp.zeros(like.shape, dtype=g.dtype)
    if g.size:  # of no or one element there are no differences
        out[_along(g.ndim, axis, LATER)] = g
        out[_along(g.ndim, axis, EARLIER)] -= g
    return out


def _shorter(size: int | None) -> int | None:
    return None if size is None else max(size - 1, 0)


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
    doc="Return the differences between neighbours along an axis.",
)
op(
    "difference_adjoint",
    _difference_adjoint,
    gradients={"g": lambda g, axis: F.difference(g, axis=axis), "like": NONDIFF},
    infer=lambda g, like, axis: (like.shape, g.dtype),
    holomorphic=True,
    batch=along("axis"),
    jvp="linear",
    doc="Add ``g`` to the later, and take it from the earlier, of two neighbours in ``like``.",
)


def _step(x: Any, axis: int) -> Any:
    if x.dtype.kind == "b":
        return ops["not_equal"](part_of(x, axis, LATER), part_of(x, axis, EARLIER))
    return _difference(x, axis=axis)


@named
def diff(x: Any, n: int = 1, axis: int = -1, prepend: Any = None, append: Any = None) -> Tensor:
    """Return the differences between neighbours along an axis.

    Parameters
    ----------
    x
        A tensor of at least one axis.
    n
        How often to take differences, once by default.
    axis
        The axis along which elements are neighbours; the last by default.
    prepend, append
        Values to put before and after ``x`` first: numbers, or tensors that fit but for the size
        of ``axis``.

    Returns
    -------
    A tensor of the dtype of ``x``, with ``axis`` shorter by ``n``. Booleans give whether neighbours
    differ.

    Raises
    ------
    ValueError
        If ``n`` is negative, ``x`` has no axes, or ``prepend`` or ``append`` does not fit.
    numpy.exceptions.AxisError
        If the axis is out of bounds.

    Examples
    --------
    >>> gt.diff(gt.constant([1.0, 4.0, 9.0])).tolist()
    [3.0, 5.0]
    >>> gt.diff(gt.constant([1.0, 4.0, 9.0]), n=2).tolist()
    [2.0]
    """
    times = operator.index(n)
    if times < 0:
        raise ValueError(f"diff: n must be at least 0, got {n}")
    x = _needs_axis(x, "diff")
    along = axis_of(x, axis, "diff")
    parts = [_edge(prepend, x, along), x, _edge(append, x, along)]
    parts = [part for part in parts if part is not None]
    if len(parts) > 1 and times:
        x = ops["concatenate"](*parts, axis=along)
    for _ in range(times):
        x = _step(x, along)
    return x


def _edge(value: Any, x: Any, axis: int) -> Any:
    """Return what goes before or after ``x``; a number is repeated along the other axes."""
    if value is None:
        return None
    if type(value) not in SCALARS:
        value = beside(value, x)
        if value.shape != ():
            return value
    mixed = np.result_type(value if type(value) in SCALARS else value.dtype, x.dtype)
    like = ops["any"](x, axis=axis, keepdims=True)  # of size 1, even where x has no elements
    return ops["broadcast_like"](value, ops["cast"](like, dtype=mixed.name))


@named
def cumulative_sum(
    x: Any, axis: int | None = None, dtype: Any = None, include_initial: bool = False
) -> Tensor:
    """Return the running sum: :func:`gradtape.cumsum` under the array API's name.

    Parameters
    ----------
    x
        A tensor of at least one axis; a number is taken for a vector.
    axis
        The axis to sum along; it may be left out for a vector.
    dtype
        The dtype to sum in, and of the result.
    include_initial
        Put the empty sum, 0, first.

    Returns
    -------
    A tensor of the shape of ``x``, with one element more along ``axis`` if the first is included;
    small integers give NumPy's default integer.

    Raises
    ------
    ValueError
        If there is no axis, and ``x`` is no vector.
    numpy.exceptions.AxisError
        If the axis is out of bounds.

    Examples
    --------
    >>> gt.cumulative_sum(gt.constant([1.0, 2.0, 3.0]), include_initial=True).tolist()
    [0.0, 1.0, 3.0, 6.0]
    """
    return _cumulative("cumsum", "cumulative_sum", x, axis, dtype, 0 if include_initial else None)


@named
def cumulative_prod(
    x: Any, axis: int | None = None, dtype: Any = None, include_initial: bool = False
) -> Tensor:
    """Return the running product: :func:`gradtape.cumprod` under the array API's name.

    Parameters
    ----------
    x
        A tensor of at least one axis; a number is taken for a vector.
    axis
        The axis to multiply along; it may be left out for a vector.
    dtype
        The dtype to multiply in, and of the result.
    include_initial
        Put the empty product, 1, first.

    Returns
    -------
    A tensor of the shape of ``x``, with one element more along ``axis`` if the first is included;
    small integers give NumPy's default integer.

    Raises
    ------
    ValueError
        If there is no axis, and ``x`` is no vector.
    numpy.exceptions.AxisError
        If the axis is out of bounds.

    Examples
    --------
    >>> gt.cumulative_prod(gt.constant([2.0, 3.0, 4.0])).tolist()
    [2.0, 6.0, 24.0]
    """
    first = 1 if include_initial else None
    return _cumulative("cumprod", "cumulative_prod", x, axis, dtype, first)


def _cumulative(op_name: str, name: str, x: Any, axis: Any, dtype: Any, first: Any) -> Any:
    x = as_tensor(x)
    x = ops["reshape"](x, shape=(1,)) if x.shape == () else x  # a number is a vector, for NumPy too
    if axis is None:
        if known_rank(x, name) != 1:
            raise ValueError(f"{name}: an axis is needed for shape {x.shape}")
        axis = 0
    along = axis_of(x, axis, name)
    result = (cumsum if op_name == "cumsum" else cumprod)(x, along, dtype)
    if first is None:
        return result
    return ops["concatenate"](_edge(first, result, along), result, axis=along)


@named
def ediff1d(x: Any, to_end: Any = None, to_begin: Any = None) -> Tensor:
    """Return the differences between neighbours in the flattened ``x``, with more at the ends.

    Parameters
    ----------
    x
        A tensor of numbers, of any shape.
    to_end, to_begin
        What to put after and before the differences: numbers or tensors, which are flattened.
        Gradients reach them.

    Returns
    -------
    A vector of the differences, one less than there are elements, and what was put at the ends.

    Raises
    ------
    TypeError
        If ``x`` is boolean.

    Examples
    --------
    >>> gt.ediff1d(gt.constant([1.0, 4.0, 9.0]), to_begin=0.0).tolist()
    [0.0, 3.0, 5.0]
    """
    steps = _difference(ops["reshape"](as_tensor(x), shape=(-1,)), axis=0)
    ends = [None if y is None else ops["reshape"](y, shape=(-1,)) for y in (to_begin, to_end)]
    parts = [part for part in (ends[0], steps, ends[1]) if part is not None]
    return ops["concatenate"](*parts, axis=0) if len(parts) > 1 else steps


@named
def gradient(x: Any, *varargs: Any, axis: Any = None, edge_order: int = 1) -> Any:
    """Return derivatives of sampled values: central differences inside, one-sided at the ends.

    Parameters
    ----------
    x
        The samples, a tensor of at least one axis.
    varargs
        Their spacing: nothing for 1, one number for all axes, or for each axis a number or a
        vector of coordinates. Gradients reach them.
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
        If an axis has too few samples, coordinates do not fit, or ``edge_order`` is another.
    TypeError
        If the number of spacings is not 1 or that of the axes, or ``x`` is boolean.
    numpy.exceptions.AxisError
        If an axis is out of bounds.

    Notes
    -----
    Second-order accurate for uneven coordinates too, as in NumPy: at a distance of h from the
    sample before and k from the one after, each side's slope weighs as the width of the other,
    ``(k * (x[i] - x[i - 1]) / h + h * (x[i + 1] - x[i]) / k) / (h + k)``.

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
    x = _needs_axis(x, "gradient")
    if x.dtype.kind == "b":
        raise TypeError("gradient: booleans have no differences; cast with x.astype(dtype)")
    x = floated(x)
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
    spacings = [h if isinstance(h, (int, float)) else beside(h, x) for h in varargs or (1.0,)]
    if len(spacings) == 1:
        if getattr(spacings[0], "ndim", 0) and len(axes) > 1:
            raise TypeError("gradient: coordinates for one axis do not serve several; give each")
        spacings = spacings * len(axes)
    slopes = [_slope(x, along, h, edge_order) for along, h in zip(axes, spacings, strict=True)]
    return slopes[0] if isinstance(given, int) or len(slopes) == 1 else tuple(slopes)


def _slope(x: Any, axis: int, spacing: Any, order: int) -> Any:
    size = None if x.shape is None else x.shape[axis]
    if size is not None and size < order + 1:
        raise ValueError(
            f"gradient: at least {order + 1} samples are needed along axis {axis}, "
            f"got shape {x.shape}"
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
    return ops["concatenate"](first, inner, last, axis=axis)


def _steps(coordinates: Any, x: Any, axis: int) -> Any:
    """Return the distances between coordinates along an axis of ``x``."""
    if coordinates.ndim != 1:
        raise ValueError(
            f"gradient: coordinates are a number or a vector, got shape {coordinates.shape}"
        )
    known_rank(x, "gradient")
    if None not in (coordinates.shape[0], x.shape[axis]) and (
        coordinates.shape[0] != x.shape[axis]
    ):
        raise ValueError(
            f"gradient: {coordinates.shape[0]} coordinates do not fit axis {axis} of {x.shape}"
        )
    shape = tuple(-1 if i == axis else 1 for i in range(x.ndim))
    return ops["reshape"](_step(coordinates, 0), shape=shape)


@named
def trapezoid(y: Any, x: Any = None, dx: Any = 1.0, axis: int = -1) -> Tensor:
    """Return the integral of sampled values, by the trapezoidal rule.

    Parameters
    ----------
    y
        The samples, a tensor of at least one axis.
    x
        Where they are: a vector, or a tensor that broadcasts with ``y``; gradients reach it.
    dx
        Their distance, if ``x`` is not given; 1 by default.
    axis
        The axis to integrate along; the last by default.

    Returns
    -------
    A tensor of the shape of ``y`` without the axis, of its dtype; ``float64`` for integers.

    Raises
    ------
    ValueError
        If ``y`` has no axes, or ``x`` does not fit it.
    numpy.exceptions.AxisError
        If the axis is out of bounds.

    Notes
    -----
    It is the sum of ``(x[i + 1] - x[i]) * (y[i + 1] + y[i]) / 2``.

    Examples
    --------
    >>> gt.trapezoid(gt.constant([1.0, 2.0, 3.0])).item()
    4.0
    >>> gt.trapezoid(gt.constant([1.0, 2.0, 3.0]), x=gt.constant([0.0, 1.0, 3.0])).item()
    6.5
    """
    y = _needs_axis(y, "trapezoid")
    along = axis_of(y, axis, "trapezoid")
    width = dx
    if x is not None:
        x = beside(x, y)
        if known_rank(x, "trapezoid") == 1:
            width = _step(x, 0)
            if known_rank(y, "trapezoid") > 1:
                shape = [1] * y.ndim
                shape[along] = -1
                width = ops["reshape"](width, shape=tuple(shape))
        else:
            width = _step(x, along)
    middle = (part_of(y, along, LATER) + part_of(y, along, EARLIER)) * 0.5
    return ops["sum"](width * middle, axis=along, keepdims=False)


@named
def interp(
    x: Any, xp: Any, fp: Any, left: Any = None, right: Any = None, period: float | None = None
) -> Tensor:
    """Return linear interpolations between sampled values.

    Parameters
    ----------
    x
        Where to interpolate, of any shape.
    xp
        The coordinates of the samples, a vector in ascending order (in any order with ``period``).
    fp
        The samples, a vector of the same size.
    left, right
        The values beyond the first and last coordinate; by default those of the ends.
    period
        The period of the coordinates, if the values repeat.

    Returns
    -------
    A tensor of the shape of ``x``, of the dtypes' promotion; ``float64`` for integers.

    Raises
    ------
    ValueError
        If ``xp`` and ``fp`` are no vectors of one size, have no elements, or the period is 0.
    TypeError
        If ``x`` or ``xp`` is complex.

    Notes
    -----
    Gradients reach ``x``, ``xp`` and ``fp``; on a coordinate the slope of ``x`` is that of the
    piece after it. That ``xp`` ascends is not checked.

    Examples
    --------
    >>> x, y = gt.constant([0.0, 1.0, 2.0]), gt.constant([10.0, 20.0, 40.0])
    >>> gt.interp(gt.constant([0.5, 1.5, 3.0]), x, y).tolist()
    [15.0, 30.0, 40.0]
    """
    fp = floated(among((fp, x, xp))[0])
    like = ops["real"](fp) if fp.dtype.kind == "c" else fp
    x, xp = map(floated, among((x, xp, like))[:2])
    if "c" in (x.dtype.kind, xp.dtype.kind):
        raise TypeError(
            f"interp: coordinates must be real, got dtypes {x.dtype} for x and {xp.dtype} for xp"
        )
    shapes = (xp.shape, fp.shape)
    if any(shape is not None and len(shape) != 1 for shape in shapes) or (0,) in shapes:
        raise ValueError(f"interp: xp and fp must be vectors of samples, got {shapes}")
    broadcast_shapes(*shapes, op="interp")
    if None not in shapes and shapes[0] != shapes[1]:
        raise ValueError(f"interp: xp and fp must have one size, got shapes {shapes}")
    if period is not None:
        if period == 0:
            raise ValueError("interp: the period must not be 0")
        period = abs(period)
        x, xp = ops["remainder"](x, period), ops["remainder"](xp, period)
        order = ops["argsort"](xp, axis=-1)
        xp, fp = (ops["take"](v, order, axis=0) for v in (xp, fp))
        ends = [(part_of(v, 0, slice(-1, None)), part_of(v, 0, slice(0, 1))) for v in (xp, fp)]
        xp = ops["concatenate"](ends[0][0] - period, xp, ends[0][1] + period, axis=0)
        fp = ops["concatenate"](ends[1][0], fp, ends[1][1], axis=0)
        left = right = None
    inside = ops["clip"](x, xp[0], xp[-1])
    # the end of the piece; the last piece for the last coordinate, the only sample for one alone
    last = ops["size_over"](ops["cast"](xp, dtype="float64"), axis=0)
    after = ops["cast"](ops["minimum"](searchsorted(xp, inside, "right"), last - 1), dtype="int64")
    before = ops["maximum"](after - 1, 0)
    x0, x1, f0, f1 = (
        ops["take"](v, i, axis=0) for v, i in ((xp, before), (xp, after), (fp, before), (fp, after))
    )
    width = x1 - x0
    share = (inside - x0) / ops["where"](width == 0, 1.0, width)
    result = f0 + (f1 - f0) * share
    if left is not None:
        result = ops["where"](x < xp[0], left, result)
    return result if right is None else ops["where"](x > xp[-1], right, result)

"""Running sums, products and extremes, and the linear recurrence that differentiates products.

A product's gradient is the product of all other elements. Dividing the whole product by each
element would fail where an element is 0. Instead, the products of the elements before and after are
multiplied. A linear recurrence differentiates these, and its gradient is again a linear recurrence:
there is no division at any order.

Internally ``axis`` may be a tuple or None: the scan then runs over these axes flattened in C order.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from math import prod
from typing import Any

import numpy as np

from ....core.extend import NONDIFF, F, Tensor, as_dtype, as_tensor, numpy_dtype, ops
from ..common.axes import Axis, along, axis_of, optional_axis, reduced_axes
from ..common.dynamic_shapes import as_vector, known_rank
from ..common.kernels import as_like, cast_to, in_float32, reals, standard
from ..common.op_builders import named, op, same_shape
from ..indexing.take import take_along_axis
from ..shapes.joining import edge_values
from .sums import summed_dtype, widened


def lines_of(xp: Any, x: Any, axis: Axis, name: str = "scan") -> tuple[Any, Callable[[Any], Any]]:
    """Return ``x`` with the axes of a scan as its last one, and a function that moves them back."""
    axes = reduced_axes(axis, x.ndim, name)
    order = tuple(i for i in range(x.ndim) if i not in axes) + axes
    permute = standard(xp, "permute_dims", "transpose")
    moved = permute(x, order)
    shape = moved.shape
    rest = x.ndim - len(axes)
    lines = xp.reshape(moved, (*shape[:rest], prod(shape[rest:])))
    inverse = tuple(order.index(i) for i in range(x.ndim))
    return lines, lambda result: permute(xp.reshape(result, shape), inverse)


def scan(name: str) -> Callable[..., Any]:
    """Return the kernel, in either direction, of NumPy's ``name`` (the standard spells it out)."""

    @in_float32
    def kernel(xp: Any, x: Any, *, axis: Axis, reverse: bool = False) -> Any:
        lines, back = lines_of(xp, widened(xp, x, summed_dtype), axis, name)
        run = standard(xp, name.replace("cum", "cumulative_"), name)
        if reverse:
            return back(xp.flip(run(xp.flip(lines, axis=-1), axis=-1), axis=-1))
        return back(run(lines, axis=-1))

    return kernel


def shift(xp: Any, x: Any, *, axis: Axis, fill: float, reverse: bool = False) -> Any:
    """Move elements by one position: the kernel of the op ``shift``."""
    if 0 in x.shape:
        return x  # there is no edge to cut off
    lines, back = lines_of(xp, x, axis)
    edge = xp.full_like(lines[..., :1], fill)
    parts = [lines[..., 1:], edge] if reverse else [edge, lines[..., :-1]]
    return back(standard(xp, "concat", "concatenate")(parts, axis=-1))


@in_float32
def recurrence(xp: Any, a: Any, b: Any, *, axis: Axis, reverse: bool = False) -> Any:
    """Solve a linear recurrence: the kernel of the op of this name."""
    b = cast_to(xp, b, np.result_type(numpy_dtype(a.dtype), numpy_dtype(b.dtype)))
    a, back = lines_of(xp, a, axis)
    b, _ = lines_of(xp, b, axis)
    if reverse:
        a, b = xp.flip(a, axis=-1), xp.flip(b, axis=-1)
    concat = standard(xp, "concat", "concatenate")
    step, length = 1, b.shape[-1]
    while step < length:  # each round joins the recurrence over twice as many elements
        late, early = slice(step, None), slice(None, -step)
        b = concat([b[..., :step], b[..., late] + a[..., late] * b[..., early]], axis=-1)
        a = concat([a[..., :step], a[..., late] * a[..., early]], axis=-1)
        step *= 2
    return back(xp.flip(b, axis=-1) if reverse else b)


def _cumprod_rule(g: Any, x: Any, axis: Axis, reverse: bool) -> Any:
    before = F.cumprod(F.shift(x, axis=axis, fill=1, reverse=reverse), axis=axis, reverse=reverse)
    # s[k] = g[k] + x[k + 1] * s[k + 1]
    after = F.shift(x, axis=axis, fill=0, reverse=not reverse)
    return before * F.recurrence(after, g, axis=axis, reverse=not reverse)


def _recurrence_rule(g: Any, a: Any, b_like: Any, axis: Axis, reverse: bool) -> Any:
    return as_like(_recurrence_back(g, a, axis, reverse), b_like)


def _recurrence_back(g: Any, a: Any, axis: Axis, reverse: bool) -> Any:
    after = F.shift(a, axis=axis, fill=0, reverse=not reverse)
    return F.recurrence(after, g, axis=axis, reverse=not reverse)


def _recurrence_factor_rule(g: Any, a: Any, out: Any, axis: Axis, reverse: bool) -> Any:
    previous = F.shift(out, axis=axis, fill=0, reverse=reverse)
    return as_like(_recurrence_back(g, a, axis, reverse) * previous, a)


def product_of_others(xp: Any, x: Any, *, axis: Axis) -> Any:
    """Multiply all elements but one, for each of them: the kernel of the op of this name."""
    running = scan("cumprod")
    before = running(xp, shift(xp, x, axis=axis, fill=1), axis=axis)
    after = shift(xp, x, axis=axis, fill=1, reverse=True)
    return before * running(xp, after, axis=axis, reverse=True)


def _others_rule(g: Any, x: Any, axis: Axis) -> Any:
    gx: Any = 0
    for reverse in (False, True):
        there = F.shift(x, axis=axis, fill=1, reverse=reverse)
        back = F.shift(x, axis=axis, fill=1, reverse=not reverse)
        upstream = g * F.cumprod(back, axis=axis, reverse=not reverse)
        slope = _cumprod_rule(upstream, there, axis, reverse)
        gx = gx + F.shift(slope, axis=axis, fill=0, reverse=not reverse)
    return gx


op(
    "product_of_others",
    product_of_others,
    gradients={"x": _others_rule},
    infer=lambda x, axis: (x.shape, summed_dtype(x.dtype)),
    holomorphic=True,
    batch=along("axis"),
    doc="Return, for each element, the product of all others, correct for zeros too.",
)
op(
    "shift",
    shift,
    gradients={
        "x": lambda g, axis, reverse: F.shift(g, axis=axis, fill=0, reverse=not reverse),
    },
    infer=lambda x, axis, fill, reverse: (x.shape, x.dtype),
    batch=along("axis"),
    doc="Move elements by one position (back, if ``reverse``); ``fill`` comes first.",
)
op(
    "recurrence",
    recurrence,
    gradients={"a": _recurrence_factor_rule, "b": _recurrence_rule},
    infer=lambda a, b, axis, reverse: (b.shape, np.result_type(a.dtype, b.dtype)),
    holomorphic=True,
    batch=along("axis"),
    doc="Solve ``s[k] = b[k] + a[k] * s[k - 1]``, from 0 before the start, for equal shapes.",
)
_cumsum = op(
    "cumsum",
    scan("cumsum"),
    gradients={
        "x": lambda g, axis, reverse: F.cumsum(g, axis=axis, reverse=not reverse),
    },
    infer=same_shape("cumsum", summed_dtype),
    batch=along("axis"),
    jvp="linear",
    view=False,
)
_cumprod = op(
    "cumprod",
    scan("cumprod"),
    gradients={"x": _cumprod_rule},
    infer=same_shape("cumprod", summed_dtype),
    holomorphic=True,
    batch=along("axis"),
    view=False,
)


def _run(running: Any, x: Any, axis: Any, dtype: Any) -> Any:
    along = optional_axis(axis, running.name)
    if dtype is not None:  # the elements are cast, and the running results are not widened
        x, dtype = as_tensor(x), as_dtype(dtype)
        x = x if x.dtype == dtype else ops["cast"](x, dtype=dtype.name)
        result = _run(running, x, axis, None)
        return result if result.dtype == dtype else ops["cast"](result, dtype=dtype.name)
    if along is None:
        return running(ops["reshape"](x, shape=(-1,)), axis=0)
    if along in (0, -1) and getattr(x, "shape", None) in ((), None):
        x = as_vector(as_tensor(x))  # as for NumPy
    return running(x, axis=along)


@named
def cumsum(x: Any, axis: int | None = None, dtype: Any = None) -> Tensor:
    """Return the running sum.

    Parameters
    ----------
    axis
        The axis to sum along; by default the flattened tensor is summed.
    dtype
        The dtype to sum in, and of the result.

    Returns
    -------
    A tensor of the shape and dtype of ``x``, or one-dimensional if ``axis`` is None; small integers
    give NumPy's default integer.

    Examples
    --------
    >>> gt.cumsum(gt.constant([1.0, 2.0, 3.0]))
    <Tensor shape=(3,) dtype=float32 value=[1., 3., 6.]>
    >>> gt.cumsum(gt.constant([[1, 2], [3, 4]]), axis=0).tolist()
    [[1, 2], [4, 6]]
    """
    return _run(_cumsum, x, axis, dtype)


@named
def cumprod(x: Any, axis: int | None = None, dtype: Any = None) -> Tensor:
    """Return the running product.

    Parameters
    ----------
    axis
        The axis to multiply along; by default the flattened tensor.
    dtype
        The dtype to multiply in, and of the result.

    Returns
    -------
    A tensor of the shape and dtype of ``x``, or one-dimensional if ``axis`` is None; small integers
    give NumPy's default integer.

    Notes
    -----
    Gradients are computed by a linear recurrence, not by a division, so they are correct at zeros
    at every order.

    Examples
    --------
    >>> gt.cumprod(gt.constant([2.0, 3.0, 4.0])).tolist()
    [2.0, 6.0, 24.0]
    """
    return _run(_cumprod, x, axis, dtype)


def _running(xp: Any, best: Callable[[Any, Any], Any], x: Any) -> Any:
    """Return the running extreme along the last axis."""
    step, length = 1, x.shape[-1]
    while step < length:  # each round looks back over twice as many elements
        later = best(x[..., step:], x[..., :-step])
        x = standard(xp, "concat", "concatenate")([x[..., :step], later], axis=-1)
        step *= 2
    return x


def _running_place_kernel(xp: Any, x: Any, *, axis: int, lowest: bool = False) -> Any:
    lines, back = lines_of(xp, reals(x), axis, "running_place")
    best = _running(xp, xp.minimum if lowest else xp.maximum, lines)
    before = best[..., :-1]
    # nan is never better, but comes once, and stays
    same = (before == best[..., 1:]) | (before != before)
    numbers = xp.broadcast_to(xp.arange(lines.shape[-1]), lines.shape)
    later = xp.where(same, xp.zeros_like(numbers[..., 1:]), numbers[..., 1:])
    found = standard(xp, "concat", "concatenate")([numbers[..., :1], later], axis=-1)
    return back(_running(xp, xp.maximum, found))


op(
    "running_place",
    _running_place_kernel,
    gradients={"x": NONDIFF},
    infer=same_shape("running_place", lambda dtype: np.dtype(np.int64)),
    batch=along("axis"),
    doc="Return, along an axis, the index of the largest element so far (or lowest), the first.",
)


def _cumulative_extreme(x: Any, axis: int, lowest: bool) -> Any:
    x, along = as_tensor(x), operator.index(axis)
    return take_along_axis(x, ops["running_place"](x, axis=along, lowest=lowest), along)


@named
def cumulative_max(x: Any, axis: int = 0) -> Tensor:
    """Return the largest element so far: ``numpy.maximum.accumulate``.

    Parameters
    ----------
    x
        A real tensor of at least one axis.
    axis
        The axis to accumulate along; the first by default.

    Returns
    -------
    A tensor of the shape and dtype of ``x``; from the first nan on it is nan.

    Raises
    ------
    TypeError
        If ``x`` is complex, or ``axis`` is not an integer.

    Notes
    -----
    Gradients go to the elements found, and to the first of equal ones.

    Examples
    --------
    >>> gt.cumulative_max(gt.constant([1.0, 3.0, 2.0, 4.0])).tolist()
    [1.0, 3.0, 3.0, 4.0]
    """
    return _cumulative_extreme(x, axis, lowest=False)


@named
def cumulative_min(x: Any, axis: int = 0) -> Tensor:
    """Return the smallest element so far: ``numpy.minimum.accumulate``.

    Parameters
    ----------
    x
        A real tensor of at least one axis.
    axis
        The axis to go along; the first by default.

    Returns
    -------
    A tensor of the shape and dtype of ``x``; from the first nan on it is nan.

    Raises
    ------
    TypeError
        If ``x`` is complex, or ``axis`` is not an integer.

    Notes
    -----
    Gradients go to the elements found, to the first of equal ones.

    Examples
    --------
    >>> gt.cumulative_min(gt.constant([3.0, 4.0, 1.0, 2.0])).tolist()
    [3.0, 3.0, 1.0, 1.0]
    """
    return _cumulative_extreme(x, axis, lowest=True)


@named
def cumulative_sum(
    x: Any, axis: int | None = None, dtype: Any = None, include_initial: bool = False
) -> Tensor:
    """Return the running sum: :func:`gradtape.cumsum` under the array API's name.

    Parameters
    ----------
    x
        A tensor of at least one axis; a number is treated as a vector.
    axis
        The axis to sum along; optional for a vector.
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
        If there is no axis, and ``x`` is not a vector.

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
        A tensor of at least one axis; a number is treated as a vector.
    axis
        The axis to multiply along; optional for a vector.
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
        If there is no axis, and ``x`` is not a vector.

    Examples
    --------
    >>> gt.cumulative_prod(gt.constant([2.0, 3.0, 4.0])).tolist()
    [2.0, 6.0, 24.0]
    """
    first = 1 if include_initial else None
    return _cumulative("cumprod", "cumulative_prod", x, axis, dtype, first)


def _cumulative(op_name: str, name: str, x: Any, axis: Any, dtype: Any, first: Any) -> Any:
    x = as_vector(as_tensor(x))  # a number is a vector, for NumPy too
    if axis is None:
        if known_rank(x, name) != 1:
            raise ValueError(f"{name}: an axis is needed for shape {x.shape}")
        axis = 0
    along = axis_of(x, axis, name)
    result = (cumsum if op_name == "cumsum" else cumprod)(x, along, dtype)
    if first is None:
        return result
    joined = ops["concatenate"](edge_values(first, result, along), result, axis=along)
    return joined if joined.dtype == result.dtype else joined.astype(result.dtype)

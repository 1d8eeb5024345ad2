"""Padding, in each of NumPy's modes that has a gradient."""

from __future__ import annotations

import operator
from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np

from ....core.errors import TraceError
from ....core.extend import (
    NONDIFF,
    F,
    Op,
    Tensor,
    as_tensor,
    check_fits_dtype,
    functions,
    is_open,
    known_size,
    largest,
    ops,
    rank_of,
    same_size,
)
from ..common.axes import part_of, reduced_axes, shape_only, together
from ..common.dynamic_shapes import any_unknown, as_sizes, ensured, known_rank
from ..common.kernels import inexact, put, scatter_add, standard
from ..common.op_builders import named, op
from ..common.parameters import is_differentiated, plain_number
from .ranges import even_steps

Widths = tuple[tuple[int, int], ...]
PICKING = ("edge", "reflect", "symmetric", "wrap")
STATISTICS = ("maximum", "mean", "median", "minimum")
MODES = ("constant", "linear_ramp", *PICKING, *STATISTICS)


def _widths(pad_width: Widths, rank: int, name: str = "pad") -> Widths:
    if len(pad_width) == 1:
        return pad_width * rank
    if len(pad_width) != rank:
        raise ValueError(
            f"{name}: {len(pad_width)} pairs of widths do not fit an array of dimension {rank}"
        )
    return pad_width


def widths_past(op: Op, xs: list[Any], batched: list[bool], params: dict[str, Any]) -> Any:
    """Batching rule of ops with a padding width per axis."""
    xs = together(xs, batched)
    widths = params["pad_width"]
    if len(widths) == 1:  # one pair stands for all axes
        widths = widths * (rank_of(xs[0], op) - 1)
    return op.raw(*xs, **{**params, "pad_width": ((0, 0), *widths)})


def _padded_spec(sign: int) -> Callable[..., tuple[Any, Any]]:
    def infer(x: Any, *, pad_width: Widths, **params: Any) -> tuple[Any, Any]:
        if x.shape is None:
            return (None if len(pad_width) == 1 else (None,) * len(pad_width)), x.dtype
        widths = _widths(pad_width, len(x.shape))
        sizes = zip(x.shape, widths, strict=True)
        return tuple(None if n is None else n + sign * (a + b) for n, (a, b) in sizes), x.dtype

    return infer


# -- a constant ------------------------------------------------------------------------------------


def _pad_kernel(xp: Any, x: Any, *, pad_width: Widths, value: Any = 0) -> Any:
    widths = _widths(pad_width, x.ndim)
    if any(a < 0 or b < 0 for a, b in widths):  # of sizes that a trace did not know
        raise ValueError(f"pad: pad_width must be at least 0, got {pad_width}")
    out = xp.full(
        tuple(n + a + b for n, (a, b) in zip(x.shape, widths, strict=True)), value, dtype=x.dtype
    )
    return put(out, tuple(slice(a, a + n) for n, (a, _) in zip(x.shape, widths, strict=True)), x)


def _unpad_kernel(xp: Any, x: Any, *, pad_width: Widths) -> Any:
    widths = _widths(pad_width, x.ndim)
    return x[tuple(slice(a, n - b) for n, (a, b) in zip(x.shape, widths, strict=True))]


_pad = op(
    "pad",
    _pad_kernel,
    gradients={"x": lambda g, pad_width: F.unpad(g, pad_width=pad_width)},
    infer=_padded_spec(1),
    holomorphic=True,
    batch=widths_past,
    jvp=lambda tangents, inputs, outputs, pad_width, value: F.pad(tangents[0], pad_width=pad_width),
    integers="moves",
    doc="Surround ``x`` with a constant value.",
)
op(
    "unpad",
    _unpad_kernel,
    gradients={"x": lambda g, pad_width: F.pad(g, pad_width=pad_width)},
    infer=_padded_spec(-1),
    holomorphic=True,
    batch=widths_past,
    jvp="linear",
    doc="Remove the padding that ``pad`` added.",
)

# -- elements of the array itself ------------------------------------------------------------------


@lru_cache(maxsize=256)
def _sources(size: int, width: tuple[int, int], mode: str) -> Any:
    """Return the source of each element of a padded axis: NumPy pads the positions."""
    return np.pad(np.arange(size), width, mode=mode)  # type: ignore[call-overload]


def _pick_kernel(xp: Any, x: Any, *, pad_width: Widths, mode: str) -> Any:
    widths = _widths(pad_width, x.ndim)
    if widths and hasattr(xp, "pad"):
        return xp.pad(x, widths, mode=mode)
    for axis, width in enumerate(widths):
        if width != (0, 0):
            x = xp.take(x, xp.asarray(_sources(x.shape[axis], width, mode)), axis=axis)
    return x


def _unpick_kernel(xp: Any, g: Any, like: Any, *, pad_width: Widths, mode: str) -> Any:
    widths = _widths(pad_width, g.ndim)
    for axis in range(g.ndim - 1, -1, -1):
        if widths[axis] != (0, 0):
            g = _unpick_axis(xp, g, axis, like.shape[axis], widths[axis], mode)
    return g


def _unpick_axis(xp: Any, g: Any, axis: int, size: int, width: tuple[int, int], mode: str) -> Any:
    """Remove the padding of an axis, and add it to its source elements."""
    before = width[0]
    sources = _sources(size, width, mode)
    lead = (slice(None),) * axis
    inside = g[(*lead, slice(before, before + size), ...)]
    edges = (g[(*lead, slice(None, before), ...)], g[(*lead, slice(before + size, None), ...)])
    borders = xp.asarray(np.delete(sources, np.s_[before : before + size]))

    def pick(x: Any) -> Any:
        return xp.take(x, borders, axis=axis)

    out = inside.copy() if hasattr(inside, "copy") else xp.asarray(inside, copy=True)
    values = standard(xp, "concat", "concatenate")(edges, axis=axis)
    return scatter_add(xp, out, (*lead, borders), values, pick)


_pad_picked = op(
    "pad_picked",
    _pick_kernel,
    gradients={
        "x": lambda g, x_like, pad_width, mode: F.unpad_picked_like(
            g, x_like, pad_width=pad_width, mode=mode
        )
    },
    infer=_padded_spec(1),
    holomorphic=True,
    batch=widths_past,
    jvp="linear",
    doc="Surround ``x`` with its own elements, in mode edge, reflect, symmetric or wrap.",
)
op(
    "unpad_picked_like",
    _unpick_kernel,
    gradients={
        "g": lambda g, pad_width, mode: F.pad_picked(g, pad_width=pad_width, mode=mode),
        "like": NONDIFF,
    },
    infer=lambda g, like, pad_width, mode: (like.shape, g.dtype),
    holomorphic=True,
    batch=widths_past,
    jvp="linear",
    doc="Add to each element of ``like`` its copies made by ``pad_picked``: the adjoint.",
)

# -- ramps and statistics --------------------------------------------------------------------------


def _ramp_kernel(xp: Any, x: Any, *, axis: int, width: tuple[int, int]) -> Any:
    ramp = np.pad(np.ones(x.shape[axis]), width, mode="linear_ramp")
    shape = [1] * x.ndim
    shape[axis] = ramp.size
    # the share of an integer's edge is a fraction
    dtype = x.dtype if "float" in str(x.dtype) or "complex" in str(x.dtype) else xp.float64
    return xp.reshape(xp.asarray(ramp, dtype=dtype), tuple(shape))


def _ramp_spec(x: Any, *, axis: int, width: tuple[int, int]) -> tuple[Any, Any]:
    dtype = inexact(x.dtype)
    if x.shape is None:
        return None, dtype
    size = x.shape[axis]
    sizes: list[int | None] = [1] * len(x.shape)
    sizes[axis] = None if size is None else size + sum(width)
    return tuple(sizes), dtype


op(
    "pad_ramp",
    _ramp_kernel,
    gradients={"x": NONDIFF},
    infer=_ramp_spec,
    batch=shape_only,
    reads="shapes",
    doc="Return 1 along an axis of ``x``, falling to 0 along its padding widths.",
)


def _only(axis: int, width: tuple[int, int], rank: int) -> Widths:
    return tuple(width if i == axis else (0, 0) for i in range(rank))


def _ramped(x: Any, axis: int, width: tuple[int, int], ends: tuple[Any, Any]) -> Any:
    parts = [x]
    for side, (count, end) in enumerate(zip(width, ends, strict=True)):
        if same_size(count, 0):
            continue
        edge = part_of(x, axis, slice(0, 1) if side == 0 else slice(-1, None))
        edge = ops["cast"](edge, dtype=inexact(x.dtype).name)
        ramp = even_steps(ops["zeros_like"](edge) + end, edge, count, False)
        ramp = ops["moveaxis"](ops["squeeze"](ramp, axis=axis + 1), source=0, destination=axis)
        if x.dtype.kind in "iu":
            ramp = ops["floor"](ramp)
        ramp = ops["cast_like"](ramp, x)
        parts = [ramp, *parts] if side == 0 else [*parts, ops["flip"](ramp, axis=axis)]
    return ops["concatenate"](*parts, axis=axis)


def _with_statistics(
    x: Any, axis: int, width: tuple[int, int], mode: str, lengths: tuple[Any, Any]
) -> Any:
    parts = [x]
    for side, (count, length) in enumerate(zip(width, lengths, strict=True)):
        if same_size(count, 0):
            continue
        size = x.shape[axis]
        near = x
        if length is not None and (length < size) is not False:
            start = -length if known_size(length) else largest(size - length, 0)
            cut = slice(None, length) if side == 0 else slice(start, None)
            near = x[(*(slice(None),) * axis, cut)]
        value = _statistic(near, axis, mode)
        value = ops["repeat"](value, repeats=count, axis=axis)
        parts = [value, *parts] if side == 0 else [*parts, value]
    return ops["concatenate"](*parts, axis=axis) if len(parts) > 1 else x


def _statistic(x: Any, axis: int, mode: str) -> Any:
    if mode in ("maximum", "minimum"):
        return ops[mode[:3]](x, axis=axis, keepdims=True)
    if mode == "mean":
        value = ops["mean"](x, axis=axis, keepdims=True)
    else:
        # by its public name: the room of statistics stands above this one
        value = functions["median"](x, axis=axis, keepdims=True)
    if x.dtype.kind in "iu":
        value = ops["round"](value)
    return ops["cast_like"](value, x)


# -- mirrors and several constants -----------------------------------------------------------------


def _with_constants(x: Any, widths: Widths, values: Any) -> Any:
    """Pad each side of each axis with its own value; later axes fill the corners."""
    for axis, (width, pair) in enumerate(zip(widths, values, strict=True)):
        for side, (count, value) in enumerate(zip(width, pair, strict=True)):
            if not same_size(count, 0):
                one_side = _only(axis, (count, 0) if side == 0 else (0, count), len(widths))
                if isinstance(value, Tensor):
                    old = ops["cast"](ops["ones_like"](x), dtype="bool")
                    old = _pad(old, pad_width=one_side, value=False)
                    x = ops["where"](old, _pad(x, pad_width=one_side, value=0), value)
                else:
                    x = _pad(x, pad_width=one_side, value=value)
    return x


def _mirrored(x: Any, axis: int, width: tuple[int, int], include_edge: bool) -> Any:
    """Pad an axis with its mirror image, flipped around the value at each edge."""
    size = x.shape[axis]
    if all(same_size(count, 0) for count in width):
        return x
    if any_unknown(size, width):
        raise TraceError(
            f"pad: reflect_type='odd' needs a known size and width in a trace, got {width} for "
            f"shape {x.shape}"
        )
    if size == 0:
        raise ValueError(f"pad: the empty axis {axis} of shape {x.shape} cannot be extended")
    if size == 1 and not include_edge:
        return _pad_picked(x, pad_width=_only(axis, width, x.ndim), mode="edge")
    lead = (slice(None),) * axis
    skip = 0 if include_edge else 1
    for side, count in enumerate(width):
        while count:
            part = min(count, size - skip)
            edge = slice(0, 1) if side == 0 else slice(-1, None)
            stop = None if part + skip == x.shape[axis] else -part - skip
            near = slice(skip, skip + part) if side == 0 else slice(stop, -skip or None)
            turned = 2 * x[(*lead, edge)] - ops["flip"](x[(*lead, near)], axis=axis)
            turned = ops["cast_like"](turned, x)  # of booleans
            x = ops["concatenate"](*((turned, x) if side == 0 else (x, turned)), axis=axis)
            count -= part
    return x


# -- the public function ---------------------------------------------------------------------------


@named
def pad(
    x: Any,
    pad_width: Any,
    mode: str = "constant",
    constant_values: Any = 0,
    end_values: Any = 0,
    stat_length: Any = None,
    reflect_type: str = "even",
) -> Tensor:
    """Return ``x`` surrounded with more elements.

    Parameters
    ----------
    pad_width
        A pair ``(before, after)`` per axis; or one pair, or one integer, for all axes. Or a
        dictionary that gives a pair or an integer for some axes.
    mode
        The padding. ``"constant"``: constants. Elements of ``x``: its ``"edge"``, its mirror image
        without the edge (``"reflect"``) or with it (``"symmetric"``), or its other end
        (``"wrap"``). ``"linear_ramp"``: a ramp from the edge. Or, along each axis, the
        ``"maximum"``, ``"mean"``, ``"median"`` or ``"minimum"``.
    constant_values
        For ``"constant"``: the value, a Python number, or values in the form of ``pad_width``.
    end_values
        For ``"linear_ramp"``: the end of the ramp, in the form of ``pad_width``.
    stat_length
        For statistics: how many elements next to the edge to use, all by default, in the form of
        ``pad_width``.
    reflect_type
        For ``"reflect"`` and ``"symmetric"``: ``"odd"`` flips the mirror image around the value at
        the edge.

    Returns
    -------
    A tensor of the dtype of ``x``, each axis longer by its two widths.

    Raises
    ------
    TypeError
        If a width is not an integer.
    ValueError
        If a width is negative, the pairs do not match the axes, the mode is another, or takes no
        ``stat_length``, or an axis without elements would be padded with elements.
    numpy.exceptions.AxisError
        If a dictionary names an axis that is out of bounds.
    TraceError
        For ``reflect_type="odd"``, if a trace does not know the size of an axis or its widths.
    GradientError
        If a derivative with respect to ``end_values`` is requested.

    Notes
    -----
    Gradients go back to the source elements of the padding, and to ``constant_values``.

    Examples
    --------
    >>> gt.pad(gt.constant([1.0, 2.0, 3.0]), (1, 2)).tolist()
    [0.0, 1.0, 2.0, 3.0, 0.0, 0.0]
    >>> gt.pad(gt.constant([1.0, 2.0, 3.0]), 2, mode="reflect").tolist()
    [3.0, 2.0, 1.0, 2.0, 3.0, 2.0, 1.0]
    """
    if mode not in MODES:
        raise ValueError(f"pad: mode {mode!r} is not supported; modes are {', '.join(MODES)}")
    if stat_length is not None and mode not in STATISTICS:
        raise ValueError(f"pad: stat_length is for statistics, not for mode {mode!r}")
    x = as_tensor(x)
    if isinstance(pad_width, dict):
        pad_width = _by_axis(pad_width, x)
    widths = _pairs(pad_width, "pad_width")
    if mode == "constant" and is_differentiated(constant_values):
        rank = known_rank(x, "pad")
        pairs = _tensor_pairs(constant_values, x)
        return _with_constants(x, _widths(widths, rank), _widths(pairs, rank))
    if mode == "constant":
        values = _number_pairs(constant_values, "constant_values")
        if len({value for pair in values for value in pair}) == 1:
            return _pad(x, pad_width=widths, value=values[0][0])
        rank = known_rank(x, "pad")
        return _with_constants(x, _widths(widths, rank), _widths(values, rank))
    if mode in PICKING:
        if reflect_type == "odd" and mode in ("reflect", "symmetric"):
            for axis, width in enumerate(_widths(widths, known_rank(x, "pad"))):
                x = _mirrored(x, axis, width, include_edge=mode == "symmetric")
            return x
        return _pad_picked(x, pad_width=widths, mode=mode)
    rank = known_rank(x, "pad")
    lengths = None if stat_length is None else _pairs(stat_length, "stat_length", least=1)
    how = "join gradtape.linspace and x by gradtape.concatenate"
    ends = _number_pairs(plain_number(end_values, "pad", "end_values", how), "end_values")
    for axis, width in enumerate(_widths(widths, rank)):
        if all(same_size(count, 0) for count in width):
            continue
        size = x.shape[axis]
        if not known_size(size) or not size:
            some = largest(size, 1 - sum(width)) > 0  # elements, or no width
            why = f"pad: mode {mode!r} cannot extend the empty axis {axis} of {x.shape}"
            x = ensured(x, some, why)
        if mode == "linear_ramp":
            check_fits_dtype(_widths(ends, rank)[axis], x.dtype, "pad: end_values")
            x = _ramped(x, axis, width, _widths(ends, rank)[axis])
        else:
            near = (None, None) if lengths is None else _widths(lengths, rank)[axis]
            x = _with_statistics(x, axis, width, mode, near)
    return x


def _by_axis(given: dict[Any, Any], x: Any) -> Any:
    """Return widths for all axes from a dictionary for some axes."""
    pairs = [(0, 0)] * known_rank(x, "pad")
    for axis, width in given.items():
        (place,) = reduced_axes(operator.index(axis), x.ndim, "pad")
        pairs[place] = (width, width) if np.ndim(width) == 0 else tuple(width)
    return pairs


def _pairs(given: Any, argument: str, least: int = 0) -> Widths:
    """Return a user's values per axis and side as pairs: one for all axes, or one for each."""
    if any_unknown(given):
        pairs = _nested_pairs(as_sizes(given, "pad"), argument)
        if any((n < least) is True for pair in pairs for n in pair):
            raise ValueError(f"pad: {argument} must be at least {least}, got {given!r}")
        return pairs
    array = np.asarray(given)
    if array.dtype.kind not in "iu":
        raise TypeError(f"pad: {argument} must hold integers, got {given!r}")
    if array.ndim > 2 or (array.ndim and array.shape[-1] not in (1, 2)):
        raise ValueError(
            f"pad: {argument} must be an integer, a pair (before, after), or a pair per axis, "
            f"got {given!r}"
        )
    if (array < least).any():
        raise ValueError(f"pad: {argument} must be at least {least}, got {given!r}")
    return tuple((operator.index(a), operator.index(b)) for a, b in _two_columns(array))


def _nested_pairs(given: Any, argument: str) -> Any:
    """Return one number, a pair or several pairs, with unknown numbers among them, as pairs."""
    if not isinstance(given, tuple):
        return ((given, given),)
    rows = given if any(isinstance(item, tuple) for item in given) else (given,)
    if not all(isinstance(row, tuple) and len(row) in (1, 2) for row in rows):
        raise ValueError(
            f"pad: {argument} must be one number, a pair (before, after), or a pair per axis, got "
            f"{given!r}"
        )
    return tuple((row[0], row[-1]) for row in rows)


def _two_columns(array: Any) -> Any:
    return np.broadcast_to(array, (1 if array.ndim < 2 else len(array), 2))


def _tensor_pairs(given: Any, x: Tensor) -> Any:
    """Return constants that are tensors, or hold tensors, as pairs of the dtype of ``x``."""
    values = ops["cast_like"](as_tensor(given), x)
    if values.ndim > 2 or (values.ndim and values.shape[-1] not in (1, 2)):
        raise ValueError(
            "pad: constant_values must be a number, a pair (before, after), or a pair per axis, "
            f"got shape {values.shape}"
        )
    rows = (values,) if values.ndim < 2 else tuple(values[i] for i in range(len(values)))
    return tuple((row[0], row[-1]) if row.ndim else (row, row) for row in rows)


def _number_pairs(given: Any, argument: str) -> Any:
    if is_open(given):
        return ((given, given),)
    array = np.asarray(given)
    columns = array.shape[-1] if array.ndim else 1
    if array.dtype.kind not in "biufc" or array.ndim > 2 or columns not in (1, 2):
        raise ValueError(
            f"pad: {argument} must be a number, a pair (before, after), or a pair per axis, "
            f"got {given!r}"
        )
    return tuple((a.item(), b.item()) for a, b in _two_columns(array))

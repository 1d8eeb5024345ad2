"""Convolutions over any number of spatial axes, channels last.

A convolution is linear in each operand. So three ops, each the gradient of the others, are enough
for gradients of every order: ``conv``, and its adjoints to the images and to the filters.
"""

from __future__ import annotations

from math import prod
from typing import Any

from ....core.extend import (
    NONDIFF,
    F,
    Op,
    Shared,
    Tensor,
    TensorSpec,
    as_batched,
    as_size,
    as_tensor,
    ops,
    row_of,
    sizes_differ,
)
from ..common.axes import merged, split_first, with_examples
from ..common.kernels import as_like, in_float32, put
from ..common.op_builders import named, op
from ..linalg.matmul import adjoint_spec
from ..shapes.joining import common_dtype
from .windows import (
    Padding,
    Sizes,
    Windows,
    as_channels,
    as_examples,
    as_padding,
    per_axis,
    side_by_side,
    undo_side_by_side,
    window_counts,
)


def conv_windows(x: Any, w: Any, settings: dict[str, Any]) -> Windows:
    """Return the windows of filters ``w`` on images of the shape of ``x``."""
    return Windows(
        x.shape[1:-1], w.shape[:-2], settings["strides"], settings["padding"], settings["dilations"]
    )


def _grouped(xp: Any, w: Any, groups: int) -> Any:
    """Return the filters of one window position as matrices, one per group."""
    each, out = w.shape
    return xp.permute_dims(xp.reshape(w, (each, groups, out // groups)), (1, 0, 2))


@in_float32
def conv_kernel(
    xp: Any,
    x: Any,
    w: Any,
    *,
    strides: Sizes,
    padding: Padding,
    dilations: Sizes,
    groups: int = 1,
) -> Any:
    """Sum over the positions in the windows: the images seen there times the filters."""
    settings = {"strides": strides, "padding": padding, "dilations": dilations}
    _conv_shape(x.shape, w.shape, groups, settings)
    where = conv_windows(x, w, settings)
    x = where.padded(xp, x)
    batch, channels, filters = x.shape[0], x.shape[-1], w.shape[-1]
    total = xp.zeros((batch, *where.out, filters), dtype=xp.result_type(x, w))
    for place, part in where.parts():
        seen, weights = x[(slice(None), *part, slice(None))], w[(*place, ...)]
        if groups == 1:
            total += seen @ weights
            continue
        rows = xp.reshape(seen, (*seen.shape[:-1], groups, 1, channels // groups))
        total += xp.reshape(rows @ _grouped(xp, weights, groups), total.shape)
    return total


@in_float32
def conv_to_images_kernel(
    xp: Any,
    g: Any,
    w: Any,
    like: Any,
    *,
    strides: Sizes,
    padding: Padding,
    dilations: Sizes,
    groups: int = 1,
) -> Any:
    """Send ``g``, of the shape of a convolution, back to the images."""
    settings = {"strides": strides, "padding": padding, "dilations": dilations}
    return images_of(xp, g, w, like.shape, settings, groups)


def images_of(xp: Any, g: Any, w: Any, shape: Sizes, settings: Any, groups: int) -> Any:
    """Send ``g``, of the shape of a convolution, to images of ``shape``."""
    where = Windows(
        shape[1:-1], w.shape[:-2], settings["strides"], settings["padding"], settings["dilations"]
    )
    total = xp.zeros((shape[0], *where.padded_sizes, shape[-1]), dtype=xp.result_type(g, w))
    for place, part in where.parts():
        weights, at = w[(*place, ...)], (slice(None), *part, slice(None))
        if groups == 1:
            total = put(total, at, g @ xp.matrix_transpose(weights), add=True)
            continue
        rows = xp.reshape(g, (*g.shape[:-1], groups, 1, g.shape[-1] // groups))
        back = rows @ xp.matrix_transpose(_grouped(xp, weights, groups))
        total = put(total, at, xp.reshape(back, (*g.shape[:-1], shape[-1])), add=True)
    return total[where.inside]


@in_float32
def conv_to_filters_kernel(
    xp: Any,
    g: Any,
    x: Any,
    like: Any,
    *,
    strides: Sizes,
    padding: Padding,
    dilations: Sizes,
    groups: int = 1,
) -> Any:
    """Send ``g``, of the shape of a convolution, back to the filters."""
    settings = {"strides": strides, "padding": padding, "dilations": dilations}
    where = conv_windows(x, like, settings)
    x = where.padded(xp, x)
    each, filters = like.shape[-2:]
    count = prod(g.shape[:-1])
    total = xp.zeros(like.shape, dtype=xp.result_type(g, x))
    columns = xp.reshape(g, (count, groups, filters // groups))
    for place, part in where.parts():
        seen = x[(slice(None), *part, slice(None))]
        rows = xp.reshape(seen, (count, groups, each))
        # (groups, each, count) @ (groups, count, filters / groups)
        share = xp.permute_dims(rows, (1, 2, 0)) @ xp.permute_dims(columns, (1, 0, 2))
        found = xp.reshape(xp.permute_dims(share, (1, 0, 2)), (each, filters))
        total = put(total, (*place, ...), found)
    return total


def _conv_shape(x: Any, w: Any, groups: int, settings: dict[str, Any], name: str = "conv") -> Any:
    """Return the shape of a convolution; raise if images and filters do not fit."""
    if w is not None and len(w) != len(settings["strides"]) + 2:
        raise ValueError(
            f"{name}: filters of shape {w} need {len(settings['strides'])} spatial axes, then "
            "input channels and output channels"
        )
    if x is None or w is None:
        return None
    if len(x) != len(w):
        raise ValueError(
            f"{name}: images of shape {x} and filters of shape {w} must have the same rank: "
            "(batch, spatial axes, channels) and (spatial axes, input channels, output channels)"
        )
    if w[-2] is not None and sizes_differ(x[-1], w[-2] * groups):
        raise ValueError(
            f"{name}: images of shape {x} have {x[-1]} channels, filters of shape {w} in {groups} "
            f"groups need {w[-2] * groups}"
        )
    if w[-1] is not None and sizes_differ(w[-1] % groups, 0):
        raise ValueError(f"{name}: {w[-1]} filters are not divisible into {groups} groups")
    return (x[0], *window_counts(x[1:-1], w[:-2], settings), w[-1])


def _conv_spec(x: TensorSpec, w: TensorSpec, *, groups: int, **settings: Any) -> tuple[Any, Any]:
    count = as_size(groups, "conv")
    return _conv_shape(x.shape, w.shape, count, settings), common_dtype((x, w))


def _rule(name: str) -> Any:
    """Return a rule that sends ``g`` through an op with the convolution's own settings."""

    def to_like(g: Any, other: Any, like: Any, settings: dict[str, Any]) -> Any:
        return as_like(F[name](g, other, like, **settings), like)

    return to_like


images_gradient, filters_gradient = _rule("conv_to_images"), _rule("conv_to_filters")


def conv_settings(strides: Any, padding: Any, dilations: Any, groups: Any) -> dict[str, Any]:
    """Return the parameters of an op of convolutions by name."""
    return {"strides": strides, "padding": padding, "dilations": dilations, "groups": groups}


# -- batching rules --------------------------------------------------------------------------------


@with_examples
def _conv_rule(op: Op, xs: list[Any], batched: list[bool], params: dict[str, Any]) -> Any:
    """Batching rule of ``conv``."""
    (x, w), (bx, bw) = xs, batched
    groups = params["groups"]
    if not bw:
        return split_first(op.raw(merged(x, op), w, **params), x, op)
    size = w.shape[0]
    if not bx:
        return as_examples(op.raw(x, as_channels(w, op, groups), **params), size, groups)
    params["groups"] = size * groups
    return undo_side_by_side(op.raw(side_by_side(x, op), side_by_side(w, op), **params), size)


@with_examples
def _to_images_rule(op: Op, xs: list[Any], batched: list[bool], params: dict[str, Any]) -> Any:
    """Batching rule of ``conv_to_images``."""
    (g, w, like), (bg, bw, bl) = xs, batched
    if not bg and not bw:
        return Shared(op.raw(g, w, row_of(like), **params))
    if not bw:
        like = like if bl else as_batched(like, g)
        return split_first(op.raw(merged(g, op), w, merged(like, op), **params), g, op)
    g, like = (x if b else as_batched(x, w) for x, b in ((g, bg), (like, bl)))
    size, params["groups"] = w.shape[0], w.shape[0] * params["groups"]
    sides = [side_by_side(x, op) for x in (g, w, like)]
    return undo_side_by_side(op.raw(*sides, **params), size)


@with_examples
def _to_filters_rule(op: Op, xs: list[Any], batched: list[bool], params: dict[str, Any]) -> Any:
    """Batching rule of ``conv_to_filters``."""
    (g, x, like), (bg, bx, bl) = xs, batched
    if not bg and not bx:
        return Shared(op.raw(g, x, row_of(like), **params))
    beside = g if bg else x
    like = like if bl else as_batched(like, beside)
    groups, size = params["groups"], beside.shape[0]
    if not bx:
        wide = [as_channels(g, op, groups), x, as_channels(like, op, groups)]
        return as_examples(op.raw(*wide, **params), size, groups)
    g = g if bg else as_batched(g, x)
    params["groups"] = size * groups
    return undo_side_by_side(
        op.raw(side_by_side(g, op), side_by_side(x, op), side_by_side(like, op), **params), size
    )


# -- ops -------------------------------------------------------------------------------------------


_conv = op(
    "conv",
    conv_kernel,
    gradients={
        "x": lambda g, w, x_like, strides, padding, dilations, groups: images_gradient(
            g, w, x_like, conv_settings(strides, padding, dilations, groups)
        ),
        "w": lambda g, x, w_like, strides, padding, dilations, groups: filters_gradient(
            g, x, w_like, conv_settings(strides, padding, dilations, groups)
        ),
    },
    infer=_conv_spec,
    floating=True,
    holomorphic=True,
    batch=_conv_rule,
    jvp="multilinear",
    view=False,
    doc="Sum images ``x`` in windows, weighted by filters ``w``.",
)
op(
    "conv_to_images",
    conv_to_images_kernel,
    gradients={
        "g": lambda g, w, g_like, strides, padding, dilations, groups: as_like(
            F.conv(g, w, **conv_settings(strides, padding, dilations, groups)), g_like
        ),
        "w": lambda d, g, w_like, strides, padding, dilations, groups: filters_gradient(
            g, d, w_like, conv_settings(strides, padding, dilations, groups)
        ),
        "like": NONDIFF,
    },
    infer=adjoint_spec,
    holomorphic=True,
    batch=_to_images_rule,
    jvp="multilinear",
    doc="Send a gradient of ``conv`` back to images of the shape of ``like``.",
)
op(
    "conv_to_filters",
    conv_to_filters_kernel,
    gradients={
        "g": lambda g, x, g_like, strides, padding, dilations, groups: as_like(
            F.conv(x, g, **conv_settings(strides, padding, dilations, groups)), g_like
        ),
        "x": lambda d, g, x_like, strides, padding, dilations, groups: images_gradient(
            g, d, x_like, conv_settings(strides, padding, dilations, groups)
        ),
        "like": NONDIFF,
    },
    infer=adjoint_spec,
    holomorphic=True,
    batch=_to_filters_rule,
    jvp="multilinear",
    view=False,
    doc="Send a gradient of ``conv`` back to filters of the shape of ``like``.",
)


# -- what users call -------------------------------------------------------------------------------


def prepared(
    name: str, filters: Any, rank: int | None, strides: Any, padding: Any, dilations: Any
) -> tuple[Any, dict[str, Any]]:
    """Return filters as a tensor, and the user's settings, checked."""
    w = as_tensor(filters)
    count = w.ndim - 2 if rank is None else rank
    if count < 1 or w.ndim != count + 2:
        spatial = "at least one spatial axis" if rank is None else f"{rank} spatial axes"
        raise ValueError(
            f"{name}: filters need {spatial}, then two channel axes, got shape {w.shape}"
        )
    settings = {
        "strides": per_axis(strides, count, "strides", name),
        "padding": as_padding(padding, count, name),
        "dilations": per_axis(dilations, count, "dilations", name),
    }
    return w, settings


@named
def conv(
    x: Any,
    filters: Any,
    strides: Any = 1,
    padding: Any = "valid",
    dilations: Any = 1,
    groups: int = 1,
) -> Tensor:
    """Return a convolution over any number of spatial axes (filters are not flipped).

    Parameters
    ----------
    x
        Images, channels last: ``(batch, *spatial, channels)``, of any numeric dtype.
    filters
        Of shape ``(*window, channels / groups, filters)``.
    strides
        The distance between windows: one number, or one per spatial axis; 1 by default.
    padding
        ``"valid"``, the default: windows lie within the images. ``"same"``: zeros around the images
        make room for ``ceil(size / stride)`` windows; an odd zero goes to the end. Or explicit
        zeros: a number, or a pair ``(before, after)`` per axis.
    dilations
        The distance between the elements of a window, 1 by default.
    groups
        The number of groups that channels and filters are split into; each group is convolved
        separately. 1 by default.

    Returns
    -------
    A tensor of shape ``(batch, *windows, filters)`` and the promoted dtype.

    Raises
    ------
    TypeError
        If a setting is neither an integer nor a sequence of integers.
    ValueError
        If shapes, channels or settings do not fit.

    Notes
    -----
    A convolution is linear in images and in filters; its gradients are convolutions, too.

    References
    ----------
    Dumoulin and Visin, "A guide to convolution arithmetic for deep learning", 2016.

    Examples
    --------
    >>> x = gt.constant([[[1.0], [2.0], [4.0]]])
    >>> gt.nn.conv(x, [[[1.0]], [[10.0]]])[0, :, 0].tolist()
    [21.0, 42.0]
    >>> gt.nn.conv(gt.ones((2, 8, 8, 3)), gt.ones((3, 3, 3, 5)), strides=2, padding="same").shape
    (2, 4, 4, 5)
    """
    w, settings = prepared("conv", filters, None, strides, padding, dilations)
    return _conv(x, w, **settings, groups=as_size(groups, "conv"))


@named
def conv1d(
    x: Any,
    filters: Any,
    strides: Any = 1,
    padding: Any = "valid",
    dilations: Any = 1,
    groups: int = 1,
) -> Tensor:
    """Return the convolution of ``(batch, size, channels)``; see :func:`conv`.

    Parameters
    ----------
    x
        Images ``(batch, size, channels)``.
    filters
        Of shape ``(size, channels / groups, filters)``.
    strides, dilations, groups
        As for :func:`conv`: numbers, 1 by default.
    padding
        As for :func:`conv`, ``"valid"`` by default.

    Returns
    -------
    A tensor of shape ``(batch, windows, filters)`` and the promoted dtype.

    Raises
    ------
    TypeError
        If a setting is neither an integer nor a sequence of integers.
    ValueError
        If shapes, channels or settings do not fit.

    Examples
    --------
    >>> x = gt.constant([[[1.0], [2.0], [4.0]]])
    >>> gt.nn.conv1d(x, [[[1.0]], [[10.0]]])[0, :, 0].tolist()
    [21.0, 42.0]
    """
    w, settings = prepared("conv1d", filters, 1, strides, padding, dilations)
    return _conv(x, w, **settings, groups=as_size(groups, "conv1d"))


@named
def conv2d(
    x: Any,
    filters: Any,
    strides: Any = 1,
    padding: Any = "valid",
    dilations: Any = 1,
    groups: int = 1,
) -> Tensor:
    """Return the convolution of ``(batch, height, width, channels)``; see :func:`conv`.

    Parameters
    ----------
    x
        Images ``(batch, height, width, channels)``.
    filters
        Of shape ``(height, width, channels / groups, filters)``.
    strides, dilations
        As for :func:`conv`: a number, or one per spatial axis; 1 by default.
    padding
        As for :func:`conv`, ``"valid"`` by default.
    groups
        As for :func:`conv`, 1 by default.

    Returns
    -------
    A tensor of shape ``(batch, rows, columns, filters)`` and the promoted dtype.

    Raises
    ------
    TypeError
        If a setting is neither an integer nor a sequence of integers.
    ValueError
        If shapes, channels or settings do not fit.

    Examples
    --------
    >>> x = gt.reshape(gt.arange(9.0), (1, 3, 3, 1))
    >>> gt.nn.conv2d(x, gt.ones((2, 2, 1, 1)))[0, :, :, 0].tolist()
    [[8.0, 12.0], [20.0, 24.0]]
    """
    w, settings = prepared("conv2d", filters, 2, strides, padding, dilations)
    return _conv(x, w, **settings, groups=as_size(groups, "conv2d"))


@named
def depthwise_conv(
    x: Any, filters: Any, strides: Any = 1, padding: Any = "valid", dilations: Any = 1
) -> Tensor:
    """Return a convolution of each channel with its own filters.

    Parameters
    ----------
    x
        Images ``(batch, *spatial, channels)``, of any numeric dtype.
    filters
        Of shape ``(*window, channels, multiplier)``, sizes known.
    strides, padding, dilations
        As for :func:`conv`.

    Returns
    -------
    A tensor of shape ``(batch, *windows, channels * multiplier)`` and the promoted dtype.

    Raises
    ------
    TypeError
        If a setting is neither an integer nor a sequence of integers.
    ValueError
        If shapes, channels or settings do not fit, or a size of the filters is unknown.

    References
    ----------
    Chollet, "Xception: deep learning with depthwise separable convolutions", 2017.

    Examples
    --------
    >>> x = gt.constant([[[1.0, 10.0], [2.0, 20.0]]])
    >>> gt.nn.depthwise_conv(x, gt.ones((2, 2, 1)))[0].tolist()
    [[3.0, 30.0]]
    """
    w, settings = prepared("depthwise_conv", filters, None, strides, padding, dilations)
    shape: Any = w.shape
    *window, channels, multiplier = shape
    w = ops["reshape"](w, shape=(*window, 1, channels * multiplier))
    return _conv(x, w, **settings, groups=channels)

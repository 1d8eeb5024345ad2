"""Normalisation by mean and variance, and dropout.

The mean is that of a batch, of each example, or of groups of channels. With the batch's own
statistics it is one op. Its gradient rule is one op, too, whose gradient is found by running the
same formula in plain ops. Training takes two fused kernels, and higher-order gradients remain
correct. Dropout sets a random share of elements to 0.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import Any

import numpy as np

from ....core.extend import (
    Composed,
    F,
    GradientTape,
    Tensor,
    TensorSpec,
    as_size,
    as_tensor,
    common_size,
    exact_quotient,
    floats,
    ops,
    shapes_differ,
    sizes_differ,
)
from ..common.axes import Axis, as_axis, leading, reduced_axes
from ..common.kernels import as_like, cast_to, in_float32, reals
from ..common.op_builders import named, op
from ..random.functions import shared


def by_tape(formula: Callable[..., Sequence[Any]]) -> Callable[..., list[Any]]:
    """Return the gradient rule of an op that computes ``formula``, a function written in ops."""

    def vjp(
        gs: Sequence[Any], inputs: Sequence[Any], outputs: Any, needed: Any, **params: Any
    ) -> list[Any]:
        raw = type(gs[0]) is not Tensor
        # new handles: two inputs may be the same tensor
        handles = [Tensor(x) if raw else ops["identity"](x) for x in inputs]
        seeds = [Tensor(g) for g in gs] if raw else list(gs)
        with GradientTape(watch_accessed_variables=False) as tape:
            tape.watch([x for x, need in zip(handles, needed, strict=True) if need])
            results = formula(*handles, **params)
        grads = tape.gradient(list(results), handles, output_gradients=seeds)
        return [g.array if raw and g is not None else g for g in grads]

    return vjp


def _layout(x: Any, axis: int) -> tuple[tuple[int, ...], tuple[int, ...], int]:
    """Return the axes to reduce, the shape in which channels broadcast, and the batch's size."""
    (along,) = reduced_axes(axis, len(x.shape), "batch_norm_training")
    others = tuple(i for i in range(len(x.shape)) if i != along)
    shape = tuple(1 if i in others else n for i, n in enumerate(x.shape))
    return others, shape, prod(x.shape[i] for i in others)


@in_float32
def batch_norm_kernel(
    xp: Any, x: Any, gamma: Any, beta: Any, *, axis: int = -1, epsilon: float = 1e-3
) -> tuple[Any, Any, Any]:
    """Return the normalised ``x``, the mean and the variance."""
    over, wide, count = _layout(reals(x), axis)
    if not count:  # the mean would be nan, and so would the moving mean from then on
        raise ValueError(f"batch_norm_training: x of shape {x.shape} has no values for a mean")
    mean = xp.mean(x, axis=over)  # unlike sum, it does not overflow in half precision
    centred = x - xp.reshape(mean, wide)
    variance = xp.mean(centred * centred, axis=over)
    factor = gamma / xp.sqrt(variance + epsilon)
    y = centred * xp.reshape(factor, wide) + xp.reshape(beta, wide)
    return y, mean, variance


@in_float32
def batch_norm_gradient_kernel(
    xp: Any,
    gy: Any,
    gmean: Any,
    gvariance: Any,
    x: Any,
    gamma: Any,
    mean: Any,
    variance: Any,
    *,
    axis: int = -1,
    epsilon: float = 1e-3,
) -> tuple[Any, Any, Any]:
    """Return the gradients of ``x``, ``gamma`` and ``beta``."""
    over, wide, count = _layout(reals(x), axis)
    centred = x - xp.reshape(mean, wide)
    gbeta = xp.sum(gy, axis=over)
    moment = xp.sum(gy * centred, axis=over)
    # as in _gradient_formula, with the factors of a channel combined into three numbers
    root = 1 / xp.sqrt(variance + epsilon)
    factor = gamma * root
    slope = (2 * gvariance - factor * root * root * moment) / count
    shift = (gmean - factor * gbeta) / count
    gx = gy * xp.reshape(factor, wide) + centred * xp.reshape(slope, wide)
    gx = gx + xp.reshape(shift, wide)
    return gx, cast_to(xp, moment * root, gx.dtype), cast_to(xp, gbeta, gx.dtype)


def _gradient_spec(*given: TensorSpec, axis: int, epsilon: float) -> Any:
    dtype = np.result_type(*[x.dtype for x in given])
    x, mean = given[3].shape, given[5].shape
    return [(x, dtype), (mean, dtype), (mean, dtype)]


def _gradient_formula(
    gy: Any,
    gmean: Any,
    gvariance: Any,
    x: Any,
    gamma: Any,
    mean: Any,
    variance: Any,
    *,
    axis: int,
    epsilon: float,
) -> tuple[Any, Any, Any]:
    """Return the same in ops that work for any rank: the channels are moved last."""
    gy, x = (F.moveaxis(t, source=(axis,), destination=(-1,)) for t in (gy, x))
    count = F.unbroadcast_like(F.ones_like(x), mean)
    centred = x - mean
    gbeta = F.unbroadcast_like(gy, mean)
    moment = F.unbroadcast_like(gy * centred, mean)
    root = 1.0 / F.sqrt(variance + epsilon)
    factor = gamma * root
    slope = (gvariance * 2.0 - factor * root * root * moment) / count
    gx = gy * factor + centred * slope + (gmean - factor * gbeta) / count
    return F.moveaxis(gx, source=(-1,), destination=(axis,)), moment * root, gbeta


def _forward_formula(
    x: Any, gamma: Any, beta: Any, *, axis: int, epsilon: float
) -> tuple[Any, Any, Any]:
    """Return the op's results, computed by other ops."""
    x = F.moveaxis(x, source=(axis,), destination=(-1,))
    over = tuple(range(len(x.shape) - 1))
    mean = F.mean(x, axis=over, keepdims=False)
    centred = x - mean
    variance = F.mean(centred * centred, axis=over, keepdims=False)
    y = centred * (gamma / F.sqrt(variance + epsilon)) + beta
    return F.moveaxis(y, source=(-1,), destination=(axis,)), mean, variance


def _vjp(
    gs: Sequence[Any],
    inputs: Sequence[Any],
    outputs: Sequence[Any],
    needed: Any,
    *,
    axis: int,
    epsilon: float,
) -> list[Any]:
    x, gamma, _ = inputs
    _, mean, variance = outputs
    grads = F.batch_norm_gradient(*gs, x, gamma, mean, variance, axis=axis, epsilon=epsilon)
    return [as_like(g, like) for g, like in zip(grads, inputs, strict=True)]


def _channels(x: TensorSpec, gamma: TensorSpec, axis: int) -> Any:
    if x.shape is None:
        return gamma.shape
    (along,) = reduced_axes(axis, len(x.shape), "batch_norm_training")
    size = x.shape[along]
    if shapes_differ(gamma.shape, (size,)):
        raise ValueError(
            f"batch_norm_training: gamma of shape {gamma.shape} does not fit axis {axis} of x, "
            f"of shape {x.shape}"
        )
    return (size if gamma.shape is None else common_size(size, *gamma.shape),)


def _spec(x: TensorSpec, gamma: TensorSpec, beta: TensorSpec, *, axis: int, epsilon: float) -> Any:
    channels = _channels(x, gamma, axis)
    dtype = np.result_type(x.dtype, gamma.dtype, beta.dtype)
    # with wider numbers, those in half precision are computed in single precision
    own = np.result_type(x.dtype, "float32") if x.dtype == "float16" != dtype else x.dtype
    return [(x.shape, dtype), (channels, own), (channels, own)]


op(
    "batch_norm_training",
    batch_norm_kernel,
    vjp=_vjp,
    infer=_spec,
    batch=Composed(_forward_formula),
    inline=True,
    doc="""Normalise each channel of ``x`` by its mean and variance over all other axes.

    Parameters
    ----------
    x
        A floating tensor.
    gamma, beta
        Scale and offset, of shape ``(channels,)``.
    axis
        The axis of the channels.
    epsilon
        Added to the variance, inside the root.

    Returns
    -------
    ``y`` of the shape of ``x``; the mean and the biased variance, of shape ``(channels,)``.

    References
    ----------
    Ioffe and Szegedy, "Batch normalization", 2015, algorithm 1 and section 3.
    """,
)
op(
    "batch_norm_gradient",
    batch_norm_gradient_kernel,
    vjp=by_tape(_gradient_formula),
    shapes_only=("out",),
    infer=_gradient_spec,
    batch=Composed(_gradient_formula),
    inline=True,
    doc="Return the gradients of ``batch_norm_training`` for ``x``, ``gamma`` and ``beta``.",
)


@named
def batch_normalization(
    x: Any, mean: Any, variance: Any, offset: Any = None, scale: Any = None, epsilon: float = 1e-3
) -> Tensor:
    """Return ``(x - mean) / sqrt(variance + epsilon) * scale + offset``.

    Parameters
    ----------
    x
        A floating tensor of any shape.
    mean, variance, offset, scale
        Tensors that broadcast with ``x``; no offset or scale if ``None``, the default.
    epsilon
        Keeps the root away from 0; 0.001 by default.

    Returns
    -------
    A tensor of the broadcast shape and the promoted dtype.

    Raises
    ------
    ValueError
        If the shapes do not broadcast.

    References
    ----------
    Ioffe and Szegedy, "Batch normalization: accelerating deep network training by reducing internal
    covariate shift", 2015, algorithm 1.

    Examples
    --------
    >>> gt.nn.batch_normalization([1.0, 5.0], 3.0, 4.0, offset=10.0, epsilon=0.0).tolist()
    [9.0, 11.0]
    """
    x, mean, variance = floats(x, mean, variance)
    factor = ops["reciprocal"](ops["sqrt"](ops["add"](variance, epsilon)))
    y = ops["subtract"](x, mean)
    if scale is not None:
        factor = ops["multiply"](factor, floats(y, scale)[1])
    return _scaled(ops["multiply"](y, factor), None, offset)


# -- each example by itself ------------------------------------------------------------------------


def _normalised(x: Any, axis: Axis, epsilon: float) -> Any:
    if x.dtype == np.float16:  # squares and epsilon leave its range
        return as_like(_normalised(ops["cast"](x, dtype="float32"), axis, epsilon), x)
    centred = x - ops["mean"](x, axis=axis, keepdims=True)
    variance = ops["mean"](ops["square"](centred), axis=axis, keepdims=True)
    return centred / ops["sqrt"](variance + epsilon)


def _scaled(y: Any, scale: Any, offset: Any) -> Any:
    y = y if scale is None else ops["multiply"](*floats(y, scale))
    return y if offset is None else ops["add"](*floats(y, offset))


@named
def layer_normalization(
    x: Any, scale: Any = None, offset: Any = None, axis: Any = -1, epsilon: float = 1e-3
) -> Tensor:
    """Return ``x`` minus its mean, divided by its standard deviation, for each example separately.

    Parameters
    ----------
    x
        A floating tensor.
    scale, offset
        Tensors that broadcast with ``x``, to multiply by and to add; not used if ``None``, the
        default.
    axis
        The axis or axes over which mean and variance (divided by n) are taken; the last by default.
    epsilon
        Added to the variance, inside the root; 0.001 by default.

    Returns
    -------
    A tensor of the shape and dtype of ``x``.

    Raises
    ------
    TypeError
        If ``axis`` is not an integer or a tuple of integers.
    ValueError
        If shapes do not broadcast, or an axis is repeated.

    References
    ----------
    Ba, Kiros and Hinton, "Layer normalization", 2016.

    Examples
    --------
    >>> gt.nn.layer_normalization([[1.0, 3.0], [10.0, 30.0]], epsilon=0.0).tolist()
    [[-1.0, 1.0], [-1.0, 1.0]]
    """
    axes = as_axis(axis, "layer_normalization")
    (x,) = floats(x)
    return _scaled(_normalised(x, axes, epsilon), scale, offset)


def _in_groups(shape: Any, groups: int) -> Any:
    if shape is None:
        return None
    channels = shape[-1] if shape else 1
    if channels is not None and sizes_differ(channels % groups, 0):
        raise ValueError(
            f"group_normalization: {channels} channels of shape {shape} are not divisible into "
            f"{groups} groups"
        )
    return (*shape[:-1], groups, None if channels is None else exact_quotient(channels, groups))


op(
    "split_channels",
    lambda xp, x, *, groups: xp.reshape(x, _in_groups(x.shape, groups)),
    gradients={"x": lambda g, x_like: F.reshape_like(g, x_like)},
    infer=lambda x, groups: (_in_groups(x.shape, groups), x.dtype),
    holomorphic=True,
    batch=leading,
    jvp="linear",
    view=True,
    doc="Split the last axis into groups: ``(..., groups, channels / groups)``.",
)


@named
def group_normalization(
    x: Any, groups: int, scale: Any = None, offset: Any = None, epsilon: float = 1e-3
) -> Tensor:
    """Return ``x`` normalised within each example and group of channels.

    Parameters
    ----------
    x
        A floating tensor of known rank, ``(batch, ..., channels)``.
    groups
        The number of groups of channels: 1 is layer normalisation over all axes but the batch,
        ``channels`` is instance normalisation.
    scale, offset
        Tensors of shape ``(channels,)``, to multiply by and to add; not used if ``None``, the
        default.
    epsilon
        Added to the variance (divided by n), inside the root; 0.001 by default.

    Returns
    -------
    A tensor of the shape and dtype of ``x``.

    Raises
    ------
    ValueError
        If ``x`` has fewer than two axes, the channels are not divisible by ``groups``, or the
        shapes of ``scale`` and ``offset`` do not fit.

    References
    ----------
    Wu and He, "Group normalization", 2018.

    Examples
    --------
    >>> gt.nn.group_normalization([[1.0, 3.0, 10.0, 30.0]], groups=2, epsilon=0.0).tolist()
    [[-1.0, 1.0, -1.0, 1.0]]
    """
    (x,), count = floats(x), as_size(groups, "group_normalization")
    if (count < 1) is True or x.ndim < 2:
        raise ValueError(
            "group_normalization: at least one group and the shape (batch, ..., channels) are "
            f"needed, got {groups} groups and shape {x.shape}"
        )
    parts = ops["split_channels"](x, groups=count)
    inner = (*range(1, x.ndim - 1), x.ndim)
    return _scaled(ops["reshape_like"](_normalised(parts, inner, epsilon), x), scale, offset)


# -- dropout ---------------------------------------------------------------------------------------


@named
def dropout(x: Any, rate: float, generator: Any = None, training: bool = True) -> Tensor:
    """Return ``x`` with a random share of elements set to 0, and the others scaled up.

    Parameters
    ----------
    x
        A floating tensor of any shape.
    rate
        The share to drop, from 0 up to 1. The others are divided by ``1 - rate``, so that the
        expected value stays the same.
    generator
        A :class:`gradtape.random.Generator`; the shared one if not given.
    training
        Return ``x`` unchanged if false; true by default.

    Returns
    -------
    A tensor of the shape and dtype of ``x``.

    Raises
    ------
    TypeError
        If ``x`` is not floating.
    ValueError
        If the rate is not at least 0 and below 1.

    References
    ----------
    Srivastava, Hinton, Krizhevsky, Sutskever and Salakhutdinov, "Dropout: a simple way to prevent
    neural networks from overfitting", 2014.

    Examples
    --------
    >>> y = gt.nn.dropout(gt.ones(1000), 0.5, gt.random.Generator(0))
    >>> gt.unique(y).tolist()
    [0.0, 2.0]
    >>> gt.nn.dropout([1.0, 2.0], 0.5, training=False).tolist()
    [1.0, 2.0]
    """
    if not 0 <= rate < 1:
        raise ValueError(f"dropout: rate must be at least 0 and below 1, got {rate!r}")
    x = as_tensor(x)
    if not training or rate == 0:
        return x
    if generator is None:
        generator = shared()
    if not hasattr(generator, "uniform_like"):
        raise TypeError(
            f"dropout: generator must be a gradtape.random.Generator, got {generator!r}; give "
            "training by name"
        )
    kept = ops["greater_equal"](generator.uniform_like(x), rate)
    return ops["where"](kept, x / (1.0 - rate), 0.0)

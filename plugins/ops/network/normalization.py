"""Batch normalisation with the batch's own statistics, as one op.

Its gradient rule is one op too, and that op is differentiated by running the same formula in plain
ops: training takes two fused kernels, and gradients of gradients are still right.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import Any

import numpy as np

from ....core.extend import Composed, F, GradientTape, Tensor, TensorSpec, ops
from ..common.families import op, reals, reduced_axes
from ..common.gradients import as_like

__all__: list[str] = []


def by_tape(formula: Callable[..., Sequence[Any]]) -> Callable[..., list[Any]]:
    """Return the gradient rule of an op that computes ``formula``, a function written in ops."""

    def vjp(
        gs: Sequence[Any], inputs: Sequence[Any], outputs: Any, needed: Any, **params: Any
    ) -> list[Any]:
        raw = type(gs[0]) is not Tensor
        # new handles: the same tensor may be given for two inputs
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
    (along,) = reduced_axes(axis, x.ndim, "batch_norm_training")
    others = tuple(i for i in range(x.ndim) if i != along)
    shape = tuple(1 if i in others else n for i, n in enumerate(x.shape))
    return others, shape, prod(x.shape[i] for i in others)


def forward(
    xp: Any, x: Any, gamma: Any, beta: Any, *, axis: int = -1, epsilon: float = 1e-3
) -> tuple[Any, Any, Any]:
    over, wide, _ = _layout(reals(x), axis)
    mean = xp.mean(x, axis=over)  # unlike sum, it does not overflow in half precision
    centred = x - xp.reshape(mean, wide)
    variance = xp.mean(centred * centred, axis=over)
    factor = gamma / xp.sqrt(variance + epsilon)
    y = centred * xp.reshape(factor, wide) + xp.reshape(beta, wide)
    return y, mean, variance


def backward(
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
    over, wide, count = _layout(reals(x), axis)
    centred = x - xp.reshape(mean, wide)
    gbeta = xp.sum(gy, axis=over)
    moment = xp.sum(gy * centred, axis=over)
    # as in _formula, with what belongs to a channel gathered into three numbers
    root = 1 / xp.sqrt(variance + epsilon)
    factor = gamma * root
    slope = (2 * gvariance - factor * root * root * moment) / count
    shift = (gmean - factor * gbeta) / count
    gx = gy * xp.reshape(factor, wide) + centred * xp.reshape(slope, wide)
    return gx + xp.reshape(shift, wide), moment * root, gbeta


def _formula(
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
    """Return what ``backward`` does, in ops that hold at any rank: the channels are moved last."""
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
    """Return what ``forward`` does, in ops."""
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
    if gamma.shape is not None and gamma.shape != (size,) and None not in (*gamma.shape, size):
        raise ValueError(
            f"batch_norm_training: gamma of shape {gamma.shape} does not fit axis {axis} of x, "
            f"of shape {x.shape}"
        )
    return gamma.shape if size is None else (size,)


def _spec(x: TensorSpec, gamma: TensorSpec, beta: TensorSpec, *, axis: int, epsilon: float) -> Any:
    channels = _channels(x, gamma, axis)
    return [
        (x.shape, np.result_type(x.dtype, gamma.dtype, beta.dtype)),
        (channels, x.dtype),
        (channels, x.dtype),
    ]


op(
    "batch_norm_training",
    forward,
    vjp=_vjp,
    infer=_spec,
    batch=Composed(_forward_formula),
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
    backward,
    vjp=by_tape(_formula),
    shapes_only=("out",),
    infer=lambda gy, gmean, gvariance, x, gamma, mean, variance, axis, epsilon: [
        (x.shape, x.dtype),
        (mean.shape, x.dtype),
        (mean.shape, x.dtype),
    ],
    batch=Composed(_formula),
    doc="Return the gradients of ``batch_norm_training`` for ``x``, ``gamma`` and ``beta``.",
)

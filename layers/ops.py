"""``batch_norm``: batch normalisation by the batch's own statistics, as one op.

Composed of elementwise ops it would be a dozen records on the tape, and as many passes over memory.
Its gradient is one op as well; from the second order on, gradients are taken through the
elementwise ops that the gradient is made of.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..core.extend import F, Op
from ..core.tape import GradientTape
from ..core.tensor import Tensor

__all__ = ["KERNELS", "OPS"]


def _kernel(
    xp: Any, x: Any, gamma: Any, beta: Any, *, axis: int = -1, epsilon: float = 1e-3
) -> tuple[Any, Any, Any]:
    axes, along = _layout(len(x.shape), axis)
    mean = xp.mean(x, axis=axes)
    centred = x - xp.reshape(mean, along)
    variance = xp.mean(centred * centred, axis=axes)
    factor = gamma / xp.sqrt(variance + epsilon)
    y = centred * xp.reshape(factor, along) + xp.reshape(beta, along)
    return y, mean, variance


def numpy_kernel(
    x: Any, gamma: Any, beta: Any, *, axis: int = -1, epsilon: float = 1e-3
) -> tuple[Any, Any, Any]:
    """Compute ``batch_norm`` on NumPy arrays: as the portable kernel, with less ado."""
    if axis not in (-1, x.ndim - 1) or x.dtype.itemsize < 4:  # half precision sums in single
        return _kernel(np, x, gamma, beta, axis=axis, epsilon=epsilon)
    rows = x.reshape(-1, x.shape[-1])
    count = rows.shape[0]
    mean = np.add.reduce(rows, axis=0)
    mean /= count
    centred = rows - mean
    variance = np.add.reduce(centred * centred, axis=0)
    variance /= count
    y = centred * (gamma / np.sqrt(variance + epsilon))
    y = y + beta
    return y.reshape(x.shape), mean, variance


def _infer(x: Any, gamma: Any, beta: Any, *, axis: int, epsilon: float) -> list[Any]:
    if x.shape is None:
        raise ValueError(
            "batch_norm: the rank of x must be known to normalise by its own statistics; "
            "give the function a TensorSpec with a rank"
        )
    _layout(len(x.shape), axis)
    dtype = np.result_type(x.dtype, gamma.dtype, beta.dtype)
    return [(x.shape, dtype), (gamma.shape, x.dtype), (gamma.shape, x.dtype)]


def _infer_adjoint(*specs: Any, axis: int, epsilon: float) -> list[Any]:
    return [(spec.shape, spec.dtype) for spec in specs[3:6]]


def _layout(rank: int, axis: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return the axes to sum over, and the shape that lays channels along their axis."""
    if not -rank <= axis < rank:
        raise np.exceptions.AxisError(axis, rank, "batch_norm")
    axis %= rank
    axes = tuple(i for i in range(rank) if i != axis)
    return axes, tuple(-1 if i == axis else 1 for i in range(rank))


def _vjp(
    gs: Sequence[Any], inputs: Any, outputs: Any, needed: Any, *, axis: int, epsilon: float
) -> Any:
    return F.batch_norm_adjoint(*gs, *inputs, *outputs[1:], axis=axis, epsilon=epsilon)


# -- the gradient, an op too -----------------------------------------------------------------------


def _adjoint(
    g: Any,
    g_mean: Any,
    g_variance: Any,
    x: Any,
    gamma: Any,
    beta: Any,
    mean: Any,
    variance: Any,
    *,
    axis: int = -1,
    epsilon: float = 1e-3,
) -> tuple[Any, Any, Any]:
    """Return the gradients of x, gamma and beta, computed by ops on arrays of any type."""
    axes, along = _layout(len(x.shape), axis)

    def spread(channels: Any) -> Any:
        return F.reshape(channels, shape=along)

    count = F.sum(F.ones_like(x), axis=axes)
    centred = x - spread(mean)
    inverse = 1.0 / F.sqrt(variance + epsilon)
    g_sum = F.sum(g, axis=axes)
    g_centred = F.sum(g * centred, axis=axes)
    # y depends on x directly, through the mean, and through the variance
    slope = (2.0 * g_variance - gamma * inverse**3 * g_centred) / count
    shift = (g_mean - gamma * inverse * g_sum) / count
    gx = spread(gamma * inverse) * g + spread(slope) * centred + spread(shift)
    return (
        F.unbroadcast_like(gx, x),
        F.unbroadcast_like(inverse * g_centred, gamma),
        F.unbroadcast_like(g_sum, beta),
    )


def numpy_adjoint_kernel(
    g: Any,
    g_mean: Any,
    g_variance: Any,
    x: Any,
    gamma: Any,
    beta: Any,
    mean: Any,
    variance: Any,
    *,
    axis: int = -1,
    epsilon: float = 1e-3,
) -> tuple[Any, Any, Any]:
    """Compute ``batch_norm_adjoint`` on NumPy arrays: five passes if the channels are last."""
    if axis not in (-1, x.ndim - 1) or x.dtype.itemsize < 4:
        arrays = (g, g_mean, g_variance, x, gamma, beta, mean, variance)
        return _adjoint(*arrays, axis=axis, epsilon=epsilon)
    rows = x.reshape(-1, x.shape[-1])
    g = g.reshape(rows.shape)
    count = rows.shape[0]
    centred = rows - mean
    inverse = 1.0 / np.sqrt(variance + epsilon)
    g_sum = np.add.reduce(g, axis=0)
    g_gamma = np.add.reduce(g * centred, axis=0)
    g_gamma *= inverse
    factor = gamma * inverse
    slope = (2.0 * g_variance - factor * inverse * g_gamma) / count
    shift = (g_mean - factor * g_sum) / count
    gx = centred * slope
    gx += shift
    gx = gx + factor * g
    return (
        gx.reshape(x.shape).astype(x.dtype, copy=False),
        g_gamma.astype(gamma.dtype, copy=False),
        g_sum.astype(beta.dtype, copy=False),
    )


def _adjoint_vjp(
    gs: Sequence[Any], inputs: Any, outputs: Any, needed: Any, *, axis: int, epsilon: float
) -> Sequence[Any]:
    """Differentiate the adjoint by taping the ops that it is made of."""
    tensors = [x if type(x) is Tensor else Tensor(x) for x in inputs]
    with GradientTape() as tape:
        tape.watch(tensors)
        results = _adjoint(*tensors, axis=axis, epsilon=epsilon)
    upstream = [g if type(g) is Tensor else Tensor(g) for g in gs]
    found = tape.gradient(list(results), tensors, upstream)
    raw = type(inputs[0]) is not Tensor
    return [g.array if raw and g is not None else g for g in found]


#: Provided by the plugin of the layers.
OPS = [
    Op(
        "batch_norm",
        _kernel,
        vjp=_vjp,
        infer=_infer,
        doc=(
            "Normalise ``x`` by its own mean and biased variance for each channel; return the "
            "result, the mean and the variance."
        ),
    ),
    Op(
        "batch_norm_adjoint",
        lambda xp, *arrays, axis=-1, epsilon=1e-3: _adjoint(*arrays, axis=axis, epsilon=epsilon),
        inputs=("g", "g_mean", "g_variance", "x", "gamma", "beta", "mean", "variance"),
        vjp=_adjoint_vjp,
        infer=_infer_adjoint,
        doc="Return the gradients of ``batch_norm`` for its inputs, from those of its outputs.",
    ),
]

#: Kernels by op and backend, provided likewise.
KERNELS: dict[tuple[str, str], Callable[..., Any]] = {
    ("batch_norm", "numpy"): numpy_kernel,
    ("batch_norm_adjoint", "numpy"): numpy_adjoint_kernel,
}

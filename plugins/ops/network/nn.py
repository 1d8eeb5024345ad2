"""What neural networks add: activations, cross-entropies, normalisation."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

from ....core.extend import (
    NONDIFF,
    F,
    Op,
    Tensor,
    TensorSpec,
    as_dtype,
    as_tensor,
    default_dtype,
    ops,
)
from ..common.axes import as_axis, one_axis, reduced_axes
from ..common.batching import along, leading
from ..common.kernels import cast_to, kind_of, reals
from ..common.op_builders import elementwise, named, op
from ..elementwise.trigonometry import tanh
from .activations import (
    gelu,
    hard_sigmoid,
    hard_silu,
    hard_tanh,
    log_sigmoid,
    mish,
    selu,
    softsign,
)
from .blocks import (
    dropout,
    embedding_lookup,
    group_normalization,
    layer_normalization,
    segment_sum,
)
from .convolution import conv, conv1d, conv2d, conv_transpose, depthwise_conv
from .images import (
    avg_pool1d,
    avg_pool2d,
    conv1d_transpose,
    conv2d_transpose,
    max_pool1d,
    max_pool2d,
)
from .losses import (
    binary_cross_entropy,
    categorical_cross_entropy,
    cosine_similarity,
    hinge,
    huber,
    kl_divergence,
    sigmoid_cross_entropy_with_logits,
)
from .pooling import avg_pool, max_pool
from .shrinkage import celu, glu, hard_shrink, soft_shrink, squareplus, tanh_shrink

__all__ = [
    "avg_pool",
    "avg_pool1d",
    "avg_pool2d",
    "batch_normalization",
    "binary_cross_entropy",
    "categorical_cross_entropy",
    "celu",
    "clip_by_norm",
    "conv",
    "conv1d",
    "conv1d_transpose",
    "conv2d",
    "conv2d_transpose",
    "conv_transpose",
    "cosine_similarity",
    "depthwise_conv",
    "dropout",
    "elu",
    "embedding_lookup",
    "gelu",
    "glu",
    "group_normalization",
    "hard_shrink",
    "hard_sigmoid",
    "hard_silu",
    "hard_tanh",
    "hinge",
    "huber",
    "kl_divergence",
    "layer_normalization",
    "leaky_relu",
    "log_sigmoid",
    "log_softmax",
    "max_pool",
    "max_pool1d",
    "max_pool2d",
    "mish",
    "one_hot",
    "relu",
    "relu6",
    "segment_sum",
    "selu",
    "sigmoid",
    "sigmoid_cross_entropy_with_logits",
    "silu",
    "soft_shrink",
    "softmax",
    "softmax_cross_entropy_with_logits",
    "softplus",
    "softsign",
    "sparse_softmax_cross_entropy_with_logits",
    "squareplus",
    "tanh",
    "tanh_shrink",
]


# -- activations -----------------------------------------------------------------------------------

relu = elementwise(
    "relu",
    lambda xp, x: xp.maximum(x if x.dtype.kind != "c" else reals(x), 0),
    holomorphic=False,
    doc="""Return ``max(x, 0)``, elementwise.

    Notes
    -----
    The gradient is 1 for positive ``x`` and 0 elsewhere, at 0 and nan too.

    References
    ----------
    Nair and Hinton, "Rectified linear units improve restricted Boltzmann machines", 2010.

    Examples
    --------
    >>> gt.nn.relu([-1.0, 0.0, 2.0]).tolist()
    [0.0, 0.0, 2.0]
    >>> gt.grad(gt.nn.relu)(0.0).item()
    0.0
    """,
    x=lambda g, out: g * (out > 0),
)
relu6 = elementwise(
    "relu6",
    lambda xp, x: xp.minimum(xp.maximum(reals(x), 0), 6),
    holomorphic=False,
    doc="""Return ``min(max(x, 0), 6)``, elementwise.

    Notes
    -----
    The gradient is 1 between 0 and 6, and 0 at these bounds and beyond.

    References
    ----------
    Krizhevsky, "Convolutional deep belief networks on CIFAR-10", 2010.

    Examples
    --------
    >>> gt.nn.relu6([-1.0, 2.0, 9.0]).tolist()
    [0.0, 2.0, 6.0]
    """,
    x=lambda g, out: g * (out > 0) * (out < 6),
)


def _sigmoid_kernel(xp: Any, x: Any) -> Any:
    e = xp.exp(-xp.abs(reals(x)))  # at most 1
    return xp.where(x >= 0, 1, e) / (1 + e)


sigmoid = elementwise(
    "sigmoid",
    _sigmoid_kernel,
    holomorphic=False,
    doc="""Return ``1 / (1 + exp(-x))``, elementwise, without overflow.

    Notes
    -----
    The gradient is ``sigmoid(x) * (1 - sigmoid(x))``.

    Examples
    --------
    >>> gt.nn.sigmoid([-1000.0, 0.0, 1000.0]).tolist()
    [0.0, 0.5, 1.0]
    >>> gt.grad(gt.nn.sigmoid)(0.0).item()
    0.25
    """,
    x=lambda g, out: g * (out * (1 - out)),
)
softplus = elementwise(
    "softplus",
    lambda xp, x: xp.maximum(reals(x), 0) + xp.log1p(xp.exp(-xp.abs(x))),
    holomorphic=False,
    doc="""Return ``log(1 + exp(x))``, elementwise, without overflow.

    Notes
    -----
    The gradient is ``sigmoid(x)``.

    References
    ----------
    Dugas, Bengio, Belisle, Nadeau and Garcia, "Incorporating second-order functional knowledge for
    better option pricing", 2001.

    Examples
    --------
    >>> gt.round(gt.nn.softplus(np.array([-1000.0, 0.0, 1000.0])), 4).tolist()
    [0.0, 0.6931, 1000.0]
    """,
    x=lambda g, x: g * F.sigmoid(x),
)
silu = elementwise(
    "silu",
    lambda xp, x: x * _sigmoid_kernel(xp, x),
    holomorphic=False,
    doc="""Return ``x * sigmoid(x)``, elementwise; also known as swish.

    References
    ----------
    Elfwing, Uchibe and Doya, "Sigmoid-weighted linear units for neural network function
    approximation in reinforcement learning", 2018.

    Examples
    --------
    >>> gt.round(gt.nn.silu(np.array([-1.0, 0.0, 1.0])), 3).tolist()
    [-0.269, 0.0, 0.731]
    """,
    x=lambda g, x: g * _silu_slope(x, F.sigmoid(x)),
)


def _silu_slope(x: Any, s: Any) -> Any:
    return s + x * s * (1 - s)


def _leaky_slope(g: Any, x: Any, alpha: float) -> Any:
    return g * F.where(x > 0, 1.0, F.broadcast_like(alpha, x))


_leaky_relu = elementwise(
    "leaky_relu",
    lambda xp, x, *, alpha=0.2: xp.where(reals(x) > 0, x, alpha * x),
    kind=Op,
    holomorphic=False,
    doc="Return ``x`` where positive, else ``alpha * x``.",
    x=_leaky_slope,
)


def leaky_relu(x: Any, alpha: float = 0.2) -> Tensor:
    """Return ``x`` where it is positive, else ``alpha * x``, elementwise.

    Parameters
    ----------
    x
        A floating tensor of any shape.
    alpha
        The slope for negative numbers, 0.2 by default.

    Returns
    -------
    A tensor of the shape and dtype of ``x``.

    Raises
    ------
    TypeError
        If ``x`` is complex, or not a tensor, an array or a number.

    Notes
    -----
    The gradient at 0 is ``alpha``.

    References
    ----------
    Maas, Hannun and Ng, "Rectifier nonlinearities improve neural network acoustic models", 2013.

    Examples
    --------
    >>> gt.nn.leaky_relu([-4.0, 0.0, 2.0], alpha=0.25).tolist()
    [-1.0, 0.0, 2.0]
    """
    return _leaky_relu(x, alpha=float(alpha))


def _elu_slope(g: Any, x: Any, alpha: float) -> Any:
    # the exponential of positive x is not wanted, and could overflow
    return g * F.where(x > 0, 1.0, F.exp(F.where(x > 0, 0.0, x)) * alpha)


_elu = elementwise(
    "elu",
    lambda xp, x, *, alpha=1.0: xp.where(reals(x) > 0, x, alpha * xp.expm1(xp.minimum(x, 0))),
    kind=Op,
    holomorphic=False,
    doc="Return ``x`` where positive, else ``alpha * (exp(x) - 1)``.",
    x=_elu_slope,
)


def elu(x: Any, alpha: float = 1.0) -> Tensor:
    """Return ``x`` where it is positive, else ``alpha * (exp(x) - 1)``, elementwise.

    Parameters
    ----------
    x
        A floating tensor of any shape.
    alpha
        The size of the limit for large negative numbers, 1 by default.

    Returns
    -------
    A tensor of the shape and dtype of ``x``.

    Raises
    ------
    TypeError
        If ``x`` is complex, or not a tensor, an array or a number.

    Notes
    -----
    The gradient at 0 is ``alpha``.

    References
    ----------
    Clevert, Unterthiner and Hochreiter, "Fast and accurate deep network learning by exponential
    linear units (ELUs)", 2016.

    Examples
    --------
    >>> gt.round(gt.nn.elu(np.array([-1.0, 0.0, 2.0])), 3).tolist()
    [-0.632, 0.0, 2.0]
    """
    return _elu(x, alpha=float(alpha))


# -- softmax ---------------------------------------------------------------------------------------


def _axis_spec(name: str) -> Any:
    def infer(x: TensorSpec, *, axis: int) -> tuple[Any, Any]:
        if x.shape is not None:
            reduced_axes(axis, len(x.shape), name)
        return x.shape, x.dtype

    return infer


def _shifted(xp: Any, x: Any, axis: int) -> Any:
    """Return ``x`` less its maximum, so that its exponentials stay finite."""
    return x - xp.max(reals(x), axis=axis, keepdims=True)


def softmax_kernel(xp: Any, x: Any, *, axis: int = -1) -> Any:
    if not x.shape[axis]:
        return x
    e = xp.exp(_shifted(xp, x, axis))
    return e / xp.sum(e, axis=axis, keepdims=True)


def _log_softmax_kernel(xp: Any, x: Any, *, axis: int = -1) -> Any:
    if not x.shape[axis]:
        return x
    shifted = _shifted(xp, x, axis)
    return shifted - xp.log(xp.sum(xp.exp(shifted), axis=axis, keepdims=True))


_softmax = op(
    "softmax",
    softmax_kernel,
    gradients={
        "x": lambda g, out, axis: out * (g - F.sum(g * out, axis=axis, keepdims=True)),
    },
    infer=_axis_spec("softmax"),
    batch=along("axis"),
    doc="Return exponentials that sum to 1 along an axis.",
)
_log_softmax = op(
    "log_softmax",
    _log_softmax_kernel,
    gradients={
        "x": lambda g, out, axis: g - F.exp(out) * F.sum(g, axis=axis, keepdims=True),
    },
    infer=_axis_spec("log_softmax"),
    batch=along("axis"),
    doc="Return the logarithm of the softmax along an axis.",
)


def softmax(x: Any, axis: int = -1) -> Tensor:
    """Return ``exp(x) / sum(exp(x))`` along ``axis``, for ``x`` of any size.

    Parameters
    ----------
    x
        A floating tensor of at least one axis.
    axis
        The axis along which results sum to 1, the last by default.

    Returns
    -------
    A tensor of the shape and dtype of ``x``.

    Raises
    ------
    AxisError
        If the axis is out of bounds.
    TypeError
        If ``x`` is complex, or ``axis`` is not an integer.

    Notes
    -----
    With ``s = softmax(x)``, an upstream gradient ``g`` becomes ``s * (g - sum(g * s))``.

    References
    ----------
    Bridle, "Probabilistic interpretation of feedforward classification network outputs", 1990.

    Examples
    --------
    >>> gt.nn.softmax([1.0, 1.0]).tolist()
    [0.5, 0.5]
    >>> gt.nn.softmax([[0.0, 1000.0]], axis=0).tolist()
    [[1.0, 1.0]]
    """
    return _softmax(x, axis=one_axis(axis, "softmax"))


def log_softmax(x: Any, axis: int = -1) -> Tensor:
    """Return ``x - log(sum(exp(x)))`` along ``axis``, for ``x`` of any size.

    Parameters
    ----------
    x
        A floating tensor of at least one axis.
    axis
        The axis along which the exponentials of results sum to 1, the last by default.

    Returns
    -------
    A tensor of the shape and dtype of ``x``.

    Raises
    ------
    IndexError
        If the axis is out of bounds.
    TypeError
        If ``x`` is complex, or ``axis`` is not an integer.

    Notes
    -----
    An upstream gradient ``g`` becomes ``g - softmax(x) * sum(g)``.

    Examples
    --------
    >>> gt.round(gt.nn.log_softmax(np.array([1.0, 1.0])), 4).tolist()
    [-0.6931, -0.6931]
    """
    return _log_softmax(x, axis=one_axis(axis, "log_softmax"))


# -- cross-entropy ---------------------------------------------------------------------------------


def _sparse_shape(logits: Any, labels: Any) -> Any:
    if logits is not None and not logits:
        raise ValueError(
            "sparse_softmax_cross_entropy: logits need an axis of classes, got shape ()"
        )
    if logits is None or labels is None:
        return labels
    fits = len(labels) == len(logits) - 1 and all(
        n == m or n is None or m is None for n, m in zip(labels, logits, strict=False)
    )
    if not fits:
        raise ValueError(
            "sparse_softmax_cross_entropy: labels have one axis less than logits, "
            f"got labels of shape {labels} and logits of shape {logits}"
        )
    return labels


def check_labels(xp: Any, logits: Any, labels: Any) -> None:
    """Raise if class labels do not fit the logits."""
    _sparse_shape(logits.shape, labels.shape)
    if not labels.size:
        return
    if kind_of(labels.dtype) not in "iu":
        raise TypeError(
            f"sparse_softmax_cross_entropy: labels are integers, got dtype {labels.dtype}"
        )
    low, high, classes = xp.min(labels), xp.max(labels), logits.shape[-1]
    if low < 0 or high >= classes:
        raise ValueError(
            f"sparse_softmax_cross_entropy: labels must be from 0 to {classes - 1}, "
            f"got {int(low)} to {int(high)}"
        )


def sparse_kernel(xp: Any, logits: Any, labels: Any) -> Any:
    check_labels(xp, logits, labels)
    count = labels.size
    rows, flat = xp.reshape(logits, (count, logits.shape[-1])), xp.reshape(labels, (count,))
    shifted = _shifted(xp, rows, -1)
    picked = xp.take_along_axis(shifted, xp.expand_dims(flat, axis=-1), axis=-1)[..., 0]
    losses = xp.log(xp.sum(xp.exp(shifted), axis=-1)) - picked
    return xp.reshape(losses, labels.shape)


def softmax_less_labels_kernel(xp: Any, logits: Any, labels: Any) -> Any:
    p = softmax_kernel(xp, logits)
    return p - xp.where(_hits(xp, labels, logits.shape[-1]), xp.ones_like(p), xp.zeros_like(p))


def _softmax_less_labels_rule(g: Any, logits: Any) -> Any:
    p = F.softmax(logits, axis=-1)
    return p * (g - F.sum(g * p, axis=-1, keepdims=True))


_sparse_cross_entropy = op(
    "sparse_softmax_cross_entropy",
    sparse_kernel,
    gradients={
        "logits": lambda g, logits, labels: (
            F.expand_dims(g, axis=-1) * F.softmax_less_labels(logits, labels)
        ),
        "labels": NONDIFF,
    },
    infer=lambda logits, labels: (_sparse_shape(logits.shape, labels.shape), logits.dtype),
    batch=leading,
    doc="Return the cross-entropy between class labels and the softmax of logits.",
)
op(
    "softmax_less_labels",
    softmax_less_labels_kernel,
    gradients={"logits": _softmax_less_labels_rule, "labels": NONDIFF},
    infer=lambda logits, labels: (logits.shape, logits.dtype),
    batch=leading,
    doc="Return the softmax of logits less 1 at the label: the gradient of the cross-entropy.",
)


@named
def sparse_softmax_cross_entropy_with_logits(*, labels: Any, logits: Any) -> Tensor:
    """Return the cross-entropy of class labels under the softmax of logits.

    Parameters
    ----------
    labels
        Integers from 0 to ``classes - 1``, of shape ``logits.shape[:-1]``.
    logits
        Unnormalised log-probabilities, classes in the last axis.

    Returns
    -------
    A tensor of the shape of ``labels`` and the dtype of ``logits``:
    ``-log(softmax(logits)[label])``, computed without overflow.

    Raises
    ------
    TypeError
        If the labels are not integers, or the logits are complex.
    ValueError
        If the shapes do not fit, or a label is out of range.

    Notes
    -----
    The gradient for logits is ``softmax(logits) - one_hot(labels)``; labels have none.

    References
    ----------
    Goodfellow, Bengio and Courville, "Deep learning", 2016, section 6.2.2.3.

    Examples
    --------
    >>> loss = gt.nn.sparse_softmax_cross_entropy_with_logits(labels=0, logits=[2.0, 2.0])
    >>> round(loss.item(), 4)
    0.6931
    """
    return _sparse_cross_entropy(as_tensor(logits), as_tensor(labels))


def _dense_shape(logits: Any, labels: Any, axis: int) -> Any:
    if logits is None or labels is None:
        return None
    if len(labels) != len(logits) or any(
        n != m and None not in (n, m) for n, m in zip(labels, logits, strict=True)
    ):
        raise ValueError(
            "softmax_cross_entropy: labels and logits must have one shape, "
            f"got labels of shape {labels} and logits of shape {logits}"
        )
    (along,) = reduced_axes(axis, len(logits), "softmax_cross_entropy")
    return (*logits[:along], *logits[along + 1 :])


def _dense_kernel(xp: Any, logits: Any, labels: Any, *, axis: int = -1) -> Any:
    _dense_shape(logits.shape, labels.shape, axis)
    return -xp.sum(labels * _log_softmax_kernel(xp, logits, axis=axis), axis=axis)


def _dense_logits(g: Any, logits: Any, labels: Any, axis: int) -> Any:
    # softmax - labels by definition, also where labels do not sum to 1
    return F.expand_dims(g, axis=axis) * (F.softmax(logits, axis=axis) - labels)


def _dense_labels(g: Any, logits: Any, labels_like: Any, axis: int) -> Any:
    gl = -(F.expand_dims(g, axis=axis) * F.log_softmax(logits, axis=axis))
    return gl if gl.dtype == labels_like.dtype else F.cast_like(gl, labels_like)


_cross_entropy = op(
    "softmax_cross_entropy",
    _dense_kernel,
    gradients={"logits": _dense_logits, "labels": _dense_labels},
    infer=lambda logits, labels, axis: (
        _dense_shape(logits.shape, labels.shape, axis),
        np.result_type(logits.dtype, labels.dtype),
    ),
    batch=along("axis"),
    doc="Return the cross-entropy between distributions and the softmax of logits.",
)


@named
def softmax_cross_entropy_with_logits(*, labels: Any, logits: Any, axis: int = -1) -> Tensor:
    """Return the cross-entropy of distributions under the softmax of logits.

    Parameters
    ----------
    labels
        Probabilities, of the shape of ``logits``.
    logits
        Unnormalised log-probabilities.
    axis
        The axis of the classes, the last by default.

    Returns
    -------
    A tensor without that axis, of the promoted dtype: ``-sum(labels * log_softmax(logits))``,
    computed without overflow.

    Raises
    ------
    AxisError
        If the axis is out of bounds.
    TypeError
        If the logits are complex, or ``axis`` is not an integer.
    ValueError
        If the shapes differ.

    Notes
    -----
    The gradient for logits is ``softmax(logits) - labels``, also where labels do not sum to 1;
    labels have a gradient as well. Both are TensorFlow's.

    References
    ----------
    Goodfellow, Bengio and Courville, "Deep learning", 2016, section 6.2.2.3.

    Examples
    --------
    >>> loss = gt.nn.softmax_cross_entropy_with_logits(labels=[0.5, 0.5], logits=[2.0, 2.0])
    >>> round(loss.item(), 4)
    0.6931
    """
    axis = one_axis(axis, "softmax_cross_entropy")
    return _cross_entropy(as_tensor(logits), as_tensor(labels), axis=axis)


def _hits(xp: Any, indices: Any, depth: int) -> Any:
    """Return whether each of ``depth`` numbers is the index."""
    return xp.expand_dims(indices, axis=-1) == xp.arange(depth, dtype=indices.dtype)


_one_hot = op(
    "one_hot",
    lambda xp, indices, *, depth, dtype: cast_to(xp, _hits(xp, indices, depth), dtype),
    gradients={"indices": NONDIFF},
    infer=lambda indices, depth, dtype: (
        None if indices.shape is None else (*indices.shape, depth),
        np.dtype(dtype),
    ),
    batch=leading,
    doc="Return rows with a 1 at each index and 0 elsewhere.",
)


@named
def one_hot(indices: Any, depth: int, dtype: Any = None) -> Tensor:
    """Return rows of ``depth`` numbers, 1 at each index and 0 elsewhere.

    Parameters
    ----------
    indices
        Integers of any shape; one outside ``0 .. depth - 1`` gives a row of zeros.
    depth
        The number of classes, the last axis of the result.
    dtype
        The result's dtype; the default dtype if not given.

    Returns
    -------
    A tensor of shape ``(*indices.shape, depth)``; it has no gradient.

    Raises
    ------
    TypeError
        If the indices or ``depth`` are not integers, or ``dtype`` is not a dtype.

    Examples
    --------
    >>> gt.one_hot([0, 2, -1], 3).tolist()
    [[1.0, 0.0, 0.0], [0.0, 0.0, 1.0], [0.0, 0.0, 0.0]]
    """
    indices = as_tensor(indices)
    if indices.dtype.kind not in "iu":
        raise TypeError(f"one_hot: indices must be integers, got dtype {indices.dtype}")
    wanted = default_dtype() if dtype is None else as_dtype(dtype)
    return _one_hot(indices, depth=operator.index(depth), dtype=wanted.name)


# -- norms -----------------------------------------------------------------------------------------


@named
def clip_by_norm(t: Any, clip_norm: Any, axes: Any = None) -> Tensor:
    """Return ``t`` scaled down, where needed, to a Euclidean norm of at most ``clip_norm``.

    Parameters
    ----------
    t
        A floating tensor of any shape.
    clip_norm
        The largest norm, above 0: a number or a tensor that broadcasts.
    axes
        The axes over which a norm is taken; all by default.

    Returns
    -------
    A tensor of the shape and dtype of ``t``.

    Raises
    ------
    AxisError
        If an axis is out of bounds.
    TypeError
        If ``t`` is not a tensor, an array or a number, or ``axes`` are not integers.
    ValueError
        If the shapes do not broadcast, or an axis comes twice.

    Notes
    -----
    ``t * clip_norm / max(norm(t), clip_norm)``, as in TensorFlow. The gradient at 0 is 1.

    References
    ----------
    Pascanu, Mikolov and Bengio, "On the difficulty of training recurrent neural networks", 2013.

    Examples
    --------
    >>> gt.clip_by_norm([3.0, 4.0], 2.5).tolist()
    [1.5, 2.0]
    """
    t = as_tensor(t)
    size = ops["norm"](t, axis=as_axis(axes, "clip_by_norm"), keepdims=True)
    return ops["multiply"](t, ops["divide"](clip_norm, ops["maximum"](size, clip_norm)))


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
    TypeError
        If an argument is not a tensor, an array or a number.
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
    factor = ops["reciprocal"](ops["sqrt"](ops["add"](variance, epsilon)))
    factor = factor if scale is None else ops["multiply"](factor, scale)
    y = ops["multiply"](ops["subtract"](x, mean), factor)
    return y if offset is None else ops["add"](y, offset)

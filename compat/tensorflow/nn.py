"""``tf.nn``: cross-entropies, normalisation, convolutions; images are channels last by default."""

from __future__ import annotations

import operator
from typing import Any

import gradtape

from .dtypes import cast
from .math import in_top_k, l2_normalize, log_softmax, softmax, top_k, zero_fraction
from .names import adapts, lookup
from .values import axes, convert_to_tensor, plain, sizes

__all__ = [
    "avg_pool",
    "avg_pool1d",
    "avg_pool2d",
    "batch_normalization",
    "bias_add",
    "conv1d",
    "conv2d",
    "conv2d_transpose",
    "convolution",
    "crelu",
    "depthwise_conv2d",
    "dropout",
    "embedding_lookup",
    "in_top_k",
    "l2_loss",
    "l2_normalize",
    "log_softmax",
    "max_pool",
    "max_pool1d",
    "max_pool2d",
    "moments",
    "sigmoid_cross_entropy_with_logits",
    "silu",
    "softmax",
    "softmax_cross_entropy_with_logits",
    "sparse_softmax_cross_entropy_with_logits",
    "swish",
    "top_k",
    "weighted_cross_entropy_with_logits",
    "zero_fraction",
]


# -- activations -----------------------------------------------------------------------------------


@adapts("nn.silu")
def silu(features: Any, beta: Any = 1.0) -> Any:
    """Return ``x * sigmoid(beta * x)``."""
    x = convert_to_tensor(features)
    if type(beta) in (int, float) and beta == 1.0:
        return gradtape.nn.silu(x)
    return x * gradtape.nn.sigmoid(beta * x)


swish = silu


@adapts("nn.relu", "concatenate")
def crelu(features: Any, axis: int = -1, name: str | None = None) -> Any:
    """Return ``relu(x)`` and ``relu(-x)``, one after the other along ``axis``."""
    x = convert_to_tensor(features)
    return gradtape.nn.relu(gradtape.concatenate([x, -x], axis))


# -- losses ----------------------------------------------------------------------------------------


@adapts("nn.softmax_cross_entropy_with_logits")
def softmax_cross_entropy_with_logits(
    labels: Any, logits: Any, axis: int = -1, name: str | None = None
) -> Any:
    """Return the cross-entropies of label distributions and logits; labels have gradients too."""
    logits = convert_to_tensor(logits)
    return gradtape.nn.softmax_cross_entropy_with_logits(
        labels=_like(labels, logits), logits=logits, axis=axis
    )


@adapts("nn.sparse_softmax_cross_entropy_with_logits")
def sparse_softmax_cross_entropy_with_logits(
    labels: Any, logits: Any, name: str | None = None
) -> Any:
    """Return the cross-entropies of integer labels and logits."""
    return gradtape.nn.sparse_softmax_cross_entropy_with_logits(
        labels=convert_to_tensor(labels), logits=convert_to_tensor(logits)
    )


@adapts("nn.sigmoid_cross_entropy_with_logits")
def sigmoid_cross_entropy_with_logits(
    labels: Any = None, logits: Any = None, name: str | None = None
) -> Any:
    """Return the cross-entropies of independent labels in ``[0, 1]`` and logits."""
    logits = convert_to_tensor(logits)
    return gradtape.nn.sigmoid_cross_entropy_with_logits(
        labels=_like(labels, logits), logits=logits
    )


@adapts("nn.sigmoid_cross_entropy_with_logits")
def weighted_cross_entropy_with_logits(
    labels: Any, logits: Any, pos_weight: Any, name: str | None = None
) -> Any:
    """Return sigmoid cross-entropies in which positive labels count ``pos_weight`` times."""
    logits = convert_to_tensor(logits)
    labels = _like(labels, logits)
    weight = 1.0 + (pos_weight - 1.0) * labels
    return (1.0 - labels) * logits + weight * gradtape.nn.softplus(-logits)


def _like(value: Any, beside: Any) -> Any:
    """Return ``value`` as a tensor, in the other's dtype if it has none or an integer one."""
    value = convert_to_tensor(value, None if hasattr(value, "dtype") else beside.dtype)
    return cast(value, beside.dtype) if value.dtype.kind in "biu" else value


@adapts("sum")
def l2_loss(t: Any, name: str | None = None) -> Any:
    """Return ``sum(t**2) / 2``."""
    return gradtape.sum(gradtape.square(convert_to_tensor(t))) / 2.0


# -- normalisation ---------------------------------------------------------------------------------


@adapts("mean", "var")
def moments(
    x: Any, axes: Any, shift: Any = None, keepdims: bool = False, name: str | None = None
) -> tuple[Any, Any]:
    """Return mean and variance (divided by n) over ``axes``."""
    x, axis = convert_to_tensor(x), _axes(axes)
    mean = gradtape.mean(x, axis, bool(keepdims))
    return mean, gradtape.var(x, axis, keepdims=bool(keepdims))


_axes = axes


@adapts("nn.batch_normalization")
def batch_normalization(
    x: Any,
    mean: Any,
    variance: Any,
    offset: Any,
    scale: Any,
    variance_epsilon: float,
    name: str | None = None,
) -> Any:
    """Return ``(x - mean) / sqrt(variance + variance_epsilon) * scale + offset``."""
    return gradtape.nn.batch_normalization(
        convert_to_tensor(x), mean, variance, offset, scale, variance_epsilon
    )


@adapts("add")
def bias_add(value: Any, bias: Any, data_format: str | None = None, name: str | None = None) -> Any:
    """Return ``value + bias``, a vector along the channels.

    Raises
    ------
    ValueError
        If the bias is no vector of as many numbers as there are channels.
    """
    value, bias = convert_to_tensor(value), convert_to_tensor(bias)
    first = data_format is not None and data_format.startswith("NC")
    shape = value.shape
    channels = None if shape is None else shape[1 if first else -1]
    if bias.ndim != 1 or (channels is not None and bias.shape[0] not in (channels, None)):
        raise ValueError(f"bias_add: bias of shape {bias.shape} for a value of shape {shape}")
    if first:
        bias = gradtape.reshape(bias, (-1,) + (1,) * (len(shape) - 2))
    return value + bias


@adapts("nn.dropout")
def dropout(
    x: Any, rate: float, noise_shape: Any = None, seed: int | None = None, name: str | None = None
) -> Any:
    """Return ``x`` with a random share ``rate`` of elements set to 0, and the others scaled up.

    ``noise_shape`` is the shape of the random choice, which is broadcast.
    """
    x = convert_to_tensor(x)
    source = None if seed is None else gradtape.random.Generator(seed)
    if noise_shape is None:
        return gradtape.nn.dropout(x, rate, source)
    given = plain(noise_shape)
    shape = [n if want is None else operator.index(want) for n, want in zip(x.shape, given)]
    chosen = gradtape.nn.dropout(gradtape.ones(shape, x.dtype), rate, source)
    return x * chosen


@adapts("nn.embedding_lookup")
def embedding_lookup(
    params: Any, ids: Any, max_norm: float | None = None, name: str | None = None
) -> Any:
    """Return rows of a table by number, scaled to a norm of at most ``max_norm``."""
    rows = gradtape.nn.embedding_lookup(convert_to_tensor(params), convert_to_tensor(ids))
    if max_norm is None:
        return rows
    own = tuple(range(convert_to_tensor(ids).ndim, rows.ndim))
    return gradtape.clip_by_norm(rows, max_norm, own)


# -- images ----------------------------------------------------------------------------------------


def _spatial(value: Any, rank: int, first: bool, op: str) -> Any:
    """Return the numbers of the spatial axes from one, ``rank`` or ``rank + 2`` numbers."""
    value = plain(value)
    if not isinstance(value, (list, tuple)):
        return operator.index(value)
    value = [operator.index(n) for n in value]
    if len(value) == 1:
        return value[0]
    if len(value) == rank + 2:
        others = value[:2] if first else (value[0], value[-1])
        if tuple(others) != (1, 1):
            raise ValueError(f"{op}: batch and channels take no strides or windows, got {value}")
        return value[2:] if first else value[1:-1]
    if len(value) != rank:
        raise ValueError(f"{op}: expected 1, {rank} or {rank + 2} numbers, got {value}")
    return value


def _padding(padding: Any, first: bool) -> Any:
    if isinstance(padding, str):
        return padding.lower()
    pairs = [sizes(pair, "padding") for pair in plain(padding)]
    return pairs[2:] if first else pairs[1:-1]


def _on_channels_last(fn: Any, x: Any, rank: int, data_format: str | None) -> Any:
    """Apply ``fn`` to images with their channels last, wherever they are."""
    x = convert_to_tensor(x)
    if not (data_format or "").startswith("NC"):
        return fn(x)
    return gradtape.moveaxis(fn(gradtape.moveaxis(x, 1, -1)), -1, 1)


def _channels_first(data_format: str | None) -> bool:
    return (data_format or "").startswith("NC")


def _convolved(
    conv: Any,
    op: str,
    rank: int,
    x: Any,
    filters: Any,
    strides: Any,
    padding: Any,
    data_format: str | None,
    dilations: Any,
) -> Any:
    first = _channels_first(data_format)
    settings = {
        "strides": _spatial(1 if strides is None else strides, rank, first, op),
        "padding": _padding(padding, first),
        "dilations": _spatial(1 if dilations is None else dilations, rank, first, op),
    }
    filters = convert_to_tensor(filters)
    return _on_channels_last(lambda x: conv(x, filters, **settings), x, rank, data_format)


@adapts("nn.conv2d")
def conv2d(
    input: Any,
    filters: Any,
    strides: Any,
    padding: Any,
    data_format: str = "NHWC",
    dilations: Any = None,
    name: str | None = None,
) -> Any:
    """Return the convolution of images with filters ``(height, width, channels, filters)``.

    Parameters
    ----------
    input
        Images ``(batch, height, width, channels)``, or as ``data_format`` says.
    filters
        The filters; they do not turn. Fewer channels than the images have make groups.
    strides, dilations
        One number, two, or one per axis.
    padding
        ``"SAME"``, ``"VALID"``, or a pair per axis.
    data_format
        ``"NHWC"`` or ``"NCHW"``.
    """

    def conv(x: Any, w: Any, **settings: Any) -> Any:
        channels, own = x.shape[-1], w.shape[-2]
        groups = 1 if None in (channels, own) or not own else channels // own
        return gradtape.nn.conv2d(x, w, groups=max(groups, 1), **settings)

    return _convolved(conv, "conv2d", 2, input, filters, strides, padding, data_format, dilations)


@adapts("nn.conv1d")
def conv1d(
    input: Any,
    filters: Any,
    stride: Any,
    padding: Any,
    data_format: str = "NWC",
    dilations: Any = None,
    name: str | None = None,
) -> Any:
    """Return the convolution of ``(batch, size, channels)``; see :func:`conv2d`."""
    conv = gradtape.nn.conv1d
    return _convolved(conv, "conv1d", 1, input, filters, stride, padding, data_format, dilations)


@adapts("nn.conv")
def convolution(
    input: Any,
    filters: Any,
    strides: Any = None,
    padding: Any = "VALID",
    data_format: str | None = None,
    dilations: Any = None,
    name: str | None = None,
) -> Any:
    """Return the convolution over as many spatial axes as the filters have; see :func:`conv2d`."""
    rank = convert_to_tensor(filters).ndim - 2
    conv = gradtape.nn.conv
    return _convolved(
        conv, "convolution", rank, input, filters, strides, padding, data_format, dilations
    )


@adapts("nn.depthwise_conv")
def depthwise_conv2d(
    input: Any,
    filter: Any,
    strides: Any,
    padding: Any,
    data_format: str | None = None,
    dilations: Any = None,
    name: str | None = None,
) -> Any:
    """Return a convolution of each channel with filters of its own; see :func:`conv2d`."""
    conv = gradtape.nn.depthwise_conv
    return _convolved(
        conv, "depthwise_conv2d", 2, input, filter, strides, padding, data_format, dilations
    )


@adapts("nn.conv2d_transpose")
def conv2d_transpose(
    input: Any,
    filters: Any,
    output_shape: Any,
    strides: Any,
    padding: Any = "SAME",
    data_format: str = "NHWC",
    dilations: Any = None,
    name: str | None = None,
) -> Any:
    """Return a transposed convolution with filters ``(height, width, filters, channels)``.

    Raises
    ------
    ValueError
        If ``output_shape`` is not the size that follows from the others: with ``"SAME"``, the
        input's times the stride.
    """
    made = _convolved(
        gradtape.nn.conv2d_transpose,
        "conv2d_transpose",
        2,
        input,
        filters,
        strides,
        padding,
        data_format,
        dilations,
    )
    wanted = sizes(output_shape, "conv2d_transpose")
    if not gradtape.TensorSpec(wanted, made.dtype).admits(made.shape):
        raise ValueError(f"conv2d_transpose: output_shape={wanted}, but the result is {made.shape}")
    return made


def _pooled(pool: Any, op: str, rank: int, x: Any, ksize: Any, strides: Any, *rest: Any) -> Any:
    padding, data_format = rest
    first = _channels_first(data_format)
    window = _spatial(ksize, rank, first, op)
    step = _spatial(strides, rank, first, op)
    return _on_channels_last(
        lambda x: pool(x, window, step, _padding(padding, first)), x, rank, data_format
    )


@adapts("nn.max_pool2d")
def max_pool2d(
    input: Any,
    ksize: Any,
    strides: Any,
    padding: Any,
    data_format: str = "NHWC",
    name: str | None = None,
) -> Any:
    """Return the largest element of each window of images."""
    pool = gradtape.nn.max_pool2d
    return _pooled(pool, "max_pool2d", 2, input, ksize, strides, padding, data_format)


@adapts("nn.max_pool1d")
def max_pool1d(
    input: Any,
    ksize: Any,
    strides: Any,
    padding: Any,
    data_format: str = "NWC",
    name: str | None = None,
) -> Any:
    """Return the largest element of each window of ``(batch, size, channels)``."""
    pool = gradtape.nn.max_pool1d
    return _pooled(pool, "max_pool1d", 1, input, ksize, strides, padding, data_format)


@adapts("nn.max_pool")
def max_pool(
    input: Any,
    ksize: Any,
    strides: Any,
    padding: Any,
    data_format: str | None = None,
    name: str | None = None,
) -> Any:
    """Return the largest element of each window, over all but the first and last axis."""
    rank = convert_to_tensor(input).ndim - 2
    return _pooled(
        gradtape.nn.max_pool, "max_pool", rank, input, ksize, strides, padding, data_format
    )


@adapts("nn.avg_pool2d")
def avg_pool2d(
    input: Any,
    ksize: Any,
    strides: Any,
    padding: Any,
    data_format: str = "NHWC",
    name: str | None = None,
) -> Any:
    """Return the mean of each window of images."""
    pool = gradtape.nn.avg_pool2d
    return _pooled(pool, "avg_pool2d", 2, input, ksize, strides, padding, data_format)


@adapts("nn.avg_pool1d")
def avg_pool1d(
    input: Any,
    ksize: Any,
    strides: Any,
    padding: Any,
    data_format: str = "NWC",
    name: str | None = None,
) -> Any:
    """Return the mean of each window of ``(batch, size, channels)``."""
    pool = gradtape.nn.avg_pool1d
    return _pooled(pool, "avg_pool1d", 1, input, ksize, strides, padding, data_format)


@adapts("nn.avg_pool")
def avg_pool(
    input: Any,
    ksize: Any,
    strides: Any,
    padding: Any,
    data_format: str | None = None,
    name: str | None = None,
) -> Any:
    """Return the mean of each window, over all but the first and last axis."""
    rank = convert_to_tensor(input).ndim - 2
    return _pooled(
        gradtape.nn.avg_pool, "avg_pool", rank, input, ksize, strides, padding, data_format
    )


__getattr__ = lookup(__name__)

"""Convolutions and pooling for ``tf.nn``; channels are last by default."""

from __future__ import annotations

import operator
from typing import Any

import gradtape

from .names import adapts
from .tensors import convert_to_tensor, held_to, plain, sizes

__all__ = [
    "avg_pool",
    "avg_pool1d",
    "avg_pool2d",
    "conv1d",
    "conv2d",
    "conv2d_transpose",
    "convolution",
    "depthwise_conv2d",
    "max_pool",
    "max_pool1d",
    "max_pool2d",
]


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
    if made.shape is None:
        return made
    return held_to(made, sizes(output_shape, "conv2d_transpose"), "conv2d_transpose: output_shape")


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

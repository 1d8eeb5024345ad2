"""``tf.nn``: convolutions, pooling, activations, cross-entropies and normalisation."""

from __future__ import annotations

import operator
from typing import Any

import gradtape

from ...core.extend import as_size, sizes_differ
from .dtypes import cast
from .names import adapts, lookup
from .random import source
from .tensors import convert_to_tensor, plain, sizes, with_checked_shape

__all__ = "bias_add conv2d_transpose dropout".split()


# -- convolutions and pooling: channels are last by default ----------------------------------------


class ResizeMethod:
    """The methods of ``tf.image.resize``."""

    AREA, BICUBIC, BILINEAR, GAUSSIAN = "area", "bicubic", "bilinear", "gaussian"
    LANCZOS3, LANCZOS5, MITCHELLCUBIC = "lanczos3", "lanczos5", "mitchellcubic"
    NEAREST_NEIGHBOR = "nearest"


def _spatial(value: Any, rank: int, first: bool, op: str) -> Any:
    """Return the numbers for the spatial axes from one, ``rank`` or ``rank + 2`` numbers."""
    value = plain(value)
    if not isinstance(value, (list, tuple)):
        return operator.index(value)
    value = [operator.index(n) for n in value]
    if len(value) == 1:
        return value[0]
    if len(value) == rank + 2:
        others = value[:2] if first else (value[0], value[-1])
        if tuple(others) != (1, 1):
            raise ValueError(f"{op}: values for batch and channels must be 1, got {value}")
        return value[2:] if first else value[1:-1]
    if len(value) != rank:
        raise ValueError(f"{op}: expected 1, {rank} or {rank + 2} numbers, got {value}")
    return value


def _padding(padding: Any, first: bool) -> Any:
    if isinstance(padding, str):
        return padding.lower()
    pairs = [sizes(pair, "padding") for pair in plain(padding)]
    return pairs[2:] if first else pairs[1:-1]


def _on_channels_last(fn: Any, x: Any, data_format: str | None) -> Any:
    """Apply ``fn`` to images with their channels moved last."""
    x = convert_to_tensor(x)
    if not (data_format or "").startswith("NC"):
        return fn(x)
    return gradtape.moveaxis(fn(gradtape.moveaxis(x, 1, -1)), -1, 1)


def _layout(data_format: str | None, x: Any, rank: int | None) -> tuple[bool, int]:
    """Return whether channels are first, and the number of spatial axes."""
    return (data_format or "").startswith("NC"), x.ndim - 2 if rank is None else rank


def convolved(
    conv: Any, op: str, x: Any, filters: Any, strides: Any, padding: Any, *rest: Any
) -> Any:
    """Return a convolution with TensorFlow's settings; ``rest``: data format and dilations."""
    data_format, dilations = rest
    filters = convert_to_tensor(filters)
    first, rank = _layout(data_format, filters, None)
    settings = {
        "strides": _spatial(1 if strides is None else strides, rank, first, op),
        "padding": _padding(padding, first),
        "dilations": _spatial(1 if dilations is None else dilations, rank, first, op),
    }
    return _on_channels_last(lambda x: conv(x, filters, **settings), x, data_format)


def grouped(x: Any, w: Any, **settings: Any) -> Any:
    """Return a convolution of images, grouped if filters have fewer channels than images."""
    channels, own = x.shape[-1], w.shape[-2]
    groups = 1 if None in (channels, own) or not own else channels // own
    return gradtape.nn.conv2d(x, w, groups=max(groups, 1), **settings)


def pooled(pool: Any, op: str, rank: Any, x: Any, ksize: Any, strides: Any, *rest: Any) -> Any:
    """Apply a pool with TensorFlow's settings; ``rest``: padding and data format."""
    padding, data_format = rest
    first, rank = _layout(data_format, x, rank)
    window, step = _spatial(ksize, rank, first, op), _spatial(strides, rank, first, op)
    return _on_channels_last(
        lambda x: pool(x, window, step, _padding(padding, first)), x, data_format
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

    An ``output_shape`` that does not follow from the other arguments raises ``ValueError``.
    """
    conv = gradtape.nn.conv2d_transpose
    given = (input, filters, strides, padding, data_format, dilations)
    made = convolved(conv, "conv2d_transpose", *given)
    if made.shape is None:
        return made
    return with_checked_shape(
        made, sizes(output_shape, "conv2d_transpose"), "conv2d_transpose: output_shape"
    )


# -- losses ----------------------------------------------------------------------------------------


def like(value: Any, beside: Any) -> Any:
    """Return ``value`` as a tensor, in the dtype of ``beside`` if it has none or an integer one."""
    value = convert_to_tensor(value, None if hasattr(value, "dtype") else beside.dtype)
    return cast(value, beside.dtype) if value.dtype.kind in "biu" else value


# -- normalisation ---------------------------------------------------------------------------------


@adapts("add")
def bias_add(value: Any, bias: Any, data_format: str | None = None, name: str | None = None) -> Any:
    """Return ``value + bias``, a vector along the channels."""
    value, bias = convert_to_tensor(value), convert_to_tensor(bias)
    first = data_format is not None and data_format.startswith("NC")
    shape = value.shape
    channels = None if shape is None else shape[1 if first else -1]
    if bias.ndim != 1 or sizes_differ(bias.shape[0], channels):
        raise ValueError(f"bias_add: a bias of shape {bias.shape} does not fit the value {shape}")
    if first:
        bias = gradtape.reshape(bias, (-1,) + (1,) * (len(shape) - 2))
    return value + bias


@adapts("nn.dropout")
def dropout(
    x: Any, rate: float, noise_shape: Any = None, seed: int | None = None, name: str | None = None
) -> Any:
    """Return ``x`` with elements set to 0 with probability ``rate``, and the others scaled up.

    The random mask has the shape ``noise_shape``, and is broadcast.
    """
    x = convert_to_tensor(x)
    drawn = None if seed is None else source(seed)
    if noise_shape is None:
        return gradtape.nn.dropout(x, rate, drawn)
    given = plain(noise_shape)
    shape = [n if want is None else as_size(want, "dropout") for n, want in zip(x.shape, given)]
    chosen = gradtape.nn.dropout(gradtape.ones(shape, x.dtype), rate, drawn)
    return x * chosen


__getattr__ = lookup(__name__)

"""Pooling and transposed convolutions by their number of spatial axes, for those who name it."""

from __future__ import annotations

from typing import Any

from ....core.tensors.convert import as_tensor
from ....core.tensors.tensor import Tensor
from ..common.families import named
from .convolution import conv_transpose
from .pooling import avg_pool, max_pool

__all__ = [
    "avg_pool1d",
    "avg_pool2d",
    "conv1d_transpose",
    "conv2d_transpose",
    "max_pool1d",
    "max_pool2d",
]

_AXES = {3: "(batch, size, channels)", 4: "(batch, height, width, channels)"}


def _of_rank(x: Any, rank: int, name: str) -> Any:
    x = as_tensor(x)
    if x.shape is not None and len(x.shape) != rank:
        raise ValueError(f"{name}: images are {_AXES[rank]}, got shape {x.shape}")
    return x


@named
def max_pool1d(x: Any, window: Any, strides: Any = None, padding: Any = "valid") -> Tensor:
    """Return the largest element of each window of ``(batch, size, channels)``.

    See :func:`gradtape.nn.max_pool`.
    """
    return max_pool(_of_rank(x, 3, "max_pool1d"), window, strides, padding)


@named
def max_pool2d(x: Any, window: Any, strides: Any = None, padding: Any = "valid") -> Tensor:
    """Return the largest element of each window of ``(batch, height, width, channels)``.

    See :func:`gradtape.nn.max_pool`.
    """
    return max_pool(_of_rank(x, 4, "max_pool2d"), window, strides, padding)


@named
def avg_pool1d(x: Any, window: Any, strides: Any = None, padding: Any = "valid") -> Tensor:
    """Return the mean of each window of ``(batch, size, channels)``.

    See :func:`gradtape.nn.avg_pool`.
    """
    return avg_pool(_of_rank(x, 3, "avg_pool1d"), window, strides, padding)


@named
def avg_pool2d(x: Any, window: Any, strides: Any = None, padding: Any = "valid") -> Tensor:
    """Return the mean of each window of ``(batch, height, width, channels)``.

    See :func:`gradtape.nn.avg_pool`.
    """
    return avg_pool(_of_rank(x, 4, "avg_pool2d"), window, strides, padding)


@named
def conv1d_transpose(
    x: Any, filters: Any, strides: Any = 1, padding: Any = "valid", dilations: Any = 1
) -> Tensor:
    """Return the transposed convolution of ``(batch, size, channels)``.

    See :func:`gradtape.nn.conv_transpose`.
    """
    images = _of_rank(x, 3, "conv1d_transpose")
    return conv_transpose(images, filters, strides, padding, dilations)


@named
def conv2d_transpose(
    x: Any, filters: Any, strides: Any = 1, padding: Any = "valid", dilations: Any = 1
) -> Tensor:
    """Return the transposed convolution of ``(batch, height, width, channels)``.

    See :func:`gradtape.nn.conv_transpose`.
    """
    images = _of_rank(x, 4, "conv2d_transpose")
    return conv_transpose(images, filters, strides, padding, dilations)

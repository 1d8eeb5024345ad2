"""Pooling and transposed convolutions by their number of spatial axes, for those who name it."""

from __future__ import annotations

from typing import Any

from ....core.extend import Tensor, as_tensor
from ..common.op_builders import named
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

    Parameters
    ----------
    x
        Images ``(batch, size, channels)`` of real numbers.
    window
        The windows' size: one number.
    strides
        The distance between windows; their size by default.
    padding
        As for :func:`gradtape.nn.conv`, ``"valid"`` by default; padding is never the largest.

    Returns
    -------
    A tensor of shape ``(batch, windows, channels)`` and the dtype of ``x``.

    Raises
    ------
    TypeError
        If the images are complex or boolean, or a size is not an integer.
    ValueError
        If the images do not have 3 axes, or a setting is wrong.

    Notes
    -----
    Of elements that tie, the first has the gradient.

    See Also
    --------
    gradtape.nn.max_pool : For any number of spatial axes.

    Examples
    --------
    >>> x = gt.reshape(gt.arange(6.0), (1, 6, 1))
    >>> gt.nn.max_pool1d(x, 2)[0, :, 0].tolist()
    [1.0, 3.0, 5.0]
    """
    return max_pool(_of_rank(x, 3, "max_pool1d"), window, strides, padding)


@named
def max_pool2d(x: Any, window: Any, strides: Any = None, padding: Any = "valid") -> Tensor:
    """Return the largest element of each window of ``(batch, height, width, channels)``.

    Parameters
    ----------
    x
        Images ``(batch, height, width, channels)`` of real numbers.
    window
        The windows' size: one number, or ``(height, width)``.
    strides
        The distance between windows; their size by default.
    padding
        As for :func:`gradtape.nn.conv`, ``"valid"`` by default; padding is never the largest.

    Returns
    -------
    A tensor of shape ``(batch, rows, columns, channels)`` and the dtype of ``x``.

    Raises
    ------
    TypeError
        If the images are complex or boolean, or a size is not an integer.
    ValueError
        If the images do not have 4 axes, or a setting is wrong.

    Notes
    -----
    Of elements that tie, the first has the gradient.

    See Also
    --------
    gradtape.nn.max_pool : For any number of spatial axes.

    Examples
    --------
    >>> x = gt.reshape(gt.arange(16.0), (1, 4, 4, 1))
    >>> gt.nn.max_pool2d(x, 2)[0, :, :, 0].tolist()
    [[5.0, 7.0], [13.0, 15.0]]
    """
    return max_pool(_of_rank(x, 4, "max_pool2d"), window, strides, padding)


@named
def avg_pool1d(x: Any, window: Any, strides: Any = None, padding: Any = "valid") -> Tensor:
    """Return the mean of each window of ``(batch, size, channels)``.

    Padding is not counted.

    Parameters
    ----------
    x
        Images ``(batch, size, channels)`` of floating or complex numbers.
    window
        The windows' size: one number.
    strides
        The distance between windows; their size by default.
    padding
        As for :func:`gradtape.nn.conv`, ``"valid"`` by default.

    Returns
    -------
    A tensor of shape ``(batch, windows, channels)`` and the dtype of ``x``.

    Raises
    ------
    TypeError
        If the images are integers or boolean, or a size is not an integer.
    ValueError
        If the images do not have 3 axes, or a setting is wrong.

    See Also
    --------
    gradtape.nn.avg_pool : For any number of spatial axes.

    Examples
    --------
    >>> x = gt.reshape(gt.arange(6.0), (1, 6, 1))
    >>> gt.nn.avg_pool1d(x, 2)[0, :, 0].tolist()
    [0.5, 2.5, 4.5]
    """
    return avg_pool(_of_rank(x, 3, "avg_pool1d"), window, strides, padding)


@named
def avg_pool2d(x: Any, window: Any, strides: Any = None, padding: Any = "valid") -> Tensor:
    """Return the mean of each window of ``(batch, height, width, channels)``.

    Padding is not counted.

    Parameters
    ----------
    x
        Images ``(batch, height, width, channels)`` of floating or complex numbers.
    window
        The windows' size: one number, or ``(height, width)``.
    strides
        The distance between windows; their size by default.
    padding
        As for :func:`gradtape.nn.conv`, ``"valid"`` by default.

    Returns
    -------
    A tensor of shape ``(batch, rows, columns, channels)`` and the dtype of ``x``.

    Raises
    ------
    TypeError
        If the images are integers or boolean, or a size is not an integer.
    ValueError
        If the images do not have 4 axes, or a setting is wrong.

    See Also
    --------
    gradtape.nn.avg_pool : For any number of spatial axes.

    Examples
    --------
    >>> x = gt.reshape(gt.arange(16.0), (1, 4, 4, 1))
    >>> gt.nn.avg_pool2d(x, 2)[0, :, :, 0].tolist()
    [[2.5, 4.5], [10.5, 12.5]]
    """
    return avg_pool(_of_rank(x, 4, "avg_pool2d"), window, strides, padding)


@named
def conv1d_transpose(
    x: Any, filters: Any, strides: Any = 1, padding: Any = "valid", dilations: Any = 1
) -> Tensor:
    """Return the transposed convolution of ``(batch, size, channels)``.

    Parameters
    ----------
    x
        Floating or complex images ``(batch, size, channels)``.
    filters
        Of shape ``(size, filters, channels)``: those of the convolution that leads back.
    strides, dilations
        As for :func:`gradtape.nn.conv_transpose`: a number, 1 by default.
    padding
        As for :func:`gradtape.nn.conv_transpose`, ``"valid"`` by default.

    Returns
    -------
    A tensor of shape ``(batch, larger size, filters)`` and the promoted dtype.

    Raises
    ------
    TypeError
        If a setting is neither an integer nor a sequence of integers.
    ValueError
        If the images do not have 3 axes, or shapes, channels or settings do not fit.

    See Also
    --------
    gradtape.nn.conv_transpose : For any number of spatial axes.

    Examples
    --------
    >>> x = gt.constant([[[1.0], [2.0]]])
    >>> gt.nn.conv1d_transpose(x, gt.ones((2, 1, 1)), strides=2)[0, :, 0].tolist()
    [1.0, 1.0, 2.0, 2.0]
    """
    images = _of_rank(x, 3, "conv1d_transpose")
    return conv_transpose(images, filters, strides, padding, dilations)


@named
def conv2d_transpose(
    x: Any, filters: Any, strides: Any = 1, padding: Any = "valid", dilations: Any = 1
) -> Tensor:
    """Return the transposed convolution of ``(batch, height, width, channels)``.

    Parameters
    ----------
    x
        Floating or complex images ``(batch, height, width, channels)``.
    filters
        Of shape ``(height, width, filters, channels)``: those of the convolution that leads back.
    strides, dilations
        As for :func:`gradtape.nn.conv_transpose`: a number, or one per spatial axis, 1 by default.
    padding
        As for :func:`gradtape.nn.conv_transpose`, ``"valid"`` by default.

    Returns
    -------
    A tensor of shape ``(batch, larger height, larger width, filters)`` and the promoted dtype.

    Raises
    ------
    TypeError
        If a setting is neither an integer nor a sequence of integers.
    ValueError
        If the images do not have 4 axes, or shapes, channels or settings do not fit.

    See Also
    --------
    gradtape.nn.conv_transpose : For any number of spatial axes.

    Examples
    --------
    >>> x, filters = gt.ones((1, 2, 2, 1)), gt.ones((2, 2, 3, 1))
    >>> gt.nn.conv2d_transpose(x, filters, strides=2).shape
    (1, 4, 4, 3)
    """
    images = _of_rank(x, 4, "conv2d_transpose")
    return conv_transpose(images, filters, strides, padding, dilations)

"""Windows: weights that taper off towards both ends, for filters and spectra."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from ....core.extend import Operators, Tensor, as_dtype, as_tensor, beside, default_dtype, ops
from ..common.op_builders import named
from ..elementwise.special import i0

__all__ = ["bartlett", "blackman", "hamming", "hanning", "kaiser"]


def _made(window: Callable[[int], Any], M: Any, dtype: Any) -> Tensor:
    return as_tensor(
        window(operator.index(M)).astype(default_dtype() if dtype is None else as_dtype(dtype))
    )


@named
def bartlett(M: int, dtype: Any = None) -> Tensor:
    """Return the Bartlett window: a triangle, 0 at both ends.

    Parameters
    ----------
    M
        The number of points; there are none below 1.
    dtype
        The result's dtype; the default dtype if not given.

    Returns
    -------
    A vector of ``M`` weights, 1 in the middle if ``M`` is odd.

    Raises
    ------
    TypeError
        If ``M`` is no integer, or ``dtype`` is no dtype.

    Examples
    --------
    >>> gt.bartlett(5).tolist()
    [0.0, 0.5, 1.0, 0.5, 0.0]
    """
    return _made(np.bartlett, M, dtype)


@named
def blackman(M: int, dtype: Any = None) -> Tensor:
    """Return the Blackman window: three terms of a cosine series, close to 0 at both ends.

    Parameters
    ----------
    M
        The number of points; there are none below 1.
    dtype
        The result's dtype; the default dtype if not given.

    Returns
    -------
    A vector of ``M`` weights, 1 in the middle if ``M`` is odd.

    Raises
    ------
    TypeError
        If ``M`` is no integer, or ``dtype`` is no dtype.

    Examples
    --------
    >>> [round(w, 2) for w in gt.blackman(5).tolist()]
    [-0.0, 0.34, 1.0, 0.34, -0.0]
    """
    return _made(np.blackman, M, dtype)


@named
def hamming(M: int, dtype: Any = None) -> Tensor:
    """Return the Hamming window: a raised cosine, 0.08 at both ends.

    Parameters
    ----------
    M
        The number of points; there are none below 1.
    dtype
        The result's dtype; the default dtype if not given.

    Returns
    -------
    A vector of ``M`` weights, 1 in the middle if ``M`` is odd.

    Raises
    ------
    TypeError
        If ``M`` is no integer, or ``dtype`` is no dtype.

    Examples
    --------
    >>> [round(w, 2) for w in gt.hamming(5).tolist()]
    [0.08, 0.54, 1.0, 0.54, 0.08]
    """
    return _made(np.hamming, M, dtype)


@named
def hanning(M: int, dtype: Any = None) -> Tensor:
    """Return the Hann window: a raised cosine, 0 at both ends.

    Parameters
    ----------
    M
        The number of points; there are none below 1.
    dtype
        The result's dtype; the default dtype if not given.

    Returns
    -------
    A vector of ``M`` weights, 1 in the middle if ``M`` is odd.

    Raises
    ------
    TypeError
        If ``M`` is no integer, or ``dtype`` is no dtype.

    Examples
    --------
    >>> gt.hanning(5).tolist()
    [0.0, 0.5, 1.0, 0.5, 0.0]
    """
    return _made(np.hanning, M, dtype)


@named
def kaiser(M: int, beta: Any, dtype: Any = None) -> Tensor:
    """Return the Kaiser window, a ratio of Bessel functions.

    Parameters
    ----------
    M
        The number of points; there are none below 1.
    beta
        Its shape, one number: 0 makes a rectangle, 5 is like :func:`hamming`, 8.6 like
        :func:`blackman`. Gradients reach a tensor.
    dtype
        The result's dtype; the default dtype if not given, for a floating tensor ``beta`` its own.

    Returns
    -------
    A vector of ``M`` weights, 1 in the middle if ``M`` is odd.

    Raises
    ------
    TypeError
        If ``M`` is no integer, or ``dtype`` is no dtype.

    Examples
    --------
    >>> [round(w, 3) for w in gt.kaiser(3, 5.0).tolist()]
    [0.037, 1.0, 0.037]
    """
    M = operator.index(M)
    if not isinstance(beta, Operators):
        return _made(lambda count: np.kaiser(count, beta), M, dtype)
    beta = as_tensor(beta)
    if beta.dtype.kind != "f":
        beta = ops["cast"](beta, dtype=default_dtype().name)
    middle = (M - 1) / 2.0
    bend = np.sqrt(np.maximum(1.0 - ((np.arange(M) - middle) / max(middle, 0.5)) ** 2, 0.0))
    window = i0(beta * beside(bend.astype(beta.dtype), beta)) / i0(beta)
    return window if dtype is None else window.astype(dtype)

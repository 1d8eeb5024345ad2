"""Window functions, which taper off towards both ends, for filters and spectra."""

from __future__ import annotations

from typing import Any

from ....core.extend import Operators, Tensor, as_size, as_tensor, default_dtype, ops
from ..common.op_builders import named
from ..common.tables import table
from ..elementwise.special import i0
from ..shapes.creation import number_dtype


def _made(window: str, M: Any, *shape: Any, dtype: Any) -> Tensor:
    return table(window, as_size(M, window), *shape, dtype=number_dtype(dtype))


@named
def bartlett(M: int, dtype: Any = None) -> Tensor:
    """Return the Bartlett window: a triangle, 0 at both ends.

    Parameters
    ----------
    M
        The number of points; below 1 there are none.
    dtype
        The result's dtype; the default dtype if not given.

    Returns
    -------
    A vector of ``M`` weights, 1 in the middle if ``M`` is odd.

    Raises
    ------
    TypeError
        If ``M`` is not an integer, or ``dtype`` is not a dtype.

    Examples
    --------
    >>> gt.bartlett(5).tolist()
    [0.0, 0.5, 1.0, 0.5, 0.0]
    """
    return _made("bartlett", M, dtype=dtype)


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
        If ``M`` is not an integer, or ``dtype`` is not a dtype.

    Examples
    --------
    >>> [round(w, 2) for w in gt.blackman(5).tolist()]
    [-0.0, 0.34, 1.0, 0.34, -0.0]
    """
    return _made("blackman", M, dtype=dtype)


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
        If ``M`` is not an integer, or ``dtype`` is not a dtype.

    Examples
    --------
    >>> [round(w, 2) for w in gt.hamming(5).tolist()]
    [0.08, 0.54, 1.0, 0.54, 0.08]
    """
    return _made("hamming", M, dtype=dtype)


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
        If ``M`` is not an integer, or ``dtype`` is not a dtype.

    Examples
    --------
    >>> gt.hanning(5).tolist()
    [0.0, 0.5, 1.0, 0.5, 0.0]
    """
    return _made("hanning", M, dtype=dtype)


@named
def kaiser(M: int, beta: Any, dtype: Any = None) -> Tensor:
    """Return the Kaiser window, a ratio of Bessel functions.

    Parameters
    ----------
    M
        The number of points; there are none below 1.
    beta
        The shape parameter, one number: 0 gives a rectangle, 5 is like :func:`hamming`, 8.6 like
        :func:`blackman`. Gradients reach a tensor.
    dtype
        The result's dtype; by default the default dtype, or that of a floating tensor ``beta``.

    Returns
    -------
    A vector of ``M`` weights, 1 in the middle if ``M`` is odd.

    Raises
    ------
    TypeError
        If ``M`` is not an integer, or ``dtype`` is not a dtype.
    ValueError
        If ``beta`` is not one number.

    Examples
    --------
    >>> [round(w, 3) for w in gt.kaiser(3, 5.0).tolist()]
    [0.037, 1.0, 0.037]
    """
    given, beta = beta, as_tensor(beta)
    if beta.shape not in ((), None):
        raise ValueError(f"kaiser: beta must be one number, got shape {beta.shape}")
    if not isinstance(given, Operators):
        return _made("kaiser", M, given, dtype=dtype)
    if beta.dtype.kind != "f":
        beta = ops["cast"](beta, dtype=default_dtype().name)
    bend = table("half_circle", as_size(M, "kaiser"), dtype=beta.dtype, like=beta)
    window = i0(beta * bend) / i0(beta)
    return window if dtype is None else window.astype(dtype)

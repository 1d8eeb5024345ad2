"""Discrete Fourier transforms along one axis."""

from __future__ import annotations

from typing import Any

from ....core.extend import Tensor, ops
from ..common.axes import one_axis
from ..common.op_builders import named
from .primitives import ADJOINT_NORMS, checked_norm, checked_points, resized


def _line(x: Any, n: Any, axis: Any, name: str) -> tuple[Any, int]:
    """Return a tensor of ``n`` points along an axis, and that axis."""
    axis = one_axis(axis, name)
    return (x if n is None else resized(x, {axis: checked_points(n, name)})), axis


@named
def fft(a: Any, n: int | None = None, axis: int = -1, norm: str | None = None) -> Tensor:
    """Return the discrete Fourier transform along an axis.

    Parameters
    ----------
    a
        A tensor of any dtype, with at least one axis.
    n
        The number of points: ``a`` is cut or padded with zeros to it. The size of the axis by
        default.
    axis
        The axis to transform; the last by default.
    norm
        ``"backward"`` (the default): ``ifft`` divides by n. ``"forward"``: ``fft`` divides by n.
        ``"ortho"``: both divide by the root of n.

    Returns
    -------
    Tensor
        A complex tensor: ``sum(a[j] * exp(-2j * pi * j * k / n))`` for each k. It is ``complex64``
        for ``float32``, ``complex128`` for ``float64`` and integers.

    Raises
    ------
    ValueError
        If there are no points, or there is no such norm.
    numpy.exceptions.AxisError
        If the axis is out of bounds.

    Notes
    -----
    The gradient is the conjugate transform of the upstream gradient, with the norm of the other
    direction. For a real input it is the real part.

    References
    ----------
    J. W. Cooley and J. W. Tukey, "An algorithm for the machine calculation of complex Fourier
    series", 1965.

    Examples
    --------
    >>> gt.fft.fft(gt.constant([1.0, 2.0, 3.0, 4.0])).real.tolist()
    [10.0, -2.0, -2.0, -2.0]
    """
    a, axis = _line(a, n, axis, "fft")
    return ops["fftn"](a, axes=(axis,), norm=checked_norm(norm, "fft"))


@named
def ifft(a: Any, n: int | None = None, axis: int = -1, norm: str | None = None) -> Tensor:
    """Return the inverse of :func:`fft`.

    Parameters
    ----------
    a
        A tensor of any dtype, with at least one axis.
    n
        The number of points: ``a`` is cut, or padded with zeros, to it. Its own size by default.
    axis
        The axis to transform; the last by default.
    norm
        As for :func:`fft`.

    Returns
    -------
    Tensor
        A complex tensor: ``sum(a[k] * exp(2j * pi * j * k / n)) / n`` for each j.

    Raises
    ------
    ValueError
        If there are no points, or there is no such norm.
    numpy.exceptions.AxisError
        If the axis is out of bounds.

    Examples
    --------
    >>> gt.fft.ifft(gt.constant([4.0, 0.0, 0.0, 0.0])).real.tolist()
    [1.0, 1.0, 1.0, 1.0]
    """
    a, axis = _line(a, n, axis, "ifft")
    return ops["ifftn"](a, axes=(axis,), norm=checked_norm(norm, "ifft"))


@named
def rfft(a: Any, n: int | None = None, axis: int = -1, norm: str | None = None) -> Tensor:
    """Return the first half of the spectrum of real numbers: ``n // 2 + 1`` complex numbers.

    The others are their conjugates.

    Parameters
    ----------
    a
        A real tensor, with at least one axis.
    n
        The number of points: ``a`` is cut, or padded with zeros, to it. Its own size by default.
    axis
        The axis to transform; the last by default.
    norm
        As for :func:`fft`.

    Returns
    -------
    Tensor
        A complex tensor, of size ``n // 2 + 1`` along the axis.

    Raises
    ------
    TypeError
        If ``a`` is complex.
    ValueError
        If there are no points, or there is no such norm.
    numpy.exceptions.AxisError
        If the axis is out of bounds.

    Examples
    --------
    >>> gt.fft.rfft(gt.constant([1.0, 2.0, 3.0, 4.0])).real.tolist()
    [10.0, -2.0, -2.0]
    """
    a, axis = _line(a, n, axis, "rfft")
    return ops["rfft"](a, axis=axis, norm=checked_norm(norm, "rfft"))


@named
def irfft(a: Any, n: int | None = None, axis: int = -1, norm: str | None = None) -> Tensor:
    """Return the ``n`` real numbers with the half spectrum ``a``: the inverse of :func:`rfft`.

    Parameters
    ----------
    a
        A tensor of any dtype, with at least one axis. The imaginary part of the first number, and
        of the last if ``n`` is even, is ignored.
    n
        The number of points of the result; ``2 * (m - 1)`` by default, for m numbers. Give it if it
        is odd.
    axis
        The axis to transform; the last by default.
    norm
        As for :func:`fft`.

    Returns
    -------
    Tensor
        A real tensor, of size ``n`` along the axis.

    Raises
    ------
    ValueError
        If there are no points, or there is no such norm.
    numpy.exceptions.AxisError
        If the axis is out of bounds.

    Examples
    --------
    >>> gt.fft.irfft(gt.constant([4.0, 0.0, 0.0])).tolist()
    [1.0, 1.0, 1.0, 1.0]
    """
    axis = one_axis(axis, "irfft")
    points = None if n is None else checked_points(n, "irfft")
    if points is not None:
        a = resized(a, {axis: points // 2 + 1})
    return ops["irfft"](a, n=points, axis=axis, norm=checked_norm(norm, "irfft"))


@named
def hfft(a: Any, n: int | None = None, axis: int = -1, norm: str | None = None) -> Tensor:
    """Return the real spectrum of a Hermitian signal, of which ``a`` is one half.

    Parameters
    ----------
    a
        A tensor of any dtype, with at least one axis.
    n
        The number of points of the result; ``2 * (m - 1)`` by default, for m numbers: give it where
        it is odd.
    axis
        The axis to transform; the last by default.
    norm
        As for :func:`fft`.

    Returns
    -------
    Tensor
        A real tensor, of size ``n`` along the axis.

    Raises
    ------
    ValueError
        If there are no points, or there is no such norm.
    numpy.exceptions.AxisError
        If the axis is out of bounds.

    Examples
    --------
    >>> gt.fft.hfft(gt.constant([1.0, 0.0, 0.0])).tolist()
    [1.0, 1.0, 1.0, 1.0]
    """
    return irfft(ops["conj"](a), n, axis, ADJOINT_NORMS[checked_norm(norm, "hfft")])


@named
def ihfft(a: Any, n: int | None = None, axis: int = -1, norm: str | None = None) -> Tensor:
    """Return the inverse of :func:`hfft`: half of a Hermitian signal, from its real spectrum.

    Parameters
    ----------
    a
        A real tensor, with at least one axis.
    n
        The number of points: ``a`` is cut, or padded with zeros, to it. Its own size by default.
    axis
        The axis to transform; the last by default.
    norm
        As for :func:`fft`.

    Returns
    -------
    Tensor
        A complex tensor, of size ``n // 2 + 1`` along the axis.

    Raises
    ------
    TypeError
        If ``a`` is complex.
    ValueError
        If there are no points, or there is no such norm.
    numpy.exceptions.AxisError
        If the axis is out of bounds.

    Examples
    --------
    >>> gt.fft.ihfft(gt.constant([1.0, 2.0, 3.0, 2.0])).real.tolist()
    [2.0, -0.5, 0.0]
    """
    return ops["conj"](rfft(a, n, axis, ADJOINT_NORMS[checked_norm(norm, "ihfft")]))

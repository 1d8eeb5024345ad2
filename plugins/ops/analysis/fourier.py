"""Discrete Fourier transforms: the ops of all, and the functions along one axis.

The six linear ops are transforms of complex numbers over any axes, transforms of real numbers over
one, and the adjoints of these. A transform's gradient is the conjugate transform with the norm of
the other direction, so every order of gradient is again one of the six. Complex gradients follow
TensorFlow's convention; those of real inputs are real.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ....core.extend import (
    NONDIFF,
    F,
    Tensor,
    as_size,
    as_tensor,
    kind_of,
    numpy_dtype,
    ops,
    same_size,
)
from ..common.axes import along, one_axis, reduced_axes
from ..common.kernels import as_like, cast_to
from ..common.op_builders import named, op

#: The norm with which the conjugate transform is the adjoint.
ADJOINT_NORMS = {"backward": "forward", "ortho": "ortho", "forward": "backward"}


def _complex(dtype: Any) -> np.dtype[Any]:
    """Return the dtype of a transform of numbers of ``dtype``."""
    return np.fft.fft(np.zeros(1, dtype)).dtype


def _real(dtype: Any) -> np.dtype[Any]:
    return np.empty(0, _complex(dtype)).real.dtype


def as_complex(xp: Any, x: Any) -> Any:
    """Return ``x`` as complex numbers: the standard transforms no others."""
    return x if kind_of(x.dtype) == "c" else cast_to(xp, x, _complex(numpy_dtype(x.dtype)))


def _fit(xp: Any, x: Any, sizes: Sequence[int], axes: Sequence[int]) -> Any:
    """Cut axes at the end, or pad them with zeros, to the given sizes."""
    for size, axis in zip(sizes, axes, strict=True):
        (along,) = reduced_axes(axis, x.ndim, "crop_or_pad")
        have = x.shape[along]
        if have > size:
            x = x[(*(slice(None),) * along, slice(0, size), ...)]
        elif have < size:
            shape = (*x.shape[:along], size - have, *x.shape[along + 1 :])
            x = xp.concat([x, xp.zeros(shape, dtype=x.dtype)], axis=along)
    return x


def _fitted(shape: Any, sizes: Sequence[Any], axes: Sequence[int]) -> Any:
    if shape is None:
        return None
    result = list(shape)
    for size, axis in zip(sizes, reduced_axes(tuple(axes), len(shape), "fft"), strict=True):
        result[axis] = size
    return tuple(result)


def _sizes_of(shape: Any, axes: Sequence[int]) -> list[Any]:
    return [None if shape is None else shape[axis] for axis in axes]


op(
    "crop_or_pad",
    lambda xp, x, *, sizes, axes: _fit(xp, x, sizes, axes),
    gradients={"x": lambda g, x_like, axes: F.crop_or_pad_like(g, x_like, axes=axes)},
    infer=lambda x, sizes, axes: (_fitted(x.shape, sizes, axes), x.dtype),
    holomorphic=True,
    batch=along("axes"),
    jvp="linear",
    doc="Cut axes at the end, or pad them with zeros, to the given sizes.",
)
op(
    "crop_or_pad_like",
    lambda xp, x, like, *, axes: _fit(xp, x, _sizes_of(like.shape, axes), axes),
    gradients={
        "x": lambda g, x_like, axes: F.crop_or_pad_like(g, x_like, axes=axes),
        "like": NONDIFF,
    },
    infer=lambda x, like, axes: (_fitted(x.shape, _sizes_of(like.shape, axes), axes), x.dtype),
    holomorphic=True,
    batch=along("axes"),
    jvp="linear",
    doc="Cut axes at the end, or pad them with zeros, to the sizes that ``like`` has there.",
)


def _check_points(shape: Any, axes: Sequence[int], name: str) -> None:
    """Raise if an axis does not exist, or has no points."""
    if shape is None:
        return
    for place in reduced_axes(tuple(axes), len(shape), name):
        if same_size(shape[place], 0):
            raise ValueError(f"{name}: axis {place} of shape {shape} has no points to transform")


def _over_axes(name: str, other: str) -> None:
    """Compute the transform of complex numbers over axes, in one direction."""

    def kernel(xp: Any, x: Any, *, axes: tuple[int, ...], norm: str) -> Any:
        _check_points(x.shape, axes, name)
        if not axes:
            return as_complex(xp, x)
        if xp is not np:  # which is quicker with real numbers, and gives complex ones all the same
            x = as_complex(xp, x)
        return getattr(xp.fft, name)(x, axes=axes, norm=norm)

    def rule(g: Any, x_like: Any, axes: tuple[int, ...], norm: str) -> Any:
        return as_like(F[other](g, axes=axes, norm=ADJOINT_NORMS[norm]), x_like)

    def infer(x: Any, *, axes: tuple[int, ...], norm: str) -> tuple[Any, Any]:
        _check_points(x.shape, axes, name)
        return x.shape, _complex(x.dtype)

    op(
        name,
        kernel,
        gradients={"x": rule},
        infer=infer,
        batch=along("axes"),
        jvp="linear",
        doc=f"NumPy's ``{name}``.",
    )


_over_axes("fftn", "ifftn")
_over_axes("ifftn", "fftn")


def _weights(xp: Any, count: int, points: int, inner: float, like: Any, axis: int) -> Any:
    """Return the weights of a half spectrum: ``inner`` for numbers that represent a pair."""
    weights = np.full(count, inner)
    weights[0] = 1.0
    if points % 2 == 0:
        weights[points // 2] = 1.0
    shape = [1] * like.ndim
    shape[axis] = count
    return xp.asarray(weights.reshape(shape).astype(numpy_dtype(xp.real(like).dtype)))


def _rfft(xp: Any, x: Any, *, axis: int, norm: str) -> Any:
    if kind_of(x.dtype) == "c":
        raise TypeError(f"rfft: the input must be real, got dtype {x.dtype}; use fft")
    _check_points(x.shape, (axis,), "rfft")
    if kind_of(x.dtype) != "f":
        x = cast_to(xp, x, np.float64)
    return xp.fft.rfft(x, axis=axis, norm=norm)


def _rfft_adjoint(xp: Any, g: Any, like: Any, *, axis: int, norm: str) -> Any:
    points, g = like.shape[axis], as_complex(xp, g)
    halved = g * _weights(xp, g.shape[axis], points, 0.5, g, axis)
    return xp.fft.irfft(halved, n=points, axis=axis, norm=ADJOINT_NORMS[norm])


def _irfft(xp: Any, x: Any, *, n: int | None, axis: int, norm: str) -> Any:
    (along,) = reduced_axes(axis, x.ndim, "irfft")
    points = 2 * (x.shape[along] - 1) if n is None else n
    if points < 1:
        raise ValueError(f"irfft: shape {x.shape} leaves {points} points along axis {axis}; give n")
    return xp.fft.irfft(as_complex(xp, x), n=points, axis=axis, norm=norm)


def _irfft_adjoint(xp: Any, g: Any, *, n: int | None, axis: int, norm: str) -> Any:
    spectrum = xp.fft.rfft(g, axis=axis, norm=ADJOINT_NORMS[norm])
    points = g.shape[axis]
    return spectrum * _weights(xp, spectrum.shape[axis], points, 2.0, spectrum, axis)


def _halved_spec(name: str, need_real: bool) -> Callable[..., tuple[Any, Any]]:
    """Return the shape rule of transforms from real numbers to half a spectrum."""

    def infer(x: Any, *, axis: int, **params: Any) -> tuple[Any, Any]:
        if need_real and x.dtype.kind == "c":
            raise TypeError(f"{name}: the input must be real, got dtype {x.dtype}; use fft")
        _check_points(x.shape, (axis,), name)
        (size,) = _sizes_of(x.shape, (axis,))
        half = None if size is None else size // 2 + 1
        return _fitted(x.shape, (half,), (axis,)), _complex(x.dtype)

    return infer


def _irfft_spec(x: Any, *, n: int | None, axis: int, norm: str) -> tuple[Any, Any]:
    if x.shape is not None:
        reduced_axes(axis, len(x.shape), "irfft")
    (size,) = _sizes_of(x.shape, (axis,))
    points = n if n is not None or size is None else 2 * (size - 1)
    return _fitted(x.shape, (points,), (axis,)), _real(x.dtype)


op(
    "rfft",
    _rfft,
    gradients={
        "x": lambda g, x_like, axis, norm: as_like(
            F.rfft_adjoint(g, x_like, axis=axis, norm=norm), x_like
        ),
    },
    infer=_halved_spec("rfft", need_real=True),
    batch=along("axis"),
    jvp="linear",
    doc="Transform real numbers along an axis to half a spectrum; the rest follows from it.",
)
op(
    "rfft_adjoint",
    _rfft_adjoint,
    gradients={
        "g": lambda d, g_like, axis, norm: as_like(F.rfft(d, axis=axis, norm=norm), g_like),
        "like": NONDIFF,
    },
    infer=lambda g, like, axis, norm: (like.shape, _real(g.dtype)),
    batch=along("axis"),
    jvp="linear",
    doc="Send a gradient of ``rfft`` back to its input, of the shape of ``like``.",
)
op(
    "irfft",
    _irfft,
    gradients={
        "x": lambda g, x_like, n, axis, norm: as_like(
            F.irfft_adjoint(g, n=n, axis=axis, norm=norm), x_like
        ),
    },
    infer=_irfft_spec,
    batch=along("axis"),
    jvp="linear",
    doc="Transform half a spectrum, n // 2 + 1 numbers, back to n real ones.",
)
op(
    "irfft_adjoint",
    _irfft_adjoint,
    gradients={
        "g": lambda d, g_like, n, axis, norm: as_like(
            F.irfft(d, n=n, axis=axis, norm=norm), g_like
        ),
    },
    infer=_halved_spec("irfft_adjoint", need_real=False),
    batch=along("axis"),
    jvp="linear",
    doc="Send a gradient of ``irfft`` back to its input.",
)


def checked_norm(norm: str | None, name: str) -> str:
    if norm is None:
        return "backward"
    if norm not in ADJOINT_NORMS:
        raise ValueError(f"{name}: norm must be 'backward', 'ortho' or 'forward', got {norm!r}")
    return norm


def checked_points(n: Any, name: str) -> Any:
    size = as_size(n, name)
    if (size < 1) is True:
        raise ValueError(f"{name}: the number of points must be at least 1, got {size}")
    return size


def resized(x: Any, sizes: dict[int, Any]) -> Any:
    """Return ``x`` with axes cut or padded to sizes, if any of them changes."""
    x = as_tensor(x)
    if x.shape is not None:
        reduced_axes(tuple(sizes), len(x.shape), "fft")
        sizes = {i: n for i, n in sizes.items() if not same_size(x.shape[i], n)}
    if not sizes:
        return x
    return ops["crop_or_pad"](x, sizes=tuple(sizes.values()), axes=tuple(sizes))


# -- along one axis --------------------------------------------------------------------------------


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

    Returns
    -------
    Tensor
        A complex tensor: ``sum(a[k] * exp(2j * pi * j * k / n)) / n`` for each j.

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

    Returns
    -------
    Tensor
        A complex tensor, of size ``n // 2 + 1`` along the axis.

    Raises
    ------
    TypeError
        If ``a`` is complex.

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

    Returns
    -------
    Tensor
        A real tensor, of size ``n`` along the axis.

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

    Returns
    -------
    Tensor
        A real tensor, of size ``n`` along the axis.

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

    Returns
    -------
    Tensor
        A complex tensor, of size ``n // 2 + 1`` along the axis.

    Raises
    ------
    TypeError
        If ``a`` is complex.

    Examples
    --------
    >>> gt.fft.ihfft(gt.constant([1.0, 2.0, 3.0, 2.0])).real.tolist()
    [2.0, -0.5, 0.0]
    """
    return ops["conj"](rfft(a, n, axis, ADJOINT_NORMS[checked_norm(norm, "ihfft")]))

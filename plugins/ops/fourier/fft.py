"""Discrete Fourier transforms under NumPy's names.

Six linear ops carry them all: transforms of complex numbers over any axes, transforms of real
numbers over one, and the adjoints of these. A transform's gradient is the conjugate transform with
the norm of the other direction, so every order of gradient is again one of the six. Complex
gradients follow TensorFlow's convention; those of real inputs are real.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ....core.extend import NONDIFF, F, Tensor, as_dtype, as_tensor, default_dtype, ops
from ..common.batching import along
from ..common.families import as_axis, cast_to, kind_of, named, op, reduced_axes
from ..common.gradients import as_like
from ..common.ranks import known_rank
from ..shapes.shape import one_axis

__all__ = [
    "fft",
    "fft2",
    "fftfreq",
    "fftn",
    "fftshift",
    "hfft",
    "ifft",
    "ifft2",
    "ifftn",
    "ifftshift",
    "ihfft",
    "irfft",
    "irfft2",
    "irfftn",
    "rfft",
    "rfft2",
    "rfftfreq",
    "rfftn",
]

#: The norm with which the conjugate transform is the adjoint.
_OTHER = {"backward": "forward", "ortho": "ortho", "forward": "backward"}


def _complex(dtype: Any) -> np.dtype[Any]:
    """Return the dtype of a transform of numbers of ``dtype``."""
    return np.fft.fft(np.zeros(1, dtype)).dtype


def _real(dtype: Any) -> np.dtype[Any]:
    return np.empty(0, _complex(dtype)).real.dtype


def as_complex(xp: Any, x: Any) -> Any:
    """Return ``x`` as complex numbers: the standard transforms no others."""
    return x if kind_of(x.dtype) == "c" else cast_to(xp, x, _complex(_numpy_dtype(x)))


def _numpy_dtype(x: Any) -> Any:
    return np.dtype(str(x.dtype).rpartition(".")[2])


# -- sizes -----------------------------------------------------------------------------------------


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


# -- the transforms --------------------------------------------------------------------------------


def _check_points(shape: Any, axes: Sequence[int], name: str) -> None:
    """Raise if an axis does not exist, or has no points."""
    if shape is None:
        return
    for place in reduced_axes(tuple(axes), len(shape), name):
        if shape[place] == 0:
            raise ValueError(f"{name}: axis {place} of shape {shape} has no points to transform")


def _over_axes(name: str, other: str) -> None:
    """Make the transform of complex numbers over axes, one way."""

    def kernel(xp: Any, x: Any, *, axes: tuple[int, ...], norm: str) -> Any:
        _check_points(x.shape, axes, name)
        if not axes:
            return as_complex(xp, x)
        if xp is not np:  # which is quicker with real numbers, and gives complex ones all the same
            x = as_complex(xp, x)
        return getattr(xp.fft, name)(x, axes=axes, norm=norm)

    def rule(g: Any, x_like: Any, axes: tuple[int, ...], norm: str) -> Any:
        return as_like(F[other](g, axes=axes, norm=_OTHER[norm]), x_like)

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
    """Return the weights of a half spectrum: ``inner`` for numbers that stand for a pair."""
    weights = np.full(count, inner)
    weights[0] = 1.0
    if points % 2 == 0:
        weights[points // 2] = 1.0
    shape = [1] * like.ndim
    shape[axis] = count
    return xp.asarray(weights.reshape(shape).astype(_numpy_dtype(xp.real(like))))


def _rfft(xp: Any, x: Any, *, axis: int, norm: str) -> Any:
    if kind_of(x.dtype) == "c":
        raise TypeError(f"rfft: the input must be real, got dtype {x.dtype}; use fft")
    _check_points(x.shape, (axis,), "rfft")
    if kind_of(x.dtype) != "f":
        x = cast_to(xp, x, np.float64)
    return xp.fft.rfft(x, axis=axis, norm=norm)


def _rfft_adjoint(xp: Any, g: Any, like: Any, *, axis: int, norm: str) -> Any:
    points = like.shape[axis]
    halved = g * _weights(xp, g.shape[axis], points, 0.5, g, axis)
    return xp.fft.irfft(halved, n=points, axis=axis, norm=_OTHER[norm])


def _irfft(xp: Any, x: Any, *, n: int | None, axis: int, norm: str) -> Any:
    (along,) = reduced_axes(axis, x.ndim, "irfft")
    points = 2 * (x.shape[along] - 1) if n is None else n
    if points < 1:
        raise ValueError(f"irfft: shape {x.shape} leaves {points} points along axis {axis}; give n")
    return xp.fft.irfft(as_complex(xp, x), n=points, axis=axis, norm=norm)


def _irfft_adjoint(xp: Any, g: Any, *, n: int | None, axis: int, norm: str) -> Any:
    spectrum = xp.fft.rfft(g, axis=axis, norm=_OTHER[norm])
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
    doc="Transform real numbers along an axis to the half of the spectrum that matters.",
)
op(
    "rfft_adjoint",
    _rfft_adjoint,
    gradients={"g": lambda g, axis, norm: F.rfft(g, axis=axis, norm=norm), "like": NONDIFF},
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


# -- arguments -------------------------------------------------------------------------------------


def _norm(norm: str | None, name: str) -> str:
    if norm is None:
        return "backward"
    if norm not in _OTHER:
        raise ValueError(f"{name}: norm must be 'backward', 'ortho' or 'forward', got {norm!r}")
    return norm


def _points(n: Any, name: str) -> int:
    size = operator.index(n)
    if size < 1:
        raise ValueError(f"{name}: the number of points must be at least 1, got {size}")
    return size


def _resized(x: Any, sizes: dict[int, int]) -> Any:
    """Return ``x`` with axes cut or padded to sizes, if they are to change at all."""
    x = as_tensor(x)
    if x.shape is not None:
        reduced_axes(tuple(sizes), len(x.shape), "fft")
        sizes = {axis: n for axis, n in sizes.items() if x.shape[axis] != n}
    if not sizes:
        return x
    return ops["crop_or_pad"](x, sizes=tuple(sizes.values()), axes=tuple(sizes))


def _line(x: Any, n: Any, axis: Any, name: str) -> tuple[Any, int]:
    """Return a tensor of ``n`` points along an axis, and that axis."""
    axis = one_axis(axis, name)
    return (x if n is None else _resized(x, {axis: _points(n, name)})), axis


def _grid(x: Any, s: Any, axes: Any, name: str) -> tuple[Any, tuple[int, ...], dict[int, int]]:
    """Return a tensor, the axes to transform, and the sizes that some of them are to have."""
    x = as_tensor(x)
    if axes is None:
        axes = range(-(known_rank(x, name) if s is None else len(s)), 0)
    chosen = tuple(one_axis(axis, name) for axis in axes)
    if s is None:
        return x, chosen, {}
    sizes = [operator.index(n) for n in s]
    if len(sizes) != len(chosen):
        raise ValueError(f"{name}: sizes {tuple(sizes)} do not fit the axes {chosen}")
    wanted = {i: _points(n, name) for i, n in zip(chosen, sizes, strict=True) if n != -1}
    return x, chosen, wanted


# -- one axis --------------------------------------------------------------------------------------


@named
def fft(a: Any, n: int | None = None, axis: int = -1, norm: str | None = None) -> Tensor:
    """Return the discrete Fourier transform along an axis.

    Parameters
    ----------
    a
        A tensor of any dtype, with at least one axis.
    n
        The number of points: ``a`` is cut, or padded with zeros, to it. Its own size by default.
    axis
        The axis to transform; the last by default.
    norm
        ``"backward"`` (the default): ``ifft`` divides by n. ``"forward"``: ``fft`` does.
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
    direction; the real part of it for a real input.

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
    return ops["fftn"](a, axes=(axis,), norm=_norm(norm, "fft"))


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
    return ops["ifftn"](a, axes=(axis,), norm=_norm(norm, "ifft"))


@named
def rfft(a: Any, n: int | None = None, axis: int = -1, norm: str | None = None) -> Tensor:
    """Return the first half of the spectrum of real numbers: ``n // 2 + 1`` complex ones.

    The rest are their conjugates.

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
    return ops["rfft"](a, axis=axis, norm=_norm(norm, "rfft"))


@named
def irfft(a: Any, n: int | None = None, axis: int = -1, norm: str | None = None) -> Tensor:
    """Return the ``n`` real numbers of which ``a`` is the half spectrum, as :func:`rfft` gives it.

    Parameters
    ----------
    a
        A tensor of any dtype, with at least one axis. The imaginary part of the first number, and
        of the last if ``n`` is even, does not count.
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
    >>> gt.fft.irfft(gt.constant([4.0, 0.0, 0.0])).tolist()
    [1.0, 1.0, 1.0, 1.0]
    """
    axis = one_axis(axis, "irfft")
    points = None if n is None else _points(n, "irfft")
    if points is not None:
        a = _resized(a, {axis: points // 2 + 1})
    return ops["irfft"](a, n=points, axis=axis, norm=_norm(norm, "irfft"))


@named
def hfft(a: Any, n: int | None = None, axis: int = -1, norm: str | None = None) -> Tensor:
    """Return the real spectrum of a signal that is Hermitian: ``a`` is one half of it.

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
    return irfft(ops["conj"](a), n, axis, _OTHER[_norm(norm, "hfft")])


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
    return ops["conj"](rfft(a, n, axis, _OTHER[_norm(norm, "ihfft")]))


# -- several axes ----------------------------------------------------------------------------------


def _repeats(x: Any, axes: Any) -> bool:
    """Return whether an axis is named twice, to be transformed twice."""
    if axes is None:
        return False
    rank = None if x.shape is None else len(x.shape)
    places = [n if rank is None or n >= 0 else n + rank for n in axes]
    return len(set(places)) < len(places)


def _one_by_one(one: Callable[..., Any], a: Any, s: Any, axes: Any, norm: Any) -> Any:
    """Transform axis after axis, from the last."""
    sizes = [None] * len(axes) if s is None else [None if n == -1 else n for n in s]
    for n, axis in reversed(list(zip(sizes, axes, strict=True))):
        a = one(a, n, axis, norm)
    return a


def _many(name: str, a: Any, s: Any, axes: Any, norm: Any) -> Any:
    a = as_tensor(a)
    if _repeats(a, axes):
        return _one_by_one(ifft if name.startswith("i") else fft, a, s, axes, norm)
    a, over, sizes = _grid(a, s, axes, name)
    transform = "ifftn" if name.startswith("i") else "fftn"
    return ops[transform](_resized(a, sizes), axes=over, norm=_norm(norm, name))


@named
def fftn(a: Any, s: Any = None, axes: Any = None, norm: str | None = None) -> Tensor:
    """Return the discrete Fourier transform over several axes.

    Parameters
    ----------
    a
        A tensor of any dtype.
    s
        The number of points along each axis, -1 for its own size.
    axes
        The axes; all by default, or the last ``len(s)``. One named twice is transformed twice.
    norm
        As for :func:`fft`.

    Returns
    -------
    Tensor
        A complex tensor.

    Raises
    ------
    ValueError
        If sizes and axes are not as many, there are no points, or there is no such norm.
    numpy.exceptions.AxisError
        If an axis is out of bounds.

    Examples
    --------
    >>> gt.fft.fftn(gt.ones((2, 2))).real.tolist()
    [[4.0, 0.0], [0.0, 0.0]]
    """
    return _many("fftn", a, s, axes, norm)


@named
def ifftn(a: Any, s: Any = None, axes: Any = None, norm: str | None = None) -> Tensor:
    """Return the inverse of :func:`fftn`.

    Parameters
    ----------
    a
        A tensor of any dtype.
    s
        The number of points along each axis, -1 for its own size.
    axes
        The axes; all by default, or the last ``len(s)``. One named twice is transformed twice.
    norm
        As for :func:`fft`.

    Returns
    -------
    Tensor
        A complex tensor.

    Raises
    ------
    ValueError
        If sizes and axes are not as many, there are no points, or there is no such norm.
    numpy.exceptions.AxisError
        If an axis is out of bounds.

    Examples
    --------
    >>> gt.fft.ifftn(gt.fft.fftn(gt.ones((2, 2)))).real.tolist()
    [[1.0, 1.0], [1.0, 1.0]]
    """
    return _many("ifftn", a, s, axes, norm)


@named
def fft2(a: Any, s: Any = None, axes: Any = (-2, -1), norm: str | None = None) -> Tensor:
    """Return the discrete Fourier transform over two axes; see :func:`fftn`.

    Parameters
    ----------
    a
        A tensor of any dtype, with at least two axes.
    s
        The number of points along each axis, -1 for its own size.
    axes
        The axes; the last two by default.
    norm
        As for :func:`fft`.

    Returns
    -------
    Tensor
        A complex tensor.

    Raises
    ------
    ValueError
        If sizes and axes are not as many, there are no points, or there is no such norm.
    numpy.exceptions.AxisError
        If an axis is out of bounds.

    Examples
    --------
    >>> gt.fft.fft2(gt.ones((2, 2))).real.tolist()
    [[4.0, 0.0], [0.0, 0.0]]
    """
    return _many("fft2", a, s, axes, norm)


@named
def ifft2(a: Any, s: Any = None, axes: Any = (-2, -1), norm: str | None = None) -> Tensor:
    """Return the inverse of :func:`fft2`.

    Parameters
    ----------
    a
        A tensor of any dtype, with at least two axes.
    s
        The number of points along each axis, -1 for its own size.
    axes
        The axes; the last two by default.
    norm
        As for :func:`fft`.

    Returns
    -------
    Tensor
        A complex tensor.

    Raises
    ------
    ValueError
        If sizes and axes are not as many, there are no points, or there is no such norm.
    numpy.exceptions.AxisError
        If an axis is out of bounds.

    Examples
    --------
    >>> gt.fft.ifft2(gt.constant([[4.0, 0.0], [0.0, 0.0]])).real.tolist()
    [[1.0, 1.0], [1.0, 1.0]]
    """
    return _many("ifft2", a, s, axes, norm)


@named
def rfftn(a: Any, s: Any = None, axes: Any = None, norm: str | None = None) -> Tensor:
    """Return the spectrum of real numbers over several axes, half of it along the last of them.

    Parameters
    ----------
    a
        A real tensor.
    s
        The number of points along each axis, -1 for its own size.
    axes
        The axes; all by default, or the last ``len(s)``. One named twice is transformed twice.
    norm
        As for :func:`fft`.

    Returns
    -------
    Tensor
        A complex tensor, of size ``n // 2 + 1`` along the last of the axes, where n are its points.

    Raises
    ------
    TypeError
        If ``a`` is complex.
    ValueError
        If there is no axis to transform, sizes and axes are not as many, there are no points, or
        there is no such norm.
    numpy.exceptions.AxisError
        If an axis is out of bounds.

    Examples
    --------
    >>> gt.fft.rfftn(gt.ones((2, 4))).shape
    (2, 3)
    """
    a = as_tensor(a)
    if _repeats(a, axes):
        half = rfft(a, None if s is None or s[-1] == -1 else s[-1], axes[-1], norm)
        return _one_by_one(fft, half, None if s is None else s[:-1], axes[:-1], norm)
    a, over, sizes = _grid(a, s, axes, "rfftn")
    norm = _norm(norm, "rfftn")
    *others, last = _some(over, "rfftn")
    half = ops["rfft"](_resized(a, sizes), axis=last, norm=norm)
    return ops["fftn"](half, axes=tuple(others), norm=norm) if others else half


@named
def irfftn(a: Any, s: Any = None, axes: Any = None, norm: str | None = None) -> Tensor:
    """Return the inverse of :func:`rfftn`, real.

    Parameters
    ----------
    a
        A tensor of any dtype, half a spectrum along the last of the axes.
    s
        The number of points of the result along each axis; by default ``2 * (m - 1)`` along the
        last of them, for m numbers: give it where that is odd. -1 stands for the default.
    axes
        The axes; all by default, or the last ``len(s)``. One named twice is transformed twice.
    norm
        As for :func:`fft`.

    Returns
    -------
    Tensor
        A real tensor.

    Raises
    ------
    ValueError
        If there is no axis to transform, sizes and axes are not as many, there are no points, or
        there is no such norm.
    numpy.exceptions.AxisError
        If an axis is out of bounds.

    Examples
    --------
    >>> gt.fft.irfftn(gt.fft.rfftn(gt.ones((2, 4)))).shape
    (2, 4)
    """
    a = as_tensor(a)
    if _repeats(a, axes):
        # the last axis is halved, so it comes last; the others' order tells no difference
        whole = _one_by_one(ifft, a, None if s is None else s[:-1], axes[:-1], norm)
        return irfft(whole, None if s is None or s[-1] == -1 else s[-1], axes[-1], norm)
    a, over, sizes = _grid(a, s, axes, "irfftn")
    norm = _norm(norm, "irfftn")
    *others, last = _some(over, "irfftn")
    points = sizes.get(last)
    if points is not None:
        sizes[last] = points // 2 + 1
    a = _resized(a, sizes)
    whole = ops["ifftn"](a, axes=tuple(others), norm=norm) if others else a
    return ops["irfft"](whole, n=points, axis=last, norm=norm)


def _some(axes: tuple[int, ...], name: str) -> tuple[int, ...]:
    if not axes:
        raise ValueError(f"{name}: at least one axis must be transformed")
    return axes


@named
def rfft2(a: Any, s: Any = None, axes: Any = (-2, -1), norm: str | None = None) -> Tensor:
    """Return the transform of real numbers over two axes; see :func:`rfftn`.

    Parameters
    ----------
    a
        A real tensor, with at least two axes.
    s
        The number of points along each axis, -1 for its own size.
    axes
        The axes; the last two by default.
    norm
        As for :func:`fft`.

    Returns
    -------
    Tensor
        A complex tensor, of size ``n // 2 + 1`` along the last of the axes, where n are its points.

    Raises
    ------
    TypeError
        If ``a`` is complex.
    ValueError
        If sizes and axes are not as many, there are no points, or there is no such norm.
    numpy.exceptions.AxisError
        If an axis is out of bounds.

    Examples
    --------
    >>> gt.fft.rfft2(gt.ones((2, 4))).shape
    (2, 3)
    """
    return rfftn(a, s, axes, norm)


@named
def irfft2(a: Any, s: Any = None, axes: Any = (-2, -1), norm: str | None = None) -> Tensor:
    """Return the inverse of :func:`rfft2`, real.

    Parameters
    ----------
    a
        A tensor of any dtype, half a spectrum along the last of the axes.
    s
        The number of points of the result along each axis, as for :func:`irfftn`.
    axes
        The axes; the last two by default.
    norm
        As for :func:`fft`.

    Returns
    -------
    Tensor
        A real tensor.

    Raises
    ------
    ValueError
        If sizes and axes are not as many, there are no points, or there is no such norm.
    numpy.exceptions.AxisError
        If an axis is out of bounds.

    Examples
    --------
    >>> gt.fft.irfft2(gt.fft.rfft2(gt.ones((2, 4)))).shape
    (2, 4)
    """
    return irfftn(a, s, axes, norm)


# -- frequencies -----------------------------------------------------------------------------------


def _shift_kernel(xp: Any, x: Any, *, axes: tuple[int, ...] | None, inverse: bool) -> Any:
    over = reduced_axes(axes, x.ndim, "fftshift")
    by = tuple(-(x.shape[i] // 2) if inverse else x.shape[i] // 2 for i in over)
    return xp.roll(x, by, axis=over) if over else x


def _shift_spec(x: Any, *, axes: tuple[int, ...] | None, inverse: bool) -> tuple[Any, Any]:
    if x.shape is not None:
        reduced_axes(axes, len(x.shape), "fftshift")
    return x.shape, x.dtype


_shift = op(
    "fftshift",
    _shift_kernel,
    gradients={"x": lambda g, axes, inverse: F.fftshift(g, axes=axes, inverse=not inverse)},
    infer=_shift_spec,
    holomorphic=True,
    batch=along("axes"),
    jvp="linear",
    doc="Exchange the halves of axes; ``inverse`` undoes it where a size is odd.",
)


@named
def fftshift(x: Any, axes: int | Sequence[int] | None = None) -> Tensor:
    """Return ``x`` with the zero frequency moved to the middle of ``axes`` (all by default).

    Parameters
    ----------
    x
        A tensor of any shape and dtype, as a transform gives it.
    axes
        The axis or axes whose halves are exchanged.

    Returns
    -------
    Tensor
        A tensor of the shape and dtype of ``x``.

    Raises
    ------
    numpy.exceptions.AxisError
        If an axis is out of bounds.
    ValueError
        If an axis is named twice.

    Examples
    --------
    >>> gt.fft.fftshift(gt.fft.fftfreq(4)).tolist()
    [-0.5, -0.25, 0.0, 0.25]
    """
    return _shift(x, axes=_axes_of_shift(axes, "fftshift"), inverse=False)


@named
def ifftshift(x: Any, axes: int | Sequence[int] | None = None) -> Tensor:
    """Return the inverse of :func:`fftshift`: they differ where a size is odd.

    Parameters
    ----------
    x
        A tensor of any shape and dtype.
    axes
        The axis or axes whose halves are exchanged; all by default.

    Returns
    -------
    Tensor
        A tensor of the shape and dtype of ``x``.

    Raises
    ------
    numpy.exceptions.AxisError
        If an axis is out of bounds.
    ValueError
        If an axis is named twice.

    Examples
    --------
    >>> gt.fft.ifftshift(gt.arange(5)).tolist()
    [2, 3, 4, 0, 1]
    """
    return _shift(x, axes=_axes_of_shift(axes, "ifftshift"), inverse=True)


def _axes_of_shift(axes: Any, name: str) -> tuple[int, ...] | None:
    given = as_axis(axes, name)
    return (given,) if isinstance(given, int) else given


@named
def fftfreq(n: int, d: float = 1.0, dtype: Any = None) -> Tensor:
    """Return the frequencies of :func:`fft`, for ``n`` points at distance ``d``.

    Parameters
    ----------
    n
        The number of points.
    d
        The distance between points; frequencies are in cycles per unit of it. 1 by default.
    dtype
        The dtype; the default dtype if not given.

    Returns
    -------
    Tensor
        A vector of n frequencies: those of at least 0, then the negative ones.

    Raises
    ------
    ValueError
        If ``n`` is below 1.

    Examples
    --------
    >>> gt.fft.fftfreq(4).tolist()
    [0.0, 0.25, -0.5, -0.25]
    """
    return as_tensor(np.fft.fftfreq(_points(n, "fftfreq"), d).astype(_float(dtype)))


@named
def rfftfreq(n: int, d: float = 1.0, dtype: Any = None) -> Tensor:
    """Return the frequencies of :func:`rfft`, for ``n`` points at distance ``d``.

    Parameters
    ----------
    n
        The number of points.
    d
        The distance between points; frequencies are in cycles per unit of it. 1 by default.
    dtype
        The dtype; the default dtype if not given.

    Returns
    -------
    Tensor
        A vector of ``n // 2 + 1`` frequencies, in ascending order.

    Raises
    ------
    ValueError
        If ``n`` is below 1.

    Examples
    --------
    >>> gt.fft.rfftfreq(4, d=0.5).tolist()
    [0.0, 0.5, 1.0]
    """
    return as_tensor(np.fft.rfftfreq(_points(n, "rfftfreq"), d).astype(_float(dtype)))


def _float(dtype: Any) -> np.dtype[Any]:
    return default_dtype() if dtype is None else as_dtype(dtype)

"""Discrete Fourier transforms along several axes, and the frequencies of transforms."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ....core.extend import F, Tensor, as_size, as_tensor, ops, placeable, same_size
from ..common.axes import along, as_axis, one_axis, reduced_axes
from ..common.dynamic_shapes import known_rank, table
from ..common.op_builders import named, op, same_shape
from ..shapes.creation import number_dtype
from .fourier import checked_norm, checked_points, fft, ifft, irfft, resized, rfft


def _grid(x: Any, s: Any, axes: Any, name: str) -> tuple[Any, tuple[int, ...], dict[int, int]]:
    """Return a tensor, the axes to transform, and the requested sizes of some of them."""
    x = as_tensor(x)
    if axes is None:
        axes = range(-(known_rank(x, name) if s is None else len(s)), 0)
    chosen = tuple(one_axis(axis, name) for axis in axes)
    if s is None:
        return x, chosen, {}
    sizes = [as_size(n, name) for n in s]
    if len(sizes) != len(chosen):
        raise ValueError(f"{name}: sizes {tuple(sizes)} do not fit the axes {chosen}")
    wanted = {
        i: checked_points(n, name) for i, n in zip(chosen, sizes, strict=True) if not _kept(n)
    }
    return x, chosen, wanted


def _kept(n: Any) -> bool:
    """Return whether a requested size is the size of the array."""
    return same_size(n, -1)


def _repeats(x: Any, axes: Any) -> bool:
    """Return whether an axis is repeated, to be transformed twice."""
    if axes is None:
        return False
    rank = None if x.shape is None else len(x.shape)
    places = [n if rank is None or n >= 0 else n + rank for n in axes]
    return len(set(places)) < len(places)


def _one_by_one(one: Callable[..., Any], a: Any, s: Any, axes: Any, norm: Any) -> Any:
    """Transform axis after axis, from the last."""
    sizes = [None] * len(axes) if s is None else [None if _kept(n) else n for n in s]
    for n, axis in reversed(list(zip(sizes, axes, strict=True))):
        a = one(a, n, axis, norm)
    return a


def _many(name: str, a: Any, s: Any, axes: Any, norm: Any) -> Any:
    a = as_tensor(a)
    if _repeats(a, axes):
        return _one_by_one(ifft if name.startswith("i") else fft, a, s, axes, norm)
    a, over, sizes = _grid(a, s, axes, name)
    transform = "ifftn" if name.startswith("i") else "fftn"
    return ops[transform](resized(a, sizes), axes=over, norm=checked_norm(norm, name))


@named
def fftn(a: Any, s: Any = None, axes: Any = None, norm: str | None = None) -> Tensor:
    """Return the discrete Fourier transform over several axes.

    Parameters
    ----------
    a
        A tensor of any dtype.
    axes
        The axes; all by default, or the last ``len(s)``. A repeated axis is transformed twice.

    Returns
    -------
    Tensor
        A complex tensor.

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
    axes
        The axes; all by default, or the last ``len(s)``. One named twice is transformed twice.

    Returns
    -------
    Tensor
        A complex tensor.

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
    axes
        The axes; the last two by default.

    Returns
    -------
    Tensor
        A complex tensor.

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
    axes
        The axes; the last two by default.

    Returns
    -------
    Tensor
        A complex tensor.

    Examples
    --------
    >>> gt.fft.ifft2(gt.constant([[4.0, 0.0], [0.0, 0.0]])).real.tolist()
    [[1.0, 1.0], [1.0, 1.0]]
    """
    return _many("ifft2", a, s, axes, norm)


@named
def rfftn(a: Any, s: Any = None, axes: Any = None, norm: str | None = None) -> Tensor:
    """Return the spectrum of real numbers over several axes, one half of it along the last axis.

    Parameters
    ----------
    a
        A real tensor.
    axes
        The axes; all by default, or the last ``len(s)``. One named twice is transformed twice.

    Returns
    -------
    Tensor
        A complex tensor, of size ``n // 2 + 1`` along the last of the axes, which has n points.

    Raises
    ------
    TypeError
        If ``a`` is complex.
    ValueError
        If there is no axis to transform, the numbers of sizes and axes differ, there are no points,
        or there is no such norm.

    Examples
    --------
    >>> gt.fft.rfftn(gt.ones((2, 4))).shape
    (2, 3)
    """
    a = as_tensor(a)
    if _repeats(a, axes):
        half = rfft(a, None if s is None or _kept(s[-1]) else s[-1], axes[-1], norm)
        sizes = s if s is not None else [None if a.shape is None else a.shape[n] for n in axes]
        return _one_by_one(fft, half, sizes[:-1], axes[:-1], norm)
    a, over, sizes = _grid(a, s, axes, "rfftn")
    norm = checked_norm(norm, "rfftn")
    *others, last = _some(over, "rfftn")
    half = ops["rfft"](resized(a, sizes), axis=last, norm=norm)
    return ops["fftn"](half, axes=tuple(others), norm=norm) if others else half


@named
def irfftn(a: Any, s: Any = None, axes: Any = None, norm: str | None = None) -> Tensor:
    """Return the inverse of :func:`rfftn`, real.

    Parameters
    ----------
    a
        A tensor of any dtype, half a spectrum along the last of the axes.
    s
        The number of points of the result along each axis. The default along the last axis is
        ``2 * (m - 1)`` for m numbers; give it for an odd number of points. -1 stands for the
        default.
    axes
        The axes; all by default, or the last ``len(s)``. One named twice is transformed twice.

    Returns
    -------
    Tensor
        A real tensor.

    Raises
    ------
    ValueError
        If there is no axis to transform, sizes and axes are not as many, there are no points, or
        there is no such norm.

    Examples
    --------
    >>> gt.fft.irfftn(gt.fft.rfftn(gt.ones((2, 4)))).shape
    (2, 4)
    """
    a = as_tensor(a)
    if _repeats(a, axes):
        # the last axis is halved, so it comes last; the others' order tells no difference
        whole = _one_by_one(ifft, a, None if s is None else s[:-1], axes[:-1], norm)
        return irfft(whole, None if s is None or _kept(s[-1]) else s[-1], axes[-1], norm)
    a, over, sizes = _grid(a, s, axes, "irfftn")
    norm = checked_norm(norm, "irfftn")
    *others, last = _some(over, "irfftn")
    points = sizes.get(last)
    if points is not None:
        sizes[last] = points // 2 + 1
    a = resized(a, sizes)
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
    axes
        The axes; the last two by default.

    Returns
    -------
    Tensor
        A complex tensor, of size ``n // 2 + 1`` along the last of the axes, where n are its points.

    Raises
    ------
    TypeError
        If ``a`` is complex.

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

    Returns
    -------
    Tensor
        A real tensor.

    Examples
    --------
    >>> gt.fft.irfft2(gt.fft.rfft2(gt.ones((2, 4)))).shape
    (2, 4)
    """
    return irfftn(a, s, axes, norm)


# -- frequencies and their order -------------------------------------------------------------------


def _shift_kernel(xp: Any, x: Any, *, axes: tuple[int, ...] | None, inverse: bool) -> Any:
    over = reduced_axes(axes, x.ndim, "fftshift")
    by = tuple(-(x.shape[i] // 2) if inverse else x.shape[i] // 2 for i in over)
    return xp.roll(x, by, axis=over) if over else x


_shift = op(
    "fftshift",
    _shift_kernel,
    gradients={"x": lambda g, axes, inverse: F.fftshift(g, axes=axes, inverse=not inverse)},
    infer=same_shape("fftshift", parameter="axes"),
    holomorphic=True,
    batch=along("axes"),
    jvp="linear",
    doc="Exchange the halves of axes; ``inverse`` undoes it for odd sizes.",
)


@named
def fftshift(x: Any, axes: int | Sequence[int] | None = None) -> Tensor:
    """Return ``x`` with the zero frequency moved to the middle of ``axes`` (all by default).

    Parameters
    ----------
    x
        A tensor of any shape and dtype, such as the result of a transform.
    axes
        The axis or axes whose halves are exchanged.

    Returns
    -------
    Tensor
        A tensor of the shape and dtype of ``x``.

    Examples
    --------
    >>> gt.fft.fftshift(gt.fft.fftfreq(4)).tolist()
    [-0.5, -0.25, 0.0, 0.25]
    """
    return _shift(x, axes=_axes_of_shift(axes, "fftshift"), inverse=False)


@named
def ifftshift(x: Any, axes: int | Sequence[int] | None = None) -> Tensor:
    """Return the inverse of :func:`fftshift`; they differ for odd sizes.

    Parameters
    ----------
    axes
        The axis or axes whose halves are exchanged; all by default.

    Returns
    -------
    Tensor
        A tensor of the shape and dtype of ``x``.

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
@placeable
def fftfreq(n: int, d: float = 1.0, dtype: Any = None, *, device: str | None = None) -> Tensor:
    """Return the frequencies of :func:`fft`, for ``n`` points at distance ``d``.

    Parameters
    ----------
    n
        The number of points.
    d
        The distance between points; frequencies are in cycles per unit of it. 1 by default.
    dtype
        The dtype; the default dtype if not given.
    device
        The device, as ``tensor.device`` names it; by default that of new tensors.

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
    return table("fftfreq", checked_points(n, "fftfreq"), d, dtype=number_dtype(dtype))


@named
@placeable
def rfftfreq(n: int, d: float = 1.0, dtype: Any = None, *, device: str | None = None) -> Tensor:
    """Return the frequencies of :func:`rfft`, for ``n`` points at distance ``d``.

    Parameters
    ----------
    n
        The number of points.
    d
        The distance between points; frequencies are in cycles per unit of it. 1 by default.
    dtype
        The dtype; the default dtype if not given.
    device
        The device, as ``tensor.device`` names it; by default that of new tensors.

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
    return table("rfftfreq", checked_points(n, "rfftfreq"), d, dtype=number_dtype(dtype))

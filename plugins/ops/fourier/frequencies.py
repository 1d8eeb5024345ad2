"""The frequencies of transforms, and their order."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ....core.extend import F, Tensor
from ..common.axes import as_axis, reduced_axes
from ..common.batching import along
from ..common.op_builders import named, op, same_shape
from ..common.tables import table
from ..shapes.creation import number_dtype
from .primitives import checked_points


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
    """Return the inverse of :func:`fftshift`; they differ for odd sizes.

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
    return table("fftfreq", checked_points(n, "fftfreq"), d, dtype=number_dtype(dtype))


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
    return table("rfftfreq", checked_points(n, "rfftfreq"), d, dtype=number_dtype(dtype))

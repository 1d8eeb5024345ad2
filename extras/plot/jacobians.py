"""Jacobians and Hessians as images: colours show the sign and size of elements."""

from __future__ import annotations

from math import ceil, sqrt
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..core.extend import Tensor, Variable
from .training import current_axes

if TYPE_CHECKING:
    from matplotlib.axes import Axes

#: The colour of nan and of empty places in a grid.
_NOTHING = "0.8"
#: The most ticks on an axis of patches.
_TICKS = 12


def jacobian(j: Any, ax: Axes | None = None, **imshow_kwargs: Any) -> Axes:
    """Draw a Jacobian or Hessian with colours that are symmetric about zero.

    Parameters
    ----------
    j
        Real values, as a tensor or anything that NumPy converts to an array:

        * shape ``(targets, sources)``: one image;
        * shape ``(n, targets, m, sources)``, as from :meth:`gradtape.GradientTape.jacobian` with a
          target ``(n, targets)`` and a source ``(m, sources)``: a patch of ``n`` by ``m`` for each
          target and source. If the examples of a batch are independent, every patch is diagonal;
        * shape ``(batch, targets, sources)``, as from
          :meth:`gradtape.GradientTape.batch_jacobian`: a patch per example, in reading order.
    ax
        The Matplotlib axes to draw in. By default, the current axes of ``pyplot``.
    imshow_kwargs
        Arguments of :meth:`matplotlib.axes.Axes.imshow`. By default, ``cmap`` is ``"RdBu_r"``,
        ``vmax`` is the largest finite absolute value, and ``vmin`` is its negative, so that white
        is 0. If you pass only one of the two limits, the other one is its negative.

    Returns
    -------
    matplotlib.axes.Axes
        The axes, with a colour bar next to them. ``axes.figure.savefig(path)`` writes them to a
        file.

    Raises
    ------
    ValueError
        If ``j`` has another number of axes or no elements, or if ``extent`` is passed for patches.
    TypeError
        If ``j`` is complex or not numeric.
    ImportError
        If Matplotlib is not installed.

    Notes
    -----
    Nan is grey. Patches follow ``plot_as_patches`` of TensorFlow's guide to advanced automatic
    differentiation, with lines between them instead of padding.

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> axes = gt.plot.jacobian([[1.0, -2.0], [0.0, 0.5]], Figure().add_subplot())
    >>> axes.images[0].get_clim()
    (-2.0, 2.0)
    """
    values = _values(j)
    image, height, width = _arranged(values)
    if values.ndim > 2 and "extent" in imshow_kwargs:
        raise ValueError(
            "plot.jacobian: extent is not supported for patches, whose axes count elements; leave "
            "it out"
        )
    if ax is None:
        ax = current_axes("plot.jacobian")
    if "norm" not in imshow_kwargs:
        imshow_kwargs |= _limits(values, imshow_kwargs.get("vmin"), imshow_kwargs.get("vmax"))
    shown = ax.imshow(image, **{"cmap": "RdBu_r", **imshow_kwargs})
    ax.set_facecolor(_NOTHING)
    ax.figure.colorbar(shown, ax=ax)
    if values.ndim > 2:
        _divide(ax, image.shape, height, width)
    elif "extent" not in imshow_kwargs:
        _count_elements(ax)
    if values.ndim == 4:
        _number(ax.yaxis, image.shape[0], height)
        _number(ax.xaxis, image.shape[1], width)
        ax.set(ylabel="target[:, i]", xlabel="source[:, j]")
    else:
        ax.set(ylabel="target", xlabel="source")
    if values.ndim == 3:
        ax.set(xticks=[], yticks=[])
    return ax


def _values(j: Any) -> NDArray[Any]:
    """Return the values to draw, as real numbers on the host."""
    values = np.asarray(j.numpy() if isinstance(j, (Tensor, Variable)) else j)
    if values.dtype.kind == "c":
        raise TypeError(
            f"plot.jacobian: expected real numbers, got {values.dtype} of shape {values.shape}; "
            "draw the real and imaginary parts, or the absolute values"
        )
    if values.dtype.kind not in "fiub":
        raise TypeError(f"plot.jacobian: expected real numbers, got dtype {values.dtype}")
    if values.ndim not in (2, 3, 4):
        raise ValueError(
            "plot.jacobian: the shape must be (targets, sources), (batch, targets, sources) or "
            f"(n, targets, m, sources), got {values.shape}; reshape it to a matrix, for example "
            "with j.reshape((targets, -1))"
        )
    if not values.size:
        raise ValueError(f"plot.jacobian: there is nothing to draw in shape {values.shape}")
    exact = values.dtype.kind == "f" and values.itemsize > 2  # colours overflow in float16
    return values if exact else values.astype(np.float64)


def _limits(values: NDArray[Any], low: float | None, high: float | None) -> dict[str, float]:
    """Return the limits of the colour map, symmetric unless both are given."""
    if high is None:
        largest = float(np.abs(values[np.isfinite(values)]).max(initial=0.0)) or 1.0
        high = largest if low is None else -low
    return {"vmin": -high if low is None else low, "vmax": high}


def _arranged(values: NDArray[Any]) -> tuple[NDArray[Any], int, int]:
    """Return the image and the height and width of its patches."""
    if values.ndim == 2:
        return values, *values.shape
    if values.ndim == 4:
        n, targets, m, sources = values.shape
        return values.transpose(1, 0, 3, 2).reshape(targets * n, sources * m), n, m
    batch, height, width = values.shape
    columns = min(batch, ceil(sqrt(batch * height / width)))  # about as wide as high
    rows = ceil(batch / columns)
    grid = np.full((rows * columns, height, width), np.nan, values.dtype)
    grid[:batch] = values
    image = grid.reshape(rows, columns, height, width).swapaxes(1, 2)
    return image.reshape(rows * height, columns * width), height, width


def _count_elements(ax: Axes) -> None:
    """Number rows and columns with integers only, even if there are few."""
    from matplotlib.ticker import MaxNLocator

    for axis in (ax.xaxis, ax.yaxis):
        axis.set_major_locator(MaxNLocator("auto", integer=True, min_n_ticks=1))


def _divide(ax: Axes, shape: tuple[int, ...], height: int, width: int) -> None:
    """Draw lines between the patches, with a width independent of the image's size."""
    colour = ax.figure.get_facecolor()
    for edge in range(height, shape[0], height):
        ax.axhline(edge - 0.5, color=colour, linewidth=2)
    for edge in range(width, shape[1], width):
        ax.axvline(edge - 0.5, color=colour, linewidth=2)


def _number(axis: Any, length: int, patch: int) -> None:
    """Number the patches along an axis, at their middles."""
    count = length // patch
    chosen = range(0, count, ceil(count / _TICKS))
    axis.set_ticks([i * patch + (patch - 1) / 2 for i in chosen], labels=[str(i) for i in chosen])

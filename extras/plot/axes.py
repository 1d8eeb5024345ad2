"""Matplotlib's axes, and the colours of all plots."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["BLUE", "GREY", "INK", "ORANGE", "bare", "current_axes", "pyplot"]

BLUE, ORANGE, GREY, INK = "#2a6f97", "#e07a3f", "#9aa5b1", "#333333"


def pyplot(who: str) -> Any:
    """Return Matplotlib's ``pyplot``.

    Parameters
    ----------
    who
        The name of the calling function, for messages.

    Raises
    ------
    ImportError
        If Matplotlib is not installed.
    """
    try:
        from matplotlib import pyplot
    except ModuleNotFoundError as error:
        if error.name is None or error.name.partition(".")[0] != "matplotlib":
            raise
        raise ImportError(
            f'{who}: Matplotlib is not installed: pip install "gradtape[plot]"'
        ) from error
    return pyplot


def current_axes(who: str) -> Axes:
    """Return the current axes of ``pyplot``; raise the errors of :func:`pyplot`."""
    axes: Axes = pyplot(who).gca()
    return axes


def bare(axes: Any) -> None:
    """Remove the upper and right spines of a chart, and soften its ticks."""
    axes.tick_params(colors=INK, labelsize=9)
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)

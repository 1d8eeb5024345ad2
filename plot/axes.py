"""Where to draw: Matplotlib's axes."""

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
        The function that draws, for messages.

    Raises
    ------
    ImportError
        If it is not installed.
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
    """Return the axes that ``pyplot`` draws in; raise as :func:`pyplot`."""
    axes: Axes = pyplot(who).gca()
    return axes


def bare(axes: Any) -> None:
    """Take away what frames a chart, and rule it lightly."""
    axes.tick_params(colors=INK, labelsize=9)
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)

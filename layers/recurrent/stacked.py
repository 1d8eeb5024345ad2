"""``StackedRNNCells``: cells on top of each other."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..base.configured import Configured
from .cells import zeros_beside

__all__ = ["StackedRNNCells"]


class StackedRNNCells(Configured, saved_as="layers.StackedRNNCells"):
    """Cells on top of each other, as one cell.

    Parameters
    ----------
    cells
        The cells, from the inputs on.
    name
        A Python identifier.

    Raises
    ------
    ValueError
        If there are none.

    Examples
    --------
    >>> cell = gt.layers.StackedRNNCells([gt.layers.GRUCell(4), gt.layers.GRUCell(2)])
    >>> gt.layers.RNN(cell)(gt.ones((3, 5, 6))).shape
    (3, 2)
    """

    cells: list[Any]

    def __init__(self, cells: Sequence[Any] = (), name: str | None = None) -> None:
        super().__init__(name)
        self.cells = list(cells)

    @property
    def built(self) -> bool:
        """Whether every cell is built."""
        return all(getattr(cell, "built", True) for cell in self.cells)

    @property
    def weight_names(self) -> tuple[str, ...]:
        """None of its own."""
        return ()

    @property
    def state_size(self) -> tuple[int, ...]:
        """The lengths of all states."""
        return tuple(n for cell in self.cells for n in _sizes(cell))

    @property
    def output_size(self) -> int:
        """The length of the last cell's output."""
        return int(self.cells[-1].output_size)

    def build(self, input_shape: Any) -> None:
        """Do nothing: each cell is built when its input reaches it."""

    def initial_states(self, x: Any) -> list[Any]:
        """Return zeros, for inputs ``x`` of one step."""
        dtype = x.dtype if x.dtype.kind == "f" else self.variables[0].dtype
        return [zeros_beside(x, n, dtype) for n in self.state_size]

    def call(self, x: Any, states: Any, training: bool = False) -> tuple[Any, list[Any]]:
        """Do a step of every cell."""
        after: list[Any] = []
        for cell in self.cells:
            count = len(_sizes(cell))
            given = states[len(after) : len(after) + count]
            x, new = cell(x, list(given), training=training)
            after += new if isinstance(new, (list, tuple)) else [new]
        return x, after

    def get_config(self) -> dict[str, Any]:
        """Return the constructor's arguments, the cells left out."""
        return {"name": self.name}


def _sizes(cell: Any) -> tuple[int, ...]:
    size = cell.state_size
    return (size,) if isinstance(size, int) else tuple(size)

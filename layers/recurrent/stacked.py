"""``StackedRNNCells``: stacked cells."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Unpack

import numpy as np

from ...core.extend import Module, call_replaced
from ..base.calls import takes_training
from ..base.configured import Configured
from ..base.layer import Elsewhere
from ..base.losses import Rules
from ..base.precision import in_policy
from ..base.restored import check_part
from .cells import Cell, zeros_beside

__all__ = ["StackedRNNCells"]


class StackedRNNCells(Configured, saved_as="layers.StackedRNNCells"):
    """Stacked cells as one cell.

    Parameters
    ----------
    cells
        The cells, starting from the inputs.

    Raises
    ------
    TypeError
        If one is not a cell.

    Examples
    --------
    >>> cell = gt.layers.StackedRNNCells([gt.layers.GRUCell(4), gt.layers.GRUCell(2)])
    >>> gt.layers.RNN(cell)(gt.ones((3, 5, 6))).shape
    (3, 2)
    """

    takes_integers = True
    takes_policy = False
    cells: list[Any]

    def __init__(
        self, cells: Sequence[Any] = (), name: str | None = None, **rules: Unpack[Rules]
    ) -> None:
        super().__init__(name, **rules)
        self.cells = list(cells)
        for cell in self.cells:
            if not isinstance(cell, Module) or not hasattr(cell, "state_size"):
                raise TypeError(
                    f"StackedRNNCells: a cell must be a layer with state_size, got {cell!r}"
                )

    def check_restored(self) -> list[Any]:
        """Raise if what a file set are not cells; return them."""
        if not isinstance(self.cells, list) or not self.cells:
            raise TypeError(f"'cells' is no list of cells: {self.cells!r}"[:200])
        return [check_part("cells", cell, "state_size") for cell in self.cells]

    @property
    def built(self) -> bool:
        """Whether every cell is built."""
        return all(getattr(cell, "built", True) for cell in self.cells)

    @property
    def weight_names(self) -> tuple[str, ...]:
        """None of its own."""
        return ()

    @property
    def names_elsewhere(self) -> Elsewhere:  # type: ignore[override]
        """In PyTorch, the weights of all cells are in one layer, and have numbers."""
        forms = {f"cells/{i}": ("{}_l" + str(i), None) for i in range(len(self.cells))}
        return {"pytorch": forms} if len({type(cell) for cell in self.cells}) == 1 else {}

    @property
    def state_size(self) -> tuple[int, ...]:
        """The lengths of all states."""
        return tuple(n for cell in self.cells for n in _sizes(cell))

    @property
    def state_dtypes(self) -> tuple[str | None, ...]:
        """The dtypes of all states, None for the dtype of the cell's input."""
        policies = [getattr(cell, "policy", None) for cell in self.cells]
        low = [getattr(x, "compute_dtype", None) == "float16" for x in policies]
        pairs = zip(self.cells, low, strict=True)
        return tuple("float16" if half else None for cell, half in pairs for _ in _sizes(cell))

    @property
    def output_size(self) -> int:
        """The length of the last cell's output."""
        return _width(self.cells[-1])

    def build(self, input_shape: Any) -> None:
        """Build every cell for the output of the one before."""
        for cell in self.cells:
            self.build_part(cell, input_shape)
            input_shape = (input_shape[0], _width(cell))

    def initial_states(self, x: Any) -> list[Any]:
        """Return zeros, for inputs ``x`` of one step."""
        dtype = x.dtype if x.dtype.kind == "f" else self.variables[0].dtype
        known, found = iter(self.state_dtypes), []
        for cell in self.cells:  # each one computes in the widest dtype so far
            dtype = np.result_type(dtype, *(v.dtype for v in cell.variables if v.dtype.kind == "f"))
            found += [zeros_beside(x, n, next(known) or dtype) for n in _sizes(cell)]
        return found

    initial_states.gives_zeros = True  # type: ignore[attr-defined]

    def masks(self, x: Any, training: Any) -> list[Any]:
        """Return the masks of every cell, for inputs ``x`` of one step: the same at each step."""
        found = []
        for cell in self.cells:
            found.append(cell.masks(x, training) if inlined(cell) else None)
            x = zeros_beside(x, _width(cell), x.dtype)
        return found

    def call(
        self, x: Any, states: Any, training: bool = False, masks: Any = None
    ) -> tuple[Any, list[Any]]:
        """Run a step of every cell, with the result of :meth:`masks`, or with the cells' masks."""
        after: list[Any] = []
        for cell, own in zip(self.cells, masks or self.masks(x, training), strict=True):
            count = len(_sizes(cell))
            given = list(states[len(after) : len(after) + count])
            if own:
                x, new = in_policy(type(cell).masked, cell, x, given, own)
            else:
                x, new = called(cell, x, given, training)
            after += new
        return x, after

    def get_config(self) -> dict[str, Any]:
        """Return the constructor's arguments, without the cells."""
        return {"name": self.name, **self.rules_given()}


def inlined(cell: Any) -> bool:
    """Return whether layers run the parts of a cell's step instead of calling the cell.

    A user's class may compute something else in its ``call``, and files need its calls. But
    a cell that drops out without a ``call`` of its own drops the same elements at every step.
    """
    if not isinstance(cell, Cell) or call_replaced(cell):
        return False
    kind = type(cell)
    own = kind.call is not Cell.call or kind.masked is not Cell.masked
    drops = cell.input_dropout is not None or cell.state_dropout is not None
    return not own and (kind.saved_as is not None or drops)


def called(cell: Any, x: Any, states: list[Any], training: Any) -> tuple[Any, list[Any]]:
    """Return the result of a cell of any class, passing ``training`` if it takes that."""
    told = {"training": training} if takes_training(cell) else {}
    y, after = cell(x, states, **told)
    return y, list(after) if isinstance(after, (list, tuple)) else [after]


def _width(cell: Any) -> int:
    size = getattr(cell, "output_size", None)
    return int(_sizes(cell)[0] if size is None else size)


def _sizes(cell: Any) -> tuple[int, ...]:
    size = cell.state_size
    return (size,) if isinstance(size, int) else tuple(size)

"""Arrays of a file into variables that exist: all of them, or none."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ...core.extend import Variable, backend_of, exclusive, set_arrays


def beside(array: np.ndarray[Any, Any], variable: Variable) -> Any:
    """Return an array that nobody else has, in the dtype and on the device of a variable."""
    if isinstance(variable.array, np.ndarray):
        return array.astype(variable.dtype, copy=False)
    owner = backend_of(variable.array)
    return owner.asarray(array, variable.dtype, owner.device(variable.array))


def assign_arrays(pairs: Sequence[tuple[Variable, Any]]) -> None:
    """Replace the arrays of variables: all of them, or none if something fails or interrupts.

    Other threads see the variables before or after it.

    Parameters
    ----------
    pairs
        Variables, each with an array of its backend, shape and dtype (see :func:`beside`).
    """
    settled = [_settled(array) for _, array in pairs]  # which may fail, and nothing has changed
    variables = [variable for variable, _ in pairs]
    with exclusive(variables):
        set_arrays(variables, settled)


def _settled(array: Any) -> Any:
    owner = backend_of(array)
    return owner.settle([array])[0] if owner.settles else array

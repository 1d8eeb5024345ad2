"""NumPy's functions without an op: on values, and for attributes.

Gradtape has a function for most of NumPy's, which tapes record. NumPy's own runs if gradtape has
none, if it writes into a user's array, and if it mixes numbers with text or objects, as long as no
tape, trace or batch is active: no gradient can be lost then. Otherwise it is an error.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from math import prod
from typing import Any

import numpy as np
from numpy.lib.array_utils import normalize_axis_tuple

from ..base.context import active_batches, active_graph, active_tapes
from ..base.tree import flatten, map_structure
from ..base.user_code import not_known
from ..ops.dispatch import is_transformed
from .convert import as_tensor
from .tensor import Operators, Tensor

# -- NumPy's own functions, while nothing records --------------------------------------------------


class OnlyValues(Exception):
    """Only NumPy has this function; ``message()`` says what to do while something records."""

    def __init__(self, message: Callable[[], str]) -> None:
        super().__init__(message)
        self.message = message


def instead(error: Exception, function: Callable[..., Any], args: Any, kwargs: Any) -> Any:
    """Return the result of NumPy's function on values, or raise ``error`` if they are recorded."""
    if not _followed((args, kwargs)):
        return of_values(function, np.asarray, args, kwargs)
    if isinstance(error, OnlyValues):
        raise TypeError(error.message()) from None
    raise error


def _followed(arguments: Any) -> bool:
    return bool(active_tapes.get()) or _traced(arguments)


def _traced(arguments: Any) -> bool:
    return (
        active_graph.get() is not None
        or bool(active_batches.get())
        or any(is_transformed(getattr(leaf, "array", None)) for leaf in flatten(arguments))
    )


def is_followed(args: Any, kwargs: Any) -> bool:
    """Return whether a tape, a trace or a batch follows one of the tensors."""
    if _traced((args, kwargs)):
        return True
    tapes = active_tapes.get()
    tensors = [x for x in flatten((args, kwargs)) if isinstance(x, Operators)] if tapes else ()
    return any(_follows(tape, x) for tape in tapes for x in tensors)


def _follows(tape: Any, x: Any) -> bool:
    held = x if isinstance(x, Tensor) else x.handle()
    return held.id in tape.records or getattr(x, "trainable", False)


def of_values(
    function: Callable[..., Any], value: Callable[[Any], Any], args: Any, kwargs: Any
) -> Any:
    """Call NumPy's function with an array instead of each tensor."""
    args, kwargs = map_structure(
        lambda leaf: value(leaf) if isinstance(leaf, Operators) else leaf, (args, kwargs)
    )
    return function(*args, **kwargs)


def kept(tensor: Tensor) -> np.ndarray[Any, Any] | None:
    """Return the elements as an array of objects, if NumPy asks for them only to add them.

    NumPy turns a list of tensors into an array, and its elements have no gradients. A few of its
    functions are written in Python and compute with objects by Python's operators. These keep the
    gradients where they return one number; with several, they would return an array of objects,
    which most functions refuse.
    """
    frame = sys._getframe(2)
    name = f"{frame.f_globals.get('__name__')}.{frame.f_code.co_name}"
    keeps = _KEEPING.get(name.removeprefix("numpy.").removeprefix("_core."))
    if keeps is None or not keeps(frame.f_locals) or not 0 < tensor.size <= _MOST:
        return None
    found = np.empty(tensor.shape, object)
    for place in np.ndindex(tensor.shape):
        found[place] = tensor[place] if place else tensor
    return found


#: Of larger tensors, the values are read.
_MOST = 64


def _adds(scope: dict[str, Any]) -> bool:
    reduction = scope.get("ufunc") in (np.add, np.multiply) and not scope.get("passkwargs")
    return reduction and all(scope.get(key, 0) is None for key in ("axis", "dtype", "out"))


def _measures(scope: dict[str, Any]) -> bool:
    return scope.get("ord", 0) is scope.get("axis", 0) is None and scope.get("keepdims") is False


#: NumPy's functions that compute with objects, and whether a call returns one number.
_KEEPING = {
    "fromnumeric._wrapreduction": _adds,
    "linalg._linalg.norm": _measures,
}


def into_array(place: str, target: Any, advice: str) -> Exception:
    """Return the error for a function that writes into ``target``, an array or a tensor."""
    arrays = [x for x in flatten(target) if x is not None]
    if not arrays or any(isinstance(x, Operators) for x in arrays):
        return TypeError(f"{place} does not work on tensors; {advice}")
    return OnlyValues(
        lambda: (
            f"{place} writes into a NumPy array, which gradients cannot follow, while a tape, a "
            f"trace or a batch is active; {advice}, or pass .numpy() of the tensor"
        )
    )


# -- functions for the attributes ndim, shape and size ---------------------------------------------


def _as_operand(x: Any) -> Any:
    return x if isinstance(x, Operators) else np.asarray(x) if np.isscalar(x) else as_tensor(x)


def ndim(x: Any) -> int:
    """Return the number of axes of a tensor, or of a value that converts to one.

    Parameters
    ----------
    x
        A tensor, a variable, an array, nested lists or a number.

    Returns
    -------
    int
        The number of axes.

    Raises
    ------
    TraceError
        If the rank is unknown in a trace.

    Examples
    --------
    >>> gt.ndim([[1, 2], [3, 4]]), gt.ndim(3.0)
    (2, 0)
    """
    return _as_operand(x).ndim


def shape(x: Any) -> Any:
    """Return the shape of a tensor, or of a value that converts to one.

    Parameters
    ----------
    x
        A tensor, a variable, an array, nested lists or a number.

    Returns
    -------
    tuple of int
        The size of each axis, as in ``x.shape``. A size that is unknown in a trace is an expression
        that you can compute with and pass as a size.

    Raises
    ------
    TypeError
        If ``x`` does not convert to a tensor.
    TraceError
        If the rank is unknown in a trace.

    Examples
    --------
    >>> gt.shape([[1, 2, 3], [4, 5, 6]]), gt.shape(3.0)
    ((2, 3), ())
    """
    asked = _as_operand(x)
    if asked.shape is None:
        raise not_known(asked.array, "shape (its rank is unknown: give its TensorSpec a rank)")
    return asked.shape


def size(x: Any, axis: Any = None) -> int:
    """Return the number of elements of a tensor, or along some of its axes.

    Parameters
    ----------
    x
        A tensor, a variable, an array, nested lists or a number.
    axis
        The axis or axes; all by default.

    Returns
    -------
    int
        The number of elements.

    Raises
    ------
    TraceError
        If the rank is unknown in a trace.
    numpy.exceptions.AxisError
        If an axis is out of bounds.
    ValueError
        If an axis is given twice.

    Examples
    --------
    >>> gt.size(gt.ones((2, 3))), gt.size(gt.ones((2, 3)), axis=1)
    (6, 3)
    """
    x = _as_operand(x)
    if axis is None:
        return x.size
    chosen = normalize_axis_tuple(axis, x.ndim, "size")
    return prod(x.shape[i] for i in chosen)

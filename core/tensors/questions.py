"""NumPy's functions for the attributes ``ndim``, ``shape`` and ``size``."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np
from numpy.lib.array_utils import normalize_axis_tuple

from ..base.unknown import not_known
from .convert import as_tensor
from .tensor import Operators


def _asked(x: Any) -> Any:
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
    return _asked(x).ndim


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
    asked = _asked(x)
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
    x = _asked(x)
    if axis is None:
        return x.size
    chosen = normalize_axis_tuple(axis, x.ndim, "size")
    return prod(x.shape[i] for i in chosen)

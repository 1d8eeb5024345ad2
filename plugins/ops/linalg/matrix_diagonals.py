"""Diagonals and traces of the matrices in the last two axes.

``gt.diagonal`` and ``gt.trace`` take any two axes, by default the first ones.
"""

from __future__ import annotations

from typing import Any

from ....core.extend import Tensor
from ..common.op_builders import named
from ..shapes.diagonals import diagonal as diagonal_of_axes
from .determinants import trace as trace_of_axes


@named
def diagonal(x: Any, offset: int = 0) -> Tensor:
    """Return the diagonals of the matrices in the last two axes, as the last axis.

    :func:`gradtape.diagonal` takes the first two axes by default, as in NumPy.

    Parameters
    ----------
    x
        Matrices of any dtype, of shape ``(..., m, n)``.
    offset
        How far above the main diagonal, if positive; below it if negative. 0 by default.

    Returns
    -------
    Tensor
        Vectors of shape ``(..., k)`` and the dtype of ``x``; k is ``min(m, n)`` for the main
        diagonal.

    Raises
    ------
    ValueError
        If there are no two axes.

    Examples
    --------
    >>> gt.linalg.diagonal(gt.constant([[1, 2], [3, 4]])).tolist()
    [1, 4]
    """
    return diagonal_of_axes(x, offset, -2, -1)


@named
def trace(x: Any, offset: int = 0, dtype: Any = None) -> Tensor:
    """Return the sums along a diagonal of the matrices in the last two axes.

    :func:`gradtape.trace` takes the first two axes, as in NumPy.

    Parameters
    ----------
    x
        Matrices of any dtype, of shape ``(..., m, n)``.
    offset
        How far above the main diagonal, if positive; below it if negative. 0 by default.
    dtype
        The dtype to sum in; by default that of ``x``, and NumPy's for sums of small integers.

    Returns
    -------
    Tensor
        A tensor of shape ``(...)``.

    Raises
    ------
    ValueError
        If there are no two axes.

    Examples
    --------
    >>> gt.linalg.trace(gt.constant([[1, 2], [3, 4]])).item()
    5
    """
    return trace_of_axes(x, offset, -2, -1, dtype=dtype)

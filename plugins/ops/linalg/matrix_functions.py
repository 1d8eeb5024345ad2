"""Diagonals and traces, powers and exponentials of the matrices in the last two axes.

``gt.diagonal`` and ``gt.trace`` take any two axes, by default the first ones.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ....core.extend import F, Tensor, as_tensor, is_open, ops
from ..common.axes import leading
from ..common.dynamic_shapes import fixed
from ..common.op_builders import named, op
from ..shapes.diagonals import diagonal as diagonal_of_axes
from .determinants import trace as trace_of_axes
from .linear_systems import inv
from .matmul import matmul
from .matrices import adjoint, as_inexact, inexact, square_shape


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


# -- powers and exponentials -----------------------------------------------------------------------

# The coefficients of the Pade approximant of degree 13, and the norm up to which it is exact to
# double precision: Higham, "The scaling and squaring method for the matrix exponential revisited"
# (2005), table 2.3 and equation 2.3
_PADE = (
    64764752532480000.0,
    32382376266240000.0,
    7771770303897600.0,
    1187353796428800.0,
    129060195264000.0,
    10559470521600.0,
    670442572800.0,
    33522128640.0,
    1323241920.0,
    40840800.0,
    960960.0,
    16380.0,
    182.0,
    1.0,
)
_THETA = 5.371920351148152


def _expm_kernel(xp: Any, x: Any) -> Any:
    if 0 in x.shape:
        return x
    largest = float(xp.max(xp.sum(xp.abs(x), axis=-2)))
    halvings = 0
    if _THETA < largest < float("inf"):
        halvings = int(np.ceil(np.log2(largest / _THETA)))
    x = x * 2.0**-halvings
    one = xp.zeros_like(x) + xp.eye(x.shape[-1], dtype=x.dtype)
    c = [coefficient / _PADE[0] for coefficient in _PADE]  # so that they fit single precision
    x2 = x @ x
    x4 = x2 @ x2
    x6 = x4 @ x2
    odd = x6 @ (c[13] * x6 + c[11] * x4 + c[9] * x2)
    odd = x @ (odd + c[7] * x6 + c[5] * x4 + c[3] * x2 + c[1] * one)
    even = x6 @ (c[12] * x6 + c[10] * x4 + c[8] * x2)
    even = even + c[6] * x6 + c[4] * x4 + c[2] * x2 + c[0] * one
    result = xp.linalg.solve(even - odd, even + odd)
    for _ in range(halvings):
        result = result @ result
    return result


def _expm_rule(g: Any, x: Any) -> Any:
    # the derivative of exp at x in the direction g is a block of a larger exponential: Najfeld and
    # Havel, "Derivatives of the matrix exponential and their computation" (1995), theorem 4.12
    xh = adjoint(x)
    # the number of squarings, and so the error, depends on the size of the whole matrix: not on g
    size = F.stop_gradient(F.sum(F.abs(g), axis=(-2, -1), keepdims=True))
    size = F.where(F.greater(size, 0.0), size, 1.0)
    top = F.concatenate(xh, F.divide(g, size), axis=-1)
    bottom = F.concatenate(F.zeros_like(xh), xh, axis=-1)
    whole = F.expm(F.concatenate(top, bottom, axis=-2))
    upper, _ = F.split(whole, sections=2, axis=-2)
    _, block = F.split(upper, sections=2, axis=-1)
    return F.multiply(block, size)


_expm = op(
    "expm",
    _expm_kernel,
    gradients={"x": _expm_rule},
    infer=lambda x: (square_shape(x, "expm"), inexact(x.dtype)),
    batch=leading,
    doc="Return the exponentials of matrices.",
)


@named
def expm(a: Any) -> Tensor:
    """Return the exponentials of square matrices, of shape ``(..., n, n)``.

    Parameters
    ----------
    a
        Square matrices, of shape ``(..., n, n)``; integers become ``float64``.

    Returns
    -------
    Tensor
        The exponentials, of the shape of ``a``.

    Raises
    ------
    ValueError
        If the matrices are not square.

    Notes
    -----
    Computed by scaling and squaring with a Pade approximant of degree 13. The gradient is a block
    of the exponential of a matrix of twice the size.

    References
    ----------
    N. J. Higham, "The scaling and squaring method for the matrix exponential revisited", 2005;
    I. Najfeld and T. F. Havel, "Derivatives of the matrix exponential and their computation", 1995,
    theorem 4.12.

    Examples
    --------
    >>> gt.linalg.expm(gt.constant([[0.0, 1.0], [0.0, 0.0]])).tolist()
    [[1.0, 1.0], [0.0, 1.0]]
    """
    a = as_inexact(a)
    square_shape(a, "expm")
    return _expm(a)


@named
def matrix_power(a: Any, n: int) -> Tensor:
    """Return square matrices to the integer power ``n``; negative powers are those of the inverse.

    Parameters
    ----------
    a
        Matrices of shape ``(..., m, m)``.
    n
        An integer.

    Returns
    -------
    Tensor
        The powers, of the shape and dtype of ``a``; for a negative ``n``, integers become
        ``float64``.

    Raises
    ------
    TypeError
        If the power is not an integer.
    ValueError
        If the matrices are not square.
    numpy.linalg.LinAlgError
        If the power is negative and a matrix is singular.

    Examples
    --------
    >>> gt.linalg.matrix_power(gt.constant([[1, 1], [0, 1]]), 5).tolist()
    [[1, 5], [0, 1]]
    """
    try:
        power = fixed(n, "matrix_power", "the power")
    except TypeError:
        if is_open(n):
            raise
        raise TypeError(f"matrix_power: the power must be an integer, got {n!r}") from None
    a = as_tensor(a)
    square_shape(a, "matrix_power")
    if power == 0:
        return ops["tril"](ops["triu"](ops["ones_like"](a), k=0), k=0)
    if power < 0:
        a, power = inv(a), -power
    result: Any = None
    while True:  # from the lowest binary digit of the power to the highest
        if power % 2:
            result = a if result is None else matmul(result, a)
        power //= 2
        if not power:
            return result
        a = matmul(a, a)

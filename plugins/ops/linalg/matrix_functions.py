"""Triangular systems, exponentials, powers and long products of matrices."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

from ....core.extend import F, Tensor, TensorSpec, among, as_tensor, broadcast_shapes, ops
from ..common.batching import leading
from ..common.dtypes import inexact
from ..common.op_builders import named, op
from ..common.ranks import as_columns, known_rank, like_columns
from .batching import solve_rule
from .decompositions import inv
from .matrices import adjoint, floating, sizes_of_matrices, square
from .products import matmul

__all__ = ["expm", "matrix_power", "multi_dot", "solve_triangular"]


# -- triangles -------------------------------------------------------------------------------------


def _triangle_of(xp: Any, a: Any, lower: bool, unit_diagonal: bool) -> Any:
    strict = xp.tril(a, k=-1) if lower else xp.triu(a, k=1)
    if unit_diagonal:
        return strict + xp.eye(a.shape[-1], dtype=a.dtype)
    return xp.tril(a) if lower else xp.triu(a)


def _solve_triangular_vjp(
    gs: Any, inputs: Any, outputs: Any, needed: Any, *, lower: bool, unit_diagonal: bool
) -> list[Any]:
    a, b = inputs
    gb = F.solve_triangular(adjoint(a), gs[0], lower=not lower, unit_diagonal=unit_diagonal)
    ga = None
    if needed[0]:
        whole = F.unbroadcast_like(-F.matmul(gb, adjoint(outputs[0])), a)
        ga = F.tril(whole, k=-unit_diagonal) if lower else F.triu(whole, k=int(unit_diagonal))
    return [ga, F.unbroadcast_like(gb, b) if needed[1] else None]


def _solve_triangular_spec(
    a: TensorSpec, b: TensorSpec, lower: bool, unit_diagonal: bool
) -> tuple[Any, Any]:
    dtype = inexact(np.result_type(a.dtype, b.dtype))
    shape = square(a, "solve_triangular")
    batch, rows, columns = sizes_of_matrices(b, "solve_triangular")
    if shape is None or batch is None:
        return None, dtype
    if shape[-1] != rows and None not in (shape[-1], rows):
        raise ValueError(
            f"solve_triangular: matrices of shape {shape} do not fit sides of shape {b.shape}"
        )
    joined = broadcast_shapes(shape[:-2], batch, op="solve_triangular") or ()
    return (*joined, rows, columns), dtype


_solve_triangular = op(
    "solve_triangular",
    lambda xp, a, b, *, lower=False, unit_diagonal=False: xp.linalg.solve(
        _triangle_of(xp, a, lower, unit_diagonal), b
    ),
    vjp=_solve_triangular_vjp,
    infer=_solve_triangular_spec,
    batch=solve_rule,
    doc="Solve ``a @ x = b``, reading one triangle of ``a`` only.",
)


@named
def solve_triangular(a: Any, b: Any, lower: bool = False, unit_diagonal: bool = False) -> Tensor:
    """Return the solution ``x`` of ``a @ x = b`` for triangular ``a``.

    Parameters
    ----------
    a
        Square matrices ``(..., n, n)``, of which one triangle is read; integers become ``float64``.
    b
        A vector ``(n,)``, or matrices ``(..., n, k)``; batches broadcast.
    lower
        Which triangle: the lower or the upper one (the default).
    unit_diagonal
        Take the diagonal for ones, without reading it.

    Returns
    -------
    Tensor
        The solution: a vector ``(n,)`` per matrix for a vector, else matrices ``(..., n, k)``.

    Raises
    ------
    numpy.linalg.LinAlgError
        If there is a 0 on the diagonal.
    ValueError
        If ``a`` is not square, or sizes do not fit.

    Notes
    -----
    The gradient of ``a`` is that of :func:`solve`, and 0 outside the triangle that is read.

    References
    ----------
    M. B. Giles, "An extended collection of matrix derivative results for forward and reverse mode
    algorithmic differentiation", 2008.

    Examples
    --------
    >>> a, b = gt.constant([[2.0, 1.0], [0.0, 4.0]]), gt.constant([4.0, 8.0])
    >>> gt.linalg.solve_triangular(a, b).tolist()
    [1.0, 2.0]
    """
    b, settings = as_tensor(b), {"lower": bool(lower), "unit_diagonal": bool(unit_diagonal)}
    return like_columns(_solve_triangular(a, as_columns(b), **settings), b)


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
    if not x.size:
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
    top = F.concatenate(xh, g, axis=-1)
    bottom = F.concatenate(F.zeros_like(xh), xh, axis=-1)
    whole = F.expm(F.concatenate(top, bottom, axis=-2))
    upper, _ = F.split(whole, sections=2, axis=-2)
    _, block = F.split(upper, sections=2, axis=-1)
    return block


_expm = op(
    "expm",
    _expm_kernel,
    gradients={"x": _expm_rule},
    infer=lambda x: (square(x, "expm"), inexact(x.dtype)),
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
    a = floating(a)
    square(a, "expm")
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
        If the power is no integer.
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
        power = operator.index(n)
    except TypeError:
        raise TypeError(f"matrix_power: the power must be an integer, got {n!r}") from None
    a = as_tensor(a)
    square(a, "matrix_power")
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


@named
def multi_dot(arrays: Any) -> Tensor:
    """Return the product of several matrices, multiplied in the order of the least work.

    Parameters
    ----------
    arrays
        Two or more matrices; the first and the last may be vectors. Dtypes promote. Where a trace
        does not know all sizes, they are multiplied from left to right.

    Returns
    -------
    Tensor
        The product: a matrix; a vector or a number if vectors are at one end or both.

    Raises
    ------
    numpy.linalg.LinAlgError
        If one has other than 2 axes.
    ValueError
        If there are fewer than two, or sizes do not fit.

    References
    ----------
    T. H. Cormen, C. E. Leiserson, R. L. Rivest and C. Stein, "Introduction to Algorithms",
    3rd edition, 2009, section 15.2.

    Examples
    --------
    >>> gt.linalg.multi_dot([gt.ones((2, 3)), gt.ones((3, 4)), gt.ones(4)]).tolist()
    [12.0, 12.0]
    """
    matrices = among(list(arrays))
    if len(matrices) < 2:
        raise ValueError(f"multi_dot: at least two arrays are needed, got {len(matrices)}")
    for x in matrices:
        known_rank(x, "multi_dot")
    shapes: list[Any] = [x.shape for x in matrices]
    last = len(shapes) - 1
    for i, shape in enumerate(shapes):
        if shape is None or (len(shape) != 2 and not (len(shape) == 1 and i in (0, last))):
            raise np.linalg.LinAlgError(f"multi_dot: array {i} must have 2 axes, got shape {shape}")
    sizes = [1 if len(shapes[0]) == 1 else shapes[0][0]]
    sizes += [shape[0] for shape in shapes[1:]]
    sizes.append(1 if len(shapes[-1]) == 1 else shapes[-1][1])
    return _chain(matrices, _cuts(sizes), 0, len(matrices) - 1)


def _cuts(sizes: list[Any]) -> dict[tuple[int, int], int]:
    """Return where to cut each chain ``i..j``; matrix i is ``(sizes[i], sizes[i + 1])``."""
    count = len(sizes) - 1
    cuts: dict[tuple[int, int], int] = {}
    work = dict.fromkeys(((i, i) for i in range(count)), 0)
    for length in range(1, count):
        for i in range(count - length):
            j = i + length
            if None in sizes:
                cuts[i, j] = j - 1
                continue
            costs = [
                work[i, k] + work[k + 1, j] + sizes[i] * sizes[k + 1] * sizes[j + 1]
                for k in range(i, j)
            ]
            work[i, j] = min(costs)
            cuts[i, j] = i + costs.index(min(costs))
    return cuts


def _chain(matrices: list[Any], cuts: dict[tuple[int, int], int], i: int, j: int) -> Any:
    if i == j:
        return matrices[i]
    k = cuts[i, j]
    return matmul(_chain(matrices, cuts, i, k), _chain(matrices, cuts, k + 1, j))

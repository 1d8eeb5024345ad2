"""Norms of vectors and matrices, of every order that NumPy has."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import inf
from typing import Any

import numpy as np

from ....core.extend import (
    F,
    Tensor,
    current_backend,
    floats,
    functions,
    in_precision,
    kind_of,
    ops,
)
from ..common.axes import Axis, along, as_axis, reduced_axes, reduced_shape
from ..common.dynamic_shapes import empty, known_rank, never_empty
from ..common.kernels import at_hand, in_float32
from ..common.op_builders import named, op
from ..common.parameters import plain_number
from .matrices import as_inexact, real_of


@in_float32
def norm_kernel(xp: Any, x: Any, *, axis: Any = None, keepdims: bool = False) -> Any:
    """Return Euclidean norms, from scaled elements if squares over- or underflow."""
    with np.errstate(over="ignore", under="ignore"):
        total = _square_sum(xp, x, axis, keepdims)
    smallest = xp.finfo(total.dtype).smallest_normal
    usual = xp.all((total >= smallest / xp.finfo(total.dtype).eps) & (total < inf))
    if at_hand(usual, unknown=False):
        return xp.sqrt(total)
    return _scaled_norm(xp, x, axis, keepdims)


def _square_sum(xp: Any, x: Any, axis: Any, keepdims: bool) -> Any:
    squares = xp.real(x * xp.conj(x)) if kind_of(x.dtype) == "c" else x * x
    return xp.sum(squares, axis=axis, keepdims=keepdims, dtype=squares.dtype)


def _scaled_norm(xp: Any, x: Any, axis: Any, keepdims: bool) -> Any:
    """Return norms of elements scaled to at most 1; squares neither overflow nor all vanish."""
    sizes = xp.abs(x)
    if 0 in x.shape:
        return xp.sqrt(_square_sum(xp, sizes, axis, keepdims))
    top = xp.max(sizes, axis=axis, keepdims=True)
    top = xp.where((top > 0) & xp.isfinite(top), top, xp.ones_like(top))
    with np.errstate(over="ignore", under="ignore"):
        result = top * xp.sqrt(_square_sum(xp, sizes / top, axis, True))
    kept = reduced_shape(x.shape, axis, keepdims, "norm")
    return xp.reshape(result, kept)


def _norm_rule(g: Any, x: Any, out: Any, axis: Any, keepdims: bool) -> Any:
    if axis is not None and not keepdims:
        g, out = F.expand_dims(g, axis=axis), F.expand_dims(out, axis=axis)
    # where the norm is 0, so is x: dividing by 1 gives the subgradient 0 instead of nan; what is
    # divided first is at most 1, while 1 / out could overflow
    return x / F.where(F.equal(out, 0), 1.0, out) * g


_norm = op(
    "norm",
    norm_kernel,
    gradients={"x": _norm_rule},
    infer=lambda x, axis, keepdims: (
        reduced_shape(x.shape, axis, keepdims, "norm"),
        real_of(x.dtype),
    ),
    batch=along("axis"),
    doc="Return the Euclidean norm over axes.",
)


def _vector(x: Any, ord: Any, axis: Axis, keepdims: bool) -> Any:
    """Return the norm of the vectors that ``axis`` spans."""
    reduced: dict[str, Any] = {"axis": axis, "keepdims": keepdims}
    plain_number(ord, "norm", "ord", "write sum(abs(x) ** ord) ** (1 / ord)")
    if ord == 2:
        return _norm(x, **reduced)
    if ord == 0:
        return ops["sum"](
            ops["cast"](ops["not_equal"](x, 0), dtype=real_of(x.dtype).name), **reduced
        )
    sizes = ops["abs"](x)
    if ord in (inf, -inf):
        return _largest(sizes, **reduced) if ord > 0 else ops["min"](sizes, **reduced)
    if ord == 1:
        return ops["sum"](sizes, **reduced)
    try:
        order = float(ord)
    except (TypeError, ValueError):
        raise ValueError(f"norm: ord={ord!r} is not a vector norm, for shape {x.shape}") from None
    # powers of elements of about size 1 do not overflow; the unit is a constant, whatever it is
    unit = _largest(ops["stop_gradient"](sizes), axis, True, "max" if order > 0 else "min")
    usable = ops["logical_and"](unit > 0, ops["isfinite"](unit))
    unit = ops["where"](usable, unit, 1.0)
    total = ops["sum"](ops["power"](sizes / unit, order), **reduced)
    unit = ops["sum"](unit, **reduced)
    if ord < 0:
        return unit * ops["power"](total, 1.0 / order)
    # the subgradient 0 at 0, instead of nan
    nothing = ops["equal"](total, 0)
    root = ops["power"](ops["where"](nothing, 1.0, total), 1.0 / order)
    return ops["where"](nothing, 0.0, unit * root)


def _largest(sizes: Any, axis: Any, keepdims: Any, extreme: str = "max") -> Any:
    """Return the largest (or smallest) of nonnegative numbers, 0 if there are none."""
    if sizes.shape is not None:
        axes = reduced_axes(axis, len(sizes.shape), "norm")
        if empty([sizes.shape[i] for i in axes]):
            return ops["sum"](sizes, axis=axis, keepdims=keepdims)
        sizes = never_empty(sizes, axes)
    return ops[extreme](sizes, axis=axis, keepdims=keepdims)


def _without_noise(values: Any, x: Any) -> Any:
    """Return singular values, with those that are 0 up to rounding as constants.

    Their sum has a kink there, and its gradient is the smallest of all subgradients. Rounded values
    would give some other subgradient, and second derivatives of the size of their reciprocals.
    """
    if empty(values.shape):
        return values
    fixed = ops["stop_gradient"](values)
    sizes = [ops["size_over"](ops["real"](x), axis=axis) for axis in (-2, -1)]
    noise = _largest(fixed, -1, True) * float(np.finfo(values.dtype).eps)
    return ops["where"](fixed > noise * ops["maximum"](*sizes), values, fixed)


def _matrix(x: Any, ord: Any, axes: tuple[int, int], keepdims: bool) -> Any:
    """Return the norm of the matrices in two axes."""
    if ord in (None, "fro"):
        return _norm(x, axis=axes, keepdims=keepdims)
    rows, columns = axes if x.shape is None else reduced_axes(axes, len(x.shape), "norm")
    if ord in (1, -1, inf, -inf):
        inner, outer = (rows, columns) if abs(ord) == 1 else (columns, rows)
        totals = ops["sum"](ops["abs"](x), axis=inner, keepdims=True)
        extreme = _largest if ord > 0 else ops["min"]
        result = extreme(totals, axis=outer, keepdims=True)
        return result if keepdims else ops["squeeze"](result, axis=axes)
    if ord not in (2, -2, "nuc"):
        raise ValueError(
            f"norm: ord={ord!r} is not a norm of matrices, of shape {x.shape}; "
            "it must be 'fro', 'nuc', 1, -1, 2, -2, inf or -inf"
        )
    moved = ops["moveaxis"](x, source=(rows, columns), destination=(-2, -1))
    values = ops["svdvals"](moved)
    if ord == "nuc":
        values = _without_noise(values, moved)
    over: dict[Any, Any] = {2: _largest, -2: ops["min"], "nuc": ops["sum"]}
    result = over[ord](values, axis=-1, keepdims=False)
    return ops["expand_dims"](result, axis=axes) if keepdims else result


@named
def norm(x: Any, ord: Any = None, axis: Any = None, keepdims: bool = False) -> Tensor:
    """Return a norm.

    Parameters
    ----------
    x
        A tensor of any shape; integers become ``float64``.
    ord
        ``None`` or ``"euclidean"``: the root of the sum of squares.

        For vectors: a number p, ``sum(abs(x)**p) ** (1/p)``; ``inf`` and ``-inf``, the largest and
        smallest absolute value; 0, the number of nonzero elements.

        For matrices (two axes, or a matrix without ``axis``): ``"fro"``, the root of the sum of
        squares; ``"nuc"``, the sum of the singular values; 2 and -2, the largest and smallest
        singular value; 1 and -1, the largest and smallest column sum; ``inf`` and ``-inf``, the
        largest and smallest row sum.
    axis
        An axis, or a pair of axes for matrices; all by default.
    keepdims
        Keep the axes with size 1.

    Returns
    -------
    Tensor
        Real numbers of at least 0, without the axes (or with size 1 there).

    Raises
    ------
    ValueError
        If there is no such norm for these axes.
    GradientError
        If a derivative with respect to ``ord`` is requested.

    Notes
    -----
    The gradient at 0 is 0, a subgradient, for the Euclidean and all other p-norms. Equal singular
    values share the gradient of the largest or smallest.

    Examples
    --------
    >>> gt.linalg.norm(gt.constant([3.0, 4.0])).item()
    5.0
    >>> gt.linalg.norm(gt.constant([[1.0, -2.0], [3.0, 4.0]]), ord=1).item()
    6.0
    """
    x, keepdims = as_inexact(x), bool(keepdims)
    axis = as_axis(axis, "norm")
    if axis is not None and x.shape is not None:
        reduced_axes(axis, len(x.shape), "norm")
    if ord is None or ord == "euclidean":
        return _norm(x, axis=axis, keepdims=keepdims)
    if axis is None:
        axes = tuple(range(known_rank(x, "norm")))
    else:
        axes = axis if isinstance(axis, tuple) else (axis,)
    if len(axes) == 1 and not isinstance(ord, str):
        return _vector(x, ord, axes[0], keepdims)
    if len(axes) == 2:
        return _matrix(x, ord, axes, keepdims)
    raise ValueError(f"norm: ord={ord!r} is not a norm over axes {axis} of shape {x.shape}")


@named
def vector_norm(x: Any, axis: Any = None, keepdims: bool = False, ord: Any = 2) -> Tensor:
    """Return the norm of the vectors that one or more axes span.

    Parameters
    ----------
    x
        A tensor of any shape; integers become ``float64``.
    axis
        One axis or several; all by default.
    keepdims
        Keep the axes with size 1.
    ord
        A number, as for :func:`norm`; 2 by default.

    Returns
    -------
    Tensor
        Real numbers of at least 0, without the axes (or with size 1 there).

    Raises
    ------
    ValueError
        If ``ord`` is not a number.
    GradientError
        If a derivative with respect to ``ord`` is requested.

    Examples
    --------
    >>> gt.linalg.vector_norm(gt.constant([[3.0, 4.0], [0.0, 2.0]]), axis=1).tolist()
    [5.0, 2.0]
    """
    if isinstance(ord, str):
        raise ValueError(f"vector_norm: ord must be a number, got {ord!r}")
    return _vector(as_inexact(x), ord, as_axis(axis, "vector_norm"), bool(keepdims))


@named
def matrix_norm(x: Any, keepdims: bool = False, ord: Any = "fro") -> Tensor:
    """Return the norm of the matrices in the last two axes.

    Parameters
    ----------
    x
        A tensor of at least two axes; integers become ``float64``.
    keepdims
        Keep the two axes with size 1.
    ord
        As for :func:`norm`; ``"fro"`` by default.

    Returns
    -------
    Tensor
        Real numbers of at least 0, of shape ``(...)`` for matrices ``(..., m, n)``.

    Raises
    ------
    ValueError
        If there is no such norm of matrices.
    numpy.exceptions.AxisError
        If ``x`` has fewer than two axes.

    Examples
    --------
    >>> gt.linalg.matrix_norm(gt.constant([[3.0, 0.0], [0.0, 4.0]])).item()
    5.0
    """
    return _matrix(as_inexact(x), ord, (-2, -1), bool(keepdims))


@named
def cond(x: Any, p: Any = None) -> Tensor:
    """Return the condition number of matrices: how much a linear system magnifies relative errors.

    Parameters
    ----------
    x
        Matrices, ``(..., m, n)``; they must be square unless ``p`` is ``None``, 2 or -2. Integers
        become ``float64``.
    p
        The norm, as ``ord`` for :func:`norm`; ``None`` is 2. The largest singular value is divided
        by the smallest, or a matrix's norm is multiplied by its inverse's.

    Returns
    -------
    Tensor
        Real numbers, of shape ``(...)``; infinite for singular matrices.

    Raises
    ------
    numpy.linalg.LinAlgError
        If there are no two axes, or no elements. For other norms, if a matrix is not square.
    ValueError
        If there is no such norm of matrices.

    References
    ----------
    G. H. Golub and C. F. Van Loan, "Matrix Computations", 4th edition, 2013, section 2.6.2.

    Examples
    --------
    >>> gt.linalg.cond(gt.constant([[2.0, 0.0], [0.0, 4.0]])).item()
    2.0
    """
    x = as_inexact(x)
    if x.shape is not None and (len(x.shape) < 2 or empty(x.shape[-2:])):
        raise np.linalg.LinAlgError(f"cond: matrices with elements are needed, got {x.shape}")
    if p in (None, 2, -2):
        s = ops["svdvals"](x)
        large, small = s[..., 0], s[..., -1]
        zero = large == 0
        large, small = (
            (small, ops["where"](zero, 1.0, large))
            if p == -2
            else (large, ops["where"](zero, 1.0, small))
        )
        found = ops["where"](zero, np.inf, large / small)
    else:
        # the identity replaces matrices that have no inverse
        singular = ops["slogdet"](ops["stop_gradient"](x))[0] == 0
        identity = ops["diag"](ops["zeros_like"](x[..., 0]) + 1, k=0)
        regular = ops["where"](ops["expand_dims"](singular, axis=(-2, -1)), identity, x)
        found = matrix_norm(regular, ord=p) * matrix_norm(ops["inv"](regular), ord=p)
        found = ops["where"](singular, np.inf, found)
    known = ops["logical_not"](ops["any"](ops["isnan"](x), axis=(-2, -1)))
    return ops["where"](ops["logical_and"](ops["isnan"](found), known), np.inf, found)


@named
def clip_by_norm(t: Any, clip_norm: Any, axes: Any = None) -> Tensor:
    """Return ``t`` scaled down, if needed, to a Euclidean norm of at most ``clip_norm``.

    Parameters
    ----------
    t
        A floating tensor of any shape.
    clip_norm
        The maximum norm, above 0: a number or a tensor that broadcasts.
    axes
        The axes over which a norm is taken; all by default.

    Returns
    -------
    A tensor of the shape and dtype of ``t``.

    Raises
    ------
    TypeError
        If ``t`` is not a tensor, an array or a number, or ``axes`` are not integers.
    ValueError
        If the shapes do not broadcast, or an axis is repeated.

    Notes
    -----
    ``t / (max(norm(t), clip_norm) / clip_norm)``, as in TensorFlow, also if the norm is beyond the
    range of the dtype. The gradient at 0 is 1.

    References
    ----------
    Pascanu, Mikolov and Bengio, "On the difficulty of training recurrent neural networks", 2013.

    Examples
    --------
    >>> gt.clip_by_norm([3.0, 4.0], 2.5).tolist()
    [1.5, 2.0]
    """
    (t,), axis = floats(t), as_axis(axes, "clip_by_norm")

    def norm_of(tensors: list[Tensor]) -> Tensor:
        return ops["norm"](tensors[0], axis=axis, keepdims=True)

    return clip_norms([t], clip_norm, norm_of)[0][0]


#: Divisors that bring the largest numbers of a dtype, and their squares, well into its range.
_UNITS = {"float32": 2.0**100, "float64": 2.0**900}


def clip_norms(
    tensors: Sequence[Tensor], clip_norm: Any, norm_of: Callable[[list[Tensor]], Tensor]
) -> tuple[list[Tensor], Tensor]:
    """Return tensors, scaled down to a norm of at most ``clip_norm``, and their norm.

    Parameters
    ----------
    tensors
        The tensors.
    clip_norm
        The maximum norm.
    norm_of
        A function that returns the norm of a list of such tensors, all scaled by one number.
    """
    wide = [in_precision(t, "float32") for t in tensors]
    size = norm_of(wide)

    def clip(unit: Any = None) -> list[Tensor]:
        """Return the tensors, with norms in a unit of which they do not exceed the range."""
        divided, norm, least = wide, size, clip_norm
        if unit is not None:
            divided = [ops["divide"](t, unit) for t in wide]
            norm, least = norm_of(divided), ops["divide"](clip_norm, unit)
        # exactly t / 1 inside; a factor below 1 would underflow before its inverse overflows
        ratio = ops["divide"](ops["maximum"](norm, least), clip_norm)
        short = [ops["divide"](t, ratio) for t in divided]
        pairs = zip(short, tensors, strict=True)
        return [y.astype(x.dtype) if x.dtype.kind in "fc" else y for y, x in pairs]

    def clip_large() -> list[Tensor]:
        """Clip where a norm overflows: dividing by infinity would give zeros."""
        full_like = functions["full_like"]
        unit = _UNITS.get(size.dtype.name, 1.0)
        return clip(ops["where"](fits, full_like(size, 1.0), full_like(size, unit)))

    if isinstance(size.array, (np.ndarray, np.generic)):
        fits = np.isfinite(size.array)
        return clip() if fits.all() else clip_large(), size
    fits = ops["isfinite"](size)
    if not getattr(size.array, "traced", False) or current_backend().waits:
        return clip_large(), size  # on a device, without reading whether they fit
    found = functions["cond"](ops["all"](fits), lambda: tuple(clip()), lambda: tuple(clip_large()))
    return list(found), size

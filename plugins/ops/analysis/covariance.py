"""Weighted means and covariances, made of other ops."""

from __future__ import annotations

from typing import Any

import numpy as np

from ....core.extend import (
    Tensor,
    as_dtype,
    as_tensor,
    is_open,
    is_transformed,
    on_device_of,
    ops,
    same_size,
    shapes_differ,
    sizes_differ,
)
from ..common.axes import as_axis, reduced_axes
from ..common.dynamic_shapes import ensured_alike, known_rank, with_axes
from ..common.kernels import as_floating, real_of
from ..common.op_builders import named
from ..linalg.matmul import matmul


@named
def average(
    x: Any, axis: Any = None, weights: Any = None, returned: bool = False, keepdims: bool = False
) -> Any:
    """Return the weighted mean.

    Parameters
    ----------
    axis
        The axis or axes to average over; all by default.
    weights
        Weights of the shape of ``x``, or of its sizes along ``axis``; without them, as
        :func:`gradtape.mean`. Gradients reach them.
    returned
        Return the sum of the weights too.

    Returns
    -------
    A tensor of the shape of ``x`` without the axes, of the promoted dtype; ``float64`` for
    integers. With ``returned``, a pair of it and the sums of the weights, of the same shape.

    Raises
    ------
    TypeError
        If the weights have a different shape than ``x``, and no axis is given.
    ValueError
        If their shape is not that of ``x`` along ``axis``, or an axis is given twice.
    ZeroDivisionError
        If weights sum to 0.

    Notes
    -----
    The mean is ``sum(weights * x) / sum(weights)``. A trace does not know the sum of the weights:
    if it is 0, the result is infinite or nan.

    Examples
    --------
    >>> gt.average(gt.constant([1.0, 3.0]), weights=gt.constant([1.0, 3.0])).item()
    2.5
    """
    x = as_tensor(x)
    along = as_axis(axis, "average")
    if weights is None:
        mean = ops["mean"](x, axis=along, keepdims=keepdims)
        count = ops["size_over"](as_floating(x), axis=along)
        return (mean, ops["broadcast_like"](count, mean)) if returned else mean
    x, weights = as_floating(x), _fitted_weights(on_device_of(weights, x), x, along)
    total = ops["sum"](weights, axis=along, keepdims=keepdims)
    if not is_transformed(total.array) and (total == 0).any():
        raise ZeroDivisionError("average: weights sum to 0, so they cannot be normalised")
    mean = ops["sum"](x * weights, axis=along, keepdims=keepdims) / total
    return (mean, ops["broadcast_like"](total, mean)) if returned else mean


def _fitted_weights(weights: Any, x: Any, axis: Any) -> Any:
    if axis is None and None in (x.shape, weights.shape):
        return weights
    known_rank(x, "average")
    known_rank(weights, "average")
    if not shapes_differ(weights.shape, x.shape):
        words = f"average: weights of shape {weights.shape} do not fit shape {x.shape}"
        return ensured_alike(weights, x.shape, words)
    if axis is None:
        raise TypeError(
            f"average: weights of shape {weights.shape} for shape {x.shape} need an axis"
        )
    axes = reduced_axes(axis, x.ndim, "average")
    want = tuple(x.shape[i] for i in axes)
    words = f"average: weights of shape {weights.shape} do not fit axis {axis} of shape {x.shape}"
    weights = ensured_alike(weights, want, words)
    order = tuple(sorted(range(len(axes)), key=lambda i: axes[i]))
    others = tuple(i for i in range(x.ndim) if i not in axes)
    return ops["expand_dims"](ops["transpose"](weights, axes=order), axis=others)


@named
def cov(
    m: Any,
    y: Any = None,
    rowvar: bool = True,
    bias: bool = False,
    ddof: int | None = None,
    fweights: Any = None,
    aweights: Any = None,
    *,
    dtype: Any = None,
) -> Tensor:
    """Return the covariance matrix of variables.

    Parameters
    ----------
    m
        Observations: a row per variable, or a vector for a single one.
    y
        More variables, of the same form.
    rowvar
        Whether variables are rows (otherwise columns).
    bias
        Divide by n instead of n - 1.
    ddof
        Divide by ``n - ddof``, regardless of ``bias``.
    fweights
        How often each observation counts: a vector of integers.
    aweights
        The weight of each observation: a vector. Gradients reach it.
    dtype
        The dtype of the computation and the result.

    Returns
    -------
    A matrix, ``float64`` or ``complex128`` by default. For a single variable, its variance, without
    axes.

    Raises
    ------
    ValueError
        If ``m`` or ``y`` has more than two axes, they have different numbers of observations, a
        weight is negative, or ``ddof`` is not an integer.
    RuntimeError
        If there are not as many weights as observations, or they have several axes.
    TypeError
        If ``fweights`` are not integers.
    ZeroDivisionError
        If weights sum to 0.

    Notes
    -----
    With weights ``w = fweights * aweights`` the sum of squares is divided by
    ``sum(w) - ddof * sum(w * aweights) / sum(w)``, as in NumPy. If that is not above 0, the result
    is infinite or nan.

    Examples
    --------
    >>> gt.cov(gt.constant([[1.0, 2.0, 3.0], [2.0, 4.0, 6.0]])).tolist()
    [[1.0, 2.0], [2.0, 4.0]]
    """
    if ddof is None:
        ddof = 0 if bias else 1
    if not is_open(ddof) and ddof != int(ddof):
        raise ValueError(f"cov: ddof must be an integer, got {ddof!r}")
    m = _at_most_two_axes(m, "m")
    y = None if y is None else _at_most_two_axes(y, "y")
    if dtype is None:  # double precision, as for NumPy, whatever that of m
        wide = np.result_type(np.float64, m.dtype, *([] if y is None else [y.dtype]))
    else:
        wide = _floating(dtype, m, y)
    x = _rows(m, wide, turned=not rowvar)
    if x.shape is not None and same_size(x.shape[0], 0):
        return on_device_of(np.zeros((0, 0)), x)
    if y is not None:
        # NumPy leaves one row as it is
        rows = _rows(y, wide, turned=False)
        if not rowvar and not (rows.shape is not None and rows.shape[0] == 1):
            rows = _rows(y, wide, turned=True)
        x = ops["concatenate"](x, rows, axis=0)
    weights = _observation_weights(x, fweights, aweights)
    if weights is None:
        centred = other = x - ops["mean"](x, axis=1, keepdims=True)
        freedom = ops["size_over"](_real(x), axis=1) - ddof
    else:
        total = ops["sum"](weights, axis=None)
        if not is_transformed(total.array) and (total == 0).any():
            raise ZeroDivisionError("cov: weights sum to 0, so they cannot be normalised")
        centred = x - ops["sum"](x * weights, axis=1, keepdims=True) / total
        other = centred * weights
        freedom = total - ddof
        if aweights is not None and ddof:
            both = weights * ops["cast_like"](on_device_of(aweights, weights), weights)
            squares = ops["sum"](both, axis=None)
            freedom = total - ddof * squares / total
    # of no degrees of freedom the variance is infinite, or nan
    scale = ops["cast_like"](1.0 / ops["maximum"](freedom, 0.0), _real(x))
    result = matmul(centred, ops["conj"](ops["transpose"](other, axes=None))) * scale
    return ops["squeeze"](result, axis=None)


def _floating(dtype: Any, *given: Any) -> Any:
    """Return the floating dtype to compute in, which holds all arguments."""
    wide = as_dtype(dtype)
    if wide.kind not in "fc":
        raise TypeError(f"cov: dtype must be floating, got {wide}")
    if wide.kind == "f" and any(x is not None and x.dtype.kind == "c" for x in given):
        raise TypeError(f"cov: complex numbers cannot become {wide}; take the real parts first")
    return wide


def _real(x: Any) -> Any:
    return ops["real"](x) if x.dtype.kind == "c" else x


def _observation_weights(x: Any, fweights: Any, aweights: Any) -> Any:
    """Return one real weight for each column of ``x``, None if there are no weights."""
    found = None
    for name, given in (("fweights", fweights), ("aweights", aweights)):
        if given is None:
            continue
        weights = on_device_of(given, _real(x), weak=name == "aweights")
        if weights.dtype.kind == "c":
            raise TypeError(f"cov: {name} must be real, got dtype {weights.dtype}")
        _check_size(x, weights, name)
        if not is_transformed(weights.array):
            if name == "fweights" and not bool((weights == ops["round"](weights)).all()):
                raise TypeError("cov: fweights must be integers")
            if bool((weights < 0).any()):
                raise ValueError(f"cov: {name} must not be negative")
        weights = ops["cast"](weights, dtype=real_of(x.dtype).name)
        found = weights if found is None else found * weights
    return found


def _check_size(x: Any, weights: Any, name: str) -> None:
    shape = weights.shape
    if shape is None or len(shape) == 1:
        count = None if x.shape is None else x.shape[1]
        if shape is not None and sizes_differ(shape[0], count):
            raise RuntimeError(f"cov: {count} observations need as many {name}, got shape {shape}")
        return
    error = RuntimeError if shape else IndexError  # as in NumPy
    raise error(f"cov: {name} must be a vector, got shape {shape}")


def _at_most_two_axes(x: Any, name: str) -> Any:
    x = as_tensor(x)
    if x.shape is not None and len(x.shape) > 2:
        raise ValueError(f"cov: {name} has more than two axes, of shape {x.shape}")
    return x


def _rows(x: Any, dtype: Any, turned: bool) -> Any:
    """Return variables as rows; a vector is one row, even if variables are columns."""
    x = x if x.dtype == dtype else ops["cast"](x, dtype=dtype.name)
    if turned and known_rank(x, "cov") == 2:
        return ops["transpose"](x, axes=None)
    return with_axes(x, ((0, 1), (0,)))


@named
def corrcoef(x: Any, y: Any = None, rowvar: bool = True, *, dtype: Any = None) -> Tensor:
    """Return the matrix of the correlation coefficients of variables.

    Parameters
    ----------
    x
        Observations: a row per variable, or a vector of one.
    y
        More variables, of the same form.
    rowvar
        Whether variables are rows (else columns).
    dtype
        The dtype of the result, in which it is computed.

    Returns
    -------
    A matrix, ``float64`` or ``complex128`` by default. For a single variable, a tensor without
    axes.

    Raises
    ------
    ValueError
        If ``x`` or ``y`` has more than two axes, or they have different numbers of observations.

    Notes
    -----
    The coefficients are ``c[i, j] / sqrt(c[i, i] * c[j, j])`` for ``c = cov(x, y)``; nan for a
    constant variable.

    Examples
    --------
    >>> gt.corrcoef(gt.constant([[1.0, 2.0, 3.0], [3.0, 2.0, 1.0]])).numpy().round(4).tolist()
    [[1.0, -1.0], [-1.0, 1.0]]
    """
    known_rank(as_tensor(x), "corrcoef")
    c = cov(x, y, rowvar, dtype=dtype)
    if c.shape == ():
        return c / c
    scale = ops["sqrt"](ops["real"](ops["diagonal"](c, offset=0)))
    found = c / ops["expand_dims"](scale, axis=1) / scale
    if found.dtype.kind == "c":
        real, imag = (ops["clip"](ops[part](found), -1.0, 1.0) for part in ("real", "imag"))
        return real + imag * 1j
    return ops["clip"](found, -1.0, 1.0)  # rounding may exceed these

"""Convolution and correlation of vectors, and window functions for filters and spectra."""

from __future__ import annotations

from typing import Any

import numpy as np

from ....core.extend import (
    F,
    Op,
    Operators,
    Tensor,
    as_operands,
    as_size,
    as_tensor,
    default_dtype,
    is_open,
    largest,
    on_device_of,
    ops,
    rank_of,
    smallest,
)
from ..common.axes import with_examples
from ..common.dynamic_shapes import as_vector, empty, known_rank, table
from ..common.op_builders import named, op
from ..elementwise.special import i0
from ..shapes.creation import number_dtype

MODES = ("full", "same", "valid")


def _length(x: Any, v: Any, whole: bool) -> Any:
    """Return the length of a convolution: the whole, or the part where ``v`` lies within ``x``."""
    for shape in (x, v):
        if shape is not None and len(shape) != 1:
            raise ValueError(f"convolve: vectors are needed, got shapes {x} and {v}")
    if x is None or v is None:
        return None
    (n,), (k,) = x, v
    if empty((n, k)):
        raise ValueError(f"convolve: vectors without elements, got shapes {x} and {v}")
    if n is None or k is None:
        return None
    if not whole and (n < k) is True:
        raise ValueError(f"convolve: the longer vector comes first, got shapes {x} and {v}")
    return n + k - 1 if whole else n - k + 1


def _convolve_kernel(xp: Any, x: Any, v: Any, *, whole: bool = True) -> Any:
    _length(x.shape, v.shape, whole)
    own = getattr(xp, "convolve", None)
    if own is not None:
        return own(x, v, "full" if whole else "valid")
    # the standard has none: sum the shifted products, the shorter one element by element
    if x.shape[0] < v.shape[0]:
        x, v = v, x
    size, taps = x.shape[0], v.shape[0]
    total: Any = 0
    for i in range(taps):
        if whole:  # padded later: 0 times what is not finite would be NaN
            product = x * v[i]
            around = [xp.zeros(n, dtype=product.dtype) for n in (i, taps - 1 - i)]
            product = xp.concat([around[0], product, around[1]])
        else:
            product = x[taps - 1 - i : size - i] * v[i]
        total = total + product
    return total


def _turned(x: Any) -> Any:
    return F.flip(x, axis=0)


def _x_rule(g: Any, v: Any, x_like: Any, whole: bool) -> Any:
    gx = F.convolve(g, _turned(v), whole=not whole)
    return F.cast_like(gx, x_like)


def _v_rule(g: Any, x: Any, v_like: Any, whole: bool) -> Any:
    # v lies within g if that is whole; else g within x, from the other end
    gv = F.convolve(g, _turned(x), whole=False) if whole else F.convolve(_turned(x), g, whole=False)
    return F.cast_like(gv, v_like)


@with_examples
def convolve_rule(op: Op, xs: list[Any], batched: list[bool], params: dict[str, Any]) -> Any:
    """Batching rule of ``convolve``: a convolution of one-row images."""
    (x, v), (bx, bv) = xs, batched
    rank_of(x, op)
    rank_of(v, op)
    taps = v.shape[-1]
    v = F.flip(v, axis=-1)
    around = taps - 1 if params["whole"] else 0
    groups = 1
    if bx and bv:
        groups = x.shape[0]
        x, v = (F.swapaxes(part, axis1=0, axis2=1) for part in (x, v))
        x, v = F.expand_dims(x, axis=0), F.expand_dims(v, axis=1)
    elif bx:
        x, v = F.expand_dims(x, axis=2), F.expand_dims(v, axis=(1, 2))
    else:
        x, v = F.expand_dims(x, axis=(0, 2)), F.expand_dims(F.swapaxes(v, axis1=0, axis2=1), axis=1)
    result = F.conv(x, v, strides=(1,), padding=((around, around),), dilations=(1,), groups=groups)
    if bv:
        return F.swapaxes(F.squeeze(result, axis=0), axis1=0, axis2=1)
    return F.squeeze(result, axis=2)


_convolve = op(
    "convolve",
    _convolve_kernel,
    gradients={"x": _x_rule, "v": _v_rule},
    infer=lambda x, v, whole: (
        (_length(x.shape, v.shape, whole),),
        np.result_type(x.dtype, v.dtype),
    ),
    holomorphic=True,
    batch=convolve_rule,
    jvp="multilinear",
    doc="Convolve two vectors: fully, or only where ``v`` lies within ``x``, the longer one.",
)


def as_vectors(x: Any, v: Any) -> tuple[Any, Any]:
    first, other = as_operands((x, v))
    found = as_vector(first), as_vector(on_device_of(other, first))
    dtype = np.result_type(*(y.dtype for y in found))
    if dtype.kind == "c":  # the ops multiply real by complex numbers as they are
        return found
    first, second = (y if y.dtype == dtype else ops["cast"](y, dtype=dtype.name) for y in found)
    return first, second


def vector_size(x: Any, name: str) -> Any:
    """Return the size of a vector, which must have elements."""
    if x.shape is not None and len(x.shape) != 1:
        raise ValueError(f"{name}: vectors are needed, got shape {x.shape}")
    known_rank(x, name)
    (size,) = x.shape
    if empty(x.shape):
        raise ValueError(f"{name}: a vector without elements, got shape {x.shape}")
    return size


def convolved(x: Any, v: Any, mode: str, name: str) -> Any:
    if mode not in MODES:
        raise ValueError(f"{name}: mode must be one of {MODES}, got {mode!r}")
    if mode == "full":
        return _convolve(x, v, whole=True)
    n, k = vector_size(x, name), vector_size(v, name)
    if mode == "valid" and not is_open(n >= k):
        return _convolve(x, v, whole=False) if n >= k else _convolve(v, x, whole=False)
    few, many = smallest(n, k), largest(n, k)
    if mode == "valid":  # a trace does not know which vector is the longer one
        return _convolve(x, v, whole=True)[few - 1 : many]
    start = (few - 1) // 2
    return _of_size(_convolve(x, v, whole=True)[start : start + many], many)


def _of_size(x: Any, size: Any) -> Any:
    """Return a vector of a size that a trace cannot prove."""
    return ops["reshape"](x, shape=(size,)) if is_open(size) else x


@named
def convolve(a: Any, v: Any, mode: str = "full") -> Tensor:
    """Return the convolution of two vectors, ``y[k] = sum(a[i] * v[k - i])``.

    Parameters
    ----------
    a, v
        Vectors of shapes ``(n,)`` and ``(k,)``, of any numeric dtypes.
    mode
        ``"full"``: every element, ``n + k - 1`` of them. ``"same"``: the middle ones, as many as
        the longer vector has. ``"valid"``: those where the vectors overlap completely.

    Returns
    -------
    A vector of the promoted dtype.

    Raises
    ------
    ValueError
        If they are not vectors, have no elements, or the mode is another word.

    Notes
    -----
    The sum is direct, with ``n * k`` products. For long vectors, multiply the results of
    :func:`gradtape.fft.rfft`.

    Examples
    --------
    >>> gt.convolve(gt.constant([1.0, 2.0, 3.0]), gt.constant([1.0, 1.0])).tolist()
    [1.0, 3.0, 5.0, 3.0]
    >>> gt.convolve(gt.constant([1.0, 2.0, 3.0]), gt.constant([1.0, 1.0]), mode="valid").tolist()
    [3.0, 5.0]
    """
    return convolved(*as_vectors(a, v), mode, "convolve")


@named
def correlate(a: Any, v: Any, mode: str = "valid") -> Tensor:
    """Return the correlation of two vectors, ``y[k] = sum(a[i + k] * conj(v[i]))``.

    Parameters
    ----------
    a, v
        Vectors of shapes ``(n,)`` and ``(k,)``, of any numeric dtypes.
    mode
        ``"valid"`` (the default), ``"same"`` or ``"full"``; see :func:`convolve`.

    Returns
    -------
    A vector of the dtypes' promotion.

    Raises
    ------
    ValueError
        If they are not vectors, have no elements, or the mode is another word.

    Examples
    --------
    >>> gt.correlate(gt.constant([1.0, 2.0, 3.0]), gt.constant([0.0, 1.0])).tolist()
    [2.0, 3.0]
    """
    x, w = as_vectors(a, v)
    w = ops["flip"](ops["conj"](w) if w.dtype.kind == "c" else w, axis=0)
    if mode == "same":
        n, k = vector_size(x, "correlate"), vector_size(w, "correlate")
        start = smallest((k - 1) // 2, n // 2)  # in the middle of the longer one
        whole = convolved(x, w, "full", "correlate")
        return _of_size(whole[start : start + largest(n, k)], largest(n, k))
    return convolved(x, w, mode, "correlate")


# -- window functions, which taper off towards both ends -------------------------------------------


def _made(window: str, M: Any, *shape: Any, dtype: Any) -> Tensor:
    return table(window, as_size(M, window), *shape, dtype=number_dtype(dtype))


@named
def bartlett(M: int, dtype: Any = None) -> Tensor:
    """Return the Bartlett window: a triangle, 0 at both ends.

    Parameters
    ----------
    M
        The number of points; below 1 there are none.

    Returns
    -------
    A vector of ``M`` weights, 1 in the middle if ``M`` is odd.

    Examples
    --------
    >>> gt.bartlett(5).tolist()
    [0.0, 0.5, 1.0, 0.5, 0.0]
    """
    return _made("bartlett", M, dtype=dtype)


@named
def blackman(M: int, dtype: Any = None) -> Tensor:
    """Return the Blackman window: three terms of a cosine series, close to 0 at both ends.

    Parameters
    ----------
    M
        The number of points; there are none below 1.

    Returns
    -------
    A vector of ``M`` weights, 1 in the middle if ``M`` is odd.

    Examples
    --------
    >>> [round(w, 2) for w in gt.blackman(5).tolist()]
    [-0.0, 0.34, 1.0, 0.34, -0.0]
    """
    return _made("blackman", M, dtype=dtype)


@named
def hamming(M: int, dtype: Any = None) -> Tensor:
    """Return the Hamming window: a raised cosine, 0.08 at both ends.

    Parameters
    ----------
    M
        The number of points; there are none below 1.

    Returns
    -------
    A vector of ``M`` weights, 1 in the middle if ``M`` is odd.

    Examples
    --------
    >>> [round(w, 2) for w in gt.hamming(5).tolist()]
    [0.08, 0.54, 1.0, 0.54, 0.08]
    """
    return _made("hamming", M, dtype=dtype)


@named
def hanning(M: int, dtype: Any = None) -> Tensor:
    """Return the Hann window: a raised cosine, 0 at both ends.

    Parameters
    ----------
    M
        The number of points; there are none below 1.

    Returns
    -------
    A vector of ``M`` weights, 1 in the middle if ``M`` is odd.

    Examples
    --------
    >>> gt.hanning(5).tolist()
    [0.0, 0.5, 1.0, 0.5, 0.0]
    """
    return _made("hanning", M, dtype=dtype)


@named
def kaiser(M: int, beta: Any, dtype: Any = None) -> Tensor:
    """Return the Kaiser window, a ratio of Bessel functions.

    Parameters
    ----------
    M
        The number of points; there are none below 1.
    beta
        The shape parameter, one number: 0 gives a rectangle, 5 is like :func:`hamming`, 8.6 like
        :func:`blackman`. Gradients reach a tensor.
    dtype
        The result's dtype; by default the default dtype, or that of a floating tensor ``beta``.

    Returns
    -------
    A vector of ``M`` weights, 1 in the middle if ``M`` is odd.

    Raises
    ------
    ValueError
        If ``beta`` is not one number.

    Examples
    --------
    >>> [round(w, 3) for w in gt.kaiser(3, 5.0).tolist()]
    [0.037, 1.0, 0.037]
    """
    given, beta = beta, as_tensor(beta)
    if beta.shape not in ((), None):
        raise ValueError(f"kaiser: beta must be one number, got shape {beta.shape}")
    if not isinstance(given, Operators):
        return _made("kaiser", M, given, dtype=dtype)
    if beta.dtype.kind != "f":
        beta = ops["cast"](beta, dtype=default_dtype().name)
    bend = table("half_circle", as_size(M, "kaiser"), dtype=beta.dtype, like=beta)
    window = i0(beta * bend) / i0(beta)
    return window if dtype is None else window.astype(dtype)

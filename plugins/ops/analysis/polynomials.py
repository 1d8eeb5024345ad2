"""Convolution of vectors, and polynomials by their coefficients, highest power first."""

from __future__ import annotations

import operator
from math import prod
from typing import Any

import numpy as np

from ....core.errors import TraceError
from ....core.extend import F, Op, Tensor, among, as_tensor, beside, is_transformed, ops
from ..common.families import named, op
from ..shapes.joining import unstack
from ..shapes.padding import pad

__all__ = [
    "convolve",
    "correlate",
    "polyadd",
    "polyder",
    "polydiv",
    "polyint",
    "polymul",
    "polysub",
    "polyval",
    "vander",
]


def convolve_rule(op: Op, xs: list[Any], batched: list[bool], params: dict[str, Any]) -> Any:
    """Batching rule of ``convolve``: a convolution of images of one line."""
    (x, v), (bx, bv) = xs, batched
    taps = (v.shape or (None,))[-1]
    if taps is None:
        raise TraceError("convolve: vmap needs to know the sizes of the vectors")
    v = F.flip(v, axis=-1)
    around = taps - 1 if params["whole"] else 0
    groups = 1
    if bx and bv:
        groups = x.shape[0]
        if not groups:  # unknown, or none at all
            return _shifted_products(x, v, taps, around)
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


def _shifted_products(x: Any, v: Any, taps: int, around: int) -> Any:
    """Return the convolutions of the rows of two matrices, tap by tap."""
    x = F.pad(x, pad_width=((0, 0), (around, around)))
    total: Any = None
    for tap in range(taps):
        stop = tap + 1 - taps or None
        product = F.getitem(x, index=(("slice", None, None, None), ("slice", tap, stop, None)))
        product = product * F.getitem(
            v, index=(("slice", None, None, None), ("slice", tap, tap + 1, None))
        )
        total = product if total is None else total + product
    return total


MODES = ("full", "same", "valid")


# -- convolution -----------------------------------------------------------------------------------


def _length(x: Any, v: Any, whole: bool) -> int | None:
    """Return the length of a convolution, ``whole`` or where ``v`` lies within ``x``."""
    for shape in (x, v):
        if shape is not None and len(shape) != 1:
            raise ValueError(f"convolve: vectors are needed, got shapes {x} and {v}")
    if x is None or v is None:
        return None
    (n,), (k,) = x, v
    if 0 in (n, k):
        raise ValueError(f"convolve: vectors without elements, got shapes {x} and {v}")
    if n is None or k is None:
        return None
    if not whole and n < k:
        raise ValueError(f"convolve: the longer vector comes first, got shapes {x} and {v}")
    return int(n + k - 1 if whole else n - k + 1)


def _convolve_kernel(xp: Any, x: Any, v: Any, *, whole: bool = True) -> Any:
    _length(x.shape, v.shape, whole)
    own = getattr(xp, "convolve", None)
    if own is not None:
        return own(x, v, "full" if whole else "valid")
    # the standard has none: sum the shifted products, the shorter one element by element
    if x.shape[0] < v.shape[0]:
        x, v = v, x
    size, taps = x.shape[0], v.shape[0]
    if whole:
        edge = xp.zeros(taps - 1, dtype=x.dtype)
        x = xp.concat([edge, x, edge])
        size += 2 * (taps - 1)
    total = x[taps - 1 : size] * v[0]
    for i in range(1, taps):
        total = total + x[taps - 1 - i : size - i] * v[i]
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
    doc="Convolve two vectors: wholly, or only where ``v`` lies within ``x``, the longer one.",
)


def _vector(x: Any) -> Any:
    """Return a tensor as it is; a number as a vector of size 1."""
    return ops["reshape"](x, shape=(1,)) if x.shape == () else x


def _vectors(x: Any, v: Any) -> tuple[Any, Any]:
    first, other = among((x, v))
    found = _vector(first), _vector(beside(other, first))
    dtype = np.result_type(*(y.dtype for y in found))
    if dtype.kind == "c":  # the ops multiply real by complex numbers as they are
        return found
    first, second = (y if y.dtype == dtype else ops["cast"](y, dtype=dtype.name) for y in found)
    return first, second


def _size(x: Any, name: str) -> int:
    """Return the size of a vector, which has to be known."""
    if x.shape is not None and len(x.shape) != 1:
        raise ValueError(f"{name}: vectors are needed, got shape {x.shape}")
    if x.shape is None or x.shape[0] is None:
        raise ValueError(
            f"{name}: the number of elements is unknown in this trace, got shape {x.shape}; give "
            "the function's input_signature a known size"
        )
    size: int = x.shape[0]
    if size == 0:
        raise ValueError(f"{name}: a vector without elements, got shape {x.shape}")
    return size


def _convolved(x: Any, v: Any, mode: str, name: str) -> Any:
    if mode not in MODES:
        raise ValueError(f"{name}: mode must be one of {MODES}, got {mode!r}")
    if mode == "full":
        return _convolve(x, v, whole=True)
    n, k = _size(x, name), _size(v, name)
    if mode == "valid":
        return _convolve(x, v, whole=False) if n >= k else _convolve(v, x, whole=False)
    start = (min(n, k) - 1) // 2
    return _convolve(x, v, whole=True)[start : start + max(n, k)]


@named
def convolve(a: Any, v: Any, mode: str = "full") -> Tensor:
    """Return the convolution of two vectors, ``y[k] = sum(a[i] * v[k - i])``.

    Parameters
    ----------
    a, v
        Vectors of shapes ``(n,)`` and ``(k,)``, of any numeric dtypes.
    mode
        ``"full"``: every element, ``n + k - 1`` of them. ``"same"``: the middle ones, as many as
        the longer vector has. ``"valid"``: those where the vectors overlap wholly. The latter two
        need known sizes.

    Returns
    -------
    A vector of the dtypes' promotion.

    Raises
    ------
    ValueError
        If they are no vectors, have no elements, or the mode is another word.

    Notes
    -----
    The sum is direct, ``n * k`` products; for long vectors multiply :func:`gradtape.fft.rfft`.

    Examples
    --------
    >>> gt.convolve(gt.constant([1.0, 2.0, 3.0]), gt.constant([1.0, 1.0])).tolist()
    [1.0, 3.0, 5.0, 3.0]
    >>> gt.convolve(gt.constant([1.0, 2.0, 3.0]), gt.constant([1.0, 1.0]), mode="valid").tolist()
    [3.0, 5.0]
    """
    return _convolved(*_vectors(a, v), mode, "convolve")


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
        If they are no vectors, have no elements, or the mode is another word.

    Examples
    --------
    >>> gt.correlate(gt.constant([1.0, 2.0, 3.0]), gt.constant([0.0, 1.0])).tolist()
    [2.0, 3.0]
    """
    x, w = _vectors(a, v)
    w = ops["flip"](ops["conj"](w) if w.dtype.kind == "c" else w, axis=0)
    if mode == "same":
        n, k = _size(x, "correlate"), _size(w, "correlate")
        start = (k - 1) // 2 if n >= k else n // 2  # in the middle of the longer one
        whole = _convolved(x, w, "full", "correlate")
        return whole[start : start + max(n, k)]
    return _convolved(x, w, mode, "correlate")


# -- polynomials -----------------------------------------------------------------------------------


@named
def polyval(p: Any, x: Any) -> Tensor:
    """Return a polynomial's values, by Horner's scheme.

    Parameters
    ----------
    p
        The coefficients, highest power first: a vector of known size, or a list of tensors.
    x
        Where: a tensor of any shape.

    Returns
    -------
    A tensor of the shape of ``x``, of the dtypes' promotion. Gradients reach both.

    Raises
    ------
    ValueError
        If ``p`` is no vector of known size, or has no elements.

    Examples
    --------
    >>> gt.polyval(gt.constant([1.0, 2.0, 3.0]), gt.constant([0.0, 2.0])).tolist()
    [3.0, 11.0]
    """
    x, p = among((x, p))
    p = _vector(beside(p, x))
    first, *rest = unstack(p, num=_size(p, "polyval"))
    value = ops["zeros_like"](x) + first
    for coefficient in rest:
        value = value * x + coefficient
    return value


def _of_equal_size(p: Any, q: Any, name: str) -> tuple[Any, Any]:
    p, q = _vectors(p, q)
    missing = _size(p, name) - _size(q, name)
    if missing > 0:
        return p, pad(q, (missing, 0))
    return (pad(p, (-missing, 0)) if missing else p), q


@named
def polyadd(a1: Any, a2: Any) -> Tensor:
    """Return the coefficients of a sum of polynomials.

    Parameters
    ----------
    a1, a2
        The coefficients of each, highest power first: vectors of known sizes.

    Returns
    -------
    A vector of the size of the longer one, of the dtypes' promotion; leading zeros are left in.

    Raises
    ------
    ValueError
        If they are no vectors of known sizes, or have no elements.

    Examples
    --------
    >>> gt.polyadd(gt.constant([1.0, 2.0]), gt.constant([1.0, 0.0, 3.0])).tolist()
    [1.0, 1.0, 5.0]
    """
    return ops["add"](*_of_equal_size(a1, a2, "polyadd"))


@named
def polysub(a1: Any, a2: Any) -> Tensor:
    """Return the coefficients of a difference of polynomials.

    Parameters
    ----------
    a1, a2
        The coefficients of each, highest power first: vectors of known sizes.

    Returns
    -------
    A vector of the size of the longer one, of the dtypes' promotion; leading zeros are left in.

    Raises
    ------
    ValueError
        If they are no vectors of known sizes, or have no elements.

    Examples
    --------
    >>> gt.polysub(gt.constant([1.0, 2.0]), gt.constant([1.0, 0.0, 3.0])).tolist()
    [-1.0, 1.0, -1.0]
    """
    return ops["subtract"](*_of_equal_size(a1, a2, "polysub"))


@named
def polymul(a1: Any, a2: Any) -> Tensor:
    """Return the coefficients of a product of polynomials, leading zeros included.

    Parameters
    ----------
    a1, a2
        The coefficients of each, highest power first: vectors of ``n`` and ``k`` elements.

    Returns
    -------
    A vector of ``n + k - 1`` elements, of the dtypes' promotion.

    Raises
    ------
    ValueError
        If they are no vectors, or have no elements.

    Examples
    --------
    >>> gt.polymul(gt.constant([1.0, 2.0]), gt.constant([1.0, -2.0])).tolist()
    [1.0, 0.0, -4.0]
    """
    return _convolved(*_vectors(a1, a2), "full", "polymul")


@named
def polydiv(u: Any, v: Any) -> tuple[Tensor, Tensor]:
    """Return the quotient and the remainder of a division of polynomials, by long division.

    Parameters
    ----------
    u, v
        The coefficients of dividend and divisor, highest power first, of known values: leading
        zeros of the remainder are left out. Gradients reach both. The first coefficient of ``v`` is
        not 0.

    Returns
    -------
    Two vectors, with ``u == polyadd(polymul(quotient, v), remainder)``; integers give ``float64``.

    Raises
    ------
    ValueError
        If they are no vectors, have no elements; or in a trace, where the remainder's size would
        depend on values that are not known.

    References
    ----------
    Knuth, "The art of computer programming", volume 2, section 4.6.1, algorithm D.

    Examples
    --------
    >>> quotient, remainder = gt.polydiv(gt.constant([1.0, 0.0, -3.0]), gt.constant([1.0, 2.0]))
    >>> quotient.tolist(), remainder.tolist()
    ([1.0, -2.0], [1.0])
    """
    u, v = _vectors(u, v)
    if is_transformed(u.array) or is_transformed(v.array):
        raise ValueError(
            "polydiv: the remainder's size depends on values, which are not known here; call it "
            "outside gradtape.function and vmap"
        )
    if u.dtype.kind not in "fc":
        u, v = (ops["cast"](x, dtype="float64") for x in (u, v))
    n, k = _size(u, "polydiv"), _size(v, "polydiv")
    terms, rest = [], u
    for i in range(n - k + 1):
        terms.append(rest[i] / v[0])
        taken = pad(ops["multiply"](terms[-1], v), (i, n - k - i))
        rest = ops["subtract"](rest, taken)
    quotient = ops["stack"](*terms, axis=0) if terms else ops["zeros_like"](u[:1])
    rest = rest[len(terms) :] if n > len(terms) else rest[-1:]
    sizes = np.abs(np.asarray(rest.to("numpy").numpy()))
    large = np.flatnonzero(sizes[:-1] > 1e-8)  # NumPy's bound
    return quotient, rest[int(large[0]) if large.size else sizes.size - 1 :]


def _times(m: Any, name: str) -> int:
    times = operator.index(m)
    if times < 0:
        raise ValueError(f"{name}: m must be at least 0, got {m}")
    return times


@named
def polyder(p: Any, m: int = 1) -> Tensor:
    """Return the coefficients of a polynomial's derivative of order ``m``.

    Parameters
    ----------
    p
        A vector of known size, highest power first.
    m
        How often to differentiate, once by default.

    Returns
    -------
    A vector with ``m`` elements less, 0 at the least, of the dtype of ``p``.

    Raises
    ------
    ValueError
        If ``m`` is negative, or ``p`` no vector of known size.

    Examples
    --------
    >>> gt.polyder(gt.constant([1.0, 2.0, 3.0])).tolist()
    [2.0, 2.0]
    """
    times, p = _times(m, "polyder"), as_tensor(p)
    size = _size(p, "polyder")
    if not times:
        return p
    left = max(size - times, 0)
    powers = range(size - 1, size - 1 - left, -1)
    factors = np.array([prod(range(n - times + 1, n + 1)) for n in powers], np.int64)
    return p[:left] * _factors(factors, p)


def _factors(values: Any, like: Any) -> Any:
    """Return whole numbers beside ``like``, in its dtype if that is inexact."""
    kind = np.empty(0, like.dtype).real.dtype if like.dtype.kind in "fc" else values.dtype
    return beside(values.astype(kind), like)


@named
def polyint(p: Any, m: int = 1, k: Any = None) -> Tensor:
    """Return the coefficients of a polynomial's integral of order ``m``.

    Parameters
    ----------
    p
        A vector of known size, highest power first.
    m
        How often to integrate, once by default.
    k
        The constants of integration, ``m`` of them, that of the first integral first; one number
        serves all, 0 if not given. Gradients reach them.

    Returns
    -------
    A vector with ``m`` elements more; integers give ``float64``.

    Raises
    ------
    ValueError
        If ``m`` is negative, there are not ``m`` constants, or ``p`` is no vector of known size.

    Examples
    --------
    >>> gt.polyint(gt.constant([3.0, 2.0]), k=5.0).tolist()
    [1.5, 2.0, 5.0]
    """
    times, p = _times(m, "polyint"), as_tensor(p)
    size = _size(p, "polyint")
    if not times:
        return p
    if p.dtype.kind not in "fc":
        p = ops["cast"](p, dtype="float64")
    constants = beside(0 if k is None else k, p)
    if constants.shape in ((), (1,)):
        constants = ops["broadcast_to"](constants, shape=(times,))
    if constants.shape != (times,):
        raise ValueError(f"polyint: {times} constants are needed, got shape {constants.shape}")
    for i in range(times):
        powers = np.arange(size + i, 0, -1)
        last = ops["cast_like"](constants[i : i + 1], p)
        p = ops["concatenate"](p / _factors(powers, p), last, axis=0)
    return p


@named
def vander(x: Any, N: int | None = None, increasing: bool = False) -> Tensor:
    """Return the matrix of the powers of ``x``, one row per element.

    Parameters
    ----------
    x
        A vector of shape ``(n,)``.
    N
        How many powers, from 0; as many as there are elements if not given.
    increasing
        Whether the power 0 is the first column, not the last.

    Returns
    -------
    A tensor of shape ``(n, N)``; as NumPy's, of double precision where ``x`` is of single.

    Raises
    ------
    ValueError
        If ``x`` is no vector, or ``N`` is negative.

    Examples
    --------
    >>> gt.vander(gt.constant([2.0, 3.0]), 3).tolist()
    [[4.0, 2.0, 1.0], [9.0, 3.0, 1.0]]
    """
    x = as_tensor(x)
    if x.ndim != 1:
        raise ValueError(f"vander: a vector is needed, got shape {x.shape}")
    if N is None and x.shape[0] is None:
        raise ValueError("vander: the number of elements is unknown in this trace; give N")
    count = operator.index(x.shape[0] if N is None else N)
    if count < 0:
        raise ValueError(f"vander: N must be at least 0, got {N}")
    wide = np.result_type(x.dtype, np.int64)
    x = x if x.dtype == wide else ops["cast"](x, dtype=wide.name)
    column = ops["expand_dims"](x, axis=1)
    columns = [ops["ones_like"](column), *[column] * (count - 1)][:count]
    if not columns:
        return column[:, :0]
    powers = ops["concatenate"](*columns, axis=1)
    if count > 2:
        powers = ops["cumprod"](powers, axis=1, reverse=False)
    return powers if increasing else ops["flip"](powers, axis=1)

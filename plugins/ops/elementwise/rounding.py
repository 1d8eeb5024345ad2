"""Elementwise rounding. These ops have no gradients."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

from ....core.extend import NONDIFF, Tensor, as_tensor, numpy_dtype
from ..common.kernels import cast_to, complex_of, kind_of
from ..common.op_builders import elementwise, named, op, result_dtype

floor = elementwise(
    "floor",
    x=NONDIFF,
    doc="""Round down; it has no gradient.

    Examples
    --------
    >>> gt.floor([1.7, -1.2]).tolist()
    [1.0, -2.0]
    """,
)
ceil = elementwise(
    "ceil",
    x=NONDIFF,
    doc="""Round up; it has no gradient.

    Examples
    --------
    >>> gt.ceil([1.2, -1.7]).tolist()
    [2.0, -1.0]
    """,
)
trunc = elementwise(
    "trunc",
    x=NONDIFF,
    doc="""Round towards 0; it has no gradient.

    Examples
    --------
    >>> gt.trunc([1.7, -1.7]).tolist()
    [1.0, -1.0]
    """,
)

fix = trunc


def _round_kernel(xp: Any, x: Any, *, decimals: int = 0) -> Any:
    kind = kind_of(x.dtype)
    if decimals == 0:
        return xp.round(x)
    if kind == "c":  # part by part, since an infinite one would make the other nan
        parts = (_round_kernel(xp, part, decimals=decimals) for part in (xp.real(x), xp.imag(x)))
        return complex_of(xp, *parts)
    if kind == "i" or kind == "u":
        return x if decimals > 0 else cast_to(xp, _scaled(xp, x, decimals), x.dtype)
    # the scale soon overflows half precision
    wide = cast_to(xp, x, np.float32) if numpy_dtype(x.dtype) == np.float16 else x
    return cast_to(xp, _scaled(xp, wide, decimals), x.dtype)


def _scaled(xp: Any, x: Any, decimals: int) -> Any:
    scale = 10.0 ** abs(decimals)
    return xp.round(x * scale) / scale if decimals > 0 else xp.round(x / scale) * scale


_round = op(
    "round",
    _round_kernel,
    gradients={"x": NONDIFF},
    infer=lambda x, decimals: (x.shape, result_dtype(_round_kernel, [x], decimals=decimals)),
    batch="elementwise",
)


@named
def round(x: Any, decimals: int = 0) -> Tensor:
    """Round to the nearest, halves to even; it has no gradient.

    Parameters
    ----------
    x
        A tensor of any shape and dtype.
    decimals
        The decimal places to keep, 0 by default; a negative number rounds before the point.

    Returns
    -------
    A tensor of the shape and dtype of ``x``; booleans become ``float16``, as in NumPy.

    Raises
    ------
    TypeError
        If ``decimals`` is not an integer, or ``x`` is not a tensor, an array or a number.

    Examples
    --------
    >>> gt.round([0.5, 1.5, -1.7]).tolist()
    [0.0, 2.0, -2.0]
    >>> gt.round(1234.0, decimals=-2).item()
    1200.0
    """
    x, places = as_tensor(x), operator.index(decimals)
    if places and x.dtype.kind == "b":
        raise TypeError("round: booleans have no decimal places")
    return _round(x, decimals=places)


@named
def around(x: Any, decimals: int = 0) -> Tensor:
    """Round to the nearest, halves to even, as :func:`gradtape.round`; it has no gradient.

    Parameters
    ----------
    x
        A tensor of any shape and dtype.
    decimals
        The decimal places to keep, 0 by default; a negative number rounds before the point.

    Returns
    -------
    A tensor of the shape and dtype of ``x``; booleans become ``float16``, as in NumPy.

    Raises
    ------
    TypeError
        If ``decimals`` is not an integer, or ``x`` is not a tensor, an array or a number.

    Examples
    --------
    >>> gt.around([0.5, 1.5, -1.7]).tolist()
    [0.0, 2.0, -2.0]
    """
    return round(x, decimals)


@named
def rint(x: Any) -> Tensor:
    """Round to the nearest integer, halves to even; it has no gradient.

    Parameters
    ----------
    x
        A tensor of any shape and dtype.

    Returns
    -------
    A tensor of the shape and dtype of ``x``. Integers become floats of the same width as in NumPy.

    Raises
    ------
    TypeError
        If ``x`` is not a tensor, an array or a number.

    Examples
    --------
    >>> gt.rint([0.5, 1.5, -1.7]).tolist()
    [0.0, 2.0, -2.0]
    """
    x = as_tensor(x)
    return _round(x if x.dtype.kind in "fc" else x.astype(np.rint(np.empty(0, x.dtype)).dtype))

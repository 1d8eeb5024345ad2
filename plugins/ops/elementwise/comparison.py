"""Elementwise comparison and logic, tests for nan and infinity, and choice by a condition."""

from __future__ import annotations

from typing import Any

import numpy as np

from ....core.extend import (
    NONDIFF,
    F,
    Op,
    Operators,
    Tensor,
    as_tensor,
    check_fits_dtype,
    on_device_of,
    ops,
    same_size,
    shapes_differ,
    with_others,
)
from ..common.kernels import SCALARS, reals
from ..common.op_builders import elementwise, named


def _test(name: str, doc: str, *inputs: str) -> Op:
    rules: dict[str, Any] = dict.fromkeys(inputs, NONDIFF)
    return elementwise(name, doc=doc, **rules)


equal = _test(
    "equal",
    """Return whether ``x == y``, elementwise.

    Examples
    --------
    >>> gt.equal([1.0, 2.0], 2.0).tolist()
    [False, True]
    """,
    "x",
    "y",
)
not_equal = _test(
    "not_equal",
    """Return whether ``x != y``, elementwise.

    Examples
    --------
    >>> gt.not_equal([1.0, 2.0], 2.0).tolist()
    [True, False]
    """,
    "x",
    "y",
)
less = _test(
    "less",
    """Return whether ``x < y``, elementwise.

    Examples
    --------
    >>> gt.less([1.0, 2.0, 3.0], 2.0).tolist()
    [True, False, False]
    """,
    "x",
    "y",
)
less_equal = _test(
    "less_equal",
    """Return whether ``x <= y``, elementwise.

    Examples
    --------
    >>> gt.less_equal([1.0, 2.0, 3.0], 2.0).tolist()
    [True, True, False]
    """,
    "x",
    "y",
)
greater = _test(
    "greater",
    """Return whether ``x > y``, elementwise.

    Examples
    --------
    >>> gt.greater([1.0, 2.0, 3.0], 2.0).tolist()
    [False, False, True]
    """,
    "x",
    "y",
)
greater_equal = _test(
    "greater_equal",
    """Return whether ``x >= y``, elementwise.

    Examples
    --------
    >>> gt.greater_equal([1.0, 2.0, 3.0], 2.0).tolist()
    [False, True, True]
    """,
    "x",
    "y",
)


@named
def isclose(
    a: Any, b: Any, rtol: float = 1e-05, atol: float = 1e-08, equal_nan: bool = False
) -> Tensor:
    """Return whether ``a`` and ``b`` differ by no more than ``atol + rtol * |b|``.

    Parameters
    ----------
    a, b
        Numbers or tensors; their shapes broadcast. Infinities are close only to themselves.
    rtol, atol
        The relative and the absolute tolerance, 1e-5 and 1e-8 by default.
    equal_nan
        Whether nan is close to nan; false by default.

    Returns
    -------
    A boolean tensor of the broadcast shape.

    Raises
    ------
    ValueError
        If the shapes do not broadcast.

    Examples
    --------
    >>> gt.isclose([1.0, 2.0], [1.000001, 2.1]).tolist()
    [True, False]
    >>> gt.isclose(np.nan, np.nan, equal_nan=True).item()
    True
    """
    if type(a) in SCALARS:
        b = as_tensor(b)
        a = on_device_of(a, b)
    a = as_tensor(a)
    b = on_device_of(b, a)
    if b.dtype.kind not in "fc":  # differences of integers wrap, of booleans there are none
        b = ops["cast"](b, dtype="float64")
    near = ops["abs"](a - b) <= atol + rtol * ops["abs"](b)
    result = ops["logical_or"](ops["logical_and"](near, ops["isfinite"](b)), a == b)
    if equal_nan:
        both = ops["logical_and"](ops["isnan"](a), ops["isnan"](b))
        result = ops["logical_or"](result, both)
    return result


@named
def allclose(
    a: Any, b: Any, rtol: float = 1e-05, atol: float = 1e-08, equal_nan: bool = False
) -> Tensor:
    """Return whether all elements differ by no more than ``atol + rtol * |b|``.

    Parameters
    ----------
    a, b
        Numbers or tensors; their shapes broadcast. Infinities are close only to themselves.
    rtol, atol
        The relative and the absolute tolerance, 1e-5 and 1e-8 by default.
    equal_nan
        Whether nan is close to nan; false by default.

    Returns
    -------
    One boolean, a tensor without axes. This works in a trace too, where values are unknown.

    Raises
    ------
    ValueError
        If the shapes do not broadcast.

    Examples
    --------
    >>> gt.allclose([1.0, 2.0], [1.000001, 2.0]).item()
    True
    """
    return ops["all"](isclose(a, b, rtol, atol, equal_nan), axis=None, keepdims=False)


@named
def array_equal(a1: Any, a2: Any, equal_nan: bool = False) -> Tensor:
    """Return whether two tensors have the same shape and elements.

    Parameters
    ----------
    a1, a2
        Tensors, or what :func:`gradtape.constant` takes.
    equal_nan
        Whether nan is equal to nan; false by default.

    Returns
    -------
    One boolean, a tensor without axes. This works in a trace too, where values are unknown.

    Raises
    ------
    ValueError
        If a trace does not know a rank.

    Examples
    --------
    >>> gt.array_equal([1, 2], [1, 2]).item(), gt.array_equal([1, 2], [[1, 2]]).item()
    (True, False)
    """
    if isinstance(a2, Operators):  # the other goes where the tensor is
        a1, a2 = a2, a1
    x = as_tensor(a1)
    y = on_device_of(a2, x, weak=False)
    if x.shape is None or y.shape is None:
        raise ValueError(
            "array_equal: it is unknown in this trace whether shapes "
            f"{x.shape} and {y.shape} are equal; give the TensorSpec a rank"
        )
    if shapes_differ(x.shape, y.shape):
        return on_device_of(np.asarray(False), x)
    alike = [n == m for n, m in zip(x.shape, y.shape, strict=True) if not same_size(n, m)]
    if alike:  # each run compares the sizes first
        y = ops["crop_or_pad_like"](y, x, axes=tuple(range(len(x.shape))))
    equal = ops["equal"](x, y)
    if equal_nan:
        both = ops["logical_and"](ops["isnan"](x), ops["isnan"](y))
        equal = ops["logical_or"](equal, both)
    same = ops["all"](equal, axis=None, keepdims=False)
    for condition in alike:
        same = ops["logical_and"](same, condition)
    return same


isnan = _test(
    "isnan",
    """Return whether ``x`` is not a number, elementwise.

    Examples
    --------
    >>> gt.isnan([1.0, np.nan]).tolist()
    [False, True]
    """,
    "x",
)
isinf = _test(
    "isinf",
    """Return whether ``x`` is infinite, elementwise.

    Examples
    --------
    >>> gt.isinf([1.0, -np.inf, np.nan]).tolist()
    [False, True, False]
    """,
    "x",
)
isfinite = _test(
    "isfinite",
    """Return whether ``x`` is neither infinite nor nan, elementwise.

    Examples
    --------
    >>> gt.isfinite([1.0, -np.inf, np.nan]).tolist()
    [True, False, False]
    """,
    "x",
)


@named
def isposinf(x: Any) -> Tensor:
    """Return whether elements are positive infinity.

    Parameters
    ----------
    x
        A real tensor of any shape.

    Returns
    -------
    A boolean tensor of the shape of ``x``.

    Raises
    ------
    TypeError
        If ``x`` is complex, or not a tensor, an array or a number.

    Examples
    --------
    >>> gt.isposinf([1.0, np.inf, -np.inf]).tolist()
    [False, True, False]
    """
    x = reals(as_tensor(x))
    return ops["logical_and"](ops["isinf"](x), x > 0)


@named
def isneginf(x: Any) -> Tensor:
    """Return whether elements are negative infinity.

    Parameters
    ----------
    x
        A real tensor of any shape.

    Returns
    -------
    A boolean tensor of the shape of ``x``.

    Raises
    ------
    TypeError
        If ``x`` is complex, or not a tensor, an array or a number.

    Examples
    --------
    >>> gt.isneginf([1.0, np.inf, -np.inf]).tolist()
    [False, False, True]
    """
    x = reals(as_tensor(x))
    return ops["logical_and"](ops["isinf"](x), x < 0)


logical_and = _test(
    "logical_and",
    """Return whether both are true, elementwise; what is not 0 is true.

    Examples
    --------
    >>> gt.logical_and([True, True, False], [True, False, False]).tolist()
    [True, False, False]
    """,
    "x",
    "y",
)
logical_or = _test(
    "logical_or",
    """Return whether either is true, elementwise; what is not 0 is true.

    Examples
    --------
    >>> gt.logical_or([True, True, False], [True, False, False]).tolist()
    [True, True, False]
    """,
    "x",
    "y",
)
logical_xor = _test(
    "logical_xor",
    """Return whether just one is true, elementwise; what is not 0 is true.

    Examples
    --------
    >>> gt.logical_xor([True, True, False], [True, False, False]).tolist()
    [False, True, False]
    """,
    "x",
    "y",
)
logical_not = _test(
    "logical_not",
    """Return whether ``x`` is false, elementwise; 0 is false.

    Examples
    --------
    >>> gt.logical_not([True, False]).tolist()
    [False, True]
    """,
    "x",
)

_NOTHING = object()  # an argument that was not given


class Where(Op):
    """``where(condition, x, y)``; two Python numbers get the default dtype.

    With only a condition it is :func:`gradtape.nonzero`.
    """

    __slots__ = ()

    def __call__(self, condition: Any, x: Any = _NOTHING, y: Any = _NOTHING) -> Any:
        if y is _NOTHING:
            if x is _NOTHING:
                return tuple(ops["nonzero"](condition))
            raise ValueError("where: give both x and y, or neither of them")
        if type(x) in SCALARS and type(y) in SCALARS:
            # NumPy would make float64 of where(condition, 1.0, 0.0)
            if SCALARS.index(type(x)) >= SCALARS.index(type(y)):
                x = with_others(x, (condition,))
            else:
                y = with_others(y, (condition,))
        elif type(x) is int or type(y) is int:  # NumPy wraps what the other's dtype does not hold
            number, other = (x, y) if type(x) is int else (y, x)
            check_fits_dtype(number, getattr(other, "dtype", np.dtype(np.int64)), "where")
        return super().__call__(condition, x, y)


where = elementwise(
    "where",
    kind=Where,
    condition=NONDIFF,
    x=lambda g, condition: F.where(condition, g, 0.0),
    y=lambda g, condition: F.where(condition, 0.0, g),
    holomorphic=False,
    doc="""Return ``x`` where ``condition`` is true and ``y`` elsewhere; the three broadcast.

    With only a condition, return the indices of its true elements, as :func:`gradtape.nonzero`
    does.

    Parameters
    ----------
    condition
        A tensor, an array or a number; nonzero elements are true.
    x, y
        Tensors, arrays or numbers; give both or neither.

    Returns
    -------
    A tensor of the broadcast shape and the promoted dtype of ``x`` and ``y``. With only a
    condition, a tuple of integer tensors, one per axis.

    Raises
    ------
    TypeError
        If an argument is not a tensor, an array or a number.
    ValueError
        If the shapes do not broadcast, or only ``x`` is given.

    Notes
    -----
    The gradient of an element goes to the tensor that it came from; the other has 0 there. The
    condition has no gradient.

    Examples
    --------
    >>> gt.where([True, False], [1.0, 2.0], 0.0).tolist()
    [1.0, 0.0]
    >>> [i.tolist() for i in gt.where([[0, 3], [4, 0]])]
    [[0, 1], [1, 0]]
    """,
)

"""Floating-point numbers taken apart, and Bessel functions, which NumPy has of one order."""

from __future__ import annotations

import math
from math import prod
from typing import Any

import numpy as np

from ....core.extend import NONDIFF, F, Tensor, as_tensor, ops
from ..common.families import cast_to, elementwise, kind_of, named, op, reals

__all__ = ["frexp", "i0", "spacing"]

# -- mantissa and exponent -------------------------------------------------------------------------


def _exponent_kernel(xp: Any, x: Any) -> Any:
    if hasattr(xp, "frexp"):
        return xp.frexp(x)[1]
    usual = xp.isfinite(reals(x)) & (x != 0)
    size = xp.abs(xp.where(usual, x, xp.ones_like(x)))
    # numbers below the normal ones are scaled up, or the logarithm would round them
    tiny = size < xp.finfo(x.dtype).smallest_normal
    size = xp.where(tiny, size * 2.0**60, size)
    exponent = xp.floor(xp.log2(size)) + 1
    share = size / 2.0**exponent
    exponent = exponent + xp.astype(share >= 1, x.dtype) - xp.astype(share < 0.5, x.dtype)
    exponent = xp.where(tiny, exponent - 60, exponent)
    return xp.astype(xp.where(usual, exponent, xp.zeros_like(x)), xp.int32)


_exponent = op(
    "frexp_exponent",
    _exponent_kernel,
    gradients={"x": NONDIFF},
    infer=lambda x: (x.shape, np.dtype(np.int32)),
    batch="elementwise",
    doc="Return the exponent ``e`` of ``x = m * 2**e`` with ``0.5 <= abs(m) < 1``.",
)


@named
def frexp(x: Any) -> tuple[Tensor, Tensor]:
    """Return mantissa and exponent: ``x = m * 2**e`` with ``0.5 <= abs(m) < 1``.

    Parameters
    ----------
    x
        A real tensor of any shape; integers are taken as ``float64``.

    Returns
    -------
    m
        A tensor of the shape and dtype of ``x``, 0 at 0, and infinite or nan where ``x`` is.
    e
        Integers (``int32``) of that shape, which have no gradient.

    Raises
    ------
    TypeError
        If ``x`` is complex, or not a tensor, an array or a number.

    Notes
    -----
    The gradient of the mantissa is ``2**-e``.

    Examples
    --------
    >>> [part.tolist() for part in gt.frexp([8.0, -0.75])]
    [[0.5, -0.75], [4, 0]]
    """
    x = as_tensor(x)
    if x.dtype.kind == "c":
        raise TypeError(f"frexp: expected real numbers, got dtype {x.dtype}")
    if x.dtype.kind != "f":
        x = ops["cast"](x, dtype="float64")
    exponent = _exponent(x)
    return ops["ldexp"](x, -exponent), exponent


def _spacing_kernel(xp: Any, x: Any) -> Any:
    if hasattr(xp, "spacing"):
        return xp.spacing(x)
    size = xp.abs(reals(x))
    step = xp.nextafter(size, xp.full_like(size, math.inf)) - size
    return xp.where(xp.signbit(x), -step, step)


spacing = elementwise(
    "spacing",
    _spacing_kernel,
    x=NONDIFF,
    doc="""Return the distance from ``x`` to the next larger number in size, with the sign of ``x``.

    It has no gradient.

    Examples
    --------
    >>> gt.spacing(gt.constant([1.0, -2.0])).tolist() == [2.0**-23, -(2.0**-22)]
    True
    """,
)

# -- Bessel functions ------------------------------------------------------------------------------


def _pairs_of_nodes(xp: Any, size: Any, order: int) -> int:
    """Return how many nodes a quarter circle needs for numbers up to the largest of ``size``.

    With n nodes around the circle the error is that of ``I_n``, which is below ``exp(-n*n / 2x)``.
    """
    known = xp.where(xp.isfinite(size), size, xp.zeros_like(size))
    largest = min(float(xp.max(known)), 720.0) if prod(size.shape) else 0.0  # infinite beyond that
    return 5 + order + math.ceil(math.sqrt(5.0 * largest))


def _bessel_kernel(xp: Any, x: Any, *, order: int = 0) -> Any:
    """Return ``I_n(x)`` by the trapezoidal rule, which converges exponentially here.

    ``I_n(x) = (x/2)**n / (sqrt(pi) gamma(n + 1/2)) * integral of exp(x cos t) sin(t)**2n`` over
    half a circle (Abramowitz and Stegun 9.6.18): every term is positive, so none cancel.
    """
    own = getattr(xp, "i0", None)
    if own is not None and order == 0:
        return cast_to(xp, own(reals(x)), x.dtype if kind_of(x.dtype) == "f" else np.float64)
    kept = x.dtype if kind_of(reals(x).dtype) == "f" else np.dtype(np.float64)
    wide = cast_to(xp, x, np.float64)
    size = xp.abs(wide)
    total = xp.zeros_like(wide)
    nodes = _pairs_of_nodes(xp, size, order)
    for i in range(nodes):
        angle = math.pi * (i + 0.5) / (2 * nodes)
        grown = xp.exp(size * math.cos(angle))
        total = total + math.sin(angle) ** (2 * order) * (grown + 1 / grown)  # and its mirror
    factor = math.sqrt(math.pi) / (2 * nodes * math.gamma(order + 0.5) * 2.0**order)
    return cast_to(xp, total * factor * wide**order, kept)


_bessel = op(
    "bessel_i",
    _bessel_kernel,
    gradients={
        # I_n' = (I_(n-1) + I_(n+1)) / 2, and I_-1 = I_1
        "x": lambda g, x, order: (
            g * (0.5 * (F.bessel_i(x, order=abs(order - 1)) + F.bessel_i(x, order=order + 1)))
        ),
    },
    infer=lambda x, order: (x.shape, x.dtype if x.dtype.kind == "f" else np.dtype(np.float64)),
    batch="elementwise",
    doc="Return the modified Bessel function of the first kind, of a whole order.",
)


@named
def i0(x: Any) -> Tensor:
    """Return the modified Bessel function of the first kind and order 0, elementwise.

    Parameters
    ----------
    x
        A real tensor of any shape.

    Returns
    -------
    A tensor of the shape and dtype of ``x``; integers give ``float64``.

    Raises
    ------
    TypeError
        If ``x`` is complex, or not a tensor, an array or a number.

    Notes
    -----
    The gradient is the function of order 1, and so on at every order.

    References
    ----------
    Abramowitz and Stegun, "Handbook of mathematical functions", 9.6.18 and 9.6.26.

    Examples
    --------
    >>> round(gt.i0(0.0).item(), 4)
    1.0
    >>> round(gt.i0(1.0).item(), 4)
    1.2661
    """
    return _bessel(x, order=0)

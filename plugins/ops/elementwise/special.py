"""Special functions: error function, logarithm of gamma and its derivatives, sinc, Bessel."""

from __future__ import annotations

import math
from collections.abc import Callable
from math import prod
from typing import Any

import numpy as np

from ....core.extend import BackendUnavailable, F, Op, Tensor, backend_of, kind_of, numpy_dtype
from ..common.kernels import at_hand, cast_to, inexact, reals
from ..common.op_builders import elementwise, named, op


def _special(xp: Any, name: str, x: Any, *first: Any) -> Any:
    """Apply one of the backend's special functions; keep float dtypes."""
    owner = backend_of(x)
    try:
        function = getattr(owner.special, name, None)
    except ImportError as error:
        raise BackendUnavailable(
            f"{name}: its kernel comes from SciPy, which is not installed; pip install scipy"
        ) from error
    if function is None:
        raise TypeError(
            f"{name}: backend {owner.name!r} has no such function; move the tensor with "
            "tensor.to('numpy')"
        )
    kept = x if kind_of(x.dtype) in "fc" else cast_to(xp, x, np.float64)
    result = function(*first, kept)
    return result if result.dtype == kept.dtype else cast_to(xp, result, numpy_dtype(kept.dtype))


def _special_op(name: str, rule: Callable[..., Any], doc: str, scipy: str | None = None) -> Op:
    return op(
        name,
        lambda xp, x: _special(xp, scipy or name, x),
        gradients={"x": rule},
        infer=lambda x: (x.shape, inexact(x.dtype)),
        holomorphic=True,
        batch="elementwise",
        doc=doc,
    )


_SLOPE = 2.0 / math.sqrt(math.pi)


def _exp_minus_square_kernel(xp: Any, x: Any, *, scale: float = 1.0) -> Any:
    if kind_of(x.dtype) != "f":
        return xp.exp(-(x * x) * scale)
    x = xp.clip(x, -64.0, 64.0)  # 0 beyond, and the square fits into float16
    # the square of a number with few digits is exact; what is left of the exponent is small
    near = xp.round(x * 64) / 64
    return xp.exp(near * near * -scale) * xp.exp((x - near) * (x + near) * -scale)


def _exp_minus_square_rule(g: Any, x: Any, scale: float) -> Any:
    if x.dtype.kind == "c":
        return g * (-2.0 * scale * x * F.exp_minus_square(x, scale=scale))
    root = F.exp_minus_square(x, scale=0.5 * scale)  # the exponential itself can be subnormal
    return g * (root * (-2.0 * scale * x) * root)


_exp_minus_square = elementwise(
    "exp_minus_square",
    _exp_minus_square_kernel,
    kind=Op,
    x=_exp_minus_square_rule,
    doc="Return ``exp(-scale * x**2)`` for a power of two, exact where the exponent is large.",
)
erf = _special_op(
    "erf",
    lambda g, x: g * (_SLOPE * F.exp_minus_square(x)),
    """Return the error function of ``x``, elementwise.

    It is the integral of ``2 / sqrt(pi) * exp(-t**2)`` from 0 to ``x``.

    Raises
    ------
    TypeError
        If ``x`` is not a tensor, an array or a number.
    BackendUnavailable
        If SciPy, which has the kernel, is not installed.

    Notes
    -----
    The gradient is ``2 / sqrt(pi) * exp(-x**2)``.

    References
    ----------
    NIST Digital Library of Mathematical Functions, 7.2.1.

    Examples
    --------
    >>> round(gt.erf(1.0).item(), 4)
    0.8427
    """,
)
erfc = _special_op(
    "erfc",
    lambda g, x: g * (-_SLOPE * F.exp_minus_square(x)),
    """Return ``1 - erf(x)``, elementwise, exact for large ``x``.

    Raises
    ------
    TypeError
        If ``x`` is not a tensor, an array or a number.
    BackendUnavailable
        If SciPy, which has the kernel, is not installed.

    Notes
    -----
    The gradient is ``-2 / sqrt(pi) * exp(-x**2)``.

    References
    ----------
    NIST Digital Library of Mathematical Functions, 7.2.2.

    Examples
    --------
    >>> round(gt.erfc(1.0).item(), 4)
    0.1573
    """,
)
lgamma = _special_op(
    "lgamma",
    lambda g, x: g * F.digamma(x),
    """Return the logarithm of the absolute value of the gamma function, elementwise.

    Parameters
    ----------
    x
        A real tensor, array or number. At 0 and the negative integers the result is inf.

    Raises
    ------
    TypeError
        If ``x`` is complex, or not a tensor, an array or a number.
    BackendUnavailable
        If SciPy, which has the kernel, is not installed.

    Notes
    -----
    The gradient is :func:`gradtape.digamma`.

    References
    ----------
    NIST Digital Library of Mathematical Functions, 5.2.1.

    Examples
    --------
    >>> round(gt.exp(gt.lgamma(5.0)).item(), 3)
    24.0
    """,
    "gammaln",
)
digamma = _special_op(
    "digamma",
    lambda g, x: g * F.polygamma(x, n=1),
    """Return the digamma function, the derivative of :func:`gradtape.lgamma`, elementwise.

    Raises
    ------
    TypeError
        If ``x`` is not a tensor, an array or a number.
    BackendUnavailable
        If SciPy, which has the kernel, is not installed.

    Notes
    -----
    The gradient is :func:`gradtape.polygamma` of order 1, which is for real numbers only.

    References
    ----------
    NIST Digital Library of Mathematical Functions, 5.2.2.

    Examples
    --------
    >>> round(gt.digamma(1.0).item(), 4)
    -0.5772
    """,
)
_polygamma = op(
    "polygamma",
    lambda xp, x, *, n: _special(xp, "polygamma", x, xp.asarray(n)),  # CuPy's takes no number
    gradients={"x": lambda g, x, n: g * F.polygamma(x, n=n + 1)},
    infer=lambda x, n: (x.shape, inexact(x.dtype)),
    batch="elementwise",
    doc="Return the n-th derivative of the digamma function at a real ``x``.",
)


@named
def polygamma(n: int, x: Any) -> Tensor:
    """Return the ``n``-th derivative of the digamma function.

    Parameters
    ----------
    n
        The order, an integer of at least 0.
    x
        A real tensor.

    Returns
    -------
    A tensor of the shape and dtype of ``x``; integers give ``float64``.

    Raises
    ------
    BackendUnavailable
        If SciPy, which has the kernel, is not installed.
    TypeError
        If ``x`` is complex, or not a tensor, an array or a number.
    ValueError
        If ``n`` is not an integer of at least 0.

    References
    ----------
    NIST Digital Library of Mathematical Functions, 5.15.

    Examples
    --------
    >>> round(gt.polygamma(1, 1.0).item(), 4)
    1.6449
    """
    if int(n) != n or n < 0:
        raise ValueError(f"polygamma: the order must be an integer of at least 0, got {n!r}")
    return _polygamma(x, n=int(n)) if n else digamma(x)


def _half_turns(xp: Any, x: Any) -> tuple[Any, Any]:
    """Return sine and cosine of ``pi x``, exact also near their zeros."""
    if kind_of(x.dtype) == "c":
        return xp.sin(math.pi * x), xp.cos(math.pi * x)
    rest = x - 2 * xp.round(x / 2)  # exact, from -1 to 1
    size = xp.abs(rest)
    sine = xp.sign(rest) * xp.sin(math.pi * xp.where(size > 0.5, 1 - size, size))
    return sine, xp.sin(math.pi * (0.5 - size))


def _sinc_kernel(xp: Any, x: Any, *, order: int = 0) -> Any:
    """Return a derivative of ``sin(pi x) / (pi x)``, of the given order.

    With ``f = sin(pi x) / (pi x)``, the n-th derivative of ``x f`` gives
    ``x f_n + n f_(n-1) = pi**(n-1) sin(pi x + n pi/2)``. Near 0 this cancels, so the power series
    is summed instead.
    """
    own = getattr(xp, "sinc", None)
    if own is not None and order == 0:
        return own(x)
    if kind_of(x.dtype) not in "fc":
        x = cast_to(xp, x, np.float64)
    kept = x.dtype
    if str(kept) == "float16":
        x = cast_to(xp, x, np.float32)
    near = xp.abs(x) < (order + 2.0) / math.pi
    far = xp.where(near, xp.ones_like(x), x)
    waves = _half_turns(xp, far)
    closed = waves[0] / (math.pi * far)
    for n in range(1, order + 1):
        wave = waves[n % 2] * (-1.0) ** (n // 2)
        closed = (math.pi ** (n - 1) * wave - n * closed) / far
    small = xp.where(near, x, xp.zeros_like(x))
    first = (order + 1) // 2  # the lowest power of x**2 that the derivative leaves
    series, square = xp.zeros_like(x), small * small
    for k in range(first + 14 + order, first - 1, -1):
        # (-pi**2)**k / (2k + 1)! x**(2k), differentiated `order` times
        factor = (-1.0) ** k * math.pi ** (2 * k) / (2 * k + 1) / math.factorial(2 * k - order)
        series = series * square + factor
    if order % 2:
        series = series * small
    result = xp.where(near, series, closed)
    return result if result.dtype == kept else cast_to(xp, result, kept)


_sinc = op(
    "sinc",
    _sinc_kernel,
    gradients={"x": lambda g, x, order: g * F.sinc(x, order=order + 1)},
    infer=lambda x, order: (x.shape, inexact(x.dtype)),
    holomorphic=True,
    batch="elementwise",
    doc="Return ``sin(pi x) / (pi x)``, 1 at 0, or its derivative of some order.",
)


@named
def sinc(x: Any) -> Tensor:
    """Return ``sin(pi x) / (pi x)``, elementwise, which is 1 at 0.

    Returns
    -------
    A tensor of the shape and dtype of ``x``; integers give ``float64``.

    Notes
    -----
    Gradients are exact near 0 at every order: there they are power series, not quotients.

    Examples
    --------
    >>> gt.sinc(0.0).item()
    1.0
    >>> round(gt.sinc(0.5).item(), 4)
    0.6366
    """
    return _sinc(x)


def _pairs_of_nodes(xp: Any, size: Any, order: int) -> int:
    """Return how many nodes a quarter circle needs for numbers up to the largest of ``size``.

    With n nodes around the circle the error is that of ``I_n``, which is below ``exp(-n*n / 2x)``.
    """
    known = xp.where(xp.isfinite(size), size, xp.zeros_like(size))
    try:
        largest = min(float(xp.max(known)), 720.0) if prod(size.shape) else 0.0
    except TypeError:  # a compiler has no values yet
        largest = 720.0  # infinite beyond that
    return 5 + order + math.ceil(math.sqrt(5.0 * largest))


def _bessel_kernel(xp: Any, x: Any, *, order: int = 0) -> Any:
    """Return ``I_n(x)`` by the trapezoidal rule, which converges exponentially here.

    ``I_n(x) = (x/2)**n / (sqrt(pi) gamma(n + 1/2)) * integral of exp(x cos t) sin(t)**2n`` over
    half a circle (Abramowitz and Stegun 9.6.18): every term is positive, so none cancel.
    """
    own = getattr(xp, "i0", None)
    wide = cast_to(xp, reals(x), np.float64)  # NumPy's i0 is not exact at 0 in float32
    # NumPy's exponential overflows before the function does
    far = own is not None and at_hand(xp.any(xp.abs(wide) > 700), unknown=False)
    if own is not None and order == 0 and not far:
        return cast_to(xp, own(wide), x.dtype if kind_of(x.dtype) == "f" else np.float64)
    kept = x.dtype if kind_of(x.dtype) == "f" else np.dtype(np.float64)
    size = xp.abs(wide)
    # infinite from 720 on; of much larger numbers all terms are 0, and their product is NaN
    beyond = xp.logical_and(xp.isfinite(size), size > 1e4)
    wide = xp.where(beyond, xp.sign(wide) * 1e4, wide)
    size = xp.abs(wide)
    total = xp.zeros_like(wide)
    nodes = _pairs_of_nodes(xp, size, order)
    for i in range(nodes):
        angle = math.pi * (i + 0.5) / (2 * nodes)
        # over exp(size): the terms that matter then have small exponents, which round less
        here = xp.exp(size * (-2 * math.sin(angle / 2) ** 2))
        mirrored = xp.exp(size * (-2 * math.cos(angle / 2) ** 2))
        total = total + math.sin(angle) ** (2 * order) * (here + mirrored)
    factor = math.sqrt(math.pi) / (2 * nodes * math.gamma(order + 0.5) * 2.0**order)
    root = xp.exp(size / 2)  # twice, since its square can overflow before the product does
    return cast_to(xp, total * factor * wide**order * root * root, kept)


def _bessel_slope(x: Any, order: int) -> Any:
    """Return ``(I_(n-1)(x) + I_(n+1)(x)) / 2``, where ``I_-1 = I_1``."""
    above = F.bessel_i(x, order=order + 1)
    # each halved: their sum could overflow
    return 0.5 * F.bessel_i(x, order=order - 1) + 0.5 * above if order else above


_bessel = op(
    "bessel_i",
    _bessel_kernel,
    gradients={
        "x": lambda g, x, order: g * _bessel_slope(x, order),
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
    The gradient is the function of order 1, which has gradients of every order.

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

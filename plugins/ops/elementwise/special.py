"""Elementwise functions beyond the common ones: special functions, choices, angles, bits.

NumPy and libraries like it have kernels of their own for most of them; the formulas beside are for
libraries that have no more than the array API standard.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from importlib import import_module
from typing import Any

import numpy as np

from ....core.extend import (
    NONDIFF,
    BackendUnavailable,
    F,
    Op,
    Tensor,
    as_tensor,
    beside,
    is_transformed,
    ops,
)
from ..common.families import SCALARS, cast_to, elementwise, kind_of, named, op, reals
from .arithmetic import LN2, conj, divide, lead, trunc

__all__ = [
    "around",
    "cbrt",
    "conjugate",
    "copysign",
    "deg2rad",
    "degrees",
    "digamma",
    "divmod",
    "erf",
    "erfc",
    "fabs",
    "fix",
    "float_power",
    "fmax",
    "fmin",
    "fmod",
    "heaviside",
    "isclose",
    "isneginf",
    "isposinf",
    "ldexp",
    "lgamma",
    "logaddexp2",
    "modf",
    "nan_to_num",
    "nextafter",
    "polygamma",
    "rad2deg",
    "radians",
    "real_if_close",
    "signbit",
    "sinc",
    "true_divide",
]

RADIANS = math.pi / 180.0


def native(name: str, portable: Callable[..., Any]) -> Callable[..., Any]:
    """Return the kernel of a function that NumPy and CuPy have, and the standard has not."""

    def kernel(xp: Any, *arrays: Any) -> Any:
        own = getattr(xp, name, None)
        return portable(xp, *arrays) if own is None else own(*arrays)

    return kernel


# -- arithmetic ------------------------------------------------------------------------------------

fabs = elementwise(
    "fabs",
    native("fabs", lambda xp, x: xp.abs(x)),
    x=lambda g, x: g * F.sign(x),
    holomorphic=False,
    doc="""Return the absolute value of a real ``x`` as a float, elementwise.

    Notes
    -----
    The gradient is ``sign(x)``, which is 0 at 0.

    Examples
    --------
    >>> gt.fabs([-3, 2]).tolist()
    [3.0, 2.0]
    """,
)
fmod = elementwise(
    "fmod",
    native("fmod", lambda xp, x, y: x - y * xp.trunc(x / y)),
    x=lambda g: g,
    # a whole number already, but for rounding
    y=lambda g, x, y, out: -g * F.round((x - out) / y),
    doc="""Return the remainder of ``x / y`` with the sign of ``x``, as in C, elementwise.

    Notes
    -----
    The gradient of ``x`` is 1 and that of ``y`` is ``-trunc(x / y)``, at the jumps too.

    Examples
    --------
    >>> gt.fmod([7.0, -7.0], 3.0).tolist()
    [1.0, -1.0]
    >>> gt.remainder([7.0, -7.0], 3.0).tolist()
    [1.0, 2.0]
    """,
)
cbrt = elementwise(
    "cbrt",
    native("cbrt", lambda xp, x: xp.sign(x) * xp.abs(x) ** (1.0 / 3.0)),
    x=lambda g, out: g / (3.0 * (out * out)),
    doc="""Return the real cube root of ``x``, elementwise.

    Notes
    -----
    The gradient is ``1 / (3 * cbrt(x)**2)``, which is infinite at 0.

    Examples
    --------
    >>> gt.round(gt.cbrt([8.0, -27.0]), 4).tolist()
    [2.0, -3.0]
    """,
)
ldexp = elementwise(
    "ldexp",
    native("ldexp", lambda xp, x, y: x * 2.0 ** (y if type(y) is int else xp.astype(y, x.dtype))),
    kind=Op,  # a Python integer stays one: it must not follow the dtype of ``x``
    x=lambda g, y: F.ldexp(g, y),
    y=NONDIFF,
    doc="""Return ``x * 2**y`` for integers ``y``, elementwise.

    Parameters
    ----------
    x
        A real tensor, array or number.
    y
        The exponents: integers, of a shape that broadcasts with ``x``. They have no gradient.

    Returns
    -------
    A tensor of the broadcast shape and the dtype of ``x``; integers give floats.

    Raises
    ------
    TypeError
        If ``x`` is complex, or ``y`` does not hold integers.
    ValueError
        If the shapes do not broadcast.

    Examples
    --------
    >>> gt.ldexp([1.0, 3.0], [4, -1]).tolist()
    [16.0, 1.5]
    """,
)
logaddexp2 = elementwise(
    "logaddexp2",
    native("logaddexp2", lambda xp, x, y: xp.logaddexp(x * LN2, y * LN2) / LN2),
    x=lambda g, x, y: g * F.sigmoid(lead(x, y) * LN2),
    y=lambda g, x, y: g * F.sigmoid(lead(y, x) * LN2),
    doc="""Return ``log2(2**x + 2**y)``, elementwise, without overflow.

    Examples
    --------
    >>> gt.logaddexp2(1000.0, 1000.0).item()
    1001.0
    """,
)


@named
def float_power(x: Any, y: Any) -> Tensor:
    """Return ``x ** y`` in double precision at least.

    Parameters
    ----------
    x, y
        Numbers or tensors of any dtype; their shapes broadcast.

    Returns
    -------
    A ``float64`` tensor of the broadcast shape, ``complex128`` if ``x`` or ``y`` is complex.

    Raises
    ------
    TypeError
        If an argument is not a tensor, an array or a number.
    ValueError
        If the shapes do not broadcast.

    Notes
    -----
    Integers may have negative integer exponents, which :func:`gradtape.power` refuses. A negative
    base with a fractional exponent gives nan.

    Examples
    --------
    >>> gt.float_power([2, 4], -1).tolist()
    [0.5, 0.25]
    """
    if type(x) in SCALARS and type(y) in SCALARS:
        x = as_tensor(x)
    # numbers are weak, and follow the tensor beside them
    x, y = (v if type(v) in SCALARS else as_tensor(v) for v in (x, y))
    mixed = np.result_type(*(v if type(v) in SCALARS else v.dtype for v in (x, y)))
    wide = "complex128" if mixed.kind == "c" else "float64"
    x, y = (v if type(v) in SCALARS else ops["cast"](v, dtype=wide) for v in (x, y))
    return ops["power"](x, y)


@named
def divmod(x: Any, y: Any) -> tuple[Tensor, Tensor]:
    """Return ``(x // y, x % y)``, elementwise; the quotient has no gradient.

    Parameters
    ----------
    x, y
        Real numbers or tensors; their shapes broadcast.

    Returns
    -------
    Two tensors of the broadcast shape and the promoted dtype, from :func:`gradtape.floor_divide`
    and from :func:`gradtape.remainder`.

    Raises
    ------
    TypeError
        If an argument is complex, or not a tensor, an array or a number.
    ValueError
        If the shapes do not broadcast.

    Examples
    --------
    >>> [part.tolist() for part in gt.divmod([7.0, -7.0], 2.0)]
    [[3.0, -4.0], [1.0, 1.0]]
    """
    return ops["floor_divide"](x, y), ops["remainder"](x, y)


@named
def modf(x: Any) -> tuple[Tensor, Tensor]:
    """Return the fractional part of ``x`` and its integral part, which has no gradient.

    Parameters
    ----------
    x
        A real tensor of any shape.

    Returns
    -------
    Two tensors of the shape and dtype of ``x``; integers give floats. Both have the sign of ``x``.
    The fraction of an infinite value is 0, of that value's sign.

    Raises
    ------
    TypeError
        If ``x`` is complex, or not a tensor, an array or a number.

    Examples
    --------
    >>> [part.tolist() for part in gt.modf([1.5, -2.25])]
    [[0.5, -0.25], [1.0, -2.0]]
    """
    x = as_tensor(x)
    if x.dtype.kind not in "fc":
        x = ops["cast"](x, dtype=np.modf(np.empty(0, x.dtype))[0].dtype.name)
    whole = ops["trunc"](x)
    fraction = ops["where"](ops["isinf"](x), 0.0, x - whole)
    return ops["copysign"](fraction, ops["stop_gradient"](x)), whole


true_divide, conjugate = divide, conj

# -- angles ----------------------------------------------------------------------------------------

deg2rad = radians = elementwise(
    "deg2rad",
    native("deg2rad", lambda xp, x: x * RADIANS),
    x=lambda g: g * RADIANS,
    doc="""Return degrees as radians, elementwise.

    Examples
    --------
    >>> round(gt.deg2rad(180.0).item(), 4)
    3.1416
    """,
)
rad2deg = degrees = elementwise(
    "rad2deg",
    native("rad2deg", lambda xp, x: x / RADIANS),
    x=lambda g: g / RADIANS,
    doc="""Return radians as degrees, elementwise.

    Examples
    --------
    >>> round(gt.rad2deg(np.pi).item(), 2)
    180.0
    """,
)


def _sinc_kernel(xp: Any, x: Any, *, order: int = 0) -> Any:
    """Return the derivative of some order of ``sin(pi x) / (pi x)``.

    With ``f = sin(pi x) / (pi x)``, the n-th derivative of ``x f`` gives
    ``x f_n + n f_(n-1) = pi**(n-1) sin(pi x + n pi/2)``. Near 0 that cancels, and the power series
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
    angle = math.pi * far
    closed = xp.sin(angle) / angle
    for n in range(1, order + 1):
        wave = (xp.sin, xp.cos)[n % 2](angle) * (-1.0) ** (n // 2)
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
    infer=lambda x, order: (x.shape, x.dtype if x.dtype.kind in "fc" else np.dtype(np.float64)),
    holomorphic=True,
    batch="elementwise",
    doc="Return ``sin(pi x) / (pi x)``, 1 at 0, or its derivative of some order.",
)


@named
def sinc(x: Any) -> Tensor:
    """Return ``sin(pi x) / (pi x)``, elementwise, which is 1 at 0.

    Parameters
    ----------
    x
        A tensor of any shape and dtype.

    Returns
    -------
    A tensor of the shape and dtype of ``x``; integers give ``float64``.

    Raises
    ------
    TypeError
        If ``x`` is not a tensor, an array or a number.

    Notes
    -----
    Gradients are exact near 0 at every order: they are no quotients there, but power series.

    Examples
    --------
    >>> gt.sinc(0.0).item()
    1.0
    >>> round(gt.sinc(0.5).item(), 4)
    0.6366
    """
    return _sinc(x)


# -- choice ----------------------------------------------------------------------------------------


def _took_x(x: Any, out: Any) -> Any:
    return F.logical_or(x == out, out != out)  # nan only where both are


def _skip_nan(name: str) -> Callable[..., Any]:
    def kernel(xp: Any, x: Any, y: Any) -> Any:
        # either may be a Python number
        x, y = (
            v if hasattr(v, "shape") else xp.asarray(v, dtype=w.dtype) for v, w in ((x, y), (y, x))
        )
        best = getattr(xp, name)(x, y)
        return xp.where(xp.isnan(x), y, xp.where(xp.isnan(y), x, best))

    return kernel


fmax = elementwise(
    "fmax",
    native("fmax", _skip_nan("maximum")),
    x=lambda g, x, out: F.where(_took_x(x, out), g, 0.0),
    y=lambda g, x, out: F.where(_took_x(x, out), 0.0, g),
    holomorphic=False,
    doc="""Return the larger of ``x`` and ``y``, elementwise; the other where one is nan.

    Notes
    -----
    At a tie the gradient goes to ``x``.

    Examples
    --------
    >>> gt.fmax([1.0, 5.0, np.nan], 3.0).tolist()
    [3.0, 5.0, 3.0]
    """,
)
fmin = elementwise(
    "fmin",
    native("fmin", _skip_nan("minimum")),
    x=lambda g, x, out: F.where(_took_x(x, out), g, 0.0),
    y=lambda g, x, out: F.where(_took_x(x, out), 0.0, g),
    holomorphic=False,
    doc="""Return the smaller of ``x`` and ``y``, elementwise; the other where one is nan.

    Notes
    -----
    At a tie the gradient goes to ``x``.

    Examples
    --------
    >>> gt.fmin([1.0, 5.0, np.nan], 3.0).tolist()
    [1.0, 3.0, 3.0]
    """,
)
heaviside = elementwise(
    "heaviside",
    native(
        "heaviside",
        lambda xp, x, y: xp.where(x == 0, y, xp.where(xp.isnan(x), x, xp.astype(x > 0, x.dtype))),
    ),
    x=lambda g: F.zeros_like(g),
    y=lambda g, x: F.where(x == 0, g, 0.0),
    doc="""Return 0 for ``x < 0``, 1 for ``x > 0`` and ``y`` at 0, elementwise.

    Notes
    -----
    The gradient of ``x`` is 0, and that of ``y`` is 1 where ``x`` is 0.

    Examples
    --------
    >>> gt.heaviside([-2.0, 0.0, 3.0], 0.5).tolist()
    [0.0, 0.5, 1.0]
    """,
)
copysign = elementwise(
    "copysign",
    "copysign",
    x=lambda g, x, out: g * (F.sign(x) * F.sign(out)),
    y=lambda g: F.zeros_like(g),
    holomorphic=False,
    doc="""Return ``x`` with the sign of ``y``, elementwise.

    Notes
    -----
    The gradient of ``x`` is 1 where its sign stays, -1 where it changes, and 0 at 0. That of ``y``
    is 0.

    Examples
    --------
    >>> gt.copysign([1.0, -2.0], [-0.0, 3.0]).tolist()
    [-1.0, 2.0]
    """,
)


def _real_finite(xp: Any, x: Any, nan: float, posinf: float | None, neginf: float | None) -> Any:
    limits = xp.finfo(x.dtype)
    high = limits.max if posinf is None else posinf
    low = limits.min if neginf is None else neginf
    infinite = xp.isinf(x)
    # numbers as arrays without axes: the standard takes no others beside an array here
    nan, high, low = (xp.asarray(value, dtype=x.dtype) for value in (nan, float(high), float(low)))
    return xp.where(xp.isnan(x), nan, xp.where(infinite, xp.where(x > 0, high, low), x))


def _finite_kernel(
    xp: Any,
    x: Any,
    *,
    nan: float = 0.0,
    posinf: float | None = None,
    neginf: float | None = None,
) -> Any:
    kind = kind_of(x.dtype)
    if kind == "f":
        return _real_finite(xp, x, nan, posinf, neginf)
    if kind != "c":
        return x
    imaginary = _real_finite(xp, xp.imag(x), nan, posinf, neginf)
    return _real_finite(xp, xp.real(x), nan, posinf, neginf) + 1j * imaginary


def _finite_rule(g: Any, x: Any) -> Any:
    if x.dtype.kind != "c":
        return F.where(F.isfinite(x), g, 0.0)
    real = F.where(F.isfinite(F.real(x)), F.real(g), 0.0)
    return real + 1j * F.where(F.isfinite(F.imag(x)), F.imag(g), 0.0)


_nan_to_num = op(
    "nan_to_num",
    _finite_kernel,
    gradients={"x": _finite_rule},
    infer=lambda x, nan, posinf, neginf: (x.shape, x.dtype),
    batch="elementwise",
    doc="Replace nan and infinities by numbers.",
)


@named
def nan_to_num(
    x: Any,
    copy: bool = True,
    nan: float = 0.0,
    posinf: float | None = None,
    neginf: float | None = None,
) -> Tensor:
    """Return ``x`` with numbers for nan and infinities.

    Parameters
    ----------
    x
        A tensor of any shape and dtype; of a complex one both parts are treated.
    copy
        Only for NumPy's signature: tensors never change, so the result is always new.
    nan, posinf, neginf
        What replaces nan, positive and negative infinity; by default 0, the largest and the lowest
        number of the dtype.

    Returns
    -------
    A tensor of the shape and dtype of ``x``.

    Raises
    ------
    TypeError
        If ``x`` is not a tensor, an array or a number.
    ValueError
        If ``copy`` is false.

    Notes
    -----
    What was replaced has the gradient 0.

    Examples
    --------
    >>> gt.nan_to_num([1.0, np.nan, np.inf], posinf=9.0).tolist()
    [1.0, 0.0, 9.0]
    """
    if not copy:
        raise ValueError("nan_to_num: a tensor is not changed in place; leave copy=True")
    limits = [None if value is None else float(value) for value in (posinf, neginf)]
    return _nan_to_num(x, nan=float(nan), posinf=limits[0], neginf=limits[1])


# -- special functions -----------------------------------------------------------------------------


def _special(name: str, x: Any, *first: Any) -> Any:
    """Apply a function of SciPy, or of CuPy's counterpart to it; keep float dtypes."""
    library = type(x).__module__.partition(".")[0]
    module = {"numpy": "scipy.special", "cupy": "cupyx.scipy.special"}.get(library)
    if module is None:
        raise TypeError(f"{name}: there is no kernel for {library} arrays; it needs NumPy or CuPy")
    try:
        function = getattr(import_module(module), name)
    except ImportError as error:
        raise BackendUnavailable(
            f"{name}: its kernel comes from SciPy, which is not installed; pip install scipy"
        ) from error
    kept = x.dtype if kind_of(x.dtype) in "fc" else np.dtype(np.float64)
    result = function(*first, x.astype(kept, copy=False))
    return result if result.dtype == kept else result.astype(kept)


def _special_op(name: str, rule: Callable[..., Any], doc: str, scipy: str | None = None) -> Op:
    return op(
        name,
        lambda xp, x: _special(scipy or name, x),
        gradients={"x": rule},
        infer=lambda x: (x.shape, x.dtype if x.dtype.kind in "fc" else np.dtype(np.float64)),
        holomorphic=True,
        batch="elementwise",
        doc=doc,
    )


_SLOPE = 2.0 / math.sqrt(math.pi)
erf = _special_op(
    "erf",
    lambda g, x: g * (_SLOPE * F.exp(-(x * x))),
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
    lambda g, x: g * (-_SLOPE * F.exp(-(x * x))),
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
    lambda xp, x, *, n: _special("polygamma", x, n),
    gradients={"x": lambda g, x, n: g * F.polygamma(x, n=n + 1)},
    infer=lambda x, n: (x.shape, x.dtype if x.dtype.kind in "fc" else np.dtype(np.float64)),
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


# -- tests: without gradients ----------------------------------------------------------------------


signbit = elementwise(
    "signbit",
    x=NONDIFF,
    doc="""Return whether the sign of ``x`` is negative, elementwise; -0.0 is.

    Examples
    --------
    >>> gt.signbit([-1.0, -0.0, 2.0]).tolist()
    [True, True, False]
    """,
)
nextafter = elementwise(
    "nextafter",
    x=NONDIFF,
    y=NONDIFF,
    doc="""Return the float next to ``x`` towards ``y``, elementwise; it has no gradient.

    Examples
    --------
    >>> gt.nextafter(gt.constant(1.0), 2.0).item() == 1.0 + 2.0**-23
    True
    """,
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


@named
def isclose(
    a: Any, b: Any, rtol: float = 1e-05, atol: float = 1e-08, equal_nan: bool = False
) -> Tensor:
    """Return whether ``a`` and ``b`` differ by no more than ``atol + rtol * |b|``.

    Parameters
    ----------
    a, b
        Numbers or tensors; their shapes broadcast. Infinities are close to themselves only.
    rtol, atol
        The relative and the absolute tolerance, 1e-5 and 1e-8 by default.
    equal_nan
        Whether nan is close to nan; false by default.

    Returns
    -------
    A boolean tensor of the broadcast shape.

    Raises
    ------
    TypeError
        If an argument is not a tensor, an array or a number.
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
        a = beside(a, b)
    a = as_tensor(a)
    b = beside(b, a)
    if b.dtype.kind not in "fc":  # differences of integers wrap, of booleans there are none
        b = ops["cast"](b, dtype="float64")
    near = ops["abs"](a - b) <= atol + rtol * ops["abs"](b)
    result = ops["logical_or"](ops["logical_and"](near, ops["isfinite"](b)), a == b)
    if equal_nan:
        both = ops["logical_and"](ops["isnan"](a), ops["isnan"](b))
        result = ops["logical_or"](result, both)
    return result


@named
def real_if_close(a: Any, tol: float = 100) -> Tensor:
    """Return the real parts if all imaginary parts are near 0, else ``a`` as it is.

    Parameters
    ----------
    a
        A tensor of any shape and dtype; its values must be known, which in a trace they are not.
    tol
        How near: a multiple of the dtype's precision if above 1, else an absolute bound. 100 by
        default.

    Returns
    -------
    A tensor of the shape of ``a``, real or complex.

    Raises
    ------
    TypeError
        If ``a`` is not a tensor, an array or a number.
    ValueError
        In a trace, or under ``vmap``: the result's dtype depends on the values.

    Examples
    --------
    >>> gt.real_if_close([1 + 1e-12j, 2 + 0j]).tolist()
    [1.0, 2.0]
    >>> gt.real_if_close([1 + 1j]).tolist()
    [(1+1j)]
    """
    x = as_tensor(a)
    if x.dtype.kind != "c":
        return x
    if is_transformed(x.array):
        raise ValueError(
            "real_if_close: its dtype depends on values that are not known here; use gradtape.real"
        )
    bound = tol * float(np.finfo(x.dtype).eps) if tol > 1 else float(tol)
    near = ops["all"](ops["abs"](ops["imag"](x)) < bound, axis=None)
    return ops["real"](x) if bool(near) else x


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
    A tensor of the shape and dtype of ``x``.

    Raises
    ------
    TypeError
        If ``x`` is not a tensor, an array or a number.

    Examples
    --------
    >>> gt.around([0.5, 1.5, -1.7]).tolist()
    [0.0, 2.0, -2.0]
    """
    return ops["round"](x, decimals=int(decimals))


fix = trunc

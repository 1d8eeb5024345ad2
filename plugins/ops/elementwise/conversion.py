"""Identity, stopped gradients, casts, and the parts of complex numbers.

The parts are the real and the imaginary one, the conjugate and the angle.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ....core.extend import (
    NONDIFF,
    F,
    Tensor,
    as_tensor,
    is_transformed,
    kind_of,
    ops,
    refuse_bfloat16,
)
from ..common.kernels import cast_to, reals, standard
from ..common.op_builders import elementwise, named, op
from .arithmetic import nonzero_divisor

# public as gradtape.copy, since NumPy's identity is a matrix; files know it by this name
_copy = elementwise(
    "identity",
    lambda xp, x: x,
    x=lambda g: g,
    record={"identity": True, "integers": "moves"},
    doc="Return ``x`` as a new tensor.",
)
stop_gradient = elementwise(
    "stop_gradient",
    lambda xp, x: x,
    x=NONDIFF,
    record={"identity": True, "ends_gradients": True, "integers": "moves"},
    doc="""Return ``x`` as a constant: no gradient flows through it.

    Examples
    --------
    >>> gt.grad(lambda x: x * gt.stop_gradient(x))(3.0).item()
    3.0
    """,
)

_cast = op(
    "cast",
    lambda xp, x, *, dtype: cast_to(xp, x, dtype),
    gradients={"x": lambda g, x_like: F.cast_like(g, x_like)},
    infer=lambda x, dtype: (x.shape, np.dtype(dtype)),
    batch="elementwise",
    integers=lambda x, **params: x,
)


def _round_to_bfloat16_kernel(xp: Any, x: Any) -> Any:
    """Return ``x`` rounded to the upper half of a ``float32``, halves to even."""
    x = cast_to(xp, reals(x), np.float32)
    if isinstance(x.dtype, np.dtype) and hasattr(x, "view"):
        bits = x.view(np.uint32)
        above = ((bits + (((bits >> 16) & 1) + 0x7FFF)) >> 16) << 16
        return xp.where(xp.isnan(x), x, above.view(np.float32))
    # the array API cannot look at bits: round to a multiple of the last of 8 binary places
    wide = xp.astype(x, xp.float64)
    usual = xp.isfinite(x) & (x != 0)
    exponent = xp.floor(xp.log2(xp.abs(xp.where(usual, wide, xp.ones_like(wide)))))
    place = 2.0 ** (xp.maximum(exponent, xp.full_like(exponent, -126.0)) - 7)
    return xp.astype(xp.where(usual, xp.round(wide / place) * place, wide), xp.float32)


# what stands for bfloat16, which NumPy has not: gradients are rounded as those of a cast would be
_round_to_bfloat16 = op(
    "round_to_bfloat16",
    _round_to_bfloat16_kernel,
    gradients={"x": lambda g, x_like: F.cast_like(F.round_to_bfloat16(g), x_like)},
    infer=lambda x: (x.shape, np.dtype(np.float32)),
    jvp="linear",
    batch="elementwise",
    doc="Return ``x`` in ``float32``, its values rounded to those of ``bfloat16``.",
)


def cast(x: Any, dtype: Any) -> Tensor:
    """Return ``x`` in another dtype.

    Parameters
    ----------
    dtype
        A dtype or its name. A complex value cast to a real dtype keeps its real part; as a
        boolean it is true unless it is 0.

    Returns
    -------
    A tensor of the shape of ``x``.

    Raises
    ------
    TypeError
        If ``dtype`` is neither numeric nor boolean.

    Notes
    -----
    Between floating and complex dtypes, gradients are cast back to the dtype of ``x``. Casts to and
    from integers have no gradient.

    Examples
    --------
    >>> gt.cast([1.7, -1.7], "int32").tolist()
    [1, -1]
    >>> gt.cast([0, 2], bool).tolist()
    [False, True]
    """
    try:
        wanted = np.dtype(dtype)
    except TypeError as error:
        refuse_bfloat16(dtype)
        raise TypeError(f"cast: {dtype!r} is not a dtype; use a name such as 'float32'") from error
    if wanted.kind not in "biufc":
        refuse_bfloat16(wanted)
        raise TypeError(f"cast: a tensor holds numbers or booleans, not dtype {wanted}")
    return _cast(x, dtype=wanted.name)


@named
def copy(x: Any) -> Tensor:
    """Return the same values as a new tensor; gradients reach ``x``.

    Returns
    -------
    Tensor
        A tensor of the shape and dtype of ``x``, with another identity on tapes.

    Examples
    --------
    >>> gt.copy(gt.constant([1, 2])).tolist()
    [1, 2]
    """
    return _copy(x)


# -- complex numbers -------------------------------------------------------------------------------


def _conj_kernel(xp: Any, x: Any) -> Any:
    if kind_of(x.dtype) == "b":
        return cast_to(xp, x, np.int8)  # NumPy has no loop for booleans
    return xp.conj(x) if kind_of(x.dtype) == "c" else x


conj = elementwise(
    "conj",
    _conj_kernel,
    x=lambda g: F.conj(g),
    holomorphic=False,
    doc="""Return the complex conjugate of ``x``, elementwise.

    Examples
    --------
    >>> gt.conj([1 + 2j, 1 - 1j]).tolist()
    [(1-2j), (1+1j)]
    """,
)
conjugate = conj
real = elementwise(
    "real",
    lambda xp, x: xp.real(x) if kind_of(x.dtype) == "c" else x,
    x=lambda g, x_like: F.cast_like(g, x_like),
    holomorphic=False,
    doc="""Return the real part of ``x``, elementwise.

    Notes
    -----
    The gradient is real: the imaginary part of ``x`` has none.

    Examples
    --------
    >>> gt.real([1 + 2j, 3.0]).tolist()
    [1.0, 3.0]
    """,
)
imag = elementwise(
    "imag",
    lambda xp, x: xp.imag(x) if kind_of(x.dtype) == "c" else xp.zeros_like(x),
    x=lambda g, x_like: F.cast_like(g * 1j, x_like),
    holomorphic=False,
    doc="""Return the imaginary part of ``x``, elementwise; 0 for real numbers.

    Notes
    -----
    The gradient is imaginary: the real part of ``x`` has none.

    Examples
    --------
    >>> gt.imag([1 + 2j, 3.0]).tolist()
    [2.0, 0.0]
    """,
)


def _angle_kernel(xp: Any, x: Any) -> Any:
    atan2 = standard(xp, "atan2", "arctan2")
    if kind_of(x.dtype) == "b":
        x = cast_to(xp, x, np.int64)  # as for NumPy, which measures them from an integer 0
    return atan2(xp.imag(x), xp.real(x)) if kind_of(x.dtype) == "c" else atan2(xp.zeros_like(x), x)


def _angle_slope(g: Any, x: Any) -> Any:
    if x.dtype.kind != "c":
        return F.zeros_like(g)
    # i z / |z|**2, which is i / conj(z); 0, a subgradient, at 0
    return F.where(x == 0, 0.0, (g * 1j) / F.conj(nonzero_divisor(x)))


_angle = elementwise(
    "angle",
    _angle_kernel,
    x=_angle_slope,
    holomorphic=False,
    doc="Return the angle of ``x`` in the complex plane, in radians.",
)


@named
def angle(z: Any, deg: bool = False) -> Tensor:
    """Return the angle of ``z`` in the complex plane, from -pi to pi.

    Parameters
    ----------
    z
        A tensor of any shape and dtype; negative real numbers have the angle pi, and 0 has 0.
    deg
        Return degrees instead of radians; false by default.

    Returns
    -------
    A real tensor of the shape of ``z``.

    Notes
    -----
    The gradient is ``1j / conj(z)``, and 0 at 0 and for real dtypes.

    Examples
    --------
    >>> gt.round(gt.angle([1.0, 1j, -1.0], deg=True), 3).tolist()
    [0.0, 90.0, 180.0]
    """
    turned = _angle(z)
    return turned * (180.0 / math.pi) if deg else turned


@named
def real_if_close(a: Any, tol: float = 100) -> Tensor:
    """Return the real parts if all imaginary parts are near 0, otherwise ``a``.

    Parameters
    ----------
    a
        A tensor of any shape and dtype. Its values must be known, so it does not work in a trace.
    tol
        How near: a multiple of the dtype's precision if above 1, otherwise an absolute bound. 100
        by default.

    Returns
    -------
    A tensor of the shape of ``a``, real or complex.

    Raises
    ------
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

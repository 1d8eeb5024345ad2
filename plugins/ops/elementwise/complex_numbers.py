"""The parts of complex numbers: real, imaginary, conjugate, angle."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ....core.extend import F, Tensor, as_tensor, is_transformed, ops
from ..common.kernels import cast_to, kind_of, standard
from ..common.op_builders import elementwise, named
from .arithmetic import nonzero_divisor


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

    Raises
    ------
    TypeError
        If ``z`` is not a tensor, an array or a number.

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

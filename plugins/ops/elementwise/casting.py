"""Ops that keep the values: identity, stopped gradients, and casts."""

from __future__ import annotations

from typing import Any

import numpy as np

from ....core.extend import NONDIFF, F, Tensor, refuse_bfloat16
from ..common.kernels import cast_to, reals
from ..common.op_builders import elementwise, named, op

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
    x
        A tensor of any shape and dtype.
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

    Parameters
    ----------
    x
        A tensor of any shape and dtype.

    Returns
    -------
    Tensor
        A tensor of the shape and dtype of ``x``, with another identity on tapes.

    Raises
    ------
    TypeError
        If ``x`` does not convert to a tensor.

    Examples
    --------
    >>> gt.copy(gt.constant([1, 2])).tolist()
    [1, 2]
    """
    return _copy(x)

"""Integers: their bits, divisors and multiples. These ops have no gradients."""

from __future__ import annotations

from typing import Any

from ....core.extend import NONDIFF, Op, numpy_dtype
from ..common.kernels import native, standard
from ..common.op_builders import elementwise


def _bits(name: str, older: str, doc: str, *inputs: str) -> Op:
    def kernel(xp: Any, *arrays: Any) -> Any:
        return standard(xp, name, older)(*arrays)

    rules: dict[str, Any] = dict.fromkeys(inputs, NONDIFF)
    return elementwise(name, kernel, doc=doc, **rules)


bitwise_and = _bits(
    "bitwise_and",
    "",
    """Return ``x & y`` of integers or booleans, bit by bit; it has no gradient.

    Examples
    --------
    >>> gt.bitwise_and(12, [10, 4]).tolist()
    [8, 4]
    """,
    "x",
    "y",
)
bitwise_or = _bits(
    "bitwise_or",
    "",
    """Return ``x | y`` of integers or booleans, bit by bit; it has no gradient.

    Examples
    --------
    >>> gt.bitwise_or(12, [10, 4]).tolist()
    [14, 12]
    """,
    "x",
    "y",
)
bitwise_xor = _bits(
    "bitwise_xor",
    "",
    """Return ``x ^ y`` of integers or booleans, bit by bit; it has no gradient.

    Examples
    --------
    >>> gt.bitwise_xor(12, [10, 4]).tolist()
    [6, 8]
    """,
    "x",
    "y",
)
bitwise_invert = bitwise_not = invert = _bits(
    "bitwise_invert",
    "invert",
    """Return ``~x`` of integers or booleans, bit by bit; it has no gradient.

    Examples
    --------
    >>> gt.bitwise_invert([0, 5, -1]).tolist()
    [-1, -6, 0]
    """,
    "x",
)
bitwise_left_shift = left_shift = _bits(
    "bitwise_left_shift",
    "left_shift",
    """Return ``x << y`` of integers, ``x * 2**y`` as long as it fits; it has no gradient.

    Examples
    --------
    >>> gt.bitwise_left_shift([1, 3], 2).tolist()
    [4, 12]
    """,
    "x",
    "y",
)
bitwise_right_shift = right_shift = _bits(
    "bitwise_right_shift",
    "right_shift",
    """Return ``x >> y`` of integers, ``floor(x / 2**y)``; it has no gradient.

    Examples
    --------
    >>> gt.bitwise_right_shift([16, -5], 1).tolist()
    [8, -3]
    """,
    "x",
    "y",
)


def _gcd(xp: Any, x: Any, y: Any) -> Any:
    """Return the greatest common divisor by Euclid's algorithm."""
    # either may be a Python number
    x, y = (
        xp.abs(v if hasattr(v, "shape") else xp.asarray(v, dtype=w.dtype))
        for v, w in ((x, y), (y, x))
    )
    while xp.any(y != 0):
        rest = xp.where(y == 0, y, x % xp.where(y == 0, xp.ones_like(y), y))
        x, y = xp.where(y == 0, x, y), rest
    return x


def _lcm(xp: Any, x: Any, y: Any) -> Any:
    divisor = _gcd(xp, x, y)
    x, y = (xp.asarray(v, dtype=divisor.dtype) for v in (x, y))
    return xp.abs(x * (y // xp.where(divisor == 0, xp.ones_like(divisor), divisor)))


def _bit_count(xp: Any, x: Any) -> Any:
    x = xp.abs(x)
    total = xp.zeros_like(x)
    for bit in range(8 * numpy_dtype(x.dtype).itemsize):
        total = total + ((x >> bit) & 1)
    return xp.astype(total, xp.uint8)


gcd = elementwise(
    "gcd",
    native("gcd", _gcd),
    x=NONDIFF,
    y=NONDIFF,
    doc="""Return the greatest common divisor of integers ``|x|`` and ``|y|``; it has no gradient.

    Examples
    --------
    >>> gt.gcd([12, -9], 6).tolist()
    [6, 3]
    """,
)
lcm = elementwise(
    "lcm",
    native("lcm", _lcm),
    x=NONDIFF,
    y=NONDIFF,
    doc="""Return the lowest common multiple of integers ``|x|`` and ``|y|``; it has no gradient.

    Examples
    --------
    >>> gt.lcm([4, -9], 6).tolist()
    [12, 18]
    """,
)
bitwise_count = elementwise(
    "bitwise_count",
    native("bitwise_count", _bit_count),
    x=NONDIFF,
    doc="""Return how many bits are 1 in the absolute value of integers; it has no gradient.

    Examples
    --------
    >>> gt.bitwise_count([7, -8]).tolist()
    [3, 1]
    """,
)

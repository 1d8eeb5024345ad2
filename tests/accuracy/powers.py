"""Powers, roots, exponentials and logarithms."""

from __future__ import annotations

import math
from typing import Any

from mpmath import mp, mpf

from .row import LN2, LN10, rounded, row, same

__all__ = ["POWERS"]


def _pow(y: float) -> dict[str, Any]:
    def second(x: Any) -> Any:
        exponent = rounded(y)
        return exponent * (exponent - 1) * x ** (exponent - 2)

    return {
        "value": lambda x: x ** rounded(y),
        "first": lambda x: rounded(y) * x ** (rounded(y) - 1),
        "second": second,
        "peers": f"x ** {y}",
        "low": -math.inf if float(y).is_integer() else 0.0,
        "near": (0.0, 1.0, -1.0),
        "inside": "values",
    }


POWERS = [
    *(
        row("power", f"x ** {y}", **_pow(y))
        for y in (2, 3, -1, -2, 0.5, 1.5, -0.5, 2.5, 0.3, 0.7, -0.1, -1.7, 7.3, 1 / 3, 30.3, 1e-3)
    ),
    *(
        row(
            "power",
            f"{b} ** x",
            lambda x, b=b: rounded(b) ** x,
            lambda x, b=b: rounded(b) ** x * mp.log(rounded(b)),
            lambda x, b=b: rounded(b) ** x * mp.log(rounded(b)) ** 2,
            f"{b} ** x",
            inside="values",
        )
        for b in (2.0, 10.0, 0.5, 1.001)
    ),
    same("square", lambda x: x * x, lambda x: 2 * x, lambda x: mpf(2)),
    same("reciprocal", lambda x: 1 / x, lambda x: -1 / x**2, lambda x: 2 / x**3),
    same(
        "sqrt",
        mp.sqrt,
        lambda x: 1 / (2 * mp.sqrt(x)),
        lambda x: -1 / (4 * x * mp.sqrt(x)),
        low=0.0,
    ),
    row(
        "cbrt",
        "gt.cbrt(x)",
        lambda x: mp.sign(x) * mp.cbrt(abs(x)),
        lambda x: 1 / (3 * mp.cbrt(abs(x)) ** 2),
        lambda x: -2 / (9 * x * mp.cbrt(abs(x)) ** 2),
        ("jnp.cbrt(x)", ""),
    ),
    same("exp", mp.exp, mp.exp, mp.exp),
    same("exp2", lambda x: 2**x, lambda x: 2**x * LN2, lambda x: 2**x * LN2**2, inside="values"),
    same("expm1", mp.expm1, mp.exp, mp.exp),
    *(
        same(
            op,
            lambda x, b=b: mp.log(x) / b,
            lambda x, b=b: 1 / (x * b),
            lambda x, b=b: -1 / (x * x * b),
            low=0.0,
            near=(0.0, 1.0),
        )
        for op, b in (("log", mpf(1)), ("log2", LN2), ("log10", LN10))
    ),
    same(
        "log1p",
        mp.log1p,
        lambda x: 1 / (1 + x),
        lambda x: -1 / (1 + x) ** 2,
        low=-1.0,
        near=(0.0, -1.0),
    ),
]

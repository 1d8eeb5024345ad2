"""A row of the table of accuracy: a function, its derivatives, and how to build a row.

A row holds the same call for three libraries, and closed forms of its first and second derivatives
in mpmath. The forms neither cancel nor overflow with mpmath's numbers, so 60 digits are enough.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from mpmath import mp, mpf

__all__ = [
    "LN2",
    "LN10",
    "QUARTERS",
    "Form",
    "Row",
    "arguments_dtype",
    "between",
    "gauss",
    "one",
    "phi",
    "rounded",
    "row",
    "same",
    "sigma",
    "sigma_slope",
    "zero",
]

mp.dps = 60
INF = math.inf
Form = Callable[..., Any]


@dataclass(frozen=True)
class Row:
    """A function of one or two numbers, and its derivatives.

    Attributes
    ----------
    op
        The op whose gradient rules the row measures.
    call
        The function in gradtape, of ``x`` and ``y``, with ``gt`` and ``nn``.
    value
        The function in mpmath; "mp" is mpmath's context.
    first
        Its derivatives: by x, and by y if there are two arguments.
    second
        Those of ``first``: by x; or by xx, xy and yy.
    jax, torch
        The same call there; empty if there is none.
    low, high
        The ends of the domain of ``x``.
    near
        Numbers near which points are dense: kinks, and where derivatives vanish or grow.
    kinks
        Points without a derivative, which are left out; the table of kinks has them.
    pairs
        How points with two arguments are chosen.
    inside
        Which points count: "arguments" leaves out subnormal arguments. "values" leaves out points
        at which the function's value is not a normal number, or a derivative is within a factor of
        4096 of the ends of their range.
    scales
        By derivative: a function of the arguments. Errors are then in units of the last place of
        the larger one of it and the derivative.
    why
        The reason for a scale.
    """

    op: str
    call: str
    value: Form
    first: Sequence[Form]
    second: Sequence[Form]
    jax: str = ""
    torch: str = ""
    low: float = -INF
    high: float = INF
    near: Sequence[float] = field(default=(0.0,))
    kinks: Sequence[float] = ()
    pairs: str = "any"
    inside: str = ""
    scales: Mapping[int, Form] = field(default_factory=dict)
    why: str = ""


#: The dtype of the arguments, to which constants in calls are rounded.
arguments_dtype: list[Any] = [np.dtype(np.float64)]


def rounded(constant: float) -> Any:
    return mpf(float(arguments_dtype[0].type(constant)))


def row(
    op: str, call: str, value: Form, first: Any, second: Any, peers: Any = "", **at: Any
) -> Row:
    """Return a row; ``peers`` is one call for both libraries, or one for each."""
    jax, torch = (peers, peers) if isinstance(peers, str) else peers
    if isinstance(peers, str) and peers:
        jax, torch = (peers.replace("L.", f"{lib}.") for lib in ("jnp", "torch"))
    forms = [(form,) if callable(form) else tuple(form) for form in (first, second)]
    return Row(op, call, value, *forms, jax=jax, torch=torch, **at)


def same(op: str, value: Form, first: Any, second: Any, **at: Any) -> Row:
    """Return a row of a function that has the same name everywhere."""
    return row(op, f"gt.{op}(x)", value, first, second, f"L.{op}(x)", **at)


def zero(*_: Any) -> Any:
    return mpf(0)


def one(*_: Any) -> Any:
    return mpf(1)


QUARTERS = tuple(k * math.pi / 2 for k in (-3, -2, -1, 0, 1, 2, 3, 4, 5, 101, 20001, 3000001))
LN2, LN10 = mp.log(2), mp.log(10)


def sigma(x: Any) -> Any:
    return 1 / (1 + mp.exp(-x))


def sigma_slope(x: Any) -> Any:
    return 1 / (2 * mp.cosh(x / 2)) ** 2


def phi(x: Any) -> Any:
    return mp.exp(-x * x / 2) / mp.sqrt(2 * mp.pi)


def gauss(x: Any) -> Any:
    return 2 / mp.sqrt(mp.pi) * mp.exp(-x * x)


def between(low: float, high: float) -> Form:
    """Return a function that is 1 between two numbers, and 0 elsewhere."""
    return lambda x: mpf(1 if low < x < high else 0)

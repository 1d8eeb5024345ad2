"""Functions of two arguments."""

from __future__ import annotations

from typing import Any

from mpmath import mp, mpf

from .row import LN2, Form, Row, one, row, sigma, sigma_slope, zero

__all__ = ["PAIRS"]


def _pair(op: str, value: Form, first: Any, second: Any, peers: Any = None, **at: Any) -> Row:
    peers = f"L.{op}(x, y)" if peers is None else peers
    return row(op, f"gt.{op}(x, y)", value, first, second, peers, **at)


def _choice(op: str, larger: bool) -> Row:
    def picks(x: Any, y: Any) -> bool:
        return bool(x > y) == larger

    return _pair(
        op,
        max if larger else min,
        (lambda x, y: mpf(picks(x, y)), lambda x, y: mpf(not picks(x, y))),
        (zero, zero, zero),
        pairs="apart",
    )


def _square(x: Any, y: Any) -> Any:
    return x * x + y * y


def _bce(x: Any, y: Any) -> Any:
    return sigma(x) - y if abs(x) < 1 else ((1 - y) - sigma(-x) if x > 0 else sigma(x) - y)


PAIRS = [
    _pair("add", lambda x, y: x + y, (one, one), (zero, zero, zero)),
    _pair("subtract", lambda x, y: x - y, (one, lambda x, y: mpf(-1)), (zero, zero, zero)),
    _pair("multiply", lambda x, y: x * y, (lambda x, y: y, lambda x, y: x), (zero, one, zero)),
    _pair(
        "divide",
        lambda x, y: x / y,
        (lambda x, y: 1 / y, lambda x, y: -x / y**2),
        (zero, lambda x, y: -1 / y**2, lambda x, y: 2 * x / y**3),
        inside="values",
    ),
    *(
        _choice(op, larger)
        for op, larger in (("maximum", True), ("minimum", False), ("fmax", True), ("fmin", False))
    ),
    _pair(
        "copysign",
        lambda x, y: abs(x) * (1 if y > 0 else -1),
        (lambda x, y: mp.sign(x) * mp.sign(y), zero),
        (zero, zero, zero),
        kinks=(0.0,),
    ),
    _pair(
        "power",
        lambda x, y: x**y,
        (lambda x, y: y * x ** (y - 1), lambda x, y: x**y * mp.log(x)),
        (
            lambda x, y: y * (y - 1) * x ** (y - 2),
            lambda x, y: x ** (y - 1) * (1 + y * mp.log(x)),
            lambda x, y: x**y * mp.log(x) ** 2,
        ),
        "x ** y",
        pairs="power",
        inside="values",
        scales={3: lambda x, y: x ** (y - 1)},
        why="the mixed derivative is 0 at x = exp(-1 / y): its error is relative to x**(y - 1)",
    ),
    _pair(
        "arctan2",
        mp.atan2,
        (lambda x, y: y / _square(x, y), lambda x, y: -x / _square(x, y)),
        (
            lambda x, y: -2 * x * y / _square(x, y) ** 2,
            lambda x, y: (x - y) * (x + y) / _square(x, y) ** 2,
            lambda x, y: 2 * x * y / _square(x, y) ** 2,
        ),
        inside="arguments",
    ),
    _pair(
        "hypot",
        mp.hypot,
        (lambda x, y: x / mp.hypot(x, y), lambda x, y: y / mp.hypot(x, y)),
        (
            lambda x, y: y * y / mp.hypot(x, y) ** 3,
            lambda x, y: -x * y / mp.hypot(x, y) ** 3,
            lambda x, y: x * x / mp.hypot(x, y) ** 3,
        ),
        inside="arguments",
    ),
    _pair(
        "logaddexp",
        lambda x, y: mp.log(mp.exp(x) + mp.exp(y)),
        (lambda x, y: sigma(x - y), lambda x, y: sigma(y - x)),
        (
            lambda x, y: sigma_slope(x - y),
            lambda x, y: -sigma_slope(x - y),
            lambda x, y: sigma_slope(x - y),
        ),
        pairs="exponents",
    ),
    _pair(
        "logaddexp2",
        lambda x, y: mp.log(2**x + 2**y) / LN2,
        (lambda x, y: sigma((x - y) * LN2), lambda x, y: sigma((y - x) * LN2)),
        (
            lambda x, y: LN2 * sigma_slope((x - y) * LN2),
            lambda x, y: -LN2 * sigma_slope((x - y) * LN2),
            lambda x, y: LN2 * sigma_slope((x - y) * LN2),
        ),
        pairs="exponents",
    ),
    row(
        "sigmoid_cross_entropy",
        "nn.sigmoid_cross_entropy_with_logits(logits=x, labels=y)",
        lambda x, y: mp.log1p(mp.exp(x)) - x * y,
        (_bce, lambda x, y: -x),
        (lambda x, y: sigma_slope(x), lambda x, y: mpf(-1), zero),
        ("", "nn.binary_cross_entropy_with_logits(x, y, reduction='none')"),
        pairs="labels",
        scales={0: lambda x, y: min(sigma(x), sigma(-x))},
        why="it is 0 where the label is the sigmoid: errors are relative to the smaller of both "
        "probabilities",
    ),
]

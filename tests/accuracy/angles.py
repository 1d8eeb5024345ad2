"""Trigonometric and hyperbolic functions, and pieces of straight lines."""

from __future__ import annotations

import math

from mpmath import mp, mpf

from .row import QUARTERS, between, one, row, same, zero

__all__ = ["ANGLES_AND_LINES"]

# -- trigonometric and hyperbolic functions -----------------------------------------------------

_ANGLES = [
    same("sin", mp.sin, mp.cos, lambda x: -mp.sin(x), near=QUARTERS),
    same("cos", mp.cos, lambda x: -mp.sin(x), lambda x: -mp.cos(x), near=QUARTERS),
    same(
        "tan",
        mp.tan,
        lambda x: 1 / mp.cos(x) ** 2,
        lambda x: 2 * mp.sin(x) / mp.cos(x) ** 3,
        near=QUARTERS,
    ),
    same(
        "arcsin",
        mp.asin,
        lambda x: 1 / mp.sqrt((1 - x) * (1 + x)),
        lambda x: x / mp.sqrt((1 - x) * (1 + x)) ** 3,
        low=-1.0,
        high=1.0,
        near=(0.0, 1.0, -1.0),
    ),
    same(
        "arccos",
        mp.acos,
        lambda x: -1 / mp.sqrt((1 - x) * (1 + x)),
        lambda x: -x / mp.sqrt((1 - x) * (1 + x)) ** 3,
        low=-1.0,
        high=1.0,
        near=(0.0, 1.0, -1.0),
    ),
    same("arctan", mp.atan, lambda x: 1 / (1 + x * x), lambda x: -2 * x / (1 + x * x) ** 2),
    same("sinh", mp.sinh, mp.cosh, mp.sinh),
    same("cosh", mp.cosh, mp.sinh, mp.cosh),
    same(
        "tanh",
        mp.tanh,
        lambda x: mp.sech(x) ** 2,
        lambda x: -2 * mp.tanh(x) * mp.sech(x) ** 2,
        near=(0.0, 1.0, -1.0, 20.0, 19.06),
    ),
    same(
        "arcsinh",
        mp.asinh,
        lambda x: 1 / mp.sqrt(1 + x * x),
        lambda x: -x / mp.sqrt(1 + x * x) ** 3,
    ),
    same(
        "arccosh",
        mp.acosh,
        lambda x: 1 / mp.sqrt((x - 1) * (x + 1)),
        lambda x: -x / mp.sqrt((x - 1) * (x + 1)) ** 3,
        low=1.0,
        near=(1.0, 2.0),
    ),
    same(
        "arctanh",
        mp.atanh,
        lambda x: 1 / ((1 - x) * (1 + x)),
        lambda x: 2 * x / ((1 - x) * (1 + x)) ** 2,
        low=-1.0,
        high=1.0,
        near=(0.0, 1.0, -1.0),
    ),
    same("deg2rad", mp.radians, lambda x: mp.pi / 180, zero),
    same("rad2deg", mp.degrees, lambda x: 180 / mp.pi, zero),
]

# -- pieces of straight lines -------------------------------------------------------------------


_LINES = [
    same("positive", lambda x: x, one, zero),
    same("negative", lambda x: -x, lambda x: mpf(-1), zero),
    same("abs", abs, mp.sign, zero),
    row("fabs", "gt.fabs(x)", abs, mp.sign, zero, ("jnp.fabs(x)", "torch.abs(x)")),
    same("sign", mp.sign, zero, zero),
    row("floor", "x * gt.floor(x)", lambda x: x * mp.floor(x), mp.floor, zero, "x * L.floor(x)"),
    row("ceil", "x * gt.ceil(x)", lambda x: x * mp.ceil(x), mp.ceil, zero, "x * L.ceil(x)"),
    row(
        "clip",
        "gt.clip(x, -2.0, 3.0)",
        lambda x: min(max(x, -2), 3),
        between(-2, 3),
        zero,
        "L.clip(x, -2.0, 3.0)",
        near=(-2.0, 0.0, 3.0),
        kinks=(-2.0, 3.0),
    ),
    row("nan_to_num", "gt.nan_to_num(x)", lambda x: x, one, zero, "L.nan_to_num(x)"),
    row(
        "relu",
        "nn.relu(x)",
        lambda x: max(x, 0),
        between(0, math.inf),
        zero,
        ("nn.relu(x)", "nn.relu(x)"),
    ),
    row(
        "relu6",
        "nn.relu6(x)",
        lambda x: min(max(x, 0), 6),
        between(0, 6),
        zero,
        ("nn.relu6(x)", "nn.relu6(x)"),
        near=(0.0, 6.0),
        kinks=(0.0, 6.0),
    ),
    row(
        "leaky_relu",
        "nn.leaky_relu(x, 0.25)",
        lambda x: max(x, x / 4),
        lambda x: mpf(1) if x > 0 else mpf(0.25),
        zero,
        ("nn.leaky_relu(x, 0.25)", "nn.leaky_relu(x, 0.25)"),
    ),
    row(
        "hard_sigmoid",
        "nn.hard_sigmoid(x)",
        lambda x: min(max(x + 3, 0), 6) / 6,
        lambda x: between(-3, 3)(x) / 6,
        zero,
        ("nn.hard_sigmoid(x)", "nn.hardsigmoid(x)"),
        near=(-3.0, 0.0, 3.0),
        kinks=(-3.0, 3.0),
    ),
    row(
        "hard_tanh",
        "nn.hard_tanh(x)",
        lambda x: min(max(x, -1), 1),
        between(-1, 1),
        zero,
        ("nn.hard_tanh(x)", "nn.hardtanh(x)"),
        near=(-1.0, 0.0, 1.0),
        kinks=(-1.0, 1.0),
    ),
    row(
        "hard_silu",
        "nn.hard_silu(x)",
        lambda x: x * min(max(x + 3, 0), 6) / 6,
        lambda x: (2 * x + 3) / 6 if -3 < x < 3 else mpf(1 if x > 0 else 0),
        lambda x: between(-3, 3)(x) / 3,
        ("nn.hard_silu(x)", "nn.hardswish(x)"),
        near=(-3.0, -1.5, 0.0, 3.0),
        kinks=(-3.0, 3.0),
    ),
    row(
        "hard_shrink",
        "nn.hard_shrink(x)",
        lambda x: x if abs(x) > 0.5 else mpf(0),
        lambda x: mpf(1 if abs(x) > 0.5 else 0),
        zero,
        ("", "nn.hardshrink(x)"),
        near=(-0.5, 0.5),
        kinks=(-0.5, 0.5),
    ),
    row(
        "soft_shrink",
        "nn.soft_shrink(x)",
        lambda x: mp.sign(x) * max(abs(x) - 0.5, 0),
        lambda x: mpf(1 if abs(x) > 0.5 else 0),
        zero,
        ("", "nn.softshrink(x)"),
        near=(-0.5, 0.5),
        kinks=(-0.5, 0.5),
    ),
    row(
        "huber",
        "nn.huber(labels=0.0 * x, predictions=x)",
        lambda x: x * x / 2 if abs(x) <= 1 else abs(x) - 0.5,
        lambda x: min(max(x, -1), 1),
        between(-1, 1),
        ("", "nn.huber_loss(x, torch.zeros_like(x), reduction='none')"),
        near=(-1.0, 0.0, 1.0),
        kinks=(-1.0, 1.0),
    ),
]

ANGLES_AND_LINES = [*_ANGLES, *_LINES]

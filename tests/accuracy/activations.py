"""Smooth activations."""

from __future__ import annotations

import math
from typing import Any

from mpmath import mp, mpf

from .row import Row, phi, row, sigma, sigma_slope

__all__ = ["ACTIVATIONS"]

_ALPHA, _SCALE = mpf(1.6732632423543772), mpf(1.0507009873554805)


def _elu(name: str, alpha: Any, scale: Any, **calls: Any) -> Row:
    return row(
        name,
        f"nn.{name}(x)",
        lambda x: scale * (x if x > 0 else alpha * mp.expm1(x)),
        lambda x: scale * (1 if x > 0 else alpha * mp.exp(x)),
        lambda x: scale * (0 if x > 0 else alpha * mp.exp(x)),
        (f"nn.{name}(x)", f"nn.{name}(x)"),
    )


def _mish_parts(x: Any) -> tuple[Any, Any, Any]:
    t = mp.tanh(mp.log1p(mp.exp(x)))
    n = mp.exp(x)
    return t, 4 * (1 + n) ** 2 / (n * n + 2 * n + 2) ** 2, sigma(x)


def _mish_second(x: Any) -> Any:
    t, w, s = _mish_parts(x)
    return w * s * (2 + x * (sigma(-x) - 2 * t * s))


_K, _C = mp.sqrt(2 / mp.pi), mpf(0.044715)


def _gelu_gate(x: Any) -> tuple[Any, Any, Any]:
    """Return the sigmoid of ``2 u``, and the first two derivatives of ``2 u``."""
    u = 2 * _K * x * (1 + _C * x * x)
    return u, 2 * _K * (1 + 3 * _C * x * x), 12 * _K * _C * x


def _gelu_tanh_first(x: Any) -> Any:
    u, first, _ = _gelu_gate(x)
    return sigma(u) + x * sigma_slope(u) * first


def _gelu_tanh_second(x: Any) -> Any:
    u, first, second = _gelu_gate(x)
    bend = -sigma_slope(u) * mp.tanh(u / 2)
    return 2 * sigma_slope(u) * first + x * (bend * first**2 + sigma_slope(u) * second)


ACTIVATIONS = [
    _elu("elu", mpf(1), mpf(1)),
    _elu("selu", _ALPHA, _SCALE),
    _elu("celu", mpf(1), mpf(1)),
    row(
        "sigmoid",
        "nn.sigmoid(x)",
        sigma,
        sigma_slope,
        lambda x: -sigma_slope(x) * mp.tanh(x / 2),
        ("nn.sigmoid(x)", "torch.sigmoid(x)"),
        near=(0.0, 36.7, 16.6),
    ),
    row(
        "log_sigmoid",
        "nn.log_sigmoid(x)",
        lambda x: -mp.log1p(mp.exp(-x)),
        lambda x: sigma(-x),
        lambda x: -sigma_slope(x),
        ("nn.log_sigmoid(x)", "nn.logsigmoid(x)"),
    ),
    row(
        "softplus",
        "nn.softplus(x)",
        lambda x: mp.log1p(mp.exp(x)),
        sigma,
        sigma_slope,
        ("nn.softplus(x)", "nn.softplus(x)"),
    ),
    row(
        "squareplus",
        "nn.squareplus(x)",
        lambda x: (x + mp.sqrt(x * x + 4)) / 2,
        lambda x: (
            2 / (mp.sqrt(x * x + 4) * (mp.sqrt(x * x + 4) - x))
            if x < 0
            else (1 + x / mp.sqrt(x * x + 4)) / 2
        ),
        lambda x: 2 / mp.sqrt(x * x + 4) ** 3,
        ("nn.squareplus(x)", ""),
    ),
    row(
        "softsign",
        "nn.softsign(x)",
        lambda x: x / (1 + abs(x)),
        lambda x: 1 / (1 + abs(x)) ** 2,
        lambda x: -2 * mp.sign(x) / (1 + abs(x)) ** 3,
        ("nn.soft_sign(x)", "nn.softsign(x)"),
    ),
    row(
        "silu",
        "nn.silu(x)",
        lambda x: x * sigma(x),
        lambda x: sigma(x) * (1 + x * sigma(-x)),
        lambda x: sigma_slope(x) * (2 - x * mp.tanh(x / 2)),
        ("nn.silu(x)", "nn.silu(x)"),
        near=(0.0, -1.278464542761074, 2.399357280520547, -2.399357280520547, -714.0, 713.0, -91.0),
    ),
    row(
        "mish",
        "nn.mish(x)",
        lambda x: x * _mish_parts(x)[0],
        lambda x: _mish_parts(x)[0] + x * _mish_parts(x)[1] * _mish_parts(x)[2],
        _mish_second,
        ("nn.mish(x)", "nn.mish(x)"),
        near=(
            0.0,
            -1.1924312145154952,
            1.4905711794854284,
            -2.256376396360793,
            -714.0,
            355.0,
            -91.0,
        ),
    ),
    row(
        "gelu",
        "nn.gelu(x)",
        lambda x: x * mp.ncdf(x),
        lambda x: mp.erfc(-x / mp.sqrt(2)) / 2 + x * phi(x),
        lambda x: phi(x) * (2 - x * x),
        ("nn.gelu(x, approximate=False)", "nn.gelu(x)"),
        near=(0.0, -0.7517915246935645, math.sqrt(2), -math.sqrt(2), 37.7, -37.7, -13.2),
    ),
    row(
        "gelu",
        "nn.gelu(x, approximate=True)",
        lambda x: x * sigma(_gelu_gate(x)[0]),
        _gelu_tanh_first,
        _gelu_tanh_second,
        ("nn.gelu(x)", "nn.gelu(x, approximate='tanh')"),
        near=(0.0, -0.7526, 1.42, -1.42, -21.3, -10.2),
        scales={
            0: lambda x: sigma(_gelu_gate(x)[0]) if abs(x) < 2 else mpf(0),
            1: lambda x: 4 * sigma_slope(_gelu_gate(x)[0]) if abs(x) < 2 else mpf(0),
        },
        why="errors near the zeros are relative to the terms that cancel",
    ),
    row(
        "tanh_shrink",
        "nn.tanh_shrink(x)",
        lambda x: x - mp.tanh(x),
        lambda x: mp.tanh(x) ** 2,
        lambda x: 2 * mp.tanh(x) * mp.sech(x) ** 2,
        ("", "nn.tanhshrink(x)"),
    ),
]

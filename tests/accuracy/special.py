"""Special functions."""

from __future__ import annotations

from typing import Any

from mpmath import mp, mpf

from .row import gauss, row

__all__ = ["SPECIAL"]


def _sinc_series(x: Any, order: int) -> Any:
    terms = range((order + 1) // 2, 12)
    return sum(
        (-1) ** k
        * mp.pi ** (2 * k)
        * x ** (2 * k - order)
        / (2 * k + 1)
        / mp.factorial(2 * k - order)
        for k in terms
    )


def _sinc_first(x: Any) -> Any:
    if abs(x) < 0.01:
        return _sinc_series(x, 1)
    return (mp.cospi(x) - mp.sincpi(x)) / x


def _sinc_second(x: Any) -> Any:
    if abs(x) < 0.01:
        return _sinc_series(x, 2)
    return -(mp.pi**2) * mp.sincpi(x) - 2 * _sinc_first(x) / x


def _waves(x: Any) -> Any:
    return 1 / abs(x) if abs(x) > 0.9 else mpf(0)


SPECIAL = [
    row(
        "erf",
        "gt.erf(x)",
        mp.erf,
        gauss,
        lambda x: -2 * x * gauss(x),
        ("special.erf(x)", "torch.erf(x)"),
        near=(0.0, 26.6, -26.6, 9.3),
    ),
    row(
        "erfc",
        "gt.erfc(x)",
        mp.erfc,
        lambda x: -gauss(x),
        lambda x: 2 * x * gauss(x),
        ("special.erfc(x)", "torch.erfc(x)"),
        near=(0.0, 26.6, -26.6, 9.3),
    ),
    row(
        "lgamma",
        "gt.lgamma(x)",
        lambda x: mp.log(abs(mp.gamma(x))),
        mp.digamma,
        lambda x: mp.psi(1, x),
        ("special.gammaln(x)", "torch.lgamma(x)"),
        low=0.0,
        near=(0.0, 1.0, 2.0, 1.4616321449683623),
    ),
    row(
        "digamma",
        "gt.digamma(x)",
        mp.digamma,
        lambda x: mp.psi(1, x),
        lambda x: mp.psi(2, x),
        ("special.digamma(x)", "torch.digamma(x)"),
        low=0.0,
        near=(0.0, 1.0, 1.4616321449683623),
    ),
    row(
        "sinc",
        "gt.sinc(x)",
        mp.sincpi,
        _sinc_first,
        _sinc_second,
        ("jnp.sinc(x)", "torch.sinc(x)"),
        near=(0.0, 1.0, 2.0, -3.0, 101.0),
        scales={0: _waves, 1: lambda x: mp.pi**2 / abs(x) if abs(x) > 0.5 else mpf(0)},
        why="it is 0 near every odd half: errors there are relative to the wave's height",
    ),
    row(
        "bessel_i",
        "gt.i0(x)",
        lambda x: mp.besseli(0, x),
        lambda x: mp.besseli(1, x),
        lambda x: (mp.besseli(0, x) + mp.besseli(2, x)) / 2,
        ("jnp.i0(x)", "torch.i0(x)"),
    ),
]

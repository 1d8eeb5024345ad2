"""Gamma-distributed numbers, and their derivative with respect to the concentration."""

from __future__ import annotations

from typing import Any

import numpy as np

from ....core.extend import NONDIFF, F, batch_rows, communicator, to_numpy
from ..common.batching import leading
from ..common.kernels import reals
from ..common.op_builders import op
from .distributions import Array
from .keys import on_backend, stream

__all__: list[str] = []


def _gamma(xp: Any, key: Any, concentration: Any) -> Any:
    shapes = to_numpy(reals(concentration))
    if not (shapes > 0).all():
        raise ValueError("random_gamma: the concentration must be above 0 everywhere")
    wide, keys = shapes.astype(np.float64), to_numpy(key)
    if keys.ndim == 1:
        numbers = _rows_of_all(keys, wide)
    else:
        rank = keys.ndim - 1  # the axes of the examples, several in nested batches
        parts = wide.reshape(-1, *wide.shape[rank:])
        rows = zip(keys.reshape(-1, keys.shape[-1]), parts, strict=True)
        drawn = [stream(row).standard_gamma(part) for row, part in rows]
        numbers = np.stack(drawn).reshape(wide.shape) if drawn else wide
    numbers = np.asarray(numbers, shapes.dtype)
    return on_backend(np.maximum(numbers, np.finfo(shapes.dtype).tiny), concentration)


def _rows_of_all(key: Array, concentration: Array) -> Array:
    """Return a number for each concentration; in a data-parallel step, for those of this rank.

    The number of random words that a number takes depends on all concentrations before it,
    including those of other ranks.
    """
    rows = batch_rows.get()
    if rows is None:
        return stream(key).standard_gamma(concentration)
    start, total = rows.place()
    parts = communicator().exchange(concentration.tobytes())  # on all ranks, whatever the shape
    if concentration.shape[:1] != (rows.count,):
        return stream(key).standard_gamma(concentration)
    whole = np.frombuffer(b"".join(parts)).reshape(total, *concentration.shape[1:])
    found: Array = stream(key).standard_gamma(whole)[start : start + rows.count]
    return found


def _digamma(x: Array) -> Array:
    """Return the derivative of the logarithm of the gamma function, for ``x`` above 0."""
    shift = np.zeros_like(x)
    for _ in range(8):  # where the asymptotic series is exact to double precision
        small = x < 8
        shift -= np.where(small, 1 / x, 0)
        x = np.where(small, x + 1, x)
    y = 1 / (x * x)
    # Abramowitz and Stegun, "Handbook of mathematical functions" (1964), 6.3.18
    tail = y * (1 / 12 - y * (1 / 120 - y * (1 / 252 - y * (1 / 240 - y * (1 / 132)))))
    return shift + np.log(x) - 0.5 / x - tail


def gamma_slope(a: Array, z: Array) -> Array:
    """Return the derivative of a gamma-distributed ``z`` with respect to its concentration ``a``.

    It is ``dz/da = -(dP(a, z)/da) / p(z)``, where ``P`` is the distribution function and ``p`` its
    density: ``z`` keeps its quantile as ``a`` changes. ``P`` is taken from the series
    ``z**a * exp(-z) / gamma(a + 1) * sum(z**n / ((a + 1) ... (a + n)))`` and differentiated term by
    term. For ``a`` above 10,000, where that series is long, z is approximated by
    ``a * (1 - 1 / (9 * a) + x / (3 * sqrt(a)))**3`` with a normal x.

    References
    ----------
    Figurnov, Mohamed and Mnih, "Implicit reparameterization gradients", 2018, equation 5.
    Wilson and Hilferty, "The distribution of chi-square", 1931.
    """
    root = np.cbrt(z / a)
    bend = 1 / (9 * a)
    slope = root**3 + 3 * a * root**2 * (bend / a - (root - 1 + bend) / (2 * a))
    near = a <= 1e4
    a, z = a[near], z[near]
    term, total = np.ones_like(z), np.ones_like(z)
    decay, changed = np.zeros_like(z), np.zeros_like(z)
    n = 0
    while (term > 1e-17 * total).any():
        n += 1
        term = term * (z / (a + n))
        decay = decay - 1 / (a + n)
        total += term
        changed += term * decay
    slope[near] = -(z / a) * ((np.log(z) - _digamma(a + 1)) * total + changed)
    return slope


def _slope_kernel(xp: Any, concentration: Any, number: Any) -> Any:
    a, z = (to_numpy(reals(x)) for x in (concentration, number))
    shape = a.shape
    wide = gamma_slope(*(np.atleast_1d(x).astype(np.float64) for x in (a, z)))
    return on_backend(wide.reshape(shape).astype(a.dtype), concentration)


def _no_second_order(g: Any) -> Any:
    raise TypeError(
        "random_gamma: second-order gradients with respect to the concentration of a gamma "
        "distribution are not available; stop them with gradtape.stop_gradient"
    )


op(
    "random_gamma",
    _gamma,
    gradients={
        "key": NONDIFF,
        "concentration": lambda g, concentration, out: g * F.random_gamma_slope(concentration, out),
    },
    infer=lambda key, concentration: (concentration.shape, concentration.dtype),
    batch=leading,
    doc="Return gamma-distributed numbers of scale 1, determined by ``key``.",
)
op(
    "random_gamma_slope",
    _slope_kernel,
    gradients={"concentration": _no_second_order, "number": _no_second_order},
    infer=lambda concentration, number: (concentration.shape, concentration.dtype),
    batch=leading,
    doc="Return the derivative of gamma-distributed numbers with respect to the concentration.",
)

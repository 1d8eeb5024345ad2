"""Fit a curve by SciPy's ``least_squares``, its Jacobian from forward and from reverse mode.

There are 80 residuals of 4 parameters, so forward mode has 4 columns to compute where reverse mode
has 80 rows; both give the same matrix.

Needs SciPy: ``pip install "gradtape[scipy]"``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.optimize import OptimizeResult, least_squares

import gradtape as gt

TRUTH = {"amplitude": 2.0, "decay": 0.3, "frequency": 2.5, "phase": 0.4}


def curve(p: Any, t: Any) -> gt.Tensor:
    """Return a damped oscillation at times ``t``."""
    return p["amplitude"] * gt.exp(-p["decay"] * t) * gt.cos(p["frequency"] * t + p["phase"])


def data() -> tuple[gt.Tensor, gt.Tensor]:
    """Return 80 times, and noisy values with three outliers among them."""
    rng = np.random.default_rng(0)
    t = np.linspace(0.0, 6.0, 80)
    values = curve(TRUTH, gt.constant(t)).numpy() + 0.02 * rng.standard_normal(80)
    values[[10, 37, 61]] += 1.5
    return gt.constant(t), gt.constant(values)


def fit(
    guess: dict[str, float], t: gt.Tensor, values: gt.Tensor, mode: Callable[..., Any] = gt.jacfwd
) -> tuple[dict[str, float], OptimizeResult]:
    """Fit the curve, with a loss that outliers cannot pull far.

    Parameters
    ----------
    guess
        The parameters to begin with.
    t, values
        Where the curve was observed, and what was seen.
    mode
        ``gt.jacfwd`` or ``gt.jacrev``.

    Returns
    -------
    The parameters found, and all that ``scipy.optimize.least_squares`` says about them.
    """
    start, unflatten = gt.flatten({name: np.float64(value) for name, value in guess.items()})

    @gt.function
    def residuals(vector: gt.Tensor) -> gt.Tensor:
        return curve(unflatten(vector), t) - values

    found = least_squares(
        residuals,
        start,
        jac=gt.function(mode(residuals)),
        loss="soft_l1",
        f_scale=0.05,
        xtol=1e-12,
    )
    return {name: value.item() for name, value in unflatten(found.x).items()}, found


def main() -> None:
    """Fit the curve from a guess that is some way off."""
    t, values = data()
    guess = {"amplitude": 1.0, "decay": 0.1, "frequency": 2.2, "phase": 0.0}
    for mode in (gt.jacfwd, gt.jacrev):
        parameters, found = fit(guess, t, values, mode)
        print(f"{mode.__name__}: {found.nfev} evaluations, {found.njev} Jacobians")
        for name, value in parameters.items():
            print(f"  {name}: {value:.3f} (true: {TRUTH[name]})")


if __name__ == "__main__":
    main()

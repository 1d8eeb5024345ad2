"""Samples of ops that work element by element."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import gradtape as gt

from ..samples import Sample
from .drawing import complexes, positive, real, spread_numbers, unit

X, P, U, Z = real(2, 3), positive(2, 3), unit(2, 3), complexes(2, 3)
N = np.array([[3, -2, 5], [1, 4, -7]])
BITS = np.array([[3, 2, 5], [1, 4, 7]])
TRUTH = np.array([[True, False, True], [False, True, True]])


def each(names: str, *samples: tuple[object, ...]) -> dict[str, list[Sample]]:
    """Return the same samples for several ops."""
    return {name: [Sample(*inputs) for inputs in samples] for name in names.split()}


def with_values(function: Callable[..., Any], *inputs: Any) -> list[Sample]:
    """Return samples of an op that takes ``x`` and a function's value there."""
    return [Sample(x).fed_through(lambda x: (x, function(x))) for x in inputs]


SAMPLES = {
    **each("negative positive square reciprocal exp exp2 expm1 identity", (X,), (X[0, 0],), (Z,)),
    **each("complex_expm1", (Z,), (Z[0, 0],)),
    **each("sin cos sinh cosh tanh arcsinh", (X,), (X[0, 0],), (Z,)),
    **each("log log2 log10 log1p sqrt", (P,), (P[0, 0],), (Z,)),
    **each("tan arcsin arccos arctan arctanh", (U,), (Z,)),
    **each("one_minus_square arctan_slope", (U,), (U[0, 0],), (Z,)),
    **each("arccosh", (P + 1.1,), (Z,)),
    **each("abs sign real imag conj angle", (X,), (Z,), (X[0, 0],)),
    **each("fabs cbrt deg2rad rad2deg", (X,), (X[0, 0],)),
    **each("stop_gradient", (X,), (Z,), (N,)),
    **each("floor ceil trunc", (X,), (X[0, 0],)),
    "round": [Sample(X), Sample(X, decimals=1)],
    "round_to_bfloat16": [
        Sample(X).without(
            "gradients", "second order", "forward", reason="the gradient is straight-through"
        )
    ],
    **each("zeros_like ones_like numbered_like", (X,), (Z,), (N,)),
    # two inputs, which broadcast
    **each(
        "add subtract multiply divide", (X, P[:1]), (X[:, :1], P[0]), (X, 2.5), (Z, Z[0]), (X, Z)
    ),
    "power": [
        *(Sample(P, X[:1]), Sample(Z, Z[0]), Sample(P, 2.5), Sample(2.5, X), Sample(X, 3)),
        *(Sample(X, -2), Sample(X, 2), Sample(X, N)),
    ],
    **each("remainder fmod", (np.array([5.3, -3.4, 2.6]), np.array([2.0, -1.5])[:, None])),
    **each("floor_divide", (np.array([5.3, -3.4, 2.6]), np.array([2.0, -1.5])[:, None]), (N, BITS)),
    **each("arctan2 hypot logaddexp logaddexp2", (X, P[:1]), (X[:, :1], P[0]), (X, 2.5)),
    **each("maximum minimum fmax fmin", (X, -X[::-1]), (X, 0.1), (X[:, :1], P[0] + 0.05)),
    **each("copysign", (X, -X[::-1]), (X, -1.0)),
    **each("heaviside", (X, P)),
    "ldexp": [Sample(X, N)],
    "nextafter": [Sample(X, P).without("float32", reason="the step depends on the dtype")],
    **each("equal not_equal less less_equal greater greater_equal", (X, P), (X, 0.5), (N, N[0])),
    **each("logical_and logical_or logical_xor", (TRUTH, ~TRUTH[0]), (X, N)),
    **each("logical_not", (TRUTH,), (X,)),
    **each("bitwise_and bitwise_or bitwise_xor", (N, BITS), (TRUTH, TRUTH[0])),
    **each("bitwise_left_shift bitwise_right_shift", (N, BITS), (N, 2)),
    **each("bitwise_invert", (N,), (TRUTH,)),
    **each("gcd lcm", (6 * N, 4 * BITS), (N, 12)),
    **each("bitwise_count", (N,)),
    **each("isfinite isinf isnan", (np.array([1.0, np.inf, -np.inf, np.nan]),), (X,)),
    **each("signbit", (X,)),
    "clip": [Sample(X, -0.9, 1.1), Sample(spread_numbers(2, 3), unit(2, 3) - 1.0, unit(3) + 1.0)],
    "where": [Sample(TRUTH, X, P[:1]), Sample(TRUTH[0], Z, X), Sample(TRUTH, X, 0.0)],
    "cast": [
        Sample(X, dtype="float32").without(
            "gradients", "second order", "float32", reason="differences need double precision"
        ),
        Sample(X, dtype="complex128").without("float32", reason="the dtype is an argument"),
        Sample(Z, dtype="float64").without("float32", reason="the dtype is an argument"),
        Sample(X, dtype="int64"),
    ],
    "cast_like": [Sample(X, Z), Sample(X, P[0])],
    "nan_to_num": [Sample(Z), Sample(X), Sample(X, nan=1.0, posinf=2.0, neginf=-2.0)],
    # special functions
    **each("erf erfc", (X,), (X[0, 0],), (Z,)),
    **each("lgamma digamma", (P + 0.5,), (np.array([-0.5, -1.4]),)),
    "polygamma": [Sample(P + 0.5, n=1), Sample(P + 0.5, n=3)],
    "sinc": [Sample(X), Sample(X, order=1), Sample(np.array([0.0, 1e-3, 0.4])), Sample(Z)],
    # activations
    **each("relu relu6 selu softplus softsign sigmoid silu mish log_sigmoid", (X,), (3.0 * X,)),
    **each("hard_sigmoid hard_silu hard_tanh", (X,), (np.array([-4.2, -0.4, 0.4, 1.3, 4.2]),)),
    **each("tanh_shrink", (X,), (3.0 * X,)),
    # derivatives of others, as ops; some also take the function's value
    **each("arctan2_slope", (X, P[:1]), (X[:, :1], P[0]), (X, 2.5)),
    "logaddexp_slope": [
        *(Sample(x, y, binary=False) for x, y in ((X, P[:1]), (X[:, :1], P[0]), (X, 2.5))),
        Sample(X, P[:1], binary=True),
    ],
    "hypot_slope": [
        Sample(X, y).fed_through(lambda x, y: (x, y, gt.hypot(x, y))) for y in (P, P[:1], 2.5)
    ],
    **each("silu_slope mish_slope", (X,), (3.0 * X,)),
    "tanh_slope": with_values(gt.tanh, X, 3.0 * X, Z),
    "cbrt_slope": with_values(gt.cbrt, X, 3.0 * X),
    "sigmoid_slope": with_values(gt.nn.sigmoid, X, 3.0 * X),
    "squareplus_slope": with_values(gt.nn.squareplus, X, 3.0 * X),
    "gelu_slope": [Sample(X, approximate=False), Sample(3.0 * X, approximate=True)],
    "exp_minus_square": [Sample(X), Sample(3.0 * X, scale=0.5), Sample(Z)],
    "celu": [Sample(X), Sample(3.0 * X, alpha=0.5)],
    "squareplus": [Sample(X), Sample(3.0 * X, b=0.5)],
    "hard_shrink": [Sample(spread_numbers(2, 3)), Sample(spread_numbers(2, 3), threshold=0.25)],
    "soft_shrink": [Sample(spread_numbers(2, 3)), Sample(spread_numbers(2, 3), threshold=0.25)],
    "elu": [Sample(X), Sample(X, alpha=0.5)],
    "leaky_relu": [Sample(X), Sample(X, alpha=0.1)],
    "gelu": [Sample(X, approximate=False), Sample(X, approximate=True)],
    "huber": [Sample(3.0 * X, delta=0.7), Sample(unit(3), delta=1.0)],
    "sigmoid_cross_entropy": [Sample(X, positive(2, 3) / 2.0)],
}

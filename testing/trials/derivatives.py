"""Checks of derivatives: against differences, of both orders and modes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...core.extend import ForwardAccumulator, GradientTape, constant, describe, recording_to
from ..gradients import check_gradients, check_linear, gradient_of
from .trial import Trial

Array = NDArray[Any]


def gradients(trial: Trial) -> str | None:
    """Check first-order gradients against finite differences."""
    want, count = trial.want
    followed = any(y.dtype.kind in "fc" for y in want[:count])
    if not trial.differentiable or not followed:
        return _no_gradients(trial)
    check_gradients(trial.run, *trial.arrays, order=1, seed=trial.seed, linear=False)
    return None


def _no_gradients(trial: Trial) -> str:
    tensors = [constant(x) for x in trial.arrays]
    sources = [x for x in tensors if x.dtype.kind in "fc"]
    with GradientTape() as tape:
        tape.watch(sources)
        results = trial.run(*tensors)
    followed = [y for y in results if y.dtype.kind in "fc"]
    if followed and sources:
        for gradient in tape.gradient(followed, sources):
            if gradient is not None:
                raise AssertionError(f"no rule, but the gradient is {gradient}, not None")
    return "not differentiable"


def second_order(trial: Trial) -> str | None:
    """Check gradients of gradients."""
    want, count = trial.want
    if not trial.differentiable or not any(y.dtype.kind in "fc" for y in want[:count]):
        return "not differentiable"
    check_gradients(trial.run, *trial.arrays, order=2, seed=trial.seed, linear=False)
    return None


def linear(trial: Trial) -> str | None:
    """Check that gradients are linear in the upstream gradient."""
    want, count = trial.want
    if not trial.differentiable or not any(y.dtype.kind in "fc" for y in want[:count]):
        return "not differentiable"
    fn, arrays, outputs = trial.run, trial.arrays, want[:count]
    check_linear(fn, arrays, outputs, trial.seed, 1)
    if "second order" not in trial.sample.exempt:
        check_linear(*gradient_of(fn, arrays, outputs, trial.seed), trial.seed, 2)
    return None


def forward(trial: Trial) -> str | None:
    """Check that forward mode is the transpose of reverse mode."""
    want, count = trial.want
    followed = [i for i, y in enumerate(want[:count]) if y.dtype.kind in "fc"]
    if not trial.differentiable or not followed:
        return "not differentiable"
    rng = np.random.default_rng(trial.seed)
    tensors = [constant(x) for x in trial.arrays]
    sources = [x for x in tensors if x.dtype.kind in "fc"]
    tangents = [constant(_random(rng, x)) for x in sources]
    with ForwardAccumulator(sources, tangents) as accumulator, GradientTape() as tape:
        tape.watch(sources)
        results = trial.run(*tensors)
    ys = [results[i] for i in followed]
    upstream = [constant(_random(rng, y)) for y in ys]
    with recording_to(()):
        back = tape.gradient(ys, sources, output_gradients=upstream, unconnected_gradients="zero")
    ahead = accumulator.jvp(ys, unconnected_gradients="zero")
    for y, t in zip(ys, ahead, strict=True):
        if t.shape != y.shape or t.dtype != y.dtype:
            raise AssertionError(
                f"a tangent is {describe(t.shape, t.dtype)}, its result "
                f"{describe(y.shape, y.dtype)}"
            )
    one, other = _inner(upstream, ahead), _inner(back, tangents)
    scale = max(1.0, *(_size(x) * _size(t) for x, t in zip(back, tangents, strict=True)))
    double = all(x.dtype.itemsize >= 8 for x in (*ys, *sources))
    tolerance = (1e-8 if double else 1e-5) * scale
    if not (np.isnan(one) and np.isnan(other)) and abs(one - other) > tolerance:
        raise AssertionError(f"<u, J t> is {one}, <Jᵀ u, t> is {other}")
    return None


def _random(rng: np.random.Generator, like: Any) -> Array:
    """Return standard normal numbers of the shape and dtype of ``like``."""
    numbers = rng.standard_normal(like.shape)
    if like.dtype.kind == "c":
        numbers = numbers + 1j * rng.standard_normal(like.shape)
    return np.asarray(numbers, like.dtype)


def _inner(xs: Sequence[Any], ys: Sequence[Any]) -> float:
    """Return the real inner product of lists of tensors."""
    return float(
        sum(np.sum(np.real(np.conj(x.numpy()) * y.numpy())) for x, y in zip(xs, ys, strict=True))
    )


def _size(x: Any) -> float:
    values = np.abs(np.asarray(x.numpy()))
    finite = values[np.isfinite(values)]
    return float(np.sqrt((finite**2).sum())) if finite.size else 0.0

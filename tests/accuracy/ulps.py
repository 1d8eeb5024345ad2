"""Errors of derivatives in units of the last place, against mpmath, for three libraries."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
from mpmath import mp, mpf

from .points import Array, points
from .row import Row, arguments_dtype

__all__ = [
    "LIMIT",
    "Exact",
    "derivatives_of",
    "errors_of",
    "exact",
    "gradients_alone",
    "measured",
    "worst",
]

#: The largest error of a derivative, in units of the last place.
LIMIT = 16
#: For each derivative: its exact values; which of them are normal numbers; the units of errors.
Exact = list[tuple[list[Any], Array, list[Any]]]


def exact(row: Row, at: list[Array]) -> Exact:
    """Return the exact derivatives of a row at points, first and second ones."""
    dtype = at[0].dtype
    limits = np.finfo(dtype)
    least, most = mpf(float(limits.smallest_normal)), mpf(float(limits.max))
    arguments_dtype[0] = dtype
    found: Exact = []
    arguments = [[mpf(float(value)) for value in x] for x in at]
    counts = np.ones(len(at[0]), bool)
    if row.inside == "arguments":
        counts = np.all([np.abs(x) >= limits.smallest_normal for x in at], axis=0)
    elif row.inside == "values":
        sizes = [abs(_at(row.value, point)) for point in zip(*arguments, strict=True)]
        counts = np.array([least <= size <= most for size in sizes], bool)
        least, most = least * 4096, most / 4096
    for order, form in enumerate((*row.first, *row.second)):
        values, units = [], []
        scale = row.scales.get(order)
        for point in zip(*arguments, strict=True):
            values.append(_at(form, point))
            size = max(abs(values[-1]), abs(scale(*point))) if scale else abs(values[-1])
            exponent = mp.frexp(size)[1] if mp.isfinite(size) else 0
            units.append(mp.ldexp(1, exponent - 1 - limits.nmant))
        normal = np.array([bool(least <= abs(v) <= most) or v == 0 for v in values], bool) & counts
        found.append((values, normal, units))
    return found


def _at(form: Callable[..., Any], point: tuple[Any, ...]) -> Any:
    """Return a function's value, or nan outside its domain."""
    try:
        return mpf(form(*point))
    except (ZeroDivisionError, ValueError, OverflowError):
        return mp.nan


def errors_of(values: list[Any], normal: Array, units: list[Any], computed: Array) -> Array:
    """Return errors in units of the last place, 0 where the exact value is not normal."""
    result = np.zeros(len(values))
    for i in np.flatnonzero(normal):
        true, got = values[i], float(computed[i])
        if not math.isfinite(got):
            result[i] = math.inf
        elif true == 0:
            result[i] = 0.0 if got == 0 else math.inf
        else:
            result[i] = float(abs(mpf(got) - true) / units[i])
    return result


def worst(row: Row, at: list[Array], true: Exact, library: str) -> list[tuple[float, list[float]]]:
    """Return the largest error of each derivative, and where it is."""
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        try:
            found = LIBRARIES[library](row, at)
        except RuntimeError:  # PyTorch cannot differentiate some gradients
            found = None
    if found is None:
        return []
    result = []
    for parts, computed in zip(true, found, strict=True):
        each = errors_of(*parts, computed)
        place = int(np.argmax(each)) if len(each) else 0
        result.append((float(each[place]), [float(x[place]) for x in at]))
    return result


def derivatives_of(row: Row, at: list[Array]) -> list[Array]:
    """Return gradtape's derivatives, first and second ones, at points."""
    import gradtape as gt

    run = eval(f"lambda x, y=None: {row.call}", {"gt": gt, "nn": gt.nn})
    inputs = [gt.constant(x) for x in at]
    with gt.GradientTape(persistent=True) as outer:
        for x in inputs:
            outer.watch(x)
        with gt.GradientTape(persistent=True) as inner:
            for x in inputs:
                inner.watch(x)
            value = run(*inputs)
        first = [inner.gradient(value, x) for x in inputs]
    pairs = _second_pairs(len(inputs))
    second = [None if first[i] is None else outer.gradient(first[i], inputs[j]) for i, j in pairs]
    return [np.zeros_like(at[0]) if g is None else g.numpy() for g in (*first, *second)]


def gradients_alone(row: Row, point: Sequence[Any]) -> list[float]:
    """Return gradtape's first derivatives at one point, with no other tape around."""
    import gradtape as gt

    run = eval(f"lambda x, y=None: {row.call}", {"gt": gt, "nn": gt.nn})
    inputs = [gt.constant(np.array([x])) for x in point]
    with warnings.catch_warnings(), np.errstate(all="ignore"), gt.GradientTape() as tape:
        warnings.simplefilter("ignore")
        tape.watch(inputs)
        value = run(*inputs)
        found = tape.gradient(value, inputs)
    return [0.0 if g is None else float(g.numpy()[0]) for g in found]


def _second_pairs(count: int) -> list[tuple[int, int]]:
    return [(i, j) for i in range(count) for j in range(i, count)]


def _of_jax(row: Row, at: list[Array]) -> list[Array] | None:
    import jax
    import jax.numpy as jnp

    if not row.jax:
        return None
    jax.config.update("jax_enable_x64", True)
    names = {"jnp": jnp, "nn": jax.nn, "special": jax.scipy.special}
    run: Callable[..., Any] = eval(f"lambda x, y=None: {row.jax}", names)
    count = len(at)
    firsts = [jax.grad(lambda *xs: run(*xs).sum(), i) for i in range(count)]
    seconds = [
        jax.grad(lambda *xs, first=firsts[i]: first(*xs).sum(), j) for i, j in _second_pairs(count)
    ]
    return [np.asarray(one(*at)) for one in (*firsts, *seconds)]


def _of_torch(row: Row, at: list[Array]) -> list[Array] | None:
    import torch

    if not row.torch:
        return None
    names = {"torch": torch, "nn": torch.nn.functional}
    run = eval(f"lambda x, y=None: {row.torch}", names)
    inputs = [torch.tensor(x, requires_grad=True) for x in at]

    def slope(target: Any, source: Any) -> Any:
        if not target.requires_grad:
            return torch.zeros_like(source)
        options = {"create_graph": True, "allow_unused": True}
        return torch.autograd.grad(target.sum(), source, **options)[0]

    value = run(*inputs)
    first = [slope(value, x) for x in inputs]
    first = [torch.zeros_like(inputs[0]) if g is None else g for g in first]
    second = [slope(first[i], inputs[j]) for i, j in _second_pairs(len(at))]
    second = [torch.zeros_like(inputs[0]) if g is None else g for g in second]
    return [g.detach().numpy() for g in (*first, *second)]


LIBRARIES: dict[str, Callable[[Row, list[Array]], list[Array] | None]] = {
    "gradtape": derivatives_of,
    "jax": _of_jax,
    "torch": _of_torch,
}


def measured(row: Row, count: int, libraries: list[str]) -> Iterator[tuple[str, str, Any]]:
    """Give library, dtype and :func:`worst` for each of them."""
    for dtype in ("float64", "float32"):
        at = points(row, count, dtype)
        true = exact(row, at)
        for library in libraries:
            yield library, dtype, worst(row, at, true, library)

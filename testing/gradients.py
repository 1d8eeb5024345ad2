"""Comparison of a tape's gradients with finite differences, for every order.

    check_gradients(gt.sin, x)                  # first and second order
    check_gradients(gt.multiply, x, y, order=3)

Gradients are compared element by element. Random weights first combine a result of several elements
into one number, so an error in any element of the Jacobian shows. Each element is divided by its
own scale, so that a small one shows next to a large one. Each derivative is measured with two step
widths and extrapolated. If the two disagree, or the slopes on both sides do, the point is at or
near a kink, and the check refuses it. If the function accepts complex numbers and is analytic, a
complex step, which has no rounding error, replaces the differences.

A gradient rule is linear in the upstream gradient. This is checked with sums, and with large and
small upstream gradients: differences do not show a rule that clips what is large.

For complex values a gradient is the direction of steepest ascent: ``dL = Re(conj(gradient) * dx)``.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..core.extend import GradientTape, Tensor, ValueHolder, constant, describe

Array = NDArray[Any]

STEP = 1e-3  # with an extrapolated error of order STEP**4, near the best for float64
RTOL, ATOL = 1e-6, 1e-9
KINK = 1e-4  # measured derivatives that differ by more than this fraction are at a kink
COMPLEX_STEP = 1e-30  # its square vanishes next to any derivative
TINY_STEP = 1e-9  # within this distance, a smooth function is a straight line plus rounding noise
NOISE = 1e13  # the minimum ratio of an element's scale to its noise
# factors of upstream gradients; powers of two round nothing
FACTORS = (2.0**40, 2.0**-40)
# the tolerance of linearity: a fraction of an element, or of the largest sum, and what is rounding
SAME, FLOOR = 1e-6, 1e-12
SHOWN = 256  # the number of elements of the results that are searched for the largest error


def check_gradients(
    fn: Callable[..., Any],
    *inputs: Any,
    order: int = 2,
    rtol: float | None = None,
    atol: float | None = None,
    seed: int = 0,
    step: float = STEP,
    linear: bool = True,
) -> None:
    """Check the gradients of ``fn`` with respect to every floating or complex input.

    Parameters
    ----------
    fn
        A function of tensors that returns a tensor, or a list or tuple of them.
    inputs
        Arrays or numbers of any shape. Floating ones become ``float64``, complex ones
        ``complex128``; integers and booleans stay constant. They must be about ``10 * step`` or
        more away from kinks of ``fn``.
    order
        The maximum order (2 by default); for higher orders, the gradient function is checked in
        the same way, also with respect to its upstream gradient.
    rtol, atol
        The tolerance of a gradient, in addition to the estimated measurement error: ``1e-6`` of the
        larger value and ``1e-9`` if not given. ``atol`` is a fraction of each result's scale, which
        is the larger of its absolute value and its change over a distance of 1.
    seed
        The seed of the random weights and upstream gradients.
    step
        The step width of the differences.
    linear
        Whether gradients are linear in the upstream gradient, as derivatives are; true by default.
        Pass False for a custom gradient that clips or thresholds its upstream gradient on purpose:
        the rest is then checked for upstream gradients of about one over the results.

    Raises
    ------
    AssertionError
        If a gradient differs, or is not linear in the upstream gradient; the message names the
        order, the input, the element, the tape's value and the expected one, for the result with
        the largest error.
    TypeError
        If ``fn`` returns anything but tensors.
    ValueError
        If there is a kink at or near this point, if ``fn`` gives different results for the same
        inputs (for example because it draws random numbers), or if no input or no result is
        differentiable.

    Notes
    -----
    Central differences with two step widths are extrapolated (Richardson), which leaves an error of
    order ``step**4``. The tolerance includes the change by the extrapolation and the rounding
    error, which is measured as the deviation from a straight line within a tiny step. For the first
    order, the derivative of a real input is also measured as ``imag(fn(x + ih)) / h``: if ``fn``
    accepts complex numbers and both measurements agree, this one is used, as it is exact up to
    rounding.

    References
    ----------
    W. Squire and G. Trapp, "Using complex variables to estimate derivatives of real functions",
    SIAM Review 40 (1998) 110-112.

    Examples
    --------
    >>> gt.testing.check_gradients(gt.multiply, [0.5, 1.5], [2.0, 3.0])
    >>> gt.testing.check_gradients(
    ...     lambda x: gt.stop_gradient(x) * x, [0.5], order=1
    ... )  # doctest: +ELLIPSIS
    Traceback (most recent call last):
        ...
    AssertionError: order 1, input 0, element (0,): the tape says 0.5, differences say 1...
    """
    rng = np.random.default_rng(seed)
    bounds = (RTOL if rtol is None else rtol, ATOL if atol is None else atol)
    arrays = [_widened(x) for x in inputs]
    if not any(_differentiable(x) for x in arrays):
        raise ValueError("check_gradients: no input is floating or complex")
    for level in range(1, order + 1):
        outputs, again = _results(fn, arrays), _results(fn, arrays)
        if not all(map(alike, outputs, again)):
            raise ValueError(
                "check_gradients: the function is not deterministic: it gives different results "
                "for the same inputs, so nothing can be measured. If it draws random numbers, let "
                "it start from the same seed or key in each call"
            )
        if not any(map(_differentiable, outputs)):
            given = ", ".join(describe(y.shape, y.dtype) for y in outputs) or "none"
            raise ValueError(
                "check_gradients: no result is floating or complex, so there is no derivative to "
                f"check: got {given}; return a floating result, or leave this function out"
            )
        if linear:
            check_linear(fn, arrays, outputs, seed, level)
        weights = [_weights(rng, y) for y in outputs]
        scales, noise = _scales(fn, arrays, outputs, rng, step)
        _check_first_order(fn, arrays, outputs, weights, scales, noise, step, bounds, level)
        if level < order:
            fn, arrays = _gradient_function(fn, len(arrays), outputs), [*arrays, *weights]


def _widened(x: Any) -> Array:
    x = np.asarray(x)
    wide = {"f": np.float64, "c": np.complex128}.get(x.dtype.kind, x.dtype)
    return x.astype(wide)


def _differentiable(x: Array) -> bool:
    return x.dtype.kind in "fc"


def _weights(rng: np.random.Generator, y: Array) -> Array:
    """Return weights of 0.5 to 1.5 in absolute value: none is so small that it hides an error."""
    y = np.asarray(y)
    size = rng.uniform(0.5, 1.5, y.shape)
    if y.dtype.kind == "c":
        return np.asarray(size * np.exp(2j * np.pi * rng.uniform(size=y.shape)))
    return np.asarray(size * rng.choice([-1.0, 1.0], y.shape))


def _outputs(fn: Callable[..., Any], tensors: Sequence[Any]) -> list[Any]:
    result = fn(*tensors)
    listed = list(result) if isinstance(result, (list, tuple)) else [result]
    listed = [y.value if isinstance(y, ValueHolder) else y for y in listed]
    for i, y in enumerate(listed):
        if not isinstance(y, Tensor):
            raise TypeError(
                f"check_gradients: result {i} of the function is {type(y).__name__} instead of a "
                "tensor: compute with gradtape's functions, and return their results"
            )
    return listed


def _results(fn: Callable[..., Any], arrays: Sequence[Array]) -> list[Array]:
    return [np.asarray(y.numpy()) for y in _outputs(fn, [constant(x) for x in arrays])]


def alike(x: Array, y: Array) -> bool:
    """Return whether two runs gave the same, except for the order in which threads add."""
    return x.shape == y.shape and np.allclose(x, y, rtol=1e-9, atol=1e-12, equal_nan=True)


def _scales(
    fn: Callable[..., Any],
    arrays: list[Array],
    outputs: list[Array],
    rng: np.random.Generator,
    step: float,
) -> tuple[list[Array], list[Array]]:
    """Return the scale of each element of the results, by value and growth, and its noise."""
    direction = [_weights(rng, x) if _differentiable(x) else None for x in arrays]

    def at(width: float) -> list[Array]:
        moved = [x if d is None else x + width * d for x, d in zip(arrays, direction, strict=True)]
        return _results(fn, moved)

    widths = rng.uniform(-1.0, 1.0, 6)
    points = [at(width * TINY_STEP) for width in widths]
    line = np.stack([np.ones(6), widths], axis=1)
    off_line = np.eye(6) - line @ np.linalg.pinv(line)  # the deviation from a straight line
    scales, noises = [], []
    with np.errstate(all="ignore"):
        for y, far, half, *near in zip(outputs, at(step), at(step / 2.0), *points, strict=True):
            if not _differentiable(y):
                scales.append(np.ones(y.shape))
                noises.append(np.zeros(y.shape))
                continue
            noise = np.abs(np.tensordot(off_line, np.stack(near), 1)).max(axis=0)
            noise = np.maximum(noise, np.finfo(np.float64).eps * np.abs(y))
            # next to a zero, its change over a distance of 1 if it grows as a power
            far, half = np.abs(far - y), np.abs(half - y)
            power = np.nan_to_num(np.clip(np.log2(far / half), 1.0, 4.0), nan=1.0)
            scale = np.maximum.reduce([np.abs(y), far / step**power, NOISE * noise])
            usable = np.isfinite(scale) & (scale > 0)
            scales.append(np.where(usable, scale, 1.0))
            noises.append(np.where(usable, noise, 0.0))
    return scales, noises


def _gradient_function(
    fn: Callable[..., Any], count: int, outputs: Sequence[Array]
) -> Callable[..., Any]:
    """Return a function of inputs and upstream gradients that returns the inputs' gradients."""
    followed = [i for i, y in enumerate(outputs) if _differentiable(np.asarray(y))]

    def gradients(*args: Any) -> list[Any]:
        tensors, upstream = list(args[:count]), list(args[count:])
        sources = [x for x in tensors if x.dtype.kind in "fc"]
        with GradientTape() as tape:
            tape.watch(sources)
            results = _outputs(fn, tensors)
        return list(
            tape.gradient(
                [results[i] for i in followed],
                sources,
                output_gradients=[upstream[i] for i in followed],
                unconnected_gradients="zero",
            )
        )

    return gradients


def gradient_of(
    fn: Callable[..., Any], arrays: list[Array], outputs: Sequence[Array], seed: int
) -> tuple[Callable[..., Any], list[Array], list[Array]]:
    """Return the gradient function of ``fn`` with inputs and results, to be checked like ``fn``."""
    rng = np.random.default_rng(seed)
    gradients = _gradient_function(fn, len(arrays), outputs)
    inputs = [*arrays, *(_seeds(rng, y) for y in outputs)]
    return gradients, inputs, _results(gradients, inputs)


def _check_first_order(
    fn: Callable[..., Any],
    arrays: list[Array],
    outputs: list[Array],
    weights: list[Array],
    scales: list[Array],
    noises: list[Array],
    step: float,
    bounds: tuple[float, float],
    level: int,
) -> None:
    rtol, atol = bounds
    weights = [w / s for w, s in zip(weights, scales, strict=True)]
    pairs = zip(weights, noises, strict=True)
    noise = 10.0 / step * float(np.sqrt(sum(np.sum(np.abs(w * n) ** 2) for w, n in pairs)))
    gradients = _gradient_function(fn, len(arrays), outputs)
    grads = gradients(*map(constant, arrays), *map(constant, weights))
    positions = [i for i, x in enumerate(arrays) if _differentiable(x)]
    middle = _joined(weights, outputs)
    # gradients of complex values are not analytic: higher orders use differences
    analytic = level == 1
    for number, (position, grad) in enumerate(zip(positions, grads, strict=True)):
        x, got = arrays[position], np.asarray(grad.numpy())
        where = f"order {level}, input {position}"
        if (got.shape, got.dtype) != (x.shape, x.dtype):
            raise AssertionError(
                f"{where}: expected a gradient of the input's shape and dtype, "
                f"{describe(x.shape, x.dtype)}, got {describe(got.shape, got.dtype)}"
            )

        def at(value: Array, position: int = position) -> list[Array]:
            return _results(fn, [*arrays[:position], value, *arrays[position + 1 :]])

        def along(direction: Array, x: Array = x) -> float:
            return _joined(weights, at(x + direction))

        for index, unit in _units(x):
            have, place = _inner(got, unit), f"{where}, element {index}"
            try:
                want, error = _measured(along, middle, unit, step, have, noise)
            except _Kink as kink:
                raise ValueError(
                    f"{place}: differences at {x[index]} are unreliable: {kink}; stay away from "
                    "kinks"
                ) from None
            allowed = atol + rtol * max(abs(want), abs(have))
            if analytic:
                exact = _complex_step(at, x, unit, weights)
                analytic = exact is not None
                if exact is not None and abs(exact - want) <= allowed + error:
                    want, error = exact, 0.0
            if not abs(have - want) <= allowed + error:

                def entry(*seeds: Array, number: int = number, unit: Array = unit) -> float:
                    grads = gradients(*map(constant, arrays), *map(constant, seeds))
                    return _inner(grads[number].numpy(), unit)

                slopes = _slopes(at, x, unit, step)
                said = _furthest(entry, slopes, scales) or f"the tape says {have}, not {want}"
                raise AssertionError(f"{place}: {said}")


def check_linear(
    fn: Callable[..., Any],
    arrays: list[Array],
    outputs: list[Array],
    seed: int,
    level: int,
) -> None:
    """Raise if the gradients of ``fn`` are not linear in the upstream gradients.

    Parameters
    ----------
    fn
        A function of tensors.
    arrays, outputs
        Its inputs and its results.
    seed
        The seed of random upstream gradients.
    level
        The order, for the message.
    """
    rng = np.random.default_rng(seed)
    gradients = _gradient_function(fn, len(arrays), outputs)
    given = list(map(constant, arrays))

    def at(seeds: Sequence[Array]) -> list[Array]:
        return [np.asarray(g.numpy()) for g in gradients(*given, *map(constant, seeds))]

    # integer results have no upstream gradients, and theirs are not used
    one, other = ([_seeds(rng, y) for y in outputs] for _ in range(2))
    ones, others = at(one), at(other)
    cases = [
        (f"upstream gradients of about {factor:.0e}", at([factor * u for u in one]), factor, 0.0)
        for factor in FACTORS
    ]
    both = at([2.0 * v - 0.5 * u for u, v in zip(one, other, strict=True)])
    cases.append(("a sum of upstream gradients", both, -0.5, 2.0))
    positions = [i for i, x in enumerate(arrays) if _differentiable(x)]
    for what, found, a, b in cases:
        for position, got, g, h in zip(positions, found, ones, others, strict=True):
            with np.errstate(all="ignore"):
                want = a * g + b * h if b else a * g
                size = np.abs(a * g) + np.abs(b * h)
                finite = np.isfinite(want) & np.isfinite(got)
                largest = float(size[finite].max(initial=0.0)) if b else 0.0
                allowed = SAME * (size + largest) + FLOOR * (abs(a) + abs(b))
                wrong = finite & ~(np.abs(got - want) <= allowed)
            if wrong.any():
                index = tuple(map(int, np.argwhere(wrong)[0]))
                raise AssertionError(
                    f"order {level}, input {position}, element {index}: the gradient is not linear "
                    f"in the upstream gradient: for {what} it is {got[index]:.6g} instead of "
                    f"{want[index]:.6g}; multiply by the upstream gradient and nothing else, or "
                    "pass linear=False if a custom gradient clips it on purpose"
                )


def _seeds(rng: np.random.Generator, y: Array) -> Array:
    """Return numbers of few digits: their sums are exact in any precision."""
    found = rng.integers(2, 7, y.shape) / 4.0 * rng.choice([-1.0, 1.0], y.shape)
    return found + 1j * _seeds(rng, y.real) if y.dtype.kind == "c" else found


def _furthest(entry: Callable[..., float], slopes: list[Array], scales: list[Array]) -> str | None:
    """Describe the element of the results with the largest error."""
    worst, said = 0.0, None
    places = [
        (i, at) for i, y in enumerate(slopes) if _differentiable(y) for at in np.ndindex(y.shape)
    ]
    for i, at in places[:SHOWN]:
        for one in (1.0, 1j) if slopes[i].dtype.kind == "c" else (1.0,):
            seeds = [np.zeros_like(y) for y in slopes]
            seeds[i][at] = one
            have, want = entry(*seeds), float((np.conj(one) * slopes[i][at]).real)
            off = abs(have - want) / float(scales[i][at])
            if not off <= worst:
                worst = off
                of = f", of result {i}" if len(slopes) > 1 else ", of the result"
                part = " (imaginary part)" if one == 1j else ""
                said = f"the tape says {have:.12g}, differences say {want:.12g}"
                said += f"{of}'s element {at}{part}"
    return said


def _joined(weights: Sequence[Array], results: Sequence[Array]) -> float:
    return sum(_inner(w, y) for w, y in zip(weights, results, strict=True))


def _inner(a: Any, b: Any) -> float:
    return float(np.sum(np.conj(a) * b).real)


def _units(x: Array) -> Iterator[tuple[tuple[int, ...], Array]]:
    """Give each element's direction (for complex ones also the imaginary direction)."""
    for index in np.ndindex(x.shape):
        for value in (1.0, 1j) if x.dtype.kind == "c" else (1.0,):
            unit = np.zeros_like(x)
            unit[index] = value
            yield index, unit


class _Kink(Exception):
    """Differences do not converge to a derivative."""


def _measured(
    along: Callable[[Array], float],
    middle: float,
    unit: Array,
    step: float,
    have: float,
    noise: float,
) -> tuple[float, float]:
    """Return the derivative along ``unit``, and an estimate of its error."""
    # where the function bends too much for a step, a smaller step may do
    for narrower in (1.0, 8.0):
        width = step / narrower
        want, change, jump = _derivative(along, middle, unit, width)
        bound = KINK * max(abs(want), abs(have), 1.0)
        if max(change, jump) <= bound:
            break
    else:
        if jump > bound:
            raise _Kink(f"the slopes from either side differ by {jump:.6g}")
        raise _Kink(f"they do not converge ({want:.6g}, changed by {change:.6g})")
    noise *= narrower
    if noise < abs(have - want) <= 10.0 * change:
        # half the width leaves a quarter of a smooth function's change, but half that of |x| * x
        finer = _derivative(along, middle, unit, width / 2.0)[1]
        if finer > 0.35 * change:
            raise _Kink(f"they converge slowly (to {want:.6g}), as near a kink of the derivative")
    return want, 1e-2 * change + noise


def _derivative(
    along: Callable[[Array], float], middle: float, unit: Array, step: float
) -> tuple[float, float, float]:
    """Return the derivative along ``unit``, the change by extrapolation, and a kink's jump."""
    ahead, behind = along(step * unit), along(-step * unit)
    near_ahead, near_behind = along(step / 2.0 * unit), along(-step / 2.0 * unit)
    wide, narrow = (ahead - behind) / (2.0 * step), (near_ahead - near_behind) / step
    # the error of central differences is c * step**2, so half the width leaves a quarter of it
    best = narrow + (narrow - wide) / 3.0
    # the slopes on both sides differ by step * curvature, which half the width halves; a
    # difference that does not shrink with the step is a kink
    bend = (ahead - 2.0 * middle + behind) / step
    near_bend = (near_ahead - 2.0 * middle + near_behind) / (step / 2.0)
    return best, abs(best - narrow), abs(2.0 * near_bend - bend)


def _slopes(at: Callable[[Array], list[Array]], x: Array, unit: Array, step: float) -> list[Array]:
    """Return the derivative of each element of the results along ``unit``."""
    found = []
    points = [at(x + width * unit) for width in (step, -step, step / 2.0, -step / 2.0)]
    for ahead, behind, near_ahead, near_behind in zip(*points, strict=True):
        if not _differentiable(ahead):
            found.append(np.zeros(ahead.shape))
            continue
        wide, narrow = (ahead - behind) / (2.0 * step), (near_ahead - near_behind) / step
        found.append(np.asarray(narrow + (narrow - wide) / 3.0))
    return found


def _complex_step(
    at: Callable[[Array], list[Array]], x: Array, unit: Array, weights: Sequence[Array]
) -> float | None:
    """Measure the derivative along ``unit`` with a complex step; None if that is impossible."""
    if x.dtype.kind == "c" or any(w.dtype.kind == "c" for w in weights):
        return None
    try:
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            results = at(x + 1j * COMPLEX_STEP * unit)
    except Exception:  # any error of a function that was not written for complex numbers
        return None
    slopes = [np.sum(w * y.imag) for w, y in zip(weights, results, strict=True)]
    total = float(sum(slopes)) / COMPLEX_STEP
    return total if np.isfinite(total) else None

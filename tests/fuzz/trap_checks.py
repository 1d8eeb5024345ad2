"""Checks of a call at a hard point; each of them gives descriptions of what is wrong."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

import gradtape as gt
from fuzz.program import Array
from gradtape.core.extend import ops

__all__ = ["called", "trapped"]

WIDTHS = (1e-5, 1e-6)
VAGUE = 1e-7
AGREE = 1e-3  # measured slopes that agree within this fraction count as one slope
NEAR = 1e-2  # the maximum error of a gradient, as a fraction of them
TINIEST = 1e-300  # smaller numbers are lost to underflow
#: Dtypes of two arguments.
MIXES = (
    *(("float32", "float64"), ("float64", "float32"), ("float16", "float32")),
    *(("float32", "int64"), ("int32", "float64"), ("float64", "bool")),
)
#: Errors by which a call refuses a point.
REFUSED = (ValueError, IndexError, TypeError, ZeroDivisionError, np.linalg.LinAlgError)
EPS = float(np.finfo(np.float64).eps)
LARGEST, SMALLEST = 1e37, 1e-36  # of float32, with some room


def called(call: str) -> Callable[..., Any]:
    """Return a call's text as a function of its tensors."""
    arguments = ", ".join(n for n in "xyz" if re.search(rf"\b{n}\b", call))
    made: Callable[..., Any] = eval(f"lambda {arguments}: {call}", {"gt": gt, "np": np, "ops": ops})
    return made


def trapped(call: str, xs: list[Array]) -> Iterator[str]:
    """Give what is wrong with a call at a point in float64."""
    fn = called(call)
    y, slopes = _slopes(fn, xs)
    if y is None:
        return
    yield from _told(fn, xs)
    yield from _dtypes(fn, xs)
    yield from _mixed(fn, xs)
    yield from _measured(fn, xs, y, slopes)
    if np.all(np.isfinite(y)) and all(np.all(np.isfinite(g)) for g in slopes):
        yield from _modes(fn, xs, slopes)
        yield from _single(fn, xs)
        yield from _second(fn, xs, y)


def _weights(y: Any) -> Array:
    return np.asarray(np.cos(np.arange(y.size, dtype="float64") + 0.3).reshape(y.shape), "float64")


def _first(y: Any) -> Any:
    return y[0] if isinstance(y, (list, tuple)) else y


def _slopes(fn: Callable[..., Any], xs: list[Array]) -> tuple[Array | None, list[Array]]:
    """Return the value and the gradients of its weighted sum; None if the call is refused."""
    tensors = [gt.constant(x) for x in xs]
    with gt.GradientTape() as tape:
        tape.watch(tensors)
        try:
            y = _first(fn(*tensors))
        except REFUSED:
            return None, []
    if y.dtype.kind != "f":
        return None, []
    grads = tape.gradient(
        y, tensors, output_gradients=_weights(y).astype(y.dtype), unconnected_gradients="zero"
    )
    return np.asarray(y.numpy()), [np.asarray(g.numpy()) for g in grads]


def _told(fn: Callable[..., Any], xs: list[Array]) -> Iterator[str]:
    """Require a gradient, or the name of the op without one, if a float result depends on x."""
    tensors = [gt.constant(x) for x in xs]
    with gt.GradientTape(persistent=True) as tape:
        tape.watch(tensors)
        y = _first(fn(*tensors))
    for position, x in enumerate(tensors):
        if tape.gradient(y, x) is None and "ends" not in tape.explain(y, x):
            moved = [t * 1.5 + 0.75 if i == position else t for i, t in enumerate(tensors)]
            other = _first(fn(*moved)).numpy()
            if not np.array_equal(other, y.numpy(), equal_nan=True):
                yield f"the gradient is None, and explain says {tape.explain(y, x)!r}"


def _dtypes(fn: Callable[..., Any], xs: list[Array]) -> Iterator[str]:
    for dtype in ("float16", "float32", "float64"):
        with np.errstate(over="ignore"):
            small = [x.astype(dtype) for x in xs]
        if any(np.isfinite(x).sum() != np.isfinite(wide).sum() for x, wide in zip(small, xs)):
            continue  # out of range; LAPACK may hang at an infinity
        y, slopes = _slopes(fn, small)
        for x, g in zip(small, slopes, strict=False):
            if y is not None and (g.dtype != x.dtype or g.shape != x.shape):
                yield f"the gradient of {x.dtype}{list(x.shape)} is {g.dtype}{list(g.shape)}"


def _mixed(fn: Callable[..., Any], xs: list[Array]) -> Iterator[str]:
    """Compare gradients of mixed dtypes with those of ``float64``, at whole numbers."""
    if len(xs) != 2 or not all(np.all(np.abs(x) < 10.0) for x in xs):
        return
    for mix in MIXES:
        given = [np.rint(x).astype(dtype) for x, dtype in zip(xs, mix, strict=True)]
        y, slopes = _slopes(fn, given)
        wide_y, wide = _slopes(fn, [x.astype("float64") for x in given])
        if y is None or wide_y is None or y.shape != wide_y.shape:
            continue
        for x, g, right in zip(given, slopes, wide, strict=True):
            if x.dtype.kind != "f":
                continue
            if g.dtype != x.dtype or g.shape != x.shape:
                yield f"for {mix} the gradient of {x.dtype} is {g.dtype}{list(g.shape)}"
            elif np.allclose(y, wide_y, rtol=1e-2) and not np.allclose(
                g, right, rtol=1e-2, atol=1e-2 * np.abs(right).max(initial=1e-3), equal_nan=True
            ):
                yield f"for {mix} the gradient is {g.tolist()}, for float64 {right.tolist()}"


def _second(fn: Callable[..., Any], xs: list[Array], y: Array) -> Iterator[str]:
    """Compare gradients of gradients with measured slopes of gradients."""
    weights = _weights(y)
    sizes = np.concatenate([np.abs(x[x != 0.0]) for x in xs])
    if not np.all((sizes > 1e-100) & (sizes < 1e100)):
        return  # the chain rule's products, such as cubes, would be out of range

    def slope(*given: Any) -> Any:
        with gt.GradientTape() as tape:
            tape.watch(list(given))
            y = _first(fn(*given))
        found = tape.gradient(
            y, list(given), output_gradients=weights, unconnected_gradients="zero"
        )
        return gt.concatenate([gt.reshape(g, (-1,)) for g in found], axis=0)

    first, curves = _slopes(slope, xs)
    if first is not None:
        # terms of this size may have cancelled
        size = float(np.abs(weights).sum()) + _natural(y, xs)
        for said in _measured(slope, xs, first, curves, EPS * size):
            yield f"at second order {said}"


def _measured(
    fn: Callable[..., Any], xs: list[Array], y: Array, slopes: list[Array], floor: float = TINIEST
) -> Iterator[str]:
    """Compare with the slopes on both sides, if there is a slope in every direction."""
    if not np.all(np.isfinite(y)) or not all(np.all(np.isfinite(x)) for x in xs):
        return
    weights, noise = _weights(y), EPS * float(np.sum(np.abs(y))) + floor
    for ulps in (1.0, -2.0, 3.0):  # the effect of rounding the point
        near = _slopes(fn, [x * (1.0 + ulps * EPS * _unit(x)) for x in xs])[0]
        if near is None or near.shape != y.shape:
            return
        noise = max(noise, float(np.sum(np.abs(near - y))))
    if noise > VAGUE * float(np.sum(np.abs(y))) + TINIEST:
        return  # the value is all rounding, like the sine of a large number

    def along(directions: list[Array]) -> tuple[float, float] | None:
        """Return the slope along directions and its error, or None if there is none."""
        found = []
        for step in (side * w for w in WIDTHS for side in (1, -1)):
            # a zero keeps its value and sign
            pairs = list(zip(xs, directions, strict=True))
            moved = [np.where(d != 0.0, x + step * d, x) for x, d in pairs]
            if any(np.any((d != 0.0) & (m == x)) for m, (x, d) in zip(moved, pairs, strict=True)):
                return None
            try:
                value = _first(fn(*map(gt.constant, moved))).numpy()
            except REFUSED:
                return None
            if value.shape != y.shape:
                return None
            found.append(float(np.sum(weights * (value - y))) / step)
        slope, spread = float(np.mean(found)), float(np.ptp(found))
        uncertain = 40.0 * noise / WIDTHS[-1]
        if not np.isfinite(slope) or spread > AGREE * abs(slope) + uncertain:
            return None
        return slope, spread + uncertain

    units = [_unit(x) for x in xs]
    total, parts, worst = 0.0, 0.0, ""
    for position, (x, g) in enumerate(zip(xs, slopes, strict=True)):
        for index in np.ndindex(x.shape):
            directions = [np.zeros_like(x) for x in xs]
            directions[position][index] = width = _width(x, index)
            measured = along(directions)
            if measured is None:
                return
            slope, error = measured
            if slope and not SMALLEST**8 < abs(slope / width) < LARGEST**8:
                return  # out of range, or near its end
            total += slope * float(units[position][index])
            parts += abs(slope)
            with np.errstate(all="ignore"):
                have = float(g[index] * width)
            if not np.isfinite(g[index]) and error / width > LARGEST**7:
                return  # a slope out of range would be within the error
            if not abs(have - slope) <= NEAR * abs(slope) + error and not worst:
                where = f"element {index} of {'xyz'[position]}"
                worst = f"the gradient at {where} is {g[index]:.6g}, the slope {slope / width:.6g}"
    together = along([_widths(x) * u for x, u in zip(xs, units, strict=True)])
    if worst and together is not None and abs(together[0] - total) <= NEAR * parts + together[1]:
        yield worst


def _width(x: Array, index: tuple[int, ...]) -> float:
    return abs(float(x[index])) or float(np.abs(x).max()) or 1.0


def _widths(x: Array) -> Array:
    return np.array([_width(x, index) for index in np.ndindex(x.shape)]).reshape(x.shape)


def _unit(x: Array) -> Array:
    """Return a direction that is not along an axis."""
    return np.asarray(np.sin(np.arange(x.size) * 1.7 + 0.8).reshape(x.shape), "float64")


def _modes(fn: Callable[..., Any], xs: list[Array], slopes: list[Array]) -> Iterator[str]:
    """Compare forward mode, a trace and a batch with the tape."""
    tensors = [gt.constant(x) for x in xs]
    y = _first(fn(*tensors))
    weights = _weights(y)

    def gradients(*given: Any) -> Any:
        with gt.GradientTape() as tape:
            tape.watch(list(given))
            y = _first(fn(*given))
        return tape.gradient(y, list(given), output_gradients=weights, unconnected_gradients="zero")

    names = ", ".join("xyz"[: len(xs)])
    scope = {"gradients": gradients, "gt": gt}
    flat: Callable[..., Any] = eval(f"lambda {names}: gradients({names})", scope)
    runs: dict[str, Callable[[], Any]] = {
        "a trace": lambda: gt.function(flat)(*tensors),
        "vmap": lambda: [g[0] for g in gt.vmap(flat)(*[gt.stack([x, x]) for x in tensors])],
    }
    for mode, run in runs.items():
        try:
            got = run()
        except (gt.errors.TraceError, ValueError) as error:
            if isinstance(error, gt.errors.TraceError) or "unknown" in str(error):
                continue
            raise
        for mine, right in zip(got, slopes, strict=True):
            if not _alike(mine.numpy(), right, 1e-6):
                yield f"{mode} gives the gradient {mine.tolist()}, the tape {right.tolist()}"
    _, tangent = gt.jvp(
        lambda *given: _first(fn(*given)), tuple(tensors), tuple(map(gt.ones_like, tensors))
    )
    ahead = float(np.sum(weights * tangent.numpy()))
    back = float(sum(np.sum(g) for g in slopes))
    scale = float(sum(np.sum(np.abs(g)) for g in slopes))
    allowed = 1e-6 * scale + 1e-9 * _natural(y.numpy(), xs) + TINIEST
    if np.isfinite(scale) and not abs(ahead - back) <= allowed:
        yield f"forward mode gives {ahead:.6g}, the tape {back:.6g}"


def _natural(y: Array, xs: list[Array]) -> float:
    """Return the slope that changes the value by its own size."""
    sizes = [float(np.abs(x[np.isfinite(x)]).max(initial=0.0)) for x in xs]
    size = min((size for size in sizes if size), default=0.0)
    return float(np.abs(y[np.isfinite(y)]).sum()) / size if size else 0.0


def _alike(mine: Array, right: Array, share: float) -> bool:
    scale = float(np.abs(right).max(initial=0.0))
    return bool(np.allclose(mine, right, rtol=share, atol=share * scale, equal_nan=True))


def _single(fn: Callable[..., Any], xs: list[Array]) -> Iterator[str]:
    """Compare the rule in single precision with the rule in double precision."""
    with np.errstate(all="ignore"):
        small = [x.astype("float32") for x in xs]
    if not all(np.all(np.isfinite(x)) for x in small):
        return
    y, slopes = _slopes(fn, small)
    wide_y, wide = _slopes(fn, [x.astype("float64") for x in small])
    if y is None or wide_y is None or not np.all(np.isfinite(y)):
        return  # NumPy determines values out of range
    for mine, right in zip(slopes, wide, strict=True):
        size = np.abs(right)
        within = (size == 0.0) | ((size > SMALLEST) & (size < LARGEST))
        if not np.all(np.isfinite(right)) or not np.all(within):
            continue
        # the effect of rounding the point alone
        near = _slopes(fn, [x.astype("float64") * (1.0 + 2.0**-22 * _unit(x)) for x in small])[1]
        unsteady = max(float(np.abs(a - b).max(initial=0.0)) for a, b in zip(near, wide))
        if not np.isfinite(unsteady):
            continue
        scale = float(size.max(initial=0.0))
        rounding = 1e-5 * max(scale, _natural(wide_y, small)) + 30 * unsteady
        if not np.allclose(mine, right, rtol=1e-3, atol=rounding):
            yield f"in float32 the gradient is {mine.tolist()}, in float64 {right.tolist()}"

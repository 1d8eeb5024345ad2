"""Programs that are drawn at random, of what blocks of threads compute together."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import gradtape as gt

_SHAPES = [
    (4, 6), (1, 7), (5, 1), (37,), (1,), (1, 1), (3, 4, 5), (300, 3), (2, 300), (24, 24), (33, 40),
    (2, 3, 4, 5), (9, 700), (600, 9), (2, 1, 70), (0, 3), (3, 0),
]  # fmt: skip
_DTYPES = ["float64", "float64", "float32", "float32", "float16"]


def _softmax(x: Any, axes: Any) -> Any:
    e = gt.exp(x - gt.max(x, axis=axes, keepdims=True))
    return e / gt.sum(e, axis=axes, keepdims=True)


def _normalised(x: Any, axes: Any) -> Any:
    mean = gt.mean(x, axis=axes, keepdims=True)
    less = x - mean
    return less / gt.sqrt(gt.mean(less * less, axis=axes, keepdims=True) + 0.5)


def _flipped(x: Any) -> Any:
    return x[..., ::-1] if x.shape else x


def _halves(x: Any) -> Any:
    n = x.shape[-1] // 2 if x.shape else 0
    return gt.tanh(x[..., :n]) * x[..., n : 2 * n] if n else x


def _joined(x: Any, axes: Any) -> Any:
    if not x.shape:
        return x
    parts = [gt.tanh(x), x * 0.5, gt.sin(x)[..., :1]]
    return gt.concat(parts[: 2 + (axes == (x.ndim - 1,))], axis=axes[0])


#: Functions of a value and of axes; the results are of about the size of a standard normal.
_STEPS: list[Callable[..., Any]] = [
    _softmax,
    _normalised,
    lambda x, axes: gt.tanh(x) + gt.mean(x, axis=axes, keepdims=True),
    lambda x, axes: gt.mean(gt.square(gt.tanh(x)), axis=axes),
    lambda x, axes: gt.max(x, axis=axes) - gt.min(x, axis=axes),
    lambda x, axes: gt.maximum(x * 0.5, 0.25),
    lambda x, axes: _flipped(x) * 0.5 + x,
    lambda x, axes: gt.transpose(x),
    lambda x, axes: gt.reshape(x, (-1,)),
    lambda x, axes: _halves(x),
    lambda x, axes: _joined(x, axes),
    lambda x, axes: _joined(_softmax(x, axes), axes),
    lambda x, axes: gt.sin(x) * 0.5 + gt.max(gt.cos(x)),
    lambda x, axes: gt.registry().ops["round_to_bfloat16"](gt.cast(x, "float32")),
]
#: The same of inputs only, because a number that is rounded otherwise could change their results.
_COUNTS: list[Callable[..., Any]] = [
    lambda x, axes: gt.sum(gt.cast(x > 0.1, "int32"), axis=axes),
    lambda x, axes: gt.all(gt.abs(x) < 0.9, axis=axes, keepdims=True),
]


def block_program(seed: int) -> tuple[Any, list[np.ndarray]]:
    """Return a program, and arrays for it; some have nan, infinity, and no elements at all."""
    draw = np.random.default_rng(seed)
    shape = _SHAPES[draw.integers(len(_SHAPES))]
    dtype = _DTYPES[draw.integers(len(_DTYPES))]
    xs = [draw.normal(size=s).astype(dtype) for s in (shape, shape[-1:], (*shape[:-1], 1), ())]
    if draw.random() < 0.2 and xs[0].size:
        xs[0].reshape(-1)[draw.integers(xs[0].size)] = draw.choice([np.nan, np.inf, -np.inf])
    count = int(draw.integers(4, 14))
    plan = [draw.integers(0, 1000, 4).tolist() for _ in range(count)]
    kept = draw.random(count) < 0.3

    def program(*tensors: Any) -> Any:
        values, found = list(tensors), []
        for number, (kind, i, j, part) in enumerate(plan):
            x = values[max(0, len(values) - 1 - i % 4)]
            if x.dtype.name in ("bool", "int32"):
                x = gt.cast(x, dtype)
            fit = [y for y in values if y.dtype == x.dtype and _broadcasts(y.shape, x.shape)]
            if j % 3 and fit:
                x = gt.tanh(x) + fit[j % len(fit)] * 0.5
            axes = [a for a in range(len(x.shape)) if part >> a & 1] or list(range(len(x.shape)))
            empty = not all(x.shape)
            if part % 9 == 0:
                x, step = tensors[0], _COUNTS[kind % len(_COUNTS)]
                axes = [a for a in axes if a < len(x.shape)]
            else:
                step = _STEPS[kind % len(_STEPS)]
            values.append(gt.tanh(x) if empty else step(x, tuple(axes)))
            if kept[number] or number == count - 1:
                found.append(values[-1])
        return found

    return program, xs


def _broadcasts(shape: Any, to: Any) -> bool:
    try:
        return np.broadcast_shapes(shape, to) == tuple(to)
    except ValueError:
        return False

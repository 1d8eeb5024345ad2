"""Checks of arrays of other dtypes, layouts and backends."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ...core.extend import Op, Tensor, TensorSpec, constant, function
from .trial import Trial

# the tolerance of single precision
SINGLE = 3e-4


def float32(trial: Trial) -> str | None:
    """Check single precision: values, dtypes, and the shape rule."""
    small = {"f": "float32", "c": "complex64"}
    if not any(x.dtype.kind in small for x in trial.arrays):
        return "no floating inputs"
    tensors = [constant(x.astype(small.get(x.dtype.kind, x.dtype))) for x in trial.arrays]
    got = trial.slopes(*tensors)
    _widened(trial, got, tensors)
    trial.compare(got, SINGLE, dtypes=False)
    want, count = trial.want
    trial.compare_dtypes(got, tensors)
    for i, (mine, right) in enumerate(zip(got[:count], want, strict=False)):
        if mine.dtype.kind != right.dtype.kind:
            raise AssertionError(
                f"result {i} has dtype {mine.dtype}, but {right.dtype} in double precision"
            )
    return None


def _widened(trial: Trial, got: Sequence[Any], tensors: Sequence[Any]) -> None:
    """Compare the shapes and dtypes of results in less precision with the shape rule's."""
    try:
        graph = function(trial.of_list).get_concrete_function(tensors).graph
    except (TypeError, ValueError):  # for ops that cannot be traced, "traced" is skipped
        return
    given = ", ".join(sorted({x.dtype.name for x in tensors}))
    pairs = zip(got[: trial.want[1]], graph.outputs, strict=False)
    for i, (real, symbol) in enumerate(pairs):
        which = "the result" if trial.want[1] == 1 else f"result {i}"
        if not TensorSpec(symbol.shape, symbol.dtype).admits(real.shape):
            raise AssertionError(
                f"{which} has shape {real.shape} for {given} inputs, but the shape rule says "
                f"{symbol.shape}"
            )
        if real.dtype != symbol.dtype:
            raise AssertionError(
                f"{which} is {real.dtype} for {given} inputs, but the shape rule says "
                f"{symbol.dtype}; let the kernel keep the dtype (xp.asarray(1, dtype=x.dtype))"
            )


def float16(trial: Trial) -> str | None:
    """Check the dtypes of half precision, and the shape rule."""
    if not any(x.dtype.kind == "f" for x in trial.arrays):
        return "no real inputs"
    tensors = [constant(x.astype("float16") if x.dtype.kind == "f" else x) for x in trial.arrays]
    try:
        got = trial.slopes(*tensors)
    except TypeError as error:
        return f"refused: {error}"
    _widened(trial, got, tensors)
    trial.compare_dtypes(got, tensors)
    return None


def strided(trial: Trial) -> str | None:
    """Check arrays that are not contiguous."""
    if not any(x.ndim for x in trial.arrays):
        return "no axes"
    spread = [np.repeat(x, 2, -1)[..., ::2] if x.ndim else x for x in trial.arrays]
    trial.compare(trial.slopes(*map(Tensor, spread)), what="every second element, ")
    turned = [np.array(x.T, order="C").T for x in trial.arrays]
    trial.compare(trial.slopes(*map(Tensor, turned)), what="transposed, ")
    return None


def empty(trial: Trial) -> str | None:
    """Check that an elementwise op takes arrays without elements."""
    if not (isinstance(trial.op, Op) and trial.op.batch == "elementwise"):
        return "not elementwise"
    if not trial.arrays:
        return "no arrays"
    tensors = [constant(np.zeros((0, 3), x.dtype)) for x in trial.arrays]
    for y in trial.slopes(*tensors):
        if y.shape != (0, 3):
            raise AssertionError(
                f"for inputs of shape (0, 3), a result or gradient has shape {y.shape}"
            )
    return None

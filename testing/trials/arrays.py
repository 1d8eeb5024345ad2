"""Checks of arrays of other dtypes, layouts and backends.

On other backends, results stay there, and are what NumPy gives.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np

from ...core.errors import BackendMismatch, GradientError, PluginError
from ...core.extend import SCALARS, Op, Tensor, TensorSpec, backend_of, constant, function
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


#: The tolerance of values that another library computes.
NEAR = 1e-9


def backend(trial: Trial) -> str | None:
    """Check results and gradients on each of the trial's backends."""
    if not trial.arrays:
        return "no arrays"
    if not trial.backends:
        return "no other backend; pip install array-api-strict"
    refusals = [reason for name in trial.backends if (reason := _on(trial, name)) is not None]
    return refusals[0] if len(refusals) == len(trial.backends) else None


def _on(trial: Trial, name: str) -> str | None:
    """Check one backend; return why the op cannot run there."""
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        try:
            tensors = [constant(x).to(name) for x in trial.arrays]
            _check_places(trial.run(*tensors), name, "result")
            found = trial.slopes(*tensors)
        except (AssertionError, GradientError, PluginError):
            raise
        except Exception as error:  # what the library lacks; a function may hold arrays of NumPy
            if isinstance(error, BackendMismatch) and isinstance(trial.op, Op):
                raise
            return f"refused: {name}: {type(error).__name__}: {error}"
        _check_places(found, name, "result or gradient")
        trial.compare([y.to("numpy") for y in found], NEAR, what=f"on {name}, ")
    return None


def _check_places(found: Sequence[Any], name: str, what: str) -> None:
    for i, y in enumerate(found):
        where = f"{what} {i}" if len(found) > 1 else f"the {what}"
        array = getattr(y, "array", y)
        owner = "Python" if type(array) in SCALARS else backend_of(array).name
        if owner != name.partition(":")[0]:
            raise AssertionError(
                f"{where} for arrays of {name} is an array of {owner}; use the functions of xp, "
                "which is the namespace of the kernel's arrays"
            )
        if getattr(array, "weak_type", False):
            raise AssertionError(
                f"{where} on {name} has a weak dtype, as if it were a Python number; let the "
                "kernel give it one (xp.asarray(result, dtype=x.dtype))"
            )

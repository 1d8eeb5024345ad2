"""The check of other backends: results stay there, and are what NumPy gives."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np

from ...core.errors import BackendMismatch, GradientError, PluginError
from ...core.extend import SCALARS, Op, backend_of, constant
from .trial import Trial

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

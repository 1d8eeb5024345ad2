"""What tests of plans share: the bits of results, and descriptions."""

from __future__ import annotations

from typing import Any

import numpy as np

import gradtape as gt


def bits_by(executor: str, run: Any, *args: Any) -> list[tuple[tuple[int, ...], str, bytes]]:
    """Return shapes, dtypes and bits of a function's results, as an executor's third call gives.

    All nan count as the same.

    Parameters
    ----------
    executor
        The name of the executor.
    run
        A ``gt.function`` that returns a list.
    args
        Its arguments.
    """
    with gt.executor(executor), np.errstate(all="ignore"):
        for _ in range(2):
            run(*args)
        found = [np.array(x) for x in run(*args)]
    for x in found:
        if x.dtype.kind == "f":
            x[np.isnan(x)] = np.nan
    return [(x.shape, x.dtype.str, x.tobytes()) for x in found]


def explained(run: Any) -> str:
    """Return how the planned executor runs a function that it has run.

    Parameters
    ----------
    run
        A ``gt.function``.
    """
    with gt.executor("planned"):
        text: str = run.concrete_functions[0].explain()
        return text

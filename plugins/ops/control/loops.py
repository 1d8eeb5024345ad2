"""Helpers for loops: the shapes and dtypes of values from step to step."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ....core.extend import (
    Branch,
    Tensor,
    TensorSpec,
    active_graph,
    as_tensor,
    flatten,
    is_open,
    pack_like,
    trace_branch,
)
from ..common.dtypes import SCALARS
from .subgraphs import common_shape, widened

__all__: list[str] = []


class _Wider(Exception):
    """Raised if a Python number, whose dtype is weak, must start with a wider dtype."""

    def __init__(self, index: int, dtype: Any) -> None:
        self.index = index
        self.dtype = dtype


def with_wide_start(run: Callable[[Any], Any], start: Any) -> Any:
    """Run a loop that may start from Python numbers: they take the dtype that a step returns."""
    leaves = flatten(start)
    while True:
        try:
            return run(pack_like(start, list(leaves)))
        except _Wider as need:
            leaves[need.index] = as_tensor(leaves[need.index], need.dtype)


def check_dtype(what: str, i: int, before: Tensor, after: Tensor, first: Any) -> None:
    """Raise if a step changes a value's dtype; restart a loop that began with a Python number."""
    if before.dtype == after.dtype:
        return
    weak = type(first) in SCALARS or is_open(first)
    if weak and np.result_type(before.dtype, after.dtype) == after.dtype:
        raise _Wider(i, after.dtype)
    raise TypeError(f"{what} is {before.dtype} and becomes {after.dtype}; cast it with astype")


def _kept(known: Any, before: Any, after: Any) -> Any:
    """Return the known part of a shape, without the sizes that a step changes."""
    common = common_shape(before, after)
    return common and tuple(None if n is None else m for n, m in zip(known, common, strict=True))


def traced_step(
    name: str, step: Any, specs: list[TensorSpec], carried: int, held: list[Any]
) -> Branch:
    """Return the graph of a step; sizes that change from step to step are unknown in it."""
    for _ in range(3):
        body = trace_branch(name, step, specs, active_graph.get(), held)
        after = [
            TensorSpec(_kept(spec.shape, x.shape, y.shape), spec.dtype)
            for spec, x, y in zip(specs[:carried], body.inputs, body.outputs, strict=False)
        ]
        if not any(map(widened, specs, after)):
            break
        specs[:carried] = after
    return body

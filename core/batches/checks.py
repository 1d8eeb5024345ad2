"""Checks of what batching rules return, unless an op's record says that it was verified.

A result without the examples along its first axis would be wrong, and nothing would say so.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..base.array_types import TensorSpec, describe
from ..base.dtypes import SCALARS, numpy_dtype
from ..base.sizes import known_size, shapes_differ, sizes_differ
from ..errors import PluginError
from ..ops.rule import checked_form
from ..tensors.op import Op
from .batched import Shared


class CheckedRule:
    """Runs a batching rule, and raises if its results are not those of a batch."""

    __slots__ = ("_held", "rule")

    def __init__(self, rule: Callable[..., Any]) -> None:
        self.rule = rule
        # the combinations of inputs with examples for which a result was as the shape rule says
        self._held: set[tuple[bool, ...]] = set()

    def __call__(self, op: Op, arrays: Any, batched: Any, params: dict[str, Any]) -> Any:
        """Return what the rule returns."""
        given = tuple(arrays), tuple(batched)  # a rule may change the lists
        result = self.rule(op, arrays, batched, params)
        parts = result if type(result) in (list, tuple) else [result]
        _check_rows(op, parts, *given)
        if given[1] not in self._held:
            wanted = _of_one_example(op, *given, params)
            if wanted is not None:
                _check_examples(op, type(result) in (list, tuple), parts, wanted)
                self._held.add(given[1])
        return result


def _check_rows(op: Op, parts: Sequence[Any], arrays: Any, batched: Any) -> None:
    """Raise if a result of a batching rule does not have the examples along its first axis."""
    shapes = [x.shape for x, b in zip(arrays, batched, strict=True) if b]
    size = next((shape[0] for shape in shapes if shape), None)
    for part in parts:
        if type(part) is Shared:
            continue
        if not hasattr(part, "shape"):
            raise PluginError(f"op {op.name!r}: its batching rule (batch=) returned {part!r:.80}")
        shape = part.shape
        if shape is None or size is None:
            continue
        if not shape or sizes_differ(shape[0], size):
            raise PluginError(
                f"op {op.name!r}: its batching rule (batch=) returned shape {tuple(shape)} for "
                f"{size} examples, which must be along the first axis of the result"
            )


def _of_one_example(op: Op, arrays: Any, batched: Any, params: dict[str, Any]) -> Any:
    """Return what the shape rule says of one example; None if it cannot know."""
    if op.infer is None:
        return None
    specs = []
    for x, b in zip(arrays, batched, strict=True):
        if type(x) in SCALARS:
            specs.append(x)
            continue
        if x.shape is None or not all(map(known_size, x.shape)):
            return None
        specs.append(TensorSpec(tuple(x.shape)[1:] if b else tuple(x.shape), numpy_dtype(x.dtype)))
    try:
        return checked_form(op, op.infer(*specs, **params))
    except (TypeError, ValueError, LookupError):
        return None


def _check_examples(op: Op, several: bool, parts: Sequence[Any], wanted: Any) -> None:
    """Raise if the results of a batching rule are not those of single examples, side by side."""
    specs = wanted if isinstance(wanted, list) else [wanted]
    if several is not isinstance(wanted, list) or len(parts) != len(specs):
        raise PluginError(
            f"op {op.name!r}: its batching rule (batch=) returned "
            f"{f'{len(parts)} results' if several else 'one array'}, but the op has "
            f"{f'a list of {len(specs)}' if isinstance(wanted, list) else 'one output'}"
        )
    for part, (shape, dtype) in zip(parts, specs, strict=True):
        if type(part) is Shared or part.shape is None:
            continue
        got = numpy_dtype(part.dtype)
        if shapes_differ(part.shape[1:], shape) or got != np.dtype(dtype):
            raise PluginError(
                f"op {op.name!r}: its shape rule (infer=) gives {describe(shape, np.dtype(dtype))} "
                f"for one example, but its batching rule (batch=) returned "
                f"{describe(part.shape[1:], got)} for each"
            )

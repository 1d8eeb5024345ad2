"""Integers and booleans in ops that are defined for floating numbers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..base.dtypes import SCALARS, default_dtype, kind_of, numpy_dtype
from ..base.table import F, ops
from ..errors import PluginError


def _dtype_of(dtypes: Sequence[Any]) -> np.dtype[Any]:
    """Return the dtype for integers that occur together with arrays of these dtypes.

    It is that of the arrays that are not integers or booleans, or the default dtype.
    """
    known = [d for d in map(numpy_dtype, dtypes) if d.kind not in "biu"]
    return np.result_type(*known) if known else default_dtype()


def floating_places(floating: bool | Sequence[str], inputs: Sequence[str], op: str) -> range:
    """Return where an op's inputs must be floating: all or none of them, or the first ones."""
    if isinstance(floating, bool):
        return range(len(inputs) if floating else 0)
    if tuple(floating) != tuple(inputs[: len(floating)]):
        raise PluginError(
            f"op {op!r}: floating must be a boolean or the first of its inputs {inputs}, got "
            f"{floating!r}"
        )
    return range(len(floating))


def in_floats(op: Any, kernel: Callable[..., Any]) -> Callable[..., Any]:
    """Return an op's kernel that casts the integers and booleans which must be floating."""
    if not op.floating:
        return kernel
    count, whole = len(op.floating), len(op.floating) == len(op.inputs)

    def one(x: Any, **params: Any) -> Any:
        if getattr(x.dtype, "kind", "b") in "biu":
            (x,) = cast_integers((x,), range(1), F.cast)
        return kernel(x, **params)

    def several(*arrays: Any, **params: Any) -> Any:
        for x in arrays if whole else arrays[:count]:
            if type(x) not in SCALARS and getattr(x.dtype, "kind", "b") in "biu":
                arrays = tuple(cast_integers(arrays, _places(op, arrays), F.cast))
                break
        return kernel(*arrays, **params)

    run: Any = one if len(op.inputs) == 1 and not op.variadic else several
    after = getattr(kernel, "on_tensors", None)
    if after is None:
        return run

    def on_tensors(inputs: Sequence[Any], params: dict[str, Any]) -> Any:
        given = as_read(op, inputs)
        return after(inputs, params) if given is inputs else op(*given, **params)

    run.on_tensors = on_tensors
    return run


def as_read(op: Any, inputs: Sequence[Any]) -> Sequence[Any]:
    """Return the tensors that the gradient rules of an op read instead of its inputs.

    They are those that its kernel computes with: integers and booleans are cast.
    """
    places = _places(op, inputs)
    for i in places:
        x = getattr(inputs[i], "array", inputs[i])
        if type(x) not in SCALARS and getattr(x.dtype, "kind", "b") in "biu":
            return tuple(cast_integers(inputs, places, ops["cast"]))
    return inputs


def _places(op: Any, inputs: Sequence[Any]) -> range:
    """Return where inputs of an op must be floating; the last input's name may be of many."""
    whole = len(op.floating) == len(op.inputs)
    return range(len(inputs)) if whole else op.floating


def cast_integers(
    values: Sequence[Any], places: Sequence[int], cast: Callable[..., Any]
) -> list[Any]:
    """Return values, of which integers and booleans at some places are cast."""
    found = list(values)
    dtypes = {i: values[i].dtype for i in places if type(values[i]) not in SCALARS}
    wrong = [i for i, dtype in dtypes.items() if kind_of(dtype) in "biu"]
    if wrong:
        dtype = _dtype_of(list(dtypes.values())).name
        for i in wrong:
            found[i] = cast(found[i], dtype=dtype)
    return found

"""Applies a layer's precision policy: the dtypes of inputs, variables and results."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from ...core.extend import (
    Function,
    Policy,
    Tensor,
    computing,
    computing_in,
    default_dtype,
    in_precision,
    kind_of,
    map_structure,
)

__all__ = ["by_policy", "in_floats", "in_policy"]


def by_policy(function: Function[Any, Any]) -> None:
    """Make the traces of a method follow the policy of its layer."""
    call = function.python_function

    @functools.wraps(call)
    def wrapper(self: Any, *args: Any, **kwargs: Any) -> Any:
        return in_policy(call, self, *args, **kwargs)

    function.python_function = wrapper


def in_policy(call: Callable[..., Any], layer: Any, *args: Any, **kwargs: Any) -> Any:
    """Call a layer's code under its policy.

    Floating inputs are cast, and variables are read in the compute dtype.
    """
    name = vars(layer).get("_gradtape_policy")
    if name is None and computing.get() is None:
        return call(layer, *args, **kwargs)
    policy = Policy(name or "float64")  # without one, inputs keep their dtypes
    dtype = policy.compute_dtype if policy.mixed and not layer.computes_in_float32 else None
    into = dtype or ("float32" if policy.mixed or name == "float32" else None)
    args, kwargs = _in_precision((args, kwargs), into)
    with computing_in(dtype):
        result = call(layer, *args, **kwargs)
    # results computed from bfloat16 are float32: the next layer rounds them
    narrows = policy.compute_dtype == "float16" and layer.computes_in_float32
    return _in_precision(result, "float16") if narrows else result


def _in_precision(values: Any, dtype: str | None) -> Any:
    if dtype is None:
        return values
    return map_structure(lambda x: in_precision(x, dtype) if type(x) is Tensor else x, values)


def in_floats(layer: Any, inputs: Any) -> Any:
    """Return a layer's inputs with integers and booleans cast to the layer's dtype."""
    if type(inputs) is not Tensor:
        return map_structure(lambda x: in_floats(layer, x) if type(x) is Tensor else x, inputs)
    if kind_of(inputs.array.dtype) not in "biu":
        return inputs
    return inputs.astype(layer.dtype or vars(layer).get("_gradtape_dtype") or default_dtype())

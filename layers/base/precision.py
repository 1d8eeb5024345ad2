"""Applies a layer's precision policy: the dtypes of inputs, variables and results."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from ...core.extend import (
    CASTING,
    Function,
    Policy,
    Tensor,
    computing,
    computing_in,
    default_dtype,
    flatten,
    in_precision,
    map_structure,
)

__all__ = ["by_policy", "floating", "in_policy"]


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
    wide = getattr(layer, "computes_in_float32", False)  # a layer from a file may have no class
    halves = wide and name is None and _are_halves(layer, args, kwargs)
    if name is None and computing.get() is None and not halves:
        return call(layer, *args, **kwargs)
    policy = Policy(name or "float64")  # without one, inputs keep their dtypes
    halves = halves or policy.compute_dtype == "float16"
    dtype = policy.compute_dtype if policy.mixed else None
    if wide and (policy.mixed or halves):
        dtype = "float32"
        if not CASTING:  # its weights may be float16, too
            CASTING.append(dtype)
    into = dtype or ("float32" if name == "float32" else None)
    args, kwargs = _in_precision((args, kwargs), into)
    with computing_in(dtype):
        result = call(layer, *args, **kwargs)
    # results computed from bfloat16 are float32: the next layer rounds them
    return _in_precision(result, "float16") if halves and wide else result


def _are_halves(layer: Any, args: Any, kwargs: Any) -> bool:
    """Return whether a layer without a policy would compute in ``float16``."""
    if type(args[0]) is Tensor and args[0].dtype.itemsize != 2:  # the common case, quickly
        return False
    given = [x.dtype for x in flatten((args, kwargs)) if type(x) is Tensor and x.dtype.kind == "f"]
    halves = bool(given) and all(dtype.itemsize < 4 for dtype in given)
    return halves and all(v.dtype.itemsize < 4 for v in layer.variables if v.dtype.kind == "f")


def _in_precision(values: Any, dtype: str | None) -> Any:
    if dtype is None:
        return values
    return map_structure(lambda x: in_precision(x, dtype) if type(x) is Tensor else x, values)


def floating(x: Any) -> Any:
    """Return a floating tensor as it is; cast an integer or boolean one to a floating dtype."""
    if x.dtype.kind not in "biu":
        return x
    return in_precision(x.astype(default_dtype()), computing.get())

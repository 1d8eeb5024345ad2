"""``tf.debugging``: what raises where something does not hold; of a trace, in each run."""

from __future__ import annotations

from typing import Any

import numpy as np

import gradtape

from ..dtypes import as_dtype
from ..names import adapts
from ..tensors import convert_to_tensor, held_to

__all__ = (
    "assert_integer assert_rank assert_rank_at_least assert_shapes assert_type "
    "disable_check_numerics enable_check_numerics ensure margin"
).split()


def ensure(holds: Any, said: str, *values: Any) -> Any:
    """Return the first value; raise ``ValueError`` in each run in which a condition is false."""

    def check(holds: Any, *values: Any) -> None:
        if not np.all(holds):
            raise ValueError(": ".join([said, ", ".join(str(x.numpy()) for x in values)]))

    gradtape.host_call(check, convert_to_tensor(holds), *map(convert_to_tensor, values))
    return values[0] if values else None


def margin(given: Any, x: Any) -> Any:
    """Return a tolerance: ten times the distance of two numbers, if none is given."""
    usual = 10 * np.finfo(x.dtype).eps if x.dtype.kind == "f" else 0.0
    return usual if given is None else given


@adapts("Tensor.ndim")
def assert_rank(x: Any, rank: Any, message: Any = None, name: Any = None) -> None:
    """Raise ``ValueError`` if ``x`` has not as many axes."""
    if convert_to_tensor(x).ndim != int(rank):
        raise ValueError(f"{message or 'assert_rank'}: {x.shape} has not {int(rank)} axes")


@adapts("Tensor.ndim")
def assert_rank_at_least(x: Any, rank: Any, message: Any = None, name: Any = None) -> None:
    """Raise ``ValueError`` if ``x`` has fewer axes."""
    if convert_to_tensor(x).ndim < int(rank):
        raise ValueError(f"{message or 'assert_rank_at_least'}: {x.shape} has less than {rank}")


@adapts("TensorSpec.admits")
def assert_shapes(
    shapes: Any, data: Any = None, summarize: Any = None, message: Any = None, name: Any = None
) -> None:
    """Raise ``ValueError`` where tensors have other shapes; sizes of one name must be equal."""
    known: dict[Any, Any] = {}
    for x, wanted in shapes.items() if isinstance(shapes, dict) else shapes:
        x, wanted = convert_to_tensor(x), list(wanted)
        if len(wanted) == x.ndim:
            names = zip(wanted, x.shape)
            wanted = [known.setdefault(n, m) if isinstance(n, str) else n for n, m in names]
        held_to(x, wanted, message or "assert_shapes")


@adapts("Tensor.dtype")
def assert_type(tensor: Any, tf_type: Any, message: Any = None, name: Any = None) -> None:
    """Raise ``TypeError`` if a tensor has another dtype."""
    found, wanted = convert_to_tensor(tensor).dtype, as_dtype(tf_type)
    if found != wanted:
        raise TypeError(f"{message or 'assert_type'}: {found} is not {wanted}")


@adapts("Tensor.dtype")
def assert_integer(x: Any, message: Any = None, name: Any = None) -> None:
    """Raise ``TypeError`` if a tensor has no dtype of integers."""
    if convert_to_tensor(x).dtype.kind not in "iu":
        raise TypeError(f"{message or 'assert_integer'}: {x.dtype} is no dtype of integers")


_guards: list[Any] = []


@adapts("debug.nan_guard")
def enable_check_numerics(stack_height_limit: int = 30, path_length_limit: int = 50) -> None:
    """Raise from now on where an op makes something infinite or nan."""
    _guards.append(gradtape.debug.nan_guard())
    _guards[-1].__enter__()


@adapts("debug.nan_guard")
def disable_check_numerics() -> None:
    """End what :func:`enable_check_numerics` began."""
    while _guards:
        _guards.pop().__exit__(None, None, None)

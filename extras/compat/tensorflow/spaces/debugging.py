"""``tf.debugging``: checks that raise an error; in a trace, in each run."""

from __future__ import annotations

from typing import Any

import numpy as np

import gradtape

from ..dtypes import as_dtype
from ..names import adapts
from ..tensors import convert_to_tensor, with_checked_shape

__all__ = (
    "assert_integer assert_rank assert_rank_at_least assert_shapes assert_type "
    "disable_check_numerics enable_check_numerics ensure margin"
).split()


def ensure(holds: Any, said: str, *values: Any) -> Any:
    """Return the first value; raise ``ValueError`` in each run where a condition is false."""

    def check(holds: Any, *values: Any) -> None:
        if not np.all(holds):
            raise ValueError(": ".join([said, ", ".join(str(x.numpy()) for x in values)]))

    gradtape.host_call(check, convert_to_tensor(holds), *map(convert_to_tensor, values))
    return values[0] if values else None


def margin(given: Any, x: Any) -> Any:
    """Return a tolerance: by default, ten times the machine epsilon."""
    usual = 10 * np.finfo(x.dtype).eps if x.dtype.kind == "f" else 0.0
    return usual if given is None else given


@adapts("Tensor.ndim")
def assert_rank(x: Any, rank: Any, message: Any = None, name: Any = None) -> None:
    """Raise ``ValueError`` if ``x`` has another number of axes."""
    if convert_to_tensor(x).ndim != int(rank):
        raise ValueError(f"{message or 'assert_rank'}: expected {int(rank)} axes, got {x.shape}")


@adapts("Tensor.ndim")
def assert_rank_at_least(x: Any, rank: Any, message: Any = None, name: Any = None) -> None:
    """Raise ``ValueError`` if ``x`` has fewer axes."""
    if convert_to_tensor(x).ndim < int(rank):
        raise ValueError(f"{message or 'assert_rank_at_least'}: need {rank} axes, got {x.shape}")


@adapts("TensorSpec.admits")
def assert_shapes(
    shapes: Any, data: Any = None, summarize: Any = None, message: Any = None, name: Any = None
) -> None:
    """Raise ``ValueError`` if a shape differs; sizes with the same name must be equal."""
    known: dict[Any, Any] = {}
    for x, wanted in shapes.items() if isinstance(shapes, dict) else shapes:
        x, wanted = convert_to_tensor(x), list(wanted)
        if len(wanted) == x.ndim:
            names = zip(wanted, x.shape)
            wanted = [known.setdefault(n, m) if isinstance(n, str) else n for n, m in names]
        with_checked_shape(x, wanted, message or "assert_shapes")


@adapts("Tensor.dtype")
def assert_type(tensor: Any, tf_type: Any, message: Any = None, name: Any = None) -> None:
    """Raise ``TypeError`` if a tensor has another dtype."""
    found, wanted = convert_to_tensor(tensor).dtype, as_dtype(tf_type)
    if found != wanted:
        raise TypeError(f"{message or 'assert_type'}: dtype {found}, expected {wanted}")


@adapts("Tensor.dtype")
def assert_integer(x: Any, message: Any = None, name: Any = None) -> None:
    """Raise ``TypeError`` unless a tensor has an integer dtype."""
    if convert_to_tensor(x).dtype.kind not in "iu":
        raise TypeError(f"{message or 'assert_integer'}: {x.dtype} is not an integer dtype")


_guards: list[Any] = []


@adapts("debug.nan_guard")
def enable_check_numerics(stack_height_limit: int = 30, path_length_limit: int = 50) -> None:
    """Raise an error from now on when an op returns infinite values or nan."""
    _guards.append(gradtape.debug.nan_guard())
    _guards[-1].__enter__()


@adapts("debug.nan_guard")
def disable_check_numerics() -> None:
    """Undo :func:`enable_check_numerics`."""
    while _guards:
        _guards.pop().__exit__(None, None, None)

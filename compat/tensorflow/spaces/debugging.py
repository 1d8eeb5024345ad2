"""``tf.debugging``: what raises where something does not hold; of a trace, in each run."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import gradtape

from ....core.extend import active_graph
from ..dtypes import as_dtype
from ..names import adapts
from ..tensors import convert_to_tensor, held_to

__all__ = (
    "Assert assert_all_finite assert_integer assert_near assert_rank assert_rank_at_least "
    "assert_scalar assert_shapes assert_type check_numerics disable_check_numerics "
    "enable_check_numerics is_numeric_tensor"
).split()


def _ensure(holds: Any, said: str, *values: Any) -> None:
    """Raise ``ValueError`` if a condition is not true everywhere: now, or in each run."""

    def check(holds: Any, *values: Any) -> None:
        if not np.all(holds):
            raise ValueError(": ".join([said, ", ".join(str(x.numpy()) for x in values)]))

    if active_graph.get() is None:
        check(convert_to_tensor(holds), *map(convert_to_tensor, values))
    else:
        gradtape.host_call(check, holds, *values)


@adapts("host_call")
def Assert(condition: Any, data: Any, summarize: Any = None, name: Any = None) -> None:
    """Raise ``ValueError`` with the data if a condition does not hold."""
    _ensure(convert_to_tensor(condition), "assertion failed", *map(convert_to_tensor, data))


def _comparing(name: str, op: str, zero: bool) -> Callable[..., None]:
    """Return what compares two tensors, or one with 0, element by element."""

    def compared(x: Any, y: Any, message: Any) -> None:
        x, y = convert_to_tensor(x), convert_to_tensor(y)
        said = ": ".join(filter(None, [message, f"{name} does not hold"]))
        _ensure(getattr(gradtape, op)(x, y), said, x, *(() if zero else (y,)))

    def two(x: Any, y: Any, message: Any = None, summarize: Any = None, name: Any = None) -> None:
        compared(x, y, message)

    def one(x: Any, message: Any = None, summarize: Any = None, name: Any = None) -> None:
        compared(x, 0, message)

    found = one if zero else two
    found.__name__ = found.__qualname__ = name
    found.__doc__ = f"Raise ``ValueError`` where ``{op}`` is false."
    return adapts(op, "host_call")(found)


for _ops, _zero in (
    ("equal none_equal:not_equal greater greater_equal less less_equal", False),
    (
        "positive:greater negative:less non_negative:greater_equal non_positive:less_equal",
        True,
    ),
):
    for _name, _, _op in (x.partition(":") for x in _ops.split()):
        globals()[f"assert_{_name}"] = _comparing(f"assert_{_name}", _op or _name, _zero)
        __all__ += [f"assert_{_name}"]


@adapts("allclose")
def assert_near(
    x: Any,
    y: Any,
    rtol: Any = None,
    atol: Any = None,
    message: Any = None,
    summarize: Any = None,
    name: Any = None,
) -> None:
    """Raise ``ValueError`` where ``x`` and ``y`` differ by more than ``atol + rtol * abs(y)``."""
    x, y = convert_to_tensor(x), convert_to_tensor(y)
    usual = 10 * np.finfo(x.dtype).eps if x.dtype.kind == "f" else 0.0
    rtol, atol = (usual if tol is None else tol for tol in (rtol, atol))
    _ensure(gradtape.abs(x - y) <= atol + rtol * gradtape.abs(y), message or "not near", x, y)


@adapts("isfinite")
def assert_all_finite(x: Any, message: str = "", name: Any = None) -> Any:
    """Return ``x``, or raise ``ValueError`` if something in it is infinite or nan."""
    x = convert_to_tensor(x)
    _ensure(gradtape.isfinite(x), message or "assert_all_finite", x)
    return x


check_numerics = assert_all_finite


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


def assert_scalar(tensor: Any, message: Any = None, name: Any = None) -> Any:
    """Return a tensor of one number, or raise ``ValueError`` if it has axes."""
    assert_rank(convert_to_tensor(tensor), 0, message)
    return tensor


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
    if convert_to_tensor(tensor).dtype != as_dtype(tf_type):
        raise TypeError(f"{message or 'assert_type'}: {tensor.dtype} is not {as_dtype(tf_type)}")


@adapts("Tensor.dtype")
def assert_integer(x: Any, message: Any = None, name: Any = None) -> None:
    """Raise ``TypeError`` if a tensor has no dtype of integers."""
    if convert_to_tensor(x).dtype.kind not in "iu":
        raise TypeError(f"{message or 'assert_integer'}: {x.dtype} is no dtype of integers")


def is_numeric_tensor(tensor: Any) -> bool:
    """Return whether this is a tensor of numbers."""
    return isinstance(tensor, (gradtape.Tensor, gradtape.Variable)) and tensor.dtype.kind in "fiuc"


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

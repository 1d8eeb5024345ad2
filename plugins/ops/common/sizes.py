"""What is known of sizes: in a trace they may be expressions, and in shape rules None as well."""

from __future__ import annotations

from typing import Any

from ....core.extend import is_open, known_size, largest, ops
from .op_builders import op

__all__ = ["agreed", "at_least", "empty", "ensured", "ensured_alike", "never_empty", "unlike"]


def unlike(n: Any, m: Any) -> bool:
    """Return whether two sizes are known to differ; None may be any size."""
    return n is not None and m is not None and (n == m) is False


def agreed(*sizes: Any) -> Any:
    """Return the one size that several, which must be equal, are: a known one, if there is one."""
    return next(
        (n for n in sizes if known_size(n)), next((n for n in sizes if n is not None), None)
    )


def at_least(least: Any, n: Any) -> Any:
    """Return a size, but no less than ``least``."""
    return largest(least, n) if is_open(n) or is_open(least) else max(least, n)


def empty(shape: Any) -> bool:
    """Return whether an array of a shape is known to have no elements."""
    return shape is not None and any((n == 0) is True for n in shape)


def never_empty(x: Any, axes: tuple[int, ...]) -> Any:
    """Return ``x`` with a 0 along axes in the runs of a trace that find nothing there."""
    open_axes = tuple(i for i in axes if is_open(x.shape[i]))
    if not open_axes:
        return x
    sizes = tuple(at_least(1, x.shape[i]) for i in open_axes)
    return ops["crop_or_pad"](x, sizes=sizes, axes=open_axes)


def _checked(condition: Any, message: str) -> None:
    if condition is False:
        raise ValueError(message)


def _check_kernel(xp: Any, x: Any, *, condition: bool, message: str) -> Any:
    _checked(condition, message)
    return x


def _check_spec(x: Any, condition: Any, message: str) -> tuple[Any, Any]:
    _checked(condition, message)
    return x.shape, x.dtype


op(
    "size_checked",
    _check_kernel,
    gradients={"x": lambda g: g},
    infer=_check_spec,
    holomorphic=True,
    batch=lambda op, xs, batched, params: op.raw(xs[0], **params),
    jvp="linear",
    doc="Return ``x``; raise if a comparison of sizes does not hold.",
)


def ensured(x: Any, condition: Any, message: str) -> Any:
    """Return ``x`` if a comparison of sizes holds; where a trace does not know, each run asks.

    Raises
    ------
    ValueError
        If it does not hold.
    """
    if condition is True:
        return x
    _checked(condition, message)
    return ops["size_checked"](x, condition=condition, message=message)


def ensured_alike(x: Any, shape: Any, message: str) -> Any:
    """Return ``x`` if its shape is ``shape``, as far as each is known, of the same rank."""
    for n, m in zip(x.shape, shape, strict=True):
        x = ensured(x, n == m, message)
    return x

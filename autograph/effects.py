"""``print`` and ``assert``: at once where Python has the values, and else in each run."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..core.extend import active_graph, as_tensor, flatten, ops
from .values import is_traced, truth

__all__ = ["assert_stmt", "check", "print_"]


def check(holds: Any, message: str, error: str = "AssertionError") -> None:
    """Raise in each run in which a value is not true."""
    if holds is not True:
        raise NotImplementedError


def assert_stmt(test: Any, message: Callable[[], Any]) -> None:
    if not test: raise AssertionError(message())


def print_(*objects: Any, **options: Any) -> None:
    print(*objects, **options)

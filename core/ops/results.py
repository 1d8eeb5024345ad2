"""A check of what the kernels of other distributions return."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..base.handle import Handle
from ..errors import PluginError

__all__ = ["checked_result"]


def checked_result(name: str, kernel: Callable[..., Any]) -> Callable[..., Any]:
    """Return an op's kernel that raises if it does not return an array, or several.

    A tensor would hold what it returns, and fail later, where nothing names the op. It is for the
    first call only, since a check takes as long as a small kernel.
    """

    def run(*arrays: Any, **params: Any) -> Any:
        result = kernel(*arrays, **params)
        several = type(result) in (tuple, list)
        if not all(map(_is_array, result if several else (result,))):
            told = "None (is a return missing?)" if result is None else f"{result!r:.80}"
            raise PluginError(
                f"op {name!r}: its kernel returned {told}, not "
                + ("several arrays, one for each output" if several else "an array of the backend")
            )
        return result

    return run


def _is_array(value: Any) -> bool:
    return hasattr(value, "shape") and hasattr(value, "dtype") and not isinstance(value, Handle)

"""``tf.autograph``: gradtape's conversion of Python's control flow, where it is there."""

from __future__ import annotations

from typing import Any

import gradtape

from ..names import adapts

__all__ = ["do_not_convert", "trace"]

_native = getattr(gradtape, "autograph", None)
if _native is not None:
    globals().update({name: getattr(_native, name) for name in _native.__all__})
    __all__ += [name for name in _native.__all__ if name not in __all__]
else:

    @adapts("function")
    def do_not_convert(func: Any = None) -> Any:
        """Return the function itself, or a decorator that does: nothing is converted."""
        return func if callable(func) else lambda f: f


def trace(*args: Any) -> None:
    """Print while a function is traced."""
    print(*args)

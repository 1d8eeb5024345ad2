"""``tf.autograph``: gradtape's conversion of Python control flow."""

from __future__ import annotations

from typing import Any

from ....autograph import *  # noqa: F403
from ....autograph import __all__ as _NATIVE

__all__ = ["trace"]
__all__ += _NATIVE


def trace(*args: Any) -> None:
    """Print while a function is traced."""
    print(*args)

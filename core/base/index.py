"""An index as a parameter of ops: the contents of Python's brackets as plain values."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from .sizes import Size, as_size


def encode_index(index: Any, as_array: Callable[[Any], Any]) -> tuple[tuple[Any, ...], list[Any]]:
    """Return an index as a parameter of ops, and the arrays in it, converted by ``as_array``."""
    parts = index if isinstance(index, tuple) else (index,)
    template: list[Any] = []
    arrays: list[Any] = []
    for part in parts:
        if part is None:
            template.append("newaxis")
        elif part is Ellipsis:
            template.append("...")
        elif isinstance(part, slice):
            template.append(("slice", *(_bound(n) for n in (part.start, part.stop, part.step))))
        elif isinstance(part, (int, np.integer)) and not isinstance(part, bool):
            template.append(int(part))
        elif isinstance(part, Size):
            template.append(part)
        else:
            array = as_array(part)
            template.append(("array", len(arrays)))
            arrays.append(array)
    return tuple(template), arrays


def _bound(n: Any) -> Any:
    return n if n is None or type(n) is int else as_size(n, "getitem")

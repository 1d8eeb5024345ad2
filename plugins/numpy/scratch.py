"""Memory for a kernel's intermediate values, kept for the next call.

New memory takes time: the system zeroes each page on its first use, which takes longer than to
compute what the page holds. Calls that run at once have memory of their own.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

Memory: TypeAlias = "NDArray[np.uint8]"

#: How many pieces of memory are kept, and the size in bytes of the largest that is.
_KEPT, _KEPT_BYTES = 4, 1 << 22
_free: deque[Memory] = deque(maxlen=_KEPT)


@contextmanager
def scratch(size: int) -> Iterator[Memory]:
    """Give at least ``size`` bytes of any value, aligned for all dtypes, to a block of code."""
    try:
        memory = _free.pop()
    except IndexError:
        memory = np.empty(size, np.uint8)
    if memory.size < size:
        memory = np.empty(size, np.uint8)
    try:
        yield memory
    finally:
        if memory.size <= _KEPT_BYTES:
            _free.append(memory)


def placed(result: NDArray[Any], out: NDArray[Any] | None) -> NDArray[Any]:
    """Return a result, in ``out`` if that is given."""
    if out is None:
        return result
    np.copyto(out, result)
    return out

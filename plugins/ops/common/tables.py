"""Tables that NumPy makes of a size: constants, or in a trace that does not know it, an op."""

from __future__ import annotations

from typing import Any

import numpy as np

from ....core.extend import NONDIFF, Shared, as_tensor, beside, is_open, ops, row_of
from .op_builders import op
from .sizes import at_least

__all__ = ["table"]


def _falling(first: Any, count: Any, factors: int, whole: bool) -> Any:
    """Return products of ``factors`` falling factors, from each of ``first``, ``first - 1``, ..."""
    numbers = np.arange(first, first - count, -1)
    numbers = numbers if whole else numbers.astype(np.float64)
    found = np.ones_like(numbers)
    for turn in range(factors):
        found *= numbers - turn
    return found


def _half_circle(n: int) -> Any:
    """Return the heights of a half circle of radius 1, at ``n`` places from end to end."""
    middle = (n - 1) / 2.0
    return np.sqrt(np.maximum(1.0 - ((np.arange(n) - middle) / max(middle, 0.5)) ** 2, 0.0))


#: What makes a table, and its size, of the same arguments.
_KINDS: dict[str, tuple[Any, Any]] = {
    "bartlett": (np.bartlett, lambda n: n),
    "blackman": (np.blackman, lambda n: n),
    "falling": (_falling, lambda first, count, *_: count),
    "fftfreq": (np.fft.fftfreq, lambda n, d: n),
    "half_circle": (_half_circle, lambda n: n),
    "hamming": (np.hamming, lambda n: n),
    "hanning": (np.hanning, lambda n: n),
    "kaiser": (np.kaiser, lambda n, beta: n),
    "rfftfreq": (np.fft.rfftfreq, lambda n, d: n // 2 + 1),
}


def _values(kind: str, arguments: tuple[Any, ...], dtype: Any) -> Any:
    if kind.endswith("freq") and arguments[0] < 1:
        raise ValueError(f"{kind}: the number of points must be at least 1, got {arguments[0]}")
    return _KINDS[kind][0](*arguments).astype(dtype)


op(
    "size_table",
    lambda xp, like, *, kind, arguments, dtype: xp.asarray(_values(kind, arguments, dtype)),
    gradients={"like": NONDIFF},
    infer=lambda like, kind, arguments, dtype: (
        (at_least(0, _KINDS[kind][1](*arguments)),),
        np.dtype(dtype),
    ),
    batch=lambda op, xs, batched, params: Shared(op.raw(row_of(xs[0]), **params)),
    doc="Return a table that NumPy makes of a size, on the backend of ``like``.",
)


def table(kind: str, *arguments: Any, dtype: Any, like: Any = None) -> Any:
    """Return a table of a kind.

    Parameters
    ----------
    kind
        Its name in this module.
    arguments
        What makes it; in a trace, sizes among them may be open.
    dtype
        Its dtype.
    like
        A tensor on whose backend it is made; on the current one if not given.
    """
    if any(map(is_open, arguments)):
        some = as_tensor(np.zeros((), np.int64)) if like is None else like
        return ops["size_table"](some, kind=kind, arguments=arguments, dtype=np.dtype(dtype).name)
    values = _values(kind, arguments, dtype)
    return as_tensor(values) if like is None else beside(values, like)

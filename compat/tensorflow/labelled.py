"""Functions that take TensorFlow's label of an op, ``name``, and are gradtape's otherwise."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from .names import adapts, resolve

__all__ = [
    "angle",
    "digamma",
    "einsum",
    "erf",
    "erfc",
    "lgamma",
    "polygamma",
    "pow",
    "rint",
    "round",
]


def _labelled(path: str) -> Callable[..., Any]:
    """Return gradtape's function as one that takes a label and does nothing with it."""
    function = resolve(path)

    @functools.wraps(function, updated=())
    def call(*args: Any, name: str | None = None, **kwargs: Any) -> Any:
        return function(*args, **kwargs)

    return adapts(path)(call)


angle = _labelled("angle")
digamma = _labelled("digamma")
einsum = _labelled("einsum")
erf = _labelled("erf")
erfc = _labelled("erfc")
lgamma = _labelled("lgamma")
polygamma = _labelled("polygamma")
pow = _labelled("power")
rint = _labelled("rint")
round = _labelled("round")

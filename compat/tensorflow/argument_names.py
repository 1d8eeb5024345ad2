"""Functions that take TensorFlow's names of arguments, and are gradtape's otherwise."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import gradtape

from .names import adapts, resolve
from .tensors import plain

__all__ = [
    "angle",
    "conj",
    "digamma",
    "einsum",
    "erf",
    "erfc",
    "identity",
    "imag",
    "lgamma",
    "polygamma",
    "pow",
    "real",
    "rint",
    "round",
    "stop_gradient",
]


def _labelled(path: str, *inputs: str) -> Callable[..., Any]:
    """Return gradtape's function with TensorFlow's names of inputs, and a label that does nothing.

    Parameters
    ----------
    path
        The function.
    inputs
        The names that TensorFlow has for its first arguments, in order.
    """
    function = resolve(path)

    @functools.wraps(function, updated=())
    def call(*args: Any, name: str | None = None, **kwargs: Any) -> Any:
        if kwargs:
            args += tuple(kwargs.pop(key) for key in inputs[len(args) :] if key in kwargs)
        return function(*args, **kwargs)

    return adapts(path)(call)


@adapts("polygamma")
def polygamma(a: Any, x: Any, name: str | None = None) -> Any:
    """Return the derivative of order ``a``, one integer, of the digamma function."""
    order = plain(a)
    whole = isinstance(order, float) and order.is_integer()
    return gradtape.polygamma(int(order) if whole else order, x)


angle = _labelled("angle", "input")
conj = _labelled("conj", "x")
digamma = _labelled("digamma", "x")
einsum = _labelled("einsum", "equation")
erf = _labelled("erf", "x")
erfc = _labelled("erfc", "x")
identity = _labelled("copy", "input")
imag = _labelled("imag", "input")
lgamma = _labelled("lgamma", "x")
pow = _labelled("power", "x", "y")
real = _labelled("real", "input")
rint = _labelled("rint", "x")
round = _labelled("round", "x")
stop_gradient = _labelled("stop_gradient", "input")

"""Hints for arguments of other libraries that a function does not take: what to write instead."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
R = TypeVar("R")

_REPLACED = "leave it out: a file is replaced; test os.path.exists(path) to keep it"
_FORMAT = "leave it out: the end of the path says the format"

#: For functions that load weights.
LOADING_WEIGHTS = {
    "by_name": "strict=False, which loads what fits, and mapping={...} for other names",
    "skip_mismatch": "strict=False",
}
#: For functions that save.
SAVING = {
    "include_optimizer": (
        "a module that holds both: both = gradtape.Module(); both.model, both.optimizer = model, "
        "optimizer"
    ),
    "overwrite": _REPLACED,
    "save_format": _FORMAT,
}


def hinted_arguments(instead: Mapping[str, str]) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Make a function say what to write instead of an argument that it does not take.

    Parameters
    ----------
    instead
        What to use, by the argument's name elsewhere; or a sentence that begins with "leave it
        out".
    """

    def decorate(function: Callable[P, R]) -> Callable[P, R]:
        name = function.__name__
        known = dict.fromkeys(inspect.signature(function).parameters)

        @functools.wraps(function)
        def wrapper(*args: P.args, **kwargs: P.kwargs) -> R:
            for key in kwargs:
                if key not in known:
                    raise TypeError(f"{name} takes no argument {key!r}{_hint(key, known, instead)}")
            return function(*args, **kwargs)

        return wrapper

    return decorate


def _hint(key: str, known: Mapping[str, None], instead: Mapping[str, str]) -> str:
    from difflib import get_close_matches  # for messages only

    text = instead.get(key) or "".join(get_close_matches(key, known, 1, 0.75))
    if not text:
        return f"; it takes {', '.join(x for x in known if x != 'self')}"
    return to_use(text)


def to_use(instead: str) -> str:
    """Return a hint as the end of a message: what to use, or to leave the argument out."""
    return f"; {instead}" if instead.startswith("leave it out") else f"; use {instead}"

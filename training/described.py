"""Losses, metrics and optimizers as plain values for files, and back."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import numpy as np

from .optimizers.optimizer import Optimizer

__all__ = [
    "CustomObjectScope",
    "custom_object_scope",
    "described",
    "get_custom_objects",
    "recompile",
    "register_keras_serializable",
    "revived",
]

#: Functions and classes that a program registered, by the names in files.
_OWN: dict[str, Any] = {}

_NAME, _SETTINGS, _MADE = "name", "config", "object"


def described(value: Any) -> Any:
    """Return a loss, metric, optimizer or schedule as a name and its settings.

    Parameters
    ----------
    value
        The object, or a list or dictionary of objects. Functions are described by their names.

    Returns
    -------
    object
        Plain values, from which :func:`revived` makes another such object.

    Raises
    ------
    TypeError
        If an object has no name or no ``get_config()``.
    """
    if value is None or isinstance(value, (str, bool, int, float)):
        return value
    if isinstance(value, (np.generic, np.ndarray)) and np.ndim(value) == 0:
        return value.item()
    if isinstance(value, dict):
        return {str(key): described(x) for key, x in value.items()}
    if isinstance(value, (list, tuple)):
        return [described(x) for x in value]
    if hasattr(value, "get_config"):
        kind = type(value).__name__
        return {_MADE: {_NAME: kind, _SETTINGS: described(value.get_config())}}
    name = getattr(value, "__name__", None)
    if not isinstance(name, str) or not name.isidentifier():
        raise TypeError(f"{value!r:.80} has neither a name nor get_config()")
    return {_MADE: {_NAME: name}}


def revived(value: Any, find: Callable[[str], Any]) -> Any:
    """Return what :func:`described` received.

    Parameters
    ----------
    value
        What it returned.
    find
        A function that returns the class or function of a name.
    """
    if isinstance(value, list):
        return [revived(x, find) for x in value]
    if not isinstance(value, dict):
        return value
    if set(value) != {_MADE}:
        return {key: revived(x, find) for key, x in value.items()}
    made = value[_MADE]
    found = find(made[_NAME])
    if _SETTINGS not in made:
        return found
    settings = revived(made[_SETTINGS], find)
    if isinstance(found, type) and issubclass(found, Optimizer):  # its name is an identifier here
        settings = {key: x for key, x in settings.items() if x is not None}
    return found.from_config(settings) if hasattr(found, "from_config") else found(**settings)


def recompile(model: Any, goals: Any, own: Mapping[str, Any], spaces: Iterable[Any]) -> None:
    """Call a model's ``compile`` with what :func:`described` returned.

    If a name is unknown, the model notes it, for the error of a method that needs ``compile``.

    Parameters
    ----------
    model
        The model.
    goals
        The arguments of ``compile``.
    own
        Functions and classes of the program, by name.
    spaces
        Modules with those that are known.
    """

    def find(name: str) -> Any:
        known = (own.get(name), _OWN.get(name), *(getattr(x, name, None) for x in spaces))
        found = next((x for x in known if x is not None), None)
        if found is None:
            raise LookupError(name)
        return found

    try:
        model.compile(**revived(goals, find))
    except LookupError as error:
        vars(model)["_gradtape_lacks"] = str(error).strip("'")


# -- a program's own functions and classes --------------------------------------------------------


def get_custom_objects() -> dict[str, Any]:
    """Return the functions and classes that are found by name in files; you may add some."""
    return _OWN


@contextmanager
def custom_object_scope(custom_objects: Mapping[str, Any]) -> Iterator[None]:
    """Let files name these functions and classes in a block."""
    before = dict(_OWN)
    _OWN.update(custom_objects)
    try:
        yield
    finally:
        _OWN.clear()
        _OWN.update(before)


CustomObjectScope = custom_object_scope


def register_keras_serializable(package: str = "Custom", name: str | None = None) -> Any:
    """Return a decorator with which files may name your own losses and metrics."""

    def keep(cls: Any) -> Any:
        _OWN[name or cls.__name__] = cls
        return cls

    return keep

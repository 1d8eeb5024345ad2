"""Initializers, regularizers and constraints: objects that a layer's configuration names."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..core.extend import snake_case

__all__ = ["Named", "find", "serialized"]

_PACKAGE = __name__.partition(".")[0] + "."


class Named:
    """A function with settings, kept as attributes with the names of the arguments."""

    def get_config(self) -> dict[str, Any]:
        """Return the constructor's arguments."""
        return dict(vars(self))

    def __repr__(self) -> str:
        arguments = ", ".join(f"{name}={value!r}" for name, value in self.get_config().items())
        return f"{type(self).__name__}({arguments})"


def find(kind: str, given: Any, classes: Mapping[str, Any]) -> Any:
    """Return the object for a name, a class or a configuration; a function or None as it is.

    Parameters
    ----------
    kind
        The kind of object, for messages.
    given
        The argument of the layer.
    classes
        The classes by their names in snake case.

    Raises
    ------
    ValueError
        If the name is unknown.
    TypeError
        If ``given`` is none of these.
    """
    if isinstance(given, dict):
        name, config = given["name"], given["config"]
    elif isinstance(given, str):
        name, config = given if given in classes else snake_case(given), {}
    elif isinstance(given, type) and given in classes.values():
        return given()
    elif given is None or callable(given):
        return given
    else:
        raise TypeError(f"a {kind} is a name, an object or a function of a tensor, got {given!r}")
    if name not in classes:
        known = ", ".join(sorted(classes))
        raise ValueError(f"unknown {kind} {name!r}; known: {known}")
    return classes[name](**config)


def serialized(given: Any) -> Any:
    """Return a regularizer or constraint for a layer's configuration; the user's own as it is."""
    own = isinstance(given, Named) and type(given).__module__.startswith(_PACKAGE)
    if not own:
        return given
    return {"name": snake_case(type(given).__name__), "config": given.get_config()}

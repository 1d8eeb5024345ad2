"""What configurations of layers hold: objects by their names, and arguments that exist.

The objects are initializers, regularizers, constraints and activations.
"""

from __future__ import annotations

import difflib
import inspect
from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Any

from ..core.errors import UnknownName
from ..core.extend import near_names, registry, snake_case

__all__ = [
    "Named",
    "create",
    "find",
    "is_reference",
    "made",
    "reference",
    "serialized",
    "unknown_argument",
    "with_own_arguments",
]


class Named:
    """A function with settings, kept as attributes with the names of the arguments."""

    def get_config(self) -> dict[str, Any]:
        """Return the constructor's arguments."""
        return dict(vars(self))

    def __repr__(self) -> str:
        arguments = ", ".join(f"{name}={value!r}" for name, value in self.get_config().items())
        return f"{type(self).__name__}({arguments})"


def find(kind: str, given: Any) -> Any:
    """Return the object for a name, a class or a configuration; a function or None as it is.

    Parameters
    ----------
    kind
        The kind of object, as the hook ``gradtape_names`` has it.
    given
        The argument of the layer.

    Raises
    ------
    UnknownName
        If no plugin provides the name.
    TypeError
        If ``given`` is none of these.
    """
    if isinstance(given, dict):
        return create(kind, given["name"], given["config"])
    if isinstance(given, str):
        return create(kind, given)
    if isinstance(given, type) and registry().name_of(kind, given) is not None:
        return given()
    if given is None or callable(given):
        return given
    raise TypeError(f"a {kind} is a name, an object or a function of a tensor, got {given!r}")


def create(kind: str, name: str, config: dict[str, Any] | None = None, also: str = "") -> Any:
    """Return what a plugin provides under a name; of a class, an object.

    Parameters
    ----------
    kind
        As for :func:`find`.
    name
        The name; for one of gradtape's, also its class's name.
    config
        The constructor's arguments; none by default.
    also
        What else the argument may be, for messages.

    Raises
    ------
    UnknownName
        If no plugin provides the name; the message lists those that are known.
    """
    known = registry()
    found = known.find_named(kind, name)
    if found is None and name.isidentifier():
        found = known.find_named(kind, snake_case(name))
    if found is None:
        names = known.names_of(kind)
        raise UnknownName(
            f"unknown {kind} {name!r}{near_names(name, names)}; known: "
            f"{', '.join(sorted(names))}{also}{known.lacking(name)}"
        )
    return made(kind, name, found, config or {})


def made(kind: str, name: str, found: Any, config: Mapping[str, Any] = MappingProxyType({})) -> Any:
    """Return an object of a class that a plugin provides under a name; any other value as it is.

    Raises
    ------
    TypeError
        If the class does not take the arguments; the message names it.
    """
    if not isinstance(found, type):
        return found
    try:
        return found(**config)
    except TypeError as error:
        given = f"with {', '.join(config)}" if config else "without arguments; pass an object of it"
        raise TypeError(
            f"the {kind} {name!r} is the class {found.__name__}, which cannot be created {given}: "
            f"{error}"
        ) from error


def reference(kind: str, given: Any) -> dict[str, Any] | None:
    """Return the name and configuration of an object that a plugin names; None for others.

    Raises
    ------
    TypeError
        If its class has no method ``get_config``.
    """
    known = registry()
    name = known.name_of(kind, type(given))
    if name is None:
        name = known.name_of(kind, given)
        return None if name is None else {"name": name, "config": {}}
    if not hasattr(given, "get_config"):
        raise TypeError(
            f"the {kind} {name!r} ({type(given).__name__}) has no get_config(), so no file can "
            "hold it: define one that returns the constructor's arguments"
        )
    return {"name": name, "config": given.get_config()}


def is_reference(kind: str, given: Any) -> bool:
    """Return whether a value names an object: a known name, or a name and a configuration."""
    if isinstance(given, dict):
        return given.keys() == {"name", "config"}
    return isinstance(given, str) and registry().find_named(kind, given) is not None


def serialized(kind: str, given: Any) -> Any:
    """Return a regularizer or constraint for a layer's configuration; an unnamed one as it is."""
    return given if given is None else reference(kind, given) or given


# -- arguments that a constructor does not take ---------------------------------------------------

#: The names here for arguments of PyTorch and older Keras.
_MEANT = {
    "batch_first": "leave it out: the batch is the first axis",
    "betas": "beta_1 and beta_2",
    "bias": "use_bias",
    "bidirectional": "gt.layers.Bidirectional",
    "decay": "a schedule as learning_rate, such as gt.training.schedules.InverseTimeDecay",
    "dilation": "dilation_rate",
    "embedding_dim": "output_dim",
    "eps": "epsilon",
    "hidden_size": "units",
    "in_channels": "leave it out: it follows from the first input",
    "in_features": "leave it out: it follows from the first input",
    "input_dim": "gt.Input(shape) as the first in a Sequential",
    "input_shape": "gt.Input(shape) as the first in a Sequential",
    "input_size": "leave it out: it follows from the first input",
    "lr": "learning_rate",
    "num_embeddings": "input_dim",
    "num_layers": "several layers in a Sequential",
    "out_channels": "filters",
    "out_features": "units",
    "stride": "strides",
    "weights": "set_weights on the layer, when it is built",
}


def unknown_argument(kind: type, name: str, more: Iterable[str] = ()) -> TypeError:
    """Return the error for an argument that a class does not take; it suggests what to use.

    Parameters
    ----------
    kind
        The class.
    name
        The argument.
    more
        Arguments that the class takes besides those of its constructors.
    """
    known: dict[str, None] = {}
    for base in kind.__mro__:
        given = inspect.signature(vars(base)["__init__"]).parameters if _has_init(base) else {}
        stars = (inspect.Parameter.VAR_KEYWORD, inspect.Parameter.VAR_POSITIONAL)
        plain = [p.name for p in [*given.values()][1:] if p.kind not in stars]  # not the object
        known |= dict.fromkeys(plain)
    known |= dict.fromkeys(more)
    near = difflib.get_close_matches(name, known, 1, 0.8)
    said = _MEANT.get(name) or "".join(near)
    use = "" if said.startswith("leave it out") else "use "
    hint = f"; {use}{said}" if said else f"; it takes {', '.join(known)}"
    return TypeError(f"{kind.__name__} takes no argument {name!r}{hint}")


def _has_init(kind: type) -> bool:
    return "__init__" in vars(kind) and kind is not object


def with_own_arguments(made: Any, base: type, config: dict[str, Any]) -> dict[str, Any]:
    """Return the configuration of a base class, with the arguments that subclasses add.

    If a subclass defines ``get_config``, that adds them instead. Arguments of the base class that
    the constructor does not take are left out if they have their defaults.

    Parameters
    ----------
    made
        An object.
    base
        The base class.
    config
        What the base class knows.

    Raises
    ------
    TypeError
        If a constructor has an argument that the object keeps no attribute for.
    """
    kind = type(made)
    if any("get_config" in vars(cls) for cls in kind.__mro__[: kind.__mro__.index(base)]):
        return config
    found, taken = dict(config), set[str]()
    several = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    for cls in kind.__mro__[: kind.__mro__.index(base)]:
        if "__init__" not in vars(cls):
            continue
        parameters = list(inspect.signature(cls).parameters.values())
        for name in [x.name for x in parameters if x.kind not in several]:
            if name not in found and not hasattr(made, name):
                raise TypeError(
                    f"{kind.__name__}: its constructor takes {name!r}, but it keeps no attribute "
                    f"of this name: set self.{name}, or define get_config()"
                )
            found.setdefault(name, getattr(made, name, None))
        taken |= {x.name for x in parameters}
        if all(x.kind is not inspect.Parameter.VAR_KEYWORD for x in parameters):
            break  # it passes nothing on that it does not name
    else:
        return found
    defaults = {x.name: x.default for x in inspect.signature(base).parameters.values()}
    defaults["name"] = snake_case(kind.__name__)
    return {
        k: v
        for k, v in found.items()
        if k in taken or not _is(v, defaults.get(k, getattr(kind, k, several)))
    }


def _is(value: Any, default: Any) -> bool:
    """Return whether an argument has its default value."""
    plain = isinstance(value, (bool, int, float, str)) and type(value) is type(default)
    return value is default or (plain and value == default)

"""Subclasses of gradtape's classes whose constructors take Keras' arguments."""

from __future__ import annotations

import inspect
from collections.abc import Collection
from inspect import Parameter
from typing import Any

from ..names import adapts, resolve

__all__ = ["adapted", "refuse"]


def refuse(what: str, options: dict[str, Any]) -> None:
    """Raise ``TypeError`` if an option of Keras that gradtape lacks is given a value."""
    given = sorted(name for name, value in options.items() if value not in (None, False))
    if given:
        raise TypeError(
            f"{what}: {', '.join(given)} not supported by gradtape; see docs/migration.md"
        )


def adapted(
    path: str,
    arguments: str,
    *bases: type,
    ignored: Collection[str] = ("dtype",),
    options: Collection[str] = (),
    **defaults: Any,
) -> Any:
    """Return a subclass of one of gradtape's classes with the constructor that Keras has.

    Parameters
    ----------
    path
        The class, by its name under ``gradtape``.
    arguments
        The names of Keras' arguments in order; those after a ``*`` by keyword only. ``**`` at the
        end stands for any others.
    bases
        What the class is besides, before gradtape's; it counts as defined where the first is.
    ignored
        Arguments that make no difference here. Others that gradtape does not know are refused,
        unless they are None or false.
    options
        Which of any others gradtape knows.
    defaults
        Defaults that are not gradtape's.
    """
    native: Any = resolve(path)
    known = {
        name: parameter
        for name, parameter in inspect.signature(native.__init__).parameters.items()
        if parameter.kind is not Parameter.VAR_KEYWORD
    }
    signature = _signature(arguments, known, defaults)

    def __init__(self: Any, *args: Any, **kwargs: Any) -> None:
        try:
            bound = signature.bind(self, *args, **kwargs)
        except TypeError as error:
            raise TypeError(f"{type(self).__name__}: {error}") from None
        bound.apply_defaults()
        given = dict(bound.arguments)
        del given["self"]
        given |= given.pop("others", {})
        ours = {name: x for name, x in given.items() if name in known or name in options}
        refuse(
            type(self).__name__,
            {name: x for name, x in given.items() if name not in ours and name not in ignored},
        )
        native.__init__(self, **ours)

    __init__.__signature__ = signature  # type: ignore[attr-defined]
    summary = inspect.cleandoc(native.__doc__ or "").partition("\n")[0]  # none with -OO
    contents = {
        "__init__": __init__,
        "__doc__": f"{summary}\n\nSee :class:`gradtape.{path}`; the arguments are Keras'.\n",
        "__module__": bases[0].__module__,
    }
    return adapts(path)(type(native.__name__, (*bases, native), contents))


def _signature(
    arguments: str, known: dict[str, Parameter], defaults: dict[str, Any]
) -> inspect.Signature:
    kind: Any = Parameter.POSITIONAL_OR_KEYWORD
    parameters = [Parameter("self", kind)]
    for name in arguments.split():
        if name == "*":
            kind = Parameter.KEYWORD_ONLY
        elif name == "**":
            parameters.append(Parameter("others", Parameter.VAR_KEYWORD))
        else:
            default = known[name].default if name in known else None
            parameters.append(Parameter(name, kind, default=defaults.get(name, default)))
    return inspect.Signature(parameters)

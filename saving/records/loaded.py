"""``LoadedModule``: a module of a class that is not known here."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ...core.extend import Module, RestoredFunction, Variable

__all__ = ["LoadedModule", "is_ordered", "signatures_of", "tracks"]

_CLASS = "_gradtape_class_name"
_UNTRACED = "_gradtape_untraced"
_ORDERED = "_gradtape_ordered"


class LoadedModule(Module):
    """A module whose class is not known here: the saved tree, variables and functions.

    Its functions are attributes, under the names that the methods had; calling it calls what
    ``__call__`` was. ``signatures``, if the file has any, is a dictionary of the functions that
    were given to ``save(signatures=...)``.
    """

    def __init__(
        self, name: str, class_name: str, untraced: Mapping[str, str], ordered: bool = False
    ) -> None:
        super().__init__(name)
        vars(self)[_CLASS] = class_name
        vars(self)[_UNTRACED] = dict(untraced)
        vars(self)[_ORDERED] = ordered

    @property
    def class_name(self) -> str:
        """What the class was called where it was saved."""
        return str(vars(self)[_CLASS])

    @property
    def untraced(self) -> dict[str, str]:
        """The methods that the file does not hold, with the reason."""
        return dict(vars(self)[_UNTRACED])

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call the module as it was called when it was saved."""
        call = vars(self).get("__call__")
        if call is None:
            raise TypeError(self._missing("__call__"))
        return call(*args, **kwargs)

    def _attribute_order(self) -> list[str]:
        return list(vars(self)) if vars(self)[_ORDERED] else super()._attribute_order()

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):  # what copying and printing ask for; not worth a message
            raise AttributeError(name)
        raise AttributeError(self._missing(name), name=name, obj=self)

    def _missing(self, name: str) -> str:
        reason = vars(self).get(_UNTRACED, {}).get(name)
        if reason is None and name == "__call__":
            reason = "it was never called before it was saved"
        said = f" ({reason})" if reason else ""
        functions = ", ".join(self.functions()) or "none"
        return (
            f"module {self.name!r}, saved from class {self.class_name}, has no {name!r}{said}; the "
            f"functions that were saved with it: {functions}"
        )

    def __repr__(self) -> str:
        count = len(self.variables)
        return f"<LoadedModule {self.name!r} of class {self.class_name}: {count} variables>"


def is_ordered(module: Module) -> bool:
    """Return whether a module lists variables in the order in which they were set, as layers do."""
    if isinstance(module, LoadedModule):
        return bool(vars(module)[_ORDERED])
    return type(module)._attribute_order is not Module._attribute_order


def signatures_of(module: Module) -> dict[str, RestoredFunction]:
    """Return the signatures that a module was loaded with."""
    held = vars(module).get("signatures")
    if type(held) is dict and all(isinstance(f, RestoredFunction) for f in held.values()):
        return dict(held)
    return {}


def tracks(value: Any) -> bool:
    """Return whether a value is, or holds, a variable or a module."""
    if isinstance(value, (list, tuple)):
        return any(tracks(item) for item in value)
    if isinstance(value, dict):
        return any(tracks(item) for item in value.values())
    return isinstance(value, (Variable, Module))

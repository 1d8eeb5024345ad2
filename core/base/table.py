"""Ops, functions and services by name, looked up at first use.

``ops["sin"]`` is the op as users call it: tensors in, tensors out, recorded by tapes.
``F.sin`` is the op on arrays of any type: gradient rules are written with it.

Imports between packages go down. This module looks up what is above, by name and at first use: the
registry, the public functions, and modules that are slow to import and rarely needed.
"""

from __future__ import annotations

import sys
from collections.abc import ItemsView, KeysView, ValuesView
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, Any

from ...public import IMPORTING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from ..registry.registry import Registry

PACKAGE = __name__.partition(".")[0]


@cache
def lazy_module(name: str) -> Any:
    """Return a module of the package, importing it if necessary."""
    with IMPORTING:  # not half of it, while another thread imports it
        return import_module(f"{PACKAGE}.{name}")


def lazy_entry(module: str, table: str, key: Any) -> Callable[..., Any]:
    """Return a function from a table of a module that is imported when the function first runs."""

    def entry(*given: Any, **params: Any) -> Any:
        return getattr(lazy_module(module), table)[key](*given, **params)

    return entry


def registry() -> Registry:
    """Return the registry; plugins are discovered on the first call."""
    found: Registry = lazy_module("core.registry.host").registry()
    return found


def op_named(name: str) -> Any:
    """Return an op by its name: pickles of ops hold only the name."""
    return ops[name]


def public_package() -> Any:
    """Return the package, whose attributes are the public functions."""
    return sys.modules[PACKAGE]


# Any: an op with several outputs returns a list, where `Op.__call__` promises a tensor
class OpTable(dict[str, Any]):
    """A dictionary of ops that looks up missing names in the registry.

    It holds those that were looked up, for speed; it shows all that the registry has.
    """

    def __missing__(self, name: str) -> Any:
        op = self[name] = registry().op(name)
        return op

    def __contains__(self, name: object) -> bool:
        return type(name) is str and registry().find(name) is not None

    def __iter__(self) -> Iterator[str]:
        return iter(list(registry().ops))

    def __len__(self) -> int:
        return len(registry().ops)

    def get(self, name: str, default: Any = None) -> Any:
        # dict.get would not look up what is missing
        return self[name] if name in self else default  # noqa: SIM401

    def keys(self) -> Any:
        return KeysView(self)

    def values(self) -> Any:
        return ValuesView(self)

    def items(self) -> Any:
        return ItemsView(self)

    def __repr__(self) -> str:
        return "<ops on tensors, by name>"


class ArrayFunctions:
    """Ops as attributes, applied to arrays: ``F.exp(x)``, ``F["package::op"]``."""

    def __getattr__(self, name: str) -> Callable[..., Any]:
        if name.startswith("__"):
            raise AttributeError(name)
        function = ops[name].raw
        setattr(self, name, function)
        return function

    def __getitem__(self, name: str) -> Callable[..., Any]:
        return ops[name].raw

    def __repr__(self) -> str:
        return "<ops on arrays, by name>"


class Services(dict[str, Any]):
    """What packages above this one provide, by name, looked up in the registry at first use.

    ``services["saving.pickle_tensor"]`` is provided by the hook ``gradtape_services``.
    """

    def __missing__(self, name: str) -> Any:
        found = self[name] = registry().service(name)
        return found


class Functions(dict[str, Any]):
    """Public functions by name, those made of several ops too: ``functions["reshape"]``."""

    def __missing__(self, name: str) -> Any:
        found = self[name] = registry().service(f"ops.{name}")
        return found


class Filled:
    """What packages of ``core`` put here for those below them, when they are imported."""

    as_tensor: Callable[..., Any]
    Tensor: type[Any]


above = Filled()
ops = OpTable()
F = ArrayFunctions()
services = Services()
functions = Functions()


def forget() -> None:
    """Empty the tables, so that names are looked up in the changed registry."""
    ops.clear()
    vars(F).clear()
    services.clear()
    functions.clear()

"""A plugin's hooks, and checks for mistakes that would silently disable them."""

from __future__ import annotations

import difflib
import inspect
from collections.abc import Callable, Iterable
from types import FunctionType, ModuleType
from typing import Any, NamedTuple

from ..errors import PluginError
from . import hookspecs
from .info import Rank

#: The names of all hooks.
HOOKS = tuple(name for name in vars(hookspecs) if name.startswith(f"{hookspecs.PROJECT}_"))
#: What has no hooks of its own.
_VALUES = (type(None), str, bytes, int, float, complex, list, tuple, set, dict)
_MARK = f"{hookspecs.PROJECT}_impl"  # the attribute that pluggy sets


def near_names(name: str, known: Iterable[str], cutoff: float = 0.6) -> str:
    """Return ``"; near names: ..."``, or an empty text if there are none."""
    near = difflib.get_close_matches(name.lower(), list(known), 3, cutoff)
    return f"; near names: {', '.join(near)}" if near else ""


class Hook(NamedTuple):
    """A plugin's function for a hook, and the rank that it asks for; see :class:`Rank`."""

    function: Callable[[], Any]
    rank: int


def hooks_of(plugin: Any, newer: bool = False) -> tuple[dict[str, Hook], list[str]]:
    """Return the hooks of a plugin (a module, an object or a class), after checking them.

    Parameters
    ----------
    plugin
        The plugin.
    newer
        Whether it was written for a later version, which may have hooks that this one lacks.

    Returns
    -------
    hooks : dict
        By the hook's name without ``gradtape_``.
    notes : list of str
        About marked functions that are hooks of another version, and are not called.

    Raises
    ------
    PluginError
        If a marked function takes arguments or almost has the name of a hook; if two are for one
        hook; or if an unmarked one seems to be meant as a hook. A plugin that is itself a function
        or a plain value, such as a module's name, is an error too.
    """
    what = "function" if inspect.isroutine(plugin) else type(plugin).__name__
    if what == "function" or type(plugin) in _VALUES:
        told = _told(plugin) if what == "function" else f"{plugin!r:.80}"
        raise PluginError(
            f"{told} is a {what}; a plugin is a module or an object with hook functions"
        )
    hooks: dict[str, Hook] = {}
    notes = []
    for attribute, value in _attributes(plugin):
        mark = getattr(value, _MARK, None) if inspect.isroutine(value) else None
        if mark is None:
            _check_unmarked(attribute, value)
            continue
        name = attribute if mark["specname"] is None else mark["specname"]
        if name not in HOOKS:
            notes.append(_unknown(name, value, newer or mark["optionalhook"]))
            continue
        _check_marked(value)
        hook = name.removeprefix(f"{hookspecs.PROJECT}_")
        if hook in hooks:
            raise PluginError(f"{_told(value)} and {_told(hooks[hook].function)} are both {name}")
        rank = Rank.FIRST if mark["tryfirst"] else Rank.LAST if mark["trylast"] else Rank.USUAL
        hooks[hook] = Hook(value, rank)
    return hooks, notes


def _attributes(plugin: Any) -> list[tuple[str, Any]]:
    if type(plugin) is ModuleType:
        return list(vars(plugin).items())
    return [(name, getattr(plugin, name, None)) for name in dir(plugin)]


def _unknown(name: str, value: Any, allowed: bool) -> str:
    """Return a note on a hook of another version; raise for a name that seems misspelt."""
    near = near_names(name, HOOKS, cutoff=0.85)
    if not allowed and (near or not name.startswith(f"{hookspecs.PROJECT}_")):
        near = near or near_names(name, HOOKS) or f"; there are {', '.join(HOOKS)}"
        raise PluginError(
            f"{_told(value)} is marked with hookimpl, but is not a hook{near}; for a hook of a "
            "later version of gradtape, write @gradtape.hookimpl(optionalhook=True)"
        )
    return f"{_told(value)} implements {name}, which is not a hook of this version: not called"


def _check_marked(value: Any) -> None:
    """Raise if a marked function cannot be called as a hook."""
    wanted = _wanted(value)
    if wanted == ["self"]:
        raise PluginError(
            f"{_told(value)} is a method, but the plugin is the class: register an instance, or "
            "make the method a staticmethod"
        )
    if wanted:
        raise PluginError(
            f"{_told(value)} takes arguments ({', '.join(wanted)}); hooks are called without any"
        )


def _check_unmarked(attribute: str, value: Any) -> None:
    """Raise if an attribute without the mark seems to be meant as a hook."""
    if attribute in HOOKS:
        raise PluginError(
            f"{_told(value)} is not marked as a hook: write @gradtape.hookimpl above it"
            if callable(value)
            else f"{attribute} is a {type(value).__name__}; make it a function that returns this "
            "value, marked with @gradtape.hookimpl"
        )
    if inspect.isroutine(value) and attribute.lower().startswith("grad"):
        near = near_names(attribute, HOOKS, cutoff=0.85)
        if near:
            raise PluginError(
                f"{_told(value)} is neither a hook nor marked as one{near}; if it is not meant as "
                "a hook, rename it"
            )


def _wanted(function: Callable[..., Any]) -> list[str]:
    """Return the names of the required parameters."""
    code = function.__code__ if type(function) is FunctionType else None
    if code is not None and not code.co_argcount + code.co_kwonlyargcount:
        return []  # inspect.signature is slow
    try:
        parameters = inspect.signature(function).parameters.values()
    except ValueError:  # a builtin without a signature
        return []
    stars = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    return [p.name for p in parameters if p.kind not in stars and p.default is p.empty]


def _told(value: Any) -> str:
    """Return a function's name, with its line if it has one."""
    code = getattr(inspect.unwrap(value), "__code__", None) if callable(value) else None
    name = getattr(value, "__qualname__", None) or repr(value)
    return f"{name} ({code.co_filename}:{code.co_firstlineno})" if code is not None else name

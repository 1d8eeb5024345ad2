"""A plugin's hooks, and checks for mistakes that would silently disable them."""

from __future__ import annotations

import difflib
import inspect
from collections.abc import Callable, Iterable
from typing import Any

from ..errors import PluginError
from . import hookspecs

__all__ = ["HOOKS", "check_hooks", "near_names"]

#: The names of all hooks.
HOOKS = tuple(name for name in vars(hookspecs) if name.startswith(f"{hookspecs.PROJECT}_"))
#: What has no hooks of its own.
_VALUES = (type(None), str, bytes, int, float, complex, list, tuple, set, dict)
_MARK = f"{hookspecs.PROJECT}_impl"  # the attribute that pluggy sets


def near_names(name: str, known: Iterable[str], cutoff: float = 0.6) -> str:
    """Return ``"; near names: ..."``, or an empty text if there are none."""
    near = difflib.get_close_matches(name.lower(), list(known), 3, cutoff)
    return f"; near names: {', '.join(near)}" if near else ""


def check_hooks(plugin: Any) -> None:
    """Check a plugin (a module, an object or a class) for hooks that would not be called.

    Raises
    ------
    PluginError
        If a marked function is not a hook or takes arguments, if an unmarked one seems to be meant
        as a hook, or if the plugin is itself a function or a plain value, such as a module's name.
    """
    what = "function" if inspect.isroutine(plugin) else type(plugin).__name__
    if what == "function" or type(plugin) in _VALUES:
        told = _told(plugin) if what == "function" else f"{plugin!r:.80}"
        raise PluginError(
            f"{told} is a {what}; a plugin is a module or an object with hook functions"
        )
    for attribute in dir(plugin):
        value = getattr(plugin, attribute, None)
        mark = getattr(value, _MARK, None) if inspect.isroutine(value) else None
        if mark is None:
            _check_unmarked(attribute, value)
        else:
            _check_marked(attribute if mark["specname"] is None else mark["specname"], value)


def _check_marked(name: str, value: Any) -> None:
    """Raise if a marked function is not a hook, or cannot be called as one."""
    if name not in HOOKS:
        near = near_names(name, HOOKS) or f"; there are {', '.join(HOOKS)}"
        raise PluginError(f"{_told(value)} is marked with hookimpl, but is not a hook{near}")
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

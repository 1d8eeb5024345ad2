"""A plugin's hooks: its functions of these names, and the mistakes that would hide them."""

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
_MARK = f"{hookspecs.PROJECT}_impl"  # the attribute in which pluggy keeps it


def near_names(name: str, known: Iterable[str], cutoff: float = 0.6) -> str:
    """Return ``"; near names: ..."``; nothing if there are none."""
    near = difflib.get_close_matches(name.lower(), list(known), 3, cutoff)
    return f"; near names: {', '.join(near)}" if near else ""


def check_hooks(plugin: Any) -> None:
    """Look through a plugin (a module, an object or a class) for hooks that would not be called.

    Raises
    ------
    PluginError
        If a function is marked and no hook, seems to be meant as a hook and is not marked, or wants
        arguments; or if the plugin is itself a function.
    """
    if inspect.isroutine(plugin):
        raise PluginError(
            f"{_told(plugin)} is a function; a plugin is what has such functions: a module, or an "
            "object"
        )
    for attribute in dir(plugin):
        value = getattr(plugin, attribute, None)
        mark = getattr(value, _MARK, None) if inspect.isroutine(value) else None
        if mark is None:
            _check_unmarked(attribute, value)
        else:
            _check_marked(attribute if mark["specname"] is None else mark["specname"], value)


def _check_marked(name: str, value: Any) -> None:
    """Raise if a function with the mark is no hook, or cannot be called as one."""
    if name not in HOOKS:
        near = near_names(name, HOOKS) or f"; there are {', '.join(HOOKS)}"
        raise PluginError(f"{_told(value)} is marked with hookimpl, but no hook{near}")
    wanted = _wanted(value)
    if wanted == ["self"]:
        raise PluginError(
            f"{_told(value)} is a method, but the plugin is the class: give an instance of it, or "
            "make the method a staticmethod"
        )
    if wanted:
        raise PluginError(
            f"{_told(value)} wants arguments ({', '.join(wanted)}); hooks are called without any"
        )


def _check_unmarked(attribute: str, value: Any) -> None:
    """Raise if an attribute without the mark seems to be meant as a hook."""
    if attribute in HOOKS:
        raise PluginError(
            f"{_told(value)} is not marked as a hook: write @gradtape.hookimpl above it"
            if callable(value)
            else f"{attribute} is a {type(value).__name__}; a hook is a function marked with "
            "@gradtape.hookimpl that returns it"
        )
    if inspect.isroutine(value) and attribute.lower().startswith("grad"):
        near = near_names(attribute, HOOKS, cutoff=0.85)
        if near:
            raise PluginError(
                f"{_told(value)} is neither a hook nor marked as one{near}; other functions of a "
                "plugin should be called otherwise"
            )


def _wanted(function: Callable[..., Any]) -> list[str]:
    """Return the parameters that a call has to give."""
    try:
        parameters = inspect.signature(function).parameters.values()
    except ValueError:  # a builtin that does not tell
        return []
    stars = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    return [p.name for p in parameters if p.kind not in stars and p.default is p.empty]


def _told(value: Any) -> str:
    """Return a function's name, with its line where it has one."""
    code = getattr(inspect.unwrap(value), "__code__", None) if callable(value) else None
    name = getattr(value, "__qualname__", None) or repr(value)
    return f"{name} ({code.co_filename}:{code.co_firstlineno})" if code is not None else name

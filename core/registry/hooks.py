"""A plugin's hooks and versions, and checks for mistakes that would silently disable hooks.

A plugin's module may state the version of the plugin interface that it was written for, and since
which of its own versions it is compatible.
"""

from __future__ import annotations

import inspect
import re
import sys
from collections.abc import Callable, Iterable
from types import FunctionType, ModuleType
from typing import Any, NamedTuple

from ..errors import PluginError
from .hookspecs import HOOKS, PROJECT
from .info import API, PluginInfo, Rank

#: What has no hooks of its own.
_VALUES = (type(None), str, bytes, int, float, complex, list, tuple, set, dict)
_MARK = f"{PROJECT}_impl"  # the attribute that pluggy sets


def near_names(name: str, known: Iterable[str], cutoff: float = 0.6) -> str:
    """Return ``"; near names: ..."``, or an empty text if there are none."""
    import difflib  # for errors only

    near = difflib.get_close_matches(name.lower(), list(known), 3, cutoff)
    return f"; near names: {', '.join(near)}" if near else ""


def package_named(head: str) -> str:
    """Return what to install for a name that starts with ``head``: a distribution, or a module."""
    if "_" not in head:
        return f"the package {head!r}"
    return f"the package {head!r} (as a distribution, probably {head.replace('_', '-')!r})"


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
        told = _label(plugin) if what == "function" else f"{plugin!r:.80}"
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
        hook = name.removeprefix(f"{PROJECT}_")
        if hook in hooks:
            raise PluginError(f"{_label(value)} and {_label(hooks[hook].function)} are both {name}")
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
    if not allowed and (near or not name.startswith(f"{PROJECT}_")):
        near = near or near_names(name, HOOKS) or f"; there are {', '.join(HOOKS)}"
        raise PluginError(
            f"{_label(value)} is marked with hookimpl, but is not a hook{near}; for a hook of a "
            "later version of gradtape, write @gradtape.hookimpl(optionalhook=True)"
        )
    return f"{_label(value)} implements {name}, which is not a hook of this version: not called"


def _check_marked(value: Any) -> None:
    """Raise if a marked function cannot be called as a hook."""
    wanted = _wanted(value)
    if wanted == ["self"]:
        raise PluginError(
            f"{_label(value)} is a method, but the plugin is the class: register an instance, or "
            "make the method a staticmethod"
        )
    if wanted:
        raise PluginError(
            f"{_label(value)} takes arguments ({', '.join(wanted)}); hooks are called without any"
        )


def _check_unmarked(attribute: str, value: Any) -> None:
    """Raise if an attribute without the mark seems to be meant as a hook."""
    if attribute in HOOKS:
        raise PluginError(
            f"{_label(value)} is not marked as a hook: write @gradtape.hookimpl above it"
            if callable(value)
            else f"{attribute} is a {type(value).__name__}; make it a function that returns this "
            "value, marked with @gradtape.hookimpl"
        )
    if inspect.isroutine(value) and attribute.lower().startswith("grad"):
        near = near_names(attribute, HOOKS, cutoff=0.85)
        if near:
            raise PluginError(
                f"{_label(value)} is neither a hook nor marked as one{near}; if it is not meant as "
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


def _label(value: Any) -> str:
    """Return a function's name, with its line if it has one."""
    code = getattr(inspect.unwrap(value), "__code__", None) if callable(value) else None
    name = getattr(value, "__qualname__", None) or repr(value)
    return f"{name} ({code.co_filename}:{code.co_firstlineno})" if code is not None else name


# -- versions --------------------------------------------------------------------------------------


# the versions of PEP 440; a local part, as in 1.0+cu12, means nothing for what a plugin does
# (compiled at its first use, since plain numbers do not need it)
_VERSION = r"""\s*v?(?:(?P<epoch>\d+)!)?(?P<release>\d+(?:\.\d+)*)
    (?:[-_.]?(?P<stage>alpha|a|beta|b|preview|pre|c|rc)[-_.]?(?P<pre>\d*))?
    (?:-(?P<number>\d+)|[-_.]?(?P<after>post|rev|r)[-_.]?(?P<post>\d*))?
    (?:[-_.]?(?P<developed>dev)[-_.]?(?P<dev>\d*))?(?:\+[a-z0-9._-]+)?\s*"""


def read_hooks(info: PluginInfo, plugin: Any) -> dict[str, Hook]:
    """Return a plugin's hooks after checking them, and note what it states about versions.

    Parameters
    ----------
    info
        What is known of the plugin; ``api``, ``compatible_since`` and ``notes`` are set.
    plugin
        The plugin. ``gradtape_api`` and ``gradtape_compatible_since`` are attributes of it, or of
        the module of its class.

    Returns
    -------
    dict
        By the hook's name without ``gradtape_``.

    Raises
    ------
    PluginError
        If it was written for another major version of the plugin interface, if a statement has a
        wrong form, or if a hook would not be called.
    """
    info.api = _api(info, _stated(plugin, "gradtape_api"))
    since = _stated(plugin, "gradtape_compatible_since")
    if since is not None and (type(since) is not str or _key(since) is None):
        raise PluginError(
            f"{info}: gradtape_compatible_since is {since!r:.80}; it must be one of the plugin's "
            "versions, such as '1.2'"
        )
    info.compatible_since = since or ""
    newer = info.api is not None and info.api > API
    hooks, info.notes = hooks_of(plugin, newer)
    if newer:
        info.notes.insert(
            0,
            f"it was written for version {_text(info.api)} of the plugin interface, and this is "
            f"{_text(API)}: hooks that are new there are not called; a newer gradtape has them",
        )
    return hooks


def means_the_same(saved: str, here: str, since: str) -> bool:
    """Return whether ops and classes of one version of a plugin mean the same in another.

    Parameters
    ----------
    saved, here
        The version that a file was saved with, and the installed one.
    since
        The installed plugin's ``compatible_since``; empty if only equal versions are alike.
    """
    if saved == here:
        return True
    keys = [_key(version) for version in (since, saved, here)]
    first, then, now = keys
    return None not in keys and first <= then <= now  # type: ignore[operator]


def _api(info: PluginInfo, stated: Any) -> tuple[int, int] | None:
    if stated is None:
        return None
    if not isinstance(stated, (tuple, list)) or list(map(type, stated)) != [int, int]:
        raise PluginError(
            f"{info}: gradtape_api is {stated!r:.80}; it must be the two numbers of a version of "
            f"the plugin interface, such as {API}"
        )
    major, minor = stated
    if major != API[0]:
        what = "gradtape" if major > API[0] else info.distribution or f"plugin {info.name!r}"
        raise PluginError(
            f"{info}: it was written for version {_text((major, minor))} of gradtape's plugin "
            f"interface, and this is {_text(API)}: install a newer version of {what}"
        )
    return major, minor


def _stated(plugin: Any, name: str) -> Any:
    """Return what a plugin, or the module of its class, states; None if it does not."""
    found = getattr(plugin, name, None)
    if found is None and not isinstance(plugin, ModuleType):
        module = getattr(plugin, "__module__", None) or type(plugin).__module__
        found = getattr(sys.modules.get(str(module)), name, None)
    return found


def _text(version: tuple[int, int] | None) -> str:
    return ".".join(map(str, version or ()))


def _key(version: str) -> tuple[Any, ...] | None:
    """Return what orders versions as packaging does; None for a text that is no version."""
    numbers = version.split(".")
    if version.isascii() and all(map(str.isdigit, numbers)):
        return 0, _release(numbers), ("z",), -1, (1,)
    found = re.fullmatch(_VERSION, version, re.VERBOSE | re.IGNORECASE)
    if found is None:
        return None
    part = found.groupdict()
    release = _release(part["release"].split("."))
    stage = {"alpha": "a", "beta": "b", "c": "rc", "pre": "rc", "preview": "rc"}
    pre: tuple[Any, ...] = ("z",)  # after all that come before a release
    if part["stage"]:
        named = part["stage"].lower()
        pre = (stage.get(named, named), int(part["pre"] or 0))
    elif part["developed"] and not (part["after"] or part["number"]):
        pre = ("",)  # before the first one
    later = part["after"] is not None or part["number"] is not None
    post = int(part["post"] or part["number"] or 0) if later else -1
    dev = (0, int(part["dev"] or 0)) if part["developed"] else (1,)
    return int(part["epoch"] or 0), release, pre, post, dev


def _release(numbers: list[str]) -> list[int]:
    release = [int(x) for x in numbers]
    while release and release[-1] == 0:
        release.pop()
    return release

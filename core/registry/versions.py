"""What a plugin's module states about versions: of the plugin interface, and of itself."""

from __future__ import annotations

import re
import sys
from types import ModuleType
from typing import Any

from ..errors import PluginError
from .hooks import Hook, hooks_of
from .info import API, PluginInfo

# the versions of PEP 440; a local part, as in 1.0+cu12, means nothing for what a plugin does
_VERSION = re.compile(
    r"""\s*v?(?:(?P<epoch>\d+)!)?(?P<release>\d+(?:\.\d+)*)
    (?:[-_.]?(?P<stage>alpha|a|beta|b|preview|pre|c|rc)[-_.]?(?P<pre>\d*))?
    (?:-(?P<number>\d+)|[-_.]?(?P<after>post|rev|r)[-_.]?(?P<post>\d*))?
    (?:[-_.]?(?P<developed>dev)[-_.]?(?P<dev>\d*))?(?:\+[a-z0-9._-]+)?\s*""",
    re.VERBOSE | re.IGNORECASE,
)


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
    found = _VERSION.fullmatch(version)
    if found is None:
        return None
    part = found.groupdict()
    release = [int(x) for x in part["release"].split(".")]
    while release and release[-1] == 0:
        release.pop()
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

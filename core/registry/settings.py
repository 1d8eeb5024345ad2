"""What the user says about plugins in environment variables, which child processes inherit."""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from fnmatch import fnmatchcase

#: The environment variable with the names of plugins, those that win first.
ORDER = "GRADTAPE_PLUGINS_ORDER"
#: The environment variable with the names of plugins to disable.
DISABLE = "GRADTAPE_DISABLE_PLUGINS"
#: The environment variable with the installed plugins to use, besides gradtape's own.
ALLOW = "GRADTAPE_PLUGINS"
#: The environment variable with modules, or ``module:object``, to register as plugins.
MODULES = "GRADTAPE_PLUGIN_MODULES"
#: The environment variable that makes every problem with a plugin an error.
STRICT = "GRADTAPE_PLUGINS_STRICT"
#: All these variables, for ``gradtape doctor``.
VARIABLES = (DISABLE, ALLOW, ORDER, STRICT, MODULES)
#: What the list of plugins to use always has.
_ALWAYS = "gradtape:*"
_REPORTING = ContextVar("reporting", default=False)


def listed(variable: str) -> list[str]:
    """Return the names in an environment variable, which commas separate."""
    return [name.strip() for name in os.environ.get(variable, "").split(",") if name.strip()]


@contextmanager
def reporting() -> Iterator[None]:
    """Let problems with plugins be no errors in a block, whatever the user wants: it reports them.

    Yields
    ------
    None
    """
    token = _REPORTING.set(True)
    try:
        yield
    finally:
        _REPORTING.reset(token)


def is_strict() -> bool:
    """Return whether every problem with a plugin is an error."""
    if _REPORTING.get():
        return False
    value = os.environ.get(STRICT, "").strip().lower()
    return value not in ("", "0", "false", "no", "off")


def allowed() -> list[str] | None:
    """Return the installed plugins that may be used; None for all."""
    names = listed(ALLOW)
    return [_ALWAYS, *names] if names else None


def matches(distribution: str, name: str, asked: str) -> bool:
    """Return whether a plugin is what a user names.

    Parameters
    ----------
    distribution, name
        The plugin's distribution, empty for one registered by hand, and its name.
    asked
        ``"name"`` or ``"distribution:name"``, in which ``*`` stands for any characters.
    """
    of, colon, pattern = asked.rpartition(":")
    if colon and not fnmatchcase(_normal(distribution), _normal(of)):
        return False
    return fnmatchcase(name, pattern)


def matches_any(distribution: str, name: str, asked: Collection[str]) -> bool:
    """Return whether any of several names is the plugin's; see :func:`matches`."""
    return any(matches(distribution, name, each) for each in asked)


def _normal(distribution: str) -> str:
    """Return a distribution's name as packaging compares it."""
    return re.sub("[-_.]+", "-", distribution).lower()

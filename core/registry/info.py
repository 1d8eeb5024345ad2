"""``PluginInfo``: a plugin and what it provides; and what the user says about plugins.

The user says it in environment variables, which child processes inherit.
"""

from __future__ import annotations

import os
import re
import textwrap
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any, NamedTuple

from ..base.context import Setting
from ..base.table import PACKAGE, public_package
from ..errors import PluginError
from .hookspecs import HOOKS, PROJECT

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
#: The kinds of objects that a text may name.
NAMED = (
    *("activation", "optimizer", "loss", "metric", "initializer", "regularizer", "constraint"),
    *("schedule", "callback"),
)
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
    with Setting(_REPORTING, True):
        yield


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


# -- plugins ---------------------------------------------------------------------------------------


#: The version of the plugin interface, major and minor. A plugin may state the one that it was
#: written for: ``gradtape_api = (1, 0)``.
API = (1, 0)
#: The hooks whose results are listed in a field of another name.
_LISTED = {"gradtape_gradients": "rules"}
_FIELDS = [_LISTED.get(hook, hook.removeprefix(f"{PROJECT}_")) for hook in HOOKS]
_SHOWN = (
    "name", "distribution", "version", "package",
    "problem", "shares_name", "api", "compatible_since",
)  # fmt: skip


class PluginInfo:
    """A plugin and what it provides.

    Attributes
    ----------
    name
        The entry point's name, or the name given to ``register_plugin``.
    distribution, version
        The installed distribution; empty if registered by hand.
    problem
        Why it is not in use, or ``None``.
    clashes
        What it provides that another plugin provides too, with the same rank: messages.
    notes
        What its author should know, although it is in use.
    package
        The package that its entry point is in; empty if registered by hand.
    shares_name
        Whether another plugin, of another distribution, has the same name.
    api
        The version of the plugin interface that it was written for, if it says so.
    compatible_since
        The first of its versions whose ops and classes mean what they mean now.
    waiting
        Hooks that are called when what they provide is first needed.
    {hooks}
        The names of what it provides: a list per hook, of the hook's name, except that ``rules``
        are those of ops and of ``gradtape_gradients``. ``late_ops`` lists prefixes of ops that are
        loaded when first needed, ``formats`` ends of file names, ``functions`` modules of other
        libraries, and ``hints`` names that gradtape lacks. In ``kernels``, ``lowerings`` and
        ``names``, a name is a pair.

    Examples
    --------
    >>> info = gt.registry().owner("backend", "numpy")
    >>> info.name, info.backends, info.problem
    ('numpy', ['numpy'], None)
    """

    distribution: str = ""
    version: str = ""
    package: str = ""
    problem: str | None = None
    shares_name: bool = False
    api: tuple[int, int] | None = None
    compatible_since: str = ""

    # written out: a dataclass of this many fields takes as long to define as a family of ops
    def __init__(
        self,
        name: str,
        distribution: str = "",
        version: str = "",
        package: str = "",
        problem: str | None = None,
        shares_name: bool = False,
        api: tuple[int, int] | None = None,
        compatible_since: str = "",
    ) -> None:
        self.name = name
        self.distribution, self.version, self.package = distribution, version, package
        self.problem, self.shares_name = problem, shares_name
        self.api, self.compatible_since = api, compatible_since
        self.clashes: list[str] = []
        self.notes: list[str] = []
        self.waiting: set[str] = set()
        for field in _FIELDS:
            setattr(self, field, [])

    def __repr__(self) -> str:
        given = [f"{x}={vars(self)[x]!r}" for x in _SHOWN]
        return f"PluginInfo({', '.join(given)})"

    if TYPE_CHECKING:

        def __getattr__(self, name: str) -> list[Any]: ...

    @property
    def provides(self) -> dict[str, list[Any]]:
        """The names of what it provides, by kind: ``"ops"``, ``"kernels"``, ..."""
        lists = {name: x for name, x in vars(self).items() if isinstance(x, list)}
        return {name: x for name, x in lists.items() if name not in ("clashes", "notes")}

    @property
    def choice(self) -> str:
        """What selects it, and no other plugin, in ``GRADTAPE_DISABLE_PLUGINS`` and its like."""
        return f"{self.distribution}:{self.name}" if self.shares_name else self.name

    @property
    def may_use_reserved_names(self) -> bool:
        """Whether its names may be gradtape's own: bare, or with a package of gradtape in front."""
        return self.distribution == PACKAGE

    def __str__(self) -> str:
        where = f" ({self.distribution} {self.version})" if self.distribution else ""
        return f"plugin {self.name!r}{where}"


if PluginInfo.__doc__ is not None:  # python -OO
    _text = textwrap.fill(", ".join(_FIELDS), 92).replace("\n", "\n    ")
    PluginInfo.__doc__ = PluginInfo.__doc__.replace("{hooks}", _text)


def is_reserved(name: str) -> bool:
    """Return whether a name is bare, or has a package of gradtape in front."""
    if "::" in name:
        return name.partition("::")[0] in ("", public_package().__name__)
    head, dot, _ = name.partition(".")
    return not dot or head == public_package().__name__ or head in public_package().__all__


def refuse_reserved(info: PluginInfo, what: str, name: str, free: str) -> None:
    """Raise for a reserved name of a plugin that may not use it; ``free`` ends one that it may."""
    if not info.may_use_reserved_names and is_reserved(name):
        raise PluginError(
            f"{info}: the {what} cannot be called {name!r}: bare names, and names that start with "
            "a package of gradtape, are gradtape's own; call it "
            f"'{info.distribution or info.name}{free}'"
        )


class Rank:
    """The ranks of several providers of one thing: the lowest wins."""

    FIRST, USUAL, LAST = 0, 1, 2
    #: What an op brings itself.
    OWN = 3


class Contest(NamedTuple):
    """One thing that several plugins provide.

    Attributes
    ----------
    kind, name
        What it is; the name is ``(op name, backend name)`` for a kernel.
    winner, others
        The plugin whose item is in use, ``None`` if none takes precedence; and the other plugins.
    """

    kind: str
    name: Any
    winner: PluginInfo | None
    others: list[PluginInfo]

    def __str__(self) -> str:
        name = self.name
        told = f"{self.kind} {name}" if type(name) is str else f"{self.kind} {' on '.join(name)}"
        others = ", ".join(map(str, self.others))
        if self.winner is None:
            return f"{told}: not in use, since none takes precedence of {others}"
        return f"{told}: {self.winner} wins over {others}"


class Candidate(NamedTuple):
    """One provider's item of a kind and name.

    Attributes
    ----------
    info
        The plugin.
    item
        What it provides.
    rank
        One of :class:`Rank`: by ``tryfirst`` and ``trylast`` of its hook.
    """

    info: PluginInfo
    item: Any
    rank: int

    def place(self, order: Sequence[str]) -> tuple[int, int]:
        """Return its place among candidates: the user's order of plugins first, then the rank."""
        who = self.info.distribution, self.info.name
        first = (i for i, asked in enumerate(order) if matches(*who, asked))
        return next(first, len(order)), self.rank

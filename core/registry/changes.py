"""What plugins change that is not theirs: ops of others, and functions of other libraries.

It is also known here which traces such changes concern.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from ...public import IMPORTING
from ..base.lifetimes import KERNEL_CACHES
from ..errors import PluginError
from ..ops.checks import check_rules
from ..ops.primitive import Primitive
from .info import PluginInfo
from .loading import raised

if TYPE_CHECKING:
    from .merging import Merged
    from .registry import Registry


class GivenRules:
    """Gradient rules that plugins gave to ops of others, and the rules that these had before."""

    def __init__(self) -> None:
        self._own: dict[Primitive, tuple[Any, Any, Any]] = {}
        #: By op, the rules as the op holds them, and as the plugin gave them.
        self.given: dict[Primitive, tuple[Any, Any, Any]] = {}

    def give(self, info: PluginInfo | None, op: Primitive, rules: Any) -> None:
        """Set a plugin's rules for an op, unless ``register_gradient`` has set some.

        Parameters
        ----------
        info
            The plugin; ``None`` for a function that raises, since several plugins have rules.
        op, rules
            The op, and its rules as the hook returned them.
        """
        if type(op.rules_provider) is str:
            return
        self._own.setdefault(op, (op.rules, op.vjp, op.rules_provider))
        if info is None:
            op.vjp, op.rules = rules, None
        else:
            op.replace_rules(rules)
            check_rules(op)
        op.rules_provider = info
        self.given[op] = (op.rules, op.vjp, rules)

    def give_back(self) -> None:
        """Restore the rules that ops had, before a new registry is built."""
        for op, own in self._own.items():
            if self._are_in_use(op):
                op.rules, op.vjp, op.rules_provider = own

    def _are_in_use(self, op: Primitive) -> bool:
        rules, vjp, _ = self.given.get(op, (op, op, op))
        return op.rules is rules and op.vjp is vjp

    def replacer_of_rules(self, op: Primitive) -> str:
        """Return who replaced an op's own gradient rules.

        Parameters
        ----------
        op
            A registered op.

        Returns
        -------
        str
            A plugin of another distribution, or the module that called ``register_gradient``.
            Empty if every installation of the op's owner has the same rules.
        """
        if op.has_own_rules:
            return ""
        who, owner = op.rules_provider, op.provider
        if type(who) is str:
            return f"the module {who!r} (register_gradient)"
        if not self._are_in_use(op):
            return "an assignment to the op"
        same = who is owner or (who.distribution and who.distribution == owner.distribution)
        return "" if same else str(who)


class Meanings:
    """What ops, their rules and kernels were when traces last used them.

    Parameters
    ----------
    registry
        The registry, whose ops they are now.
    """

    def __init__(self, registry: Merged) -> None:
        self._registry = registry
        #: What ops meant in registries before this one.
        self.before: dict[str, tuple[Any, ...]] = {}
        #: The loaders of late ops in the registry before this one.
        self.loaders: dict[str, Any] = {}
        self._kept: dict[str, tuple[Any, ...]] = {}  # of late ops that nobody loaded again
        self._compared = False

    def compare(self) -> None:
        """Have functions traced again if ops, rules or kernels that they may use have changed.

        It is called for each trace, so that all traces so far were made with what ``before`` says.
        """
        if self._compared:
            return
        with IMPORTING:
            for name, meant in self.before.items():
                if name in self._registry.tables["ops"]:
                    continue
                prefix = name.partition("::")[0]
                loader = self._registry.late_ops.get(prefix)
                if loader is not None and loader is self.loaders.get(prefix):
                    self._kept[name] = meant  # it would be the same
                    continue
                with suppress(PluginError):
                    self._registry.find(name)
            now = {**self._kept, **self._now()}
            # a removed op counts too: constants that were computed with it would stay
            if any(now.get(name) != meant for name, meant in self.before.items()):
                KERNEL_CACHES.meaning_changed()
            self._compared = True

    def all(self) -> dict[str, tuple[Any, ...]]:
        """Return what each op meant when traces last used it; equal if nothing changed."""
        now = {**self._kept, **self._now()}
        return now if self._compared else {**now, **self.before}

    def _now(self) -> dict[str, tuple[Any, ...]]:
        registry, nothing = self._registry, (None, None, None)
        kernels: dict[str, dict[str, Any]] = {}
        for (name, backend), kernel in registry.tables["kernels"].items():
            kernels.setdefault(name, {})[backend] = kernel
        given = registry.rules.given
        return {
            name: (op, given.get(op, nothing)[2], kernels.get(name))
            for name, op in registry.tables["ops"].items()
        }


# -- functions of other libraries ------------------------------------------------------------------


class Replacements:
    """Replacements for functions of other libraries, loaded when their modules are imported.

    Parameters
    ----------
    registry
        The registry, whose ``functions`` are the loaders by module and plugin.
    """

    def __init__(self, registry: Registry) -> None:
        self._registry = registry
        self._loaded: set[tuple[str, PluginInfo]] = set()
        # by another library's function: its name with the module, and the replacement
        self._found: dict[Any, tuple[str, Any]] = {}
        self._owners: dict[Any, PluginInfo] = {}
        self._wrong_tables: dict[tuple[str, PluginInfo], str] = {}

    def of(self, function: Any) -> tuple[str, Any] | None:
        """Return what to use instead of another library's function.

        Parameters
        ----------
        function
            A ufunc or a function of a module that has been imported.

        Returns
        -------
        tuple or None
            The function's full name, and a plugin's function of tensors (for a ufunc) or the name
            of such a function; ``None`` if no plugin has one.

        Raises
        ------
        PluginError
            If the table of a plugin that should say it is wrong, or if two plugins replace it.
        """
        found = self._found.get(function)
        if found is None:
            self._load_tables()
            found = self._found.get(function)
        if found is None:
            for (module, _), problem in self._wrong_tables.items():
                if any(x is function for x in vars(sys.modules[module]).values()):
                    raise PluginError(problem)
        elif type(found[1]) is PluginError:
            raise PluginError(str(found[1]))
        return found

    def _load_tables(self) -> None:
        """Load what plugins say of the functions of modules that are imported."""
        with IMPORTING:
            for key in self._registry.functions:
                if key in self._loaded or key[0] not in sys.modules:
                    continue
                self._loaded.add(key)  # now, since loading may use such functions
                try:
                    self._load_functions(key)
                except PluginError as error:  # a wrong table must not break the others
                    self._wrong_tables[key] = str(error)
                except BaseException:
                    self._loaded.discard(key)
                    raise

    def instead_of(self, package: str, names: Sequence[str]) -> tuple[str, str] | None:
        """Return what to use instead of a Python function that tensors cannot intercept.

        Parameters
        ----------
        package
            The top-level package that defines the function.
        names
            The names that the function may have; the first known one counts.

        Returns
        -------
        tuple or None
            The function's full name and the name to use; ``None`` if no plugin says one.
        """
        if not any(module.partition(".")[0] == package for module, _ in self._registry.functions):
            return None
        self._load_tables()
        known = {
            theirs.rpartition(".")[2]: (theirs, item)
            for theirs, item in self._found.values()
            if type(item) is str and theirs.partition(".")[0] == package
        }
        return next((known[name] for name in names if name in known), None)

    def _load_functions(self, key: tuple[str, PluginInfo]) -> None:
        """Resolve the names in a plugin's table of another library's functions."""
        module, info = key
        table = called(info, f"functions for {module}", self._registry.functions[key])
        if not isinstance(table, Mapping):
            raise PluginError(
                f"{info}: its functions for {module} are {table!r:.80}, not a mapping"
            )
        for name, item in table.items():
            if type(name) is not str or not (callable(item) or type(item) is str):
                raise PluginError(
                    f"{info}: its functions for {module} map {name!r:.80} to {item!r:.80}; it may "
                    "map a name to an op, to a function or to the name of one"
                )
            theirs = getattr(sys.modules[module], name, None)  # not every version has it
            if not callable(theirs):
                continue
            if isinstance(item, Primitive):
                self._registry.op(item.name)  # its plugin's ops are registered
            other = self._owners.setdefault(theirs, info)
            if other is not info:
                item = PluginError(
                    f"{info} and {other} both replace {module}.{name} for tensors; disable one "
                    f"with gradtape.disable_plugin({info.choice!r})"
                )
            self._found[theirs] = f"{module}.{name}", item


def called(info: PluginInfo, what: str, load: Callable[[], Any]) -> Any:
    """Return what a plugin's function returns; name the plugin in its errors.

    Parameters
    ----------
    info
        The plugin.
    what
        What the function provides, for messages.
    load
        The function.
    """
    try:
        return load()
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # a plugin that exits must not end the program
        raise PluginError(f"{info}: its {what} cannot be loaded: {raised(error)}") from error

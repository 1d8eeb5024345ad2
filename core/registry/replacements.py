"""What plugins say of the functions of other libraries: what replaces them for tensors."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ...public import IMPORTING
from ..errors import PluginError
from ..ops.primitive import Primitive
from .info import PluginInfo
from .loading import raised

if TYPE_CHECKING:
    from .registry import Registry


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

"""The registry: everything that the plugins provide, and which plugin provided it."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from ... import hints
from ...public import IMPORTING
from ..base.dtypes import as_dtype
from ..errors import PluginError, UnknownOp
from .backend import Backend
from .checks import check_rules
from .collectives import Engine
from .hooks import near_names
from .kinds import KINDS, PluginInfo
from .primitive import Primitive

if TYPE_CHECKING:
    from ..tensors.op import Op

__all__ = ["Registry"]


class Registry:
    """Everything that plugins provide; :func:`gradtape.registry` returns it.

    gradtape's layers and optimizers are imported when ``modules`` or ``plugins`` is first read, or
    when another plugin provides classes.

    Attributes
    ----------
    ops, backends, executors, collectives
        By name. Ops that a plugin provides late are in ``ops`` once one of them was looked up.
    kernels
        ``(op name, backend name)`` -> a kernel that replaces the op's portable one.

    Examples
    --------
    >>> gt.registry().op("add").inputs
    ('x', 'y')
    """

    def __init__(self) -> None:
        self.ops: dict[str, Op] = {}
        self.backends: dict[str, Backend] = {}
        self.kernels: dict[tuple[str, str], Callable[..., Any]] = {}
        self.executors: dict[str, Callable[..., Any]] = {}
        self.collectives: dict[str, Engine] = {}
        self.formats: dict[str, Callable[..., Any] | str] = {}
        #: The loaders of ops, by prefix; and of replacements, by module and plugin.
        self.late_ops: dict[str, Callable[[], Any]] = {}
        self.functions: dict[tuple[str, str], Callable[[], Any]] = {}
        self.hints: dict[tuple[str, str], str] = {}
        self._loaded: set[Any] = set()
        # by another library's function: its name with the module, and the replacement
        self._replacements: dict[Any, tuple[str, Any]] = {}
        self._wrong_tables: dict[tuple[str, str], str] = {}
        #: The values of ``modules`` and ``plugins`` before the late plugins are imported.
        self.classes: dict[str, type] = {}
        self.infos: list[PluginInfo] = []
        self._late: list[tuple[PluginInfo, Callable[[], Any]]] = []
        self.owners: dict[tuple[str, Any], PluginInfo] = {}
        # changes of plugins to the ops of others: the original rules, and the new ones
        self._own_rules: dict[Op, tuple[Any, Any, Any]] = {}
        self._given_rules: dict[Op, tuple[Any, Any]] = {}

    @property
    def modules(self) -> dict[str, type]:
        """The classes that files may name, by name; reading this imports layers and optimizers."""
        with IMPORTING:  # not half of them, while another thread imports them
            while self._late:
                info, load = self._late[0]
                plugin = load()
                del self._late[0]  # only now, so that an interrupted import is repeated
                self.add(info, {"modules": plugin.gradtape_modules()})
        return self.classes

    @property
    def plugins(self) -> list[PluginInfo]:
        """All plugins in the order of discovery, including those with a problem."""
        self.modules  # noqa: B018  # fills in the classes that each provides
        return self.infos

    def op(self, name: str) -> Op:
        """Return the op called ``name``.

        Parameters
        ----------
        name
            The op's name; ``"distribution::name"`` for an op of another package.

        Returns
        -------
        Op
            The op, as users call it.

        Raises
        ------
        UnknownOp
            If no plugin provides it; the message lists near names and failed plugins.
        """
        found = self.find(name)
        if found is not None:
            return found
        message = f"no plugin provides the op {name!r}"
        message += near_names(name, self.ops)
        prefix = name.partition("::")[0] if "::" in name else None
        if prefix is not None and prefix not in self.late_ops:
            message += f"; install the package {prefix!r} that defines it"
        raise UnknownOp(message + self._failed())

    def find(self, name: str) -> Op | None:
        """Return the op called ``name``, or ``None``; late ops are loaded if necessary.

        Parameters
        ----------
        name
            The op's name.

        Returns
        -------
        Op or None
            The op; ``None`` if no plugin provides it.
        """
        found = self.ops.get(name)
        prefix = name.partition("::")[0]
        if found is None and prefix in self.late_ops:
            self._load_ops(prefix)
            found = self.ops.get(name)
        return found

    def _load_ops(self, prefix: str) -> None:
        """Add a plugin's late ops, once; they have one prefix."""
        key = "op", prefix
        with IMPORTING:
            if key in self._loaded:
                return
            self._loaded.add(key)  # now, since loading may look up ops
            info = self.owners["late_op", prefix]
            try:
                ops = list(_called(info, f"ops {prefix}::...", self.late_ops[prefix]))
                for op in ops:
                    if not str(getattr(op, "name", op)).startswith(f"{prefix}::"):
                        raise PluginError(f"{info}: {op!r} is not an op called '{prefix}::...'")
                self.add(info, {"ops": ops})
            except BaseException:
                self._loaded.discard(key)
                info.clash = False  # it concerns these ops only
                raise

    def replacement(self, function: Any) -> tuple[str, Any] | None:
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
        found = self._replacements.get(function)
        if found is None:
            self._load_tables()
            found = self._replacements.get(function)
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
            for key in self.functions:
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
        if not any(module.partition(".")[0] == package for module, _ in self.functions):
            return None
        self._load_tables()
        known = {
            theirs.rpartition(".")[2]: (theirs, item)
            for theirs, item in self._replacements.values()
            if type(item) is str and theirs.partition(".")[0] == package
        }
        return next((known[name] for name in names if name in known), None)

    def _load_functions(self, key: tuple[str, str]) -> None:
        """Resolve the names in a plugin's table of another library's functions."""
        module, info = key[0], self.owners["function", key]
        table = _called(info, f"functions for {module}", self.functions[key])
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
                self.op(item.name)  # its plugin's ops are registered
            other = self.owners.get(("replacement", theirs), info)
            if other is not info:
                item = PluginError(
                    f"{info} and {other} both replace {module}.{name} for tensors; disable one "
                    f"with gradtape.disable_plugin({info.name!r})"
                )
            self._replacements[theirs] = f"{module}.{name}", item
            self.owners["replacement", theirs] = other

    @property
    def host_backend(self) -> Backend:
        """The backend of arrays in host memory, the default for new tensors."""
        for backend in self.backends.values():
            if backend.host:
                return backend
        raise UnknownOp(f"no plugin provides a backend for arrays in host memory{self._failed()}")

    def backend(self, name: str) -> Backend:
        """Return the backend called ``name``.

        Parameters
        ----------
        name
            The backend's name, without a device.

        Returns
        -------
        Backend
            The backend, whether its library is installed or not.

        Raises
        ------
        UnknownOp
            If no plugin provides it.
        """
        try:
            return self.backends[name]
        except KeyError:
            raise UnknownOp(
                f"no plugin provides the backend {name!r}{self._meant_by(name)}; there are: "
                f"{', '.join(self.backends) or 'none'}{self._failed()}"
            ) from None

    def _meant_by(self, place: str) -> str:
        """Return what a dtype or a device that is given as a backend means here."""
        with suppress(TypeError):
            dtype = as_dtype(place).name
            return f", a dtype: write x.astype({dtype!r}), or dtype={dtype!r} for a layer"
        if place == "cpu":
            return f": the CPU is {self.host_backend.name!r}"
        if place in ("cuda", "gpu", "mps", "xpu"):
            others = [name for name, backend in self.backends.items() if not backend.host]
            return f": for a device, use {' or '.join(map(repr, others))}" if others else ""
        return ""

    def kernel(self, op: Primitive, backend: Backend) -> Callable[..., Any]:
        """Return the kernel that computes ``op`` on arrays of ``backend``.

        Parameters
        ----------
        op
            A registered op.
        backend
            One of the backends.

        Returns
        -------
        callable
            A function of the backend's arrays and the op's parameters.

        Raises
        ------
        UnknownOp
            If the op is not registered, or the backend has no kernel for it.
        """
        if self.find(op.name) is not op:
            raise UnknownOp(f"op {op.name!r} belongs to no registered plugin{self._failed()}")
        override = self.kernels.get((op.name, backend.name))
        if override is not None:
            return backend.guarded(override, op.name)
        try:
            bound: Callable[..., Any] = backend.bind(op.kernel)
        except AttributeError:
            raise UnknownOp(
                f"op {op.name!r} has no kernel for backend {backend.name!r}: its array namespace "
                f"has no {op.kernel!r}, and no plugin provides one (hook gradtape_kernels)"
            ) from None
        return backend.guarded(bound, op.name)

    def executor(self, name: str) -> Callable[..., Any]:
        """Return the executor called ``name``.

        Parameters
        ----------
        name
            The executor's name.

        Returns
        -------
        callable
            ``executor(graph)`` returns ``run(arrays) -> arrays``.

        Raises
        ------
        UnknownOp
            If no plugin provides it.
        """
        try:
            return self.executors[name]
        except KeyError:
            raise UnknownOp(
                f"no plugin provides the executor {name!r}"
                f"{near_names(str(name), self.executors)}; there are: "
                f"{', '.join(self.executors) or 'none'}{self._failed()}"
            ) from None

    def engine(self, name: str) -> Engine:
        """Return the engine of collectives called ``name``.

        Parameters
        ----------
        name
            The engine's name.

        Returns
        -------
        Engine
            The engine, whether its library is installed or not.

        Raises
        ------
        UnknownOp
            If no plugin provides it.
        """
        try:
            return self.collectives[name]
        except KeyError:
            raise UnknownOp(
                f"no plugin provides the engine {name!r}"
                f"{near_names(str(name), self.collectives)}; there are: "
                f"{', '.join(self.collectives) or 'none'}{self._failed()}"
            ) from None

    def owner(self, kind: str, name: Any) -> PluginInfo | None:
        """Return the plugin that provides the op, rule, kernel, backend, … called ``name``.

        Parameters
        ----------
        kind
            ``"op"``, ``"rule"``, ``"kernel"``, ``"backend"``, ``"module"``, ``"executor"`` or
            ``"collective"``.
        name
            Its name; ``(op name, backend name)`` for a kernel.

        Returns
        -------
        PluginInfo or None
            The plugin; ``None`` if there is none.
        """
        if kind == "module":
            self.modules  # noqa: B018
        if kind == "op":
            self.find(name)
        return self.owners.get((kind, name))

    def _failed(self) -> str:
        failed = [str(info) for info in self.infos if info.problem]
        for info in self.infos:
            if info.name == info.distribution:  # nothing else was found
                return f": {info.problem}"
        return f" (not in use: {', '.join(failed)}; see 'gradtape plugins')" if failed else ""

    # -- merging ---------------------------------------------------------------------------------

    def add_late(self, info: PluginInfo, load: Callable[[], Any]) -> None:
        """Note a plugin that provides only classes, to import it when classes are needed."""
        self._late.append((info, load))

    def add(self, info: PluginInfo, provided: Mapping[str, Any]) -> None:
        """Merge everything that one plugin provides, by hook, or nothing if there is an error."""
        new = [
            (kind, name, item)
            for kind in KINDS
            if kind.hook in provided
            for name, item in kind.items(info, provided[kind.hook])
        ]
        for kind, name, _ in new:
            if kind.name in ("rule", "kernel"):  # they may be for late ops
                self.find(name if type(name) is str else name[0])
        ops = {**self.ops, **{name: op for kind, name, op in new if kind.name == "op"}}
        seen = set()
        for kind, name, item in new:
            kind.check(self, info, name, item, ops)
            if (kind.name, name) in seen:
                raise PluginError(f"{info} provides the {kind.name} {name!r} twice")
            seen.add((kind.name, name))
        for kind, name, item in new:
            self.owners[kind.name, name] = info
            kind.install(self, info, name, item)

    def give_rules(self, info: PluginInfo, op: Op, rules: Any) -> None:
        """Set a plugin's rules for an op, unless ``register_gradient`` has set some."""
        if type(op.rules_provider) is not str:
            self._own_rules.setdefault(op, (op.rules, op.vjp, op.rules_provider))
            op.replace_rules(rules)
            if not info.ours:
                check_rules(op)
            op.rules_provider = info
            self._given_rules[op] = (op.rules, op.vjp)
        info.rules.append(op.name)

    def give_back(self) -> None:
        """Undo the changes of plugins to what others provide, before a new registry is built."""
        for place, name in self.hints:
            hints.remove(place, name)
        for op in self.ops.values():
            op.forget_kernels()
        for op, own in self._own_rules.items():
            if self._has_given_rules(op):
                op.rules, op.vjp, op.rules_provider = own

    def _has_given_rules(self, op: Op) -> bool:
        rules, vjp = self._given_rules.get(op, (op, op))
        return op.rules is rules and op.vjp is vjp

    def rules_from_elsewhere(self, op: Op) -> str:
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
        if not self._has_given_rules(op):
            return "an assignment to the op"
        same = who is owner or (who.distribution and who.distribution == owner.distribution)
        return "" if same else str(who)


def _called(info: PluginInfo, what: str, load: Callable[[], Any]) -> Any:
    """Return what a plugin's function returns; name the plugin in its errors."""
    try:
        return load()
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # a plugin that exits must not end the program
        raise PluginError(
            f"{info}: its {what} cannot be loaded: {type(error).__name__}: {error}"
        ) from error

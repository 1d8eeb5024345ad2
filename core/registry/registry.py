"""The registry: everything that the plugins provide, and which plugin provided it."""

from __future__ import annotations

import re
from collections import ChainMap
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from ... import hints
from ...public import IMPORTING
from ..base.dtypes import as_dtype
from ..base.generations import MADE
from ..base.table import PACKAGE
from ..base.unknown import warn_user
from ..errors import PluginError, UnknownName, UnknownOp
from ..ops.backend import Backend
from ..ops.checks import check_rules
from ..ops.collectives import Engine
from ..ops.host_kernels import host_kernel
from ..ops.primitive import Primitive
from .hooks import near_names
from .hookspecs import PROJECT
from .info import Candidate, Contest, PluginInfo, Rank
from .kinds import KINDS, NAMED, Clash, Kind, is_reserved
from .replacements import Replacements, called
from .settings import ORDER

if TYPE_CHECKING:
    from ..tensors.op import Op

__all__ = ["Registry"]

#: The kinds of what belongs to an op.
_OF_OPS = ("op", "kernel", "rule", "lowering")
_BY_NAME = {kind.name: kind for kind in KINDS}


class _Table:
    """A table of the registry, filled with what plugins provide late when it is first read."""

    def __init__(self, kind: Kind) -> None:
        self.kind = kind

    def __get__(self, registry: Any, owner: type | None = None) -> Any:
        if registry is None:
            return self
        if self.kind.waits:
            registry.load(self.kind.hook)
        return registry.tables[self.kind.hook]


#: Whether a text can be the name of a distribution.
_DISTRIBUTION = re.compile("[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?").fullmatch


class Registry:
    """Everything that plugins provide; :func:`gradtape.registry` returns it.

    Classes, and objects that a text may name, are imported when ``modules`` or ``names`` is first
    read, if the plugin that provides them says so.

    Parameters
    ----------
    order
        The names of plugins, those that win first, as the user wants it.

    Attributes
    ----------
    ops, backends, executors, collectives
        By name. Ops that a plugin provides late are in ``ops`` once one of them was looked up.
    kernels, lowerings
        ``(op name, backend name)`` -> a kernel that replaces the op's portable one; and
        ``(op name, target)`` -> how an executor or exporter expresses the op.
    modules, names
        The classes that files may name; and ``(kind, name)`` -> an object that a text may name.
    """

    ops: dict[str, Op]
    backends: dict[str, Backend]
    kernels: dict[tuple[str, str], Callable[..., Any]]
    executors: dict[str, Callable[..., Any]]
    collectives: dict[str, Engine]
    formats: dict[str, Any]
    late_ops: dict[str, Callable[[], Any]]
    functions: dict[tuple[str, str], Callable[[], Any]]
    hints: dict[tuple[str, str], str]
    modules: dict[str, type]
    names: dict[tuple[str, str], Any]
    namespaces: dict[str, Any]
    lowerings: dict[tuple[str, str], Callable[..., Any]]
    commands: dict[str, Callable[..., None]]
    exporters: dict[str, Callable[..., Any]]
    storages: dict[str, Any]
    datasets: dict[str, Callable[..., Any]]
    diagnoses: dict[str, Callable[[], Any]]
    launchers: dict[str, Any]
    converters: dict[Any, Callable[..., Any]]
    samples: dict[str, Sequence[Any]]

    def __init__(self, order: Sequence[str] = ()) -> None:
        self.order = list(order)
        #: The winners' items, by hook and name.
        self.tables: dict[str, dict[Any, Any]] = {kind.hook: {} for kind in KINDS}
        #: The winners, by kind and name; and messages for what has none.
        self.owners: dict[tuple[str, Any], PluginInfo] = {}
        self.clashes: dict[tuple[str, Any], str] = {}
        #: By kind and the object's id, the first text that names it; empty when names are added.
        self.texts: dict[tuple[str, int], str] = {}
        self.replacements = Replacements(self)
        self.infos: list[PluginInfo] = []
        #: Notes on what was found and is no plugin.
        self.notes: list[str] = []
        self._candidates: dict[tuple[str, Any], list[Candidate]] = {}
        self._known_ops: dict[str, Op] = {}  # from any plugin, in use or not
        # hooks that are called when their results are first needed, by hook
        self._waiting: dict[str, list[tuple[PluginInfo, Callable[[], Any]]]] = {}
        self._loaded: set[str] = set()  # the prefixes of late ops
        # changes of plugins to the ops of others: the original rules, and the new ones
        self._own_rules: dict[Op, tuple[Any, Any, Any]] = {}
        self._given_rules: dict[Op, tuple[Any, Any, Any]] = {}
        #: What ops meant when traces last used them, in registries before this one.
        self.before: dict[str, tuple[Any, ...]] = {}
        self._compared = False

    def compare(self) -> None:
        """Have functions traced again if ops, rules or kernels that they may use have changed.

        It is called for each trace, so that all traces so far were made with what ``before`` says.
        """
        if self._compared:
            return
        with IMPORTING:
            for name in self.before:
                with suppress(PluginError):
                    self.find(name)  # a late op, which was in use
            now = self._meanings()
            if any(now.get(name, meant) != meant for name, meant in self.before.items()):
                MADE.meaning_changed()
            self._compared = True

    def meanings(self) -> dict[str, tuple[Any, ...]]:
        """Return what each op meant when traces last used it; equal if nothing changed."""
        now = self._meanings()
        return {**self.before, **now} if self._compared else {**now, **self.before}

    def _meanings(self) -> dict[str, tuple[Any, ...]]:
        kernels: dict[str, dict[str, Any]] = {}
        for (name, backend), kernel in self.kernels.items():
            kernels.setdefault(name, {})[backend] = kernel
        nothing = (None, None, None)
        return {
            name: (op, self._given_rules.get(op, nothing)[2], kernels.get(name))
            for name, op in self.ops.items()
        }

    def load(self, hook: str, enough: Callable[[], bool] = bool) -> None:
        """Call a hook of the plugins that wait until what it provides is needed.

        Parameters
        ----------
        hook
            The hook's name, without ``gradtape_``.
        enough
            Plugins are called one after another, gradtape's own first, until this returns true.
        """
        waiting = self._waiting.get(hook)
        if not waiting or enough():
            return
        with IMPORTING:  # not half of them, while another thread imports them
            while waiting and not enough():
                info, load = waiting[0]
                provided = load()
                del waiting[0]  # only now, so that an interrupted import is repeated
                info.waiting.discard(hook)
                if provided is None:
                    continue
                try:
                    self.add(info, {hook: provided})
                except PluginError as error:  # one plugin's mistake must not hide what others have
                    info.problem = str(error)
                    warn_user(f"not in use: {info.problem}", RuntimeWarning)

    @cached_property
    def packages(self) -> frozenset[str]:
        """The packages whose distributions declare plugins: their code is a library's."""
        return frozenset({PACKAGE, *(info.package for info in self.infos if info.package)})

    @property
    def plugins(self) -> list[PluginInfo]:
        """All plugins in the order of discovery, including those with a problem."""
        for hook in list(self._waiting):
            self.load(hook)  # fills in what each provides
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
        self.refuse_clash("op", name)
        raise UnknownOp(f"no plugin provides the op {name!r}{self._instead(name)}{self._failed()}")

    def _instead(self, name: str) -> str:
        """Return the names near that of an unknown op, or what to install to have it."""
        prefix, separator, bare = name.partition("::")
        if not separator:
            return near_names(name, self.ops)
        if prefix.lower() == PROJECT:
            near = near_names(bare, self.ops)
            return f"; ops of {PROJECT} have no prefix{f': {bare!r}' if bare in self.ops else near}"
        known = {op.partition("::")[0] for op in self.ops if "::" in op} | self.late_ops.keys()
        known |= {info.distribution for info in self.infos if info.distribution}
        near = near_names(name, self.ops, cutoff=0.75)
        if prefix in known:  # it is installed, and has no such op
            return near or near_names(name, [op for op in self.ops if op.startswith(f"{prefix}::")])
        near = near or near_names(prefix, known, cutoff=0.75)
        return near or (
            f"; install the package {prefix!r} that defines it" if _DISTRIBUTION(prefix) else ""
        )

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
        with IMPORTING:
            if prefix in self._loaded:
                return
            self._loaded.add(prefix)  # now, since loading may look up ops
            info = self.owners["late_op", prefix]
            try:
                ops = list(called(info, f"ops {prefix}::...", self.late_ops[prefix]))
                for op in ops:
                    if not str(getattr(op, "name", op)).startswith(f"{prefix}::"):
                        raise PluginError(f"{info}: {op!r} is not an op called '{prefix}::...'")
                self.add(info, {"ops": (ops, Rank.USUAL)})
            except BaseException:
                self._loaded.discard(prefix)
                raise

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
        self.refuse_clash("backend", name)
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
            self.refuse_clash("op", op.name)
            raise UnknownOp(f"op {op.name!r} belongs to no registered plugin{self._failed()}")
        self.refuse_clash("kernel", (op.name, backend.name))
        override = self.kernels.get((op.name, backend.name))
        if override is not None:
            return backend.guarded(override, op.name)
        if op.host and backend.xp is not np:
            return backend.guarded(host_kernel(op, backend), op.name)
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
        self.refuse_clash("executor", name)
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
        self.refuse_clash("collective", name)
        try:
            return self.collectives[name]
        except KeyError:
            raise UnknownOp(
                f"no plugin provides the engine {name!r}"
                f"{near_names(str(name), self.collectives)}; there are: "
                f"{', '.join(self.collectives) or 'none'}{self._failed()}"
            ) from None

    def provided(self, kind: str, name: str) -> Any:
        """Return what a plugin provides under a name: an exporter, a dataset, ...

        Parameters
        ----------
        kind
            ``"exporter"``, ``"dataset"``, ``"command"``, ...
        name
            Its name; third parties' names may be qualified, as in ``"acme::digits"``.

        Returns
        -------
        object
            What the plugin that takes precedence provides.

        Raises
        ------
        UnknownName
            If no plugin provides it; the message lists near names.
        PluginError
            If several plugins provide it, and none takes precedence.
        """
        table = getattr(self, _BY_NAME[kind].hook)
        if name in table:
            return table[name]
        self.refuse_clash(kind, name)
        raise UnknownName(
            f"no plugin provides the {kind} {name!r}{near_names(str(name), table)}; there are: "
            f"{', '.join(sorted(table)) or 'none'}{self._failed()}"
        )

    def named(self, kind: str, name: str) -> Any:
        """Return the object that a text names.

        Parameters
        ----------
        kind
            ``"activation"``, ``"optimizer"``, ``"loss"``, ``"metric"``, ``"initializer"``,
            ``"regularizer"``, ``"constraint"``, ``"schedule"`` or ``"callback"``.
        name
            Its name; third parties' names are qualified, as in ``"acme::act"``.

        Returns
        -------
        object
            What a plugin provides under this name: an object, a function or a class.

        Raises
        ------
        UnknownName
            If no plugin provides it; the message lists near names.
        PluginError
            If several plugins provide it, and none takes precedence.
        """
        found = self.find_named(kind, name)
        if found is not None:
            return found
        known = self.names_of(kind)
        raise UnknownName(
            f"unknown {kind} {name!r}{near_names(str(name), known)}; known: "
            f"{', '.join(sorted(known))}{self.lacking(name)}"
        )

    def find_named(self, kind: str, name: str) -> Any:
        """Return the object that a text names, or ``None``; see :meth:`named`.

        Parameters
        ----------
        kind, name
            As for :meth:`named`.

        Returns
        -------
        object or None
            ``None`` if no plugin provides it.
        """
        if kind not in NAMED:
            raise ValueError(f"no objects of the kind {kind!r} are named; kinds: {NAMED}")
        key, table = (kind, name), self.tables["names"]
        if type(name) is str and is_reserved(name):
            # nobody else may provide it, so the plugins that are imported for it are the fewest
            self.load("names", lambda: key in table)
        else:
            self.load("names")
        found = table.get(key)
        if found is None:
            self.refuse_clash("name", key)
        return found

    def names_of(self, kind: str) -> list[str]:
        """Return the names of all objects of a kind, those of gradtape first.

        Parameters
        ----------
        kind
            As for :meth:`named`.

        Returns
        -------
        list of str
            An object with several names is there under each.
        """
        return [name for of, name in self.names if of == kind]

    def has_name(self, name: str) -> bool:
        """Return whether a plugin provides an object of any kind under a name.

        Parameters
        ----------
        name
            The name.
        """
        return any((kind, name) in self.names for kind in NAMED)

    def name_of(self, kind: str, item: Any) -> str | None:
        """Return the text that names an object, for files.

        Parameters
        ----------
        kind
            As for :meth:`named`.
        item
            What a plugin provides: an object, a function or a class.

        Returns
        -------
        str or None
            Its first name; ``None`` if no plugin provides the object under a name.
        """

        def found() -> str | None:
            texts = self.texts
            if not texts:
                texts = {}
                for (of, name), x in list(self.tables["names"].items()):
                    texts.setdefault((of, id(x)), name)
                self.texts = texts
            return texts.get((kind, id(item)))

        self.load("names", lambda: found() is not None)
        return found()

    def lacking(self, name: Any) -> str:
        """Return the end of a message for a name that no plugin provides: what to install.

        Parameters
        ----------
        name
            The name of an op, a class or an object.

        Returns
        -------
        str
            It starts with a separator; empty for a bare name, if all plugins are in use.
        """
        text = name if type(name) is str else ""
        head = text.partition("::" if "::" in text else ".")[0]
        install = ""
        if head.replace("-", "_").isidentifier() and not is_reserved(text):
            install = f"; install the package {head!r} that provides it"
        return install + self._failed()

    def lowering(
        self, op: str, target: str, backend: str | None = None
    ) -> Callable[..., Any] | None:
        """Return how an executor or exporter expresses an op.

        Parameters
        ----------
        op
            The op's name.
        target
            ``"planned"``, ``"llvm"``, ``"cupy"``, ``"cuda"``, ``"onnx"``, ``"stablehlo"``, or a
            third party's.
        backend
            The backend whose kernels it stands for. If a plugin of another distribution than the
            op's replaced the op's kernel there, only what that distribution provides counts, since
            other lowerings compute what the old kernel did.

        Returns
        -------
        callable or None
            The function of the plugin that takes precedence; ``None`` if there is none.

        Raises
        ------
        PluginError
            If several plugins provide it, and none takes precedence.
        """
        found = self.lowerings.get((op, target))
        if found is None:
            if self.clashes:
                self.refuse_clash("lowering", (op, target))
            return None
        by = None if backend is None else self.replaced(op, backend)
        if by is None:
            return found
        own = (x.item for x in self.candidates("lowering", (op, target)) if _together(x.info, by))
        return next(own, None)

    def replaced(self, op: str, backend: str) -> PluginInfo | None:
        """Return the plugin of another distribution that replaced an op's kernel for a backend.

        Parameters
        ----------
        op, backend
            Their names.

        Returns
        -------
        PluginInfo or None
            ``None`` if the kernel is the op's own, or comes with the op or with the backend.
        """
        info = self.owners.get(("kernel", (op, backend)))
        if info is None:
            return None
        made = (self.owner("op", op), self.owners.get(("backend", backend)))
        return None if any(x is not None and _together(info, x) for x in made) else info

    def owner(self, kind: str, name: Any) -> PluginInfo | None:
        """Return the plugin that provides the op, rule, kernel, backend, ... called ``name``.

        Parameters
        ----------
        kind
            ``"op"``, ``"rule"``, ``"kernel"``, ``"backend"``, ``"module"``, ``"executor"``,
            ``"collective"``, ``"name"``, ``"lowering"``, ...
        name
            Its name; ``(op name, backend name)`` for a kernel.

        Returns
        -------
        PluginInfo or None
            The plugin; ``None`` if there is none.
        """
        self._load_for(kind, name)
        return self.owners.get((kind, name))

    def candidates(self, kind: str, name: Any) -> list[Candidate]:
        """Return all providers of one thing, the one that takes precedence first.

        Parameters
        ----------
        kind, name
            As for :meth:`owner`.

        Returns
        -------
        list of Candidate
            Each has ``info``, ``item`` and ``rank``.
        """
        self._load_for(kind, name)
        found = sorted(self._candidates.get((kind, name), ()), key=self._place)
        if kind == "rule":  # what the op brings itself
            ops = [x for x in self.candidates("op", name) if x.item.differentiable]
            found += [Candidate(x.info, x.item, Rank.OWN) for x in ops]
        elif kind == "kernel":
            ops = self.candidates("op", name[0])
            found += [Candidate(x.info, x.item.kernel, Rank.OWN) for x in ops]
        return found

    def contested(self, ops: Collection[str] | None = None) -> list[Contest]:
        """Return what plugins of several distributions provide.

        Parameters
        ----------
        ops
            Only what they provide for ops of these names; by default, everything.

        Returns
        -------
        list of Contest
            Each has ``kind``, ``name``, ``winner`` (``None`` if none takes precedence) and
            ``others``; ``str`` makes a sentence of it.
        """
        found = []
        for kind, name in self._candidates:
            if ops is not None and (
                kind not in _OF_OPS or (name[0] if type(name) is tuple else name) not in ops
            ):
                continue
            several = self.candidates(kind, name)
            if len({x.info.distribution or x.info.name for x in several}) > 1:
                clash = (kind, name) in self.clashes
                winner = None if clash else several[0].info
                others = several if clash else several[1:]
                found.append(Contest(kind, name, winner, [x.info for x in others]))
        return found

    def _load_for(self, kind: str, name: Any) -> None:
        if kind == "op":
            self.find(name)
        elif kind in _BY_NAME and _BY_NAME[kind].waits:
            self.load(_BY_NAME[kind].hook)

    def _place(self, candidate: Candidate) -> tuple[int, int]:
        return candidate.place(self.order)

    def refuse_clash(self, kind: str, name: Any) -> None:
        """Raise if several plugins provide one thing, and none takes precedence.

        Parameters
        ----------
        kind, name
            As for :meth:`owner`.

        Raises
        ------
        PluginError
            The message names the plugins and the ways to set an order.
        """
        message = self.clashes.get((kind, name))
        if message is not None:
            raise PluginError(message)

    def _failed(self) -> str:
        failed = [str(info) for info in self.infos if info.problem]
        for info in self.infos:
            if info.name == info.distribution:  # nothing else was found
                return f": {info.problem}"
        return f" (not in use: {', '.join(failed)}; see 'gradtape plugins')" if failed else ""

    # -- merging ---------------------------------------------------------------------------------

    def wait(self, info: PluginInfo, hook: str, load: Callable[[], Any]) -> None:
        """Note a plugin's hook, to call it when what it provides is first needed.

        Parameters
        ----------
        info, hook
            The plugin, and the hook's name without ``gradtape_``.
        load
            Imports the plugin, and returns the hook's result and rank, or ``None``.
        """
        self._waiting.setdefault(hook, []).append((info, load))
        info.waiting.add(hook)

    def add(self, info: PluginInfo, provided: Mapping[str, tuple[Any, int]]) -> None:
        """Merge everything that one plugin provides, or nothing if there is an error.

        Parameters
        ----------
        info
            The plugin.
        provided
            By hook, what it returned and its rank among the hooks of other plugins.

        Raises
        ------
        PluginError
            If something is not what the hook asks for.
        """
        new = [
            (kind, name, item, provided[kind.hook][1])
            for kind in KINDS
            if kind.hook in provided
            for name, item in kind.items(info, provided[kind.hook][0])
        ]
        for kind, name, _, _ in new:
            if kind.name in ("rule", "kernel", "lowering"):  # they may be for late ops
                self.find(name if type(name) is str else name[0])
        own = {name: op for kind, name, op, _ in new if kind.name == "op"}
        ops = ChainMap(own, self._known_ops)
        seen = set()
        clashing = {}
        for kind, name, item, _ in new:
            try:
                kind.check(self, info, name, item, ops)
            except Clash as error:
                clashing[kind.name, name] = str(error)
            if (kind.name, name) in seen:
                raise PluginError(f"{info} provides the {kind.name} {name!r} twice")
            seen.add((kind.name, name))
        info.clashes += clashing.values()
        self.clashes.update(clashing)
        for name, op in own.items():
            self._known_ops.setdefault(name, op)
        for kind, name, item, rank in new:
            kind.note(info, name, item)
            if (kind.name, name) not in clashing:
                found = self._candidates.setdefault((kind.name, name), [])
                found.append(Candidate(info, item, rank))
                self._choose(kind, name, found)

    def in_order_of_plugins(self) -> None:
        """Sort backends as their plugins were found: the first host backend is the default."""
        table = self.tables["backends"]
        places = {id(info): i for i, info in enumerate(self.infos)}
        ordered = sorted(table, key=lambda name: places[id(self.owners["backend", name])])
        self.tables["backends"] = {name: table[name] for name in ordered}

    def _choose(self, kind: Kind, name: Any, found: list[Candidate]) -> None:
        """Put the winner among providers in use; if there is none, nothing is."""
        key = kind.name, name
        best = min(map(self._place, found))
        first = [x for x in found if self._place(x) == best]
        if len(first) == 1:
            self.clashes.pop(key, None)
            self.owners[key] = first[0].info
            kind.install(self, first[0].info, name, first[0].item)
            return
        message = _clash(kind, name, [x.info for x in first])
        for candidate in first:
            told = [text for text in candidate.info.clashes if text != self.clashes.get(key)]
            candidate.info.clashes = [*told, message]
        self.clashes[key] = message
        self.owners.pop(key, None)
        kind.remove(self, name, message)

    def give_rules(self, info: PluginInfo | None, op: Op, rules: Any) -> None:
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
        self._own_rules.setdefault(op, (op.rules, op.vjp, op.rules_provider))
        if info is None:
            op.vjp, op.rules = rules, None
        else:
            op.replace_rules(rules)
            check_rules(op)
        op.rules_provider = info
        self._given_rules[op] = (op.rules, op.vjp, rules)

    def give_back(self) -> None:
        """Undo the changes of plugins to what others provide, before a new registry is built."""
        for place, name in self.hints:
            hints.remove(place, name)
        for op, own in self._own_rules.items():
            if self._has_given_rules(op):
                op.rules, op.vjp, op.rules_provider = own

    def _has_given_rules(self, op: Op) -> bool:
        rules, vjp, _ = self._given_rules.get(op, (op, op, op))
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


def _together(a: PluginInfo, b: PluginInfo) -> bool:
    """Return whether two plugins are one, or of one distribution."""
    return a is b or bool(a.distribution and a.distribution == b.distribution)


def _clash(kind: Kind, name: Any, infos: Iterable[PluginInfo]) -> str:
    """Return the message for what several plugins provide."""
    *others, last = infos
    return (
        f"{', '.join(map(str, others))} and {last} both provide the {kind.name} {name!r}, and "
        f"neither takes precedence: name the one that wins first in the environment variable "
        f"{ORDER}={last.name}, or in gradtape.order_plugins([{last.name!r}]); or disable one with "
        f"GRADTAPE_DISABLE_PLUGINS={last.name} (or {others[-1].name}), or with "
        f"gradtape.disable_plugin({last.name!r})"
    )


for _kind in KINDS:
    setattr(Registry, _kind.hook, _Table(_kind))

"""What plugins provide, merged: the tables of the registry, and who wins of several providers."""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import cached_property
from importlib import import_module
from typing import Any, NamedTuple

from ... import hints
from ...public import IMPORTING
from ..base.table import PACKAGE
from ..errors import PluginError
from ..ops.primitive import Primitive
from .changes import GivenRules, Meanings, called
from .info import DISABLE, ORDER, Candidate, Contest, PluginInfo, Rank
from .kinds import BY_NAME, KINDS, Clash, Kind, Tables
from .loading import cause, warn_of_plugin


class Family(NamedTuple):
    """Ops that a plugin declares by their names, and makes when one of them is first needed."""

    info: PluginInfo
    names: tuple[str, ...]
    load: Callable[[], Any]
    rank: int


class Merged(Tables):
    """The tables of what plugins provide, and all candidates for each item.

    Parameters
    ----------
    order
        The names of plugins, those that win first, as the user wants it.
    """

    def __init__(self, order: Sequence[str] = ()) -> None:
        self.order = list(order)
        #: The winners' items, by hook and name.
        self.tables: dict[str, dict[Any, Any]] = {kind.hook: {} for kind in KINDS}
        #: The winners, by kind and name; and messages for what has none.
        self.owners: dict[tuple[str, Any], PluginInfo] = {}
        self.clashes: dict[tuple[str, Any], str] = {}
        #: By kind and the object's id, the first text that names it; empty when names are added.
        self.texts: dict[tuple[str, int], str] = {}
        self.infos: list[PluginInfo] = []
        #: Notes on what was found and is no plugin.
        self.notes: list[str] = []
        self._candidates: dict[tuple[str, Any], list[Candidate]] = {}
        self._known_ops: dict[str, Primitive] = {}  # from any plugin, in use or not
        # hooks that are called when their results are first needed, by hook
        self._waiting: dict[str, list[tuple[PluginInfo, Callable[[], Any]]]] = {}
        self._importing: list[tuple[PluginInfo, Callable[[], Any]]] = []
        self._loaded: set[str] = set()  # the prefixes of late ops
        #: By the names of ops that are declared and not made yet, the families that have them.
        self.declared: dict[str, list[Family]] = {}
        self._declared_order: dict[str, None] = {}
        self._making: list[Family] = []
        #: What plugins changed in the ops of others.
        self.rules = GivenRules()
        #: What ops meant when traces used them.
        self.meanings = Meanings(self)

    def load(self, hook: str, enough: Callable[[], bool] = bool, first: str = "") -> None:
        """Call a hook of the plugins that wait until what it provides is needed.

        Parameters
        ----------
        hook
            The hook's name, without ``gradtape_``.
        enough
            Plugins are called one after another, gradtape's own first, until this returns true.
        first
            The name of the plugins that are called first; those of third parties follow.
        """
        waiting = self._waiting.get(hook)
        if not waiting or enough():
            return
        with IMPORTING:  # not half of them, while another thread imports them
            if first:
                waiting.sort(key=lambda x: (x[0].name != first, x[0].may_use_reserved_names))
            while waiting and not enough():
                # not one whose import is what asks
                entry = next((each for each in waiting if each not in self._importing), None)
                if entry is None:
                    return
                info, load = entry
                self._importing.append(entry)
                try:
                    provided = load()
                finally:
                    self._importing.remove(entry)
                waiting.remove(entry)  # only now, so that an interrupted import is repeated
                info.waiting.discard(hook)
                if provided is None:
                    continue
                try:
                    self.add(info, {hook: provided})
                except KeyboardInterrupt:
                    raise
                except BaseException as error:  # its mistake must not hide what others have
                    self.disuse(info, error)

    def disuse(self, info: PluginInfo, error: BaseException) -> None:
        """Note, and warn, that something of a plugin cannot be used.

        Parameters
        ----------
        info, error
            The plugin, and what it raised.
        """
        info.problem = cause(info, error)
        warn_of_plugin(info)

    @cached_property
    def packages(self) -> frozenset[str]:
        """The packages whose distributions declare plugins: their code is a library's."""
        return frozenset({PACKAGE, *(info.package for info in self.infos if info.package)})

    @property
    def plugins(self) -> list[PluginInfo]:
        """All plugins in the order of discovery, including those with a problem."""
        for hook in list(self._waiting):
            self.load(hook)  # fills in what each provides
        self.make_all_ops()
        return self.infos

    def find(self, name: str) -> Primitive | None:
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
        for family in list(self.declared.get(name, ())):
            self._make(family)
        table = self.tables["ops"]
        found: Primitive | None = table.get(name)
        prefix = name.partition("::")[0]
        if found is None and prefix in self.late_ops:
            self._load_ops(prefix)
            found = table.get(name)
        return found

    def declare(self, info: PluginInfo, names: tuple[str, ...], load: Callable[[], Any]) -> None:
        """Note ops that a plugin makes when one of them is first needed.

        Parameters
        ----------
        info, names
            The plugin, and the names of all ops that ``load`` returns.
        load
            Makes the ops.
        """
        (candidate,) = self._candidates["late_op", (names, info)]
        family = Family(info, names, load, candidate.rank)
        for name in names:
            self.declared.setdefault(name, []).append(family)
            self._declared_order[name] = None

    def make_all_ops(self) -> None:
        """Make the ops that are declared and not made yet, for those who list all ops."""
        if not self.declared or self._making:
            return
        with IMPORTING:
            families = {id(x): x for held in self.declared.values() for x in held}
            for family in families.values():
                try:
                    self._make(family)
                except KeyboardInterrupt:
                    raise
                except Exception as error:  # its mistake must not hide what others have
                    self._forget(family)
                    self.disuse(family.info, error)
            # the order must not depend on which were needed first
            table, late = self.tables["ops"], self._declared_order
            at_once = {name: op for name, op in table.items() if name not in late}
            made = {name: table[name] for name in late if name in table}
            self.tables["ops"] = {**at_once, **made}

    def _make(self, family: Family) -> None:
        """Make and add the ops of a family, once."""
        with IMPORTING:
            held = self.declared.get(family.names[0], ())
            if family in self._making or not any(x is family for x in held):
                return
            self._making.append(family)
            try:
                ops = list(called(family.info, f"op {family.names[0]!r}", family.load))
                self._check_made(family, {getattr(op, "name", None) for op in ops})
                self.add(family.info, {"ops": (ops, family.rank)})
            finally:
                self._making.remove(family)
            self._forget(family)

    def _check_made(self, family: Family, made: set[Any]) -> None:
        """Raise unless a family's ops have the names that were declared."""
        declared = set(family.names)
        if made != declared:
            lacking = sorted(declared - made)
            told = (
                f"declares the ops {', '.join(map(repr, lacking))}, which their function does not "
                "return"
                if lacking
                else f"does not declare the ops {', '.join(sorted(map(repr, made - declared)))}, "
                "which a function in it returns"
            )
            raise PluginError(f"{family.info}: gradtape_late_ops {told}")

    def _forget(self, family: Family) -> None:
        for name in family.names:
            held = [x for x in self.declared.pop(name, ()) if x is not family]
            if held:
                self.declared[name] = held

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
        return [self._with_object(kind, name, x) for x in self._providers(kind, name)]

    def _with_object(self, kind: str, name: Any, candidate: Candidate) -> Candidate:
        """Return a candidate with the object that a text names by its place."""
        of, item = BY_NAME[kind].at_places, candidate.item
        # an op's own kernel may be the name of a function of the array namespace
        if of is None or type(item) is not str or ":" not in item:
            return candidate
        return candidate._replace(item=self.imported(kind, name, item, of))

    def imported(self, kind: str, name: Any, place: str, of: Any = Callable) -> Any:
        """Return the object at a place that a plugin named; errors name the plugin.

        Parameters
        ----------
        kind, name
            The kind and the name of what the plugin provides.
        place
            ``"module:attribute"``.
        of
            The class of which the object must be.

        Returns
        -------
        object
            The object.

        Raises
        ------
        PluginError
            If it cannot be imported, or is something else.
        """
        module, _, attribute = place.partition(":")
        told = f"{self.owners[kind, name]}: the {kind} {name!r} is {place!r}, which"
        try:
            with IMPORTING:  # not half of it, while another thread imports it
                found = getattr(import_module(module), attribute)
        except (ImportError, AttributeError) as error:
            raise PluginError(
                f"{told} cannot be imported: {type(error).__name__}: {error}"
            ) from error
        if not isinstance(found, of):
            wanted = "a class" if of is type else "a function"
            raise PluginError(f"{told} is a {type(found).__name__}, not {wanted}")
        return found

    def _providers(self, kind: str, name: Any) -> list[Candidate]:
        self._load_for(kind, name)
        found = sorted(self._candidates.get((kind, name), ()), key=self._place)
        if kind == "rule":  # what the op brings itself
            ops = [x for x in self._providers("op", name) if x.item.differentiable]
            found += [Candidate(x.info, x.item, Rank.OWN) for x in ops]
        elif kind == "kernel":
            ops = self._providers("op", name[0])
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
        if ops is None:
            self.make_all_ops()
        found = []
        for kind, name in list(self._candidates):
            if ops is not None and BY_NAME[kind].op_of(name) not in ops:
                continue
            several = self._providers(kind, name)
            if len({x.info.distribution or x.info.name for x in several}) > 1:
                clash = (kind, name) in self.clashes
                winner = None if clash else several[0].info
                others = several if clash else several[1:]
                found.append(Contest(kind, name, winner, [x.info for x in others]))
        return found

    def _load_for(self, kind: str, name: Any) -> None:
        if kind == "op":
            self.find(name)
        elif kind in BY_NAME and BY_NAME[kind].waits:
            self.load(BY_NAME[kind].hook)

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
        failed = [info for info in self.infos if info.problem]
        why = [info.problem for info in failed if info.problem != "disabled"]
        if not self.tables["ops"] and why:  # nothing else was found
            return f": {why[0]}"
        return (
            f" (not in use: {', '.join(map(str, failed))}; see 'gradtape plugins')"
            if failed
            else ""
        )

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
            if kind.for_ops and kind.name != "op":  # they may be for late ops
                op = kind.op_of(name)
                if kind.needs_op or op not in self.declared:
                    self.find(op)
        own = {name: op for kind, name, op, _ in new if kind.name == "op"}
        ops: ChainMap[str, Any] = ChainMap(own, self._known_ops, self.declared)
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

    def give_back(self) -> None:
        """Undo what plugins changed elsewhere, before a new registry is built."""
        for place, name in self.hints:
            hints.remove(place, name)
        self.rules.give_back()

    def in_order_of_plugins(self) -> None:
        """Sort backends as their plugins were found: the first host backend is the default."""
        table = self.tables["backends"]
        places = {id(info): i for i, info in enumerate(self.infos)}
        ordered = sorted(table, key=lambda name: places[id(self.owners["backend", name])])
        self.tables["backends"] = {name: table[name] for name in ordered}

    def displace(self, kind: Kind[Any, Any], name: str, message: str) -> None:
        """Take an item out of use, because of another one that was found before it.

        Parameters
        ----------
        kind, name
            The item's kind and name.
        message
            The error for those who ask for it.
        """
        key = kind.name, name
        for candidate in self._candidates.pop(key, ()):
            candidate.info.clashes.append(message)
        self.clashes[key] = message
        self.owners.pop(key, None)
        kind.remove(self, name, message)

    def _choose(self, kind: Kind[Any, Any], name: Any, found: list[Candidate]) -> None:
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


def _clash(kind: Kind[Any, Any], name: Any, infos: Iterable[PluginInfo]) -> str:
    """Return the message for what several plugins provide."""
    *others, last = infos
    return (
        f"{', '.join(map(str, others))} and {last} both provide the {kind.name} {name!r}, and "
        f"neither takes precedence: name the one that wins first in the environment variable "
        f"{ORDER}={last.choice}, or in gradtape.order_plugins([{last.choice!r}]); or disable one "
        f"with {DISABLE}={last.choice} (or {others[-1].choice}), or with "
        f"gradtape.disable_plugin({last.choice!r})"
    )

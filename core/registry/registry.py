"""The registry: everything that the plugins provide, and which plugin provided it."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

from ..base.dtypes import as_dtype
from ..base.positions import NUMPY
from ..errors import PluginError, UnknownName, UnknownOp
from ..ops.backend import Backend
from ..ops.collectives import Engine
from ..ops.kernels import host_kernel
from ..ops.primitive import Primitive
from .changes import Replacements
from .hooks import near_names, package_named
from .hookspecs import PROJECT
from .info import NAMED, PluginInfo, is_reserved
from .kinds import BY_NAME
from .merging import Merged

#: The form of the name of a distribution.
_DISTRIBUTION = "[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?"


class Registry(Merged):
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

    def __init__(self, order: Sequence[str] = ()) -> None:
        super().__init__(order)
        self.replacements = Replacements(self)

    def op(self, name: str) -> Primitive:
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
            f"; install {package_named(prefix)} that defines it"
            if re.fullmatch(_DISTRIBUTION, prefix)
            else ""
        )

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
                f"no plugin provides the backend {name!r}{self._meaning_of(name)}; there are: "
                f"{', '.join(self.backends) or 'none'}{self._restored(name)}"
            ) from None

    def _meaning_of(self, place: str) -> str:
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
        override = self.tables["kernels"].get((op.name, backend.name))
        if type(override) is str:
            override = self.imported("kernel", (op.name, backend.name), override)
        if override is not None:
            return backend.guarded(override, op.name)
        try:
            own = op.host and backend.xp is not NUMPY
            portable = host_kernel(op, backend) if own else backend.bind(op.kernel)
        except AttributeError:
            raise UnknownOp(
                f"op {op.name!r} has no kernel for backend {backend.name!r}: its array namespace "
                f"has no {op.kernel!r}, and no plugin provides one (hook gradtape_kernels)"
            ) from None
        return backend.guarded(backend.kernel(op, portable), op.name)

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
        found: Callable[..., Any] = self._found("executor", name)
        return found

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
        found: Engine = self._found("collective", name, "engine")
        return found

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
        return self._found(kind, name, error=UnknownName)

    def _found(
        self, kind: str, name: str, word: str = "", error: type[Exception] = UnknownOp
    ) -> Any:
        """Return what a plugin provides under a name; ``word`` is the kind's in messages."""
        table = getattr(self, BY_NAME[kind].hook)
        if name in table:
            return table[name]
        self.refuse_clash(kind, name)
        near = near_names(str(name), table)
        raise error(
            f"no plugin provides the {word or kind} {name!r}{near}; there are: "
            f"{', '.join(table) or 'none'}{self._failed() if near else self._restored(name)}"
        )

    def _restored(self, name: Any) -> str:
        """Return how to get something with a bare name, if all plugins are in use."""
        if "::" in str(name):
            return self._failed()
        return self._failed() or (
            f"; install the plugin that provides it ('pip install --force-reinstall {PROJECT}' "
            f"restores {PROJECT}'s own)"
        )

    def service(self, name: str) -> Any:
        """Return what a package provides to those below it; see ``gradtape_services``.

        Parameters
        ----------
        name
            The name of the plugin and of the service, as in ``"saving.Keeper"``.

        Returns
        -------
        object
            What the plugin that takes precedence provides; it is imported if it was a text.

        Raises
        ------
        PluginError
            If no plugin provides it; the message says how to get it.
        """
        table = self.tables["services"]
        plugin = name.partition(".")[0]

        def chosen() -> bool:  # all others have been asked, and may have replaced it
            waiting = self._waiting.get("services", ())
            return name in table and all(x.may_use_reserved_names for x, _ in waiting)

        self.load("services", chosen, first=plugin)
        if name in table:
            found = table[name]
            if type(found) is str:
                found = table[name] = self.imported("service", name, found, object)
            return found
        self.refuse_clash("service", name)
        raise PluginError(
            f"this needs {name!r}, which no plugin provides: the package {plugin!r} is missing, or "
            f"its plugin is disabled; 'gradtape plugins' lists those found, and 'pip install "
            f"--force-reinstall {PROJECT}' restores a package{self._failed()}"
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
            # nobody else may provide it, so nobody else's plugin is imported for it
            waiting = self._waiting.get("names", [])
            self.load("names", lambda: key in table or not waiting[0][0].may_use_reserved_names)
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
        named = head.replace("-", "_").isidentifier() and head not in sys.stdlib_module_names
        here = [info for info in self.infos if head in (info.distribution, info.package)]
        if here and not is_reserved(text):
            label = f"{here[0].distribution} {here[0].version}".strip()
            if label and not any(info.problem for info in here):  # these are named below
                install = f"; {label} is installed, and provides no such name"
        elif named and not is_reserved(text):
            install = f"; install {package_named(head)} that provides it"
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


def _together(a: PluginInfo, b: PluginInfo) -> bool:
    """Return whether two plugins are one, or of one distribution."""
    return a is b or bool(a.distribution and a.distribution == b.distribution)

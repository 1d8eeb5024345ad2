"""What a file needs: plugins, and kernels with the same results as the ops' own.

A file names ops, and a reader runs its own kernels. A plugin may provide faster ones with the same
results. A file cannot describe one with different results.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from ...core.extend import NAMED, Graph, Node, Op, Symbol, known_size, registry
from ..errors import SaveError
from .compare import differs
from .rules import op_nodes

_SIZE = 3


def _is_qualified(text: str) -> bool:
    """Return whether a text may be a third party's name; bare names are gradtape's own."""
    return "::" in text or "." in text


class KernelCheck:
    """Compares kernels of other plugins, on the host's arrays, with those of the ops."""

    def __init__(self) -> None:
        known = registry()
        self._backend = known.host_backend
        #: By op: who provides its kernel.
        self._foreign: dict[str, Any] = {}
        ours = self._backend.provider
        for name, backend in known.kernels:
            info, op = known.owner("kernel", (name, backend)), known.ops[name]
            homes = {x.distribution for x in (op.provider, ours) if x.distribution}
            same = info is None or info is op.provider or info is ours or info.distribution in homes
            if backend == self._backend.name and not same:
                self._foreign[name] = info

    def check(self, graph: Graph, where: str) -> None:
        """Refuse a graph with an op for which a plugin of this process has a different result.

        Raises
        ------
        SaveError
            The message has the op's name and the provider of the kernel.
        """
        if not self._foreign:
            return
        for node in op_nodes(graph):
            if node.op.name in self._foreign and self._differs(node):
                raise SaveError(
                    f"{where}: op {node.op.name!r} has a kernel of {self._foreign[node.op.name]}, "
                    "whose results differ from the op's own kernel, and readers of the file "
                    "may use that one; register it as an op with another name"
                )

    def _differs(self, node: Node) -> bool:
        op = node.op
        assert isinstance(op, Op)
        random = np.random.default_rng(0)
        arrays = [_sample(x, random) if type(x) is Symbol else x for x in node.inputs]
        try:
            given, params = node.settled(arrays)
            with np.errstate(all="ignore"):
                own = self._backend.bind(op.kernel)(*given, **params)
                other = op.kernel_for(self._backend)(*given, **params)
        except Exception:  # not every input fits the op; and some ops have no kernel but this
            return False
        pairs = zip(_listed(own), _listed(other), strict=False)
        return len(_listed(own)) != len(_listed(other)) or any(
            differs(np.asarray(a), np.asarray(b)) for a, b in pairs
        )


def _sample(x: Symbol, random: np.random.Generator) -> Any:
    shape = tuple(n if known_size(n) else _SIZE for n in x.shape or ())
    if x.dtype.kind in "fc":
        return np.asarray(random.standard_normal(shape)).astype(x.dtype)
    return np.asarray(random.integers(0, 2, shape)).astype(x.dtype)


def _listed(result: Any) -> list[Any]:
    return list(result) if isinstance(result, (list, tuple)) else [result]


def requirements(
    ops: Iterable[Op], classes: Iterable[str], texts: Iterable[str] = ()
) -> list[dict[str, Any]]:
    """Return a record for each plugin that provides some of these ops, classes and names.

    Parameters
    ----------
    ops
        The ops in a file's graphs.
    classes
        The names of its modules' classes.
    texts
        The texts in its configurations, some of which may name an activation, an initializer, ...

    Raises
    ------
    SaveError
        If no plugin provides an op.
    """
    known = registry()
    providers = [(known.owner("op", op.name), "ops", op.name) for op in ops]
    providers += [(known.owner("module", name), "modules", name) for name in classes]
    in_graphs = {name for _, kind, name in providers if kind == "ops"}
    for text in sorted(filter(_is_qualified, set(texts) - in_graphs)):
        found = (known.owner("name", (kind, text)) for kind in NAMED)
        providers += [(info, "names", text) for info in found if info is not None][:1]
    needed: dict[str, dict[str, Any]] = {}
    for info, kind, name in providers:
        if info is None:
            raise SaveError(f"op {name!r} belongs to no registered plugin, so no file can name it")
        entry = needed.setdefault(
            f"{info.distribution or info.name}:{info.name}",
            {
                "plugin": info.name,
                "distribution": info.distribution,
                "version": info.version,
                "ops": [],
                "modules": [],
            },
        )
        # only if there are some: other files are the same as those of older versions
        entry.setdefault(kind, []).append(name)
    for entry in needed.values():
        entry["ops"].sort()
        entry["modules"].sort()
    return [needed[key] for key in sorted(needed)]

"""``inspect``: the contents of a file, without running or building any of it."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from ...core.extend import Text, registry, services
from ..container.storage import open_file
from ..errors import guarded, printable
from ..reading.contents import Contents, open_contents
from .formatting import record_of, table, view_of
from .functions import FunctionRecord, extra_outputs, find, functions_of, rules_of
from .statistics import Spread, spread
from .text import strict_json
from .tree import MOST_ROWS, Tree, VariableRecord, tree_of
from .views import listing

if TYPE_CHECKING:
    from .checks import Report

# A constant of so many bytes is shown with its elements.
_SHORT = 48


@dataclass(frozen=True)
class Requirement:
    """A plugin that a file needs, the parts that it needs, and those that are missing here."""

    plugin: str
    distribution: str
    version: str
    modules: list[str]
    ops: list[str]
    missing: list[str]
    names: list[str] = field(default_factory=list)


@dataclass(frozen=True, repr=False)
class Inspection:
    """The contents of a file: the result of :func:`inspect`; printed, it is a table.

    Attributes
    ----------
    path, format, bytes
        The file, the version of its format, and its size.
    parts
        Bytes by purpose: ``"variables"``, ``"graphs"``, ``"constants"``, ``"golden vectors"``, and
        ``"structure"`` for the rest.
    tree, functions, requires, rules
        The records behind tables and pages; rules are gradient rules that nodes refer to by number.
    spreads
        By variable, the distribution of its elements, if requested.
    constants
        By dataset, the text of a short constant.

    Examples
    --------
    >>> import os, tempfile
    >>> model = gt.Module("settings")
    >>> model.rate = gt.Variable(0.5)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = os.path.join(folder, "settings.h5")
    ...     gt.save(model, path)
    ...     found = gt.saving.inspect(path)
    >>> isinstance(found, gt.saving.Inspection), found.parts["variables"]
    (True, 4)
    """

    path: str
    format: str
    bytes: int
    parts: dict[str, int]
    tree: Tree
    functions: list[FunctionRecord]
    requires: list[Requirement]
    rules: list[FunctionRecord] = field(default_factory=list)
    spreads: list[Spread] = field(default_factory=list)
    constants: dict[str, str] = field(default_factory=dict)

    def table(self) -> str:
        """Return the description as text.

        Returns
        -------
        str
            The tree with shapes, functions with custom gradients, plugins, sizes.
        """
        return table(self)

    def __repr__(self) -> str:
        return self.table()

    def json(self) -> str:
        """Return the description as JSON text.

        Returns
        -------
        str
            An object with the keys ``path``, ``format``, ``bytes``, ``parts``, ``modules``,
            ``variables``, ``functions``, ``rules``, ``requires`` and ``history``.
        """
        return strict_json(record_of(self))

    def graph_text(self, name: str) -> str:
        """Return the graphs of a function as text, one line per step.

        Parameters
        ----------
        name
            A function by its name in :meth:`table`, or one of its traces: ``model.__call__#2``.

        Returns
        -------
        str
            Lines such as ``%2 = matmul(%0, %1) float32[?, 10]``, for each requested trace.

        Raises
        ------
        LookupError
            If there is no such function.
        """
        blocks = []
        for trace in find([*self.functions, *self.rules], name):
            lines = [f"{trace.name} ({', '.join(trace.arguments)})"]
            lines += listing(view_of(self, trace), indent="  ")
            lines += [f"  results: {trace.results}"] if trace.results else []
            lines += [f"  {line}" for line in extra_outputs(trace)]
            blocks.append("\n".join(lines))
        return Text("\n\n".join(blocks))

    def graph_json(self, name: str) -> str:
        """Return the graphs of a function as JSON text.

        Parameters
        ----------
        name
            As in :meth:`graph_text`.

        Returns
        -------
        str
            A list of objects with the keys ``name``, ``arguments``, ``results`` and ``graph``.

        Raises
        ------
        LookupError
            If there is no such function.
        """
        return strict_json(
            [
                {
                    "name": trace.name,
                    "arguments": trace.arguments,
                    "results": trace.results,
                    "graph": view_of(self, trace).record(),
                }
                for trace in find([*self.functions, *self.rules], name)
            ]
        )

    def graph_svg(self, name: str) -> str:
        """Return a picture of one trace of a function.

        Parameters
        ----------
        name
            As in :meth:`graph_text`.

        Returns
        -------
        str
            An SVG image. For a graph of more than about 150 steps, a text summary instead.

        Raises
        ------
        LookupError
            If there is no such function, or it has several traces and ``name`` does not say which.
        """
        found = find([*self.functions, *self.rules], name)
        if len(found) > 1:
            raise LookupError(
                f"{found[0].name.rpartition('#')[0]} has {len(found)} traces; choose one of "
                f"{', '.join(trace.name for trace in found[:20])}"
            )
        if not found:
            raise LookupError(f"{printable(name)} has no trace")
        picture: str = services["reports.draw_graph"](view_of(self, found[0]), found[0].name)
        return picture

    def html(self, report: Report | None = None) -> str:
        """Return the description as one page that needs no network and runs no script.

        Parameters
        ----------
        report
            The result of :func:`gradtape.saving.verify`, to be shown too.

        Returns
        -------
        str
            An HTML document.
        """
        document: str = services["reports.write_page"](self, report)
        return document


def inspect(
    path: str | os.PathLike[str], *, statistics: bool = False, max_bytes: int | None = None
) -> Inspection:
    """Return a file's contents: tree, shapes, functions, custom gradients, plugins, sizes.

    Nothing in the file is run or built.

    Parameters
    ----------
    path
        The file.
    statistics
        Whether to read the variables, for histograms on a page.
    max_bytes
        As in :func:`gradtape.load`.

    Returns
    -------
    Inspection
        ``table()`` is text, ``json()`` is JSON, ``html()`` a page; ``graph_text(name)``,
        ``graph_json(name)`` and ``graph_svg(name)`` show a function.

    Raises
    ------
    LoadError
        If the file is missing, damaged or unsafe.

    Examples
    --------
    >>> import os, tempfile
    >>> class Model(gt.Module):
    ...     @gt.function(input_signature=[gt.TensorSpec(["n", 2])])
    ...     def total(self, x):
    ...         return gt.sum(x * x)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = os.path.join(folder, "model.h5")
    ...     gt.save(Model(), path)
    ...     found = gt.saving.inspect(path)
    >>> print(found.graph_text("model.total"))
    model.total#1 (x: float32[n, 2])
      %0 = input x                                          float32[n, 2]
      %1 = multiply(%0, %0)                                 float32[?, 2]
      %2 = sum(%1, axis=None, keepdims=False)               float32[]
      return %2
      results: output 0
    """
    with guarded(path), open_file(path, max_bytes) as file:
        return inspection_of(open_contents(file), statistics)


def inspect_text(path: str | os.PathLike[str]) -> str:
    """Return a description of a file: ``inspect(path).table()``.

    Nothing of the file is run or built.

    Parameters
    ----------
    path
        The file.

    Returns
    -------
    str
        Several lines of text.

    Raises
    ------
    LoadError
        If the file is missing, damaged or unsafe.

    Examples
    --------
    >>> import os, tempfile
    >>> model = gt.Module("settings")
    >>> model.rate = gt.Variable(0.5)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = os.path.join(folder, "settings.h5")
    ...     gt.save(model, path)
    ...     text = gt.saving.inspect_text(path)
    >>> [line.strip() for line in text.splitlines() if "rate" in line]
    ['rate: float32[]']
    """
    return Text(inspect(path).table())


def inspection_of(
    contents: Contents, statistics: bool = False, most_rows: int | None = MOST_ROWS
) -> Inspection:
    """Return the contents of an open file, with a limited number of rows of its tree."""
    file = contents.file
    contents.check_variables()
    tree = tree_of(contents, most_rows)
    functions, rules = functions_of(contents, tree.modules), rules_of(contents)
    parts = _parts(contents, tree.variables, [*functions, *rules])
    spreads = []
    if statistics:
        spreads = [spread(contents.array(variable.dataset)) for variable in tree.variables]
    others = set(file.sizes) - {variable.dataset for variable in tree.variables}
    return Inspection(
        file.path,
        printable(file.attribute("format_version")),
        file.length,
        parts,
        tree,
        functions,
        _requires(contents),
        rules,
        spreads,
        _short_constants(contents, [*functions, *rules], others),
    )


def _parts(
    contents: Contents, variables: list[VariableRecord], functions: list[FunctionRecord]
) -> dict[str, int]:
    """Return the bytes of datasets by purpose."""
    kinds = {variable.dataset: "variables" for variable in variables}
    kinds |= {trace.dataset: "graphs" for function in functions for trace in function.traces}
    kinds |= {
        f"{case.case}/{dtype}": "golden vectors"
        for case in contents.manifest.cases()
        for dtype in case.dtypes
    }
    parts = dict.fromkeys(("variables", "graphs", "constants", "golden vectors", "structure"), 0)
    for path, size in contents.file.sizes.items():
        parts["structure" if path == "/manifest" else kinds.get(path, "constants")] += size
    return parts


def _short_constants(
    contents: Contents, functions: list[FunctionRecord], others: set[str]
) -> dict[str, str]:
    """Return the elements of short constants as text, by dataset."""
    found: dict[str, str] = {}
    for function in functions:
        for trace in function.traces:
            for path in trace.graph.constant_datasets():
                if path in others and path not in found and contents.file.sizes[path] <= _SHORT:
                    found[path] = array_text(contents.array(path))
    return found


def array_text(array: np.ndarray[Any, Any]) -> str:
    """Return a small array in one line."""
    return printable(" ".join(np.array2string(array, separator=", ").split()))


def _requires(contents: Contents) -> list[Requirement]:
    known = registry()
    found = []
    for record in contents.manifest.requires:
        classes, ops, names = record.modules, record.ops, record.names or []
        missing = [item for item in classes if item not in known.modules]
        missing += [item for item in ops if item not in known.ops]
        missing += [item for item in names if not known.has_name(item)]
        words = [printable(x) for x in (record.plugin, record.distribution, record.version)]
        lists = [[printable(item) for item in items] for items in (classes, ops, missing, names)]
        found.append(Requirement(words[0], words[1], words[2], *lists))
    return found

"""``diff``: compare the contents of two files."""

from __future__ import annotations

import difflib
import hashlib
import os
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

from ..container.storage import open_file
from ..errors import printable
from ..reading.contents import open_contents
from ..records.graphs import CustomRecord, GraphRecord, VariableNode
from .difference import Change, Difference
from .functions import FunctionRecord, TraceRecord, extra_outputs
from .inspection import array_text, inspection_of
from .statistics import distance
from .text import counted
from .tree import ModuleRecord, attribute_text, with_arrays
from .views import OuterNames, listing, view

# Of longer listings, no difference line by line is looked for: that takes the square of the time.
_LONGEST_LISTING = 2_000


def diff(
    a: str | os.PathLike[str], b: str | os.PathLike[str], *, max_bytes: int | None = None
) -> Difference:
    """Compare the contents of two files without running or building any of it.

    Modules, variables and functions are matched by their paths and names, traces by their
    arguments. Golden vectors are not compared, because they follow from the rest.

    Parameters
    ----------
    a, b
        The files; they may be of different versions of the format.
    max_bytes
        For each of the files, as in :func:`gradtape.load`.

    Returns
    -------
    Difference
        True if the files differ. ``table()`` is text, ``json()`` is JSON.

    Raises
    ------
    LoadError
        If a file is missing, damaged or unsafe.

    Examples
    --------
    >>> import os, tempfile
    >>> model = gt.Module("settings")
    >>> model.rate = gt.Variable([0.5, 1.0])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     paths = [os.path.join(folder, name) for name in ("a.h5", "b.h5")]
    ...     gt.save(model, paths[0])
    ...     _ = model.rate.assign([0.5, 2.0])
    ...     gt.save(model, paths[1])
    ...     found = gt.saving.diff(*paths)
    >>> bool(found), found.variables[0].what, found.variables[0].distance.largest
    (True, 'rate', 1.0)
    """
    return _compare(_Side(a, max_bytes), _Side(b, max_bytes))


class _Side:
    """One of the two files: its contents by path and name."""

    def __init__(self, path: str | os.PathLike[str], max_bytes: int | None) -> None:
        # each file names its own errors, so its block holds no work on the other
        self._file = open_file(path, max_bytes, keep_open=True)
        with self._file as file:
            self.contents = open_contents(file)
            self.found = inspection_of(self.contents, most_rows=None)
        tree = self.found.tree
        self.modules = {tree.modules[n].path: n for n in sorted(tree.modules)}
        self.variables = {variable.path: i for i, variable in enumerate(tree.variables)}
        self.functions = {function.place: function for function in self.found.functions}
        self._labels = [(x.path, x.spec) for x in tree.variables]
        self._constants: dict[str, str] = {}

    def constant(self, dataset: str) -> str:
        """Return a text that identifies a constant by its content."""
        if dataset not in self._constants:
            array = self.contents.array(dataset, again=True)
            content = hashlib.sha256(f"{array.dtype}{array.shape}".encode() + array.tobytes())
            short = f"{array_text(array)} " if array.nbytes <= 48 else ""
            self._constants[dataset] = f"{short}#{content.hexdigest()[:16]}"
        return self._constants[dataset]

    def leaves(self) -> dict[str, Any]:
        """Return plain values by path, with the contents of arrays."""
        with self._file:
            return {
                path: with_arrays(encoded, self.constant)
                for path, encoded in self.found.tree.leaves.items()
            }

    def listing(self, trace: TraceRecord) -> list[str]:
        """Return the lines of a trace's graph, with constants distinguished by their content."""
        with self._file:
            names = OuterNames(self._labels, self.constant)
            graph = view(trace.graph, names)
        return [
            *listing(graph, _LONGEST_LISTING),
            f"results: {trace.results}",
            *extra_outputs(trace),
        ]

    def meaning(self, trace: TraceRecord) -> Any:
        """Return a trace's JSON without parts that may differ between files of the same graph."""
        with self._file:
            graph = self._graph(trace.graph)
        return graph, {key: x for key, x in trace.keys.items() if key != "arguments"}

    def _variable(self, number: Any) -> str:
        return OuterNames(self._labels, self.constant).variable(number, "graph")[0]

    def _graph(self, graph: GraphRecord) -> Any:
        """Return a graph with contents and paths instead of datasets and numbers."""
        constants = [(self.constant(dataset), spec) for dataset, spec in graph.constants]
        updates = [
            (self._variable(pair[0]), pair[1:]) if type(pair) is list and pair else pair
            for pair in graph.updates
        ]
        nodes = [self._node(node) for node in graph.nodes]
        return graph.inputs, constants, nodes, graph.outputs, updates

    def _node(self, node: Any) -> Any:
        if isinstance(node, VariableNode):
            return node._replace(where="", number=self._variable(node.number))
        if isinstance(node, CustomRecord):
            inner = node.backward
            inner = self._graph(inner) if isinstance(inner, GraphRecord) else inner
            return node._replace(where="", backward=inner)
        params = {key: x for key, x in node.params.items() if key not in node.graphs}
        graphs = {key: self._graph(inner) for key, inner in node.graphs.items()}
        return node._replace(where="", params=params, graphs=graphs)


def _compare(a: _Side, b: _Side) -> Difference:
    first, second = a.found, b.found
    requires = [{(x.plugin, x.distribution): x for x in side.requires} for side in (first, second)]
    notes = [f"format {first.format} -> {second.format}"] if first.format != second.format else []
    notes += [
        f"plugin {printable(name)}: saved with {requires[0][name, by].version} -> "
        f"{requires[1][name, by].version}"
        for name, by in requires[0]
        if (name, by) in requires[1]
        and requires[0][name, by].version != requires[1][name, by].version
    ]
    if not (first.tree.whole and second.tree.whole):
        notes.append("the trees are nested so deeply that they were compared in part")
    functions, gradients = _functions(a, b)
    return Difference(
        first.path,
        second.path,
        _modules(a, b),
        list(_variables(a, b)),
        functions,
        gradients,
        _named(a.contents.manifest.signatures, b.contents.manifest.signatures),
        _required(*requires),
        notes,
    )


def _named(a: Mapping[str, Any], b: Mapping[str, Any]) -> list[Change]:
    """Return the names that are in only one of two tables."""
    gone = [Change(printable(name), "removed") for name in a if name not in b]
    return [*gone, *(Change(printable(name), "added") for name in b if name not in a)]


def _required(a: Mapping[Any, Any], b: Mapping[Any, Any]) -> list[Change]:
    changes = _named(
        {name: x for (name, _), x in a.items()}, {name: x for (name, _), x in b.items()}
    )
    for key in a:
        if key not in b:
            continue
        details = []
        for kind in ("modules", "names", "ops"):
            one, two = set(getattr(a[key], kind)), set(getattr(b[key], kind))
            details += [f"no {x} any more" for x in sorted(one - two)]
            details += [f"{x} too" for x in sorted(two - one)]
        if details:
            changes.append(Change(key[0], "changed", details))
    return changes


# -- the tree --------------------------------------------------------------------------------------


def _modules(a: _Side, b: _Side) -> list[Change]:
    changes = []
    leaves = [side.leaves() for side in (a, b)]
    for path in dict.fromkeys([*a.modules, *b.modules]):
        records = [
            side.found.tree.modules[side.modules[path]] if path in side.modules else None
            for side in (a, b)
        ]
        one, two = records
        name = path or "the root"
        if one is None or two is None:
            known = one or two
            kind = "" if known is None else known.known or known.class_name
            changes.append(Change(name, "added" if one is None else "removed", [kind]))
            continue
        details = [*_class_words(one, two), *_config_words(a, b, path)]
        if details:
            changes.append(Change(name, "changed", details))
    for path in dict.fromkeys([*leaves[0], *leaves[1]]):
        one, two = (side.get(path) for side in leaves)
        if one != two:
            words = _change_words(one, two)
            change = "added" if one is None else "removed" if two is None else "changed"
            changes.append(Change(path, change, [words]))
    return changes


def _class_words(one: ModuleRecord, two: ModuleRecord) -> Iterator[str]:
    for key, was, now in (
        ("class", one.known or one.class_name, two.known or two.class_name),
        ("name", one.name, two.name),
        ("frozen", one.frozen, two.frozen),
    ):
        if was != now:
            yield f"{key} {was} -> {now}"
    for key in sorted(set(one.untraced) ^ set(two.untraced)):
        yield f"method {key} is {'not ' if key in two.untraced else ''}in the second file"


def _config_words(a: _Side, b: _Side, path: str) -> Iterator[str]:
    numbers = [(side, side.modules[path]) for side in (a, b)]
    records = [
        (side.contents.manifest.modules[n].config or {})
        if side.found.tree.modules[n].known is not None
        else {}
        for side, n in numbers
    ]
    for key in dict.fromkeys([*records[0], *records[1]]):
        one, two = (_without_number(record.get(key)) for record in records)
        if one != two:
            yield f"{printable(key)} {_change_words(one, two)}"


def _without_number(encoded: Any) -> Any:
    """Return a configured value without function numbers, which depend on the file's order."""
    return "a function" if type(encoded) is dict and "function" in encoded else encoded


def _change_words(one: Any, two: Any) -> str:
    texts = [_value_text(x) for x in (one, two)]
    if texts[0] == texts[1]:
        return f"{texts[0]} -> another value, which looks the same as far as it is shown"
    return (
        f"{texts[0]} -> {texts[1]}" if one is not None and two is not None else texts[one is None]
    )


def _value_text(encoded: Any) -> str:
    if type(encoded) is not dict or len(encoded) != 1:
        return printable("absent" if encoded is None else encoded)
    ((tag, content),) = encoded.items()
    if tag in ("variable", "module"):
        return printable(f"the {tag} {content or 'at the root'}")
    return printable(attribute_text(encoded))


def _variables(a: _Side, b: _Side) -> Iterator[Change]:
    for path in dict.fromkeys([*a.variables, *b.variables]):
        if path not in a.variables or path not in b.variables:
            side, change = (a, "removed") if path in a.variables else (b, "added")
            yield Change(path, change, [side.found.tree.variables[side.variables[path]].spec])
            continue
        one, two = (side.found.tree.variables[side.variables[path]] for side in (a, b))
        details = [f"{one.spec} -> {two.spec}"] if one.spec != two.spec else []
        if one.trainable != two.trainable:
            details.append("trainable now" if two.trainable else "not trainable any more")
        if one.stream != two.stream:
            details.append(f"stream {one.stream or 'absent'} -> {two.stream or 'absent'}")
        if one.name != two.name:
            details.append(f"name {one.name} -> {two.name}")
        far = None
        if one.shape == two.shape:
            far = distance(a.contents.array(one.dataset), b.contents.array(two.dataset))
            far = far if far.changed else None
        if details or far:
            yield Change(path, "changed", details or [one.spec], distance=far)


# -- functions -------------------------------------------------------------------------------------


def _functions(a: _Side, b: _Side) -> tuple[list[Change], list[Change]]:
    """Return the changes of functions and of custom gradients."""
    changes: list[Change] = []
    gradients: list[Change] = []
    for place in dict.fromkeys([*a.functions, *b.functions]):
        one, two = a.functions.get(place), b.functions.get(place)
        name = one.names[0] if one else two.names[0] if two else place
        if one is None or two is None:
            count = counted(len(one.traces if one else two.traces if two else []), "trace")
            changes.append(Change(name, "added" if one is None else "removed", [count]))
            continue
        details = ["parameters differ"] if one.parameters != two.parameters else []
        details += ["saved for other sizes"] if one.seen_sizes != two.seen_sizes else []
        if details:
            changes.append(Change(name, "changed", details))
        changes += _traces(a, b, one, two)
        gradients += _gradients(name, one, two)
    # nodes refer to rules by number, so that those of one number are compared
    rules = [{rule.place: rule for rule in side.found.rules} for side in (a, b)]
    gradients += _named(*rules)
    for name in rules[0]:
        if name in rules[1]:
            gradients += _traces(a, b, rules[0][name], rules[1][name])
    return changes, gradients


def _traces(a: _Side, b: _Side, one: FunctionRecord, two: FunctionRecord) -> Iterator[Change]:
    """Yield the changes of traces, which are matched by their arguments."""
    sides = [{_key(trace): trace for trace in function.traces} for function in (one, two)]
    for key in dict.fromkeys([*sides[0], *sides[1]]):
        was, now = (side.get(key) for side in sides)
        trace = was or now
        name = f"{one.names[0]} ({', '.join(trace.arguments)})" if trace else ""
        if was is None or now is None:
            yield Change(name, "added" if was is None else "removed", ["a trace"])
            continue
        if a.meaning(was) != b.meaning(now):
            yield _graph_change(a, b, name, was, now)


def _key(trace: TraceRecord) -> str:
    return repr(trace.keys.get("arguments", trace.arguments))


def _graph_change(a: _Side, b: _Side, name: str, was: TraceRecord, now: TraceRecord) -> Change:
    one, two = a.listing(was), b.listing(now)
    if max(len(one), len(two)) > _LONGEST_LISTING:
        pairs = enumerate(zip(one, two, strict=False), 1)
        place = next((i for i, (x, y) in pairs if x != y), min(len(one), len(two)))
        words = (
            f"the graph differs, first at step {place:,}; it is too long for a line by line diff"
        )
        return Change(name, "changed", [words])
    lines = list(difflib.unified_diff(one, two, was.name, now.name, lineterm=""))
    details = ["the graph differs"]
    if not lines:
        details = ["the graph differs in what a listing does not show"]
    return Change(name, "changed", details, lines)


def _gradients(name: str, one: FunctionRecord, two: FunctionRecord) -> Iterator[Change]:
    counts = [
        Counter(label for trace in function.traces for label in trace.custom_gradients)
        for function in (one, two)
    ]
    for label in sorted(set(counts[0]) | set(counts[1])):
        was, now = (count[label] for count in counts)
        if was != now:
            change = "added" if not was else "removed" if not now else "changed"
            times = f"{was} -> {now} times" if was and now else ""
            yield Change(f"{name}: {label}", change, [times] if times else [])

"""The module tree of a file as rows with paths, and attributes in displayed form."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from ...core.extend import describe
from ..errors import DamagedFile, printable
from ..reading.contents import Contents
from ..records import manifest as records
from ..records.schema import at, tagged, variable_label
from .text import shown

# -- attributes ------------------------------------------------------------------------------------

# How many characters of a list of variables are shown.
_MOST_LISTED = 200
_BRACKETS = {"list": "[]", "tuple": "()", "set": "{}", "frozenset": "{}"}


def children(encoded: Any) -> list[tuple[str, Any]] | None:
    """Return the contents of a container, by index or key; None if it is not one."""
    if encoded is None:
        return None
    tag, content = tagged(encoded, "module")
    if tag in _BRACKETS and type(content) is list:
        return [(str(i), item) for i, item in enumerate(content)]
    if tag == "dict" and type(content) is dict:
        return list(content.items())
    if tag != "items" or type(content) is not list:
        return None
    for pair in content:
        if type(pair) is not list or len(pair) != 2:
            raise DamagedFile(f"module: not an item: {str(pair)[:80]!r}")
    return [(shown(key, "module"), item) for key, item in content]


def is_plain(encoded: Any) -> bool:
    """Return whether an attribute holds neither variables nor modules."""
    inside = children(encoded)
    if inside is not None:
        return all(is_plain(item) for _, item in inside)
    return encoded is None or tagged(encoded, "module")[0] not in ("variable", "module")


def attribute_text(encoded: Any) -> str:
    """Return an attribute without variables and modules as Python would print it."""
    if encoded is None:
        return "..."
    tag, content = tagged(encoded, "module")
    inside = children(encoded)
    if inside is None:
        return shown(content if tag == "value" else encoded, "module")
    if tag in _BRACKETS:
        text = ", ".join(attribute_text(item) for _, item in inside)
        return f"{_BRACKETS[tag][0]}{text}{_BRACKETS[tag][1]}"
    items = [f"{printable(key)}: {attribute_text(item)}" for key, item in inside]
    return "{" + ", ".join(items) + "}"


def with_arrays(encoded: Any, content_of: Callable[[str], str]) -> Any:
    """Return an attribute's JSON with the content of arrays instead of their datasets."""
    if type(encoded) is list:
        return [with_arrays(item, content_of) for item in encoded]
    if type(encoded) is not dict:
        return encoded
    return {
        key: content_of(item)
        if key in ("array", "tensor") and type(item) is str and len(encoded) == 1
        else with_arrays(item, content_of)
        for key, item in encoded.items()
    }


# -- the tree --------------------------------------------------------------------------------------

#: How deep the tree is shown, containers counted, and how many rows of it.
MOST_DEPTH, MOST_ROWS = 100, 20_000


@dataclass
class ModuleRecord:
    """A module: its path (``""`` for the root), class, configuration and plain values, as text.

    ``restored`` says what it becomes without its class.
    """

    path: str
    name: str
    known: str | None
    class_name: str
    frozen: bool
    config: dict[str, str]
    untraced: dict[str, str]
    values: dict[str, str] = field(default_factory=dict)
    restored: str = "a plain module"

    @property
    def kind(self) -> str:
        """The class, and what a reader loads it as."""
        kind = self.known or f"{self.class_name}, restored as {self.restored}"
        return kind + ", frozen" if self.frozen else kind


@dataclass
class VariableRecord:
    """A variable: its path in the tree, or its location if the tree does not hold it.

    ``stream`` says how a stream of random numbers was seeded; it is empty for other variables.
    """

    path: str
    dataset: str
    name: str
    shape: tuple[int, ...]
    dtype: str
    trainable: bool
    bytes: int
    stream: str = ""

    @property
    def spec(self) -> str:
        """Its dtype and shape."""
        return describe(self.shape, self.dtype)

    @property
    def size(self) -> int:
        """The number of elements."""
        size = 1
        for n in self.shape:
            size *= n
        return size


@dataclass(frozen=True)
class Row:
    """One line of the tree: a ``"module"``, ``"variable"``, ``"value"``, ``"link"`` or ``"note"``.

    A link refers to a module shown above; ``text`` is its path there.
    """

    depth: int
    path: str
    name: str
    what: str
    text: str
    number: int | None = None


@dataclass(frozen=True)
class Tree:
    """Rows in order, with their records by number.

    Attributes
    ----------
    leaves
        By path, plain values and repeated variables and modules, as JSON.
    history
        The training history, by metric.
    whole
        Whether the rows and leaves contain the whole tree.
    """

    rows: list[Row]
    modules: dict[int, ModuleRecord]
    variables: list[VariableRecord]
    leaves: dict[str, Any]
    history: dict[str, list[float]]
    whole: bool


def tree_of(contents: Contents, most_rows: int | None = MOST_ROWS) -> Tree:
    """Return the tree of a file; for a large one, the first rows."""
    variables = [_variable(contents, x) for x in contents.manifest.variables]
    walk = _TreeWalk(contents, variables)
    rows: list[Row] = []
    for row in walk.module(0, 0, 0, "", ""):
        if len(rows) == most_rows:
            rows.append(Row(1, "", "...", "note", "the tree goes on"))
            walk.whole = False
            break
        rows.append(row)
    for number in range(len(contents.manifest.modules)):  # those that no attribute leads to
        walk.modules.setdefault(number, walk.record(number, f"module {number}"))
    _make_paths_unique(variables)
    _make_paths_unique(walk.modules[number] for number in sorted(walk.modules))
    history = _history(contents)
    return Tree(rows, walk.modules, variables, walk.leaves, history, walk.whole)


def _make_paths_unique(records: Iterable[ModuleRecord | VariableRecord]) -> None:
    """Make the paths of records unique: an untrusted file may cut off or repeat names."""
    taken: set[str] = set()
    for number, record in enumerate(records):
        if record.path in taken:
            record.path = f"{record.path}@{number}"
        taken.add(record.path)


def _variable(contents: Contents, record: records.VariableRecord) -> VariableRecord:
    return VariableRecord(
        printable(variable_label(record.dataset)),
        record.dataset,
        printable(record.name),
        record.shape,
        record.dtype,
        record.trainable,
        contents.file.sizes.get(record.dataset, 0),
        "" if record.stream is None else printable(record.stream),
    )


class _TreeWalk:
    """Traverse the tree once, and remember what was visited."""

    def __init__(self, contents: Contents, variables: list[VariableRecord]) -> None:
        self._records = contents.manifest.modules
        self._variables = variables
        self._named: set[int] = set()
        # each with what tells it apart from others of its name
        self._functions: list[tuple[str, str]] = []
        count: Counter[str] = Counter()
        for record in contents.manifest.functions:
            name = printable(record.name)
            self._functions.append((name, f"@{count[name]}" if count[name] else ""))
            count[name] += 1
        self.modules: dict[int, ModuleRecord] = {}
        self._digests: dict[int, bytes] = {}
        self.leaves: dict[str, Any] = {}
        self.whole = True

    def record(self, number: int, path: str) -> ModuleRecord:
        record = self._records[number]
        config = (record.config or {}) if record.known is not None else {}
        kind = "a plain module" if record.optimizer is None else "an optimizer with its formula"
        return ModuleRecord(
            path,
            printable(record.name),
            None if record.known is None else printable(record.known),
            printable(record.class_name),
            record.frozen is not None,
            {printable(key): _config_text(value) for key, value in config.items()},
            {printable(key): printable(why, 300) for key, why in (record.untraced or {}).items()},
            restored=kind,
        )

    def module(self, number: int, depth: int, level: int, path: str, name: str) -> Iterator[Row]:
        """Yield the rows of a module; ``level`` counts the surrounding containers too."""
        if number in self.modules:
            self._keep(path, {"module": self.modules[number].path})
            yield Row(depth, path, name, "link", self.modules[number].path, number)
            return
        found = self.modules[number] = self.record(number, path)
        yield Row(depth, path, name, "module", "", number)
        record = self._records[number]
        extra = record.extra or {}
        kept = [
            (key, encoded)
            for key, encoded in record.attributes.items()
            # a known class has these from its configuration
            if not (found.known and (key in extra or _is_from_config(key, encoded, found.config)))
        ]
        for key, encoded in [*kept, *extra.items()]:
            key = printable(key)
            inside = f"{path}/{key}" if path else key
            yield from self._attribute(found, encoded, depth + 1, level + 1, inside, key)
        for key, reason in found.untraced.items():
            yield Row(depth + 1, path, key, "note", f"not in the file ({reason})")
        yield from self._rules(record, depth + 1, path)
        for key, told in self._of_optimizer(record):
            self._keep(f"{path}: {key}" if path else key, {"value": told})
            if record.optimizer is not None:
                found.values[key] = printable(told, 300)
                yield Row(depth + 1, path, key, "note", found.values[key])

    def _of_optimizer(self, record: records.ModuleRecord) -> Iterator[tuple[str, str]]:
        """Yield what a file says of an optimizer besides its attributes and functions."""
        if record.optimizer is not None:
            each = "each element alone" if record.optimizer.elementwise else "each variable"
            yield "formula for", each
            excluded = record.optimizer.excluded or {}
            for key in ("names", "places"):
                if excluded.get(key):
                    yield f"no weight decay by {key}", str(excluded[key])
        if record.trained:
            yield "state is of", self._listed(record.trained)

    def _rules(self, record: records.ModuleRecord, depth: int, path: str) -> Iterator[Row]:
        """Yield the rows of the regularizers and constraints of a module's weights."""
        for kind in ("regularizers", "constraints"):
            for number, function in getattr(record, kind) or ():
                variable = at(self._variables, number, "variable", "module")
                told, apart = at(self._functions, function, "function", "module")
                name = f"{kind[:-1]} of {variable.path}"
                yield Row(depth, path, name, "note", told)
                self._keep(f"{path}: {name}" if path else name, {"value": told + apart})

    def _listed(self, numbers: Sequence[int]) -> str:
        """Return the paths of variables: the first ones, and what tells other lists apart."""
        shown, digest = "", hashlib.blake2b(digest_size=8)
        for number in numbers:
            path = at(self._variables, number, "variable", "module").path
            if number not in self._digests:  # many optimizers may have one variable of a long path
                self._digests[number] = hashlib.blake2b(path.encode(), digest_size=8).digest()
            digest.update(self._digests[number])
            if len(shown) <= _MOST_LISTED:
                shown += f", {path[:_MOST_LISTED]}" if shown else path[:_MOST_LISTED]
        if len(shown) <= _MOST_LISTED:
            return shown
        return f"{shown[:_MOST_LISTED]}... ({len(numbers)} variables, digest {digest.hexdigest()})"

    def _attribute(
        self, owner: ModuleRecord, encoded: Any, depth: int, level: int, path: str, name: str
    ) -> Iterator[Row]:
        if encoded is None:
            return
        if level > MOST_DEPTH:
            self.whole = False
            yield Row(depth, path, name, "note", "what is nested deeper is not shown")
            return
        tag, content = tagged(encoded, "module")
        if tag == "variable":
            yield Row(depth, path, name, "variable", "", self._variable(content, path))
        elif tag == "module":
            at(self._records, content, "module", "module")
            yield from self.module(content, depth, level, path, name)
        elif not is_plain(encoded):
            for key, item in children(encoded) or []:
                key = printable(key)
                inside, label = f"{path}/{key}", f"{name}/{key}"
                yield from self._attribute(owner, item, depth, level + 1, inside, label)
        else:
            text = printable(attribute_text(encoded))
            owner.values[name] = text
            self._keep(path, encoded)
            yield Row(depth, path, name, "value", text)

    def _keep(self, path: str, encoded: Any) -> None:
        self.leaves[f"{path}@{len(self.leaves)}" if path in self.leaves else path] = encoded

    def _variable(self, number: Any, path: str) -> int:
        variable = at(self._variables, number, "variable", "module")
        if number in self._named or variable.path.startswith("captured/"):
            self._keep(path, {"variable": variable.path})
        else:
            variable.path = path
        self._named.add(number)
        return number


def _is_from_config(key: str, encoded: Any, config: dict[str, str]) -> bool:
    """Return whether a known class has an attribute from its configuration anyway."""
    if type(encoded) is dict and {"module", "variable", "list", "dict"} & set(encoded):
        return False
    return key in config or key[:1] == "_" or encoded in (None, {"value": None})


def _config_text(encoded: Any) -> str:
    """Return one argument of a known class."""
    tag, content = tagged(encoded, "module: configuration")
    if tag == "value":
        return printable(shown(content, "module: configuration"))
    return printable(content if tag == "op" else f"a {tag} of the file")


def _history(contents: Contents) -> dict[str, list[float]]:
    """Return the training history, if a module has an attribute ``history`` that looks like one.

    That is a dictionary of lists of numbers, such as ``fit(...).history``.
    """
    for record in contents.manifest.modules:
        encoded = record.attributes.get("history")
        if type(encoded) is not dict or type(encoded.get("dict")) is not dict:
            continue
        found = {printable(k, 60): _numbers(item) for k, item in encoded["dict"].items()}
        if found and all(found.values()):
            return found
    return {}


def _numbers(encoded: Any) -> list[float]:
    """Return the numbers of an encoded list; none if it holds anything else."""
    items = encoded.get("list") if type(encoded) is dict else None
    numbers = []
    for item in items if type(items) is list else []:
        value: Any = item.get("value") if type(item) is dict else None
        if type(value) is dict and set(value) == {"float"}:
            try:
                value = float(value["float"])
            except (TypeError, ValueError):
                return []
        if type(value) not in (int, float):
            return []
        numbers.append(float(value))
    return numbers

"""The records of a manifest: each is read and checked in one place, and written by it."""

# ruff: noqa: RUF009 - `of` returns a field

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import MISSING, dataclass, field, fields
from typing import Any, Self

from ...core.extend import TensorSpec
from ..errors import DamagedFile
from .schema import check_dtype, check_shape, read_spec, spec_record, take, take_label

# How many kinds of dtypes one trace may be for.
_MOST_DTYPES = 64

Read = Callable[[Any, str], Any]


def of(
    kind: type | tuple[type, ...],
    read: Read | None = None,
    write: Callable[[Any], Any] | None = None,
    default: Any = MISSING,
    key: str = "",
) -> Any:
    """Return a field of a record.

    Parameters
    ----------
    kind
        The type of its JSON.
    read
        Turns the JSON into the field's value, given the record's place in messages.
    write
        The opposite.
    default
        Its value if the JSON lacks it; no other value is left out of the JSON.
    key
        Its key in the JSON: the field's name by default.
    """
    kinds = kind if isinstance(kind, tuple) else (kind,)
    about = {"as": (kinds, read, write), "key": key}
    return (
        field(default=default, metadata=about) if default is not MISSING else field(metadata=about)
    )


@dataclass(frozen=True, kw_only=True)
class Record:
    """What a JSON object of a file says."""

    @classmethod
    def read(cls, record: Any, where: str) -> Self:
        """Return the record of a JSON object; keys that it does not know are ignored."""
        if type(record) is not dict:
            raise DamagedFile(f"{where}: not a record: {str(record)[:40]}")
        made = object.__new__(cls)
        found = vars(made)  # a file may have thousands of records
        for name, key, kinds, read, _, default in _table_of(cls):
            value = record.get(key, MISSING)
            if value is MISSING and default is not MISSING:
                found[name] = default
                continue
            if type(value) not in kinds:
                take(record, key, kinds, where)
            found[name] = value if read is None else read(value, where)
        return made

    def json(self) -> dict[str, Any]:
        """Return it as JSON; what has its default value is left out."""
        found: dict[str, Any] = {}
        for name, key, _, _, write, default in _table_of(type(self)):
            value = getattr(self, name)
            if default is MISSING or value != default:
                found[key] = value if write is None else write(value)
        return found


_TABLES: dict[type, list[tuple[str, str, Any, Any, Any, Any]]] = {}


def _table_of(cls: type[Record]) -> list[tuple[str, str, Any, Any, Any, Any]]:
    """Return name, key, type of JSON, reader, writer and default of each field."""
    found = _TABLES.get(cls)
    if found is None:
        found = _TABLES[cls] = [
            (x.name, about["key"] or x.name, *about["as"], x.default)
            for x in fields(cls)
            if (about := x.metadata)
        ]
    return found


def _label(value: Any, where: str) -> str:
    return take_label({"": value}, "", where)


def _specs(values: list[Any], where: str) -> tuple[TensorSpec, ...]:
    return tuple(read_spec(value, where) for value in values)


def _spec_records(specs: tuple[TensorSpec, ...]) -> list[Any]:
    return [spec_record(x.shape, x.dtype, x.name) for x in specs]


def _texts(values: list[Any], where: str) -> list[str]:
    return [str(value) for value in values]


def _list_of(record: type[Record], what: str = "") -> Read:
    return lambda values, where: [record.read(value, what or where) for value in values]


def _records(values: list[Record]) -> list[Any]:
    return [value.json() for value in values]


@dataclass(frozen=True, kw_only=True)
class CaseRecord(Record):
    """A golden case: where its arrays are, and their specs."""

    case: str = of(str)
    elements: str | None = of(str, default=None)
    inputs: tuple[TensorSpec, ...] = of(list, _specs, _spec_records)
    values: tuple[TensorSpec, ...] = of(list, _specs, _spec_records)

    @classmethod
    def read(cls, record: Any, where: str) -> Self:
        """Return a case, whose arrays have known shapes."""
        found = super().read(record, where)
        if found.elements not in (None, "spread"):
            raise DamagedFile(f"golden: unknown choice of elements {found.elements[:40]!r}")
        if any(x.shape is None or None in x.shape for x in (*found.inputs, *found.values)):
            raise DamagedFile(f"golden: {found.case[:80]} has a shape that is not known")
        return found

    @classmethod
    def of(cls, case: str, inputs: Sequence[Any], values: Mapping[str, Any]) -> Self:
        """Return the record of a case with these arrays."""
        return cls(
            case=case,
            elements="spread",
            inputs=tuple(TensorSpec(x.shape, x.dtype) for x in inputs),
            values=tuple(TensorSpec(x.shape, x.dtype, k) for k, x in values.items()),
        )

    @property
    def dtypes(self) -> list[str]:
        """The dtypes of its arrays; each has one dataset."""
        return sorted({x.dtype.name for x in (*self.inputs, *self.values)})


def _dtype_name(name: Any, where: str) -> str:
    check_dtype(name, where)
    return str(name)  # which NumPy takes long to say


def _kinds(values: list[Any], where: str) -> tuple[tuple[str, ...], ...]:
    if len(values) > _MOST_DTYPES:
        raise DamagedFile(f"{where}: {len(values)} kinds of dtypes for one trace")
    for names in values:
        if type(names) is not list:
            raise DamagedFile(f"{where}: not the dtypes of its arguments: {str(names)[:80]}")
    return tuple(tuple(_dtype_name(name, where) for name in names) for names in values)


@dataclass(frozen=True, kw_only=True)
class TraceRecord(Record):
    """A trace of a function: the dataset of its text, its samples, and its other dtypes."""

    dataset: str = of(str)
    golden: list[CaseRecord] | None = of(
        list, _list_of(CaseRecord, "golden"), _records, default=None
    )
    not_sampled: str = of((str, type(None)), lambda x, _: x or "", default="")
    dtypes: tuple[tuple[str, ...], ...] = of(
        list, _kinds, lambda kinds: [list(names) for names in kinds], default=()
    )


@dataclass(frozen=True, kw_only=True)
class FunctionRecord(Record):
    """A function: the JSON of its parameters, and its traces."""

    name: str = of(str, _label)
    parameters: list[Any] = of(list)
    traces: list[TraceRecord] = of(list, _list_of(TraceRecord), _records)
    sizes: str = of(str, default="")
    converts: bool = of(bool, default=False)


def _stream(value: Any, where: str) -> Any:
    if value != "shared":
        drawn = take(value, "drawn", (int, type(None)), where)
        if drawn is not None and not 0 <= drawn < 2**63:
            raise DamagedFile(f"{where}: no seed {str(drawn)[:40]}")
    return value


@dataclass(frozen=True, kw_only=True)
class VariableRecord(Record):
    """A variable: its dataset, and ``stream`` if it is a stream of random numbers."""

    dataset: str = of(str)
    name: str = of(str)
    trainable: bool = of(bool)
    shape: tuple[int, ...] = of(
        list, lambda shape, where: check_shape(shape, where, known=True) or (), list
    )
    dtype: str = of(str, _dtype_name)
    stream: Any = of((str, dict), _stream, default=None)


def _pairs(values: list[Any], where: str) -> list[tuple[Any, Any]]:
    for pair in values:
        if type(pair) is not list or len(pair) != 2:
            raise DamagedFile(f"{where}: not a variable and a function: {pair!r}"[:200])
    return [(pair[0], pair[1]) for pair in values]


def _distinct(values: list[Any], where: str) -> list[int]:
    """Return numbers of variables, each once."""
    if any(type(number) is not int for number in values):
        raise DamagedFile(f"{where}: no variable {str(values)[:40]}")
    if len(set(values)) < len(values):
        raise DamagedFile(f"{where}: a variable is repeated")
    return values


@dataclass(frozen=True, kw_only=True)
class OptimizerRecord(Record):
    """An optimizer of a class that readers do not know.

    Attributes
    ----------
    elementwise
        Whether its formula takes rows of any length, in which variables may be joined.
    excluded
        The variables that do not decay: ``names`` and ``places``.
    """

    elementwise: bool = of(bool, default=False)
    excluded: dict[str, Any] | None = of(dict, default=None)


@dataclass(frozen=True, kw_only=True)
class ModuleRecord(Record):
    """A module of the tree.

    Attributes
    ----------
    known
        The name of its class, if readers have it; its ``config`` then makes the module.
    functions
        Numbers of functions by name.
    untraced
        What the file does not hold of it, with the reasons.
    attributes, extra
        JSON by name: what it tracks, or all; and what its constructor does not make.
    frozen, trained
        Numbers of variables: those that are frozen, and those that an optimizer trains.
    regularizers, constraints
        Pairs of numbers: a variable, and a function.
    absorbed
        The names of attributes that its functions have read; None if nobody knows.
    optimizer
        What an optimizer of an unknown class has besides its functions.
    """

    name: str = of(str)
    known: str | None = of((str, type(None)), key="class")
    class_name: str = of(str, _label)
    functions: dict[str, int] = of(dict)
    untraced: dict[str, str] | None = of(dict, default=None)
    attributes: dict[str, Any] = of(dict)
    ordered: bool = of(bool, default=False)
    extra: dict[str, Any] | None = of(dict, default=None)
    frozen: list[int] | None = of(list, _distinct, default=None)
    trained: list[int] | None = of(list, _distinct, default=None)
    config: dict[str, Any] | None = of(dict, default=None)
    regularizers: list[Any] | None = of(list, _pairs, default=None)
    constraints: list[Any] | None = of(list, _pairs, default=None)
    absorbed: list[str] | None = of(list, default=None)
    optimizer: OptimizerRecord | None = of(
        dict, OptimizerRecord.read, OptimizerRecord.json, default=None
    )
    #: Whether the file has its constraints before its regularizers, as its weights have them.
    constraints_first: bool = False

    def json(self) -> dict[str, Any]:
        """Return it as JSON."""
        found = super().json()
        if self.constraints_first:
            found |= {key: found.pop(key) for key in ("regularizers", "absorbed") if key in found}
        return found


@dataclass(frozen=True, kw_only=True)
class RequirementRecord(Record):
    """A plugin that a file needs, and what it needs of it."""

    plugin: str = of(str)
    distribution: str = of(str)
    version: str = of(str)
    ops: list[str] = of(list, _texts)
    modules: list[str] = of(list, _texts)
    names: list[str] | None = of(list, _texts, default=None)


def _numbered(record: type[Record], kind: str) -> Read:
    return lambda values, _: [record.read(x, f"{kind} {i}") for i, x in enumerate(values)]


def _datasets(values: list[Any], where: str) -> list[str]:
    return [take(value, "dataset", str, where) for value in values]


@dataclass(frozen=True, kw_only=True)
class Manifest(Record):
    """What a file holds; ``rules`` are the datasets of its gradient rules."""

    modules: list[ModuleRecord] = of(list, _numbered(ModuleRecord, "module"), _records)
    signatures: dict[str, int] = of(dict)
    rules: Sequence[str] = of(
        list, _datasets, lambda rules: [{"dataset": path} for path in rules], default=()
    )
    functions: list[FunctionRecord] = of(list, _numbered(FunctionRecord, "function"), _records)
    variables: list[VariableRecord] = of(list, _numbered(VariableRecord, "variable"), _records)
    requires: list[RequirementRecord] = of(list, _list_of(RequirementRecord, "requires"), _records)
    checkpoint: dict[str, Any] | None = of(dict, default=None)

    @classmethod
    def read(cls, record: Any, where: str) -> Self:
        """Return a manifest, which has at least the root."""
        found = super().read(record, where)
        if not found.modules:
            raise DamagedFile("manifest: no modules")
        return found

    def cases(self) -> Iterator[CaseRecord]:
        """Yield the golden cases of all functions."""
        for function in self.functions:
            for trace in function.traces:
                yield from trace.golden or ()

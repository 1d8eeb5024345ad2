"""Specs and signatures as JSON, and back."""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from ...core.extend import ConcreteFunction, Output, TensorSpec, Variable, blunt, shapes_differ
from ..errors import DamagedFile, SaveError, printable
from .schema import check_dtype, check_shape, decode, encode, take

_LONGEST_NAME = 1_024
_KINDS = {
    "positional_only": inspect.Parameter.POSITIONAL_ONLY,
    "positional_or_keyword": inspect.Parameter.POSITIONAL_OR_KEYWORD,
    "var_positional": inspect.Parameter.VAR_POSITIONAL,
    "keyword_only": inspect.Parameter.KEYWORD_ONLY,
    "var_keyword": inspect.Parameter.VAR_KEYWORD,
}


def spec_record(shape: Sequence[Any] | None, dtype: Any, name: str | None = None) -> dict[str, Any]:
    """Return a shape, whose sizes may have names, and a dtype (and a name) as JSON."""
    names = [n if type(n) is str else None for n in shape or ()]
    sizes = [None if type(n) is str else n for n in shape or ()]
    result: dict[str, Any] = {
        "shape": None if shape is None else list(blunt(sizes)),
        "dtype": _dtype_name(dtype),
    }
    if any(names):
        result["names"] = names
    if name is not None:
        result["name"] = name
    return result


@lru_cache
def _dtype_name(dtype: Any) -> str:
    return np.dtype(dtype).name  # which takes NumPy long to say


def encode_signature(signature: inspect.Signature) -> list[dict[str, Any]]:
    """Return a function's parameters as JSON; a default that files cannot hold becomes None."""
    result = []
    for parameter in signature.parameters.values():
        record: dict[str, Any] = {"name": parameter.name, "kind": parameter.kind.name.lower()}
        if parameter.default is not parameter.empty:
            try:
                record["default"] = encode(parameter.default, parameter.name)
            except SaveError:
                record["default"] = None
        result.append(record)
    return result


def decode_signature(records: list[Any], where: str) -> inspect.Signature:
    """Return a signature; refuse one that Python would not accept."""
    parameters = []
    for record in records:
        kind = _KINDS.get(take(record, "kind", str, where))
        if kind is None:
            raise DamagedFile(f"{where}: unknown kind of parameter")
        default = decode(record["default"]) if "default" in record else inspect.Parameter.empty
        name = take(record, "name", str, where)
        if len(name) > _LONGEST_NAME:
            raise DamagedFile(f"{where}: not a parameter: {name[:80]!r}")
        try:
            parameters.append(inspect.Parameter(name, kind, default=default))
        except (ValueError, TypeError, IndexError) as error:  # the last one for an empty name
            raise DamagedFile(f"{where}: not a parameter: {error}") from None
    try:
        return inspect.Signature(parameters)
    except ValueError as error:
        raise DamagedFile(f"{where}: {error}") from None


def read_spec(record: Any, where: str) -> TensorSpec:
    """Return a shape and dtype (and names) from JSON."""
    dtype = check_dtype(take(record, "dtype", str, where), where)
    shape = check_shape(record.get("shape"), where)
    name = record.get("name")
    if name is not None and (type(name) is not str or len(name) > _LONGEST_NAME):
        raise DamagedFile(f"{where}: not a name: {str(name)[:80]!r}")
    names = record.get("names")
    shown = None if name is None else printable(name, _LONGEST_NAME)
    try:
        return _spec(shape if names is None else _with_names(shape, names, where), dtype, shown)
    except ValueError as error:
        raise DamagedFile(f"{where}: {error}") from None


@lru_cache(1024)
def _spec(shape: tuple[Any, ...] | None, dtype: Any, name: str | None) -> TensorSpec:
    """Return a spec, the same object for equal specs of many nodes."""
    return TensorSpec(shape, dtype, name)


def _with_names(shape: Any, names: Any, where: str) -> tuple[Any, ...]:
    """Return a shape with names instead of the sizes that have one."""
    if (
        type(names) is not list
        or shape is None
        or len(names) != len(shape)
        or any(
            name is not None and (type(name) is not str or size is not None)
            for name, size in zip(names, shape, strict=True)
        )
    ):
        raise DamagedFile(f"{where}: not the names of unknown sizes: {str(names)[:80]}")
    return tuple(size if name is None else name for name, size in zip(names, shape, strict=True))


def rule_fits_weight(
    traces: Sequence[ConcreteFunction], weight: Variable, regularizer: bool
) -> bool:
    """Return whether a function takes a weight and returns a penalty or its new value."""
    shape = () if regularizer else weight.shape
    for trace in traces:
        takes = [spec.admits(weight.shape) for spec in trace.specs]
        dtypes = (tuple(spec.dtype.name for spec in trace.specs), *trace.also)
        if takes != [True] or (weight.dtype.name,) not in dtypes:
            continue
        result = trace.results
        if isinstance(result, Output):
            return not shapes_differ(trace.graph.outputs[result.index].shape, shape)
        return shape == () and type(result) in (int, float)
    return False

"""The vocabulary of the file format: names, limits, and values as JSON. See docs/format.md."""

from __future__ import annotations

import inspect
import json
import math
import re
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Any, TypeVar

import numpy as np

from ...core.extend import (
    ConcreteFunction,
    Formula,
    Output,
    TensorSpec,
    Variable,
    shapes_differ,
    without_expressions,
)
from ..container.limits import DTYPES, MAX_DEPTH, MAX_RANK, MAX_TEXT
from ..errors import DamagedFile, SaveError, UnsafeFile, printable

T = TypeVar("T")

FORMAT = "gradtape"
#: Written into every file: a reader takes any minor of its major version.
VERSION = (2, 4)
#: How many gradient rules that nodes refer to a file may hold.
MAX_RULES = 1_000

IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,127}\Z")
#: In all JSON of a file together: `[`, `{`, `,` and `:`, wherever they are.
MAX_TOKENS = 2**20
#: Over all inputs of all ops of a file.
MAX_AXES = 2**20
#: Over all graphs of a file: each node takes tens of microseconds to check.
MAX_NODES = 2**15
#: The key of the manifest that says that a file is a checkpoint.
CHECKPOINT = "checkpoint"
# What functions, graphs and classes are called, for people.
_LONGEST_LABEL = 1_000
# What Python's repr writes. Python reads more, such as digits of other scripts.
_FLOAT = re.compile(r"-?(?:[0-9]+(?:\.[0-9]+)?(?:e[-+]?[0-9]+)?|inf)\Z|nan\Z")
# An integer is one of a machine: what is larger would be a trap for whatever computes with it.
_MAX_INT = 2**64


def variable_label(dataset: str) -> str:
    """Return the label of a variable in golden vectors and in printed text."""
    return dataset.removeprefix("/variables").removeprefix("/")


def is_small(value: int) -> bool:
    """Return whether files can hold an integer."""
    return -_MAX_INT < value < _MAX_INT


# -- values ----------------------------------------------------------------------------------------


def encode(value: Any, what: str) -> Any:
    """Return a Python value as JSON: plain where JSON is exact, otherwise tagged.

    Raises
    ------
    SaveError
        If files cannot hold values of this type.
    """
    if value is None or type(value) in (bool, str):
        return value
    if type(value) is int:
        if not is_small(value):
            raise SaveError(f"{what}: an integer of more than 64 bits cannot be saved")
        return value
    if isinstance(value, (np.bool_, np.integer, np.floating, np.complexfloating)):
        return encode(value.item(), what)
    if type(value) is float:
        return {"float": repr(value)}
    if type(value) is complex:
        return {"complex": [repr(value.real), repr(value.imag)]}
    if isinstance(value, tuple) and not hasattr(value, "_fields"):  # a shape, maybe, of a kind
        return {"tuple": [encode(item, what) for item in value]}
    if type(value) is list:
        return [encode(item, what) for item in value]
    if type(value) is dict and all(type(key) is str for key in value):
        return {"dict": {key: encode(item, what) for key, item in value.items()}}
    if type(value) is Formula:
        return {"size": _expression_record(value.expression, what)}
    raise SaveError(
        f"{what}: a value of type {type(value).__name__} cannot be saved; files hold None, "
        "booleans, numbers, strings, and tuples, lists and dictionaries of them"
    )


def _expression_record(expression: Any, what: str) -> Any:
    if type(expression) is tuple:
        return [_expression_record(item, what) for item in expression]
    return encode(expression, what)


def _expression(record: Any) -> Any:
    if type(record) is list:
        return tuple(_expression(item) for item in record)
    value = decode(record)
    if type(value) not in (int, float, str):
        raise DamagedFile(f"not a size: {str(record)[:80]!r}")
    return value


def decode(value: Any, sizes: bool = False) -> Any:
    """Return the Python value of :func:`encode`'s JSON.

    Parameters
    ----------
    value
        The parsed JSON.
    sizes
        Whether it may contain formulas of sizes, as parameters of ops may.
    """
    if value is None or type(value) in (bool, str):
        return value
    if type(value) is int and -_MAX_INT < value < _MAX_INT:
        return value
    if type(value) is list:
        return [decode(item, sizes) for item in value]
    if type(value) is dict and len(value) == 1:
        ((tag, content),) = value.items()
        if tag == "float":
            return _float(content)
        if tag == "complex" and type(content) is list and len(content) == 2:
            return complex(_float(content[0]), _float(content[1]))
        if tag == "tuple" and type(content) is list:
            return tuple(decode(item, sizes) for item in content)
        if tag == "dict" and type(content) is dict:
            return {key: decode(item, sizes) for key, item in content.items()}
        if tag == "size" and sizes:
            return Formula(_expression(content))
    raise DamagedFile(f"not an encoded value: {str(value)[:80]!r}")


def _float(text: Any) -> float:
    if type(text) is str and len(text) <= 32 and _FLOAT.match(text):
        value = float(text)
        if math.isfinite(value) or text in ("nan", "inf", "-inf"):
            return value
    raise DamagedFile(f"not a number: {str(text)[:40]!r}")


# -- JSON ------------------------------------------------------------------------------------------

_BRACKETS = bytes.maketrans(b"{}", b"[]")
_NEITHER_BRACKET_NOR_QUOTE = bytes(c for c in range(256) if c not in b'[]{}"')


def dump(value: Any, what: str) -> str:
    """Return JSON text that is the same for the same value, and that :func:`parse` accepts.

    Raises
    ------
    SaveError
        If it would be nested more deeply, or be longer, than readers accept.
    """
    try:
        text = json.dumps(value, ensure_ascii=True, allow_nan=False, separators=(",", ":"))
    except RecursionError:
        raise SaveError(f"{what}: nested too deeply to be saved") from None
    if len(text) > MAX_TEXT or tokens(text) > MAX_TOKENS:
        raise SaveError(
            f"{what}: longer than {MAX_TEXT:,} bytes or {MAX_TOKENS:,} tokens as JSON, which "
            "readers refuse"
        )
    if not _is_shallow(text):
        raise SaveError(f"{what}: nested deeper than {MAX_DEPTH} as JSON, which readers refuse")
    return text


def tokens(text: str) -> int:
    """Return a bound on the cost of parsing: the number of items."""
    return sum(map(text.count, "[{,:"))


def parse(text: str, most: int = MAX_TOKENS) -> Any:
    """Parse untrusted JSON: ASCII, of limited size and depth, no repeated keys, no NaN."""
    if not text.isascii():
        raise DamagedFile("JSON that is not ASCII")
    if tokens(text) > most:
        raise UnsafeFile(f"the JSON of a file has more than {MAX_TOKENS:,} tokens")
    if not _is_shallow(text):
        raise UnsafeFile(f"JSON nested deeper than {MAX_DEPTH}")
    try:
        return json.loads(text, object_pairs_hook=_unique, parse_constant=_refuse_constant)
    except (ValueError, RecursionError) as error:
        raise DamagedFile(f"not valid JSON: {error}") from None


def _is_shallow(text: str) -> bool:
    """Return whether JSON is not nested too deeply; for other text the result means nothing.

    Repeatedly removing the innermost brackets takes a few passes over short text. Walking through
    the tokens would take as long as parsing them.
    """
    data = text.encode()
    if b"\\" in data:
        data = data.replace(b"\\\\", b"").replace(b'\\"', b"")
    data = data.translate(_BRACKETS, _NEITHER_BRACKET_NOR_QUOTE)
    if data.count(b'"') > 2 * tokens(text) + 2:
        return True  # more strings than places for them: it will not parse
    data = re.sub(rb'"[^"]*"?', b"", data)
    for _ in range(MAX_DEPTH):
        data = data.replace(b"[]", b"")
    return not data


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    result = dict(pairs)
    if len(result) != len(pairs):
        raise UnsafeFile("a JSON object repeats a key")
    return result


def _refuse_constant(name: str) -> Any:
    raise DamagedFile(f"JSON holds {name}")


# -- checked access --------------------------------------------------------------------------------


def take(record: Any, key: str, kind: type | tuple[type, ...], where: str) -> Any:
    """Return ``record[key]`` if it exists and has the right type."""
    if type(record) is not dict or key not in record:
        raise DamagedFile(f"{where}: {key!r} is missing")
    value = record[key]
    if type(value) is not kind and (type(kind) is not tuple or type(value) not in kind):
        raise DamagedFile(f"{where}: {key!r} is {type(value).__name__}")
    return value


def take_label(record: Any, key: str, where: str) -> str:
    """Return a text for display: without control characters, and of limited length."""
    return printable(take(record, key, str, where), _LONGEST_LABEL)


def at(pool: Sequence[T], number: Any, kind: str, where: str) -> T:
    """Return the variable, module or function with this number in the file."""
    if type(number) is not int or not 0 <= number < len(pool):
        raise DamagedFile(f"{where}: no {kind} {str(number)[:40]}")
    return pool[number]


def dictionaries(encoded: Any) -> Iterator[dict[str, Any]]:
    """Yield every object in JSON, at any depth."""
    queue = [encoded]
    while queue:
        item = queue.pop()
        if type(item) is list:
            queue += item
        elif type(item) is dict:
            yield item
            queue += item.values()


def tagged(value: Any, where: str) -> tuple[str, Any]:
    """Return the tag and the content of a JSON object with one key."""
    if type(value) is not dict or len(value) != 1:
        raise DamagedFile(f"{where}: not a tagged value: {str(value)[:80]}")
    ((tag, content),) = value.items()
    return tag, content


def is_attribute(name: Any) -> bool:
    """Return whether a file may use this name for an attribute or function that no class has."""
    return (
        type(name) is str
        and IDENTIFIER.match(name) is not None
        and not name.startswith(("__", "_gradtape"))
        and name != "_name"
    )


def check_dtype(name: Any, where: str) -> np.dtype[Any]:
    """Return the dtype called ``name`` if files may hold it."""
    if type(name) is not str or name not in DTYPES:
        raise UnsafeFile(f"{where}: dtype {str(name)[:40]!r}")
    return DTYPES[name]


def check_shape(shape: Any, where: str, known: bool = False) -> tuple[Any, ...] | None:
    """Return a shape read from JSON as a tuple; ``None`` sizes only if not ``known``."""
    if shape is None and not known:
        return None
    if type(shape) is not list or len(shape) > MAX_RANK:
        raise DamagedFile(f"{where}: not a shape: {str(shape)[:80]}")
    for n in shape:
        if not (type(n) is int and 0 <= n < 2**48) and not (n is None and not known):
            raise DamagedFile(f"{where}: not a size: {str(n)[:40]}")
    return tuple(shape)


#: The attribute of optimizers with the steps of each variable, where ``iterations`` is not enough.
COUNTS = "step_counts"

# Nobody counts so far, and there is room above it.
_MOST = 2**62


def check_steps(count: Any, where: str) -> None:
    """Refuse an array that is not an optimizer's number of steps."""
    if count.shape != () or count.dtype != "int64" or not 0 <= int(count) < _MOST:
        raise DamagedFile(
            f"{where}: no number of steps, int64: {count.dtype} {str(count.tolist())[:80]}"
        )


def check_stream(state: Any, where: str) -> None:
    """Refuse integers that are not the seed and the count of a stream of random numbers."""
    if not all(n >= 0 for n in state.tolist()):
        raise DamagedFile(f"{where}: no seed and count of a random stream: {state.tolist()}")


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
        "shape": None if shape is None else list(without_expressions(sizes)),
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

"""The vocabulary of the file format: names, limits, and values as JSON. See docs/format.md."""

from __future__ import annotations

import hashlib
import json
import re
from typing import Any

import numpy as np

from .errors import DamagedFile, SaveError, UnsafeFile

FORMAT = "gradtape"
#: Written into every file: a reader takes any minor of its major version.
VERSION = (1, 0)

# A segment of a path: what an attribute, an index or a sensible dictionary key may be called.
SEGMENT = re.compile(r"[A-Za-z0-9_](?:[A-Za-z0-9_.\- ]{0,126}[A-Za-z0-9_\-])?\Z")
IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,127}\Z")
DTYPES = frozenset(
    "bool int8 int16 int32 int64 uint8 uint16 uint32 uint64 "
    "float16 float32 float64 complex64 complex128".split()
)
MAX_DEPTH = 64
MAX_OBJECTS = 100_000
MAX_TEXT = 64 * 2**20
MAX_BYTES = 8 * 2**30
MAX_RANK = 32


def digest(array: np.ndarray[Any, Any]) -> str:
    """Return the SHA-256 of an array's dtype, shape and elements (C order, little endian)."""
    plain = np.ascontiguousarray(array)
    if plain.dtype.byteorder == ">":
        plain = plain.astype(plain.dtype.newbyteorder("<"))
    head = f"{plain.dtype.name}{list(array.shape)}".encode()
    return hashlib.sha256(head + plain.tobytes()).hexdigest()


def text_digest(text: str) -> str:
    """Return the SHA-256 of a text."""
    return hashlib.sha256(text.encode()).hexdigest()


# -- values ----------------------------------------------------------------------------------------


def encode(value: Any, what: str) -> Any:
    """Return a Python value as JSON: plain where JSON is exact, tagged where it is not.

    Raises
    ------
    SaveError
        If the value is of a type that files do not hold.
    """
    if value is None or type(value) in (bool, int, str):
        return value
    if isinstance(value, (np.bool_, np.integer, np.floating, np.complexfloating)):
        value = value.item()
        return encode(value, what)
    if type(value) is float:
        return {"float": repr(value)}
    if type(value) is complex:
        return {"complex": [repr(value.real), repr(value.imag)]}
    if type(value) is tuple:
        return {"tuple": [encode(item, what) for item in value]}
    if type(value) is list:
        return [encode(item, what) for item in value]
    if type(value) is dict and all(type(key) is str for key in value):
        return {"dict": {key: encode(item, what) for key, item in value.items()}}
    raise SaveError(
        f"{what}: a value of type {type(value).__name__} cannot be saved; files hold None, "
        "booleans, numbers, strings, and tuples, lists and dictionaries of them"
    )


def decode(value: Any) -> Any:
    """Return the Python value of :func:`encode`'s JSON."""
    if value is None or type(value) in (bool, int, str):
        return value
    if type(value) is list:
        return [decode(item) for item in value]
    if type(value) is dict and len(value) == 1:
        ((tag, content),) = value.items()
        if tag == "float" and type(content) is str:
            return _float(content)
        if tag == "complex" and type(content) is list and len(content) == 2:
            return complex(_float(content[0]), _float(content[1]))
        if tag == "tuple" and type(content) is list:
            return tuple(decode(item) for item in content)
        if tag == "dict" and type(content) is dict:
            return {key: decode(item) for key, item in content.items()}
    raise DamagedFile(f"not an encoded value: {str(value)[:80]!r}")


def _float(text: Any) -> float:
    try:
        return float(text)
    except (TypeError, ValueError):
        raise DamagedFile(f"not a number: {str(text)[:40]!r}") from None


# -- JSON ------------------------------------------------------------------------------------------


def dump(value: Any) -> str:
    """Return JSON text that is the same for the same value."""
    return json.dumps(value, ensure_ascii=True, allow_nan=False, separators=(",", ":"))


def parse(text: str) -> Any:
    """Parse JSON from a stranger: bounded depth, no repeated keys, no NaN."""
    depth = 0
    for token in re.finditer(r'"(?:[^"\\]|\\.)*"|[\[\]{}]', text):
        if token[0] in "[{":
            depth += 1
            if depth > MAX_DEPTH:
                raise UnsafeFile(f"JSON nested deeper than {MAX_DEPTH}")
        elif token[0] in "]}":
            depth -= 1
    try:
        return json.loads(text, object_pairs_hook=_unique, parse_constant=_refuse_constant)
    except (ValueError, RecursionError) as error:
        raise DamagedFile(f"not valid JSON: {error}") from None


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    result = dict(pairs)
    if len(result) != len(pairs):
        raise UnsafeFile("a JSON object repeats a key")
    return result


def _refuse_constant(name: str) -> Any:
    raise DamagedFile(f"JSON holds {name}")


# -- checked access --------------------------------------------------------------------------------


def take(record: Any, key: str, kind: type | tuple[type, ...], where: str) -> Any:
    """Return ``record[key]`` if it is there and of the right type."""
    if type(record) is not dict or key not in record:
        raise DamagedFile(f"{where}: {key!r} is missing")
    value = record[key]
    kinds = kind if isinstance(kind, tuple) else (kind,)
    if type(value) not in kinds:
        raise DamagedFile(f"{where}: {key!r} is {type(value).__name__}")
    return value


def check_identifier(name: Any, where: str) -> str:
    """Return ``name`` if it is an identifier that may become an attribute."""
    if type(name) is not str or not IDENTIFIER.match(name) or name.startswith("__"):
        if name == "__call__":
            return "__call__"
        raise UnsafeFile(f"{where}: {str(name)[:80]!r} is no attribute name")
    return name


def check_dtype(name: Any, where: str) -> np.dtype[Any]:
    """Return the dtype called ``name`` if files may hold it."""
    if type(name) is not str or name not in DTYPES:
        raise UnsafeFile(f"{where}: dtype {str(name)[:40]!r}")
    return np.dtype(name)


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

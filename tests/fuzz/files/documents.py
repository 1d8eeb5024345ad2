"""Changes of a file's contents, JSON and arrays; digests and checksums are correct afterwards."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from typing import Any

import numpy as np

from fuzz.files.subjects import Parts
from gradtape.core.extend import registry

__all__ = ["changed"]

_DTYPES = ["bool", "int8", "uint8", "int64", "uint64", "float16", "float32", "float64", "complex64"]
_JUNK: list[Any] = [
    None,
    True,
    False,
    0,
    1,
    -1,
    2,
    7,
    64,
    2**22,
    2**31,
    2**47,
    2**48,
    2**63,
    2**64 - 1,
    -(2**63),
    2**64,
    10**100,
    1.5,
    "",
    "x",
    "__class__",
    "../../etc/passwd",
    "\x1b[2J\u202e",
    "a" * 5000,
    "/variables/w",
    "/manifest",
    "op",
    [],
    {},
    [[]],
    [None] * 40,
    [0] * 3000,
    [2**47] * 32,
    {"tuple": []},
    {"tuple": [2**31, 2**31]},
    {"list": []},
    {"dict": {}},
    {"float": "nan"},
    {"float": "1e999"},
    {"float": "x"},
    {"complex": ["1", "inf"]},
    {"size": ["size", 0, 0]},
    {"size": ["*", ["size", 0, 0], 2**47]},
    {"size": ["**", 10, 10**6]},
    {"spec": {"shape": [None], "dtype": "float32"}},
    {"spec": {}},
    {"output": 0},
    {"value": 1},
    {"variable": 0},
    {"variable": 999},
    {"module": 0},
    {"module": 1},
    {"function": 0},
    {"op": "sin"},
    {"scalar": 2},
    {"graph": {}},
    {"shape": None, "dtype": "int8"},
    {"shape": [2**40], "dtype": "float64"},
]
# Nested values written as text, because json.dumps would not write them.
_TEXTS = [
    "",
    " ",
    "[" * 5000,
    "[" * 200 + "]" * 200,
    "[" + "[]," * 30_000 + "[]]",
    '{"a":1,"a":2}',
    "NaN",
    "[1e999]",
    '"' + "\\u0000" * 3000 + '"',
    "\ufeff{}",
    "[" + "9" * 4000 + "]",
]

Place = tuple[Any, Any]


def changed(parts: Parts, rng: random.Random) -> Parts:
    """Return parts with one to four changes."""
    texts = dict(parts.texts)
    found = Parts(dict(parts.attributes), texts, dict(parts.arrays))
    documents = {path: json.loads(text) for path, text in texts.items()}
    for _ in range(rng.choice([1, 1, 1, 2, 4])):
        if rng.random() < 0.75:
            path = "/manifest" if rng.random() < 0.4 else rng.choice(sorted(documents))
            documents[path] = _edited(documents[path], rng)
        else:
            rng.choice(_CHANGES)(found, rng)
    for path, document in documents.items():
        if path in texts and texts[path] == parts.texts[path]:
            texts[path] = json.dumps(document)
    return found


def _edited(document: Any, rng: random.Random) -> Any:
    places = _by_depth(document)
    if not places:
        return rng.choice(_JUNK)
    # choose the depth first, so that the few places near the root are not lost among the others
    tree, key = rng.choice(places[rng.randrange(len(places))])
    rng.choice(_EDITS)(tree, key, places, rng)
    return document


def _by_depth(document: Any) -> list[list[Place]]:
    """Return all containers and keys, by depth."""
    found: list[list[Place]] = []
    level = [document]
    while level:
        places = [(tree, key) for tree in level for key in _keys(tree)]
        if places:
            found.append(places)
        level = [tree[key] for tree, key in places]
    return found


def _keys(tree: Any) -> Iterator[Any]:
    if isinstance(tree, dict):
        yield from tree
    elif isinstance(tree, list):
        yield from range(len(tree))


def _copy(value: Any) -> Any:
    return json.loads(json.dumps(value))


def _replace(tree: Any, key: Any, places: list[list[Place]], rng: random.Random) -> None:
    tree[key] = _copy(rng.choice(_JUNK))


def _delete(tree: Any, key: Any, places: list[list[Place]], rng: random.Random) -> None:
    del tree[key]


def _take(tree: Any, key: Any, places: list[list[Place]], rng: random.Random) -> None:
    """Put a value from elsewhere here."""
    other, at = rng.choice(rng.choice(places))
    tree[key] = _copy(other[at])


def _swap(tree: Any, key: Any, places: list[list[Place]], rng: random.Random) -> None:
    same = next(level for level in places if any(t is tree for t, _ in level))
    other, at = rng.choice(same)
    tree[key], other[at] = other[at], tree[key]


def _repeat(tree: Any, key: Any, places: list[list[Place]], rng: random.Random) -> None:
    if isinstance(tree, list):
        tree[key:key] = [_copy(tree[key]) for _ in range(rng.choice([1, 1, 2, 50]))]
    else:
        tree[f"{key}_"] = _copy(tree[key])


def _rename(tree: Any, key: Any, places: list[list[Place]], rng: random.Random) -> None:
    if isinstance(tree, dict):
        names = [
            "__call__",
            "__class__",
            "name",
            "_x",
            "call",
            "x y",
            "",
            "value",
            "tuple",
            "graph",
        ]
        tree[rng.choice(names)] = tree.pop(key)
    else:
        rng.shuffle(tree)


def _near(tree: Any, key: Any, places: list[list[Place]], rng: random.Random) -> None:
    """Change a value slightly, keeping its type."""
    value = tree[key]
    if type(value) is bool:
        tree[key] = not value
    elif type(value) is int:
        tree[key] = value + rng.choice([-1, 1, 2, 100, 2**31])
    elif type(value) is str and value in registry().ops:
        tree[key] = rng.choice(sorted(registry().ops))
    elif type(value) is str and value in _DTYPES:
        tree[key] = rng.choice(_DTYPES)
    elif type(value) is str:
        tree[key] = rng.choice([value[:-1], value + "0", value.upper(), value[::-1]])
    elif type(value) is list:
        rng.shuffle(value)
    elif value is None:
        tree[key] = rng.choice([0, 3, []])


_EDITS = [_replace, _replace, _delete, _take, _swap, _repeat, _rename, _near, _near, _near]


# -- changes besides the JSON ----------------------------------------------------------------------


def _text(parts: Parts, rng: random.Random) -> None:
    parts.texts[rng.choice(sorted(parts.texts))] = rng.choice(_TEXTS) or " "


def _array(parts: Parts, rng: random.Random) -> None:
    """Replace an array by another one."""
    path = rng.choice(sorted(parts.arrays))
    array = parts.arrays[path]
    kind = rng.choice(["dtype", "shape", "swap", "flat", "empty", "long"])
    if kind == "dtype":
        with np.errstate(all="ignore"):
            parts.arrays[path] = array.astype(np.bool_).astype(rng.choice(_DTYPES))
    elif kind == "shape":
        parts.arrays[path] = array.reshape(
            rng.choice([(-1,), (1, *array.shape), (*array.shape, 1)])
        )
    elif kind == "swap":
        other = rng.choice(sorted(parts.arrays))
        parts.arrays[path], parts.arrays[other] = parts.arrays[other], array
    elif kind == "flat":
        parts.arrays[path] = array.reshape(-1)[:1].copy()
    elif kind == "empty":
        parts.arrays[path] = np.zeros((0, *array.shape[1:]), array.dtype)
    else:
        parts.arrays[path] = np.concatenate([array.reshape(-1)] * 2)


def _move(parts: Parts, rng: random.Random) -> None:
    """Remove a dataset, or store it under another path."""
    path = rng.choice(sorted(parts.arrays))
    array = parts.arrays.pop(path)
    if rng.random() < 0.6:
        parts.arrays[f"{path}{rng.choice(['_', '.0', '/0/float32'])}"] = array


def _more(parts: Parts, rng: random.Random) -> None:
    parts.arrays[f"/extra/{rng.randrange(9)}"] = np.zeros(rng.choice([0, 1, 1000]), np.float32)


def _attribute(parts: Parts, rng: random.Random) -> None:
    name = rng.choice(sorted(parts.attributes))
    values = [
        "1.2",
        "2.0",
        "2.1",
        "2.9999",
        "3.0",
        "0.1",
        "99999.0",
        "-1.0",
        "gradtape",
        "x" * 3000,
    ]
    parts.attributes[name] = rng.choice(values)


_CHANGES = [_text, _array, _array, _array, _move, _more, _attribute]

"""What CuPy takes and NumPy is freer about: names, signatures, the loops of ufuncs, dtypes.

Names and signatures are those of ``cupy_table.json``; the rest was read in CuPy's source and its
documentation ("Differences between CuPy and NumPy").
"""

from __future__ import annotations

import functools
import inspect
import json
from pathlib import Path
from typing import Any

import numpy as np

TABLE: dict[str, Any] = json.loads(Path(__file__).with_name("cupy_table.json").read_text())
NAMES: dict[str, list[str]] = TABLE["names"]
#: The dtypes in which ``cupy.add.at`` and its like write, by the ufunc.
ATOMIC = {"add": "ilqILQefd", "maximum": "ilqILQfd", "minimum": "ilqILQfd"}
#: Functions that look at values on the host, so that they wait for the GPU.
WAITING = frozenset(
    "nonzero argwhere flatnonzero unique unique_all unique_counts unique_inverse unique_values "
    "bincount histogram array_equal allclose extract compress trim_zeros digitize".split()
)
_KINDS = {bool: "biufc", int: "iufc", float: "fc", complex: "c"}


@functools.cache
def signature(name: str) -> inspect.Signature:
    """Return a function's signature in CuPy."""
    found = eval(f"lambda {NAMES[name][0][1:-1]}: None")
    return inspect.signature(found)


def check_call(name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any]:
    """Return a call's arguments by name; raise ``TypeError`` if CuPy does not take them."""
    try:
        return signature(name).bind(*args, **kwargs).arguments
    except TypeError as error:
        raise TypeError(f"cupy.{name}{NAMES[name][0]}: {error}") from None


def loop_of(name: str, args: tuple[Any, ...], dtype: Any = None) -> tuple[str, str] | None:
    """Return the types that a ufunc computes with and gives; None if scalars decide.

    Raises
    ------
    TypeError
        If the ufunc has no loop for the arguments.
    """
    loops = [tuple(loop.split("->")) for loop in NAMES[name][1].split()]
    types = [getattr(x, "dtype", None) or type(x) for x in args]
    ranks = ["biufc".index(t.kind) for t in types if isinstance(t, np.dtype)]
    for takes, gives in loops:
        if "E" in takes + gives:  # bfloat16
            continue
        if dtype is not None and (np.dtype(gives[0]) != np.dtype(dtype)):
            continue
        if dtype is not None or all(_fits(t, c) for t, c in zip(types, takes, strict=True)):
            weak = [t for t in types if not isinstance(t, np.dtype)]
            higher = [t for t in weak if "biufc".index(_KINDS[t][0]) > max(ranks, default=-1)]
            return None if higher else (takes, gives)
    raise TypeError(f"Wrong type ({types}) of arguments for cupy.{name}; it has {NAMES[name][1]}")


def _fits(given: Any, wanted: str) -> bool:
    if isinstance(given, np.dtype):
        return np.can_cast(given, wanted, "safe")
    return np.dtype(wanted).kind in _KINDS[given]


def check_values(name: str, given: dict[str, Any]) -> None:
    """Raise what CuPy raises where it takes less than its signature says."""
    first = next(iter(given), None)
    of_arrays = first in _ARRAYS and len(NAMES[name]) == 1 and name not in _TAKE_NUMBERS
    if of_arrays and not isinstance(given[first], np.ndarray):
        kind = type(given[first]).__name__
        raise AttributeError(f"cupy.{name}: {kind!r} object has no attribute 'astype'")
    rule = _RULES.get(name)
    if rule is not None:
        rule(given)
    elif name.startswith("linalg."):
        for x in given.values():
            if getattr(x, "dtype", None) == np.float16 and name not in _HALF:
                raise TypeError("float16 is unsupported in linalg")


def _sorting(given: dict[str, Any]) -> None:
    if given.get("kind") not in (None, "stable"):
        raise ValueError("kind can only be None or 'stable'")


def _systems(given: dict[str, Any]) -> None:
    a, b = given["a"], given["b"]
    if a.dtype == np.float16 or b.dtype == np.float16:
        raise TypeError("float16 is unsupported in linalg")
    if b.ndim > 1 and a.shape[:-1] != b.shape[:-1]:
        raise ValueError(
            "a must have (..., M, M) shape and b must have (..., M, K) for multidimensional b"
        )


#: Names of first arguments that are arrays of CuPy, and functions that take numbers there too.
_ARRAYS = frozenset(("a", "arr", "condition", "m", "n", "v", "x"))
_TAKE_NUMBERS = frozenset(
    "asanyarray asarray ascontiguousarray asfortranarray asnumpy eye identity iscomplexobj "
    "isrealobj isscalar ndim shape size".split()
)
_HALF = {"linalg.norm", "linalg.cross", "linalg.matmul", "linalg.matrix_transpose"}
_RULES = {"argsort": _sorting, "sort": _sorting, "linalg.solve": _systems}

"""``x[index]`` as an op: integers, slices, ``None``, ``...``, integer and boolean arrays."""

from __future__ import annotations

import operator
from functools import lru_cache
from typing import Any

import numpy as np

from .backend import backend_of, to_numpy
from .convert import as_tensor
from .op import is_transformed
from .table import ops
from .tensor import Tensor
from .variable import Variable

__all__ = ["decode_index", "getitem"]


def getitem(x: Any, index: Any) -> Tensor:
    """Return ``x[index]``: basic and advanced indexing with NumPy's meaning.

    Raises
    ------
    IndexError
        If an index is of another kind, too many are given, or one is out of range.
    """
    parts = index if isinstance(index, tuple) else (index,)
    template: list[Any] = []
    arrays: list[Tensor] = []
    for part in parts:
        if part is None:
            template.append("newaxis")
        elif part is Ellipsis:
            template.append("...")
        elif isinstance(part, slice):
            template.append(("slice", *(_bound(n) for n in (part.start, part.stop, part.step))))
        elif isinstance(part, (int, np.integer)) and not isinstance(part, bool):
            template.append(int(part))
        else:
            array = _index_array(part, x.array)
            template.append(("array", len(arrays)))
            arrays.append(array)
    try:
        result: Tensor = ops["getitem"](x, *arrays, index=tuple(template))
    except IndexError as error:
        shape = x.shape
        raise IndexError(f"getitem: index {index!r} does not fit shape {shape}: {error}") from None
    return result


def _bound(n: Any) -> int | None:
    return None if n is None else operator.index(n)


def _index_array(part: Any, beside: Any) -> Tensor:
    if not isinstance(part, (Tensor, Variable, np.ndarray, np.generic, list, bool)):
        raise IndexError(
            "getitem: an index is an integer, a slice, ..., None, or an integer or boolean array; "
            f"got {type(part).__name__}"
        )
    if isinstance(part, list) and not part:
        part = np.zeros(0, np.int64)
    array = as_tensor(part)
    if isinstance(part, (list, bool)) and not is_transformed(beside):
        # a list has no backend of its own: it goes where the indexed array is
        owner = backend_of(beside)
        array = Tensor(owner.asarray(to_numpy(array.array), device=owner.device(beside)))
    if array.dtype.kind not in "biu":
        raise IndexError(
            f"getitem: an index array holds integers or booleans, got dtype {array.dtype}"
        )
    return array


@lru_cache(maxsize=1024)
def _static_index(template: tuple[Any, ...]) -> tuple[Any, ...] | None:
    return None if _uses_arrays(template) else tuple(_part(part, ()) for part in template)


def _uses_arrays(template: tuple[Any, ...]) -> bool:
    return any(isinstance(part, tuple) and part[0] == "array" for part in template)


def decode_index(template: tuple[Any, ...], arrays: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return the index that a kernel applies, from an op's ``index`` parameter and array inputs."""
    if not arrays:
        static = _static_index(template)
        if static is not None:
            return static
    return tuple(_part(part, arrays) for part in template)


def _part(part: Any, arrays: tuple[Any, ...]) -> Any:
    if part == "newaxis":
        return None
    if part == "...":
        return Ellipsis
    if isinstance(part, int):
        return part
    if part[0] == "slice":
        return slice(*part[1:])
    return arrays[part[1]]

"""The state of an object as JSON and arrays: restored exactly, or refused when it is saved."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from typing import Any

import numpy as np

from ...core.extend import Module, Tensor, Variable
from ..container.limits import DTYPES
from ..errors import DamagedFile, SaveError
from ..reading.modules import StateReader
from ..records.schema import encode, is_small
from ..writing.modules import StateWriter

Array = np.ndarray[Any, Any]
_SCALARS = (type(None), bool, int, float, complex, str)


def encode_state(value: Any, path: str, add_array: Callable[[Array], str]) -> Any:
    """Return a state as an attribute's JSON.

    A variable is stored as its value, a tensor.

    Parameters
    ----------
    value
        The state: plain values, arrays and tensors, in lists, tuples, sets and dictionaries.
    path
        Its path, for messages.
    add_array
        Stores an array and returns the path of its dataset.

    Raises
    ------
    SaveError
        If something in it would not come back as it is; the message has the path.
    """
    try:
        return _Writer(add_array).encode(value, path)
    except RecursionError:
        raise SaveError(f"{path}: nested too deeply to be saved") from None


def decode_state(encoded: Any, where: str, array: Callable[[str], Array]) -> Any:
    """Return the state of :func:`encode_state`'s JSON; ``array`` returns a dataset by its path."""
    return _Reader((), (), array).decode(encoded, where)


class _Reader(StateReader):
    """Reads states: attributes that refer to nothing."""

    def decode(self, encoded: Any, where: str) -> Any:
        if type(encoded) is dict and not {"op", "same"}.isdisjoint(encoded):
            raise DamagedFile(f"{where}: not a state: {str(encoded)[:80]}")
        return super().decode(encoded, where)


class _Writer(StateWriter):
    """Writes states as modules' attributes are written, but leaves out and changes nothing."""

    def __init__(self, add_array: Callable[[Array], str]) -> None:
        super().__init__(None, lambda _: None, add_array, lambda _: None, shares=False)

    def encode(self, value: Any, path: str) -> Any:
        if isinstance(value, Module):
            raise SaveError(
                f"{path}: a module in the state of another object is not saved; pass it to the "
                "checkpoint by a name of its own"
            )
        if type(value) is OrderedDict:  # of PyTorch; it equals the dictionary that comes back
            value = dict(value)
        encoded = super().encode(value.value if isinstance(value, Variable) else value, path)
        if encoded is None or self.left_out:
            what = self.left_out[0] if self.left_out else f"{path} ({type(value).__name__})"
            raise SaveError(
                f"{what.replace('; None is in its place', '')}: it would not come back as it is. A "
                "state is of None, booleans, numbers, strings, bytes and arrays, in plain lists, "
                "tuples, sets and dictionaries"
            )
        return encoded

    def _array(self, value: Any) -> Any:
        array = value.numpy() if type(value) is Tensor else value
        if array.dtype.name not in DTYPES or not array.dtype.isnative:
            return None
        tag = "tensor" if type(value) is Tensor else "array"
        return {tag: self._add_array(array)}

    def _container(self, value: Any, path: str) -> Any:
        # long lists of numbers take less space as one value
        return (
            {"value": encode(value, path)} if _is_value(value) else super()._container(value, path)
        )

    def _dict(self, value: dict[Any, Any], path: str) -> Any:
        for key in value:
            if not _is_key(key):
                raise SaveError(
                    f"{path}[{key!r}]: a key of type {type(key).__name__} would not come back as "
                    "it is; use a string, a number, None, or a tuple of them"
                )
        return super()._dict(value, path)


def _is_value(value: Any) -> bool:
    """Return whether a value's JSON is exact without tags of its own."""
    if type(value) in (list, tuple):
        return all(map(_is_value, value))
    if type(value) is dict:
        return all(type(key) is str for key in value) and all(map(_is_value, value.values()))
    return type(value) in _SCALARS and not (type(value) is int and not is_small(value))


def _is_key(key: Any) -> bool:
    if type(key) is tuple:
        return all(map(_is_key, key))
    return type(key) in _SCALARS and not (type(key) is int and not is_small(key))

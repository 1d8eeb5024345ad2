"""The backends of arrays, found by the arrays' types."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...base.handle import Handle
from ...base.table import registry
from ...base.unknown import not_known
from ...errors import BackendMismatch
from ..dispatch import transforms
from .backend import Backend

_by_type: dict[type, Backend] = {}
# Owners from before plugins changed. One whose plugin was removed can still read values.
_before: dict[type, Backend] = {}
# The scopes of backends whose rules need a context, by array type.
_scopes: dict[type, Callable[[Any], AbstractContextManager[Any]]] = {}
_NO_SCOPE = nullcontext()
# The backends that settle arrays, by array type.
settling: dict[type, Backend] = {}


def backend_for_type(array_type: type, asker: str = "this operation") -> Backend:
    """Return the backend that owns ``array_type``."""
    found = _by_type.get(array_type)
    if found is None:
        for candidate in registry().backends.values():
            if candidate.owns(array_type):
                found = _by_type[array_type] = candidate
                if candidate.scope is not None:
                    _scopes[array_type] = candidate.scope
                if candidate.settles:
                    settling[array_type] = candidate
                break
        else:
            raise TypeError(
                f"{asker}: {array_type.__module__}.{array_type.__qualname__} is not an array of "
                f"any backend ({', '.join(registry().backends)})"
            )
    return found


def forget() -> None:
    """Forget which backend owns which type, after the registry changed."""
    _before.update(_by_type)
    _by_type.clear()
    _scopes.clear()
    settling.clear()


def scope_of(arrays: Iterable[Any]) -> AbstractContextManager[Any]:
    """Return the context in which rules may use operators on arrays of a backend."""
    if _scopes:
        for array in arrays:
            scope = _scopes.get(type(array))
            if scope is not None:
                return scope(array)
    return _NO_SCOPE


def settled(arrays: Sequence[Any]) -> Sequence[Any]:
    """Return arrays after :meth:`Backend.settle`, those of each backend together."""
    if not settling:
        return arrays
    found = list(arrays)
    places: dict[Backend, list[int]] = {}
    for i, array in enumerate(found):
        owner = settling.get(type(array))
        if owner is not None:
            places.setdefault(owner, []).append(i)
    for owner, those in places.items():
        for i, array in zip(those, owner.settle([found[i] for i in those]), strict=True):
            found[i] = array
    return found


def backend_of(array: Any) -> Backend:
    """Return the backend that owns an array.

    Parameters
    ----------
    array
        An array of a library that a backend owns.

    Returns
    -------
    Backend
        The backend.

    Raises
    ------
    TypeError
        If it is a value of a trace or of a batch, or if no backend owns arrays of this type.

    Examples
    --------
    >>> from gradtape.plugin import backend_of
    >>> backend_of(np.ones(2)).name
    'numpy'
    """
    if type(array) in transforms or not hasattr(array, "dtype"):
        raise not_known(array, "a tensor's backend")
    return backend_for_type(type(array))


def to_numpy(array: Any) -> NDArray[Any]:
    """Return any backend's array as a NumPy array.

    Parameters
    ----------
    array
        An array of a library that a backend owns.

    Returns
    -------
    numpy.ndarray
        Its value in host memory, which may share memory with it.

    Raises
    ------
    TypeError
        If it is a value of a trace or of a batch, or if no backend owns arrays of this type.

    Examples
    --------
    >>> from gradtape.plugin import to_numpy
    >>> to_numpy(gt.constant([1.0, 2.0]).array).tolist()
    [1.0, 2.0]
    """
    if isinstance(array, (np.ndarray, np.generic)):
        return np.asarray(array)
    if type(array) in transforms or not hasattr(array, "dtype"):
        raise not_known(array, "a tensor's value")
    try:
        owner = backend_of(array)
    except TypeError:
        if type(array) not in _before:
            raise
        owner = _before[type(array)]
    return owner.to_numpy(array)


def shape_witness(tensor: Any) -> Any:
    """Return a tensor with another's shape and dtype that does not keep its value alive."""
    if not isinstance(tensor, Handle):
        return tensor
    array = tensor.array
    owner = _by_type.get(type(array))
    return tensor if owner is None else type(tensor).with_id(owner.shape_witness(array), 0)


def check_same_backend(array: Any, like: Any, what: str) -> None:
    """Raise if ``array`` is on another backend than ``like``."""
    mine, theirs = backend_of(array), backend_of(like)
    if mine is not theirs:
        raise BackendMismatch(
            f"{what}: the value is on backend {mine.name}, it must be on {theirs.name}; "
            f"move it with tensor.to({theirs.name!r})"
        )

"""Dispatch by the types of arrays: which transformation, and which backend, an op runs on.

The backend of an array is found by the array's type. That of a new tensor, and its device, are
those that the user has selected.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

import numpy as np

from ..base.array_types import ArrayHandle
from ..base.context import Setting
from ..base.dtypes import SCALARS, as_dtype, numpy_dtype
from ..base.sizes import Open, as_symbol
from ..base.table import registry
from ..base.user_code import not_known, user_line
from ..errors import BackendMismatch, TraceError
from .backend import Backend

if TYPE_CHECKING:
    from numpy.typing import NDArray

# Array type -> (rank, handler). The highest rank among an op's inputs decides.
transforms: dict[type, tuple[int, Callable[[Any], Callable[..., Any]]]] = {}


def register_array_type(
    array_type: type, rank: int, handler: Callable[[Any], Callable[..., Any]]
) -> None:
    """Make ops run on ``array_type``: they call ``handler(op)`` with their arrays.

    Parameters
    ----------
    array_type
        A type of arrays that no backend owns.
    rank
        If several types meet in one op, the type with the highest rank handles it.
    handler
        ``handler(op)`` returns a function of the op's arrays and parameters.
    """
    transforms[array_type] = (rank, handler)


def is_transformed(array: Any) -> bool:
    """Return whether ``array`` is a symbol, a batch or another of gradtape's own array types."""
    return type(array) in transforms


def check_alive(array: Any) -> Any:
    """Return ``array``; raise ``TraceError`` if its trace or batch has ended."""
    if type(array) in transforms:
        ended = array.ended()
        if ended is not None:
            raise TraceError(f"{user_line()}: {ended}")
    return array


class ScalarTable(dict[tuple[Any, Any], Any]):
    """Python scalars of one type as arrays of a backend, by value and dtype.

    NumPy takes longer to convert a Python float than to multiply a small array by it, and every
    step uses the same constants.
    """

    def __init__(self, convert: Callable[[Any, Any], Any]) -> None:
        super().__init__()
        self.convert = convert

    def __missing__(self, key: tuple[Any, Any]) -> Any:
        value, dtype = key
        array = self.convert(value, dtype)
        if value:  # not 0.0 and -0.0, which would share a key
            if len(self) >= 1024:
                self.clear()
            self[key] = array
        return array


# By the scalar's type (1, 1.0 and True are equal, and hash alike), then by the array's.
scalar_tables: dict[type, dict[type, ScalarTable]] = {kind: {} for kind in SCALARS}


def with_symbols(values: Sequence[Any]) -> list[Any]:
    """Return an op's arrays with weak symbols instead of unknown numbers."""
    dtypes = [numpy_dtype(x.dtype) for x in values if hasattr(x, "dtype")]
    return [as_symbol(x, dtypes) if isinstance(x, Open) else x for x in values]


# -- the backends of arrays ------------------------------------------------------------------------


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
    if not isinstance(tensor, ArrayHandle):
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


# -- the backend of new tensors --------------------------------------------------------------------


# A backend's name and a device; None for the default ones.
_selected: ContextVar[tuple[str | None, str | None]] = ContextVar(
    "gradtape_backend", default=(None, None)
)


def current_backend() -> Backend:
    """Return the backend of new tensors."""
    name = _selected.get()[0]
    found = registry()
    return found.host_backend if name is None else found.backend(name)


def selects() -> bool:
    """Return whether a backend is selected, instead of the default one, that of the host."""
    return _selected.get()[0] is not None


def current_device() -> str | None:
    """Return the device of new tensors; ``None`` for the backend's default."""
    return _selected.get()[1]


@contextmanager
def backend(name: str) -> Iterator[Backend]:
    """Make new tensors on another backend for a block.

    Parameters
    ----------
    name
        ``"numpy"``, ``"cupy"``, or with a device: ``"cupy:1"``.

    Yields
    ------
    Backend
        The backend that makes new tensors inside the block.

    Raises
    ------
    LookupError
        If no plugin provides the backend.
    BackendUnavailable
        If it cannot be used here; the message contains the ``pip install`` command.

    Examples
    --------
    >>> with gt.backend("numpy"):
    ...     x = gt.constant([1.0, 2.0])
    >>> x.device
    'numpy:cpu'
    """
    selected = parse_place(name)
    chosen = registry().backend(selected[0])
    _ = chosen.xp  # fail here, with the reason, rather than at the first op
    with Setting(_selected, selected):
        yield chosen


def placed(owner: Backend, device: str) -> Setting[tuple[str, str | None]]:
    """Make new tensors on a device of a backend for a block."""
    return Setting(_selected, (owner.name, device or None))


#: The device of values that have none yet: those of a trace, which run where the inputs are.
TRACED = "traced"


def place_of(array: Any) -> str:
    """Return the backend and device of an array: ``"cupy:0"``, or :data:`TRACED`."""
    while getattr(array, "batched", False):
        array = array.array
    if type(array) in transforms:
        return TRACED
    owner = backend_of(array)
    return f"{owner.name}:{owner.device(array)}"


def parse_place(name: Any) -> tuple[str, str | None]:
    """Return the backend and the device of ``"cupy:1"``; None for the backend's default."""
    if not isinstance(name, str) and name is not None:
        with suppress(TypeError):
            name = as_dtype(name).name  # the registry says what to write
    if not isinstance(name, str):
        raise TypeError(f"expected the name of a backend, such as 'numpy', got {name!r:.80}")
    head, _, device = name.partition(":")
    return head, device or None

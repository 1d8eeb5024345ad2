"""``Backend``: the owner of one array type; which one makes new tensors; moving between them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from contextvars import ContextVar
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..base.handle import Handle
from ..base.table import registry
from ..base.unknown import not_known
from ..errors import BackendMismatch, BackendUnavailable
from .dispatch import transforms
from .sender import Sender
from .stopwatch import Stopwatch

__all__ = [
    "Backend",
    "backend",
    "backend_of",
    "current_backend",
    "parse_place",
    "shape_witness",
    "to_numpy",
]

# A backend's name and a device; None for the default ones.
_selected: ContextVar[tuple[str | None, str | None]] = ContextVar(
    "gradtape_backend", default=(None, None)
)


class Backend:
    """Base class of backends: subclass it, and return an instance from ``gradtape_backends``.

    Attributes
    ----------
    name
        The name that users select, for instance ``"numpy"``.
    array_module
        The top-level module that defines the backend's array types, or a tuple of such modules; see
        :meth:`owns`.
    """

    name: str = ""
    array_module: str | tuple[str, ...] = ""
    #: Whether its arrays are NumPy's, in host memory: where new tensors are made by default.
    host: bool = False
    #: The array type beside which Python scalars are turned into arrays once; None to leave them.
    scalar_array_type: type | None = None
    #: What returns a context, of an array, in which its operators do what ops do; None if they
    #: always do.
    scope: Callable[[Any], AbstractContextManager[Any]] | None = None
    #: Whether reading a value makes the host wait for a device: kernels then take the way that
    #: serves all values.
    waits: bool = False
    provider: Any = None

    @property
    def xp(self) -> Any:
        """The array namespace that kernels are bound to; imported on first use.

        Raises
        ------
        BackendUnavailable
            If the library or the device is missing, with what to install.
        """
        raise NotImplementedError

    @property
    def special(self) -> Any:
        """Where the library has what ``scipy.special`` has under the same names: ``erf``, ``erfc``,
        ``gammaln``, ``digamma``, ``polygamma``; None if nowhere.

        ``special`` of the array namespace by default.

        Raises
        ------
        ImportError
            If a package that has them is not installed.
        """
        return getattr(self.xp, "special", None)

    def owns(self, array_type: type) -> bool:
        """Return whether arrays of a type are this backend's.

        Parameters
        ----------
        array_type
            A type that no backend was found for yet.

        Returns
        -------
        bool
            Whether the type was defined in ``array_module``, by default.
        """
        root, mine = array_type.__module__.partition(".")[0], self.array_module
        return root in (mine if isinstance(mine, tuple) else (mine,))

    def unavailable(self) -> str | None:
        """Return why the backend cannot be used here, or ``None`` if it can."""
        try:
            self.xp  # noqa: B018 - the import is what is tried
        except BackendUnavailable as error:
            return str(error)
        except Exception as error:  # a library that fails as it likes must not take others down
            return f"backend {self.name!r}: {type(error).__name__}: {error}"
        return None

    def sender(self, device: str | None = None) -> Sender:
        """Return what copies arrays from host memory to a device, beside what it computes.

        Parameters
        ----------
        device
            The device, without the backend's name; the default one if not given.

        Returns
        -------
        Sender
            One that copies by :meth:`asarray`, by default.
        """
        return Sender(self, device)

    def diagnosis(self) -> dict[str, Any]:
        """Return what ``gradtape doctor`` tells of what the backend runs on.

        Returns
        -------
        dict
            JSON values: ``"lines"`` to print, ``"advice"``, and what they were made of; empty, by
            default, if there is nothing to tell. It raises nothing.
        """
        return {}

    def asarray(self, value: Any, dtype: Any = None, device: str | None = None) -> Any:
        """Return a new array with ``value`` (a NumPy array, a number, nested lists).

        Parameters
        ----------
        value
            The value, in host memory, or an array of this backend.
        dtype
            The dtype, if not the value's own.
        device
            The device, if not the backend's default.

        Returns
        -------
        array
            An array of the backend's type.
        """
        raise NotImplementedError

    def to_numpy(self, array: Any) -> NDArray[Any]:
        """Return the array's value in host memory, sharing memory where possible.

        Parameters
        ----------
        array
            An array of this backend.

        Returns
        -------
        numpy.ndarray
            The value, of the same shape and dtype.
        """
        raise NotImplementedError

    def device(self, array: Any) -> str:
        """Return the device of ``array``, as in ``tensor.to("<backend>:<device>")``.

        Parameters
        ----------
        array
            An array of this backend.

        Returns
        -------
        str
            The device without the backend's name; ``"cpu"`` by default.
        """
        return "cpu"

    def shape_witness(self, array: Any) -> Any:
        """Return an array of the same shape and dtype that keeps ``array``'s memory free to go.

        Parameters
        ----------
        array
            An array of this backend.

        Returns
        -------
        array
            An array whose values do not matter; ``array`` itself by default.
        """
        return array

    def weak_scalar(self, value: Any, dtype: Any) -> Any:
        """Return a Python scalar as an array that promotes with ``dtype`` as the scalar would.

        Parameters
        ----------
        value
            A Python number.
        dtype
            The dtype of the array beside it.

        Returns
        -------
        array
            An array without axes; the number itself by default.
        """
        return value

    def compile(self, program: Any, arrays: Sequence[Any]) -> Callable[..., list[Any]] | None:
        """Return what runs a traced program on this backend's arrays.

        It reads variables (``variable.array``) when it runs. Last of all, it checks the shapes
        that the trace did not know (``variable.check_shape``) and assigns the program's
        ``updates`` (``set_arrays``): an error before leaves all variables as they were.

        Parameters
        ----------
        program
            A graph: its ``nodes`` in order, ``inputs``, ``constants``, ``outputs`` and ``updates``.
        arrays
            The arrays of the first call.

        Returns
        -------
        callable or None
            ``run(arrays) -> list of arrays``; an attribute ``explain`` may be a function that
            returns how it runs, as ``fn.explain()`` shows it, and an attribute ``watched`` one that
            runs it and tells of its steps, as ``gt.profile()`` shows them. None, by default, if the
            plain executor is to run the program.
        """
        return None

    def guarded(self, kernel: Callable[..., Any], name: str) -> Callable[..., Any]:
        """Return a kernel as ops call it: where its arrays are, with the library's errors in words.

        Parameters
        ----------
        kernel
            A function of this backend's arrays and an op's parameters: a portable one that
            :meth:`bind` has bound, or a plugin's.
        name
            The op's name.

        Returns
        -------
        callable
            A function of the same arguments; ``kernel`` itself by default.
        """
        return kernel

    def stopwatch(self) -> Stopwatch:
        """Return what measures how long steps take on this backend.

        Returns
        -------
        Stopwatch
            One by the host's clock, by default.
        """
        return Stopwatch()

    def bind(self, kernel: Any) -> Any:
        """Return a portable kernel as a function of this backend's arrays.

        Parameters
        ----------
        kernel
            The name of a function in the array namespace (with dots for a module in it), or
            ``kernel(xp, *arrays, **params)``.

        Returns
        -------
        callable
            ``function(*arrays, **params)``.

        Raises
        ------
        AttributeError
            If the namespace has no function of that name.
        """
        xp = self.xp
        if isinstance(kernel, str):
            target = xp
            for part in kernel.split("."):
                target = getattr(target, part)
            return target

        def bound(*arrays: Any, **params: Any) -> Any:
            return kernel(xp, *arrays, **params)

        return bound


_by_type: dict[type, Backend] = {}
# Those of backends whose rules need a context around them.
_scopes: dict[type, Callable[[Any], AbstractContextManager[Any]]] = {}
_NO_SCOPE = nullcontext()


def backend_for_type(array_type: type, asker: str = "this operation") -> Backend:
    """Return the backend that owns ``array_type``."""
    found = _by_type.get(array_type)
    if found is None:
        for candidate in registry().backends.values():
            if candidate.owns(array_type):
                found = _by_type[array_type] = candidate
                if candidate.scope is not None:
                    _scopes[array_type] = candidate.scope
                break
        else:
            raise TypeError(
                f"{asker}: {array_type.__module__}.{array_type.__qualname__} is no array of a "
                f"backend known here ({', '.join(registry().backends)})"
            )
    return found


def forget() -> None:
    """Forget which backend owns which type, after the registry changed."""
    _by_type.clear()
    _scopes.clear()


def scope_of(arrays: Iterable[Any]) -> AbstractContextManager[Any]:
    """Return the context in which rules may use operators on arrays of a backend."""
    if _scopes:
        for array in arrays:
            scope = _scopes.get(type(array))
            if scope is not None:
                return scope(array)
    return _NO_SCOPE


def backend_of(array: Any) -> Backend:
    """Return the backend that owns ``array``."""
    if type(array) in transforms or not hasattr(array, "dtype"):
        raise not_known(array, "its backend")
    return backend_for_type(type(array))


def to_numpy(array: Any) -> NDArray[Any]:
    """Return any backend's array as a NumPy array."""
    if isinstance(array, (np.ndarray, np.generic)):
        return np.asarray(array)
    if type(array) in transforms or not hasattr(array, "dtype"):
        raise not_known(array, "its value")
    return backend_of(array).to_numpy(array)


def shape_witness(tensor: Any) -> Any:
    """Return a tensor that stands for another's shape and dtype without keeping its value."""
    if not isinstance(tensor, Handle):
        return tensor
    array = tensor.array
    owner = _by_type.get(type(array))
    return tensor if owner is None else type(tensor).with_id(owner.shape_witness(array), 0)


def current_backend() -> Backend:
    """Return the backend on which new tensors are made."""
    name = _selected.get()[0]
    found = registry()
    return found.host_backend if name is None else found.backend(name)


def current_device() -> str | None:
    """Return the device selected for new tensors; ``None`` for the backend's default."""
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
        If it cannot be used here; the message has the ``pip install`` line.

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
    token = _selected.set(selected)
    try:
        yield chosen
    finally:
        _selected.reset(token)


def parse_place(name: str) -> tuple[str, str | None]:
    """Return the backend and the device of ``"cupy:1"``; None for the backend's default."""
    head, _, device = name.partition(":")
    return head, device or None


def check_same_backend(array: Any, like: Any, what: str) -> None:
    """Raise if ``array`` is on another backend than ``like``."""
    mine, theirs = backend_of(array), backend_of(like)
    if mine is not theirs:
        raise BackendMismatch(
            f"{what}: the value is on backend {mine.name}, it must be on {theirs.name}; "
            f"move it with tensor.to({theirs.name!r})"
        )

"""The selection of a backend, and of a device, for new tensors."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from typing import Any

from ...base.dtypes import as_dtype
from ...base.table import registry
from .backend import Backend

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
    token = _selected.set(selected)
    try:
        yield chosen
    finally:
        _selected.reset(token)


@contextmanager
def placed(owner: Backend, device: str) -> Iterator[None]:
    """Make new tensors on a device of a backend for a block."""
    token = _selected.set((owner.name, device or None))
    try:
        yield
    finally:
        _selected.reset(token)


def parse_place(name: Any) -> tuple[str, str | None]:
    """Return the backend and the device of ``"cupy:1"``; None for the backend's default."""
    if not isinstance(name, str) and name is not None:
        with suppress(TypeError):
            name = as_dtype(name).name  # the registry says what to write
    if not isinstance(name, str):
        raise TypeError(f"expected the name of a backend, such as 'numpy', got {name!r:.80}")
    head, _, device = name.partition(":")
    return head, device or None

"""The backend of ``array-api-strict``: it has the functions of the array API standard, no more."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module, util
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..core.errors import BackendUnavailable
from ..core.extend import Backend, hookimpl, register_plugin, registry, unregister_plugin

MODULE = "array_api_strict"


class StrictBackend(Backend):
    """``array_api_strict.Array``, on the library's first device."""

    name = "array-api-strict"
    array_module = MODULE

    @property
    def xp(self) -> Any:
        """The library."""
        try:
            return import_module(MODULE)
        except ImportError as error:
            raise BackendUnavailable(f"{error}; pip install array-api-strict") from error

    def asarray(self, value: Any, dtype: Any = None, device: str | None = None) -> Any:
        """Return a new array."""
        if device not in (None, "cpu"):
            raise ValueError(f"{self.name} has only the device 'cpu' here, not {device!r}")
        return self.xp.asarray(np.array(value, dtype=dtype), copy=True)

    def to_numpy(self, array: Any) -> NDArray[Any]:
        """Return a copy for NumPy."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # on conversions that the standard does not have
            return np.asarray(array)


class _Plugin:
    @staticmethod
    @hookimpl
    def gradtape_backends() -> list[Backend]:
        return [StrictBackend()]


@contextmanager
def strict_backend(wanted: bool = True) -> Iterator[Sequence[str]]:
    """Provide the backend during a block, unless a plugin provides one for these arrays.

    Parameters
    ----------
    wanted
        Whether it is needed.

    Yields
    ------
    sequence of str
        The backend's name, if you need it and the library is installed.
    """
    if not wanted or util.find_spec(MODULE) is None:
        yield ()
        return
    own = [name for name, x in registry().backends.items() if x.array_module == MODULE]
    if own:
        yield own
        return
    register_plugin(_Plugin(), "gradtape.testing")
    try:
        yield (StrictBackend.name,)
    finally:
        unregister_plugin("gradtape.testing")

"""A backend on ``array-api-strict``, which has the functions of the array API standard and no more.

It stands for any library that conforms to the standard: an op that runs here is portable.
"""

from __future__ import annotations

import warnings
from typing import Any

import array_api_strict as strict
import numpy as np
from numpy.typing import NDArray

from gradtape.core.extend import Backend, hookimpl

__all__ = ["NAME", "Plugin", "StrictBackend"]

NAME = "array-api-strict"


class StrictBackend(Backend):
    """``array_api_strict.Array``, on the library's first device."""

    name = NAME
    array_module = "array_api_strict"

    @property
    def xp(self) -> Any:
        return strict

    def asarray(self, value: Any, dtype: Any = None, device: str | None = None) -> Any:
        if device not in (None, "cpu"):
            raise ValueError(f"{NAME} has the device 'cpu' only here, not {device!r}")
        array = np.array(value, dtype=dtype)
        return strict.asarray(array, copy=True)

    def to_numpy(self, array: Any) -> NDArray[Any]:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return np.asarray(array)


class Plugin:
    """Provides the backend."""

    @staticmethod
    @hookimpl
    def gradtape_backends() -> list[Backend]:
        return [StrictBackend()]

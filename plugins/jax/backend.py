"""The JAX backend: arrays on the devices of XLA. JAX is imported when the backend is first used."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...core.extend import Backend, BackendUnavailable, hookimpl

__all__ = ["JaxBackend", "gradtape_backends", "gradtape_kernels"]

INSTALL = 'pip install "gradtape[jax]"'


class JaxBackend(Backend):
    """``jax.Array`` on the devices that JAX finds."""

    name = "jax"
    array_module = ("jax", "jaxlib")  # arrays are jaxlib's, tracers are jax's

    @property
    def xp(self) -> Any:
        return self._jax.numpy

    @cached_property
    def _jax(self) -> Any:
        try:
            import jax
        except ImportError as error:
            raise BackendUnavailable(f"backend 'jax': {error}; {INSTALL}") from error
        return jax

    @property
    def special(self) -> Any:
        import jax.scipy.special

        return jax.scipy.special

    def scope(self) -> Any:
        return self._jax.enable_x64(True)

    def asarray(self, value: Any, dtype: Any = None, device: str | None = None) -> Any:
        jax = self._jax
        with jax.enable_x64(True):
            return jax.numpy.array(value, dtype=dtype)

    def to_numpy(self, array: Any) -> NDArray[Any]:
        return np.asarray(array)

    def bind(self, kernel: Any) -> Any:
        bound = super().bind(kernel)
        jax = self._jax

        def run(*a: Any, **k: Any) -> Any:
            with jax.enable_x64(True):
                return bound(*a, **k)

        return run


@hookimpl
def gradtape_backends() -> list[Backend]:
    return [JaxBackend()]


@hookimpl
def gradtape_kernels() -> dict[tuple[str, str], Callable[..., Any]]:
    return {}

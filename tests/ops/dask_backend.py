"""A backend on Dask's arrays, which are computed when a value is needed: a plugin, all of it."""

import array_api_compat.dask.array as da
import dask
import numpy as np

from gradtape.core.extend import Backend, hookimpl


class DaskBackend(Backend):
    name = array_module = "dask"
    promotes, xp = True, da  # its functions call NumPy's

    def asarray(self, value, dtype=None, device=None):
        if isinstance(value, dask.array.Array):
            return value.copy() if dtype is None else value.astype(dtype)
        return dask.array.from_array(np.array(value, dtype))

    def to_numpy(self, array):
        return np.asarray(array.compute())

    def settle(self, arrays):  # otherwise each step begins from all steps before it
        return dask.persist(*arrays)


@hookimpl
def gradtape_backends():
    return [DaskBackend()]


@hookimpl
def gradtape_kernels():  # Dask's function returns the other triangle by default
    return {("cholesky", "dask"): lambda x: dask.array.linalg.cholesky(x, lower=True)}

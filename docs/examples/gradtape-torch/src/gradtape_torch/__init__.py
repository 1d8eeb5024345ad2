"""PyTorch's tensors as arrays of gradtape: a backend, all of it.

``array-api-compat`` gives PyTorch's functions the names and arguments of the array API standard, in
which gradtape's kernels are written. Both are imported when the backend is first used.
"""

from functools import cached_property

import numpy as np

from gradtape.plugin import Backend, BackendUnavailable, hookimpl

# PyTorch has functions of these names beyond the standard, with other arguments than NumPy's, or
# for tensors alone
NOT_AS_NUMPY = frozenset("einsum fmax fmin fmod gcd heaviside lcm ldexp logaddexp2".split())


class Namespace:
    """What kernels take functions from."""

    def __init__(self, library):
        self._library = library

    def __getattr__(self, name):
        if name in NOT_AS_NUMPY:
            raise AttributeError(name)  # the kernel makes it of the standard's functions, then
        value = getattr(self._library, name)
        setattr(self, name, value)
        return value


class TorchBackend(Backend):
    """``torch.Tensor``: ``with gt.backend("torch"):``, ``tensor.to("torch")``."""

    name = "torch"
    array_module = "torch"

    @cached_property
    def xp(self):
        try:
            import array_api_compat.torch
        except ImportError as error:
            raise BackendUnavailable(
                f"backend 'torch': {error}; pip install torch array-api-compat"
            ) from error
        return Namespace(array_api_compat.torch)

    @property
    def special(self):
        """Functions that the standard has not; PyTorch calls them as SciPy does."""
        return self.xp.special

    def asarray(self, value, dtype=None, device=None):
        """Return a new tensor, on PyTorch's default device if none is said."""
        torch = self.xp
        if isinstance(value, torch.Tensor):
            dtype = None if dtype is None else getattr(torch, np.dtype(dtype).name)
            return value.detach().to(device=device, dtype=dtype, copy=True)
        return torch.tensor(np.array(value, dtype=dtype), device=device)

    def to_numpy(self, array):
        return array.detach().cpu().resolve_conj().resolve_neg().numpy()

    def device(self, array):
        return str(array.device)


BACKEND = TorchBackend()


def unique(x, *, axis=None, equal_nan=True):
    """Return what occurs, where first, which each element is, and how often.

    PyTorch lacks the standard's ``unique_all``, of which the kernel for all libraries is made.
    """
    torch = BACKEND.xp
    if equal_nan and x.is_floating_point() and x.isnan().any():
        raise TypeError("PyTorch takes no nan for equal to another")
    values, inverse, counts = torch.unique(x, return_inverse=True, return_counts=True, dim=axis)
    places = torch.arange(inverse.numel(), device=x.device)
    first = places.new_full(counts.shape, inverse.numel())
    first = first.scatter_reduce(0, inverse.reshape(-1), places, "amin")
    return values, first, inverse, counts


@hookimpl
def gradtape_backends():
    return [BACKEND]


@hookimpl
def gradtape_kernels():
    return {("unique", "torch"): unique}

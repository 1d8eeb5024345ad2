"""The gates of an LSTM's cell, with one call for what all of them compute."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from ...core.extend import ScalarTable
from ..ops.network import lstm
from .elementwise import tanh_slope_on_numpy
from .network import sigmoid_on_numpy

if TYPE_CHECKING:
    from numpy.typing import NDArray

Array: TypeAlias = "NDArray[Any]"
_NUMBERS = ScalarTable(np.array)


def _quick(z: Array, c: Array, *others: Array) -> bool:
    """Return whether arrays have one dtype, and shapes that fit."""
    kind, shape = z.dtype, c.shape
    return (
        kind.char in "fd"
        and z.size > 0
        and z.shape == (*shape[:-1], 4 * shape[-1])
        and c.dtype == kind
        and all(x.dtype == kind and x.shape == shape for x in others)
    )


def _parts(x: Array, units: int) -> tuple[Array, ...]:
    """Return the parts of the input gate, the forget gate, the candidate and the output gate."""
    return tuple(x[..., k * units : (k + 1) * units] for k in range(4))


def lstm_gates_on_numpy(z: Array, c: Array) -> tuple[Array, Array]:
    if c.ndim == 0 or not _quick(z, c):
        return lstm.lstm_gates_kernel(np, z, c)
    units = c.shape[-1]
    # the candidate's sigmoid is not used: one call for all costs less
    i, f, _, o = _parts(sigmoid_on_numpy(z), units)
    share: Array = np.tanh(_parts(z, units)[2])
    share *= i
    new: Array = f * c
    new += share
    h: Array = np.tanh(new)
    h *= o
    return h, new


def lstm_gates_gradient_on_numpy(
    gh: Array, gnew: Array, z: Array, c: Array, new: Array
) -> tuple[Array, Array]:
    if c.ndim == 0 or not _quick(z, c, gh, gnew, new):
        return lstm.lstm_gates_gradient_kernel(np, gh, gnew, z, c, new)
    units, e = c.shape[-1], np.absolute(z)
    np.exp(np.negative(e, e), e)  # at most 1
    below = e + _NUMBERS[1.0, z.dtype]
    slopes: Array = below * below
    np.divide(e, slopes, slopes)
    np.maximum(e, z >= 0, out=e)  # as in sigmoid_on_numpy
    i, f, _, o = _parts(np.divide(e, below, e), units)
    candidate = _parts(z, units)[2]
    g, seen = np.tanh(candidate), np.tanh(new)
    flow = tanh_slope_on_numpy(new, seen)
    flow *= o
    flow *= gh
    flow += gnew
    to_i, to_f, to_g, to_o = _parts(slopes, units)
    to_i *= g
    to_i *= flow
    to_f *= c
    to_f *= flow
    np.multiply(tanh_slope_on_numpy(candidate, g), i, to_g)
    to_g *= flow
    to_o *= seen
    to_o *= gh
    flow *= f
    return slopes, flow

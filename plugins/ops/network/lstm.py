"""The gates of an LSTM's cell, from their inputs to the next states, as one op.

Eager steps of a recurrent network are small, and each op takes longer than its numbers. Compiled
programs compute the formula, as for any other activation.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ....core.extend import (
    Composed,
    F,
    TensorSpec,
    numpy_dtype,
    shapes_differ,
    sizes_differ,
)
from ..common.kernels import as_like, cast_to, in_float32, reals
from ..common.op_builders import op
from ..elementwise.trigonometry import tanh_slope_kernel
from .normalization import by_tape
from .sigmoids import sigmoid_kernel, sigmoid_slope_kernel


def _formula(z: Any, c: Any) -> tuple[Any, Any]:
    """Return the output and the memory, computed by other ops."""
    i, f, g, o = F.split(z, sections=4, axis=-1)
    new = F.sigmoid(f) * c + F.sigmoid(i) * F.tanh(g)
    return F.sigmoid(o) * F.tanh(new), new


def _gradient_formula(gh: Any, gnew: Any, z: Any, c: Any, new: Any) -> tuple[Any, Any]:
    """Return the gradients of the gates' inputs and of the memory before."""
    i, f, g, o = F.split(z, sections=4, axis=-1)
    of_i, of_f, of_g, of_o = F.sigmoid(i), F.sigmoid(f), F.tanh(g), F.sigmoid(o)
    seen = F.tanh(new)
    flow = gnew + gh * of_o * F.tanh_slope(new, seen)
    parts = (
        flow * of_g * F.sigmoid_slope(i, of_i),
        flow * c * F.sigmoid_slope(f, of_f),
        flow * of_i * F.tanh_slope(g, of_g),
        gh * seen * F.sigmoid_slope(o, of_o),
    )
    return F.concatenate(*parts, axis=-1), flow * of_f


@in_float32
def lstm_gates_kernel(xp: Any, z: Any, c: Any) -> tuple[Any, Any]:
    """Return the output and the memory."""
    _shape(z.shape, c.shape)
    i, f, g, o = _parts(reals(z), c.shape[-1])
    new = sigmoid_kernel(xp, f) * c + sigmoid_kernel(xp, i) * xp.tanh(g)
    return sigmoid_kernel(xp, o) * xp.tanh(new), new


@in_float32
def lstm_gates_gradient_kernel(
    xp: Any, gh: Any, gnew: Any, z: Any, c: Any, new: Any
) -> tuple[Any, Any]:
    """Return the gradients of the gates' inputs and of the memory before."""
    # as in _gradient_formula
    dtype = np.result_type(*[numpy_dtype(x.dtype) for x in (gh, gnew, z, c, new)])
    i, f, g, o = _parts(z, c.shape[-1])
    of_i, of_f, of_o = (sigmoid_kernel(xp, x) for x in (i, f, o))
    of_g, seen = xp.tanh(g), xp.tanh(new)
    flow = gnew + gh * of_o * tanh_slope_kernel(xp, new, seen)
    parts = [
        flow * of_g * sigmoid_slope_kernel(xp, i, of_i),
        flow * c * sigmoid_slope_kernel(xp, f, of_f),
        flow * of_i * tanh_slope_kernel(xp, g, of_g),
        gh * seen * sigmoid_slope_kernel(xp, o, of_o),
    ]
    return cast_to(xp, xp.concat(parts, axis=-1), dtype), cast_to(xp, flow * of_f, dtype)


def _parts(z: Any, units: int) -> tuple[Any, ...]:
    """Return the parts of the input gate, the forget gate, the candidate and the output gate."""
    return tuple(z[..., k * units : (k + 1) * units] for k in range(4))


def _shape(z: Any, c: Any) -> Any:
    """Return the shape of the states; raise if that of the gates' inputs does not fit."""
    if z is None or c is None:
        return c
    gates = 4 * c[-1] if c and c[-1] is not None else None
    if len(z) != len(c) or not c or sizes_differ(z[-1], gates) or shapes_differ(z[:-1], c[:-1]):
        raise ValueError(
            f"lstm_gates: gates of shape (..., 4 * units) are needed for a memory of shape {c}, "
            f"got {z}"
        )
    return c


def _spec(z: TensorSpec, c: TensorSpec) -> Any:
    dtype = np.result_type(z.dtype, c.dtype)
    return [(_shape(z.shape, c.shape), dtype)] * 2


def _gradient_spec(*given: TensorSpec) -> Any:
    dtype = np.result_type(*[x.dtype for x in given])
    return [(given[2].shape, dtype), (given[3].shape, dtype)]


def _vjp(
    gs: Sequence[Any], inputs: Sequence[Any], outputs: Sequence[Any], needed: Any
) -> list[Any]:
    grads = F.lstm_gates_gradient(*gs, *inputs, outputs[1])
    return [as_like(g, like) for g, like in zip(grads, inputs, strict=True)]


op(
    "lstm_gates",
    lstm_gates_kernel,
    vjp=_vjp,
    infer=_spec,
    batch=Composed(_formula),
    floating=True,
    inline=True,
    doc="""Return the output and the memory of an LSTM's cell after a step.

    Parameters
    ----------
    z
        The inputs of the gates, of shape ``(..., 4 * units)``: those of the input gate, the forget
        gate, the candidate and the output gate.
    c
        The memory before the step, of shape ``(..., units)``.

    Returns
    -------
    The output ``sigmoid(o) * tanh(new)`` and the memory
    ``new = sigmoid(f) * c + sigmoid(i) * tanh(g)``, of the shape of ``c``.

    References
    ----------
    Gers, Schmidhuber and Cummins, "Learning to forget: continual prediction with LSTM", 2000.
    """,
)
op(
    "lstm_gates_gradient",
    lstm_gates_gradient_kernel,
    vjp=by_tape(_gradient_formula),
    infer=_gradient_spec,
    batch=Composed(_gradient_formula),
    inline=True,
    doc="Return the gradients of ``lstm_gates`` for ``z`` and ``c``.",
)

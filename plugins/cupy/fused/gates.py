"""The gates of an LSTM's cell: a thread for each unit of each example."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..launching import PreparedKernel
from ..writing.source import blocks_for
from .sources import kernel, portable, takes, whole

#: As in the portable kernels: exact where a gate is nearly open.
_SHARED = """\
static __device__ C sigmoid(C x) {
    C e = exp(-fabs(x));
    return (x >= 0 ? (C)1 : e) / (1 + e);
}
static __device__ C sigmoid_slope(C x) {
    C e = exp(-fabs(x)), below = 1 + e;
    return e / (below * below);
}
static __device__ C tanh_slope(C x) {
    C e = exp(-2 * fabs(x)), below = 1 + e;
    return 4 * (e / (below * below));
}
"""
_LOOP = """\
    for (long long t = blockIdx.x * (long long)blockDim.x + threadIdx.x; t < size;
            t += (long long)gridDim.x * blockDim.x) {
        long long at = t / units * units * 4 + t % units;
        C i = load(z[at]), f = load(z[at + units]), g = load(z[at + 2 * units]);
        C o = load(z[at + 3 * units]);
"""
TEXTS = {
    "lstm_gates": f"""\
{_SHARED}
extern "C" __global__ void KERNEL(const T* z, const T* c, T* h, T* memory, long long units,
        long long size) {{
{_LOOP}
        C next = sigmoid(f) * load(c[t]) + sigmoid(i) * tanh(g);
        memory[t] = store(next);
        h[t] = store(sigmoid(o) * tanh(next));
    }}
}}
""",
    "lstm_gates_gradient": f"""\
{_SHARED}
extern "C" __global__ void KERNEL(const T* gh, const T* gnext, const T* z, const T* c,
        const T* memory, T* gz, T* gc, long long units, long long size) {{
{_LOOP}
        C next = load(memory[t]), upstream = load(gh[t]);
        C flow = load(gnext[t]) + upstream * sigmoid(o) * tanh_slope(next);
        gz[at] = store(flow * tanh(g) * sigmoid_slope(i));
        gz[at + units] = store(flow * load(c[t]) * sigmoid_slope(f));
        gz[at + 2 * units] = store(flow * sigmoid(i) * tanh_slope(g));
        gz[at + 3 * units] = store(upstream * tanh(next) * sigmoid_slope(o));
        gc[t] = store(flow * sigmoid(f));
    }}
}}
""",
}


def _ready(xp: Any, name: str, z: Any, c: Any, *others: Any) -> PreparedKernel | None:
    """Return the kernel of an op for these arrays; None if it does not take them."""
    shape = c.shape
    if not shape or z.shape != (*shape[:-1], 4 * shape[-1]) or not takes(z, c, *others):
        return None
    if any(x.shape != shape for x in others):
        return None
    return kernel(xp, name, TEXTS[name], z.dtype)


def _run(
    xp: Any, run: PreparedKernel, arrays: tuple[Any, ...], shapes: tuple[Any, ...], like: Any
) -> tuple[Any, ...]:
    """Run a kernel of arrays, with results of these shapes."""
    size = like.size
    out = tuple([xp.empty(shape, like.dtype) for shape in shapes])
    given = [whole(xp, x) for x in arrays]
    run.launch(blocks_for(size), (*given, *out, like.shape[-1], size))
    return out


def _gates(xp: Any, z: Any, c: Any) -> tuple[Any, ...]:
    run = _ready(xp, "lstm_gates", z, c)
    if run is None:
        found: tuple[Any, ...] = portable("lstm_gates")(xp, z, c)
        return found
    return _run(xp, run, (z, c), (c.shape, c.shape), c)


def _gradient(xp: Any, gh: Any, gnew: Any, z: Any, c: Any, new: Any) -> tuple[Any, ...]:
    run = _ready(xp, "lstm_gates_gradient", z, c, gh, gnew, new)
    arrays = (gh, gnew, z, c, new)
    if run is None:
        found: tuple[Any, ...] = portable("lstm_gates_gradient")(xp, *arrays)
        return found
    return _run(xp, run, arrays, (z.shape, c.shape), c)


KERNELS: dict[str, Callable[..., Any]] = {"lstm_gates": _gates, "lstm_gates_gradient": _gradient}

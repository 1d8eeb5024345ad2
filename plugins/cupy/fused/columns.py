"""Batch normalisation over all axes but the last: a block for each 32 channels."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..launching import PreparedKernel
from .sources import kernel, portable, takes, whole

#: The channels of a block.
_CHANNELS = 32
#: Threads of a block, for few rows and for many.
_FEW_ROWS, _THREADS, _MOST_THREADS = 64, 256, 1024
#: With more rows, CuPy's own functions are faster: they use more blocks.
_MOST_ROWS = 2048

#: ``total`` sums the numbers of a column's threads, in an order that depends on their number.
_SHARED = """\
__shared__ C shared[1024];
static __device__ C total(C x) {
    int t = threadIdx.x;
    __syncthreads();
    shared[t] = x;
    for (int w = blockDim.x / 2; w >= 32; w /= 2) {
        __syncthreads();
        if (t < w) shared[t] += shared[t + w];
    }
    __syncthreads();
    return shared[t % 32];
}
"""
_START = """\
    long long column = (long long)blockIdx.x * 32 + threadIdx.x % 32;
    bool here = column < columns;
    long long step = blockDim.x / 32, first = threadIdx.x / 32, end = here ? rows : 0;
    C count = (C)rows;
"""
_TRAINING = f"""\
{_SHARED}
extern "C" __global__ void __launch_bounds__(1024) KERNEL(const T* x, const T* gamma,
        const T* beta, T* y, T* means, T* variances, long long rows, long long columns,
        double epsilon) {{
{_START}
    C sum = 0, squares = 0;
    for (long long r = first; r < end; r += step) sum += load(x[r * columns + column]);
    C mean = total(sum) / count;
    for (long long r = first; r < end; r += step) {{
        C centred = load(x[r * columns + column]) - mean;
        squares += centred * centred;
    }}
    C variance = total(squares) / count;
    if (!here) return;
    C factor = load(gamma[column]) / sqrt(variance + (C)epsilon), offset = load(beta[column]);
    for (long long r = first; r < end; r += step) {{
        long long at = r * columns + column;
        y[at] = store((load(x[at]) - mean) * factor + offset);
    }}
    if (first) return;
    means[column] = store(mean);
    variances[column] = store(variance);
}}
"""
_GRADIENT = f"""\
{_SHARED}
extern "C" __global__ void __launch_bounds__(1024) KERNEL(const T* gy, const T* gmean,
        const T* gvariance, const T* x, const T* gamma, const T* means, const T* variances, T* gx,
        T* ggamma, T* gbeta, long long rows, long long columns, double epsilon) {{
{_START}
    C mean = here ? load(means[column]) : 0, sum = 0, moments = 0;
    for (long long r = first; r < end; r += step) {{
        long long at = r * columns + column;
        C g = load(gy[at]);
        sum += g;
        moments += g * (load(x[at]) - mean);
    }}
    C upstream = total(sum), moment = total(moments);
    if (!here) return;
    C root = 1 / sqrt(load(variances[column]) + (C)epsilon);
    C factor = load(gamma[column]) * root;
    C slope = (2 * load(gvariance[column]) - factor * root * root * moment) / count;
    C shift = (load(gmean[column]) - factor * upstream) / count;
    for (long long r = first; r < end; r += step) {{
        long long at = r * columns + column;
        gx[at] = store(load(gy[at]) * factor + (load(x[at]) - mean) * slope + shift);
    }}
    if (first) return;
    ggamma[column] = store(moment * root);
    gbeta[column] = store(upstream);
}}
"""


def _suits(x: Any, axis: int, of_channels: tuple[Any, ...]) -> bool:
    if x.ndim == 0 or axis not in (-1, x.ndim - 1) or not takes(x, *of_channels):
        return False
    channels = x.shape[-1:]
    return x.size // channels[0] <= _MOST_ROWS and all(c.shape == channels for c in of_channels)


def _run(
    xp: Any, run: PreparedKernel, x: Any, given: tuple[Any, ...], epsilon: float
) -> tuple[Any, ...]:
    columns = x.shape[-1]
    rows = x.size // columns
    out = (xp.empty(x.shape, x.dtype), *[xp.empty((columns,), x.dtype) for _ in range(2)])
    blocks = -(-columns // _CHANNELS)
    threads = _THREADS if rows <= _FEW_ROWS else _MOST_THREADS
    arrays = [whole(xp, a) for a in given]
    run.launch(blocks, (*arrays, *out, rows, columns, float(epsilon)), threads)
    return out


def _training(
    xp: Any, x: Any, gamma: Any, beta: Any, *, axis: int = -1, epsilon: float = 1e-3
) -> tuple[Any, ...]:
    name, run = "batch_norm_training", None
    if _suits(x, axis, (gamma, beta)):
        run = kernel(xp, name, _TRAINING, x.dtype)
    if run is None:
        params = {"axis": axis, "epsilon": epsilon}
        found: tuple[Any, ...] = portable(name)(xp, x, gamma, beta, **params)
        return found
    return _run(xp, run, x, (x, gamma, beta), epsilon)


def _gradient(
    xp: Any,
    gy: Any,
    gmean: Any,
    gvariance: Any,
    x: Any,
    *of_channels: Any,
    axis: int = -1,
    epsilon: float = 1e-3,
) -> tuple[Any, ...]:
    name, run = "batch_norm_gradient", None
    given = (gy, gmean, gvariance, x, *of_channels)
    if (
        gy.shape == x.shape
        and gy.dtype == x.dtype
        and _suits(x, axis, (gmean, gvariance, *of_channels))
    ):
        run = kernel(xp, name, _GRADIENT, x.dtype)
    if run is None:
        params = {"axis": axis, "epsilon": epsilon}
        found: tuple[Any, ...] = portable(name)(xp, *given, **params)
        return found
    return _run(xp, run, x, given, epsilon)


KERNELS: dict[str, Callable[..., Any]] = {
    "batch_norm_training": _training,
    "batch_norm_gradient": _gradient,
}

"""Softmax and cross-entropies along the last axis: some threads of a block for each row."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..launching import PreparedKernel
from ..writing.formulas import kind_of
from ..writing.source import BLOCK, blocks_for
from .sources import kernel, portable, takes, whole

#: Longer rows need this many others: too few threads would read them.
_LONG, _MANY = 4096, 256

#: What all kernels begin with. ``total`` and ``most`` combine the numbers of a row's threads; all
#: threads of a block call them together, also those without a row.
_SHARED = """\
__shared__ C shared[BLOCK];
static __device__ C larger(C a, C b) { return a > b || a != a ? a : b; }
static __device__ C total(C x, int lane, int width) {
    int t = threadIdx.x;
    __syncthreads();
    shared[t] = x;
    for (int w = width / 2; w > 0; w /= 2) {
        __syncthreads();
        if (lane < w) shared[t] += shared[t + w];
    }
    __syncthreads();
    return shared[t - lane];
}
static __device__ C most(C x, int lane, int width) {
    int t = threadIdx.x;
    __syncthreads();
    shared[t] = x;
    for (int w = width / 2; w > 0; w /= 2) {
        __syncthreads();
        if (lane < w) shared[t] = larger(shared[t], shared[t + w]);
    }
    __syncthreads();
    return shared[t - lane];
}
""".replace("BLOCK", str(BLOCK))
#: A kernel: for each row, the maximum and the sum of the exponentials below it, then ``DO``.
_KERNEL = """\
extern "C" __global__ void KERNEL(const T* x, GIVEN T* out, long long rows, long long n,
        long long width) {
    int w = (int)width, lane = threadIdx.x % w, each = blockDim.x / w;
    for (long long first = (long long)blockIdx.x * each; first < rows;
            first += (long long)gridDim.x * each) {
        long long row = first + threadIdx.x / w, start = row * n, end = row < rows ? n : 0;
        C top = -(C)INFINITE, sum = 0;
        for (long long k = lane; k < end; k += w) top = larger(top, load(x[start + k]));
        top = most(top, lane, w);
        for (long long k = lane; k < end; k += w) sum += exp(load(x[start + k]) - top);
        sum = total(sum, lane, w);
DO
    }
}
""".replace("INFINITE", "__int_as_float(0x7f800000)")


def _elements(value: str, before: str = "") -> str:
    """Return the lines that write a value for each element of a row."""
    return f"""{before}
        for (long long k = lane; k < end; k += w) {{
            C shifted = load(x[start + k]) - top;
            out[start + k] = store({value});
        }}"""


_LABEL = """
        long long label = end ? (long long)labels[row] : 0;
        bool wrong = label < 0 || label >= n;"""
_NAN = "(C)__int_as_float(0x7fc00000)"
_OF_LABELS, _OF_SHARES = "const L* labels,", "const T* labels,"
#: By op, the type of the labels, and what a kernel does with each row.
_ROWS = {
    "softmax": ("", _elements("exp(shifted) / sum")),
    "log_softmax": ("", _elements("shifted - less", "        C less = log(sum);")),
    "sparse_softmax_cross_entropy": (
        _OF_LABELS,
        f"""{_LABEL}
        if (end && lane == 0)
            out[row] = store(wrong ? {_NAN} : log(sum) - (load(x[start + label]) - top));""",
    ),
    "softmax_less_labels": (
        _OF_LABELS,
        _elements(f"wrong ? {_NAN} : exp(shifted) / sum - (C)(k == label)", _LABEL),
    ),
    "softmax_cross_entropy": (
        _OF_SHARES,
        """
        C less = log(sum), loss = 0;
        for (long long k = lane; k < end; k += w) {
            C share = load(labels[start + k]);
            loss += share == 0 ? 0 : share * (load(x[start + k]) - top - less);
        }
        loss = total(loss, lane, w);
        if (end && lane == 0) out[row] = store(-loss);""",
    ),
    "softmax_less_shares": (
        _OF_SHARES,
        _elements(
            "shares * (exp(shifted) / sum) - load(labels[start + k])",
            """
        C shares = 0;
        for (long long k = lane; k < end; k += w) shares += load(labels[start + k]);
        shares = total(shares, lane, w);""",
        ),
    ),
}


def _text(name: str) -> str:
    given, lines = _ROWS[name]
    text = _KERNEL.replace("GIVEN", given).replace("DO", lines.strip("\n"))
    return _SHARED + text


def _threads_of_row(n: int) -> int:
    """Return how many threads share a row: a power of 2."""
    return min(BLOCK, 1 << max(0, n - 1).bit_length())


def _suits(x: Any, axis: int) -> bool:
    if not x.ndim:
        return False
    n = x.shape[-1]
    return (
        axis in (-1, x.ndim - 1)
        and takes(x)
        and (n <= _LONG or x.size // n >= _MANY)
    )  # fmt: skip


def _run(
    xp: Any, run: PreparedKernel, x: Any, labels: tuple[Any, ...], shape: tuple[int, ...]
) -> Any:
    n = x.shape[-1]
    rows, width = x.size // n, _threads_of_row(n)
    out = xp.empty(shape, x.dtype)
    arrays = [whole(xp, a) for a in (x, *labels)]
    run.launch(blocks_for(rows * width), (*arrays, out, rows, n, width))
    return out


def _of_rows(name: str) -> Callable[..., Any]:
    """Return a kernel of one array."""
    text = _text(name)

    def rows_kernel(xp: Any, x: Any, *, axis: int = -1) -> Any:
        run = kernel(xp, name, text, x.dtype) if _suits(x, axis) else None
        if run is None:
            return portable(name)(xp, x, axis=axis)
        return _run(xp, run, x, (), x.shape)

    return rows_kernel


def _with_labels(name: str, reduces: bool) -> Callable[..., Any]:
    """Return a kernel of logits and class labels."""
    text = _text(name)

    def labels_kernel(xp: Any, logits: Any, labels: Any) -> Any:
        run, batch = None, logits.shape[:-1]
        if _suits(logits, -1) and labels.shape == batch and kind_of(labels.dtype) in "iu":
            run = kernel(xp, name, text, logits.dtype, labels.dtype)
        if run is None:
            return portable(name)(xp, logits, labels)
        return _run(xp, run, logits, (labels,), batch if reduces else logits.shape)

    return labels_kernel


def _with_shares(name: str, reduces: bool) -> Callable[..., Any]:
    """Return a kernel of logits and distributions."""
    text = _text(name)

    def shares_kernel(xp: Any, logits: Any, labels: Any, *, axis: int = -1) -> Any:
        run = None
        if logits.shape == labels.shape and takes(logits, labels) and _suits(logits, axis):
            run = kernel(xp, name, text, logits.dtype)
        if run is None:
            return portable(name)(xp, logits, labels, axis=axis)
        shape = logits.shape[:-1] if reduces else logits.shape
        return _run(xp, run, logits, (labels,), shape)

    return shares_kernel


KERNELS: dict[str, Callable[..., Any]] = {
    "softmax": _of_rows("softmax"),
    "log_softmax": _of_rows("log_softmax"),
    "sparse_softmax_cross_entropy": _with_labels("sparse_softmax_cross_entropy", reduces=True),
    "softmax_less_labels": _with_labels("softmax_less_labels", reduces=False),
    "softmax_cross_entropy": _with_shares("softmax_cross_entropy", reduces=True),
    "softmax_less_shares": _with_shares("softmax_less_shares", reduces=False),
}

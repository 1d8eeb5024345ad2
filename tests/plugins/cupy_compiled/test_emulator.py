"""The emulator of kernels: barriers, shared memory and numbers as arguments."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

_SUMS = """\
extern "C" __global__ void KERNEL(const float* x, int n, double scale, float* out) {
    __shared__ float s[256];
    int t = threadIdx.x;
    s[t] = 0;
    for (int i = t; i < n; i += blockDim.x) s[t] += x[blockIdx.x * n + i];
    for (int half = blockDim.x / 2; half; half /= 2) {
        BARRIER
        if (t < half) s[t] += s[t + half];
    }
    if (t == 0) out[blockIdx.x] = s[0] * scale;
}
"""


def _sums(cupy: Any, name: str, barrier: str) -> Any:
    source = _SUMS.replace("KERNEL", name).replace("BARRIER", barrier)
    kernel = cupy.RawKernel(source, name)
    kernel.compile()
    x = np.random.default_rng(0).integers(0, 9, (3, 1000)).astype("float32")
    out = cupy.empty(3, "float32")
    kernel((3,), (256,), (cupy.array(x), np.int32(1000), 2.0, out))
    return out.get(), x.sum(1) * 2


def test_threads_meet_at_barriers(cupy: Any) -> None:
    found, wanted = _sums(cupy, "sums", "__syncthreads();")
    np.testing.assert_array_equal(found, wanted)


def test_a_missing_barrier_gives_wrong_numbers(cupy: Any) -> None:
    found, wanted = _sums(cupy, "sums_without", "if (half == 128) __syncthreads();")
    assert (found != wanted).any()


def test_a_barrier_that_some_threads_leave_out_is_an_error(cupy: Any) -> None:
    with pytest.raises(AssertionError, match="do not meet"):
        _sums(cupy, "sums_apart", "if (t < 3) __syncthreads();")


def test_an_argument_of_another_type_is_an_error(cupy: Any) -> None:
    kernel = cupy.RawKernel('extern "C" __global__ void k(int n, float* x) { x[0] = n; }', "k")
    x = cupy.empty(1, "float32")
    kernel((1,), (1,), (np.int32(3), x))
    assert x.get().tolist() == [3.0]
    with pytest.raises(AssertionError):
        kernel((1,), (1,), (3, x))


def test_shared_memory_has_any_bits_when_a_block_begins(cupy: Any) -> None:
    text = 'extern "C" __global__ void first(float* x) { __shared__ float s[8]; BODY }'
    body = "x[blockIdx.x] = s[0]; __syncthreads(); s[0] = 1;"
    x = cupy.zeros(3, "float32")
    cupy.RawKernel(text.replace("BODY", body), "first")((3,), (8,), (x,))
    assert np.isnan(x.get()).all()


def test_more_than_a_gpu_has_is_an_error(cupy: Any) -> None:
    x = cupy.zeros(3, "float32")
    large = 'extern "C" __global__ void l(float* x) { __shared__ double s[6145]; __syncthreads(); }'
    with pytest.raises(AssertionError, match="more shared memory"):
        cupy.RawKernel(large, "l")((1,), (8,), (x,))
    given = ", ".join(f"float* x{i}" for i in range(513))
    many = f'extern "C" __global__ void many({given}) {{ }}'
    with pytest.raises(AssertionError, match="4104 bytes of arguments"):
        cupy.RawKernel(many, "many")((1,), (8,), (x,) * 513)
    small = 'extern "C" __global__ void small(float* x) { }'
    for blocks, threads in ((0, 8), (2**31, 8), (1, 1025), (1, 512)):
        with pytest.raises(AssertionError, match=r"blocks|threads in a block|tells no bounds"):
            cupy.RawKernel(small, "small")((blocks,), (threads,), (x,))

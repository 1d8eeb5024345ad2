"""Prepared kernels: arrays and numbers as arguments, on each device."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from gradtape.plugins.cupy.launching import PreparedKernel
from gradtape.plugins.cupy.writing.source import MOST_BLOCKS, blocks_for

_TEXT = """\
extern "C" __global__ void KERNEL(const float* x, float* out, int n, double by) {
    for (int t = blockIdx.x * blockDim.x + threadIdx.x; t < n; t += gridDim.x * blockDim.x)
        out[t] = x[t] * by;
}
"""


@pytest.mark.parametrize("size", [1, 256, 1000])
def test_a_kernel_runs_on_each_device_whichever_it_was_made_on(cupy: Any, size: int) -> None:
    kernel = PreparedKernel(cupy, "scaled", _TEXT)
    fixed = kernel.numbers(np.int32(size), np.float64(3))
    for device in range(cupy.cuda.runtime.getDeviceCount()):
        with cupy.cuda.Device(device):
            x, out = cupy.array(np.arange(size, dtype="f")), cupy.empty(size, "f")
            for numbers in (fixed, (np.int32(size), np.float64(3))):
                kernel.launch(blocks_for(size), (x, out, *numbers))
                np.testing.assert_array_equal(cupy.asnumpy(out), np.arange(size) * 3)
                out[...] = cupy.zeros(size, "f")


def test_names_say_what_a_kernel_computes_and_differ_with_the_text(cupy: Any) -> None:
    one, other = (PreparedKernel(cupy, "scaled", text) for text in (_TEXT, _TEXT + "\n"))
    assert one.name.startswith("gradtape_scaled_")
    assert one.name in one.source
    assert one.name != other.name


def test_blocks_are_enough_for_all_threads_and_not_too_many() -> None:
    assert [blocks_for(n) for n in (0, 1, 256, 257)] == [1, 1, 1, 2]
    assert blocks_for(2**40) == MOST_BLOCKS

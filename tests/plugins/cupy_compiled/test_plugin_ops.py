"""Ops of a third-party plugin run by its own CUDA C, eagerly and compiled, with gradients."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import gradtape as gt
from gradtape.plugin import F, Op, hookimpl
from gradtape.plugins.cupy.writing import KernelLaunch, indices, written
from gradtape.plugins.planned import StepKind


def neighbours_rule(lowering: Any, node: Any) -> bool:
    """Add a kernel that multiplies each element by the next one of its row."""
    (x,), (out,) = node.inputs, node.outputs
    n = x.shape[-1]

    def write(writer: Any) -> Any:
        *row, k = indices(out)
        here, there = writer.read(0, [*row, k]), writer.read(0, [*row, f"({k} + 1) % {n}"])
        return writer.kernel([], f"{here} * {there}")

    return written(lowering, node.op.name, (x,), out, write)


REVERSED = """\
extern "C" __global__ void KERNEL(const float* x, float* out) {{
    for (int t = blockIdx.x * blockDim.x + threadIdx.x; t < {count}; t += gridDim.x * blockDim.x)
        out[t] = x[{first} + ({count} - 1 - t) * ({stride})];
}}
"""


def backwards_rule(lowering: Any, node: Any) -> bool:
    """Add a kernel whose whole text is the plugin's."""
    (x,), (out,) = node.inputs, node.outputs
    if x.dtype != np.float32:
        return False
    lowering.add(StepKind.WRITTEN, node.op.name, lowering.kernel(node), (x,), out, write=backwards)
    return True


def backwards(step: Any, place: Any) -> tuple[list[KernelLaunch], list[Any]]:
    array, first, (stride,) = place(step.inputs[0])
    (count,) = step.out.shape
    text = REVERSED.format(count=count, first=first, stride=stride)
    return [KernelLaunch("acme_backwards", text, [array, step.out], threads=count)], []


#: The dtypes in which the plugin has a formula.
WIDE = ("float32", "float64")
OPS = [
    Op(
        "acme::neighbours",
        lambda xp, x: x * xp.roll(x, -1, axis=-1),
        gradients={
            "x": lambda g, x: g * F.roll(x, shift=-1, axis=-1) + F.roll(g * x, shift=1, axis=-1)
        },
        infer=lambda x: (x.shape, x.dtype),
    ),
    Op(
        "acme::backwards",
        lambda xp, x: xp.flip(x),
        gradients={"x": lambda g: F.flip(g)},
        infer=lambda x: (x.shape, x.dtype),
    ),
    Op(
        "acme::cubed",
        lambda xp, x: x * x * x,
        gradients={"x": lambda g, x: g * 3.0 * x * x},
        infer=lambda x: (x.shape, x.dtype),
        batch="elementwise",
    ),
]
LOWERINGS = {
    ("acme::neighbours", "cupy"): neighbours_rule,
    ("acme::backwards", "cupy"): backwards_rule,
    ("acme::cubed", "cuda"): lambda step: (
        ("{0} * {0} * {0}", [step.out.dtype]) if step.out.dtype.name in WIDE else None
    ),
}


class Plugin:
    @staticmethod
    @hookimpl
    def gradtape_ops() -> list[Op]:
        return OPS

    @staticmethod
    @hookimpl
    def gradtape_lowerings() -> dict[tuple[str, str], Any]:
        return LOWERINGS


@pytest.fixture(autouse=True)
def plugin() -> Iterator[None]:
    gt.register_plugin(Plugin(), "acme")
    yield
    gt.unregister_plugin("acme")


def computed(x: Any) -> Any:
    neighbours, backwards, cubed = OPS
    with gt.GradientTape() as tape:
        tape.watch(x)
        y = cubed(neighbours(x[::2].T)) + gt.tanh(x[0, 0])
        total = gt.sum(y) + gt.sum(backwards(x[:, 1]) * x[:, 2]) + gt.sum(gt.max(y, axis=0))
    return y, total, tape.gradient(total, x)


@pytest.mark.parametrize("dtype", ["float16", "float32"])
def test_ops_of_a_plugin_run_by_its_kernels(cupy: Any, dtype: str) -> None:
    x = np.random.default_rng(0).normal(size=(5, 7)).astype(dtype)
    within = {"rtol": 1e-2, "atol": 1e-2} if dtype == "float16" else {"rtol": 1e-5, "atol": 1e-6}
    wanted = computed(gt.constant(x))
    with gt.backend("cupy"):
        there = gt.constant(x)
        function = gt.function(computed)
        for found in (computed(there), *(function(there) for _ in range(5))):
            for a, b in zip(found, wanted, strict=True):
                np.testing.assert_allclose(a.numpy(), b.numpy(), **within)
        text = function.explain(there)
    assert "CUDA graph for each" in text
    calls = [line for line in text.splitlines() if "a call" in line and "acme::" in line]
    assert bool(calls) == (dtype != "float32"), text  # backwards refuses the others
    assert not any("neighbours" in line for line in calls)

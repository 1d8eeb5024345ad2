"""Plans call the kernels that plugins replaced, where eager code calls them, and only there."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest
from table import SAMPLES

import gradtape as gt
from gradtape.plugin import F, hookimpl

Y = gt.constant(np.linspace(-2, 2, 25, dtype=np.float32).reshape(5, 5))


@contextmanager
def replaced(op: str, kernel: Callable[..., Any]) -> Iterator[None]:
    """Let a plugin replace the kernel of an op on NumPy."""

    class Replacing:
        @staticmethod
        @hookimpl
        def gradtape_kernels() -> Any:
            return {(op, "numpy"): kernel}

    gt.register_plugin(Replacing(), "replacing")
    try:
        yield
    finally:
        gt.unregister_plugin("replacing")


def changed(value: Any) -> Any:
    """Return other values, so that a result tells which kernel made it."""
    if isinstance(value, (tuple, list)):
        return type(value)(map(changed, value))
    value = np.asarray(value)
    if value.dtype.kind == "b":
        return ~value
    return (value + 1).astype(value.dtype)


def listed(results: Any) -> list[Any]:
    return [np.asarray(x) for x in (results if isinstance(results, (list, tuple)) else [results])]


def planned() -> list[str]:
    """Return the ops that plans know more of than the kernel."""
    known = gt.registry()
    return [n for n in sorted(SAMPLES) if known.lowering(n, "planned") or known.op(n).view]


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("name", planned())
def test_a_kernel_that_a_plugin_replaces_after_the_trace(name: str) -> None:
    registry = gt.registry()
    op, sample = registry.op(name), SAMPLES[name][0]
    if op.identity or name == "stop_gradient":
        pytest.skip("its result is its input")
    own = op.kernel_for(registry.host_backend)
    args = [gt.constant(x) if isinstance(x, np.ndarray) else x for x in sample.inputs]

    def called(*args: Any) -> Any:
        return F[name](*args, **sample.params)

    traced = gt.function(called, executor="planned")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            traced(*args)
        except (TypeError, gt.errors.GradtapeError) as error:
            pytest.skip(f"the sample is not of a call by users: {error}")
    with replaced(name, lambda *args, **params: changed(own(*args, **params))):
        for mine, right in zip(listed(traced(*args)), listed(called(*args)), strict=True):
            np.testing.assert_array_equal(mine, right)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("executor", ["planned", "default"])
def test_a_generalized_ufunc_replaces_a_kernel(executor: str) -> None:
    with replaced("matmul", np.matmul), gt.executor(executor):
        product = gt.function(gt.grad(lambda x: gt.sum(gt.tanh(x[:3] @ Y))))
        assert product(Y).shape == (5, 5)


def test_formulas_of_other_ops_do_not_call_replaced_kernels() -> None:
    with replaced("multiply", np.hypot):
        mine, right = gt.function(gt.nn.gelu, executor="planned")(Y), gt.nn.gelu(Y)
        np.testing.assert_array_equal(mine, right)

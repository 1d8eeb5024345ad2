"""What a bridge keeps between calls and traces never stands for another value, size or dtype."""

from __future__ import annotations

import threading
from contextlib import nullcontext
from typing import Any

import numpy as np
import pytest

import gradtape as gt


def bridged(library: str, fn: Any) -> Any:
    if library == "jax":
        pytest.importorskip("jax", reason='pip install "gradtape[jax]"')
        return gt.interop.jax.from_jax(fn)
    pytest.importorskip("torch", reason='pip install "gradtape[torch]"')
    return gt.interop.torch.from_torch(fn)


@pytest.fixture(params=["torch", pytest.param("jax", marks=pytest.mark.needs("plugins.jax"))])
def library(request: Any) -> str:
    return str(request.param)


def test_a_number_that_depends_on_an_unknown_size_is_refused(library: str) -> None:
    def traced(fn: Any) -> Any:
        return gt.function(bridged(library, fn), input_signature=[gt.TensorSpec([None], "float32")])

    with pytest.raises(TypeError, match=r"depends on a size that is unknown.*pass results="):
        traced(lambda x: (x * 2, x.shape[0]))(gt.ones(3))
    with pytest.raises(TypeError, match=r"depends on a size that is unknown.*pass results="):
        traced(lambda x: [x[i] for i in range(x.shape[0])])(gt.ones(3))
    found = traced(lambda x: (x * 2, x.ndim, None))(gt.ones(3))
    assert found[0].shape == (3,)
    assert found[1:] == (1, None)


@pytest.mark.parametrize("kind", [gt.constant, gt.Variable])
def test_a_gradient_taken_in_a_trace_is_differentiated_outside_of_it(
    library: str, kind: Any
) -> None:
    """The call is eager, its gradient traced, and the gradient of that eager again."""
    cube = bridged(library, lambda x: x**3)
    x = kind(2.0, dtype="float64")
    with gt.GradientTape() as outer:
        outer.watch(x)
        with gt.GradientTape() as inner:
            inner.watch(x)
            y = cube(x)
        g = gt.function(lambda: inner.gradient(y, x))()
    assert g.item() == 12.0
    assert outer.gradient(g, x).item() == 12.0


@pytest.mark.needs("plugins.jax")
@pytest.mark.parametrize("zero", [float, np.float32, complex, np.float64])
def test_numbers_that_differ_in_the_sign_of_zero_have_their_own_traces(zero: Any) -> None:
    pytest.importorskip("jax", reason='pip install "gradtape[jax]"')

    def angle(x: Any, c: Any) -> Any:
        return gt.atan2(x, gt.constant(c.real, dtype="float32"))

    f = gt.interop.jax.to_jax(angle)
    x = np.zeros((), "float32")
    assert f(x, zero(0.0)).item() == 0.0
    assert f(x, zero(-0.0)).item() == np.float32(np.pi)


@pytest.mark.needs("plugins.jax")
@pytest.mark.parametrize("traced", [False, True])
def test_integers_of_64_bits_keep_their_values_in_jax(traced: bool) -> None:
    pytest.importorskip("jax", reason='pip install "gradtape[jax]"')
    f = gt.interop.jax.from_jax(lambda i, x: (i + 1, x * 2))
    call = gt.function(f) if traced else f
    i, x = call(gt.constant(2**40, dtype="int64"), gt.constant(1.0))
    assert (i.item(), i.dtype, x.dtype) == (2**40 + 1, "int64", "float32")


@pytest.mark.needs("plugins.jax")
def test_results_have_the_structure_of_their_own_shapes_on_each_backend() -> None:
    jnp: Any = pytest.importorskip("jax.numpy", reason='pip install "gradtape[jax]"')
    rows = gt.interop.jax.to_jax(lambda x: [x[i] for i in range(x.shape[0])])
    assert len(rows(jnp.arange(2.0))) == 2
    assert len(rows(jnp.arange(3.0))) == 3
    with gt.backend("jax"):
        assert len(rows(jnp.arange(2.0))) == 2
    assert len(rows(jnp.arange(2.0))) == 2


@pytest.mark.needs("plugins.jax")
def test_results_have_the_structure_of_their_own_shapes_in_each_thread() -> None:
    jnp: Any = pytest.importorskip("jax.numpy", reason='pip install "gradtape[jax]"')
    rows = gt.interop.jax.to_jax(lambda x: [x[i] for i in range(x.shape[0])])
    found: dict[int, int] = {}

    def run(n: int) -> None:
        found[n] = len(rows(jnp.arange(float(n))))

    threads = [threading.Thread(target=run, args=(n,)) for n in range(1, 9)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == {n: n for n in range(1, 9)}


@pytest.mark.needs("plugins.jax")
@pytest.mark.parametrize("recorded", [False, True])
def test_arrays_of_jax_in_other_containers_are_refused(recorded: bool) -> None:
    """They would stay arrays of JAX, and under a tape its tracers."""
    jax: Any = pytest.importorskip("jax", reason='pip install "gradtape[jax]"')
    f = gt.interop.jax.from_jax(lambda x: {"a": jax.tree_util.Partial(max, x)})
    with (
        gt.GradientTape() if recorded else nullcontext(),
        pytest.raises(TypeError, match="arrays in a Partial: return them in lists"),
    ):
        f(gt.ones(2))

"""gradtape's functions and models in JAX programs, and JAX's functions in gradtape programs."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import gradtape as gt

pytestmark = pytest.mark.needs("plugins.jax")
jax: Any = pytest.importorskip("jax", reason='pip install "gradtape[jax]"')
jnp: Any = jax.numpy

to_jax, from_jax = gt.interop.jax.to_jax, gt.interop.jax.from_jax


@pytest.fixture
def x64() -> Iterator[None]:
    with jax.enable_x64(True):
        yield


def drawn(*shape: int, seed: int = 0, dtype: str = "float64") -> Any:
    draw = np.random.default_rng(seed)
    value: Any = draw.normal(size=shape)
    if dtype.startswith("complex"):
        value = value + 1j * draw.normal(size=shape)
    return np.asarray(value, dtype)


#: By name: a function in both languages, and arguments.
FUNCTIONS: dict[str, Any] = {
    "elementwise": (lambda m, x, w: m.sin(x * w) * m.exp(-x), drawn(3, 2), drawn(2, seed=1)),
    "matmul": (lambda m, x, w: m.tanh(x @ w), drawn(3, 4), drawn(4, 2, seed=1)),
    "reduction": (lambda m, x, w: m.prod(x * w, axis=0), drawn(4, 3), drawn(3, seed=1)),
    "complex": (
        lambda m, z, w: z * w * m.conj(z),
        drawn(3, dtype="complex128"),
        drawn(3, dtype="complex128", seed=1),
    ),
    "scalar": (lambda m, x, w: x**3 * w, drawn(), drawn(seed=1)),
    "no elements": (lambda m, x, w: x * w, drawn(0, 3), drawn(3)),
}


def in_jax(f: Any, xs: Any, jit: bool) -> list[Any]:
    """Return the results, gradients and second derivatives of a function of JAX."""
    places = (0, 1)

    def total(y: Any) -> Any:
        return (y * y.conj()).real.sum()

    first = jax.grad(lambda *xs: total(f(*xs)), argnums=places)
    second = jax.grad(lambda *xs: sum(total(g) for g in first(*xs)), argnums=places)

    def run(*xs: Any) -> Any:
        return [f(*xs), *first(*xs), *second(*xs)]

    found: list[Any] = (jax.jit(run) if jit else run)(*map(jnp.asarray, xs))
    return found


@pytest.mark.usefixtures("x64")
@pytest.mark.parametrize("backend", ["numpy", "jax"])
@pytest.mark.parametrize("jit", [False, True])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_gradients_in_jax_are_those_of_jax_alone(name: str, jit: bool, backend: str) -> None:
    f, *xs = FUNCTIONS[name]
    with gt.backend(backend):
        found = in_jax(to_jax(lambda *xs: f(gt, *xs)), xs, jit)
    for a, b in zip(found, in_jax(lambda *xs: f(jnp, *xs), xs, jit), strict=True):
        assert a.dtype == b.dtype
        np.testing.assert_allclose(a, b, rtol=1e-11, atol=1e-12)


def in_gradtape(f: Any, xs: Any) -> list[Any]:
    def total(y: Any) -> Any:
        return gt.sum(gt.abs(y) ** 2)

    def first(*xs: Any) -> Any:
        return gt.grad(lambda *xs: total(f(*xs)), argnums=(0, 1))(*xs)

    second = gt.grad(lambda *xs: sum(total(g) for g in first(*xs)), argnums=(0, 1))(*xs)
    return [f(*xs), *first(*xs), *second]


@pytest.mark.parametrize("backend", ["numpy", "jax"])
@pytest.mark.parametrize("mode", ["eager", "traced", "traced derivatives", "unknown sizes"])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_gradients_in_gradtape_are_those_of_gradtape_alone(
    name: str, mode: str, backend: str
) -> None:
    f, *arrays = FUNCTIONS[name]
    with gt.backend(backend):
        xs = [gt.constant(x) for x in arrays]
        call = from_jax(lambda *xs: f(jnp, *xs))
        if mode == "traced":
            found = in_gradtape(gt.function(call), xs)
        elif mode == "unknown sizes":
            specs = [gt.TensorSpec([None] * x.ndim, x.dtype) for x in xs]
            found = in_gradtape(gt.function(call, input_signature=specs), xs)
        elif mode == "eager":
            found = in_gradtape(call, xs)
        else:
            found = gt.function(lambda *xs: in_gradtape(call, xs))(*xs)
        expected = in_gradtape(lambda *xs: f(gt, *xs), xs)
    for a, b in zip(found, expected, strict=True):
        assert a.dtype == b.dtype
        assert isinstance(a.array, jax.Array) == (backend == "jax")
        np.testing.assert_allclose(a.numpy(), b.numpy(), rtol=1e-11, atol=1e-12)


TRANSFORMS: dict[str, Any] = {
    "vmap": lambda f, x, w: jax.vmap(f, in_axes=(0, None))(x, w),
    "vmap of grad": lambda f, x, w: jax.vmap(
        jax.grad(lambda x, w: f(x, w).sum(), argnums=(0, 1)), in_axes=(0, None)
    )(x, w),
    "grad of vmap": lambda f, x, w: jax.grad(lambda w: jax.vmap(lambda x: f(x, w))(x).sum())(w),
    "jacrev of jacrev": lambda f, x, w: jax.jacrev(jax.jacrev(f))(x, w),
    "scan": lambda f, x, w: jax.grad(
        lambda w: jax.lax.scan(lambda c, x: (f(c, w), x), x[0], x)[0].sum()
    )(w),
    "remat": lambda f, x, w: jax.grad(lambda x: jax.checkpoint(f)(x, w).sum())(x),
}


@pytest.mark.usefixtures("x64")
@pytest.mark.parametrize("backend", ["numpy", "jax"])
@pytest.mark.parametrize("name", TRANSFORMS)
def test_transformations_of_jax(name: str, backend: str) -> None:
    x, w = map(jnp.asarray, (drawn(3, 2), drawn(2, seed=1)))
    with gt.backend(backend):
        found = jax.jit(
            lambda x, w: TRANSFORMS[name](to_jax(lambda x, w: gt.sin(x * w) * x), x, w)
        )(x, w)
    expected = TRANSFORMS[name](lambda x, w: jnp.sin(x * w) * x, x, w)
    for a, b in zip(jax.tree.leaves(found), jax.tree.leaves(expected), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-12, atol=1e-12)


OTHERS: dict[str, Any] = {
    "jvp": lambda f, x: gt.jvp(f, x, x * 2.0)[1],
    "jacobian": lambda f, x: gt.jacobian(f)(x),
    "hessian": lambda f, x: gt.hessian(lambda x: gt.sum(f(x)))(x),
    "hvp": lambda f, x: gt.hvp(lambda x: gt.sum(f(x)), x, x),
}


@pytest.mark.parametrize("name", OTHERS)
def test_derivatives_of_other_kinds_in_gradtape(name: str) -> None:
    x = gt.constant(drawn(3))
    found = OTHERS[name](from_jax(lambda x: jnp.sin(x) * x), x)
    expected = OTHERS[name](lambda x: gt.sin(x) * x, x)
    found, expected = np.asarray(found), np.asarray(expected)
    np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-12)


dtypes = st.sampled_from(["float32", "float16", "int32", "uint8", "bool", "complex64"])
arrays = st.tuples(dtypes, st.lists(st.integers(0, 3), max_size=3))


def values(specs: Any) -> list[Any]:
    return [
        (np.random.default_rng(i).normal(size=shape) * 3).astype(dtype)
        for i, (dtype, shape) in enumerate(specs)
    ]


def tripled(tree: Any, *, factor: int, flag: Any) -> Any:
    return {"a": [x if str(x.dtype) == "bool" else x * factor for x in tree], "b": (flag,)}


@settings(max_examples=40)
@given(st.lists(arrays, max_size=4), st.booleans())
def test_any_structures_and_dtypes_pass_through_in_jax(specs: Any, jit: bool) -> None:
    tree = [jnp.asarray(x) for x in values(specs)]
    call = to_jax(tripled)

    def run(tree: Any) -> Any:
        return call(tree, factor=3, flag=None)["a"]

    found = (jax.jit(run) if jit else run)(tree)
    assert call(tree, factor=3, flag="x")["b"] == ("x",)
    for a, b in zip(found, tripled(tree, factor=3, flag=None)["a"], strict=True):
        assert (a.dtype, a.shape) == (b.dtype, b.shape)
        np.testing.assert_array_equal(a, b)


@settings(max_examples=40)
@given(st.lists(arrays, max_size=4), st.booleans())
def test_any_structures_and_dtypes_pass_through_in_gradtape(specs: Any, traced: bool) -> None:
    tree = [gt.constant(x) for x in values(specs)]
    call = from_jax(tripled)
    found = (gt.function(call) if traced else call)(tree, factor=3, flag=None)
    assert found["b"] == (None,)
    for a, b in zip(found["a"], tripled(tree, factor=3, flag=None)["a"], strict=True):
        assert (a.dtype, a.shape) == (b.dtype, b.shape)
        np.testing.assert_array_equal(a.numpy(), b.numpy())


def test_integers_pass_without_gradients() -> None:
    f = to_jax(lambda x, n: (x * n, n + 1))
    n = jnp.arange(3)
    value, g = jax.value_and_grad(lambda x: f(x, n)[0].sum())(jnp.ones(3))
    assert g.tolist() == [0.0, 1.0, 2.0]
    assert value == 3.0
    assert f(jnp.ones(3), n)[1].dtype == n.dtype


def test_arrays_share_memory_where_jax_can() -> None:
    seen: list[int] = []

    def f(x: Any) -> Any:
        seen.append(np.asarray(x).__array_interface__["data"][0])
        return x * 2.0

    x = jnp.ones(1000)
    with jax.disable_jit():
        to_jax(lambda x: gt.host_call(f, x, results=gt.TensorSpec([1000])))(x)
    assert seen == [x.unsafe_buffer_pointer()]
    buffer = np.zeros(1000 + 16, "float32")
    start = -(buffer.ctypes.data // 4) % 16  # JAX shares what is aligned to 64 bytes
    y = gt.Variable.holding(buffer[start : start + 1000]).value
    seen.clear()
    result = from_jax(lambda x: (seen.append(x.unsafe_buffer_pointer()), x)[1])(y)
    assert seen == [np.asarray(y.array).ctypes.data]
    assert not result.array.flags.writeable


# -- what is refused -------------------------------------------------------------------------------


def test_state_of_a_function_is_refused() -> None:
    count, w = gt.Variable(0.0, trainable=False, name="count"), gt.Variable(2.0, name="scale")
    x = jnp.ones(2)
    with pytest.raises(TypeError, match=r"assigns the variables \['count'\].*gradtape.Module"):
        to_jax(lambda x: x * count.assign_add(1.0).value)(x)
    with pytest.raises(TypeError, match="draws random numbers"):
        to_jax(lambda x: x * gt.random.normal((2,)))(x)
    with pytest.raises(TypeError, match=r"trainable variables \['scale'\]"):
        to_jax(lambda x: x * w)(x)


def test_other_things_are_refused() -> None:
    with pytest.raises(TypeError, match="no tensors of bfloat16"):
        to_jax(gt.sin)(jnp.ones(2, "bfloat16"))
    with pytest.raises(TypeError, match="no tensors of bfloat16"):
        from_jax(lambda x: x.astype("bfloat16"))(gt.ones(2))
    with pytest.raises(TypeError, match="jvp"):
        jax.jvp(to_jax(gt.sin), (jnp.ones(2),), (jnp.ones(2),))
    with pytest.raises(NotImplementedError, match="whole batch"):
        gt.vmap(from_jax(jnp.sin))(gt.ones((2, 2)))
    with pytest.raises(gt.errors.TraceError):
        to_jax(lambda x: x * float(gt.sum(x)))(jnp.ones(2))
    with pytest.raises(TypeError, match="takes a function"):
        to_jax(3)
    with pytest.raises(ValueError, match="no weights yet"):
        to_jax(gt.layers.Dense(2))


def test_errors_cross() -> None:
    def fail(x: Any) -> Any:
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        to_jax(fail)(jnp.ones(2))
    with pytest.raises(KeyError, match="mine"):
        from_jax(fail)(gt.ones(2))
    spec = gt.TensorSpec([2])
    with pytest.raises(Exception, match="mine"):
        jax.jit(to_jax(lambda x: gt.host_call(fail, x, results=spec)))(jnp.ones(2))


def test_threads() -> None:
    f, x = jax.jit(jax.grad(to_jax(lambda x: gt.sum(gt.sin(x) * x)))), jnp.ones(3)
    found: list[Any] = [None] * 6

    def work(i: int) -> None:
        for _ in range(5):
            found[i] = np.asarray(f(x * i))

    threads = [threading.Thread(target=work, args=(i,)) for i in range(6)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    for i, g in enumerate(found):
        np.testing.assert_allclose(g, np.cos(i) * i + np.sin(i) * np.ones(3), rtol=1e-5)


def test_the_flag_of_64_bits_decides_what_jax_gets() -> None:
    f = to_jax(lambda x: (gt.cast(x, "float64"), gt.argmax(x)))
    assert [y.dtype.name for y in f(jnp.ones(2))] == ["float32", "int32"]
    with jax.enable_x64(True):
        assert [y.dtype.name for y in f(jnp.ones(2))] == ["float64", "int64"]
    assert from_jax(jnp.sin)(gt.constant(drawn(2))).dtype == "float64"
    assert from_jax(lambda x: x + jnp.zeros(2))(gt.ones(2)).dtype == "float32"


# -- models ----------------------------------------------------------------------------------------


def network() -> Any:
    gt.random.set_seed(0)
    return gt.layers.Sequential(
        [
            gt.Input((3,)),
            gt.layers.Dense(4, activation="tanh"),
            gt.layers.BatchNorm(),
            gt.layers.Dropout(0.5, seed=1),
            gt.layers.Dense(1),
        ]
    )


@pytest.mark.parametrize("backend", ["numpy", "jax"])
@pytest.mark.parametrize("wide", [False, True])
def test_a_file_trains_in_jax_as_in_gradtape(tmp_path: Path, wide: bool, backend: str) -> None:
    gt.save(network(), tmp_path / "model.h5")
    made, x = gt.load(tmp_path / "model.h5"), drawn(8, 3, dtype="float32")
    with jax.enable_x64(wide) if wide else nullcontext(), gt.backend(backend):
        apply, params, state = gt.interop.jax.load(tmp_path / "model.h5")

        @jax.jit
        def step(params: Any, state: Any) -> Any:
            def loss(params: Any) -> Any:
                y, after = apply(params, state, x, training=True)
                return (y**2).mean(), after

            (value, after), grads = jax.value_and_grad(loss, has_aux=True)(params)
            return {k: params[k] - 0.1 * grads[k] for k in params}, after, value

        values = []
        for _ in range(4):
            params, state, value = step(params, state)
            values.append(float(value))
        result, same = apply(params, state, x)
    assert all(np.array_equal(same[k], state[k]) for k in state)
    optimizer = gt.training.SGD(0.1)
    for value in values:
        with gt.GradientTape() as tape:
            loss = gt.mean(made(x, training=True) ** 2)
        variables = made.trainable_variables
        optimizer.apply_gradients(zip(tape.gradient(loss, variables), variables))
        np.testing.assert_allclose(value, loss.item(), rtol=1e-4)
    np.testing.assert_allclose(result, made(x).numpy(), rtol=1e-3, atol=1e-5)


class Clipped(gt.Module):
    """Has a weight, and a custom gradient."""

    def __init__(self) -> None:
        super().__init__()
        self.w = gt.Variable(np.array([1.0, 2.0, 3.0], "float32"))

    @gt.function
    def __call__(self, x: Any) -> Any:
        @gt.custom_gradient
        def clip(x: Any) -> Any:
            return x * 1.0, lambda g: gt.clip(g, -0.5, 0.5)

        return clip(x * self.w)


@pytest.mark.parametrize("backend", ["numpy", "jax"])
def test_custom_gradients_come_from_the_file_without_its_code(tmp_path: Path, backend: str) -> None:
    made = Clipped()
    made(np.ones((2, 3), "float32"))
    gt.save(made, tmp_path / "model.h5")
    program = f"""
import jax, numpy as np, gradtape as gt
with gt.backend({backend!r}):
    apply, params, state = gt.interop.jax.load({str(tmp_path / "model.h5")!r})
    x = np.ones((2, 3), "float32")
    loss = lambda p, x: (apply(p, state, x)[0] * 7.0).sum()
    g, gx = jax.jit(jax.grad(loss, argnums=(0, 1)))(params, x)
assert g["w"].tolist() == [1.0] * 3, g
assert gx.tolist() == [[0.5, 1.0, 1.5]] * 2, gx
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_values_that_do_not_fit_are_refused() -> None:
    apply, params, state = to_jax(network())
    x = jnp.ones((2, 3))
    with pytest.raises(ValueError, match="lack 'layers/0/kernel'"):
        apply({}, state, x)
    with pytest.raises(ValueError, match=r"'layers/0/kernel' is float32\[2\]"):
        apply({**params, "layers/0/kernel": jnp.ones(2)}, state, x)


def test_64_bit_models_need_the_flag() -> None:
    class Wide(gt.Module):
        def __init__(self) -> None:
            super().__init__()
            self.w = gt.Variable(np.ones(2))

        def __call__(self, x: Any) -> Any:
            return x * self.w

    with pytest.raises(TypeError, match="jax_enable_x64"):
        to_jax(Wide())
    with jax.enable_x64(True):
        apply, params, state = to_jax(Wide())
        assert apply(params, state, jnp.ones(2))[0].dtype == "float64"


def test_an_open_tape_outside_sees_none_of_it() -> None:
    w = gt.constant(2.0)
    with gt.GradientTape() as tape:
        tape.watch(w)
        y = to_jax(gt.sin)(jnp.ones(2))
        z = w * 3.0
    assert tape.gradient(z, w).item() == 3.0
    np.testing.assert_allclose(y, np.sin(np.ones(2)), rtol=1e-6)


def test_jax_functions_are_compiled_with_the_rest_on_its_backend() -> None:
    with gt.backend("jax"):
        f = gt.function(lambda x: gt.sum(from_jax(jnp.sin)(x) * 2.0))
        np.testing.assert_allclose(f(gt.ones(3)).item(), 6 * np.sin(1.0), rtol=1e-6)
        assert "one function of jax.jit" in f.explain(gt.ones(3))

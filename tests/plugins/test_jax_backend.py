"""The JAX backend: devices, 64-bit numbers, compiled programs, and who may hold an array."""

from __future__ import annotations

import subprocess
import sys
import threading
from typing import Any

import numpy as np
import pytest

import gradtape as gt
from gradtape.core.extend import Op, ops
from gradtape.errors import BackendUnavailable

REASON = gt.registry().backend("jax").unavailable()
needs_jax = pytest.mark.skipif(REASON is not None, reason=str(REASON))


def test_importing_gradtape_imports_no_jax() -> None:
    code = (
        "import sys, gradtape as gt; gt.registry(); gt.sin(1.0); "
        "print(any(name.partition('.')[0] in ('jax', 'jaxlib') for name in sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


def test_a_missing_jax_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "jax", None)
    fresh = type(gt.registry().backend("jax"))()
    with pytest.raises(BackendUnavailable, match=r'pip install "gradtape\[jax\]"'):
        _ = fresh.xp


def on_jax(*values: Any) -> list[Any]:
    return [gt.constant(x).to("jax") for x in values]


@needs_jax
def test_devices_are_what_jax_calls_them() -> None:
    (x,) = on_jax([1.0, 2.0])
    assert x.device == "jax:cpu:0"
    with gt.backend("jax:cpu:0"):
        assert gt.ones(2).device == "jax:cpu:0"
    with pytest.raises(ValueError, match=r"no device 'cpu:99'.*'jax:cpu:0'"):
        x.to("jax:cpu:99")


#: Kernels that return what JAX's functions and Python make of numbers.
RESULTS: dict[str, Any] = {
    "weak": lambda jnp, x: jnp.where(x > 0, 1.0, 0.0),
    "numpy": lambda jnp, x: np.where(np.asarray(x) > 0, 1.0, 0.0),
    "number": lambda jnp, x: 1.0,
    "scalar": lambda jnp, x: np.float64(1.0),
    "double": lambda jnp, x: x.astype("float64") * 2,
}


class Kernels:
    """An op with a kernel for JAX for each of the results."""

    @gt.hookimpl
    def gradtape_ops(self) -> list[Any]:
        return [
            Op(
                f"kernels::{name}",
                lambda xp, x: xp.ones_like(x, dtype="float64"),
                gradients={"x": None},
                infer=lambda x: (x.shape, np.dtype("float64")),
            )
            for name in RESULTS
        ]

    @gt.hookimpl
    def gradtape_kernels(self) -> dict[tuple[str, str], Any]:
        import jax.numpy as jnp

        return {
            (f"kernels::{name}", "jax"): lambda x, kernel=kernel: kernel(jnp, x)
            for name, kernel in RESULTS.items()
        }


@needs_jax
@pytest.mark.parametrize("name", sorted(RESULTS))
def test_what_a_kernel_of_a_plugin_returns_is_an_array_of_jax_in_a_strong_dtype(name: str) -> None:
    gt.register_plugin(Kernels(), "kernels")
    try:
        x = gt.constant(1.0).to("jax")
        y = gt.registry().op(f"kernels::{name}")(x)
        assert (y.device, y.dtype) == ("jax:cpu:0", np.float64)
        assert not y.array.weak_type
        assert (y * x).dtype == np.float64
    finally:
        gt.unregister_plugin("kernels")


@needs_jax
def test_a_number_is_weak_in_the_first_call_of_a_program_as_in_later_ones() -> None:
    code = (
        "import gradtape as gt; x = gt.constant([1.0, 2.0]).to('jax'); "
        "print(*(gt.multiply(x, 2.0).dtype for _ in range(2)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["float32", "float32"]


@needs_jax
def test_64_bit_numbers_stay_so_and_the_flag_of_jax_is_left_alone() -> None:
    import jax

    x, n = on_jax(np.array([0.1, 0.2]), np.array([2**40, 3]))
    before = jax.config.jax_enable_x64
    with gt.GradientTape() as tape:
        tape.watch(x)
        y = gt.sum(gt.tanh(x) * 2 + n)
    assert y.dtype == tape.gradient(y, x).dtype == np.float64
    assert gt.vmap(lambda a: a + 2**40)(n).tolist() == [2**41, 2**40 + 3]
    assert jax.config.jax_enable_x64 == before
    assert jax.numpy.ones(1).dtype == (np.float64 if before else np.float32)


@needs_jax
@pytest.mark.parametrize("dtypes", [("int64", "float32"), ("int8", "int32"), ("bool", "float16")])
def test_dtypes_are_those_of_numpy(dtypes: tuple[str, str]) -> None:
    x, y = (np.array([1, 1], dtype) for dtype in dtypes)
    a, b = on_jax(x, y)
    assert (a * b).dtype == (x * y).dtype
    assert (a * 2.0 * b).dtype == (x * 2.0 * y).dtype
    assert gt.sin(a).dtype == np.sin(x).dtype


@needs_jax
@pytest.mark.parametrize("read", [lambda x: x[5], lambda x: x[gt.constant([0, 5]).to("jax")]])
def test_an_index_out_of_range_is_an_error_not_another_element(read: Any) -> None:
    (x,) = on_jax([1.0, 2.0, 3.0])
    with pytest.raises(IndexError, match="out of bounds"):
        read(x)
    with pytest.raises(IndexError, match="out of bounds"):
        gt.take(x, gt.constant([3]).to("jax"))


@needs_jax
def test_of_several_values_for_one_place_the_last_stays() -> None:
    x, places, values = on_jax([0.0, 0.0, 0.0], [1, 1, 2], [4.0, 5.0, 6.0])
    assert x.at[places].set(values).tolist() == [0.0, 5.0, 6.0]


@needs_jax
def test_a_label_out_of_range_is_an_error_or_nan() -> None:
    logits, labels = on_jax([[0.0, 1.0]], [2])

    def loss(labels: Any, logits: Any) -> Any:
        return gt.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=logits)

    with pytest.raises(ValueError, match="labels must be from 0 to 1"):
        loss(labels, logits)
    assert np.isnan(gt.function(loss)(labels, logits).numpy()).all()
    assert np.isnan(gt.function(loss)(labels - 3, logits).numpy()).all()


def trained(steps: int, place: str, hold: list[Any] | None = None) -> list[float]:
    with gt.backend(place):
        v = gt.Variable(np.linspace(-1.0, 1.0, 6).astype(np.float32))
        x = gt.constant(np.arange(6, dtype=np.float32))

        @gt.function
        def step(x: Any) -> Any:
            with gt.GradientTape() as tape:
                loss = gt.sum((gt.tanh(v) * x - 1.0) ** 2)
            v.assign_sub(0.01 * tape.gradient(loss, v))
            return loss

        losses = []
        for _ in range(steps):
            if hold is not None:
                hold.append((v.value, v.numpy(), v.numpy().copy()))
            losses.append(step(x).item())
        if place != "numpy":
            assert "jax.jit" in step.explain(x)
    return losses


@needs_jax
def test_training_compiled_by_xla_is_training_on_numpy() -> None:
    np.testing.assert_allclose(trained(20, "jax"), trained(20, "numpy"), rtol=1e-5)


@needs_jax
def test_arrays_that_somebody_holds_are_never_written() -> None:
    held: list[Any] = []
    assert trained(20, "jax", held) == trained(20, "jax")
    for value, seen, kept in held:
        np.testing.assert_array_equal(value.numpy(), kept)
        np.testing.assert_array_equal(seen, kept)


@needs_jax
def test_threads_read_whole_values_while_a_program_trains() -> None:
    with gt.backend("jax"):
        v = gt.Variable(np.zeros(1000, np.float32))
        one = gt.constant(1.0)
    step = gt.function(lambda x: v.assign_add(gt.broadcast_to(x, (1000,))).value)
    torn: list[Any] = []
    over = threading.Event()

    def reads() -> None:
        while not over.is_set():
            found = v.numpy()
            if (found != found[0]).any():
                torn.append(found)

    readers = [threading.Thread(target=reads) for _ in range(3)]
    for reader in readers:
        reader.start()
    for _ in range(50):
        step(one)
    over.set()
    for reader in readers:
        reader.join()
    assert not torn
    assert v.numpy()[0] == 50.0


@needs_jax
def test_gradients_of_loops_and_branches_are_loops_and_branches() -> None:
    def losses(x: Any) -> Any:
        with gt.GradientTape() as tape:
            tape.watch(x)
            carry, rows = gt.scan(lambda c, a: (gt.sin(c) * a + x[1], c * a), x[0], x, reverse=True)
            chosen = gt.cond(carry > 0, lambda: carry * x[2], lambda: gt.exp(carry))
            loss = chosen + gt.sum(rows)
        return loss, tape.gradient(loss, x)

    values = np.linspace(0.1, 2.0, 200)
    run = gt.function(losses)
    (x,) = on_jax(values)
    for mine, want in zip(run(x), run(gt.constant(values)), strict=True):
        np.testing.assert_allclose(mine.numpy(), want.numpy(), rtol=1e-9)
    assert "jax.jit" in run.explain(x)


@needs_jax
def test_a_custom_gradient_is_kept_in_a_scan() -> None:
    @gt.custom_gradient
    def clipped(x: Any) -> Any:
        return x * x, lambda g: gt.clip(g, -1.0, 1.0)

    def slope(x: Any) -> Any:
        with gt.GradientTape() as tape:
            tape.watch(x)
            total, _ = gt.scan(lambda c, a: (c + clipped(a), None), 0.0, x)
            loss = 5.0 * total
        return tape.gradient(loss, x)

    values = np.array([1.0, 2.0, 3.0], np.float32)
    assert gt.function(slope)(on_jax(values)[0]).tolist() == [1.0, 1.0, 1.0]


@needs_jax
@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
@pytest.mark.parametrize("keys", [[7, 3], [[7, 3], [2**62, 5]]])
def test_uniform_numbers_are_the_same_on_every_backend_and_when_compiled(
    dtype: str, keys: Any
) -> None:
    def draw(key: Any) -> Any:
        return ops["random_uniform"](key, shape=(3, 501), dtype=dtype)

    key = gt.constant(np.array(keys))
    want = draw(key).numpy()
    compiled = gt.function(draw)
    np.testing.assert_array_equal(draw(key.to("jax")).numpy(), want)
    np.testing.assert_array_equal(compiled(key.to("jax")).numpy(), want)
    assert "jax.jit" in compiled.explain(key.to("jax"))


@needs_jax
@pytest.mark.parametrize(("low", "high"), [(0, 10), (-5, 1000003), (0, 2**31 + 12345), (3, 2**32)])
def test_integers_are_the_same_when_compiled(low: int, high: int) -> None:
    def draw(key: Any) -> Any:
        return ops["random_integers"](key, shape=(777,), low=low, high=high)

    key = gt.constant(np.array([11, 4]))
    compiled = gt.function(draw)
    np.testing.assert_array_equal(compiled(key.to("jax")).numpy(), draw(key).numpy())
    assert "jax.jit" in compiled.explain(key.to("jax"))


@needs_jax
@pytest.mark.parametrize("size", [3, 5000])
def test_constants_of_any_size_are_part_of_a_program(size: int) -> None:
    around, x = gt.constant(np.arange(size)), gt.constant(2.0)
    run = gt.function(lambda x: gt.sum(around * x))
    assert run(x.to("jax")).item() == run(x).item() == size * (size - 1)


@needs_jax
def test_indices_that_are_the_same_in_every_run_are_compiled() -> None:
    places = np.arange(900) % 7
    with gt.backend("jax"):
        x = gt.constant(np.arange(7.0))
        f = gt.function(lambda x: (gt.quantile(x, [0.25, 0.5]), gt.take(x, places)))
        found = f(x)
        assert "one function of jax.jit" in f.explain(x)
    assert found[0].to("numpy").tolist() == [1.5, 3.0]
    assert found[1].to("numpy").tolist() == [float(n) for n in places]


def test_what_xla_cannot_compile_runs_op_by_op_and_says_which_op() -> None:
    count = gt.function(lambda x: gt.unique(x))
    (x,) = on_jax([2, 1, 2])
    assert count(x).tolist() == [1, 2]
    assert "op 'unique' needs values" in count.explain(x)


@needs_jax
def test_a_traced_program_is_a_pure_function_for_jax() -> None:
    import jax

    from gradtape.plugins.jax.compiling import pure

    with gt.backend("jax"):
        v = gt.Variable(np.float32(3.0))
        x = gt.constant(np.float32(2.0))
    function = gt.function(lambda x: v.assign_add(x).value * x)
    program = function.get_concrete_function(x).graph
    owner = gt.registry().backend("jax")
    step = pure(program, owner)
    assert step.reads == step.writes == [v]
    with owner.scope():
        outputs, updates = jax.jit(step)([v.value.array], [x.array])
    assert [float(y) for y in (*outputs, *updates)] == [10.0, 5.0]
    assert v.numpy() == 3.0

"""Programs on CuPy: numbers, memory, graphs.

All of it on a pretend CuPy, whose kernels run on the processor; numbers on a real GPU too.
"""

from __future__ import annotations

import gc
import threading
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from executing import Training, within_ulps
from table import SAMPLES

import gradtape as gt
from gradtape.core.extend import SCALARS
from gradtape.errors import PluginError
from gradtape.plugins.cupy.compiled.products import NoLibrary

EACH = pytest.mark.parametrize("how", ["kernels", "default", "cuda_graphs"])
HARD = [np.nan, np.inf, -np.inf, -0.0, 0.0]


def told(function: Any, how: str = "default") -> str:
    """Return what an executor made of a function."""
    with gt.executor(how):
        text: str = function.concrete_functions[0].explain()
        return text


def trained(where: str, how: str, steps: int = 5) -> tuple[Training, list[Any], list[np.ndarray]]:
    with gt.backend(where), gt.executor(how):
        training = Training()
        results = [training.step() for _ in range(steps)]
        return training, results, training.state()


@EACH
def test_training_is_that_on_numpy(either: Any, how: str) -> None:
    training, results, state = trained("cupy", how)
    _, wanted, right = trained("numpy", "plain")
    for mine, theirs in zip(results, wanted, strict=True):
        for x, y in zip(mine, theirs, strict=True):
            assert x.device == "cupy:0"
            np.testing.assert_allclose(x.numpy(), y.numpy(), rtol=1e-4, atol=1e-4)
    for x, y in zip(state, right, strict=True):
        np.testing.assert_allclose(x, y, rtol=1e-3, atol=1e-3)
    text = told(training.run, how)
    assert "node by node" not in text
    assert "a call of the kernel" not in text
    assert "one update of 7 variables" in text
    assert ("a CUDA graph for each of 1 streams" in text) == (how != "kernels")
    assert either.seen.captures in (how != "kernels", None)
    assert either.seen.products != 0
    assert text.count("kernel over") + 2 < 30  # of 176 nodes


def test_a_graph_gives_the_kernels_numbers_bit_for_bit(either: Any) -> None:
    _, results, state = trained("cupy", "kernels")
    for how, launches in (("default", 3), ("cuda_graphs", 4)):
        before = either.seen.graphs
        _, graphed, same = trained("cupy", how)
        # one to check it, and one for each run after that
        assert before is None or either.seen.graphs - before == launches
        for mine, theirs in zip(graphed, results, strict=True):
            assert [x.numpy().tobytes() for x in mine] == [x.numpy().tobytes() for x in theirs]
        assert [x.tobytes() for x in same] == [x.tobytes() for x in state]


@EACH
def test_what_was_handed_out_is_never_written(either: Any, how: str) -> None:
    with gt.backend("cupy"), gt.executor(how):
        training, held = Training(), []
        for _ in range(6):
            given = [*training.step(), *[v.value for v in training.variables]]
            held += [(x, x.numpy().copy()) for x in given]
        gc.collect()
        for x, copy in held:
            np.testing.assert_array_equal(x.numpy(), copy)


@EACH
def test_a_variable_that_somebody_else_sets_is_read_anew(either: Any, how: str) -> None:
    def run(where: str, how: str) -> list[float]:
        with gt.backend(where), gt.executor(how):
            training = Training(gt.training.SGD(0.1))
            losses = training.steps(3)
            for v in training.model.trainable_variables:
                v.assign(v.value * 0.5)
            return [*losses, *training.steps(3)]

    np.testing.assert_allclose(run("cupy", how), run("numpy", "plain"), rtol=1e-4)


@EACH
@pytest.mark.parametrize("wrong", [3, -1])
def test_a_label_out_of_bounds_makes_nan_of_its_loss_and_gradient(
    either: Any, how: str, wrong: int
) -> None:
    def both(x: Any, labels: Any) -> Any:
        with gt.GradientTape() as tape:
            tape.watch(x)
            losses = gt.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=x)
        return losses, tape.gradient(losses, x)

    x, f = np.linspace(-1, 1, 12).reshape(4, 3).astype("float32"), gt.function(both)
    labels = np.array([0, wrong, 2, 1])
    with gt.backend("cupy"), gt.executor(how):
        for _ in range(3):
            found = [y.numpy() for y in f(gt.constant(x), gt.constant(labels))]
            by_node = [y.numpy() for y in both(gt.constant(x), gt.constant(labels))]
    for y, expected in zip(found, by_node, strict=True):
        np.testing.assert_allclose(y, expected, rtol=1e-5, atol=1e-6)
        assert np.isnan(y).reshape(4, -1).all(1).tolist() == [False, True, False, False]
        assert not np.isnan(np.delete(y, 1, 0)).any()


def losses_and_how(where: str, how: str, policy: str) -> tuple[list[float], str]:
    """Train a small model in a precision; return its losses, and how the step ran."""
    gt.random.set_seed(0)
    with gt.backend(where), gt.executor(how), gt.mixed_precision.policy(policy):
        layers = [gt.layers.Dense(16, activation="relu"), gt.layers.Dense(3, dtype="float32")]
        model, optimizer = gt.layers.Sequential(layers), gt.training.Adam(1e-2)
        if policy == "mixed_float16":
            optimizer = gt.mixed_precision.LossScaleOptimizer(optimizer)

        @gt.function
        def step(x: Any, y: Any) -> Any:
            with gt.GradientTape() as tape:
                logits = model(x, training=True)
                loss = gt.mean(
                    gt.nn.sparse_softmax_cross_entropy_with_logits(labels=y, logits=logits)
                )
                scaled = optimizer.scale_loss(loss)
            variables = list(model.trainable_variables)
            optimizer.apply_gradients(zip(tape.gradient(scaled, variables), variables))
            return loss

        x = np.random.default_rng(0).normal(size=(32, 8)).astype("float32")
        data = gt.constant(x), gt.constant(np.arange(32) % 3)
        return [step(*data).item() for _ in range(5)], told(step, how)


@EACH
@pytest.mark.parametrize("policy", ["float32", "mixed_float16", "mixed_bfloat16"])
def test_a_step_in_any_precision_is_kernels_and_products_alone(
    either: Any, how: str, policy: str
) -> None:
    losses, text = losses_and_how("cupy", how, policy)
    assert losses == pytest.approx(losses_and_how("numpy", "plain", policy)[0], rel=1e-3)
    assert "kernels made for these shapes" in text
    assert "a call of the kernel of" not in text
    assert ("a CUDA graph for each of 1 streams" in text) == (how != "kernels")


@EACH
def test_a_profile_tells_of_each_kernel_and_product_by_the_gpus_clock(cupy: Any, how: str) -> None:
    f = gt.function(lambda x, w: gt.sum(gt.tanh(x @ w) * 2.0, axis=1))
    with gt.backend("cupy"), gt.executor(how):
        x, w = gt.ones((4, 3)), gt.ones((3, 5))
        for _ in range(3):
            f(x, w)
        with gt.profile() as p:
            f(x, w)
        after = f(x, w)
    rows = {row.name: row for row in p.rows()}
    assert p.clocks == {"GPU"}
    assert rows["matmul"].calls == rows["tanh_multiply_add"].calls == 1
    assert rows["matmul"].bytes == 4 * 5 * 4
    assert cupy.timeline.ranges == []
    np.testing.assert_allclose(after.numpy(), np.full(4, 10 * np.tanh(3)), rtol=1e-6)


@EACH
def test_old_and_new_values_of_a_variable_are_told_apart(either: Any, how: str) -> None:
    def run(where: str, how: str) -> list[Any]:
        with gt.backend(where), gt.executor(how):
            v, w = gt.Variable(np.ones(20000, "float32")), gt.Variable(np.ones(3, "float32"))

            @gt.function
            def step(x: Any) -> Any:
                old, turned = v.value, gt.reshape(v.value, (4, 5000))
                v.assign(old * 2.0 + x)
                w.assign(x + w.value)
                return old, turned, v.value, x, w.value

            found = []
            for i in range(4):
                found += [y.numpy() for y in step(gt.constant(np.float32(i)))]
            return found

    for x, y in zip(run("cupy", how), run("numpy", "plain"), strict=True):
        np.testing.assert_array_equal(x, y)


@EACH
def test_other_shapes_have_plans_of_their_own_and_too_many_run_by_nodes(
    either: Any, how: str
) -> None:
    f = gt.function(
        lambda x: gt.sum(gt.exp(x) * x + 1.0, axis=0), input_signature=[gt.TensorSpec((None, 3))]
    )
    with gt.backend("cupy"), gt.executor(how):
        for dry in (True, False, False):  # all kernels are compiled at once
            either.seen.dry = dry
            for n in range(1, 20):
                x = np.linspace(-1, 1, 3 * n).reshape(n, 3).astype("float32")
                found = f(gt.constant(x)).numpy()
                wanted = (np.exp(x) * x + 1).sum(0)
                assert dry or np.allclose(found, wanted, rtol=1e-5)
    assert told(f, how).count("kernels made for these shapes") == 16
    assert "others node by node: further shapes" in told(f, how)


def test_arrays_of_any_strides_come_as_they_are(either: Any) -> None:
    f = gt.function(lambda x, y: gt.exp(x) * y + gt.transpose(y * 2.0))
    with gt.backend("cupy"):
        x = gt.constant(np.arange(16.0).reshape(4, 4))
        found = f(gt.transpose(x), x[::-1]).numpy()
    host = np.arange(16.0).reshape(4, 4)
    np.testing.assert_allclose(found, np.exp(host.T) * host[::-1] + (host[::-1] * 2).T)


@EACH
def test_arrays_are_computed_with_on_their_device(cupy: Any, how: str) -> None:
    f = gt.function(lambda x: gt.tanh(x) * 2.0 + x)
    x = gt.constant([0.5, 1.0])
    with gt.executor(how):
        for _ in range(3):
            for device in ("cupy:0", "cupy:1"):
                assert f(x.to(device)).device == device
    assert "on device 1" in told(f, how)


# -- graphs --------------------------------------------------------------------------------------


def graphed(function: Callable[..., Any], *xs: Any, times: int = 3) -> tuple[Any, Any]:
    f = gt.function(function)
    with gt.backend("cupy"), gt.executor("cuda_graphs"):
        for _ in range(times):
            found = f(*[gt.constant(x) for x in xs])
    return f, found


def test_what_may_ask_the_host_is_not_captured(either: Any) -> None:
    f, found = graphed(lambda x: gt.cumsum(gt.exp(x) + 1.0), np.zeros(5000, "float32"))
    assert found.tolist() == [2.0 * k for k in range(1, 5001)]
    assert either.seen.captures in (0, None)
    assert "no CUDA graph: the kernel of cumsum is called" in told(f, "cuda_graphs")


def test_a_driver_that_refuses_leaves_the_kernels(cupy: Any) -> None:
    cupy.seen.refuse = "cudaErrorStreamCaptureInvalidated"
    f, found = graphed(lambda x: gt.exp(x) + 1.0, np.zeros(3, "float32"))
    assert found.tolist() == [2.0, 2.0, 2.0]
    text = told(f, "cuda_graphs")
    assert "no CUDA graph: RuntimeError: cudaErrorStreamCaptureInvalidated" in text


def test_a_graph_that_gives_other_numbers_is_not_used(cupy: Any, monkeypatch: Any) -> None:
    real = cupy.cuda.Stream.end_capture

    def short(self: Any) -> Any:
        graph = real(self)
        del graph.recorded[-1:]
        return graph

    monkeypatch.setattr(cupy.cuda.Stream, "end_capture", short)
    f, found = graphed(lambda x: (gt.exp(x) + 1.0) @ x, np.ones((2, 2), "float32"))
    np.testing.assert_allclose(found.numpy(), np.full((2, 2), 2 * (np.e + 1)), rtol=1e-6)
    assert "no CUDA graph: the graph gave other" in told(f, "cuda_graphs")


def test_each_stream_has_a_graph_of_its_own(cupy: Any) -> None:
    f = gt.function(lambda x: gt.exp(x) * 2.0)
    x = gt.constant([0.0, 1.0]).to("cupy")
    with gt.executor("cuda_graphs"):
        for stream in (cupy.cuda.Stream(), cupy.cuda.Stream(), cupy.cuda.Stream(ptds=True)):
            with stream:
                for _ in range(3):
                    np.testing.assert_allclose(f(x).numpy(), np.exp([0, 1]) * 2, rtol=1e-6)
    assert cupy.seen.captures == 2  # that of each thread has one address for all threads


@EACH
def test_threads_do_not_meet_in_a_buffer(either: Any, how: str) -> None:
    f = gt.function(lambda x: gt.sum(gt.exp(x) @ gt.transpose(x * 2.0) + 1.0, axis=0))
    wrong: list[Any] = []

    def run(seed: int) -> None:
        x = np.random.default_rng(seed).normal(size=(5, 5))
        with gt.backend("cupy"), gt.executor(how):
            for _ in range(40):
                found = f(gt.constant(x)).numpy()
                if not np.allclose(found, (np.exp(x) @ (x * 2).T + 1).sum(0)):
                    wrong.append(found)

    run(0)
    threads = [threading.Thread(target=run, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


# -- what goes wrong -----------------------------------------------------------------------------


def test_a_kernel_that_does_not_compile_leaves_the_program_to_run_by_nodes(
    cupy: Any, monkeypatch: Any
) -> None:
    def fail(self: Any, log_stream: Any = None) -> None:
        raise RuntimeError("nvrtc: error: failed to load builtins")

    monkeypatch.setattr(cupy.RawKernel, "compile", fail)
    f = gt.function(lambda x: gt.exp(x) + 1.0)
    with gt.backend("cupy"), pytest.warns(RuntimeWarning, match="nvrtc: error"):
        assert f(gt.constant([0.0])).tolist() == [2.0]
    assert "'plain', because this one failed (RuntimeError: nvrtc: error" in told(f)


def test_a_kernel_of_another_shape_or_dtype_is_not_read_as_memory(cupy: Any) -> None:
    class Plugin:
        @gt.hookimpl
        def gradtape_kernels(self) -> Any:
            return {("cumsum", "cupy"): lambda x, **params: x[:1]}

    gt.register_plugin(Plugin(), "wrong")
    try:
        f = gt.function(lambda x: gt.cumsum(x) * 2.0 + 1.0)
        with (
            gt.backend("cupy"),
            pytest.raises(PluginError, match=r"'cumsum'.*float32\[2\].*returned float32\[1\]"),
        ):
            f(gt.constant([1.0, 2.0]))
    finally:
        gt.unregister_plugin("wrong")


# -- many programs -------------------------------------------------------------------------------


def _hardened(x: Any) -> Any:
    if type(x) in SCALARS or x.dtype.kind != "f" or not x.size:
        return x
    flat = x.copy().reshape(-1)
    count = min(len(HARD), flat.size)
    flat[:count] = HARD[:count]
    return flat.reshape(x.shape)


def _elementwise(name: str) -> bool:
    kernel = gt.registry().ops[name].kernel
    home = getattr(kernel, "__module__", "") or ""
    return isinstance(kernel, str) or ".elementwise." in home or ".activations" in home


def _run(f: Any, xs: Any, how: str) -> Any:
    with gt.backend("cupy"), gt.executor(how), warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        try:
            found = f(*[gt.constant(x) for x in xs])
        except Exception as error:
            return type(error)
        return [x.numpy() for x in (found if isinstance(found, (list, tuple)) else [found])]


def _compared(cupy: Any, cases: list[tuple[str, Any, Any]], ulps: int = 2) -> list[str]:
    """Return what differs between kernels and eager calls of CuPy's functions."""
    cupy.seen.dry = True  # so that all kernels are compiled at once
    for _, f, xs in cases:
        # another function: constants of plans are computed by kernels, which do not run now
        _run(gt.function(f.python_function), xs, "default")
    cupy.seen.dry = False
    wrong = []
    for name, f, xs in cases:
        mine, right = _run(f, xs, "default"), _run(f, xs, "plain")
        if isinstance(right, type) or isinstance(mine, type):
            same = mine is right
        else:
            same = all(within_ulps(x, y, ulps) for x, y in zip(mine, right, strict=True))
        if not same:
            wrong.append(f"{name}: {mine} for {right}")
    return wrong


def test_all_elementwise_ops_give_what_they_give_eagerly_at_hard_numbers(either: Any) -> None:
    cases = []
    for name in filter(_elementwise, sorted(SAMPLES)):
        op = gt.registry().ops[name]
        for sample in SAMPLES[name]:
            inputs = [_hardened(x) for x in sample.inputs]

            def run(*tensors: Any, op: Any = op, inputs: Any = inputs, sample: Any = sample) -> Any:
                given = iter(tensors)
                now = [x if type(x) in SCALARS else next(given) for x in inputs]
                out = op(*now, **sample.params)
                return out if isinstance(out, list) else [out, out + out]

            cases.append((name, gt.function(run), [x for x in inputs if type(x) not in SCALARS]))
    assert not (wrong := _compared(either, cases)), "\n".join(wrong)
    assert len(cases) > 100


def _random_program(seed: int) -> tuple[Any, list[np.ndarray]]:
    """Return a program of steps that are drawn, over shapes that broadcast, with sums and views."""
    draw = np.random.default_rng(seed)
    xs = [draw.normal(size=s) for s in ((4, 6), (6,), (4, 1), (6, 4), ())]
    plan = [(int(draw.integers(9)), draw.integers(0, 50, 2).tolist()) for _ in range(14)]

    def program(*tensors: Any) -> Any:
        values = list(tensors)
        for kind, (i, j) in plan:
            x = values[i % len(values)]
            fit = [y for y in values if _fits(x.shape, y.shape)]
            y = fit[j % len(fit)]
            values.append(
                x * y + 0.5 if kind == 0 else gt.where(x > y, x, y * 2.0) if kind == 1
                else gt.tanh(x - y) if kind == 2 else gt.maximum(x, y) if kind == 3
                else gt.transpose(x) if kind == 4 else gt.sum(x, axis=0) if kind == 5 and x.shape
                else gt.sum(gt.square(x) / 8, axis=-1, keepdims=True) if kind == 6 and x.shape
                else gt.reshape(x, (-1,)) if kind == 7 else gt.exp(-gt.abs(x)) + y
            )  # fmt: skip
        return values[len(tensors) :]

    return program, xs


def _fits(a: Any, b: Any) -> bool:
    try:
        np.broadcast_shapes(a, b)
    except ValueError:
        return False
    return True


def test_random_programs_give_what_they_give_eagerly(either: Any) -> None:
    cases = []
    for seed in range(24):
        program, xs = _random_program(seed)
        cases.append((f"program {seed}", gt.function(program), xs))
    # sums are added up in another order
    wrong = _compared(either, cases, ulps=4096)
    assert not wrong, "\n".join(wrong)
    assert all("kernels made for these shapes" in told(f) for _, f, _ in cases)


# -- products ------------------------------------------------------------------------------------

FACTORS = [
    ((3, 4), (4, 5)), ((1, 4), (4, 1)), ((3, 1), (1, 5)), ((1, 1), (1, 1)),
    ((2, 3, 4), (2, 4, 5)), ((2, 3, 4), (1, 4, 5)), ((3, 4), (2, 4, 5)),
    ((2, 1, 3, 4), (1, 3, 4, 5)), ((2, 3, 4), (4, 5)), ((1, 3, 4), (1, 4, 5)),
]  # fmt: skip


@EACH
@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_products_of_matrices_and_of_their_transposes(either: Any, dtype: str, how: str) -> None:
    def product(x: Any, y: Any) -> Any:
        with gt.GradientTape() as tape:
            tape.watch([x, y])
            z = (x * 1.0) @ (y * 1.0)
        return z, *tape.gradient(z, [x, y])

    draw = np.random.default_rng(0)
    given = [[draw.integers(-4, 5, shape).astype(dtype) for shape in pair] for pair in FACTORS]
    made = [gt.function(product) for _ in FACTORS]
    with gt.backend("cupy"), gt.executor(how):
        either.seen.dry = True  # so that all kernels are compiled at once
        for f, xs in zip(made, given, strict=True):
            gt.function(f.python_function)(*map(gt.constant, xs))
        either.seen.dry = False
    for f, (x, y), shapes in zip(made, given, FACTORS, strict=True):
        with gt.backend("cupy"), gt.executor(how):
            for _ in range(3):
                found = [z.numpy() for z in f(gt.constant(x), gt.constant(y))]
        wanted = [z.numpy() for z in product(gt.constant(x), gt.constant(y))]
        for mine, right in zip(found, wanted, strict=True):
            np.testing.assert_array_equal(mine, right, err_msg=str(shapes))


LAYOUTS: dict[str, Callable[[Any], Any]] = {
    "rows": gt.constant,
    "columns": lambda x: gt.transpose(gt.constant(np.ascontiguousarray(x.T))),
    "some rows": lambda x: gt.constant(np.repeat(x, 2, axis=0))[::2],
    "some columns": lambda x: gt.constant(np.repeat(x, 2, axis=1))[:, ::2],
    "backwards": lambda x: gt.constant(x[::-1].copy())[::-1],
    "one row over and over": lambda x: gt.broadcast_to(gt.constant(x[:1]), x.shape),
}


@pytest.mark.parametrize("right", LAYOUTS)
@pytest.mark.parametrize("left", LAYOUTS)
def test_products_of_inputs_with_any_strides(either: Any, left: str, right: str) -> None:
    draw = np.random.default_rng(0)
    x, y = draw.normal(size=(6, 4)), draw.normal(size=(4, 3))
    with gt.backend("cupy"):
        a, b = LAYOUTS[left](x), LAYOUTS[right](y)
        found = gt.function(lambda x, y: x @ y)(a, b)
        np.testing.assert_allclose(found.numpy(), a.numpy() @ b.numpy(), rtol=1e-12)


def test_without_cublas_cupy_multiplies_and_nothing_is_captured(cupy: Any) -> None:
    cupy.seen.cublas = NoLibrary("libcublas.so.13 cannot be loaded")
    f, found = graphed(lambda x: gt.exp(x) @ x, np.ones((2, 2)))
    np.testing.assert_allclose(found.numpy(), np.full((2, 2), 2 * np.e))
    assert cupy.seen.products == 0
    assert cupy.seen.captures == 0
    why = "no CUDA graph: CuPy's products cannot be captured, and libcublas.so.13 cannot be loaded"
    assert why in told(f, "cuda_graphs")


@EACH
def test_products_around_a_loop_with_products(either: Any, how: str) -> None:
    def program(x: Any) -> Any:
        h = x @ x  # before, within, and after a program of the loop's own
        h = gt.while_loop(
            lambda i, h: i < 3, lambda i, h: (i + 1, gt.tanh(h @ x)), [gt.constant(0), h]
        )[1]
        return h @ x

    x = np.random.default_rng(0).normal(size=(4, 4))
    f = gt.function(program)
    with gt.backend("cupy"), gt.executor(how):
        for _ in range(4):
            np.testing.assert_allclose(f(gt.constant(x)).numpy(), program(x).numpy(), rtol=1e-12)

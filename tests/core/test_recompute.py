"""``recompute_grad``: the gradients of the function, without what it computed on the way."""

from __future__ import annotations

import functools

import numpy as np
import pytest

import gradtape as gt

w = gt.Variable(2.0)


def block(x):
    return gt.sin(x * w) * gt.exp(x)


recomputed = gt.recompute_grad(block)


def test_gradients_of_every_order_are_those_of_the_function() -> None:
    found = []
    x = gt.constant(0.7)
    for f in (block, recomputed):
        with gt.GradientTape() as outer:
            outer.watch(x)
            with gt.GradientTape() as inner:
                inner.watch(x)
                y = f(x)
            first = inner.gradient(y, [x, w])
        second = outer.gradient(first, [x, w])
        found.append([g.item() for g in (y, *first, *second)])
    np.testing.assert_allclose(found[1], found[0], rtol=1e-6)


def test_the_tape_keeps_one_record_and_watches_the_variables_read() -> None:
    x = gt.constant(0.7)
    with gt.GradientTape() as tape:
        tape.watch(x)
        recomputed(x)
    assert "1 records" in repr(tape)
    assert tape.watched_variables() == (w,)


def test_the_function_runs_again_in_the_backward_pass_alone() -> None:
    runs = []

    @gt.recompute_grad
    def noted(x):
        runs.append(x)
        return x * x

    x = gt.constant(3.0)
    assert noted(x).item() == 9.0
    assert len(runs) == 1  # no tape, nothing to go back through
    with gt.GradientTape() as tape:
        tape.watch(x)
        y = noted(x)
    assert len(runs) == 2
    assert tape.gradient(y, x).item() == 6.0
    assert len(runs) == 3


def test_containers_keywords_and_several_results() -> None:
    @gt.recompute_grad
    def pair(p, scale=1.0):
        return {"a": p["x"] * scale, "b": p["y"] ** 2}

    p = {"x": gt.constant(2.0), "y": gt.constant(3.0)}
    with gt.GradientTape() as tape:
        tape.watch(p)
        out = pair(p, scale=4.0)
        total = out["a"] + out["b"]
    assert {k: g.item() for k, g in tape.gradient(total, p).items()} == {"x": 4.0, "y": 6.0}


@pytest.mark.parametrize("make", [gt.grad, lambda f: gt.vmap(gt.grad(f)), gt.jacfwd])
def test_in_other_transforms(make) -> None:
    x = gt.constant([0.3, 0.7]) if make not in (gt.grad,) else gt.constant(0.3)
    np.testing.assert_allclose(make(recomputed)(x), make(block)(x), rtol=1e-5)


def test_in_a_traced_function_and_in_a_saved_one(tmp_path) -> None:
    class Model(gt.Module):
        def __init__(self):
            super().__init__()
            self.w = gt.Variable(2.0)

        @gt.function(input_signature=[gt.TensorSpec([])])
        def __call__(self, x):
            return gt.recompute_grad(lambda x: gt.sin(x * self.w))(x)

    model = Model()
    gt.save(model, tmp_path / "model.h5")
    loaded = gt.load(tmp_path / "model.h5")
    for module in (model, loaded):
        x = gt.constant(0.7)
        with gt.GradientTape() as tape:
            tape.watch(x)
            y = module(x)
        grads = tape.gradient(y, [x, module.w])
        expected = [2.0 * np.cos(1.4), 0.7 * np.cos(1.4)]
        np.testing.assert_allclose([g.item() for g in grads], expected, rtol=1e-6)


def test_a_result_may_hold_none_as_a_scans_step_does() -> None:
    step = gt.recompute_grad(lambda carry, x: (gt.tanh(carry * x), None))

    def f(xs: gt.Tensor) -> gt.Tensor:
        return gt.scan(step, 0.5, xs)[0]

    xs = np.array([0.5, 1.5, -1.0])
    want = gt.grad(lambda xs: gt.scan(lambda c, x: (gt.tanh(c * x), None), 0.5, xs)[0])(xs)
    for run in (f, gt.function(f)):
        np.testing.assert_allclose(gt.grad(run)(xs), want, rtol=1e-6)


def outer_value(x: gt.Tensor, f) -> gt.Tensor:
    closed = gt.exp(x * 0.3)
    return f(lambda a: gt.sin(a) * closed)(x)


SHARED = {
    "one tensor in two places": lambda x, f: f(lambda a, b: gt.tanh(a * b) + a)(x, x),
    "twice in a container": lambda x, f: f(lambda p: p["a"] * gt.sin(p["b"]))({"a": x, "b": x}),
    "an argument that is closed over": lambda x, f: f(lambda a: gt.sin(a) * x)(x),
    "closed over": outer_value,
    "closed over and returned": lambda x, f: f(lambda a: [gt.sin(a), x])(x * 2.0)[1] ** 2,
    "closed over, without arguments": lambda x, f: f(lambda: gt.sin(x))(),
    "taken by keyword": lambda x, f: f(lambda a, scale: gt.sin(a) * scale)(2.0, scale=x),
    "nested": lambda x, f: f(lambda a: f(lambda b: b * gt.sin(x))(a) * a)(x * x),
}


@pytest.mark.parametrize("traced", [False, True])
@pytest.mark.parametrize("program", SHARED.values(), ids=SHARED.keys())
def test_whatever_the_function_depends_on_has_its_gradient(program, traced) -> None:
    x = np.array([0.4, 1.3])

    def slopes(f):
        run = gt.function(lambda x: gt.sum(program(x, f))) if traced else None
        loss = run or (lambda x: gt.sum(program(x, f)))
        return gt.grad(loss)(x), gt.hessian(loss)(x), gt.jvp(gt.grad(loss), (x,), (x,))[1]

    for mine, right in zip(slopes(gt.recompute_grad), slopes(lambda f: f), strict=True):
        np.testing.assert_allclose(mine.numpy(), right.numpy(), rtol=1e-12)


NOISE = {
    "random numbers": lambda: lambda x: x * gt.random.normal((20,)),
    "dropout": lambda: functools.partial(gt.layers.Dropout(0.5), training=True),
    "a traced function": lambda: gt.function(lambda x: x * gt.random.normal((20,))),
    "within another": lambda: gt.recompute_grad(lambda x: x * gt.random.normal((20,))),
}
RUNS = {
    "eager": lambda f: lambda x: gt.value_and_grad(lambda x: gt.sum(f(x)))(x),
    "traced": lambda f: gt.function(gt.value_and_grad(lambda x: gt.sum(f(x)))),
    "traced inside": lambda f: gt.value_and_grad(gt.function(lambda x: gt.sum(f(x)))),
    "a branch": lambda f: (
        lambda x: gt.value_and_grad(
            lambda x: gt.sum(gt.cond(gt.constant(True), lambda: f(x), lambda: x))
        )(x)
    ),
}


@pytest.mark.parametrize("run", RUNS.values(), ids=RUNS)
@pytest.mark.parametrize("noise", NOISE.values(), ids=NOISE)
def test_the_second_run_draws_what_the_first_drew(noise, run) -> None:
    y, g = run(gt.recompute_grad(noise()))(gt.ones((20,)))
    np.testing.assert_allclose(y.numpy(), g.numpy().sum(), rtol=1e-5)


LOOPS = {
    "scan": lambda f, x: gt.scan(lambda c, i: (f(c), i), x, gt.ones((3,)))[0],
    "while_loop": lambda f, x: gt.while_loop(
        lambda i, c: i < 3, lambda i, c: (i + 1, f(c)), (gt.constant(0), x)
    )[1],
    "cond": lambda f, x: gt.cond(gt.sum(x) > 0, lambda: f(x), lambda: x),
    "vmap": lambda f, x: gt.vmap(f, randomness="different")(x),
}


@pytest.mark.parametrize("trace", [lambda f: f, gt.function], ids=["eager", "traced"])
@pytest.mark.parametrize("inside", [True, False], ids=["in it", "around it"])
@pytest.mark.parametrize("loop", LOOPS.values(), ids=LOOPS)
def test_the_second_run_draws_the_same_beside_loops(loop, inside, trace) -> None:
    def noisy(x):
        return x * gt.random.normal(())

    block = functools.partial(loop, gt.recompute_grad(noisy))
    if inside:
        block = gt.recompute_grad(lambda x: loop(noisy, x))
    y, g = trace(gt.value_and_grad(lambda x: gt.sum(block(x))))(gt.ones((4,)))
    np.testing.assert_allclose(y.numpy(), g.numpy().sum(), rtol=1e-5)


def test_the_second_run_draws_the_same_in_a_file(tmp_path) -> None:
    class Block(gt.Module):
        def __init__(self) -> None:
            super().__init__()
            self.drop = gt.layers.Dropout(0.5)

        @gt.function(input_signature=[gt.TensorSpec([None])])
        def __call__(self, x):
            return gt.recompute_grad(lambda x: self.drop(x, training=True))(x)

    gt.save(Block(), tmp_path / "block")
    y, pull = gt.vjp(gt.load(tmp_path / "block"), gt.ones((20,)))
    np.testing.assert_array_equal(pull(gt.ones((20,)))[0].numpy(), y.numpy())


def test_random_numbers_go_on_as_without_recomputing() -> None:
    drawn = []
    for wrap in (lambda f: f, gt.recompute_grad):
        generator = gt.random.Generator(3)
        f = gt.grad(wrap(lambda x, generator=generator: x * generator.normal(())))
        drawn.append([f(1.0).item() for _ in range(3)])
    assert drawn[0] == drawn[1]


@pytest.mark.parametrize("trace", [lambda f: f, gt.function], ids=["eager", "traced"])
def test_the_second_run_assigns_nothing(trace) -> None:
    x = gt.constant([[1.0], [3.0]])
    norm, counter = gt.layers.BatchNorm(momentum=0.5), gt.Variable(0.0, trainable=False)
    norm(x)

    @gt.recompute_grad
    def block(x):
        counter.assign_add(1.0)
        return norm(x, training=True) * counter

    def step(x):
        with gt.GradientTape() as tape:
            y = gt.sum(block(x) * x)
        return y, tape.gradient(y, norm.beta)

    for count in (1.0, 2.0):
        _, slope = trace(step)(x)
        assert slope.numpy() == [4.0 * count]
    assert counter.numpy() == 2.0
    assert norm.moving_mean.numpy() == [1.5]


@pytest.mark.parametrize("trace", [lambda f: f, gt.function], ids=["eager", "traced"])
def test_the_second_run_reads_what_the_first_read(trace) -> None:
    v = gt.Variable(2.0)
    block = gt.recompute_grad(lambda x: x * v * v)

    def step(x):
        with gt.GradientTape() as tape:
            tape.watch(x)
            y = block(x)
        v.assign(10.0)
        return tape.gradient(y, [x, v])

    assert [g.item() for g in trace(step)(gt.constant(3.0))] == [4.0, 12.0]
    assert v.numpy() == 10.0


def both_orders(f, x):
    """Return a value, and its first and second derivatives with respect to ``w`` and ``x``."""
    with gt.GradientTape() as outer:
        outer.watch(x)
        with gt.GradientTape() as inner:
            inner.watch(x)
            y = gt.sum(f(x))
        first = inner.gradient(y, [w, x])
    second = outer.gradient(first, [w, x])
    with gt.ForwardAccumulator([w, x], [gt.constant(1.0), gt.ones_like(x)]) as ahead:
        y = gt.sum(f(x))
    return [y, *first, *second, ahead.jvp(y)]


def body(x):
    return gt.tanh(w * x)


def by_autograph(f, x):
    for _ in gt.ones((2,)):
        x = f(x)
    return x


FLOWS = {**LOOPS, "map": gt.map, "autograph": by_autograph}
PLACES = {
    "in it": lambda wrap, flow: wrap(lambda x: flow(body, x)),
    "around it": lambda wrap, flow: functools.partial(flow, wrap(body)),
    "nested": lambda wrap, flow: wrap(lambda x: flow(wrap(body), x) * w),
    "where it was read": lambda wrap, flow: lambda x: wrap(lambda y: flow(body, y))(x * w),
    "by a value": lambda wrap, flow: lambda x: closing_over(wrap, flow, w.value, x),
}


def closing_over(wrap, flow, value, x):
    return wrap(lambda x: flow(lambda a: body(a) * value, x))(x)


@pytest.mark.parametrize("trace", ["eager", "traced", "traced tapes"])
@pytest.mark.parametrize("place", PLACES.values(), ids=PLACES)
@pytest.mark.parametrize("flow", FLOWS, ids=str)
def test_a_variable_that_control_flow_reads_counts_once(flow, place, trace) -> None:
    x = gt.constant([0.3, -0.7, 1.1, 0.2])
    want = both_orders(place(lambda f: f, FLOWS[flow]), x)
    f = place(gt.recompute_grad, FLOWS[flow])
    traced = functools.partial(gt.function, autograph=flow == "autograph")
    if trace == "traced tapes":
        got = traced(lambda x: both_orders(f, x))(x)
    else:
        got = both_orders(traced(f) if trace == "traced" else f, x)
    for mine, right in zip(got, want, strict=True):
        np.testing.assert_allclose(mine.numpy(), right.numpy(), rtol=1e-5, atol=1e-6)


class Remembering(gt.layers.LSTM):
    def __call__(self, x, **settings):
        return gt.recompute_grad(super().__call__)(x, **settings)


def test_a_recurrent_layer_trains_the_same_compiled_and_in_a_file(tmp_path) -> None:
    x = np.random.default_rng(0).normal(size=(4, 5, 2)).astype("float32")

    def model(layer):
        gt.random.set_seed(0)
        made = gt.layers.Sequential([layer(3), gt.layers.Dense(1)])
        made(x)
        return made

    def slopes(model):
        with gt.GradientTape() as tape:
            loss = gt.sum(gt.function(model)(x) ** 2)
        return tape.gradient(loss, model.trainable_variables)

    plain, again = model(gt.layers.LSTM), model(Remembering)
    gt.save(again, tmp_path / "model.h5")
    loaded = gt.load(tmp_path / "model.h5")
    for mine, other, right in zip(slopes(again), slopes(loaded), slopes(plain), strict=True):
        np.testing.assert_allclose(mine, right, rtol=1e-5, atol=1e-6)
        np.testing.assert_allclose(other, right, rtol=1e-5, atol=1e-6)
    losses = [
        gt.training.fit(
            one, (x, x[:, 0, :1]), loss="mse", epochs=3, seed=0, verbose=0, compile=True
        ).history["loss"]
        for one in (plain, again)
    ]
    np.testing.assert_allclose(losses[1], losses[0], rtol=1e-6)


@pytest.mark.parametrize("trace", [lambda f: f, gt.function], ids=["eager", "traced"])
def test_a_watched_variable_that_does_not_train_has_its_gradient(trace) -> None:
    n, v = gt.Variable(0.7, trainable=False), gt.Variable(0.4)
    f = trace(gt.recompute_grad(lambda x: gt.sin(x * n) * v))
    with gt.GradientTape() as tape:
        tape.watch(n)
        y = f(gt.constant(0.3))
    grads = tape.gradient(y, [n, v])
    np.testing.assert_allclose(grads, [0.3 * np.cos(0.21) * 0.4, np.sin(0.21)], rtol=1e-6)


@pytest.mark.parametrize("trace", ["nothing", "the function", "its tapes"])
@pytest.mark.parametrize("flow", [lambda f, x: f(x), LOOPS["cond"]], ids=["nothing", "cond"])
def test_a_value_that_the_second_run_assigned_passes_no_gradient(flow, trace) -> None:
    def slopes(wrap, trace):
        v = gt.Variable(0.7)

        def assigning(x):
            v.assign(v * 2.0)
            return gt.tanh(v * x) * v

        def program(x):
            return flow(wrap(assigning), x) * v

        run = gt.function(program) if trace == "the function" else program

        def orders(x):
            with gt.GradientTape() as outer:
                outer.watch(x)
                with gt.GradientTape() as inner:
                    inner.watch(x)
                    y = run(x)
                first = inner.gradient(y, [v, x])
            return [*first, *outer.gradient(first, [v, x])]

        found = (gt.function(orders) if trace == "its tapes" else orders)(gt.constant(0.4))
        assert v.numpy() == np.float32(1.4)
        return [g.item() for g in found]

    want = slopes(lambda f: f, "nothing")
    np.testing.assert_allclose(slopes(gt.recompute_grad, trace), want, rtol=1e-5)


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("nested", [False, True])
def test_a_rule_that_differentiates_a_recomputed_function_in_a_batch(nested, compiled) -> None:
    """The tape of the rule is of one example, although the batch of the function has ended."""
    scale = gt.Variable(np.array([1.5, -0.5]))
    inner = gt.recompute_grad(lambda x, c: gt.tanh(x * scale) * c)
    f = gt.recompute_grad(lambda x, c: inner(x + c, c) * scale) if nested else inner

    @gt.custom_gradient
    def ruled(x, c):
        def rule(g, variables=()):
            with gt.GradientTape(watch_accessed_variables=False) as tape:
                tape.watch([x, c, *variables])
                y = f(x, c)
            found = tape.gradient(y, [x, c, *variables], output_gradients=g)
            return found[:2], found[2:]

        return f(x, c), rule

    x, c = np.array([[0.3, 1.2], [-0.7, 0.4], [0.1, 0.2]]), np.array([0.6, 0.9])
    found = []
    for fn in (ruled, f):
        loss = lambda x, c, fn=fn: gt.sum(gt.vmap(fn, in_axes=(0, None))(x, c))  # noqa: E731
        given = gt.constant(x), gt.constant(c)
        with gt.GradientTape() as tape:
            tape.watch(given)
            y = (gt.function(loss) if compiled else loss)(*given)
        found.append(tape.gradient(y, [*given, scale]))
    for got, want in zip(*found, strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-12)

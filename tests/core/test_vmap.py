"""``vmap`` gives what a loop over the examples gives, gradients included."""

from __future__ import annotations

import numpy as np
import pytest

import gradtape as gt
from gradtape.core.extend import Op


def test_it_stacks_results_along_the_axes_asked_for() -> None:
    x = gt.constant(np.arange(12.0).reshape(3, 4))
    w = gt.constant(np.arange(4.0))
    result = gt.vmap(lambda x, w: x * w, in_axes=(0, None), out_axes=1)(x, w)
    np.testing.assert_array_equal(result, (x.numpy() * w.numpy()).T)
    result = gt.vmap(lambda column: gt.sum(column), in_axes=-1)(x)
    np.testing.assert_array_equal(result, x.numpy().sum(axis=0))


def test_containers_go_in_and_come_out() -> None:
    batch = {"a": gt.ones((2, 3)), "b": gt.ones((5,))}
    out = gt.vmap(lambda d: {"s": gt.sum(d["a"]) + gt.sum(d["b"])}, in_axes=({"a": 0, "b": None},))(
        batch
    )
    np.testing.assert_array_equal(out["s"], [8.0, 8.0])


def test_gradients_go_through_it_and_it_goes_over_gradients() -> None:
    def slope(x: gt.Tensor) -> gt.Tensor:
        with gt.GradientTape() as tape:
            tape.watch(x)
            y = gt.sin(x) * x
        return tape.gradient(y, x)

    x = gt.constant([0.5, 1.0, 2.0])
    expected = np.cos(x.numpy()) * x.numpy() + np.sin(x.numpy())
    np.testing.assert_allclose(gt.vmap(slope)(x), expected, rtol=1e-6)
    with gt.GradientTape() as tape:
        tape.watch(x)
        y = gt.vmap(lambda x: gt.sin(x) * x)(x)
    np.testing.assert_allclose(tape.gradient(y, x), expected, rtol=1e-6)


@pytest.mark.parametrize("size", [2, None])
def test_it_works_in_a_trace(size: int | None) -> None:
    @gt.function(input_signature=[gt.TensorSpec([size, 3])])
    def sums(x: gt.Tensor) -> gt.Tensor:
        return gt.vmap(lambda row: gt.sum(row * gt.ones(3)))(x)

    np.testing.assert_array_equal(sums(gt.ones((2, 3))), [3.0, 3.0])


@pytest.mark.parametrize(
    ("shapes", "in_axes", "message"),
    [
        (((2,), (3,)), 0, "batch sizes of the arguments differ"),
        (((2,), (2,)), None, "no argument has a batch axis"),
        (((2,), (2,)), (0, 1), r"argument 1 of shape \(2,\) has no axis 1"),
        (((2,), (2,)), (0,), "2 arguments, but in_axes is"),
    ],
)
def test_bad_batches_are_refused_in_words(shapes, in_axes, message) -> None:
    arguments = [gt.zeros(shape) for shape in shapes]
    with pytest.raises(ValueError, match=message):
        gt.vmap(lambda x, y: x + y, in_axes=in_axes)(*arguments)


# -- what functions do inside ----------------------------------------------------------------------

ROWS = np.arange(6.0).reshape(3, 2)


def test_nested_containers_axes_and_results_that_all_examples_share() -> None:
    out = gt.vmap(lambda x, y: (x + y, gt.ones(2), None), in_axes=(0, 1), out_axes=(1, 0, 0))(
        ROWS, ROWS.T
    )
    np.testing.assert_array_equal(out[0], 2 * ROWS.T)
    np.testing.assert_array_equal(out[1], np.ones((3, 2)))
    assert out[2] is None


def test_vmap_of_vmap() -> None:
    outer = gt.vmap(gt.vmap(lambda a, b: a * b, in_axes=(None, 0)), in_axes=(0, None))
    np.testing.assert_array_equal(
        outer(np.arange(3.0), np.arange(4.0)), np.outer(range(3), range(4))
    )


def test_a_tape_outside_sums_over_examples_what_they_share() -> None:
    w, x = gt.constant(np.array([0.5, -1.0])), gt.constant(ROWS)

    def f(row: gt.Tensor) -> gt.Tensor:
        return gt.tanh(row @ w) * w[0]

    def looped(rows: gt.Tensor) -> gt.Tensor:
        return gt.stack([f(row) for row in rows])

    with gt.GradientTape(persistent=True) as tape:
        tape.watch([w, x])
        y, z = gt.vmap(f)(x), looped(x)
    for source in (w, x):
        np.testing.assert_allclose(tape.gradient(y, source), tape.gradient(z, source), rtol=1e-12)
        np.testing.assert_allclose(tape.jacobian(y, source), tape.jacobian(z, source), rtol=1e-12)


def test_a_tape_inside_keeps_examples_apart() -> None:
    v = gt.Variable(np.array([0.5, -1.0]))

    def slope(row: gt.Tensor) -> gt.Tensor:
        with gt.GradientTape() as tape:
            y = gt.sum(row * v) ** 2
        return tape.gradient(y, v)

    want = 2 * (ROWS @ v.numpy())[:, None] * ROWS
    np.testing.assert_allclose(gt.vmap(slope)(ROWS), want)


def test_one_tape_outside_and_one_inside() -> None:
    w = gt.constant(2.0)

    def slope(x: gt.Tensor) -> gt.Tensor:
        with gt.GradientTape() as tape:
            tape.watch(w)
            y = x * w**3
        return tape.gradient(y, w)

    with gt.GradientTape() as outer:
        outer.watch(w)
        total = gt.sum(gt.vmap(slope)(np.array([1.0, 10.0])))
    assert outer.gradient(total, w).item() == 6 * 2.0 * 11


def test_a_tape_outside_may_be_paused_inside() -> None:
    x = gt.constant([1.0, 2.0])
    with gt.GradientTape() as tape:
        tape.watch(x)

        def f(e: gt.Tensor) -> gt.Tensor:
            y = e * e
            with tape.stop_recording():
                z = e * 100.0
            return y + z

        total = gt.vmap(f)(x)
    assert tape.gradient(total, x).tolist() == [2.0, 4.0]


@gt.custom_gradient
def tenfold(x):
    return x * 1.0, lambda dy: dy * 10.0


@gt.custom_gradient
def scaled(x, w):
    return x * w, lambda dy: (dy * w, gt.sum(dy * x) * 10.0)


@pytest.mark.parametrize("traced", ["not", "the function", "the vmap"])
def test_custom_gradients(traced: str) -> None:
    w = gt.constant(np.array(3.0))

    def f(row: gt.Tensor) -> gt.Tensor:
        return gt.sum(scaled(tenfold(row), w) ** 2)

    inner = gt.function(f) if traced == "the function" else f
    batch = gt.vmap(inner)
    batch = gt.function(batch) if traced == "the vmap" else batch
    x = gt.constant(ROWS)
    with gt.GradientTape(persistent=True) as tape:
        tape.watch([x, w])
        y = batch(x)
        z = gt.stack([f(row) for row in x])
    np.testing.assert_allclose(y, z)
    for source in (x, w):
        np.testing.assert_allclose(tape.gradient(y, source), tape.gradient(z, source))


def test_a_saved_custom_gradient_inside_vmap_inside_a_trace(tmp_path) -> None:
    module = gt.Module()
    module.f = gt.function(lambda x: gt.sum(tenfold(x) ** 2), input_signature=[gt.TensorSpec([2])])
    gt.save(module, tmp_path / "m.h5", golden=False)
    loaded = gt.load(tmp_path / "m.h5").f
    x = gt.constant(ROWS.astype("float32"))
    for batch in (gt.vmap(loaded), gt.function(gt.vmap(loaded))):
        with gt.GradientTape() as tape:
            tape.watch(x)
            y = batch(x)
        np.testing.assert_allclose(tape.gradient(y, x), 20 * ROWS)


def test_tensors_from_outside_a_traced_vmap_are_followed() -> None:
    w, x = gt.constant(np.arange(6.0).reshape(2, 3)), gt.constant(ROWS)
    traced = gt.function(gt.vmap(lambda row: gt.tanh(row @ w) @ w.T))
    with gt.GradientTape(persistent=True) as tape:
        tape.watch([w, x])
        y, z = traced(x), gt.tanh(x @ w) @ w.T
    np.testing.assert_allclose(y, z, rtol=1e-12)
    for source in (w, x):
        np.testing.assert_allclose(tape.gradient(y, source), tape.gradient(z, source), rtol=1e-9)


def test_unknown_sizes_in_a_trace() -> None:
    def f(row: gt.Tensor) -> gt.Tensor:
        pair = gt.reshape(row, (2, -1))
        shared = gt.broadcast_to(gt.sum(pair, axis=0), (3, 1))
        return gt.concatenate([gt.ravel(shared), pair[:, 0][gt.argsort(row)], row[[1, 0, 1]]])

    traced = gt.function(gt.vmap(f), input_signature=[gt.TensorSpec([None, 2], "float64")])
    np.testing.assert_array_equal(traced(ROWS), gt.stack([f(gt.constant(row)) for row in ROWS]))
    assert traced(np.zeros((0, 2))).shape == (0, 8)
    assert len(traced.concrete_functions) == 1


# -- random numbers --------------------------------------------------------------------------------


def test_random_numbers_are_a_choice_made_in_words() -> None:
    def noisy(x: gt.Tensor) -> gt.Tensor:
        return x + gt.random.normal((2,), dtype="float64")

    zeros = np.zeros((3, 2))
    before = gt.random.Generator(1)
    state = before.state.numpy().copy()
    with pytest.raises(RuntimeError, match=r'vmap\(..., randomness="different"\)'):
        gt.vmap(lambda x: x + before.normal((2,)))(zeros)
    np.testing.assert_array_equal(before.state.numpy(), state)
    same = gt.vmap(noisy, randomness="same")(zeros).numpy()
    assert (same == same[0]).all()
    different = gt.vmap(noisy, randomness="different")(zeros).numpy()
    assert len(np.unique(different)) == 6
    with pytest.raises(ValueError, match="randomness must be one of"):
        gt.vmap(noisy, randomness="some")
    gt.random.set_seed(5)
    one = gt.vmap(noisy, randomness="different")(zeros)
    gt.random.set_seed(5)
    np.testing.assert_array_equal(one, gt.vmap(noisy, randomness="different")(zeros))


def test_nested_choices_of_randomness() -> None:
    def draws(inner: str) -> np.ndarray:
        row = gt.vmap(lambda x: x + gt.random.uniform(()), randomness=inner)
        return gt.vmap(row, randomness="different")(np.zeros((3, 4))).numpy()

    assert len(np.unique(draws("different"))) == 12
    assert len(np.unique(draws("same"))) == 3


def test_every_distribution_draws_for_each_example() -> None:
    def draw(shape: gt.Tensor) -> list[gt.Tensor]:
        return [
            gt.random.exponential(shape.shape),
            gt.random.truncated_normal(shape.shape),
            gt.random.gamma((3,), shape + 1.0),
            gt.random.randint(shape.shape, 0, 1_000_000),
            gt.random.permutation(50),
            gt.random.bernoulli((60,), 0.5),
            gt.random.categorical(gt.zeros((1, 50)), 8),
        ]

    for y in gt.vmap(draw, randomness="different")(np.zeros((2, 3))):
        first, second = y.numpy()
        assert (first != second).any()


def test_random_numbers_of_traced_and_loaded_functions(tmp_path) -> None:
    module = gt.Module()
    module.rng = gt.random.Generator(3)
    module.f = gt.function(
        lambda x: x + module.rng.normal((2,), dtype="float64"),
        input_signature=[gt.TensorSpec([2], "float64")],
    )
    gt.save(module, tmp_path / "m.h5", golden=False)
    for f in (module.f, gt.load(tmp_path / "m.h5").f):
        y = gt.vmap(f, randomness="different")(np.zeros((3, 2))).numpy()
        assert len(np.unique(y)) == 6
        y = gt.vmap(f, randomness="same")(np.zeros((3, 2))).numpy()
        assert len(np.unique(y)) == 2
        with pytest.raises(RuntimeError, match="randomness="):
            gt.vmap(f)(np.zeros((3, 2)))


def test_dropout_in_a_batch_of_models() -> None:
    layer = gt.layers.Dropout(0.5)
    y = gt.vmap(lambda x: layer(x, training=True), randomness="different")(np.ones((2, 50))).numpy()
    assert (y[0] != y[1]).any()


# -- what has no meaning ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("f", "message"),
    [
        (
            lambda x: x if x[0] > 1 else -x,
            r"test_vmap.*a tensor's value is not known inside vmap.*where",
        ),
        (lambda x: float(x[0]), "a tensor's value is not known inside vmap"),
        (lambda x: gt.constant(np.asarray(x)), "a tensor's value is not known inside vmap"),
        (lambda x: x[x > 1], "a mask that differs from example to example.*gradtape.where"),
        (lambda x: gt.nonzero(x), "differs from example to example"),
        (lambda x: gt.Variable(x), "the initial value of a Variable is not known inside vmap"),
        (
            lambda x: gt.function(lambda y: y * x).get_concrete_function(gt.ones(2)),
            "pass it as an argument",
        ),
    ],
)
def test_what_differs_from_example_to_example_is_refused(f, message) -> None:
    with pytest.raises(TypeError, match=message):
        gt.vmap(f)(ROWS)


def test_variables_take_only_what_all_examples_share() -> None:
    v = gt.Variable(0.0)

    def count(x: gt.Tensor) -> gt.Tensor:
        v.assign_add(1.0)
        return x

    gt.vmap(count)(ROWS)
    assert v.numpy() == 1.0
    with pytest.raises(TypeError, match=r"assign: variable 'Variable' has one value.*return it"):
        gt.vmap(lambda x: v.assign(x[0]))(ROWS)
    assert v.numpy() == 1.0


def test_the_nan_guard_looks_at_all_examples() -> None:
    with (
        np.errstate(divide="ignore"),
        gt.debug.nan_guard(),
        pytest.raises(FloatingPointError, match=r"op 'log' makes -inf \(1 of 6"),
    ):
        gt.vmap(gt.log)(ROWS)


def test_an_op_without_a_rule_runs_in_a_loop_and_says_so_once() -> None:
    class Plugin:
        @gt.hookimpl
        def gradtape_ops(self) -> list[Op]:
            return [op]

    op = Op(
        "test::double_first",
        lambda xp, x: x * xp.asarray([2.0, 1.0]),
        gradients={"x": lambda g: g * np.array([2.0, 1.0])},
        infer=lambda x: (x.shape, x.dtype),
    )
    plugin = Plugin()
    gt.register_plugin(plugin, "rowwise")
    try:
        with pytest.warns(UserWarning, match="op 'test::double_first' has no batching rule"):
            found = gt.vmap(op)(ROWS)
        np.testing.assert_array_equal(found, ROWS * [2, 1])
        np.testing.assert_array_equal(gt.jacrev(op)(ROWS[1]), np.diag([2, 1]))
    finally:
        gt.unregister_plugin("rowwise")


def test_no_op_that_ships_is_looped_over() -> None:
    ours = {name for name in gt.registry().ops if "::" not in name}
    assert not [name for name in ours if gt.registry().ops[name].batch is None]


@pytest.mark.parametrize("shapes", [((3, 2), (2, 4)), ((3, 2), (2,)), ((3,), (3,)), ((3,), (3, 2))])
def test_the_second_order_of_a_product_of_real_and_complex_is_that_of_a_loop(shapes) -> None:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(2, *shapes[0]))
    y = rng.normal(size=(2, *shapes[1])) + 1j * rng.normal(size=(2, *shapes[1]))

    def curve(x, y):
        def slope(y):
            return gt.sum(gt.grad(lambda x: gt.sum(gt.imag((x @ y) ** 2)))(x))

        return gt.grad(slope)(y)

    loop = [curve(*pair).numpy() for pair in zip(gt.constant(x), gt.constant(y), strict=True)]
    np.testing.assert_allclose(gt.vmap(curve)(x, y).numpy(), loop, rtol=1e-12)


# -- rules that return the same gradient for all examples ------------------------------------------


@gt.custom_gradient
def constant_slope(x, w):
    return x * w, lambda g: (2.0 * gt.ones_like(x), gt.ones_like(w))


@pytest.mark.parametrize("inside", [False, True])
@pytest.mark.parametrize("compiled", ["eagerly", "function", "gradient"])
@pytest.mark.parametrize("twice", [False, True])
def test_a_gradient_that_all_examples_share_counts_for_each(inside, compiled, twice) -> None:
    one = gt.vmap(gt.function(constant_slope) if inside else constant_slope, in_axes=(0, None))
    whole = gt.vmap(one, in_axes=(0, None)) if twice else one
    x = gt.constant(np.ones((4, 3, 2) if twice else (3, 2)))
    loss = lambda x, w: gt.sum(whole(x, w))  # noqa: E731
    grad = gt.grad(gt.function(loss) if compiled == "function" else loss, argnums=(0, 1))
    dx, dw = (gt.function(grad) if compiled == "gradient" else grad)(x, gt.constant([1.0, 1.0]))
    assert np.array_equal(dx, np.full(x.shape, 2.0))
    assert np.array_equal(dw, np.full(2, 12.0 if twice else 3.0))

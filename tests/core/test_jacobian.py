"""Jacobians of tapes: modes, what bounds their memory, containers, edges, errors.

What the guides state of them is in tests/guides/test_guide_advanced.py.
"""

from __future__ import annotations

import tracemalloc
from collections.abc import Iterator

import numpy as np
import pytest

import gradtape as gt
from gradtape.core.extend import F, Op, hookimpl


def dense(units: int, activation: str | None = None) -> gt.layers.Dense:
    return gt.layers.Dense(units, activation=activation)


@pytest.fixture
def batch() -> gt.Tensor:
    return gt.constant(np.random.default_rng(1).standard_normal((7, 5)))


# -- modes -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("rows", [None, 1, 4, 5, 100])
@pytest.mark.parametrize("pfor", [True, False])
def test_rows_at_once_and_one_by_one_agree(batch: gt.Tensor, rows: int | None, pfor: bool) -> None:
    layer = dense(3, "tanh")
    with gt.GradientTape(persistent=True) as tape:
        tape.watch(batch)
        y = layer(batch)
    want = tape.jacobian(y, [batch, layer.kernel])
    got = tape.jacobian(
        y, [batch, layer.kernel], parallel_iterations=rows, experimental_use_pfor=pfor
    )
    for a, b in zip(got, want, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-6, atol=1e-9)
    one = tape.batch_jacobian(y, batch, parallel_iterations=rows, experimental_use_pfor=pfor)
    np.testing.assert_allclose(one, tape.batch_jacobian(y, batch), rtol=1e-6, atol=1e-9)


def test_memory_is_in_proportion_to_the_rows_at_once() -> None:
    x = gt.constant(np.ones(400))
    w = gt.constant(np.ones((400, 4000)))
    v = gt.constant(np.ones((4000, 400)))

    def peak(rows: int) -> int:
        with gt.GradientTape() as tape:
            tape.watch(x)
            y = gt.tanh(gt.tanh(x @ w) @ v)
        tracemalloc.start()
        tape.jacobian(y, x, parallel_iterations=rows)
        found = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return found

    few, many = peak(20), peak(400)
    # beyond the result itself (and its parts), rows of 4,000 numbers of eight bytes
    assert few < 400 * 400 * 8 * 3 + 20 * 4000 * 8 * 4
    assert many > 400 * 4000 * 8


# how many numbers there may be, in six arrays of double precision, within the default of 1 GiB
BUDGET = 2**30 // (6 * 8)


@pytest.fixture
def shapes_sent_back() -> Iterator[list[tuple[int, ...]]]:
    """The shapes of the upstream gradients that reach the op ``noting::input``, hidden axes too."""
    seen: list[tuple[int, ...]] = []

    class Plugin:
        @staticmethod
        @hookimpl
        def gradtape_ops() -> list[Op]:
            shape = {"infer": lambda x: (x.shape, x.dtype), "batch": "elementwise"}
            note = Op("noting::upstream", lambda xp, g: seen.append(g.shape) or g, **shape)
            rule = {"x": lambda g: F["noting::upstream"](g)}
            return [note, Op("noting::input", lambda xp, x: x + 0, gradients=rule, **shape)]

    gt.register_plugin(Plugin(), "noting")
    yield seen
    gt.unregister_plugin("noting")


def jacobian_with_many_numbers_between(x: gt.Tensor, count: int) -> gt.Tensor:
    with gt.GradientTape() as tape:
        tape.watch(x)
        noted = gt.registry().op("noting::input")(x)
        # views, so that what is counted is not there
        y = gt.sum(gt.broadcast_to(noted[:, None], (*x.shape, count // x.size)), axis=1)
    return tape.jacobian(y, x)


def test_the_budget_bounds_the_rows_at_once(shapes_sent_back: list[tuple[int, ...]]) -> None:
    x = gt.constant(np.ones(10))
    jacobian_with_many_numbers_between(x, 100)
    assert shapes_sent_back == [(10, 10)]
    shapes_sent_back.clear()
    jacobian_with_many_numbers_between(x, BUDGET // 3)
    assert shapes_sent_back == [(3, 10), (3, 10), (3, 10), (10,)]


def test_the_budget_knows_of_hidden_axes(shapes_sent_back: list[tuple[int, ...]]) -> None:
    def run(x: gt.Tensor) -> gt.Tensor:
        return jacobian_with_many_numbers_between(x, BUDGET // 300)

    run(gt.ones(10))
    assert shapes_sent_back == [(10, 10)]
    shapes_sent_back.clear()
    gt.vmap(run)(gt.ones((100, 10)))  # what goes back is the same for all examples
    assert shapes_sent_back == [(3, 10), (3, 10), (3, 10), (10,)]


# -- containers, dtypes, edges ---------------------------------------------------------------------


def test_sources_in_containers_unconnected_ones_and_variables() -> None:
    x, v, other = gt.constant([1.0, 2.0]), gt.Variable([3.0, 4.0]), gt.constant([5.0])
    with gt.GradientTape(persistent=True) as tape:
        tape.watch([x, other])
        y = x * v
    found = tape.jacobian(y, {"x": x, "rest": [v, other]})
    np.testing.assert_array_equal(found["x"], [[3, 0], [0, 4]])
    np.testing.assert_array_equal(found["rest"][0], [[1, 0], [0, 2]])
    assert found["rest"][1] is None
    zeros = tape.jacobian(y, other, unconnected_gradients="zero")
    assert zeros.shape == (2, 1)
    assert not zeros.numpy().any()


def test_scalars_on_either_side() -> None:
    x = gt.constant(3.0)
    with gt.GradientTape(persistent=True) as tape:
        tape.watch(x)
        y = x * x
        z = gt.stack([y, x])
    assert tape.jacobian(y, x).item() == 6.0
    assert tape.jacobian(z, x).tolist() == [6.0, 1.0]


def test_empty_targets_and_sources() -> None:
    x = gt.constant(np.zeros((1, 0)))
    with gt.GradientTape(persistent=True) as tape:
        tape.watch(x)
        y = x * 2.0
    assert tape.jacobian(y, x).shape == (1, 0, 1, 0)
    assert tape.batch_jacobian(y, x).shape == (1, 0, 0)


def test_integer_targets_have_no_jacobian() -> None:
    x = gt.constant([1.0])
    with gt.GradientTape(persistent=True) as tape:
        tape.watch(x)
        y = gt.argmax(x, keepdims=True)
    with pytest.warns(gt.errors.BrokenPathWarning, match="target has dtype int64"):
        assert tape.jacobian(y, x) is None


def test_complex_jacobians_follow_the_gradients_convention() -> None:
    z = gt.constant(np.array([1 + 2j, 3 - 1j]))
    with gt.GradientTape() as tape:
        tape.watch(z)
        y = z * z
    np.testing.assert_allclose(tape.jacobian(y, z), np.diag(np.conj(2 * z.numpy())))


def test_it_uses_up_a_tape_that_is_not_persistent() -> None:
    x = gt.constant([1.0])
    with gt.GradientTape() as tape:
        tape.watch(x)
        y = x * x
    tape.jacobian(y, x)
    for method in (tape.jacobian, tape.gradient):
        with pytest.raises(RuntimeError, match="persistent=True"):
            method(y, x)


def test_it_is_recorded_by_other_tapes() -> None:
    x = gt.constant(np.array([0.5, 1.5]))
    with gt.GradientTape() as outer:
        outer.watch(x)
        with gt.GradientTape() as inner:
            inner.watch(x)
            y = gt.sin(x) * x[::-1]
        j = inner.jacobian(y, x)
        loss = gt.sum(j**2)
    found = outer.gradient(loss, x).numpy()
    step = 1e-6

    def value(point: np.ndarray) -> float:
        a, b = point
        m = np.array([[np.cos(a) * b, np.sin(a)], [np.sin(b), np.cos(b) * a]])
        return float((m**2).sum())

    for i in range(2):
        e = np.eye(2)[i] * step
        assert found[i] == pytest.approx(
            (value(x.numpy() + e) - value(x.numpy() - e)) / (2 * step), rel=1e-6
        )


@pytest.mark.parametrize("size", [3, None])
def test_inside_a_trace(size: int | None) -> None:
    @gt.function(input_signature=[gt.TensorSpec([size, 2], "float64")])
    def each(x: gt.Tensor) -> gt.Tensor:
        with gt.GradientTape() as tape:
            tape.watch(x)
            y = gt.tanh(x @ gt.constant(np.ones((2, 4)))) * x[:, :1]
        return tape.batch_jacobian(y, x)

    x = gt.constant(np.random.default_rng(0).standard_normal((3, 2)))
    np.testing.assert_allclose(each(x), each.python_function(x), rtol=1e-12)


def test_what_is_wrong_is_said() -> None:
    x = gt.ones((2, 3))
    with gt.GradientTape(persistent=True) as tape:
        tape.watch(x)
        y = x[:1] * 2.0
        s = gt.sum(x)
    with pytest.raises(ValueError, match=r"same number of examples.*\(1, 3\) and \(2, 3\)"):
        tape.batch_jacobian(y, x)
    with pytest.raises(ValueError, match="first axis for the examples"):
        tape.batch_jacobian(s, x)
    with pytest.raises(ValueError, match="parallel_iterations must be at least 1, got 0"):
        tape.jacobian(y, x, parallel_iterations=0)
    with pytest.raises(ValueError, match="parallel_iterations must be at least 1, got 0"):
        tape.batch_jacobian(x, x, parallel_iterations=0)
    with pytest.raises(TypeError, match="target must be Tensors or Variables"):
        tape.jacobian([y], "x")

    @gt.function(input_signature=[gt.TensorSpec(None)])
    def unknown(x: gt.Tensor) -> gt.Tensor:
        with gt.GradientTape() as tape:
            tape.watch(x)
            y = x * x
        return tape.jacobian(y, x)

    with pytest.raises(TypeError, match="the target's rank is unknown in this trace"):
        unknown(gt.ones(3))

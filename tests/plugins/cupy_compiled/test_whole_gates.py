"""The gates of an LSTM's cell: one kernel on CuPy, and the same numbers as its formula."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import gradtape as gt
from gradtape.core.extend import ops
from gradtape.layers import LSTM, LSTMCell

DTYPES = ("float16", "float32", "float64")


def formula(z: Any, c: Any) -> tuple[Any, Any]:
    i, f, g, o = gt.split(z, 4, axis=-1)
    new = gt.nn.sigmoid(f) * c + gt.nn.sigmoid(i) * gt.tanh(g)
    return gt.nn.sigmoid(o) * gt.tanh(new), new


def drawn(seed: int, dtype: str) -> tuple[np.ndarray, np.ndarray]:
    """Return gates' inputs and a memory of a random shape, with gates that are open or closed."""
    random = np.random.default_rng(seed)
    *batch, units = random.integers(1, 9, size=random.integers(1, 4))
    z = random.standard_normal((*batch, 4 * units)) * random.choice([1, 20])
    return z.astype(dtype), random.standard_normal((*batch, units)).astype(dtype)


def results(function: Any, place: str, *arrays: np.ndarray) -> list[np.ndarray]:
    """Return a function's results, their gradients and those of the gradients."""
    given = [gt.constant(x).to(place) for x in arrays]

    def slopes(*xs: Any) -> Any:
        with gt.GradientTape() as tape:
            tape.watch(xs)
            loss = sum(gt.sum(gt.sin(y)) for y in function(*xs))
        return tape.gradient(loss, xs)

    with gt.GradientTape() as tape:
        tape.watch(given)
        first = slopes(*given)
        loss = sum(gt.sum(gt.sin(g)) for g in first)
    found = [*function(*given), *first, *tape.gradient(loss, given)]
    return [y.to("numpy").numpy() for y in found]


@pytest.mark.parametrize("place", ["cupy", "numpy"])
@pytest.mark.parametrize("dtype", DTYPES)
def test_values_and_derivatives_are_those_of_the_formula(cupy: Any, place: str, dtype: str) -> None:
    near = 60 * float(np.finfo(dtype).eps)
    for seed in range(10):
        z, c = drawn(seed, dtype)
        right = results(formula, "numpy", z.astype("float64"), c.astype("float64"))
        mine = results(lambda z, c: ops["lstm_gates"](z, c), place, z, c)
        for one, two in zip(mine, right, strict=True):
            assert one.dtype == dtype
            np.testing.assert_allclose(one.astype("float64"), two, rtol=near, atol=near)


@pytest.mark.parametrize("place", ["cupy", "numpy"])
def test_slopes_are_exact_where_gates_are_nearly_open(cupy: Any, place: str) -> None:
    z = np.array([[20.0, 18.0, 9.0, 16.0], [-40.0, 30.0, -9.0, -30.0]], "float32")
    given = [gt.constant(x).to(place) for x in (z, np.full((2, 1), 0.5, "float32"))]
    wide = [gt.constant(x.to("numpy").numpy().astype("float64")) for x in given]

    def slope(function: Any, z: Any, c: Any) -> np.ndarray:
        return gt.grad(lambda z: gt.sum(function(z, c)[1]))(z).to("numpy").numpy()

    mine, right = slope(ops["lstm_gates"], *given), slope(formula, *wide)
    np.testing.assert_allclose(mine, right, rtol=1e-5, atol=0)


@pytest.mark.parametrize("place", ["cupy", "numpy"])
def test_numbers_that_are_not_finite(cupy: Any, place: str) -> None:
    random = np.random.default_rng(0)
    z = random.choice([np.inf, -np.inf, np.nan, 1.0, -3.0], size=(40, 8)).astype("float32")
    c = random.choice([np.inf, -np.inf, np.nan, 0.5], size=(40, 2)).astype("float32")
    with np.errstate(all="ignore"):
        right = formula(gt.constant(z), gt.constant(c))
        mine = ops["lstm_gates"](gt.constant(z).to(place), gt.constant(c).to(place))
    for one, two in zip(mine, right, strict=True):
        np.testing.assert_allclose(one.to("numpy").numpy(), two.numpy(), rtol=1e-5)


def test_a_step_and_its_gradient_are_a_kernel_each(cupy: Any) -> None:
    with gt.backend("cupy"):
        z, c = (gt.constant(x) for x in drawn(1, "float32"))
        with gt.GradientTape() as tape:
            tape.watch([z, c])
            h, _ = ops["lstm_gates"](z, c)
        assert cupy.seen.launches == 1
        tape.gradient(h, [z, c])
        assert cupy.seen.launches == 4  # two of them fill the upstream gradients of h and c


@pytest.mark.parametrize("shapes", [((2, 8), (2, 3)), ((2, 8), (3, 2)), ((8,), (1, 2)), ((), ())])
def test_shapes_that_do_not_fit_are_refused(shapes: Any) -> None:
    z, c = (gt.zeros(shape) for shape in shapes)
    with pytest.raises(ValueError, match="lstm_gates"):
        ops["lstm_gates"](z, c)
    with pytest.raises(ValueError, match="lstm_gates"):
        gt.function(lambda z, c: ops["lstm_gates"](z, c))(z, c)


# -- layers ----------------------------------------------------------------------------------------


def trained(layer: Any, call: Any, x: Any) -> list[np.ndarray]:
    with gt.GradientTape() as tape:
        loss = gt.sum(gt.sin(call(layer, x)))
    found = [loss, *tape.gradient(loss, layer.trainable_variables)]
    return [y.to("numpy").numpy() for y in found]


def loop(cell: Any, x: Any) -> Any:
    states = [gt.zeros((x.shape[0], 3), dtype=x.dtype)] * 2
    for k in range(x.shape[1]):
        y, states = cell(x[:, k], states)
    return y


@pytest.mark.parametrize("place", ["cupy", "numpy"])
@pytest.mark.parametrize("made", ["cell", "unrolled", "activation"])
def test_layers_are_the_same_eagerly_and_traced(cupy: Any, place: str, made: str) -> None:
    with gt.backend(place):
        x = gt.constant(np.random.default_rng(0).standard_normal((2, 4, 5)).astype("float64"))
        settings = {"dtype": "float64", "seed": 0}
        if made == "cell":
            layer, call = LSTMCell(3, **settings), loop
        else:
            activation = "softsign" if made == "activation" else "tanh"
            layer, call = LSTM(3, activation, unroll=True, **settings), lambda layer, x: layer(x)
        call(layer, x)
        mine = trained(layer, call, x)
        traced = trained(layer, gt.function(call, executor="plain"), x)
    for one, two in zip(mine, traced, strict=True):
        np.testing.assert_allclose(one, two, rtol=1e-12, atol=1e-14)


def test_traces_have_ops_that_every_reader_knows() -> None:
    layer = LSTM(3, unroll=True)
    x = gt.ones((2, 4, 5))
    layer(x)
    graph = gt.function(lambda x: layer(x)).get_concrete_function(x).graph
    assert not any(node.op.name.startswith("lstm_gates") for node in graph.nodes)

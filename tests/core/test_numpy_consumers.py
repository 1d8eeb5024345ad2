"""What NumPy, SciPy and others make of tensors: they see values, and no gradient is lost unsaid."""

from __future__ import annotations

import io
import json
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import gradtape as gt

ROWS = np.arange(6.0).reshape(2, 3)
LINE = np.array([0.25, 0.5, 0.25])
T, R, V = gt.constant(LINE), gt.constant(ROWS), gt.Variable(LINE)
SMALL = LINE.astype(np.float32)


def seeded() -> np.random.Generator:
    return np.random.default_rng(0)


def changed(write: Callable[..., Any], x: Any) -> Any:
    """Return an array of NumPy's after something was written into it."""
    array = np.ones(3)
    result = write(array, x)
    return array if result is None or result is array else (array, result)


def saved(x: Any) -> Any:
    file = io.BytesIO()
    np.savez(file, x=x)
    file.seek(0)
    return np.load(file)["x"]


def added(array: Any, x: Any) -> Any:
    array += x
    return array


def filled(array: Any, x: Any) -> None:
    array[:] = x


# Each is NumPy's own code, which reads values or asks for types.
CONSUMERS: dict[str, Callable[[Any], Any]] = {
    "RandomState.choice": lambda x: np.random.RandomState(0).choice(3, 9, p=x),
    "Generator.choice": lambda x: seeded().choice(3, 9, p=x),
    "choice of values": lambda x: seeded().choice(x, 9),
    "multinomial": lambda x: seeded().multinomial(9, x),
    "dirichlet": lambda x: seeded().dirichlet(x),
    "normal": lambda x: seeded().normal(x, x),
    "permutation": lambda x: seeded().permutation(x),
    "permuted": lambda x: seeded().permuted(x),
    "save": saved,
    "savetxt": lambda x: [np.savetxt(file := io.StringIO(), x), file.getvalue()][1],
    "json": lambda x: json.dumps(x.tolist()),
    "math": lambda x: math.sqrt(x[1]),
    "interp": lambda x: np.interp(0.3, x, x),
    "masked array": lambda x: np.ma.masked_array(x, mask=[0, 1, 0]).sum(),
    "require": lambda x: np.require(x, requirements="C"),
    "r_": lambda x: np.r_[x, x],
    "vectorize": lambda x: np.vectorize(lambda one: one + 1)(x),
    "frompyfunc": lambda x: np.frompyfunc(lambda one: one + 1, 1, 1)(x),
    "nditer": lambda x: [float(one) for one in np.nditer(x)],
    "Polynomial": lambda x: np.polynomial.Polynomial(x)(2.0),
    "histogram2d": lambda x: np.histogram2d(x, x)[0],
    "apply_over_axes": lambda x: np.apply_over_axes(np.sum, x, [0]),
    "packbits": lambda x: np.packbits(x > 0.3),
    "strings": lambda x: np.where(x > 0.3, "much", "little"),
    "objects": lambda x: np.broadcast_arrays(x, None)[1],
    "add.at": lambda x: changed(lambda a, x: np.add.at(a, [0, 0, 1], x), x),
    "out of a ufunc": lambda x: changed(lambda a, x: np.multiply(x, 2.0, out=a), x),
    "out of a function": lambda x: changed(lambda a, x: np.cumsum(x, out=a), x),
    "out by place": lambda x: changed(lambda a, x: np.clip(x, 0.3, 0.4, a), x),
    "+=": lambda x: changed(added, x),
    "[:] =": lambda x: changed(filled, x),
    "put": lambda x: changed(lambda a, x: np.put(a, [2, 1, 0], x), x),
    "copyto": lambda x: changed(lambda a, x: np.copyto(a, x), x),
    "putmask": lambda x: changed(lambda a, x: np.putmask(a, x > 0.3, x), x),
    "place": lambda x: changed(lambda a, x: np.place(a, x > 0.3, x), x),
    "assert_allclose": lambda x: np.testing.assert_allclose(x, LINE),
}


@pytest.mark.parametrize("name", CONSUMERS)
def test_numpys_own_code_sees_the_values(name: str) -> None:
    consume = CONSUMERS[name]
    expected = consume(LINE)
    for x in (T, V):
        result = consume(x)
        assert type(np.asarray(result)) is np.ndarray
        np.testing.assert_array_equal(np.asarray(result), np.asarray(expected))


WRITERS = ["add.at", "out of a ufunc", "out of a function", "+=", "put", "copyto", "putmask"]
ALONE = ["frompyfunc", "histogram2d", "apply_over_axes", "packbits", "strings", "objects"]


@pytest.mark.parametrize("name", WRITERS + ALONE)
def test_where_gradients_are_followed_it_is_an_error_and_no_silent_end(name: str) -> None:
    consume = CONSUMERS[name]
    with (
        gt.GradientTape(),
        pytest.raises(TypeError, match=r"\.numpy\(\)|a tensor holds numbers|None"),
    ):
        consume(V)
    with pytest.raises(TypeError):
        gt.function(consume)(T)
    with pytest.raises(TypeError):
        gt.vmap(consume)(gt.constant([LINE, LINE]))
    with pytest.raises(TypeError):
        gt.jvp(consume, (T,), (T,))


@pytest.mark.parametrize("name", ["add.at", "out of a ufunc", "copyto"])
def test_a_paused_tape_follows_nothing(name: str) -> None:
    with gt.GradientTape() as tape, tape.stop_recording():
        np.testing.assert_array_equal(CONSUMERS[name](V), CONSUMERS[name](LINE))


def test_a_tensor_is_never_written() -> None:
    for write in (
        lambda: np.add.at(T, [0], 1.0),
        lambda: np.add(LINE, 1.0, out=T),
        lambda: np.cumsum(T, out=T),
        lambda: np.copyto(T, LINE),
        lambda: np.put(T, [0], 1.0),
    ):
        with pytest.raises(TypeError, match="does not work on tensors"):
            write()
    assert T.tolist() == LINE.tolist()


def test_what_only_rearranges_gives_tensors_inside_a_tape_and_outside() -> None:
    """Or a program would do one thing while it is tried, and another while it trains."""
    outside = np.squeeze(R[:1])
    with gt.GradientTape() as tape:
        tape.watch(R)
        inside = np.squeeze(R[:1])
        y = np.sum(inside * 2.0)
    assert type(inside) is type(outside) is gt.Tensor
    assert tape.gradient(y, R).tolist() == [[2.0] * 3, [0.0] * 3]


def test_numbers_are_drawn_with_the_probabilities_of_a_network() -> None:
    """np.random widens its tolerance for float32 arrays alone; ours needs none."""
    gt.random.set_seed(0)
    logits = gt.Variable(np.random.default_rng(0).normal(size=(1, 5)).astype(np.float32))
    for _ in range(20):
        with gt.GradientTape() as tape:
            probabilities = gt.nn.softmax(logits)
            action = gt.random.choice(5, p=np.squeeze(probabilities))
            same = seeded().choice(5, p=np.squeeze(probabilities.numpy()))
            loss = -gt.log(probabilities[0, action])
        assert 0 <= action.item() < 5
        assert 0 <= same < 5
        gradient = tape.gradient(loss, logits)
        assert gradient.dtype == np.float32
        logits.assign_sub(0.1 * gradient)


def test_scipy_sees_the_values() -> None:
    names = ("interpolate", "linalg", "sparse", "special", "stats")
    interpolate, linalg, sparse, special, stats = (
        pytest.importorskip(f"scipy.{name}") for name in names
    )
    for consume in (
        special.logsumexp,
        stats.norm.pdf,
        lambda x: interpolate.CubicSpline(np.arange(3.0), x)(0.5),
        lambda x: linalg.solve(np.eye(3), x),
        lambda x: sparse.csr_matrix(np.eye(3)) @ x,
    ):
        result = consume(T)
        assert not isinstance(result, gt.Tensor)
        np.testing.assert_array_equal(result, consume(LINE))
    assert isinstance(special.expit(T), gt.Tensor)  # a ufunc, which keeps gradients


def test_matplotlib_plots_tensors() -> None:
    plt = pytest.importorskip("matplotlib.pyplot")
    figure, axes = plt.subplots()
    axes.plot(T, V)
    axes.scatter(T, T, c=T, s=T)
    axes.bar(T, V)
    axes.hist(T)
    axes.fill_between(T, V)
    axes.errorbar(T, T, yerr=T)
    axes.imshow(R)
    axes.contourf(gt.ones((3, 1)) * T)
    figure.canvas.draw()
    plt.close(figure)

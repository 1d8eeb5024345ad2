"""Planned programs give what the plain executor gives: all ops, hard numbers, large arrays."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest
from table import SAMPLES

import gradtape as gt
from gradtape.core.extend import SCALARS

HARD = [np.nan, np.inf, -np.inf, -0.0, 0.0]


def by(executor: str, function: Any, *args: Any) -> list[np.ndarray]:
    """Return the results of a function as an executor gives them, a second time."""
    with gt.executor(executor), warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        function(*args)
        results = function(*args)
    results = results if isinstance(results, (list, tuple)) else [results]
    return [np.asarray(x) for x in results]


def told(function: Any) -> str:
    """Return what the planned executor made of a function."""
    with gt.executor("planned"):
        text: str = function.concrete_functions[0].explain()
        return text


def same(mine: list[np.ndarray], right: list[np.ndarray], ulps: int) -> None:
    for x, y in zip(mine, right, strict=True):
        assert (x.shape, x.dtype) == (y.shape, y.dtype)
        if ulps == 0 or x.dtype.kind not in "fc":
            np.testing.assert_array_equal(x, y)
        else:
            np.testing.assert_allclose(x, y, rtol=ulps * np.finfo(x.dtype).eps, atol=1e-12)
        if x.dtype.kind == "f" and ulps == 0:
            np.testing.assert_array_equal(np.signbit(x), np.signbit(y))


def with_hard_numbers(x: Any) -> Any:
    if type(x) in SCALARS or x.dtype.kind != "f" or not x.size:
        return x
    flat = x.copy().reshape(-1)
    count = min(len(HARD), flat.size)
    flat[:count] = HARD[:count]
    return flat.reshape(x.shape)


#: Their steps sum in another order than NumPy's kernel for them.
REDUCED = {"batch_norm_training", "batch_norm_gradient"}


@pytest.mark.parametrize("hard", [False, True], ids=["samples", "hard numbers"])
@pytest.mark.parametrize("name", sorted(SAMPLES))
def test_an_op_gives_the_same_numbers(name: str, hard: bool) -> None:
    op = gt.registry().ops[name]
    for sample in SAMPLES[name]:
        inputs = [with_hard_numbers(x) if hard else x for x in sample.inputs]
        arrays = [x for x in inputs if type(x) not in SCALARS]

        def run(*tensors: Any, inputs: Any = inputs, sample: Any = sample) -> Any:
            given = iter(tensors)
            # a step before and one behind, so that results of the op lie in buffers
            now = [x if type(x) in SCALARS else next(given) for x in inputs]
            before = [
                x * 1 if getattr(x, "dtype", None) is not None and x.dtype.kind in "fc" else x
                for x in now
            ]
            out = op(*before, **sample.params)
            outs = out if isinstance(out, list) else [out]
            return [*outs, *[y + y for y in outs if y.dtype.kind in "fc"]]

        traced = gt.function(run)
        tensors = [gt.constant(x) for x in arrays]
        try:
            right = by("plain", traced, *tensors)
        except Exception as error:
            with pytest.raises(type(error)):
                by("planned", traced, *tensors)
            continue
        same(by("planned", traced, *tensors), right, 64 if name in REDUCED else 0)


@pytest.mark.parametrize("shape", [(), (0, 3), (1,), (3, 5), (300, 700), (3, 70000)])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_chains_with_branches_and_sums_are_the_same(shape: tuple[int, ...], dtype: str) -> None:
    x = np.random.default_rng(0).standard_normal(shape).astype(dtype)

    @gt.function
    def f(x: Any) -> Any:
        a = gt.exp(x) * 2.0 - x
        b = gt.where(a > 1.0, a, gt.sin(x) / 3)
        row = gt.sum(b, axis=0) if x.shape else b
        c = gt.nn.relu(b * row - 1.0) + gt.cast(a > 0, dtype)
        return c, gt.sum(c), b + 1.0, gt.mean(c * c)

    same(by("planned", f, gt.constant(x)), by("plain", f, gt.constant(x)), 0)


def test_one_function_of_many_small_arrays_is_one_call() -> None:
    def f(x: Any) -> Any:
        with gt.GradientTape() as tape:
            tape.watch(x)
            y = x
            for _ in range(6):
                y = gt.sin(y * 1.25)
        return y, tape.gradient(y, x)

    x = gt.constant(np.array([0.5, -0.0, np.nan, np.inf, 3.0], "float32"))
    traced = gt.function(f)
    same(by("planned", traced, x), by("plain", traced, x), 0)
    assert "stack of 6 cos over (5,), one call" in told(traced)


def test_blocks_do_not_change_column_sums() -> None:
    x = np.random.default_rng(1).standard_normal((999, 300)).astype("float32")
    f = gt.function(lambda x: gt.sum(gt.exp(x * 0.1) * x, axis=0))
    same(by("planned", f, gt.constant(x)), by("plain", f, gt.constant(x)), 0)
    assert "group over (999, 300)" in told(f)


@pytest.mark.parametrize("bad", [None, np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("where", ["slopes", "weights"])
def test_products_with_an_identity_are_not_multiplied_but_keep_nan(bad: Any, where: str) -> None:
    random = np.random.default_rng(2)
    x, w = (random.standard_normal(shape).astype("float32") for shape in ((7, 4), (6, 4)))
    eye = gt.constant(np.eye(4, dtype="float32")[:, None, :])
    if bad is not None:
        (x if where == "slopes" else w)[2, 1] = bad
    x[3, 2] = -0.0

    @gt.function
    def f(x: Any, w: Any) -> Any:
        return gt.matmul(eye * x, gt.transpose(w)), gt.matmul(eye, gt.transpose(w))

    given = gt.constant(x), gt.constant(w)
    same(by("planned", f, *given), by("plain", f, *given), 0)
    assert "one_hot_rows" in told(f)


def test_products_with_an_identity_warn_if_they_overflow() -> None:
    random = np.random.default_rng(2)
    x, w = (random.standard_normal(shape).astype("float32") for shape in ((7, 4), (6, 4)))
    eye = gt.constant(np.eye(4, dtype="float32")[:, None, :])
    f = gt.function(lambda x, w: gt.matmul(eye * x, gt.transpose(w)), executor="planned")
    with np.errstate(over="raise"):
        f(x, w)
        x[2, 1] = 1e30
        w[3, 1] = 1e30
        with pytest.raises(FloatingPointError):
            f(x, w)
    assert "outer_products" in told(f)


def test_batch_normalisation_agrees() -> None:
    x = gt.constant(np.random.default_rng(3).standard_normal((64, 16)).astype("float32"))
    gamma, beta = gt.ones(16), gt.zeros(16)

    @gt.function
    def f(x: Any) -> Any:
        with gt.GradientTape() as tape:
            tape.watch(x)
            y, mean, variance = gt.registry().ops["batch_norm_training"](x, gamma, beta)
            loss = gt.sum(y * y * y)
        return y, mean, variance, tape.gradient(loss, x)

    for mine, right in zip(by("planned", f, x), by("plain", f, x)):
        np.testing.assert_allclose(mine, right, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("mode", ["warn", "raise"])
def test_floating_point_errors_are_told_as_by_the_plain_executor(mode: Any) -> None:
    f = gt.function(lambda x: gt.sqrt(x - 1.0) / (x + 1.0))
    x = gt.constant(np.full((4, 4), -1.0, "float32"))
    told = {}
    for executor in ("plain", "planned"):
        with gt.executor(executor), warnings.catch_warnings(record=True) as found:
            warnings.simplefilter("always")
            with np.errstate(all=mode):
                try:
                    f(x)
                except FloatingPointError as error:
                    found.append(error)  # type: ignore[arg-type]
            told[executor] = [str(getattr(w, "message", w)) for w in found]
    assert told["planned"] == told["plain"] != []


def test_a_second_product_with_the_same_truths_changes_nothing() -> None:
    x = np.array([[*HARD, 1.5, -1.5, 3e38], [*HARD[::-1], 2.0, 1e-45, -3e38]], "float32")
    truths = np.array([True, False] * 4)

    def f(x: Any, truths: Any) -> Any:
        once = x * truths
        return (once * 3.0 + once) * truths, once * truths - x * truths, (once + x) * truths

    given = gt.function(f), gt.constant(x), gt.constant(truths)
    same(by("planned", *given), by("plain", *given), 0)
    assert told(given[0]).count("multiply") == 1
    assert "5 multiply" not in told(given[0])


def test_what_nobody_reads_is_not_computed_but_labels_are_checked() -> None:
    @gt.function
    def f(x: Any, labels: Any) -> Any:
        with gt.GradientTape() as tape:
            tape.watch(x)
            losses = gt.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=x)
            loss = gt.mean(losses)
        return tape.gradient(loss, x)

    x = np.random.default_rng(0).standard_normal((4, 3)).astype("float32")
    given = f, gt.constant(x), gt.constant(np.array([0, 2, 1, 1]))
    same(by("planned", *given), by("plain", *given), 1)
    assert "log" not in told(f).split("outside groups")[0]
    with gt.executor("planned"), pytest.raises(ValueError, match="labels must be"):
        f(given[1], gt.constant(np.array([0, 3, 1, 1])))


def test_numbers_are_computed_as_arrays_are() -> None:
    a, b = gt.Variable(np.float32(3.0)), gt.Variable(np.float64(0.0))

    def f(x: Any, y: Any) -> Any:
        number = gt.sqrt(x) * 2.0 + a / x
        wide = gt.cast(number, "float64") / b
        b.assign(gt.cast(y, "float64") + b)
        a.assign(gt.cast(wide, "float32") - a)
        return number, wide, gt.exp(number), gt.sum(gt.ones((3, 4)) * number), a * 1.0, y / y

    found = []
    for executor in ("planned", "plain"):
        a.assign(3.0), b.assign(0.0)
        found.append(by(executor, gt.function(f), gt.constant(2.0), gt.constant(np.int64(0))))
        found[-1] += [a.numpy(), b.numpy()]
    same(*found, 0)

"""More random numbers: moments, gradients, traces, states, errors."""

from __future__ import annotations

import numpy as np
import pytest

import gradtape as gt
from gradtape.core.extend import ops

MANY = (200, 200)


def generator(seed=0):
    return gt.random.Generator(seed)


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_moments(dtype):
    exponential = generator().exponential(MANY, 2.0, dtype)
    truncated = generator().truncated_normal(MANY, 1.0, 0.5, dtype)
    gamma = generator().gamma(MANY, 3.0, 0.5, dtype)
    assert exponential.dtype == truncated.dtype == gamma.dtype == dtype
    wide = [x.numpy().astype("float64") for x in (exponential, truncated, gamma)]
    assert [x.mean() for x in wide] == pytest.approx([2.0, 1.0, 1.5], abs=0.03)
    # the variance of a normal cut at two standard deviations is 0.7737
    assert [x.std() for x in wide] == pytest.approx([2.0, 0.5 * 0.8796, np.sqrt(0.75)], abs=0.04)
    assert wide[0].min() >= 0
    assert 0 <= wide[1].min() < 0.1
    assert 1.9 < wide[1].max() <= 2.0


def test_booleans_and_integers():
    flags = generator().bernoulli(MANY, 0.3)
    assert flags.dtype == bool
    assert flags.numpy().mean() == pytest.approx(0.3, abs=0.01)
    rows = generator().bernoulli((1000, 2), gt.constant([0.0, 1.0], "float64"))
    assert rows.numpy().mean(0).tolist() == [0.0, 1.0]
    dice = generator().randint(MANY, 1, 7)
    assert dice.dtype == "int64"
    assert np.bincount(dice.numpy().ravel())[1:] / dice.size == pytest.approx(1 / 6, abs=0.01)
    assert set(generator().randint(100, 2).tolist()) == {0, 1}


def test_classes_have_the_probabilities_of_their_logits():
    chances = np.array([[0.1, 0.2, 0.7], [0.5, 0.5, 0.0]])
    with np.errstate(divide="ignore"):
        logits = gt.constant(np.log(chances))
    draws = generator().categorical(logits, 20_000)
    assert draws.shape == (20_000, 2)
    shares = [np.bincount(column, minlength=3) / 20_000 for column in draws.numpy().T]
    np.testing.assert_allclose(shares, chances, atol=0.015)
    assert generator().categorical(logits).shape == (2,)


def test_choices():
    x = gt.constant([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])
    with gt.GradientTape() as tape:
        tape.watch(x)
        rows = generator().choice(x, (4,))
    assert rows.shape == (4, 2)
    assert np.sum(tape.gradient(rows, x).numpy()) == 8.0
    assert sorted(generator().choice(5, 5, replace=False).tolist()) == [0, 1, 2, 3, 4]
    with np.errstate(divide="ignore"):
        assert generator().choice(3, p=[0.0, 1.0, 0.0]).item() == 1
        assert set(generator().choice(3, 100, p=[0.5, 0.0, 0.5]).tolist()) == {0, 2}
    pairs = [sorted(generator(i).choice(3, 2, False, [0.6, 0.4, 1e-9]).tolist()) for i in range(20)]
    assert pairs == [[0, 1]] * 20


def test_gradients_reach_what_scales_the_numbers():
    for draw in ("exponential", "gamma"):
        scale = gt.constant(2.0)
        with gt.GradientTape() as tape:
            tape.watch(scale)
            arguments = (scale,) if draw == "exponential" else (3.0, scale)
            y = getattr(generator(), draw)((10,), *arguments)
        assert tape.gradient(y, scale).item() == pytest.approx(y.numpy().sum() / 2, rel=1e-5)


def test_the_gradient_of_gamma_is_that_of_its_quantiles():
    special = pytest.importorskip("scipy.special")
    slope = ops["random_gamma_slope"].raw
    rng = np.random.default_rng(0)
    a = np.repeat([0.05, 0.3, 1.0, 2.5, 10.0, 100.0, 2000.0], 40)
    place = rng.uniform(0.001, 0.999, a.shape)
    step = 1e-5 * a
    z = special.gammaincinv(a, place)
    moved = [special.gammaincinv(a + s, place) for s in (step, -step)]
    seen = z > 1e-250
    want = (moved[0] - moved[1]) / (2 * step)
    np.testing.assert_allclose(slope(a[seen], z[seen]), want[seen], rtol=2e-5)
    large = np.full(9, 5e4)
    z = special.gammaincinv(large, np.linspace(0.05, 0.95, 9))
    want = special.gammaincinv(large + 1, np.linspace(0.05, 0.95, 9)) - z
    np.testing.assert_allclose(slope(large, z), want, rtol=1e-5)


def test_the_mean_of_gamma_has_gradient_one():
    a = gt.constant(np.array([[0.5], [4.0]]))
    with gt.GradientTape() as tape:
        tape.watch(a)
        y = generator().gamma((2, 40_000), a)
    slope = tape.gradient(y, a).numpy() / 40_000
    np.testing.assert_allclose(slope, np.ones((2, 1)), atol=0.03)


def test_gamma_refuses_a_second_order():
    a = gt.constant(2.0)
    with gt.GradientTape() as outer:
        outer.watch(a)
        with gt.GradientTape() as inner:
            inner.watch(a)
            y = generator().gamma((), a)
        slope = inner.gradient(y, a)
    with pytest.raises(TypeError, match=r"random_gamma.*second-order"):
        outer.gradient(slope, a)


def test_a_state_can_be_read_and_set():
    first = generator(5)
    first.uniform(3)
    state = first.state.numpy()
    draws = first.gamma(4, 2.0).tolist()
    second = generator(6)
    second.state.assign(state)
    assert second.gamma(4, 2.0).tolist() == draws


def test_traced_draws_are_the_eager_ones_and_differ_from_call_to_call():
    def draw(source, logits):
        return [
            source.exponential((3,)),
            source.truncated_normal((3,)),
            source.gamma((3,), 2.0),
            source.bernoulli((3,)),
            source.categorical(logits),
            source.randint((3,), 5),
            source.choice(logits, (2,)),
        ]

    source, twin = generator(1), generator(1)
    logits = gt.constant(np.eye(3))
    traced = gt.function(input_signature=[gt.TensorSpec([3, None], "float64")])(
        lambda x: draw(source, x)
    )
    for _ in range(2):
        for mine, theirs in zip(traced(logits), draw(twin, logits), strict=True):
            assert mine.tolist() == theirs.tolist()


def test_functions_of_the_module_draw_from_the_shared_generator():
    def draws():
        gt.random.set_seed(11)
        return [
            gt.random.exponential(2).tolist(),
            gt.random.truncated_normal(2).tolist(),
            gt.random.gamma(2, 1.5).tolist(),
            gt.random.bernoulli(9).tolist(),
            gt.random.categorical([0.0, 0.0, 0.0], 9).tolist(),
            gt.random.randint(9, 100).tolist(),
            gt.random.choice(9, 3, replace=False).tolist(),
        ]

    assert draws() == draws()


def test_ops_follow_their_key():
    key = gt.constant(np.array([3, 5]))
    for name in ("random_exponential", "random_gumbel", "random_truncated_normal"):
        draw = ops[name](key, shape=(4,), dtype="float64")
        assert draw.tolist() == ops[f"{name}_like"](key, draw).tolist()


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda g: g.gamma(3, -1.0), ValueError, r"random\.gamma.*above 0"),
        (lambda g: g.gamma((2,), gt.ones(3)), ValueError, r"random\.gamma: .*broadcast"),
        (lambda g: g.exponential(3, dtype="int32"), TypeError, "exponential.*floating"),
        (lambda g: g.randint(3, 5, 5), ValueError, "randint.*5 and 5"),
        (lambda g: g.choice(3, 4, replace=False), ValueError, "choice.*4 of 3"),
        (lambda g: g.bernoulli(-1), ValueError, r"random\.bernoulli: .*at least 0"),
        (lambda g: g.categorical([1, 2]), TypeError, "categorical.*int64"),
    ],
)
def test_errors_name_the_function(call, error, words):
    with pytest.raises(error, match=f"(?s){words}"):
        call(generator())

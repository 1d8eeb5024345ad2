"""Random numbers: repeatable from a seed, traced, differentiable in what shifts and scales them."""

from __future__ import annotations

import numpy as np
import pytest

import gradtape as gt
from gradtape.core.extend import ops

HALF = gt.zeros(1 << 16, "float16")


def test_equal_seeds_give_equal_numbers_and_draws_differ():
    first, second = gt.random.Generator(7), gt.random.Generator(7)
    draws = [first.normal((50,)).tolist() for _ in range(3)]
    assert [second.normal((50,)).tolist() for _ in range(3)] == draws
    assert draws[0] != draws[1]
    assert gt.random.Generator(8).normal((50,)).tolist() != draws[0]
    first.set_seed(7)
    assert first.normal((50,)).tolist() == draws[0]


def test_numbers_are_a_function_of_the_key_that_no_release_may_change():
    """A saved model draws the same numbers for ever: these are Philox's, of key (3, 5)."""
    key = gt.constant(np.array([3, 5]))
    stream = np.random.Generator(np.random.Philox(key=[3, 5]))
    ours = ops["random_uniform"](key, shape=(4,), dtype="float64")
    assert ours.tolist() == stream.random(4).tolist()


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_distributions(dtype):
    generator = gt.random.Generator(0)
    normal = generator.normal((100, 100), mean=2.0, stddev=3.0, dtype=dtype)
    uniform = generator.uniform((100, 100), -1.0, 3.0, dtype=dtype)
    assert normal.dtype == uniform.dtype == dtype
    wide = normal.numpy().astype("float64")
    assert wide.mean() == pytest.approx(2.0, abs=0.1)
    assert wide.std() == pytest.approx(3.0, abs=0.1)
    wide = uniform.numpy().astype("float64")
    assert -1.0 <= wide.min() < -0.9
    assert 2.9 < wide.max() <= 3.0
    assert wide.mean() == pytest.approx(1.0, abs=0.05)


def test_default_dtype_and_shapes():
    assert gt.random.normal(3).shape == (3,)
    assert gt.random.uniform(()).shape == ()
    assert gt.random.normal((0, 2)).shape == (0, 2)
    assert gt.random.uniform([2, 3]).dtype == "float32"


def test_numbers_like_a_tensor():
    generator = gt.random.Generator(1)
    x = gt.zeros((2, 3), "float64")
    assert generator.normal_like(x).dtype == "float64"
    assert generator.uniform_like(x).shape == (2, 3)


def test_mean_and_stddev_have_gradients():
    generator = gt.random.Generator(2)
    mean, stddev = gt.Variable(1.0), gt.Variable([1.0, 2.0])
    with gt.GradientTape() as tape:
        x = generator.normal((4, 2), mean, stddev)
    to_mean, to_stddev = tape.gradient(x, [mean, stddev])
    noise = gt.random.Generator(2).normal((4, 2)).numpy()
    assert to_mean.item() == 8.0
    np.testing.assert_allclose(to_stddev.numpy(), noise.sum(0), rtol=1e-6)
    low, high = gt.Variable(0.0), gt.Variable(1.0)
    with gt.GradientTape() as tape:
        x = generator.uniform((3,), low, high)
    slopes = [g.item() for g in tape.gradient(x, [low, high])]
    assert sum(slopes) == pytest.approx(3.0)


def test_a_traced_function_draws_anew_at_every_call_and_size():
    generator, twin = gt.random.Generator(5), gt.random.Generator(5)

    @gt.function(input_signature=[gt.TensorSpec([None, 2])])
    def traced(x):
        return generator.uniform_like(x), generator.normal((2,))

    for batch in (1, 4, 4):
        x = gt.zeros((batch, 2))
        uniform, normal = traced(x)
        assert uniform.tolist() == twin.uniform_like(x).tolist()
        assert normal.tolist() == twin.normal((2,)).tolist()


def test_a_generator_is_a_module_with_its_state_in_a_variable():
    class Noise(gt.Module):
        def __init__(self):
            super().__init__()
            self.source = gt.random.Generator(3)

    noise = Noise()
    assert list(noise.named_variables) == ["source/state"]
    assert not noise.trainable_variables
    noise.source.normal(2)
    assert noise.source.state.numpy().tolist() == [3, 1]
    assert noise.source.get_config() == {"seed": 3, "name": "generator"}


def test_module_level_functions_share_a_seed():
    gt.random.set_seed(11)
    first = [gt.random.normal((3,)).tolist(), gt.random.uniform((3,), minval=1, maxval=2).tolist()]
    order = gt.random.permutation(6).tolist()
    gt.random.set_seed(11)
    assert [gt.random.normal((3,)).tolist(), gt.random.uniform((3,), 1, 2).tolist()] == first
    assert gt.random.permutation(6).tolist() == order
    assert all(1 <= x < 2 for x in first[1])


def test_permutation_and_shuffle():
    generator = gt.random.Generator(0)
    order = generator.permutation(100)
    assert order.dtype == "int64"
    assert sorted(order.tolist()) == list(range(100)) != order.tolist()
    rows = gt.constant(np.arange(20).reshape(10, 2))
    shuffled = gt.random.shuffle(rows)
    assert sorted(shuffled.tolist()) == rows.tolist()
    assert sorted(gt.random.permutation(rows).tolist()) == rows.tolist()


def test_without_a_seed_generators_differ():
    a, b = gt.random.Generator(), gt.random.Generator()
    assert a.normal((4,)).tolist() != b.normal((4,)).tolist()


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda: gt.random.Generator(-1), ValueError, "seed.*-1"),
        (lambda: gt.random.Generator(1.5), ValueError, r"seed.*1\.5"),
        (lambda: gt.random.Generator(True), ValueError, "seed.*True"),
        (lambda: gt.random.set_seed(2**64), ValueError, "seed"),
        (lambda: gt.random.normal((2,), dtype="int32"), TypeError, r"random\.normal.*int32"),
        (lambda: gt.random.uniform((-1,)), ValueError, r"random\.uniform.*-1"),
        (lambda: gt.random.uniform("ab"), TypeError, r"random\.uniform.*'ab'"),
        (
            lambda: gt.random.Generator(0).uniform_like(gt.zeros(2, "int64")),
            TypeError,
            "uniform_like.*int64",
        ),
    ],
)
def test_errors(call, error, words):
    with pytest.raises(error, match=words):
        call()


def test_uniform_numbers_stay_below_one_in_half_precision():
    generator = gt.random.Generator(0)
    for draw in (generator.uniform(1 << 16, dtype="float16"), generator.uniform_like(HALF)):
        assert draw.dtype == "float16"
        assert draw.max().item() < 1.0
        assert draw.min().item() < 1e-3
        np.testing.assert_allclose(draw.astype("float64").mean().item(), 0.5, atol=5e-3)


def test_small_probabilities_hold_in_half_precision():
    share = gt.random.Generator(0).bernoulli(1 << 18, np.float16(1e-4))
    assert 5 <= np.count_nonzero(share.numpy()) <= 60


@pytest.mark.parametrize(
    "make", [np.asarray, list, lambda x: gt.constant(x), lambda x: np.asarray(x, np.uint64)]
)
def test_the_state_is_set_by_assigning_it(make):
    generator = gt.random.Generator(3)
    variable, snapshot = generator.state, generator.state.numpy()
    first = generator.normal(4).tolist()
    generator.state = make(snapshot)
    assert generator.state is variable
    assert generator.normal(4).tolist() == first
    generator.state = np.array([7, 0])
    assert generator.normal(4).tolist() == gt.random.Generator(7).normal(4).tolist()


@pytest.mark.parametrize("state", [[1.5, 0.0], [7], 7, [-1, 0], [[7, 0]]])
def test_a_state_that_is_none_is_refused_at_the_assignment(state):
    generator = gt.random.Generator(3)
    with pytest.raises(ValueError, match=r"state"):
        generator.state = state
    assert generator.state.tolist() == [3, 0]


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda g: g.normal(3, stddev=-1), "normal: stddev.*-1"),
        (lambda g: g.normal(3, 0.0, gt.constant([1.0, -2.0, 1.0])), r"normal: stddev.*-2\.0"),
        (lambda g: g.truncated_normal(3, 0.0, gt.Variable(-1.0)), "truncated_normal: stddev"),
        (lambda g: g.exponential(3, np.array(-1.0)), "exponential: scale"),
        (lambda g: g.gamma(3, 2.0, -1.0), "gamma: scale"),
        (lambda g: g.uniform(3, 2.0, 1.0), r"uniform: high - low.*-1\.0"),
        (lambda g: g.bernoulli(3, 1.5), r"bernoulli: a probability.*1\.5"),
        (lambda g: g.bernoulli(3, [0.5, -0.1, 1.0]), r"bernoulli.*-0\.1"),
        (lambda g: g.bernoulli(3, float("nan")), "bernoulli.*nan"),
        (lambda g: g.choice(3, p=[0.5, 0.6, -0.1]), "choice: a probability"),
        (lambda g: g.choice(3, p=[0.5, 0.5]), r"choice: p must have shape \(3,\)"),
    ],
)
def test_parameters_that_no_distribution_has(call, words):
    with pytest.raises(ValueError, match=rf"random\.{words}"):
        call(gt.random.Generator(0))


def test_parameters_in_a_trace_are_not_looked_at():
    generator = gt.random.Generator(0)

    @gt.function
    def draw(p, s):
        return generator.bernoulli(3, p), generator.normal(3, 0.0, s), generator.uniform(3, 0.0, s)

    assert draw(gt.constant(0.5), gt.constant(2.0))[0].shape == (3,)
    ten = gt.vmap(lambda s: generator.normal(3, 0.0, s), randomness="different")
    assert ten(gt.ones(10)).shape == (10, 3)


@pytest.mark.parametrize("name", ["permutation", "shuffle", "choice"])
def test_rows_are_asked_for_by_name(name):
    with pytest.raises(IndexError, match=rf"random\.{name}: .*a single float"):
        getattr(gt.random.Generator(0), name)(2.5)

"""Random numbers on CuPy: NumPy's bits, eager and compiled, without the host."""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import product
from typing import Any

import numpy as np
import pytest

import gradtape as gt
from gradtape.core.extend import batch_rows, ops
from gradtape.core.ops.collectives import BatchRows
from gradtape.plugins.cupy.random import ziggurat

BOTH = pytest.mark.parametrize("how", ["default", "cuda_graphs"])
NAMES = ["exponential", "gumbel", "normal", "truncated_normal", "uniform"]
DTYPES = ["float16", "float32", "float64"]
#: Shapes with no number, one, a tile of words, and several.
SHAPES = [(0, 3), (), (5, 7), (150,), (3, 1000)]
BOUNDS = [
    *((0, 1), (-4, 7), (0, 2**31), (0, 2**31 + 1), (5, 2**32 - 1), (-7, 2**32 - 7)),
    *((0, 2**32 + 1), (-(2**40), 2**40), (-(2**62), 2**62 + 2**61), (-(2**63), 2**63)),
]


def _keys(batch: tuple[int, ...], seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, 2**63, (*batch, 2))


def _draws() -> dict[str, Callable[[Any], Any]]:
    """Return functions of a key, by name."""

    def drawing(op: str, **params: Any) -> Callable[[Any], Any]:
        return lambda key: ops[op](key, **params)

    found = {}
    for name, dtype, shape in product(NAMES, DTYPES, SHAPES):
        draw = drawing(f"random_{name}", shape=shape, dtype=dtype)
        found[f"{name} {dtype} {shape}"] = draw
    for low, high in BOUNDS:
        draw = drawing("random_integers", shape=(40, 50), low=low, high=high)
        found[f"integers {low} {high}"] = draw
    return found


DRAWS = _draws()


def _same(name: str, mine: np.ndarray, theirs: np.ndarray) -> None:
    assert mine.dtype == theirs.dtype
    if "gumbel" in name:  # a logarithm, whose last place depends on the library
        np.testing.assert_allclose(mine, theirs, rtol=2e-3 if "16" in name else 1e-6, atol=1e-6)
    else:
        assert mine.tobytes() == theirs.tobytes()


@pytest.mark.parametrize("batch", [(), (3,), (2, 2)])
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("compiled", [False, True])
def test_they_are_numpys(cupy: Any, name: str, batch: tuple[int, ...], compiled: bool) -> None:
    draws = [(x, draw) for x, draw in DRAWS.items() if x.startswith(f"{name} ")]
    both = [gt.function(draw) if compiled else draw for _, draw in draws]
    key = gt.constant(_keys(batch))
    there = key.to("cupy")
    cupy.seen.dry = True  # so that all kernels are compiled at once
    for draw in both:
        draw(there)
    cupy.seen.dry = False
    for (x, draw), on_gpu in zip(draws, both, strict=True):
        found, wanted = on_gpu(there), draw(key)
        assert found.device == "cupy:0"
        assert found.shape == wanted.shape
        _same(x, found.numpy(), wanted.numpy())


@pytest.mark.parametrize("compiled", [False, True])
def test_integers_are_numpys(cupy: Any, compiled: bool) -> None:
    draws = [draw for x, draw in DRAWS.items() if x.startswith("integers")]
    both = [gt.function(draw) if compiled else draw for draw in draws]
    for batch in ((), (3,)):
        key = gt.constant(_keys(batch, 1))
        cupy.seen.dry = True
        for draw in both:
            draw(key.to("cupy"))
        cupy.seen.dry = False
        for draw, on_gpu in zip(draws, both, strict=True):
            np.testing.assert_array_equal(on_gpu(key.to("cupy")).numpy(), draw(key).numpy())


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("dtype", ["int64", "int32", "uint32", "uint64"])
def test_keys_of_any_dtype_give_keys_and_numbers(cupy: Any, dtype: str, compiled: bool) -> None:
    def both(key: Any, like: Any) -> Any:
        keys = ops["random_split"](key, like)
        return keys, ops["random_uniform"](key, shape=(9,)), ops["random_uniform"](keys, shape=())

    for batch in ((), (4,)):
        key = gt.constant((_keys(batch, 2) % 2**31).astype(dtype))
        like = gt.zeros((300, 1))
        run = gt.function(both) if compiled else both
        found, wanted = run(key.to("cupy"), like.to("cupy")), both(key, like)
        for mine, theirs in zip(found, wanted, strict=True):
            _same("", mine.numpy(), theirs.numpy())


@pytest.mark.parametrize("compiled", [False, True])
def test_numbers_like_a_tensor_and_for_keys_that_are_views(cupy: Any, compiled: bool) -> None:
    """The keys of examples lie apart: kernels read them through views."""

    def noise(keys: Any, x: Any) -> Any:
        turned = gt.transpose(keys, axes=(1, 0, 2))[::-1, 1:]
        return [ops[f"random_{name}_like"](turned, x) for name in NAMES]

    keys, x = gt.constant(_keys((4, 3), 3)), gt.zeros((3, 3, 17))
    run = gt.function(noise) if compiled else noise
    for name, mine, theirs in zip(
        NAMES, run(keys.to("cupy"), x.to("cupy")), noise(keys, x), strict=True
    ):
        _same(name, mine.numpy(), theirs.numpy())


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", ["exponential", "normal", "truncated_normal"])
def test_a_million_numbers_with_their_tails_are_numpys(cupy: Any, name: str, dtype: str) -> None:
    key = gt.constant(_keys((), 4))
    wanted = ops[f"random_{name}"](key, shape=(10**6,), dtype=dtype).numpy()
    found = ops[f"random_{name}"](key.to("cupy"), shape=(10**6,), dtype=dtype).numpy()
    assert found.tobytes() == wanted.tobytes()
    if name != "truncated_normal":  # they have tails, and both kinds of them
        start = float(getattr(ziggurat, name)(dtype == "float32").start)
        assert (wanted > start).sum() > 50
        assert (wanted < -start).sum() > 50 or name == "exponential"


def test_many_draws_of_few_numbers_are_numpys(cupy: Any) -> None:
    """So that rare words are also the first and the last ones of a draw."""
    key = gt.constant(_keys((600,), 5))
    for name in ("exponential", "normal", "truncated_normal"):
        wanted = ops[f"random_{name}"](key, shape=(3,)).numpy()
        found = ops[f"random_{name}"](key.to("cupy"), shape=(3,)).numpy()
        assert found.tobytes() == wanted.tobytes()


@pytest.mark.parametrize("single", [False, True])
@pytest.mark.parametrize("name", ["normal", "exponential"])
def test_the_layers_of_a_ziggurat_have_one_area(name: str, single: bool) -> None:
    """Independent of NumPy's numbers: each layer covers the density, and 1/256 of the area."""
    table = getattr(ziggurat, name)(single)
    places = 23 if single else 52 if name == "normal" else 53
    x = np.array(table.widths) * 2.0**places
    density = np.exp(-x * x / 2) if name == "normal" else np.exp(-x)
    np.testing.assert_allclose(table.heights[1:], density[1:], rtol=1e-5 if single else 1e-13)
    assert table.heights[0] == 1.0
    areas = x[1:] * -np.diff([1.0, *density[1:]])
    np.testing.assert_allclose(areas, x[0] * density[255], rtol=1e-3 if single else 1e-10)
    inside = np.array(table.limits[2:]) / 2.0**places
    np.testing.assert_allclose(inside, x[1:-1] / x[2:], rtol=1e-5 if single else 1e-13)
    whole = math.sqrt(math.pi / 2) if name == "normal" else 1.0
    assert 1 < 256 * areas[0] / whole < 1.02  # rectangles that are not much larger


def test_they_are_made_there_by_few_launches(cupy: Any) -> None:
    most = {"uniform": 1, "integers 0 2147483648": 1, "truncated_normal": 3}
    key = gt.constant(_keys((), 6)).to("cupy")
    for name, draw in DRAWS.items():
        draw(key)
        before = cupy.seen.launches
        with cupy.counting() as copies:
            draw(key)
        assert not copies
        allowed = next((n for x, n in most.items() if name.startswith(x)), 2)
        assert cupy.seen.launches - before <= allowed


# -- in steps of training --------------------------------------------------------------------------


def _trained(where: str, how: str) -> tuple[list[float], Any]:
    with gt.backend(where), gt.executor(how):
        gt.random.set_seed(0)
        generator = gt.random.Generator(4)
        model = gt.layers.Sequential(
            [
                gt.layers.Dense(16, activation="relu"),
                gt.layers.Dropout(0.3, seed=1),
                gt.layers.GaussianNoise(0.1, seed=2),
                gt.layers.Dense(3),
                gt.layers.AlphaDropout(0.1, seed=3),
            ]
        )
        optimizer = gt.training.SGD(0.1)

        @gt.function
        def step(x: Any, y: Any) -> Any:
            with gt.GradientTape() as tape:
                z = model(x, training=True) + generator.truncated_normal((32, 3))
                loss = gt.mean(gt.nn.sparse_softmax_cross_entropy_with_logits(labels=y, logits=z))
            variables = list(model.trainable_variables)
            optimizer.apply_gradients(zip(tape.gradient(loss, variables), variables))
            return loss

        x = np.random.default_rng(0).normal(size=(32, 8)).astype("float32")
        data = gt.constant(x), gt.constant(np.arange(32) % 3)
        return [step(*data).item() for _ in range(6)], step


@BOTH
def test_a_step_with_dropout_and_noise_has_no_calls(cupy: Any, how: str) -> None:
    losses, step = _trained("cupy", how)
    np.testing.assert_allclose(losses, _trained("numpy", "plain")[0], rtol=1e-4)
    with gt.executor(how):
        text = step.concrete_functions[0].explain()
    assert "a call of the kernel" not in text
    assert "a CUDA graph for each of 1 streams" in text
    assert len({round(x, 7) for x in losses}) == len(losses)


@BOTH
def test_a_seed_set_again_gives_the_numbers_again(cupy: Any, how: str) -> None:
    with gt.backend("cupy"), gt.executor(how):
        generator = gt.random.Generator(9)
        draw = gt.function(lambda: (generator.normal((40,)), generator.randint((30,), 7)))
        found = [[x.tolist() for x in draw()] for _ in range(3)]
        snapshot = generator.state.numpy()
        after = [x.tolist() for x in draw()]
        generator.set_seed(9)
        assert [[x.tolist() for x in draw()] for _ in range(3)] == found
        generator.state = snapshot
        assert [x.tolist() for x in draw()] == after
    here = gt.random.Generator(9)
    assert found[0] == [here.normal((40,)).tolist(), here.randint((30,), 7).tolist()]


def test_a_batch_of_examples_has_numbers_of_its_own(cupy: Any) -> None:
    def noisy(x: Any) -> Any:
        return x + generator.normal((3,)) * generator.exponential((3,))

    found = []
    for where in ("numpy", "cupy"):
        with gt.backend(where):
            generator = gt.random.Generator(5)
            found.append(gt.vmap(noisy, randomness="different")(gt.zeros((4, 3))).numpy())
    np.testing.assert_array_equal(*found)


def test_gradients_reach_the_parameters(cupy: Any) -> None:
    found = []
    for where in ("numpy", "cupy"):
        with gt.backend(where):
            generator = gt.random.Generator(5)
            mean, scale, a = (gt.Variable([1.0, 2.0]) for _ in range(3))
            with gt.GradientTape() as tape:
                x = generator.normal((50, 2), mean, scale) * generator.gamma((50, 2), a)
                loss = gt.sum(x * x)
            found.append([g.numpy() for g in tape.gradient(loss, [mean, scale, a])])
    for mine, theirs in zip(*found, strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=1e-4)


@pytest.mark.parametrize("name", [*NAMES, "integers", "split"])
@BOTH
def test_a_rank_draws_its_rows(cupy: Any, name: str, how: str) -> None:
    """Those of the whole batch, also in a program that was planned outside the step."""

    def draw(key: Any, like: Any) -> Any:
        if name == "split":
            return ops["random_split"](key, like)
        if name == "integers":
            return ops["random_integers"](key, shape=like.shape, low=-3, high=8)
        return ops[f"random_{name}_like"](key, like)

    key, like, whole = gt.constant(_keys((), 7)), gt.zeros((4, 5)), gt.zeros((10, 5))
    with gt.executor(how):
        run = gt.function(draw)
        alone = run(key.to("cupy"), like.to("cupy")).numpy()
        token = batch_rows.set(BatchRows(4, (3, 10)))
        try:
            eager = draw(key.to("cupy"), like.to("cupy")).numpy()
            found = run(key.to("cupy"), like.to("cupy")).numpy()
        finally:
            batch_rows.reset(token)
        np.testing.assert_array_equal(run(key.to("cupy"), like.to("cupy")).numpy(), alone)
    _same(name, eager, draw(key, whole).numpy()[3:7])
    _same(name, found, eager)
    _same(name, alone, draw(key, like).numpy())


def test_without_a_compiler_they_are_numpys_too(cupy: Any, monkeypatch: Any) -> None:
    def fail(self: Any, log_stream: Any = None) -> None:
        raise RuntimeError("nvrtc: error: failed to load builtins")

    monkeypatch.setattr(cupy.RawKernel, "compile", fail)
    key = gt.constant(_keys((), 8))
    draws = [
        DRAWS[name] for name in ("integers 0 1", "normal float32 ()", "uniform float64 (5, 7)")
    ]
    for draw in draws:
        assert draw(key.to("cupy")).numpy().tobytes() == draw(key).numpy().tobytes()
    assert not cupy.seen.launches

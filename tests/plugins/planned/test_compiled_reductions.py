"""Reductions that LLVM compiles: the bits of NumPy, for any shape, axes and numbers."""

from __future__ import annotations

import tracemalloc
import warnings

import numpy as np
import pytest

import gradtape as gt

pytest.importorskip("llvmlite", reason='pip install "gradtape[fused]"')
pytestmark = pytest.mark.filterwarnings("error")

OPS = {"sum": gt.sum, "max": gt.max, "min": gt.min}
SPECIAL = [0.0, -0.0, np.inf, -np.inf, np.nan, 1e-40, -1e-45, 3e38]


def reducing(name: str, axis, keepdims: bool = False, executor: str = "fused"):
    """Return a function that reduces a value in its own memory."""
    return gt.function(
        lambda x: OPS[name](x * 2.0, axis=axis, keepdims=keepdims), executor=executor
    )


def same_bits(a: np.ndarray, b: np.ndarray) -> bool:
    a, b = np.where(np.isnan(a), np.nan, a), np.where(np.isnan(b), np.nan, b)
    return a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes()


def random_case(random: np.random.Generator):
    """Return an array, and axes next to each other."""
    rank = random.integers(2, 5)
    most = {2: [9, 40, 300], 3: [9, 20, 40], 4: [5, 9, 9]}[int(rank)][random.integers(3)]
    shape = tuple(int(n) for n in random.integers(1, most, rank))
    first = int(random.integers(rank))
    axes = tuple(range(first, int(random.integers(first, rank)) + 1))
    x = random.normal(size=shape) * np.exp2(random.integers(-20, 20, shape))
    axis = axes[0] - rank * int(random.integers(2)) if len(axes) == 1 else axes
    return x.astype(["float32", "float64"][random.integers(2)]), axis


def layouts(x: np.ndarray) -> list[np.ndarray]:
    """Return arrays with the same elements, or with repeated ones, in other orders of memory."""
    order = (*range(1, x.ndim), 0)
    return [
        np.asfortranarray(x),
        np.repeat(x, 2, axis=-1)[..., ::2],
        np.ascontiguousarray(x.transpose(order)).transpose(np.argsort(order)),
        np.broadcast_to(x[:1], x.shape),
        x[::-1],
    ]


@pytest.mark.parametrize("seed", range(60))
@pytest.mark.parametrize("parts", [False, True])
def test_random_reductions_have_the_bits_of_numpy(seed: int, parts: bool, monkeypatch) -> None:
    if parts:  # as for large arrays
        from gradtape.core.base import pool
        from gradtape.plugins.fused import loops

        monkeypatch.setattr(loops, "_LARGE", 1)
        monkeypatch.setattr(pool, "GRAIN", 1)
        monkeypatch.setattr(pool._Numbers, "default", 3)
    random = np.random.default_rng(seed)
    x, axis = random_case(random)
    keepdims = bool(random.integers(2))
    special = x.copy()
    special.flat[random.integers(x.size, size=3)] = random.choice(SPECIAL, 3)
    for name in OPS:
        f = reducing(name, axis, keepdims)
        for given in (x, special, np.zeros_like(x), np.full_like(x, -0.0)):
            with np.errstate(all="ignore"):
                wanted = getattr(np, name)(given * x.dtype.type(2), axis=axis, keepdims=keepdims)
                assert same_bits(f(gt.constant(given)).numpy(), wanted), (name, x.shape, axis)


@pytest.mark.parametrize("seed", range(40))
def test_arrays_in_any_order_of_memory_are_summed_as_numpy_does(seed: int) -> None:
    """Another order in memory is another order of sums, also where the result has a buffer."""
    x, axis = random_case(np.random.default_rng(seed))
    for name, op in OPS.items():
        for given in layouts(x):
            tensor, doubled = gt.constant(given), []
            wanted = getattr(np, name)(tensor.numpy(), axis=axis)
            for executor in ("fused", "planned"):
                f = gt.function(lambda x, op=op: op(x, axis=axis), executor=executor)
                g = gt.function(lambda x, op=op: op(x, axis=axis) * 2.0, executor=executor)
                assert same_bits(f(tensor).numpy(), wanted), (executor, name, x.shape, axis)
                assert same_bits(g(tensor).numpy(), wanted * x.dtype.type(2))
                doubled.append(reducing(name, axis, executor=executor)(tensor).numpy())
            assert same_bits(*doubled)


def test_a_reduction_is_the_last_use_of_a_large_array() -> None:
    def f(x):
        for i in range(6):
            y = gt.sort(x + float(i), axis=-1)  # an array of its own
            x = x * 0.5 + gt.max(y, axis=-1, keepdims=True)
        return x

    x = gt.constant(np.random.default_rng(0).normal(size=(2000, 100)))
    peaks = []
    for executor in ("planned", "fused"):
        compiled = gt.function(f, executor=executor)
        compiled(x)
        tracemalloc.start()
        try:
            compiled(x)
            peaks.append(tracemalloc.get_traced_memory()[1])
        finally:
            tracemalloc.stop()
    assert peaks[1] < 1.5 * peaks[0]


SHAPES = [((6, 5, 3), 1), ((40, 3), 1), ((40, 8), -1), ((9, 130), 1), ((4, 5, 1000), 2)]
SHAPES += [((4, 7, 3, 9), (1, 2)), ((4, 9, 200), 1), ((5, 4, 6), (1, 2)), ((3, 1, 4, 4), (2, 3))]


@pytest.mark.parametrize(("shape", "axis"), SHAPES)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_sums_of_rows_run_as_loops(shape, axis, dtype: str, repeated) -> None:
    x = np.random.default_rng(0).normal(size=shape).astype(dtype)
    f = reducing("sum", axis)
    assert same_bits(f(gt.constant(x)).numpy(), (x * x.dtype.type(2)).sum(axis))
    assert repeated == []
    assert "one loop: add" in f.explain(gt.constant(x))


@pytest.mark.parametrize("count", [2, 7, 8, 9, 31, 128, 250])
@pytest.mark.parametrize("name", ["max", "min"])
def test_what_depends_on_the_order_of_a_search_is_left_to_numpy(
    count: int, name: str, repeated
) -> None:
    random = np.random.default_rng(0)
    x = random.normal(size=(20, count)).astype(np.float32)
    f = reducing(name, 1)
    assert same_bits(f(gt.constant(x)).numpy(), getattr(np, name)(x * np.float32(2), 1))
    assert repeated == []
    for place in {0, count // 2, count - 1}:
        bad = x.copy()
        bad[7, place] = np.nan
        assert np.isnan(f(gt.constant(bad)).numpy()[7])
        assert len(repeated) == 1
        repeated.clear()


def test_numpy_warns_of_a_sum_that_overflows() -> None:
    x = gt.constant(np.full((30, 40), 1e38, np.float32))
    told = []
    for executor in ("planned", "fused"):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            reducing("sum", 1, executor=executor)(x)
        told.append([str(warning.message) for warning in caught])
    assert told[0] == told[1]
    assert "overflow" in told[0][0]


def test_a_loop_in_another_order_than_numpys_is_not_used(monkeypatch, repeated) -> None:
    from gradtape.plugins.fused import loops, reductions

    monkeypatch.setattr(loops, "_tried", {})
    monkeypatch.setattr(reductions, "_WHOLE", 10**6)  # rows are not halved
    x = np.random.default_rng(0).normal(size=(50, 900)).astype(np.float32)
    f = reducing("sum", 1)
    assert same_bits(f(gt.constant(x)).numpy(), (x * np.float32(2)).sum(1))
    assert "one loop: add" not in f.explain(gt.constant(x))

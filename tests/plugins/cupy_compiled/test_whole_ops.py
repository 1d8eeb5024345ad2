"""Ops that are one kernel in eager calls: values are NumPy's, on random shapes and numbers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import gradtape as gt
from gradtape.core.extend import ops

ROWS = ("softmax", "log_softmax")
CLASSES = ("sparse_softmax_cross_entropy", "softmax_less_labels")
SHARES = ("softmax_cross_entropy", "softmax_less_shares")
DTYPES = ("float16", "float32", "float64")


def rows_of(random: np.random.Generator, dtype: str) -> np.ndarray:
    """Return logits of some batch, some with numbers that are not finite."""
    batch = tuple(random.integers(1, 6, size=random.integers(0, 3)))
    classes = int(random.choice([1, 2, 3, 10, 31, 32, 33, 100, 255, 256, 257, 700]))
    x = random.standard_normal((*batch, classes)) * random.choice([1.0, 30.0])
    if random.random() < 0.3:
        at = random.random(x.shape) < 0.1
        x[at] = random.choice([np.inf, -np.inf, np.nan], size=int(at.sum()))
    return np.asarray(x, dtype)


def compare(found: Any, wanted: Any, like: np.ndarray, factor: float = 16) -> None:
    """Compare results with NumPy's in double precision, up to some roundings."""
    for one, two in zip(as_list(found), as_list(wanted), strict=True):
        assert one.dtype == like.dtype
        one, two = one.to("numpy").numpy(), two.numpy()
        assert one.shape == two.shape
        near = float(np.finfo(like.dtype).eps) * factor
        np.testing.assert_allclose(one.astype("float64"), two, rtol=near, atol=near)


def as_list(x: Any) -> list[Any]:
    return x if isinstance(x, list) else [x]


def on_both(name: str, arrays: list[np.ndarray], **params: Any) -> tuple[Any, Any]:
    """Return an op's results on CuPy, and on NumPy in double precision."""
    there = [gt.constant(x).to("cupy") for x in arrays]
    here = [gt.constant(x.astype("float64") if x.dtype.kind == "f" else x) for x in arrays]
    with np.errstate(all="ignore"):
        return ops[name](*there, **params), ops[name](*here, **params)


def launches(cupy: Any, name: str, arrays: list[np.ndarray], **params: Any) -> int:
    there = [gt.constant(x).to("cupy") for x in arrays]
    ops[name](*there, **params)
    before = cupy.seen.launches
    ops[name](*there, **params)
    return int(cupy.seen.launches - before)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", [*ROWS, *SHARES])
def test_rows_have_the_numbers_of_numpy(cupy: Any, name: str, dtype: str) -> None:
    random = np.random.default_rng(len(name))
    for _ in range(12):
        x = rows_of(random, dtype)
        given = [x]
        if name in SHARES:
            share = random.random(x.shape) * (random.random(x.shape) < 0.7)
            given.append((share / max(share.sum(), 1)).astype(dtype))
        axis = int(random.choice([-1, x.ndim - 1]))
        compare(*on_both(name, given, axis=axis), x)
        assert launches(cupy, name, given, axis=axis) == 1


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", CLASSES)
def test_labels_have_the_numbers_of_numpy(cupy: Any, name: str, dtype: str) -> None:
    random = np.random.default_rng(len(name))
    for kind in ("int64", "int32", "uint8", "int16", "uint64"):
        x = rows_of(random, dtype)
        most = min(x.shape[-1], np.iinfo(kind).max)
        labels = np.asarray(random.integers(0, most, x.shape[:-1]), kind)
        compare(*on_both(name, [x, labels]), x)
        assert launches(cupy, name, [x, labels]) == 1


@pytest.mark.parametrize("name", CLASSES)
@pytest.mark.parametrize("wrong", [-1, 5, -(2**63), 2**63 - 1])
def test_labels_out_of_range_give_nan(cupy: Any, name: str, wrong: int) -> None:
    x = np.random.default_rng(0).standard_normal((3, 5)).astype("float32")
    found = ops[name](gt.constant(x).to("cupy"), gt.constant(np.array([1, wrong, 4])).to("cupy"))
    right = ops[name](gt.constant(x), gt.constant(np.array([1, 0, 4]))).numpy()
    values = found.to("numpy").numpy()
    assert np.isnan(values[1]).all()
    np.testing.assert_allclose(values[[0, 2]], right[[0, 2]], rtol=1e-5)


@pytest.mark.parametrize("dtype", DTYPES)
def test_batch_normalisation_has_the_numbers_of_numpy(cupy: Any, dtype: str) -> None:
    random = np.random.default_rng(7)
    for _ in range(12):
        batch = tuple(random.integers(1, 9, size=random.integers(1, 4)))
        channels = int(random.choice([1, 3, 31, 32, 33, 70]))
        x = (random.standard_normal((*batch, channels)) * 2 + 1).astype(dtype)
        of_channels = [random.standard_normal(channels).astype(dtype) for _ in range(4)]
        gamma, beta, gmean, gvariance = of_channels
        params = {"axis": int(random.choice([-1, x.ndim - 1])), "epsilon": 0.01}
        found, wanted = on_both("batch_norm_training", [x, gamma, beta], **params)
        compare(found, wanted, x, 64)
        assert launches(cupy, "batch_norm_training", [x, gamma, beta], **params) == 1
        mean, variance = (np.asarray(y.numpy(), dtype) for y in wanted[1:])
        gy = random.standard_normal(x.shape).astype(dtype)
        given = [gy, gmean, gvariance, x, gamma, mean, variance]
        found, wanted = on_both("batch_norm_gradient", given, **params)
        compare(found, wanted, x, 512)
        assert launches(cupy, "batch_norm_gradient", given, **params) == 1


def test_numbers_that_are_not_finite_stay_in_their_channel(cupy: Any) -> None:
    x = np.random.default_rng(1).standard_normal((70, 40)).astype("float32")
    x[3, 5], x[60, 7] = np.nan, np.inf
    one = np.ones(40, "float32")
    found, wanted = on_both("batch_norm_training", [x, one, one], axis=-1, epsilon=0.1)
    compare(found, wanted, x, 64)
    assert np.isnan(found[0].to("numpy").numpy()).any(axis=0).sum() == 2


@pytest.mark.parametrize(
    ("name", "arrays", "params"),
    [
        ("softmax", [np.ones((4, 3), "float32")], {"axis": 0}),
        ("log_softmax", [np.ones((4, 3, 2))], {"axis": -2}),
        ("softmax", [np.ones((2, 5000), "float32")], {"axis": -1}),
        ("softmax", [np.ones((0, 3), "float32")], {"axis": -1}),
        ("batch_norm_training", [np.ones((4, 3)), np.ones(4), np.ones(4)],
         {"axis": 0, "epsilon": 0.1}),
        ("batch_norm_training", [np.ones((4, 3), "float32"), np.ones(3), np.ones(3)],
         {"axis": -1, "epsilon": 0.1}),
        ("batch_norm_training", [np.ones((5000, 3)), np.ones(3), np.ones(3)],
         {"axis": -1, "epsilon": 0.1}),
    ],
)  # fmt: skip
def test_what_the_kernels_do_not_take_is_left_to_cupy(
    cupy: Any, name: str, arrays: list[np.ndarray], params: dict[str, Any]
) -> None:
    assert launches(cupy, name, arrays, **params) == 0
    for one, two in zip(*map(as_list, on_both(name, arrays, **params)), strict=True):
        np.testing.assert_allclose(one.to("numpy").numpy(), two.numpy(), rtol=1e-6)


def test_kernels_read_arrays_that_are_not_contiguous(cupy: Any) -> None:
    x = np.random.default_rng(2).standard_normal((6, 4)).astype("float32")
    there = gt.transpose(gt.constant(x).to("cupy"))
    compare(ops["softmax"](there, axis=-1), ops["softmax"](gt.constant(x.T), axis=-1), x)


@pytest.mark.parametrize("name", [*CLASSES, "softmax"])
def test_second_derivatives_are_those_of_numpy(cupy: Any, name: str) -> None:
    x = np.random.default_rng(3).standard_normal((4, 5)).astype("float32")
    labels = np.array([0, 4, 2, 1])

    def second(place: str) -> np.ndarray:
        given = gt.constant(x).to(place)
        rest = [gt.constant(labels).to(place)] if name in CLASSES else []

        def function(x: Any) -> Any:
            return gt.sum(gt.square(gt.grad(lambda y: gt.sum(gt.square(ops[name](y, *rest))))(x)))

        return gt.grad(function)(given).to("numpy").numpy()

    np.testing.assert_allclose(second("cupy"), second("numpy"), rtol=2e-4, atol=1e-6)


def test_second_derivatives_of_batch_normalisation(cupy: Any) -> None:
    x = np.random.default_rng(4).standard_normal((6, 3))

    def second(place: str) -> np.ndarray:
        given, one = gt.constant(x).to(place), gt.constant(np.ones(3)).to(place)

        def loss(x: Any) -> Any:
            y, mean, variance = ops["batch_norm_training"](x, one, one, axis=-1, epsilon=0.1)
            return gt.sum(y**3) + gt.sum(mean**2) + gt.sum(variance**2)

        return gt.grad(lambda x: gt.sum(gt.square(gt.grad(loss)(x))))(given).to("numpy").numpy()

    np.testing.assert_allclose(second("cupy"), second("numpy"), rtol=1e-9, atol=1e-11)

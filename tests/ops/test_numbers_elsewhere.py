"""Python's numbers beside a tensor of another backend: they have no place of their own."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from strict_backend import NAME, Plugin
from table import FUNCTIONS, SAMPLES

import gradtape as gt
from gradtape.core.extend import flatten, map_structure
from gradtape.errors import BackendMismatch
from gradtape.testing.backends import as_called

JAX = gt.registry().backend("jax").unavailable()
PLACES = [NAME, pytest.param("jax", marks=pytest.mark.skipif(JAX is not None, reason=str(JAX)))]


@pytest.fixture(params=PLACES)
def place(request: pytest.FixtureRequest) -> Iterator[str]:
    gt.register_plugin(Plugin(), "strict")
    try:
        yield request.param
    finally:
        gt.unregister_plugin("strict")


#: Ops that only rules and functions call, with tensors; and what takes other libraries' arrays.
INTERNAL = {
    "assigned",
    "check",
    "gt.from_dlpack",
    "host_call",
    "random_gamma_slope",
    "hypot_slope",
    "max_pool_gather",
    "max_pool_scatter",
    "one_per_occurrence",
}
#: Functions whose results may be ordered in any way.
UNORDERED = {"gt.partition"}
CALLS = {
    **{name: (gt.registry().op(name), samples) for name, samples in SAMPLES.items()},
    **{f"gt.{name}": (as_called(name), samples) for name, samples in FUNCTIONS.items()},
}


def called(function: Callable[..., Any], sample: Any, place: str, kept: int) -> list[Any]:
    """Call a function with one of its arrays as a tensor, and the others as lists or numbers."""
    fed = sample.feed(*sample.inputs)
    count = iter(range(100))

    def given(x: Any) -> Any:
        if not isinstance(x, np.ndarray):
            return x
        return gt.constant(x).to(place) if next(count) == kept else x.tolist()

    results = function(*map_structure(given, list(fed if isinstance(fed, tuple) else (fed,))))
    return list(results) if isinstance(results, (list, tuple)) else [results]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", sorted(set(CALLS) - INTERNAL))
def test_lists_beside_a_tensor_go_to_its_backend(name: str, place: str) -> None:
    function, samples = CALLS[name]
    for sample in samples[: 1 if place == "jax" else None]:  # JAX compiles each call
        fed = flatten([sample.feed(*sample.inputs)])
        arrays = [x for x in fed if isinstance(x, np.ndarray)]
        if sample.params or any(isinstance(x, gt.Tensor) for x in fed):
            continue
        for kept in range(len(arrays) if len(arrays) > 1 else 0):
            with np.errstate(all="ignore"):
                try:
                    wanted = called(function, sample, "numpy", kept)
                except (TypeError, ValueError, AttributeError, IndexError):
                    continue  # lists do not suit this argument on any backend
                found = called(function, sample, place, kept)
            for mine, right in zip(found, wanted, strict=True):
                assert mine.device.startswith(f"{place}:"), (sample, kept)
                assert mine.dtype == right.dtype
                if name not in UNORDERED:
                    np.testing.assert_allclose(mine.to("numpy").numpy(), right.numpy(), rtol=1e-5)


X = [[0.25, -2.0]]
#: Calls of a tensor, with numbers beside it.
NUMBERS: dict[str, Callable[[Any], Any]] = {
    "where": lambda x: gt.where(x > 0, 1.0, 0.0),
    "where, of lists": lambda x: gt.where(x > 0, 1, [[2.0, 3.0]]),
    "stack": lambda x: gt.stack([x[0, 0], 1.0]),
    "a list with numbers": lambda x: gt.as_tensor([x[0, 0], 1.0]),
    "concatenate": lambda x: gt.concatenate([x[0], [1.0]]),
    "append": lambda x: gt.append(x[0], [1.0]),
    "insert": lambda x: gt.insert(x, 0, 1.0),
    "pad": lambda x: gt.pad(x, 1, constant_values=3.0),
    "piecewise": lambda x: gt.piecewise(x, [x > 0], [1.0, -1.0]),
    "select": lambda x: gt.select([x > 0], [1.0], 0.0),
    "clip": lambda x: gt.clip(x, -1.0, [1.0, 2.0]),
    "full": lambda x: gt.full((2,), x[0, 0]),
    "linspace": lambda x: gt.linspace(x[0, 0], 1.0, 3),
    "meshgrid": lambda x: gt.stack(gt.meshgrid(x[0], [1.0])),
    "polyval": lambda x: gt.polyval([1.0, 2.0], x),
    "nan_to_num": lambda x: gt.nan_to_num(x, nan=1.0),
    "operators": lambda x: [[1.0, 2.0]] + x * [3.0, 4.0],
    "at": lambda x: x.at[0].set([1.0, 2.0]).at[0, 0].add(1.0),
    "mean_squared_error": lambda x: gt.training.losses.mean_squared_error([[0.0, 1.0]], x),
    "huber": lambda x: gt.training.losses.huber(x, [[0.0, 1.0]]),
    "categorical": lambda x: gt.training.losses.categorical_crossentropy([[0, 1]], x),
    "sparse": lambda x: gt.training.losses.sparse_categorical_crossentropy([1], x),
    "weights": lambda x: gt.training.losses.MeanSquaredError()(x, x + 1, sample_weight=[2.0]),
    "accuracy": lambda x: gt.training.metrics.accuracy([1], x),
    "assign": lambda x: gt.Variable(x).assign([[1.0, 2.0]]).assign_add([3.0, 4.0]).value,
    "a function": lambda x: gt.function(lambda x: gt.where(x > 0, 1.0, [0.0, 1.0]))(x),
}


@pytest.mark.parametrize("name", NUMBERS)
def test_numbers_beside_a_tensor_go_to_its_backend(name: str, place: str) -> None:
    x = gt.constant(X)
    found, wanted = NUMBERS[name](x.to(place)), NUMBERS[name](x)
    assert found.device.startswith(f"{place}:")
    assert found.dtype == wanted.dtype
    np.testing.assert_allclose(
        gt.as_tensor(found).to("numpy").numpy(), gt.as_tensor(wanted).numpy(), rtol=1e-6
    )


def test_numbers_beside_a_tensor_of_the_host_stay_there(place: str) -> None:
    x = gt.constant(X)
    with gt.backend(place):
        assert gt.where(x > 0, 1.0, 0.0).device == "numpy:cpu"
        assert gt.concatenate([x[0], [1.0]]).device == "numpy:cpu"


@pytest.mark.parametrize(
    "call",
    [
        lambda x, a: x + a,
        lambda x, a: gt.where(x > 0, a, 0.0),
        lambda x, a: gt.concatenate([x, a]),
        lambda x, a: gt.stack([x, [a[0], 1.0]]),
    ],
)
def test_arrays_of_numpy_have_a_place(call: Callable[..., Any], place: str) -> None:
    with pytest.raises((BackendMismatch, ValueError, TypeError)):
        call(gt.constant(X).to(place), np.ones((1, 2), np.float32))

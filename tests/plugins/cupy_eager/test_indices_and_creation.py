"""New arrays are made on the device, and elements at indices are read by one launch."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from test_prepared_ops import there

import gradtape as gt

_DTYPES = ("bool", "int8", "uint64", "float16", "float32", "float64", "complex64", "complex128")
#: Those that a kernel reads. (The pretend library takes others as NumPy wraps indices, one round
#: after another, which for the lowest integers has no end.)
_READ, _INTEGERS = ("bool", "float16", "int32", "complex64"), ("int8", "int64", "uint64")


@pytest.mark.parametrize(
    "make",
    [
        lambda dtype: gt.zeros((2, 3), dtype),
        lambda dtype: gt.ones((2, 3), dtype),
        lambda dtype: gt.ones((0, 3), dtype),
        lambda dtype: gt.full((2, 3), 1, dtype),
        lambda dtype: gt.eye(3, 4, -1, dtype=dtype),
        lambda dtype: gt.eye(0, dtype=dtype),
        lambda dtype: gt.identity(3, dtype),
        lambda dtype: gt.arange(2, 12, 3, "int8" if dtype == "bool" else dtype),
        lambda dtype: gt.constant(np.broadcast_to(np.ones((), dtype), (2, 2))),
    ],
)
def test_new_arrays_are_not_copied_from_the_host(cupy: Any, make: Callable[[str], Any]) -> None:
    for dtype in _DTYPES:
        want = make(dtype)
        with gt.backend("cupy"), cupy.counting() as copies:
            found = make(dtype)
            made = dict(copies)
        assert found.device == "cupy:0"
        assert (found.shape, found.dtype) == (want.shape, want.dtype)
        assert (found.numpy() == want.numpy()).all()
        if want.dtype.kind in "iu" or want.ndim == 2:  # others keep NumPy's roundings
            assert made == {}


@pytest.mark.parametrize(
    "index",
    [[0, 2], [-1, 0], [[0, 1], [2, 0]], np.array([1, 2]), range(2), np.array([2, 0], "uint8")],
)
def test_an_index_of_the_host_is_copied_once_and_read_by_one_launch(cupy: Any, index: Any) -> None:
    x = np.arange(12, dtype="f").reshape(3, 4)
    mine = there(x)
    for _ in range(2):
        before = cupy.seen.launches
        with gt.backend("cupy"), cupy.counting() as copies:
            found = mine[index]
            assert (dict(copies), cupy.seen.launches - before) == ({"array": 1}, 1)
        np.testing.assert_array_equal(found.numpy(), x[np.asarray(index)])


def _nothing(dtype: np.dtype[Any]) -> Any:
    if dtype.kind in "fc":
        return np.nan
    return (
        True
        if dtype.kind == "b"
        else getattr(np.iinfo(dtype), "min" if dtype.kind == "i" else "max")
    )


def _random_case(random: Any) -> tuple[Any, Any, int]:
    """Return an array of some layout, indices that may be out of range, and their axis."""
    shape = tuple(int(n) for n in random.integers(1, 4, int(random.integers(1, 4))))
    axis = int(random.integers(len(shape)))
    x = random.integers(-100, 100, shape).astype(random.choice(_READ))
    x = [x, np.asfortranarray(x), x[::-1]][int(random.integers(3))]
    kind, size = np.dtype(str(random.choice(_INTEGERS))), shape[axis]
    low = -size - 1 if kind.kind == "i" else 0
    indices = random.integers(low, size + 2, int(random.integers(1, 4))).astype(kind)
    if random.random() < 0.3:
        limits = np.iinfo(kind)
        indices[0] = random.choice(np.array([limits.min, limits.max], kind))
    return x, indices, axis


def test_random_indices_also_out_of_range(cupy: Any) -> None:
    random = np.random.default_rng(0)
    cases = [_random_case(random) for _ in range(60)]
    cupy.seen.dry = True  # so that all kernels are compiled together
    for x, indices, axis in cases:
        gt.take(there(x), there(indices), axis=axis)
    cupy.seen.dry = False
    for x, indices, axis in cases:
        size, before = x.shape[axis], cupy.seen.launches
        inside = np.array([-size <= int(i) < size for i in indices])
        safe = [int(i) if ok else 0 for i, ok in zip(indices, inside, strict=True)]
        want = np.take(x, safe, axis)
        want[(slice(None),) * axis + (~inside,)] = _nothing(x.dtype)
        for found in (
            gt.take(there(x), there(indices), axis=axis),
            there(x)[(slice(None),) * axis + (there(indices),)],
            there(x)[(..., there(indices), *(slice(None),) * (x.ndim - axis - 1))],
        ):
            np.testing.assert_array_equal(found.numpy(), want)
        assert cupy.seen.launches - before == 3

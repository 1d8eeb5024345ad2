"""Backends by name: which arrays each owns, and transfers between them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import gradtape as gt
from gradtape.core.extend import Backend
from gradtape.errors import BackendMismatch


class OtherArray(np.ndarray):
    pass


OtherArray.__module__ = "other_library"


class OtherBackend(Backend):
    name = "other"
    array_module = "other_library"
    xp = np

    def asarray(self, value, dtype=None, device=None):
        return np.array(value, dtype=dtype).view(OtherArray)

    def to_numpy(self, array):
        return np.asarray(array).view(np.ndarray)


def test_mixing_backends_names_both_and_the_way_out(register) -> None:
    register("other", backends=[OtherBackend()])
    a = gt.constant([1.0, 2.0])
    with gt.backend("other") as chosen:
        assert chosen.name == "other"
        b = gt.constant([3.0, 4.0])
    assert (a.device, b.device) == ("numpy:cpu", "other:cpu")
    with pytest.raises(BackendMismatch, match=r"multiply.*numpy and other.*tensor\.to\('numpy'\)"):
        a * b
    np.testing.assert_array_equal((a * b.to("numpy")).numpy(), [3.0, 8.0])
    v = gt.Variable([1.0, 2.0], name="w")
    with pytest.raises(BackendMismatch, match=r"'w'.*other.*numpy.*tensor\.to\('numpy'\)"):
        v.assign(b)


class Inner(np.ndarray):
    pass


Inner.__module__ = "other_library_inside.arrays"


class OfTwoModules(OtherBackend):
    array_module = ("other_library", "other_library_inside")


class Asked(OtherBackend):
    array_module = ""

    def owns(self, array_type):
        return array_type in (OtherArray, Inner)


@pytest.mark.parametrize("owner", [OfTwoModules, Asked])
def test_a_backend_says_which_arrays_it_owns(register, owner) -> None:
    register("owner", backends=[owner()])
    for kind in (OtherArray, Inner):
        assert gt.Tensor(np.ones(2).view(kind)).device == "other:cpu"


def test_gradients_cross_a_transfer(register) -> None:
    register("other", backends=[OtherBackend()])
    x = gt.constant([1.0, 2.0])
    with gt.GradientTape() as tape:
        tape.watch(x)
        y = gt.sum((x.to("other") ** 2).to("numpy"))
    gradient = tape.gradient(y, x)
    assert gradient.device == "numpy:cpu"
    np.testing.assert_array_equal(gradient, [2.0, 4.0])


@pytest.mark.parametrize(
    ("place", "said"),
    [
        ("float64", r"a dtype: write x.astype\('float64'\)"),
        (gt.float16, r"a dtype: write x.astype\('float16'\)"),
        pytest.param(
            "cuda:0", "for a device, use .*'cupy'", marks=pytest.mark.needs("plugins.cupy")
        ),
        ("cpu", "the CPU is 'numpy'"),
    ],
)
def test_a_dtype_or_a_device_in_place_of_a_backend_says_what_to_write(
    place: Any, said: str
) -> None:
    layer = gt.layers.Dense(1)
    layer(gt.ones((1, 1)))
    for move in (gt.ones(2).to, layer.to, lambda at: gt.backend(at).__enter__()):
        with pytest.raises(LookupError, match=said):
            move(place)


def test_a_place_that_is_no_name_is_refused() -> None:
    with pytest.raises(TypeError, match="expected the name of a backend, such as 'numpy', got 1"):
        gt.ones(2).to(1)  # type: ignore[arg-type]


def test_unknown_backends_and_arrays() -> None:
    with (
        pytest.raises(LookupError, match=r"no plugin provides the backend 'tpu'.*numpy"),
        gt.backend("tpu"),
    ):
        pass
    with pytest.raises(LookupError, match="tpu"):
        gt.constant(1.0).to("tpu:0")
    with pytest.raises(ValueError, match="device"):
        gt.constant(1.0).to("numpy:1")

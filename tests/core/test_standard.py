"""What the array API standard asks of a namespace beside its functions."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pretend_gpu
import pytest

import gradtape as gt
from gradtape import errors


def test_the_namespace_of_a_tensor_tells_about_itself() -> None:
    info = gt.constant([1.0]).__array_namespace__().__array_namespace_info__()
    assert info.capabilities()["boolean indexing"] is True
    assert info.default_device() == gt.constant([1.0]).device
    assert info.default_device() in info.devices()
    assert info.default_dtypes()["real floating"] == gt.constant(1.0).dtype
    assert info.default_dtypes()["complex floating"] == gt.constant(1j).dtype
    assert info.default_dtypes()["integral"] == gt.constant(1).dtype
    for name, dtype in info.dtypes().items():
        assert gt.zeros(2, dtype=name).dtype == dtype == getattr(gt, name)
    assert set(info.dtypes(kind="complex floating")) == {"complex64", "complex128"}
    assert set(info.dtypes(kind=("bool", "real floating"))) == {"bool", "float32", "float64"}


def test_shapes_broadcast_as_numpys_do() -> None:
    for shapes in ([(2, 1), (3,)], [(1,), ()], [], [3, (2, 1)], [(0,), (1, 1)]):
        assert gt.broadcast_shapes(*shapes) == np.broadcast_shapes(*shapes)
    assert gt.broadcast_shapes((None, 3), (1,)) == (None, 3)
    with pytest.raises(ValueError, match=r"broadcast_shapes: shapes \(2,\) and \(3,\)"):
        gt.broadcast_shapes((2,), (3,))
    with pytest.raises(TypeError, match="broadcast_shapes: a shape is"):
        gt.broadcast_shapes((2.5,))


#: A call of each function that makes tensors, and the first elements of what it makes.
MADE: dict[str, Callable[[Any], gt.Tensor]] = {
    "arange": lambda d: gt.arange(3.0, device=d),
    "asarray": lambda d: gt.asarray([1, 2], device=d),
    "empty": lambda d: gt.empty(2, device=d),
    "empty_like": lambda d: gt.empty_like(gt.ones(2), device=d),
    "eye": lambda d: gt.eye(2, device=d),
    "fft.fftfreq": lambda d: gt.fft.fftfreq(3, device=d),
    "fft.rfftfreq": lambda d: gt.fft.rfftfreq(3, device=d),
    "from_dlpack": lambda d: gt.from_dlpack(np.ones(2), device=d),
    "full": lambda d: gt.full(2, gt.constant(3.0), device=d),
    "full_like": lambda d: gt.full_like(gt.ones(2), 3, device=d),
    "linspace": lambda d: gt.linspace(0.0, gt.constant(1.0), 3, device=d),
    "linspace(retstep)": lambda d: gt.linspace(0.0, 1.0, 3, retstep=True, device=d)[1],
    "ones": lambda d: gt.ones(2, device=d),
    "ones_like": lambda d: gt.ones_like(gt.zeros(2), device=d),
    "zeros": lambda d: gt.zeros(2, device=d),
    "zeros_like": lambda d: gt.zeros_like(gt.ones(2), device=d),
}


@pytest.fixture
def second() -> Iterator[str]:
    """A device of a second backend, whose arrays meet no others."""
    with gt.register_plugin(pretend_gpu.Plugin("second"), "second"):
        yield "second:1"


@pytest.mark.parametrize("name", MADE)
def test_tensors_are_made_on_the_device_that_is_asked_for(name: str, second: str) -> None:
    make, plain = MADE[name], MADE[name](None)
    assert plain.device == "numpy:cpu"
    here, there = make("numpy:cpu"), make(second)
    assert (here.device, there.device) == ("numpy:cpu", second)
    assert here.dtype == there.dtype == plain.dtype
    assert here.tolist() == there.to("numpy").tolist() == plain.tolist()
    with gt.backend(second):
        assert make("numpy:cpu").device == "numpy:cpu"
    with pytest.raises(LookupError, match="no plugin provides the backend 'moon'"):
        make("moon")


def test_gradients_reach_values_through_a_change_of_device(second: str) -> None:
    x = gt.constant(3.0)
    with gt.GradientTape() as outer, gt.GradientTape() as inner:
        outer.watch(x)
        inner.watch(x)
        moved = gt.full(2, x * x, device=second)
        y = gt.sum(moved * moved)
    slope = inner.gradient(y, x)
    assert slope.device == "numpy:cpu"
    assert slope.item() == 8 * 3.0**3
    assert x.to_device(second).device == second
    assert x.to_device(x.device) is x
    with pytest.raises(ValueError, match="to_device: stream must be None"):
        x.to_device(second, stream=1)


def test_code_for_any_library_asks_for_devices() -> None:
    compat = pytest.importorskip("array_api_compat")
    x = gt.constant([1.0, 2.0])
    assert compat.device(x) == x.device
    assert compat.to_device(x, compat.device(x)) is x
    xp = compat.array_namespace(x, api_version="2025.12")
    made = xp.zeros(3, dtype=x.dtype, device=compat.device(x))
    assert (made.dtype, made.device) == (x.dtype, x.device)
    assert set(xp.__array_namespace_info__().devices()) == {"numpy:cpu"}
    v = gt.Variable(x)
    assert compat.device(v) == x.device
    with gt.GradientTape() as tape:
        y = gt.sum(compat.to_device(v, x.device) ** 2)
    assert tape.gradient(y, v).tolist() == [2.0, 4.0]


def double_beside(x: gt.Tensor) -> gt.Tensor:
    """Use a device as code for any library does."""
    xp = x.__array_namespace__()
    made = xp.full(x.shape, 2.0, dtype=x.dtype, device=x.device)
    return xp.asarray(x * made, device=x.device).to_device(x.device)


def test_traces_and_batches_have_devices(second: str) -> None:
    x = gt.constant([1.0, 2.0])
    for place in ("numpy", second):
        there = x.to(place)
        assert gt.function(double_beside)(there).tolist() == [2.0, 4.0]
        assert gt.function(double_beside)(there).device == there.device
        assert gt.vmap(double_beside)(there).tolist() == [2.0, 4.0]
        assert gt.vmap(double_beside)(there).device == there.device
        assert gt.function(gt.vmap(double_beside))(there).tolist() == [2.0, 4.0]
    with pytest.raises(LookupError, match="no plugin provides the backend 'traced'"):
        gt.zeros(2, device="traced")
    with pytest.raises(errors.TraceError, match="backend is not known"):
        gt.function(lambda v: v.to("numpy"))(x)


def test_numpys_word_for_its_device_is_accepted_in_numpys_functions() -> None:
    x = gt.constant([1.0, 2.0])
    assert np.zeros_like(x, device="cpu").tolist() == [0.0, 0.0]
    assert np.astype(x, "int32", device="cpu").dtype == "int32"
    assert np.full_like(x, 2, device="cpu").tolist() == [2.0, 2.0]

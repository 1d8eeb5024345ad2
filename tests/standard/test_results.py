"""What functions of the array API standard return beside values: types, copies, orders."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pretend_gpu
import pytest

import gradtape as gt

TIED = np.array([[2, 1, 2, 1, 3], [0, 0, 5, -1, 5]])
#: As floating numbers and as complex ones, whose order is that of their parts.
TIES = [TIED, TIED.astype("float32"), TIED + 1j * TIED[:, ::-1], TIED > 1]


def test_the_namespace_has_a_version() -> None:
    assert gt.__array_api_version__ == "2025.12"
    for version in ("2021.12", "2024.12", "2025.12", None):
        assert gt.constant(1.0).__array_namespace__(api_version=version) is gt
    with pytest.raises(ValueError, match="api_version must be one of"):
        gt.constant(1.0).__array_namespace__(api_version="2020.12")


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "complex64", "complex128"])
def test_limits_of_dtypes_are_python_floats(dtype: str) -> None:
    theirs = np.finfo(dtype)
    for given in (dtype, np.dtype(dtype), gt.zeros(2, dtype), np.dtype(dtype).type):
        ours = gt.finfo(given)
        for name in "eps max min smallest_normal tiny resolution smallest_subnormal".split():
            assert type(getattr(ours, name)) is float
            assert getattr(ours, name) == getattr(theirs, name)
        assert type(ours.bits) is int
        assert (ours.bits, ours.dtype, repr(ours)) == (theirs.bits, theirs.dtype, repr(theirs))
        assert ours == gt.finfo(dtype)
        assert hash(ours) == hash(gt.finfo(dtype))
        assert pickle.loads(pickle.dumps(ours)) == ours
    x = gt.ones(2, "float32")
    assert (x + gt.finfo("float64").eps).dtype == "float32"
    assert gt.iinfo("int8").max == 127


def test_limits_need_a_floating_dtype() -> None:
    with pytest.raises(ValueError, match="int32"):
        gt.finfo("int32")
    with pytest.raises(TypeError, match="no such"):
        gt.finfo("no such")
    with pytest.raises(AttributeError, match="nothing"):
        _ = gt.finfo("float32").nothing


def test_parts_and_devices_are_tuples() -> None:
    assert isinstance(gt.unstack(gt.ones((3, 2))), tuple)
    assert gt.unstack(gt.ones((0, 2))) == ()
    assert isinstance(gt.__array_namespace_info__().devices(), tuple)


@pytest.mark.parametrize("x", TIES, ids=lambda x: x.dtype.name)
@pytest.mark.parametrize("axis", [0, -1, None])
def test_equal_elements_keep_their_order_in_descending_order(x: Any, axis: int | None) -> None:
    rows = x.ravel() if axis is None else np.moveaxis(x, axis, -1)
    order = np.array([sorted(range(len(r)), key=lambda i: _key(r[i])) for r in np.atleast_2d(rows)])
    order = order[0] if axis is None else np.moveaxis(order, -1, axis)
    for call in (gt.argsort, gt.function(gt.argsort)):
        found = call(gt.constant(x), axis=axis, descending=True)
        np.testing.assert_array_equal(found.numpy(), order)
    flat, place = (x.ravel(), 0) if axis is None else (x, axis)
    found = gt.sort(gt.constant(x), axis=axis, descending=True)
    np.testing.assert_array_equal(found.numpy(), np.take_along_axis(flat, order, place))


def _key(value: Any) -> tuple[float, float]:
    return -float(np.real(value)), -float(np.imag(value))


def test_nan_comes_first_in_descending_order() -> None:
    x = gt.constant([1.0, np.nan, 3.0])
    assert gt.argsort(x, descending=True).tolist() == [1, 2, 0]
    assert gt.sort(x, descending=True).tolist()[1:] == [3.0, 1.0]


def test_descending_order_has_gradients_of_both_orders() -> None:
    x, w = gt.constant([2.0, 5.0, 2.0, 1.0]), gt.constant([1.0, 2.0, 3.0, 4.0])
    f = lambda x: gt.sum(w * gt.sort(x, descending=True) ** 3)  # noqa: E731
    slope, places = gt.grad(f), np.array([2.0, 1.0, 3.0, 4.0])
    np.testing.assert_allclose(slope(x).numpy(), 3 * places * x.numpy() ** 2)
    curve = gt.grad(lambda x: gt.sum(slope(x)))
    np.testing.assert_allclose(curve(x).numpy(), 6 * places * x.numpy())
    rows = gt.constant([[3.0, 1.0], [2.0, 4.0]])
    each = gt.vmap(lambda r: gt.sort(r, descending=True))(rows)
    assert each.tolist() == [[3.0, 1.0], [4.0, 2.0]]
    assert gt.vmap(lambda r: gt.argsort(r, descending=True))(rows).tolist() == [[0, 1], [1, 0]]


def test_each_matrix_may_have_its_own_tolerance() -> None:
    x = np.random.default_rng(3).normal(size=(2, 3, 4, 3))
    for rtol in map(np.asarray, (0.3, [0.1, 0.4, 0.9], [[0.5], [0.2]], np.ones((2, 3)) / 3)):
        for given in (rtol, gt.constant(rtol)):
            ours = gt.linalg.pinv(gt.constant(x), rtol=given)
            np.testing.assert_allclose(ours.numpy(), np.linalg.pinv(x, rtol=rtol), atol=1e-12)
            ranks = gt.linalg.matrix_rank(gt.constant(x), rtol=given).numpy()
            np.testing.assert_array_equal(ranks, np.linalg.matrix_rank(x, rtol=rtol))
    assert gt.linalg.pinv(gt.ones((0, 2, 3, 4)), rtol=np.ones((0, 2))).shape == (0, 2, 4, 3)
    batches = gt.vmap(lambda m: gt.linalg.pinv(m, rtol=np.array([0.1, 0.4, 0.9])))(gt.constant(x))
    np.testing.assert_allclose(
        batches.numpy(), np.linalg.pinv(x, rtol=np.array([0.1, 0.4, 0.9])), atol=1e-12
    )
    traced = gt.function(lambda m: gt.linalg.pinv(m, rtol=np.array([0.1, 0.4, 0.9])))
    np.testing.assert_allclose(traced(gt.constant(x)).numpy(), batches.numpy())
    with pytest.raises(ValueError, match=r"pinv: a bound for each matrix .* \(2, 3\), got \(4,\)"):
        gt.linalg.pinv(gt.constant(x), rtol=np.ones(4))


def test_tolerances_of_each_matrix_keep_gradients() -> None:
    x = gt.constant(np.random.default_rng(4).normal(size=(2, 2, 2)))
    each = lambda x: gt.sum(gt.linalg.pinv(x, rtol=np.array([1e-9, 1e-8])) ** 2)  # noqa: E731
    all_ = lambda x: gt.sum(gt.linalg.pinv(x, rtol=1e-9) ** 2)  # noqa: E731
    np.testing.assert_allclose(gt.grad(each)(x).numpy(), gt.grad(all_)(x).numpy())
    np.testing.assert_allclose(gt.hessian(each)(x).numpy(), gt.hessian(all_)(x).numpy())


def test_copies_are_made_as_asked() -> None:
    x = gt.constant([1.0, 2.0])
    assert gt.asarray(x) is x
    same = gt.asarray(x, copy=False, dtype="float32", device="numpy:cpu")
    assert same.array is x.array
    for run in (gt.function, gt.vmap):  # where a cast to the same dtype would be a new value
        kept = run(lambda x: gt.asarray(x, copy=False, dtype="float32"))(x)
        assert kept.tolist() == [1.0, 2.0]
    assert gt.asarray(x, copy=True) is not x
    v = gt.Variable(x)
    assert gt.asarray(v, copy=False).tolist() == [1.0, 2.0]
    for given, options in [(x, {"dtype": "float64"}), (x.numpy(), {}), ([1.0], {})]:
        with pytest.raises(ValueError, match="without a copy; leave out copy=False"):
            gt.asarray(given, copy=False, **options)


def test_dlpack_takes_the_arguments_of_the_standard() -> None:
    x = gt.constant([1.0, 2.0])
    for options in [{}, {"copy": True}, {"max_version": (1, 0)}, {"dl_device": (1, 0)}]:
        assert "dltensor" in repr(x.__dlpack__(**options))
    assert "dltensor" in repr(x.__dlpack__(copy=False, max_version=(1, 0), dl_device=(1, 0)))
    with pytest.raises(BufferError, match="never changes"):
        x.__dlpack__(copy=False)
    with pytest.raises(BufferError, match="device"):
        x.__dlpack__(dl_device=(2, 0))


def test_tensors_come_back_from_dlpack_as_they_are() -> None:
    x = gt.constant([1.0, 2.0])
    assert gt.from_dlpack(x) is x
    assert gt.from_dlpack(x, copy=False) is x
    assert gt.grad(lambda x: gt.sum(gt.from_dlpack(x, copy=True) ** 2))(x).tolist() == [2.0, 4.0]
    with pytest.raises(BufferError, match="from_dlpack: ndarray may change and a tensor never"):
        gt.from_dlpack(np.ones(2), copy=False)
    assert gt.from_dlpack(np.ones(2), copy=True).tolist() == [1.0, 1.0]


def test_dtypes_that_numpy_lacks_are_buffer_errors() -> None:
    torch = pytest.importorskip("torch")
    with pytest.raises(BufferError, match=r"from_dlpack: dtype torch\.bfloat16"):
        gt.from_dlpack(torch.ones(2, dtype=torch.bfloat16))


def test_dlpack_moves_between_a_device_and_the_host() -> None:
    plugin = pretend_gpu.Plugin("second")
    with gt.register_plugin(plugin, "second"):
        there = gt.constant([1.0, 2.0]).to("second:1")
        assert "dltensor" in repr(there.__dlpack__(dl_device=(1, 0)))
        back = gt.from_dlpack(there, device="numpy:cpu")
        assert (back.device, back.tolist()) == ("numpy:cpu", [1.0, 2.0])
        assert gt.from_dlpack(there.array).device == "second:1"
        with pytest.raises(BufferError, match=r"from_dlpack: .* without a copy"):
            gt.from_dlpack(there, device="numpy:cpu", copy=False)
        with pytest.raises(BufferError, match="never changes"):
            there.__dlpack__(copy=False, max_version=(1, 0))
        with gt.backend("second:1"):
            assert gt.from_dlpack(np.ones(2)).device == "second:1"

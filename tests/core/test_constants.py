"""What becomes a tensor, of which dtype, and what is refused."""

from __future__ import annotations

import decimal

import numpy as np
import pytest

import gradtape as gt


@pytest.mark.parametrize(
    ("value", "dtype"),
    [
        (1.0, "float32"),
        ([1.0, 2], "float32"),
        ([], "float32"),
        (1, "int64"),
        ([1, 2], "int64"),
        (range(3), "int64"),
        (True, "bool"),
        ([True, False], "bool"),
        (1j, "complex64"),
        (((1.0, 2.0), (3.0, 4.0)), "float32"),
        (np.float64(1.0), "float64"),
        (np.array([1.0]), "float64"),
        (np.array([1], dtype=np.int8), "int8"),
        (np.float16(1.0), "float16"),
    ],
    ids=repr,
)
def test_dtypes(value, dtype: str) -> None:
    result = gt.constant(value)
    assert result.dtype == dtype
    np.testing.assert_array_equal(result, value)


def test_python_scalars_are_weak() -> None:
    for dtype in ("float16", "float32", "float64"):
        x = gt.constant([1.0], dtype=dtype)
        assert {(x * 2).dtype, (2.0 * x).dtype, (x + True).dtype} == {np.dtype(dtype)}
    small = gt.constant([1], dtype="int8")
    assert (small * 2).dtype == np.int8
    assert (gt.constant([1.0]) * 1j).dtype == np.complex64
    assert (gt.constant([1.0]) * np.float64(2.0)).dtype == np.float64
    with pytest.raises(OverflowError):
        small * 300


def test_scalars_that_are_equal_stay_what_they_are() -> None:
    x, b = gt.constant([1, 2]), gt.constant([True])
    for _ in range(2):
        for scalar in (1, 1.0, True, (1 + 0j)):
            for f in (gt.multiply, gt.add):
                want = np.asarray(f(np.array([1, 2]), scalar)).dtype
                assert f(x, scalar).dtype == want
                assert f(scalar, x).dtype == want
    assert [(x * scalar).dtype.name for scalar in (1, 1.0, True)] == ["int64", "float64", "int64"]
    assert (b + 1).dtype == np.int64
    assert (b + True).dtype == np.bool_
    zeros = [(gt.constant([1.0]) * zero).numpy() for zero in (0.0, -0.0, 0.0)]
    assert [bool(np.signbit(z)[0]) for z in zeros] == [False, True, False]


def test_the_default_dtype_can_be_set() -> None:
    assert gt.default_dtype() == np.float32
    try:
        gt.set_default_dtype("float64")
        assert gt.default_dtype() == np.float64
        assert gt.constant(1.0).dtype == np.float64
        assert gt.constant(1j).dtype == np.complex128
        assert gt.Variable(1.0).dtype == np.float64
        assert gt.TensorSpec([None]).dtype == np.float64
    finally:
        gt.set_default_dtype("float32")
    with pytest.raises(ValueError, match="int32"):
        gt.set_default_dtype("int32")


def test_an_asked_for_dtype() -> None:
    assert gt.constant([1, 2], dtype="float16").dtype == np.float16
    assert gt.constant(gt.constant([1.0]), dtype=np.int32).dtype == np.int32
    with pytest.raises(TypeError, match="not a dtype"):
        gt.constant(1.0, dtype="floaty")
    with pytest.raises(TypeError, match="object"):
        gt.constant(1.0, dtype=object)


def test_foreign_byte_order_becomes_ours() -> None:
    for x in (gt.constant(np.array([1.5], ">f4")), gt.as_tensor(np.array([1.5], ">f4"))):
        assert x.dtype == np.float32
        assert x.dtype.isnative
        np.testing.assert_array_equal(x, [1.5])


class Marked(np.ndarray):
    pass


def test_subclasses_of_arrays_become_plain_arrays() -> None:
    m = gt.as_tensor(np.array([(1.0, 2.0)], dtype=float).view(Marked))
    assert type(m.array) is np.ndarray
    np.testing.assert_array_equal(m * m, [[1.0, 4.0]])


@pytest.mark.parametrize(
    "value",
    ["text", None, object(), decimal.Decimal(1), 2**70, (x for x in [1]), np.array(["a"])],
    ids=lambda value: type(value).__name__,
)
def test_what_is_no_number_is_refused(value) -> None:
    with pytest.raises(TypeError):
        gt.constant(value)
    with pytest.raises(TypeError):
        gt.as_tensor(value)


def test_ragged_lists_are_refused() -> None:
    with pytest.raises(ValueError, match="rectangular"):
        gt.constant([[1.0], [1.0, 2.0]])


def test_object_and_time_arrays_are_refused() -> None:
    for a in (np.array([1, None]), np.array(["2020-01-01"], dtype="datetime64[D]")):
        with pytest.raises(TypeError, match=str(a.dtype)[:6]):
            gt.as_tensor(a)


def test_shape_fills_or_reshapes() -> None:
    np.testing.assert_array_equal(gt.constant(2.0, shape=(2, 3)), np.full((2, 3), 2.0))
    np.testing.assert_array_equal(gt.constant(2.0, shape=2), [2.0, 2.0])
    np.testing.assert_array_equal(gt.constant([1, 2, 3, 4], shape=(2, 2)), [[1, 2], [3, 4]])
    with pytest.raises(ValueError, match=r"\(3,\).*\(2, 2\)"):
        gt.constant([1.0, 2.0, 3.0], shape=(2, 2))


def test_lists_of_tensors_are_stacked_and_differentiated() -> None:
    a, v = gt.constant(1.0), gt.Variable(2.0)
    with gt.GradientTape() as tape:
        tape.watch(a)
        x = gt.constant([[a, v], [3.0, a]])
        y = gt.sum(x * [[1.0, 2.0], [3.0, 4.0]])
    assert x.shape == (2, 2)
    assert [g.numpy() for g in tape.gradient(y, [a, v])] == [5.0, 2.0]


def test_a_variable_as_a_constant_is_its_value() -> None:
    v = gt.Variable(2.0)
    with gt.GradientTape() as tape:
        y = gt.constant(v) * 3.0
    assert tape.gradient(y, v).numpy() == 3.0


def test_tensor_specs() -> None:
    spec = gt.TensorSpec([None, 3], "float64", name="x")
    assert (spec.shape, spec.ndim, spec.dtype) == ((None, 3), 2, np.float64)
    assert str(spec) == "float64[?, 3]"
    assert repr(spec) == "TensorSpec((None, 3), 'float64', name='x')"
    assert str(gt.TensorSpec(None)) == "float32[...]"
    assert gt.TensorSpec(None).ndim is None
    assert spec == gt.TensorSpec((None, 3), np.float64)
    assert hash(spec) == hash(gt.TensorSpec((None, 3), np.float64))
    assert spec != gt.TensorSpec((None, 3))
    assert gt.TensorSpec([2]) != 2
    for bad in (-1, 1.5, True):
        with pytest.raises(ValueError, match="a size must be"):
            gt.TensorSpec([bad])
    for bad in (3, "ab"):
        with pytest.raises(TypeError, match="sequence of sizes or None"):
            gt.TensorSpec(bad)

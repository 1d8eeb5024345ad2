"""``Tensor`` as a NumPy user meets it."""

from __future__ import annotations

import copy
import math
import operator
from typing import Any

import numpy as np
import pytest

import gradtape as gt

A = np.array([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]], dtype=np.float32)


@pytest.mark.parametrize(
    "op",
    [
        operator.add,
        operator.sub,
        operator.mul,
        operator.truediv,
        operator.floordiv,
        operator.mod,
        operator.pow,
        operator.lt,
        operator.le,
        operator.gt,
        operator.ge,
        operator.eq,
        operator.ne,
    ],
)
def test_binary_operators_agree_with_numpy_on_either_side(op) -> None:
    a = np.array([1.0, -2.0, 3.0], dtype=np.float32)
    b = np.array([2.0, 2.0, 3.0], dtype=np.float32)
    ta, tb = gt.constant(a), gt.constant(b)
    va = gt.Variable(a)
    for left, right, expected in [
        (ta, tb, op(a, b)),
        (a, tb, op(a, b)),
        (ta, b, op(a, b)),
        (ta, 2.0, op(a, 2.0)),
        (2, ta, op(2, a)),
        (va, tb, op(a, b)),
        (b, va, op(b, a)),
        (ta, [2.0, 2.0, 3.0], op(a, b)),
        (np.float32(2), ta, op(np.float32(2), a)),
    ]:
        result = op(left, right)
        assert isinstance(result, gt.Tensor)
        assert result.dtype == expected.dtype
        np.testing.assert_allclose(result, expected, rtol=1e-6)


def test_matrix_product_on_either_side() -> None:
    m = np.eye(3, dtype=np.float32) * 2.0
    for result in (gt.constant(A) @ gt.constant(m), A @ gt.constant(m), gt.constant(A) @ m):
        assert isinstance(result, gt.Tensor)
        np.testing.assert_array_equal(result, A * 2.0)
    v = gt.Variable(m)
    np.testing.assert_array_equal(A @ v, A * 2.0)


def test_unary_operators() -> None:
    x = gt.constant([1.0, -2.0])
    np.testing.assert_array_equal(-x, [-1.0, 2.0])
    np.testing.assert_array_equal(+x, [1.0, -2.0])
    np.testing.assert_array_equal(abs(x), [1.0, 2.0])


def test_bitwise_operators_are_numpys_for_booleans_and_integers() -> None:
    a, b = gt.constant([True, True, False]), np.array([True, False, False])
    i, j = gt.constant([6, -1, 3]), np.array([3, 5, 1])
    for op in (operator.and_, operator.or_, operator.xor):
        np.testing.assert_array_equal(op(a, b), op(np.asarray(a), b))
        np.testing.assert_array_equal(op(b, a), op(b, np.asarray(a)))
        np.testing.assert_array_equal(op(True, a), op(True, np.asarray(a)))
        np.testing.assert_array_equal(op(i, j), op(np.asarray(i), j))
        np.testing.assert_array_equal(op(3, i), op(3, np.asarray(i)))
    for op in (operator.lshift, operator.rshift):
        np.testing.assert_array_equal(op(i, j), op(np.asarray(i), j))
        np.testing.assert_array_equal(op(j, i.at[1].set(1)), op(j, np.array([6, 1, 3])))
    np.testing.assert_array_equal(~a, [False, False, True])
    np.testing.assert_array_equal(~i, [-7, 0, -4])
    with pytest.raises(TypeError, match=r"bitwise_and.*float32"):
        gt.constant([6.0]) & gt.constant([3.0])


def test_comparison_with_none_and_text_is_plain() -> None:
    x = gt.constant(1.0)
    for other in (None, "a"):
        assert (x == other) is False
        assert (x != other) is True


def test_numpy_functions_and_ufuncs_on_tensors_are_recorded() -> None:
    x = gt.constant([0.5, 1.0])
    with gt.GradientTape(persistent=True) as tape:
        tape.watch(x)
        y = np.sin(x)
        z = np.sum(x)
        w = np.multiply(np.array([2.0, 3.0], dtype=np.float32), x)
    assert all(isinstance(t, gt.Tensor) for t in (y, z, w))
    np.testing.assert_allclose(tape.gradient(y, x), np.cos(np.asarray(x)), rtol=1e-6)
    np.testing.assert_array_equal(tape.gradient(z, x), [1.0, 1.0])
    np.testing.assert_array_equal(tape.gradient(w, x), [2.0, 3.0])


def test_numpy_functions_about_values_are_answered() -> None:
    x = gt.constant([1.0, 2.0])
    assert np.allclose(x, [1.0, 2.0])
    assert np.array_equal(gt.Variable([1.0, 2.0]), x)
    assert (np.shape(x), np.ndim(x), np.size(x)) == ((2,), 1, 2)


def test_numpy_functions_that_we_lack_say_so() -> None:
    x = gt.constant([1.0, 2.0])
    with (
        gt.GradientTape(),
        pytest.raises(TypeError, match=r"histogram2d.*counterpart.*\.numpy\(\)"),
    ):
        np.histogram2d(x, x)
    with pytest.raises(TypeError, match=r"numpy\.subtract\.reduce"):
        np.subtract.reduce(x)
    with gt.GradientTape(), pytest.raises(TypeError, match=r"numpy\.isnat.*counterpart"):
        np.isnat(x)
    a = np.ones(2, dtype=np.float32)
    with gt.GradientTape(), pytest.raises(TypeError, match=r"a \+= x writes into a NumPy array"):
        a += x
    np.testing.assert_array_equal(a, [1.0, 1.0])


INDICES = [
    0,
    -1,
    np.int64(1),
    slice(None),
    slice(1, None),
    slice(None, None, -1),
    slice(np.int64(0), np.int64(1)),
    None,
    Ellipsis,
    (0, 1),
    (slice(None), 0),
    (Ellipsis, -1),
    (None, Ellipsis, None),
    (slice(None), slice(None, None, 2)),
    [1, 0],
    ([0, 1], [2, 0]),
    np.array([[0, 1], [1, 0]]),
    (slice(None), [0, 0, 2]),
    (0, [True, False, True]),
    A > 2.0,
    np.array([True, False]),
    (),
    [],
    (np.array(1), slice(None)),
]


@pytest.mark.parametrize("index", INDICES, ids=repr)
def test_indexing_means_what_it_means_in_numpy(index) -> None:
    expected = A[np.zeros(0, int) if isinstance(index, list) and not index else index]
    for x in (gt.constant(A), gt.Variable(A)):
        result = x[index]
        assert isinstance(result, gt.Tensor)
        assert result.shape == expected.shape
        np.testing.assert_array_equal(result, expected)


@pytest.mark.parametrize("index", [i for i in INDICES if not isinstance(i, list) or i], ids=repr)
def test_the_gradient_of_indexing_scatters(index) -> None:
    x = gt.constant(A)
    with gt.GradientTape() as tape:
        tape.watch(x)
        y = gt.sum(x[index] * 2.0)
    expected = np.zeros_like(A)
    np.add.at(expected, index, 2.0)
    np.testing.assert_array_equal(tape.gradient(y, x), expected)


def test_indexing_with_tensors() -> None:
    x = gt.constant(A)
    np.testing.assert_array_equal(x[gt.constant([1, 0])], A[[1, 0]])
    np.testing.assert_array_equal(x[x > 2.0], A[A > 2.0])
    np.testing.assert_array_equal(x[gt.constant(1) :], A[1:])
    assert A.tolist()[gt.constant(1)] == [4.0, 5.0, 6.0]


@pytest.mark.parametrize(
    ("index", "message"),
    [(5, "5"), ((0, 0, 0), "too many"), (1.5, "float"), ("a", "str"), ([0.5], "float")],
)
def test_bad_indices(index, message: str) -> None:
    with pytest.raises(IndexError, match=message):
        gt.constant(A)[index]


def test_a_tensor_cannot_be_written_to() -> None:
    x = gt.constant([1.0, 2.0])
    with pytest.raises(TypeError):
        x[0] = 5.0
    with pytest.raises(ValueError, match="read-only"):
        x.numpy()[0] = 5.0
    with pytest.raises(ValueError, match="read-only"):
        np.asarray(x)[0] = 5.0


def test_an_array_changed_later_changes_no_tensor() -> None:
    a = np.array([1.0, 2.0])
    v = gt.Variable([0.0, 0.0], dtype="float64")
    v.assign(a)
    made = [gt.constant(a), gt.as_tensor(a), gt.reshape(a, (2,)), gt.copy(a), v]
    made.append(gt.function(lambda x: x)(a))
    x = gt.constant(2.0, dtype="float64")
    with gt.GradientTape() as tape:
        tape.watch(x)
        y = gt.sum(x * a)
    a[:] = 99.0
    for t in made:
        np.testing.assert_array_equal(t, [1.0, 2.0])
    assert tape.gradient(y, x).numpy() == 3.0


def test_numpy_gives_arrays_and_scalars() -> None:
    assert isinstance(gt.constant([1.0]).numpy(), np.ndarray)
    scalar = gt.constant(2.5).numpy()
    assert isinstance(scalar, np.float32)
    assert scalar == 2.5


def test_array_protocol_with_dtype_and_copy() -> None:
    x = gt.constant([1.0, 2.0])
    assert np.asarray(x).dtype == np.float32
    assert np.asarray(x, dtype=np.float64).dtype == np.float64
    copied = np.array(x, copy=True)
    copied[0] = 9.0
    np.testing.assert_array_equal(x, [1.0, 2.0])
    assert np.shares_memory(np.asarray(x, copy=False), np.asarray(x))
    with pytest.raises(ValueError, match="copy"):
        np.asarray(x, dtype=np.float64, copy=False)
    assert np.array([x, x]).shape == (2, 2)


@pytest.mark.parametrize("make", [gt.constant, gt.Variable])
def test_dlpack_gives_a_copy_that_may_be_written_to(make: Any) -> None:
    x = make([1.0, 2.0])
    assert x.__dlpack_device__()[0] == 1
    there = np.from_dlpack(x)
    np.testing.assert_array_equal(there, [1.0, 2.0])
    there[:] = 9.0
    np.testing.assert_array_equal(x.numpy(), [1.0, 2.0])
    assert np.from_dlpack(gt.constant(2.0)).shape == ()


@pytest.mark.parametrize("make", [gt.constant, gt.Variable])
def test_dlpack_without_a_copy_is_read_only(make: Any) -> None:
    x = make([1.0, 2.0])
    there = np.from_dlpack(x, copy=False)
    assert np.shares_memory(there, x.numpy())
    with pytest.raises(ValueError, match="read-only"):
        there[0] = 9.0
    assert x.array.flags.writeable  # a view was marked, not the tensor's own array
    with pytest.raises(BufferError, match="copy=False"):
        x.__dlpack__(copy=False)  # DLPack before 1.0 has no mark for read-only memory
    with pytest.raises(BufferError, match="copy=False"):
        x.__dlpack__(copy=False, max_version=(0, 8))


@pytest.mark.parametrize("make", [gt.constant, gt.Variable])
def test_torch_writes_to_a_copy(make: Any) -> None:
    torch = pytest.importorskip("torch")
    x = make([1.0, 2.0])
    with gt.GradientTape() as tape:
        tape.watch(x)
        y = x * x
    for there in (torch.from_dlpack(x), torch.utils.dlpack.from_dlpack(x)):
        there.mul_(10.0)
        assert there.tolist() == [10.0, 20.0]
    np.testing.assert_array_equal(x.numpy(), [1.0, 2.0])
    np.testing.assert_array_equal(tape.gradient(y, x).numpy(), [2.0, 4.0])


def test_jax_takes_tensors_and_variables() -> None:
    jnp = pytest.importorskip("jax.numpy")
    for make in (gt.constant, gt.Variable):
        np.testing.assert_array_equal(jnp.from_dlpack(make([1.0, 2.0])), [1.0, 2.0])


def test_dlpack_in_a_trace_says_what_is_not_known() -> None:
    @gt.function
    def f(x: Any) -> Any:
        return gt.constant(np.from_dlpack(x))

    with pytest.raises(TypeError, match="not known while a function is traced"):
        f(gt.constant([1.0]))


def test_python_numbers() -> None:
    x = gt.constant(2.5)
    assert float(x) == 2.5
    assert int(x) == 2
    assert complex(x) == 2.5 + 0j
    assert bool(x)
    assert not gt.constant(0.0)
    assert x.item() == 2.5
    assert isinstance(x.item(), float)
    assert gt.constant([[1, 2]]).tolist() == [[1, 2]]
    assert math.sqrt(gt.constant(4.0)) == 2.0
    assert list(range(gt.constant(3))) == [0, 1, 2]
    with pytest.raises(TypeError, match="integer"):
        range(gt.constant(3.0))
    with pytest.raises(ValueError, match="ambiguous"):
        bool(gt.constant([1.0, 2.0]))
    with pytest.raises(ValueError, match="size"):
        gt.constant([1.0, 2.0]).item()


@pytest.mark.parametrize("make", [gt.constant, gt.Variable])
def test_item_takes_an_index_as_numpy_does(make: Any) -> None:
    x = make(A)
    assert x.item(4) == x.item(1, 1) == x.item((1, 1)) == 5.0
    with pytest.raises(IndexError, match="out of bounds"):
        x.item(6)


def test_an_element_is_found_in_any_row() -> None:
    x = gt.constant(A)
    for item in (5.0, 9.0, [1.0, 2.0, 3.0], gt.constant(6.0)):
        assert (item in x) == (np.asarray(item) in A)
        assert (item in gt.Variable(A)) == (np.asarray(item) in A)
    assert None not in x
    assert "a" not in x


def test_len_and_iteration() -> None:
    x = gt.constant(A)
    assert len(x) == 2
    rows = list(x)
    assert [row.shape for row in rows] == [(3,), (3,)]
    a, b, c = rows[1]
    assert [a.item(), b.item(), c.item()] == [4.0, 5.0, 6.0]
    assert 5.0 in rows[1]
    with pytest.raises(TypeError, match="without axes"):
        len(gt.constant(1.0))
    with pytest.raises(TypeError, match="without axes"):
        iter(gt.constant(1.0))


def test_iteration_is_recorded() -> None:
    x = gt.constant([1.0, 2.0, 3.0])
    with gt.GradientTape() as tape:
        tape.watch(x)
        total = sum(row * i for i, row in enumerate(x))
    np.testing.assert_array_equal(tape.gradient(total, x), [0.0, 1.0, 2.0])


def test_shape_attributes() -> None:
    x = gt.constant(A)
    assert (x.shape, x.ndim, x.size, x.dtype) == ((2, 3), 2, 6, np.float32)
    assert x.device == "numpy:cpu"
    assert x.to("numpy") is x


def test_methods_follow_numpy() -> None:
    x = gt.constant(A)
    np.testing.assert_array_equal(x.sum(axis=0), A.sum(axis=0))
    np.testing.assert_array_equal(x.mean(axis=1, keepdims=True), A.mean(axis=1, keepdims=True))
    np.testing.assert_array_equal(x.max(axis=0), A.max(axis=0))
    np.testing.assert_array_equal(x.min(), A.min())
    np.testing.assert_array_equal(x.reshape(3, 2), A.reshape(3, 2))
    np.testing.assert_array_equal(x.reshape((3, -1)), A.reshape(3, -1))
    np.testing.assert_array_equal(x.T, A.T)
    np.testing.assert_array_equal(x.transpose(1, 0), A.T)
    np.testing.assert_array_equal(x.transpose((1, 0)), A.T)
    np.testing.assert_array_equal(x.transpose(), A.T)
    assert x.astype("int32").dtype == np.int32


def test_repr_and_format() -> None:
    assert repr(gt.constant(2.0)) == "<Tensor shape=() dtype=float32 value=2.>"
    assert "\n[[1., 2., 3.]" in repr(gt.constant(A))
    assert len(repr(gt.constant(np.zeros(10**5)))) < 300
    assert str(gt.constant(2.0)) == "Tensor(2.0, shape=(), dtype=float32)"
    assert f"{gt.constant(2.0):.3f}" == "2.000"
    assert f"{gt.constant([2.0])}" == str(gt.constant([2.0]))


def test_hash_is_identity() -> None:
    a, b = gt.constant(1.0), gt.constant(1.0)
    assert len({a, b, a}) == 2
    assert {a: "a"}[a] == "a"


def test_copies_are_the_same_tensor() -> None:
    x = gt.constant([1.0])
    assert copy.copy(x) is x
    assert copy.deepcopy({"x": [x]})["x"][0] is x


def test_what_is_no_operand_is_named_with_the_op_and_argument() -> None:
    with pytest.raises(TypeError, match=r"add: argument 'y'.*None"):
        gt.constant(1.0) + None
    with pytest.raises(TypeError, match=r"multiply: argument 'x'.*str"):
        "a" * gt.constant(1.0)
    with pytest.raises(TypeError, match="sin"):
        gt.sin(None)


def test_shapes_that_do_not_broadcast_are_named_with_the_op() -> None:
    a, b = gt.constant([1.0, 2.0]), gt.constant([1.0, 2.0, 3.0])
    with pytest.raises(ValueError, match=r"add.*\(2,\).*\(3,\)"):
        a + b
    with pytest.raises(ValueError, match=r"add.*\(2,\).*\(3,\)"):
        gt.function(lambda x, y: x + y)(a, b)


@pytest.mark.parametrize("shape", [(0,), (0, 3), (2, 0)])
def test_empty_tensors(shape) -> None:
    x = gt.constant(np.zeros(shape))
    with gt.GradientTape() as tape:
        tape.watch(x)
        y = gt.sum(gt.sin(x) * 2.0)
    assert y.numpy() == 0.0
    assert tape.gradient(y, x).shape == shape
    repr(x)


def test_nan_is_carried() -> None:
    x = gt.constant([np.nan, 1.0])
    with gt.GradientTape() as tape:
        tape.watch(x)
        y = gt.sum(x * x)
    assert np.isnan(y.numpy())
    np.testing.assert_array_equal(tape.gradient(y, x), [np.nan, 2.0])


def test_a_tensor_made_of_no_array_says_how_to_make_one() -> None:
    with pytest.raises(TypeError, match=r"made from a list; make tensors with gradtape.constant"):
        gt.Tensor([1.0, 2.0]).numpy()


@pytest.mark.parametrize("copy", [None, False])
def test_a_full_reduction_is_exported_by_dlpack(copy: bool | None) -> None:
    total = gt.sum(gt.ones(3))
    shared = np.from_dlpack(total, copy=copy)
    assert (shared.shape, shared.dtype, shared.item()) == ((), np.float32, 3.0)

"""Functions whose arguments or defaults are TensorFlow's own, against NumPy."""

from __future__ import annotations

import numpy as np
import pytest

import gradtape as gt
import gradtape.compat.tensorflow as tf

rng = np.random.default_rng(0)


def same(found, expected, dtype=None):
    expected = np.asarray(expected)
    assert tuple(found.shape) == expected.shape
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)
    if dtype is not None:
        assert found.dtype == dtype


def draw(*shape):
    return rng.standard_normal(shape)


def gradient_of(f, x):
    x = tf.constant(x)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = f(x)
    return tape.gradient(y, x)


# -- creation --------------------------------------------------------------------------------------


def test_creation() -> None:
    same(tf.zeros([2, 3]), np.zeros((2, 3)), "float32")
    same(tf.ones(tf.constant([2]), dtype=tf.int32, name="n"), np.ones(2), "int32")
    same(tf.fill([2, 2], 7), np.full((2, 2), 7), "int32")
    assert gradient_of(lambda x: tf.fill([2, 3], x), 1.0).numpy() == 6.0
    same(tf.zeros_like(tf.constant([1, 2])), [0, 0], "int32")
    same(tf.ones_like([1.0], dtype=tf.float64), [1.0], "float64")
    same(tf.eye(2), np.eye(2), "float32")
    same(tf.eye(2, 3, batch_shape=[4], dtype=tf.float64), np.stack([np.eye(2, 3)] * 4), "float64")
    same(tf.range(5), np.arange(5), "int32")
    same(tf.range(1, 10, 3), [1, 4, 7], "int32")
    same(tf.range(3.0), [0.0, 1.0, 2.0], "float32")
    same(tf.range(start=1, limit=3, dtype=tf.float64), [1.0, 2.0], "float64")
    same(tf.range(tf.constant(3)), [0, 1, 2], "int32")
    same(tf.linspace(0.0, 1.0, 5), np.linspace(0, 1, 5), "float32")
    same(tf.linspace(0, 10, num=3), [0.0, 5.0, 10.0], "float64")
    ends = np.array([0.0, 1.0]), np.array([4.0, 9.0])
    same(tf.linspace(*ends, 4), np.linspace(*ends, 4))
    same(tf.linspace(*ends, 4, axis=-1), np.linspace(*ends, 4, axis=-1))
    for found, expected in zip(
        tf.meshgrid([1, 2, 3], [4, 5], indexing="ij"),
        np.meshgrid([1, 2, 3], [4, 5], indexing="ij"),
        strict=True,
    ):
        same(found, expected, "int32")


def test_one_hot() -> None:
    same(tf.one_hot([0, 2, -1], 3), [[1, 0, 0], [0, 0, 1], [0, 0, 0]], "float32")
    found = tf.one_hot([0, 2], depth=3, on_value=5.0, off_value=-1.0, axis=0)
    same(found, [[5, -1], [-1, -1], [-1, 5]], "float32")
    same(tf.one_hot([1], 2, on_value=2, dtype=tf.int32), [[0, 2]], "int32")


def test_sequence_mask() -> None:
    same(tf.sequence_mask([1, 3, 2], 4), np.arange(4) < np.array([[1], [3], [2]]))
    assert tf.sequence_mask([1, 3], dtype=tf.float32).shape == (2, 3)


# -- shapes ----------------------------------------------------------------------------------------


def test_shapes() -> None:
    x = draw(2, 3, 4)
    same(tf.shape(x), [2, 3, 4], "int32")
    same(tf.size(x), 24, "int32")
    same(tf.rank(x), 3, "int32")
    same(tf.reshape(x, [-1, 4]), x.reshape(-1, 4))
    same(tf.reshape(x, tf.constant([4, 6])), x.reshape(4, 6))
    same(tf.reshape(x, [tf.shape(x)[0], -1]), x.reshape(2, -1))
    same(tf.transpose(x), x.T)
    same(tf.transpose(x, perm=[1, 0, 2]), x.transpose(1, 0, 2))
    same(tf.transpose(1j * x[0], conjugate=True), (1j * x[0]).conj().T)
    same(tf.expand_dims(x, axis=-1), x[..., None])
    same(tf.squeeze(x[:1], axis=0), x[0])
    same(tf.squeeze([[1], [2]], name="s"), [1, 2], "int32")
    same(tf.broadcast_to(x[0], tf.shape(x)), np.broadcast_to(x[0], x.shape))
    same(tf.reverse(x, axis=[0, 2]), x[::-1, :, ::-1])
    same(tf.roll(x, shift=[1, -1], axis=[0, 1]), np.roll(x, (1, -1), (0, 1)))
    same(tf.tile(x, [1, 2, 1]), np.tile(x, (1, 2, 1)))
    same(tf.repeat(x, repeats=[1, 2, 0], axis=1), np.repeat(x, [1, 2, 0], axis=1))
    same(tf.repeat([3, 4], 2), [3, 3, 4, 4])
    same(tf.ensure_shape(x, [None, 3, 4]), x)
    with pytest.raises(ValueError, match="ensure_shape"):
        tf.ensure_shape(x, [2, 2, 4])
    with pytest.raises(TypeError, match="a shape is"):
        tf.zeros("ab")


def test_pad_modes() -> None:
    x, widths = draw(3, 4), [[1, 2], [0, 1]]
    same(tf.pad(x, widths), np.pad(x, widths))
    same(tf.pad(x, tf.constant(widths), constant_values=5.0), np.pad(x, widths, constant_values=5))
    same(tf.pad(x, widths, mode="REFLECT"), np.pad(x, widths, mode="reflect"))
    same(tf.pad(x, widths, "symmetric"), np.pad(x, widths, mode="symmetric"))
    with pytest.raises(ValueError, match="EDGE"):
        tf.pad(x, widths, "EDGE")


def test_joining_and_parting() -> None:
    a, b = draw(2, 3), draw(2, 3)
    same(tf.concat([a, b], axis=1), np.concatenate([a, b], 1))
    same(tf.concat(values=[a, b], axis=-1), np.concatenate([a, b], -1))
    same(tf.concat([tf.constant([1.0]), [2]], 0), [1.0, 2.0], "float32")
    same(tf.stack([a, b], axis=-1), np.stack([a, b], -1))
    same(tf.stack([1, 2]), [1, 2], "int32")
    for found, expected in zip(tf.unstack(a, axis=1), a.T, strict=True):
        same(found, expected)
    assert len([*tf.unstack(a, num=2), a]) == 3
    assert isinstance(tf.unstack(a), list)
    x = draw(6, 2)
    for found, expected in zip(tf.split(x, 3), np.split(x, 3), strict=True):
        same(found, expected)
    for found, expected in zip(tf.split(x, [1, -1, 2], axis=0), np.split(x, [1, 4]), strict=True):
        same(found, expected)
    with pytest.raises(ValueError, match="split"):
        tf.split(x, [1, 2])
    same(tf.slice(x, [1, 0], [3, -1]), x[1:4])
    same(x[:, tf.newaxis], x[:, None])


# -- picking ---------------------------------------------------------------------------------------


def test_where() -> None:
    x = np.array([[1, 0], [0, 2]])
    same(tf.where(x > 0), [[0, 0], [1, 1]], "int64")
    same(tf.where(x > 0, x=1.0, y=-1.0), np.where(x > 0, 1.0, -1.0))
    with pytest.raises(ValueError, match="both"):
        tf.where(x > 0, 1.0)


def test_gather_with_batch_dims() -> None:
    x, ids = draw(2, 3, 4), np.array([[0, 2], [1, 1]])
    same(tf.gather(x, [1, 0]), x[[1, 0]])
    same(tf.gather(x, ids, axis=1), x[:, ids])
    same(tf.gather(x, ids, batch_dims=1), np.stack([x[i][ids[i]] for i in range(2)]))
    same(tf.gather(x, ids, batch_dims=1, axis=2), np.stack([x[i][:, ids[i]] for i in range(2)]))
    same(tf.gather(x, ids, axis=-1), x[:, :, ids])
    deep = np.array([[0], [3], [1]] * 2).reshape(2, 3, 1)
    same(tf.gather(x, deep, batch_dims=2), np.take_along_axis(x, deep, -1))
    with pytest.raises(ValueError, match="axis 0"):
        tf.gather(x, ids, axis=0, batch_dims=1)
    same(
        gradient_of(lambda x: tf.gather(x, ids, batch_dims=1), np.ones((2, 3))),
        [[1.0, 0.0, 1.0], [0.0, 2.0, 0.0]],
    )


def test_gather_nd_and_boolean_mask() -> None:
    x = draw(2, 3, 4)
    same(tf.gather_nd(x, [[0, 1], [1, 2]]), x[[0, 1], [1, 2]])
    same(tf.gather_nd(x, [[[0]], [[1]]]), x[[[0], [1]]])
    same(tf.gather_nd(x, [[2], [0]], batch_dims=1), np.stack([x[0, 2], x[1, 0]]))
    same(tf.boolean_mask(x, x > 0), x[x > 0])
    same(tf.boolean_mask(x, [True, False]), x[[True, False]])
    same(tf.boolean_mask(x, [True, False, True], axis=1), x[:, [True, False, True]])


def test_scattering() -> None:
    indices, updates = [[4], [3], [1], [3]], [9.0, 10.0, 11.0, 12.0]
    expected = np.zeros(8)
    np.add.at(expected, [4, 3, 1, 3], updates)
    same(tf.scatter_nd(indices, updates, [8]), expected, "float32")
    rows = draw(2, 3)
    expected = np.zeros((4, 3))
    expected[[0, 2]] = rows
    same(tf.scatter_nd([[0], [2]], rows, tf.constant([4, 3])), expected)

    x, where, to = draw(3, 3), [[0, 1], [2, 2]], np.array([5.0, -5.0])
    at = ([0, 2], [1, 2])
    for name, combine in [
        ("update", lambda old, new: new),
        ("add", np.add),
        ("sub", np.subtract),
        ("max", np.maximum),
        ("min", np.minimum),
    ]:
        expected = x.copy()
        expected[at] = combine(x[at], to)
        same(getattr(tf, f"tensor_scatter_nd_{name}")(x, where, to), expected)
    same(
        gradient_of(lambda x: tf.tensor_scatter_nd_update(x, where, to), x),
        [[1, 0, 1], [1, 1, 1], [1, 1, 0]],
    )
    same(gradient_of(lambda u: tf.scatter_nd([[1], [1]], u, [3]) ** 2, [1.0, 2.0]), [6.0, 6.0])


def test_order() -> None:
    x = np.array([[3.0, 1.0, 2.0], [1.0, 3.0, 1.0]])
    same(tf.sort(x), np.sort(x))
    same(tf.sort(x, axis=0, direction="DESCENDING"), -np.sort(-x, 0))
    same(tf.argsort(x), np.argsort(x, kind="stable"), "int32")
    same(tf.argsort(x, direction="DESCENDING", stable=True), [[0, 2, 1], [1, 0, 2]], "int32")
    with pytest.raises(ValueError, match="DOWN"):
        tf.sort(x, direction="DOWN")
    same(tf.argmax(x), [0, 1, 0], "int64")
    same(tf.argmax(x, axis=1, output_type=tf.int32), [0, 1], "int32")
    same(tf.math.argmin(x, axis=-1), [1, 0], "int64")
    values, indices = tf.math.top_k(x, k=2)
    same(values, [[3.0, 2.0], [3.0, 1.0]])
    same(indices, [[0, 2], [1, 0]], "int32")
    same(gradient_of(lambda x: tf.math.top_k(x, 2).values, x), [[1, 0, 1], [1, 1, 0]])
    with pytest.raises(ValueError, match="k=4"):
        tf.math.top_k(x, 4)
    same(tf.math.in_top_k([1, 0], x, 2), [False, True])
    values, places = tf.unique([4, 1, 1, 9, 4])
    same(values, [4, 1, 9], "int32")
    same(places, [0, 1, 1, 2, 0], "int32")
    same(tf.searchsorted([[1, 3], [2, 6]], [[2], [6]]), [[1], [1]], "int32")
    same(tf.searchsorted([1, 3, 3], [3], side="right"), [3])
    same(tf.math.invert_permutation([2, 0, 1]), [1, 2, 0], "int32")


def test_clipping() -> None:
    x = np.array([3.0, 4.0])
    same(tf.clip_by_value(x, clip_value_min=3.5, clip_value_max=10.0), [3.5, 4.0])
    same(tf.clip_by_norm(x, 1.0), x / 5)
    same(tf.clip_by_norm([x, 2 * x], 1.0, axes=[1]), [x / 5, x / 5])
    clipped, norm = tf.clip_by_global_norm([x, None, np.array([12.0])], 6.5)
    same(norm, 13.0)
    same(clipped[0], x / 2)
    assert clipped[1] is None
    same(clipped[2], [6.0])
    same(tf.clip_by_global_norm([x], 100.0)[0][0], x)
    same(tf.linalg.global_norm([x, None]), 5.0)


# -- math ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "reference"),
    [
        ("reduce_sum", np.sum),
        ("reduce_mean", np.mean),
        ("reduce_prod", np.prod),
        ("reduce_max", np.max),
        ("reduce_min", np.min),
        ("reduce_variance", np.var),
        ("reduce_std", np.std),
        ("reduce_euclidean_norm", lambda x, **k: np.sqrt(np.sum(x**2, **k))),
        ("reduce_logsumexp", lambda x, **k: np.log(np.sum(np.exp(x), **k))),
    ],
)
def test_reductions(name, reference) -> None:
    reduce, x = getattr(tf.math, name), draw(2, 3, 4)
    same(reduce(x), reference(x))
    same(reduce(input_tensor=x, axis=1, keepdims=True), reference(x, axis=1, keepdims=True))
    same(reduce(x, axis=[0, -1], name="r"), reference(x, axis=(0, -1)))
    same(reduce(x, axis=tf.constant([0, 1])), reference(x, axis=(0, 1)))


def test_reductions_of_truth_and_counts() -> None:
    x = np.array([[True, False], [True, True]])
    same(tf.reduce_all(x, axis=0), [True, False])
    same(tf.reduce_any(x, 1, keepdims=True), [[True], [True]])
    same(tf.math.count_nonzero(x, axis=1, dtype=tf.int32), [1, 2], "int32")
    same(tf.math.zero_fraction([0.0, 1.0, 0.0, 2.0]), 0.5)


def test_running_sums_and_products() -> None:
    x = np.array([1.0, 2.0, 3.0])
    same(tf.cumsum(x), [1, 3, 6])
    same(tf.cumsum(x, exclusive=True), [0, 1, 3])
    same(tf.cumsum(x, reverse=True), [6, 5, 3])
    same(tf.cumsum(x, exclusive=True, reverse=True), [5, 3, 0])
    same(tf.math.cumprod(x, exclusive=True), [1, 1, 2])
    same(tf.math.cumprod(x, reverse=True), [6, 6, 3])
    same(tf.cumsum([[1, 2], [3, 4]], axis=1), [[1, 3], [3, 7]], "int32")
    same(tf.cumsum([[1, 2], [3, 4]], axis=-1, exclusive=True), [[0, 1], [0, 3]])
    same(gradient_of(lambda x: tf.cumsum(x, exclusive=True), x), [2, 1, 0])


def test_arithmetic() -> None:
    x, y = np.array([1.0, 0.0, -3.0]), np.array([0.0, 0.0, 2.0])
    same(tf.math.divide_no_nan(x, y), [0, 0, -1.5])
    same(gradient_of(lambda y: tf.math.divide_no_nan(tf.constant(x), y), y), [0, 0, 0.75])
    same(tf.math.multiply_no_nan([np.inf, 2.0], [0.0, 3.0]), [0, 6])
    same(tf.math.reciprocal_no_nan(y), [0, 0, 0.5])
    same(tf.math.squared_difference(x, y), (x - y) ** 2)
    same(tf.math.squared_difference([1j], [1.0]), [2.0])
    same(tf.math.xlogy(y, [0.0, 1.0, np.e]), [0, 0, 2])
    same(tf.math.xlog1py(y, [-1.0, 1.0, np.e - 1]), [0, 0, 2])
    same(tf.math.rsqrt([4.0]), [0.5])
    same(tf.add_n([x, y, x]), 2 * x + y)
    with pytest.raises(ValueError, match="add_n"):
        tf.add_n([x, [1.0]])
    same(tf.scalar_mul(2.0, x), 2 * x)
    same(tf.math.l2_normalize([3.0, 4.0]), [0.6, 0.8])
    same(tf.math.l2_normalize([[3.0, 4.0], [0.0, 2.0]], axis=1), [[0.6, 0.8], [0, 1]])
    same(tf.nn.softmax([[0.0, np.log(3.0)]]), [[0.25, 0.75]])
    same(tf.nn.softmax([[0.0], [np.log(3.0)]], axis=0), [[0.25], [0.75]])
    same(tf.nn.log_softmax([0.0, np.log(3.0)]), np.log([0.25, 0.75]))
    same(tf.math.floormod([-3, 3], 2), [1, 1])


def test_counting_and_segments() -> None:
    same(tf.math.bincount([1, 1, 3]), [0, 2, 0, 1], "int32")
    same(tf.math.bincount([1, 5, 1], minlength=4, maxlength=4), [0, 2, 0, 0])
    same(tf.math.bincount([0, 1, 1], weights=[0.5, 1.0, 2.0]), [0.5, 3.0])
    same(tf.math.confusion_matrix([0, 1, 1], [0, 0, 1]), [[1, 0], [1, 1]], "int32")
    data, ids = np.array([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]), [0, 0, 1]
    same(tf.math.segment_sum(data, ids), [[4, 6], [5, 6]])
    same(tf.math.segment_mean(data, ids), [[2, 3], [5, 6]])
    same(tf.math.unsorted_segment_sum(data, [2, 0, 2], 4), [[3, 4], [0, 0], [6, 8], [0, 0]])
    same(tf.math.unsorted_segment_sum(data, [[0, 1], [1, 1], [0, 0]], 2), [12.0, 9.0])


# -- linear algebra --------------------------------------------------------------------------------


@pytest.mark.parametrize("batch_dims", [0, 1])
def test_gather_refuses_an_axis_that_is_out_of_range(batch_dims: int) -> None:
    x, indices = tf.zeros((2, 3)), tf.zeros((2, 1), tf.int32)
    with pytest.raises(IndexError, match="axis 3 is out of bounds"):
        tf.gather(x, indices, axis=3, batch_dims=batch_dims)


def test_linspace_has_the_dtypes_of_tensorflow() -> None:
    assert tf.linspace(1, 5, 3).dtype == tf.float64
    assert tf.linspace(0.0, 1.0, 3).dtype == tf.float32
    same(tf.linspace([0.0, 1.0], [1.0, 3.0], 3, axis=-1), [[0.0, 0.5, 1.0], [1.0, 2.0, 3.0]])


@pytest.mark.parametrize("dtype", ["int8", "int32", "int64", "uint8", "float16", "float64"])
@pytest.mark.parametrize("axis", [None, 0, [0, 1]])
def test_sums_and_products_keep_the_dtype(dtype: str, axis: object) -> None:
    x = tf.constant([[1, 2], [3, 1]], dtype)
    for reduce in (tf.reduce_sum, tf.reduce_prod, tf.reduce_max, tf.reduce_mean):
        assert reduce(x, axis).dtype == dtype
        assert tf.function(reduce)(x, axis).dtype == dtype
    assert tf.cumsum(x, 1).dtype == dtype


def test_products_with_flags() -> None:
    a, b = draw(2, 3, 4), draw(2, 4, 5)
    turn = (0, 2, 1)
    same(tf.matmul(a, b), a @ b)
    same(tf.matmul(a.transpose(turn), b, transpose_a=True), a @ b)
    same(tf.linalg.matmul(a=a, b=b.transpose(turn), transpose_b=True), a @ b)
    z = a + 1j * draw(2, 3, 4)
    same(tf.matmul(z.conj().transpose(turn), b + 0j, adjoint_a=True), z @ b)
    with pytest.raises(ValueError, match="not both"):
        tf.matmul(a, b, transpose_a=True, adjoint_a=True)
    with pytest.raises(ValueError, match="matrices"):
        tf.matmul(a, b[0, :, 0])
    v = draw(2, 4)
    same(tf.linalg.matvec(a, v), np.einsum("bij,bj->bi", a, v))
    same(tf.linalg.matvec(a.transpose(turn), v, transpose_a=True), np.einsum("bij,bj->bi", a, v))
    same(tf.tensordot(a, b, axes=[[2], [1]]), np.tensordot(a, b, ([2], [1])))
    same(tf.tensordot(a[0], b[0], 1), a[0] @ b[0])
    same(tf.einsum("bij,bjk->ik", a, b), np.einsum("bij,bjk->ik", a, b))
    same(tf.linalg.adjoint(z), z.conj().transpose(turn))
    same(tf.linalg.cross([1.0, 0.0, 0.0], [0.0, 1.0, 0.0]), [0, 0, 1])


def test_solving() -> None:
    a, b = draw(3, 3) + 3 * np.eye(3), draw(3, 2)
    same(tf.linalg.solve(a, b), np.linalg.solve(a, b))
    same(tf.linalg.solve(a, b, adjoint=True), np.linalg.solve(a.T, b))
    same(tf.linalg.inv(a), np.linalg.inv(a))
    same(tf.linalg.inv(a, adjoint=True), np.linalg.inv(a.T))
    low = np.tril(a)
    same(tf.linalg.triangular_solve(a, b), np.linalg.solve(low, b))
    same(tf.linalg.triangular_solve(a, b, lower=False), np.linalg.solve(np.triu(a), b))
    same(tf.linalg.triangular_solve(a, b, adjoint=True), np.linalg.solve(low.T, b))
    tall, rhs = draw(5, 3), draw(5, 1)
    same(tf.linalg.lstsq(tall, rhs), np.linalg.lstsq(tall, rhs, rcond=None)[0])
    ridge = np.linalg.solve(tall.T @ tall + 0.5 * np.eye(3), tall.T @ rhs)
    same(tf.linalg.lstsq(tall, rhs, l2_regularizer=0.5), ridge)
    same(tf.linalg.pinv(tall), np.linalg.pinv(tall))
    positive = a @ a.T
    same(tf.linalg.logdet(positive), np.linalg.slogdet(positive)[1])
    same(tf.linalg.det(a), np.linalg.det(a))
    same(tf.linalg.cholesky(positive), np.linalg.cholesky(positive))
    sign, size = tf.linalg.slogdet(a)
    same(sign * tf.exp(size), np.linalg.det(a))


def test_factorizations() -> None:
    x = draw(2, 4, 3)
    s, u, v = tf.linalg.svd(x)
    assert (s.shape, u.shape, v.shape) == ((2, 3), (2, 4, 3), (2, 3, 3))
    same(tf.matmul(u * s[:, None, :], v, adjoint_b=True), x)
    same(tf.linalg.svd(x, compute_uv=False), np.linalg.svd(x, compute_uv=False))
    assert tf.linalg.svd(x, full_matrices=True)[1].shape == (2, 4, 4)
    q, r = tf.linalg.qr(x)
    assert q.shape == (2, 4, 3)
    same(q @ r, x)
    symmetric = x[0].T @ x[0]
    values, vectors = tf.linalg.eigh(symmetric)
    same(values, np.linalg.eigvalsh(symmetric))
    same(tf.linalg.eigvalsh(symmetric), values.numpy())
    same(vectors @ tf.linalg.diag(values) @ tf.transpose(vectors), symmetric)


def test_diagonals() -> None:
    x = draw(2, 3, 3)
    same(tf.linalg.trace(x), np.trace(x, axis1=1, axis2=2))
    same(tf.linalg.diag_part(x), np.diagonal(x, axis1=1, axis2=2))
    same(tf.linalg.diag_part(x, k=1), np.diagonal(x, 1, 1, 2))
    same(tf.linalg.diag([1.0, 2.0]), np.diag([1.0, 2.0]))
    v = draw(2, 3)
    same(tf.linalg.diag(v), np.stack([np.diag(row) for row in v]))
    same(tf.linalg.diag(v, k=-2), np.stack([np.diag(row, -2) for row in v]))
    same(tf.linalg.diag(v, k=1), np.stack([np.diag(row, 1) for row in v]))
    with pytest.raises(ValueError, match="range"):
        tf.linalg.diag_part(x, k=(-1, 1))
    for low, high in [(0, 0), (1, 0), (-1, 0), (0, -1), (1, 1)]:
        rows, columns = np.indices((3, 3))
        kept = ((low < 0) | (rows - columns <= low)) & ((high < 0) | (columns - rows <= high))
        same(tf.linalg.band_part(x, low, high), np.where(kept, x, 0))


def test_norms() -> None:
    x = draw(2, 3, 4)
    same(tf.norm(x), np.sqrt(np.sum(x**2)))
    same(tf.norm(x, axis=-1, keepdims=True), np.linalg.norm(x, axis=-1, keepdims=True))
    same(tf.norm(x, ord=1), np.abs(x).sum())
    same(tf.norm(x, ord=np.inf, axis=1), np.abs(x).max(1))
    same(tf.linalg.norm(x, ord="fro", axis=[-2, -1]), np.linalg.norm(x, "fro", (-2, -1)))
    same(tf.norm(x, axis=(1, 2)), np.linalg.norm(x, "fro", (1, 2)))
    same(tf.norm(x, ord=1, axis=(1, 2)), np.linalg.norm(x, 1, (1, 2)))
    unit, norm = tf.linalg.normalize(x, axis=-1)
    same(unit * norm, x)
    with pytest.raises(ValueError, match="fro"):
        tf.norm(x, "fro")


# -- networks --------------------------------------------------------------------------------------


def test_moments_and_batch_normalization() -> None:
    x = draw(5, 3)
    mean, variance = tf.nn.moments(x, axes=[0])
    same(mean, x.mean(0))
    same(variance, x.var(0))
    kept = tf.nn.moments(x, [0, 1], keepdims=True)
    assert [m.shape for m in kept] == [(1, 1), (1, 1)]
    found = tf.nn.batch_normalization(x, mean, variance, 0.5, 2.0, variance_epsilon=1e-3)
    same(found, (x - x.mean(0)) / np.sqrt(x.var(0) + 1e-3) * 2.0 + 0.5)
    plain = tf.nn.batch_normalization(x, mean, variance, None, None, 1e-3)
    same(plain, (x - x.mean(0)) / np.sqrt(x.var(0) + 1e-3))


def test_bias_dropout_embedding() -> None:
    x = draw(2, 3, 4)
    same(tf.nn.bias_add(x, np.arange(4.0)), x + np.arange(4.0))
    same(tf.nn.bias_add(x, np.arange(3.0), data_format="NCW"), x + np.arange(3.0)[:, None])
    with pytest.raises(ValueError, match="bias_add"):
        tf.nn.bias_add(x, np.arange(3.0))
    ones = tf.ones([1000])
    dropped = tf.nn.dropout(ones, rate=0.25, seed=1).numpy()
    np.testing.assert_allclose(np.unique(dropped), [0.0, 1.0 / 0.75])
    assert 0.2 < (dropped == 0).mean() < 0.3
    same(tf.nn.dropout(ones, 0.25, seed=1), dropped)
    rows = tf.nn.dropout(tf.ones([50, 4]), 0.5, noise_shape=[None, 1]).numpy()
    assert (rows == rows[:, :1]).all()
    table = draw(5, 2)
    same(tf.nn.embedding_lookup(table, [[0, 4]]), table[[[0, 4]]])
    limited = tf.nn.embedding_lookup(np.array([[3.0, 4.0], [0.1, 0.0]]), [0, 1], max_norm=1.0)
    same(limited, [[0.6, 0.8], [0.1, 0.0]])


def test_activations_with_arguments() -> None:
    x = np.array([-1.0, 0.5])
    same(tf.nn.silu(x), x / (1 + np.exp(-x)))
    same(tf.nn.swish(x, beta=2.0), x / (1 + np.exp(-2 * x)))
    same(tf.nn.crelu(x), [0, 0.5, 1, 0])
    same(tf.nn.leaky_relu(x, alpha=0.1), [-0.1, 0.5])
    same(tf.nn.elu(x), [np.exp(-1) - 1, 0.5])
    assert tf.nn.gelu(x, approximate=True).shape == (2,)


def test_losses() -> None:
    labels, logits = np.array([[0.0, 1.0], [0.5, 0.5]]), draw(2, 2)
    logs = logits - np.log(np.exp(logits).sum(1, keepdims=True))
    same(tf.nn.softmax_cross_entropy_with_logits(labels, logits), -(labels * logs).sum(1))
    found = tf.nn.softmax_cross_entropy_with_logits(labels=labels.T, logits=logits.T, axis=0)
    same(found, -(labels * logs).sum(1))
    sparse = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=[1, 0], logits=logits)
    same(sparse, [-logs[0, 1], -logs[1, 0]])
    p = 1 / (1 + np.exp(-logits))
    cross = -(labels * np.log(p) + (1 - labels) * np.log(1 - p))
    same(tf.nn.sigmoid_cross_entropy_with_logits(labels=labels, logits=logits), cross)
    weighted = -(3 * labels * np.log(p) + (1 - labels) * np.log(1 - p))
    same(tf.nn.weighted_cross_entropy_with_logits(labels, logits, pos_weight=3.0), weighted)
    same(tf.nn.l2_loss([3.0, 4.0]), 12.5)


def convolved(x, w, stride, padding):
    """Return a convolution by its definition, of (batch, height, width, channels)."""
    height, width = w.shape[:2]
    if padding == "SAME":
        sizes = [-(-n // stride) for n in x.shape[1:3]]
        lacks = [max((m - 1) * stride + k - n, 0) for m, k, n in zip(sizes, w.shape, x.shape[1:])]
        x = np.pad(x, [(0, 0), *((n // 2, n - n // 2) for n in lacks), (0, 0)])
    rows = range(0, x.shape[1] - height + 1, stride)
    columns = range(0, x.shape[2] - width + 1, stride)
    parts = [
        [np.einsum("bhwc,hwcf->bf", x[:, i : i + height, j : j + width], w) for j in columns]
        for i in rows
    ]
    return np.array(parts).transpose(2, 0, 1, 3)


@pytest.mark.parametrize("padding", ["SAME", "VALID"])
@pytest.mark.parametrize("stride", [1, 2])
def test_convolutions(padding, stride) -> None:
    x, w = draw(2, 5, 6, 3), draw(3, 2, 3, 4)
    expected = convolved(x, w, stride, padding)
    same(tf.nn.conv2d(x, w, strides=stride, padding=padding), expected)
    same(tf.nn.conv2d(x, w, [1, stride, stride, 1], padding), expected)
    found = tf.nn.conv2d(x.transpose(0, 3, 1, 2), w, stride, padding, data_format="NCHW")
    same(found, expected.transpose(0, 3, 1, 2))
    same(tf.nn.convolution(x, w, strides=stride, padding=padding), expected)
    line = tf.nn.conv1d(x[:, :, 0], w[:, 0], stride=stride, padding=padding)
    same(line, convolved(x[:, :, :1], w[:, :1], stride, padding)[:, :, 0])
    each = tf.nn.depthwise_conv2d(x, w[..., :2], [1, stride, stride, 1], padding)
    parts = [
        convolved(x[..., c : c + 1], w[:, :, c : c + 1, :2], stride, padding) for c in range(3)
    ]
    same(each, np.concatenate(parts, -1))


def test_convolution_options() -> None:
    x, w = draw(1, 5, 5, 2), draw(3, 3, 2, 1)
    explicit = tf.nn.conv2d(x, w, 1, [[0, 0], [1, 0], [2, 1], [0, 0]])
    padded = np.pad(x, [(0, 0), (1, 0), (2, 1), (0, 0)])
    same(explicit, convolved(padded, w, 1, "VALID"))
    wide = np.zeros((5, 5, 2, 1))
    wide[::2, ::2] = w
    same(tf.nn.conv2d(x, w, 1, "VALID", dilations=2), convolved(x, wide, 1, "VALID"))
    with pytest.raises(ValueError, match="batch and channels"):
        tf.nn.conv2d(x, w, [2, 1, 1, 1], "VALID")
    g = draw(1, 2, 3, 3)
    filters = draw(2, 2, 4, 3)
    large = tf.nn.conv2d_transpose(g, filters, [1, 4, 6, 4], strides=2)
    forward = gradient_of(
        lambda x: tf.reduce_sum(tf.nn.conv2d(x, filters, 2, "SAME") * g), np.zeros((1, 4, 6, 4))
    )
    same(large, forward.numpy())
    with pytest.raises(ValueError, match="output_shape"):
        tf.nn.conv2d_transpose(g, filters, [1, 5, 6, 4], 2)


def test_pooling() -> None:
    x = draw(1, 4, 6, 2)
    blocks = x.reshape(1, 2, 2, 3, 2, 2)
    same(tf.nn.max_pool2d(x, ksize=2, strides=2, padding="VALID"), blocks.max((2, 4)))
    same(tf.nn.max_pool(x, [1, 2, 2, 1], [1, 2, 2, 1], "SAME"), blocks.max((2, 4)))
    same(tf.nn.avg_pool2d(x, (2, 2), (2, 2), "VALID"), blocks.mean((2, 4)))
    first = tf.nn.avg_pool(x.transpose(0, 3, 1, 2), 2, 2, "VALID", data_format="NCHW")
    same(first, blocks.mean((2, 4)).transpose(0, 3, 1, 2))
    same(tf.nn.max_pool1d(x[:, 0], 3, 3, "VALID"), x[:, 0].reshape(1, 2, 3, 2).max(2))
    same(tf.nn.avg_pool1d(x[:, 0], 3, 3, "VALID"), x[:, 0].reshape(1, 2, 3, 2).mean(2))


# -- signals, random numbers -----------------------------------------------------------------------


def test_fourier_transforms() -> None:
    x = draw(2, 4, 6) + 1j * draw(2, 4, 6)
    axes = (-3, -2, -1)
    same(tf.signal.fft(x), np.fft.fft(x))
    same(tf.signal.ifft(x), np.fft.ifft(x))
    same(tf.signal.fft2d(x), np.fft.fft2(x))
    same(tf.signal.ifft2d(x), np.fft.ifft2(x))
    same(tf.signal.fft3d(x), np.fft.fftn(x, axes=axes))
    same(tf.signal.ifft3d(x), np.fft.ifftn(x, axes=axes))
    same(tf.signal.rfft(x.real), np.fft.rfft(x.real))
    same(tf.signal.rfft(x.real, fft_length=[4]), np.fft.rfft(x.real, 4))
    same(tf.signal.irfft(np.fft.rfft(x.real)), x.real)
    same(tf.signal.rfft2d(x.real), np.fft.rfft2(x.real))
    same(tf.signal.irfft2d(np.fft.rfft2(x.real), [4, 6]), x.real)
    same(tf.signal.fftshift(x.real, axes=[1]), np.fft.fftshift(x.real, 1))
    same(tf.signal.ifftshift(tf.signal.fftshift(x.real)), x.real)


def test_random_numbers() -> None:
    tf.random.set_seed(3)
    first = tf.random.normal([2, 3])
    tf.random.set_seed(3)
    same(tf.random.normal([2, 3]), first.numpy(), "float32")
    x = tf.random.normal([5000], mean=2.0, stddev=3.0, dtype=tf.float64, seed=1).numpy()
    assert (abs(x.mean() - 2.0) < 0.2, abs(x.std() - 3.0) < 0.2, x.dtype) == (True, True, "float64")
    cut = tf.random.truncated_normal([1000], seed=2).numpy()
    assert np.abs(cut).max() <= 2.0
    u = tf.random.uniform([1000], 2, 5).numpy()
    assert (u >= 2).all()
    assert (u < 5).all()
    n = tf.random.uniform([100], maxval=4, dtype=tf.int32)
    assert n.dtype == tf.int32
    assert set(n.numpy().tolist()) == {0, 1, 2, 3}
    with pytest.raises(ValueError, match="maxval"):
        tf.random.uniform([2], dtype=tf.int32)
    drawn = tf.random.categorical(np.log([[0.0 + 1e-30, 1.0], [1.0, 1e-30]]), 5)
    same(drawn, [[1] * 5, [0] * 5], "int64")
    shuffled = tf.random.shuffle(np.arange(20))
    assert sorted(shuffled.numpy().tolist()) == list(range(20))
    assert tf.random.gamma([3], alpha=[1.0, 2.0]).shape == (3, 2)
    a = tf.random.stateless_normal([3], seed=[1, 2])
    same(tf.random.stateless_normal([3], seed=[1, 2]), a.numpy())
    assert tf.random.stateless_uniform([3], seed=(1, 3)).shape == (3,)
    assert issubclass(tf.random.Generator, gt.random.Generator)

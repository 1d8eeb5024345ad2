"""Programs with tf.shape as people write them: traced once, right at every batch size."""

import numpy as np
import pytest

import gradtape as gt
import gradtape.compat.tensorflow as tf
from gradtape.errors import TraceError

BATCHES = (0, 1, 2, 3, 7)
WEIGHTS = np.linspace(-1.0, 1.0, 12, dtype="float32").reshape(3, 4)


# -- programs --------------------------------------------------------------------------------------


def mean_by_hand(x):
    return tf.reduce_sum(x, axis=0) / tf.cast(tf.shape(x)[0], x.dtype)


def initial_state_of_an_rnn(x):
    state = tf.zeros([tf.shape(x)[0], 4])
    for step in range(3):
        state = tf.tanh(x[:, step : step + 1] * WEIGHTS[step] + state)
    return state


def sampling(x):
    mean, log_var = x, 0.1 * x
    noise = tf.random.normal(shape=tf.shape(mean), seed=1)
    return mean + tf.exp(0.5 * log_var) * noise


def sampling_by_batch_and_dim(x):
    batch, dim = tf.shape(x)[0], tf.shape(x)[1]
    return x + tf.random.normal((batch, dim), seed=2) * x


def causal_attention(x):
    scores = tf.matmul(x, x, transpose_b=True)
    n = tf.shape(scores)[-1]
    row = tf.range(n)[:, tf.newaxis]
    column = tf.range(n)
    scores = tf.where(row >= column, scores, tf.fill([n, n], -1e9))
    return tf.matmul(tf.nn.softmax(scores / tf.math.sqrt(tf.cast(n, tf.float32))), x)


def look_ahead_mask(x):
    n = tf.shape(x)[0]
    mask = 1.0 - tf.linalg.band_part(tf.ones((n, n)), -1, 0)
    return tf.matmul(mask, x)


def lengths_as_a_mask(x):
    lengths = tf.cast(tf.reduce_sum(tf.cast(x[:, :1] > 0, tf.int32), axis=1), tf.int32) + 1
    mask = tf.sequence_mask(lengths, tf.shape(x)[1], dtype=tf.float32)
    return x * mask


def longest_as_a_mask(x):
    mask = tf.sequence_mask(tf.range(tf.shape(x)[0]) % 3 + 1, dtype=tf.float32)
    return tf.matmul(mask, mask, transpose_a=True) * tf.reduce_sum(x)


def split_heads(x):
    batch = tf.shape(x)[0]
    heads = tf.reshape(x, (batch, -1, 2, 2))
    turned = tf.transpose(heads, perm=[0, 2, 1, 3])
    return tf.reshape(turned, (batch, -1, 4)) * tf.cast(batch, tf.float32)


def flattened_by_product(x):
    shape = tf.shape(x)
    return tf.reshape(x, [shape[0], tf.reduce_prod(shape[1:])])


def last_axis_replaced(x):
    new = tf.concat([tf.shape(x)[:-1], [2, 2]], axis=0)
    return tf.reshape(x, new)


def patches(x):
    n = tf.shape(x)[0]
    x = tf.reshape(x, tf.stack([n, 2, 2, 2, 1]))
    x = tf.transpose(x, [0, 1, 3, 2, 4])
    return tf.reshape(x, [-1, tf.shape(x)[1] * tf.shape(x)[2], 2])


def padded_to_a_multiple(x):
    rest = -tf.shape(x)[0] % 4
    return tf.pad(x, [[0, rest], [0, 0]])


def padded_by_a_tensor(x):
    n = tf.shape(x)[0]
    paddings = tf.stack([[0, tf.maximum(8 - n, 0)], [0, 0]])
    return tf.pad(x, paddings) * 2.0


def positions(x):
    n, depth = tf.unstack(tf.shape(x))
    angles = tf.cast(tf.range(n), tf.float32)[:, None] / 10.0 ** (
        tf.range(depth, dtype=tf.float32) / tf.cast(depth, tf.float32)
    )
    return x * tf.sin(angles)


def shape_list(x):
    static = tf.TensorShape(x.shape).as_list()
    dynamic = tf.shape(x)
    shape = [dynamic[i] if n is None else n for i, n in enumerate(static)]
    return tf.reshape(x, [shape[0], 1, shape[1]])


def static_or_dynamic(x):
    batch = x.shape[0] if x.shape[0] is not None else tf.shape(x)[0]
    return tf.ones([batch, 2]) * tf.reduce_sum(x, axis=1, keepdims=True)


def a_class_token(x):
    token = tf.broadcast_to(tf.constant(WEIGHTS[:1]), [tf.shape(x)[0], 4])
    return tf.concat([token, x], axis=1)


def a_tiled_token(x):
    token = tf.tile(tf.constant(WEIGHTS[:1]), [tf.shape(x)[0], 1])
    return token * x


def first_half(x):
    half = tf.shape(x)[0] // 2
    return x[:half] - tf.reverse(x, [0])[:half]


def halves(x):
    half = tf.shape(x)[0] // 2
    a, b = tf.split(x, [half, -1], axis=0)
    return tf.concat([b, a * 2.0], axis=0)


def sliced(x):
    n = tf.shape(x)[0]
    return tf.slice(x, [n // 2, 1], [n - n // 2, -1])


def a_cumulative_loop(x):
    def body(i, total):
        return i + 1, total + x[i] * tf.cast(i + 1, tf.float32)

    n = tf.shape(x)[0]
    return tf.while_loop(lambda i, total: i < n, body, (0, tf.zeros([4])))[1]


def one_hot_of_rows(x):
    n = tf.shape(x)[0]
    return tf.matmul(tf.one_hot(tf.range(n)[::-1], n), x)


def identity_by_rows(x):
    return tf.matmul(2.0 * tf.eye(tf.shape(x)[0]), x)


def pairwise(x):
    n = tf.shape(x)[0]
    left = tf.repeat(x, n, axis=0)
    right = tf.tile(x, [n, 1])
    return tf.reshape(tf.reduce_sum(left * right, axis=1), [n, n])


def row_weights(x):
    n = tf.shape(x)[0]
    return x * tf.reshape(tf.linspace(0.0, 1.0, n), [n, 1])


def common_shape(x):
    row = tf.constant(WEIGHTS[:1])
    shape = tf.broadcast_dynamic_shape(tf.shape(x), tf.shape(row))
    return tf.broadcast_to(row, shape) * x


def rows_in_order(x):
    order = tf.random.shuffle(tf.range(tf.shape(x)[0]), seed=3)
    return tf.gather(x, tf.sort(order))


def summed_by_row_number(x):
    n = tf.shape(x)[0]
    return tf.math.unsorted_segment_sum(x, tf.range(n) // 2, (n + 1) // 2)


def scattered(x):
    n = tf.shape(x)[0]
    where = tf.expand_dims(tf.range(n) * 2, 1)
    return tf.scatter_nd(where, x, [2 * n, tf.shape(x)[1]])


def mean_of_all(x):
    return tf.reduce_sum(x) / tf.cast(tf.size(x), tf.float32) * tf.cast(tf.rank(x), tf.float32)


def shape_of_the_transposed(x):
    return tf.reshape(tf.transpose(x), tf.shape(x)[::-1]) * tf.cast(
        tf.reduce_max(tf.shape(x)), tf.float32
    )


@tf.function
def with_a_column(n, x):
    return tf.concat([x, tf.zeros([n, 1])], axis=1)


def a_size_given_to_a_function(x):
    return with_a_column(tf.shape(x)[0], x * 2.0)


@tf.custom_gradient
def scaled_by_batch(x):
    n = tf.cast(tf.shape(x)[0], tf.float32)

    def grad(upstream):
        return upstream * n + tf.zeros(tf.shape(x))

    return x * n, grad


@tf.recompute_grad
def recomputed(x):
    return tf.tanh(x) * tf.ones([tf.shape(x)[0], 1]) + x**2


def gradient_inside(x):
    with tf.GradientTape() as tape:
        tape.watch(x)
        weights = tf.range(tf.shape(x)[0], dtype=tf.float32)
        loss = tf.reduce_sum(x**2 * tf.reshape(weights, [-1, 1]))
    return tape.gradient(loss, x) / tf.cast(tf.shape(x)[0], tf.float32)


def example_by_example(x):
    def padded(row):
        return tf.pad(row, [[0, tf.shape(row)[0] % 3]]) * tf.cast(tf.shape(row)[0], tf.float32)

    return tf.vectorized_map(padded, x)


def one_of_two_branches(x):
    return tf.cond(
        tf.shape(x)[0] > 2,
        lambda: tf.zeros([tf.shape(x)[0], 1]) + x,
        lambda: x * tf.fill(tf.shape(x), 3.0),
    )


def rows_made_in_a_loop(x):
    def body(i, total):
        row = tf.fill([tf.shape(x)[0], 1], tf.cast(i, tf.float32))
        return i + 1, total + tf.reduce_sum(row * x, axis=1)

    start = (0, tf.zeros([tf.shape(x)[0]]))
    return tf.while_loop(lambda i, total: i < tf.shape(x)[1], body, start)[1]


def padded_to_eight(x):
    missing = tf.maximum(8 - tf.shape(x)[0], 0)
    whole = tf.concat([x, tf.zeros([missing, tf.shape(x)[1]], x.dtype)], axis=0)
    return tf.ensure_shape(whole, [8, None])


def windows(x):
    n = tf.shape(x)[0]
    width = tf.minimum(n, 2)
    return tf.gather(x, tf.range(n - width + 1)[:, None] + tf.range(width)[None])


def first_column_set(x):
    n = tf.shape(x)[0]
    places = tf.stack([tf.range(n), tf.zeros([n], tf.int32)], axis=1)
    return tf.tensor_scatter_nd_update(x, places, 2.0 * tf.ones([n]))


def as_many_as_are_positive(x):
    count = tf.reduce_sum(tf.cast(x > 0.0, tf.int32))
    return tf.ones([count, 2]) * tf.reduce_sum(x)


PROGRAMS = [
    mean_by_hand,
    initial_state_of_an_rnn,
    sampling,
    sampling_by_batch_and_dim,
    causal_attention,
    look_ahead_mask,
    lengths_as_a_mask,
    longest_as_a_mask,
    split_heads,
    flattened_by_product,
    last_axis_replaced,
    patches,
    padded_to_a_multiple,
    padded_by_a_tensor,
    positions,
    shape_list,
    static_or_dynamic,
    a_class_token,
    a_tiled_token,
    first_half,
    halves,
    sliced,
    a_cumulative_loop,
    one_hot_of_rows,
    identity_by_rows,
    pairwise,
    row_weights,
    common_shape,
    rows_in_order,
    summed_by_row_number,
    scattered,
    mean_of_all,
    shape_of_the_transposed,
    a_size_given_to_a_function,
    scaled_by_batch,
    recomputed,
    gradient_inside,
    example_by_example,
    one_of_two_branches,
    rows_made_in_a_loop,
    padded_to_eight,
    windows,
    first_column_set,
    as_many_as_are_positive,
]
#: What is given three axes, or a row of another length.
ROWS = {
    patches: (8,),
    split_heads: (5, 4),
    flattened_by_product: (2, 3),
    last_axis_replaced: (3, 4),
}


def batch_of(program, n):
    shape = (n, *ROWS.get(program, (4,)))
    return np.sin(np.arange(np.prod(shape), dtype="float32") + 1.0).reshape(shape)


def results(f, x):
    """Return a function's value, gradient and gradient of the gradient's square."""
    x = tf.constant(x)
    with tf.GradientTape() as outer:
        outer.watch(x)
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = f(x)
            loss = tf.reduce_sum(y * y)
        first = tape.gradient(loss, x, unconnected_gradients="zero")
        again = tf.reduce_sum(first * first)
    return y, first, outer.gradient(again, x, unconnected_gradients="zero")


def eager_results(f, x):
    """Return the results of eager code; None for a batch of none that it refuses."""
    try:
        return results(f, x)
    except (ValueError, IndexError):
        assert not len(x)
        return None


def check_alike(found, expected):
    for got, want in zip(found, expected, strict=True):
        assert got.shape == want.shape
        np.testing.assert_allclose(got, want, rtol=2e-5, atol=1e-5)


@pytest.mark.filterwarnings("ignore:invalid value")  # the mean of nothing
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.__name__)
@pytest.mark.parametrize("open_rows", [False, True], ids=["open batch", "all open"])
def test_a_program_is_traced_once_and_right_at_every_batch_size(program, open_rows):
    traces = []

    def counted(x):
        traces.append(x)
        return program(x)

    rows = ROWS.get(program, (4,))
    open_shape = [None, *((None,) * len(rows) if open_rows else rows)]
    traced = tf.function(counted, input_signature=[tf.TensorSpec(open_shape)])
    for n in BATCHES:
        x = batch_of(program, n)
        expected = eager_results(program, x)
        if expected is not None:
            check_alike(results(traced, x), expected)
    assert len(traces) == 1


@pytest.mark.filterwarnings("ignore:invalid value")  # the mean of nothing
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.__name__)
def test_a_program_is_saved_and_right_at_every_batch_size(program, tmp_path):
    rows = ROWS.get(program, (4,))
    module = tf.Module()
    module.run = tf.function(program, input_signature=[tf.TensorSpec([None, *rows])])
    tf.saved_model.save(module, tmp_path / "model.h5")
    loaded = tf.saved_model.load(tmp_path / "model.h5")
    for n in BATCHES:
        x = batch_of(program, n)
        expected = eager_results(program, x)
        if expected is not None:
            check_alike(results(loaded.run, x), expected)


# -- one function at a time ------------------------------------------------------------------------


def traced_shape(fn, *shape):
    """Return what a trace says of the shape of ``fn(x)``, for an ``x`` of some open sizes."""
    traced = tf.function(fn, input_signature=[tf.TensorSpec(shape)])
    (output,) = traced.get_concrete_function().graph.outputs
    return str(output.shape)


@pytest.mark.parametrize(
    ("fn", "said"),
    [
        (lambda x: tf.zeros(tf.shape(x)), "(n, m)"),
        (lambda x: tf.zeros([tf.shape(x)[0], 3]), "(n, 3)"),
        (lambda x: tf.zeros(tf.stack([tf.shape(x)[1] // 2, 3])), "(m // 2, 3)"),
        (lambda x: tf.fill(tf.concat([tf.shape(x)[:-1], [3]], 0), 1.0), "(n, 3)"),
        (lambda x: tf.reshape(x, [-1]), "(n*m,)"),
        (lambda x: tf.reshape(x, [tf.size(x), 1]), "(n*m, 1)"),
        (lambda x: tf.reshape(x, [tf.reduce_prod(tf.shape(x))]), "(n*m,)"),
        (lambda x: tf.ones(tf.broadcast_dynamic_shape(tf.shape(x), [4, 1, 1])), "(4, n, m)"),
        (lambda x: tf.zeros(tf.cast(tf.shape(x), tf.int64)), "(n, m)"),
        (lambda x: tf.zeros(tf.maximum(tf.shape(x), 2)), "(max(n, 2), max(m, 2))"),
        (lambda x: tf.zeros(tf.gather(tf.shape(x), [1, 0])), "(m, n)"),
        (lambda x: tf.zeros(x.shape), "(n, m)"),
        (lambda x: tf.zeros(tf.TensorShape([2]) + x.shape[1:]), "(2, m)"),
        (lambda x: tf.zeros(tf.TensorShape(x.shape)[1:]), "(m,)"),
        (lambda x: tf.ensure_shape(x, [None, 3]), "(n, 3)"),
        (lambda x: tf.slice(x, [1, 0], [-1, 2]), None),
    ],
)
def test_shapes_made_with_tf_shape_keep_their_expressions(fn, said):
    assert said in (None, traced_shape(fn, None, None))


#: One function each, of sizes that only a run knows.
FUNCTIONS = {
    "band_part": lambda x: tf.linalg.band_part(x, tf.shape(x)[0] // 2, tf.shape(x)[1] // 3),
    "batch of eyes": lambda x: tf.eye(2, batch_shape=tf.shape(x)),
    "bias_add": lambda x: tf.nn.bias_add(x, x[0]),
    "boolean_mask": lambda x: tf.boolean_mask(x, tf.range(tf.shape(x)[0]) != 1),
    "categorical": lambda x: tf.random.categorical(x, tf.shape(x)[1], seed=1),
    "concat of sizes": lambda x: tf.concat([[x.shape[0]], [3]], 0),
    "cond": lambda x: tf.cond(tf.shape(x)[0] > 2, lambda: x * 2.0, lambda: x),
    "constant": lambda x: tf.constant(1.0, shape=[tf.shape(x)[0], 2]),
    "constant of sizes": lambda x: tf.constant([x.shape[0], 3]),
    "conv2d_transpose": lambda x: tf.nn.conv2d_transpose(
        x[None, :, :, None], tf.ones([1, 2, 2, 1]), [1, *(2 * n for n in x.shape), 2], 2
    ),
    "convert_to_tensor": lambda x: tf.convert_to_tensor(x.shape),
    "diag": lambda x: tf.linalg.diag(x, k=1),
    "dropout": lambda x: tf.nn.dropout(x, 0.5, noise_shape=[tf.shape(x)[0], 1], seed=1),
    "eye": lambda x: tf.eye(tf.shape(x)[0], tf.shape(x)[1]),
    "gamma": lambda x: tf.random.gamma([tf.shape(x)[0]], tf.abs(x[0]) + 1.0, seed=1),
    "gather": lambda x: tf.gather(x, tf.shape(x)[0] - 1),
    "gather by example": lambda x: tf.gather(x, tf.argmax(x, 1)[:, None], batch_dims=1),
    "in_top_k": lambda x: tf.math.in_top_k(tf.argmax(x, 1), x, 2),
    "integers": lambda x: tf.random.uniform(tf.shape(x), 0, tf.shape(x)[0], tf.int32, seed=1),
    "irfft": lambda x: tf.signal.irfft(tf.signal.rfft(x), [tf.shape(x)[1]]),
    "linspace of rows": lambda x: tf.linspace(x[0], x[0] + 1.0, tf.shape(x)[0], axis=1),
    "map_fn": lambda x: tf.map_fn(lambda row: row / tf.cast(tf.shape(x)[0], tf.float32), x),
    "maximum": lambda x: tf.maximum(tf.shape(x)[0], x.shape[1]),
    "most steps": lambda x: tf.while_loop(
        lambda i, y: i < 9, lambda i, y: (i + 1, y * 2.0), (0, x), maximum_iterations=tf.shape(x)[0]
    )[1],
    "one_hot": lambda x: tf.one_hot(tf.argmax(x, 1), tf.shape(x)[1], 2.0, -1.0, axis=0),
    "pad": lambda x: tf.pad(x, [[tf.shape(x)[0], 0], [0, 0]], constant_values=1.0),
    "pad by reflection": lambda x: tf.pad(x, [[1, 1], [0, 2]], "SYMMETRIC"),
    "range of floats": lambda x: tf.range(0.5, tf.cast(tf.shape(x)[0], tf.float32), 0.75),
    "range of odd numbers": lambda x: tf.range(1, tf.shape(x)[0] + 1, 2),
    "repeat": lambda x: tf.repeat(x, tf.shape(x)[1], axis=0),
    "roll": lambda x: tf.roll(x, [1, tf.shape(x)[0]], [0, 1]),
    "saturate_cast": lambda x: tf.saturate_cast(tf.shape(x), tf.uint8),
    "scan": lambda x: tf.scan(lambda a, row: a + row, x, tf.zeros([tf.shape(x)[1]])),
    "scatter_nd": lambda x: tf.scatter_nd([[0]], x[:1], tf.shape(x)),
    "segment_mean": lambda x: tf.math.segment_mean(x, tf.range(tf.shape(x)[0]) // 2),
    "segment_sum": lambda x: tf.math.segment_sum(x, tf.range(tf.shape(x)[0])),
    "shuffle": lambda x: tf.random.shuffle(x, seed=1),
    "size": lambda x: x / tf.cast(tf.size(x), tf.float32),
    "slice": lambda x: x[tf.shape(x)[0] // 2 :, : tf.shape(x)[1] - 1],
    "split": lambda x: tf.split(x, [1, -1, tf.shape(x)[1] // 2], 1)[1],
    "tile": lambda x: tf.tile(x, tf.shape(x)),
    "top_k": lambda x: tf.math.top_k(x, tf.shape(x)[1] // 2).indices,
    "truncated_normal": lambda x: tf.random.truncated_normal(tf.shape(x), seed=1),
    "accuracy": lambda x: tf.keras.metrics.categorical_accuracy(x, 2.0 * x),
    "crossentropy": lambda x: tf.keras.losses.categorical_crossentropy(
        tf.nn.softmax(x), tf.nn.softmax(2.0 * x)
    ),
    "squared error": lambda x: tf.keras.losses.MSE(x, tf.zeros([tf.shape(x)[0], 1])),
}


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("columns", [4, None])
def test_a_function_takes_open_sizes(name, columns):
    fn = FUNCTIONS[name]
    traced = tf.function(fn, input_signature=[tf.TensorSpec([None, columns])])
    for n in BATCHES[1:]:
        x = tf.constant(batch_of(None, n))
        found, expected = traced(x), fn(x)
        assert (found.dtype, found.shape) == (expected.dtype, expected.shape)
        np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)


def test_the_shape_of_an_open_tensor_is_one_tensor_of_int32():
    traced = tf.function(
        lambda x: (tf.shape(x), tf.shape(x, out_type=tf.int64), tf.size(x), tf.rank(x)),
        input_signature=[tf.TensorSpec([None, 3])],
    )
    shape, wide, size, rank = traced(tf.ones([2, 3]))
    assert (shape.dtype, wide.dtype, size.dtype, rank.dtype) == (
        *(tf.int32, tf.int64, tf.int32, tf.int32),
    )
    assert (shape.tolist(), wide.tolist(), size.item(), rank.item()) == ([2, 3], [2, 3], 6, 2)


@pytest.mark.parametrize(
    ("x", "y", "joined"),
    [([2, 1], [3], [2, 3]), ([], [4], [4]), ([0, 1], [1, 5], [0, 5]), ([1], [1], [1])],
)
def test_shapes_broadcast_eagerly_and_in_a_trace(x, y, joined):
    assert tf.broadcast_dynamic_shape(tf.constant(x, tf.int32), tf.constant(y)).tolist() == joined
    assert tf.broadcast_static_shape(tf.TensorShape(x), tf.TensorShape(y)).as_list() == joined
    spec = [tf.TensorSpec([None] * len(x)), tf.TensorSpec([None] * len(y))]
    traced = tf.function(
        lambda a, b: tf.broadcast_dynamic_shape(tf.shape(a), tf.shape(b)), input_signature=spec
    )
    assert traced(tf.zeros(x), tf.zeros(y)).tolist() == joined


def test_shapes_that_do_not_broadcast_are_refused():
    with pytest.raises(ValueError, match="do not broadcast"):
        tf.broadcast_dynamic_shape([2, 3], [4, 3])


def test_a_tensor_shape_of_a_trace_is_of_known_and_open_sizes():
    said = {}

    @tf.function(input_signature=[tf.TensorSpec([None, 3, 4])])
    def look(x):
        shape = tf.TensorShape(x.shape)
        said["list"] = shape.as_list()
        said["parts"] = shape[1:].as_list(), shape[1:].num_elements(), shape.num_elements()
        said["defined"] = shape.is_fully_defined(), shape[1:].is_fully_defined()
        said["open"] = shape[0] is None, shape[0] == None, None in x.shape, shape.rank  # noqa: E711
        said["fits"] = [shape.is_compatible_with(s) for s in ([7, 3, 4], [7, 3, 5], [3, 4], None)]
        said["equal"] = shape == x.shape, shape[1:] == [3, 4], shape[1:] == (3, 4)
        shape.assert_is_compatible_with([None, 3, None])
        shape.assert_has_rank(3)
        return x

    look(tf.ones([2, 3, 4]))
    assert said == {
        "list": [None, 3, 4],
        "parts": ([3, 4], 12, None),
        "defined": (False, True),
        "open": (False, True, True, 3),
        "fits": [True, False, False, True],
        "equal": (True, True, True),
    }
    with pytest.raises(ValueError, match="do not agree"):
        tf.TensorShape([2, None]).assert_is_compatible_with([3, 3])
    with pytest.raises(ValueError, match="expected 3"):
        tf.TensorShape([2, None]).assert_has_rank(3)


def test_static_values_are_known_where_the_sizes_are():
    said = []

    @tf.function(input_signature=[tf.TensorSpec([None, 3])])
    def look(x):
        said.extend(tf.get_static_value(n) for n in (tf.shape(x)[1], tf.shape(x)[0], tf.shape(x)))
        return x

    look(tf.ones([2, 3]))
    assert said == [3, None, None]
    assert tf.get_static_value(tf.shape(tf.ones([2, 3]))).tolist() == [2, 3]


@pytest.mark.parametrize(
    ("decide", "words"),
    [
        (lambda x: 1 if x.shape[0] == 1 else 2, r"comparison n == 1 is not known.*gradtape\.where"),
        (lambda x: x.shape[0] or tf.shape(x)[0], r"the size n is not known"),
        (
            lambda x: 1 if tf.shape(x)[0] > 1 else 2,
            r"a tensor's value is not known .*gradtape\.cond",
        ),
        (lambda x: sum(i for i in range(tf.shape(x)[0])), r"is not known"),
    ],
)
def test_what_python_decides_by_an_open_size_is_refused_in_words(decide, words):
    traced = tf.function(
        lambda x: x * decide(x), input_signature=[tf.TensorSpec([None])], autograph=False
    )
    with pytest.raises(TraceError, match=words):
        traced(tf.ones([2]))


@pytest.mark.parametrize(
    ("fn", "fits", "not_fitting"),
    [
        (lambda x: tf.ensure_shape(x, [2, None]), [(2, 3), (2, 1)], [(3, 2), (1, 6)]),
        (lambda x: tf.ensure_shape(x, [2, 3]), [(2, 3)], [(3, 2), (6, 1), (1, 6)]),
        (lambda x: tf.split(x, [1, 2], axis=1)[1], [(2, 3)], [(2, 2), (2, 4), (3, 1)]),
        (lambda x: tf.add_n([x, tf.ones([2, 3])]), [(2, 3)], [(1, 3), (2, 1)]),
        (lambda x: tf.math.top_k(x, 3).values, [(2, 3), (1, 4)], [(2, 2), (3, 1)]),
    ],
)
def test_sizes_that_only_a_run_knows_are_checked_by_each_run(fn, fits, not_fitting):
    traced = tf.function(fn, input_signature=[tf.TensorSpec([None, None])])
    for shape in fits:
        np.testing.assert_array_equal(traced(tf.ones(shape)), fn(tf.ones(shape)))
    for shape in not_fitting:
        for run in (fn, traced):
            with pytest.raises(ValueError, match=r"reshape|ensure_shape|split|add_n|top_k"):
                run(tf.ones(shape))


@pytest.mark.parametrize("begin", [0, 1])
@pytest.mark.parametrize("size", [-1, 0, 1, 2])
def test_a_slice_whose_size_only_a_run_knows_may_go_to_the_end(begin, size):
    traced = tf.function(
        lambda x, b, n: tf.slice(x, [b], [n]),
        input_signature=[tf.TensorSpec([None]), *[tf.TensorSpec([], tf.int32)] * 2],
    )
    x = tf.constant([1.0, 2.0, 3.0])
    found = traced(x, tf.constant(begin), tf.constant(size))
    assert found.tolist() == tf.slice(x, [begin], [size]).tolist()


def test_a_seed_of_its_own_repeats_itself_in_a_trace_too():
    draw = tf.function(
        lambda x: (
            tf.random.normal(tf.shape(x), seed=1),
            tf.random.stateless_uniform(tf.shape(x), seed=[1, 2]),
        )
    )
    expected = (
        tf.random.normal([3], seed=1).tolist(),
        tf.random.stateless_uniform([3], seed=[1, 2]).tolist(),
    )
    for _ in range(2):
        assert tuple(y.tolist() for y in draw(tf.ones([3]))) == expected


# -- layers ----------------------------------------------------------------------------------------


class Sampling(tf.keras.layers.Layer):
    def call(self, inputs):
        mean, log_var = inputs
        batch, dim = tf.shape(mean)[0], tf.shape(mean)[1]
        return mean + tf.exp(0.5 * log_var) * tf.random.normal(shape=(batch, dim), seed=1)


class Encoder(tf.keras.Model):
    def __init__(self):
        super().__init__()
        self.mean = tf.keras.layers.Dense(2)
        self.log_var = tf.keras.layers.Dense(2)
        self.sampling = Sampling()

    def call(self, x):
        x = tf.reshape(x, [tf.shape(x)[0], 4])
        return self.sampling([self.mean(x), self.log_var(x)])


class Recurrent(tf.keras.layers.Layer):
    def __init__(self, units):
        super().__init__()
        self.units = units
        self.cell = tf.keras.layers.Dense(units, activation="tanh")

    def build(self, input_shape):
        assert input_shape[0] in (None, 3)
        self.scale = self.add_weight(shape=(input_shape[-1],), initializer="ones")

    def call(self, x):
        state = tf.zeros([tf.shape(x)[0], self.units])
        for step in tf.unstack(x * self.scale, axis=1):
            state = self.cell(tf.concat([step, state], axis=-1))
        return state


class ToPatches(tf.keras.layers.Layer):
    def __init__(self):
        super().__init__()
        self.flatten = tf.keras.layers.Flatten()

    def call(self, x):
        shape = tf.shape(x)
        x = tf.reshape(x, [shape[0], shape[1] // 2, 2, shape[2]])
        return self.flatten(x) / tf.cast(shape[0], tf.float32)


@pytest.mark.parametrize(
    ("make", "example"),
    [(Encoder, (2, 2)), (lambda: Recurrent(5), (3, 2)), (ToPatches, (4, 3))],
    ids=["encoder", "recurrent", "patches"],
)
def test_layers_that_ask_for_the_batch_are_saved_loaded_and_trained(make, example, tmp_path):
    layer = make()
    layer(tf.ones((3, *example)))
    tf.saved_model.save(layer, tmp_path / "layer.h5")
    loaded = tf.saved_model.load(tmp_path / "layer.h5")
    for n in BATCHES:
        x = tf.constant(np.sin(np.arange(n * np.prod(example), dtype="float32")))
        x = tf.reshape(x, (n, *example))
        found = []
        for run in (layer, loaded):
            with tf.GradientTape() as tape:
                tape.watch(x)
                y = run(x)
                loss = tf.reduce_sum(y * y)
            variables = sorted(run.trainable_variables, key=lambda v: v.name)
            found.append([y, *tape.gradient(loss, [x, *variables])])
        check_alike(*found)


def test_a_build_that_makes_a_weight_of_an_open_size_is_refused():
    class OfBatch(tf.keras.layers.Layer):
        def build(self, input_shape):
            self.w = self.add_weight(shape=(input_shape[0], 2))

        def call(self, x):
            return x

    traced = tf.function(OfBatch().__call__, input_signature=[tf.TensorSpec([None, 3])])
    with pytest.raises(TypeError, match="add_weight: a shape is"):
        traced(tf.ones([2, 3]))


def test_a_keras_model_trains_with_a_smaller_last_batch():
    model = tf.keras.Sequential([tf.keras.layers.Dense(4), ToTwo(), tf.keras.layers.Dense(1)])
    model.compile(optimizer="sgd", loss="mse")
    x = np.sin(np.arange(70, dtype="float32")).reshape(7, 10)
    history = model.fit(x, x[:, :1], batch_size=3, epochs=2, verbose=0, shuffle=False)
    assert all(np.isfinite(history.history["loss"]))
    assert model.predict(x, batch_size=2, verbose=0).shape == (7, 1)


class ToTwo(tf.keras.layers.Layer):
    def call(self, x):
        return tf.reshape(x, [tf.shape(x)[0], 2, -1])[:, 0] + tf.zeros([tf.shape(x)[0], 2])


def test_tf_shape_of_an_example_in_a_vectorized_map():
    def double(x):
        return tf.reshape(x, tf.shape(x)[::-1]) + tf.zeros([tf.shape(x)[1], 1])

    traced = tf.function(
        lambda x: tf.vectorized_map(double, x), input_signature=[tf.TensorSpec([None, None, 2])]
    )
    for n in BATCHES[1:]:
        x = batch_of(None, n * 6).reshape(-1)[: n * 6].reshape(n, 3, 2)
        expected = np.stack([double(tf.constant(row)).numpy() for row in x])
        np.testing.assert_array_equal(traced(x), expected)


def test_numbers_of_sizes_are_gradtapes_own_sizes():
    @gt.function(input_signature=[gt.TensorSpec([None])])
    def both(x):
        return tf.zeros([x.shape[0], 2]) + gt.zeros((tf.shape(x)[0], 2))

    assert both(gt.ones(3)).shape == (3, 2)


def test_what_holds_shapes_is_saved(tmp_path):
    module = gt.Module()
    module.shapes = [tf.TensorShape([4, 5])]
    module.f = gt.function(lambda x: x + 1, input_signature=[gt.TensorSpec((2,))])
    module.found = {"shape": gt.ones((4, 5)).shape}
    gt.save(module, tmp_path / "a.h5")
    assert gt.load(tmp_path / "a.h5").f(gt.ones(2)).tolist() == [2, 2]

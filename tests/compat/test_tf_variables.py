"""Updates of parts of variables, checkpoints' contents, and the places of iterators."""

from __future__ import annotations

import numpy as np
import pytest

import gradtape.compat.tensorflow as tf

keras = tf.keras
START = [[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]
UPDATES = {
    "update": lambda old, new: new,
    "add": lambda old, new: old + new,
    "sub": lambda old, new: old - new,
    "mul": lambda old, new: old * new,
    "div": lambda old, new: old / new,
    "max": np.maximum,
    "min": np.minimum,
}


@pytest.mark.parametrize("how", UPDATES)
def test_rows_of_a_variable_are_updated(how) -> None:
    wanted = np.array(START)
    new = np.array([[4.0, 5.0], [0.5, 9.0]])
    wanted[[2, 0]] = UPDATES[how](wanted[[2, 0]], new)
    v, w = tf.Variable(START), tf.Variable(START)
    back = getattr(v, f"scatter_{how}")(tf.IndexedSlices(tf.constant(new, tf.float32), [2, 0]))
    np.testing.assert_allclose(v, wanted)
    np.testing.assert_allclose(back, wanted)
    getattr(tf.compat.v1, f"scatter_{how}")(w, [2, 0], tf.constant(new, tf.float32))
    np.testing.assert_allclose(w, wanted)


@pytest.mark.parametrize("how", ["update", "add", "sub", "max", "min"])
def test_elements_of_a_variable_are_updated_as_those_of_a_tensor(how) -> None:
    indices, updates = [[0, 1], [2, 0]], [3.0, 2.0]
    v = tf.Variable(START)
    wanted = getattr(tf, f"tensor_scatter_nd_{how}")(tf.constant(START), indices, updates)

    @tf.function
    def step() -> None:
        getattr(v, f"scatter_nd_{how}")(indices, updates)

    step()
    np.testing.assert_array_equal(v, wanted)


def test_batches_of_slices_are_updated() -> None:
    v = tf.Variable(START)
    v.batch_scatter_update(tf.IndexedSlices([[7.0], [8.0], [9.0]], [[0], [1], [0]]))
    assert v.tolist() == [[7.0, 2.0], [3.0, 8.0], [9.0, 6.0]]


def test_the_weights_of_layers_have_these_methods() -> None:
    layer = keras.layers.Embedding(3, 2)
    layer(tf.constant([0]))
    layer.embeddings.scatter_nd_update([[1]], [[5.0, 6.0]])
    assert layer.embeddings[1].tolist() == [5.0, 6.0]


def test_updates_that_do_not_fit_are_refused_in_words() -> None:
    v = tf.Variable(START)
    with pytest.raises(TypeError, match=r"scatter_add: pass a tf\.IndexedSlices"):
        v.scatter_add([1.0])
    with pytest.raises(ValueError, match=r"scatter_nd_add: updates must have shape \(1,\)"):
        v.scatter_nd_add([[0, 0]], [1.0, 2.0])
    with pytest.raises(IndexError, match="out of bounds"):
        v.scatter_nd_update([[9, 0]], [1.0])
    assert v.tolist() == START


def test_a_weight_has_the_constraint_of_its_layer() -> None:
    layer = keras.layers.Dense(1, kernel_constraint="non_neg")
    layer(tf.ones((1, 2)))
    layer.kernel.assign([[-1.0], [2.0]])
    layer.kernel.assign(layer.kernel.constraint(layer.kernel))
    assert layer.kernel.tolist() == [[0.0], [2.0]]
    assert layer.bias.constraint is None
    assert tf.Variable(1.0).constraint is None


def test_an_iterator_in_a_checkpoint_goes_on_where_it_was(tmp_path) -> None:
    def pipeline():
        return tf.data.Dataset.range(20).shuffle(5, seed=1).batch(3)

    iterator = iter(pipeline())
    checkpoint = tf.train.Checkpoint(iterator=iterator, step=tf.Variable(7))
    next(iterator), next(iterator)
    path = checkpoint.save(tmp_path / "ck")
    rest = [x.tolist() for x in iterator]
    checkpoint.restore(path)
    assert [x.tolist() for x in iterator] == rest
    other = iter(pipeline())
    tf.train.Checkpoint(iterator=other, step=tf.Variable(0)).restore(path)
    assert [x.tolist() for x in other] == rest


def test_an_iterator_restores_the_order_of_a_shuffle_without_a_seed(tmp_path) -> None:
    data = tf.data.Dataset.range(20).shuffle(20)
    list(data)
    iterator = iter(data)
    first = [next(iterator).item() for _ in range(3)]
    path = tf.train.Checkpoint(iterator=iterator).save(tmp_path / "ck")
    rest = [x.item() for x in iterator]
    again = iter(tf.data.Dataset.range(20).shuffle(20))
    tf.train.Checkpoint(iterator=again).restore(path)
    assert [x.item() for x in again] == rest
    assert sorted(first + rest) == list(range(20))


def test_a_checkpoint_lists_its_variables(tmp_path) -> None:
    model = keras.Sequential([keras.Input((3,)), keras.layers.Dense(2)])
    checkpoint = tf.train.Checkpoint(model=model, step=tf.Variable(3))
    path = checkpoint.save(tmp_path / "ck")
    found = dict(tf.train.list_variables(path))
    assert found["model/layers/0/kernel"] == [3, 2]
    assert found["step"] == []
    assert found == dict(tf.train.list_variables(tmp_path))
    kernel = tf.train.load_variable(path, "model/layers/0/kernel")
    np.testing.assert_array_equal(kernel, model.layers[0].kernel)


def test_words_are_drawn_against_random_others() -> None:
    weights, biases = tf.Variable(tf.random.normal((20, 4))), tf.Variable(tf.zeros(20))
    inputs, labels = tf.random.normal((6, 4)), tf.constant([[1], [2], [3], [4], [5], [6]])
    optimizer = keras.optimizers.Adam(0.1)
    losses = []
    for _ in range(40):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(
                tf.nn.nce_loss(weights, biases, labels, inputs, num_sampled=5, num_classes=20)
            )
        optimizer.apply_gradients(
            zip(tape.gradient(loss, [weights, biases]), [weights, biases], strict=True)
        )
        losses.append(float(loss))
    assert np.mean(losses[-5:]) < 0.5 * np.mean(losses[:5])


def test_sampling_all_classes_is_the_softmax() -> None:
    weights, inputs = tf.random.normal((5, 3)), tf.random.normal((2, 3))
    others = tf.constant([0, 1, 2, 3, 4], tf.int64), tf.ones((2, 1)), tf.ones(5)
    found = tf.nn.sampled_softmax_loss(
        weights, tf.zeros(5), tf.constant([[1], [4]]), inputs, 5, 5, sampled_values=others
    )
    logits = inputs @ tf.transpose(weights)
    wanted = tf.nn.sparse_softmax_cross_entropy_with_logits([1, 4], logits)
    np.testing.assert_allclose(found, wanted, rtol=1e-5)
    with pytest.raises(ValueError, match="cannot be drawn"):
        tf.nn.nce_loss(weights, tf.zeros(5), [[1]], inputs[:1], 6, 5)


def test_a_model_without_weights_is_in_a_checkpoint_as_it_is(tmp_path) -> None:
    def pair():
        model, step = keras.Sequential([keras.layers.Dense(2)]), tf.Variable(3)
        return model, tf.train.Checkpoint(model=model, step=step)

    model, checkpoint = pair()
    path = checkpoint.save(tmp_path / "ck")
    assert "step" in dict(tf.train.list_variables(path))
    model(tf.ones((1, 3)))
    checkpoint.step.assign(5)
    checkpoint.restore(path)
    assert checkpoint.step.numpy() == 3


@pytest.mark.parametrize(
    "pipeline",
    [
        lambda: tf.data.Dataset.range(12).shuffle(12).repeat(2).batch(5),
        lambda: tf.data.Dataset.range(12).shuffle(6, reshuffle_each_iteration=False).batch(4),
        lambda: tf.data.Dataset.from_generator(lambda: iter(range(9)), tf.int64).shuffle(4),
    ],
)
def test_an_iterator_that_is_saved_before_its_first_element_keeps_its_order(
    pipeline, tmp_path
) -> None:
    iterator = iter(pipeline())
    path = tf.train.Checkpoint(iterator=iterator).save(tmp_path / "c")
    wanted = [x.tolist() for x in iterator]
    other = iter(pipeline())
    for restored in (iterator, other):
        tf.train.Checkpoint(iterator=restored).restore(path)
        assert [x.tolist() for x in restored] == wanted

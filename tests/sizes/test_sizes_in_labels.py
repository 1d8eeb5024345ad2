"""Labels and predictions of open sizes: of one shape in each run, or refused as eager code does."""

import numpy as np
import pytest

import gradtape as gt
import gradtape.compat.tensorflow as tf
from gradtape.training import losses, metrics

FUNCTIONS = {
    "binary_accuracy": metrics.binary_accuracy,
    "binary_crossentropy": losses.binary_crossentropy,
    "categorical_accuracy": metrics.categorical_accuracy,
    "categorical_crossentropy": losses.categorical_crossentropy,
    "cosine_similarity": losses.cosine_similarity,
    "hinge": losses.hinge,
    "huber": losses.huber,
    "kl_divergence": losses.kl_divergence,
    "mean_absolute_error": losses.mean_absolute_error,
    "mean_squared_error": losses.mean_squared_error,
    "poisson": losses.poisson,
}
BROADCASTING = ["binary_crossentropy", "hinge", "huber", "kl_divergence", "MAE", "MSE", "poisson"]
OPEN = [gt.TensorSpec([None, None])] * 2


def probabilities(*shape):
    return gt.nn.softmax(
        gt.constant(np.sin(np.arange(np.prod(shape), dtype="float32"))).reshape(shape)
    )


@pytest.mark.parametrize("name", FUNCTIONS)
def test_labels_of_open_sizes_are_refused_where_eager_code_refuses_them(name):
    fn = FUNCTIONS[name]
    traced = gt.function(fn, input_signature=OPEN)
    for n in (1, 2, 5):
        y = probabilities(n, 3)
        np.testing.assert_allclose(traced(y, y * 0.5), fn(y, y * 0.5), rtol=1e-6)
    for labels, predictions in [((1, 3), (5, 3)), ((5, 3), (1, 3)), ((5, 1), (5, 3))]:
        for run in (fn, traced):
            with pytest.raises(ValueError, match=r"same shape|one shape"):
                run(probabilities(*labels), probabilities(*predictions))


@pytest.mark.parametrize("name", BROADCASTING)
def test_keras_labels_of_open_sizes_broadcast_as_in_eager_code(name):
    fn = getattr(tf.keras.losses, name)
    traced = gt.function(lambda a, b: fn(a, b), input_signature=OPEN)
    for labels, predictions in [
        ((5, 3), (5, 3)),
        ((1, 3), (5, 3)),
        ((5, 1), (5, 3)),
        ((2, 1),) * 2,
    ]:
        a, b = probabilities(*labels), probabilities(*predictions) * 0.5
        found, expected = traced(a, b), fn(a, b)
        assert found.shape == expected.shape
        np.testing.assert_allclose(found, expected, rtol=1e-6)

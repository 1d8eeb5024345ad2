"""Losses beside what Keras 3 gave for the same numbers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from gradcheck import check_gradients

import gradtape as gt
from gradtape.training import losses

LABELS = np.array([[0, 1, 0], [1, 0, 0]], "float64")
P = np.array([[0.1, 0.7, 0.2], [0.3, 0.4, 0.3]])
LOGITS = np.array([[0.5, -1.0, 2.0], [0.0, 1.0, -0.5]])

BALANCED = {"apply_class_balancing": True, "alpha": 0.3, "gamma": 1.5}
SMOOTHED = {"label_smoothing": 0.1}
OTHER = {"alpha": 0.3, "gamma": 1.5}
#: The function, its settings, whether it is of logits, and Keras' values.
KERAS: list[tuple[str, dict[str, Any], bool, Any]] = [
    ("squared_hinge", {}, False, [0.9133334159851074, 1.3799998760223389]),
    ("categorical_hinge", {}, False, [0.5, 1.100000023841858]),
    ("dice", {}, False, 0.5),
    ("dice", {"axis": 1}, False, [0.30000001192092896, 0.699999988079071]),
    ("tversky", {}, False, 0.5),
    ("tversky", {"alpha": 0.2, "beta": 0.8}, False, 0.5),
    ("tversky", {"axis": [1]}, False, [0.30000007152557373, 0.7000000476837158]),
    ("binary_focal_crossentropy", {}, False, [0.014026697725057602, 0.23459315299987793]),
    ("binary_focal_crossentropy", {}, True, [0.9097859263420105, 0.3142428994178772]),
    ("binary_focal_crossentropy", BALANCED, False, [0.01129518449306488, 0.11434086412191391]),
    ("binary_focal_crossentropy", BALANCED, True, [0.6039515733718872, 0.24170593917369843]),
    ("binary_focal_crossentropy", SMOOTHED, False, [0.02018369734287262, 0.22242233157157898]),
    ("binary_focal_crossentropy", SMOOTHED, True, [0.8086699843406677, 0.2940855026245117]),
    ("categorical_focal_crossentropy", {}, False, [0.008025187067687511, 0.14748665690422058]),
    ("categorical_focal_crossentropy", {}, True, [0.7481794953346252, 0.21636657416820526]),
    ("categorical_focal_crossentropy", OTHER, False, [0.017582304775714874, 0.21153634786605835]),
    ("categorical_focal_crossentropy", OTHER, True, [0.915905773639679, 0.29612255096435547]),
    ("categorical_focal_crossentropy", SMOOTHED, False, [0.03161629289, 0.14531932771205902]),
    ("categorical_focal_crossentropy", SMOOTHED, True, [0.7082628607749939, 0.21457630395889282]),
    ("mean_squared_error", {}, False, [0.0466667, 0.2466667]),
    ("mean_absolute_error", {}, False, [0.2, 0.4666667]),
    ("mean_squared_logarithmic_error", {}, False, [0.0229125, 0.1225408]),
    ("mean_absolute_percentage_error", {}, False, [100000016.0, 233333376.0]),
    ("hinge", {}, False, [0.8666667, 1.1333333]),
    ("kl_divergence", {}, False, [0.3566721, 1.2039697]),
    ("log_cosh", {}, False, [0.0230669, 0.1165215]),
    ("poisson", {}, False, [0.452225, 0.7346575]),
    ("cosine_similarity", {}, False, [-0.9525794, -0.5144958]),
    ("huber", {}, False, [0.0233333, 0.1233333]),
    ("huber", {"delta": 0.25}, False, [0.0229167, 0.0854167]),
    ("binary_crossentropy", {}, False, [0.228393, 0.6904911]),
    ("binary_crossentropy", {"label_smoothing": 0.1}, False, [0.30224, 0.6972489]),
    ("binary_crossentropy", {}, True, [1.4714222, 0.8268287]),
    ("binary_crossentropy", {"label_smoothing": 0.1}, True, [1.4130892, 0.8184953]),
    ("categorical_crossentropy", {}, False, [0.356675, 1.2039728]),
    ("categorical_crossentropy", {"label_smoothing": 0.1}, False, [0.4632974, 1.1943834]),
    ("categorical_crossentropy", {}, True, [3.2413113, 1.4643688]),
    ("categorical_crossentropy", {"label_smoothing": 0.1}, True, [3.0913115, 1.4477022]),
    ("sparse_categorical_crossentropy", {}, False, [0.356675, 1.2039728]),
    ("sparse_categorical_crossentropy", {}, True, [3.2413113, 1.4643688]),
]


@pytest.mark.parametrize(("name", "settings", "logits", "expected"), KERAS)
def test_values_are_keras(name: str, settings: Any, logits: bool, expected: Any) -> None:
    function, predictions = getattr(losses, name), LOGITS if logits else P
    if name.endswith("crossentropy"):
        settings = {**settings, "from_logits": logits}
    labels = LABELS.argmax(-1) if name.startswith("sparse") else LABELS
    found = function(labels, predictions, **settings)
    np.testing.assert_allclose(found.numpy(), expected, rtol=2e-6, atol=1e-7)
    if name != "mean_absolute_percentage_error":  # of labels of 0, the slopes are about 1e7
        check_gradients(lambda p: function(labels, p, **settings), predictions, order=2)
    spec = gt.TensorSpec((None, 3), "float64")
    of_labels = spec if labels is LABELS else gt.TensorSpec((None,), "int64")
    traced = gt.function(lambda y, p: function(y, p, **settings), input_signature=[of_labels, spec])
    np.testing.assert_allclose(traced(labels, predictions).numpy(), found.numpy(), rtol=1e-12)


def test_every_loss_is_compared() -> None:
    rooms = (losses.errors, losses.crossentropies)
    known = {name for room in rooms for name in room.__all__ if not name.endswith("from_logits")}
    assert known == {name for name, *_ in KERAS}

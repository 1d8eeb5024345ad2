"""Regularizers, constraints and added losses, beside what Keras 3 gave."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
import pytest

import gradtape as gt
from gradtape.layers import Conv2D, Dense, Embedding, Layer, Sequential, constraints, regularizers
from gradtape.training import SGD, evaluate, fit

R = np.random.RandomState(0)
X = R.randn(12, 3).astype("float32")
C = R.randint(0, 3, 12)
R.randn(12, 2), R.uniform(0.2, 2, 12)
K = (R.randn(3, 3) * 0.5).astype("float32")

SERIES = np.ones((2, 4, 3), "float32")

compiled = pytest.mark.parametrize("compile", [True, False])


def given(kernel: Any) -> Any:
    return lambda shape, dtype: gt.constant(kernel)


def dense(**options: Any) -> Dense:
    return Dense(3, kernel_initializer=given(K), **options)


def run(model: Any, **options: Any) -> dict[str, list[float]]:
    settings = {"optimizer": SGD(0.1), "batch_size": 5, "epochs": 2, "shuffle": False}
    return fit(model, (X, C), verbose=False, metrics=[], **{**settings, **options}).history


class Squared(Layer):
    def call(self, x: Any) -> Any:
        self.add_loss(0.1 * gt.mean(x**2))
        return x


def regularized() -> Sequential:
    return Sequential(
        [
            dense(
                kernel_regularizer=regularizers.L1L2(0.01, 0.02),
                bias_regularizer="l2",
                activity_regularizer=regularizers.L2(0.05),
            ),
            Squared(),
        ]
    )


REGULARIZED = [
    [0.096038, -0.420064, 0.288916],
    [-0.290086, 0.854997, 0.539098],
    [-0.588165, 0.072152, 0.010654],
]


@compiled
def test_fit_minimises_what_layers_add(compile: bool) -> None:
    model = regularized()
    history = run(model, compile=compile, validation_data=(X, C))
    np.testing.assert_allclose(history["loss"], [1.6420466, 1.4815823], rtol=1e-5)
    np.testing.assert_allclose(model.layers[0].kernel.numpy(), REGULARIZED, atol=2e-6)
    measured = evaluate(model, (X, C), batch_size=5, metrics=[])["loss"]
    assert history["val_loss"][-1] == pytest.approx(measured, rel=1e-6)


CONSTRAINED = {
    "max_norm": (
        constraints.MaxNorm(0.5),
        [
            [0.080227, -0.195808, 0.198695],
            [-0.18118, 0.43507, 0.296429],
            [-0.417569, 0.035441, 0.0219],
        ],
    ),
    "non_neg": (
        "non_neg",
        [
            [0.183087, 0.054982, 0.413784],
            [0.092531, 0.936883, 0.65637],
            [0.0, 0.143019, 0.07396],
        ],
    ),
    "unit_norm": (
        constraints.UnitNorm,
        [
            [0.165841, -0.446797, 0.53721],
            [-0.459655, 0.889597, 0.843341],
            [-0.872476, 0.094816, -0.013464],
        ],
    ),
    "min_max_norm": (
        constraints.MinMaxNorm(0.3, 0.6, rate=0.5),
        [
            [0.101875, -0.259584, 0.276012],
            [-0.2482, 0.537963, 0.436598],
            [-0.525214, 0.052686, 0.010741],
        ],
    ),
}


@compiled
@pytest.mark.parametrize("name", CONSTRAINED)
def test_fit_keeps_weights_as_they_may_be(name: str, compile: bool) -> None:
    constraint, expected = CONSTRAINED[name]
    model = Sequential([dense(kernel_constraint=constraint)])
    run(model, compile=compile)
    np.testing.assert_allclose(model.layers[0].kernel.numpy(), expected, atol=3e-6)


@pytest.mark.parametrize(
    ("regularizer", "expected"),
    [
        (regularizers.L1(0.3), 1.302745),
        (regularizers.L2(0.3), 0.848947),
        (regularizers.L1L2(0.1, 0.2), 1.000213),
        (regularizers.OrthogonalRegularizer(0.1), 0.040784),
        (regularizers.OrthogonalRegularizer(0.1, mode="columns"), 0.046179),
    ],
)
def test_regularizers_are_those_of_keras(regularizer: Any, expected: float) -> None:
    assert regularizer(gt.constant(K)).item() == pytest.approx(expected, abs=1e-6)
    gt.testing.check_gradients(regularizer, K.astype("float64"), order=2)


@compiled
@pytest.mark.parametrize("kind", [gt.layers.LSTM, gt.layers.GRU, gt.layers.SimpleRNN])
def test_recurrent_layers_have_rules(kind: Any, compile: bool) -> None:
    rules = {"recurrent_regularizer": "l2", "activity_regularizer": "l1"}
    model = Sequential([kind(3, kernel_constraint="unit_norm", **rules)])
    fit(model, (SERIES, C[:2]), verbose=False, metrics=[], compile=compile)
    kernel, recurrent, _ = (v.numpy() for v in model.variables)
    np.testing.assert_allclose(np.linalg.norm(kernel, axis=0), 1.0, rtol=1e-5)
    y = model(SERIES).numpy()
    expected = [0.01 * (recurrent**2).sum(), 0.01 * abs(y).sum() / 2]
    assert [x.item() for x in model.losses] == pytest.approx(expected, rel=1e-5)
    with pytest.raises(TypeError, match="LSTMCell takes no argument 'activity_regularizer'"):
        gt.layers.LSTMCell(3, activity_regularizer="l2")


def test_losses_of_a_loop_of_ones_own() -> None:
    shared = dense(activity_regularizer="l2", kernel_regularizer="l1")

    class Twice(Layer):
        def __init__(self) -> None:
            super().__init__()
            self.inner = shared

        def call(self, x: Any) -> Any:
            return self.inner(self.inner(x))

    model = Twice()
    for _ in range(2):  # what an earlier call added is forgotten
        model(X)
        y = X @ K
        outputs = [(0.01 * (v**2).sum() / 12) for v in (y, y @ K)]
        expected = sorted([0.01 * abs(K).sum(), *outputs])
        assert sorted(x.item() for x in model.losses) == pytest.approx(expected, rel=1e-5)
    with gt.GradientTape() as tape:
        model(X)
        loss = sum(model.losses)
    assert tape.gradient(loss, shared.kernel) is not None

    @gt.function
    def traced(x: Any) -> Any:
        model(x)
        return sum(model.losses)

    assert traced(X).item() == pytest.approx(loss.item(), rel=1e-5)


def test_constraints_in_a_loop_of_ones_own() -> None:
    model = Sequential([dense(kernel_constraint="unit_norm")])
    model(X)
    model.apply_constraints()
    norms = (model.layers[0].kernel.numpy() ** 2).sum(0)
    np.testing.assert_allclose(norms, 1.0, rtol=1e-5)


def test_weights_of_ones_own_have_rules() -> None:
    class Scale(Layer):
        def build(self, input_shape: Any) -> None:
            self.factor = self.add_weight((3,), "ones", regularizer="l2", constraint="non_neg")

        def call(self, x: Any) -> Any:
            return x * self.factor

    model = Sequential([Scale()])
    history = run(model, epochs=1, optimizer=SGD(0.0))
    assert [x.item() for x in model.losses] == pytest.approx([0.03])
    twin = copy.deepcopy(model)
    twin.layers[0].factor.assign([-1.0, 0.0, 1.0])
    twin.apply_constraints()
    assert twin.layers[0].factor.tolist() == [0.0, 0.0, 1.0]
    assert model.layers[0].factor.tolist() == [1.0, 1.0, 1.0]
    assert history["loss"][0] > 0.03


@pytest.mark.parametrize(
    ("layer", "x"),
    [
        (lambda: Dense(2, kernel_regularizer="l1", bias_constraint="non_neg"), X),
        (lambda: Conv2D(2, 2, kernel_regularizer="l2"), np.ones((1, 3, 3, 2), "f")),
        (lambda: Conv2D(2, 2, bias_constraint=constraints.MaxNorm(1.0)), np.ones((1, 3, 3, 2))),
        (lambda: Embedding(4, 2, embeddings_regularizer=regularizers.L2(0.5)), C),
        (lambda: gt.layers.SeparableConv1D(2, 2, pointwise_regularizer="l2"), np.ones((1, 4, 2))),
        (lambda: gt.layers.DepthwiseConv1D(2, depthwise_regularizer="l2"), np.ones((1, 4, 2))),
        (
            lambda: gt.layers.Conv1DTranspose(2, 2, kernel_constraint="unit_norm"),
            np.ones((1, 4, 2)),
        ),
        (lambda: Dense(2, activity_regularizer="l2"), X),
        (lambda: gt.layers.EinsumDense("ab,bc->ac", 2, kernel_regularizer="l2"), X),
        (lambda: gt.layers.BatchNorm(gamma_regularizer="l2", beta_constraint="non_neg"), X),
        (lambda: gt.layers.LSTM(2, recurrent_regularizer="l1"), SERIES),
        (lambda: gt.layers.GRU(2, kernel_constraint="max_norm", activity_regularizer="l2"), SERIES),
        (lambda: gt.layers.SimpleRNN(2, bias_regularizer="l2", kernel_regularizer="l1"), SERIES),
    ],
)
def test_rules_are_saved_with_the_layer(layer: Any, x: Any, tmp_path: Any) -> None:
    model = Sequential([layer()])
    model(x)
    gt.save(model, tmp_path / "model.h5")
    twin = gt.load(tmp_path / "model.h5")
    assert twin.layers[0].get_config() == model.layers[0].get_config()
    assert model.layers[0].rules_given()
    twin(x), model(x)
    np.testing.assert_allclose(  # sums differ in the last bit where memory is aligned otherwise
        [loss.item() for loss in twin.losses], [loss.item() for loss in model.losses], rtol=1e-6
    )


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda: Dense(1, kernel_regularizer="l3"), ValueError, "unknown regularizer 'l3'; known"),
        (lambda: Dense(1, kernel_constraint=3), TypeError, "a constraint is a name, an object"),
        (
            lambda: Dense(1, kernel_regulariser="l2"),
            TypeError,
            "Dense takes no argument 'kernel_",
        ),
        (lambda: regularizers.L2(-1.0), ValueError, "L2: l2 must be finite and not negative"),
        (lambda: regularizers.OrthogonalRegularizer(mode="all"), ValueError, "mode is 'rows' or"),
        (lambda: constraints.MaxNorm(-1.0), ValueError, "MaxNorm: max_value must not be negative"),
        (
            lambda: constraints.MinMaxNorm(2.0, 1.0),
            ValueError,
            "min_value must be from 0 to max_value",
        ),
        (lambda: Dense(1).add_loss(1.0), ValueError, "use add_loss within call only"),
    ],
)
def test_rules_that_mean_nothing(make: Any, error: Any, message: str) -> None:
    with pytest.raises(error, match=message):
        make()


def test_a_layer_that_calls_itself_by_super_regularizes_its_outputs_once() -> None:
    class Doubled(gt.layers.Dense):
        def __call__(self, x: Any) -> Any:
            return super().__call__(x) * 2.0

    layer = Doubled(
        2, kernel_initializer="ones", activity_regularizer=gt.layers.regularizers.L1(1.0)
    )
    layer(gt.ones((4, 3)))
    assert [loss.item() for loss in layer.losses] == [12.0]


def test_a_functional_model_has_no_losses_of_outputs_before_it_is_called() -> None:
    x = gt.Input((3,))
    dense = gt.layers.Dense(2, kernel_initializer="ones", activity_regularizer="l1")
    model = gt.Model(x, dense(x))
    assert model.losses == []
    model(gt.ones((4, 3)))
    assert len(model.losses) == 1


def _by_a_function(layer: Any) -> None:
    gt.function(layer)(X)


def _in_a_batch(layer: Any) -> None:
    gt.vmap(layer)(X)


@pytest.mark.parametrize("call", [_by_a_function, _in_a_batch])
def test_losses_of_a_trace_or_a_batch_are_not_to_be_had_after_it(call: Any) -> None:
    layer = dense(activity_regularizer="l2", kernel_regularizer="l1")
    for _ in range(2):
        call(layer)
        with pytest.raises(
            gt.errors.TraceError, match=r"layer 'dense' \(Dense\): it last added to"
        ):
            layer.losses  # noqa: B018 - a property that raises
    layer(X)
    assert len(layer.losses) == 2


def test_losses_of_a_call_that_is_traced_are_not_forgotten() -> None:
    class Traced(Layer):
        def __init__(self) -> None:
            super().__init__()
            self.inner = dense(activity_regularizer="l2")

        @gt.function
        def call(self, x: Any) -> Any:
            return self.inner(x)

    layer = Traced()
    for _ in range(3):  # the trace runs again, and adds what Python does not see
        layer(X)
        with pytest.raises(
            gt.errors.TraceError, match=r"layer 'dense' \(Dense\): it last added to"
        ):
            layer.losses  # noqa: B018 - a property that raises


def test_an_empty_batch_adds_nothing() -> None:
    layer = dense(activity_regularizer="l2")
    layer(X[:0])
    assert [loss.item() for loss in layer.losses] == [0.0]

    @gt.function(input_signature=[gt.TensorSpec([None, 3])])
    def total(x: Any) -> Any:
        layer(x)
        return sum(layer.losses)

    assert total(X[:0]).item() == 0.0
    layer(X)
    assert total(X).item() == pytest.approx(layer.losses[0].item(), rel=1e-6)

"""What fit and evaluate could misread without a word: each is read right, or refused."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
import pytest

import gradtape as gt
from gradtape.layers import Dense, Sequential
from gradtape.training import SGD, Adam, evaluate, fit, losses, metrics, predict

RNG = np.random.default_rng(5)
X = RNG.normal(size=(48, 3)).astype("float32")
YES = X[:, 0] > 0
CLASSES = YES.astype("int64")


def model(units: int = 1, activation: Any = None) -> Sequential:
    gt.random.set_seed(0)
    return Sequential([Dense(units, activation=activation)])


def run(net: Any, data: Any, **options: Any) -> dict[str, list[float]]:
    return fit(net, data, **{"verbose": False, "seed": 0, **options}).history


# -- accuracy --------------------------------------------------------------------------------------


@pytest.mark.parametrize("shape", [(48,), (48, 1)])
@pytest.mark.parametrize("dtype", ["int64", "uint8", "float32", "bool"])
@pytest.mark.parametrize("from_logits", [True, False])
@pytest.mark.parametrize("name", ["accuracy", "binary_accuracy"])
def test_accuracy_of_one_number_is_that_of_yes_or_no(
    shape: Any, dtype: str, from_logits: bool, name: str
) -> None:
    net = model(activation=None if from_logits else "sigmoid")
    labels = CLASSES.astype(dtype).reshape(shape)
    options = {
        "loss": losses.BinaryCrossentropy(from_logits=from_logits),
        "metrics": [name],
    }
    found = evaluate(net, (X, labels), **options)[name]
    threshold = 0.0 if from_logits else 0.5
    expected = ((predict(net, X).numpy()[:, 0] > threshold) == YES).mean()
    assert found == pytest.approx(expected)
    assert run(net, (X, labels), optimizer=SGD(0.0), **options)[name][0] == pytest.approx(expected)


def test_accuracy_of_several_yes_or_nos_is_their_share() -> None:
    net, labels = model(2), np.stack([YES, ~YES], axis=1).astype("float32")
    found = evaluate(net, (X, labels), loss="bce", metrics=["accuracy"])["accuracy"]
    assert found == pytest.approx(((predict(net, X).numpy() > 0) == labels).mean())


@pytest.mark.parametrize(
    "loss",
    [
        "binary_crossentropy",
        losses.binary_crossentropy,
        losses.BinaryCrossentropy(),
        functools.partial(losses.binary_crossentropy, label_smoothing=0.1),
    ],
)
def test_the_loss_says_what_accuracy_is_however_it_is_given(loss: Any) -> None:
    net = model()
    expected = ((predict(net, X).numpy()[:, 0] > 0) == YES).mean()
    for metric in ("accuracy", gt.training.accuracy):
        found = evaluate(net, (X, CLASSES), loss=loss, metrics=[metric])
        assert found["accuracy"] == pytest.approx(expected)


@pytest.mark.parametrize(("loss", "hot"), [("categorical_crossentropy", True), ("mse", True)])
def test_accuracy_of_classes_is_told_by_the_shapes(loss: str, hot: bool) -> None:
    net = model(2)
    expected = (predict(net, X).numpy().argmax(1) == CLASSES).mean()
    found = evaluate(net, (X, np.eye(2)[CLASSES]), loss=loss, metrics=["accuracy"])
    assert found["accuracy"] == pytest.approx(expected)


@pytest.mark.parametrize("loss", ["mse", lambda y, p: gt.mean((y[:, None] - p) ** 2)])
def test_accuracy_of_one_number_under_another_loss_is_asked_for_by_name(loss: Any) -> None:
    with pytest.raises(ValueError, match=r"use binary_accuracy, with threshold=0\.5"):
        run(model(), (X, CLASSES), loss=loss, metrics=["accuracy"])
    named = evaluate(model(), (X, CLASSES), loss=loss, metrics=["binary_accuracy"])
    assert 0.0 < named["binary_accuracy"] < 1.0


# -- shapes ----------------------------------------------------------------------------------------


def squared(y_true: Any, y_pred: Any) -> Any:
    return gt.mean((y_true - y_pred) ** 2)


@pytest.mark.parametrize("labels", [YES.astype("f"), YES.astype("f")[:, None]], ids=["flat", "col"])
@pytest.mark.parametrize("column", [True, False])
@pytest.mark.parametrize("traced", [False, True])
def test_a_loss_of_ones_own_never_sees_every_label_beside_every_prediction(
    labels: Any, column: bool, traced: bool
) -> None:
    net = Sequential([Dense(1), *([] if column else [lambda x: gt.squeeze(x, axis=-1)])])
    loss = gt.function(squared) if traced else squared
    if (labels.ndim == 2) == column:
        first, second = run(net, (X, labels), loss=loss, epochs=2, batch_size=20)["loss"]
        assert second < first
        return
    words = r"broadcast to \(20, 20\) in 'subtract': every label meets every prediction"
    for use in (run, evaluate):
        with pytest.raises(ValueError, match=words):
            use(net, (X, labels), loss=loss, batch_size=20)
        with pytest.raises(ValueError, match=words):
            use(net, (X, labels), loss="mse", metrics=[loss], batch_size=20)


def of_the_column(y_true: Any, y_pred: Any) -> Any:
    return gt.mean((y_true - y_pred[:, 0]) ** 2)


def with_spread(y_true: Any, y_pred: Any) -> Any:
    mean, log_variance = y_pred[:, 0], y_pred[:, 1]
    return gt.mean((y_true - mean) ** 2 * gt.exp(-log_variance) + log_variance)


def of_pairs(y_true: Any, y_pred: Any) -> Any:
    scores = y_pred[:, 0]
    higher = y_true[:, None] > y_true
    return gt.mean(gt.where(higher, gt.nn.softplus(scores - scores[:, None]), 0.0))


def of_classes(y_true: Any, y_pred: Any) -> Any:
    return gt.nn.sparse_softmax_cross_entropy_with_logits(labels=y_true, logits=y_pred)


@pytest.mark.parametrize("loss", [of_the_column, with_spread, of_pairs, of_classes])
def test_a_loss_of_ones_own_that_is_right_about_its_shapes_is_left_alone(loss: Any) -> None:
    labels = CLASSES if loss is of_classes else X[:, 1]
    net = model(2)
    history = run(net, (X, labels), loss=loss, metrics=[loss], epochs=5, optimizer=Adam(0.05))
    assert history["loss"][-1] < history["loss"][0]
    evaluate(net, (X, labels), loss=loss)


def test_broadcasting_shows_in_the_first_batch_of_more_than_one() -> None:
    labels = YES.astype("float32")
    batches = [(X[:1], labels[:1]), (X, labels)]
    with pytest.raises(ValueError, match="every label meets every prediction"):
        run(model(), batches, loss=squared)


@pytest.mark.parametrize("validating", [True, False])
def test_broadcasting_shows_in_later_labels_of_another_rank(validating: bool) -> None:
    labels = YES.astype("float32")
    first, other = (X, labels[:, None]), (X, labels)
    data, held_out = ([first], [other]) if validating else ([first, other], None)
    with pytest.raises(ValueError, match="every label meets every prediction"):
        run(model(), data, loss=squared, validation_data=held_out)


# -- data ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("data", "error", "message"),
    [
        ((X, CLASSES, CLASSES, CLASSES), ValueError, r"a tuple of 4 arrays, not \(x, y\) or \(x"),
        ((X, CLASSES, CLASSES[:3]), ValueError, "data: x, y and sample_weight have different len"),
        (((X, CLASSES), (X, CLASSES)), TypeError, r"both tuples of 2 .* batches \(x, y\) in a li"),
        ([[[1.0, 2.0], [3.0, 4.0]], [[0], [1]]], ValueError, "a list of 2 lists or numbers, not a"),
        ([(X, CLASSES, CLASSES, 1)], ValueError, r"batch 0 must be .*, got tuple of 4"),
        ([(X, CLASSES, CLASSES[:3])], ValueError, r"and sample_weight of shape \(3,\); they need"),
        (X, ValueError, r"an array of shape \(48, 3\) has no labels"),
        ((X, None), ValueError, "data: there are no labels"),
        ((X, np.array(["a", "b"] * 24)), TypeError, "data: y: a tensor holds numbers"),
        ((X.astype(object), CLASSES), TypeError, "data: x: a tensor holds numbers"),
    ],
)
def test_data_that_could_be_misread_are_refused(data: Any, error: Any, message: str) -> None:
    for use in (run, evaluate):
        with pytest.raises(error, match=message):
            use(model(2), data)
    with pytest.raises(error, match=message.replace("data", "validation_data", 1)):
        run(model(2), (X, CLASSES), validation_data=data)


@pytest.mark.parametrize(
    ("data", "error", "message"),
    [
        (((X, X), CLASSES), TypeError, "x is a tuple of 2 arrays, which this model does not take"),
        (({"a": X}, CLASSES), TypeError, "x is a dict of 1 arrays, which this model does not take"),
        ((X, (CLASSES, CLASSES)), ValueError, "output is one tensor, but the outputs are output_0"),
    ],
)
def test_several_arrays_for_a_model_of_one_are_refused(data: Any, error: Any, message: str) -> None:
    for use in (run, evaluate):
        with pytest.raises(error, match=message):
            use(model(2), data)


def test_batches_come_in_tuples_or_lists_of_arrays() -> None:
    parts = [[X[:24], CLASSES[:24]], (X[24:], CLASSES[24:])]
    assert len(run(model(2), parts)["loss"]) == 1
    assert len(run(model(2), tuple(parts[:1] * 3))["loss"]) == 1


def test_predict_says_what_a_model_does_not_take_or_give() -> None:
    with pytest.raises(TypeError, match="x is a tuple of 2 arrays"):
        predict(model(), (X, CLASSES))
    with pytest.raises(TypeError, match="tensors with one row per example, got str"):
        predict(gt.layers.Activation(lambda x: (x, "y")), X)
    with pytest.raises(TypeError, match=r"a model must return tensors .* got \(\)"):
        predict(gt.layers.Activation(gt.sum), X)


@pytest.mark.parametrize(
    ("loss", "labels", "message"),
    [
        ("bce", np.where(YES, 1, -1), "binary_crossentropy must be from 0 to 1, got -1 to 1"),
        ("bce", CLASSES + 1.0, "from 0 to 1, got 1.0 to 2.0"),
        ("categorical_crossentropy", -np.eye(2)[CLASSES], "shares of classes, from 0, got -1.0"),
        ("sparse_categorical_crossentropy", CLASSES * 0.5, r"integers \(0, 1, ...\), got 0.5"),
    ],
)
def test_labels_that_a_cross_entropy_cannot_mean(loss: str, labels: Any, message: str) -> None:
    net = model(labels.shape[1] if labels.ndim == 2 else 1 if loss == "bce" else 2)
    for use, data in ((run, (X, labels)), (run, [(X, labels)]), (evaluate, (X, labels))):
        with pytest.raises(ValueError, match=message):
            use(net, data, loss=loss)


@pytest.mark.parametrize(("name", "wrong"), [("x", 0), ("y", 1)])
def test_a_loss_that_is_not_finite_says_what_in_the_batch_is_not(name: str, wrong: int) -> None:
    data = [X.copy(), X[:, :1].copy()]
    data[wrong][3, 0] = np.inf
    with pytest.raises(FloatingPointError, match=f"In this batch {name} holds NaN or infinity"):
        run(model(), tuple(data), loss="mse")


# -- logits and probabilities ----------------------------------------------------------------------


class Squashed(gt.Module):
    def __init__(self, squash: Any) -> None:
        super().__init__()
        self.dense, self.squash = Dense(2), squash

    def __call__(self, x: Any) -> Any:
        return self.squash(self.dense(x))


def softmax_by_hand(x: Any) -> Any:
    e = gt.exp(x)
    return e / gt.sum(e, axis=-1, keepdims=True)


@pytest.mark.parametrize(
    "net",
    [
        lambda: model(2, "softmax"),
        lambda: Sequential([Dense(2), gt.layers.Activation("softmax")]),
        lambda: Squashed(gt.nn.softmax),
        lambda: Squashed(gt.function(gt.nn.softmax)),
        lambda: Squashed(softmax_by_hand),
        lambda: Squashed(lambda x: gt.cast(gt.nn.softmax(x), "float32")),
    ],
)
def test_probabilities_are_not_taken_for_logits(net: Any) -> None:
    made = net()
    for use in (run, evaluate):
        with pytest.raises(ValueError, match=r"the model returns probabilities.*from_logits=False"):
            use(made, (X, CLASSES))
    right = losses.SparseCategoricalCrossentropy(from_logits=False)
    history = run(made, (X, CLASSES), loss=right, epochs=10, optimizer=Adam(0.1))
    assert history["accuracy"][-1] > 0.8


@pytest.mark.parametrize("loss", ["mse", losses.BinaryCrossentropy(from_logits=False)])
def test_a_softmax_over_one_unit_gives_one_warning(loss: Any) -> None:
    with pytest.warns(UserWarning, match="ends in a softmax over one value, which is 1 fo") as told:
        run(model(1, "softmax"), (X, CLASSES), loss=loss, epochs=2)
    assert len(told) == 1


@pytest.mark.parametrize(
    "after",
    [
        None,
        lambda x: gt.squeeze(x, axis=-1),
        lambda x: x[:, 0],
        lambda x: gt.clip(x, 1e-7, 1.0 - 1e-7),
    ],
)
def test_a_sigmoid_is_not_taken_for_logits(after: Any) -> None:
    net = Sequential([Dense(1, activation="sigmoid"), *([after] if after else [])])
    with pytest.raises(ValueError, match=r"ends in sigmoid.*BinaryCrossentropy\(from_logits=Fal"):
        run(net, (X, CLASSES), loss="binary_crossentropy")


@pytest.mark.parametrize(
    ("loss", "units"),
    [(losses.BinaryCrossentropy, 1), (losses.SparseCategoricalCrossentropy, 2)],
)
def test_logits_are_not_taken_for_probabilities(loss: Any, units: int) -> None:
    with pytest.raises(ValueError, match="takes probabilities here; end the model with"):
        run(model(units), (X, CLASSES), loss=loss(from_logits=False))


def test_logits_that_are_all_zero_are_logits() -> None:
    net = Sequential([Dense(2, kernel_initializer="zeros")])
    assert run(net, (X, CLASSES))["loss"][0] == pytest.approx(np.log(2), rel=1e-2)


# -- settings --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"epochs": "3"}, ValueError, "epochs must be a non-negative integer, got '3'"),
        ({"epochs": 1.5}, ValueError, "epochs must be a non-negative integer, got 1.5"),
        ({"epochs": None}, ValueError, "epochs must be a non-negative integer, got None"),
        ({"epochs": np.inf}, ValueError, "epochs must be a non-negative integer, got inf"),
        ({"batch_size": 2.5}, ValueError, "batch_size must be a positive integer, got 2.5"),
        ({"batch_size": np.nan}, ValueError, "batch_size must be a positive integer, got nan"),
        ({"batch_size": "all"}, ValueError, "batch_size must be a positive integer, got 'all'"),
        ({"validation_split": "0.2"}, ValueError, "validation_split must be in"),
        ({"validation_split": np.nan}, ValueError, "validation_split must be in"),
        ({"seed": -1}, ValueError, "seed must be a non-negative integer, got -1"),
        ({"seed": "a"}, ValueError, "seed must be a non-negative integer, got 'a'"),
        ({"shuffle": "no"}, TypeError, "shuffle is True or False, got 'no'"),
        ({"verbose": "no"}, TypeError, "verbose is True or False, or 2, got 'no'"),
        ({"callbacks": print}, TypeError, "callbacks are a list"),
        ({"metrics": [None]}, TypeError, "a metric is a name, a function .* got None"),
        ({"metrics": [metrics.BinaryAccuracy]}, TypeError, r"class BinaryAccuracy; pass an object"),
        ({"metrics": ["acuracy"]}, ValueError, "unknown metric 'acuracy'"),
        ({"loss": losses.Huber}, TypeError, r"the loss is the class Huber; pass an object"),
    ],
)
def test_settings_that_mean_nothing_are_refused(options: Any, error: Any, message: str) -> None:
    with pytest.raises(error, match=message):
        run(model(2), (X, CLASSES), **options)


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda: SGD("0.1"), TypeError, "learning_rate is a number, a variable or a schedule"),
        (lambda: SGD([0.1, 0.2]), TypeError, "learning_rate is a number"),
        (lambda: SGD(0.1j), TypeError, "learning_rate is a number"),
        (lambda: SGD(np.nan), ValueError, "learning_rate must not be negative, got nan"),
        (lambda: SGD(np.inf), ValueError, "learning_rate must be finite, got inf"),
        (lambda: SGD(clipnorm="1"), ValueError, "to a number above 0, got {'clipnorm': '1'}"),
        (lambda: Adam(epsilon=-1e-7), ValueError, "epsilon must not be negative, got -1e-07"),
        (lambda: Adam(epsilon=np.nan), ValueError, "epsilon must not be negative, got nan"),
        (lambda: gt.training.RMSprop(epsilon=-1.0), ValueError, "epsilon must not be negative"),
        (lambda: gt.training.Adagrad(epsilon=-1.0), ValueError, "epsilon must not be negative"),
        (lambda: SGD(momentun=0.9), TypeError, "momentun"),
    ],
)
def test_settings_of_optimizers_that_mean_nothing(make: Any, error: Any, message: str) -> None:
    with pytest.raises(error, match=message):
        make()


@pytest.mark.parametrize("rate", [-0.1, np.nan, np.inf])
def test_a_schedule_or_variable_does_not_climb(rate: float) -> None:
    w = gt.Variable(1.0)
    for optimizer in (SGD(lambda step: rate), SGD(gt.Variable(rate))):
        with pytest.raises(ValueError, match=r"SGD: the learning rate of step 1 is .*finite and"):
            optimizer.apply_gradients([(gt.constant(1.0), w)])
    assert w.item() == 1.0
    assert SGD(gt.constant(0.5)).learning_rate.item() == 0.5


@pytest.mark.parametrize("use", [fit, evaluate])
def test_training_is_not_traced(use: Any) -> None:
    net = model()
    with pytest.raises(
        gt.errors.TraceError, match="a tensor's value is not known while a function is tr"
    ):
        gt.function(lambda: use(net, (X, X[:, :1]), loss="mse") and None)()


# -- what a newcomer's first calls look like -------------------------------------------------------


class Block:
    """A plain class: modules do not look into it."""

    def __init__(self) -> None:
        self.last = Dense(1)


class Hiding(gt.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first, self.block = Dense(4), Block()

    def __call__(self, x: Any) -> Any:
        return self.block.last(self.first(x))


class Remaking(gt.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first = Dense(4)

    def __call__(self, x: Any) -> Any:
        return Dense(1)(self.first(x))


@pytest.mark.parametrize("kind", [Hiding, Remaking])
def test_variables_that_the_model_does_not_hold_are_told(kind: type[gt.Module]) -> None:
    told = r"read 2 trainable variables .* not hold: 'kernel' \(shape \(4, 1\)\), 'bias' \(shape"
    with pytest.warns(UserWarning, match=told):
        run(kind(), (X, X[:, :1]), loss="mse")


def test_frozen_variables_outside_the_model_are_no_mistake(
    recwarn: pytest.WarningsRecorder,
) -> None:
    teacher = model()
    teacher(X)
    teacher.trainable = False
    goal = gt.constant(X[:16])
    run(model(), (X, X[:, :1]), loss=lambda y, p: gt.square(p - teacher(goal)), batch_size=16)
    assert not [w for w in recwarn if "not hold" in str(w.message)]


class Leaving(gt.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first = Dense(1)

    def __call__(self, x: Any) -> Any:
        return self.first(x).numpy()


PAIR = gt.data.Dataset.from_tensor_slices((X, X[:, :1])).batch(8)


@pytest.mark.parametrize(
    ("call", "kind", "told"),
    [
        (
            lambda: fit(model(), X, X[:, :1]),
            TypeError,
            r"the data are one argument: fit\(model, \(",
        ),
        (lambda: fit(model(), x=X, y=CLASSES), TypeError, "the data are one argument"),
        (lambda: evaluate(model(), X, CLASSES), TypeError, "the data are one argument: evaluate"),
        (lambda: fit(model(), X), ValueError, r"an array of shape \(48, 3\) has no labels"),
        (lambda: fit(model(), PAIR, batch_size=4), ValueError, "have 8 examples, but batch_size"),
        (lambda: run(model(), PAIR, loss="mse", batch_size=9), ValueError, "but batch_size is 9"),
        (lambda: evaluate(model(), PAIR, batch_size=4), ValueError, "but batch_size is 4; it is"),
        (lambda: fit(model(), (X, X), optimizer=Adam), TypeError, r"the class Adam; .*: Adam\(\)"),
        (
            lambda: run(Leaving(), (X, X[:, :1]), loss="mse"),
            TypeError,
            r"returns an ndarray.*\.numpy",
        ),
        (lambda: SGD(0.1).apply_gradients([gt.Variable(1.0)]), TypeError, r"zip\(gradients, var"),
    ],
)
def test_first_calls_are_answered_with_what_to_write(
    call: Any, kind: type[Exception], told: str
) -> None:
    with pytest.raises(kind, match=told):
        call()


def test_a_batch_size_for_arrays_leaves_validation_batches_as_they_are() -> None:
    net = model()
    assert "val_loss" in run(net, (X, X[:, :1]), loss="mse", batch_size=4, validation_data=PAIR)


def test_predict_says_once_that_labels_are_not_taken() -> None:
    with pytest.raises(TypeError, match="give only inputs, without labels") as caught:
        predict(model(), (X, CLASSES))
    assert str(caught.value).count("which this model does not take") == 1


@pytest.mark.parametrize(
    "metric",
    [
        metrics.accuracy,
        metrics.sparse_top_k_categorical_accuracy,
        losses.sparse_categorical_crossentropy,
    ],
)
@pytest.mark.parametrize(("labels", "rows"), [([0, 1], 1), ([0], 2), ([0, 1, 1], 2)])
def test_classes_and_predictions_of_other_lengths_are_refused(
    metric: Any, labels: list[int], rows: int
) -> None:
    with pytest.raises(ValueError, match=r"y_true has shape .*, y_pred has shape"):
        metric(labels, np.ones((rows, 3), "float32"))


def test_predict_says_why_parts_of_other_lengths_do_not_fit() -> None:
    net, rows = model(), [X[:, None], np.repeat(X[:, None], 2, 1)]
    with pytest.raises(
        ValueError, match=r"shapes \(48, 1, 1\) and \(48, 2, 1\), which cannot be joined"
    ):
        predict(net, iter(rows))
    with pytest.raises(
        ValueError, match=r"x: a list of arrays is several inputs.*\(5, 3\) and \(43"
    ):
        predict(net, [X[:5], X[5:]])
    with pytest.raises(ValueError, match=r"several inputs.* and 2 more; pad sequences"):
        predict(net, [np.ones(n) for n in (3, 1, 2, 4, 1, 5)])


# -- metrics of one's own --------------------------------------------------------------------------


class _Counts(metrics.Metric):
    """A metric that counts in Python."""

    def __init__(self) -> None:
        super().__init__("counts")
        self.seen, self.all = 0, [0]

    def update_state(self, y_true: Any, y_pred: Any, sample_weight: Any = None) -> None:
        self.seen += len(y_true)

    def result(self) -> float:
        return float(self.seen)


class _Appends(_Counts):
    def update_state(self, y_true: Any, y_pred: Any, sample_weight: Any = None) -> None:
        self.all.append(1)


class _Resets(_Counts):
    def reset_state(self) -> None:
        self.seen = 0


@pytest.mark.parametrize(("kind", "name"), [(_Counts, "seen"), (_Appends, "all")])
def test_a_metric_that_counts_in_python_is_told_once(kind: Any, name: str) -> None:
    with pytest.warns(UserWarning, match=f"'counts': update_state changes '{name}', which") as told:
        run(model(), (X, X[:, :1]), loss="mse", metrics=[kind()], epochs=2)
    assert len(told) == 1


def test_a_metric_that_resets_what_it_counts_is_fine() -> None:
    found = run(model(), (X, X[:, :1]), loss="mse", metrics=[_Resets()], epochs=2)
    assert found["counts"] == [len(X)] * 2


class _Settles(_Counts):
    def __init__(self) -> None:
        super().__init__()
        self.width, self.parts, self.least = None, [], float("nan")

    def update_state(self, y_true: Any, y_pred: Any, sample_weight: Any = None) -> None:
        if self.width is None:
            self.width = y_true.shape[-1]
            self.parts.append(self.add_weight((), name="part"))
        self.parts[0].assign(self.parts[0] + len(y_true) / self.width)

    def result(self) -> Any:
        return self.parts[0].value


def test_a_metric_that_its_first_batch_completes_is_fine() -> None:
    found = run(model(), (X, X[:, :1]), loss="mse", metrics=[_Settles()], epochs=2)
    assert found["counts"] == [len(X)] * 2


def test_a_metric_without_a_result_is_refused() -> None:
    class Nothing(metrics.Metric):
        def update_state(self, y_true: Any, y_pred: Any, sample_weight: Any = None) -> None:
            pass

    class Adds(metrics.Metric):
        def update_state(self, y_true: Any, y_pred: Any, sample_weight: Any = None) -> None:
            self.add(gt.zeros(len(y_true)))

    options = {"loss": "mse", "metrics": [Adds()]}
    assert run(model(), (X, X[:, :1]), **options)["adds"] == [0.0]
    with pytest.raises(
        NotImplementedError, match=r"Nothing: define result\(\), since update_state"
    ):
        run(model(), (X, X[:, :1]), loss="mse", metrics=[Nothing()])


def test_a_metric_may_find_nothing_to_add() -> None:
    class Rare(metrics.Metric):
        def update_state(self, y_true: Any, y_pred: Any, sample_weight: Any = None) -> None:
            for row in y_true.numpy():
                if row[0] > 1e9:
                    self.add(row)

    found = run(model(), (X, X[:, :1]), loss="mse", metrics=[Rare()])
    assert found["rare"] == [0.0]


def test_a_weight_of_a_metric_begins_with_its_shape() -> None:
    with pytest.raises(TypeError, match=r"add_weight: .* comes first, got 'total'; as in add_weig"):
        metrics.Mean().add_weight("total", (), "zeros")

"""``gt.sklearn``: scikit-learn's own checks, and what users do with estimators."""

from __future__ import annotations

import io
import os
import pickle
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gradtape as gt

pytest.importorskip("sklearn", reason='pip install "gradtape[sklearn]"')

from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

RANDOM = np.random.default_rng(0)
X = RANDOM.standard_normal((96, 4))
LABELS = np.where(X[:, 0] + X[:, 1] > 0, "yes", "no")
NUMBERS = X @ [1.0, -2.0, 0.5, 0.0] + 0.25


#: What estimators that learn batch by batch cannot pass, whoever makes them.
EXCEPTIONS = {
    "check_sample_weight_equivalence_on_dense_data": (
        "examples of weight 0, or several times there, make other batches, and so another path"
    ),
}


@parametrize_with_checks(
    [gt.sklearn.Classifier(), gt.sklearn.Regressor()],
    expected_failed_checks=lambda estimator: EXCEPTIONS,
)
def test_scikit_learns_own_checks(estimator: Any, check: Any) -> None:
    check(estimator)


def test_a_pipeline_searches_over_settings_in_processes() -> None:
    pipe = make_pipeline(StandardScaler(), gt.sklearn.Classifier(epochs=15, random_state=0))
    grid = {"classifier__units": [(), (8,)], "classifier__learning_rate": [1e-4, 0.05]}
    search = GridSearchCV(pipe, grid, cv=2, n_jobs=2).fit(X, LABELS)
    assert search.best_params_["classifier__learning_rate"] == 0.05
    assert search.score(X, LABELS) > 0.9
    alone = GridSearchCV(pipe, grid, cv=2).fit(X, LABELS)
    np.testing.assert_array_equal(
        search.cv_results_["mean_test_score"], alone.cv_results_["mean_test_score"]
    )


def test_cross_validation_scores_a_regressor() -> None:
    regressor = gt.sklearn.Regressor(units=(), learning_rate=0.05, random_state=0)
    assert cross_val_score(regressor, X, NUMBERS, cv=3).min() > 0.99


@pytest.mark.parametrize("through", ["pickle", "joblib"])
def test_a_trained_estimator_is_kept(through: str) -> None:
    joblib = pytest.importorskip("joblib")
    module = {"pickle": pickle, "joblib": joblib}[through]
    trained = gt.sklearn.Classifier(epochs=2, random_state=0).fit(X, LABELS)
    stream = io.BytesIO()
    module.dump(trained, stream)
    stream.seek(0)
    again = module.load(stream)
    np.testing.assert_array_equal(again.predict_proba(X), trained.predict_proba(X))
    assert again.history_ == trained.history_


def test_random_state_decides_everything_and_disturbs_nothing() -> None:
    def probabilities(state: Any) -> Any:
        made = gt.sklearn.Classifier(with_dropout, epochs=2, random_state=state)
        return made.fit(X, LABELS).predict_proba(X)

    gt.random.set_seed(3)
    following = gt.random.normal(2).tolist()
    gt.random.set_seed(3)
    first = probabilities(7)
    assert gt.random.normal(2).tolist() == following
    np.testing.assert_array_equal(probabilities(7), first)
    assert not np.array_equal(probabilities(8), first)


def with_dropout(outputs: int) -> Any:
    layers = gt.layers
    return layers.Sequential([layers.Dense(8), layers.Dropout(0.2), layers.Dense(outputs)])


def test_a_model_given_is_copied_and_not_trained() -> None:
    model = with_dropout(2)
    model(X[:1])
    optimizer = gt.training.Adam(0.01)
    before = [v.numpy() for v in model.variables]
    trained = gt.sklearn.Classifier(model, optimizer=optimizer, epochs=1).fit(X, LABELS)
    assert all(np.array_equal(v.numpy(), old) for v, old in zip(model.variables, before))
    assert not optimizer.variables or optimizer.iterations.item() == 0
    assert not np.array_equal(trained.model_.variables[0].numpy(), before[0])
    clone(trained)


def test_a_model_with_other_outputs_is_refused() -> None:
    with pytest.raises(ValueError, match=r"outputs of shape \(1, 3\).* the data need 2"):
        gt.sklearn.Classifier(with_dropout(3)).fit(X, LABELS)


def test_probabilities_of_a_model_stay_what_they_are() -> None:
    def softmaxed(outputs: int) -> Any:
        return gt.layers.Sequential([gt.layers.Dense(outputs, activation="softmax")])

    loss = gt.training.losses.SparseCategoricalCrossentropy(from_logits=False)
    trained = gt.sklearn.Classifier(softmaxed, loss=loss, epochs=1).fit(X, LABELS)
    np.testing.assert_array_equal(trained.predict_proba(X), trained.model_(X).numpy())


def test_images_of_any_rank_and_several_targets() -> None:
    def network(outputs: int) -> Any:
        return gt.layers.Sequential([gt.layers.Flatten(), gt.layers.Dense(outputs)])

    images = X.reshape(-1, 2, 2, 1)
    targets = np.stack([NUMBERS, -NUMBERS], axis=1)
    regressor = gt.sklearn.Regressor(network, learning_rate=0.05, epochs=60, random_state=0)
    assert regressor.fit(images, targets).predict(images).shape == (96, 2)
    assert regressor.score(images, targets) > 0.99


def test_callbacks_are_copied_for_each_training() -> None:
    stop = gt.training.EarlyStopping("loss", patience=1, min_delta=10.0)
    classifier = gt.sklearn.Classifier(callbacks=[stop], epochs=9)
    assert [classifier.fit(X, LABELS).n_epochs_ for _ in range(2)] == [2, 2]
    assert stop.stopped_epoch is None


def test_without_scikit_learn_it_says_what_to_install(tmp_path: Path) -> None:
    blocked = tmp_path / "sklearn"
    blocked.mkdir()
    (blocked / "__init__.py").write_text("raise ModuleNotFoundError('none', name='sklearn')")
    program = "import gradtape as gt; gt.sklearn.Classifier(epochs=1)"
    run = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHONPATH": str(tmp_path)},
    )
    assert "ImportError: sklearn.Classifier: scikit-learn is not installed" in run.stderr
    assert 'pip install "gradtape[sklearn]"' in run.stderr


def test_weights_of_examples_and_of_classes_say_what_counts() -> None:
    rare = np.where(X[:, 0] > 1.0, "rare", "common")
    settings = {"units": (), "epochs": 10, "random_state": 0}
    plain = gt.sklearn.Classifier(**settings).fit(X, rare)
    balanced = gt.sklearn.Classifier(class_weight="balanced", **settings).fit(X, rare)
    assert np.sum(balanced.predict(X) == "rare") > np.sum(plain.predict(X) == "rare")
    weights = np.where(rare == "rare", 1.0, 0.0)
    told = gt.sklearn.Classifier(**{**settings, "learning_rate": 0.1}).fit(X, rare, weights)
    assert np.mean(told.predict(X) == "rare") > 0.8
    constant = np.repeat([1.0, 5.0], 48)
    first = gt.sklearn.Regressor(learning_rate=0.05, **{**settings, "epochs": 60})
    first.fit(np.zeros((96, 1)), constant, sample_weight=np.repeat([1.0, 0.0], 48))
    np.testing.assert_allclose(first.predict([[0.0]]), 1.0, atol=0.1)


SORTED = np.sort(LABELS)


@pytest.mark.parametrize("labels", [SORTED, np.repeat(["a", "b", "c", "d"], 24)])
def test_what_is_held_out_of_sorted_labels_has_all_of_them(labels: Any) -> None:
    class Held:
        def __call__(self, epoch: int, logs: dict[str, float]) -> None: ...

    x = np.eye(4)[np.unique(labels, return_inverse=True)[1]]
    made = gt.sklearn.Classifier(
        units=(),
        epochs=60,
        learning_rate=0.1,
        validation_split=0.25,
        callbacks=[gt.training.EarlyStopping(patience=5)],
        random_state=0,
    ).fit(x, labels)
    assert made.history_["val_accuracy"][-1] == made.score(x, labels) == 1.0


def test_a_class_of_one_example_is_held_out_or_not() -> None:
    labels = np.where(np.arange(96) == 5, "once", LABELS)
    made = gt.sklearn.Classifier(epochs=1, validation_split=0.2).fit(X, labels)
    assert len(made.history_["val_loss"]) == 1


def single(outputs: int) -> Any:
    return gt.layers.Sequential([gt.layers.Dense(outputs)])


def squashed(outputs: int) -> Any:
    return gt.layers.Sequential([gt.layers.Dense(outputs, activation="sigmoid")])


@pytest.mark.parametrize(
    ("model", "loss", "units"),
    [
        (single, "binary_crossentropy", 1),
        (squashed, gt.training.losses.BinaryCrossentropy(from_logits=False), 1),
        (single, "categorical_crossentropy", 2),
        (single, None, 2),
    ],
)
def test_two_classes_have_two_probabilities_whatever_the_loss(
    model: Any, loss: Any, units: int
) -> None:
    made = gt.sklearn.Classifier(
        model, loss=loss, epochs=40, learning_rate=0.05, random_state=0, class_weight="balanced"
    ).fit(X, LABELS)
    assert made.model_(X).shape == (96, units)
    found = made.predict_proba(X)
    assert found.shape == (96, 2)
    np.testing.assert_allclose(found.sum(axis=1), 1.0)
    assert made.score(X, LABELS) > 0.9


def test_a_loss_of_yes_or_no_is_refused_for_three_classes() -> None:
    labels = np.arange(96) % 3
    with pytest.raises(ValueError, match="binary_crossentropy is for 2 classes, but y has 3"):
        gt.sklearn.Classifier(loss="binary_crossentropy").fit(X, labels)
    with pytest.raises(ValueError, match="A single output needs loss='binary_crossentropy'"):
        gt.sklearn.Classifier(lambda outputs: single(1)).fit(X, LABELS)


@pytest.mark.parametrize("kind", ["Classifier", "Regressor"])
def test_training_goes_on_where_it_was(kind: str) -> None:
    y = LABELS if kind == "Classifier" else NUMBERS
    first = {"classes": ["no", "yes"]} if kind == "Classifier" else {}
    made = getattr(gt.sklearn, kind)(units=(), epochs=3, learning_rate=0.05, random_state=0)
    for i in range(30):
        made.partial_fit(X, y, **(first if not i else {}))
    assert made.n_epochs_ == len(made.history_["loss"]) == 30
    assert made.score(X, y) > 0.9
    again = pickle.loads(pickle.dumps(made)).partial_fit(X, y)
    assert again.history_["loss"][-1] < made.history_["loss"][0] / 2
    warm = clone(made).set_params(warm_start=True).fit(X, y)
    losses = warm.fit(X, y).history_["loss"]
    assert len(losses) == 6
    assert losses == sorted(losses, reverse=True)
    cold = clone(made).fit(X, y)
    assert cold.history_["loss"] == losses[:3] == cold.fit(X, y).history_["loss"]


def test_what_cannot_go_on_is_refused() -> None:
    classifier = gt.sklearn.Classifier(epochs=1, warm_start=True).fit(X, LABELS)
    with pytest.raises(ValueError, match="warm_start continues with classes"):
        classifier.fit(X, np.where(LABELS == "no", "maybe", "yes"))
    with pytest.raises(ValueError, match=r"y has \['perhaps'\], which are not among classes"):
        classifier.partial_fit(X, ["perhaps"] * 96)
    with pytest.raises(ValueError, match="classes must be passed"):
        gt.sklearn.Classifier().partial_fit(X, LABELS)
    regressor = gt.sklearn.Regressor(epochs=1).fit(X, NUMBERS)
    with pytest.raises(ValueError, match="was trained for targets of shape"):
        regressor.partial_fit(X, NUMBERS[:, None])
    with pytest.raises(TypeError, match="callbacks are a list"):
        gt.sklearn.Classifier(callbacks=gt.training.EarlyStopping()).fit(X, LABELS)


def said(epoch: int, logs: dict[str, float]) -> None:
    print("called", epoch)


def own_loss(y: Any, p: Any) -> Any:
    return 3.0 * gt.reshape(gt.mean(p * p, -1), (-1,))


#: A new value of each parameter, and the ways to train on which it documents to have no effect.
CHANGED: dict[str, tuple[Any, tuple[str, ...]]] = {
    "model": (single, ()),
    "units": ((3,), ()),
    "epochs": (4, ("partial_fit",)),
    "batch_size": (96, ()),
    "optimizer": (gt.training.SGD(0.5), ()),
    "learning_rate": (0.0, ()),
    "loss": (own_loss, ()),
    "metrics": ([own_loss], ()),
    "validation_split": (0.25, ("partial_fit",)),
    "shuffle": (False, ()),
    "callbacks": ([said], ("partial_fit",)),
    "random_state": (5, ()),
    "warm_start": (False, ("partial_fit",)),
    "verbose": (True, ()),
    "class_weight": ({"yes": 9.0}, ()),
}
CASES = [
    (kind, way, name)
    for kind in ("Classifier", "Regressor")
    for way in ("fit", "partial_fit")
    for name in getattr(gt.sklearn, kind)().get_params()
]


@pytest.mark.parametrize(("kind", "way", "name"), CASES)
def test_a_parameter_set_between_trainings_counts_or_is_refused(
    kind: str, way: str, name: str, capsys: Any
) -> None:
    y = LABELS if kind == "Classifier" else NUMBERS
    first = {"classes": ["no", "yes"]} if (kind, way) == ("Classifier", "partial_fit") else {}
    settings = {"units": (), "epochs": 1, "learning_rate": 0.01, "random_state": 0}

    def outcome(**changed: Any) -> Any:
        made = getattr(gt.sklearn, kind)(warm_start=way == "fit", **settings)
        getattr(made, way)(X, y, **first)
        made = pickle.loads(pickle.dumps(made)).set_params(**changed)
        capsys.readouterr()
        getattr(made, way)(X, y)
        assert len({len(values) for values in made.history_.values()} | {made.n_epochs_}) == 1
        values = [v.tolist() for v in made.model_.trainable_variables]
        return repr((values, sorted(made.history_.items()))), tuple(capsys.readouterr())

    value, without = CHANGED[name]
    if name in ("model", "units"):
        with pytest.raises(ValueError, match=f"{name} was changed from .* needs a new model"):
            outcome(**{name: value})
    else:
        assert (outcome(**{name: value}) == outcome()) is (way in without)


def test_an_optimizer_goes_on_unless_it_was_changed() -> None:
    made = gt.sklearn.Regressor(units=(), epochs=1, warm_start=True).fit(X, NUMBERS)
    steps = made._optimizer.iterations.item()
    same = gt.training.Adam()
    assert made.set_params(optimizer=same).fit(X, NUMBERS)._optimizer.iterations.item() == 2 * steps
    made.set_params(learning_rate=0.5).fit(X, NUMBERS)
    made.set_params(learning_rate=None).fit(X, NUMBERS)
    assert made._optimizer.iterations.item() == 4 * steps
    assert made._optimizer.learning_rate.item() == same.learning_rate.item()
    same.learning_rate = 0.25  # the user's own object
    made.fit(X, NUMBERS)
    assert (made._optimizer.iterations.item(), made._optimizer.learning_rate.item()) == (
        steps,
        0.25,
    )


def test_classes_of_parts_have_their_weights() -> None:
    classes = ["no", "yes"]
    part = np.repeat("no", 96)
    for weights, factor in (({"yes": 3.0}, 1.0), ({"no": 3.0}, 3.0)):
        made, plain = (
            gt.sklearn.Classifier(units=(), class_weight=given, random_state=0)
            for given in (weights, None)
        )
        losses = [each.partial_fit(X, part, classes).history_["loss"][0] for each in (made, plain)]
        assert 0.6 * factor < losses[0] / losses[1] < 1.1 * factor
    with pytest.raises(ValueError, match="partial_fit sees a part of them; pass a dictionary"):
        gt.sklearn.Classifier(class_weight="balanced").partial_fit(X, LABELS, classes)
    with pytest.raises(ValueError, match="classes holds 1 class"):
        gt.sklearn.Classifier().partial_fit(X, part, ["no"])


def test_units_of_another_model_are_refused() -> None:
    with pytest.raises(ValueError, match="units=8 are those of the default model"):
        gt.sklearn.Regressor(single, units=8).fit(X, NUMBERS)


def mean_log(y: Any, p: Any) -> Any:
    return -gt.log(gt.clip(gt.take_along_axis(p, gt.cast(y, "int64")[:, None], -1), 1e-7, 1.0))


class OfLogits:
    from_logits = True

    def __call__(self, y: Any, p: Any) -> Any:
        return gt.reshape(gt.mean(p * p, -1), (-1,))


FORMS = [("softmax", mean_log, "as it is"), (None, own_loss, "softmax")]
FORMS += [("relu", own_loss, "unclear"), ("relu", OfLogits(), "softmax")]
for _loss in ("SparseCategoricalCrossentropy", "CategoricalCrossentropy"):
    FORMS.append(("sigmoid", getattr(gt.training.losses, _loss)(from_logits=False), "divided"))


@pytest.mark.parametrize(("activation", "loss", "form"), FORMS)
def test_outputs_become_probabilities_once(
    activation: Any, loss: Any, form: str, recwarn: Any
) -> None:
    def build(outputs: int) -> Any:
        return gt.layers.Sequential([gt.layers.Dense(outputs, activation=activation)])

    made = gt.sklearn.Classifier(build, loss=loss, epochs=1, random_state=0, metrics=[])
    made.fit(X, LABELS)
    assert any("unclear whether they are logits" in str(w.message) for w in recwarn) is (
        form == "unclear"
    )
    outputs = made.model_(X).numpy()
    softmax = np.exp(outputs) / np.exp(outputs).sum(1, keepdims=True)
    right = {"as it is": outputs, "divided": outputs / outputs.sum(1, keepdims=True)}
    for _ in range(2):
        np.testing.assert_allclose(made.predict_proba(X), right.get(form, softmax), rtol=1e-6)
        made.set_params(loss="binary_crossentropy")  # the model was trained with another


@pytest.mark.parametrize("units", ["64", 2.5, (2.7,), 0, (8, -1), ("8",), None])
def test_sizes_that_are_no_numbers_of_units_are_refused(units: Any) -> None:
    with pytest.raises(ValueError, match="units is the size of a hidden layer"):
        gt.sklearn.Classifier(units=units, epochs=1).fit(np.eye(4), [0, 1, 0, 1])


@pytest.mark.parametrize("place", range(3))
@pytest.mark.parametrize("kind", ["Classifier", "Regressor"])
def test_hidden_values_of_masked_arrays_are_no_data(kind: str, place: int) -> None:
    data: list[Any] = [np.eye(4), np.array([0, 1, 0, 1]), np.ones(4)]
    estimator = getattr(gt.sklearn, kind)(epochs=1).fit(*data)
    data[place] = np.ma.masked_equal(data[place], 1)
    with pytest.raises(TypeError, match="masked array, whose hidden values would become data"):
        estimator.fit(*data)
    with pytest.raises(TypeError, match="masked array, whose hidden values would become data"):
        estimator.predict(np.ma.masked_equal(np.eye(4), 1))


@pytest.mark.parametrize("model", [[8, 8], "dense", lambda n: None, lambda n: gt.layers.Dense])
def test_something_that_is_not_a_model_is_refused(model: Any) -> None:
    with pytest.raises(TypeError, match="model is a model, or a function of the number of outputs"):
        gt.sklearn.Regressor(model, epochs=1).fit(np.eye(4), np.ones(4))

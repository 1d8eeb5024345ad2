"""What a module adds to the loss, and the rules of its weights, come back from a file."""

from __future__ import annotations

import copy
import gc
import pickle
import re
import warnings
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from rewriting import Draft, rewritten

import gradtape as gt
from gradtape import layers, training

RANDOM = np.random.default_rng(0)
X = RANDOM.normal(size=(8, 3)).astype("float32")
Y = RANDOM.normal(size=(8, 2)).astype("float32")


class Sampling(layers.Layer):
    """Adds another loss in training."""

    def call(self, x: Any, training: bool = False) -> Any:
        self.add_loss(gt.mean(x**2) * (2.0 if training else 1.0))
        return x


class Coder(gt.Model):
    """A model with losses of its own, of a layer, and of what a layer gives."""

    def __init__(self) -> None:
        super().__init__()
        self.encoder = layers.Dense(3, kernel_regularizer=lambda w: gt.sum(w**2))
        self.sampling = Sampling()
        self.decoder = layers.Dense(2, activity_regularizer="l2")

    def call(self, x: Any, training: bool = False) -> Any:
        z = self.sampling(self.encoder(x), training=training)
        self.add_loss(0.1 * gt.sum(z))
        return self.decoder(z)


class Around(gt.Module):
    """A module that is not a layer."""

    def __init__(self) -> None:
        super().__init__()
        self.coder = Coder()

    def __call__(self, x: Any, training: bool = False) -> Any:
        return self.coder(x, training=training)


class Decorated(Around):
    @gt.function
    def __call__(self, x: Any, training: bool = False) -> Any:
        return self.coder(x, training=training)


class Ruled(layers.Layer):
    def build(self, shape: Any) -> None:
        self.w = self.add_weight((3, 2), name="w", regularizer="l1", constraint="non_neg")
        self.v = self.add_weight((2, 2), name="v", regularizer="orthogonal_regularizer")

    def call(self, x: Any) -> Any:
        return x @ self.w @ self.v


class OwnDense(layers.Dense):
    """A subclass of a layer, with that one's rules."""


def _functional() -> gt.Model:
    x = gt.Input((3,))
    return gt.Model(x, layers.Dense(2, activity_regularizer="l2")(Sampling()(x)))


def _own_dense() -> Any:
    rules = {"kernel_regularizer": "l1", "kernel_constraint": "max_norm"}
    return layers.Sequential([OwnDense(2, activity_regularizer="l2", **rules)])


MODELS: dict[str, Callable[[], Any]] = {
    "functional": _functional,
    "subclass of Model": Coder,
    "module": Around,
    "own layers": lambda: layers.Sequential([Sampling(), Ruled()]),
    "subclass of a layer": _own_dense,
    "nested": lambda: layers.Sequential([Coder()]),
}


def _evaluated(model: Any) -> float:
    return training.evaluate(model, (X, Y), loss="mse", metrics=[])["loss"]


def _fitted(model: Any) -> list[float]:
    settings: dict[str, Any] = {"shuffle": False, "verbose": 0, "batch_size": 4, "epochs": 2}
    optimizer = training.SGD(0.05)
    return training.fit(model, (X, Y), loss="mse", optimizer=optimizer, **settings).history["loss"]


def _loaded(model: Any, path: Path) -> Any:
    gt.save(model, path)
    return gt.load(path)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("make", MODELS.values(), ids=MODELS)
def test_a_loaded_model_has_the_losses_of_the_model(
    make: Callable[[], Any], tmp_path: Path
) -> None:
    model = make()
    model(X)
    loaded = _loaded(model, tmp_path / "a.h5")
    others = [
        loaded,
        _loaded(loaded, tmp_path / "b.h5"),
        pickle.loads(pickle.dumps(loaded)),
        copy.deepcopy(loaded),
    ]
    for other in others:
        assert _evaluated(other) == pytest.approx(_evaluated(model), rel=1e-6)
    history = _fitted(model)
    for other in others:
        assert _fitted(other) == pytest.approx(history, rel=1e-6)
        for ours, theirs in zip(model.variables, other.variables, strict=True):
            np.testing.assert_allclose(theirs, ours, rtol=1e-5, atol=1e-6)


def test_a_decorated_call_keeps_the_losses_of_the_layers_in_it(tmp_path: Path) -> None:
    plain, model = Around(), Decorated()
    plain(X), model(X)
    for a, b in zip(plain.variables, model.variables, strict=True):
        a.assign(b)
    loaded = _loaded(model, tmp_path / "m.h5")
    assert _evaluated(loaded) == pytest.approx(_evaluated(plain), rel=1e-6)


def test_losses_are_those_of_the_last_call(tmp_path: Path) -> None:
    model = layers.Sequential([Sampling()])
    model(X)
    loaded = _loaded(model, tmp_path / "m.h5").layers[0]
    for mode, factor in ((False, 1.0), (True, 2.0), (False, 1.0)):
        loaded(X, training=mode)
        assert [float(x) for x in loaded.losses] == [pytest.approx(factor * np.mean(X**2))]


def test_a_loaded_layer_inside_another_model_adds_its_losses(tmp_path: Path) -> None:
    x = gt.Input((3,))
    model = gt.Model(x, Sampling()(x))
    loaded = _loaded(model, tmp_path / "m.h5")
    again = layers.Sequential([loaded])
    again(X), again(X)
    assert [float(x) for x in again.losses] == [pytest.approx(np.mean(X**2))]


def test_constraints_of_a_loaded_module_are_applied(tmp_path: Path) -> None:
    model = layers.Sequential([Ruled()])
    model(X)
    loaded = _loaded(model, tmp_path / "m.h5").layers[0]
    loaded.w.assign(np.full((3, 2), -1.0))
    loaded.apply_constraints()
    assert loaded.w.tolist() == [[0.0] * 2] * 3
    assert len(loaded.losses) == 2


def test_an_attribute_called_losses_stays_what_it_is(tmp_path: Path) -> None:
    module = Around()
    module.losses = [1.0]
    module(X)
    assert _loaded(module, tmp_path / "m.h5").losses == [1.0]


def test_saving_leaves_the_losses_of_the_last_call(tmp_path: Path) -> None:
    model = Coder()
    model(X)
    before = [float(x) for x in model.losses]
    gt.save(model, tmp_path / "m.h5")
    assert [float(x) for x in model.losses] == before


def test_a_loss_that_differs_from_the_trace_is_refused(tmp_path: Path) -> None:
    class Counting(layers.Layer):
        calls = 0

        def call(self, x: Any) -> Any:
            Counting.calls += 1
            self.add_loss(gt.sum(x) * float(Counting.calls))
            return x

    model = layers.Sequential([Counting()])
    model(X)
    with pytest.raises(gt.saving.SaveError, match="does not give the output 1"):
        gt.save(model, tmp_path / "m.h5")


@pytest.mark.filterwarnings("ignore:save")
def test_a_rule_that_cannot_be_traced_is_named(tmp_path: Path) -> None:
    class Own(layers.Layer):
        def build(self, shape: Any) -> None:
            self.w = self.add_weight((3, 2), name="w", regularizer=lambda w: np.sum(w.numpy()))

        def call(self, x: Any) -> Any:
            return x @ self.w

    model = layers.Sequential([Own()])
    model(X)
    with pytest.warns(UserWarning, match="own: the regularizer of 'w'"):
        gt.save(model, tmp_path / "m.h5")


def test_what_trains_is_kept(tmp_path: Path) -> None:
    model = Coder()
    model(X)
    model.encoder.trainable = False
    model.decoder.bias.trainable = False
    loaded = _loaded(model, tmp_path / "m.h5")
    names = lambda x: [v.shape for v in x.trainable_variables]  # noqa: E731
    assert names(loaded) == names(model) == [(3, 2)]
    loaded.encoder.trainable = True
    assert len(loaded.trainable_variables) == 3


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("added", [99]),
        ("added", ["0"]),
        ("added", 1),
        ("masks", [99]),
        ("masks", [0, 0]),
        ("masks", 1),
        ("regularizers", [[99, 0]]),
        ("regularizers", [[0, 99]]),
        ("regularizers", [[0]]),
        ("constraints", [0]),
        ("constraints", {}),
    ],
)
def test_a_file_that_lies_about_losses_is_refused(key: str, value: Any, tmp_path: Path) -> None:
    model = layers.Sequential([Ruled(), Sampling()])
    model(X)
    gt.save(model, tmp_path / "m.h5")

    def change(draft: Draft) -> None:
        if key in ("added", "masks"):
            place = next(path for path, text in draft.texts.items() if '"added"' in text)
            draft.put({**draft.json(place), key: value}, place)
            return
        manifest = draft.json()
        next(x for x in manifest["modules"] if key in x)[key] = value
        draft.put(manifest)

    with pytest.raises(gt.saving.DamagedFile):
        gt.load(rewritten(tmp_path / "m.h5", change))


def functional() -> gt.Model:
    words = gt.Input((4,), dtype="int32")
    steps = layers.Embedding(5, 3, mask_zero=True)(words)
    return gt.Model(words, [layers.Dense(3)(steps), layers.GlobalAveragePooling1D()(steps)])


class Tagger(gt.Module):
    """Returns what a model of layers returns, with its mask."""

    def __init__(self) -> None:
        super().__init__()
        self.model = layers.Sequential([layers.Embedding(5, 3, mask_zero=True), layers.Dense(3)])

    def __call__(self, x: Any) -> Any:
        return self.model(x), gt.zeros((3,))


@pytest.mark.parametrize("make", [functional, Tagger])
def test_files_keep_masks_of_padding(make: Callable[[], Any], tmp_path: Path) -> None:
    words = np.array([[1, 2, 0, 0], [0, 0, 0, 0], [1, 1, 3, 4]], "int32")
    model = make()
    model(words)
    data = (words, [np.abs(words - 2), np.zeros((3, 3))])
    losses = ["sparse_categorical_crossentropy", None]
    expected = training.evaluate(model, data, loss=losses, metrics=[])["loss"]
    for _ in range(2):  # a loaded model saves them again
        model = _loaded(model, tmp_path / "m.h5")
        found, rest = model(words)
        np.testing.assert_array_equal(layers.mask_of(found), words > 0)
        assert layers.mask_of(rest) is None
        for compile in (False, True):
            run = training.evaluate(model, data, loss=losses, metrics=[], compile=compile)
            assert run["loss"] == pytest.approx(expected, rel=1e-6)


class Inside(gt.Model):
    """A model that calls a layer in a decorated function."""

    def __init__(self, layer: Any) -> None:
        super().__init__()
        self.part = layer

    @gt.function
    def encoded(self, x: Any) -> Any:
        return self.part(x)

    def call(self, x: Any, training: bool = False) -> Any:
        return self.encoded(x)


class Called(Inside):
    @gt.function
    def call(self, x: Any, training: bool = False) -> Any:
        return self.part(x)


class Wrapped(Inside):
    def __init__(self, layer: Any) -> None:
        super().__init__(layer)
        self.whole = gt.function(self.part)

    def call(self, x: Any, training: bool = False) -> Any:
        return self.whole(x)


class Whole(gt.Module):
    """A decorated module that is not a layer."""

    def __init__(self, layer: Any) -> None:
        super().__init__()
        self.part = layer

    @gt.function
    def __call__(self, x: Any) -> Any:
        return self.part(x)


DECORATED: dict[str, Callable[[Any], Any]] = {
    "helper": Inside,
    "call": Called,
    "wrapped": Wrapped,
    "module": Whole,
    "nested": lambda layer: layers.Sequential([Called(layer)]),
}
decorated = pytest.mark.parametrize("around", DECORATED.values(), ids=DECORATED)


@decorated
def test_files_keep_the_losses_of_layers_in_decorated_functions(
    around: Callable[[Any], Any], tmp_path: Path
) -> None:
    layer = layers.Dense(2, activity_regularizer="l2")
    model = around(layer)
    model(X)
    expected = _evaluated(layers.Sequential([layer]))
    loaded = _loaded(model, tmp_path / "m.h5")
    assert _evaluated(loaded) == pytest.approx(expected, rel=1e-6)


@decorated
def test_files_keep_the_masks_of_layers_in_decorated_functions(
    around: Callable[[Any], Any], tmp_path: Path
) -> None:
    words = np.array([[1, 2, 0, 0], [0, 0, 0, 0], [1, 1, 3, 4]], "int32")
    model = around(layers.Sequential([layers.Embedding(5, 3, mask_zero=True), layers.Dense(3)]))
    model(words)
    loaded = _loaded(model, tmp_path / "m.h5")
    np.testing.assert_array_equal(layers.mask_of(loaded(words)), words > 0)


def test_a_frozen_model_whose_graph_moves_statistics_is_told(tmp_path: Path) -> None:
    class Block(layers.Layer):
        def __init__(self) -> None:
            super().__init__()
            self.norm = layers.BatchNorm()

        def call(self, x: Any, training: bool = False) -> Any:
            return self.norm(x, training=training)

    model = Block()
    model(X)
    loaded = _loaded(model, tmp_path / "m.h5")
    loaded(X, training=True)
    loaded.trainable = False
    loaded(X)
    with pytest.warns(UserWarning, match=r"'block'.* is frozen, but its graph .* moving_mean"):
        loaded(X, training=True)
    model.trainable = False
    before = model.norm.moving_mean.numpy()
    _loaded(model, tmp_path / "m.h5")(X, training=True)
    np.testing.assert_array_equal(before, model.norm.moving_mean)


def test_masks_of_other_dtypes_are_kept_as_booleans(tmp_path: Path) -> None:
    class Counting(layers.Layer):
        makes_mask = True

        def call(self, x: Any) -> Any:
            return x[..., None] * gt.ones((2,), "int32")

        def compute_mask(self, x: Any, mask: Any = None) -> Any:
            return gt.cast(x > 0, "int32")

    words = np.array([[1, 2, 0, 0], [1, 1, 3, 4]], "int32")
    model = layers.Sequential([Counting()])
    np.testing.assert_array_equal(layers.mask_of(model(words)), words > 0)
    loaded = _loaded(Tagged(model, words), tmp_path / "m.h5")
    np.testing.assert_array_equal(layers.mask_of(loaded(words)), words > 0)


class Tagged(gt.Module):
    """A module that returns what a model returns."""

    def __init__(self, model: Any, x: Any) -> None:
        super().__init__()
        self.model = model
        self(x)

    def __call__(self, x: Any) -> Any:
        return self.model(x)


class Twins(gt.Module):
    def __init__(self) -> None:
        super().__init__()
        self.model = layers.Sequential([layers.Embedding(5, 3, mask_zero=True)])
        self(np.zeros((1, 2), "int32"))

    def __call__(self, x: Any) -> Any:
        return self.model(x), x > 1, x > 2


@pytest.mark.parametrize(
    ("masks", "loads"),
    [([None, 1, None], True), ([None, 2, 1], True), ([0, None, None], False)],
)
def test_masks_in_a_forged_file_keep_no_result_alive(
    masks: list[Any], loads: bool, tmp_path: Path
) -> None:
    gt.save(Twins(), tmp_path / "m.h5")

    def change(draft: Draft) -> None:
        place = next(path for path, text in draft.texts.items() if '"masks"' in text)
        draft.put({**draft.json(place), "masks": masks}, place)

    path = rewritten(tmp_path / "m.h5", change)
    if not loads:
        with pytest.raises(gt.saving.DamagedFile, match="a mask does not hold booleans"):
            gt.load(path)
        return
    results = gt.load(path)(np.ones((1, 2), "int32"))
    held = [weakref.ref(result) for result in results]
    del results
    gc.collect()
    assert [x() for x in held] == [None] * 3


def test_a_forged_term_of_the_loss_that_is_no_scalar_is_refused(tmp_path: Path) -> None:
    model = layers.Sequential([Sampling()])
    model(X)
    gt.save(model, tmp_path / "m.h5")

    def change(draft: Draft) -> None:
        place = next(path for path, text in draft.texts.items() if '"added"' in text)
        draft.put({**draft.json(place), "added": [0]}, place)

    with pytest.raises(gt.saving.DamagedFile, match="is not a scalar"):
        gt.load(rewritten(tmp_path / "m.h5", change))


class Limited(layers.Layer):
    def __init__(self, **rules: Any) -> None:
        super().__init__()
        self._rules = rules

    def build(self, shape: Any) -> None:
        self.w = self.add_weight((3, 2), name="w", **vars(self).pop("_rules"))

    def call(self, x: Any) -> Any:
        return x @ self.w


@pytest.mark.parametrize(
    ("rules", "words"),
    [
        ({"regularizer": lambda w: gt.sum(w, axis=0)}, "does not return a scalar"),
        ({"constraint": lambda w: gt.sum(w, axis=0)}, r"a tensor of the shape \(3, 2\)"),
    ],
)
def test_a_rule_of_the_wrong_kind_is_left_out(rules: Any, words: str, tmp_path: Path) -> None:
    model = layers.Sequential([Limited(**rules)])
    model(X)
    with pytest.warns(UserWarning, match=words):
        loaded = _loaded(model, tmp_path / "m.h5")
    np.testing.assert_array_equal(loaded(X), model(X))


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize(
    "rules",
    [
        {"regularizer": lambda w: 0.0},
        {"regularizer": lambda w: gt.cast(gt.sum(w), "float64")},
        {"regularizer": gt.function(lambda w, rate=0.5: gt.sum(w) * rate)},
        {"constraint": lambda w: w},
    ],
)
def test_unusual_rules_come_back(rules: Any, tmp_path: Path) -> None:
    model = layers.Sequential([Limited(**rules)])
    model(X)
    loaded = _loaded(_loaded(model, tmp_path / "a.h5"), tmp_path / "b.h5")
    assert _evaluated(loaded) == pytest.approx(_evaluated(model), rel=1e-6)


@pytest.mark.parametrize("kind", ["regularizers", "constraints"])
def test_a_forged_rule_that_does_not_fit_its_weight_is_refused(kind: str, tmp_path: Path) -> None:
    model = layers.Sequential([Ruled()])
    model(X)
    gt.save(model, tmp_path / "m.h5")

    def change(draft: Draft) -> None:
        manifest = draft.json()
        record = next(x for x in manifest["modules"] if kind in x)
        names = [x["name"] for x in manifest["functions"]]
        record[kind][0][1] = names.index("call" if "call" in names else "__call__")
        draft.put(manifest)

    with pytest.raises(gt.saving.DamagedFile, match=f"{kind}: function .* does not fit"):
        gt.load(rewritten(tmp_path / "m.h5", change))


@decorated
@pytest.mark.parametrize("compile", [False, True])
def test_decorated_parts_train_with_the_losses_of_their_layers(
    around: Callable[[Any], Any], compile: bool
) -> None:
    found = []
    for make in (around, lambda layer: layers.Sequential([layer])):
        gt.random.set_seed(0)
        model = make(layers.Dense(2, activity_regularizer="l2", kernel_initializer="ones"))
        model(X)
        options: dict[str, Any] = {"batch_size": 4, "epochs": 2, "shuffle": False, "verbose": 0}
        history = training.fit(model, (X, Y), loss="mse", compile=compile, **options)
        found.append([*history.history["loss"], _evaluated(model)])
    assert found[0] == pytest.approx(found[1], rel=1e-5)


@decorated
def test_padding_in_decorated_parts_does_not_count(around: Callable[[Any], Any]) -> None:
    words = np.array([[1, 2, 0, 0], [0, 0, 0, 0], [1, 1, 3, 4]], "int32")
    found = []
    for make in (around, lambda layer: layer):
        gt.random.set_seed(0)
        embedding = layers.Embedding(5, 3, mask_zero=True, embeddings_initializer="ones")
        model = make(layers.Sequential([embedding, layers.Dense(1, kernel_initializer="ones")]))
        model(words)
        data = (words, words[..., None] * 100.0)
        found.append(training.evaluate(model, data, loss="mse", metrics=[])["loss"])
    assert found[0] == pytest.approx(found[1], rel=1e-6)


class Normed(gt.Module):
    def __init__(self) -> None:
        super().__init__()
        self.stem = layers.Sequential([layers.Dense(3), layers.BatchNorm(), layers.Dropout(0.1)])
        self.norm = layers.BatchNorm(scale=False, center=False)
        self.passes = gt.Variable(0.0, trainable=False)

    def __call__(self, x: Any, training: bool = False) -> Any:
        self.passes.assign_add(1.0)
        return self.norm(self.stem(x, training=training), training=training)


class NormedByDefault(Normed):
    def __call__(self, x: Any, training: bool = True) -> Any:
        return super().__call__(x, training)


class NormedDecorated(Normed):
    @gt.function
    def __call__(self, x: Any, training: bool = False) -> Any:
        return super().__call__(x, training)


def _normed_graph() -> Any:
    x = layers.Input((3,))
    return gt.Model(x, layers.BatchNorm()(layers.Dense(2)(x)))


def _normed_block() -> Any:
    return layers.Sequential([layers.Dense(3), _normed_graph()])


def _statistics(part: Any) -> dict[str, Any]:
    variables = part.named_variables.items()
    return {path: x.numpy().tolist() for path, x in variables if "moving" in path}


IN_TRAINING: Any = ((X,), {"training": True})


@pytest.mark.parametrize(
    ("make", "frozen", "call", "said"),
    [
        (_normed_graph, lambda m: [m.layers[1]], IN_TRAINING, r"its part layers\.1 is frozen, but"),
        (_normed_graph, lambda m: [m.layers[0]], IN_TRAINING, None),
        (_normed_block, lambda m: [m.layers[1].layers[1]], IN_TRAINING, r"its part layers\.1 is"),
        (Normed, lambda m: [m.norm], IN_TRAINING, "'normed', saved from class Normed: its part n"),
        (Normed, lambda m: [m.norm], ((X, True), {}), "its part norm is frozen"),
        (Normed, lambda m: [m.norm], ((X,), {}), None),
        (NormedByDefault, lambda m: [m.norm], ((X,), {}), "its part norm is frozen"),
        (NormedDecorated, lambda m: [m.norm], IN_TRAINING, "its part norm is frozen"),
        (
            Normed,
            lambda m: [m.stem],
            IN_TRAINING,
            r"stem\.layers\.1 is .*moving_m.*, moving_v",
        ),
        (
            Normed,
            lambda m: [m.stem, m.norm],
            IN_TRAINING,
            r"parts norm, stem\.layers\.1 are",
        ),
        (Normed, lambda m: [m.stem.layers[2]], IN_TRAINING, None),
    ],
)
def test_a_frozen_part_whose_statistics_a_graph_moves_is_told(
    make: Any, frozen: Any, call: Any, said: str | None, tmp_path: Path
) -> None:
    model, (args, kwargs) = make(), call
    model(X, training=True)
    loaded = _loaded(model, tmp_path / "m.h5")
    for part in frozen(loaded):
        part.trainable = False
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        loaded(*args, **kwargs)
    assert [bool(re.search(said or "", str(x.message))) for x in told] == [True] * bool(said)
    for part in frozen(loaded):
        part.trainable = True
    with warnings.catch_warnings(action="error"):
        loaded(*args, **kwargs)
    for part in frozen(model):  # what is frozen before it is saved stays as it is
        part.trainable = False
    still = _loaded(model, tmp_path / "m.h5")
    before = [_statistics(part) for part in frozen(still)]
    with warnings.catch_warnings(action="error"):
        still(*args, **kwargs)
    assert [_statistics(part) for part in frozen(still)] == before
    for part in frozen(still):
        part.trainable = True
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        still(*args, **kwargs)
    shown = r"trainable, but .* when (it was|they were) frozen"
    assert [bool(re.search(shown, str(x.message))) for x in told] == [True] * bool(said)
    assert [_statistics(part) for part in frozen(still)] == before


def test_a_rule_that_differs_from_its_trace_is_left_out_of_a_file_that_loads(
    tmp_path: Path,
) -> None:
    class Drawn(gt.layers.Layer):
        def build(self, shape: Any) -> None:
            self.w = self.add_weight(
                (3,), "ones", "w", regularizer=lambda w: gt.sum(w) * RANDOM.random()
            )

        def call(self, x: Any) -> Any:
            return x * self.w

    layer = Drawn()
    x = np.ones((2, 3), "float32")
    layer(x)
    with pytest.warns(UserWarning, match="not saved: .*the regularizer of 'w'"):
        gt.save(layer, tmp_path / "m.h5")
    assert gt.load(tmp_path / "m.h5")(x).tolist() == x.tolist()

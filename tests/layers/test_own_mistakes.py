"""Mistakes in layers and modules of one's own, and with the weights of any: what they are told."""

from __future__ import annotations

import re
import warnings
from typing import Any

import numpy as np
import pytest

import gradtape as gt
from gradtape import layers as L
from gradtape import training

X = np.ones((4, 2), "float32")
DATA = (X, np.ones((4, 1), "float32"))


@pytest.mark.parametrize(
    ("id_", "told"),
    [
        (-1, "expected integers from 0 to 9 (input_dim is 10), got -1; 1 of 4 are out of bounds"),
        (10, "expected integers from 0 to 9 (input_dim is 10), got 10; 1 of 4 are out of bounds"),
    ],
)
def test_an_embedding_names_the_integer_that_is_out_of_range(id_: int, told: str) -> None:
    layer = L.Embedding(10, 2)
    with pytest.raises(IndexError) as error:
        layer([[1, 2], [id_, 3]])
    assert str(error.value) == f"layer 'embedding' (Embedding): {told}"
    with pytest.raises(IndexError) as error:
        gt.function(layer)(np.array([[1, 2], [id_, 3]]))
    assert told.replace(" (input_dim is 10)", "") in str(error.value)


ROWS = gt.constant(np.zeros((10, 3), "float32"))
LOGITS = gt.constant(np.zeros((2, 10), "float32"))
PICKS: dict[str, Any] = {
    "Embedding": L.Embedding(10, 3),
    "take": lambda i: gt.take(ROWS, i, axis=0),
    "gather": lambda i: gt.gather(ROWS, i),
    "indexing": lambda i: ROWS[i],
    "at": lambda i: ROWS.at[i].set(1.0),
    "take_along_axis": lambda i: gt.take_along_axis(ROWS, i[:, None], axis=0),
    "embedding_lookup": lambda i: gt.nn.embedding_lookup(ROWS, i),
    "one_hot": lambda i: gt.one_hot(i, 10),
    "labels": lambda i: training.losses.sparse_categorical_crossentropy(i, LOGITS),
}


@pytest.mark.parametrize("wrong", [-1, 10, -12])
@pytest.mark.parametrize("name", PICKS)
def test_a_compiled_run_names_the_same_integer(name: str, wrong: int) -> None:
    found: list[Any] = []
    for run in (PICKS[name], gt.function(PICKS[name])):
        try:
            found.append(run(gt.constant(np.array([2, wrong]))).tolist())
        except (IndexError, ValueError) as error:
            named = str(wrong) in re.findall(r"-?\d+", str(error))
            found.append((type(error), "named" if named else str(error)))
    assert found[0] == found[1]
    assert found[0][1] == "named" or type(found[0]) is list


class Silent(L.Layer):
    def build(self, shape: Any) -> None:
        self.w = self.add_weight((shape[-1], 1))

    def call(self, x: Any) -> Any:
        x @ self.w


class SilentModule(gt.Module):
    def __init__(self) -> None:
        super().__init__()
        self.dense = L.Dense(1)

    def __call__(self, x: Any) -> Any:
        self.dense(x)


@pytest.mark.parametrize("make", [Silent, SilentModule])
@pytest.mark.parametrize(
    "use",
    [
        lambda layer: training.fit(layer, DATA, loss="mse", verbose=0),
        lambda layer: training.evaluate(layer, DATA, loss="mse"),
        lambda layer: training.predict(layer, X),
        lambda layer: L.Sequential([layer, L.Dense(1)])(X),
        lambda layer: L.Sequential([layer])(X),
        lambda layer: L.TimeDistributed(layer)(X[None]),
    ],
    ids=["fit", "evaluate", "predict", "before another", "last", "wrapped"],
)
def test_a_call_without_return_is_told(make: Any, use: Any) -> None:
    with pytest.raises(TypeError, match=r"returned None; end it(s call)? with"):
        use(make())


def test_a_layer_without_return_in_a_graph_is_told() -> None:
    with pytest.raises(TypeError, match=r"layer 'silent' \(Silent\): its call returned None"):
        Silent()(gt.Input((2,)))


@pytest.mark.parametrize("value", [np.ones((2, 3)), 0.5, np.float32(0.5)])
def test_a_weight_is_not_replaced_by_numbers(value: Any) -> None:
    layer = L.Dense(3)
    layer(X)
    kernel = layer.kernel
    with pytest.raises(TypeError, match=r"'kernel' is a variable, .* write .kernel.assign\(...\)"):
        layer.kernel = value
    assert layer.kernel is kernel
    layer.kernel = another = gt.Variable(np.ones((2, 3), "float32"))
    assert layer.kernel is another


def test_a_weight_that_a_tensor_replaces_is_told() -> None:
    layer = L.Dense(3)
    layer(X)
    with pytest.warns(UserWarning, match=r"'kernel' is a variable, and .* Tensor, .*, replaces it"):
        layer.kernel = layer.kernel - 0.1


def test_steps_that_are_differentiated_replace_weights() -> None:
    layer = L.Dense(1, use_bias=False)
    layer(X)
    kernel = layer.kernel
    with warnings.catch_warnings(action="error"), gt.GradientTape() as outer:
        with gt.GradientTape() as inner:
            loss = gt.sum(layer(X) ** 2)
        layer.kernel = kernel - 0.1 * inner.gradient(loss, kernel)
        loss = gt.sum(layer(X) ** 2)
    assert outer.gradient(loss, kernel) is not None
    layer.kernel = kernel


class Own(gt.Module):
    def __init__(self) -> None:
        super().__init__()
        self.w = gt.Variable([1.0, 2.0])
        self.cache: Any = np.zeros(2)


def test_a_variable_of_a_module_that_numbers_replace_is_told() -> None:
    module = Own()
    with pytest.warns(UserWarning, match=r"module 'own' \(Own\): 'w' is a variable, and .* Tensor"):
        module.w = module.w * 2
    with warnings.catch_warnings(action="error"):
        module.w = np.ones(2)  # it is no variable any more
        module.cache = gt.ones(2)
        module.v = module.w
        module.u = gt.Variable(1.0)
        module.u = gt.Variable(2.0)
        module.u = None


def test_arrays_that_do_not_train_are_listed() -> None:
    class Mix(gt.Module):
        def __init__(self) -> None:
            super().__init__()
            self.w, self.places, self._own = np.ones((2, 1), "float32"), np.arange(3), np.ones(2)

        def __call__(self, x: Any) -> Any:
            return x @ self.w

    model = L.Sequential([Mix(), L.Dense(1)])
    model(X)
    note = "Arrays, which do not train unless they are variables: layers/0/w (2, 1)"
    assert model.summary().splitlines()[-1] == note
    assert note in model.summary("html")
    with pytest.raises(ValueError, match=r"no trainable variables; .*\.Variable of w \(2, 1\)"):
        training.fit(Mix(), DATA, loss="mse", verbose=0)


def test_tensors_in_place_of_variables_that_do_not_train_are_told_under_a_tape_too() -> None:
    module = Own()
    module.mean = gt.Variable(np.zeros(2, "float32"), trainable=False)
    with gt.GradientTape(), pytest.warns(UserWarning, match="which is no variable of the module"):
        module.mean = 0.9 * module.mean + 0.1 * X[0]


def test_functions_of_weights_may_be_mapped() -> None:
    module = Own()
    held = module.w

    def with_weight(w: Any) -> Any:
        module.w = w
        try:
            return w * 2.0
        finally:
            module.w = held

    with warnings.catch_warnings(action="error"):
        gt.vmap(with_weight)(gt.ones((3, *held.shape)))


def test_layers_that_compute_the_weights_of_others_and_formulas_are_left_alone() -> None:
    class WeightNorm(L.Layer):
        def __init__(self, layer: Any) -> None:
            super().__init__()
            self.layer, self.v = layer, layer.kernel

        def call(self, x: Any) -> Any:
            self.layer.kernel = self.v / gt.sqrt(gt.sum(self.v**2))
            return self.layer(x)

    dense = L.Dense(1)
    dense(X)
    model = L.Sequential([WeightNorm(dense)])
    weight = gt.Variable(1.0)

    def loss(y: Any, p: Any) -> Any:
        scale = weight
        scale *= 2.0
        return gt.mean((y - p) ** 2, axis=-1) * scale

    with warnings.catch_warnings(action="error"):
        training.fit(model, DATA, loss="mse", verbose=0)
        training.evaluate(model, DATA, loss=loss)


@pytest.mark.parametrize("shape", [(2,), (3, 5), ()])
def test_an_initializer_of_another_shape(shape: Any) -> None:
    layer = gt.layers.Dense(1, kernel_initializer=lambda wanted, dtype: np.ones(shape, dtype))
    with pytest.raises(ValueError, match=r"'kernel' returned shape .* instead of \(3, 1\)"):
        layer(gt.ones((2, 3)))


@pytest.mark.parametrize(
    ("regularizer", "words"),
    [(lambda w: w * w, r"returned shape \(3, 1\)"), (lambda w: None, "is a return missing")],
)
def test_a_regularizer_that_returns_no_number(regularizer: Any, words: str) -> None:
    model = gt.layers.Sequential([gt.layers.Dense(1, kernel_regularizer=regularizer)])
    with pytest.raises(ValueError, match=f"regularizer of variable 'kernel' {words}|{words}"):
        gt.training.fit(model, (np.ones((8, 3)), np.ones((8, 1))), loss="mse", verbose=0)


def test_a_layer_may_say_that_it_is_built_as_in_keras() -> None:
    class Scaled(L.Layer):
        def build(self, shape: Any) -> None:
            self.scale = self.add_weight((shape[-1],), "ones", "scale")
            self.built = True

        def call(self, x: Any) -> Any:
            return x * self.scale

    layer = Scaled()
    assert not layer.built
    assert layer(X).tolist() == X.tolist()
    assert layer.built
    assert len(layer.variables) == 1

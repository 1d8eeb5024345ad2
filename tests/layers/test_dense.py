"""Layers that are made of ops alone: Dense, Activation, Flatten, Sequential, and Layer itself."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
import pytest
from gradcheck import check_gradients

import gradtape as gt
from gradtape import layers

RNG = np.random.default_rng(0)


def batch(*shape: int) -> Any:
    return RNG.normal(size=shape).astype("float32")


# -- Dense -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("shape", [(5,), (4, 5), (2, 3, 5), (0, 5)])
def test_dense_maps_the_last_axis(shape: tuple[int, ...]) -> None:
    layer = layers.Dense(3, bias_initializer=layers.initializers.Constant(0.5))
    x = batch(*shape)
    y = layer(x)
    assert y.shape == (*shape[:-1], 3)
    np.testing.assert_allclose(y.numpy(), x @ layer.kernel.numpy() + 0.5, rtol=1e-5, atol=1e-6)


def test_dense_has_kernel_and_bias_of_keras() -> None:
    layer = layers.Dense(3)
    assert not layer.built
    layer(batch(2, 5))
    assert layer.built
    assert layer.kernel.shape == (5, 3)
    assert layer.bias.shape == (3,)
    assert [v.name for v in layer.trainable_variables] == ["kernel", "bias"]
    limit = np.sqrt(6 / 8)
    assert np.abs(layer.kernel.numpy()).max() <= limit
    assert not layer.bias.numpy().any()


def test_dense_without_bias() -> None:
    layer = layers.Dense(3, use_bias=False)
    layer(batch(2, 5))
    assert layer.bias is None
    assert len(layer.variables) == 1


def test_dense_gradients_are_right_at_both_orders() -> None:
    layer = layers.Dense(3, activation="tanh")
    layer(RNG.normal(size=(4, 5)))

    def run(x: Any, kernel: Any, bias: Any) -> Any:
        return gt.tanh(x @ kernel + bias)

    check_gradients(run, RNG.normal(size=(4, 5)), layer.kernel.numpy(), RNG.normal(size=3))
    x = gt.constant(RNG.normal(size=(4, 5)))
    with gt.GradientTape() as tape:
        loss = gt.sum(layer(x) ** 2)
    kernel, bias = tape.gradient(loss, [layer.kernel, layer.bias])
    y = layer(x).numpy()
    inner = 2 * y * (1 - y**2)
    np.testing.assert_allclose(kernel.numpy(), x.numpy().T @ inner, rtol=1e-10)
    np.testing.assert_allclose(bias.numpy(), inner.sum(0), rtol=1e-10)


def test_weights_take_the_dtype_of_the_first_input_unless_told() -> None:
    for x, dtype, expected in (
        (batch(2, 3), None, "float32"),
        (batch(2, 3).astype("float64"), None, "float64"),
        (np.ones((2, 3), dtype="int64"), None, "float32"),
        (batch(2, 3), "float64", "float64"),
    ):
        layer = layers.Dense(2, dtype=dtype)
        assert layer(x).dtype == expected
        assert layer.kernel.dtype == expected


def test_dense_names_layer_and_shapes_when_the_last_axis_is_wrong() -> None:
    layer = layers.Dense(7, name="scores")
    layer(batch(2, 5))
    with pytest.raises(ValueError, match=r"'scores' \(Dense\).*\(\.\.\., 5\).*\(2, 4\).*\(5, 7\)"):
        layer(batch(2, 4))
    with pytest.raises(ValueError, match=r"\(\)"):
        layer(np.float32(1.0))


@pytest.mark.parametrize("units", [0, -3, 2.5, "4"])
def test_dense_refuses_units_that_are_no_positive_integer(units: Any) -> None:
    with pytest.raises(ValueError, match="units must be a positive integer"):
        layers.Dense(units)


def test_dense_must_know_its_inputs_when_it_is_traced_first() -> None:
    layer = layers.Dense(2)

    @gt.function(input_signature=[gt.TensorSpec([3, None])])
    def run(x: Any) -> Any:
        return layer(x)

    with pytest.raises(ValueError, match="last axis of its input must be known"):
        run(batch(3, 5))
    assert not layer.built


# -- activations and initializers ------------------------------------------------------------------


@pytest.mark.parametrize(
    ("activation", "expected"),
    [
        (None, lambda x: x),
        ("linear", lambda x: x),
        ("relu", lambda x: np.maximum(x, 0)),
        ("tanh", np.tanh),
        ("sigmoid", lambda x: 1 / (1 + np.exp(-x))),
        ("softplus", lambda x: np.log1p(np.exp(x))),
        ("elu", lambda x: np.where(x > 0, x, np.expm1(x))),
        ("softmax", lambda x: np.exp(x) / np.exp(x).sum(-1, keepdims=True)),
        (lambda x: x * x, lambda x: x * x),
    ],
)
def test_activations_by_name_or_function(activation: Any, expected: Any) -> None:
    x = batch(4, 3)
    y = layers.Activation(activation)(x)
    np.testing.assert_allclose(y.numpy(), expected(x), rtol=1e-5, atol=1e-6)


def test_unknown_activation_lists_the_known() -> None:
    with pytest.raises(ValueError, match=r"'rleu'.*relu.*softmax"):
        layers.Dense(2, activation="rleu")
    with pytest.raises(TypeError, match="a name or a callable, got 3"):
        layers.Activation(3)


def test_activation_with_a_custom_gradient() -> None:
    @gt.custom_gradient
    def halved(x: Any) -> Any:
        return x * 1.0, lambda g: g * 0.5

    x = gt.constant([1.0, 2.0])
    with gt.GradientTape() as tape:
        tape.watch(x)
        y = layers.Activation(halved)(x)
    assert tape.gradient(y, x).numpy().tolist() == [0.5, 0.5]


@pytest.mark.parametrize(
    ("name", "variance", "bound"),
    [
        ("glorot_uniform", 2 / 500, np.sqrt(6 / 500)),
        ("glorot_normal", 2 / 500, 2 * np.sqrt(2 / 500) / 0.8796),
        ("he_uniform", 2 / 300, np.sqrt(6 / 300)),
        ("he_normal", 2 / 300, 2 * np.sqrt(2 / 300) / 0.8796),
        ("random_normal", 0.0025, 1.0),
        ("random_uniform", 0.01 / 12, 0.05),
        ("zeros", 0.0, 0.0),
        ("ones", 0.0, 1.0),
    ],
)
def test_initializers_have_keras_variance_and_range(
    name: str, variance: float, bound: float
) -> None:
    values = layers.initializers.get(name)((300, 200), "float32")
    assert values.dtype == np.float32
    assert values.var() == pytest.approx(variance, rel=0.03)
    assert np.abs(values).max() <= bound * 1.001


def test_the_global_seed_governs_initial_weights() -> None:
    def kernel() -> Any:
        gt.random.set_seed(5)
        layer = layers.Dense(4)
        layer(batch(2, 3))
        return layer.kernel.numpy()

    first, second = kernel(), kernel()
    np.testing.assert_array_equal(first, second)
    other = layers.Dense(4)
    other(batch(2, 3))
    assert (other.kernel.numpy() != first).any()


def test_a_seeded_initializer_repeats_itself_and_a_function_is_called() -> None:
    seeded = layers.initializers.HeNormal(seed=3)
    np.testing.assert_array_equal(seeded((4, 4)), seeded((4, 4)))
    assert "seed=3" in repr(seeded)
    layer = layers.Dense(2, kernel_initializer=lambda shape, dtype: np.full(shape, 7, dtype))
    layer(batch(1, 3))
    assert (layer.kernel.numpy() == 7).all()
    with pytest.raises(ValueError, match=r"unknown initializer 'xavier'.*glorot_uniform"):
        layers.Dense(2, kernel_initializer="xavier")
    with pytest.raises(TypeError, match="got 3"):
        layers.Dense(2, kernel_initializer=3)


def test_fans_count_the_receptive_field() -> None:
    values = layers.initializers.HeUniform(seed=0)((3, 3, 8, 4))
    assert 0.9 < np.abs(values).max() / np.sqrt(6 / 72) <= 1
    assert np.abs(layers.initializers.GlorotUniform(seed=0)((9,))).max() <= np.sqrt(6 / 18)
    assert layers.initializers.GlorotUniform(seed=0)(()).shape == ()


# -- Flatten and Sequential ------------------------------------------------------------------------


def test_flatten_keeps_the_batch() -> None:
    flatten = layers.Flatten()
    assert flatten(batch(4, 2, 3)).shape == (4, 6)
    assert flatten(batch(4)).shape == (4, 1)
    assert flatten(batch(0, 2, 3)).shape == (0, 6)
    traced = gt.function(input_signature=[gt.TensorSpec([None, 2, 3])])(lambda x: flatten(x))
    assert traced(batch(5, 2, 3)).shape == (5, 6)
    with pytest.raises(ValueError, match=r"'flatten'.*\(\)"):
        flatten(np.float32(1.0))


class Doubling(gt.layers.Layer):
    def call(self, x: Any, training: bool = False) -> Any:
        return x * 2.0 if training else x


def test_sequential_applies_its_layers_and_passes_training_on() -> None:
    model = layers.Sequential([Doubling(), gt.exp])
    model.add(layers.Dense(2))
    assert [type(layer).__name__ for layer in model.layers] == ["Doubling", "Activation", "Dense"]
    x = batch(3, 4)
    at_rest, training = model(x), model(x, training=True)
    kernel = model.layers[2].kernel.numpy()
    np.testing.assert_allclose(at_rest.numpy(), np.exp(x) @ kernel, rtol=1e-5)
    np.testing.assert_allclose(training.numpy(), np.exp(2 * x) @ kernel, rtol=1e-5)
    assert list(model.named_variables) == ["layers/2/kernel", "layers/2/bias"]


def test_sequential_refuses_what_cannot_be_called() -> None:
    with pytest.raises(TypeError, match="expected layers or functions, got 5"):
        layers.Sequential([5])
    with pytest.raises(TypeError, match=r"got the class Flatten; pass an object: Flatten\(...\)"):
        layers.Sequential([layers.Flatten])


def test_empty_sequential_is_the_identity() -> None:
    np.testing.assert_array_equal(layers.Sequential()([[1.0, 2.0]]).numpy(), [[1.0, 2.0]])


# -- Layer -----------------------------------------------------------------------------------------


class Scale(gt.layers.Layer):
    """A layer as users write them."""

    def build(self, input_shape: Any) -> None:
        self.factor = self.add_weight((input_shape[-1],), "ones", "factor")
        self.count = self.add_weight((), "zeros", "count", trainable=False, dtype="int64")

    def call(self, x: Any) -> Any:
        return x * self.factor


def test_own_layers_are_built_once_and_give_gradients() -> None:
    layer = Scale()
    x = batch(2, 3)
    with gt.GradientTape() as tape:
        y = gt.sum(layer(x))
    factor = layer.factor
    np.testing.assert_allclose(tape.gradient(y, factor).numpy(), x.sum(0), rtol=1e-5)
    layer(x)
    assert layer.factor is factor
    assert layer.count.dtype == "int64"
    assert not layer.count.trainable


def test_variables_made_while_a_function_is_traced_are_real() -> None:
    model = layers.Sequential([layers.Dense(4, activation="relu"), Scale()])

    @gt.function(input_signature=[gt.TensorSpec([None, 3])])
    def run(x: Any) -> Any:
        return model(x)

    x = batch(5, 3)
    y = run(x)
    assert model.layers[0].kernel.numpy().shape == (3, 4)
    np.testing.assert_allclose(y.numpy(), model(x).numpy(), rtol=1e-6)
    with gt.GradientTape() as tape:
        loss = gt.sum(run(x))
    inside = tape.gradient(loss, model.trainable_variables)
    with gt.GradientTape() as tape:
        loss = gt.sum(model(x))
    for a, b in zip(inside, tape.gradient(loss, model.trainable_variables), strict=True):
        np.testing.assert_allclose(a.numpy(), b.numpy(), rtol=1e-6)


def test_a_build_that_fails_leaves_nothing_behind() -> None:
    class Broken(gt.layers.Layer):
        tries = 0

        def build(self, input_shape: Any) -> None:
            self.first = self.add_weight((2,), "ones")
            Broken.tries += 1
            if Broken.tries == 1:
                raise RuntimeError("no luck")

        def call(self, x: Any) -> Any:
            return x + self.first

    layer = Broken()
    with pytest.raises(RuntimeError, match="no luck"):
        layer(batch(1, 2))
    assert layer.variables == ()
    assert not layer.built
    layer(batch(1, 2))
    assert len(layer.variables) == 1


def test_layers_of_several_inputs() -> None:
    class Join(gt.layers.Layer):
        def build(self, input_shape: Any) -> None:
            self.shapes = input_shape

        def call(self, pair: Any) -> Any:
            return pair[0] @ pair[1]

    layer = Join()
    assert layer([batch(2, 3), batch(3, 4)]).shape == (2, 4)
    assert list(layer.shapes) == [(2, 3), (3, 4)]


# -- configurations --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "layer",
    [
        layers.Dense(3, activation="relu", use_bias=False, name="hidden"),
        layers.Dense(3, kernel_initializer=layers.initializers.HeNormal(seed=1), dtype="float64"),
        layers.Dense(3, activation=gt.tanh),
        layers.Activation("tanh"),
        layers.Activation(None),
        layers.BatchNorm(axis=1, momentum=0.5, scale=False, name="norm"),
        layers.Dropout(0.25, seed=4),
        layers.Flatten(),
    ],
    ids=lambda layer: repr(layer.get_config())[:40],
)
def test_a_config_is_json_and_rebuilds_the_layer(layer: Any) -> None:
    import json

    config = json.loads(json.dumps(layer.get_config()))
    twin = type(layer).from_config(config)
    assert twin.get_config() == config
    assert twin.name == layer.name


def test_a_function_in_a_config_comes_as_it_is_and_a_module_not_at_all() -> None:
    def own(x: Any) -> Any:
        return x

    assert layers.Dense(2, activation=own).get_config()["activation"] is own
    nested = layers.Activation(layers.Sequential([layers.Dense(2)]))
    assert nested.get_config()["activation"] is None
    assert len(nested.submodules) == 2


def test_a_layer_restored_by_setting_variables_works_on() -> None:
    layer = layers.Dense(3, activation="relu")
    x = batch(4, 5)
    expected = layer(x).numpy()
    twin = layers.Dense.from_config(layer.get_config())
    for name, variable in layer.named_variables.items():
        setattr(twin, name, gt.Variable(variable.numpy(), name=name))
    assert twin.built
    np.testing.assert_array_equal(twin(x).numpy(), expected)
    assert list(twin.named_variables) == ["kernel", "bias"]
    model = layers.Sequential.from_config({"name": "model"})
    model.layers = [twin, layers.Activation("tanh")]
    np.testing.assert_allclose(model(x).numpy(), np.tanh(expected), rtol=1e-6)
    gt.training.SGD(0.1).apply_gradients((gt.ones(v.shape), v) for v in model.trainable_variables)
    assert (twin(x).numpy() != expected).any()


def test_a_lost_initializer_says_so_when_it_is_needed() -> None:
    def mine(shape: Any, dtype: Any) -> Any:
        return np.zeros(shape, dtype)

    twin = layers.Dense.from_config(layers.Dense(2, kernel_initializer=mine).get_config())
    with pytest.raises(ValueError, match="'mine' was a Python function, which is not saved"):
        twin(batch(1, 3))


def test_a_copy_of_a_model_is_independent() -> None:
    model = layers.Sequential([layers.Dense(2)])
    x = batch(3, 4)
    before = model(x).numpy()
    twin = copy.deepcopy(model)
    twin.layers[0].kernel.assign_add(gt.ones((4, 2)))
    np.testing.assert_array_equal(model(x).numpy(), before)
    assert (twin(x).numpy() != before).any()


def test_the_plugins_list_layers_and_optimizers() -> None:
    modules = gt.registry().modules
    assert modules["layers.Dense"] is layers.Dense
    assert modules["layers.BatchNorm"] is layers.BatchNormalization
    assert modules["training.Adam"] is gt.training.Adam


def test_the_input_may_be_passed_by_name() -> None:
    layer = layers.Dense(2)
    x = batch(3, 4)
    np.testing.assert_array_equal(layer(x=x).numpy(), layer(x).numpy())
    with pytest.raises((TypeError, ValueError), match="None"):
        layer(None)


def test_a_layer_may_define_the_call_operator_itself() -> None:
    class Direct(gt.layers.Layer):
        def build(self, input_shape: Any) -> None:
            self.w = self.add_weight((input_shape[-1],), "ones")

        def __call__(self, x: Any) -> Any:
            return x * self.w

    class Tripled(Direct):
        def __call__(self, x: Any) -> Any:
            return super().__call__(x) * 3.0

    layer = Tripled()
    np.testing.assert_allclose(layer([[1.0, 2.0]]).numpy(), [[3.0, 6.0]])
    assert len(layer.variables) == 1


def test_a_layer_whose_call_is_a_traced_function() -> None:
    class Traced(gt.layers.Layer):
        @gt.function(input_signature=[gt.TensorSpec(None)])
        def __call__(self, x: Any) -> Any:
            return x * 2.0

    class Half(gt.layers.Layer):
        def build(self, input_shape: Any) -> None:
            self.w = self.add_weight((input_shape[-1],), "ones")

        @gt.function
        def call(self, x: Any) -> Any:
            return x * self.w * 0.5

    assert Traced()([1.0, 2.0]).numpy().tolist() == [2.0, 4.0]
    layer = Half()
    assert layer([1.0, 2.0]).numpy().tolist() == [0.5, 1.0]
    assert len(layer.call.concrete_functions) == 1

"""The configuration of a subclass whose constructor does not take the arguments of the base."""

import numpy as np
import pytest

import gradtape as gt
from gradtape.plugin import hookimpl, saved_classes


class Smooth(gt.layers.Layer, saved_as="tests.Smooth"):
    def __init__(self, strength, name=None):
        super().__init__(name=name)
        self.strength = strength

    def call(self, x):
        return x * self.strength


class Fixed(gt.layers.Layer, saved_as="tests.Fixed"):
    def __init__(self, strength):
        super().__init__(dtype="float64", activity_regularizer="l2")
        self.strength = strength

    def call(self, x):
        return x * self.strength


class Filled(gt.layers.Layer, saved_as="tests.Filled"):
    def __init__(self, kernel_initializer="ones", start=None, **rest):
        super().__init__(**rest)
        self.kernel_initializer = gt.layers.initializers.get(kernel_initializer)
        self.start = start  # an object, under any name

    def build(self, input_shape):
        self.kernel = self.add_weight(input_shape[-1:], self.kernel_initializer, name="kernel")

    def call(self, x):
        return x * self.kernel


class Steps(gt.training.Optimizer, saved_as="tests.Steps"):
    def __init__(self, learning_rate=0.1):
        super().__init__(learning_rate)

    def update(self, value, gradient, state, settings):
        return value - settings[0] * gradient, ()


class Plugin:
    @staticmethod
    @hookimpl
    def gradtape_modules():
        return saved_classes(globals())


@pytest.fixture(autouse=True)
def _plugin():
    with gt.register_plugin(Plugin(), "tests_own_arguments"):
        yield


def test_defaults_that_the_constructor_does_not_take_are_left_out(tmp_path):
    model = gt.layers.Sequential([Smooth(0.5, name="smooth_2"), gt.layers.Dense(1)])
    model(gt.ones((2, 3)))
    gt.save(model, tmp_path / "model.h5")
    again = gt.load(tmp_path / "model.h5").layers[0]
    assert type(again) is Smooth
    assert again.name == "smooth_2"
    assert again.get_config() == {"name": "smooth_2", "strength": 0.5}


def test_an_optimizer_without_options_comes_back():
    config = Steps(0.2).get_config()
    assert config == {"learning_rate": 0.2}
    assert Steps.from_config(config).get_config() == config
    assert Steps.from_config(config).name == Steps().name


def test_another_value_is_refused_with_the_remedy(tmp_path):
    layer = Fixed(0.5)
    layer(gt.ones((2, 3)))
    assert layer.get_config()["dtype"] == "float64"
    with pytest.raises(gt.saving.SaveError, match=r"'dtype'.*\*\*rest.*super\(\).__init__"):
        gt.save(layer, tmp_path / "layer.h5")


def test_initializers_are_saved_by_name_as_those_of_gradtapes_layers(tmp_path):
    start = gt.layers.initializers.Constant(2.0)
    model = gt.layers.Sequential([Filled("he_normal"), Filled(start, start)])
    want = model(gt.ones((2, 3))).numpy()
    gt.save(model, tmp_path / "model.h5")
    again = gt.load(tmp_path / "model.h5")
    assert (again(gt.ones((2, 3))).numpy() == want).all()
    first, second = (layer.get_config() for layer in again.layers)
    assert first["kernel_initializer"]["name"] == "he_normal"
    assert second["kernel_initializer"] == {"name": "constant", "config": {"value": 2.0}}
    copy = Filled.from_config(second)
    assert copy(gt.ones((1, 2))).tolist() == [[2.0, 2.0]]


def test_a_function_that_initialised_weights_is_saved_by_its_name_alone(tmp_path):
    layer = Filled(lambda shape, dtype: np.full(shape, 3.0, dtype))
    layer(gt.ones((2, 3)))
    gt.save(layer, tmp_path / "layer.h5")
    again = gt.load(tmp_path / "layer.h5")
    assert again(gt.ones((1, 3))).tolist() == [[3.0, 3.0, 3.0]]

"""What constructors say to arguments that they do not take, and to those of PyTorch."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import gradtape as gt
from gradtape import layers, training


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: layers.Dense(3, activaton="relu"), "Dense takes no argument 'activaton'; use act"),
        (lambda: layers.Dense(3, bias=False), "Dense takes no argument 'bias'; use use_bias"),
        (lambda: layers.Dense(3, input_shape=(4,)), r"'input_shape'; use gt.Input\(shape\) as the"),
        (lambda: layers.Dense(3, wibble=1), "it takes units, activation, use_bias"),
        (lambda: layers.Conv2D(3, 3, stride=2), "Conv2D takes no argument 'stride'; use strides"),
        (lambda: layers.LSTM(3, num_layers=2), "'num_layers'; use several layers"),
        (lambda: training.SGD(lr=0.1), "SGD takes no argument 'lr'; use learning_rate"),
        (lambda: training.Adam(decay=1e-3), "'decay'; use a schedule as learning_rate"),
        (lambda: training.Adam(betas=(0.9, 0.99)), "'betas'; use beta_1 and beta_2"),
        (lambda: training.AdamW(weight_decy=0.1), "'weight_decy'; use weight_decay"),
        (lambda: layers.Sequential(layers.Dense(3), layers.Dense(2)), "its layers in a list"),
        (lambda: layers.Sequential(layers.Dense(3)), "its layers in a list"),
        (lambda: gt.Input(6), r"a shape is a tuple of sizes, such as \(6,\)"),
    ],
)
def test_a_wrong_argument_is_told_with_the_right_one(make: Any, said: str) -> None:
    with pytest.raises(TypeError, match=said):
        make()


@pytest.mark.parametrize("shape", ["kernel", 4])
def test_a_weight_begins_with_its_shape(shape: Any) -> None:
    with pytest.raises(TypeError, match=rf"add_weight: .* comes first, got {shape!r}; as in add_w"):
        layers.Layer().add_weight(shape, (4, 1))


def test_a_module_with_a_call_of_layers_says_what_it_lacks() -> None:
    class Net(gt.Module):
        def call(self, x: Any) -> Any:
            return x

    with pytest.raises(TypeError, match=r"Net defines call, .* of a Module, .* from Model"):
        Net()(gt.ones(2))  # type: ignore[operator]


def test_a_model_needs_inputs_and_outputs() -> None:
    with pytest.raises(ValueError, match="Model: there are no inputs"):
        gt.Model([], [])


@pytest.mark.parametrize(
    ("home", "name", "said"),
    [
        (gt, "no_grad", "code outside of gt.GradientTape"),
        (gt, "manual_seed", "gt.random.set_seed"),
        (gt, "tensor", "gt.as_tensor"),
        (gt, "optim", "use gt.training"),
        (gt, "cat", "gt.concat"),
        (gt, "unsqueeze", "gt.expand_dims"),  # and not gt.squeeze
        (gt, "no_gradient", "gt.stop_gradient"),
        (gt, "jit", "gt.function"),
        (gt.data, "DataLoader", "gt.data.Dataset"),
        (gt.mixed_precision, "set_global_policy", "gt.mixed_precision.set_policy"),
        (gt.nn, "Linear", "gt.layers.Dense"),
        (layers, "Linear", "gt.layers.Dense"),
        (layers, "MaxPool2d", "gt.layers.MaxPooling2D"),
        (layers, "AvgPool1D", "gt.layers.AveragePooling1D"),
        (layers, "RandomFlip", "use gt.image.random_flip_left_right, in a function for gt.data"),
        (layers, "TextVectorization", "use gt.data.Tokenizer and gt.data.pad_sequences"),
        (layers, "InputSpec", "'InputSpec'; leave it out: a layer refuses other sizes"),
        (gt.datasets, "mnist", "use gt.datasets.load_digits.., or arrays that you read"),
        (gt, "applications", "use gt.layers, and gt.load_weights"),
        (training, "SwapEMAWeights", "use an optimizer with use_ema=True"),
        (training, "CrossEntropyLoss", "SparseCategoricalCrossentropy"),
    ],
)
def test_names_of_others_are_answered(home: Any, name: str, said: str) -> None:
    with pytest.raises(AttributeError, match=said):
        getattr(home, name)


def test_right_arguments_are_taken() -> None:
    assert layers.Sequential([np.tanh])(gt.zeros((1, 2))).shape == (1, 2)

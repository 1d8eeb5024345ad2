"""``tf.saved_model.SaveOptions``: with custom gradients, and without."""

from __future__ import annotations

import subprocess
import sys

import pytest

import gradtape.compat.tensorflow as tf


@tf.custom_gradient
def clip_gradients(y):
    def backward(dy):
        return tf.clip_by_norm(dy, 0.5)

    return y, backward


class MyModule(tf.Module):
    @tf.function(input_signature=[tf.TensorSpec(None)])
    def call_custom_grad(self, x):
        return clip_gradients(x)


@pytest.fixture
def save(tmp_path):
    def saved(**options):
        path = tmp_path / "saved_model"
        tf.saved_model.save(MyModule(), path, options=tf.saved_model.SaveOptions(**options))
        return path

    return saved


def test_with_the_option_a_saved_model_keeps_its_custom_gradient(save) -> None:
    loaded = tf.saved_model.load(save(experimental_custom_gradients=True))
    v = tf.Variable(2.0)
    with tf.GradientTape() as t:
        output = loaded.call_custom_grad(v * v)
    assert t.gradient(output, v).numpy() == 2.0


def test_without_the_option_the_gradient_is_a_lookup_error(save) -> None:
    path = save(experimental_custom_gradients=False)

    # the guide restarts Python here; there is no registry that would make a difference
    program = (
        "import sys\n"
        "import gradtape.compat.tensorflow as tf\n"
        "v = tf.Variable(2.0)\n"
        "loaded = tf.saved_model.load(sys.argv[1])\n"
        "with tf.GradientTape() as t:\n"
        "    output = loaded.call_custom_grad(v * v)\n"
        "print(output.numpy())\n"
        "try:\n"
        "    t.gradient(output, v)\n"
        "except LookupError as error:\n"
        "    print(error)\n"
    )
    run = subprocess.run(
        [sys.executable, "-c", program, str(path)], capture_output=True, text=True, check=True
    )
    value, message = run.stdout.splitlines()
    assert value == "4.0"
    assert "no gradient is defined for 'clip_gradients'" in message

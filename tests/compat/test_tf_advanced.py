"""What the guide "Advanced automatic differentiation" states, as it stands.

The code is TensorFlow's; only the import is another.
"""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

import gradtape.compat.tensorflow as tf

# -- controlling what is recorded --------------------------------------------------------------


def test_stop_recording() -> None:
    x = tf.Variable(2.0)
    y = tf.Variable(3.0)

    with tf.GradientTape() as t:
        x_sq = x * x
        with t.stop_recording():
            y_sq = y * y
        z = x_sq + y_sq

    grad = t.gradient(z, {"x": x, "y": y})
    assert grad["x"].numpy() == 4.0
    assert grad["y"] is None


def test_reset() -> None:
    x = tf.Variable(2.0)
    y = tf.Variable(3.0)
    reset = True

    with tf.GradientTape() as t:
        y_sq = y * y
        if reset:
            t.reset()
        z = x * x + y_sq

    grad = t.gradient(z, {"x": x, "y": y})
    assert grad["x"].numpy() == 4.0
    assert grad["y"] is None


def test_stop_gradient() -> None:
    x = tf.Variable(2.0)
    y = tf.Variable(3.0)

    with tf.GradientTape() as t:
        y_sq = y**2
        z = x**2 + tf.stop_gradient(y_sq)

    grad = t.gradient(z, {"x": x, "y": y})
    assert grad["x"].numpy() == 4.0
    assert grad["y"] is None


# -- custom gradients ----------------------------------------------------------------------------


@tf.custom_gradient
def clip_gradients(y):
    def backward(dy):
        return tf.clip_by_norm(dy, 0.5)

    return y, backward


class MyModule(tf.Module):
    @tf.function(input_signature=[tf.TensorSpec(None)])
    def call_custom_grad(self, x):
        return clip_gradients(x)


def test_clipping_an_intermediate_gradient() -> None:
    v = tf.Variable(2.0)
    with tf.GradientTape() as t:
        output = clip_gradients(v * v)
    assert t.gradient(output, v).numpy() == 2.0


def test_a_saved_model_keeps_its_custom_gradient(tmp_path) -> None:
    model = MyModule()
    tf.saved_model.save(
        model,
        tmp_path / "saved_model",
        options=tf.saved_model.SaveOptions(experimental_custom_gradients=True),
    )

    v = tf.Variable(2.0)
    loaded = tf.saved_model.load(tmp_path / "saved_model")
    with tf.GradientTape() as t:
        output = loaded.call_custom_grad(v * v)
    assert t.gradient(output, v).numpy() == 2.0


def test_without_the_option_the_gradient_is_a_lookup_error(tmp_path) -> None:
    path = tmp_path / "saved_model"
    options = tf.saved_model.SaveOptions(experimental_custom_gradients=False)
    tf.saved_model.save(MyModule(), path, options=options)

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


# -- several tapes -------------------------------------------------------------------------------


def test_two_tapes_watch_different_tensors() -> None:
    x0 = tf.constant(0.0)
    x1 = tf.constant(0.0)

    with tf.GradientTape() as tape0, tf.GradientTape() as tape1:
        tape0.watch(x0)
        tape1.watch(x1)

        y0 = tf.math.sin(x0)
        y1 = tf.nn.sigmoid(x1)

        y = y0 + y1

        ys = tf.reduce_sum(y)

    assert tape0.gradient(ys, x0).numpy() == 1.0
    assert tape1.gradient(ys, x1).numpy() == 0.25


def test_higher_orders() -> None:
    x = tf.Variable(1.0)

    with tf.GradientTape() as t2:
        with tf.GradientTape() as t1:
            y = x * x * x

        dy_dx = t1.gradient(y, x)
    d2y_dx2 = t2.gradient(dy_dx, x)

    assert dy_dx.numpy() == 3.0
    assert d2y_dx2.numpy() == 6.0


def test_input_gradient_regularization() -> None:
    x = tf.random.normal([7, 5])

    layer = tf.keras.layers.Dense(10, activation=tf.nn.relu)

    with tf.GradientTape() as t2:
        with tf.GradientTape(watch_accessed_variables=False) as t1:
            t1.watch(x)
            y = layer(x)
            out = tf.reduce_sum(layer(x) ** 2)
        g1 = t1.gradient(out, x)
        g1_mag = tf.norm(g1)

    dg1_mag = t2.gradient(g1_mag, layer.trainable_variables)

    assert y.shape == (7, 10)
    assert [var.shape for var in dg1_mag] == [(5, 10), (10,)]


# -- Jacobians -----------------------------------------------------------------------------------


def test_the_jacobian_of_a_scalar_source(plt) -> None:
    x = tf.linspace(-10.0, 10.0, 200 + 1)
    delta = tf.Variable(0.0)

    with tf.GradientTape() as tape:
        y = tf.nn.sigmoid(x + delta)

    dy_dx = tape.jacobian(y, delta)

    assert y.shape == (201,)
    assert dy_dx.shape == (201,)
    assert str(y.shape) == "(201,)"

    plt.plot(x.numpy(), y, label="y")
    plt.plot(x.numpy(), dy_dx, label="dy/dx")
    plt.legend()
    _ = plt.xlabel("x")


def test_the_jacobian_of_a_tensor_source() -> None:
    x = tf.random.normal([7, 5])
    layer = tf.keras.layers.Dense(10, activation=tf.nn.relu)

    with tf.GradientTape(persistent=True) as tape:
        y = layer(x)

    assert y.shape == (7, 10)
    assert layer.kernel.shape == (5, 10)

    j = tape.jacobian(y, layer.kernel)
    assert j.shape == (7, 10, 5, 10)

    g = tape.gradient(y, layer.kernel)
    assert g.shape == (5, 10)

    j_sum = tf.reduce_sum(j, axis=[0, 1])
    delta = tf.reduce_max(abs(g - j_sum)).numpy()
    assert delta < 1e-3


def imshow_zero_center(plt, image, **kwargs):
    lim = tf.reduce_max(abs(image))
    plt.imshow(image, vmin=-lim, vmax=lim, cmap="seismic", **kwargs)
    plt.colorbar()


def test_a_hessian_and_a_newton_step(plt) -> None:
    x = tf.random.normal([7, 5])
    layer1 = tf.keras.layers.Dense(8, activation=tf.nn.relu)
    layer2 = tf.keras.layers.Dense(6, activation=tf.nn.relu)

    with tf.GradientTape() as t2:
        with tf.GradientTape() as t1:
            x = layer1(x)
            x = layer2(x)
            loss = tf.reduce_mean(x**2)

        g = t1.gradient(loss, layer1.kernel)

    h = t2.jacobian(g, layer1.kernel)

    assert f"layer.kernel.shape: {layer1.kernel.shape}" == "layer.kernel.shape: (5, 8)"
    assert f"h.shape: {h.shape}" == "h.shape: (5, 8, 5, 8)"

    n_params = tf.reduce_prod(layer1.kernel.shape)

    g_vec = tf.reshape(g, [n_params, 1])
    h_mat = tf.reshape(h, [n_params, n_params])

    assert n_params.numpy() == 40
    np.testing.assert_allclose(h_mat, tf.transpose(h_mat), atol=1e-5)  # it is symmetric
    imshow_zero_center(plt, h_mat)

    eps = 1e-3
    eye_eps = tf.eye(h_mat.shape[0]) * eps

    update = tf.linalg.solve(h_mat + eye_eps, g_vec)

    before = layer1.kernel.numpy()
    _ = layer1.kernel.assign_sub(tf.reshape(update, layer1.kernel.shape))
    np.testing.assert_allclose(
        layer1.kernel.numpy(), before - update.numpy().reshape(5, 8), rtol=1e-6
    )


def plot_as_patches(plt, j):
    j = tf.transpose(j, [1, 0, 3, 2])
    lim = tf.reduce_max(abs(j))
    j = tf.pad(j, [[0, 0], [1, 1], [0, 0], [1, 1]], constant_values=-lim)
    s = j.shape
    j = tf.reshape(j, [s[0] * s[1], s[2] * s[3]])
    imshow_zero_center(plt, j, extent=[-0.5, s[2] - 0.5, s[0] - 0.5, -0.5])


def test_a_batch_jacobian(plt) -> None:
    x = tf.random.normal([7, 5])

    layer1 = tf.keras.layers.Dense(8, activation=tf.nn.elu)
    layer2 = tf.keras.layers.Dense(6, activation=tf.nn.elu)

    with tf.GradientTape(persistent=True, watch_accessed_variables=False) as tape:
        tape.watch(x)
        y = layer1(x)
        y = layer2(y)

    assert y.shape == (7, 6)

    j = tape.jacobian(y, x)
    assert j.shape == (7, 6, 7, 5)

    slices = j.numpy()[:, 0, :, 0]
    np.testing.assert_array_equal(slices, np.diag(np.diag(slices)))
    imshow_zero_center(plt, j[:, 0, :, 0])
    _ = plt.title("A (batch, batch) slice")
    plot_as_patches(plt, j)
    _ = plt.title("All (batch, batch) slices are diagonal")

    j_sum = tf.reduce_sum(j, axis=2)
    assert j_sum.shape == (7, 6, 5)
    j_select = tf.einsum("bxby->bxy", j)
    assert j_select.shape == (7, 6, 5)

    jb = tape.batch_jacobian(y, x)
    assert jb.shape == (7, 6, 5)

    error = tf.reduce_max(abs(jb - j_sum))
    assert error < 1e-3
    assert np.abs(j_select.numpy() - jb.numpy()).max() < 1e-5


def test_a_batch_jacobian_where_examples_meet(plt) -> None:
    x = tf.random.normal([7, 5])

    layer1 = tf.keras.layers.Dense(8, activation=tf.nn.elu)
    bn = tf.keras.layers.BatchNormalization()
    layer2 = tf.keras.layers.Dense(6, activation=tf.nn.elu)

    with tf.GradientTape(persistent=True, watch_accessed_variables=False) as tape:
        tape.watch(x)
        y = layer1(x)
        y = bn(y, training=True)
        y = layer2(y)

    j = tape.jacobian(y, x)
    assert f"j.shape: {j.shape}" == "j.shape: (7, 6, 7, 5)"

    slices = j.numpy()[:, 0, :, 0]
    assert np.abs(slices - np.diag(np.diag(slices))).max() > 1e-3
    plot_as_patches(plt, j)
    _ = plt.title("These slices are not diagonal")
    _ = plt.xlabel("Don't use `batch_jacobian`")

    jb = tape.batch_jacobian(y, x)
    assert f"jb.shape: {jb.shape}" == "jb.shape: (7, 6, 5)"


@pytest.fixture
def plt():
    """Matplotlib's ``pyplot``, drawing into memory; a stand-in without Matplotlib."""
    try:
        import matplotlib as mpl
    except ImportError:
        from unittest.mock import MagicMock

        yield MagicMock()
        return
    mpl.use("Agg")
    import matplotlib.pyplot as plt

    with mpl.rc_context({"figure.figsize": (8, 6)}):
        yield plt
    plt.close("all")

"""What the guide "Advanced automatic differentiation" states.

Its programs are run with gradtape's names and with TensorFlow's: `lib` is one, then the other.
"""

from __future__ import annotations

import numpy as np
import pytest

# -- controlling what is recorded ------------------------------------------------------------------


def test_stop_recording_leaves_out_what_is_computed_meanwhile(lib) -> None:
    x, y = lib.Variable(2.0), lib.Variable(3.0)
    with lib.GradientTape() as tape:
        x_sq = x * x
        with tape.stop_recording():
            y_sq = y * y
        z = x_sq + y_sq
    grad = tape.gradient(z, {"x": x, "y": y})
    assert z.numpy() == 13.0
    assert grad["x"].numpy() == 4.0
    assert grad["y"] is None


def test_reset_throws_out_what_was_recorded(lib) -> None:
    x, y = lib.Variable(2.0), lib.Variable(3.0)
    with lib.GradientTape() as tape:
        y_sq = y * y
        tape.reset()
        z = x * x + y_sq
    grad = tape.gradient(z, {"x": x, "y": y})
    assert grad["x"].numpy() == 4.0
    assert grad["y"] is None


def test_stop_gradient_stops_one_path(lib) -> None:
    x, y = lib.Variable(2.0), lib.Variable(3.0)
    with lib.GradientTape() as tape:
        y_sq = y**2
        z = x**2 + lib.stop_gradient(y_sq)
    grad = tape.gradient(z, {"x": x, "y": y})
    assert z.numpy() == 13.0
    assert grad["x"].numpy() == 4.0
    assert grad["y"] is None


# -- custom gradients ------------------------------------------------------------------------------


@pytest.fixture
def clip_gradients(lib):
    @lib.custom_gradient
    def clip_gradients(y):
        def backward(dy):
            return lib.clip_by_norm(dy, 0.5)

        return y, backward

    return clip_gradients


def test_clipping_an_intermediate_gradient(lib, clip_gradients) -> None:
    v = lib.Variable(2.0)
    with lib.GradientTape() as tape:
        output = clip_gradients(v * v)
    assert tape.gradient(output, v).numpy() == 2.0


def test_a_custom_gradient_is_saved_with_its_module(lib, clip_gradients, tmp_path) -> None:
    class Clipper(lib.Module):
        @lib.function(input_signature=[lib.TensorSpec(None)])
        def call_custom_grad(self, x):
            return clip_gradients(x)

    model = Clipper()
    lib.save(model, tmp_path / "model.h5")
    loaded = lib.load(tmp_path / "model.h5")
    for module in (model, loaded):
        v = lib.Variable(2.0)
        with lib.GradientTape() as tape:
            output = module.call_custom_grad(v * v)
        assert output.numpy() == 4.0
        assert tape.gradient(output, v).numpy() == 2.0

    v = lib.Variable([3.0, 4.0])  # one trace serves every rank
    with lib.GradientTape() as tape:
        output = loaded.call_custom_grad(v)
    np.testing.assert_allclose(
        tape.gradient(output, v, output_gradients=lib.constant([3.0, 4.0])), [0.3, 0.4], rtol=1e-6
    )


# -- several tapes ---------------------------------------------------------------------------------


def test_two_tapes_watch_different_tensors(lib) -> None:
    x0, x1 = lib.constant(0.0), lib.constant(0.0)
    with lib.GradientTape() as tape0, lib.GradientTape() as tape1:
        tape0.watch(x0)
        tape1.watch(x1)
        ys = lib.sum(lib.sin(x0) + lib.nn.sigmoid(x1))
    assert tape0.gradient(ys, x0).numpy() == 1.0
    assert tape1.gradient(ys, x1).numpy() == 0.25


def test_each_of_two_tapes_knows_nothing_of_the_others_source(lib) -> None:
    x0, x1 = lib.constant(0.0), lib.constant(0.0)
    with lib.GradientTape() as tape0, lib.GradientTape() as tape1:
        tape0.watch(x0)
        tape1.watch(x1)
        ys = lib.sin(x0) + lib.nn.sigmoid(x1)
    assert tape0.gradient(ys, x1) is None
    assert tape1.gradient(ys, x0) is None


def test_input_gradient_regularisation(lib) -> None:
    x = lib.random.normal([7, 5])
    layer = lib.Dense(10, activation=lib.nn.relu)
    with lib.GradientTape(persistent=True) as outer:
        with lib.GradientTape(watch_accessed_variables=False) as inner:
            inner.watch(x)
            y = layer(x)
            out = lib.sum(layer(x) ** 2)
        g1 = inner.gradient(out, x)
        magnitude = lib.norm(g1)
    assert y.shape == (7, 10)
    assert g1.shape == (7, 5)
    gradients = outer.gradient(magnitude, layer.trainable_variables)
    assert [g.shape for g in gradients] == [v.shape for v in layer.trainable_variables]
    d_kernel, d_bias = outer.gradient(magnitude, [layer.kernel, layer.bias])
    assert (d_kernel.shape, d_bias.shape) == ((5, 10), (10,))
    assert (layer.kernel.shape, layer.bias.shape) == ((5, 10), (10,))

    # by hand, g1 = 2 relu(x W + b) Wᵀ: a difference along W shows that |g1| changes as predicted
    start, bias = np.float64(layer.kernel), np.float64(layer.bias)
    direction = np.random.default_rng(0).normal(size=(5, 10))

    def norm_of_input_gradient(w: np.ndarray) -> float:
        y = np.maximum(np.float64(x) @ w + bias, 0.0)
        return float(np.linalg.norm(2.0 * y @ w.T))

    step = 1e-6
    ahead = norm_of_input_gradient(start + step * direction)
    behind = norm_of_input_gradient(start - step * direction)
    slope = np.sum(d_kernel.numpy() * direction)
    np.testing.assert_allclose(slope, (ahead - behind) / (2 * step), rtol=1e-3)


# -- Jacobians -------------------------------------------------------------------------------------


@pytest.fixture
def batch(lib):
    return lib.constant(np.random.default_rng(1).standard_normal((7, 5)))


def test_the_jacobian_of_a_scalar_source_has_the_targets_shape(lib, plt) -> None:
    x = lib.cast(lib.linspace(-10.0, 10.0, 200 + 1), "float64")
    delta = lib.Variable(0.0, dtype="float64")
    with lib.GradientTape() as tape:
        y = lib.nn.sigmoid(x + delta)
    dy_dx = tape.jacobian(y, delta)
    assert dy_dx.shape == y.shape == (201,)
    assert str(y.shape) == "(201,)"
    slopes = 0.25 / np.cosh(x.numpy() / 2) ** 2  # y * (1 - y), which cancels where y is near 1
    np.testing.assert_allclose(dy_dx, slopes, rtol=1e-12)

    plt.plot(x.numpy(), y, label="y")
    plt.plot(x.numpy(), dy_dx, label="dy/dx")
    plt.legend()
    _ = plt.xlabel("x")


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_the_targets_axes_come_first(lib, batch, dtype) -> None:
    x = lib.cast(batch, dtype)
    layer = lib.Dense(10, activation=lib.nn.relu)
    with lib.GradientTape(persistent=True) as tape:
        y = layer(x)
    assert y.shape == (7, 10)
    assert layer.kernel.shape == (5, 10)
    j = tape.jacobian(y, layer.kernel)
    assert j.shape == (7, 10, 5, 10)
    g = tape.gradient(y, layer.kernel)
    assert g.shape == (5, 10)
    j_sum = lib.sum(j, axis=[0, 1])
    assert lib.max(abs(g - j_sum)).numpy() < 1e-3


def imshow_zero_center(lib, plt, image, **kwargs):
    lim = lib.max(abs(image))
    plt.imshow(image, vmin=-lim, vmax=lim, cmap="seismic", **kwargs)
    plt.colorbar()


@pytest.mark.parametrize(("dtype", "atol"), [("float32", 1e-5), ("float64", 1e-7)])
def test_a_hessian_is_symmetric_and_newtons_step_lowers_the_loss(
    lib, plt, batch, dtype, atol
) -> None:
    layer1 = lib.Dense(8, activation=lib.nn.relu)
    layer2 = lib.Dense(6, activation=lib.nn.relu)

    def loss_and_hessian():
        x = lib.cast(batch, dtype)
        with lib.GradientTape() as t2:
            with lib.GradientTape() as t1:
                x = layer1(x)
                x = layer2(x)
                loss = lib.mean(x**2)
            g = t1.gradient(loss, layer1.kernel)
        return loss.numpy(), g, t2.jacobian(g, layer1.kernel)

    loss, g, h = loss_and_hessian()
    assert f"layer.kernel.shape: {layer1.kernel.shape}" == "layer.kernel.shape: (5, 8)"
    assert f"h.shape: {h.shape}" == "h.shape: (5, 8, 5, 8)"

    n_params = lib.prod(layer1.kernel.shape)
    g_vec = lib.reshape(g, [n_params, 1])
    h_mat = lib.reshape(h, [n_params, n_params])
    assert n_params.numpy() == 40
    np.testing.assert_allclose(h_mat, lib.transpose(h_mat), atol=atol)
    imshow_zero_center(lib, plt, h_mat)

    eye_eps = lib.eye(h_mat.shape[0]) * 1e-3
    update = lib.linalg.solve(h_mat + eye_eps, g_vec)
    before = layer1.kernel.numpy()
    _ = layer1.kernel.assign_sub(lib.reshape(update, layer1.kernel.shape))
    np.testing.assert_allclose(
        layer1.kernel.numpy(), before - update.numpy().reshape(5, 8), rtol=1e-6
    )
    assert loss_and_hessian()[0] < loss


def plot_as_patches(lib, plt, j):
    j = lib.transpose(j, [1, 0, 3, 2])
    lim = lib.max(abs(j))
    j = lib.pad(j, [[0, 0], [1, 1], [0, 0], [1, 1]], constant_values=-lim)
    s = j.shape
    j = lib.reshape(j, [s[0] * s[1], s[2] * s[3]])
    imshow_zero_center(lib, plt, j, extent=[-0.5, s[2] - 0.5, s[0] - 0.5, -0.5])


def test_a_batch_jacobian_is_the_diagonal_of_the_jacobian(lib, plt, batch) -> None:
    layer1 = lib.Dense(8, activation=lib.nn.elu)
    layer2 = lib.Dense(6, activation=lib.nn.elu)
    with lib.GradientTape(persistent=True, watch_accessed_variables=False) as tape:
        tape.watch(batch)
        y = layer1(batch)
        y = layer2(y)
    assert y.shape == (7, 6)

    j = tape.jacobian(y, batch)
    assert j.shape == (7, 6, 7, 5)
    slices = j.numpy()[:, 0, :, 0]
    np.testing.assert_array_equal(slices, np.diag(np.diag(slices)))
    imshow_zero_center(lib, plt, j[:, 0, :, 0])
    _ = plt.title("A (batch, batch) slice")
    plot_as_patches(lib, plt, j)
    _ = plt.title("All (batch, batch) slices are diagonal")

    jb = tape.batch_jacobian(y, batch)
    assert jb.shape == (7, 6, 5)
    np.testing.assert_allclose(jb, lib.sum(j, axis=2), rtol=1e-6, atol=1e-9)
    np.testing.assert_allclose(jb, lib.einsum("bxby->bxy", j), rtol=1e-6, atol=1e-9)
    np.testing.assert_array_equal(jb, tape.batch_jacobian(y, batch, check=True))


def test_a_batch_jacobian_where_examples_meet_is_refused_on_request(lib, plt, batch) -> None:
    layer1 = lib.Dense(8, activation=lib.nn.elu)
    bn = lib.BatchNorm()
    layer2 = lib.Dense(6, activation=lib.nn.elu)
    with lib.GradientTape(persistent=True, watch_accessed_variables=False) as tape:
        tape.watch(batch)
        y = layer1(batch)
        y = bn(y, training=True)
        y = layer2(y)

    j = tape.jacobian(y, batch)
    assert f"j.shape: {j.shape}" == "j.shape: (7, 6, 7, 5)"
    slices = j.numpy()[:, 0, :, 0]
    assert np.abs(slices - np.diag(np.diag(slices))).max() > 1e-3
    plot_as_patches(lib, plt, j)
    _ = plt.title("These slices are not diagonal")
    _ = plt.xlabel("Don't use `batch_jacobian`")

    jb = tape.batch_jacobian(y, batch)
    assert f"jb.shape: {jb.shape}" == "jb.shape: (7, 6, 5)"
    with pytest.raises(ValueError, match=r"examples are not independent.*Use jacobian"):
        tape.batch_jacobian(y, batch, check=True)


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

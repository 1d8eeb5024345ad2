"""Flattened images have another order of features in PyTorch: they are reordered, or that is told.

``torch_layers`` has the models in which the order is known, with PyTorch's results.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest
from torch_layers import TWINS, inputs, result

import gradtape as gt

pytestmark = pytest.mark.needs("weights")

L = gt.layers
STORED = dict(np.load(Path(__file__).parent / "files" / "torch_layers.npz"))
IMAGES = np.random.default_rng(0).normal(size=(2, 5, 4, 3)).astype("float32")


def state(name: str) -> dict[str, Any]:
    start = f"{name}/state/"
    return {key.removeprefix(start): x for key, x in STORED.items() if key.startswith(start)}


class Net(gt.Module):
    """A convolution, something between, and a matrix."""

    def __init__(self, between: Callable[[Any], Any] = L.Flatten()) -> None:  # noqa: B008
        super().__init__()
        self.conv, self.out, self.between = L.Conv2D(4, 3), L.Dense(2), between

    def __call__(self, x: Any) -> Any:
        return self.out(self.between(self.conv(x)))


class Beside(Net):
    """Features of images beside others."""

    def __call__(self, x: Any) -> Any:
        y = self.between(self.conv(x))
        return self.out(gt.concatenate([y, gt.mean(x, axis=(1, 2))], axis=1))


class Compiled(Net):
    """A class whose call is decorated."""

    @gt.function
    def __call__(self, x: Any) -> Any:
        return self.out(self.between(self.conv(x)))


class Untraceable(Net):
    """A class whose call uses values."""

    def __call__(self, x: Any) -> Any:
        return self.out(self.between(self.conv(np.asarray(x) * 1.0)))


def shuffled(y: Any) -> Any:
    """Return images with their channels in another order."""
    parts = gt.transpose(gt.reshape(y, (*y.shape[:3], 2, 2)), (0, 1, 2, 4, 3))
    return gt.reshape(parts, y.shape)


def places(y: Any) -> Any:
    """Return a weighted mean over all places, at each place."""
    steps = gt.reshape(y, (y.shape[0], -1, 4))
    means = gt.nn.softmax(steps @ gt.swapaxes(steps, 1, 2), axis=-1) @ steps
    return gt.reshape(means, y.shape)


class Clip(gt.Module):
    """A class that flattens sequences of images as a whole."""

    def __init__(self) -> None:
        super().__init__()
        self.conv, self.out = L.TimeDistributed(L.Conv2D(4, 3)), L.Dense(2)

    def __call__(self, x: Any) -> Any:
        return self.out(L.Flatten()(self.conv(x)))


def test_sequences_of_images_that_are_flattened_as_a_whole_are_told() -> None:
    model = Clip()
    model(np.ones((2, 3, 5, 4, 3), "float32"))
    arrays = {"conv.weight": np.ones((4, 3, 3, 3)), "conv.bias": np.ones(4)}
    arrays |= {"out.weight": np.ones((2, 72)), "out.bias": np.ones(2)}
    with pytest.warns(UserWarning, match="out/kernel: .*flattened images"):
        model.load_weights(arrays)


def arrays_of(model: Any) -> dict[str, Any]:
    """Return arrays of the sizes of a model's, with PyTorch's names and axes."""
    model(IMAGES)
    generator = np.random.default_rng(1)
    kernel, matrix = (x.kernel.shape for x in (model.conv, model.out))
    shapes = {
        "conv.weight": (kernel[3], kernel[2], kernel[0], kernel[1]),
        "conv.bias": (4,),
        "out.weight": matrix[::-1],
        "out.bias": (2,),
    }
    return {name: generator.normal(size=s).astype("float32") for name, s in shapes.items()}


def reordered(matrix: Any, channels: int = 4) -> Any:
    """Return a matrix of PyTorch with inputs in our order."""
    rows = matrix.T.reshape(channels, -1, matrix.shape[0])
    return rows.swapaxes(0, 1).reshape(-1, matrix.shape[0])


@pytest.mark.parametrize(
    ("make", "moves"),
    [
        (Net, True),
        (Compiled, True),
        (lambda: Net(lambda y: gt.reshape(gt.nn.relu(y), (y.shape[0], -1))), True),
        (lambda: Net(lambda y: L.Flatten()(L.ZeroPadding2D(1)(y))), True),
        (lambda: Net(lambda y: L.Flatten()(gt.concatenate([y, -y], axis=1))), True),
        (lambda: Net(lambda y: L.Flatten()(gt.nn.group_normalization(y, 2))), True),
        (lambda: Net(lambda y: L.Flatten()(shuffled(y))), True),
        (lambda: Net(lambda y: L.Flatten()(y * gt.mean(y, axis=(1, 2), keepdims=True))), True),
        (lambda: Net(lambda y: L.Flatten()(gt.nn.avg_pool2d(y, 2, padding="same"))), True),
        (lambda: Net(lambda y: L.Flatten()(gt.transpose(y, (0, 3, 1, 2)))), False),
        (lambda: Net(lambda y: gt.mean(y, axis=(1, 2))), False),
        (lambda: Net(lambda y: L.Flatten()(gt.max(y, axis=(1, 2), keepdims=True))), False),
        (lambda: Net(lambda y: y), False),
    ],
)  # fmt: skip
@pytest.mark.filterwarnings("error")
def test_an_own_class_shows_where_features_move(make: Any, moves: bool) -> None:
    model = make()
    arrays = arrays_of(model)
    calls = model.call_signatures()
    model.load_weights(arrays)
    matrix = arrays["out.weight"]
    expected = reordered(matrix) if moves else matrix.T
    np.testing.assert_array_equal(model.out.kernel.numpy(), expected)
    assert model.call_signatures() == calls


class Trained(Net):
    """A class with a decorated call that was only called in training."""

    def __init__(self) -> None:
        super().__init__()
        self.norm, self.drop = L.BatchNormalization(epsilon=1e-5), L.Dropout(0.5)

    @gt.function
    def __call__(self, x: Any, training: bool = True) -> Any:
        y = self.drop(self.norm(self.conv(x), training=training), training=training)
        return self.out(L.Flatten()(y))


@pytest.mark.filterwarnings("error")
def test_a_trace_in_training_shows_the_order() -> None:
    model = Trained()
    arrays = arrays_of(model)
    names = ("weight", "bias", "running_mean", "running_var")
    model.load_weights({**arrays, **{f"norm.{name}": np.ones(4) for name in names}})
    np.testing.assert_array_equal(model.out.kernel.numpy(), reordered(arrays["out.weight"]))


def test_features_of_channels_that_are_joined_move_together() -> None:
    model = Net(lambda y: L.Flatten()(gt.concatenate([y, 2.0 * y], axis=-1)))
    arrays = arrays_of(model)
    model.load_weights(arrays)
    np.testing.assert_array_equal(model.out.kernel, reordered(arrays["out.weight"], channels=8))


@pytest.mark.parametrize("make", [Beside, Untraceable])
def test_features_in_an_unknown_order_are_told(make: Any, tmp_path: Path) -> None:
    model = make()
    arrays = arrays_of(model)
    with pytest.warns(UserWarning, match="out/kernel: .*flattened images") as told:
        model.load_weights(arrays)
    assert len(told) == 1
    np.testing.assert_array_equal(model.out.kernel.numpy(), arrays["out.weight"].T)
    with pytest.warns(UserWarning, match="save_weights: out/kernel: .*flattened images"):
        model.save_weights(tmp_path / "w.safetensors", layout="pytorch")


POSITIONS = np.arange(24, dtype="float32").reshape(3, 2, 4)


@pytest.mark.parametrize(
    "step",
    [
        L.LayerNormalization(),
        L.UnitNormalization(),
        lambda y: (y - gt.mean(y, axis=-1, keepdims=True)) / gt.std(y, axis=-1, keepdims=True),
        lambda y: gt.nn.softmax(y),
        lambda y: gt.cumsum(y, axis=-1),
        lambda y: gt.flip(y, axis=-1),
        lambda y: y + POSITIONS,
        lambda y: y + gt.Variable(POSITIONS),
        lambda y: y + 0.5 * gt.Variable(POSITIONS),
        lambda y: y + places(y),
    ],
)  # fmt: skip
def test_steps_along_the_channels_leave_the_order_unknown(step: Any, tmp_path: Path) -> None:
    model = Net(lambda y: L.Flatten()(step(y)))
    arrays = arrays_of(model)
    with pytest.warns(UserWarning, match=r"flattened images.*mapping=.*out/kernel', \(1, 0\)"):
        report = model.load_weights(arrays)
    np.testing.assert_array_equal(model.out.kernel.numpy(), arrays["out.weight"].T)
    assert not report.reordered
    with pytest.warns(UserWarning, match="save_weights: out/kernel: .*flattened images"):
        model.save_weights(tmp_path / "w.safetensors", layout="pytorch")
    saved = gt.saving.read_weights(tmp_path / "w.safetensors")
    np.testing.assert_array_equal(saved["out.weight"], arrays["out.weight"])


def test_a_layer_normalization_after_convolutions_of_sequences_is_told() -> None:
    model = L.Sequential([L.Conv1D(4, 3), L.LayerNormalization(), L.Flatten(), L.Dense(2)])
    model(np.ones((2, 8, 3), "float32"))
    matrix = np.arange(48, dtype="float32").reshape(2, 24)
    arrays = {"0.weight": np.ones((4, 3, 3)), "0.bias": np.ones(4), "1.weight": np.ones(4)}
    arrays |= {"1.bias": np.ones(4), "3.weight": matrix, "3.bias": np.ones(2)}
    with pytest.warns(UserWarning, match="layers/3/kernel: .*flattened images"):
        model.load_weights(arrays)
    np.testing.assert_array_equal(model.layers[3].kernel.numpy(), matrix.T)


class Raw(Net):
    """A class that computes with a matrix in its own way."""

    def __call__(self, x: Any) -> Any:
        y = self.conv(x)
        if not self.out.built:
            self.out(L.Flatten()(y))
        return self.between(y, self.out.kernel)


def flat(y: Any) -> Any:
    return L.Flatten()(y)


@pytest.mark.parametrize(
    "compute",
    [
        lambda y, w: gt.einsum("bi,io->bo", flat(y), w),
        lambda y, w: gt.tensordot(flat(y), w, 1),
        lambda y, w: gt.transpose(gt.transpose(w) @ gt.transpose(flat(y))),
        lambda y, w: gt.einsum("bhwc,hwco->bo", y, gt.reshape(w, (3, 2, 4, 2))),
        lambda y, w: gt.reshape(y[:1], (-1,))[None] @ w,
        lambda y, w: gt.stack([gt.reshape(image, (-1,)) for image in y]) @ w,
    ],
)  # fmt: skip
def test_a_matrix_in_another_op_than_a_product_is_told(compute: Any) -> None:
    model = Raw(compute)
    arrays = arrays_of(model)
    with pytest.warns(UserWarning, match="out/kernel: .*flattened images"):
        model.load_weights(arrays)
    np.testing.assert_array_equal(model.out.kernel.numpy(), arrays["out.weight"].T)


@pytest.mark.parametrize(
    "compute",
    [
        lambda y, w: flat(y) @ w,
        lambda y, w: gt.sum(flat(y)[:, :, None] * w[None], axis=1),
        lambda y, w: gt.squeeze(flat(y)[:, None] @ w, axis=1),
    ],
)  # fmt: skip
@pytest.mark.filterwarnings("error")
def test_axes_of_size_one_are_followed(compute: Any) -> None:
    model = Raw(compute)
    arrays = arrays_of(model)
    model.load_weights(arrays)
    np.testing.assert_array_equal(model.out.kernel.numpy(), reordered(arrays["out.weight"]))


class Heads(Net):
    """Attention between places: a matrix that becomes heads, which takes channels alone."""

    def __call__(self, x: Any) -> Any:
        y = self.conv(x)
        if not self.out.built:
            self.out(y)
        heads = gt.einsum("bhwc,cno->bhwno", y, gt.reshape(self.out.kernel, (4, 2, 1)))
        return gt.mean(heads, axis=(1, 2))


@pytest.mark.filterwarnings("error")
def test_a_matrix_for_channels_alone_is_not_told() -> None:
    model = Heads()
    arrays = arrays_of(model)
    model.load_weights(arrays)
    np.testing.assert_array_equal(model.out.kernel.numpy(), arrays["out.weight"].T)


class Head(L.Layer):
    """A layer of which only its ``build`` knows the weights."""

    def build(self, input_shape: Any) -> None:
        self.inner = L.Dense(2)

    def call(self, x: Any) -> Any:
        return self.inner(x)


def test_arrays_that_wait_for_a_layer_after_images_are_told() -> None:
    model = L.Sequential([L.Conv2D(4, 3), L.Flatten(), Head()])
    arrays = {"0.weight": np.ones((4, 3, 3, 3)), "0.bias": np.ones(4)}
    arrays |= {"2.inner.weight": np.ones((2, 24)), "2.inner.bias": np.ones(2)}
    with pytest.warns(UserWarning, match="2.inner.weight: the inputs look like flattened images"):
        model.load_weights(arrays)
    model(IMAGES)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model.load_weights(arrays)  # now the order is known


@pytest.mark.parametrize(
    ("layers", "shape", "told"),
    [
        ([L.Flatten(), L.Dense(2)], (2, 4, 4, 3), True),
        ([L.ReLU(), L.Flatten(), L.Dense(2)], (2, 4, 4, 3), True),
        ([L.Permute((3, 1, 2)), L.Flatten(), L.Dense(2)], (2, 4, 4, 3), False),
        ([L.Flatten(), L.Dense(2)], (2, 4, 4, 1), False),
        ([L.Flatten(), L.Dense(2)], (2, 3, 4, 4), False),
        ([L.Flatten(), L.Dense(2)], (2, 4, 6), False),
        ([L.GlobalAveragePooling2D(), L.Dense(2)], (2, 4, 4, 3), False),
        ([L.Dense(6), L.Flatten(), L.Dense(2)], (2, 4, 4, 3), False),
    ],
)
def test_inputs_that_are_images_with_channels_last_are_told(
    layers: Any, shape: Any, told: bool, tmp_path: Path
) -> None:
    model = L.Sequential(layers)
    model(np.ones(shape, "float32"))
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        model.save_weights(tmp_path / "w.safetensors", layout="pytorch")
        model.load_weights(tmp_path / "w.safetensors")
    assert len(found) == 2 * told, [str(x.message) for x in found]


def test_the_recipe_of_the_warning_gives_the_order() -> None:
    name = "a class with frames"
    layer, x = TWINS[name].layer(), inputs(name)
    with pytest.warns(UserWarning, match=r"reshape\(channels, -1, outputs\)"):
        layer.load_weights(state(name))
    kernel, channels, outputs = layer.out.kernel.numpy(), 4, 2
    layer.out.kernel.assign(
        kernel.reshape(channels, -1, outputs).swapaxes(0, 1).reshape(-1, outputs)
    )
    np.testing.assert_allclose(result(name, layer, x), STORED[f"{name}/y"], rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("layout", ["pytorch", None])
@pytest.mark.parametrize(
    "between", [L.Flatten(), L.Sequential([L.LayerNormalization(), L.Flatten()])]
)
def test_axes_in_the_mapping_are_the_whole_order(between: Any, layout: Any) -> None:
    model = Net(between)
    arrays = arrays_of(model)
    arrays |= {f"between.0.{name}": np.ones(4) for name in ("weight", "bias") if between.variables}
    with warnings.catch_warnings():
        warnings.filterwarnings("error", ".*flattened images")
        report = model.load_weights(
            arrays, mapping={"out.weight": ("out/kernel", (1, 0))}, layout=layout
        )
    np.testing.assert_array_equal(model.out.kernel.numpy(), arrays["out.weight"].T)
    assert not report.reordered


def test_the_report_lists_what_was_reordered() -> None:
    model = Net()
    report = model.load_weights(arrays_of(model))
    assert report.reordered == ["out/kernel"]
    assert "loaded, features reordered" in report.table()


@pytest.mark.parametrize("layout", ["gradtape", None])
def test_arrays_of_ours_keep_their_order(layout: Any, tmp_path: Path) -> None:
    model = Net()
    model(IMAGES)
    expected = model(IMAGES).numpy()
    arrays = {path: v.numpy().copy() for path, v in model.named_variables.items()}
    other = Net()
    other(IMAGES)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        other.load_weights(arrays, layout=layout)
        np.testing.assert_array_equal(other(IMAGES).numpy(), expected)
        model.save_weights(tmp_path / "w.safetensors", layout="pytorch")
        for again in (Net(), other):
            again.load_weights(tmp_path / "w.safetensors")
            np.testing.assert_array_equal(again(IMAGES).numpy(), expected)


def test_a_model_that_was_never_called_stays_as_if_it_was_not() -> None:
    model = L.Sequential([L.Conv2D(4, 3), L.Dropout(0.5), L.Flatten(), L.Dense(2)])
    twin = L.Sequential([L.Conv2D(4, 3), L.Dropout(0.5), L.Flatten(), L.Dense(2)])
    arrays = {"0.weight": np.ones((4, 3, 3, 3)), "0.bias": np.ones(4)}
    arrays |= {"3.weight": np.ones((2, 24)), "3.bias": np.ones(2)}
    gt.random.set_seed(3)
    model.load_weights(arrays)
    assert not model.call_signatures()
    assert not model.layers[1].built
    own = {path: v.numpy().copy() for path, v in model.named_variables.items()}
    dropped = model(IMAGES, training=True).numpy()
    gt.random.set_seed(3)
    twin.load_weights(own)  # which traces nothing
    np.testing.assert_array_equal(twin(IMAGES, training=True).numpy(), dropped)


class Gated(L.Layer):
    """Two matrices that are one in PyTorch."""

    weight_names = ("left", "right")
    names_elsewhere: ClassVar[Any] = {
        "pytorch": {
            ("left", "right"): (
                ("weight",),
                (
                    lambda layer, x: [y.T for y in np.split(x[0], 2)],
                    lambda layer, x: [np.concatenate([y.T for y in x])],
                ),
            )
        }
    }

    def build(self, input_shape: Any) -> None:
        for name in self.weight_names:
            setattr(self, name, self.add_weight((input_shape[-1], 2), name=name))

    def call(self, x: Any) -> Any:
        return x @ self.left * gt.nn.sigmoid(x @ self.right)


def test_matrices_that_are_one_there_are_saved_as_they_are_loaded(tmp_path: Path) -> None:
    model = L.Sequential([L.Conv2D(4, 3), L.Flatten(), Gated()])
    expected = model(IMAGES).numpy()
    model.save_weights(tmp_path / "w.safetensors", layout="pytorch")
    stored = gt.saving.read_weights(tmp_path / "w.safetensors")["2.weight"]
    np.testing.assert_array_equal(reordered(stored[:2]), model.layers[2].left)
    model.load_weights(tmp_path / "w.safetensors")
    np.testing.assert_array_equal(model(IMAGES).numpy(), expected)


def test_losses_of_the_last_call_remain(tmp_path: Path) -> None:
    model = L.Sequential([L.Conv2D(4, 3, activity_regularizer="l2"), L.Flatten(), L.Dense(2)])
    model(IMAGES)
    expected = [float(loss) for loss in model.losses]
    model.save_weights(tmp_path / "w.safetensors", layout="pytorch")
    assert [float(loss) for loss in model.losses] == expected
    model.load_weights(tmp_path / "w.safetensors")
    assert [float(loss) for loss in model.losses] == expected

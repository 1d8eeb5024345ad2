"""Weights of Keras and PyTorch: real files, and the predictions of those who wrote them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest

import gradtape as gt
from gradtape.layers import Activation, BatchNorm, Dense, Dropout, Flatten, Sequential

pytestmark = pytest.mark.usefixtures("forks")

FILES = Path(__file__).parent / "files"
KERAS = dict(np.load(FILES / "keras_predictions.npz"))
TORCH = dict(np.load(FILES / "torch_predictions.npz"))


def sequential() -> Sequential:
    layers = [Dense(4, activation="relu"), BatchNorm(), Dropout(0.2), Dense(3, name="head")]
    return Sequential([*layers, Dense(2)])


class KerasNet(gt.Module):
    """As the subclassed model of files/make_keras.py."""

    def __init__(self) -> None:
        super().__init__()
        self.hidden = Dense(4, activation="relu")
        self.norm = BatchNorm(scale=False)
        self.blocks = [Dense(3), Dense(4)]
        self.inner = Sequential([Dense(2)])
        self.tail = Dense(2)
        self.factor = gt.Variable([1.0, 1.0])

    def __call__(self, x: Any, training: bool = False) -> Any:
        y = self.norm(self.hidden(x))
        for block in self.blocks:
            y = block(y)
        return self.tail(self.inner(y)) * self.factor


class Functional(gt.Module):
    """As the functional model of files/make_keras.py."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = [Dense(4), Dense(4), Dense(2)]

    def __call__(self, x: Any) -> Any:
        left, right, out = self.layers
        return out(gt.concatenate([left(x), right(x)], axis=1))


class TorchNet(gt.Module):
    """As the model of files/make_torch.py."""

    def __init__(self, epsilon: float = 1e-5) -> None:
        super().__init__()
        self.hidden = Dense(5)
        self.norm = BatchNorm(epsilon=epsilon)
        self.blocks = [Dense(5), Dense(4, use_bias=False)]
        self.head = Sequential([Dense(3), Activation("relu"), Dense(2)])
        self.factor = gt.Variable([1.0, 1.0])

    def __call__(self, x: Any, training: bool = False) -> Any:
        y = gt.nn.relu(self.norm(self.hidden(x)))
        for block in self.blocks:
            y = block(y)
        return self.head(y) * self.factor


class Tied(gt.Module):
    """Two layers, one of whose matrices is the other's."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = Dense(5), Dense(5)

    def __call__(self, x: Any) -> Any:
        return self.second(gt.tanh(self.first(x)))


def values(module: gt.Module) -> dict[str, Any]:
    return {path: v.numpy().copy() for path, v in module.named_variables.items()}


# layers of files that Keras calls old have names that count all that the process has made
OLD_NAMES = {"dense_4": "layers/0", "batch_normalization_2": "layers/1", "dense_5": "layers/4"}
CASES: dict[str, tuple[Callable[[], Any], Any]] = {
    "sequential.weights.h5": (sequential, None),
    "sequential.keras": (sequential, None),
    "sequential.h5": (sequential, OLD_NAMES),
    "subclass.weights.h5": (KerasNet, None),
    "functional.weights.h5": (Functional, None),
    "net.safetensors": (TorchNet, None),
    "tied.safetensors": (Tied, None),
}


@pytest.mark.needs("weights")
@pytest.mark.parametrize("built", [True, False])
@pytest.mark.parametrize("name", CASES)
def test_a_model_predicts_what_it_did_where_its_weights_come_from(name: str, built: bool) -> None:
    make, mapping = CASES[name]
    predicted = TORCH if name.endswith("safetensors") else KERAS
    model = make()
    if built:
        model(predicted["x"])
    report = model.load_weights(FILES / name, mapping=mapping)
    assert report.ok
    assert report.layout == ("pytorch" if predicted is TORCH else "keras")
    assert set(report.loaded) == {
        path for path, v in model.named_variables.items() if not path.endswith("state")
    }
    np.testing.assert_allclose(model(predicted["x"]), predicted[name], rtol=2e-6, atol=1e-6)


@pytest.mark.needs("weights")
def test_other_names_are_told_with_how_to_map_them() -> None:
    with pytest.raises(gt.saving.WeightsMismatch) as caught:
        sequential().load_weights(FILES / "sequential.h5")
    said = "if parts have other names in the file: mapping={'batch_normalization_2': 'layers/1', "
    assert said in str(caught.value)


@pytest.mark.parametrize("name", ["sequential.keras", "sequential.h5", "sequential.weights.h5"])
def test_models_of_keras_are_refused_with_what_to_do(name: str) -> None:
    said = r"if Keras wrote it, create the model .*gradtape\.load_weights\(path, model\)"
    with pytest.raises(gt.saving.NotAGradtapeFile, match=said):
        gt.load(FILES / name)


@pytest.mark.needs("weights")
def test_states_of_optimizers_are_left_out() -> None:
    report = sequential().load_weights(FILES / "sequential.weights.h5")
    assert all(name.startswith("optimizer/") for name in report.left_out)
    assert set(report.left_out.values()) == {"a state of the optimizer"}


@pytest.mark.needs("weights")
def test_a_name_that_may_be_two_layers_is_refused() -> None:
    model = Sequential([Dense(4), Dense(4)])
    arrays = {f"dense/{x}": np.ones(4) for x in ("kernel", "bias")}
    with pytest.raises(
        ValueError, match="'dense/kernel' may be layers/0/kernel and layers/1/kernel"
    ):
        gt.load_weights(arrays, model, layout="keras")


@pytest.mark.needs("weights")
def test_bfloat16_of_keras_is_read_exactly() -> None:
    arrays = gt.saving.read_weights(FILES / "bfloat16.weights.h5")
    assert {name: (x.shape, x.dtype.name) for name, x in arrays.items()} == {
        "layers/dense/vars/0": ((5, 3), "float32"),
        "layers/dense/vars/1": ((3,), "float32"),
    }
    for array in arrays.values():
        assert not (array.view(np.uint32) & 0xFFFF).any()
    model = Sequential([Dense(3)])
    model.load_weights(FILES / "bfloat16.weights.h5")
    predicted = KERAS["bfloat16.weights.h5"]
    np.testing.assert_allclose(model(KERAS["x"]), predicted, rtol=2e-2, atol=2e-2)


@pytest.mark.parametrize("name", ["bfloat16", "float16", "float8_e4m3", "float8_e5m2"])
def test_narrow_numbers_are_read_exactly(name: str) -> None:
    array = gt.saving.read_weights(FILES / "narrow.safetensors")[name]
    assert array.dtype == ("float16" if name == "float16" else "float32")
    expected = TORCH[f"narrow/{name}"]
    np.testing.assert_array_equal(array.astype("float32"), expected)
    np.testing.assert_array_equal(np.signbit(array), np.signbit(expected))
    model = gt.Module()
    model.v = gt.Variable(np.zeros(9, "float32"))
    others = dict.fromkeys({"bfloat16", "float16", "float8_e4m3", "float8_e5m2"} - {name})
    report = gt.load_weights(FILES / "narrow.safetensors", model, mapping={name: "v", **others})
    assert report.cast == {"v": (name, "float32")}
    np.testing.assert_array_equal(model.v.numpy(), expected)


# -- PyTorch's layout ------------------------------------------------------------------------------


@pytest.mark.needs("weights")
def test_a_convolution_is_mapped_with_its_axes() -> None:
    class Conv(gt.Module):
        names_elsewhere: ClassVar[Any] = {"pytorch": {"kernel": ("weight", (2, 3, 1, 0))}}

        def __init__(self) -> None:
            super().__init__()
            self.kernel = gt.Variable(np.zeros((3, 2, 2, 3), "float32"))
            self.bias = gt.Variable(np.zeros(3, "float32"))

        def __call__(self, x: Any) -> Any:
            return gt.nn.conv2d(x, self.kernel, padding="VALID") + self.bias

    model = Conv()
    report = model.load_weights(FILES / "conv.safetensors")
    assert report.layout == "pytorch"  # as its names tell
    image = TORCH["image"].transpose(0, 2, 3, 1)
    predicted = TORCH["conv.safetensors"].transpose(0, 2, 3, 1)
    np.testing.assert_allclose(model(image), predicted, rtol=2e-6, atol=1e-6)


@pytest.mark.needs("weights")
def test_a_mapping_to_paths_of_the_model_keeps_the_axes_of_the_file() -> None:
    model = TorchNet()
    names = list(gt.saving.read_weights(FILES / "net.safetensors"))
    linear = [name for name in names if "norm" not in name and name != "factor"]

    def own(name: str) -> str:
        if name not in linear:
            return name
        path = name.replace("head.", "head.layers.").replace(".", "/")
        return path.replace("weight", "kernel")

    model.load_weights(FILES / "net.safetensors", mapping=own)
    predicted = TORCH["net.safetensors"]
    np.testing.assert_allclose(model(TORCH["x"]), predicted, rtol=2e-6, atol=1e-6)


@pytest.mark.needs("weights")
def test_a_part_of_a_sequential_is_mapped_by_its_number() -> None:
    model = gt.Module()
    model.head = Sequential([Dense(3, activation="relu"), Dense(2)])
    others = dict.fromkeys(["hidden", "norm", "blocks", "factor"])
    mapping = {"head.0": "head/layers/0", "head.2": "head/layers/1", **others}
    report = model.load_weights(FILES / "net.safetensors", mapping=mapping)
    assert report.loaded["head/layers/1/kernel"] == "head.2.weight"
    assert model.head.layers[1].kernel.shape == (3, 2)


@pytest.mark.needs("weights")
def test_matrices_that_are_not_transposed_are_told_apart_or_suspected() -> None:
    # as in files that call their matrices "weight" and do not come from PyTorch's Linear
    arrays = {"weight": np.ones((3, 2), "float32"), "bias": np.ones(2, "float32")}
    layer = Dense(2)
    layer(np.ones((1, 3), "float32"))
    with pytest.raises(
        gt.saving.WeightsMismatch, match=r"kernel fits as it is .*the axes \(0, 1\)"
    ):
        layer.load_weights(arrays)
    assert layer.load_weights(arrays, mapping={"weight": ("kernel", (0, 1))}).ok
    arrays["kernel"] = arrays.pop("weight").T
    with pytest.raises(gt.saving.WeightsMismatch, match='kernel fits transposed: layout="pytorch"'):
        layer.load_weights(arrays)
    assert layer.load_weights(arrays, layout="pytorch").ok


@pytest.mark.needs("weights")
def test_a_default_that_differs_and_is_not_in_the_file_is_told() -> None:
    model = TorchNet(epsilon=1e-3)
    with pytest.warns(
        UserWarning, match=r"BatchNorm 'batch_norm' has epsilon=0.001.*is 1e-05"
    ) as told:
        model.load_weights(FILES / "net.safetensors")
    assert len(told) == 1


@pytest.mark.needs("weights")
def test_weights_go_to_pytorch_and_come_back(tmp_path: Path) -> None:
    model = TorchNet()
    model.load_weights(FILES / "net.safetensors")
    path = tmp_path / "again.safetensors"
    model.save_weights(path, layout="pytorch")
    ours, theirs = (gt.saving.read_weights(x) for x in (path, FILES / "net.safetensors"))
    del theirs["norm.num_batches_tracked"]
    assert ours.keys() == theirs.keys()
    for name, array in ours.items():
        np.testing.assert_array_equal(array, theirs[name], name)
    other = TorchNet()
    other.load_weights(path)
    np.testing.assert_array_equal(other(TORCH["x"]).numpy(), model(TORCH["x"]).numpy())


@pytest.mark.needs("weights")
def test_pytorch_takes_what_was_saved_in_its_layout(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    load_file = pytest.importorskip("safetensors.torch").load_file
    x = TORCH["x"]
    model = Sequential(
        [Dense(4), BatchNorm(epsilon=1e-5), Activation("relu"), Dropout(0.1), Flatten(), Dense(2)]
    )
    model(x, training=True)
    model.save_weights(tmp_path / "w.safetensors", layout="pytorch")
    nn = torch.nn
    twin = nn.Sequential(
        nn.Linear(5, 4), nn.BatchNorm1d(4), nn.ReLU(), nn.Dropout(), nn.Flatten(), nn.Linear(4, 2)
    )
    twin.load_state_dict(load_file(tmp_path / "w.safetensors"))
    predicted = twin.eval()(torch.from_numpy(x)).detach().numpy()
    np.testing.assert_allclose(model(x), predicted, rtol=2e-6, atol=1e-6)


@pytest.mark.needs("weights")
@pytest.mark.parametrize("layout", ["keras", "numpy"])
def test_a_layout_that_is_not_written_is_refused(layout: str, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match='layout must be "gradtape" or "pytorch"'):
        gt.save_weights(gt.Module(), tmp_path / "w.safetensors", layout=layout)
    with pytest.raises(ValueError, match="is for paths that end with"):
        gt.save_weights(gt.Module(), tmp_path / "w.h5", layout="pytorch")

"""Layers take the weights of PyTorch's modules, give theirs to them, and compute the same."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest
from torch_layers import TWINS, inputs, randomized, result, table

import gradtape as gt

pytestmark = pytest.mark.needs("weights")

L = gt.layers
STORED = dict(np.load(Path(__file__).parent / "files" / "torch_layers.npz"))
GUIDE = Path(__file__).parents[3] / "docs" / "guides" / "weights.md"


def state(name: str) -> dict[str, Any]:
    start = f"{name}/state/"
    return {key.removeprefix(start): x for key, x in STORED.items() if key.startswith(start)}


@pytest.mark.parametrize("built", [True, False])
@pytest.mark.parametrize("name", TWINS)
def test_a_layer_with_weights_of_pytorch_computes_the_same(name: str, built: bool) -> None:
    layer, x = TWINS[name].layer(), inputs(name)
    if built:
        result(name, layer, x)
    elif not TWINS[name].uncalled:
        pytest.skip("its layers alone do not tell the order of features")
    report = layer.load_weights(state(name))
    assert report.ok
    assert report.layout == "pytorch"
    np.testing.assert_allclose(result(name, layer, x), STORED[f"{name}/y"], rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("name", TWINS)
def test_the_weights_go_back_as_they_came(name: str, tmp_path: Path) -> None:
    layer, there = TWINS[name].layer(), state(name)
    result(name, layer, inputs(name))
    layer.load_weights(there)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        layer.save_weights(tmp_path / "w.safetensors", layout="pytorch")
    again = gt.saving.read_weights(tmp_path / "w.safetensors")
    there = {key: x for key, x in there.items() if "num_batches_tracked" not in key}
    assert again.keys() == there.keys()
    for key, array in there.items():
        expected = array
        if "bias_ih" in key and "GRU" not in name:  # one bias here, the sum of two there
            expected = array + there[key.replace("_ih", "_hh")]
        elif "bias_hh" in key and "GRU" not in name:
            expected = np.zeros_like(array)
        np.testing.assert_array_equal(again[key], expected, key)


@pytest.mark.parametrize("name", TWINS)
def test_pytorch_takes_the_weights_and_computes_the_same(name: str, tmp_path: Path) -> None:
    pytest.importorskip("torch")
    load_file = pytest.importorskip("safetensors.torch").load_file
    import pytorch

    layer, x = TWINS[name].layer(), inputs(name)
    result(name, layer, x)
    randomized(layer, seed=1)
    layer.save_weights(tmp_path / "w.safetensors", layout="pytorch")
    module = pytorch.module(name)
    module.load_state_dict(load_file(tmp_path / "w.safetensors"), strict=True)
    computed = pytorch.computed(name, module)
    np.testing.assert_allclose(result(name, layer, x), computed, rtol=1e-5, atol=1e-5)


def test_the_guide_has_the_table_of_measured_differences() -> None:
    assert "\n".join(table(STORED)) in GUIDE.read_text("utf-8")


# -- names of layers in models ---------------------------------------------------------------------


def test_layers_of_a_stack_of_pytorch_are_mapped_to_layers() -> None:
    x = inputs("RNN of LSTMCells")
    model = L.Sequential([L.LSTM(4, return_sequences=True), L.LSTM(4, return_sequences=True)])
    arrays = {f"lstm.{name}": x for name, x in state("RNN of LSTMCells").items()}
    model.load_weights(arrays, mapping=[(r"lstm\.(.*)_l(\d)", r"\2.\1_l0")])
    expected = STORED["RNN of LSTMCells/y"]
    np.testing.assert_allclose(model(x), expected, rtol=1e-5, atol=1e-5)


def test_a_path_of_the_model_in_a_mapping_takes_pytorchs_axes_and_gates() -> None:
    layer = L.GRU(4, return_sequences=True)
    arrays = state("GRU")
    names = {"weight_ih_l0": "cell/kernel", "weight_hh_l0": "cell/recurrent_kernel"}
    layer.load_weights(arrays, mapping=names, layout="pytorch")
    np.testing.assert_allclose(layer(inputs("GRU")), STORED["GRU/y"], rtol=1e-5, atol=1e-5)


def test_a_stateful_layer_takes_weights_and_keeps_its_states(tmp_path: Path) -> None:
    x = inputs("LSTM")
    layer = L.LSTM(4, return_sequences=True, stateful=True)
    layer(x)
    states = [state.numpy().copy() for state in layer.states]
    layer.load_weights(state("LSTM"))
    for kept, after in zip(states, layer.states):
        np.testing.assert_array_equal(kept, after.numpy())
    layer.save_weights(tmp_path / "w.safetensors", layout="pytorch")
    assert gt.saving.read_weights(tmp_path / "w.safetensors").keys() == state("LSTM").keys()


def test_a_layer_of_a_plugin_says_how_its_values_differ(tmp_path: Path) -> None:
    """A class of another package, which joins two weights in one array, and negates one."""

    class Twofold(L.Layer):
        names_elsewhere: ClassVar[Any] = {
            "pytorch": {
                ("left", "right"): (
                    ("both",),
                    (lambda own, x: np.split(x[0], 2), lambda own, x: [np.concatenate(x)]),
                ),
                "offset": ("shift", (lambda own, x: -x, lambda own, x: -x)),
            }
        }

        def build(self, input_shape: Any) -> None:
            self.left = self.add_weight((2,), "ones", "left")
            self.right = self.add_weight((2,), "zeros", "right")
            self.offset = self.add_weight((2,), "ones", "offset")

        def call(self, x: Any) -> Any:
            return x * self.left + self.right - self.offset

    model = L.Sequential([Twofold()])
    model(np.ones((1, 2), "float32"))
    model.save_weights(tmp_path / "w.safetensors", layout="pytorch")
    arrays = gt.saving.read_weights(tmp_path / "w.safetensors")
    assert {name: x.tolist() for name, x in arrays.items()} == {
        "0.both": [1.0, 1.0, 0.0, 0.0],
        "0.shift": [-1.0, -1.0],
    }
    report = model.load_weights({"0.both": np.arange(4.0), "0.shift": np.ones(2)})
    assert report.loaded["layers/0/right"] == "0.both"
    assert model.layers[0].right.tolist() == [2.0, 3.0]
    assert model.layers[0].offset.tolist() == [-1.0, -1.0]


# -- what has no form there ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("layer", "shape", "message"),
    [
        (L.GRU(4, reset_after=False), (2, 3, 4), "resets after the product"),
        (L.MultiHeadAttention(2, 4), (2, 3, 6), "heads divide the size of the queries, 6"),
        (L.MultiHeadAttention(2, 3, output_shape=5), (2, 3, 6), "as wide as the queries"),
        (L.MultiHeadAttention(2, 3, value_dim=2), (2, 3, 6), "there are 2 of size 2"),
        (L.PReLU(), (2, 3, 4), "all axes but one"),
    ],
)
def test_a_layer_that_pytorch_lacks_is_refused(
    layer: Any, shape: Any, message: str, tmp_path: Path
) -> None:
    layer(np.ones(shape, "float32"))
    path = tmp_path / "w.safetensors"
    with pytest.raises(gt.saving.SaveError, match=f"has no form in PyTorch: .*{message}"):
        layer.save_weights(path, layout="pytorch")
    assert not path.exists()
    layer.save_weights(path)  # in our own layout


@pytest.mark.parametrize(
    ("layer", "shape", "who"),
    [
        (L.EinsumDense("ab,bc->ac", 4), (2, 3), r"einsum_dense \(EinsumDense\)"),
        (L.TimeDistributed(L.EinsumDense("ab,bc->ac", 4)), (2, 3, 4), r"layer \(EinsumDense\)"),
    ],
)
def test_a_layer_whose_names_there_are_unknown_is_told(
    layer: Any, shape: Any, who: str, tmp_path: Path
) -> None:
    layer(np.ones(shape, "float32"))
    with pytest.warns(UserWarning, match=f"PyTorch's names are not known for .*{who}"):
        layer.save_weights(tmp_path / "w.safetensors", layout="pytorch")


class Scale(L.Layer):
    def build(self, input_shape: Any) -> None:
        self.factor = self.add_weight((input_shape[-1],), "ones", "factor")

    def call(self, x: Any) -> Any:
        return x * self.factor


class NamedScale(Scale):
    names_elsewhere: ClassVar[Any] = {"pytorch": {}}


class Held(gt.Model):
    def __init__(self) -> None:
        super().__init__()
        self.dense, self.factor = L.Dense(3), gt.Variable([1.0, 1.0, 1.0])

    def call(self, x: Any) -> Any:
        return self.dense(x) * self.factor


@pytest.mark.parametrize(("make", "told"), [(Scale, True), (NamedScale, False), (Held, False)])
def test_a_layer_of_ones_own_says_its_names(make: Any, told: bool, tmp_path: Path) -> None:
    layer = make()
    layer(np.ones((2, 3), "float32"))
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        layer.save_weights(tmp_path / "w.safetensors", layout="pytorch")
    assert len(found) == told
    assert "factor" in gt.saving.read_weights(tmp_path / "w.safetensors")


def test_a_setting_with_another_default_there_is_told_when_saving(tmp_path: Path) -> None:
    layer = L.BatchNorm()
    layer(np.ones((2, 3), "float32"))
    with pytest.warns(UserWarning, match="epsilon=0.001; its default in pytorch is 1e-05"):
        layer.save_weights(tmp_path / "w.safetensors", layout="pytorch")


def test_an_activation_that_pytorch_has_not_is_told(tmp_path: Path) -> None:
    layer = L.LSTM(4, recurrent_activation="hard_sigmoid")
    layer(np.ones((2, 3, 4), "float32"))
    with pytest.warns(UserWarning, match="recurrent_activation='hard_sigmoid'; its .*'sigmoid'"):
        layer.save_weights(tmp_path / "w.safetensors", layout="pytorch")


@pytest.mark.parametrize("missing", ["bias_hh_l0", "weight_hh_l0"])
def test_half_of_what_is_one_variable_is_not_loaded(missing: str) -> None:
    layer, arrays = L.LSTM(4), state("LSTM")
    del arrays[missing]
    with pytest.raises(gt.saving.WeightsMismatch, match="missing: cell/"):
        layer.load_weights(arrays)
    assert not layer.built


def test_shared_layers_are_found_by_each_of_their_names(tmp_path: Path) -> None:
    class Pair(gt.Module):
        def __init__(self, share: bool) -> None:
            super().__init__()
            self.a = L.LSTM(4, return_sequences=True)
            self.b = self.a if share else L.LSTM(4, return_sequences=True)

        def __call__(self, x: Any) -> Any:
            return self.b(self.a(x))

    shared, x = Pair(True), inputs("LSTM")
    shared(x)
    randomized(shared)
    shared.save_weights(tmp_path / "w.safetensors", layout="pytorch")
    for share in (True, False):
        other = Pair(share)
        assert other.load_weights(tmp_path / "w.safetensors").ok
        np.testing.assert_array_equal(other(x).numpy(), shared(x).numpy())


def test_two_arrays_for_one_variable_are_equal_or_refused() -> None:
    class Tied(gt.Module):
        def __init__(self) -> None:
            super().__init__()
            self.a = self.b = L.LSTM(4)

    once = {f"a.{key}": x for key, x in state("LSTM").items()}
    twice = once | {f"b.{key}": x for key, x in state("LSTM").items()}
    report = Tied().load_weights(twice)
    assert report.left_out == {f"b.{key}": f"the same as a.{key}" for key in state("LSTM")}
    for key in ("weight_ih_l0", "bias_hh_l0"):
        with pytest.raises(ValueError, match=rf"'a.{key}' and 'b.{key}' are both .*, and differ"):
            Tied().load_weights(twice | {f"b.{key}": twice[f"b.{key}"] + 1})
    with pytest.raises(
        ValueError, match=r"'a/cell/bias' and 'a.bias_ih_l0 .* are both a/cell/bias"
    ):
        Tied().load_weights(once | {"a/cell/bias": np.ones(16)})
    attention = state("MultiHeadAttention")
    attention["q_proj_weight"] = attention["in_proj_weight"][:6]
    with pytest.raises(ValueError, match="are both query_dense/kernel"):
        L.MultiHeadAttention(2, 3).load_weights(attention)


def test_what_cannot_be_converted_is_not_loaded_as_it_is() -> None:
    layer = L.GRU(2, reset_after=False, return_sequences=True)
    layer(np.ones((1, 3, 6), "float32"))  # whose kernel is square
    before = layer.cell.kernel.numpy().copy()
    arrays = {"weight_ih_l0": np.ones((6, 6)), "weight_hh_l0": np.ones((6, 2))}
    arrays |= {"bias_ih_l0": np.ones(6), "bias_hh_l0": np.ones(6), "extra": np.ones(1)}
    with pytest.raises(gt.saving.WeightsMismatch, match="reset_after is False"):
        layer.load_weights(arrays, strict=False)
    np.testing.assert_array_equal(layer.cell.kernel.numpy(), before)


def test_arrays_of_another_shape_are_named() -> None:
    layer, arrays = L.GRU(4), state("LSTM")  # four gates
    with pytest.raises(gt.saving.WeightsMismatch, match=r"cell cannot take weight_ih_l0 \(16, 4\)"):
        layer.load_weights(arrays)
    attention = L.MultiHeadAttention(4, 3)
    with pytest.raises(gt.saving.WeightsMismatch, match="in_proj_weight"):
        attention.load_weights(state("MultiHeadAttention"))


@pytest.mark.parametrize("layout", ["gradtape", "pytorch"])
def test_variables_of_one_name_are_refused(layout: str, tmp_path: Path) -> None:
    v, w = gt.Variable(1.0), gt.Variable(2.0)
    cases = [{1: v, "1": w}] + [{"a.b": v, "a": {"b": w}}] * (layout == "pytorch")
    for held in cases:
        model = gt.Module()
        model.held = held
        with pytest.raises(gt.saving.SaveError, match=r"have the name 'held"):
            model.save_weights(tmp_path / "w.safetensors", layout=layout)


def test_a_key_with_a_dot_comes_back(tmp_path: Path) -> None:
    model = gt.Module()
    model.held = {"a.b": gt.Variable(3.0)}
    for layout in ("gradtape", "pytorch"):
        model.save_weights(tmp_path / "w.safetensors", layout=layout)
        model.held["a.b"].assign(0.0)
        model.load_weights(tmp_path / "w.safetensors")
        assert model.held["a.b"].item() == 3.0


@pytest.mark.parametrize("dtype", ["float32", "float64", "bfloat16", "float8_e4m3fn"])
@pytest.mark.parametrize("training", [False, True])
def test_tensors_of_pytorch_need_no_file(dtype: str, training: bool) -> None:
    torch = pytest.importorskip("torch")
    linear = torch.nn.Linear(3, 2)
    tensors = dict(linear.named_parameters()) if training else linear.state_dict()
    tensors = {name: tensor.to(getattr(torch, dtype)) for name, tensor in tensors.items()}
    layer = gt.layers.Dense(2)
    layer.load_weights(tensors)
    expected = tensors["weight"].detach().float().numpy().T
    np.testing.assert_array_equal(layer.kernel.numpy(), expected)


def test_a_dictionary_around_the_weights_and_a_module_are_told() -> None:
    torch = pytest.importorskip("torch")
    linear, layer = torch.nn.Linear(3, 2), gt.layers.Dense(2)
    saved = {"epoch": 3, "state_dict": linear.state_dict()}
    with pytest.raises(
        TypeError, match=r"pass only this part: load_weights\(weights\['state_dict'"
    ):
        layer.load_weights(saved)
    for given in (linear, linear.state_dict):
        with pytest.raises(TypeError, match=r"got \w+; pass what its state_dict\(\) returns"):
            layer.load_weights(given)
    with pytest.raises(TypeError, match=r"a path or a dictionary of arrays, got int$"):
        layer.load_weights(3)

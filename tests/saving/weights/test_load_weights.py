"""Weights from a file into a model of one's own code: what goes where, and what is refused."""

from __future__ import annotations

import copy
import re
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gradtape as gt
from gradtape.core.extend import Op
from gradtape.layers import BatchNorm, Dense, Dropout, Layer, Sequential

pytestmark = pytest.mark.usefixtures("forks")

X = np.random.default_rng(0).normal(size=(6, 3)).astype("float32")


class Net(gt.Module):
    """A model with a method of its own, attributes, containers and variables."""

    def __init__(self, units: int = 4) -> None:
        super().__init__()
        self.hidden = Dense(units, activation="tanh")
        self.norm = BatchNorm()
        self.blocks = [Dense(units), Dense(units)]
        self.extra = {"head": Dense(2)}
        self.scale = gt.Variable([1.0, 1.0])

    def __call__(self, x: Any, training: bool = False) -> Any:
        y = self.norm(self.hidden(x))
        for block in self.blocks:
            y = block(y)
        return self.extra["head"](y) * self.scale

    def loudness(self) -> float:
        return float(gt.sum(gt.abs(self.scale)))


def trained() -> Net:
    gt.random.set_seed(1)
    net = Net()
    net(X)
    gt.training.fit(net, (X, X[:, :2]), loss="mse", epochs=2, verbose=False)
    return net


def values(module: gt.Module) -> dict[str, Any]:
    return {path: v.numpy().copy() for path, v in module.named_variables.items()}


def assert_same(a: dict[str, Any], b: dict[str, Any]) -> None:
    assert a.keys() == b.keys()
    for path, value in a.items():
        np.testing.assert_array_equal(value, b[path], path)
        assert value.dtype == b[path].dtype


FORMATS: dict[str, Callable[[gt.Module, Path], Any]] = {
    "saved.h5": gt.save,
    "weights.h5": gt.save_weights,
    "weights.safetensors": gt.save_weights,
}


@pytest.fixture(params=FORMATS)
def saved(request: Any, tmp_path: Path) -> tuple[Net, Path]:
    """A trained model and a file of it, in every format."""
    net = trained()
    FORMATS[request.param](net, tmp_path / request.param)
    return net, tmp_path / request.param


@pytest.mark.parametrize("built", [True, False])
def test_a_model_of_ones_own_takes_the_weights_of_a_file(saved: Any, built: bool) -> None:
    net, path = saved
    other = Net()
    if built:
        other(X)
    report = other.load_weights(path)
    assert report.ok
    assert report.layout == "gradtape"
    assert report.loaded == {name: name for name in net.named_variables}
    assert_same(values(other), values(net))
    np.testing.assert_array_equal(other(X).numpy(), net(X).numpy())
    assert other.loudness() == net.loudness()  # the class is ours, methods and all


def test_the_content_of_a_file_says_what_it_is(saved: Any, tmp_path: Path) -> None:
    net, path = saved
    path.rename(tmp_path / "model.keras.bin")
    other = Net()
    gt.load_weights(str(tmp_path / "model.keras.bin"), other)
    assert_same(values(other), values(net))


def test_a_file_whose_ops_are_missing_gives_its_weights(tmp_path: Path) -> None:
    op = Op(
        "elsewhere::twice",
        lambda xp, x: x * 2,
        gradients={"x": lambda g: g * 2.0},
        infer=lambda x: (x.shape, x.dtype),
    )

    class Plugin:
        @gt.hookimpl
        def gradtape_ops(self) -> list[Any]:
            return [op]

    class Twice(gt.Module):
        def __init__(self) -> None:
            super().__init__()
            self.dense = Dense(2)

        def __call__(self, x: Any) -> Any:
            return op(self.dense(x))

    gt.register_plugin(Plugin(), "elsewhere")
    try:
        model = Twice()
        model(X)
        gt.save(model, tmp_path / "model.h5")
    finally:
        gt.unregister_plugin("elsewhere")
    with pytest.raises(gt.saving.MissingPlugin):
        gt.load(tmp_path / "model.h5")
    other = Twice()
    gt.load_weights(tmp_path / "model.h5", other)
    assert_same(values(other), values(model))


def test_files_of_the_oldest_version_give_their_weights() -> None:
    path = Path(__file__).parents[1] / "golden" / "v2_0.h5"
    found = gt.saving.read_weights(path)
    assert {"flag", "wave", "half", "empty", "count"} < set(found)
    model = Sequential([Dense(4), BatchNorm(), Dense(2)])
    names = [name.partition("/")[0] for name in found if not name.startswith("net/")]
    mapping = {"net": "", "net/layers/4": None} | dict.fromkeys(names)
    report = model.load_weights(path, mapping=mapping)
    assert len(report.loaded) == 8
    loaded = values(gt.load(path).net)
    assert_same(values(model), {name: loaded[name] for name in values(model)})


def test_the_report_is_a_table(tmp_path: Path) -> None:
    net = Sequential([Dense(1)])
    net(X)
    net.save_weights(tmp_path / "w.h5")
    report = net.load_weights(tmp_path / "w.h5")
    assert str(report).splitlines()[0] == f"{tmp_path / 'w.h5'} (gradtape): 2 loaded"
    assert re.search(r"layers/0/kernel  layers/0/kernel  loaded", str(report))


# -- what does not fit -----------------------------------------------------------------------------


def arrays_of(net: Net) -> dict[str, Any]:
    return values(net)


def without(name: str) -> Callable[[dict[str, Any]], Any]:
    return lambda arrays: arrays.pop(name)


MISMATCHES: dict[str, tuple[Callable[[dict[str, Any]], Any], str]] = {
    "missing": (without("hidden/bias"), "missing: hidden/bias"),
    "unexpected": (lambda a: a.update(more=np.ones(2)), "unexpected: more"),
    "shape": (
        lambda a: a.update({"scale": np.ones(3)}),
        r"wrong shape: scale is \(2,\), the file has \(3,\)",
    ),
    "rank": (
        lambda a: a.update({"hidden/kernel": np.ones(12)}),
        r"wrong shape: hidden/kernel is .*the file has \(12,\)",
    ),
    "kind": (
        lambda a: a.update({"scale": np.ones(2, "complex64")}),
        "wrong dtype: scale is float32, the file has complex64",
    ),
    "range": (
        lambda a: a.update({"scale": np.array([1e300, 1.0])}),
        "wrong dtype: scale is float32, the file has float64 with numbers that it cannot hold",
    ),
}


@pytest.mark.parametrize("built", [True, False])
@pytest.mark.parametrize("name", MISMATCHES)
def test_what_does_not_fit_leaves_the_model_as_it_was(name: str, built: bool) -> None:
    change, message = MISMATCHES[name]
    arrays = arrays_of(trained())
    change(arrays)
    gt.random.set_seed(5)
    other, twin = Net(), Net()
    if built:
        other(X)
    before = values(other)
    with pytest.raises(gt.saving.WeightsMismatch, match=message) as caught:
        other.load_weights(arrays)
    assert_same(values(other), before)
    assert not caught.value.report.ok
    if not built:
        assert not other.hidden.built
        # numbers drawn by layers that were built for nothing were not drawn
        gt.random.set_seed(5)
        expected = twin(X)
        gt.random.set_seed(5)
        np.testing.assert_array_equal(other(X), expected)


def test_all_that_is_wrong_is_listed() -> None:
    arrays = arrays_of(trained())
    for change, _ in MISMATCHES.values():
        change(arrays)
    with pytest.raises(gt.saving.WeightsMismatch) as caught:
        gt.load_weights(arrays, Net())
    report = caught.value.report
    assert report.missing == ["hidden/bias (not built)"]
    assert report.unexpected == ["more"]
    assert list(report.wrong_shape) == ["hidden/kernel"]
    assert list(report.wrong_dtype) == ["scale"]
    assert str(caught.value).splitlines()[1:] == [f"  {line}" for line in report.problems()]


def test_what_fits_is_loaded_where_that_is_asked_for_and_the_rest_is_told_once() -> None:
    arrays = arrays_of(trained())
    full = dict(arrays)
    for name in ("missing", "unexpected", "shape"):
        MISMATCHES[name][0](arrays)
    other = Net()
    other(X)
    before = values(other)
    with pytest.warns(UserWarning, match="not all was loaded") as told:
        report = other.load_weights(arrays, strict=False)
    assert len(told) == 1
    assert told[0].filename == __file__
    for path, value in values(other).items():
        kept = path in ("hidden/bias", "scale")
        np.testing.assert_array_equal(value, before[path] if kept else full[path], path)
    assert report.missing == ["hidden/bias"]


def test_a_layer_that_is_not_built_stays_so_where_its_weights_do_not_fit() -> None:
    arrays = {"kernel": np.ones((3, 5), "float32"), "bias": np.ones(4, "float32")}
    model = gt.Module()
    model.dense, model.scale = Dense(4), gt.Variable(1.0)
    given = {f"dense/{name}": array for name, array in arrays.items()} | {"scale": np.float32(2)}
    with pytest.warns(UserWarning, match=r"dense/kernel is \(3, 4\), the file has \(3, 5\)"):
        report = gt.load_weights(given, model, strict=False)
    assert not model.dense.built
    assert report.missing == ["dense/bias (not built)"]
    assert model.scale.item() == 2.0


def test_a_file_of_which_nothing_fits_is_an_error_in_any_case() -> None:
    with pytest.raises(gt.saving.WeightsMismatch, match="unexpected: b"):
        gt.load_weights({"b": np.ones(2)}, trained(), strict=False)


@pytest.mark.parametrize(
    ("stored", "dtype", "value"),
    [
        ("float64", "float32", 0.1),
        ("float16", "float32", 0.5),
        ("float32", "float64", 0.1),
        ("int64", "int32", 7),
        ("bool", "float32", 1),
    ],
)
def test_dtypes_are_converted_within_a_kind_and_told(stored: str, dtype: str, value: Any) -> None:
    model = gt.Module()
    model.v = gt.Variable(np.zeros(2, dtype))
    report = gt.load_weights({"v": np.array([value] * 2, stored)}, model)
    assert model.v.dtype == np.dtype(dtype)
    np.testing.assert_array_equal(model.v.numpy(), np.array([value] * 2, stored).astype(dtype))
    assert report.cast == {"v": (stored, dtype)}


@pytest.mark.parametrize(
    ("stored", "value", "dtype"),
    [
        ("int64", 2**40, "int32"),
        ("float32", 1.0, "int32"),
        ("int64", 2**24 + 1, "float32"),
        ("float64", 1e5, "float16"),
        ("complex64", 1.0, "float32"),
        ("float32", 1.0, "bool"),
    ],
)
def test_numbers_that_the_variable_cannot_hold_are_refused(
    stored: str, value: Any, dtype: str
) -> None:
    model = gt.Module()
    model.v = gt.Variable(np.zeros(1, dtype))
    with pytest.raises(gt.saving.WeightsMismatch, match=f"wrong dtype: v is {dtype}"):
        gt.load_weights({"v": np.array([value], stored)}, model)


@pytest.mark.parametrize(
    ("stored", "dtype"), [("float16", "float32"), ("float32", "float32"), ("float64", "float64")]
)
def test_a_layer_that_is_built_for_a_file_has_a_dtype_that_holds_it(
    stored: str, dtype: str
) -> None:
    layer = Dense(2)
    gt.load_weights({"kernel": np.ones((3, 2), stored), "bias": np.ones(2, stored)}, layer)
    assert layer.kernel.dtype == np.dtype(dtype)
    given = Dense(2, dtype="float64")
    gt.load_weights({"kernel": np.ones((3, 2), stored), "bias": np.ones(2, stored)}, given)
    assert given.kernel.dtype == np.float64


@pytest.mark.needs("weights")
def test_arguments_of_another_kind_are_refused(tmp_path: Path) -> None:
    net = trained()
    with pytest.raises(TypeError, match=r"got Net and str; the path comes first"):
        gt.load_weights(net, "model.h5")  # type: ignore[arg-type]
    with pytest.raises(
        ValueError, match="layout must be one of gradtape, keras, pytorch, got 'torch'"
    ):
        gt.load_weights({}, net, layout="torch")
    with pytest.raises(TypeError, match="'a' is not an array of numbers"):
        gt.load_weights({"a": "text"}, net)
    with pytest.raises(gt.saving.FileMissing):
        gt.load_weights(tmp_path / "none.h5", net)
    net.save_weights(tmp_path / "net.h5")
    with pytest.raises(gt.saving.UnsafeFile, match="max_bytes"):
        gt.load_weights(tmp_path / "net.h5", net, max_bytes=100)

    @gt.function
    def traced(x: Any) -> Any:
        net.load_weights(tmp_path / "net.h5")
        return x

    with pytest.raises(RuntimeError, match="outside traced functions"):
        traced(gt.constant(1.0))


# -- mapping ---------------------------------------------------------------------------------------

MAPPINGS: dict[str, Any] = {
    "names": {
        "encoder.w": "hidden/kernel",
        "encoder.b": "hidden/bias",
        "factor": "scale",
    },
    "parts": {
        "encoder": "hidden",
        "encoder.w": "hidden/kernel",
        "encoder.b": "hidden/bias",
        "factor": "scale",
    },
    "function": lambda name: {
        "encoder.w": "hidden/kernel",
        "encoder.b": "hidden.bias",
        "factor": "scale",
    }.get(name, name),
    "patterns": [
        (r"^encoder\.w$", "hidden/kernel"),
        (r"encoder\.b", "hidden/bias"),
        (re.compile("^factor$"), "scale"),
    ],
}


@pytest.mark.parametrize("kind", MAPPINGS)
def test_names_are_mapped(kind: str) -> None:
    net = trained()
    arrays = values(net)
    arrays["encoder.w"] = arrays.pop("hidden/kernel")
    arrays["encoder.b"] = arrays.pop("hidden/bias")
    arrays["factor"] = arrays.pop("scale")
    other = Net()
    mapping = MAPPINGS[kind]
    if kind == "parts":
        arrays["encoder.kernel"], arrays["encoder.bias"] = (
            arrays.pop("encoder.w"),
            arrays.pop("encoder.b"),
        )
        mapping = {"encoder": "hidden", "factor": "scale"}
    report = gt.load_weights(arrays, other, mapping=mapping)
    assert report.ok
    assert_same(values(other), values(net))


def test_a_part_of_a_file_becomes_the_model_itself_and_others_are_left_out(tmp_path: Path) -> None:
    class Both(gt.Module):
        def __init__(self, net: Net) -> None:
            super().__init__()
            self.net, self.optimizer = net, gt.training.Adam(0.01)

    both = Both(trained())
    gt.save_weights(both, tmp_path / "both.h5")
    other = Net()
    report = gt.load_weights(tmp_path / "both.h5", other, mapping={"net": "", "optimizer": None})
    assert set(report.left_out) == {"optimizer/iterations", "optimizer/learning_rate"}
    assert_same(values(other), values(both.net))


@pytest.mark.parametrize(
    ("mapping", "error", "message"),
    [
        ({"nothing": "scale"}, ValueError, "'nothing' match no name; the file has"),
        ({"hid": "scale"}, ValueError, "'hid' match no name"),
        ([("^none$", "scale"), ("scale", "scale")], ValueError, r"'\^none\$' match no name"),
        ({"scale": 3}, TypeError, "the mapping gives 3 for 'scale'"),
        ([("scale", "a", "b")], TypeError, "not a pair of a regular expression and a replacement"),
        ([("scale", None)], ValueError, "is not a regular expression and what replaces it"),
        ([("(", "x")], ValueError, "is not a regular expression.*unterminated"),
        ([("scale", r"\9")], ValueError, "is not a regular expression.*group reference"),
        ("scale", TypeError, "mapping must be a dictionary, a function or"),
        (5, TypeError, "mapping must be a dictionary, a function or"),
        (
            {"scale": ("scale", (1, 0))},
            ValueError,
            r"\(1, 0\) is not an order of the 1 axes of 'scale'",
        ),
        (
            {"hidden/bias": "norm/beta"},
            ValueError,
            "'hidden/bias' and 'norm/beta' are both norm/beta",
        ),
    ],
)
def test_a_mapping_that_means_nothing_or_two_things_is_refused(
    mapping: Any, error: type[Exception], message: str
) -> None:
    net = trained()
    other = Net()
    with pytest.raises(error, match=message):
        gt.load_weights(values(net), other, mapping=mapping)
    assert not other.hidden.built


def test_a_mapping_may_turn_axes() -> None:
    class Conv(gt.Module):
        def __init__(self) -> None:
            super().__init__()
            self.kernel = gt.Variable(np.zeros((3, 2, 1, 4), "float32"))

    kernel = np.arange(24, dtype="float32").reshape(4, 1, 3, 2)
    model = Conv()
    gt.load_weights({"weight": kernel}, model, mapping={"weight": ("kernel", (2, 3, 1, 0))})
    np.testing.assert_array_equal(model.kernel.numpy(), kernel.transpose(2, 3, 1, 0))


def test_equal_arrays_under_two_names_are_one(tmp_path: Path) -> None:
    shared = gt.Module()
    shared.a = shared.b = gt.Variable([1.0, 2.0])
    report = gt.load_weights({"a": np.ones(2), "b": np.ones(2)}, shared)
    assert report.left_out == {"b": "the same as a"}
    with pytest.raises(ValueError, match="'a' and 'b' are both a, and differ"):
        gt.load_weights({"a": np.ones(2), "b": np.zeros(2)}, shared)
    apart = gt.Module()
    apart.a, apart.b = gt.Variable([1.0, 2.0]), gt.Variable([1.0, 2.0])
    gt.save_weights(apart, tmp_path / "apart.h5")
    assert gt.load_weights(tmp_path / "apart.h5", shared).left_out == {"b": "the same as a"}
    gt.load_weights({"b": np.zeros(2)}, shared)
    assert shared.a.tolist() == [0.0, 0.0]


# -- layers that are not built ---------------------------------------------------------------------


class Scale(Layer):
    """A layer of which only its ``build`` knows the weights."""

    def build(self, input_shape: Any) -> None:
        self.factor = self.add_weight((input_shape[-1],), "ones", "factor")
        self.inner = Dense(2)

    def call(self, x: Any) -> Any:
        return self.inner(x * self.factor)


def scaled() -> Sequential:
    net = Sequential([Dense(4), Scale()])
    net(X)
    net.layers[1].factor.assign([1.0, 2.0, 3.0, 4.0])
    return net


def test_weights_wait_for_a_layer_that_only_its_first_call_builds(tmp_path: Path) -> None:
    net = scaled()
    net.save_weights(tmp_path / "w.h5")
    other = Sequential([Dense(4), Scale()])
    report = other.load_weights(tmp_path / "w.h5")
    assert set(report.pending) == {
        f"layers/1/{x}" for x in ("factor", "inner/kernel", "inner/bias")
    }
    assert set(report.pending.values()) == {"layers/1"}
    assert "waits for the layer's first call" in str(report)
    twin = copy.deepcopy(other)
    for model in (other, twin):
        np.testing.assert_array_equal(model(X).numpy(), net(X).numpy())
        assert_same(values(model), values(net))
    other.layers[1].factor.assign([0.0] * 4)
    other(X)
    assert other.layers[1].factor.tolist() == [0.0] * 4  # they were loaded once


@pytest.mark.parametrize("call", [lambda f: f, gt.function])
def test_weights_that_waited_in_vain_are_an_error_at_every_call(call: Any) -> None:
    arrays = values(scaled())
    arrays["layers/1/factor"] = np.ones(5, "float32")
    other = Sequential([Dense(4), Scale()])
    other.load_weights(arrays)
    for _ in range(2):
        with pytest.raises(
            gt.saving.WeightsMismatch, match=r"factor is \(4,\), the file has \(5,\)"
        ):
            call(lambda x: other(x))(gt.constant(X))
    assert not other.layers[1].built


def test_weights_that_wait_and_do_not_fit_are_told_where_that_is_asked_for() -> None:
    arrays = values(scaled())
    arrays["layers/1/factor"] = np.ones(5, "float32")
    other = Sequential([Dense(4), Scale()])
    other.load_weights(arrays, strict=False)
    with pytest.warns(UserWarning, match="not all was loaded"):
        other(X)
    np.testing.assert_array_equal(other.layers[1].inner.kernel, arrays["layers/1/inner/kernel"])


def test_a_layer_that_is_not_built_and_not_in_the_file_is_missing() -> None:
    arrays = values(scaled())
    one = {"layers/0/kernel": arrays["layers/0/kernel"], "layers/0/bias": arrays["layers/0/bias"]}
    for layer, missing in (
        (Scale(), "layers/1 .not built"),
        (Dense(2), "layers/1/kernel .not built"),
    ):
        with pytest.raises(gt.saving.WeightsMismatch, match=f"missing: {missing}"):
            Sequential([Dense(4), layer]).load_weights(one)


@pytest.mark.parametrize("axis", [-1, 1, 2, -2])
@pytest.mark.parametrize("scale", [True, False])
def test_a_normalisation_is_built_for_its_channels(axis: int, scale: bool) -> None:
    x = np.random.default_rng(0).normal(size=(2, 4, 4)).astype("float32")
    layer = BatchNorm(axis=axis, scale=scale)
    layer(x, training=True)
    other = BatchNorm(axis=axis, scale=scale)
    other.load_weights(values(layer))
    np.testing.assert_array_equal(other(x).numpy(), layer(x).numpy())


def test_random_states_are_taken_where_they_are_and_not_missed() -> None:
    def net() -> Sequential:
        return Sequential([Dense(2), Dropout(0.5, seed=1)])

    first, second = net(), net()
    first(X, training=True)
    arrays = values(first)
    second(X)
    second.load_weights(arrays)
    np.testing.assert_array_equal(first(X, training=True), second(X, training=True))
    del arrays["layers/1/state"]
    assert net().load_weights(arrays).ok
    assert second.load_weights(arrays).ok


# -- freezing --------------------------------------------------------------------------------------


def test_weights_are_loaded_into_frozen_parts_which_stay_frozen_and_bit_equal(
    tmp_path: Path,
) -> None:
    net = trained()
    net.save_weights(tmp_path / "w.h5")
    other = Net()
    other.set_trainable(False, "hidden", "blocks/*")
    other.load_weights(tmp_path / "w.h5")
    assert not other.hidden.trainable
    assert len(other.trainable_variables) == 5
    gt.training.fit(other, (X, X[:, :2]), loss="mse", epochs=3, verbose=False)
    for path, value in values(other).items():
        frozen = path.startswith(("hidden", "blocks"))
        assert (value.tobytes() == values(net)[path].tobytes()) == frozen, path
    other.set_trainable(True, "blocks/1")
    assert len(other.trainable_variables) == 7


def test_the_state_of_an_optimizer_is_left_alone(tmp_path: Path) -> None:
    net = trained()
    optimizer = gt.training.Adam(0.05)
    options: Any = {"loss": "mse", "optimizer": optimizer, "shuffle": False, "verbose": False}
    gt.training.fit(net, (X, X[:, :2]), **options)
    before = values(optimizer)
    net.save_weights(tmp_path / "w.safetensors")
    net.load_weights(tmp_path / "w.safetensors")
    assert_same(values(optimizer), before)
    twin, twins = copy.deepcopy((net, optimizer))
    gt.training.fit(net, (X, X[:, :2]), **options)
    gt.training.fit(twin, (X, X[:, :2]), **(options | {"optimizer": twins}))
    assert_same(values(net), values(twin))


def test_parts_are_frozen_by_patterns() -> None:
    net = Net()
    frozen = net.set_trainable(False, "blocks/[01]", "extra/*")
    assert frozen == ("blocks/0", "blocks/1", "extra/head")
    net(X)
    assert {path for path, v in net.named_variables.items() if v.trainable} == {
        "scale",
        *(f"hidden/{x}" for x in ("kernel", "bias")),
        *(f"norm/{x}" for x in ("gamma", "beta")),
    }
    parts = net.set_trainable(True, "*")
    assert parts == ("blocks/0", "blocks/1", "extra/head", "hidden", "norm")
    assert not net.norm.moving_mean.trainable  # what did not train before does not now
    assert len(net.trainable_variables) == 11


@pytest.mark.parametrize(
    ("value", "patterns", "error", "message"),
    [
        (False, ("hidden", "encoder"), ValueError, "'encoder' matches none of the modules in it"),
        (False, ("hidden", "scale"), ValueError, "'scale' is a variable: set its trainable"),
        (False, (), ValueError, "pass the paths of the parts"),
        ("no", ("hidden",), TypeError, "trainable must be True or False, got 'no'"),
    ],
)
def test_a_pattern_without_a_part_is_refused_and_nothing_is_frozen(
    value: Any, patterns: Any, error: type[Exception], message: str
) -> None:
    net = trained()
    with pytest.raises(error, match=message):
        net.set_trainable(value, *patterns)
    assert net.hidden.trainable


# -- saving weights --------------------------------------------------------------------------------


def test_a_file_of_weights_opens_as_a_tree(tmp_path: Path) -> None:
    net = trained()
    net.set_trainable(False, "blocks/0")
    net.save_weights(tmp_path / "w.h5")
    found = gt.load(tmp_path / "w.h5")
    assert_same(values(found), values(net))
    assert not found.blocks[0].trainable
    assert found.extra["head"].class_name == "Dense"
    with pytest.raises(TypeError, match="the file holds weights alone"):
        found(X)


def test_what_cannot_be_traced_has_weights_that_are_saved(tmp_path: Path) -> None:
    class Odd(gt.Module):
        def __init__(self) -> None:
            super().__init__()
            self.dense = Dense(2, activation=lambda x: gt.constant(np.tanh(x.numpy())))
            self.tables = [np.ones(3), {"a": gt.Variable(1.0), 3: object()}]

        def __call__(self, x: Any) -> Any:
            return self.dense(x)

    model = Odd()
    model(X)
    for name in ("w.h5", "w.safetensors"):
        model.save_weights(tmp_path / name)
        other = Odd()
        other.load_weights(tmp_path / name)
        np.testing.assert_array_equal(other(X).numpy(), model(X).numpy())


def test_weights_that_are_not_there_are_not_saved(tmp_path: Path) -> None:
    for name in ("w.h5", "w.safetensors"):
        with pytest.raises(
            gt.saving.SaveError, match=r"layer 'blocks/0' \(Dense\) has no weights yet"
        ):
            gt.save_weights(Net(), tmp_path / name)
        with pytest.raises(
            gt.saving.SaveError, match=r"layer 'scale' \(Scale\) has no weights yet"
        ):
            gt.save_weights(Scale(), tmp_path / name)
        assert not (tmp_path / name).exists()


def test_shared_variables_are_saved_once_and_found_by_each_of_their_names(tmp_path: Path) -> None:
    class Tied(gt.Module):
        def __init__(self, share: bool) -> None:
            super().__init__()
            self.a = Dense(3, use_bias=False)
            self.b = self.a if share else Dense(3, use_bias=False)

        def __call__(self, x: Any) -> Any:
            return self.b(self.a(x))

    tied = Tied(True)
    tied(X)
    for name in ("w.h5", "w.safetensors"):
        tied.save_weights(tmp_path / name)
        for share in (True, False):
            other = Tied(share)
            other.load_weights(tmp_path / name)
            np.testing.assert_array_equal(other(X).numpy(), tied(X).numpy())


class Held(gt.Module):
    """Variables in dictionaries of other keys, and in a list that is in two places."""

    def __init__(self) -> None:
        super().__init__()
        self.by_number = {0: gt.Variable([1.0]), (1, 2): gt.Variable([2.0])}
        self.b_list = [gt.Variable([3.0])]
        self.a_list = self.b_list


@pytest.mark.parametrize("save", [gt.save, gt.save_weights])
def test_variables_in_odd_containers_are_found(save: Any, tmp_path: Path) -> None:
    held, other = Held(), Held()
    for v in held.variables:
        v.assign(v * 10)
    save(held, tmp_path / "held.h5")
    assert other.load_weights(tmp_path / "held.h5").ok
    assert_same(values(other), values(held))


def test_loading_warns_of_nothing_where_all_fits(saved: Any) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        Net().load_weights(saved[1])


def test_a_part_that_a_mapping_leaves_out_keeps_its_values(tmp_path: Path) -> None:
    def model(units: int) -> gt.layers.Sequential:
        net = gt.layers.Sequential([gt.layers.Dense(3), gt.layers.Dense(units)])
        net(gt.ones((1, 2)))
        return net

    model(4).save_weights(tmp_path / "w.h5")
    other = model(5)
    before = other.layers[1].kernel.numpy()
    report = other.load_weights(tmp_path / "w.h5", mapping={"layers/1": None})
    assert report.ok
    assert sorted(report.left_out) == ["layers/1/bias", "layers/1/kernel"]
    assert (other.layers[1].kernel.numpy() == before).all()
    with pytest.raises(gt.saving.WeightsMismatch, match="layers/1/kernel"):
        other.load_weights(tmp_path / "w.h5")  # of another shape

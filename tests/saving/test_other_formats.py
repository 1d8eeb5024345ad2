"""A path whose end names another format gets that format, or an error that says what to call."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gradtape as gt
from gradtape.layers import Dense
from gradtape.saving import SaveError
from gradtape.training import Checkpoint, ModelCheckpoint, fit

DATA = np.ones((2, 3), "f4"), np.ones((2, 2), "f4")
#: What the message says for each end of a name.
INSTEAD = {
    "m.onnx": r"gradtape\.export\.onnx\(",
    "m.pt": r'layout="pytorch"',
    "m.PTH": r'layout="pytorch"',
    "m.npz": r"numpy\.savez\(",
    "m.npy": r"numpy\.savez\(",
    "m.zarr": r"zarr\.save_group\(",
    "m.pkl": r"pickle\.dump\(",
    "m.joblib": r"pickle\.dump\(",
    "m.mlir": r"gradtape\.export\.stablehlo\(",
    "m.mine": "mine to write",
}


class Formats:
    """A plugin with a format of weights, and one of something else."""

    written: Any = None
    fails = False

    @gt.hookimpl
    def gradtape_formats(self) -> Mapping[str, Any]:
        return {".own": self.write, ".mine": "mine to write"}

    def write(self, path: str, *given: Any) -> None:
        self.written = path, *given
        Path(path).write_bytes(b"half")
        if self.fails:
            raise KeyError("float8")
        Path(path).write_bytes(b"whole")


@pytest.fixture
def plugin() -> Iterator[Formats]:
    found = Formats()
    gt.register_plugin(found, "formats")
    yield found
    gt.unregister_plugin("formats")


@pytest.fixture
def model() -> gt.Module:
    model = Dense(2)
    model(gt.ones((1, 3)))
    return model


@pytest.mark.needs("weights", "export")
@pytest.mark.usefixtures("plugin")
@pytest.mark.parametrize("name", list(INSTEAD))
def test_other_formats_are_refused_with_what_to_call(
    name: str, model: gt.Module, tmp_path: Path
) -> None:
    path = tmp_path / name
    for action in (
        lambda: gt.save(model, path),
        lambda: model.save_weights(path),
        lambda: Checkpoint(model=model).save(path),
        lambda: fit(model, DATA, loss="mse", verbose=0, checkpoint=path),
        lambda: ModelCheckpoint(path),
    ):
        with pytest.raises(SaveError, match=rf"{name}: gradtape's files are HDF5.*{INSTEAD[name]}"):
            action()
    assert not path.exists()


@pytest.mark.needs("weights", "export")
def test_formats_of_weights_are_written_by_save_weights_alone(
    plugin: Formats, model: gt.Module, tmp_path: Path
) -> None:
    for ending in (".own", ".safetensors", ".SafeTensors"):
        with pytest.raises(SaveError, match=r"gradtape\.save_weights\(model, path\) writes"):
            gt.save(model, tmp_path / f"m{ending}")
        ModelCheckpoint(tmp_path / f"m{ending}", save_weights_only=True)
        model.save_weights(tmp_path / f"m{ending}", layout="pytorch")
    assert gt.saving.read_weights(tmp_path / "m.SafeTensors").keys() == {"weight", "bias"}
    path, arrays, metadata = plugin.written
    assert path.endswith(".own")
    assert {name: array.shape for name, array in arrays.items()} == {"weight": (2, 3), "bias": (2,)}
    assert metadata == {"format": "pt"}


@pytest.mark.parametrize("name", ["m.own", "M.OWN"])
def test_a_file_of_a_plugin_is_replaced_completely_or_not_at_all(
    name: str, plugin: Formats, model: gt.Module, tmp_path: Path
) -> None:
    path = tmp_path / name
    path.write_bytes(b"old")
    path.chmod(0o600)
    plugin.fails = True
    with pytest.raises(SaveError, match=rf"{name}: .* for \.own failed with KeyError: 'float8'"):
        model.save_weights(path)
    assert path.read_bytes() == b"old"
    plugin.fails = False
    model.save_weights(path)
    assert path.read_bytes() == b"whole"
    assert path.stat().st_mode & 0o777 == 0o600
    assert plugin.written[0].endswith(".own")
    assert os.listdir(tmp_path) == [name]


def test_a_function_that_writes_elsewhere_is_told(model: gt.Module, tmp_path: Path) -> None:
    class Elsewhere:
        @gt.hookimpl
        def gradtape_formats(self) -> Mapping[str, Any]:
            return {".own": lambda path, arrays, metadata: np.savez(path, **arrays)}

    gt.register_plugin(Elsewhere(), "elsewhere")
    try:
        with pytest.raises(SaveError, match=r"for \.own wrote no file .*replaces = True"):
            model.save_weights(tmp_path / "m.own")
    finally:
        gt.unregister_plugin("elsewhere")
    assert not os.listdir(tmp_path)


@pytest.mark.parametrize("name", ["m.h5", "m.hdf5", "m", "m.ck", "m.onnx.h5", "onnx"])
def test_other_names_are_files_of_gradtape(name: str, model: gt.Module, tmp_path: Path) -> None:
    gt.save(model, tmp_path / name)
    assert (tmp_path / name).read_bytes().startswith(b"\x89HDF")


KERAS = r"{name}: this is a file of gradtape, which Keras cannot open\. Let its name end with \.h5"


@pytest.mark.needs("weights")
@pytest.mark.parametrize("name", ["m.keras", "M.Keras"])
def test_a_name_of_keras_is_told(name: str, model: gt.Module, tmp_path: Path) -> None:
    path = tmp_path / name
    for method, action in {
        "save": lambda: gt.save(model, path),
        "save ": lambda: model.save_weights(path),
        "Checkpoint": lambda: Checkpoint(model=model).save(path),
        "fit": lambda: fit(model, DATA, loss="mse", verbose=0, epochs=2, checkpoint=path),
    }.items():
        path.unlink(missing_ok=True)
        said = f"^{method.strip()}: .*{KERAS.format(name=name)}"
        with pytest.warns(UserWarning, match=said) as caught:
            action()
        (told,) = caught
        assert told.filename == __file__
        assert path.read_bytes().startswith(b"\x89HDF")
    gt.saving.read_weights(path)


@pytest.mark.needs("weights")
@pytest.mark.parametrize("weights", [False, True])
def test_a_callback_tells_a_name_of_keras_once(
    weights: bool, model: gt.Module, tmp_path: Path
) -> None:
    keep = ModelCheckpoint(tmp_path / "m{epoch}.keras", save_weights_only=weights)
    with pytest.warns(UserWarning, match=KERAS.format(name="m1.keras")) as caught:
        fit(model, DATA, loss="mse", verbose=0, epochs=3, callbacks=[keep])
    assert len(caught) == 1
    assert sorted(os.listdir(tmp_path)) == ["m1.keras", "m2.keras", "m3.keras"]


@pytest.mark.needs("weights", "compat")
def test_programs_for_keras_are_told_nothing(tmp_path: Path) -> None:
    from gradtape.compat.tensorflow import keras

    model = keras.Sequential([keras.layers.Dense(2)])
    model.compile("sgd", "mse")
    keep = keras.callbacks.ModelCheckpoint(tmp_path / "best.keras", monitor="loss")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model.fit(*DATA, callbacks=[keep], verbose=0)
        model.save(tmp_path / "m.keras")
    np.testing.assert_array_equal(
        keras.models.load_model(tmp_path / "best.keras").predict(DATA[0]), model.predict(DATA[0])
    )


@pytest.mark.usefixtures("plugin")
def test_a_format_that_only_reads_may_warn(model: gt.Module, tmp_path: Path) -> None:
    class Reads:
        warns = "this is no file of Acme"

        def read(self, path: str) -> Mapping[str, Any]:
            return {}

    class Acme:
        @gt.hookimpl
        def gradtape_formats(self) -> Mapping[str, Any]:
            return {".acme": Reads()}

    gt.register_plugin(Acme(), "acme")
    try:
        with pytest.warns(UserWarning, match=r"save: .*m\.acme: this is no file of Acme"):
            gt.save(model, tmp_path / "m.acme")
    finally:
        gt.unregister_plugin("acme")


def test_swapped_arguments_are_named(model: gt.Module) -> None:
    for function in (gt.save, gt.save_weights):
        with pytest.raises(SaveError, match=r"the mod(el|ule) comes first: .*save"):
            function("m.h5", model)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("ending", "said"),
    [
        ("npz", "is not the end of a file name"),
        (".NPZ", "is not the end of a file name"),
        (".h5", r"gradtape's own files; .*'\.wrong\.h5'"),
        (".hdf5", r"gradtape's own files; .*'\.wrong\.hdf5'"),
    ],
)
def test_a_plugin_names_the_end_of_a_file_name(ending: str, said: str) -> None:
    class Wrong:
        @gt.hookimpl
        def gradtape_formats(self) -> Mapping[str, Any]:
            return {ending: "x"}

    with pytest.raises(gt.errors.PluginError, match=said):
        gt.register_plugin(Wrong(), "wrong")

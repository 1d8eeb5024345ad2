"""The container: what is saved is loaded, verified and compared; what is hostile is refused."""

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import gradtape as gt
from gradtape.saving import DamagedFile, LoadError, SaveError, UnsafeFile

zarr = pytest.importorskip("zarr", reason="pip install zarr")
X = np.linspace(-1, 1, 8, dtype="f4").reshape(2, 4)


class Net(gt.Module):
    """A network with a custom gradient, arrays of several dtypes, and empty ones."""

    def __init__(self):
        super().__init__()
        self.hidden = gt.layers.Dense(3, "tanh")
        self.zeros = gt.Variable(np.zeros((500, 1000), "f4"))
        self.empty = gt.Variable(np.zeros((0, 3), "f4"))
        self.scalar = gt.Variable(np.float16(2.5))
        self.table = np.arange(6, dtype="i2").reshape(2, 3)
        self.flags = np.array([True, False])

    def __call__(self, x):
        @gt.custom_gradient
        def doubled(x):
            return x, lambda g: 2 * g

        return doubled(self.hidden(x))


@pytest.fixture
def model():
    gt.random.set_seed(0)
    found = Net()
    found(gt.constant(X))
    return found


@pytest.fixture
def path(model, tmp_path):
    gt.save(model, tmp_path / "m.zarr")
    return tmp_path / "m.zarr"


def test_a_model_is_saved_loaded_and_verified(model, path, tmp_path):
    found = gt.load(path)
    np.testing.assert_array_equal(found(X), model(X))
    assert (found.table == model.table).all()
    assert found.flags.tolist() == [True, False]
    assert found.empty.shape == (0, 3)
    assert found.scalar.dtype.name == "float16"
    assert gt.load(path, lazy=True).zeros.numpy().sum() == 0
    assert gt.saving.verify(path).ok
    gt.save(model, tmp_path / "m.h5")
    assert not gt.saving.diff(path, tmp_path / "m.h5")
    assert (
        gt.saving.inspect(path).table().replace("m.zarr", "m.h5").splitlines()[1:3]
        == (gt.saving.inspect(tmp_path / "m.h5").table().splitlines()[1:3])
    )
    assert zarr.open(path)["variables/hidden/kernel"].shape == (4, 3)


def test_another_process_loads_and_verifies(path):
    code = f"import gradtape as gt; print(gt.load({str(path)!r})(gt.ones((1, 4))).shape)"
    told = subprocess.check_output([sys.executable, "-c", code], text=True)
    assert told == "(1, 3)\n"
    for command in (["verify", path], ["inspect", path], ["diff", path, path]):
        subprocess.run([sys.executable, "-m", "gradtape", *command], check=True)


def test_weights_and_checkpoints(model, path, tmp_path):
    other = Net()
    other(gt.constant(X))
    gt.load_weights(path, other)
    np.testing.assert_array_equal(other(X), model(X))
    gt.training.Checkpoint(model=model).save(tmp_path / "c.zarr")
    model.scalar.assign(0.0)
    gt.training.Checkpoint(model=model).restore(tmp_path / "c.zarr")
    assert model.scalar.item() == 2.5


def test_a_save_replaces_the_folder_or_leaves_it(model, path, tmp_path, monkeypatch):
    model.scalar.assign(7.0)
    gt.save(model, path)
    assert gt.load(path).scalar.item() == 7.0
    monkeypatch.setattr(zarr.Group, "create_array", lambda *given, **names: 1 / 0)
    with pytest.raises(SaveError, match=r"m\.zarr: .*Zarr failed with ZeroDivisionError"):
        gt.save(model, path)
    assert gt.load(path).scalar.item() == 7.0
    assert os.listdir(tmp_path) == ["m.zarr"]


def test_a_folder_of_something_else_is_not_replaced(model, tmp_path):
    (tmp_path / "data.zarr").mkdir()
    (tmp_path / "data.zarr" / "notes.txt").write_text("mine")
    with pytest.raises(SaveError, match="something else than a file of gradtape"):
        gt.save(model, tmp_path / "data.zarr")
    zarr.create_group(tmp_path / "other.zarr")
    with pytest.raises(SaveError, match="something else than a file of gradtape"):
        gt.save(model, tmp_path / "other.zarr")
    with pytest.raises(LoadError, match="not a file that gradtape wrote"):
        gt.load(tmp_path / "other.zarr")


def edited(name, change):
    """Return a change of an array's metadata."""

    def edit(path):
        file = path / name / "zarr.json"
        held = json.loads(file.read_text())
        change(held)
        file.write_text(json.dumps(held))

    return edit


ZSTD = {"name": "zstd", "configuration": {"level": 3, "checksum": False}}
KERNEL = "variables/hidden/kernel"


@pytest.mark.parametrize(
    ("attack", "kind", "said"),
    [
        (edited(KERNEL, lambda x: x.update(shape=[4, 4])), UnsafeFile, "one plain chunk"),
        (
            edited(
                KERNEL,
                lambda x: x.update(
                    shape=[2**40, 3],
                    chunk_grid={"name": "regular", "configuration": {"chunk_shape": [2**40, 3]}},
                ),
            ),
            UnsafeFile,
            "claim .* more than",
        ),
        (
            edited(KERNEL, lambda x: x.update(codecs=[*x["codecs"], ZSTD])),
            UnsafeFile,
            "one plain chunk",
        ),
        (
            edited(KERNEL, lambda x: x.update(data_type="float64")),
            DamagedFile,
            "its dataset differs",
        ),
        (edited("", lambda x: x["attributes"].update(digest="0" * 32)), DamagedFile, "digest"),
        (edited("", lambda x: x["attributes"].update(texts="[1]")), DamagedFile, "texts"),
        (lambda path: (path / "more").symlink_to("/"), UnsafeFile, "neither a file nor a folder"),
        (lambda path: (path / KERNEL / "c" / "0" / "0").unlink(), DamagedFile, "digest"),
        (
            lambda path: os.truncate(path / KERNEL / "c" / "0" / "0", 2**36),
            UnsafeFile,
            "smaller than the file of its chunk",
        ),
        (lambda path: (path / "a\x1b[2Jb").touch(), UnsafeFile, r"called 'a\\x1b\[2Jb'"),
        (lambda path: (path / KERNEL / "zarr.json").write_text("{"), DamagedFile, "Zarr"),
        (lambda path: (path / "zarr.json").unlink(), LoadError, "as Zarr"),
        (lambda path: zarr.create_array(path / "more", data=np.ones(3)), LoadError, "digests|more"),
    ],
)
def test_what_is_damaged_or_hostile_is_refused(attack, kind, said, path):
    attack(Path(path))
    with pytest.raises(kind, match=said) as told:
        gt.load(path)
    assert str(path) in str(told.value)


def test_limits_of_memory_are_respected(path):
    with pytest.raises(UnsafeFile, match="raise max_bytes if you trust the file"):
        gt.load(path, max_bytes=1_000_000)

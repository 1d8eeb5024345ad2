"""Every way in which a file cannot be loaded has a class and says what to do."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
from fresh_process import PROBE
from rewriting import Draft, rewritten

import gradtape as gt
from gradtape.core.extend import NONDIFF, Op
from gradtape.saving import (
    DamagedFile,
    FileMissing,
    LoadError,
    MissingOp,
    MissingPlugin,
    NewerFormat,
    NotAGradtapeFile,
)

pytestmark = pytest.mark.usefixtures("forks")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    module = gt.Module(name="m")
    module.w = gt.Variable([1.0, 2.0])
    gt.save(module, tmp_path / "model.h5")
    return tmp_path / "model.h5"


def everything_refuses(path: Path, kind: type[LoadError], match: str) -> None:
    for read in (gt.load, gt.saving.verify, gt.saving.inspect_text):
        with pytest.raises(kind, match=match) as caught:
            read(path)
        assert str(path) in str(caught.value)
        assert isinstance(caught.value, LoadError)


def test_a_missing_file(tmp_path: Path) -> None:
    everything_refuses(tmp_path / "none.h5", FileMissing, "there is no such file")
    with pytest.raises(FileNotFoundError):
        gt.load(tmp_path / "none.h5")


def test_what_is_no_hdf5_file(tmp_path: Path) -> None:
    (tmp_path / "a.h5").write_bytes(b"PK\x03\x04 not HDF5 at all" * 50)
    everything_refuses(tmp_path / "a.h5", NotAGradtapeFile, "not an HDF5 file")
    (tmp_path / "b.h5").write_bytes(b"")
    everything_refuses(tmp_path / "b.h5", NotAGradtapeFile, "not an HDF5 file")
    everything_refuses(tmp_path, NotAGradtapeFile, "not a file")


def test_an_hdf5_file_of_another_program_is_not_called_unsafe(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "keras.h5", "w") as file:
        file["text"] = "variable-length"
        file["link"] = h5py.SoftLink("/text")
        file.attrs["keras_version"] = "3.0"
    everything_refuses(tmp_path / "keras.h5", NotAGradtapeFile, "HDF5's own library wrote it")


@pytest.mark.parametrize("libver", ["earliest", "v108", "v110", "latest"])
def test_a_file_of_format_1_gets_one_error_that_says_what_to_do(
    libver: str, tmp_path: Path
) -> None:
    path = tmp_path / "old.h5"
    with h5py.File(path, "w", libver=(libver, libver if libver == "latest" else "v110")) as file:
        file.attrs["format"] = np.bytes_("gradtape")
        file.attrs["format_version"] = np.bytes_("1.2")
        file["/manifest"] = np.bytes_("{}")
    what, why = (
        "not a file of gradtape's format 2",
        r"a development version of gradtape \(format 1\)",
    )
    if path.read_bytes()[8] != 2:  # which this library writes for some of these
        do = "save the model again with gradtape.save"
        everything_refuses(path, NotAGradtapeFile, f"{what}: .*{why}.*; .*{do}")
        with pytest.raises(NotAGradtapeFile, match=what):
            gt.saving.read_weights(path)


def test_a_newer_major_version_is_refused_before_anything_is_looked_at(path: Path) -> None:
    def change(draft: Draft) -> None:
        draft.attributes["format_version"] = "3.0"
        draft.put("no JSON")

    rewritten(path, change)
    everything_refuses(path, NewerFormat, r"format 3\.0, .* pip install --upgrade gradtape")


@pytest.mark.parametrize("version", ["0.9", "1", "1.x", "", "-1.0", " 1.0", "1.0.0", "1e3.0"])
def test_versions_that_never_were(path: Path, version: str) -> None:
    def change(draft: Draft) -> None:
        draft.attributes["format_version"] = version

    rewritten(path, change)
    with pytest.raises(LoadError):
        gt.load(path)


def test_a_truncated_file_is_damaged(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-100])
    everything_refuses(path, DamagedFile, "it should have .* bytes, and has")


def test_a_changed_value_is_damage(path: Path) -> None:
    data = bytearray(path.read_bytes())
    place = data.index(np.array([1.0, 2.0], "float32").tobytes())
    data[place : place + 4] = np.float32(99.0).tobytes()
    path.write_bytes(data)
    for read in (gt.load, gt.saving.verify):
        with pytest.raises(DamagedFile, match="/variables/w does not match its digest"):
            read(path)


def test_a_changed_manifest_is_damage(path: Path) -> None:
    text = path.read_bytes()
    path.write_bytes(text.replace(b'"trainable":true', b'"trainable":tru3'))
    everything_refuses(path, DamagedFile, "/manifest does not match its digest")


def test_the_limit_on_memory_is_the_callers(path: Path) -> None:
    with pytest.raises(LoadError, match="raise max_bytes if you trust the file"):
        gt.load(path, max_bytes=10)
    assert gt.load(path, max_bytes=100_000).w.shape == (2,)


def test_an_unreadable_file_says_so(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*args: Any, **kwargs: Any) -> Any:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("os.open", refuse)
    with pytest.raises(LoadError, match=r"cannot be opened .*Permission denied"):
        gt.load(path)


# -- plugins ---------------------------------------------------------------------------------------


class Plugin:
    """Provides one op and one module class."""

    def __init__(self, ops: Any = (), modules: Any = None) -> None:
        self._ops, self._modules = ops, modules or {}

    @gt.hookimpl
    def gradtape_ops(self) -> Any:
        return list(self._ops)

    @gt.hookimpl
    def gradtape_modules(self) -> Any:
        return self._modules


def double_op() -> Op:
    return Op(
        "acme::double",
        lambda xp, x: x * 2,
        gradients={"x": lambda g: g * 2.0},
        infer=lambda x: (x.shape, x.dtype),
    )


class Gate(gt.Module):
    """A class that a plugin provides, with an op in its configuration."""

    def __init__(self, function: Any, size: int = 2) -> None:
        super().__init__()
        self.function, self.size = function, size
        self.w = gt.Variable([1.0] * size)

    def __call__(self, x: Any) -> Any:
        return self.function(x) * self.w

    def get_config(self) -> dict[str, Any]:
        return {"function": self.function, "size": self.size}


@pytest.fixture
def acme() -> Any:
    op = double_op()
    gt.register_plugin(Plugin([op], {"acme.Gate": Gate}), name="acme")
    yield op
    if any(info.name == "acme" for info in gt.registry().plugins):
        gt.unregister_plugin("acme")


def test_a_plugin_that_is_missing_is_named(acme: Op, tmp_path: Path) -> None:
    class Doubling(gt.Module):
        @gt.function(input_signature=[gt.TensorSpec([None])])
        def f(self, x: Any) -> Any:
            return acme(x)

    path = tmp_path / "doubling.h5"
    gt.save(Doubling(), path)
    assert gt.load(path).f([1.0]).numpy().tolist() == [2.0]
    assert "acme (no distribution): acme::double" in gt.saving.inspect_text(path)
    gt.unregister_plugin("acme")
    for read in (gt.load, gt.saving.verify):
        with pytest.raises(MissingPlugin, match=r"needs plugin 'acme' .*for acme::double"):
            read(path)
    assert "missing here: acme::double" in gt.saving.inspect_text(path)


def test_the_pip_line_comes_from_the_distribution_in_the_file(acme: Op, tmp_path: Path) -> None:
    class Doubling(gt.Module):
        @gt.function(input_signature=[gt.TensorSpec([None])])
        def f(self, x: Any) -> Any:
            return acme(x)

    info = next(info for info in gt.registry().plugins if info.name == "acme")
    info.distribution, info.version = "acme-ops", "2.5"
    gt.save(Doubling(), tmp_path / "a.h5")
    gt.unregister_plugin("acme")
    with pytest.raises(MissingPlugin, match=r"acme-ops 2\.5 .*pip install acme-ops"):
        gt.load(tmp_path / "a.h5")


def test_an_op_that_the_plugin_no_longer_provides_is_named(acme: Op, tmp_path: Path) -> None:
    class Doubling(gt.Module):
        @gt.function(input_signature=[gt.TensorSpec([None])])
        def f(self, x: Any) -> Any:
            return acme(x)

    gt.save(Doubling(), tmp_path / "a.h5")
    gt.unregister_plugin("acme")
    gt.register_plugin(Plugin(), name="acme")
    with pytest.raises(MissingOp, match=r"'acme' is installed .*does not provide acme::double"):
        gt.load(tmp_path / "a.h5")


def test_a_plugins_class_is_rebuilt_with_an_op_in_its_configuration(
    acme: Op, tmp_path: Path
) -> None:
    path = tmp_path / "gate.h5"
    gate = Gate(acme, 3)
    gt.save(gate, path)
    loaded = gt.load(path)
    assert type(loaded) is Gate
    assert loaded.function is acme
    assert loaded([1.0, 2.0, 3.0]).numpy().tolist() == [2.0, 4.0, 6.0]
    gt.unregister_plugin("acme")
    with pytest.raises(MissingPlugin, match=r"acme\.Gate"):
        gt.load(path)


def test_a_class_that_refuses_its_configuration_or_attributes_is_damage(tmp_path: Path) -> None:
    class Picky(gt.Module):
        fail = False

        def __init__(self) -> None:
            super().__init__()
            if type(self).fail:
                raise RuntimeError("picky")

        def __setattr__(self, name: str, value: Any) -> None:
            if name == "w" and getattr(type(self), "closed", False):
                raise RuntimeError("closed")
            super().__setattr__(name, value)

    gt.register_plugin(Plugin(modules={"acme.Picky": Picky}), name="acme")
    try:
        picky = Picky()
        picky.w = gt.Variable(1.0)
        gt.save(picky, tmp_path / "a.h5")
        Picky.closed = True  # type: ignore[attr-defined]
        with pytest.raises(DamagedFile, match="Picky refuses 'w': closed"):
            gt.load(tmp_path / "a.h5")
        Picky.fail = True
        with pytest.raises(DamagedFile, match="Picky refuses its configuration: picky"):
            gt.load(tmp_path / "a.h5")
        Picky.__new__ = lambda cls: object()  # type: ignore[assignment]
        with pytest.raises(DamagedFile, match="Picky is not a module class"):
            gt.load(tmp_path / "a.h5")
    finally:
        gt.unregister_plugin("acme")


def test_an_op_of_no_plugin_cannot_be_saved(tmp_path: Path) -> None:
    op = double_op()
    gt.register_plugin(Plugin([op]), name="acme")

    class Doubling(gt.Module):
        @gt.function(input_signature=[gt.TensorSpec([None])])
        def f(self, x: Any) -> Any:
            return op(x)

    module = Doubling()
    module.f.get_concrete_function()
    gt.unregister_plugin("acme")
    with pytest.raises(gt.saving.SaveError, match="'acme::double' belongs to no registered plugin"):
        gt.save(module, tmp_path / "a.h5", golden=False)


def test_a_disabled_built_in_plugin_is_named_in_a_fresh_process(tmp_path: Path) -> None:
    net = gt.layers.Sequential([gt.layers.Dense(2)])
    net(np.ones((1, 2), "float32"))
    gt.save(net, tmp_path / "net.h5")
    done = subprocess.run(
        [
            sys.executable,
            "-I",
            "-c",
            PROBE + "import sys\ngt.disable_plugin('layers')\n"
            "try:\n    gt.load(sys.argv[1])\n"
            "except gt.saving.MissingPlugin as error:\n    print(error)\n",
            str(tmp_path / "net.h5"),
        ],
        capture_output=True,
        text=True,
        check=False,
    )
    assert "needs plugin 'layers'" in done.stdout, done.stderr
    assert "layers.Dense" in done.stdout


def test_an_op_without_a_gradient_is_saved_all_the_same(tmp_path: Path) -> None:
    op = Op(
        "acme::hold", lambda xp, x: x, gradients={"x": NONDIFF}, infer=lambda x: (x.shape, x.dtype)
    )
    gt.register_plugin(Plugin([op]), name="acme")
    try:

        class Holding(gt.Module):
            @gt.function(input_signature=[gt.TensorSpec([None])])
            def f(self, x: Any) -> Any:
                return op(x)

        gt.save(Holding(), tmp_path / "a.h5")
        assert gt.saving.verify(tmp_path / "a.h5").ok
    finally:
        gt.unregister_plugin("acme")


# -- versions --------------------------------------------------------------------------------------


def test_a_file_of_a_later_minor_version_loads_with_keys_unknown_here(path: Path) -> None:
    def change(draft: Draft) -> None:
        manifest = draft.json()
        manifest["novelty"] = {"any": [1, 2]}
        for record in (*manifest["modules"], *manifest["variables"]):
            record["novelty"] = 1
        draft.put(manifest)
        draft.attributes["format_version"] = "2.9"

    rewritten(path, change)
    assert gt.load(path).w.numpy().tolist() == [1.0, 2.0]
    assert "format 2.9" in gt.saving.inspect_text(path)

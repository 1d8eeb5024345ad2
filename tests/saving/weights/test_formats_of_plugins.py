"""Formats of weights come through a hook: a plugin adds one, or replaces one of gradtape's."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import gradtape as gt
from gradtape.saving import DamagedFile, LoadError, SaveError, UnsafeFile

Register = Callable[[Any], None]
X = np.ones((2, 3), "f4")


class Npz:
    """A format that reads what it writes."""

    def write(self, path: str, arrays: Mapping[str, Any], metadata: Mapping[str, str]) -> None:
        np.savez(path, **arrays, metadata=json.dumps(dict(metadata)))

    def read(self, path: str) -> tuple[dict[str, Any], dict[str, str]]:
        held = dict(np.load(path))
        return held, json.loads(str(held.pop("metadata")))


class Marked(Npz):
    """The same, recognised by its content and limited."""

    layouts = ("acme",)
    limit = 0

    def write(self, path: str, arrays: Mapping[str, Any], metadata: Mapping[str, str]) -> None:
        with open(path, "wb") as stream:
            stream.write(b"ACME")
            np.savez(stream, **arrays, metadata=json.dumps(dict(metadata)))

    def recognises(self, file: Any) -> bool:
        return bool(file.read(0, min(4, file.size)) == b"ACME")

    def read(self, path: str, max_bytes: int = 0) -> tuple[dict[str, Any], dict[str, str]]:
        self.limit = max_bytes
        with open(path, "rb") as stream:
            stream.seek(4)
            held = dict(np.load(stream))
        return held, json.loads(str(held.pop("metadata")))


class Own(gt.layers.Dense):
    names_elsewhere = {"acme": {"kernel": ("W", (1, 0)), "bias": ("b", None)}}  # noqa: RUF012


@pytest.fixture
def register() -> Iterator[Register]:
    known: list[str] = []

    def given(formats: Any) -> None:
        plugin = SimpleNamespace(gradtape_formats=gt.hookimpl(lambda: formats))
        gt.register_plugin(plugin, f"formats{len(known)}")
        known.append(f"formats{len(known)}")

    yield given
    for name in known:
        gt.unregister_plugin(name)


def dense(kind: type[gt.layers.Dense] = gt.layers.Dense) -> gt.layers.Dense:
    layer = kind(2)
    layer(gt.constant(X))
    return layer


@pytest.mark.needs("weights")
@pytest.mark.parametrize("ending", [".acme.npz", ".npz", ".safetensors"])
def test_a_plugin_adds_a_format_and_replaces_ours(
    ending: str, register: Register, tmp_path: Path
) -> None:
    register({ending: Npz()} if ending != ".safetensors" else {ending: Marked()})
    model, other = dense(), dense()
    model.save_weights(tmp_path / f"w{ending}")
    gt.load_weights(tmp_path / f"w{ending}", other)
    assert other(X).tolist() == model(X).tolist()
    found = gt.saving.read_weights(tmp_path / f"w{ending}")
    assert {name: array.shape for name, array in found.items()} == {"kernel": (3, 2), "bias": (2,)}
    model.save_weights(tmp_path / f"t{ending}", layout="pytorch")
    assert gt.saving.read_weights(tmp_path / f"t{ending}")["weight"].shape == (2, 3)
    gt.load_weights(tmp_path / f"t{ending}", other)
    assert other(X).tolist() == model(X).tolist()


def test_content_and_limits_are_the_formats(register: Register, tmp_path: Path) -> None:
    marked = Marked()
    register({".acme": marked})
    model, other = dense(), dense()
    model.save_weights(tmp_path / "w.acme")
    (tmp_path / "w.acme").rename(tmp_path / "w")
    gt.load_weights(tmp_path / "w", other, max_bytes=1000)
    assert marked.limit == 1000
    assert other(X).tolist() == model(X).tolist()
    with pytest.raises(UnsafeFile, match="the arrays take 32 bytes, more than 31"):
        gt.load_weights(tmp_path / "w", other, max_bytes=31)


def test_a_plugin_adds_a_layout(register: Register, tmp_path: Path) -> None:
    register({".acme": Marked()})
    model, other = dense(Own), dense(Own)
    model.save_weights(tmp_path / "w.acme", layout="acme")
    found = gt.saving.read_weights(tmp_path / "w.acme")
    assert {name: array.shape for name, array in found.items()} == {"W": (2, 3), "b": (2,)}
    gt.load_weights(tmp_path / "w.acme", other)
    assert other(X).tolist() == model(X).tolist()
    with pytest.raises(ValueError, match='layout must be "acme" or "gradtape"'):
        model.save_weights(tmp_path / "w.acme", layout="keras")


@pytest.mark.needs("weights", "export")
def test_our_formats_come_from_a_plugin() -> None:
    known = gt.registry()
    owners = {known.owner("format", end).name for end in known.formats}  # type: ignore[union-attr]
    assert owners == {"export", "saving", "weights"}


class ReadOnly:
    def read(self, path: str) -> dict[str, Any]:
        return {"kernel": np.zeros((3, 2), "f4"), "bias": np.ones(2, "f4")}


def test_a_format_may_only_read_or_only_write(register: Register, tmp_path: Path) -> None:
    register({".in": ReadOnly(), ".out": lambda path, arrays, metadata: Path(path).touch()})
    model = dense()
    (tmp_path / "w.in").touch()
    gt.load_weights(tmp_path / "w.in", model)
    assert model.bias.tolist() == [1.0, 1.0]
    model.save_weights(tmp_path / "w.out")
    with pytest.raises(LoadError, match=r"w\.out: not a weights file of a known kind.*\.in"):
        gt.load_weights(tmp_path / "w.out", model)
    with pytest.raises(SaveError, match=r"gradtape\.save_weights\(model, path\) writes"):
        gt.save(model, tmp_path / "w.out")
    gt.save(model, tmp_path / "m.in")  # nothing else is written there
    assert (tmp_path / "m.in").read_bytes().startswith(b"\x89HDF")


@pytest.mark.parametrize(
    ("read", "said"),
    [
        (lambda path: 1 / 0, r"w\.acme: the plugin's format \.acme failed with ZeroDivisionError"),
        (lambda path: {"kernel": "text"}, r"w\.acme: .*'kernel' is not an array of numbers"),
        (lambda path: 3, r"w\.acme: the plugin's format \.acme failed"),
    ],
)
def test_a_format_that_fails_is_named(
    read: Any, said: str, register: Register, tmp_path: Path
) -> None:
    register({".acme": SimpleNamespace(read=read)})
    (tmp_path / "w.acme").touch()
    with pytest.raises(DamagedFile, match=said):
        gt.load_weights(tmp_path / "w.acme", dense())


class Lazy:
    """An array that counts how often it is read, and that may be another than it says."""

    dtype = np.dtype("f4")

    def __init__(self, shape: tuple[int, ...], real: tuple[int, ...] | None = None) -> None:
        self.shape, self.real, self.reads = shape, real or shape, 0

    def __array__(self, dtype: Any = None, copy: Any = None) -> np.ndarray[Any, Any]:
        self.reads += 1
        return np.full(self.real, 7, self.dtype)


class Opened(dict[str, Lazy]):
    closed = 0

    def close(self) -> None:
        self.closed += 1


def test_a_format_opens_large_files_and_reads_what_is_needed(
    register: Register, tmp_path: Path
) -> None:
    held = Opened(kernel=Lazy((3, 2)), bias=Lazy((2,)), huge=Lazy((10**6, 10**6)))
    made = SimpleNamespace(open=lambda path, max_bytes: held)
    register({".acme.lazy": made})
    path = tmp_path / "w.acme.lazy"
    path.write_bytes(b"-")
    model = gt.layers.Dense(2)
    model(gt.ones((1, 3)))
    with pytest.raises(UnsafeFile, match="the arrays take"):
        model.load_weights(path)
    del held["huge"]
    model.load_weights(path)
    assert model.kernel.numpy().tolist() == [[7, 7]] * 3
    assert [x.reads for x in held.values()] == [1, 1]
    assert held.closed >= 1
    held["bias"] = Lazy((2,), (5,))
    with pytest.raises(LoadError, match=r"'bias' is float32\[5\], and said to be float32\[2\]"):
        model.load_weights(path)


def test_a_file_that_was_written_without_the_plugin_is_read_with_it(
    register: Register, tmp_path: Path
) -> None:
    path, layer, other = tmp_path / "w.acme", dense(), dense()
    layer.save_weights(path)  # in gradtape's own format, as for any unknown end
    register({".acme": Npz()})
    other.load_weights(path)
    assert (other.kernel.numpy() == layer.kernel.numpy()).all()
    path.write_bytes(path.read_bytes()[:-1000])
    with pytest.raises(DamagedFile, match=r"the plugin's format \.acme failed"):
        other.load_weights(path)


def test_a_file_of_json_is_not_taken_for_safetensors(register: Register, tmp_path: Path) -> None:
    # the ninth byte is the one with which a header begins there
    path = tmp_path / "weights"
    path.write_text('{"abc": {"dtype": "float32"}}')
    given = SimpleNamespace(
        recognises=lambda file: file.read(0, 1) == b"{",
        open=lambda path, max_bytes: {"abc": np.ones(2, "f4")},
    )
    register({".acme.json": given})
    assert gt.saving.read_weights(path)["abc"].tolist() == [1, 1]

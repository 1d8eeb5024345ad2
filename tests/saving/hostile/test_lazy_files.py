"""Files that change while they are read, or before what was loaded lazily is used."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gradtape as gt
from gradtape.saving import LoadError
from gradtape.saving.container.source import Source

VALUES = [np.arange(500, dtype="float32") * n for n in (1, 2, 3)]


def written(path: Path, shift: float = 0.0, compression: str | None = None) -> Path:
    module = gt.Module("m")
    module.parts = [gt.Variable(value + shift) for value in VALUES]
    gt.save(module, path, compression=compression)
    return path


def opened(path: Path, **options: Any) -> list[gt.Variable]:
    parts: list[gt.Variable] = gt.load(path, lazy=True, **options).parts
    return parts


def cut(path: Path) -> None:
    os.truncate(path, 300)


def overwritten(path: Path) -> None:
    """Put another sound file of the same layout in the place of these bytes."""
    other = written(path.with_name("other.h5"), 1.0).read_bytes()
    with path.open("r+b") as stream:
        stream.write(other)


def flipped(path: Path) -> None:
    data = path.read_bytes()
    with path.open("r+b") as stream:
        stream.write(data.replace(VALUES[2][3:9].tobytes(), bytes(24)))


def appended(path: Path) -> None:
    with path.open("ab") as stream:
        stream.write(b"x" * 5000)


def replaced(path: Path) -> None:
    written(path, 1.0)


CHANGES: dict[str, Callable[[Path], Any]] = {
    "cut": cut,
    "overwritten": overwritten,
    "flipped": flipped,
    "appended": appended,
    "replaced": replaced,
    "deleted": os.unlink,
}


def value_or_error(act: Callable[[], Any]) -> Any:
    try:
        return act().tolist()
    except LoadError as error:
        return str(error)


@pytest.mark.skipif(os.name == "nt", reason="open files cannot be replaced")
@pytest.mark.parametrize("change", CHANGES)
def test_a_file_that_changes_after_it_was_loaded_gives_what_it_held_or_an_error(
    change: str, tmp_path: Path
) -> None:
    path = written(tmp_path / "a.h5")
    parts = opened(path)
    assert parts[0].tolist() == VALUES[0].tolist()
    CHANGES[change](path)
    right = 1
    for variable, value in zip(parts[1:], VALUES[1:], strict=True):
        acts: list[Callable[[], Any]] = [variable.numpy, lambda v=variable: (v + 0.0).numpy()]
        for act in acts:
            got = value_or_error(act)
            right += not isinstance(got, str)
            assert str(got).startswith(str(path)) or got == value.tolist()
    assert right == {"cut": 1, "overwritten": 1, "flipped": 3}.get(change, 5)
    assert parts[0].tolist() == VALUES[0].tolist()


@pytest.mark.skipif(os.name == "nt", reason="open files cannot be replaced")
@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("lazy", [False, True])
def test_a_file_that_changes_between_any_two_reads_is_one_file_or_an_error(
    lazy: bool, change: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The header is checked, then the data read: whatever comes between is noticed."""
    read_into = Source.read_into
    countdown = [0]
    path = tmp_path / "a.h5"

    def reading(self: Source, *arguments: Any) -> None:
        countdown[0] -= 1
        if not countdown[0]:
            CHANGES[change](path)
        read_into(self, *arguments)

    monkeypatch.setattr(Source, "read_into", reading)
    for n in range(1, 12):
        countdown[0] = 0
        written(path)
        countdown[0] = n
        got = value_or_error(lambda: np.array([v.numpy() for v in gt.load(path, lazy=lazy).parts]))
        sound = [[(v + shift).tolist() for v in VALUES] for shift in (0.0, 1.0)]
        assert str(got).startswith(str(path)) or got in sound


def test_what_was_refused_can_be_read_once_the_file_is_whole_again(tmp_path: Path) -> None:
    """Reading it in vain is not counted against ``max_bytes``."""
    path = written(tmp_path / "a.h5")
    whole = path.read_bytes()
    parts = opened(path, max_bytes=3 * 2000 + 1500)
    flipped(path)
    for _ in range(5):
        with pytest.raises(LoadError, match="does not match its digest"):
            parts[2].numpy()
    with path.open("r+b") as stream:
        stream.write(whole)
    assert [v.tolist() for v in parts] == [v.tolist() for v in VALUES]


@pytest.mark.parametrize("compression", [None, "gzip"])
def test_threads_that_read_one_variable_at_once_get_its_value(
    compression: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    read = Source.read_into
    path = written(tmp_path / "a.h5", compression=compression)
    (variable, *_), found = opened(path), []

    def slowly(self: Source, *arguments: Any) -> None:
        time.sleep(0.05)
        read(self, *arguments)

    def use(kind: str) -> None:
        try:
            found.append(variable.numpy().tolist() if kind == "value" else getattr(variable, kind))
        except Exception as error:
            found.append(error)

    monkeypatch.setattr(Source, "read_into", slowly)
    kinds = ["value", "value", "shape", "dtype", "value", "shape", "value", "dtype"]
    threads = [threading.Thread(target=use, args=(kind,)) for kind in kinds]
    for thread in threads:
        thread.start()
        time.sleep(0.01)
    for thread in threads:
        thread.join()
    values = {"value": VALUES[0].tolist(), "shape": (500,), "dtype": np.dtype("float32")}
    assert sorted(map(str, found)) == sorted(str(values[kind]) for kind in kinds)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there are no forks")
def test_a_fork_and_its_parent_both_read_what_was_loaded_before(tmp_path: Path) -> None:
    parts = opened(written(tmp_path / "a.h5"))
    child = os.fork()
    if not child:
        right = all(v.tolist() == x.tolist() for v, x in zip(parts, VALUES, strict=True))
        os._exit(0 if right else 3)
    assert [v.tolist() for v in parts] == [v.tolist() for v in VALUES]
    assert os.waitpid(child, 0)[1] == 0

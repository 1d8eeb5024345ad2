"""``check_format``: each mistake of a format is found, by the check that is named after it."""

from __future__ import annotations

import json
import os
import re
import zipfile
from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest

import gradtape as gt
from gradtape.testing import check_format


class Plain:
    """A format that does everything right: a line of JSON, then the arrays' memory."""

    def write(self, path: str, arrays: Mapping[str, Any], metadata: Mapping[str, str]) -> None:
        with open(path, "wb") as file:
            parts = {name: self.stored(x) for name, x in arrays.items()}
            head = {name: [x.dtype.str, list(x.shape)] for name, x in parts.items()}
            file.write(json.dumps([head, dict(metadata)]).encode() + b"\n")
            for x in parts.values():
                file.write(x.tobytes())

    def stored(self, x: Any) -> Any:
        return x

    def read(self, path: str) -> Any:
        with open(path, "rb") as file:
            head, metadata = json.loads(file.readline())
            arrays = {}
            for name, (dtype, shape) in head.items():
                size = int(np.prod(shape)) * np.dtype(dtype).itemsize
                arrays[name] = np.frombuffer(file.read(size), dtype).reshape(shape)
        return arrays, metadata


def storing(change: Any) -> type[Plain]:
    return type("Wrong", (Plain,), {"stored": lambda self, x: change(x)})


def wrong(**methods: Any) -> type[Plain]:
    return type("Wrong", (Plain,), methods)


def renamed(change: Any) -> type[Plain]:
    def write(self: Any, path: str, arrays: Any, metadata: Any) -> None:
        Plain.write(self, path, {change(name): x for name, x in arrays.items()}, metadata)

    return wrong(write=write)


def without_empty(self: Any, path: str, arrays: Any, metadata: Any) -> None:
    Plain.write(self, path, {name: x for name, x in arrays.items() if x.size}, metadata)


def in_memory_order(x: Any) -> Any:
    return np.frombuffer(x.tobytes("A"), x.dtype).reshape(x.shape)


def without_texts(self: Any, path: str) -> Any:
    return Plain.read(self, path)[0], {}


def zipped(self: Any, path: str, arrays: Any, metadata: Any) -> None:
    with zipfile.ZipFile(path, "a") as file:
        for name, x in arrays.items():
            if name not in file.namelist():
                file.writestr(name, x.dtype.str + json.dumps(list(x.shape)))


def in_place(self: Any, path: str, arrays: Any, metadata: Any) -> None:
    Plain.write(self, path, arrays, metadata)


def with_a_rest(self: Any, path: str, arrays: Any, metadata: Any) -> None:
    Plain.write(self, f"{path}.part", arrays, metadata)
    os.replace(f"{path}.part", path)


def tolerant(self: Any, path: str) -> Any:
    try:
        return Plain.read(self, path)
    except ValueError:
        return {}, {}


def mapped(self: Any, path: str) -> Any:
    arrays, metadata = Plain.read(self, path)
    with open(path, "rb") as file:
        start = len(file.readline())
    (name, first), *rest = arrays.items()
    if first.nbytes < 8000:
        return arrays, metadata
    lazily = np.memmap(path, first.dtype, "r", start, first.shape)
    return {name: np.asarray(lazily), **dict(rest)}, metadata


def overwriting(self: Any, path: str, arrays: Any, metadata: Any) -> None:
    """Write in place, so that maps of the old file change."""
    Plain.write(self, f"{path}.new", arrays, metadata)
    with (
        open(f"{path}.new", "rb") as file,
        open(path, "r+b" if os.path.exists(path) else "wb") as old,
    ):
        old.write(file.read())
        old.truncate()
    os.unlink(f"{path}.new")


def ragged(self: Any, path: str, arrays: Any, metadata: Any) -> None:
    for x in arrays.values():
        if x.flags.writeable:
            x += x.dtype.type(1)
    Plain.write(self, path, arrays, metadata)


# what is wrong: (the class, the check that finds it, what it says)
WRONG: dict[str, tuple[type[Plain], str, str]] = {
    "half as single": (
        storing(lambda x: x.astype("float32") if x.dtype == "float16" else x),
        "dtype float16",
        r"'x' is float32 float32\[2, 3\] instead of float16",
    ),
    "flags as bytes": (
        storing(lambda x: x.view("uint8") if x.dtype == "bool" else x),
        "dtype bool",
        "uint8",
    ),
    "real parts": (storing(lambda x: x.real.astype(x.dtype)), "dtype complex64", "other values"),
    "signed": (
        storing(lambda x: x.astype("int64") if x.dtype == "uint64" else x),
        "dtype uint64",
        "int64",
    ),
    "lists": (storing(np.atleast_1d), "no axes", r"float32\[1\] instead of float32\[\]"),
    "nothing dropped": (wrong(write=without_empty), "no elements", r"lost are the arrays \['x'\]"),
    "finite": (storing(np.nan_to_num), "special values", "other values"),
    "memory": (storing(in_memory_order), "columns first", "other values"),
    "first elements": (storing(lambda x: x[:100_000] if x.ndim else x), "large", "100000"),
    "no slashes": (renamed(lambda name: name.replace("/", ".")), "names", "lost are .*layers/0"),
    "small letters": (renamed(str.lower), "names", "lost are the arrays .*'Kernel'"),
    "short names": (renamed(lambda name: name[:64]), "names", "lost are"),
    "no texts": (wrong(read=without_texts), "metadata", r"the texts are \{\} instead of"),
    "appended": (
        wrong(
            write=zipped,
            replaces=True,
            read=lambda s, p: {
                name: np.zeros(3, "float32") for name in zipfile.ZipFile(p).namelist()
            },
        ),
        "replaced as a whole",
        "new are",
    ),
    "torn": (wrong(write=in_place, replaces=True), "a failure leaves the old file", ""),
    "a rest": (
        wrong(write=with_a_rest, replaces=True),
        "a failure leaves the old file",
        r"leaves \['weights.*part'\] next to",
    ),
    "tolerant": (wrong(read=tolerant), "damaged files", "was read without an error"),
    "mapped": (
        wrong(read=mapped, write=overwriting, replaces=True),
        "arrays outlive the file",
        "'x' changes when the file is replaced",
    ),
    "changed arguments": (wrong(write=ragged), "dtype float32", "writing changes the array 'x'"),
    "no arrays": (wrong(read=lambda self, path: [1]), "a model", "list, not arrays by name"),
    "lists of numbers": (
        wrong(
            read=lambda self, path: {k: x.tolist() for k, x in Plain.read(self, path)[0].items()}
        ),
        "a model",
        "list, not a NumPy array",
    ),
}


def as_format(cls: type[Plain]) -> Any:
    """The writer as a function, as the hook also takes it, with its attribute."""
    made = cls()

    def write(*given: Any) -> None:
        made.write(*given)

    write.replaces = getattr(cls, "replaces", False)  # type: ignore[attr-defined]
    return write, made.read


def test_a_format_that_is_right_passes() -> None:
    write, read = as_format(Plain)
    report = check_format(write, read=read, show=False)
    assert (report.wrong, report.refused) == ({}, {})
    assert (report.kind, report.name) == ("format", "write")


def test_safetensors_refuses_a_dtype_and_keeps_everything_else() -> None:
    report = check_format(".safetensors", show=False)
    assert report.wrong == {}
    assert list(report.refused) == ["dtype complex128"]


@pytest.mark.parametrize("mistake", WRONG)
def test_each_mistake_is_found(mistake: str) -> None:
    cls, check, says = WRONG[mistake]
    write, read = as_format(cls)
    found = check_format(write, read=read, show=False).wrong
    why = [why for what, why in found.items() if re.fullmatch(check, what)]
    assert why, found
    assert re.search(says, why[0]), why[0]


def test_what_is_refused_is_no_mistake() -> None:
    def write(path: str, arrays: Mapping[str, Any], metadata: Mapping[str, str]) -> None:
        for name, x in arrays.items():
            if x.dtype.kind == "c":
                raise TypeError(f"{name}: no complex numbers")
        Plain().write(path, arrays, metadata)

    report = check_format(write, read=Plain().read, show=False)
    assert list(report.refused) == ["dtype complex64", "dtype complex128"]
    assert "no complex numbers" in report.refused["dtype complex64"]
    assert not report.wrong


def test_formats_are_found_by_the_end_of_names(capsys: pytest.CaptureFixture[str]) -> None:
    check_format(".safetensors")
    assert capsys.readouterr().out.startswith("format '.safetensors': ")
    assert not [end for end in gt.registry().formats if "checked" in end]
    with pytest.raises(LookupError, match=r"no plugin provides the format '\.acme'"):
        check_format(".acme")
    with pytest.raises(
        TypeError, match=r"'\.onnx' is not written by save_weights: gradtape.export"
    ):
        check_format(".onnx")

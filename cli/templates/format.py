"""A format of weights: functions that write and read arrays by name."""

from __future__ import annotations

__all__ = ["FILES", "GROUP", "NEEDS", "TEST_NEEDS", "USE", "WHAT"]

WHAT, GROUP, NEEDS, TEST_NEEDS = "A format of weights", '"gradtape.formats"', "", ""
USE = """\
import gradtape as gt

model = gt.layers.Dense(2)
model(gt.ones((1, 3)))
model.save_weights("weights.$module")
model.load_weights("weights.$module")
"""
FILES = {
    "src/$module/__init__.py": '''\
"""A format of weights for gradtape: model.save_weights("weights.$module")."""

from .files import read, write

__all__ = ["read", "write"]
''',
    "src/$module/plugin.py": '''\
"""The plugin, which gradtape imports when a format is first asked for."""

from collections.abc import Mapping
from typing import Any

from gradtape.plugin import hookimpl

from . import files

#: The version of gradtape.plugin that this was written for: see gradtape.plugin.API.
gradtape_api = (1, 0)


@hookimpl
def gradtape_formats() -> Mapping[str, Any]:
    return {".$module": files}  # an object with write and read
''',
    "src/$module/files.py": '''\
"""The files: one line of JSON that describes the arrays, then their bytes."""

import json
import os
from collections.abc import Mapping
from typing import Any

import numpy as np

Arrays = dict[str, np.ndarray[Any, Any]]


def write(
    path: str | os.PathLike[str], arrays: Mapping[str, Any], metadata: Mapping[str, str]
) -> None:
    """Write NumPy arrays by name, to a temporary path: gradtape replaces the user's file."""
    parts = {name: np.ascontiguousarray(array) for name, array in arrays.items()}
    head = {
        "arrays": [[name, x.dtype.str, np.shape(arrays[name])] for name, x in parts.items()],
        "metadata": dict(metadata),
    }
    with open(path, "wb") as file:
        file.write(json.dumps(head).encode() + b"\\n")
        for part in parts.values():
            file.write(part.tobytes())


def read(path: str | os.PathLike[str]) -> tuple[Arrays, dict[str, str]]:
    """Return the arrays of a file by name, and its metadata.

    Raises
    ------
    ValueError
        If it is not a complete file of this format.
    """
    with open(path, "rb") as file:
        try:
            head = json.loads(file.readline(1 << 24))
            described, metadata = head["arrays"], head["metadata"]
        except (ValueError, KeyError, TypeError) as error:
            raise ValueError(f"{path} is not a file of $name") from error
        found = {}
        for name, dtype, shape in described:
            count = int(np.prod(shape)) * np.dtype(dtype).itemsize
            data = file.read(count)
            if len(data) != count:
                raise ValueError(f"{path} ends in the middle of {name!r}")
            found[name] = np.frombuffer(data, dtype).reshape(shape)
        if file.read(1):
            raise ValueError(f"{path} has more bytes than its arrays")
    return found, metadata
''',
    "tests/test_format.py": '''\
"""check_format: arrays of all kinds come back, and broken files are refused."""

import gradtape as gt
import numpy as np
from gradtape.testing import check_format

def test_arrays_of_all_kinds_come_back_and_broken_files_are_refused():
    report = check_format(".$module")
    assert not report.wrong and not report.refused


def test_weights_are_written_and_loaded(tmp_path):
    model, other = gt.layers.Dense(2), gt.layers.Dense(2)
    x = np.ones((1, 3), "float32")
    want = model(x).numpy()
    other(x)
    model.save_weights(tmp_path / "weights.$module")
    other.load_weights(tmp_path / "weights.$module")
    np.testing.assert_array_equal(other(x).numpy(), want)


def test_gradtape_finds_the_plugin():
    owner = gt.registry().owner("format", ".$module")
    assert owner is not None and owner.distribution == "$name"
''',
}

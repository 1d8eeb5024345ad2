"""What lies beside a file, and what a process of its own gets to see of it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import h5py
import numpy as np
import pytest

import gradtape as gt
from gradtape.saving.container.child import ChildEnded, run_child
from gradtape.saving.container.hdf5 import file as reading

OWNED = "import pathlib; pathlib.Path(r'{}').touch()\nraise SystemExit(7)\n"


@pytest.mark.parametrize("beside", ["numpy", "h5py", "gradtape", "encodings", "numpy_plugin"])
def test_no_process_imports_what_lies_in_the_working_directory(beside: str, tmp_path: Path) -> None:
    """A shell of Python looks there, and may go to a folder of downloads after it has started."""
    downloads, mark = tmp_path / "downloads", tmp_path / "owned"
    downloads.mkdir()
    (downloads / f"{beside}.py").write_text(OWNED.format(mark))
    info = downloads / "numpy_plugin-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: numpy-plugin\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[gradtape.plugins]\nnumpy_plugin = numpy_plugin\n")
    model = gt.layers.Dense(2)
    model(gt.ones((1, 3)))
    gt.save(model, downloads / "new.h5")
    with h5py.File(downloads / "keras.weights.h5", "w") as file:
        file["layers/dense/vars/0"] = np.ones((3, 2), "float32")
    code = (
        "import os, sys; sys.path.insert(0, ''); import gradtape as gt, gradtape.saving as s\n"
        f"os.chdir({str(downloads)!r})\n"
        "s.read_weights('keras.weights.h5'); assert s.verify('new.h5').ok"
    )
    done = subprocess.run(
        [sys.executable, "-I", "-c", code],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert not mark.exists()
    assert done.returncode == 0, done.stderr


@pytest.mark.skipif(os.name == "nt", reason="needs timers")
def test_a_process_ends_itself_when_nobody_is_left_to_end_it() -> None:
    code = "import signal, time\nprint(signal.getitimer(signal.ITIMER_REAL)[0])"
    assert 0 < float(run_child(code, [], 50)) <= 50
    assert float(run_child(code, [], None)) == 0
    with pytest.raises(ChildEnded) as caught:
        run_child("import time\nwhile True: time.sleep(1)", [], 0.5)
    assert caught.value.late


def test_files_of_keras_need_less_than_a_tenth_of_the_time_that_they_may_take(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with h5py.File(tmp_path / "keras.weights.h5", "w") as keras:
        keras["layers/dense/vars/0"] = np.ones((3, 2), "float32")
    monkeypatch.setattr(reading, "_SECONDS", reading._SECONDS / 10)
    monkeypatch.setattr(reading, "_BYTES_PER_SECOND", 10 * reading._BYTES_PER_SECOND)
    assert gt.saving.read_weights(tmp_path / "keras.weights.h5")

"""gradtape in a browser, where Python is WebAssembly: no threads, processes or locks of files.

The child process lacks what Pyodide lacks. It has 64-bit positions all the same, so what NumPy does
with narrow ones is tested with a namespace that returns such.
"""

from __future__ import annotations

import json
import os
import runpy
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from gradtape.core.base import positions

ROOT = Path(__file__).parents[2]

BROWSER = """
import os, signal, sys, sysconfig, _thread, threading, time

sysconfig.get_config_vars()  # which looks for a file of the platform

def refuse(*args, **kwargs):
    raise RuntimeError("can't start new thread")

sys.platform = "emscripten"  # subprocess, imported after this, starts nothing here
for name in ("fcntl", "grp", "pwd", "resource", "termios"):
    sys.modules[name] = None
for module in (_thread, threading):
    for name in dir(module):
        if "start_new" in name or "start_joinable" in name:
            setattr(module, name, refuse)
LACKING = {
    os: "fork forkpty link listxattr memfd_create posix_fallocate posix_spawn preadv "
    "sched_getaffinity sched_setaffinity",
    signal: "setitimer getitimer",
    time: "thread_time thread_time_ns",
}
for module, names in LACKING.items():
    for name in names.split():
        if hasattr(module, name):
            delattr(module, name)
os.cpu_count = lambda: 8
"""


def in_a_browser(code: str, folder: Path, *arguments: str) -> str:
    """Run code where Python lacks what a browser lacks; return what it prints."""
    command = [sys.executable, "-I", "-c", BROWSER + code, *arguments]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def cells() -> dict[str, list[str]]:
    """The code of the notebooks that the site offers, by page, without the cell that installs."""
    pytest.importorskip("nbformat", reason='pip install "gradtape[notebooks]"')
    browser = runpy.run_path(str(ROOT / "docs" / "site" / "browser.py"))
    found = {}
    for path in browser["guides"]():
        made = browser["notebook"](path.read_text("utf-8"), {})
        code = [cell.source for cell in made.cells if cell.cell_type == "code"]
        assert code[0].startswith("%pip install -q gradtape")
        found[path.stem] = code[1:]
    return found


@pytest.mark.parametrize(
    "page",
    [
        "first-gradients",
        "recording",
        "custom-gradients",
        "whole-model",
        "looking-into-files",
        "compiled",
    ],
)
def test_a_guide_runs_there(page: str, cells: dict[str, list[str]], tmp_path: Path) -> None:
    code = """
import json
space = vars(sys.modules["__main__"])
for i, cell in enumerate(json.loads(sys.argv[1])):
    exec(compile(cell, f"cell {i}", "exec"), space)
print("threads:", threading.active_count())
"""
    assert cells[page]
    assert "threads: 1" in in_a_browser(code, tmp_path, json.dumps(cells[page]))


def test_pages_that_need_what_a_browser_lacks_are_not_offered(cells: dict[str, list[str]]) -> None:
    assert {"first-gradients", "physics"} <= cells.keys()
    assert not {"exporting", "pytorch-and-jax", "README"} & cells.keys()


def test_code_that_starts_processes_or_threads_is_shown_and_not_run(
    cells: dict[str, list[str]],
) -> None:
    code = "\n".join(cells["custom-gradients"])
    page = (ROOT / "docs" / "guides" / "custom-gradients.md").read_text("utf-8")
    assert "subprocess.run(" in page
    assert "subprocess.run(" not in code
    assert "Thread(" not in "\n".join(cells["recording"])


def test_pipelines_and_large_arrays_need_no_threads(tmp_path: Path) -> None:
    code = """
import numpy as np
import gradtape as gt
from gradtape.core.extend import threads

assert threads() == 1
data = gt.data.Dataset(np.arange(8.0)).map(lambda x: 2 * x, 4).prefetch(2)
assert [float(x) for x in data] == [0, 2, 4, 6, 8, 10, 12, 14]

def fails(x):
    if x == 6:
        raise ValueError("six")
    return x

seen = []
try:
    for x in data.map(fails, 2).prefetch():
        seen.append(float(x))
except ValueError:
    pass
assert seen == [0, 2, 4]

x = np.ones(2**21)
assert gt.sum(gt.exp(x) * x).item() == gt.function(lambda x: gt.sum(gt.exp(x) * x))(x).item()
model = gt.Module()
model.v = gt.Variable(x)  # large enough for digests in threads
gt.save(model, "large.h5")
assert gt.load("large.h5").v.numpy().sum() == 2**21
"""
    in_a_browser(code, tmp_path)
    assert os.listdir(tmp_path) == ["large.h5"]


def test_jobs_for_the_background_run_at_once(tmp_path: Path) -> None:
    code = """
from gradtape.plugins.planned.tiers.background import BACKGROUND

done = []
BACKGROUND.add(lambda: done.append(1))
assert done == [1]
assert BACKGROUND.wait(60)
"""
    in_a_browser(code, tmp_path)


def test_files_are_verified_in_the_same_process(tmp_path: Path) -> None:
    code = """
import gradtape as gt

model = gt.layers.Dense(2)
model(gt.ones((1, 3)))
for _ in range(2):  # the second replaces the first
    gt.save(model, "model.h5")
assert gt.saving.verify("model.h5").ok
open("other.h5", "wb").write(b"\\x89HDF\\r\\n\\x1a\\n" + bytes(2000))
try:
    gt.load("other.h5")
except gt.saving.LoadError as error:
    print(error)
"""
    in_a_browser(code, tmp_path)
    assert sorted(os.listdir(tmp_path)) == ["model.h5", "other.h5"]


def test_a_process_is_refused_in_words(tmp_path: Path) -> None:
    code = """
from gradtape.saving import LoadError
from gradtape.saving.container.child import run_child

try:
    run_child("print(1)", [], 5)
except LoadError as error:
    print(error)
"""
    assert "WebAssembly, as in a browser, starts no processes" in in_a_browser(code, tmp_path)


# -- positions of 32 bits --------------------------------------------------------------------------


def short(found: Any) -> Any:
    """Return positions as NumPy has them on 32 bits."""
    if isinstance(found, tuple):
        return tuple(map(short, found))
    return found.astype(np.int32) if found.dtype == np.int64 else found


@pytest.fixture
def xp(monkeypatch: pytest.MonkeyPatch) -> positions.Positions:
    """The namespace of the backend where positions have 32 bits."""

    def narrow(name: str) -> Any:
        place = {"take": 1, "repeat": 1, "bincount": 0}.get(name)

        def function(*args: Any, **kwargs: Any) -> Any:
            assert place is None or np.can_cast(np.asarray(args[place]).dtype, np.int32)
            return short(getattr(np, name)(*args, **kwargs))

        return function

    others = ("arange", "bincount", "repeat", "take", "unique")
    names = {name: narrow(name) for name in (*positions._RETURNED, *others)}
    monkeypatch.setattr(positions, "NARROW", True)
    return positions.Positions(SimpleNamespace(**names, exp=np.exp))


def test_positions_come_as_int64_and_are_taken_as_such(xp: positions.Positions) -> None:
    x, at = np.array([3.0, 1.0, 2.0]), np.array([2, 0], np.int64)
    assert xp.exp is np.exp
    assert xp.take(x, at, axis=0).tolist() == [2, 3]
    assert xp.repeat(x[:2], at).tolist() == [3, 3]
    assert xp.bincount(at).tolist() == [1, 0, 1]
    assert xp.bincount(at, x[:2]).dtype == np.float64
    found = [xp.bincount(at), xp.argsort(x), xp.argmax(x, axis=0), xp.arange(3), xp.nonzero(x)[0]]
    found += [xp.searchsorted(x, x), *xp.unique(x, return_index=True, return_counts=True)[1:]]
    assert {part.dtype for part in found} == {np.dtype(np.int64)}
    assert xp.arange(3, dtype=np.int32).dtype == np.int32
    assert xp.arange(3.0).dtype == np.float64


def test_a_position_beyond_32_bits_is_refused_and_not_cut(xp: positions.Positions) -> None:
    with pytest.raises(IndexError, match="index 4294967296 is out of bounds"):
        xp.take(np.ones(3), np.array([0, 2**32]), axis=0)
    with pytest.raises(IndexError, match="out of bounds"):
        positions.narrowed(np.array([-(2**40)]))
    assert positions.narrowed(np.array([1], np.uint8)).dtype == np.uint8

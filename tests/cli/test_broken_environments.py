"""``gradtape doctor`` in environments that are broken for real: each gets the advice that mends it.

They are folders on the path of a process of its own, as pip would have left them.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import gradtape as gt
from gradtape.cli.doctor import diagnosis as diagnosis_of_all
from gradtape.cli.doctor import doctor_text
from gradtape.errors import UnknownOp
from gradtape.plugins.cupy import diagnosis

#: What CuPy's wheel is without a driver: it imports, and every call to the runtime fails so.
CUPY = """
__version__ = "14.2.0"
class CUDARuntimeError(RuntimeError): pass
def insufficient():
    raise CUDARuntimeError(
        "cudaErrorInsufficientDriver: CUDA driver version is insufficient for CUDA runtime version"
    )
class cuda:
    class runtime:
        CUDARuntimeError = CUDARuntimeError
        runtimeGetVersion = staticmethod(lambda: 12090)
        driverGetVersion = staticmethod(lambda: 0)
        getDeviceCount = staticmethod(insufficient)
class ndarray: pass
"""


def distribution(folder: Path, name: str, version: str, entry_points: str = "") -> None:
    """Write what pip records of an installed distribution."""
    info = folder / f"{name.replace('-', '_')}-{version}.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
    (info / "entry_points.txt").write_text(entry_points)


def doctor(folder: Path, before: str = "", **environment: str) -> dict[str, Any]:
    """Return what ``gradtape doctor`` finds in a process that has a folder on its path."""
    code = "from gradtape.cli import main; main(['doctor', '--no-measure', '--json'])"
    paths = [str(folder), os.environ.get("PYTHONPATH", "")]
    here = {name: x for name, x in os.environ.items() if name != "OPENBLAS_CORETYPE"}
    done = subprocess.run(
        [sys.executable, "-c", before + code],
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
        env={
            **here,
            "PYTHONPATH": os.pathsep.join(filter(None, paths)),
            "GRADTAPE_DISABLE_PLUGINS": "jax",  # which takes a second to import
            **environment,
        },
    )
    assert "Warning" not in done.stderr
    return json.loads(done.stdout)


def test_cupy_without_a_driver(tmp_path: Path) -> None:
    if diagnosis.facts()["wheels"] or diagnosis.facts()["driver"]:
        pytest.skip("a driver or CuPy is here")
    (tmp_path / "cupy.py").write_text(CUPY)
    distribution(tmp_path, "cupy-cuda12x", "14.2.0")
    found = doctor(tmp_path)
    assert "cudaErrorInsufficientDriver" in found["backends"]["cupy"]
    (advice,) = found["advice"]
    assert advice.startswith("CuPy is installed, but no NVIDIA driver: install the driver")
    assert "docker run --gpus all" in advice


def test_a_plugin_that_fails(tmp_path: Path) -> None:
    (tmp_path / "acme_ops.py").write_text("import a_library_that_is_not_here\n")
    entry = "[gradtape]\nacme = acme_ops\n"
    distribution(tmp_path, "acme-ops", "1.2", entry)
    found = doctor(tmp_path)
    told = [x for x in found["plugins"] if x["name"] == "acme"]
    assert [(x["distribution"], x["version"]) for x in told] == [("acme-ops", "1.2")]
    (advice,) = [x for x in found["advice"] if "acme" in x]
    assert "No module named 'a_library_that_is_not_here'" in advice
    assert "pip install --upgrade acme-ops" in advice
    assert "GRADTAPE_DISABLE_PLUGINS=acme" in advice
    # which is what it says
    found = doctor(tmp_path, GRADTAPE_DISABLE_PLUGINS="acme,jax")
    assert not [x for x in found["advice"] if "acme" in x]
    assert {**told[0], "problem": "disabled"} in found["plugins"]


#: A plugin's module and the files of its distribution, if they are not right; what is said of it.
HOOK = "import gradtape as gt\n@gt.hookimpl\ndef gradtape_ops(): "
METADATA = b"Metadata-Version: 2.1\nName: acme\nVersion: 1.0\n"
BROKEN: dict[str, tuple[str, dict[str, bytes], str]] = {
    "it exits": ("import sys; sys.exit('no license')", {}, "SystemExit: no license (at "),
    "it exits with 0": ("raise SystemExit", {}, "SystemExit"),
    "an exception of its own": ("raise GeneratorExit('odd')", {}, "GeneratorExit: odd (at "),
    "a hook exits": (HOOK + "raise SystemExit('no')", {}, "SystemExit: no (at "),
    "an error without a text": (
        "class E(Exception):\n    def __str__(self): return 1 / 0\nraise E",
        {},
        "plugin 'acme' (acme 1.0): E (at ",
    ),
    "a hook fails": (HOOK + "raise OSError('no')", {}, "OSError: no (at "),
    "a hook returns a number": (HOOK + "return 5", {}, "gradtape_ops returned 5 instead of"),
    "metadata in Latin-1": (
        HOOK + "return []",
        {"METADATA": METADATA + b"Author: Ren\xe9\n"},
        "acme-1.0.dist-info: the METADATA there cannot be used ('utf-8' codec",
    ),
    "empty metadata": (HOOK + "return []", {"METADATA": b""}, "METADATA there cannot be used"),
    "no version": (HOOK + "return []", {"METADATA": METADATA[:-13]}, "no version"),
    "no module": (
        HOOK + "return []",
        {"entry_points.txt": b"[gradtape]\nacme = another"},
        "ModuleNotFoundError: No module named 'another'",
    ),
    "no such attribute": (
        HOOK + "return []",
        {"entry_points.txt": b"[gradtape]\nacme = acme:plugin"},
        "module 'acme' has no attribute 'plugin'",
    ),
    "no name of a module": (
        HOOK + "return []",
        {"entry_points.txt": b"[gradtape]\nacme = two words"},
        "its entry point is 'two words'; it must be 'module' or 'module:object'",
    ),
    "no value": (
        HOOK + "return []",
        {"entry_points.txt": b"[gradtape]\nacme"},
        "acme-1.0.dist-info: the entry_points.txt there cannot be read",
    ),
    "entry points in Latin-1": (
        HOOK + "return []",
        {"entry_points.txt": b"[gradtape]\nacm\xe9 = acme"},
        "acme-1.0.dist-info: the entry_points.txt there cannot be read",
    ),
}


@pytest.mark.parametrize("kind", BROKEN)
def test_a_broken_distribution_costs_only_its_own_plugins(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    module, files, said = BROKEN[kind]
    distribution(tmp_path, "acme", "1.0", "[gradtape]\nacme = acme\n")
    distribution(tmp_path, "bcme", "1.0", "[gradtape]\nbcme = bcme\n")
    (tmp_path / "acme.py").write_text(module)
    (tmp_path / "bcme.py").write_text(HOOK + "return []")
    for name, content in files.items():
        (tmp_path / "acme-1.0.dist-info" / name).write_bytes(content)
    monkeypatch.syspath_prepend(tmp_path)
    look_again()
    with pytest.warns(RuntimeWarning) as caught:
        assert gt.sin(0.0).item() == 0.0
    (warning,) = caught
    assert said in str(warning.message)
    assert "GRADTAPE_DISABLE_PLUGINS=acme" in str(warning.message)
    assert warning.filename == __file__
    problems = {
        info.name: info.problem for info in gt.registry().plugins if info.distribution != "gradtape"
    }
    assert problems["bcme"] is None
    assert said in str(problems["acme"])
    (advice,) = [x for x in diagnosis_of_all(measure=False)["advice"] if "'acme'" in x]
    assert " ".join(said.split()) in advice
    monkeypatch.undo()
    for name in ("acme", "bcme"):
        sys.modules.pop(name, None)
    look_again()


def look_again() -> None:
    """Have plugins discovered anew."""
    gt.disable_plugin("cupy", disabled=False)


def test_a_broken_distribution_without_plugins_is_not_mentioned(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    distribution(tmp_path, "other", "1.0", "[console_scripts]\nbroken\n")
    monkeypatch.syspath_prepend(tmp_path)
    look_again()
    assert gt.sin(0.0).item() == 0.0
    monkeypatch.undo()
    look_again()


def test_two_distributions_that_name_one_module(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("acme", "bcme"):
        distribution(tmp_path, name, "1.0", f"[gradtape]\n{name} = acme\n")
    (tmp_path / "acme.py").write_text(HOOK + "return []")
    monkeypatch.syspath_prepend(tmp_path)
    look_again()
    with pytest.warns(
        RuntimeWarning, match=r"'bcme' .* same object as plugin 'acme' \(acme 1\.0\)"
    ):
        assert gt.sin(0.0).item() == 0.0
    monkeypatch.undo()
    sys.modules.pop("acme", None)
    look_again()


@pytest.mark.parametrize(
    ("metadata", "entry_points"),
    [
        (b"", ""),
        (b"Metadata-Version: 2.1\nName: gradtape\nVersion: 0.0.9\n", ""),
        (
            b"Metadata-Version: 2.1\nName: gradtape\nVersion: 0.0.9\n",
            "[gradtape]\nold = gradtape.a_module_of_old\n",
        ),
    ],
    ids=["missing", "stale", "stale with plugins"],
)
def test_metadata_of_gradtape_that_is_missing_or_stale(
    metadata: bytes, entry_points: str, tmp_path: Path
) -> None:
    distribution(tmp_path, "gradtape", "0.0.9", entry_points)
    (tmp_path / "gradtape-0.0.9.dist-info" / "METADATA").write_bytes(metadata)
    found = doctor(tmp_path)
    assert found["packages"]["gradtape"] == gt.__version__
    assert found["backends"]["numpy"] is None
    (advice,) = [x for x in found["advice"] if "metadata" in x]
    assert "pip install" in advice
    if metadata:
        assert f"{tmp_path} is of version 0.0.9" in advice
    assert not [x for x in found["plugins"] if x["problem"] not in (None, "disabled")]


def test_gradtape_without_metadata_and_without_its_declaration(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As in a program that PyInstaller built without either of them."""
    distribution(tmp_path, "gradtape", "0.0.9")
    look_again()
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr("importlib.resources.files", lambda _: tmp_path)
    with pytest.warns(RuntimeWarning, match="own plugins were not found.*--collect-all gradtape"):
        gt.registry()
    with pytest.raises(UnknownOp, match=r"--force-reinstall gradtape.*PyInstaller"):
        gt.constant(1.0)
    monkeypatch.undo()
    look_again()
    assert gt.constant(1.0).item() == 1.0


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="needs Linux")
def test_blas_with_more_threads_than_cores(tmp_path: Path) -> None:
    pytest.importorskip("threadpoolctl", reason='pip install "gradtape[threads]"')
    if len(os.sched_getaffinity(0)) < 2:
        pytest.skip("needs two cores")
    # a container's bound, which BLAS does not see: it has started a thread per core before
    bound = "import os, numpy; os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})\n"
    threads = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "2")
    found = doctor(tmp_path, before=bound, **threads)
    if not any(x["num_threads"] == 2 for x in found["blas"]):
        pytest.skip("this BLAS starts one thread")
    (advice,) = [x for x in found["advice"] if "BLAS" in x]
    assert advice.startswith("BLAS starts 2 threads, but this process has 1 cores")
    assert "Set OMP_NUM_THREADS=1 before Python starts, or call gt.limit_threads(1)" in advice


@pytest.mark.skipif(os.name == "nt", reason="loops are not compiled on Windows")
def test_a_cache_that_cannot_be_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("llvmlite", reason='pip install "gradtape[fused]"')
    monkeypatch.setenv("GRADTAPE_CACHE_DIR", str(tmp_path / "a_file"))
    (tmp_path / "a_file").touch()
    found = diagnosis_of_all(measure=False)
    (advice,) = [x for x in found["advice"] if "GRADTAPE_CACHE_DIR" in x]
    assert advice.startswith("Compiled loops cannot be cached in")
    shared = tmp_path / "shared"
    shared.mkdir()
    shared.chmod(0o777)
    monkeypatch.setenv("GRADTAPE_CACHE_DIR", str(shared))
    told = diagnosis_of_all(measure=False)["sections"]["cache"]
    assert told["problem"] == "other users may write to it"
    monkeypatch.setenv("GRADTAPE_CACHE_DIR", "")
    told = diagnosis_of_all(measure=False)["sections"]["cache"]
    assert told == {"path": None, "problem": None, "lines": ["none: ready"], "advice": []}


def test_a_report_does_not_name_the_home(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("USERPROFILE", str(tmp_path))
    monkeypatch.setenv("GRADTAPE_CACHE_DIR", str(tmp_path / "loops"))
    told = doctor_text(measure=False)
    assert str(tmp_path) not in told
    assert f"~{os.sep}loops" in told or "GRADTAPE_CACHE_DIR" in told

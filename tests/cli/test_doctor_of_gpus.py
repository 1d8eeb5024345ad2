"""gradtape doctor names each fault of a GPU's software, and what mends it (pretend GPU)."""

from __future__ import annotations

import json
import sys
import types
from collections.abc import Callable, Iterator
from importlib.machinery import ModuleSpec
from pathlib import Path
from typing import Any

import pretend_gpu
import pytest

from gradtape.cli import main
from gradtape.plugins.cupy import diagnosis

GIB = 2**30
LIBRARIES = {
    "cublas_version": 120901,
    "cufft_version": 11401,
    "curand_version": 10310,
    "cusolver_version": (11, 7, 5),
    "cusparse_version": "(available)",
    "nvrtc_version": (12, 9),
    "nccl_runtime_version": 22703,
    "cutensor_version": None,
}
MISSING = "ImportError('Failure finding \"libcublasLt.so.12\"')"


class Machine:
    """A machine with a GPU, a driver, CuPy and its libraries, in which one thing may be wrong."""

    def __init__(self, patch: pytest.MonkeyPatch, folder: Path) -> None:
        self.patch = patch
        self.driver: int | None = 12040
        self.runtime = 12090
        self.wheels = {"cupy-cuda12x": "14.2.0"}
        self.devices = 1
        self.capability = (8, 0)
        self.libraries: dict[str, Any] = dict(LIBRARIES)
        self.failure: Exception | None = None
        self.importable = True
        patch.setenv("CUPY_CACHE_DIR", str(folder / "cache" / "cupy"))
        patch.delenv("CUDA_VISIBLE_DEVICES", raising=False)

    def fail(self) -> int:
        if self.failure is not None:
            raise self.failure
        return self.devices

    def install(self) -> None:
        distributions = [
            types.SimpleNamespace(metadata={"Name": name}, version=version)
            for name, version in {**self.wheels, "numpy": "2.4", "cupyx-of-others": "1"}.items()
        ]
        self.patch.setattr("importlib.metadata.distributions", lambda: distributions)
        self.patch.setattr(diagnosis, "_driver", lambda: self.driver)
        self.patch.setattr(diagnosis, "_driver_release", lambda: "550.54")
        module = pretend_gpu.make("cupy", devices=self.devices, version="14.2.0")
        module.__spec__ = ModuleSpec("cupy", None)
        runtime = module.cuda.runtime
        runtime.getDeviceCount = self.fail
        runtime.runtimeGetVersion = lambda: self.runtime
        runtime.driverGetVersion = lambda: self.driver or 0
        runtime.memGetInfo = lambda: (30 * GIB, 40 * GIB)
        runtime.getDeviceProperties = lambda number: {
            "name": b"Pretend A100",
            "major": self.capability[0],
            "minor": self.capability[1],
        }
        more = types.ModuleType("cupyx")
        vars(more)["get_runtime_info"] = lambda: types.SimpleNamespace(**self.libraries)
        here = bool(self.wheels) and self.importable
        self.patch.setitem(sys.modules, "cupy", module if here else None)
        self.patch.setitem(sys.modules, "cupyx", more)


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Machine]:
    pretend_gpu.forget_cupy()
    yield Machine(monkeypatch, tmp_path)
    pretend_gpu.forget_cupy()


def told(capsys: pytest.CaptureFixture[str]) -> str:
    assert main(["doctor", "--no-measure"]) == 0
    return " ".join(capsys.readouterr().out.split())


def advice(machine: Machine) -> list[str]:
    machine.install()
    return list(diagnosis.diagnosis().get("advice", []))


def test_a_machine_in_order_is_described_and_needs_nothing(
    machine: Machine, capsys: pytest.CaptureFixture[str]
) -> None:
    assert advice(machine) == []
    text = told(capsys)
    assert "driver: 550.54, for CUDA 12.4" in text
    assert "CuPy: cupy-cuda12x 14.2.0, built for CUDA 12.9" in text
    assert "cupy:0: Pretend A100, compute capability 8.0, 40.0 GiB of memory, 30.0 free" in text
    assert "cuBLAS 120901" in text
    assert "cuSPARSE (available)" in text
    assert "cuTENSOR (missing)" in text
    assert main(["doctor", "--no-measure", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)["devices"]["cupy"]
    assert found["devices"][0]["memory"] == 40 * GIB
    assert found["runtime"] == 12090


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (
            lambda m: vars(m).update(wheels={}),
            [
                "An NVIDIA driver for CUDA 12.4 is installed, but CuPy is not",
                'pip install "gradtape[cupy]"',
            ],
        ),
        (lambda m: vars(m).update(wheels={}, driver=13000), ['"gradtape[cupy-cuda13]"']),
        (
            lambda m: vars(m).update(wheels={"cupy-cuda12x": "14.2.0", "cupy-cuda13x": "14.1.0"}),
            [
                "cupy-cuda12x 14.2.0 and cupy-cuda13x 14.1.0",
                "cupy-cuda12x fits this driver",
                'pip uninstall -y cupy-cuda12x cupy-cuda13x; pip install "gradtape[cupy]"',
            ],
        ),
        (
            lambda m: vars(m).update(driver=None, failure=RuntimeError("cudaErrorNoDriver")),
            ["no NVIDIA driver", "nvidia-smi", "--gpus all"],
        ),
        (
            lambda m: vars(m).update(
                wheels={"cupy-cuda13x": "14.2.0"},
                runtime=13000,
                failure=RuntimeError("cudaErrorInsufficientDriver"),
            ),
            [
                "The driver is too old for cupy-cuda13x",
                "it supports CUDA 12.4",
                "built for CUDA 13.0",
                'pip uninstall -y cupy-cuda13x; pip install "gradtape[cupy]"',
            ],
        ),
        (
            lambda m: (m.patch.setenv("CUDA_VISIBLE_DEVICES", ""), vars(m).update(devices=0)),
            ["CUDA_VISIBLE_DEVICES='' hides every GPU: unset it"],
        ),
        (
            lambda m: (
                m.patch.setenv("CUDA_VISIBLE_DEVICES", "7"),
                vars(m).update(failure=RuntimeError("cudaErrorNoDevice: no device is detected")),
            ),
            ["CUDA_VISIBLE_DEVICES='7' hides every GPU"],
        ),
        (lambda m: vars(m).update(devices=0), ["No GPU was found, although a driver is installed"]),
        (
            lambda m: vars(m).update(
                wheels={"cupy-cuda13x": "14"}, runtime=13000, driver=13010, capability=(6, 1)
            ),
            ["CUDA 13 does not support Pretend A100", 'pip install "gradtape[cupy]"'],
        ),
        (
            lambda m: m.libraries.update(cublas_version=MISSING, curand_version=None),
            ["cannot load cuBLAS, cuRAND", 'pip install "cupy-cuda12x[ctk]"'],
        ),
        (
            lambda m: (vars(m).update(devices=2), m.libraries.update(nccl_runtime_version=None)),
            ["NCCL", "pip install nvidia-nccl-cu12"],
        ),
        (
            lambda m: m.patch.setenv("CUPY_CACHE_DIR", "/dev/null/cache"),
            ["cannot write its cache", "/dev/null/cache", "set CUPY_CACHE_DIR"],
        ),
        (
            lambda m: vars(m).update(importable=False),
            ["CuPy cannot be imported", 'pip install "cupy-cuda12x[ctk]"'],
        ),
        (
            lambda m: m.patch.setattr(
                diagnosis, "_try", lambda cupy: exec("raise RuntimeError('no kernel image')")
            ),
            ["A first computation on the GPU failed (RuntimeError: no kernel image)"],
        ),
    ],
)
def test_a_fault_is_named_with_what_mends_it(
    machine: Machine,
    change: Callable[[Machine], Any],
    said: list[str],
    capsys: pytest.CaptureFixture[str],
) -> None:
    change(machine)
    (only,) = advice(machine)
    for words in said:
        assert words in only
    assert " ".join(f"* {only}".split()) in told(capsys)


def test_without_a_gpu_and_cupy_nothing_is_said_of_them(
    machine: Machine, capsys: pytest.CaptureFixture[str]
) -> None:
    machine.wheels, machine.driver = {}, None
    machine.install()
    assert diagnosis.diagnosis() == {}
    assert "driver:" not in told(capsys)


def test_the_driver_is_asked_without_cupy(tmp_path: Path) -> None:
    assert diagnosis._driver() is None or diagnosis._driver() >= 10000
    file = tmp_path / "version"
    file.write_text("NVRM version: NVIDIA UNIX x86_64 Kernel Module  550.54.14  Thu Feb 22\n")
    assert diagnosis._driver_release(str(file)) == "550.54.14"
    assert diagnosis._driver_release(str(tmp_path / "absent")) is None

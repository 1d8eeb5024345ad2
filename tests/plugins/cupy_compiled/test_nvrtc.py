"""All kernels of some programs, compiled for a real GPU by NVRTC, which needs neither one nor CuPy.

Kernels on the processor are compiled by another compiler, which knows other functions.
"""

from __future__ import annotations

import ctypes
import importlib.util
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from block_programs import block_program
from executing import Training
from test_programs import losses_and_how

import gradtape as gt
from gradtape.plugins.cupy.compiled.plan import DevicePlan
from gradtape.plugins.cupy.writing.source import OPTIONS

_INSTALL = "pip install nvidia-cuda-nvrtc-cu12"


@pytest.fixture(scope="module")
def compile_for_gpu() -> Callable[[str], None]:
    """Return a function that raises if NVRTC does not compile a kernel."""
    try:
        found = importlib.util.find_spec("nvidia.cuda_nvrtc")
    except ModuleNotFoundError:
        found = None
    folders = [] if found is None else list(found.submodule_search_locations or ())
    paths = [path for folder in folders for path in Path(folder).glob("lib/libnvrtc.so.*")]
    if not paths:
        pytest.skip(f"NVRTC is not here: {_INSTALL}")
    nvrtc = ctypes.CDLL(str(paths[0]))

    def compile_text(source: str) -> None:
        program = ctypes.c_void_p()
        given = ctypes.byref(program), source.encode(), b"kernel.cu", 0, None, None
        assert nvrtc.nvrtcCreateProgram(*given) == 0
        options = ["--gpu-architecture=compute_80", *OPTIONS]
        texts = (ctypes.c_char_p * len(options))(*[x.encode() for x in options])
        failed = nvrtc.nvrtcCompileProgram(program, len(options), texts)
        size = ctypes.c_size_t()
        nvrtc.nvrtcGetProgramLogSize(program, ctypes.byref(size))
        log = ctypes.create_string_buffer(size.value)
        nvrtc.nvrtcGetProgramLog(program, log)
        nvrtc.nvrtcDestroyProgram(ctypes.byref(program))
        assert not failed, f"{log.value.decode()}\n{source}"

    return compile_text


@pytest.fixture
def sources(cupy: Any, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """Return the texts of all kernels that plans have; they do not run."""
    found: dict[str, str] = {}
    add = DevicePlan._add

    def noted(self: DevicePlan, launch: Any, size: int) -> None:
        found[launch.name] = launch.source
        add(self, launch, size)

    monkeypatch.setattr(DevicePlan, "_add", noted)
    cupy.seen.dry = True
    return found


def test_an_error_is_found(compile_for_gpu: Callable[[str], None]) -> None:
    with pytest.raises(AssertionError, match="missing"):
        compile_for_gpu('extern "C" __global__ void k(float* x) { x[0] = missing; }')


def test_kernels_of_steps_of_training(
    compile_for_gpu: Callable[[str], None], sources: dict[str, str]
) -> None:
    with gt.backend("cupy"):
        Training().step()
    for policy in ("mixed_float16", "mixed_bfloat16"):
        losses_and_how("cupy", "default", policy)
    assert len(sources) > 10
    for source in sources.values():
        compile_for_gpu(source)


def test_kernels_of_random_programs(
    compile_for_gpu: Callable[[str], None], sources: dict[str, str]
) -> None:
    for seed in range(40):
        program, xs = block_program(seed)
        with gt.backend("cupy"):
            gt.function(program)(*map(gt.constant, xs))
    assert sum("__syncthreads" in source for source in sources.values()) > 10
    for source in sources.values():
        compile_for_gpu(source)

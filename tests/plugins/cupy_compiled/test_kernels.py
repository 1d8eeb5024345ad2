"""Generated kernels: each formula at hard numbers, sums of all forms, and real compilers."""

from __future__ import annotations

import ctypes
import importlib.util
import shutil
import subprocess
from pathlib import Path
from typing import Any

import cuda_on_cpu
import numpy as np
import pytest
from executing import within_ulps
from real_gpu import PLACES

import gradtape as gt
from gradtape.core.extend import Graph, Symbol
from gradtape.plugins.cupy.writing.formulas import _FORMS, expression
from gradtape.plugins.cupy.writing.groups import launches
from gradtape.plugins.cupy.writing.source import BLOCK, OPTIONS, KernelLaunch
from gradtape.plugins.planned import LoopGroup, PlanStep, StepKind

GRAPH = Graph("test")
DTYPES = ["float16", "float32", "float64", "bool", "int8", "int32", "int64", "uint8", "uint64"]
#: Where NumPy says neither which zero nor which way.
TIES = {"maximum", "minimum", "fmax", "fmin"}


def symbol(x: np.ndarray) -> Symbol:
    return Symbol(GRAPH, x.shape, x.dtype)


def hard_numbers(dtype: Any) -> np.ndarray:
    """Return numbers at which formulas go wrong."""
    dtype = np.dtype(dtype)
    if dtype.kind == "b":
        return np.array([False, True])
    if dtype.kind in "iu":
        bounds = np.iinfo(dtype)
        return np.array([bounds.min, bounds.min + 1, 0, 1, 2, 3, bounds.max - 1, bounds.max], dtype)
    numbers = [0, -0.0, 1, -1, 0.5, -0.5, 1.5, 2.5, 3, -2, 1e-3, 9.75, -31.5, 4e4, -5e4]
    return np.array([*numbers, np.inf, -np.inf, np.nan], dtype)


def _group(step: PlanStep) -> LoopGroup:
    group = LoopGroup(step.space)
    (group.tails if step.kind is StepKind.REDUCTION else group.steps).append(step)
    group.close(lambda x: True)
    return group


def _as_it_lies(x: Symbol) -> Any:
    return x, 0, tuple(s // x.dtype.itemsize for s in np.empty(x.shape, x.dtype).strides)


def formulas() -> list[tuple[str, str, PlanStep, list[np.ndarray], Any]]:
    """Return each formula in each dtype: its step, operands, and what NumPy gives for them."""
    found = []
    for op in sorted({op for forms in _FORMS.values() for op in forms}):
        ufunc = getattr(np, op)
        for dtype in DTYPES:
            numbers = hard_numbers(dtype)
            given = [numbers] if ufunc.nin == 1 else [np.repeat(numbers, len(numbers)),
                                                      np.tile(numbers, len(numbers))]  # fmt: skip
            with np.errstate(all="ignore"):
                try:
                    wanted = ufunc(*given)
                except (TypeError, ValueError):
                    continue
            out = symbol(wanted)
            step = PlanStep(StepKind.ELEMENTWISE, op, ufunc, [symbol(x) for x in given], (out,))
            if expression(step) is not None:
                found.append((op, dtype, step, given, wanted))
    return found


FOUND = formulas()


class OnTheProcessor:
    """Compiles kernels, and runs them with NumPy's arrays."""

    def __init__(self, kernels: list[KernelLaunch]) -> None:
        self.built = cuda_on_cpu.build(list({k.name: k.source for k in kernels}.items()))

    def run(self, kernels: list[KernelLaunch], arrays: dict[Symbol, np.ndarray]) -> None:
        for kernel in kernels:
            given = [arrays.setdefault(x, np.zeros(x.shape, x.dtype)) for x in kernel.arrays]
            pointers = (ctypes.c_void_p * len(given))(*[x.ctypes.data for x in given])
            self.built[kernel.name](pointers, kernel.blocks, BLOCK)


class OnTheGpu:
    """The same on a real GPU."""

    def __init__(self, kernels: list[KernelLaunch]) -> None:
        self.cupy = gt.registry().backends["cupy"].xp
        self.built = {k.name: self.cupy.RawKernel(k.source, k.name, OPTIONS) for k in kernels}

    def run(self, kernels: list[KernelLaunch], arrays: dict[Symbol, np.ndarray]) -> None:
        there = {x: self.cupy.asarray(array) for x, array in arrays.items()}
        for kernel in kernels:
            given = [there.setdefault(x, self.cupy.zeros(x.shape, x.dtype)) for x in kernel.arrays]
            self.built[kernel.name]((kernel.blocks,), (BLOCK,), tuple(given))
        arrays.update((x, self.cupy.asnumpy(array)) for x, array in there.items())


@pytest.fixture(params=PLACES)
def build(request: pytest.FixtureRequest) -> Any:
    if request.param == "pretend" and cuda_on_cpu.MISSING:
        pytest.skip(cuda_on_cpu.MISSING)
    return OnTheProcessor if request.param == "pretend" else OnTheGpu


def test_formulas_give_numpys_numbers_at_hard_ones(build: Any) -> None:
    kernels = [launches(_group(step), _as_it_lies)[0] for _, _, step, _, _ in FOUND]
    built = build([k for row in kernels for k in row])
    wrong = []
    for (op, dtype, step, given, wanted), row in zip(FOUND, kernels, strict=True):
        arrays = dict(zip(step.inputs, given, strict=True))
        built.run(row, arrays)
        found = arrays[step.out]
        if op in TIES:
            found, wanted = found + 0, wanted + 0
        if not within_ulps(found, wanted, 2):
            off = [i for i in range(found.size) if not within_ulps(found[i], wanted[i], 2)]
            told = [(*(x[i] for x in given), found[i], wanted[i]) for i in off[:4]]
            wrong.append(f"{op} of {dtype}: {told}")
    assert not wrong, "\n".join(wrong)
    assert len(FOUND) > 200


SUMS = [
    ((5,), 0), ((1,), 0), ((3, 5), 0), ((3, 5), 1), ((3, 5), (0, 1)), ((40, 1), 0), ((1, 40), 0),
    ((700, 3), 0), ((3, 700), 1), ((2, 3, 50), (0, 2)), ((5, 4, 3), 1), ((20000,), None),
    ((90, 30, 4), (0, 1)), ((2, 70, 2, 60), (1, 3)), ((2, 70, 2, 60), (0, 2)),
]  # fmt: skip


@pytest.mark.parametrize("op", ["add", "maximum", "minimum"])
@pytest.mark.parametrize("turned", [False, True], ids=["as it lies", "transposed"])
def test_sums_are_those_of_numpy_whatever_they_are_over(build: Any, op: str, turned: bool) -> None:
    random = np.random.default_rng(0)
    rows = []
    for shape, axis in SUMS:
        x = random.normal(size=shape[::-1] if turned else shape).astype("float32")
        home = symbol(x)
        view = x.T if turned else x
        source = Symbol(GRAPH, view.shape, view.dtype)
        place = (home, 0, tuple(s // 4 for s in view.strides))
        wanted = getattr(np, op).reduce(view.astype("float64"), axis).astype("float32")
        params = {"axis": axis, "keepdims": False}
        step = PlanStep(StepKind.REDUCTION, op, np.add.reduce, (source,), (symbol(wanted),), params)
        kernels = launches(_group(step), lambda x, place=place: place)[0]
        rows.append((kernels, {home: x}, step.out, wanted, (shape, axis)))
    built = build([k for kernels, *_ in rows for k in kernels])
    for kernels, arrays, out, wanted, what in rows:
        built.run(kernels, arrays)
        np.testing.assert_allclose(arrays[out], wanted, rtol=2e-5, atol=2e-5, err_msg=str(what))


def test_long_sums_are_as_near_as_numpys(build: Any) -> None:
    x = np.full(300000, 0.1, "float32")
    step = PlanStep(
        StepKind.REDUCTION,
        "add",
        np.add.reduce,
        (symbol(x),),
        (Symbol(GRAPH, (), x.dtype),),
        {"axis": None, "keepdims": False},
    )
    kernels, scratch = launches(_group(step), _as_it_lies)
    assert len(kernels) == len(scratch) + 1 > 2
    arrays = {step.inputs[0]: x}
    build(kernels).run(kernels, arrays)
    assert abs(arrays[step.out] / np.sum(x, dtype="float64") - 1) < 1e-6


@pytest.mark.parametrize(("op", "x", "wanted"), [
    ("add", [-0.0] * 40, -0.0), ("add", [np.inf, -np.inf] + [0] * 40, np.nan),
    ("maximum", [-np.inf] * 40, -np.inf), ("maximum", [1, np.nan] + [2] * 40, np.nan),
    ("minimum", [np.inf] * 40, np.inf), ("minimum", [2] * 40 + [np.nan], np.nan),
])  # fmt: skip
def test_sums_of_hard_numbers(build: Any, op: str, x: list[float], wanted: float) -> None:
    array = np.array(x, "float64")
    out = Symbol(GRAPH, (), array.dtype)
    params = {"axis": 0, "keepdims": False}
    step = PlanStep(StepKind.REDUCTION, op, np.add.reduce, (symbol(array),), (out,), params)
    kernels = launches(_group(step), _as_it_lies)[0]
    arrays = {step.inputs[0]: array}
    build(kernels).run(kernels, arrays)
    assert within_ulps(arrays[out], np.array(wanted), 0)


def test_names_are_the_same_in_every_process_and_say_what_they_do() -> None:
    op, _, step, _, _ = FOUND[0]
    first, second = (launches(_group(step), _as_it_lies)[0][0] for _ in range(2))
    assert (first.name, first.source) == (second.name, second.source)
    assert first.name.startswith(f"gradtape_{op}_")


def _all_sources() -> dict[str, str]:
    rows = [launches(_group(step), _as_it_lies)[0] for _, _, step, _, _ in FOUND]
    for shape, axis in SUMS:
        x = np.empty(shape, "float64")
        params = {"axis": axis, "keepdims": False}
        out = Symbol(GRAPH, np.add.reduce(x, axis).shape, x.dtype)
        step = PlanStep(StepKind.REDUCTION, "maximum", np.add.reduce, (symbol(x),), (out,), params)
        rows.append(launches(_group(step), _as_it_lies)[0])
    return {k.name: k.source for row in rows for k in row}


def test_nvrtc_compiles_all_of_them() -> None:
    if importlib.util.find_spec("cupy") is None:
        pytest.skip("CuPy is not installed, whose NVRTC compiles CUDA C without a GPU")
    from cupy.cuda import nvrtc

    try:
        nvrtc.getVersion()
    except RuntimeError as error:
        pytest.skip(f"NVRTC cannot be loaded: {error}")
    for name, source in _all_sources().items():
        program = nvrtc.createProgram(source, f"{name}.cu", [], [])
        # as CuPy calls it, but for the architecture, which it asks the device for
        options = [*OPTIONS, "--gpu-architecture=compute_80", "-std=c++17", "-ftz=true"]
        try:
            nvrtc.compileProgram(program, options)
        except nvrtc.NVRTCError:
            raise AssertionError(f"{source}\n{nvrtc.getProgramLog(program)}") from None
        assert name.encode() in nvrtc.getPTX(program)


def test_nvcc_compiles_all_of_them(tmp_path: Path) -> None:
    if shutil.which("nvcc") is None:
        pytest.skip("nvcc is not here")
    parts = [f"namespace n{i} {{\n{text}}}\n" for i, text in enumerate(_all_sources().values())]
    path = tmp_path / "kernels.cu"
    path.write_text("".join(parts))
    command = ["nvcc", "--ptx", *OPTIONS, "-std=c++17", "-o", str(tmp_path / "out.ptx"), str(path)]
    subprocess.run(command, check=True, timeout=280)

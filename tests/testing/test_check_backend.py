"""``check_backend``: what is wrong with a backend is found, and told apart from what it refuses."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pretend_gpu
import pytest

import gradtape as gt
from gradtape.errors import BackendUnavailable
from gradtape.testing import BackendReport, check_backend

PLUGIN = pretend_gpu.Plugin("lies")
library = PLUGIN.library


@pytest.fixture
def with_kernel() -> Iterator[Callable[[str, Any], None]]:
    """Let the pretended library compute an op by another kernel."""

    def replace(op: str, kernel: Any) -> None:
        PLUGIN.kernels = {(op, "lies"): kernel}
        gt.register_plugin(PLUGIN, "lies")

    yield replace
    gt.unregister_plugin("lies")


def check(name: str, **options: Any) -> BackendReport:
    return check_backend("lies", only=[name], show=False, **options)


def to_numpy(function: Any) -> Any:
    return lambda x: library.array(function(library.asnumpy(x)))


@pytest.mark.parametrize("traced", [False, True])
@pytest.mark.parametrize(
    ("op", "kernel", "message"),
    [
        ("sin", to_numpy(lambda x: np.sin(x) + 1e-6), r"3 of 3 samples: Sample\(float64\[2, 3\]\)"),
        ("sin", to_numpy(lambda x: np.sin(x) + 1e-6), "number 0 of .* is .* instead of "),
        ("sin", to_numpy(lambda x: np.sin(x).astype(np.complex64)), r"complex64\[2, 3\]"),
        ("sin", to_numpy(lambda x: np.sin(x)[..., None]), r"float64\[2, 3, 1\]"),
        ("cos", to_numpy(np.sin), "3 of 3"),
    ],
)
def test_what_is_wrong_is_told(
    with_kernel: Any, op: str, kernel: Any, message: str, traced: bool
) -> None:
    with_kernel(op, kernel)
    report = check(op, traced=traced)
    assert (report.passed, report.refused, list(report.wrong)) == ([], {}, [op])
    assert re.search(message, report.wrong[op])


def test_a_wrong_gradient_is_told(with_kernel: Any) -> None:
    with_kernel("cos", to_numpy(lambda x: np.cos(x) * 1.001))  # sin has it in its gradient
    report = check("sin")
    assert "number 1 of results and gradients" in report.wrong["sin"]


def test_what_raises_is_refused_and_the_rest_goes_on(with_kernel: Any) -> None:
    def kernel(x: Any) -> Any:
        if x.data.dtype.kind == "c":
            raise NotImplementedError("no complex numbers")
        return library.sin(x)

    with_kernel("sin", kernel)
    report = check_backend("lies", only=["sin", "exp", "gt.nn.hinge"], show=False)
    assert (report.passed, report.wrong) == (["exp", "gt.nn.hinge"], {})
    told = "1 of 3 samples: Sample(complex128[2, 3]): NotImplementedError: sin: no complex numbers"
    assert report.refused["sin"].startswith(told)


def test_results_elsewhere_are_wrong(with_kernel: Any) -> None:
    with_kernel("identity", lambda x: library.asnumpy(x))
    told = check("identity").wrong["identity"]
    assert "kernel for the backend 'lies' returned numpy.ndarray, of the backend 'numpy'" in told


def test_the_report_is_a_table(with_kernel: Any, capsys: pytest.CaptureFixture[str]) -> None:
    with_kernel("sin", lambda x: 1 / 0)
    report = check_backend("lies:1", only=["tan", "sin"])
    first, row = capsys.readouterr().out.splitlines()
    assert f"{first}\n{row}" == str(report)
    assert first.startswith("backend 'lies:1': 2 ops and functions in ")
    assert first.endswith(" s: 1 passed (tan), 1 refused, 0 wrong")
    assert row.startswith("refused  sin  3 of 3 samples: Sample(float64[2, 3]): ZeroDivisionError")
    assert report.seconds > 0


@pytest.mark.parametrize("traced", [False, True])
def test_numpy_gives_what_numpy_gives(traced: bool) -> None:
    names = ["sin", "matmul", "svd", "cond", "sort", "gt.gradient", "gt.nn.hinge"]
    report = check_backend("numpy", only=names, traced=traced, show=False)
    assert report.passed == names


@pytest.mark.parametrize("traced", [False, True])
def test_nothing_is_printed_unless_asked(traced: bool, capsys: pytest.CaptureFixture[str]) -> None:
    report = check_backend("numpy", only=["print", "sin"], traced=traced, show=False)
    assert report.passed == ["print", "sin"]
    assert capsys.readouterr().out == ""


def test_what_cannot_be_traced_is_left_out() -> None:
    report = check_backend("numpy", only=["gt.ix_", "gt.trim_zeros"], traced=True, show=False)
    assert (report.passed, report.refused) == (["gt.ix_"], {})  # its other sample can be


def test_what_is_not_there_is_an_error_in_words() -> None:
    with pytest.raises(LookupError, match="no plugin provides the backend 'nunpy'"):
        check_backend("nunpy")
    with pytest.raises(LookupError, match=r"no samples of 'sinn'; .*'gt\.nn\.hinge'"):
        check_backend("numpy", only=["sinn"])
    if gt.registry().backend("cupy").unavailable():
        with pytest.raises(BackendUnavailable, match="cupy"):
            check_backend("cupy")

"""The samples of elementwise ops, where kernels run: values and gradients are NumPy's."""

from __future__ import annotations

import contextlib
import warnings
from typing import Any

import numpy as np
import pretend_gpu
import pytest
from table import SAMPLES

import gradtape as gt
from gradtape.testing import check_backend

#: CuPy's functions refuse complex numbers.
REFUSED = {"erf", "erfc"}


def test_samples_give_numpys_numbers(cupy: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    ops = gt.registry().ops
    names = [name for name in SAMPLES if ops[name].batch == "elementwise" and name not in REFUSED]
    init = pretend_gpu._Array.__init__

    def filled(self: Any, data: Any, device: Any) -> None:
        init(self, data, device)
        if type(data) is tuple and cupy.seen.dry:
            self.data[...] = 1

    monkeypatch.setattr(pretend_gpu._Array, "__init__", filled)
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        cupy.seen.dry = True  # so that all kernels are compiled together
        for name in names:
            with contextlib.suppress(Exception):
                check_backend("cupy", only=[name], show=False)
        cupy.seen.dry, before = False, cupy.seen.launches
        reports = [check_backend("cupy", only=[name], show=False) for name in names]
    wrong = [str(report) for report in reports if report.wrong or report.refused]
    # the pretend CuPy here has no cupyx
    wrong = [text for text in wrong if "its kernel comes from SciPy" not in text]
    assert not wrong, "\n".join(wrong)
    assert cupy.seen.launches - before > 50

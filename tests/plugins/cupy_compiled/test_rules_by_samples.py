"""The samples of all ops that have a rule for CuPy: values and gradients are those of NumPy."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
from table import SAMPLES
from test_samples_by_executors import runner

import gradtape as gt
from gradtape.core.extend import SCALARS
from gradtape.errors import BackendUnavailable
from gradtape.plugins.cupy.compiled import _FORMULAS, _LOWERED
from gradtape.plugins.cupy.compiled.lowering import RULES
from gradtape.plugins.cupy.writing.formulas import FORMULAS

#: Those of which some samples remain calls.
CALLED = {
    **dict.fromkeys(("getitem", "index_add_like"), "masks"),
    **dict.fromkeys(("einsum", "einsum_adjoint"), "diagonals, and other numbers of operands"),
    **dict.fromkeys(("power", "round_to_bfloat16"), "of these dtypes there is no formula"),
    "gelu_slope": "that of the approximation with tanh",
}
NAMES = sorted({*RULES, *FORMULAS} & set(SAMPLES))


def _arrays(sample: Any, dtype: str) -> list[np.ndarray]:
    found = [x for x in sample.inputs if type(x) not in SCALARS]
    return [x.astype(dtype) if x.dtype == np.float64 else x for x in found]


def _results(run: Callable[..., Any], arrays: Sequence[Any], place: str) -> list[Any]:
    with gt.backend(place):
        values, slopes = run([gt.constant(x).to(place) for x in arrays])
        return [y.to("numpy").numpy() for y in (*values, *slopes)]


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("start", range(0, len(NAMES), 12))
def test_samples(either: Any, start: int, dtype: str) -> None:
    wrong = []
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        made = []
        for name in NAMES[start : start + 12]:
            for sample in SAMPLES[name]:
                run, arrays = runner(gt.registry().op(name), sample), _arrays(sample, dtype)
                try:
                    wanted = _results(run, arrays, "numpy")
                except Exception:
                    continue  # of this dtype there is none
                made.append((f"{name} {sample}", run, arrays, wanted))
        either.seen.dry = True  # so that all kernels are compiled at once
        for case in [*made]:
            try:
                _results(gt.function(case[1]), case[2], "cupy")
            except BackendUnavailable:  # functions that CuPy has in a package of its own
                made.remove(case)
        either.seen.dry = False
        for label, run, arrays, wanted in made:
            f = gt.function(run)  # the constants of the other one have not been computed
            found = _results(f, arrays, "cupy")
            for mine, right in zip(found, wanted, strict=True):
                near = {"rtol": 1e-9, "atol": 1e-9}
                near = near if dtype == "float64" else {"rtol": 2e-4, "atol": 2e-5}
                if (mine.shape, mine.dtype) != (right.shape, right.dtype) or not np.allclose(
                    mine, right, **near, equal_nan=True
                ):
                    wrong.append(f"{label}: {mine} for {right}"[:600])
            told = f.concrete_functions[0].explain()
            usual = label.split()[0] not in CALLED and not any(
                "complex" in str(x.dtype) or 0 in x.shape for x in (*arrays, *wanted)
            )
            if usual and f"a call of the kernel of {name}," in told:
                wrong.append(f"{label} {told}"[:900])
    assert made
    assert not wrong, "\n".join(wrong)


def test_the_plugin_names_all_rules() -> None:
    assert sorted(_LOWERED) == sorted(RULES)
    assert sorted(_FORMULAS) == sorted(FORMULAS)

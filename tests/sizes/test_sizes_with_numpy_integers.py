"""Unknown sizes with NumPy's integers: dtypes and values are those of an eager run."""

from __future__ import annotations

import itertools
import operator
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import gradtape as gt

OPERATORS = (
    *("add", "sub", "mul", "floordiv", "mod", "pow", "and_", "or_", "xor", "lshift", "rshift"),
    *("truediv", "eq", "lt"),
)
DTYPES = "bool int8 int16 int32 int64 uint8 uint16 uint32 uint64".split()
SIZED = (lambda n: n, lambda n: n * n, lambda n: n - 102)
SPEC = gt.TensorSpec([None])


def outcome(run: Callable[[Any], Any], x: Any) -> Any:
    """Return a result's dtype and value, or the kind of its error."""
    try:
        with np.errstate(all="ignore"):
            found = gt.constant(run(x))
    except (OverflowError, TypeError, ValueError) as error:
        return type(error)
    return found.dtype, found.tolist()


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", OPERATORS)
def test_a_trace_agrees_with_an_eager_run(name: str, dtype: str) -> None:
    work, scalar, x = getattr(operator, name), np.dtype(dtype).type(3), np.zeros(100, "float32")
    for sized, swapped in itertools.product(SIZED, (False, True)):

        def compute(x: Any, sized: Any = sized, swapped: bool = swapped) -> Any:
            n = sized(x.shape[0])
            return work(scalar, n) if swapped else work(n, scalar)

        eager = outcome(compute, gt.constant(x))
        traced = outcome(gt.function(compute, input_signature=[SPEC]), x)
        # beyond int64, and for shifts by less than 0, an error instead of a wrapped number
        refused = name in ("pow", "lshift", "rshift") and traced in (OverflowError, ValueError)
        if dtype == "int32" and name == "pow":
            continue  # it wraps
        if dtype == "int32" and isinstance(eager, tuple) and eager[0] == np.int32:
            eager = np.dtype(np.int64), eager[1]  # sizes stay sizes
        assert refused or traced == eager, (eager, traced)


def test_ufuncs_agree_too() -> None:
    def compute(x: Any) -> Any:
        n = x.shape[0]
        return [np.add(n, np.uint8(200)), np.multiply(np.int8(2), n), np.power(n, np.int16(2))]

    x = np.zeros(100, "float32")
    for eager, traced in zip(compute(x), gt.function(compute, input_signature=[SPEC])(x)):
        assert (traced.dtype, traced.item()) == (eager.dtype, eager)


def test_powers_with_a_modulus() -> None:
    power = gt.function(lambda x: pow(x.shape[0], 20, 7), input_signature=[SPEC])
    assert power(np.zeros(100, "float32")).item() == pow(100, 20, 7)
    for run in (lambda x: pow(x, 3, 7), gt.function(lambda x: pow(x, 3, 7))):
        with pytest.raises(TypeError, match="has no form for tensors"):
            run(gt.constant(3))

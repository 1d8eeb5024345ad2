"""Updates of variables of each dtype, by values of each dtype: ``fused`` does what ``plain`` does.

From 16,384 elements on, updates of the same form become one over packed memory, in which dtypes
come that no loop takes.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import gradtape as gt

NAMES = sorted({np.dtype(char).name for char in "?bhilqBHILQefdFD"})  # all dtypes of tensors
FEW, MANY = 8, 2**14
UPDATES: dict[str, Callable[[Any, Any], Any]] = {
    "assign": lambda v, x: v.assign(x),
    "assign_add": lambda v, x: v.assign_add(x),
    "assign_sub": lambda v, x: v.assign_sub(x),
    "computed": lambda v, x: v.assign_add(x * x),
    "chosen": lambda v, x: v.assign(gt.where(x == 1, v, x)),
    "converted": lambda v, x: v.assign(gt.cast(v + v, v.dtype) + gt.cast(x, v.dtype)),
    "compared": lambda v, x: v.assign(gt.cast(v >= gt.cast(x, v.dtype), v.dtype)),
    "twice": lambda v, x: (v.assign_add(x), v.assign_sub(x * x)),
}


def values(size: int, dtype: str, seed: int) -> Any:
    most = 2 if dtype == "bool" else 4
    return np.random.default_rng(seed).integers(0, most, size).astype(dtype)


def updated(executor: str, kinds: list[tuple[str, str]], update: Any, size: int) -> Any:
    """Return the variables after two updates; the error of what is refused."""
    variables = [gt.Variable(values(size, of, i)) for i, (of, _) in enumerate(kinds)]
    given = [values(size, by, 7 + i) for i, (_, by) in enumerate(kinds)]

    def step(*xs: Any) -> None:
        for v, x in zip(variables, xs, strict=True):
            update(v, x)

    run = gt.function(step, executor=executor)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", RuntimeWarning)  # another executor runs it instead
            run(*given)
            run(*given[::-1] if len(set(kinds)) == 1 else given)
    except (TypeError, ValueError) as error:
        return type(error).__name__
    return [v.numpy() for v in variables]


def compare(kinds: list[tuple[str, str]], update: str, size: int) -> bool:
    found, want = (updated(e, kinds, UPDATES[update], size) for e in ("fused", "plain"))
    if isinstance(want, str):
        assert found == want, (kinds, update, size)
        return False
    for x, y in zip(found, want, strict=True):
        assert x.dtype == y.dtype
        np.testing.assert_array_equal(x, y, str((kinds, update, size)))
    return True


@pytest.mark.parametrize("update", UPDATES)
def test_an_update_of_each_dtype_by_its_own(update: str) -> None:
    ran = [compare([(of, of)] * 3, update, size) for of in NAMES for size in (FEW, MANY)]
    assert sum(ran) > len(ran) / 2


@pytest.mark.parametrize("of", NAMES)
def test_an_update_by_each_dtype(of: str) -> None:
    ran = [compare([(of, by)], update, MANY) for by in NAMES for update in ("assign_add", "chosen")]
    assert any(ran)


def test_updates_of_all_dtypes_in_one_program() -> None:
    for update in UPDATES:
        allowed = [
            isinstance(updated("plain", [(of, of)], UPDATES[update], FEW), list) for of in NAMES
        ]
        kinds = [(of, of) for of, runs in zip(NAMES, allowed, strict=True) if runs]
        assert compare(kinds * 2, update, MANY)

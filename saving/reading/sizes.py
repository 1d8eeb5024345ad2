"""Formulas of sizes in untrusted files."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ...core.extend import Formula, Size, Symbol, evaluated, holds
from ..errors import DamagedFile
from ..records.schema import take

_SIZES: tuple[Any, ...] = (int, np.integer, Size)


def without_witnesses(
    inputs: list[Any], params: dict[str, Any], item: Any, where: str
) -> tuple[list[Any], dict[str, Any]]:
    """Return an op's inputs, and its parameters with sizes instead of formulas."""
    if "witnesses" not in item and not holds(params, Formula):
        return inputs, params
    count = take(item, "witnesses", int, where) if "witnesses" in item else 0
    kept = len(inputs) - count
    if not 0 <= count <= len(inputs) or any(type(x) is not Symbol for x in inputs[kept:]):
        raise DamagedFile(f"{where}: 'witnesses' does not fit the inputs")
    witnesses = inputs[kept:]
    try:
        found = evaluated(
            params, [x.shape for x in witnesses], lambda k: witnesses[k].as_size("a size")
        )
    except Exception as error:  # any error of an untrusted expression
        raise DamagedFile(f"{where}: {error}") from None
    return inputs[:kept], found


def check_sizes(outputs: Sequence[Symbol], where: str) -> None:
    """Refuse shapes with entries that are not sizes, or are below 0 in every run."""
    shapes: list[Any] = [() if x.shape is None else x.shape for x in outputs]
    checked: set[int] = set()  # many parts of one array have the same unknown sizes
    for shape in shapes:
        if not isinstance(shape, tuple):  # a rule passed on what a file says is a shape
            raise DamagedFile(f"{where}: not a shape: {str(shape)[:80]}")
        for n in shape:
            if id(n) in checked:
                continue
            checked.add(id(n))
            if type(n) is bool or not isinstance(n, _SIZES) or (n < 0) is True:
                raise DamagedFile(f"{where}: not a size: {str(n)[:80]}")

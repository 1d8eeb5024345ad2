"""The samples of all ops that ship with gradtape, and of the public functions made of them.

gradtape's own test suite and :func:`gradtape.testing.check_backend` run them. The samples are made
when this package is imported, so it is imported only where they are needed.
"""

from __future__ import annotations

from ..samples import Sample
from . import (
    control,
    elementwise,
    empty,
    functions,
    linalg,
    network,
    numbers,
    ranks,
    reductions,
    shape,
    transforms,
)

__all__ = ["FUNCTIONS", "SAMPLES"]

#: The samples of ops, by name.
SAMPLES: dict[str, list[Sample]] = {}
for table in (
    elementwise,
    reductions,
    shape,
    linalg,
    network,
    numbers,
    transforms,
    empty,
    control,
    ranks,
):
    for name, samples in table.SAMPLES.items():
        SAMPLES.setdefault(name, []).extend(samples)

#: The samples of public functions without an op of the same name, by their names in gradtape.
FUNCTIONS: dict[str, list[Sample]] = functions.SAMPLES

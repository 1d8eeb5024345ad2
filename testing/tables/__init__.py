"""The samples of all ops that ship with gradtape, and of the public functions made of them.

gradtape's own test suite and :func:`gradtape.testing.check_backend` run them. The samples are made
when this package is imported, so it is imported only where they are needed. It is a plugin, too,
which provides them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ...core.extend import hookimpl
from ..samples import Sample
from . import (
    control,
    elementwise,
    empty,
    functions,
    linalg,
    network,
    reductions,
    shape,
)

__all__ = ["FUNCTIONS", "SAMPLES"]

#: The samples of ops, by name.
SAMPLES: dict[str, list[Sample]] = {}
for table in (elementwise, reductions, shape, linalg, network, empty, control):
    for name, samples in table.SAMPLES.items():
        SAMPLES.setdefault(name, []).extend(samples)

#: The samples of public functions without an op of the same name, by their names in gradtape.
FUNCTIONS: dict[str, list[Sample]] = functions.SAMPLES


@hookimpl(trylast=True)
def gradtape_samples() -> Mapping[str, Sequence[Sample]]:
    """Provide samples of ops, by name, and of functions, by their names under ``gt``."""
    return {**SAMPLES, **{f"gt.{name}": samples for name, samples in FUNCTIONS.items()}}

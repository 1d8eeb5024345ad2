"""Samples of collectives in a group of one, the only group that one process has.

Their results in a job of several ranks are tested in ``tests/distributed``.
"""

from __future__ import annotations

import numpy as np

from ..samples import Sample
from .drawing import complexes, real

ALIKE = {
    name: [Sample(real(2, 3)), Sample(complexes(3)), Sample(real())]
    for name in ("share_of_ranks", "sum_over_ranks")
}
OPEN = "a graph serves any number of ranks"
ROWS = {
    name: [
        x.without("known sizes", reason=OPEN) for x in (Sample(real(2, 3)), Sample(complexes(3)))
    ]
    for name in ("rows_of_ranks", "rows_summed_over_ranks")
}
ONE = {
    name: [Sample(real(2, 3), root=0), Sample(complexes(3), root=0)]
    for name in ("kept_on_rank", "value_of_rank")
}

SAMPLES = {
    **ALIKE,
    **ROWS,
    **ONE,
    "average_over_ranks": [
        Sample(1.0, real(2, 3), complexes(3)),
        Sample(0.5, real(), real(3), real(2, 2), checked=1),
        Sample(0.5, real(3), mean=False),
    ],
    "begin_average_over_ranks": [Sample(1.0, real(2, 3), real(), checked=1)],
    "end_average_over_ranks": [
        Sample(np.array(0), 1.0, real(2, 3), complexes(3)),
        Sample(np.array(0), 0.5, real(), real(3), checked=1),
        Sample(np.array(0), 0.5, real(3), mean=False),
    ],
}

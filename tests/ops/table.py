"""The samples of all ops."""

from __future__ import annotations

import samples_elementwise
import samples_empty
import samples_linalg
import samples_network
import samples_reductions
import samples_shape
import samples_transforms

from gradtape.testing import Sample

TABLES = (
    samples_elementwise.SAMPLES,
    samples_reductions.SAMPLES,
    samples_shape.SAMPLES,
    samples_linalg.SAMPLES,
    samples_network.SAMPLES,
    samples_transforms.SAMPLES,
    samples_empty.SAMPLES,
)
SAMPLES: dict[str, list[Sample]] = {}
for table in TABLES:
    for name, samples in table.items():
        SAMPLES.setdefault(name, []).extend(samples)

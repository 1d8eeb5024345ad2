"""Class labels of any dtype: integers, or whole numbers in another dtype."""

from __future__ import annotations

from typing import Any

import numpy as np

from ....core.extend import NONDIFF
from ..common.kernels import at_hand, cast_to, kind_of
from ..common.op_builders import op


def class_labels_kernel(xp: Any, labels: Any) -> Any:
    """Return labels as integers; raise if one is not a whole number."""
    kind = kind_of(labels.dtype)
    if kind == "c":
        raise TypeError(f"class_labels: labels must be whole numbers, got dtype {labels.dtype}")
    if kind == "f":
        # NaN is unequal to its floor, and infinity is not an integer
        whole = (labels == xp.floor(labels)) & xp.isfinite(labels)
        known = at_hand(xp.all(whole), unknown=None)
        if known is None:  # a label that no class has
            labels = xp.where(whole, labels, -xp.ones_like(labels))
        elif not known:
            first = labels[~whole][0]
            raise ValueError(
                "class_labels: the labels of classes must be whole numbers (0, 1, ...), got "
                f"{float(first):.6g}"
            )
    return labels if kind in "iu" else cast_to(xp, labels, "int64")


op(
    "class_labels",
    class_labels_kernel,
    gradients={"labels": NONDIFF},
    infer=lambda labels: (
        labels.shape,
        labels.dtype if labels.dtype.kind in "iu" else np.dtype("int64"),
    ),
    batch="elementwise",
    doc="Return class labels as integers; raise if one is not a whole number.",
)

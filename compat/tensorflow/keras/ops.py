"""``tf.keras.ops``: gradtape's ops under Keras' names, which are mostly NumPy's."""

from __future__ import annotations

from typing import Any

import numpy as np

import gradtape

from ..dtypes import cast
from ..math import divide_no_nan, in_top_k, rsqrt, top_k
from ..names import adapts, lookup
from ..nn import moments
from ..tensors import convert_to_tensor, is_tensor
from ..toplevel.arrays import slice
from ..toplevel.functions import vectorized_map

__all__ = [
    "cast",
    "convert_to_numpy",
    "convert_to_tensor",
    "divide_no_nan",
    "in_top_k",
    "is_tensor",
    "moments",
    "one_hot",
    "rsqrt",
    "slice",
    "top_k",
    "vectorized_map",
]


@adapts("asarray")
def convert_to_numpy(x: Any) -> Any:
    """Return an array of NumPy."""
    return np.array(gradtape.as_tensor(x).numpy())


@adapts("one_hot")
def one_hot(
    x: Any, num_classes: int, axis: int = -1, dtype: Any = None, sparse: bool = False
) -> Any:
    """Return vectors with a one each, along ``axis``; ``sparse`` is ignored."""
    found = gradtape.moveaxis(gradtape.one_hot(x, num_classes), -1, axis)
    return found if dtype is None else cast(found, dtype)


__getattr__ = lookup(__name__)

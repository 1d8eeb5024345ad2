"""``flatten``: all tensors of a nested container as one vector, and the inverse."""

from __future__ import annotations

from collections.abc import Callable
from itertools import accumulate
from math import prod
from typing import Any

import numpy as np

from ..base.spec import TensorSpec
from ..base.table import ops
from ..base.tree import flatten as leaves_of
from ..base.tree import pack_like
from ..errors import TraceError
from ..tensors.convert import as_tensor
from ..tensors.tensor import Tensor


def flatten(tree: Any) -> tuple[Tensor, Callable[[Any], Any]]:
    """Return all tensors of a nested container as one vector, and the inverse function.

    This is for optimizers that work on a single vector, such as SciPy's.

    Parameters
    ----------
    tree
        Tensors, variables, arrays or numbers, in any nested containers.

    Returns
    -------
    vector : Tensor
        All elements in order, in the promoted dtype of the leaves.
    unflatten : callable
        A function that splits such a vector (or anything that converts to one) into tensors of the
        leaves' shapes and dtypes, in the structure of ``tree``. Gradients pass through both.

    Raises
    ------
    ValueError
        From ``unflatten``, if the vector has another number of elements.
    TraceError
        If a rank is unknown in a trace.

    Examples
    --------
    >>> vector, unflatten = gt.flatten({"a": gt.ones((2, 2)), "b": gt.zeros(3)})
    >>> vector.shape
    (7,)
    >>> unflatten(vector * 2.0)["a"].tolist()
    [[2.0, 2.0], [2.0, 2.0]]
    """
    leaves = [as_tensor(leaf) for leaf in leaves_of(tree)]
    shapes = [leaf.shape for leaf in leaves]
    if None in shapes:
        raise TraceError("flatten: the rank of a tensor is unknown in this trace")
    dtypes = [leaf.dtype for leaf in leaves]
    ends = list(accumulate(prod(shape) for shape in shapes))
    total = ends[-1] if ends else 0
    if leaves:
        flat = [ops["reshape"](leaf, shape=(-1,)) for leaf in leaves]
        vector = flat[0] if len(flat) == 1 else ops["concatenate"](*flat, axis=0)
    else:
        vector = as_tensor(np.zeros(0, np.float32))

    def unflatten(values: Any) -> Any:
        values = as_tensor(values)
        if not TensorSpec((total,), values.dtype).admits(values.shape):
            raise ValueError(
                f"unflatten: the vector must have shape ({total},), got shape {values.shape}"
            )
        parts = ops["split"](values, sections=tuple(ends[:-1]), axis=0) if leaves else []
        found = []
        for part, shape, dtype in zip(parts, shapes, dtypes, strict=True):
            part = ops["reshape"](part, shape=shape)
            found.append(part if part.dtype == dtype else part.astype(dtype))
        return pack_like(tree, found)

    return vector, unflatten

"""Values of a program that are the same in every run."""

from __future__ import annotations

from collections.abc import Mapping
from math import prod
from typing import Any

import numpy as np

from ..base.sizes import unsure
from ..ops.backend import Backend
from ..tensors.op import Op
from .nodes import Node, Symbol

# larger values are computed when needed: a program should not hold more memory than a run
_LARGEST_FOLDED = 2**16


def folded(node: Node, known: Mapping[Symbol, Any], owner: Backend) -> Any:
    """Return a node's value if it is the same in every run, and cheap to keep; or None.

    Parameters
    ----------
    node
        A step of a program.
    known
        The values known so far: constants and values that were folded before.
    owner
        The backend that the program runs on.
    """
    op = node.op
    if not isinstance(op, Op) or op.effect or node.graphs or len(node.outputs) != 1:
        return None
    if node.several or node.witnesses:
        return None
    (symbol,) = node.outputs
    if unsure(symbol.shape) or prod(symbol.shape) > _LARGEST_FOLDED:  # type: ignore[arg-type]
        return None
    given = []
    for x in node.inputs:
        if type(x) is not Symbol:
            given.append(x)
        elif x in known:
            given.append(known[x])
        elif op.reads == "shapes" and not unsure(x.shape):
            given.append(owner.shape_witness(owner.asarray(np.zeros(x.shape, x.dtype))))
        else:
            return None
    if not node.inputs or all(type(x) is not Symbol for x in node.inputs):
        return None
    try:
        with np.errstate(all="raise"):
            return op.kernel_for(owner)(*given, **node.params)
    except Exception:  # runs that reach this node raise it, or warn
        return None

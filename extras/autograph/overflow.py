"""Python integers that a traced loop carries: in a run they have 64 bits, and must not wrap."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from ..core.extend import SCALARS, Tensor, active_graph, ops
from ..plugins.ops.control.effects import check
from .values import is_weak, short_line

#: What ops compute with integers of which sums and products of Python integers consist.
_EXACT = (operator.add, operator.sub, operator.mul, operator.neg)
#: Results below this in ``float64`` fit into ``int64``.
_LIMIT = float(2**63 - 2**10)


def is_exact(op: Any) -> bool:
    """Return whether an op computes as Python's integers do, as long as nothing overflows."""
    return getattr(op, "batch", None) == "elementwise" and op.integers in _EXACT


def check_integers(carried: Sequence[Tensor], name: str) -> None:
    """Check in each run that the Python integers of a step stay exact.

    Only ops on two values that change from step to step are checked: with a constant, a counter
    would need longer than any run to leave the range.

    Parameters
    ----------
    carried
        The tensors at the start of the step.
    name
        The statement, for the message.
    """
    graph: Any = active_graph.get()
    weak = {id(x.array): x for x in carried if is_weak(x) and x.dtype == np.int64}
    if not weak:
        return
    for node in list(graph.nodes):
        inputs = node.inputs
        plain = [type(x) in SCALARS or id(x) in weak for x in inputs]
        if not is_exact(node.op) or not all(plain):
            continue
        result = node.outputs[0]
        if result.dtype != np.int64:
            continue
        weak[id(result)] = Tensor(result)
        if len(inputs) == 2 and not any(type(x) in SCALARS for x in inputs):
            a, b = (ops["cast"](weak[id(x)], dtype="float64") for x in inputs)
            holds = ops["less"](ops["abs"](node.op(a, b)), _LIMIT)
            message = (
                f"{short_line()}: an integer that {name} carries leaves the range of int64, in "
                "which a trace computes with Python's integers; use floating numbers"
            )
            check(holds, [], [message], error="OverflowError")

"""The rule of ``solve_triangular``: systems with one matrix share the inverses of its blocks.

A log marginal likelihood solves with a Cholesky factor, and its gradient with that factor
transposed, several times.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from ....core.extend import Node, Symbol
from ...numpy.linalg import blocks_with_inverses, in_blocks, substituted
from ..steps import PlanStep, StepKind, shape_of, symbol_like

if TYPE_CHECKING:
    from ..lowering import Lowering


def solve_triangular(lowering: Lowering, node: Node) -> bool:
    """Add a step for the inverses of blocks, unless there is one, and one for the rest.

    Parameters
    ----------
    lowering
        The lowering to which the steps are added.
    node
        A node of ``solve_triangular``.
    """
    (a, b), (out,) = node.inputs, node.outputs
    lower, unit = bool(node.params.get("lower")), bool(node.params.get("unit_diagonal"))
    if not lowering.on_host or not {a.dtype.char, b.dtype.char, out.dtype.char} <= {*"fd"}:
        return False
    if len(shape_of(a)) != 2 or a.dtype != b.dtype or not in_blocks(shape_of(a), out.dtype):
        return False
    below = a if lower else _transposed(lowering, a)
    key = "blocks and inverses", below, unit
    inverses = lowering.shared.get(key)
    if inverses is None:
        model = blocks_with_inverses(np.eye(shape_of(a)[-1], dtype=a.dtype))
        inverses = lowering.shared[key] = symbol_like(a, model.shape)
        run: Any = partial(blocks_with_inverses, unit_diagonal=unit)
        lowering.steps.append(
            PlanStep(StepKind.CALL, "blocks_with_inverses", run, (below,), (inverses,), view=False)
        )
    run = partial(_solved, lower=lower)
    lowering.steps.append(
        PlanStep(StepKind.CALL, "solve_triangular", run, (a, b, inverses), (out,), view=False)
    )
    return True


def _solved(a: Any, b: Any, inverses: Any, lower: bool) -> Any:
    return substituted(a, b, inverses, lower)


def _transposed(lowering: Lowering, a: Symbol) -> Symbol:
    """Return the value that a matrix is a transposed view of; a new view if there is none."""
    view = lowering.made.get(a)
    if view is not None and view.kind is StepKind.VIEW and len(view.symbols) == 1:
        (source,) = view.symbols
        rows, columns = shape_of(a)
        if shape_of(source) == (columns, rows):
            # a model tells: its elements are all different
            model = np.arange(rows * columns).reshape(columns, rows)
            if np.array_equal(view.run(model), model.T):
                return source
    out = symbol_like(a, shape_of(a)[::-1])
    return lowering.add(StepKind.VIEW, "transpose", np.transpose, (a,), out)

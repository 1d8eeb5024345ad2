"""Rules of ``einsum`` and its adjoints: products of matrices, as their kernel computes them."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from ....core.extend import Node, Symbol
from ...ops.linalg.contractions import labelled
from ...ops.linalg.matrix_forms import matrix_form
from ..lowering import reshaped
from ..steps import StepKind, shape_of, symbol_like

if TYPE_CHECKING:
    from ..lowering import Lowering


def einsum(lowering: Lowering, node: Node) -> bool:
    """Add a product of matrices, or a stack of them, between reshapes."""
    operands = node.inputs
    terms, output = labelled(node.params["subscripts"], tuple(len(shape_of(x)) for x in operands))
    return _product(lowering, terms, output, operands, node.outputs[0])


def einsum_adjoint(lowering: Lowering, node: Node) -> bool:
    """Add the adjoint if it is an einsum of the gradient and the other operand."""
    g, *operands = node.inputs
    if len(operands) != 2:
        return False
    position = node.params["position"]
    terms, output = labelled(node.params["subscripts"], tuple(len(shape_of(x)) for x in operands))
    term, other = terms[position], terms[1 - position]
    if not set(term) <= {*output, *other}:
        return False
    return _product(lowering, [output, other], term, [g, operands[1 - position]], node.outputs[0])


def _product(
    lowering: Lowering,
    terms: Sequence[str],
    output: str,
    operands: Sequence[Symbol],
    out: Symbol,
) -> bool:
    form = matrix_form(terms, output, operands)
    if form is None or out.dtype.char not in lowering.products or not lowering.on_host:
        return False
    if form.shape != shape_of(out):
        return False
    factors, turned = [], {}
    for x, shape, turn, side in zip(
        operands[:: -1 if form.swapped else 1],
        form.shapes,
        form.turned,
        ("left", "right"),
        strict=True,
    ):
        matrix = reshaped(lowering, x, shape)
        if turn and len(shape) > 2:
            matrix = transposed(lowering, matrix)
        elif turn:
            turned[side] = True
        factors.append(matrix)
    left, right = map(shape_of, factors)
    rows = left[-1] if turned.get("left") else left[-2]
    columns = right[-2] if turned.get("right") else right[-1]
    product = symbol_like(out, (*left[:-2], rows, columns))
    same = shape_of(product) == shape_of(out)
    target = out if same else product
    target = lowering.add(StepKind.PRODUCT, "matmul", np.matmul, factors, target, **turned)
    if not same:
        reshaped(lowering, target, shape_of(out), out)
    return True


def transposed(lowering: Lowering, x: Symbol) -> Symbol:
    """Add a view of a stack of matrices, each transposed.

    Parameters
    ----------
    lowering
        The lowering to which the step is added.
    x
        The stack.
    """
    *outer, rows, columns = shape_of(x)
    out = symbol_like(x, (*outer, columns, rows))
    run: Any = partial(np.swapaxes, axis1=-1, axis2=-2)
    return lowering.add(StepKind.VIEW, "swapaxes", run, (x,), out)

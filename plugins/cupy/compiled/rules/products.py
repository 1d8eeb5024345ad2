"""Rules of products of stacks of matrices, and of vectors, in both directions."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from .....core.extend import Node, Symbol, broadcast_shapes
from ....ops.linalg.contractions import labelled
from ....planned import RULES as PLANNED
from ....planned import Rule, Shape, StepKind, reshaped, shape_of, symbol_like
from .arrangements import broadcasted, merged, transposed

if TYPE_CHECKING:
    from ..lowering import DeviceLowering


def _turned(lowering: DeviceLowering, x: Symbol) -> Symbol:
    """Add a view of matrices, each transposed."""
    *outer, rows, columns = range(len(shape_of(x)))
    return transposed(lowering, x, (*outer, columns, rows))


def _multiplied(lowering: DeviceLowering, x: Symbol, y: Symbol) -> Symbol:
    """Add a product of two stacks of matrices that broadcast."""
    outer: Any = broadcast_shapes(shape_of(x)[:-2], shape_of(y)[:-2], op="matmul")
    factors = [_stack(lowering, part, outer) for part in (x, y)]
    many = any(len(shape_of(part)) == 3 for part in factors)
    rows, columns = shape_of(x)[-2], shape_of(y)[-1]
    out = symbol_like(x, (*[prod(outer)] * many, rows, columns))
    out = lowering.add(StepKind.PRODUCT, "matmul", np.matmul, factors, out)
    return reshaped(lowering, out, (*outer, rows, columns))


def _stack(lowering: DeviceLowering, x: Symbol, outer: Shape) -> Symbol:
    """Return matrices as one stack; a single one is that of all products."""
    shape = shape_of(x)
    if prod(shape[:-2]) == 1:
        return reshaped(lowering, x, shape[-2:])
    x = broadcasted(lowering, x, (*outer, *shape[-2:]))
    return merged(lowering, x, (prod(outer), *shape[-2:]))


def _matrices(lowering: DeviceLowering, x: Symbol, y: Symbol) -> tuple[Symbol, Symbol]:
    """Return operands of a product with the axes that vectors lack."""
    left, right = shape_of(x), shape_of(y)
    x = reshaped(lowering, x, (1, *left)) if len(left) == 1 else x
    y = reshaped(lowering, y, (*right, 1)) if len(right) == 1 else y
    return x, y


def _with_axes(lowering: DeviceLowering, g: Symbol, x: Symbol, y: Symbol) -> Symbol:
    """Return the gradient of a product with the axes that it lacks if an operand is a vector."""
    shape = shape_of(g)
    shape = (*shape, 1) if len(shape_of(y)) == 1 else shape
    shape = (*shape[:-1], 1, shape[-1]) if len(shape_of(x)) == 1 else shape
    return reshaped(lowering, g, shape)


def _can_multiply(lowering: DeviceLowering, node: Node) -> bool:
    (out,) = node.outputs
    alike = all(x.dtype == out.dtype for x in node.inputs)
    return alike and out.dtype.char in lowering.products


def _matmul(lowering: DeviceLowering, node: Node) -> bool:
    (x, y), (out,) = node.inputs, node.outputs
    if len(shape_of(y)) == 2 <= len(shape_of(x)):
        return PLANNED["matmul"](lowering, node)
    if not _can_multiply(lowering, node):
        return False
    x, y = _matrices(lowering, x, y)
    reshaped(lowering, _multiplied(lowering, x, y), shape_of(out), out)
    return True


def _adjoint_x(lowering: DeviceLowering, node: Node) -> bool:
    (g, y, like), (out,) = node.inputs, node.outputs
    if len(shape_of(y)) == 2 <= len(shape_of(like)) == len(shape_of(g)):
        return PLANNED["matmul_adjoint_x"](lowering, node)
    if not _can_multiply(lowering, node):
        return False
    g = _with_axes(lowering, g, like, y)
    x, y = _matrices(lowering, like, y)
    return _summed(lowering, _multiplied(lowering, g, _turned(lowering, y)), shape_of(x), out)


def _adjoint_y(lowering: DeviceLowering, node: Node) -> bool:
    (g, x, like), (out,) = node.inputs, node.outputs
    if len(shape_of(like)) == 2 <= len(shape_of(x)):
        return PLANNED["matmul_adjoint_y"](lowering, node)
    if not _can_multiply(lowering, node):
        return False
    g = _with_axes(lowering, g, x, like)
    x, y = _matrices(lowering, x, like)
    return _summed(lowering, _multiplied(lowering, _turned(lowering, x), g), shape_of(y), out)


def _summed(lowering: DeviceLowering, x: Symbol, shape: Shape, out: Symbol) -> bool:
    """Add the sum over the axes along which an operand of a product was repeated."""
    mine = shape_of(x)
    extra = len(mine) - len(shape)
    axes = tuple(a for a, n in enumerate(mine) if a < extra or (n != 1 and shape[a - extra] == 1))
    if axes:
        if x.dtype == np.float16:
            return False
        total = symbol_like(x, tuple(n for a, n in enumerate(mine) if a not in axes))
        params = {"axis": axes, "keepdims": False}
        x = lowering.add(StepKind.REDUCTION, "add", np.add.reduce, (x,), total, **params)
    reshaped(lowering, x, shape_of(out), out)
    return True


# -- sums of products ------------------------------------------------------------------------------


def _einsum(lowering: DeviceLowering, node: Node) -> bool:
    ranks = tuple(len(shape_of(x)) for x in node.inputs)
    terms, output = labelled(node.params["subscripts"], ranks)
    return _can_multiply(lowering, node) and _contracted(
        lowering, terms, output, node.inputs, node.outputs[0]
    )


def _einsum_adjoint(lowering: DeviceLowering, node: Node) -> bool:
    """Add the sum of products of the gradient and the other operand."""
    g, *operands = node.inputs
    ranks = tuple(len(shape_of(x)) for x in operands)
    terms, output = labelled(node.params["subscripts"], ranks)
    place = node.params["position"]
    if len(operands) != 2 or not _can_multiply(lowering, node):
        return False
    given = [output, terms[1 - place]]
    return _contracted(lowering, given, terms[place], [g, operands[1 - place]], node.outputs[0])


def _contracted(
    lowering: DeviceLowering,
    terms: Sequence[str],
    output: str,
    operands: Sequence[Symbol],
    out: Symbol,
) -> bool:
    """Add a product of two stacks of matrices, between changes of the order of axes."""
    if len(terms) != 2 or any(len(set(term)) < len(term) for term in (*terms, output)):
        return False  # a label twice in a term is a diagonal
    left, right = terms
    sizes: dict[str, int] = {}
    for term, x in zip(terms, operands, strict=True):
        for label, n in zip(term, shape_of(x), strict=True):
            if sizes.setdefault(label, n) != n:
                return False
    alone = {label for label in {*left} ^ {*right} if label not in output}
    if alone or not {*output} <= {*left, *right}:
        return False
    shared = [label for label in output if label in left and label in right]
    rows = [label for label in output if label not in right]
    columns = [label for label in output if label not in left]
    summed = [label for label in left if label not in output]
    x = transposed(lowering, operands[0], [left.index(a) for a in (*shared, *rows, *summed)])
    y = transposed(lowering, operands[1], [right.index(a) for a in (*shared, *summed, *columns)])
    count, m, k, n = (prod(sizes[a] for a in part) for part in (shared, rows, summed, columns))
    x, y = merged(lowering, x, (count, m, k)), merged(lowering, y, (count, k, n))
    product = _multiplied(lowering, x, y)
    found = [*shared, *rows, *columns]
    product = reshaped(lowering, product, tuple(sizes[a] for a in found))
    product = transposed(lowering, product, [found.index(a) for a in output])
    reshaped(lowering, product, shape_of(out), out)
    return True


RULES: dict[str, Rule] = {
    "matmul": _matmul,
    "matmul_adjoint_x": _adjoint_x,
    "matmul_adjoint_y": _adjoint_y,
    "einsum": _einsum,
    "einsum_adjoint": _einsum_adjoint,
}

"""Softmax and the cross-entropy of labels in steps, so that the two share what they compute.

The steps are those of NumPy's kernels (``plugins.numpy.network``), and give the same numbers.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ...core.extend import Node, Symbol
from .steps import Kind, Step, shape_of

if TYPE_CHECKING:
    from .lowering import Lowering

__all__ = ["are_rows", "cross_entropy", "exponentials_of", "less_labels", "softmax"]


def softmax(lowering: Lowering, node: Node) -> bool:
    """Add the steps of a softmax along one axis."""
    (x,), (out,) = node.inputs, node.outputs
    axis = node.params["axis"]
    if type(axis) is not int or x.dtype.char not in "fd":
        return False
    exponentials, total = exponentials_of(lowering, x, axis % len(shape_of(x)))[1:]
    lowering.add(Kind.ELEMENTWISE, "divide", np.divide, (exponentials, total), out)
    return True


def cross_entropy(lowering: Lowering, node: Node) -> bool:
    """Add the steps of the cross-entropies of labels under rows of logits."""
    if not are_rows(node):
        return False
    (x, labels), (out,) = node.inputs, node.outputs
    count = shape_of(x)[0]
    _check(lowering, node)
    shifted, _, total = exponentials_of(lowering, x, 1)
    logs = lowering.add(Kind.ELEMENTWISE, "log", np.log, (total,), _like(total))
    flat = Symbol(x.graph, (count,), x.dtype)
    flat = lowering.add(Kind.VIEW, "reshape", lambda x: x.reshape(count), (logs,), flat)
    rows, picked = np.arange(count), _like(flat)
    lowering.steps.append(
        Step(Kind.CALL, "pick", lambda x, at: x[rows, at], (shifted, labels), (picked,))
    )
    lowering.add(Kind.ELEMENTWISE, "subtract", np.subtract, (flat, picked), out)
    return True


def less_labels(lowering: Lowering, node: Node) -> bool:
    """Add the steps of the softmax of rows of logits less 1 at the labels."""
    if not are_rows(node):
        return False
    (x, labels), (out,) = node.inputs, node.outputs
    exponentials, total = exponentials_of(lowering, x, 1)[1:]
    shares, rows = _like(x), np.arange(shape_of(x)[0])

    def less_one(p: Any, labels: Any) -> Any:
        p[rows, labels] -= 1
        return p

    # an array of its own, in which 1 is subtracted: no other step may share it
    divided = Step(Kind.ELEMENTWISE, "divide", np.divide, (exponentials, total), (shares,))
    lowering.steps += [divided, Step(Kind.CALL, "less_one", less_one, (shares, labels), (out,))]
    return True


def are_rows(node: Node) -> bool:
    """Return whether a node has rows of logits, and one label for each."""
    x, labels = node.inputs
    if len(shape_of(x)) != 2 or x.dtype.char not in "fd":
        return False
    return shape_of(labels) == shape_of(x)[:1] and labels.dtype.kind in "iu"


def exponentials_of(lowering: Lowering, x: Symbol, axis: int) -> tuple[Symbol, Symbol, Symbol]:
    """Return a row less its maximum, the exponentials of that, and their sum."""
    shape = shape_of(x)
    column = (*shape[:axis], 1, *shape[axis + 1 :])
    params = {"axis": axis, "keepdims": True}
    reduced = Symbol(x.graph, column, x.dtype)
    top = lowering.add(Kind.REDUCTION, "maximum", np.maximum.reduce, (x,), reduced, **params)
    shifted = lowering.add(Kind.ELEMENTWISE, "subtract", np.subtract, (x, top), _like(x))
    exponentials = lowering.add(Kind.ELEMENTWISE, "exp", np.exp, (shifted,), _like(x))
    total = Symbol(x.graph, column, x.dtype)
    total = lowering.add(Kind.REDUCTION, "add", np.add.reduce, (exponentials,), total, **params)
    return shifted, exponentials, total


def _check(lowering: Lowering, node: Node) -> None:
    """Add a step that raises what the kernel raises if labels are out of bounds."""
    (x, labels), (out,) = node.inputs, node.outputs
    kernel = lowering.kernel(node)
    logits = np.broadcast_to(np.zeros((), x.dtype), shape_of(x))
    classes, unsigned = shape_of(x)[1], np.dtype(f"u{labels.dtype.itemsize}")
    largest: Any = np.maximum.reduce

    def check(labels: Any) -> None:
        # one test for both bounds: seen as unsigned, a negative label is a very large one
        if not largest(labels.view(unsigned)) < classes:
            kernel(logits, labels)

    nothing = Symbol(out.graph, (), out.dtype)
    lowering.steps.append(Step(Kind.CALL, "check_labels", check, (labels,), (nothing,)))


def _like(x: Symbol) -> Symbol:
    return Symbol(x.graph, x.shape, x.dtype)

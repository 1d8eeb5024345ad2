"""Rules of ops: each adds the steps of a node, or returns False.

The steps compute in the same order as the kernel of the ufunc or of ``plugins.numpy``, so that the
numbers are the same.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from math import prod
from operator import itemgetter, methodcaller
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from ....core.extend import SCALARS, Node, Symbol, kernel_of
from ..hoisting import Hoisting
from ..lowering import reshaped
from ..steps import PlanStep, StepKind, shape_of, size_of, symbol_like
from ..tracing import scan_body
from .choices import choice
from .einsum import einsum, einsum_adjoint, transposed
from .indexing import place, place_all, read
from .one_hot import one_hot_product
from .triangular import solve_triangular

if TYPE_CHECKING:
    from ..lowering import Lowering

# -- rules -----------------------------------------------------------------------------------------


#: Adds the steps of a node, or returns False.
Rule: TypeAlias = "Callable[[Any, Node], bool]"
#: Up to this number of classes, labels are faster as rows of an identity matrix.
_FEW = 32


def _reduced(lowering: Lowering, node: Node, ufunc: np.ufunc, out: Symbol) -> bool:
    (x,) = node.inputs
    if x.dtype.char not in "fd" or out.dtype != x.dtype:
        return False
    params = {"axis": None, "keepdims": False, **node.params}
    lowering.add(StepKind.REDUCTION, ufunc.__name__, ufunc.reduce, (x,), out, **params)
    return True


def _reduction(ufunc: np.ufunc) -> Callable[[Lowering, Node], bool]:
    return lambda lowering, node: _reduced(lowering, node, ufunc, node.outputs[0])


def _truth(ufunc: np.ufunc) -> Callable[[Lowering, Node], bool]:
    """Return the rule of a reduction to booleans; as a step, it may turn out not to be needed."""

    def rule(lowering: Lowering, node: Node) -> bool:
        (x,), (out,), params = node.inputs, node.outputs, {"axis": None, "keepdims": False}
        if not lowering.on_host or x.dtype.kind not in "biuf" or not shape_of(x):
            return False
        params.update(node.params)
        lowering.add(StepKind.REDUCTION, ufunc.__name__, ufunc.reduce, (x,), out, **params)
        return True

    return rule


def _mean(lowering: Lowering, node: Node) -> bool:
    (x,), (out,) = node.inputs, node.outputs
    total = symbol_like(out)
    if not _reduced(lowering, node, np.add, total):
        return False
    count = float(size_of(x) // size_of(out))
    elementwise(lowering, np.divide, lowering.look(total), count, out=out)
    return True


def _unbroadcast(lowering: Lowering, node: Node) -> bool:
    (x, _), (out,) = node.inputs, node.outputs
    shape, mine = shape_of(out), shape_of(x)
    if x.dtype != out.dtype or x.dtype.char not in "fd":
        return False
    if mine == shape:
        lowering.same(out, x)
        return True
    extra = len(mine) - len(shape)
    axes = [i for i, n in enumerate(mine) if i < extra or (n != 1 and shape[i - extra] == 1)]
    if shape != mine[extra:] and extra:
        return False
    axis = axes[0] if len(axes) == 1 else tuple(axes)
    params = {"axis": axis, "keepdims": not extra}
    lowering.add(StepKind.REDUCTION, "add", np.add.reduce, (x,), out, **params)
    return True


def _product(lowering: Lowering, x: Symbol, y: Symbol, out: Symbol, **turned: bool) -> bool:
    """Add a product of matrices; a stack times one matrix becomes one product of all rows."""
    if {x.dtype, y.dtype} != {out.dtype} or out.dtype.char not in lowering.products:
        return False
    left, right = shape_of(x), shape_of(y)
    if len(left) < 2 or len(right) < 2:
        return False
    plain = lowering.on_host and len(right) == 2 and not turned.get("left")
    if plain and one_hot_product(lowering, x, y, out, turned.get("right", False)):
        return True
    if len(left) > 2 and len(right) == 2:
        if turned.get("left"):
            return False
        x = reshaped(lowering, x, (-1, left[-1]))
        inner = symbol_like(out, (shape_of(x)[0], shape_of(out)[-1]))
        inner = lowering.add(StepKind.PRODUCT, "matmul", np.matmul, (x, y), inner, **turned)
        reshaped(lowering, inner, shape_of(out), out)
        return True
    if turned and (len(left) > 2 or len(right) > 2):
        return False
    lowering.add(StepKind.PRODUCT, "matmul", np.matmul, (x, y), out, **turned)
    return True


def elementwise(
    lowering: Lowering,
    ufunc: np.ufunc,
    *inputs: Any,
    out: Symbol | None = None,
    dtype: Any = None,
) -> Symbol:
    """Add a step that computes a ufunc; return its result.

    Parameters
    ----------
    lowering
        The lowering to which the step is added.
    ufunc
        The ufunc.
    inputs
        Its inputs; numbers get the dtype of the first symbol.
    out
        The result; by default a new symbol, with the shape and dtype of the first symbol.
    dtype
        The dtype of the new symbol.
    """
    like = next(x for x in inputs if type(x) is Symbol)
    scalars = [np.array(x, like.dtype) for x in inputs if type(x) in SCALARS]
    out = symbol_like(like, dtype=dtype) if out is None else out
    step = PlanStep(StepKind.ELEMENTWISE, ufunc.__name__, ufunc, inputs, (out,), scalars=scalars)
    return lowering.append(step)


def _matmul(lowering: Lowering, node: Node) -> bool:
    x, y = node.inputs
    return _product(lowering, x, y, node.outputs[0])


def _stacked_product(lowering: Lowering, x: Symbol, y: Symbol, out: Symbol, turned: int) -> bool:
    """Add a product of two stacks of equal shape, one of them transposed, if nothing is summed."""
    factors = [x, y]
    outer = {shape_of(z)[:-2] for z in (x, y, out)}
    if len(outer) > 1 or outer == {()} or {x.dtype, y.dtype} != {out.dtype}:
        return False
    if not lowering.on_host or out.dtype.char not in lowering.products:
        return False
    factors[turned] = transposed(lowering, factors[turned])
    lowering.add(StepKind.PRODUCT, "matmul", np.matmul, factors, out)
    return True


def _adjoint_x(lowering: Lowering, node: Node) -> bool:
    g, y, like = node.inputs
    if _stacked_product(lowering, g, y, node.outputs[0], turned=1):
        return True
    if len(shape_of(y)) != 2 or len(shape_of(g)) != len(shape_of(like)):
        return False
    return _product(lowering, g, y, node.outputs[0], right=True)


def _adjoint_y(lowering: Lowering, node: Node) -> bool:
    g, x, like = node.inputs
    if _stacked_product(lowering, x, g, node.outputs[0], turned=0):
        return True
    if len(shape_of(x)) < 2 or len(shape_of(like)) != 2:
        return False
    if len(shape_of(x)) > 2:  # a product of all rows
        g, x = (reshaped(lowering, y, (-1, shape_of(y)[-1])) for y in (g, x))
    return _product(lowering, x, g, node.outputs[0], left=True)


def _cast(lowering: Lowering, node: Node) -> bool:
    """Add a cast, or nothing if the dtype stays the same."""
    x, (out,) = node.inputs[0], node.outputs
    if x.dtype == out.dtype:
        lowering.same(out, x)
    elif x.dtype.kind == "c":
        return False
    elif shape_of(out) == () and lowering.on_host:
        kind = np.dtype(out.dtype)
        run = kind.type if kind.kind == "f" else methodcaller("astype", kind)
        lowering.steps.append(PlanStep(StepKind.CALL, node.op.name, run, (x,), (out,)))
    else:
        lowering.add(StepKind.ELEMENTWISE, "cast", cast_into, (x,), out)
    return True


def cast_into(x: Any, out: Any) -> None:
    """Copy an array into another one, converted to its dtype."""
    np.copyto(out, x, casting="unsafe")


def _relu(lowering: Lowering, node: Node) -> bool:
    (x,), (out,) = node.inputs, node.outputs
    if type(x) is not Symbol or x.dtype.kind != "f":
        return False
    elementwise(lowering, np.maximum, x, 0.0, out=out)
    return True


def _power(lowering: Lowering, node: Node) -> bool:
    (x, exponent), (out,) = node.inputs, node.outputs
    if type(x) is not Symbol or x.dtype.kind != "f" or x.dtype != out.dtype:
        return False
    if type(exponent) in (int, float) and exponent == 2:  # as NumPy's operator does
        elementwise(lowering, np.square, x, out=out)
        return True
    if _is_plain_power(x, exponent):
        elementwise(lowering, np.power, x, exponent, out=out)
        return True
    scalars = lowering.scalars(node, node.inputs)
    run = kernel_of(node, lowering.owner)
    lowering.append(PlanStep(StepKind.FRESH, "power", run, node.inputs, (out,), scalars=scalars))
    return True


def _is_plain_power(x: Symbol, exponent: Any) -> bool:
    """Return whether NumPy's operator calls the ufunc, and no other one."""
    if not shape_of(x):
        return False
    if type(exponent) is Symbol:
        return shape_of(exponent) != () and exponent.dtype == x.dtype
    return (
        type(exponent) in (int, float)
        and exponent not in (-1, 0, 0.5, 1, 2)
        and -99 < exponent < 99
    )


def _gelu(lowering: Lowering, node: Node) -> bool:
    """Add the steps of the formula for single precision, which gelu and its slope share."""
    x = node.inputs[0]
    if node.params.get("approximate") or x.dtype.char != "f" or not lowering.on_host:
        return False
    return lowering.expand(node) is None


def _sigmoid(lowering: Lowering, node: Node) -> bool:
    """Add the kernel's steps: ``max(e, x >= 0) / (1 + e)``, where ``e`` is ``exp(-abs(x))``."""
    (x,), (out,) = node.inputs, node.outputs
    if type(x) is not Symbol or x.dtype.char not in "fd" or not shape_of(x):
        return False
    add = partial(elementwise, lowering)
    e = add(np.exp, add(np.negative, add(np.absolute, x)))
    positive = add(np.greater_equal, x, 0.0, dtype=np.dtype(bool))
    add(np.divide, add(np.maximum, e, positive), add(np.add, e, 1.0), out=out)
    return True


def _split(lowering: Lowering, node: Node) -> bool:
    """Add a view for each part."""
    (x,) = node.inputs
    if type(x) is not Symbol or not shape_of(x):
        return False
    before = (slice(None),) * (node.params.get("axis", 0) % len(shape_of(x)))
    start = 0
    for out in node.outputs:
        start, a = start + shape_of(out)[len(before)], start
        index = (*before, slice(a, start))
        lowering.add(StepKind.VIEW, "split", itemgetter(index), (x,), out, index=index)
    return True


def _concatenate(lowering: Lowering, node: Node) -> bool:
    (out,), axis = node.outputs, node.params.get("axis", 0)
    if any(type(x) is not Symbol or x.dtype != out.dtype for x in node.inputs):
        return False
    if type(axis) is not int:
        return False
    axis %= len(shape_of(out))
    lowering.add(StepKind.JOIN, "concatenate", np.concatenate, node.inputs, out, axis=axis)
    return True


def _stack(lowering: Lowering, node: Node) -> bool:
    """Join the parts, each with one more axis."""
    (out,), axis = node.outputs, node.params.get("axis", 0)
    if any(x.dtype != out.dtype for x in node.inputs) or type(axis) is not int:
        return False
    axis %= len(shape_of(out))
    shape = (*shape_of(out)[:axis], 1, *shape_of(out)[axis + 1 :])
    if not lowering.on_host or any(size_of(x) != prod(shape) for x in node.inputs):
        return False
    parts = [reshaped(lowering, x, shape) for x in node.inputs]
    lowering.add(StepKind.JOIN, "concatenate", np.concatenate, parts, out, axis=axis)
    return True


def _repeated(lowering: Lowering, node: Node) -> bool:
    """Note where NumPy would broadcast by itself; the view remains for steps that need it."""
    x, (out,) = node.inputs[0], node.outputs
    if x.dtype == out.dtype:
        lowering.spread(out, x)
    return False  # it still becomes a view


def _unreduced(lowering: Lowering, node: Node) -> bool:
    """Note where NumPy would broadcast a reduction by itself, once its axes are kept."""
    x, (out,) = node.inputs[0], node.outputs
    if shape_of(x) == () or node.params.get("keepdims"):
        return _repeated(lowering, node)
    axis, rank = node.params.get("axis"), len(shape_of(out))
    axes = range(rank) if axis is None else axis if type(axis) is tuple else (axis,)
    gone = {i % rank for i in axes}
    kept = tuple(1 if i in gone else n for i, n in enumerate(shape_of(out)))
    if x.dtype == out.dtype and size_of(x) == prod(kept):
        lowering.spread(out, reshaped(lowering, x, kept))
    return False


def _scan(lowering: Lowering, node: Node) -> bool:
    """Add a scan whose body can be planned: all its shapes are known and constant."""
    if not lowering.on_host or node.params.get("order") or not node.outputs:
        return False
    if any(type(x) is not Symbol for x in node.inputs):
        return False
    body = scan_body(node)
    if body is None:
        return False
    loop = Hoisting(node, body)
    loop.lower(lowering)
    if loop.outputs:
        run = kernel_of(node, lowering.owner)
        step = PlanStep(StepKind.LOOP, "scan", run, loop.inputs, loop.outputs, loop.settings)
        lowering.steps.append(step)
    return True


# -- softmax and cross-entropies of labels, which share intermediate values ------------------------


def _softmax(lowering: Lowering, node: Node) -> bool:
    """Add the steps of a softmax along one axis."""
    (x,), (out,) = node.inputs, node.outputs
    axis = node.params["axis"]
    if type(axis) is not int or x.dtype.char not in "fd":
        return False
    exponentials, total = exponentials_of(lowering, x, axis % len(shape_of(x)))[1:]
    elementwise(lowering, np.divide, exponentials, total, out=out)
    return True


def _cross_entropy(lowering: Lowering, node: Node) -> bool:
    """Add the steps of the cross-entropies of labels under rows of logits."""
    if not has_rows_of_logits(node):
        return False
    (x, labels), (out,) = node.inputs, node.outputs
    count = shape_of(x)[0]
    _check(lowering, node)
    shifted, _, total = exponentials_of(lowering, x, 1)
    flat = reshaped(lowering, elementwise(lowering, np.log, total), (count,))
    rows, picked = np.arange(count), symbol_like(flat)
    lowering.optional.add(picked)
    lowering.steps.append(_call("pick", lambda x, at: x[rows, at], (shifted, labels), picked))
    elementwise(lowering, np.subtract, flat, picked, out=out)
    return True


def _less_labels(lowering: Lowering, node: Node) -> bool:
    """Add the steps of the softmax of rows of logits minus 1 at the labels."""
    if not has_rows_of_logits(node):
        return False
    (x, labels), (out,) = node.inputs, node.outputs
    exponentials, total = exponentials_of(lowering, x, 1)[1:]
    (count, classes), shares = shape_of(x), symbol_like(x)
    rows = np.arange(count)
    # subtracting whole rows, zeros included, takes a single call
    ones = np.eye(classes, dtype=x.dtype) if classes <= _FEW else None

    def less_one(p: Any, labels: Any) -> Any:
        if ones is None:
            p[rows, labels] -= 1
            return p
        return np.subtract(p, ones[labels], p)

    # a new array, from which 1 is subtracted in place: no other step may share it
    divided = PlanStep(StepKind.ELEMENTWISE, "divide", np.divide, (exponentials, total), (shares,))
    lowering.steps += [
        divided,
        PlanStep(StepKind.CALL, "less_one", less_one, (shares, labels), (out,)),
    ]
    return True


def has_rows_of_logits(node: Node) -> bool:
    """Return whether a node has rows of logits, and one label for each."""
    x, labels = node.inputs
    if len(shape_of(x)) != 2 or x.dtype.char not in "fd":
        return False
    return shape_of(labels) == shape_of(x)[:1] and labels.dtype.kind in "iu"


def exponentials_of(lowering: Lowering, x: Symbol, axis: int) -> tuple[Symbol, Symbol, Symbol]:
    """Return a row minus its maximum, the exponentials of that, and their sum."""
    shape = shape_of(x)
    column = (*shape[:axis], 1, *shape[axis + 1 :])
    params = {"axis": axis, "keepdims": True}
    reduced = symbol_like(x, column)
    top = lowering.add(StepKind.REDUCTION, "maximum", np.maximum.reduce, (x,), reduced, **params)
    shifted = elementwise(lowering, np.subtract, x, top)
    exponentials = elementwise(lowering, np.exp, shifted)
    total = symbol_like(x, column)
    total = lowering.add(StepKind.REDUCTION, "add", np.add.reduce, (exponentials,), total, **params)
    return shifted, exponentials, total


def _check(lowering: Lowering, node: Node) -> None:
    """Add a step that raises the kernel's error if labels are out of bounds."""
    (x, labels), (out,) = node.inputs, node.outputs
    kernel = lowering.kernel(node)
    logits = np.broadcast_to(np.zeros((), x.dtype), shape_of(x))
    classes, unsigned = shape_of(x)[1], np.dtype(f"u{labels.dtype.itemsize}")
    largest: Any = np.maximum.reduce

    def check(labels: Any) -> None:
        # one test for both bounds: as an unsigned number, a negative label is a very large one
        if not largest(labels.view(unsigned)) < classes:
            kernel(logits, labels)

    nothing = symbol_like(out, ())
    lowering.steps.append(_call("check_labels", check, (labels,), nothing))


def _call(name: str, run: Callable[..., Any], inputs: tuple[Symbol, ...], out: Symbol) -> PlanStep:
    """Return a step that makes a new array."""
    return PlanStep(StepKind.CALL, name, run, inputs, (out,), view=False)


def for_arrays_only(rule: Rule) -> Rule:
    """Return a rule that leaves nodes with Python numbers among their inputs to kernels."""
    return lambda lowering, node: (
        all(type(x) is Symbol for x in node.inputs) and rule(lowering, node)
    )


#: The rules by op name, which the plugin of this folder provides.
RULES: dict[str, Rule] = {
    "power": _power,
    "where": choice,
    "scan": _scan,
    **{
        name: for_arrays_only(rule)
        for name, rule in {
            "sum": _reduction(np.add),
            "max": _reduction(np.maximum),
            "min": _reduction(np.minimum),
            "any": _truth(np.logical_or),
            "all": _truth(np.logical_and),
            "mean": _mean,
            "unbroadcast_like": _unbroadcast,
            "matmul": _matmul,
            "matmul_adjoint_x": _adjoint_x,
            "matmul_adjoint_y": _adjoint_y,
            "cast": _cast,
            "cast_like": _cast,
            "softmax": _softmax,
            "sparse_softmax_cross_entropy": _cross_entropy,
            "softmax_less_labels": _less_labels,
            "gelu": _gelu,
            "gelu_slope": _gelu,
            "relu": _relu,
            "sigmoid": _sigmoid,
            "solve_triangular": solve_triangular,
            "split": _split,
            "concatenate": _concatenate,
            "stack": _stack,
            "broadcast_like": _repeated,
            "broadcast_to": _repeated,
            "unreduce_like": _unreduced,
            "einsum": einsum,
            "einsum_adjoint": einsum_adjoint,
            "getitem": read,
            "index_add_like": place,
            "index_add_all_like": place_all,
        }.items()
    },
}

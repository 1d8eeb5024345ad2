"""The lowering of a program for CuPy, where it differs from that for NumPy.

Elementwise ops are those that are one ufunc on NumPy and have a formula here; other ops use the
portable kernels, which are traced. Numbers are steps, too: a value that went to the host would make
it wait for the device.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ....core.extend import Backend, Graph, Node, Op, Symbol, kernel_of, registry
from ...planned import RULES as PLANNED
from ...planned import (
    Lowering,
    PlanStep,
    Rule,
    StepKind,
    cast_into,
    elementwise,
    exponentials_of,
    for_arrays_only,
    has_rows_of_logits,
    reshaped,
    shape_of,
    symbol_like,
    view_kernel,
)
from ..writing.formulas import expression
from .rules import RULES as OF_ARRAYS


class DeviceLowering(Lowering):
    """A program in steps, for CuPy.

    Parameters
    ----------
    program
        The graph, as returned by ``forward_only``.
    owner
        The CuPy backend.
    arrays
        The arrays of the first call.

    Attributes
    ----------
    maps
        By view, a function that makes the same view of a NumPy array.
    numbers
        By a number and its dtype, the value that is this number.
    """

    on_host = False
    targets = ("cupy", "planned")
    form = "cuda"
    products = "efd"  # cuBLAS sums those of float16 in float32

    def __init__(self, program: Graph, owner: Backend, arrays: Sequence[Any]) -> None:
        self.maps: dict[Symbol, Callable[[Any], Any]] = {}
        self._counts: dict[int, Symbol] = {}
        self.numbers: dict[tuple[float, Any], Symbol] = {}
        some = [*arrays, *(v.array for v in program.variables)]
        self._device = owner.device(some[0]) if some else None
        super().__init__(program, owner, arrays)

    def ufunc(self, op: Op) -> np.ufunc | None:
        """Return the NumPy ufunc of an op, if no plugin has replaced it on CuPy."""
        if registry().replaced(op.original.name, self.owner.name) is not None:
            return None
        kernel = op.kernel_for(registry().host_backend)
        return kernel if isinstance(kernel, np.ufunc) else None

    def viewing(self, node: Node) -> Callable[..., Any]:
        """Return a function that makes a view of a node's first input; note NumPy's equivalent."""
        # the arrays are of bytes: others would be cast, and their results would not be views
        likes = [symbol_like(x, None, np.dtype(np.int8)) for x in node.inputs[1:]]
        self.maps[node.outputs[0]] = view_kernel(kernel_of(node, registry().host_backend), likes)
        return super().viewing(node)

    def view(self, node: Node) -> bool:
        """Add a step if a node's result is a view of its first input."""
        return self._view(node)

    def append(self, step: PlanStep) -> Symbol:
        """Add a step; raise if it needs a formula and has none."""
        if step.elementwise and expression(step) is None:
            raise NotImplementedError(step.op)
        return super().append(step)

    def count_to(self, count: int, like: Symbol) -> Symbol:
        """Return a value that counts from 0 up to, but not including, ``count``."""
        x = self._counts.setdefault(count, symbol_like(like, (count,), np.dtype(np.int64)))
        if x not in self.known:
            self.known[x] = self.uploaded(np.arange(count))
        return x

    def uploaded(self, host: Any) -> Any:
        """Return an array of the host on the device of the program."""
        return self.owner.asarray(host, device=self._device)

    def number(self, value: float, like: Symbol) -> Symbol:
        """Return a value that is one number, of the dtype of another value."""
        key = value, like.dtype
        x = self.numbers.setdefault(key, symbol_like(like, ()))
        if x not in self.known:
            self.known[x] = self.uploaded(np.array(value, like.dtype))
        return x

    def _in_steps(self, node: Node) -> str | None:
        before = self.mark()
        try:
            return super()._in_steps(node)
        except NotImplementedError:
            self.back(before)
            return "it has no formula in these dtypes"


def _cross_entropy(lowering: DeviceLowering, node: Node) -> bool:
    """Add the steps of the cross-entropies of labels under rows of logits."""
    if not has_rows_of_logits(node):
        return False
    (x, labels), (out,) = node.inputs, node.outputs
    shifted, _, total = exponentials_of(lowering, x, 1)
    logs = elementwise(lowering, np.log, total)
    column, hits = _hits(lowering, x, labels)
    count, classes = shape_of(x)
    kept = lowering.add(
        StepKind.ELEMENTWISE, "where", np.where, (hits, shifted, 0.0), symbol_like(x)
    )
    picked, params = symbol_like(total), {"axis": 1, "keepdims": True}
    picked = lowering.add(StepKind.REDUCTION, "add", np.add.reduce, (kept,), picked, **params)
    losses = elementwise(lowering, np.subtract, logs, picked)
    losses = _or_nan(lowering, losses, column, classes, symbol_like(total))
    reshaped(lowering, losses, (count,), out)
    return True


def _less_labels(lowering: DeviceLowering, node: Node) -> bool:
    """Add the steps of the softmax of rows of logits minus 1 at the labels."""
    if not has_rows_of_logits(node):
        return False
    (x, labels), (out,) = node.inputs, node.outputs
    exponentials, total = exponentials_of(lowering, x, 1)[1:]
    shares = elementwise(lowering, np.divide, exponentials, total)
    column, hits = _hits(lowering, x, labels)
    one = lowering.add(StepKind.ELEMENTWISE, "where", np.where, (hits, 1.0, 0.0), symbol_like(x))
    less = elementwise(lowering, np.subtract, shares, one)
    _or_nan(lowering, less, column, shape_of(x)[1], out)
    return True


def _or_nan(
    lowering: DeviceLowering, x: Symbol, labels: Symbol, classes: int, out: Symbol
) -> Symbol:
    """Add a step that sets the results of labels that are not classes to nan."""
    outside = symbol_like(labels, None, np.dtype(bool))
    outside = lowering.add(StepKind.ELEMENTWISE, "outside", np.equal, (labels, classes), outside)
    return lowering.add(StepKind.ELEMENTWISE, "where", np.where, (outside, float("nan"), x), out)


def _hits(lowering: DeviceLowering, x: Symbol, labels: Symbol) -> tuple[Symbol, Symbol]:
    """Add a step that compares columns with each row's label; return labels as a column, too."""
    count, classes = shape_of(x)
    column = reshaped(lowering, labels, (count, 1))
    hits = symbol_like(x, None, np.dtype(bool))
    places = lowering.count_to(classes, x)
    return column, lowering.add(StepKind.ELEMENTWISE, "hits", np.equal, (column, places), hits)


def _wide(rule: Rule) -> Rule:
    """Return the rule of a reduction that reduces float16 in float32, and rounds once."""

    def wide_rule(lowering: DeviceLowering, node: Node) -> bool:
        x, *likes = node.inputs
        (out,) = node.outputs
        if x.dtype != np.float16 or out.dtype != np.float16:
            return rule(lowering, node)
        single = np.dtype(np.float32)
        wide = lowering.add(
            StepKind.ELEMENTWISE, "cast", cast_into, (x,), symbol_like(x, None, single)
        )
        reduced = symbol_like(out, None, single)
        if not rule(lowering, Node(node.op, (wide, *likes), node.params, (reduced,))):
            return False
        lowering.add(StepKind.ELEMENTWISE, "cast", cast_into, (lowering.look(reduced),), out)
        return True

    return wide_rule


def _unbroadcast(lowering: DeviceLowering, node: Node) -> bool:
    """Add a sum over all axes that were repeated, then a view."""
    (x, _), (out,) = node.inputs, node.outputs
    shape, mine = shape_of(out), shape_of(x)
    extra = len(mine) - len(shape)
    axes = tuple(a for a, n in enumerate(mine) if a < extra or (n != 1 and shape[a - extra] == 1))
    if x.dtype != out.dtype or x.dtype.kind != "f":
        return False
    if not axes:
        reshaped(lowering, x, shape, out)
        return True
    total = symbol_like(out, tuple(n for a, n in enumerate(mine) if a not in axes))
    params = {"axis": axes, "keepdims": False}
    total = lowering.add(StepKind.REDUCTION, "add", np.add.reduce, (x,), total, **params)
    reshaped(lowering, total, shape, out)
    return True


def _broadcast_like(lowering: DeviceLowering, node: Node) -> bool:
    """Add a view that repeats a number, as that of an array."""
    (x, *likes), (out,) = node.inputs, node.outputs
    if type(x) is Symbol:
        return PLANNED["broadcast_like"](lowering, node)
    one = lowering.number(x, out)
    return lowering.view(Node(node.op, (one, *likes), node.params, node.outputs))


def _bfloat16(lowering: DeviceLowering, node: Node) -> bool:
    (x,), (out,) = node.inputs, node.outputs
    if x.dtype != np.float32:
        return False
    lowering.add(StepKind.ELEMENTWISE, "round_to_bfloat16", np.positive, (x,), out)
    return True


def _power(lowering: DeviceLowering, node: Node) -> bool:
    """Add a power, by NumPy's rule or with a number as the base."""
    (x, exponent), (out,) = node.inputs, node.outputs
    if type(x) is Symbol:
        return PLANNED["power"](lowering, node)
    if exponent.dtype != out.dtype:
        return False
    lowering.add(StepKind.ELEMENTWISE, "power", np.power, node.inputs, out)
    return True


def _portable(lowering: DeviceLowering, node: Node) -> bool:
    """Add the steps of the portable kernel, which has a formula: NumPy's rule has its ufuncs."""
    return lowering.expand(node) is None


#: The rules by op name, which the plugin of this folder provides.
RULES: dict[str, Rule] = {
    "power": _power,
    "sigmoid": _portable,
    "broadcast_like": _broadcast_like,
    **{
        name: for_arrays_only(rule)
        for name, rule in {
            **OF_ARRAYS,
            "sparse_softmax_cross_entropy": _cross_entropy,
            "softmax_less_labels": _less_labels,
            **dict.fromkeys(
                ("log_softmax", "softmax_cross_entropy", "softmax_less_shares"), _portable
            ),
            "round_to_bfloat16": _bfloat16,
            "sum": _wide(PLANNED["sum"]),
            "mean": _wide(PLANNED["mean"]),
            "unbroadcast_like": _wide(_unbroadcast),
        }.items()
    },
}

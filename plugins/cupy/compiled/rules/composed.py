"""Rules of ops that other ops compute, as their kernels do on a device that the host waits for."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from .....core.extend import F, Graph, Node, Symbol, TensorSpec, ops, tracing_into
from ....planned import Rule, StepKind, elementwise, shape_of, symbol_like
from ...writing.formulas import kind_of

if TYPE_CHECKING:
    from ..lowering import DeviceLowering


def _in_ops(function: Callable[..., Any], wide: bool = True) -> Rule:
    """Return a rule that adds the steps of a function of ops; ``wide`` if it sums in float32."""

    def rule(lowering: DeviceLowering, node: Node) -> bool:
        (out,) = node.outputs
        if any(kind_of(x.dtype) == "c" for x in node.inputs):
            return False
        graph = Graph(node.op.name)
        given = [graph.input(TensorSpec(x.shape, x.dtype)) for x in node.inputs]
        narrow = wide and given[0].dtype == np.float16
        with tracing_into(graph):
            used = [ops["cast"].raw(x, dtype="float32") for x in given] if narrow else given
            found = function(*used, **node.params)
            found = ops["cast"].raw(found, dtype=out.dtype.name) if narrow else found
        if type(found) is not Symbol or (found.shape, found.dtype) != (out.shape, out.dtype):
            return False
        graph.outputs = [found]
        calls, mark = dict(lowering.calls), lowering.mark()
        (result,) = lowering.inlined(graph, node.inputs)
        if lowering.calls != calls:
            lowering.calls = calls
            lowering.back(mark)
            return False
        lowering.same(out, result)
        return True

    return rule


def _norm(x: Any, axis: Any = None, keepdims: bool = False) -> Any:
    """Return norms of elements scaled to at most 1."""
    sizes = F.abs(x)
    top = F.max(sizes, axis=axis, keepdims=True)
    top = F.where(F.logical_and(F.greater(top, 0), F.isfinite(top)), top, 1.0)
    scaled = sizes / top
    total = F.sum(scaled * scaled, axis=axis, keepdims=True)
    return _kept(top * F.sqrt(total), x, axis, keepdims)


def _kept(found: Any, x: Any, axis: Any, keepdims: bool) -> Any:
    shape = np.sum(np.broadcast_to(np.int8(0), x.shape), axis=axis, keepdims=keepdims).shape
    return found if found.shape == shape else F.reshape(found, shape=shape)


def _var(x: Any, axis: Any = None, ddof: float = 0, keepdims: bool = False) -> Any:
    apart = x - F.mean(x, axis=axis, keepdims=True)
    total = F.sum(apart * apart, axis=axis, keepdims=keepdims)
    count = np.prod(x.shape) / np.prod(total.shape) - ddof
    return total / float(max(count, 0.0))


def _std(x: Any, axis: Any = None, ddof: float = 0, keepdims: bool = False) -> Any:
    """Return the root of the variance of deviations scaled to at most 1."""
    apart = x - F.mean(x, axis=axis, keepdims=True)
    top = F.max(F.abs(apart), axis=axis, keepdims=True)
    top = F.where(F.logical_and(F.greater(top, 0), F.isfinite(top)), top, 1.0)
    result = top * F.sqrt(_var(apart / top, axis, ddof, True))
    return _kept(result, x, axis, keepdims)


def _truth(every: bool) -> Rule:
    """Return the rule of ``all``, or of ``any``: not all elements are false."""

    def rule(lowering: DeviceLowering, node: Node) -> bool:
        (x,), (out,), truth = node.inputs, node.outputs, np.dtype(bool)
        if kind_of(x.dtype) not in "fiub" or not shape_of(x):
            return False
        if every and x.dtype != truth:
            x = elementwise(lowering, np.not_equal, x, 0, dtype=truth)
        elif not every:
            x = elementwise(lowering, np.logical_not, x, dtype=truth)
        params = {"axis": None, "keepdims": False, **node.params}
        least = out if every else symbol_like(out)
        least = lowering.add(
            StepKind.REDUCTION, "minimum", np.minimum.reduce, (x,), least, **params
        )
        if not every:
            elementwise(lowering, np.logical_not, least, out=out)
        return True

    return rule


def _product_of_others(x: Any, axis: Any = None) -> Any:
    before, after = (F.shift(x, axis=axis, fill=1, reverse=reverse) for reverse in (False, True))
    before = F.cumprod(before, axis=axis, reverse=False)
    return before * F.cumprod(after, axis=axis, reverse=True)


def _embedding_rows(ids: Any, count: int) -> Any:
    return F.where(F.less(ids, 0), ids - count, ids)


def _portable(lowering: DeviceLowering, node: Node) -> bool:
    return lowering.expand(node) is None


RULES: dict[str, Rule] = {
    "any": _truth(False),
    "all": _truth(True),
    "embedding_rows": _in_ops(_embedding_rows, wide=False),
    "gelu": _portable,
    "gelu_slope": _portable,
    "norm": _in_ops(_norm),
    "product_of_others": _in_ops(_product_of_others),
    "std": _in_ops(_std),
    "var": _in_ops(_var),
}

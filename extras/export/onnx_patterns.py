"""Groups of ops for which ONNX has one node: a product with a bias, a normalisation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import spox.opset.ai.onnx.v21 as onnx
from onnx import ModelProto, ValueInfoProto, helper
from spox import inline

from ..core.extend import Node, Symbol
from .onnx_arrays import Array
from .onnx_lowerings import channels_last, channels_second


class _Miss(Exception):
    """A node does not match the pattern."""


def as_one_node(node: Node, makers: Mapping[Symbol, Node], values: Mapping[Symbol, Array]) -> Any:
    """Return the result of an addition that ends a pattern, by one ONNX node; otherwise None.

    Parameters
    ----------
    node
        A node of the program. All nodes before it have been run.
    makers
        The node that made each symbol.
    values
        The array of each symbol.
    """
    if node.op.name != "add":
        return None
    for pattern in (_gemm, _batch_normalization):
        try:
            return pattern(node.inputs, _Matched(makers, values))
        except _Miss:
            continue
    return None


class _Matched:
    """Finds the ops that made a value."""

    def __init__(self, makers: Mapping[Symbol, Node], values: Mapping[Symbol, Array]) -> None:
        self._makers, self._values = makers, values

    def inputs(self, x: Any, op: str) -> tuple[Any, ...]:
        """Return the inputs of the op that made ``x``; raise :class:`_Miss` if it is another."""
        maker = self._makers.get(x) if type(x) is Symbol else None
        if maker is None or maker.op.name != op:
            raise _Miss
        return maker.inputs

    def value(self, x: Any, ndim: int | None = None) -> Array:
        """Return the array of a floating symbol with ``ndim`` axes, or with at least one."""
        found = self._values.get(x) if type(x) is Symbol else None
        if found is None or found.dtype.name not in ("float16", "float32"):
            raise _Miss
        if ndim not in (None, found.ndim) or found.ndim < 1:
            raise _Miss
        return found


def _gemm(parts: Any, of: _Matched) -> Array:
    """``x @ kernel + bias``."""
    product, bias = parts
    x, kernel = (of.value(v, 2) for v in of.inputs(product, "matmul"))
    bias = of.value(bias, 1)
    if bias.shape != kernel.shape[1:] or not bias.dtype == x.dtype == kernel.dtype:
        raise _Miss
    return x.xp.of(onnx.gemm(x.var, kernel.var, bias.var))


def _batch_normalization(parts: Any, of: _Matched) -> Array:
    """``x * factor + shift`` with moving statistics and channels in the last axis."""
    scaled, shift = parts
    x, factor = of.inputs(scaled, "multiply")
    root, gamma = of.inputs(factor, "multiply")
    one, deviation = of.inputs(root, "divide")
    variance, epsilon = of.inputs(of.inputs(deviation, "sqrt")[0], "add")
    beta, moved = of.inputs(shift, "subtract")
    mean, again = of.inputs(moved, "multiply")
    if again is not factor or type(one) is Symbol or one != 1 or type(epsilon) is not float:
        raise _Miss
    image = of.value(x)
    channels = [of.value(v, 1) for v in (gamma, beta, mean, variance)]
    if image.ndim < 2 or any(
        v.dtype != image.dtype or v.shape != image.shape[-1:] for v in channels
    ):
        raise _Miss
    given = [channels_second(image.xp, image), *[v.var for v in channels]]
    (found,) = inline(_inference(epsilon, given))(*given).values()
    return channels_last(image.xp, found)


def _inference(epsilon: float, given: Sequence[Any]) -> ModelProto:
    """Return a model of one normalisation; spox's own node would have outputs for training too."""
    names = ["x", "gamma", "beta", "mean", "variance"]
    node = helper.make_node("BatchNormalization", names, ["y"], epsilon=epsilon)
    inputs = [
        ValueInfoProto(name=name, type=var.unwrap_type()._to_onnx())
        for name, var in zip(names, given, strict=True)
    ]
    output = ValueInfoProto(name="y", type=inputs[0].type)
    graph = helper.make_graph([node], "batch_normalization", inputs, [output])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)])

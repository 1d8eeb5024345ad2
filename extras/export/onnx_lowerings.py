"""Lowerings to ONNX's own nodes: of single ops, of control flow, and of groups of ops."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import spox.opset.ai.onnx.v21 as onnx
from onnx import ModelProto, ValueInfoProto, helper
from spox import inline

from ..core.extend import Graph, Node, Symbol, same_shape, same_size
from .onnx_arrays import Array
from .onnx_namespace import Namespace

#: Maps op names to ``lowering(xp, *arrays, **params)``. It returns NotImplemented for dtypes for
#: which runtimes lack the node, so that the op's own kernel runs instead.
LOWERINGS: dict[str, Callable[..., Any]] = {}

# dtypes for which onnxruntime has kernels
_SINGLE = frozenset({"float16", "float32"})
#: ``gelu`` and its slope are those of infinity from here on, and products do not overflow.
_FAR = 30.0


def _lowers(*names: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    def keep(function: Callable[..., Any]) -> Callable[..., Any]:
        LOWERINGS.update(dict.fromkeys(names, function))
        return function

    return keep


def _node(name: str) -> None:
    """Lower an op of one floating array to the ONNX node of the same name."""
    node = getattr(onnx, name)

    @_lowers(name)
    def lowering(xp: Namespace, x: Array, **params: Any) -> Any:
        return xp.of(node(x.var, **params)) if x.dtype.kind == "f" and x.ndim else NotImplemented


for _name in ("softmax", "log_softmax", "sigmoid", "relu"):
    _node(_name)


def _single(x: Array) -> Any:
    """Return the ONNX value of an array; raise if runtimes lack the node for its dtype."""
    if x.dtype.name not in _SINGLE:
        raise TypeError(f"runtimes compute it in float32, but got {x.dtype}; cast it")
    return x.var


@_lowers("digamma", "lgamma", "nextafter", "polygamma", "spacing")
def _no_node(xp: Namespace, *arrays: Array, **params: Any) -> Array:
    raise TypeError("ONNX has no such function")


@_lowers("erf")
def _erf(xp: Namespace, x: Array) -> Array:
    return xp.of(onnx.erf(_single(x)))


@_lowers("erfc")
def _erfc(xp: Namespace, x: Array) -> Array:
    return 1 - _erf(xp, x)


@_lowers("det")
def _det(xp: Namespace, x: Array) -> Array:
    return xp.of(onnx.det(_single(x)))


@_lowers("gelu")
def _gelu(xp: Namespace, x: Array, *, approximate: bool) -> Any:
    if approximate:
        return NotImplemented
    x = xp.where(x < -_FAR, -_FAR, x)
    return 0.5 * x * _erfc(xp, x * -(0.5**0.5))


@_lowers("gelu_slope")
def _gelu_slope(xp: Namespace, x: Array, *, approximate: bool = False) -> Any:
    x = xp.where(x < -_FAR, -_FAR, xp.where(x > _FAR, _FAR, x))
    if not approximate:
        share = 0.5 * _erfc(xp, x * -(0.5**0.5))
        return share + x * xp.exp(x * x * -0.5) * 0.3989422804014327  # 1 / sqrt(2 pi)
    twice = 1.5957691216057308  # 2 sqrt(2 / pi)
    share = 1 / (1 + xp.exp(twice * (x + 0.044715 * (x * x * x)) * -1.0))
    return share * (1 + x * ((1 - share) * (twice * (1 + 0.134145 * (x * x)))))


@_lowers("unbroadcast_like")
def _unbroadcast_like(xp: Namespace, x: Array, like: Array) -> Array:
    extra, narrow = x.ndim - like.ndim, []
    for axis, (n, m) in enumerate(zip(x.shape[extra:], like.shape, strict=True)):
        if same_size(n, m) or (m == 1) is False:
            continue
        if m != 1:
            raise TypeError(
                f"axis {axis} of its input may or may not have size 1; give it a known size"
            )
        narrow.append(extra + axis)
    if narrow:
        x = xp.sum(x, axis=tuple(narrow), keepdims=True, dtype=x.dtype)
    if extra:
        x = xp.sum(x, axis=tuple(range(extra)), dtype=x.dtype)
    return xp.astype(x, like.dtype)


@_lowers("class_labels")
def _class_labels(xp: Namespace, labels: Array) -> Any:
    """Return labels as integers, and -1 for values that are not integers: their loss is NaN."""
    if labels.dtype.kind != "f":
        return NotImplemented
    whole = (labels == xp.floor(labels)) & xp.isfinite(labels)
    return xp.astype(xp.where(whole, labels, -1.0), np.int64)


@_lowers("sparse_softmax_cross_entropy")
def _sparse_softmax_cross_entropy(xp: Namespace, logits: Array, labels: Array) -> Array:
    """Return the op's result, and NaN for an invalid label, because a model cannot raise errors."""
    classes = logits.shape[-1]
    known = (labels >= 0) & (labels < classes)
    places = xp.expand_dims(xp.where(known, labels, xp.zeros_like(labels)), axis=-1)
    picked = xp.take_along_axis(LOWERINGS["log_softmax"](xp, logits), places, axis=-1)[..., 0]
    return xp.where(known, -picked, float("nan"))


# -- images: channels are last here, and second in ONNX --------------------------------------------


def channels_second(xp: Namespace, x: Array) -> Any:
    """Return the ONNX value of images with their channels in the second axis."""
    return xp.permute_dims(x, (0, x.ndim - 1, *range(1, x.ndim - 1))).var


def channels_last(xp: Namespace, var: Any) -> Array:
    """Return images from an ONNX value with channels in the second axis."""
    found = xp.of(var)
    return xp.permute_dims(found, (0, *range(2, found.ndim), 1))


def _pads(x: Array, window: Any, strides: Any, padding: Any, dilations: Any) -> Any:
    """Return ONNX's attributes for padding; as in the op, an odd zero goes to the end.

    It returns NotImplemented for what runtimes refuse or compute differently: a window that the
    image does not hold, and ``auto_pad`` with dilations or with windows smaller than strides.
    """
    sizes, spans = x.shape[1:-1], [(k - 1) * d + 1 for k, d in zip(window, dilations, strict=True)]
    if padding == "same":
        places = list(zip(sizes, spans, strides, strict=True))
        if not all(type(n) is int or 1 in (span, stride) for n, span, stride in places):
            usual = all(k >= stride for k, stride in zip(window, strides, strict=True))
            plain = all(d == 1 for d in dilations)
            return {"auto_pad": "SAME_UPPER"} if usual and plain else NotImplemented
        padding = [_around(*place) for place in places]
    if padding == "valid":
        padding = [(0, 0)] * len(sizes)
    for n, span, around in zip(sizes, spans, padding, strict=True):
        if type(n) is int and n + sum(around) < span:
            return NotImplemented
    before, after = zip(*padding, strict=True)
    return {"pads": (*before, *after)}


def _around(n: Any, span: int, stride: int) -> tuple[int, int]:
    """Return the zeros before and after an axis for ``"same"``."""
    # with one of them 1, the size does not matter
    fixed = 1 in (span, stride)
    total = span - 1 if fixed else max((-(-n // stride) - 1) * stride + span - n, 0)
    return total // 2, total - total // 2


@_lowers("conv")
def _conv(
    xp: Namespace,
    x: Array,
    w: Array,
    *,
    strides: Any,
    padding: Any,
    dilations: Any,
    groups: int = 1,
) -> Any:
    dtype = xp.result_type(x, w)
    if dtype.name not in _SINGLE:
        return NotImplemented
    spatial = w.ndim - 2
    pads = _pads(x, w.shape[:-2], strides, padding, dilations)
    if pads is NotImplemented:
        return pads
    filters = xp.permute_dims(w, (spatial + 1, spatial, *range(spatial)))
    found = onnx.conv(
        channels_second(xp, xp.astype(x, dtype)),
        xp.astype(filters, dtype).var,
        dilations=dilations,
        group=groups,
        kernel_shape=w.shape[:-2],
        strides=strides,
        **pads,
    )
    return channels_last(xp, found)


def _pool(
    xp: Namespace,
    x: Array,
    node: Callable[..., Any],
    window: Any,
    strides: Any,
    padding: Any,
    **settings: Any,
) -> Any:
    if x.dtype.name not in _SINGLE:
        return NotImplemented
    pads = _pads(x, window, strides, padding, [1] * len(window))
    if pads is NotImplemented or any(
        n >= k for n, k in zip(pads.get("pads", ()), (*window, *window), strict=False)
    ):
        return NotImplemented  # runtimes refuse a window that sees no element
    found = node(channels_second(xp, x), kernel_shape=window, strides=strides, **pads, **settings)
    return channels_last(xp, found[0] if isinstance(found, tuple) else found)


@_lowers("max_pool")
def _max_pool(xp: Namespace, x: Array, *, window: Any, strides: Any, padding: Any) -> Any:
    return _pool(xp, x, onnx.max_pool, window, strides, padding)


@_lowers("avg_pool")
def _avg_pool(xp: Namespace, x: Array, *, window: Any, strides: Any, padding: Any) -> Any:
    return _pool(xp, x, onnx.average_pool, window, strides, padding, count_include_pad=0)


# -- control flow: ``If`` and ``Loop`` -------------------------------------------------------------


def _vars(arrays: Sequence[Array]) -> list[Any]:
    return [onnx.identity(x.var) for x in arrays]  # a subgraph's outputs must be made in it


def _check_order(order: int) -> None:
    if order:
        raise TypeError(
            "its gradient cannot be exported to ONNX; use gradtape.where, or unroll the loop"
        )


def _check_shapes(body: Graph, count: int) -> None:
    """Refuse a loop variable whose shape may change: ONNX fixes the shape of its first value."""
    for x, y in zip(body.inputs[:count], body.outputs[:count], strict=True):
        if not same_shape(x.shape, y.shape):
            raise TypeError(f"a step may change a loop variable's shape {x.shape} to {y.shape}")


def _cond(
    xp: Namespace,
    pred: Array,
    *operands: Array,
    true: Graph,
    false: Graph,
    order: int = 0,
) -> list[Array]:
    _check_order(order)
    found = onnx.if_(
        pred.var,
        then_branch=lambda: _vars(xp.outputs(true, operands)),
        else_branch=lambda: _vars(xp.outputs(false, operands)),
    )
    return [xp.of(var) for var in found]


def _while_loop(
    xp: Namespace,
    *arrays: Array,
    cond: Graph,
    body: Graph,
    count: int,
    most: Any,
    order: int = 0,
) -> list[Array]:
    _check_order(order)
    _check_shapes(body, count)
    values, around = arrays[:count], arrays[count:]

    def step(number: Array, after: list[Array]) -> list[Array]:
        after = xp.outputs(body, [*after, *around])
        return [*xp.outputs(cond, [*after, *around]), *after]

    return _loop(xp, most, xp.outputs(cond, arrays)[0], values, step)


def _scan(
    xp: Namespace,
    *arrays: Array,
    body: Graph,
    carried: int,
    scanned: int,
    length: Any = None,
    reverse: bool = False,
    order: int = 0,
) -> list[Array]:
    _check_order(order)
    _check_shapes(body, carried)
    rows, around = arrays[carried : carried + scanned], arrays[carried + scanned :]
    count = rows[0].shape[0] if rows else length
    last = xp.asarray(count, dtype=np.int64) - 1

    def step(number: Array, carry: list[Array]) -> list[Array]:
        place = last - number if reverse else number
        seen = [xp.take(x, place, axis=0) for x in rows]
        return [xp.asarray(True), *xp.outputs(body, [*carry, *seen, *around])]

    found = _loop(xp, count, xp.asarray(True), arrays[:carried], step)
    made = found[carried:]
    return [*found[:carried], *(xp.flip(x, axis=0) if reverse else x for x in made)]


def _loop(
    xp: Namespace,
    most: Any,
    start: Array,
    values: Sequence[Array],
    step: Callable[[Array, list[Array]], list[Array]],
) -> list[Array]:
    """Return the final values of a loop, and the stacked outputs of its steps.

    Conditions and counts have one axis, because spox declares them so.
    """

    def body(number: Any, going: Any, *given: Any) -> list[Any]:
        go_on, *after = step(xp.reshape(xp.of(number), ()), [*map(xp.of, given)])
        return _vars([xp.reshape(go_on, (1,)), *after])

    found = onnx.loop(
        None if most is None else xp.reshape(xp.asarray(most, dtype=np.int64), (1,)).var,
        xp.reshape(start, (1,)).var,
        [x.var for x in values],
        body=body,
    )
    return [xp.of(var) for var in found]


#: The lowerings of ops that run graphs, by name; the namespace runs their graphs.
CONTROL: dict[str, Callable[..., list[Array]]] = {
    "cond": _cond,
    "scan": _scan,
    "while_loop": _while_loop,
}


# -- groups of ops for which ONNX has one node -----------------------------------------------------


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

"""Features in another order there: images that a model flattens, or makes of features.

The last axis of an image is its channels here, and the first one in PyTorch. What flattens it, and
what makes images of features, orders the features accordingly. A trace of the model shows which
axes of variables have such features, in classes of your own too.
"""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import product
from math import prod
from typing import Any

from ..core.extend import (
    Graph,
    Module,
    Stream,
    TensorSpec,
    Variable,
    flatten,
    function,
    has_future_weights,
    init_scope,
    keeping_added,
    known_size,
    same_size,
    sizes_differ,
)
from ..saving.weights.layouts import NO_FEATURES, Features


def in_doubt(names: Sequence[str]) -> str:
    """Return a warning about variables with features in an unknown order, or ""."""
    if not names:
        return ""
    return (
        f"{', '.join(names)}: the inputs look like flattened images, whose features are ordered by "
        "place here, and by channel in PyTorch unless its images have channels last. The order is "
        "not known, so they were not reordered. If the model was never called, call it once first: "
        "then its layers show the order. To reorder the array yourself: "
        "kernel.reshape(channels, -1, outputs).swapaxes(0, 1).reshape(-1, outputs)"
    )


def features_of(model: Module, kernels: Sequence[Variable]) -> Features:
    """Return the features of flattened images among a model's variables.

    Parameters
    ----------
    model
        The model, all of whose variables exist.
    kernels
        The variables whose axes say that their inputs and results are images with channels last.
    """
    matrices = [v for v in model.variables if len(v.shape) == 2]
    least = min((min(v.shape[-2:]) for v in kernels), default=0)
    if not any(max(v.shape) > least for v in matrices):
        return NO_FEATURES
    if not kernels and not any(map(_is_image, flatten(model.call_signatures()[:1]))):
        return NO_FEATURES
    found = [_Flow(graph, kernels).features() for graph in _graphs(model)]
    if not found:
        widths = [v.shape[0] for v in matrices]
        suspected = looks_flattened(widths, kernels, model.variables)
        return Features({}, frozenset(id(v) for v in matrices if v.shape[0] in suspected))
    channels: dict[int, Mapping[int, int]] = {}
    unsure: set[int] = set()
    for each in found:
        for key, axes in each.channels.items():
            if channels.setdefault(key, axes) != axes:
                unsure.add(key)
        unsure |= each.unsure
    return Features(channels, frozenset(unsure))


def looks_flattened(
    widths: Iterable[int], kernels: Iterable[Variable], variables: Iterable[Variable]
) -> set[int]:
    """Return the numbers of inputs that no layer has as outputs, and images of one may have."""
    channels = {n for v in kernels for n in v.shape[-2:]}
    others = {v.shape[-1] for v in variables if v.shape}
    return {n for n in widths if n not in others and any(n > c and n % c == 0 for c in channels)}


def _is_image(spec: Any) -> bool:
    """Return whether inputs must be images with channels last: square ones of several channels."""
    shape = getattr(spec, "shape", None)
    if shape is None or len(shape) != 4 or not all(map(known_size, shape[1:])):
        return False
    return bool(shape[1] == shape[2] != shape[3] > 1)


# -- traces ----------------------------------------------------------------------------------------


def _graphs(model: Module) -> list[Graph]:
    """Return the trace of a model for a past call; without one, for an input of its layers."""
    modules = (model, *model.submodules)
    own: Any = model.functions().get("__call__")
    if own is not None:
        return [trace.graph for trace in getattr(own, "concrete_functions", ())]
    calls = model.call_signatures()[:1]
    if not calls and not any(map(has_future_weights, modules)):
        calls = [((spec,), {}) for spec in dict.fromkeys(_inputs(modules))]
    return next((graph for args, kwargs in calls for graph in _traced(model, args, kwargs)), [])


def _traced(model: Any, args: Any, kwargs: dict[str, Any]) -> Iterator[list[Graph]]:
    """Yield a list of the trace of a call, if it can be traced; the call is then forgotten."""
    modules = (model, *model.submodules)
    before = [(module, _state(module)) for module in modules]
    shared = Stream.shared
    drawn = None if shared is None else shared.array
    kwargs = {**kwargs, **({"training": False} if kwargs.get("training") else {})}
    graph = None
    try:
        # a call may do anything, also warn again of what it has warned of before
        with (
            contextlib.suppress(Exception),
            warnings.catch_warnings(),
            init_scope(),
            keeping_added(modules),
        ):
            warnings.simplefilter("ignore")
            traced = function(lambda *args, **kwargs: model(*args, **kwargs))
            graph = traced.get_concrete_function(*args, **kwargs).graph
    finally:
        for module, state in before:
            vars(module).clear()
            vars(module).update(state)
        if shared is not None:
            shared.set_array(drawn)
    if graph is not None:
        yield [graph]


def _inputs(modules: Iterable[Module]) -> Iterator[TensorSpec]:
    """Yield inputs of layers that know them by their weights: perhaps those of the model too."""
    for module in modules:
        shape_for: Any = getattr(module, "shape_for_weights", None)
        own = {x: v for x, v in module.own_leaves() if isinstance(v, Variable)}
        if shape_for is not None and own:
            shape = shape_for({name: v.shape for name, v in own.items()})
            if shape is not None:
                yield TensorSpec(shape, next(iter(own.values())).dtype)


def _state(module: Module) -> dict[str, Any]:
    return {
        name: dict(value) if name.startswith("_gradtape") and type(value) is dict else value
        for name, value in vars(module).items()
    }


# -- the flow of features --------------------------------------------------------------------------


class _Classes:
    """Classes of equivalent axes of values."""

    def __init__(self) -> None:
        self._above: dict[Any, Any] = {}

    def of(self, axis: Any) -> Any:
        while (above := self._above.get(axis)) is not None:
            self._above[axis] = self._above.get(above, above)  # paths stay short
            axis = above
        return axis

    def join(self, a: Any, b: Any) -> None:
        a, b = self.of(a), self.of(b)
        if a != b:
            self._above[a] = b


def _axis(x: Any, axis: int) -> tuple[int, int]:
    return id(x), axis % len(x.shape)


class _Flow:
    """The axes of a graph's values that are the channels of images, or features made of them."""

    def __init__(self, graph: Graph, kernels: Sequence[Variable]) -> None:
        self._graph = graph
        self._kernels = {id(v) for v in kernels}
        self._features = _Classes()  # of the same elements
        self._roles = _Classes()  # of the same meaning
        self._images: list[Any] = []
        self._ranks = {len(v.shape) for v in kernels}
        self._from: dict[int, set[int]] = {}  # for values made of variables alone: which
        self._reads: list[tuple[Variable, Any]] = []
        self._flattened: list[tuple[Any, Any]] = []  # an image, its features
        self._seen: set[int] = set()  # values made of images without further weights
        self._open: set[int] = set()  # the same, after the images were flattened
        self._dense: list[tuple[Any, Any]] = []  # inputs and matrices
        self._others: list[tuple[Any, Any]] = []  # inputs and weights of ops not followed
        self._streams: set[int] = set()  # states of random numbers, which say nothing of images
        # values computed by steps that are the same with channels first
        self._alike = {id(x) for x in graph.inputs}
        # inputs that look like images need not be any
        self._perhaps = [_axis(x, -1) for x in graph.inputs if _is_image(x)]
        for node in graph.nodes:
            self._follow(node)

    def features(self) -> Features:
        """Return what the trace shows."""
        images = self._channels()
        perhaps = {self._roles.of(axis) for axis in self._perhaps} - images
        found: dict[Any, int] = {}
        settled, unsure = set(), set()
        for image, features in self._flattened:
            rank = len(image.shape)
            axes = [i for i in range(1, rank) if self._roles.of((id(image), i)) in images]
            key = self._features.of(_axis(features, 1))
            settled.add(key)
            if axes == [rank - 1] and rank in self._ranks:
                size = image.shape[-1]
                alike = id(image) in self._alike
                if not alike or not known_size(size) or found.setdefault(key, size) != size:
                    unsure.add(key)
                continue
            long = [n for n in image.shape[1:] if not same_size(n, 1)]
            lost = axes != [1] and id(image) in self._seen
            if len(long) > 1 and (lost or self._roles.of((id(image), rank - 1)) in perhaps):
                unsure.add(key)
        channels: dict[int, dict[int, int]] = {}
        doubtful: set[int] = set()
        for variable, value in self._reads:
            for axis, size in enumerate(variable.shape):
                key = self._features.of((id(value), axis))
                if key in unsure:
                    doubtful.add(id(variable))
                elif key in found and 1 < found[key] < size:
                    channels.setdefault(id(variable), {})[axis] = found[key]
        for x, matrix in self._dense:
            if id(x) in self._open and self._features.of(_axis(x, -1)) not in settled:
                doubtful |= self._from[id(matrix)]
        for x, weight in self._others:
            keys = [self._features.of((id(x), i)) for i in range(len(x.shape))]
            followed = any(key in unsure or found.get(key, 1) > 1 for key in keys)
            if followed or id(x) in self._open or self._splits(x, weight):
                doubtful |= self._from[id(weight)]
        return Features(channels, frozenset(doubtful))

    def _follow(self, node: Any) -> None:
        given = node.inputs[: len(node.inputs) - node.witnesses]
        inputs = [x for x in given if hasattr(x, "graph")]
        outputs = node.outputs
        variable = getattr(node.op, "variable", None)
        if variable is not None and not inputs:
            self._reads.append((variable, outputs[0]))
            if isinstance(variable, Stream):
                self._streams.add(id(variable))
        sources = [self._from[id(x)] for x in inputs if id(x) in self._from]
        if len(sources) == len(inputs) and (inputs or variable is not None):
            own = set().union(*sources) if variable is None else {id(variable)}
            self._from.update((id(x), own) for x in outputs)
        if any(x.shape is None for x in (*inputs, *outputs)) or not outputs:
            return
        y = outputs[0]
        normalizes = len(outputs) > 1 and _by_vectors(inputs, y)  # with a batch's statistics
        if len(outputs) > 1 and not normalizes:
            return
        data = [x for x in inputs if id(x) not in self._from]
        weights = [x for x in inputs if id(x) in self._from and len(x.shape) > 1]
        if normalizes or getattr(node.op, "batch", None) == "elementwise":
            for x in inputs:
                self._align(x, y)
            if any(id(x) in self._alike for x in inputs) and all(
                self._is_alike(x, y) for x in given
            ):
                self._alike.add(id(y))
        elif data and any(self._convolves(x, (*data, y)) for x in weights):
            self._images += [_axis(x, -1) for x in (*data, y)]
            self._seen.add(id(y))
            self._alike.add(id(y))
            return
        elif data and weights:
            if node.op.name == "matmul" and len(weights[0].shape) == 2:
                self._features.join(_axis(data[0], -1), _axis(weights[0], 0))
                self._features.join(_axis(y, -1), _axis(weights[0], 1))
                self._dense.append((data[0], weights[0]))
            else:
                self._others += [(x, w) for x in data for w in weights]
            return
        elif any(map(self._is_noise, inputs)) and all(self._is_alike(x, y) for x in data):
            self._alike.add(id(y))
        elif (
            inputs and all(x.shape == y.shape for x in inputs[1:]) and self._reshapes(inputs[0], y)
        ):
            pass
        elif inputs and all(len(x.shape) == len(y.shape) for x in inputs):
            if node.witnesses:  # a reshaping that makes unknown sizes known
                self._align(inputs[0], y, sizes_differ)
            else:
                self._probe(node, inputs, y)
            if all(id(x) in self._alike for x in inputs) and self._keeps_channels(
                node, inputs[0], y
            ):
                self._alike.add(id(y))
        if data and all(id(x) in self._seen for x in data):
            self._seen.add(id(y))
        if any(id(x) in self._open for x in data):
            self._open.add(id(y))

    def _channels(self) -> set[Any]:
        return {self._roles.of(axis) for axis in self._images}

    def _splits(self, image: Any, weight: Any) -> bool:
        """Return whether weights for each place and channel of an image come from a matrix."""
        sizes = image.shape[1:]
        if len(weight.shape) < 3 or id(image) not in self._seen or not all(map(known_size, sizes)):
            return False
        matrices = [v for v, _ in self._reads if len(v.shape) == 2]
        own = [v for v in matrices if id(v) in self._from[id(weight)]]
        return any(prod(sizes) in v.shape and sizes[-1] < prod(sizes) for v in own)

    def _is_noise(self, x: Any) -> bool:
        return bool(self._streams.intersection(self._from.get(id(x), ())))

    def _is_alike(self, x: Any, y: Any) -> bool:
        """Return whether an operand may be channels first in PyTorch, with the same numbers.

        It may not if it differs from place to place, and is not itself computed from images by such
        steps: a mean over the channels (layer normalization), embedded positions.
        """
        shape = getattr(x, "shape", ())
        if id(x) in self._alike or self._is_noise(x) or not shape:
            return True
        return all(same_size(n, 1) for n in shape[len(shape) == len(y.shape) : -1])

    def _keeps_channels(self, node: Any, x: Any, y: Any) -> bool:
        """Return whether an op leaves the channels of images as they are, or joins some."""
        images, rank = self._channels(), len(y.shape)
        channels = {i for i in range(rank) if self._roles.of((id(y), i)) in images}
        along = node.params.get("axis")
        axes = [i for i in (along if isinstance(along, tuple) else (along,)) if isinstance(i, int)]
        kept = {i % rank for i in axes if same_size(x.shape[i], y.shape[i])}
        return bool(channels) and channels.isdisjoint(kept)

    def _convolves(self, kernel: Any, images: Sequence[Any]) -> bool:
        alike = all(len(x.shape) == len(kernel.shape) for x in images)
        return alike and bool(self._from[id(kernel)] & self._kernels)

    def _align(self, x: Any, y: Any, differ: Any = lambda a, b: not same_size(a, b)) -> None:
        """Join the axes of an elementwise op, except those that it broadcasts."""
        for i in range(1, len(x.shape) + 1):
            if not differ(x.shape[-i], y.shape[-i]):
                self._join((id(x), len(x.shape) - i), (id(y), len(y.shape) - i))

    def _join(self, a: Any, b: Any) -> None:
        self._features.join(a, b)
        self._roles.join(a, b)

    def _reshapes(self, x: Any, y: Any) -> bool:
        """Record what a reshaping does; return whether it is one."""
        a, b = x.shape, y.shape
        long = [[i for i, n in enumerate(c) if not same_size(n, 1)] for c in (a, b)]
        pairs = list(zip(*long))
        alone = len(a) != len(b) and len(pairs) == max(map(len, long))
        if alone and all(same_size(a[i], b[k]) for i, k in pairs):  # axes of size 1 come or go
            groups = [(range(i, i + 1), range(k, k + 1)) for i, k in pairs]
            self._regroup(x, y, groups)
        elif len(a) > 2 and len(b) == 1 and id(x) in self._seen:
            self._open.add(id(y))
        elif len(a) > 2 and len(b) == 2 and _as_one(a, b[1]):
            self._flattened.append((x, y))
            if id(x) in self._seen:
                self._open.add(id(y))
        elif len(b) > 2 and len(a) == 2 and _as_one(b, a[1]):
            self._flattened.append((y, x))
            self._alike.add(id(y))
        elif len(a) == len(b):
            return False
        else:
            self._regroup(x, y, _groups(a, b))
        return True

    def _regroup(self, x: Any, y: Any, groups: Iterable[tuple[range, range]]) -> None:
        """Join axes of a reshaping with those that they become."""
        images = self._channels()
        for left, right in groups:
            mixed = {self._roles.of((id(x), i)) in images for i in left}
            if len(mixed) == 2 and id(x) in self._seen:  # channels and places
                self._open.add(id(y))
            for i, k in product(left, right):
                self._roles.join((id(x), i), (id(y), k))
                if len(left) == len(right) == 1:
                    self._features.join((id(x), i), (id(y), k))
        if id(x) in self._alike:
            self._alike.add(id(y))

    def _probe(self, node: Any, inputs: Sequence[Any], y: Any) -> None:
        """Find out where an op moves axes: see which sizes of its result follow which of inputs."""
        base = [101 + 2 * i for i in range(len(y.shape))]
        plain = _result(node, inputs, base)
        if plain is None:
            return
        for i in range(len(base)):
            other = _result(node, inputs, [n + 64 * (i == k) for k, n in enumerate(base)])
            moved = [j for j, (a, b) in enumerate(zip(plain, other or ())) if a != b]
            if len(moved) != 1:
                continue
            for x in inputs:
                self._roles.join((id(x), i), (id(y), moved[0]))
                if plain[moved[0]] == base[i]:
                    self._features.join((id(x), i), (id(y), moved[0]))


def _by_vectors(inputs: Sequence[Any], y: Any) -> bool:
    """Return whether a result has the shape of its first input, and the others are vectors."""
    vectors = [x for x in inputs[1:] if len(x.shape) == 1]
    return 1 < len(inputs) == len(vectors) + 1 and bool(inputs[0].shape == y.shape)


def _groups(a: Sequence[Any], b: Sequence[Any]) -> Iterator[tuple[range, range]]:
    """Yield the axes that a reshaping splits or joins, and what they become, from the last."""
    i, k = len(a), len(b)
    while i and k:
        left, right = i - 1, k - 1
        while not same_size(prod(a[left:i]), prod(b[right:k])):
            sizes = (a[left:i], b[right:k])
            if not all(known_size(n) for part in sizes for n in part) or not left + right:
                left, right = 0, 0  # the rest, as sizes are not known
                break
            if (prod(sizes[0]) < prod(sizes[1]) and left) or not right:
                left -= 1
            else:
                right -= 1
        yield range(left, i), range(right, k)
        i, k = left, right


def _as_one(image: Sequence[Any], size: Any) -> bool:
    """Return whether a size is that of all features of an image, as far as sizes are known."""
    sizes = image[1:]
    if all(map(known_size, sizes)) and known_size(size):
        return bool(prod(sizes) == size)
    return not same_size(size, image[-1])


def _result(node: Any, inputs: Sequence[Any], sizes: Sequence[int]) -> tuple[int, ...] | None:
    """Return the shape of an op's result for inputs of these sizes, if it takes them."""
    given = iter([TensorSpec(sizes, x.dtype) for x in inputs])
    args = [next(given) if hasattr(x, "graph") else x for x in node.inputs]
    with contextlib.suppress(Exception):
        traced = function(lambda *args: node.op(*args, **node.params))
        shape: tuple[int, ...] | None = traced.get_concrete_function(*args).graph.outputs[0].shape
        return shape
    return None

"""Checks of what transforms an op: derivatives, batches and traces.

Derivatives, of both orders and modes, are compared with differences; batches, eager and traced, of
whichever inputs and ranks, with loops. Traces check the shape rule, and files that hold the op.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import nullcontext
from functools import partial
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...core.errors import TraceError
from ...core.extend import (
    ForwardAccumulator,
    GradientTape,
    Module,
    Op,
    TensorSpec,
    constant,
    describe,
    function,
    recording_to,
    vmap,
)
from ...saving import load, save
from ..gradients import check_gradients, check_linear, gradient_of
from .trial import Trial, naming, same_arrays

# -- derivatives -----------------------------------------------------------------------------------


Array = NDArray[Any]


def gradients(trial: Trial) -> str | None:
    """Check first-order gradients against finite differences."""
    want, count = trial.want
    followed = any(y.dtype.kind in "fc" for y in want[:count])
    if not trial.differentiable or not followed:
        return _no_gradients(trial)
    check_gradients(trial.run, *trial.arrays, order=1, seed=trial.seed, linear=False)
    return None


def _no_gradients(trial: Trial) -> str:
    tensors = [constant(x) for x in trial.arrays]
    sources = [x for x in tensors if x.dtype.kind in "fc"]
    with GradientTape() as tape:
        tape.watch(sources)
        results = trial.run(*tensors)
    followed = [y for y in results if y.dtype.kind in "fc"]
    if followed and sources:
        for gradient in tape.gradient(followed, sources):
            if gradient is not None:
                raise AssertionError(f"no rule, but the gradient is {gradient}, not None")
    return "not differentiable"


def second_order(trial: Trial) -> str | None:
    """Check gradients of gradients."""
    want, count = trial.want
    if not trial.differentiable or not any(y.dtype.kind in "fc" for y in want[:count]):
        return "not differentiable"
    check_gradients(trial.run, *trial.arrays, order=2, seed=trial.seed, linear=False)
    return None


def linear(trial: Trial) -> str | None:
    """Check that gradients are linear in the upstream gradient."""
    want, count = trial.want
    if not trial.differentiable or not any(y.dtype.kind in "fc" for y in want[:count]):
        return "not differentiable"
    fn, arrays, outputs = trial.run, trial.arrays, want[:count]
    check_linear(fn, arrays, outputs, trial.seed, 1)
    if "second order" not in trial.sample.exempt:
        check_linear(*gradient_of(fn, arrays, outputs, trial.seed), trial.seed, 2)
    return None


def forward(trial: Trial) -> str | None:
    """Check that forward mode is the transpose of reverse mode."""
    want, count = trial.want
    followed = [i for i, y in enumerate(want[:count]) if y.dtype.kind in "fc"]
    if not trial.differentiable or not followed:
        return "not differentiable"
    rng = np.random.default_rng(trial.seed)
    tensors = [constant(x) for x in trial.arrays]
    sources = [x for x in tensors if x.dtype.kind in "fc"]
    tangents = [constant(_random(rng, x)) for x in sources]
    with ForwardAccumulator(sources, tangents) as accumulator, GradientTape() as tape:
        tape.watch(sources)
        results = trial.run(*tensors)
    ys = [results[i] for i in followed]
    upstream = [constant(_random(rng, y)) for y in ys]
    with recording_to(()):
        back = tape.gradient(ys, sources, output_gradients=upstream, unconnected_gradients="zero")
    ahead = accumulator.jvp(ys, unconnected_gradients="zero")
    for y, t in zip(ys, ahead, strict=True):
        if t.shape != y.shape or t.dtype != y.dtype:
            raise AssertionError(
                f"a tangent is {describe(t.shape, t.dtype)}, its result "
                f"{describe(y.shape, y.dtype)}"
            )
    one, other = _inner(upstream, ahead), _inner(back, tangents)
    scale = max(1.0, *(_size(x) * _size(t) for x, t in zip(back, tangents, strict=True)))
    double = all(x.dtype.itemsize >= 8 for x in (*ys, *sources))
    tolerance = (1e-8 if double else 1e-5) * scale
    if not (np.isnan(one) and np.isnan(other)) and abs(one - other) > tolerance:
        raise AssertionError(
            f"forward mode and the gradient rules differ: <u, J t> is {one}, <Jᵀ u, t> is {other}"
            f"{_forward_rule(trial.op)}"
        )
    return None


def _forward_rule(op: Any) -> str:
    """Return what forward mode of an op follows from, for a message."""
    if getattr(op, "jvp", None) is not None:
        return f"; forward mode follows jvp={op.jvp!r:.60}"
    if getattr(op, "batch", None) == "elementwise":
        return (
            "; forward mode follows batch='elementwise', which says that each element of the "
            "result depends on the same elements of the inputs alone"
        )
    return ""


def _random(rng: np.random.Generator, like: Any) -> Array:
    """Return standard normal numbers of the shape and dtype of ``like``."""
    numbers = rng.standard_normal(like.shape)
    if like.dtype.kind == "c":
        numbers = numbers + 1j * rng.standard_normal(like.shape)
    return np.asarray(numbers, like.dtype)


def _inner(xs: Sequence[Any], ys: Sequence[Any]) -> float:
    """Return the real inner product of lists of tensors."""
    return float(
        sum(np.sum(np.real(np.conj(x.numpy()) * y.numpy())) for x, y in zip(xs, ys, strict=True))
    )


def _size(x: Any) -> float:
    values = np.abs(np.asarray(x.numpy()))
    finite = values[np.isfinite(values)]
    return float(np.sqrt((finite**2).sum())) if finite.size else 0.0


# -- batches ---------------------------------------------------------------------------------------


Axes = tuple[int | None, ...]


class _Layout:
    """Arrays, some of them with an axis of two examples, and the results of a loop over these."""

    def __init__(self, trial: Trial, what: str, arrays: Sequence[Array], axes: Axes) -> None:
        self.trial, self.what, self.axes = trial, what, axes
        self.arrays = [
            x if axis is None else np.stack([x, varied(x)])
            for x, axis in zip(arrays, axes, strict=True)
        ]
        self.tensors = [constant(x) for x in self.arrays]
        rows = [
            trial.slopes(*[constant(x if a is None else x[i]) for x, a in self.pairs()])
            for i in range(2)
        ]
        self.want = [np.stack([y.numpy() for y in column]) for column in zip(*rows, strict=True)]

    def pairs(self) -> Iterator[tuple[Array, int | None]]:
        """Give each array with the axis of the examples."""
        return zip(self.arrays, self.axes, strict=True)

    def inside(self, tensors: Sequence[Any]) -> list[Any]:
        """Return the results and gradients of a vmap of the op and its gradient."""
        return list(vmap(self.trial.slopes, in_axes=self.axes)(*tensors))

    def outside(self, tensors: Sequence[Any]) -> list[Any]:
        """Return the gradients of a tape outside the vmap; none if the op has none."""
        sources = [x for x in tensors if x.dtype.kind in "fc"]
        with GradientTape() as tape:
            tape.watch(sources)
            results = vmap(self.trial.run, in_axes=self.axes)(*tensors)
        followed = [y for y in results if y.dtype.kind in "fc"]
        if not (self.trial.differentiable and followed):
            return []
        found: list[Any] = tape.gradient(
            followed, sources, output_gradients=followed, unconnected_gradients="zero"
        )
        return found

    def compare(self, where: str, inside: Sequence[Any], outside: Sequence[Any]) -> None:
        """Compare both with the loop."""
        got = [np.asarray(y.numpy()) for y in inside]
        same_arrays(got, self.want, f"{where}vmap, value or gradient")
        shared = [axis is None for x, axis in self.pairs() if x.dtype.kind in "fc"]
        inner = self.want[len(self.want) - len(shared) :]
        if outside:
            summed = [g.sum(axis=0) if s else g for g, s in zip(inner, shared, strict=True)]
            got = [np.asarray(g.numpy()) for g in outside]
            same_arrays(got, summed, f"{where}a tape outside vmap, gradient")


def _layouts(trial: Trial) -> Iterator[Callable[[], _Layout]]:
    """Give functions that make the layouts: which inputs have a batch axis, and of which rank."""
    arrays = trial.arrays
    count = len(arrays)
    sizes = range(count, 0, -1) if count <= 3 else (count, 1) if count == 4 else (count,)
    for size in sizes:
        for pattern in combinations(range(count), size):
            axes = tuple(0 if i in pattern else None for i in range(count))
            what = f"batched {pattern}" if count > 1 else ""
            yield partial(_Layout, trial, what, arrays, axes)
    if not (isinstance(trial.op, Op) and trial.op.broadcasts and 1 < count <= 4):
        return
    for i, x in enumerate(arrays):  # numbers that differ from example to example, with arrays
        if x.size and x.ndim:
            lower = [np.asarray(y.flat[0]) if i == j else y for j, y in enumerate(arrays)]
            axes = tuple(0 if i == j else None for j in range(count))
            what = f"batched {(i,)}, of one element"
            yield partial(_Layout, trial, what, lower, axes)


def _each(trial: Trial, check: Callable[[_Layout], None]) -> str | None:
    """Run a check of each layout; return why none of them is possible."""
    refusals, count = [], 0
    for make in _layouts(trial):
        layout = make()
        count += 1
        with naming(layout.what) if layout.what else nullcontext():
            try:
                check(layout)
            except TraceError as error:
                refusals.append(f"refused: {error}")
    return refusals[0] if count and len(refusals) == count else None


def batched(trial: Trial) -> str | None:
    """Check that ``vmap`` gives the values and gradients of a loop."""
    if not trial.arrays:
        return "no arrays"
    return _each(trial, _batched) or _nested(trial)


def _batched(layout: _Layout) -> None:
    layout.compare("", layout.inside(layout.tensors), layout.outside(layout.tensors))


def _nested(trial: Trial) -> str | None:
    """Check a batch in a batch, each of other inputs if there are several."""
    count = len(trial.arrays)
    inner: Axes = (0, *[None] * (count - 1))
    outer: Axes = (0,) if count == 1 else (None, *[0] * (count - 1))
    arrays = [np.stack([x, varied(x)]) for x in trial.arrays]
    if count == 1:
        arrays = [np.stack([arrays[0], varied(arrays[0])])]
    rows = []
    for i in range(2):
        given = [x[i] if axis == 0 else x for x, axis in zip(arrays, outer, strict=True)]
        rows.append(
            [
                trial.slopes(
                    *[constant(x[j] if a == 0 else x) for x, a in zip(given, inner, strict=True)]
                )
                for j in range(2)
            ]
        )
    try:
        run = vmap(vmap(trial.slopes, in_axes=inner), in_axes=outer)
        got = run(*map(constant, arrays))
    except TraceError:
        return None
    for i in range(2):
        want = [np.stack([y.numpy() for y in column]) for column in zip(*rows[i], strict=True)]
        mine = [np.asarray(y.numpy())[i] for y in got]
        same_arrays(mine, want, "vmap of vmap, value or gradient")
    return None


def traced_batch(trial: Trial) -> str | None:
    """Check the same in a trace, with a known and with an unknown number of examples."""
    if not trial.arrays:
        return "no arrays"
    return _each(trial, _traced)


def _traced(layout: _Layout) -> None:
    def run(tensors: Sequence[Any]) -> tuple[list[Any], list[Any]]:
        return layout.inside(tensors), layout.outside(tensors)

    concrete = function(run).get_concrete_function(layout.tensors)
    layout.compare("traced, ", *concrete(layout.tensors))
    if None in layout.axes:
        return
    specs = [TensorSpec([None, *x.shape[1:]], x.dtype) for x in layout.arrays]
    try:
        concrete = function(run).get_concrete_function(specs)
    except TraceError:  # an op without a batching rule needs the number of examples
        return
    layout.compare("traced for any number of examples, ", *concrete(layout.tensors))


def varied(x: Array) -> Array:
    """Return another example: close to the first, or reordered if nothing can be close."""
    if x.dtype.kind in "fc":
        return x * (1 + 2.0**-7)
    return np.array(~x if x.dtype.kind == "b" and not x.ndim else np.flip(x))


# -- traces and files ------------------------------------------------------------------------------


def _trace(trial: Trial, specs: Sequence[Any] | None) -> None:
    """Trace, compare the shape rule with the actual results, then compare the run."""
    tensors = [constant(x) for x in trial.arrays]
    concrete = function(trial.of_list).get_concrete_function(tensors if specs is None else specs)
    want, count = trial.want
    for i, (symbol, real) in enumerate(zip(concrete.graph.outputs, want, strict=True)):
        spec = TensorSpec(symbol.shape, symbol.dtype)
        if not spec.admits(real.shape) or symbol.dtype != real.dtype:
            which = f"result {i}" if i < count else f"gradient {i - count}"
            raise AssertionError(
                f"the shape rule gives {spec} for {which}, which is "
                f"{describe(real.shape, real.dtype)}"
            )
    trial.compare(concrete(tensors))


def traced(trial: Trial) -> None:
    """Check a trace with known sizes."""
    _trace(trial, None)


def known_sizes(trial: Trial) -> None:
    """Check that the shape rule gives known sizes for known sizes."""
    tensors = [constant(x) for x in trial.arrays]
    graph = function(trial.of_list).get_concrete_function(tensors).graph
    for i, symbol in enumerate(graph.outputs[: trial.want[1]]):
        if symbol.shape is None or None in symbol.shape:
            raise AssertionError(
                f"the shape rule gives {describe(symbol.shape, symbol.dtype)} for result {i} "
                "from inputs of known sizes"
            )


def unknown_sizes(trial: Trial) -> str | None:
    """Check a trace with unknown sizes."""
    if not any(x.ndim for x in trial.arrays):
        return "no axes"
    _trace(trial, [TensorSpec([None] * x.ndim, x.dtype) for x in trial.arrays])
    return None


def unknown_rank(trial: Trial) -> str | None:
    """Check a trace with unknown ranks."""
    specs = [TensorSpec(None, x.dtype) for x in trial.arrays]
    try:
        function(trial.of_list).get_concrete_function(specs)
    except (TypeError, ValueError) as error:
        return f"refused: {error}"
    _trace(trial, specs)
    return None


def saved(trial: Trial) -> None:
    """Check that the op computes the same after saving and loading."""
    tensors = [constant(x) for x in trial.arrays]
    traced = function(trial.of_list)
    traced(tensors)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "op.h5"
        save(Module(), path, {"run": traced}, golden=False)
        trial.compare(load(path).signatures["run"](tensors), what="loaded, ")

"""Checks of batches against loops: eager and traced, of whichever inputs and ranks."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import nullcontext
from functools import partial
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...core.errors import TraceError
from ...core.extend import GradientTape, Op, TensorSpec, constant, function, vmap
from .naming import naming
from .trial import Trial, same_arrays

Array = NDArray[Any]
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

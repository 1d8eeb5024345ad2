"""Comparison of first and second-order gradients with finite differences in random directions."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

import gradtape as gt
from fuzz.program import Array, Program

__all__ = ["Case", "Found", "Refused", "inner", "slopes_off"]

WIDTHS = (1e-3, 4e-4, 1.5e-4)
FAR = 1e-6  # maximum error of a gradient, as a fraction of the scale
CONVERGED = 1e-4  # measured slopes that agree within this fraction can be used


class Case:
    """A program with everything that runs need: tensors, weights of its results and directions.

    ``variables`` may be those of another case of the program; otherwise the case makes its own.
    """

    def __init__(self, program: Program, variables: dict[str, gt.Variable] | None = None) -> None:
        self.program = program
        rng = np.random.default_rng(program.seed + 1)
        made = {v: gt.Variable(x) for v, x in program.variables.items()}
        self.variables = made if variables is None else variables
        self.run = program.function(self.variables)
        self.xs = [gt.constant(x) for x in program.inputs.values()]
        given = [*program.inputs.values(), *program.variables.values()]
        self.directions = [_random(rng, x.shape, x.dtype.kind) for x in given]
        self.reset()
        ys = self.run(*self.xs)
        self.weights = [_random(rng, y.shape, y.dtype.kind) for y in ys]
        self.reset()
        self.want = self.orders(*self.xs)

    @property
    def sources(self) -> list[Any]:
        """The variables, which are differentiated in addition to each run's inputs."""
        return list(self.variables.values())

    def reset(self) -> None:
        """Assign the variables' initial values."""
        for v, x in self.program.variables.items():
            self.variables[v].assign(x)

    def loss(self, ys: Any) -> Any:
        """Return the weighted sum of the results."""
        return inner(self.weights, ys)

    def orders(
        self,
        *xs: Any,
        run: Callable[..., Any] | None = None,
        weights: Sequence[Any] | None = None,
        directions: Sequence[Any] | None = None,
    ) -> list[Any]:
        """Return values, gradients, and gradients of the slope along the directions."""
        run = run or self.run
        weights = self.weights if weights is None else weights
        directions = self.directions if directions is None else directions
        sources = [*xs, *self.sources]
        with gt.GradientTape() as second:
            second.watch(list(xs))
            with gt.GradientTape() as first:
                first.watch(list(xs))
                ys = run(*xs)
                loss = inner(weights, ys)
            slopes = first.gradient(loss, sources, unconnected_gradients="zero")
            along = inner(directions, slopes)
        curves = second.gradient(along, sources, unconnected_gradients="zero")
        return [*ys, *slopes, *curves]

    def beside(self, got: Any, what: str = "", want: Any = None) -> Iterator[Found]:
        """Give the results of a mode next to those of :meth:`orders`, each with a name."""
        want = self.want if want is None else want
        count, sources = len(self.weights), len(self.directions)
        for i, (mine, right) in enumerate(zip(got, want, strict=True)):
            kind = "value" if i < count else "gradient" if i < count + sources else "second order"
            yield Found(f"{what}{kind}", mine, right, case=self)


class Refused(Exception):
    """The mode refuses this program with a proper message."""


class Found(NamedTuple):
    """A mode's result and the right one; ``case`` is set if it differs from the requested one."""

    what: str
    got: Any
    want: Any
    scale: float = 0.0
    case: Case | None = None


def _random(rng: np.random.Generator, shape: tuple[int, ...], kind: str) -> Array:
    size = rng.uniform(0.5, 1.5, shape) * rng.choice([-1.0, 1.0], shape)
    if kind == "c":
        size = size * np.exp(1j * rng.uniform(0.0, 6.28, shape))
    return np.asarray(size)


def inner(weights: Sequence[Any], values: Any) -> Any:
    """Return the real inner product of arrays and tensors."""
    total: Any = 0.0
    for w, y in zip(weights, values, strict=True):
        total = total + gt.sum(gt.real(gt.conj(w) * y) if y.dtype.kind == "c" else gt.real(w) * y)
    return total


def slopes_off(case: Case) -> tuple[str | None, bool]:
    """Return the error of a gradient, if there is one, and whether the differences can be used."""
    program, count = case.program, len(case.weights)
    frozen = program.frozen()
    given = [*program.inputs.values(), *program.variables.values()]
    number = len(given)
    slopes = [np.asarray(g.numpy()) for g in case.want[count : count + number]]
    curves = [np.asarray(g.numpy()) for g in case.want[count + number :]]

    def loss(*xs: Any) -> Any:
        return inner(case.weights, frozen(*xs))

    def along(*xs: Any) -> Any:
        with gt.GradientTape() as tape:
            tape.watch(list(xs))
            value = loss(*xs)
        return inner(case.directions, tape.gradient(value, list(xs), unconnected_gradients="zero"))

    rng = np.random.default_rng(program.seed + 2)
    told = True
    for order, fn, have in ((1, loss, slopes), (2, along, curves)):
        steps = [_random(rng, x.shape, x.dtype.kind) for x in given]
        slope = float(sum(np.sum(np.real(np.conj(d) * g)) for d, g in zip(steps, have)))
        parts = float(sum(np.sum(np.abs(d) * np.abs(g)) for d, g in zip(steps, have)))
        measured = _measured(fn, given, steps, parts)
        if measured is None:
            told = False
            break
        want, error = measured
        scale = max(abs(want), parts, 1e-3)
        if not abs(slope - want) <= FAR * scale + error:
            said = f"order {order}: the tape's slope is {slope:.12g}, differences give {want:.12g}"
            return said, True
    return None, told


def _measured(
    fn: Callable[..., Any], xs: list[Array], steps: list[Array], parts: float
) -> tuple[float, float] | None:
    """Return the slope along ``steps`` and its error, or None if differences do not converge."""

    def at(width: float) -> float:
        moved = [gt.constant(x + width * d) for x, d in zip(xs, steps, strict=True)]
        with np.errstate(all="ignore"):
            return float(fn(*moved))

    middle, found = at(0.0), []
    for h in WIDTHS:
        far, near = (at(h), at(-h)), (at(h / 2), at(-h / 2))
        wide, narrow = (far[0] - far[1]) / (2 * h), (near[0] - near[1]) / h
        sides = (near[0] - middle) / (h / 2), (middle - near[1]) / (h / 2)
        best = (4.0 * narrow - wide) / 3.0
        found.append((best, abs(sides[0] - sides[1]), abs(narrow - wide)))
    slopes = np.array([f[0] for f in found])
    size = max(float(np.abs(slopes).max()), parts, 1e-3)
    if not np.all(np.isfinite(slopes)):
        return None
    spread = float(np.ptp(slopes[1:]))
    # a jump that does not shrink with the width is a kink
    jumps = [f[1] for f in found]
    kink = jumps[2] > 1e-3 * size and jumps[2] > 0.7 * jumps[0]
    slow = found[2][2] > 1e-7 * size and found[2][2] > 0.3 * found[0][2]
    if spread > CONVERGED * size or kink or slow:
        return None
    return float(slopes[1]), 20.0 * spread + 1e-7 * abs(middle)

"""``check_op``: checks everything that an op must do, on samples of its inputs."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..core.errors import TraceError
from ..core.extend import (
    SCALARS,
    ForwardAccumulator,
    GradientTape,
    Module,
    Op,
    Tensor,
    TensorSpec,
    constant,
    describe,
    function,
    is_transformed,
    recording_to,
    registry,
    vmap,
)
from ..saving import load, save
from .gradients import alike, check_gradients, check_linear, gradient_of
from .samples import CHECKS, Sample

__all__ = ["PASSED", "check_op"]

Array = NDArray[Any]
Run = Callable[..., list[Any]]

PASSED = "passed"

# eager and traced runs may differ in the order of a sum; single precision in rounding
SAME, SINGLE = 1e-11, 3e-4


def check_op(
    op: Op | Callable[..., Any], samples: Iterable[Sample], *, seed: int = 0
) -> dict[str, str]:
    """Check an op, or a function made of ops, on samples.

    ==================  ============================================================================
    ``gradients``       the tape's gradients agree with finite differences (see
                        :func:`check_gradients`); an op without gradient rules gives None
    ``second order``    the same for gradients of the gradients
    ``linear``          gradients are linear in the upstream gradient, however large or small it is;
                        skip this check for an op that clips it on purpose
    ``forward``         forward mode is the transpose of reverse mode: ``<u, J t> = <Jᵀ u, t>``
    ``traced``          a trace gives the values and gradients of the eager run, and the shape rule
                        gives the actual shapes and dtypes
    ``known sizes``     for known sizes the shape rule gives known sizes
    ``unknown sizes``   as ``traced``, with sizes that the trace does not know
    ``unknown rank``    as ``traced``, with ranks that the trace does not know, unless the op
                        refuses them with ``TypeError`` or ``ValueError``
    ``batched``         ``vmap`` gives the values and gradients of a loop over two examples,
                        whichever inputs have the batch axis; a tape outside it gives the sum of the
                        gradients for the others, unless the op refuses batches with ``TypeError``
    ``saved``           after saving and loading, values and gradients are the same
    ``float32``         single precision gives the values and gradients of double precision, up to
                        rounding, and gradients have the dtype of their input
    ``float16``         gradients in half precision have the dtype of their input, unless the op
                        refuses it with ``TypeError``
    ``strided``         arrays that are not contiguous give the same results
    ``empty``           arrays without elements give results without elements (elementwise ops only)
    ==================  ============================================================================

    Every run must leave its inputs unchanged.

    Parameters
    ----------
    op
        An op, or a function of tensors that returns one or several tensors.
    samples
        The arguments of the calls: at least one :class:`Sample`.
    seed
        The seed of the random weights of the gradient checks; 0 by default.

    Returns
    -------
    dict
        The outcome of each check: ``"passed"`` if a sample passed it (and none failed), otherwise
        the reason why it was skipped.

    Raises
    ------
    AssertionError
        If a check fails; the message names the op, the sample, the check and the difference.
    TypeError
        If one of the samples is not a :class:`Sample`.
    ValueError
        If there are no samples.

    Examples
    --------
    >>> report = gt.testing.check_op(gt.sum, [gt.testing.Sample(np.ones((2, 3)), axis=0)])
    >>> report["second order"]
    'passed'
    """
    name = op.name if isinstance(op, Op) else getattr(op, "__name__", repr(op))
    report: dict[str, str] = {}
    count = 0
    for sample in samples:
        if not isinstance(sample, Sample):
            raise TypeError(
                f"check_op: samples must be an iterable of gradtape.testing.Sample, got "
                f"{type(sample).__name__}; write [Sample(x, ...)] for the inputs x, ..."
            )
        count += 1
        trial = _Trial(op, sample, seed)
        for check in CHECKS:
            reason = sample.exempt.get(check)
            if reason is None:
                with _naming(f"{name}, {sample!r}, {check}"):
                    reason = trial.check(check)
            if reason is None or report.get(check) != PASSED:
                report[check] = reason or PASSED
    if not count:
        raise ValueError(f"check_op: {name} has no samples")
    return report


@contextmanager
def _naming(where: str) -> Iterator[None]:
    """Raise errors as an AssertionError that says where they occurred."""
    try:
        yield
    except Exception as error:
        kind = "" if isinstance(error, AssertionError) else f"{type(error).__name__}: "
        raise AssertionError(f"{where}: {kind}{error}{_advice(error)}") from error


def _advice(error: Exception) -> str:
    """Return what to write instead, if a rule used one of our arrays as a NumPy array."""
    attribute = getattr(error, "name", None) if isinstance(error, AttributeError) else None
    if attribute is not None and is_transformed(error.obj):  # type: ignore[attr-defined]
        function = {"astype": "cast", "T": "transpose", "dot": "matmul"}.get(attribute, attribute)
        known = function in registry().ops
        use = f"F.{function}" if known else "functions F.<op>"
        like = " (or F.cast_like)" if function == "cast" else ""
    elif isinstance(error, TypeError) and "__array_ufunc__=None" in str(error):
        use, like = "functions F.<op>", ""
    else:
        return ""
    return (
        "; gradient rules run on every type of array, including those of a trace or a batch: write "
        f"them with operators and {use}{like}, from gradtape.core.extend"
    )


class _Trial:
    """One op with one sample."""

    def __init__(self, op: Op | Callable[..., Any], sample: Sample, seed: int) -> None:
        self.op, self.sample, self.seed = op, sample, seed
        self.arrays = [x for x in sample.inputs if type(x) not in SCALARS]
        self.differentiable = any(x.dtype.kind in "fc" for x in self.arrays) and (
            op.differentiable if isinstance(op, Op) else True
        )
        self._want: tuple[list[Array], int] | None = None

    def check(self, what: str) -> str | None:
        """Run a check; return why it does not apply, or None if it passed."""
        result: str | None = getattr(self, "_" + what.replace(" ", "_"))()
        return result

    # -- the runs --------------------------------------------------------------------------------

    def run(self, *tensors: Any) -> list[Any]:
        """Call the op with tensors instead of the sample's arrays."""
        rest = iter(tensors)
        given = [x if type(x) in SCALARS else next(rest) for x in self.sample.inputs]
        fed = self.sample.feed(*given)
        results = self.op(*(fed if isinstance(fed, tuple) else (fed,)), **self.sample.params)
        several = isinstance(results, (list, tuple))
        shown = self.sample.view(*(results if several else [results]))
        return list(shown) if isinstance(shown, (list, tuple)) else [shown]

    def slopes(self, *tensors: Any) -> list[Any]:
        """Return the results, then the gradients with the results as upstream gradients."""
        if not self.differentiable:
            return self.run(*tensors)
        sources = [x for x in tensors if x.dtype.kind in "fc"]
        with GradientTape() as tape:
            tape.watch(sources)
            results = self.run(*tensors)
        followed = [y for y in results if y.dtype.kind in "fc"]
        if not followed:
            return results
        return [
            *results,
            *tape.gradient(
                followed, sources, output_gradients=followed, unconnected_gradients="zero"
            ),
        ]

    @property
    def want(self) -> tuple[list[Array], int]:
        """The results of an eager run of ``slopes``, and how many of them are not gradients."""
        if self._want is None:
            tensors = [constant(x) for x in self.arrays]
            given = [x.copy() for x in self.arrays]
            found = [np.array(y.numpy()) for y in self.slopes(*tensors)]
            for x, tensor in zip(given, tensors, strict=True):
                if not np.array_equal(x, tensor.numpy(), equal_nan=x.dtype.kind in "fc"):
                    raise AssertionError("the op changes its inputs")
            again = [np.asarray(y.numpy()) for y in self.run(*tensors)]
            if not all(map(alike, found, again)):  # the results come first, the gradients after
                raise AssertionError(
                    "the op is not deterministic: it gives different results for the same inputs; "
                    "let it take random numbers from a key, as an input"
                )
            self._want = found, len(again)
        return self._want

    def compare(
        self, got: Sequence[Any], tolerance: float = SAME, dtypes: bool = True, what: str = ""
    ) -> None:
        """Compare the results of a run of ``slopes`` with those of an eager run."""
        want, count = self.want
        if len(got) != len(want):
            raise AssertionError(f"{what}{len(got)} results and gradients instead of {len(want)}")
        for i, (mine, right) in enumerate(zip(got, want, strict=True)):
            mine = mine.numpy()
            which = f"result {i}" if i < count else f"gradient {i - count}"
            if mine.shape != right.shape or (dtypes and mine.dtype != right.dtype):
                raise AssertionError(
                    f"{what}{which} is {describe(mine.shape, mine.dtype)} instead of "
                    f"{describe(right.shape, right.dtype)}"
                )
            finite = np.abs(right[np.isfinite(right)]) if right.dtype.kind in "fc" else np.empty(0)
            scale = max(1.0, float(finite.max())) if finite.size else 1.0
            if not np.allclose(mine, right, rtol=tolerance, atol=tolerance * scale, equal_nan=True):
                raise AssertionError(f"{what}{which} is {mine} instead of {right}")

    # -- the checks ------------------------------------------------------------------------------

    def _gradients(self) -> str | None:
        want, count = self.want
        followed = any(y.dtype.kind in "fc" for y in want[:count])
        if not self.differentiable or not followed:
            return self._no_gradients()
        check_gradients(self.run, *self.arrays, order=1, seed=self.seed, linear=False)
        return None

    def _no_gradients(self) -> str:
        tensors = [constant(x) for x in self.arrays]
        sources = [x for x in tensors if x.dtype.kind in "fc"]
        with GradientTape() as tape:
            tape.watch(sources)
            results = self.run(*tensors)
        followed = [y for y in results if y.dtype.kind in "fc"]
        if followed and sources:
            for gradient in tape.gradient(followed, sources):
                if gradient is not None:
                    raise AssertionError(f"no rule, but the gradient is {gradient}, not None")
        return "not differentiable"

    def _second_order(self) -> str | None:
        want, count = self.want
        if not self.differentiable or not any(y.dtype.kind in "fc" for y in want[:count]):
            return "not differentiable"
        check_gradients(self.run, *self.arrays, order=2, seed=self.seed, linear=False)
        return None

    def _linear(self) -> str | None:
        want, count = self.want
        if not self.differentiable or not any(y.dtype.kind in "fc" for y in want[:count]):
            return "not differentiable"
        fn, arrays, outputs = self.run, self.arrays, want[:count]
        check_linear(fn, arrays, outputs, self.seed, 1)
        if "second order" not in self.sample.exempt:
            check_linear(*gradient_of(fn, arrays, outputs, self.seed), self.seed, 2)
        return None

    def _forward(self) -> str | None:
        want, count = self.want
        followed = [i for i, y in enumerate(want[:count]) if y.dtype.kind in "fc"]
        if not self.differentiable or not followed:
            return "not differentiable"
        rng = np.random.default_rng(self.seed)
        tensors = [constant(x) for x in self.arrays]
        sources = [x for x in tensors if x.dtype.kind in "fc"]
        tangents = [constant(_random(rng, x)) for x in sources]
        with ForwardAccumulator(sources, tangents) as accumulator, GradientTape() as tape:
            tape.watch(sources)
            results = self.run(*tensors)
        ys = [results[i] for i in followed]
        upstream = [constant(_random(rng, y)) for y in ys]
        with recording_to(()):
            back = tape.gradient(
                ys, sources, output_gradients=upstream, unconnected_gradients="zero"
            )
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
            raise AssertionError(f"<u, J t> is {one}, <Jᵀ u, t> is {other}")
        return None

    def _trace(self, specs: Sequence[Any] | None) -> None:
        """Trace, compare the shape rule with the actual results, then compare the run."""
        tensors = [constant(x) for x in self.arrays]
        concrete = function(self.of_list).get_concrete_function(tensors if specs is None else specs)
        want, count = self.want
        for i, (symbol, real) in enumerate(zip(concrete.graph.outputs, want, strict=True)):
            spec = TensorSpec(symbol.shape, symbol.dtype)
            if not spec.admits(real.shape) or symbol.dtype != real.dtype:
                which = f"result {i}" if i < count else f"gradient {i - count}"
                raise AssertionError(
                    f"the shape rule gives {spec} for {which}, which is "
                    f"{describe(real.shape, real.dtype)}"
                )
        self.compare(concrete(tensors))

    def of_list(self, tensors: Sequence[Any]) -> list[Any]:
        """Run ``slopes`` on a list of tensors: traces need a fixed number of arguments."""
        return self.slopes(*tensors)

    def _traced(self) -> None:
        self._trace(None)

    def _known_sizes(self) -> None:
        tensors = [constant(x) for x in self.arrays]
        graph = function(self.of_list).get_concrete_function(tensors).graph
        for i, symbol in enumerate(graph.outputs[: self.want[1]]):
            if symbol.shape is None or None in symbol.shape:
                raise AssertionError(
                    f"the shape rule gives {describe(symbol.shape, symbol.dtype)} for result {i} "
                    "from inputs of known sizes"
                )

    def _unknown_sizes(self) -> str | None:
        if not any(x.ndim for x in self.arrays):
            return "no axes"
        self._trace([TensorSpec([None] * x.ndim, x.dtype) for x in self.arrays])
        return None

    def _unknown_rank(self) -> str | None:
        specs = [TensorSpec(None, x.dtype) for x in self.arrays]
        try:
            function(self.of_list).get_concrete_function(specs)
        except (TypeError, ValueError) as error:
            return f"refused: {error}"
        self._trace(specs)
        return None

    def _batched(self) -> str | None:
        count = len(self.arrays)
        if not count:
            return "no arrays"
        patterns = [tuple(range(count))]
        if 1 < count <= 4:
            patterns += [(i,) for i in range(count)]
        refusals = []
        for pattern in patterns:
            with _naming(f"batched {pattern}") if len(patterns) > 1 else nullcontext():
                try:
                    self._batch(pattern)
                except TraceError as error:
                    refusals.append(f"refused: {error}")
        return refusals[0] if len(refusals) == len(patterns) else None

    def _batch(self, pattern: tuple[int, ...]) -> None:
        """Compare vmap over some of the inputs with a loop."""
        axes = [0 if i in pattern else None for i in range(len(self.arrays))]
        both = [constant(np.stack([x, varied(x)])) for x in self.arrays]
        shared = [constant(x) for x in self.arrays]
        given = [b if i in pattern else x for i, (b, x) in enumerate(zip(both, shared))]
        loop = [
            self.slopes(
                *[
                    x if axis is None else constant(np.asarray(x.numpy())[i])
                    for x, axis in zip(given, axes, strict=True)
                ]
            )
            for i in range(2)
        ]
        got = vmap(self.slopes, in_axes=tuple(axes))(*given)
        want = [np.stack([y.numpy() for y in column]) for column in zip(*loop, strict=True)]
        _same([y.numpy() for y in got], want, "vmap, value or gradient")
        if not self.differentiable:
            return
        results = self.want[1]
        sources = [x for x in given if x.dtype.kind in "fc"]
        with GradientTape() as tape:
            tape.watch(sources)
            ys = vmap(self.run, in_axes=tuple(axes))(*given)
        followed = [y for y in ys if y.dtype.kind in "fc"]
        if not followed:
            return
        outer = tape.gradient(
            followed, sources, output_gradients=followed, unconnected_gradients="zero"
        )
        inner = want[results:]
        kept = [axis is None for x, axis in zip(given, axes) if x.dtype.kind in "fc"]
        summed = [g.sum(axis=0) if alike else g for g, alike in zip(inner, kept, strict=True)]
        _same([np.asarray(g.numpy()) for g in outer], summed, "a tape outside vmap, gradient")

    def _saved(self) -> None:
        tensors = [constant(x) for x in self.arrays]
        traced = function(self.of_list)
        traced(tensors)
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "op.h5"
            save(Module(), path, {"run": traced}, golden=False)
            self.compare(load(path).signatures["run"](tensors), what="loaded, ")

    def _float32(self) -> str | None:
        small = {"f": "float32", "c": "complex64"}
        if not any(x.dtype.kind in small for x in self.arrays):
            return "no floating inputs"
        tensors = [constant(x.astype(small.get(x.dtype.kind, x.dtype))) for x in self.arrays]
        got = self.slopes(*tensors)
        self._widened(got, tensors)
        self.compare(got, SINGLE, dtypes=False)
        want, count = self.want
        self.compare_dtypes(got, tensors)
        for i, (mine, right) in enumerate(zip(got[:count], want, strict=False)):
            if mine.dtype.kind != right.dtype.kind:
                raise AssertionError(
                    f"result {i} has dtype {mine.dtype}, but {right.dtype} in double precision"
                )
        return None

    def _widened(self, got: Sequence[Any], tensors: Sequence[Any]) -> None:
        """Compare the dtypes of results in single precision with the shape rule's."""
        try:
            graph = function(self.of_list).get_concrete_function(tensors).graph
        except (TypeError, ValueError):  # for ops that cannot be traced, "traced" is skipped
            return
        given = ", ".join(sorted({x.dtype.name for x in tensors}))
        pairs = zip(got[: self.want[1]], graph.outputs, strict=False)
        for i, (real, symbol) in enumerate(pairs):
            if real.dtype != symbol.dtype:
                which = "the result" if self.want[1] == 1 else f"result {i}"
                raise AssertionError(
                    f"{which} is {real.dtype} for {given} inputs, but the shape rule says "
                    f"{symbol.dtype}; let the kernel keep the dtype (xp.asarray(1, dtype=x.dtype))"
                )

    def compare_dtypes(self, got: Sequence[Any], tensors: Sequence[Any]) -> None:
        """Compare the dtypes of gradients with those of their inputs."""
        sources = [x for x in tensors if x.dtype.kind in "fc"]
        for i, (gradient, x) in enumerate(zip(got[self.want[1] :], sources, strict=False)):
            if gradient.dtype != x.dtype:
                raise AssertionError(
                    f"gradient {i} has dtype {gradient.dtype}, its input {x.dtype}"
                )

    def _float16(self) -> str | None:
        if not any(x.dtype.kind == "f" for x in self.arrays):
            return "no real inputs"
        tensors = [constant(x.astype("float16") if x.dtype.kind == "f" else x) for x in self.arrays]
        try:
            got = self.slopes(*tensors)
        except TypeError as error:
            return f"refused: {error}"
        self.compare_dtypes(got, tensors)
        return None

    def _strided(self) -> str | None:
        if not any(x.ndim for x in self.arrays):
            return "no axes"
        spread = [np.repeat(x, 2, -1)[..., ::2] if x.ndim else x for x in self.arrays]
        self.compare(self.slopes(*map(Tensor, spread)), what="every second element, ")
        turned = [np.array(x.T, order="C").T for x in self.arrays]
        self.compare(self.slopes(*map(Tensor, turned)), what="transposed, ")
        return None

    def _empty(self) -> str | None:
        if not (isinstance(self.op, Op) and self.op.batch == "elementwise"):
            return "not elementwise"
        if not self.arrays:
            return "no arrays"
        tensors = [constant(np.zeros((0, 3), x.dtype)) for x in self.arrays]
        for y in self.slopes(*tensors):
            if y.shape != (0, 3):
                raise AssertionError(
                    f"for inputs of shape (0, 3), a result or gradient has shape {y.shape}"
                )
        return None


def varied(x: Array) -> Array:
    """Return another example: close to the first, or reordered if nothing can be close."""
    if x.dtype.kind in "fc":
        return x * (1 + 2.0**-7)
    return np.array(~x if x.dtype.kind == "b" and not x.ndim else np.flip(x))


def _same(got: Sequence[Array], want: Sequence[Array], what: str) -> None:
    for i, (mine, right) in enumerate(zip(got, want, strict=True)):
        if mine.shape != right.shape or mine.dtype != right.dtype:
            raise AssertionError(
                f"{what} {i} is {describe(mine.shape, mine.dtype)} instead of "
                f"{describe(right.shape, right.dtype)}"
            )
        finite = np.abs(right[np.isfinite(right)]) if right.dtype.kind in "fc" else np.empty(0)
        scale = max(1.0, float(finite.max())) if finite.size else 1.0
        if not np.allclose(mine, right, rtol=1e-9, atol=1e-9 * scale, equal_nan=True):
            raise AssertionError(f"{what} {i} is {mine} instead of {right}")


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

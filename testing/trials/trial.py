"""``Trial``: an op with a sample, its runs, and checks with other dtypes, layouts and backends.

The errors of checks say where they occurred, and what to write instead.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...core.errors import BackendMismatch, GradientError, PluginError
from ...core.extend import (
    SCALARS,
    GradientTape,
    Op,
    Tensor,
    TensorSpec,
    backend_of,
    constant,
    describe,
    function,
    is_transformed,
    registry,
)
from ..gradients import alike
from ..samples import Sample

Array = NDArray[Any]

# eager and traced runs may differ in the order of a sum
SAME = 1e-11
# the tolerance of single precision
SINGLE = 3e-4


class Trial:
    """One op with one sample.

    Parameters
    ----------
    op, sample, seed, backends
        As for :func:`gradtape.testing.check_op`.
    """

    def __init__(
        self, op: Op | Callable[..., Any], sample: Sample, seed: int, backends: Sequence[str] = ()
    ) -> None:
        self.op, self.sample, self.seed, self.backends = op, sample, seed, backends
        self.arrays = [x for x in sample.inputs if type(x) not in SCALARS]
        self.differentiable = any(x.dtype.kind in "fc" for x in self.arrays) and (
            op.differentiable if isinstance(op, Op) else True
        )
        self._want: tuple[list[Array], int] | None = None

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

    def of_list(self, tensors: Sequence[Any]) -> list[Any]:
        """Run ``slopes`` on a list of tensors: traces need a fixed number of arguments."""
        return self.slopes(*tensors)

    def compare_dtypes(self, got: Sequence[Any], tensors: Sequence[Any]) -> None:
        """Compare the dtypes of gradients with those of their inputs."""
        sources = [x for x in tensors if x.dtype.kind in "fc"]
        for i, (gradient, x) in enumerate(zip(got[self.want[1] :], sources, strict=False)):
            if gradient.dtype != x.dtype:
                raise AssertionError(
                    f"gradient {i} has dtype {gradient.dtype}, its input {x.dtype}"
                )


def same_arrays(got: Sequence[Array], want: Sequence[Array], what: str) -> None:
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


@contextmanager
def naming(where: str) -> Iterator[None]:
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
        f"them with operators and {use}{like}, from gradtape.plugin"
    )


# -- other dtypes, layouts and backends ------------------------------------------------------------


def float32(trial: Trial) -> str | None:
    """Check single precision: values, dtypes, and the shape rule."""
    small = {"f": "float32", "c": "complex64"}
    if not any(x.dtype.kind in small for x in trial.arrays):
        return "no floating inputs"
    tensors = [constant(x.astype(small.get(x.dtype.kind, x.dtype))) for x in trial.arrays]
    got = trial.slopes(*tensors)
    _widened(trial, got, tensors)
    trial.compare(got, SINGLE, dtypes=False)
    want, count = trial.want
    trial.compare_dtypes(got, tensors)
    for i, (mine, right) in enumerate(zip(got[:count], want, strict=False)):
        if mine.dtype.kind != right.dtype.kind:
            raise AssertionError(
                f"result {i} has dtype {mine.dtype}, but {right.dtype} in double precision"
            )
    return None


def _widened(trial: Trial, got: Sequence[Any], tensors: Sequence[Any]) -> None:
    """Compare the shapes and dtypes of results in less precision with the shape rule's."""
    try:
        graph = function(trial.of_list).get_concrete_function(tensors).graph
    except (TypeError, ValueError):  # for ops that cannot be traced, "traced" is skipped
        return
    given = ", ".join(sorted({x.dtype.name for x in tensors}))
    pairs = zip(got[: trial.want[1]], graph.outputs, strict=False)
    for i, (real, symbol) in enumerate(pairs):
        which = "the result" if trial.want[1] == 1 else f"result {i}"
        if not TensorSpec(symbol.shape, symbol.dtype).admits(real.shape):
            raise AssertionError(
                f"{which} has shape {real.shape} for {given} inputs, but the shape rule says "
                f"{symbol.shape}"
            )
        if real.dtype != symbol.dtype:
            raise AssertionError(
                f"{which} is {real.dtype} for {given} inputs, but the shape rule says "
                f"{symbol.dtype}; let the kernel keep the dtype (xp.asarray(1, dtype=x.dtype))"
            )


def float16(trial: Trial) -> str | None:
    """Check the dtypes of half precision, and the shape rule."""
    if not any(x.dtype.kind == "f" for x in trial.arrays):
        return "no real inputs"
    tensors = [constant(x.astype("float16") if x.dtype.kind == "f" else x) for x in trial.arrays]
    try:
        got = trial.slopes(*tensors)
    except TypeError as error:
        return f"refused: {error}"
    _widened(trial, got, tensors)
    trial.compare_dtypes(got, tensors)
    return None


def strided(trial: Trial) -> str | None:
    """Check arrays that are not contiguous."""
    if not any(x.ndim for x in trial.arrays):
        return "no axes"
    spread = [np.repeat(x, 2, -1)[..., ::2] if x.ndim else x for x in trial.arrays]
    trial.compare(trial.slopes(*map(Tensor, spread)), what="every second element, ")
    turned = [np.array(x.T, order="C").T for x in trial.arrays]
    trial.compare(trial.slopes(*map(Tensor, turned)), what="transposed, ")
    return None


def empty(trial: Trial) -> str | None:
    """Check that an elementwise op takes arrays without elements."""
    if not (isinstance(trial.op, Op) and trial.op.batch == "elementwise"):
        return "not elementwise"
    if not trial.arrays:
        return "no arrays"
    tensors = [constant(np.zeros((0, 3), x.dtype)) for x in trial.arrays]
    for y in trial.slopes(*tensors):
        if y.shape != (0, 3):
            raise AssertionError(
                f"for inputs of shape (0, 3), a result or gradient has shape {y.shape}"
            )
    return None


#: The tolerance of values that another library computes.
NEAR = 1e-9


def backend(trial: Trial) -> str | None:
    """Check results and gradients on each of the trial's backends."""
    if not trial.arrays:
        return "no arrays"
    if not trial.backends:
        return "no other backend; pip install array-api-strict"
    refusals = [reason for name in trial.backends if (reason := _on(trial, name)) is not None]
    return refusals[0] if len(refusals) == len(trial.backends) else None


def _on(trial: Trial, name: str) -> str | None:
    """Check one backend; return why the op cannot run there."""
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        try:
            tensors = [constant(x).to(name) for x in trial.arrays]
            _check_places(trial.run(*tensors), name, "result")
            found = trial.slopes(*tensors)
        except (AssertionError, GradientError, PluginError):
            raise
        except Exception as error:  # what the library lacks; a function may hold arrays of NumPy
            if isinstance(error, BackendMismatch) and isinstance(trial.op, Op):
                raise
            return f"refused: {name}: {type(error).__name__}: {error}"
        _check_places(found, name, "result or gradient")
        trial.compare([y.to("numpy") for y in found], NEAR, what=f"on {name}, ")
    return None


def _check_places(found: Sequence[Any], name: str, what: str) -> None:
    for i, y in enumerate(found):
        where = f"{what} {i}" if len(found) > 1 else f"the {what}"
        array = getattr(y, "array", y)
        owner = "Python" if type(array) in SCALARS else backend_of(array).name
        if owner != name.partition(":")[0]:
            raise AssertionError(
                f"{where} for arrays of {name} is an array of {owner}; use the functions of xp, "
                "which is the namespace of the kernel's arrays"
            )
        if getattr(array, "weak_type", False):
            raise AssertionError(
                f"{where} on {name} has a weak dtype, as if it were a Python number; let the "
                "kernel give it one (xp.asarray(result, dtype=x.dtype))"
            )

"""``Trial``: an op with a sample, and the runs whose results the checks compare.

The errors of checks say where they occurred, and what to write instead.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...core.extend import SCALARS, GradientTape, Op, constant, describe, is_transformed, registry
from ..gradients import alike
from ..samples import Sample

Array = NDArray[Any]

# eager and traced runs may differ in the order of a sum
SAME = 1e-11


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

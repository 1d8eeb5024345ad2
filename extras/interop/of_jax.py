"""JAX's functions in programs of gradtape.

A call is one record of a tape, whose gradient is JAX's; in a trace it is a ``host_call``. On the
backend ``"jax"`` arrays stay where they are, and a compiler that traces the call traces JAX's
function.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import jax
import numpy as np

from ..core.extend import (
    Batched,
    Tensor,
    TensorSpec,
    Variable,
    active_graph,
    active_tapes,
    current_backend,
    flatten,
    is_differentiable,
    public_package,
)
from .calls import IN_VMAP, name_of, pulled_in_trace, recorded, rows_of, specs_of, with_rows
from .jax_arrays import array_in_jax, checked, conjugate, wide_enough
from .trees import Parts

Compute = Callable[[list[Any]], list[Any]]


class Call:
    """A call of a function of JAX on arrays of gradtape.

    Parameters
    ----------
    name
        The function's name.
    compute
        A function of a list of JAX's arrays that returns one.
    xs
        The arguments.
    """

    def __init__(self, name: str, compute: Compute, xs: Sequence[Tensor]) -> None:
        self._name, self._compute, self._xs = name, compute, xs
        self._stays = any(isinstance(x.array, jax.Array) for x in xs) or (
            not xs and current_backend().name == "jax"
        )
        self._smooth = [i for i, x in enumerate(xs) if is_differentiable(x.dtype)]

    def _out(self, array: Any) -> Any:
        return checked(array) if self._stays else np.asarray(checked(array))

    def results(self) -> list[Tensor]:
        """Return the results, which tapes follow to the arguments."""
        with wide_enough(x.dtype for x in self._xs):
            self._given = [array_in_jax(x.array) for x in self._xs]
            if not active_tapes.get():
                return [Tensor(self._out(y)) for y in self._compute(self._given)]
            found, self._pull = self._vjp(self._given)
        self._ends = [(y.shape, y.dtype) for y in found]
        inputs = [self._xs[i] for i in self._smooth]
        return recorded(self._name, inputs, [self._out(y) for y in found], self.pull)

    def _vjp(self, given: Sequence[Any]) -> Any:
        """Return the results for arrays, and a function from upstream gradients to gradients."""

        def of_smooth(*smooth: Any) -> list[Any]:
            xs = list(given)
            for i, x in zip(self._smooth, smooth, strict=True):
                xs[i] = x
            return self._compute(xs)

        return jax.vjp(of_smooth, *(given[i] for i in self._smooth))

    def pull(self, *upstream: Tensor) -> list[Any]:
        """Return the gradients of the differentiable arguments."""
        return pulled_in_trace([self._xs[i] for i in self._smooth], self._pulled, upstream)

    def _pulled(self, inputs: Sequence[Tensor], upstream: Sequence[Tensor]) -> list[Any]:
        kinds = [is_differentiable(np.dtype(dtype)) for _, dtype in self._ends]
        ends = [g for g, smooth in zip(upstream, kinds, strict=True) if smooth]
        rows = rows_of([g.array for g in ends])
        if active_tapes.get():
            if rows:
                raise NotImplementedError(
                    f"from_jax: the gradient of {self._name} is differentiated for many rows at "
                    "once while a tape records: take rows one by one, as in gradtape.grad"
                )
            count = len(self._xs)

            def pulled(given: list[Any]) -> list[Any]:
                return self._gradients(self._vjp(given[:count])[1], given[count:], kinds)

            name = f"gradient of {self._name}"
            xs = list(self._xs)
            for i, x in zip(self._smooth, inputs, strict=True):
                xs[i] = x
            return Call(name, pulled, [*xs, *ends]).results()
        with wide_enough(x.dtype for x in self._xs):
            gs = [array_in_jax(with_rows(g.array, rows)) for g in ends]
            if not rows:
                return [Tensor(self._out(g)) for g in self._gradients(self._pull, gs, kinds)]
            many = jax.vmap(lambda *gs: self._gradients(self._pull, list(gs), kinds))(*gs)
            return [Tensor(Batched(self._out(g), rows[0].level)) for g in many]

    def _gradients(self, pull: Any, upstream: list[Any], kinds: Sequence[bool]) -> list[Any]:
        """Return JAX's gradients; those of complex numbers are conjugates of gradtape's."""
        rest = iter(upstream)
        ends = [
            conjugate(next(rest)) if smooth else np.zeros(shape, jax.dtypes.float0)
            for (shape, _), smooth in zip(self._ends, kinds, strict=True)
        ]
        return [conjugate(g) for g in pull(ends)]


def gradtape_function(fn: Callable[..., Any], results: Any) -> Callable[..., Any]:
    """Return a function of JAX as one of gradtape."""
    name = name_of(fn)

    def of_jax(*args: Any, **kwargs: Any) -> Any:
        given = Parts((args, kwargs), (Tensor, Variable))
        xs = given.taken()
        if any(getattr(x.array, "batched", False) for x in xs):
            raise NotImplementedError(f"from_jax: {name} computes in JAX, and {IN_VMAP}")
        parts: list[Parts] = []

        def compute(arrays: list[Any]) -> list[Any]:
            ins, keywords = given.filled(arrays)
            result = fn(*ins, **keywords)
            _check_leaves(result)
            parts[:] = [Parts(result, (jax.Array, np.ndarray))]
            return parts[0].taken()

        if active_graph.get() is None:
            found = Call(name, compute, xs).results()
            return parts[0].filled(found)
        if results is None:
            structure, specs = _found_out(name, compute, parts, xs)
        else:
            structure, specs = Parts(results, TensorSpec), flatten(results)
        call = public_package().host_call
        found = call(lambda *xs: Call(name, compute, xs).results(), *xs, results=list(specs))
        return structure.filled(found)

    of_jax.__name__ = of_jax.__qualname__ = name
    of_jax.__doc__ = getattr(fn, "__doc__", None)
    of_jax.__wrapped__ = fn  # type: ignore[attr-defined]
    return of_jax


def _check_leaves(result: Any) -> None:
    """Raise if arrays are in containers that would keep them from gradtape."""
    for leaf in flatten(result):
        if not isinstance(leaf, jax.Array) and any(
            isinstance(x, jax.Array) for x in jax.tree.leaves(leaf)
        ):
            raise TypeError(
                f"from_jax: the result has arrays in a {type(leaf).__name__}: return them in "
                "lists, tuples and dicts"
            )


def _found_out(
    name: str, compute: Compute, parts: list[Parts], xs: Sequence[Tensor]
) -> tuple[Parts, list[TensorSpec]]:
    def of_shapes(shapes: Sequence[Sequence[int]]) -> Parts:
        spec: Any = jax.ShapeDtypeStruct
        specs = [spec(s, x.dtype) for s, x in zip(shapes, xs, strict=True)]
        with wide_enough(x.dtype for x in xs):
            found = jax.eval_shape(lambda *xs: compute(list(xs)), *specs)
        parts[0].tensors = list(found)
        return parts[0]

    return specs_of("from_jax", name, of_shapes, xs)

"""``host_call``: a Python function that each run of a trace calls with the run's values."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any
from weakref import WeakKeyDictionary

from ....core.extend import (
    F,
    GradientTape,
    Tensor,
    TensorSpec,
    Variable,
    active_graph,
    as_tensor,
    flatten,
    init_scope,
    is_differentiable,
    ops,
    pack_like,
)
from ..common.batching import refused
from ..common.op_builders import op

#: By trace, the variable that counts the calls of its runs: calls that depend on it stay in order.
_COUNTS: WeakKeyDictionary[Any, Variable] = WeakKeyDictionary()


class PythonCall:
    """A Python function of tensors, with the specs of its results."""

    __slots__ = ("function", "specs")

    def __init__(self, function: Callable[..., Sequence[Any]], specs: Sequence[TensorSpec]) -> None:
        self.function, self.specs = function, tuple(specs)

    def __call__(self, tensors: Sequence[Tensor]) -> list[Tensor]:
        """Return the function's results, in the declared dtypes; raise if shapes differ."""
        found = [as_tensor(y) for y in self.function(*tensors)]
        if len(found) != len(self.specs):
            raise ValueError(
                f"host_call: the function returned {len(found)} values, not {len(self.specs)}"
            )
        for i, (y, spec) in enumerate(zip(found, self.specs)):
            if not spec.admits(y.shape):
                raise ValueError(f"host_call: result {i} has shape {y.shape}, not {spec}")
            if y.dtype != spec.dtype:
                found[i] = y.astype(spec.dtype)
        return found

    def pulled(self, inputs: Sequence[Any], wanted: Sequence[bool]) -> PythonCall:
        """Return a function of the inputs and upstream gradients that returns input gradients."""
        count = len(inputs)

        def pull(*values: Tensor) -> list[Tensor]:
            xs, gs = values[:count], values[count:]
            with GradientTape() as tape:
                for x in xs:
                    if is_differentiable(x.dtype):
                        tape.watch(x)
                ys = self(xs)
            smooth = [(y, g) for y, g in zip(ys, gs) if is_differentiable(y.dtype)]
            sources = [x for x, want in zip(xs, wanted) if want]
            return tape.gradient(
                [y for y, _ in smooth],
                sources,
                [g for _, g in smooth],
                unconnected_gradients="zero",
            )

        specs = [TensorSpec(None, x.dtype) for x, want in zip(inputs, wanted) if want]
        return PythonCall(pull, specs)


def _kernel(xp: Any, *arrays: Any, call: Any = None) -> tuple[Any, ...]:
    """Return the count plus one, and the function's results for the other arrays."""
    count, *values = arrays
    with init_scope():
        found = call([Tensor(array) for array in values])
    return (count + 1, *(y.array for y in found))


def _infer(count: Any, *inputs: Any, call: Any) -> list[tuple[Any, Any]]:
    return [(count.shape, count.dtype), *((spec.dims, spec.dtype) for spec in call.specs)]


def _vjp(gs: Any, inputs: Any, outputs: Any, needed: Any, *, call: Any) -> list[Any]:
    count, *xs = inputs
    wanted = [bool(want) for want in needed[1:]]
    pull = call.pulled(xs, wanted)
    ends = [F.zeros_like(y) if g is None else g for g, y in zip(gs[1:], outputs[1:])]
    found = iter(F.host_call(count, *xs, *ends, call=pull)[1:])
    return [None, *(next(found) if want else None for want in wanted)]


op(
    "host_call",
    _kernel,
    vjp=_vjp,
    infer=_infer,
    batch=refused("a Python function would get many examples at once; call it outside of vmap"),
    doc="Call a Python function with values, and count the call.",
)


def host_call(function: Callable[..., Any], *args: Any, results: Any = None) -> Any:
    """Call a Python function with values; in a trace, in each run of it.

    Outside traces it is a plain call. A trace records the call, and each run makes it with the
    run's values, in the order of the calls. Use it for functions that print, check, or query an
    environment. Gradients pass through it if the function consists of gradtape's ops.

    Parameters
    ----------
    function
        A function of tensors, as many as there are ``args``.
    args
        Tensors, or values that convert to tensors.
    results
        A :class:`TensorSpec` for each tensor that it returns, in nested containers; shapes may be
        unknown. None for a function that returns nothing.

    Returns
    -------
    object
        The function's results, in the structure of ``results``.

    Raises
    ------
    ValueError
        If the function's results do not match ``results``.
    TraceError
        In a trace inside ``vmap``, where there is no single value.

    Notes
    -----
    A trace with such a call cannot be saved: a file holds no Python code.

    Examples
    --------
    >>> seen = []
    >>> @gt.function
    ... def double(x):
    ...     gt.host_call(lambda x: seen.append(x.item()), x)
    ...     return x * 2.0
    >>> double(gt.constant(1.0)).item(), double(gt.constant(3.0)).item(), seen
    (2.0, 6.0, [1.0, 3.0])
    """
    specs = [] if results is None else flatten(results)
    for spec in specs:
        if not isinstance(spec, TensorSpec):
            raise TypeError(f"host_call: results must hold TensorSpecs, got {spec!r}")

    def flat(*tensors: Tensor) -> list[Any]:
        found = function(*tensors)
        return [] if results is None else flatten(found)

    call = PythonCall(flat, specs)
    given = [as_tensor(x) for x in args]
    graph: Any = active_graph.get()
    if graph is None:
        found = call(given)
    else:
        while graph.parent is not None:
            graph = graph.parent
        count = _COUNTS.get(graph)
        if count is None:
            with init_scope():
                count = _COUNTS[graph] = Variable(0, trainable=False, name="host_calls")
        after, *found = ops["host_call"](count, *given, call=call)
        count.assign(after)
    return None if results is None else pack_like(results, found)

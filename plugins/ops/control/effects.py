"""Effects of a run, which prints, checks and calls Python: a trace keeps them, in order.

``host_call`` is a Python function that each run of a trace calls with the run's values.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import Any
from weakref import WeakKeyDictionary

from ....core.extend import (
    F,
    GradientTape,
    Op,
    Tensor,
    TensorSpec,
    Variable,
    active_graph,
    as_batched,
    as_tensor,
    flatten,
    init_scope,
    is_differentiable,
    is_transformed,
    muted,
    ops,
    pack_like,
    to_numpy,
    without_expressions,
)
from ..common.axes import refused
from ..common.op_builders import op

_STREAMS = ("stdout", "stderr")
_ERRORS: dict[str, type[Exception]] = {
    "AssertionError": AssertionError,
    "OverflowError": OverflowError,
    "UnboundLocalError": UnboundLocalError,
}


def _text(values: Sequence[Any], pieces: Sequence[str], formats: Sequence[str]) -> str:
    """Return pieces of text with the values between them."""
    told = [pieces[0]]
    for value, piece, form in zip(values, pieces[1:], formats, strict=False):
        tensor = Tensor(value)
        told += [repr(tensor) if form == "!r" else format(tensor, form), piece]
    return "".join(told)


def _infer_effect(*specs: Any, pieces: Any, formats: Any, **params: Any) -> tuple[Any, Any]:
    texts = all(type(x) is tuple and all(type(y) is str for y in x) for x in (pieces, formats))
    if not texts or len(pieces) != len(formats) + 1:
        raise ValueError("its text does not fit its values")
    return (), "bool"


def _print_kernel(
    xp: Any,
    acts: Any,
    *values: Any,
    pieces: tuple[str, ...],
    formats: tuple[str, ...],
    stream: str = "stdout",
    flush: bool = False,
    by_example: tuple[bool, ...] = (),
) -> Any:
    chosen = to_numpy(acts)
    if not muted.get() and chosen.any():
        if chosen.ndim == 1 and not chosen.all():
            told = zip(values, by_example, strict=True)
            values = tuple([to_numpy(x)[chosen] if each else x for x, each in told])
        file = getattr(sys, stream if stream in _STREAMS else "stdout")
        print(_text(values, pieces, formats), end="", file=file, flush=flush)
    return xp.ones((), dtype=xp.bool)


def _check_kernel(
    xp: Any,
    acts: Any,
    holds: Any,
    *values: Any,
    pieces: tuple[str, ...],
    formats: tuple[str, ...],
    error: str = "AssertionError",
) -> Any:
    if not muted.get() and not bool(xp.all(holds | ~acts)):
        raised = _ERRORS.get(error, AssertionError)(_text(values, pieces, formats))
        raised.named_op = "check"  # type: ignore[attr-defined]
        raise raised
    return xp.ones((), dtype=xp.bool)


def _print_rule(op: Op, xs: list[Any], batched: list[bool], params: dict[str, Any]) -> Any:
    """Print once for all examples, which are along the first axis of batched values."""
    beside = xs[batched.index(True)]
    done = op.raw(*xs, **{**params, "by_example": tuple(batched[1:])})
    return as_batched(done, beside)


def _check_rule(op: Op, xs: list[Any], batched: list[bool], params: dict[str, Any]) -> Any:
    beside = xs[batched.index(True)]
    if batched[0] != batched[1]:
        xs[:2] = [x if b else as_batched(x, beside) for x, b in zip(xs[:2], batched)]
    return as_batched(op.raw(*xs, **params), beside)


_TEXT = {"pieces": (), "formats": ()}
op(
    "print",
    _print_kernel,
    inputs=("acts", "*values"),
    params={**_TEXT, "stream": "stdout", "flush": False, "by_example": ()},
    infer=lambda acts, *specs, **params: _infer_effect(*specs, **params),
    batch=_print_rule,
    effect=True,
    doc="Print values between pieces of text, in each run; return True.",
)
op(
    "check",
    _check_kernel,
    inputs=("acts", "holds", "*values"),
    params={**_TEXT, "error": "AssertionError"},
    infer=lambda acts, holds, *specs, **params: _infer_effect(*specs, **params),
    batch=_check_rule,
    effect=True,
    doc="Raise an error with values in its text unless ``holds`` is true; return True.",
)


def _act(name: str, values: Sequence[Any], **params: Any) -> None:
    """Run an op for its effect; in a trace, in each run of it."""
    tensors = [as_tensor(x) for x in (True, *values)]
    graph = active_graph.get()
    if graph is None or any(is_transformed(x.array) for x in tensors):
        ops[name](*tensors, **params)
    else:  # with constants only, but on a path that a run may not take
        graph.add(ops[name], [x.array for x in tensors], params)


def print_values(
    values: Sequence[Any],
    pieces: Sequence[str],
    formats: Sequence[str] | None = None,
    stream: str = "stdout",
    flush: bool = False,
) -> None:
    """Print values between pieces of text; in a trace, in each run of it.

    Parameters
    ----------
    values
        Tensors.
    pieces
        The text before each of them, and after the last one.
    formats
        How to format each: a format specification, or ``"!r"`` for its ``repr``.
    stream
        ``"stdout"`` or ``"stderr"``.
    flush
        Whether to flush the stream.
    """
    formats = ("",) * len(values) if formats is None else tuple(formats)
    _act("print", values, pieces=tuple(pieces), formats=formats, stream=stream, flush=flush)


def check(
    holds: Any,
    values: Sequence[Any],
    pieces: Sequence[str],
    formats: Sequence[str] | None = None,
    error: str = "AssertionError",
) -> None:
    """Raise an error unless a value is true everywhere; in a trace, in each run of it.

    Parameters
    ----------
    holds
        A boolean tensor.
    values, pieces, formats
        The message, as for :func:`print_values`.
    error
        ``"AssertionError"``, ``"OverflowError"`` or ``"UnboundLocalError"``.
    """
    formats = ("",) * len(values) if formats is None else tuple(formats)
    _act("check", [holds, *values], pieces=tuple(pieces), formats=formats, error=error)


# -- host_call -------------------------------------------------------------------------------------

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
            if y.dtype.kind == "c" and spec.dtype.kind != "c":
                raise ValueError(
                    f"host_call: result {i} is {y.dtype}, not {spec}: declare a complex dtype, or "
                    "return its real part"
                )
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

        shapes = [without_expressions(x.shape) for x in inputs]
        specs = [TensorSpec(s, x.dtype) for s, x, want in zip(shapes, inputs, wanted) if want]
        return PythonCall(pull, specs)


def _kernel(xp: Any, *arrays: Any, call: Any = None) -> tuple[Any, ...]:
    """Return the count plus one, and the function's results for the other arrays."""
    count, *values = arrays
    with init_scope():
        found = call([Tensor(array) for array in values])
    return (count + 1, *(y.array for y in found))


def _infer_host_call(count: Any, *inputs: Any, call: Any) -> list[tuple[Any, Any]]:
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
    infer=_infer_host_call,
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

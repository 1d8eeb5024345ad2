"""Effects of a run, which prints and checks: a trace keeps them, in order."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

from ....core.extend import (
    Op,
    Tensor,
    active_graph,
    as_batched,
    as_tensor,
    is_transformed,
    muted,
    ops,
    to_numpy,
)
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


def _infer(*specs: Any, pieces: Any, formats: Any, **params: Any) -> tuple[Any, Any]:
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
    infer=lambda acts, *specs, **params: _infer(*specs, **params),
    batch=_print_rule,
    effect=True,
    doc="Print values between pieces of text, in each run; return True.",
)
op(
    "check",
    _check_kernel,
    inputs=("acts", "holds", "*values"),
    params={**_TEXT, "error": "AssertionError"},
    infer=lambda acts, holds, *specs, **params: _infer(*specs, **params),
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

"""Control flow with TensorFlow's arguments: ``tf.cond``, ``while_loop``, ``scan``, ``map_fn``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import gradtape

from ....core.extend import as_size, flatten, map_structure, pack_like
from ..names import adapts
from ..tensors import convert_to_tensor

__all__ = ["cond", "map_fn", "scan", "while_loop"]


@adapts("cond")
def cond(
    pred: Any,
    true_fn: Callable[[], Any] | None = None,
    false_fn: Callable[[], Any] | None = None,
    name: str | None = None,
) -> Any:
    """Return ``true_fn()`` if ``pred`` holds, else ``false_fn()``; see :func:`gradtape.cond`."""
    if true_fn is None or false_fn is None:
        raise TypeError("cond: give both true_fn and false_fn")
    return gradtape.cond(convert_to_tensor(pred), _to_tensors(true_fn), _to_tensors(false_fn))


def _to_tensors(fn: Callable[..., Any]) -> Callable[..., Any]:
    """Return ``fn`` with the numbers that it returns as TensorFlow's tensors."""

    def wrapped(*args: Any) -> Any:
        return map_structure(lambda x: None if x is None else convert_to_tensor(x), fn(*args))

    return wrapped


@adapts("while_loop")
def while_loop(
    cond: Callable[..., Any],
    body: Callable[..., Any],
    loop_vars: Any,
    shape_invariants: Any = None,
    parallel_iterations: int = 10,
    back_prop: bool = True,
    swap_memory: bool = False,
    maximum_iterations: Any = None,
    name: str | None = None,
) -> Any:
    """Repeat ``loop_vars = body(*loop_vars)`` while ``cond(*loop_vars)`` holds.

    Parameters
    ----------
    cond, body, loop_vars
        As for :func:`gradtape.while_loop`. ``body`` may return its results in a list or a tuple.
    shape_invariants, parallel_iterations, swap_memory
        Ignored.
    back_prop
        If false, gradients end at the loop.
    maximum_iterations
        The most steps to run.
    """
    start = map_structure(convert_to_tensor, loop_vars)
    kinds = [x.dtype for x in flatten(start)]

    def step(*args: Any) -> Any:
        found = flatten(body(*args))
        if len(found) != len(kinds):
            raise ValueError(
                f"while_loop: body returns {len(found)} values for {len(kinds)} loop_vars"
            )
        return pack_like(start, [_in_dtype(x, kind) for x, kind in zip(found, kinds)])

    limit = None if maximum_iterations is None else as_size(maximum_iterations, "while_loop")
    result = gradtape.while_loop(cond, step, start, limit)
    return result if back_prop else map_structure(gradtape.stop_gradient, result)


def _in_dtype(value: Any, dtype: Any) -> Any:
    """Return a number in the dtype of the loop variable that it is for; a tensor keeps its own."""
    return value if hasattr(value, "dtype") else convert_to_tensor(value, dtype)


@adapts("scan")
def scan(
    fn: Callable[[Any, Any], Any],
    elems: Any,
    initializer: Any = None,
    parallel_iterations: int = 10,
    back_prop: bool = True,
    swap_memory: bool = False,
    infer_shape: bool = True,
    reverse: bool = False,
    name: str | None = None,
) -> Any:
    """Return all of the values of ``a = fn(a, elem)`` along the first axis of ``elems``.

    Parameters
    ----------
    fn
        A function of the value so far and an element, each in its structure.
    elems
        Tensors whose first axes are the steps.
    initializer
        The first value, which is not part of the result. Without it, it is the first element,
        which is.
    parallel_iterations, swap_memory, infer_shape
        Ignored.
    back_prop
        If false, gradients end here.
    reverse
        Run from the last element to the first.
    """
    elems = map_structure(convert_to_tensor, elems)
    first = None
    if initializer is None:
        first = map_structure(lambda x: x[-1] if reverse else x[0], elems)
        elems = map_structure(lambda x: x[:-1] if reverse else x[1:], elems)
        initializer = first
    start = map_structure(convert_to_tensor, initializer)

    def step(carry: Any, x: Any) -> tuple[Any, Any]:
        kinds = [c.dtype for c in flatten(start)]
        found = flatten(fn(carry, x))
        new = pack_like(start, [_in_dtype(v, kind) for v, kind in zip(found, kinds)])
        return new, new

    _, result = gradtape.scan(step, start, elems, reverse=reverse)
    if first is not None:
        parts = zip(flatten(first), flatten(result))
        result = pack_like(
            start, [_joined(gradtape.expand_dims(a, 0), b, reverse) for a, b in parts]
        )
    return result if back_prop else map_structure(gradtape.stop_gradient, result)


def _joined(first: Any, others: Any, reverse: bool) -> Any:
    return gradtape.concatenate([others, first] if reverse else [first, others])


@adapts("map")
def map_fn(
    fn: Callable[[Any], Any],
    elems: Any,
    dtype: Any = None,
    parallel_iterations: int | None = None,
    back_prop: bool = True,
    swap_memory: bool = False,
    infer_shape: bool = True,
    name: str | None = None,
    fn_output_signature: Any = None,
) -> Any:
    """Apply ``fn`` to each element along the first axis of ``elems``; stack the results.

    Parameters
    ----------
    fn
        A function of one element, in the structure of ``elems``.
    elems
        Tensors, in any nested containers.
    dtype, fn_output_signature
        Ignored: results have the dtypes that ``fn`` gives them.
    parallel_iterations, swap_memory, infer_shape
        Ignored.
    back_prop
        If false, gradients end here.
    """
    result = gradtape.map(_to_tensors(fn), map_structure(convert_to_tensor, elems))
    return result if back_prop else map_structure(gradtape.stop_gradient, result)

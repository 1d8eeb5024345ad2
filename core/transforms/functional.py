"""Derivatives of functions, computed with tapes and accumulators; and ``flatten``."""

from __future__ import annotations

from collections.abc import Callable
from itertools import accumulate
from math import prod
from typing import Any

import numpy as np

from ..base.array_types import TensorSpec
from ..base.table import F, ops
from ..base.tree import flatten as leaves_of
from ..base.tree import pack_like
from ..errors import TraceError
from ..tape.missing_gradients import raise_or_warn, warn_of_breaks
from ..tensors.convert import as_tensor
from ..tensors.data_frames import holds_tensors
from ..tensors.tensor import Tensor
from .calls import (
    ArgNums,
    Call,
    Function,
    P,
    R,
    real_scalar,
    same_structure,
    tape_of,
)
from .forward import ForwardAccumulator
from .limits import derive, recorded
from .vmap import check_function, transform_of

# -- gradients -------------------------------------------------------------------------------------


def value_and_grad(
    fn: Callable[P, R], argnums: ArgNums = 0, has_aux: bool = False, *, strict: bool = False
) -> Callable[P, tuple[R, Any]]:
    """Return a function that computes ``fn`` and its gradient.

    Parameters
    ----------
    fn
        A function that returns a scalar tensor.
    argnums
        The arguments to differentiate with respect to: a position, a keyword's name, or a sequence
        of these. An argument may be any nested container of tensors, variables, arrays and Python
        floats.
    has_aux
        Whether ``fn`` returns a pair: the scalar and an auxiliary result to pass through.
    strict
        Raise ``GradientError`` if a gradient lacks a part, or is zeros, because a path is broken;
        see :class:`GradientTape`. If false, three kinds of breaks cause a ``BrokenPathWarning``,
        once per line: an op without gradient rules, a value that was read (``float(x)``) if the
        result depends on what was computed from it, and ``x.numpy()`` if there is no other path.

    Returns
    -------
    callable
        A function of the arguments of ``fn`` that returns ``(value, gradient)``, or
        ``((value, auxiliary), gradient)``. The gradient has the structure of the argument; if
        ``argnums`` is a sequence, it is a tuple of these. Without influence it is zeros.

    Raises
    ------
    TypeError
        When called, if the result is not a scalar, an argument is not floating, or ``argnums``
        does not name an argument.

    Examples
    --------
    >>> value, slope = gt.value_and_grad(lambda x: gt.sum(x * x))(gt.constant([1.0, 2.0]))
    >>> slope.tolist()
    [2.0, 4.0]
    """
    check_function("value_and_grad", fn)

    @transform_of(fn)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        call = Call("grad", argnums, args, kwargs)

        def run() -> tuple[Any, list[Any]]:
            with tape_of(strict=strict) as tape:
                tape.watch(call.sources)
                result, aux = call.run(fn, has_aux)
            target = real_scalar(result, "grad", tape)
            warn_of_breaks(tape, [target], call.sources)
            grads = tape.gradient(target, call.sources, unconnected_gradients="zero")
            return (result, aux), grads

        kept, grads = derive(run, strict)
        return (kept if has_aux else kept[0]), call.pack(grads)

    return wrapper


def grad(
    fn: Callable[P, Any], argnums: ArgNums = 0, has_aux: bool = False, *, strict: bool = False
) -> Callable[P, Any]:
    """Return a function that computes the gradient of ``fn``; see :func:`value_and_grad`.

    Parameters
    ----------
    fn
        A function that returns a scalar tensor.
    argnums
        The arguments to differentiate with respect to: a position, a keyword's name, or a sequence
        of these.
    has_aux
        Whether ``fn`` returns a pair: the scalar and an auxiliary result to pass through.
    strict
        Raise ``GradientError`` if a path is broken, as for :func:`value_and_grad`.

    Returns
    -------
    callable
        A function of the arguments of ``fn`` that returns the gradient, in the structure of the
        argument; with ``has_aux``, the pair ``(gradient, auxiliary)``.

    Raises
    ------
    TypeError
        When called, if the result is not a scalar, an argument is not floating, or ``argnums``
        does not name an argument.

    Examples
    --------
    >>> gt.grad(gt.grad(lambda x: x**3))(2.0).item()
    12.0
    """
    check_function("grad", fn)
    both = value_and_grad(fn, argnums, has_aux, strict=strict)

    @transform_of(fn)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        value, grads = both(*args, **kwargs)
        return (grads, value[1]) if has_aux else grads

    return wrapper


def vjp(
    fn: Function, *primals: Any, has_aux: bool = False, strict: bool = False
) -> tuple[Any, ...]:
    """Return ``fn(*primals)`` and a function that maps upstream gradients to the arguments'.

    Parameters
    ----------
    fn
        A function of ``primals`` that returns tensors in any nested containers.
    primals
        Its arguments; the derivatives are with respect to all of them.
    has_aux
        Whether ``fn`` returns a pair: the result and an auxiliary result to pass through.
    strict
        Make ``pull`` raise ``GradientError`` if a path is broken, as for :func:`value_and_grad`.

    Returns
    -------
    result
        The result of ``fn``.
    pull : callable
        ``pull(cotangents)`` takes upstream gradients in the structure of the result and returns a
        tuple with a gradient per argument. You can call it repeatedly, also inside ``vmap``.
    auxiliary
        With ``has_aux`` only: the auxiliary result of ``fn``.

    Raises
    ------
    TypeError
        If an argument is not floating; with ``has_aux``, if ``fn`` does not return a pair.
    ValueError
        If there are no arguments. From ``pull``, if the cotangents differ from the result in
        structure or shape.

    Examples
    --------
    >>> y, pull = gt.vjp(lambda a, b: a * b, gt.constant(2.0), gt.constant(5.0))
    >>> [g.item() for g in pull(gt.constant(1.0))]
    [5.0, 2.0]
    """
    call = Call("vjp", range(len(primals)), primals, {})

    def record() -> tuple[Any, ...]:
        with tape_of(persistent=True, strict=strict) as tape:
            tape.watch(call.sources)
            result, aux = call.run(fn, has_aux)
            leaves = _joined_leaves(result)
        targets = [as_tensor(leaf) for leaf in leaves]
        warn_of_breaks(tape, targets, call.sources)
        return result, aux, tape, targets

    def gradients(made: tuple[Any, ...], seeds: list[Any]) -> list[Any]:
        *_, tape, targets = made
        found: list[Any] = tape.gradient(
            targets, call.sources, output_gradients=seeds, unconnected_gradients="zero"
        )
        return found

    (result, aux, *_), pulled = recorded(record, gradients, strict)

    def pull(cotangents: Any) -> Any:
        same_structure("vjp", "cotangents", cotangents, "the result", result)
        return call.pack(pulled(leaves_of(cotangents)))

    return (result, pull, aux) if has_aux else (result, pull)


# -- forward mode ----------------------------------------------------------------------------------


def _arguments(primals: Any, tangents: Any, name: str) -> tuple[Any, Any]:
    """Return primals and tangents as tuples of arguments; a single one is the only argument."""
    if not isinstance(primals, (tuple, list)):
        primals, tangents = (primals,), (tangents,)
    if not isinstance(tangents, (tuple, list)) or len(tangents) != len(primals):
        raise TypeError(f"{name}: pass one tangent for each of the {len(primals)} arguments")
    return tuple(primals), tuple(tangents)


def jvp(
    fn: Function, primals: Any, tangents: Any, has_aux: bool = False, *, strict: bool = False
) -> tuple[Any, ...]:
    """Return ``fn(*primals)`` and its derivative in the direction ``tangents``.

    Parameters
    ----------
    fn
        A function that returns tensors in any nested containers.
    primals
        Its arguments: a tuple, or a single tensor.
    tangents
        The direction: a tensor for each leaf of ``primals``, in the same structure.
    has_aux
        Whether ``fn`` returns a pair: the result and an auxiliary result to pass through.
    strict
        Raise ``GradientError`` if a path is broken, as for :func:`value_and_grad`.

    Returns
    -------
    result
        The result of ``fn``.
    tangent
        The derivative, in the structure of the result; zeros without influence.
    auxiliary
        With ``has_aux`` only: the auxiliary result of ``fn``.

    Raises
    ------
    TypeError
        If an argument is not floating, or there are not as many tangents as arguments.
    ValueError
        If tangents differ from the arguments in structure or shape.
    GradientError
        If ``fn`` has a custom gradient that is not linear, and so has no forward mode.

    Examples
    --------
    >>> y, slope = gt.jvp(gt.sin, gt.constant(0.0), gt.constant(2.0))
    >>> slope.item()
    2.0
    """
    primals, tangents = _arguments(primals, tangents, "jvp")
    same_structure("jvp", "tangents", tangents, "the arguments", primals)
    call = Call("jvp", range(len(primals)), primals, {})
    given = leaves_of(tangents)
    result, tangent, aux = push(fn, call, call.sources, given, has_aux, strict)
    return (result, tangent, aux) if has_aux else (result, tangent)


def push(
    fn: Function,
    call: Call,
    sources: list[Any],
    tangents: list[Any],
    has_aux: bool = False,
    strict: bool = False,
) -> tuple[Any, Any, Any]:
    def run() -> tuple[Any, list[Any]]:
        with ForwardAccumulator(sources, tangents, strict=strict) as accumulator:
            result, aux = call.run(fn, has_aux)
            leaves = _joined_leaves(result)
        if not strict:
            raise_or_warn(accumulator.lacking(leaves), False)
        found = [
            None if leaf is None else accumulator.jvp(as_tensor(leaf), unconnected_gradients="zero")
            for leaf in leaves
        ]
        return (result, aux), found

    (result, aux), found = derive(run, strict)
    return result, pack_like(result, found), aux


def _joined_leaves(result: Any) -> list[Any]:
    """Return the leaves of a result, with series and deques of tensors as one tensor each.

    The conversion is a part of what is differentiated, so it must run while that is recorded.
    """
    return [as_tensor(leaf) if holds_tensors(leaf) else leaf for leaf in leaves_of(result)]


def linearize(fn: Function, *primals: Any, strict: bool = False) -> tuple[Any, Function]:
    """Return ``fn(*primals)`` and the derivative at that point, a linear function of tangents.

    ``fn`` runs once; each call of the derivative costs about as much as a backward pass.

    Parameters
    ----------
    fn
        A function that returns tensors in any nested containers.
    primals
        Its arguments; the derivatives are with respect to all of them.
    strict
        Raise ``GradientError`` if a path is broken, as for :func:`value_and_grad`.

    Returns
    -------
    result
        The result of ``fn``.
    push : callable
        ``push(*tangents)`` takes a tangent per argument and returns tangents in the structure of
        the result. You can call it repeatedly, also inside ``vmap``.

    Raises
    ------
    TypeError
        If an argument is not floating.
    ValueError
        If there are no arguments. From ``push``, if the tangents differ from the arguments in
        structure or shape.

    Examples
    --------
    >>> y, push = gt.linearize(lambda x: x * x, gt.constant(3.0))
    >>> y.item(), push(gt.constant(1.0)).item()
    (9.0, 6.0)
    """
    call = Call("linearize", range(len(primals)), primals, {})

    def record() -> tuple[Any, ...]:
        with tape_of(strict=strict) as tape:
            tape.watch(call.sources)
            result, _ = call.run(fn)
            leaves = _joined_leaves(result)
        targets = [as_tensor(leaf) for leaf in leaves]
        warn_of_breaks(tape, targets, call.sources)
        # the backward pass is linear in the upstream gradients; its own backward pass is the
        # derivative
        seeds = [Tensor(F.zeros_like(y.array)) for y in targets]
        with tape_of(persistent=True) as transpose:
            transpose.watch(seeds)
            grads = tape.gradient(targets, call.sources, output_gradients=seeds)
        return result, transpose, seeds, grads

    def tangents_of(made: tuple[Any, ...], given: list[Any]) -> list[Any]:
        _, transpose, seeds, grads = made
        connected = [i for i, g in enumerate(grads) if g is not None]
        if not connected:
            return seeds
        found: list[Any] = transpose.gradient(
            [grads[i] for i in connected],
            seeds,
            output_gradients=[given[i] for i in connected],
            unconnected_gradients="zero",
        )
        return found

    (result, *_), pushed = recorded(record, tangents_of, strict)

    def push(*tangents: Any) -> Any:
        same_structure("linearize", "tangents", tangents, "the arguments", primals)
        return pack_like(result, pushed(leaves_of(tangents)))

    return result, push


def hvp(fn: Function, primals: Any, tangents: Any, *, strict: bool = False) -> Any:
    """Return the product of the Hessian of ``fn`` with a vector, at the cost of a few gradients.

    It uses forward over reverse mode: the derivative of the gradient in the direction ``tangents``.

    Parameters
    ----------
    fn
        A function that returns a scalar tensor.
    primals, tangents
        Its arguments and the vector, as for :func:`jvp`.
    strict
        Raise ``GradientError`` if a path is broken, as for :func:`value_and_grad`.

    Returns
    -------
    object
        The product, in the structure of ``primals``.

    Raises
    ------
    TypeError
        If the result is not a scalar, or an argument is not floating.
    ValueError
        If tangents differ from the arguments in structure or shape.

    References
    ----------
    B. A. Pearlmutter, "Fast exact multiplication by the Hessian", 1994.

    Examples
    --------
    >>> gt.hvp(lambda x: gt.sum(x**3), gt.constant([1.0, 2.0]), gt.constant([1.0, 0.0])).tolist()
    [6.0, 0.0]
    """
    single = not isinstance(primals, (tuple, list))
    primals, tangents = _arguments(primals, tangents, "hvp")
    slope = grad(fn, tuple(range(len(primals))), strict=strict)
    product = jvp(slope, primals, tangents, strict=strict)[1]
    return product[0] if single else product


def flatten(tree: Any) -> tuple[Tensor, Callable[[Any], Any]]:
    """Return all tensors of a nested container as one vector, and the inverse function.

    This is for optimizers that work on a single vector, such as SciPy's.

    Parameters
    ----------
    tree
        Tensors, variables, arrays or numbers, in any nested containers.

    Returns
    -------
    vector : Tensor
        All elements in order, in the promoted dtype of the leaves.
    unflatten : callable
        A function that splits such a vector (or anything that converts to one) into tensors of the
        leaves' shapes and dtypes, in the structure of ``tree``. Gradients pass through both.

    Raises
    ------
    ValueError
        From ``unflatten``, if the vector has another number of elements.
    TraceError
        If a rank is unknown in a trace.

    Examples
    --------
    >>> vector, unflatten = gt.flatten({"a": gt.ones((2, 2)), "b": gt.zeros(3)})
    >>> vector.shape
    (7,)
    >>> unflatten(vector * 2.0)["a"].tolist()
    [[2.0, 2.0], [2.0, 2.0]]
    """
    leaves = [as_tensor(leaf) for leaf in leaves_of(tree)]
    shapes = [leaf.shape for leaf in leaves]
    if None in shapes:
        raise TraceError("flatten: the rank of a tensor is unknown in this trace")
    dtypes = [leaf.dtype for leaf in leaves]
    ends = list(accumulate(prod(shape) for shape in shapes))
    total = ends[-1] if ends else 0
    if leaves:
        flat = [ops["reshape"](leaf, shape=(-1,)) for leaf in leaves]
        vector = flat[0] if len(flat) == 1 else ops["concatenate"](*flat, axis=0)
    else:
        vector = as_tensor(np.zeros(0, np.float32))

    def unflatten(values: Any) -> Any:
        values = as_tensor(values)
        if not TensorSpec((total,), values.dtype).admits(values.shape):
            raise ValueError(
                f"unflatten: the vector must have shape ({total},), got shape {values.shape}"
            )
        parts = ops["split"](values, sections=tuple(ends[:-1]), axis=0) if leaves else []
        found = []
        for part, shape, dtype in zip(parts, shapes, dtypes, strict=True):
            part = ops["reshape"](part, shape=shape)
            found.append(part if part.dtype == dtype else part.astype(dtype))
        return pack_like(tree, found)

    return vector, unflatten

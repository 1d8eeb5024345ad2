"""Jacobians in one backward pass: its upstream gradients are a batch of identity rows."""

from __future__ import annotations

from collections.abc import Iterator
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from ..base.context import active_batches, active_tapes
from ..base.dtypes import is_differentiable
from ..base.sizes import has_unknown_sizes, sizes_differ
from ..base.table import F, functions, ops
from ..base.user_code import user_line, warn_user
from ..batches.batched import Batched, in_trace, leave, running_level, whole_shape
from ..errors import TraceError
from ..ops.dispatch import backend_for_type, current_backend, is_transformed
from ..tensors.tensor import Tensor
from .outer_tape import batching

if TYPE_CHECKING:
    from .tape import GradientTape

#: The default limit on the bytes that the gradients of one backward pass take, by estimate.
MEMORY_BUDGET = 2**30


def jacobian(
    tape: GradientTape,
    target: Tensor,
    sources: list[Tensor],
    parallel_iterations: int | None,
    vectorized: bool,
) -> list[Tensor | None]:
    """Return the Jacobian for each source, of shape ``target.shape + source.shape``."""
    shape = target.shape
    if shape is None:
        raise TraceError(f"{user_line()}: jacobian: the target's rank is unknown in this trace")
    if not is_differentiable(target.dtype):
        return [None] * len(sources)
    ids = [x.id for x in sources]
    if target.dtype.kind == "c":
        _warn_of_half("jacobian", tape, target, sources)
    if has_unknown_sizes(shape):
        blocks = [pull_rows(tape, target, identity_rows(target).array, ids, False)]
    else:
        at_once = parallel_iterations or _rows_that_fit(tape, target, sources)
        blocks = _blocks(tape, target, ids, at_once if vectorized else 1)
    results: list[Tensor | None] = []
    for source, *parts in zip(sources, *blocks, strict=True):
        present = [part for part in parts if part is not None]
        if not present:
            results.append(None)
            continue
        rows_ = present[0] if len(present) == 1 else ops["concatenate"](*present, axis=0)
        results.append(_reshaped(rows_, shape, source, "jacobian"))
    return results


def _blocks(
    tape: GradientTape, target: Tensor, ids: list[int], at_once: int
) -> list[list[Tensor | None]]:
    """Return stacks of rows for every source, ``at_once`` rows at most in each."""
    shape: Any = target.shape
    count = prod(shape)
    blocks: list[list[Tensor | None]] = []
    for start in range(0, count, at_once) if count else [0]:
        stop = min(start + at_once, count)
        rows = np.eye(stop - start, count, start, target.dtype).reshape(stop - start, *shape)
        keep = stop < count
        if stop - start == 1:  # one row needs no batch
            seed = Tensor(rows_on_device_of(rows[0], target))
            found = tape._backward([target], [seed], ids, keep)
            blocks.append([None if g is None else ops["expand_dims"](g, axis=0) for g in found])
        else:
            blocks.append(pull_rows(tape, target, rows_on_device_of(rows, target), ids, keep))
    return blocks


def identity_rows(x: Tensor, between: tuple[int, ...] = ()) -> Tensor:
    """Return the rows of an identity matrix in the shape of ``x``; its sizes may be unknown.

    Parameters
    ----------
    x
        A tensor.
    between
        Sizes to put after the axis of rows. They replace as many leading axes of ``x``.
    """
    shape: Any = x.shape[len(between) :] if x.shape else ()
    count = prod(shape)
    rows = functions["eye"](count, dtype=x.dtype)
    result: Tensor = ops["reshape"](rows, shape=(count, *between, *shape))
    return result


def check_examples(tape: GradientTape, target: Tensor, source: Tensor, check: bool) -> None:
    """Raise if a batch Jacobian is undefined. This keeps the records of the tape."""
    for what, x in (("target", target), ("source", source)):
        if x.shape is None or len(x.shape) < 2:
            raise ValueError(
                f"batch_jacobian: the {what} needs a first axis for the examples, and at least one "
                f"more axis, got shape {x.shape}; use gradient if each example is one number"
            )
    batch, also = (target.shape or ())[0], (source.shape or ())[0]
    if sizes_differ(batch, also):
        raise ValueError(
            "batch_jacobian: target and source must have the same number of examples, "
            f"got shapes {target.shape} and {source.shape}"
        )
    if check and is_differentiable(target.dtype):
        _check_independent(tape, target, source)


def batch_jacobian(
    tape: GradientTape, target: Tensor, source: Tensor, parallel_iterations: int | None
) -> Tensor:
    """Return the Jacobians of ``target[i]`` with respect to ``source[i]``, stacked over ``i``."""
    batch, *inner = target.shape or ()
    _, *given = source.shape or ()
    if target.dtype.kind == "c":
        _warn_of_half("batch_jacobian", tape, target, [source])
    blocks = []
    for rows, keep in _example_rows(tape, target, source, parallel_iterations):
        with running_level() as level:
            seed = F.broadcast_like(Batched(in_trace(rows), level), target.array)
            (found,) = _pull_seed(tape, target, seed, level, [source.id], keep)
        if found is None:
            break
        blocks.append(found)
    if not blocks:
        tape._backward([target], [None], [source.id])  # this uses up the tape too
        zeros = F.zeros_like(F.cast_like(target.array, source.array))
        for _ in given:
            zeros = F.expand_dims(zeros, axis=-1)
        others = F.zeros_like(source.array)
        for _ in inner:
            others = F.expand_dims(others, axis=1)
        return Tensor(zeros + others)
    rows_ = blocks[0] if len(blocks) == 1 else ops["concatenate"](*blocks, axis=0)
    turned = ops["moveaxis"](rows_, source=(0,), destination=(1,))
    if len(inner) == 1:
        return turned
    result: Tensor = ops["reshape"](turned, shape=(batch, *inner, *given))
    return result


def _example_rows(
    tape: GradientTape, target: Tensor, source: Tensor, at_once: int | None
) -> Iterator[tuple[Any, bool]]:
    """Yield rows of the identity in the shape of one example, and whether more follow."""
    _, *inner = target.shape or ()
    if not is_differentiable(target.dtype):
        return
    if has_unknown_sizes(inner):
        yield identity_rows(target, (1,)).array, False
        return
    count = prod(inner)
    at_once = at_once or _rows_that_fit(tape, target, [source])
    for start in range(0, count, at_once):
        stop = min(start + at_once, count)
        rows = np.eye(stop - start, count, start, target.dtype).reshape(stop - start, 1, *inner)
        yield rows_on_device_of(rows, target), stop < count


def pull_rows(
    tape: GradientTape, target: Tensor, seeds: Any, ids: list[int], keep: bool
) -> list[Tensor | None]:
    """Run one backward pass for a stack of upstream gradients; return stacks of gradients."""
    with running_level() as level:
        return _pull_seed(tape, target, Batched(in_trace(seeds), level), level, ids, keep)


def _pull_seed(
    tape: GradientTape, target: Tensor, seed: Any, level: int, ids: list[int], keep: bool
) -> list[Tensor | None]:
    like = Tensor.with_id(_inside(seed, level), 0)
    if not active_tapes.get() and not active_batches.get():  # no recorder needs to know the batch
        found = tape._backward([target], [Tensor(seed)], ids, keep)
        return [None if g is None else _left(g, like, level) for g in found]
    with batching(level, like, "same"):  # a custom gradient draws random numbers once
        found = tape._backward([target], [Tensor(seed)], ids, keep)
    return [None if g is None else leave(g, like, level) for g in found]


def _left(g: Tensor, like: Tensor, level: int) -> Tensor:
    array = g.array
    if type(array) is Batched and array.level == level:
        return Tensor(array.array)
    return leave(g, like, level)


def _inside(seed: Any, level: int) -> Any:
    while seed.level != level:
        seed = seed.array
    return seed.array


def rows_on_device_of(rows: Any, target: Tensor, dtype: Any = None) -> Any:
    """Return host values as an array on the target's device, in its dtype or in ``dtype``."""
    dtype = dtype or target.dtype
    array = target.array
    while type(array) is Batched:
        array = array.array
    if is_transformed(array):
        return current_backend().asarray(rows, dtype=dtype)
    owner = backend_for_type(type(array))
    return owner.asarray(rows, dtype=dtype, device=owner.device(array))


def _rows_that_fit(tape: GradientTape, target: Tensor, sources: list[Tensor]) -> int:
    """Return how many rows of one backward pass fit in the memory budget."""
    shapes = {whole_shape(x.array) for x in (target, *sources)} | tape._saved_shapes()
    largest = max(
        (prod(shape) for shape in shapes if shape is not None and None not in shape), default=1
    )
    # the upstream gradient, the result, and temporaries of rules, in double precision
    return max(1, MEMORY_BUDGET // (6 * 8 * max(largest, 1)))


def _reshaped(rows: Tensor, shape: tuple[int, ...], source: Tensor, name: str) -> Tensor:
    if len(shape) == 1:
        return rows
    if source.shape is None:
        raise TraceError(f"{name}: the rank of a source is unknown in this trace")
    result: Tensor = ops["reshape"](rows, shape=(*shape, *source.shape))
    return result


# -- complex targets -------------------------------------------------------------------------------


def _warn_of_half(name: str, tape: GradientTape, target: Tensor, sources: list[Tensor]) -> None:
    """Warn if rows, the gradients of the real parts of a target, are half of its derivative.

    They are the whole derivative of a holomorphic function: its gradients are then proportional to
    the upstream gradient, also if that is multiplied by the imaginary unit. Traces and batches
    have no values to tell.
    """
    if any(is_transformed(x.array) for x in (target, *sources)):
        return
    probe = np.random.default_rng(0).standard_normal(target.shape or ())
    seeds = rows_on_device_of(np.stack([probe, 1j * probe]), target)
    for x, found in zip(sources, pull_rows(tape, target, seeds, [x.id for x in sources], True)):
        if found is None:
            continue
        one, turned = np.asarray(found.numpy())
        want = 1j * one if x.dtype.kind == "c" else 0.0 * one
        allowed = 1e3 * float(np.finfo(one.dtype).eps) * np.abs([one, turned]).max(initial=0.0)
        if not (np.abs(turned - want) <= allowed).all():
            warn_user(
                f"{name}: the target is complex and not a holomorphic function of the source, so "
                "each row is the gradient of a real part, which is half of the derivative: take "
                "the Jacobians of gradtape.real(y) and gradtape.imag(y)",
                UserWarning,
            )
            return


# -- examples that are independent -----------------------------------------------------------------


def _check_independent(tape: GradientTape, target: Tensor, source: Tensor) -> None:
    """Raise if one example's target depends on another example's source.

    If it does not, changing the sign of an example's upstream gradient changes the sign of that
    example's gradient, and nothing else.
    """
    if is_transformed(target.array) or is_transformed(source.array):
        raise TraceError("batch_jacobian: check=True needs values, and a trace or vmap has none")
    rng = np.random.default_rng(0)
    shape = target.shape or ()
    signs = rng.choice([-1.0, 1.0], (2, shape[0])) if shape[0] > 1 else np.ones((2, shape[0]))
    if shape[0] > 1:
        signs[0, :2] = 1.0, -1.0  # one pair of different signs, and one of equal signs
        signs[1, :2] = 1.0, 1.0
    probe = rng.standard_normal(shape)
    spread = (slice(None), *(None,) * (len(shape) - 1))
    seeds = np.stack([probe, *(probe * s[spread] for s in signs)])
    (found,) = pull_rows(tape, target, rows_on_device_of(seeds, target), [source.id], keep=True)
    if found is None or not prod(found.shape or ()):
        return
    host = np.asarray(found.numpy())
    plain, flipped = host[0], host[1:]
    axes = (slice(None), slice(None), *(None,) * (plain.ndim - 1))
    # sign changes round nothing, but the order of a sum may. NaN does not prove independence
    allowed = 1e3 * float(np.finfo(host.dtype).eps) * np.abs(plain)
    if not (np.abs(flipped - plain * signs[axes]) <= allowed).all():
        raise ValueError(
            "batch_jacobian: the examples are not independent: some target depends on another "
            "example's source (batch normalization in training does that), or its gradient is nan. "
            "Use jacobian, which gives all pairs of examples"
        )

"""Random numbers as pure functions of a key, so that they can be traced, saved and repeated.

A key is an integer array ``[seed, counter]``. An op turns a key into numbers by the counter-based
generator Philox (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", 2011), here on the
host. Every backend gives the same ones. See ``generator`` for what users call.
"""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from ....core.extend import (
    NONDIFF,
    F,
    Op,
    Shared,
    backend_of,
    batch_rows,
    communicator,
    numpy_dtype,
    row_of,
    to_numpy,
)
from ..common.axes import leading, together
from ..common.kernels import reals
from ..common.op_builders import op

if TYPE_CHECKING:
    from numpy.typing import NDArray

#: Draws numbers of a shape.
Draw: TypeAlias = "Callable[[np.random.Generator, tuple[int, ...]], Any]"


def stream(key: Any) -> np.random.Generator:
    """Return NumPy's generator at the start of a key's own stream."""
    seed, counter = to_numpy(key).astype(np.uint64)
    # the key selects the stream: mixing a seed in NumPy takes longer than drawing
    return np.random.Generator(np.random.Philox(key=[seed, counter]))


def part_of_batch(key: Any, shape: tuple[int, ...], like: bool = False) -> tuple[int, int] | None:
    """Return which rows of the batch's numbers are this rank's; None if its numbers are not rows.

    All ranks of a data-parallel step must call it for the same draws, since they may exchange how
    many rows they have.

    Parameters
    ----------
    key, shape, like
        As for :func:`rows_drawn`.

    Returns
    -------
    The first row, and the number of rows of all ranks.
    """
    rows = batch_rows.get()
    if rows is None or len(key.shape) > 1:
        return None
    first, total = rows.place()  # on all ranks, whatever they draw: none may wait for another
    times, rest = divmod(shape[0], rows.count) if shape and rows.count else (0, 0)
    if rest or not times or (times > 1 and not like):
        return None
    return first * times, total * times


def rows_drawn(
    key: Any, shape: tuple[int, ...], draw: Draw, like: bool = False, each: int = 0
) -> Any:
    """Return numbers drawn with a key; in a data-parallel step, this rank's rows of the batch's.

    An array is part of the batch's if it has as many rows as this rank has examples. Numbers for a
    tensor (``like``) are part of it too if they have several rows for each example.

    Parameters
    ----------
    key
        A key, or an array of keys, which already give each example its own numbers.
    shape
        The shape of the numbers for each key.
    draw
        A function that draws numbers of a shape.
    like
        Whether the numbers are for a tensor of that shape.
    each
        How many numbers Philox makes at once if draws can start at any position, otherwise 0.
    """
    part = part_of_batch(key, shape, like)
    if part is None:
        return for_each(key, lambda rng: draw(rng, shape))
    start, total = part
    rng = stream(key)
    if not each:
        return draw(rng, (total, *shape[1:]))[start : start + shape[0]]
    size, blocks = prod(shape[1:]), divmod(start * prod(shape[1:]), each)
    rng.bit_generator.advance(blocks[0])  # type: ignore[attr-defined]
    numbers = draw(rng, (blocks[1] + shape[0] * size,))
    return numbers[blocks[1] :].reshape(shape)


def for_each(key: Any, draw: Callable[[np.random.Generator], Any]) -> Any:
    """Return the draws for a key; for an array of keys, one draw for each, stacked."""
    keys = to_numpy(key)
    if keys.ndim == 1:
        return draw(stream(keys))
    rows = keys.reshape(-1, 2)
    some = rows if len(rows) else np.zeros((1, 2), keys.dtype)  # one draw gives the empty shape
    drawn = np.stack([draw(stream(row)) for row in some])[: len(rows)]
    return drawn.reshape(*keys.shape[:-1], *drawn.shape[1:])


def shape_for_each(key: Any, shape: tuple[int, ...]) -> Any:
    """Return the shape of draws of ``shape``, one for each key."""
    return None if key.shape is None else (*key.shape[:-1], *shape)


def on_backend(numbers: Any, like: Any, dtype: Any = None) -> Any:
    """Return numbers drawn on the host on the device of the array ``like``."""
    owner = backend_of(like)
    return owner.asarray(numbers, dtype=dtype, device=owner.device(like))


def keyed(op: Op, xs: list[Any], batched: list[bool], params: dict[str, Any]) -> Any:
    """Batching rule of random numbers: a batch of keys gives each example its own."""
    if batched[0]:
        return op.raw(*together(xs, batched), **params)
    rows = [row_of(x) if b else x for x, b in zip(xs, batched, strict=True)]
    return Shared(op.raw(*rows, **params))


# -- keys from a key -------------------------------------------------------------------------------


def _split_kernel(xp: Any, key: Any, like: Any) -> Any:
    shape = like.shape[0], 2
    keys = rows_drawn(key, shape, lambda rng, size: rng.integers(0, 2**63 - 1, size, np.int64))
    return on_backend(np.moveaxis(keys, -2, 0), key, numpy_dtype(key.dtype))


def _split_rule(op: Any, xs: list[Any], batched: list[bool], params: dict[str, Any]) -> Any:
    key, like = xs[0], row_of(xs[1]) if batched[1] else xs[1]
    keys = op.raw(key, like)
    return F.swapaxes(keys, axis1=0, axis2=1) if batched[0] else Shared(keys)


op(
    "random_split",
    _split_kernel,
    gradients={"key": NONDIFF, "like": NONDIFF},
    infer=lambda key, like: (
        None if None in (key.shape, like.shape) else (like.shape[0], *key.shape),
        key.dtype,
    ),
    batch=_split_rule,
    random=True,
    doc="Return keys derived from one key, as many as the first axis of ``like`` is long.",
)


# -- distributions ---------------------------------------------------------------------------------

TypedDraw: TypeAlias = "Callable[[np.random.Generator, tuple[int, ...], np.dtype[Any]], Any]"


def _drawn(
    draw: TypedDraw,
    key: Any,
    shape: tuple[int, ...],
    dtype: Any,
    below: float | None,
    like: bool = False,
) -> Any:
    """Return numbers on the backend and device of ``key``, below ``below`` if it is given."""
    dtype = numpy_dtype(dtype) if not isinstance(dtype, str) else np.dtype(dtype)
    wide = dtype if dtype in (np.float32, np.float64) else np.dtype(np.float32)
    # bounded numbers take one word each
    each = 0 if below is None else 32 // wide.itemsize
    numbers = rows_drawn(key, shape, lambda rng, size: draw(rng, size, wide), like, each)
    if below is not None and dtype is not wide:  # rounding to half precision may reach the bound
        numbers = np.minimum(numbers, np.nextafter(dtype.type(below), dtype.type(0)))
    if type(key) is np.ndarray:  # a subclass may be of another backend
        return np.asarray(numbers, dtype)
    return on_backend(np.asarray(numbers), key, dtype)


def random_op(name: str, draw: TypedDraw, doc: str, below: float | None = None) -> None:
    """Make an op that draws numbers, and its variant that takes shape and dtype from a tensor."""

    def kernel(xp: Any, key: Any, *, shape: tuple[int, ...], dtype: str = "float32") -> Any:
        return _drawn(draw, key, shape, dtype, below)

    def like_kernel(xp: Any, key: Any, like: Any) -> Any:
        return _drawn(draw, key, like.shape[key.ndim - 1 :], like.dtype, below, True)

    op(
        name,
        kernel,
        gradients={"key": NONDIFF},
        infer=lambda key, shape, dtype: (shape_for_each(key, shape), np.dtype(dtype)),
        batch=keyed,
        random=True,
        doc=f"Return {doc}, determined by ``key``.",
    )
    op(
        f"{name}_like",
        like_kernel,
        gradients={"key": NONDIFF, "like": NONDIFF},
        infer=lambda key, like: (like.shape, like.dtype),
        batch=keyed,
        random=True,
        doc=f"Return {doc}, determined by ``key``, of the shape and dtype of ``like``.",
    )


random_op(
    "random_normal",
    lambda rng, shape, dtype: rng.standard_normal(shape, dtype),
    "standard normal numbers",
)
random_op(
    "random_uniform",
    lambda rng, shape, dtype: rng.random(shape, dtype),
    "numbers uniformly distributed over [0, 1)",
    below=1.0,
)


Array: TypeAlias = "NDArray[Any]"


def _truncated(rng: np.random.Generator, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Array:
    """Draw normal numbers; redraw those beyond two standard deviations."""
    numbers: Array = np.asarray(rng.standard_normal(shape, dtype))
    while (far := np.abs(numbers) > 2).any():
        numbers[far] = rng.standard_normal(int(far.sum()), dtype)
    return numbers


random_op(
    "random_truncated_normal",
    _truncated,
    "standard normal numbers from -2 to 2",
)


random_op(
    "random_exponential",
    lambda rng, shape, dtype: rng.standard_exponential(shape, dtype),
    "exponentially distributed numbers of mean 1",
)
random_op(
    "random_gumbel",
    lambda rng, shape, dtype: -np.log(rng.standard_exponential(shape, dtype)),
    "numbers of the standard Gumbel distribution",
)


# -- integers --------------------------------------------------------------------------------------


op(
    "random_integers",
    lambda xp, key, *, shape, low, high: on_backend(
        np.asarray(
            rows_drawn(key, shape, lambda rng, size: rng.integers(low, high, size, np.int64))
        ),
        key,
    ),
    gradients={"key": NONDIFF},
    infer=lambda key, shape, low, high: (shape_for_each(key, shape), np.dtype(np.int64)),
    batch=keyed,
    random=True,
    doc="Return integers from ``low`` up to, but not including, ``high``, determined by ``key``.",
)


op(
    "random_permutation",
    lambda xp, key, *, n: backend_of(key).asarray(
        for_each(key, lambda rng: rng.permutation(n)), dtype=np.int64
    ),
    gradients={"key": NONDIFF},
    infer=lambda key, n: (shape_for_each(key, (n,)), np.dtype(np.int64)),
    batch=keyed,
    random=True,
    doc="Return the integers below ``n`` in an order determined by ``key``.",
)


# -- gamma distribution, with its derivative -------------------------------------------------------


def _gamma(xp: Any, key: Any, concentration: Any) -> Any:
    shapes = to_numpy(reals(concentration))
    if not (shapes > 0).all():
        raise ValueError("random_gamma: the concentration must be above 0 everywhere")
    wide, keys = shapes.astype(np.float64), to_numpy(key)
    if keys.ndim == 1:
        numbers = _rows_of_all(keys, wide)
    else:
        rank = keys.ndim - 1  # the axes of the examples, several in nested batches
        parts = wide.reshape(-1, *wide.shape[rank:])
        rows = zip(keys.reshape(-1, keys.shape[-1]), parts, strict=True)
        drawn = [stream(row).standard_gamma(part) for row, part in rows]
        numbers = np.stack(drawn).reshape(wide.shape) if drawn else wide
    numbers = np.asarray(numbers, shapes.dtype)
    return on_backend(np.maximum(numbers, np.finfo(shapes.dtype).tiny), concentration)


def _rows_of_all(key: Array, concentration: Array) -> Array:
    """Return a number for each concentration; in a data-parallel step, for those of this rank.

    The number of random words that a number takes depends on all concentrations before it,
    including those of other ranks.
    """
    rows = batch_rows.get()
    if rows is None:
        return stream(key).standard_gamma(concentration)
    start, total = rows.place()
    parts = communicator().exchange(concentration.tobytes())  # on all ranks, whatever the shape
    if concentration.shape[:1] != (rows.count,):
        return stream(key).standard_gamma(concentration)
    whole = np.frombuffer(b"".join(parts)).reshape(total, *concentration.shape[1:])
    found: Array = stream(key).standard_gamma(whole)[start : start + rows.count]
    return found


def _digamma(x: Array) -> Array:
    """Return the derivative of the logarithm of the gamma function, for ``x`` above 0."""
    shift = np.zeros_like(x)
    for _ in range(8):  # where the asymptotic series is exact to double precision
        small = x < 8
        shift -= np.where(small, 1 / x, 0)
        x = np.where(small, x + 1, x)
    y = 1 / (x * x)
    # Abramowitz and Stegun, "Handbook of mathematical functions" (1964), 6.3.18
    tail = y * (1 / 12 - y * (1 / 120 - y * (1 / 252 - y * (1 / 240 - y * (1 / 132)))))
    return shift + np.log(x) - 0.5 / x - tail


def gamma_slope(a: Array, z: Array) -> Array:
    """Return the derivative of a gamma-distributed ``z`` with respect to its concentration ``a``.

    It is ``dz/da = -(dP(a, z)/da) / p(z)``, where ``P`` is the distribution function and ``p`` its
    density: ``z`` keeps its quantile as ``a`` changes. ``P`` is taken from the series
    ``z**a * exp(-z) / gamma(a + 1) * sum(z**n / ((a + 1) ... (a + n)))`` and differentiated term by
    term. For ``a`` above 10,000, where that series is long, z is approximated by
    ``a * (1 - 1 / (9 * a) + x / (3 * sqrt(a)))**3`` with a normal x.

    References
    ----------
    Figurnov, Mohamed and Mnih, "Implicit reparameterization gradients", 2018, equation 5.
    Wilson and Hilferty, "The distribution of chi-square", 1931.
    """
    root = np.cbrt(z / a)
    bend = 1 / (9 * a)
    slope = root**3 + 3 * a * root**2 * (bend / a - (root - 1 + bend) / (2 * a))
    near = a <= 1e4
    a, z = a[near], z[near]
    term, total = np.ones_like(z), np.ones_like(z)
    decay, changed = np.zeros_like(z), np.zeros_like(z)
    n = 0
    while (term > 1e-17 * total).any():
        n += 1
        term = term * (z / (a + n))
        decay = decay - 1 / (a + n)
        total += term
        changed += term * decay
    slope[near] = -(z / a) * ((np.log(z) - _digamma(a + 1)) * total + changed)
    return slope


def _slope_kernel(xp: Any, concentration: Any, number: Any) -> Any:
    a, z = (to_numpy(reals(x)) for x in (concentration, number))
    shape = a.shape
    wide = gamma_slope(*(np.atleast_1d(x).astype(np.float64) for x in (a, z)))
    return on_backend(wide.reshape(shape).astype(a.dtype), concentration)


def _no_second_order(g: Any) -> Any:
    raise TypeError(
        "random_gamma: second-order gradients with respect to the concentration of a gamma "
        "distribution are not available; stop them with gradtape.stop_gradient"
    )


op(
    "random_gamma",
    _gamma,
    gradients={
        "key": NONDIFF,
        "concentration": lambda g, concentration, out: g * F.random_gamma_slope(concentration, out),
    },
    infer=lambda key, concentration: (concentration.shape, concentration.dtype),
    batch=leading,
    random=True,
    doc="Return gamma-distributed numbers of scale 1, determined by ``key``.",
)
op(
    "random_gamma_slope",
    _slope_kernel,
    gradients={"concentration": _no_second_order, "number": _no_second_order},
    infer=lambda concentration, number: (concentration.shape, concentration.dtype),
    batch=leading,
    random=True,
    doc="Return the derivative of gamma-distributed numbers with respect to the concentration.",
)

"""Compare a tape's gradients with finite differences, at every order.

    check_gradients(gt.sin, x)                  # first and second order
    check_gradients(gt.multiply, x, y, order=3)

Gradients are compared element by element. A result of several elements is first joined to one
number by random weights, so an error in any element of the Jacobian shows. Each derivative is
measured with two step widths and extrapolated; if the two disagree, the point is too near a kink to
say anything and the check refuses. Where the function takes complex numbers and is analytic, a
complex step, which has no rounding error, replaces the differences.

For complex values a gradient is the direction of steepest ascent: ``dL = Re(conj(gradient) * dx)``.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..core.convert import constant
from ..core.spec import describe
from ..core.tape import GradientTape

__all__ = ["check_gradients"]

Array = NDArray[Any]

STEP = 1e-3  # with the extrapolated error of order STEP**4, near the best for float64
RTOL, ATOL = 1e-6, 1e-9
KINK = 1e-4  # measured derivatives that disagree by more than this share are those of a kink
COMPLEX_STEP = 1e-30  # its square is lost beside any derivative


def check_gradients(
    fn: Callable[..., Any],
    *inputs: Any,
    order: int = 2,
    rtol: float | None = None,
    atol: float | None = None,
    seed: int = 0,
    step: float = STEP,
) -> None:
    """Check the gradients of ``fn`` with respect to every floating or complex input.

    Parameters
    ----------
    fn
        A function of tensors that returns a tensor, or a list or tuple of them.
    inputs
        Arrays or numbers of any shape: floating ones are taken as ``float64``, complex ones as
        ``complex128``; integers and booleans stay constant. Kinks of ``fn`` must be some
        ``10 * step`` away.
    order
        Up to which order; the gradient function is checked again in its upstream gradient too.
    rtol, atol
        How far a gradient may be from the measured derivative, beside the measured error:
        ``1e-6`` of the larger one and ``1e-9`` if not given.
    seed
        Of the random weights and upstream gradients.
    step
        The step width of the differences.

    Raises
    ------
    AssertionError
        If a gradient differs; the message names the order, the input, the element, what the tape
        says and what was measured.
    ValueError
        If finite differences do not converge at this point, or no input is differentiable.

    Notes
    -----
    Central differences of two widths are extrapolated (Richardson), which leaves an error of the
    order of ``step**4``; what the extrapolation changed, and the rounding error, are allowed for.
    At first order the derivative of a real input is measured by ``imag(fn(x + ih)) / h`` as well:
    if ``fn`` takes complex numbers and both measures agree, this one, exact to rounding, counts.

    References
    ----------
    W. Squire and G. Trapp, "Using complex variables to estimate derivatives of real functions",
    SIAM Review 40 (1998) 110-112.

    Examples
    --------
    >>> import gradtape as gt
    >>> gt.testing.check_gradients(gt.multiply, [0.5, 1.5], [2.0, 3.0])
    >>> gt.testing.check_gradients(
    ...     lambda x: gt.stop_gradient(x) * x, [0.5], order=1
    ... )  # doctest: +ELLIPSIS
    Traceback (most recent call last):
        ...
    AssertionError: order 1, input 0, element (0,): the tape says 0.568..., differences say 1.136...
    """
    rng = np.random.default_rng(seed)
    bounds = (RTOL if rtol is None else rtol, ATOL if atol is None else atol)
    arrays = [_widened(x) for x in inputs]
    if not any(_differentiable(x) for x in arrays):
        raise ValueError("check_gradients: no input is floating or complex")
    for level in range(1, order + 1):
        outputs = [y.numpy() for y in _outputs(fn, [constant(x) for x in arrays])]
        weights = [_weights(rng, y) for y in outputs]
        _check_first_order(fn, arrays, weights, step, bounds, level)
        if level < order:
            fn, arrays = _gradient_function(fn, len(arrays), outputs), [*arrays, *weights]


def _widened(x: Any) -> Array:
    x = np.asarray(x)
    wide = {"f": np.float64, "c": np.complex128}.get(x.dtype.kind, x.dtype)
    return x.astype(wide)


def _differentiable(x: Array) -> bool:
    return x.dtype.kind in "fc"


def _weights(rng: np.random.Generator, y: Array) -> Array:
    """Return weights of 0.5 to 1.5 in absolute value: none so small that it hides an error."""
    y = np.asarray(y)
    size = rng.uniform(0.5, 1.5, y.shape)
    if y.dtype.kind == "c":
        return np.asarray(size * np.exp(2j * np.pi * rng.uniform(size=y.shape)))
    return np.asarray(size * rng.choice([-1.0, 1.0], y.shape))


def _outputs(fn: Callable[..., Any], tensors: Sequence[Any]) -> list[Any]:
    result = fn(*tensors)
    return list(result) if isinstance(result, (list, tuple)) else [result]


def _gradient_function(
    fn: Callable[..., Any], count: int, outputs: Sequence[Array]
) -> Callable[..., Any]:
    """Return the function from inputs and upstream gradients to the inputs' gradients."""
    followed = [i for i, y in enumerate(outputs) if _differentiable(np.asarray(y))]

    def gradients(*args: Any) -> list[Any]:
        tensors, upstream = list(args[:count]), list(args[count:])
        sources = [x for x in tensors if x.dtype.kind in "fc"]
        with GradientTape() as tape:
            tape.watch(sources)
            results = _outputs(fn, tensors)
        return list(
            tape.gradient(
                [results[i] for i in followed],
                sources,
                output_gradients=[upstream[i] for i in followed],
                unconnected_gradients="zero",
            )
        )

    return gradients


def _check_first_order(
    fn: Callable[..., Any],
    arrays: list[Array],
    weights: list[Array],
    step: float,
    bounds: tuple[float, float],
    level: int,
) -> None:
    rtol, atol = bounds
    tensors = [constant(x) for x in arrays]
    grads = _gradient_function(fn, len(arrays), weights)(*tensors, *map(constant, weights))
    positions = [i for i, x in enumerate(arrays) if _differentiable(x)]
    # the gradient of complex values is no analytic function: from the second order on, differences
    analytic = level == 1
    for position, grad in zip(positions, grads, strict=True):
        x, got = arrays[position], np.asarray(grad.numpy())
        where = f"order {level}, input {position}"
        if (got.shape, got.dtype) != (x.shape, x.dtype):
            raise AssertionError(
                f"{where}: expected a gradient of the input's shape and dtype, "
                f"{describe(x.shape, x.dtype)}, got {describe(got.shape, got.dtype)}"
            )

        def at(value: Array, position: int = position) -> list[Array]:
            moved = [*arrays[:position], value, *arrays[position + 1 :]]
            return [y.numpy() for y in _outputs(fn, [constant(a) for a in moved])]

        def along(direction: Array, x: Array = x) -> float:
            return sum(_inner(w, y) for w, y in zip(weights, at(x + direction), strict=True))

        for index, unit in _units(x):
            want, change, noise = _derivative(along, unit, step)
            have = _inner(got, unit)
            size = max(abs(want), abs(have))
            if not change <= KINK * max(size, 1.0):
                raise ValueError(
                    f"{where}, element {index}: differences at {x[index]!r} do not converge "
                    f"({want}, changed by {change}); stay away from kinks"
                )
            error = 1e-2 * change + noise
            if analytic:
                exact = _complex_step(at, x, unit, weights)
                analytic = exact is not None
                if exact is not None and abs(exact - want) <= atol + rtol * size + error:
                    want, error = exact, 0.0
            allowed = atol + rtol * size + error
            if not abs(have - want) <= allowed:
                raise AssertionError(
                    f"{where}, element {index}: the tape says {have}, differences say {want} "
                    f"(within {allowed:.1e})"
                )


def _inner(a: Any, b: Any) -> float:
    return float(np.sum(np.conj(a) * b).real)


def _units(x: Array) -> Iterator[tuple[tuple[int, ...], Array]]:
    """Give each element's direction (for complex ones the imaginary direction too)."""
    for index in np.ndindex(x.shape):
        for value in (1.0, 1j) if x.dtype.kind == "c" else (1.0,):
            unit = np.zeros_like(x)
            unit[index] = value
            yield index, unit


def _derivative(
    along: Callable[[Array], float], unit: Array, step: float
) -> tuple[float, float, float]:
    """Return the derivative along ``unit``, what the extrapolation changed, and rounding noise."""

    def slope(width: float) -> float:
        return (along(width * unit) - along(-width * unit)) / (2.0 * width)

    wide, narrow = slope(step), slope(step / 2.0)
    # central differences err by c * step**2, so a quarter of that is left with half the width
    best = narrow + (narrow - wide) / 3.0
    noise = 10.0 * np.finfo(np.float64).eps * max(abs(along(0.0 * unit)), 1.0) / step
    return best, abs(best - narrow), float(noise)


def _complex_step(
    at: Callable[[Array], list[Array]], x: Array, unit: Array, weights: Sequence[Array]
) -> float | None:
    """Return the derivative along ``unit`` by a complex step, None where that cannot be taken."""
    if x.dtype.kind == "c" or any(w.dtype.kind == "c" for w in weights):
        return None
    try:
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            results = at(x + 1j * COMPLEX_STEP * unit)
    except Exception:  # whatever a function says that was not made for complex numbers
        return None
    slopes = [np.sum(w * y.imag) for w, y in zip(weights, results, strict=True)]
    total = float(sum(slopes)) / COMPLEX_STEP
    return total if np.isfinite(total) else None

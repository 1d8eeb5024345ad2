"""Products with a factor that has a single 1 in each row need no multiplications by 0.

Jacobians start with an identity matrix, and multiply it by weights and by the slopes of
activations. ``matmul(identity * s, w)`` is ``s[b, o] * w[o, h]``, unless there is an infinity or
nan: times 0 it is nan, and spreads over its row. Each run checks for that, and then multiplies as
the program says. The sum of a product starts with +0, so the result has no -0.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from ....core.extend import Symbol
from ..steps import PlanStep, StepKind, shape_of

if TYPE_CHECKING:
    from ..lowering import Lowering

#: Larger constants are not checked.
_LARGEST = 2**20


def one_hot_product(
    lowering: Lowering, x: Symbol, y: Symbol, out: Symbol, right: bool = False
) -> bool:
    """Add a step for ``matmul(x, y)`` if each row of ``x`` has one nonzero number.

    Parameters
    ----------
    lowering
        The lowering to which the step is added.
    x, y
        The factors; ``x`` of any rank, ``y`` a matrix.
    out
        The product.
    right
        Whether to transpose ``y``.
    """
    view = lowering.made.get(y)
    if view is not None and view.op == "transpose" and view.run(np.empty((1, 2))).shape == (2, 1):
        (y,), right = view.inputs, not right
    places = _places(lowering.known.get(x))
    if places is not None:
        run = _rows_of_unit(lowering.known[x], places, right)
        params = {"x": id(x), "turned": right}
        lowering.append(PlanStep(StepKind.PRODUCT, "one_hot_rows", run, (y,), (out,), params))
        return True
    step = lowering.made.get(x)
    if step is None or step.op != "multiply" or len(shape_of(x)) != 3:
        return False
    for one_hot, slopes in (step.inputs, step.inputs[::-1]):
        if type(one_hot) is not Symbol or type(slopes) is not Symbol:
            continue
        one_hot = lowering.repeated.get(one_hot, one_hot)
        count, batch, inner = shape_of(x)
        places = _places(lowering.known.get(one_hot))
        fits = shape_of(one_hot) == (count, 1, inner) and shape_of(slopes) == (batch, inner)
        if places is None or not fits or slopes.dtype != x.dtype:
            continue
        run = _scaled_rows(lowering.known[one_hot], places, right)
        params = {"x": id(one_hot), "turned": right}
        op = "one_hot_rows"
        if count == inner and bool((places == np.arange(count)).all()):
            op = "outer_products"  # out[o, b, h] is slopes[b, o] * y[o, h]
        lowering.append(PlanStep(StepKind.PRODUCT, op, run, (slopes, y), (out,), params))
        lowering.optional.add(x)
        return True
    return False


def _places(x: Any) -> Any:
    """Return the position of the 1 in each row of an array; None if there are other rows."""
    if not isinstance(x, np.ndarray) or not 1 < x.size <= _LARGEST or x.dtype.char not in "fd":
        return None
    if np.count_nonzero(x) != x.size // x.shape[-1]:
        return None
    places = x.argmax(-1)
    ones = np.take_along_axis(x, places[..., None], -1)
    return places.reshape(-1) if bool((ones == 1).all()) else None


def _rows_of_unit(one_hot: Any, places: Any, right: bool) -> Callable[..., Any]:
    def run(y: Any, out: Any = None) -> Any:
        y = y.T if right else y
        if not np.isfinite(y).all():
            return np.matmul(one_hot, y, out)
        rows = y[places].reshape(*one_hot.shape[:-1], y.shape[-1])
        return np.add(rows, 0, out)

    return run


def _scaled_rows(one_hot: Any, places: Any, right: bool) -> Callable[..., Any]:
    def run(slopes: Any, y: Any, out: Any = None) -> Any:
        y = y.T if right else y
        if not _multiply_without_overflow(slopes, y):
            return np.matmul(one_hot * slopes, y, out)
        # like matmul, it starts its sums of one term with +0
        return np.einsum("ob,oh->obh", slopes.T[places], y[places], out=out)

    return run


def _multiply_without_overflow(x: Any, y: Any) -> bool:
    """Return whether all products are finite: the sums of others would be nan, or warn."""
    largest = [float(np.maximum.reduce(np.absolute(z), None, initial=0)) for z in (x, y)]
    return largest[0] * largest[1] <= np.finfo(x.dtype).max / 2

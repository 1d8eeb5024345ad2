"""Constraints, applied to weights after each training step. Names and formulas are Keras's."""

from __future__ import annotations

from typing import Any

from ..core.extend import Tensor, in_precision, ops
from .configs import Named, find

__all__ = ["Constraint", "MaxNorm", "MinMaxNorm", "NonNeg", "UnitNorm", "get"]

_EPSILON = 1e-7


class Constraint(Named):
    """Base class: ``constraint(w)`` returns the weights that replace ``w``.

    Examples
    --------
    >>> class Clipped(gt.layers.constraints.Constraint):
    ...     def __call__(self, w):
    ...         return gt.clip(w, -1.0, 1.0)
    >>> Clipped()(gt.constant([3.0])).tolist()
    [1.0]
    """

    def __call__(self, w: Any) -> Tensor:
        """Return weights of the same shape."""
        raise NotImplementedError(f"{type(self).__name__}: define __call__(w)")


class NonNeg(Constraint):
    """Set negative weights to 0.

    Examples
    --------
    >>> gt.layers.constraints.NonNeg()(gt.constant([-1.0, 2.0])).tolist()
    [0.0, 2.0]
    """

    def __call__(self, w: Any) -> Tensor:
        """Return weights of the same shape."""
        return ops["maximum"](w, 0.0)


class MaxNorm(Constraint):
    """Limit the norms of vectors of weights.

    Parameters
    ----------
    max_value
        The largest norm, 2 by default.
    axis
        The axis or axes of a vector. The default, 0, is the inputs' axis of a ``Dense`` kernel. Use
        ``(0, 1, 2)`` for kernels of images.

    Raises
    ------
    ValueError
        If ``max_value`` is negative.

    Examples
    --------
    >>> gt.layers.constraints.MaxNorm(1.0)(gt.constant([[3.0], [4.0]])).shape
    (2, 1)
    """

    def __init__(self, max_value: float = 2.0, axis: Any = 0) -> None:
        if not max_value >= 0:
            raise ValueError(f"MaxNorm: max_value must not be negative, got {max_value!r}")
        self.max_value, self.axis = float(max_value), axis

    def __call__(self, w: Any) -> Tensor:
        """Return weights of the same shape."""
        norm = _norm(w, self.axis)
        return _times(w, ops["clip"](norm, 0.0, self.max_value) / (norm + _EPSILON))


class UnitNorm(Constraint):
    """Scale vectors of weights to norm 1.

    Parameters
    ----------
    axis
        The axis or axes of a vector, 0 by default.
    """

    def __init__(self, axis: Any = 0) -> None:
        self.axis = axis

    def __call__(self, w: Any) -> Tensor:
        """Return weights of the same shape."""
        return _times(w, 1.0 / (_norm(w, self.axis) + _EPSILON))


class MinMaxNorm(Constraint):
    """Move the norms of vectors of weights into a range, at once or gradually.

    Parameters
    ----------
    min_value, max_value
        The range, 0 to 1 by default.
    rate
        How far a step moves a norm towards the range; the default, 1, moves it all the way.
    axis
        The axis or axes of a vector, 0 by default.

    Raises
    ------
    ValueError
        If the range is empty or begins below 0, or the rate is not in (0, 1].
    """

    def __init__(
        self, min_value: float = 0.0, max_value: float = 1.0, rate: float = 1.0, axis: Any = 0
    ) -> None:
        if not 0.0 <= min_value <= max_value or not 0.0 < rate <= 1.0:
            raise ValueError(
                "MinMaxNorm: min_value must be from 0 to max_value, and rate in (0, 1], got "
                f"{min_value!r}, {max_value!r} and {rate!r}"
            )
        self.min_value, self.max_value = float(min_value), float(max_value)
        self.rate, self.axis = float(rate), axis

    def __call__(self, w: Any) -> Tensor:
        """Return weights of the same shape."""
        norm = _norm(w, self.axis)
        wanted = ops["clip"](norm, self.min_value, self.max_value)
        wanted = self.rate * wanted + (1.0 - self.rate) * norm
        return _times(w, wanted / (norm + _EPSILON))


#: The names of gradtape's constraints.
NAMES: dict[str, Any] = {
    "max_norm": MaxNorm,
    "min_max_norm": MinMaxNorm,
    "non_neg": NonNeg,
    "unit_norm": UnitNorm,
}


def get(constraint: Any) -> Any:
    """Return the constraint for a name, or the object or function itself.

    Parameters
    ----------
    constraint
        ``"max_norm"``, ``"min_max_norm"``, ``"non_neg"`` or ``"unit_norm"``, a class, an object, or
        a function of a tensor. ``None`` gives ``None``.

    Raises
    ------
    ValueError
        If the name is unknown.
    TypeError
        If ``constraint`` is none of these.
    """
    return find("constraint", constraint)


def _norm(w: Any, axis: Any) -> Tensor:
    # squares of large weights could overflow, and dividing by infinity would give zeros
    w = in_precision(w, "float32")
    return ops["norm"](w, axis=tuple(axis) if isinstance(axis, list) else axis, keepdims=True)


def _times(w: Any, factor: Tensor) -> Tensor:
    """Return weights times a factor, which is float32 for those of float16."""
    found: Tensor = ops["multiply"](w, factor)
    return found if found.dtype == w.dtype else found.astype(w.dtype)

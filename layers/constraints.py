"""Constraints: what weights are made into after each step. Names and formulas are Keras'."""

from __future__ import annotations

from typing import Any

from ..core.extend import Tensor, ops
from .named import Named, find

__all__ = ["Constraint", "MaxNorm", "MinMaxNorm", "NonNeg", "UnitNorm", "get"]

_EPSILON = 1e-7


class Constraint(Named):
    """Base class: ``constraint(w)`` returns the weights that are allowed.

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
    """Negative weights become 0.

    Examples
    --------
    >>> gt.layers.constraints.NonNeg()(gt.constant([-1.0, 2.0])).tolist()
    [0.0, 2.0]
    """

    def __call__(self, w: Any) -> Tensor:
        """Return weights of the same shape."""
        return ops["maximum"](w, 0.0)


class MaxNorm(Constraint):
    """Vectors of weights become no longer than a size.

    Parameters
    ----------
    max_value
        The size, 2 by default.
    axis
        The axis or axes of a vector, 0 by default: that of a ``Dense`` kernel's inputs. For
        kernels of images ``(0, 1, 2)``.

    Raises
    ------
    ValueError
        If the size is negative.

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
        return w * (ops["clip"](norm, 0.0, self.max_value) / (norm + _EPSILON))


class UnitNorm(Constraint):
    """Vectors of weights become of length 1.

    Parameters
    ----------
    axis
        The axis or axes of a vector, 0 by default.
    """

    def __init__(self, axis: Any = 0) -> None:
        self.axis = axis

    def __call__(self, w: Any) -> Tensor:
        """Return weights of the same shape."""
        return w / (_norm(w, self.axis) + _EPSILON)


class MinMaxNorm(Constraint):
    """Vectors of weights come to a length between two sizes, or nearer to it.

    Parameters
    ----------
    min_value, max_value
        The sizes, 0 and 1 by default.
    rate
        How much of the way they go in a step: all of it, 1, by default.
    axis
        The axis or axes of a vector, 0 by default.

    Raises
    ------
    ValueError
        If the sizes are negative or in the wrong order, or the rate is not in (0, 1].
    """

    def __init__(
        self, min_value: float = 0.0, max_value: float = 1.0, rate: float = 1.0, axis: Any = 0
    ) -> None:
        if not 0.0 <= min_value <= max_value or not 0.0 < rate <= 1.0:
            raise ValueError(
                "MinMaxNorm: sizes rise from 0 and the rate is in (0, 1], got "
                f"{min_value!r}, {max_value!r} and {rate!r}"
            )
        self.min_value, self.max_value = float(min_value), float(max_value)
        self.rate, self.axis = float(rate), axis

    def __call__(self, w: Any) -> Tensor:
        """Return weights of the same shape."""
        norm = _norm(w, self.axis)
        wanted = ops["clip"](norm, self.min_value, self.max_value)
        wanted = self.rate * wanted + (1.0 - self.rate) * norm
        return w * (wanted / (norm + _EPSILON))


_CLASSES: dict[str, Any] = {
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
        a function of a tensor; None for none.

    Raises
    ------
    ValueError
        If the name is unknown.
    TypeError
        If it is nothing of these.
    """
    return find("constraint", constraint, _CLASSES)


def _norm(w: Any, axis: Any) -> Tensor:
    return ops["sqrt"](ops["sum"](w * w, axis=axis, keepdims=True))

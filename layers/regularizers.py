"""Regularizers: penalties on large weights or outputs. Names and formulas are Keras's."""

from __future__ import annotations

import math
from typing import Any

from ..core.extend import Tensor, in_precision, ops
from .configs import Named, find

__all__ = ["L1", "L1L2", "L2", "OrthogonalRegularizer", "Regularizer", "get"]


class Regularizer(Named):
    """Base class: ``regularizer(x)`` returns the penalty that ``x`` adds to the loss.

    Examples
    --------
    >>> class Sixth(gt.layers.regularizers.Regularizer):
    ...     def __call__(self, x):
    ...         return gt.sum(x**6)
    >>> Sixth()(gt.constant([1.0, -1.0])).item()
    2.0
    """

    def __call__(self, x: Any) -> Tensor:
        """Return the penalty, a scalar tensor."""
        raise NotImplementedError(f"{type(self).__name__}: define __call__(x)")


class L1L2(Regularizer):
    """``l1 * sum(|x|) + l2 * sum(x**2)``.

    Parameters
    ----------
    l1, l2
        The factors, 0 by default.

    Raises
    ------
    ValueError
        If a factor is negative or not finite.

    Examples
    --------
    >>> gt.layers.regularizers.L1L2(l1=1.0, l2=1.0)(gt.constant([-2.0])).item()
    6.0
    """

    l1: float = 0.0
    l2: float = 0.0

    def __init__(self, l1: float = 0.0, l2: float = 0.0) -> None:
        self.l1, self.l2 = _factor(self, "l1", l1), _factor(self, "l2", l2)

    def __call__(self, x: Any) -> Tensor:
        """Return the penalty, a scalar tensor."""
        x, total = in_precision(x, "float32"), None
        if self.l1:
            total = self.l1 * ops["sum"](ops["abs"](x))
        if self.l2 or total is None:
            squares = self.l2 * ops["sum"](x * x)
            total = squares if total is None else total + squares
        return total


class L1(L1L2):
    """``l1 * sum(|x|)``.

    Parameters
    ----------
    l1
        The factor, 0.01 by default.

    Raises
    ------
    ValueError
        If the factor is negative or not finite.
    """

    def __init__(self, l1: float = 0.01) -> None:
        self.l1 = _factor(self, "l1", l1)


class L2(L1L2):
    """``l2 * sum(x**2)``.

    Parameters
    ----------
    l2
        The factor, 0.01 by default.

    Raises
    ------
    ValueError
        If the factor is negative or not finite.
    """

    def __init__(self, l2: float = 0.01) -> None:
        self.l2 = _factor(self, "l2", l2)


class OrthogonalRegularizer(Regularizer):
    """The mean absolute cosine between the rows of a matrix, or its columns.

    Parameters
    ----------
    factor
        The factor, 0.01 by default.
    mode
        ``"rows"``, the default, or ``"columns"``.

    Raises
    ------
    ValueError
        If the factor is negative or not finite, or the mode is unknown. At the call, if the
        argument is not a matrix.
    """

    def __init__(self, factor: float = 0.01, mode: str = "rows") -> None:
        self.factor = _factor(self, "factor", factor)
        if mode not in ("rows", "columns"):
            raise ValueError(f"OrthogonalRegularizer: mode is 'rows' or 'columns', got {mode!r}")
        self.mode = mode

    def __call__(self, x: Any) -> Tensor:
        """Return the penalty, a scalar tensor."""
        if x.ndim != 2:
            raise ValueError(f"OrthogonalRegularizer is for matrices, got shape {x.shape}")
        x = in_precision(x, "float32")
        rows = x if self.mode == "rows" else ops["transpose"](x)
        norm = ops["sqrt"](ops["sum"](rows * rows, axis=1, keepdims=True))
        unit = rows / ops["maximum"](norm, 1e-12)
        cosines = ops["abs"](ops["matmul"](unit, ops["transpose"](unit)))
        count = rows.shape[0]
        others = ops["sum"](cosines) - ops["sum"](ops["diagonal"](cosines, offset=0))
        return self.factor * 0.5 * others / max(count * (count - 1) / 2, 1)


#: The names of gradtape's regularizers.
NAMES: dict[str, Any] = {
    "l1": L1,
    "l2": L2,
    "l1_l2": L1L2,
    "l1l2": L1L2,
    "orthogonal_regularizer": OrthogonalRegularizer,
}


def get(regularizer: Any) -> Any:
    """Return the regularizer for a name, or the object or function itself.

    Parameters
    ----------
    regularizer
        ``"l1"``, ``"l2"``, ``"l1_l2"`` or ``"orthogonal_regularizer"``, a class, an object, or a
        function of a tensor. ``None`` gives ``None``.

    Raises
    ------
    ValueError
        If the name is unknown.
    TypeError
        If ``regularizer`` is none of these.
    """
    return find("regularizer", regularizer)


def _factor(regularizer: Any, name: str, value: Any) -> float:
    if not isinstance(value, (int, float)) or not 0.0 <= value < math.inf:
        raise ValueError(
            f"{type(regularizer).__name__}: {name} must be finite and not negative, got {value!r}"
        )
    return float(value)

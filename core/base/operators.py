"""``ArrayOperators``: Python's operators for gradtape's own array types, each one op."""

from __future__ import annotations

from typing import Any

from .table import F

__all__ = ["ArrayOperators"]


class ArrayOperators:
    """Gradient rules are written with operators; these run them on symbols and batches."""

    __slots__ = ()
    # an ndarray on the left leaves the operator to us
    __array_ufunc__ = None

    def __add__(self, other: Any) -> Any:
        return F.add(self, other)

    def __radd__(self, other: Any) -> Any:
        return F.add(other, self)

    def __sub__(self, other: Any) -> Any:
        return F.subtract(self, other)

    def __rsub__(self, other: Any) -> Any:
        return F.subtract(other, self)

    def __mul__(self, other: Any) -> Any:
        return F.multiply(self, other)

    def __rmul__(self, other: Any) -> Any:
        return F.multiply(other, self)

    def __truediv__(self, other: Any) -> Any:
        return F.divide(self, other)

    def __rtruediv__(self, other: Any) -> Any:
        return F.divide(other, self)

    def __pow__(self, other: Any) -> Any:
        return F.power(self, other)

    def __rpow__(self, other: Any) -> Any:
        return F.power(other, self)

    def __matmul__(self, other: Any) -> Any:
        return F.matmul(self, other)

    def __rmatmul__(self, other: Any) -> Any:
        return F.matmul(other, self)

    def __neg__(self) -> Any:
        return F.negative(self)

    # elementwise as for every array, so these are found in sets and dictionaries, not in lists
    __hash__ = object.__hash__

    def __eq__(self, other: object) -> Any:
        return F.equal(self, other)

    def __ne__(self, other: object) -> Any:
        return F.not_equal(self, other)

    def __lt__(self, other: Any) -> Any:
        return F.less(self, other)

    def __le__(self, other: Any) -> Any:
        return F.less_equal(self, other)

    def __gt__(self, other: Any) -> Any:
        return F.greater(self, other)

    def __ge__(self, other: Any) -> Any:
        return F.greater_equal(self, other)

    def __bool__(self) -> bool:
        from ..graphs.graph import not_known

        raise not_known(self, "its truth (if, while, and, or)")

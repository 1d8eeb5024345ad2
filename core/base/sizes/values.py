"""The classes of unknown sizes in a trace, of floats computed from them, and of comparisons.

Their operators are in :mod:`.arithmetic`.
"""

from __future__ import annotations

import sys
from typing import Any, NoReturn

import numpy as np

from ..table import PACKAGE, ops
from .open_values import Open, checked, key_of
from .terms import Compound, Dim, Terms, infix, shown, terms_text

# NumPy functions that inspect their arguments and do not compute with them
_ASKING = frozenset({"array_equal", "array_equiv", "ndim", "shape", "size"})


class _Computing(Open):
    """A value that NumPy's functions accept.

    Attributes
    ----------
    strong
        Whether NumPy computed it: it then promotes with NumPy's dtype, as in eager code.
    """

    __slots__ = ("strong",)
    strong: bool

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        frame = sys._getframe(1)
        module, _, _ = frame.f_globals.get("__name__", "").partition(".")
        asks = module == "numpy" and frame.f_code.co_name in _ASKING
        if dtype not in (None, object) or not (asks or module == PACKAGE):
            # NumPy would treat sizes as objects, and its integers are not weak as Python's are
            self._refuse(
                "a NumPy array (np.array, np.prod)",
                "write math.prod(x.shape), gradtape.constant([n, 2]), gradtape.zeros((n, 2)) and "
                "other functions of gradtape, or set the size in its TensorSpec",
            )
        array = np.empty((), object)
        array[()] = self
        return array


class Size(_Computing):
    """An integer that is not known yet: an expression of the sizes of arrays.

    It computes with integers, sizes and tensors. True division returns a :class:`Number`, and a
    comparison with the same result in every run returns a boolean. It equals ``None``, the marker
    of an unknown size in shapes: ``None in x.shape`` is true if a size is unknown.

    Examples
    --------
    >>> def halves(x):
    ...     n = x.shape[0]
    ...     print(n, n // 2, 2 * n + 1 > n)
    ...     return x[: n // 2]
    >>> graph = gt.function(halves).get_concrete_function(gt.TensorSpec([None])).graph
    n n // 2 True
    """

    __slots__ = ("terms",)

    def __init__(self, terms: Terms, strong: bool = False) -> None:
        self.terms = terms
        self.strong = strong
        parts = [f"{c}*{'*'.join([atom.key for atom in m])}" for m, c in terms.items()]
        depth = max(atom.depth for monomial in terms for atom in monomial)
        self.key, self.depth = checked(" + ".join(sorted(parts)), depth)

    def as_strong(self) -> Size:
        """Return it as an integer that NumPy computed, which is not weak in promotion."""
        return Size(self.terms, strong=True)

    def as_plain(self) -> Size:
        """Return it as a weak Python integer, as sizes in shapes are."""
        return Size(self.terms) if self.strong else self

    @property
    def dim(self) -> Dim | None:
        """The unknown, if the size is a single one."""
        if len(self.terms) != 1:
            return None
        ((monomial, factor),) = self.terms.items()
        alone = factor == 1 and len(monomial) == 1 and isinstance(monomial[0], Dim)
        return monomial[0] if alone else None

    __hash__ = Open.__hash__

    def __bool__(self) -> bool:
        return (self == 0) is False or super().__bool__()

    def __pos__(self) -> Any:
        return self

    def __floor__(self) -> Any:
        return self

    __ceil__ = __trunc__ = __floor__

    def __round__(self, digits: int | None = None) -> Any:
        return self if digits is None or digits >= 0 else _rounded(self)

    def text(self) -> tuple[str, int]:
        return terms_text(self.terms)


def alone(atom: Any) -> Size:
    """Return a compound or an unknown as a size."""
    return Size({(atom,): 1})


class Number(_Computing):
    """A float that is not known yet: Python's arithmetic on sizes, which each run computes.

    It promotes as a weak Python float.
    """

    __slots__ = ("args", "kind")
    what = "number"
    stands_for = float

    def __init__(self, kind: str, *args: Any, strong: bool = False) -> None:
        self.kind = kind
        self.args = args
        self.strong = strong
        self.key, self.depth = checked(
            f"[{kind} {' '.join(map(key_of, args))}]",
            1 + max(getattr(x, "depth", 0) for x in args),
        )

    def as_strong(self) -> Number:
        """Return it as a float that NumPy computed, which is not weak in promotion."""
        return Number(self.kind, *self.args, strong=True)

    __hash__ = Open.__hash__

    def __pos__(self) -> Any:
        return self

    def __neg__(self) -> Any:
        return Number("neg", self)

    def __abs__(self) -> Any:
        return Number("abs", self)

    def __floor__(self) -> Any:
        return alone(Compound("floor", self))

    def __ceil__(self) -> Any:
        return alone(Compound("ceil", self))

    def __trunc__(self) -> Any:
        return alone(Compound("trunc", self))

    def __round__(self, digits: int | None = None) -> Any:
        return alone(Compound("round", self)) if digits is None else _rounded(self)

    def text(self) -> tuple[str, int]:
        if self.kind == "neg":
            return f"-{shown(self.args[0], 7)}", 6
        if len(self.args) == 2 and not self.kind.isalpha():
            return infix(self.kind, self.args)
        return f"{self.kind}({', '.join(map(repr, self.args))})", 8


def _rounded(value: Open) -> NoReturn:
    value._refuse("round() to a number of digits", "write gradtape.round(x * 100) / 100")


class Condition(_Computing):
    """A comparison of sizes that only a run can decide; ops take it as a traced boolean.

    Examples
    --------
    >>> def scaled(x):
    ...     return gt.where(x.shape[0] > 2, x, 2 * x)
    >>> scaled = gt.function(scaled, input_signature=[gt.TensorSpec([None])])
    >>> scaled(gt.ones(2)).tolist(), scaled(gt.ones(3)).tolist()
    ([2.0, 2.0], [1.0, 1.0, 1.0])
    """

    __slots__ = ("args", "kind")
    what = "comparison"
    stands_for = bool

    def __init__(self, kind: str, a: Any, b: Any) -> None:
        self.kind = kind
        self.args = (a, b)
        self.strong = False
        self.key, self.depth = checked(
            f"[{kind} {key_of(a)} {key_of(b)}]",
            1 + max(getattr(x, "depth", 0) for x in (a, b)),
        )

    __hash__ = Open.__hash__

    def __bool__(self) -> bool:
        if self.kind in ("==", "!=") and all(isinstance(x, Size) for x in self.args):
            self._refuse(
                "a decision (if, assert, and, or, not, in)",
                'give sizes that are always equal one name, as in TensorSpec(["n", 3]), or write '
                "gradtape.where or gradtape.cond for a choice",
            )
        return super().__bool__()

    def __invert__(self) -> NoReturn:
        self._refuse("~ (which makes Python's True -2)", "write gradtape.logical_not")

    def __eq__(self, other: object) -> Any:
        return ops["equal"](self, other)

    def __ne__(self, other: object) -> Any:
        return ops["not_equal"](self, other)

    def text(self) -> tuple[str, int]:
        return f" {self.kind} ".join(map(repr, self.args)), 0

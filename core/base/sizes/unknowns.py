"""Unknown sizes in a trace: sums of products of unknowns, proofs about them, and their classes.

The classes are those of sizes, of floats computed from them, and of comparisons. Their operators
are in :mod:`.arithmetic`.
"""

from __future__ import annotations

import itertools
import sys
from collections.abc import Iterable, Mapping
from typing import Any, NoReturn

import numpy as np

from ..table import PACKAGE, ops
from .open_values import Open, checked, key_of

# The most steps of a proof.
_STEPS = 64
# The most bits of a number in a sum: no array is that large.
_MOST_BITS = 4096

#: The precedence of operators; single names and numbers have the highest.
_BINDS = {"|": 1, "^": 2, "&": 3, "+": 4, "-": 4, "*": 5, "/": 5, "//": 5, "%": 5, "**": 7}
_SIGN, _ALONE = 6, 8

_serials = itertools.count()

Monomial = tuple[Any, ...]
#: A sum of products: from products of unknowns to their factors.
Terms = Mapping[Monomial, Any]


class Dim:
    """An unknown: the size of an array along an axis, or (``axis`` None) the value of an integer.

    Parameters
    ----------
    name
        Its name in printed expressions.
    symbol
        The symbol whose size or value it is.
    axis
        The axis.
    """

    __slots__ = ("axis", "depth", "key", "name", "symbol")

    def __init__(self, name: str, symbol: Any, axis: int | None) -> None:
        self.name = name
        self.symbol = symbol
        self.axis = axis
        self.key = f"d{next(_serials):09}"  # sorts in the order of creation
        self.depth = 0

    def nonnegative(self) -> bool:
        return self.axis is not None

    def text(self) -> tuple[str, int]:
        return self.name, _ALONE

    def __repr__(self) -> str:
        return self.name


class Compound:
    """Anything but a sum of products: ``kind`` of ``args``, such as the floor division of sizes."""

    __slots__ = ("_nonnegative", "args", "depth", "key", "kind")

    def __init__(self, kind: str, *args: Any) -> None:
        self.kind = kind
        self.args = args
        self.key, self.depth = checked(
            f"({kind} {' '.join(key_of(x) for x in args)})",
            1 + max(getattr(x, "depth", 0) for x in args),
        )
        self._nonnegative: bool | None = None

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Compound) and self.key == other.key

    def __hash__(self) -> int:
        return hash(self.key)

    def nonnegative(self) -> bool:
        """Return whether it can be proved to be at least 0."""
        if self._nonnegative is None:
            self._nonnegative = self._is_nonnegative()
        return self._nonnegative

    def _is_nonnegative(self) -> bool:
        if self.kind in ("max", "&"):
            return any(map(nonnegative, self.args))
        if self.kind == "%":
            return nonnegative(self.args[1])
        if self.kind == "int":
            return True
        return self.kind in ("min", "*", "//", "**", "|", "^") and all(map(nonnegative, self.args))

    def relaxed(self, below: bool) -> Iterable[Terms]:
        """Yield sums, possibly with fractions, that bound this one from below (or from above)."""
        a, b = self.args if len(self.args) == 2 else (0, 0)
        if self.kind == "//" and type(b) is int and b > 0:
            from fractions import Fraction  # for programs that divide unknown sizes

            shift = Fraction(1 - b, b) if below else 0
            yield summed({m: Fraction(c, b) for m, c in terms_of(a).items()}, {(): shift})
        elif self.kind == "//" and not below and nonnegative(a) and nonnegative(b):
            yield terms_of(a)  # b is not 0 here: a division by 0 raises
        elif self.kind == "%" and nonnegative(b):
            yield {} if below else summed(terms_of(b), {(): -1})
        elif self.kind == ("max" if below else "min"):
            yield from (terms_of(x) for x in self.args)
        elif self.kind == "int":
            yield {} if below else {(): 1}

    def text(self) -> tuple[str, int]:
        if self.kind in _BINDS:
            return infix(self.kind, self.args)
        return f"{self.kind}({', '.join(map(repr, self.args))})", _ALONE

    def __repr__(self) -> str:
        return self.text()[0]


# -- sums ------------------------------------------------------------------------------------------


def terms_of(value: Any) -> Terms:
    """Return a size or an integer as a sum."""
    terms: Terms | None = getattr(value, "terms", None)
    return terms if terms is not None else {(): value} if value else {}


def summed(a: Terms, b: Terms) -> dict[Monomial, Any]:
    """Return the sum of two sums."""
    result = dict(a)
    for monomial, factor in b.items():
        _include(result, monomial, factor)
    return result


def difference(a: Terms, b: Terms) -> dict[Monomial, Any]:
    """Return the difference of two sums."""
    return summed(a, {monomial: -factor for monomial, factor in b.items()})


def _include(result: dict[Monomial, Any], monomial: Monomial, factor: Any) -> None:
    total = result.get(monomial, 0) + factor
    if total:
        result[monomial] = total
    else:
        result.pop(monomial, None)


def times(a: Terms, b: Terms) -> dict[Monomial, Any]:
    """Return the product of two sums.

    Raises
    ------
    OverflowError
        If a number in it is far larger than any array.
    """
    result: dict[Monomial, Any] = {}
    for (m, x), (n, y) in itertools.product(a.items(), b.items()):
        _include(result, tuple(sorted((*m, *n), key=_key)), x * y)
    if any(factor.bit_length() > _MOST_BITS for factor in result.values()):
        raise OverflowError("a product of sizes is too large for any array")
    return result


def _key(atom: Any) -> str:
    key: str = atom.key
    return key


# -- proofs ----------------------------------------------------------------------------------------


def nonnegative(value: Any) -> bool:
    """Return whether a size or an integer can be proved to be at least 0."""
    terms = getattr(value, "terms", None)
    if terms is None:
        return not isinstance(value, Open) and value >= 0
    return _proved(terms, 5, [_STEPS])


def _proved(terms: Terms, depth: int, steps: list[int]) -> bool:
    # integers above -1 are at least 0, so bounds may be off by a fraction
    if terms.get((), 0) > -1 and all(
        factor > 0 and all(atom.nonnegative() for atom in monomial)
        for monomial, factor in terms.items()
        if monomial
    ):
        return True
    if not depth:
        return False
    for monomial, factor in terms.items():
        if len(monomial) != 1 or not isinstance(monomial[0], Compound):
            continue
        atom = monomial[0]
        # a min or max is one of its arguments: what holds for each of them holds for it
        every = atom.kind == ("min" if factor > 0 else "max")
        bounds = [terms_of(x) for x in atom.args] if every else [*atom.relaxed(below=factor > 0)]
        rest = {m: c for m, c in terms.items() if m != monomial}
        steps[0] -= len(bounds)
        if steps[0] < 0:
            return False
        proofs = (
            _proved(summed(rest, {m: c * factor for m, c in bound.items()}), depth - 1, steps)
            for bound in bounds
        )
        if bounds and (all(proofs) if every else any(proofs)):
            return True
    return False


# -- printing --------------------------------------------------------------------------------------


def shown(value: Any, least: int) -> str:
    """Return a value as text, in brackets if its precedence is below ``least``."""
    if hasattr(value, "text"):
        text, binds = value.text()
    else:
        text = repr(value)
        binds = _SIGN if text.startswith("-") else _ALONE
    return text if binds >= least else f"({text})"


def infix(kind: str, args: tuple[Any, ...]) -> tuple[str, int]:
    """Return an operator between its arguments as text, and its precedence."""
    binds = _BINDS[kind]
    if kind == "**":
        return f"{shown(args[0], _ALONE)} ** {shown(args[1], _SIGN)}", binds
    rest = (shown(x, binds + 1) for x in args[1:])
    return f" {kind} ".join((shown(args[0], binds), *rest)), binds


def ordered_terms(terms: Terms) -> list[tuple[Monomial, Any]]:
    """Return the terms of a sum in print order: long products first, subtracted terms last."""
    return sorted(
        terms.items(),
        key=lambda item: (-len(item[0]), item[1] < 0, [atom.key for atom in item[0]]),
    )


def terms_text(terms: Terms) -> tuple[str, int]:
    """Return a sum as text, and its precedence."""
    ordered = ordered_terms(terms)
    if len(ordered) == 1 and ordered[0][1] == 1 and len(ordered[0][0]) == 1:
        return ordered[0][0][0].text()
    text = ""
    for monomial, factor in ordered:
        size = abs(factor)
        if len(monomial) == 1 and size == 1:
            part = shown(monomial[0], _BINDS["*"] if text or factor > 0 else _SIGN + 1)
        else:
            names = [shown(atom, _ALONE) for atom in monomial]
            part = "*".join(names if size == 1 and names else [str(size), *names])
        if text:
            text += f" - {part}" if factor < 0 else f" + {part}"
        else:
            text = f"-{part}" if factor < 0 else part
    if len(ordered) > 1:
        return text, _BINDS["+"]
    ((monomial, factor),) = ordered
    return text, _BINDS["*"] if len(monomial) > 1 or abs(factor) > 1 else _SIGN


# -- classes ---------------------------------------------------------------------------------------


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


def size_of_atom(atom: Any) -> Size:
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
        return size_of_atom(Compound("floor", self))

    def __ceil__(self) -> Any:
        return size_of_atom(Compound("ceil", self))

    def __trunc__(self) -> Any:
        return size_of_atom(Compound("trunc", self))

    def __round__(self, digits: int | None = None) -> Any:
        return size_of_atom(Compound("round", self)) if digits is None else _rounded(self)

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

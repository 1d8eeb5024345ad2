"""Sizes as sums of products of unknowns, and proofs about them."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping
from fractions import Fraction
from typing import Any

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

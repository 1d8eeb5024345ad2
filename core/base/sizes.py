"""Sizes that a trace does not know: integers that compute, compare and print by their expression.

``x.shape[0]`` of an open size is a :class:`Size`. What Python divides or takes roots of is a
:class:`Number`, and a comparison that nothing decides yet is a :class:`Condition`. Each run of the
graph computes them by Python's own arithmetic, as a call without a trace does.
"""

from __future__ import annotations

import itertools
import math
import operator
from collections.abc import Callable, Iterable, Mapping, Sequence
from fractions import Fraction
from typing import Any, NoReturn

import numpy as np

from ..errors import TraceError
from .context import active_graph
from .dtypes import default_dtype
from .table import ops, public
from .unknown import is_users_call, user_line

__all__ = [
    "Compound",
    "Condition",
    "Dim",
    "Number",
    "Open",
    "OpenSize",
    "Size",
    "apart",
    "as_symbol",
    "exact_quotient",
    "is_open",
    "known_size",
    "largest",
    "provably_equal",
    "smallest",
]


class OpenSize(TraceError):
    """Python asked for the value of a size, number or comparison that only a run knows."""


# users meet a TraceError
OpenSize.__module__, OpenSize.__name__, OpenSize.__qualname__ = (
    TraceError.__module__,
    *("TraceError", "TraceError"),
)


def is_open(value: Any) -> bool:
    """Return whether a value is a size, number or comparison that only a run knows."""
    return isinstance(value, Open)


def known_size(n: Any) -> bool:
    """Return whether a size is known: neither ``None`` nor open."""
    return n is not None and not isinstance(n, Open)


class Open:
    """What is a Python number in every run, and an expression of sizes while a function is traced.

    Attributes
    ----------
    key
        Text that equal expressions share.
    """

    __slots__ = ("__weakref__", "key")
    key: str
    what = "size"

    def used_after(self) -> str:
        """Say that it is used after its trace."""
        return (
            f"{user_line()}: the {self.what} {self!r} of a trace is used after it; return what "
            "depends on it from the function"
        )

    def _refuse(self, asked: str, instead: str) -> NoReturn:
        if active_graph.get() is None:
            raise OpenSize(self.used_after())
        raise OpenSize(
            f"{user_line()}: the {self.what} {self!r} is not known while a function is traced, and "
            f"{asked} needs its value; {instead}"
        )

    def __bool__(self) -> bool:
        self._refuse(
            "a decision (if, while, and, or, not, in, max, min)",
            "write gradtape.where or gradtape.cond for a choice, gradtape.while_loop to repeat, "
            "gradtape.maximum or gradtape.minimum, or give its TensorSpec the size",
        )

    def __index__(self) -> int:
        self._refuse(
            "Python or NumPy (range, a list, len(), an array)",
            "compute with gradtape's functions (gradtape.arange, zeros, tile; gradtape.scan or "
            "while_loop to repeat), or give its TensorSpec the size",
        )

    def __int__(self) -> int:
        self._refuse(
            "int()",
            "a size is an integer as it is: write n, n // 2, or math.floor, math.ceil or round of "
            "a number, or give its TensorSpec the size",
        )

    def __float__(self) -> float:
        self._refuse(
            "Python (float(), math)",
            "write n ** 0.5, n / 2 or a gradtape function of it, or give its TensorSpec the size",
        )

    def __complex__(self) -> complex:
        return complex(float(self))

    def __eq__(self, other: object) -> Any:
        return NotImplemented

    def __hash__(self) -> int:
        # a table of numbers would not have it, and say so by its default, or by False
        if is_users_call():
            self._refuse(
                "a dictionary or a set",
                "compare it with the keys in gradtape.cond or where, or give its TensorSpec the "
                "size",
            )
        return hash((type(self), self.key))

    def __copy__(self) -> Any:
        return self

    def __deepcopy__(self, memo: Any) -> Any:
        return self

    def __reduce__(self) -> NoReturn:
        raise TypeError(f"the {self.what} {self!r} of a trace is not pickled")

    def __format__(self, spec: str) -> str:
        return str(self)

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **kwargs: Any) -> Any:
        plain = _UFUNCS.get(ufunc.__name__)
        if plain is not None and method == "__call__" and not kwargs:
            numbers = [_as_number(x) for x in inputs]
            if None not in numbers:
                return plain(*numbers)
        if any(hasattr(x, "array") for x in inputs):
            return NotImplemented  # a tensor's turn
        # beside an array a number is weak, and stays what it is; alone it has NumPy's dtype
        kinds: tuple[type, ...] = (np.ndarray, np.generic)
        if not any(isinstance(x, kinds) for x in inputs):
            kinds = (Open,)
        as_tensor = public("as_tensor")
        tensors = [
            as_tensor(x, "float64" if isinstance(x, Number) else None)
            if isinstance(x, kinds)
            else x
            for x in inputs
        ]
        return getattr(ufunc, method)(*tensors, **kwargs)


def _as_number(value: Any) -> Any:
    """Return a number as Python's, an open one as it is; None for anything else."""
    if isinstance(value, (int, Size, Number)):
        return value
    if isinstance(value, np.integer):
        return int(value)
    return value if type(value) is float else None


def as_symbol(value: Open, dtypes: Sequence[Any], dtype: Any = None) -> Any:
    """Return an open number as a symbol of the graph that is traced.

    Parameters
    ----------
    value
        A size, number or comparison.
    dtypes
        The dtypes beside it; it is weak, as a Python number is.
    dtype
        The dtype that it is to have instead.

    Raises
    ------
    TraceError
        If no function is traced.
    """
    graph = active_graph.get()
    if graph is None:
        raise TraceError(value.used_after())
    if isinstance(value, Condition):
        dtype = np.dtype(bool) if dtype is None else dtype
    elif dtype is None:
        default = np.dtype(np.int64) if isinstance(value, Size) else default_dtype()
        weak = 0 if isinstance(value, Size) else 0.0
        dtype = np.result_type(*dtypes, weak) if dtypes else default
    return graph.number(value, dtype)


# -- what sizes are made of ------------------------------------------------------------------------

_serials = itertools.count()


class Dim:
    """An unknown: the size of an array along an axis, or (``axis`` None) the value of an integer.

    Parameters
    ----------
    name
        What it is called in print.
    symbol
        The symbol of which it is the size or the value.
    axis
        The axis.
    """

    __slots__ = ("axis", "key", "name", "symbol")

    def __init__(self, name: str, symbol: Any, axis: int | None) -> None:
        self.name = name
        self.symbol = symbol
        self.axis = axis
        self.key = f"d{next(_serials)}"

    def nonnegative(self) -> bool:
        return self.axis is not None

    def __repr__(self) -> str:
        return self.name


class Compound:
    """What is no polynomial: ``kind`` of ``args``, for instance the floor division of two sizes."""

    __slots__ = ("args", "key", "kind")

    def __init__(self, kind: str, *args: Any) -> None:
        self.kind = kind
        self.args = args
        self.key = f"({kind} {' '.join(key_of(x) for x in args)})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Compound) and self.key == other.key

    def __hash__(self) -> int:
        return hash(self.key)

    def nonnegative(self) -> bool:
        if self.kind == "max":
            return any(map(_nonnegative, self.args))
        if self.kind == "%":
            return _nonnegative(self.args[1])
        return self.kind in ("min", "//", "**") and all(map(_nonnegative, self.args))

    def relaxed(self, below: bool) -> Iterable[dict[tuple[Any, ...], Any]]:
        """Yield polynomials with fractions that are never above (or below) this one."""
        a, b = self.args if len(self.args) == 2 else (0, 0)
        if self.kind == "//" and type(b) is int and b > 0:
            shift = Fraction(1 - b, b) if below else 0
            quotient = {m: Fraction(c, b) for m, c in terms_of(a).items()}
            yield _summed(quotient, {(): shift})
        elif self.kind == "%" and type(b) is int and b > 0:
            yield {} if below else {(): b - 1}
        elif self.kind == ("max" if below else "min"):
            yield from (terms_of(x) for x in self.args)

    def __repr__(self) -> str:
        if self.kind in ("max", "min", "floor", "ceil", "round"):
            return f"{self.kind}({', '.join(map(repr, self.args))})"
        return f" {self.kind} ".join(map(_in_brackets, self.args))


def key_of(value: Any) -> str:
    """Return the text that stands for a number or an open one, the same for equal ones."""
    return value.key if isinstance(value, Open) else repr(value)


Monomial = tuple[Any, ...]


def terms_of(value: Any) -> Mapping[Monomial, Any]:
    """Return a size as a polynomial: from products of unknowns to their factors."""
    return value.terms if isinstance(value, Size) else {(): value} if value else {}


def _summed(a: Mapping[Monomial, Any], b: Mapping[Monomial, Any]) -> dict[Monomial, Any]:
    result = dict(a)
    for monomial, factor in b.items():
        total = result.get(monomial, 0) + factor
        if total:
            result[monomial] = total
        else:
            result.pop(monomial, None)
    return result


def _times(a: Mapping[Monomial, Any], b: Mapping[Monomial, Any]) -> dict[Monomial, Any]:
    result: dict[Monomial, Any] = {}
    for (m, x), (n, y) in itertools.product(a.items(), b.items()):
        joined = tuple(sorted((*m, *n), key=_key))
        result = _summed(result, {joined: x * y})
    return result


def _key(atom: Any) -> str:
    key: str = atom.key
    return key


def _size(terms: Mapping[Monomial, Any]) -> Any:
    """Return a polynomial as a size, or as an integer if that is what it is."""
    if not any(terms):
        return terms.get((), 0)
    return Size(terms)


def _atom(atom: Any) -> Size:
    return Size({(atom,): 1})


# -- what can be proved ----------------------------------------------------------------------------


def _nonnegative(value: Any, depth: int = 5) -> bool:
    """Return whether a size can be proved to be at least 0."""
    if not isinstance(value, Size):
        return not isinstance(value, Open) and value >= 0
    return _proved(value.terms, depth)


def _proved(terms: Mapping[Monomial, Any], depth: int) -> bool:
    # integers above -1 are at least 0, so that a fraction may be lost on the way
    if terms.get((), 0) > -1 and all(
        factor > 0 and all(atom.nonnegative() for atom in monomial)
        for monomial, factor in terms.items()
        if monomial
    ):
        return True
    if not depth:
        return False
    for monomial, factor in terms.items():
        if len(monomial) == 1 and isinstance(monomial[0], Compound):
            rest = {m: c for m, c in terms.items() if m != monomial}
            for bound in monomial[0].relaxed(below=factor > 0):
                scaled = {m: c * factor for m, c in bound.items()}
                if _proved(_summed(rest, scaled), depth - 1):
                    return True
    return False


def provably_equal(a: Any, b: Any) -> bool:
    """Return whether two sizes are equal in every run; ``None`` is equal to none."""
    if isinstance(a, Size) and isinstance(b, Size):
        return a.key == b.key
    return known_size(a) and known_size(b) and bool(a == b)


def exact_quotient(a: Any, b: Any) -> Any:
    """Return ``a // b`` of sizes that divide without remainder, where ``b`` is not 0."""
    if not isinstance(b, Size):
        return a // b
    if len(b.terms) == 1:
        ((divisor, by),) = b.terms.items()
        result: dict[Monomial, Any] = {}
        for monomial, factor in terms_of(a).items():
            rest = list(monomial)
            for atom in divisor:
                if atom not in rest:
                    return a // b
                rest.remove(atom)
            if factor % by:
                return a // b
            result[tuple(rest)] = factor // by
        return _size(result)
    return 1 if provably_equal(a, b) else a // b


# -- integers --------------------------------------------------------------------------------------


class Size(Open):
    """An integer that is not known yet: an expression of the sizes of arrays.

    It computes with integers, sizes and tensors; true division gives a :class:`Number`, and a
    comparison that no run could change gives a plain boolean. It equals ``None``, which is what a
    shape holds where nothing is known: ``None in x.shape`` asks whether a size is open.

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

    def __init__(self, terms: Mapping[Monomial, Any]) -> None:
        self.terms = terms
        parts = [f"{c}*{'*'.join(map(_key, m))}" for m, c in terms.items()]
        self.key = " + ".join(sorted(parts))

    @property
    def dim(self) -> Dim | None:
        """The unknown that this is, if it is one alone."""
        if len(self.terms) != 1:
            return None
        ((monomial, factor),) = self.terms.items()
        alone = factor == 1 and len(monomial) == 1 and isinstance(monomial[0], Dim)
        return monomial[0] if alone else None

    def __eq__(self, other: object) -> Any:
        if other is None:
            return True
        return _compared("==", self, other)

    def __ne__(self, other: object) -> Any:
        if other is None:
            return False
        return _compared("!=", self, other)

    __hash__ = Open.__hash__

    def __pos__(self) -> Any:
        return self

    def __neg__(self) -> Any:
        return self * -1

    def __abs__(self) -> Any:
        return largest(self, -self)

    def __floor__(self) -> Any:
        return self

    __ceil__ = __trunc__ = __floor__

    def __round__(self, digits: int | None = None) -> Any:
        return self if digits is None or digits >= 0 else _rounded(self)

    def __repr__(self) -> str:
        ordered = sorted(self.terms.items(), key=lambda item: (-len(item[0]), item[1] < 0))
        text = ""
        for monomial, factor in ordered:
            names = "*".join(_in_brackets(atom) for atom in monomial)
            if len(ordered) == 1 and factor == 1 and len(monomial) == 1:
                return repr(monomial[0])
            shown = names if abs(factor) == 1 and names else f"{abs(factor)}*{names}".rstrip("*")
            sign = "-" if factor < 0 else "+"
            text += f" {sign} {shown}" if text else f"-{shown}" if factor < 0 else shown
        return text


def _in_brackets(value: Any) -> str:
    text = repr(value)
    whole = text.isidentifier() or text.isdigit() or (text.endswith(")") and text[0].isalpha())
    return text if whole else f"({text})"


def _divided(a: Any, b: Any) -> Any:
    """Return ``a // b`` of sizes."""
    if type(b) is int and b == 0:
        raise ZeroDivisionError(f"{user_line()}: {a!r} // 0")
    if type(b) is not int:
        return _atom(Compound("//", a, b))
    # what divides evenly comes out of the division: (4*n + m) // 2 is 2*n + m // 2
    even = {m: c // b for m, c in terms_of(a).items() if c % b == 0}
    rest = {m: c for m, c in terms_of(a).items() if c % b}
    if not any(rest):
        return _size(_summed(even, {(): rest.get((), 0) // b}))
    shift = rest.get((), 0) // b  # (n + 5) // 2 is (n + 1) // 2 + 2
    left = _size(_summed(rest, {(): -shift * b}))
    single = terms_of(left)
    atom = next(iter(single))[0] if b > 0 and list(single.values()) == [1] else None
    if isinstance(atom, Compound) and atom.kind == "//" and len(next(iter(single))) == 1:
        inner, by = atom.args
        if type(by) is int and by > 0:
            left, b = inner, b * by  # n // 2 // 2 is n // 4
    return _size(_summed(_summed(even, {(): shift}), _atom(Compound("//", left, b)).terms))


def _remainder(a: Any, b: Any) -> Any:
    """Return ``a % b`` of sizes."""
    if type(b) is not int:
        return _atom(Compound("%", a, b))
    if b == 0:
        raise ZeroDivisionError(f"{user_line()}: {a!r} % 0")
    rest = {m: c % b for m, c in terms_of(a).items() if c % b}
    return _atom(Compound("%", _size(rest), b)) if any(rest) else rest.get((), 0)


def _power(a: Any, b: Any) -> Any:
    if type(b) is int and 0 <= b <= 16:
        return math.prod([a] * b)
    if _nonnegative(b):
        return _atom(Compound("**", a, b))
    return Number("**", a, b)


def largest(*values: Any) -> Any:
    """Return the largest of sizes and integers."""
    return _extreme("max", values)


def smallest(*values: Any) -> Any:
    """Return the smallest of sizes and integers."""
    return _extreme("min", values)


def _extreme(kind: str, values: Iterable[Any]) -> Any:
    kept: list[Any] = []
    sign = 1 if kind == "max" else -1
    for value in values:
        if any(_nonnegative((other - value) * sign) for other in kept):
            continue
        kept = [other for other in kept if not _nonnegative((value - other) * sign)]
        kept.append(value)
    if len(kept) == 1:
        return kept[0]
    return _atom(Compound(kind, *sorted(kept, key=key_of)))


def apart(a: Any, b: Any) -> Any:
    """Return ``a - b``; a difference from an extreme is the opposite extreme of differences."""
    terms = terms_of(b)
    atom = next(iter(terms))[0] if list(terms.values()) == [1] and any(terms) else None
    if isinstance(atom, Compound) and atom.kind in ("max", "min") and len(next(iter(terms))) == 1:
        return _extreme("min" if atom.kind == "max" else "max", [a - x for x in atom.args])
    return a - b


# -- floats ----------------------------------------------------------------------------------------


class Number(Open):
    """A float that is not known yet: Python's arithmetic on sizes, as each run will do it.

    Beside tensors it is a weak Python float.
    """

    __slots__ = ("args", "kind")
    what = "number"

    def __init__(self, kind: str, *args: Any) -> None:
        self.kind = kind
        self.args = args
        self.key = f"[{kind} {' '.join(map(key_of, args))}]"

    def __eq__(self, other: object) -> Any:
        return _compared("==", self, other)

    def __ne__(self, other: object) -> Any:
        return _compared("!=", self, other)

    __hash__ = Open.__hash__

    def __pos__(self) -> Any:
        return self

    def __neg__(self) -> Any:
        return Number("neg", self)

    def __abs__(self) -> Any:
        return Number("abs", self)

    def __floor__(self) -> Any:
        return _atom(Compound("floor", self))

    def __ceil__(self) -> Any:
        return _atom(Compound("ceil", self))

    def __round__(self, digits: int | None = None) -> Any:
        return _atom(Compound("round", self)) if digits is None else _rounded(self)

    def __repr__(self) -> str:
        if len(self.args) == 1:
            return f"{self.kind}({self.args[0]!r})"
        return f" {self.kind} ".join(map(_in_brackets, self.args))


def _rounded(value: Open) -> NoReturn:
    value._refuse("round() to a number of digits", "write gradtape.round(x * 100) / 100")


def _number(kind: str) -> Callable[[Any, Any], Any]:
    return lambda a, b: Number(kind, a, b)


# -- operators -------------------------------------------------------------------------------------

#: What Python's operators give of two integers, one of them a size at least.
_OF_SIZES: dict[str, Callable[[Any, Any], Any]] = {
    "+": lambda a, b: _size(_summed(terms_of(a), terms_of(b))),
    "-": lambda a, b: _size(_summed(terms_of(a), {m: -c for m, c in terms_of(b).items()})),
    "*": lambda a, b: _size(_times(terms_of(a), terms_of(b))),
    "//": _divided,
    "%": _remainder,
    "**": _power,
    "/": _number("/"),
}
_METHODS = {
    "add": "+",
    "sub": "-",
    "mul": "*",
    "floordiv": "//",
    "mod": "%",
    "pow": "**",
    "truediv": "/",
}


def _computed(kind: str, a: Any, b: Any) -> Any:
    """Return ``a kind b``; NotImplemented where one is no number (a tensor knows what to do)."""
    a, b = _as_number(a), _as_number(b)
    if a is None or b is None:
        return NotImplemented
    if any(type(x) is float or isinstance(x, Number) for x in (a, b)):
        return Number(kind, a, b)
    return _OF_SIZES[kind](int(a) if isinstance(a, bool) else a, int(b) if b is True else b)


def _bind(kind: str) -> tuple[Callable[[Any, Any], Any], Callable[[Any, Any], Any]]:
    return (lambda self, other: _computed(kind, self, other)), (
        lambda self, other: _computed(kind, other, self)
    )


for _method, _kind in _METHODS.items():
    _left, _right = _bind(_kind)
    for _class in (Size, Number):
        setattr(_class, f"__{_method}__", _left)
        setattr(_class, f"__r{_method}__", _right)


def _divmod(self: Any, other: Any) -> Any:
    return self // other, self % other


def _rdivmod(self: Any, other: Any) -> Any:
    return other // self, other % self


for _class in (Size, Number):
    _class.__divmod__ = _divmod  # type: ignore[union-attr]
    _class.__rdivmod__ = _rdivmod  # type: ignore[union-attr]


# -- comparisons -----------------------------------------------------------------------------------

#: A comparison -> what it says of the difference, and what its opposite says: each as a sign and a
#: shift; ``a < b`` is ``b - a - 1 >= 0``.
_PROOFS = {
    "<": (((-1, -1),), ((1, 0),)),
    "<=": (((-1, 0),), ((1, -1),)),
    ">": (((1, -1),), ((-1, 0),)),
    ">=": (((1, 0),), ((-1, -1),)),
}


def _compared(kind: str, a: Any, b: Any) -> Any:
    """Return a boolean if every run says the same, a condition if not."""
    b = _as_number(b)
    if b is None:
        return NotImplemented
    if isinstance(b, bool):
        b = int(b)
    if isinstance(a, Number) or isinstance(b, (float, Number)):
        if key_of(a) == key_of(b):
            return kind in ("==", "<=", ">=")
        return Condition(kind, a, b)
    difference = a - b
    if kind in ("==", "!="):
        if not isinstance(difference, Size):
            return (difference == 0) is (kind == "==")
        if _nonnegative(difference - 1) or _nonnegative(-difference - 1):
            return kind == "!="
        return Condition(kind, a, b)
    for answer, proofs in zip((True, False), _PROOFS[kind], strict=True):
        if any(_nonnegative(difference * sign + shift) for sign, shift in proofs):
            return answer
    return Condition(kind, a, b)


def _comparing(kind: str) -> Callable[[Any, Any], Any]:
    return lambda self, other: _compared(kind, self, other)


for _method, _kind in {"lt": "<", "le": "<=", "gt": ">", "ge": ">="}.items():
    for _class in (Size, Number):
        setattr(_class, f"__{_method}__", _comparing(_kind))


class Condition(Open):
    """A comparison of sizes that only a run decides: a traced boolean where one is computed with.

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

    def __init__(self, kind: str, a: Any, b: Any) -> None:
        self.kind = kind
        self.args = (a, b)
        self.key = f"[{kind} {key_of(a)} {key_of(b)}]"

    __hash__ = Open.__hash__

    def __invert__(self) -> NoReturn:
        self._refuse("~ (which makes Python's True -2)", "write gradtape.logical_not")

    def __and__(self, other: Any) -> Any:
        return ops["logical_and"](self, other)

    def __or__(self, other: Any) -> Any:
        return ops["logical_or"](self, other)

    def __xor__(self, other: Any) -> Any:
        return ops["logical_xor"](self, other)

    __rand__, __ror__, __rxor__ = __and__, __or__, __xor__

    def __eq__(self, other: object) -> Any:
        return ops["equal"](self, other)

    def __ne__(self, other: object) -> Any:
        return ops["not_equal"](self, other)

    def __repr__(self) -> str:
        return f" {self.kind} ".join(map(repr, self.args))


_UFUNCS: dict[str, Callable[..., Any]] = {
    "add": operator.add,
    "subtract": operator.sub,
    "multiply": operator.mul,
    "divide": operator.truediv,
    "floor_divide": operator.floordiv,
    "remainder": operator.mod,
    "power": operator.pow,
    "negative": operator.neg,
    "positive": operator.pos,
    "absolute": operator.abs,
    "maximum": largest,
    "minimum": smallest,
    "less": operator.lt,
    "less_equal": operator.le,
    "greater": operator.gt,
    "greater_equal": operator.ge,
    "equal": operator.eq,
    "not_equal": operator.ne,
}

"""The operators of sizes that a trace does not know.

If ``x.shape[0]`` is unknown, it is a :class:`Size`. Quotients and roots of it are a
:class:`Number`, and a comparison that cannot be decided yet is a :class:`Condition`. Each run of
the graph computes them by Python's own arithmetic, as eager code does.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from ...errors import TraceError
from ..context import active_graph
from ..dtypes import default_dtype
from ..table import above, ops
from ..user_code import user_line
from .open_values import Open, is_open, key_of, known_size
from .unknowns import (
    Compound,
    Condition,
    Monomial,
    Number,
    Size,
    Terms,
    difference,
    nonnegative,
    size_of_atom,
    summed,
    terms_of,
    times,
)

# A product whose text would be longer is not expanded.
_LONGEST_PRODUCT = 4000


def as_symbol(value: Open, dtypes: Sequence[Any], dtype: Any = None) -> Any:
    """Return an unknown number as a symbol of the graph being traced.

    Parameters
    ----------
    value
        A size, number or comparison.
    dtypes
        The dtypes of the other arguments. The number promotes with them as a weak Python number,
        unless NumPy computed it.
    dtype
        A dtype to use instead.

    Raises
    ------
    TraceError
        If no function is being traced.
    """
    graph = active_graph.get()
    if graph is None:
        raise TraceError(value.used_after())
    if isinstance(value, Condition):
        dtype = np.dtype(bool) if dtype is None else dtype
    elif dtype is None:
        whole = isinstance(value, Size)
        if getattr(value, "strong", False):
            dtype = np.result_type(*dtypes, np.int64 if whole else np.float64)
        elif dtypes:
            dtype = np.result_type(*dtypes, 0 if whole else 0.0)
        else:
            dtype = np.dtype(np.int64) if whole else default_dtype()
    return graph.number(value, dtype)


def _by_numpy(value: Any) -> Any:
    """Return a number as one that NumPy computed, which is not weak in promotion."""
    if type(value) is int:
        return np.int64(value)
    return value.as_strong() if isinstance(value, (Size, Number)) else value


def _is_strong(value: Any) -> bool:
    return isinstance(value, np.generic) or getattr(value, "strong", False)


_WIDE = (np.dtype(np.int32), np.dtype(np.int64))


def _is_narrow(*numbers: Any) -> bool:
    """Return whether NumPy computes in an integer dtype that wraps, unlike sizes.

    ``int32`` counts as ``int64``: it holds every usual size, and shapes stay comparable.
    """
    if not any(isinstance(x, np.integer) and x.dtype not in _WIDE for x in numbers):
        return False
    if any(isinstance(x, (float, Number)) for x in numbers):
        return False
    kinds = [x.dtype if isinstance(x, np.generic) else _weight(x) for x in numbers]
    return np.result_type(*kinds) not in _WIDE


def _weight(value: Any) -> Any:
    """Return what stands for a Python number or a size in NumPy's promotion."""
    return np.int64 if getattr(value, "strong", False) else 0


def _as_number(value: Any) -> Any:
    """Return a Python number, an unknown number unchanged, or None for anything else."""
    if isinstance(value, (Size, Number)):
        return value
    if isinstance(value, (int, np.integer, np.bool_)):
        return int(value)
    if isinstance(value, Condition):
        return size_of_atom(Compound("int", value))
    return float(value) if isinstance(value, float) else None


# -- integers --------------------------------------------------------------------------------------


def _size(terms: Terms) -> Any:
    """Return a sum as a size, or as an integer if it is constant."""
    if not any(terms):
        return terms.get((), 0)
    return Size(terms)


def same_size(a: Any, b: Any) -> bool:
    """Return whether two sizes are equal in every run; ``None`` equals no size.

    Parameters
    ----------
    a, b
        Integers, unknown sizes or ``None``.

    Returns
    -------
    bool
        False if a trace cannot prove it.

    Examples
    --------
    >>> from gradtape.plugin import same_size
    >>> same_size(3, 3), same_size(None, None)
    (True, False)
    """
    if isinstance(a, Size) and isinstance(b, Size):
        return a.key == b.key or (a == b) is True
    return known_size(a) and known_size(b) and bool(a == b)


def exact_quotient(a: Any, b: Any) -> Any:
    """Return ``a // b`` of sizes that divide exactly; ``b`` is not 0."""
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
    return 1 if same_size(a, b) else a // b


def _ordered(values: Iterable[Any]) -> list[Any]:
    """Return the arguments of a commutative operation in canonical order."""
    return sorted(values, key=lambda x: (not is_open(x), key_of(x)))


def _product(a: Any, b: Any) -> Any:
    if is_open(a) and is_open(b):
        length = len(a.terms) * len(b.key) + len(b.terms) * len(a.key)
        if length > _LONGEST_PRODUCT:
            return size_of_atom(Compound("*", *_ordered((a, b))))
    return _size(times(terms_of(a), terms_of(b)))


def _divided(a: Any, b: Any) -> Any:
    """Return ``a // b`` of sizes."""
    if type(b) is not int:
        return size_of_atom(Compound("//", a, b))
    if b == 0:
        raise ZeroDivisionError(f"{user_line()}: {a!r} // 0")
    if b < 0:
        return _divided(-a, -b)
    # terms that divide exactly leave the division: (4*n + m) // 2 is 2*n + m // 2
    even = {m: c // b for m, c in terms_of(a).items() if c % b == 0}
    rest = {m: c for m, c in terms_of(a).items() if m and c % b}
    constant = terms_of(a).get((), 0)
    even.pop((), None)
    even = summed(even, {(): constant // b})  # (n + 5) // 2 is (n + 1) // 2 + 2
    if not rest:
        return _size(even)
    common = math.gcd(b, *rest.values())  # (2*n + 1) // 4 is n // 2
    b, constant = b // common, constant % b // common
    rest = {m: c // common for m, c in rest.items()}
    (atom, *others), *more = (m for m in rest)
    if not more and not others and list(rest.values()) == [1] and isinstance(atom, Compound):
        by = atom.args[-1]
        if atom.kind == "//" and type(by) is int:
            # (n // 2 + 1) // 2 is (n + 2) // 4
            deeper = _divided(atom.args[0] + constant * by, b * by)
            return _size(summed(even, terms_of(deeper)))
    left = _size(summed(rest, {(): constant}))
    return _size(summed(even, {(Compound("//", left, b),): 1}))


def _remainder(a: Any, b: Any) -> Any:
    """Return ``a % b`` of sizes."""
    if type(b) is not int:
        return size_of_atom(Compound("%", a, b))
    if b == 0:
        raise ZeroDivisionError(f"{user_line()}: {a!r} % 0")
    if b < 0:
        return -_remainder(-a, -b)
    rest = {m: c % b for m, c in terms_of(a).items() if c % b}
    if not any(rest):
        return rest.get((), 0)
    common = math.gcd(b, *rest.values())  # 2*n % 4 is 2*(n % 2)
    b //= common
    small = {m: c // common - (b if 2 * c > b * common else 0) for m, c in rest.items()}
    return _product(size_of_atom(Compound("%", _size(small), b)), common)


def _power(a: Any, b: Any) -> Any:
    """Return ``a ** b`` of sizes: an integer, unless the exponent is below 0 in every run."""
    if type(b) is int and 0 <= b <= 16:
        return math.prod([a] * b)
    if nonnegative(-1 - b):
        return Number("**", a, b * 1.0)
    return size_of_atom(Compound("**", a, b))


def _bits(kind: str) -> Callable[[Any, Any], Any]:
    return lambda a, b: size_of_atom(Compound(kind, *_ordered((a, b))))


def _shifted(kind: str) -> Callable[[Any, Any], Any]:
    def shift(a: Any, b: Any) -> Any:
        if nonnegative(-1 - b):
            raise ValueError(f"{user_line()}: negative shift count in {a!r} {kind} {b!r}")
        return a * 2**b if kind == "<<" else a // 2**b

    return shift


def largest(*values: Any) -> Any:
    """Return the largest of sizes and numbers; unknown sizes give an expression.

    Parameters
    ----------
    values
        Integers and unknown sizes.

    Returns
    -------
    int or Size
        The largest one, an expression if a trace does not know which it is.

    Raises
    ------
    OpenSize
        If a size is ``None``, of which a trace knows nothing.

    Examples
    --------
    >>> from gradtape.plugin import largest
    >>> sizes = []
    >>> @gt.function(input_signature=[gt.TensorSpec([None])])
    ... def look(x):
    ...     sizes.append(largest(x.shape[0], 1))
    ...     return x
    >>> _ = look(gt.ones(3))
    >>> largest(2, 4), str(sizes[0])
    (4, 'max(n, 1)')
    """
    return _extreme("max", values)


def smallest(*values: Any) -> Any:
    """Return the smallest of sizes and numbers; unknown sizes give an expression.

    Parameters
    ----------
    values
        Integers and unknown sizes.

    Returns
    -------
    int or Size
        The smallest one, an expression if a trace does not know which it is.

    Raises
    ------
    OpenSize
        If a size is ``None``, of which a trace knows nothing.

    Examples
    --------
    >>> from gradtape.plugin import smallest
    >>> sizes = []
    >>> @gt.function(input_signature=[gt.TensorSpec([None])])
    ... def look(x):
    ...     sizes.append(smallest(x.shape[0], 1))
    ...     return x
    >>> _ = look(gt.ones(3))
    >>> smallest(2, 4), str(sizes[0])
    (2, 'min(n, 1)')
    """
    return _extreme("min", values)


def _extreme(kind: str, values: Sequence[Any]) -> Any:
    if not any(map(is_open, values)):
        if any(type(x) is float for x in values):  # as in NumPy, floats and NaN propagate
            values = [float(x) for x in values]
            values = [x for x in values if x != x] or values
        return max(values) if kind == "max" else min(values)
    numbers = [_as_number(value) for value in values]
    if any(type(x) is float or isinstance(x, Number) for x in numbers):
        return Number(kind, *numbers)
    kept: list[Any] = []
    sign = 1 if kind == "max" else -1
    for value in numbers:
        if any(nonnegative((other - value) * sign) for other in kept):
            continue
        kept = [other for other in kept if not nonnegative((value - other) * sign)]
        kept.append(value)
    if len(kept) == 1:
        return kept[0]
    return size_of_atom(Compound(kind, *_ordered(kept)))


def size_difference(a: Any, b: Any) -> Any:
    """Return ``a - b``; if ``b`` is a max of sizes, the min of the differences, and vice versa."""
    terms = terms_of(b)
    atom = next(iter(terms))[0] if list(terms.values()) == [1] and any(terms) else None
    if isinstance(atom, Compound) and atom.kind in ("max", "min") and len(next(iter(terms))) == 1:
        return _extreme("min" if atom.kind == "max" else "max", [a - x for x in atom.args])
    return a - b


# -- floats ----------------------------------------------------------------------------------------


def _tame(value: Any) -> bool:
    """Return whether a number is never NaN, so that it equals itself."""
    if isinstance(value, Number):
        return all(map(_tame, value.args))
    return not isinstance(value, float) or value == 0 or 1e-15 < abs(value) < 1e15


# -- operators -------------------------------------------------------------------------------------


def _number(kind: str) -> Callable[[Any, Any], Any]:
    return lambda a, b: Number(kind, a, b)


#: Python's operators for two integers, at least one of them a size.
_OF_SIZES: dict[str, Callable[[Any, Any], Any]] = {
    "+": lambda a, b: _size(summed(terms_of(a), terms_of(b))),
    "-": lambda a, b: _size(difference(terms_of(a), terms_of(b))),
    "*": _product,
    "//": _divided,
    "%": _remainder,
    "**": _power,
    "/": _number("/"),
    "&": _bits("&"),
    "|": _bits("|"),
    "^": _bits("^"),
    "<<": _shifted("<<"),
    ">>": _shifted(">>"),
}
_METHODS = {
    "add": "+",
    "sub": "-",
    "mul": "*",
    "floordiv": "//",
    "mod": "%",
    "pow": "**",
    "truediv": "/",
    "and": "&",
    "or": "|",
    "xor": "^",
    "lshift": "<<",
    "rshift": ">>",
}
_OPERATORS = {kind: getattr(operator, f"__{name}__") for name, kind in _METHODS.items()}
_OF_FLOATS = frozenset(("+", "-", "*", "//", "%", "**", "/"))


def _computed(kind: str, a: Any, b: Any) -> Any:
    """Return ``a kind b``; NotImplemented if one is not a number, so that a tensor takes over."""
    x, y = _as_number(a), _as_number(b)
    if x is None or y is None:
        return NotImplemented
    if kind != "/" and _is_narrow(a, b):
        given = [above.as_tensor(x) if isinstance(x, np.integer) else x for x in (a, b)]
        return _OPERATORS[kind](*given)
    if not any(type(number) is float or isinstance(number, Number) for number in (x, y)):
        result = _OF_SIZES[kind](x, y)
    elif kind in _OF_FLOATS:
        result = Number(kind, x, y)
    else:
        return NotImplemented
    return _by_numpy(result) if _is_strong(a) or _is_strong(b) else result


def _raised(self: Any, other: Any, modulus: Any = None) -> Any:
    power = _computed("**", self, other)
    return power if modulus is None or power is NotImplemented else power % modulus


def _compared(kind: str, a: Any, b: Any) -> Any:
    """Return a boolean if the result is the same in every run, otherwise a condition."""
    if b is None and isinstance(a, Size) and kind in ("==", "!="):
        return kind == "=="  # None marks an unknown size in a shape
    b = _as_number(b)
    if b is None:
        return NotImplemented
    if isinstance(a, Size) and type(b) is float and b.is_integer():
        b = int(b)
    if isinstance(a, Number) or isinstance(b, (float, Number)):
        if key_of(a) == key_of(b) and _tame(a):
            return kind in ("==", "<=", ">=")
        return Condition(kind, a, b)
    if kind in (">", ">="):
        less, more = b, a
    else:
        less, more = a, b
    gap: Any = _OF_SIZES["-"](more, less)
    if kind in ("==", "!="):
        if not is_open(gap):
            return (gap == 0) is (kind == "==")
        if nonnegative(gap - 1) or nonnegative(-1 - gap):
            return kind == "!="
        if nonnegative(gap) and nonnegative(-gap):
            return kind == "=="
    else:
        strict = 1 if kind in ("<", ">") else 0
        if nonnegative(gap - strict):
            return True
        if nonnegative(strict - 1 - gap):
            return False
    return Condition(kind, a, b)


def _logical(kind: str, name: str) -> Callable[[Any, Any], Any]:
    def combined(self: Any, other: Any) -> Any:
        if isinstance(other, (int, Size)) and not isinstance(other, bool):
            return _computed(kind, self, other)
        return ops[name](self, other)

    return combined


def _bind() -> None:
    """Give sizes, numbers and comparisons the methods of Python's operators."""
    classes: tuple[Any, ...] = (Size, Number, Condition)
    for name, kind in _METHODS.items():
        for each in classes:
            setattr(each, f"__{name}__", lambda self, other, k=kind: _computed(k, self, other))
            setattr(each, f"__r{name}__", lambda self, other, k=kind: _computed(k, other, self))
    comparisons = {"lt": "<", "le": "<=", "gt": ">", "ge": ">=", "eq": "==", "ne": "!="}
    for name, kind in comparisons.items():
        for each in classes[:2]:
            setattr(each, f"__{name}__", lambda self, other, k=kind: _compared(k, self, other))
    for each in classes:
        each.__array_ufunc__ = _array_ufunc
        each.__pow__ = _raised
        each.__divmod__ = lambda a, b: (a // b, a % b)
        each.__rdivmod__ = lambda a, b: (b // a, b % a)
    size: Any = Size
    size.__neg__ = lambda a: a * -1
    size.__abs__ = lambda a: largest(a, -a)
    size.__invert__ = lambda a: -a - 1
    for name, kind in {"and": "&", "or": "|", "xor": "^"}.items():
        logical = _logical(kind, f"logical_{name}")
        setattr(Condition, f"__{name}__", logical)
        setattr(Condition, f"__r{name}__", logical)


def _array_ufunc(self: Any, ufunc: Any, method: str, *inputs: Any, **kwargs: Any) -> Any:
    plain = _UFUNCS.get(ufunc.__name__)
    # comparisons of NumPy's scalars arrive as arrays without axes
    inputs = tuple([x[()] if type(x) is np.ndarray and not x.ndim else x for x in inputs])
    if plain is not None and method == "__call__" and not kwargs:
        numbers = [x if isinstance(x, Condition) else _as_number(x) for x in inputs]
        if ufunc.__name__.startswith("bitwise"):
            numbers = [
                bool(x) if isinstance(x, (bool, np.bool_)) else number
                for x, number in zip(inputs, numbers, strict=True)
            ]
        whole = np.dtype(np.int8).char * ufunc.nin + "->" + np.dtype(np.int8).char * ufunc.nout
        narrow = whole in ufunc.types and _is_narrow(*inputs)  # not comparisons, not quotients
        if not narrow and all(x is not None for x in numbers):
            return _by_numpy(plain(*numbers))
    if any(hasattr(x, "array") for x in inputs):
        return NotImplemented  # a tensor takes over
    # with an array, a number is weak and stays unchanged; alone it has NumPy's dtype
    kinds: tuple[type, ...] = (np.ndarray, np.generic)
    if not any(isinstance(x, kinds) for x in inputs):
        kinds = (Open,)
    tensors = [
        above.as_tensor(x, "float64" if isinstance(x, Number) else None)
        if isinstance(x, kinds)
        else x
        for x in inputs
    ]
    return getattr(ufunc, method)(*tensors, **kwargs)


_UFUNCS: dict[str, Callable[..., Any]] = {
    "add": operator.add,
    "subtract": operator.sub,
    "multiply": operator.mul,
    "divide": operator.truediv,
    "floor_divide": operator.floordiv,
    "remainder": operator.mod,
    "divmod": divmod,
    "power": operator.pow,
    "negative": operator.neg,
    "positive": operator.pos,
    "absolute": operator.abs,
    "maximum": largest,
    "minimum": smallest,
    "bitwise_and": operator.and_,
    "bitwise_or": operator.or_,
    "bitwise_xor": operator.xor,
    "left_shift": operator.lshift,
    "right_shift": operator.rshift,
    "less": operator.lt,
    "less_equal": operator.le,
    "greater": operator.gt,
    "greater_equal": operator.ge,
    "equal": operator.eq,
    "not_equal": operator.ne,
}

_bind()

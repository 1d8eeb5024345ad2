"""``Difference``: an intended difference from NumPy, and the tests that define it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from fuzz.numpy_calls.arguments import Array, arrays_in
from fuzz.numpy_calls.compare import Answer, answer_of, difference, leaves_of, quietly, scale_of
from fuzz.numpy_calls.targets import Call, package
from gradtape.core.extend import constant

__all__ = [
    "Difference",
    "Predicate",
    "accepted",
    "among",
    "as_arrays",
    "as_vectors",
    "beyond",
    "both_raise",
    "calling",
    "cast_at_last",
    "counted",
    "dtype_differs",
    "finite_agree",
    "finite_ones",
    "in_double",
    "leaf",
    "nan_filled",
    "non_finite_apart",
    "of",
    "one_apart",
    "one_raises",
    "out_of_range",
    "plain",
    "refused",
    "refuses",
    "same_but_zeros",
    "same_spectrum",
    "same_values",
    "same_when",
    "saying",
    "shapes_differ",
    "shown",
    "taken",
    "values_differ",
    "weak",
    "without",
    "without_axes",
]


Predicate = Callable[[Call, Answer, Answer], bool]


@dataclass(frozen=True)
class Difference:
    """An intended difference.

    Attributes
    ----------
    what
        The functions, as text for the page.
    differs
        Whether a call, with NumPy's answer and ours, differs in this way.
    reason
        The difference and its reason, as text for the page.
    example
        An expression of ``xp`` (numpy or gradtape) and ``array`` whose answers differ in this way.
    varies
        Whether NumPy's answer depends on the machine, or on NumPy's version.
    """

    what: str
    differs: Callable[[Call, Answer, Answer], bool]
    reason: str
    example: str
    varies: bool = False


def shown(example: str, tensors: bool) -> Answer:
    """Return the answer of NumPy or gradtape to an example."""
    xp = package() if tensors else np

    def array(*given: Any) -> Any:
        made = np.array(*given)
        return constant(made) if tensors else made

    names = {"xp": xp, "np": np, "array": array}
    with quietly():
        return answer_of(lambda: eval(example, names))


# -- parts of predicates ---------------------------------------------------------------------------


def plain(call: Call) -> list[Any]:
    """Return the arguments other than arrays, including those in lists and tuples."""
    values = [a.value for a in call.arguments]
    return [leaf for leaf in leaves_of(values) if type(leaf) is not Array]


def among(*functions: str) -> Callable[[Call], bool]:
    """Return a test for calls of some functions, in any form."""
    known = frozenset(functions)
    return lambda call: call.target.function in known


def refuses(ours: Answer, *words: str) -> bool:
    """Return whether gradtape refuses a call with one of these texts in the message."""
    return isinstance(ours.error, (TypeError, ValueError)) and any(
        word in str(ours.error) for word in words
    )


def dtype_differs(call: Call, theirs: Answer, ours: Answer) -> bool:
    """Return whether both give the same values, in other dtypes."""
    return difference(call, theirs, ours) == "dtype" and same_values(call, theirs, ours)


def same_values(call: Call, theirs: Answer, ours: Answer, flat: bool = False) -> bool:
    """Return whether values agree to the lowest precision of the call, whatever their dtypes."""
    if theirs.error is not None or ours.error is not None:
        return False
    mine, its = (
        [np.asarray(x.numpy() if hasattr(x, "numpy") else x) for x in leaves_of(answer.result)]
        for answer in (ours, theirs)
    )
    named = [x for x in plain(call) if type(x) is str and x.startswith(("float", "complex"))]
    dtypes = [x.values.dtype for x in call.arrays] + [x.dtype for x in (*mine, *its)]
    floats = [np.finfo(t).eps for t in (*dtypes, *map(np.dtype, named)) if t.kind in "fc"]
    eps = 64 * max([float(x) for x in floats], default=0.0)
    return len(mine) == len(its) and all(
        (flat or a.shape == b.shape) and a.size == b.size and _near(a, b, eps, scale_of(call))
        for a, b in zip(mine, its)
    )


def _near(a: Any, b: Any, eps: float, scale: float) -> bool:
    x, y = (np.asarray(v.reshape(-1), "complex128") for v in (a, b))
    same = (x == y) | ((x != x) & (y != y))
    return bool((same | (np.abs(x - y) <= eps * (np.abs(y) + scale))).all())


# -- other NumPy calls with our answer, which show that a difference is right ----------------------


def _agrees(call: Call, ours: Answer, exact: bool = False, flat: bool = False) -> bool:
    theirs = answer_of(call.in_numpy)
    if exact:
        return difference(call, theirs, ours) is None
    return same_values(call, theirs, ours, flat)


def mapped_arrays(call: Call, change: Callable[[Array], Array]) -> Call:
    """Return a call with all its arrays changed."""
    for place, array in enumerate(call.arrays):
        call = call.with_array(place, change(array))
    return call


def _wide(array: Array) -> Array:
    kind = array.values.dtype.kind
    return array.with_values(array.values.astype("complex128" if kind == "c" else "float64"))


def in_double(call: Call, theirs: Answer, ours: Answer) -> bool:
    """Return whether our answer is NumPy's in double precision, where nothing overflows."""
    return ours.error is None and _agrees(mapped_arrays(call, _wide), ours)


def counted(call: Call, theirs: Answer, ours: Answer) -> bool:
    """Return whether our answer is NumPy's for 0 and 1 instead of booleans."""
    return ours.error is None and _agrees(
        _numbers(call, lambda x: x.with_values(x.values + np.uint8(0))), ours
    )


def without(name: str, sets: bool = False) -> Predicate:
    """Return a test whether our answer is NumPy's without a certain argument.

    For ``sets``, repeated elements and their order do not count.
    """

    def test(call: Call, theirs: Answer, ours: Answer) -> bool:
        places = [i for i, a in enumerate(call.arguments) if a.name == name]
        if not places or ours.error is not None:
            return False
        after = [  # by name, as they come after it
            a if a.theirs else replace(a, ours=a.name, theirs=a.name)
            for a in call.arguments[places[0] + 1 :]
        ]
        rest = Call(call.target, (*call.arguments[: places[0]], *after))
        if sets:
            other = Answer(np.unique(leaf(answer_of(rest.in_numpy))))
            return same_values(call, other, Answer(np.unique(leaf(ours))))
        return _agrees(rest, ours)

    return test


def calling(function: Callable[..., Any]) -> Predicate:
    """Return a test whether our answer is that of another NumPy function."""
    return lambda call, theirs, ours: _agrees(
        Call(replace(call.target, theirs=function), call.arguments), ours
    )


def _numbers(call: Call, change: Callable[[Any], Any]) -> Call:
    """Return a call with its array-like arguments (arrays, numbers, lists) changed."""
    made = []
    for i, a in enumerate(call.arguments):
        alone = type(a.value) in (int, float, complex, bool) and (
            i == 0 or a.name in ("a", "b", "x", "y", "v", "indices", "values")
        )
        made.append(replace(a, value=Array(np.asarray(a.value))) if alone else a)
    return mapped_arrays(Call(call.target, tuple(made)), change)


def _as_array(x: Array) -> Array:
    """Return an array instead of a list; an empty list gets NumPy's dtype."""
    if x.form != "list":
        return x
    return Array(x.values if x.values.size else np.asarray(x.values.tolist()), form="ndarray")


def as_arrays(call: Call, theirs: Answer, ours: Answer) -> bool:
    """Return whether our answer is NumPy's with arrays instead of lists and numbers."""
    return _agrees(_numbers(call, _as_array), ours, exact=True)


def as_vectors(call: Call, theirs: Answer, ours: Answer) -> bool:
    """Return whether our answer is NumPy's with vectors of one number instead of numbers."""
    return (
        accepted(call, theirs, ours)
        and without_axes(call)
        and _agrees(
            _numbers(call, lambda x: x.with_values(np.atleast_1d(x.values))), ours, flat=True
        )
    )


def finite_agree(call: Call, theirs: Answer, ours: Answer) -> bool:
    """Return whether values differ only where one is not finite, in calls with infinities."""
    if difference(call, theirs, ours) not in ("value", "dtype"):
        return False
    numbers = [x for x in plain(call) if type(x) in (float, complex)]
    if all(np.isfinite(x).all() for x in (*numbers, *(x.values for x in call.arrays))):
        return False
    kept = [
        [leaf(answer, i) for i in range(len(list(leaves_of(ours.result))))]
        for answer in (theirs, ours)
    ]
    fine = [np.isfinite(a) & np.isfinite(b) for a, b in zip(*kept)]
    first, second = (Answer([np.where(w, x, 0) for w, x in zip(fine, leaves)]) for leaves in kept)
    return same_values(call, first, second)


def beyond(call: Call, theirs: Answer, ours: Answer) -> bool:
    """Return whether gradtape refuses a Python number that an integer dtype cannot hold."""
    if not isinstance(ours.error, OverflowError):
        return False
    names = [x for x in plain(call) if type(x) is str and x.startswith(("int", "uint"))]
    dtypes = [x.values.dtype for x in call.arrays if x.form != "list"]
    ranges = [np.iinfo(t) for t in (*dtypes, *map(np.dtype, names)) if t.kind in "iu"]
    lists = [n for x in call.arrays if x.form == "list" for n in x.values.reshape(-1).tolist()]
    numbers = [n for n in (*plain(call), *lists) if type(n) in (int, float)]
    return any(not r.min <= n <= r.max for r in ranges for n in numbers)


def _is_weak(values: Any) -> bool:
    """Return whether a list of these numbers is weak; an empty one counts as Python floats."""
    return values.dtype.kind in "ifc" or not values.size


def weak(call: Call, theirs: Answer, ours: Answer) -> bool:
    """Return whether NumPy gives our answer if Python numbers get the dtype of arrays."""
    dtypes = [x.values.dtype for x in call.arrays if x.form != "list"]
    if not dtypes or ours.error is not None:
        return False

    def weaker(value: Any, numbers: bool) -> Any:
        if numbers and type(value) in (int, float, complex):
            return Array(np.asarray(value, np.result_type(*dtypes, type(value)(0))))
        if type(value) is Array and value.form == "list" and _is_weak(value.values):
            number = {"i": 0, "f": 0.0, "c": 0j}[
                value.values.dtype.kind if value.values.size else "f"
            ]
            values = value.values.astype(np.result_type(*dtypes, number))
            return replace(value, values=values, form="ndarray")
        if type(value) in (list, tuple) and (numbers or arrays_in(value)):
            return type(value)(weaker(item, numbers) for item in value)
        return value

    # for all numbers, for those used as arrays, for single ones, and for lists only
    count, first = len(call.arguments), sum(a.ours is None for a in call.arguments)
    beside = [i for i, a in enumerate(call.arguments) if a.name in ("prepend", "append")]
    for chosen in (range(count), range(first), beside, *([i] for i in range(count)), ()):
        try:
            other = [
                replace(a, value=weaker(a.value, i in chosen)) for i, a in enumerate(call.arguments)
            ]
        except OverflowError:
            continue
        changed = Call(call.target, tuple(other))
        if difference(changed, answer_of(changed.in_numpy), ours) is None:
            return True
    return False


def without_axes(call: Call) -> bool:
    """Return whether an array of the call, or a number as the first argument, has no axes."""
    numbers = (int, float, complex, bool)
    return any(x.values.ndim == 0 for x in call.arrays) or any(
        type(a.value) in numbers and (i == 0 or a.name in ("a", "b", "x", "y", "v"))
        for i, a in enumerate(call.arguments)
    )


def values_differ(call: Call, theirs: Answer, ours: Answer) -> bool:
    """Return whether both give results of one shape and dtype, which differ in value."""
    return difference(call, theirs, ours) == "value"


def leaf(answer: Answer, place: int = 0) -> Any:
    """Return a result, or one of several, as a NumPy array."""
    found = list(leaves_of(answer.result))[place]
    return np.asarray(found.numpy() if hasattr(found, "numpy") else found)


def same_when(
    rearranged: Callable[[Call, Any], Any],
) -> Callable[[Call, Answer, Answer], bool]:
    """Return a test whether results (the first of several) agree after a rearrangement."""

    def test(call: Call, theirs: Answer, ours: Answer) -> bool:
        if theirs.error is not None or ours.error is not None:
            return False
        try:
            a, b = (rearranged(call, leaf(answer)) for answer in (theirs, ours))
            return bool(np.allclose(a, b, rtol=1e-3, atol=1e-3, equal_nan=True))
        except (ValueError, IndexError, TypeError):
            return False

    return test


def taken(call: Call, indices: Any) -> Any:
    """Return the sorted elements in the given order."""
    x = call.arrays[0].values
    axis = call.argument("axis")
    named = axis is not None or all(a.ours != "axis" for a in call.arguments)
    if not named or (x.ndim != indices.ndim):
        return x.reshape(-1)[indices]
    return np.take_along_axis(x, indices, -1 if axis is None else axis)


def non_finite_apart(call: Call, theirs: Answer, ours: Answer) -> bool:
    """Return whether complex results agree wherever one of them is finite."""
    kinds = {x.values.dtype.kind for x in call.arrays}
    if not values_differ(call, theirs, ours) or "c" not in kinds:
        return False
    for place in range(len(list(leaves_of(ours.result)))):
        a, b = leaf(theirs, place), leaf(ours, place)
        if a.shape != b.shape:
            return False
        fine = np.isclose(a, b, rtol=1e-3, equal_nan=True)
        if not (fine | ~(np.isfinite(a) | np.isfinite(b))).all():
            return False
    return True


def out_of_range(call: Call, theirs: Answer, ours: Answer) -> bool:
    """Return whether floats are cast to integers that cannot hold them."""
    if not values_differ(call, theirs, ours) or leaf(ours).dtype.kind not in "iu":
        return False
    mine, info = leaf(ours), np.iinfo(leaf(ours).dtype)
    fits = leaf(theirs) == mine if leaf(theirs).shape == mine.shape else np.zeros(())
    found = False
    for array in call.arrays:
        x = array.values.real
        if array.values.dtype.kind in "fciu":
            outside = (x < info.min) | (x > info.max) | (x != x)
            found |= bool(outside.any() if x.shape != mine.shape else (outside | fits).all())
    return found and bool(np.size(mine))


def saying(*words: str) -> Predicate:
    """Return a test whether gradtape refuses a call with one of these texts."""
    return lambda call, theirs, ours: refuses(ours, *words)


def of(*functions: str, where: Predicate) -> Predicate:
    """Return a test for calls of some functions."""
    known = among(*functions)
    return lambda call, theirs, ours: known(call) and where(call, theirs, ours)


def accepted(call: Call, theirs: Answer, ours: Answer) -> bool:
    """Return whether gradtape gives a result where NumPy raises."""
    return theirs.error is not None and ours.error is None


def refused(call: Call, theirs: Answer, ours: Answer) -> bool:
    """Return whether gradtape raises where NumPy gives a result."""
    return theirs.error is None and ours.error is not None


def one_raises(call: Call, theirs: Answer, ours: Answer) -> bool:
    """Return whether one of the two raises."""
    return (theirs.error is None) != (ours.error is None)


def both_raise(call: Call, theirs: Answer, ours: Answer) -> bool:
    """Return whether both raise, with errors of different kinds."""
    return theirs.error is not None and ours.error is not None


def same_spectrum(theirs: Answer, ours: Answer) -> bool:
    """Return whether eigenvalues or singular values are the same."""
    place = 0 if len(tuple(ours.result)) == 2 else 1
    a, b = (np.asarray(answer.result[place]) for answer in (theirs, ours))
    return bool(np.allclose(a, b, rtol=1e-2, atol=1e-2, equal_nan=True))


def shapes_differ(theirs: Answer, ours: Answer) -> bool:
    """Return whether both give results, with different shapes."""
    if theirs.error is not None or ours.error is not None:
        return False

    def shapes(result: Any) -> list[Any]:
        return [np.shape(x) for x in (result if isinstance(result, tuple) else (result,))]

    return shapes(theirs.result) != shapes(ours.result)


def finite_ones(call: Call, x: Any) -> Any:
    """Return results with nan instead of values that are not finite."""
    return np.where(np.isfinite(x), x, np.nan)


def _from_first(coefficients: Any, least: float) -> Any:
    """Return coefficients from the first one that is finite and not too small."""
    coefficients = np.atleast_1d(coefficients)
    if coefficients.ndim > 1:
        return coefficients
    (places,) = np.nonzero(np.isfinite(coefficients) & (np.abs(coefficients) > least))
    return coefficients[places[0] if len(places) else len(coefficients) :]


def _last_agree(a: Any, b: Any) -> bool:
    """Return whether the last elements agree where both are finite."""
    n = min(len(a), len(b))
    a, b = a[len(a) - n :], b[len(b) - n :]
    fine = np.isfinite(a) & np.isfinite(b)
    return bool(np.isclose(a[fine], b[fine], rtol=1e-3, atol=1e-3).all())


def same_but_zeros(call: Call, theirs: Answer, ours: Answer) -> bool:
    """Return whether polynomials are the same, except for leading zeros and nan."""
    if theirs.error is not None or ours.error is not None:
        return False
    if not all(np.isfinite(x.values).all() for x in call.arrays):  # nan is 0 times infinity
        return all(
            _last_agree(np.atleast_1d(leaf(theirs, i)), np.atleast_1d(leaf(ours, i)))
            for i in range(len(list(leaves_of(ours.result))))
        )
    floats = [x.values.dtype for x in call.arrays if x.values.dtype.kind in "fc"]
    least = 64 * scale_of(call) * max([float(np.finfo(t).eps) for t in floats], default=1e-16)
    trimmed = [
        Answer([_from_first(leaf(answer, i), least) for i in range(len(leaves))])
        for answer in (theirs, ours)
        for leaves in [list(leaves_of(answer.result))]
    ]
    return same_values(call, trimmed[0], trimmed[1])


def cast_at_last(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function that computes in its own dtype, and casts the result to ``dtype``."""
    return lambda *args, dtype=None, **kwargs: function(*args, **kwargs).astype(dtype)


def nan_filled(call: Call, theirs: Answer, ours: Answer) -> bool:
    """Return whether our answer is NumPy's with its nan filled in.

    The filling is NumPy's answer to large numbers instead of infinities.
    """
    x = call.arrays[0].values if call.arrays else np.zeros(())
    if theirs.error is not None or ours.error is not None or not np.isinf(x).any():
        return False
    large = np.where(np.isinf(x), np.copysign(np.float64(1e150), x), np.asarray(x, "float64"))
    given = call.with_array(0, call.arrays[0].with_values(large))
    a, b, c = (leaf(answer) for answer in (theirs, ours, answer_of(given.in_numpy)))
    if a.shape != b.shape:
        return False
    c = np.where(np.abs(c) > 1e140, np.copysign(np.inf, c), c)
    filled = np.isclose(b, np.where(np.isnan(a), c, a), rtol=1e-3, equal_nan=True)
    return bool((filled | (np.isnan(a) & np.isnan(b))).all())


def one_apart(call: Call, theirs: Answer, ours: Answer) -> bool:
    """Return whether integers computed from floats differ by at most 1."""
    a, b = leaf(theirs), leaf(ours)
    return b.dtype.kind in "iu" and float(np.abs(a.astype(float) - b.astype(float)).max()) <= 1

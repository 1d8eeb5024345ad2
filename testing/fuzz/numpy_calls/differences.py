"""``Difference``: a way to differ from NumPy that is kept, and the tests it is made of."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ....core.extend import constant
from .arguments import Array, arrays_in
from .compare import Answer, answer_of, difference, leaves_of, quietly
from .targets import Call, package

__all__ = [
    "Difference",
    "Predicate",
    "accepted",
    "among",
    "both_raise",
    "dtype_differs",
    "finite_ones",
    "non_finite_apart",
    "of",
    "one_raises",
    "out_of_range",
    "plain",
    "refused",
    "refuses",
    "same_spectrum",
    "same_when",
    "saying",
    "shapes_differ",
    "shown",
    "taken",
    "values_differ",
    "weak",
    "without_axes",
]


@dataclass(frozen=True)
class Difference:
    """A difference that is kept.

    Attributes
    ----------
    what
        The functions, for the page.
    differs
        Whether a call, with NumPy's answer and ours, differs in this way.
    reason
        What differs and why, for the page.
    example
        An expression of ``xp`` (numpy or gradtape) and ``array`` whose answers differ so.
    varies
        Whether NumPy's answer is not the same on every machine.
    """

    what: str
    differs: Callable[[Call, Answer, Answer], bool]
    reason: str
    example: str
    varies: bool = False


def shown(example: str, tensors: bool) -> Answer:
    """Return what NumPy, or gradtape, answers to an example."""
    xp = package() if tensors else np

    def array(*given: Any) -> Any:
        made = np.array(*given)
        return constant(made) if tensors else made

    names = {"xp": xp, "np": np, "array": array}
    with quietly():
        return answer_of(lambda: eval(example, names))


# -- what predicates are made of -------------------------------------------------------------------


def plain(call: Call) -> list[Any]:
    """Return the arguments that are no arrays, those in lists and tuples too."""
    values = [a.value for a in call.arguments]
    return [leaf for leaf in leaves_of(values) if type(leaf) is not Array]


def among(*functions: str) -> Callable[[Call], bool]:
    """Return a test for calls of some functions, whichever way they are called."""
    known = frozenset(functions)
    return lambda call: call.target.function in known


def refuses(ours: Answer, *words: str) -> bool:
    """Return whether gradtape refuses a call, with one of some words in the message."""
    return isinstance(ours.error, (TypeError, ValueError)) and any(
        word in str(ours.error) for word in words
    )


def dtype_differs(call: Call, theirs: Answer, ours: Answer) -> bool:
    """Return whether both give results, which differ in dtype."""
    return difference(call, theirs, ours) == "dtype"


def weak(call: Call, theirs: Answer, ours: Answer) -> bool:
    """Return whether NumPy gives our answer once Python's numbers have the dtype of arrays."""
    dtypes = [x.values.dtype for x in call.arrays if x.form != "list"]
    if not dtypes or ours.error is not None:
        return False

    def weaker(value: Any, numbers: bool) -> Any:
        if numbers and type(value) in (int, float, complex):
            return Array(np.asarray(value, np.result_type(*dtypes, type(value)(0))))
        if type(value) is Array and value.form == "list" and value.values.dtype.kind in "ifc":
            number = {"i": 0, "f": 0.0, "c": 0j}[value.values.dtype.kind]
            values = value.values.astype(np.result_type(*dtypes, number))
            return replace(value, values=values, form="ndarray")
        if type(value) in (list, tuple) and (numbers or arrays_in(value)):
            return type(value)(weaker(item, numbers) for item in value)
        return value

    # with all numbers, with those that stand for arrays, and with lists alone
    for count in (len(call.arguments), sum(a.ours is None for a in call.arguments), 0):
        try:
            other = [
                replace(a, value=weaker(a.value, i < count)) for i, a in enumerate(call.arguments)
            ]
        except OverflowError:
            continue
        changed = Call(call.target, tuple(other))
        if difference(changed, answer_of(changed.in_numpy), ours) is None:
            return True
    return False


def without_axes(call: Call) -> bool:
    """Return whether an array of the call, or a number in place of the first, has no axes."""
    numbers = (int, float, complex, bool)
    return any(x.values.ndim == 0 for x in call.arrays) or any(
        type(a.value) in numbers and (i == 0 or a.name in ("a", "b", "x", "y", "v"))
        for i, a in enumerate(call.arguments)
    )


def values_differ(call: Call, theirs: Answer, ours: Answer) -> bool:
    """Return whether both give results of one shape and dtype, which differ in value."""
    return difference(call, theirs, ours) == "value"


def leaf(answer: Answer, place: int = 0) -> Any:
    """Return a result, or one of several, as an array of NumPy's."""
    found = list(leaves_of(answer.result))[place]
    return np.asarray(found.numpy() if hasattr(found, "numpy") else found)


def same_when(
    rearranged: Callable[[Call, Any], Any],
) -> Callable[[Call, Answer, Answer], bool]:
    """Return a test whether results, the first of several, agree once they are rearranged."""

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
    """Return the elements that are sorted, in an order."""
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
    info = np.iinfo(leaf(ours).dtype)
    kept = [x.values.real for x in call.arrays if x.values.dtype.kind in "fciu"]
    return any(((x < info.min) | (x > info.max) | (x != x)).any() for x in kept)


Predicate = Callable[[Call, Answer, Answer], bool]


def saying(*words: str) -> Predicate:
    """Return a test whether gradtape refuses a call in some words."""
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
    """Return whether both raise, errors of different kinds."""
    return theirs.error is not None and ours.error is not None


def same_spectrum(theirs: Answer, ours: Answer) -> bool:
    """Return whether eigenvalues or singular values are the same."""
    place = 0 if len(tuple(ours.result)) == 2 else 1
    a, b = (np.asarray(answer.result[place]) for answer in (theirs, ours))
    return bool(np.allclose(a, b, rtol=1e-2, atol=1e-2, equal_nan=True))


def shapes_differ(theirs: Answer, ours: Answer) -> bool:
    """Return whether both give results, some of another shape."""
    if theirs.error is not None or ours.error is not None:
        return False

    def shapes(result: Any) -> list[Any]:
        return [np.shape(x) for x in (result if isinstance(result, tuple) else (result,))]

    return shapes(theirs.result) != shapes(ours.result)


def finite_ones(call: Call, x: Any) -> Any:
    """Return results with nan in place of what is not finite."""
    return np.where(np.isfinite(x), x, np.nan)

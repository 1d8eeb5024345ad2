"""Where gradtape differs from NumPy on purpose: in data, from which docs/numpy.md is written."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from .compare import Answer
from .differences import (
    Difference,
    among,
    dtype_differs,
    non_finite_apart,
    out_of_range,
    plain,
    refuses,
    same_when,
    taken,
    values_differ,
    weak,
    without_axes,
)
from .targets import Call

__all__ = ["DIFFERENCES", "explained"]

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


DIFFERENCES: tuple[Difference, ...] = (
    # -- everywhere --------------------------------------------------------------------------------
    Difference(
        "Python's numbers and lists beside arrays",
        weak,
        "They are weak wherever they stand: they take the dtype of the arrays beside them. NumPy's "
        "are weak in ufuncs alone.",
        "xp.diff(array([1.0, 2.0], 'float32'), prepend=0.5)",
    ),
    Difference(
        "Python's numbers and lists that do not fit",
        lambda call, theirs, ours: (
            isinstance(ours.error, OverflowError)
            and any(x.form == "list" for x in call.arrays)
        ),
        "A list is weak, as a number is, and an error if the arrays' dtype does not hold it.",
        "array([1, 2], 'uint8') + [1, 300]",
    ),
    Difference(
        "`out`, `where`, `dtype`, `casting`, `order`, `subok` of NumPy's functions on tensors",
        lambda call, theirs, ours: (
            call.target.name.startswith("np.")
            and refuses(ours, "does not work on tensors", "unexpected keyword", "no counterpart")
        ),
        "What gradtape's function does not have is an error that says what to use instead; what "
        "asks for nothing (`out=None`, `order='K'`) is left out.",
        "np.add(array([1.0]), array([2.0]), out=np.zeros(1))",
    ),
    Difference(
        "Objects, strings",
        lambda call, theirs, ours: (
            isinstance(ours.error, (TypeError, ValueError))
            and any(x in ("a", "0", "1", "2", "object", "no such") for x in plain(call))
        ),
        "A tensor holds booleans, integers, floats or complex numbers, and nothing else.",
        "xp.sum(array([1.0]), dtype='object')",
    ),
    Difference(
        "Numbers that must be integers",
        lambda call, theirs, ours: (
            isinstance(ours.error, (TypeError, ValueError))
            and "integer" in str(ours.error)
            and any(isinstance(x, (float, bool)) for x in plain(call))
        ),
        "A float or a truth value where an axis, a count or an index is meant is an error. NumPy "
        "cuts off what is behind the point in some functions.",
        "xp.roll(array([1, 2, 3]), 1.5)",
    ),
    Difference(
        "Where NumPy stumbles",
        lambda call, theirs, ours: (
            isinstance(theirs.error, (AttributeError, RuntimeError, ZeroDivisionError))
            or isinstance(theirs.error, UnboundLocalError)
            or (
                isinstance(theirs.error, IndexError)
                and not isinstance(theirs.error, ValueError)
                and isinstance(ours.error, (TypeError, ValueError))
            )
        ),
        "What NumPy's own code meets with an AttributeError, an IndexError or a RuntimeError of "
        "its insides is a result, or a ValueError or TypeError in words.",
        "xp.polydiv(array([1.0]), array([]))",
    ),
    Difference(
        "Arrays without axes",
        lambda call, theirs, ours: without_axes(call) and one_raises(call, theirs, ours),
        "A number has no axes: but for plain reductions, `axis=0` is out of bounds, where some of "
        "NumPy's functions take it for a vector. Others take a number, where some of NumPy's need "
        "an axis.",
        "xp.squeeze(array(1.0), axis=0)",
    ),
    Difference(
        "None",
        lambda call, theirs, ours: (
            any(x is None for x in plain(call)) and one_raises(call, theirs, ours)
        ),
        "An argument that is None is not given.",
        "xp.sum(array([]), initial=None)",
    ),
    Difference(
        "Infinities in complex arithmetic",
        non_finite_apart,
        "Which part of a complex result is nan, and which infinite, hangs on the order of the "
        "products. What is finite in one of the two is the same in both.",
        "xp.polyval(array([1j, 1.0]), array([complex('inf')]))",
    ),
    Difference(
        "Casts that cannot hold a value",
        out_of_range,
        "What a float out of range becomes as an integer is the processor's choice.",
        "xp.mean(array([-2.5, -3.0]), dtype='uint16')",
    ),
    # -- families ----------------------------------------------------------------------------------
    Difference(
        "`eig`, `eigvals`, `roots`",
        of("linalg.eig", "linalg.eigvals", "roots", where=dtype_differs),
        "The result is always complex. NumPy's is real where no value has an imaginary part; a "
        "trace knows no values, and a dtype must not depend on them.",
        "xp.linalg.eigvals(array([[1.0]]))",
    ),
    Difference(
        "`roots`, `eigvals`: order",
        of(
            "roots",
            "linalg.eigvals",
            where=same_when(lambda call, x: np.sort_complex(np.round(x, 3))),
        ),
        "The roots of a polynomial come in no order.",
        "xp.roots(array([1.0, 0.0, 1.0, 0.0]))",
    ),
    Difference(
        "`eigh`, `svd`, `eig`: vectors",
        of(
            "linalg.eigh",
            "linalg.eig",
            "linalg.svd",
            where=lambda call, theirs, ours: (
                values_differ(call, theirs, ours)
                and len(tuple(ours.result)) > 1
                and _same_spectrum(theirs, ours)
            ),
        ),
        "Vectors are unique up to a sign or phase, and where values coincide up to a rotation.",
        "xp.linalg.eigh(array([[0.0, 0.0], [1.0, 0.0]]), UPLO='U')",
    ),
    Difference(
        "`fft`: half precision, numbers",
        lambda call, theirs, ours: (
            call.target.function.startswith("fft.") and dtype_differs(call, theirs, ours)
        ),
        "A transform is complex, of a number without axes too. Half precision has no complex "
        "dtype: what is computed in `complex64` stays in single precision.",
        "xp.fft.irfft(array([1.0, 2.0], 'float16'))",
    ),
    Difference(
        "`fft`: sizes and axes",
        lambda call, theirs, ours: (
            call.target.function.startswith("fft.")
            and (
                refuses(ours, "at least 1", "duplicate value")
                or (_shapes_differ(theirs, ours) and "fftn" not in call.target.function[:8])
            )
        ),
        "A transform, and its frequencies, have at least one point; no axis is shifted twice, and "
        "one that `rfft2` names twice keeps its length between.",
        "xp.fft.rfftfreq(-1)",
    ),
    Difference(
        "Polynomials: dtype",
        lambda call, theirs, ours: (
            call.target.function.startswith("poly") and dtype_differs(call, theirs, ours)
        ),
        "Coefficients of half and single precision stay so, and integers beside them do not make "
        "`float64` of them.",
        "xp.polyder(array([1.0, 2.0], 'float32'))",
    ),
    Difference(
        "Polynomials: shape",
        lambda call, theirs, ours: (
            call.target.function.startswith("poly")
            and (
                refuses(ours, "without elements", "vectors are needed")
                or _shapes_differ(theirs, ours)
            )
        ),
        "A shape does not depend on values: zeros in front of the first coefficient stay. A "
        "polynomial is a vector and has a coefficient.",
        "xp.polymul(array([0.0, 1.0]), array([1.0, 2.0]))",
    ),
    Difference(
        "`polyval`, `polydiv` at infinities",
        of(
            "polyval",
            "polydiv",
            where=lambda call, theirs, ours: (
                values_differ(call, theirs, ours)
                and any(not np.isfinite(x.values).all() for x in call.arrays)
            ),
        ),
        "NumPy begins with 0 times the argument, which is nan there.",
        "xp.polyval(array([1.0]), array([float('inf')]))",
    ),
    Difference(
        "`linalg.cross`, `linalg.outer`",
        of(
            "linalg.cross",
            "linalg.outer",
            where=lambda call, theirs, ours: isinstance(theirs.error, ValueError),
        ),
        "They are `cross` and `outer`, and take what those take.",
        "xp.linalg.outer(array([[1.0]]), array([[1.0]]))",
    ),
    Difference(
        "`nan_to_num(copy=False)`",
        saying("not changed in place"),
        "A tensor never changes.",
        "xp.nan_to_num(array([1.0]), copy=False)",
    ),
    Difference(
        "`split` and its kin",
        saying("must ascend"),
        "Indices ascend: NumPy's parts overlap, or repeat elements, if they do not.",
        "xp.split(array([1.0, 2.0]), [1, 0])",
    ),
    Difference(
        "`linalg.qr(mode='raw')`",
        saying("'reduced', 'complete' or 'r'"),
        "What LAPACK keeps inside has no gradient, nor a meaning on other backends.",
        "xp.linalg.qr(array([[1.0]]), mode='raw')",
    ),
    Difference(
        "`argsort`, `argpartition`: ties",
        of("argsort", "argpartition", where=same_when(taken)),
        "Sorting is stable: of elements that tie, the first comes first. NumPy's default is not.",
        "xp.argsort(array([[1, 1], [0, 0]]), axis=None)",
    ),
    Difference(
        "`partition`, `argpartition`: order",
        of(
            "partition",
            where=same_when(lambda call, x: np.sort(x, axis=call.argument("axis") or -1)),
        ),
        "The order on either side of the element is open.",
        "xp.partition(array([0.0, 0.0, float('nan'), 0.0]), 0)",
    ),
    Difference(
        "`unique_values`",
        of("unique_values", where=same_when(lambda call, x: np.sort(x))),
        "Values are sorted; NumPy leaves their order open.",
        "xp.unique_values(array([3, 1, 2]))",
    ),
    Difference(
        "`unique_inverse`, `unique_all`, `unique_counts`: nan",
        lambda call, theirs, ours: (
            call.target.function.startswith("unique_")
            and values_differ(call, theirs, ours)
            and any((x.values != x.values).any() for x in call.arrays)
        ),
        "Each nan is a value of its own; which of them comes first is open.",
        "xp.unique_inverse(array([0.0, float('nan'), 1.0, float('nan')] * 6))",
    ),
    Difference(
        "`intersect1d`, `setxor1d`, `setdiff1d`: `assume_unique`",
        of(
            "intersect1d",
            "setxor1d",
            "setdiff1d",
            where=lambda call, theirs, ours: call.argument("assume_unique") is not None,
        ),
        "It promises what need not be promised: the result is right for repeated elements too.",
        "xp.setxor1d(array([1, 1]), array([2]), assume_unique=True)",
    ),
    Difference(
        "`std`, `var`: `dtype`",
        of(
            "std",
            "var",
            "nanstd",
            "nanvar",
            where=lambda call, theirs, ours: refuses(ours, "must be a floating one"),
        ),
        "The dtype is what is computed in: a floating one.",
        "xp.std(array([1, 2]), dtype='int32')",
    ),
    Difference(
        "`nanstd`, `nanvar`: single precision",
        of(
            "nanstd",
            "nanvar",
            where=lambda call, theirs, ours: (
                values_differ(call, theirs, ours) and call.argument("dtype") is not None
            ),
        ),
        "All of it is computed in `dtype`; NumPy's mean is of the array's own.",
        "xp.nanstd(array([0.1, 0.0], 'float32'), dtype='float64')",
    ),
    Difference(
        "`linalg.lstsq`",
        of(
            "linalg.lstsq",
            where=lambda call, theirs, ours: (
                accepted(call, theirs, ours) or _shapes_differ(theirs, ours)
            ),
        ),
        "It solves stacks of systems, and its residuals have the same shape for every rank.",
        "xp.linalg.lstsq(array([[0.0], [0.0]]), array([0.0, 0.0]))",
    ),
    Difference(
        "`put_along_axis`",
        saying("do not go into"),
        "Values that the tensor's dtype cannot hold are refused; NumPy cuts them off.",
        "np.put_along_axis(array([1, 2]), array([0]), array([0.5]), 0)",
    ),
    Difference(
        "`pad(mode='empty')`",
        saying("mode 'empty'"),
        "There is no memory without values.",
        "xp.pad(array([1.0]), 1, mode='empty')",
    ),
    Difference(
        "`order='A'`, `order='K'`",
        saying("order="),
        "Where elements are in memory tells nothing: a tensor's order is that of its axes.",
        "array([[1.0]]).flatten(order='A')",
    ),
    Difference(
        "Booleans in `clip`, `round`",
        of("clip", "round", "around", where=accepted),
        "They stay what they are, where NumPy has no loop for them.",
        "xp.round(array([True]), 1)",
    ),
    Difference(
        "`linalg.norm` and `gradient` over no or three axes",
        of(
            "linalg.norm",
            "linalg.vector_norm",
            "gradient",
            where=lambda call, theirs, ours: (
                accepted(call, theirs, ours) and isinstance(call.argument("axis"), tuple)
            ),
        ),
        "Over no axes, nothing is reduced, and the gradient has no components; over three, the "
        "norm is that of all elements.",
        "xp.linalg.norm(array([3.0]), axis=())",
    ),
    Difference(
        "`mean` and `nanmean` of an integer `dtype`",
        of(
            "mean",
            "nanmean",
            where=lambda call, theirs, ours: (
                values_differ(call, theirs, ours) and call.argument("dtype") is not None
            ),
        ),
        "The sum is computed in `float64`: in a narrow integer dtype NumPy's overflows.",
        "xp.mean(array([100, 100]), dtype='int8')",
    ),
    Difference(
        "`asarray(copy=False)`",
        saying("without a copy"),
        "A tensor never changes, and an array's owner may write to it: it is copied.",
        "xp.asarray(np.ones(1), copy=False)",
    ),
    Difference(
        "`linalg.pinv(hermitian=True)`",
        saying("pinv: square"),
        "A Hermitian matrix is square, one without elements too.",
        "xp.linalg.pinv(np.zeros((0, 1)), hermitian=True)",
    ),
    Difference(
        "`einsum`: `...`",
        saying("the output needs the operands' '...'"),
        "Axes that the operands call `...` stay: NumPy sums over them if the output leaves them "
        "out.",
        "xp.einsum('...->', array([1.0]))",
    ),
    Difference(
        "Calls with two mistakes",
        of(
            "cross",
            "linalg.cross",
            "linalg.cond",
            "linalg.tensorsolve",
            "insert",
            "partition",
            "argpartition",
            where=both_raise,
        ),
        "Which of them is named is not the same.",
        "xp.insert(array(0), 0.0, 0.0)",
    ),
    Difference(
        "`cross` at infinities",
        of(
            "cross",
            where=lambda call, theirs, ours: (
                values_differ(call, theirs, ours)
                and any(not np.isfinite(x.values).all() for x in call.arrays)
            ),
        ),
        "A vector of two numbers has 0 as its third, and 0 times infinity is nan.",
        "xp.cross(array([float('inf'), 0.0, 0.0]), array([0.0, 0.0]))",
    ),
    Difference(
        "`trim_zeros` of a list",
        of("trim_zeros", where=lambda call, theirs, ours: isinstance(theirs.result, list)),
        "The result is a tensor.",
        "xp.trim_zeros([0, 1])",
    ),
    Difference(
        "Half precision in linear algebra",
        of("roots", where=lambda call, theirs, ours: refuses(ours, "float16 is unsupported")),
        "There is none, in NumPy either; `roots` needs it for all polynomials.",
        "xp.roots(array([1.0, 0.0], 'float16'))",
    ),
    Difference(
        "`gradient`",
        of("gradient", where=lambda call, theirs, ours: "gradient:" in str(ours.error)),
        "Booleans have no differences, `edge_order` is 1 or 2, and there is an axis.",
        "xp.gradient(array([True, False]), axis=())",
    ),
    Difference(
        "`max` and `min`: `where`",
        lambda call, theirs, ours: refuses(ours, "where") and both_raise(call, theirs, ours),
        "`where` is looked at before the axis.",
        "xp.max(array([1.0]), axis=1, where=array([False]))",
    ),
)


def _same_spectrum(theirs: Answer, ours: Answer) -> bool:
    """Return whether eigenvalues or singular values are the same."""
    place = 0 if len(tuple(ours.result)) == 2 else 1
    a, b = (np.asarray(answer.result[place]) for answer in (theirs, ours))
    return bool(np.allclose(a, b, rtol=1e-2, atol=1e-2, equal_nan=True))


def _shapes_differ(theirs: Answer, ours: Answer) -> bool:
    """Return whether both give results, some of another shape."""
    if theirs.error is not None or ours.error is not None:
        return False

    def shapes(result: Any) -> list[Any]:
        return [np.shape(x) for x in (result if isinstance(result, tuple) else (result,))]

    return shapes(theirs.result) != shapes(ours.result)


def explained(call: Call, theirs: Answer, ours: Answer) -> Difference | None:
    """Return the kept difference that explains two answers, if there is one."""
    return next((known for known in DIFFERENCES if known.differs(call, theirs, ours)), None)

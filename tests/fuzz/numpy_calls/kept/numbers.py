"""Intended differences in linear algebra, transforms, polynomials, sets and sorting."""

from __future__ import annotations

from typing import Any

import numpy as np

from fuzz.numpy_calls.compare import Answer, difference
from fuzz.numpy_calls.differences import (
    Difference,
    accepted,
    both_raise,
    calling,
    dtype_differs,
    finite_agree,
    finite_ones,
    of,
    refuses,
    same_but_zeros,
    same_spectrum,
    same_values,
    same_when,
    saying,
    shapes_differ,
    taken,
    values_differ,
    without,
)
from fuzz.numpy_calls.targets import Call

__all__ = ["NUMBERS"]


def cross(a: Any, b: Any, axis: int = -1) -> Any:
    """Return the cross product as NumPy computed it before 2.5, also for vectors of two numbers."""
    sides = [np.moveaxis(np.asarray(x), axis, -1) for x in (a, b)]
    if all(x.shape[-1] == 2 for x in sides):
        (a, b), (c, d) = (np.moveaxis(x, -1, 0) for x in sides)
        return a * d - b * c
    wide = [
        np.concatenate([x, np.zeros_like(x[..., :1])], -1) if x.shape[-1] == 2 else x for x in sides
    ]
    return np.moveaxis(np.cross(*wide), -1, axis)


def cross_agrees(call: Call, theirs: Answer, ours: Answer) -> bool:
    """Return whether our answer is that of ``np.cross``, or nan where 0 meets infinity."""
    infinite = any(not np.isfinite(x.values).all() for x in call.arrays)
    return infinite or calling(cross)(call, theirs, ours)


NUMBERS = (
    Difference(
        "`eig`, `eigvals`, `roots`",
        of("linalg.eig", "linalg.eigvals", "roots", where=dtype_differs),
        "The result is always complex. Before NumPy 2.5, NumPy's is real if no value has an "
        "imaginary part. A trace does not know values, and a dtype must not depend on them.",
        "xp.linalg.eigvals(array([[1.0]]))",
        varies=True,
    ),
    Difference(
        "`roots`, `eigvals`: order",
        of(
            "roots",
            "linalg.eigvals",
            where=same_when(lambda call, x: np.sort_complex(np.round(x, 3))),
        ),
        "The roots of a polynomial are in no particular order.",
        "xp.roots(array([1.0, 0.0, 1.0, 0.0]))",
        varies=True,
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
                and same_spectrum(theirs, ours)
            ),
        ),
        "Vectors are unique up to a sign or phase; those of equal values, up to a rotation.",
        "xp.linalg.eigh(array([[0, 0, 1j], [0, 0, 0], [0, 0, 0]]), UPLO='U')",
        varies=True,
    ),
    Difference(
        "`fft`: half precision, numbers",
        lambda call, theirs, ours: (
            call.target.function.startswith("fft.")
            and (
                dtype_differs(call, theirs, ours)
                or (
                    values_differ(call, theirs, ours)
                    and call.arrays[0].values.dtype == np.float16
                    and same_values(call, theirs, ours)
                )
            )
        ),
        "A transform is complex, even of a number without axes. Half precision has no complex "
        "dtype: results in `complex64` stay in single precision.",
        "xp.fft.irfft(array([1.0, 2.0], 'float16'))",
    ),
    Difference(
        "`fft`: sizes and axes",
        lambda call, theirs, ours: (
            call.target.function.startswith("fft.")
            and (
                refuses(ours, "at least 1", "duplicate value", "norm must be")
                or (both_raise(call, theirs, ours) and refuses(ours, "must be real"))
                or (shapes_differ(theirs, ours) and call.target.function == "fft.rfft2")
            )
        ),
        "A transform and its frequencies have at least one point. No axis is shifted twice, and "
        "an axis repeated in `rfft2` keeps its length in between.",
        "xp.fft.rfftfreq(-1)",
    ),
    Difference(
        "Polynomials: dtype",
        lambda call, theirs, ours: (
            call.target.function.startswith("poly") and dtype_differs(call, theirs, ours)
        ),
        "Coefficients keep half and single precision, even when combined with integers; NumPy "
        "gives `float64`.",
        "xp.polyder(array([1.0, 2.0], 'float32'))",
    ),
    Difference(
        "Polynomials: shape",
        lambda call, theirs, ours: (
            call.target.function.startswith("poly")
            and (
                refuses(ours, "without elements", "vectors are needed")
                or (
                    difference(call, theirs, ours) in ("shape", "dtype", "value")
                    and same_but_zeros(call, theirs, ours)
                )
            )
        ),
        "A shape does not depend on values: leading zeros are kept. A polynomial is a vector with "
        "at least one coefficient.",
        "xp.polymul(array([0.0, 1.0]), array([1.0, 2.0]))",
    ),
    Difference(
        "`polyval`, `polydiv` at infinities",
        of(
            "polyval",
            "polydiv",
            where=finite_agree,
        ),
        "NumPy starts with 0 times the argument, which is nan there.",
        "xp.polyval(array([1.0]), array([float('inf')]))",
    ),
    Difference(
        "Products at infinities",
        of(
            "dot",
            "einsum",
            "inner",
            "linalg.multi_dot",
            "linalg.tensordot",
            "matmul",
            "tensordot",
            "{0} @ {1}",
            where=finite_agree,
        ),
        "BLAS may skip factors of 0, so 0 times infinity is nan or 0, depending on the layout of "
        "the product.",
        "xp.linalg.multi_dot([array([[0.0], [np.nan]]), array([[0, 0]]), array([0.0, 0.0])])",
        varies=True,
    ),
    Difference(
        "`kind` of `sort` and `argsort` together with `descending`",
        of(
            "sort",
            "argsort",
            where=lambda call, theirs, ours: (
                accepted(call, theirs, ours)
                and call.argument("kind") is not None
                and call.argument("descending") is not None
            ),
        ),
        "`kind` is ignored. NumPy has `descending` from 2.5 on, and takes one of them.",
        "np.sort(array([1.0, 2.0]), kind='stable', descending=True)",
        varies=True,
    ),
    Difference(
        "`linalg.cross`",
        of(
            "linalg.cross",
            where=lambda call, theirs, ours: (
                both_raise(call, theirs, ours)
                or (accepted(call, theirs, ours) and cross_agrees(call, theirs, ours))
            ),
        ),
        "It is the same as `cross`, and also takes vectors of two numbers.",
        "xp.linalg.cross(array([1.0, 2.0]), array([3.0, 4.0]))",
    ),
    Difference(
        "`linalg.outer`",
        of(
            "linalg.outer",
            where=lambda call, theirs, ours: (
                accepted(call, theirs, ours) and calling(np.outer)(call, theirs, ours)
            ),
        ),
        "It is the same as `outer`, which flattens its arguments.",
        "xp.linalg.outer(array([[1.0]]), array([[1.0]]))",
    ),
    Difference(
        "`nan_to_num(copy=False)`",
        saying("not changed in place"),
        "A tensor never changes.",
        "xp.nan_to_num(array([1.0]), copy=False)",
    ),
    Difference(
        "`split` and related functions",
        saying("must ascend"),
        "Indices must ascend. If they do not, NumPy's parts overlap or repeat elements.",
        "xp.split(array([1.0, 2.0]), [1, 0])",
    ),
    Difference(
        "`linalg.qr(mode='raw')`",
        saying("'reduced', 'complete' or 'r'"),
        "LAPACK's internal form has no gradient and no meaning on other backends.",
        "xp.linalg.qr(array([[1.0]]), mode='raw')",
    ),
    Difference(
        "`argsort`, `argpartition`: ties",
        of("argsort", "argpartition", where=same_when(taken)),
        "Sorting is stable: tied elements keep their order. NumPy's default is not stable.",
        "xp.argsort(array([[1, 1], [0, 0]]), axis=None)",
        varies=True,
    ),
    Difference(
        "`partition`, `argpartition`: order",
        of(
            "partition",
            where=same_when(lambda call, x: np.sort(x, axis=call.argument("axis") or -1)),
        ),
        "The order on either side of the element is unspecified.",
        "xp.partition(array([0.0, 0.0, float('nan'), 0.0]), 0)",
        varies=True,
    ),
    Difference(
        "`unique_values`",
        of("unique_values", where=same_when(lambda call, x: np.sort(x))),
        "Values are sorted; NumPy does not specify their order.",
        "xp.unique_values(array([3, 1, 2]))",
        varies=True,
    ),
    Difference(
        "`unique_inverse`, `unique_all`, `unique_counts`: nan",
        lambda call, theirs, ours: (
            call.target.function.startswith("unique_")
            and values_differ(call, theirs, ours)
            and any((x.values != x.values).any() for x in call.arrays)
            and same_when(lambda call, x: x)(call, theirs, ours)  # the values themselves
        ),
        "Each nan is a separate value; their order is unspecified.",
        "xp.unique_inverse(array([0.0, float('nan'), 1.0, float('nan')] * 6))",
        varies=True,
    ),
    Difference(
        "`intersect1d`, `setxor1d`, `setdiff1d`: `assume_unique`",
        of(
            "intersect1d",
            "setxor1d",
            "setdiff1d",
            where=lambda call, theirs, ours: without(
                "assume_unique", type(ours.result) is not tuple
            )(call, theirs, ours),
        ),
        "It is not needed: the result is correct for repeated elements too.",
        "xp.setxor1d(array([1, 1]), array([2]), assume_unique=True)",
    ),
    Difference(
        "`std`, `var`, `cov`: `dtype`",
        of(
            "std",
            "var",
            "nanstd",
            "nanvar",
            "cov",
            "corrcoef",
            where=lambda call, theirs, ours: refuses(ours, "must be floating"),
        ),
        "The dtype is that of the computation, so it must be floating.",
        "xp.std(array([1, 2]), dtype='int32')",
    ),
    Difference(
        "`std`, `var`, `nanstd`, `nanvar`: precision",
        of(
            "std",
            "var",
            "nanstd",
            "nanvar",
            where=lambda call, theirs, ours: (
                (values_differ(call, theirs, ours) and same_when(finite_ones)(call, theirs, ours))
                or (dtype_differs(call, theirs, ours) and call.argument("mean") is not None)
            ),
        ),
        "Everything is computed in `dtype`, or in the array's dtype. NumPy computes the mean in "
        "the array's dtype, and a given `mean` promotes the result.",
        "xp.std(array([1j], 'complex64'), mean=array([0.0]))",
    ),
    Difference(
        "`linalg.lstsq`",
        of(
            "linalg.lstsq",
            where=lambda call, theirs, ours: (
                (accepted(call, theirs, ours) and len(call.arrays[0].values.shape) > 2)
                or (
                    shapes_differ(theirs, ours) and same_when(lambda call, x: x)(call, theirs, ours)
                )
            ),
        ),
        "It solves batches of systems, and its residuals have the same shape for every rank.",
        "xp.linalg.lstsq(array([[0.0], [0.0]]), array([0.0, 0.0]))",
    ),
    Difference(
        "`put_along_axis`",
        saying("cannot hold values of dtype"),
        "Values that the tensor's dtype cannot hold are refused; NumPy truncates them.",
        "xp.put_along_axis(array([1, 2]), array([0]), array([0.5]), 0)",
    ),
    Difference(
        "`pad(mode='empty')`",
        saying("mode 'empty'"),
        "gradtape has no uninitialised memory.",
        "xp.pad(array([1.0]), 1, mode='empty')",
        varies=True,
    ),
)

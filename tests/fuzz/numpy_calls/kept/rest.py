"""Intended differences in single functions."""

from __future__ import annotations

from typing import Any

import numpy as np

from fuzz.numpy_calls.differences import (
    Difference,
    accepted,
    both_raise,
    calling,
    cast_at_last,
    counted,
    dtype_differs,
    finite_agree,
    in_double,
    leaf,
    of,
    refuses,
    same_when,
    saying,
    values_differ,
    without,
)

__all__ = ["REST"]


def _norm(x: Any, ord: Any = 2, **kwargs: Any) -> Any:
    return np.linalg.vector_norm(x, ord=2 if ord is None else ord, **kwargs)


REST = (
    Difference(
        "`order='A'`, `order='K'`",
        saying("asks for memory", "order="),
        "The order in memory has no meaning: a tensor's order is that of its axes.",
        "array([[1.0]]).flatten(order='A')",
    ),
    Difference(
        "Booleans in `clip`, `round`",
        of(
            "clip",
            "round",
            "around",
            where=lambda call, theirs, ours: (
                accepted(call, theirs, ours) and counted(call, theirs, ours)
            ),
        ),
        "They are returned unchanged; NumPy has no loop for them.",
        "xp.round(array([True]), 1)",
    ),
    Difference(
        "`linalg.norm` and `gradient` over no or three axes",
        of(
            "linalg.norm",
            "linalg.vector_norm",
            "gradient",
            where=lambda call, theirs, ours: (
                accepted(call, theirs, ours)
                and isinstance(call.argument("axis"), tuple)
                and (type(ours.result) is tuple or calling(_norm)(call, theirs, ours))
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
                values_differ(call, theirs, ours)
                and calling(cast_at_last(call.target.theirs))(call, theirs, ours)
            ),
        ),
        "The sum is computed in `float64`: in a narrow integer dtype NumPy's overflows.",
        "xp.mean(array([100, 100]), dtype='int8')",
    ),
    Difference(
        "`asarray(copy=False)`",
        saying("without a copy"),
        "A tensor never changes, but an array's owner may write to it, so it is copied.",
        "xp.asarray(np.ones(1), copy=False)",
    ),
    Difference(
        "`linalg.pinv(hermitian=True)`",
        saying("pinv: square"),
        "A Hermitian matrix must be square, even without elements.",
        "xp.linalg.pinv(np.zeros((0, 1)), hermitian=True)",
    ),
    Difference(
        "`einsum`: `...`",
        saying("the output needs the operands' '...'"),
        "The operands' axes of `...` are kept; NumPy sums over them if the output leaves them out.",
        "xp.einsum('...->', array([1.0]), optimize=True)",
    ),
    Difference(
        "`take_along_axis`, `put_along_axis`: lists",
        of(
            "take_along_axis",
            "put_along_axis",
            where=lambda call, theirs, ours: (
                accepted(call, theirs, ours) and type(theirs.error) is AttributeError
            ),
        ),
        "Indices may be a list; NumPy needs an array.",
        "xp.take_along_axis(array([1.0, 2.0]), [0], axis=0)",
    ),
    Difference(
        "`linalg.cond` of singular matrices by `'nuc'`",
        of(
            "linalg.cond",
            where=lambda call, theirs, ours: (
                accepted(call, theirs, ours) and bool(np.all(np.isinf(leaf(ours))))
            ),
        ),
        "It is infinite, as for every other norm. Before NumPy 2.5, NumPy takes the norm of an "
        "inverse of nan.",
        "xp.linalg.cond(array([[0.0, 0.0], [0.0, 0.0]]), p='nuc')",
        varies=True,
    ),
    Difference(
        "`cross` of vectors with two elements",
        of(
            "cross",
            where=lambda call, theirs, ours: (
                theirs.error is not None and any(2 in x.values.shape for x in call.arrays)
            ),
        ),
        "They lie in a plane, and the product has their third element. NumPy 2.5 refuses them.",
        "xp.cross(array([1.0, 2.0]), array([3.0, 4.0]))",
        varies=True,
    ),
    Difference(
        "Calls with two mistakes",
        of(
            "cross",
            "linalg.cross",
            "linalg.cond",
            "linalg.tensorsolve",
            "piecewise",
            "digitize",
            "take",
            "insert",
            "partition",
            "argpartition",
            "select",
            "diagonal",
            "trace",
            "cov",
            "corrcoef",
            "histogram",
            "linalg.lstsq",
            "nanstd",
            "nanvar",
            "argsort",
            "sort",
            "linspace",
            "repeat",
            "indices",
            where=both_raise,
        ),
        "The two libraries may report different ones.",
        "xp.insert(array(0), 0.0, 0.0)",
    ),
    Difference(
        "`cross` at infinities",
        of(
            "cross",
            where=finite_agree,
        ),
        "A vector of two numbers gets 0 as its third, and 0 times infinity is nan.",
        "xp.cross(array([float('inf'), 0.0, 0.0]), array([0.0, 0.0]))",
        varies=True,
    ),
    Difference(
        "Half precision in linear algebra",
        of("roots", where=lambda call, theirs, ours: refuses(ours, "float16 is unsupported")),
        "It is not supported, as in NumPy; `roots` needs linear algebra for all polynomials.",
        "xp.roots(array([1.0, 0.0], 'float16'))",
    ),
    Difference(
        "`setxor1d`, `union1d`: nan",
        of(
            "setxor1d",
            where=same_when(lambda call, x: x[x == x]),
        ),
        "All nan count as one value, as in `unique`.",
        "xp.setxor1d(array([float('nan')]), array([float('nan')]))",
    ),
    Difference(
        "`intersect1d`, `setxor1d`, `setdiff1d` of large integers and floats",
        of(
            "intersect1d",
            "setxor1d",
            "setdiff1d",
            where=lambda call, theirs, ours: (
                len({x.values.dtype for x in call.arrays}) > 1
                and any(
                    x.values.dtype.kind in "iu" and (abs(x.values.astype(float)) >= 2**53).any()
                    for x in call.arrays
                )
            ),
        ),
        "Numbers of one array that round to the same float do not count as common to both.",
        "xp.intersect1d(array([2**64 - 1, 2**64 - 2], 'uint64'), array([1.0]))",
    ),
    Difference(
        "`union1d` of a Python integer, `choose` of lists",
        of("union1d", "choose", "select", where=dtype_differs),
        "An integer instead of an array is `int64`; a list of integers is weak when combined with "
        "floats.",
        "xp.union1d(1, array([2], 'uint8'))",
    ),
    Difference(
        "Complex numbers for real dtypes",
        saying("complex numbers cannot become", "a complex number cannot become"),
        "They are refused; NumPy warns and drops the imaginary part.",
        "xp.full((2,), 1j, 'float64')",
    ),
    Difference(
        "`copy=False` of NumPy's functions",
        lambda call, theirs, ours: (
            accepted(call, theirs, ours)
            and call.argument("copy") is False
            and without("copy")(call, theirs, ours)
        ),
        "A tensor never changes, so sharing memory makes no difference.",
        "np.reshape(array([[1.0, 2.0], [3.0, 4.0]]).T, -1, copy=False)",
    ),
    Difference(
        "A tuple instead of one axis",
        saying("axis must be an integer, got (", "must be None or one integer, got ("),
        "It is refused.",
        "xp.unstack(array([1.0]), axis=(0,))",
    ),
    Difference(
        "`einsum` of several dtypes",
        of(
            "einsum",
            where=in_double,
        ),
        "All operands are promoted first, so intermediate products of small integers or single "
        "precision neither overflow nor round.",
        "xp.einsum('i,i,i', array([100], 'int8'), array([2], 'int8'), array([1.0]), optimize=True)",
    ),
    Difference(
        "`irfft` and `irfftn` of empty arrays",
        of(
            "fft.irfft",
            "fft.irfftn",
            "fft.irfft2",
            "fft.hfft",
            where=lambda call, theirs, ours: (
                values_differ(call, theirs, ours)
                and call.arrays[0].values.size == 0
                and not leaf(ours).any()
            ),
        ),
        "The transform of an empty array is 0; NumPy's is uninitialised memory.",
        "xp.fft.irfft(array([], 'complex128'), 1)",
        varies=True,
    ),
    Difference(
        "`bincount`",
        of(
            "bincount",
            where=lambda call, theirs, ours: (
                refuses(ours, "expected integers to count", "a weight per number")
                or (dtype_differs(call, theirs, ours) and call.arrays[0].values.size == 0)
            ),
        ),
        "It counts integers, one for each weight. Weighted counts are floats, even without "
        "elements.",
        "xp.bincount(array([], 'int64'), weights=array([]))",
    ),
    Difference(
        "`linalg.pinv` of integers without elements",
        of("linalg.pinv", where=dtype_differs),
        "Its dtype is `float64`, as for other integers.",
        "xp.linalg.pinv(np.zeros((1, 0), 'int64'))",
    ),
    Difference(
        "`gradient`",
        of(
            "gradient",
            where=saying("booleans have no differences", "edge_order must", "at least one axis"),
        ),
        "Booleans have no differences, `edge_order` must be 1 or 2, and there must be an axis.",
        "xp.gradient(array([True, False]), axis=())",
    ),
    Difference(
        "`repeat` of empty arrays",
        of("repeat", where=saying("repeats must be at least 0")),
        "An empty array cannot be repeated a negative number of times either.",
        "xp.repeat(array([]), -1)",
    ),
    Difference(
        "`reshape` to no axes",
        of(
            "reshape",
            where=lambda call, theirs, ours: (
                accepted(call, theirs, ours) and "exactly 1 argument" in str(theirs.error)
            ),
        ),
        "`x.reshape(*shape)` also works for the shape `()`.",
        "array([1.0]).reshape()",
    ),
    Difference(
        "`roots` at infinities",
        of("roots", where=saying("infs or NaNs")),
        "NumPy finds some, because it removes trailing zeros; here a shape does not depend on "
        "values.",
        "xp.roots(array([float('nan'), 0.0]))",
    ),
    Difference(
        "`max` and `min`: `where`",
        lambda call, theirs, ours: refuses(ours, "where") and both_raise(call, theirs, ours),
        "`where` is checked before the axis.",
        "xp.max(array([1.0]), axis=1, where=array([False]))",
    ),
)

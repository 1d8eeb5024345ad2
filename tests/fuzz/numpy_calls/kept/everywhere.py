"""Intended differences in many functions."""

from __future__ import annotations

from fuzz.numpy_calls.arguments import Code
from fuzz.numpy_calls.differences import (
    Difference,
    accepted,
    as_arrays,
    as_vectors,
    beyond,
    non_finite_apart,
    out_of_range,
    plain,
    refused,
    refuses,
    weak,
    without,
    without_axes,
)

__all__ = ["EVERYWHERE"]

STUMBLES = (AttributeError, IndexError, RuntimeError, UnboundLocalError, ZeroDivisionError)

EVERYWHERE = (
    Difference(
        "Python numbers and lists combined with arrays",
        weak,
        "They are weak everywhere: they take the dtype of the arrays. NumPy's are weak only in "
        "ufuncs.",
        "xp.diff(array([1.0, 2.0], 'float32'), prepend=0.5)",
    ),
    Difference(
        "Python numbers and lists that do not fit",
        beyond,
        "A number that a dtype cannot hold is always an error; NumPy wraps it in some functions, "
        "and gives a list its own dtype.",
        "xp.where(array([True, False]), array([1, 2], 'int8'), 300)",
        varies=True,
    ),
    Difference(
        "`out`, `where`, `dtype`, `casting`, `order`, `subok` of NumPy's functions on tensors",
        lambda call, theirs, ours: (
            call.target.name.startswith("np.")
            and refuses(ours, "does not work on tensors", "unexpected keyword", "no counterpart")
        ),
        "An argument that gradtape's function lacks is an error that says what to use instead; "
        "arguments without effect (`out=None`, `order='K'`) are ignored.",
        "np.add(array([1.0]), array([2.0]), where=array([True]))",
    ),
    Difference(
        "`out` as a tensor",
        lambda call, theirs, ours: type(call.argument("out")) is Code and refuses(ours, "out"),
        "A tensor never changes: `out` must be a NumPy array, and no gradients may be requested.",
        "np.cumsum(array([1.0]), out=array([0.0]))",
    ),
    Difference(
        "`device='cpu'`",
        lambda call, theirs, ours: (
            call.argument("device") == "cpu" and "backend 'cpu'" in str(ours.error)
        ),
        "A device has the name of its backend: `'numpy'`.",
        "xp.asarray([1.0], device='cpu')",
    ),
    Difference(
        "Objects, strings",
        lambda call, theirs, ours: (
            isinstance(ours.error, (TypeError, ValueError))
            and any(x in ("a", "0", "1", "2", "object", "no such") for x in plain(call))
        ),
        "A tensor holds only booleans, integers, floats or complex numbers.",
        "xp.sum(array([1.0]), dtype='object')",
    ),
    Difference(
        "Numbers that must be integers",
        lambda call, theirs, ours: (
            isinstance(ours.error, (TypeError, ValueError))
            and "integer" in str(ours.error)
            and any(isinstance(x, (float, bool)) for x in plain(call))
        ),
        "A float or a boolean instead of an axis, a count or an index is an error. NumPy "
        "truncates it in some functions.",
        "xp.roll(array([1, 2, 3]), 1.5)",
    ),
    Difference(
        "Internal errors of NumPy",
        lambda call, theirs, ours: (
            isinstance(theirs.error, STUMBLES)
            and not isinstance(theirs.error, ValueError)  # an AxisError is both
            and isinstance(ours.error, (TypeError, ValueError))
            and "has no attribute" not in str(ours.error)
        ),
        "Where NumPy's code fails with an internal AttributeError, IndexError, RuntimeError or "
        "ZeroDivisionError, gradtape raises a ValueError or TypeError with an explanation.",
        "xp.polydiv(array([1.0]), array([]))",
    ),
    Difference(
        "Lists and numbers where NumPy takes only arrays",
        as_arrays,
        "Every function treats them as tensors: the result is NumPy's for an array.",
        "xp.unstack([1, 2])",
    ),
    Difference(
        "Numbers where NumPy needs an axis",
        as_vectors,
        "A tensor without axes is treated as one element: the result is NumPy's for a vector of "
        "it.",
        "xp.linalg.outer(array(2.0), array(3.0))",
    ),
    Difference(
        "Axes of arrays without axes",
        lambda call, theirs, ours: (
            refused(call, theirs, ours)
            and without_axes(call)
            and refuses(ours, "dimension 0", "shape ()", "without axes", "at least one axis")
        ),
        "A number has no axes: except in plain reductions, `axis=0` is out of bounds. Some of "
        "NumPy's functions treat it as a vector.",
        "xp.compress(array([True]), array(1.0), axis=0)",
    ),
    Difference(
        "None instead of a number",
        lambda call, theirs, ours: (
            any(x is None for x in plain(call)) and refuses(ours, "None", "must hold numbers")
        ),
        "None is not a number; NumPy converts it to nan in some functions.",
        "xp.full((2,), None, 'float64')",
    ),
    Difference(
        "`initial=None`",
        lambda call, theirs, ours: (
            accepted(call, theirs, ours)
            and call.argument("initial") is None
            and without("initial")(call, theirs, ours)
        ),
        "None means that the argument is omitted.",
        "xp.sum(array([]), initial=None)",
    ),
    Difference(
        "Infinities in complex arithmetic",
        non_finite_apart,
        "Which part of a complex result is nan or infinite depends on the order of the products. "
        "Parts that are finite in one library are the same in both.",
        "xp.polyval(array([1j, 1.0]), array([complex('inf')]))",
        varies=True,
    ),
    Difference(
        "Casts that cannot hold a value",
        out_of_range,
        "The integer value of a float out of range depends on the processor.",
        "xp.mean(array([-2.5, -3.0]), dtype='uint16')",
        varies=True,
    ),
)

"""What differs on purpose in many functions."""

from __future__ import annotations

from ..arguments import Code
from ..differences import (
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
        "Python's numbers and lists beside arrays",
        weak,
        "They are weak wherever they stand: they take the dtype of the arrays beside them. NumPy's "
        "are weak in ufuncs alone.",
        "xp.diff(array([1.0, 2.0], 'float32'), prepend=0.5)",
    ),
    Difference(
        "Python's numbers and lists that do not fit",
        beyond,
        "What a dtype does not hold is an error wherever it stands; NumPy wraps it in some "
        "functions, and gives a list a dtype of its own.",
        "xp.where(array([True, False]), array([1, 2], 'int8'), 300)",
    ),
    Difference(
        "`out`, `where`, `dtype`, `casting`, `order`, `subok` of NumPy's functions on tensors",
        lambda call, theirs, ours: (
            call.target.name.startswith("np.")
            and refuses(ours, "does not work on tensors", "unexpected keyword", "no counterpart")
        ),
        "What gradtape's function does not have is an error that says what to use instead; what "
        "asks for nothing (`out=None`, `order='K'`) is left out.",
        "np.add(array([1.0]), array([2.0]), where=array([True]))",
    ),
    Difference(
        "`out` that is a tensor",
        lambda call, theirs, ours: type(call.argument("out")) is Code and refuses(ours, "out"),
        "A tensor never changes: `out` is an array of NumPy's, where gradients are not asked for.",
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
            isinstance(theirs.error, STUMBLES)
            and not isinstance(theirs.error, ValueError)  # an AxisError is of both kinds
            and isinstance(ours.error, (TypeError, ValueError))
            and "has no attribute" not in str(ours.error)
        ),
        "What NumPy's own code meets with an AttributeError, an IndexError, a RuntimeError or a "
        "ZeroDivisionError of its insides is a ValueError or TypeError in words.",
        "xp.polydiv(array([1.0]), array([]))",
    ),
    Difference(
        "Lists and numbers where NumPy takes arrays alone",
        as_arrays,
        "They are tensors to every function: the answer is NumPy's of an array.",
        "xp.unstack([1, 2])",
    ),
    Difference(
        "Numbers where NumPy needs an axis",
        as_vectors,
        "A tensor without axes is taken for the one element that it is: the answer is NumPy's of "
        "a vector of it.",
        "xp.linalg.outer(array(2.0), array(3.0))",
    ),
    Difference(
        "Axes of arrays without axes",
        lambda call, theirs, ours: (
            refused(call, theirs, ours)
            and without_axes(call)
            and refuses(ours, "dimension 0", "shape ()", "without axes", "at least one axis")
        ),
        "A number has no axes: but for plain reductions, `axis=0` is out of bounds, where some of "
        "NumPy's functions take it for a vector.",
        "xp.compress(array([True]), array(1.0), axis=0)",
    ),
    Difference(
        "None for a number",
        lambda call, theirs, ours: (
            any(x is None for x in plain(call)) and refuses(ours, "None", "must hold numbers")
        ),
        "None is no number; NumPy makes nan of it in some functions.",
        "xp.full((2,), None, 'float64')",
    ),
    Difference(
        "`initial=None`",
        lambda call, theirs, ours: (
            accepted(call, theirs, ours)
            and call.argument("initial") is None
            and without("initial")(call, theirs, ours)
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
        varies=True,
    ),
    Difference(
        "Casts that cannot hold a value",
        out_of_range,
        "What a float out of range becomes as an integer is the processor's choice.",
        "xp.mean(array([-2.5, -3.0]), dtype='uint16')",
        varies=True,
    ),
)

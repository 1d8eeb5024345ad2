"""Docstrings of functions need not list what parameters imply: usual texts, and errors."""

from __future__ import annotations

import inspect
from typing import Any

import numpy as np
import pytest
from table import FUNCTIONS, SAMPLES, public_functions

from gradtape.plugins.ops.common.docstrings import completed, implied_errors

#: Wrong arguments, by words of the reason that is given for an error; one of them is enough.
WRONG: dict[str, list[Any]] = {
    "is not a tensor": [object(), [object()]],
    "is not an integer": ["a", 1.5],
    "is neither None nor one integer": ["a", (0, 1)],
    "does not hold integers": ["a", ("a",), 1.5],
    "is not a dtype": ["nonsense"],
    "is given twice": [(0, 0)],
    "is negative": [(-1, 2)],
    "does not broadcast": [np.ones(7, bool)],
    "is out of bounds": [99, (99,)],
    "there is no such norm": ["nonsense"],
    "no plugin provides the backend": ["nonsense"],
    "the numbers of sizes and axes differ": [(3, 3, 3, 3, 3)],
    "there are no points": [0],
}
#: The docstrings list these errors for other reasons.
OTHERS = {
    ("gradient", "edge_order"): "a ValueError",
    ("cov", "ddof"): "a ValueError",
    ("delete", "obj"): "an IndexError",
    ("insert", "obj"): "an IndexError",
    ("reshape", "shape"): "-1 is the size that remains",
}
PUBLIC = public_functions()
FOUND = {
    name: inspect.unwrap(function)
    for name, function in PUBLIC.items()
    if inspect.isfunction(function)
    and inspect.unwrap(function).__globals__["__name__"].startswith("gradtape.plugins.ops.")
    and not name.startswith("random.")
}


def call_of(name: str, function: Any) -> inspect.BoundArguments | None:
    """Return arguments that a function takes, from its samples or those of the op of its name."""
    for sample in FUNCTIONS.get(name, SAMPLES.get(name, SAMPLES.get(name.rpartition(".")[2], ()))):
        try:
            call = inspect.signature(function).bind(*sample.inputs, **sample.params)
            function(*call.args, **call.kwargs)
        except (TypeError, ValueError):  # the op takes its arguments in another form
            continue
        return call
    return None


@pytest.mark.parametrize("name", FOUND)
def test_what_parameters_imply_is_raised(name: str) -> None:
    function = FOUND[name]
    implied = [x for x in implied_errors(function) if (name, x[0]) not in OTHERS]
    call = call_of(name, function)
    if call is None or not implied:
        return
    for parameter, error, reason in implied:
        wrong = next(values for words, values in WRONG.items() if words in reason)
        # a wrapper reads the device
        called = PUBLIC[name] if parameter == "device" else function
        raised: list[str] = []
        for value in wrong:
            changed = inspect.signature(function).bind(*call.args, **call.kwargs)
            changed.arguments[parameter or "arrays"] = value if parameter else (value,)
            try:
                called(*changed.args, **changed.kwargs)
            except Exception as found:
                raised += [cls.__name__ for cls in type(found).__mro__]
        assert error.rpartition(".")[2] in raised, f"{error}: If {reason}."


def test_most_functions_have_samples_to_change() -> None:
    assert sum(call_of(*pair) is not None for pair in FOUND.items()) > 0.8 * len(FOUND)


def test_a_docstring_lists_what_is_specific() -> None:
    def function(x: Any, y: Any, axis: int = 0, keepdims: bool = False) -> Any:
        """Return ``x``.

        Parameters
        ----------
        y
            A number.
        axis
            An axis.

        Raises
        ------
        TypeError
            If it is Monday.

        Examples
        --------
        """
        return x

    text = inspect.cleandoc(completed(str(function.__doc__), function))
    sections = text.split("\n\n")
    assert sections[1].splitlines()[2::2] == ["x", "y", "axis", "keepdims"]
    assert sections[2].splitlines()[2:] == [
        "TypeError",
        "    If it is Monday.",
        "numpy.exceptions.AxisError",
        "    If the axis is out of bounds.",
    ]

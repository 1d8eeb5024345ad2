"""Checks of a module's attributes for pickle."""

from __future__ import annotations

import pickle
from types import FunctionType
from typing import Any

from ..functions.function import Function
from ..functions.pickled import found_by_name, pickled_as_code

# Types of values that may be or hold a function.
_HOLDING = (FunctionType, Function, list, tuple, dict)


def check_named(where: str, value: Any) -> None:
    """Raise an error that names the attribute if pickle cannot find a function by its name."""
    if isinstance(value, (list, tuple, dict)):
        items = value.items() if isinstance(value, dict) else enumerate(value)
        for key, item in items:
            if type(item) in _HOLDING:
                check_named(f"{where}[{key!r}]", item)
        return
    function = value.python_function if isinstance(value, Function) else value
    if not isinstance(function, FunctionType) or found_by_name(value) or found_by_name(function):
        return
    if pickled_as_code():
        return
    raise pickle.PicklingError(
        f"{where} is {function.__qualname__}, which pickle cannot find by its name: define it "
        "with def at the top level of a Python file, or save the module with gradtape.save, whose "
        "files store what functions compute"
    )

"""SciPy's special functions on tensors, under SciPy's names: ``gt.special.jv(1, x)``.

Libraries that follow the array API standard, SciPy among them, look for these functions here. The
names are those for which a plugin has a function (hook ``gradtape_functions``), if SciPy is
installed.

>>> gt.special.expit(0.0).item()
0.5
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

from ..core.extend import public_package, registry
from ..public import MissingName

__all__: list[str] = []

#: SciPy's Python functions for which gradtape has the same, with the same arguments.
_SAME = frozenset({"polygamma", "sinc"})


def __getattr__(name: str) -> Any:
    if name in _SAME:
        return getattr(public_package(), name)
    if not name.startswith("_"):
        try:
            theirs = getattr(import_module("scipy.special"), name, None)
        except ImportError:
            theirs = None
        found = registry().replacements.of(theirs) if callable(theirs) else None
        if found is not None and callable(found[1]):
            return found[1]
    raise MissingName(__name__, name)


def __dir__() -> list[str]:
    return __all__

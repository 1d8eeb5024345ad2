"""The files of new distributions, by kind of plugin: for each, a package, its tests and its CI.

In the texts, ``$name`` is the distribution, ``$module`` its package, and ``$$`` a dollar sign.
"""

from __future__ import annotations

from . import backend, engine, executor, format, layer, op
from .common import COMMON

__all__ = ["KINDS"]

_MODULES = (op, backend, executor, engine, layer, format)
#: By kind, the files of a distribution: their paths and texts.
KINDS = {
    module.__name__.rpartition(".")[2]: {
        path: text.replace("$test_needs", module.TEST_NEEDS)
        .replace("$needs", module.NEEDS)
        .replace("$group", module.GROUP)
        .replace("$what", module.WHAT)
        .replace("$use\n", module.USE)
        for path, text in {**COMMON, **module.FILES}.items()
    }
    for module in _MODULES
}

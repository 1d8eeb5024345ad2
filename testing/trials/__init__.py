"""The checks of :func:`gradtape.testing.check_op`, by name, each a function of a trial."""

from __future__ import annotations

from collections.abc import Callable

from ..samples import CHECKS
from . import transformations, trial
from .trial import Trial

__all__ = ["RUNS", "Trial"]

_FUNCTIONS = {**vars(trial), **vars(transformations)}
#: Each returns why it does not apply, or None if the op passed; it raises if the op fails.
RUNS: dict[str, Callable[[Trial], str | None]] = {
    name: _FUNCTIONS[name.replace(" ", "_")] for name in CHECKS
}

"""How plans for NumPy express ops: a plugin that is imported with the first plan."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...core.extend import hookimpl, late_entry
from .rules import RULES

#: The ops with a form for LLVM in ``compiled.forms``, which is imported with the first loop.
FORMS = ("where", "cast")


@hookimpl(trylast=True)
def gradtape_lowerings() -> dict[tuple[str, str], Callable[..., Any]]:
    """Provide the steps of ops; an op with a ufunc or a formula as its kernel needs none."""
    return {
        **{(op, "planned"): rule for op, rule in RULES.items()},
        **{(op, "llvm"): late_entry("plugins.fused.forms", "FORMS", op) for op in FORMS},
    }

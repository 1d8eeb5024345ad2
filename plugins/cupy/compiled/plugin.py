"""How programs for CuPy express ops: a plugin that names them, and imports the rest to run it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ....core.extend import hookimpl, late_entry

#: The ops with a rule in ``lowering``, and those with a formula in ``formulas``.
RULES = (
    "power sigmoid concatenate getitem stack unstack conv conv_to_filters conv_to_images max_pool "
    "max_pool_scatter sparse_softmax_cross_entropy softmax_less_labels all round_to_bfloat16 sum "
    "mean unbroadcast_like"
).split()
FORMULAS = ("where", "cast", "round_to_bfloat16", "power")


@hookimpl(trylast=True)
def gradtape_lowerings() -> dict[tuple[str, str], Callable[..., Any]]:
    """Provide the steps of ops for CuPy, and the formulas of steps in CUDA C."""
    return {
        **{(op, "cupy"): late_entry("plugins.cupy.compiled.lowering", "RULES", op) for op in RULES},
        **{
            (op, "cuda"): late_entry("plugins.cupy.compiled.formulas", "FORMULAS", op)
            for op in FORMULAS
        },
    }

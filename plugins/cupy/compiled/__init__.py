"""Compiled execution on CuPy: traced programs as few kernels, made for their shapes.

The planned executor (``plugins.planned``) provides the method: it splits ops into steps, groups
elementwise steps, and packs updates. Here ``lowering`` has the differences from NumPy, with
``rules`` for ops that only arrange elements, and for convolutions. ``formulas`` has the CUDA C of
steps, ``kernels`` writes a group as kernels, ``products`` multiplies matrices, and ``plan`` has the
order of all calls, with the memory. ``programs`` keeps plans by the shapes of inputs.
``graphs`` captures plans that run often in CUDA graphs, which read and write ``graph_memory``.
``moving`` copies inputs and results, ``homes`` holds variables that graphs update in place, and
``room`` bounds the memory of all graphs.

CuPy reuses memory that it releases for later work on the same stream. So results and new values of
variables are simply new arrays: no array that other code may hold is written to. Only graphs write
to arrays that variables hold, after reference counts have shown that no other code holds them.

This module is the plugin that names the ops, imported when lowerings are first needed; the others
are imported to run a program.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ....core.extend import hookimpl, lazy_entry

#: The ops with a rule in ``lowering``, and those with a formula in ``formulas``.
_LOWERED = (
    "power sigmoid concatenate getitem stack unstack conv conv_to_filters conv_to_images max_pool "
    "max_pool_scatter sparse_softmax_cross_entropy softmax_less_labels all round_to_bfloat16 sum "
    "mean unbroadcast_like"
).split()
_FORMULAS = ("where", "cast", "round_to_bfloat16", "power")


@hookimpl(trylast=True)
def gradtape_lowerings() -> dict[tuple[str, str], Callable[..., Any]]:
    """Provide the steps of ops for CuPy, and the formulas of steps in CUDA C."""
    home = "plugins.cupy.compiled"
    steps = {(op, "cupy"): lazy_entry(f"{home}.lowering", "RULES", op) for op in _LOWERED}
    forms = {(op, "cuda"): lazy_entry(f"{home}.formulas", "FORMULAS", op) for op in _FORMULAS}
    return {**steps, **forms}

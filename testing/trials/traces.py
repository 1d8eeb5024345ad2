"""Checks of traces: of the shape rule, and of files that hold the op."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ...core.extend import Module, TensorSpec, constant, describe, function
from ...saving import load, save
from .trial import Trial


def _trace(trial: Trial, specs: Sequence[Any] | None) -> None:
    """Trace, compare the shape rule with the actual results, then compare the run."""
    tensors = [constant(x) for x in trial.arrays]
    concrete = function(trial.of_list).get_concrete_function(tensors if specs is None else specs)
    want, count = trial.want
    for i, (symbol, real) in enumerate(zip(concrete.graph.outputs, want, strict=True)):
        spec = TensorSpec(symbol.shape, symbol.dtype)
        if not spec.admits(real.shape) or symbol.dtype != real.dtype:
            which = f"result {i}" if i < count else f"gradient {i - count}"
            raise AssertionError(
                f"the shape rule gives {spec} for {which}, which is "
                f"{describe(real.shape, real.dtype)}"
            )
    trial.compare(concrete(tensors))


def traced(trial: Trial) -> None:
    """Check a trace with known sizes."""
    _trace(trial, None)


def known_sizes(trial: Trial) -> None:
    """Check that the shape rule gives known sizes for known sizes."""
    tensors = [constant(x) for x in trial.arrays]
    graph = function(trial.of_list).get_concrete_function(tensors).graph
    for i, symbol in enumerate(graph.outputs[: trial.want[1]]):
        if symbol.shape is None or None in symbol.shape:
            raise AssertionError(
                f"the shape rule gives {describe(symbol.shape, symbol.dtype)} for result {i} "
                "from inputs of known sizes"
            )


def unknown_sizes(trial: Trial) -> str | None:
    """Check a trace with unknown sizes."""
    if not any(x.ndim for x in trial.arrays):
        return "no axes"
    _trace(trial, [TensorSpec([None] * x.ndim, x.dtype) for x in trial.arrays])
    return None


def unknown_rank(trial: Trial) -> str | None:
    """Check a trace with unknown ranks."""
    specs = [TensorSpec(None, x.dtype) for x in trial.arrays]
    try:
        function(trial.of_list).get_concrete_function(specs)
    except (TypeError, ValueError) as error:
        return f"refused: {error}"
    _trace(trial, specs)
    return None


def saved(trial: Trial) -> None:
    """Check that the op computes the same after saving and loading."""
    tensors = [constant(x) for x in trial.arrays]
    traced = function(trial.of_list)
    traced(tensors)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "op.h5"
        save(Module(), path, {"run": traced}, golden=False)
        trial.compare(load(path).signatures["run"](tensors), what="loaded, ")

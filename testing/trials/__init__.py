"""The checks of :func:`gradtape.testing.check_op`, by name, each a function of a trial."""

from __future__ import annotations

from collections.abc import Callable

from .transformations import (
    batched,
    forward,
    gradients,
    known_sizes,
    linear,
    saved,
    second_order,
    traced,
    traced_batch,
    unknown_rank,
    unknown_sizes,
)
from .trial import Trial, backend, empty, float16, float32, strided

__all__ = ["RUNS", "Trial"]

#: Each returns why it does not apply, or None if the op passed; it raises if the op fails.
RUNS: dict[str, Callable[[Trial], str | None]] = {
    "gradients": gradients,
    "second order": second_order,
    "linear": linear,
    "forward": forward,
    "traced": traced,
    "known sizes": known_sizes,
    "unknown sizes": unknown_sizes,
    "unknown rank": unknown_rank,
    "batched": batched,
    "traced batch": traced_batch,
    "saved": saved,
    "float32": float32,
    "float16": float16,
    "strided": strided,
    "empty": empty,
    "backend": backend,
}

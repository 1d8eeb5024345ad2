"""Blocks of examples: a gradient rule of one example runs for some examples of a batch at a time.

The rule of a custom gradient returns one gradient for each example, also for what all examples
share. These gradients are added up, and together can take much more memory than the batch. So if
they are large, the rule runs on one block of examples after another, and only the sums are kept.
It need not know: the arrays from the forward pass that it holds are whole, and ops see the block's
rows of them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from math import prod
from typing import Any

from ..base.context import active_graph, active_tapes
from ..base.sizes import known_size
from ..base.table import F
from ..batches.batched import (
    Batched,
    outermost,
    running_levels,
    seen_rows,
    some_examples,
    whole_shape,
)
from ..tensors.tensor import Tensor

#: Bytes of the gradients of one block, and of all for which blocks are worth their calls.
_BLOCK, _LARGE = 2**20, 2**21


def bytes_of(x: Tensor) -> int:
    """Return the size of an array in bytes; 0 if a trace does not know it."""
    shape = whole_shape(x.array)
    known = shape is not None and all(map(known_size, shape))
    return prod(shape) * x.dtype.itemsize if known else 0


def in_blocks(
    run: Callable[[], list[Any]], shared: Sequence[bool], gs: Sequence[Any], size: int
) -> list[Any] | None:
    """Run a gradient rule for one block of examples after another.

    Parameters
    ----------
    run
        Returns the gradient of each input, or None: for an input that all examples share, summed
        over the examples that ops see.
    shared
        For each input, whether all examples share it.
    gs
        The upstream gradients.
    size
        The size in bytes of the gradients of one example with respect to what is shared.

    Returns
    -------
    list or None
        What ``run`` returns for all examples. None if it should run for all at once: the gradients
        are small, something records what the rule does, or the rule does not run on blocks.
    """
    if not size or active_graph.get() is not None or active_tapes.get():
        return None
    level = outermost(gs)
    if not level or level in running_levels:
        return None
    n = next(g.array.shape[0] for g in gs if type(g) is Batched and g.level == level)
    rows = max(2, _BLOCK // size)  # one row would be broadcast where it does not fit
    if n * size <= _LARGE or n < 2 * rows:
        return None
    count = n // rows
    sums: list[Any] = [None] * len(shared)
    parts: list[list[Any]] = [[] for _ in shared]
    for start, stop in pairwise(n * i // count for i in range(count + 1)):
        with some_examples(level, slice(start, stop), n):
            try:
                grads = run()
            except Exception:
                return None  # all at once, the rule raises an error about all
            for i, g in enumerate(grads):
                if g is None:
                    continue
                if shared[i]:
                    sums[i] = g if sums[i] is None else F.add(sums[i], g)
                elif type(g) is Batched and g.level == level:
                    parts[i].append(seen_rows(g))
                else:
                    return None
    return [
        Batched(F.concatenate(*rows, axis=0), level) if rows else total
        for rows, total in zip(parts, sums, strict=True)
    ]

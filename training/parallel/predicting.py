"""``Rows``: predictions by the ranks of a job, each for its rows of every batch."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np

from ...core.extend import (
    Module,
    Tensor,
    backend_of,
    communicator,
    flatten,
    map_structure,
    to_numpy,
)
from ...distributed.comparing import compare
from ..ranks import Layout

__all__ = ["Rows"]


class Rows:
    """This rank's rows of batches that all ranks have, and all ranks' outputs for them.

    Parameters
    ----------
    share
        Returns how ranks share a batch of a size.
    sample
        Returns some rows of a batch, which ranks compare.
    """

    def __init__(
        self, share: Callable[[int], Layout], sample: Callable[..., Sequence[Any]]
    ) -> None:
        self._share, self._sample = share, sample
        self._layouts: list[Layout] = []

    def of(self, batches: Iterable[Any]) -> Iterator[Any]:
        """Yield this rank's rows of each batch."""
        for batch in batches:
            if not self._layouts:
                hint = "each rank passes the same data, and computes its rows of each batch"
                compare("predict", "batches", hint, self._sample(batch))
            layout = self._share(len(flatten(batch)[0]))
            self._layouts.append(layout)
            yield map_structure(partial(_rows_of, slice(layout.start, layout.stop)), batch)

    def gathered(self, model: Module, columns: Sequence[Any]) -> list[Any]:
        """Return the outputs for all rows, in order, the same on all ranks.

        Parameters
        ----------
        model
            The model, whose variables are the same on all ranks.
        columns
            For each output, an array for this rank's rows.

        Raises
        ------
        DistributedError
            If ranks have different variables, batches or kinds of outputs.
        """
        hint = "train it with distributed=group, or call gt.distributed.broadcast_variables(model)"
        compare("predict", "variables", hint, [x.array for x in model.variables])
        kinds = [f"{x.dtype}{tuple(x.shape[1:])}" for x in columns]
        sizes = [layout.total for layout in self._layouts]
        hint = "each rank passes the same data and gets outputs of the same shape and dtype"
        compare("predict", "batches or outputs", hint, [np.array(kinds), np.array(sizes)])
        return [self._gathered(x) for x in columns]

    def _gathered(self, column: Any) -> Any:
        own = to_numpy(column)
        counts = np.array([layout.counts for layout in self._layouts]).sum(axis=0)
        padded = np.zeros((counts.max(), *own.shape[1:]), own.dtype)
        padded[: len(own)] = own
        rows = communicator().all_gather(padded)
        parts, starts = [], [0] * len(rows)
        for layout in self._layouts:
            for rank, count in enumerate(layout.counts):
                if rank == 0 or not layout.repeated:
                    parts.append(rows[rank, starts[rank] : starts[rank] + count])
                starts[rank] += count
        owner = backend_of(column)
        return owner.asarray(np.concatenate(parts), device=owner.device(column))


def _rows_of(rows: slice, x: Tensor) -> Tensor:
    return Tensor(x.array[rows, ...])

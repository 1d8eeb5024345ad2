"""Copies the next batch to the device of the model while that computes with the current one."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

from ...core.extend import Backend, Sender, Tensor, flatten, pack_like

__all__ = ["Ahead"]


class Ahead:
    """Iterates over batches, and copies arrays in host memory to a device.

    An error while a batch is read is raised when that batch is due.

    Parameters
    ----------
    batches
        Tensors in containers.
    backend, device
        The target. Arrays that are there already, or on another backend, are not copied.
    early
        Whether :meth:`fetch` may read a batch before it is needed. It must not for a user's
        iterable, whose code should run at the usual time.
    """

    def __init__(self, batches: Iterable[Any], backend: Backend, device: str, early: bool) -> None:
        self._batches = iter(batches)
        self._sender: Sender = backend.sender(device)
        self._early = early
        self._waiting: list[Any] = []
        self._error: Exception | None = None

    def __iter__(self) -> Iterator[Any]:
        return self

    def __next__(self) -> Any:
        if not self._waiting and self._error is None:
            self._read()
        error, self._error = self._error, None
        if error is not None:
            raise error
        batch, sent = self._waiting.pop()
        self._sender.mark()
        taken = [self._sender.take(x) if there else x for there, x in sent]
        return pack_like(batch, [Tensor(x) for x in taken])

    def fetch(self) -> None:
        """Read the next batch and begin to copy it, if ``early`` allows that."""
        if self._early and not self._waiting and self._error is None:
            self._read()

    def _read(self) -> None:
        try:
            batch = next(self._batches)
            arrays = [x.array for x in flatten(batch)]
            here = [type(x) is np.ndarray for x in arrays]
            sent = [
                (copied, self._sender.send(x) if copied else x)
                for copied, x in zip(here, arrays, strict=True)
            ]
        except Exception as error:  # StopIteration too
            self._error = error
        else:
            self._waiting.append((batch, sent))

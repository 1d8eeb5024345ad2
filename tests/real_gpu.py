"""A real GPU, if there is one: what is tested over the pretend library is tested there too."""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Iterator
from typing import Any, NamedTuple

import pretend_gpu
import pytest

import gradtape as gt

__all__ = ["PLACES", "REASON", "Place", "gpu", "placed"]

#: Why CuPy cannot be used here, if it cannot.
REASON = gt.registry().backends["cupy"].unavailable()
#: The marks of a test that needs a GPU.
gpu = [pytest.mark.gpu, pytest.mark.skipif(REASON is not None, reason=str(REASON))]
#: What a fixture is made for. There are no skipped twins of thousands of tests without a GPU.
PLACES = ["pretend", *([] if REASON else [pytest.param("real", marks=pytest.mark.gpu)])]


class Place(NamedTuple):
    """Where a test computes, and the library there.

    Attributes
    ----------
    device
        The second pretend GPU: what a kernel makes itself has to go where its arrays are. Or the
        first real one.
    real
        Whether it is a real one.
    library
        The pretend library; None for the real one.
    """

    device: str
    real: bool
    library: Any

    def counting(self) -> Any:
        """Count copies between host and device; on a real GPU nothing counts them."""
        return contextlib.nullcontext(Counter()) if self.real else self.library.counting()


@contextlib.contextmanager
def placed(kind: str) -> Iterator[Place]:
    """Let CuPy be one of :data:`PLACES`."""
    if kind == "pretend":
        with pretend_gpu.as_cupy() as library:
            yield Place("cupy:1", False, library)
    else:
        gt.random.set_seed(0)  # so that the generator that all share is on the host
        yield Place("cupy:0", True, None)

"""Kernels of CUDA C launched at little cost on the host, for ops that run one by one.

CuPy's ``RawKernel`` asks for the current device with every launch. On a machine with one GPU, a
prepared kernel calls the loaded function itself, which takes half the time.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np

from .writing.source import BLOCK, KernelLaunch, compiled


class CannotCompile(Exception):
    """A kernel cannot be compiled; the message is the compiler's."""


_reported = False


def report(error: CannotCompile) -> None:
    """Say once that CuPy's functions run instead of kernels."""
    global _reported
    if not _reported:
        _reported = True
        warnings.warn(
            f"backend 'cupy': a kernel cannot be compiled, and CuPy's functions run instead "
            f"({' '.join(str(error).split())[:300]})",
            RuntimeWarning,
            stacklevel=4,
        )


class PreparedKernel:
    """A kernel, compiled and ready to launch on arrays and numbers.

    Parameters
    ----------
    xp
        CuPy, or its namespace for kernels.
    label
        A short description of its computation, in letters, digits and underscores; for profiles.
    text
        The kernel in CUDA C, whose function is called ``KERNEL``. It receives first pointers to the
        elements of arrays, whatever their strides, then numbers by value.

    Raises
    ------
    CannotCompile
        If it cannot be compiled here.

    Attributes
    ----------
    name, source
        The kernel's name, which contains the label, and its text.
    function
        What launches it, for callers that count each tenth of a microsecond: a function of the
        grid, of the block, and of the tuple of arguments.
    """

    __slots__ = ("_scalar", "function", "name", "source")

    def __init__(self, xp: Any, label: str, text: str) -> None:
        described = KernelLaunch(label, text, (), 1)
        self.name, self.source = described.name, described.source
        alone = xp.cuda.runtime.getDeviceCount() == 1
        try:
            kernel = compiled(xp, self.name, self.source)
            # a function belongs to one device; RawKernel itself finds that of the current one
            self.function: Any = getattr(kernel, "kernel", kernel) if alone else kernel
        except Exception as error:  # NVRTC is missing, or too old for the device
            raise CannotCompile(f"{self.name}: {error}") from error
        self._scalar: Any = getattr(getattr(xp.cuda, "function", None), "CNumpyArray", None)

    def numbers(self, *values: np.generic) -> tuple[Any, ...]:
        """Return numbers as arguments, for launches that use them again.

        Parameters
        ----------
        values
            Numbers of NumPy, each of the type that the kernel's parameter has.
        """
        return (
            values if self._scalar is None else tuple([self._scalar(np.array(x)) for x in values])
        )

    def launch(self, blocks: int, arguments: Sequence[Any], threads: int = BLOCK) -> None:
        """Launch the kernel on the current stream.

        Parameters
        ----------
        blocks
            The number of blocks.
        arguments
            Arrays, then numbers: of NumPy, Python's (64 bits), or from :meth:`numbers`.
        threads
            The number of threads of each block, ``BLOCK`` by default.
        """
        self.function((blocks, 1, 1), (threads, 1, 1), arguments)

"""Copies of many arrays by one kernel, for the memory of CUDA graphs.

One launch before a graph copies a call's inputs to the graph's memory, and notes where the results
go. A kernel at the end of the graph copies them there. So a call needs one launch besides the
graph, however many arrays it has.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np

from ...writing.source import BLOCK, KernelLaunch, compiled

#: The maximum of arrays that one kernel copies or notes: arguments have 4 KiB.
_MOST = 160
_MOST_BLOCKS = 4096
#: Types without a meaning, by their size.
_TYPES = {
    1: "unsigned char",
    2: "unsigned short",
    4: "unsigned int",
    8: "unsigned long long",
}


def _unit(x: Any) -> int:
    """Return the size of what is copied at once; complex numbers are two."""
    size: int = x.dtype.itemsize
    return size if size in _TYPES else 8


class Moves:
    """Copies arrays to others of the same shapes and dtypes, all C contiguous.

    Parameters
    ----------
    xp
        CuPy, on whose current device the arrays are.
    models
        An array like each one to copy.
    notes
        The number of addresses to note.
    first
        The number of the first target among addresses that another object has noted; None to give
        the targets themselves.
    """

    def __init__(
        self, xp: Any, models: Sequence[Any], notes: int = 0, first: int | None = None
    ) -> None:
        counts = [prod(x.shape) * x.dtype.itemsize // _unit(x) for x in models]
        self._lengths = xp.array(np.array(counts or [0], np.int64))
        self._kernels: list[tuple[Any, int, slice]] = []
        many = max(len(models), notes)
        for start in range(0, many, _MOST):
            part = slice(start, start + _MOST)
            mine, places = models[part], len(range(notes)[part])
            text = _text([_TYPES[_unit(x)] for x in mine], start, places, first)
            blocks = max([1, *(-(-n // BLOCK) for n in counts[part])])
            launch = KernelLaunch("move", text, [], 0, min(blocks, _MOST_BLOCKS))
            kernel = compiled(xp, launch.name, launch.source)
            self._kernels.append((kernel, launch.blocks, part))

    @property
    def launches(self) -> int:
        """The number of launches that a call takes."""
        return len(self._kernels)

    def __call__(
        self,
        sources: Sequence[Any],
        targets: Sequence[Any],
        table: Any,
        notes: Sequence[Any] = (),
    ) -> None:
        """Copy arrays on the current stream.

        Parameters
        ----------
        sources
            The arrays to copy.
        targets
            Where to; none if that is noted.
        table
            The array of addresses.
        notes
            The arrays whose addresses to note.
        """
        for kernel, blocks, part in self._kernels:
            given = [self._lengths, table, *sources[part]]
            given += [*targets[part], *notes[part]]
            kernel((blocks,), (BLOCK,), tuple(given))


def _text(types: Sequence[str], start: int, notes: int, first: int | None) -> str:
    """Return a kernel that copies some arrays and notes some addresses."""
    params = ["const long long* lengths", "unsigned long long* table"]
    params += [f"const {kind}* x{i}" for i, kind in enumerate(types)]
    if first is None:
        params += [f"{kind}* y{i}" for i, kind in enumerate(types)]
    params += [f"unsigned char* z{i}" for i in range(notes)]
    lines = [
        f'extern "C" __global__ void KERNEL({", ".join(params)}) {{',
        "    const long long t = blockIdx.x * (long long)blockDim.x + threadIdx.x;",
        "    const long long step = gridDim.x * (long long)blockDim.x;",
    ]
    if notes:
        lines += ["    if (t == 0) {"]
        lines += [f"        table[{start + i}] = (unsigned long long)z{i};" for i in range(notes)]
        lines += ["    }"]
    for i, kind in enumerate(types):
        target = f"y{i}" if first is None else f"(({kind}*)table[{first + start + i}])"
        lines.append(f"    for (long long i = t; i < lengths[{start + i}]; i += step)")
        lines.append(f"        {target}[i] = x{i}[i];")
    return "\n".join([*lines, "}", ""])

"""The text of kernels: what those of groups and those of blocks have in common."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from hashlib import sha256
from types import MappingProxyType
from typing import Any

from ....core.extend import Symbol
from ...planned import PlanStep, Shape, shape_of
from .formulas import BFLOAT, HALF, literal, memory_type
from .places import Place

#: Threads in a block, and the maximum of blocks: the same threads compute the remaining elements.
BLOCK, MOST_BLOCKS = 256, 2**16
#: Products and sums are rounded separately, as with CuPy's own kernels.
OPTIONS = ("--fmad=false",)

#: What names of ops contain, and names of kernels must not.
_NO_LETTERS = r"\W+"
#: The first lines of kernels that contain a text.
_PRELUDES = {"_half(": HALF, "_bfloat(": BFLOAT}

#: Kernels in order, and the arrays that they use between them.
Written = tuple[list["KernelLaunch"], list[Symbol]]


#: No outputs that are parts of other arrays.
NONE: Mapping[Symbol, Place] = MappingProxyType({})


class KernelLaunch:
    """One kernel, with its arguments.

    Attributes
    ----------
    label
        A short description of its computation.
    name, source
        The kernel's name, which contains the label, and its text.
    arrays
        The symbols of its arguments, all of them C contiguous arrays.
    blocks
        The number of blocks, of ``BLOCK`` threads each; by default enough for ``threads``.
    """

    __slots__ = ("arrays", "blocks", "label", "name", "source")

    def __init__(
        self,
        label: str,
        text: str,
        arrays: Sequence[Symbol],
        threads: int,
        blocks: int | None = None,
    ) -> None:
        self.label = label
        digest = sha256(text.encode()).hexdigest()[:12]
        self.name = f"gradtape_{re.sub(_NO_LETTERS, '_', label)}_{digest}"
        self.source = text.replace("KERNEL", self.name)
        self.arrays = list(arrays)
        self.blocks = blocks_for(threads) if blocks is None else blocks


def blocks_for(threads: int) -> int:
    """Return the number of blocks for at least as many threads, as far as a launch can have them.

    Parameters
    ----------
    threads
        The number of threads; a kernel lets its threads repeat for what is left.
    """
    return max(1, min(-(-threads // BLOCK), MOST_BLOCKS))


def axes_of(step: PlanStep) -> tuple[int, ...]:
    """Return the axes of a reduction."""
    axis, rank = step.params["axis"], len(step.space)
    axes = range(rank) if axis is None else (axis,) if isinstance(axis, int) else axis
    return tuple(sorted(a % rank for a in axes))


#: A length, the role of an axis (in a sum, say), and the strides of all arrays.
Axis = tuple[int, int, tuple[int, ...]]


def merged(shape: Shape, roles: Sequence[int], strides: Sequence[tuple[int, ...]]) -> list[Axis]:
    """Return the axes of a loop, with neighbours of a role merged where all arrays allow it."""
    axes: list[Axis] = []
    for a, n in enumerate(shape):
        if n == 1:
            continue
        mine, role = tuple(s[a] for s in strides), roles[a]
        if axes:
            before, same, outer = axes[-1]
            if same == role and all(o == m * n for o, m in zip(outer, mine, strict=True)):
                axes[-1] = (before * n, role, mine)
                continue
        axes.append((n, role, mine))
    return axes


def unravelled(axes: Sequence[tuple[int, int]], name: str) -> list[str]:
    """Return lines that compute the indices along axes from one number."""
    lines = [f"I {name}0 = {name};"] if len(axes) > 1 else []
    for number, (i, n) in reversed(list(enumerate(axes))):
        source = f"{name}0" if len(axes) > 1 else name
        lines.append(f"I k{i} = {source};" if number == 0 else f"I k{i} = {source} % {n};")
        if number:
            lines.append(f"{source} /= {n};")
    return lines


def identity(step: PlanStep) -> str:
    """Return the number that a reduction starts from."""
    # negative zero plus any number is that number, also if it is negative zero
    start = {"add": -0.0, "maximum": float("-inf"), "minimum": float("inf")}[step.op]
    text = literal(step.out.dtype.kind == "b" or start, step.out.dtype)  # the minimum of booleans
    assert text is not None
    return text


def folded(step: PlanStep, so_far: str, x: str) -> str:
    """Return the result of a reduction so far with one more number."""
    if step.op == "add":
        return f"{so_far} + {x}"
    sign = ">" if step.op == "maximum" else "<"
    return f"{so_far} {sign} {x} || {so_far} != {so_far} ? {so_far} : {x}"


def label(steps: Iterable[PlanStep]) -> str:
    """Return a short description of a computation, for profiles."""
    words = dict.fromkeys(step.op for step in steps)
    return "_".join([*words][:4])


def prelude(text: str) -> str:
    """Return the functions that a kernel calls."""
    return "".join(part for name, part in _PRELUDES.items() if name in text)


def spread(place: Place, x: Symbol, rank: int) -> tuple[int, ...]:
    """Return the strides with which a loop over ``rank`` axes reads a value."""
    mine = shape_of(x)
    strides = [0 if n == 1 else step for n, step in zip(mine, place[2], strict=True)]
    return (*[0] * (rank - len(mine)), *strides)


def reach(place: Place, x: Symbol) -> int:
    """Return a number above all indices at which a value is read."""
    _, offset, strides = place
    return 1 + offset + sum(abs(s) * n for n, s in zip(shape_of(x), strides, strict=True))


def index_type(reaches: Iterable[int]) -> str:
    """Return the C type of indices."""
    return "int" if max(reaches) < 2**30 else "long long"


class KernelText:
    """The text of a kernel whose blocks do several things.

    Attributes
    ----------
    arrays
        The names of the arrays that are its arguments, by symbol.
    reaches
        Numbers above all indices that it computes.
    """

    def __init__(self) -> None:
        self.arrays: dict[Symbol, str] = {}
        self.reaches: list[int] = [1]
        self._written: set[Symbol] = set()
        self._shared: dict[str, tuple[str, int]] = {}
        self._names, self._turn = 0, 0

    def name(self, letter: str) -> str:
        """Return a new name of a variable."""
        self._names += 1
        return f"{letter}{self._names}"

    def array(self, x: Symbol, written: bool = False) -> str:
        """Return the name of an array, which becomes an argument."""
        if written:
            self._written.add(x)
        return self.arrays.setdefault(x, f"m{len(self.arrays)}")

    def shared(self, kind: str, size: int) -> str:
        """Return the name of new shared memory of a block."""
        name = self.name("s")
        self._shared[name] = kind, size
        return name

    def scratch(self, kinds: Sequence[str]) -> list[str]:
        """Return shared memory, one number for each thread, that was not returned last time.

        Between two uses of the same memory are the barriers of another use.
        """
        self._turn = 1 - self._turn
        found = []
        for number, kind in enumerate(kinds):
            name = f"w{self._turn}{number}"
            self._shared[name] = "long long", BLOCK  # of any kind, so that all sums can share it
            found.append(f"(({kind}*){name})")
        return found

    def launch(self, words: str, parts: Sequence[tuple[int, Sequence[str]]]) -> KernelLaunch:
        """Return the kernel.

        Parameters
        ----------
        words
            A short description.
        parts
            Numbers of blocks, and what these do as lines; ``b`` is a block's number among them.
        """
        lines = [f"__shared__ {kind} {name}[{n}];" for name, (kind, n) in self._shared.items()]
        start = 0
        for number, (blocks, part) in enumerate(parts):
            last = number == len(parts) - 1
            above = "" if last else f"if (blockIdx.x < {start + blocks}) "
            lines += [f"{'else ' if number else ''}{above}{{"]
            lines += [f"const I b = (I)blockIdx.x - {start};", *part, "}"]
            start += blocks
        params = [
            f"{'' if x in self._written else 'const '}{memory_type(x.dtype)}* {name}"
            for x, name in self.arrays.items()
        ]
        text = "\n".join(lines)
        head = f'extern "C" __global__ void KERNEL({", ".join(params)}) {{'
        index = index_type([*self.reaches, start * BLOCK])
        source = f"{prelude(text)}typedef {index} I;\n{head}\n{text}\n}}\n"
        return KernelLaunch(words, source, [*self.arrays], start * BLOCK, start)


@lru_cache(maxsize=4096)
def compiled(xp: Any, name: str, source: str) -> Any:
    """Return a kernel; CuPy caches compiled kernels in files, by their source."""
    kernel = xp.RawKernel(source, name, OPTIONS)
    kernel.compile()
    return kernel

"""Kernels that rules write themselves: the text around what computes one element of a result.

A rule gives lines of CUDA C that compute an element from its indices ``k0``, ``k1``, ... and from
elements of the inputs at any indices. Inputs are read through views, and 16-bit numbers are
converted.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import TYPE_CHECKING, Any

from ....core.extend import Symbol
from ...planned import PlanStep, Shape, StepKind, shape_of
from .formulas import loaded, memory_type, stored
from .places import Place
from .source import KernelLaunch, Written, index_type, prelude, reach

if TYPE_CHECKING:
    from ..compiled.lowering import DeviceLowering

#: The maximum of inputs: the arguments of a launch have 4 KiB.
_MOST_INPUTS = 128


class Writer:
    """Writes the kernels of one step.

    Parameters
    ----------
    step
        A step of the kind ``WRITTEN``.
    place
        A function that returns the place of an input.
    """

    def __init__(self, step: PlanStep, place: Callable[[Symbol], Place]) -> None:
        self.step = step
        self._places = {x: place(x) for x in step.symbols}
        homes = dict.fromkeys(home for home, _, _ in self._places.values())
        self._names = {home: f"m{i}" for i, home in enumerate(homes)}
        #: The largest index that lines of the rule compute, if that is none of an array.
        self.most = 0

    def read(self, number: int, at: Sequence[str]) -> str:
        """Return an element of an input, in its computation type.

        Parameters
        ----------
        number
            The input's position.
        at
            The index along each of its axes.
        """
        x = self.step.inputs[number]
        home, offset, strides = self._places[x]
        terms = [str(offset)] if offset else []
        for text, stride, n in zip(at, strides, shape_of(x), strict=True):
            if n > 1 and stride:
                terms.append(f"({text})" if stride == 1 else f"(I)({text}) * ({stride})")
        return loaded(x.dtype, f"{self._names[home]}[{' + '.join(terms) or '0'}]")

    def kernel(self, lines: Sequence[str], value: str) -> Written:
        """Return the kernel that computes each element of the result by itself.

        Parameters
        ----------
        lines
            Lines that may use ``k0``, ``k1``, ..., the indices of the element.
        value
            The element, as an expression.
        """
        out = self.step.out
        body = [*unravelled(shape_of(out)), *lines, f"out[t] = {stored(out.dtype, value)};"]
        return [self.launch(body, out, prod(shape_of(out)))], []

    def launch(
        self, body: Sequence[str], out: Symbol, threads: int, given: Sequence[Symbol] = ()
    ) -> KernelLaunch:
        """Return a kernel whose threads run lines with the number ``t``.

        Parameters
        ----------
        body
            The lines, which write to ``out``.
        out
            The symbol of the array ``out``.
        threads
            The number of threads.
        given
            Arrays that kernels before this one wrote, named ``g0``, ``g1``, ...
        """
        loop = [
            f"for (I t = blockIdx.x * (I)blockDim.x + threadIdx.x; t < {threads};",
            "        t += (I)gridDim.x * blockDim.x) {",
            *(f"    {line}" for line in body),
            "}",
        ]
        return self.whole(loop, out, threads, given)

    def whole(
        self,
        lines: Sequence[str],
        out: Symbol,
        threads: int,
        given: Sequence[Symbol] = (),
        blocks: int | None = None,
    ) -> KernelLaunch:
        """Return a kernel with these lines; the arguments are those of :meth:`launch`.

        Parameters
        ----------
        lines, out, threads, given
            As for :meth:`launch`.
        blocks
            The number of blocks; by default enough for ``threads``.
        """
        text = "\n".join(f"    {line}" for line in lines)
        names = self._names
        params = [f"const {memory_type(x.dtype)}* {name}" for x, name in names.items()]
        params += [f"const {memory_type(x.dtype)}* g{i}" for i, x in enumerate(given)]
        params.append(f"{memory_type(out.dtype)}* out")
        head = f'extern "C" __global__ void KERNEL({", ".join(params)}) {{'
        reaches = [reach(place, x) for x, place in self._places.items()]
        index = index_type([self.most, threads, prod(shape_of(out)), *reaches])
        source = f"{prelude(text)}typedef {index} I;\n{head}\n{text}\n}}\n"
        arrays = [*names, *given, out]
        return KernelLaunch(self.step.op, source, arrays, threads, blocks)


def unravelled(shape: Shape, name: str = "t", index: str = "k") -> list[str]:
    """Return lines that compute the indices along axes, ``k0``, ``k1``, ..., from one number.

    Parameters
    ----------
    shape
        The sizes of the axes.
    name
        The number.
    index
        What the names of the indices begin with.
    """
    lines, step = [], 1
    for axis in range(len(shape) - 1, -1, -1):
        n = shape[axis]
        text = "0" if n == 1 else name if step == 1 else f"{name} / {step}"
        text = f"({text}) % {n}" if n > 1 and prod(shape[:axis]) > 1 else text
        lines.append(f"I {index}{axis} = {text};")
        step *= n
    return lines[::-1]


def indices(x: Symbol, index: str = "k") -> list[str]:
    """Return the names of the indices of a value's axes."""
    return [f"{index}{axis}" for axis in range(len(shape_of(x)))]


def written(
    lowering: DeviceLowering,
    op: str,
    inputs: Sequence[Symbol],
    out: Symbol,
    write: Callable[[Writer], Written],
) -> bool:
    """Add a step whose kernels a function writes; return whether kernels can have its arrays.

    Parameters
    ----------
    lowering
        The lowering to which the step is added.
    op
        The name of the op.
    inputs, out
        The step's inputs and its result.
    write
        A function that returns the kernels.
    """
    if any(memory_type(x.dtype) is None for x in (*inputs, out)) or len(inputs) > _MOST_INPUTS:
        return False

    def kernels(step: PlanStep, place: Callable[[Symbol], Place]) -> Written:
        return write(Writer(step, place))

    lowering.add(StepKind.WRITTEN, op, _unknown, inputs, out, write=kernels)
    return True


def _unknown(*arrays: Any) -> Any:
    raise NotImplementedError("only kernels for a device compute this step")

"""Updates of many variables by one kernel, which reads the gradients where they are.

The kernel has the steps of an optimizer's formula, each rounded as CuPy rounds it. Sizes are its
arguments. The number of gradients is rounded up to a power of 2, so that models share kernels.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from itertools import accumulate
from typing import Any

import numpy as np

from ....core.extend import Symbol
from ...planned import PlanStep, StepKind
from ..launching import PreparedKernel
from ..writing.formulas import compute_type, expression
from ..writing.source import blocks_for
from .sources import kernel, takes, whole

#: The maximum of gradients: each takes 16 of the 4096 bytes of arguments.
_MOST = 128
_DOUBLE = np.dtype(np.float64)

_KERNEL = """\
extern "C" __global__ void KERNEL({params}) {{
    for (long long t = blockIdx.x * (long long)blockDim.x + threadIdx.x; t < size;
            t += (long long)gridDim.x * blockDim.x) {{
{lines}
    }}
}}
"""


def updating(xp: Any, formula: Any) -> Callable[..., Any] | None:
    """Return a function of flat arrays, gradients and settings; None if there is no kernel.

    Parameters
    ----------
    xp
        The array namespace.
    formula
        The formula; see :meth:`Backend.updating`.
    """
    if _text(formula, 1) is None:
        return None

    def run(flat: Sequence[Any], gradients: Sequence[Any], settings: Sequence[float]) -> Any:
        if not takes(*flat, *gradients):
            return None
        if len(gradients) > _MOST:
            gradients = [xp.concat(gradients, axis=None)]
        count = 1 << (len(gradients) - 1).bit_length()
        prepared = _kernel(xp, formula, count)
        if prepared is None:
            return None
        size = flat[0].size
        new = [xp.empty(size, formula.dtype) for _ in formula.results]
        given = [whole(xp, g) for g in gradients]
        ends = list(accumulate(g.size for g in given))
        given += given[-1:] * (count - len(given))
        ends += [size] * (count - len(ends))
        prepared.launch(blocks_for(size), (*flat, *new, *given, *ends, *settings, size))
        return new

    return run


@lru_cache(maxsize=256)
def _kernel(xp: Any, formula: Any, count: int) -> PreparedKernel | None:
    text = _text(formula, count) or ""
    return kernel(xp, "update", text, formula.dtype)


def _text(formula: Any, count: int) -> str | None:
    """Return the kernel for a number of gradients; None if a step has no formula in CUDA C."""
    lines = _Lines(formula, count)
    if lines.lacking:
        return None
    flat, new = range(formula.arrays - 1), range(len(formula.results))
    params = [
        *[f"const T* m{i}" for i in flat],
        *[f"T* n{i}" for i in new],
        *[f"const T* g{i}" for i in range(count)],
        *[f"long long e{i}" for i in range(count)],
        *[f"double s{i}" for i in range(formula.settings)],
        "long long size",
    ]
    body = "\n".join(f"        {line}" for line in lines.found)
    return _KERNEL.format(params=", ".join(params), lines=body)


class _Lines:
    """The lines that compute a formula's elements at ``t``.

    What is computed from settings and constants alone is in double precision, as in Python where
    the formula runs as it is written.
    """

    def __init__(self, formula: Any, count: int) -> None:
        self.found: list[str] = []
        self.lacking = False
        self._dtype = formula.dtype
        self._values: list[Symbol] = []
        self._names: dict[Symbol, str] = {}
        self._weak: set[Symbol] = set()
        for i in range(formula.arrays - 1):
            self._add(formula.dtype, f"load(m{i}[t])")
        self._add(formula.dtype, f"load({_gradient(0, count)})")
        for i in range(formula.settings):
            self._weak.add(self._add(_DOUBLE, f"s{i}"))
        for ufunc, inputs in formula.steps:
            self._step(ufunc, inputs)
        for i, place in enumerate(formula.results):
            self.found.append(f"n{i}[t] = store({self._names[self._strong(self._values[place])]});")

    def _add(self, dtype: Any, text: str) -> Symbol:
        """Add a value."""
        x = self._line(Symbol(None, (), dtype), text)  # type: ignore[arg-type]
        self._values.append(x)
        return x

    def _line(self, x: Symbol, text: str) -> Symbol:
        self._names[x] = f"v{len(self._names)}"
        self.found.append(f"{compute_type(x.dtype)} {self._names[x]} = {text};")
        return x

    def _strong(self, x: Symbol) -> Symbol:
        """Return a value in the dtype of the arrays."""
        if x not in self._weak:
            return x
        like = Symbol(None, (), self._dtype)  # type: ignore[arg-type]
        return self._line(like, f"load(store((C){self._names[x]}))")

    def _step(self, ufunc: np.ufunc, inputs: Sequence[int | float]) -> None:
        given = [self._values[x] if type(x) is int else x for x in inputs]
        weak = all(x in self._weak for x in given if type(x) is Symbol)
        if not weak:
            given = [self._strong(x) if type(x) is Symbol else x for x in given]
        out = Symbol(None, (), _DOUBLE if weak else self._dtype)  # type: ignore[arg-type]
        step = PlanStep(StepKind.ELEMENTWISE, ufunc.__name__, ufunc, given, (out,))
        text = expression(step, self._names)
        self.lacking |= text is None
        self._values.append(self._line(out, text or "0"))
        if weak:
            self._weak.add(out)


def _gradient(first: int, last: int) -> str:
    """Return the element of the gradients from ``first`` to before ``last``, by halving."""
    if last - first == 1:
        return f"g{first}[t{f' - e{first - 1}' if first else ''}]"
    middle = (first + last) // 2
    before, after = _gradient(first, middle), _gradient(middle, last)
    return f"t < e{middle - 1} ? {before} : {after}"

"""Loops: groups of steps as functions that numba compiles, each element read and written once.

A loop holds what is rounded in one way alone, so that its results are NumPy's, bit for bit:
arithmetic, roots, comparisons, conversions, sums over the first axis in NumPy's order. What NumPy
warns of (``numpy.errstate``) a loop cannot: where the processor has noted such a thing, the group
is run once more, by NumPy, which then says so.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import isfinite
from typing import Any

import numpy as np

from ....core.extend import SCALARS, Symbol
from ..grouping import Emitter
from ..steps import Group, Kind, Shape, Step, shape_of, size_of

__all__ = ["Loops"]

_EXPRESSIONS = {
    "absolute": "abs({0})",
    "add": "{0} + {1}",
    "ceil": "np.ceil({0})",
    "copyto": "{0}",
    "divide": "{0} / {1}",
    "equal": "{0} == {1}",
    "fabs": "abs({0})",
    "floor": "np.floor({0})",
    "greater": "{0} > {1}",
    "greater_equal": "{0} >= {1}",
    "isnan": "{0} != {0}",
    "less": "{0} < {1}",
    "less_equal": "{0} <= {1}",
    "maximum": "({0} if {0} > {1} or {0} != {0} else {1})",
    "minimum": "({0} if {0} < {1} or {0} != {0} else {1})",
    "multiply": "{0} * {1}",
    "negative": "-{0}",
    "not_equal": "{0} != {1}",
    "positive": "{0}",
    "reciprocal": "1 / {0}",
    "rint": "np.rint({0})",
    "sqrt": "np.sqrt({0})",
    "square": "{0} * {0}",
    "subtract": "{0} - {1}",
    "trunc": "np.trunc({0})",
}
_OF_TRUTHS = {
    "bitwise_and": "{0} & {1}",
    "bitwise_or": "{0} | {1}",
    "bitwise_xor": "{0} ^ {1}",
    "equal": "{0} == {1}",
    "logical_and": "{0} & {1}",
    "logical_not": "not {0}",
    "logical_or": "{0} | {1}",
    "logical_xor": "{0} ^ {1}",
    "not_equal": "{0} != {1}",
}
#: The C library's, which differ from NumPy's in the last place.
_TRANSCENDENTAL = frozenset("cos exp expm1 log log1p sin tan tanh".split())
#: Up to this many elements they are quicker in a loop than the call of a ufunc.
_FEW = 64
_DTYPES = frozenset("bool int32 int64 float32 float64".split())
#: From how many steps on a loop pays; for large arrays two do.
_SEVERAL, _LARGE = 3, 4096
#: A compiler takes seconds for so many, and minutes for ten times as many.
_MOST_STEPS = 400
#: How often NumPy repeats what a loop did before the loop is given up.
_MOST_REPEATED = 10


class Loops(Emitter):
    """Who runs groups as loops.

    Parameters
    ----------
    compiler
        Makes a function of source code that defines ``loop``.
    inline
        Whether functions such as ``sin`` are in loops over few elements. Their results may then
        differ from NumPy's in the last place.
    """

    def __init__(self, compiler: Callable[[str], Callable[..., int]], inline: bool = False) -> None:
        self._compiler = compiler
        self._inline = inline

    def takes(self, step: Step) -> bool:
        """Return whether a step is one that loops compute as NumPy does.

        Parameters
        ----------
        step
            The step.
        """
        if step.space == ():
            return False
        symbols = [x for x in (*step.inputs, *step.outputs) if type(x) is Symbol]
        if any(np.dtype(x.dtype).name not in _DTYPES for x in symbols):
            return False
        if step.kind is Kind.REDUCTION:
            return _is_sum_of_rows(step)
        if step.op in ("maximum", "minimum") and not _LAST_OF_ZEROS:
            return False
        return _expression(step, self._inline) is not None

    def loop(self, group: Group) -> Callable[..., Any] | None:
        """Return what runs a group, or None if a loop would not pay.

        Parameters
        ----------
        group
            The group.
        """
        least = 2 if int(np.prod(group.shape)) >= _LARGE else _SEVERAL
        if not least <= len(group.members) <= _MOST_STEPS:
            return None
        return _checked(group, self._compiler(_Source(group, self._inline).text))


def _is_sum_of_rows(step: Step) -> bool:
    """Whether a step adds up rows, as NumPy does one after another (it adds up a row pairwise)."""
    (x,) = step.inputs
    shape = shape_of(x)
    rows = step.params["axis"] in (0, (0,)) and len(shape) == 2 and shape[1] > 1 and shape[0] > 1
    return step.op == "add" and rows and x.dtype.kind == "f" and x.dtype == step.out.dtype


def _ties() -> bool:
    """Whether NumPy's ``maximum`` of a zero and a negative zero is the second of them, here."""
    zeros, negative = np.zeros(37, np.float32), np.full(37, -0.0, np.float32)
    pairs = [(f(a, b), b) for f in (np.maximum, np.minimum) for a, b in _both(zeros, negative)]
    return all((np.signbit(found) == np.signbit(b)).all() for found, b in pairs)


def _both(a: Any, b: Any) -> list[tuple[Any, Any]]:
    return [(a, b), (b, a)]


_LAST_OF_ZEROS = _ties()


def _expression(step: Step, inline: bool) -> tuple[str, list[Any]] | None:
    """Return what computes a step, and the dtype that each operand is converted to first."""
    out = step.out.dtype
    if step.op == "where":
        return "({1} if {0} else {2})", [None, out, out]
    if step.op == "cast":
        truth, source = out.kind == "b", step.inputs[0].dtype.kind
        exact = out.kind == "f" or source == "b" or (truth and source == "i")
        return ("{0} != 0" if truth else "{0}", [None]) if exact else None
    if not isinstance(step.run, np.ufunc):
        return None
    given = [x.dtype if type(x) is Symbol else type(x) for x in step.inputs]
    *of, result = step.run.resolve_dtypes((*given, None))
    if result != out:
        return None
    kinds = {dtype.kind for dtype in of}
    if kinds == {"b"}:
        form = _OF_TRUTHS.get(step.op)
    elif step.op in _TRANSCENDENTAL and inline and size_of(step.out) <= _FEW and kinds == {"f"}:
        form = f"np.{step.op}({{0}})"
    elif kinds == {"f"} or (kinds == {"i"} and step.op not in ("divide", "reciprocal")):
        form = _EXPRESSIONS.get(step.op)
    else:
        form = None
    return None if form is None else (form, of)


class _Source:
    """The source of a group's loop: numbered names only, so that groups of one form share it."""

    def __init__(self, group: Group, inline: bool) -> None:
        self.group = group
        self._inline = inline
        self._constants: list[str] = []
        self._names: dict[Symbol, str] = {}
        self._stored: list[str] = []
        self._body: list[str] = []
        outputs = {x: f"o{i}" for i, x in enumerate(group.outputs)}
        inputs = {x: f"i{i}" for i, x in enumerate(group.inputs)}
        indent = "    " * (len(group.shape) + 1)
        for x, name in inputs.items():
            if shape_of(x):
                self._body.append(f"x{name} = {self._at(name, x)}")
                name = f"x{name}"
            self._names[x] = name
        for i, step in enumerate(group.steps):
            self._step(step, f"t{i}")
            if step.out in outputs:
                self._stored.append(f"{self._at(outputs[step.out], step.out)} = t{i}")
        first = []
        for step in group.tails:
            name = outputs[step.out]
            # what is added to it stays what it is, a negative zero too
            first.append(f"    {name}[...] = {self._constant(step.out.dtype, -0.0)}")
            at = f"{name}[0, k1]" if step.params["keepdims"] else f"{name}[k1]"
            self._stored.append(f"{at} += {self._names[step.inputs[0]]}")
        arrays = {**outputs, **inputs}
        loops = [
            f"{'    ' * (axis + 1)}for k{axis} in range({self._length(arrays, axis)}):"
            for axis in range(len(group.shape))
        ]
        types = ", ".join(_type_of(x, name.startswith("i")) for x, name in arrays.items())
        lines = [
            f"def loop({', '.join(arrays.values())}):",
            "    clear(FLAGS)",
            *first,
            *loops,
            *(indent + line for line in (*self._body, *self._stored)),
            "    return noted(FLAGS)",
        ]
        head = [f"TYPES = types.int32({types})", *self._constants]
        self.text = "\n".join([*head, *lines, ""])

    def _at(self, name: str, x: Symbol) -> str:
        """Return an array's element at the place where the loop is."""
        shape, whole = shape_of(x), self.group.shape
        places = []
        for axis in range(len(whole) - len(shape), len(whole)):
            mine = shape[axis - len(whole)]
            places.append("0" if mine == 1 and whole[axis] != 1 else f"k{axis}")
        return f"{name}[{', '.join(places)}]"

    def _length(self, arrays: dict[Symbol, str], axis: int) -> str:
        """Return how long the loop is along an axis: as long as an array that has it whole."""
        whole = self.group.shape
        sums = {step.out for step in self.group.tails}
        for x, name in arrays.items():
            shape = shape_of(x)
            place = axis - len(whole) + len(shape)
            if x not in sums and place >= 0 and shape[place] == whole[axis]:
                return f"{name}.shape[{place}]"
        raise AssertionError("no array of a group is as long as its loop")

    def _step(self, step: Step, name: str) -> None:
        found = _expression(step, self._inline)
        assert found is not None
        form, dtypes = found
        beside = next(x.dtype for x in step.inputs if type(x) is Symbol)
        given = []
        for x, dtype in zip(step.inputs, dtypes, strict=True):
            if type(x) in SCALARS:
                given.append(self._constant(dtype or beside, x))
            elif dtype is None or x.dtype == dtype:
                given.append(self._names[x])
            else:
                given.append(f"np.{np.dtype(dtype).name}({self._names[x]})")
        kind = step.out.dtype.name
        text = form.format(*given)
        self._body.append(f"{name} = {text}" if kind == "bool" else f"{name} = np.{kind}({text})")
        self._names[step.out] = name

    def _constant(self, dtype: Any, value: Any) -> str:
        number = repr(value) if isfinite(value) else f'float("{value}")'
        name = f"c{len(self._constants)}"
        kind = np.dtype(dtype).name
        self._constants.append(
            f"{name} = {bool(value)}" if kind == "bool" else f"{name} = np.{kind}({number})"
        )
        return name


def _type_of(x: Symbol, read: bool) -> str:
    rank, kind = len(shape_of(x)), np.dtype(x.dtype).name
    kind = "types.boolean" if kind == "bool" else f"types.{kind}"
    return f'types.Array({kind}, {rank}, "C", readonly={read})' if rank else kind


def _checked(group: Group, loop: Callable[..., int]) -> Callable[..., None]:
    """Return a loop that leaves to NumPy what it cannot do: warnings, and strided arrays."""
    outputs = [f"o{i}" for i in range(len(group.outputs))]
    inputs = [f"i{i}" for i in range(len(group.inputs))]
    pairs = zip(inputs, group.inputs, strict=True)
    given = [name if shape_of(x) else f"{name}[()]" for name, x in pairs]
    source = f"""def run({", ".join([*outputs, *inputs])}):
    try:
        if not loop({", ".join([*outputs, *given])}):
            return
    except TypeError:
        pass
    by_numpy([{", ".join(outputs)}], [{", ".join(inputs)}])
"""

    times = 0

    def by_numpy(outputs: Sequence[Any], inputs: Sequence[Any]) -> None:
        nonlocal times
        times += 1
        if times == _MOST_REPEATED:  # NumPy alone from now on: nothing is to be done twice
            scope["loop"] = lambda *arrays: True
        _by_numpy(group, outputs, inputs)

    scope: dict[str, Any] = {"loop": loop, "by_numpy": by_numpy}
    exec(compile(source, "<loop>", "exec"), scope)
    run: Callable[..., None] = scope["run"]
    return run


def _by_numpy(group: Group, outputs: Sequence[Any], inputs: Sequence[Any]) -> None:
    """Run a group step by step, into its outputs."""
    values: dict[Symbol, Any] = dict(zip(group.inputs, inputs, strict=True))
    targets = dict(zip(group.outputs, outputs, strict=True))
    for step in group.steps:
        scalars = iter(step.scalars)
        given = [values[x] if type(x) is Symbol else next(scalars) for x in step.inputs]
        target = targets.get(step.out)
        if target is None:
            target = np.empty(_whole(step), step.out.dtype)
        if step.kind is Kind.FRESH:
            target[...] = step.run(*given)
        else:
            step.run(*given, out=target)
        values[step.out] = target
    for step in group.tails:
        axis, keepdims = step.params["axis"], step.params["keepdims"]
        step.run(values[step.inputs[0]], axis, None, targets[step.out], keepdims)


def _whole(step: Step) -> Shape:
    return shape_of(step.out)

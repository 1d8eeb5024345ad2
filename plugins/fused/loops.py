"""The executor's emitter: it runs groups as loops that LLVM compiles.

A loop contains only operations with a single correct rounding, and NumPy's own inner loops, so that
its results are NumPy's, bit for bit; sums add in NumPy's order (``reductions``). A loop cannot
warn as NumPy does (``numpy.errstate``). If the processor has set a flag for such a warning, NumPy
runs the group once more, and warns.

A large group runs in parts, on several threads. Each element depends only on the elements at its
position, and sums of rows are cut by columns, so results do not depend on the parts.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Mapping, Sequence
from functools import cache, partial
from math import prod
from threading import Lock
from typing import Any, TypeAlias
from weakref import WeakKeyDictionary

import numpy as np

from ...core.extend import Symbol, in_parallel, parts
from ..planned import (
    Emitter,
    LoopGroup,
    PlanStep,
    StepKind,
    bytes_of,
    numbers_to_sum,
    shape_of,
    symbol_like,
)
from .compiler import DTYPES
from .entry import function_of, lead_to
from .forms import FUNCTIONS, Form, convertible, form_of
from .inner_loops import InnerLoop, inner_loop
from .passes import ways_of
from .reductions import Rows, rows_of, text_of
from .source import Source

#: A compiler takes seconds for this number of steps, and minutes for ten times as many.
_MOST_STEPS = 400
#: From this number of bytes that are read and written, a group may run in parts.
_LARGE = 2**20
#: The number of strides of its arrays for which a group is compiled, and the size of an array in
#: bytes up to which a loop reads elements that are not next to each other.
_MOST_STRIDES, _SMALL = 4, 2**15
#: The strides of some inputs, by their positions.
_Strides: TypeAlias = tuple[tuple[int, tuple[int, ...]], ...]
#: What an inner loop of NumPy costs for an element, in bytes that are read and written meanwhile.
_CALL = 16
#: How steps are computed, for as long as these exist.
_found: WeakKeyDictionary[PlanStep, Form | InnerLoop | None] = WeakKeyDictionary()
#: Held while a function is added to a group.
_alone = Lock()
#: Whether loops that reduce rows give NumPy's bits here; and the number of elements that are tried.
_tried: dict[Any, bool] = {}
_TRIED = 2**14


class FusedLoops(Emitter):
    """Runs groups as loops."""

    def takes(self, step: PlanStep) -> bool:
        """Return whether loops compute a step as NumPy does.

        Parameters
        ----------
        step
            The step.
        """
        if len(step.outputs) != 1:  # several, for example of a `cond`
            return False
        if any(np.dtype(x.dtype).name not in DTYPES for x in (*step.symbols, *step.outputs)):
            return False
        if step.kind is StepKind.REDUCTION:
            return _is_sum_of_rows(step)
        if not (step.elementwise or step.op == "outer_products") or step.space == ():
            return False
        if step not in _found:
            _found[step] = _form(step) or _inner_loop(step)
        return _found[step] is not None

    def reduces(self, step: PlanStep) -> bool:
        """Return whether a loop reduces rows as NumPy does.

        Parameters
        ----------
        step
            The reduction.
        """
        return rows_of(step) is not None

    def loop(self, group: LoopGroup) -> Callable[..., Any] | None:
        """Return a function that runs a group, or None if a loop cannot, or would not pay.

        Parameters
        ----------
        group
            The group.
        """
        steps = group.members
        if not group.steps and len(steps) == 1:
            rows = rows_of(steps[0])
            if rows is not None:
                return _reduction(group, rows)
        # updates are combined whatever they are
        if len(steps) > _MOST_STEPS or not all(map(self.takes, steps)):
            return None
        return GroupLoop(group, {step: _found[step] for step in group.steps}).expected()


class GroupLoop:
    """The loops of a group, one for each strides of its arrays.

    Each calls the next one for arrays that it refuses, so that arrays whose strides the plan does
    not expect cost a comparison. The last one calls Python.

    Parameters
    ----------
    group
        A group that loops can compute.
    found
        How they compute each of its elementwise steps.
    """

    __slots__ = ("_calls", "_chain", "_compiled", "_forms", "_group", "_work")

    def __init__(self, group: LoopGroup, found: Mapping[PlanStep, Form | InnerLoop | None]) -> None:
        self._group = group
        self._calls = {step: loop for step, loop in found.items() if isinstance(loop, InnerLoop)}
        self._forms = {step: form for step, form in found.items() if isinstance(form, tuple)}
        self._work = sum(map(bytes_of, (*group.outputs, *group.inputs)))
        self._work += prod(group.shape) * (len(self._forms) + _CALL * len(self._calls))
        self._compiled: dict[_Strides, Callable[..., Any]] = {}
        # those that call each other, without the ones that run in parts
        self._chain: dict[_Strides, Callable[..., Any]] = {}

    def expected(self) -> Callable[..., Any]:
        """Return the function for arrays with the strides that the group expects."""
        group = self._group
        return self._of(self._key([group.strides.get(x) for x in group.inputs]) or ())

    def _of(self, strides: _Strides) -> Callable[..., Any]:
        """Return the function for arrays of some strides; NumPy's if there are too many."""
        if strides in self._compiled:
            return self._compiled[strides]
        if len(self._compiled) >= _MOST_STRIDES:
            return self._group.by_numpy
        strided = {self._group.inputs[i]: found for i, found in strides}
        large = self._work >= _LARGE
        source = Source(self._group, self._forms, self._calls, large, strided)
        length = source.layout.length
        # the last function of a chain is the one that asks, when all have refused
        otherwise = partial(self._otherwise, (strides,) if length else self._chain)
        given = self._group, source.text, _left if length else otherwise
        function = function_of(*given, source.table, length, strided)
        with _alone:
            if strides in self._compiled:  # another thread was faster
                return self._compiled[strides]
            if length:
                function = _in_parts(function, otherwise, length, self._work)
            else:
                last = next(reversed(self._chain.values()), None)
                if last is not None:
                    lead_to(last, function)
                self._chain[strides] = function
            self._compiled[strides] = function
        return function

    def _otherwise(self, refused: Container[_Strides], *arrays: Any) -> None:
        """Run the group for functions that have refused arrays, or found flags."""
        inputs = arrays[len(self._group.outputs) :]
        odd = [type(x) is np.ndarray and not x.flags.c_contiguous for x in inputs]
        key = self._key([x.strides if yes else None for x, yes in zip(inputs, odd, strict=True)])
        if key is None or key in refused:
            self._group.by_numpy(*arrays)
        else:
            self._of(key)(*arrays)

    def _key(self, given: Sequence[tuple[int, ...] | None]) -> _Strides | None:
        """Return the strides in elements, of those in bytes; None if no loop should read them."""
        found = []
        for i, (x, strides) in enumerate(zip(self._group.inputs, given, strict=True)):
            if strides is None:
                continue
            size = np.dtype(x.dtype).itemsize
            steps = tuple(stride // size for stride in strides)
            if any(stride % size or stride < 0 for stride in strides) or not self._suits(x, steps):
                return None
            found.append((i, steps))
        return tuple(found)

    def _suits(self, x: Symbol, strides: tuple[int, ...]) -> bool:
        """Return whether a loop can read an array with these strides, and fast."""
        if any(x is y and way for step in self._group.steps for y, way in ways_of(step)):
            return False
        summed = any(x is step.inputs[0] for step in self._group.tails)
        if summed and strides[0] <= strides[1]:
            return False  # NumPy would add in another order
        return strides[-1] <= 1 or bytes_of(x) <= _SMALL


def _left(*arguments: Any) -> bool:
    """Stand for NumPy in a part of a group, which NumPy computes as a whole."""
    return True


def _in_parts(
    part: Callable[..., bool | None], otherwise: Callable[..., None], length: int, work: int
) -> Callable[..., None]:
    """Return a function that runs a group in parts, which other threads may take."""

    def run(*arrays: Any) -> None:
        left = []

        def compute(start: int, end: int) -> None:
            if part(*arrays, start, end):
                left.append(start)

        in_parallel(compute, parts(length, work))
        if left:
            otherwise(*arrays)

    return run


def _reduction(group: LoopGroup, rows: Rows) -> Callable[..., Any] | None:
    """Return a function that runs a group of one reduction, or None if a loop cannot."""
    (step,) = group.tails
    if group.strides or not _reduces_as_numpy(step, rows):
        return None
    work = bytes_of(step.inputs[0])
    length = rows.outer if work >= _LARGE else 0
    otherwise = group.by_numpy
    function = function_of(group, text_of(step, rows), _left if length else otherwise, (), length)
    return _in_parts(function, otherwise, length, work) if length else function


def _reduces_as_numpy(step: PlanStep, rows: Rows) -> bool:
    """Return whether a loop gives NumPy's bits for such axes; the first rows of them are tried."""
    few = rows._replace(outer=min(rows.outer, max(2, _TRIED // (rows.length * rows.inner))))
    key = step.op, np.dtype(step.out.dtype).char, few
    if key not in _tried:
        shape = few if few.inner > 1 else few[:2]
        given = symbol_like(step.inputs[0], shape)
        out = symbol_like(given, (few.outer, *few[2:])[: len(shape) - 1])
        params = {"axis": 1, "keepdims": False}
        model = PlanStep(step.kind, step.op, step.run, (given,), (out,), params)
        alone = LoopGroup.of_reduction(model)
        run = function_of(alone, text_of(model, few), alone.by_numpy)
        found = np.empty(shape_of(out), out.dtype)
        arrays = numbers_to_sum(shape, out.dtype)
        if step.op != "add":  # a zero that is the greatest element is left to NumPy
            del arrays[1:]
        pairs = []
        for array in arrays:
            run(found, array)
            pairs.append(found.tobytes() == step.run(array, 1).tobytes())
        _tried[key] = all(pairs)
    return _tried[key]


def _form(step: PlanStep) -> Form | None:
    """Return the form of an elementwise step, if it gives NumPy's bits here."""
    if step.op in ("maximum", "minimum") and not _LAST_OF_ZEROS:
        return None
    return form_of(step, _exact_for(step))


def _inner_loop(step: PlanStep) -> InnerLoop | None:
    """Return NumPy's inner loop for an elementwise step, if a group can call it."""
    if step.kind is not StepKind.ELEMENTWISE or not isinstance(step.run, np.ufunc):
        return None
    if len(step.inputs) != step.run.nin:
        return None
    whole = shape_of(step.out)
    single = tuple(type(x) is not Symbol or prod(shape_of(x)) == 1 for x in step.inputs)
    for x, one in zip(step.inputs, single, strict=True):
        # NumPy repeats an element of the last axis as a single one, which a block does not
        if not one and shape_of(x)[-1:] != whole[-1:]:
            return None
    given = tuple(x.dtype if type(x) is Symbol else type(x) for x in step.inputs)
    loop = inner_loop(step.run, given, single)
    if loop is None or loop.dtypes[-1] != step.out.dtype:
        return None
    if not all(map(convertible, step.inputs, loop.dtypes)):
        return None
    return loop


def _is_sum_of_rows(step: PlanStep) -> bool:
    """Return whether a step sums rows, which NumPy adds in order (unlike numbers in a row)."""
    (x,) = step.inputs
    shape, axis = shape_of(x), step.params["axis"]
    axes = axis if type(axis) is tuple else (axis,)
    if len(shape) < 2 or None in axes or sorted(axes) != [*range(len(shape) - 1)]:
        return False
    rows = shape[-1] > 1 and prod(shape[:-1]) > 1
    return step.op == "add" and rows and x.dtype.kind == "f" and x.dtype == step.out.dtype


def _ties() -> bool:
    """Return whether NumPy's ``maximum`` of a zero and a negative zero is the second one here."""
    zeros, negative = np.zeros(37, np.float32), np.full(37, -0.0, np.float32)
    both = ((zeros, negative), (negative, zeros))
    pairs = [(f(a, b), b) for f in (np.maximum, np.minimum) for a, b in both]
    return all((np.signbit(found) == np.signbit(b)).all() for found, b in pairs)


_LAST_OF_ZEROS = _ties()


def _exact_for(step: PlanStep) -> frozenset[str]:
    single = step.op in FUNCTIONS and step.out.dtype == np.float32
    return _exact() if single else frozenset()


_LN2, _HALF_PI = np.log(2), np.pi / 2


@cache
def _exact() -> frozenset[str]:
    """Return the single-precision functions that equal this NumPy's, bit for bit, here."""
    # between two quotients of a range reduction, the rounding of one product decides
    edges = np.concatenate([(np.arange(-n, n) + 0.5) * p for n, p in ((50, _LN2), (500, _HALF_PI))])
    edges = edges.astype(np.float32)
    near = [np.nextafter(edges, np.float32(end)) for end in (-np.inf, np.inf)]
    x = np.concatenate([np.linspace(-85, 85, 2048, dtype=np.float32), edges, *near])
    x[:3] = 0.0, -0.0, np.nan
    small = np.where(np.abs(x) < 88, x, np.float32(1))
    positive = np.geomspace(1e-37, 1e37, len(x), dtype=np.float32)
    samples = {name: {"exp": small, "log": positive}.get(name, x) for name in FUNCTIONS}
    whole = LoopGroup(x.shape)
    nowhere: Any = None
    values: dict[Symbol, Any] = {}
    forms: dict[PlanStep, Form] = {}
    for name, sample in samples.items():
        given, out = (Symbol(nowhere, x.shape, x.dtype) for _ in range(2))
        values[given], values[out] = sample, np.ones_like(x)
        step = PlanStep(StepKind.ELEMENTWISE, name, getattr(np, name), (given,), (out,))
        whole.steps.append(step)
        form = form_of(step, FUNCTIONS)
        assert form is not None
        forms[step] = form
    whole.close(lambda symbol: True)
    loop = function_of(whole, Source(whole, forms, {}).text, lambda *arrays: None)
    loop(*(values[symbol] for symbol in (*whole.outputs, *whole.inputs)))
    pairs = [(step, step.run(values[step.inputs[0]])) for step in whole.steps]
    return frozenset(step.op for step, right in pairs if _same_bits(values[step.out], right))


def _same_bits(x: Any, y: Any) -> bool:
    return bool(((x.view(np.int32) == y.view(np.int32)) | (np.isnan(x) & np.isnan(y))).all())

"""Rules of indices: elements read at integers of arrays, and gradients added there.

A thread that computes an element of a gradient looks at all indices, in order: sums depend neither
on chance nor on the device, and an assignment takes the last value. Where that would take too
long, values at one array of indices are first linked to the next ones at the same index; other ops
remain calls.

Indices out of range wrap around, and give the values that ``plugins.cupy.kernels`` defines.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import nan, prod
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from .....core.extend import Node, Symbol, broadcast_shapes
from ....planned import Rule, Shape, StepKind, reshaped, shape_of, symbol_like
from ...writing.elements import Writer, indices, unravelled, written
from ...writing.formulas import compute_type, kind_of, literal, stored
from ...writing.source import KernelLaunch, Written
from .arrangements import RULES as ARRANGEMENTS

if TYPE_CHECKING:
    from ..lowering import DeviceLowering

#: The maximum of comparisons of an element's place with an index, in one kernel.
_MOST_COMPARED = 2**28
#: The maximum of values that are linked: each is compared with the next ones.
_MOST_LINKED = 2**16


class _Index(NamedTuple):
    """An index, for an array of one shape.

    Attributes
    ----------
    source
        What selects along each axis: a range, an integer, or the number of an array.
    rest
        The axes of the result that no array made: the axis that each is a range of, or None.
    picked
        The shape that arrays have together.
    front
        The position of their axes in the result.
    """

    source: list[range | int | tuple[int]]
    rest: list[int | None]
    picked: Shape
    front: int

    def place(self, rest: Sequence[str], picked: Sequence[str]) -> list[str]:
        """Return the indices of an element of the result, from those of its parts."""
        return [*rest[: self.front], *picked, *rest[self.front :]]


def _index_of(template: Sequence[Any], shape: Shape, arrays: Sequence[Symbol]) -> _Index | None:
    """Return an index; None if it has masks, or sizes that are not numbers."""
    if any(x.dtype.kind not in "iu" for x in arrays):
        return None
    parts = list(template)
    if not any(part == "..." for part in parts if isinstance(part, str)):
        parts.append("...")
    used = sum(not isinstance(part, str) for part in parts)
    source: list[Any] = []
    rest: list[int | None] = []
    places: list[int] = []
    front = 0
    for place, part in enumerate(parts):
        axis = len(source)
        if part == "newaxis":
            rest.append(None)
        elif part == "...":
            kept = range(axis, axis + len(shape) - used)
            source += [range(shape[a]) for a in kept]
            rest += kept
        elif isinstance(part, tuple) and part[0] == "slice":
            source.append(range(*slice(*part[1:]).indices(shape[axis])))
            rest.append(axis)
        else:
            front = front if places else len(rest)
            places.append(place)
            if isinstance(part, tuple):
                source.append((part[1],))
            elif type(part) is int:
                source.append(part % shape[axis])
            else:
                return None
    together = bool(places) and places == list(range(places[0], places[-1] + 1))
    picked: Any = broadcast_shapes(*map(shape_of, arrays), op="getitem") if arrays else ()
    return _Index(source, rest, picked, front if together and arrays else 0)


def _spread(x: Symbol, at: Sequence[str]) -> list[str]:
    """Return the indices of an element that broadcasts to a shape with these indices."""
    return list(at[len(at) - len(shape_of(x)) :])


def _nothing(x: Symbol) -> str:
    """Return the value of an element that does not exist, as for ops that run one by one."""
    kind = kind_of(x.dtype)
    if kind in "fb":
        text = literal(nan if kind == "f" else True, x.dtype)
    else:
        limits = np.iinfo(x.dtype)
        text = literal(limits.min if kind == "i" else limits.max, x.dtype)
    assert text is not None
    return text


def _wrapped(x: Symbol, text: str, size: int, name: str) -> list[str]:
    """Return lines that define an index ``name``, wrapped around an axis, and mark wrong ones."""
    if x.dtype.kind == "u":
        return [f"unsigned long long {name}u = {text};", f"wrong = wrong || {name}u >= {size};",
                f"I {name} = (I)({name}u % {size});"]  # fmt: skip
    return [
        f"long long {name}i = {text};",
        f"wrong = wrong || {name}i < -{size} || {name}i >= {size};",
        f"I {name} = (I)({name}i % {size}); {name} += {name} < 0 ? {size} : 0;",
    ]


# -- reading ---------------------------------------------------------------------------------------


def _reads(
    lowering: DeviceLowering,
    op: str,
    inputs: Sequence[Symbol],
    template: Sequence[Any],
    out: Symbol,
) -> bool:
    """Add the kernel of ``x[index]``, where the other inputs are the index's arrays."""
    x, *arrays = inputs
    index = _index_of(template, shape_of(x), arrays)
    if index is None:
        return False
    names, count = indices(out), len(index.picked)
    picked = names[index.front : index.front + count]
    rest = names[: index.front] + names[index.front + count :]

    def write(writer: Writer) -> Written:
        lines, at = ["bool wrong = false;"], []
        for axis, part in enumerate(index.source):
            if isinstance(part, tuple):
                array = arrays[part[0]]
                text = writer.read(1 + part[0], _spread(array, picked))
                lines += _wrapped(array, text, shape_of(x)[axis], f"a{axis}")
                at.append(f"a{axis}")
            elif isinstance(part, int):
                at.append(str(part))
            else:
                at.append(f"{part.start} + {rest[index.rest.index(axis)]} * ({part.step})")
        return writer.kernel(lines, f"wrong ? {_nothing(x)} : {writer.read(0, at)}")

    return written(lowering, op, inputs, out, write)


def _getitem(lowering: DeviceLowering, node: Node) -> bool:
    if len(node.inputs) == 1:
        return ARRANGEMENTS["getitem"](lowering, node)
    return _reads(lowering, "getitem", node.inputs, node.params["index"], node.outputs[0])


def _flat(lowering: DeviceLowering, x: Symbol, axis: int | None) -> tuple[Symbol, list[Any]]:
    """Return what ``take`` reads from, and its index."""
    if axis is None or not shape_of(x):
        return reshaped(lowering, x, (prod(shape_of(x)),)), [("array", 0)]
    before = [("slice", None, None, None)] * (axis % len(shape_of(x)))
    return x, [*before, ("array", 0)]


def _take(lowering: DeviceLowering, node: Node) -> bool:
    (x, array), (out,) = node.inputs, node.outputs
    x, index = _flat(lowering, x, node.params["axis"])
    return _reads(lowering, "take", (x, array), index, out)


def _take_along_axis(lowering: DeviceLowering, node: Node) -> bool:
    (x, array), (out,) = node.inputs, node.outputs
    axis = node.params["axis"] % len(shape_of(x))

    def write(writer: Writer) -> Written:
        names = indices(out)
        text = writer.read(1, names)
        lines = ["bool wrong = false;", *_wrapped(array, text, shape_of(x)[axis], "a")]
        names[axis] = "a"
        return writer.kernel(lines, f"wrong ? {_nothing(x)} : {writer.read(0, names)}")

    return written(lowering, "take_along_axis", (x, array), out, write)


# -- adding ----------------------------------------------------------------------------------------


class _Part(NamedTuple):
    """Values at an index: the position of the first of their inputs, and the index's arrays."""

    number: int
    arrays: Sequence[Symbol]
    where: _Index


def _found(
    writer: Writer,
    part: _Part,
    shape: Shape,
    then: str,
    marked: bool,
    last: bool = False,
    linked: int | None = None,
) -> list[str]:
    """Return lines that run ``then`` with each value that goes to the element.

    Parameters
    ----------
    writer
        The kernel's writer.
    part
        The values.
    shape
        The shape of the array that they go to.
    then
        A line, with the value as ``value``.
    marked
        Whether values with an index out of range do not exist.
    last
        Whether only the last value counts.
    linked
        The axis of linked values: ``g0`` has the first one at each place, ``g1`` the next ones.
    """
    index, values = part.where, writer.step.inputs[part.number]
    tests, rest = ["true"], {}
    for axis, selected in enumerate(index.source):
        if isinstance(selected, int):
            tests.append(f"k{axis} == {selected}")
        elif isinstance(selected, range):
            start, step = selected.start, selected.step
            ahead = f"(k{axis} - {start})" if step > 0 else f"({start} - k{axis})"
            place = f"{ahead} / {abs(step)}" if abs(step) > 1 else ahead
            rest[axis] = place
            if len(selected) < shape[axis]:
                tests.append(f"{ahead} >= 0 && {place} < {len(selected)}")
                tests += [f"{ahead} % {abs(step)} == 0"] * (abs(step) > 1)
    names = [f"e{a}" for a in range(len(index.picked))]
    at = index.place([("0" if a is None else rest[a]) for a in index.rest], names)
    value = writer.read(part.number, at)
    kind = compute_type(values.dtype)
    lines = [f"if ({' && '.join(tests)}) {{"]
    if not part.arrays:
        return [*lines, f"{kind} value = {value};", then, "}"]
    count = prod(index.picked)
    loop = (
        f"for (I e = {count} - 1; e >= 0; e--) {{"
        if last
        else f"for (I e = 0; e < {count}; e++) {{"
    )
    if linked is not None:
        loop = f"for (I e = g0[k{linked}]; e >= 0; e = g1[e]) {{"
    lines.append(loop)
    lines += [*unravelled(index.picked, "e", "e"), "bool wrong = false;"]
    for axis, selected in enumerate(index.source):
        if isinstance(selected, tuple):
            array = part.arrays[selected[0]]
            text = writer.read(part.number + _OFFSET + selected[0], _spread(array, names))
            lines += _wrapped(array, text, shape[axis], f"a{axis}")
            lines.append(f"if (a{axis} != k{axis}) continue;")
    choice = f"wrong ? {_nothing(values)} : {value}" if marked else value
    return [*lines, f"{kind} value = {choice};", then, *["break;"] * last, "}", "}"]


#: How far an index's arrays come after its values among a step's inputs.
_OFFSET = 1


def _too_many(parts: Sequence[_Part], out: Symbol) -> bool:
    """Return whether threads would compare too many indices."""
    compared = sum(prod(part.where.picked) for part in parts if part.arrays)
    return prod(shape_of(out)) * compared > _MOST_COMPARED


def _adds(
    lowering: DeviceLowering,
    op: str,
    given: Sequence[tuple[Symbol, Sequence[Symbol], Sequence[Any]]],
    out: Symbol,
    marked: bool = True,
) -> bool:
    """Add the kernel of zeros to which values are added, each at its index."""
    parts, inputs = [], list[Symbol]()
    for values, arrays, template in given:
        index = _index_of(template, shape_of(out), arrays)
        if index is None:
            return False
        parts.append(_Part(len(inputs), arrays, index))
        inputs += [values, *arrays]
    if out.dtype.kind == "b" and (len(parts) > 1 or parts[0].arrays):
        return False
    linked = None
    if _too_many(parts, out):
        alone = len(parts) == len(parts[0].arrays) == 1
        if not alone or prod(parts[0].where.picked) > _MOST_LINKED:
            return False
        linked = next(a for a, s in enumerate(parts[0].where.source) if isinstance(s, tuple))

    def write(writer: Writer) -> Written:
        lines = [f"{compute_type(out.dtype)} sum = 0;"]
        for part in parts:
            lines += _found(
                writer, part, shape_of(out), "sum = sum + value;", marked, False, linked
            )
        if linked is None:
            return writer.kernel(lines, "sum")
        before, links = _links(writer, parts[0], shape_of(out)[linked])
        body = [*unravelled(shape_of(out)), *lines, f"out[t] = {stored(out.dtype, 'sum')};"]
        return [*before, writer.launch(body, out, prod(shape_of(out)), links)], links

    return written(lowering, op, inputs, out, write)


def _links(writer: Writer, part: _Part, size: int) -> tuple[list[KernelLaunch], list[Symbol]]:
    """Return kernels that link values at the same place, and what they write.

    That is the number of the first value at each place, and of the next one for each value, or -1.
    """
    (array,), picked = part.arrays, part.where.picked
    number, count = np.dtype(np.int32), prod(picked)
    first, following = (symbol_like(array, (n,), number) for n in (size, count))

    def place(of: str, name: str, letter: str) -> list[str]:
        at = [f"{letter}{a}" for a in range(len(picked))]
        text = writer.read(part.number + _OFFSET, _spread(array, at))
        return [*unravelled(picked, of, letter), *_wrapped(array, text, size, name)]

    def seek(start: str, test: str, step: str) -> list[str]:
        return [
            "bool wrong = false;",
            *place("t", "mine", "b"),
            "I found = -1;",
            f"for (I n = {start}; {test}; {step}) {{",
            *(f"    {line}" for line in place("n", "other", "c")),
            "    if (other == mine) { found = n; break; }",
            "}",
        ]

    before = [*seek("t - 1", "n >= 0", "n--"), "if (found < 0) out[mine] = (int)t;"]
    after = [*seek("t + 1", f"n < {count}", "n++"), "out[t] = (int)found;"]
    return [
        writer.launch(["out[t] = -1;"], first, size),
        writer.launch(before, first, count),
        writer.launch(after, following, count),
    ], [first, following]


def _index_add_like(lowering: DeviceLowering, node: Node) -> bool:
    g, _, *arrays = node.inputs
    return _adds(lowering, "index_add_like", [(g, arrays, node.params["index"])], node.outputs[0])


def _index_add_all_like(lowering: DeviceLowering, node: Node) -> bool:
    values, given = list(node.inputs[1:]), []
    for template in node.params["indices"]:
        end = 1 + sum(type(part) is tuple and part[0] == "array" for part in template)
        given.append((values[0], values[1:end], template))
        del values[:end]
    return _adds(lowering, "index_add_all_like", given, node.outputs[0], marked=False)


def _take_adjoint(lowering: DeviceLowering, node: Node) -> bool:
    (g, array, _), (out,), axis = node.inputs, node.outputs, node.params["axis"]
    whole = out
    if axis is None or not shape_of(out):
        whole, axis = symbol_like(out, (prod(shape_of(out)),)), 0
    before = [("slice", None, None, None)] * (axis % len(shape_of(whole)))
    given = [(g, [array], [*before, ("array", 0)])]
    if not _adds(lowering, "take_adjoint", given, whole, marked=False):
        return False
    if whole is not out:
        reshaped(lowering, whole, shape_of(out), out)
    return True


def _along_axis(node: Node, array: Symbol, out: Symbol) -> int | None:
    """Return the axis of values at an index along it; None if they broadcast, or are too many."""
    axis = node.params["axis"] % len(shape_of(out))
    whole = (*shape_of(out)[:axis], shape_of(array)[axis], *shape_of(out)[axis + 1 :])
    small = prod(whole) * shape_of(out)[axis] <= _MOST_COMPARED
    return axis if shape_of(node.inputs[0]) == whole and small else None


def _take_along_axis_adjoint(lowering: DeviceLowering, node: Node) -> bool:
    (g, array, _), (out,) = node.inputs, node.outputs
    axis = _along_axis(node, array, out)
    if axis is None:
        return False

    def write(writer: Writer) -> Written:
        names = indices(out)
        names[axis] = "e"
        lines = [
            f"{compute_type(out.dtype)} sum = 0;",
            f"for (I e = 0; e < {shape_of(array)[axis]}; e++) {{",
            "bool wrong = false;",
            *_wrapped(array, writer.read(1, names), shape_of(out)[axis], "a"),
            f"if (a == k{axis}) sum = sum + {writer.read(0, names)};",
            "}",
        ]
        return writer.kernel(lines, "sum")

    return out.dtype.kind != "b" and written(
        lowering, "take_along_axis_adjoint", (g, array), out, write
    )


def _index_set(lowering: DeviceLowering, node: Node) -> bool:
    (x, values, *arrays), (out,) = node.inputs, node.outputs
    index = _index_of(node.params["index"], shape_of(out), arrays)
    if index is None or values.dtype != out.dtype:
        return False
    part = _Part(1, arrays, index)

    def write(writer: Writer) -> Written:
        lines = [f"{compute_type(out.dtype)} found = {writer.read(0, indices(out))};"]
        lines += _found(writer, part, shape_of(out), "found = value;", True, last=True)
        return writer.kernel(lines, "found")

    return not _too_many([part], out) and written(
        lowering, "index_set", (x, values, *arrays), out, write
    )


# -- rows of classes -------------------------------------------------------------------------------


def _one_hot(lowering: DeviceLowering, node: Node) -> bool:
    (x,), (out,) = node.inputs, node.outputs
    column = reshaped(lowering, x, (*shape_of(x), 1))
    hits = symbol_like(out, None, np.dtype(bool))
    places = lowering.count_to(node.params["depth"], x)
    hits = lowering.add(StepKind.ELEMENTWISE, "hits", np.equal, (column, places), hits)
    lowering.add(StepKind.ELEMENTWISE, "where", np.where, (hits, 1, 0), out)
    return True


RULES: dict[str, Rule] = {
    "getitem": _getitem,
    "take": _take,
    "take_adjoint": _take_adjoint,
    "take_along_axis": _take_along_axis,
    "take_along_axis_adjoint": _take_along_axis_adjoint,
    "index_add_like": _index_add_like,
    "index_add_all_like": _index_add_all_like,
    "index_set": _index_set,
    "one_hot": _one_hot,
}

"""Combining: steps that run as one. Groups, stacks of small arrays, and packs of updates.

*Grouping*: elementwise steps over one shape become one loop, with the reductions after them. An
:class:`Emitter` may run such loops; subclasses do so without NumPy.

*Stacking*: the overhead of a NumPy call takes longer than computing a few numbers. If the inputs of
several steps are computed before any of their results is needed, they are placed in one array, and
one call computes all.

*Packing*: an optimizer does the same with each variable, its gradient and its slots. If these share
memory, with one flat array for the values and one for each slot, the update is one group over the
flat arrays.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from math import prod
from typing import Any

from ...core.extend import Symbol, Variable
from ..packing import Bounds, bounds_of
from .steps import LoopGroup, PlanStep, Shape, StepKind, bytes_of, shape_of

# -- groups ----------------------------------------------------------------------------------------


Item = LoopGroup | PlanStep


class Emitter:
    """Runs groups as loops; this one leaves all of them to NumPy.

    Attributes
    ----------
    patience
        For plans that change to loops later: how many seconds their calls take together before
        loops are compiled. It should be about the time to compile them.
    """

    patience = 0.2

    def takes(self, step: PlanStep) -> bool:
        """Return whether a step may be in a group; here, if it is elementwise or a reduction.

        Parameters
        ----------
        step
            The step.
        """
        return step.elementwise or step.kind is StepKind.REDUCTION

    def reduces(self, step: PlanStep) -> bool:
        """Return whether :meth:`loop` may run a reduction that is a group of its own.

        Parameters
        ----------
        step
            A reduction to an array that :meth:`takes` refused.
        """
        return False

    def loop(self, group: LoopGroup) -> Callable[..., Any] | None:
        """Return a function that runs a group, ``function(*outputs, *inputs)``; None for NumPy.

        Parameters
        ----------
        group
            The group. Outputs are C contiguous arrays that overlap with nothing. Inputs may have
            any strides; those without axes may be NumPy scalars.
        """
        return None

    def reason(self, group: LoopGroup) -> str | None:
        """Return why NumPy runs a group, for ``fn.explain()``; None if there is nothing to say.

        Parameters
        ----------
        group
            A group for which :meth:`loop` returned None.
        """
        return None


def grouped(
    steps: Sequence[PlanStep], needed: Container[Symbol], takes: Callable[[PlanStep], bool]
) -> list[Item]:
    """Return steps in a possible order, with as many as possible in groups.

    A value crosses a boundary if it goes from one group to another, or into or out of a step of
    another kind. Elementwise steps over one shape with the same number of boundaries before them
    make a group.

    Parameters
    ----------
    steps
        The steps, in order.
    needed
        The values that are read after the last step.
    takes
        A function that returns whether a step may be in a group.
    """
    depths: dict[Symbol, int] = {}
    spaces: dict[Symbol, Any] = {}  # the shape of a group, None for a step outside groups
    groups: dict[tuple[int, Shape], LoopGroup] = {}
    placed: list[tuple[int, Item]] = []
    for step in steps:
        space = step.space if takes(step) else None
        depth = 0
        for x in step.symbols:
            if x in depths:
                depth = max(depth, depths[x] + (spaces[x] != space))
        tail = step.kind is StepKind.REDUCTION
        for symbol in step.outputs:
            depths[symbol] = depth
            spaces[symbol] = "reduced" if tail and space is not None else space
        if space is None:
            placed.append((depth, step))
            continue
        group = groups.get((depth, space))
        if group is None:
            group = groups[depth, space] = LoopGroup(space)
            placed.append((depth, group))
        (group.tails if tail else group.steps).append(step)
    placed.sort(key=lambda place: place[0])
    items = [item for _, item in placed]
    close_groups(items, needed)
    return items


def close_groups(items: Sequence[Item], needed: Container[Symbol]) -> None:
    """Set the inputs and outputs of groups.

    Parameters
    ----------
    items
        All groups and the other steps, in order.
    needed
        The values that are read after the last of them.
    """
    homes: dict[Symbol, Any] = {}
    outside: set[Symbol] = set()
    for item in items:
        for step in item.members:
            homes.update(dict.fromkeys(step.outputs, item))
    for item in items:
        for step in item.members:
            outside.update(x for x in step.symbols if homes.get(x) is not item)
    for item in items:
        if isinstance(item, LoopGroup):
            item.close(lambda x: x in outside or x in needed)


# -- stacks ----------------------------------------------------------------------------------------


#: The maximum size in bytes of a small array, and the minimum number of them.
_SMALL, _SEVERAL = 2**11, 3


class StackedSteps:
    """Steps of one function, of one array each, that run as one step.

    Attributes
    ----------
    members
        The steps.
    """

    __slots__ = ("members",)

    def __init__(self, members: Sequence[PlanStep]) -> None:
        self.members = list(members)


def stacked(items: Sequence[Any], fixed: Container[Symbol]) -> list[Any]:
    """Return the items of a plan, with stacks instead of the steps that they contain.

    Parameters
    ----------
    items
        Steps and groups, in order.
    fixed
        Values with fixed memory, or that must not be in buffers.
    """
    made: dict[Symbol, int] = {}
    needed: dict[Symbol, int] = {}
    for place, item in enumerate(items):
        for step in item.members:
            for x in step.symbols:
                needed.setdefault(x, place)
        if isinstance(item, PlanStep) and item.kind is StepKind.ELEMENTWISE:
            made[item.out] = place
    before: dict[int, list[StackedSteps]] = {}
    gone: set[PlanStep] = set()
    taken: set[Symbol] = set()  # an array has one position, in one stack
    for steps in _stackable(items, made, needed, fixed):
        stack: list[PlanStep] = []
        results: set[Symbol] = set()
        first, last = len(items), -1
        for step in [*steps, None]:
            early = made[step.inputs[0]] if step is not None else len(items)
            late = needed[step.out] if step is not None else -1
            # in a chain, as in tanh(tanh(x)), an input is the result of a member
            chained = step is not None and step.inputs[0] in results
            if max(last, early) < min(first, late) and not chained:
                assert step is not None
                results.add(step.out)
                stack.append(step)
                first, last = min(first, late), max(last, early)
                continue
            stack = [s for s in stack if s.inputs[0] not in taken and s.out not in taken]
            if len(stack) >= _SEVERAL:
                taken.update(x for s in stack for x in (s.inputs[0], s.out))
                before.setdefault(first, []).append(StackedSteps(stack))
                gone.update(stack)
            stack = [] if step is None else [step]
            results = {step.out for step in stack}
            first, last = late, early
    found: list[Any] = []
    for place, item in enumerate(items):
        found += before.get(place, [])
        if not (isinstance(item, PlanStep) and item in gone):
            found.append(item)
    return found


def _stackable(
    items: Sequence[Any],
    made: dict[Symbol, int],
    needed: dict[Symbol, int],
    fixed: Container[Symbol],
) -> Iterator[list[PlanStep]]:
    """Give lists of steps that do the same with arrays of one shape."""
    classes: dict[Any, list[PlanStep]] = {}
    for step in items:
        if (
            not isinstance(step, PlanStep)
            or step.kind is not StepKind.ELEMENTWISE
            or len(step.inputs) != 1
        ):
            continue
        (x,), out = step.inputs, step.out
        if x not in made or out not in needed or x in fixed or out in fixed:
            continue
        if bytes_of(out) > _SMALL or bytes_of(x) > _SMALL:
            continue
        classes.setdefault((step.op, x.shape, x.dtype, out.dtype), []).append(step)
    yield from classes.values()


# -- packs -----------------------------------------------------------------------------------------


#: A pack is worth its costs from this number of elements, or of calls that it saves.
_LARGE, _CALLS = 2**14, 12


class FlatUpdate:
    """One flat update.

    Attributes
    ----------
    group
        The update over flat arrays: symbols of shape ``(elements,)``.
    shapes
        The shape of each member's part, in order.
    written
        By an output of the group, the variables whose new values are its parts.
    held
        By an input of the group, the variables whose values are its parts; all are written.
    given
        By another input of the group, the values that are its parts, one per member.
    sources
        By a variable, the symbol of its new value in the program.
    """

    __slots__ = ("given", "group", "held", "shapes", "sources", "written")

    def __init__(self, shapes: Sequence[Shape]) -> None:
        self.shapes = list(shapes)
        self.group = LoopGroup((sum(map(prod, shapes)),))
        self.written: dict[Symbol, list[Variable]] = {}
        self.held: dict[Symbol, list[Variable]] = {}
        self.given: dict[Symbol, list[Symbol]] = {}
        self.sources: dict[Variable, Symbol] = {}

    @property
    def key(self) -> Any:
        """The variables, in order, and those that it reads."""
        return tuple(
            tuple(tuple(v.id for v in column) for column in columns.values())
            for columns in (self.written, self.held)
        )

    @property
    def bounds(self) -> list[Bounds]:
        """The start and end of each part in a flat array, and its shape."""
        return bounds_of(self.shapes)


def packed(
    steps: Sequence[PlanStep],
    reads: Mapping[Symbol, Variable],
    updates: Mapping[Variable, Symbol],
    outputs: Sequence[Symbol],
) -> tuple[list[PlanStep], list[FlatUpdate]]:
    """Return the remaining steps, and packs of the others.

    Parameters
    ----------
    steps
        All steps, in order.
    reads
        The variables whose values on entry the symbols are.
    updates
        The final values of variables.
    outputs
        The outputs of the program.
    """
    made = {step.out: step for step in steps if len(step.outputs) == 1}
    ending = _ending(steps, updates, outputs)
    packs, gone = [], set[PlanStep]()
    for members in _classes(made, ending, updates):
        found = _matched(members, made, ending, reads, updates)
        if found is not None:
            pack, inside = found
            packs.append(pack)
            gone |= inside
    return [step for step in steps if step not in gone], packs


def _ending(
    steps: Sequence[PlanStep], updates: Mapping[Variable, Symbol], outputs: Sequence[Symbol]
) -> set[PlanStep]:
    """Return the elementwise steps that only updates depend on."""
    final, returned, users = set(updates.values()), set(outputs), dict[Symbol, list[PlanStep]]()
    for step in steps:
        for x in step.inputs:
            if type(x) is Symbol:
                users.setdefault(x, []).append(step)
    found: set[PlanStep] = set()
    for step in reversed(steps):
        if step.kind is not StepKind.ELEMENTWISE or step.op == "cast" or step.out in returned:
            continue
        behind = users.get(step.out, [])
        shape = shape_of(step.out)
        alike = shape != () and all(
            shape_of(x) in ((), shape) for x in step.inputs if type(x) is Symbol
        )
        if alike and (behind or step.out in final) and all(user in found for user in behind):
            found.add(step)
    return found


def _classes(
    made: Mapping[Symbol, PlanStep], ending: set[PlanStep], updates: Mapping[Variable, Symbol]
) -> list[list[list[Variable]]]:
    """Return lists of similar groups of variables; each group is updated together."""
    owner: dict[PlanStep, int] = {}
    parts: dict[int, list[Variable]] = {}
    times = Counter(updates.values())
    for number, (variable, symbol) in enumerate(updates.items()):
        step = made.get(symbol)
        if step is None or step not in ending:
            continue
        if times[symbol] > 1 or symbol.shape != variable.shape:
            continue
        reached, stack, name = set[PlanStep](), [step], number
        while stack:
            here = stack.pop()
            if here in owner:
                name = owner[here]
            if here in reached or here in owner:
                continue
            reached.add(here)
            before = [made.get(x) for x in here.inputs if type(x) is Symbol]
            stack += [step for step in before if step in ending]
        owner.update(dict.fromkeys(reached, name))
        parts.setdefault(name, []).append(variable)
    classes: dict[Any, list[list[Variable]]] = {}
    for variables in parts.values():
        if len({made[updates[v]].out.shape for v in variables}) == 1:
            key = tuple((made[updates[v]].op, v.dtype) for v in variables)
            classes.setdefault(key, []).append(variables)
    return list(classes.values())


def _matched(
    members: Sequence[Sequence[Variable]],
    made: Mapping[Symbol, PlanStep],
    ending: set[PlanStep],
    reads: Mapping[Symbol, Variable],
    updates: Mapping[Variable, Symbol],
) -> tuple[FlatUpdate, set[PlanStep]] | None:
    """Walk the updates of all members together, as far as they are the same."""
    shapes = [variables[0].shape for variables in members]
    pack = FlatUpdate(shapes)
    flat: dict[tuple[Symbol, ...], Symbol] = {}
    steps: dict[tuple[Symbol, ...], list[PlanStep]] = {}
    columns = {column: list(column) for column in zip(*members, strict=True)}

    def walk(end: tuple[Symbol, ...]) -> Symbol:
        """Return the symbol in the flat update that combines one value of each member."""
        waiting = [end]  # not calls of itself: an update may be as long as a program
        while waiting:
            row = waiting[-1]
            if row in flat:
                waiting.pop()
                continue
            first = row[0]
            found = [made[x] for x in row if x in made]
            if first.shape == () and all(x is first for x in row):
                flat[row] = first
                continue
            inputs = _alike(found, row) if all(step in ending for step in found) else None
            before = [x for x in inputs or () if type(x) is tuple and x not in flat]
            if before:
                waiting += reversed(before)
                continue
            symbol = flat[row] = Symbol(first.graph, pack.group.shape, first.dtype)
            if inputs is not None:
                step, given = found[0], [flat[x] if type(x) is tuple else x for x in inputs]
                pack.group.steps.append(
                    PlanStep(
                        step.kind, step.op, step.run, given, (symbol,), {}, False, step.scalars
                    )
                )
                steps[row] = found
                continue
            variables = tuple(reads.get(x) for x in row)
            if variables in columns:
                pack.held[symbol] = columns[variables]
            else:
                pack.given[symbol] = list(row)
        return flat[end]

    for column in columns:
        row = tuple(updates[v] for v in column)
        symbol = walk(row)
        if row not in steps or symbol in pack.written:
            return None
        pack.written[symbol] = list(column)
        pack.sources.update(zip(column, row, strict=True))
    inside = {step for found in steps.values() for step in found}
    if len(inside) != len(steps) * len(members):  # a value is at two positions
        return None
    if not _fits(pack, inside, len(inside) - len(steps), made, ending, updates):
        return None
    pack.group.close(lambda x: x in pack.written)
    return pack, inside


def _fits(
    pack: FlatUpdate,
    inside: set[PlanStep],
    saved_calls: int,
    made: Mapping[Symbol, PlanStep],
    ending: set[PlanStep],
    updates: Mapping[Variable, Symbol],
) -> bool:
    """Return whether a flat update pays, can run last, and computes nothing for others."""
    if pack.group.shape[0] < _LARGE and saved_calls < _CALLS:
        return False
    if not _can_run_last(pack, made, inside, ending):
        return False
    results = {step.out for step in inside}
    return not any(x in results for v, x in updates.items() if v not in pack.sources)


def _alike(found: Sequence[PlanStep], row: Sequence[Symbol]) -> list[Any] | None:
    """Return the inputs of steps that do the same; inputs of all members are combined."""
    if len(found) != len(row):
        return None
    first = found[0]
    for step in found:
        if step.op != first.op or len(step.inputs) != len(first.inputs):
            return None
        if step.out.dtype != first.out.dtype:
            return None
    inputs = []
    for xs in zip(*(step.inputs for step in found), strict=True):
        if type(xs[0]) is not Symbol:
            if any(type(x) is not type(xs[0]) or repr(x) != repr(xs[0]) for x in xs):
                return None
            inputs.append(xs[0])
        elif any(type(x) is not Symbol or x.dtype != xs[0].dtype for x in xs):
            return None
        elif any(x.shape == () for x in xs) and any(x is not xs[0] for x in xs):
            return None  # each member has its own number
        else:
            inputs.append(xs)
    return inputs


def _can_run_last(
    pack: FlatUpdate, made: Mapping[Symbol, PlanStep], inside: set[PlanStep], ending: set[PlanStep]
) -> bool:
    """Return whether a flat update can be the last step of the program."""
    given = [x for row in pack.given.values() for x in row]
    shapes = [shape for _ in pack.given for shape in pack.shapes]
    if any(shape_of(x) != shape for x, shape in zip(given, shapes, strict=True)):
        return False
    if any(made.get(x) in inside for x in given):
        return False
    results = {step.out for step in inside}
    return not any(
        x in results for step in ending - inside for x in step.inputs if type(x) is Symbol
    )

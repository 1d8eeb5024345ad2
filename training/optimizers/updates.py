"""How an optimizer updates variables: together, in flat arrays; in a trace, one after another.

A :class:`VariableGroup` packs the variables of one dtype and device.
"""

from __future__ import annotations

import warnings
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain, starmap, zip_longest
from operator import call
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np

from ...core.extend import (
    KERNEL_CACHES,
    Pending,
    Tensor,
    Variable,
    active_tapes,
    as_tensor,
    backend_of,
    check_same_backend,
    functions,
    hide_arrays,
    in_parallel,
    numpy_dtype,
    ops,
    parts,
    restore_arrays,
    set_arrays,
    settled,
    threads,
)
from ...plugins.packing import FlatArrays, bounds_of, hold
from .options import SUMS, clipped
from .rules import FlatFormula, UfuncRule, check_elementwise, returned

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["VariableGroup", "do_step", "traced_step"]

Array: TypeAlias = "NDArray[Any]"
Update = Callable[..., tuple[Any, tuple[Any, ...]]]

#: The bytes of an array in one block: a few such blocks fit into a processor's cache.
BLOCK = 1 << 18
#: The same if threads share the blocks: each call takes Python's lock, and threads wait for it.
SHARED_BLOCK = 1 << 19
#: Variables with fewer bytes share blocks with their neighbours.
SMALL = 1 << 14


def do_step(
    groups: Sequence[VariableGroup], gradients: Sequence[Any], settings: Sequence[tuple[Any, ...]]
) -> None:
    """Update the variables of all groups, or of none if that fails.

    There are settings for each counter. The caller holds the locks of the variables and their
    slots.
    """
    for group in groups:
        group.gather()
    for group in groups:
        group.begin([gradients[i] for i in group.members], settings[group.counter])
    by_blocks = [group for group in groups if group.by_blocks]
    try:
        if by_blocks:
            in_place = _nothing_raises()
            shares = [group.calls(in_place) for group in by_blocks]
            _run([list(chain(*row)) for row in zip_longest(*shares, fillvalue=())], in_place)
        for group in groups:
            group.commit()
    finally:
        for group in by_blocks:
            group.end()


def _run(shares: Sequence[list[tuple[Any, ...]]], in_place: bool) -> None:
    """Run lists of calls at once, each in one thread; all or none if they work in place."""
    done: list[int] = []
    for i, calls in enumerate(shares):
        calls.append((done.append, i))

    def run(first: int, last: int) -> None:
        # no Python code runs in between: an interrupt comes before or after all calls of a list
        deque(starmap(call, shares[first]), 0)

    try:
        in_parallel(run, [(i, i + 1) for i in range(len(shares))])
    finally:
        if in_place and 0 < len(done) < len(shares):  # a signal's handler has raised
            left = [calls for i, calls in enumerate(shares) if i not in done]
            deque(starmap(call, chain.from_iterable(left)), 0)


class _UpdateBlock(NamedTuple):
    """A part of the flat arrays, updated in one go."""

    start: int
    stop: int
    members: slice
    #: The offset in the only member; None if the block consists of whole members.
    offset: int | None


class VariableGroup:
    """Variables that are updated together, as one flat array; each slot is a flat array, too.

    The variables hold parts of the flat arrays. Each step creates new flat arrays. It reuses an old
    one only if nothing else refers to that array or a part of it. Meanwhile its parts cannot be
    read.
    """

    __slots__ = (
        "_at_once",
        "_blocks",
        "_compared",
        "_copies",
        "_detached",
        "_gradients",
        "_is_marked",
        "_lasting",
        "_new",
        "_on_tensors",
        "_rule_now",
        "_rules",
        "_scratch",
        "_update",
        "by_blocks",
        "counter",
        "flats",
        "members",
        "variables",
        "xp",
    )

    def __init__(
        self,
        members: list[int],
        columns: list[list[Variable]],
        update: Update,
        lasting: bool,
        counter: int,
    ) -> None:
        self.members = members
        #: The place of the counter of the steps of these variables.
        self.counter = counter
        #: Whether the formula is the same in each step, until an attribute is set.
        self._lasting = lasting
        self._update = update
        self._is_marked = getattr(update, "by_blocks", False)  # and elementwise
        #: The variables, followed by the slots of each kind.
        self.variables = list(chain.from_iterable(columns))
        bounds = bounds_of([variable.shape for variable in columns[0]])
        #: The flat arrays of the variables and slots; ``_copies`` has the calls that copy parts.
        self.flats = FlatArrays(bounds, len(columns))
        self._copies: list[Any] = [None] * len(self.variables)
        self.xp = backend_of(columns[0][0].array).xp
        self._on_tensors = False
        self._compared = len(members) == 1
        self._rules: dict[tuple[int, int], UfuncRule | None] = {}
        self._at_once: dict[tuple[Any, ...], Any] = {}
        self._blocks = list(_blocks(bounds, columns[0][0].dtype.itemsize))
        self._scratch: list[list[Array]] = []  # for each thread
        self._detached: list[int] = []
        self._new: list[Any] = []
        self._gradients: list[Any] = []
        self._rule_now: Any = None
        self.by_blocks = False

    @property
    def locked(self) -> list[Variable]:
        """The variables that a step locks; slots among them only if it may write into them."""
        return self.variables if len(self._blocks) > 1 else self.variables[: len(self.members)]

    def gather(self) -> None:
        """Rebuild the flat arrays whose variables or slots were assigned."""
        self._detached = []  # left by an interrupted step; its arrays are read as copies
        if hold(self.variables, self.flats.parts):
            return
        for k, column in enumerate(self.flats.columns):
            if not hold(self.variables[column], self.flats.parts[column]):
                self._gather(k, self.variables[column])

    def _gather(self, k: int, variables: list[Variable]) -> None:
        first = self.variables[0].array
        for variable in self.variables:
            what = f"variable {variable.name!r} (move model and optimizer together)"
            check_same_backend(variable.array, first, what)
        self.xp = backend_of(first).xp
        self.flats.gather(k, variables, self.xp)

    def begin(self, gradients: list[Any], settings: tuple[Any, ...]) -> None:
        """Take a step's gradients and settings; do the step, unless it runs block by block."""
        value = self.flats.arrays[0]
        rule = self._rule(settings) if len(self._blocks) > 1 else None
        self.by_blocks = rule is not None
        if rule is None:
            new = self._in_one_call(gradients, settings)
            self._new = self._as_written(gradients, settings) if new is None else new
        else:
            self._gradients = gradients
            self._rule_now = rule, [np.asarray(x, value.dtype) for x in settings]

    def _in_one_call(self, gradients: list[Any], settings: tuple[Any, ...]) -> list[Any] | None:
        """Return the new flat arrays, from a function of the backend; None if it has none."""
        value, *state = self.flats.arrays
        owner = backend_of(value)
        if not owner.updates or not all(type(x) is float for x in settings):
            return None
        key = owner, value.dtype, len(settings), KERNEL_CACHES.count
        if key not in self._at_once or not self._lasting:
            dtype = numpy_dtype(value.dtype)
            formula = FlatFormula.of(self._update, dtype, len(state), len(settings))
            self._at_once[key] = None if formula is None else owner.updating(formula)
        run = self._at_once[key]
        found = None if run is None else run([value, *state], gradients, settings)
        return None if found is None else list(found)

    def _as_written(self, gradients: list[Any], settings: tuple[Any, ...]) -> list[Any]:
        """Return the new flat arrays, from the formula on flat arrays or on the only variable."""
        value, *state = self.flats.arrays
        gradient = self.xp.concat(gradients, axis=None)
        if self._is_marked:
            new, changed = self._computed(value, gradient, state, settings)
            if not self._compared:
                self._compare(new, gradient, settings)
                self._compared = True
            pairs = zip((new, *changed), self.flats.arrays, strict=True)
            return [_as_array(x, old) if isinstance(x, Tensor) else x for x, old in pairs]
        shape = self.flats.bounds[0][2]
        value, gradient, *state = [self.xp.reshape(x, shape) for x in (value, gradient, *state)]
        new, changed = self._computed(value, gradient, state, settings)
        return [self.xp.reshape(_as_array(x, value), (-1,)) for x in (new, *changed)]

    def _compare(self, new: Any, gradient: Any, settings: tuple[Any, ...]) -> None:
        """Raise if the new value of the first variable depends on the others."""
        start, stop, _ = self.flats.bounds[0]
        row, *states = self.flats.arrays
        value, *state = [x[start:stop] for x in self.flats.arrays]
        alone, _ = self._computed(value, gradient[start:stop], state, settings)

        def again() -> Any:
            return self._computed(row, gradient, states, settings)[0][start:stop]

        check_elementwise(value, new[start:stop], alone, again)

    def _computed(
        self, value: Any, gradient: Any, state: Sequence[Any], settings: tuple[Any, ...]
    ) -> tuple[Any, Sequence[Any]]:
        """Return the new value and state.

        A formula that calls gradtape's functions computes tensors. Some libraries' arrays refuse
        them as operands; such a formula then receives tensors.
        """
        if not self._on_tensors:
            try:
                return returned(self._update(value, gradient, state, settings), state)
            except TypeError:
                if type(value) is np.ndarray:
                    raise
        value, gradient, *state = map(Tensor, (value, gradient, *state))
        found = returned(self._update(value, gradient, state, settings), state)
        self._on_tensors = True
        return found

    def _rule(self, settings: tuple[Any, ...]) -> UfuncRule | None:
        """Return the formula as a rule; None if it cannot run block by block."""
        value, *state = self.flats.arrays
        if type(value) is not np.ndarray or not all(type(x) is float for x in settings):
            return None
        key = len(settings), KERNEL_CACHES.count
        if key not in self._rules or not self._lasting:
            self._rules[key] = UfuncRule.of(self._update, value.dtype, len(state), len(settings))
        return self._rules[key]

    def calls(self, in_place: bool) -> list[list[tuple[Any, ...]]]:
        """Return the calls that do the step, block by block: a list for each thread."""
        rule, _ = self._rule_now
        self._new = self._targets(in_place)
        flats = self.flats.arrays
        pieces = parts(len(self._blocks), rule.passes * flats[0].nbytes)
        if len(self._scratch) != len(pieces) or len(self._scratch[0]) != rule.scratch:
            shape = rule.scratch, max(block.stop - block.start for block in self._blocks)
            self._scratch = [list(np.empty(shape, flats[0].dtype)) for _ in pieces]
        flattened = [g.reshape(-1) for g in self._gradients]
        return [
            self._calls(self._blocks[a:z], flattened, scratch)
            for (a, z), scratch in zip(pieces, self._scratch, strict=True)
        ]

    def _calls(
        self, blocks: Sequence[_UpdateBlock], flattened: Sequence[Array], scratch: Sequence[Array]
    ) -> list[tuple[Any, ...]]:
        rule, settings = self._rule_now
        old, new = self.flats.arrays, self._new
        calls: list[tuple[Any, ...]] = []
        for start, stop, members, offset in blocks:
            size = stop - start
            if offset is None:
                gradient = np.concatenate(flattened[members])
            else:
                gradient = flattened[members.start][offset : offset + size]
            calls += rule.calls(
                [x[start:stop] for x in old],
                (gradient, *settings),
                [x[start:stop] for x in new],
                [x[:size] for x in scratch],
            )
        return calls

    def _targets(self, in_place: bool) -> list[Array]:
        """Return the new flat arrays; old ones that nothing else refers to are reused."""
        flats = self.flats
        if in_place:
            # no variable holds a part of those that were gathered just now
            self._detached = [k for k in range(len(flats.arrays)) if flats.is_cut(k)]
            for k in self._detached:
                hide_arrays(self.variables[flats.columns[k]], self._copies[flats.columns[k]])
            for k in self._detached[:]:
                if not flats.is_alone(k, others=1):  # besides the copy
                    self._put_back(k)
        return [
            flat if k in self._detached or not flats.is_cut(k) else np.empty_like(flat)
            for k, flat in enumerate(flats.arrays)
        ]

    def _put_back(self, k: int) -> None:
        column = self.flats.columns[k]
        restore_arrays(self.variables[column], self.flats.parts[column])
        self._detached.remove(k)

    def commit(self) -> None:
        """Assign the parts of the new flat arrays to the variables and slots."""
        for k, flat in enumerate(settled(self._new)):
            if k not in self._detached:
                self._commit(k, flat)
        self._new = []

    def _commit(self, k: int, flat: Any) -> None:
        parts, column = self.flats.put(k, flat), self.flats.columns[k]
        if len(self._blocks) > 1 and type(flat) is np.ndarray:
            self._copies[column] = [Pending(x.copy, x.shape, x.dtype) for x in parts]
        set_arrays(self.variables[column], parts)

    def take_last_slot(self) -> None:
        """Assign the last slot to the variables."""
        count = len(self.members)
        for variable, held in zip(self.variables[:count], self.variables[-count:], strict=True):
            variable.set_array(held.array)

    def end(self) -> None:
        """Put back the parts that were taken away, and drop the gradients."""
        for k in self._detached[:]:
            self._put_back(k)
        self._gradients = []


def _as_array(x: Any, like: Any) -> Any:
    """Return what a formula computed as an array like the old one; formulas may use tensors.

    Raises
    ------
    ValueError
        If the shape differs.
    """
    array = x.array if isinstance(x, Tensor) else x
    if getattr(array, "shape", None) != like.shape:
        raise ValueError(
            f"Optimizer.update must return a value and state of shape {like.shape}, like those it "
            f"gets, but returned {getattr(array, 'shape', type(array).__name__)}"
        )
    if array.dtype == like.dtype:
        return array
    return backend_of(like).xp.astype(array, like.dtype)


def _blocks(bounds: Sequence[tuple[int, int, Any]], itemsize: int) -> Iterator[_UpdateBlock]:
    """Yield the blocks of a flat array whose parts have these bounds."""
    shared = threads() > 1 and bounds[-1][1] * itemsize >= 2 * SHARED_BLOCK
    block, small = (SHARED_BLOCK if shared else BLOCK) // itemsize, SMALL // itemsize
    if bounds[-1][1] <= block:
        small = block + 1  # one block
    first = start = stop = 0  # of small members that will share a block
    for i, (a, b, _) in enumerate(bounds):
        if stop > start and (b - start > block or b - a >= small):
            yield _UpdateBlock(start, stop, slice(first, i), None)
            start = stop
        if b - a >= small:
            for at in range(a, b, block):
                yield _UpdateBlock(at, min(at + block, b), slice(i, i + 1), at - a)
            start, first = b, i + 1
        elif start == stop:
            start, first = a, i
        stop = b
    if stop > start:
        yield _UpdateBlock(start, stop, slice(first, len(bounds)), None)


_QUIET = frozenset(("ignore", "warn", "print"))


def _nothing_raises() -> bool:
    """Return whether arithmetic cannot raise, which would leave arrays half written."""
    if active_tapes.get() or not _QUIET.issuperset(np.geterr().values()):
        return False
    for action, _, category, *_ in warnings.filters:
        if action == "error" and issubclass(RuntimeWarning, category):
            return False
    return True


# -- in a trace -----------------------------------------------------------------------------------


def traced_step(optimizer: Any, gradients: list[Any], variables: list[Variable]) -> None:
    """Do one step in a trace."""
    places = optimizer.take_part(variables)
    done, every = optimizer.iterations.value, optimizer.gradient_accumulation_steps
    rate = optimizer.learning_rate
    rate = rate.value if isinstance(rate, Variable) else as_tensor(rate(done))
    rate = rate.astype("float64")
    given = [Tensor(g) for g in gradients]
    members: dict[Variable, list[int]] = {}
    for i, place in enumerate(places):
        members.setdefault(optimizer.counter(place), []).append(i)
    steps = _UpdateStep(optimizer, variables, places, rate)
    if every is None:
        clipped_ones = steps.clip(given)
        for counter, chosen in members.items():
            n = counter.value.astype("float64") + 1.0
            steps.update(chosen, [clipped_ones[i] for i in chosen], n)
    else:
        _accumulate(steps, members, given, every)
    for counter in members:
        if counter is not optimizer.iterations:
            counter.assign_add(1)
    optimizer.iterations.assign_add(1)


def _accumulate(
    steps: _UpdateStep, members: dict[Variable, list[int]], given: list[Any], every: int
) -> None:
    """Add the gradients to the sums; update the variables for which these are complete."""
    held = [getattr(steps.optimizer, SUMS)[place] for place in steps.places]
    due = {counter: ops["equal"]((counter.value + 1) % every, 0) for counter in members}

    def means(chosen: Iterable[int]) -> list[Any]:
        return [(held[i].value + given[i]) / every for i in chosen]

    together: list[Any] | None = None
    if len(members) > 1:  # those that are updated now are clipped together
        together = means(range(len(given)))
        for counter, chosen in members.items():
            for i in chosen:
                together[i] = ops["where"](due[counter], together[i], 0.0)
        together = steps.clip(together)
    for counter, chosen in members.items():

        def update(counter: Variable = counter, chosen: list[int] = chosen) -> None:
            now = steps.clip(means(chosen)) if together is None else [together[i] for i in chosen]
            steps.update(chosen, now, (counter.value // every).astype("float64") + 1.0)
            for i in chosen:
                held[i].assign(ops["zeros_like"](held[i].value))

        def gather(chosen: list[int] = chosen) -> None:
            for i in chosen:
                held[i].assign_add(given[i])

        functions["cond"](due[counter], update, gather)


class _UpdateStep(NamedTuple):
    """What the updates of one step have in common."""

    optimizer: Any
    variables: list[Variable]
    places: list[int]
    rate: Any

    def clip(self, gradients: list[Any]) -> list[Any]:
        """Return clipped gradients."""
        optimizer = self.optimizer
        return clipped(
            gradients, optimizer.clipnorm, optimizer.clipvalue, optimizer.global_clipnorm
        )

    def update(self, chosen: list[int], gradients: list[Any], n: Any) -> None:
        """Do the update with number ``n`` of some of the variables."""
        optimizer = self.optimizer
        # some may be Python numbers
        numbers = [as_tensor(x, "float64") for x in optimizer._step_numbers(self.rate, n)]
        slots = [slot for slot in optimizer.slots if slot != SUMS]
        cast: dict[Any, tuple[Any, ...]] = {}
        frequency = optimizer.ema_overwrite_frequency
        for i, gradient in zip(chosen, gradients, strict=True):
            variable, place = self.variables[i], self.places[i]
            held = [getattr(optimizer, slot)[place] for slot in slots]
            if variable.dtype not in cast:
                cast[variable.dtype] = tuple([x.astype(variable.dtype) for x in numbers])
            state = [slot.value for slot in held]
            formula = optimizer._step_formula(optimizer._decays_at(variable, place))
            found = formula(variable.value, gradient, state, cast[variable.dtype])
            value, changed = returned(found, state)
            if frequency is not None:
                value = ops["where"](ops["equal"](n % frequency, 0.0), changed[-1], value)
            variable.assign(value)
            for slot, new in zip(held, changed, strict=True):
                slot.assign(new)

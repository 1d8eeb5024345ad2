"""``Slots``: the state that an optimizer keeps for the variables that it trains."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from threading import RLock
from typing import Any

import numpy as np

from ...core.extend import (
    F,
    Module,
    Variable,
    active_graph,
    backend_of,
    init_scope,
    is_noted,
    next_id,
    note_answer,
    numpy_dtype,
    to_numpy,
)

__all__ = ["COUNTS", "GROUPING", "Slots"]

#: The attribute with the steps of each trained variable.
COUNTS = "step_counts"

#: Held while a thread creates slots, but not while it waits for variables.
GROUPING = RLock()


class Slots(Module):
    """Base class of optimizers: lists with one variable of state per trained variable."""

    _gradtape_internal = (
        "adopt begin claim counter met share_counts states take_part trained unclaimed"
    )

    #: The names of these lists, which are attributes.
    slots: tuple[str, ...] = ()
    #: The counter of steps of each trained variable. Variables share one while they take part in
    #: the same steps. Empty if that is ``iterations``, the number of all steps, for all of them.
    step_counts: Sequence[Variable] = ()
    iterations: Variable
    #: The ids of variables that were loaded with its state.
    _gradtape_beside: Container[int] = ()
    _gradtape_read: dict[int, tuple[Any, Any]]
    #: Replaced when variables no longer share a counter: what was traced before is outdated then.
    _gradtape_cohorts: Any = None

    def begin(self) -> None:
        """Create the lists, after the attributes that exist already."""
        if type(self.slots) is not tuple:  # a class may state a list
            vars(self)["slots"] = tuple(self.slots)
        for slot in self.slots:
            setattr(self, slot, [])
        # with these names, they are not part of the module tree
        self._gradtape_places: dict[Variable, int] = {}
        self._gradtape_claims: list[Variable] = []

    def build(self, variables: Iterable[Variable]) -> list[int]:
        """Create the slots of new variables; return each variable's place in the lists."""
        variables = list(variables)
        if len(set(map(id, variables))) < len(variables):
            twice = next(v for v in variables if sum(v is other for other in variables) > 1)
            raise ValueError(
                f"{type(self).__name__}: variable {twice.name!r} appears twice in one step"
            )
        with GROUPING:
            return self._places(variables)

    def take_part(self, variables: Iterable[Variable]) -> list[int]:
        """Create what a step with these variables needs; return their places.

        Trained variables that this step leaves out no longer share a counter with those in it.
        """
        with GROUPING:
            places = self.build(variables)
            inside = {self.counter(place) for place in places} | {self.iterations}
            outside: dict[Variable, list[int]] = {}
            for place in set(range(self._known())).difference(places):
                if self.counter(place) in inside:
                    outside.setdefault(self.counter(place), []).append(place)
            for shared, left in outside.items():
                own = self._new_count(left, shared.array)
                if is_noted(self, "_gradtape_cohorts"):  # the trace has a step before this one
                    own.assign(shared.value)
                self._gradtape_cohorts = object()
            note_answer(self, "_gradtape_cohorts")
            return places

    def counter(self, place: int) -> Variable:
        """Return the variable that counts the steps of the trained variable at a place."""
        return self.step_counts[place] if place < len(self.step_counts) else self.iterations

    def _read(self, variable: Variable) -> Any:
        """Return the value of a scalar variable as a number."""
        array = variable.array
        known, number = self._gradtape_read.get(variable.id, (None, None))
        if known is not array:
            number = to_numpy(array).item()
            self._gradtape_read[variable.id] = array, number
        return number

    @staticmethod
    def _array_of(counter: Variable, number: int) -> Any:
        """Return a counter's value as an array."""
        old = counter.array
        owner = backend_of(old)
        return owner.asarray(number, numpy_dtype(old.dtype), owner.device(old))

    def _write(self, counter: Variable, number: int, array: Any) -> None:
        """Set a counter to a number, which is also an array."""
        counter.set_array(array)
        self._gradtape_read[counter.id] = array, number

    def _known(self) -> int:
        """Return the number of variables that have state, or counters, or were trained."""
        lists = (getattr(self, slot) for slot in self.slots)
        return max(map(len, (self.trained, self.step_counts, *lists)))

    def _new_count(self, places: Iterable[int], array: Any) -> Variable:
        """Return a new counter for the variables at these places."""
        with init_scope():
            own = Variable(array, trainable=False, name="steps", dtype="int64")
        places = list(places)
        counts = list(self.step_counts)
        counts += [self.iterations] * (max([self._known(), *[p + 1 for p in places]]) - len(counts))
        for place in places:
            counts[place] = own
        self._set_counts(counts)
        return own

    def _set_counts(self, counts: list[Variable]) -> None:
        vars(self)["_gradtape_groups"] = {}
        if type(self.step_counts) is list:
            self.step_counts[:] = counts
        else:
            self.step_counts = counts

    def share_counts(self, kinds: Mapping[Variable, Any]) -> None:
        """Let variables share a counter if they have the same kind; None is that of ``iterations``.

        Trained variables without a kind are counted on their own.
        """
        trained = self._gradtape_places.items()
        if not self.step_counts and all(kinds.get(v, "none") is None for v, _ in trained):
            return
        users: dict[Variable, set[Any]] = {}
        for variable, place in trained:
            users.setdefault(self.counter(place), set()).add(kinds.get(variable, "none"))
        made: dict[Any, Variable] = {None: self.iterations}
        with init_scope():
            for variable, place in trained:
                kind, counter = kinds.get(variable, "none"), self.counter(place)
                if kind not in made and (counter is self.iterations or len(users[counter]) > 1):
                    zero = F.zeros_like(self.iterations.array)
                    counter = Variable(zero, trainable=False, name="steps", dtype="int64")
                made.setdefault(kind, counter)
        counts = [self.counter(place) for place in range(self._known())]
        for variable, place in trained:
            counts[place] = made[kinds.get(variable, "none")]
        self._set_counts(counts)
        self._gradtape_cohorts = object()

    def claim(self, variables: Iterable[Variable], beside: Container[int] = ()) -> None:
        """Note the variables that the state from a file belongs to, which are in the same file.

        Others of the file (``beside``, their ids) do not get it, even if they train first.

        Raises
        ------
        ValueError
            If the state does not fit these variables.
        """
        claims = list(variables)
        shapes = [variable.shape for variable in claims]
        for slot in self.slots:
            held = getattr(self, slot)
            if type(held) is not list or [getattr(x, "shape", None) for x in held] != shapes:
                raise ValueError(f"{slot} is not the state of variables of shapes {shapes}")
        self._gradtape_claims = claims
        self._gradtape_beside = beside

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        # variables that were unpickled or copied together with those that it trained
        first = min((variable.id for variable in state.get("_gradtape_claims", ())), default=0)
        self._gradtape_beside = range(first, next_id() if first else 0)

    def adopt(self, variables: Iterable[Variable]) -> None:
        """Assign the state from a file or a pickle to the variables that were saved with it.

        If the variables come from a separate pickle, those with the same values match. Variables of
        a newly created model get the state in their order.

        Raises
        ------
        ValueError
            If variables of the same values have different states, and some of them are missing, so
            that nobody knows which state belongs to which.
        """
        claims, places = self._gradtape_claims, self._gradtape_places
        fresh = [variable for variable in variables if variable not in places]
        if not claims or not fresh:
            return
        if set(claims).isdisjoint(fresh):
            owners = self._twins(claims, fresh)
            if not owners and any(v.id in self._gradtape_beside for v in fresh):
                owners = {claim: claim for claim in claims}  # these are new to the optimizer
        else:
            owners = {claim: claim for claim in claims}
        if owners:
            known = places or {claim: place for place, claim in enumerate(claims)}
            self._gradtape_places = {owners.get(x, x): place for x, place in known.items()}
            # frozen variables claim their state when they train again
            self._gradtape_claims = [claim for claim in claims if claim not in owners]

    def _twins(self, claims: list[Variable], variables: list[Variable]) -> dict[Variable, Variable]:
        """Return the variable with the same value for each claim; empty if it is another model.

        Those of the same value match by their names, and of the same name in their order. Some
        variables may be missing, because they are frozen.
        """
        by_value = [_grouped(_content, items) for items in (claims, variables)]
        alike: list[tuple[list[Variable], list[Variable]]] = []
        for here, there in _shared(*by_value):
            by_name = [_grouped(lambda variable: variable.name, x) for x in (here, there)]
            named = by_name[0].keys() >= by_name[1].keys()
            alike += _shared(*by_name) if named else [(here, there)]
        owners = {x: v for here, there in alike for x, v in zip(here, there, strict=False)}
        if len(owners) < min(len(claims), len(variables)):
            return {}
        for here, there in alike:
            if len(here) != len(there) and not self._same_state(here, len(there)):
                raise ValueError(
                    f"{type(self).__name__}: it was pickled without its variables, which are found "
                    f"by their values, but {len(here)} of shape {here[0].shape} have the same "
                    f"value and different states, and this step has {len(there)} of them. Pickle "
                    "model and optimizer together, pickle.dumps((model, optimizer)), or use a "
                    "gradtape.training.Checkpoint"
                )
        return owners

    def _same_state(self, claims: list[Variable], count: int) -> bool:
        """Return whether it does not matter which claims match so many variables of one value."""
        places = {variable: place for place, variable in enumerate(self.trained)}
        for slot in self.slots:
            held = [getattr(self, slot)[places[claim]].array for claim in claims]
            arrays = [to_numpy(array) for array in held]
            # what is new gets a state of zeros
            first = np.zeros_like(arrays[0]) if count > len(claims) else arrays[0]
            if not all(np.array_equal(first, array, equal_nan=True) for array in arrays):
                return False
        return True

    def _places(self, variables: list[Variable]) -> list[int]:
        self.adopt(variables)
        places: list[int] = []
        fresh: list[tuple[Variable, int]] = []
        for variable in variables:
            place = self._gradtape_places.get(variable)
            if place is None:
                place = len(self._gradtape_places) + len(fresh)
                fresh.append((variable, place))
                self._check_slots(variable, place)
            places.append(place)
        held = self._known()
        late = [place for _, place in fresh if place >= held]
        tracing = active_graph.get() is not None  # its steps before this one are not done yet
        if late and held and (tracing or int(to_numpy(self.iterations.array))):
            self._new_count(late, F.zeros_like(self.iterations.array))
        if fresh:
            vars(self)["_gradtape_groups"] = {}  # steps without these now leave them out
        for variable, place in fresh:
            self._gradtape_places[variable] = place
            self.met(variable, place)
            for slot in self.slots:
                if len(getattr(self, slot)) == place:
                    getattr(self, slot).append(_zeros_for(variable, slot))
        return places

    @property
    def trained(self) -> list[Variable]:
        """The known variables that it has trained so far, in the order of the slots."""
        return list(self._gradtape_places) or self._gradtape_claims

    def states(self) -> Iterator[tuple[str, Variable | None, Variable]]:
        """Yield the state of the trained variables.

        Yields
        ------
        slot : str
            The name of the slot.
        variable : Variable or None
            The variable; None if the state comes from a file and has no variable yet.
        state : Variable
            Its state.
        """
        trained = self.trained
        for slot in self.slots:
            for place, state in enumerate(getattr(self, slot)):
                yield slot, trained[place] if place < len(trained) else None, state
        for place, state in enumerate(self.step_counts):
            if state is not self.iterations:
                yield COUNTS, trained[place] if place < len(trained) else None, state

    @property
    def unclaimed(self) -> int:
        """The number of variables with state in a loaded file; 0 once some have claimed it."""
        held = max((len(getattr(self, slot)) for slot in self.slots), default=0)
        return 0 if self._gradtape_places else held

    def _check_slots(self, variable: Variable, place: int) -> None:
        """Check that the state from a file fits the variable that now gets it."""
        for slot in self.slots:
            held = getattr(self, slot)
            if place < len(held) and held[place].shape != variable.shape:
                raise ValueError(
                    f"{type(self).__name__}: {slot}[{place}] has shape {held[place].shape}, but "
                    f"variable {variable.name!r} has shape {variable.shape}; pass the variables in "
                    "the order of the optimizer's first step"
                )

    def met(self, variable: Variable, place: int) -> None:
        """Note a variable that just got a place."""


def _grouped(
    key: Callable[[Variable], Any], variables: Iterable[Variable]
) -> dict[Any, list[Variable]]:
    found: dict[Any, list[Variable]] = {}
    for variable in variables:
        found.setdefault(key(variable), []).append(variable)
    return found


def _shared(
    here: dict[Any, list[Variable]], there: dict[Any, list[Variable]]
) -> list[tuple[list[Variable], list[Variable]]]:
    return [(here[key], there[key]) for key in here if key in there]


def _content(variable: Variable) -> Any:
    return variable.shape, variable.dtype, to_numpy(variable.array).tobytes()


def _zeros_for(variable: Variable, slot: str) -> Variable:
    with init_scope():
        zeros = F.zeros_like(variable.array)
        return Variable(zeros, trainable=False, name=f"{variable.name}_{slot}")

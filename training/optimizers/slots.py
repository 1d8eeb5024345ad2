"""``Slots``: what an optimizer keeps for the variables that it trains."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from threading import RLock
from typing import Any

from ...core.extend import F, Module, Variable, init_scope, to_numpy

__all__ = ["GROUPING", "Slots"]

#: Held while one thread makes slots; not while it waits for variables.
GROUPING = RLock()


class Slots(Module):
    """Variables in lists, one for each variable that is trained: base class of optimizers."""

    #: The attributes, each a list, that hold one variable per trained variable.
    slots: tuple[str, ...] = ()

    def begin(self) -> None:
        """Make the lists, behind the attributes that are there."""
        for slot in self.slots:
            setattr(self, slot, [])
        # the names say that these are no part of the module tree
        self._gradtape_places: dict[Variable, int] = {}
        self._gradtape_claims: list[Variable] = []

    def build(self, variables: Iterable[Variable]) -> list[int]:
        """Make the slots of variables not seen before; return every variable's place in them."""
        variables = list(variables)
        if len(set(map(id, variables))) < len(variables):
            twice = next(v for v in variables if sum(v is other for other in variables) > 1)
            raise ValueError(
                f"{type(self).__name__}: variable {twice.name!r} comes twice in one step"
            )
        with GROUPING:
            return self._places(variables)

    def claim(self, variables: Iterable[Variable]) -> None:
        """Say which variables the state from a file is for: those beside it in the file.

        Raises
        ------
        ValueError
            If the state is not that of these variables.
        """
        claims = list(variables)
        shapes = [variable.shape for variable in claims]
        for slot in self.slots:
            held = getattr(self, slot)
            if type(held) is not list or [getattr(x, "shape", None) for x in held] != shapes:
                raise ValueError(f"{slot} is not the state of variables of shapes {shapes}")
        self._gradtape_claims = claims

    def adopt(self, variables: Iterable[Variable]) -> None:
        """Give the state from a file or a pickle to the variables beside it, if these are them.

        If not, variables of the same values stand for them: those of a model in another pickle.
        Others, of a model that was made anew, get it in their order.
        """
        claims, places = self._gradtape_claims, self._gradtape_places
        fresh = [variable for variable in variables if variable not in places]
        if not claims or not fresh:
            return
        if set(claims).isdisjoint(fresh):
            owners = _twins(claims, fresh)
        else:
            owners = {claim: claim for claim in claims}
        if owners:
            known = places or {claim: place for place, claim in enumerate(claims)}
            self._gradtape_places = {owners.get(x, x): place for x, place in known.items()}
            # frozen ones come when they are thawed, and have their values until then
            self._gradtape_claims = [claim for claim in claims if claim not in owners]

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
        for variable, place in fresh:
            self._gradtape_places[variable] = place
            self.met(variable, place)
            for slot in self.slots:
                if len(getattr(self, slot)) == place:
                    getattr(self, slot).append(_zeros_for(variable, slot))
        return places

    @property
    def trained(self) -> list[Variable]:
        """The variables that it trained so far, as far as they are known, in the slots' order."""
        return list(self._gradtape_places) or self._gradtape_claims

    def states(self) -> Iterator[tuple[str, Variable | None, Variable]]:
        """Yield what is kept for the variables that are trained.

        Yields
        ------
        slot : str
            The name of the slot.
        variable : Variable or None
            The variable; None if a file brought the state, and nobody has claimed it.
        state : Variable
            What is kept for it.
        """
        trained = self.trained
        for slot in self.slots:
            for place, state in enumerate(getattr(self, slot)):
                yield slot, trained[place] if place < len(trained) else None, state

    @property
    def unclaimed(self) -> int:
        """How many variables' state a file brought, until the first of them are given."""
        held = max((len(getattr(self, slot)) for slot in self.slots), default=0)
        return 0 if self._gradtape_places else held

    def _check_slots(self, variable: Variable, place: int) -> None:
        """Check what a saved file brought against the variable that it is now for."""
        for slot in self.slots:
            held = getattr(self, slot)
            if place < len(held) and held[place].shape != variable.shape:
                raise ValueError(
                    f"{type(self).__name__}: {slot}[{place}] has shape {held[place].shape}, but "
                    f"variable {variable.name!r} has shape {variable.shape}; pass the variables in "
                    "the order in which the optimizer first had them"
                )

    def met(self, variable: Variable, place: int) -> None:
        """Take note of a variable that has a place now."""


def _twins(claims: list[Variable], variables: list[Variable]) -> dict[Variable, Variable]:
    """Return which of a copy's variables stands for which; nothing, if it is of another model.

    A part of the variables will do, where the others are frozen.
    """
    known: dict[Any, list[Variable]] = {}
    for claim in claims:
        known.setdefault(_content(claim), []).append(claim)
    owners = {}
    for variable in variables:
        twins = known.get(_content(variable))
        if twins:
            owners[twins.pop(0)] = variable
    return owners if len(owners) == min(len(claims), len(variables)) else {}


def _content(variable: Variable) -> Any:
    return variable.shape, variable.dtype, to_numpy(variable.array).tobytes()


def _zeros_for(variable: Variable, slot: str) -> Variable:
    with init_scope():
        zeros = F.zeros_like(variable.array)
        return Variable(zeros, trainable=False, name=f"{variable.name}_{slot}")

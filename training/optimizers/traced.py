"""A step of an optimizer in a trace: ops and assignments, one variable after another."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

from ...core.extend import Tensor, Variable, as_tensor, functions, ops
from .clipping import clipped
from .options import SUMS
from .rules import returned

__all__ = ["traced_step"]


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
    steps = _Step(optimizer, variables, places, rate)
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
    steps: _Step, members: dict[Variable, list[int]], given: list[Any], every: int
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


class _Step(NamedTuple):
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
        settings = optimizer._step_numbers(self.rate, n)
        slots = [slot for slot in optimizer.slots if slot != SUMS]
        cast: dict[Any, tuple[Any, ...]] = {}
        frequency = optimizer.ema_overwrite_frequency
        for i, gradient in zip(chosen, gradients, strict=True):
            variable, place = self.variables[i], self.places[i]
            held = [getattr(optimizer, slot)[place] for slot in slots]
            if variable.dtype not in cast:
                cast[variable.dtype] = tuple([x.astype(variable.dtype) for x in settings])
            state = [slot.value for slot in held]
            formula = optimizer._step_formula(optimizer._decays_at(variable, place))
            found = formula(variable.value, gradient, state, cast[variable.dtype])
            value, changed = returned(found, state)
            if frequency is not None:
                value = ops["where"](ops["equal"](n % frequency, 0.0), changed[-1], value)
            variable.assign(value)
            for slot, new in zip(held, changed, strict=True):
                slot.assign(new)

"""A step of an optimizer in a trace: ops and assignments, one variable after another."""

from __future__ import annotations

from typing import Any

from ...core.extend import Tensor, Variable, as_tensor, ops, public
from .clipping import clipped
from .options import SUMS
from .rules import returned

__all__ = ["traced_step"]


def traced_step(optimizer: Any, gradients: list[Any], variables: list[Variable]) -> None:
    """Do one step in a trace."""
    places = optimizer.build(variables)
    done, every = optimizer.iterations.value, optimizer.gradient_accumulation_steps
    rate = optimizer.learning_rate
    rate = rate.value if isinstance(rate, Variable) else as_tensor(rate(done))
    rate = rate.astype("float64")
    given = [Tensor(g) for g in gradients]
    if every is None:
        _update(optimizer, given, variables, places, rate, done.astype("float64") + 1.0)
    else:
        held = [getattr(optimizer, SUMS)[place] for place in places]

        def update() -> None:
            means = [(s.value + g) / every for s, g in zip(held, given, strict=True)]
            step = (done // every).astype("float64") + 1.0
            _update(optimizer, means, variables, places, rate, step)
            for total in held:
                total.assign(ops["zeros_like"](total.value))

        def gather() -> None:
            for total, g in zip(held, given, strict=True):
                total.assign_add(g)

        public("cond")(ops["equal"]((done + 1) % every, 0), update, gather)
    optimizer.iterations.assign_add(1)


def _update(
    optimizer: Any,
    gradients: list[Any],
    variables: list[Variable],
    places: list[int],
    rate: Any,
    n: Any,
) -> None:
    settings = optimizer._step_numbers(rate, n)
    sizes = (optimizer.clipnorm, optimizer.clipvalue, optimizer.global_clipnorm)
    slots = [slot for slot in optimizer.slots if slot != SUMS]
    cast: dict[Any, tuple[Any, ...]] = {}
    frequency = optimizer.ema_overwrite_frequency
    pairs = zip(clipped(gradients, *sizes), variables, places, strict=True)
    for gradient, variable, place in pairs:
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

"""Options of every optimizer besides its formula: decay, averages, gradient accumulation."""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ...core.extend import Tensor, numpy_dtype, ops
from .clipping import CLIPPING, check_clipping
from .rules import by_blocks, returned

__all__ = [
    "AVERAGES",
    "OPTIONS",
    "SUMS",
    "above_zero",
    "add",
    "check_options",
    "decays",
    "sizes",
    "with_options",
]

if TYPE_CHECKING:
    from .clipping import Clipping

    class MoreOptions(Clipping, total=False):
        """The arguments of all optimizers except the weight decay."""

        use_ema: bool
        ema_momentum: float
        ema_overwrite_frequency: int | None
        gradient_accumulation_steps: int | None

    class Options(MoreOptions, total=False):
        """The arguments of all optimizers, for signatures that pass them on."""

        weight_decay: float | None


#: The optimizers' arguments besides those of their formulas. Files hold those that are set.
OPTIONS = (
    *CLIPPING,
    "weight_decay",
    "use_ema",
    "ema_momentum",
    "ema_overwrite_frequency",
    "gradient_accumulation_steps",
)
#: The slots that options add after those of a formula.
AVERAGES, SUMS = "weight_averages", "gradient_sums"


def check_options(optimizer: str, given: Mapping[str, Any], unset: Any) -> dict[str, Any]:
    """Return the options that differ from the defaults, by name.

    Parameters
    ----------
    optimizer
        The name of the class.
    given
        All options.
    unset
        The class, whose attributes are the defaults.

    Raises
    ------
    ValueError
        If an option is out of its range.
    TypeError
        If an option is not a number.
    """
    check_clipping(optimizer, *(given[option] for option in CLIPPING))
    found: dict[str, Any] = {}
    for option in OPTIONS:
        value = given[option]
        if value == getattr(unset, option):
            continue
        if option == "use_ema":
            found[option] = bool(value)
        elif option in ("ema_overwrite_frequency", "gradient_accumulation_steps"):
            found[option] = _count(optimizer, option, value, 1 + (option[0] == "g"))
        elif value is not None:
            found[option] = float(value)
    decay, momentum = found.get("weight_decay", 0.0), found.get("ema_momentum", 0.0)
    if not 0.0 <= decay < float("inf"):
        raise ValueError(f"{optimizer}: weight_decay must not be negative, got {decay}")
    if not 0.0 <= momentum <= 1.0:
        raise ValueError(f"{optimizer}: ema_momentum must be in [0, 1], got {momentum}")
    alone = [option for option in found if option.startswith("ema_")]
    if alone and not found.get("use_ema"):
        raise ValueError(f"{optimizer}: {alone[0]} needs averages of weights: set use_ema=True")
    return found


def _count(optimizer: str, option: str, value: Any, least: int) -> int:
    number = operator.index(value) if hasattr(value, "__index__") else 0
    if isinstance(value, bool) or number < least:
        raise ValueError(
            f"{optimizer}: {option} must be an integer of at least {least}, or None, got {value!r}"
        )
    return number


def decays(optimizer: Any, **given: float) -> list[float]:
    """Return settings as floats; raise if one is not in ``[0, 1)``."""
    return _floats(optimizer, given, "be in [0, 1)", lambda value: 0.0 <= value < 1.0)


def sizes(optimizer: Any, **given: float) -> list[float]:
    """Return settings as floats; raise if one is negative or NaN."""
    return _floats(optimizer, given, "not be negative", lambda value: value >= 0.0)


@functools.cache
def above_zero(epsilon: float, dtype: Any) -> float:
    """Return what is added to denominators, or the least number if that is 0 in a dtype.

    A gradient that is 0 throughout then changes nothing, instead of giving NaN.
    """
    limits = np.finfo(numpy_dtype(dtype))
    least = limits.tiny if limits.bits > 16 else limits.smallest_subnormal
    return max(epsilon, float(least))


def _floats(optimizer: Any, given: dict[str, float], must: str, right: Any) -> list[float]:
    for argument, value in given.items():
        if not right(value):
            raise ValueError(f"{type(optimizer).__name__}: {argument} must {must}, got {value!r}")
    return [float(value) for value in given.values()]


def with_options(
    update: Callable[..., Any], decays: bool, decay: bool, average: bool
) -> Callable[..., Any]:
    """Return an optimizer's ``update``, extended by the options.

    Parameters
    ----------
    update
        The formula.
    decays
        Whether these variables decay.
    decay, average
        Whether the formula's settings are followed by those of weight decay and of averages. With
        ``average``, the average is the last element of the state.

    Returns
    -------
    callable
        Elementwise if the formula is.
    """
    if not (decay or average):
        return update

    def updated(
        value: Any, gradient: Any, state: Sequence[Any], settings: tuple[Any, ...]
    ) -> tuple[Any, tuple[Any, ...]]:
        *numbers, last = settings
        share = last if average else None
        shrink = last if not average else numbers.pop() if decay else None
        if decays:
            value = value - value * shrink
        if not average:
            new, changed = returned(update(value, gradient, state, tuple(numbers)), state)
            return new, tuple(changed)
        *own, mean = state
        new, changed = returned(update(value, gradient, own, tuple(numbers)), own)
        return new, (*changed, mean + (new - mean) * share)

    return by_blocks(updated) if getattr(update, "by_blocks", False) else updated


@by_blocks
def add(
    value: Any, gradient: Any, state: Sequence[Any], settings: tuple[Any, ...]
) -> tuple[Any, tuple[Any, ...]]:
    """Add a gradient to a sum: an ``update`` for sums of gradients."""
    return value + gradient, ()


def first_or(step: Any, later: float) -> Any:
    """Return 1 for the first step and ``later`` for others; the step may be traced."""
    if isinstance(step, Tensor):
        return ops["where"](step > 1.0, later, 1.0)
    return later if step > 1 else 1.0

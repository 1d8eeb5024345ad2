"""What every optimizer can do beside its formula: decay, averages, gathered gradients."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ...core.extend import Tensor, Variable, ops
from .clipping import CLIPPING, check_clipping
from .rules import by_blocks

__all__ = [
    "AVERAGES",
    "OPTIONS",
    "SUMS",
    "Excluded",
    "add",
    "check_options",
    "decays",
    "sizes",
    "with_options",
]

if TYPE_CHECKING:
    from .clipping import Clipping

    class MoreOptions(Clipping, total=False):
        """The arguments of all optimizers but for the weight decay."""

        use_ema: bool
        ema_momentum: float
        ema_overwrite_frequency: int | None
        gradient_accumulation_steps: int | None

    class Options(MoreOptions, total=False):
        """The arguments of all optimizers, for the signatures that hand them on."""

        weight_decay: float | None


#: The optimizers' arguments beside those of their formulas. Files have those that are given.
OPTIONS = (
    *CLIPPING,
    "weight_decay",
    "use_ema",
    "ema_momentum",
    "ema_overwrite_frequency",
    "gradient_accumulation_steps",
)
#: The slots that options add, behind those of a formula.
AVERAGES, SUMS = "weight_averages", "gradient_sums"


def check_options(optimizer: str, given: Mapping[str, Any], unset: Any) -> dict[str, Any]:
    """Return those of the options that differ from the class's, by name.

    Parameters
    ----------
    optimizer
        The name of the class.
    given
        All options.
    unset
        The class, whose attributes say what an option is that nobody gave.

    Raises
    ------
    ValueError
        If one is outside of what it can mean.
    TypeError
        If one is no number.
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
        raise ValueError(f"{optimizer}: {alone[0]} is for averages of weights: give use_ema=True")
    return found


def _count(optimizer: str, option: str, value: Any, least: int) -> int:
    number = operator.index(value) if hasattr(value, "__index__") else 0
    if isinstance(value, bool) or number < least:
        raise ValueError(
            f"{optimizer}: {option} must be an integer of at least {least}, or None, got {value!r}"
        )
    return number


def decays(optimizer: Any, **given: float) -> list[float]:
    """Return settings in ``[0, 1)`` as floats; raise if one is another."""
    return _floats(optimizer, given, "be in [0, 1)", lambda value: 0.0 <= value < 1.0)


def sizes(optimizer: Any, **given: float) -> list[float]:
    """Return settings under a root or in a sum as floats; raise if one is negative or NaN."""
    return _floats(optimizer, given, "not be negative", lambda value: value >= 0.0)


def _floats(optimizer: Any, given: dict[str, float], must: str, right: Any) -> list[float]:
    for argument, value in given.items():
        if not right(value):
            raise ValueError(f"{type(optimizer).__name__}: {argument} must {must}, got {value!r}")
    return [float(value) for value in given.values()]


def with_options(
    update: Callable[..., Any], decays: bool, decay: bool, average: bool
) -> Callable[..., Any]:
    """Return an optimizer's ``update`` with what the options add to it.

    Parameters
    ----------
    update
        The formula.
    decays
        Whether these variables decay.
    decay, average
        Whether, behind the formula's settings, there are those of a decay and of averages; the
        average is the last of the state.

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
            new, changed = update(value, gradient, state, tuple(numbers))
            return new, tuple(changed)
        *own, mean = state
        new, changed = update(value, gradient, own, tuple(numbers))
        return new, (*changed, mean + (new - mean) * share)

    return by_blocks(updated) if getattr(update, "by_blocks", False) else updated


@by_blocks
def add(
    value: Any, gradient: Any, state: Sequence[Any], settings: tuple[Any, ...]
) -> tuple[Any, tuple[Any, ...]]:
    """Return a sum of gradients with one more: an ``update`` of such sums."""
    return value + gradient, ()


def first_or(step: Any, later: float) -> Any:
    """Return 1 for the first step and ``later`` for others, of a number or a traced one."""
    if isinstance(step, Tensor):
        return ops["where"](step > 1.0, later, 1.0)
    return later if step > 1 else 1.0


class Excluded:
    """Which variables do not decay.

    Attributes
    ----------
    words : tuple of str
        Those with one of these in their names.
    places : set of int
        Those in these places among what an optimizer trains.
    variables : list of Variable
        Others, which it has not met yet.
    """

    def __init__(self) -> None:
        self.words: tuple[str, ...] = ()
        self.places: set[int] = set()
        self.variables: list[Variable] = []

    def set(self, var_list: Any, var_names: Any) -> None:
        """Take variables and words.

        Raises
        ------
        TypeError
            If they are something else.
        """
        words = () if var_names is None else var_names
        variables = () if var_list is None else var_list
        if isinstance(words, str) or not all(isinstance(word, str) for word in words):
            raise TypeError(
                f"exclude_from_weight_decay: var_names is a list of words, got {var_names!r}"
            )
        if isinstance(variables, Variable):
            raise TypeError("exclude_from_weight_decay: var_list is a list of variables")
        variables = list(variables)
        for variable in variables:
            if not isinstance(variable, Variable):
                raise TypeError(
                    f"exclude_from_weight_decay: var_list holds variables, got {variable!r}"
                )
        self.words, self.variables = tuple(words), variables

    def meet(self, variable: Variable, place: int) -> None:
        """Take note of where a variable is among what is trained."""
        if any(variable is known for known in self.variables):
            self.places.add(place)
            self.variables = [known for known in self.variables if known is not variable]

    def has(self, variable: Variable, place: int) -> bool:
        """Return whether a variable does not decay."""
        return place in self.places or any(word in variable.name for word in self.words)

    def config(self) -> dict[str, Any] | None:
        """Return what a file holds of it: the words and the places; None if there is nothing."""
        if self.variables:
            names = [variable.name for variable in self.variables]
            raise ValueError(
                f"variables {names} were excluded from weight decay, and the optimizer has not "
                "met them; do a step first, or build(variables)"
            )
        if not (self.words or self.places):
            return None
        return {"names": list(self.words), "places": sorted(self.places)}

    def load(self, config: Any) -> None:
        """Set what :meth:`config` returned.

        Raises
        ------
        ValueError
            If it is something else.
        """
        words, places = config["names"], config["places"]
        if not all(type(x) is str for x in words) or not all(type(x) is int for x in places):
            raise ValueError(f"these are not variables excluded from weight decay: {config!r}")
        self.words, self.places = tuple(words), set(places)

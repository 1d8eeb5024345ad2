"""Options of every optimizer besides its formula: decay, averages, gradient accumulation.

With the variables that are excluded from decay, and a warning for attributes that nothing reads.
"""

from __future__ import annotations

import functools
import operator
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from inspect import unwrap
from types import CodeType
from typing import TYPE_CHECKING, Any

import numpy as np

from ...core.extend import Module, Tensor, Variable, numpy_dtype, ops, warn_user
from ..names import nearest
from .gradients import CLIPPING, check_clipping
from .rules import by_blocks, returned
from .slots import Slots

if TYPE_CHECKING:
    from .gradients import Clipping

    class MoreOptions(Clipping, total=False):
        """The arguments of all optimizers except the weight decay."""

        use_ema: bool
        ema_momentum: float
        ema_overwrite_frequency: int | None
        gradient_accumulation_steps: int | None

    class Options(MoreOptions, total=False):
        """The arguments of all optimizers, for signatures that pass them on."""

        weight_decay: float | None


__all__ = [
    "AVERAGES",
    "OPTIONS",
    "SUMS",
    "Decaying",
    "Excluded",
    "above_zero",
    "add",
    "check_options",
    "decays",
    "sizes",
    "warn_of_name",
    "with_options",
]

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


# -- variables that do not decay ------------------------------------------------------------------

#: Names of weights in lists that serve many models; a model need not have all of them.
_USUAL = ("beta", "bias", "gamma")


class Excluded:
    """The variables that do not decay.

    Attributes
    ----------
    words : tuple of str
        Strings; variables whose names or paths contain one do not decay.
    places : set of int
        The places of such variables among those that the optimizer trains.
    variables : list of Variable
        Such variables that the optimizer has not trained yet.
    """

    def __init__(self) -> None:
        self.words: tuple[str, ...] = ()
        self.places: set[int] = set()
        self.variables: list[Variable] = []
        self._models: list[Module] = []
        self._labels: dict[Variable, list[str]] = {}
        self._checked = True

    def set(self, var_list: Any, var_names: Any, model: Module | None) -> None:
        """Set variables and strings.

        Raises
        ------
        TypeError
            If an entry has another type.
        """
        words = () if var_names is None else var_names
        variables = () if var_list is None else var_list
        if isinstance(words, str) or not all(isinstance(word, str) for word in words):
            raise TypeError(
                f"exclude_from_weight_decay: var_names is a list of strings, got {var_names!r}"
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
        self._checked = not self.words
        self._labels, self._models = {}, []
        if model is not None:
            self.name(model)

    def name(self, model: Module) -> None:
        """Note a model, whose layers may create their variables later."""
        if self.words and all(model is not known for known in self._models):
            self._models.append(model)

    def _learn(self) -> None:
        """Learn the names of the layers, and the paths, that lead to the models' variables."""
        self._labels = {}
        waiting: list[tuple[Module, str, str]] = [(model, "", "") for model in self._models]
        seen: set[int] = set()
        for module, path, names in waiting:  # grows in the loop
            if id(module) in seen:
                continue
            seen.add(id(module))
            for step, leaf in module.own_leaves():
                if isinstance(leaf, Module):
                    waiting.append((leaf, f"{path}{step}/", f"{names}{leaf.name}/"))
                else:
                    kind = f"{type(module).__name__}/{leaf.name}"
                    self._labels.setdefault(leaf, []).extend([kind, path + step, names + leaf.name])

    def meet(self, variable: Variable, place: int) -> None:
        """Note the place of a variable among those that are trained."""
        if any(variable is known for known in self.variables):
            self.places.add(place)
            self.variables = [known for known in self.variables if known is not variable]
        if self.words and variable not in self._labels:
            self._learn()  # a layer created it since
        if any(word in label for word in self.words for label in self._labels_of(variable)):
            self.places.add(place)

    def check(self, variables: Iterable[Variable]) -> None:
        """Raise, before the first step, if a string is in no name or path.

        Raises
        ------
        ValueError
            The message lists the names.
        """
        if self._checked:
            return
        self._learn()
        labels = [self._labels_of(x) for x in self._labels or variables]
        for word in self.words:
            known = any(word in label for found in labels for label in found)
            if not known and word not in _USUAL:
                there = ", ".join(dict.fromkeys(found[-1] for found in labels))
                hint = "" if self._models else "; to exclude by layers and paths, also pass model="
                raise ValueError(
                    f"exclude_from_weight_decay: var_names has {word!r}, which is in no name or "
                    f"path of a variable; there are {there}{hint}"
                )
        self._checked = True

    def _labels_of(self, variable: Variable) -> list[str]:
        return self._labels.get(variable) or [variable.name]

    def has(self, variable: Variable, place: int) -> bool:
        """Return whether a variable does not decay."""
        return place in self.places or any(word in variable.name for word in self.words)

    def __getstate__(self) -> dict[str, Any]:
        return {**vars(self), "_labels": {}, "_models": []}  # a copy's variables are others

    def config(self) -> dict[str, Any] | None:
        """Return the strings and the places for a file; None if there are none."""
        if self.variables:
            names = [variable.name for variable in self.variables]
            raise ValueError(
                f"variables {names} are excluded from weight decay, but the optimizer does not "
                "know them yet; do a step first, or call build(variables)"
            )
        if not (self.words or self.places):
            return None
        return {"names": list(self.words), "places": sorted(self.places)}

    def load(self, config: Any) -> None:
        """Restore what :meth:`config` returned.

        Raises
        ------
        ValueError
            If the argument has another form.
        """
        words, places = config["names"], config["places"]
        if not all(type(x) is str for x in words) or not all(type(x) is int for x in places):
            raise ValueError(f"invalid list of variables excluded from weight decay: {config!r}")
        self.words, self.places = tuple(words), set(places)


class Decaying(Slots):
    """Base class of optimizers: variables may be excluded from weight decay."""

    weight_decay: float | None
    _gradtape_excluded: Excluded

    def met(self, variable: Variable, place: int) -> None:
        """Note a variable that just got a place."""
        self._gradtape_excluded.meet(variable, place)

    def _decays_at(self, variable: Variable, place: int) -> bool:
        """Return whether the variable at a place decays."""
        return self.weight_decay is not None and not self._gradtape_excluded.has(variable, place)

    def exclude_from_weight_decay(
        self,
        var_list: Iterable[Variable] | None = None,
        var_names: Iterable[str] | None = None,
        *,
        model: Module | None = None,
    ) -> None:
        """Set which variables do not decay; a second call replaces the first.

        Parameters
        ----------
        var_list
            Variables.
        var_names
            Strings. Variables do not decay if one of them is in their names, in the names or the
            class of the layers that hold them (``"layer_norm/gamma"``, ``"LayerNorm"``), or in
            their paths (``"layers/1/gamma"``).
        model
            The model, for names of layers and paths in a training loop of your own. ``fit`` knows
            its model.

        Raises
        ------
        ValueError
            If the optimizer has done steps: their traces contain the earlier choice. At the first
            step, if a string is in no name or path, except for ``"bias"``, ``"gamma"`` and
            ``"beta"``.
        TypeError
            If an entry is not a variable, or not a string.

        Examples
        --------
        >>> w, bias = gt.Variable(1.0, name="w"), gt.Variable(1.0, name="bias")
        >>> optimizer = gt.training.SGD(0.5, weight_decay=0.5)
        >>> optimizer.exclude_from_weight_decay(var_names=["bias"])
        >>> optimizer.apply_gradients([(gt.constant(0.0), w), (gt.constant(0.0), bias)])
        >>> w.item(), bias.item()
        (0.75, 1.0)
        """
        if self.trained or self.unclaimed:
            raise ValueError(
                "exclude_from_weight_decay: call it before the first step; this optimizer already "
                "trains variables"
            )
        self._gradtape_excluded.set(var_list, var_names, model)

    def name_variables(self, model: Module) -> None:
        """Learn the names and paths of a model's variables, before the first step.

        Parameters
        ----------
        model
            The model.
        """
        self._gradtape_excluded.name(model)

    def build(self, variables: Iterable[Variable]) -> list[int]:
        """Create the slots of new variables; return each variable's place in the lists.

        Raises
        ------
        ValueError
            If a variable appears twice, or :meth:`exclude_from_weight_decay` named none.
        """
        variables = list(variables)
        self._gradtape_excluded.check(variables)
        return super().build(variables)


# -- attributes that nothing reads, such as lr ----------------------------------------------------

#: Other libraries' names, and what they are here.
_ELSEWHERE = {
    "alpha": "learning_rate",
    "betas": "beta_1 and beta_2",
    "decay": "weight_decay",
    "eps": "epsilon",
    "eta": "learning_rate",
    "lr": "learning_rate",
    "param_groups": "learning_rate",
    "wd": "weight_decay",
}


def warn_of_name(optimizer: Any, name: str) -> None:
    """Warn if a new attribute resembles a setting, and is set from outside the optimizer.

    Parameters
    ----------
    optimizer
        The optimizer. What its own methods set is never meant otherwise.
    name
        The name of the attribute.
    """
    if name.startswith("_") or _is_own(optimizer):
        return
    held = [x for x in vars(optimizer) if not x.startswith("_") and x not in optimizer.slots]
    known = [*dict.fromkeys([*held, *OPTIONS])]
    meant = _ELSEWHERE.get(name) or nearest(name, known)
    if meant is None and name not in _arguments_of_all(type(optimizer)):
        return
    if any(name in (*code.co_names, *code.co_consts) for code in _code_of(type(optimizer))):
        return  # the formula reads it
    hint = "" if meant is None else f" Did you mean {meant}?"
    warn_user(
        f"{type(optimizer).__name__} has no attribute {name!r}, so setting it has no effect on the "
        f"steps.{hint} It has {', '.join(known)}",
        UserWarning,
    )


def _root(kind: Any) -> Any:
    """Return the base class of all optimizers."""
    return next(x for x in reversed(kind.__mro__) if "_arguments" in vars(x))


def _code_of(kind: Any) -> Iterator[CodeType]:
    """Yield the code of the methods that a class adds to the base class."""
    added = kind.__mro__[: kind.__mro__.index(_root(kind))]
    for method in [x for found in added for x in vars(found).values()]:
        function = getattr(method, "fget", None) or getattr(method, "__func__", method)
        waiting = [getattr(unwrap(function), "__code__", None)]
        for code in waiting:  # grows in the loop
            if isinstance(code, CodeType):
                waiting += [x for x in code.co_consts if isinstance(x, CodeType)]
                yield code


def _arguments_of_all(kind: Any) -> set[str]:
    """Return the settings of all classes of optimizers."""
    waiting = [_root(kind)]
    for found in waiting:  # grows in the loop
        waiting += found.__subclasses__()
    return {name for found in waiting for name in vars(found).get("_arguments", ())}


def _is_own(optimizer: Any) -> bool:
    """Return whether the attribute is set by a method of the optimizer."""
    frame = sys._getframe(2)
    while frame.f_back is not None and frame.f_code.co_name == "__setattr__":
        frame = frame.f_back
    names = frame.f_code.co_varnames[: frame.f_code.co_argcount]
    return bool(names) and frame.f_locals.get(names[0]) is optimizer

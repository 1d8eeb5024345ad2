"""The numbers that a step multiplies with: its learning rate, and the decay of each variable."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

import numpy as np

from ...core.extend import Module, Variable, registry
from ...layers import Layer, find, is_reference
from .slots import Slots

__all__ = ["Decaying", "Excluded", "as_rate", "checked_rate"]


# -- the learning rate ----------------------------------------------------------------------------


def as_rate(optimizer: str, value: Any, known: Any) -> Any:
    """Return a learning rate as optimizers keep it: a variable, or a schedule.

    Parameters
    ----------
    optimizer
        The name of the class.
    value
        A number, a variable or a schedule; a schedule may be given as files name it.
    known
        The learning rate so far. If it is a variable, a number is assigned to it.

    Raises
    ------
    TypeError
        If the value is none of these.
    ValueError
        If a number is negative or not finite.
    """
    if is_reference("schedule", value):
        value = find("schedule", value)
    if isinstance(value, (list, tuple, dict, Layer)):
        raise TypeError(
            f"{optimizer}: learning_rate is a number, a variable or a schedule, got a "
            f"{type(value).__name__}; variables are given to each step: "
            "apply_gradients(zip(gradients, variables))"
        )
    if isinstance(value, type):
        raise TypeError(
            f"{optimizer}: learning_rate is the class {value.__name__}; pass an object: "
            f"{value.__name__}(...)"
        )
    if callable(value) or isinstance(value, Variable):
        return value
    if isinstance(value, (str, bytes)) or np.ndim(value) or np.iscomplexobj(value):
        raise TypeError(
            f"{optimizer}: learning_rate is a number, a variable or a schedule, got {value!r}"
            f"{registry().lacking(value)}"
        )
    if value is None or not 0.0 <= float(value) < math.inf:
        wrong = "be finite" if value == math.inf else "not be negative"
        raise ValueError(f"{optimizer}: learning_rate must {wrong}, got {value!r}")
    if isinstance(known, Variable):
        return known.assign(np.float64(value))
    return Variable(value, trainable=False, name="learning_rate", dtype="float64")


def checked_rate(optimizer: str, number: float, step: int) -> float:
    """Return the learning rate of a step, counted from 0; raise if it is not usable."""
    if not 0.0 <= number < math.inf:
        raise ValueError(
            f"{optimizer}: the learning rate of step {step + 1} is {number}; it must be finite and "
            "not negative"
        )
    return number


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

    def observe(self, variable: Variable, place: int) -> None:
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
        words, places = config.get("names"), config.get("places")
        lists = all(isinstance(x, (list, tuple)) for x in (words, places))
        if not (
            lists and all(type(x) is str for x in words) and all(type(x) is int for x in places)
        ):
            raise ValueError(
                f"invalid list of variables excluded from weight decay: {config!r:.200}"
            )
        self.words, self.places = tuple(words), set(places)


class Decaying(Slots):
    """Base class of optimizers: variables may be excluded from weight decay."""

    _gradtape_internal = "name_variables"

    weight_decay: float | None
    _gradtape_excluded: Excluded

    def met(self, variable: Variable, place: int) -> None:
        """Note a variable that just got a place."""
        self._gradtape_excluded.observe(variable, place)

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

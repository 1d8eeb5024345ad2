"""``Excluded``: the variables that do not decay."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ...core.extend import Module, Variable

__all__ = ["Excluded"]


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
        self._labels = {}
        if model is not None:
            self.name(model)

    def name(self, model: Module) -> None:
        """Learn the names of the layers, and the paths, that lead to a model's variables."""
        if self._checked or self._labels:
            return
        waiting: list[tuple[Module, str, str]] = [(model, "", "")]
        seen: set[int] = set()
        for module, path, names in waiting:  # grows in the loop
            if id(module) in seen:
                continue
            seen.add(id(module))
            for step, leaf in module.own_leaves():
                if isinstance(leaf, Module):
                    waiting.append((leaf, f"{path}{step}/", f"{names}{leaf.name}/"))
                else:
                    self._labels.setdefault(leaf, []).extend([path + step, names + leaf.name])

    def meet(self, variable: Variable, place: int) -> None:
        """Note the place of a variable among those that are trained."""
        if any(variable is known for known in self.variables):
            self.places.add(place)
            self.variables = [known for known in self.variables if known is not variable]
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
        labels = [self._labels_of(x) for x in self._labels or variables]
        for word in self.words:
            if not any(word in label for found in labels for label in found):
                there = ", ".join(dict.fromkeys(found[-1] for found in labels))
                hint = "" if self._labels else "; to exclude by layers and paths, also pass model="
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
        return {**vars(self), "_labels": {}}  # a copy's variables are others

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

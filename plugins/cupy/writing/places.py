"""Places: where kernels find values, also those of views, which they read through."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from ....core.extend import Symbol
from ...planned import PlanStep, StepKind, shape_of

#: The memory of a value: its array, its first element, and its stride along each axis.
Place = tuple[Symbol, int, tuple[int, ...]]


class Places:
    """Finds the memory of values, also of views, which kernels read through.

    Parameters
    ----------
    made
        The steps that make values.
    maps
        By view, a function that makes the same view of a NumPy array, if the step's own does not.
    wanted
        The views that must be arrays; those that turn out to be copies are added.
    """

    def __init__(
        self,
        made: Mapping[Symbol, PlanStep],
        maps: Mapping[Symbol, Callable[[Any], Any]],
        wanted: set[Symbol],
    ) -> None:
        self._made, self._maps, self._wanted = made, maps, wanted
        self._models: dict[Symbol, tuple[Symbol, Any, int]] = {}

    def of(self, x: Symbol) -> Place:
        """Return a value's place for kernels: its C contiguous array, offset and strides."""
        home, model, origin = self._model(x)
        place = model.__array_interface__["data"][0] - origin
        return home, place, model.strides

    def _model(self, x: Symbol) -> tuple[Symbol, Any, int]:
        """Return an array of bytes with the offset and strides of a value in its array."""
        views, y = list[Symbol](), x  # from one view of a view to the next, however many there are
        while y not in self._models:
            step = self._made.get(y)
            if step is None or step.kind is not StepKind.VIEW:
                self._models[y] = _own_model(y)
                break
            views.append(y)
            (y,) = step.inputs
        for y in reversed(views):
            step = self._made[y]
            home, model, origin = self._models[step.inputs[0]]
            view = self._maps.get(y, step.run)(model)
            if np.may_share_memory(view, model):
                self._models[y] = home, view, origin
                continue
            self._models[y] = _own_model(y)  # it must be an array, and so must its source
            while y in self._made and self._made[y].kind is StepKind.VIEW:
                self._wanted.add(y)
                (y,) = self._made[y].inputs
        return self._models[x]


def _own_model(x: Symbol) -> tuple[Symbol, Any, int]:
    """Return the model of a value that is an array itself."""
    model = np.empty(shape_of(x), np.int8)
    return x, model, model.__array_interface__["data"][0]

"""``Composed``: what models made of layers have in common."""

from __future__ import annotations

from typing import Any

from .weights import CarriesStates


class Composed(CarriesStates):
    """A mixin for models with a list ``layers``."""

    def get_layer(self, name: str | None = None, index: int | None = None) -> Any:
        """Return a layer by its name, or by its index in :attr:`layers`.

        Parameters
        ----------
        name
            The layer's name.
        index
            Its index.

        Raises
        ------
        ValueError
            If there is no such layer, several have the name, or neither argument is given.

        Examples
        --------
        >>> model = gt.layers.Sequential([gt.layers.Dense(4, name="hidden"), gt.layers.Dense(2)])
        >>> model.get_layer("hidden").units
        4
        """
        model: Any = self
        if index is not None:
            if not -len(model.layers) <= index < len(model.layers):
                raise ValueError(
                    f"model {model.name!r} has {len(model.layers)} layers, but no index {index}"
                )
            return model.layers[index]
        found = [layer for layer in model.layers if layer.name == name]
        if len(found) == 1:
            return found[0]
        names = ", ".join(layer.name for layer in model.layers)
        many = "several layers" if found else "no layer"
        raise ValueError(f"model {model.name!r} has {many} of name {name!r}; it has: {names}")

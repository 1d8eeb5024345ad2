"""``Sequential``: layers one after another."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Iterable
from typing import Any, ClassVar

from ..core.extend import Module
from .layer import Elsewhere, Layer
from .simple import Activation

__all__ = ["Sequential"]


def takes_training(module: Module) -> bool:
    """Return whether calls of a module take ``training=``."""
    own = vars(module).get("__call__")  # a restored module has its calls as an attribute
    kind: Any = type(module)
    return _class_takes_training(kind) if own is None else _names_training(own)


@functools.cache
def _class_takes_training(kind: Any) -> bool:
    return _names_training(kind.__call__)


def _names_training(call: Any) -> bool:
    try:
        return "training" in inspect.signature(call).parameters
    except (TypeError, ValueError):  # not written in Python
        return False


class Sequential(Layer, saved_as="layers.Sequential"):
    """Apply layers one after another.

    Parameters
    ----------
    layers
        Layers, other modules, or functions of one tensor (which become :class:`Activation` layers).
    name
        A Python identifier.

    Attributes
    ----------
    layers : list
        The layers; change it as any list.

    Raises
    ------
    TypeError
        If something in ``layers`` cannot be called.

    Examples
    --------
    >>> model = gt.layers.Sequential([gt.layers.Dense(8, activation="relu"), gt.layers.Dense(2)])
    >>> model(gt.ones((5, 3))).shape
    (5, 2)
    """

    # the layers of PyTorch's have no name but their number
    names_elsewhere: ClassVar[Elsewhere] = {"pytorch": {"layers": ("", None)}}

    takes_policy = False
    layers: list[Any]

    def __init__(self, layers: Iterable[Any] = (), name: str | None = None) -> None:
        super().__init__(name)
        self.layers = []
        for layer in layers:
            self.add(layer)

    def add(self, layer: Any) -> None:
        """Append a layer, a module, or a function of one tensor."""
        if not callable(layer):
            raise TypeError(
                f"Sequential {self.name!r}: expected layers or functions, got {layer!r}"
            )
        layer = layer if isinstance(layer, Module) else Activation(layer)
        self.layers.append(layer)
        if not self.trainable:
            layer.trainable = False

    @property
    def built(self) -> bool:
        """Whether every layer is built."""
        return all(getattr(layer, "built", True) for layer in self.layers)

    @property
    def weight_names(self) -> tuple[str, ...]:
        """None of its own."""
        return ()

    def build(self, input_shape: Any) -> None:
        """Do nothing: each layer is built when its input reaches it."""

    def call(self, x: Any, training: bool = False) -> Any:
        """Apply the layers in order; ``training`` goes to those that take it."""
        for layer in self.layers:
            x = layer(x, training=training) if takes_training(layer) else layer(x)
        return x

    def get_config(self) -> dict[str, Any]:
        """Return the constructor's arguments, the layers left out."""
        return {"name": self.name}

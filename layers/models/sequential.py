"""``Sequential``: layers one after another."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable
from typing import Any, ClassVar

from ...core.errors import TraceError
from ...core.extend import Module, Tensor
from ..base.layer import Elsewhere, Layer, takes_training
from ..base.symbolic import Placeholder, is_placeholder
from ..basic.simple import Activation
from .masks import hand_mask, keep_mask, mask_after, mask_of, may_mask

__all__ = ["Sequential"]


class Sequential(Layer, saved_as="layers.Sequential"):
    """Apply layers one after another.

    Parameters
    ----------
    layers
        Layers, other modules, or functions of one tensor (which become :class:`Activation` layers).
        If the first is a :func:`gradtape.Input`, the model is built at once.
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
    ValueError
        If an ``Input`` comes after a layer.

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
    #: What it will be given, if an ``Input`` tells.
    _gradtape_spec: Any = None

    def __init__(self, layers: Iterable[Any] = (), name: str | None = None) -> None:
        super().__init__(name)
        self.layers = []
        for layer in layers:
            self._append(layer)
        self._build_early()

    def add(self, layer: Any) -> None:
        """Append a layer, a module, or a function of one tensor; or begin with an ``Input``."""
        self._append(layer)
        self._build_early()

    def pop(self) -> Any:
        """Remove the last layer, and return it."""
        return self.layers.pop()

    def _append(self, layer: Any) -> None:
        if is_placeholder(layer):
            if self.layers:
                raise ValueError(f"Sequential {self.name!r}: an Input comes before the layers")
            self._gradtape_spec = layer.array.spec
            return
        if not callable(layer):
            raise TypeError(
                f"Sequential {self.name!r}: expected layers or functions, got {layer!r}"
            )
        layer = layer if isinstance(layer, Module) else Activation(layer)
        self.layers.append(layer)
        if not self.trainable:
            layer.trainable = False

    def _build_early(self) -> None:
        """Build it by a call without values, if an ``Input`` told what it will be given."""
        spec = self._gradtape_spec
        if spec is not None and self.layers:
            # a layer that needs values is built at the first call
            with contextlib.suppress(TraceError):
                self(Tensor(Placeholder(spec.shape, spec.dtype, None)))

    @property
    def built(self) -> bool:
        """Whether every layer is built."""
        return all(getattr(layer, "built", True) for layer in self.layers)

    @property
    def weight_names(self) -> tuple[str, ...] | None:
        """None of its own."""
        return ()

    @property
    def hands_masks(self) -> bool:
        """Whether masks go through it, and come out with what it gives."""
        return True

    def build(self, input_shape: Any) -> None:
        """Do nothing: each layer is built when its input reaches it."""

    def call(self, x: Any, training: bool = False) -> Any:
        """Apply the layers in order; ``training`` and masks go to those that take them."""
        mask = mask_of(x)
        for layer in self.layers:
            told = {"training": training} if takes_training(layer) else {}
            y = layer(x, **told, **hand_mask(layer, x, mask))
            if mask is not None or may_mask(layer):
                mask = mask_after(layer, x, mask, y)
            x = y
        keep_mask(x, mask)
        return x

    def get_config(self) -> dict[str, Any]:
        """Return the constructor's arguments, the layers left out."""
        return {"name": self.name}

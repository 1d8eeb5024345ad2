"""``Sequential``: layers one after another."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable
from typing import Any, ClassVar

from ..core.errors import TraceError
from ..core.extend import Module, Tensor, keep_mask, mask_of, overridable
from .base.calls import takes_training
from .base.composed import Composed
from .base.layer import Elsewhere, Layer
from .base.masks import call_with_mask, in_rank, mask_by_call
from .base.symbolic import Placeholder, is_placeholder, note_container
from .base.weights import check_part
from .basic.simple import Activation

__all__ = ["Sequential"]


class Sequential(Composed, Layer, saved_as="layers.Sequential"):
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
        The layers; you can change it like any list.
    inputs, outputs : Tensor
        Placeholders of the input and the output, for models of parts of this one:
        ``gt.Model(model.inputs, model.layers[1].output)``. They exist if the first layer is an
        ``Input``, or once the model has been called. ``input`` and ``output`` are the same.
    input_shape, output_shape : tuple
        Their shapes.

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

    #: :meth:`compute_mask` passes masks on and makes none.
    makes_mask: ClassVar[bool] = False

    # in PyTorch, the layers have numbers for names
    names_elsewhere: ClassVar[Elsewhere] = {"pytorch": {"layers": ("", None)}}

    takes_policy = False
    layers: list[Any]
    #: The spec of the input, from an ``Input``.
    _gradtape_spec: Any = None

    def __init__(self, layers: Iterable[Any] = (), name: str | None = None) -> None:
        if callable(layers) or callable(name):
            raise TypeError("Sequential takes its layers in a list: Sequential([first, second])")
        super().__init__(name)
        self.layers = []
        for layer in layers:
            self._append(layer)
        self._build_early()

    def add(self, layer: Any) -> None:
        """Append a layer, a module or a function of one tensor; or an ``Input`` as the first."""
        self._append(layer)
        self._build_early()

    def pop(self) -> Any:
        """Remove and return the last layer."""
        return self.layers.pop()

    def _append(self, layer: Any) -> None:
        if is_placeholder(layer):
            if self.layers:
                raise ValueError(f"Sequential {self.name!r}: an Input comes before the layers")
            self._gradtape_spec = layer.array.spec
            return
        if isinstance(layer, type) and issubclass(layer, Module):
            raise TypeError(
                f"Sequential {self.name!r}: got the class {layer.__name__}; pass an object: "
                f"{layer.__name__}(...)"
            )
        if not callable(layer):
            raise TypeError(
                f"Sequential {self.name!r}: expected layers or functions, got {layer!r}"
            )
        layer = layer if isinstance(layer, Module) else Activation(layer)
        self.layers.append(layer)
        note_container(layer, self)
        if not self.trainable:
            layer.trainable = False

    def _build_early(self) -> None:
        """Build the layers with a call on a placeholder, if there is an ``Input``."""
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
        """Empty: the model has no weights of its own."""
        return ()

    @property
    def hands_masks(self) -> bool:
        """Whether it passes masks along: true."""
        return True

    def check_restored(self) -> list[Any]:
        """Return the layers; raise if a file set anything else."""
        if not isinstance(self.layers, list):
            raise TypeError(f"'layers' is not a list: {self.layers!r}"[:200])
        return [check_part("layers", layer) for layer in self.layers]

    def build(self, input_shape: Any) -> None:
        """Do nothing: each layer is built when its input reaches it."""

    def compute_mask(self, x: Any, mask: Any = None) -> Any:
        """Call the model, and return the mask of the result; a list for several tensors."""
        return mask_by_call(self, x, mask)

    def call(self, x: Any, training: bool = False, mask: Any = None) -> Any:
        """Apply the layers in order; ``training`` and masks go to those that take them."""
        mask = mask_of(x) if mask is None else mask
        spec = self._gradtape_spec
        if spec is not None and spec.shape is not None and type(x) is Tensor:
            x = in_rank(x, spec.shape)
        for layer in self.layers:
            told = {"training": training} if takes_training(layer) else {}
            x, masks = call_with_mask(layer, layer, (x,), told, mask)
            mask = masks[0] if masks else None
        keep_mask(x, mask)
        return x

    @overridable
    def input(self) -> Tensor:
        """The placeholder of the input."""
        row = vars(self).setdefault("_gradtape_row", _Row())
        if not row.outputs:
            spec = self._gradtape_spec
            if spec is None and (calls := self.call_signatures()):
                spec = calls[0][0][0]
            if spec is None:
                raise AttributeError(
                    f"Sequential {self.name!r} has no 'inputs': begin it with gt.Input(shape), or "
                    "call it first"
                )
            row.outputs = [Tensor(Placeholder((None, *spec.shape[1:]), spec.dtype, None))]
            for layer in self.layers:  # needed for a copied model
                note_container(layer, self)
        return row.outputs[0]

    @overridable
    def output(self) -> Tensor:
        """The placeholder of the output; each layer is called on the output of the one before."""
        x, row = self.input, vars(self)["_gradtape_row"]
        for i, layer in enumerate(self.layers):
            if row.layers[i : i + 1] != [layer]:
                del row.layers[i:], row.outputs[i + 1 :]
                row.outputs.append(layer(x))
                row.layers.append(layer)
            x = row.outputs[i + 1]
        return x

    inputs, outputs = input, output

    @overridable
    def input_shape(self) -> tuple[int | None, ...]:
        """The shape of the input, with ``None`` for unknown sizes."""
        return self.input.shape

    @overridable
    def output_shape(self) -> tuple[int | None, ...]:
        """The shape of the output, with ``None`` for unknown sizes."""
        return self.output.shape

    def get_config(self) -> dict[str, Any]:
        """Return the constructor's arguments without the layers."""
        return {"name": self.name}


class _Row:
    """The layers of a model, and placeholders of the input and each output; empty in copies."""

    def __init__(self) -> None:
        self.layers: list[Any] = []
        self.outputs: list[Tensor] = []

    def __reduce__(self) -> Any:
        return _Row, ()

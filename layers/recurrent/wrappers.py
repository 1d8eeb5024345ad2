"""Layers that wrap another: at each step, and in both directions."""

from __future__ import annotations

import inspect
from typing import Any, ClassVar, Unpack

from ...core.extend import Module, as_tensor, map_structure, ops
from ..base.calls import takes_training, training_for
from ..base.configured import Configured
from ..base.layer import Elsewhere, Layer
from ..base.masks import along_steps, masking_rows, takes_mask
from ..base.symbolic import returned
from ..base.weights import Rules, check_part, rows_per_example
from ..basic.simple import Activation
from .rnn import StackedRNNCells

__all__ = ["Bidirectional", "TimeDistributed"]

_MERGES = ("concat", "sum", "mul", "ave")
#: What a layer has that runs over steps. Files hold it for a user's class too.
_RECURRENT = ("go_backwards", "return_sequences", "return_state")


class TimeDistributed(Configured, saved_as="layers.TimeDistributed"):
    """Apply a layer to each step of ``(batch, steps, ...)``.

    Parameters
    ----------
    layer
        The layer, or a function of one tensor.

    Raises
    ------
    TypeError
        If ``layer`` is not a layer.
    ValueError
        At the call, if the input has fewer than three axes.

    Examples
    --------
    >>> gt.layers.TimeDistributed(gt.layers.Flatten())(gt.ones((2, 5, 3, 4))).shape
    (2, 5, 12)
    """

    takes_integers = True

    #: :meth:`compute_mask` passes masks on and makes none.
    makes_mask: ClassVar[bool] = False

    # in PyTorch, layers such as Linear take steps as they are
    names_elsewhere: ClassVar[Elsewhere] = {"pytorch": {"layer": ("", None)}}
    takes_policy = False
    layer: Any

    def __init__(self, layer: Any = None, name: str | None = None, **rules: Unpack[Rules]) -> None:
        super().__init__(name, **rules)
        if layer is not None:  # a file brings it
            if not callable(layer) or isinstance(layer, type):
                raise TypeError(f"TimeDistributed: expected a layer, got {layer!r}")
            self.layer = layer if isinstance(layer, Module) else Activation(layer)

    def get_config(self) -> dict[str, Any]:
        """Return the constructor's arguments, without the layer."""
        return {"name": self.name, **self.rules_given()}

    @property
    def built(self) -> bool:
        """Whether the layer is built."""
        return bool(getattr(self.layer, "built", True))

    @property
    def weight_names(self) -> tuple[str, ...]:
        """None of its own."""
        return ()

    def check_restored(self) -> list[Any]:
        """Raise if what a file set is not a layer; return it."""
        return [check_part("layer", vars(self).get("layer"))]

    def build(self, input_shape: Any) -> None:
        """Build the layer for one step."""
        self._check(input_shape)
        self.build_part(self.layer, (input_shape[0], *input_shape[2:]))

    def _check(self, shape: Any) -> None:
        if shape is None or len(shape) < 3:
            raise ValueError(
                f"layer {self.name!r} (TimeDistributed): expected inputs of shape "
                f"(batch, steps, ...), got {shape}"
            )

    def compute_mask(self, x: Any, mask: Any = None) -> Any:
        """Return where a step is not padding; it is padding if one of its parts is."""
        if mask is None or mask.ndim < 3:
            return mask
        return ops["any"](mask, axis=tuple(range(2, mask.ndim)))

    def call(self, x: Any, training: bool = False, mask: Any = None) -> Any:
        """Apply the layer to all steps at once, each with its part of ``mask``.

        If that has shape ``(batch, steps)``, all parts of a step are padding, or none is.
        """
        shape = x.array.shape
        self._check(shape)
        flat = ops["reshape"](x, shape=(shape[0] * shape[1], *shape[2:]))
        told = {"training": training} if takes_training(self.layer) else {}
        rows = None
        if mask is not None and takes_mask(self.layer):
            mask = as_tensor(mask)
            parts = ops["reshape"](mask, shape=(shape[0] * shape[1], *shape[2 : mask.ndim]))
            if mask.ndim == 2 and getattr(self.layer, "hands_masks", False):
                rows = parts
            else:
                told["mask"] = along_steps(parts, flat.shape) if mask.ndim == 2 else parts
        with rows_per_example(shape[1]), masking_rows(rows):
            result = returned(self.layer, self.layer(flat, **told))
        return map_structure(lambda y: ops["reshape"](y, shape=(*shape[:2], *y.shape[1:])), result)


def _another(cell: Any) -> Any:
    """Return a cell like this one, with separate weights."""
    if isinstance(cell, StackedRNNCells):
        return StackedRNNCells([_another(part) for part in cell.cells])
    return type(cell).from_config(cell.get_config())


class Bidirectional(Configured, saved_as="layers.Bidirectional"):
    """A recurrent layer over the steps, and another one from the end.

    Parameters
    ----------
    layer
        The recurrent layer.
    merge_mode
        How the outputs are joined: ``"concat"``, the default, ``"sum"``, ``"mul"``, ``"ave"`` for
        their mean, or ``None`` to return both.
    weights
        Not supported; load weights with :func:`gradtape.load_weights`.
    backward_layer
        The layer that runs from the end; by default a copy of the first.

    Attributes
    ----------
    forward_layer, backward_layer : Layer
        The layers.

    Raises
    ------
    TypeError
        If ``layer`` is not recurrent, or ``weights`` are given.
    ValueError
        If ``merge_mode`` is unknown, or both layers run in the same direction.

    References
    ----------
    M. Schuster and K. K. Paliwal, "Bidirectional Recurrent Neural Networks", IEEE Transactions on
    Signal Processing 45, 1997.

    Examples
    --------
    >>> gt.layers.Bidirectional(gt.layers.GRU(4))(gt.ones((2, 5, 3))).shape
    (2, 8)
    """

    takes_integers = True

    #: :meth:`compute_mask` passes masks on and makes none.
    makes_mask: ClassVar[bool] = False

    takes_policy = False
    forward_layer: Any
    backward_layer: Any

    def __init__(
        self,
        layer: Any = None,
        merge_mode: str | None = "concat",
        weights: Any = None,
        backward_layer: Any = None,
        name: str | None = None,
        **rules: Unpack[Rules],
    ) -> None:
        super().__init__(name, **rules)
        if weights is not None:
            raise TypeError("Bidirectional: weights= is not supported; use gt.load_weights")
        if merge_mode is not None and merge_mode not in _MERGES:
            raise ValueError(
                f"Bidirectional: merge_mode must be one of {', '.join(_MERGES)} or None, "
                f"got {merge_mode!r}"
            )
        self.merge_mode = merge_mode
        if layer is None:  # a file brings both
            return
        if not isinstance(layer, Layer) or not hasattr(layer, "go_backwards"):
            raise TypeError(f"Bidirectional: expected a recurrent layer, got {layer!r}")
        if backward_layer is None:
            config = {**layer.get_config(), "go_backwards": not layer.go_backwards}
            config["name"] = f"{layer.name}_backward"
            if "cell" in inspect.signature(type(layer)).parameters and "cell" not in config:
                config["cell"] = _another(vars(layer)["cell"])
            backward_layer = type(layer).from_config(config)
            if not layer.trainable:
                backward_layer.trainable = False
        if backward_layer.go_backwards == layer.go_backwards:
            raise ValueError("Bidirectional: one of the layers needs go_backwards=True")
        self.forward_layer, self.backward_layer = layer, backward_layer

    def get_config(self) -> dict[str, Any]:
        """Return the constructor's arguments, without the layers."""
        return {"merge_mode": self.merge_mode, "name": self.name, **self.rules_given()}

    @property
    def names_elsewhere(self) -> Elsewhere:  # type: ignore[override]
        """In PyTorch, both directions are in one layer, whose names tell them apart."""
        parts = ("forward_layer", "backward_layer")
        cells = [getattr(getattr(self, x), "cell", None) for x in parts]
        if any(isinstance(cell, StackedRNNCells) for cell in cells):
            return {}  # there, each layer of a stack takes both directions
        back = [getattr(self, x).go_backwards for x in parts]
        forms = {x: ("{}_reverse" if y else "{}", None) for x, y in zip(parts, back)}
        return {"pytorch": forms}

    @property
    def built(self) -> bool:
        """Whether both layers are built."""
        return all(getattr(x, "built", True) for x in (self.forward_layer, self.backward_layer))

    @property
    def weight_names(self) -> tuple[str, ...]:
        """None of its own."""
        return ()

    def check_restored(self) -> list[Any]:
        """Raise if what a file set are not recurrent layers, one from the end; return them."""
        names = ("forward_layer", "backward_layer")
        forward, backward = (check_part(name, vars(self).get(name), *_RECURRENT) for name in names)
        if forward.go_backwards == backward.go_backwards:
            raise ValueError("one of the layers needs go_backwards=True")
        return [forward, backward]

    def build(self, input_shape: Any) -> None:
        """Build both layers."""
        self.build_part(self.forward_layer, input_shape)
        self.build_part(self.backward_layer, input_shape)

    def compute_mask(self, x: Any, mask: Any = None) -> Any:
        """Return the mask of the inputs, if there is a result for each step."""
        after = getattr(self.forward_layer, "compute_mask", None)  # files have none that gives none
        return None if after is None else after(x, mask)

    def reset_states(self) -> None:
        """Set the states of stateful layers to zero."""
        self.forward_layer.reset_states()
        self.backward_layer.reset_states()

    def call(
        self, x: Any, initial_state: Any = None, mask: Any = None, training: bool = False
    ) -> Any:
        """Run both layers over the steps of ``x``; where ``mask`` is false, sequences are 0."""
        start: tuple[Any, Any] = (None, None)
        if initial_state is not None:
            half = len(initial_state) // 2
            start = (list(initial_state[:half]), list(initial_state[half:]))
        pairs = zip((self.forward_layer, self.backward_layer), start, strict=True)
        one, two = (
            layer(x, initial_state=states, mask=mask, **training_for(layer, training))
            for layer, states in pairs
        )
        states: tuple[Any, ...] = ()
        if self.forward_layer.return_state:
            one, two, states = one[0], two[0], (*one[1:], *two[1:])
        if self.forward_layer.return_sequences:
            two = ops["flip"](two, axis=1)
            if mask is not None:  # padding is zero in both directions, as in Keras
                seen = as_tensor(mask).astype("bool")
                if self.forward_layer.go_backwards:
                    seen = ops["flip"](seen, axis=1)
                seen = ops["expand_dims"](seen, axis=-1)
                one, two = (ops["where"](seen, y, 0.0) for y in (one, two))
        merged = self._merged(one, two)
        return (
            (*(merged if isinstance(merged, tuple) else (merged,)), *states) if states else merged
        )

    def _merged(self, one: Any, two: Any) -> Any:
        if self.merge_mode is None:
            return one, two
        if self.merge_mode == "concat":
            return ops["concatenate"](one, two, axis=-1)
        if self.merge_mode == "mul":
            return one * two
        return (one + two) * (0.5 if self.merge_mode == "ave" else 1.0)

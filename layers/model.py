"""``Model``: layers as a graph from inputs to outputs. ``Input`` is where the graph begins."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from ..core.extend import (
    Tensor,
    as_tensor,
    default_dtype,
    flatten,
    keep_mask,
    map_structure,
    mask_of,
    numpy_dtype,
    sizes_differ,
)
from .base.calls import takes_training
from .base.composed import Composed
from .base.layer import Layer
from .base.masks import call_with_mask, in_rank, mask_by_call
from .base.symbolic import (
    Placeholder,
    SymbolicCall,
    bare,
    is_placeholder,
    placeholders_in,
    replaced,
    wrapped,
)

__all__ = ["Input", "Model"]


def Input(
    shape: Sequence[int | None] | None = None,
    batch_size: int | None = None,
    dtype: Any = None,
    name: str | None = None,
    batch_shape: Sequence[int | None] | None = None,
) -> Tensor:
    """Return a placeholder for an input of a :class:`Model`.

    Parameters
    ----------
    shape
        The shape of an example; ``None`` for sizes that may vary.
    batch_size
        The number of examples in a batch, if it is always the same.
    dtype
        The dtype, ``float32`` by default.
    name
        A name. A model that is called with a dictionary finds the input by this name.
    batch_shape
        The whole shape, instead of ``shape`` and ``batch_size``.

    Returns
    -------
    Tensor
        A tensor with a shape and a dtype but no value. Layers and ops that get it return other
        placeholders.

    Raises
    ------
    ValueError
        If neither ``shape`` nor ``batch_shape`` is given, or both are, or a size is negative.

    Examples
    --------
    >>> x = gt.Input((4,))
    >>> gt.layers.Dense(3)(x).shape
    (None, 3)
    """
    if (shape is None) == (batch_shape is None):
        raise ValueError("Input: give the shape of an example, shape=(...), or batch_shape=(...)")
    for given in (shape, batch_shape):
        if given is not None and not hasattr(given, "__iter__"):
            raise TypeError(
                f"Input: a shape is a tuple of sizes, such as ({given!r},), got {given!r}"
            )
    sizes = (batch_size, *shape) if shape is not None else tuple(batch_shape or ())
    if any(n is not None and (not hasattr(n, "__index__") or n < 0) for n in sizes):
        raise ValueError(f"Input: sizes are integers of at least 0, or None, got {sizes}")
    kind = default_dtype() if dtype is None else numpy_dtype(dtype)
    return Tensor(Placeholder(sizes, kind, None, name))


class Model(Composed, Layer):
    """A graph of layers from inputs to outputs; or the base class of your own models.

    Parameters
    ----------
    inputs
        The result of :func:`Input`, or several in a list, a tuple or a dictionary.
    outputs
        What layers and ops returned for them, in any structure.
    name
        A Python identifier.

    Attributes
    ----------
    layers : list of Layer
        The layers in the order of their calls, each once. For a subclass, the layers in its
        attributes, or in lists there.
    inputs, outputs
        The placeholders that the constructor received; ``input`` and ``output`` are the same.
    input_shape, output_shape
        Their shapes, in the same structures.

    Raises
    ------
    TypeError
        If something is not a placeholder.
    ValueError
        If an output needs a placeholder that is not among the inputs, or an input is not needed.

    Notes
    -----
    A layer that is called several times uses the same weights each time. Without arguments, a model
    is a :class:`~gradtape.layers.Layer`, for subclasses with ``call``.

    Examples
    --------
    >>> x = gt.Input((4,))
    >>> hidden = gt.layers.Dense(8, activation="relu")(x)
    >>> model = gt.Model(x, gt.layers.Dense(3)(gt.layers.Concatenate()([x, hidden])))
    >>> model(gt.ones((2, 4))).shape
    (2, 3)
    """

    #: :meth:`compute_mask` passes masks on and makes none.
    makes_mask: ClassVar[bool] = False

    takes_policy = False

    def __init__(self, inputs: Any = None, outputs: Any = None, name: str | None = None) -> None:
        super().__init__(name)
        if inputs is None and outputs is None:
            if type(self) is Model:
                raise TypeError("Model: give inputs and outputs, or write a subclass with call()")
            return
        for what, given in (("inputs", inputs), ("outputs", outputs)):
            for x in flatten(given):
                if not is_placeholder(x):
                    raise TypeError(
                        f"Model: {what} must come from Input, or from layers called on it, got "
                        f"{x!r}"
                    )
            if not flatten(given):
                raise ValueError(f"Model: there are no {what}, got {given!r}")
        self._gradtape_plan = CallPlan(inputs, outputs)
        self.layers = list(
            dict.fromkeys(n.layer for n in self._gradtape_plan.nodes if n.layer is not None)
        )

    @property
    def layers(self) -> list[Any]:
        """The layers in the order of their calls; for a subclass, the layers in its attributes."""
        if "layers" not in vars(self):
            return [leaf for _, leaf in self.own_leaves() if isinstance(leaf, Layer)]
        found: list[Any] = vars(self)["layers"]
        # a graph runs the same layers whatever happens to the list, from which training takes them
        return LayersOfGraph(found) if "_gradtape_plan" in vars(self) else found

    @layers.setter
    def layers(self, value: list[Any]) -> None:
        if "_gradtape_plan" in vars(self) and "layers" in vars(self):
            raise AttributeError(f"model {self.name!r}: {_OTHER_LAYERS}")
        vars(self)["layers"] = value

    @property
    def input(self) -> Any:
        """The placeholders of the inputs; None for a subclass with ``call``."""
        return self._gradtape_plan.inputs if "_gradtape_plan" in vars(self) else None

    @property
    def output(self) -> Any:
        """The placeholders of the outputs; None for a subclass with ``call``."""
        return self._gradtape_plan.outputs if "_gradtape_plan" in vars(self) else None

    inputs, outputs = input, output

    @property
    def output_names(self) -> list[str]:
        """The names of the outputs: the keys of a dictionary, or the layers that they come from."""
        outputs = self.output
        if isinstance(outputs, dict):
            return list(outputs)
        names: list[str] = []
        for i, x in enumerate(outputs if isinstance(outputs, (list, tuple)) else [outputs]):
            node = getattr(getattr(x, "array", None), "node", None)
            name = f"output_{i}" if node is None or node.layer is None else node.layer.name
            names.append(name if name not in names else f"{name}_{i}")
        return names

    @property
    def input_shape(self) -> Any:
        """The inputs' shapes, with ``None`` for unknown sizes."""
        return map_structure(lambda x: x.shape, self.input)

    @property
    def output_shape(self) -> Any:
        """The outputs' shapes, with ``None`` for unknown sizes."""
        return map_structure(lambda x: x.shape, self.output)

    @property
    def hands_masks(self) -> bool:
        """Whether it passes masks along; not in a subclass with its own ``call``."""
        return "_gradtape_plan" in vars(self) or super().hands_masks

    @property
    def built(self) -> bool:
        """Whether every layer is built."""
        if "_gradtape_plan" not in vars(self):
            return super().built
        return all(getattr(layer, "built", True) for layer in self.layers)

    def call_signatures(self) -> list[Any]:
        """Return the signatures of past calls; before the first, that of the placeholders."""
        found = super().call_signatures()
        if found or "_gradtape_plan" not in vars(self):
            return found
        return [((map_structure(lambda x: x.array.spec, self._gradtape_plan.inputs),), {})]

    @property
    def weight_names(self) -> tuple[str, ...] | None:
        """Empty for a graph of layers, which has no weights of its own."""
        return () if "_gradtape_plan" in vars(self) else super().weight_names

    def compute_mask(self, x: Any, mask: Any = None) -> Any:
        """Call the model, and return the mask of the result; a list for several tensors."""
        return mask_by_call(self, x, mask)

    def call(self, x: Any, training: bool = False, mask: Any = None) -> Any:
        """Run the layers; ``training`` and masks go to those that take them."""
        if "_gradtape_plan" not in vars(self):
            instead = ": rename its method forward to call" if hasattr(self, "forward") else ""
            raise NotImplementedError(f"{type(self).__name__} defines no call(){instead}")
        return self._gradtape_plan.run(x, training, f"model {self.name!r}", mask)


_OTHER_LAYERS = (
    "its graph has its layers; to change them, make another model from its layers' outputs: "
    "gt.Model(model.inputs, ...)"
)


class LayersOfGraph(list[Any]):
    """The layers of a graph: a list that cannot be changed in place, since the graph would not."""

    def _refuse(self, *args: Any, **kwargs: Any) -> Any:
        raise TypeError(f"layers of a Model: {_OTHER_LAYERS}; list(model.layers) is a copy")

    append = extend = insert = pop = remove = clear = sort = reverse = _refuse
    __setitem__ = __delitem__ = __iadd__ = __imul__ = _refuse

    def __reduce_ex__(self, protocol: Any) -> Any:
        return list, (list(self),)


class CallPlan:
    """The nodes between inputs and outputs.

    Parameters
    ----------
    inputs, outputs
        Placeholders in any structure.

    Raises
    ------
    ValueError
        If an output needs a placeholder that is not among the inputs, or an input is not needed.
    """

    def __init__(self, inputs: Any, outputs: Any) -> None:
        self.inputs, self.outputs = inputs, outputs
        given = set(placeholders_in(inputs))
        needed: dict[int, SymbolicCall] = {}
        used, waiting = set(), list(placeholders_in(outputs))
        while waiting:
            x = waiting.pop()
            if x in given:
                used.add(x)
            elif x.node is None:
                raise ValueError(f"Model: its outputs need {x!r}, which is not among its inputs")
            elif x.node.number not in needed:
                needed[x.node.number] = x.node
                waiting += x.node.inputs()
        for x in given - used:
            raise ValueError(f"Model: its outputs do not need {x!r}, which is among its inputs")
        self.nodes = [needed[number] for number in sorted(needed)]

    def __getstate__(self) -> dict[str, Any]:
        return {"nodes": self.nodes, "ends": bare((self.inputs, self.outputs))}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.nodes = state["nodes"]
        self.inputs, self.outputs = wrapped(state["ends"])

    def by_distance(self, ends: dict[Placeholder, Any]) -> list[Any]:
        """Return the layers, those first that are farthest from the outputs, as Keras lists them.

        Parameters
        ----------
        ends
            What stands for each placeholder of the inputs among the layers.
        """
        rank: dict[Any, int] = {}
        for node in reversed(self.nodes):
            own = rank.setdefault(node, 0)
            for x in node.inputs():
                before = x if x in ends else x.node
                rank[before] = max(rank.get(before, 0), own + 1)
        met: dict[Any, int] = {}  # layers in the order of a walk from the outputs, with their rank
        waiting: list[Any] = list(placeholders_in(self.outputs))[::-1]
        seen = set()
        while waiting:
            x = waiting.pop()
            place: Any = x if x in ends else x.node
            layer = ends.get(place) or getattr(place, "layer", None)
            if layer is not None:
                met[layer] = max(met.get(layer, 0), rank.get(place, 0))
            if place not in seen and place not in ends:
                waiting += reversed(list(place.inputs()))
            seen.add(place)
        return sorted(met, key=lambda layer: -met[layer])

    def run(self, values: Any, training: Any, who: str, mask: Any) -> Any:
        """Run the nodes on inputs.

        Parameters
        ----------
        values
            Tensors in the structure of the inputs. A list also works for a dictionary of inputs.
        training
            Passed to the layers that take it, unless their calls in the graph set it.
        who
            The model, for messages.
        mask
            The mask of the input; a list of masks for several inputs. By default, the masks that
            another model attached to the inputs.
        """
        inputs = list(placeholders_in(self.inputs))
        known = dict(zip(inputs, self._matched(values, who), strict=True))
        if mask is None:
            mask = [mask_of(y) for y in known.values()]
        given = mask if isinstance(mask, (list, tuple)) else [mask]
        masks = {x: m for x, m in zip(inputs, given) if m is not None}
        for node in self.nodes:
            args, kwargs = replaced((node.args, node.kwargs), known)
            if node.layer is not None and "training" not in kwargs and takes_training(node.layer):
                kwargs = {**kwargs, "training": training}
            layer = node.run if node.layer is None else node.layer
            found, after = call_with_mask(node.run, layer, args, kwargs, _mask_of(node, masks))
            wanted = flatten(node.outputs)
            masks.update((x.array, m) for x, m in zip(wanted, after) if m is not None)
            known.update(
                (x.array, y)
                for x, y in zip(wanted, flatten(found), strict=True)
                if is_placeholder(x)
            )
        for x in placeholders_in(self.outputs) if masks else ():
            keep_mask(known[x], masks.get(x))
        return replaced(self.outputs, known)

    def _matched(self, values: Any, who: str) -> list[Any]:
        """Return values for the inputs, in their order."""
        wanted = list(placeholders_in(self.inputs))
        if isinstance(values, dict) and not isinstance(self.inputs, dict):
            names = [x.name for x in wanted]
            if sorted(map(str, values)) != sorted(map(str, names)):
                raise ValueError(f"{who} has inputs {names}, got a dictionary of {list(values)}")
            found = [values[name] for name in names]
        elif isinstance(self.inputs, dict) and isinstance(values, dict):
            if set(values) != set(self.inputs):
                raise ValueError(f"{who} has inputs {list(self.inputs)}, got {list(values)}")
            found = flatten(values)
        else:
            found = flatten(values)
        if len(found) != len(wanted):
            raise ValueError(f"{who} has {len(wanted)} inputs, got {len(found)}")
        return [_fitting(as_tensor(y), x, who) for x, y in zip(wanted, found)]


def _mask_of(node: SymbolicCall, masks: dict[Placeholder, Any]) -> Any:
    """Return the mask of a layer's first argument, or a list of them, as far as there are any."""
    if not masks:
        return None
    named = getattr(node.layer, "masked_arguments", None)
    if named is not None:
        arguments = {**dict(zip(named, node.args)), **node.kwargs}
        given = {name: next(placeholders_in(arguments.get(name)), None) for name in named}
        return {name: masks[x] for name, x in given.items() if x in masks}
    # an op has several inputs as separate arguments, a layer in a list
    first = node.args[0] if node.layer is not None else list(node.args)
    found = [masks.get(x) for x in placeholders_in(first)]
    if all(mask is None for mask in found):
        return None
    return found if isinstance(first, (list, tuple)) else found[0]


def _fitting(value: Tensor, wanted: Placeholder, who: str) -> Tensor:
    if wanted.shape is not None:
        value = in_rank(value, wanted.shape)
    shape = value.array.shape
    if shape is not None and wanted.shape is not None:
        other = len(shape) != len(wanted.shape) or any(
            n is not None and sizes_differ(n, m) for n, m in zip(wanted.shape, shape)
        )
        if other:
            raise ValueError(f"{who}: expected {wanted!r}, got an input of shape {shape}")
    if value.dtype != wanted.dtype and value.dtype.kind in "biu" and wanted.dtype.kind == "f":
        return value.astype(wanted.dtype)
    return value

"""``Configured``: a layer that keeps its constructor's arguments as attributes."""

from __future__ import annotations

import functools
import inspect
import operator
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from ...core.extend import complete_docstring, known_size, ops, sizes_differ
from .. import activations, initializers
from .layer import Layer

__all__ = ["Configured", "positive", "sizes_of"]

_OF_WEIGHTS = (
    "The dtype of the weights; by default that of the first input if floating, or ``float32``."
)

_RULES = """{}
    (of the output) add to the loss: names (``"l2"``), objects of
    :mod:`gradtape.layers.regularizers`, or functions of a tensor. Constraints of the same weights,
    such as {}, are objects of :mod:`gradtape.layers.constraints`."""
_OF_OUTPUT = """``activity_regularizer``
    is a penalty of the output, which adds to the loss: a name (``"l2"``), an object of
    :mod:`gradtape.layers.regularizers`, or a function of a tensor. ``trainable=False`` freezes the
    layer."""


class Configured(Layer):
    """A layer that keeps each argument of its constructor as an attribute of the same name.

    Its configuration consists of these attributes: activations and initializers by name, everything
    else unchanged.
    """

    _gradtape_internal = "*"

    _family = """
    Parameters
    ----------
    activation
        A name (``"relu"``, ``"softmax"``, ...) or any callable; none by default.
    use_bias
        Whether to add a bias; true by default.
    kernel_initializer, depthwise_initializer, pointwise_initializer, bias_initializer
        Names, objects of :mod:`gradtape.layers.initializers`, or functions of shape and dtype.
    data_format
        ``"channels_last"``, the default, or ``"channels_first"``.
    name
        A Python identifier.
    dtype
        {dtype}
    rules
        {rules}
    """
    #: Whether the layer has weights. If not, its configuration holds a policy, but no dtype.
    weighs: ClassVar[bool] = False
    takes_one = True
    takes_integers = False

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if "build" in vars(cls) and "weighs" not in vars(cls):
            cls.weighs = True
        rules = [f"``{rule}``" for rule in cls._rules()]
        of_loss = ", ".join(rule for rule in rules if "regularizer" in rule)
        first = next((rule for rule in rules if "constraint" in rule), "")
        told = _RULES.format(of_loss, first) if first else _OF_OUTPUT
        dtype = _OF_WEIGHTS if cls.weighs else "A precision policy."
        complete_docstring(cls, dtype=dtype, rules=told)

    def get_config(self) -> dict[str, Any]:
        """Return the constructor's arguments."""
        kind: Any = type(self)
        names = _arguments(kind)
        lacking = [name for name in names if not hasattr(self, name)]
        configuring = next(cls for cls in kind.__mro__ if "get_config" in vars(cls))
        # a get_config() further down adds the arguments that its class knows, and no later ones
        unknown = [x for x in lacking if not issubclass(configuring, names[x])]
        if unknown:
            raise TypeError(
                f"{kind.__name__}: its constructor takes {unknown[0]!r}, but the layer keeps no "
                f"attribute of this name: set self.{unknown[0]}, or define get_config()"
            )
        kept = [name for name in names if name not in lacking]  # get_config around adds the others
        given = {name: _serialized(name, getattr(self, name)) for name in kept}
        if "dtype" in given:
            given["dtype"] = self.given_dtype
            if not self.weighs and "_gradtape_policy" not in vars(self):
                del given["dtype"]
        return {**given, **self.rules_given()}

    def known(self, shape: Any, axis: int = -1) -> int:
        """Return the size of an axis that the weights depend on.

        Raises
        ------
        ValueError
            If the input has no such axis, or its size is unknown.
        """
        if shape is None or not -len(shape) <= axis < len(shape) or not known_size(shape[axis]):
            raise ValueError(
                f"layer {self.name!r} ({type(self).__name__}): axis {axis} of its input must be "
                f"known when it is first called, got shape {shape}"
            )
        return int(shape[axis])

    def fitted(self, x: Any, sizes: Mapping[int, int]) -> Any:
        """Return the inputs, checked against the sizes of the weights; size 1 would broadcast.

        Parameters
        ----------
        x
            The inputs.
        sizes
            The expected size of each axis.

        Raises
        ------
        ValueError
            If a size differs, or there is no such axis. If the size is unknown in a trace, the
            graph raises when it runs.
        """
        shape = x.array.shape
        if shape is None:
            return x
        rank = len(shape)
        outside = any(not -rank <= a < rank for a in sizes)
        if outside or any(sizes_differ(shape[a], n) for a, n in sizes.items()):
            said = ", ".join(f"{n} on axis {a}" for a, n in sizes.items())
            raise ValueError(
                f"layer {self.name!r} ({type(self).__name__}): expected inputs of size {said}, got "
                f"an input of shape {shape}"
            )
        open_ = {a % rank: n for a, n in sizes.items() if not known_size(shape[a])}
        if open_:
            x = ops["reshape"](x, shape=tuple(open_.get(i, n) for i, n in enumerate(shape)))
        return x


@functools.cache
def _arguments(kind: Any) -> dict[str, type]:
    """Return a constructor's arguments, with those that ``**kwargs`` stand for; and their classes.

    ``**rules: Unpack[Rules]`` stands for the rules of weights alone.
    """
    names: dict[str, type] = {}
    for cls in kind.__mro__:
        if "__init__" not in vars(cls):
            continue
        _, *parameters = inspect.signature(inspect.unwrap(cls.__init__)).parameters.values()
        further = [p for p in parameters if p.kind in (p.VAR_POSITIONAL, p.VAR_KEYWORD)]
        names |= {p.name: cls for p in parameters if p not in further and p.name not in names}
        if all("Unpack[Rules]" in str(p.annotation) for p in further):
            break
    return names


def _serialized(name: str, value: Any) -> Any:
    if name.endswith("activation"):
        return activations.serialize(value)
    return initializers.by_name(name, value)


def positive(layer: Any, **given: Any) -> list[int]:
    """Return settings as positive integers.

    Raises
    ------
    ValueError
        If one is not a positive integer.
    """
    for name, value in given.items():
        if not hasattr(value, "__index__") or operator.index(value) < 1:
            kind = layer if isinstance(layer, str) else type(layer).__name__
            raise ValueError(f"{kind}: {name} must be a positive integer, got {value!r}")
    return [operator.index(value) for value in given.values()]


def sizes_of(layer: Any, name: str, value: Any, rank: int, least: int = 1) -> tuple[int, ...]:
    """Return one integer for each spatial axis, from one number or a sequence.

    Raises
    ------
    ValueError
        If they are not integers, too small, or not one for each axis.
    """
    given = tuple(value) if isinstance(value, Sequence) and not isinstance(value, str) else (value,)
    if all(hasattr(n, "__index__") for n in given):
        sizes = tuple(operator.index(n) for n in given)
        sizes = sizes * rank if len(sizes) == 1 else sizes
        if len(sizes) == rank and min(sizes) >= least:
            return sizes
    kind = "a positive integer" if least else "an integer of at least 0"
    raise ValueError(
        f"{type(layer).__name__}: {name} must be {kind}"
        f"{'' if rank == 1 else f' or {rank} of them'}, got {value!r}"
    )

"""``Layer``: a module with a forward pass, whose weights are created for its first input."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from types import FunctionType
from typing import TYPE_CHECKING, Any, ClassVar, Self, Unpack

import numpy as np
from numpy.typing import NDArray

from ...core.extend import (
    RULES,
    Module,
    Policy,
    Setting,
    Tensor,
    Variable,
    add_to_loss,
    apply_constraints,
    as_dtype,
    as_policy,
    as_stored_value,
    as_tensor,
    batch_rows,
    default_dtype,
    flatten,
    hinted,
    losses_of,
    map_structure,
    ops,
    overridable,
    parameters,
    passing,
    without_expressions,
)
from .. import initializers
from ..configs import serialized, with_own_arguments
from .calls import building, by_policy, call_of
from .symbolic import node_of
from .weights import (
    BUILT,
    UNMADE,
    WAITING,
    Rules,
    build_with,
    check_weights,
    set_rules,
    set_rules_of_weight,
)

__all__ = ["Layer"]

#: For each framework, the names there of attributes, and how their values differ.
Elsewhere = Mapping[str, Mapping[Any, Any]]


class Layer(Module):
    """Base class of layers.

    A layer defines ``call(x, ...)`` (or ``__call__``), which gets a batch as a tensor of shape
    ``(batch, ...)``, and may take ``training`` and ``mask``. A layer with weights also defines
    ``build(input_shape)``, which creates them with :meth:`add_weight`. ``build`` runs once, before
    the first call, outside any trace or tape. Keep the arguments of a subclass's constructor as
    attributes of the same names: :meth:`get_config` then returns them.

    Parameters
    ----------
    name
        A Python identifier; the class name in snake case by default.
    dtype
        The dtype of the weights, or a :class:`gradtape.mixed_precision.Policy` or its name. The
        default is the policy of :func:`gradtape.mixed_precision.set_policy` if one is set.
        Otherwise it is the dtype of the first input if that is floating, and the default dtype
        (``float32``) if not.
    rules
        Regularizers and constraints of the weights that :attr:`ruled` names, and
        ``activity_regularizer``. ``trainable=False`` creates a frozen layer.

    Attributes
    ----------
    policy : Policy
        The dtype in which the layer computes, and the dtype of its weights.
    dtype : str or None
        The dtype of the weights, if you set one.

    Raises
    ------
    ValueError
        If ``name`` is not an identifier.
    TypeError
        If ``dtype`` is not a dtype of tensors.

    Examples
    --------
    >>> class Scale(gt.layers.Layer):
    ...     def build(self, input_shape):
    ...         self.factor = self.add_weight((input_shape[-1],), "ones", "factor")
    ...
    ...     def call(self, x):
    ...         return x * self.factor
    >>> Scale()(gt.ones((2, 3))).shape
    (2, 3)
    """

    _gradtape_internal = (
        "build_for_weights check_restored given_dtype hands_masks rules_given takes_policy"
    )
    _gradtape_hooks = (
        "add_loss add_weight averaged_on_ranks build build_part built compute_mask "
        "computes_in_float32 defaults_elsewhere get_config keeps_mask makes_mask mark_built "
        "names_elsewhere ruled shape_for_weights state_names takes_integers takes_one weight_names"
    )

    #: The name of an attribute in other frameworks, and the order of its axes there, for
    #: :func:`gradtape.load_weights` and :func:`gradtape.save_weights`: ``{"pytorch": {"kernel":
    #: ("weight", (1, 0))}}``. Instead of the axes, a pair of functions of the layer and an array
    #: converts from the framework and to it. If several weights are several arrays there, the key
    #: is a tuple of paths, the name a tuple of names, and the functions take and return lists. For
    #: an attribute with layers, the name may be a form such as ``"{}_reverse"`` of the names in
    #: them. ``None`` for a weight says that the framework has none. Keras numbers weights, so only
    #: the class has a name: ``{"keras": {"": ("layer", None)}}``.
    names_elsewhere: ClassVar[Elsewhere] = {}
    #: The weights that may have regularizers and constraints, by the prefix of these settings:
    #: ``kernel_regularizer`` is for ``kernel``.
    ruled: ClassVar[Mapping[str, str]] = {}
    activity_regularizer: Any = None
    #: Settings that weight files do not hold, and whose defaults differ in other frameworks.
    defaults_elsewhere: ClassVar[Mapping[str, Mapping[str, Any]]] = {}

    #: Whether the layer takes one tensor, so that calls refuse containers.
    takes_one: ClassVar[bool] = False
    #: Whether ``call`` receives integers and booleans as they are. Otherwise they become floating
    #: first, in the layer's dtype: differences of ``uint8`` would wrap around.
    takes_integers: ClassVar[bool] = True
    #: Whether the result has the same steps as the input, and therefore the same mask.
    keeps_mask: ClassVar[bool] = False
    #: Whether the layer computes in ``float32`` under any policy, as sums over a batch should. Its
    #: inputs are cast to ``float32``, and its outputs to the policy's dtype.
    computes_in_float32: ClassVar[bool] = False
    #: Whether it has a policy. A layer that only calls others uses theirs.
    takes_policy: ClassVar[bool] = True

    #: What wrappers read, and a class may define: files hold it for a class that readers lack.
    _gradtape_described: ClassVar = (
        "state_size", "output_size", "state_dtypes", "initial_states",
        "go_backwards", "return_sequences", "return_state",
    )  # fmt: skip

    dtype: str | None = None  # of a class that does not call the constructor, too

    if TYPE_CHECKING:
        __call__: Callable[..., Tensor]  # made from the subclass's ``call``

    def __init__(self, name: str | None = None, dtype: Any = None, **rules: Unpack[Rules]) -> None:
        super().__init__(name)
        found = as_policy(dtype) if self.takes_policy else None
        if found is not None:
            self.dtype = found.variable_dtype
            vars(self)["_gradtape_policy"] = found.name
        else:
            self.dtype = None if dtype is None else as_dtype(dtype).name
        set_rules(self, rules)

    @classmethod
    def _rules(cls) -> tuple[str, ...]:
        """Return the names of the settings that are regularizers and constraints."""
        names = [f"{prefix}_{kind}" for prefix in cls.ruled for kind in RULES]
        return (*names, "activity_regularizer")

    @property
    def policy(self) -> Policy:
        """The dtype in which the layer computes, and the dtype of its weights.

        It is ``float32`` for a layer without a ``dtype``, although that uses its input's.
        """
        return Policy(vars(self).get("_gradtape_policy", "float32"))

    @property
    def compute_dtype(self) -> str:
        """The dtype in which the layer computes."""
        return self.policy.compute_dtype

    @property
    def variable_dtype(self) -> str:
        """The dtype of the weights."""
        return self.policy.variable_dtype

    @property
    def given_dtype(self) -> str | None:
        """The name of the dtype or policy that the constructor received."""
        return vars(self).get("_gradtape_policy", self.dtype)

    def __init_subclass__(cls, **kwargs: Any) -> None:
        own = cls.__dict__
        for rule in cls._rules() if "ruled" in own else ():
            setattr(cls, rule, None)
        found = call_of(cls)
        if found is not None:
            cls.__call__ = building(*found)  # type: ignore[method-assign]
        elif "__call__" in own:
            by_policy(own["__call__"])
        super().__init_subclass__(**kwargs)
        if cls.__name__[0] == "_":
            for member in own.values():  # Python's errors about arguments name the method
                if isinstance(member, FunctionType):
                    member.__qualname__ = member.__name__

    def _attribute_order(self) -> list[str]:
        # weights in the order of their creation, as in Keras: kernel, then bias
        return list(vars(self))

    def __setattr__(self, name: str, value: Any) -> None:
        # layers written for Keras end their build() by self.built = True
        if name == "built" and getattr(getattr(type(self), name, None), "fset", self) is None:
            self.mark_built(bool(value))
        else:
            super().__setattr__(name, value)

    def build(self, input_shape: Any) -> None:
        """Create the weights for inputs of ``input_shape`` (unknown sizes are ``None``)."""

    @property
    def built(self) -> bool:
        """Whether the weights exist; a layer that has some before ``build`` overrides this."""
        if BUILT in vars(self):
            return True
        own = any(isinstance(leaf, Variable) for _, leaf in self.own_leaves())
        return own or type(self).build is Layer.build

    @property
    def weight_names(self) -> tuple[str, ...] | None:
        """The names of the weights that ``build`` creates, in its order; ``None`` if unknown."""
        return None

    @property
    def state_names(self) -> tuple[str, ...]:
        """The names of random states that ``build`` creates; weight files may lack them."""
        return ()

    @property
    def averaged_on_ranks(self) -> tuple[str, ...]:
        """The names of weights to which a rank assigns statistics of its own examples.

        ``fit`` on several ranks averages these weights after an epoch and before a checkpoint.
        """
        return ()

    def shape_for_weights(self, shapes: Mapping[str, tuple[int, ...]]) -> Any:
        """Return an input shape for which ``build`` creates weights of these shapes.

        Together with :attr:`weight_names`, it lets you load weights before the first call.

        Parameters
        ----------
        shapes
            Shapes by attribute; some may be missing.

        Returns
        -------
        tuple or None
            The shape. ``None`` if it does not follow from these weights, or the layer does not
            override this method.
        """
        return None

    def build_for_weights(self, shapes: Mapping[str, tuple[int, ...]], dtype: Any) -> bool:
        """Build the layer on the current backend for weights of these shapes, if possible.

        Parameters
        ----------
        shapes
            Shapes by attribute.
        dtype
            The dtype of the weights, unless the layer has its own.

        Returns
        -------
        bool
            Whether the layer is built now.
        """
        shape = self.shape_for_weights(shapes)
        if shape is not None:
            build_with(self, shape, as_dtype(dtype).name, [])
        return shape is not None

    @property
    def hands_masks(self) -> bool:
        """Whether it passes masks from layer to layer, as models do."""
        return False

    @property
    def _gradtape_makes_mask(self) -> bool:
        """Whether :meth:`compute_mask` may create a mask for inputs without one.

        A class with this method may, as in Keras, unless it sets ``makes_mask = False``.
        """
        kind: Any = type(self)
        return _defines_mask(kind) or bool(getattr(self, "makes_mask", False))

    def compute_mask(self, x: Any, mask: Any = None) -> Any:
        """Return the mask of the result: false where a step is padding; ``None`` for no padding.

        Parameters
        ----------
        x
            The inputs.
        mask
            The mask of the inputs, of shape ``(batch, steps)``; ``None`` if they have none. Models
            ask a class of your own for a mask then, too.
        """
        keeps = self.keeps_mask or getattr(self, "supports_masking", False)  # Keras's name
        return mask if keeps else None

    def check_restored(self) -> list[Any]:
        """Check a layer that a file restored: its arguments and attributes may not match.

        Returns
        -------
        list
            The inner layers that a call runs.

        Raises
        ------
        TypeError, ValueError
            If a call would fail, or compute what another layer computes.
        """
        check_weights(self)
        return []

    def build_part(self, layer: Any, input_shape: Any) -> None:
        """Build an inner layer from :meth:`build`, unless it is built already.

        Parameters
        ----------
        layer
            The inner layer; anything else is ignored.
        input_shape
            The shape of its inputs.
        """
        if isinstance(layer, Layer) and not layer.built:
            build_with(layer, input_shape, vars(self).get("_gradtape_dtype"), [])

    def mark_built(self, built: bool = True) -> None:
        """Mark the weights as existing, so that ``build`` is not called; or remove the mark."""
        if not built:
            vars(self).pop(BUILT, None)
        elif WAITING not in vars(self):  # otherwise the next call loads them and sets the mark
            vars(self)[BUILT] = True

    @overridable
    def weights(self) -> list[Variable]:
        """The variables in Keras's order, layer by layer, without random states."""
        return list(parameters(self))

    @overridable
    def input(self) -> Any:
        """The placeholder that the layer was called on, in a functional model."""
        return node_of(self, "input").args[0]

    @overridable
    def output(self) -> Any:
        """The placeholder that the layer returned, for a model that ends at this layer."""
        return node_of(self, "output").outputs

    def get_weights(self) -> list[NDArray[Any]]:
        """Return copies of the values of :attr:`weights`, as NumPy arrays."""
        return [np.array(v.numpy()) for v in self.weights]

    def set_weights(self, weights: Sequence[Any]) -> None:
        """Assign arrays to :attr:`weights`.

        Parameters
        ----------
        weights
            One array for each variable, of its shape, in the same order.

        Raises
        ------
        ValueError
            If the number of arrays or a shape differs.
        TypeError
            If an array holds no numbers, or numbers that cannot be cast. Errors name the variable,
            and change nothing.
        """
        variables = self.weights
        if len(weights) != len(variables):
            raise ValueError(
                f"layer {self.name!r} has {len(variables)} weights, set_weights got {len(weights)}"
            )
        for variable, value in zip(variables, weights):
            variable.check_shape(np.shape(value), "set_weights")
        values = [as_stored_value(x, v, "set_weights") for v, x in zip(variables, weights)]
        for variable, value in zip(variables, values):
            variable._checked(value, "set_weights")
        for variable, value in zip(variables, values):
            variable.assign(value)

    def count_params(self) -> int:
        """Return the number of elements of all variables except random states."""
        return sum(v.size for v in self.weights)

    def add_weight(
        self,
        shape: tuple[int, ...],
        initializer: Any = "glorot_uniform",
        name: str = "weight",
        trainable: bool = True,
        dtype: Any = None,
        *,
        regularizer: Any = None,
        constraint: Any = None,
    ) -> Variable:
        """Return a new variable, for ``build`` to assign to an attribute of the layer.

        Parameters
        ----------
        shape
            The shape.
        initializer
            A name, an object of :mod:`gradtape.layers.initializers`, or a function of shape and
            dtype.
        name
            The variable's name.
        trainable
            Whether it trains.
        dtype
            The dtype; by default the layer's.
        regularizer
            The penalty that the weight adds to :attr:`losses`: a name, an object of
            :mod:`gradtape.layers.regularizers`, or a function of a tensor.
        constraint
            The function applied to the weight after each training step: a name, an object of
            :mod:`gradtape.layers.constraints`, or a function of a tensor.
        """
        if isinstance(shape, (str, int)):
            raise TypeError(
                f"add_weight: the shape is a tuple of sizes and comes first, got {shape!r}; as in "
                'add_weight((3, 4), name="kernel")'
            )
        kind = as_dtype(dtype or self.dtype or vars(self).get("_gradtape_dtype") or default_dtype())
        if UNMADE in vars(self):
            return Variable.holding(np.broadcast_to(np.zeros((), kind), shape))
        with Setting(batch_rows, None):  # the same on all ranks, whatever the sizes of their parts
            value = initializers.get(initializer)(tuple(shape), kind)
        variable = Variable(value, trainable=trainable, name=name, dtype=kind)
        if variable.shape != tuple(shape):
            raise ValueError(
                f"layer {self.name!r} ({type(self).__name__}): the initializer of {name!r} "
                f"returned shape {variable.shape} instead of {tuple(shape)}"
            )
        variable.unasked = not (dtype or self.dtype) and kind != default_dtype()
        set_rules_of_weight(self, variable, regularizer, constraint)
        return variable

    def add_loss(self, value: Any) -> None:
        """Add a term to the loss, from within ``call``.

        :func:`gradtape.training.fit` minimises it together with the rest of the loss.

        Parameters
        ----------
        value
            A scalar; of any other tensor, the mean counts.

        Raises
        ------
        ValueError
            If this is not within the call of a layer.

        Examples
        --------
        >>> class Sparse(gt.layers.Layer):
        ...     def call(self, x):
        ...         self.add_loss(0.1 * gt.mean(gt.abs(x)))
        ...         return x
        >>> layer = Sparse()
        >>> y = layer([2.0])
        >>> [round(loss.item(), 3) for loss in layer.losses]
        [0.2]
        """
        if not passing.get():
            raise ValueError(f"layer {self.name!r}: use add_loss within call only")
        value = as_tensor(value)
        add_to_loss(self, value if value.ndim == 0 else ops["mean"](value))

    @property
    def losses(self) -> list[Tensor]:
        """The terms of the loss from regularizers and :meth:`add_loss`, for the last call.

        They include those of inner layers. In your own training loop, add them to the loss inside
        the tape.
        """
        return losses_of(self)

    def apply_constraints(self) -> None:
        """Apply the constraints to the weights, including those of inner layers.

        ``fit`` does so after each step. In your own training loop, call it yourself.
        """
        apply_constraints(self)

    def get_config(self) -> dict[str, Any]:
        """Return the constructor's arguments: JSON values and functions, never modules.

        The value of an argument that a subclass adds is that of the attribute of the same name. An
        initializer becomes its name and configuration, which
        :func:`gradtape.layers.initializers.get` takes.

        Raises
        ------
        TypeError
            If there is no such attribute: set it, or define ``get_config``.
        """
        known = {"name": self.name, "dtype": self.given_dtype, **self.rules_given()}
        found = with_own_arguments(self, Layer, known)
        return {name: initializers.by_name(name, value) for name, value in found.items()}

    def rules_given(self) -> dict[str, Any]:
        """Return the regularizers and constraints that the constructor received."""
        given = {rule: getattr(self, rule) for rule in self._rules()}
        kinds = {rule: rule.rpartition("_")[2] for rule in given}
        return {rule: serialized(kinds[rule], x) for rule, x in given.items() if x is not None}

    @classmethod
    def from_config(cls, config: Mapping[str, Any]) -> Self:
        """Return a layer, constructed with the arguments that :meth:`get_config` returned."""
        return cls(**config)

    def _build_for(self, inputs: Any) -> None:
        """Build the layer for these inputs, unless it is built; a build that fails is undone."""
        if self.built:
            build_with(self, None, None, [])
            return
        leaves = [x for x in flatten(inputs) if x is not None]
        floats = [x.dtype.name for x in leaves if x.dtype.kind == "f"]
        shapes = map_structure(
            lambda x: None if x is None else without_expressions(x.shape), inputs
        )
        build_with(self, shapes, floats[0] if floats else None, leaves)


hinted(Layer, "layers.Layer")


@functools.cache
def _defines_mask(kind: type) -> bool:
    """Return whether a class defines ``compute_mask``, and does not say what it makes."""
    nearest = next(c for c in kind.__mro__ if {"compute_mask", "makes_mask"} & vars(c).keys())
    return nearest is not Layer and "makes_mask" not in vars(nearest)

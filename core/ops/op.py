"""``Op``: a primitive with its kernel, gradient rules, shape rule and batching rule in one record.

An op dispatches on the types of the arrays that it is given. A backend's arrays run a kernel; every
other array type (a traced symbol, a batch, the tensor handle itself) has registered what to do.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from operator import itemgetter
from typing import TYPE_CHECKING, Any

from ..base.context import active_tapes
from ..base.spec import describe
from ..errors import BackendMismatch, GradtapeError, PluginError
from ..tensors.tensor import Tensor

if TYPE_CHECKING:
    from .backend import Backend

__all__ = ["NONDIFF", "Op", "Rule", "register_array_type"]

#: Marks an input that has no gradient, on purpose.
NONDIFF = None

# Python scalars are weak: they follow the dtype of the arrays beside them.
SCALARS = frozenset({bool, int, float, complex})

# Array type -> (rank, what an op does with it). The highest rank among an op's inputs decides.
_transforms: dict[type, tuple[int, Callable[[Op], Callable[..., Any]]]] = {}


def register_array_type(
    array_type: type, rank: int, handler: Callable[[Op], Callable[..., Any]]
) -> None:
    """Let ops run on ``array_type``: ``handler(op)`` is called with the op's arrays.

    ``rank`` orders types that meet in one op: the outermost (highest) handles it.
    """
    _transforms[array_type] = (rank, handler)


def is_transformed(array: Any) -> bool:
    """Return whether ``array`` is no backend's: a symbol, a batch or another of our array types."""
    return type(array) in _transforms


class ScalarTable(dict[tuple[Any, Any], Any]):
    """Python scalars of one type as arrays of a backend, by value and dtype.

    NumPy takes longer to convert a Python float than to multiply a small array by it, and the same
    constants come again with every step.
    """

    def __init__(self, convert: Callable[[Any, Any], Any]) -> None:
        super().__init__()
        self.convert = convert

    def __missing__(self, key: tuple[Any, Any]) -> Any:
        value, dtype = key
        array = self.convert(value, dtype)
        if value:  # 0.0 and -0.0 would share a key
            if len(self) >= 1024:
                self.clear()
            self[key] = array
        return array


# By the scalar's type (1, 1.0 and True are equal, and hash alike), then by the array's.
scalar_tables: dict[type, dict[type, ScalarTable]] = {kind: {} for kind in SCALARS}


class Rule:
    """The gradient rule of one input: ``fn(g, *picked, **keywords)`` is that input's gradient.

    The names of the function's parameters say what it needs: inputs, ``out``, an input's shape and
    dtype alone (``x_like``), parameters of the op. A tape keeps alive no more than that.
    """

    __slots__ = ("broadcasts", "checked", "fn", "fn_complex", "keywords", "only", "pick")

    def __init__(self, op: Op, target: str, fn: Callable[..., Any]) -> None:
        self.fn = fn
        self.fn_complex = _conjugated(fn) if op.holomorphic else fn
        self.broadcasts = op.broadcasts
        self.checked = False
        slots: list[int] = []
        likes: set[int] = set()
        keywords: list[str] = []
        for name in _argument_names(fn)[1:]:
            stem = name.removesuffix("_like")
            if name in op.inputs:
                slots.append(op.inputs.index(name))
            elif name == "out":
                slots.append(len(op.inputs))
            elif stem in op.inputs:
                likes.add(len(slots))
                slots.append(op.inputs.index(stem))
            elif name in op.defaults:
                keywords.append(name)
            else:
                raise PluginError(
                    f"op {op.name!r}: the gradient rule of {target!r} asks for {name!r}; it "
                    f"may ask for inputs {op.inputs}, 'out', '<input>_like' or parameters "
                    f"{tuple(op.defaults)}"
                )
        self.keywords = tuple(keywords)
        self.pick = _picker(slots, likes)
        # the index of the one value that the rule needs, -1 for none, None for anything else
        simple = len(slots) <= 1 and not likes and not keywords
        self.only: int | None = (slots[0] if slots else -1) if simple else None


def _argument_names(fn: Callable[..., Any]) -> tuple[str, ...]:
    """Return the names of a function's positional parameters."""
    code = getattr(fn, "__code__", None)
    if code is not None:  # a hundred times quicker than inspect, for hundreds of rules
        return tuple(code.co_varnames[: code.co_argcount])
    return tuple(inspect.signature(fn).parameters)


def _conjugated(fn: Callable[..., Any]) -> Callable[..., Any]:
    """Return a holomorphic function's rule for complex values: the conjugate of the derivative."""
    from ..base.table import F

    def rule(g: Any, *args: Any, **params: Any) -> Any:
        return F.conj(fn(F.conj(g), *args, **params))

    return rule


def _picker(slots: list[int], likes: set[int]) -> Callable[[tuple[Any, ...]], tuple[Any, ...]]:
    """Return what takes a rule's tensors from the tuple of an op's inputs and its output."""
    if not slots:
        return lambda values: ()
    # itemgetter gives a bare item for one index, and a tuple for a slice
    getter = itemgetter(*slots) if len(slots) > 1 else itemgetter(slice(slots[0], slots[0] + 1))
    if not likes:
        return getter
    from .backend import shape_witness

    wanted = [(slot, i in likes) for i, slot in enumerate(slots)]

    def pick(values: tuple[Any, ...]) -> tuple[Any, ...]:
        # a list first: half the cost of a generator
        return tuple([shape_witness(values[i]) if like else values[i] for i, like in wanted])

    return pick


class Op:
    """A differentiable primitive.

    Parameters
    ----------
    name
        NumPy's or the array API's name; ``"distribution::name"`` for ops of other packages.
    kernel
        The name of a function in the array's namespace, or ``kernel(xp, *arrays, **params)``.
        Arrays are positional, parameters keyword-only and made of Python values (so that they can
        be saved).
    inputs
        The arrays' names; read from the kernel's signature if that is a function. ``("*arrays",)``
        stands for any number.
    gradients
        One gradient rule per input name (``NONDIFF`` where there is none); see :class:`Rule`.
    vjp
        Instead of ``gradients``, one rule for all inputs, for ops with many inputs or outputs:
        ``vjp(gs, inputs, outputs, needed, **params)`` returns a gradient (or None) per input.
    shapes_only
        The inputs (and ``"out"``) of which ``vjp`` reads shape and dtype alone: tapes then do not
        keep their values alive.
    infer
        The shape rule: ``infer(*specs, **params)`` returns ``(shape, dtype)``, or a list of them.
        A weak Python scalar comes as itself.
    broadcasts
        Whether inputs broadcast, so that gradients are summed back to each input's shape.
    holomorphic
        Whether the rules are derivatives of a holomorphic function, multiplied by ``g``: for
        complex values gradtape then takes the conjugates that TensorFlow's convention asks for.
    batch
        The batching rule, used by ``vmap``: ``"elementwise"``, or ``rule(op, arrays, batched,
        params)``, which returns the result with the hidden axis first; ``batched`` says which of
        the arrays have it. Without one, ``vmap`` runs the op once per example, and warns.
    jvp
        The forward rule: ``"linear"`` in all differentiable inputs together, ``"multilinear"`` (in
        each of them), or ``jvp(tangents, inputs, outputs, **params)``, which is given None for a
        tangent of zero and returns the tangent of the output, or one per output. By default it is
        derived from the gradient rules.
    """

    __slots__ = (
        "__weakref__",
        "_kernels",
        "_rules",
        "_shapes_only",
        "batch",
        "broadcasts",
        "defaults",
        "doc",
        "holomorphic",
        "infer",
        "inputs",
        "jvp",
        "kernel",
        "name",
        "provider",
        "quick",
        "rules_provider",
        "variadic",
        "vjp",
    )

    def __init__(
        self,
        name: str,
        kernel: str | Callable[..., Any],
        *,
        inputs: Sequence[str] | None = None,
        gradients: Mapping[str, Callable[..., Any] | None] | None = None,
        vjp: Callable[..., Any] | None = None,
        shapes_only: Sequence[str] = (),
        infer: Callable[..., Any] | None = None,
        params: Mapping[str, Any] | None = None,
        broadcasts: bool = False,
        holomorphic: bool = False,
        batch: Any = None,
        jvp: Any = None,
        doc: str = "",
    ) -> None:
        self.name = name
        self.kernel = kernel
        self.inputs, self.defaults = _signature(name, kernel, inputs, params)
        self.variadic = any(name.startswith("*") for name in self.inputs)
        self.vjp = vjp
        self._shapes_only = (vjp, frozenset(shapes_only))  # another's rule may read values
        self.infer = infer
        self.broadcasts = broadcasts
        self.holomorphic = holomorphic
        self.batch = batch
        self.jvp = jvp
        self.doc = doc
        self.provider: Any = None
        self.rules_provider: Any = None
        self.rules = None
        # by the types of the arrays; a unary op has entries by the type alone as well
        self._kernels: dict[Any, Callable[..., Any]] = {}
        if gradients is not None:
            self.set_gradients(gradients)

    def set_gradients(self, gradients: Mapping[str, Callable[..., Any] | None]) -> None:
        """Give the op its gradient rules, by input name."""
        unknown = sorted(set(gradients) - set(self.inputs))
        missing = [name for name in self.inputs if name not in gradients]
        if unknown or missing:
            raise PluginError(
                f"op {self.name!r}: gradients must name each of its inputs {self.inputs}; "
                f"unknown: {unknown}, missing: {missing} (write NONDIFF for an input without one)"
            )
        rules = []
        for name in self.inputs:
            fn = gradients[name]
            rules.append(None if fn is None else Rule(self, name, fn))
        self.rules = tuple(rules)

    def replace_vjp(self, vjp: Callable[..., Any]) -> None:
        """Put another function, which reads the same of inputs and outputs, in ``vjp``'s place."""
        known, names = self._shapes_only
        self._shapes_only = (vjp if known is self.vjp else known, names)
        self.vjp = vjp

    @property
    def rules(self) -> tuple[Rule | None, ...] | None:
        """The gradient rules by input, or None if there are none or ``vjp`` serves all inputs."""
        return self._rules

    @rules.setter
    def rules(self, rules: tuple[Rule | None, ...] | None) -> None:
        self._rules = rules
        # per input, what the quick paths need of a rule: which one value it reads, and its function
        self.quick: tuple[tuple[int, Callable[..., Any]] | None, ...] = tuple(
            (rule.only, rule.fn) if rule is not None and rule.only is not None else None
            for rule in rules or (None,) * len(self.inputs)
        )

    @property
    def differentiable(self) -> bool:
        """Whether any input has a gradient rule."""
        return self.vjp is not None or bool(self.rules and any(self.rules))

    def for_vjp(
        self, inputs: tuple[Any, ...], outputs: tuple[Any, ...]
    ) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
        """Return what ``vjp`` will be given, with values that it does not read let go."""
        vjp, names = self._shapes_only
        if not names or vjp is not self.vjp:
            return inputs, outputs
        from .backend import shape_witness

        last = len(self.inputs) - 1
        kept = [
            shape_witness(x) if self.inputs[min(i, last)] in names else x
            for i, x in enumerate(inputs)
        ]
        if "out" in names:
            outputs = tuple(shape_witness(y) for y in outputs)
        return tuple(kept), outputs

    @property
    def __doc__(self) -> str:  # type: ignore[override]
        return self.doc or f"The op {self.name!r}."

    @property
    def __name__(self) -> str:
        return self.name

    def __repr__(self) -> str:
        arguments = [*self.inputs, *(f"{k}={v!r}" for k, v in self.defaults.items())]
        return f"<op {self.name}({', '.join(arguments)})>"

    def __reduce__(self) -> tuple[Any, ...]:
        from .registry import op_named  # found again by name

        return (op_named, (self.name,))

    # an op with several outputs returns a list of tensors; nearly all have one
    def __call__(self, *inputs: Any, **params: Any) -> Tensor:
        """Run the op on tensors (or what converts to them) and let the active tapes record it."""
        arrays = []
        for x in inputs:
            kind = type(x)
            if kind is Tensor:
                arrays.append(x.array)
            elif kind in SCALARS and len(inputs) > 1:
                arrays.append(x)
            else:
                inputs, arrays = self._coerce(inputs)
                break
        try:
            kernel = self._kernels[tuple(map(type, arrays))]
        except KeyError:
            if all(type(x) in SCALARS for x in inputs):
                inputs, arrays = self._coerce(inputs, scalars=True)
            kernel = self.resolve(arrays)
        try:
            result = kernel(*arrays, **params)
        except (IndexError, OverflowError, TypeError, ValueError) as error:
            name_op(self, arrays, error)
            raise
        if type(result) is tuple or type(result) is list:
            outputs = [Tensor(array) for array in result]
            for tape in active_tapes.get():
                tape.record_joint(self, inputs, outputs, params)
            return outputs  # type: ignore[return-value]
        output = Tensor(result)
        for tape in active_tapes.get():
            tape.record(self, inputs, output, params)
        return output

    def raw(self, *arrays: Any, **params: Any) -> Any:
        """Run the op on arrays of any one type, and return arrays of that type."""
        try:
            kernel = self._kernels[tuple(map(type, arrays))]
        except KeyError:
            kernel = self.resolve(arrays)
        return kernel(*arrays, **params)

    def resolve(self, arrays: Sequence[Any]) -> Callable[..., Any]:
        """Find, and remember, what runs this op for arrays of these types."""
        if len(arrays) != len(self.inputs) and not self.variadic:
            raise TypeError(
                f"{self.name}: expected {len(self.inputs)} arrays ({', '.join(self.inputs)}), "
                f"got {len(arrays)}"
            )
        types = tuple(map(type, arrays))
        found = [_transforms[kind] for kind in types if kind in _transforms]
        if found:
            kernel = max(found, key=itemgetter(0))[1](self)
        else:
            from .backend import backend_for_type

            owners = {}
            for kind in types:
                if kind not in SCALARS:
                    backend = backend_for_type(kind, self.name)
                    owners[backend.name] = backend
            if len(owners) > 1:
                raise BackendMismatch(
                    f"{self.name}: the inputs are on backends {' and '.join(sorted(owners))}; "
                    f"move one with tensor.to({sorted(owners)[0]!r})"
                )
            if not owners:
                raise TypeError(f"{self.name}: expected an array, got {arrays!r}")
            (backend,) = owners.values()
            kernel = self.kernel_for(backend)
            if backend.scalar_array_type in types:
                for tables in scalar_tables.values():
                    tables.setdefault(backend.scalar_array_type, ScalarTable(backend.weak_scalar))
        self._kernels[types] = kernel
        return kernel

    def kernel_for(self, backend: Backend) -> Callable[..., Any]:
        """Return the kernel that computes this op on a backend's arrays."""
        from .registry import registry

        return registry().kernel(self, backend)

    def forget_kernels(self) -> None:
        """Drop remembered kernels, after the registry changed."""
        self._kernels.clear()

    def _coerce(
        self, inputs: tuple[Any, ...], scalars: bool = False
    ) -> tuple[tuple[Any, ...], list[Any]]:
        """Turn what users pass (variables, arrays, lists) into tensors; keep weak scalars weak."""
        from ..tensors.convert import operand

        if len(inputs) == 1:
            scalars = True
        handles = []
        for position, x in enumerate(inputs):
            if type(x) is Tensor or (type(x) in SCALARS and not scalars):
                handles.append(x)
            else:
                handles.append(operand(x, self, position, inputs))
        return tuple(handles), [x.array if type(x) is Tensor else x for x in handles]


def name_op(op: Op, arrays: Sequence[Any], error: Exception) -> None:
    """Raise a kernel's error with the op's name and what it was given; return if it has a name."""
    if isinstance(error, GradtapeError) or str(error).startswith(op.name):
        return
    given = [repr(x) if type(x) in SCALARS else describe(x.shape, x.dtype) for x in arrays]
    text = f"{op.name}: {error} (given {', '.join(given)})"
    try:
        named = type(error)(text)
    except TypeError:  # NumPy has error types of its own that are not made from a message
        named = TypeError(text)
    raise named from error


def unsure(shape: Any) -> bool:
    """Return whether a shape is not fully known (it is a symbol's)."""
    return shape is None or None in shape


def _signature(
    name: str,
    kernel: str | Callable[..., Any],
    inputs: Sequence[str] | None,
    params: Mapping[str, Any] | None,
) -> tuple[tuple[str, ...], dict[str, Any]]:
    """Return the names of a kernel's arrays, and its parameters with their defaults."""
    if isinstance(kernel, str):
        if inputs is None:
            raise PluginError(f"op {name!r}: name its inputs, the kernel {kernel!r} is only a name")
        return tuple(inputs), dict(params or {})
    arrays: list[str] = []
    defaults: dict[str, Any] = {}
    for parameter in list(inspect.signature(kernel).parameters.values())[1:]:
        if parameter.kind is parameter.KEYWORD_ONLY:
            defaults[parameter.name] = parameter.default
        elif parameter.kind is parameter.VAR_POSITIONAL:
            arrays.append("*" + parameter.name)
        elif parameter.kind is parameter.VAR_KEYWORD:
            raise PluginError(f"op {name!r}: its kernel takes **{parameter.name}; name parameters")
        elif parameter.default is not parameter.empty:
            raise PluginError(
                f"op {name!r}: {parameter.name!r} has a default but is positional; arrays are "
                "positional, parameters keyword-only"
            )
        else:
            arrays.append(parameter.name)
    return tuple(inputs) if inputs is not None else tuple(arrays), {**defaults, **(params or {})}


register_array_type(Tensor, 100, lambda op: op)

"""``Op``: an op as users call it, on tensors, recorded by tapes.

``UnaryOp`` and ``BinaryOp`` do the same for ops without parameters, at a lower cost.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from copy import deepcopy
from typing import Any

from ..base.array_types import ArrayHandle, describe
from ..base.context import active_graph, active_tapes
from ..base.dtypes import SCALARS
from ..base.sizes import Open, contains_instance, same_shape
from ..base.table import F
from ..errors import GradientError, GradtapeError, PluginError
from ..ops.dispatch import register_array_type, scalar_tables, transforms
from ..ops.primitive import Primitive
from ..ops.promotion import as_read
from ..ops.rule import BOTH
from .convert import operand
from .tensor import Tensor


class Op(Primitive):
    """A differentiable primitive.

    Parameters
    ----------
    name
        NumPy's or the array API's name; ``"distribution::name"`` for ops of other packages.
    kernel
        The name of a function in the array's namespace, or ``kernel(xp, *arrays, **params)``.
        Arrays are positional. Parameters are keyword-only and consist of Python values, so that
        they can be saved.
    inputs
        The arrays' names; by default read from the signature of a kernel that is a function.
        ``("*arrays",)`` means any number of arrays.
    gradients
        One gradient rule per input name (``NONDIFF`` for an input without one); see :class:`Rule`.
        They are for ops with one output.
    vjp
        Instead of ``gradients``, one rule for all inputs, for ops with many inputs or outputs:
        ``vjp(gs, inputs, outputs, needed, **params)`` returns a gradient (or None) per input.
    shapes_only
        The inputs (and ``"out"``) of which ``vjp`` reads only shape and dtype: tapes then do not
        keep their values alive.
    together
        Instead of ``gradients``, for an op that picks elements of its first input: one rule for
        many picks from the same input. ``together(gs, inputs, params)`` receives lists with an item
        per call and returns the sum of the gradients. It reads only the input's shape and dtype.
    infer
        The shape rule: ``infer(*specs, **params)`` returns ``(shape, dtype)``, or a list of them.
        A weak Python scalar is passed unchanged, without a spec.
    params
        Parameters with their defaults, in addition to those in the kernel's signature.
    broadcasts
        Whether inputs broadcast, so that gradients are summed back to each input's shape.
    holomorphic
        Whether the rules are derivatives of a holomorphic function, multiplied by ``g``: for
        complex values gradtape then conjugates them, as TensorFlow's convention requires.
    batch
        The batching rule for ``vmap``: ``"elementwise"``, or ``rule(op, arrays, batched, params)``,
        which returns the result with the hidden axis first; ``batched`` says which of the arrays
        have this axis. Without a rule, ``vmap`` runs the op once per example, and warns. A tape
        outside the batch records what the rule runs, on tensors. So if the rule keeps an input that
        the examples share as one array, the gradient of this input is also one array.
    jvp
        The forward rule: ``"linear"`` (in all differentiable inputs together), ``"multilinear"``
        (in each of them), or ``jvp(tangents, inputs, outputs, **params)``, which receives None for
        a zero tangent and returns the tangent of the output, or one per output. By default it is
        derived from the gradient rules.
    effect
        Whether the op has an effect besides its result. A trace then keeps it, in order, even if
        its result is not used. Its first input is a boolean that enables the effect, and the effect
        is disabled while ``muted`` is true.
    floating
        Whether it is defined for floating numbers only, or the names of the inputs for which it is.
        Their integers and booleans are then cast before it runs: to the dtype of the other ones, or
        to the default dtype if all are integers.
    view
        Whether the result may be a view of the first input; further inputs then only give its
        shape. ``"reshape"`` if the elements also keep their order. False if the result is always a
        new array, so that compiled programs may reuse the memory of its inputs. None, the default,
        says nothing.
    identity
        Whether it returns its first input unchanged and matters to tapes only. Runs without
        gradients leave it out.
    reads
        ``"values"``, the default, or ``"shapes"``: the result depends only on the shapes and dtypes
        of the inputs. It is then a constant wherever they are known, and no gradient is missed.
    integers
        How it computes the sizes of a trace, which may be expressions of unknown sizes: a function
        of NumPy arrays of Python integers and sizes, with the op's parameters, such as
        ``operator.add``. ``"moves"`` if the kernel only moves elements, so that it can move these.
        By default, a size that went through the op is unknown.
    ends_gradients
        Whether inputs without a gradient rule have none on purpose, or the names of those inputs.
        Paths that end there are not reported as broken. An input called ``like`` always does.
    pointwise
        Whether the formula for numbers also holds for each element of larger arrays, so that a
        saved gradient rule may use it at any rank. True by default if ``batch="elementwise"``.
    inline
        Whether compiled programs are faster with the steps of its portable kernel than with one
        call of a backend's kernel.
    random
        Whether it draws from the key that is its first input. The examples of a ``vmap`` then get
        keys of their own, and files for other runtimes refuse it.
    host
        Whether the kernel is for host memory, such as a function of C, Fortran or SciPy: it always
        receives NumPy and NumPy arrays. On a device they are copied, programs of JAX call back,
        and exports refuse the op. A function of a backend may return the backend's own kernel
        (a function of its arrays and the parameters), or None.
    verified
        Whether ``gradtape.testing.check_op`` passes for it. The shapes of its gradients are then
        not checked in every backward pass; otherwise, a wrong one is an error there.
    doc
        The docstring, in numpydoc's format. The sections ``Parameters``, ``Returns`` and ``Raises``
        are generated from the record if they are missing.

    Attributes
    ----------
    defaults : dict
        The default values of its parameters.
    variadic : bool
        Whether it takes any number of arrays.

    Raises
    ------
    PluginError
        If the kernel's signature has another form, the rules do not match the inputs, or what the
        record says is contradictory.

    Examples
    --------
    >>> from gradtape.plugin import Op
    >>> Op("example::cube", lambda xp, x: x**3, gradients={"x": lambda g, x: 3 * g * x * x})
    <op example::cube(x)>
    """

    __slots__ = ()

    # an op with several outputs returns a list of tensors; nearly all have one
    def __call__(self, *inputs: Any, **params: Any) -> Tensor:
        """Run the op on tensors, or values that convert to them; the active tapes record it."""
        if params and not self.verified:
            _refuse_tensors(self, params)
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
            if hasattr(kernel, "on_tensors"):
                followed: Any = kernel.on_tensors(inputs, params)
                if followed is not None:
                    return followed
        try:
            result = kernel(*arrays, **params)
        except Exception as error:
            graph = active_graph.get()
            if (
                graph is None
                or not contains_instance(tuple(params.values()), Open)
                or _any_transformed(arrays)
            ):
                name_op(self, arrays, error)
                raise
            result = graph.add(self, arrays, params)  # constant except for its sizes
        tapes = active_tapes.get()
        if tapes and params and not self.verified:
            params = _as_now(params)
        if tapes and self.floating and len(inputs) > 1:
            inputs = as_read(self, inputs)  # type: ignore[assignment]
        if type(result) is tuple or type(result) is list:
            if self._rules is not None:
                self._check_one_output(result)
            outputs = [Tensor(array) for array in result]
            for tape in tapes:
                tape.record_joint(self, inputs, outputs, params)
            return outputs  # type: ignore[return-value]
        output = Tensor(result)
        for tape in tapes:
            tape.record(self, inputs, output, params)
        return output

    def _coerce(
        self, inputs: tuple[Any, ...], scalars: bool = False
    ) -> tuple[tuple[Any, ...], list[Any]]:
        """Convert arguments (variables, arrays, lists) to tensors; keep weak scalars weak."""
        if len(inputs) == 1:
            scalars = True
        handles = []
        for position, x in enumerate(inputs):
            if type(x) is Tensor or (type(x) in SCALARS and not scalars):
                handles.append(x)
            else:
                handles.append(operand(x, self, position, inputs))
        return tuple(handles), [x.array if type(x) is Tensor else x for x in handles]

    def _check_one_output(self, results: Sequence[Any]) -> None:
        """Raise if the op has a gradient rule for each input, which is for one output only."""
        if any(self._rules or ()):
            raise PluginError(
                f"op {self.name!r} has {len(results)} outputs, but gradients= gives the gradient "
                "of one; pass vjp= instead, whose first argument has a gradient for each output"
            )

    def joint_rule(self, fn: Callable[..., Any]) -> Callable[..., Any]:
        """Return a rule with named parameters as a function of all inputs and outputs."""
        names = list(inspect.signature(fn).parameters)[1:]
        if names[:3] == ["inputs", "outputs", "needed"] and not self.defaults.keys() & names[:3]:
            return self._given_vjp(fn)
        known = (*self.inputs, "out", *self.defaults)
        for name in names:
            if name not in known:
                raise PluginError(
                    f"op {self.name!r}: the gradient rule {fn.__name__!r} has a parameter "
                    f"{name!r}; it may name {known}, or its parameters are (gs, inputs, outputs, "
                    "needed) and those of the op, as of Op(vjp=...)"
                )

        def vjp(
            gs: list[Any], inputs: Sequence[Any], outputs: Sequence[Any], needed: Any, **params: Any
        ) -> list[Any]:
            if len(outputs) > 1:
                raise GradientError(
                    f"op {self.name!r} has {len(outputs)} outputs, but its gradient rule "
                    f"{fn.__name__!r} is for one; write a rule with the parameters (gs, inputs, "
                    "outputs, needed), as for Op(vjp=...)"
                )
            given = {**dict(zip(self.inputs, inputs, strict=False)), "out": outputs[0]}
            # user code calls public ops, so it receives tensors even if the pass runs on arrays
            tensors = type(gs[0]) is Tensor
            if not tensors:
                given = {name: _wrapped(x) for name, x in given.items()}
            given.update(params)
            g = gs[0] if tensors else Tensor(gs[0])
            grads = fn(g, **{name: given[name] for name in names})
            listed = list(grads) if isinstance(grads, tuple) else [grads]
            if len(listed) != len(inputs):
                raise GradientError(
                    f"op {self.name!r}: its gradient rule {fn.__name__!r} returned {len(listed)} "
                    f"gradients for {len(inputs)} inputs"
                )
            found = [x.array if type(x) is Tensor and not tensors else x for x in listed]
            return self._summed(found, inputs, needed)

        return vjp

    def _given_vjp(self, fn: Callable[..., Any]) -> Callable[..., Any]:
        """Return a rule for all inputs that takes what ``vjp`` takes, for an op that broadcasts."""
        if not self.broadcasts:
            return fn

        def vjp(gs: Any, inputs: Any, outputs: Any, needed: Any, **params: Any) -> list[Any]:
            return self._summed(fn(gs, inputs, outputs, needed, **params), inputs, needed)

        return vjp

    def _summed(self, grads: Any, inputs: Sequence[Any], needed: Sequence[bool]) -> Any:
        """Return gradients in the shapes of the inputs, if the op broadcasts."""
        if not self.broadcasts or len(grads) != len(inputs):
            return grads
        return [
            F.unbroadcast_like(gx, x) if wanted and gx is not None else gx
            for gx, x, wanted in zip(grads, inputs, needed, strict=True)
        ]


def _any_transformed(arrays: Sequence[Any]) -> bool:
    return any(type(x) in transforms for x in arrays)


def _refuse_tensors(op: Op, params: dict[str, Any]) -> None:
    """Raise if a parameter is a tensor, which would get no gradient, and no trace knows."""
    for name, x in params.items():
        if isinstance(x, ArrayHandle) or isinstance(getattr(x, "value", None), ArrayHandle):
            raise TypeError(
                f"{op.name}: the parameter {name!r} is a {type(x).__name__}; parameters are Python "
                "values: pass a number, or let the kernel take it by position, as an input"
            )


def _as_now(params: dict[str, Any]) -> dict[str, Any]:
    """Return parameters for a tape, which the user's code cannot change before the gradient."""
    return {name: deepcopy(x) if type(x) in (list, dict) else x for name, x in params.items()}


def _wrapped(value: Any) -> Any:
    return value if type(value) in SCALARS else Tensor(value)


def name_op(op: Op, arrays: Sequence[Any], error: Exception) -> None:
    """Raise a kernel's error again with the op's name and arguments; return if it has a name.

    It already has a name if it comes from another op that the kernel runs.
    """
    if isinstance(error, (GradtapeError, Warning)) or hasattr(error, "named_op"):
        return
    text = str(error.args[0]) if isinstance(error, KeyError) and error.args else str(error)
    if text.startswith(op.name):
        return
    if isinstance(error, TypeError) and text.startswith("ufunc "):  # NumPy's words are of its code
        text = "it is not defined for these dtypes; cast with x.astype(dtype)"
    given = [repr(x) if type(x) in SCALARS else describe(x.shape, x.dtype) for x in arrays]
    text = f"{op.name}: {text.rstrip()} (given {', '.join(given)})"
    for kind in type(error).__mro__:  # some error types need more than a message
        try:
            named = kind(text)
            break
        except TypeError:
            continue
    named.named_op = op.name
    raise named from error


register_array_type(Tensor, 100, lambda op: op)


# -- the fast paths --------------------------------------------------------------------------------


# A small model spends most of its time here. So these paths are written out: they dispatch, and
# write the most common record into the tapes themselves. A function for the record alone would make
# a recorded op of two arrays 4 to 6 % slower.

_NO_PARAMS: dict[str, Any] = {}


class UnaryOp(Op):
    """An op of one array without parameters: the behaviour of ``Op`` at a lower cost."""

    __slots__ = ()

    # TensorFlow programs label ops; a label has no effect here
    def __call__(self, x: Any, name: str | None = None) -> Tensor:
        if type(x) is not Tensor:
            return Op.__call__(self, x)
        array = x.array
        kernel = self._kernels.get(type(array)) or self.resolve((array,))
        try:
            result = kernel(array)
        except Exception as error:
            name_op(self, (array,), error)
            raise
        output = Tensor(result)
        for tape in active_tapes.get():
            records = tape.records
            if x.id in records:
                quick = self.quick[0]
                if quick is None or getattr(result.dtype, "kind", "c") == "c" or tape.wants_ops:
                    tape.record(self, (x,), output, _NO_PARAMS)
                    continue
                place, fn, check = quick
                if check is not None and (
                    type(array) in transforms
                    or array.dtype is not result.dtype
                    or array.shape != result.shape
                ):
                    tape.record(self, (x,), output, _NO_PARAMS)
                    continue
                if place == BOTH:
                    records[output.id] = (x.id, fn, (x, output), check)
                    continue
                saved = x if place == 0 else output if place == 1 else None
                records[output.id] = (x.id, fn, saved, check)
        return output

    def raw(self, x: Any) -> Any:
        return (self._kernels.get(type(x)) or self.resolve((x,)))(x)

    def resolve(self, arrays: Sequence[Any]) -> Callable[..., Any]:
        kernel = super().resolve(arrays)
        kind = type(arrays[0])  # the first run may be checked, and later ones are not
        self._kernels[kind] = self._kernels.get((kind,), kernel)
        return kernel


class BinaryOp(Op):
    """An op of two arrays without parameters: the behaviour of ``Op`` at a lower cost."""

    __slots__ = ()

    def __call__(self, x: Any, y: Any, name: str | None = None) -> Tensor:
        table = None
        try:
            if type(x) is Tensor:
                a = x.array
                if type(y) is Tensor:
                    b = y.array
                elif (tables := scalar_tables.get(type(y))) is not None:
                    table = tables.get(type(a))
                    b = y = y if table is None else table[y, a.dtype]
                else:
                    return Op.__call__(self, x, y)
            elif type(y) is Tensor and (tables := scalar_tables.get(type(x))) is not None:
                b = y.array
                table = tables.get(type(b))
                a = x = x if table is None else table[x, b.dtype]
            else:
                return Op.__call__(self, x, y)
        except OverflowError:
            if table is None:
                raise
            # a Python integer that does not fit the dtype: comparisons, and ops whose result has
            # another dtype, take it unchanged, and other kernels raise
            a, b = getattr(x, "array", x), getattr(y, "array", y)
        kernel = self._kernels.get((type(a), type(b)))
        if kernel is None:
            kernel = self.resolve((a, b))
            if hasattr(kernel, "on_tensors"):
                followed: Any = kernel.on_tensors((x, y), _NO_PARAMS)
                if followed is not None:
                    return followed
        try:
            result = kernel(a, b)
        except Exception as error:
            name_op(self, (a, b), error)
            raise
        output = Tensor(result)
        tapes = active_tapes.get()
        if tapes and self.floating:
            x, y = as_read(self, (x, y))
            a, b = getattr(x, "array", x), getattr(y, "array", y)
        for tape in tapes:
            records = tape.records
            x_live = x is not a and x.id in records
            y_live = y is not b and y.id in records
            if x_live is y_live:
                if x_live or tape.checks_constants:
                    tape.record(self, (x, y), output, _NO_PARAMS)
                continue
            # one watched operand with the result's shape and dtype is by far the most common case
            if x_live:
                source, array, quick = x, a, self.quick[0]
            else:
                source, array, quick = y, b, self.quick[1]
            dtype = array.dtype
            if (
                quick is None
                or dtype is not result.dtype
                or getattr(dtype, "kind", "c") == "c"  # other libraries' dtypes may have none
                or tape.wants_ops
                # a scalar does not change the shape
                or (table is None and not same_shape(array.shape, result.shape))
            ):
                tape.record(self, (x, y), output, _NO_PARAMS)
                continue
            place, fn, check = quick
            if check is not None and type(array) in transforms:
                tape.record(self, (x, y), output, _NO_PARAMS)
                continue
            saved = None if place < 0 else x if place == 0 else y if place == 1 else output
            records[output.id] = (source.id, fn, saved, check)
            if tape.checks_constants and (x is a or y is b):
                tape.look_at_numbers((x, y), (output,), False)
        return output

    def raw(self, x: Any, y: Any) -> Any:
        return (self._kernels.get((type(x), type(y))) or self.resolve((x, y)))(x, y)

"""Checks of the gradients that rules return, unless an op's record says that it was verified."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ..base.array_types import ArrayHandle
from ..base.dtypes import SCALARS, is_differentiable, kind_of, numpy_dtype
from ..base.sizes import same_shape, shapes_differ
from ..base.table import F, above
from ..errors import BackendMismatch, GradientError
from .dispatch import shape_witness
from .primitive import Primitive
from .rule import Rule, inferred, remember
from .unchanged import Unchanged


def check_rules(op: Primitive) -> None:
    """Make the rules of ``op`` raise if they return a gradient of a wrong shape.

    Such a gradient would be broadcast in the backward pass, and the results would be silently
    wrong. A gradient of another dtype is cast.
    """
    for name, rule in zip(op.inputs, op.rules or (), strict=False):
        if rule is not None and not rule.checked:
            _check_rule(op, name, rule)
    op.rules = op.rules  # updates the quick paths
    if op.together is not None:
        if not hasattr(op.together, "checks"):
            op.pick_by(_checked_together(op, op.together))
    elif op.vjp is not None and not hasattr(op.vjp, "checks"):
        op.replace_vjp(_checked_vjp(op, op.vjp))


class Check:
    """Compares gradients with upstream gradients, for an input like the op's result.

    The backward pass compares shapes and dtypes itself, and asks only if they differ.
    """

    __slots__ = ("name", "op")

    def __init__(self, op: Primitive, name: str) -> None:
        self.op, self.name = op, name

    def held(self, gradient: Any, g: Any) -> Any:
        """Return a gradient in the shape and dtype of ``g``; raise if it has another shape."""
        if not _contain_tensors(g):  # a rule that calls public functions in some cases only
            gradient = _as_arrays(gradient)
        return _checked_gradient(self.op, self.name, gradient, g)

    def around(self, fn: Callable[..., Any]) -> Callable[..., Any]:
        """Return a rule's function with this check."""

        def rule(g: Any, *values: Any, **keywords: Any) -> Any:
            return self.held(fn(g, *values, **keywords), g)

        remember(rule, self.op.name)
        return rule


def _check_rule(op: Primitive, name: str, rule: Rule) -> None:
    pick, position = rule.pick, op.inputs.index(name)
    same = rule.fn_complex is rule.fn
    rule.pick = lambda values: (*pick(values), shape_witness(values[position]))
    # tapes run the function itself where input and result have one shape and dtype
    rule.check = Check(op, name)
    rule.plain = _FirstRuns(op, rule), *rule.plain[1:]
    rule.fn = _checked(op, name, rule.fn)
    rule.fn_complex = rule.fn if same else _checked(op, name, rule.fn_complex)
    rule.single = None
    rule.checked = True


class _OnTensors:
    """Runs a gradient rule on arrays, or on tensors if the rule calls public functions.

    Public functions take and return tensors: on arrays they copy, and select the current backend.
    A rule shows that it calls them by returning a tensor for arrays, or by mixing backends. From
    then on it receives tensors, so that rules which need none stay as fast as the arrays are.
    """

    __slots__ = ("__weakref__", "fn", "looks", "name", "needed")

    def __init__(self, fn: Callable[..., Any], op: Primitive) -> None:
        self.fn, self.name = fn, op.name
        self.needed = False
        #: Whether the next run shows whether the rule writes into arrays.
        self.looks = True

    def _run(self, g: Any, *args: Any, **keywords: Any) -> Any:
        """Return what the rule returns; raise if its first run writes into an array."""
        if not self.looks:
            return self.fn(g, *args, **keywords)
        before = Unchanged((g, *args))
        try:
            found = self.fn(g, *args, **keywords)
        except ValueError as error:
            if "read-only" in str(error):  # upstream gradients may be views of one number
                raise self._wrote() from error
            raise
        if not before.holds():
            raise self._wrote()
        self.looks = False
        return found

    def _wrote(self) -> GradientError:
        return GradientError(
            f"op {self.name!r}: its gradient rule wrote into the upstream gradient, or into an "
            "input or output of the op, which tensors hold; let it compute new arrays (g = g * 2 "
            "instead of g *= 2)"
        )

    def __call__(self, g: Any, *args: Any, **keywords: Any) -> Any:
        on_arrays = not _contain_tensors(g)
        if not (self.needed and on_arrays):
            try:
                found = self._run(g, *args, **keywords)
            except BackendMismatch:
                if not on_arrays:
                    raise
            else:
                if not (on_arrays and _contain_tensors(found)):
                    return found
            self.needed = True
        found = self.fn(_as_tensors(g), *map(_as_tensors, args), **keywords)
        return _as_arrays(found)


class _FirstRuns(_OnTensors):
    """A rule's function on the quick path, until a run on arrays shows whether it needs tensors."""

    __slots__ = ("op", "rule")

    def __init__(self, op: Primitive, rule: Rule) -> None:
        super().__init__(rule.fn, op)
        self.op, self.rule = op, rule

    def __call__(self, g: Any, *args: Any, **keywords: Any) -> Any:
        found = super().__call__(g, *args, **keywords)
        if not self.needed and self.rule.plain[0] is self and not _contain_tensors(g):
            self.rule.plain = self.fn, *self.rule.plain[1:]
            self.rule.belongs_to(self.op.name)
            self.op.rules = self.op.rules  # updates the quick paths
        return found


def _contain_tensors(value: Any) -> bool:
    if isinstance(value, (list, tuple)):
        return any(map(_contain_tensors, value))
    return isinstance(value, ArrayHandle)


def _as_tensors(value: Any) -> Any:
    if isinstance(value, (list, tuple)):
        return type(value)(map(_as_tensors, value))
    if value is None or type(value) in SCALARS or isinstance(value, ArrayHandle):
        return value
    return above.Tensor(value)


def _as_arrays(value: Any) -> Any:
    if isinstance(value, (list, tuple)):
        return type(value)(map(_as_arrays, value))
    return value.array if isinstance(value, ArrayHandle) else value


def _checked(op: Primitive, name: str, fn: Callable[..., Any]) -> Callable[..., Any]:
    fn = _OnTensors(fn, op)

    def rule(g: Any, *picked: Any, **keywords: Any) -> Any:
        gradient, x = fn(g, *picked[:-1], **keywords), picked[-1]
        if op.broadcasts:  # summed to the input's shape and cast to its dtype later
            _check_shape(op, name, gradient, g)
            gradient = shaped_like(gradient, g, _what(op, name))
            return gradient if kind_of(g.dtype) == "c" else _in_dtype_of(x, gradient)
        return _checked_gradient(op, name, gradient, x)

    return rule


def _checked_vjp(op: Primitive, vjp: Callable[..., Any]) -> Callable[..., Any]:
    run = _OnTensors(vjp, op)

    def checked(
        gs: Any, inputs: Sequence[Any], outputs: Any, needed: Sequence[bool], **params: Any
    ) -> Any:
        gradients = run(gs, inputs, outputs, needed, **params)
        if not isinstance(gradients, (list, tuple)):
            raise GradientError(
                f"op {op.name!r}: its gradient rule returned {gradients!r}, not a list with a "
                "gradient (or None) for each input"
            )
        if len(gradients) != len(inputs):
            raise GradientError(
                f"op {op.name!r}: its gradient rule returned {len(gradients)} gradients for "
                f"{len(inputs)} inputs"
            )
        names = (op.inputs[min(i, len(op.inputs) - 1)] for i in range(len(inputs)))
        try:
            return [
                _checked_gradient(op, name, gradient, x)
                if wanted and gradient is not None
                else None
                for name, gradient, x, wanted in zip(names, gradients, inputs, needed, strict=True)
            ]
        except GradientError as error:
            _blame_inputs(op, inputs, params, error)
            raise

    checked.checks = vjp  # type: ignore[attr-defined]
    return checked


def _blame_inputs(
    op: Primitive, inputs: Sequence[Any], params: dict[str, Any], error: Exception
) -> None:
    """Raise another error for a wrong gradient if the shape rule refuses the op's inputs."""
    sizes = [x.shape or () for x in inputs if type(x) not in SCALARS]
    if op.infer is None or any(type(n) is not int for shape in sizes for n in shape):
        return
    try:
        inferred(op, inputs, params)
    except (TypeError, ValueError) as refusal:
        raise GradientError(
            f"op {op.name!r}: its shape rule (infer=) refuses these inputs, but its kernel accepts "
            f"them: {refusal}. A shape rule runs in traces only, so raise the error in the kernel "
            "too"
        ) from error


def _checked_together(op: Primitive, together: Callable[..., Any]) -> Callable[..., Any]:
    run = _OnTensors(lambda gs, inputs, *, params: together(gs, inputs, params), op)

    def checked(gs: Any, inputs: Sequence[Any], params: Any) -> Any:
        return _checked_gradient(op, op.inputs[0], run(gs, inputs, params=params), inputs[0][0])

    checked.checks = together  # type: ignore[attr-defined]
    return checked


def _checked_gradient(op: Primitive, name: str, gradient: Any, x: Any) -> Any:
    _check_shape(op, name, gradient, x)
    return _in_dtype_of(x, shaped_like(gradient, x, _what(op, name)))


def shaped_like(gradient: Any, x: Any, what: str) -> Any:
    """Return a gradient that has the shape of ``x``; each run checks what a trace cannot.

    Parameters
    ----------
    gradient
        An array or tensor that may have this shape, as far as is known.
    x
        An array or tensor.
    what
        What the gradient is, for the error of a run in which it has another shape.
    """
    if same_shape(gradient.shape, x.shape):
        return gradient
    return F.shaped_like(gradient, x, what=what)


def _what(op: Primitive, name: str) -> str:
    return f"op {op.name!r}: the gradient that the rule of {name!r} returned"


def _in_dtype_of(x: Any, gradient: Any) -> Any:
    """Return a gradient in the dtype of ``x``: the real part if only the gradient is complex."""
    dtype = numpy_dtype(x.dtype)
    if numpy_dtype(gradient.dtype) == dtype or not is_differentiable(dtype):
        return gradient
    return F.cast(gradient, dtype=dtype.name)


def _check_shape(op: Primitive, name: str, gradient: Any, like: Any) -> None:
    if not hasattr(gradient, "shape"):
        raise GradientError(
            f"op {op.name!r}: the gradient rule of {name!r} returned {gradient!r}, not an array; "
            "for an input without a gradient, write NONDIFF instead of a rule"
        )
    got, want = gradient.shape, like.shape
    if shapes_differ(got, want):
        broadcast = "sum it with F.unbroadcast_like" if op.vjp else "say broadcasts=True"
        hint = "" if op.broadcasts else f"if the op's inputs broadcast, {broadcast}; "
        raise GradientError(
            f"op {op.name!r}: the gradient rule of {name!r} returned shape {got}, but it must "
            f"return shape {want}; {hint if len(op.inputs) > 1 else ''}if the op's inputs do not "
            "match, its kernel must refuse them"
        )

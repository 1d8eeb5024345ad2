"""From a row of a table to an op: a ufunc of SciPy, and a formula for each derivative.

A formula is the text of a Python expression, so that the page of formulas in the documentation
shows what runs. Its names are the ufunc's arguments, ``out`` for the result, and functions: SciPy's
by SciPy's names, NumPy's by NumPy's names.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import import_module
from math import pi
from typing import Any

import numpy as np

from ...core.errors import GradientError
from ...core.extend import (
    SCALARS,
    Backend,
    BackendUnavailable,
    F,
    Op,
    Operators,
    UnaryOp,
    broadcast_shapes,
    kind_of,
    ops,
)
from ..ops.common.op_builders import shapes_of

#: The ops of this plugin, in the order of definition.
OPS: list[Op] = []


@dataclass(frozen=True)
class NoDerivative:
    """Says, instead of a formula, why a derivative is not available."""

    reason: str


#: A formula; for several outputs, one for each of them.
Formula = str | tuple[str, ...] | NoDerivative


@dataclass(frozen=True)
class UfuncRow:
    """A ufunc: its derivatives by argument, the source of the formulas, and its function here."""

    name: str
    source: str
    formulas: dict[str, Formula]
    run: Callable[..., Any]
    private: bool = False

    @property
    def differentiable(self) -> list[str]:
        """The arguments that have a derivative."""
        return [x for x, rule in self.formulas.items() if not isinstance(rule, NoDerivative)]


#: The rows by SciPy's name, in the order of definition.
FUNCTIONS: dict[str, UfuncRow] = {}
_NUMPY = (
    "abs cos cosh exp expm1 floor imag log log1p maximum minimum real round sign sin sinc sinh "
    "sqrt tan where zeros_like"
).split()
#: The names that formulas may contain.
NAMES: dict[str, Any] = {"pi": pi}


def _on_any(name: str, op: str, module: str) -> Callable[..., Any]:
    """Return a function for formulas: an op, or SciPy's function if all arguments are numbers."""

    def call(*arrays: Any) -> Any:
        if all(type(x) in SCALARS for x in arrays):
            return scipys(name, module)(*arrays).item()
        return F[op](*arrays)

    return call


NAMES.update({name: _on_any(name, name, "numpy") for name in _NUMPY})


def known(name: str, op: str, source: str, **formulas: Formula) -> None:
    """Use an op of gradtape for a ufunc that computes the same."""
    NAMES[name] = _on_any(name, op, "scipy.special")

    def run(*tensors: Any) -> Any:
        return ops[op](*tensors)

    run.__name__ = name
    FUNCTIONS[name] = UfuncRow(name, source, formulas, run)


def scipys(name: str, module: str = "scipy.special") -> Any:
    """Return a function of SciPy, or of another module."""
    try:
        return getattr(import_module(module), name)
    except ImportError as error:
        raise BackendUnavailable(
            "its kernel comes from SciPy, which is not installed; pip install scipy"
        ) from error


def _kernel(name: str, module: str, complex_: bool) -> Callable[..., Any]:
    """Return the kernel of a ufunc, for NumPy's arrays."""

    def kernel(xp: Any, *arrays: Any) -> Any:
        if not complex_:
            _check_real(arrays)
        found = scipys(name, module)(*arrays)
        dtype = np.result_type(*arrays)
        if dtype.kind != "f" or dtype.itemsize > 4:
            return found
        # SciPy computes some functions in double precision only, and none in half
        if isinstance(found, tuple):
            return tuple([_narrowed(y, dtype) for y in found])
        return _narrowed(found, dtype)

    return kernel


def _native(name: str, module: str, complex_: bool) -> Callable[[Backend], Any]:
    """Return the function that looks for a backend's own kernel of a ufunc."""

    def own(backend: Backend) -> Callable[..., Any] | None:
        found = getattr(backend.special, name, None) if module == "scipy.special" else None
        if found is None or complex_:
            return found

        def run(*arrays: Any) -> Any:
            _check_real(arrays)
            return found(*arrays)

        return run

    return own


def _check_real(arrays: Sequence[Any]) -> None:
    for x in arrays:
        if type(x) is complex or (type(x) not in SCALARS and kind_of(x.dtype) == "c"):
            raise TypeError("its derivatives are for real numbers, got a complex one")


def _narrowed(y: Any, dtype: Any) -> Any:
    """Return results in the precision of the arguments."""
    if y.dtype.kind == "c":
        return y.astype(np.complex64)
    return y if y.dtype == dtype else y.astype(dtype)


def _infer(kernel: Callable[..., Any], name: str) -> Callable[..., Any]:
    def infer(*specs: Any) -> Any:
        shape = broadcast_shapes(*shapes_of(specs), op=name)
        empty = [x if type(x) in SCALARS else np.empty(0, x.dtype) for x in specs]
        found = kernel(np, *empty)
        if isinstance(found, tuple):
            return [(shape, y.dtype) for y in found]
        return shape, found.dtype

    return infer


def refused(name: str, argument: str, reason: str, guard: str = "") -> Callable[..., Any]:
    """Return the gradient rule of an argument without a derivative."""

    def rule(g: Any) -> Any:
        op = guard or f"scipy::{name.lstrip('_')}"
        raise GradientError(
            f"scipy.special.{name}: no formula is known for the derivative with respect to "
            f"{argument!r} ({reason}); hold it constant with gradtape.stop_gradient({argument}), "
            f"or provide a rule for the op {op!r} with gradtape.register_gradient"
        )

    return rule


def _rule(name: str, argument: str, formulas: dict[str, Formula]) -> Any:
    """Return the gradient rule of an argument."""
    formula, inputs = formulas[argument], tuple(formulas)
    smooth = [x for x, other in formulas.items() if not isinstance(other, NoDerivative)]
    if isinstance(formula, NoDerivative):
        return refused(name, argument, formula.reason)
    tree = ast.parse(str(formula), mode="eval")
    used = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
    names = ", ".join(["g", *(x for x in (*inputs, "out") if x in used)])
    text = f"g * ({formula})"
    if len(inputs) > 1:  # any of the smooth arguments may be a Python number
        arrays = [x for x in smooth if x in used]
        given = ", ".join(f"filled({x}, g)" for x in arrays)
        text = f"(lambda {', '.join(arrays)}: {text})({given})"
    return eval(f"lambda {names}: {text}", NAMES)


def _filled(x: Any, like: Any) -> Any:
    """Return an array for a Python number, with the shape and dtype of another one."""
    return F.zeros_like(like) + x if type(x) in SCALARS else x


NAMES.update(filled=_filled)


def ufunc(
    name: str,
    source: str,
    *,
    complex: bool = False,
    results: Sequence[str] = (),
    module: str = "scipy.special",
    **formulas: Formula,
) -> None:
    """Make the op of a ufunc, from the formulas of its derivatives by argument.

    Parameters
    ----------
    name
        SciPy's name.
    source
        Where the formulas are from.
    complex
        Whether the function is holomorphic, and SciPy computes it for complex numbers.
    results
        The names of the results in formulas, if there are several.
    module
        The module that has the ufunc.
    formulas
        By argument, in order: the derivative, the derivatives of all results, or a refusal.
    """
    inputs, op_name = tuple(formulas), f"scipy::{name.lstrip('_')}"
    kernel = _kernel(name, module, complex)
    record: dict[str, Any] = {
        "inputs": inputs,
        "infer": _infer(kernel, op_name),
        "verified": True,
        "host": _native(name, module, complex),
        "batch": "elementwise",
        "doc": f"Return ``scipy.special.{name}``, elementwise.",
    }
    if results:
        op = Op(op_name, kernel, vjp=_joint(inputs, results, formulas), **record)
    else:
        # if a result may be complex, the gradient of a real input is cast
        alone = len(inputs) == 1 and not complex
        rules = {x: _rule(name, x, formulas) for x in formulas}
        record |= {"gradients": rules, "broadcasts": not alone, "holomorphic": complex}
        op = (UnaryOp if alone else Op)(op_name, kernel, **record)
    OPS.append(op)
    NAMES[name.lstrip("_")] = _on_any(name, op_name, module)
    run = _without_derivatives(op, name, formulas) if results else op
    FUNCTIONS[name] = UfuncRow(name, source, formulas, run, name.startswith("_"))


def helper(op: Op, name: str, call: Callable[..., Any]) -> None:
    """Add an op that only formulas use, and the function that calls it there."""
    OPS.append(op)
    NAMES[name] = call


# -- several results -------------------------------------------------------------------------------


def _joint(
    inputs: Sequence[str], results: Sequence[str], formulas: dict[str, Formula]
) -> Callable[..., Any]:
    """Return the gradient rule of a ufunc with several results."""
    names = ", ".join((*inputs, *results))
    slopes: dict[str, list[Callable[..., Any]]] = {
        x: [eval(f"lambda {names}: {part}", NAMES) for part in parts]
        for x, parts in formulas.items()
        if isinstance(parts, tuple)
    }

    def vjp(gs: Any, xs: Any, ys: Any, needed: Sequence[bool]) -> list[Any]:
        grads: list[Any] = []
        for x, argument, wanted in zip(xs, inputs, needed, strict=True):
            if not wanted:
                grads.append(None)
            elif argument not in slopes:
                # `_without_derivatives` refuses it, if its gradient is really asked for
                grads.append(F.zeros_like(x))
            else:
                grads.append(_total(gs, [f(*xs, *ys) for f in slopes[argument]], x))
        return grads

    # the slope of an unused result may be infinite, and its product with 0 would be nan
    vjp.takes_none = True  # type: ignore[attr-defined]
    return vjp


def _total(gs: Sequence[Any], slopes: Sequence[Any], x: Any) -> Any:
    """Return the gradient of an input from those of all results; None for an unused result."""
    total = None
    for g, slope in zip(gs, slopes, strict=True):
        if g is None or (type(slope) in SCALARS and slope == 0):
            continue
        part = g * slope if kind_of(g.dtype) != "c" else g * F.conj(slope)
        total = part if total is None else total + part
    return F.zeros_like(x) if total is None else F.unbroadcast_like(total, x)


def _without_derivatives(op: Op, name: str, formulas: dict[str, Formula]) -> Callable[..., Any]:
    """Return a function that passes each input without a derivative through an op that says so."""
    guards: list[UnaryOp | None] = []
    for argument, refusal in formulas.items():
        if not isinstance(refusal, NoDerivative):
            guards.append(None)
            continue
        op_name = f"scipy::{name}_{argument}"
        guard = UnaryOp(
            op_name,
            lambda xp, x: x,
            inputs=("x",),
            gradients={"x": refused(name, argument, refusal.reason, op_name)},
            infer=lambda x: (x.shape, x.dtype),
            batch="elementwise",
            doc=f"Return ``x``, which is the argument ``{argument}`` of ``{name}``.",
        )
        OPS.append(guard)
        guards.append(guard)
    if not any(guards):
        return op

    def call(*given: Any) -> Any:
        held = [
            guard(x) if guard is not None and isinstance(x, Operators) else x
            for x, guard in zip(given, guards, strict=True)
        ]
        return op(*held)

    call.__name__ = name
    return call

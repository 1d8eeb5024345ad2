"""Builders of ops and of elementwise ops, and names of functions in errors."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

import numpy as np

from ....core.errors import BackendMismatch, GradtapeError
from ....core.extend import BinaryOp, Op, TensorSpec, UnaryOp, broadcast_shapes, device_of_tensors
from .axes import reduced_axes
from .kernels import SCALARS

#: The ops of this package, in the order of definition.
OPS: list[Op] = []
Function = TypeVar("Function", bound=Callable[..., Any])


def op(name: str, kernel: str | Callable[..., Any], kind: type[Op] = Op, **record: Any) -> Op:
    """Make an op and list it for the plugin."""
    made = kind(name, kernel, verified=True, **record)
    OPS.append(made)
    return made


def named(function: Function) -> Function:
    """Put a public function's name into the errors of the ops that it calls."""
    return _carrying(function.__name__, function)


def named_in(space: str) -> Callable[[Function], Function]:
    """Return :func:`named` for functions of a namespace; errors show its name, too."""
    return lambda function: _carrying(f"{space}.{function.__name__}", function)


def _carrying(name: str, function: Function) -> Function:
    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        try:
            try:
                return function(*args, **kwargs)
            except BackendMismatch:
                # again, with Python's numbers on the backend of the tensors among the arguments
                elsewhere = device_of_tensors((args, kwargs))
                if elsewhere is None:
                    raise
                with elsewhere:
                    return function(*args, **kwargs)
        except (IndexError, TypeError, ValueError, ArithmeticError) as error:
            text = _renamed(name, error)
            if text is None:
                raise
            try:
                renamed = type(error)(text)
            except TypeError:  # some of NumPy's error types are not made from a message
                renamed = TypeError(text)
            # the user sees one error, from where it was raised, under the name that was called
            raise renamed.with_traceback(error.__traceback__) from error.__cause__

    return call  # type: ignore[return-value]


def _renamed(name: str, error: Exception) -> str | None:
    """Return the new text of an error; None if it has a name or is not about arguments."""
    if isinstance(error, GradtapeError) and not isinstance(error, BackendMismatch):
        return None
    text = str(error)
    if re.match(rf"{re.escape(name)}\b", text):
        return None
    return f"{name}: {_INNER_NAME.sub('', text)}"


_INNER_NAME = re.compile(r"^([\w.]+(::\w+)?: )+")


def shapes_of(specs: Sequence[Any]) -> list[Any]:
    """Return the shapes of specs; a Python scalar has none."""
    return [() if isinstance(spec, SCALARS) else spec.shape for spec in specs]


def result_dtype(kernel: str | Callable[..., Any], specs: Sequence[Any], **params: Any) -> Any:
    """Return the dtype of a kernel's result, found by running it on empty arrays."""
    empty = [x if isinstance(x, SCALARS) else np.empty(0, x.dtype) for x in specs]
    run = getattr(np, kernel) if isinstance(kernel, str) else kernel
    result = run(*empty, **params) if isinstance(kernel, str) else run(np, *empty, **params)
    return result.dtype


def elementwise(
    name: str,
    kernel: str | Callable[..., Any] | None = None,
    doc: str = "",
    kind: type[Op] | None = None,
    holomorphic: bool = True,
    floating: bool = False,
    record: Mapping[str, Any] | None = None,
    **rules: Callable[..., Any] | None,
) -> Op:
    """Make an elementwise op: its inputs broadcast, and its gradient rules use their names.

    ``kernel`` is a function name in the array namespace (the op's own name by default) or
    ``kernel(xp, *arrays)``. ``record`` has further arguments of :class:`Op`.
    """
    kernel = kernel or name
    inputs = tuple(rules)

    def infer(*specs: TensorSpec, **params: Any) -> tuple[Any, Any]:
        shape = broadcast_shapes(*shapes_of(specs), op=name)
        return shape, result_dtype(kernel, specs, **params)

    return op(
        name,
        kernel,
        kind or {1: UnaryOp, 2: BinaryOp}.get(len(inputs), Op),
        inputs=inputs,
        gradients=rules,
        infer=infer,
        broadcasts=len(inputs) > 1,
        holomorphic=holomorphic,
        batch="elementwise",
        floating=floating,
        doc=doc,
        **(record or {}),
    )


def same_shape(
    name: str, dtype: Callable[[Any], Any] | None = None, parameter: str = "axis"
) -> Callable[..., tuple[Any, Any]]:
    """Return the shape rule of an op that keeps the shape; its axis, if any, must exist."""

    def infer(x: Any, **params: Any) -> tuple[Any, Any]:
        axis = params[parameter]
        if x.shape is not None and axis is not None:
            reduced_axes(axis, len(x.shape), name)
        return x.shape, x.dtype if dtype is None else dtype(x.dtype)

    return infer


def same_spec(x: Any, **params: Any) -> tuple[Any, Any]:
    return x.shape, x.dtype

"""What the ops of a family share: shape rules, dtype rules, and the helpers that build the ops."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ...core.extend import BinaryOp, Op, TensorSpec, UnaryOp, broadcast_shapes

SCALARS = (bool, int, float, complex)

#: The ops of this package, in the order of definition.
OPS: list[Op] = []


def op(name: str, kernel: str | Callable[..., Any], kind: type[Op] = Op, **record: Any) -> Op:
    """Make an op and list it for the plugin."""
    made = kind(name, kernel, **record)
    OPS.append(made)
    return made


def shapes_of(specs: Sequence[Any]) -> list[Any]:
    """Return the shapes of specs; a Python scalar has none."""
    return [() if isinstance(spec, SCALARS) else spec.shape for spec in specs]


def result_dtype(kernel: str | Callable[..., Any], specs: Sequence[Any], **params: Any) -> Any:
    """Return the dtype that a kernel gives, by running it on arrays without elements."""
    empty = [x if isinstance(x, SCALARS) else np.empty(0, x.dtype) for x in specs]
    run = getattr(np, kernel) if isinstance(kernel, str) else kernel
    result = run(*empty, **params) if isinstance(kernel, str) else run(np, *empty, **params)
    return result.dtype


def elementwise(
    name: str,
    kernel: str | Callable[..., Any] | None = None,
    doc: str = "",
    **rules: Callable[..., Any] | None,
) -> Op:
    """Make an elementwise op: its rules are named for its inputs, which broadcast.

    ``kernel`` is a function name in the array namespace (the op's own name by default) or
    ``kernel(xp, *arrays)``.
    """
    kernel = kernel or name
    inputs = tuple(rules)

    def infer(*specs: TensorSpec) -> tuple[Any, Any]:
        return broadcast_shapes(*shapes_of(specs), op=name), result_dtype(kernel, specs)

    return op(
        name,
        kernel,
        {1: UnaryOp, 2: BinaryOp}.get(len(inputs), Op),
        inputs=inputs,
        gradients=rules,
        infer=infer,
        broadcasts=len(inputs) > 1,
        holomorphic=True,
        batch="elementwise",
        doc=doc,
    )

"""Checks of the tape methods' arguments: targets, sources, upstream gradients and choices."""

from __future__ import annotations

import enum
from typing import Any

from ..base.context import reducing
from ..base.dtypes import is_differentiable
from ..base.sizes import same_shape
from ..base.spec import TensorSpec
from ..base.tree import flatten
from ..ops.dispatch import check_alive
from ..tensors.convert import as_tensor
from ..tensors.tensor import Tensor
from ..tensors.variable import Variable


class UnconnectedGradients(enum.Enum):
    """What :meth:`GradientTape.gradient` returns for a source that does not influence the target.

    ``NONE`` (or ``"none"``) gives ``None``, and ``ZERO`` (or ``"zero"``) gives zeros of the
    source's shape and dtype.

    Examples
    --------
    >>> x, y = gt.constant(1.0), gt.constant(2.0)
    >>> with gt.GradientTape() as tape:
    ...     tape.watch([x, y])
    ...     z = 3.0 * x
    >>> tape.gradient(z, [x, y], unconnected_gradients=gt.UnconnectedGradients.ZERO)[1].item()
    0.0
    """

    NONE = "none"
    ZERO = "zero"


def check_rows(parallel_iterations: int | None, name: str) -> None:
    if parallel_iterations is None:
        return
    if isinstance(parallel_iterations, bool) or not isinstance(parallel_iterations, int):
        raise TypeError(
            f"{name}: parallel_iterations must be an integer or None, got {parallel_iterations!r}"
        )
    if parallel_iterations < 1:
        raise ValueError(
            f"{name}: parallel_iterations must be at least 1, got {parallel_iterations}"
        )


def handle_of(leaf: Any, argument: str, method: str = "gradient") -> Tensor:
    """Return the tensor of a target or source. This does not watch a variable."""
    if type(leaf) is Tensor:
        check_alive(leaf.array)
        return leaf
    if isinstance(leaf, Variable):
        return leaf.handle()
    if method == "batch_jacobian":
        raise TypeError(
            f"batch_jacobian: {argument} must be one Tensor or Variable, got {type(leaf).__name__}"
        )
    raise TypeError(f"{method}: {argument} must be Tensors or Variables, got {leaf!r}")


def refuse_parts(method: str, sources: list[Any]) -> None:
    """Raise if derivatives would silently cover only this rank's part of a batch."""
    reducer = reducing.get()
    if reducer is not None:
        reducer.refuse(method, sources)


def seeds_of(targets: list[Tensor], output_gradients: Any) -> list[Tensor | None]:
    if output_gradients is None:
        return [None] * len(targets)
    leaves = flatten(output_gradients)
    if len(leaves) != len(targets):
        raise ValueError(f"gradient: {len(targets)} targets but {len(leaves)} output_gradients")
    seeds: list[Tensor | None] = []
    for target, leaf in zip(targets, leaves, strict=True):
        if leaf is None:
            raise ValueError("gradient: output_gradients contains None; pass zeros instead")
        seed = as_tensor(leaf)
        if seed.dtype != target.dtype and is_differentiable(target.dtype):
            if seed.dtype.kind == "c" and target.dtype.kind != "c":
                raise TypeError(
                    f"gradient: output_gradients has dtype {seed.dtype}, its target is real "
                    f"({target.dtype}); pass the real part"
                )
            seed = seed.astype(target.dtype)
        shape, want = seed.shape, target.shape
        if not same_shape(shape, want) and not TensorSpec(want, target.dtype).admits(shape):
            raise ValueError(
                f"gradient: output_gradients has shape {shape}, its target has shape {want}"
            )
        seeds.append(seed)
    return seeds


def unconnected_kind(value: UnconnectedGradients | str) -> UnconnectedGradients:
    if type(value) is UnconnectedGradients:
        return value
    try:
        return UnconnectedGradients(value)
    except ValueError:
        raise ValueError(f"unconnected_gradients must be 'none' or 'zero', got {value!r}") from None

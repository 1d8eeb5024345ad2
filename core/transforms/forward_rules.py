"""The tangents of an op's outputs, computed from those of its inputs.

The op's forward rule computes them. If it has none, they are derived from its gradient rule by
double transposition: a gradient rule is linear in the upstream gradient, and the gradient of that
linear function with respect to the upstream gradient is the op's derivative applied to a tangent.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..base.dtypes import SCALARS, is_differentiable
from ..base.sizes import same_shape, shapes_differ
from ..base.table import F, registry
from ..errors import GradientError
from ..ops.dispatch import is_transformed
from ..tape.tape import GradientTape
from ..tensors.op import Op
from ..tensors.tensor import Tensor


def push_forward(
    op: Op,
    tangents: Sequence[Tensor | None],
    inputs: Sequence[Any],
    outputs: Sequence[Tensor],
    params: dict[str, Any],
) -> list[Tensor | None]:
    """Return the tangents of an op's outputs from those of its inputs (None for zero)."""
    if not op.differentiable:
        return [None] * len(outputs)
    settings = {**op.defaults, **params}
    rule = op.jvp if _agrees(op) else None
    if callable(rule):
        found = rule(tangents, inputs, outputs, **settings)
        listed = list(found) if isinstance(found, (list, tuple)) else [found]
        own = op.verified and op.has_own_forward_rule
        return listed if own else _checked(op, listed, outputs)
    if rule == "linear":
        return _linear(op, tangents, inputs, outputs, settings)
    if rule == "multilinear":
        terms = [
            op(*inputs[:i], t, *inputs[i + 1 :], **settings)
            for i, t in enumerate(tangents)
            if t is not None and (op.rules is None or op.rules[i] is not None)
        ]
        if not terms:
            return [None]
        return [_cast(_total(terms), outputs[0])]
    if (
        op.batch == "elementwise"
        and op.rules is not None
        and _one_field(op, tangents, inputs, outputs)
    ):
        return [_elementwise(op, tangents, inputs, outputs[0], settings)]
    return derived(op, tangents, inputs, outputs, settings)


def _checked(op: Op, tangents: list[Any], outputs: Sequence[Tensor]) -> list[Tensor | None]:
    """Return what a forward rule returned, in the dtypes of the outputs; raise if it is wrong."""
    what = f"op {op.name!r}: its forward rule (jvp=) returned"
    if len(tangents) != len(outputs):
        raise GradientError(
            f"{what} {len(tangents)} tangents for {len(outputs)} outputs; it must return a tangent "
            "(or None for zero) for each"
        )
    found: list[Tensor | None] = []
    for t, y in zip(tangents, outputs, strict=True):
        if t is None:
            found.append(None)
            continue
        if type(t) is not Tensor:
            raise GradientError(
                f"{what} {t!r:.80}, not a tensor (or None for zero); it receives tensors, so "
                "compute with operators, F and gradtape's functions"
            )
        if shapes_differ(t.shape, y.shape):
            raise GradientError(
                f"{what} a tangent of shape {t.shape} for an output of shape {y.shape}"
            )
        found.append(_cast(t, y))
    return found


def _agrees(op: Op) -> bool:
    """Return whether an op's forward rule is that of its gradient rules.

    A replaced gradient rule leaves the op's own forward rule behind: it is then derived from the
    new one. A forward rule that was registered itself always counts.
    """
    if op.jvp is None or op.has_own_rules or not op.has_own_forward_rule:
        return True
    return op.stored is None and not registry().rules.replacer_of_rules(op)


def _one_field(op: Op, tangents: Any, inputs: Sequence[Any], outputs: Sequence[Tensor]) -> bool:
    """Return whether an elementwise rule, ``g`` times a derivative, is also the forward rule.

    It is for real numbers, and for complex numbers if the op is holomorphic.
    """
    kinds = {x.dtype.kind for x, t in zip(inputs, tangents, strict=True) if t is not None}
    kinds.add(outputs[0].dtype.kind)
    return kinds == {"f"} or (kinds == {"c"} and op.holomorphic)


def _elementwise(
    op: Op, tangents: Any, inputs: Sequence[Any], output: Tensor, settings: dict[str, Any]
) -> Tensor | None:
    terms = []
    for rule, tangent in zip(op.rules or (), tangents, strict=True):
        if tangent is None or rule is None:
            continue
        t = tangent
        if t.dtype != output.dtype or not same_shape(t.shape, output.shape):
            t = F.broadcast_like(t, output)
        terms.append(_cast(rule.apply(t, (*inputs, output), settings), output))
    return _total(terms) if terms else None


def _linear(
    op: Op,
    tangents: Any,
    inputs: Sequence[Any],
    outputs: Sequence[Tensor],
    settings: dict[str, Any],
) -> list[Tensor | None]:
    rules = op.rules
    given = []
    for i, (x, t) in enumerate(zip(inputs, tangents, strict=True)):
        follows = rules is None or rules[i] is not None
        if type(x) is not Tensor or not is_differentiable(x.dtype) or not follows:
            given.append(Tensor(F.zeros_like(_first(inputs).array)) if type(x) in SCALARS else x)
        else:
            given.append(Tensor(F.zeros_like(x.array)) if t is None else t)
    if rules is not None and all(
        t is None or rule is None for t, rule in zip(tangents, rules, strict=True)
    ):
        return [None] * len(outputs)
    found = op(*given, **settings)
    listed = found if isinstance(found, list) else [found]
    return [_cast(t, y) for t, y in zip(listed, outputs, strict=True)]


def _first(inputs: Sequence[Any]) -> Tensor:
    return next(x for x in inputs if type(x) is Tensor)


def _cast(t: Tensor, like: Tensor) -> Tensor:
    result: Tensor = t if t.dtype == like.dtype else F.cast_like(t, like)
    return result


def _total(terms: list[Tensor]) -> Tensor:
    total = terms[0]
    for term in terms[1:]:
        total = total + term
    return total


# -- double transposition --------------------------------------------------------------------------


def derived(
    op: Op,
    tangents: Sequence[Tensor | None],
    inputs: Sequence[Any],
    outputs: Sequence[Tensor],
    settings: dict[str, Any],
) -> list[Tensor | None]:
    """Return the tangents of an op's outputs from its gradient rules alone."""
    needed = tuple(t is not None for t in tangents)

    def pull(gs: list[Tensor]) -> Sequence[Any]:
        if op.vjp is not None:
            return op.vjp(list(gs), tuple(inputs), tuple(outputs), needed, **settings)
        grads: list[Any] = []
        complex_ = outputs[0].dtype.kind == "c"
        for x, rule, wanted in zip(inputs, op.rules or (), needed, strict=True):
            if not wanted or rule is None:
                grads.append(None)
                continue
            g = rule.apply(gs[0], (*inputs, outputs[0]), settings, complex_)
            grads.append(F.unbroadcast_like(g, x) if rule.broadcasts else g)
        return grads

    return transposed(pull, tangents, outputs, op.name)


def transposed(
    pull: Callable[[list[Any]], Sequence[Any]],
    tangents: Sequence[Tensor | None],
    outputs: Sequence[Tensor],
    name: str,
) -> list[Tensor | None]:
    """Return the tangents of outputs from ``pull``, which maps their gradients to the inputs'."""

    def pulled(seeds: list[Any]) -> list[Any]:
        # a rule that calls NumPy returns an array
        return [g if g is None or type(g) is Tensor else Tensor(g) for g in pull(seeds)]

    seeds = [Tensor(F.zeros_like(y.array)) for y in outputs]
    with GradientTape(watch_accessed_variables=False) as tape:
        tape.watch(seeds)
        grads = pulled(list(seeds))
    pairs = [
        (g, t) for g, t in zip(grads, tangents, strict=True) if g is not None and t is not None
    ]
    if not pairs:
        return [None] * len(outputs)
    found = tape.gradient([g for g, _ in pairs], seeds, output_gradients=[t for _, t in pairs])
    if all(t is None for t in found):
        _check_constant(pulled, outputs, tangents, name)
    return list(found)


def _check_constant(
    pull: Callable[[list[Any]], Sequence[Any]],
    outputs: Sequence[Tensor],
    tangents: Sequence[Tensor | None],
    name: str,
) -> None:
    """Raise if gradients depend on the upstream gradients in a way that the tape did not record."""
    for g, t in zip(pull([Tensor(F.ones_like(y.array)) for y in outputs]), tangents, strict=True):
        if (
            g is not None
            and t is not None
            and hasattr(g.array, "__array__")
            and bool(F.any(g != 0))
        ):
            raise GradientError(
                f"{name}: forward mode differentiates its gradient function, which must consist of "
                "gradtape ops, without NumPy calls on values; rewrite it with ops"
            )


def check_linear(
    pull: Callable[[list[Any]], Sequence[Any]],
    tangents: Sequence[Tensor | None],
    outputs: Sequence[Tensor],
    name: str,
) -> None:
    """Raise if a user's gradient function is not linear and therefore has no transpose."""
    if any(is_transformed(y.array) for y in outputs):
        return  # there are no values to test it with
    some = [Tensor(F.ones_like(y.array)) for y in outputs]
    large = [Tensor(F.multiply(g.array, 1024)) for g in some]
    for one, many, t in zip(pull(some), pull(large), tangents, strict=True):
        if one is None or many is None or t is None or is_transformed(one.array):
            continue
        expected = F.multiply(one.array, 1024)
        off, size = F.abs(F.subtract(many.array, expected)), F.abs(expected)
        close = F.less_equal(off, F.multiply(size, float(np.finfo(one.dtype).eps) * 64))
        if not bool(F.all(F.logical_or(close, F.logical_not(F.isfinite(off))))):
            raise GradientError(
                f"{name}: its gradient function is not linear in the upstream gradient (for "
                "example, it clips it), so it has no forward mode; use reverse mode: "
                "gradtape.grad, jacrev, vjp"
            )

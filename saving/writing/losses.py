"""What calls give besides results: terms of the loss and masks. Penalties of weights."""

from __future__ import annotations

import copy
import functools
import inspect
from collections.abc import Callable, Iterator
from typing import Any

from ...core.errors import TraceError
from ...core.extend import (
    ConcreteFunction,
    Function,
    Module,
    Variable,
    added_losses,
    as_tensor,
    flatten,
    forward_pass,
    inlining,
    mask_of,
    ops,
    ruled_weights,
)
from ..errors import SaveError
from ..proofs.golden import why


def with_added(call: Callable[..., Any], root: Module, lost: list[str]) -> Callable[..., Any]:
    """Return a function that returns the results of a call, the losses it adds, and the masks.

    Parameters
    ----------
    call
        A module's ``__call__``.
    root
        The module.
    lost
        Receives the losses that no trace can compute.
    """

    @functools.wraps(call)
    def traced(*args: Any, **kwargs: Any) -> Any:
        losses: list[Any] = []
        with forward_pass(root), inlining():
            results = call(*args, **kwargs)
            try:
                losses = added_losses(root)
            except TraceError as error:  # it was added in a loop's body, say
                lost.append(f"what layers of {root.name!r} add to the loss ({error})")
        masks = [_as_mask(mask_of(leaf)) for leaf in flatten(results)]
        return results, losses, [] if masks.count(None) == len(masks) else masks

    vars(traced)["__signature__"] = inspect.signature(call)  # without self
    return traced


def _as_mask(mask: Any) -> Any:
    """Return a mask as files keep it: in booleans."""
    if mask is None or as_tensor(mask).dtype == "bool":
        return mask
    return ops["not_equal"](mask, 0)


def split_added(concrete: ConcreteFunction) -> ConcreteFunction:
    """Return a trace of what ``with_added`` returned, with the results of the call alone."""
    results, losses, masks = concrete.results
    apart = copy.copy(concrete)
    apart.results, apart.added = results, tuple(x.index for x in losses)
    apart.masks = tuple(None if x is None else x.index for x in masks)
    return apart


def retraced(adding: Callable[..., Any], concrete: ConcreteFunction) -> ConcreteFunction:
    """Return a trace of a decorated ``__call__`` with its losses and masks, if there are any.

    ``adding`` is what ``with_added`` returned for it.
    """
    args, kwargs = concrete.arguments
    traced = Function(adding, name=concrete.name).get_concrete_function(*args, **kwargs)
    found = split_added(traced)
    return found if found.added or found.masks else concrete


def rules_given(module: Module) -> set[int]:
    """Return the regularizers and constraints of a module that a file keeps, by identity."""
    rules = [rule for _, *pair in ruled_weights(module) for rule in pair]
    return set(map(id, [*rules, getattr(module, "activity_regularizer", None)])) - {id(None)}


def ruled_records(
    module: Module,
    weights: Iterator[tuple[Variable, Any, Any]],
    number_of: Callable[[Variable], int],
    save: Callable[[Any, Variable, bool, str], int],
    lost: list[str],
) -> dict[str, list[list[int]]]:
    """Return the regularizers and constraints of a module's weights: numbers of both.

    Parameters
    ----------
    module
        The module.
    weights
        Its weights, each with a regularizer and a constraint.
    number_of
        Returns the number of a variable.
    save
        Traces a function of a variable, given whether it is a regularizer; returns its number.
    lost
        Receives which of them cannot be traced.
    """
    found: dict[str, list[list[int]]] = {}
    for variable, *rules in weights:
        for kind, rule in zip(("regularizer", "constraint"), rules, strict=True):
            where = f"{module.name}: the {kind} of {variable.name!r}"
            try:
                if rule is not None:
                    number = number_of(variable)
                    pair = [number, save(rule, variable, kind == "regularizer", where)]
                    found.setdefault(f"{kind}s", []).append(pair)
            except SaveError as error:
                lost.append(f"{where} ({why(error)})")
    return found

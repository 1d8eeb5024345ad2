"""``recompute_grad``: forget what a function computed inside, and compute it again going back."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, TypeVar

from ..base.context import active_tapes, calling_in, recording_to, training_mode
from ..base.recorder import Recorder
from ..base.tree import flatten, pack_like
from ..tape.tape import GradientTape
from ..tensors.tensor import Tensor
from ..tensors.variable import Variable
from .custom import custom_gradient

__all__ = ["recompute_grad"]

Fn = TypeVar("Fn", bound=Callable[..., Any])


class _Reads(Recorder):
    """Stands in the tapes' place: tells them which variables are read, and records nothing."""

    def __init__(self, recorders: tuple[Recorder, ...]) -> None:
        self.recorders = recorders
        self.records = {}

    def accessed(self, variable: Variable) -> None:
        """Hand on that a variable was read."""
        for recorder in self.recorders:
            recorder.accessed(variable)


def recompute_grad(f: Fn) -> Fn:
    """Decorate a function so that tapes keep its arguments alone, and the backward pass reruns it.

    Memory for time: what the function computes on the way is not kept for the backward pass, which
    calls it a second time. Known as rematerialisation, or gradient checkpointing.

    Parameters
    ----------
    f
        A function of tensors, in any nested containers, and of Python values, that returns the same
        result whenever it is called. It may read variables.

    Returns
    -------
    callable
        A function with the result and the gradients of ``f``, to any order. Tensors that ``f``
        closes over, or takes by keyword, get no gradient, as in :func:`gradtape.custom_gradient`.

    References
    ----------
    T. Chen, B. Xu, C. Zhang and C. Guestrin, "Training Deep Nets with Sublinear Memory Cost", 2016.

    Examples
    --------
    >>> block = gt.recompute_grad(lambda x: gt.sin(gt.exp(x)))
    >>> gt.grad(block)(0.0).item() == gt.grad(lambda x: gt.sin(gt.exp(x)))(0.0).item()
    True
    """

    @functools.wraps(f)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        returned: list[Any] = []
        mode = training_mode.get()

        @custom_gradient
        @functools.wraps(f)
        def forgetting(*args: Any) -> Any:
            with recording_to((_Reads(active_tapes.get()),)):
                returned.append(f(*args, **kwargs))

            def again(*upstream: Any, variables: Any = ()) -> Any:
                sources = [leaf for leaf in flatten(args) if type(leaf) is Tensor]
                with GradientTape(watch_accessed_variables=False) as tape:
                    tape.watch([*sources, *variables])
                    with calling_in(None if mode is None else mode.training):
                        repeated = f(*args, **kwargs)
                targets = _tensors(repeated)
                grads, of_variables = tape.gradient(
                    targets, (sources, list(variables)), output_gradients=list(upstream)
                )
                return (grads, of_variables) if variables else grads

            return _tensors(returned[-1]), again

        found = iter(forgetting(*args))
        leaves = flatten(returned[-1])
        return pack_like(returned[-1], [None if leaf is None else next(found) for leaf in leaves])

    return wrapper  # type: ignore[return-value]


def _tensors(result: Any) -> list[Any]:
    """Return the leaves of a result, without those that are None."""
    leaves = [leaf for leaf in flatten(result) if leaf is not None]
    return [leaf.value if isinstance(leaf, Variable) else leaf for leaf in leaves]

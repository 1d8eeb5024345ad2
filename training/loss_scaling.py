"""``LossScaleOptimizer``: gradients of a loss made larger, so that few of them underflow.

In ``float16`` numbers below 6e-8 are 0, and gradients are often smaller. The loss is multiplied by
a scale and gradients divided by it. A scale that is too large makes gradients overflow: that step
is skipped, and the scale halved.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any, Self

import numpy as np

from ..core.extend import (
    Module,
    Policy,
    Tensor,
    Variable,
    active_graph,
    as_tensor,
    ops,
)
from . import optimizers
from .optimizers.gradients import checked
from .optimizers.optimizer import Optimizer

__all__ = ["LossScaleOptimizer", "scaling", "scaling_for"]

#: The least and the largest scale. Gradients that overflow at the least are not finite themselves.
LEAST, LARGEST = 2.0**-14, 2.0**64


class LossScaleOptimizer(Optimizer, saved_as="mixed_precision.LossScaleOptimizer"):
    """An optimizer of scaled gradients, for training in ``float16``.

    :meth:`scale_loss` multiplies a loss by the scale. The gradients of that, which
    :meth:`apply_gradients` takes, are divided by the scale and go to the optimizer inside, which
    clips them. Where one is not finite, the step is skipped and the scale halved; after so many
    steps in a row without that it is doubled. :func:`gradtape.training.fit` and :meth:`minimize` do
    all of it.

    Parameters
    ----------
    inner_optimizer
        The optimizer that does the steps, or its name.
    initial_scale
        The scale to begin with.
    dynamic_growth_steps
        After how many steps the scale is doubled.
    name
        A Python identifier.

    Attributes
    ----------
    dynamic_scale : Variable
        The scale, ``float32``: a power of two times ``initial_scale``.
    step_counter : Variable
        The steps done since it changed.
    iterations : Variable
        The steps that were done: those of the optimizer inside, without those skipped.

    Raises
    ------
    ValueError
        If the scale is not above 0 and finite, or the number of steps not positive.
    TypeError
        If the optimizer inside scales losses itself, or is none.
    FloatingPointError
        From :meth:`apply_gradients`, if gradients are not finite at the least scale, 2**-14. In a
        traced function the step is skipped, and the scale stays there.

    References
    ----------
    P. Micikevicius et al., "Mixed Precision Training", ICLR 2018.

    Examples
    --------
    >>> w = gt.Variable(1.0)
    >>> optimizer = gt.mixed_precision.LossScaleOptimizer(gt.training.SGD(0.5))
    >>> with gt.GradientTape() as tape:
    ...     loss = optimizer.scale_loss(w * w)
    >>> optimizer.apply_gradients([(tape.gradient(loss, w), w)])
    >>> w.item(), optimizer.dynamic_scale.item()
    (0.0, 32768.0)
    """

    def __init__(
        self,
        inner_optimizer: Any,
        initial_scale: float = 2.0**15,
        dynamic_growth_steps: int = 2000,
        name: str | None = None,
    ) -> None:
        Module.__init__(self, name)
        inner = optimizers.get(inner_optimizer)
        if isinstance(inner, LossScaleOptimizer):
            raise TypeError("LossScaleOptimizer: the optimizer inside scales losses itself")
        if isinstance(inner, optimizers.LBFGS):
            raise TypeError("LossScaleOptimizer: LBFGS evaluates losses itself; train in float32")
        if not LEAST <= initial_scale <= LARGEST:
            raise ValueError(
                f"LossScaleOptimizer: initial_scale must be from {LEAST:.3g} to {LARGEST:.3g}, got "
                f"{initial_scale!r}"
            )
        if int(dynamic_growth_steps) != dynamic_growth_steps or dynamic_growth_steps < 1:
            raise ValueError(
                "LossScaleOptimizer: dynamic_growth_steps must be a positive integer, got "
                f"{dynamic_growth_steps!r}"
            )
        self.inner_optimizer = inner
        self.initial_scale = float(initial_scale)
        self.dynamic_growth_steps = int(dynamic_growth_steps)
        self.dynamic_scale = Variable(
            np.float32(initial_scale), trainable=False, name="dynamic_scale"
        )
        self.step_counter = Variable(0, trainable=False, name="step_counter", dtype="int64")

    def scale_loss(self, loss: Any) -> Tensor:
        """Return a loss times the scale, in ``float32`` or wider."""
        return as_tensor(loss) * self.dynamic_scale.value

    def apply_gradients(self, grads_and_vars: Iterable[tuple[Any, Variable]]) -> None:
        """Do one step with the gradients of a scaled loss; or skip it, if they are not finite.

        Parameters
        ----------
        grads_and_vars
            Pairs ``(gradient, variable)``, as for the optimizer inside.

        Raises
        ------
        ValueError
            As for the optimizer inside.
        FloatingPointError
            If the gradients are not finite at the least scale.
        """
        pairs = [(Tensor(checked(g, v)), v) for g, v in grads_and_vars]
        with self.dynamic_scale.lock:
            factor = 1.0 / self.dynamic_scale.value
            pairs = [(g * factor.astype(g.dtype), v) for g, v in pairs]
            finite = _all_finite([g for g, _ in pairs])
            if active_graph.get() is not None:
                self._select(pairs, finite)
            elif finite.item():
                self.inner_optimizer.apply_gradients(pairs)
            elif self.dynamic_scale.item() <= LEAST:
                raise _never_finite()
            self._move_scale(finite)

    def _select(self, pairs: list[tuple[Tensor, Variable]], finite: Tensor) -> None:
        """Do the step in a trace, and keep what it gives only if the gradients are finite."""
        inner = self.inner_optimizer
        inner.build([variable for _, variable in pairs])
        kept = [*(variable for _, variable in pairs), *inner.variables]
        before = [variable.value for variable in kept]
        # of numbers that are finite, or NumPy would warn of each step that is skipped
        inner.apply_gradients([(ops["where"](finite, g, 0.0), v) for g, v in pairs])
        for variable, old in zip(kept, before, strict=True):
            new = variable.value
            if new.array is not old.array:
                variable.assign(ops["where"](finite, new, old))

    def _move_scale(self, finite: Tensor) -> None:
        scale, steps = self.dynamic_scale.value, self.step_counter.value + 1
        grows = ops["greater_equal"](steps, self.dynamic_growth_steps)
        larger = ops["minimum"](ops["where"](grows, scale * 2.0, scale), LARGEST)
        smaller = ops["maximum"](scale * 0.5, LEAST)
        self.dynamic_scale.assign(ops["where"](finite, larger, smaller))
        stays = ops["logical_and"](finite, ops["logical_not"](grows))
        self.step_counter.assign(ops["where"](stays, steps, ops["zeros_like"](steps)))

    # -- what the optimizer inside knows -----------------------------------------------------------

    @property
    def iterations(self) -> Variable:  # type: ignore[override]
        """The steps that were done."""
        return self.inner_optimizer.iterations

    @property
    def learning_rate(self) -> Any:
        """The learning rate of the optimizer inside."""
        return self.inner_optimizer.learning_rate

    @learning_rate.setter
    def learning_rate(self, value: Any) -> None:
        self.inner_optimizer.learning_rate = value

    @property
    def trained(self) -> list[Variable]:
        """None: those that are trained are the inner optimizer's, which says so itself."""
        return []

    @property
    def unclaimed(self) -> int:
        """How many variables' state a file brought, until the first of them are given."""
        return self.inner_optimizer.unclaimed

    def build(self, variables: Iterable[Variable]) -> list[int]:
        """Make the slots of variables not seen before."""
        return self.inner_optimizer.build(variables)

    def adopt(self, variables: Iterable[Variable]) -> None:
        """Give the state from a file to the variables beside it."""
        self.inner_optimizer.adopt(variables)

    def exclude_from_weight_decay(
        self, var_list: Iterable[Variable] | None = None, var_names: Iterable[str] | None = None
    ) -> None:
        """Say to the optimizer inside which variables do not decay."""
        self.inner_optimizer.exclude_from_weight_decay(var_list, var_names)

    def finalize_variable_values(self, var_list: Iterable[Variable]) -> None:
        """Put the averages of the optimizer inside in the variables' place."""
        self.inner_optimizer.finalize_variable_values(var_list)

    def states(self) -> Iterator[tuple[str, Variable | None, Variable]]:
        """Yield nothing: the state is the inner optimizer's, which says so itself."""
        yield from ()

    def __setattr__(self, name: str, value: Any) -> None:
        Module.__setattr__(self, name, value)

    def __getstate__(self) -> dict[str, Any]:
        return dict(vars(self))

    def get_config(self) -> dict[str, Any]:
        """Return the constructor's arguments, the optimizer inside left out."""
        return {
            "initial_scale": self.initial_scale,
            "dynamic_growth_steps": self.dynamic_growth_steps,
            "name": self.name,
        }

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> Self:
        """Return one with the arguments of :meth:`get_config`, around an optimizer to replace."""
        return cls("sgd", **config)


def scaling_for(model: Module, optimizer: Optimizer) -> Optimizer:
    """Return what trains a model: a scaling optimizer if one of its layers computes in float16."""
    if isinstance(optimizer, LossScaleOptimizer):
        return optimizer
    policies = (getattr(x, "policy", None) for x in (model, *model.submodules))
    half = any(isinstance(x, Policy) and x.name == "mixed_float16" for x in policies)
    return LossScaleOptimizer(optimizer) if half else optimizer


@contextmanager
def scaling(optimizer: Optimizer) -> Iterator[None]:
    """Do a step, compiled or not; NumPy warns of no overflow that only ends in a skipped step.

    Raises
    ------
    FloatingPointError
        If a compiled one was skipped at the least scale, as :meth:`apply_gradients` does.
    """
    if not isinstance(optimizer, LossScaleOptimizer):
        yield
        return
    scale, steps = optimizer.dynamic_scale, optimizer.step_counter
    least = scale.item() <= LEAST
    with np.errstate(over="ignore", invalid="ignore"):
        yield
    if least and scale.item() <= LEAST and not steps.item():
        raise _never_finite()


def _never_finite() -> FloatingPointError:
    return FloatingPointError(
        "LossScaleOptimizer: the gradients are not finite at any scale down to "
        f"{LEAST:.3g}; a smaller learning rate, clipped gradients or scaled inputs may "
        "help. The variables are as they were"
    )


def _all_finite(tensors: list[Tensor]) -> Tensor:
    finite = [ops["all"](ops["isfinite"](t)) for t in tensors]
    if active_graph.get() is not None:  # one kernel does it with all else that is one number
        return functools.reduce(ops["logical_and"], finite)
    return finite[0] if len(finite) == 1 else ops["all"](ops["stack"](*finite, axis=0))

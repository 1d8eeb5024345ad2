"""``LossScaleOptimizer``: scales the loss, so that fewer gradients underflow.

In ``float16``, numbers below 6e-8 become 0, and gradients are often smaller. So the loss is
multiplied by a scale, and gradients are divided by it. If the scale is too large, gradients
overflow. Then the step is skipped, and the scale is halved.
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
from .optimizers.optimizer import Optimizer
from .optimizers.options import checked

__all__ = ["LossScaleOptimizer", "scaling", "scaling_for"]

#: The smallest and the largest scale. Gradients that overflow at the smallest also do unscaled.
LEAST, LARGEST = 2.0**-14, 2.0**64


class LossScaleOptimizer(Optimizer, saved_as="mixed_precision.LossScaleOptimizer"):
    """An optimizer for scaled losses, for training in ``float16``.

    :meth:`scale_loss` multiplies a loss by the scale. :meth:`apply_gradients` takes the gradients
    of the scaled loss, divides them by the scale and passes them to the inner optimizer, which
    clips them. If a gradient is not finite, the step is skipped and the scale is halved. After
    ``dynamic_growth_steps`` steps in a row without that, the scale is doubled.
    :func:`gradtape.training.fit` and :meth:`minimize` do all of this.

    Parameters
    ----------
    inner_optimizer
        The optimizer that does the steps, or its name.
    initial_scale
        The initial scale, from 2**-14 to 2**64.
    dynamic_growth_steps
        The number of steps after which the scale is doubled.
    name
        A Python identifier.

    Attributes
    ----------
    dynamic_scale : Variable
        The scale, ``float32``: a power of two times ``initial_scale``.
    step_counter : Variable
        The number of steps since the scale changed.
    iterations : Variable
        The number of steps of the inner optimizer; skipped steps do not count.

    Raises
    ------
    ValueError
        If the scale is out of its range, or the number of steps is not positive.
    TypeError
        If the inner optimizer scales losses itself, or is not an optimizer.
    FloatingPointError
        From :meth:`apply_gradients`, if gradients are not finite at the smallest scale, 2**-14. In
        a traced function, the step is skipped and the scale does not change.

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
            raise TypeError("LossScaleOptimizer: the inner optimizer already scales losses")
        if not getattr(inner, "takes_gradients", True):
            kind = type(inner).__name__
            raise TypeError(f"LossScaleOptimizer: {kind} evaluates losses itself; train in float32")
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
        """Return a loss multiplied by the scale, in ``float32`` or wider."""
        return as_tensor(loss) * self.dynamic_scale.value

    def apply_gradients(self, grads_and_vars: Iterable[tuple[Any, Variable]]) -> None:
        """Do one step with the gradients of a scaled loss; skip it if they are not finite.

        Parameters
        ----------
        grads_and_vars
            Pairs ``(gradient, variable)``, as for the inner optimizer.

        Raises
        ------
        ValueError
            As for the inner optimizer.
        FloatingPointError
            If the gradients are not finite at the smallest scale.
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
        """Do the step in a trace, and keep its results only if the gradients are finite."""
        inner = self.inner_optimizer
        inner.take_part([variable for _, variable in pairs])
        kept = [*(variable for _, variable in pairs), *inner.variables]
        before = [variable.value for variable in kept]
        # with finite numbers, because NumPy would warn for each skipped step otherwise
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

    # -- the inner optimizer -----------------------------------------------------------------------

    @property
    def iterations(self) -> Variable:  # type: ignore[override]
        """The number of steps, without skipped ones."""
        return self.inner_optimizer.iterations

    @property
    def learning_rate(self) -> Any:
        """The learning rate of the inner optimizer."""
        return self.inner_optimizer.learning_rate

    @learning_rate.setter
    def learning_rate(self, value: Any) -> None:
        self.inner_optimizer.learning_rate = value

    @property
    def trained(self) -> list[Variable]:
        """Empty: the inner optimizer lists the variables that it trains."""
        return []

    @property
    def unclaimed(self) -> int:
        """The number of variables with state in a loaded file; 0 once some have claimed it."""
        return self.inner_optimizer.unclaimed

    def build(self, variables: Iterable[Variable]) -> list[int]:
        """Create the slots of new variables."""
        return self.inner_optimizer.build(variables)

    def adopt(self, variables: Iterable[Variable]) -> None:
        """Assign the state from a file to the variables that were saved with it."""
        self.inner_optimizer.adopt(variables)

    def exclude_from_weight_decay(
        self,
        var_list: Iterable[Variable] | None = None,
        var_names: Iterable[str] | None = None,
        *,
        model: Module | None = None,
    ) -> None:
        """Set which variables do not decay, in the inner optimizer."""
        self.inner_optimizer.exclude_from_weight_decay(var_list, var_names, model=model)

    def name_variables(self, model: Module) -> None:
        """Learn the names and paths of a model's variables."""
        self.inner_optimizer.name_variables(model)

    def finalize_variable_values(self, var_list: Iterable[Variable]) -> None:
        """Assign the averages of the inner optimizer to the variables."""
        self.inner_optimizer.finalize_variable_values(var_list)

    def states(self) -> Iterator[tuple[str, Variable | None, Variable]]:
        """Yield nothing: the inner optimizer yields its state itself."""
        yield from ()

    def __setattr__(self, name: str, value: Any) -> None:
        Module.__setattr__(self, name, value)

    def __getstate__(self) -> dict[str, Any]:
        return dict(vars(self))

    def get_config(self) -> dict[str, Any]:
        """Return the constructor's arguments without the inner optimizer."""
        return {
            "initial_scale": self.initial_scale,
            "dynamic_growth_steps": self.dynamic_growth_steps,
            "name": self.name,
        }

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> Self:
        """Return one with the arguments of :meth:`get_config`, around a temporary optimizer."""
        return cls("sgd", **config)


def scaling_for(model: Module, optimizer: Optimizer) -> Optimizer:
    """Return the optimizer for a model: one that scales losses if a layer computes in float16."""
    if isinstance(optimizer, LossScaleOptimizer):
        return optimizer
    policies = (getattr(x, "policy", None) for x in (model, *model.submodules))
    half = any(isinstance(x, Policy) and x.name == "mixed_float16" for x in policies)
    return LossScaleOptimizer(optimizer) if half else optimizer


@contextmanager
def scaling(optimizer: Optimizer) -> Iterator[None]:
    """Do a step, compiled or not, without NumPy's warnings of overflows: such steps are skipped.

    Raises
    ------
    FloatingPointError
        If a compiled step was skipped at the smallest scale, as in :meth:`apply_gradients`.
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
    if active_graph.get() is not None:  # one kernel computes it with all other scalars
        return functools.reduce(ops["logical_and"], finite)
    return finite[0] if len(finite) == 1 else ops["all"](ops["stack"](*finite, axis=0))

"""What ``fit``, ``evaluate`` and ``predict`` do with one batch after another."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from ..core.extend import (
    GradientTape,
    Module,
    Tensor,
    Variable,
    as_tensor,
    backend_of,
    calling_in,
    frozen_variables,
    in_precision,
    ops,
    scope_of,
    to_numpy,
)
from ..layers import sequential
from . import losses, optimizers
from . import metrics as known_metrics
from .checks import FirstLook, check_labels, check_restored, whats_not_finite
from .data import Examples, as_dataset, as_part
from .loss_scaling import scaled_quietly, scaling_for
from .losses.kinds import kind_of
from .sending import Ahead
from .session import Session

__all__ = ["Trainer", "evaluate", "predict"]


class Trainer(Session):
    """A model with its loss, metrics and optimizer.

    Parameters
    ----------
    model, loss, metrics, optimizer
        As for :func:`gradtape.training.fit`.
    method
        Who trains or measures, for messages.
    """

    def __init__(
        self,
        model: Any,
        loss: Any,
        metrics: Sequence[Any] | None,
        optimizer: Any = "adam",
        method: str = "fit",
    ) -> None:
        if not isinstance(model, Module) or not callable(model):
            raise TypeError(
                f"expected a model, a gradtape.Module that can be called, got {model!r}"
            )
        self.model = model
        self.optimizer = optimizers.get(optimizer)
        self.loss = losses.get(loss)
        self.kind = kind_of(self.loss)
        if metrics is None:
            several = self.kind is not None and self.kind.classes != "binary"
            metrics = ("accuracy",) if several else ()
        self.metrics = known_metrics.get(metrics, self.kind)
        self.names = ("loss", *self.metrics)
        self.with_training = sequential.takes_training(model)
        if method == "fit":
            check_restored(model)
            self.optimizer = scaling_for(model, self.optimizer)
        self.variables: list[Variable] = []
        self.method = method
        self._looked: dict[Any, int] = {}  # the sizes of the batches that were looked at
        self._totals = dict.fromkeys(self.names, 0.0)
        self._count = 0
        self._snapshot: list[tuple[Variable, Any]] | None = None
        self._begun = False
        self._fetch: Callable[[], None] = _nothing

    def ahead(self, batches: Iterable[Any], early: bool) -> Iterable[Any]:
        """Return batches, those in host memory copied to the device that the model is on."""
        self._fetch = _nothing
        array = next((variable.array for variable in self.model.variables), None)
        owner = None if array is None else backend_of(array)
        if owner is None or owner.host:
            return batches
        found = Ahead(batches, owner, owner.device(array), early)
        self._fetch = found.fetch
        return found

    def call(self, x: Tensor, training: bool) -> Tensor:
        """Return the model's predictions, the mode handed on if it does not take it."""
        with calling_in(training):
            return self.model(x, training=training) if self.with_training else self.model(x)

    def check(self, y: Tensor, what: str) -> None:
        """Raise if labels are outside what the loss can mean."""
        check_labels(self.kind, y, what)

    def prepare(self, batch: tuple[Tensor, Tensor]) -> None:
        """Make the model's variables and the optimizer's, with a call at inference."""
        for x, _ in self.ahead([batch], early=False):
            self._remember(x)

    def trackables(self) -> dict[str, Any]:
        """Return the model and the optimizer."""
        return {"model": self.model, "optimizer": self.optimizer}

    def state(self) -> dict[str, Any]:
        """Return what the epoch measured so far, and of what batches a close look was taken."""
        looked = [[list(alike), size] for alike, size in self._looked.items()]
        return {"totals": self._totals, "count": self._count, "looked": looked}

    def load(self, state: dict[str, Any]) -> None:
        """Go on within an epoch that measured this."""
        if set(state["totals"]) != set(self.names):
            raise ValueError(
                f"the run measured {', '.join(state['totals'])}; this one {', '.join(self.names)}"
            )
        if type(state["count"]) is not int or not 0 <= state["count"] < 2**63:
            raise ValueError(f"a count of examples is {str(state['count'])[:40]}")
        self._totals = {name: float(state["totals"][name]) for name in self.names}
        self._count = state["count"]
        self._looked = {tuple(alike): size for alike, size in state["looked"]}

    def begin_epoch(self) -> None:
        """Forget what the epoch before measured."""
        self._totals, self._count = dict.fromkeys(self.names, 0.0), 0
        self._begun = False

    def train(self, batch: tuple[Tensor, Tensor]) -> dict[str, float]:
        """Do one training step; return the means over the epoch's examples so far."""
        x, y = batch
        if not self._begun:
            self._remember(x)
            self._begun = True
        for name, value in self.step(x, y).items():
            self._totals[name] += value * len(x)
        self._count += len(x)
        return {name: total / self._count for name, total in self._totals.items()}

    def _remember(self, x: Tensor) -> None:
        """Remember the state before an epoch that begins with the inputs ``x``."""
        if self._snapshot is None:
            self.call(x, training=False)  # so that every variable is there
        self.variables = list(self.model.trainable_variables)
        if not self.variables:
            frozen = "" if self.model.trainable else ": it is frozen (trainable is False)"
            raise ValueError(f"fit: {self.model!r} has no trainable variables{frozen}")
        self.optimizer.build(self._claimants())
        # arrays are never written, so holding on to them is enough
        held = (*self.model.variables, *self.optimizer.variables)
        self._snapshot = [(variable, variable.array) for variable in held]

    def _claimants(self) -> list[Variable]:
        """Return the variables in the order of the state that a file brought for the optimizer.

        Of a model that was frozen since, in part, these are more than train.
        """
        self.optimizer.adopt(self.variables)
        held = self.optimizer.unclaimed
        if held in (0, len(self.variables)):
            return self.variables
        modules = (self.model, *self.model.submodules)
        frozen = {v for module in modules for v in frozen_variables(module)}
        both = [v for v in self.model.variables if v.trainable or v in frozen]
        if len(both) != held:
            raise ValueError(
                f"fit: the optimizer was saved with the state of {held} variables, and the model "
                f"trains {len(self.variables)}; freeze what was frozen then, or begin another"
            )
        return both

    def restore(self) -> None:
        """Go back to the state in which the epoch began."""
        for variable, array in self._snapshot or ():
            variable.set_array(array)

    def step(self, x: Tensor, y: Tensor) -> dict[str, float]:
        """Do one training step; return the loss and metrics of the batch before it."""
        with GradientTape() as tape:
            predicted, value = self._forward(x, y, training=True)
            scaled = self.optimizer.scale_loss(value)
        self._fetch()  # the device computes meanwhile: the next line waits for it
        number = float(value)
        if not math.isfinite(number):
            raise FloatingPointError(
                f"fit: the loss is {number}; a smaller learning rate, or scaled inputs, may help. "
                f"{whats_not_finite(x, y)}The model is as it was when this epoch began"
            )
        with scaled_quietly(self.optimizer):
            gradients = tape.gradient(scaled, self.variables)
            self.optimizer.apply_gradients(zip(gradients, self.variables, strict=True))
        return {"loss": number, **self._measured(y, predicted)}

    def _forward(self, x: Tensor, y: Tensor, training: bool) -> tuple[Tensor, Tensor]:
        """Return the predictions and the mean loss of a batch; look closely at the first.

        Also at the first with labels of another rank, or in a column, as validation data may have.
        """
        alike = x.ndim, y.ndim, y.shape[-1] == 1
        seen = self._looked.get(alike, 0)
        if seen > 1 or seen == len(x):  # a batch of one example cannot show what broadcasts
            predicted = self.call(x, training)
            return predicted, self._mean_loss(y, predicted)
        look = FirstLook(self.method, self.loss, self.kind)
        with look.looking():
            predicted = self.call(x, training)
            look.meet(y, predicted)
            value = self._mean_loss(y, predicted)
            self._measured(y, predicted)
        if value.dtype.kind not in "fiub":
            raise TypeError(
                f"{self.method}: the loss has dtype {value.dtype}; it must be real to be minimised"
            )
        self._looked[alike] = len(x)
        return predicted, value

    def _mean_loss(self, y: Tensor, predicted: Tensor) -> Tensor:
        return ops["mean"](in_precision(as_tensor(self.loss(y, predicted)), "float32"))

    def evaluate(
        self, batches: Iterable[Any], stop: Callable[[], bool] = lambda: False
    ) -> dict[str, float]:
        """Return the means of loss and metrics at inference; early if ``stop()``."""
        totals = dict.fromkeys(self.names, 0.0)
        count = 0
        for x, y in self.ahead(batches, early=False):
            predicted, value = self._forward(x, y, training=False)
            for name, number in {
                "loss": float(value),
                **self._measured(y, predicted),
            }.items():
                totals[name] += number * len(x)
            count += len(x)
            if stop():
                break
        if not count:
            raise ValueError("evaluate: data has no batches")
        return {name: total / count for name, total in totals.items()}

    def _measured(self, y: Tensor, predicted: Tensor) -> dict[str, float]:
        return {
            name: float(np.mean(to_numpy(as_tensor(metric(y, predicted)).array)))
            for name, metric in self.metrics.items()
        }


def _nothing() -> None:
    """Do nothing."""


def evaluate(
    model: Module,
    data: Any,
    *,
    batch_size: int = 32,
    loss: Any = "sparse_categorical_crossentropy",
    metrics: Sequence[Any] | None = None,
) -> dict[str, float]:
    """Measure a model at inference.

    Parameters
    ----------
    model
        A module that is called with a batch.
    data
        A pair of arrays ``(x, y)``, or an iterable of such batches.
    batch_size
        The size of the batches that arrays are cut into.
    loss, metrics
        As for :func:`gradtape.training.fit`.

    Returns
    -------
    The means over all examples, by name: ``"loss"`` and each metric.

    Raises
    ------
    ValueError
        If the data or an argument are unusable, as for :func:`gradtape.training.fit`.

    Examples
    --------
    >>> data = (gt.ones((4, 2)), gt.ones((4, 2)))
    >>> gt.training.evaluate(gt.layers.Activation("relu"), data, loss="mse")
    {'loss': 0.0}
    """
    trainer = Trainer(model, loss, metrics, method="evaluate")
    return trainer.evaluate(as_dataset(data, batch_size, check=trainer.check).batches())


def predict(model: Module, x: Any, *, batch_size: int = 32) -> Tensor:
    """Return a model's outputs at inference, computed batch by batch.

    Parameters
    ----------
    model
        A module that is called with a batch and returns one tensor.
    x
        Inputs; the first axis counts examples.
    batch_size
        The size of the batches.

    Returns
    -------
    A tensor whose first axis counts the same examples.

    Raises
    ------
    ValueError
        If there are no examples, or ``batch_size`` is not positive.
    TypeError
        If ``x`` holds several arrays, or the model does not return one tensor.

    Examples
    --------
    >>> gt.training.predict(gt.layers.Activation("relu"), [[-1.0], [2.0]]).tolist()
    [[0.0], [2.0]]
    """
    trainer = Trainer(model, "mse", ())
    dataset = Examples(as_part("x", x), None, batch_size)
    parts = trainer.ahead(dataset.batches(), early=True)
    outputs = [trainer.call(part, training=False) for part in parts]
    for output in outputs:
        if not isinstance(output, Tensor) or not output.ndim:
            raise TypeError(
                "predict: a model returns one tensor, with an axis of examples, got "
                f"{output.shape if isinstance(output, Tensor) else type(output).__name__}"
            )
    arrays = [output.array for output in outputs]
    with scope_of(arrays):
        return Tensor(backend_of(arrays[0]).xp.concat(arrays, axis=0))

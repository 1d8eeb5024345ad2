"""``fit``, ``evaluate`` and ``predict`` for models with their own ``train_step`` and others.

The loop of :func:`gradtape.training.fit` calls these methods with one batch after another.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import numpy as np

from ..core.extend import GradientTape, flatten, map_structure, overridable
from ..layers import states_kept
from .callbacks import BackupAndRestore
from .data import Batches, Examples, as_dataset, as_part
from .metrics import Mean, MeanMetricWrapper, Metric
from .metrics.objects import knowing_losses
from .runs.epochs import run_epochs
from .runs.objective import Objective, update
from .runs.resuming import Run, as_epochs
from .runs.session import History, Session

__all__ = ["Compiled", "OwnSteps", "Stepping", "as_numbers", "evaluate", "fit", "predict"]


class Compiled:
    """The arguments of a model's ``compile``, and the metrics that its own steps update.

    Parameters
    ----------
    model, optimizer
        The model, and its optimizer.
    goals
        ``loss``, ``metrics``, ``loss_weights`` and ``weighted_metrics``, as for
        :func:`gradtape.training.fit`.

    Attributes
    ----------
    loss : Mean
        The mean of the losses of batches.
    """

    def __init__(self, model: Any, optimizer: Any, **goals: Any) -> None:
        self.optimizer, self.goals = optimizer, goals
        self.objective = Objective(model, **goals)
        self.loss = Mean("loss")
        self._kept: dict[str, Metric] = {}
        self._counted: tuple[Any, Any] = (None, None)  # a loss, and the values in its mean

    @property
    def metrics(self) -> dict[str, Metric]:
        """The metrics by name, as objects that average over batches."""
        found = {name: x for head in self.objective.heads for name, x in head.metrics.items()}
        for name, metric in found.items():
            if name not in self._kept:
                own = isinstance(metric, Metric)
                told = name if name.isidentifier() else None
                self._kept[name] = metric if own else MeanMetricWrapper(metric, told)
        return {name: self._kept[name] for name in found}

    def minimised(self, y: Any, y_pred: Any, sample_weight: Any, added: Iterable[Any]) -> Any:
        """Return the loss of a batch plus the terms in ``added``, as a scalar tensor."""
        self.objective.observe(y)
        total, _, counts = self.objective.minimised(y, y_pred, sample_weight, added)
        self._counted = total, counts.get("loss")
        return total

    def add_loss(self, loss: Any, length: int) -> None:
        """Add the loss of a batch to the mean, weighted by its values that are not padding.

        A loss of several outputs, and any that :meth:`minimised` did not return, counts by the
        ``length`` examples of the batch.
        """
        total, count = self._counted
        self._counted = None, None
        self.loss.update_state(loss, length if count is None or loss is not total else count)

    def update_state(self, y: Any, y_pred: Any, sample_weight: Any = None) -> None:
        """Update the metrics with a batch; only the weighted metrics use the weights."""
        metrics, several = self.metrics, self.objective.several
        for head in self.objective.heads:
            parts = [y, y_pred, sample_weight]
            labels, output, share = [head.of(x) if several else x for x in parts]
            for name in head.metrics:
                with knowing_losses([(metrics[name], head.kind)]):
                    update(metrics[name], labels, output, share if name in head.weighted else None)


#: What a subclass may define itself.
_STEPS = "train_step test_step predict_step compute_loss compute_metrics".split()


class Stepping:
    """A mixin for models with their own training steps; methods have Keras's names.

    :func:`fit` in this module calls ``train_step`` and ``test_step``. The methods here do what
    :func:`gradtape.training.fit` does. A subclass overrides them, or the methods that they call.
    """

    _gradtape_calls_steps = True

    def _set_goals(self, optimizer: Any, **goals: Any) -> None:
        """Set the optimizer, and what the steps minimise and measure, as for :class:`Compiled`."""
        # the name keeps the optimizer out of the model's own variables
        vars(self).pop("optimizer", None)
        vars(self)["_gradtape_compiled"] = Compiled(self, optimizer, **goals)

    def _compiled(self, method: str) -> Compiled:
        """Return what was set; raise ``ValueError``, naming the method, if nothing was."""
        compiled: Compiled | None = vars(self).get("_gradtape_compiled")
        if compiled is None:
            lacks = vars(self).get("_gradtape_lacks")
            also = f"the file names {lacks!r}: pass custom_objects={{{lacks!r}: ...}} to "
            also = f"{also}load_model, or " if lacks is not None else ""
            raise ValueError(f"{method}: {also}call compile(optimizer, loss) on the model first")
        return compiled

    def _has_own(self, *names: str) -> bool:
        """Return whether a subclass defines any of these methods itself."""
        return any(getattr(type(self), name) is not getattr(Stepping, name) for name in names)

    def _own_steps(self) -> list[str]:
        """Return the names of the steps that a subclass defines itself."""
        return [name for name in _STEPS if self._has_own(name)]

    @overridable  # a model may have its own attribute of this name, for its own training loop
    def optimizer(self) -> Any:
        """The optimizer; None before it is set."""
        return getattr(vars(self).get("_gradtape_compiled"), "optimizer", None)

    @property
    def metrics(self) -> list[Any]:
        """The mean of the loss, and the metrics that were set."""
        compiled = vars(self).get("_gradtape_compiled")
        return [] if compiled is None else [compiled.loss, *compiled.metrics.values()]

    @property
    def losses(self) -> list[Any]:
        """The losses that layers add."""
        found: Any = super()
        return list(found.losses)

    def compute_loss(
        self,
        x: Any = None,
        y: Any = None,
        y_pred: Any = None,
        sample_weight: Any = None,
        training: bool = True,
    ) -> Any:
        """Return the loss of a batch, a scalar that :meth:`train_step` minimises."""
        compiled = self._compiled("compute_loss")
        return compiled.minimised(y, y_pred, sample_weight, self.losses)

    def compiled_loss(
        self, y: Any, y_pred: Any, sample_weight: Any = None, regularization_losses: Any = None
    ) -> Any:
        """Return the loss of a batch, and add it to the mean of the epoch (as in Keras 2)."""
        compiled = self._compiled("compiled_loss")
        value = compiled.minimised(y, y_pred, sample_weight, regularization_losses or ())
        compiled.add_loss(value, len(flatten(y_pred)[0]))
        return value

    @property
    def compiled_metrics(self) -> Any:
        """An object whose ``update_state(y, y_pred)`` updates the metrics that were set."""
        return self._compiled("compiled_metrics")

    def compute_metrics(self, x: Any, y: Any, y_pred: Any, sample_weight: Any = None) -> Any:
        """Update the metrics that were set with a batch; return :meth:`get_metrics_result`."""
        self._compiled("compute_metrics").update_state(y, y_pred, sample_weight)
        return self.get_metrics_result()

    def get_metrics_result(self) -> dict[str, Any]:
        """Return the metrics' values by name."""
        return {metric.name: metric.result() for metric in self.metrics}

    def reset_metrics(self) -> None:
        """Reset all metrics."""
        for metric in self.metrics:
            metric.reset_state()

    def train_step(self, data: Any) -> dict[str, Any]:
        """Train on a batch, and return values by name; override it for your own training step.

        ``data`` is a batch of the data that ``fit`` received: ``(x, y)``, ``(x, y,
        sample_weight)``, or only ``x``. The values of the last batch are those of the epoch.
        """
        model: Any = self
        x, y, *weight = data
        with GradientTape() as tape:
            predicted = model(x, training=True)
            loss = self.compute_loss(x, y, predicted, *weight)
            scaled = self.optimizer.scale_loss(loss)
        variables = model.trainable_variables
        self.optimizer.apply_gradients(zip(tape.gradient(scaled, variables), variables))
        model.apply_constraints()
        return self._measured(loss, x, y, predicted, *weight)

    def test_step(self, data: Any) -> dict[str, Any]:
        """Evaluate a batch at inference; override it for your own evaluation step."""
        model: Any = self
        x, y, *weight = data
        predicted = model(x, training=False)
        loss = self.compute_loss(x, y, predicted, *weight)
        return self._measured(loss, x, y, predicted, *weight)

    def _measured(self, loss: Any, x: Any, *parts: Any) -> dict[str, Any]:
        self._compiled("fit").add_loss(loss, len(flatten(x)[0]))
        found: dict[str, Any] = self.compute_metrics(x, *parts)
        return found

    def predict_step(self, data: Any) -> Any:
        """Return the outputs for a batch at inference; override it for your own prediction step."""
        model: Any = self
        return model(data, training=False)


def _dataset(x: Any, y: Any, weight: Any, batch_size: int, passes: int = 1) -> Examples | Batches:
    if y is not None:
        given = (x, y) if weight is None else (x, y, weight)
        return as_dataset(given, batch_size, passes)
    several = isinstance(x, (dict, list, tuple)) and any(hasattr(z, "shape") for z in flatten(x))
    if hasattr(x, "shape") or several:
        return Examples(as_part("data: x", x), None, batch_size)
    return Batches(x, passes)


def as_numbers(logs: Any, step: str) -> dict[str, float]:
    """Return the values that a step returned as Python numbers.

    Raises
    ------
    TypeError
        If ``logs`` is not a dictionary.
    """
    if not isinstance(logs, dict):
        raise TypeError(f"{step} must return a dict of names and values, got {type(logs).__name__}")
    return {name: float(np.mean(np.asarray(value))) for name, value in logs.items()}


class OwnSteps(Session):
    """Runs a model's own steps in the loop over epochs. Only the model knows what they change."""

    own_steps = True

    def __init__(self, model: Any) -> None:
        self.model = model

    @property
    def optimizer(self) -> Any:
        """The model's optimizer; None without one."""
        return self.model.optimizer

    def prepare(self, batch: Any) -> None:
        """Create all variables with a training step; values from a file then replace them."""
        with self._with_known_losses():
            self.model.train_step(batch)

    def _with_known_losses(self) -> AbstractContextManager[None]:
        """Return a context in which the model's metrics know the losses: steps may update them."""
        compiled = vars(self.model).get("_gradtape_compiled")
        return nullcontext() if compiled is None else compiled.objective.knowing_losses()

    def trackables(self) -> dict[str, Any]:
        """Return the model, its optimizer and its metrics."""
        inside = {id(module) for module in (self.model, *self.model.submodules)}
        beside = [self.model.optimizer, *self.model.metrics]
        beside = [x for x in beside if x is not None and id(x) not in inside]
        return {"model": self.model, **({"compiled": beside} if beside else {})}

    def begin_epoch(self) -> None:
        """Reset the metrics, which average over the batches of an epoch."""
        self.model.reset_metrics()

    def train(self, batch: Any) -> dict[str, float]:
        """Return what ``train_step`` returns for a batch."""
        with self._with_known_losses():
            return as_numbers(self.model.train_step(batch), "fit: train_step")

    def evaluate(
        self, batches: Iterable[Any], stop: Callable[[], bool] = lambda: False
    ) -> dict[str, float]:
        """Reset the metrics, run ``test_step`` on the batches, and return its last values."""
        self.model.reset_metrics()
        logs: dict[str, float] = {}
        with states_kept(self.model), self._with_known_losses():
            for batch in batches:
                logs = as_numbers(self.model.test_step(batch), "evaluate: test_step")
                if stop():
                    break
        if not logs:
            raise ValueError("evaluate: data has no batches, or test_step returned no values")
        return logs


def fit(
    model: Any,
    x: Any,
    y: Any = None,
    sample_weight: Any = None,
    *,
    epochs: int = 1,
    batch_size: int = 32,
    validation_data: Any = None,
    validation_split: float = 0.0,
    validation_freq: Any = 1,
    validation_steps: int | None = None,
    verbose: int = True,
    callbacks: Iterable[Any] = (),
    initial_epoch: int = 0,
    **keeping: Any,
) -> History:
    """Train a model with its ``train_step``.

    As in Keras, the values of an epoch are those that its last step returned. The model's metrics
    average over the batches, and are reset before each epoch.

    Parameters
    ----------
    model
        A module that is a :class:`Stepping`.
    x, y, sample_weight
        Arrays or containers of arrays; or only ``x``; or an iterable of batches as ``x``.
    epochs, batch_size, validation_data, validation_split, validation_freq, verbose, callbacks
        As for :func:`gradtape.training.fit`.
    validation_steps, initial_epoch, keeping
        As for :func:`gradtape.training.fit`; ``keeping`` holds ``shuffle``, ``seed``,
        ``steps_per_epoch``, ``checkpoint``, ``save_every`` and ``resume``.

    Raises
    ------
    TypeError
        If a callback is a ``BackupAndRestore``; ``checkpoint=`` and ``resume=True`` do the same.
    """
    callbacks = callbacks if callable(callbacks) else list(callbacks)
    if not callable(callbacks) and any(isinstance(x, BackupAndRestore) for x in callbacks):
        raise TypeError(
            "fit: a model with its own train_step does not take BackupAndRestore; use "
            "checkpoint=PATH and resume=True"
        )
    epochs, initial_epoch = as_epochs(epochs, initial_epoch)
    passes = 1 if keeping.get("steps_per_epoch") else epochs - initial_epoch
    data, held_out = _dataset(x, y, sample_weight, batch_size, passes), None
    if validation_data is not None:
        whole = isinstance(validation_data, tuple) and len(validation_data) in (2, 3)
        parts: list[Any] = [*validation_data, None] if whole else [validation_data, None, None]
        held_out = _dataset(parts[0], parts[1], parts[2], batch_size, epochs)
    elif validation_split:
        if not isinstance(data, Examples):
            raise ValueError(
                "fit: validation_split needs data in arrays; give validation_data instead"
            )
        data, held_out = data.split(validation_split)
    settings = {"epochs": epochs, "initial_epoch": initial_epoch, **keeping}
    run = Run(OwnSteps(model), data, callbacks, **settings)
    run.measured = None if held_out is None else ["val_*"]  # the names are unknown
    return run_epochs(run, held_out, int(verbose), validation_freq, validation_steps)


def evaluate(
    model: Any, x: Any, y: Any = None, sample_weight: Any = None, *, batch_size: int = 32
) -> dict[str, float]:
    """Return the last values of a model's ``test_step``, after resetting its metrics."""
    return OwnSteps(model).evaluate(_dataset(x, y, sample_weight, batch_size).batches())


def predict(model: Any, x: Any, *, batch_size: int = 32) -> Any:
    """Return the outputs of a model's ``predict_step`` for all batches, joined as NumPy arrays."""
    step: Callable[[Any], Any] = model.predict_step
    found = [step(batch) for batch in _dataset(x, None, None, batch_size).batches()]
    if not found:
        raise ValueError("predict: there are no examples")
    parts = [[np.asarray(leaf) for leaf in flatten(outputs)] for outputs in found]
    joined = iter([np.concatenate(part) for part in zip(*parts, strict=True)])
    return map_structure(lambda _: next(joined), found[0])

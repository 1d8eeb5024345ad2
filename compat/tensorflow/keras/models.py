"""``tf.keras.Model`` and ``Sequential``: compile, fit, evaluate and predict over gradtape's."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

import gradtape
from gradtape import training as gt_training

from ....core.extend import map_structure
from ....training.shapes import of_one_rank, weights_like
from ..names import adapts, lookup
from ..saved_model import with_folders
from . import losses as known_losses
from . import metrics as known_metrics
from . import optimizers as known_optimizers
from . import steps
from .layers import Layer

__all__ = ["Model", "Sequential"]

# How Keras makes graphs of steps; a model that overrides these expects them to be called.
_MAKERS = ("make_train_function", "make_test_function", "make_predict_function")
# What fit does not know, and the values that leave things as they are.
_DEFAULTS = {"validation_freq": 1}


class _Compiled:
    """What a model was compiled with, and the metrics that average over batches."""

    def __init__(self, optimizer: Any, loss: Any, metrics: Any) -> None:
        self.optimizer = known_optimizers.get(optimizer)
        if isinstance(loss, (list, tuple, dict)):
            raise TypeError("compile: a loss per output is not supported; write a train_step")
        given = None if loss is None else known_losses.get(loss)
        self.loss = None if given is None else _Aligned(given)
        self.weighs = isinstance(given, known_losses.Loss)  # by itself, before it reduces
        self.metrics = [_Aligned(known_metrics.per_example(metric)) for metric in metrics or ()]
        self.tracker = known_metrics.Mean("loss")
        self.tracked = [
            known_metrics.MeanMetricWrapper(metric, metric.__name__) for metric in self.metrics
        ]

    def update_state(self, y: Any, y_pred: Any, sample_weight: Any = None) -> None:
        """Take a batch for the metrics of ``compile``."""
        for metric in self.tracked:
            metric.update_state(y, y_pred, sample_weight)


class _Aligned:
    """A loss or metric as a function that is given labels and predictions of one rank."""

    def __init__(self, function: Any) -> None:
        if not callable(function):
            raise TypeError(
                f"compile: expected functions of labels and predictions, got {function!r}"
            )
        self.__wrapped__ = function
        self.__name__ = getattr(function, "__name__", type(function).__name__)

    def __call__(self, y_true: Any, y_pred: Any, **kwargs: Any) -> Any:
        if isinstance(y_pred, (list, tuple, dict)):
            raise TypeError(
                f"{self.__name__}: the model returns a {type(y_pred).__name__} of outputs, and one "
                "loss or metric is for one of them; write a train_step and a test_step"
            )
        return self.__wrapped__(*of_one_rank(y_true, y_pred), **kwargs)


def _refuse(method: str, options: dict[str, Any]) -> None:
    for name, value in options.items():
        if value is not None and _DEFAULTS.get(name) is not value:
            raise TypeError(
                f"{method}: {name} is not supported by gradtape (see docs/migration.md)"
            )


@adapts("Model", "training.fit", "training.evaluate", "training.predict")
class Model(Layer, gradtape.Model):
    """A layer that can be trained: of ``inputs`` and ``outputs``, or a subclass with ``call``.

    See :class:`gradtape.Model`; the other options are those of ``tf.keras.layers.Layer``.
    """

    def __init__(
        self, inputs: Any = None, outputs: Any = None, name: str | None = None, **options: Any
    ) -> None:
        gradtape.Model.__init__(self, inputs, outputs, name)
        self.take_options(options)

    def build(self, input_shape: Any) -> None:
        """Make the weights, by one call at inference with zeros.

        Parameters
        ----------
        input_shape
            The shape of a batch, None for its size; or shapes in a list or a dictionary.
        """
        with gradtape.init_scope():
            self.call(_zeros(input_shape))  # type: ignore[attr-defined]
        self.built = True

    def _build_for(self, inputs: Any) -> None:
        if type(self).build is Model.build:
            self.built = True  # the call with these inputs itself makes the weights
        if "_gradtape_built" not in vars(self):
            super()._build_for(inputs)

    @property
    def layers(self) -> list[Any]:
        """The layers directly inside."""
        leaves = (leaf for _, leaf in self.own_leaves())
        inside = [leaf for leaf in leaves if isinstance(leaf, gradtape.layers.Layer)]
        return vars(self).get("layers", inside)

    @layers.setter
    def layers(self, value: list[Any]) -> None:
        vars(self)["layers"] = value

    def compile(
        self,
        optimizer: Any = "rmsprop",
        loss: Any = None,
        loss_weights: Any = None,
        metrics: Sequence[Any] | None = None,
        weighted_metrics: Any = None,
        run_eagerly: bool = False,
        steps_per_execution: int = 1,
        jit_compile: Any = "auto",
        auto_scale_loss: bool = True,
    ) -> None:
        """Choose the optimizer, the loss and the metrics of :meth:`fit`.

        Parameters
        ----------
        optimizer, loss
            Objects, or their names.
        metrics
            Names, functions of labels and predictions, or objects.
        loss_weights, weighted_metrics
            Not supported.
        run_eagerly, steps_per_execution, jit_compile, auto_scale_loss
            Ignored.
        """
        if loss_weights is not None or weighted_metrics is not None:
            raise TypeError("compile: loss_weights and weighted_metrics are not supported")
        makers = [name for name in _MAKERS if hasattr(self, name)]
        if makers:
            raise NotImplementedError(
                f"compile: {type(self).__name__}.{makers[0]} would never be called: steps run "
                "eagerly; override train_step, test_step or predict_step instead"
            )
        # the name keeps the optimizer out of the model's own variables
        vars(self)["_gradtape_compiled"] = _Compiled(optimizer, loss, metrics)

    def _compiled(self, method: str) -> _Compiled:
        compiled: _Compiled | None = vars(self).get("_gradtape_compiled")
        if compiled is None:
            raise ValueError(f"{method}: call compile(optimizer, loss) on the model first")
        return compiled

    def _loss(self, method: str) -> Any:
        loss = self._compiled(method).loss
        if loss is None:
            raise ValueError(f"{method}: the model was compiled without a loss")
        return loss

    @property
    def optimizer(self) -> Any:
        """The optimizer of :meth:`compile`, None before it."""
        compiled = vars(self).get("_gradtape_compiled")
        return None if compiled is None else compiled.optimizer

    @property
    def metrics(self) -> list[Any]:
        """The metrics that average over batches: of the loss, and those of :meth:`compile`."""
        compiled = vars(self).get("_gradtape_compiled")
        return [] if compiled is None else [compiled.tracker, *compiled.tracked]

    @property
    def losses(self) -> list[Any]:
        """Losses added by layers: none, as layers take no regularizers."""
        return []

    # -- steps -----------------------------------------------------------------------------------

    def _has_own(self, *names: str) -> bool:
        """Return whether a subclass defines any of these methods itself."""
        return any(getattr(type(self), name) is not getattr(Model, name) for name in names)

    def compute_loss(
        self,
        x: Any = None,
        y: Any = None,
        y_pred: Any = None,
        sample_weight: Any = None,
        training: bool = True,
    ) -> Any:
        """Return the loss of a batch, a scalar that :meth:`train_step` minimises."""
        loss = self._loss("compute_loss")
        if sample_weight is None:
            return gradtape.mean(loss(y, y_pred))
        if self._compiled("compute_loss").weighs:
            return gradtape.mean(loss(y, y_pred, sample_weight=sample_weight))
        values = loss(y, y_pred)
        return gradtape.mean(values * weights_like(sample_weight, values))

    def compiled_loss(
        self, y: Any, y_pred: Any, sample_weight: Any = None, regularization_losses: Any = None
    ) -> Any:
        """Return the loss of a batch, and take it for the mean of the epoch (as in Keras 2)."""
        value = self.compute_loss(None, y, y_pred, sample_weight)
        for further in regularization_losses or ():
            value = value + further
        self._compiled("compiled_loss").tracker.update_state(value, len(y_pred))
        return value

    @property
    def compiled_metrics(self) -> Any:
        """What has ``update_state(y, y_pred)`` for the metrics of :meth:`compile`."""
        return self._compiled("compiled_metrics")

    def compute_metrics(self, x: Any, y: Any, y_pred: Any, sample_weight: Any = None) -> Any:
        """Take a batch for the metrics of :meth:`compile`; return :meth:`get_metrics_result`."""
        self._compiled("compute_metrics").update_state(y, y_pred, sample_weight)
        return self.get_metrics_result()

    def get_metrics_result(self) -> dict[str, Any]:
        """Return the metrics' values by name."""
        return {metric.name: metric.result() for metric in self.metrics}

    def reset_metrics(self) -> None:
        """Let all metrics forget what they were given."""
        for metric in self.metrics:
            metric.reset_state()

    def train_step(self, data: Any) -> dict[str, Any]:
        """Train on a batch; override it to train otherwise.

        Parameters
        ----------
        data
            What ``fit`` was given, a batch of it: ``(x, y)``, or ``x`` alone.

        Returns
        -------
        Values by name, those of the last batch being the epoch's.
        """
        x, y = data
        with gradtape.GradientTape() as tape:
            predicted = self(x, training=True)
            loss = self.compute_loss(x=x, y=y, y_pred=predicted)
        variables = self.trainable_variables
        self.optimizer.apply_gradients(zip(tape.gradient(loss, variables), variables))
        return self._measured(x, y, predicted, loss)

    def test_step(self, data: Any) -> dict[str, Any]:
        """Measure a batch at inference; override it to measure otherwise."""
        x, y = data
        predicted = self(x, training=False)
        loss = self.compute_loss(x=x, y=y, y_pred=predicted)
        return self._measured(x, y, predicted, loss)

    def _measured(self, x: Any, y: Any, predicted: Any, loss: Any) -> dict[str, Any]:
        self._compiled("fit").tracker.update_state(loss, len(y))
        return self.compute_metrics(x, y, predicted)

    def predict_step(self, data: Any) -> Any:
        """Return the outputs of a batch at inference; override it to predict otherwise."""
        return self(data, training=False)

    # -- loops -----------------------------------------------------------------------------------

    def fit(
        self,
        x: Any = None,
        y: Any = None,
        batch_size: int | None = None,
        epochs: int = 1,
        verbose: Any = "auto",
        callbacks: Iterable[Any] | None = None,
        validation_split: float = 0.0,
        validation_data: Any = None,
        shuffle: bool = True,
        *,
        initial_epoch: int = 0,
        checkpoint: Any = None,
        save_every: int | None = None,
        resume: bool = False,
        **other: Any,
    ) -> Any:
        """Train: by :func:`gradtape.training.fit`, or by steps that a subclass defines.

        Parameters
        ----------
        x, y
            Arrays of inputs and labels, or containers of arrays if ``call`` takes these; or ``x``
            alone, an iterable of batches of both.
        batch_size
            32 by default.
        epochs, callbacks, validation_split, validation_data, shuffle, initial_epoch
            As in gradtape.
        checkpoint, save_every, resume
            As in gradtape: how the run is kept, and resumed.
        verbose
            0 for no progress bar.
        other
            Keras' further options, which are not supported: an error says so.

        Returns
        -------
        A history; ``history.history`` has a list per name.
        """
        _refuse("fit", other)
        compiled = self._compiled("fit")
        if not callable(callbacks):
            callbacks = list(callbacks or ())
            for callback in callbacks:
                if hasattr(callback, "set_model"):  # as Keras' callbacks have it
                    callback.set_model(self)
        settings: dict[str, Any] = {
            "epochs": epochs,
            "batch_size": 32 if batch_size is None else batch_size,
            "validation_data": validation_data,
            "validation_split": validation_split,
            "shuffle": shuffle,
            "verbose": verbose not in (0, False),
            "callbacks": callbacks,
            "initial_epoch": initial_epoch,
            "checkpoint": checkpoint,
            "save_every": save_every,
            "resume": resume,
        }
        own = self._has_own("train_step", "test_step", "compute_loss", "compute_metrics")
        if own or steps.is_structure(x):
            return steps.fit(self, x, y, **settings)
        return gt_training.fit(
            self,
            _data(x, y),
            optimizer=compiled.optimizer,
            loss=self._loss("fit"),
            metrics=compiled.metrics,
            **settings,
        )

    def evaluate(
        self,
        x: Any = None,
        y: Any = None,
        batch_size: int | None = None,
        verbose: Any = "auto",
        return_dict: bool = False,
        **other: Any,
    ) -> Any:
        """Return the loss at inference, with the metrics after it in a list if there are any."""
        _refuse("evaluate", other)
        compiled = self._compiled("evaluate")
        size = 32 if batch_size is None else batch_size
        own = self._has_own("test_step", "compute_loss", "compute_metrics")
        if own or steps.is_structure(x):
            found = steps.evaluate(self, x, y, size)
        else:
            found = gt_training.evaluate(
                self,
                _data(x, y),
                batch_size=size,
                loss=self._loss("evaluate"),
                metrics=compiled.metrics,
            )
        return found if return_dict else _listed(found)

    def predict(
        self, x: Any, batch_size: int | None = None, verbose: Any = "auto", **other: Any
    ) -> Any:
        """Return the outputs at inference as a NumPy array."""
        _refuse("predict", other)
        size = 32 if batch_size is None else batch_size
        if self._has_own("predict_step") or steps.is_structure(x):
            return steps.predict(self, x, size)
        return np.array(gt_training.predict(self, x, batch_size=size).numpy())

    def train_on_batch(self, x: Any, y: Any = None) -> Any:
        """Do one training step; return the loss before it, or what :meth:`train_step` returns."""
        self._compiled("train_on_batch")
        self.reset_metrics()
        data = map_structure(gradtape.as_tensor, x if y is None else (x, y))
        found = steps.numbers(self.train_step(data), "train_on_batch: train_step")
        return _listed(found) if self._has_own("train_step") else found["loss"]

    def save(self, filepath: Any, overwrite: bool = True) -> None:
        """Save to a file, whose folders are made; see :func:`gradtape.save`."""
        gradtape.save(self, with_folders(filepath))


def _data(x: Any, y: Any) -> Any:
    return x if y is None else (x, y)


def _listed(values: dict[str, float]) -> Any:
    """Return values as Keras does without names: a list, or the only one."""
    found = list(values.values())
    return found if len(found) > 1 else found[0]


def _zeros(shape: Any) -> Any:
    """Return zeros of a shape, or of several in a container; unknown sizes are 1."""
    if isinstance(shape, dict):
        return {key: _zeros(part) for key, part in shape.items()}
    if any(isinstance(part, (list, tuple)) for part in shape):
        return [_zeros(part) for part in shape]
    return gradtape.zeros([1 if n is None else n for n in shape])


@adapts("layers.Sequential")
class Sequential(Model, gradtape.layers.Sequential):
    """Layers one after another; see :class:`gradtape.layers.Sequential`.

    It is built at once if the first is an ``Input``, or has an ``input_shape``.
    """

    def __init__(
        self, layers: Iterable[Any] | None = None, trainable: bool = True, name: str | None = None
    ) -> None:
        gradtape.layers.Sequential.__init__(self, layers or (), name)
        self.take_options({"trainable": trainable})

    def _append(self, layer: Any) -> None:
        shape = getattr(layer, "_gradtape_input_shape", None)
        if shape is not None and not self.layers:
            super()._append(gradtape.Input(shape))
        super()._append(layer)

    add = gradtape.layers.Sequential.add
    call = gradtape.layers.Sequential.call


__getattr__ = lookup(__name__)

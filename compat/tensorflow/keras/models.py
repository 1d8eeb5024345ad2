"""``tf.keras.Model`` and ``Sequential``: compile, fit, evaluate and predict over gradtape's."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

import gradtape
from gradtape import training as gt_training

from ..names import adapts, lookup
from . import losses as known_losses
from . import metrics as known_metrics
from . import optimizers as known_optimizers
from .layers import Input, Layer

__all__ = ["Model", "Sequential"]


class _Compiled:
    """What a model was compiled with."""

    def __init__(self, optimizer: Any, loss: Any, metrics: Any) -> None:
        self.optimizer = known_optimizers.get(optimizer)
        self.loss: Any = None if loss is None else known_losses.get(loss)
        self.metrics = [known_metrics.per_example(metric) for metric in metrics or ()]


@adapts("layers.Layer", "training.fit", "training.evaluate", "training.predict")
class Model(Layer):
    """A layer that can be trained: subclass it, make layers in ``__init__``, use them in ``call``.

    The functional interface (``Model(inputs, outputs)``) is not there.

    Parameters
    ----------
    trainable, name, dtype
        As for ``tf.keras.layers.Layer``.
    """

    def __init__(
        self,
        *args: Any,
        trainable: bool = True,
        name: str | None = None,
        dtype: Any = None,
        **other: Any,
    ) -> None:
        if args or "inputs" in other or "outputs" in other:
            raise TypeError(
                "Model(inputs, outputs) is not supported by gradtape: use tf.keras.Sequential, or "
                "subclass tf.keras.Model (see docs/migration.md)"
            )
        super().__init__(trainable=trainable, name=name, dtype=dtype, **other)

    @property
    def layers(self) -> list[Any]:
        """The layers directly inside."""
        return [leaf for _, leaf in self.own_leaves() if isinstance(leaf, gradtape.layers.Layer)]

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
        # the name keeps the optimizer out of the model's own variables
        vars(self)["_gradtape_compiled"] = _Compiled(optimizer, loss, metrics)

    def _compiled(self, method: str) -> _Compiled:
        compiled: _Compiled | None = vars(self).get("_gradtape_compiled")
        if compiled is None:
            raise ValueError(f"{method}: call compile(optimizer, loss) on the model first")
        if compiled.loss is None:
            raise ValueError(f"{method}: the model was compiled without a loss")
        return compiled

    @property
    def optimizer(self) -> Any:
        """The optimizer of :meth:`compile`, None before it."""
        compiled = vars(self).get("_gradtape_compiled")
        return None if compiled is None else compiled.optimizer

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
    ) -> Any:
        """Train; see :func:`gradtape.training.fit`.

        Parameters
        ----------
        x, y
            Arrays of inputs and labels; or ``x`` alone, an iterable of batches of both.
        batch_size
            32 by default.
        epochs, callbacks, validation_split, validation_data, shuffle
            As in gradtape.
        verbose
            0 for no progress bar.

        Returns
        -------
        A history; ``history.history`` has a list per name.
        """
        compiled = self._compiled("fit")
        return gt_training.fit(
            self,
            _data(x, y),
            epochs=epochs,
            batch_size=32 if batch_size is None else batch_size,
            optimizer=compiled.optimizer,
            loss=compiled.loss,
            metrics=compiled.metrics,
            validation_data=validation_data,
            validation_split=validation_split,
            shuffle=shuffle,
            verbose=verbose not in (0, False),
            callbacks=callbacks or (),
        )

    def evaluate(
        self,
        x: Any = None,
        y: Any = None,
        batch_size: int | None = None,
        verbose: Any = "auto",
        return_dict: bool = False,
    ) -> Any:
        """Return the loss at inference, with the metrics after it in a list if there are any."""
        compiled = self._compiled("evaluate")
        found = gt_training.evaluate(
            self,
            _data(x, y),
            batch_size=32 if batch_size is None else batch_size,
            loss=compiled.loss,
            metrics=compiled.metrics,
        )
        if return_dict:
            return found
        return list(found.values()) if len(found) > 1 else found["loss"]

    def predict(self, x: Any, batch_size: int | None = None, verbose: Any = "auto") -> Any:
        """Return the outputs at inference as a NumPy array."""
        size = 32 if batch_size is None else batch_size
        return np.array(gt_training.predict(self, x, batch_size=size).numpy())

    def train_on_batch(self, x: Any, y: Any) -> float:
        """Do one training step; return the loss before it."""
        compiled = self._compiled("train_on_batch")
        with gradtape.GradientTape() as tape:
            loss = gradtape.mean(compiled.loss(gradtape.as_tensor(y), self(x, training=True)))
        variables = self.trainable_variables
        compiled.optimizer.apply_gradients(zip(tape.gradient(loss, variables), variables))
        return float(loss)

    def save(self, filepath: Any, overwrite: bool = True) -> None:
        """Save to a file; see :func:`gradtape.save`."""
        gradtape.save(self, filepath)


def _data(x: Any, y: Any) -> Any:
    return x if y is None else (x, y)


@adapts("layers.Sequential")
class Sequential(Model, gradtape.layers.Sequential):
    """Layers one after another; see :class:`gradtape.layers.Sequential`.

    Parameters
    ----------
    layers
        Layers, other models, or functions of one tensor. If the first is an ``Input``, or has an
        ``input_shape``, the model is built at once.
    trainable
        Whether the weights train.
    name
        A Python identifier.
    """

    def __init__(
        self, layers: Iterable[Any] | None = None, trainable: bool = True, name: str | None = None
    ) -> None:
        vars(self)["_gradtape_examples"] = None
        gradtape.layers.Sequential.__init__(self, layers or (), name)
        self.dtype = "float32"
        self._finish(trainable, {})
        self._build_early()

    def add(self, layer: Any) -> None:
        """Append a layer, a model, or a function of one tensor."""
        state = vars(self)
        if isinstance(layer, Input):
            state["_gradtape_examples"] = (layer.shape, layer.dtype)
            return
        gradtape.layers.Sequential.add(self, layer)
        shape = vars(layer).get("_gradtape_input_shape") if hasattr(layer, "__dict__") else None
        if shape is not None and len(self.layers) == 1:
            state["_gradtape_examples"] = (tuple(shape), gradtape.float32)
        if "dtype" in state:
            self._build_early()

    def pop(self) -> Any:
        """Remove the last layer, and return it."""
        return self.layers.pop()

    def _build_early(self) -> None:
        known = vars(self)["_gradtape_examples"]
        if known is not None and self.layers:
            shape, dtype = known
            with gradtape.init_scope():
                self(gradtape.zeros((1, *(1 if n is None else n for n in shape)), dtype))

    @property
    def layers(self) -> list[Any]:
        """The layers."""
        return vars(self)["layers"]

    @layers.setter
    def layers(self, value: list[Any]) -> None:
        vars(self)["layers"] = value

    def call(self, x: Any, training: bool = False) -> Any:
        """Apply the layers in order."""
        return gradtape.layers.Sequential.call(self, x, training)


__getattr__ = lookup(__name__)

"""``tf.keras.Model`` and ``Sequential``, with Keras's compile, fit, evaluate and predict."""

from __future__ import annotations

import contextlib
import inspect
import os
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

import gradtape

from ....core.extend import SAVING, flatten, hinted_arguments, map_structure, overridable, warn_user
from ....layers.base.calls import takes_training
from ....layers.model import Model as GraphModel
from ....saving.records.formats import under_any_name
from ....training import own_steps
from ....training.described import described, recompile
from ....training.names import nearest
from ....training.runs.batches import ClassWeights
from ..names import adapts, lookup
from ..runs import with_folders
from . import losses as known_losses
from . import metrics as known_metrics
from . import optimizers as known_optimizers
from .adapting import refuse
from .layers import InputLayer, Layer

__all__ = ["Model", "Sequential", "load_model", "save_model"]

# Keras makes graphs of steps with these; a model that overrides one expects it to be called.
_MAKERS = ("make_train_function", "make_test_function", "make_predict_function")


#: What to write instead of arguments of Keras 2 for saving.
_SAVING = {
    **SAVING,
    "include_optimizer": "leave it out: the file has the optimizer's settings, and no moments",
}


@adapts("Model", "training.fit", "training.evaluate", "training.predict")
class Model(own_steps.Stepping, Layer, GraphModel):
    """A trainable layer, made from ``inputs`` and ``outputs`` or a subclass with ``call``.

    See :class:`gradtape.Model`; other options are those of ``tf.keras.layers.Layer``.
    """

    def __init__(
        self, inputs: Any = None, outputs: Any = None, name: str | None = None, **options: Any
    ) -> None:
        if isinstance(inputs, str):  # a subclass may pass a name alone, as in Keras 2
            inputs, name = None, inputs
        gradtape.Model.__init__(self, inputs, outputs, name)
        self.take_options(options)

    stop_training = False

    @overridable
    def loss(self) -> Any:
        """What ``compile`` received as ``loss``; None before."""
        return vars(self).get("_gradtape_goals", {}).get("loss")

    @property
    def layers(self) -> list[Any]:
        """The layers in Keras's order, by their distance from the outputs; with input layers."""
        found: list[Any] = GraphModel.layers.fget(self)  # type: ignore[attr-defined]
        plan = vars(self).get("_gradtape_plan")
        if plan is None:
            return found
        if "_gradtape_ordered_layers" not in vars(self):
            ends = {x.array: InputLayer(x, name=x.array.name) for x in flatten(plan.inputs)}
            vars(self)["_gradtape_ordered_layers"] = plan.by_distance(ends)
        return list(vars(self)["_gradtape_ordered_layers"])

    @layers.setter
    def layers(self, value: list[Any]) -> None:
        GraphModel.layers.fset(self, value)  # type: ignore[attr-defined]

    @property
    def inputs(self) -> Any:
        """The placeholders of the inputs in a list; None for a subclassed model."""
        return None if self.input is None else flatten(self.input)

    @property
    def outputs(self) -> Any:
        """The placeholders of the outputs in a list; None for a subclassed model."""
        return None if self.output is None else flatten(self.output)

    def build(self, input_shape: Any) -> None:
        """Make the weights by calling the model on zeros.

        ``input_shape`` is a batch's shape, with None for its size, or a list or dictionary of them.
        """
        with gradtape.init_scope():
            self.call(_zeros(input_shape))
        self.built = True

    def _build_for(self, inputs: Any) -> None:
        if type(self).build is Model.build:
            self.built = True  # the call on these inputs makes the weights
        if "_gradtape_built" not in vars(self):
            super()._build_for(inputs)

    def compile(
        self,
        optimizer: Any = "rmsprop",
        loss: Any = None,
        loss_weights: Any = None,
        metrics: Any = None,
        weighted_metrics: Any = None,
        run_eagerly: bool = False,
        steps_per_execution: int = 1,
        jit_compile: Any = "auto",
        auto_scale_loss: bool = True,
    ) -> None:
        """Set the optimizer, losses and metrics: objects, functions or names.

        With ``run_eagerly``, steps run as Python code. Later options are ignored.
        """
        makers = [name for name in _MAKERS if hasattr(self, name)]
        if makers:
            raise NotImplementedError(
                f"compile: {type(self).__name__}.{makers[0]} would never be called; override "
                "train_step, test_step or predict_step instead"
            )
        vars(self)["_gradtape_goals"] = {
            "optimizer": optimizer,
            "loss": loss,
            "loss_weights": loss_weights,
            "metrics": metrics,
            "weighted_metrics": weighted_metrics,
        }
        self._set_goals(
            known_optimizers.get(optimizer),
            loss=map_structure(known_losses.aligning, loss),
            metrics=map_structure(known_metrics.aligning, metrics or ()),
            loss_weights=loss_weights,
            weighted_metrics=map_structure(
                lambda metric: known_metrics.aligning(metric, flatten(metrics)),
                weighted_metrics or (),
            ),
        )
        vars(self)["_gradtape_eager"] = bool(run_eagerly)

    # -- loops -----------------------------------------------------------------------------------

    def fit(
        self,
        x: Any = None,
        y: Any = None,
        batch_size: int | None = None,
        epochs: int = 1,
        verbose: Any = "auto",
        callbacks: Any = None,
        validation_split: float = 0.0,
        validation_data: Any = None,
        shuffle: bool = True,
        class_weight: Any = None,
        sample_weight: Any = None,
        initial_epoch: int = 0,
        **options: Any,
    ) -> Any:
        """Train, by the steps of a subclass if it defines any; return a history.

        ``x`` and ``y`` are arrays or containers of arrays, or ``x`` alone is an iterable of
        batches. Further options are those of :func:`gradtape.training.fit`; Keras's options that
        gradtape lacks are refused.
        """
        options = _known("fit", {"class_weight": class_weight, **options})
        compiled = self._compiled("fit")
        if not callable(callbacks):
            callbacks = list(callbacks or ())
            for callback in callbacks:
                if hasattr(callback, "set_model"):  # a Keras callback
                    callback.set_model(self)
        if type(validation_data) is tuple and len(validation_data) > 1:
            validation_data = tuple(map(_parts, validation_data))
        settings: dict[str, Any] = {
            "epochs": epochs,
            "batch_size": 32 if batch_size is None else batch_size,
            "validation_data": validation_data,
            "validation_split": validation_split,
            "shuffle": shuffle,
            "verbose": 1 if verbose == "auto" else verbose,
            "callbacks": callbacks,
            "initial_epoch": initial_epoch,
        }
        if self._has_own("train_step", "test_step", "compute_loss", "compute_metrics"):
            kept = {name: options.pop(name) for name in _KEEPING if name in options}
            refuse("fit by steps of your own", options)
            return own_steps.fit(self, x, y, sample_weight, **settings, **kept)
        return gradtape.training.fit(
            self,
            _data(x, y, sample_weight),
            optimizer=compiled.optimizer,
            compile=False if vars(self)["_gradtape_eager"] else "auto",
            **compiled.goals,
            **settings,
            **options,
        )

    def evaluate(
        self,
        x: Any = None,
        y: Any = None,
        batch_size: int | None = None,
        verbose: Any = "auto",
        sample_weight: Any = None,
        return_dict: bool = False,
        **options: Any,
    ) -> Any:
        """Return the loss at inference, or a list of the loss and the metrics."""
        options = _known("evaluate", options)
        compiled = self._compiled("evaluate")
        size = 32 if batch_size is None else batch_size
        if self._has_own("test_step", "compute_loss", "compute_metrics"):
            found = own_steps.evaluate(self, x, y, sample_weight, batch_size=size)
        else:
            data = _data(x, y, sample_weight)
            found = gradtape.training.evaluate(
                self, data, batch_size=size, **compiled.goals, **options
            )
        return found if return_dict else _listed(found)

    def predict(
        self, x: Any, batch_size: int | None = None, verbose: Any = "auto", **options: Any
    ) -> Any:
        """Return the outputs at inference as NumPy arrays."""
        options = _known("predict", options)
        size = 32 if batch_size is None else batch_size
        if self._has_own("predict_step"):
            return own_steps.predict(self, x, batch_size=size)
        with gradtape.layers.states_continued():  # programs call predict step by step
            found = gradtape.training.predict(self, x, batch_size=size, **options)
        return map_structure(lambda y: np.array(y.numpy()), found)

    def train_on_batch(
        self,
        x: Any,
        y: Any = None,
        sample_weight: Any = None,
        class_weight: Any = None,
        return_dict: bool = False,
    ) -> Any:
        """Do one training step; return the loss and metrics like :meth:`evaluate`."""
        kind = self._compiled("train_on_batch").objective.heads[0].kind
        self.reset_metrics()
        data = map_structure(gradtape.as_tensor, _data(x, y, sample_weight))
        weigh = ClassWeights.of(class_weight, kind)
        data = data if weigh is None else (*data[:2], weigh(*data[1:]))
        found = own_steps.as_numbers(self.train_step(data), "train_on_batch: train_step")
        return found if return_dict else _listed(found)

    def test_on_batch(
        self, x: Any, y: Any = None, sample_weight: Any = None, return_dict: bool = False
    ) -> Any:
        """Return what :meth:`evaluate` returns for one batch."""
        self._compiled("test_on_batch")
        self.reset_metrics()
        data = map_structure(gradtape.as_tensor, _data(x, y, sample_weight))
        found = own_steps.as_numbers(self.test_step(data), "test_on_batch: test_step")
        return found if return_dict else _listed(found)

    def predict_on_batch(self, x: Any) -> Any:
        """Return the outputs of one batch as NumPy arrays."""
        found = self.predict_step(map_structure(gradtape.as_tensor, x))
        return map_structure(lambda y: np.array(y.numpy()), found)

    @hinted_arguments(_SAVING)
    def save(self, filepath: Any, overwrite: bool = True, zipped: bool | None = None) -> None:
        """Save to a file, creating its folders; see :func:`gradtape.save`. ``zipped`` is ignored.

        Without ``overwrite``, an existing file is refused.
        """
        save_model(self, filepath, overwrite)

    _gradtape_save = save  # for callbacks

    def save_weights(self, filepath: Any, overwrite: bool = True, **options: Any) -> None:  # type: ignore[override]
        """Save the weights; :func:`gradtape.save_weights` describes the other options.

        Without ``overwrite``, an existing file is refused.
        """
        _check_new(filepath, overwrite, "save_weights")
        super().save_weights(filepath, **options)

    def load_weights(self, filepath: Any, skip_mismatch: bool = False, **options: Any) -> Any:  # type: ignore[override]
        """Load weights; :func:`gradtape.load_weights` describes the other options.

        ``skip_mismatch`` loads what fits.
        """
        if skip_mismatch:
            options["strict"] = False
        return super().load_weights(filepath, **options)

    def summary(self, *args: Any, print_fn: Any = None, **options: Any) -> None:  # type: ignore[override]
        """Print :meth:`gradtape.Module.summary`, or pass its text to ``print_fn``.

        Keras's other options, which format its table, are ignored.
        """
        (print_fn or print)(super().summary())


#: Options of ``fit`` that steps of your own also take.
_KEEPING = (
    "checkpoint save_every resume seed steps_per_epoch validation_freq validation_steps".split()
)


def _known(method: str, options: dict[str, Any]) -> dict[str, Any]:
    """Return the options that a training function takes; refuse the others."""
    taken = inspect.signature(getattr(gradtape.training, method)).parameters
    known = [*taken, *inspect.signature(getattr(Model, method)).parameters]
    for name in options.keys() - known:
        if near := nearest(name, known):
            raise TypeError(f"{method} takes no argument {name!r}; did you mean {near!r}?")
    refuse(method, {k: x for k, x in options.items() if k not in taken})
    return {k: x for k, x in options.items() if k in taken and x is not None}


def _check_new(path: Any, overwrite: bool, method: str) -> None:
    if not overwrite and os.path.exists(path):
        raise FileExistsError(f"{method}: {os.fspath(path)} exists, and overwrite is False")


def _data(x: Any, y: Any, weight: Any) -> Any:
    x, y = (x, y) if y is None else (_parts(x), _parts(y))
    if y is None:  # arrays for a model that makes the loss, or batches
        several = isinstance(x, (dict, list)) and any(hasattr(z, "shape") for z in flatten(x))
        return (x, None) if hasattr(x, "shape") or several else x
    return (x, y) if weight is None else (x, y, weight)


def _parts(x: Any) -> Any:
    """Return several inputs or outputs in a list: a tuple could also hold batches."""
    return list(x) if type(x) is tuple else x


def _listed(values: dict[str, float]) -> Any:
    """Return values in a list, or a single value, as Keras does."""
    found = list(values.values())
    return found if len(found) > 1 else found[0]


def _zeros(shape: Any) -> Any:
    """Return zeros for a shape, or for a container of shapes; unknown sizes become 1."""
    if isinstance(shape, dict):
        return {key: _zeros(part) for key, part in shape.items()}
    if any(isinstance(part, (list, tuple)) for part in shape):
        return [_zeros(part) for part in shape]
    return gradtape.zeros([1 if n is None else n for n in shape])


@adapts("layers.Sequential")
class Sequential(Model, gradtape.layers.Sequential):  # type: ignore[override]
    """Layers in sequence; see :class:`gradtape.layers.Sequential`.

    It is built immediately if the first layer is an ``Input`` or has an ``input_shape``.
    """

    def __init__(
        self, layers: Iterable[Any] | None = None, trainable: bool = True, name: str | None = None
    ) -> None:
        gradtape.layers.Sequential.__init__(self, layers or (), name)
        self.take_options({"trainable": trainable})

    def _append(self, layer: Any) -> Any:
        shape = getattr(layer, "_gradtape_input_shape", None)
        if isinstance(layer, InputLayer):
            return super()._append(layer.output)
        if shape is not None and not self.layers:
            super()._append(gradtape.Input(shape))
        super()._append(layer)

    layers: list[Any] = vars(gradtape.layers.Sequential).get("layers")  # type: ignore[assignment]
    call = gradtape.layers.Sequential.call
    input, output = gradtape.layers.Sequential.input, gradtape.layers.Sequential.output


class _LoadedLayer(Layer):
    """A layer of a loaded model: its weights and settings, and its graph if the file has one."""

    def __init__(self, module: Any) -> None:
        super().__init__(name=module.name)
        self.dtype = None  # its graph has its own
        self.module = module
        if not module.trainable:
            self.trainable = False

    def call(self, *args: Any, **kwargs: Any) -> Any:
        """Run it."""
        return self.module(*args, **kwargs)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_") or "module" not in vars(self):
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        return getattr(self.module, name)


class _Loaded(Model):
    """A model that runs the graphs in a file."""

    #: The methods for training that the class had, which no file holds.
    _gradtape_lost_steps: Sequence[str] = ()

    def __init__(self, module: Any) -> None:
        super().__init__(name=module.name)
        self.module = module
        parts = vars(module).get("layers", [leaf for _, leaf in module.own_leaves()])
        modules = [part for part in parts if isinstance(part, gradtape.Module)]
        vars(self)["_gradtape_layers"] = [
            part if isinstance(part, gradtape.layers.Layer) else _LoadedLayer(part)
            for part in modules
        ]

    def _own_steps(self) -> list[str]:
        """Return the names of the steps that the class in the file had."""
        return list(self._gradtape_lost_steps)

    def _has_own(self, *names: str) -> bool:
        lost = [name for name in self._gradtape_lost_steps if name in names]
        if lost:
            kind = self.module.class_name
            warn_user(
                f"load_model: a file holds no {' and '.join(lost)} of {kind}; the model trains by "
                f"Keras's steps. To use its own, create a {kind} and call its load_weights(path)",
                UserWarning,
            )
        return super()._has_own(*names)

    @property  # type: ignore[misc]
    def layers(self) -> list[Any]:
        """The layers that the file names; changing the list does not change the model."""
        return list(vars(self)["_gradtape_layers"])

    def call(self, x: Any, training: bool = False, mask: Any = None) -> Any:
        """Run it."""
        if mask is not None:
            raise TypeError(f"{self.name}: a loaded model takes no mask: call it without one")
        return self.module(x, **({"training": training} if takes_training(self.module) else {}))


@adapts("load")
def load_model(
    filepath: Any, custom_objects: Any = None, compile: bool = True, safe_mode: bool = True
) -> Any:
    """Return the model in a file, with Keras's methods, compiled as it was when it was saved.

    Files hold graphs and need no classes. ``custom_objects`` has your own losses and metrics by
    name. The optimizer starts anew, with the settings that it had. ``safe_mode`` is ignored.
    """
    model = _Loaded(gradtape.load(filepath))
    goals = vars(model.module).get(_GOALS)
    model._gradtape_lost_steps = vars(model.module).get(_STEPS, ())
    if compile and goals is not None:
        spaces = known_losses, known_metrics, known_optimizers, known_optimizers.schedules
        recompile(model, goals, custom_objects or {}, spaces)
    return model


#: The attributes in files with the arguments of ``compile``, and with the steps of a class.
_GOALS, _STEPS = "keras_compile", "keras_steps"


@adapts("save")
@hinted_arguments(_SAVING)
def save_model(
    model: Any, filepath: Any, overwrite: bool = True, zipped: bool | None = None
) -> None:
    """Save a model with the arguments of ``compile``; see :func:`gradtape.save`."""
    _check_new(filepath, overwrite, "save")
    saved = model.module if isinstance(model, _Loaded) else model
    goals = vars(model).get("_gradtape_goals")
    steps: list[str] = getattr(model, "_own_steps", list)()
    if steps:
        vars(saved)[_STEPS] = steps
    if goals is not None:
        with contextlib.suppress(TypeError):  # an object without a name
            optimizer = {"optimizer": model.optimizer}  # with its learning rate of now
            vars(saved)[_GOALS] = described({**goals, **optimizer})
    try:
        with under_any_name():  # programs for Keras name their files .keras, and load_model reads
            gradtape.save(saved, with_folders(filepath))
    finally:
        vars(saved).pop(_GOALS, None)
        vars(saved).pop(_STEPS, None)


__getattr__ = lookup(__name__)

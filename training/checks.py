"""Checks, at the first batch, for data and models that do not fit together."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from ..core.extend import (
    AllRecords,
    Module,
    Recorder,
    RestoredFunction,
    Tensor,
    active_tapes,
    flatten,
    is_frozen,
    recording_to,
    to_numpy,
    warn_user,
)
from ..layers import Sequential, mask_of, stateful_layers, takes_training
from . import losses
from .losses.loss import Kind, label_range, labels_beyond
from .names import name_of

__all__ = [
    "FirstBatchChecks",
    "check_columns",
    "check_labels",
    "check_restored",
    "check_used",
    "sum_to_one",
    "warn_of_own_step",
    "warn_of_padding",
    "warn_of_shuffled",
    "warn_of_sorted",
    "warn_of_untracked",
    "whats_not_finite",
]

#: The activations that return probabilities.
_SQUASHING = ("sigmoid", "softmax")
#: Ops that pass values on in another dtype, or clipped, besides those that only move them.
_PASSING = ("cast", "clip")


def check_labels(loss: Any, kind: Kind | None, y: Tensor, what: str) -> None:
    """Raise if labels are invalid for a loss.

    Parameters
    ----------
    loss
        The loss, whose attribute ``label_range`` says which labels it takes.
    kind
        The kind of the loss; None for a loss that is no cross-entropy of gradtape.
    y
        The labels.
    what
        The name of the data in messages.

    Raises
    ------
    ValueError
        If labels are out of the loss's range, or classes are not integers.
    """
    limits = label_range(loss)
    if (kind is None and limits is None) or y.dtype.kind not in "iuf" or not y.size:
        return
    values = to_numpy(y.array)
    if kind is not None and kind.classes == "sparse":
        wrong = values[values != np.rint(values)] if y.dtype.kind == "f" else values.ravel()[:0]
        if wrong.size:
            raise ValueError(
                f"{what}: the labels of {kind.name} must be integers (0, 1, ...), got "
                f"{wrong[0]:.6g}; for regression use a loss such as loss='mse'"
            )
        return
    text = labels_beyond(limits, values)
    if text:
        raise ValueError(f"{what}: the labels of {name_of(loss)} {text}")


def warn_of_sorted(kind: Kind | None, y: Any, held_out: Any) -> None:
    """Warn if the validation labels have classes that the training labels lack.

    Parameters
    ----------
    kind
        The kind of the loss; None for a loss that gradtape does not know.
    y, held_out
        The labels to train on, and the last labels of the arrays, for validation.
    """
    if kind is None or not isinstance(y, Tensor) or y.ndim > 2:
        return
    parts = [to_numpy(labels.array) for labels in (y, held_out)]
    if y.ndim == 2 and y.shape[-1] > 1:
        if kind.classes != "categorical":
            return
        parts = [labels.argmax(-1) for labels in parts]
    lacking = np.setdiff1d(parts[1], parts[0])
    if lacking.size:
        told = ", ".join(f"{x:g}" for x in lacking[:5])
        warn_user(
            f"fit: validation_split takes the last examples, and only these have the classes "
            f"{told}{', ...' if lacking.size > 5 else ''}: the arrays are sorted. Shuffle them "
            "first, or give validation_data",
            UserWarning,
        )


def check_columns(data: Any, held_out: Any) -> None:
    """Raise if data frames for validation have the columns of those for training in another order.

    Columns are taken by position.

    Raises
    ------
    ValueError
        The message has both orders.
    """
    if not all(isinstance(x, tuple) and x for x in (data, held_out)):
        return
    for i, (ours, theirs) in enumerate(zip(data, held_out)):
        if not all(hasattr(type(x), "columns") for x in (ours, theirs)):
            continue
        names, others = [*map(str, ours.columns)], [*map(str, theirs.columns)]
        if names != others and sorted(names) == sorted(others):
            raise ValueError(
                f"fit: {'xyw'[i % 3]} of validation_data has the columns of data in another order, "
                f"and columns are taken by position: {others}, not {names}; reorder them: "
                "validation[train.columns]"
            )


def warn_of_shuffled(model: Any) -> None:
    """Warn if examples are shuffled although layers continue where the previous batch ended."""
    layers = stateful_layers(model) if isinstance(model, Module) else []
    if layers:
        warn_user(
            f"fit: layer {layers[0].name!r} is stateful: each batch continues the sequences of the "
            "previous one, but fit shuffles the examples, so they do not belong together. Keep "
            "their order with shuffle=False, and call reset_states() where new sequences begin",
            UserWarning,
        )


def check_restored(model: Module) -> None:
    """Raise if a file holds a model's call at inference only, but layers in it need training mode.

    Raises
    ------
    ValueError
        If a module that is not frozen was saved from a class whose ``__call__`` lacks ``training``.
    """
    for module in (model, *model.submodules):
        call = vars(module).get("__call__")
        if not isinstance(call, RestoredFunction) or takes_training(module) or is_frozen(module):
            continue
        for layer in module.submodules:
            if takes_training(layer) and not isinstance(layer, Sequential):
                raise ValueError(
                    f"fit: the file of module {module.name!r} holds its call at inference only, "
                    f"but {type(layer).__name__} {layer.name!r} in it behaves differently in "
                    "training; save it from a class with def __call__(self, x, training=False), "
                    "or freeze it: module.trainable = False"
                )


def check_used(model: Module, without: Sequence[Any], method: str) -> None:
    """Raise if variables have no gradient, because the loss does not depend on them.

    Raises
    ------
    ValueError
        The message names them by paths.
    """
    lost = {id(variable) for variable in without}
    paths = [repr(path) for path, x in model.named_variables.items() if id(x) in lost]
    several = "s" * (len(paths) > 1)
    raise ValueError(
        f"{method}: the loss has no gradient for the variable{several} {', '.join(paths[:4])}"
        f"{', ...' * (len(paths) > 4)} of the model. Either its call does not use that layer or "
        "variable, or an op without a gradient comes between, such as stop_gradient, argmax or "
        ".numpy(). Use it, remove it, or freeze it: trainable = False"
    )


def warn_of_padding(model: Module, x: Any, predicted: Any, method: str) -> None:
    """Warn if a layer masks padding, but outputs with the same steps have no mask.

    Models of layers pass masks on, and a ``call`` that you write does not.
    """
    masking = (
        layer
        for layer in model.submodules
        if getattr(layer, "makes_mask", False) and getattr(layer, "mask_zero", True)
    )
    layer = next(masking, None)
    if layer is None:
        return
    steps = {leaf.shape[:2] for leaf in flatten(x) if leaf.ndim > 1}
    for output in flatten(predicted):
        if isinstance(output, Tensor) and mask_of(output) is None and output.shape[:2] in steps:
            warnings.warn(
                f"{method}: layer {layer.name!r} masks padding, but no mask reaches the model's "
                "output: a call() that you write does not pass it on. Padding counts in the loss, "
                "unless sample_weight or the loss leaves it out",
                stacklevel=2,
            )
            return


def warn_of_untracked(model: Module, watched: Sequence[Any], method: str) -> None:
    """Warn if a step reads trainable variables that the model does not hold: none is trained."""
    held = {variable.id for variable in model.variables}
    others = [variable for variable in watched if variable.id not in held]
    if not others:
        return
    told = ", ".join(f"{variable.name!r} (shape {variable.shape})" for variable in others[:4])
    warnings.warn(
        f"{method}: the model and its loss read {len(others)} trainable variable"
        f"{'s' * (len(others) > 1)} that the model does not hold: {told}"
        f"{', ...' * (len(others) > 4)}. They are not trained. Create layers and variables once, "
        "in __init__, as attributes of a gradtape.Module or in its lists and dictionaries; if they "
        "must not be trained, set trainable=False",
        stacklevel=2,
    )


def _an(noun: str) -> str:
    return f"{'an' if noun[:2] in ('nd', 'in') else 'a'} {noun}"


def whats_not_finite(batch: Sequence[Any]) -> str:
    """Return a sentence that names the inputs, labels or weights with NaN or infinity, if any."""
    parts = [
        name
        for name, part in zip(("x", "y", "sample_weight"), batch)
        if not all(map(_finite, flatten(part)))
    ]
    verb = "holds" if len(parts) == 1 else "hold"
    return f"In this batch {' and '.join(parts)} {verb} NaN or infinity. " if parts else ""


def _finite(x: Any) -> bool:
    known = x is None or x.dtype.kind not in "fc"
    return known or bool(np.isfinite(to_numpy(x.array)).all())


class FirstBatchChecks(Recorder):
    """Records a first batch's ops in model, loss and metrics, and checks them.

    Parameters
    ----------
    method
        The method that runs, for messages, such as ``"fit"``.
    """

    def __init__(self, method: str) -> None:
        self.records = AllRecords()
        self.method = method
        # by value: the op that made it, whether that only passes values on, and its first input
        self._made: dict[int, tuple[str, bool, int | None]] = {}
        self._labels: set[int] = set()
        self._predictions: set[int] = set()

    @contextmanager
    def looking(self) -> Iterator[None]:
        """Record the ops of a block."""
        with recording_to((*active_tapes.get(), self)):
            yield

    def record(
        self, op: Any, inputs: tuple[Any, ...], output: Tensor, params: dict[str, Any]
    ) -> None:
        """Note the op that a value comes from; refuse labels that broadcast over predictions."""
        ids = [x.id for x in inputs if type(x) is Tensor]
        passes = op.identity or op.view or op.integers == "moves" or op.name in _PASSING
        self._made[output.id] = (op.name, bool(passes), ids[0] if ids else None)
        of_labels = self._labels.intersection(ids)
        of_predictions = self._predictions.intersection(ids)
        if of_labels and of_predictions:
            self._check_spread(op.name, inputs, output)
        if of_labels:
            self._labels.add(output.id)
        if of_predictions:
            self._predictions.add(output.id)

    def _check_spread(self, op: str, inputs: Sequence[Any], output: Tensor) -> None:
        """Raise if a vector and a column have broadcast to a square."""
        shapes = [x.array.shape for x in inputs if type(x) is Tensor]
        for low in shapes:
            n = low[-1] if low else 1
            if n > 1 and (*low, 1) in shapes and output.array.shape[-2:] == (n, n):
                raise ValueError(
                    f"{self.method}: labels and predictions of shapes {low} and {(*low, 1)} "
                    f"broadcast to {output.array.shape} in {op!r}: every label meets every "
                    "prediction; give labels the shape of the predictions, y[:, None] or y[:, 0]"
                )

    def observe(self, y: Any, predicted: Any, loss: Any, kind: Kind | None) -> None:
        """Note labels and an output; raise if the loss does not fit them.

        Parameters
        ----------
        y, predicted
            The labels and the output.
        loss
            The loss, if there is one.
        kind
            Its kind, if it is known.

        Raises
        ------
        TypeError
            If the model's output or the labels are not a tensor.
        ValueError
            If a loss of logits gets probabilities, or a loss of probabilities gets other values.
        """
        for what, part in (("model returns", predicted), ("labels are", y)):
            name = f"{self.method}: {getattr(loss, '__name__', 'the loss')}"
            if isinstance(part, (np.ndarray, np.generic, float, int)):
                raise TypeError(
                    f"{name}: the {what} {_an(type(part).__name__)}, which no gradient passes "
                    "through; compute with gradtape's functions or NumPy's on tensors, without "
                    ".numpy(), np.asarray() or float()"
                )
            if not isinstance(part, Tensor):
                raise TypeError(
                    f"{name}: the {what} {_an(type(part).__name__)} of "
                    f"{'outputs' if part is predicted else 'tensors'}, "
                    "but a loss takes one tensor; give a loss for each output, in a list or a "
                    "dictionary"
                )
        self._labels.add(y.id)
        self._predictions.add(predicted.id)
        if kind is not None or losses.is_named(loss):
            self._check_shapes(y.array.shape, predicted.array.shape, kind)
        self._check_several_units(predicted)
        if kind is None or predicted.dtype.kind != "f" or not predicted.size:
            return
        values = to_numpy(predicted.array)
        if kind.from_logits:
            made = self._origin(predicted)
            if made in _SQUASHING or (kind.classes != "binary" and sum_to_one(values, kind.axis)):
                raise ValueError(
                    f"{self.method}: the model returns probabilities"
                    f"{f' (it ends in {made})' if made in _SQUASHING else ''}, but "
                    f"{kind.name} takes logits here; leave the activation out, or set "
                    f"from_logits=False: {_object_named(kind.name)}(from_logits=False)"
                )
        elif values.min() < 0 or (values.max() > 1 and kind.classes == "binary"):
            raise ValueError(
                f"{self.method}: the predictions are from {values.min():.4g} to "
                f"{values.max():.4g}, but {kind.name} takes probabilities here; end the model "
                f"with {'sigmoid' if kind.classes == 'binary' else 'softmax'}, or set "
                f"from_logits=True"
            )

    def _check_shapes(self, y: Any, predicted: Any, kind: Kind | None) -> None:
        """Raise if predictions have another length than labels, or these are for another loss."""
        if y and predicted and predicted[0] != y[0]:
            raise ValueError(
                f"{self.method}: the model returns shape {predicted} for {y[0]} examples, but its "
                "first axis must have one row per example; give inputs of one number each as a "
                "column: x[:, None]"
            )
        several = bool(predicted) and predicted[-1] > 1
        if kind is None or kind.axis != -1 or not several:
            return
        if kind.classes == "sparse" and y == predicted:
            raise ValueError(
                f"{self.method}: {kind.name} takes a class per example, but labels of shape {y} "
                "are one-hot; use loss='categorical_crossentropy', or y.argmax(-1)"
            )
        if kind.classes == "categorical" and y in (predicted[:-1], (*predicted[:-1], 1)):
            raise ValueError(
                f"{self.method}: {kind.name} takes one-hot labels of shape {predicted}, but these "
                f"have shape {y}; use loss='sparse_categorical_crossentropy'"
            )

    def _check_several_units(self, predicted: Tensor) -> None:
        """Warn if the model ends in a softmax over one value, which is 1 whatever the weights."""
        one = bool(predicted.size) and predicted.shape[-1:] == (1,)
        if one and self._origin(predicted) == "softmax" and (to_numpy(predicted.array) == 1).all():
            warn_user(
                f"{self.method}: the model ends in a softmax over one value, which is 1 for every "
                "input; use a sigmoid for one unit, or a unit for each class",
                UserWarning,
            )

    def _origin(self, x: Tensor) -> str:
        """Return the op that a value comes from, ignoring those that only rearrange it."""
        nothing = "", False, None
        name, passes, before = self._made.get(x.id, nothing)
        while passes and before is not None:
            name, passes, before = self._made.get(before, nothing)
        return name


def sum_to_one(values: Any, axis: int) -> bool:
    """Return whether values are not negative and sum to 1 along an axis."""
    if not values.ndim or (values < 0).any():
        return False
    totals = values.astype("float64").sum(axis=axis)
    return bool(np.all(np.abs(totals - 1.0) < (1e-4 if values.itemsize > 2 else 1e-2)))


def _object_named(function: str) -> str:
    """Return the name of a loss function's class, such as ``losses.BinaryCrossentropy``."""
    words = function.removesuffix("_from_logits").split("_")
    return "losses." + "".join(word.capitalize() for word in words)


#: The methods of Keras's models by which functions they are for.
_OWN_STEPS = {"fit": "train_step", "evaluate": "test_step", "predict": "predict_step"}


def warn_of_own_step(model: Any, method: str) -> None:
    """Warn if a class of the user has a step that this function does not call."""
    name, kind = _OWN_STEPS.get(method, ""), type(model)
    if hasattr(kind, name) and not getattr(kind, "_gradtape_calls_steps", False):
        warn_user(
            f"{method}: {type(model).__name__}.{name} is never called; write a loop with a tape, "
            "and compile its step with gradtape.function",
            UserWarning,
        )

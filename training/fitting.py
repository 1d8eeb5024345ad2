"""``fit``: train a model on mini-batches, and tell how it went."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from ..core.extend import Module
from .data import Batches, Examples, as_dataset
from .epochs import run_epochs
from .loop import Trainer
from .loss_scaling import LossScaleOptimizer
from .optimizer import Optimizer
from .resuming import Run, as_epochs
from .session import History

__all__ = ["fit"]


def fit(
    model: Module,
    data: Any,
    *,
    epochs: int = 1,
    batch_size: int = 32,
    optimizer: Optimizer | str = "adam",
    loss: Any = "sparse_categorical_crossentropy",
    metrics: Sequence[Any] | None = None,
    validation_data: Any = None,
    validation_split: float = 0.0,
    shuffle: bool = True,
    seed: int | None = None,
    verbose: bool = True,
    callbacks: Iterable[Any] = (),
    initial_epoch: int = 0,
    checkpoint: Any = None,
    save_every: int | None = None,
    resume: bool = False,
) -> History:
    """Train a model.

    Parameters
    ----------
    model
        A module that is called with a batch, and with ``training=True`` if it takes that. The
        layers in it that are called without ``training`` train either way.
    data
        A tuple of two arrays ``(x, y)``, or a list or another iterable of such batches. What is in
        host memory is copied to the model's device batch by batch, each while the device computes
        with the one before (of an iterable, when it gives it).
    epochs
        How often to go through the data, those epochs that went before included.
    batch_size
        The size of the batches that arrays are cut into.
    optimizer
        An optimizer, or the name of one with its defaults: ``"adam"``, ``"sgd"``, ...
    loss
        One of :mod:`gradtape.training.losses`, or its name (``"mse"``,
        ``"sparse_categorical_crossentropy"``, of logits); or a function of labels and predictions,
        which is given both as they are. Its mean over the batch is minimised.
    metrics
        Any of :mod:`gradtape.training.metrics`, or their names (``"accuracy"``); or functions of
        labels and predictions. ``"accuracy"`` is that of classes, and with a binary cross-entropy
        the share of predictions on the label's side: above 0 for logits, above 1/2 for
        probabilities. By default accuracy for a cross-entropy of classes, and nothing for another
        loss.
    validation_data
        What to evaluate after each epoch, as ``data``.
    validation_split
        Instead, the fraction at the end of the arrays to set apart for that.
    shuffle
        Whether to take the examples of arrays in a new random order in each epoch.
    seed
        The seed of these orders; by default a new one each time. An epoch's order comes from the
        seed and the epoch's number.
    verbose
        Whether to show a progress bar.
    callbacks
        Functions ``f(epoch, logs)``, called after each epoch; one that returns ``True`` ends the
        training. Or objects with any of the methods ``on_train_begin()``,
        ``on_epoch_begin(epoch)``, ``on_train_batch_end(batch, logs)``, ``on_epoch_end(epoch,
        logs)``, ``on_train_end()``.
    initial_epoch
        The number of the first epoch: ``epochs=3`` and then ``epochs=6, initial_epoch=3`` with the
        same seed are six epochs.
    checkpoint
        Where to keep the run: a :class:`CheckpointManager`, or the path of a file that is replaced
        at each save. It is saved after each epoch, and when Ctrl-C ends the run.
    save_every
        After how many batches of an epoch to save too.
    resume
        Whether to go on from the checkpoint, if there is one: within the epoch, bit for bit as if
        the run had not ended. A run that has done its epochs, or that a callback ended, does
        nothing.

    Returns
    -------
    A :class:`History` of the finished epochs. After Ctrl-C training stops at the next batch's end,
    and the history says ``interrupted``.

    Raises
    ------
    ValueError
        If the data or an argument are unusable; nothing has changed then. Also if labels and
        predictions broadcast to every label beside every prediction, in a loss or metric of yours
        too; if a loss of logits is given probabilities, or the other way round; or if labels are
        outside what a cross-entropy can mean.
    FloatingPointError
        If the loss is not finite.
    LoadError
        If the checkpoint is damaged, or is not that of this model and run; nothing has changed.
    SaveError
        If a checkpoint cannot be written.

    Notes
    -----
    A model with layers of the policy ``mixed_float16`` is trained with a
    :class:`gradtape.mixed_precision.LossScaleOptimizer` around the optimizer, and a line says so.

    If an exception ends an epoch, model and optimizer are as they were when that epoch began, or
    when the run was resumed in it.

    A checkpoint keeps the model, the optimizer, ``gt.random``, the order of examples, what the
    epoch measured so far and the history; of a callback that is an object what its
    ``state_dict()`` returns, or else its attributes that are plain values and that the run changed;
    and of data with ``state_dict()`` that of the beginning of the epoch. Batches of an iterable
    that were trained on are gone through again without training, so they have to come in the same
    order; an iterator cannot be resumed.

    Examples
    --------
    >>> model = gt.layers.Sequential([gt.layers.Dense(1)])
    >>> x = np.linspace(0, 1, 64, dtype="float32")[:, None]
    >>> run = gt.training.fit(model, (x, 2 * x), loss="mse", epochs=2, verbose=False)
    >>> len(run.history["loss"])
    2
    """
    epochs, initial_epoch = as_epochs(epochs, initial_epoch)
    for option, value in (("shuffle", shuffle), ("verbose", verbose), ("resume", resume)):
        if not isinstance(value, (bool, int, np.bool_)) or value not in (0, 1):
            raise TypeError(f"fit: {option} is True or False, got {value!r}")
    if seed is not None and (not isinstance(seed, (int, np.integer)) or seed < 0):
        raise ValueError(f"fit: seed must be a non-negative integer, got {seed!r}")
    if callable(callbacks):
        raise TypeError(f"fit: callbacks are a list, got {callbacks!r}")
    trainer = Trainer(model, loss, metrics, optimizer)
    if (
        verbose
        and trainer.optimizer is not optimizer
        and isinstance(trainer.optimizer, LossScaleOptimizer)
    ):
        print("fit: the model computes in float16, so LossScaleOptimizer scales the loss")
    dataset, held_out = _datasets(
        data, validation_data, validation_split, batch_size, epochs - initial_epoch, trainer.check
    )
    run = Run(
        trainer,
        dataset,
        callbacks or (),
        epochs=epochs,
        initial_epoch=initial_epoch,
        shuffle=bool(shuffle),
        seed=seed,
        checkpoint=checkpoint,
        save_every=save_every,
        resume=bool(resume),
    )
    run.check_best([*trainer.names, *(f"val_{name}" for name in trainer.names if held_out)])
    return run_epochs(run, held_out, verbose)


def _datasets(
    data: Any,
    validation_data: Any,
    validation_split: float,
    batch_size: int,
    epochs: int,
    check: Any,
) -> tuple[Examples | Batches, Examples | Batches | None]:
    """Return what to train on, and what to validate on."""
    if not isinstance(validation_split, (int, float)) or not 0.0 <= validation_split < 1.0:
        raise ValueError(f"fit: validation_split must be in [0, 1), got {validation_split!r}")
    dataset = as_dataset(data, batch_size, epochs, check=check)
    if validation_data is not None:
        if validation_split:
            raise ValueError("fit: give validation_data or validation_split, not both")
        return dataset, as_dataset(validation_data, batch_size, epochs, "validation_data", check)
    if not validation_split:
        return dataset, None
    if not isinstance(dataset, Examples):
        raise ValueError("fit: validation_split needs data that is a pair of arrays (x, y)")
    return dataset.split(validation_split)

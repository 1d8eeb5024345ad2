"""``fit``: train a model on mini-batches, and tell how it went."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Any

import numpy as np

from ..core.extend import Module
from .callbacks import BackupAndRestore, Callback
from .checks import warn_of_sorted
from .data import Batches, Examples, as_count, as_dataset, expected, first_batches
from .epochs import run_epochs
from .loss_scaling import LossScaleOptimizer
from .optimizers.optimizer import Optimizer
from .resuming import Run, as_epochs
from .session import History
from .taking_part import ranks_of

__all__ = ["fit"]


def fit(
    model: Module,
    data: Any,
    *,
    epochs: int = 1,
    batch_size: int = 32,
    optimizer: Optimizer | str = "adam",
    loss: Any = "sparse_categorical_crossentropy",
    metrics: Any = None,
    loss_weights: Any = None,
    weighted_metrics: Any = None,
    class_weight: Mapping[int, float] | None = None,
    validation_data: Any = None,
    validation_split: float = 0.0,
    validation_freq: int | Collection[int] = 1,
    validation_steps: int | None = None,
    validation_batch_size: int | None = None,
    steps_per_epoch: int | None = None,
    shuffle: bool = True,
    seed: int | None = None,
    verbose: int | str = True,
    callbacks: Iterable[Any] = (),
    initial_epoch: int = 0,
    checkpoint: Any = None,
    save_every: int | None = None,
    resume: bool = False,
    compile: bool | str = "auto",
    distributed: Any = None,
) -> History:
    """Train a model.

    Parameters
    ----------
    model
        A module that is called with a batch, and with ``training=True`` if it takes that. The
        layers in it that are called without ``training`` train either way.
    data
        A tuple of arrays ``(x, y)`` or ``(x, y, sample_weight)``, or a list or another iterable of
        such batches. Several inputs or outputs are lists or dictionaries of arrays; an output that
        has neither a loss nor metrics needs no labels, and ``(x, None)`` has none, for a model
        whose layers add the loss.
        ``sample_weight`` has a number by which the loss of each example is multiplied; of several
        outputs they may differ, in a dictionary. What is in host memory is copied to the model's
        device batch by batch, each while the device computes with the one before (of an iterable,
        when it gives it).
    epochs
        How often to go through the data, those epochs that went before included.
    batch_size
        The size of the batches that arrays are cut into.
    optimizer
        An optimizer, or the name of one with its defaults: ``"adam"``, ``"sgd"``, ...
    loss
        One of :mod:`gradtape.training.losses`, or its name (``"mse"``,
        ``"sparse_categorical_crossentropy"``, of logits); or a function of labels and predictions,
        which is given both as they are. Its mean over the batch is minimised. For several outputs
        one for all, or a list or dictionary of them, ``None`` for an output that is not minimised;
        the sum is.
    metrics
        Any of :mod:`gradtape.training.metrics`, or their names (``"accuracy"``, ``"AUC"``); or
        functions of labels and predictions. ``"accuracy"`` is that of classes, and with a binary
        cross-entropy the share of predictions on the label's side: above 0 for logits, above 1/2
        for probabilities. By default accuracy for a cross-entropy of classes, and nothing for
        another loss. For several outputs a dictionary of such lists, or a list of them. Objects
        keep their state of an epoch, those of ``training`` till validation begins.
    loss_weights
        For several outputs: by what their losses are multiplied in the sum, in a list or a
        dictionary; 1 by default.
    weighted_metrics
        Metrics, as ``metrics``, in which examples count by their weights.
    class_weight
        The weights of examples by their class, a dictionary; classes that are not in it weigh 1.
        ``sample_weight`` is multiplied by them. Validation does not use them.
    validation_data
        What to evaluate after each epoch, as ``data``.
    validation_split
        Instead, the fraction at the end of the arrays to set apart for that, before they are
        shuffled.
    validation_freq
        After how many epochs to do so: after each by default; or after which, counted from 1.
    validation_steps
        How many batches of ``validation_data`` to take each time, from the first on; all by
        default.
    validation_batch_size
        The size of the batches that its arrays are cut into, ``batch_size`` by default.
    steps_per_epoch
        How many batches an epoch has. The next epoch goes on where it ends, and the data are gone
        through again as often as that takes; an iterator needs to have enough. One pass by default.
    shuffle
        Whether to take the examples of arrays in a new random order in each epoch.
    seed
        The seed of all that is random: of these orders, and of ``gt.random``, from which dropout
        and weights come. Each epoch has seeds of its own, which come from this one and the epoch's
        number. By default orders are new each time, and ``gt.random`` goes on.
    verbose
        ``True``, 1 or ``"auto"`` shows a line for each epoch, which moves on a terminal and in a
        notebook; 2 shows one at its end alone; ``False`` or 0 shows nothing.
    callbacks
        Functions ``f(epoch, logs)``, called after each epoch; one that returns ``True`` ends the
        training. Or objects with any of the methods of :class:`~gradtape.training.Callback`. What
        they add to ``logs`` at an epoch's end is in the history; ``model.stop_training = True``
        ends the training as well.
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
    compile
        ``"auto"``, the default: steps run as a graph (see :func:`gradtape.function`) for each shape
        that comes often enough, and as Python if they cannot be traced, which a warning tells.
        ``True``: always as a graph, or an error. ``False``: as Python. A graph does not do again
        what only Python does, such as printing.
    distributed
        The group of :func:`gradtape.distributed.init`, to train with all of its ranks. Each calls
        ``fit`` with the same arguments and data, and takes its rows of each batch of
        ``batch_size``; of a :class:`gradtape.data.Dataset` with a step ``shard(group.size,
        group.rank)``, each has batches of its own. See Notes.

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
    TraceError
        If ``compile=True`` and the step cannot be compiled.
    LoadError
        If the checkpoint is damaged, or is not that of this model and run; nothing has changed.
    SaveError
        If a checkpoint cannot be written.
    DistributedError
        With ``distributed``, on every rank: if ranks have other data, another model or, at a
        checkpoint, other weights than the others, which it names.

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

    With ``distributed``, losses, metrics and random numbers are those of the whole batch, as in one
    process. Rank 0 alone shows progress and writes checkpoints and what ``CSVLogger``,
    ``ModelCheckpoint`` and ``TensorBoard`` write; other callbacks are told on every rank, with the
    same values, and one that asks to stop on any rank ends the run on all. A checkpoint may be
    resumed by another number of ranks.

    Examples
    --------
    >>> model = gt.layers.Sequential([gt.layers.Dense(1)])
    >>> x = np.linspace(0, 1, 64, dtype="float32")[:, None]
    >>> run = gt.training.fit(model, (x, 2 * x), loss="mse", epochs=2, verbose=False)
    >>> len(run.history["loss"])
    2
    """
    epochs, initial_epoch = as_epochs(epochs, initial_epoch)
    verbose = True if isinstance(verbose, str) and verbose == "auto" else verbose
    for option, value in (("shuffle", shuffle), ("verbose", verbose), ("resume", resume)):
        known = (0, 1, 2) if option == "verbose" else (0, 1)
        if not isinstance(value, (bool, int, np.bool_)) or value not in known:
            or_2 = ", or 2" if option == "verbose" else ""
            raise TypeError(f"fit: {option} is True or False{or_2}, got {value!r}")
    if seed is not None and (not isinstance(seed, (int, np.integer)) or seed < 0):
        raise ValueError(f"fit: seed must be a non-negative integer, got {seed!r}")
    if callable(callbacks) or (callbacks is not None and not isinstance(callbacks, Iterable)):
        raise TypeError(f"fit: callbacks are a list, got {callbacks!r}")
    callbacks = list(callbacks or ())
    backup = next((x for x in callbacks if isinstance(x, BackupAndRestore)), None)
    if backup is not None:
        if checkpoint is not None:
            raise ValueError("fit: give checkpoint= or BackupAndRestore, not both")
        backup.path.parent.mkdir(parents=True, exist_ok=True)
        checkpoint, save_every, resume = backup.path, backup.save_every, True
    ranks, kind = ranks_of(distributed, "fit")
    ranks.agree_on(
        "fit",
        {
            "batch_size": batch_size,
            "epochs": epochs,
            "initial_epoch": initial_epoch,
            "loss": loss,
            "metrics": metrics,
            "optimizer": optimizer,
            "loss_weights": loss_weights,
            "weighted_metrics": weighted_metrics,
            "class_weight": class_weight,
            "compile": compile,
            "validation_data": None if validation_data is None else "given",
            "validation_split": validation_split,
            "validation_batch_size": validation_batch_size,
            "validation_freq": validation_freq,
            "validation_steps": validation_steps,
            "steps_per_epoch": steps_per_epoch,
            "shuffle": shuffle,
            "seed": seed,
            "checkpoint": None if checkpoint is None else "given",
            "save_every": save_every,
            "resume": resume,
        },
    )
    trainer = kind(
        model,
        loss,
        metrics,
        optimizer,
        loss_weights=loss_weights,
        weighted_metrics=weighted_metrics,
        class_weight=class_weight,
        compile=compile,
    )
    scales = isinstance(trainer.optimizer, LossScaleOptimizer)
    if verbose and ranks.first and scales and trainer.optimizer is not optimizer:
        print("fit: the model computes in float16, so LossScaleOptimizer scales the loss")
    passes = epochs - initial_epoch
    dataset, held_out = _datasets(
        data,
        validation_data,
        validation_split,
        (batch_size, validation_batch_size),
        (1 if steps_per_epoch else passes, passes),
        trainer.check,
    )
    verbose = verbose if ranks.first else False
    callbacks = ranks.callbacks(callbacks)
    dataset, held_out = ranks.shares(dataset), ranks.shares(held_out)
    heads = trainer.objective.heads
    if validation_split and len(heads) == 1 and isinstance(held_out, Examples):
        warn_of_sorted(heads[0].kind, getattr(dataset, "y", None), held_out.y)
    run = Run(
        trainer,
        dataset,
        callbacks,
        epochs=epochs,
        initial_epoch=initial_epoch,
        shuffle=bool(shuffle),
        seed=seed,
        checkpoint=checkpoint,
        save_every=save_every,
        resume=bool(resume),
        steps_per_epoch=steps_per_epoch,
        ranks=ranks,
    )
    due = _as_frequency(validation_freq)
    if validation_steps is not None:
        if held_out is None:
            raise ValueError("fit: validation_steps needs validation_data or validation_split")
        validation_steps = as_count("fit: validation_steps", validation_steps, 1)
    if held_out is not None:
        first_batches(held_out, validation_steps)  # raises if there are fewer, or no end
    trainer.training.expected = expected(dataset, epochs, steps_per_epoch)
    trainer.testing.expected = (
        None if held_out is None else expected(held_out, epochs, validation_steps)
    )
    trainer.watched = any(
        getattr(told, "__func__", None) is not getattr(Callback, event)
        for event in ("on_train_batch_begin", "on_train_batch_end")
        for told in run.listeners.by_event[event]
    )
    names = [*trainer.names, *(f"val_{name}" for name in trainer.names if held_out)]
    run.check_best(names)
    run.measured = names
    history = run_epochs(run, held_out, int(verbose), due, validation_steps)
    if backup is not None and ranks.first and not history.interrupted:
        backup.ended()
    return history


def _as_frequency(often: Any) -> int | Collection[int]:
    """Return after how many epochs to validate, or after which."""
    if isinstance(often, Collection) and not isinstance(often, (str, bytes)):
        return [as_count("fit: validation_freq", epoch, 1) for epoch in often]
    return as_count("fit: validation_freq", often, 1)


def _datasets(
    data: Any,
    validation_data: Any,
    validation_split: float,
    sizes: tuple[int, int | None],
    passes: tuple[int, int],
    check: Any,
) -> tuple[Examples | Batches, Examples | Batches | None]:
    """Return what to train on, and what to validate on, by batches of these sizes.

    ``passes`` says how often each is gone through.
    """
    batch_size, size = sizes
    size = batch_size if size is None else as_count("fit: validation_batch_size", size, 1)
    if not isinstance(validation_split, (int, float)) or not 0.0 <= validation_split < 1.0:
        raise ValueError(f"fit: validation_split must be in [0, 1), got {validation_split!r}")
    dataset = as_dataset(data, batch_size, passes[0], check=check)
    if validation_data is not None:
        if validation_split:
            raise ValueError("fit: give validation_data or validation_split, not both")
        return dataset, as_dataset(validation_data, size, passes[1], "validation_data", check)
    if not validation_split:
        return dataset, None
    if not isinstance(dataset, Examples):
        raise ValueError("fit: validation_split needs data that is a pair of arrays (x, y)")
    kept, held_out = dataset.split(validation_split)
    return kept, held_out.in_batches(size)

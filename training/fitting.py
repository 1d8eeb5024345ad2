"""``fit``: train a model on mini-batches, and return the history."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from types import NoneType, SimpleNamespace
from typing import Any

import numpy as np

from ..core.extend import Module
from .callbacks import BackupAndRestore, Callback, given
from .checks import check_columns, warn_of_sorted
from .data import BATCH_SIZE, Batches, Examples, as_dataset, expected, first_batches
from .loss_scaling import LossScaleOptimizer
from .names import as_count, data_in_one
from .optimizers.optimizer import Optimizer
from .runs.epochs import run_epochs
from .runs.resuming import Run, as_epochs
from .runs.session import History
from .runs.trainer import ranks_and_trainer

__all__ = ["fit"]


@data_in_one
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
        A module that is called with a batch, and with ``training=True`` if it takes that argument.
        Layers inside that are called without ``training`` are in training mode in either case.
    data
        A tuple of arrays ``(x, y)`` or ``(x, y, sample_weight)``, or a list or another iterable of
        such batches. Several inputs or outputs are lists or dictionaries of arrays. An output
        without a loss and metrics needs no labels. ``(x, None)`` has no labels, for a model whose
        layers add the loss. ``sample_weight`` has a factor for the loss of each example; for
        several outputs it may be a dictionary of such arrays. Arrays in host memory are copied to
        the model's device batch by batch, while the device computes with the previous batch (for an
        iterable, when it yields the batch).
    epochs
        The number of epochs, including those before ``initial_epoch``.
    batch_size
        The size of the batches that arrays are cut into. Data that are batches keep theirs; another
        size is refused.
    optimizer
        An optimizer, or the name of one with default settings: ``"adam"``, ``"sgd"``, ...
    loss
        One of :mod:`gradtape.training.losses`, or its name (``"mse"``,
        ``"sparse_categorical_crossentropy"``, of logits). Or a function of labels and predictions,
        which receives both unchanged. Its mean over the batch is minimised. The loss of an epoch is
        the mean over all its values without padding and ignored classes, whatever the batches, or
        their sum for an object with ``reduction="sum"``. One number for a batch, as some functions
        return, counts by the batch's examples. For several outputs,
        give one loss for all, or a list or dictionary of losses, with ``None`` for an output that
        is not minimised. The sum of the losses is minimised.
    metrics
        Any of :mod:`gradtape.training.metrics`, or their names (``"accuracy"``, ``"AUC"``); or
        functions of labels and predictions. ``"accuracy"`` compares classes. With a binary
        cross-entropy, it is the share of predictions on the label's side of 0 for logits, or of 1/2
        for probabilities. The default is accuracy for a cross-entropy of classes, and no metric for
        another loss. For several outputs, give a dictionary of such lists, or a list of them.
        Metric objects keep the state of an epoch; those for training keep it until validation
        begins.
    loss_weights
        For several outputs, the factors of their losses in the sum, in a list or a dictionary; 1 by
        default.
    weighted_metrics
        Metrics, as for ``metrics``, that use the weights of the examples.
    class_weight
        A dictionary with the weights of classes; other classes have weight 1. ``sample_weight`` is
        multiplied by them. Validation does not use them. If a cross-entropy has a label for each
        step, each step has the weight of its class. Labels with several classes per example are
        refused, and classes that do not occur give a warning.
    validation_data
        The data to evaluate after each epoch, in the form of ``data``.
    validation_split
        Instead, the fraction of the arrays to use for validation. It is taken from the end, before
        shuffling.
    validation_freq
        The number of epochs between validations, 1 by default; or a collection of the epochs with
        one, counted from 1.
    validation_steps
        The number of batches of ``validation_data`` to use each time, beginning with the first; all
        by default.
    validation_batch_size
        The size of the batches that validation arrays are cut into, ``batch_size`` by default.
    steps_per_epoch
        The number of batches of an epoch. The next epoch continues with the batch after them, and
        the data are repeated as often as necessary; an iterator must have enough batches. One pass
        through the data by default.
    shuffle
        Whether to take the examples of arrays in a new random order in each epoch.
    seed
        The seed of everything random: of these orders, and of ``gt.random``, from which dropout and
        weights are drawn. Each epoch has its own seeds, derived from this one and the number of the
        epoch. By default the orders are drawn from ``gt.random`` too, which continues its sequence:
        :func:`gradtape.random.set_seed` before the run makes it repeatable.
    verbose
        ``True``, 1 or ``"auto"`` shows a line for each epoch, updated during the epoch on a
        terminal and in a notebook. 2 shows a line only at the end of the epoch. ``False`` or 0
        shows nothing.
    callbacks
        Functions ``f(epoch, logs)``, called after each epoch; one that returns ``True`` ends the
        run. Or objects with any of the methods of :class:`~gradtape.training.Callback`. Values that
        they add to ``logs`` at the end of an epoch are in the history. A text names a callback that
        a plugin provides (``"acme.Stop"``), with default settings; ``{"name": ..., "config": ...}``
        has its arguments. Setting
        ``model.stop_training = True`` also ends the run.
    initial_epoch
        The number of the first epoch. ``epochs=3`` and then ``epochs=6, initial_epoch=3`` with the
        same seed give the same six epochs as one call.
    checkpoint
        Where to keep the run: a :class:`CheckpointManager`, or the path of a file that each save
        replaces. The run is saved after each epoch, and when Ctrl-C ends it.
    save_every
        The number of batches after which to save within an epoch, too.
    resume
        Whether to continue from the checkpoint, if there is one. The run continues within the
        epoch, with bit-for-bit the same results as without the interruption. A run that has
        completed its epochs, or was ended by a callback, does nothing.
    compile
        With ``"auto"``, the default, steps run as a graph (see :func:`gradtape.function`) for each
        shape that occurs often enough. Steps that cannot be traced run as Python, with a warning.
        ``True`` always runs a graph, or raises. ``False`` runs Python. A graph does not repeat
        effects of Python code such as printing.
    distributed
        The group from :func:`gradtape.distributed.init`, to train on all of its ranks. Each rank
        calls ``fit`` with the same arguments and data, and takes its rows of each batch of
        ``batch_size``. With a :class:`gradtape.data.Dataset` that has a step ``shard(group.size,
        group.rank)``, each rank has its own batches. See Notes.

    Returns
    -------
    A :class:`History` of the finished epochs. After Ctrl-C, training stops at the end of the
    current batch, and ``interrupted`` is true in the history.

    Raises
    ------
    ValueError
        If the data or an argument are invalid; then nothing has changed. Also if labels and
        predictions broadcast so that every label meets every prediction, even in your own loss or
        metric; if a loss of logits gets probabilities, or the other way round; or if labels are
        invalid for a cross-entropy.
    FloatingPointError
        If the loss is not finite.
    TraceError
        If ``compile=True`` and the step cannot be compiled.
    LoadError
        If the checkpoint is damaged, or belongs to another model or run; nothing has changed.
    SaveError
        If a checkpoint cannot be written.
    DistributedError
        With ``distributed``, on every rank, if some ranks have other data, another model or, at a
        checkpoint, other weights. The message names these ranks.

    Notes
    -----
    A model with layers of the policy ``mixed_float16`` is trained with a
    :class:`gradtape.mixed_precision.LossScaleOptimizer` around the optimizer. A printed line says
    so.

    If an exception ends an epoch, model and optimizer are restored to the beginning of that epoch,
    or to where the run was resumed in it.

    A checkpoint keeps the model, the optimizer, ``gt.random``, the order of the examples, the
    values of the epoch so far and the history. For each callback that is an object, it keeps the
    result of ``state_dict()``. Without that method, it keeps those attributes that the run changed
    after ``on_train_begin``, and warns of changes that no file can hold. For data with a
    ``state_dict()``, it keeps the state at the beginning of the epoch. To resume, batches of an
    iterable that were trained on are read again and skipped, so they must come in the same order.
    An iterator cannot be resumed.

    With ``distributed``, losses, metrics and random numbers are those of the whole batch, as in one
    process. Only rank 0 shows progress and writes files: checkpoints, and those of ``CSVLogger``,
    ``ModelCheckpoint`` and ``TensorBoard``. Other callbacks are called on every rank with the same
    values. If one asks to stop on any rank, the run ends on all. A run with another number of ranks
    may resume a checkpoint.

    Examples
    --------
    >>> model = gt.layers.Sequential([gt.layers.Dense(1)])
    >>> x = np.linspace(0, 1, 64, dtype="float32")[:, None]
    >>> run = gt.training.fit(model, (x, 2 * x), loss="mse", epochs=2, verbose=False)
    >>> len(run.history["loss"])
    2
    """
    options = _checked(SimpleNamespace(**locals()))
    ranks, kind = ranks_and_trainer(distributed, "fit")
    ranks.agree_on("fit", _to_agree_on(options))
    trainer = _trainer(options, kind, shows=bool(options.verbose) and ranks.first)
    trainer.looks_at_threads = ranks.first
    dataset, held_out = map(ranks.shares, _datasets(options, trainer.check))
    _look_at_labels(trainer, dataset, held_out if validation_split else None)
    run = Run(
        trainer,
        dataset,
        ranks.callbacks(options.callbacks),
        epochs=options.epochs,
        initial_epoch=options.initial_epoch,
        shuffle=bool(shuffle),
        seed=seed,
        checkpoint=options.checkpoint,
        save_every=options.save_every,
        resume=bool(options.resume),
        steps_per_epoch=steps_per_epoch,
        ranks=ranks,
    )
    often, steps = _validations(options, held_out)
    _announce(run, trainer, held_out, steps)
    shown = int(options.verbose) if ranks.first else 0
    history = run_epochs(run, held_out, shown, often, steps)
    complete = bool(history.epoch) and not (history.interrupted or steps_per_epoch)
    if trainer.class_weights is not None and complete:
        trainer.class_weights.warn(dataset.what)
    if options.backup is not None and ranks.first and not history.interrupted:
        options.backup.ended()
    return history


def _checked(options: SimpleNamespace) -> SimpleNamespace:
    """Check the arguments of ``fit`` that need no data, and convert them.

    ``backup`` is the callback that says where to keep the run, or None.
    """
    options.epochs, options.initial_epoch = as_epochs(options.epochs, options.initial_epoch)
    if isinstance(options.verbose, str) and options.verbose == "auto":
        options.verbose = True
    for option in ("shuffle", "verbose", "resume"):
        value, known = getattr(options, option), (0, 1, 2) if option == "verbose" else (0, 1)
        if not isinstance(value, (bool, int, np.bool_)) or value not in known:
            or_2 = ", or 2" if option == "verbose" else ""
            raise TypeError(f"fit: {option} is True or False{or_2}, got {value!r}")
    seed, callbacks = options.seed, options.callbacks
    if seed is not None and (not isinstance(seed, (int, np.integer)) or seed < 0):
        raise ValueError(f"fit: seed must be a non-negative integer, got {seed!r}")
    alone = callable(callbacks) or isinstance(callbacks, (str, dict))
    if alone or (callbacks is not None and not isinstance(callbacks, Iterable)):
        raise TypeError(f"fit: callbacks are a list, got {callbacks!r}")
    options.callbacks = [given(callback) for callback in callbacks or ()]
    backup = next((x for x in options.callbacks if isinstance(x, BackupAndRestore)), None)
    options.backup = backup
    if backup is not None:
        if options.checkpoint is not None:
            raise ValueError("fit: give checkpoint= or BackupAndRestore, but not both")
        backup.path.parent.mkdir(parents=True, exist_ok=True)
        options.checkpoint, options.save_every, options.resume = (
            backup.path,
            backup.save_every,
            True,
        )
    return options


#: What ranks may pass differently, or compare in another way.
_NOT_AGREED_ON = ("model", "data", "verbose", "callbacks", "distributed", "backup")


def _to_agree_on(options: SimpleNamespace) -> dict[str, Any]:
    """Return the arguments that must be the same on all ranks."""
    found = {name: x for name, x in vars(options).items() if name not in _NOT_AGREED_ON}
    for name in ("validation_data", "checkpoint"):
        found[name] = None if found[name] is None else "given"
    return found


def _trainer(options: SimpleNamespace, kind: Any, shows: bool) -> Any:
    """Return the trainer, which checks the model, the losses and the metrics."""
    trainer = kind(
        options.model,
        options.loss,
        options.metrics,
        options.optimizer,
        loss_weights=options.loss_weights,
        weighted_metrics=options.weighted_metrics,
        class_weight=options.class_weight,
        compile=options.compile,
    )
    scales = isinstance(trainer.optimizer, LossScaleOptimizer)
    if shows and scales and trainer.optimizer is not options.optimizer:
        print("fit: the model computes in float16, so LossScaleOptimizer scales the loss")
    return trainer


def _datasets(
    options: SimpleNamespace, check: Any
) -> tuple[Examples | Batches, Examples | Batches | None]:
    """Return the training data and the validation data, in batches."""
    passes, split = options.epochs - options.initial_epoch, options.validation_split
    size, held_out = options.validation_batch_size, options.validation_data
    if size is not None:
        size = as_count("fit: validation_batch_size", size, 1)
    else:  # batches have sizes of their own
        size = options.batch_size if isinstance(held_out, (tuple, NoneType)) else BATCH_SIZE
    if not isinstance(split, (int, float)) or not 0.0 <= split < 1.0:
        raise ValueError(f"fit: validation_split must be in [0, 1), got {split!r}")
    once = 1 if options.steps_per_epoch else passes
    dataset = as_dataset(options.data, options.batch_size, once, check=check)
    if held_out is not None:
        if split:
            raise ValueError("fit: give validation_data or validation_split, not both")
        check_columns(options.data, held_out)
        return dataset, as_dataset(held_out, size, passes, "validation_data", check)
    if not split:
        return dataset, None
    if not isinstance(dataset, Examples):
        raise ValueError("fit: validation_split needs data that is a pair of arrays (x, y)")
    kept, last = dataset.split(split)
    return kept, last.in_batches(size)


def _look_at_labels(trainer: Any, dataset: Any, split_off: Any) -> None:
    """Warn if a split separates sorted labels; count the classes that have weights."""
    heads, weights = trainer.objective.heads, trainer.class_weights
    if len(heads) == 1 and isinstance(split_off, Examples):
        warn_of_sorted(heads[0].kind, getattr(dataset, "y", None), split_off.y)
    if weights is not None and isinstance(dataset, Examples):
        weights.observe(dataset.y)
        weights.warn(dataset.what)


def _validations(
    options: SimpleNamespace, held_out: Examples | Batches | None
) -> tuple[int | Collection[int], int | None]:
    """Return the number of epochs between validations, or the epochs with one; and its batches."""
    often, steps = options.validation_freq, options.validation_steps
    if isinstance(often, Collection) and not isinstance(often, (str, bytes)):
        often = [as_count("fit: validation_freq", epoch, 1) for epoch in often]
    else:
        often = as_count("fit: validation_freq", often, 1)
    if steps is not None:
        if held_out is None:
            raise ValueError("fit: validation_steps needs validation_data or validation_split")
        steps = as_count("fit: validation_steps", steps, 1)
    if held_out is not None:
        first_batches(held_out, steps)  # raises if there are fewer, or no end
    return often, steps


def _announce(run: Run, trainer: Any, held_out: Any, validation_steps: int | None) -> None:
    """Tell the trainer which batches to expect, and the run which values."""
    data, epochs = run.data, run.epochs
    trainer.training.expected = expected(data, epochs, run.steps_per_epoch)
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

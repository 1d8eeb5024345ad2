"""``evaluate`` and ``predict``: run a model at inference."""

from __future__ import annotations

from typing import Any

from ..core.extend import (
    Module,
    Tensor,
    as_inputs,
    backend_of,
    flatten,
    hinted_arguments,
    pack_like,
    scope_of,
)
from .data import Batches, Examples, as_dataset, expected, first_batches
from .names import MEANT, as_count, data_in_one
from .runs.trainer import Trainer, ranks_and_trainer

__all__ = ["evaluate", "predict"]


@data_in_one
def evaluate(
    model: Module,
    data: Any,
    *,
    batch_size: int = 32,
    loss: Any = "sparse_categorical_crossentropy",
    metrics: Any = None,
    loss_weights: Any = None,
    weighted_metrics: Any = None,
    steps: int | None = None,
    compile: bool | str = "auto",
    distributed: Any = None,
) -> dict[str, float]:
    """Return the loss and the metrics of a model at inference.

    Parameters
    ----------
    model
        A module that is called with a batch.
    data
        Arrays ``(x, y)`` or ``(x, y, sample_weight)``, or an iterable of such batches.
    batch_size
        The size of the batches that arrays are cut into. Data that are batches keep theirs; another
        size is refused.
    loss, metrics, loss_weights, weighted_metrics
        As for :func:`gradtape.training.fit`.
    steps
        The number of batches to take; all by default.
    compile
        Whether steps run as a graph, as for :func:`gradtape.training.fit`.
    distributed
        A group, as for :func:`gradtape.training.fit`. All of its ranks must call ``evaluate`` with
        the same model, and get the values for all examples.

    Returns
    -------
    The values for all examples, by name: ``"loss"`` and each metric. They do not depend on
    ``batch_size``, except for functions that return one number for a batch.

    Raises
    ------
    ValueError
        If the data or an argument are invalid, as for :func:`gradtape.training.fit`.

    Examples
    --------
    >>> data = (gt.ones((4, 2)), gt.ones((4, 2)))
    >>> gt.training.evaluate(gt.layers.Activation("relu"), data, loss="mse")
    {'loss': 0.0}
    """
    ranks, kind = ranks_and_trainer(distributed, "evaluate")
    ranks.agree_on(
        "evaluate",
        {
            "loss": loss,
            "metrics": metrics,
            "batch_size": batch_size,
            "loss_weights": loss_weights,
            "weighted_metrics": weighted_metrics,
            "compile": compile,
            "steps": steps,
        },
    )
    trainer = kind(
        model,
        loss,
        metrics,
        method="evaluate",
        loss_weights=loss_weights,
        weighted_metrics=weighted_metrics,
        compile=compile,
    )
    dataset = as_dataset(data, batch_size, check=trainer.check)
    dataset = ranks.shares(dataset)
    steps = None if steps is None else as_count("evaluate: steps", steps, 1)
    trainer.testing.expected = expected(dataset, 1, steps)
    return trainer.evaluate(first_batches(dataset, steps))


@hinted_arguments(MEANT)
def predict(
    model: Module,
    x: Any,
    *,
    batch_size: int = 32,
    steps: int | None = None,
    compile: bool | str = "auto",
    distributed: Any = None,
) -> Any:
    """Return a model's outputs at inference, computed batch by batch.

    Parameters
    ----------
    model
        A module that is called with a batch and returns tensors, in any structure.
    x
        Inputs, in any structure; the first axis counts examples. Or an iterable of batches of them
        other than a list, such as a :class:`gradtape.data.Dataset` or a generator; of batches that
        are tuples or lists the first part is taken, and labels are left alone. Several inputs in
        a batch are ``([a, b],)``.
    batch_size
        The size of the batches.
    steps
        The number of batches to take; all by default.
    compile
        As for :func:`gradtape.training.fit`: whether batches run as a graph.
    distributed
        The group of :func:`gradtape.distributed.init`. Each rank calls this with the same model and
        the same data, computes its rows of each batch, and gets the outputs of all ranks, in order.

    Returns
    -------
    A tensor with one row per example, or several in the structure of the model's output.

    Raises
    ------
    ValueError
        If there are no examples, ``batch_size`` is not positive, or the model returns more or fewer
        rows than it is given. With ``distributed``, if the data are a shard.
    DistributedError
        With ``distributed``, on every rank: if ranks have different variables, data or arguments.
    TypeError
        If the model returns anything other than tensors with one row per example.

    Examples
    --------
    >>> gt.training.predict(gt.layers.Activation("relu"), [[-1.0], [2.0]]).tolist()
    [[0.0], [2.0]]
    """
    ranks, _ = ranks_and_trainer(distributed, "predict")
    ranks.agree_on("predict", {"batch_size": batch_size, "steps": steps, "compile": compile})
    trainer = Trainer(model, None, method="predict", compile=compile)
    batches = _inputs(x, batch_size)
    count = None if steps is None else as_count("predict: steps", steps, 1)
    trainer.applying.expected = expected(batches, 1, count)
    rows, chosen = ranks.rows(batches), first_batches(batches, count)
    outputs = trainer.predict(chosen if rows is None else rows.of(chosen), batches.early)
    if not outputs:
        raise ValueError("predict: there are no batches")
    columns = []
    for column in zip(*map(flatten, outputs), strict=True):
        arrays = [output.array for output in column]
        other = next((x.shape for x in arrays if x.shape[1:] != arrays[0].shape[1:]), None)
        if other is not None:
            raise ValueError(
                f"predict: batches have outputs of shapes {tuple(arrays[0].shape)} and "
                f"{tuple(other)}, which cannot be joined; pad all inputs to one length, or call "
                "predict for each batch"
            )
        with scope_of(arrays):
            columns.append(backend_of(arrays[0]).xp.concat(arrays, axis=0))
    if rows is not None:
        columns = rows.gathered(model, columns)
    return pack_like(outputs[0], [Tensor(array) for array in columns])


def _inputs(x: Any, batch_size: int) -> Examples | Batches:
    """Return batches of inputs."""
    whole = isinstance(x, (list, tuple, dict, str)) or hasattr(x, "shape")
    if hasattr(x, "__iter__") and not whole:
        return Batches(x, what="x")
    return Examples(as_inputs(x), None, batch_size, "x")

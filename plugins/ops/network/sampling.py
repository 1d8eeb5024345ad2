"""Losses that compare a class with a few random others instead of all."""

from __future__ import annotations

from typing import Any

import numpy as np

from ....core.extend import Tensor, TensorSpec, as_tensor, ops
from ..common.op_builders import named
from ..control.effects import host_call
from ..random.functions import shared
from .embeddings import embedding_lookup
from .losses import sigmoid_cross_entropy_with_logits
from .softmax_cross_entropy import softmax_cross_entropy_with_logits


def _probability(classes: Any, count: int) -> Any:
    """Return the probability of classes under the log-uniform distribution."""
    return np.log1p(1.0 / (classes + 1.0)) / np.log(count + 1.0)


@named
def log_uniform_candidates(num_sampled: int, num_classes: int) -> tuple[Tensor, Tensor]:
    """Draw different classes, each about as often as a word of that rank by Zipf's law.

    Parameters
    ----------
    num_sampled
        The number of classes to draw.
    num_classes
        The number of classes; class 0 is the most frequent one.

    Returns
    -------
    classes : Tensor
        Integers of shape ``(num_sampled,)``.
    counts : Tensor
        For each of all classes, how often it is expected among them.

    Raises
    ------
    ValueError
        If there are fewer classes than to draw.

    Notes
    -----
    The probability of class ``k`` is ``log((k + 2) / (k + 1)) / log(num_classes + 1)``. Classes are
    drawn again until they differ; the expected counts follow from the number of draws.

    Examples
    --------
    >>> classes, counts = gt.nn.log_uniform_candidates(3, 10)
    >>> classes.shape, counts.shape
    ((3,), (10,))
    """
    if not 0 < num_sampled <= num_classes:
        raise ValueError(
            f"log_uniform_candidates: {num_sampled} different classes of {num_classes} cannot be "
            "drawn"
        )

    def draw(seed: Tensor) -> tuple[Any, Any]:
        generator = np.random.default_rng(int(seed.numpy()))
        found: dict[int, None] = {}
        tries = 0
        while len(found) < num_sampled:
            uniform = generator.random()
            tries += 1
            found[min(int(np.exp(uniform * np.log(num_classes + 1.0))) - 1, num_classes - 1)] = None
        p = _probability(np.arange(num_classes), num_classes)
        p = np.minimum(p, 1 - 1e-7)
        counts = -np.expm1(tries * np.log1p(-p))
        return np.array(list(found), "int64"), counts.astype("float32")

    seed = shared().randint((), 0, 2**31 - 1)
    results = TensorSpec((num_sampled,), "int64"), TensorSpec((num_classes,), "float32")
    classes, counts = host_call(draw, seed, results=results)
    return classes, counts


def _sampled_logits(
    weights: Any,
    biases: Any,
    labels: Any,
    inputs: Any,
    num_sampled: int,
    num_classes: int,
    sampled_values: Any,
    remove_accidental_hits: bool,
) -> tuple[Tensor, Tensor]:
    """Return logits of the true classes and of random ones, and their labels."""
    weights, biases, inputs = as_tensor(weights), as_tensor(biases), as_tensor(inputs)
    labels = ops["cast"](as_tensor(labels), dtype="int64")
    if labels.ndim == 1:
        labels = ops["expand_dims"](labels, axis=-1)
    if sampled_values is None:
        classes, counts = log_uniform_candidates(num_sampled, num_classes)
        expected = embedding_lookup(counts, labels), embedding_lookup(counts, classes)
    else:
        classes, *expected = map(as_tensor, sampled_values)  # type: ignore[assignment]
        classes = ops["cast"](classes, dtype="int64")
    of_true = embedding_lookup(weights, labels)  # (batch, true, dim)
    true = ops["sum"](of_true * ops["expand_dims"](inputs, axis=1), axis=-1, keepdims=False)
    true = true + embedding_lookup(biases, labels) - ops["log"](expected[0])
    others = inputs @ ops["transpose"](embedding_lookup(weights, classes), axes=(1, 0))
    others = others + embedding_lookup(biases, classes) - ops["log"](expected[1])
    if remove_accidental_hits:
        same = ops["expand_dims"](labels, axis=-1) == classes
        hit = ops["any"](same, axis=1, keepdims=False)
        others = ops["where"](hit, ops["zeros_like"](others) - 1e37, others)
    given = ops["ones_like"](true) / labels.shape[-1]
    logits = ops["concatenate"](true, others, axis=1)
    return logits, ops["concatenate"](given, ops["zeros_like"](others), axis=1)


@named
def nce_loss(
    weights: Any,
    biases: Any,
    labels: Any,
    inputs: Any,
    num_sampled: int,
    num_classes: int,
    *,
    sampled_values: Any = None,
    remove_accidental_hits: bool = False,
) -> Tensor:
    """Return the noise-contrastive loss of each example: its classes against random ones.

    Parameters
    ----------
    weights, biases
        A row of shape ``(dim,)`` and a number for each class.
    labels
        The classes of each example, of shape ``(batch,)`` or ``(batch, true)``.
    inputs
        Vectors of shape ``(batch, dim)``.
    num_sampled
        The number of random classes, the same for the whole batch.
    num_classes
        The number of classes; for :func:`log_uniform_candidates`, 0 is the most frequent one.
    sampled_values
        The random classes, and the expected counts of the true ones and of the random ones.
    remove_accidental_hits
        Whether to leave out a random class that is a class of the example.

    Returns
    -------
    Tensor
        A loss for each example.

    References
    ----------
    Gutmann and Hyvärinen, "Noise-contrastive estimation", 2010.

    Examples
    --------
    >>> table, biases = gt.random.normal((10, 4)), gt.zeros(10)
    >>> gt.nn.nce_loss(table, biases, [1, 2], gt.random.normal((2, 4)), 3, 10).shape
    (2,)
    """
    logits, given = _sampled_logits(
        weights,
        biases,
        labels,
        inputs,
        num_sampled,
        num_classes,
        sampled_values,
        remove_accidental_hits,
    )
    found = sigmoid_cross_entropy_with_logits(labels=given, logits=logits)
    return ops["sum"](found, axis=-1, keepdims=False)


@named
def sampled_softmax_loss(
    weights: Any,
    biases: Any,
    labels: Any,
    inputs: Any,
    num_sampled: int,
    num_classes: int,
    *,
    sampled_values: Any = None,
    remove_accidental_hits: bool = True,
) -> Tensor:
    """Return the softmax cross-entropy of each example over its classes and random ones.

    Parameters
    ----------
    weights, biases, labels, inputs, num_sampled, num_classes
        As for :func:`nce_loss`.
    sampled_values, remove_accidental_hits
        As for :func:`nce_loss`.

    Returns
    -------
    Tensor
        A loss for each example. It estimates the softmax cross-entropy over all classes, for
        training only.

    References
    ----------
    Jean et al., "On using very large target vocabulary", 2015.

    Examples
    --------
    >>> table, biases = gt.random.normal((10, 4)), gt.zeros(10)
    >>> gt.nn.sampled_softmax_loss(table, biases, [1, 2], gt.random.normal((2, 4)), 3, 10).shape
    (2,)
    """
    logits, given = _sampled_logits(
        weights,
        biases,
        labels,
        inputs,
        num_sampled,
        num_classes,
        sampled_values,
        remove_accidental_hits,
    )
    return softmax_cross_entropy_with_logits(labels=given, logits=logits)

"""``ClassWeights``: weights of examples from the classes in their labels."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self

import numpy as np

from ...core.extend import as_tensor, to_numpy, warn_user
from ..losses.loss import Kind
from ..shapes import column_dropped, weights_like

__all__ = ["ClassWeights"]

#: How far shares of classes may be from a sum of 1, because of rounding.
_ROUNDING = 1e-2


class ClassWeights:
    """The weights of classes, for ``class_weight``.

    Parameters
    ----------
    given
        A dictionary of weights by class; other classes have weight 1.
    kind
        The kind of the loss, if it is known.

    Raises
    ------
    TypeError
        If ``given`` is not a dictionary.
    ValueError
        If a class is not a non-negative integer, or a weight is negative or not finite.
    """

    def __init__(self, given: Any, kind: Kind | None = None) -> None:
        if not isinstance(given, Mapping):
            raise TypeError(f"class_weight must be a dictionary of weights by class, got {given!r}")
        for label, weight in given.items():
            whole = isinstance(label, (int, np.integer)) and label >= 0
            number = isinstance(weight, (int, float, np.number))
            if not whole or not number or not 0 <= weight < np.inf:
                raise ValueError(
                    "class_weight must have non-negative integers as keys, and finite weights that "
                    f"are not negative, got {label!r}: {weight!r}"
                )
        self._table = np.ones(max(given, default=0) + 2, "float32")  # the last is for all others
        self._table[[int(label) for label in given]] = list(given.values())
        #: The classes of ``given`` that no label had yet.
        self.unseen = {int(label) for label in given}
        self._kind = kind

    @classmethod
    def of(cls, given: Any, kind: Kind | None = None) -> Self | None:
        """Return the weights; None for None."""
        return None if given is None else cls(given, kind)

    def __call__(self, y: Any, weight: Any = None) -> Any:
        """Return the weight of each label, times a weight of its own.

        Parameters
        ----------
        y
            The labels.
        weight
            Weights of the examples or the labels, which may be a column; None for 1.

        Raises
        ------
        ValueError
            If labels are not one class per example, or per step.
        """
        places = self._classes_of(y)
        known = (places >= 0) & (places < len(self._table) - 1)
        self.note(places)
        found = as_tensor(self._table[np.where(known, places, -1)])
        if weight is None:
            return found
        weight = column_dropped(as_tensor(weight), found.shape)
        weight = weight if weight.dtype.kind == "f" else weight.astype("float32")
        if weight.ndim > found.ndim:  # weights of steps, and classes of examples
            return weight * weights_like(found, weight)
        return weights_like(weight, found.astype(weight.dtype)) * found

    def meet(self, y: Any) -> None:
        """Note the classes in all labels to train on, before the first batch."""
        self.note(self._classes_of(y))

    def note(self, places: Any) -> None:
        """Note classes that occur."""
        if self.unseen:
            self.unseen.difference_update(np.unique(places).tolist())

    def warn(self, where: str) -> None:
        """Warn once about classes that do not occur, and whose weight says otherwise."""
        lacking = sorted(x for x in self.unseen if self._table[x] != 1.0)
        self.unseen = set()
        if lacking:
            told = ", ".join(map(str, lacking[:5])) + (", ..." if len(lacking) > 5 else "")
            warn_user(
                f"fit: class_weight has weights for the classes {told}, which do not occur in "
                f"{where}; its keys are the numbers in the labels, or their places in one-hot ones",
                UserWarning,
            )

    def _classes_of(self, y: Any) -> Any:
        """Return the class of each example, or of each step."""
        if isinstance(y, (list, tuple, dict)):
            raise ValueError("class_weight is for one output; give several as sample_weight")
        labels = to_numpy(y.array)
        kind = self._kind
        if labels.ndim > 2 and kind is None:
            raise ValueError(
                f"class_weight takes labels of each step, as of shape {y.shape}, only for a "
                "cross-entropy of gradtape; give sample_weight, a number for each value of the loss"
            )
        if labels.ndim > 1 and labels.shape[-1] == 1:
            labels = labels[..., 0]
        elif labels.ndim > 1 and (kind is None or kind.classes != "sparse"):
            axis = kind.axis if kind is not None and kind.classes == "categorical" else -1
            if not _are_shares(labels, axis):
                raise ValueError(
                    f"class_weight needs one class per example, or per step, but labels have shape "
                    f"{y.shape}, and are not one-hot; give sample_weight"
                )
            labels = labels.argmax(axis)
        places = np.rint(labels).astype("int64")
        if not np.array_equal(places, labels):
            raise ValueError(
                "class_weight needs labels that are classes, but some are not integers, such as "
                f"{labels[places != labels][0]}; give sample_weight"
            )
        return places


def _are_shares(labels: Any, axis: int) -> bool:
    """Return whether there is one class along an axis: shares with sum 1, or one number above 0."""
    shares = (labels >= 0).all(axis) & (np.abs(labels.sum(axis) - 1.0) < _ROUNDING)
    return bool((shares | ((labels > 0).sum(axis) == 1)).all())

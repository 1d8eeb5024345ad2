"""Functions that draw random numbers from one shared generator."""

from __future__ import annotations

from collections.abc import Sequence
from threading import Lock
from typing import Any

from ....core.extend import Stream, Tensor, current_backend, current_device, is_transformed
from .generator import Generator


class SharedGenerator(Generator):
    """A generator whose numbers are made on the current backend, wherever its state is."""

    def _count_on(self) -> Any:
        key = super()._count_on()
        if is_transformed(key.array):  # a trace has no backend
            return key
        device = current_device()
        return key.to(current_backend().name + (f":{device}" if device else ""))


_shared: Generator | None = None
_MAKING = Lock()


def shared() -> Generator:
    """Return the generator that functions use if they receive none."""
    global _shared
    if _shared is None:
        with _MAKING:
            if _shared is None:
                _shared = SharedGenerator(name="shared")
                Stream.shared = _shared.state
    return _shared


def set_seed(seed: int) -> None:
    """Seed the functions of this module: the same seed gives the same numbers again.

    Saved modules that draw from these functions draw from them again after loading.

    Parameters
    ----------
    seed
        An integer from 0 to ``2**63 - 1``. If you never call this function, the operating system
        provides a seed, a different one in each forked process; see :class:`Generator`.

    Raises
    ------
    ValueError
        If the seed is not such an integer.

    Examples
    --------
    >>> gt.random.set_seed(7)
    >>> first = gt.random.normal((2, 3))
    >>> gt.random.set_seed(7)
    >>> (gt.random.normal((2, 3)) == first).all().item()
    True
    """
    shared().set_seed(seed)


def normal(
    shape: int | Sequence[int], mean: Any = 0.0, stddev: Any = 1.0, dtype: Any = None
) -> Tensor:
    """Return normally distributed numbers.

    The same as :meth:`Generator.normal` of the generator that :func:`set_seed` seeds.

    Parameters
    ----------
    shape
        One size or a sequence of them.
    mean, stddev
        Numbers or tensors that broadcast with ``shape``, 0 and 1 by default; gradients reach them.
    dtype
        A floating dtype; the default dtype if not given.

    Returns
    -------
    A tensor of shape ``shape``, broadcast with the parameters.

    Raises
    ------
    TypeError
        If ``dtype`` is not floating, or ``shape`` does not hold integers.
    ValueError
        If ``stddev`` is known (not in a trace) and has values below 0, a size is negative, or
        shapes do not broadcast.

    Examples
    --------
    >>> gt.random.normal((2, 3)).shape
    (2, 3)
    >>> gt.random.normal(2, mean=5.0, stddev=0.0).tolist()
    [5.0, 5.0]
    """
    return shared().normal(shape, mean, stddev, dtype)


def uniform(
    shape: int | Sequence[int], minval: Any = 0.0, maxval: Any = 1.0, dtype: Any = None
) -> Tensor:
    """Return numbers uniformly distributed over ``[minval, maxval)``.

    The same as :meth:`Generator.uniform` of the generator that :func:`set_seed` seeds.

    As in NumPy, rounding may give ``maxval`` itself where ``minval`` is not 0 or ``maxval`` not 1.

    Parameters
    ----------
    shape
        One size or a sequence of them.
    minval, maxval
        Numbers or tensors that broadcast with ``shape``, 0 and 1 by default; gradients reach them.
    dtype
        A floating dtype; the default dtype if not given.

    Returns
    -------
    A tensor of shape ``shape``, broadcast with the bounds.

    Raises
    ------
    TypeError
        If ``dtype`` is not floating, or ``shape`` does not hold integers.
    ValueError
        If ``minval`` and ``maxval`` are known (not in a trace) and ``minval`` is above ``maxval``,
        a size is negative, or shapes do not broadcast.

    Examples
    --------
    >>> x = gt.random.uniform((2, 3))
    >>> ((x >= 0.0) & (x < 1.0)).all().item()
    True
    """
    return shared().uniform(shape, minval, maxval, dtype)


def truncated_normal(
    shape: int | Sequence[int], mean: Any = 0.0, stddev: Any = 1.0, dtype: Any = None
) -> Tensor:
    """Return normally distributed numbers; those beyond two standard deviations are redrawn.

    The same as :meth:`Generator.truncated_normal` of the generator that :func:`set_seed` seeds.

    Parameters
    ----------
    shape
        One size or a sequence of them.
    mean, stddev
        Numbers or tensors that broadcast with ``shape``, 0 and 1 by default: those of the
        distribution before it is cut off. Gradients reach them.
    dtype
        A floating dtype; the default dtype if not given.

    Returns
    -------
    A tensor of shape ``shape``, broadcast with the parameters.

    Raises
    ------
    TypeError
        If ``dtype`` is not floating, or ``shape`` does not hold integers.
    ValueError
        If ``stddev`` is known (not in a trace) and has values below 0, a size is negative, or
        shapes do not broadcast.

    Examples
    --------
    >>> (abs(gt.random.truncated_normal(100)) <= 2.0).all().item()
    True
    """
    return shared().truncated_normal(shape, mean, stddev, dtype)


def exponential(shape: int | Sequence[int], scale: Any = 1.0, dtype: Any = None) -> Tensor:
    """Return exponentially distributed numbers.

    The same as :meth:`Generator.exponential` of the generator that :func:`set_seed` seeds.

    Parameters
    ----------
    shape
        One size or a sequence of them.
    scale
        The mean, 1 by default: a number or a tensor that broadcasts with ``shape``; gradients reach
        it.
    dtype
        A floating dtype; the default dtype if not given.

    Returns
    -------
    A tensor of shape ``shape``, broadcast with the scale.

    Raises
    ------
    TypeError
        If ``dtype`` is not floating, or ``shape`` does not hold integers.
    ValueError
        If ``scale`` is known (not in a trace) and has values below 0, a size is negative, or shapes
        do not broadcast.

    Examples
    --------
    >>> (gt.random.exponential((2, 3), scale=2.0) >= 0.0).all().item()
    True
    """
    return shared().exponential(shape, scale, dtype)


def gamma(
    shape: int | Sequence[int], concentration: Any, scale: Any = 1.0, dtype: Any = None
) -> Tensor:
    """Return gamma-distributed numbers.

    The same as :meth:`Generator.gamma` of the generator that :func:`set_seed` seeds.

    Parameters
    ----------
    shape
        One size or a sequence of them.
    concentration, scale
        Numbers or tensors above 0 that broadcast to ``shape``; the scale is 1 by default. Gradients
        reach both. The gradient of the concentration is the implicit reparameterization gradient.
    dtype
        A floating dtype; that of the concentration if not given.

    Returns
    -------
    A tensor of shape ``shape``.

    Raises
    ------
    TypeError
        If ``dtype`` is not floating, or ``shape`` does not hold integers.
    ValueError
        If a concentration is not above 0, or does not broadcast to ``shape``, or a scale is below
        0.

    References
    ----------
    Figurnov, Mohamed and Mnih, "Implicit reparameterization gradients", 2018.

    Examples
    --------
    >>> (gt.random.gamma((2, 3), concentration=2.0) > 0.0).all().item()
    True
    """
    return shared().gamma(shape, concentration, scale, dtype)


def bernoulli(shape: int | Sequence[int], probability: Any = 0.5) -> Tensor:
    """Return booleans that are true with a probability; they have no gradient.

    The same as :meth:`Generator.bernoulli` of the generator that :func:`set_seed` seeds.

    Parameters
    ----------
    shape
        One size or a sequence of them.
    probability
        A number from 0 to 1, or a tensor of them that broadcasts with ``shape``; 0.5 by default.

    Returns
    -------
    A boolean tensor of shape ``shape``, broadcast with the probability.

    Raises
    ------
    ValueError
        If a probability is known (not in a trace) and is not from 0 to 1, a size is negative, or
        shapes do not broadcast.
    TypeError
        If ``shape`` does not hold integers.

    Examples
    --------
    >>> gt.random.bernoulli(2, gt.constant([0.0, 1.0])).tolist()
    [False, True]
    """
    return shared().bernoulli(shape, probability)


def categorical(logits: Any, shape: int | Sequence[int] = ()) -> Tensor:
    """Return class numbers, drawn with the probabilities ``softmax(logits)``.

    The same as :meth:`Generator.categorical` of the generator that :func:`set_seed` seeds.

    Parameters
    ----------
    logits
        Unnormalised log-probabilities, a floating tensor with the classes in the last axis.
    shape
        How many numbers to draw for each row of logits; one by default.

    Returns
    -------
    Integers of shape ``shape + logits.shape[:-1]``; they have no gradient.

    Raises
    ------
    TypeError
        If ``logits`` is not floating.
    ValueError
        If there are no classes, or a size is negative.

    Notes
    -----
    The result is the class with the largest sum of logit and Gumbel noise.

    References
    ----------
    Maddison, Tarlow and Minka, "A* sampling", 2014.

    Examples
    --------
    >>> gt.random.categorical(gt.constant([[0.0, 1e9], [1e9, 0.0]])).tolist()
    [1, 0]
    """
    return shared().categorical(logits, shape)


def randint(shape: int | Sequence[int], low: int, high: int | None = None) -> Tensor:
    """Return integers from ``low`` up to, but not including, ``high``; they have no gradient.

    The same as :meth:`Generator.randint` of the generator that :func:`set_seed` seeds.

    Parameters
    ----------
    shape
        One size or a sequence of them.
    low, high
        The bounds, integers; with one bound, it is ``high`` and ``low`` is 0.

    Returns
    -------
    An ``int64`` tensor of shape ``shape``.

    Raises
    ------
    ValueError
        If ``low`` is not below ``high`` and ``shape`` has elements, or a size is negative.
    TypeError
        If ``shape`` does not hold integers.

    Examples
    --------
    >>> gt.random.randint(3, 5, 6).tolist()
    [5, 5, 5]
    """
    return shared().randint(shape, low, high)


def choice(x: Any, shape: int | Sequence[int] = (), replace: bool = True, p: Any = None) -> Tensor:
    """Return rows of ``x`` (or integers below ``x``) chosen at random.

    The same as :meth:`Generator.choice` of the generator that :func:`set_seed` seeds.

    Parameters
    ----------
    x
        A tensor with at least one axis, or an integer. Gradients reach the rows chosen.
    shape
        How many to choose; one by default.
    replace
        Whether a row may be chosen more than once; true by default.
    p
        The probability of each row, a vector; all are equal if not given. It gets no gradient, and
        need not sum to 1.

    Returns
    -------
    A tensor of shape ``shape + x.shape[1:]``, of the dtype of ``x``; of ``shape`` and ``int64`` for
    an integer.

    Raises
    ------
    ValueError
        If ``replace`` is false and more rows are requested than there are; if there are no rows; if
        ``p`` does not have one probability for each row, or is known and has negative values.
    numpy.exceptions.AxisError
        If ``x`` is a tensor without axes.

    References
    ----------
    Efraimidis and Spirakis, "Weighted random sampling with a reservoir", Information Processing
    Letters 97, 2006: the weighted choice without replacement.

    Examples
    --------
    >>> sorted(gt.random.choice(3, 3, replace=False).tolist())
    [0, 1, 2]
    >>> gt.random.choice(gt.constant([[1.0, 2.0], [3.0, 4.0]]), 5).shape
    (5, 2)
    """
    return shared().choice(x, shape, replace, p)


def permutation(x: Any) -> Tensor:
    """Return the integers below ``x``, or the rows of a tensor ``x``, in random order.

    The same as :meth:`Generator.permutation` of the generator that :func:`set_seed` seeds.

    Parameters
    ----------
    x
        An integer, or a tensor with at least one axis. Gradients return to the original rows.

    Returns
    -------
    A vector of ``int64`` for an integer, otherwise a tensor of the shape and dtype of ``x``.

    Raises
    ------
    numpy.exceptions.AxisError
        If ``x`` is a tensor without axes.

    Examples
    --------
    >>> sorted(gt.random.permutation(4).tolist())
    [0, 1, 2, 3]
    >>> gt.random.permutation(gt.constant([[1.0, 2.0], [3.0, 4.0]])).shape
    (2, 2)
    """
    return shared().permutation(x)


def shuffle(x: Any) -> Tensor:
    """Return the rows of ``x`` in random order; ``x`` itself does not change.

    The same as :meth:`Generator.shuffle` of the generator that :func:`set_seed` seeds.

    Parameters
    ----------
    x
        A tensor with at least one axis. Gradients return to the original rows.

    Returns
    -------
    A tensor of the shape and dtype of ``x``.

    Raises
    ------
    numpy.exceptions.AxisError
        If ``x`` has no axes.

    Examples
    --------
    >>> sorted(gt.random.shuffle(gt.constant([3, 1, 2])).tolist())
    [1, 2, 3]
    """
    return shared().shuffle(x)

"""``Generator``: the source of random numbers for users.

A generator holds a seed and counts its draws; the ops turn the resulting keys into numbers.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np

from ....core.extend import (
    F,
    Size,
    Stream,
    Tensor,
    Variable,
    as_size,
    as_tensor,
    backend_of,
    check_randomness,
    key_for_examples,
    known_size,
    largest,
    on_device_of,
    ops,
    own_array,
    to_numpy,
)
from ..common.op_builders import named_in
from .continuous import (
    Continuous,
    check_possible,
    float_like,
    improbable,
    negative,
    refuse,
    shape_first,
    sizes_of,
    some_wanted,
    weights,
    with_rows,
)


class Generator(Continuous):
    """A source of random numbers: a seed, and a count of the draws so far.

    Its state is a variable, so it is saved with the module that holds it, and draws inside a traced
    function differ from call to call. Equal seeds give equal numbers, on every backend.

    ``snapshot = generator.state.numpy()`` reads the state, the two integers ``[seed, count]``, and
    ``generator.state = snapshot`` restores it: the draws since then are repeated.

    Parameters
    ----------
    seed
        An integer from 0 to ``2**63 - 1``; taken from the operating system if not given.
    name
        The name of the module; ``"generator"`` if not given.

    Notes
    -----
    A forked process (``os.fork``, ``multiprocessing``) continues with copies of its parent's
    generators. A generator that you did not seed gets another seed there, so that no two processes
    draw the same numbers. One that you seeded draws what its parent, and every other process forked
    at that point, draws next, as NumPy's do: give each worker its own, ``set_seed(seed + worker)``.

    Raises
    ------
    ValueError
        If the seed is not such an integer, or a new state is not two integers of at least 0.
    RuntimeError
        At a draw inside a :func:`gradtape.vmap` whose ``randomness`` is ``"error"``, its default.

    Examples
    --------
    >>> generator = gt.random.Generator(7)
    >>> snapshot = generator.state.numpy()
    >>> first = generator.normal((2, 3))
    >>> generator.state = snapshot
    >>> (generator.normal((2, 3)) == first).all().item()
    True
    """

    def __init__(self, seed: int | None = None, name: str | None = None) -> None:
        super().__init__(name)
        self.state = Stream(_seeded_key(seed), asked=seed is not None)

    def __setattr__(self, name: str, value: Any) -> None:
        if name == "state" and "state" in vars(self) and not isinstance(value, Variable):
            self.state.assign(_state(value, self.state))  # the variable that files refer to
        else:
            super().__setattr__(name, value)

    def get_config(self) -> dict[str, Any]:
        """Return the constructor's arguments; the state itself is a variable.

        Returns
        -------
        A dictionary of ``seed`` and ``name``.

        Examples
        --------
        >>> gt.random.Generator(7, name="noise").get_config()
        {'seed': 7, 'name': 'noise'}
        """
        return {"seed": self.state.seed, "name": self.name}

    def set_seed(self, seed: int) -> None:
        """Restart as a new generator with this seed.

        Parameters
        ----------
        seed
            An integer from 0 to ``2**63 - 1``.

        Raises
        ------
        ValueError
            If the seed is not such an integer.

        Examples
        --------
        >>> generator = gt.random.Generator(7)
        >>> first = generator.uniform(3)
        >>> generator.set_seed(7)
        >>> (generator.uniform(3) == first).all().item()
        True
        """
        _on_current_backend(self.state)
        self.state.assign(on_device_of(_seeded_key(seed), Tensor(self.state.array)))

    def next_key(self) -> Tensor:
        """Return a key that was not used before, and increment the count.

        Inside ``vmap``, it is one key for each example or one for all, according to ``randomness``.

        Returns
        -------
        An ``int64`` tensor of the seed and the count, of shape ``(2,)``.

        Raises
        ------
        RuntimeError
            If it is called inside a ``vmap`` whose ``randomness`` is ``"error"``, its default.

        Examples
        --------
        >>> generator = gt.random.Generator(7)
        >>> generator.next_key().tolist(), generator.next_key().tolist()
        ([7, 0], [7, 1])
        """
        check_randomness()  # before the count changes
        return key_for_examples(self._count_on())

    def _count_on(self) -> Any:
        with self.state.lock:  # no other thread may get this key
            _on_current_backend(self.state)
            key, owner = self.state.value, backend_of(self.state.array)
            # on the backend of the state, whatever the current one is
            if owner.waits:  # one draw, without a copy to the device
                step = F.numbered_like(self.state.array)
            else:
                step = owner.asarray(_ONE_DRAW, device=owner.device(self.state.array))
            self.state.assign_add(Tensor(step))
        return key

    @named_in("random")
    def bernoulli(self, shape: int | Sequence[int], probability: Any = 0.5) -> Tensor:
        """Return booleans that are true with a probability; they have no gradient.

        Parameters
        ----------
        shape
            One size or a sequence of them.
        probability
            A number from 0 to 1, or a tensor of them that broadcasts with ``shape``; 0.5 by
            default.

        Returns
        -------
        A boolean tensor of shape ``shape``, broadcast with the probability.

        Raises
        ------
        ValueError
            If a probability is known (not in a trace) and is not from 0 to 1, a size is negative,
            or shapes do not broadcast.
        TypeError
            If ``shape`` does not hold integers.

        Examples
        --------
        >>> generator = gt.random.Generator(7)
        >>> generator.bernoulli(2, gt.constant([0.0, 1.0])).tolist()
        [False, True]
        """
        refuse(improbable, probability, "bernoulli: a probability must be from 0 to 1")
        dtype = getattr(probability, "dtype", None)
        # half-precision numbers are too coarse to compare with a small probability
        draws = self._draw("uniform", shape, np.float32 if dtype == np.float16 else dtype)
        return ops["less"](draws, probability)

    @named_in("random")
    def categorical(self, logits: Any, shape: int | Sequence[int] = ()) -> Tensor:
        """Return class numbers, drawn with the probabilities ``softmax(logits)``.

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
        >>> generator = gt.random.Generator(7)
        >>> generator.categorical(gt.constant([[0.0, 1e9], [1e9, 0.0]])).tolist()
        [1, 0]
        """
        logits = float_like(logits, "categorical")
        sizes = sizes_of(shape, "categorical")
        if not sizes:
            noise = ops["random_gumbel_like"](self.next_key(), logits)
        else:
            noise = self._draw("gumbel", (*sizes, *logits.shape), logits.dtype)
        return ops["argmax"](logits + noise, axis=-1, keepdims=False)

    @named_in("random")
    def randint(self, shape: int | Sequence[int], low: int, high: int | None = None) -> Tensor:
        """Return integers from ``low`` up to, but not including, ``high``; they have no gradient.

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
            If a bound is not an integer, or ``shape`` does not hold integers.

        Examples
        --------
        >>> generator = gt.random.Generator(7)
        >>> generator.randint(3, 5, 6).tolist()
        [5, 5, 5]
        """
        shape_first("randint", shape, low, high)
        low, high = (
            as_size(n, "random.randint") for n in ((0, low) if high is None else (low, high))
        )
        sizes = sizes_of(shape, "randint")
        if (low < high) is False and some_wanted(sizes):
            raise ValueError(f"random.randint: low must be below high, got {low} and {high}")
        return ops["random_integers"](self.next_key(), shape=sizes, low=low, high=high)

    @named_in("random")
    def choice(
        self, x: Any, shape: int | Sequence[int] = (), replace: bool = True, p: Any = None
    ) -> Tensor:
        """Return rows of ``x`` (or integers below ``x``) chosen at random.

        Parameters
        ----------
        x
            A tensor with at least one axis, or an integer. Gradients reach the rows chosen.
        shape
            How many to choose; one by default.
        replace
            Whether a row may be chosen more than once; true by default.
        p
            The probability of each row, a vector; all are equal if not given. It gets no gradient,
            and need not sum to 1.

        Returns
        -------
        A tensor of shape ``shape + x.shape[1:]``, of the dtype of ``x``; of ``shape`` and ``int64``
        for an integer.

        Raises
        ------
        ValueError
            If ``replace`` is false and more rows are requested than there are; if there are no
            rows; if ``p`` does not have one probability for each row, or is known and has values
            that are negative, nan or infinite, or fewer values above 0 than rows are requested.
        numpy.exceptions.AxisError
            If ``x`` is a tensor without axes.

        References
        ----------
        Efraimidis and Spirakis, "Weighted random sampling with a reservoir", Information Processing
        Letters 97, 2006: the weighted choice without replacement.

        Examples
        --------
        >>> generator = gt.random.Generator(7)
        >>> sorted(generator.choice(3, 3, replace=False).tolist())
        [0, 1, 2]
        >>> generator.choice(gt.constant([[1.0, 2.0], [3.0, 4.0]]), 5).shape
        (5, 2)
        """
        sizes, whole = sizes_of(shape, "choice"), isinstance(x, (int, np.integer, Size))
        rows = largest(as_size(x, "random.choice"), 0) if whole else with_rows(x, "choice")[1]
        if p is not None:
            p = weights(p, rows)
        # the ops check in each run what a trace does not know
        if known_size(rows) and not rows and some_wanted(sizes):
            raise ValueError(f"random.choice: there is nothing to choose from, got {x!r}")
        if not replace and (prod(sizes) > rows) is True:
            raise ValueError(f"random.choice: cannot choose {prod(sizes)} of {rows} rows once each")
        if p is not None:
            check_possible(p, 1 if replace else prod(sizes))
        if not replace:
            # the largest of logits with Gumbel noise are a weighted choice without replacement
            if p is None:
                order = self.permutation(rows)
            else:
                chances = ops["log"](p)
                order = ops["argsort"](-(chances + self._draw("gumbel", rows, chances.dtype)))
            picked = ops["reshape"](order[: prod(sizes)], shape=sizes)
        elif p is None:
            picked = self.randint(sizes, rows)
        else:
            picked = self.categorical(ops["log"](p), sizes)
        return picked if whole else ops["take"](x, picked, axis=0)

    @named_in("random")
    def permutation(self, x: Any) -> Tensor:
        """Return the integers below ``x``, or the rows of a tensor ``x``, in random order.

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
        >>> generator = gt.random.Generator(7)
        >>> sorted(generator.permutation(4).tolist())
        [0, 1, 2, 3]
        >>> generator.permutation(gt.constant([[1.0, 2.0], [3.0, 4.0]])).shape
        (2, 2)
        """
        if isinstance(x, (int, np.integer, Size)):
            n = as_size(x, "random.permutation")
            return ops["random_permutation"](self.next_key(), n=n)
        x, rows = with_rows(x, "permutation")
        return ops["take"](x, self.permutation(rows), axis=0)

    @named_in("random")
    def shuffle(self, x: Any) -> Tensor:
        """Return the rows of ``x`` in random order; ``x`` itself does not change.

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
        >>> generator = gt.random.Generator(7)
        >>> sorted(generator.shuffle(gt.constant([3, 1, 2])).tolist())
        [1, 2, 3]
        """
        return self.permutation(with_rows(x, "shuffle")[0])


_ONE_DRAW = np.array([0, 1], np.int64)


def _on_current_backend(state: Variable) -> None:
    """Move a state from a backend whose plugin was removed to the current one."""
    try:
        backend_of(state.array)
    except TypeError:
        state.set_array(own_array(np.array(to_numpy(state.array))))


def _seeded_key(seed: int | None) -> np.ndarray[Any, Any]:
    if seed is None:
        seed = int.from_bytes(os.urandom(8)) >> 2
    if isinstance(seed, bool) or not isinstance(seed, (int, np.integer)) or not 0 <= seed < 2**63:
        raise ValueError(f"random: a seed must be an integer from 0 to 2**63 - 1, got {seed!r}")
    return np.array([seed, 0], np.int64)


def _state(value: Any, state: Variable) -> Tensor:
    """Return a new state from a user, checked, on the device of the ``state`` that it replaces."""
    given = as_tensor(value)
    if given.shape != (2,) or given.dtype.kind not in "iu":
        raise ValueError(
            "random: a generator's state must be two integers, [seed, count], as returned by "
            f"generator.state.numpy(); got {value!r}"
        )
    refuse(negative, given, "Generator: the integers of a state must be at least 0")
    return on_device_of(value, Tensor(state.array))
